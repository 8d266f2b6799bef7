/*
 * keeper.cpp
 *		The keeper's process: a background worker that holds this server's claim on a
 *		node number in the registry.
 *
 * What it does, and in which order, is said in core/keeper.h.  Here is what that
 * needs from PostgreSQL: the latch, signals, the log, settings, shared memory and
 * the store.  It is the only process that writes Shared::registry.
 *
 * It ends with the server alone.  PostgreSQL restarts a background worker by the
 * wall clock, late where that was set back; so every error is handled here.
 */
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "registry/client.h"

#include "core/keeper.h"
#include "postgres/clock.h"
#include "postgres/environment.h"
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

/* At a clean stop the registry gets so long to take the claim back. */
constexpr int64_t longest_release_ns = 2 * us_per_s * ns_per_us;

const Store *store;
StoreContext context;
bool		is_stopping;

int64_t		deadline_ns;		/* of the operation; 0: none is under way */
int64_t		release_deadline_ns;	/* of all operations at a clean stop */

/* What the log was told since the state changed, as hashes: with several hosts, problems take turns. */
ClaimState	logged_state;
uint32		logged[8];
unsigned	logged_count;

/* What a turn allocates. */
MemoryContext turn_memory;

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
			const long	left_ms = ms_until(deadline_ns);

			if (left_ms == 0)
				return -1;
			timeout = timeout_ms < 0 ? left_ms : std::min(timeout_ms, left_ms);
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
	return ms_until(deadline_ns);
}

/* Starts an operation's time.  A write belongs to the operation that began with its read. */
void
begin_operation()
{
	const int64_t limit_ns = operation_limit_us(claim_window_us()) * ns_per_us;

	deadline_ns = is_stopping ? release_deadline_ns : boot_clock_ns() + limit_ns;
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
			(errmsg("snowflake registry is in this server, or in a copy of it"),
			 errdetail("The registry is \"%s\". Where the server is cloned, or a standby of it is promoted, the copy "
					   "has a registry of its own, which knows nothing of this one's grants from then on.",
					   context.address->shown),
			 errhint("Put the registry into another server.")));
}

/* Such an address lets others grant what is not theirs, and ask for the password. */
void
warn_of_network()
{
	static bool warned = false;
	Problem		reason = {};

	if (warned || !store->trusts_network(&context, &reason))
		return;
	warned = true;
	ereport(WARNING,
			(errmsg("snowflake registry's server does not prove who it is"),
			 errdetail("Registry \"%s\": %s. Any server on the network between can answer in its place, grant node "
					   "numbers that others hold, and ask for the password.",
					   context.address->shown, reason.text),
			 errhint("Set sslmode=verify-full in \"snowflake.registry\", and channel_binding=require where there is a "
					 "password.")));
}

/* Changes what backends see of the claim, and what a crash of the processes leaves of it. */
template <typename Change>
void
change_grant(Change change)
{
	lock_shared_state();
	change(&shared()->registry);
	keep_grant();
	unlock_shared_state();
}

/* Was the log not told this yet in this state?  kind is the problem, or a name for it where its words change. */
bool
is_news(ClaimState state, uint64_t node, const char *kind)
{
	char		message[sizeof(RegistryGrant::problem) + 32];
	uint32		hash;

	if (state != logged_state)
		logged_count = 0;
	logged_state = state;
	snprintf(message, sizeof(message), "%llu %s", printable(node), kind);
	hash = hash_bytes(reinterpret_cast<const unsigned char *>(message), static_cast<int>(strlen(message)));

	const uint32 *end = logged + std::min<size_t>(logged_count, lengthof(logged));

	if (std::find<const uint32 *>(logged, end, hash) != end)
		return false;
	logged[logged_count++ % lengthof(logged)] = hash;
	return true;
}

