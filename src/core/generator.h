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
 * The word holds the last id, its bits rearranged:
 *
 *		held : 1 | tick | sequence | node
 *
 * tick and sequence together count steps; adding one step carries from the
 * sequence into the tick by itself.  A swap of the word is the issue of an id,
 * so ids increase in the order of the swaps.  held says whether there is a
 * claim; without one the place is kept, but nothing is issued.
 *
 * With a registry there is a second limit, up to which the registry has granted
 * the node number.  What is reserved never lies above it, so that the way of an
 * id has one limit to look at, whoever grants it.
 *
 * Who may touch what:
 *	word		anybody, by compare-and-swap from a word that is held; to take or
 *				end a claim, under the lock
 *	limit, granted, claim_start, highest_issued, claim_count
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
 * Everything outside is handed in as an Environment (see below): PostgreSQL in
 * the server, threads and simulated machines in the tests.  Its functions may
 * leave by longjmp(), which also releases the lock: nothing here needs unwinding,
 * and whatever was changed until then is a state in which another can go on.
 */
#ifndef SNOWFLAKE_CORE_GENERATOR_H
#define SNOWFLAKE_CORE_GENERATOR_H

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstdint>

#include "core/id.h"
#include "core/layout.h"

namespace snowflake __attribute__((visibility("hidden")))
{

constexpr int64_t ns_per_us = 1000;
constexpr int64_t ns_per_ms = 1000 * 1000;

/* The word's bit that says whether a claim is held; the fields take at most the other 63. */
constexpr uint64_t held = uint64_t{1} << 63;

/* An offset of the wall clock against CLOCK_BOOTTIME that was not looked at yet. */
constexpr int64_t no_offset = INT64_MIN;

/* A wall clock that goes back by less is not worth counting, and may be a measuring error. */
constexpr int64_t rollback_threshold_ns = ns_per_ms;

/* A clock that is put right after it went back may end this far from where it was. */
constexpr int64_t put_right_ns = 1000 * ns_per_ms;

/* A long wait looks at the clock again this often: it may have been put right. */
constexpr int64_t longest_wait_ns = 100 * ns_per_ms;

/* Where the sequence starts in a tick that follows an unfilled one. */
enum class SequenceStart
{
	subtick,					/* at the clock's fraction of the tick */
	zero,
	random,						/* somewhere in the lower half */
};

struct Options
{
	SequenceStart sequence_start;
	int64_t		max_drift_us;
	int64_t		max_wait_ns;
	int64_t		reserve_ahead_us;
	int64_t		max_forward_jump_ns;
};

/* The wall clock, and its offset against CLOCK_BOOTTIME at the same moment. */
struct ClockReading
{
	int64_t		wall_ns;
	int64_t		offset_ns;
};

/* Atomic is std::atomic<uint64_t> or what behaves like it. */
template <typename Atomic>
struct SharedState
{
	alignas(64) Atomic word;

	/* Ticks below this one may be issued. */
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

	/* As int64_t: the offset at which the last reservation was made, and the greatest at which one was. */
	Atomic		believed_offset;
	Atomic		greatest_offset;

	/* As int64_t: the offset that was seen last, and the one last refused: each change counts once. */
	Atomic		seen_offset;
	Atomic		refused_offset;

	/* Statistics that are too rare to matter; the environment counts the ids and the waits. */
	alignas(64) Atomic reservations;
	Atomic		clock_rollbacks;
	Atomic		max_rollback_ns;
	Atomic		forward_jumps;

	void		initialize() noexcept
	{
		for (Atomic *zero : {&word, &limit, &granted, &target, &claim_count, &claim_start, &highest_issued, &reservations,
							 &clock_rollbacks, &max_rollback_ns, &forward_jumps})
			zero->store(0, std::memory_order_relaxed);
		for (Atomic *none : {&believed_offset, &greatest_offset, &seen_offset, &refused_offset})
			none->store(static_cast<uint64_t>(no_offset), std::memory_order_relaxed);
	}
};

/* What a claim starts from. */
struct ClaimSource
{
	uint64_t	node;
	int64_t		durable_us;		/* the durable limit, Unix microseconds; 0 where there was none */

