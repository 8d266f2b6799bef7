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
constexpr RegistryTime settled = {1000, 1000000, 0};
constexpr RegistryTime unsettled = {1000, 1000000, 1};

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

	Granting(const Claim &claim, int64_t wanted_from, const RegistryTime &registry = settled)
		: verdict(decide_grant(claim, registry, me, wanted_from, window, &next, &grant))
	{
	}
};

TEST(Grant, of_a_number_that_nobody_had_starts_anywhere)
{
	Granting	granting(unknown_claim, 500);

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
			Granting	granting(claim_of(holder, 4, 700, false), wanted_from);

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
	EXPECT_EQ(Granting(claim_of(other, 4, 700, true), 500).verdict, Verdict::held);
	EXPECT_EQ(Granting(claim_of(other, 4, 700, true), 500, unsettled).verdict, Verdict::held);
	EXPECT_EQ(Granting(claim_of(other, 4, 700, true), 5000).verdict, Verdict::held);
	EXPECT_EQ(Granting(claim_of(other, 4, 700, false), 500).verdict, Verdict::write);
}

TEST(Grant, is_not_refused_by_a_claim_that_nobody_holds)
{
	EXPECT_EQ(Granting(claim_of(nobody, 4, 700, true), 500).verdict, Verdict::write);
}

TEST(Grant, of_a_number_that_is_ones_own_starts_at_the_fence_too)
{
	/* After a request whose answer is missing. */
	Granting	granting(claim_of(me, 4, 700, true), 500);

	ASSERT_EQ(granting.verdict, Verdict::write);
	EXPECT_EQ(granting.grant.start_us, 700);
	EXPECT_EQ(granting.grant.generation, 5);
}

TEST(Grant, is_refused_until_the_registry_has_settled)
{
	EXPECT_EQ(Granting(unknown_claim, 500, unsettled).verdict, Verdict::unsettled);
	EXPECT_EQ(Granting(claim_of(other, 4, 700, false), 500, unsettled).verdict, Verdict::unsettled);
	EXPECT_EQ(Granting(claim_of(me, 4, 700, true), 500, unsettled).verdict, Verdict::unsettled);
}

TEST(Grant, is_refused_where_its_fence_lies_too_far_ahead)
{
	constexpr RegistryTime strict = {1000, 200, 0};

	EXPECT_EQ(Granting(unknown_claim, 1100, strict).verdict, Verdict::write);
	EXPECT_EQ(Granting(unknown_claim, 1101, strict).verdict, Verdict::too_far);
	EXPECT_EQ(Granting(claim_of(other, 4, 1101, false), 500, strict).verdict, Verdict::too_far);
}

TEST(Grant, is_for_no_longer_than_half_of_what_the_registry_grants)
{
	constexpr RegistryTime strict = {1000, 120, 0};

	EXPECT_EQ(Granting(unknown_claim, 1000, strict).grant.granted_until_us, 1060);
	EXPECT_EQ(Granting(unknown_claim, 1060, strict).verdict, Verdict::write);
	EXPECT_EQ(Granting(unknown_claim, 1061, strict).verdict, Verdict::too_far);
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

	Renewing(const Claim &claim, int64_t position, const Grant &held = held_grant, const RegistryTime &registry = settled,
			 bool is_overdue = false)
		: verdict(decide_renewal(claim, registry, me, position, window, is_overdue, adopted(claim, held), &next, &grant))
	{
	}
};

TEST(Renewal, extends_what_is_held)
{
	Renewing	renewing(claim_of(me, 5, 600, true), 550);

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
	Renewing	behind(claim_of(me, 5, 600, true), 100);

	ASSERT_EQ(behind.verdict, Verdict::write);
	EXPECT_EQ(behind.next.granted_until_us, 600);
	EXPECT_EQ(behind.grant.granted_until_us, 600);

	/* What was granted counts, where the registry knows less. */
	EXPECT_EQ(Renewing(claim_of(me, 4, 550, true), 100).grant.granted_until_us, 600);
	EXPECT_EQ(Renewing(claim_of(me, 4, 550, true), 100).next.granted_until_us, 600);
}

