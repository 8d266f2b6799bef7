/*
 * copy_from.h
 *		COPY FROM keeps its fast path, though snowflake_nextval() is volatile.
 */
#ifndef SNOWFLAKE_POSTGRES_COPY_FROM_H
#define SNOWFLAKE_POSTGRES_COPY_FROM_H

struct Node;

namespace snowflake __attribute__((visibility("hidden")))
{

/* A utility statement begins, or has ended (null): is it a COPY FROM, whose defaults are to be planned next? */
void		utility_statement_begins(Node *statement);

}  // namespace snowflake

#endif