/* The primary messages are constant, so that logs can be grouped by them. */
void
log_state(ClaimState state, const Grant &grant, const char *problem)
{
	const char *registry = context.address->shown;
	const char *group = context.group;

	switch (state)
	{
		case ClaimState::held:
			ereport(LOG,
					(errmsg("snowflake node number is claimed"),
					 grant.generation == 1 ?
					 errdetail("Registry \"%s\", group \"%s\", node number %llu. Nobody had it before.",
							   registry, group, printable(grant.node)) :
					 grant.start_us == 0 ?
					 errdetail("Registry \"%s\", group \"%s\", node number %llu.",
							   registry, group, printable(grant.node)) :
					 errdetail("Registry \"%s\", group \"%s\", node number %llu. Earlier holders had it up to %s.",
							   registry, group, printable(grant.node), time_text(grant.start_us).text)));
			break;
		case ClaimState::suspended:
			ereport(WARNING,
					(errmsg("claim on the snowflake node number is suspended"),
					 errdetail("Registry \"%s\", group \"%s\", node number %llu: %s. Ids can be made up to %s.",
							   registry, group, printable(grant.node), problem,
							   time_text(grant.granted_until_us).text)));
			break;
		case ClaimState::lost:
			ereport(WARNING,
					(errmsg("claim on the snowflake node number is lost"),
					 errdetail("Registry \"%s\", group \"%s\", node number %llu: %s.",
							   registry, group, printable(grant.node), problem)));
			break;
		case ClaimState::none:
			ereport(WARNING,
					(errmsg("no snowflake node number is claimed"),
					 errdetail("Registry \"%s\", group \"%s\": %s.", registry, group, problem)));
			break;
	}
}

/*
 * Tells the backends the state, and what is wrong, and the log where that is new:
 * once for each state and problem, or kind of it where its words change.
 */
void
show_state(ClaimState state, const Grant &grant, const char *problem, const char *kind)
{
	RegistryGrant &shown = shared()->registry;

	lock_shared_state();
	if (shown.state != state)
		shown.since = GetCurrentTimestamp();
	shown.state = state;
	strlcpy(shown.problem, problem, sizeof(shown.problem));
	unlock_shared_state();
	if (is_news(state, shown.is_usable ? grant.node : 0, kind))
		log_state(state, grant, problem);
}

/* Was the log told of this before?  Of each once, as long as the keeper remembers it. */
bool
is_told(const char *text)
{
	static uint32 told[32];
	static unsigned count;

	const uint32 hash = hash_bytes(reinterpret_cast<const unsigned char *>(text), static_cast<int>(strlen(text)));
	const uint32 *end = told + std::min<size_t>(count, lengthof(told));

	if (std::find<const uint32 *>(told, end, hash) != end)
		return true;
	told[count++ % lengthof(told)] = hash;
	return false;
}

/* StoreContext::pass_over() */
void
pass_over(const Problem *problem)
{
	if (is_told(problem->text))
		return;
	ereport(WARNING,
			(errmsg("snowflake registry has a claim that cannot be read"),
			 errdetail("Registry \"%s\", group \"%s\": %s. Its node number is given to nobody.",
					   context.address->shown, context.group, problem->text)));
}

/* StoreContext::tell_open() */
void
tell_open(const char *place)
{
	if (is_told(place))
		return;
	ereport(WARNING,
			(errmsg("snowflake registry can be changed by others than its user"),
			 errdetail("Registry \"%s\": the rights on \"%s\" let anybody change it, or delete what is below it, "
					   "claims too, or cannot be read.", context.address->shown, place),
			 errhint("In zkCli.sh, as that user: setAcl -R %s auth::cdrwa", place)));
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

	/* Whatever a registry has, no more than the layout's numbers is kept. */
	if (claim.node > static_cast<uint64_t>(server_layout().max_node()))
		return;
	if (list->count == list->room)
	{
		list->room *= 2;
		list->claims = static_cast<ListedClaim *>(repalloc_huge(list->claims,
																static_cast<Size>(list->room) * sizeof(ListedClaim)));
	}
	list->claims[list->count++] = claim;
}

