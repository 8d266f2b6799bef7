/*
 * text_form_test.cpp
 *		Ids as short text.
 */
#include "core/text_form.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

using namespace snowflake;

namespace
{

std::string
base62(int64_t id)
{
	std::string	text(base62_length, '?');

	to_base62(id, text.data());
	return text;
}

std::string
base32(int64_t id)
{
	std::string	text(base32_length, '?');

	to_base32(id, text.data());
	return text;
}

/* -1 where the text is refused. */
int64_t
read62(const std::string &text)
{
	int64_t		id;
	Reason		reason;

	return from_base62(text, &id, &reason) ? id : -1;
}

int64_t
read32(const std::string &text)
{
	int64_t		id;
	Reason		reason;

	return from_base32(text, &id, &reason) ? id : -1;
}

int64_t
random_id(std::mt19937_64 &random)
{
	return static_cast<int64_t>(random() >> (1 + random() % 62));
}

TEST(TextForm, has_known_values)
{
	EXPECT_EQ(base62(0), "00000000000");
	EXPECT_EQ(base62(61), "0000000000z");
	EXPECT_EQ(base62(INT64_MAX), "AzL8n0Y58m7");
	EXPECT_EQ(base32(0), "0000000000000");
	EXPECT_EQ(base32(31), "000000000000Z");
	EXPECT_EQ(base32(INT64_MAX), "7ZZZZZZZZZZZZ");
}

TEST(TextForm, is_read_back_and_sorts_as_the_ids_do)
{
	std::mt19937_64 random(1);

	for (int i = 0; i < 100000; i++)
	{
		int64_t		a = random_id(random);
		int64_t		b = random_id(random);

		EXPECT_EQ(read62(base62(a)), a);
		EXPECT_EQ(read32(base32(a)), a);
		EXPECT_EQ(base62(a) < base62(b), a < b);
		EXPECT_EQ(base32(a) < base32(b), a < b);
	}
}

TEST(TextForm, of_32_forgives_what_people_write)
{
	EXPECT_EQ(read32("7zzzz-zzzzz-zzz"), INT64_MAX);
	EXPECT_EQ(read32("000000000001O"), 32);
	EXPECT_EQ(read32("00000000000io"), 32);
	EXPECT_EQ(read32("00000000000LO"), 32);
	EXPECT_EQ(read32("-0000000000010-"), 32);
}

TEST(TextForm, is_refused_where_it_is_none)
{
	for (const char *text : {"", "0000000000", "000000000000", "0000000000-", "0000000000 ", "AzL8n0Y58m8", "zzzzzzzzzzz", "0000000000\xc3"})
		EXPECT_EQ(read62(text), -1) << text;
	for (const char *text : {"", "000000000000", "00000000000000", "000000000000U", "8000000000000", "ZZZZZZZZZZZZZ",
							 "-------------", "000000000000!", "000000000000\xc3"})
		EXPECT_EQ(read32(text), -1) << text;
	EXPECT_EQ(read62(std::string("0000000000\0", 11)), -1);
}

/* -1 where the text is refused. */
int64_t
read_typed(std::string_view text, std::string_view prefix)
{
	int64_t		id;
	Reason		reason;

	return from_typed(text, prefix, &id, &reason) ? id : -1;
}

bool
is_good_prefix(std::string_view text)
{
	Reason		reason;

	return is_prefix(text, &reason);
}

TEST(TextForm, of_a_type_has_its_prefix)
{
	EXPECT_EQ(read_typed("order_0000000000z", "order"), 61);
	EXPECT_EQ(read_typed("order_item_AzL8n0Y58m7", "order_item"), INT64_MAX);
	for (const char *text : {"", "_", "order", "order_", "0000000000z", "_0000000000z", "orders_0000000000z", "Order_0000000000z",
							 "order__0000000000z", "order_0000000000", "order_AzL8n0Y58m8", "x_order_0000000000z"})
		EXPECT_EQ(read_typed(text, "order"), -1) << text;
}

TEST(TextForm, takes_prefixes_that_are_names)
{
	for (const char *text : {"a", "order", "order_item", "v2", "a__b"})
		EXPECT_TRUE(is_good_prefix(text)) << text;
	EXPECT_TRUE(is_good_prefix(std::string(63, 'x')));
	for (const char *text : {"", "_", "2a", "_a", "a_", "A", "a-b", "a b", "\xc3\xa9"})
		EXPECT_FALSE(is_good_prefix(text)) << text;
	EXPECT_FALSE(is_good_prefix(std::string(64, 'x')));
	EXPECT_FALSE(is_good_prefix(std::string("a\0b", 3)));
}

}  // namespace
