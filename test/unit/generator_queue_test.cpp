/*
 * generator_queue_test.cpp
 *		Calls that wait for ids that others take: who has them.  And sessions
 *		whose rate is bounded.
 */
#include "generator_test.h"

namespace
{

class QueueTest : public GeneratorTest
{
protected:
	QueueTest()
	{
		start_at(1000);
		/* What follows begins in a tick without ids. */
		EXPECT_EQ(backend->take(3).count, 3);
	}

	/* What happens while the call of a backend waits; it then gets up late by so much. */
	void while_waiting(Backend &waiter, std::function<void()> what, int64_t late_us = 10)
	{
		waiter.environment.on_wait = [this, what, late_us, count = 0] (int64_t ns) mutable
		{
			pass_us(ns / ns_per_us + late_us);
			if (++count < 100)
				what();
		};
	}

	bool is_shown() const
	{
		return (server.state.limit & queued) != 0;
	}

	/* The ids that others are left with in this tick, one by one. */
	int64_t take_all(Backend &other)
	{
		int64_t		count = 0;

		other.options.max_wait_ns = 0;
		other.apply();
		/* A wait would let the waiter go on: it ends the tick. */
		other.environment.on_wait = [&] (int64_t ns) { pass_us(ns / ns_per_us); is_over = true; };
		for (is_over = false; !is_over; count++)
			other.take(1);
		return count - 1;
	}

