/*
 * client.h
 *		Helpers for the registry's clients: the keeper, which holds this
 *		server's claim, and snowflake_internal.set_aside().
 */
#ifndef SNOWFLAKE_REGISTRY_CLIENT_H
#define SNOWFLAKE_REGISTRY_CLIENT_H

#include "registry/store.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/* What is wrong where a claim is changed by others each time between its read and its write. */
constexpr const char *changing_claim = "the claim kept changing concurrently";

/* Loads the module for the registry that is set, once. */
const Store *load_store();

/* Fills what the settings say, and this server's description for people; the nonce and how to wait are the caller's. */
void		fill_context(StoreContext *context);

/* The layout of this server's ids, by its canonical text. */
const char *server_layout_text();

/* snowflake.claim_window */
int64_t		claim_window_us();

/*
 * Waits for the latch, which is then still set, or the socket, where it is one, and
 * for timeout_ms unless that is negative.
 */
int			wait_for_latch_or(int socket, int events, long timeout_ms);

/* Store::read(); a registry without a limit of its own for how far ahead a fence may lie has this server's. */
bool		read_store(const Store *store, const StoreContext *context, uint64_t node, Claim *claim,
					   RegistryTime *registry, Problem *problem);

/* Who holds a claim. */
void		set_holder(Problem *problem, const Claim &claim);

/* Why a claim is not written; now_us is what this server's clock reads. */
void		set_verdict(Problem *problem, Verdict verdict, const Claim &claim, const RegistryTime &registry,
						int64_t now_us);

}  // namespace snowflake

#endif
