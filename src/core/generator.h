/*
 * generator.h
 *		The generator: takes ids from the one 64-bit word that all backends of a
 *		server share.
 *
 * An id is a place on the plane node x time.  A server issues ids only inside
 * the claim that it holds: its node number, up to a limit that was made durable
 * before the first id below it.  So ids never repeat, whatever the clock does;
 * the clock only decides how soon one can be had.
 *
 * The word (steps.h) holds the last id.  A swap of it is the issue of an id, so
 * ids increase in the order of the swaps.
 *
 * A call that waits for the clock takes a place in a queue (queue.h) before it
 * sleeps.  While anybody has one, limit says so by its highest bit.  The short way
 * of an id then ends there, and the call goes on by take_slowly(), where it leaves
 * to those who wait what is theirs.  So the queue costs nothing while it is empty.
 *
 * With a registry there is a second limit, up to which the registry has granted
 * the node number.  What is reserved never lies above it, so that the way of an
 * id has one limit to look at, whoever grants it.
 *
 * Who may touch what:
 *	word		anybody, by compare-and-swap from a word that is held; to take or
 *				end a claim, under the lock
 *	limit, granted, claim_start, highest_issued, passed, claim_count
 *				written under the lock, read without it
 *	the rest	anybody; wrong values would cost time or a counter, never an id
 *
 * Memory order.  Whoever publishes a claim stores limit before word (release); a
 * taker loads word (acquire), then limit, then swaps.  Within one claim the limit
 * only grows, so what was checked still holds at the swap; a claim that was ended
 * or changed in between makes the swap fail, unless the word has come to the same
 * value again in a later claim: after set_reserved_until() has gone back, or where
 * the claim before ended with the last id of a tick.  So claim_count is compared
 * before and after: it is counted up before a later claim's word is published.
 *
 * Everything outside is handed in as an Environment (environment.h).  Its functions
 * may leave by longjmp(), which also releases the lock: nothing here needs
 * unwinding, and whatever was changed until then is a state in which another can
 * go on.
 */
#ifndef SNOWFLAKE_CORE_GENERATOR_H
#define SNOWFLAKE_CORE_GENERATOR_H

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/clock_trust.h"
#include "core/environment.h"
#include "core/id.h"
#include "core/layout.h"
#include "core/pace.h"
#include "core/queue.h"
#include "core/steps.h"
#include "core/units.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/* A long wait looks at the clock again this often: it may have been put right. */
constexpr int64_t longest_wait_ns = 100 * ns_per_ms;

/* A batch of a session whose rate is bounded sleeps for more than one id, about so long. */
constexpr int64_t pace_nap_ns = 10 * ns_per_ms;

/* The limit's highest bit: there is somebody in the queue. */
constexpr uint64_t queued = uint64_t{1} << 63;

struct Options
{
	SequenceStart sequence_start;
	int64_t		max_drift_us;
	int64_t		max_wait_ns;
	int64_t		reserve_ahead_us;
	int64_t		max_forward_jump_ns;
	int64_t		max_session_rate = 0;	/* ids a second; 0: any number */
};

/* Atomic is std::atomic<uint64_t> or what behaves like it. */
template <typename Atomic>
struct SharedState
{
	alignas(64) Atomic word;

	/* Beside the word, since only calls that have to wait touch it. */
	QueueState<Atomic> queue;

	/* Ticks below this one may be issued; and queued. */
	alignas(64) Atomic limit;

	/* Ticks below this one are granted to this server's node number; all of them without a registry. */
	Atomic		granted;

	/* The furthest limit that somebody has set out to reserve before it was needed. */
	Atomic		target;

	/* Counts changes of the claim; a reservation that was begun before one is not published. */
	Atomic		claim_count;

	/* The first step of the claim: the word is below it until an id was issued. */
	Atomic		claim_start;

	/* The last step of any claim that ended; 0 for none. */
	Atomic		highest_issued;

	/* The tick that advance_past() moved on to last: ids of others may lie below it; 0 for none. */
	Atomic		passed;

	/* Statistics: too rare to matter here; the environment counts the ids and the waits. */
	Atomic		reservations;

	alignas(64) ClockHistory<Atomic> clock;

	void		initialize() noexcept
	{
		for (Atomic *zero :
			 {&word, &limit, &granted, &target, &claim_count, &claim_start, &highest_issued, &passed,
			  &reservations})
			zero->store(0, std::memory_order_relaxed);
		clock.initialize();
		queue.initialize();
	}
};

