/*
 * keeper.cpp
 *		The keeper: a background worker that holds this server's claim on a node
 *		number in the registry, and renews it.
 *
 * It is the only process that writes Shared::registry.  What the registry has confirmed goes there, and only
 * then is used: a grant that may not have been made is no grant.
 *
 * Order, where a claim ends: first the grant is taken back, so that no backend
 * takes a claim from it again; then the generator's claim is revoked, after which
 * nothing is issued; then the registry is told.
 *
 * It ends with the server alone.  PostgreSQL restarts a background worker by the
 * wall clock, late where that was set back; so every error is handled here.
 */
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "registry/client.h"

#include "postgres/clock.h"
#include "postgres/generate.h"
#include "postgres/grant.h"
#include "postgres/node.h"
#include "postgres/reservation.h"
#include "postgres/settings.h"
#include "postgres/time.h"

#include "postgres/pg.h"

namespace snowflake
{

namespace
{

constexpr int64_t us_per_ms = 1000;
constexpr int64_t ns_per_s = 1000 * ns_per_ms;

/*
 * The pauses between attempts that fail double from the first to the longest, and
 * each is jittered.  No pause and no operation takes longer than a third of the
 * claim window, nor than what a registry counts on (core/claim.h).
 */
constexpr int64_t first_pause_ns = 100 * ns_per_ms;
constexpr int64_t longest_pause_ns = longest_retry_pause_us * ns_per_us;
constexpr int64_t longest_operation_ns = longest_operation_us * ns_per_us;

/* At a clean stop the registry gets so long to take the claim back. */
constexpr int64_t longest_release_ns = 2 * ns_per_s;

/* Backends that want more time than is granted are heeded no more often than this. */
constexpr int64_t shortest_pause_ns = 50 * ns_per_ms;

/* A claim that was changed under our hands is looked at again so often before it counts as a failure. */
constexpr int tries_per_turn = 4;

const Store *store;
StoreContext context;
bool		is_connected;
bool		is_stopping;

/* The claim; is_claimed says whether there is one. */
bool		is_claimed;
Grant		grant;
int64_t		alive_until_ns;		/* CLOCK_BOOTTIME: until then the registry counts us as alive at least */

/* A grant that was lost, and that the registry may know too little of: it is told before another is asked for. */
bool		is_assertion_due;
bool		is_refusal_told;		/* the log was told that the registry refuses it */
Grant		lost_grant;

/* A grant that may have been made, though the answer is missing. */
bool		is_grant_pending;
Grant		pending_grant;
int64_t		pending_begun_ns;	/* CLOCK_BOOTTIME */

int64_t		next_turn_ns;		/* CLOCK_BOOTTIME */
int64_t		deadline_ns;		/* of the operation; 0: none is under way */
int64_t		release_deadline_ns;	/* of all operations at a clean stop */
int64_t		pause_ns;

/* What the log was told since the state changed, as hashes: with several hosts, problems take turns. */
ClaimState	logged_state;
uint32		logged[8];
unsigned	logged_count;

/* What a turn allocates. */
MemoryContext turn_memory;

int64_t
now_us()
{
	return Server().now_ns() / ns_per_us;
}

/* What calls have asked for counts once: the clock by which they did may have been put right since. */
Need
take_need()
{
	return {now_us(), position_us(0), static_cast<int64_t>(shared()->demanded_until_us.exchange(0))};
}

unsigned long long
printable(uint64_t node)
{
	return node;
}

/*
 * StoreContext::wait().  An operation is given up when its time is over; a
 * pause between two of them already when the latch was set.
 */
int
wait_for_store(int socket, int events, long timeout_ms)
{
	for (;;)
	{
		long		timeout = timeout_ms;

		if (deadline_ns != 0)
		{
			int64_t		left_ms = (deadline_ns - boot_clock_ns()) / ns_per_ms;

			if (left_ms <= 0)
				return -1;
			timeout = timeout_ms < 0 ? left_ms : std::min<int64_t>(timeout_ms, left_ms);
		}

		int			ready = wait_for_latch_or(socket, events, timeout);

		if (ready & WL_LATCH_SET)
		{
			ResetLatch(MyLatch);
			CHECK_FOR_INTERRUPTS();
			if (deadline_ns == 0)
				return -1;
			if (ShutdownRequestPending && !is_stopping)
				deadline_ns = std::min(deadline_ns, boot_clock_ns() + longest_release_ns);
		}
		if (ready & events)
			return ready & events;
		if ((ready & WL_TIMEOUT) && timeout_ms >= 0 && timeout == timeout_ms)
			return 0;
	}
}

/* StoreContext::time_left() */
long
time_left()
{
	return static_cast<long>(std::max<int64_t>((deadline_ns - boot_clock_ns()) / ns_per_ms, 0));
}

/* Starts an operation's time. */
void
begin_operation()
{
	deadline_ns = is_stopping ? release_deadline_ns :
		boot_clock_ns() + std::min(longest_operation_ns, claim_window_us() * ns_per_us / 3);
}

/* The pause after a renewal, in ns. */
int64_t
renewal_pause()
{
	return std::min(claim_window_us() / 3, longest_renewal_pause_us) * ns_per_us;
}

/* The pause after a failure, in ns. */
int64_t
next_pause()
{
	int64_t		longest = std::min(longest_pause_ns, claim_window_us() * ns_per_us / 3);

	pause_ns = std::clamp(2 * pause_ns, first_pause_ns, std::max(longest, first_pause_ns));
	return static_cast<int64_t>(static_cast<double>(pause_ns) * (0.5 + 0.5 * pg_prng_double(&pg_global_prng_state)));
}

/*
 * Tells the backends the state, and what is wrong, and the log where that is new:
 * once for each state and problem, or kind of it where its words change.
 */
void
show(ClaimState state, const char *problem, const char *kind)
{
	RegistryGrant &shown = shared()->registry;
	char		message[sizeof(RegistryGrant::problem) + 32];
	uint32		hash;

	lock_shared();
	if (shown.state != state)
		shown.since = GetCurrentTimestamp();
	shown.state = state;
	strlcpy(shown.problem, problem, sizeof(shown.problem));
	unlock_shared();

	if (state != logged_state)
		logged_count = 0;
	logged_state = state;
	snprintf(message, sizeof(message), "%llu %s", printable(is_claimed ? grant.node : 0), kind);
	hash = hash_bytes(reinterpret_cast<const unsigned char *>(message), static_cast<int>(strlen(message)));
	if (std::find(logged, logged + std::min<size_t>(logged_count, lengthof(logged)), hash) !=
		logged + std::min<size_t>(logged_count, lengthof(logged)))
		return;
	logged[logged_count++ % lengthof(logged)] = hash;
	switch (state)
	{
		case ClaimState::held:
			ereport(LOG,
					(errmsg("snowflake registry \"%s\": node number %llu is claimed", context.address->shown, printable(grant.node)),
					 grant.generation == 1 ? errdetail("Group \"%s\"; nobody had it before.", context.group) :
					 grant.start_us == 0 ? errdetail("Group \"%s\".", context.group) :
					 errdetail("Group \"%s\"; earlier holders had it up to %s.", context.group, time_text(grant.start_us).text)));
			break;
		case ClaimState::suspended:
			ereport(WARNING,
					(errmsg("snowflake registry \"%s\": claim on node number %llu is suspended: %s",
							context.address->shown, printable(grant.node), problem),
					 errdetail("Ids can be made up to %s.", time_text(grant.granted_until_us).text)));
			break;
		case ClaimState::lost:
			ereport(WARNING,
					(errmsg("snowflake registry \"%s\": claim on node number %llu is lost: %s",
							context.address->shown, printable(grant.node), problem)));
			break;
		case ClaimState::none:
			ereport(WARNING,
					(errmsg("snowflake registry \"%s\": no node number is claimed: %s", context.address->shown, problem)));
			break;
	}
}

/* What is wrong, with the state that follows from it. */
void
show_problem(const char *problem, const char *kind)
{
	RegistryGrant shown = current_grant();
	ClaimState	state = shown.state;

	if (is_claimed)
		state = grant.granted_until_us <= now_us() ? ClaimState::lost : ClaimState::suspended;
	else if (state != ClaimState::none)
		state = ClaimState::lost;
	show(state, problem, kind);
}

void
show_problem(const char *problem)
{
	show_problem(problem, problem);
}

void
disconnect()
{
	if (store != nullptr)
		store->disconnect();
	is_connected = false;
}

/* The same after a failure to speak with the registry, which is then connected to anew. */
void
show_failure(const Problem &problem)
{
	disconnect();
	show_problem(problem.text);
}

/* Has the claim not been renewed for as long as it counts as alive? */
bool
is_overdue()
{
	return boot_clock_ns() >= alive_until_ns;
}

/* Lets the backends use what the registry has confirmed: to a request that was begun then, on CLOCK_BOOTTIME. */
void
publish(const Grant &confirmed, int64_t begun_ns)
{
	RegistryGrant &shown = shared()->registry;
	bool		is_new = !is_claimed;

	/* Whatever was claimed before ends before there is another grant. */
	if (is_new)
		(void) server_generator().revoke();
	grant = confirmed;
	is_claimed = true;
	alive_until_ns = begun_ns + claim_window_us() * ns_per_us;
	is_grant_pending = false;
	pause_ns = 0;
	lock_shared();
	shown.grant = confirmed;
	shown.is_usable = true;
	keep_grant();
	unlock_shared();
	if (!is_new)
		server_generator().extend(confirmed.granted_until_us);
}

/* Ends the claim: nothing is issued under it any more.  Returns the end of the last tick that was. */
int64_t
take_back()
{
	RegistryGrant &shown = shared()->registry;

	lock_shared();
	shown.is_usable = false;
	shown.state = ClaimState::lost;
	shown.since = GetCurrentTimestamp();
	keep_grant();
	unlock_shared();
	is_claimed = false;
	return server_generator().revoke();
}

/*
 * Remembers what is about to be asked for: whoever goes on with this claim, after
 * this process or after a crash, may find it granted.  What was adopted goes with it:
 * the registry has that already.
 */
void
remember_asked(int64_t until_us)
{
	grant.asked_until_us = std::max(grant.asked_until_us, until_us);
	lock_shared();
	shared()->registry.grant = grant;
	keep_grant();
	unlock_shared();
}

void
show_verdict(Verdict verdict, const Claim &claim, const RegistryTime &registry)
{
	Problem		problem = {};

	set_verdict(&problem, verdict, claim, registry, now_us());
	show_problem(problem.text, verdict == Verdict::too_far ? "too far" : verdict == Verdict::unsettled ? "unsettled" : problem.text);
}

/* Reads a claim as an operation of its own.  False, having said why, where that fails. */
bool
read_claim(uint64_t node, Claim *known, RegistryTime *registry)
{
	Problem		problem = {};

	begin_operation();
	if (read_store(store, &context, node, known, registry, &problem))
		return true;
	show_failure(problem);
	return false;
}

struct List
{
	ListedClaim *claims;
	int64_t		count;
	int64_t		room;
};

void
add_to_list(const ListedClaim &claim, void *argument)
{
	List	   *list = static_cast<List *>(argument);

	if (list->count == list->room)
	{
		list->room *= 2;
		list->claims = static_cast<ListedClaim *>(repalloc_huge(list->claims, static_cast<Size>(list->room) * sizeof(ListedClaim)));
	}
	list->claims[list->count++] = claim;
}

/* The number to ask for, granted no further than until_us.  False, having said why, where there is none. */
bool
choose_number(int64_t until_us, uint64_t *node)
{
	if (server_node_id().source != NodeSource::automatic)
	{
		*node = server_node().number;
		return true;
	}
	/* What may have been granted already would otherwise be nobody's until it expires. */
	if (is_grant_pending)
	{
		*node = pending_grant.node;
		return true;
	}

	Problem		problem = {};
	List		list = {static_cast<ListedClaim *>(palloc(64 * sizeof(ListedClaim))), 0, 64};
	uint64_t	max_node = static_cast<uint64_t>(server_layout().max_node());

	begin_operation();
	if (!store->list(add_to_list, &list, &problem))
		show_failure(problem);
	else if (choose_node(list.claims, list.count, max_node, now_us(), until_us, node))
		return true;
	else
	{
		snprintf(problem.text, sizeof(problem.text), "all node numbers of group \"%s\", 0 to %llu, are held by others",
				 context.group, printable(max_node));
		show_problem(problem.text);
	}
	return false;
}

/* Asks for a claim.  Returns the pause before the next turn. */
int64_t
claim()
{
	int64_t		until_us = INT64_MAX;
	uint64_t	node;

	if (!choose_number(until_us, &node))
		return next_pause();

	/* A call that needs more than that says so when there is a claim. */
	const Need	need = {now_us(), position_us(0), 0};

	for (int i = 0; i < tries_per_turn; i++)
	{
		Problem		problem = {};
		Claim		known;
		Claim		next;
		Grant		wanted;
		RegistryTime registry;
		const int64_t begun_ns = boot_clock_ns();

		if (!read_claim(node, &known, &registry))
			return next_pause();
		if (is_grant_pending && known.holder.is(context.me) && known.node == pending_grant.node &&
			known.generation == pending_grant.generation && known.granted_until_us == pending_grant.granted_until_us &&
			registry.unsettled_us == 0 && boot_clock_ns() < pending_begun_ns + claim_window_us() * ns_per_us)
		{
			/* It was made, it is nobody else's yet, and nothing was issued under it. */
			publish(pending_grant, pending_begun_ns);
			show(ClaimState::held, "", "");
			return 0;
		}

		Verdict		verdict = decide_grant(known, registry, context.me, need, claim_window_us(), &next, &wanted);

		/* A number that was granted too far ahead is passed over. */
		if (verdict == Verdict::too_far && server_node_id().source == NodeSource::automatic && known.generation > 0 && until_us == INT64_MAX)
		{
			until_us = known.granted_until_us - 1;
			is_grant_pending = false;
			if (!choose_number(until_us, &node))
				return next_pause();
			continue;
		}
		if (verdict != Verdict::write)
		{
			is_grant_pending = false;
			show_verdict(verdict, known, registry);
			return verdict == Verdict::unsettled ? std::min(next_pause(), registry.unsettled_us * ns_per_us) : next_pause();
		}
		switch (store->write(Form::claim, known, next, claim_window_us(), &problem))
		{
			case Written::done:
				publish(wanted, begun_ns);
				show(ClaimState::held, "", "");
				return renewal_pause();
			case Written::changed:
				/* Another was faster: where any number will do, another number. */
				if (server_node_id().source == NodeSource::automatic && !known.holder.is(context.me))
				{
					is_grant_pending = false;
					return shortest_pause_ns;
				}
				continue;
			case Written::unknown:
				is_grant_pending = true;
				pending_grant = wanted;
				pending_begun_ns = begun_ns;
				[[fallthrough]];
			case Written::refused:
				show_failure(problem);
				return next_pause();
		}
	}
	show_problem("its claim was changed by others again and again");
	return next_pause();
}

/* The registry has given the number to another. */
int64_t
lose(const Claim &known)
{
	Problem		holder = {};

	lost_grant = used_up(grant, take_back());
	is_assertion_due = true;
	is_refusal_told = false;
	set_holder(&holder, known);
	show(ClaimState::lost, known.holder.is(context.me) ?
		 "another holder had been granted more time under this number, which the registry did not know" :
		 known.holder.is_nobody() ? "the registry has given it to nobody" : holder.text, "");
	return 0;
}

/*
 * Tells the registry how far ids were made under what was lost: a registry that
 * was restored may know less.  It may refuse to be told while another holds the
 * number, and is then told later.  False where it can't be spoken to.
 */
bool
assert_lost_grant()
{
	for (int i = 0; i < tries_per_turn; i++)
	{
		Problem		problem = {};
		Claim		known;
		Claim		next;
		RegistryTime registry;

		if (!read_claim(lost_grant.node, &known, &registry))
			return false;
		is_assertion_due = decide_assertion(known, lost_grant, &next);
		if (!is_assertion_due)
			return true;
		switch (store->write(Form::assertion, known, next, 0, &problem))
		{
			case Written::unknown:
				show_failure(problem);
				return false;
			case Written::refused:
				if (!is_refusal_told)
					ereport(WARNING,
							(errmsg("snowflake registry \"%s\": could not tell how far ids of node number %llu went: %s",
									context.address->shown, printable(lost_grant.node), problem.text),
							 errdetail("They went up to %s.  It is told again until it knows.", time_text(lost_grant.granted_until_us).text)));
				is_refusal_told = true;
				return true;
			case Written::done:
			case Written::changed:
				continue;
		}
	}
	return true;
}

/* Renews the claim.  Returns the pause before the next turn. */
int64_t
renew()
{
	Need		need = take_need();
	bool		is_too_far = false;

	for (int i = 0; i < tries_per_turn; i++)
	{
		Problem		problem = {};
		Claim		known;
		Claim		next;
		Grant		renewed;
		RegistryTime registry;
		const int64_t begun_ns = boot_clock_ns();

		if (!read_claim(grant.node, &known, &registry))
			return next_pause();
		adopt(known, context.me, &grant);

		const bool	was_overdue = is_overdue();
		Verdict		verdict = decide_renewal(known, registry, context.me, need, claim_window_us(), was_overdue, grant, &next, &renewed);

		/* The claim is kept all the same. */
		if (verdict == Verdict::too_far && need.demanded_until_us != 0)
		{
			is_too_far = true;
			need.demanded_until_us = 0;
			verdict = decide_renewal(known, registry, context.me, need, claim_window_us(), was_overdue, grant, &next, &renewed);
		}
		if (verdict == Verdict::held)
			return lose(known);
		if (verdict != Verdict::write)
		{
			show_verdict(verdict, known, registry);
			return next_pause();
		}
		remember_asked(next.granted_until_us);
		switch (store->write(Form::claim, known, next, claim_window_us(), &problem))
		{
			case Written::done:
				publish(renewed, begun_ns);
				if (was_overdue && registry.unsettled_us > 0)
				{
					/* Kept, and overdue as before. */
					alive_until_ns = 0;
					show_verdict(Verdict::unsettled, known, registry);
					return std::min(renewal_pause(), registry.unsettled_us * ns_per_us);
				}
				if (is_too_far)
				{
					show_verdict(Verdict::too_far, known, registry);
					return renewal_pause();
				}
				show(ClaimState::held, "", "");
				return renewal_pause();
			case Written::changed:
				continue;
			case Written::unknown:
			case Written::refused:
				show_failure(problem);
				return next_pause();
		}
	}
	show_problem("its claim was changed by others again and again");
	return next_pause();
}

/* Gives the claim back, at a clean stop; also one that may have been granted, though the answer is missing. */
void
release()
{
	Problem		problem = {};
	const bool	was_claimed = is_claimed;
	const bool	is_pending = !is_claimed && is_grant_pending;
	int64_t		issued_until_us;

	if (!is_claimed && !is_pending && !is_assertion_due)
		return;
	issued_until_us = take_back();
	for (int i = 0; i < tries_per_turn; i++)
	{
		Claim		known;
		Claim		next;
		RegistryTime registry;

		/* The connection may have been lost without notice, and the registry restored. */
		if (!is_connected)
		{
			begin_operation();
			is_connected = store->connect(&context, &problem);
			if (!is_connected)
				return;
		}
		if (is_assertion_due && !assert_lost_grant())
			continue;
		if (!was_claimed && !is_pending)
			return;
		if (!read_claim(is_pending ? pending_grant.node : grant.node, &known, &registry))
			continue;
		if (is_pending && !known.holder.is(context.me))
			return;
		/* Nothing was issued under it, but where it began is not known any more. */
		if (is_pending)
			grant = {known.node, known.generation, known.granted_until_us, known.granted_until_us, 0, 0};
		adopt(known, context.me, &grant);
		if (!decide_release(known, context.me, issued_until_us, grant, &next))
		{
			lost_grant = used_up(grant, issued_until_us);
			(void) assert_lost_grant();
			return;
		}
		switch (store->write(Form::release, known, next, 0, &problem))
		{
			case Written::done:
			case Written::refused:
				return;
			case Written::changed:
				continue;
			case Written::unknown:
				disconnect();
				continue;
		}
	}
}

/* Is the registry in the server that it serves, or in a copy of it? */
bool
is_own_server()
{
	return store->system_identifier() == GetSystemIdentifier();
}

/* Such a registry goes with its server wherever that goes, a clone too. */
void
warn_of_own_server()
{
	static bool warned = false;

	if (warned || !is_own_server())
		return;
	warned = true;
	ereport(WARNING,
			(errmsg("snowflake registry \"%s\" is in this server, or in a copy of it", context.address->shown),
			 errdetail("Where the server is cloned, or a standby of it is promoted, the copy has a registry of its own, "
					   "which knows nothing of this one's grants from then on."),
			 errhint("Put the registry into another server.")));
}

/* One attempt at what is to be done now.  Returns the pause before the next. */
int64_t
take_turn()
{
	Problem		problem = {};

	store = load_store();
	if (!is_connected)
	{
		begin_operation();
		context.window_us = claim_window_us();
		if (!store->connect(&context, &problem))
		{
			show_failure(problem);
			return next_pause();
		}
		is_connected = true;
		warn_of_own_server();
	}
	if (is_assertion_due && !assert_lost_grant())
		return next_pause();
	return is_claimed ? renew() : claim();
}

/* Waits for the next turn, or for what comes before it. */
void
pause_until_next_turn()
{
	Problem		problem = {};

	for (;;)
	{
		int64_t		now_ns = boot_clock_ns();

		deadline_ns = 0;
		if (now_ns >= next_turn_ns || ShutdownRequestPending || ConfigReloadPending)
			return;

		int64_t		asked_ns = boot_clock_ns();
		long		left_ms = static_cast<long>((next_turn_ns - now_ns) / ns_per_ms + 1);

		if (!is_connected)
			(void) wait_for_store(-1, 0, left_ms);
		else if (!store->idle(left_ms, &problem))
		{
			/* Connect again soon: what is wrong will be seen then. */
			disconnect();
			next_turn_ns = std::min(next_turn_ns, boot_clock_ns() + shortest_pause_ns);
			continue;
		}
		/* A backend needs more time than is granted.  After a failure the pause goes on all the same. */
		if (pause_ns == 0 && boot_clock_ns() < next_turn_ns && is_claimed)
		{
			int64_t		wait_ns = shortest_pause_ns - (boot_clock_ns() - asked_ns);

			next_turn_ns = std::min(next_turn_ns, boot_clock_ns() + std::max<int64_t>(wait_ns, 0));
		}
	}
}

[[noreturn]] void
run()
{
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (ShutdownRequestPending)
		{
			is_stopping = true;
			release_deadline_ns = boot_clock_ns() + longest_release_ns;
			release();
			disconnect();
			/* Ended by hand, it is to come back. */
			proc_exit(1);
		}
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			/* Credentials may have changed with it, and are read at connecting; so may the window. */
			disconnect();
			next_turn_ns = 0;
		}
		if (boot_clock_ns() >= next_turn_ns)
		{
			MemoryContextReset(turn_memory);
			next_turn_ns = boot_clock_ns() + take_turn();
			/* To such a server this is a client, for which a smart stop would wait. */
			if (is_connected && is_own_server())
				disconnect();
		}
		pause_until_next_turn();
	}
}