	Backend		hog{server, layout};
	bool		is_over = false;
};

TEST_F(QueueTest, a_call_that_waits_finds_an_id_in_the_next_tick_whatever_others_take)
{
	int64_t		taken = 0;

	/* A batch that is awake when the tick begins takes runs as long as it is given any. */
	while_waiting(*backend, [&]
				  {
					  while (taken < 3)
						  taken += hog.take(1000).count;
				  });
	EXPECT_EQ(take(), Place(1001, 3));
	EXPECT_EQ(taken, 3);
	EXPECT_EQ(waits().size(), 1u);
	EXPECT_FALSE(is_shown());
}

TEST_F(QueueTest, the_first_run_of_a_batch_is_its_share)
{
	std::vector<int64_t> runs;

	while_waiting(*backend, [&] { runs.push_back(hog.take(1000).count); });
	/* One waits: half of the tick. */
	EXPECT_EQ(take(), Place(1001, 2));
	EXPECT_EQ(runs, std::vector<int64_t>{2});
}

TEST_F(QueueTest, is_shown_while_somebody_waits)
{
	bool		was_shown = false;

	EXPECT_FALSE(is_shown());
	while_waiting(*backend, [&] { was_shown = is_shown(); });
	take();
	EXPECT_TRUE(was_shown);
	EXPECT_FALSE(is_shown());
}

TEST_F(QueueTest, is_still_shown_when_time_was_reserved)
{
	bool		was_shown = false;

	options().reserve_ahead_us = tick;
	backend->apply();
	at(1500);
	EXPECT_EQ(backend->take(4).count, 4);
	while_waiting(*backend, [&]
				  {
					  /* This tick is not reserved yet. */
					  hog.take(1);
					  was_shown = is_shown();
				  });
	EXPECT_EQ(take(), Place(1501, 1));
	EXPECT_TRUE(was_shown);
}

TEST_F(QueueTest, is_left_by_a_call_that_is_refused)
{
	options().max_wait_ns = 0;
	backend->apply();
	/* The clock goes back while it waits. */
	while_waiting(*backend, [&] { at(500); });
	EXPECT_EQ(failure_of(backend->take()), Failure::behind);
	EXPECT_FALSE(is_shown());
	EXPECT_EQ(server.state.queue.length, 0u);
}

TEST_F(QueueTest, serves_in_the_order_in_which_calls_came)
{
	/* Four ids, five places; those before it are awake a moment later. */
	while_waiting(*backend, [&] { come_before(4); });

	Taken		taken;

	options().max_wait_ns = 20 * ns_per_ms;
	backend->apply();
	taken = backend->take();
	/* The four never came: it did not take what was theirs, in 21 ticks. */
	EXPECT_EQ(failure_of(taken), Failure::behind);
	EXPECT_LE(taken.excess_ns, ns_per_ms);
}

TEST_F(QueueTest, those_who_came_later_are_left_nothing_where_there_is_too_little)
{
	/* Four have come after it. */
	while_waiting(*backend, [&]
				  {
					  for (size_t i = 10; i < 14; i++)
					  {
						  server.places[i].since = static_cast<uint64_t>(server.boot_ns.load());
						  server.places[i].until = static_cast<uint64_t>(server.boot_ns.load() + 100 * ns_per_ms);
					  }
					  server.state.queue.length = 5;
				  });
	EXPECT_EQ(take(), Place(1001, 0));
}

TEST_F(QueueTest, a_place_lapses)
{
	/* Its session has ended while it waited. */
	for (size_t i = 10; i < 14; i++)
	{
		server.places[i].since = 1;
		server.places[i].until = static_cast<uint64_t>(server.boot_ns.load() + longest_lateness_ns);
	}
	server.state.queue.length = 4;
	server.state.queue.until = static_cast<uint64_t>(server.boot_ns.load() + longest_lateness_ns);
	server.state.limit |= queued;

	pass_us(longest_lateness_ns / ns_per_us - 3 * tick);
	options().max_wait_ns = 0;
	backend->apply();
	EXPECT_EQ(failure_of(backend->take()), Failure::behind);
	pass_us(2 * tick);
	EXPECT_EQ(take().second, 0);
	EXPECT_EQ(backend->take(4).count, 3);
	EXPECT_FALSE(is_shown());
	EXPECT_EQ(server.state.queue.length, 0u);
}

TEST_F(QueueTest, a_place_that_has_lapsed_counts_no_more_where_others_wait)
{
	/* Of sessions that were stopped, as many as the tick has ids; another's place was good for longer. */
	come_before(4);
	for (size_t i = 1; i <= 4; i++)
		server.places[server.places.size() - i].until = 2;
	server.state.queue.length = 4;
	server.state.queue.until = static_cast<uint64_t>(server.boot_ns.load() + ns_per_s);
	while_waiting(*backend, [&] { EXPECT_EQ(server.state.queue.length, 5u); });
	EXPECT_EQ(take(), Place(1001, 0));
	EXPECT_EQ(waits().size(), 1u);
}

TEST_F(QueueTest, a_place_is_kept_for_the_next_tick_too)
{
	/* It gets up late, and the tick that it waited for is gone. */
	const auto	hog_them = [&] { EXPECT_EQ(take_all(hog), 3); };

	while_waiting(*backend, hog_them, 3 * tick);
	take();
	EXPECT_EQ(waits().size(), 1u);
}

TEST_F(QueueTest, what_was_taken_before_its_place_could_be_seen_is_looked_at_again)
{
	/* The next tick begins while it takes its place: no need to sleep. */
	backend->environment.on_lock = [&] { at(1001); };
	EXPECT_EQ(take(), Place(1001, 0));
	EXPECT_TRUE(waits().empty());
}

TEST_F(QueueTest, leaves_ticks_alone_that_are_not_the_last_that_may_be_used)
{
	/* With max_drift 2 ticks: those who wait have the one after. */
	for (Backend *each : {backend.get(), &hog})
	{
		each->options.max_drift_us = 2 * tick;
		each->apply();
	}
	backend->take(100);
	EXPECT_EQ(backend->take(100).count, 4);

	std::vector<int64_t> runs;

	while_waiting(*backend, [&]
				  {
					  at(1002);
					  runs = {hog.take(100).count, hog.take(100).count};
				  });
	EXPECT_EQ(take(), Place(1004, 2));
	EXPECT_EQ(runs, (std::vector<int64_t>{4, 2}));
}

TEST_F(QueueTest, waits_count_with_what_is_done_between_them)
{
	/* Each tick has to be reserved, which takes 5 ms here, and then others have its ids. */
	options().max_wait_ns = 20 * ns_per_ms;
	options().reserve_ahead_us = tick;
	backend->apply();

	int64_t		start = server.boot_ns;

	backend->environment.on_wait = [&] (int64_t ns)
	{
		pass_us(ns / ns_per_us);
		backend->environment.on_prepare = [&] { pass_us(5 * tick); };
		come_before(4);
	};
	EXPECT_EQ(failure_of(backend->take()), Failure::behind);
	EXPECT_LE(server.boot_ns - start, 26 * ns_per_ms);
}

/*
 * Sessions whose rate is bounded
 */
class Rate : public GeneratorTest
{
protected:
	void set_rate(int64_t rate)
	{
		options().max_session_rate = rate;
		backend->apply();
	}