	/* What the registry or a change of layout grants, Unix microseconds: from here on, up to there, exclusive. */
	int64_t		granted_from_us = 0;
	int64_t		granted_until_us = INT64_MAX;
};

/*
 * What the generator needs from outside.
 *
 * now_ns()				the clock, Unix nanoseconds
 * recent_ns()			the same, but may be the last reading again where that is microseconds old
 * read_clock()			the clock and its offset; also notices that the call was cancelled
 * lock(), unlock()		one lock for the server; held for moments only
 * claim_source(source)	what there is to claim; false where the registry grants nothing.  Called under the lock
 * prepare_limit()		checks that the limit can be written; not under the lock
 * advance_limit(us)	starts to make the limit durable, never backwards; under the lock
 * flush_limit()		waits until what advance_limit() started is durable
 * set_limit(us)		starts to set the limit, backwards too; under the lock
 * wait(ns, first)		waits, interruptibly, about so long; returns the time on CLOCK_BOOTTIME, ns;
 *						first: it is the first wait of this call
 * wait_for_grant(us, ns, first)	waits as wait() does, about so long at most, until the registry may have granted the
 *						time before us, and that before the clock; 0 where it is not worth waiting for that.
 *						With ns 0 it only asks for that time
 * clock_ahead(now, us)	the clock of the first claim lies further past the durable limit than max_forward_jump
 */
template <typename E>
concept Environment = requires(E e, int64_t ns, ClaimSource *source)
{
	{ e.now_ns() } -> std::same_as<int64_t>;
	{ e.recent_ns() } -> std::same_as<int64_t>;
	{ e.read_clock() } -> std::same_as<ClockReading>;
	e.lock();
	e.unlock();
	{ e.claim_source(source) } -> std::same_as<bool>;
	e.prepare_limit();
	e.advance_limit(ns);
	e.flush_limit();
	e.set_limit(ns);
	{ e.wait(ns, true) } -> std::same_as<int64_t>;
	{ e.wait_for_grant(ns, ns, true) } -> std::same_as<int64_t>;
	e.clock_ahead(ns, ns);
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
};

/* What take() returns; the last three say why there was a failure. */
struct Taken
{
	Failure		failure;
	uint64_t	first_step;		/* of count successive ones in one tick */
	int64_t		count;
	uint64_t	node;

	int64_t		now_ns;
	int64_t		tick;			/* that the next id would lie in */
	int64_t		excess_ns;		/* what had to be waited for, or how far the clock jumped */
};

template <typename Atomic, Environment Env>
class Generator
{
public:
	/* The layout must outlive the generator, and generating with it must be possible: timestamp highest. */
	Generator(SharedState<Atomic> &state, const Layout &layout, Env &env) noexcept
		: state_(state), layout_(layout), env_(env),
		  node_bits_(layout.node_bits), sequence_bits_(layout.sequence_bits),
		  last_tick_(layout.last_tick()), tick_ns_(layout.tick_us * ns_per_us),
		  epoch_ns_(layout.epoch_us > INT64_MAX / ns_per_us ? INT64_MAX : layout.epoch_us * ns_per_us)
	{
	}

	void set_options(const Options &options) noexcept
	{
		options_ = options;
		/* A jump that is not to be believed must meet the limit, where the clock is looked at. */
		options_.reserve_ahead_us = std::min(options.reserve_ahead_us, options.max_forward_jump_ns / ns_per_us);
		max_drift_ = options.max_drift_us / layout_.tick_us;
		half_ahead_ = options_.reserve_ahead_us / layout_.tick_us / 2;
	}

