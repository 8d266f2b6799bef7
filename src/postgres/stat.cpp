/*
 * stat.cpp
 *		The view snowflake_stat: this server's node number, claim, newest id and limit, why
 *		the next call would be refused, and counters; snowflake_stat_reset().
 */
#include <algorithm>

#include "postgres/carried.h"
#include "postgres/environment.h"
#include "postgres/grant.h"
#include "postgres/layout.h"
#include "postgres/layout_change.h"
#include "postgres/node.h"
#include "postgres/reservation.h"
#include "postgres/settings.h"
#include "postgres/time.h"

#include "postgres/pg.h"
#include "postgres/row.h"

namespace snowflake
{

namespace
{

Counters
sum_counters(const Shared &state)
{
	Counters	sum = {};

	for (int i = 0; i < state.backend_count; i++)
	{
		const BackendCounters &backend = state.backends[i];

		sum.ids += backend.ids.load(std::memory_order_relaxed);
		sum.waits += backend.waits.load(std::memory_order_relaxed);
		sum.wait_ns += backend.wait_ns.load(std::memory_order_relaxed);
		sum.errors += backend.errors.load(std::memory_order_relaxed);
	}
	return sum;
}

/*
 * Why the next call would be refused, whatever the registry grants; null where it
 * would not, and on a standby, which is to make no ids.
 */
const char *
refusal(ServerGenerator &generator, int64 granted_from_us, int64 now_us)
{
	int64_t		start_us;
	bool		is_free;
	Reason		reason;

	if (RecoveryInProgress())
		return nullptr;
	if (is_for_reading_only(server_layout(), &reason))
		return "layout for reading only";
	if (!server_node().usable)
		return "no node number";
	if (!is_limit_writable())
		return "no replication origin";

	lock_shared_state();
	is_free = find_layout_start(now_us, &start_us);
	unlock_shared_state();
	if (!is_free)
		return "another layout";
	if (const char *carried = carried_refusal())
		return carried;

	switch (generator.clock_failure(std::max(start_us, granted_from_us)))
	{
		case Failure::behind:
			return "clock behind";
		case Failure::forward_jump:
			return "clock jumped forward";
		case Failure::epoch_ahead:
			return "before the epoch";
		case Failure::exhausted:
			return "past the layout";
		case Failure::none:
		case Failure::standstill:
		case Failure::issued_above:
		case Failure::ungranted:
		case Failure::past_grant:
		case Failure::over_rate:
			break;
	}
	return nullptr;
}

/* The claim's state.  One that begins so far ahead that no call would wait for it gives no ids: it is not held. */
ClaimState
shown_state(const RegistryGrant &grant, bool is_ahead, int64 now_us)
{
	const ClaimState state = claim_state(grant, now_us);

	return state == ClaimState::held && is_ahead ? ClaimState::suspended : state;
}

/* node_id, node_source, claim, claim_since, granted_until, problem */
void
add_claim(const RegistryGrant &grant, bool is_held, bool is_ahead, int64 now_us, Row *row)
{
	const ServerNode &node = server_node();
	bool		is_granted = grant.state != ClaimState::none;

	/* With a registry the number is the one that it has granted last, or the fixed one that it is asked for. */
	row->add_int(is_granted ? grant.grant.node : node.number,
				 !node.usable || (!is_granted && server_node_id().source == NodeSource::automatic));
	row->add_text(node_source_name());
	if (has_registry())
	{
		char		problem[sizeof(grant.problem)];

		strlcpy(problem, grant.problem, sizeof(problem));
		if (problem[0] == '\0' && is_ahead)
			snprintf(problem, sizeof(problem), "it grants no time before %s, which lies ahead of the clock",
					 time_text(grant.grant.start_us).text);
		row->add_text(claim_state_name(shown_state(grant, is_ahead, now_us)));
		row->add(TimestampTzGetDatum(timestamptz_of(claim_since(grant, now_us))));
		row->add(TimestampTzGetDatum(timestamptz_of(grant.grant.granted_until_us)), !is_granted);
		row->add_text(problem[0] != '\0' && may_see_registry() ? problem : nullptr);
		return;
	}
	row->add_text(is_held ? "held" : "none");
	row->add_null();
	row->add_null();
	row->add_null();
}

/* last_id, last_timestamp, drift */
void
add_newest(int64 newest, int64 now_us, Row *row)
{
	const Layout &layout = server_layout();

	if (newest < 0)
	{
		row->add_null();
		row->add_null();
		row->add_null();
		return;
	}

	int64		begin_us = tick_begin_us(layout, take_apart(layout, newest).tick);

	row->add_int(newest);
	row->add(TimestampTzGetDatum(timestamptz_of(begin_us)));
	row->add(interval_datum(begin_us - now_us));
}

/* ids, reservations, clock_rollbacks, max_rollback, forward_jumps, waits, wait_time, longest_wait, errors */
void
add_counters(const Shared &state, const Counters &base, Row *row)
{
	const auto load = [] (const Atomic64 &value) { return value.load(std::memory_order_relaxed); };
	const auto interval = [] (uint64_t ns) { return interval_datum(static_cast<int64>(ns) / ns_per_us); };
	const ClockHistory<Atomic64> &clock = state.generator.clock;
	Counters	sum = sum_counters(state);

	row->add_int(sum.ids - base.ids);
	row->add_int(load(state.generator.reservations));
	row->add_int(load(clock.rollbacks));
	row->add(interval(load(clock.max_rollback_ns)));
	row->add_int(load(clock.forward_jumps));
	row->add_int(sum.waits - base.waits);
	row->add(interval(sum.wait_ns - base.wait_ns));
	row->add(interval(load(state.longest_wait_ns)));
	row->add_int(sum.errors - base.errors);
}

}  // namespace

}  // namespace snowflake

