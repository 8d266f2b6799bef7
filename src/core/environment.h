/*
 * environment.h
 *		What the generator needs from outside: clocks, a durable limit, a lock.
 *
 * PostgreSQL in the server, threads and simulated machines in the tests.
 */
#ifndef SNOWFLAKE_CORE_ENVIRONMENT_H
#define SNOWFLAKE_CORE_ENVIRONMENT_H

#include <concepts>
#include <cstdint>

#include "core/units.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/* The wall clock, and its offset against CLOCK_BOOTTIME at the same moment. */
struct ClockReading
{
	int64_t		wall_ns;
	int64_t		offset_ns;
};

/* What a claim starts from. */
struct ClaimSource
{
	uint64_t	node;
	int64_t		durable_us;		/* the durable limit, Unix microseconds; 0 where there was none */

	/* What the registry or a change of layout grants, Unix microseconds: from here on, up to there, exclusive. */
	int64_t		granted_from_us = 0;
	int64_t		granted_until_us = INT64_MAX;
};

/*
 * now_ns()				the clock, Unix nanoseconds
 * recent_ns()			the same, but may be the last reading again where that is microseconds old
 * boot_ns()			CLOCK_BOOTTIME
 * read_clock()			the clock and its offset; also notices that the call was cancelled
 * lock(), unlock()		one lock for the server; held for moments only
 * claim_source(source)	what there is to claim; false where the registry grants nothing.  Called under the lock
 * prepare_limit()		checks that the limit can be written; not under the lock
 * advance_limit(us)	starts to make the limit durable, never backwards; under the lock
 * flush_limit()		waits until what advance_limit() or set_limit() started is durable
 * set_limit(us)		starts to set the limit, backwards too; under the lock
 * wait(ns, first)		waits, interruptibly, about so long; returns the time on CLOCK_BOOTTIME, ns;
 *						first: it is the first wait of this call
 * wait_for_pace(ns, first)
 *						the same, for a session that has taken ids as fast as it may
 * wait_for_grant(us, ns, first)
 *						waits as wait() does, about so long at most, until the registry may have granted the time
 *						before us, and that before the clock; 0 where it is not worth waiting for that.  With ns 0
 *						it only asks for that time
 * clock_ahead(now, us)	the clock of the first claim lies further past the durable limit than max_forward_jump
 *
 * Each may leave by longjmp(), which also releases the lock.  One that leaves a
 * call that waited calls Generator::give_up_place() before; else its place in the
 * queue lapses later.
 */
template <typename E>
concept Environment = requires(E e, int64_t ns, ClaimSource *source)
{
	{ e.now_ns() } -> std::same_as<int64_t>;
	{ e.recent_ns() } -> std::same_as<int64_t>;
	{ e.boot_ns() } -> std::same_as<int64_t>;
	{ e.read_clock() } -> std::same_as<ClockReading>;
	e.lock();
	e.unlock();
	{ e.claim_source(source) } -> std::same_as<bool>;
	e.prepare_limit();
	e.advance_limit(ns);
	e.flush_limit();
	e.set_limit(ns);
	{ e.wait(ns, true) } -> std::same_as<int64_t>;
	{ e.wait_for_pace(ns, true) } -> std::same_as<int64_t>;
	{ e.wait_for_grant(ns, ns, true) } -> std::same_as<int64_t>;
	e.clock_ahead(ns, ns);
};

}  // namespace snowflake

#endif
