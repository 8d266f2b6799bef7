-- snowflake_nextval_batch(): many ids in one call.

SELECT count(*), count(DISTINCT id), min(snowflake_node(id)), max(snowflake_node(id)) FROM snowflake_nextval_batch(1) id;

-- in order, over many ticks
SELECT count(*), count(DISTINCT id), bool_and(coalesce(id > before, true)) AS ascending
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before
	FROM snowflake_nextval_batch(50000) WITH ORDINALITY made (id, n)) pairs;

-- after what came before, and before what comes next
SELECT snowflake_nextval() AS before \gset
SELECT min(id) > :before AS after, max(id) AS last FROM snowflake_nextval_batch(1000) id \gset
SELECT :'after' AS after, snowflake_nextval() > :last AS before;

-- for a loader
CREATE TABLE orders (id bigint PRIMARY KEY, item int);
INSERT INTO orders SELECT snowflake_nextval_batch(10000), 0;
INSERT INTO orders SELECT id, n FROM snowflake_nextval_batch(10000) WITH ORDINALITY made (id, n);
SELECT count(*) FROM orders;
SELECT bool_and(coalesce(item > before, true)) AS ascending
FROM (SELECT item, lag(item) OVER (ORDER BY id) AS before FROM orders WHERE item > 0) pairs;
DROP TABLE orders;

-- streams: under a LIMIT, and in a cursor, what is not read is not waited for
SELECT count(*) FROM (SELECT snowflake_nextval_batch(2147483647) LIMIT 10) made;
BEGIN;
DECLARE batch CURSOR FOR SELECT snowflake_nextval_batch(2147483647) > 0 AS made;
FETCH 2 FROM batch;
MOVE 10000 IN batch;
FETCH 1 FROM batch;
ROLLBACK;

-- several at once do not share an id
SELECT count(*), count(DISTINCT id)
FROM (SELECT unnest(ARRAY[a, b]) AS id FROM (SELECT snowflake_nextval_batch(5000) a, snowflake_nextval_batch(5000) b) made) ids;
SELECT count(DISTINCT a.id), count(DISTINCT b.id), count(*) FROM snowflake_nextval_batch(3) a (id), snowflake_nextval_batch(5) b (id);

-- no ids for no number
SELECT snowflake_nextval_batch(0);
SELECT snowflake_nextval_batch(-1);
SELECT * FROM snowflake_nextval_batch(-2147483648);
\set VERBOSITY sqlstate
SELECT snowflake_nextval_batch(2147483648);
\set VERBOSITY default
SELECT count(*) FROM snowflake_nextval_batch(NULL);
