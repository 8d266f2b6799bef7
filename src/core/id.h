/*
 * id.h
 *		Taking an id apart and putting it together, and the bounds of a time.
 *
 * Times are Unix microseconds.  An id was born at the beginning of its tick.
 */
#ifndef SNOWFLAKE_CORE_ID_H
#define SNOWFLAKE_CORE_ID_H

#include <cstdint>

#include "core/layout.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/* __extension__: ISO C++ has no 128-bit integer, g++ and clang do. */
__extension__ typedef __int128 int128;

/* What an id is made of; each part is within the layout's range. */
struct Parts
{
	int64_t		tick;			/* since the epoch */
	uint64_t	node;
	uint64_t	sequence;
};

/* The node number's bits at their places in an id. */
constexpr uint64_t
place_node(const Layout &layout, uint64_t node) noexcept
{
	uint64_t	id = 0;

	for (int i = 0; i < layout.field_count; i++)
	{
		const Field &field = layout.fields[i];

		if (field.kind == FieldKind::node)
			id |= (node >> field.node_shift & field.max()) << field.shift;
	}
	return id;
}

/* The value of one field of an id from 0 to max_id(). */
constexpr uint64_t
field_value(const Field &field, int64_t id) noexcept
{
	return static_cast<uint64_t>(id) >> field.shift & field.max();
}

/* The id of a tick and a sequence, the node number's bits being at their places. */
constexpr int64_t
compose_placed(const Layout &layout, int64_t tick, uint64_t sequence, uint64_t placed_node) noexcept
{
	return static_cast<int64_t>(static_cast<uint64_t>(tick) << layout.timestamp_shift |
								sequence << layout.sequence_shift | placed_node);
}

/* The id with these parts, from 0 to max_id(). */
constexpr int64_t
compose(const Layout &layout, const Parts &parts) noexcept
{
	return compose_placed(layout, parts.tick, parts.sequence, place_node(layout, parts.node));
}

/* The id after this one in its tick, which must have one more. */
constexpr int64_t
next_in_tick(const Layout &layout, int64_t id) noexcept
{
	return id + (int64_t{1} << layout.sequence_shift);
}

/* The parts of an id from 0 to max_id(). */
constexpr Parts
take_apart(const Layout &layout, int64_t id) noexcept
{
	Parts		parts{};

	for (int i = 0; i < layout.field_count; i++)
	{
		const Field &field = layout.fields[i];
		uint64_t	value = field_value(field, id);

		switch (field.kind)
		{
			case FieldKind::timestamp:
				parts.tick = static_cast<int64_t>(value);
				break;
			case FieldKind::sequence:
				parts.sequence = value;
				break;
			case FieldKind::node:
				parts.node |= value << field.node_shift;
				break;
		}
	}
	return parts;
}

/* When a tick begins; INT64_MAX where that lies beyond what 64 bits hold. */
constexpr int64_t
tick_begin_us(const Layout &layout, int64_t tick) noexcept
{
	int128		us = int128{tick} * layout.tick_us + layout.epoch_us;

	return us > INT64_MAX ? INT64_MAX : static_cast<int64_t>(us);
}

/* The first time that the layout cannot express. */
constexpr int64_t
ends_at_us(const Layout &layout) noexcept
{
	int128		us = (int128{layout.last_tick()} + 1) * layout.tick_us + layout.epoch_us;

	return us > INT64_MAX ? INT64_MAX : static_cast<int64_t>(us);
}

/* The tick that a time lies in, negative before the epoch; not clamped to the layout's last tick. */
constexpr int64_t
tick_at(const Layout &layout, int64_t unix_us) noexcept
{
	int128		since = int128{unix_us} - layout.epoch_us;

	int128		tick = since >= 0 ? since / layout.tick_us : -((-since - 1) / layout.tick_us) - 1;

	return tick < INT64_MIN ? INT64_MIN : static_cast<int64_t>(tick);
}

/* The first tick that begins at or after a time. */
constexpr int64_t
tick_from(const Layout &layout, int64_t unix_us) noexcept
{
	return unix_us == INT64_MIN ? tick_at(layout, unix_us) : tick_at(layout, unix_us - 1) + 1;
}

/*
 * The smallest id born at or after a time: 0 before the epoch, INT64_MAX where
 * there is none, and for INT64_MAX, which is infinity.
 */
constexpr int64_t
min_id(const Layout &layout, int64_t unix_us) noexcept
{
	int64_t		tick = tick_from(layout, unix_us);

	if (tick <= 0)
		return 0;
	return tick > layout.last_tick() || unix_us == INT64_MAX ? INT64_MAX : compose(layout, {tick, 0, 0});
}

/*
 * The largest id born at or before a time: -1 where there is none, INT64_MAX
 * from the layout's end on, and for INT64_MAX, which is infinity.
 */
constexpr int64_t
max_id(const Layout &layout, int64_t unix_us) noexcept
{
	int64_t		tick = tick_at(layout, unix_us);

	if (tick < 0)
		return -1;
	if (tick > layout.last_tick() || unix_us == INT64_MAX)
		return INT64_MAX;
	return compose(layout, {tick, layout.max_node(), layout.max_sequence()});
}

}  // namespace snowflake

#endif
