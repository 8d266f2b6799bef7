/*
 * keeper_test.cpp
 *		The keeper's turns, with a registry that the test drives.
 *
 * The clocks stand still unless the test moves them.  The window is 30 s.
 */
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/keeper.h"

using namespace snowflake;

namespace
{

constexpr int64_t window = 30 * us_per_s;
constexpr int64_t start_of_time = 1000000 * us_per_s;
constexpr uint64_t highest_node = 3;

Holder
holder_of(const std::string &nonce)
{
	Holder		holder{};

	nonce.copy(holder.nonce, nonce_digits);
	return holder;
}

const Holder me = holder_of("1111");
const Holder other = holder_of("2222");

/*
 * A server and its registry.  What the keeper does is written down as words, in
 * order: "read", "write", "publish" and so on.
 */
struct World
{
	/* The server */
	int64_t		boot = 100 * us_per_s;
	int64_t		clock = start_of_time;
	int64_t		issued = 0;
	int64_t		durable = 0;
	int64_t		demanded = 0;
	int64_t		window_now = window;
	bool		is_automatic = false;
	uint64_t	highest_now = highest_node;
	std::vector<std::string> done;
	Grant		published{};
	bool		is_usable = false;
	LostGrants	lost_grants{};
	int64_t		extended = 0;

	/* What was shown last */
	ClaimState	state = ClaimState::none;
	Trouble::Kind trouble = Trouble::Kind::none;
	Verdict		verdict = Verdict::write;
	int			losses = 0;
	int			refusals = 0;

	/* The registry */
	std::map<uint64_t, Claim> claims;
	RegistryTime time = {start_of_time, 3600 * us_per_s, 0, "", false};
	bool		is_reachable = true;
	bool		is_list_broken = false;
	std::deque<Written> answers;	/* to the next writes */
	bool		is_written = false; /* what gets the answer "unknown" is written all the same */
	std::function<void()> before_write = [] {};
	Form		last_form = Form::claim;
	std::vector<ListedClaim> listed;

	int64_t boot_us() noexcept
	{
		return boot;
	}
	int64_t durable_us() noexcept
	{
		return durable;
	}
	int64_t clock_us() noexcept
	{
		return clock;
	}
	int64_t issued_until_us() noexcept
	{
		return issued;
	}
	int64_t take_demand_us() noexcept
	{
		return std::exchange(demanded, 0);
	}
	int64_t window_us() noexcept
	{
		return window_now;
	}
	double random() noexcept
	{
		return 0.999;
	}
	bool fixed_node(uint64_t *node) noexcept
	{
		*node = 2;
		return !is_automatic;
	}
	uint64_t max_node() noexcept
	{
		return highest_now;
	}

	bool connect(Problem *) noexcept
	{
		done.push_back("connect");
		return is_reachable;
	}
	void disconnect() noexcept
	{
		done.push_back("disconnect");
	}
	bool read(uint64_t node, Claim *claim, RegistryTime *registry, Problem *) noexcept
	{
		done.push_back("read");
		claims.try_emplace(node, Claim{node, 0, 0, false, 0, {}, 0});
		*claim = claims[node];
		*registry = time;
		return is_reachable;
	}
	bool list(const ListedClaim **found, int64_t *count, Problem *) noexcept
	{
		done.push_back("list");
		listed.clear();
		for (const auto &[node, claim] : claims)
		{
			if (claim.generation > 0)
				listed.push_back({node, claim.granted_until_us, 0, claim.holder.is_nobody() || !claim.is_alive});
		}
		*found = listed.data();
		*count = static_cast<int64_t>(listed.size());
		return is_reachable && !is_list_broken;
	}
	Written write(Form form, const Claim &before, const Claim &next, Problem *) noexcept
	{
		Written		answer = is_reachable ? Written::done : Written::unknown;

		done.push_back(form == Form::claim ? "write" : form == Form::release ? "release" : "assert");
		last_form = form;
		before_write();
		if (!answers.empty())
		{
			answer = answers.front();
			answers.pop_front();
		}
		else if (claims[next.node].generation != before.generation)
			answer = Written::changed;
		if (answer == Written::done || (answer == Written::unknown && is_written))
		{
			claims[next.node] = next;
			claims[next.node].is_alive = form == Form::claim || (form == Form::assertion && before.is_alive);
		}
		return answer;
	}

