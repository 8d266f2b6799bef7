-- What snowflake_merge_check() finds, a line or two each.
\pset format unaligned
\pset tuples_only
SELECT concat(severity, ': ', concat_ws(', ', "table", object), ': ', problem, ' (' || count, ', such as ' || example,
			  CASE WHEN count IS NOT NULL THEN ')' END, E'\n    ' || nullif(advice, ''))
FROM snowflake_merge_check('{camelot}', 'public')
ORDER BY array_position('{error,warning,info}', severity), "table", object, problem;
