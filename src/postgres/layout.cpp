/*
 * layout.cpp
 *		Layouts for SQL: snowflake_layout(), snowflake_layouts.
 */
#include "postgres/layout.h"

#include <cmath>

#include "core/id.h"
#include "core/scale.h"
#include "postgres/settings.h"
#include "postgres/time.h"

#include "postgres/pg.h"
#include "postgres/row.h"
#include "postgres/shown.h"

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

/* name, spec, timestamp_bits, node_bits, sequence_bits, tick, epoch, ends_at, max_node, ids_per_second */
Row
row_of(const Layout &layout)
{
	Row			row;

	row.add_text(preset_name(layout));
	row.add_text(layout_text(layout).text);
	row.add(Int32GetDatum(layout.timestamp_bits));
	row.add(Int32GetDatum(layout.node_bits));
	row.add(Int32GetDatum(layout.sequence_bits));
	row.add(interval_datum(layout.tick_us));
	row.add(TimestampTzGetDatum(timestamptz_of(layout.epoch_us)));
	row.add(TimestampTzGetDatum(timestamptz_of(ends_at_us(layout))));
	row.add_int(layout.max_node());
	row.add(Float8GetDatum(std::ldexp(1e6, layout.sequence_bits) / static_cast<double>(layout.tick_us)));
	return row;
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
				 errmsg("invalid snowflake layout \"%s\"", shown(spec)),
				 errdetail("%s", reason.text),
				 errhint("%s", layout_hint)));

	size_t		whole = VARSIZE_ANY(spec);

	cached->spec = static_cast<text *>(MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, whole));
	memcpy(cached->spec, spec, whole);
	return cached->layout;
}

bool
is_for_reading_only(const Layout &layout, Reason *reason)
{
	if (layout.fields[0].kind != FieldKind::timestamp)
		return !reason->refuse("Its first field is not the timestamp, so ids would not sort by time.");

	/* The durable limit must say which ids were made. */
	if (!has_scale_tick(layout))
		return !reason->refuse("Its tick cannot be kept with the durable limit. Ticks of 1 to %d us, ms or s can be "
							   "used.",
							   static_cast<int>(scale_mask(scale_count_bits)));
	if (!has_scale_epoch(layout))
		return !reason->refuse("Its epoch cannot be kept with the durable limit. Epochs before the year 2248 can be "
							   "used.");
	return false;
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
	PG_RETURN_DATUM(row_of(layout_argument(fcinfo, 0)).result(fcinfo));
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

		if (!parse_layout(preset.spec, &layout, &reason))
			elog(ERROR, "preset \"%s\" is no layout: %s", preset.name, reason.text);
		row_of(layout).put(result);
	}
	return Datum{0};
}

}
