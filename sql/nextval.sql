-- snowflake_nextval(): what holds for every id, wherever it is asked for.

-- positive, and made by this server
SELECT snowflake_nextval() > 0 AS positive, snowflake_node(snowflake_nextval()) AS node;

-- made now: not ahead of the clock, and not before the statement
SELECT snowflake_timestamp(snowflake_nextval()) <= clock_timestamp() AS not_ahead;
SELECT snowflake_timestamp(snowflake_nextval()) >= statement_timestamp() - interval '1 ms' AS not_old;

-- one statement, many ticks: every id greater than the one before
SELECT count(*), count(DISTINCT id), bool_and(coalesce(id > before, true)) AS ascending
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before
	FROM (SELECT n, snowflake_nextval() AS id FROM generate_series(1, 50000) n OFFSET 0) made) pairs;

-- called anew for every row, and for every mention
SELECT count(DISTINCT id) FROM (SELECT snowflake_nextval() AS id FROM generate_series(1, 10) OFFSET 0) made;
SELECT snowflake_nextval() < snowflake_nextval() AS ascending;
SELECT a < b AND b < c AS ascending FROM (SELECT snowflake_nextval() a, snowflake_nextval() b, snowflake_nextval() c OFFSET 0) made;

-- as a primary key's default
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), item text);
INSERT INTO orders (item) VALUES ('first');
INSERT INTO orders (item) VALUES ('second'), ('third');
INSERT INTO orders (id, item) VALUES (DEFAULT, 'fourth');
INSERT INTO orders (item) SELECT 'more ' || n FROM generate_series(1, 996) n;
COPY orders (item) FROM stdin;
copied 1
copied 2
copied 3
\.
SELECT item FROM orders ORDER BY id FETCH FIRST 4 ROWS ONLY;
SELECT item FROM orders ORDER BY id DESC FETCH FIRST 4 ROWS ONLY;
SELECT count(*), min(snowflake_node(id)), max(snowflake_node(id)) FROM orders;
WITH made AS (INSERT INTO orders (item) VALUES ('returned') RETURNING id, item)
SELECT item, id > (SELECT max(id) FROM orders) AS newest FROM made;
UPDATE orders SET id = DEFAULT WHERE item = 'first';
SELECT item FROM orders ORDER BY id DESC FETCH FIRST 1 ROW ONLY;

-- an id given by the client is only a number
INSERT INTO orders (id, item) VALUES (1, 'given');
INSERT INTO orders (id, item) VALUES (1, 'given');
DELETE FROM orders WHERE id = 1;

-- existing rows get ids of their own
CREATE TABLE old (name text);
INSERT INTO old SELECT 'old ' || n FROM generate_series(1, 100) n;
ALTER TABLE old ADD COLUMN id bigint DEFAULT snowflake_nextval();
SELECT count(DISTINCT id), count(*) FROM old;

-- two tables never share an id
SELECT count(*) FROM old JOIN orders USING (id);

-- what is rolled back is lost; what follows sorts after it
CREATE TEMP TABLE seen (n serial, id bigint);
BEGIN;
SELECT snowflake_nextval() AS lost \gset
ROLLBACK;
INSERT INTO seen (id) VALUES (:lost), (snowflake_nextval());
BEGIN;
INSERT INTO seen (id) VALUES (snowflake_nextval());
SAVEPOINT here;
SELECT snowflake_nextval() AS lost \gset
ROLLBACK TO here;
INSERT INTO seen (id) VALUES (:lost), (snowflake_nextval());
COMMIT;
DO $$
DECLARE made bigint;
BEGIN
	FOR i IN 1..3 LOOP
		BEGIN
			made := snowflake_nextval();
			RAISE 'undone';
		EXCEPTION WHEN OTHERS THEN
			INSERT INTO seen (id) VALUES (made);
		END;
	END LOOP;
END
$$;
SELECT count(*), bool_and(coalesce(id > before, true)) AS ascending
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before FROM seen) pairs;

-- a snapshot does not hold them back
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE;
SELECT snowflake_nextval() < snowflake_nextval() AS ascending;
COMMIT;

-- read-only transactions; no transaction id is assigned
BEGIN READ ONLY;
SELECT snowflake_nextval() > 0 AS made;
SELECT count(*) FROM snowflake_nextval_batch(10000);
SELECT pg_current_xact_id_if_assigned() IS NULL AS no_xid;
COMMIT;

-- not where the value has to stay the same
CREATE TABLE stays (id bigint GENERATED ALWAYS AS (snowflake_nextval()) STORED);
\set VERBOSITY sqlstate
CREATE INDEX ON orders (snowflake_nextval());
\set VERBOSITY default
CREATE TABLE stays (id bigint) PARTITION BY RANGE ((id + snowflake_nextval()));

-- made in parallel workers
CREATE TABLE numbers AS SELECT n FROM generate_series(1, 10000) n;
ANALYZE numbers;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET parallel_leader_participation = off;
EXPLAIN (COSTS OFF, VERBOSE) SELECT n, snowflake_nextval() AS id FROM numbers;
SELECT snowflake_nextval() AS before \gset
CREATE TEMP TABLE made AS SELECT n, snowflake_nextval() AS id FROM numbers;
SELECT count(*), count(DISTINCT id), bool_and(id > :before AND id < snowflake_nextval()) AS between,
	min(snowflake_node(id)), max(snowflake_node(id)) FROM made;
-- ids made in workers are not this session's
SELECT snowflake_nextval() AS mine \gset
CREATE TEMP TABLE made_by_others AS SELECT snowflake_nextval() AS id FROM numbers;
SELECT snowflake_lastval() = :mine AS mine;
EXPLAIN (COSTS OFF, VERBOSE) SELECT n, snowflake_lastval() AS id FROM numbers;

DROP TABLE orders, old, numbers;
