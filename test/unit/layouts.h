/*
 * layouts.h
 *		Layouts for tests: from text, and at random.
 */
#ifndef SNOWFLAKE_TEST_LAYOUTS_H
#define SNOWFLAKE_TEST_LAYOUTS_H

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/layout.h"

namespace snowflake
{

inline Layout
layout_of(const std::string &text)
{
	Layout		layout;
	Reason		reason;

	EXPECT_TRUE(parse_layout(text, &layout, &reason)) << text << ": " << reason.text;
	return layout;
}

/* Why a text is no layout; empty where it is one. */
inline std::string
refusal_of(const std::string &text)
{
	Layout		layout;
	Reason		reason;

	return parse_layout(text, &layout, &reason) ? "" : reason.text;
}

/* A random layout's text: any order of fields, any widths that fit, any tick and epoch. */
inline std::string
random_layout_text(std::mt19937_64 &random, bool timestamp_first)
{
	auto		up_to = [&] (uint64_t most) { return std::uniform_int_distribution<uint64_t>(0, most)(random); };
	std::vector<std::string> names = {"sequence"};
	int			left = max_id_bits;
	std::string	text;

	for (uint64_t i = up_to(5); i > 0; i--)
		names.push_back("part_" + std::to_string(i));
	std::shuffle(names.begin(), names.end(), random);
	names.insert(names.begin() + static_cast<long>(timestamp_first ? 0 : up_to(names.size())), "timestamp");
	for (size_t i = 0; i < names.size(); i++)
	{
		int			most = left - static_cast<int>(names.size() - i - 1);
		int			bits = 1 + static_cast<int>(up_to(static_cast<uint64_t>(most - 1)) / (up_to(2) + 1));

		left -= bits;
		text += names[i] + ":" + std::to_string(bits) + " ";
	}

	const char *units[] = {"us", "ms", "s"};

	return text + "tick:" + std::to_string(1 + up_to(1000)) + units[up_to(2)] +
		" epoch:" + std::to_string(up_to(4102444800000));
}

}  // namespace snowflake

#endif
