/*
 * shared.h
 *		What all backends of the server share, in memory that is made while the library is
 *		preloaded: atomics, and what lock_shared_state() protects (see each member).
 */
#ifndef SNOWFLAKE_POSTGRES_SHARED_H
#define SNOWFLAKE_POSTGRES_SHARED_H

#include <atomic>
#include <cstdint>

#include "core/claim.h"
#include "core/generator.h"

struct Latch;

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

/* What the registry grants.  The keeper alone writes it; the lock protects it. */
struct RegistryGrant
{
	char		nonce[nonce_digits + 1];	/* drawn when the server starts; see keep_grant() */

	ClaimState	state;
	int64_t		since;			/* of the state, TimestampTz */

	/* Claims may be taken from the grant; where not, it is the last one that there was. */
	bool		is_usable;
	Grant		grant;

	/* What the registry is still to be told of */
	LostGrants	lost;

	/* What keeps the registry from granting (more), for an error; empty: nothing that the keeper knows of. */
	char		problem[512];
};

struct Shared
{
	SharedState<Atomic64> generator;

	RegistryGrant registry;

	/*
	 * Up to where calls need more time than is granted; the keeper takes it.  As
	 * int64_t, Unix microseconds; 0: no further.
	 */
	Atomic64	demanded_until_us;

	/* The keeper's latch, null while there is none; set by whoever needs more time than is granted. */
	std::atomic<Latch *> keeper_latch;

	/* snowflake.clock = monotonic: what CLOCK_BOOTTIME is added to, as int64_t, ns */
	Atomic64	clock_anchor_ns;

	/* The longest wait of a call, for snowflake_stat */
	Atomic64	longest_wait_ns;

	/*
	 * While limit and scale of a change of layout are being written: where ids of
	 * the new layout start, as int64_t, Unix microseconds; written under the lock.
	 */
	Atomic64	layout_start_us;

	/* Protected by the lock: the limit came from a database that pg_upgrade has brought, since this server started. */
	bool		is_limit_upgraded;

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

/* The backends' places in the generator's queue, by their numbers; in shared memory. */
Queue<Atomic64>::Places queue_places();

/*
 * Keeps the nonce and the grant, as they are in Shared, over a crash of this
 * server's processes: the postmaster then makes Shared anew, and the server is
 * still the holder that it was.  Under the lock.
 */
void		keep_grant();

/* Draws a nonce for a Holder; an error at this level where there is no randomness. */
void		draw_nonce(char *nonce, int error_level);

/* The lock that SharedState speaks of; it also protects resetting the counters. */
void		lock_shared_state();
void		unlock_shared_state();

}  // namespace snowflake

#endif
