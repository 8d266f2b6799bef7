/*
 * generator_test.h
 *		The generator with a clock that the test drives.
 *
 * Times are relative to the epoch of the layout, in ticks of 1 ms with 4 ids
 * each, unless a test says otherwise.  What may happen in any order is left to
 * the simulation; here is what it looks like from one caller's place.
 */
#ifndef SNOWFLAKE_TEST_GENERATOR_TEST_H
#define SNOWFLAKE_TEST_GENERATOR_TEST_H

#include "fake_environment.h"

namespace snowflake
{

inline constexpr int64_t tick = us_per_ms;

class GeneratorTest : public testing::Test
{
protected:
	GeneratorTest()
	{
		at(1000);
	}

	/* Sets the clock to a tick, and a part of it in us. */
	void at(int64_t tick_number, int64_t us = 0)
	{
		server.set_wall_us(layout.epoch_us + tick_number * layout.tick_us + us);
	}

	/* The same time goes by on all clocks. */
	void pass_us(int64_t us)
	{
		server.boot_ns += us * ns_per_us;
	}

	void use_layout(const char *spec)
	{
		layout = layout_of(spec);
		backend = std::make_unique<Backend>(server, layout);
	}

	/* An id's place: tick, and sequence within it. */
	using Place = std::pair<int64_t, int64_t>;

	/* Takes one id, which must be had; (-1, failure) where it is not. */
	Place take(Backend &from)
	{
		Taken		taken = from.take();

		if (taken.failure != Failure::none)
			return {-1, static_cast<int64_t>(taken.failure)};
		EXPECT_EQ(taken.count, 1);

		const Parts parts = take_apart(layout, taken.id);

		EXPECT_EQ(parts.node, server.node);
		EXPECT_EQ(parts.tick, taken.tick);
		/* I3 */
		EXPECT_LE(tick_begin_us(layout, taken.tick + 1), server.durable_us);
		return {parts.tick, static_cast<int64_t>(parts.sequence)};
	}
	Place take()
	{
		return take(*backend);
	}

	/* What the registry grants from now on, to whoever takes a claim: ticks. */
	void grant(int64_t from, int64_t until)
	{
		server.is_granted = true;
		server.granted_from_us = us_of(from);
		server.granted_until_us = us_of(until);
	}

	/* Takes it back, as the keeper does. */
	int64_t revoke(Backend &keeper)
	{
		server.is_granted = false;
		return keeper.generator.revoke();
	}
	int64_t revoke()
	{
		return revoke(*backend);
	}

	/* The first id's tick begins at or after the clock: gets that over with. */
	void start_at(int64_t tick_number)
	{
		at(tick_number);
		EXPECT_EQ(take(), Place(tick_number, 0));
	}

	/* So many calls of others have come before, and wait for another 100 ms. */
	void come_before(size_t count)
	{
		for (size_t i = 0; i < count; i++)
		{
			auto		&place = server.places[server.places.size() - 1 - i];

			place.since = 1;
			place.until = static_cast<uint64_t>(server.boot_ns.load() + 100 * ns_per_ms);
		}
		server.state.queue.length = count + 1;
	}

	Failure failure_of(const Taken &taken)
	{
		EXPECT_TRUE(taken.failure == Failure::none || taken.count == 0);
		return taken.failure;
	}

	int64_t us_of(int64_t tick_number) const
	{
		return tick_begin_us(layout, tick_number);
	}

	uint64_t counter(const std::atomic<uint64_t> &value) const
	{
		return value;
	}

	Layout		layout = layout_of("timestamp:41 node:10 sequence:2 epoch:2025-01-01");
	FakeServer	server;
	std::unique_ptr<Backend> backend = std::make_unique<Backend>(server, layout);
	std::vector<int64_t> &waits()
	{
		return backend->environment.waits;
	}
	Options    &options()
	{
		return backend->options;
	}
};

}  // namespace snowflake

using namespace snowflake;

#endif