enum class Failure
{
	none,
	behind,						/* the next id lies ahead of the clock, further than may be waited for */
	standstill,					/* the clock does not move while it is waited for */
	forward_jump,				/* the wall clock jumped forward and is not believed */
	epoch_ahead,				/* the layout's epoch lies in the future */
	exhausted,					/* the layout's time has run out */
	issued_above,				/* set_reserved_until() below ids that were issued */
	ungranted,					/* the registry grants no node number, or not this time */
	past_grant,					/* advance_past() beyond what the registry has granted */
	over_rate,					/* the session has taken what it may at the moment */
};

/* What take() returns; the last three say why there was a failure. */
struct Taken
{
	Failure		failure;
	int64_t		id;				/* the first one; next_in_tick() is the one after it */
	int64_t		count;			/* of successive ones, all in one tick */

	int64_t		now_ns;
	int64_t		tick;			/* that the next id would lie in */
	int64_t		excess_ns;		/* what had to be waited for, or how far the clock jumped */
};

template <typename Atomic, Environment Env>
class Generator
{
public:
	/*
	 * The layout must outlive the generator, and generating with it must be possible: timestamp highest.
	 * places: of all backends; own: this one's
	 */
	Generator(SharedState<Atomic> &state, const Layout &layout, Env &env, typename Queue<Atomic>::Places places,
			  size_t own) noexcept
		: state_(state), layout_(layout), env_(env), steps_(layout), trust_(state.clock),
		  queue_(state.queue, places, own)
	{
	}

	void		set_options(const Options &options) noexcept
	{
		options_ = options;
		/* A jump that is not to be believed must meet the limit, where the clock is looked at. */
		options_.reserve_ahead_us = std::min(options.reserve_ahead_us, options.max_forward_jump_ns / ns_per_us);
		max_drift_ = options.max_drift_us / layout_.tick_us;
		half_ahead_ = options_.reserve_ahead_us / layout_.tick_us / 2;
		pace_.set_rate(options.max_session_rate);
		/* Who has to be asked about each id never finds one on the short way. */
		short_drift_ = pace_.is_bounded() ? INT64_MIN / 2 : max_drift_;
		trust_.set_max_forward_jump(options.max_forward_jump_ns);
	}

	/*
	 * Takes the next ids: up to wanted of them, fewer where the tick has no more.
	 * Waits for the clock where it may, max_wait and a tick in all; reserves where it must.
	 */
	Taken		take(int64_t wanted) noexcept
	{
		Taken		taken;
		Obstacle	obstacle = try_to_take<true>(wanted, nullptr, &taken);

		if (obstacle != Obstacle::none) [[unlikely]]
			take_slowly(wanted, obstacle, &taken);
		return taken;
	}

	/*
	 * One id where nothing keeps the call from it, as is almost always so; -1 where
	 * something may: take() does it then, or says what.  A path of its own, since what
	 * Taken has besides is never stored here.
	 */
	int64_t		take_at_once() noexcept
	{
		Taken		taken;

		return try_to_take<true>(1, nullptr, &taken) == Obstacle::none ? taken.id : -1;
	}

	/*
	 * Makes all later ids lie in ticks after this one, durably.  Never goes back.
	 * The caller has checked that the tick is in the layout and not far ahead.
	 */
	Taken		advance_past(int64_t tick) noexcept
	{
		Taken		taken{};
		Call		call{};

		for (;;)
		{
			uint64_t	claim_count = load(state_.claim_count);

			if (!(load(state_.word) & held))
			{
				if (!claim(&taken) && !wait_for_grant(taken, &call))
					return taken;
				continue;
			}
			if (!is_granted(tick))
				return failure(Failure::past_grant, env_.now_ns(), tick, 0);
			if (!make_durable(claim_count, tick + 1))
				continue;
			if (move_past(claim_count, tick))
				return {};
		}
	}

	/*
	 * Moves the durable limit, backwards too.  Refused below what this server
	 * has issued since it started; what was issued before that, only the caller
	 * can know.  The next id starts from the new limit.
	 */
	Taken		set_reserved_until(int64_t limit_us) noexcept
	{
		env_.prepare_limit();

		ClockReading clock = env_.read_clock();

		env_.lock();

		uint64_t	old = load(state_.word);

		if (old & held)
			old = end_claim();

		uint64_t	issued = load(state_.highest_issued);

		if (issued != 0 && steps_.begin_us(steps_.tick_of(issued) + 1) > limit_us)
		{
			if (old & held)
				state_.word.store(old, std::memory_order_release);
			env_.unlock();
			return failure(Failure::issued_above, 0, steps_.tick_of(issued), 0);
		}
		forget_claim();
		trust_.believe(clock.offset_ns);
		env_.set_limit(limit_us);
		env_.unlock();
		env_.flush_limit();
		return {};
	}

