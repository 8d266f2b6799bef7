/*
 * generate.cpp
 *		Making ids: snowflake_nextval() and what steers the generator.
 *
 * The way of an id: snowflake_nextval() calls the generator, which reads the
 * clock and swaps the shared word (core/generator.h).  Two WAL flushes a
 * reserve_ahead are paid by whichever backend finds the reservation half used.
 */
#include <algorithm>
#include <new>

#include "postgres/generate.h"

#include "core/scale.h"
#include "postgres/clock.h"
#include "postgres/grant.h"
#include "postgres/lastval.h"
#include "postgres/layout.h"
#include "postgres/layout_change.h"
#include "postgres/node.h"
#include "postgres/reservation.h"
#include "postgres/settings.h"
#include "postgres/time.h"

#include "postgres/pg.h"

#include "postgres/sqlstate.h"

namespace snowflake
{

namespace
{

/* WaitLatch() counts milliseconds: what is shorter is slept, which a signal ends too. */
constexpr int64_t shortest_latch_wait_ns = 2 * ns_per_ms;

/* advance_past() further ahead of the clock than this would stop the server for that long. */
constexpr int64_t furthest_advance_us = 86400LL * 1000 * 1000;

/* In the last year of the layout's time the log is told once a day. */
constexpr int64_t end_warning_pause_us = 86400LL * 1000 * 1000;

constinit Server server;

/* Constructed in place: a library's static objects must not need code that runs while it is loaded. */
alignas(ServerGenerator) char generator_storage[sizeof(ServerGenerator)];
ServerGenerator *generator;
const Layout *generator_layout;

/* This backend's counters, which only it writes; set with the generator. */
BackendCounters *counters;

void
count(Atomic64 &counter, uint64_t more)
{
	counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

/* Counts a wait that is over, and returns how long it was, ns. */
int64_t
count_wait(int64_t start_ns, bool first)
{
	static int64_t waited_in_call = 0;
	Atomic64   &longest = shared()->longest_wait_ns;
	uint64_t	before = longest.load(std::memory_order_relaxed);
	int64_t		waited = boot_clock_ns() - start_ns;

	waited_in_call = waited + (first ? 0 : waited_in_call);
	count(counters->waits, first ? 1 : 0);
	count(counters->wait_ns, static_cast<uint64_t>(waited));
	while (before < static_cast<uint64_t>(waited_in_call) &&
		   !longest.compare_exchange_weak(before, static_cast<uint64_t>(waited_in_call), std::memory_order_relaxed))
		;
	return waited;
}

/* Makes the generator where there is none yet, and lets it follow the settings. */
pg_noinline void
prepare_generator()
{
	if (generator == nullptr)
	{
		if (shared() == nullptr)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("snowflake must be loaded via \"shared_preload_libraries\""),
					 errhint("Add snowflake to \"shared_preload_libraries\" and restart the server; decoding ids works without.")));
		counters = &shared()->backends[backend_number()];
		generator_layout = &server_layout();
		generator = new (generator_storage) ServerGenerator(shared()->generator, *generator_layout, server);
	}
	generator_options_changed = false;
	generator->set_options(generator_options());
}

/* The generator's failures, as errors.  They all count. */

void
count_error()
{
	count(counters->errors, 1);
}

/* What helps where the registry had granted the time up to the next id before, to this holder or to another. */
const char *
granted_before_hint()
{
	if (registry_address().kind == RegistryKind::zookeeper)
		return "This passes when the clock gets there. Otherwise set the clock right, or set \"snowflake.node_id\" to another number or "
			"to \"auto\" and restart the server. snowflake_set_reserved_until() does not help here.";
	return "This passes when the clock gets there. Otherwise set the clock right, or set \"snowflake.node_id\" to another number or "
		"to \"auto\" and restart the server. If a wrong clock has moved the registry's time ahead and no id was made there, "
		"the registry's owner can set it back with snowflake_registry_repair(). snowflake_set_reserved_until() does not help here.";
}

[[noreturn]] void
report_behind(const Taken &taken)
{
	int64		newest = generator->newest_id();
	int64		newest_tick = newest < 0 ? -1 : take_apart(*generator_layout, newest).tick;
	bool		after_newest = newest >= 0 && taken.tick <= newest_tick + 1;
	bool		granted_before = has_registry() && !after_newest &&
		current_grant().grant.start_us > tick_begin_us(*generator_layout, taken.tick - 1);
	/* A wait of at most a tick is refused only where the call has waited before. */
	bool		others_were_faster = taken.excess_ns <= generator_layout->tick_us * ns_per_us;
	int64		reached_us = tick_begin_us(*generator_layout, after_newest ? newest_tick : taken.tick);
	int64		now_us = taken.now_ns / ns_per_us;
	TimeText	now = time_text(now_us);
	TimeText	reached = time_text(reached_us);
	TimeText	behind = interval_text(reached_us - now_us);
	TimeText	wait = interval_text(taken.excess_ns / ns_per_us);

	ereport(ERROR,
			(errcode(sqlstate_clock),
			 errmsg("clock is behind the snowflake ids"),
			 others_were_faster ?
			 errdetail("The clock reads %s; all ids up to the tick of %s are taken, and other calls took those that this one had waited for. "
					   "It would have to wait for %s more; \"snowflake.max_wait\" is %d ms and \"snowflake.max_drift\" is %d ms.",
					   now.text, reached.text, wait.text, max_wait_setting(), max_drift_setting()) :
			 after_newest ?
			 errdetail("The clock is %s behind: it reads %s, and the newest id has the time %s. An id would have to wait for %s; "
					   "\"snowflake.max_wait\" is %d ms and \"snowflake.max_drift\" is %d ms.",
					   behind.text, now.text, reached.text, wait.text, max_wait_setting(), max_drift_setting()) :
			 granted_before ?
			 errdetail("The clock is %s behind: it reads %s, and the registry granted the time up to %s before, to this server or to an "
					   "earlier holder of its node number. An id would have to wait for %s; "
					   "\"snowflake.max_wait\" is %d ms and \"snowflake.max_drift\" is %d ms.",
					   behind.text, now.text, reached.text, wait.text, max_wait_setting(), max_drift_setting()) :
			 errdetail("The clock is %s behind: it reads %s, and this server reserved the time up to %s, before its last start or by "
					   "snowflake_advance_past() or snowflake_set_reserved_until(). An id would have to wait for %s; "
					   "\"snowflake.max_wait\" is %d ms and \"snowflake.max_drift\" is %d ms.",
					   behind.text, now.text, reached.text, wait.text, max_wait_setting(), max_drift_setting()),
			 others_were_faster ?
			 errhint("Try again; a larger \"snowflake.max_wait\" waits longer, "
					 "a larger \"snowflake.max_drift\" lets ids run further ahead of the clock.") :
			 after_newest ?
			 errhint("Set the clock right and try again; a larger \"snowflake.max_wait\" waits longer, "
					 "a larger \"snowflake.max_drift\" lets ids run further ahead of the clock. "
					 "If a wrong clock has moved the ids ahead, give the server another node number, restart it, and see snowflake_set_reserved_until().") :
			 granted_before ? errhint("%s", granted_before_hint()) :
			 errhint("Shortly after a start this passes by itself, and a larger \"snowflake.max_wait\" waits for it. "
					 "Otherwise set the clock right; if a wrong clock has moved the reserved time ahead, see snowflake_set_reserved_until().")));
}

[[noreturn]] void
report(const Taken &taken)
{
	const Layout &layout = server_layout();
	int64		now_us = taken.now_ns / ns_per_us;

	count_error();
	switch (taken.failure)
	{
		case Failure::behind:
			report_behind(taken);
		case Failure::standstill:
			ereport(ERROR,
					(errcode(sqlstate_clock),
					 errmsg("clock stands still"),
					 errdetail("The clock reads %s; while the call waited for %s on CLOCK_BOOTTIME it has not gone on enough "
							   "for the next id. \"snowflake.max_wait\" is %d ms.",
							   time_text(now_us).text, interval_text(taken.excess_ns / ns_per_us).text, max_wait_setting()),
					 errhint("Set the clock right and try again.")));
		case Failure::forward_jump:
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("clock jumped forward and is not believed"),
					 errdetail("The clock reads %s; since the last reservation it has moved %s forward against CLOCK_BOOTTIME. "
							   "\"snowflake.max_forward_jump\" allows %d s.",
							   time_text(now_us).text, interval_text(taken.excess_ns / ns_per_us).text, max_forward_jump_setting()),
					 errhint("Set the clock right; or, if it is right now, call snowflake_accept_clock().")));
		case Failure::epoch_ahead:
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("cannot make ids before the epoch of the snowflake layout"),
					 errdetail("The clock reads %s; the epoch is %s.", time_text(now_us).text, time_text(layout.epoch_us).text),
					 errhint("Set \"snowflake.layout\" to one with an epoch in the past, or set the clock right.")));
		case Failure::exhausted:
			ereport(ERROR,
					(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
					 errmsg("snowflake layout has no time left"),
					 errdetail("Its time ends at %s; the clock reads %s; the next id would have the time %s.",
							   time_text(ends_at_us(layout)).text, time_text(now_us).text,
							   time_text(tick_begin_us(layout, taken.tick)).text),
					 errhint("Set \"snowflake.layout\" to one with a later epoch or more timestamp bits; or, if the clock was wrong, "
							 "set it right, and see snowflake_set_reserved_until().")));
		case Failure::issued_above:
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("cannot set the reserved time below ids that were issued"),
					 errdetail("Since its start this server has issued ids up to %s under its node number.",
							   time_text(tick_begin_us(layout, taken.tick)).text),
					 errhint("Set \"snowflake.node_id\" to a number that has issued no id above the new time, restart the server, "
							 "and then call snowflake_set_reserved_until() again.")));
		case Failure::ungranted:
			report_ungranted(now_us);
		case Failure::past_grant:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("id lies beyond what the registry has granted"),
					 errdetail("Its time in the server's layout is %s; the registry \"%s\" has granted time up to %s.",
							   time_text(tick_begin_us(layout, taken.tick)).text, registry_address().shown,
							   time_text(current_grant().grant.granted_until_us).text),
					 errhint("Try again when the clock is nearer to the id's time; the registry grants about "
							 "\"snowflake.claim_window\" ahead of the clock.")));
		case Failure::none:
			break;
	}
	pg_unreachable();
}