TEST(Renewal, counts_from_the_start_where_the_clock_is_behind_that)
{
	EXPECT_EQ(Renewing(claim_of(me, 5, 510, true), 0, {7, 5, 500, 510, 0, 0}).grant.granted_until_us, 600);
}

TEST(Renewal, goes_on_though_the_registry_held_the_holder_for_dead)
{
	EXPECT_EQ(Renewing(claim_of(me, 5, 600, false), 550).verdict, Verdict::write);
}

TEST(Renewal, goes_on_before_the_registry_has_settled)
{
	EXPECT_EQ(Renewing(claim_of(me, 5, 600, true), 550, held_grant, unsettled).verdict, Verdict::write);
}

TEST(Renewal, that_is_overdue_adds_no_time_until_the_registry_has_settled)
{
	Renewing	early(claim_of(me, 5, 600, true), 580, held_grant, unsettled, true);

	ASSERT_EQ(early.verdict, Verdict::write);
	EXPECT_TRUE(are_equal(early.next, {7, 6, 600, false, 10, me, 0}));
	EXPECT_EQ(early.grant.granted_until_us, 600);
	EXPECT_EQ(Renewing(claim_of(me, 5, 600, true), 580, held_grant, settled, true).grant.granted_until_us, 680);
	EXPECT_EQ(Renewing(claim_of(other, 6, 700, true), 550, held_grant, unsettled, true).verdict, Verdict::held);
}

TEST(Renewal, of_what_is_anothers_is_refused)
{
	for (int64_t generation : {5, 6, 7, 100})
	{
		EXPECT_EQ(Renewing(claim_of(other, generation, 700, true), 550).verdict, Verdict::held);
		EXPECT_EQ(Renewing(claim_of(other, generation, 700, false), 550).verdict, Verdict::held);
		EXPECT_EQ(Renewing(claim_of(nobody, generation, 700, false), 550).verdict, Verdict::held);
		EXPECT_EQ(Renewing(claim_of(nobody, generation, 500, false), 550).verdict, Verdict::held);
		EXPECT_EQ(Renewing(claim_of(other, generation, 700, true), 550, uncertain_grant).verdict, Verdict::held);
		EXPECT_EQ(Renewing(claim_of(other, generation, 400, true), 550, uncertain_grant).verdict, Verdict::held);
	}
}

TEST(Renewal, of_a_copy_of_this_server_is_anothers)
{
	/* Both have the nonce; the other was faster. */
	EXPECT_EQ(Renewing(claim_of(me, 6, 650, true), 560).verdict, Verdict::held);
	EXPECT_EQ(Renewing(claim_of(me, 6, 600, true), 560).verdict, Verdict::held);
	EXPECT_EQ(Renewing(claim_of(me, 7, 650, true), 560, uncertain_grant).verdict, Verdict::held);
	EXPECT_EQ(Renewing(claim_of(me, 6, 651, true), 560, uncertain_grant).verdict, Verdict::held);
}

TEST(Renewal, adopts_a_request_whose_answer_is_missing)
{
	const Claim granted = claim_of(me, 6, 650, true);
	const Grant grant = adopted(granted, uncertain_grant);

	EXPECT_EQ(grant.generation, 6);
	EXPECT_EQ(grant.start_us, 500);
	EXPECT_EQ(grant.granted_until_us, 650);
	EXPECT_EQ(grant.asked_until_us, 0);

	Renewing	renewing(granted, 560, uncertain_grant);

	ASSERT_EQ(renewing.verdict, Verdict::write);
	EXPECT_EQ(renewing.grant.generation, 7);
	EXPECT_EQ(renewing.grant.start_us, 500);
	EXPECT_EQ(renewing.grant.granted_until_us, 660);
	EXPECT_EQ(renewing.grant.asked_until_us, 0);

	/* Or that was not carried out. */
	EXPECT_EQ(Renewing(claim_of(me, 5, 600, true), 560, uncertain_grant).verdict, Verdict::write);
}