using namespace snowflake;

extern "C"
{

/* snowflake_stat() record: see the view of the same name. */
PG_FUNCTION_INFO_V1(snowflake_stat);
Datum
snowflake_stat(PG_FUNCTION_ARGS)
{
	ServerGenerator &generator = server_generator();
	const Layout &layout = server_layout();
	Shared	   &state = *shared();
	int64		newest = generator.newest_id();
	bool		is_held = state.generator.word.load(std::memory_order_acquire) & held;
	int64		reserved_us = is_held ?
		tick_begin_us(layout, generator.reserved_tick()) : read_limit();
	int64		now_us = server_clock.now_us();
	RegistryGrant grant = current_grant();
	bool		is_ahead = has_registry() && !RecoveryInProgress() && grant.grant.start_us > now_us &&
		generator.clock_failure(grant.grant.start_us) == Failure::behind;
	Row			row;

	add_claim(grant, is_held, is_ahead, now_us, &row);
	row.add_text(refusal(generator, grant.grant.start_us, now_us));
	row.add_text(layout_text(layout).text);
	add_newest(newest, now_us, &row);
	row.add(TimestampTzGetDatum(timestamptz_of(reserved_us)), reserved_us == 0);
	row.add(interval_datum(reserved_us - now_us), reserved_us == 0);

	lock_shared_state();
	Counters	base = state.reset_counters;
	int64		reset_at = state.reset_at;
	unlock_shared_state();

	add_counters(state, base, &row);
	row.add(TimestampTzGetDatum(timestamptz_of(ends_at_us(layout))));
	row.add(TimestampTzGetDatum(reset_at));
	PG_RETURN_DATUM(row.result(fcinfo));
}

/* snowflake_stat_reset(): zeroes the counters. */
PG_FUNCTION_INFO_V1(snowflake_stat_reset);
Datum
snowflake_stat_reset(PG_FUNCTION_ARGS)
{
	(void) server_generator();	/* an error where there is none */

	Shared	   &state = *shared();

	lock_shared_state();
	state.reset_counters = sum_counters(state);
	state.reset_at = GetCurrentTimestamp();
	for (Atomic64 *counter : {&state.longest_wait_ns, &state.generator.reservations, &state.generator.clock.rollbacks,
							  &state.generator.clock.max_rollback_ns, &state.generator.clock.forward_jumps})
		counter->store(0, std::memory_order_relaxed);
	unlock_shared_state();
	PG_RETURN_VOID();
}

}
