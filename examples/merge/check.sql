-- What snowflake_migrate.check() finds, a line or two each.  All that is about keys which are not adopted yet is one.
\pset format unaligned
\pset tuples_only
WITH found AS MATERIALIZED (
	SELECT severity, concat_ws(', ', relation, object) AS place, problem, count, example, advice,
		advice LIKE 'SELECT %snowflake\_adopt(%' IS TRUE AS is_key
	FROM snowflake_migrate.check('{camelot}', 'public')
), line AS (
	SELECT severity, '' AS place,
		format(E'%s columns can\'t hold snowflake ids, such as %s\n    %s', count(*), min(place), min(advice)) AS text
	FROM found WHERE is_key GROUP BY severity
	UNION ALL
	SELECT severity, place,
		concat(nullif(place, '') || ': ', problem, ' (' || nullif(concat_ws(', such as ', count, example), '') || ')',
			   E'\n    ' || replace(nullif(advice, ''), E'\n', E'\n    '))
	FROM found WHERE NOT is_key
)
SELECT concat(severity, ': ', text) FROM line
ORDER BY array_position('{error,warning,info}', severity), place, text;
