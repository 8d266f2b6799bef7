-- snowflake_migrate.backfill(): ids for rows that are older than the database, as in doc/getting-started.md.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
SET timezone = 'UTC';
CREATE SCHEMA old;
CREATE TABLE old."Order's" (old_id int, "Id" bigint, "made At" timestamptz, note text);
-- more of one moment than a tick has ids for; several of one time; one that has an id
INSERT INTO old."Order's" (old_id, "made At") SELECT g, '2020-06-01 12:00:00Z' FROM generate_series(1, 10000) AS g;
INSERT INTO old."Order's" (old_id, "made At") SELECT 20000 - g, timestamptz '2020-06-02Z' + (g / 2) * interval '1 hour' FROM generate_series(1, 1000) AS g;
INSERT INTO old."Order's" VALUES (0, 7, '2019-01-01Z', 'has one');
CALL snowflake_migrate.backfill('old."Order''s"', 'Id', 'made At', 971);
SELECT count(*), count(DISTINCT "Id"), array_agg(DISTINCT snowflake_node("Id")) FILTER (WHERE old_id > 0) AS nodes,
	min("Id") AS kept,
	max(snowflake_timestamp("Id") - "made At") FILTER (WHERE "made At" > '2020-06-02Z') AS off,
	max(snowflake_timestamp("Id") - "made At") FILTER (WHERE "made At" < '2020-06-02Z' AND old_id > 0) < interval '1 second' AS spilled_little,
	min(snowflake_timestamp("Id") - "made At") FILTER (WHERE old_id > 0) >= interval '0' AS never_before
FROM old."Order's";
SELECT count(*) AS not_in_order FROM (SELECT "made At", lag("made At") OVER (ORDER BY "Id") AS before FROM old."Order's") AS o WHERE before > "made At";
-- there is nothing left to do; a number is used up all the same, and for ever
CALL snowflake_migrate.backfill('old."Order''s"', 'Id', 'made At', 972);
SELECT node, relation, filled_by = current_user AS own FROM snowflake_migrate.backfills ORDER BY node;
INSERT INTO old."Order's" (old_id, "made At") VALUES (1, '2020-06-01 12:00:00Z');
CALL snowflake_migrate.backfill('old."Order''s"', 'Id', 'made At', 971);
-- nor is it one for a merge, and what a merge has used is none for this
CREATE SCHEMA other;
CALL snowflake_migrate.merge('{other}', 'old', '{972}');
INSERT INTO snowflake_migrate.nodes VALUES (973, 1, 'other');
CALL snowflake_migrate.backfill('old."Order''s"', 'Id', 'made At', 973);
DELETE FROM snowflake_migrate.nodes WHERE node = 973;
-- this server's own; none
SELECT node_id AS own FROM snowflake_stat \gset
CALL snowflake_migrate.backfill('old."Order''s"', 'Id', 'made At', :own);
CALL snowflake_migrate.backfill('old."Order''s"', 'Id', 'made At', 1024);
CALL snowflake_migrate.backfill('old."Order''s"', 'Id', 'made At', NULL);

-- whatever becomes of the rows, the number is used up before an id is made
CREATE FUNCTION old.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no %', (SELECT count(*) FROM snowflake_migrate.backfills WHERE node = 974); END $$;
CREATE TRIGGER refuse BEFORE UPDATE ON old."Order's" FOR EACH ROW EXECUTE FUNCTION old.refuse();
CALL snowflake_migrate.backfill('old."Order''s"', 'Id', 'made At', 974);
CREATE OR REPLACE FUNCTION old.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CALL snowflake_migrate.backfill('old."Order''s"', 'Id', 'made At', 974);
CALL snowflake_migrate.backfill('old."Order''s"', 'Id', 'made At', 975);
DROP TRIGGER refuse ON old."Order's";
SELECT count(*) AS without FROM old."Order's" WHERE "Id" IS NULL;
-- and where that can't be on record, nothing is done
BEGIN;
CALL snowflake_migrate.backfill('old."Order''s"', 'Id', 'made At', 976);
ROLLBACK;
CALL snowflake_migrate.backfill('old."Order''s"', 'Id', 'made At', 976);
SELECT array_agg(node ORDER BY node) FROM snowflake_migrate.backfills;

