/*
 * id_test.cpp
 *		Taking ids apart and putting them together; bounds of a time.
 */
#include "core/id.h"
#include "layouts.h"

using namespace snowflake;

namespace
{

/* A random value of so many bits, often at an edge. */
uint64_t
random_value(std::mt19937_64 &random, int bits)
{
	uint64_t	max = bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;

	switch (random() % 4)
	{
		case 0:
			return 0;
		case 1:
			return max;
		default:
			return random() & max;
	}
}

TEST(Id, is_read_as_twitter_read_it)
{
	/* https://en.wikipedia.org/wiki/Snowflake_ID: 2022-06-28 16:07:40.105 UTC, machine 378, sequence 0 */
	Layout		layout = layout_of("twitter");
	Parts		parts = take_apart(layout, 1541815603606036480);

	EXPECT_EQ(tick_begin_us(layout, parts.tick), 1656432460105000);
	EXPECT_EQ(parts.node, 378u);
	EXPECT_EQ(parts.sequence, 0u);
}

TEST(Id, is_read_as_discord_documents_it)
{
	/* https://discord.com/developers/docs/reference#snowflakes: 2016-04-30 11:18:25.796 UTC, worker 1, process 0, increment 7 */
	Layout		layout = layout_of("discord");
	int64_t		id = 175928847299117063;
	Parts		parts = take_apart(layout, id);

	EXPECT_EQ(tick_begin_us(layout, parts.tick), 1462015105796000);
	EXPECT_EQ(field_value(*layout.find("worker"), id), 1u);
	EXPECT_EQ(field_value(*layout.find("process"), id), 0u);
	EXPECT_EQ(parts.sequence, 7u);
}

TEST(Id, is_the_same_after_taking_apart_and_composing)
{
	for (uint64_t seed = 1; seed <= 3000; seed++)
	{
		std::mt19937_64 random(seed);
		Layout		layout = layout_of(random_layout_text(random, false));

		for (int i = 0; i < 20; i++)
		{
			int64_t		id = static_cast<int64_t>(random_value(random, layout.total_bits));
			Parts		parts = take_apart(layout, id);

			EXPECT_EQ(compose(layout, parts), id) << "seed " << seed;
			EXPECT_LE(parts.tick, layout.last_tick());
			EXPECT_LE(parts.node, layout.max_node());
			EXPECT_LE(parts.sequence, layout.max_sequence());
		}
	}
}

TEST(Id, has_the_parts_that_it_was_composed_of)
{
	for (uint64_t seed = 1; seed <= 3000; seed++)
	{
		std::mt19937_64 random(seed);
		Layout		layout = layout_of(random_layout_text(random, false));
		Parts		parts{static_cast<int64_t>(random_value(random, layout.timestamp_bits)),
						  random_value(random, layout.node_bits), random_value(random, layout.sequence_bits)};
		Parts		read = take_apart(layout, compose(layout, parts));

		EXPECT_GE(compose(layout, parts), 0) << "seed " << seed;
		EXPECT_EQ(read.tick, parts.tick) << "seed " << seed;
		EXPECT_EQ(read.node, parts.node) << "seed " << seed;
		EXPECT_EQ(read.sequence, parts.sequence) << "seed " << seed;
	}
}

TEST(Bounds, enclose_just_the_ids_of_their_time)
{
	for (uint64_t seed = 1; seed <= 3000; seed++)
	{
		std::mt19937_64 random(seed);
		Layout		layout = layout_of(random_layout_text(random, true));

		for (int i = 0; i < 20; i++)
		{
			int64_t		id = static_cast<int64_t>(random_value(random, layout.total_bits));
			int64_t		born = tick_begin_us(layout, take_apart(layout, id).tick);

			if (born == INT64_MAX || id == INT64_MAX)
				continue;		/* no 64-bit time; the id that also stands for "past the end" */

			int64_t		near = born + static_cast<int64_t>(random() % 5) * (layout.tick_us / 2 + 1) - 2 * (layout.tick_us / 2 + 1);

			ASSERT_EQ(id >= min_id(layout, near), born >= near) << "seed " << seed << " id " << id << " time " << near;
			ASSERT_EQ(id <= max_id(layout, near), born <= near) << "seed " << seed << " id " << id << " time " << near;
		}
	}
}

TEST(Bounds, are_clamped)
{
	Layout		layout = layout_of("js53");

	EXPECT_EQ(min_id(layout, INT64_MIN), 0);
	EXPECT_EQ(max_id(layout, INT64_MIN), -1);
	EXPECT_EQ(min_id(layout, layout.epoch_us - 1), 0);
	EXPECT_EQ(max_id(layout, layout.epoch_us - 1), -1);
	EXPECT_EQ(min_id(layout, layout.epoch_us), 0);
	EXPECT_EQ(max_id(layout, layout.epoch_us), (1 << 13) - 1);
	EXPECT_EQ(max_id(layout, ends_at_us(layout) - 1), layout.max_id());
	EXPECT_EQ(max_id(layout, ends_at_us(layout)), INT64_MAX);
	EXPECT_EQ(min_id(layout, ends_at_us(layout) - 999), INT64_MAX);
	EXPECT_EQ(min_id(layout, INT64_MAX), INT64_MAX);
	EXPECT_EQ(max_id(layout, INT64_MAX), INT64_MAX);
}

TEST(Bounds, are_clamped_for_infinity_in_every_layout)
{
	for (const char *text : {"timestamp:50 sequence:13 tick:1us epoch:2025-01-01", "timestamp:62 sequence:1 tick:1us epoch:9999-12-31",
							 "timestamp:62 sequence:1 tick:1s epoch:0", "timestamp:1 sequence:1 epoch:0"})
	{
		Layout		layout = layout_of(text);

		EXPECT_EQ(min_id(layout, INT64_MIN), 0) << text;
		EXPECT_EQ(max_id(layout, INT64_MIN), -1) << text;
		EXPECT_EQ(min_id(layout, INT64_MAX), INT64_MAX) << text;
		EXPECT_EQ(max_id(layout, INT64_MAX), INT64_MAX) << text;
	}
}

TEST(Time, of_ticks_beyond_64_bits_is_the_end_of_time)
{
	Layout		layout = layout_of("timestamp:62 sequence:1 tick:86400s epoch:9999-12-31");

	EXPECT_EQ(tick_begin_us(layout, layout.last_tick()), INT64_MAX);
	EXPECT_EQ(ends_at_us(layout), INT64_MAX);
}

}  // namespace