/* One year before the layout's time ends, and daily from then on. */
void
warn_of_end(int64 now_us)
{
	Atomic64   &pause = shared()->next_end_warning_us;
	uint64_t	next = pause.load(std::memory_order_relaxed);

	if (!ends_within_a_year(*generator_layout, now_us) || now_us < static_cast<int64>(next))
		return;
	if (pause.compare_exchange_strong(next, static_cast<uint64_t>(now_us + end_warning_pause_us)))
		report_end(LOG_SERVER_ONLY, *generator_layout);
}

/* snowflake.clock = monotonic: what is added to CLOCK_BOOTTIME. */
int64
clock_anchor_ns()
{
	return static_cast<int64>(shared()->clock_anchor_ns.load(std::memory_order_relaxed));
}

int64
take_one()
{
	Taken		taken = server_generator().take(1);

	if (unlikely(taken.failure != Failure::none))
		report(taken);
	count(counters->ids, 1);

	remember_id(taken.id, ++last_turn);
	return taken.id;
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

/*
 * Server
 */

int64_t
Server::now_ns() noexcept
{
	read_at_ = cycles();
	read_ns_ = clock_source() == ClockSource::realtime ? wall_clock_ns() : boot_clock_from(clock_anchor_ns());
	return read_ns_;
}

int64_t
Server::recent_ns() noexcept
{
	uint64_t	now = cycles();

	return now == 0 || now - read_at_ >= recent_cycles ? now_ns() : read_ns_;
}

/*
 * The generator looks at the clock so on each way on which it goes round again
 * without issuing anything: that is where a call can be cancelled.
 */
ClockReading
Server::read_clock() noexcept
{
	CHECK_FOR_INTERRUPTS();
	if (clock_source() == ClockSource::realtime)
		return read_wall_clock();
	return {boot_clock_from(clock_anchor_ns()), clock_anchor_ns()};
}

void
Server::lock() noexcept
{
	lock_shared();
}

void
Server::unlock() noexcept
{
	unlock_shared();
}

/* An error where the layout is for reading only: a limit could not say in which one it was made. */
void
Server::check_makes_ids() noexcept
{
	Reason		reason;

	if (is_for_reading_only(server_layout(), &reason))
	{
		count_error();
		report_for_reading_only(reason);
	}
}

bool
Server::claim_source(ClaimSource *source) noexcept
{
	const ServerNode &node = server_node();

	if (RecoveryInProgress())
	{
		count_error();
		PreventCommandDuringRecovery("snowflake_nextval()");
	}
	check_makes_ids();
	if (!node.usable)
	{
		count_error();
		if (server_node_id().source == NodeSource::unset)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("cannot make ids without a node number"),
					 errdetail("The setting \"snowflake.node_id\" is empty."),
					 errhint("Give every server a number of its own, from 0 to %lld: "
							 "ALTER SYSTEM SET snowflake.node_id = '%d'; then restart the server.",
							 static_cast<long long>(server_layout().max_node()), server_layout().node_bits > 0 ? 1 : 0)));
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot make ids with the setting of \"snowflake.node_id\""),
				 errdetail("It is \"%s\". %s", node_id_setting(), node.reason.text),
				 errhint("Change \"snowflake.node_id\" or \"snowflake.layout\" and restart the server.")));
	}
	if (!has_registry())
		*source = {node.number, read_limit()};
	else if (!read_grant(source))
		return false;

	int64_t		start_us;

	if (!find_layout_start(now_ns() / ns_per_us, &start_us))
	{
		count_error();
		report_layout_change();
	}
	source->granted_from_us = std::max(source->granted_from_us, start_us);
	return true;
}

