/*
 * generator_test.cpp
 *		The generator with a clock that the test drives.
 *
 * Times are relative to the epoch of the layout, in ticks of 1 ms with 4 ids
 * each, unless a test says otherwise.  What may happen in any order is left to
 * the simulation; here is what it looks like from one caller's place.
 */
#include <set>

#include "fake_environment.h"

using namespace snowflake;

namespace
{

constexpr int64_t tick = us_per_ms;

class GeneratorTest : public testing::Test
{
protected:
	GeneratorTest()
	{
		at(1000);
	}

	/* Sets the clock to a tick, and a part of it in us. */
	void at(int64_t tick_number, int64_t us = 0)
	{
		server.set_wall_us(layout.epoch_us + tick_number * layout.tick_us + us);
	}

	/* The same time goes by on all clocks. */
	void pass_us(int64_t us)
	{
		server.boot_ns += us * ns_per_us;
	}

	void use_layout(const char *spec)
	{
		layout = layout_of(spec);
		backend = std::make_unique<Backend>(server, layout);
	}

	/* An id's place: tick, and sequence within it. */
	using Place = std::pair<int64_t, int64_t>;

	/* Takes one id, which must be had; (-1, failure) where it is not. */
	Place take(Backend &from)
	{
		Taken		taken = from.take();

		if (taken.failure != Failure::none)
			return {-1, static_cast<int64_t>(taken.failure)};
		EXPECT_EQ(taken.count, 1);

		const Parts parts = take_apart(layout, taken.id);

		EXPECT_EQ(parts.node, server.node);
		EXPECT_EQ(parts.tick, taken.tick);
		/* I3 */
		EXPECT_LE(tick_begin_us(layout, taken.tick + 1), server.durable_us);
		return {parts.tick, static_cast<int64_t>(parts.sequence)};
	}
	Place take()
	{
		return take(*backend);
	}

	/* What the registry grants from now on, to whoever takes a claim: ticks. */
	void grant(int64_t from, int64_t until)
	{
		server.is_granted = true;
		server.granted_from_us = us_of(from);
		server.granted_until_us = us_of(until);
	}

	/* Takes it back, as the keeper does. */
	int64_t revoke()
	{
		server.is_granted = false;
		return backend->generator.revoke();
	}

	/* The first id's tick begins at or after the clock: gets that over with. */
	void start_at(int64_t tick_number)
	{
		at(tick_number);
		EXPECT_EQ(take(), Place(tick_number, 0));
	}

	Failure failure_of(const Taken &taken)
	{
		EXPECT_TRUE(taken.failure == Failure::none || taken.count == 0);
		return taken.failure;
	}

	int64_t us_of(int64_t tick_number) const
	{
		return tick_begin_us(layout, tick_number);
	}

	uint64_t counter(const std::atomic<uint64_t> &value) const
	{
		return value;
	}

