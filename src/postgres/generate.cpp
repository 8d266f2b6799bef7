/*
 * generate.cpp
 *		Making ids: the SQL functions that take them, and those that move where
 *		they continue.
 *
 * The way of an id: snowflake_nextval() calls the generator (core/generator.h),
 * which reads the clock and swaps the shared word.  Whichever backend finds the reservation
 * half used pays the next one's WAL flush (reservation.cpp): two in each reserve_ahead.
 */
#include "postgres/environment.h"
#include "postgres/errors.h"
#include "postgres/lastval.h"
#include "postgres/layout.h"
#include "postgres/settings.h"
#include "postgres/time.h"

#include "postgres/pg.h"

namespace snowflake
{

namespace
{

/* Takes up to wanted ids of one tick; an error where there is none. */
Taken
take(int64 wanted)
{
	Taken		taken = generator_for_ids().take(wanted);

	if (unlikely(taken.failure != Failure::none))
		report_failure(taken);
	count(own_counters->ids, static_cast<uint64_t>(taken.count));
	return taken;
}

/* One id of a call that something may keep from it.  Apart, so that the others need no room for Taken. */
pg_noinline int64
take_one()
{
	return take(1).id;
}

/* An error where the generator was not moved. */
void
check_moved(const Taken &taken)
{
	if (taken.failure != Failure::none)
		report_failure(taken);
}

/* snowflake_nextval_batch(): what is left to return. */
struct Batch
{
	int64		wanted;			/* not taken yet */
	int64		taken;			/* of the run, not returned yet */
	int64		next_id;		/* of the run */
	uint64_t	turn;
};

}  // namespace

}  // namespace snowflake

using namespace snowflake;

extern "C"
{

/* snowflake_nextval() bigint: a new id. */
PG_FUNCTION_INFO_V1(snowflake_nextval);
Datum
snowflake_nextval(PG_FUNCTION_ARGS)
{
	int64		id = generator_for_ids().take_at_once();

	if (likely(id >= 0))
		count(own_counters->ids, 1);
	else
		id = take_one();
	remember_id(id, ++last_turn);
	PG_RETURN_INT64(id);
}

/*
 * snowflake_nextval_batch(n int) SETOF bigint: n new ids, ascending, taken in
 * runs of one step each; a run ends with its tick.
 */
PG_FUNCTION_INFO_V1(snowflake_nextval_batch);
Datum
snowflake_nextval_batch(PG_FUNCTION_ARGS)
{
	FuncCallContext *context;
	Batch	   *batch;

	if (SRF_IS_FIRSTCALL())
	{
		int32		wanted = PG_GETARG_INT32(0);

		if (wanted < 1)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("number of ids must be at least 1"),
					 errdetail("The number is %d.", wanted),
					 errhint("Leave the call out where no ids are wanted.")));
		(void) generator_for_ids();
		check_not_in_recovery("snowflake_nextval_batch()");
		context = SRF_FIRSTCALL_INIT();
		batch = static_cast<Batch *>(MemoryContextAllocZero(context->multi_call_memory_ctx, sizeof(Batch)));
		batch->wanted = wanted;
		context->user_fctx = batch;
	}

	context = SRF_PERCALL_SETUP();
	batch = static_cast<Batch *>(context->user_fctx);
	if (batch->taken == 0 && batch->wanted == 0)
		SRF_RETURN_DONE(context);
	if (batch->taken == 0)
	{
		Taken		taken = take(batch->wanted);

		batch->wanted -= taken.count;
		batch->taken = taken.count;
		batch->next_id = taken.id;
		batch->turn = ++last_turn;
	}

	int64		id = batch->next_id;

	batch->next_id = next_in_tick(server_layout(), id);
	batch->taken--;
	remember_id(id, batch->turn);
	SRF_RETURN_NEXT(context, Int64GetDatum(id));
}

/*
 * snowflake_advance_past(id bigint): later ids sort after this one.  Durable when
 * it returns; never goes back.
 */
PG_FUNCTION_INFO_V1(snowflake_advance_past);
Datum
snowflake_advance_past(PG_FUNCTION_ARGS)
{
	int64		id = PG_GETARG_INT64(0);
	const Layout &layout = server_layout();
	ServerGenerator &generator = server_generator();
	int64		now_us = server_clock.now_us();

	PreventCommandDuringRecovery("snowflake_advance_past()");
	check_id(layout, id);

	int64		tick = take_apart(layout, id).tick;
	int64		begin_us = tick_begin_us(layout, tick);

	if (begin_us > now_us && begin_us - now_us > furthest_advance_us)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("id lies more than a day ahead of the clock"),
				 errdetail("The time of %lld in the server's layout is %s; the clock reads %s.",
						   static_cast<long long>(id), time_text(begin_us).text, time_text(now_us).text),
				 errhint("Check that the id was made with the layout \"%s\", and that the clock is right.",
						 layout_setting())));
	check_moved(generator.advance_past(tick));
	PG_RETURN_VOID();
}

/*
 * snowflake_set_reserved_until(ts timestamptz): moves the durable limit, also back;
 * to a time from the layout's epoch to its end.  Superusers only.
 */
PG_FUNCTION_INFO_V1(snowflake_set_reserved_until);
Datum
snowflake_set_reserved_until(PG_FUNCTION_ARGS)
{
	TimestampTz ts = PG_GETARG_TIMESTAMPTZ(0);
	ServerGenerator &generator = server_generator();

	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be superuser to set the reserved time of snowflake ids")));
	PreventCommandDuringRecovery("snowflake_set_reserved_until()");

	int64		limit_us = unix_time_in(server_layout(), ts);

	check_moved(generator.set_reserved_until(limit_us));
	ereport(LOG,
			(errmsg("reserved time of snowflake ids was set"),
			 errdetail("It ends at %s.", time_text(limit_us).text)));
	PG_RETURN_VOID();
}

/* snowflake_accept_clock(): believes the wall clock as it is now. */
PG_FUNCTION_INFO_V1(snowflake_accept_clock);
Datum
snowflake_accept_clock(PG_FUNCTION_ARGS)
{
	ServerGenerator &generator = server_generator();

	generator.accept_clock(server_clock.accept());
	PG_RETURN_VOID();
}

}
