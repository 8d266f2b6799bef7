/*
 * steps.h
 *		The arithmetic of the generator's word, for one layout.
 *
 * The word holds the last id, its bits rearranged:
 *
 *		held : 1 | tick | sequence | node
 *
 * tick and sequence together count steps; adding one step carries from the
 * sequence into the tick by itself.  held says whether there is a claim; without
 * one the place is kept, but nothing is issued.
 */
#ifndef SNOWFLAKE_CORE_STEPS_H
#define SNOWFLAKE_CORE_STEPS_H

#include <algorithm>
#include <cstdint>

#include "core/id.h"
#include "core/layout.h"
#include "core/units.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/* The word's bit that says whether a claim is held; the fields take at most the other 63. */
constexpr uint64_t held = uint64_t{1} << 63;

/* Where the sequence starts in a tick that follows an unfilled one. */
enum class SequenceStart
{
	subtick,					/* at the clock's fraction of the tick */
	zero,
	random,						/* somewhere in the lower half */
};

class Steps
{
public:
	/* The layout must outlive this, and its timestamp be highest. */
	explicit Steps(const Layout &layout) noexcept
		: layout_(layout), node_bits_(layout.node_bits), sequence_bits_(layout.sequence_bits),
		  max_node_(layout.max_node()), max_sequence_(layout.max_sequence()),
		  last_tick_(layout.last_tick()), tick_ns_(layout.tick_us * ns_per_us),
		  epoch_ns_(layout.epoch_us > INT64_MAX / ns_per_us ? INT64_MAX : layout.epoch_us * ns_per_us)
	{
	}

	int64_t		last_tick() const noexcept
	{
		return last_tick_;
	}

	int64_t		tick_ns() const noexcept
	{
		return tick_ns_;
	}

	int64_t		epoch_ns() const noexcept
	{
		return epoch_ns_;
	}

	/*
	 * Words and steps
	 */

	/* held as well. */
	uint64_t	word(uint64_t step, uint64_t node) const noexcept
	{
		return held | step << node_bits_ | node;
	}

	uint64_t	step_of(uint64_t word) const noexcept
	{
		return (word & ~held) >> node_bits_;
	}

	uint64_t	node_of(uint64_t word) const noexcept
	{
		return word & max_node_;
	}

	uint64_t	first_step(int64_t tick) const noexcept
	{
		return static_cast<uint64_t>(tick) << sequence_bits_;
	}

	int64_t		tick_of(uint64_t step) const noexcept
	{
		return static_cast<int64_t>(step >> sequence_bits_);
	}

	uint64_t	sequence_of(uint64_t step) const noexcept
	{
		return step & max_sequence_;
	}

	/* The steps from this one on to the end of its tick, itself included. */
	int64_t		left_in_tick(uint64_t step) const noexcept
	{
		return static_cast<int64_t>(max_sequence_ - sequence_of(step)) + 1;
	}

	/* Keeps the node number's bits: they are the same for ids without end. */
	int64_t		id(uint64_t step, uint64_t node) noexcept
	{
		if (node != placed_for_) [[unlikely]]
		{
			placed_node_ = place_node(layout_, node);
			placed_for_ = node;
		}
		return compose_placed(layout_, tick_of(step), sequence_of(step), placed_node_);
	}

	/*
	 * Ticks and times
	 */

	/* The tick that a time lies in, negative before the epoch. */
	int64_t		tick_at(int64_t now_ns) const noexcept
	{
		uint64_t	tick_ns = static_cast<uint64_t>(tick_ns_);

		if (now_ns >= epoch_ns_)
			return static_cast<int64_t>(static_cast<uint64_t>(now_ns - epoch_ns_) / tick_ns);

		uint64_t	before_epoch = static_cast<uint64_t>(epoch_ns_) - static_cast<uint64_t>(now_ns);

		return -1 - static_cast<int64_t>((before_epoch - 1) / tick_ns);
	}

	/* The first of the layout's ticks that begins at or after a time; last_tick() + 1 where there is none. */
	int64_t		tick_from(int128 us) const noexcept
	{
		return in_layout((us - layout_.epoch_us + layout_.tick_us - 1) / layout_.tick_us);
	}

	/* The first of the layout's ticks that ends after a time: those below it lie before it. */
	int64_t		tick_before(int128 us) const noexcept
	{
		return in_layout((us - layout_.epoch_us) / layout_.tick_us);
	}

	int64_t		begin_us(int64_t tick) const noexcept
	{
		return tick_begin_us(layout_, tick);
	}

	/* How long it takes until a tick begins, by the clock; ns, negative where it has begun. */
	int64_t		ns_until(int64_t tick, int64_t now_ns) const noexcept
	{
		int128		ahead = int128{tick} * tick_ns_ + epoch_ns_ - now_ns;

		return ahead > INT64_MAX ? INT64_MAX : static_cast<int64_t>(ahead);
	}

	/*
	 * The step after old at this time.  Where old's tick was filled and the one
	 * after it is now's, the count goes on at that one's beginning: waking up
	 * late from the wait for it loses no ids.
	 */
	uint64_t	after(uint64_t old, int64_t now_ns, int64_t now_tick, SequenceStart start) const noexcept
	{
		if (tick_of(old) >= now_tick)
			return old + 1;

		uint64_t	begin = first_step(now_tick);

		return old + 1 == begin ? begin : begin + sequence_start(now_ns, now_tick, start);
	}

private:
	int64_t		in_layout(int128 ticks) const noexcept
	{
		return static_cast<int64_t>(std::clamp<int128>(ticks, 0, int128{last_tick_} + 1));
	}

	uint64_t	sequence_start(int64_t now_ns, int64_t now_tick, SequenceStart start) const noexcept
	{
		switch (start)
		{
			case SequenceStart::subtick:
				{
					int128		fraction = now_ns - epoch_ns_ - now_tick * tick_ns_;

					return static_cast<uint64_t>((fraction << sequence_bits_) / tick_ns_);
				}
			case SequenceStart::random:
				return mix(static_cast<uint64_t>(now_ns)) & ((uint64_t{1} << (sequence_bits_ - 1)) - 1);
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

	const Layout &layout_;

	/* The layout's numbers that every id needs. */
	const int	node_bits_;
	const int	sequence_bits_;
	const uint64_t max_node_;
	const uint64_t max_sequence_;
	const int64_t last_tick_;
	const int64_t tick_ns_;
	const int64_t epoch_ns_;

	/* A node number, and its bits at their places in an id. */
	uint64_t	placed_for_ = UINT64_MAX;
	uint64_t	placed_node_ = 0;
};

}  // namespace snowflake

#endif
