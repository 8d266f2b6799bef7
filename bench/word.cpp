/*
 * word.cpp
 *		What the least costs that an id needs: a look at how old the last reading of the clock is, and a swap of the
 *		one word that all share.
 *
 *     word THREADS
 *
 * prints the nanoseconds of the look; of a swap by one thread; and of a swap by so many threads, of all together.
 */
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace
{

/* As in shared memory: nothing else is near it. */
struct alignas(128) Word
{
	std::atomic<uint64_t> value{0};
};

Word		word;
volatile uint64_t sink;

/* As postgres/clock.h has it. */
uint64_t
cycles()
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t	count;

	asm volatile("mrs %0, cntvct_el0" : "=r"(count));
	return count;
#else
	return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

void
look()
{
	sink = cycles();
}

void
swap()
{
	uint64_t	old = word.value.load(std::memory_order_acquire);

	while (!word.value.compare_exchange_weak(old, old + 1, std::memory_order_acq_rel, std::memory_order_relaxed))
		;
}

/* Nanoseconds of one of so many calls by each of these threads, of all together. */
double
nanoseconds(void (*call)(), int threads, int calls)
{
	std::vector<std::thread> running;
	auto		start = std::chrono::steady_clock::now();

	for (int i = 0; i < threads; i++)
		running.emplace_back([=] {
			for (int n = 0; n < calls; n++)
				call();
		});
	for (std::thread &thread : running)
		thread.join();
	return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / threads / calls;
}

}  // namespace

int
main(int argc, char **argv)
{
	int			threads = argc == 2 ? atoi(argv[1]) : 0;

	if (threads < 1)
	{
		fprintf(stderr, "usage: %s THREADS\n", argv[0]);
		return 2;
	}
	printf("%.1f %.1f %.1f\n", nanoseconds(look, 1, 20000000), nanoseconds(swap, 1, 20000000), nanoseconds(swap, threads, 20000000 / threads));
}