void
forget_latch(int, Datum)
{
	shared()->keeper_latch.store(nullptr, std::memory_order_release);
}

}  // namespace

}  // namespace snowflake

using namespace snowflake;

extern "C"
{

PGDLLEXPORT void snowflake_keeper(Datum argument);

/* The keeper's main function. */
void
snowflake_keeper(Datum)
{
	sigjmp_buf	on_error;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGINT, SIG_IGN);
	BackgroundWorkerUnblockSignals();
	/* No database; but so it is a session that pg_stat_activity shows and pg_terminate_backend() knows. */
	BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
	turn_memory = AllocSetContextCreate(TopMemoryContext, "snowflake keeper", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(turn_memory);

	before_shmem_exit(forget_latch, Datum{0});
	shared()->keeper_latch.store(MyLatch, std::memory_order_release);
	fill_context(&context);
	strlcpy(context.me.nonce, shared()->registry.nonce, sizeof(context.me.nonce));
	context.wait = wait_for_store;
	context.time_left = time_left;

	/* A keeper before this one has left a claim, perhaps before a crash, and may have asked for more. */
	grant = shared()->registry.grant;
	is_claimed = shared()->registry.is_usable;
	/* What was issued before a crash the generator does not know: it lies below the limit. */
	grant.told_until_us = std::max(grant.told_until_us, std::min(read_limit(), grant.granted_until_us));

	PG_exception_stack = &on_error;
	if (sigsetjmp(on_error, 1) != 0)
	{
		Problem		problem;
		ErrorData  *error;

		error_context_stack = nullptr;
		HOLD_INTERRUPTS();
		LWLockReleaseAll();
		pgstat_report_wait_end();
		MemoryContextSwitchTo(turn_memory);
		error = CopyErrorData();
		FlushErrorState();
		RESUME_INTERRUPTS();
		strlcpy(problem.text, error->message != nullptr ? error->message : "unknown error", sizeof(problem.text));
		show_failure(problem);
		next_turn_ns = boot_clock_ns() + next_pause();
	}
	run();
}

}