	void publish(const Grant &grant) noexcept
	{
		done.push_back("publish");
		published = grant;
		is_usable = true;
	}
	void remember(const Grant &grant) noexcept
	{
		done.push_back("remember");
		published = grant;
	}
	void withdraw() noexcept
	{
		done.push_back("withdraw");
		is_usable = false;
	}
	void keep_lost(const LostGrants &lost) noexcept
	{
		lost_grants = lost;
	}
	int64_t revoke() noexcept
	{
		done.push_back("revoke");
		return issued;
	}
	void extend(int64_t until) noexcept
	{
		done.push_back("extend");
		extended = until;
	}
	void show(ClaimState now, const Grant &, const Trouble &why) noexcept
	{
		state = now;
		trouble = why.kind;
		verdict = why.verdict;
	}
	void lost(const Grant &, const Claim &) noexcept
	{
		state = ClaimState::lost;
		losses++;
	}
	void assertion_refused(const Grant &, const Problem &) noexcept
	{
		refusals++;
	}
};

struct Keeping : testing::Test
{
	World		world;
	Keeper<World> keeper{world};

	Keeping()
	{
		keeper.begin(me, ClaimState::none, {}, false, {});
	}

	/* Another keeper goes on with what this one has left. */
	void begin_again()
	{
		keeper.begin(me, world.state, world.published, world.is_usable, world.lost_grants);
	}

	/* What a turn did, in order. */
	std::vector<std::string> turn()
	{
		world.done.clear();
		keeper.take_turn();
		return world.done;
	}

	int64_t pause()
	{
		return keeper.next_turn_us() - world.boot;
	}

	/* Goes on to the next turn. */
	std::vector<std::string> next_turn()
	{
		const int64_t by = std::max<int64_t>(pause(), 0);

		world.boot += by;
		world.clock += by;
		world.time.clock_us += by;
		return turn();
	}

	Claim &row()
	{
		return world.claims[2];
	}

	/* Another holder has the number, from the fence on. */
	void give_to_other(int64_t granted_until)
	{
		row() = {2, row().generation + 1, granted_until, true, 0, other, 0};
	}

