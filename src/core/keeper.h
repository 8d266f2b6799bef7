/*
 * keeper.h
 *		The keeper: asks a registry for a claim on a node number, renews it, and gives
 *		it back.
 *
 * core/claim.h decides what may become of one claim.  The keeper reads a claim,
 * has it decided, writes the outcome, and lets the backends use it, in this order:
 *
 *	- A grant is published only once the registry has confirmed it.  Where the answer
 *	  to a write is missing, nothing is published; the next read tells.
 *	- What a renewal asks for is remembered before it is asked for, so that whoever
 *	  goes on with the claim, this keeper or the next one, knows it for its own.
 *	- A claim ends in three steps.  The grant is withdrawn, so that no backend takes a
 *	  claim from it again; the generator's claim is revoked, after which nothing is
 *	  issued; then the registry is told, or another number is asked for.
 *	- A keeper whose number was given to another tells the registry how far its ids
 *	  went (it asserts them), and asks for a claim anew.  A registry that refuses to be
 *	  told is told again later: that keeps nobody from a claim.  Meanwhile the next
 *	  number may be lost as well; each is told, by the next keeper where this one ends.
 *	- A claim counts as alive from the moment at which its renewal was begun, not from
 *	  that of the answer.
 *
 * Everything outside is handed in as a KeeperEnvironment (see below): a background
 * worker in the server, simulated servers in the tests.  Its functions may leave by
 * longjmp(); whatever was changed until then is a state in which recover() goes on.
 * One process has a keeper; nobody else calls it.
 *
 * All times are microseconds.
 */
#ifndef SNOWFLAKE_CORE_KEEPER_H
#define SNOWFLAKE_CORE_KEEPER_H

#include <algorithm>
#include <concepts>
#include <cstdint>

#include "core/claim.h"
#include "core/reason.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/* The pauses between attempts that fail double from this one to the longest, and each is jittered. */
constexpr int64_t first_pause_us = us_per_s / 10;

/* Backends that want more time than is granted are heeded no more often than this. */
constexpr int64_t shortest_pause_us = us_per_s / 20;

/* A claim that changes between read and write is read again this often before that counts as a failure. */
constexpr int tries_per_turn = 4;

/* No operation takes longer than a third of the claim window, nor than what a registry counts on (core/claim.h). */
constexpr int64_t
operation_limit_us(int64_t window_us) noexcept
{
	return std::min(longest_operation_us, window_us / 3);
}

/* What keeps a server from a claim, or from more time. */
struct Trouble
{
	enum class Kind
	{
		none,
		failure,				/* the registry can't be spoken to: problem */
		verdict,				/* the rules forbid it: verdict, claim, registry */
		all_held,				/* any number would do, and others hold them all */
		changing,				/* the claim kept changing between read and write */
	};

	Kind		kind = Kind::none;
	const Problem *problem = nullptr;
	Verdict		verdict = Verdict::write;
	const Claim *claim = nullptr;
	const RegistryTime *registry = nullptr;
};

/*
 * What the keeper needs from outside.
 *
 * boot_us()				CLOCK_BOOTTIME
 * clock_us()				the clock that ids are made by, Unix time
 * issued_until_us()		the end of the newest id's tick, Unix time; 0 where there is none
 * durable_us()				the durable limit: no id of this server, whoever granted its number, lies above it
 * take_demand_us()			up to where calls have asked for time since they were last taken; 0: not at all
 * window_us()				snowflake.claim_window
 * random()					from 0 to below 1
 * fixed_node(node)			the node number that the server is set to; false where any will do
 * max_node()				the greatest node number
 *
 * connect(problem)			connects to the registry anew; false, with the problem, where that fails
 * disconnect()				also where there is no connection
 * read(node, claim, registry, problem)	reads a claim; false, with the problem, where that fails
 * list(claims, count, problem)	lists the group's claims by number; they are there until the turn ends
 * write(form, before, next, problem)	writes next where the registry still has before
 *
 * publish(grant)			lets backends use what the registry has confirmed; the next keeper of this server finds it
 * remember(grant)			keeps for the next keeper what is held and was asked for; only where a grant is published
 * withdraw()				no backend takes a claim from the grant any more; the next keeper knows that
 * keep_lost(lost)			keeps for the next keeper what the registry is still to be told of
 * revoke()					ends the generator's claim: nothing is issued under it any more.  Returns the end of the
 *							last tick that was, Unix time; 0 where there is none
 * extend(until_us)			lets the generator's claim go on up to there
 *
 * show(state, grant, trouble)	tells backends and the log the state, and what is wrong
 * lost(grant, claim)		tells them that the number is another's or nobody's: claim is what the registry has
 * assertion_refused(grant, problem)	tells the log that the registry refuses to be told how far ids went: once for
 *							each grant
 */
