/*
 * reservation.cpp
 *		The durable limit: PostgreSQL's WAL as the store of a static node's claim.
 *
 * The WAL is flushed up to XactLastRecEnd, the end of the record just written.
 * Not GetXLogInsertRecPtr(): at a page's end that points past the next page's
 * header, which was not written.
 */
#include "postgres/reservation.h"

#include "postgres/pg.h"

namespace snowflake
{

namespace
{

/* How often a wait for a standby looks whether it is done; nobody wakes it. */
constexpr long standby_poll_ms = 1;

void
explain_context(void *)
{
	errcontext("reserving time for snowflake ids in replication origin %u", static_cast<unsigned>(limit_origin));
}

/* Has the synchronous standbys' flushed WAL reached the position?  True where there are none. */
bool
flushed_on_standbys(XLogRecPtr position)
{
	if (max_wal_senders == 0)
		return true;

	LWLockAcquire(SyncRepLock, LW_SHARED);

	bool		done = !synchronous_standbys_defined() || WalSndCtl->lsn[SYNC_REP_WAIT_FLUSH] >= position;

	LWLockRelease(SyncRepLock);
	return done;
}

}  // namespace

int64_t
read_limit()
{
	if (max_origins() == 0)
		return 0;
	return static_cast<int64_t>(replorigin_get_progress(limit_origin, false));
}

void
check_limit_writable()
{
	char	   *owner;

	if (max_origins() == 0)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("could not reserve time for snowflake ids when \"%s\" is 0", max_origins_setting),
				 errdetail("The reserved time is kept as the progress of replication origin %u.",
						   static_cast<unsigned>(limit_origin)),
				 errhint("Set \"%s\" to at least 1 here and on every standby, and restart the server.", max_origins_setting)));

	/* PostgreSQL numbers origins from 1 up. */
	if (replorigin_by_oid(limit_origin, true, &owner))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("could not reserve time for snowflake ids: replication origin %u belongs to \"%s\"",
						static_cast<unsigned>(limit_origin), owner),
				 errdetail("The reserved time is kept as the progress of this origin, which must have no name."),
				 errhint("Drop the replication origin \"%s\", or what it belongs to.", owner)));
}

uint64_t
log_limit(int64_t limit_us, bool backwards)
{
	ErrorContextCallback context = {error_context_stack, explain_context, nullptr};

	error_context_stack = &context;
	replorigin_advance(limit_origin, static_cast<XLogRecPtr>(limit_us), InvalidXLogRecPtr, backwards, true);
	error_context_stack = context.previous;
	return XactLastRecEnd;
}

void
flush_log(uint64_t position)
{
	static uint32 event = 0;

	XLogFlush(position);
	while (!flushed_on_standbys(position))
	{
		if (event == 0)
			event = wait_event("SnowflakeSyncRep");
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, standby_poll_ms, event);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

}  // namespace snowflake