	/*
	 * Takes the next ids: up to wanted of them, fewer where the tick has no more.
	 * Waits for the clock where it may, max_wait and a tick in all; reserves where it must.
	 */
	Taken take(int64_t wanted) noexcept
	{
		int64_t		waited = 0;
		int64_t		slept = 0;		/* the last wait, by CLOCK_BOOTTIME */
		int64_t		slept_from = 0;	/* its beginning, by the clock that is waited for */
		int64_t		lag = 0;		/* of this clock behind the other, over all waits */
		int64_t		ahead_us = options_.reserve_ahead_us;
		bool		read_clock = false;

		for (;;)
		{
			uint64_t	claim_count = load(state_.claim_count);
			uint64_t	old = state_.word.load(std::memory_order_acquire);

			if (!(old & held))
			{
				Taken		failed{};

				if (!claim(&failed) && !wait_for_grant(failed, &waited))
					return failed;
				continue;
			}

			int64_t		now = read_clock ? env_.now_ns() : env_.recent_ns();

			if (now != last_now_)
			{
				if (now < last_now_ || last_now_ == INT64_MIN)
					see_clock();
				last_now_ = now;
				last_now_tick_ = tick_of(now);
			}

			int64_t		now_tick = last_now_tick_;

			if (now_tick > last_tick_)
				return failure(Failure::exhausted, now, now_tick, 0);

			uint64_t	next = step_after(step_of(old), now, now_tick);
			int64_t		tick = tick_of_step(next);

			if (tick > last_tick_)
				return failure(Failure::exhausted, now, tick, 0);
			if (tick > now_tick + max_drift_)
			{
				/* Nobody waits, and nothing is refused, by a reading that is old. */
				if (!read_clock)
				{
					read_clock = true;
					continue;
				}

				int64_t		wait = ns_until(tick, now);

				if (wait > tick_ns_)
				{
					see_clock();
					if (wait > options_.max_wait_ns - waited)
						return failure(Failure::behind, now, tick, wait);
				}
				if (slept > 0 && now >= slept_from)
					lag += slept - (now - slept_from);
				/*
				 * Others may have taken all ids of the tick that was waited for, again and again; or the clock
				 * stands still: without what it lags behind CLOCK_BOOTTIME there would be an id now.
				 */
				if (wait > options_.max_wait_ns + tick_ns_ - waited)
					return wait <= lag ? failure(Failure::standstill, now, tick, waited) : failure(Failure::behind, now, tick, wait);
				slept_from = now;
				slept = env_.wait(std::min(wait, longest_wait_ns), waited == 0);
				waited += slept;
				continue;
			}

			int64_t		limit = load_limit();

			if (tick >= limit || (limit - tick <= half_ahead_ && limit <= last_tick_ && !being_reserved(limit) &&
								  limit < load_granted()))
			{
				Taken		failed{};

				if (!reserve(tick, ahead_us, tick >= limit, &failed))
				{
					if (!wait_for_grant(failed, &waited))
						return failed;
					continue;
				}
				/* Where that takes longer than what was reserved lasts, the next one must reserve more. */
				if (tick >= limit && load_limit() > limit)
					ahead_us = std::min(2 * ahead_us, options_.max_forward_jump_ns / ns_per_us);
				continue;
			}

			int64_t		count = std::min(wanted, left_in_tick(next));
			uint64_t	last = next + static_cast<uint64_t>(count) - 1;

			if (!state_.word.compare_exchange_weak(old, held | last << node_bits_ | node_of(old),
												   std::memory_order_acq_rel, std::memory_order_relaxed))
				continue;

			/* Was the word a later claim's that looked the same?  Its limit was not looked at: not issued. */
			if (load(state_.claim_count) != claim_count)
				continue;

			return {Failure::none, next, count, node_of(old), now, tick, 0};
		}
	}

	/*
	 * Makes all later ids lie in ticks after this one, durably.  Never goes back.
	 * The caller has checked that the tick is in the layout and not far ahead.
	 */
	Taken advance_past(int64_t tick) noexcept
	{
		int64_t		waited = 0;

		for (;;)
		{
			Taken		failed{};
			uint64_t	claim_count = load(state_.claim_count);

			if (!(load(state_.word) & held))
			{
				if (!claim(&failed) && !wait_for_grant(failed, &waited))
					return failed;
				continue;
			}
			if (tick >= load_granted())
				return failure(Failure::past_grant, env_.now_ns(), tick, 0);
			if (!make_durable(claim_count, tick + 1))
				continue;

			env_.lock();

			bool		same_claim = load(state_.claim_count) == claim_count && (load(state_.word) & held);

			if (same_claim)
			{
				raise_limit(tick + 1);
				if (tick_of_step(step_of(load(state_.word))) <= tick)
				{
					uint64_t	old = end_claim();

					if (tick_of_step(step_of(old)) <= tick)
						start_claim(tick + 1, node_of(old));
					else
						state_.word.store(old, std::memory_order_release);
				}
			}
			env_.unlock();
			if (same_claim)
				return failed;
		}
	}

