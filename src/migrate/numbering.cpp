/*
 * numbering.cpp
 *		Where rows go in time, one after the other (numbering.sql).
 */
#include <algorithm>

#include "postgres/pg.h"

extern "C"
{

PG_FUNCTION_INFO_V1(snowflake_migrate_next_slot);

/*
 * next_slot(last bigint, at bigint): the slot of a row whose tick begins at the slot at, after that of the row before.
 * No two are equal; past the greatest bigint there is none.
 */
Datum
snowflake_migrate_next_slot(PG_FUNCTION_ARGS)
{
	const int64 last = PG_GETARG_INT64(0);
	const int64 at = PG_GETARG_INT64(1);

	if (last == PG_INT64_MAX)
		ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
	PG_RETURN_INT64(std::max(last + 1, at));
}

}
