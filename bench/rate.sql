-- first tick | last tick | ids | processor seconds | seconds, of this session
SELECT pg_backend_pid() AS pid, :'query' = 'snowflake_nextval_batch' AS batch \gset
\setenv PID :pid
\set busy `awk '{print $14 + $15}' /proc/$PID/stat`
SELECT clock_timestamp() AS start \gset
\if :batch
SELECT min(id) AS first, max(id) AS last, count(*) AS ids FROM (SELECT snowflake_nextval_batch(:ids) AS id) made \gset
\else
SELECT min(id) AS first, max(id) AS last, count(*) AS ids
FROM (SELECT snowflake_nextval() AS id FROM (SELECT generate_series(1, :ids) OFFSET 0) calls) made \gset
\endif
SELECT extract(epoch FROM clock_timestamp() - :'start'::timestamptz) AS seconds \gset
\set busy_after `awk '{print $14 + $15}' /proc/$PID/stat`
SELECT snowflake_field(:first, 'timestamp'), snowflake_field(:last, 'timestamp'), :ids,
	(:busy_after - :busy) / 100.0, :seconds;