	/*
	 * Moves the durable limit, backwards too.  Refused below what this server
	 * has issued since it started; what was issued before that, only the caller
	 * can know.  The next id starts from the new limit.
	 */
	Taken set_reserved_until(int64_t limit_us) noexcept
	{
		env_.prepare_limit();

		ClockReading clock = env_.read_clock();

		env_.lock();

		uint64_t	old = load(state_.word);

		if (old & held)
			old = end_claim();

		uint64_t	issued = load(state_.highest_issued);

		if (issued != 0 && tick_begin_us(layout_, tick_of_step(issued) + 1) > limit_us)
		{
			if (old & held)
				state_.word.store(old, std::memory_order_release);
			env_.unlock();
			return failure(Failure::issued_above, 0, tick_of_step(issued), 0);
		}
		forget_claim();
		believe_offset(clock.offset_ns, clock.offset_ns);
		env_.set_limit(limit_us);
		env_.unlock();
		env_.flush_limit();
		return {};
	}

	/* The registry has granted more time to the node number that is claimed. */
	void extend(int64_t granted_until_us) noexcept
	{
		env_.lock();
		if (tick_before_us(granted_until_us) > load_granted())
			state_.granted.store(static_cast<uint64_t>(tick_before_us(granted_until_us)), std::memory_order_release);
		env_.unlock();
	}

	/*
	 * Ends the claim for good: when this returns nothing is issued any more
	 * until claim_source() gives another one.  Returns the end of the newest
	 * tick that this server has issued ids in, Unix microseconds; 0 for none.
	 */
	int64_t revoke() noexcept
	{
		env_.lock();
		if (load(state_.word) & held)
			(void) end_claim();
		forget_claim();

		uint64_t	issued = load(state_.highest_issued);

		env_.unlock();
		return issued == 0 ? 0 : tick_begin_us(layout_, tick_of_step(issued) + 1);
	}

	/* Believes a wall clock with this offset. */
	void accept_clock(int64_t offset) noexcept
	{
		believe_offset(offset, offset);
		state_.seen_offset.store(static_cast<uint64_t>(offset), std::memory_order_relaxed);
	}

	/*
	 * Why the next id could not be had by the clock as it is now; none where it
	 * can, after a wait that is allowed.  Nothing is changed.  start_us is where a
	 * claim would start, Unix microseconds, where none is held.
	 */
	Failure clock_failure(int64_t start_us) noexcept
	{
		ClockReading clock = env_.read_clock();
		uint64_t	word = load(state_.word);
		int64_t		now_tick = tick_of(clock.wall_ns);
		int64_t		tick = word & held ? tick_of_step(step_after(step_of(word), clock.wall_ns, now_tick)) : first_tick(clock, start_us, 0);

		if (jump_of(clock) > 0)
			return Failure::forward_jump;
		if (!(word & held) && clock.wall_ns < epoch_ns_ && tick == 1)
			return Failure::epoch_ahead;
		if (std::max(tick, now_tick) > last_tick_)
			return Failure::exhausted;
		if (tick > now_tick + max_drift_ && ns_until(tick, clock.wall_ns) > std::max(options_.max_wait_ns, tick_ns_))
			return Failure::behind;
		return Failure::none;
	}

	/* The newest id's step, and its node; false where this server has issued none since it started. */
	bool newest(uint64_t *step, uint64_t *node) const noexcept
	{
		uint64_t	word = load(state_.word);

		*node = node_of(word);
		*step = step_of(word);
		if (*step < load(state_.claim_start))
			*step = load(state_.highest_issued);
		return *step != 0;
	}