	/* Does what is claimed go up to the end of this tick? */
	bool		is_granted(int64_t tick) const noexcept
	{
		return tick < load_granted();
	}

	/* The registry has granted more time to the node number that is claimed. */
	void		extend(int64_t granted_until_us) noexcept
	{
		env_.lock();
		if (steps_.tick_before(granted_until_us) > load_granted())
			set_granted(granted_until_us);
		env_.unlock();
	}

	/*
	 * Ends the claim for good: when this returns nothing is issued any more
	 * until claim_source() gives another one.  Returns the end of the newest
	 * tick that this server has issued ids in, or was told to pass, Unix
	 * microseconds; 0 for none.  Whoever has the node number next begins there.
	 */
	int64_t		revoke() noexcept
	{
		env_.lock();
		if (load(state_.word) & held)
			(void) end_claim();
		forget_claim();

		uint64_t	issued = load(state_.highest_issued);
		int64_t		tick = std::max(issued == 0 ? 0 : steps_.tick_of(issued) + 1,
									static_cast<int64_t>(load(state_.passed)));

		env_.unlock();
		return tick == 0 ? 0 : steps_.begin_us(tick);
	}

	/* Believes a wall clock with this offset. */
	void		accept_clock(int64_t offset) noexcept
	{
		trust_.accept(offset);
	}

	/*
	 * Why the next id could not be had by the clock as it is now; none where it
	 * can, after a wait that is allowed.  Nothing is changed.  start_us is where a
	 * claim would start, Unix microseconds, where none is held.
	 */
	Failure		clock_failure(int64_t start_us) noexcept
	{
		ClockReading clock = env_.read_clock();
		uint64_t	word = load(state_.word);
		int64_t		now_tick = steps_.tick_at(clock.wall_ns);
		int64_t		tick = word & held ?
			steps_.tick_of(steps_.after(steps_.step_of(word), clock.wall_ns, now_tick, options_.sequence_start)) :
			first_tick(clock, start_us, 0);

		if (trust_.jump_of(clock.offset_ns) > 0)
			return Failure::forward_jump;
		if (!(word & held) && clock.wall_ns < steps_.epoch_ns() && tick == 1)
			return Failure::epoch_ahead;
		if (std::max(tick, now_tick) > steps_.last_tick())
			return Failure::exhausted;
		if (tick > now_tick + max_drift_ &&
			ns_until(tick, clock.wall_ns) > std::max(options_.max_wait_ns, steps_.tick_ns()))
			return Failure::behind;
		return Failure::none;
	}

	/* The call will not come back from what it does in the environment: nothing is left for it in the queue. */
	void		give_up_place() noexcept
	{
		queue_.give_up();
	}

	/* Ticks below this one are reserved, where a claim is held. */
	int64_t		reserved_tick() const noexcept
	{
		return load_limit();
	}

	/* The newest id; -1 where this server has issued none since it started. */
	int64_t		newest_id() noexcept
	{
		uint64_t	word = load(state_.word);
		uint64_t	step = steps_.step_of(word);

		if (step < load(state_.claim_start))
			step = load(state_.highest_issued);
		return step == 0 ? -1 : steps_.id(step, steps_.node_of(word));
	}

private:
	/* What keeps a call from taking an id. */
	enum class Obstacle
	{
		none,
		unclaimed,				/* no claim is held */
		exhausted,				/* the layout has no such tick */
		ahead_of_clock,			/* the next id lies further ahead of the clock than max_drift */
		kept,					/* what is left of the tick is for calls that came before */
		paced,					/* the session has taken what it may at the moment */
		unreserved,				/* its tick lies at or above the limit */
		half_used,				/* none for this id, but it is time that somebody reserves further */
	};

