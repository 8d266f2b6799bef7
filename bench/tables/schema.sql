-- A generated schema of :tables tables, in two sources and the target: each but the first ten refers to two others, half of
-- them have 20 rows in each source, the others none.
CREATE SCHEMA one;
CREATE SCHEMA two;
CREATE SCHEMA world;
SELECT format('CREATE TABLE %I.t%s (id bigint PRIMARY KEY %s, name text UNIQUE, n int CHECK (n >= 0), at timestamptz, note text%s)',
		s.name, i, CASE s.name WHEN 'world' THEN 'DEFAULT snowflake_nextval()' ELSE '' END,
		CASE WHEN i > 10 THEN format(', first_id bigint REFERENCES %1$I.t%2$s, second_id bigint NOT NULL REFERENCES %1$I.t%3$s',
									 s.name, (i * 7) % (i - 1) + 1, (i * 3) % 10 + 1) ELSE '' END)
FROM unnest('{one,two,world}'::name[]) AS s (name), generate_series(1, :tables) AS i
ORDER BY s.name, i \gexec
SELECT format('INSERT INTO %I.t%s (id, name, n%s) SELECT g, %L || g, g%s FROM generate_series(1, 20) AS g',
		s.name, i, CASE WHEN i > 10 THEN ', second_id' ELSE '' END, s.name, CASE WHEN i > 10 THEN ', g' ELSE '' END)
FROM unnest('{one,two}'::name[]) AS s (name), generate_series(1, :tables) AS i
WHERE i <= 10 OR i % 2 = 0
ORDER BY s.name, i \gexec
