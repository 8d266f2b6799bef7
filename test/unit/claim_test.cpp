/*
 * claim_test.cpp
 *		What may become of a claim in a registry.
 *
 * Times are small numbers, in microseconds; the window is 100.
 */
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/claim.h"

using namespace snowflake;

namespace
{

constexpr int64_t window = 100;
constexpr RegistryTime settled = {1000, 1000000, 0, "", false};
constexpr RegistryTime unsettled = {1000, 1000000, 1, "", false};
constexpr RegistryTime other_layout = {1000, 1000000, 0, "another", true};

/* A registry that grants no further than this past its clock, which reads 1000. */
constexpr RegistryTime
strict_by(int64_t max_forward_jump)
{
	return {1000, max_forward_jump, 0, "", false};
}

/* Ids were issued up to there, by a clock that stands at 0; or nothing was, and the clock reads that. */
constexpr Need
issued(int64_t until)
{
	return {0, until, 0};
}

constexpr Need
clock_at(int64_t now)
{
	return {now, 0, 0};
}

Holder
holder_of(const std::string &nonce)
{
	Holder		holder{};

	nonce.copy(holder.nonce, nonce_digits);
	holder.port = 5432;
	return holder;
}

const Holder me = holder_of("1111");
const Holder other = holder_of("2222");
const Holder nobody = holder_of("");

Claim
claim_of(const Holder &holder, int64_t generation, int64_t granted_until, bool is_alive)
{
	return {7, generation, granted_until, is_alive, 10, holder, 0};
}

/* As a store tells of a number that it knows nothing of. */
const Claim unknown_claim = claim_of(nobody, 0, 0, false);

bool
are_equal(const Claim &a, const Claim &b)
{
	return a.node == b.node && a.generation == b.generation && a.granted_until_us == b.granted_until_us &&
		a.since_us == b.since_us && a.holder.is(b.holder);
}

/*
 * A new grant
 */
struct Granting
{
	Claim		next{};
	Grant		grant{};
	Verdict		verdict;

	Granting(const Claim &claim, const Need &need, const RegistryTime &registry = settled)
		: verdict(decide_grant(claim, registry, me, need, window, &next, &grant))
	{
	}
};

TEST(Grant, of_a_number_that_nobody_had_starts_anywhere)
{
	Granting	granting(unknown_claim, issued(500));

	ASSERT_EQ(granting.verdict, Verdict::write);
	EXPECT_TRUE(are_equal(granting.next, {7, 1, 600, false, settled.clock_us, me, 0}));
	EXPECT_EQ(granting.grant.node, 7u);
	EXPECT_EQ(granting.grant.generation, 1);
	EXPECT_EQ(granting.grant.start_us, 0);
	EXPECT_EQ(granting.grant.granted_until_us, 600);
	EXPECT_EQ(granting.grant.asked_until_us, 0);
}

TEST(Grant, starts_at_the_fence_whatever_the_clock)
{
	for (int64_t wanted_from : {100, 700, 699, 701, 5000})
	{
		for (const Holder &holder : {nobody, other, me})
		{
			Granting	granting(claim_of(holder, 4, 700, false), issued(wanted_from));

			ASSERT_EQ(granting.verdict, Verdict::write);
			EXPECT_EQ(granting.grant.start_us, 700);
			EXPECT_EQ(granting.grant.granted_until_us, std::max<int64_t>(wanted_from, 700) + window);
			EXPECT_EQ(granting.grant.generation, 5);
			EXPECT_EQ(granting.next.granted_until_us, granting.grant.granted_until_us);
			EXPECT_EQ(granting.next.generation, 5);
			EXPECT_EQ(granting.next.since_us, settled.clock_us);
			EXPECT_TRUE(granting.next.holder.is(me));
		}
	}
}

TEST(Grant, is_refused_while_another_holder_is_alive)
{
	EXPECT_EQ(Granting(claim_of(other, 4, 700, true), issued(500)).verdict, Verdict::held_by_another);
	EXPECT_EQ(Granting(claim_of(other, 4, 700, true), issued(500), unsettled).verdict, Verdict::held_by_another);
	EXPECT_EQ(Granting(claim_of(other, 4, 700, true), issued(5000)).verdict, Verdict::held_by_another);
	EXPECT_EQ(Granting(claim_of(other, 4, 700, false), issued(500)).verdict, Verdict::write);
}

TEST(Grant, is_not_refused_by_a_claim_that_nobody_holds)
{
	EXPECT_EQ(Granting(claim_of(nobody, 4, 700, true), issued(500)).verdict, Verdict::write);
}

TEST(Grant, of_a_number_that_is_ones_own_starts_at_the_fence_too)
{
	/* After a request whose answer is missing. */
	Granting	granting(claim_of(me, 4, 700, true), issued(500));

	ASSERT_EQ(granting.verdict, Verdict::write);
	EXPECT_EQ(granting.grant.start_us, 700);
	EXPECT_EQ(granting.grant.generation, 5);
}

TEST(Grant, is_refused_until_the_registry_has_settled)
{
	EXPECT_EQ(Granting(unknown_claim, issued(500), unsettled).verdict, Verdict::unsettled);
	EXPECT_EQ(Granting(claim_of(other, 4, 700, false), issued(500), unsettled).verdict, Verdict::unsettled);
	EXPECT_EQ(Granting(claim_of(me, 4, 700, true), issued(500), unsettled).verdict, Verdict::unsettled);
}

TEST(Grant, is_refused_where_its_fence_lies_too_far_ahead)
{
	constexpr RegistryTime strict = strict_by(200);

	EXPECT_EQ(Granting(unknown_claim, issued(1100), strict).verdict, Verdict::write);
	EXPECT_EQ(Granting(unknown_claim, issued(1101), strict).verdict, Verdict::too_far);
	EXPECT_EQ(Granting(claim_of(other, 4, 1101, false), issued(500), strict).verdict, Verdict::too_far);
}

TEST(Grant, is_for_no_longer_than_half_of_what_the_registry_grants)
{
	constexpr RegistryTime strict = strict_by(120);

	EXPECT_EQ(Granting(unknown_claim, issued(1000), strict).grant.granted_until_us, 1060);
	EXPECT_EQ(Granting(unknown_claim, issued(1060), strict).verdict, Verdict::write);
	EXPECT_EQ(Granting(unknown_claim, issued(1061), strict).verdict, Verdict::too_far);
}

TEST(Grant, follows_the_clock_that_is_behind)
{
	/* A clock that is ahead of the registry's leaves no trace by itself. */
	EXPECT_EQ(Granting(unknown_claim, clock_at(900)).grant.granted_until_us, 1000);
	EXPECT_EQ(Granting(unknown_claim, clock_at(1000)).grant.granted_until_us, 1100);
	EXPECT_EQ(Granting(unknown_claim, clock_at(5000)).grant.granted_until_us, 1100);
	EXPECT_EQ(Granting(unknown_claim, clock_at(5000), strict_by(200)).verdict, Verdict::write);
}

TEST(Grant, follows_what_ids_need)
{
	EXPECT_EQ(Granting(unknown_claim, {0, 1500, 0}).grant.granted_until_us, 1600);
	EXPECT_EQ(Granting(unknown_claim, {0, 0, 1500}).grant.granted_until_us, 1600);
	EXPECT_EQ(Granting(unknown_claim, {5000, 1200, 1500}).grant.granted_until_us, 1600);
	EXPECT_EQ(Granting(unknown_claim, {900, 0, 300}).grant.granted_until_us, 1000);
}

TEST(Grant, is_refused_where_the_group_has_another_layout)
{
	EXPECT_EQ(Granting(unknown_claim, issued(500), other_layout).verdict, Verdict::other_layout);
	EXPECT_EQ(Granting(claim_of(other, 4, 700, true), issued(500), other_layout).verdict, Verdict::other_layout);
	EXPECT_EQ(Granting(claim_of(me, 4, 700, true), issued(500), other_layout).verdict, Verdict::other_layout);
}

/*
 * A renewal.  The grant that is held is of generation 5, from 500 to 600; of the
 * uncertain one there was no answer when time up to 650 was asked for.
 */
constexpr Grant held_grant = {7, 5, 500, 600, 0, 0};
constexpr Grant uncertain_grant = {7, 5, 500, 600, 650, 0};

/* The keeper's order: adopt first. */
Grant
adopted(const Claim &claim, Grant held)
{
	adopt(claim, me, &held);
	return held;
}

struct Renewing
{
	Claim		next{};
	Grant		grant{};
	Verdict		verdict;

