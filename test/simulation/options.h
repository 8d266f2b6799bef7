/*
 * options.h
 *		What both simulations are asked for: which histories, and whether to tell
 *		what happens.
 */
#ifndef SNOWFLAKE_SIMULATION_OPTIONS_H
#define SNOWFLAKE_SIMULATION_OPTIONS_H

#include <cstring>

#include "world.h"

namespace snowflake::simulation
{

/* Successive seeds. */
struct Seeds
{
	uint64_t	first;
	uint64_t	count;
};

[[noreturn]] inline void
usage() noexcept
{
	fprintf(stderr, "usage: %s [--histories N] [--first SEED] | --seed SEED\n", world.program);
	exit(2);
}

/* Reads them from the command line; a single seed is traced. */
inline Seeds
parse_options(int argc, char **argv, uint64_t default_count) noexcept
{
	Seeds		seeds = {1, default_count};

	for (int i = 1; i < argc; i += 2)
	{
		char	   *end;

		if (i + 1 == argc)
			usage();

		uint64_t	value = strtoull(argv[i + 1], &end, 10);

		if (*end != '\0')
			usage();
		if (strcmp(argv[i], "--histories") == 0)
			seeds.count = value;
		else if (strcmp(argv[i], "--first") == 0)
			seeds.first = value;
		else if (strcmp(argv[i], "--seed") == 0)
		{
			seeds = {value, 1};
			world.tracing = true;
		}
		else
			usage();
	}
	return seeds;
}

}  // namespace snowflake::simulation

#endif
