\set rows 1000000
\pset format unaligned
\pset tuples_only
CREATE TABLE loaded (id bigint NOT NULL DEFAULT snowflake_nextval(), v int);
\set file `mktemp -u /tmp/snowflake.XXXXXX`
COPY (SELECT i FROM generate_series(1, 1000000) i) TO :'file';
CHECKPOINT;
SELECT pg_current_wal_lsn() AS lsn, clock_timestamp() AS start \gset
COPY loaded (v) FROM :'file';
SELECT format('  default: %s s, %s of WAL', round(extract(epoch FROM clock_timestamp() - :'start'::timestamptz), 2),
	pg_size_pretty(pg_current_wal_lsn() - :'lsn'::pg_lsn));
TRUNCATE loaded;
CHECKPOINT;
SELECT clock_timestamp() AS start \gset
COPY (SELECT snowflake_nextval_batch(1000000), generate_series(1, 1000000)) TO :'file';
SELECT pg_current_wal_lsn() AS lsn, clock_timestamp() AS loading \gset
COPY loaded (id, v) FROM :'file';
SELECT format('  batch:   %s s (%s s of them for making and writing the ids), %s of WAL',
	round(extract(epoch FROM clock_timestamp() - :'start'::timestamptz), 2),
	round(extract(epoch FROM :'loading'::timestamptz - :'start'::timestamptz), 2),
	pg_size_pretty(pg_current_wal_lsn() - :'lsn'::pg_lsn));
\setenv FILE :file
\! rm -f "$FILE"
