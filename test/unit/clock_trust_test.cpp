/*
 * clock_trust_test.cpp
 *		What is believed of a wall clock, and what is counted, by offsets alone.
 */
#include <gtest/gtest.h>

#include "core/clock_trust.h"

using namespace snowflake;

namespace
{

constexpr int64_t hour = 3600 * ns_per_s;

class ClockTrustTest : public testing::Test
{
protected:
	ClockTrustTest()
	{
		history.initialize();
		trust.set_max_forward_jump(hour);
	}

	/* A reservation at this offset, which must be believed. */
	void reserve_at(int64_t offset)
	{
		EXPECT_EQ(trust.judge(offset), 0);
		trust.believe_further(offset);
	}

	ClockHistory<std::atomic<uint64_t>> history;
	ClockTrust<std::atomic<uint64_t>> trust{history};
};

/*
 * Believing
 */
using Belief = ClockTrustTest;

TEST_F(Belief, is_all_there_is_where_nothing_is_known)
{
	EXPECT_EQ(trust.jump_of(-100 * hour), 0);
	EXPECT_EQ(trust.jump_of(100 * hour), 0);
	EXPECT_EQ(trust.judge(100 * hour), 0);
}

TEST_F(Belief, goes_as_far_as_max_forward_jump)
{
	reserve_at(0);
	EXPECT_EQ(trust.jump_of(hour), 0);
	EXPECT_EQ(trust.jump_of(hour + 1), hour + 1);
}

TEST_F(Belief, is_measured_from_the_last_reservation)
{
	reserve_at(0);
	reserve_at(hour);
	EXPECT_EQ(trust.jump_of(2 * hour), 0);
	EXPECT_EQ(trust.jump_of(2 * hour + 1), hour + 1);
}

TEST_F(Belief, is_not_moved_by_looking)
{
	reserve_at(0);
	EXPECT_EQ(trust.judge(hour), 0);
	EXPECT_EQ(trust.judge(2 * hour), 2 * hour);
	EXPECT_EQ(trust.judge(2 * hour), 2 * hour);
}

TEST_F(Belief, has_a_clock_that_was_put_right_where_it_was_before)
{
	reserve_at(0);
	reserve_at(-10 * hour);
	EXPECT_EQ(trust.jump_of(0), 0);
	EXPECT_EQ(trust.jump_of(put_right_ns), 0);
	EXPECT_EQ(trust.jump_of(put_right_ns + 1), 10 * hour + put_right_ns + 1);
}

TEST_F(Belief, in_a_clock_forgets_what_it_was_before)
{
	reserve_at(0);
	trust.believe(-10 * hour);
	EXPECT_EQ(trust.jump_of(0), 10 * hour);
}

TEST_F(Belief, can_be_ordered)
{
	reserve_at(0);
	EXPECT_EQ(trust.judge(2 * hour), 2 * hour);
	trust.accept(2 * hour);
	EXPECT_EQ(trust.judge(2 * hour), 0);
	EXPECT_EQ(trust.judge(3 * hour), 0);
}

/*
 * Counting
 */
using ClockCounts = ClockTrustTest;

TEST_F(ClockCounts, a_rollback_once_and_keep_the_greatest)
{
	trust.see(0);
	EXPECT_EQ(history.rollbacks, 0u);
	trust.see(-ns_per_s);
	trust.see(-ns_per_s);
	EXPECT_EQ(history.rollbacks, 1u);
	trust.see(0);
	trust.see(-3 * ns_per_s);
	trust.see(-4 * ns_per_s);
	EXPECT_EQ(history.rollbacks, 3u);
	EXPECT_EQ(history.max_rollback_ns, static_cast<uint64_t>(3 * ns_per_s));
}

TEST_F(ClockCounts, no_rollback_that_may_be_a_measuring_error)
{
	trust.see(0);
	trust.see(1 - offset_noise_ns);
	EXPECT_EQ(history.rollbacks, 0u);
	trust.see(-offset_noise_ns);
	EXPECT_EQ(history.rollbacks, 1u);
}

TEST_F(ClockCounts, no_rollback_where_a_clock_was_accepted)
{
	reserve_at(2 * hour);
	trust.accept(0);
	trust.see(0);
	EXPECT_EQ(history.rollbacks, 0u);
}

TEST_F(ClockCounts, a_jump_once_until_it_is_over)
{
	reserve_at(0);
	(void) trust.judge(2 * hour);
	(void) trust.judge(2 * hour + offset_noise_ns - 1);
	EXPECT_EQ(history.forward_jumps, 1u);
	(void) trust.judge(3 * hour);
	EXPECT_EQ(history.forward_jumps, 2u);
	(void) trust.judge(0);
	(void) trust.judge(3 * hour);
	EXPECT_EQ(history.forward_jumps, 3u);
}

TEST_F(ClockCounts, nothing_for_a_question)
{
	reserve_at(0);
	EXPECT_EQ(trust.jump_of(2 * hour), 2 * hour);
	EXPECT_EQ(trust.jump_of(-2 * hour), 0);
	EXPECT_EQ(history.forward_jumps, 0u);
	EXPECT_EQ(history.rollbacks, 0u);
}

}  // namespace