-- times that no id tells: nothing is used up
INSERT INTO old."Order's" (old_id) VALUES (1), (2);
CALL snowflake_migrate.backfill('old."Order''s"', 'Id', 'made At', 977);
UPDATE old."Order's" SET "made At" = '1969-07-20Z' WHERE "Id" IS NULL;
CALL snowflake_migrate.backfill('old."Order''s"', 'Id', 'made At', 977);
UPDATE old."Order's" SET "made At" = '2300-01-01Z' WHERE "Id" IS NULL;
CALL snowflake_migrate.backfill('old."Order''s"', 'Id', 'made At', 977);
-- what is no table, or has other columns
CREATE VIEW old.orders AS SELECT * FROM old."Order's";
CALL snowflake_migrate.backfill('old.orders', 'Id', 'made At', 977);
CALL snowflake_migrate.backfill('old."Order''s"', 'old_id', 'made At', 977);
CALL snowflake_migrate.backfill('old."Order''s"', 'Id', 'note', 977);
CALL snowflake_migrate.backfill('old."Order''s"', 'Id', 'nothing', 977);
CALL snowflake_migrate.backfill(NULL, 'Id', 'made At', 977);
-- partitions, and days
CREATE TABLE old.visits (id bigint, on_day date) PARTITION BY RANGE (on_day);
CREATE TABLE old.visits_1 PARTITION OF old.visits FOR VALUES FROM (MINVALUE) TO ('2021-01-01');
CREATE TABLE old.visits_2 PARTITION OF old.visits DEFAULT;
INSERT INTO old.visits (on_day) SELECT date '2020-12-01' + g FROM generate_series(1, 60) AS g;
CALL snowflake_migrate.backfill('old.visits', 'id', 'on_day', 977);
SELECT count(DISTINCT id), bool_and(snowflake_timestamp(id)::date = on_day) AS same_day FROM old.visits;
-- a number that is not on record any more, as in a database that was loaded table by table
DELETE FROM snowflake_migrate.backfills WHERE node = 977;
INSERT INTO old.visits (on_day) VALUES ('2020-12-02');
\set VERBOSITY terse
CALL snowflake_migrate.backfill('old.visits', 'id', 'on_day', 977);
\set VERBOSITY default
DELETE FROM old.visits WHERE id IS NULL;
-- who may not
CREATE ROLE regress_snowflake_loader;
SET ROLE regress_snowflake_loader;
CALL snowflake_migrate.backfill('old.visits', 'id', 'on_day', 978);
RESET ROLE;
SELECT snowflake_migrate.grant_to('regress_snowflake_loader');
GRANT USAGE ON SCHEMA old TO regress_snowflake_loader;
GRANT SELECT, UPDATE ON old.visits TO regress_snowflake_loader;
INSERT INTO old.visits (on_day) VALUES ('2020-12-24');
SET ROLE regress_snowflake_loader;
CALL snowflake_migrate.backfill('old.visits', 'id', 'on_day', 978);
-- and not again, by any way
DELETE FROM snowflake_migrate.backfills;
UPDATE snowflake_migrate.backfills SET node = 0;
INSERT INTO snowflake_migrate.backfills (node, relation, until, filled_by) VALUES (979, 'old.visits', now(), 'somebody');
-- it can use all numbers up; a superuser gives back those that have made no ids
INSERT INTO snowflake_migrate.backfills (node, relation, until)
	SELECT g, 'nothing', now() FROM generate_series(0, 1023) AS g WHERE NOT EXISTS (SELECT FROM snowflake_migrate.backfills AS b WHERE b.node = g);
RESET ROLE;
\set VERBOSITY terse
INSERT INTO old.visits (on_day) VALUES ('2020-12-25');
CALL snowflake_migrate.backfill('old.visits', 'id', 'on_day', 979);
DELETE FROM snowflake_migrate.backfills AS b WHERE b.filled_by = 'regress_snowflake_loader' AND b.node = 979
	AND NOT EXISTS (SELECT FROM snowflake_audit('old.visits', 'id') AS a WHERE a.node = b.node);
CALL snowflake_migrate.backfill('old.visits', 'id', 'on_day', 979);
\set VERBOSITY default
DELETE FROM snowflake_migrate.backfills WHERE filled_by = 'regress_snowflake_loader';
DROP SCHEMA old, other CASCADE;
DROP OWNED BY regress_snowflake_loader;
DROP ROLE regress_snowflake_loader;