	Layout		layout = layout_of("timestamp:41 node:10 sequence:2 epoch:2025-01-01");
	FakeServer	server;
	std::unique_ptr<Backend> backend = std::make_unique<Backend>(server, layout);
	std::vector<int64_t> &waits()
	{
		return backend->environment.waits;
	}
	Options    &options()
	{
		return backend->options;
	}
};

/*
 * The next id
 */
using NextId = GeneratorTest;

TEST_F(NextId, is_one_more_within_a_tick)
{
	start_at(1000);
	EXPECT_EQ(take(), Place(1000, 1));
	EXPECT_EQ(take(), Place(1000, 2));
	EXPECT_EQ(take(), Place(1000, 3));
	EXPECT_TRUE(waits().empty());
}

TEST_F(NextId, is_in_the_next_tick_where_one_is_filled)
{
	start_at(1000);
	pass_us(300);
	EXPECT_EQ(backend->take(4).count, 3);
	EXPECT_EQ(take(), Place(1001, 0));
	EXPECT_EQ(waits(), std::vector<int64_t>{700 * ns_per_us});
}

TEST_F(NextId, goes_on_at_the_beginning_of_the_tick_after_a_filled_one)
{
	options().sequence_start = SequenceStart::subtick;
	backend->apply();
	start_at(1000);
	backend->take(4);
	at(1001, 900);
	EXPECT_EQ(take(), Place(1001, 0));
}

TEST_F(NextId, follows_the_clock)
{
	start_at(1000);
	at(1700);
	EXPECT_EQ(take(), Place(1700, 0));
}

TEST_F(NextId, starts_where_the_clock_is_in_its_tick)
{
	options().sequence_start = SequenceStart::subtick;
	backend->apply();
	start_at(1000);
	at(1001, 0);
	EXPECT_EQ(take(), Place(1001, 0));
	at(1002, 250);
	EXPECT_EQ(take(), Place(1002, 1));
	at(1003, 749);
	EXPECT_EQ(take(), Place(1003, 2));
	at(1004, 999);
	EXPECT_EQ(take(), Place(1004, 3));
}

TEST_F(NextId, starts_at_zero)
{
	start_at(1000);
	at(1001, 999);
	EXPECT_EQ(take(), Place(1001, 0));
}

TEST_F(NextId, starts_anywhere_in_the_lower_half)
{
	std::set<int64_t> starts;

	use_layout("timestamp:41 node:10 sequence:8 epoch:2025-01-01");
	options().sequence_start = SequenceStart::random;
	backend->apply();
	at(1000);
	take();
	for (int64_t i = 1; i <= 200; i++)
	{
		at(1000 + i, i);
		starts.insert(take().second);
	}
	EXPECT_GE(*starts.begin(), 0);
	EXPECT_LT(*starts.rbegin(), 128);
	EXPECT_GT(starts.size(), 50u);
}

TEST_F(NextId, starts_at_zero_where_half_of_the_sequence_is_one_number)
{
	use_layout("timestamp:41 node:10 sequence:1 epoch:2025-01-01");
	options().sequence_start = SequenceStart::random;
	backend->apply();
	for (int64_t i = 0; i < 20; i++)
	{
		at(1000 + i);
		EXPECT_EQ(take(), Place(1000 + i, 0));
	}
}

TEST_F(NextId, has_the_node_number)
{
	server.node = 1023;
	start_at(1000);
	EXPECT_EQ(take_apart(layout, backend->take().id).node, 1023u);
}

TEST_F(NextId, is_put_together_as_the_layout_says)
{
	use_layout("timestamp:39 sequence:8 machine:16 epoch:2025-01-01");
	start_at(1000);

	Taken		taken = backend->take(10);

	EXPECT_EQ(taken.count, 10);
	EXPECT_EQ(taken.id, compose(layout, {1000, server.node, 1}));
	EXPECT_EQ(next_in_tick(layout, taken.id), compose(layout, {1000, server.node, 2}));
	EXPECT_EQ(backend->take().id, compose(layout, {1000, server.node, 11}));
}

TEST_F(NextId, comes_from_one_word_for_all_backends)
{
	Backend		other(server, layout);

	start_at(1000);
	EXPECT_EQ(take(other), Place(1000, 1));
	EXPECT_EQ(take(), Place(1000, 2));
	EXPECT_EQ(other.environment.claims, 0);
}

/*
 * max_drift
 */
using Drift = GeneratorTest;

TEST_F(Drift, lets_ids_run_ahead_of_the_clock)
{
	options().max_drift_us = 2 * tick;
	backend->apply();
	start_at(1000);
	for (int64_t i = 1; i < 3 * 4; i++)
		EXPECT_EQ(take(), Place(1000 + i / 4, i % 4));
	EXPECT_TRUE(waits().empty());
	EXPECT_EQ(take(), Place(1003, 0));
	EXPECT_EQ(waits(), std::vector<int64_t>{tick * ns_per_us});
}

TEST_F(Drift, counts_whole_ticks)
{
	use_layout("timestamp:41 node:10 sequence:1 tick:10ms epoch:2025-01-01");
	options().max_drift_us = 19 * us_per_ms;
	backend->apply();
	start_at(1000);
	for (int i = 1; i < 4; i++)
		take();
	EXPECT_TRUE(waits().empty());
	EXPECT_EQ(take(), Place(1002, 0));
	EXPECT_EQ(waits(), std::vector<int64_t>{10 * ns_per_ms});
}

TEST_F(Drift, lets_ids_go_on_over_a_clock_that_was_set_back)
{
	options().max_drift_us = 100 * tick;
	backend->apply();
	start_at(1000);
	at(900);
	EXPECT_EQ(take(), Place(1000, 1));
	EXPECT_TRUE(waits().empty());
	at(899);
	EXPECT_EQ(take(), Place(1000, 2));
	EXPECT_EQ(waits(), std::vector<int64_t>{tick * ns_per_us});
}

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

