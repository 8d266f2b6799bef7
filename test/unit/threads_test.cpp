/*
 * threads_test.cpp
 *		Many backends at a time, as threads, while the clock jumps.
 *
 * The numbers of ids are fixed, the interleaving is not; ThreadSanitizer watches.
 */
#include <thread>

#include "fake_environment.h"

using namespace snowflake;

namespace
{

constexpr int thread_count = 8;
constexpr int64_t ids_per_thread = 4000;
constexpr int64_t drift_ms = 5;

/* A backend that takes ids, and what it was given. */
struct Worker
{
	Worker(FakeServer &server, const Layout &layout, int number, int64_t most_ahead_us) :
		backend(server, layout), random(static_cast<uint64_t>(number))
	{
		backend.options.max_drift_us = most_ahead_us;
		backend.options.max_wait_ns = 20 * ns_per_ms;
		backend.options.reserve_ahead_us = 10 * us_per_ms;
		backend.options.sequence_start = static_cast<SequenceStart>(number % 3);
		backend.apply();
	}

	Backend		backend;
	std::mt19937_64 random;
	std::vector<int64_t> ids;
};

/* Appends the ids that a call was given, and returns the last. */
int64_t
keep_ids(const Layout &layout, const Taken &taken, std::vector<int64_t> *ids)
{
	int64_t		id = taken.id;

	for (int64_t i = 0; i < taken.count; i++, id = next_in_tick(layout, id))
		ids->push_back(id);
	return ids->back();
}

class Threads : public testing::Test
{
protected:
	Threads()
	{
		server.set_wall_us(layout.epoch_us + 1000 * us_per_ms);
		right_ns = server.offset_ns;
	}

	/* Takes ids and checks each. */
	void work(Worker &worker)
	{
		while (static_cast<int64_t>(worker.ids.size()) < ids_per_thread)
		{
			if (worker.random() % 8 == 0)
				set_clock(worker);

			int64_t		before = newest_returned;
			Taken		taken = worker.backend.take(worker.random() % 4 == 0 ? 3 : 1);

			if (taken.failure != Failure::none)
			{
				ASSERT_EQ(taken.count, 0);
				failures++;
				/* Time goes on for those that do not wait, too. */
				server.boot_ns += ns_per_ms;
				continue;
			}

			/* I2, I3, I4 */
			ASSERT_GT(taken.id, before);
			ASSERT_TRUE(limit_goes_back || tick_begin_us(layout, taken.tick + 1) <= server.durable_us);
			ASSERT_LE(taken.tick, tick_at(layout, taken.now_ns / ns_per_us) + drift_ms);

			const int64_t last = keep_ids(layout, taken, &worker.ids);

			while (before < last && !newest_returned.compare_exchange_weak(before, last))
				;
			if (worker.random() % 500 == 0)
				worker.backend.generator.advance_past(taken.tick + static_cast<int64_t>(worker.random() % 8));
			if (limit_goes_back && worker.random() % 100 == 0)
				worker.backend.generator.set_reserved_until(
					tick_begin_us(layout, taken.tick + static_cast<int64_t>(worker.random() % 8)));
		}
	}

	/* Somebody sets the clock: mostly right, and never far ahead where the limit is set, which then believes it. */
	void set_clock(Worker &worker)
	{
		const int64_t far_ahead_ns = limit_goes_back ? 0 : 10 * year_us * ns_per_us;
		const int64_t jumps_ns[] = {0, 0, 0, 0, -ns_per_ms, -3 * ns_per_ms, -8 * ns_per_ms, -40 * ns_per_ms,
									2 * ns_per_ms,
									-10 * ns_per_s, far_ahead_ns};

		server.offset_ns = right_ns + jumps_ns[worker.random() % std::size(jumps_ns)];
	}

	void run()
	{
		std::vector<std::unique_ptr<Worker>> workers;
		std::vector<std::thread> threads;

		for (int i = 0; i < thread_count; i++)
			workers.push_back(std::make_unique<Worker>(server, layout, i, drift_ms * us_per_ms));
		/* One id, so that there is something to compare a jump with. */
		ASSERT_EQ(workers[0]->backend.take().failure, Failure::none);
		for (auto &worker : workers)
			threads.emplace_back([this, &worker] { work(*worker); });
		for (std::thread &thread : threads)
			thread.join();

		/* The clock was wrong often enough. */
		EXPECT_GT(failures, 100);

		std::vector<int64_t> all;

		for (auto &worker : workers)
		{
			EXPECT_TRUE(std::is_sorted(worker->ids.begin(), worker->ids.end()));
			all.insert(all.end(), worker->ids.begin(), worker->ids.end());
		}
		EXPECT_GE(all.size(), static_cast<size_t>(thread_count * ids_per_thread));

		/* I1 */
		std::sort(all.begin(), all.end());
		EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
	}

