/*
 * layout_test.cpp
 *		Layouts: what is understood, what is refused and why, the canonical text.
 */
#include "layouts.h"

using namespace snowflake;

namespace
{

constexpr const char *with_epoch = " epoch:2025-01-01";

bool
contains(const std::string &text, const std::string &part)
{
	return text.find(part) != std::string::npos;
}

TEST(Layout, reads_every_preset)
{
	for (const Preset &preset : presets)
	{
		Layout		layout = layout_of(preset.name);

		EXPECT_STREQ(preset_name(layout), preset.name);
		EXPECT_STREQ(layout_text(layout).text, preset.spec);
	}
}

TEST(Layout, places_fields_from_high_bits_to_low_ones)
{
	Layout		layout = layout_of("timestamp:41 datacenter:5 worker:5 sequence:12 epoch:0");

	EXPECT_EQ(layout.timestamp_shift, 22);
	EXPECT_EQ(layout.sequence_shift, 0);
	EXPECT_EQ(layout.node_bits, 10);
	EXPECT_EQ(layout.total_bits, 63);
	EXPECT_EQ(layout.find("datacenter")->shift, 17);
	EXPECT_EQ(layout.find("datacenter")->node_shift, 5);
	EXPECT_EQ(layout.find("worker")->shift, 12);
	EXPECT_EQ(layout.find("worker")->node_shift, 0);
	EXPECT_EQ(layout.max_node(), 1023u);
}

TEST(Layout, leaves_high_bits_unused)
{
	Layout		layout = layout_of("js53");

	EXPECT_EQ(layout.total_bits, 53);
	EXPECT_EQ(layout.max_id(), (int64_t{1} << 53) - 1);
}

TEST(Layout, lets_a_preset_have_another_tick_or_epoch)
{
	Layout		layout = layout_of("twitter epoch:2024-01-01 tick:10ms");

	EXPECT_EQ(layout.epoch_us, 1704067200000000);
	EXPECT_EQ(layout.tick_us, 10000);
	EXPECT_EQ(preset_name(layout), nullptr);
	EXPECT_STREQ(layout_text(layout).text, "timestamp:41 datacenter:5 worker:5 sequence:12 tick:10ms epoch:2024-01-01");
}

TEST(Layout, takes_a_tick_of_a_millisecond_where_none_is_given)
{
	EXPECT_EQ(layout_of("timestamp:41 sequence:12 epoch:0").tick_us, 1000);
}

TEST(Layout, reads_epochs)
{
	auto		epoch = [] (const char *text) { return layout_of(std::string("twitter epoch:") + text).epoch_us; };

	EXPECT_EQ(epoch("1970-01-01"), 0);
	EXPECT_EQ(epoch("0"), 0);
	EXPECT_EQ(epoch("1288834974657"), 1288834974657000);
	EXPECT_EQ(epoch("2010-11-04T01:42:54.657Z"), 1288834974657000);
	EXPECT_EQ(epoch("2010-11-04T01:42:54Z"), 1288834974000000);
	EXPECT_EQ(epoch("2024-02-29"), 1709164800000000);
	EXPECT_EQ(epoch("9999-12-31T23:59:59.999Z"), max_epoch_ms * 1000);
}

TEST(Layout, refuses_epochs_that_are_no_times)
{
	for (const char *text : {"", "2025", "2025-1-1", "2025-13-01", "2025-02-29", "2025-01-32", "2025-01-01T", "2025-01-01Z",
							 "2025-01-01T24:00:00Z", "2025-01-01T00:60:00Z", "2025-01-01T00:00:61Z", "2025-01-01T00:00:00",
							 "2025-01-01T00:00:00.1Z", "2025-01-01T00:00:00.1234Z", "2025-01-01T00:00:00+00", "-1", "+1",
							 "253402300800000", "99999999999999999999999", "2025/01/01", "epoch"})
	{
		if (std::string(text) == "2025")
			continue;			/* Unix milliseconds */
		EXPECT_TRUE(contains(refusal_of(std::string("twitter epoch:") + text), "epoch")) << text;
	}
	EXPECT_TRUE(contains(refusal_of("twitter epoch:1969-12-31"), "before 1970"));
}

TEST(Layout, refuses_ticks_that_are_none)
{
	for (const char *text : {"", "1", "ms", "0ms", "-1ms", "1.5ms", "1 ms", "1ns", "1min", "1MS", "86401s", "86400001ms",
							 "99999999999999999999s"})
		EXPECT_NE(refusal_of(std::string("twitter tick:") + text), "") << text;
	EXPECT_TRUE(contains(refusal_of("twitter tick:1ns"), "unknown unit"));
	EXPECT_EQ(refusal_of("twitter tick:86400s"), "");
	EXPECT_EQ(refusal_of("twitter tick:1us"), "");
}

TEST(Layout, refuses_more_than_63_bits)
{
	EXPECT_EQ(refusal_of(std::string("timestamp:41 node:10 sequence:12") + with_epoch), "");
	EXPECT_TRUE(contains(refusal_of(std::string("timestamp:41 node:10 sequence:13") + with_epoch), "64 bits"));
	EXPECT_TRUE(contains(refusal_of(std::string("timestamp:37 server:20 sequence:16") + with_epoch), "73 bits"));
	EXPECT_NE(refusal_of(std::string("timestamp:18446744073709551615 sequence:1") + with_epoch), "");
}

TEST(Layout, refuses_missing_and_repeated_items)
{
	EXPECT_TRUE(contains(refusal_of(std::string("node:10 sequence:12") + with_epoch), "\"timestamp\" is missing"));
	EXPECT_TRUE(contains(refusal_of(std::string("timestamp:41 node:10") + with_epoch), "\"sequence\" is missing"));
	EXPECT_TRUE(contains(refusal_of("timestamp:41 sequence:12"), "epoch is missing"));
	EXPECT_TRUE(contains(refusal_of(std::string("timestamp:41 node:1 node:1 sequence:12") + with_epoch), "given twice"));
	EXPECT_TRUE(contains(refusal_of(std::string("timestamp:41 sequence:12 tick:1ms tick:1ms") + with_epoch), "given twice"));
	EXPECT_TRUE(contains(refusal_of("twitter epoch:0 epoch:0"), "given twice"));
}

TEST(Layout, refuses_fields_without_bits_and_bad_names)
{
	EXPECT_TRUE(contains(refusal_of(std::string("timestamp:41 node:0 sequence:12") + with_epoch), "no bits"));
	for (const char *name : {"Node", "1node", "no-de", "ts", "id", "", "n\xc3\xb6" "de", "a23456789012345678901234567890123"})
		EXPECT_NE(refusal_of(std::string("timestamp:41 sequence:12 ") + name + ":1" + with_epoch), "") << name;
	for (const char *name : {"_", "node", "a2345678901234567890123456789_1", "tick_", "epochs"})
		EXPECT_EQ(refusal_of(std::string("timestamp:41 sequence:12 ") + name + ":1" + with_epoch), "") << name;
}

TEST(Layout, refuses_anything_but_single_spaces)
{
	for (const char *text : {"", " ", " twitter", "twitter ", "twitter  epoch:0", "twitter\tepoch:0", "twitter epoch:0 ",
							 "twitter leaf", "Twitter", "nosuch", "twitter node:1", "timestamp", "timestamp:"})
		EXPECT_NE(refusal_of(text), "") << text;
}

TEST(Layout, repeats_input_without_cutting_characters)
{
	std::string	long_name(5000, '\xc3');
	std::string	reason = refusal_of(long_name);

	EXPECT_FALSE(reason.empty());
	EXPECT_FALSE(contains(reason, "\xc3"));
}

TEST(Layout, reads_its_canonical_text_back)
{
	for (uint64_t seed = 1; seed <= 2000; seed++)
	{
		std::mt19937_64 random(seed);
		Layout		layout = layout_of(random_layout_text(random, false));

		EXPECT_TRUE(same_layout(layout, layout_of(layout_text(layout).text))) << "seed " << seed;
	}
}

TEST(Layout, writes_the_longest_text_there_is)
{
	std::string	text = "timestamp:1 sequence:1";

	for (int i = 0; i < 61; i++)
		text += " a234567890123456789012345678_" + std::to_string(10 + i) + ":1";
	text += " tick:86399999999us epoch:9999-12-31T23:59:59.999Z";

	EXPECT_STREQ(layout_text(layout_of(text)).text, text.c_str());
}

}  // namespace