	static bool contains(const std::vector<std::string> &words, const std::string &word)
	{
		return std::find(words.begin(), words.end(), word) != words.end();
	}
};

using Words = std::vector<std::string>;

TEST_F(Keeping, publishes_a_grant_once_it_is_written)
{
	EXPECT_EQ(turn(), (Words{"connect", "read", "write", "revoke", "publish"}));
	EXPECT_TRUE(keeper.is_claimed());
	EXPECT_EQ(world.state, ClaimState::held);
	EXPECT_EQ(world.published.node, 2u);
	EXPECT_EQ(world.published.granted_until_us, start_of_time + window);
	EXPECT_EQ(pause(), longest_renewal_pause_us);
}

TEST_F(Keeping, renews_at_a_third_of_the_window_and_within_what_a_registry_counts_on)
{
	turn();
	EXPECT_EQ(pause(), std::min(window / 3, longest_renewal_pause_us));
	EXPECT_EQ(next_turn(), (Words{"read", "remember", "write", "publish", "extend"}));
	EXPECT_EQ(world.extended, world.clock + window);
	EXPECT_EQ(world.published.generation, 2);
	world.window_now = 9 * us_per_s;
	next_turn();
	EXPECT_EQ(pause(), 3 * us_per_s);
	world.window_now = 600 * us_per_s;
	next_turn();
	EXPECT_EQ(pause(), longest_renewal_pause_us);
}

TEST_F(Keeping, gives_up_an_operation_after_a_third_of_the_window_and_what_a_registry_counts_on)
{
	EXPECT_EQ(operation_limit_us(9 * us_per_s), 3 * us_per_s);
	EXPECT_EQ(operation_limit_us(600 * us_per_s), longest_operation_us);
}

TEST_F(Keeping, publishes_nothing_without_an_answer)
{
	world.answers = {Written::unknown};
	EXPECT_EQ(turn(), (Words{"connect", "read", "write", "disconnect"}));
	EXPECT_FALSE(world.is_usable);
	EXPECT_EQ(world.state, ClaimState::none);
	EXPECT_EQ(world.trouble, Trouble::Kind::failure);

	/* It was not made: it is asked for again. */
	EXPECT_EQ(next_turn(), (Words{"connect", "read", "write", "revoke", "publish"}));
}

TEST_F(Keeping, publishes_no_renewal_without_an_answer)
{
	turn();

	const int64_t granted = world.published.granted_until_us;

	for (Written answer : {Written::unknown, Written::refused})
	{
		world.answers = {answer};
		EXPECT_FALSE(contains(next_turn(), "publish"));
		EXPECT_EQ(world.state, ClaimState::suspended);
		EXPECT_EQ(world.published.granted_until_us, granted);
		EXPECT_GT(world.published.asked_until_us, granted);
	}
}

TEST_F(Keeping, tries_again_soon_where_another_write_is_not_done_and_stays_connected)
{
	turn();

	const int64_t granted = world.published.granted_until_us;

	for (int i = 0; i < 3; i++)
	{
		world.answers = {Written::busy};
		EXPECT_EQ(next_turn(), (Words{"read", "remember", "write"}));
		EXPECT_EQ(world.state, ClaimState::suspended);
		EXPECT_EQ(world.published.granted_until_us, granted);
		EXPECT_TRUE(keeper.is_claimed());
	}
	EXPECT_TRUE(contains(next_turn(), "publish"));
	EXPECT_EQ(world.state, ClaimState::held);
}

TEST_F(Keeping, releases_where_another_write_was_in_the_way)
{
	turn();
	world.answers = {Written::busy, Written::busy};
	keeper.release();
	EXPECT_TRUE(row().holder.is_nobody());
}

/* A grant was asked for, and made, but the answer was missing. */
struct Unanswered : Keeping
{
	Unanswered()
	{
		world.answers = {Written::unknown};
		world.is_written = true;
		turn();
		world.is_written = false;
	}
};

TEST_F(Unanswered, grant_is_taken_when_the_registry_shows_it)
{
	EXPECT_EQ(next_turn(), (Words{"connect", "read", "revoke", "publish"}));
	EXPECT_EQ(world.published.generation, 1);
	EXPECT_EQ(world.published.start_us, 0);
	/* It counts as alive from its request on, and is renewed at once. */
	EXPECT_EQ(pause(), 0);
}

TEST_F(Unanswered, grant_is_not_taken_where_another_has_it)
{
	row().holder = other;
	EXPECT_FALSE(contains(next_turn(), "publish"));
	EXPECT_EQ(world.verdict, Verdict::held_by_another);
}

TEST_F(Unanswered, grant_is_not_taken_where_the_registry_has_another_one)
{
	const Claim asked = row();

	row().generation++;
	EXPECT_TRUE(contains(next_turn(), "write"));
	EXPECT_EQ(world.published.generation, 3);
	EXPECT_EQ(world.published.start_us, asked.granted_until_us);
}

TEST_F(Unanswered, grant_is_not_taken_where_the_fence_is_another)
{
	row().granted_until_us++;
	EXPECT_TRUE(contains(next_turn(), "write"));
}

TEST_F(Unanswered, grant_is_not_taken_once_it_may_have_been_given_away)
{
	world.boot += window;
	EXPECT_TRUE(contains(next_turn(), "write"));
	EXPECT_EQ(world.published.generation, 2);
}

TEST_F(Unanswered, grant_is_not_taken_from_a_registry_that_may_have_forgotten_something)
{
	world.time.unsettled_us = 1;
	EXPECT_EQ(next_turn(), (Words{"connect", "read"}));
	EXPECT_EQ(world.verdict, Verdict::unsettled);
	EXPECT_EQ(pause(), 1);
}

TEST_F(Unanswered, grant_is_given_back_at_a_stop)
{
	keeper.release();
	EXPECT_EQ(world.last_form, Form::release);
	EXPECT_TRUE(row().holder.is_nobody());
	EXPECT_EQ(row().granted_until_us, start_of_time + window);
}

TEST_F(Unanswered, grant_of_another_is_not_given_back_at_a_stop)
{
	row().holder = other;
	world.done.clear();
	keeper.release();
	EXPECT_EQ(world.done, (Words{"withdraw", "revoke", "connect", "read"}));
	EXPECT_TRUE(row().holder.is(other));
}

TEST_F(Unanswered, grant_of_any_number_is_asked_for_again)
{
	world.is_automatic = true;
	world.claims[0] = {0, 4, 0, false, 0, {}, 0};
	EXPECT_EQ(next_turn(), (Words{"connect", "read", "revoke", "publish"}));
	EXPECT_EQ(world.published.node, 2u);
}

TEST_F(Keeping, knows_a_renewal_for_its_own_whose_answer_was_missing)
{
	turn();
	world.answers = {Written::unknown};
	world.is_written = true;
	next_turn();

	const Claim written = row();

	next_turn();
	EXPECT_EQ(world.losses, 0);
	EXPECT_EQ(world.published.generation, written.generation + 1);
}

TEST_F(Keeping, remembers_what_it_asks_for_before_it_asks)
{
	turn();
	world.before_write = [this] { EXPECT_EQ(world.published.asked_until_us, world.clock + window); };
	EXPECT_EQ(next_turn(), (Words{"read", "remember", "write", "publish", "extend"}));
	world.before_write = [] {};

	world.answers = {Written::unknown};
	world.is_written = true;
	next_turn();
	begin_again();
	next_turn();
	EXPECT_EQ(world.losses, 0);
	EXPECT_EQ(world.state, ClaimState::held);
}

TEST_F(Keeping, reads_again_what_was_changed_and_gives_up_in_the_end)
{
	world.answers = {Written::changed};
	turn();
	EXPECT_TRUE(keeper.is_claimed());
	world.answers = std::deque<Written>(tries_per_turn, Written::changed);
	EXPECT_EQ(next_turn().size(), 3 * tries_per_turn);
	EXPECT_EQ(world.trouble, Trouble::Kind::changing);
	EXPECT_EQ(world.state, ClaimState::suspended);
	next_turn();
	EXPECT_EQ(world.state, ClaimState::held);
}

TEST_F(Keeping, pauses_longer_after_each_failure_and_starts_over_after_a_success)
{
	int64_t		longest = 0;

	world.is_reachable = false;
	EXPECT_EQ(turn(), (Words{"connect", "disconnect"}));
	EXPECT_GT(pause(), first_pause_us / 2);
	EXPECT_LE(pause(), first_pause_us);
	for (int i = 0; i < 20; i++)
	{
		next_turn();
		EXPECT_GE(pause(), longest);
		longest = pause();
	}
	EXPECT_LE(longest, longest_retry_pause_us);
	EXPECT_GT(longest, longest_retry_pause_us / 2);
	world.is_reachable = true;
	next_turn();
	world.is_reachable = false;
	next_turn();
	EXPECT_LE(pause(), first_pause_us);
}

TEST_F(Keeping, pauses_no_longer_than_a_third_of_a_short_window)
{
	world.window_now = 3 * us_per_s;
	world.is_reachable = false;
	for (int i = 0; i < 20; i++)
		next_turn();
	EXPECT_LE(pause(), us_per_s);
	EXPECT_GT(pause(), us_per_s / 2);
}

TEST_F(Keeping, doubles_its_pause_once_for_each_failure)
{
	turn();
	world.is_reachable = false;
	next_turn();
	EXPECT_LE(pause(), first_pause_us);
	next_turn();
	EXPECT_LE(pause(), 2 * first_pause_us);
	EXPECT_GT(pause(), first_pause_us);
}

TEST_F(Keeping, shows_for_how_long_it_goes_on_without_the_registry)
{
	turn();
	world.is_reachable = false;
	next_turn();
	EXPECT_EQ(world.state, ClaimState::suspended);
	EXPECT_TRUE(world.is_usable);
	world.clock = world.published.granted_until_us;
	next_turn();
	EXPECT_EQ(world.state, ClaimState::lost);
	EXPECT_TRUE(world.is_usable);
}

TEST_F(Keeping, asks_anew_at_once_where_its_number_is_given_to_another)
{
	turn();
	give_to_other(start_of_time + 2 * window);
	EXPECT_EQ(next_turn(), (Words{"read", "withdraw", "revoke"}));
	EXPECT_EQ(world.losses, 1);
	EXPECT_EQ(world.state, ClaimState::lost);
	EXPECT_FALSE(keeper.is_claimed());
	EXPECT_LE(pause(), 0);

	/* The other has it. */
	next_turn();
	EXPECT_EQ(world.verdict, Verdict::held_by_another);
	row().is_alive = false;
	next_turn();
	EXPECT_TRUE(keeper.is_claimed());
	EXPECT_EQ(world.published.start_us, start_of_time + 2 * window);
}

/* A claim was lost, and ids were made under it that the registry, which was restored, does not know of. */
struct Lost : Keeping
{
	int64_t		went = 0;