	int64_t tick_of_step(uint64_t step) const noexcept
	{
		return static_cast<int64_t>(step >> sequence_bits_);
	}

	uint64_t sequence_of_step(uint64_t step) const noexcept
	{
		return step & ((uint64_t{1} << sequence_bits_) - 1);
	}

private:
	static uint64_t load(const Atomic &value) noexcept
	{
		return value.load(std::memory_order_acquire);
	}

	int64_t load_limit() const noexcept
	{
		return static_cast<int64_t>(load(state_.limit));
	}

	int64_t load_granted() const noexcept
	{
		return static_cast<int64_t>(load(state_.granted));
	}

	/* False where the failure is another, or the call has waited long enough. */
	bool wait_for_grant(const Taken &failed, int64_t *waited) noexcept
	{
		int64_t		left = std::max<int64_t>(options_.max_wait_ns - *waited, 0);
		int64_t		now_waited;

		if (failed.failure != Failure::ungranted)
			return false;
		/* Who may not wait asks all the same: for the next call. */
		now_waited = env_.wait_for_grant(tick_begin_us(layout_, failed.tick + 1), std::min(left, longest_wait_ns), *waited == 0);
		*waited += now_waited;
		return left > 0 && now_waited > 0;
	}

	static Taken failure(Failure failure, int64_t now, int64_t tick, int64_t excess_ns) noexcept
	{
		return {failure, 0, 0, 0, now, tick, excess_ns};
	}

	uint64_t step_of(uint64_t word) const noexcept
	{
		return (word & ~held) >> node_bits_;
	}

	uint64_t node_of(uint64_t word) const noexcept
	{
		return word & ((uint64_t{1} << node_bits_) - 1);
	}

	int64_t left_in_tick(uint64_t step) const noexcept
	{
		return static_cast<int64_t>((uint64_t{1} << sequence_bits_) - sequence_of_step(step));
	}

	/* The tick that a time lies in, negative before the epoch. */
	int64_t tick_of(int64_t now) const noexcept
	{
		uint64_t	tick_ns = static_cast<uint64_t>(tick_ns_);

		if (now >= epoch_ns_)
			return static_cast<int64_t>(static_cast<uint64_t>(now - epoch_ns_) / tick_ns);
		return -1 - static_cast<int64_t>((static_cast<uint64_t>(epoch_ns_) - static_cast<uint64_t>(now) - 1) / tick_ns);
	}

	/* The first of the layout's ticks that begins at or after a time; last_tick_ + 1 where there is none. */
	int64_t tick_from_us(int128 us) const noexcept
	{
		int128		ticks = (us - layout_.epoch_us + layout_.tick_us - 1) / layout_.tick_us;

		return static_cast<int64_t>(std::clamp<int128>(ticks, 0, int128{last_tick_} + 1));
	}

	/* The first of the layout's ticks that ends after a time: those below it lie before it. */
	int64_t tick_before_us(int64_t us) const noexcept
	{
		int128		ticks = (int128{us} - layout_.epoch_us) / layout_.tick_us;

		return static_cast<int64_t>(std::clamp<int128>(ticks, 0, int128{last_tick_} + 1));
	}

	/*
	 * The step after old at this time.  Where old's tick was filled and the one
	 * after it is now's, the count goes on at that one's beginning: waking up
	 * late from the wait for it loses no ids.
	 */
	uint64_t step_after(uint64_t old, int64_t now, int64_t now_tick) const noexcept
	{
		if (tick_of_step(old) >= now_tick)
			return old + 1;

		uint64_t	begin = static_cast<uint64_t>(now_tick) << sequence_bits_;

		return old + 1 == begin ? begin : begin + sequence_start(now, now_tick);
	}

	uint64_t sequence_start(int64_t now, int64_t now_tick) const noexcept
	{
		switch (options_.sequence_start)
		{
			case SequenceStart::subtick:
				{
					int128		fraction = now - epoch_ns_ - now_tick * tick_ns_;

					return static_cast<uint64_t>((fraction << sequence_bits_) / tick_ns_);
				}
			case SequenceStart::random:
				return mix(static_cast<uint64_t>(now)) & ((uint64_t{1} << (sequence_bits_ - 1)) - 1);
			case SequenceStart::zero:
				break;
		}
		return 0;
	}

