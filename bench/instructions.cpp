/*
 * instructions.cpp
 *		Takes ids from the generator alone, for bench/instructions to count.
 *
 *		instructions PATH COUNT
 *
 * The clock runs on with each reading, so that nothing waits; time is reserved as on
 * a server, every 250 ms of the clock.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/generator.h"

namespace
{

using namespace snowflake;

struct CountedEnvironment
{
	int64_t		step_ns;
	int64_t		clock_ns = 1800000000 * ns_per_s;
	int64_t		limit_us = 0;

	int64_t		now_ns() noexcept
	{
		return clock_ns += step_ns;
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

using CountedGenerator = Generator<Atomic, CountedEnvironment>;

[[gnu::noinline]] int64_t
take(CountedGenerator &generator, int64_t wanted)
{
	/* As snowflake_nextval() does. */
	const int64_t id = wanted == 1 ? generator.take_at_once() : -1;

	if (id >= 0)
		return id;

	Taken		taken = generator.take(wanted);

	if (taken.failure != Failure::none)
		abort();
	return taken.id;
}

/*
 * What no generator of such ids can do without: it reads the clock, compares it with the last id's tick, and swaps the
 * word.  What is counted is given as a multiple of it, since compilers differ.
 */
[[gnu::noinline]] int64_t
take_least(CountedEnvironment &environment)
{
	static Atomic word;
	const uint64_t tick = static_cast<uint64_t>(environment.now_ns() / 1000000 - 1288834974657);
	uint64_t	old = word.load(std::memory_order_relaxed);
	uint64_t	next;

	do
		next = tick > old >> 22 ? tick << 22 | 103 << 12 : old + 1;
	while (!word.compare_exchange_weak(old, next));
	return static_cast<int64_t>(next);
}

/* A way that calls of the generator take, and what leads there. */
struct Path
{
	const char *name;
	int64_t		clock_step_ns;
	int64_t		max_drift_us;
	int64_t		wanted;			/* ids in one call; 0: take_least() */
};

constexpr Path paths[] = {
	{"least", 250, 0, 0},
	{"in_tick", 250, 0, 1},
	{"new_tick", 1100000, 0, 1},
	{"ahead", 1, 3600 * us_per_s, 1},
	{"run", 100000, 0, 100},
};

const Path &
path_named(const char *name)
{
	for (const Path &path : paths)
		if (strcmp(path.name, name) == 0)
			return path;
	fprintf(stderr, "there is no path \"%s\"\n", name);
	exit(2);
}

}  // namespace

int
main(int argc, char **argv)
{
	if (argc != 3)
	{
		fprintf(stderr, "usage: instructions PATH COUNT\n");
		return 2;
	}

	const Path &path = path_named(argv[1]);
	Layout		layout;
	Reason		reason;
	CountedEnvironment environment = {.step_ns = path.clock_step_ns};
	int64_t		last = 0;

	if (!parse_layout("twitter", &layout, &reason))
		abort();
	state.initialize();

	CountedGenerator generator(state, layout, environment, places, 0);

	generator.set_options({.sequence_start = SequenceStart::subtick, .max_drift_us = path.max_drift_us, .max_wait_ns = 2 * ns_per_s,
						   .reserve_ahead_us = us_per_s / 2, .max_forward_jump_ns = 3600 * ns_per_s});
	for (long count = atol(argv[2]); count > 0; count--)
		last = path.wanted == 0 ? take_least(environment) : take(generator, path.wanted);
	printf("%lld\n", static_cast<long long>(last));
	return 0;
}
