/*
 * registry_kind.h
 *		What differs between the kinds of registries outside of their modules.
 */
#ifndef SNOWFLAKE_POSTGRES_REGISTRY_KIND_H
#define SNOWFLAKE_POSTGRES_REGISTRY_KIND_H

#include <cstddef>

#include "core/registry_address.h"

namespace snowflake __attribute__((visibility("hidden")))
{

struct RegistryKindFacts
{
	const char *name;
	const char *module;			/* the file, without its suffix */
	const char *package;		/* Debian's, with the library that the module is built with */
	const char *ungranted_hint; /* for an error: the registry has not granted what is needed */
	const char *setting_back;	/* how to take back what a wrong clock was granted; "" where nothing does */
};

inline constexpr RegistryKindFacts registry_in_postgresql = {
	"PostgreSQL", "snowflake_postgresql", "libpq-dev",
	"Ids come again by themselves as soon as the registry grants time; its view snowflake_claims shows who holds what, "
	"and this server's log what the keeper does.",
	"If a wrong clock has moved the registry's time ahead and no id was made there, "
	"the registry's owner can set it back with snowflake_registry_repair() while this server is stopped. ",
};

inline constexpr RegistryKindFacts registry_in_zookeeper = {
	"ZooKeeper", "snowflake_zookeeper", "libzookeeper-st-dev",
	"Ids come again by themselves as soon as the registry grants time; its znodes show who holds what, "
	"and this server's log what the keeper does.",
	"",
};

/* Where there is a registry. */
constexpr const RegistryKindFacts &
facts_of(RegistryKind kind) noexcept
{
	switch (kind)
	{
		case RegistryKind::zookeeper:
			return registry_in_zookeeper;
		case RegistryKind::none:
		case RegistryKind::postgresql:
			break;
	}
	return registry_in_postgresql;
}

/*
 * Writes the path of the module for such a registry, which lies beside this library: that need not be PostgreSQL's own
 * folder (extension_control_path).  Returns whether there is one.
 */
bool		find_module(const RegistryKindFacts &kind, char *path, size_t size);

}  // namespace snowflake

#endif