	/* What a call has done so far.  Times are ns. */
	struct Call
	{
		int64_t		ahead_us;		/* how far it reserves ahead */
		bool		is_exact = false;	/* it looks at the clock itself, not at its last reading */
		int64_t		came = came_last;	/* on CLOCK_BOOTTIME, as its place in the queue has it */
		int64_t		waits_since = INT64_MIN;	/* the first wait's beginning on CLOCK_BOOTTIME */
		int64_t		slept = 0;		/* the last wait for the clock */
		int64_t		slept_from = 0;	/* its beginning, by the clock that is waited for */
		int64_t		lag = 0;		/* of this clock behind the other, over all waits */
	};

	/*
	 * The way of an id.  Takes it where nothing is in its way; else *taken has the
	 * clock and the tick that the id would lie in.  The short way is for calls that
	 * nothing keeps from their id; the other has a Call, and respects the queue.
	 * Inlined, so that a caller that wants one id does without what the others need.
	 */
	template <bool is_short>
	[[gnu::always_inline]] Obstacle try_to_take(int64_t wanted, const Call *call, Taken *taken) noexcept
	{
		for (;;)
		{
			uint64_t	claim_count = load(state_.claim_count);
			uint64_t	old = state_.word.load(std::memory_order_acquire);

			if (!(old & held))
				return Obstacle::unclaimed;

			int64_t		now = look_at_clock(!is_short && call->is_exact);
			int64_t		now_tick = last_now_tick_;

			taken->now_ns = now;
			taken->tick = now_tick;
			if (now_tick > steps_.last_tick())
				return Obstacle::exhausted;

			uint64_t	next = steps_.after(steps_.step_of(old), now, now_tick, options_.sequence_start);
			int64_t		tick = steps_.tick_of(next);

			taken->tick = tick;
			if (tick > steps_.last_tick())
				return Obstacle::exhausted;
			if (tick > now_tick + (is_short ? short_drift_ : max_drift_))
				return Obstacle::ahead_of_clock;

			/* Below every tick, for the short way, where somebody is in the queue. */
			int64_t		limit = is_short ? static_cast<int64_t>(load(state_.limit)) : load_limit();

			if (tick >= limit)
				return Obstacle::unreserved;
			if (is_half_used(tick, limit))
				return Obstacle::half_used;

			/* There is always one: next itself. */
			int64_t		count = wanted == 1 ? 1 : std::min(wanted, steps_.left_in_tick(next));

			/* Where there is a tick after this one, those who wait have that. */
			if (!is_short && tick == now_tick + max_drift_ && !queue_.is_empty())
			{
				count = std::min(wanted, queue_.share(steps_.left_in_tick(next), call->came, env_.boot_ns()));
				if (count == 0)
				{
					taken->tick = tick + 1;
					return Obstacle::kept;
				}
			}

			uint64_t	last = next + static_cast<uint64_t>(count) - 1;

			if (!state_.word.compare_exchange_weak(old, steps_.word(last, steps_.node_of(old)),
												   std::memory_order_acq_rel, std::memory_order_relaxed))
				continue;

			/* Was the word a later claim's that looked the same?  Its limit was not looked at: not issued. */
			if (load(state_.claim_count) != claim_count)
				continue;

			*taken = {Failure::none, steps_.id(next, steps_.node_of(old)), count, now, tick, 0};
			return Obstacle::none;
		}
	}

	/* Goes on with a call that has met an obstacle.  Apart, so that the others need not be ready for it. */
	[[gnu::noinline]] void take_slowly(int64_t wanted, Obstacle obstacle, Taken *taken) noexcept
	{
		Call		call{.ahead_us = options_.reserve_ahead_us};

		if (!queue_.is_empty() && queue_.is_forsaken(env_.boot_ns()))
			sweep_queue();
		/* The short way ends for these whether there is an obstacle or not. */
		if (pace_.is_bounded() || (obstacle == Obstacle::unreserved && taken->tick < load_limit()))
			obstacle = try_at_pace(wanted, call, taken);
		while (obstacle != Obstacle::none && overcome(obstacle, wanted, &call, taken))
			obstacle = try_at_pace(wanted, call, taken);
		if (obstacle == Obstacle::none)
			pace_.spend(taken->count);
		/* It may be one of a call that was cancelled. */
		if (queue_.has_place())
			leave_queue();
	}

	/* As many as the session may have now. */
	Obstacle	try_at_pace(int64_t wanted, const Call &call, Taken *taken) noexcept
	{
		int64_t		allowed = pace_.is_bounded() ? pace_.allowed(wanted, env_.boot_ns()) : wanted;

		return allowed == 0 ? Obstacle::paced : try_to_take<false>(allowed, &call, taken);
	}

