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

class Threads : public testing::Test
{
protected:
	struct Worker
	{
		Worker(FakeServer &server, const Layout &layout, int number) : backend(server, layout), random(number)
		{
			backend.options.max_drift_us = drift_ms * us_per_ms;
			backend.options.max_wait_ns = 20 * ns_per_ms;
			backend.options.reserve_ahead_us = 10 * us_per_ms;
			backend.options.max_forward_jump_ns = 3600 * ns_per_s;
			backend.options.sequence_start = static_cast<SequenceStart>(number % 3);
			backend.apply();
		}

		Backend		backend;
		std::mt19937_64 random;
		std::vector<uint64_t> steps;
	};

	Threads()
	{
		server.set_wall_us(layout.epoch_us + 1000 * us_per_ms);
		right_ns = server.offset_ns;
	}

	/* Takes ids and checks each. */
	void work(Worker &worker)
	{
		while (static_cast<int64_t>(worker.steps.size()) < ids_per_thread)
		{
			if (worker.random() % 8 == 0)
				set_clock(worker);

			uint64_t	before = newest_returned;
			Taken		taken = worker.backend.take(worker.random() % 4 == 0 ? 3 : 1);

			if (taken.failure != Failure::none)
			{
				ASSERT_EQ(taken.count, 0);
				failures++;
				/* Time goes on for those that do not wait, too. */
				server.boot_ns += ns_per_ms;
				continue;
			}

			uint64_t	last = taken.first_step + static_cast<uint64_t>(taken.count) - 1;

			/* I2, I3, I4 */
			ASSERT_GT(taken.first_step, before);
			ASSERT_TRUE(limit_goes_back || tick_begin_us(layout, taken.tick + 1) <= server.durable_us);
			ASSERT_LE(taken.tick, tick_at(layout, taken.now_ns / ns_per_us) + drift_ms);

			for (uint64_t step = taken.first_step; step <= last; step++)
				worker.steps.push_back(step);
			while (before < last && !newest_returned.compare_exchange_weak(before, last))
				;
			if (worker.random() % 500 == 0)
				worker.backend.generator.advance_past(taken.tick + static_cast<int64_t>(worker.random() % 8));
			if (limit_goes_back && worker.random() % 100 == 0)
				worker.backend.generator.set_limit(tick_begin_us(layout, taken.tick + static_cast<int64_t>(worker.random() % 8)));
		}
	}

	/* Somebody sets the clock: mostly right, and never far ahead where the limit is set, which then believes it. */
	void set_clock(Worker &worker)
	{
		const int64_t far_ahead_ns = limit_goes_back ? 0 : 10 * year_us * ns_per_us;
		const int64_t jumps_ns[] = {0, 0, 0, 0, -ns_per_ms, -3 * ns_per_ms, -8 * ns_per_ms, -40 * ns_per_ms, 2 * ns_per_ms,
									-10 * ns_per_s, far_ahead_ns};

		server.offset_ns = right_ns + jumps_ns[worker.random() % std::size(jumps_ns)];
	}

	void run()
	{
		std::vector<std::unique_ptr<Worker>> workers;
		std::vector<std::thread> threads;

		for (int i = 0; i < thread_count; i++)
			workers.push_back(std::make_unique<Worker>(server, layout, i));
		/* One id, so that there is something to compare a jump with. */
		ASSERT_EQ(workers[0]->backend.take().failure, Failure::none);
		for (auto &worker : workers)
			threads.emplace_back([this, &worker] { work(*worker); });
		for (std::thread &thread : threads)
			thread.join();

		/* The clock was wrong often enough. */
		EXPECT_GT(failures, 100);

		std::vector<uint64_t> all;

		for (auto &worker : workers)
		{
			EXPECT_TRUE(std::is_sorted(worker->steps.begin(), worker->steps.end()));
			all.insert(all.end(), worker->steps.begin(), worker->steps.end());
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
	std::atomic<uint64_t> newest_returned{0};
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

}  // namespace
