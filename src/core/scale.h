/*
 * scale.h
 *		How a layout puts time on the number line of ids: its scale.
 *
 * An id of a layout whose first field is the timestamp lies in
 *
 *		[tick << timestamp_shift, (tick + 1) << timestamp_shift)
 *
 * whatever its node number and sequence are.  So epoch, tick and the bits below
 * the timestamp, its scale, decide which ids two layouts can have in common; how
 * the bits below are divided decides nothing, as long as no tick is used twice.
 */
#ifndef SNOWFLAKE_CORE_SCALE_H
#define SNOWFLAKE_CORE_SCALE_H

#include <algorithm>
#include <cstdint>

#include "core/id.h"
#include "core/layout.h"
#include "core/units.h"

namespace snowflake __attribute__((visibility("hidden")))
{

struct Scale
{
	int64_t		epoch_us;		/* Unix microseconds, a whole number of milliseconds */
	int64_t		tick_us;		/* 0: not known */
	int			timestamp_shift;
	bool		is_accepted;	/* it did not lie above all before, somebody said */
};

/*
 * A scale as 64 bits, 0 for none:
 *
 *		accepted : 1 | epoch, Unix milliseconds : 43 | timestamp_shift : 6 | unit : 2 | count : 12
 *
 * The tick is count units of 1 us, 1 ms or 1 s, the largest that it is a multiple
 * of.  A layout whose tick or epoch has no room makes no ids: two scales that
 * differ never have the same code.
 *
 * Accepted: the ids of the scales before are not known to lie below a limit made
 * on this one, so that no other scale can lie above them by itself.
 */
constexpr int scale_epoch_bits = 43;
constexpr int scale_shift_bits = 6;
constexpr int scale_unit_bits = 2;
constexpr int scale_count_bits = 12;
static_assert(1 + scale_epoch_bits + scale_shift_bits + scale_unit_bits + scale_count_bits == 64);

constexpr uint64_t scale_is_accepted = uint64_t{1} << 63;
constexpr int scale_units = 3;
constexpr int64_t scale_units_us[scale_units] = {1, us_per_ms, us_per_s};

constexpr uint64_t
scale_mask(int bits) noexcept
{
	return (uint64_t{1} << bits) - 1;
}

constexpr uint64_t
scale_unit(const Layout &layout) noexcept
{
	return layout.tick_us % scale_units_us[2] == 0 ? 2 : layout.tick_us % scale_units_us[1] == 0 ? 1 : 0;
}

/* Is there room for its tick? */
constexpr bool
has_scale_tick(const Layout &layout) noexcept
{
	return static_cast<uint64_t>(layout.tick_us / scale_units_us[scale_unit(layout)]) <= scale_mask(scale_count_bits);
}

/* Is there room for its epoch?  Up to 2248-09-26. */
constexpr bool
has_scale_epoch(const Layout &layout) noexcept
{
	return static_cast<uint64_t>(layout.epoch_us / 1000) <= scale_mask(scale_epoch_bits);
}

/* 0 where there is no room for it. */
constexpr uint64_t
encode_scale(const Layout &layout) noexcept
{
	uint64_t	epoch_ms = static_cast<uint64_t>(layout.epoch_us / 1000);
	uint64_t	unit = scale_unit(layout);
	uint64_t	count = static_cast<uint64_t>(layout.tick_us / scale_units_us[unit]);

	if (!has_scale_tick(layout) || !has_scale_epoch(layout))
		return 0;

	uint64_t	above = epoch_ms << scale_shift_bits | layout.timestamp_shift;

	return (above << scale_unit_bits | unit) << scale_count_bits | count;
}

/* Was it made on this layout's scale, accepted or not? */
constexpr bool
is_scale_of(uint64_t encoded, const Layout &layout) noexcept
{
	return (encoded & ~scale_is_accepted) == encode_scale(layout);
}

constexpr Scale
decode_scale(uint64_t encoded) noexcept
{
	uint64_t	count = encoded & scale_mask(scale_count_bits);
	uint64_t	unit = encoded >> scale_count_bits & scale_mask(scale_unit_bits);
	uint64_t	above = (encoded & ~scale_is_accepted) >> (scale_count_bits + scale_unit_bits);

	return {
		.epoch_us = static_cast<int64_t>(above >> scale_shift_bits) * 1000,
		.tick_us = unit < scale_units ? static_cast<int64_t>(count) * scale_units_us[unit] : 0,
		.timestamp_shift = static_cast<int>(above & scale_mask(scale_shift_bits)),
		.is_accepted = (encoded & scale_is_accepted) != 0,
	};
}

/*
 * The layout's first tick whose ids all lie above every id that was made on
 * another scale below a limit, Unix microseconds, exclusive, whatever the node
 * numbers; the end of each of those ids' ticks lies at or below it.  Beyond the
 * layout's last tick where there is none, where the other tick is not known, and
 * where the other scale was accepted: ids of those before it may lie anywhere.
 */
constexpr int64_t
first_tick_above(const Scale &made_in, int64_t limit_us, const Layout &layout) noexcept
{
	if (made_in.tick_us == 0 || made_in.is_accepted)
		return layout.last_tick() + 1;

	/* Those ids lie below this one: 63 bits, shifted by at most 63. */
	int128		end_tick = std::max<int128>((int128{limit_us} - made_in.epoch_us) / made_in.tick_us, 0);
	int128		end = end_tick << made_in.timestamp_shift;
	int128		tick_ids = int128{1} << layout.timestamp_shift;

	return static_cast<int64_t>(std::min((end + tick_ids - 1) / tick_ids, int128{layout.last_tick()} + 1));
}

/*
 * What a claim in a layout must start above, Unix microseconds, when the limit was
 * made on this scale (encoded; 0: unknown, taken for the layout's own): the
 * limit; on another scale the layout's first tick from limit and clock on, where
 * its ids lie above those before.  False where they do not.
 *
 * That the start on another scale is a tick's beginning is needed for the next
 * change: made the limit, it says of the ids before that they lie below it.
 */
constexpr bool
find_start(uint64_t made_in, const Layout &layout, int64_t limit_us, int64_t now_us, int64_t *start_us) noexcept
{
	*start_us = limit_us;
	if (made_in == 0 || is_scale_of(made_in, layout))
		return true;

	int64_t		above = first_tick_above(decode_scale(made_in), limit_us, layout);
	int64_t		tick = std::max<int64_t>(tick_from(layout, std::max(limit_us, now_us)), 0);

	if (tick > layout.last_tick() || tick < above)
		return false;
	*start_us = tick_begin_us(layout, tick);
	return true;
}

}  // namespace snowflake

#endif