template <typename E>
concept KeeperEnvironment = requires(E e, uint64_t node, uint64_t *chosen, Claim *claim, RegistryTime *registry,
									 Problem *problem, const ListedClaim **claims, int64_t *count, const Grant &grant,
									 const LostGrants &lost, const Claim &known, const Trouble &trouble)
{
	{ e.boot_us() } -> std::same_as<int64_t>;
	{ e.clock_us() } -> std::same_as<int64_t>;
	{ e.issued_until_us() } -> std::same_as<int64_t>;
	{ e.durable_us() } -> std::same_as<int64_t>;
	{ e.take_demand_us() } -> std::same_as<int64_t>;
	{ e.window_us() } -> std::same_as<int64_t>;
	{ e.random() } -> std::same_as<double>;
	{ e.fixed_node(chosen) } -> std::same_as<bool>;
	{ e.max_node() } -> std::same_as<uint64_t>;
	{ e.connect(problem) } -> std::same_as<bool>;
	e.disconnect();
	{ e.read(node, claim, registry, problem) } -> std::same_as<bool>;
	{ e.list(claims, count, problem) } -> std::same_as<bool>;
	{ e.write(Form::claim, known, known, problem) } -> std::same_as<Written>;
	e.publish(grant);
	e.remember(grant);
	e.withdraw();
	e.keep_lost(lost);
	{ e.revoke() } -> std::same_as<int64_t>;
	e.extend(int64_t{});
	e.show(ClaimState::held, grant, trouble);
	e.lost(grant, known);
	e.assertion_refused(grant, *problem);
};

template <typename Env>
class Keeper
{
public:
	explicit constexpr Keeper(Env &env) noexcept : env_(env)
	{
		static_assert(KeeperEnvironment<Env>);
	}

	/*
	 * Begins, or goes on after a keeper that has ended: with the grant that was
	 * published last, whether it still is, and what that keeper was still to tell.
	 */
	void begin(const Holder &me, ClaimState state, const Grant &grant, bool is_claimed, const LostGrants &lost) noexcept
	{
		me_ = me;
		state_ = state;
		grant_ = with_own_past(grant);
		is_claimed_ = is_claimed;
		alive_until_us_ = 0;
		lost_ = lost;
		is_grant_pending_ = is_connected_ = false;
		next_turn_us_ = pause_us_ = 0;
	}

	/* Makes one attempt at what is to be done now, and sets when the next turn is due. */
	void take_turn() noexcept
	{
		const int64_t begun_us = env_.boot_us();

		next_turn_us_ = begun_us + turn();
	}

	/* When the next turn is due, on CLOCK_BOOTTIME. */
	int64_t next_turn_us() const noexcept
	{
		return next_turn_us_;
	}

	/*
	 * Backends may need more time than is granted: somebody woke the keeper, which
	 * slept from this moment on.  After a failure the pause goes on all the same.
	 */
	void wake(int64_t slept_from_us) noexcept
	{
		if (pause_us_ == 0 && is_claimed_)
			next_turn_us_ = std::min(next_turn_us_, std::max(env_.boot_us(), slept_from_us + shortest_pause_us));
	}

