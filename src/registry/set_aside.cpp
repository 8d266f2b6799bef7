/*
 * set_aside.cpp
 *		Sets a node number aside in the registry for ids that are made at once:
 *		snowflake_set_aside().
 *
 * It speaks to the registry itself, in the calling backend, over a connection of
 * its own that it does not keep.  The keeper and its claim have no part in it.
 *
 * Between connecting and disconnecting nothing here reports an error, since that
 * would leave the connection behind: what came of it is reported afterwards, and
 * interrupts only make the store give up.  (Where waiting itself reports one, for
 * want of memory, say, the store still knows the connection, and ends it when it
 * connects again.)
 */
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "registry/client.h"

#include "postgres/clock.h"
#include "postgres/grant.h"
#include "postgres/settings.h"
#include "postgres/shared.h"
#include "postgres/time.h"

#include "postgres/pg.h"

namespace snowflake
{

namespace
{

/* All of it takes no longer, but for a moment for taking leave. */
constexpr int64_t longest_ns = int64_t{10} * 1000 * ns_per_ms;

/* A claim that was changed under our hands, or may have been written, is read again so often. */
constexpr int most_tries = 4;

enum class Ended
{
	set_aside,
	claimed,					/* by somebody, once */
	failed,
};

struct Outcome
{
	Ended		how;
	Claim		claim;			/* where it was claimed */
	Problem		problem;		/* where it failed */
	bool		is_verdict;		/* the rules say so */
};

StoreContext context;
int64_t		deadline_ns;		/* CLOCK_BOOTTIME */

/* StoreContext::time_left() */
long
time_left()
{
	return ms_until(deadline_ns);
}

/* StoreContext::wait().  Others wait for a barrier; what else interrupts a backend can wait until the time is over. */
int
wait_for_store(int socket, int events, long timeout_ms)
{
	for (;;)
	{
		const long	left_ms = time_left();
		const long	timeout = timeout_ms < 0 ? left_ms : std::min(timeout_ms, left_ms);

		if (left_ms == 0 || QueryCancelPending || ProcDiePending)
			return -1;
		if (ProcSignalBarrierPending)
			ProcessProcSignalBarrier();

		const int	ready = wait_for_latch_or(socket, events, timeout);

		if (ready & WL_LATCH_SET)
			ResetLatch(MyLatch);
		if (ready & events)
			return ready & events;
		if ((ready & WL_TIMEOUT) && timeout == timeout_ms)
			return 0;
	}
}

/* Is this the server that a claim names? */
bool
is_same_place(const Holder &one, const Holder &other)
{
	return strcmp(one.host, other.host) == 0 && one.port == other.port &&
		strcmp(one.data_directory, other.data_directory) == 0;
}

/*
 * One attempt over a connection that is there.  False where the claim is to be read
 * again, with the connection's end.
 */
bool
try_once(const Store *store, uint64_t node, int64_t until_us, bool is_only_checked, Outcome *outcome,
		 bool *is_connected)
{
	Claim		known;
	Claim		next;
	RegistryTime registry;
	Verdict		verdict;

	outcome->how = Ended::failed;
	outcome->is_verdict = false;
	if (!read_store(store, &context, node, &known, &registry, &outcome->problem))
		return true;
	outcome->claim = known;
	/* A call that is repeated, or whose answer was lost. */
	if (!is_only_checked && is_set_aside(known) && known.granted_until_us == until_us &&
		is_same_place(known.holder, context.me))
	{
		outcome->how = Ended::set_aside;
		return true;
	}
	verdict = decide_set_aside(known, registry, context.me, is_only_checked ? registry.clock_us : until_us, &next);
	if (verdict == Verdict::held_by_another)
		outcome->how = Ended::claimed;
	else if (verdict != Verdict::write)
	{
		outcome->is_verdict = true;
		set_verdict(&outcome->problem, verdict, known, registry, wall_clock_ns() / ns_per_us);
	}
	else if (is_only_checked)
		outcome->how = Ended::set_aside;
	else
		switch (store->write(Form::release, known, next, 0, &outcome->problem))
		{
			case Written::done:
				outcome->how = Ended::set_aside;
				return true;
			case Written::changed:
				strlcpy(outcome->problem.text, changing_claim, sizeof(outcome->problem.text));
				return false;
			case Written::busy:
				return false;
			case Written::unknown:
				*is_connected = false;
				return false;
			case Written::refused:
				return true;
		}
	return true;
}

void
set_aside(const Store *store, uint64_t node, int64_t until_us, bool is_only_checked, Outcome *outcome)
{
	bool		is_connected = false;

	deadline_ns = boot_clock_ns() + longest_ns;
	outcome->how = Ended::failed;
	for (int i = 0; i < most_tries; i++)
	{
		is_connected = is_connected || store->connect(&context, &outcome->problem);
		if (!is_connected || try_once(store, node, until_us, is_only_checked, outcome, &is_connected))
			break;
	}
	store->disconnect();
}

/* What a claim says of the ids that were made under it; who its holder is, where the caller may know. */
void
set_claimed(Problem *problem, const Claim &claim, bool is_holder_named)
{
	const TimeText until = time_text(claim.granted_until_us);
	const Holder &holder = claim.holder;
	const char *how = is_set_aside(claim) ? "set aside" : claim.is_alive ? "held" : "last held";

	if (holder.is_nobody() && !is_set_aside(claim))
		snprintf(problem->text, sizeof(problem->text), "ids were made with it up to %s", until.text);
	else if (is_holder_named)
		snprintf(problem->text, sizeof(problem->text), "%s by %.100s:%d, %.150s, up to %s",
				 how, holder.host, holder.port, holder.data_directory, until.text);
	else
		snprintf(problem->text, sizeof(problem->text), "it is %s by another server, up to %s", how, until.text);
}

}  // namespace

}  // namespace snowflake