TEST(Renewal, adopts_two_requests_whose_answers_are_missing_one_after_another)
{
	Grant		grant = adopted(claim_of(me, 6, 650, true), uncertain_grant);

	grant.asked_until_us = 700;
	EXPECT_EQ(Renewing(claim_of(me, 7, 700, true), 610, grant).verdict, Verdict::write);
}

TEST(Renewal, adopts_nothing_else)
{
	auto		is_adopted = [] (const Claim &claim, const Grant &held) { return adopted(claim, held).generation != held.generation; };

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
	Renewing	renewing(unknown_claim, 100);

	ASSERT_EQ(renewing.verdict, Verdict::write);
	EXPECT_TRUE(are_equal(renewing.next, {7, 6, 600, false, settled.clock_us, me, 0}));
	EXPECT_EQ(renewing.grant.generation, 6);
}

TEST(Renewal, tells_a_registry_that_knows_an_older_state)
{
	/* Of its own. */
	Renewing	own(claim_of(me, 3, 540, false), 100);

	ASSERT_EQ(own.verdict, Verdict::write);
	EXPECT_EQ(own.next.generation, 6);
	EXPECT_EQ(own.next.granted_until_us, 600);
	EXPECT_EQ(own.next.since_us, 10);

	/* Of an earlier holder, whose time ended where this one's began. */
	Renewing	earlier(claim_of(other, 3, 500, false), 560);

	ASSERT_EQ(earlier.verdict, Verdict::write);
	EXPECT_TRUE(are_equal(earlier.next, {7, 6, 660, false, settled.clock_us, me, 0}));
	EXPECT_EQ(Renewing(claim_of(nobody, 3, 400, false), 560).verdict, Verdict::write);
}

TEST(Renewal, does_not_take_what_a_restored_registry_gave_to_another)
{
	/* Its fence lies above the start: it may be issuing there. */
	EXPECT_EQ(Renewing(claim_of(other, 3, 501, true), 560).verdict, Verdict::held);
	EXPECT_EQ(Renewing(claim_of(other, 4, 900, false), 560).verdict, Verdict::held);
	EXPECT_EQ(Renewing(claim_of(nobody, 4, 501, false), 560).verdict, Verdict::held);
	/* Or it may be renewing. */
	EXPECT_EQ(Renewing(claim_of(other, 3, 500, true), 560).verdict, Verdict::held);
	/* In the same generation it is no older state. */
	EXPECT_EQ(Renewing(claim_of(other, 5, 500, false), 560).verdict, Verdict::held);
}

TEST(Renewal, is_refused_where_its_fence_lies_too_far_ahead)
{
	constexpr RegistryTime strict = {1000, 200, 0};

	EXPECT_EQ(Renewing(claim_of(me, 5, 600, true), 1100, held_grant, strict).verdict, Verdict::write);
	EXPECT_EQ(Renewing(claim_of(me, 5, 600, true), 1101, held_grant, strict).verdict, Verdict::too_far);

	/* What is granted already stays. */
	constexpr Grant far = {7, 5, 500, 9000, 0, 0};

	Renewing	renewing(claim_of(me, 5, 9000, true), 1050, far, strict);

	ASSERT_EQ(renewing.verdict, Verdict::write);
	EXPECT_EQ(renewing.grant.granted_until_us, 9000);
	EXPECT_EQ(Renewing(claim_of(me, 5, 9000, true), 8901, far, strict).verdict, Verdict::too_far);
}

TEST(Renewal, is_for_no_longer_than_half_of_what_the_registry_grants)
{
	constexpr RegistryTime strict = {1000, 120, 0};

	EXPECT_EQ(Renewing(claim_of(me, 5, 600, true), 1000, held_grant, strict).grant.granted_until_us, 1060);
}

