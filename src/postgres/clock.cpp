/*
 * clock.cpp
 *		The clock that this server's ids are made by.
 */
#include "postgres/clock.h"

#include "postgres/settings.h"
#include "postgres/shared.h"

namespace snowflake
{

namespace
{

/* snowflake.clock = monotonic: what is added to CLOCK_BOOTTIME. */
int64_t
anchor_ns() noexcept
{
	return static_cast<int64_t>(shared()->clock_anchor_ns.load(std::memory_order_relaxed));
}

/* A clock that nobody sets.  It too stands still in 2262. */
int64_t
anchored_clock_ns() noexcept
{
	int64_t		now;

	return __builtin_add_overflow(boot_clock_ns(), anchor_ns(), &now) ? INT64_MAX : now;
}

}  // namespace

constinit Clock server_clock;

ClockReading
read_wall_clock() noexcept
{
	constexpr int64_t close_enough_ns = 20 * ns_per_us;
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

int64_t
Clock::now_ns() noexcept
{
	read_at_ = cycles();
	read_ns_ = clock_source() == ClockSource::realtime ? wall_clock_ns() : anchored_clock_ns();
	return read_ns_;
}

ClockReading
Clock::read() const noexcept
{
	if (clock_source() == ClockSource::realtime)
		return read_wall_clock();
	return {anchored_clock_ns(), anchor_ns()};
}

int64_t
Clock::accept() noexcept
{
	int64_t		offset = read_wall_clock().offset_ns;

	if (clock_source() == ClockSource::monotonic)
		shared()->clock_anchor_ns.store(static_cast<uint64_t>(offset), std::memory_order_relaxed);
	return offset;
}

}  // namespace snowflake
