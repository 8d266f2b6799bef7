/*
 * shared.cpp
 *		Makes and finds the shared memory of shared.h.
 */
#include <sys/mman.h>

#include "postgres/shared.h"

#include "postgres/clock.h"

#include "postgres/pg.h"

namespace snowflake
{

namespace
{

constexpr const char *shared_name = "snowflake";

Shared	   *state;
LWLock	   *lock;

/*
 * The memory of the postmaster's whole life.  It is no part of PostgreSQL's shared
 * memory, which is made anew when a process has crashed.  No process that issued
 * ids is left then, and all that they issued lies below the limit in the WAL: so a
 * server that goes on under its old claim repeats nothing.  A record that a crash
 * has left half written is told by its checksum, and counts for nothing.
 */
struct KeptGrant
{
	char		nonce[nonce_digits + 1];
	bool		is_usable;
	Grant		grant;
	LostGrants	lost;
	uint32		checksum;		/* of what is before it */
};

KeptGrant  *kept;

/*
 * What is known of the clock goes over a crash, too: nobody has set it meanwhile, as far as this server knows, so a
 * clock that was not believed is none that now may be.  The postmaster reads it from the memory that it is about to
 * give up.
 */
struct KeptClock
{
	bool		is_known;
	uint64_t	anchor_ns;
	uint64_t	believed_offset;
	uint64_t	greatest_offset;
};

KeptClock	kept_clock;

shmem_request_hook_type previous_request_hook;
shmem_startup_hook_type previous_startup_hook;

uint32
checksum_of(const KeptGrant &record)
{
	return hash_bytes(reinterpret_cast<const unsigned char *>(&record), offsetof(KeptGrant, checksum));
}

void
keep(const RegistryGrant &grant)
{
	KeptGrant	record;

	/* Padding counts as well. */
	memset(static_cast<void *>(&record), 0, sizeof(record));
	memcpy(record.nonce, grant.nonce, sizeof(record.nonce));
	record.is_usable = grant.is_usable;
	record.grant = grant.grant;
	record.lost = grant.lost;
	record.checksum = checksum_of(record);
	memcpy(static_cast<void *>(kept), &record, sizeof(record));
}

/* Called when PostgreSQL's shared memory ends, while it is still there. */
void
keep_clock(int, Datum)
{
	const ClockHistory<Atomic64> &clock = state->generator.clock;

	kept_clock = {true, state->clock_anchor_ns.load(), clock.believed_offset.load(), clock.greatest_offset.load()};
}

/* The counters come after Shared, and the places after them. */
Size
places_offset()
{
	return add_size(sizeof(Shared), mul_size(MaxBackends, sizeof(BackendCounters)));
}

Size
shared_size()
{
	return add_size(places_offset(), mul_size(MaxBackends, sizeof(Place<Atomic64>)));
}

void
initialize(Shared *fresh)
{
	memset(static_cast<void *>(fresh), 0, shared_size());
	fresh->generator.initialize();
	if (kept_clock.is_known)
	{
		fresh->clock_anchor_ns.store(kept_clock.anchor_ns);
		fresh->generator.clock.greatest_offset.store(kept_clock.greatest_offset);
		fresh->generator.clock.believed_offset.store(kept_clock.believed_offset);
	}
	else
		fresh->clock_anchor_ns.store(static_cast<uint64_t>(read_wall_clock().offset_ns));
	fresh->reset_at = GetCurrentTimestamp();
	fresh->backend_count = MaxBackends;
	fresh->registry.since = fresh->reset_at;
	if (kept->nonce[0] == '\0' || kept->checksum != checksum_of(*kept))
	{
		/* A server that starts again is another holder: what it held before may have been granted to others. */
		draw_nonce(fresh->registry.nonce, FATAL);
		keep(fresh->registry);
		return;
	}
	memcpy(fresh->registry.nonce, kept->nonce, sizeof(kept->nonce));
	fresh->registry.is_usable = kept->is_usable;
	fresh->registry.grant = kept->grant;
	fresh->registry.lost = kept->lost;
	if (kept->is_usable)
		fresh->registry.state = ClaimState::held;
}

void
request()
{
	if (previous_request_hook)
		previous_request_hook();
	RequestAddinShmemSpace(shared_size());
	RequestNamedLWLockTranche(shared_name, 1);
}

void
startup()
{
	bool		found;

	if (previous_startup_hook)
		previous_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	state = static_cast<Shared *>(ShmemInitStruct(shared_name, shared_size(), &found));
	if (!found)
	{
		initialize(state);
		on_shmem_exit(keep_clock, 0);
	}
	lock = &GetNamedLWLockTranche(shared_name)->lock;
	LWLockRelease(AddinShmemInitLock);
}

}  // namespace

void
draw_nonce(char *nonce, int error_level)
{
	uint8		bytes[nonce_digits / 2];

	if (!pg_strong_random(bytes, sizeof(bytes)))
		ereport(error_level,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate a random nonce for this server's snowflake claims")));
	nonce[hex_encode(reinterpret_cast<char *>(bytes), sizeof(bytes), nonce)] = '\0';
}

void
keep_grant()
{
	keep(state->registry);
}

void
request_shared()
{
	void	   *memory = mmap(nullptr, sizeof(KeptGrant), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		ereport(FATAL, (errcode_for_file_access(), errmsg("could not map shared memory for snowflake: %m")));
	kept = static_cast<KeptGrant *>(memory);
	previous_request_hook = shmem_request_hook;
	shmem_request_hook = request;
	previous_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup;
}

Shared *
shared()
{
	return state;
}

Queue<Atomic64>::Places
queue_places()
{
	void	   *places = reinterpret_cast<char *>(state) + places_offset();

	return {static_cast<Place<Atomic64> *>(places), static_cast<size_t>(state->backend_count)};
}

void
lock_shared_state()
{
	LWLockAcquire(lock, LW_EXCLUSIVE);
}

void
unlock_shared_state()
{
	LWLockRelease(lock);
}

}  // namespace snowflake
