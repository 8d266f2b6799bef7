/*
 * grant.cpp
 *		What the registry grants, as backends see it.
 */
#include <algorithm>

#include "postgres/grant.h"

#include "core/atomic.h"
#include "postgres/registry_kind.h"
#include "postgres/reservation.h"
#include "postgres/settings.h"
#include "postgres/time.h"

#include "postgres/pg.h"

#include "postgres/sqlstate.h"

namespace snowflake
{

namespace
{

/* How often a call that waits for the keeper looks whether there is a grant. */
constexpr int64_t longest_look_ns = 5 * ns_per_ms;

void
wake_keeper()
{
	Latch	   *latch = shared()->keeper_latch.load(std::memory_order_acquire);

	if (latch != nullptr)
		SetLatch(latch);
}

/* Tells the keeper up to where time is needed. */
void
demand(int64_t us)
{
	if (us > 0)
		raise_to(shared()->demanded_until_us, static_cast<uint64_t>(us));
}

}  // namespace

void
register_keeper()
{
	BackgroundWorker worker = {};

	strlcpy(worker.bgw_name, "snowflake keeper", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "snowflake keeper", sizeof(worker.bgw_type));
	strlcpy(worker.bgw_library_name, "snowflake", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "snowflake_keeper", sizeof(worker.bgw_function_name));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	/* A standby holds no claim; it asks for one when it is promoted. */
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = 1;
	RegisterBackgroundWorker(&worker);
}

RegistryGrant
current_grant()
{
	lock_shared_state();

	RegistryGrant copy = shared()->registry;

	unlock_shared_state();
	return copy;
}

bool
read_grant(ClaimSource *source)
{
	const RegistryGrant &registry = shared()->registry;

	if (!registry.is_usable)
		return false;
	*source = {registry.grant.node, read_limit(), registry.grant.start_us, registry.grant.granted_until_us};
	return true;
}

bool
wait_for_keeper(int64_t us, int64_t ns)
{
	static constinit WaitEvent event("SnowflakeClaim");

	demand(us);
	if (current_grant().problem[0] != '\0')
		return false;
	wake_keeper();
	if (ns == 0)
		return false;
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 std::max<int64_t>(std::min(ns, longest_look_ns) / ns_per_ms, 1), event.number());
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	return true;
}

void
ask_for_time_after(int64_t us)
{
	if (current_grant().grant.granted_until_us - us >= claim_window_setting() * us_per_ms / 2)
		return;
	demand(us);
	wake_keeper();
}

ClaimState
claim_state(const RegistryGrant &grant, int64_t now_us)
{
	if ((grant.state == ClaimState::held || grant.state == ClaimState::suspended) &&
		grant.grant.granted_until_us <= now_us)
		return ClaimState::lost;
	return grant.state;
}

const char *
claim_state_name(ClaimState state)
{
	switch (state)
	{
		case ClaimState::none:
			return "none";
		case ClaimState::held:
			return "held";
		case ClaimState::suspended:
			return "suspended";
		case ClaimState::lost:
			return "lost";
	}
	return nullptr;
}

/*
 * The role that is asked for, and the one that reads the error: a function of a superuser's must not show it to its
 * callers.
 */
bool
may_see_registry()
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_SETTINGS) &&
		has_privs_of_role(GetSessionUserId(), ROLE_PG_READ_ALL_SETTINGS);
}

int
detail_of_registry(const char *matter, const char *problem)
{
	const char *registry = registry_address().shown;
	const char *group = registry_group_setting();

	if (may_see_registry())
		return matter[0] != '\0' ?
			errdetail("Registry \"%s\", group \"%s\", %s: %s.", registry, group, matter, problem) :
			errdetail("Registry \"%s\", group \"%s\": %s.", registry, group, problem);
	if (matter[0] == '\0')
	{
		errdetail_log("Registry \"%s\", group \"%s\": %s.", registry, group, problem);
		return errdetail("The server's log says why.");
	}
	errdetail_log("Registry \"%s\", group \"%s\", %s: %s.", registry, group, matter, problem);
	return errdetail("%c%s; the server's log says why.", pg_toupper(static_cast<unsigned char>(matter[0])), matter + 1);
}

int64_t
claim_since(const RegistryGrant &grant, int64_t now_us)
{
	return claim_state(grant, now_us) == grant.state ? unix_time(grant.since) : grant.grant.granted_until_us;
}

void
report_ungranted(int64_t now_us)
{
	RegistryGrant grant = current_grant();
	ClaimState	state = claim_state(grant, now_us);
	int64		since_us = claim_since(grant, now_us);
	bool		has_keeper = shared()->keeper_latch.load(std::memory_order_acquire) != nullptr;
	const char *problem = !has_keeper ? "this server's keeper is not running" :
		grant.problem[0] != '\0' ? grant.problem : "it has not answered in time";
	const char *hint = has_keeper ? facts_of(registry_address().kind).ungranted_hint :
		"It is a background worker, and needs one of \"max_worker_processes\"; when it was ended it comes back after a "
		"second.";

	/* What a keeper that is there has met names hosts and users. */
	if (state == ClaimState::none)
	{
		char		claim[100];

		snprintf(claim, sizeof(claim), "claim \"none\" since %s", time_text(since_us).text);
		ereport(ERROR,
				(errcode(sqlstate_registry),
				 errmsg("cannot make ids: the registry has granted no node number"),
				 detail_of_registry(claim, problem),
				 errhint("%s", hint)));
	}

	char		claim[300];

	snprintf(claim, sizeof(claim), "node number %llu, granted until %s, claim \"%s\" since %s",
			 static_cast<unsigned long long>(grant.grant.node), time_text(grant.grant.granted_until_us).text,
			 claim_state_name(state), time_text(since_us).text);
	ereport(ERROR,
			(errcode(sqlstate_registry),
			 grant.is_usable ?
			 errmsg("cannot make ids: the registry grants the node number no further") :
			 errmsg("cannot make ids: the claim on the node number is lost"),
			 detail_of_registry(claim, problem),
			 errhint("%s", hint)));
}

}  // namespace snowflake