	Renewing(const Claim &claim, const Need &need, const Grant &held = held_grant, const RegistryTime &registry = settled,
			 bool is_overdue = false)
		: verdict(decide_renewal(claim, registry, me, need, window, is_overdue, adopted(claim, held), &next, &grant))
	{
	}
};

TEST(Renewal, extends_what_is_held)
{
	Renewing	renewing(claim_of(me, 5, 600, true), issued(550));

	ASSERT_EQ(renewing.verdict, Verdict::write);
	EXPECT_TRUE(are_equal(renewing.next, {7, 6, 650, false, 10, me, 0}));
	EXPECT_EQ(renewing.grant.node, 7u);
	EXPECT_EQ(renewing.grant.generation, 6);
	EXPECT_EQ(renewing.grant.start_us, 500);
	EXPECT_EQ(renewing.grant.granted_until_us, 650);
	EXPECT_EQ(renewing.grant.asked_until_us, 0);
}

TEST(Renewal, never_sets_the_fence_back)
{
	Renewing	behind(claim_of(me, 5, 600, true), issued(100));

	ASSERT_EQ(behind.verdict, Verdict::write);
	EXPECT_EQ(behind.next.granted_until_us, 600);
	EXPECT_EQ(behind.grant.granted_until_us, 600);

	/* What was granted counts, where the registry knows less. */
	EXPECT_EQ(Renewing(claim_of(me, 4, 550, true), issued(100)).grant.granted_until_us, 600);
	EXPECT_EQ(Renewing(claim_of(me, 4, 550, true), issued(100)).next.granted_until_us, 600);
}

TEST(Renewal, counts_from_the_start_where_the_clock_is_behind_that)
{
	EXPECT_EQ(Renewing(claim_of(me, 5, 510, true), issued(0), {7, 5, 500, 510, 0, 0}).grant.granted_until_us, 600);
}

TEST(Renewal, goes_on_though_the_registry_held_the_holder_for_dead)
{
	EXPECT_EQ(Renewing(claim_of(me, 5, 600, false), issued(550)).verdict, Verdict::write);
}

TEST(Renewal, goes_on_before_the_registry_has_settled)
{
	EXPECT_EQ(Renewing(claim_of(me, 5, 600, true), issued(550), held_grant, unsettled).verdict, Verdict::write);
}

/* Somebody had taken the generation far ahead before the backup's successor was lost. */
TEST(Renewal, takes_a_step_that_the_registry_admits_however_far_ahead_its_holder_is)
{
	const Claim forgotten = {7, 0, 0, false, 0, {}, 0};
	const int64_t far = 3 * longest_generation_step;
	const Grant held = {7, far, 500, 700, 0, 0};
	const RegistryTime time = {600, 1000, 0, "", false};
	Claim		next{};
	Grant		renewed{};

	ASSERT_EQ(decide_renewal(forgotten, time, me, {600, 0, 0}, 100, false, held, &next, &renewed), Verdict::write);
	EXPECT_EQ(next.generation, longest_generation_step);
	EXPECT_EQ(renewed.generation, next.generation);
	ASSERT_TRUE(decide_release(forgotten, me, 600, held, &next));
	EXPECT_EQ(next.generation, longest_generation_step);
	ASSERT_TRUE(decide_assertion(forgotten, held, &next));
	EXPECT_EQ(next.generation, longest_generation_step);
}

TEST(Renewal, that_is_overdue_adds_no_time_until_the_registry_has_settled)
{
	Renewing	early(claim_of(me, 5, 600, true), issued(580), held_grant, unsettled, true);

	ASSERT_EQ(early.verdict, Verdict::write);
	EXPECT_TRUE(are_equal(early.next, {7, 6, 600, false, 10, me, 0}));
	EXPECT_EQ(early.grant.granted_until_us, 600);
	EXPECT_EQ(Renewing(claim_of(me, 5, 600, true), issued(580), held_grant, settled, true).grant.granted_until_us, 680);
	EXPECT_EQ(Renewing(claim_of(other, 6, 700, true), issued(550), held_grant, unsettled, true).verdict, Verdict::held_by_another);
}

TEST(Renewal, of_what_is_anothers_is_refused)
{
	for (int64_t generation : {5, 6, 7, 100})
	{
		EXPECT_EQ(Renewing(claim_of(other, generation, 700, true), issued(550)).verdict, Verdict::held_by_another);
		EXPECT_EQ(Renewing(claim_of(other, generation, 700, false), issued(550)).verdict, Verdict::held_by_another);
		EXPECT_EQ(Renewing(claim_of(nobody, generation, 700, false), issued(550)).verdict, Verdict::held_by_another);
		EXPECT_EQ(Renewing(claim_of(nobody, generation, 500, false), issued(550)).verdict, Verdict::held_by_another);
		EXPECT_EQ(Renewing(claim_of(other, generation, 700, true), issued(550), uncertain_grant).verdict, Verdict::held_by_another);
		EXPECT_EQ(Renewing(claim_of(other, generation, 400, true), issued(550), uncertain_grant).verdict, Verdict::held_by_another);
	}
}

TEST(Renewal, of_a_copy_of_this_server_is_anothers)
{
	/* Both have the nonce; the other was faster. */
	EXPECT_EQ(Renewing(claim_of(me, 6, 650, true), issued(560)).verdict, Verdict::held_by_another);
	EXPECT_EQ(Renewing(claim_of(me, 6, 600, true), issued(560)).verdict, Verdict::held_by_another);
	EXPECT_EQ(Renewing(claim_of(me, 7, 650, true), issued(560), uncertain_grant).verdict, Verdict::held_by_another);
	EXPECT_EQ(Renewing(claim_of(me, 6, 651, true), issued(560), uncertain_grant).verdict, Verdict::held_by_another);
}

TEST(Renewal, adopts_a_request_whose_answer_is_missing)
{
	const Claim granted = claim_of(me, 6, 650, true);
	const Grant grant = adopted(granted, uncertain_grant);

	EXPECT_EQ(grant.generation, 6);
	EXPECT_EQ(grant.start_us, 500);
	EXPECT_EQ(grant.granted_until_us, 650);
	EXPECT_EQ(grant.asked_until_us, 0);

	Renewing	renewing(granted, issued(560), uncertain_grant);

	ASSERT_EQ(renewing.verdict, Verdict::write);
	EXPECT_EQ(renewing.grant.generation, 7);
	EXPECT_EQ(renewing.grant.start_us, 500);
	EXPECT_EQ(renewing.grant.granted_until_us, 660);
	EXPECT_EQ(renewing.grant.asked_until_us, 0);

	/* Or that was not carried out. */
	EXPECT_EQ(Renewing(claim_of(me, 5, 600, true), issued(560), uncertain_grant).verdict, Verdict::write);
}

TEST(Renewal, adopts_two_requests_whose_answers_are_missing_one_after_another)
{
	Grant		grant = adopted(claim_of(me, 6, 650, true), uncertain_grant);

	grant.asked_until_us = 700;
	EXPECT_EQ(Renewing(claim_of(me, 7, 700, true), issued(610), grant).verdict, Verdict::write);
}

TEST(Renewal, adopts_nothing_else)
{
	auto		is_adopted = [] (const Claim &claim, const Grant &held) {
		return adopted(claim, held).generation != held.generation;
	};

	EXPECT_TRUE(is_adopted(claim_of(me, 6, 600, true), uncertain_grant));
	EXPECT_FALSE(is_adopted(claim_of(me, 6, 599, true), uncertain_grant));
	EXPECT_FALSE(is_adopted(claim_of(me, 6, 651, true), uncertain_grant));
	EXPECT_FALSE(is_adopted(claim_of(me, 6, 650, true), held_grant));
	EXPECT_FALSE(is_adopted(claim_of(me, 5, 650, true), uncertain_grant));
	EXPECT_FALSE(is_adopted(claim_of(me, 7, 650, true), uncertain_grant));
	EXPECT_FALSE(is_adopted(claim_of(other, 6, 650, true), uncertain_grant));
	EXPECT_FALSE(is_adopted(claim_of(nobody, 6, 650, true), uncertain_grant));
}

TEST(Renewal, tells_a_registry_that_has_forgotten_all)
{
	Renewing	renewing(unknown_claim, issued(100));

	ASSERT_EQ(renewing.verdict, Verdict::write);
	EXPECT_TRUE(are_equal(renewing.next, {7, 6, 600, false, settled.clock_us, me, 0}));
	EXPECT_EQ(renewing.grant.generation, 6);
}

TEST(Renewal, tells_a_registry_that_knows_an_older_state)
{
	/* Of its own. */
	Renewing	own(claim_of(me, 3, 540, false), issued(100));

	ASSERT_EQ(own.verdict, Verdict::write);
	EXPECT_EQ(own.next.generation, 6);
	EXPECT_EQ(own.next.granted_until_us, 600);
	EXPECT_EQ(own.next.since_us, 10);

	/* Of an earlier holder, whose time ended where this one's began. */
	Renewing	earlier(claim_of(other, 3, 500, false), issued(560));

	ASSERT_EQ(earlier.verdict, Verdict::write);
	EXPECT_TRUE(are_equal(earlier.next, {7, 6, 660, false, settled.clock_us, me, 0}));
	EXPECT_EQ(Renewing(claim_of(nobody, 3, 400, false), issued(560)).verdict, Verdict::write);
}

TEST(Renewal, does_not_take_what_a_restored_registry_gave_to_another)
{
	/* Its fence lies above the start: it may be issuing there. */
	EXPECT_EQ(Renewing(claim_of(other, 3, 501, true), issued(560)).verdict, Verdict::held_by_another);
	EXPECT_EQ(Renewing(claim_of(other, 4, 900, false), issued(560)).verdict, Verdict::held_by_another);
	EXPECT_EQ(Renewing(claim_of(nobody, 4, 501, false), issued(560)).verdict, Verdict::held_by_another);
	/* Or it may be renewing. */
	EXPECT_EQ(Renewing(claim_of(other, 3, 500, true), issued(560)).verdict, Verdict::held_by_another);
	/* In the same generation it is no older state. */
	EXPECT_EQ(Renewing(claim_of(other, 5, 500, false), issued(560)).verdict, Verdict::held_by_another);
}

TEST(Renewal, is_refused_where_its_fence_lies_too_far_ahead)
{
	constexpr RegistryTime strict = strict_by(200);

	EXPECT_EQ(Renewing(claim_of(me, 5, 600, true), issued(1100), held_grant, strict).verdict, Verdict::write);
	EXPECT_EQ(Renewing(claim_of(me, 5, 600, true), issued(1101), held_grant, strict).verdict, Verdict::too_far);

	/* What is granted already stays. */
	constexpr Grant far = {7, 5, 500, 9000, 0, 0};

	Renewing	renewing(claim_of(me, 5, 9000, true), issued(1050), far, strict);

	ASSERT_EQ(renewing.verdict, Verdict::write);
	EXPECT_EQ(renewing.grant.granted_until_us, 9000);
	EXPECT_EQ(Renewing(claim_of(me, 5, 9000, true), issued(8901), far, strict).verdict, Verdict::too_far);
}

TEST(Renewal, is_for_no_longer_than_half_of_what_the_registry_grants)
{
	constexpr RegistryTime strict = strict_by(120);

	EXPECT_EQ(Renewing(claim_of(me, 5, 600, true), issued(1000), held_grant, strict).grant.granted_until_us, 1060);
}

TEST(Renewal, is_none_of_a_fence_that_another_has_asserted)
{
	Claim		asserted{};

	/* A restored registry knows this holder again; the one that had the number since tells of its time. */
	ASSERT_TRUE(decide_assertion(claim_of(me, 5, 600, true), {7, 9, 600, 800, 0, 0}, &asserted));
	EXPECT_EQ(Renewing(asserted, issued(560)).verdict, Verdict::held_by_another);
	EXPECT_EQ(Renewing(asserted, issued(560), uncertain_grant).verdict, Verdict::held_by_another);
	EXPECT_EQ(Renewing(claim_of(me, 3, 601, true), issued(560)).verdict, Verdict::held_by_another);

	/* Not even after a keeper that may have asked for anything. */
	EXPECT_EQ(Renewing(asserted, issued(560), {7, 5, 500, 600, INT64_MAX, 0}).verdict, Verdict::held_by_another);
}

TEST(Renewal, follows_what_ids_need)
{
	const Claim known = claim_of(me, 5, 600, true);

	/* By the clock that is behind, where no ids are asked for. */
	EXPECT_EQ(Renewing(known, clock_at(5000)).grant.granted_until_us, 1100);
	EXPECT_EQ(Renewing(known, clock_at(800)).grant.granted_until_us, 900);
	EXPECT_EQ(Renewing(known, {5000, 0, 1500}).grant.granted_until_us, 1600);
	EXPECT_EQ(Renewing(known, {800, 1500, 0}).grant.granted_until_us, 1600);
	EXPECT_EQ(Renewing(known, {800, 1200, 1500}).grant.granted_until_us, 1600);

	/* What is demanded too far ahead is refused; without the demand the claim is kept. */
	EXPECT_EQ(Renewing(known, {800, 550, 1101}, held_grant, strict_by(200)).verdict, Verdict::too_far);
	EXPECT_EQ(Renewing(known, {800, 550, 0}, held_grant, strict_by(200)).verdict, Verdict::write);
}

TEST(Renewal, is_refused_where_the_group_has_another_layout)
{
	EXPECT_EQ(Renewing(claim_of(me, 5, 600, true), issued(550), held_grant, other_layout).verdict, Verdict::other_layout);
	EXPECT_EQ(Renewing(claim_of(other, 6, 700, true), issued(550), held_grant, other_layout).verdict, Verdict::other_layout);
}

/*
 * What is left of a grant
 */
TEST(UsedUp, ends_with_what_was_issued)
{
	EXPECT_EQ(used_up(held_grant, 530).granted_until_us, 530);
	EXPECT_EQ(used_up(held_grant, 530).start_us, 500);
	EXPECT_EQ(used_up(held_grant, 530).node, 7u);
	EXPECT_EQ(used_up(held_grant, 0).granted_until_us, 500);
	/* Issued under an earlier claim, or under one of another number. */
	EXPECT_EQ(used_up(held_grant, 700).granted_until_us, 600);
}

TEST(UsedUp, keeps_what_another_has_relied_upon)
{
	EXPECT_EQ(used_up({7, 5, 500, 600, 0, 580}, 530).granted_until_us, 580);
	EXPECT_EQ(used_up({7, 5, 500, 600, 0, 580}, 590).granted_until_us, 590);
	EXPECT_EQ(used_up({7, 5, 500, 600, 650, 600}, 0).granted_until_us, 600);
}

/*
 * A release
 */
TEST(Release, sets_the_fence_back_to_what_was_issued)
{
	Claim		next{};

	ASSERT_TRUE(decide_release(claim_of(me, 5, 600, true), me, 530, held_grant, &next));
	EXPECT_TRUE(are_equal(next, {7, 6, 530, false, 10, nobody, 0}));
}

TEST(Release, sets_the_fence_no_further_back_than_the_start)
{
	Claim		next{};

	ASSERT_TRUE(decide_release(claim_of(me, 5, 600, true), me, 0, held_grant, &next));
	EXPECT_EQ(next.granted_until_us, 500);
}

TEST(Release, of_what_is_anothers_is_none)
{
	Claim		next{};

	EXPECT_FALSE(decide_release(claim_of(other, 5, 600, true), me, 530, held_grant, &next));
	EXPECT_FALSE(decide_release(claim_of(other, 6, 700, true), me, 530, held_grant, &next));
	EXPECT_FALSE(decide_release(claim_of(nobody, 6, 530, false), me, 530, held_grant, &next));
	EXPECT_FALSE(decide_release(claim_of(me, 6, 700, true), me, 530, held_grant, &next));
	EXPECT_FALSE(decide_release(claim_of(other, 4, 700, true), me, 530, held_grant, &next));
}

TEST(Release, follows_a_request_whose_answer_is_missing)
{
	const Claim granted = claim_of(me, 6, 650, true);
	Claim		next{};

	ASSERT_TRUE(decide_release(granted, me, 530, adopted(granted, uncertain_grant), &next));
	EXPECT_TRUE(are_equal(next, {7, 7, 650, false, 10, nobody, 0}));
}

TEST(Release, sets_no_fence_back_that_another_has_asserted)
{
	Claim		next{};
	Claim		asserted{};

	ASSERT_TRUE(decide_assertion(claim_of(me, 5, 600, true), {7, 9, 600, 800, 0, 0}, &asserted));
	for (const Grant &held : {held_grant, uncertain_grant, Grant{7, 5, 500, 600, INT64_MAX, 0}})
		EXPECT_FALSE(decide_release(asserted, me, 530, adopted(asserted, held), &next));
	EXPECT_FALSE(decide_release(claim_of(me, 3, 800, true), me, 530, held_grant, &next));
}

TEST(Release, sets_no_fence_back_that_another_has_relied_upon)
{
	Claim		next{};

	/* Renewed while the registry was unsettled, or in an older state of it: others may have seen the new fence by now. */
	for (const Grant &grant : {Renewing(claim_of(me, 5, 600, true), issued(550), held_grant, unsettled).grant,
							   Renewing(claim_of(me, 4, 590, true), issued(550)).grant,
							   Renewing(unknown_claim, issued(550)).grant,
							   adopted(claim_of(me, 6, 650, true), uncertain_grant)})
	{
		EXPECT_EQ(grant.told_until_us, 650);
		ASSERT_TRUE(decide_release(claim_of(me, 6, 650, true), me, 530, grant, &next));
		EXPECT_EQ(next.granted_until_us, 650);

		/* Later renewals lie above it. */
		const Grant later = Renewing(claim_of(me, 6, 650, true), issued(700), grant).grant;

		EXPECT_EQ(later.told_until_us, 650);
		ASSERT_TRUE(decide_release(claim_of(me, 7, 800, true), me, 720, later, &next));
		EXPECT_EQ(next.granted_until_us, 720);
	}
	EXPECT_EQ(Renewing(claim_of(me, 5, 600, true), issued(550)).grant.told_until_us, 0);
}

/*
 * An assertion
 */
TEST(Assertion, raises_the_fence_of_what_is_anothers)
{
	Claim		next{};

	ASSERT_TRUE(decide_assertion(claim_of(other, 4, 550, true), held_grant, &next));
	EXPECT_EQ(next.granted_until_us, 600);
	EXPECT_TRUE(next.holder.is(other));
	EXPECT_EQ(next.since_us, 10);
}

TEST(Assertion, is_a_change_that_others_notice)
{
	Claim		next{};

	/* Somebody who has read the claim before, and writes it now, must fail; nor does its holder take it for an answer. */
	ASSERT_TRUE(decide_assertion(claim_of(other, 4, 550, true), held_grant, &next));
	EXPECT_EQ(next.generation, 7);
}

TEST(Assertion, is_no_answer_for_a_holder_that_is_ahead_of_a_restored_registry)
{
	Claim		next{};

	/* The row is one generation behind its holder, which has asked for more and has no answer; what was lost came later. */
	const Grant overdue = {7, 5, 500, 600, 900, 0};
	const Grant lost = {7, 6, 600, 800, 0, 0};

	ASSERT_TRUE(decide_assertion(claim_of(me, 4, 590, true), lost, &next));
	EXPECT_GT(next.generation, 6);
	EXPECT_EQ(adopted(next, overdue).generation, overdue.generation);

	/* Or earlier, and the row is the holder's own. */
	ASSERT_TRUE(decide_assertion(claim_of(me, 5, 600, true), {7, 3, 600, 800, 0, 0}, &next));
	EXPECT_EQ(adopted(next, overdue).generation, overdue.generation);
}

TEST(Assertion, is_not_needed_where_the_registry_knows)
{
	Claim		next{};

	EXPECT_FALSE(decide_assertion(claim_of(other, 6, 600, true), held_grant, &next));
	EXPECT_FALSE(decide_assertion(claim_of(other, 6, 700, true), held_grant, &next));
}

/*
 * Whatever is decided, what is written and what is granted agree, and the fence goes
 * back by a release alone.  Each adds to *written what was to be written.
 */
void
check_grant(const Claim &claim, const RegistryTime &registry, const Need &need, int64_t position, int *written)
{
	Claim		next{};
	Grant		grant{};

	if (decide_grant(claim, registry, me, need, window, &next, &grant) != Verdict::write)
		return;
	++*written;
	ASSERT_GT(next.generation, claim.generation);
	ASSERT_EQ(grant.generation, next.generation);
	ASSERT_EQ(grant.granted_until_us, next.granted_until_us);
	ASSERT_EQ(grant.start_us, claim.granted_until_us);
	ASSERT_GE(grant.granted_until_us, grant.start_us);
	ASSERT_GE(grant.granted_until_us, position);
	ASSERT_LE(grant.granted_until_us, registry.clock_us + registry.max_forward_jump_us);
}

void
check_renewal(const Claim &claim, const RegistryTime &registry, const Need &need, const Grant &held, int *written)
{
	Claim		next{};
	Grant		grant{};

	if (decide_renewal(claim, registry, me, need, window, false, held, &next, &grant) != Verdict::write)
		return;
	++*written;
	ASSERT_GT(next.generation, claim.generation);
	ASSERT_GT(next.generation, held.generation);
	ASSERT_EQ(grant.generation, next.generation);
	ASSERT_EQ(grant.granted_until_us, next.granted_until_us);
	ASSERT_EQ(grant.start_us, held.start_us);
	ASSERT_GE(next.granted_until_us, claim.granted_until_us);
	ASSERT_GE(next.granted_until_us, held.granted_until_us);
	ASSERT_TRUE(next.holder.is(me));
	ASSERT_TRUE(grant.granted_until_us <= registry.clock_us + registry.max_forward_jump_us ||
				grant.granted_until_us <= std::max(claim.granted_until_us, held.granted_until_us));
}

void
check_release(const Claim &claim, int64_t issued_until, const Grant &held, int *written)
{
	Claim		next{};

	if (!decide_release(claim, me, issued_until, held, &next))
		return;
	++*written;
	ASSERT_GT(next.generation, claim.generation);
	ASSERT_TRUE(next.holder.is_nobody());
	ASSERT_GE(next.granted_until_us, held.start_us);
	ASSERT_GE(next.granted_until_us, issued_until);
	/* Back only where it is what this server was granted. */
	ASSERT_TRUE(next.granted_until_us >= claim.granted_until_us ||
				(claim.holder.is(me) && claim.granted_until_us <= held.granted_until_us));
}

void
check_assertion(const Claim &claim, const Grant &held, int *written)
{
	Claim		next{};

	if (!decide_assertion(claim, held, &next))
		return;
	++*written;
	ASSERT_GT(next.generation, claim.generation);
	ASSERT_TRUE(next.holder.is(claim.holder));
	ASSERT_EQ(next.granted_until_us, held.granted_until_us);
	ASSERT_GT(next.granted_until_us, claim.granted_until_us);
}

TEST(Decision, keeps_what_must_hold)
{
	std::mt19937_64 random(1);
	auto		up_to = [&] (int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random); };
	int			written = 0;

