-- How many rows, then some of each kind.
SELECT "table", "constraint", policy, count(*), count(*) FILTER (WHERE source IS NULL) AS "of the target"
FROM snowflake_merge_records WHERE run = :run
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;
SELECT "table", policy, coalesce(source, 'avalon') AS "of", old_key, new_key, "column", old_value, new_value
FROM (SELECT r.*, row_number() OVER (PARTITION BY "table", policy, source IS NULL ORDER BY length(old_value) DESC, old_value, old_key) AS n
	  FROM snowflake_merge_records AS r WHERE run = :run) AS r
WHERE n <= 3
ORDER BY 1, 2, 3, n;
