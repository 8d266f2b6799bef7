/*
 * generator_clock_test.cpp
 *		What the generator makes of a wall clock that is set; clock_trust_test.cpp has the rules.
 */
#include "generator_test.h"

namespace
{

/*
 * A clock that jumps forward
 */
using ForwardJump = GeneratorTest;

TEST_F(ForwardJump, of_ten_years_is_not_believed)
{
	start_at(1000);
	server.set_wall_us(us_of(1000) + 10 * year_us);
	for (int i = 0; i < 3; i++)
	{
		Taken		taken = backend->take();

		EXPECT_EQ(failure_of(taken), Failure::forward_jump);
		EXPECT_EQ(taken.excess_ns, 10 * year_us * ns_per_us);
	}
	EXPECT_EQ(counter(server.state.clock.forward_jumps), 1u);
	EXPECT_EQ(backend->environment.flushes, 1);

	/* Put right again, it goes on as if nothing had been. */
	at(1001);
	EXPECT_EQ(take(), Place(1001, 0));
	EXPECT_EQ(server.durable_us, us_of(1500));
}

TEST_F(ForwardJump, is_counted_again_after_the_clock_was_right)
{
	start_at(1000);
	for (int i = 0; i < 3; i++)
	{
		server.set_wall_us(us_of(1000) + 10 * year_us);
		EXPECT_EQ(failure_of(backend->take()), Failure::forward_jump);
		at(2000 + 1000 * i);
		EXPECT_EQ(take(), Place(2000 + 1000 * i, 0));
	}
	EXPECT_EQ(counter(server.state.clock.forward_jumps), 3u);
}

TEST_F(ForwardJump, of_max_forward_jump_is_believed)
{
	start_at(1000);
	server.set_wall_us(us_of(1000) + hour_us);
	EXPECT_EQ(take().first, 1000 + hour_us / tick);
	EXPECT_EQ(counter(server.state.clock.forward_jumps), 0u);
}

TEST_F(ForwardJump, is_measured_from_the_last_reservation)
{
	start_at(1000);
	for (int i = 1; i <= 5; i++)
	{
		server.set_wall_us(us_of(1000) + i * hour_us);
		EXPECT_EQ(take().first, 1000 + i * hour_us / tick);
	}
}

TEST_F(ForwardJump, is_no_time_that_passed_on_both_clocks)
{
	start_at(1000);
	pass_us(10 * year_us);
	EXPECT_EQ(take().first, 1000 + 10 * year_us / tick);
}

TEST_F(ForwardJump, is_believed_once_it_was_accepted)
{
	start_at(1000);
	server.set_wall_us(us_of(1000) + 10 * year_us);
	EXPECT_EQ(failure_of(backend->take()), Failure::forward_jump);
	backend->generator.accept_clock(server.offset_ns);
	EXPECT_EQ(take().first, 1000 + 10 * year_us / tick);
}

TEST_F(ForwardJump, is_none_where_a_clock_that_went_back_is_put_right)
{
	options().max_drift_us = 5 * hour_us;
	backend->apply();
	start_at(100000);

	int64_t		right_ns = server.offset_ns;

	server.offset_ns = right_ns - 3 * hour_us * ns_per_us;
	for (int i = 0; i < 4000; i++)
		ASSERT_NE(take().first, -1);
	EXPECT_GT(backend->environment.flushes, 1);
	server.offset_ns = right_ns;
	pass_us(10 * us_per_s);
	EXPECT_NE(take().first, -1);
	EXPECT_EQ(counter(server.state.clock.forward_jumps), 0u);
}

/*
 * A clock that goes back, in the statistics
 */
using Rollback = GeneratorTest;

TEST_F(Rollback, is_counted_once_and_the_greatest_kept)
{
	options().max_drift_us = 60 * us_per_s;
	backend->apply();
	start_at(100000);
	for (int64_t back : {100, 3000, 200})
	{
		server.offset_ns -= back * ns_per_ms;
		for (int i = 0; i < 20; i++)
			take();
	}
	EXPECT_EQ(counter(server.state.clock.rollbacks), 3u);
	EXPECT_EQ(counter(server.state.clock.max_rollback_ns), 3000u * ns_per_ms);
}

TEST_F(Rollback, is_counted_once_by_all_backends)
{
	Backend		other(server, layout);

	start_at(1000);
	take(other);
	at(500);
	for (int i = 0; i < 3; i++)
	{
		backend->options.max_wait_ns = other.options.max_wait_ns = 0;
		backend->apply();
		other.apply();
		EXPECT_EQ(failure_of(backend->take()), Failure::behind);
		EXPECT_EQ(failure_of(other.take()), Failure::behind);
	}
	EXPECT_EQ(counter(server.state.clock.rollbacks), 1u);
}

TEST_F(Rollback, is_none_where_the_clock_is_slewed)
{
	start_at(1000);
	for (int i = 0; i < 1000; i++)
	{
		pass_us(us_per_ms);
		server.offset_ns -= 500;
		take();
	}
	EXPECT_EQ(counter(server.state.clock.rollbacks), 0u);
}

}  // namespace