	for (int i = 0; i < 200000; i++)
	{
		const Holder &holder = std::vector<const Holder *>{&me, &other, &nobody}[static_cast<size_t>(up_to(2))][0];
		const Claim claim = up_to(9) == 0 ? unknown_claim : claim_of(holder, 1 + up_to(6), up_to(1000), up_to(1) == 0);
		const RegistryTime registry = {up_to(1000), up_to(1000), up_to(2) == 0 ? 1 : 0, "", false};
		const int64_t start = up_to(900);
		const int64_t until = start + up_to(200);
		const Grant held = adopted(claim, {7, 1 + up_to(6), start, until, up_to(1) * (until + up_to(200)), 0});
		const Need	need = {up_to(1200), up_to(1) * up_to(1200), up_to(1) * up_to(1200)};
		const int64_t position = std::max({need.issued_until_us, need.demanded_until_us,
										   std::min(need.clock_us, registry.clock_us)});

		check_grant(claim, registry, need, position, &written);
		check_renewal(claim, registry, need, held, &written);
		/* No more was issued than was granted. */
		check_release(claim, std::min(position, held.granted_until_us), held, &written);
		check_assertion(claim, held, &written);
		if (HasFatalFailure())
			return;
	}
	EXPECT_GT(written, 100000);
}