void
Server::prepare_limit() noexcept
{
	int64		now_us = now_ns() / ns_per_us;

	check_makes_ids();
	check_limit_writable();
	if (!record_layout(now_us))
	{
		count_error();
		report_layout_change();
	}
	warn_of_end(now_us);
	if (has_registry())
		ask_for_time_after(position_us(now_us));
}

void
Server::advance_limit(int64_t limit_us) noexcept
{
	log_position_ = log_limit(limit_us, false);
}

void
Server::flush_limit() noexcept
{
	flush_log(log_position_);
}

void
Server::set_limit(int64_t limit_us) noexcept
{
	log_position_ = log_limit(limit_us, true);
}

int64_t
Server::wait(int64_t ns, bool first) noexcept
{
	static uint32 event = 0;
	int64_t		start = boot_clock_ns();

	if (event == 0)
		event = wait_event("SnowflakeClock");
	if (ns >= shortest_latch_wait_ns)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ns / ns_per_ms - 1, event);
		ResetLatch(MyLatch);
	}
	else
	{
		timespec	time = {0, static_cast<long>(ns)};

		pgstat_report_wait_start(event);
		nanosleep(&time, nullptr);
		pgstat_report_wait_end();
		if (IsUnderPostmaster && !PostmasterIsAlive())
			proc_exit(1);
	}

	int64_t		waited = count_wait(start, first);

	CHECK_FOR_INTERRUPTS();
	return waited;
}

