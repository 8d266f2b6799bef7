/*
 * utility.cpp
 *		What this library sees of utility statements: DISCARD, which forgets the
 *		session's newest id, and COPY FROM, which keeps its fast path.
 */
#include "postgres/utility.h"

#include "postgres/copy_from.h"
#include "postgres/lastval.h"

#include "postgres/pg.h"

namespace snowflake
{

namespace
{

ProcessUtility_hook_type previous_utility;

/* As PostgreSQL's own lastval(): a pooler's next client must not see the newest id. */
bool
forgets_id(Node *tree)
{
	if (!IsA(tree, DiscardStmt))
		return false;

	DiscardMode target = castNode(DiscardStmt, tree)->target;

	return target == DISCARD_ALL || target == DISCARD_SEQUENCES;
}

void
process_utility(PlannedStmt *statement, const char *query, bool read_only_tree, ProcessUtilityContext context,
				ParamListInfo parameters, QueryEnvironment *environment, DestReceiver *receiver,
				QueryCompletion *completion)
{
	/* Looked at before: the statement may be gone afterwards. */
	bool		forgets = forgets_id(statement->utilityStmt);

	/* Also for any other statement, which ends the planning of a COPY FROM that it runs in. */
	utility_statement_begins(statement->utilityStmt);
	(previous_utility != nullptr ? previous_utility : standard_ProcessUtility)
		(statement, query, read_only_tree, context, parameters, environment, receiver, completion);
	utility_statement_begins(nullptr);
	if (forgets)
		forget_newest_id();
}

}  // namespace

void
watch_utility_statements()
{
	previous_utility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}

}  // namespace snowflake
