/*
 * shown.h
 *		What a caller gave, as errors repeat it.
 */
#ifndef SNOWFLAKE_POSTGRES_SHOWN_H
#define SNOWFLAKE_POSTGRES_SHOWN_H

#include "postgres/pg.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/* Its beginning alone, where it is long: errors go into logs, which must not be filled by them. */
inline const char *
shown(const text *given)
{
	constexpr int most_bytes = 250;
	const int	length = VARSIZE_ANY_EXHDR(given);

	if (length <= most_bytes)
		return text_to_cstring(given);
	return psprintf("%.*s...", pg_mbcliplen(VARDATA_ANY(given), length, most_bytes), VARDATA_ANY(given));
}

}  // namespace snowflake

#endif
