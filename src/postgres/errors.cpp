/*
 * errors.cpp
 *		Reports why a call could not make an id: what is wrong, what was found, what to do.
 *
 * Other errors are where they are found: while a registry grants nothing, in grant.cpp;
 * another layout than before, layout_change.cpp; a limit that can't be written,
 * reservation.cpp; a database that came from another server, carried.cpp.
 */
#include "postgres/errors.h"

#include "postgres/environment.h"
#include "postgres/grant.h"
#include "postgres/node.h"
#include "postgres/registry_kind.h"
#include "postgres/settings.h"
#include "postgres/time.h"

#include "postgres/pg.h"

#include "postgres/sqlstate.h"

namespace snowflake
{

namespace
{

/* The numbers of an error that says that the clock is behind. */
struct Behind
{
	TimeText	now;			/* the clock */
	TimeText	reached;		/* what it is behind of */
	TimeText	by;
	TimeText	wait;			/* until there would be an id */
};

Behind
behind_of(const Taken &taken, int64_t reached_tick)
{
	int64		now_us = taken.now_ns / ns_per_us;
	int64		reached_us = tick_begin_us(server_layout(), reached_tick);

	return {time_text(now_us), time_text(reached_us), interval_text(reached_us - now_us),
			interval_text(taken.excess_ns / ns_per_us)};
}

/* Others took what the call had waited for. */
[[noreturn]] void
report_others_were_faster(const Behind &behind)
{
	ereport(ERROR,
			(errcode(sqlstate_clock),
			 errmsg("clock is behind the snowflake ids"),
			 errdetail("The clock reads %s; all ids up to the tick of %s are taken, "
					   "and other calls took those that this one had waited for. It would have to wait for %s more; "
					   "\"snowflake.max_wait\" is %d ms and \"snowflake.max_drift\" is %d ms.",
					   behind.now.text, behind.reached.text, behind.wait.text, max_wait_setting(), max_drift_setting()),
			 errhint("Try again; a larger \"snowflake.max_wait\" waits longer, "
					 "a larger \"snowflake.max_drift\" lets ids run further ahead of the clock.")));
}

/* Ids of this server lie ahead of the clock. */
[[noreturn]] void
report_behind_newest(const Behind &behind)
{
	ereport(ERROR,
			(errcode(sqlstate_clock),
			 errmsg("clock is behind the snowflake ids"),
			 errdetail("The clock is %s behind: it reads %s, and the newest id has the time %s. "
					   "An id would have to wait for %s; "
					   "\"snowflake.max_wait\" is %d ms and \"snowflake.max_drift\" is %d ms.",
					   behind.by.text, behind.now.text, behind.reached.text, behind.wait.text,
					   max_wait_setting(), max_drift_setting()),
			 errhint("Set the clock right and try again; a larger \"snowflake.max_wait\" waits longer, "
					 "a larger \"snowflake.max_drift\" lets ids run further ahead of the clock. "
					 "If a wrong clock has moved the ids ahead, give the server another node number, restart it, "
					 "and see snowflake_set_reserved_until().")));
}

/* The registry had granted the time up to the next id before, to this holder or to another. */
[[noreturn]] void
report_behind_grant(const Behind &behind)
{
	ereport(ERROR,
			(errcode(sqlstate_clock),
			 errmsg("clock is behind the snowflake ids"),
			 errdetail("The clock is %s behind: it reads %s, and the registry granted the time up to %s before, "
					   "to this server or to an earlier holder of its node number. An id would have to wait for %s; "
					   "\"snowflake.max_wait\" is %d ms and \"snowflake.max_drift\" is %d ms.",
					   behind.by.text, behind.now.text, behind.reached.text, behind.wait.text,
					   max_wait_setting(), max_drift_setting()),
			 errhint("This passes when the clock gets there. Otherwise set the clock right, "
					 "or set \"snowflake.node_id\" to another number or to \"auto\" and restart the server. "
					 "%ssnowflake_set_reserved_until() does not help here.",
					 facts_of(registry_address().kind).setting_back)));
}

/* This server had reserved the time. */
[[noreturn]] void
report_behind_reserved(const Behind &behind)
{
	ereport(ERROR,
			(errcode(sqlstate_clock),
			 errmsg("clock is behind the snowflake ids"),
			 errdetail("The clock is %s behind: it reads %s, and this server reserved the time up to %s, "
					   "before its last start or by snowflake_advance_past() or snowflake_set_reserved_until(). "
					   "An id would have to wait for %s; "
					   "\"snowflake.max_wait\" is %d ms and \"snowflake.max_drift\" is %d ms.",
					   behind.by.text, behind.now.text, behind.reached.text, behind.wait.text,
					   max_wait_setting(), max_drift_setting()),
			 errhint("Shortly after a start this passes by itself, and a larger \"snowflake.max_wait\" waits for it. "
					 "Otherwise set the clock right; if a wrong clock has moved the reserved time ahead, "
					 "see snowflake_set_reserved_until().")));
}

[[noreturn]] void
report_behind(const Taken &taken)
{
	const Layout &layout = server_layout();
	int64		newest = newest_tick();
	bool		is_after_newest = newest >= 0 && taken.tick <= newest + 1;
	Behind		behind = behind_of(taken, is_after_newest ? newest : taken.tick);

	/* A wait of at most a tick is refused only where the call has waited before. */
	if (taken.excess_ns <= layout.tick_us * ns_per_us)
		report_others_were_faster(behind);
	if (is_after_newest)
		report_behind_newest(behind);
	if (has_registry() && current_grant().grant.start_us > tick_begin_us(layout, taken.tick - 1))
		report_behind_grant(behind);
	report_behind_reserved(behind);
}

[[noreturn]] void
report_standstill(const Taken &taken)
{
	ereport(ERROR,
			(errcode(sqlstate_clock),
			 errmsg("clock stands still"),
			 errdetail("The clock reads %s; while the call waited for %s on CLOCK_BOOTTIME it has not gone on enough "
					   "for the next id. \"snowflake.max_wait\" is %d ms.",
					   time_text(taken.now_ns / ns_per_us).text, interval_text(taken.excess_ns / ns_per_us).text,
					   max_wait_setting()),
			 errhint("Set the clock right and try again.")));
}

[[noreturn]] void
report_over_rate(const Taken &taken)
{
	ereport(ERROR,
			(errcode(sqlstate_rate),
			 errmsg("session takes snowflake ids faster than it may"),
			 errdetail("\"snowflake.max_session_rate\" is %d ids a second, and the session would have to wait for %s; "
					   "\"snowflake.max_wait\" is %d ms.",
					   max_session_rate_setting(), interval_text(taken.excess_ns / ns_per_us).text, max_wait_setting()),
			 errhint("Try again; a larger \"snowflake.max_wait\" waits longer. "
					 "A superuser can change \"snowflake.max_session_rate\" for a role or a database.")));
}

[[noreturn]] void
report_forward_jump(const Taken &taken)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("clock jumped forward and is not believed"),
			 errdetail("The clock reads %s; since the last reservation it has moved %s forward against CLOCK_BOOTTIME. "
					   "\"snowflake.max_forward_jump\" allows %d s.",
					   time_text(taken.now_ns / ns_per_us).text, interval_text(taken.excess_ns / ns_per_us).text,
					   max_forward_jump_setting()),
			 errhint("Set the clock right; or, if it is right now, call snowflake_accept_clock().")));
}

