-- snowflake_lastval(): the newest id of this session, which is a fresh one.
SELECT snowflake_lastval();
SELECT node_id FROM snowflake_stat;
SELECT snowflake_node(1);
SELECT snowflake_lastval();

SELECT snowflake_nextval() AS id \gset
SELECT snowflake_lastval() = :id AS same;
SELECT snowflake_lastval() = :id AS same;

-- the newest of several
SELECT max(id) AS newest FROM (SELECT snowflake_nextval() AS id FROM generate_series(1, 100) OFFSET 0) made \gset
SELECT snowflake_lastval() = :newest AS same;
SELECT max(id) AS newest FROM snowflake_nextval_batch(100) id \gset
SELECT snowflake_lastval() = :newest AS same;
CREATE TEMP TABLE orders (id bigint DEFAULT snowflake_nextval(), item text);
INSERT INTO orders (item) VALUES ('first'), ('second');
SELECT item FROM orders WHERE id = snowflake_lastval();

-- kept over a rollback, where the id is lost
BEGIN;
SELECT snowflake_nextval() AS lost \gset
ROLLBACK;
SELECT snowflake_lastval() = :lost AS same;

-- kept over a call that gave none
SELECT snowflake_nextval_batch(0);
SELECT snowflake_lastval() = :lost AS same;

-- the newest of ids that are given in turns: those of a batch that is still being read are older
BEGIN;
DECLARE batch CURSOR FOR SELECT snowflake_nextval_batch(3) AS id;
FETCH batch \gset first_
SELECT snowflake_lastval() = :first_id AS same;
SELECT snowflake_nextval() AS newest \gset
FETCH batch \gset second_
SELECT :second_id < :newest AS older, snowflake_lastval() = :newest AS same;
COMMIT;

-- forgotten like PostgreSQL's own
CREATE TEMP SEQUENCE counter;
SELECT nextval('counter'), snowflake_nextval() AS id \gset
DISCARD PLANS;
RESET ALL;
SELECT lastval(), snowflake_lastval() = :id AS same;
DISCARD SEQUENCES;
SELECT lastval();
SELECT snowflake_lastval();
SELECT snowflake_nextval() AS id \gset
SELECT snowflake_lastval() = :id AS same;
DISCARD ALL;
SELECT lastval();
SELECT snowflake_lastval();
-- by a statement that fails: kept
SELECT snowflake_nextval() AS id \gset
BEGIN;
DISCARD ALL;
ROLLBACK;
SELECT snowflake_lastval() = :id AS same;

-- of this session alone
\c
SELECT snowflake_lastval();
