/*
 * decode.cpp
 *		Reading ids and building them from their parts: snowflake_decode(),
 *		snowflake_encode(), snowflake_min_id(), snowflake_explain() and others.
 *
 * Each function takes a layout as its last argument, or works with the server's.
 */
#include <cinttypes>

#include "core/id.h"
#include "postgres/layout.h"
#include "postgres/time.h"

#include "postgres/pg.h"
#include "postgres/row.h"
#include "postgres/shown.h"

namespace snowflake
{

namespace
{

/* The id argument, checked. */
int64
id_argument(FunctionCallInfo fcinfo, const Layout &layout)
{
	int64		id = PG_GETARG_INT64(0);

	check_id(layout, id);
	return id;
}

/* The time of an id; an error where timestamptz can't hold it. */
TimestampTz
timestamp_of(const Layout &layout, const Parts &parts)
{
	int64		unix_us = tick_begin_us(layout, parts.tick);

	if (unix_us == INT64_MAX || !IS_VALID_TIMESTAMP(timestamptz_of(unix_us)))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("time of id %lld is out of range for type timestamptz",
						static_cast<long long>(compose(layout, parts))),
				 errdetail("It is tick %lld of %s after the epoch.", static_cast<long long>(parts.tick),
						   tick_text(layout.tick_us).text),
				 errhint("Check that the id was made with the layout \"%s\".", layout_text(layout).text)));
	return timestamptz_of(unix_us);
}

/* The node's fields by name, as JSON. */
Datum
fields_of(const Layout &layout, int64 id)
{
	StringInfoData json;
	const char *separator = "";

	initStringInfo(&json);
	appendStringInfoChar(&json, '{');
	for (int i = 0; i < layout.field_count; i++)
	{
		const Field &field = layout.fields[i];

		if (field.kind != FieldKind::node)
			continue;
		/* A field's name needs no escapes. */
		appendStringInfo(&json, "%s\"%s\": %" PRIu64, separator, field.name, field_value(field, id));
		separator = ", ";
	}
	appendStringInfoChar(&json, '}');
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(json.data));
}

/* A part given to snowflake_encode(), checked. */
uint64
part_argument(FunctionCallInfo fcinfo, int argument, const Layout &layout, const char *name, uint64 max)
{
	int64		value = PG_GETARG_INT64(argument);

	if (value < 0 || static_cast<uint64>(value) > max)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("%s %lld is out of range for the snowflake layout", name, static_cast<long long>(value)),
				 max == 0 ? errdetail("It must be 0: the layout has no %s.", name) :
				 errdetail("It must lie between 0 and %llu.", static_cast<unsigned long long>(max)),
				 errhint("Check that the layout \"%s\" is the right one.", layout_text(layout).text)));
	return static_cast<uint64>(value);
}

/* What a field's value means, for a person. */
char *
meaning_of(const Layout &layout, const Field &field, const Parts &parts)
{
	switch (field.kind)
	{
		case FieldKind::timestamp:
			return psprintf("%s: %lld ticks of %s after %s",
							tick_begin_us(layout, parts.tick) == INT64_MAX ? "beyond timestamptz" :
							time_text(tick_begin_us(layout, parts.tick)).text,
							static_cast<long long>(parts.tick), tick_text(layout.tick_us).text,
							time_text(layout.epoch_us).text);
		case FieldKind::sequence:
			return psprintf("number in the tick, of 0 to %" PRIu64, layout.max_sequence());
		case FieldKind::node:
			break;
	}
	if (field.bits == layout.node_bits)
		return psprintf("node number, of 0 to %" PRIu64, layout.max_node());
	return psprintf("part of node number %" PRIu64 ", of 0 to %" PRIu64, parts.node, field.max());
}

}  // namespace

}  // namespace snowflake

using namespace snowflake;

