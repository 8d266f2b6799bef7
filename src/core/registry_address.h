/*
 * registry_address.h
 *		The text of the setting snowflake.registry: where claims come from.
 *
 *		postgresql://[user@]host[:port],.../database[?parameter=value&...]
 *		zookeeper://host:port,.../path
 *
 * An address may hold no password: it is shown in errors, and settings can be
 * read by others.  A Reason never repeats any of the text, which might be one.
 */
#ifndef SNOWFLAKE_CORE_REGISTRY_ADDRESS_H
#define SNOWFLAKE_CORE_REGISTRY_ADDRESS_H

#include <string_view>

#include "core/reason.h"

namespace snowflake __attribute__((visibility("hidden")))
{

enum class RegistryKind
{
	none,						/* the empty text */
	postgresql,
	zookeeper,
};

struct RegistryAddress
{
	RegistryKind kind;
	char		shown[256];		/* for messages: without user and parameters */

	/* zookeeper */
	char		hosts[512];
	char		path[256];		/* from the first slash */
};

bool		parse_registry_address(std::string_view text, RegistryAddress *address, Reason *reason) noexcept;

}  // namespace snowflake

#endif