[[noreturn]] void
report_epoch_ahead(const Taken &taken)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot make ids before the epoch of the snowflake layout"),
			 errdetail("The clock reads %s; the epoch is %s.",
					   time_text(taken.now_ns / ns_per_us).text, time_text(server_layout().epoch_us).text),
			 errhint("Set \"snowflake.layout\" to one with an epoch in the past, or set the clock right.")));
}

[[noreturn]] void
report_exhausted(const Taken &taken)
{
	const Layout &layout = server_layout();

	ereport(ERROR,
			(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
			 errmsg("snowflake layout has no time left"),
			 errdetail("Its time ends at %s; the clock reads %s; the next id would have the time %s.",
					   time_text(ends_at_us(layout)).text, time_text(taken.now_ns / ns_per_us).text,
					   time_text(tick_begin_us(layout, taken.tick)).text),
			 errhint("Set \"snowflake.layout\" to one with a later epoch or more timestamp bits; "
					 "or, if the clock was wrong, set it right, and see snowflake_set_reserved_until().")));
}

[[noreturn]] void
report_issued_above(const Taken &taken)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot set the reserved time below ids that were issued"),
			 errdetail("Since its start this server has issued ids up to %s under its node number.",
					   time_text(tick_begin_us(server_layout(), taken.tick)).text),
			 errhint("Set \"snowflake.node_id\" to a number that has issued no id above the new time, "
					 "restart the server, and then call snowflake_set_reserved_until() again.")));
}

