/*
 * layout.cpp
 *		Which bits of an id mean what: a layout, its text form, the presets.
 */
#include "core/layout.h"

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "core/parse.h"
#include "core/units.h"

namespace snowflake
{

constexpr Preset presets[preset_count] = {
	{"twitter", "timestamp:41 datacenter:5 worker:5 sequence:12 tick:1ms epoch:2010-11-04T01:42:54.657Z"},
	{"leaf", "timestamp:41 worker:10 sequence:12 tick:1ms epoch:2010-11-04T01:42:54.657Z"},
	{"agrona", "timestamp:41 node:10 sequence:12 tick:1ms epoch:1970-01-01"},
	{"pgedge", "timestamp:41 node:10 sequence:12 tick:1ms epoch:2023-01-01"},
	{"sonyflake", "timestamp:39 sequence:8 machine:16 tick:10ms epoch:2014-09-01"},
	{"baidu", "timestamp:28 worker:22 sequence:13 tick:1s epoch:2016-05-19T16:00:00Z"},
	{"instagram", "timestamp:40 shard:13 sequence:10 tick:1ms epoch:2011-08-24T21:07:01.721Z"},
	{"discord", "timestamp:41 worker:5 process:5 sequence:12 tick:1ms epoch:2015-01-01"},
	{"mastodon", "timestamp:47 sequence:16 tick:1ms epoch:1970-01-01"},
	{"game", "timestamp:38 server:20 sequence:5 tick:10ms epoch:2025-01-01"},
	{"js53", "timestamp:40 node:6 sequence:7 tick:1ms epoch:2025-01-01"},
};

namespace
{


/* Two or more digits at a fixed place of a date, -1 where they are not digits. */
int
digits_at(std::string_view text, size_t start, size_t count) noexcept
{
	uint64_t	number;

	if (text.size() < start + count || !parse_digits(slice(text, start, count), 9999, &number))
		return -1;
	return static_cast<int>(number);
}

/* YYYY-MM-DD, with THH:MM:SS[.fff]Z or without, as Unix microseconds. */
bool
parse_date(std::string_view text, int64_t *unix_us) noexcept
{
	using namespace std::chrono;

	int			y = digits_at(text, 0, 4);
	int			m = digits_at(text, 5, 2);
	int			d = digits_at(text, 8, 2);

	if (y < 0 || m < 0 || d < 0 || text[4] != '-' || text[7] != '-')
		return false;

	year_month_day date{year{y}, month{static_cast<unsigned>(m)}, day{static_cast<unsigned>(d)}};

	if (!date.ok())
		return false;

	int64_t		seconds = int64_t{sys_days{date}.time_since_epoch().count()} * 86400;
	int64_t		millis = 0;

	if (text.size() > 10)
	{
		bool		fraction = text.size() == 24;
		int			hour = digits_at(text, 11, 2);
		int			minute = digits_at(text, 14, 2);
		int			second = digits_at(text, 17, 2);

		if ((text.size() != 20 && !fraction) || text[10] != 'T' || text[13] != ':' || text[16] != ':' ||
			text.back() != 'Z' || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59)
			return false;
		if (fraction && (text[19] != '.' || (millis = digits_at(text, 20, 3)) < 0))
			return false;
		seconds += hour * 3600 + minute * 60 + second;
	}
	*unix_us = seconds * us_per_s + millis * us_per_ms;
	return true;
}

bool
parse_epoch(std::string_view text, int64_t *unix_us, Reason *reason) noexcept
{
	uint64_t	millis;

	if (parse_digits(text, static_cast<uint64_t>(max_epoch_ms), &millis))
	{
		*unix_us = static_cast<int64_t>(millis) * us_per_ms;
		return true;
	}
	if (!parse_date(text, unix_us))
		return reason->refuse("The epoch \"%s\" is not a date as YYYY-MM-DD, with THH:MM:SS[.fff]Z or without, "
							  "nor Unix milliseconds up to %" PRId64 ".",
							  Quoted(text).text, max_epoch_ms);
	if (*unix_us < 0)
		return reason->refuse("The epoch \"%s\" is before 1970-01-01.", Quoted(text).text);
	return true;
}

struct Unit
{
	const char *name;
	int64_t		us;
};

/* From the largest to the smallest; "s" is tried last when reading, since the others end in it. */
constexpr Unit units[] = {{"s", us_per_s}, {"ms", us_per_ms}, {"us", 1}};

bool
parse_tick(std::string_view text, int64_t *tick_us, Reason *reason) noexcept
{
	size_t		digits = 0;
	uint64_t	number;

	while (digits < text.size() && is_digit(text[digits]))
		digits++;

	std::string_view unit_name = slice(text, digits);

	for (const Unit &unit : units)
	{
		if (unit_name != unit.name)
			continue;
		if (!parse_digits(slice(text, 0, digits), static_cast<uint64_t>(max_tick_us / unit.us), &number) || number == 0)
			return reason->refuse("The tick \"%s\" is not a whole number from 1 up to a day, which is %" PRId64 "%s.",
								  Quoted(text).text, max_tick_us / unit.us, unit.name);
		*tick_us = static_cast<int64_t>(number) * unit.us;
		return true;
	}
	if (digits > 0 && is_field_name(unit_name))
		return reason->refuse("The tick \"%s\" has an unknown unit; the units are us, ms and s.", Quoted(text).text);
	return reason->refuse("The tick \"%s\" is not a whole number with a unit, such as 1ms.", Quoted(text).text);
}

bool
add_field(Layout *layout, std::string_view name, std::string_view width, Reason *reason) noexcept
{
	uint64_t	bits;

	if (name == "ts" || name == "id")
		return reason->refuse("A field cannot be called \"%s\".", Quoted(name).text);
	if (!is_field_name(name))
		return reason->refuse("\"%s\" is not a field name: a small letter or underscore, then up to 30 small letters, "
							  "digits and underscores.", Quoted(name).text);
	if (layout->find(name) != nullptr)
		return reason->refuse("The field \"%s\" is given twice.", Quoted(name).text);
	if (!parse_digits(width, UINT64_MAX, &bits))
		return reason->refuse("The width \"%s\" of the field \"%s\" is not a number of bits.",
							  Quoted(width).text, Quoted(name).text);
	if (bits == 0)
		return reason->refuse("The field \"%s\" has no bits; leave it out, or give it at least 1.", Quoted(name).text);
	if (bits > static_cast<uint64_t>(max_id_bits - layout->total_bits))
		return reason->refuse("With the field \"%s\" the fields have %" PRIu64 " bits together; "
							  "at most %d fit a positive bigint.", Quoted(name).text,
							  bits > UINT64_MAX - max_id_bits ? bits : bits + layout->total_bits, max_id_bits);

	Field	   &field = layout->fields[layout->field_count++];

	memset(field.name, 0, sizeof(field.name));
	memcpy(field.name, name.data(), name.size());
	field.bits = static_cast<uint8_t>(bits);
	field.kind = name == "timestamp" ? FieldKind::timestamp :
		name == "sequence" ? FieldKind::sequence : FieldKind::node;
	layout->total_bits += field.bits;
	return true;
}

/* Fields run from high bits to low ones: their places are known only when all widths are. */
void
place_fields(Layout *layout) noexcept
{
	uint8_t		shift = 0;
	uint8_t		node_shift = 0;

	for (int i = layout->field_count - 1; i >= 0; i--)
	{
		Field	   &field = layout->fields[i];

		field.shift = shift;
		field.node_shift = node_shift;
		shift += field.bits;
		switch (field.kind)
		{
			case FieldKind::timestamp:
				layout->timestamp_bits = field.bits;
				layout->timestamp_shift = field.shift;
				break;
			case FieldKind::sequence:
				layout->sequence_bits = field.bits;
				layout->sequence_shift = field.shift;
				break;
			case FieldKind::node:
				node_shift += field.bits;
				break;
		}
	}
	layout->node_bits = node_shift;
}

bool
start_from_preset(std::string_view name, Layout *layout, Reason *reason) noexcept
{
	for (const Preset &preset : presets)
	{
		if (name == preset.name)
			return parse_layout(preset.spec, layout, reason);
	}
	return reason->refuse("\"%s\" is neither a preset nor a field with its width, such as sequence:12.",
						  Quoted(name).text);
}

}  // namespace

bool
is_field_name(std::string_view name) noexcept
{
	if (name.empty() || name.size() > max_field_name || is_digit(name[0]))
		return false;
	for (char c : name)
	{
		if (!(c >= 'a' && c <= 'z') && !is_digit(c) && c != '_')
			return false;
	}
	return true;
}

const Field *
Layout::find(std::string_view name) const noexcept
{
	for (int i = 0; i < field_count; i++)
	{
		if (name == fields[i].name)
			return &fields[i];
	}
	return nullptr;
}

bool
parse_layout(std::string_view text, Layout *layout, Reason *reason) noexcept
{
	bool		is_preset = false;
	bool		has_tick = false;
	bool		has_epoch = false;

	*layout = Layout{};
	if (text.empty())
		return reason->refuse("It is empty; it must be a preset's name or a list of fields.");
	if (text.front() == ' ' || text.back() == ' ' || text.find("  ") != std::string_view::npos)
		return reason->refuse("Its items must be separated by single spaces.");

	for (bool first = true; !text.empty(); first = false)
	{
		std::string_view item = take_until(&text, ' ');
		size_t		colon = item.find(':');

		if (colon == std::string_view::npos)
		{
			if (!first)
				return reason->refuse("\"%s\" is not an item: a name, a colon and a value, such as sequence:12.",
									  Quoted(item).text);
			if (!start_from_preset(item, layout, reason))
				return false;
			is_preset = true;
			continue;
		}

		std::string_view name = slice(item, 0, colon);
		std::string_view value = slice(item, colon + 1);

		if (name == "tick" || name == "epoch")
		{
			bool	   &seen = name == "tick" ? has_tick : has_epoch;

			if (seen)
				return reason->refuse("The %s is given twice.", Quoted(name).text);
			seen = true;
			if (name == "tick" ? !parse_tick(value, &layout->tick_us, reason) :
				!parse_epoch(value, &layout->epoch_us, reason))
				return false;
		}
		else if (is_preset)
			return reason->refuse("A preset can be followed by another tick or epoch only, not by the field \"%s\".",
								  Quoted(name).text);
		else if (!add_field(layout, name, value, reason))
			return false;
	}

	if (is_preset)
		return true;
	if (layout->find("timestamp") == nullptr)
		return reason->refuse("The field \"timestamp\" is missing.");
	if (layout->find("sequence") == nullptr)
		return reason->refuse("The field \"sequence\" is missing.");
	if (!has_epoch)
		return reason->refuse("The epoch is missing; ids made with another epoch would get another time.");
	if (!has_tick)
		layout->tick_us = us_per_ms;
	place_fields(layout);
	return true;
}

TickText
tick_text(int64_t tick_us) noexcept
{
	TickText	result;

	for (const Unit &unit : units)
	{
		if (tick_us % unit.us == 0)
		{
			snprintf(result.text, sizeof(result.text), "%" PRId64 "%s", tick_us / unit.us, unit.name);
			break;
		}
	}
	return result;
}

LayoutText
layout_text(const Layout &layout) noexcept
{
	using namespace std::chrono;

	LayoutText	result;
	size_t		length = 0;
	auto		rest = [&] { return sizeof(result.text) - length; };
	auto		end = [&] { return result.text + length; };

	for (int i = 0; i < layout.field_count; i++)
		length += snprintf(end(), rest(), "%s:%d ", layout.fields[i].name, layout.fields[i].bits);

	sys_days	days{floor<std::chrono::days>(sys_time<microseconds>{microseconds{layout.epoch_us}})};
	year_month_day date{days};
	int64_t		millis = layout.epoch_us / us_per_ms - int64_t{days.time_since_epoch().count()} * 86400 * 1000;
	int			seconds = static_cast<int>(millis / 1000);

	length += snprintf(end(), rest(), "tick:%s epoch:%04d-%02u-%02u", tick_text(layout.tick_us).text,
					   static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
					   static_cast<unsigned>(date.day()));
	if (millis == 0)
		return result;
	length += snprintf(end(), rest(), "T%02d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60);
	if (millis % 1000 != 0)
		length += snprintf(end(), rest(), ".%03d", static_cast<int>(millis % 1000));
	snprintf(end(), rest(), "Z");
	return result;
}

bool
same_layout(const Layout &a, const Layout &b) noexcept
{
	if (a.field_count != b.field_count || a.tick_us != b.tick_us || a.epoch_us != b.epoch_us)
		return false;
	for (int i = 0; i < a.field_count; i++)
	{
		if (strcmp(a.fields[i].name, b.fields[i].name) != 0 || a.fields[i].bits != b.fields[i].bits)
			return false;
	}
	return true;
}

const char *
preset_name(const Layout &layout) noexcept
{
	for (const Preset &preset : presets)
	{
		Layout		candidate;
		Reason		reason;

		if (parse_layout(preset.spec, &candidate, &reason) && same_layout(layout, candidate))
			return preset.name;
	}
	return nullptr;
}

}  // namespace snowflake
