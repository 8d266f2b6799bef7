-- from_ns,below_ns,calls: the buckets that have calls, and last, with equal bounds, the longest call.
\pset format unaligned
\pset tuples_only
\pset fieldsep ,
SET jit = off;
SELECT CASE WHEN u.b < 256 THEN 2 ^ (u.b / 4) * (1 + u.b % 4 / 4.0) ELSE u.n END::bigint,
	CASE WHEN u.b < 256 THEN 2 ^ (u.b / 4) * (1 + (u.b % 4 + 1) / 4.0) ELSE u.n END::bigint,
	CASE WHEN u.b < 256 THEN u.n ELSE 1 END
FROM (SELECT o.n, o.b - 1 AS b
	  FROM unnest(bench_latency('snowflake_nextval'::regproc, :calls)) WITH ORDINALITY AS o (n, b)) AS u
WHERE u.n > 0
ORDER BY u.b;