using namespace snowflake;

extern "C"
{

/* snowflake_set_aside(node bigint, until timestamptz) boolean */
PG_FUNCTION_INFO_V1(snowflake_set_aside);
Datum
snowflake_set_aside(PG_FUNCTION_ARGS)
{
	const int64	number = PG_GETARG_INT64(0);
	const TimestampTz until = PG_GETARG_TIMESTAMPTZ(1);
	const uint64_t node = static_cast<uint64_t>(number);
	const int64	max_node = server_layout().max_node();
	Outcome		outcome = {};
	Problem		claimed = {};
	Problem		told = {};

	if (number < 0 || number > max_node)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("node number %lld is out of range", static_cast<long long>(number)),
				 errdetail("In the server's layout, node numbers are from 0 to %lld.",
						   static_cast<long long>(max_node))));
	if (!has_registry())
		PG_RETURN_BOOL(false);

	const Store *store = load_store();

	fill_context(&context);
	draw_nonce(context.me.nonce, ERROR);
	context.wait = wait_for_store;
	context.time_left = time_left;
	/* Before 1970 is as good as 1970: no registry has times before that. */
	set_aside(store, node, std::max<int64_t>(unix_time(until), 0), TIMESTAMP_IS_NOBEGIN(until), &outcome);
	CHECK_FOR_INTERRUPTS();

	switch (outcome.how)
	{
		case Ended::set_aside:
			break;
		case Ended::claimed:
			set_claimed(&claimed, outcome.claim, true);
			set_claimed(&told, outcome.claim, false);
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("node number %lld was claimed in the registry", static_cast<long long>(number)),
					 detail_of_registry(may_see_registry() ? "" : told.text, claimed.text),
					 errhint("Give one that was never used.")));
		case Ended::failed:
			/* The rules' own words name nobody. */
			if (outcome.is_verdict && !may_see_registry())
				ereport(ERROR,
						(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						 errmsg("could not set aside node number %lld", static_cast<long long>(number)),
						 errdetail("The registry refuses it: %s.", outcome.problem.text)));
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("could not set aside node number %lld", static_cast<long long>(number)),
					 detail_of_registry("", outcome.problem.text)));
	}
	PG_RETURN_BOOL(true);
}

}
