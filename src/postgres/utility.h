/*
 * utility.h
 *		What this library sees of utility statements.
 */
#ifndef SNOWFLAKE_POSTGRES_UTILITY_H
#define SNOWFLAKE_POSTGRES_UTILITY_H

namespace snowflake __attribute__((visibility("hidden")))
{

/* From here on it sees them; called while the library is preloaded. */
void		watch_utility_statements();

}  // namespace snowflake

#endif