	/* The connection broke between two turns.  The next one, which is soon, will say what is wrong. */
	void lose_connection() noexcept
	{
		disconnect();
		next_turn_us_ = std::min(next_turn_us_, env_.boot_us() + shortest_pause_us);
	}

	/* The settings may have changed: connects anew, at once. */
	void reload() noexcept
	{
		disconnect();
		next_turn_us_ = 0;
	}

	/* Goes on after a turn that was left by longjmp(). */
	void recover(const Problem &problem) noexcept
	{
		const int64_t pause_us = fail(problem);

		next_turn_us_ = env_.boot_us() + pause_us;
	}

	void disconnect() noexcept
	{
		env_.disconnect();
		is_connected_ = false;
	}

	/* Gives the claim back, at a clean stop; also one that may have been granted, though the answer is missing. */
	void release() noexcept
	{
		const bool	is_pending = !is_claimed_ && is_grant_pending_;
		const bool	has_claim = is_claimed_ || is_pending;

		if (!has_claim && !is_assertion_due())
			return;

		const int64_t issued_until_us = take_back();

		for (int i = 0; i < tries_per_turn; i++)
		{
			/* The connection may have been lost without notice, and the registry restored. */
			if (!is_connected_ && !connect_to_release())
				return;
			if (!assert_lost_grants())
				continue;
			if (!has_claim || try_to_release(is_pending, issued_until_us))
				return;
		}
	}

	bool is_connected() const noexcept
	{
		return is_connected_;
	}
	bool is_claimed() const noexcept
	{
		return is_claimed_;
	}
	bool is_assertion_due() const noexcept
	{
		return lost_.count > 0;
	}
	const Grant &grant() const noexcept
	{
		return grant_;
	}

private:
	/* In the place of a pause: the claim has changed since it was read, and is to be read again. */
	static constexpr int64_t again = -1;

	/* What is asked for while there is no claim. */
	struct Request
	{
		uint64_t	node;
		int64_t		until_us;	/* a number that was granted further ahead is passed over */
		Need		need;
	};

	/* What a renewal asks for. */
	struct Renewal
	{
		Need		need;
		bool		is_too_far;	/* calls have asked for more than the registry grants */
	};

	/* Returns the pause before the next turn. */
	int64_t turn() noexcept
	{
		Problem		problem = {};

		if (!is_connected_ && !env_.connect(&problem))
			return fail(problem);
		is_connected_ = true;
		if (!assert_lost_grants())
			return retry_pause();
		return is_claimed_ ? renew() : claim();
	}

	bool connect_to_release() noexcept
	{
		Problem		problem = {};

		return is_connected_ = env_.connect(&problem);
	}

	/* Reads a claim.  False, having said why, where that fails. */
	bool read(uint64_t node, Claim *known, RegistryTime *registry) noexcept
	{
		Problem		problem = {};

		if (env_.read(node, known, registry, &problem))
			return true;
		show_failure(problem);
		return false;
	}

	/* Attempts what a claim that changes between its read and its write has begin again.  Returns the pause. */
	template <typename Attempt>
	int64_t with_new_reads(Attempt attempt) noexcept
	{
		for (int i = 0; i < tries_per_turn; i++)
		{
			const int64_t pause_us = attempt();

			if (pause_us != again)
				return pause_us;
		}
		show_trouble({.kind = Trouble::Kind::changing});
		return retry_pause();
	}

	/* Asks for a claim.  Returns the pause before the next turn. */
	int64_t claim() noexcept
	{
		Request		request = {0, INT64_MAX, {}};

		if (!choose_number(&request))
			return retry_pause();
		/* A call that needs more than that says so when there is a claim. */
		request.need = {env_.clock_us(), env_.issued_until_us(), 0};
		return with_new_reads([&] { return try_to_claim(&request); });
	}

