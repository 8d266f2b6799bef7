/*
 * generator_grant_test.cpp
 *		What a registry grants, and takes back.
 */
#include "generator_test.h"

namespace
{

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
	EXPECT_EQ(backend->environment.grant_waits,
			  (std::vector<int64_t>{longest_wait_ns, longest_wait_ns, 50 * ns_per_ms}));

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
	EXPECT_EQ(revoke(), us_of(1001));
}

/* It is called for ids of others, which the next holder of the number must not meet either. */
TEST_F(Revoke, tells_what_was_to_be_passed)
{
	grant(0, 2000);
	EXPECT_EQ(backend->generator.advance_past(1200).failure, Failure::none);
	EXPECT_EQ(revoke(), us_of(1201));
	grant(1300, 2000);
	EXPECT_EQ(backend->generator.advance_past(1100).failure, Failure::none);
	EXPECT_EQ(revoke(), us_of(1201));
	grant(1300, 2000);
	at(1400);
	(void) take();
	EXPECT_EQ(revoke(), us_of(1401));
}

TEST_F(Revoke, tells_of_no_tick_where_nothing_was_issued)
{
	EXPECT_EQ(revoke(), 0);
	grant(0, 2000);
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
	backend->environment.on_prepare = [&] { EXPECT_EQ(revoke(keeper), us_of(1001)); };
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
	backend->environment.on_flush = [&] { EXPECT_EQ(revoke(keeper), us_of(1001)); };
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
	other.environment.on_read_clock = [&] { revoke(keeper); };
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