	/* How many ids are to be had without a wait. */
	int64_t at_once(Backend &from)
	{
		int64_t		count = 0;
		int64_t		max_wait = from.options.max_wait_ns;

		from.options.max_wait_ns = 0;
		from.apply();
		for (Taken taken; (taken = from.take(1000)).failure == Failure::none;)
			count += taken.count;
		from.options.max_wait_ns = max_wait;
		from.apply();
		return count;
	}
};

TEST_F(Rate, begins_with_one_id)
{
	set_rate(100);
	EXPECT_EQ(at_once(*backend), 1);

	/* As does each session. */
	Backend		other(server, layout);

	other.options.max_session_rate = 100;
	other.apply();
	EXPECT_EQ(at_once(other), 1);
}

TEST_F(Rate, is_waited_for)
{
	set_rate(100);
	start_at(1000);
	EXPECT_EQ(take(), Place(1010, 0));
	EXPECT_EQ(take(), Place(1020, 0));
	EXPECT_EQ(waits(), std::vector<int64_t>(2, 10 * ns_per_ms));
}

TEST_F(Rate, is_no_more_than_that_in_a_second_however_long_the_session_slept)
{
	use_layout("timestamp:41 node:10 sequence:12 epoch:2025-01-01");
	set_rate(100);
	start_at(1000);
	pass_us(10 * us_per_s);
	EXPECT_EQ(at_once(*backend), 100);
	pass_us(us_per_s / 2);
	EXPECT_EQ(at_once(*backend), 50);
}

TEST_F(Rate, that_does_not_divide_a_second_is_not_exceeded)
{
	use_layout("timestamp:41 node:4 sequence:18 epoch:2025-01-01");
	set_rate(700000000);
	start_at(1000);
	pass_us(1);
	EXPECT_LE(backend->take(100000).count, 700);
}

TEST_F(Rate, of_a_batch_is_the_same)
{
	int64_t		start = server.boot_ns;
	int64_t		count = 0;

	set_rate(1000);
	while (count < 500)
	{
		Taken		taken = backend->take(1000);

		ASSERT_EQ(failure_of(taken), Failure::none);
		count += taken.count;
	}
	EXPECT_GE(server.boot_ns - start, (count - 1) * ns_per_ms);
	/* It sleeps for several at a time. */
	EXPECT_LE(waits().size(), 200u);
}

TEST_F(Rate, is_an_error_where_the_wait_is_longer_than_may_be_waited)
{
	set_rate(10);
	options().max_wait_ns = 99 * ns_per_ms;
	backend->apply();
	start_at(1000);

	Taken		taken = backend->take();

	EXPECT_EQ(failure_of(taken), Failure::over_rate);
	EXPECT_EQ(taken.excess_ns, 100 * ns_per_ms);
	EXPECT_TRUE(waits().empty());
	options().max_wait_ns = 100 * ns_per_ms;
	backend->apply();
	EXPECT_EQ(take(), Place(1100, 0));
}

TEST_F(Rate, stays_spent_whatever_is_set)
{
	set_rate(10);
	start_at(1000);
	options().max_wait_ns = 0;
	for (int64_t rate : {10, 11, 10})
	{
		set_rate(rate);
		EXPECT_EQ(failure_of(backend->take()), Failure::over_rate);
	}
}

TEST_F(Rate, counts_on_CLOCK_BOOTTIME)
{
	set_rate(10);
	options().max_wait_ns = 0;
	backend->apply();
	start_at(1000);
	/* Setting the clock gains nothing. */
	at(5000);
	EXPECT_EQ(failure_of(backend->take()), Failure::over_rate);
}

TEST_F(Rate, bounds_what_runs_ahead_of_the_clock)
{
	/* A whole hour of drift, and whoever takes it. */
	options().max_drift_us = hour_us;
	set_rate(1000);
	start_at(1000);

	int64_t		start = server.boot_ns;
	int64_t		last = 0;

	while (server.boot_ns - start < 3 * ns_per_s)
	{
		Taken		taken = backend->take(1000000);

		ASSERT_EQ(failure_of(taken), Failure::none);
		last = taken.tick;
	}
	/* 3000 ids, in ticks of four: no further than the clock has come. */
	EXPECT_LE(last, 4000);
}

TEST_F(Rate, of_any_number_is_no_bound)
{
	set_rate(100);
	start_at(1000);
	set_rate(0);
	EXPECT_EQ(backend->take(1000).count, 3);
	EXPECT_EQ(backend->take(1000).count, 4);
}

}  // namespace