/* The keeper's environment: this process. */
class Process
{
public:
	int64_t boot_us() noexcept
	{
		return boot_clock_ns() / ns_per_us;
	}

	int64_t clock_us() noexcept
	{
		return server_clock.now_us();
	}

	int64_t issued_until_us() noexcept
	{
		return position_us(0);
	}
	int64_t durable_us() noexcept
	{
		return read_limit();
	}

	/* What calls have asked for counts once: the clock by which they did may have been put right since. */
	int64_t take_demand_us() noexcept
	{
		return static_cast<int64_t>(shared()->demanded_until_us.exchange(0));
	}

	int64_t window_us() noexcept
	{
		return claim_window_us();
	}

	double random() noexcept
	{
		return pg_prng_double(&pg_global_prng_state);
	}

	bool fixed_node(uint64_t *node) noexcept
	{
		if (server_node_id().source == NodeSource::automatic)
			return false;
		*node = server_node().number;
		return true;
	}

	uint64_t max_node() noexcept
	{
		return static_cast<uint64_t>(server_layout().max_node());
	}

	bool connect(Problem *problem) noexcept
	{
		store = load_store();
		warn_of_network();
		begin_operation();
		context.window_us = claim_window_us();
		if (!store->connect(&context, problem))
			return false;
		if (!is_stopping)
			warn_of_own_server();
		return true;
	}

	void disconnect() noexcept
	{
		if (store != nullptr)
			store->disconnect();
	}

	/* An operation of its own. */
	bool read(uint64_t node, Claim *claim, RegistryTime *registry, Problem *problem) noexcept
	{
		begin_operation();
		return read_store(store, &context, node, claim, registry, problem);
	}

	bool list(const ListedClaim **claims, int64_t *count, Problem *problem) noexcept
	{
		List		list = {static_cast<ListedClaim *>(palloc(64 * sizeof(ListedClaim))), 0, 64};

		begin_operation();
		if (!store->list(add_to_list, &list, problem))
			return false;
		*claims = list.claims;
		*count = list.count;
		return true;
	}

	Written write(Form form, const Claim &before, const Claim &next, Problem *problem) noexcept
	{
		return store->write(form, before, next, form == Form::claim ? claim_window_us() : 0, problem);
	}

	void publish(const Grant &grant) noexcept
	{
		change_grant([&grant] (RegistryGrant *shown) { shown->grant = grant; shown->is_usable = true; });
	}

	void remember(const Grant &grant) noexcept
	{
		change_grant([&grant] (RegistryGrant *shown) { shown->grant = grant; });
	}

	void withdraw() noexcept
	{
		change_grant([] (RegistryGrant *shown) {
			shown->is_usable = false;
			shown->state = ClaimState::lost;
			shown->since = GetCurrentTimestamp();
		});
	}

	void keep_lost(const LostGrants &lost) noexcept
	{
		change_grant([&lost] (RegistryGrant *shown) { shown->lost = lost; });
	}

	int64_t revoke() noexcept
	{
		return server_generator().revoke();
	}

	void extend(int64_t granted_until_us) noexcept
	{
		server_generator().extend(granted_until_us);
	}

	void show(ClaimState state, const Grant &grant, const Trouble &trouble) noexcept
	{
		Problem		problem = {};
		const char *kind = problem.text;

		switch (trouble.kind)
		{
			case Trouble::Kind::none:
				break;
			case Trouble::Kind::failure:
				problem = *trouble.problem;
				break;
			case Trouble::Kind::verdict:
				set_verdict(&problem, trouble.verdict, *trouble.claim, *trouble.registry, clock_us());
				if (trouble.verdict == Verdict::too_far)
					kind = "too far";
				else if (trouble.verdict == Verdict::unsettled)
					kind = "unsettled";
				break;
			case Trouble::Kind::all_held:
				snprintf(problem.text, sizeof(problem.text),
						 "all node numbers of group \"%s\", 0 to %llu, are held by others",
						 context.group, printable(max_node()));
				break;
			case Trouble::Kind::changing:
				strlcpy(problem.text, changing_claim, sizeof(problem.text));
				break;
		}
		show_state(state, grant, problem.text, kind);
	}