/*
 * What a registry admits
 */
constexpr int64_t furthest = 2000;
constexpr int64_t furthest_of_others = 900;

struct Admitting
{
	int64_t		until = -1;
	Admission	admission;

	Admitting(Form form, const Claim &known, const Holder &writer, int64_t expected, int64_t generation, int64_t wanted,
			  const Bounds &bounds = {furthest, 0})
		: admission(admit(form, known, writer.nonce, expected, generation, wanted, bounds, &until))
	{
	}
};

constexpr Form all_forms[] = {Form::claim, Form::release, Form::assertion};

/* Claims of a generation 4 up to 700. */
const Claim free_claim = claim_of(nobody, 4, 700, false);
const Claim expired_claim = claim_of(other, 4, 700, false);
const Claim own_claim = claim_of(me, 4, 700, true);
const Claim living_claim = claim_of(other, 4, 700, true);

TEST(Admit, compares_the_generation)
{
	for (Form form : all_forms)
	{
		for (const Claim &known : {free_claim, expired_claim, own_claim, living_claim})
		{
			EXPECT_EQ(Admitting(form, known, me, 3, 5, 701).admission, Admission::changed);
			EXPECT_EQ(Admitting(form, known, me, 5, 6, 701).admission, Admission::changed);
			EXPECT_EQ(Admitting(form, known, me, 0, 5, 701).admission, Admission::changed);
		}
		EXPECT_EQ(Admitting(form, unknown_claim, me, 4, 5, 701).admission, Admission::changed);
		EXPECT_EQ(Admitting(form, own_claim, me, 4, 5, 701).admission, Admission::admitted);
		EXPECT_EQ(Admitting(form, unknown_claim, me, 0, 1, 701).admission, Admission::admitted);
	}
}

