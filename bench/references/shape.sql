-- In a database with an application's tables: prints them as statements, without their foreign keys, and what these were,
-- as rows of truth.
--
-- The tables come twice, in the schemas target and source.  Integers become bigint, and a key that refers to nothing is
-- generated.
CREATE TEMPORARY TABLE app_table AS
SELECT c.oid, c.relname, k.conkey
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
	LEFT JOIN pg_constraint AS k ON k.conrelid = c.oid AND k.contype = 'p'
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
	AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema';

CREATE TEMPORARY TABLE app_column AS
SELECT t.oid, a.attnum, a.attname, y.typcategory = 'N' AND y.typname ~ '^int[248]$' AS is_integer,
	CASE WHEN y.typname ~ '^int[248]$' THEN 'bigint'
		WHEN a.atttypid < 16384 THEN format_type(a.atttypid, a.atttypmod) ELSE 'text' END AS type
FROM app_table AS t JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
	JOIN pg_type AS y ON y.oid = a.atttypid;

-- Foreign keys of one column to a key of one integer.
CREATE TEMPORARY TABLE app_reference AS
SELECT DISTINCT ON (f.conrelid, f.conkey[1]) f.conrelid AS oid, f.conkey[1] AS attnum, f.confrelid AS referenced
FROM pg_constraint AS f JOIN app_table AS r ON r.oid = f.confrelid AND r.conkey = f.confkey
	JOIN app_column AS c ON c.oid = f.conrelid AND c.attnum = f.conkey[1] AND c.is_integer
WHERE f.contype = 'f' AND cardinality(f.conkey) = 1
ORDER BY f.conrelid, f.conkey[1], f.oid;

SELECT format('CREATE TABLE %I.%I (%s%s);', s.schema, t.relname,
	string_agg(format('%I %s%s', c.attname, c.type,
		CASE WHEN t.conkey = ARRAY[c.attnum] AND c.is_integer
				AND NOT EXISTS (SELECT FROM app_reference AS f WHERE f.oid = c.oid AND f.attnum = c.attnum)
			THEN ' DEFAULT snowflake_nextval()' END), ', ' ORDER BY c.attnum),
	', PRIMARY KEY (' || (SELECT string_agg(quote_ident(k.attname), ', ' ORDER BY array_position(t.conkey, k.attnum))
		FROM app_column AS k WHERE k.oid = t.oid AND k.attnum = ANY (t.conkey)) || ')')
FROM (VALUES ('target'), ('source')) AS s (schema) CROSS JOIN app_table AS t JOIN app_column AS c ON c.oid = t.oid
GROUP BY s.schema, t.oid, t.relname, t.conkey
ORDER BY 1;

-- Where a key is itself a reference, its ids are of the table that it refers to.
WITH RECURSIVE chain AS (
	SELECT f.oid, f.attnum, f.referenced, 1 AS depth FROM app_reference AS f
	UNION ALL
	SELECT c.oid, c.attnum, f.referenced, c.depth + 1
	FROM chain AS c JOIN app_table AS t ON t.oid = c.referenced
		JOIN app_reference AS f ON f.oid = t.oid AND t.conkey = ARRAY[f.attnum]
	WHERE c.depth < 9
)
SELECT format('INSERT INTO truth VALUES (%L, %L, %L, %L);', t.relname, c.attname, array_agg(r.relname ORDER BY f.depth),
	t.conkey = ARRAY[c.attnum])
FROM chain AS f JOIN app_column AS c USING (oid, attnum) JOIN app_table AS t USING (oid)
	JOIN app_table AS r ON r.oid = f.referenced
GROUP BY t.relname, c.attname, t.conkey, c.attnum
ORDER BY 1;

-- Columns of other foreign keys: whatever is said of them is neither right nor wrong.
SELECT format('INSERT INTO truth VALUES (%L, %L, NULL, NULL);', t.relname, c.attname)
FROM pg_constraint AS f JOIN app_table AS t ON t.oid = f.conrelid JOIN app_column AS c ON c.oid = t.oid AND c.attnum = ANY (f.conkey)
WHERE f.contype = 'f' AND NOT EXISTS (SELECT FROM app_reference AS r WHERE r.oid = c.oid AND r.attnum = c.attnum)
GROUP BY t.relname, c.attname;

-- Rows: keys from 1 on, references to any of them, a third of them null where that can be; other integers are small.
SELECT format('INSERT INTO source.%I (%s) SELECT %s FROM generate_series(1, %s) AS g ON CONFLICT DO NOTHING;',
	t.relname, string_agg(quote_ident(c.attname), ', ' ORDER BY c.attnum),
	string_agg(CASE
		WHEN f.referenced IS NOT NULL THEN format('%s (1 + abs(hashint8extended(g, %s)) %% %s) END',
			CASE WHEN c.attnum = ANY (t.conkey) THEN 'CASE WHEN true THEN'
				ELSE format('CASE WHEN g %% 3 <> %s THEN', c.attnum % 3) END,
			c.attnum, 20 + abs(hashtext(r.relname)) % 1500)
		WHEN c.attnum = ANY (t.conkey) AND c.is_integer THEN 'g'
		WHEN c.attnum = ANY (t.conkey) THEN 'NULL'
		ELSE format('g %% %s', 2 + c.attnum) END, ', ' ORDER BY c.attnum),
	20 + abs(hashtext(t.relname)) % 1500)
FROM app_table AS t JOIN app_column AS c ON c.oid = t.oid
	LEFT JOIN app_reference AS f ON f.oid = c.oid AND f.attnum = c.attnum
	LEFT JOIN app_table AS r ON r.oid = f.referenced
WHERE c.is_integer
	-- Keys of texts would be null.
	AND NOT EXISTS (SELECT FROM app_column AS k WHERE k.oid = t.oid AND k.attnum = ANY (t.conkey) AND NOT k.is_integer)
GROUP BY t.oid, t.relname
ORDER BY 1;
