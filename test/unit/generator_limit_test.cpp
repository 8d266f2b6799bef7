/*
 * generator_limit_test.cpp
 *		Moving the limit: advance_past(), set_reserved_until().
 */
#include "generator_test.h"

namespace
{

/*
 * advance_past()
 */
using AdvancePast = GeneratorTest;

TEST_F(AdvancePast, makes_later_ids_sort_after)
{
	start_at(1000);
	EXPECT_EQ(backend->generator.advance_past(1200).failure, Failure::none);
	EXPECT_GE(server.durable_us, us_of(1201));
	EXPECT_EQ(take(), Place(1201, 0));
}

TEST_F(AdvancePast, is_durable_when_it_returns)
{
	start_at(1000);
	EXPECT_EQ(backend->generator.advance_past(2000).failure, Failure::none);
	EXPECT_EQ(server.durable_us, us_of(2001));
	server.restart();
	EXPECT_EQ(take(), Place(2001, 0));
}

TEST_F(AdvancePast, never_goes_back)
{
	start_at(1000);
	EXPECT_EQ(backend->generator.advance_past(999).failure, Failure::none);
	EXPECT_EQ(take(), Place(1000, 1));
	EXPECT_EQ(backend->generator.advance_past(0).failure, Failure::none);
	EXPECT_EQ(take(), Place(1000, 2));
	EXPECT_EQ(server.durable_us, us_of(1500));
}

TEST_F(AdvancePast, leaves_the_tick_of_the_newest_id)
{
	start_at(1000);
	EXPECT_EQ(backend->generator.advance_past(1000).failure, Failure::none);
	EXPECT_EQ(take(), Place(1001, 0));
}

TEST_F(AdvancePast, does_not_go_back_behind_ids_that_were_issued_meanwhile)
{
	Backend		other(server, layout);

	start_at(1000);
	backend->environment.on_flush = [&]
	{
		at(1300);
		EXPECT_EQ(take(other), Place(1300, 0));
	};
	EXPECT_EQ(backend->generator.advance_past(1200).failure, Failure::none);
	EXPECT_EQ(take(), Place(1300, 1));
}

TEST_F(AdvancePast, works_before_the_first_id)
{
	EXPECT_EQ(backend->generator.advance_past(1200).failure, Failure::none);
	EXPECT_EQ(take(), Place(1201, 0));
}

TEST_F(AdvancePast, fails_where_there_can_be_no_id)
{
	at(-10);
	EXPECT_EQ(backend->generator.advance_past(1200).failure, Failure::epoch_ahead);
	EXPECT_TRUE(backend->environment.written.empty());
}

TEST_F(AdvancePast, can_end_the_layout)
{
	start_at(1000);
	EXPECT_EQ(backend->generator.advance_past(layout.last_tick()).failure, Failure::none);
	EXPECT_EQ(failure_of(backend->take()), Failure::exhausted);
}

TEST_F(AdvancePast, does_not_outlive_a_limit_that_is_set_meanwhile)
{
	Backend		other(server, layout);

	start_at(1000);
	backend->environment.on_prepare = [&]
	{ EXPECT_EQ(other.generator.set_reserved_until(us_of(1002)).failure, Failure::none); };
	EXPECT_EQ(backend->generator.advance_past(1200).failure, Failure::none);
	/* The first try was not written, since the limit was set; the second was. */
	EXPECT_EQ(backend->environment.written, (std::vector<int64_t>{us_of(1500), us_of(1201)}));
	EXPECT_EQ(take(), Place(1201, 0));
}

/*
 * set_reserved_until()
 */
using SetReservedUntil = GeneratorTest;

TEST_F(SetReservedUntil, forward_moves_the_next_id)
{
	start_at(1000);
	EXPECT_EQ(backend->generator.set_reserved_until(us_of(1200)).failure, Failure::none);
	EXPECT_EQ(server.durable_us, us_of(1200));
	EXPECT_EQ(take(), Place(1200, 0));
}

TEST_F(SetReservedUntil, back_is_the_way_out_of_a_poisoned_limit)
{
	server.written_us = us_of(1000) + 10 * year_us;
	EXPECT_EQ(failure_of(backend->take()), Failure::behind);
	EXPECT_EQ(backend->generator.set_reserved_until(us_of(1000)).failure, Failure::none);
	EXPECT_EQ(server.durable_us, us_of(1000));
	EXPECT_EQ(take(), Place(1000, 0));
	EXPECT_EQ(server.durable_us, us_of(1500));
}

TEST_F(SetReservedUntil, below_ids_that_were_issued_is_refused)
{
	start_at(1000);

	Taken		taken = backend->generator.set_reserved_until(us_of(1001) - 1);

	EXPECT_EQ(failure_of(taken), Failure::issued_above);
	EXPECT_EQ(taken.tick, 1000);
	EXPECT_EQ(backend->environment.written.size(), 1u);

	/* Nothing has changed. */
	EXPECT_EQ(take(), Place(1000, 1));
}

TEST_F(SetReservedUntil, below_ids_that_were_issued_is_refused_in_a_later_claim_too)
{
	start_at(1000);
	EXPECT_EQ(backend->generator.set_reserved_until(us_of(5000)).failure, Failure::none);
	EXPECT_EQ(backend->generator.set_reserved_until(us_of(900)).failure, Failure::issued_above);
	EXPECT_EQ(backend->generator.set_reserved_until(us_of(1001)).failure, Failure::none);
	EXPECT_EQ(take(), Place(1001, 0));
}

TEST_F(SetReservedUntil, to_the_end_of_the_newest_id_is_possible)
{
	start_at(1000);
	EXPECT_EQ(backend->generator.set_reserved_until(us_of(1001)).failure, Failure::none);
	EXPECT_EQ(take(), Place(1001, 0));
}

TEST_F(SetReservedUntil, starts_above_all_ids_even_where_the_limit_gets_lost)
{
	start_at(1000);
	EXPECT_EQ(backend->generator.set_reserved_until(us_of(1001)).failure, Failure::none);
	/* As by somebody who drops what it is kept in. */
	server.written_us = 0;
	at(900);
	EXPECT_EQ(take(), Place(1001, 0));
}

TEST_F(SetReservedUntil, is_possible_before_the_first_id)
{
	EXPECT_EQ(backend->generator.set_reserved_until(us_of(1100)).failure, Failure::none);
	EXPECT_EQ(take(), Place(1100, 0));
}

TEST_F(SetReservedUntil, ends_reservations_that_were_begun_before)
{
	Backend		other(server, layout);

	/* One that is not written yet, and one that is not published yet. */
	server.written_us = us_of(1000);
	backend->environment.on_prepare = [&]
	{ EXPECT_EQ(other.generator.set_reserved_until(us_of(1000)).failure, Failure::none); };
	backend->environment.on_flush = [&]
	{
		EXPECT_EQ(counter(server.state.claim_count), 1u);
		EXPECT_EQ(other.generator.set_reserved_until(us_of(1000)).failure, Failure::none);
		EXPECT_EQ(counter(server.state.claim_count), 2u);
	};
	EXPECT_EQ(take(), Place(1000, 0));
	EXPECT_EQ(backend->environment.written.size(), 2u);
	EXPECT_EQ(counter(server.state.reservations), 2u);
}

TEST_F(SetReservedUntil, lets_time_be_reserved_ahead_as_before)
{
	server.written_us = us_of(1000) + 10 * year_us;
	EXPECT_EQ(failure_of(backend->take()), Failure::behind);
	EXPECT_EQ(backend->generator.set_reserved_until(us_of(1000)).failure, Failure::none);
	take();
	at(1250);
	take();
	EXPECT_EQ(server.durable_us, us_of(1750));
}

TEST_F(SetReservedUntil, believes_the_clock)
{
	start_at(1000);
	server.set_wall_us(us_of(1000) + 10 * year_us);
	EXPECT_EQ(failure_of(backend->take()), Failure::forward_jump);
	EXPECT_EQ(backend->generator.set_reserved_until(us_of(1001)).failure, Failure::none);
	EXPECT_EQ(take().first, 1000 + 10 * year_us / tick);
}

TEST_F(SetReservedUntil, lets_no_claim_start_by_a_clock_that_jumps_afterwards)
{
	start_at(1000);
	EXPECT_EQ(backend->generator.set_reserved_until(us_of(1001)).failure, Failure::none);
	server.set_wall_us(us_of(1000) + 10 * year_us);
	EXPECT_EQ(failure_of(backend->take()), Failure::forward_jump);
	at(1002);
	EXPECT_EQ(take(), Place(1002, 0));
}

}  // namespace
