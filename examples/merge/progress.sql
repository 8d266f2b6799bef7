SELECT state, source, relation, rows_done AS done, rows_to_do AS "to do", round(rate) AS "rows/s", date_trunc('second', time_left) AS left
FROM snowflake_migrate.progress
WHERE run = (SELECT max(run) FROM snowflake_migrate.runs);
