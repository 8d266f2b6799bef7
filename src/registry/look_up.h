/*
 * look_up.h
 *		The addresses of the registry's host.
 */
#ifndef SNOWFLAKE_REGISTRY_LOOK_UP_H
#define SNOWFLAKE_REGISTRY_LOOK_UP_H

#include "registry/store.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/* StoreContext::look_up() */
LookedUp	look_up(const StoreContext *context, const char *host, long limit_ms, Addresses *found, Problem *problem);

}  // namespace snowflake

#endif
