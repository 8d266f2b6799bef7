/*
 * store.h
 *		The interface of a registry's store: it keeps claims, and changes one by
 *		compare-and-swap.  The keeper and set_aside.cpp use it.
 *
 * Each kind of registry is a module of its own, which only they load: the library
 * that speaks to it is no business of other processes.  The module exports one
 * function, store_symbol, without arguments, which returns a const Store as a const void *.
 *
 * A store waits through StoreContext::wait() alone, so that its user can be stopped
 * at any moment, and no operation takes longer than the user allows.  It reports no
 * PostgreSQL errors: what went wrong goes into the Problem.
 */
#ifndef SNOWFLAKE_REGISTRY_STORE_H
#define SNOWFLAKE_REGISTRY_STORE_H

#include "core/claim.h"
#include "core/reason.h"
#include "core/registry_address.h"

namespace snowflake __attribute__((visibility("hidden")))
{

constexpr const char *store_symbol = "snowflake_store";

/* A host's addresses, as numbers; what it has more is left out. */
constexpr int max_addresses = 16;

struct Addresses
{
	int			count;
	char		text[max_addresses][64];
};

enum class LookedUp
{
	done,
	failed,
	given_up,					/* as StoreContext::wait() says */
};

/* What a store may use. */
struct StoreContext
{
	const RegistryAddress *address;
	const char *text;			/* the whole setting snowflake.registry */
	const char *group;
	const char *layout;			/* this server's, by its canonical text */
	Holder		me;
	int64_t		window_us;		/* snowflake.claim_window */
	const char *auth_file;		/* snowflake.registry_auth_file; empty: none */

	/*
	 * Waits until a socket is ready for events (WL_SOCKET_READABLE,
	 * WL_SOCKET_WRITEABLE), at most timeout_ms.  Returns the events that are
	 * ready, 0 when the timeout has passed, and -1 when the operation must be given
	 * up: its time is over, or its user has something else to do.
	 */
	int			(*wait) (int socket, int events, long timeout_ms);

	/* How much of the operation's time is left, ms; never less than 0. */
	long		(*time_left) ();

	/*
	 * Looks up a host in at most limit_ms, waiting through wait(); a number is its
	 * own address.  None at all: the system has no program for it, and the store's
	 * library is to do it.
	 */
	LookedUp	(*look_up) (const StoreContext *context, const char *host, long limit_ms, Addresses *found,
							Problem *problem);

	/* Tells the log of what the registry has and nobody can read, once; a list goes on without it. */
	void		(*pass_over) (const Problem *problem);

	/* Tells the log of a place in the registry that others may write to although it has a user, once. */
	void		(*tell_open) (const char *place);
};

struct Store
{
	/* Connects anew; an earlier connection is given up.  False with the problem. */
	bool		(*connect) (const StoreContext *context, Problem *problem);

	/* Also where there is no connection. */
	void		(*disconnect) ();

	/*
	 * Reads a claim, and the registry's time at that moment, is_other_layout left alone.  generation 0 and node alone
	 * where there is none.
	 */
	bool		(*read) (uint64_t node, int64_t window_us, Claim *claim, RegistryTime *registry, Problem *problem);

	/*
	 * Calls back for each claim of the group, in order of the numbers; may give
	 * fewer than there are only by failing.  One that can't be read is not free.
	 */
	bool		(*list) (void (*found) (const ListedClaim &claim, void *argument), void *argument, Problem *problem);

	/*
	 * Writes next in the place of before, where the registry still has that.  The
	 * holder of Form::claim counts as alive for window_us from now on, and the group has
	 * the writer's layout from the first one on; that of an assertion counts as alive as
	 * long as it did; what is released is free at once.
	 */
	Written		(*write) (Form form, const Claim &before, const Claim &next, int64_t window_us, Problem *problem);

	/*
	 * Waits for so long, or until the keeper's latch is set, or the connection
	 * breaks.  False, with the problem, where it is broken.
	 */
	bool		(*idle) (long timeout_ms, Problem *problem);

	/* Is the registry's own server this one, or a copy of it?  0 where it can't be; else its system identifier. */
	uint64_t	(*system_identifier) ();

	/*
	 * Would anybody between be taken for the registry?  True, with the reason, where the address
	 * goes over a network and does not ask the server to prove who it is.
	 */
	bool		(*trusts_network) (const StoreContext *context, Problem *reason);
};

}  // namespace snowflake

#endif