TEST(Admit, lets_a_generation_grow_and_no_further_than_it_must)
{
	for (Form form : all_forms)
	{
		for (const Claim &known : {free_claim, expired_claim, own_claim})
		{
			EXPECT_EQ(Admitting(form, known, me, 4, 4, 701).admission, Admission::bad_generation);
			EXPECT_EQ(Admitting(form, known, me, 4, 3, 701).admission, Admission::bad_generation);
			EXPECT_EQ(Admitting(form, known, me, 4, -1, 701).admission, Admission::bad_generation);
			EXPECT_EQ(Admitting(form, known, me, 4, 4 + longest_generation_step, 701).admission, Admission::admitted);
			EXPECT_EQ(Admitting(form, known, me, 4, 5 + longest_generation_step, 701).admission, Admission::bad_generation);
			EXPECT_EQ(Admitting(form, known, me, 4, INT64_MAX, 701).admission, Admission::bad_generation);
			EXPECT_EQ(Admitting(form, claim_of(me, -4, 700, true), me, -4, INT64_MAX, 701).admission, Admission::bad_generation);
		}
	}
}

TEST(Admit, a_claim_of_a_number_that_no_living_holder_has)
{
	for (const Claim &known : {free_claim, expired_claim, own_claim, claim_of(nobody, 4, 700, true), claim_of(me, 4, 700, false)})
	{
		EXPECT_EQ(Admitting(Form::claim, known, me, 4, 5, 800).admission, Admission::admitted);
		EXPECT_EQ(Admitting(Form::claim, known, me, 4, 5, 800).until, 800);
		EXPECT_EQ(Admitting(Form::claim, known, me, 4, 5, 700).admission, Admission::admitted);
		EXPECT_EQ(Admitting(Form::claim, known, me, 4, 5, 699).admission, Admission::back);
	}
	EXPECT_EQ(Admitting(Form::claim, living_claim, me, 4, 5, 800).admission, Admission::changed);
	EXPECT_EQ(Admitting(Form::claim, unknown_claim, me, 0, 1, 800).until, 800);
}

