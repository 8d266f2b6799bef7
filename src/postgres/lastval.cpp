/*
 * lastval.cpp
 *		The newest id that this session was given, and what forgets it.
 */
#include "postgres/lastval.h"

#include "postgres/pg.h"

namespace snowflake
{

namespace
{

constexpr NewestId no_id = {-1, 0};

}  // namespace

constinit NewestId newest_id = no_id;
constinit uint64_t last_turn;

void
forget_newest_id()
{
	newest_id = no_id;
}

}  // namespace snowflake

using namespace snowflake;

extern "C"
{

/* snowflake_lastval() bigint: this session's newest id. */
PG_FUNCTION_INFO_V1(snowflake_lastval);
Datum
snowflake_lastval(PG_FUNCTION_ARGS)
{
	if (newest_id.id < 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("snowflake_lastval is not yet defined in this session"),
				 errhint("It is the newest id that snowflake_nextval() or snowflake_nextval_batch() gave this "
						 "session.")));
	PG_RETURN_INT64(newest_id.id);
}

}
