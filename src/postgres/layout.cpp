/*
 * layout.cpp
 *		Layouts for SQL: snowflake_layout(), snowflake_layouts.
 */
#include "postgres/layout.h"

#include <cmath>

#include "core/id.h"
#include "postgres/settings.h"
#include "postgres/time.h"

#include "postgres/pg.h"

namespace snowflake
{

namespace
{

/* The layout that a call site used last, with its text: layouts are nearly always constants. */
struct CachedLayout
{
	Layout		layout;
	text	   *spec;
};

constexpr int layout_columns = 10;

/* One row: name, spec, timestamp_bits, node_bits, sequence_bits, tick, epoch, ends_at, max_node, ids_per_second */
void
fill_row(const Layout &layout, Datum *values, bool *nulls)
{
	const char *name = preset_name(layout);
	int			i = 0;

	memset(nulls, 0, layout_columns * sizeof(bool));
	nulls[i] = name == nullptr;
	values[i++] = name == nullptr ? Datum{0} : CStringGetTextDatum(name);
	values[i++] = CStringGetTextDatum(layout_text(layout).text);
	values[i++] = Int32GetDatum(layout.timestamp_bits);
	values[i++] = Int32GetDatum(layout.node_bits);
	values[i++] = Int32GetDatum(layout.sequence_bits);
	values[i++] = interval_datum(layout.tick_us);
	values[i++] = TimestampTzGetDatum(timestamptz_of(layout.epoch_us));
	values[i++] = TimestampTzGetDatum(timestamptz_of(ends_at_us(layout)));
	values[i++] = Int64GetDatum(static_cast<int64>(layout.max_node()));
	values[i++] = Float8GetDatum(std::ldexp(1e6, layout.sequence_bits) / static_cast<double>(layout.tick_us));
}

}  // namespace

const Layout &
layout_argument(FunctionCallInfoBaseData *fcinfo, int argument)
{
	if (PG_NARGS() <= argument)
		return server_layout();

	text	   *spec = PG_GETARG_TEXT_PP(argument);
	CachedLayout *cached = static_cast<CachedLayout *>(fcinfo->flinfo->fn_extra);
	size_t		size = VARSIZE_ANY_EXHDR(spec);

	if (cached != nullptr && cached->spec != nullptr && VARSIZE_ANY_EXHDR(cached->spec) == size &&
		memcmp(VARDATA_ANY(cached->spec), VARDATA_ANY(spec), size) == 0)
		return cached->layout;

	if (cached == nullptr)
	{
		cached = static_cast<CachedLayout *>(MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(CachedLayout)));
		fcinfo->flinfo->fn_extra = cached;
	}
	if (cached->spec != nullptr)
		pfree(cached->spec);
	cached->spec = nullptr;

	Reason		reason;

	if (!parse_layout({VARDATA_ANY(spec), size}, &cached->layout, &reason))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid snowflake layout \"%s\"", text_to_cstring(spec)),
				 errdetail("%s", reason.text),
				 errhint("%s", layout_hint)));

	size_t		whole = VARSIZE_ANY(spec);

	cached->spec = static_cast<text *>(MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, whole));
	memcpy(cached->spec, spec, whole);
	return cached->layout;
}

bool
ends_within_a_year(const Layout &layout, int64_t now_us)
{
	return ends_at_us(layout) - now_us <= 365 * USECS_PER_DAY;
}

void
report_end(int elevel, const Layout &layout)
{
	ereport(elevel,
			(errmsg("snowflake layout has less than a year of time left"),
			 errdetail("Its time ends at %s.", time_text(ends_at_us(layout)).text),
			 errhint("Plan the change to a layout with a later epoch or more timestamp bits.")));
}

void
check_id(const Layout &layout, int64_t id)
{
	if (id < 0 || id > layout.max_id())
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("id %lld is out of range for the snowflake layout", static_cast<long long>(id)),
				 errdetail("The layout's ids lie between 0 and %lld.", static_cast<long long>(layout.max_id())),
				 errhint("Check that the id was made with the layout \"%s\".", layout_text(layout).text)));
}

}  // namespace snowflake

using namespace snowflake;

extern "C"
{

/* snowflake_layout([layout text]) record: one layout's properties. */
PG_FUNCTION_INFO_V1(snowflake_layout);
Datum
snowflake_layout(PG_FUNCTION_ARGS)
{
	const Layout &layout = layout_argument(fcinfo, 0);
	TupleDesc	row_type;
	Datum		values[layout_columns];
	bool		nulls[layout_columns];

	if (get_call_result_type(fcinfo, nullptr, &row_type) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	fill_row(layout, values, nulls);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(row_type), values, nulls)));
}

/* snowflake_layouts() SETOF record: the same for each preset. */
PG_FUNCTION_INFO_V1(snowflake_layouts);
Datum
snowflake_layouts(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);

	InitMaterializedSRF(fcinfo, 0);
	for (const Preset &preset : presets)
	{
		Layout		layout;
		Reason		reason;
		Datum		values[layout_columns];
		bool		nulls[layout_columns];

		if (!parse_layout(preset.spec, &layout, &reason))
			elog(ERROR, "preset \"%s\" is no layout: %s", preset.name, reason.text);
		fill_row(layout, values, nulls);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return Datum{0};
}

}