TEST(Admit, a_release_by_its_holder_back_to_where_he_says)
{
	for (const Claim &known : {own_claim, claim_of(me, 4, 700, false)})
	{
		EXPECT_EQ(Admitting(Form::release, known, me, 4, 5, 600).admission, Admission::admitted);
		EXPECT_EQ(Admitting(Form::release, known, me, 4, 5, 600).until, 600);
		EXPECT_EQ(Admitting(Form::release, known, me, 4, 5, 800).until, 800);
	}
}

TEST(Admit, a_release_or_an_assertion_that_raises_what_is_free_or_expired)
{
	for (Form form : {Form::release, Form::assertion})
	{
		for (const Claim &known : {free_claim, expired_claim, claim_of(nobody, 4, 700, true)})
		{
			EXPECT_EQ(Admitting(form, known, me, 4, 6, 800).admission, Admission::admitted);
			EXPECT_EQ(Admitting(form, known, me, 4, 6, 800).until, 800);
		}
		EXPECT_EQ(Admitting(form, unknown_claim, me, 0, 2, 800).admission, Admission::admitted);
		EXPECT_EQ(Admitting(form, unknown_claim, me, 0, 2, 800).until, 800);
	}
}

TEST(Admit, a_release_of_what_is_free_or_expired_that_raises_nothing_and_no_such_assertion)
{
	for (const Claim &known : {free_claim, expired_claim, claim_of(nobody, 4, 700, true)})
	{
		EXPECT_EQ(Admitting(Form::release, known, me, 4, 6, 600).admission, Admission::admitted);
		EXPECT_EQ(Admitting(Form::release, known, me, 4, 6, 600).until, 700);
		for (int64_t wanted : {600, 700})
			EXPECT_EQ(Admitting(Form::assertion, known, me, 4, 6, wanted).admission, Admission::back);
	}
}

TEST(Admit, no_release_of_a_living_holders_claim_by_others)
{
	for (int64_t wanted : {600, 700, 800})
		for (const Bounds &bounds : {Bounds{furthest, 0}, Bounds{furthest, furthest_of_others}})
			EXPECT_EQ(Admitting(Form::release, living_claim, me, 4, 5, wanted, bounds).admission, Admission::living);
}

TEST(Admit, a_release_that_gives_back_no_more_than_was_granted)
{
	Claim		known = own_claim;

	known.granted_from_us = 500;
	EXPECT_EQ(Admitting(Form::release, known, me, 4, 5, 500).admission, Admission::admitted);
	EXPECT_EQ(Admitting(Form::release, known, me, 4, 5, 500).until, 500);
	for (int64_t wanted : {int64_t{499}, int64_t{0}, INT64_MIN})
	{
		EXPECT_EQ(Admitting(Form::release, known, me, 4, 5, wanted).admission, Admission::admitted);
		EXPECT_EQ(Admitting(Form::release, known, me, 4, 5, wanted).until, 500);
	}
}

TEST(Admit, an_assertion_on_a_living_holders_claim_while_the_registry_is_unsettled)
{
	constexpr Bounds bounds = {furthest, furthest_of_others};

	EXPECT_EQ(Admitting(Form::assertion, living_claim, me, 4, 6, 900, bounds).admission, Admission::admitted);
	EXPECT_EQ(Admitting(Form::assertion, living_claim, me, 4, 6, 900, bounds).until, 900);
	EXPECT_EQ(Admitting(Form::assertion, living_claim, me, 4, 6, 901, bounds).admission, Admission::living);
	EXPECT_EQ(Admitting(Form::assertion, living_claim, me, 4, 6, 701).admission, Admission::living);

	/* One that raises nothing would end the claim all the same. */
	for (int64_t wanted : {600, 700})
	{
		EXPECT_EQ(Admitting(Form::assertion, living_claim, me, 4, 6, wanted).admission, Admission::back);
		EXPECT_EQ(Admitting(Form::assertion, living_claim, me, 4, 6, wanted, bounds).admission, Admission::back);
	}

	/* It bounds others alone. */
	EXPECT_EQ(Admitting(Form::assertion, own_claim, me, 4, 6, 1500, bounds).admission, Admission::admitted);
	EXPECT_EQ(Admitting(Form::assertion, expired_claim, me, 4, 6, 1500, bounds).admission, Admission::admitted);
}

