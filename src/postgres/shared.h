/*
 * shared.h
 *		What all backends of the server share.
 */
#ifndef SNOWFLAKE_POSTGRES_SHARED_H
#define SNOWFLAKE_POSTGRES_SHARED_H

#include <atomic>
#include <cstdint>

#include "core/generator.h"

namespace snowflake __attribute__((visibility("hidden")))
{

using Atomic64 = std::atomic<uint64_t>;

/* In shared memory an atomic is sound only where it needs no lock of the process's own. */
static_assert(Atomic64::is_always_lock_free);

/*
 * One backend's counters, on a cache line of their own, so that counting costs
 * the others nothing.  Only their backend writes them; the next one with its
 * number goes on counting.
 */
struct alignas(64) BackendCounters
{
	Atomic64	ids;
	Atomic64	waits;
	Atomic64	wait_ns;
	Atomic64	errors;
};

/* Sums over all backends. */
struct Counters
{
	uint64_t	ids;
	uint64_t	waits;
	uint64_t	wait_ns;
	uint64_t	errors;
};

struct Shared
{
	SharedState<Atomic64> generator;

	/* snowflake.clock = monotonic: what CLOCK_BOOTTIME is added to, as int64_t, ns */
	Atomic64	clock_anchor_ns;

	/* When the log is next told that the layout's time ends within a year; as int64_t, Unix microseconds */
	Atomic64	next_end_warning_us;

	/* Protected by the lock: the counters' sums when they were reset, and when that was (TimestampTz) */
	Counters	reset_counters;
	int64_t		reset_at;

	int			backend_count;
	BackendCounters backends[];
};

/* Asks for shared memory and the lock; called while the library is preloaded. */
void		request_shared();

/* Null where the library was not preloaded. */
Shared	   *shared();

/* The lock that SharedState speaks of; it also protects resetting the counters. */
void		lock_shared();
void		unlock_shared();

}  // namespace snowflake

#endif
