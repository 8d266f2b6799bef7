/*
 * generator_reservation_test.cpp
 *		What is reserved, and when.
 */
#include "generator_test.h"

namespace
{

/*
 * Reservations
 */
using Reservation = GeneratorTest;

TEST_F(Reservation, is_durable_before_the_first_id)
{
	Backend		other(server, layout);

	other.options.max_wait_ns = 0;
	other.apply();
	backend->environment.on_flush = [&]
	{
		/* Not published: whoever comes now reserves for himself. */
		EXPECT_EQ(server.durable_us, 0);
		take(other);
		EXPECT_EQ(other.environment.flushes, 1);
	};
	EXPECT_EQ(take(), Place(1000, 1));
	EXPECT_EQ(server.durable_us, us_of(1500));
}

TEST_F(Reservation, is_made_ahead_when_half_of_it_is_used)
{
	start_at(1000);
	EXPECT_EQ(backend->environment.written, std::vector<int64_t>{us_of(1500)});
	at(1249);
	take();
	EXPECT_EQ(backend->environment.written.size(), 1u);
	at(1250);
	take();
	EXPECT_EQ(backend->environment.written, (std::vector<int64_t>{us_of(1500), us_of(1750)}));
	EXPECT_EQ(counter(server.state.reservations), 2u);
}

TEST_F(Reservation, costs_two_flushes_for_what_is_reserved_ahead)
{
	start_at(1000);
	for (int64_t i = 1001; i <= 11000; i++)
	{
		at(i);
		take();
	}
	EXPECT_LE(backend->environment.flushes, 2 * 10000 / 500 + 1);
	EXPECT_GE(backend->environment.flushes, 10000 / 500);
}

TEST_F(Reservation, ahead_of_need_is_made_by_one_and_waited_for_by_none)
{
	Backend		other(server, layout);

	start_at(1000);
	at(1250);
	backend->environment.on_flush = [&]
	{
		for (int64_t i = 1250; i < 1500; i++)
		{
			at(i);
			EXPECT_EQ(take(other), Place(i, 0));
		}
		EXPECT_EQ(other.environment.flushes, 0);

		/* Then it is needed. */
		at(1500);
		EXPECT_EQ(take(other), Place(1500, 0));
		EXPECT_EQ(other.environment.flushes, 1);
	};
	EXPECT_EQ(take(), Place(1500, 1));
	EXPECT_EQ(server.durable_us, us_of(2000));
}

TEST_F(Reservation, that_ends_late_does_not_lower_the_limit)
{
	Backend		other(server, layout);

	start_at(1000);
	at(1600);
	backend->environment.on_flush = [&]
	{
		at(1800);
		take(other);
	};
	take();
	EXPECT_EQ(backend->environment.written.back(), us_of(2100));
	EXPECT_EQ(counter(server.state.limit), 2300u);
}

TEST_F(Reservation, is_no_longer_than_a_jump_that_is_believed)
{
	/* Else a clock that jumped would not meet the limit. */
	options().max_forward_jump_ns = 20 * ns_per_ms;
	backend->apply();
	start_at(1000);
	EXPECT_EQ(server.durable_us, us_of(1020));
}

TEST_F(Reservation, holds_a_whole_tick_at_least)
{
	use_layout("timestamp:30 node:10 sequence:2 tick:60s epoch:2025-01-01");
	start_at(10);
	EXPECT_EQ(server.durable_us, us_of(11));
	backend->take(4);
	EXPECT_EQ(backend->environment.flushes, 1);
	at(11);
	EXPECT_EQ(take(), Place(11, 0));
	EXPECT_EQ(server.durable_us, us_of(12));
}

TEST_F(Reservation, follows_ids_that_run_ahead)
{
	options().max_drift_us = 10000 * tick;
	backend->apply();
	start_at(1000);
	for (int64_t i = 1; i < 4 * 2000; i++)
		ASSERT_EQ(take(), Place(1000 + i / 4, i % 4));
}

TEST_F(Reservation, is_not_made_by_a_clock_that_has_gone_since)
{
	start_at(1000);
	server.set_wall_us(us_of(1000) + 10 * year_us);
	/* The reservation reads the clock that is right again; the call had read the other. */
	backend->environment.old_reading_ns = server.wall_ns();
	at(1001);
	backend->environment.on_read_clock = [&] { backend->environment.old_reading_ns = 0; };
	EXPECT_EQ(take(), Place(1001, 0));
	EXPECT_EQ(server.durable_us, us_of(1500));
}

TEST_F(Reservation, that_is_slower_than_what_it_reserves_ends)
{
	/* As where a standby is far away. */
	options().reserve_ahead_us = 10 * us_per_ms;
	backend->apply();

	/* It would go on for ever, but for this test. */
	std::function<void()> slow = [&]
	{
		pass_us(35 * us_per_ms);
		if (backend->environment.flushes < 20)
			backend->environment.on_flush = slow;
	};

	backend->environment.on_flush = slow;
	EXPECT_GE(take().first, 1000);
	EXPECT_LT(backend->environment.flushes, 5);
}

}  // namespace
