/*
 * simulate.cpp
 *		Runs random histories of a simulated server, each from a seed of its own.
 *
 *		simulate [--histories N] [--first SEED]		successive seeds
 *		simulate --seed SEED						one, and tells what happens
 *
 * The first history in which something does not hold ends it, with its seed.
 */
#include <chrono>

#include "history.h"
#include "options.h"

using namespace snowflake::simulation;

namespace
{

/* Too large for the stack. */
History		history;

}  // namespace

int
main(int argc, char **argv)
{
	const auto [first, histories] = parse_options(argc, argv, 1000000);
	auto		start = std::chrono::steady_clock::now();

	for (uint64_t i = 0; i < histories; i++)
		history.run(first + i);

	std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
	const Coverage &c = coverage;

	printf("%" PRIu64 " histories from seed %" PRIu64 " in %.1f s: nothing broken\n",
		   histories, first, seconds.count());
	printf("%" PRId64 " ids; refused:", c.ids);
	for (int i = 1; i < failure_count; i++)
		printf(" %" PRId64 " %s%s", c.failures[i], failure_names[i], i + 1 < failure_count ? "," : "\n");
	printf("%" PRId64 " crashes, %" PRId64 " restarts, %" PRId64 " promotions, "
		   "%" PRId64 " of standbys that lag; %" PRId64 " leaps of the clock; "
		   "%" PRId64 " limits set, %" PRId64 " advances\n",
		   c.crashes, c.restarts, c.promotions, c.late_promotions, c.leaps, c.limits_set, c.advances);
	return 0;
}