	Lost()
	{
		turn();
		world.issued = went = start_of_time + 20 * us_per_s;
		row() = {2, 5, start_of_time, true, 0, other, 0};
		next_turn();
	}
};

TEST_F(Lost, claim_is_asserted_before_another_is_asked_for)
{
	ASSERT_EQ(world.losses, 1);
	EXPECT_EQ(next_turn(), (Words{"read", "assert", "read", "read"}));
	EXPECT_EQ(row().granted_until_us, went);
	EXPECT_TRUE(row().holder.is(other));
	EXPECT_FALSE(contains(next_turn(), "assert"));
}

TEST_F(Lost, claim_whose_assertion_is_refused_keeps_nobody_from_another)
{
	world.is_automatic = true;
	for (int i = 0; i < 3; i++)
	{
		world.answers = {Written::refused};
		next_turn();
		EXPECT_TRUE(keeper.is_claimed());
		EXPECT_EQ(world.published.node, 0u);
		EXPECT_TRUE(keeper.is_assertion_due());
		EXPECT_EQ(world.state, ClaimState::held);
	}
	EXPECT_EQ(world.published.generation, 3);
	EXPECT_EQ(world.refusals, 1);
	EXPECT_EQ(row().granted_until_us, start_of_time);
	next_turn();
	EXPECT_FALSE(keeper.is_assertion_due());
	EXPECT_EQ(row().granted_until_us, went);
}

/* Any number will do, and the registry, which refuses to be told of the first one, gives others away as well. */
struct LostAgain : Lost
{
	LostAgain()
	{
		world.is_automatic = true;
		world.highest_now = 9;
		refuse();
		next_turn();
	}