	/* Does what lets the call try again; false with the failure where nothing can be done. */
	bool		overcome(Obstacle obstacle, int64_t wanted, Call *call, Taken *taken) noexcept
	{
		switch (obstacle)
		{
			case Obstacle::unclaimed:
				return claim(taken) || wait_for_grant(*taken, call);
			case Obstacle::exhausted:
				return fail(taken, Failure::exhausted, taken->now_ns, taken->tick, 0);
			case Obstacle::ahead_of_clock:
			case Obstacle::kept:
				return wait_for_clock(call, taken);
			case Obstacle::paced:
				return wait_for_pace(wanted, call, taken);
			case Obstacle::unreserved:
			case Obstacle::half_used:
				return reserve_for(obstacle == Obstacle::unreserved, call, taken) ||
					wait_for_grant(*taken, call);
			case Obstacle::none:
				break;
		}
		return true;
	}

	/* The clock; its tick is in last_now_tick_. */
	int64_t		look_at_clock(bool is_exact) noexcept
	{
		int64_t		now = is_exact ? env_.now_ns() : env_.recent_ns();

		if (now != last_now_)
		{
			if (now < last_now_ || last_now_ == INT64_MIN)
				see_clock();
			last_now_ = now;
			last_now_tick_ = steps_.tick_at(now);
		}
		return now;
	}

	/* Counts a clock that went back. */
	void		see_clock() noexcept
	{
		trust_.see(env_.read_clock().offset_ns);
	}

	/* Waits until an id may lie in the tick, or for longest_wait_ns. */
	bool		wait_for_clock(Call *call, Taken *taken) noexcept
	{
		int64_t		now = taken->now_ns;
		int64_t		tick = taken->tick;
		int64_t		wait = ns_until(tick, now);

		/* Nobody waits, and nothing is refused, by a reading that is old. */
		if (!call->is_exact)
		{
			call->is_exact = true;
			return true;
		}

		int64_t		waited = waited_in(*call);

		if (wait > steps_.tick_ns())
		{
			see_clock();
			if (wait > options_.max_wait_ns - waited)
				return fail(taken, Failure::behind, now, tick, wait);
		}
		if (call->slept > 0 && now >= call->slept_from)
			call->lag += call->slept - (now - call->slept_from);

		/*
		 * More may have come before this call than there are ids; or the clock stands
		 * still: without what it lags behind CLOCK_BOOTTIME there would be an id now.
		 */
		if (wait > options_.max_wait_ns + steps_.tick_ns() - waited)
			return wait <= call->lag ? fail(taken, Failure::standstill, now, tick, waited) :
				fail(taken, Failure::behind, now, tick, wait);

		wait = std::min(wait, longest_wait_ns);
		/* What others took before they could see the place is gone: what it looks at next is not. */
		if (join_queue(wait, call))
			return true;
		call->slept_from = now;
		call->slept = env_.wait(wait, begin_wait(call));
		return true;
	}

	/* Waits until the session may have more ids. */
	bool		wait_for_pace(int64_t wanted, Call *call, Taken *taken) noexcept
	{
		int64_t		now = env_.boot_ns();
		int64_t		wait = pace_.ns_until(1, now);
		int64_t		waited = waited_in(*call);
		int64_t		most = options_.max_wait_ns + steps_.tick_ns() - waited;

		if (wait <= 0)
			return true;
		if (wait > most || (wait > steps_.tick_ns() && wait > options_.max_wait_ns - waited))
			return fail(taken, Failure::over_rate, env_.now_ns(), 0, wait);
		wait = std::max(wait, std::min({pace_.ns_until(wanted, now), pace_nap_ns, most}));
		(void) env_.wait_for_pace(std::min(wait, longest_wait_ns), begin_wait(call));
		return true;
	}

	/* False where the failure is another, or the call has waited long enough. */
	bool		wait_for_grant(const Taken &failed, Call *call) noexcept
	{
		int64_t		left = std::max<int64_t>(options_.max_wait_ns - waited_in(*call), 0);

		if (failed.failure != Failure::ungranted)
			return false;
		/* Who may not wait asks all the same: for the next call. */
		bool		has_waited = env_.wait_for_grant(steps_.begin_us(failed.tick + 1), std::min(left, longest_wait_ns),
													 begin_wait(call)) > 0;

		return left > 0 && has_waited;
	}

