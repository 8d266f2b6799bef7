/*
 * layout.h
 *		Which bits of an id mean what: a layout, its text form, the presets.
 *
 * A layout is written as one string, fields from the high bits to the low ones:
 *
 *		timestamp:41 datacenter:5 worker:5 sequence:12 tick:1ms epoch:2010-11-04T01:42:54.657Z
 *
 * The fields are right-aligned in 63 bits; the sign bit is never used.  All
 * fields but timestamp and sequence together are the node number, in the order
 * given.  Times are Unix time, UTC, without leap seconds.
 */
#ifndef SNOWFLAKE_CORE_LAYOUT_H
#define SNOWFLAKE_CORE_LAYOUT_H

#include <cstdint>
#include <string_view>

#include "core/reason.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/* An id is a positive bigint. */
constexpr int max_id_bits = 63;

/* A field's name: [a-z_][a-z0-9_]{0,30} */
constexpr int max_field_name = 31;
bool		is_field_name(std::string_view name) noexcept;

/* A tick longer than a day would make every wait for the next one longer than a day. */
constexpr int64_t max_tick_us = 86400LL * 1000 * 1000;

/* 9999-12-31T23:59:59.999Z */
constexpr int64_t max_epoch_ms = 253402300799999LL;

enum class FieldKind : uint8_t
{
	timestamp,
	sequence,
	node,						/* a part of the node number */
};

struct Field
{
	char		name[max_field_name + 1];
	FieldKind	kind;
	uint8_t		bits;
	uint8_t		shift;			/* of the field's lowest bit in the id */
	uint8_t		node_shift;		/* of its lowest bit in the node number; node parts only */

	constexpr uint64_t max() const noexcept
	{
		return (uint64_t{1} << bits) - 1;
	}
};

struct Layout
{
	int			field_count;
	Field		fields[max_id_bits];

	uint8_t		timestamp_bits;
	uint8_t		timestamp_shift;
	uint8_t		sequence_bits;
	uint8_t		sequence_shift;
	uint8_t		node_bits;		/* sum over the node's parts; 0 where there is none */
	uint8_t		total_bits;

	int64_t		tick_us;
	int64_t		epoch_us;		/* Unix microseconds, a whole number of milliseconds */

	constexpr int64_t last_tick() const noexcept
	{
		return static_cast<int64_t>((uint64_t{1} << timestamp_bits) - 1);
	}
	constexpr uint64_t max_sequence() const noexcept
	{
		return (uint64_t{1} << sequence_bits) - 1;
	}
	constexpr uint64_t max_node() const noexcept
	{
		return (uint64_t{1} << node_bits) - 1;
	}
	constexpr int64_t max_id() const noexcept
	{
		return static_cast<int64_t>((uint64_t{1} << total_bits) - 1);
	}

	/* The part of the node number, or timestamp or sequence, with this name; null where there is none. */
	const Field *find(std::string_view name) const noexcept;
};

/*
 * Parses a layout or a preset's name, which another tick or epoch may follow.
 * False with the reason where the text is no layout; *layout is then undefined.
 */
bool		parse_layout(std::string_view text, Layout *layout, Reason *reason) noexcept;

/*
 * The canonical text of a layout, which parse_layout() reads back to an equal
 * one: fields from high to low, the tick in the largest unit that holds it,
 * the epoch as short as it can be.
 */
struct LayoutText
{
	/* 61 fields at most, with the longest names and 2 digits, then tick and epoch */
	char		text[max_id_bits * (max_field_name + 4) + 64];
};

LayoutText	layout_text(const Layout &layout) noexcept;

/* The tick alone as in the canonical text, such as "10ms". */
struct TickText
{
	char		text[24];
};

TickText	tick_text(int64_t tick_us) noexcept;

bool		same_layout(const Layout &a, const Layout &b) noexcept;

struct Preset
{
	const char *name;
	const char *spec;
};

constexpr int preset_count = 11;
extern const Preset presets[preset_count];

/* The name of the preset that this layout is, or null. */
const char *preset_name(const Layout &layout) noexcept;

}  // namespace snowflake

#endif
