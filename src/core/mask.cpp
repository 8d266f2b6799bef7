/*
 * mask.cpp
 *		A keyed permutation of the ids.
 */
#include "core/mask.h"

namespace snowflake
{

namespace
{

/* Before an even round, the left half has 31 bits and the right one 32; before an odd round, the other way round. */
constexpr int right_bits = 32;
constexpr uint32_t short_half = (uint32_t{1} << 31) - 1;
constexpr uint32_t long_half = UINT32_MAX;

/* What the left half can hold before a round, and so the right one after it. */
constexpr uint32_t
left_mask(int round) noexcept
{
	return round % 2 == 0 ? short_half : long_half;
}

struct Halves
{
	uint32_t	left;
	uint32_t	right;
};

constexpr Halves
split(int64_t id) noexcept
{
	return {static_cast<uint32_t>(id >> right_bits) & short_half, static_cast<uint32_t>(id)};
}

constexpr int64_t
join(Halves halves) noexcept
{
	return static_cast<int64_t>(static_cast<uint64_t>(halves.left) << right_bits | halves.right);
}

static_assert(mask_rounds % 2 == 0, "the halves are to be as long again as they were");

}  // namespace

bool
mask(int64_t id, RoundFunction function, void *state, int64_t *masked) noexcept
{
	Halves		halves = split(id);

	for (int round = 0; round < mask_rounds; round++)
	{
		uint32_t	part;

		if (!function(state, round, halves.right, &part))
			return false;
		halves = {halves.right, (halves.left + part) & left_mask(round)};
	}
	*masked = join(halves);
	return true;
}

bool
unmask(int64_t masked, RoundFunction function, void *state, int64_t *id) noexcept
{
	Halves		halves = split(masked);

	for (int round = mask_rounds - 1; round >= 0; round--)
	{
		uint32_t	part;

		if (!function(state, round, halves.left, &part))
			return false;
		halves = {(halves.right - part) & left_mask(round), halves.left};
	}
	*id = join(halves);
	return true;
}

}  // namespace snowflake