	int64_t try_to_claim(Request *request) noexcept
	{
		Problem		problem = {};
		Claim		known;
		Claim		next;
		Grant		wanted;
		RegistryTime registry;
		uint64_t	fixed;
		const bool	is_fixed = env_.fixed_node(&fixed);
		const int64_t begun_us = env_.boot_us();

		if (!read(request->node, &known, &registry))
			return retry_pause();
		if (is_pending_granted(known, registry))
		{
			/* It was made, it is nobody else's yet, and nothing was issued under it. */
			hold(pending_grant_, pending_begun_us_);
			return 0;
		}

		/* A number that the registry never knew, and that this server may have had before it had a registry. */
		const bool	has_past = is_fixed && known.generation == 0;

		if (has_past)
			request->need.issued_until_us = std::max(request->need.issued_until_us, env_.durable_us());

		const Verdict verdict = decide_grant(known, registry, me_, request->need, env_.window_us(), &next, &wanted);

		if (has_past)
			wanted = with_own_past(wanted);

		/* A number that was granted too far ahead is passed over, once. */
		if (verdict == Verdict::too_far && !is_fixed && known.generation > 0 && request->until_us == INT64_MAX)
		{
			request->until_us = known.granted_until_us - 1;
			is_grant_pending_ = false;
			return choose_number(request) ? again : retry_pause();
		}
		if (verdict != Verdict::write)
		{
			is_grant_pending_ = false;
			return refuse(verdict, known, registry);
		}
		switch (env_.write(Form::claim, known, next, &problem))
		{
			case Written::done:
				hold(wanted, begun_us);
				return renewal_pause();
			case Written::changed:
				if (is_fixed || known.holder.is(me_))
					return again;
				/* Another was faster: where any number will do, another number. */
				is_grant_pending_ = false;
				return shortest_pause_us;
			case Written::unknown:
				is_grant_pending_ = true;
				pending_grant_ = wanted;
				pending_begun_us_ = begun_us;
				break;
			case Written::busy:
				return retry_soon(problem);
			case Written::refused:
				break;
		}
		return fail(problem);
	}

	/* The number to ask for, granted no further than until_us.  False, having said why, where there is none. */
	bool choose_number(Request *request) noexcept
	{
		Problem		problem = {};
		const ListedClaim *claims;
		int64_t		count;

		if (env_.fixed_node(&request->node))
			return true;
		/* What may have been granted already would otherwise be nobody's until it expires. */
		if (is_grant_pending_)
		{
			request->node = pending_grant_.node;
			return true;
		}
		if (!env_.list(&claims, &count, &problem))
		{
			show_failure(problem);
			return false;
		}
		if (choose_node(claims, count, env_.max_node(), env_.clock_us(), request->until_us, &request->node))
			return true;
		show_trouble({.kind = Trouble::Kind::all_held});
		return false;
	}

	/* Does the registry have what was asked for without an answer, and is that still this server's? */
	bool is_pending_granted(const Claim &known, const RegistryTime &registry) noexcept
	{
		return is_grant_pending_ && known.holder.is(me_) && known.node == pending_grant_.node &&
			known.generation == pending_grant_.generation &&
			known.granted_until_us == pending_grant_.granted_until_us &&
			registry.unsettled_us == 0 && env_.boot_us() < pending_begun_us_ + env_.window_us();
	}

	/* Renews the claim.  Returns the pause before the next turn. */
	int64_t renew() noexcept
	{
		Renewal		renewal = {{env_.clock_us(), env_.issued_until_us(), env_.take_demand_us()}, false};

		return with_new_reads([&] { return try_to_renew(&renewal); });
	}