	/* A wait begins; true where it is the call's first. */
	bool		begin_wait(Call *call) noexcept
	{
		if (call->waits_since != INT64_MIN)
			return false;
		call->waits_since = env_.boot_ns();
		return true;
	}

	/*
	 * How long the call has waited, ns on CLOCK_BOOTTIME: all that it did since its
	 * first wait, making time durable, too, and getting a processor.
	 */
	int64_t		waited_in(const Call &call) noexcept
	{
		return call.waits_since == INT64_MIN ? 0 : env_.boot_ns() - call.waits_since;
	}

	/*
	 * The queue
	 */

	/* For a call that will sleep for so long; true where it had no place. */
	bool		join_queue(int64_t sleep, Call *call) noexcept
	{
		int64_t		now = env_.boot_ns();
		bool		is_new = call->came == came_last;

		if (is_new)
			call->came = now;
		env_.lock();
		queue_.join(call->came, now + sleep);
		show_queue();
		env_.unlock();
		return is_new;
	}

	void		leave_queue() noexcept
	{
		queue_.give_up();
		sweep_queue();
	}

	void		sweep_queue() noexcept
	{
		int64_t		now = env_.boot_ns();

		env_.lock();
		queue_.sweep(now);
		show_queue();
		env_.unlock();
	}

	/* Under the lock. */
	void		show_queue() noexcept
	{
		uint64_t	limit = load(state_.limit);
		uint64_t	shown = queue_.is_empty() ? limit & ~queued : limit | queued;

		if (shown != limit)
			state_.limit.store(shown, std::memory_order_release);
	}

	/*
	 * Claims
	 */

	/*
	 * Where a claim starts: in the first tick that begins at or after the clock, the
	 * durable limit, the grant's beginning and every id that this server has issued,
	 * whatever layout or node number came before.
	 */
	int64_t		first_tick(const ClockReading &clock, int64_t durable_us, int64_t granted_from_us) const noexcept
	{
		uint64_t	issued = load(state_.highest_issued);
		int64_t		issued_end = issued == 0 ? 0 : steps_.tick_of(issued) + 1;

		/* Tick 0 is left out, so that there is a step before the first. */
		return std::max({steps_.tick_from(rounded_up_us(clock)), steps_.tick_from(durable_us),
						 steps_.tick_from(granted_from_us), issued_end, int64_t{1}});
	}

	/* Takes the claim.  Nothing is reserved yet. */
	bool		claim(Taken *taken) noexcept
	{
		ClaimSource source{};

		env_.lock();
		if (load(state_.word) & held)
		{
			env_.unlock();
			return true;
		}
		if (!env_.claim_source(&source))
		{
			env_.unlock();
			return fail(taken, Failure::ungranted, env_.now_ns(), 0, 0);
		}

		ClockReading clock = env_.read_clock();
		/* Not one after set_reserved_until(), which says nothing about the clock. */
		bool		is_first = load(state_.claim_count) == 0;
		bool		is_started = start_from(source, clock, taken);

		env_.unlock();
		if (is_started && is_first)
			compare_with_limit(clock, source.durable_us);
		return is_started;
	}

	/* Starts a claim, or says why not.  Under the lock; there must be none. */
	bool		start_from(const ClaimSource &source, const ClockReading &clock, Taken *taken) noexcept
	{
		int64_t		start = first_tick(clock, source.durable_us, source.granted_from_us);

		/* A claim that started by a clock that is not believed would lie there when the clock is put right. */
		if (!is_believed(clock, start, taken))
			return false;
		if (clock.wall_ns < steps_.epoch_ns() && start == 1)
			return fail(taken, Failure::epoch_ahead, clock.wall_ns, 0, steps_.epoch_ns() - clock.wall_ns);
		if (start > steps_.last_tick())
			return fail(taken, Failure::exhausted, clock.wall_ns, start, 0);
		/* So would one that started by a clock that is wrong, and was granted nothing there. */
		if (start >= steps_.tick_before(source.granted_until_us) &&
			start <= steps_.tick_at(clock.wall_ns) + 1 + max_drift_)
			return fail(taken, Failure::ungranted, clock.wall_ns, start, 0);

		/* A reservation that began after the last claim's end may have published what that one was granted. */
		set_limit(0);
		set_granted(source.granted_until_us);
		start_claim(start, source.node);
		return true;
	}

