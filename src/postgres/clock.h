/*
 * clock.h
 *		The clocks: the wall clock, which may be set, and CLOCK_BOOTTIME, which
 *		only runs; and the one that this server's ids are made by.  Nanoseconds.
 */
#ifndef SNOWFLAKE_POSTGRES_CLOCK_H
#define SNOWFLAKE_POSTGRES_CLOCK_H

#include <time.h>

#include <algorithm>
#include <cstdint>

#include "core/environment.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/* A clock beyond what 64 bits hold (the year 2262) stands still there. */
inline int64_t
read_ns(clockid_t clock) noexcept
{
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

/* How long it is until a moment of CLOCK_BOOTTIME: milliseconds, 0 where it has come. */
inline long
ms_until(int64_t boot_ns) noexcept
{
	return static_cast<long>(std::max<int64_t>((boot_ns - boot_clock_ns()) / ns_per_ms, 0));
}

/*
 * The wall clock, and what it is ahead of CLOCK_BOOTTIME: constant, except where
 * the wall clock is set.  A process that loses the processor between the two
 * readings would see a difference that is not there, so the closest of a few
 * pairs counts.
 */
ClockReading read_wall_clock() noexcept;

/*
 * This process's view of the clock that ids are made by, as snowflake.clock says:
 * the wall clock, or CLOCK_BOOTTIME from where the wall clock was when the server
 * started.  Needs the library to be preloaded.
 */
class Clock
{
public:
	/* Unix nanoseconds. */
	int64_t		now_ns() noexcept;

	int64_t		now_us() noexcept
	{
		return now_ns() / ns_per_us;
	}

	/* The last reading again where that is 5 us old or less. */
	int64_t		recent_ns() noexcept
	{
		uint64_t	now = cycles();

		return !has_cycles || now - read_at_ >= recent_cycles ? now_ns() : read_ns_;
	}

	/* The clock, and what it is ahead of CLOCK_BOOTTIME. */
	ClockReading read() const noexcept;

	/* Believes the wall clock as it is now, for the whole server; returns its offset. */
	int64_t		accept() noexcept;

private:
	static constexpr uint64_t recent_cycles = 5000;

	/*
	 * Counts something that only runs, at 1 GHz or more, and costs less to read than
	 * a clock, where there is something like that.
	 */
#ifdef __x86_64__
	static constexpr bool has_cycles = true;
	static uint64_t cycles() noexcept
	{
		return __builtin_ia32_rdtsc();
	}
#else
	static constexpr bool has_cycles = false;
	static uint64_t cycles() noexcept
	{
		return 0;
	}
#endif

	/* The last reading, and the cycles() at which it was read */
	int64_t		read_ns_ = 0;
	uint64_t	read_at_ = 0;
};

extern Clock server_clock;

}  // namespace snowflake

#endif