TEST(Renewal, is_none_of_a_fence_that_another_has_asserted)
{
	Claim		asserted{};

	/* A restored registry knows this holder again; the one that had the number since tells of its time. */
	ASSERT_TRUE(decide_assertion(claim_of(me, 5, 600, true), {7, 9, 600, 800, 0, 0}, &asserted));
	EXPECT_EQ(Renewing(asserted, 560).verdict, Verdict::held);
	EXPECT_EQ(Renewing(asserted, 560, uncertain_grant).verdict, Verdict::held);
	EXPECT_EQ(Renewing(claim_of(me, 3, 601, true), 560).verdict, Verdict::held);

	/* Not even after a keeper that may have asked for anything. */
	EXPECT_EQ(Renewing(asserted, 560, {7, 5, 500, 600, INT64_MAX, 0}).verdict, Verdict::held);
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
	for (const Grant &grant : {Renewing(claim_of(me, 5, 600, true), 550, held_grant, unsettled).grant,
							   Renewing(claim_of(me, 4, 590, true), 550).grant,
							   Renewing(unknown_claim, 550).grant,
							   adopted(claim_of(me, 6, 650, true), uncertain_grant)})
	{
		EXPECT_EQ(grant.told_until_us, 650);
		ASSERT_TRUE(decide_release(claim_of(me, 6, 650, true), me, 530, grant, &next));
		EXPECT_EQ(next.granted_until_us, 650);

		/* Later renewals lie above it. */
		const Grant later = Renewing(claim_of(me, 6, 650, true), 700, grant).grant;

		EXPECT_EQ(later.told_until_us, 650);
		ASSERT_TRUE(decide_release(claim_of(me, 7, 800, true), me, 720, later, &next));
		EXPECT_EQ(next.granted_until_us, 720);
	}
	EXPECT_EQ(Renewing(claim_of(me, 5, 600, true), 550).grant.told_until_us, 0);
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
	EXPECT_EQ(next.generation, 6);
}

TEST(Assertion, is_not_needed_where_the_registry_knows)
{
	Claim		next{};

	EXPECT_FALSE(decide_assertion(claim_of(other, 6, 600, true), held_grant, &next));
	EXPECT_FALSE(decide_assertion(claim_of(other, 6, 700, true), held_grant, &next));
}

/*
 * Whatever is decided, what is written and what is granted agree, and the fence goes
 * back by a release alone.
 */