	/*
	 * A number that looks random, from the clock's nanoseconds: the finalizer of
	 * splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
	 * generators, OOPSLA 2014).  Only its spread matters, not what it is.
	 */
	static uint64_t mix(uint64_t x) noexcept
	{
		x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
		x = (x ^ x >> 27) * 0x94d049bb133111eb;
		return x ^ x >> 31;
	}

	bool being_reserved(int64_t limit) const noexcept
	{
		return static_cast<int64_t>(load(state_.target)) > limit;
	}

	/* How long it takes until an id may lie in a tick, by the clock; ns. */
	int64_t ns_until(int64_t tick, int64_t now) const noexcept
	{
		int128		ahead = int128{tick - max_drift_} * tick_ns_ + epoch_ns_ - now;

		return ahead > INT64_MAX ? INT64_MAX : static_cast<int64_t>(ahead);
	}

	static int128 rounded_up_us(const ClockReading &clock) noexcept
	{
		return (int128{clock.wall_ns} + ns_per_us - 1) / ns_per_us;
	}

	/*
	 * Where a claim starts: in the first tick that begins at or after the clock, the
	 * durable limit, the grant's beginning and every id that this server has issued,
	 * whatever layout or node number came before.
	 */
	int64_t first_tick(const ClockReading &clock, int64_t durable_us, int64_t granted_from_us) const noexcept
	{
		int64_t		issued_end = load(state_.highest_issued) == 0 ? 0 : tick_of_step(load(state_.highest_issued)) + 1;

		/* Tick 0 is left out, so that there is a step before the first. */
		return std::max({tick_from_us(rounded_up_us(clock)), tick_from_us(durable_us), tick_from_us(granted_from_us), issued_end, int64_t{1}});
	}

	/* Takes the claim.  Nothing is reserved yet. */
	bool claim(Taken *failed) noexcept
	{
		env_.lock();
		if (load(state_.word) & held)
		{
			env_.unlock();
			return true;
		}

		ClaimSource source{};

		if (!env_.claim_source(&source))
		{
			env_.unlock();
			*failed = failure(Failure::ungranted, env_.now_ns(), 0, 0);
			return false;
		}

		ClockReading clock = env_.read_clock();
		int64_t		start = first_tick(clock, source.durable_us, source.granted_from_us);
		bool		first = load(state_.claim_count) == 0;	/* not one after set_reserved_until(), which says nothing about the clock */

		/* A claim that started by a clock that is not believed would lie there when the clock is put right. */
		if (is_believed(clock, start, failed))
		{
			if (clock.wall_ns < epoch_ns_ && start == 1)
				*failed = failure(Failure::epoch_ahead, clock.wall_ns, 0, epoch_ns_ - clock.wall_ns);
			else if (start > last_tick_)
				*failed = failure(Failure::exhausted, clock.wall_ns, start, 0);
			else if (start >= tick_before_us(source.granted_until_us) && start <= tick_of(clock.wall_ns) + 1 + max_drift_)
				/* A claim that started by a clock that is wrong, and granted nothing there, would lie there when the clock is put right. */
				*failed = failure(Failure::ungranted, clock.wall_ns, start, 0);
			else
			{
				/* A reservation that began after the last claim's end may have published what that one was granted. */
				state_.limit.store(0, std::memory_order_release);
				state_.granted.store(static_cast<uint64_t>(tick_before_us(source.granted_until_us)), std::memory_order_release);
				start_claim(start, source.node);
			}
		}
		env_.unlock();
		if (failed->failure != Failure::none)
			return false;

		/* There is nothing yet to compare the clock with but the durable limit. */
		int128		now_us = rounded_up_us(clock);

		if (first && source.durable_us > 0 &&
			now_us - source.durable_us > options_.max_forward_jump_ns / ns_per_us)
			env_.clock_ahead(clock.wall_ns, source.durable_us);
		if (first && int128{source.durable_us} - now_us > options_.reserve_ahead_us + options_.max_drift_us + layout_.tick_us)
			count_rollback(static_cast<int64_t>(std::min<int128>((int128{source.durable_us} - now_us) * ns_per_us, INT64_MAX)));
		return true;
	}