TEST(Admit, no_fence_further_ahead_than_the_registry_grants)
{
	for (Form form : all_forms)
	{
		for (const Claim &known : {free_claim, expired_claim, own_claim})
		{
			EXPECT_EQ(Admitting(form, known, me, 4, 6, furthest).admission, Admission::admitted);
			EXPECT_EQ(Admitting(form, known, me, 4, 6, furthest + 1).admission, Admission::too_far);
		}
		EXPECT_EQ(Admitting(form, unknown_claim, me, 0, 2, furthest + 1).admission, Admission::too_far);

		/* What lies there already stays there. */
		EXPECT_EQ(Admitting(form, claim_of(me, 4, 5000, true), me, 4, 6, 5000).admission,
				  form == Form::assertion ? Admission::back : Admission::admitted);
		EXPECT_EQ(Admitting(form, claim_of(me, 4, 5000, true), me, 4, 6, 5001).admission, Admission::too_far);
	}
}

TEST(Admit, no_write_of_a_living_holders_claim_by_another_role_that_has_its_nonce)
{
	constexpr Bounds bounds = {furthest, furthest_of_others, true};

	for (Form form : all_forms)
		for (int64_t wanted : {600, 700, 800})
			EXPECT_EQ(Admitting(form, own_claim, me, 4, 5, wanted, bounds).admission, Admission::other_role);
	EXPECT_EQ(Admitting(Form::claim, own_claim, me, 3, 5, 800, bounds).admission, Admission::changed);
}

TEST(Admit, another_role_like_anybody_where_the_holder_is_not_alive)
{
	constexpr Bounds bounds = {furthest, furthest_of_others, true};
	Claim		known = claim_of(me, 4, 700, false);

	known.granted_from_us = 500;
	EXPECT_EQ(Admitting(Form::claim, known, me, 4, 5, 800, bounds).until, 800);
	EXPECT_EQ(Admitting(Form::assertion, known, me, 4, 5, 800, bounds).until, 800);
	EXPECT_EQ(Admitting(Form::release, known, me, 4, 5, 600, bounds).admission, Admission::admitted);
	EXPECT_EQ(Admitting(Form::release, known, me, 4, 5, 600, bounds).until, 700);
	for (const Claim &free : {free_claim, expired_claim, unknown_claim})
		EXPECT_EQ(Admitting(Form::claim, free, me, free.generation, free.generation + 1, 800, bounds).admission,
				  Admission::admitted);
}

/* Whatever servers write, in whatever order, with whatever wrong ideas. */
TEST(Admit, keeps_what_must_hold)
{
	std::mt19937_64 random(2);
	auto		up_to = [&] (int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random); };
	const Holder *const holders[] = {&me, &other, &nobody};
	const Holder *const writers[] = {&me, &other};
	int			admitted[3] = {};

	for (int i = 0; i < 300000; i++)
	{
		const Claim known = up_to(9) == 0 ? unknown_claim : claim_of(*holders[up_to(2)], 1 + up_to(6), up_to(1000), up_to(1) == 0);
		const Holder &writer = *writers[up_to(1)];
		const Form	form = all_forms[up_to(2)];
		const bool	is_settled = up_to(1) == 0;
		const bool	is_others_role = up_to(3) == 0;
		const Bounds bounds = {up_to(1200), is_settled ? 0 : up_to(1200), is_others_role};
		const int64_t expected = up_to(3) == 0 ? up_to(7) : known.generation;
		const int64_t generation = up_to(9) == 0 ? expected + longest_generation_step + up_to(2) - 1 : expected + up_to(4) - 1;
		const int64_t wanted = up_to(1300);
		const Admitting admitting(form, known, writer, expected, generation, wanted, bounds);

		if (admitting.admission != Admission::admitted)
			continue;
		admitted[static_cast<int>(form)]++;

		const bool	is_own = known.holder.is(writer) && !is_others_role;
		const bool	is_living_others = known.is_alive && !known.holder.is_nobody() && !is_own;

		ASSERT_EQ(known.generation, expected);
		ASSERT_GT(generation, known.generation);
		ASSERT_LE(generation - known.generation, longest_generation_step);

		/* What the writer tells is known from then on. */
		ASSERT_GE(admitting.until, wanted);

		/* The fence goes back by its holder's release alone, and is raised no further than the registry allows. */
		if (form != Form::release || !is_own)
		{
			ASSERT_GE(admitting.until, known.granted_until_us);
		}
		ASSERT_LE(admitting.until, std::max(known.granted_until_us, bounds.furthest_us));

		/* A living holder keeps its claim; others raise it while the registry is unsettled, and within bounds. */
		if (is_living_others)
		{
			ASSERT_FALSE(known.holder.is(writer));
			ASSERT_EQ(form, Form::assertion);
			ASSERT_GT(admitting.until, known.granted_until_us);
			ASSERT_LE(admitting.until, std::max(known.granted_until_us, is_settled ? 0 : bounds.furthest_of_others_us));
		}
	}
	for (int count : admitted)
		EXPECT_GT(count, 5000);
}

/* What the rules above decide, a registry that has not changed since admits. */
TEST(Admit, what_was_decided)
{
	std::mt19937_64 random(3);
	auto		up_to = [&] (int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random); };
	const Holder *const holders[] = {&me, &other, &nobody};
	int			written = 0;

	for (int i = 0; i < 300000; i++)
	{
		const Claim known = up_to(9) == 0 ? unknown_claim : claim_of(*holders[up_to(2)], 1 + up_to(6), up_to(1000), up_to(1) == 0);
		const RegistryTime registry = {up_to(1000), up_to(1000), up_to(2) == 0 ? 1 : 0, "", false};
		const int64_t start = up_to(900);
		const int64_t until = start + up_to(200);
		const Grant held = adopted(known, {7, 1 + up_to(6), start, until, up_to(1) * (until + up_to(200)), 0});
		const Need	need = {up_to(1200), up_to(1) * up_to(1200), up_to(1) * up_to(1200)};
		const int64_t issued_until = std::min(up_to(1200), held.granted_until_us);
		const Bounds bounds = {registry.clock_us + registry.max_forward_jump_us, 2000};
		Claim		next{};
		Grant		grant{};

		auto		is_admitted = [&] (Form form)
		{
			const Admitting admitting(form, known, me, known.generation, next.generation, next.granted_until_us, bounds);

			written++;
			return admitting.admission == Admission::admitted && admitting.until == next.granted_until_us;
		};

		if (decide_grant(known, registry, me, need, window, &next, &grant) == Verdict::write)
		{
			ASSERT_TRUE(is_admitted(Form::claim));
		}
		/* But what it holds already may lie further ahead than a registry that was restored believes. */
		if (held.granted_until_us > bounds.furthest_us)
			continue;
		if (decide_renewal(known, registry, me, need, window, up_to(1) == 0, held, &next, &grant) == Verdict::write)
		{
			ASSERT_TRUE(is_admitted(Form::claim));
		}
		if (decide_release(known, me, issued_until, held, &next))
		{
			ASSERT_TRUE(is_admitted(Form::release) || next.granted_until_us < known.granted_until_us);
		}
		if (decide_assertion(known, held, &next))
		{
			ASSERT_TRUE(is_admitted(Form::assertion));
		}
	}
	EXPECT_GT(written, 100000);
}

