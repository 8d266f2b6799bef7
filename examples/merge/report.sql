SELECT severity, "table", object, problem, count, example FROM snowflake_merge_report WHERE run = :run
ORDER BY array_position('{error,warning,info}', severity), "table", object, problem, source;
