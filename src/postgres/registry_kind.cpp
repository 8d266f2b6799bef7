/*
 * registry_kind.cpp
 *		Where the module for a kind of registry is.
 */
#include <dlfcn.h>
#include <unistd.h>

#include <cstring>

#include "postgres/registry_kind.h"

#include "postgres/pg.h"

namespace snowflake
{

bool
find_module(const RegistryKindFacts &kind, char *path, size_t size)
{
	Dl_info		library;
	const char *name;

	if (dladdr(&registry_in_postgresql, &library) == 0 || (name = strrchr(library.dli_fname, '/')) == nullptr)
		return false;
	snprintf(path, size, "%.*s/%s%s", static_cast<int>(name - library.dli_fname), library.dli_fname, kind.module,
			 DLSUFFIX);
	return access(path, R_OK) == 0;
}

}  // namespace snowflake
