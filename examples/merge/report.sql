SELECT severity, relation, object, problem, count, example FROM snowflake_migrate.report WHERE run = :run
ORDER BY array_position('{error,warning,info}', severity), relation, object, problem, source;