int64_t
Server::wait_for_grant(int64_t us, int64_t ns, bool first) noexcept
{
	int64_t		start = boot_clock_ns();

	return wait_for_keeper(std::max(us, position_us(now_ns() / ns_per_us)), ns) ? count_wait(start, first) : 0;
}

void
Server::clock_ahead(int64_t now_ns, int64_t durable_us) noexcept
{
	int64		now_us = now_ns / ns_per_us;

	/* A registry has compared it with its own. */
	if (clock_source() != ClockSource::realtime || has_registry())
		return;
	ereport(WARNING,
			(errmsg("clock is far past the time that this server's snowflake ids had reached"),
			 errdetail("The clock reads %s; the time reserved last ended at %s, %s before. "
					   "At server start there is nothing else to compare the clock with, so it is believed.",
					   time_text(now_us).text, time_text(durable_us).text, interval_text(now_us - durable_us).text),
			 errhint("Nothing to do if the server made no ids in the meantime. "
					 "If the clock is wrong, set it right now, and see snowflake_set_reserved_until().")));
}

ServerGenerator &
server_generator()
{
	if (unlikely(generator == nullptr || generator_options_changed))
		prepare_generator();
	return *generator;
}

int64_t
position_us(int64_t now_us)
{
	int64		newest = server_generator().newest_id();

	if (newest < 0)
		return now_us;
	return std::max(now_us, tick_begin_us(*generator_layout, take_apart(*generator_layout, newest).tick + 1));
}

