/*
 * carried.h
 *		The reserved time that a database brings from another server, by a dump or by
 *		pg_upgrade.
 *
 * The limit lies outside of all databases (reservation.h), so neither carries it.
 * Two relations of the extension do, and doc/design.md says why each can:
 *
 *		snowflake_internal.restored_limit: a dump has a row with the limit of its own
 *		moment.  Restored, the row raises this server's limit; where it may not, it
 *		stays, and the database makes no ids until they lie above.
 *
 *		snowflake_internal.upgraded_limit: its one row is written by a server that
 *		pg_upgrade has started, and read by the new one.
 *
 * A session looks at both before its first id.
 */
#ifndef SNOWFLAKE_POSTGRES_CARRIED_H
#define SNOWFLAKE_POSTGRES_CARRIED_H

namespace snowflake __attribute__((visibility("hidden")))
{

/*
 * Before a session makes ids, and again when is_checked_in() has become false: takes
 * over what the database brings; an error where that is not possible (yet).  Says where
 * library and SQL are of different versions.
 */
void		check_in();
bool		is_checked_in();

/* Why check_in() would fail, for snowflake_stat; null where it would not. */
const char *carried_refusal();

/* While the library is preloaded: where pg_upgrade starts the server, sees to it that it leaves its limit. */
void		leave_limit_to_upgrade();

}  // namespace snowflake

#endif
