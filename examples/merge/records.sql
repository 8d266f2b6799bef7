-- How many rows, then some of each kind.
SELECT relation, constraint_name, policy, count(*), count(*) FILTER (WHERE source IS NULL) AS "of the target"
FROM snowflake_migrate.records WHERE run = :run
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;
SELECT relation, policy, coalesce(source, 'avalon') AS "of", old_key, new_key, column_name, old_value, new_value
FROM (SELECT r.*, row_number() OVER (PARTITION BY relation, policy, source IS NULL ORDER BY length(old_value) DESC, old_value, old_key) AS n
	  FROM snowflake_migrate.records AS r WHERE run = :run) AS r
WHERE n <= 3
ORDER BY 1, 2, 3, n;