TEST(Decision, keeps_what_must_hold)
{
	std::mt19937_64 random(1);
	auto		up_to = [&] (int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random); };
	int			written = 0;

	for (int i = 0; i < 200000; i++)
	{
		const Holder &holder = std::vector<const Holder *>{&me, &other, &nobody}[static_cast<size_t>(up_to(2))][0];
		const Claim claim = up_to(9) == 0 ? unknown_claim : claim_of(holder, 1 + up_to(6), up_to(1000), up_to(1) == 0);
		const RegistryTime registry = {up_to(1000), up_to(1000), up_to(2) == 0 ? 1 : 0};
		const int64_t start = up_to(900);
		const int64_t until = start + up_to(200);
		const Grant held = adopted(claim, {7, 1 + up_to(6), start, until, up_to(1) * (until + up_to(200)), 0});
		const int64_t position = up_to(1200);
		Claim		next{};
		Grant		grant{};

		if (decide_grant(claim, registry, me, position, window, &next, &grant) == Verdict::write)
		{
			written++;
			ASSERT_GT(next.generation, claim.generation);
			ASSERT_EQ(grant.generation, next.generation);
			ASSERT_EQ(grant.granted_until_us, next.granted_until_us);
			ASSERT_EQ(grant.start_us, claim.granted_until_us);
			ASSERT_GE(grant.granted_until_us, grant.start_us);
			ASSERT_GE(grant.granted_until_us, position);
			ASSERT_LE(grant.granted_until_us, registry.clock_us + registry.max_forward_jump_us);
		}
		if (decide_renewal(claim, registry, me, position, window, false, held, &next, &grant) == Verdict::write)
		{
			written++;
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
		if (decide_release(claim, me, position, held, &next))
		{
			written++;
			ASSERT_GT(next.generation, claim.generation);
			ASSERT_TRUE(next.holder.is_nobody());
			ASSERT_GE(next.granted_until_us, held.start_us);
			ASSERT_GE(next.granted_until_us, position);
			/* Back only where it is what this server was granted. */
			ASSERT_TRUE(next.granted_until_us >= claim.granted_until_us ||
						(claim.holder.is(me) && claim.granted_until_us <= held.granted_until_us));
		}
		if (decide_assertion(claim, held, &next))
		{
			written++;
			ASSERT_GT(next.generation, claim.generation);
			ASSERT_TRUE(next.holder.is(claim.holder));
			ASSERT_EQ(next.granted_until_us, held.granted_until_us);
			ASSERT_GT(next.granted_until_us, claim.granted_until_us);
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
		: verdict(decide_reservation(claim, registry, me, until, &next))
	{
	}
};

TEST(NumberReservation, of_a_number_that_nobody_had_is_a_claim_without_a_holder)
{
	Reserving	reserving(unknown_claim, 500);

	ASSERT_EQ(reserving.verdict, Verdict::write);
	EXPECT_TRUE(are_equal(reserving.next, {7, 1, 500, false, settled.clock_us, nobody, 0}));
	EXPECT_EQ(reserving.next.holder.port, me.port);
	EXPECT_TRUE(is_reservation(reserving.next));
}

TEST(NumberReservation, lies_below_whatever_is_granted_later)
{
	Reserving	reserving(unknown_claim, 500);
	Granting	granting(reserving.next, 100);

	ASSERT_EQ(granting.verdict, Verdict::write);
	EXPECT_EQ(granting.grant.start_us, 500);
	EXPECT_EQ(granting.grant.granted_until_us, 600);
}

TEST(NumberReservation, is_refused_for_a_number_that_was_ever_claimed)
{
	for (const Holder &holder : {nobody, other, me})
		for (bool is_alive : {false, true})
			for (int64_t until : {500, 700, 900})
				EXPECT_EQ(Reserving(claim_of(holder, 1, 700, is_alive), until).verdict, Verdict::held);
}

TEST(NumberReservation, is_refused_until_the_registry_has_settled)
{
	EXPECT_EQ(Reserving(unknown_claim, 500, unsettled).verdict, Verdict::unsettled);
	EXPECT_EQ(Reserving(claim_of(other, 4, 700, false), 500, unsettled).verdict, Verdict::held);
}

TEST(NumberReservation, is_refused_where_it_lies_too_far_ahead)
{
	constexpr RegistryTime strict = {1000, 200, 0};

	EXPECT_EQ(Reserving(unknown_claim, 1200, strict).verdict, Verdict::write);
	EXPECT_EQ(Reserving(unknown_claim, 1201, strict).verdict, Verdict::too_far);
	EXPECT_EQ(Reserving(unknown_claim, INT64_MAX, strict).verdict, Verdict::too_far);
}

TEST(NumberReservation, is_told_from_all_that_had_a_holder)
{
	Granting	granting(unknown_claim, 500);
	Claim		next{};

	EXPECT_FALSE(is_reservation(unknown_claim));
	EXPECT_FALSE(is_reservation(granting.next));
	ASSERT_TRUE(decide_release(granting.next, me, 400, granting.grant, &next));
	EXPECT_FALSE(is_reservation(next));
	ASSERT_TRUE(decide_release(unknown_claim, me, 400, granting.grant, &next));
	EXPECT_FALSE(is_reservation(next));
	ASSERT_TRUE(decide_assertion(unknown_claim, granting.grant, &next));
	EXPECT_FALSE(is_reservation(next));
}

/*
 * Choosing a number
 */
int64_t
chosen(const std::vector<ListedClaim> &claims, uint64_t max_node, int64_t until = 1000)
{
	uint64_t	node = 12345;

	if (!choose_node(claims.data(), static_cast<int64_t>(claims.size()), max_node, until, &node))
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

TEST(Choice, fits_the_layout)
{
	EXPECT_EQ(chosen({}, 0), 0);
	EXPECT_EQ(chosen({{0, 10, 10, false}}, 0), -1);
	EXPECT_EQ(chosen({{0, 10, 10, false}, {1, 10, 10, false}, {7, 10, 5, true}}, 1), -1);
}

}  // namespace