	int64_t try_to_renew(Renewal *renewal) noexcept
	{
		Problem		problem = {};
		Claim		known;
		Claim		next;
		Grant		renewed;
		RegistryTime registry;
		const int64_t begun_us = env_.boot_us();

		if (!read(grant_.node, &known, &registry))
			return retry_pause();
		adopt(known, me_, &grant_);

		const bool	was_overdue = is_overdue();
		auto		decide = [&] {
			return decide_renewal(known, registry, me_, renewal->need, env_.window_us(), was_overdue, grant_,
								  &next, &renewed);
		};
		Verdict		verdict = decide();

		/* The claim is kept all the same. */
		if (verdict == Verdict::too_far && renewal->need.demanded_until_us != 0)
		{
			renewal->is_too_far = true;
			renewal->need.demanded_until_us = 0;
			verdict = decide();
		}
		if (verdict == Verdict::held_by_another)
		{
			lose(known, take_back());
			return 0;
		}
		if (verdict == Verdict::other_layout)
			tell(known);
		if (verdict != Verdict::write)
			return refuse(verdict, known, registry);
		remember_asked(next.granted_until_us);
		switch (env_.write(Form::claim, known, next, &problem))
		{
			case Written::done:
				publish(renewed, begun_us);
				return show_renewed(known, registry, was_overdue, renewal->is_too_far);
			case Written::changed:
				return again;
			case Written::busy:
				return retry_soon(problem);
			case Written::unknown:
			case Written::refused:
				break;
		}
		return fail(problem);
	}

	/* Says how a renewal went that was written.  Returns the pause before the next turn. */
	int64_t show_renewed(const Claim &known, const RegistryTime &registry, bool was_overdue, bool is_too_far) noexcept
	{
		if (was_overdue && registry.unsettled_us > 0)
		{
			/* Kept, and overdue as before. */
			alive_until_us_ = 0;
			show_verdict(Verdict::unsettled, known, registry);
			return std::min(renewal_pause(), registry.unsettled_us);
		}
		if (is_too_far)
			show_verdict(Verdict::too_far, known, registry);
		else
			show(ClaimState::held, {});
		return renewal_pause();
	}

	/*
	 * One attempt to give back what may be held: a claim, or one that is pending.
	 * False where it is worth another.
	 */
	bool try_to_release(bool is_pending, int64_t issued_until_us) noexcept
	{
		Problem		problem = {};
		Claim		known;
		Claim		next;
		RegistryTime registry;

		if (!read(is_pending ? pending_grant_.node : grant_.node, &known, &registry))
			return false;
		if (is_pending)
		{
			if (!known.holder.is(me_))
				return true;
			/* Nothing was issued under it, but where it began is not known any more. */
			grant_ = {known.node, known.generation, known.granted_until_us, known.granted_until_us, 0, 0};
		}
		adopt(known, me_, &grant_);
		if (!decide_release(known, me_, issued_until_us, grant_, &next))
		{
			lose(known, issued_until_us);
			(void) assert_lost_grants();
			return true;
		}
		switch (env_.write(Form::release, known, next, &problem))
		{
			case Written::done:
			case Written::refused:
				return true;
			case Written::changed:
			case Written::busy:
				break;
			case Written::unknown:
				disconnect();
				break;
		}
		return false;
	}

	/*
	 * The claim can't be renewed.  A registry that was restored, and was given a layout
	 * before this server came, must hear all the same how far its ids may go.
	 */
	void tell(const Claim &known) noexcept
	{
		Claim		next;

		if (decide_assertion(known, grant_, &next))
			begin_assertion(grant_);
	}

	/*
	 * From the next turn on, the registry is told how far ids were or may be made under this grant.  Where there is no
	 * room, what went least far is forgotten: the clocks of others will have passed that first.
	 */
	void begin_assertion(const Grant &grant) noexcept
	{
		LostGrant  *const end = lost_.each + lost_.count;
		LostGrant  *known = std::find_if(lost_.each, end, [&grant] (const LostGrant &lost) {
			return lost.grant.node == grant.node;
		});

		if (known != end)
		{
			known->grant.generation = std::max(known->grant.generation, grant.generation);
			if (known->grant.granted_until_us >= grant.granted_until_us)
				return;
			known->grant.granted_until_us = grant.granted_until_us;
			known->is_refusal_told = false;
		}
		else
		{
			if (lost_.count == LostGrants::room)
				forget_lost(std::min_element(lost_.each, end, [] (const LostGrant &one, const LostGrant &other) {
					return one.grant.granted_until_us < other.grant.granted_until_us;
				}));
			lost_.each[lost_.count++] = {grant, false};
		}
		env_.keep_lost(lost_);
	}

