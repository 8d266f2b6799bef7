/*
 * constant.c
 *		A C function that returns a constant: what calling any function costs.
 */
#include "postgres.h"

#include "fmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(bench_constant);
Datum
bench_constant(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(42);
}
