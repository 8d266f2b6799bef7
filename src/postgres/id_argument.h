/*
 * id_argument.h
 *		Ids that are given to functions.
 */
#ifndef SNOWFLAKE_POSTGRES_ID_ARGUMENT_H
#define SNOWFLAKE_POSTGRES_ID_ARGUMENT_H

#include "postgres/pg.h"

namespace snowflake __attribute__((visibility("hidden")))
{

inline void
refuse_negative(int64 id)
{
	if (id < 0)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("id %lld is negative", static_cast<long long>(id)),
				 errdetail("Snowflake ids lie between 0 and 9223372036854775807."),
				 errhint("Check that it is a snowflake id.")));
}

}  // namespace snowflake

#endif
