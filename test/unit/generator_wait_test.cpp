/*
 * generator_wait_test.cpp
 *		What a call waits for, and when it fails instead.
 */
#include "generator_test.h"

namespace
{

/*
 * Waiting, and failing instead
 */
using Wait = GeneratorTest;

TEST_F(Wait, of_at_most_a_tick_is_always_made)
{
	options().max_wait_ns = 0;
	backend->apply();
	start_at(1000);
	backend->take(4);
	EXPECT_EQ(take(), Place(1001, 0));
	EXPECT_EQ(waits(), std::vector<int64_t>{tick * ns_per_us});

	/* Just a tick, since the clock went back to the beginning of the one before. */
	at(1000);
	EXPECT_EQ(take(), Place(1001, 1));
	EXPECT_EQ(waits().size(), 2u);
}

TEST_F(Wait, of_more_than_a_tick_is_refused_at_once_where_it_exceeds_max_wait)
{
	options().max_wait_ns = 49 * ns_per_ms;
	backend->apply();
	start_at(1000);
	at(950);

	Taken		taken = backend->take();

	EXPECT_EQ(failure_of(taken), Failure::behind);
	EXPECT_EQ(taken.excess_ns, 50 * ns_per_ms);
	EXPECT_EQ(taken.tick, 1000);
	EXPECT_EQ(taken.now_ns, us_of(950) * ns_per_us);
	EXPECT_TRUE(waits().empty());

	/* Nothing was issued. */
	at(1000);
	EXPECT_EQ(take(), Place(1000, 1));
}

TEST_F(Wait, is_made_up_to_max_wait)
{
	options().max_wait_ns = 50 * ns_per_ms;
	backend->apply();
	start_at(1000);
	at(950);
	EXPECT_EQ(take(), Place(1000, 1));
	EXPECT_EQ(waits(), std::vector<int64_t>{50 * ns_per_ms});
}

TEST_F(Wait, looks_at_the_clock_now_and_then)
{
	start_at(1000);
	at(0);
	EXPECT_EQ(take(), Place(1000, 1));
	EXPECT_EQ(waits(), std::vector<int64_t>(10, longest_wait_ns));
}

TEST_F(Wait, ends_when_the_clock_is_put_right)
{
	start_at(2000);
	at(1000);
	backend->environment.on_wait = [&] (int64_t)
	{
		pass_us(us_per_ms);
		at(2000, 500);
	};
	EXPECT_EQ(take(), Place(2000, 1));
	EXPECT_EQ(waits().size(), 1u);
}

TEST_F(Wait, counts_what_was_waited_before)
{
	/* The clock is set back again and again: each wait would be allowed, not all of them. */
	start_at(2000);
	at(1000);
	backend->environment.on_wait = [&] (int64_t ns)
	{
		pass_us(ns / ns_per_us);
		at(1000);
	};

	Taken		taken = backend->take();

	EXPECT_EQ(failure_of(taken), Failure::behind);
	EXPECT_EQ(taken.excess_ns, ns_per_s);
	EXPECT_EQ(waits().size(), 11u);
}

TEST_F(Wait, for_ids_that_others_take_is_no_longer_than_max_wait_and_a_tick)
{
	for (int64_t max_wait : {0, 20})
	{
		options().max_wait_ns = max_wait * ns_per_ms;
		backend->apply();
		start_at(1000 + 100 * max_wait);
		backend->take(4);

		/* Whenever this call wakes up, all ids of the tick are for others, who came before. */
		size_t		before = waits().size();

		backend->environment.on_wait = [&] (int64_t ns)
		{
			pass_us(ns / ns_per_us);
			if (waits().size() < before + 100)
				come_before(4);
		};

		Taken		taken = backend->take();

		EXPECT_EQ(failure_of(taken), Failure::behind);
		EXPECT_EQ(taken.excess_ns, ns_per_ms);
		EXPECT_EQ(waits().size() - before, static_cast<size_t>(max_wait + 1));
		backend->environment.on_wait = nullptr;
		/* Their places lapse. */
		pass_us(us_per_s);
	}
}

TEST_F(Wait, for_a_clock_that_stands_still_ends)
{
	options().max_wait_ns = 20 * ns_per_ms;
	backend->apply();
	start_at(1000);
	backend->take(4);
	backend->environment.on_wait = [&] (int64_t ns)
	{
		pass_us(ns / ns_per_us);
		at(1000);
	};
	EXPECT_EQ(failure_of(backend->take()), Failure::standstill);
	EXPECT_LE(waits().size(), 25u);
}

TEST_F(Wait, and_refusal_are_by_no_old_reading)
{
	start_at(1000);
	backend->take(4);
	at(1001);
	backend->environment.old_reading_ns = us_of(1000) * ns_per_us;
	EXPECT_EQ(take(), Place(1001, 0));
	EXPECT_TRUE(waits().empty());
	EXPECT_EQ(counter(server.state.clock.rollbacks), 0u);
}

/*
 * What the clock keeps the next call from
 */
class ClockFailure : public GeneratorTest
{
protected:
	/* Foretold, without a trace, and then met. */
	Failure next_failure()
	{
		uint64_t	word = server.state.word;
		uint64_t	rollbacks = server.state.clock.rollbacks;
		uint64_t	jumps = server.state.clock.forward_jumps;
		Failure		foretold = backend->generator.clock_failure(server.written_us);

		EXPECT_EQ(counter(server.state.word), word);
		EXPECT_EQ(counter(server.state.clock.rollbacks), rollbacks);
		EXPECT_EQ(counter(server.state.clock.forward_jumps), jumps);
		EXPECT_EQ(backend->take().failure, foretold);
		return foretold;
	}
};

TEST_F(ClockFailure, is_none_where_there_are_ids)
{
	EXPECT_EQ(next_failure(), Failure::none);
	EXPECT_EQ(next_failure(), Failure::none);
	/* After a wait of a tick */
	options().max_wait_ns = 0;
	backend->apply();
	backend->take(4);
	EXPECT_EQ(next_failure(), Failure::none);
}

TEST_F(ClockFailure, is_that_it_is_behind)
{
	options().max_wait_ns = 50 * ns_per_ms;
	backend->apply();
	start_at(1000);
	at(949);
	EXPECT_EQ(next_failure(), Failure::behind);
	at(950);
	EXPECT_EQ(next_failure(), Failure::none);
}

TEST_F(ClockFailure, is_that_it_is_behind_what_was_reserved)
{
	options().max_wait_ns = 50 * ns_per_ms;
	backend->apply();
	start_at(2000);
	server.restart();
	at(1000);
	EXPECT_EQ(next_failure(), Failure::behind);
	at(5000);
	EXPECT_EQ(next_failure(), Failure::none);
}

TEST_F(ClockFailure, is_that_it_jumped_forward)
{
	start_at(1000);
	at(1000 + 2 * hour_us / us_per_ms);
	EXPECT_EQ(next_failure(), Failure::forward_jump);
	at(1001);
	EXPECT_EQ(next_failure(), Failure::none);
}

TEST_F(ClockFailure, is_that_the_layout_has_not_begun)
{
	at(-1000000);
	EXPECT_EQ(next_failure(), Failure::epoch_ahead);
	at(1);
	EXPECT_EQ(next_failure(), Failure::none);
}

TEST_F(ClockFailure, is_that_the_layout_has_ended)
{
	at(layout.last_tick() + 1);
	EXPECT_EQ(next_failure(), Failure::exhausted);
	at(layout.last_tick());
	EXPECT_EQ(next_failure(), Failure::none);
	at(layout.last_tick() + 1);
	EXPECT_EQ(next_failure(), Failure::exhausted);
}

}  // namespace