extern "C"
{

/* snowflake_decode(id bigint [, layout text]) record (ts timestamptz, node bigint, sequence bigint, fields jsonb) */
PG_FUNCTION_INFO_V1(snowflake_decode);
Datum
snowflake_decode(PG_FUNCTION_ARGS)
{
	const Layout &layout = layout_argument(fcinfo, 1);
	int64		id = id_argument(fcinfo, layout);
	Parts		parts = take_apart(layout, id);
	Row			row;

	row.add(TimestampTzGetDatum(timestamp_of(layout, parts)));
	row.add_int(parts.node);
	row.add_int(parts.sequence);
	row.add(fields_of(layout, id));
	PG_RETURN_DATUM(row.result(fcinfo));
}

/* snowflake_timestamp(id bigint [, layout text]) timestamptz: when it was born, the beginning of its tick. */
PG_FUNCTION_INFO_V1(snowflake_timestamp);
Datum
snowflake_timestamp(PG_FUNCTION_ARGS)
{
	const Layout &layout = layout_argument(fcinfo, 1);

	PG_RETURN_TIMESTAMPTZ(timestamp_of(layout, take_apart(layout, id_argument(fcinfo, layout))));
}

/* snowflake_node(id bigint [, layout text]) bigint: the node number; 0 where the layout has none. */
PG_FUNCTION_INFO_V1(snowflake_node);
Datum
snowflake_node(PG_FUNCTION_ARGS)
{
	const Layout &layout = layout_argument(fcinfo, 1);

	PG_RETURN_INT64(static_cast<int64>(take_apart(layout, id_argument(fcinfo, layout)).node));
}

/* snowflake_sequence(id bigint [, layout text]) bigint */
PG_FUNCTION_INFO_V1(snowflake_sequence);
Datum
snowflake_sequence(PG_FUNCTION_ARGS)
{
	const Layout &layout = layout_argument(fcinfo, 1);

	PG_RETURN_INT64(static_cast<int64>(take_apart(layout, id_argument(fcinfo, layout)).sequence));
}

/* snowflake_field(id bigint, field text [, layout text]) bigint: one field by its name in the layout. */
PG_FUNCTION_INFO_V1(snowflake_field);
Datum
snowflake_field(PG_FUNCTION_ARGS)
{
	const Layout &layout = layout_argument(fcinfo, 2);
	int64		id = id_argument(fcinfo, layout);
	text	   *name = PG_GETARG_TEXT_PP(1);
	const Field *field = layout.find({VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name)});

	if (field == nullptr)
	{
		StringInfoData names;

		initStringInfo(&names);
		for (int i = 0; i < layout.field_count; i++)
			appendStringInfo(&names, "%s\"%s\"", i == 0 ? "" : ", ", layout.fields[i].name);
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("snowflake layout has no field \"%s\"", shown(name)),
				 errdetail("Its fields are %s.", names.data),
				 errhint("Check that the layout \"%s\" is the right one.", layout_text(layout).text)));
	}
	PG_RETURN_INT64(static_cast<int64>(field_value(*field, id)));
}

/* snowflake_encode(ts timestamptz, node bigint, sequence bigint [, layout text]) bigint: the id with these parts. */
PG_FUNCTION_INFO_V1(snowflake_encode);
Datum
snowflake_encode(PG_FUNCTION_ARGS)
{
	const Layout &layout = layout_argument(fcinfo, 3);
	int64		unix_us = unix_time_in(layout, PG_GETARG_TIMESTAMPTZ(0));
	uint64		node = part_argument(fcinfo, 1, layout, "node number", layout.max_node());
	uint64		sequence = part_argument(fcinfo, 2, layout, "sequence", layout.max_sequence());

	PG_RETURN_INT64(compose(layout, {tick_at(layout, unix_us), node, sequence}));
}

/* snowflake_min_id(ts timestamptz [, layout text]) bigint: the smallest id born at or after ts. */
PG_FUNCTION_INFO_V1(snowflake_min_id);
Datum
snowflake_min_id(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(min_id(layout_argument(fcinfo, 1), unix_time(PG_GETARG_TIMESTAMPTZ(0))));
}

/* snowflake_max_id(ts timestamptz [, layout text]) bigint: the largest id born at or before ts. */
PG_FUNCTION_INFO_V1(snowflake_max_id);
Datum
snowflake_max_id(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(max_id(layout_argument(fcinfo, 1), unix_time(PG_GETARG_TIMESTAMPTZ(0))));
}

/* snowflake_explain(id bigint [, layout text]) SETOF record (field text, bits int, value bigint, meaning text) */
PG_FUNCTION_INFO_V1(snowflake_explain);
Datum
snowflake_explain(PG_FUNCTION_ARGS)
{
	const Layout &layout = layout_argument(fcinfo, 1);
	int64		id = id_argument(fcinfo, layout);
	Parts		parts = take_apart(layout, id);
	ReturnSetInfo *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < layout.field_count; i++)
	{
		const Field &field = layout.fields[i];
		Row			row;

		row.add_text(field.name);
		row.add(Int32GetDatum(field.bits));
		row.add_int(field_value(field, id));
		row.add_text(meaning_of(layout, field, parts));
		row.put(result);
	}
	return Datum{0};
}

}
