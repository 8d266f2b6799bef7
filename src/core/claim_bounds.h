/*
 * claim_bounds.h
 *		What an answer of a registry may say.
 *
 * A registry is another system, kept by others, or by an attacker.  A store checks the
 * form of an answer; whether its numbers can be meant is said here.  What is outside is
 * no claim at all, so that no sum of what is inside, windows and pauses, overflows.
 */
#ifndef SNOWFLAKE_CORE_CLAIM_BOUNDS_H
#define SNOWFLAKE_CORE_CLAIM_BOUNDS_H

#include <cstdint>

#include "core/claim.h"
#include "core/units.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/* No time lies after this: the year 11103, as Unix microseconds.  Whether it is too far ahead is another question. */
constexpr int64_t latest_time_us = int64_t{1} << 58;

/* A thousand of them a second would take a hundred million years. */
constexpr int64_t most_generations = int64_t{1} << 62;

/* A registry settles for as long as the longest window of its holders. */
constexpr int64_t longest_settling_us = longest_window_us;

/* snowflake.max_forward_jump is an int, in seconds; 0: the registry has no limit of its own. */
constexpr int64_t longest_forward_jump_us = int64_t{INT32_MAX} * us_per_s;

constexpr int32_t max_port = 65535;

constexpr bool
is_within(int64_t number, int64_t most) noexcept
{
	return number >= 0 && number <= most;
}

/* Of all but the texts and the store's own mark.  Where nothing is known of a number, there is nothing else, either. */
constexpr bool
is_possible(const Claim &claim) noexcept
{
	if (claim.generation == 0)
		return claim.granted_until_us == 0 && claim.since_us == 0 && !claim.is_alive && claim.holder.is_nobody();
	return is_within(claim.generation, most_generations) && is_within(claim.granted_until_us, latest_time_us) &&
		is_within(claim.since_us, latest_time_us) && is_within(claim.holder.port, max_port);
}

constexpr bool
is_possible(const RegistryTime &time) noexcept
{
	return is_within(time.clock_us, latest_time_us) && is_within(time.unsettled_us, longest_settling_us) &&
		is_within(time.max_forward_jump_us, longest_forward_jump_us);
}

}  // namespace snowflake

#endif
