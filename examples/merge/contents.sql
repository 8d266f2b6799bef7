-- All rows of all tables of the game, in an order that does not depend on where they lie.
SELECT format('SELECT %L, t FROM %I AS t ORDER BY t', c.relname, c.relname)
FROM pg_class AS c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
	AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY c.relname
\gexec
