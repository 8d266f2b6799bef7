/*
 * instructions.cpp
 *		Takes ids from the generator alone, for bench/instructions to count.
 *
 * The clock runs 250 ns for each id, so that nothing waits; time is reserved as on
 * a server, every 250 ms of the clock.
 */
#include <cstdio>
#include <cstdlib>

#include "core/generator.h"

namespace
{

using namespace snowflake;

struct CountedEnvironment
{
	int64_t		clock_ns = 1800000000 * ns_per_s;
	int64_t		limit_us = 0;

	int64_t		now_ns() noexcept
	{
		return clock_ns += 250;
	}
	int64_t		recent_ns() noexcept
	{
		return now_ns();
	}
	int64_t		boot_ns() noexcept
	{
		return clock_ns;
	}
	ClockReading read_clock() noexcept
	{
		return {clock_ns, 0};
	}
	bool		claim_source(ClaimSource *source) noexcept
	{
		*source = {5, limit_us};
		return true;
	}
	void		advance_limit(int64_t us) noexcept
	{
		limit_us = us;
	}
	void		set_limit(int64_t us) noexcept
	{
		limit_us = us;
	}
	int64_t		wait(int64_t, bool) noexcept
	{
		abort();
	}
	int64_t		wait_for_pace(int64_t, bool) noexcept
	{
		abort();
	}
	int64_t		wait_for_grant(int64_t, int64_t, bool) noexcept
	{
		abort();
	}
	void		lock() noexcept
	{
	}
	void		unlock() noexcept
	{
	}
	void		prepare_limit() noexcept
	{
	}
	void		flush_limit() noexcept
	{
	}
	void		clock_ahead(int64_t, int64_t) noexcept
	{
	}
};

using Atomic = std::atomic<uint64_t>;

SharedState<Atomic> state;
Place<Atomic> places[128];

[[gnu::noinline]] int64_t
take_one(Generator<Atomic, CountedEnvironment> &generator)
{
	Taken		taken = generator.take(1);

	if (taken.failure != Failure::none)
		abort();
	return taken.id;
}

}  // namespace

int
main(int, char **argv)
{
	Layout		layout;
	Reason		reason;
	CountedEnvironment environment;
	int64_t		last = 0;

	if (!parse_layout("twitter", &layout, &reason))
		abort();
	state.initialize();

	Generator<Atomic, CountedEnvironment> generator(state, layout, environment, places, 0);

	generator.set_options({.sequence_start = SequenceStart::subtick, .max_drift_us = 0, .max_wait_ns = 2 * ns_per_s,
						   .reserve_ahead_us = us_per_s / 2, .max_forward_jump_ns = 3600 * ns_per_s});
	for (long count = atol(argv[1]); count > 0; count--)
		last = take_one(generator);
	printf("%lld\n", static_cast<long long>(last));
	return 0;
}
