/*
 * clock.h
 *		The clocks: the wall clock, which may be set, and CLOCK_BOOTTIME, which
 *		only runs.  Nanoseconds.
 */
#ifndef SNOWFLAKE_POSTGRES_CLOCK_H
#define SNOWFLAKE_POSTGRES_CLOCK_H

#include <time.h>

#include <cstdint>

#include "core/generator.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/* A clock beyond what 64 bits hold (the year 2262) stands still there. */
inline int64_t
read_ns(clockid_t clock) noexcept
{
	constexpr int64_t ns_per_s = 1000 * 1000 * 1000;
	timespec	now;

	clock_gettime(clock, &now);
	return now.tv_sec >= INT64_MAX / ns_per_s ? INT64_MAX : now.tv_sec * ns_per_s + now.tv_nsec;
}

inline int64_t
wall_clock_ns() noexcept
{
	return read_ns(CLOCK_REALTIME);
}

inline int64_t
boot_clock_ns() noexcept
{
	return read_ns(CLOCK_BOOTTIME);
}

/* CLOCK_BOOTTIME with an offset: a clock that nobody sets.  It too stands still in 2262. */
inline int64_t
boot_clock_from(int64_t offset_ns) noexcept
{
	int64_t		now;

	return __builtin_add_overflow(boot_clock_ns(), offset_ns, &now) ? INT64_MAX : now;
}

/*
 * Counts something that only runs, at 1 GHz or more, and costs less to read than
 * a clock; 0 always where there is nothing like that.
 */
inline uint64_t
cycles() noexcept
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

/* A reading of the clock counts as recent for so many cycles: 5 us or less. */
constexpr uint64_t recent_cycles = 5000;

/*
 * The wall clock, and what it is ahead of CLOCK_BOOTTIME: constant, except where
 * the wall clock is set.  A process that loses the processor between the two
 * readings would see a difference that is not there, so the closest of a few
 * pairs counts.
 */
inline ClockReading
read_wall_clock() noexcept
{
	constexpr int64_t close_enough_ns = 20 * 1000;
	ClockReading result{};
	int64_t		closest = INT64_MAX;

	for (int tries = 0; tries < 5 && closest > close_enough_ns; tries++)
	{
		int64_t		before = boot_clock_ns();
		int64_t		wall = wall_clock_ns();
		int64_t		between = boot_clock_ns() - before;

		if (between < closest)
		{
			closest = between;
			result = {wall, wall - before};
		}
	}
	return result;
}

}  // namespace snowflake

#endif