	/* The assertions of the next turn. */
	void refuse()
	{
		world.answers = std::deque<Written>(static_cast<size_t>(std::max(1, world.lost_grants.count)), Written::refused);
	}

	/* What the server holds now is another's.  Returns how far its ids went. */
	int64_t lose(int64_t ahead_us)
	{
		const uint64_t node = world.published.node;

		EXPECT_TRUE(keeper.is_claimed());
		world.issued = world.clock + ahead_us;
		world.claims[node] = {node, world.claims[node].generation + 9, start_of_time, true, 0, other, 0};
		refuse();
		next_turn();
		EXPECT_FALSE(keeper.is_claimed());
		return world.issued;
	}

	int64_t told(uint64_t node)
	{
		return world.claims[node].granted_until_us;
	}
};

TEST_F(LostAgain, claims_are_all_told_where_the_first_assertion_is_refused)
{
	const int64_t second = lose(us_per_s);

	EXPECT_EQ(world.losses, 2);
	next_turn();
	EXPECT_EQ(told(2), went);
	EXPECT_EQ(told(0), second);
	EXPECT_FALSE(keeper.is_assertion_due());
	EXPECT_EQ(world.lost_grants.count, 0);
}

TEST_F(LostAgain, claims_that_are_refused_do_not_keep_others_from_being_told)
{
	const int64_t second = lose(us_per_s);

	world.answers = {Written::refused};
	next_turn();
	EXPECT_EQ(told(2), start_of_time);
	EXPECT_EQ(told(0), second);
	next_turn();
	EXPECT_EQ(told(2), went);
}

TEST_F(LostAgain, claims_are_told_by_the_next_keeper)
{
	const int64_t second = lose(us_per_s);

	begin_again();
	refuse();
	next_turn();
	EXPECT_EQ(world.refusals, 2);
	EXPECT_TRUE(keeper.is_claimed());
	begin_again();
	next_turn();
	EXPECT_EQ(told(2), went);
	EXPECT_EQ(told(0), second);
}

TEST_F(LostAgain, claims_are_told_at_a_stop)
{
	const int64_t second = lose(us_per_s);

	keeper.release();
	EXPECT_EQ(told(2), went);
	EXPECT_EQ(told(0), second);
}

TEST_F(LostAgain, number_is_told_up_to_where_its_ids_went_furthest)
{
	int64_t		further = 0;

	lose(us_per_s);
	/* Only this number is left, twice. */
	for (int64_t ahead_us : {20 * us_per_s, 2 * us_per_s})
	{
		world.is_automatic = true;
		for (uint64_t node = 1; node <= world.highest_now; node++)
			world.claims[node] = {node, 9, start_of_time, true, 0, other, 0};
		world.claims[0].is_alive = false;
		refuse();
		next_turn();
		ASSERT_EQ(world.published.node, 0u);
		further = std::max(further, lose(ahead_us));
		EXPECT_EQ(world.lost_grants.count, 2);
	}
	next_turn();
	EXPECT_EQ(told(0), further);
}

TEST_F(LostAgain, claims_that_find_no_room_are_those_whose_ids_went_least_far)
{
	std::map<uint64_t, int64_t> lost = {{2, went}};

	for (int64_t ahead_us : {8, 1, 7, 6})
	{
		refuse();
		next_turn();

		const uint64_t node = world.published.node;

		lost[node] = lose(ahead_us * us_per_s);
	}
	ASSERT_EQ(lost.size(), size_t{LostGrants::room + 1});
	ASSERT_EQ(world.lost_grants.count, LostGrants::room);

	const auto	least = std::min_element(lost.begin(), lost.end(), [] (auto one, auto other) {
		return one.second < other.second;
	});

	next_turn();
	for (auto [node, until_us] : lost)
		EXPECT_EQ(told(node) == until_us, node != least->first) << node;
}

TEST_F(Lost, claim_whose_row_is_being_written_keeps_nobody_from_another)
{
	world.is_automatic = true;
	world.answers = {Written::busy};
	next_turn();
	EXPECT_TRUE(keeper.is_claimed());
	EXPECT_TRUE(keeper.is_assertion_due());
	EXPECT_EQ(world.state, ClaimState::held);
	next_turn();
	EXPECT_FALSE(keeper.is_assertion_due());
	EXPECT_EQ(row().granted_until_us, went);
}

TEST_F(Lost, claim_is_asserted_at_a_stop)
{
	world.done.clear();
	keeper.release();
	EXPECT_EQ(world.done, (Words{"withdraw", "revoke", "read", "assert", "read"}));
	EXPECT_EQ(row().granted_until_us, went);
}

TEST_F(Keeping, ends_the_claim_before_it_is_released)
{
	turn();
	world.issued = start_of_time + us_per_s;
	world.done.clear();
	keeper.release();
	EXPECT_EQ(world.done, (Words{"withdraw", "revoke", "read", "release"}));
	EXPECT_FALSE(world.is_usable);
	EXPECT_TRUE(row().holder.is_nobody());
	EXPECT_EQ(row().granted_until_us, world.issued);
}

TEST_F(Keeping, releases_over_a_new_connection_where_the_answer_is_missing)
{
	turn();
	world.answers = {Written::unknown};
	world.done.clear();
	keeper.release();
	EXPECT_EQ(world.done, (Words{"withdraw", "revoke", "read", "release", "disconnect", "connect", "read", "release"}));
	EXPECT_TRUE(row().holder.is_nobody());
}

TEST_F(Keeping, asserts_at_a_stop_what_is_not_its_own_any_more)
{
	turn();
	world.issued = start_of_time + 20 * us_per_s;
	row() = {2, 5, start_of_time, true, 0, other, 0};
	keeper.release();
	EXPECT_EQ(world.last_form, Form::assertion);
	EXPECT_EQ(row().granted_until_us, world.issued);
	EXPECT_TRUE(row().holder.is(other));
}

TEST_F(Keeping, has_nothing_to_release_without_a_claim)
{
	keeper.release();
	EXPECT_EQ(world.done, Words{});
}

TEST_F(Keeping, releases_no_more_than_a_crash_may_have_left_issued)
{
	turn();

	const int64_t durable = start_of_time + 5 * us_per_s;

	world.durable = durable;
	begin_again();
	keeper.release();
	EXPECT_EQ(row().granted_until_us, durable);
}

/* A server that made ids before it had a registry, further ahead than a window. */
TEST_F(Keeping, neither_forgets_nor_issues_again_what_was_made_without_a_registry)
{
	world.durable = start_of_time + 2 * window;
	turn();
	EXPECT_EQ(world.published.granted_until_us, world.durable + window);
	keeper.release();
	EXPECT_EQ(row().granted_until_us, world.durable);

	/* A number that the registry knows had its ids under it. */
	world.durable += window;
	keeper.begin(me, ClaimState::none, {}, false, {});
	turn();
	keeper.release();
	EXPECT_EQ(row().granted_until_us, start_of_time + 2 * window);
}

TEST_F(Keeping, brings_no_past_to_a_number_that_it_chooses)
{
	world.durable = start_of_time + 2 * window;
	world.is_automatic = true;
	turn();
	EXPECT_EQ(world.published.granted_until_us, start_of_time + window);
}

/* The claim was not renewed in time, and the registry has been restored since. */
struct Overdue : Keeping
{
	Overdue()
	{
		turn();
		world.boot += window;
		world.clock += window / 2;
		world.time.clock_us += window / 2;
		world.time.unsettled_us = 5 * us_per_s;
	}
};

TEST_F(Overdue, claim_is_kept_and_gets_no_more_time)
{
	const int64_t granted = world.published.granted_until_us;

	for (int i = 0; i < 3; i++)
	{
		turn();
		EXPECT_TRUE(keeper.is_claimed());
		EXPECT_EQ(world.published.granted_until_us, granted);
		EXPECT_EQ(world.verdict, Verdict::unsettled);
		EXPECT_EQ(pause(), 5 * us_per_s);
	}
	world.time.unsettled_us = 0;
	turn();
	EXPECT_EQ(world.state, ClaimState::held);
	EXPECT_GT(world.published.granted_until_us, granted);
}

TEST_F(Keeping, does_not_know_when_the_keeper_before_it_renewed)
{
	turn();

	const int64_t granted = world.published.granted_until_us;

	begin_again();
	world.time.unsettled_us = 5 * us_per_s;
	next_turn();
	EXPECT_EQ(world.verdict, Verdict::unsettled);
	EXPECT_EQ(world.published.granted_until_us, granted);
}

TEST_F(Keeping, counts_as_alive_from_its_request_on)
{
	world.before_write = [this] { world.boot += window; };
	turn();
	world.before_write = [] {};
	world.time.unsettled_us = 1;
	turn();
	EXPECT_EQ(world.verdict, Verdict::unsettled);
}

TEST_F(Keeping, asks_for_what_calls_need)
{
	turn();
	world.demanded = start_of_time + 100 * us_per_s;
	next_turn();
	EXPECT_EQ(world.published.granted_until_us, start_of_time + 100 * us_per_s + window);
	EXPECT_EQ(world.demanded, 0);
	EXPECT_EQ(world.state, ClaimState::held);
}

/* A registry that was restored, and was given another layout before its holders came. */
TEST_F(Keeping, tells_how_far_its_ids_may_go_where_the_layout_is_anothers)
{
	turn();
	const int64_t granted = world.published.granted_until_us;

	row() = {2, 0, 0, false, 0, {}, 0};
	world.time.is_other_layout = true;
	world.time.unsettled_us = 20 * us_per_s;
	EXPECT_EQ(next_turn(), Words{"read"});
	EXPECT_EQ(world.verdict, Verdict::other_layout);
	EXPECT_EQ(next_turn(), (Words{"read", "assert", "read", "read"}));
	EXPECT_EQ(row().granted_until_us, granted);
	EXPECT_TRUE(world.is_usable);
	EXPECT_FALSE(contains(next_turn(), "assert"));
}

TEST_F(Keeping, keeps_its_claim_where_calls_need_more_than_the_registry_grants)
{
	turn();
	world.demanded = start_of_time + 7200 * us_per_s;
	next_turn();
	EXPECT_EQ(world.published.granted_until_us, world.clock + window);
	EXPECT_EQ(world.verdict, Verdict::too_far);
	EXPECT_EQ(world.state, ClaimState::suspended);
	EXPECT_EQ(pause(), longest_renewal_pause_us);
	next_turn();
	EXPECT_EQ(world.state, ClaimState::held);
}

TEST_F(Keeping, heeds_backends_soon_but_not_too_often)
{
	turn();
	keeper.wake(world.boot);
	EXPECT_EQ(pause(), shortest_pause_us);
	turn();
	world.boot += us_per_s;
	keeper.wake(world.boot - us_per_s);
	EXPECT_EQ(pause(), 0);
}

TEST_F(Keeping, heeds_no_backend_after_a_failure)
{
	turn();
	world.is_reachable = false;
	next_turn();

	const int64_t due = keeper.next_turn_us();

	keeper.wake(world.boot - us_per_s);
	EXPECT_EQ(keeper.next_turn_us(), due);
}

TEST_F(Keeping, heeds_no_backend_without_a_claim)
{
	give_to_other(start_of_time);
	turn();

	const int64_t due = keeper.next_turn_us();

	keeper.wake(world.boot - us_per_s);
	EXPECT_EQ(keeper.next_turn_us(), due);
}

TEST_F(Keeping, connects_soon_where_the_connection_broke)
{
	turn();
	keeper.lose_connection();
	EXPECT_FALSE(keeper.is_connected());
	EXPECT_EQ(pause(), shortest_pause_us);
	EXPECT_EQ(next_turn().front(), "connect");
}

TEST_F(Keeping, connects_at_once_with_new_settings)
{
	turn();
	keeper.reload();
	EXPECT_LE(pause(), 0);
	EXPECT_EQ(turn().front(), "connect");
}

TEST_F(Keeping, goes_on_after_an_error)
{
	turn();
	keeper.recover({"out of memory"});
	EXPECT_EQ(world.state, ClaimState::suspended);
	EXPECT_GT(pause(), 0);
	EXPECT_LE(pause(), first_pause_us);
	EXPECT_EQ(next_turn(), (Words{"connect", "read", "remember", "write", "publish", "extend"}));
}

/* Any number will do. */
struct Choosing : Keeping
{
	Choosing()
	{
		world.is_automatic = true;
	}
};

TEST_F(Choosing, takes_a_number_that_is_free)
{
	world.claims[0] = {0, 4, start_of_time, true, 0, other, 0};
	EXPECT_EQ(turn(), (Words{"connect", "list", "read", "write", "revoke", "publish"}));
	EXPECT_EQ(world.published.node, 1u);
}

TEST_F(Choosing, takes_another_number_soon_where_another_server_was_faster)
{
	world.before_write = [this] { world.claims[0] = {0, 1, start_of_time, true, 0, other, 0}; };
	turn();
	world.before_write = [] {};
	EXPECT_FALSE(keeper.is_claimed());
	EXPECT_EQ(pause(), shortest_pause_us);
	next_turn();
	EXPECT_EQ(world.published.node, 1u);
}

TEST_F(Choosing, passes_over_a_number_that_was_granted_too_far_ahead)
{
	for (uint64_t node = 0; node <= highest_node; node++)
		world.claims[node] = {node, 4, start_of_time + 7200 * us_per_s, false, 0, {}, 0};
	world.claims[3].granted_until_us -= us_per_s;
	world.claims[1].granted_until_us = start_of_time + us_per_s;
	world.claims[1].is_alive = true;
	world.claims[1].holder = other;
	turn();
	EXPECT_FALSE(keeper.is_claimed());
	EXPECT_EQ(world.trouble, Trouble::Kind::all_held);

	/* The one that is nearest is tried first; one below it that is in reach is found then. */
	world.clock = world.time.clock_us + 7200 * us_per_s;
	world.claims[0].granted_until_us = start_of_time + 1800 * us_per_s;
	world.claims[0].is_alive = false;
	next_turn();
	EXPECT_EQ(world.published.node, 0u);
}

TEST_F(Choosing, waits_where_others_hold_all)
{
	for (uint64_t node = 0; node <= highest_node; node++)
		world.claims[node] = {node, 4, start_of_time, true, 0, other, 0};
	EXPECT_EQ(turn(), (Words{"connect", "list"}));
	EXPECT_EQ(world.trouble, Trouble::Kind::all_held);
	EXPECT_EQ(world.state, ClaimState::none);
	EXPECT_GT(pause(), 0);
}

TEST_F(Choosing, fails_where_the_claims_cannot_be_listed)
{
	world.is_list_broken = true;
	EXPECT_EQ(turn(), (Words{"connect", "list", "disconnect"}));
	EXPECT_EQ(world.trouble, Trouble::Kind::failure);
}

}  // namespace
