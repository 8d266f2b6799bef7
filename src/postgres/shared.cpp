/*
 * shared.cpp
 *		What all backends of the server share.
 */
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

shmem_request_hook_type previous_request_hook;
shmem_startup_hook_type previous_startup_hook;

Size
shared_size()
{
	return add_size(sizeof(Shared), mul_size(MaxBackends, sizeof(BackendCounters)));
}

void
initialize(Shared *fresh)
{
	memset(static_cast<void *>(fresh), 0, shared_size());
	fresh->generator.initialize();
	fresh->clock_anchor_ns.store(static_cast<uint64_t>(read_wall_clock().offset_ns));
	fresh->reset_at = GetCurrentTimestamp();
	fresh->backend_count = MaxBackends;
	/* A server that starts again is another holder: what it held before may have been granted to others. */
	draw_nonce(fresh->registry.nonce, FATAL);
	fresh->registry.since = fresh->reset_at;
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
		initialize(state);
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
				(errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random nonce for this server's snowflake claims")));
	nonce[hex_encode(reinterpret_cast<char *>(bytes), sizeof(bytes), nonce)] = '\0';
}

void
request_shared()
{
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

void
lock_shared()
{
	LWLockAcquire(lock, LW_EXCLUSIVE);
}

void
unlock_shared()
{
	LWLockRelease(lock);
}

}  // namespace snowflake