bool
is_for_reading_only(const Layout &layout, Reason *reason)
{
	if (layout.fields[0].kind != FieldKind::timestamp)
		return !reason->refuse("Its first field is not the timestamp, so ids would not sort by time.");

	/* The durable limit must say which ids were made. */
	if (!has_scale_tick(layout))
		return !reason->refuse("Its tick cannot be kept with the durable limit. Ticks of 1 to %d us, ms or s can be used.",
							   static_cast<int>(scale_mask(scale_count_bits)));
	if (!has_scale_epoch(layout))
		return !reason->refuse("Its epoch cannot be kept with the durable limit. Epochs before the year 2248 can be used.");
	return false;
}

void
report_for_reading_only(const Reason &reason)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot make ids with the setting of \"snowflake.layout\""),
			 errdetail("It is \"%s\". %s", layout_setting(), reason.text),
			 errhint("Set \"snowflake.layout\" to another one and restart the server.")));
}

}  // namespace snowflake

using namespace snowflake;

extern "C"
{

/* snowflake_nextval() bigint: a new id. */
PG_FUNCTION_INFO_V1(snowflake_nextval);
Datum
snowflake_nextval(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(take_one());
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
		Taken		taken = server_generator().take(batch->wanted);

		if (taken.failure != Failure::none)
			report(taken);
		count(counters->ids, static_cast<uint64_t>(taken.count));
		batch->wanted -= taken.count;
		batch->taken = taken.count;
		batch->next_id = taken.id;
		batch->turn = ++last_turn;
	}

	int64		id = batch->next_id;

	batch->next_id = next_in_tick(*generator_layout, id);
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
	ServerGenerator &target = server_generator();
	int64		tick;
	int64		begin_us;
	int64		now_us = server.now_ns() / ns_per_us;

	PreventCommandDuringRecovery("snowflake_advance_past()");
	check_id(layout, id);
	tick = take_apart(layout, id).tick;
	begin_us = tick_begin_us(layout, tick);
	if (begin_us > now_us && begin_us - now_us > furthest_advance_us)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("id lies more than a day ahead of the clock"),
				 errdetail("The time of %lld in the server's layout is %s; the clock reads %s.",
						   static_cast<long long>(id), time_text(begin_us).text, time_text(now_us).text),
				 errhint("Check that the id was made with the layout \"%s\", and that the clock is right.", layout_setting())));

	Taken		taken = target.advance_past(tick);

	if (taken.failure != Failure::none)
		report(taken);
	PG_RETURN_VOID();
}

/*
 * snowflake_set_reserved_until(ts timestamptz): moves the durable limit, also back; the
 * time from the layout's epoch to its end.  Superusers only.
 */
PG_FUNCTION_INFO_V1(snowflake_set_reserved_until);
Datum
snowflake_set_reserved_until(PG_FUNCTION_ARGS)
{
	TimestampTz ts = PG_GETARG_TIMESTAMPTZ(0);
	const Layout &layout = server_layout();
	ServerGenerator &target = server_generator();

	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be superuser to set the reserved time of snowflake ids")));
	PreventCommandDuringRecovery("snowflake_set_reserved_until()");

	int64		limit_us = unix_time_in(layout, ts);
	Taken		taken = target.set_reserved_until(limit_us);

	if (taken.failure != Failure::none)
		report(taken);
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
	ServerGenerator &target = server_generator();
	int64		offset = read_wall_clock().offset_ns;

	target.accept_clock(offset);
	if (clock_source() == ClockSource::monotonic)
		shared()->clock_anchor_ns.store(static_cast<uint64_t>(offset), std::memory_order_relaxed);
	PG_RETURN_VOID();
}

}