	void lost(const Grant &grant, const Claim &claim) noexcept
	{
		Problem		holder = {};

		/* The server has no claim then, and nobody to tell. */
		if (is_stopping)
			return;
		set_holder(&holder, claim);
		show_state(ClaimState::lost, grant, claim.holder.is(context.me) ?
				   "another holder had been granted more time under this number, which the registry did not know" :
				   claim.holder.is_nobody() ? "the registry has given it to nobody" : holder.text, "");
	}

	void assertion_refused(const Grant &grant, const Problem &problem) noexcept
	{
		ereport(WARNING,
				(errmsg("could not tell the snowflake registry how far ids went"),
				 errdetail("Registry \"%s\", group \"%s\", node number %llu: %s. Ids went up to %s. "
						   "The registry is told again until it knows.",
						   context.address->shown, context.group, printable(grant.node), problem.text,
						   time_text(grant.granted_until_us).text)));
	}
};

constinit Process process;
constinit Keeper<Process> keeper(process);

/* Waits for the next turn, or for what comes before it. */
void
pause_until_next_turn()
{
	Problem		problem = {};

	for (;;)
	{
		const int64_t now_us = process.boot_us();

		deadline_ns = 0;
		if (now_us >= keeper.next_turn_us() || ShutdownRequestPending || ConfigReloadPending)
			return;

		const long	left_ms = static_cast<long>((keeper.next_turn_us() - now_us) / 1000 + 1);

		if (!keeper.is_connected())
			(void) wait_for_store(-1, 0, left_ms);
		else if (!store->idle(left_ms, &problem))
		{
			keeper.lose_connection();
			continue;
		}
		keeper.wake(now_us);
	}
}

/* At a clean stop. */
[[noreturn]] void
stop()
{
	is_stopping = true;
	release_deadline_ns = boot_clock_ns() + longest_release_ns;
	keeper.release();
	keeper.disconnect();
	/* Ended by hand, it is to come back. */
	proc_exit(1);
}

[[noreturn]] void
run()
{
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (ShutdownRequestPending)
			stop();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			/* Credentials may have changed with it, and are read at connecting; so may the window. */
			keeper.reload();
		}
		if (process.boot_us() >= keeper.next_turn_us())
		{
			MemoryContextReset(turn_memory);
			keeper.take_turn();
			/* To such a server this is a client, for which a smart stop would wait. */
			if (keeper.is_connected() && is_own_server())
				keeper.disconnect();
		}
		pause_until_next_turn();
	}
}

/* The keeper goes on after an error; what it was is said in the log once. */
void
recover_from_error()
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
	keeper.recover(problem);
}

/* A keeper before this one has left a claim, perhaps before a crash, and may have asked for more. */
void
begin()
{
	const RegistryGrant &left = shared()->registry;

	fill_context(&context);
	strlcpy(context.me.nonce, left.nonce, sizeof(context.me.nonce));
	context.wait = wait_for_store;
	context.time_left = time_left;
	context.pass_over = pass_over;
	context.tell_open = tell_open;
	keeper.begin(context.me, left.state, left.grant, left.is_usable, left.lost);
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
	ignore_signal(SIGINT);
	BackgroundWorkerUnblockSignals();
	/* No database; but so it is a session that pg_stat_activity shows and pg_terminate_backend() knows. */
	BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
	turn_memory = AllocSetContextCreate(TopMemoryContext, "snowflake keeper", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(turn_memory);

	before_shmem_exit(forget_latch, Datum{0});
	shared()->keeper_latch.store(MyLatch, std::memory_order_release);
	begin();

	PG_exception_stack = &on_error;
	if (sigsetjmp(on_error, 1) != 0)
		recover_from_error();
	run();
}

}
