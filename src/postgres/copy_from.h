/*
 * copy_from.h
 *		COPY FROM keeps its fast path, though snowflake_nextval() is volatile.
 */
#ifndef SNOWFLAKE_POSTGRES_COPY_FROM_H
#define SNOWFLAKE_POSTGRES_COPY_FROM_H

namespace snowflake __attribute__((visibility("hidden")))
{

/* A utility statement begins, or has ended: is it a COPY FROM, whose defaults are to be planned next? */
void		copy_from_begins(bool plans_defaults);

}  // namespace snowflake

#endif
