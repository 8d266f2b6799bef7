\pset format unaligned
\pset tuples_only
\set file `mktemp -u /tmp/snowflake.XXXXXX`
CREATE SEQUENCE loading;
CREATE TABLE loaded (id bigint PRIMARY KEY, v int);
CREATE TABLE measured (name text, seconds float8, wal numeric);
COPY (SELECT i FROM generate_series(1, 1000000) AS i) TO :'file';
CREATE PROCEDURE load(id text, name text, file text) LANGUAGE plpgsql AS $$
DECLARE
	start timestamptz;
	start_lsn pg_lsn;
BEGIN
	EXECUTE format('ALTER TABLE loaded ALTER id SET DEFAULT %s', id);
	TRUNCATE loaded;
	COMMIT;
	start := clock_timestamp();
	start_lsn := pg_current_wal_insert_lsn();
	EXECUTE format('COPY loaded (v) FROM %L', file);
	COMMIT;
	INSERT INTO measured
	VALUES (name, extract(epoch FROM clock_timestamp() - start), pg_current_wal_insert_lsn() - start_lsn);
	COMMIT;
END
$$;
/* They take turns.  The last is what PostgreSQL does with any function that it does not know. */
SELECT format('CALL load(%L, %L, %L)', d.id, d.name, :'file')
FROM generate_series(1, :rounds) AS round,
	(VALUES ('snowflake_nextval()', 'snowflake_nextval()'), ('nextval(''loading'')', 'nextval()'),
		('snowflake_nextval() + (0 * random())::int', 'with random() besides')) AS d (id, name)
ORDER BY round, d.id DESC \gexec
SELECT format('  %-22s %5s s, %7s of WAL; of nextval(): %s and %s', rpad(m.name, 22), m.seconds::numeric(5, 2),
			  pg_size_pretty(m.wal), (m.seconds / n.seconds)::numeric(5, 3), (m.wal / n.wal)::numeric(5, 3))
FROM (SELECT name, percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS seconds,
			percentile_disc(0.5) WITHIN GROUP (ORDER BY wal) AS wal
	  FROM measured GROUP BY name) AS m,
	LATERAL (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS seconds,
				 percentile_disc(0.5) WITHIN GROUP (ORDER BY wal) AS wal
			 FROM measured WHERE name = 'nextval()') AS n
ORDER BY m.name DESC;
\setenv FILE :file
\! rm -f "$FILE"