	Layout		layout = layout_of("timestamp:41 node:10 sequence:4 epoch:2025-01-01");
	FakeServer	server;
	int64_t		right_ns = 0;
	bool		limit_goes_back = false;
	std::atomic<int64_t> newest_returned{0};
	std::atomic<int64_t> failures{0};
};

TEST_F(Threads, get_ids_that_differ_and_ascend_while_the_clock_jumps)
{
	run();
}

TEST_F(Threads, get_ids_that_differ_and_ascend_while_the_limit_is_set)
{
	limit_goes_back = true;
	run();
}

/*
 * The same with a keeper, which extends what is granted, takes it back, and has
 * another grant: of another node, or of the same one, from where nothing more was issued.
 */
class KeeperThreads : public testing::Test
{
protected:
	/* What was granted, ticks. */
	struct Granted
	{
		uint64_t	node;
		int64_t		from;
		int64_t		until;
	};

	KeeperThreads()
	{
		server.set_wall_us(layout.epoch_us + 1000 * us_per_ms);
		server.is_granted = false;
	}

	int64_t now_tick() const
	{
		return tick_at(layout, server.wall_ns() / ns_per_us);
	}

	void work(Worker &worker)
	{
		int64_t		newest = 0;

		while (static_cast<int64_t>(worker.ids.size()) < ids_per_thread)
		{
			Taken		taken = worker.backend.take(worker.random() % 4 == 0 ? 3 : 1);

			if (worker.random() % 4 == 0)
				server.boot_ns += worker.random() % ns_per_ms;
			if (taken.failure == Failure::ungranted)
				refused++;
			if (taken.failure != Failure::none)
			{
				server.boot_ns += ns_per_ms;
				std::this_thread::yield();
				continue;
			}
			ASSERT_GT(taken.id, newest);
			ASSERT_LE(tick_begin_us(layout, taken.tick + 1), server.durable_us);
			newest = keep_ids(layout, taken, &worker.ids);
			if (worker.random() % 200 == 0)
			{
				taken = worker.backend.generator.advance_past(taken.tick + static_cast<int64_t>(worker.random() % 8));
				ASSERT_TRUE(taken.failure == Failure::none || taken.failure == Failure::ungranted ||
							taken.failure == Failure::past_grant);
			}
		}
	}

	/* Lets claims be taken from a new grant. */
	void grant(uint64_t node, int64_t from, int64_t until)
	{
		std::lock_guard guard(server.mutex);

		granted.push_back({node, from, until});
		server.node = node;
		server.granted_from_us = tick_begin_us(layout, from);
		server.granted_until_us = tick_begin_us(layout, until);
		server.is_granted = true;
	}

	void keep(Backend &keeper, std::mt19937_64 &random)
	{
		auto		up_to = [&] (int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random); };

		while (!is_over)
		{
			if (granted.empty() || up_to(3) == 0)
			{
				{
					std::lock_guard guard(server.mutex);

					server.is_granted = false;
				}

				int64_t		end_us = keeper.generator.revoke();

				/* What was issued is known now, to the tick: the next holder may begin there. */
				if (!granted.empty())
					granted.back().until = end_us == 0 ? 0 : std::min(granted.back().until, tick_at(layout, end_us));
				grant(up_to(1) == 0 ? server.node : static_cast<uint64_t>(up_to(3)),
					  end_us == 0 ? 0 : tick_at(layout, end_us), now_tick() + up_to(20));
			}
			else
			{
				int64_t		until = std::max(granted.back().until, now_tick() + up_to(20));

				{
					std::lock_guard guard(server.mutex);

					granted.back().until = until;
					server.granted_until_us = tick_begin_us(layout, until);
				}
				keeper.generator.extend(tick_begin_us(layout, until));
			}
			std::this_thread::yield();
		}
	}

	Layout		layout = layout_of("timestamp:41 node:10 sequence:4 epoch:2025-01-01");
	FakeServer	server;
	std::vector<Granted> granted;	/* the keeper's own */
	std::atomic<bool> is_over{false};
	std::atomic<int64_t> refused{0};
};

TEST_F(KeeperThreads, issue_only_what_is_granted_and_nothing_twice)
{
	std::vector<std::unique_ptr<Worker>> workers;
	std::vector<std::thread> threads;
	Backend		keeper(server, layout);
	std::mt19937_64 random(1);
	std::vector<int64_t> all;

	for (int i = 0; i < thread_count; i++)
		workers.push_back(std::make_unique<Worker>(server, layout, i, i % 2 * drift_ms * us_per_ms));
	/* The last one is the keeper. */
	for (size_t i = 0; i <= workers.size(); i++)
		threads.emplace_back([&, i] { i < workers.size() ? work(*workers[i]) : keep(keeper, random); });
	for (size_t i = 0; i <= workers.size(); i++)
	{
		is_over = i == workers.size();
		threads[i].join();
	}

	for (auto &worker : workers)
		all.insert(all.end(), worker->ids.begin(), worker->ids.end());
	EXPECT_GE(all.size(), static_cast<size_t>(thread_count * ids_per_thread));
	std::sort(all.begin(), all.end());
	EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());

	/* There was something to see. */
	EXPECT_GT(refused, 0);
	EXPECT_GT(granted.size(), 10u);
	for (int64_t id : all)
	{
		const Parts parts = take_apart(layout, id);

		ASSERT_TRUE(std::any_of(granted.begin(), granted.end(), [&] (const Granted &grant)
								{ return grant.node == parts.node &&
									parts.tick >= grant.from && parts.tick < grant.until; }))
			<< "node " << parts.node << ", tick " << parts.tick;
	}
}

}  // namespace