[[noreturn]] void
report_past_grant(const Taken &taken)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("id lies beyond what the registry has granted"),
			 errdetail("Its time in the server's layout is %s; the registry has granted time up to %s.",
					   time_text(tick_begin_us(server_layout(), taken.tick)).text,
					   time_text(current_grant().grant.granted_until_us).text),
			 errhint("Try again when the clock is nearer to the id's time; the registry grants about "
					 "\"snowflake.claim_window\" ahead of the clock.")));
}

}  // namespace

void
count_error()
{
	count(own_counters->errors, 1);
}

void
report_failure(const Taken &taken)
{
	count_error();
	switch (taken.failure)
	{
		case Failure::behind:
			report_behind(taken);
		case Failure::standstill:
			report_standstill(taken);
		case Failure::forward_jump:
			report_forward_jump(taken);
		case Failure::epoch_ahead:
			report_epoch_ahead(taken);
		case Failure::exhausted:
			report_exhausted(taken);
		case Failure::issued_above:
			report_issued_above(taken);
		case Failure::ungranted:
			report_ungranted(taken.now_ns / ns_per_us);
		case Failure::past_grant:
			report_past_grant(taken);
		case Failure::over_rate:
			report_over_rate(taken);
		case Failure::none:
			break;
	}
	pg_unreachable();
}

void
report_not_preloaded()
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("snowflake must be loaded via \"shared_preload_libraries\""),
			 errhint("Add snowflake to \"shared_preload_libraries\" and restart the server; "
					 "decoding ids works without.")));
}

void
report_no_node()
{
	const Layout &layout = server_layout();

	if (server_node_id().source == NodeSource::unset)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot make ids without a node number"),
				 errdetail("The setting \"snowflake.node_id\" is empty."),
				 errhint("Give every server a number of its own, from 0 to %lld: "
						 "ALTER SYSTEM SET snowflake.node_id = '%d'; then restart the server.",
						 static_cast<long long>(layout.max_node()), layout.node_bits > 0 ? 1 : 0)));
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot make ids with the setting of \"snowflake.node_id\""),
			 errdetail("It is \"%s\". %s", node_id_setting(), server_node().reason.text),
			 errhint("Change \"snowflake.node_id\" or \"snowflake.layout\" and restart the server.")));
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

void
warn_of_clock_ahead(int64_t now_us, int64_t durable_us)
{
	ereport(WARNING,
			(errmsg("clock is far past the time that this server's snowflake ids had reached"),
			 errdetail("The clock reads %s; the time reserved last ended at %s, %s before. "
					   "At server start there is nothing else to compare the clock with, so it is believed.",
					   time_text(now_us).text, time_text(durable_us).text, interval_text(now_us - durable_us).text),
			 errhint("Nothing to do if the server made no ids in the meantime. "
					 "If the clock is wrong, set it right now, and see snowflake_set_reserved_until().")));
}

}  // namespace snowflake
