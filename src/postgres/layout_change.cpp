/*
 * layout_change.cpp
 *		Changing the layout of a server that has made ids.
 *
 * A change writes three records, and makes each durable before the next: the limit
 * at which ids of the new layout start, the new layout's scale, and, by the caller,
 * further limits.  A crash in between leaves the old scale with a limit that is too
 * high, which is safe.
 */
#include "postgres/layout_change.h"

#include <algorithm>

#include "core/scale.h"
#include "postgres/environment.h"
#include "postgres/errors.h"
#include "postgres/layout.h"
#include "postgres/reservation.h"
#include "postgres/settings.h"
#include "postgres/shared.h"
#include "postgres/time.h"

#include "postgres/pg.h"
#include "postgres/row.h"

namespace snowflake
{

namespace
{

/* A scale in words. */
struct ScaleText
{
	char		text[192];
};

ScaleText
scale_text(const Scale &scale)
{
	ScaleText	result;

	snprintf(result.text, sizeof(result.text), "the epoch %s, %s %s and %d bits below the timestamp",
			 time_text(scale.epoch_us).text, scale.tick_us == 0 ? "another" : "a tick of",
			 scale.tick_us == 0 ? "tick" : tick_text(scale.tick_us).text, scale.timestamp_shift);
	return result;
}

uint64_t
server_scale()
{
	return encode_scale(server_layout());
}

/* The layout's first tick from which on its ids lie above those below the limit. */
int64
first_free_tick(uint64_t recorded, int64 limit_us)
{
	return first_tick_above(decode_scale(recorded), limit_us, server_layout());
}

}  // namespace

bool
find_layout_start(int64_t now_us, int64_t *start_us)
{
	/* In this order: a scale that was written just now came after its limit. */
	uint64_t	recorded = read_scale();
	int64_t		limit_us = read_limit();
	int64		decided_us = static_cast<int64>(shared()->layout_start_us.load(std::memory_order_relaxed));

	if (decided_us != 0 && !is_scale_of(recorded, server_layout()))
	{
		*start_us = std::max(limit_us, decided_us);
		return true;
	}
	return find_start(recorded, server_layout(), limit_us, now_us, start_us);
}

bool
record_layout(int64_t now_us)
{
	const Layout &layout = server_layout();
	Shared	   &state = *shared();
	uint64_t	recorded = read_scale();

	if (is_scale_of(recorded, layout))
		return true;
	if (recorded != 0)
	{
		int64		start_us = 0;
		bool		is_free = true;

		lock_shared_state();
		start_us = static_cast<int64>(state.layout_start_us.load(std::memory_order_relaxed));
		if (start_us == 0)
		{
			/* The claim, which find_layout_start() has let start, has issued nothing yet. */
			if (state.generator.word.load(std::memory_order_acquire) & held)
			{
				uint64_t	step = state.generator.claim_start.load(std::memory_order_acquire);

				start_us = tick_begin_us(layout, Steps(layout).tick_of(step));
			}
			else
				is_free = find_layout_start(now_us, &start_us);
			if (is_free)
				state.layout_start_us.store(static_cast<uint64_t>(start_us), std::memory_order_relaxed);
		}
		unlock_shared_state();
		if (!is_free)
			return false;
		flush_log(log_limit(start_us, false));
	}
	flush_log(log_scale(server_scale()));
	if (recorded != 0)
		ereport(LOG,
				(errmsg("layout of snowflake ids was changed"),
				 errdetail("It has %s now; before it had %s. All new ids lie above those before.",
						   scale_text(decode_scale(server_scale())).text, scale_text(decode_scale(recorded)).text)));
	return true;
}

void
report_layout_change()
{
	const Layout &layout = server_layout();
	uint64_t	recorded = read_scale();
	int64		limit_us = read_limit();
	int64		free_tick = first_free_tick(recorded, limit_us);
	TimeText	limit = time_text(limit_us);
	ScaleText	before = scale_text(decode_scale(recorded));
	ScaleText	now = scale_text(decode_scale(server_scale()));

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot make snowflake ids in another layout than before"),
			 decode_scale(recorded).is_accepted ?
			 errdetail("The time up to %s was reserved in a layout with %s, which was accepted over another one; "
					   "\"snowflake.layout\" now has %s, and could repeat ids of either.",
					   limit.text, before.text, now.text) :
			 free_tick > layout.last_tick() ?
			 errdetail("The time up to %s was reserved in a layout with %s; \"snowflake.layout\" now has %s, and could "
					   "repeat those ids.",
					   limit.text, before.text, now.text) :
			 errdetail("The time up to %s was reserved in a layout with %s; \"snowflake.layout\" now has %s, and could "
					   "repeat those ids until %s.",
					   limit.text, before.text, now.text,
					   time_text(tick_begin_us(layout, free_tick)).text),
			 errhint("Set \"snowflake.layout\" to what it was and restart the server; "
					 "or, if you know that the new ids cannot meet any that were made before, call "
					 "snowflake_accept_layout().")));
}

}  // namespace snowflake

using namespace snowflake;

extern "C"
{

/*
 * snowflake_accept_layout(): takes the server's layout for that of the limit,
 * whatever it was made in.  From there every other one is refused until it is
 * accepted too: where the ids before lie is not known any more.  Superusers only.
 */
PG_FUNCTION_INFO_V1(snowflake_accept_layout);
Datum
snowflake_accept_layout(PG_FUNCTION_ARGS)
{
	Reason		reason;

	(void) server_generator();	/* an error where the library was not preloaded */
	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be superuser to accept another layout of snowflake ids")));
	PreventCommandDuringRecovery("snowflake_accept_layout()");
	if (is_for_reading_only(server_layout(), &reason))
		report_for_reading_only(reason);
	check_limit_writable();

	uint64_t	recorded = read_scale();

	/* The same one goes on as it did: above all before, or accepted. */
	if (is_scale_of(recorded, server_layout()))
		PG_RETURN_VOID();
	flush_log(log_scale(server_scale() | scale_is_accepted));
	ereport(LOG,
			(errmsg("layout of snowflake ids was accepted"),
			 recorded == 0 ?
			 errdetail("It has %s.", scale_text(decode_scale(server_scale())).text) :
			 errdetail("It has %s; before it had %s.",
					   scale_text(decode_scale(server_scale())).text, scale_text(decode_scale(recorded)).text)));
	PG_RETURN_VOID();
}

/*
 * snowflake_limit_layout(OUT epoch timestamptz, OUT tick interval, OUT
 * timestamp_shift int): what is on record of the layout that the limit was made
 * in; NULLs where nothing is.
 */
PG_FUNCTION_INFO_V1(snowflake_limit_layout);
Datum
snowflake_limit_layout(PG_FUNCTION_ARGS)
{
	uint64_t	recorded = read_scale();
	Scale		scale = decode_scale(recorded);
	Row			row;

	row.add(TimestampTzGetDatum(timestamptz_of(scale.epoch_us)), recorded == 0);
	row.add(interval_datum(scale.tick_us), recorded == 0 || scale.tick_us == 0);
	row.add(Int32GetDatum(scale.timestamp_shift), recorded == 0);
	PG_RETURN_DATUM(row.result(fcinfo));
}

}
