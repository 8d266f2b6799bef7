/*
 * node.h
 *		This server's node number: what the setting snowflake.node_id means on
 *		this host and in the server's layout.
 */
#ifndef SNOWFLAKE_POSTGRES_NODE_H
#define SNOWFLAKE_POSTGRES_NODE_H

#include "core/node_id.h"

namespace snowflake __attribute__((visibility("hidden")))
{

struct ServerNode
{
	bool		usable;
	uint64_t	number;			/* where usable, and not one that the registry chooses */
	Reason		reason;			/* where not */
};

/* Finds it out; called once at server start, and what it finds holds until the next. */
void		resolve_server_node();

const ServerNode &server_node();

/* Where the number comes from, as snowflake_stat shows it; null where there is none. */
const char *node_source_name();

}  // namespace snowflake

#endif