	/* There is nothing yet to compare the first claim's clock with but the durable limit. */
	void		compare_with_limit(const ClockReading &clock, int64_t durable_us) noexcept
	{
		int128		past_us = rounded_up_us(clock) - durable_us;

		if (durable_us > 0 && past_us > options_.max_forward_jump_ns / ns_per_us)
			env_.clock_ahead(clock.wall_ns, durable_us);
		if (-past_us > options_.reserve_ahead_us + options_.max_drift_us + layout_.tick_us)
			trust_.count_rollback(static_cast<int64_t>(std::min<int128>(-past_us * ns_per_us, INT64_MAX)));
	}

	/* Publishes a claim that starts at a tick, nothing reserved.  Under the lock; there must be no claim. */
	void		start_claim(int64_t tick, uint64_t node) noexcept
	{
		uint64_t	step = steps_.first_step(tick);

		if (load_limit() < tick)
		{
			set_limit(tick);
			state_.target.store(static_cast<uint64_t>(tick), std::memory_order_relaxed);
		}
		state_.claim_start.store(step, std::memory_order_release);
		state_.word.store(steps_.word(step - 1, node), std::memory_order_release);
	}

	/* Ends the claim and returns its last word, held.  Under the lock. */
	uint64_t	end_claim() noexcept
	{
		uint64_t	old = state_.word.fetch_and(~held, std::memory_order_acq_rel);

		if (steps_.step_of(old) >= load(state_.claim_start))
			state_.highest_issued.store(steps_.step_of(old), std::memory_order_release);
		return old;
	}

	/* What was begun for the claim that has ended is not published.  Under the lock. */
	void		forget_claim() noexcept
	{
		state_.claim_count.fetch_add(1, std::memory_order_acq_rel);
	}

	/* Lets the claim go on after a tick that is durable; false where it is another claim by now. */
	bool		move_past(uint64_t claim_count, int64_t tick) noexcept
	{
		env_.lock();

		bool		same_claim = load(state_.claim_count) == claim_count && (load(state_.word) & held);

		if (same_claim)
		{
			raise_limit(tick + 1);
			if (static_cast<int64_t>(load(state_.passed)) <= tick)
				state_.passed.store(static_cast<uint64_t>(tick + 1), std::memory_order_release);
			if (steps_.tick_of(steps_.step_of(load(state_.word))) <= tick)
			{
				uint64_t	old = end_claim();

				if (steps_.tick_of(steps_.step_of(old)) <= tick)
					start_claim(tick + 1, steps_.node_of(old));
				else
					state_.word.store(old, std::memory_order_release);
			}
		}
		env_.unlock();
		return same_claim;
	}

	/*
	 * Reservations
	 */

	/* Is it time to reserve further, and nobody at it yet? */
	bool		is_half_used(int64_t tick, int64_t limit) const noexcept
	{
		return limit - tick <= half_ahead_ && limit <= steps_.last_tick() &&
			static_cast<int64_t>(load(state_.target)) <= limit && limit < load_granted();
	}

	/* Reserves for the tick of the id; see reserve(). */
	bool		reserve_for(bool is_needed, Call *call, Taken *taken) noexcept
	{
		int64_t		limit = load_limit();

		if (!reserve(taken->tick, call->ahead_us, is_needed, taken))
			return false;
		/* Where that takes longer than what was reserved lasts, the next one must reserve more. */
		if (is_needed && load_limit() > limit)
			call->ahead_us = std::min(2 * call->ahead_us, options_.max_forward_jump_ns / ns_per_us);
		return true;
	}

	/*
	 * Reserves time for a tick and ahead_us more.  is_needed says that nothing
	 * can be issued before; otherwise it is done early, by one backend for all.
	 * False with the failure where the clock is not believed or the tick is not
	 * granted; true where it was done or the caller should look again.
	 */
	bool		reserve(int64_t tick, int64_t ahead_us, bool is_needed, Taken *taken) noexcept
	{
		uint64_t	claim_count = load(state_.claim_count);
		ClockReading clock = env_.read_clock();

		if (!is_believed(clock, tick, taken))
			return false;
		/* The clock that asked for this tick may have gone since: it is not what is reserved by. */
		if (tick > steps_.tick_at(clock.wall_ns) + max_drift_)
			return true;

		int128		from_us = std::max<int128>(clock.wall_ns / ns_per_us, steps_.begin_us(tick));
		int64_t		limit = std::min(std::max(steps_.tick_from(from_us + ahead_us), tick + 1), load_granted());

		if (limit <= tick)
			return fail(taken, Failure::ungranted, clock.wall_ns, tick, 0);
		if (!is_needed && !set_target(limit))
			return true;
		if (make_durable(claim_count, limit))
			publish_limit(claim_count, limit, clock);
		return true;
	}