	void forget_lost(LostGrant *lost) noexcept
	{
		std::copy(lost + 1, lost_.each + lost_.count, lost);
		lost_.count--;
	}

	/* The registry has given the number to another, or to nobody. */
	void lose(const Claim &known, int64_t issued_until_us) noexcept
	{
		begin_assertion(used_up(grant_, issued_until_us));
		env_.lost(grant_, known);
	}

	/* Tells the registry of all that was lost.  False where it can't be spoken to. */
	bool assert_lost_grants() noexcept
	{
		for (int i = 0; i < lost_.count;)
		{
			bool		is_due = true;

			if (!assert_lost_grant(&lost_.each[i], &is_due))
				return false;
			if (is_due)
			{
				i++;
				continue;
			}
			forget_lost(&lost_.each[i]);
			env_.keep_lost(lost_);
		}
		return true;
	}

	/*
	 * Tells the registry how far ids were made under what was lost: a registry that
	 * was restored may know less.  It may refuse to be told while another holds the
	 * number, and is then told later.  False where it can't be spoken to.
	 */
	bool assert_lost_grant(LostGrant *lost, bool *is_due) noexcept
	{
		for (int i = 0; i < tries_per_turn; i++)
		{
			Problem		problem = {};
			Claim		known;
			Claim		next;
			RegistryTime registry;

			if (!read(lost->grant.node, &known, &registry))
				return false;
			*is_due = decide_assertion(known, lost->grant, &next);
			if (!*is_due)
				return true;
			switch (env_.write(Form::assertion, known, next, &problem))
			{
				case Written::unknown:
					show_failure(problem);
					return false;
				case Written::busy:
					/* Later: whoever is in the way keeps nobody from another claim. */
					return true;
				case Written::refused:
					if (!lost->is_refusal_told)
						env_.assertion_refused(lost->grant, problem);
					lost->is_refusal_told = true;
					env_.keep_lost(lost_);
					return true;
				case Written::done:
				case Written::changed:
					break;
			}
		}
		return true;
	}

	/* Has the claim not been renewed for as long as it counts as alive? */
	bool is_overdue() noexcept
	{
		return env_.boot_us() >= alive_until_us_;
	}

	/*
	 * The same grant, which a release gives back no further than this server's past: what it issued under this number
	 * before a crash, or before it had a registry, the generator does not know.
	 */
	Grant with_own_past(const Grant &grant) noexcept
	{
		Grant		known = grant;

		known.told_until_us = std::max(grant.told_until_us, std::min(env_.durable_us(), grant.granted_until_us));
		return known;
	}

	/* Holds what the registry has granted anew. */
	void hold(const Grant &granted, int64_t begun_us) noexcept
	{
		publish(granted, begun_us);
		show(ClaimState::held, {});
	}

	/* Lets the backends use what the registry has confirmed, to a request that was begun then. */
	void publish(const Grant &confirmed, int64_t begun_us) noexcept
	{
		const bool	is_new = !is_claimed_;

		grant_ = confirmed;
		/* Whatever was claimed before ends before there is another grant. */
		if (is_new)
			(void) env_.revoke();
		is_claimed_ = true;
		alive_until_us_ = begun_us + env_.window_us();
		is_grant_pending_ = false;
		pause_us_ = 0;
		env_.publish(confirmed);
		if (!is_new)
			env_.extend(confirmed.granted_until_us);
	}

