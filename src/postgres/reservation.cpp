/*
 * reservation.cpp
 *		The durable limit and the scale that it was made on: PostgreSQL's WAL as
 *		the store of a static node's claim.
 *
 * The WAL is flushed up to XactLastRecEnd, the end of the record just written.
 * Not GetXLogInsertRecPtr(): at a page's end that points past the next page's
 * header, which was not written.
 */
#include <algorithm>
#include <initializer_list>

#include "postgres/reservation.h"

#include "postgres/pg.h"

namespace snowflake
{

namespace
{

/* A wait for a standby looks whether it is done after pauses that double; nobody wakes it. */
constexpr long first_standby_pause_ms = 1;
constexpr long longest_standby_pause_ms = 50;

void
explain_context(void *)
{
	errcontext("reserving time for snowflake ids in replication origins %u and %u",
			   static_cast<unsigned>(limit_origin), static_cast<unsigned>(scale_origin));
	/* PostgreSQL's own hint knows of this server alone. */
	if (geterrcode() == ERRCODE_CONFIGURATION_LIMIT_EXCEEDED)
		errhint("Increase \"%s\" here and on every standby, the standbys first, and restart them.",
				max_origins_setting);
}

/* Writes the WAL record of an origin's progress; returns the position up to which the WAL is to be flushed. */
uint64_t
log_progress(uint16_t origin, uint64_t value, bool backwards)
{
	ErrorContextCallback context = {error_context_stack, explain_context, nullptr};

	error_context_stack = &context;
	replorigin_advance(origin, static_cast<XLogRecPtr>(value), InvalidXLogRecPtr, backwards, true);
	error_context_stack = context.previous;
	return XactLastRecEnd;
}

uint64_t
read_progress(uint16_t origin)
{
	return max_origins() == 0 ? 0 : replorigin_get_progress(origin, false);
}

/* Has the synchronous standbys' flushed WAL reached the position?  True where there are none. */
bool
flushed_on_standbys(XLogRecPtr position)
{
	if (max_wal_senders == 0)
		return true;

	const bool	has_flags = synchronous_standbys_have_flags();

	LWLockAcquire(SyncRepLock, LW_SHARED);

	bool		done = !synchronous_standbys_defined(has_flags) || WalSndCtl->lsn[SYNC_REP_WAIT_FLUSH] >= position;

	LWLockRelease(SyncRepLock);
	return done;
}

/* An origin of ours that has a name; false where there is none.  PostgreSQL numbers origins from 1 up. */
bool
find_named_origin(uint16_t *found, char **owner)
{
	for (uint16_t origin : {limit_origin, scale_origin})
	{
		*found = origin;
		if (replorigin_by_oid(origin, true, owner))
			return true;
	}
	return false;
}

}  // namespace

int64_t
read_limit()
{
	int64_t		limit_us = static_cast<int64_t>(read_progress(limit_origin));

	return limit_us == lost_limit_us ? 0 : limit_us;
}

bool
is_limit_lost()
{
	return read_progress(limit_origin) == lost_limit_us;
}

uint64_t
read_scale()
{
	return read_progress(scale_origin);
}

void
check_limit_writable()
{
	if (max_origins() < origins_needed)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("cannot reserve time for snowflake ids with so few replication origins"),
				 errdetail("\"%s\" is %d; the reserved time is kept as the progress of replication origins %u and %u.",
						   max_origins_setting, max_origins(), static_cast<unsigned>(limit_origin),
						   static_cast<unsigned>(scale_origin)),
				 errhint("Set \"%s\" to at least %d on every standby and then here, and restart the servers.",
						 max_origins_setting, origins_needed)));

	uint16_t	origin;
	char	   *owner;

	if (find_named_origin(&origin, &owner))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot reserve time for snowflake ids in a replication origin that has a name"),
				 errdetail("The reserved time is kept as the progress of replication origins %u and %u, which must "
						   "have no names; %u belongs to \"%s\".",
						   static_cast<unsigned>(limit_origin), static_cast<unsigned>(scale_origin),
						   static_cast<unsigned>(origin), owner),
				 errhint("Drop the replication origin \"%s\", or what it belongs to.", owner)));
}

bool
is_limit_writable()
{
	uint16_t	origin;
	char	   *owner;

	return max_origins() >= origins_needed && !find_named_origin(&origin, &owner);
}

uint64_t
log_limit(int64_t limit_us, bool backwards)
{
	return log_progress(limit_origin, static_cast<uint64_t>(limit_us), backwards);
}

uint64_t
log_scale(uint64_t scale)
{
	return log_progress(scale_origin, scale, true);
}

void
flush_log(uint64_t position)
{
	static constinit WaitEvent event("SnowflakeSyncRep");

	XLogFlush(position);
	for (long pause_ms = first_standby_pause_ms; !flushed_on_standbys(position);
		 pause_ms = std::min(2 * pause_ms, longest_standby_pause_ms))
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, pause_ms, event.number());
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

}  // namespace snowflake
