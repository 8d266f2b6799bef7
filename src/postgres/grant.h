/*
 * grant.h
 *		What the registry grants, as backends see it: where claims come from when
 *		snowflake.registry is set.  The keeper puts it into shared memory.
 */
#ifndef SNOWFLAKE_POSTGRES_GRANT_H
#define SNOWFLAKE_POSTGRES_GRANT_H

#include "core/generator.h"
#include "postgres/shared.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/*
 * Registers the keeper (src/registry/keeper.cpp) with the postmaster; called while
 * the library is preloaded, where there is a registry.
 */
void		register_keeper();

/* A copy of the grant. */
RegistryGrant current_grant();

/* What there is to claim; false where there is nothing.  The caller holds the lock. */
bool		read_grant(ClaimSource *source);

/*
 * Waits, interruptibly, for moments and for ns at most, for the keeper to get
 * time up to us.  False at once where the keeper knows that there is nothing to be had now.
 */
bool		wait_for_keeper(int64_t us, int64_t ns);

/* With a registry only: lets the keeper ask for more where less than half a claim window is left after this time. */
void		ask_for_time_after(int64_t us);

/* The state at this time of the clock: what is granted may be over before the keeper says so. */
ClaimState	claim_state(const RegistryGrant &grant, int64_t now_us);
const char *claim_state_name(ClaimState state);

/* Since when it is in that state, Unix microseconds. */
int64_t		claim_since(const RegistryGrant &grant, int64_t now_us);

/*
 * May the caller know where the registry is and what it says?  That names hosts, databases
 * and data directories: it is for superusers and members of pg_read_all_settings, who may
 * see snowflake.registry.
 */
bool		may_see_registry();

/*
 * For ereport(): where the registry is, the matter, which may be empty, and the problem.
 * Whoever may not see the registry is told the matter alone, and the log the rest.
 */
int			detail_of_registry(const char *matter, const char *problem);

/* The error of a call that needs time which is not granted. */
[[noreturn]] void report_ungranted(int64_t now_us);

}  // namespace snowflake

#endif
