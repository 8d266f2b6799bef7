/*
 * mask_test.cpp
 *		The keyed permutation of the ids; sql/mask.sql has its test vectors.
 */
#include "core/mask.h"

#include <gtest/gtest.h>

#include <random>

using namespace snowflake;

namespace
{

/* A round function that anybody can follow: how often it was called, and a mixture of what it got. */
struct Mixture
{
	uint32_t	key = 0;
	int			calls = 0;
	int			fails_at = -1;
};

bool
mix(void *state, int round, uint32_t half, uint32_t *result)
{
	Mixture    *mixture = static_cast<Mixture *>(state);

	if (mixture->calls++ == mixture->fails_at)
		return false;

	uint64_t	x = (static_cast<uint64_t>(mixture->key ^ static_cast<uint32_t>(round)) << 32 | half) *
		0x9e3779b97f4a7c15;

	*result = static_cast<uint32_t>((x ^ x >> 29) * 0xbf58476d1ce4e5b9 >> 32);
	return true;
}

bool
nothing(void *, int, uint32_t, uint32_t *result)
{
	*result = 0;
	return true;
}

TEST(Mask, is_undone_and_stays_positive)
{
	std::mt19937_64 random(1);
	Mixture		mixture;

	for (int i = 0; i < 200000; i++)
	{
		int64_t		id = i < 4 ? i : i < 8 ? INT64_MAX - i : static_cast<int64_t>(random() >> (1 + random() % 62));
		int64_t		masked;
		int64_t		back;

		mixture.key = static_cast<uint32_t>(i / 1000);
		ASSERT_TRUE(mask(id, mix, &mixture, &masked));
		ASSERT_TRUE(unmask(masked, mix, &mixture, &back));
		EXPECT_GE(masked, 0);
		EXPECT_EQ(back, id);
	}
}

TEST(Mask, reaches_every_bit_from_every_bit)
{
	std::mt19937_64 random(2);
	Mixture		mixture;

	for (int bit = 0; bit < 63; bit++)
	{
		int64_t		flipped = 0;

		for (int i = 0; i < 200; i++)
		{
			int64_t		id = static_cast<int64_t>(random() >> 1);
			int64_t		one;
			int64_t		other;

			ASSERT_TRUE(mask(id, mix, &mixture, &one));
			ASSERT_TRUE(mask(id ^ int64_t{1} << bit, mix, &mixture, &other));
			flipped |= one ^ other;
		}
		EXPECT_EQ(flipped, INT64_MAX) << bit;
	}
}

TEST(Mask, has_as_many_rounds_as_it_says)
{
	Mixture		mixture;
	int64_t		result;

	ASSERT_TRUE(mask(7, mix, &mixture, &result));
	EXPECT_EQ(mixture.calls, mask_rounds);
	/* The halves change places an even number of times. */
	ASSERT_TRUE(mask(INT64_MAX - 5, nothing, nullptr, &result));
	EXPECT_EQ(result, INT64_MAX - 5);
}

TEST(Mask, fails_where_its_round_function_does)
{
	for (int i = 0; i < mask_rounds; i++)
	{
		Mixture		one = {0, 0, i};
		Mixture		other = {0, 0, i};
		int64_t		result = -1;

		EXPECT_FALSE(mask(7, mix, &one, &result));
		EXPECT_FALSE(unmask(7, mix, &other, &result));
		EXPECT_EQ(result, -1);
	}
}

}  // namespace