	/* Publishes a claim that starts at a tick, nothing reserved.  Under the lock; there must be no claim. */
	void start_claim(int64_t tick, uint64_t node) noexcept
	{
		uint64_t	step = static_cast<uint64_t>(tick) << sequence_bits_;

		if (load_limit() < tick)
		{
			state_.limit.store(static_cast<uint64_t>(tick), std::memory_order_release);
			state_.target.store(static_cast<uint64_t>(tick), std::memory_order_relaxed);
		}
		state_.claim_start.store(step, std::memory_order_release);
		state_.word.store(held | (step - 1) << node_bits_ | node, std::memory_order_release);
	}

	/* Ends the claim and returns its last word, held.  Under the lock. */
	uint64_t end_claim() noexcept
	{
		uint64_t	old = state_.word.fetch_and(~held, std::memory_order_acq_rel);

		if (step_of(old) >= load(state_.claim_start))
			state_.highest_issued.store(step_of(old), std::memory_order_release);
		return old;
	}

	/* What was begun for the claim that has ended is not published.  Under the lock. */
	void forget_claim() noexcept
	{
		state_.claim_count.fetch_add(1, std::memory_order_acq_rel);
	}

	/* Never lowers it.  Under the lock. */
	void raise_limit(int64_t limit) noexcept
	{
		if (limit > load_limit())
			state_.limit.store(static_cast<uint64_t>(limit), std::memory_order_release);
	}

	/* Makes the ticks below limit durable for the claim; false where the claim has changed. */
	bool make_durable(uint64_t claim_count, int64_t limit) noexcept
	{
		env_.prepare_limit();
		env_.lock();

		bool		same_claim = load(state_.claim_count) == claim_count;

		if (same_claim)
			env_.advance_limit(tick_begin_us(layout_, limit));
		env_.unlock();
		if (same_claim)
			env_.flush_limit();
		return same_claim;
	}

	/*
	 * Reserves time for a tick and ahead_us more.  needed says that nothing
	 * can be issued before; otherwise it is done early, by one backend for all.
	 * False with the failure where the clock is not believed or the tick is not
	 * granted; true where it was done or the caller should look again.
	 */
	bool reserve(int64_t tick, int64_t ahead_us, bool needed, Taken *failed) noexcept
	{
		uint64_t	claim_count = load(state_.claim_count);
		ClockReading clock = env_.read_clock();

		if (!is_believed(clock, tick, failed))
			return false;
		/* The clock that asked for this tick may have gone since: it is not what is reserved by. */
		if (tick > tick_of(clock.wall_ns) + max_drift_)
			return true;

		int128		from_us = std::max<int128>(clock.wall_ns / ns_per_us, tick_begin_us(layout_, tick));
		int64_t		limit = std::min(std::max(tick_from_us(from_us + ahead_us), tick + 1), load_granted());

		if (limit <= tick)
		{
			*failed = failure(Failure::ungranted, clock.wall_ns, tick, 0);
			return false;
		}
		if (!needed)
		{
			uint64_t	target = load(state_.target);

			if (static_cast<int64_t>(target) > load_limit() || static_cast<int64_t>(target) >= limit ||
				!state_.target.compare_exchange_strong(target, static_cast<uint64_t>(limit),
													   std::memory_order_acq_rel, std::memory_order_relaxed))
				return true;
		}
		if (!make_durable(claim_count, limit))
			return true;
		state_.reservations.fetch_add(1, std::memory_order_relaxed);

		env_.lock();
		if (load(state_.claim_count) == claim_count)
		{
			/* What is granted may be another claim's than it was when the limit was chosen. */
			raise_limit(std::min(limit, load_granted()));
			believe_offset(clock.offset_ns, std::max(clock.offset_ns, static_cast<int64_t>(load(state_.greatest_offset))));
		}
		env_.unlock();
		return true;
	}

