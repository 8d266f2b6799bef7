/*
 * claim_text_test.cpp
 *		A claim as text, as ZooKeeper keeps it.
 */
#include <gtest/gtest.h>

#include <string>

#include "core/claim_text.h"

using namespace snowflake;

namespace
{

const std::string nonce = "0123456789abcdef0123456789abcdef";

const std::string text =
	"snowflake-claim 1\n"
	"generation 5\n"
	"granted_until_us 1735689600000000\n"
	"since_us 1735689500000000\n"
	"nonce " + nonce + "\n"
	"port 5432\n"
	"host orders-3\n"
	"data_directory /var/lib/postgresql/15/main\n";

/* The text with one piece replaced, which must be there. */
std::string
with(const std::string &from, const std::string &to)
{
	std::string changed = text;
	const size_t place = changed.find(from);

	EXPECT_NE(place, std::string::npos) << from;
	return changed.replace(place, from.size(), to);
}

bool
is_read(const std::string &given)
{
	Claim		claim{};

	return parse_claim(given, &claim);
}

TEST(ClaimText, is_read_as_it_is_printed)
{
	Claim		claim{};

	claim.node = 7;
	claim.is_alive = true;
	claim.version = 3;
	ASSERT_TRUE(parse_claim(text, &claim));
	EXPECT_EQ(claim.generation, 5);
	EXPECT_EQ(claim.granted_until_us, 1735689600000000);
	EXPECT_EQ(claim.since_us, 1735689500000000);
	EXPECT_EQ(claim.holder.nonce, nonce);
	EXPECT_EQ(claim.holder.port, 5432);
	EXPECT_STREQ(claim.holder.host, "orders-3");
	EXPECT_STREQ(claim.holder.data_directory, "/var/lib/postgresql/15/main");
	EXPECT_EQ(print_claim(claim).view(), text);

	/* What the text does not have is left alone. */
	EXPECT_EQ(claim.node, 7u);
	EXPECT_TRUE(claim.is_alive);
	EXPECT_EQ(claim.version, 3);
}

TEST(ClaimText, may_have_no_holder)
{
	Claim		claim{};

	ASSERT_TRUE(parse_claim(with(nonce, ""), &claim));
	EXPECT_TRUE(claim.holder.is_nobody());
	EXPECT_EQ(print_claim(claim).view(), with(nonce, ""));
}

TEST(ClaimText, has_room_for_the_longest_claim)
{
	Claim		claim{};
	Claim		again{};

	claim.generation = claim.granted_until_us = claim.since_us = INT64_MAX;
	nonce.copy(claim.holder.nonce, nonce_digits);
	claim.holder.port = 65535;
	std::fill_n(claim.holder.host, sizeof(claim.holder.host) - 1, 'h');
	std::fill_n(claim.holder.data_directory, sizeof(claim.holder.data_directory) - 1, 'd');

	const ClaimText printed = print_claim(claim);

	ASSERT_LT(printed.length, sizeof(printed.text));
	ASSERT_TRUE(parse_claim(printed.view(), &again));
	EXPECT_EQ(again.generation, INT64_MAX);
	EXPECT_EQ(again.granted_until_us, INT64_MAX);
	EXPECT_EQ(again.since_us, INT64_MAX);
	EXPECT_STREQ(again.holder.host, claim.holder.host);
	EXPECT_STREQ(again.holder.data_directory, claim.holder.data_directory);
}

TEST(ClaimText, keeps_a_name_on_its_line)
{
	Claim		claim{};

	claim.generation = 1;
	snprintf(claim.holder.host, sizeof(claim.holder.host), "a\nport 1");
	snprintf(claim.holder.data_directory, sizeof(claim.holder.data_directory), "/b\n/c\n");
	ASSERT_TRUE(parse_claim(print_claim(claim).view(), &claim));
	EXPECT_STREQ(claim.holder.host, "a?port 1");
	EXPECT_STREQ(claim.holder.data_directory, "/b?/c?");
	EXPECT_EQ(claim.holder.port, 0);
}

TEST(ClaimText, takes_numbers_up_to_the_greatest)
{
	for (const std::string number : {"generation 5", "granted_until_us 1735689600000000", "since_us 1735689500000000"})
	{
		const std::string name = number.substr(0, number.find(' ') + 1);

		EXPECT_TRUE(is_read(with(number, name + "9223372036854775807"))) << name;
		EXPECT_FALSE(is_read(with(number, name + "9223372036854775808"))) << name;
		EXPECT_FALSE(is_read(with(number, name + "18446744073709551616"))) << name;
		EXPECT_FALSE(is_read(with(number, name + "-1"))) << name;
		EXPECT_FALSE(is_read(with(number, name + "+1"))) << name;
		EXPECT_FALSE(is_read(with(number, name))) << name;
		EXPECT_FALSE(is_read(with(number, name + " 1"))) << name;
		EXPECT_FALSE(is_read(with(number, name + "1 "))) << name;
		EXPECT_FALSE(is_read(with(number, name + "1\r"))) << name;
		EXPECT_FALSE(is_read(with(number, name + "1.5"))) << name;
		EXPECT_FALSE(is_read(with(number, name + "0x10"))) << name;
	}
	EXPECT_TRUE(is_read(with("granted_until_us 1735689600000000", "granted_until_us 0")));
	EXPECT_FALSE(is_read(with("generation 5", "generation 0")));
	EXPECT_TRUE(is_read(with("port 5432", "port 65535")));
	EXPECT_FALSE(is_read(with("port 5432", "port 65536")));
	EXPECT_FALSE(is_read(with("port 5432", "port -1")));
}

TEST(ClaimText, is_refused_in_another_version)
{
	EXPECT_FALSE(is_read(with("snowflake-claim 1", "snowflake-claim 2")));
	EXPECT_FALSE(is_read(with("snowflake-claim 1", "snowflake-claim 0")));
	EXPECT_FALSE(is_read(with("snowflake-claim 1", "snowflake-claim")));
	EXPECT_FALSE(is_read(with("snowflake-claim 1", "something-else 1")));
}

TEST(ClaimText, is_refused_with_a_nonce_that_is_none)
{
	EXPECT_FALSE(is_read(with(nonce, nonce.substr(1))));
	EXPECT_FALSE(is_read(with(nonce, nonce + "0")));
	EXPECT_FALSE(is_read(with(nonce, "0123456789ABCDEF0123456789abcdef")));
	EXPECT_FALSE(is_read(with(nonce, "g123456789abcdef0123456789abcdef")));
	EXPECT_FALSE(is_read(with(nonce, " ")));
}

TEST(ClaimText, is_refused_with_names_that_are_too_long_or_hold_zero_bytes)
{
	EXPECT_TRUE(is_read(with("orders-3", std::string(sizeof(Holder::host) - 1, 'h'))));
	EXPECT_FALSE(is_read(with("orders-3", std::string(sizeof(Holder::host), 'h'))));
	EXPECT_TRUE(is_read(with("/var", std::string(900, 'd'))));
	EXPECT_FALSE(is_read(with("/var", std::string(1100, 'd'))));
	EXPECT_FALSE(is_read(with("orders-3", std::string("a\0b", 3))));
	EXPECT_TRUE(is_read(with("orders-3", "")));
}

TEST(ClaimText, is_refused_wherever_it_is_cut)
{
	for (size_t length = 0; length < text.size(); length++)
		EXPECT_FALSE(is_read(text.substr(0, length))) << length;
}

TEST(ClaimText, is_refused_with_lines_that_are_missing_doubled_or_in_another_order)
{
	EXPECT_FALSE(is_read(with("generation 5\n", "")));
	EXPECT_FALSE(is_read(with("generation 5\n", "generation 5\ngeneration 5\n")));
	EXPECT_FALSE(is_read(with("port 5432\nhost orders-3\n", "host orders-3\nport 5432\n")));
	EXPECT_FALSE(is_read(with("generation 5\n", "\ngeneration 5\n")));
	EXPECT_FALSE(is_read("\n" + text));
}

TEST(ClaimText, is_refused_where_it_is_something_else)
{
	for (const std::string &garbage : {std::string(), std::string("\n"), std::string("snowflake-claim"),
									   std::string(4096, '\n'), std::string(4096, '\xff'), std::string(4096, '\0'),
									   std::string("{\"generation\": 5}")})
		EXPECT_FALSE(is_read(garbage));
}

TEST(ClaimText, may_be_followed_by_the_lines_of_a_later_version)
{
	EXPECT_TRUE(is_read(text + "color blue\n"));
	EXPECT_TRUE(is_read(text + "color"));
	EXPECT_TRUE(is_read(text + std::string(2048, '\xff')));
}

TEST(ClaimText, that_is_refused_changes_nothing)
{
	Claim		claim{};

	claim.generation = 3;
	claim.granted_until_us = 4;
	claim.holder.port = 5;
	EXPECT_FALSE(parse_claim(text.substr(0, text.size() - 1), &claim));
	EXPECT_EQ(claim.generation, 3);
	EXPECT_EQ(claim.granted_until_us, 4);
	EXPECT_EQ(claim.holder.port, 5);
	EXPECT_TRUE(claim.holder.is_nobody());
}

}  // namespace
