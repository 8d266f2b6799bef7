/*
 * generator_start_test.cpp
 *		Where a claim starts, and where the layout's time ends.
 */
#include "generator_test.h"

namespace
{

/*
 * The first id after a start
 */
using Start = GeneratorTest;

TEST_F(Start, is_in_the_first_tick_that_begins_at_or_after_the_clock)
{
	at(1000, 1);
	EXPECT_EQ(take(), Place(1001, 0));
	EXPECT_EQ(waits(), std::vector<int64_t>{999 * ns_per_us});
}

TEST_F(Start, counts_the_clocks_nanoseconds)
{
	at(1000);
	server.boot_ns += 1;
	EXPECT_EQ(take(), Place(1001, 0));
}

TEST_F(Start, is_in_the_tick_that_the_clock_begins)
{
	at(1000);
	EXPECT_EQ(take(), Place(1000, 0));
}

TEST_F(Start, is_above_the_durable_limit)
{
	server.written_us = us_of(1500);
	EXPECT_EQ(take(), Place(1500, 0));
	server.restart();
	server.written_us = us_of(2000) + 1;
	EXPECT_EQ(take(), Place(2001, 0));
}

TEST_F(Start, is_above_all_ids_before_it)
{
	start_at(1000);
	server.restart();
	at(900);
	EXPECT_EQ(take(), Place(1500, 0));
}

TEST_F(Start, is_above_all_ids_of_another_layout)
{
	start_at(1000);
	server.restart();
	at(900);
	use_layout("timestamp:39 sequence:8 machine:16 tick:7ms epoch:2024-12-31T23:59:59.999Z");
	EXPECT_GE(tick_begin_us(layout, take().first), server.durable_us - 507 * tick);
	EXPECT_GE(server.wall_ns() / ns_per_us, layout_of("twitter epoch:2025-01-01").epoch_us + 1500 * tick);
}

TEST_F(Start, is_made_once_by_two_that_come_at_a_time)
{
	Backend		other(server, layout);

	backend->environment.on_lock = [&] { EXPECT_EQ(take(other), Place(1000, 0)); };
	EXPECT_EQ(take(), Place(1000, 1));
	EXPECT_EQ(other.environment.claims, 1);
	EXPECT_EQ(backend->environment.claims, 0);
}

TEST_F(Start, tells_of_a_clock_far_past_the_limit)
{
	server.written_us = us_of(1000);
	server.set_wall_us(us_of(1000) + hour_us + 1000);
	take();
	EXPECT_EQ(backend->environment.warnings, 1);
	server.restart();
	server.set_wall_us(server.written_us + hour_us);
	take();
	EXPECT_EQ(backend->environment.warnings, 1);
}

TEST_F(Start, has_nothing_to_compare_the_clock_with_where_there_was_no_limit)
{
	server.set_wall_us(layout.epoch_us + year_us);
	take();
	EXPECT_EQ(backend->environment.warnings, 0);
}

TEST_F(Start, counts_a_clock_that_went_back_meanwhile)
{
	start_at(10000);
	server.restart();
	at(9000);
	EXPECT_EQ(take(), Place(10500, 0));
	EXPECT_EQ(counter(server.state.clock.rollbacks), 1u);
	EXPECT_EQ(counter(server.state.clock.max_rollback_ns), 1500u * ns_per_ms);
}

TEST_F(Start, is_no_clock_that_went_back_where_the_reservation_is_just_not_over)
{
	start_at(10000);
	server.restart();
	at(10001);
	EXPECT_EQ(take(), Place(10500, 0));
	EXPECT_EQ(counter(server.state.clock.rollbacks), 0u);
}

/*
 * A layout's time
 */
using LayoutTime = GeneratorTest;

TEST_F(LayoutTime, has_not_begun)
{
	at(0, -300);

	Taken		taken = backend->take();

	EXPECT_EQ(failure_of(taken), Failure::epoch_ahead);
	EXPECT_EQ(taken.excess_ns, 300 * ns_per_us);
	EXPECT_TRUE(backend->environment.written.empty());
	at(5);
	EXPECT_EQ(take(), Place(5, 0));
}

TEST_F(LayoutTime, has_begun_where_the_limit_says_so)
{
	options().max_wait_ns = 0;
	backend->apply();
	server.written_us = us_of(10);
	at(-5);

	Taken		taken = backend->take();

	EXPECT_EQ(failure_of(taken), Failure::behind);
	EXPECT_EQ(taken.excess_ns, 15 * ns_per_ms);
}

TEST_F(LayoutTime, is_waited_for_like_any_other_once_there_were_ids)
{
	start_at(1000);
	at(-5000);

	Taken		taken = backend->take();

	EXPECT_EQ(failure_of(taken), Failure::behind);
	EXPECT_EQ(taken.excess_ns, 6 * ns_per_s);
}

TEST_F(LayoutTime, ends_with_its_last_tick)
{
	use_layout("timestamp:10 node:10 sequence:2 epoch:2025-01-01");
	options().max_drift_us = 10 * tick;
	backend->apply();
	at(1022);
	take();
	for (int i = 1; i < 8; i++)
		EXPECT_EQ(take(), Place(1022 + i / 4, i % 4));

	Taken		taken = backend->take();

	EXPECT_EQ(failure_of(taken), Failure::exhausted);
	EXPECT_EQ(taken.tick, 1024);
	EXPECT_EQ(failure_of(backend->take(100)), Failure::exhausted);

	/* It never wraps. */
	at(2048);
	EXPECT_EQ(failure_of(backend->take()), Failure::exhausted);
}

TEST_F(LayoutTime, ends_where_all_63_bits_are_used)
{
	use_layout("timestamp:41 datacenter:5 worker:5 sequence:12 epoch:2010-11-04T01:42:54.657Z");
	server.node = layout.max_node();
	at(layout.last_tick());

	Taken		taken = backend->take(4096);

	EXPECT_EQ(taken.failure, Failure::none);
	EXPECT_EQ(taken.count, 4096);
	EXPECT_EQ(taken.id + 4095, INT64_MAX);
	EXPECT_EQ(failure_of(backend->take()), Failure::exhausted);
}

TEST_F(LayoutTime, ended_long_ago_though_its_steps_would_fit_again)
{
	/* A tick shifted by 61 bits has nothing left of it. */
	server.node = 0;
	use_layout("timestamp:2 sequence:61 epoch:2025-01-01");
	at(1);
	EXPECT_EQ(backend->take().tick, 1);
	at(8);
	EXPECT_EQ(failure_of(backend->take()), Failure::exhausted);
	at(1, 500);
	EXPECT_EQ(take(), Place(1, 1));
}

TEST_F(LayoutTime, is_over_at_the_start)
{
	use_layout("timestamp:10 node:10 sequence:2 epoch:2025-01-01");
	at(1023, 1);
	EXPECT_EQ(failure_of(backend->take()), Failure::exhausted);
	at(500);
	EXPECT_EQ(take(), Place(500, 0));
}

TEST_F(LayoutTime, leaves_out_its_first_tick)
{
	at(0);
	EXPECT_EQ(take(), Place(1, 0));
}

}  // namespace