		/* Whenever this call wakes up, others have had all ids of the tick. */
		Backend		others(server, layout);
		size_t		before = waits().size();

		backend->environment.on_wait = [&] (int64_t ns)
		{
			pass_us(ns / ns_per_us);
			if (waits().size() < before + 100)
			{
				EXPECT_EQ(others.take(4).count, 4);
			}
		};

		Taken		taken = backend->take();

		EXPECT_EQ(failure_of(taken), Failure::behind);
		EXPECT_EQ(taken.excess_ns, ns_per_ms);
		EXPECT_EQ(waits().size() - before, static_cast<size_t>(max_wait + 1));
		backend->environment.on_wait = nullptr;
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

/*
 * Several at a time
 */
using Batch = GeneratorTest;

TEST_F(Batch, ends_with_the_tick)
{
	start_at(1000);

	Taken		taken = backend->take(100);

	EXPECT_EQ(taken.count, 3);
	EXPECT_EQ(take_apart(layout, taken.id).sequence, 1u);
	taken = backend->take(100);
	EXPECT_EQ(taken.count, 4);
	EXPECT_EQ(taken.tick, 1001);
	EXPECT_EQ(waits().size(), 1u);
}

TEST_F(Batch, is_no_more_than_wanted)
{
	start_at(1000);
	EXPECT_EQ(backend->take(2).count, 2);
	EXPECT_EQ(take(), Place(1000, 3));
}

/*
 * The newest id
 */
using Newest = GeneratorTest;

TEST_F(Newest, is_unknown_before_the_first_id)
{
	EXPECT_EQ(backend->generator.newest_id(), -1);
	at(-10);
	EXPECT_EQ(failure_of(backend->take()), Failure::epoch_ahead);
	EXPECT_EQ(backend->generator.newest_id(), -1);
	server.written_us = us_of(100000);
	EXPECT_EQ(failure_of(backend->take()), Failure::behind);
	EXPECT_EQ(backend->generator.newest_id(), -1);
}

TEST_F(Newest, is_the_last_one_that_was_issued)
{
	start_at(1000);
	backend->take(3);
	EXPECT_EQ(backend->generator.newest_id(), compose(layout, {1000, server.node, 3}));

	/* Advancing issues nothing. */
	backend->generator.advance_past(1200);
	EXPECT_EQ(backend->generator.newest_id(), compose(layout, {1000, server.node, 3}));
}

/*
 * What a registry grants
 */
using Granted = GeneratorTest;

TEST_F(Granted, nothing_is_no_id)
{
	server.is_granted = false;

	Taken		taken = backend->take();

	EXPECT_EQ(failure_of(taken), Failure::ungranted);
	EXPECT_EQ(taken.now_ns, us_of(1000) * ns_per_us);
	EXPECT_EQ(backend->generator.advance_past(1200).failure, Failure::ungranted);
	EXPECT_TRUE(backend->environment.written.empty());

	/* The lock was given back, and nothing is left of it. */
	grant(0, 2000);
	EXPECT_EQ(take(), Place(1000, 0));
}

TEST_F(Granted, time_is_where_ids_stop)
{
	grant(0, 1002);
	start_at(1000);
	EXPECT_EQ(server.durable_us, us_of(1002));
	at(1001, 999);
	EXPECT_EQ(backend->take(100).count, 4);
	at(1002);

	Taken		taken = backend->take();

	EXPECT_EQ(failure_of(taken), Failure::ungranted);
	EXPECT_EQ(taken.tick, 1002);
	EXPECT_EQ(taken.now_ns, us_of(1002) * ns_per_us);
	at(5000);
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
	EXPECT_EQ(server.durable_us, us_of(1002));
	EXPECT_EQ(counter(server.state.reservations), 1u);
}

TEST_F(Granted, time_counts_in_whole_ticks)
{
	grant(0, 1002);
	server.granted_until_us = us_of(1002) - 1;
	start_at(1000);
	EXPECT_EQ(counter(server.state.granted), 1001u);
	at(1001);
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
	backend->generator.extend(us_of(1003) - 1);
	EXPECT_EQ(take(), Place(1001, 0));
	at(1002);
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
}

TEST_F(Granted, time_may_end_before_the_layout_begins_or_after_it_ends)
{
	use_layout("timestamp:11 node:10 sequence:2 epoch:2025-01-01");
	grant(0, 0);
	server.granted_until_us = 1000;
	at(1000);
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
	server.granted_until_us = us_of(1000000);
	EXPECT_EQ(take(), Place(1000, 0));
	at(2047);
	EXPECT_EQ(take(), Place(2047, 0));
	backend->take(4);
	EXPECT_EQ(failure_of(backend->take()), Failure::exhausted);
	EXPECT_EQ(server.durable_us, us_of(2048));
}

TEST_F(Granted, time_that_is_all_reserved_is_not_reserved_again)
{
	grant(0, 1100);
	start_at(1000);
	for (int64_t i = 1001; i < 1100; i++)
	{
		at(i);
		EXPECT_EQ(take(), Place(i, 0));
	}
	EXPECT_EQ(counter(server.state.reservations), 1u);
	EXPECT_EQ(backend->environment.flushes, 1);
}

TEST_F(Granted, time_that_is_extended_is_reserved_ahead)
{
	grant(0, 1100);
	start_at(1000);
	at(1050);
	backend->generator.extend(us_of(1200));
	EXPECT_EQ(take(), Place(1050, 0));
	EXPECT_EQ(backend->environment.written, (std::vector<int64_t>{us_of(1100), us_of(1200)}));
	backend->generator.extend(us_of(3000));
	at(1060);
	EXPECT_EQ(take(), Place(1060, 0));
	EXPECT_EQ(server.durable_us, us_of(1560));
	EXPECT_EQ(backend->environment.claims, 1);
}

TEST_F(Granted, time_is_never_made_less_by_extending_it)
{
	options().reserve_ahead_us = 10 * us_per_ms;
	backend->apply();
	grant(0, 1100);
	start_at(1000);
	backend->generator.extend(us_of(1050));
	at(1099);
	EXPECT_EQ(take(), Place(1099, 0));
}

TEST_F(Granted, time_is_what_ids_that_run_ahead_stop_at)
{
	options().max_drift_us = 100 * tick;
	backend->apply();
	grant(0, 1003);
	start_at(1000);
	for (int64_t i = 1; i < 3 * 4; i++)
		EXPECT_EQ(take(), Place(1000 + i / 4, i % 4));
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
	EXPECT_TRUE(waits().empty());
}

TEST_F(Granted, time_that_starts_ahead_of_the_clock_is_waited_for)
{
	grant(1050, 2000);
	EXPECT_EQ(take(), Place(1050, 0));
	EXPECT_EQ(waits(), std::vector<int64_t>{50 * ns_per_ms});
}

TEST_F(Granted, time_that_starts_too_far_ahead_of_the_clock_is_refused)
{
	options().max_wait_ns = 49 * ns_per_ms;
	backend->apply();
	grant(1050, 2000);

	Taken		taken = backend->take();

	EXPECT_EQ(failure_of(taken), Failure::behind);
	EXPECT_EQ(taken.tick, 1050);
	EXPECT_EQ(taken.excess_ns, 50 * ns_per_ms);
	EXPECT_TRUE(backend->environment.grant_waits.empty());
}

TEST_F(Granted, time_starts_with_a_whole_tick)
{
	grant(1050, 2000);
	server.granted_from_us++;
	EXPECT_EQ(take(), Place(1051, 0));
}

TEST_F(Granted, time_below_the_durable_limit_is_not_used)
{
	server.written_us = us_of(1300);
	grant(1050, 2000);
	EXPECT_EQ(take(), Place(1300, 0));
	EXPECT_EQ(server.durable_us, us_of(1800));
}

TEST_F(Granted, time_that_a_wrong_clock_does_not_reach_is_there_when_it_is_put_right)
{
	grant(0, 1200);
	at(5000);
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
	at(1100);
	EXPECT_EQ(take(), Place(1100, 0));
}

TEST_F(Granted, time_that_ends_below_the_durable_limit_is_none)
{
	server.written_us = us_of(1300);
	grant(0, 1200);
	at(1300);
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
	EXPECT_TRUE(backend->environment.written.empty());
	grant(0, 1400);
	EXPECT_EQ(take(), Place(1300, 0));
}

/*
 * Waiting for the registry
 */
using WaitForGrant = GeneratorTest;

TEST_F(WaitForGrant, takes_up_to_max_wait)
{
	options().max_wait_ns = 250 * ns_per_ms;
	backend->apply();
	server.is_granted = false;
	backend->environment.on_wait_for_grant = [&] (int64_t ns) { pass_us(ns / ns_per_us); };
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
	EXPECT_EQ(backend->environment.grant_waits, (std::vector<int64_t>{longest_wait_ns, longest_wait_ns, 50 * ns_per_ms}));

	backend->environment.grant_waits.clear();
	EXPECT_EQ(backend->generator.advance_past(2000).failure, Failure::ungranted);
	EXPECT_EQ(backend->environment.grant_waits.size(), 3u);
}

TEST_F(WaitForGrant, is_not_made_where_there_is_no_time_for_it)
{
	options().max_wait_ns = 0;
	backend->apply();
	server.is_granted = false;
	backend->environment.on_wait_for_grant = [&] (int64_t) { pass_us(1); };
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
	EXPECT_TRUE(backend->environment.grant_waits.empty());

	/* But the next call may have it. */
	EXPECT_EQ(backend->environment.grants_wanted.size(), 1u);
}

TEST_F(WaitForGrant, ends_where_it_is_not_worth_it)
{
	server.is_granted = false;
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
	EXPECT_EQ(backend->environment.grant_waits.size(), 1u);
}

TEST_F(WaitForGrant, ends_with_the_grant)
{
	server.is_granted = false;
	backend->environment.on_wait_for_grant = [&] (int64_t)
	{
		pass_us(30 * us_per_ms);
		if (backend->environment.grant_waits.size() == 2)
			grant(0, 2000);
	};
	EXPECT_EQ(take(), Place(1060, 0));
}

TEST_F(WaitForGrant, ends_when_the_grant_is_extended)
{
	Backend		keeper(server, layout);

	grant(0, 1001);
	start_at(1000);
	at(1001);
	backend->environment.on_wait_for_grant = [&] (int64_t)
	{
		pass_us(5 * us_per_ms);
		keeper.generator.extend(us_of(2000));
	};
	EXPECT_EQ(take(), Place(1006, 0));
	EXPECT_EQ(backend->environment.grant_waits.size(), 1u);
}

TEST_F(WaitForGrant, says_up_to_where_time_is_needed)
{
	grant(0, 1002);
	start_at(1001);
	at(1002);
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
	EXPECT_EQ(backend->environment.grants_wanted, std::vector<int64_t>{us_of(1003)});
}

TEST_F(WaitForGrant, counts_what_the_clock_was_waited_for)
{
	options().max_wait_ns = 60 * ns_per_ms;
	backend->apply();
	grant(1050, 1050);
	backend->environment.on_wait_for_grant = [&] (int64_t ns) { pass_us(ns / ns_per_us); };
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
	EXPECT_EQ(waits(), std::vector<int64_t>{50 * ns_per_ms});
	EXPECT_EQ(backend->environment.grant_waits, std::vector<int64_t>{10 * ns_per_ms});
}

TEST_F(WaitForGrant, is_not_made_for_another_failure)
{
	start_at(1000);
	server.set_wall_us(us_of(1000) + 10 * year_us);
	EXPECT_EQ(failure_of(backend->take()), Failure::forward_jump);
	EXPECT_TRUE(backend->environment.grant_waits.empty());
}

/*
 * revoke()
 */
using Revoke = GeneratorTest;

TEST_F(Revoke, ends_the_claim)
{
	grant(0, 2000);
	start_at(1000);
	revoke();
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
	EXPECT_EQ(backend->generator.advance_past(1200).failure, Failure::ungranted);
	backend->generator.extend(us_of(3000));
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
}

TEST_F(Revoke, tells_the_end_of_the_newest_tick)
{
	grant(0, 2000);
	start_at(1000);
	EXPECT_EQ(revoke(), us_of(1001));

	/* Again, and after a claim that has issued nothing. */
	EXPECT_EQ(revoke(), us_of(1001));
	grant(1500, 2000);
	EXPECT_EQ(backend->generator.advance_past(1600).failure, Failure::none);
	EXPECT_EQ(revoke(), us_of(1001));
}

TEST_F(Revoke, tells_of_no_tick_where_nothing_was_issued)
{
	EXPECT_EQ(revoke(), 0);
	grant(0, 2000);
	EXPECT_EQ(backend->generator.advance_past(1200).failure, Failure::none);
	EXPECT_EQ(revoke(), 0);
}

TEST_F(Revoke, leaves_a_next_claim_of_another_node)
{
	grant(0, 2000);
	start_at(1000);
	revoke();
	server.node = 9;
	grant(0, 3000);
	/* Above what was issued and what was reserved. */
	EXPECT_EQ(take(), Place(1500, 0));
	EXPECT_EQ(take_apart(layout, backend->take().id).node, 9u);
}

TEST_F(Revoke, leaves_a_next_claim_that_starts_where_it_is_granted)
{
	grant(0, 1100);
	start_at(1000);
	revoke();
	grant(1700, 1800);
	EXPECT_EQ(take(), Place(1700, 0));
	EXPECT_EQ(server.durable_us, us_of(1800));
}

TEST_F(Revoke, leaves_nothing_of_the_grant_that_was_greater)
{
	grant(0, 2000);
	start_at(1000);
	revoke();
	grant(0, 1502);
	EXPECT_EQ(take(), Place(1500, 0));
	at(1502);
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
	EXPECT_EQ(server.durable_us, us_of(1502));
}

TEST_F(Revoke, comes_before_a_reservation_is_written)
{
	Backend		keeper(server, layout);

	grant(0, 5000);
	start_at(1000);
	at(1600);
	backend->environment.on_prepare = [&]
	{
		EXPECT_EQ(keeper.generator.revoke(), us_of(1001));
		server.is_granted = false;
	};
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
	EXPECT_EQ(backend->environment.written, std::vector<int64_t>{us_of(1500)});
	EXPECT_LE(counter(server.state.limit), 1500u);
}

TEST_F(Revoke, comes_before_a_reservation_is_published)
{
	Backend		keeper(server, layout);

	grant(0, 5000);
	start_at(1000);
	at(1600);
	backend->environment.on_flush = [&]
	{
		EXPECT_EQ(keeper.generator.revoke(), us_of(1001));
		server.is_granted = false;
	};
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
	EXPECT_LE(counter(server.state.limit), 1500u);
	EXPECT_EQ(server.durable_us, us_of(2100));
}

TEST_F(Revoke, with_a_next_claim_comes_before_a_reservation_is_published)
{
	Backend		keeper(server, layout);

	/* The next grant ends below what is being reserved: ids above it are none of its own. */
	options().reserve_ahead_us = 50 * us_per_ms;
	backend->apply();
	keeper.options = options();
	keeper.apply();
	grant(0, 5000);
	start_at(1000);
	at(1060);
	backend->environment.on_flush = [&]
	{
		keeper.generator.revoke();
		/* As by somebody who drops what the limit is kept in, so that the claim starts below it. */
		server.written_us = us_of(1050);
		grant(1060, 1065);
		EXPECT_EQ(take(keeper), Place(1060, 0));
		EXPECT_EQ(counter(server.state.limit), 1065u);
	};
	EXPECT_EQ(backend->take().tick, 1060);
	EXPECT_EQ(counter(server.state.limit), 1065u);
	at(1065);
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
}

TEST_F(Revoke, with_a_next_claim_comes_after_a_limit_was_chosen_by_the_earlier_grant)
{
	Backend		keeper(server, layout);
	Backend		other(server, layout);

	grant(0, 5000);
	start_at(1000);
	at(1600);
	/* The first reading comes after the word was looked at, and before the claims are counted. */
	other.environment.on_read_clock = [&] { keeper.generator.revoke(); };
	other.environment.on_prepare = [&]
	{
		grant(1600, 1605);
		EXPECT_EQ(take(keeper), Place(1600, 0));
	};
	EXPECT_EQ(take(other), Place(1600, 1));
	EXPECT_EQ(other.environment.written, std::vector<int64_t>{us_of(2100)});
	EXPECT_EQ(counter(server.state.limit), 1605u);
	at(1605);
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
}

TEST_F(Revoke, with_a_next_claim_comes_before_a_limit_that_was_published_by_the_earlier_grant)
{
	Backend		keeper(server, layout);
	Backend		other(server, layout);

	/* As above, but published before the next claim; and the limit that was made durable gets lost. */
	grant(0, 5000);
	start_at(1000);
	at(1600);
	other.environment.on_read_clock = [&]
	{
		keeper.generator.revoke();
		server.is_granted = false;
	};
	EXPECT_EQ(failure_of(other.take()), Failure::ungranted);
	EXPECT_EQ(other.environment.written, std::vector<int64_t>{us_of(2100)});
	server.written_us = 0;
	grant(1600, 1605);
	EXPECT_EQ(take(), Place(1600, 0));
	EXPECT_EQ(counter(server.state.limit), 1605u);
}

TEST_F(Revoke, with_a_next_claim_leaves_no_time_where_none_is_granted)
{
	options().reserve_ahead_us = 1 * us_per_ms;
	backend->apply();
	grant(0, 5000);
	start_at(1000);
	EXPECT_EQ(revoke(), us_of(1001));

	/* It ends where it starts: the word is held, and nothing may be issued. */
	at(1001);
	grant(1001, 1001);
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
	EXPECT_EQ(counter(server.state.limit), 1001u);
	EXPECT_EQ(revoke(), us_of(1001));
}

TEST_F(Revoke, lets_time_be_reserved_ahead_as_before)
{
	grant(0, 9000);
	start_at(1000);
	at(1250);
	take();
	revoke();
	grant(2000, 9000);
	at(2000);
	EXPECT_EQ(take(), Place(2000, 0));
	at(2250);
	EXPECT_EQ(take(), Place(2250, 0));
	EXPECT_EQ(server.durable_us, us_of(2750));
}

TEST_F(Revoke, forgets_nothing_of_the_clock)
{
	grant(0, 5000);
	start_at(1000);
	revoke();
	server.set_wall_us(us_of(1000) + 10 * year_us);
	server.is_granted = true;
	server.granted_until_us = INT64_MAX;
	EXPECT_EQ(failure_of(backend->take()), Failure::forward_jump);
}

/*
 * advance_past() and set_reserved_until() with a grant
 */
using MovedGrant = GeneratorTest;

TEST_F(MovedGrant, is_not_advanced_beyond_its_end)
{
	grant(0, 1200);
	start_at(1000);

	Taken		taken = backend->generator.advance_past(1200);

	EXPECT_EQ(taken.failure, Failure::past_grant);
	EXPECT_EQ(taken.tick, 1200);
	EXPECT_EQ(backend->environment.written, std::vector<int64_t>{us_of(1200)});
	EXPECT_EQ(take(), Place(1000, 1));
	EXPECT_TRUE(backend->environment.grant_waits.empty());
}

TEST_F(MovedGrant, can_be_advanced_up_to_its_end)
{
	grant(0, 1200);
	start_at(1000);
	EXPECT_EQ(backend->generator.advance_past(1199).failure, Failure::none);
	EXPECT_EQ(server.durable_us, us_of(1200));
	at(1200);
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
	backend->generator.extend(us_of(1300));
	EXPECT_EQ(take(), Place(1200, 0));
}

TEST_F(MovedGrant, is_advanced_anew_where_it_was_revoked_meanwhile)
{
	Backend		keeper(server, layout);

	grant(0, 1600);
	start_at(1000);
	backend->environment.on_flush = [&]
	{
		keeper.generator.revoke();
		server.node = 9;
		grant(0, 1550);
	};
	EXPECT_EQ(backend->generator.advance_past(1580).failure, Failure::past_grant);
	EXPECT_EQ(counter(server.state.limit), 1581u);
	at(1581);
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
}

TEST_F(MovedGrant, counts_with_a_limit_that_is_set)
{
	grant(1000, 1200);
	start_at(1000);

	/* Back, but not below what is granted. */
	EXPECT_EQ(backend->generator.set_reserved_until(us_of(1001)).failure, Failure::none);
	EXPECT_EQ(take(), Place(1001, 0));
	EXPECT_EQ(server.durable_us, us_of(1200));

	/* Forward, past what is granted. */
	EXPECT_EQ(backend->generator.set_reserved_until(us_of(1300)).failure, Failure::none);
	at(1300);
	EXPECT_EQ(failure_of(backend->take()), Failure::ungranted);
	grant(1000, 1301);
	EXPECT_EQ(take(), Place(1300, 0));
}

TEST_F(MovedGrant, starts_above_a_limit_that_was_set_below_it)
{
	grant(1100, 1200);
	EXPECT_EQ(backend->generator.set_reserved_until(us_of(900)).failure, Failure::none);
	EXPECT_EQ(take(), Place(1100, 0));
}

}  // namespace
