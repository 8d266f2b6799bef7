/*
 * generator_ids_test.cpp
 *		Which id comes next.
 */
#include <set>

#include "generator_test.h"

namespace
{

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

TEST_F(NextId, is_had_at_once_only_where_nothing_keeps_the_call_from_it)
{
	/* No claim is held. */
	EXPECT_EQ(backend->generator.take_at_once(), -1);
	start_at(1000);

	const int64_t id = backend->generator.take_at_once();

	EXPECT_EQ(take_apart(layout, id).tick, 1000);
	EXPECT_EQ(take_apart(layout, id).sequence, 1u);
	EXPECT_EQ(take_apart(layout, id).node, server.node);
	EXPECT_EQ(backend->take(4).count, 2);
	/* The tick is filled. */
	EXPECT_EQ(backend->generator.take_at_once(), -1);
	at(1001);
	options().max_session_rate = 1000000;
	backend->apply();
	/* The session's rate is to be asked. */
	EXPECT_EQ(backend->generator.take_at_once(), -1);
	EXPECT_TRUE(waits().empty());
	EXPECT_EQ(take(), Place(1001, 0));
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

}  // namespace