	/* For one backend, which then reserves; false for the others. */
	bool		set_target(int64_t limit) noexcept
	{
		uint64_t	target = load(state_.target);

		return static_cast<int64_t>(target) <= load_limit() && static_cast<int64_t>(target) < limit &&
			state_.target.compare_exchange_strong(target, static_cast<uint64_t>(limit),
												  std::memory_order_acq_rel, std::memory_order_relaxed);
	}

	/* Makes the ticks below limit durable for the claim; false where the claim has changed. */
	bool		make_durable(uint64_t claim_count, int64_t limit) noexcept
	{
		env_.prepare_limit();
		env_.lock();

		bool		same_claim = load(state_.claim_count) == claim_count;

		if (same_claim)
			env_.advance_limit(steps_.begin_us(limit));
		env_.unlock();
		if (same_claim)
			env_.flush_limit();
		return same_claim;
	}

	/* What was made durable by this clock may be issued, unless the claim has changed. */
	void		publish_limit(uint64_t claim_count, int64_t limit, const ClockReading &clock) noexcept
	{
		state_.reservations.fetch_add(1, std::memory_order_relaxed);
		env_.lock();
		if (load(state_.claim_count) == claim_count)
		{
			/* What is granted may be another claim's than it was when the limit was chosen. */
			raise_limit(std::min(limit, load_granted()));
			trust_.believe_further(clock.offset_ns);
		}
		env_.unlock();
	}

	/* Never lowers it.  Under the lock. */
	void		raise_limit(int64_t limit) noexcept
	{
		if (limit > load_limit())
			set_limit(limit);
	}

	/* Lets the queue be.  Under the lock. */
	void		set_limit(int64_t limit) noexcept
	{
		state_.limit.store(static_cast<uint64_t>(limit) | (load(state_.limit) & queued), std::memory_order_release);
	}

	/* Under the lock. */
	void		set_granted(int64_t until_us) noexcept
	{
		state_.granted.store(static_cast<uint64_t>(steps_.tick_before(until_us)), std::memory_order_release);
	}

	/* False with the failure where the wall clock has jumped forward. */
	bool		is_believed(const ClockReading &clock, int64_t tick, Taken *taken) noexcept
	{
		int64_t		jump = trust_.judge(clock.offset_ns);

		return jump == 0 || fail(taken, Failure::forward_jump, clock.wall_ns, tick, jump);
	}

	/*
	 * Small things
	 */

	static uint64_t load(const Atomic &value) noexcept
	{
		return value.load(std::memory_order_acquire);
	}

	int64_t		load_limit() const noexcept
	{
		return static_cast<int64_t>(load(state_.limit) & ~queued);
	}

	int64_t		load_granted() const noexcept
	{
		return static_cast<int64_t>(load(state_.granted));
	}

	/* How long it takes until an id may lie in a tick, by the clock; ns. */
	int64_t		ns_until(int64_t tick, int64_t now) const noexcept
	{
		return steps_.ns_until(tick - max_drift_, now);
	}

	static int128 rounded_up_us(const ClockReading &clock) noexcept
	{
		return (int128{clock.wall_ns} + ns_per_us - 1) / ns_per_us;
	}

	static Taken failure(Failure failure, int64_t now, int64_t tick, int64_t excess_ns) noexcept
	{
		return {failure, 0, 0, now, tick, excess_ns};
	}

	/* False, for a function to return. */
	static bool fail(Taken *taken, Failure why, int64_t now, int64_t tick, int64_t excess_ns) noexcept
	{
		*taken = failure(why, now, tick, excess_ns);
		return false;
	}

	SharedState<Atomic> &state_;
	const Layout &layout_;
	Env		   &env_;
	Steps		steps_;
	ClockTrust<Atomic> trust_;
	Queue<Atomic> queue_;
	Pace		pace_;

	Options		options_{};
	int64_t		max_drift_ = 0;	/* ticks */
	int64_t		short_drift_ = 0;	/* the same for the short way */
	int64_t		half_ahead_ = 0;	/* ticks: where this little is left, it is reserved further; 0: when needed */

	/* This process's last reading of the clock, and its tick. */
	int64_t		last_now_ = INT64_MIN;
	int64_t		last_now_tick_ = INT64_MIN;
};

}  // namespace snowflake

#endif
