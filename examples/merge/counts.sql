-- The rows of each table, here and there.
SELECT string_agg(format('SELECT %L AS relation, (SELECT count(*) FROM %s) AS avalon, (SELECT count(*) FROM camelot.%I) AS camelot',
						 c.relname, c.oid::regclass, c.relname), E'\nUNION ALL\n' ORDER BY c.relname)
FROM pg_class AS c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
	AND EXISTS (SELECT FROM pg_class AS s WHERE s.relnamespace = 'camelot'::regnamespace AND s.relname = c.relname)
\gexec
