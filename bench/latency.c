/*
 * latency.c
 *		How long each of many calls of a function takes.
 */
#include "postgres.h"

#include <time.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/array.h"

PG_MODULE_MAGIC;

/* Four buckets for each power of two. */
#define BUCKETS_OF_POWER 4
#define BUCKETS (64 * BUCKETS_OF_POWER)

static int64
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64CONST(1000000000) + now.tv_nsec;
}

static int
bucket_of(uint64 ns)
{
	int			power = ns < BUCKETS_OF_POWER ? 2 : pg_leftmost_one_pos64(ns);

	return power * BUCKETS_OF_POWER + ((ns >> (power - 2)) & (BUCKETS_OF_POWER - 1));
}

/*
 * bench_latency(function oid, calls bigint) returns bigint[]
 *
 * Calls a function without arguments.  Bucket b, counted from 0, has the calls that took less than
 * 2^(b / 4) * (1 + (b % 4 + 1) / 4) ns, and no less than the bound before; the element after the buckets is the longest
 * call in ns.  What it takes to read the clock, some 20 ns, is in each.
 */
PG_FUNCTION_INFO_V1(bench_latency);
Datum
bench_latency(PG_FUNCTION_ARGS)
{
	FmgrInfo	function;
	int64		calls = PG_GETARG_INT64(1);
	int64		longest = 0;
	Datum	   *counts = palloc0((BUCKETS + 1) * sizeof(Datum));

	fmgr_info(PG_GETARG_OID(0), &function);
	for (int64 i = 0; i < calls; i++)
	{
		int64		start;
		int64		ns;

		CHECK_FOR_INTERRUPTS();
		start = now_ns();
		{
			LOCAL_FCINFO(call, 0);

			InitFunctionCallInfoData(*call, &function, 0, InvalidOid, NULL, NULL);
			(void) FunctionCallInvoke(call);
		}
		ns = now_ns() - start;
		counts[bucket_of(ns)]++;
		longest = Max(longest, ns);
	}
	counts[BUCKETS] = Int64GetDatum(longest);
	PG_RETURN_ARRAYTYPE_P(construct_array(counts, BUCKETS + 1, INT8OID, 8, true, TYPALIGN_DOUBLE));
}
