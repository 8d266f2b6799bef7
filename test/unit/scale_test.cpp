/*
 * scale_test.cpp
 *		Which ids two layouts can have in common: scales, and where a claim starts
 *		after a change of layout.
 */
#include "core/scale.h"
#include "layouts.h"

#include <map>

using namespace snowflake;

namespace
{

constexpr int64_t s_us = 1000 * 1000;

/* A random layout to make ids with, whose scale is often near the model's. */
Layout
random_layout(std::mt19937_64 &random, const Layout *model)
{
	for (;;)
	{
		Layout		layout = layout_of(random_layout_text(random, true));

		if (model != nullptr && random() % 4 != 0)
		{
			std::string text = "timestamp:" + std::to_string(model->timestamp_bits) +
				" node:" + std::to_string(model->timestamp_shift / 2 + 1) +
				" sequence:" + std::to_string(model->timestamp_shift - model->timestamp_shift / 2);
			int64_t		tick_us = model->tick_us;
			int64_t		epoch_ms = model->epoch_us / 1000;

			if (model->timestamp_bits + model->timestamp_shift + 1 > max_id_bits)
				continue;
			if (random() % 2 == 0)
				tick_us += (1 + static_cast<int64_t>(random() % 3)) * scale_units_us[scale_unit(*model)];
			if (random() % 2 == 0)
				epoch_ms += static_cast<int64_t>(random() % 41) * 1000 - 20 * 1000;
			if (epoch_ms < 0)
				continue;
			layout = layout_of(text + " tick:" + std::to_string(tick_us) + "us epoch:" + std::to_string(epoch_ms));
		}
		return layout;
	}
}

TEST(Scale, is_written_as_it_was_in_the_first_version)
{
	/* What is in WALs and base backups. */
	EXPECT_EQ(encode_scale(layout_of("twitter")), 1288834974657u << 20 | 22 << 14 | 1 << 12 | 1);
	EXPECT_EQ(encode_scale(layout_of("game")), 1735689600000u << 20 | 25 << 14 | 1 << 12 | 10);
	EXPECT_EQ(encode_scale(layout_of("agrona")), 22u << 14 | 1 << 12 | 1);
	EXPECT_EQ(encode_scale(layout_of("timestamp:50 sequence:13 tick:4095s epoch:0")), 13u << 14 | 2 << 12 | 4095);
}

TEST(Scale, is_read_as_it_was_written)
{
	for (uint64_t seed = 1; seed <= 3000; seed++)
	{
		std::mt19937_64 random(seed);
		Layout		layout = layout_of(random_layout_text(random, true));
		Scale		read = decode_scale(encode_scale(layout));

		EXPECT_NE(encode_scale(layout), 0u) << "seed " << seed;
		EXPECT_EQ(read.epoch_us, layout.epoch_us) << "seed " << seed;
		EXPECT_EQ(read.tick_us, layout.tick_us) << "seed " << seed;
		EXPECT_EQ(read.timestamp_shift, layout.timestamp_shift) << "seed " << seed;
		EXPECT_FALSE(read.is_accepted) << "seed " << seed;

		Scale		accepted = decode_scale(encode_scale(layout) | scale_is_accepted);

		EXPECT_EQ(accepted.epoch_us, layout.epoch_us) << "seed " << seed;
		EXPECT_EQ(accepted.tick_us, layout.tick_us) << "seed " << seed;
		EXPECT_EQ(accepted.timestamp_shift, layout.timestamp_shift) << "seed " << seed;
		EXPECT_TRUE(accepted.is_accepted) << "seed " << seed;
	}
}

TEST(Scale, is_another_one_for_every_tick_or_none)
{
	Layout		layout = layout_of("timestamp:40 sequence:12 epoch:2020-01-01");
	std::vector<int64_t> ticks_us;
	std::map<uint64_t, int64_t> seen;

	for (int64_t unit_us : scale_units_us)
		for (int64_t count = 1; count <= 20000; count++)
			for (int64_t near_us : {-1, 0, 1})
				ticks_us.push_back(count * unit_us + near_us);
	std::sort(ticks_us.begin(), ticks_us.end());
	ticks_us.erase(std::unique(ticks_us.begin(), ticks_us.end()), ticks_us.end());
	for (int64_t tick_us : ticks_us)
	{
		if (tick_us < 1 || tick_us > max_tick_us)
			continue;
		layout.tick_us = tick_us;

		uint64_t	scale = encode_scale(layout);
		bool		is_exact = tick_us <= 4095 || (tick_us % 1000 == 0 && tick_us <= 4095 * 1000) ||
			(tick_us % s_us == 0 && tick_us <= 4095 * s_us);

		ASSERT_EQ(scale != 0, is_exact) << tick_us << " us";
		ASSERT_EQ(has_scale_tick(layout), is_exact) << tick_us << " us";
		if (scale == 0)
			continue;
		ASSERT_EQ(decode_scale(scale).tick_us, tick_us);
		ASSERT_TRUE(seen.emplace(scale, tick_us).second) << tick_us << " us and " << seen[scale] << " us";
	}
	EXPECT_EQ(seen.size(), 4095u + (4095 - 4) + (4095 - 4));
}

TEST(Scale, has_room_for_epochs_before_2248)
{
	Layout		last = layout_of("timestamp:40 sequence:12 epoch:8796093022207");
	Layout		next = layout_of("timestamp:40 sequence:12 epoch:8796093022208");

	EXPECT_TRUE(has_scale_epoch(layout_of("timestamp:40 sequence:12 epoch:2247-12-31T23:59:59.999Z")));
	EXPECT_TRUE(has_scale_epoch(last));
	EXPECT_EQ(decode_scale(encode_scale(last)).epoch_us, last.epoch_us);
	EXPECT_FALSE(decode_scale(encode_scale(last)).is_accepted);
	EXPECT_FALSE(has_scale_epoch(next));
	EXPECT_EQ(encode_scale(next), 0u);
	EXPECT_EQ(encode_scale(layout_of("timestamp:40 sequence:12 epoch:9999-12-31")), 0u);
}

TEST(FirstTickAbove, is_the_first_one_whose_ids_all_lie_above)
{
	int			inside = 0;

	for (uint64_t seed = 1; seed <= 6000; seed++)
	{
		std::mt19937_64 random(seed);
		Layout		old = random_layout(random, nullptr);
		Layout		layout = random_layout(random, &old);
		int64_t		last = static_cast<int64_t>(random() % (static_cast<uint64_t>(old.last_tick()) + 1));
		int64_t		limit_us = tick_begin_us(old, last + 1);

		if (limit_us == INT64_MAX)
			continue;
		if (random() % 3 == 0)
			/* Not in the next one. */
			limit_us += static_cast<int64_t>(random() % static_cast<uint64_t>(old.tick_us));

		int64_t		largest = compose(old, {last, old.max_node(), old.max_sequence()});
		int64_t		first = first_tick_above(decode_scale(encode_scale(old)), limit_us, layout);

		ASSERT_GE(first, 1) << "seed " << seed;
		ASSERT_LE(first, layout.last_tick() + 1) << "seed " << seed;
		ASSERT_LE(compose(layout, {first - 1, 0, 0}), largest) << "seed " << seed;
		if (first <= layout.last_tick())
		{
			ASSERT_GT(compose(layout, {first, 0, 0}), largest) << "seed " << seed;
			inside++;
		}
	}
	EXPECT_GT(inside, 1500);
}

TEST(FirstTickAbove, is_any_where_nothing_was_made)
{
	Layout		layout = layout_of("twitter");

	EXPECT_EQ(first_tick_above(decode_scale(encode_scale(layout)), layout.epoch_us, layout_of("discord")), 0);
	EXPECT_EQ(first_tick_above(decode_scale(encode_scale(layout)), layout.epoch_us + 999, layout_of("discord")), 0);
	EXPECT_EQ(first_tick_above(decode_scale(encode_scale(layout)), 0, layout_of("discord")), 0);
	EXPECT_EQ(first_tick_above(decode_scale(encode_scale(layout)), layout.epoch_us + 1000, layout_of("discord")), 1);
}

TEST(FirstTickAbove, is_none_where_the_tick_is_not_known)
{
	Layout		old = layout_of("timestamp:40 sequence:12 epoch:2020-01-01");
	Layout		layout = layout_of("timestamp:50 sequence:13 tick:1us epoch:0");
	uint64_t	unknown_unit = encode_scale(old) | uint64_t{3} << scale_count_bits;
	uint64_t	no_count = encode_scale(old) & ~scale_mask(scale_count_bits);

	EXPECT_EQ(first_tick_above(decode_scale(unknown_unit), old.epoch_us + 1, layout), layout.last_tick() + 1);
	EXPECT_EQ(first_tick_above(decode_scale(no_count), old.epoch_us + 1, layout), layout.last_tick() + 1);
}

TEST(FirstTickAbove, is_none_where_the_other_layout_was_accepted)
{
	Layout		old = layout_of("twitter epoch:2020-01-01");
	Layout		layout = layout_of("twitter epoch:2015-01-01");

	EXPECT_EQ(first_tick_above(decode_scale(encode_scale(old) | scale_is_accepted), old.epoch_us + 1000, layout),
			  layout.last_tick() + 1);
}

/*
 * The second layout's ids lie below those of the first; it was accepted.  The third
 * one's lie above the second's at once, but they are the first one's of 10 s before.
 */
TEST(FindStart, is_not_found_after_an_accepted_layout_until_the_next_is_accepted)
{
	Layout		first = layout_of("twitter epoch:2020-01-01T00:00:00Z");
	Layout		second = layout_of("twitter epoch:2020-01-02T00:00:00Z");
	Layout		third = layout_of("twitter epoch:2020-01-01T00:00:10Z");
	int64_t		limit_us = second.epoch_us + 86400 * s_us;
	uint64_t	accepted = encode_scale(second) | scale_is_accepted;
	int64_t		start_us = 0;

	EXPECT_FALSE(find_start(encode_scale(first), second, limit_us, limit_us, &start_us));

	EXPECT_TRUE(find_start(accepted, second, limit_us, limit_us + 3600 * s_us, &start_us));
	EXPECT_EQ(start_us, limit_us);
	for (const Layout &next : {first, third})
	{
		EXPECT_TRUE(find_start(encode_scale(second), next, limit_us, limit_us + 3600 * s_us, &start_us));
		EXPECT_FALSE(find_start(accepted, next, limit_us, limit_us + 3600 * s_us, &start_us));
		EXPECT_FALSE(find_start(accepted, next, limit_us, limit_us + 366 * 86400 * s_us, &start_us));
		EXPECT_TRUE(find_start(encode_scale(next) | scale_is_accepted, next, limit_us, limit_us, &start_us));
	}
}

TEST(FindStart, waits_for_an_epoch_that_came_later)
{
	Layout		old = layout_of("twitter epoch:2020-01-01T00:00:00Z");
	Layout		layout = layout_of("twitter epoch:2020-01-01T00:00:15Z");
	int64_t		limit_us = old.epoch_us + 86400 * s_us + 700;
	int64_t		start_us = 0;

	EXPECT_FALSE(find_start(encode_scale(old), layout, limit_us, limit_us, &start_us));
	/* The limit's tick has not ended, so that it holds no id: its beginning, 15 s later, is free. */
	EXPECT_FALSE(find_start(encode_scale(old), layout, limit_us, limit_us - 700 + 15 * s_us - 1000, &start_us));
	EXPECT_TRUE(find_start(encode_scale(old), layout, limit_us, limit_us - 700 + 15 * s_us - 999, &start_us));
	EXPECT_EQ(start_us, limit_us - 700 + 15 * s_us);
}

TEST(FindStart, is_the_limit_on_the_same_scale_or_an_unknown_one)
{
	Layout		old = layout_of("timestamp:41 datacenter:5 worker:5 sequence:12 epoch:2020-01-01");
	Layout		layout = layout_of("timestamp:40 sequence:12 machine:10 epoch:2020-01-01");
	int64_t		start_us = 0;

	EXPECT_TRUE(find_start(encode_scale(old), layout, 1, 2, &start_us));
	EXPECT_EQ(start_us, 1);
	EXPECT_TRUE(find_start(0, layout, 5, 2, &start_us));
	EXPECT_EQ(start_us, 5);
}

TEST(FindStart, is_found_before_the_epoch_where_nothing_was_made)
{
	int64_t		start_us = 0;

	EXPECT_TRUE(find_start(encode_scale(layout_of("twitter")), layout_of("discord"), 0, 0, &start_us));
	EXPECT_EQ(start_us, layout_of("discord").epoch_us);
}

/*
 * A server that is started again and again, with layouts that differ in scale, its
 * clock going either way, crashing after any record.  What is written in which
 * order is what src/postgres/layout_change.cpp does.
 */
TEST(FindStart, lets_no_id_repeat_over_any_changes_of_layout)
{
	int			changes = 0;
	int			refused = 0;

	for (uint64_t seed = 1; seed <= 1500; seed++)
	{
		std::mt19937_64 random(seed);
		Layout		first = random_layout(random, nullptr);
		uint64_t	scale = 0;
		int64_t		limit_us = 0;
		int64_t		clock_us = first.epoch_us +
			static_cast<int64_t>(random() % 100000) * std::min(first.tick_us, s_us);
		std::vector<std::pair<int64_t, int64_t>> made;	/* from, to, of all ids of one claim */

		for (int start = 0; start < 12; start++)
		{
			Layout		layout = start == 0 ? first : random_layout(random, &first);
			int64_t		start_us = 0;

			clock_us += (static_cast<int64_t>(random() % 200) - 90) * s_us / (random() % 3 == 0 ? 1 : 1000);
			if (clock_us < 0)
				break;
			if (!find_start(scale, layout, limit_us, clock_us, &start_us))
			{
				refused++;
				continue;
			}
			/* The clock may go back before the claim reads it. */
			clock_us -= static_cast<int64_t>(random() % 2) * s_us;

			int64_t		tick = std::max({tick_from(layout, std::max(start_us, clock_us)), int64_t{1}});
			int64_t		last = tick + static_cast<int64_t>(random() % 5000);

			if (last > layout.last_tick() || clock_us < layout.epoch_us ||
				tick_begin_us(layout, last + 1) > INT64_MAX / 2)
				continue;
			if (scale != encode_scale(layout))
			{
				changes += scale != 0;
				if (scale != 0)
					limit_us = std::max(limit_us, tick_begin_us(layout, tick));
				if (random() % 4 == 0)
					continue;	/* crashed here */
				scale = encode_scale(layout);
				if (random() % 4 == 0)
					continue;	/* or here */
			}
			limit_us = std::max(limit_us, tick_begin_us(layout, last + 1) + static_cast<int64_t>(random() % 3));
			made.push_back({compose(layout, {tick, 0, 0}),
							compose(layout, {last, layout.max_node(), layout.max_sequence()})});
		}
		std::sort(made.begin(), made.end());
		for (size_t i = 1; i < made.size(); i++)
			ASSERT_GT(made[i].first, made[i - 1].second) << "seed " << seed;
	}
	EXPECT_GT(changes, 300);
	EXPECT_GT(refused, 300);
}

}  // namespace
