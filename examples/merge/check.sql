-- What snowflake_migrate.check() finds, a line or two each.
\pset format unaligned
\pset tuples_only
WITH line AS (
	SELECT severity, place,
		concat(nullif(place, '') || ': ', problem, ' (' || nullif(concat_ws(', such as ', count, example), '') || ')',
			   E'\n    ' || replace(nullif(advice, ''), E'\n', E'\n    ')) AS text
	FROM snowflake_migrate.check('{camelot}', 'public'), concat_ws(', ', relation, object) AS place
)
SELECT concat(severity, ': ', text) FROM line
ORDER BY array_position('{error,warning,info}', severity), place, text;