	/* What a forward jump is measured from.  Who sees that there is a believed offset must see a greatest one. */
	void believe_offset(int64_t offset, int64_t greatest) noexcept
	{
		state_.greatest_offset.store(static_cast<uint64_t>(greatest), std::memory_order_release);
		state_.believed_offset.store(static_cast<uint64_t>(offset), std::memory_order_release);
	}

	/* How far the wall clock has jumped forward, ns; 0 where it is believed, or there is nothing to compare it with. */
	int64_t jump_of(const ClockReading &clock) const noexcept
	{
		int64_t		believed = static_cast<int64_t>(load(state_.believed_offset));

		/* A clock that returns to where it was believed before has been put right. */
		if (believed != no_offset && clock.offset_ns - believed > options_.max_forward_jump_ns &&
			clock.offset_ns - static_cast<int64_t>(load(state_.greatest_offset)) > put_right_ns)
			return clock.offset_ns - believed;
		return 0;
	}

	/* False with the failure where the wall clock has jumped forward. */
	bool is_believed(const ClockReading &clock, int64_t tick, Taken *failed) noexcept
	{
		int64_t		jump = jump_of(clock);

		see_offset(clock.offset_ns);
		if (jump > 0)
		{
			refuse_offset(clock.offset_ns);
			*failed = failure(Failure::forward_jump, clock.wall_ns, tick, jump);
			return false;
		}
		/* Back where it was: the same jump again is another one. */
		if (static_cast<int64_t>(load(state_.refused_offset)) != no_offset)
			state_.refused_offset.store(static_cast<uint64_t>(no_offset), std::memory_order_relaxed);
		return true;
	}

	void see_clock() noexcept
	{
		see_offset(env_.read_clock().offset_ns);
	}

	/* Counts a wall clock that went back, once. */
	void see_offset(int64_t offset) noexcept
	{
		uint64_t	seen = load(state_.seen_offset);
		int64_t		change = static_cast<int64_t>(seen) == no_offset ? 0 : offset - static_cast<int64_t>(seen);

		if (static_cast<int64_t>(seen) != no_offset && change < rollback_threshold_ns && change > -rollback_threshold_ns)
			return;
		if (state_.seen_offset.compare_exchange_strong(seen, static_cast<uint64_t>(offset),
													   std::memory_order_relaxed, std::memory_order_relaxed) && change < 0)
			count_rollback(-change);
	}

	void count_rollback(int64_t ns) noexcept
	{
		uint64_t	most = load(state_.max_rollback_ns);

		state_.clock_rollbacks.fetch_add(1, std::memory_order_relaxed);
		while (most < static_cast<uint64_t>(ns) &&
			   !state_.max_rollback_ns.compare_exchange_weak(most, static_cast<uint64_t>(ns),
															 std::memory_order_relaxed, std::memory_order_relaxed))
			;
	}

	/* Counts a forward jump that is not believed, once. */
	void refuse_offset(int64_t offset) noexcept
	{
		uint64_t	refused = load(state_.refused_offset);
		bool		known = static_cast<int64_t>(refused) != no_offset &&
			offset - static_cast<int64_t>(refused) < rollback_threshold_ns &&
			static_cast<int64_t>(refused) - offset < rollback_threshold_ns;

		if (!known && state_.refused_offset.compare_exchange_strong(refused, static_cast<uint64_t>(offset),
																	std::memory_order_relaxed, std::memory_order_relaxed))
			state_.forward_jumps.fetch_add(1, std::memory_order_relaxed);
	}

	SharedState<Atomic> &state_;
	const Layout &layout_;
	Env		   &env_;

	/* The layout's numbers that every id needs. */

	const int	node_bits_;
	const int	sequence_bits_;
	const int64_t last_tick_;
	const int64_t tick_ns_;
	const int64_t epoch_ns_;

	Options		options_{};
	int64_t		max_drift_ = 0;	/* ticks */
	int64_t		half_ahead_ = 0;	/* ticks: where this little is left, it is reserved further; 0: when needed */

	/* This process's last reading of the clock, and its tick. */
	int64_t		last_now_ = INT64_MIN;
	int64_t		last_now_tick_ = INT64_MIN;
};

}  // namespace snowflake

#endif