	/* Ends the claim: nothing is issued under it any more.  Returns the end of the last tick that was. */
	int64_t take_back() noexcept
	{
		env_.withdraw();
		state_ = ClaimState::lost;
		is_claimed_ = false;
		return env_.revoke();
	}

	/*
	 * Remembers what is about to be asked for: whoever goes on with this claim, after
	 * this process or after a crash, may find it granted.  What was adopted goes with it:
	 * the registry has that already.
	 */
	void remember_asked(int64_t until_us) noexcept
	{
		grant_.asked_until_us = std::max(grant_.asked_until_us, until_us);
		env_.remember(grant_);
	}

	void show(ClaimState state, const Trouble &trouble) noexcept
	{
		state_ = state;
		env_.show(state, grant_, trouble);
	}

	/* What is wrong, with the state that follows from it. */
	void show_trouble(const Trouble &trouble) noexcept
	{
		ClaimState	state = state_ == ClaimState::none ? ClaimState::none : ClaimState::lost;

		if (is_claimed_)
			state = grant_.granted_until_us <= env_.clock_us() ? ClaimState::lost : ClaimState::suspended;
		show(state, trouble);
	}

	/* The registry can't be spoken to, and is connected to anew. */
	void show_failure(const Problem &problem) noexcept
	{
		disconnect();
		show_trouble({.kind = Trouble::Kind::failure, .problem = &problem});
	}

	/* The same.  Returns the pause before the next turn. */
	int64_t fail(const Problem &problem) noexcept
	{
		show_failure(problem);
		return retry_pause();
	}

	/* The registry can be spoken to, but not written just now.  Returns the pause before the next turn. */
	int64_t retry_soon(const Problem &problem) noexcept
	{
		show_trouble({.kind = Trouble::Kind::failure, .problem = &problem});
		return retry_pause();
	}

	void show_verdict(Verdict verdict, const Claim &known, const RegistryTime &registry) noexcept
	{
		show_trouble({.kind = Trouble::Kind::verdict, .verdict = verdict, .claim = &known, .registry = &registry});
	}

	/* The rules forbid to write the claim.  Returns the pause before the next turn. */
	int64_t refuse(Verdict verdict, const Claim &known, const RegistryTime &registry) noexcept
	{
		show_verdict(verdict, known, registry);
		return verdict == Verdict::unsettled ? std::min(retry_pause(), registry.unsettled_us) : retry_pause();
	}

	/* The pause after a renewal. */
	int64_t renewal_pause() noexcept
	{
		return std::min(env_.window_us() / 3, longest_renewal_pause_us);
	}

	/* The pause after a failure. */
	int64_t retry_pause() noexcept
	{
		const int64_t longest_us = std::min(longest_retry_pause_us, env_.window_us() / 3);

		pause_us_ = std::clamp(2 * pause_us_, first_pause_us, std::max(longest_us, first_pause_us));
		return static_cast<int64_t>(static_cast<double>(pause_us_) * (0.5 + 0.5 * env_.random()));
	}

	Env		   &env_;
	Holder		me_{};
	ClaimState	state_ = ClaimState::none;	/* as it was shown last */

	bool		is_connected_ = false;
	int64_t		next_turn_us_ = 0;
	int64_t		pause_us_ = 0;	/* after the last failure, before its jitter; 0: there was none since a success */

	/* The claim; is_claimed_ says whether there is one. */
	bool		is_claimed_ = false;
	Grant		grant_{};
	int64_t		alive_until_us_ = 0;	/* CLOCK_BOOTTIME: until then the registry counts us as alive at least */

	/* What was lost, and the registry may know too little of: it is told before another number is asked for. */
	LostGrants	lost_{};

	/* A grant that may have been made, though the answer is missing. */
	bool		is_grant_pending_ = false;
	Grant		pending_grant_{};
	int64_t		pending_begun_us_ = 0;	/* CLOCK_BOOTTIME */
};

}  // namespace snowflake

#endif
