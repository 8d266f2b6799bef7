/*
 * queue.h
 *		Calls that wait for ids which others take as well.
 *
 * The ids of a tick go to whoever swaps the word first.  A call that finds none
 * left sleeps until the next tick begins, and sessions that happen to be awake
 * would take them all again.  So a call takes a place in the queue before it
 * sleeps.  While there are places, everybody leaves an id of the tick for each of
 * them, and a batch takes no more than its share of the tick.  Where a tick has
 * fewer ids than there are places, they go to those that came first.
 *
 * A place is good until a moment of CLOCK_BOOTTIME shortly after its call means to
 * be awake, and lapses then: a session that was ended or stopped, wherever it was,
 * holds nobody up for longer, and need not clean up.
 *
 * Each backend has one place.  All of this is written under the generator's lock,
 * but for a backend that gives up its own place, and read without it: wrong values
 * would cost an id's turn, never an id.
 */
#ifndef SNOWFLAKE_CORE_QUEUE_H
#define SNOWFLAKE_CORE_QUEUE_H

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "core/units.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/* How late a call may get up and still find its place.  A busy machine lets processes wait for a processor. */
constexpr int64_t longest_lateness_ns = ns_per_s;

/* Came after all that have a place. */
constexpr int64_t came_last = INT64_MAX;

/* A backend's place.  As int64_t, ns on CLOCK_BOOTTIME.  All zero at the start. */
template <typename Atomic>
struct Place
{
	Atomic		since;			/* when its call came; 0: free */
	Atomic		until;			/* it lapses then */
};

/* Atomic is std::atomic<uint64_t> or what behaves like it. */
template <typename Atomic>
struct QueueState
{
	Atomic		length;			/* places that are not free, lapsed ones too */
	Atomic		until;			/* as int64_t, ns on CLOCK_BOOTTIME: all places have lapsed then */

	void		initialize() noexcept
	{
		length.store(0, std::memory_order_relaxed);
		until.store(0, std::memory_order_relaxed);
	}
};

/* One backend's view. */
template <typename Atomic>
class Queue
{
public:
	using Places = std::span<Place<Atomic>>;

	/* own: this backend's place */
	Queue(QueueState<Atomic> &state, Places places, size_t own) noexcept
		: state_(state), places_(places), own_(own)
	{
	}

	bool		has_place() const noexcept
	{
		return load(places_[own_].since) != 0;
	}

	bool		is_empty() const noexcept
	{
		return load(state_.length) == 0;
	}

	/* Would sweep() leave nobody? */
	bool		is_forsaken(int64_t now) const noexcept
	{
		return now >= load(state_.until);
	}

	/* Takes a place, or keeps it, for a call that came at since and sleeps until wake.  Under the lock. */
	void		join(int64_t since, int64_t wake) noexcept
	{
		Place<Atomic> &own = places_[own_];
		int64_t		until = wake + longest_lateness_ns;

		if (load(own.since) == 0)
			store(state_.length, load(state_.length) + 1);
		store(own.until, until);
		store(own.since, since);
		store(state_.until, std::max(load(state_.until), until));
	}

	/* The place's call is over: it has lapsed. */
	void		give_up() noexcept
	{
		store(places_[own_].until, 0);
	}

	/* Frees the places that have lapsed.  Under the lock. */
	void		sweep(int64_t now) noexcept
	{
		int64_t		latest = 0;

		for (Place<Atomic> &place : places_)
		{
			if (load(place.since) == 0)
				continue;
			if (load(place.until) <= now)
			{
				store(place.since, 0);
				store(state_.length, load(state_.length) - 1);
			}
			else
				latest = std::max(latest, load(place.until));
		}
		store(state_.until, latest);
	}

	/*
	 * How many of the ids that are left in the tick a call may have that came at
	 * since: its share, which leaves one for each of the others; one, where that
	 * is what those before it leave; or none.
	 */
	int64_t		share(int64_t left, int64_t since, int64_t now) const noexcept
	{
		int64_t		others = load(state_.length) - (has_place() ? 1 : 0);

		if (left > others)
			return left / (others + 1);
		return left > count_before(since, now) ? 1 : 0;
	}

private:
	/* The others that came before since, and whose places are good. */
	int64_t		count_before(int64_t since, int64_t now) const noexcept
	{
		int64_t		count = 0;

		for (size_t i = 0; i < places_.size(); i++)
		{
			int64_t		other = load(places_[i].since);

			if (i != own_ && other != 0 && (other < since || (other == since && i < own_)) &&
				load(places_[i].until) > now)
				count++;
		}
		return count;
	}

	static int64_t load(const Atomic &value) noexcept
	{
		return static_cast<int64_t>(value.load(std::memory_order_acquire));
	}

	static void store(Atomic &value, int64_t to) noexcept
	{
		value.store(static_cast<uint64_t>(to), std::memory_order_release);
	}

	QueueState<Atomic> &state_;
	const Places places_;
	const size_t own_;
};

}  // namespace snowflake

#endif
