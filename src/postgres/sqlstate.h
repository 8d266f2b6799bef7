/*
 * sqlstate.h
 *		The SQLSTATEs of this extension: class SF, for what passes by itself, so
 *		that a caller may try again.  PostgreSQL's headers come before this one.
 */
#ifndef SNOWFLAKE_POSTGRES_SQLSTATE_H
#define SNOWFLAKE_POSTGRES_SQLSTATE_H

namespace snowflake __attribute__((visibility("hidden")))
{

/* The clock has not reached the time of the next id. */
constexpr int sqlstate_clock = MAKE_SQLSTATE('S', 'F', '0', '0', '1');

/* The registry grants no node number at the moment, or no more time. */
constexpr int sqlstate_registry = MAKE_SQLSTATE('S', 'F', '0', '0', '2');

/* The session has taken as many ids as it may at the moment. */
constexpr int sqlstate_rate = MAKE_SQLSTATE('S', 'F', '0', '0', '3');

}  // namespace snowflake

#endif