/*
 * The reservation of a number
 */
struct Reserving
{
	Claim		next{};
	Verdict		verdict;

	Reserving(const Claim &claim, int64_t until, const RegistryTime &registry = settled)
		: verdict(decide_set_aside(claim, registry, me, until, &next))
	{
	}
};

TEST(NumberReservation, of_a_number_that_nobody_had_is_a_claim_without_a_holder)
{
	Reserving	reserving(unknown_claim, 500);

	ASSERT_EQ(reserving.verdict, Verdict::write);
	EXPECT_TRUE(are_equal(reserving.next, {7, 1, 500, false, settled.clock_us, nobody, 0}));
	EXPECT_EQ(reserving.next.holder.port, me.port);
	EXPECT_TRUE(is_set_aside(reserving.next));
}

TEST(NumberReservation, lies_below_whatever_is_granted_later)
{
	Reserving	reserving(unknown_claim, 500);
	Granting	granting(reserving.next, issued(100));

	ASSERT_EQ(granting.verdict, Verdict::write);
	EXPECT_EQ(granting.grant.start_us, 500);
	EXPECT_EQ(granting.grant.granted_until_us, 600);
}

TEST(NumberReservation, is_refused_for_a_number_that_was_ever_claimed)
{
	for (const Holder &holder : {nobody, other, me})
		for (bool is_alive : {false, true})
			for (int64_t until : {500, 700, 900})
				EXPECT_EQ(Reserving(claim_of(holder, 1, 700, is_alive), until).verdict, Verdict::held_by_another);
}

TEST(NumberReservation, is_refused_until_the_registry_has_settled)
{
	EXPECT_EQ(Reserving(unknown_claim, 500, unsettled).verdict, Verdict::unsettled);
	EXPECT_EQ(Reserving(claim_of(other, 4, 700, false), 500, unsettled).verdict, Verdict::held_by_another);
}

TEST(NumberReservation, is_refused_where_the_group_has_another_layout)
{
	EXPECT_EQ(Reserving(unknown_claim, 500, other_layout).verdict, Verdict::other_layout);
}

TEST(NumberReservation, is_refused_where_it_lies_too_far_ahead)
{
	constexpr RegistryTime strict = strict_by(200);

	EXPECT_EQ(Reserving(unknown_claim, 1200, strict).verdict, Verdict::write);
	EXPECT_EQ(Reserving(unknown_claim, 1201, strict).verdict, Verdict::too_far);
	EXPECT_EQ(Reserving(unknown_claim, INT64_MAX, strict).verdict, Verdict::too_far);
}

TEST(NumberReservation, is_told_from_all_that_had_a_holder)
{
	Granting	granting(unknown_claim, issued(500));
	Claim		next{};

	EXPECT_FALSE(is_set_aside(unknown_claim));
	EXPECT_FALSE(is_set_aside(granting.next));
	ASSERT_TRUE(decide_release(granting.next, me, 400, granting.grant, &next));
	EXPECT_FALSE(is_set_aside(next));
	ASSERT_TRUE(decide_release(unknown_claim, me, 400, granting.grant, &next));
	EXPECT_FALSE(is_set_aside(next));
	ASSERT_TRUE(decide_assertion(unknown_claim, granting.grant, &next));
	EXPECT_FALSE(is_set_aside(next));
}

/*
 * Choosing a number
 */
int64_t
chosen(const std::vector<ListedClaim> &claims, uint64_t max_node, int64_t until = 1000, int64_t clock = 1000)
{
	uint64_t	node = 12345;

	if (!choose_node(claims.data(), static_cast<int64_t>(claims.size()), max_node, clock, until, &node))
		return -1;
	return static_cast<int64_t>(node);
}

TEST(Choice, is_the_lowest_number_that_was_never_used)
{
	EXPECT_EQ(chosen({}, 3), 0);
	EXPECT_EQ(chosen({{0, 10, 10, true}}, 3), 1);
	EXPECT_EQ(chosen({{1, 10, 10, true}}, 3), 0);
	EXPECT_EQ(chosen({{0, 10, 10, false}, {1, 10, 10, true}, {3, 10, 10, true}}, 3), 2);
	EXPECT_EQ(chosen({{0, 10, 10, false}, {1, 10, 10, false}, {2, 10, 10, false}}, 3), 3);
}

TEST(Choice, is_else_the_number_that_was_freed_longest_ago)
{
	EXPECT_EQ(chosen({{0, 10, 30, true}, {1, 10, 20, true}}, 1), 1);
	EXPECT_EQ(chosen({{0, 10, 20, true}, {1, 10, 30, true}}, 1), 0);
	EXPECT_EQ(chosen({{0, 10, 30, true}, {1, 10, 20, false}}, 1), 0);
	EXPECT_EQ(chosen({{0, 10, 30, false}, {1, 10, 20, false}}, 1), -1);
}

TEST(Choice, leaves_out_a_number_whose_fence_is_far_ahead)
{
	EXPECT_EQ(chosen({{0, 1001, 20, true}, {1, 1000, 30, true}}, 1), 1);
	EXPECT_EQ(chosen({{0, 1001, 20, true}}, 0), -1);
	EXPECT_EQ(chosen({{0, 1001, 20, true}}, 1), 1);
}

TEST(Choice, is_rather_a_number_whose_fence_does_not_lie_ahead_of_the_clock)
{
	/* Freed longer ago, but it would have to be waited for. */
	EXPECT_EQ(chosen({{0, 501, 20, true}, {1, 500, 30, true}}, 1, 1000, 500), 1);
	EXPECT_EQ(chosen({{0, 500, 30, true}, {1, 501, 20, true}}, 1, 1000, 500), 0);
	EXPECT_EQ(chosen({{0, 500, 20, true}, {1, 400, 30, true}}, 1, 1000, 500), 0);

	/* Where all lie ahead, the one that is reached first, whenever it was freed. */
	EXPECT_EQ(chosen({{0, 800, 20, true}, {1, 700, 30, true}, {2, 900, 10, true}}, 2, 1000, 500), 1);
	EXPECT_EQ(chosen({{0, 700, 30, true}, {1, 700, 20, true}}, 1, 1000, 500), 1);

	/* One that was never used comes before all of them. */
	EXPECT_EQ(chosen({{0, 400, 20, true}}, 1, 1000, 500), 1);
}

TEST(Choice, fits_the_layout)
{
	EXPECT_EQ(chosen({}, 0), 0);
	EXPECT_EQ(chosen({{0, 10, 10, false}}, 0), -1);
	EXPECT_EQ(chosen({{0, 10, 10, false}, {1, 10, 10, false}, {7, 10, 5, true}}, 1), -1);
}

}  // namespace
