/*
 * clock_trust.h
 *		Whether the wall clock is believed, and what it did.
 *
 * CLOCK_BOOTTIME only runs; the wall clock may be set.  The offset is how far the
 * wall clock is ahead of CLOCK_BOOTTIME.  It changes only when somebody sets the
 * wall clock, so it tells a clock that was set from time that has passed.
 *
 * Each reservation of time believes the offset that it was made at.  A clock whose
 * offset is later found to be greater by more than max_forward_jump has jumped
 * forward, and is not believed until it is put right or accepted: a wrong clock
 * would take the ids along.  One that returns to the greatest offset that was
 * believed before has been put right, and is believed.  A clock that went back is
 * only counted; the generator waits for it.
 *
 * All backends share ClockHistory.  believe() and believe_further() are called under
 * the generator's lock, or by who accepts a clock; the rest by anybody.  A race
 * between two costs a count or time, never an id.
 */
#ifndef SNOWFLAKE_CORE_CLOCK_TRUST_H
#define SNOWFLAKE_CORE_CLOCK_TRUST_H

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/units.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/* An offset that was not looked at yet. */
constexpr int64_t no_offset = INT64_MIN;

/* An offset that changes by less is not worth counting, and may be a measuring error. */
constexpr int64_t offset_noise_ns = ns_per_ms;

/* A clock that is put right after it went back may end this far from where it was. */
constexpr int64_t put_right_ns = ns_per_s;

/* What is known of the wall clock.  Atomic is std::atomic<uint64_t> or what behaves like it. */
template <typename Atomic>
struct ClockHistory
{
	/* As int64_t, ns: the offset at which the last reservation was made, and the greatest at which one was. */
	Atomic		believed_offset;
	Atomic		greatest_offset;

	/* As int64_t, ns: the offset that was seen last, and the one last refused, so that each change counts once. */
	Atomic		seen_offset;
	Atomic		refused_offset;

	/* Statistics */
	Atomic		rollbacks;
	Atomic		max_rollback_ns;
	Atomic		forward_jumps;

	void		initialize() noexcept
	{
		for (Atomic *none : {&believed_offset, &greatest_offset, &seen_offset, &refused_offset})
			none->store(static_cast<uint64_t>(no_offset), std::memory_order_relaxed);
		for (Atomic *zero : {&rollbacks, &max_rollback_ns, &forward_jumps})
			zero->store(0, std::memory_order_relaxed);
	}
};

template <typename Atomic>
class ClockTrust
{
public:
	explicit ClockTrust(ClockHistory<Atomic> &history) noexcept : history_(history)
	{
	}

	void		set_max_forward_jump(int64_t ns) noexcept
	{
		max_forward_jump_ns_ = ns;
	}

	/* How far the clock has jumped forward, ns; 0 where it is believed, or there is nothing to compare it with. */
	int64_t		jump_of(int64_t offset) const noexcept
	{
		int64_t		believed = load(history_.believed_offset);

		/* A clock that returns to where it was believed before has been put right. */
		if (believed != no_offset && offset - believed > max_forward_jump_ns_ &&
			offset - load(history_.greatest_offset) > put_right_ns)
			return offset - believed;
		return 0;
	}

	/* The same, for a clock that is to be gone by: counts what it did. */
	int64_t		judge(int64_t offset) noexcept
	{
		int64_t		jump = jump_of(offset);

		see(offset);
		if (jump > 0)
			count_refusal(offset);
		else if (load(history_.refused_offset) != no_offset)
			/* Back where it was: the same jump again is another one. */
			history_.refused_offset.store(static_cast<uint64_t>(no_offset), std::memory_order_relaxed);
		return jump;
	}

	/* Counts a clock that went back since it was seen last, once. */
	void		see(int64_t offset) noexcept
	{
		uint64_t	seen = history_.seen_offset.load(std::memory_order_acquire);
		bool		is_first = static_cast<int64_t>(seen) == no_offset;

		if (!is_first && is_same(offset, static_cast<int64_t>(seen)))
			return;
		if (history_.seen_offset.compare_exchange_strong(seen, static_cast<uint64_t>(offset),
														 std::memory_order_relaxed, std::memory_order_relaxed) &&
			!is_first && offset < static_cast<int64_t>(seen))
			count_rollback(static_cast<int64_t>(seen) - offset);
	}

	/* Jumps are measured from this offset, whatever was believed before. */
	void		believe(int64_t offset) noexcept
	{
		set_believed(offset, offset);
	}

	/* The same after a reservation by a clock that judge() believes: it may still come back to where it was. */
	void		believe_further(int64_t offset) noexcept
	{
		set_believed(offset, std::max(offset, load(history_.greatest_offset)));
	}

	/* Somebody says that the clock is right. */
	void		accept(int64_t offset) noexcept
	{
		believe(offset);
		history_.seen_offset.store(static_cast<uint64_t>(offset), std::memory_order_relaxed);
	}

	void		count_rollback(int64_t ns) noexcept
	{
		uint64_t	most = history_.max_rollback_ns.load(std::memory_order_acquire);

		history_.rollbacks.fetch_add(1, std::memory_order_relaxed);
		while (most < static_cast<uint64_t>(ns) &&
			   !history_.max_rollback_ns.compare_exchange_weak(most, static_cast<uint64_t>(ns),
															   std::memory_order_relaxed, std::memory_order_relaxed))
			;
	}

private:
	static int64_t load(const Atomic &value) noexcept
	{
		return static_cast<int64_t>(value.load(std::memory_order_acquire));
	}

	static bool is_same(int64_t a, int64_t b) noexcept
	{
		return a - b < offset_noise_ns && b - a < offset_noise_ns;
	}

	/* Who sees that there is a believed offset must see a greatest one. */
	void		set_believed(int64_t offset, int64_t greatest) noexcept
	{
		history_.greatest_offset.store(static_cast<uint64_t>(greatest), std::memory_order_release);
		history_.believed_offset.store(static_cast<uint64_t>(offset), std::memory_order_release);
	}

	/* Counts a forward jump that is not believed, once. */
	void		count_refusal(int64_t offset) noexcept
	{
		uint64_t	seen = history_.refused_offset.load(std::memory_order_acquire);
		int64_t		refused = static_cast<int64_t>(seen);

		if (refused != no_offset && is_same(offset, refused))
			return;
		if (history_.refused_offset.compare_exchange_strong(seen, static_cast<uint64_t>(offset),
															std::memory_order_relaxed, std::memory_order_relaxed))
			history_.forward_jumps.fetch_add(1, std::memory_order_relaxed);
	}

	ClockHistory<Atomic> &history_;
	int64_t		max_forward_jump_ns_ = 0;
};

}  // namespace snowflake

#endif
