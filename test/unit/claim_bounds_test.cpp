/*
 * claim_bounds_test.cpp
 *		What an answer of a registry may say.
 */
#include <gtest/gtest.h>

#include "core/claim_bounds.h"

using namespace snowflake;

namespace
{

constexpr int64_t now_us = 1735689600 * us_per_s;

Claim
usual_claim()
{
	Claim		claim{};

	claim.generation = 5;
	claim.granted_until_us = now_us;
	claim.since_us = now_us;
	claim.holder.port = 5432;
	return claim;
}

RegistryTime
usual_time()
{
	return {now_us, 3600 * us_per_s, 0, "", false};
}

/* Each number at its bounds, and just outside of them. */
template <typename Answer, typename Number>
void
expect_bounds(const Answer &usual, Number Answer::*number, int64_t least, int64_t most)
{
	const auto	with = [&] (int64_t value) {
		Answer		changed = usual;

		changed.*number = static_cast<Number>(value);
		return changed;
	};

	EXPECT_TRUE(is_possible(usual));
	EXPECT_TRUE(is_possible(with(least)));
	EXPECT_TRUE(is_possible(with(most)));
	EXPECT_FALSE(is_possible(with(least - 1)));
	EXPECT_FALSE(is_possible(with(most + 1)));
	EXPECT_FALSE(is_possible(with(INT64_MIN)));
	EXPECT_FALSE(is_possible(with(INT64_MAX)));
}

TEST(ClaimBounds, hold_for_each_number)
{
	expect_bounds(usual_claim(), &Claim::generation, 1, most_generations);
	expect_bounds(usual_claim(), &Claim::granted_until_us, 0, latest_time_us);
	expect_bounds(usual_claim(), &Claim::since_us, 0, latest_time_us);
	expect_bounds(usual_time(), &RegistryTime::clock_us, 0, latest_time_us);
	expect_bounds(usual_time(), &RegistryTime::max_forward_jump_us, 0, longest_forward_jump_us);
	expect_bounds(usual_time(), &RegistryTime::unsettled_us, 0, 600 * us_per_s);
}

TEST(ClaimBounds, hold_for_the_port)
{
	Claim		claim = usual_claim();

	claim.holder.port = 65536;
	EXPECT_FALSE(is_possible(claim));
	claim.holder.port = -1;
	EXPECT_FALSE(is_possible(claim));
}

TEST(ClaimBounds, leave_nothing_to_a_claim_that_is_not_known)
{
	Claim		claim{};

	EXPECT_TRUE(is_possible(claim));
	claim.granted_until_us = now_us;
	EXPECT_FALSE(is_possible(claim));
	claim = {};
	claim.since_us = now_us;
	EXPECT_FALSE(is_possible(claim));
	claim = {};
	claim.holder.nonce[0] = 'a';
	EXPECT_FALSE(is_possible(claim));
	claim = {};
	claim.is_alive = true;
	EXPECT_FALSE(is_possible(claim));
}

/* UndefinedBehaviorSanitizer says where a sum overflows. */
TEST(ClaimBounds, keep_the_rules_from_overflowing)
{
	const Holder me = {"0123456789abcdef0123456789abcdef", 0, "", ""};

	for (const int64_t until_us : {int64_t{0}, now_us, latest_time_us})
	{
		for (const int64_t clock_us : {int64_t{0}, now_us, latest_time_us})
		{
			for (const int64_t generation : {int64_t{1}, most_generations})
			{
				Claim		claim = usual_claim();
				Claim		next;
				Grant		grant;
				RegistryTime time = usual_time();
				const Need	need = {latest_time_us, latest_time_us, latest_time_us};
				const Grant held = {0, generation, until_us, until_us, 0, 0};

				claim.generation = generation;
				claim.granted_until_us = until_us;
				time.clock_us = clock_us;
				time.max_forward_jump_us = longest_forward_jump_us;
				ASSERT_TRUE(is_possible(claim) && is_possible(time));
				(void) decide_grant(claim, time, me, need, longest_window_us, &next, &grant);
				(void) decide_renewal(claim, time, me, need, longest_window_us, false, held, &next, &grant);
				(void) decide_release(claim, me, latest_time_us, held, &next);
				(void) decide_assertion(claim, held, &next);
				(void) decide_set_aside(claim, time, me, latest_time_us, &next);
			}
		}
	}
}

}  // namespace
