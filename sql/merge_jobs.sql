-- Merging by several workers: their number, and what they leave alone.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
CREATE SCHEMA jobs_target; CREATE SCHEMA jobs_source;
CREATE TABLE jobs_target.parents (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE jobs_target.children (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), parent bigint NOT NULL REFERENCES jobs_target.parents, name text);
CREATE TABLE jobs_target.pairs (a bigint REFERENCES jobs_target.parents, b bigint REFERENCES jobs_target.children, PRIMARY KEY (a, b));
CREATE TABLE jobs_target.folders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), inside bigint REFERENCES jobs_target.folders, name text);
CREATE TABLE jobs_source.parents (id serial PRIMARY KEY, name text);
CREATE TABLE jobs_source.children (id serial PRIMARY KEY, parent int NOT NULL REFERENCES jobs_source.parents, name text);
CREATE TABLE jobs_source.pairs (a int REFERENCES jobs_source.parents, b int REFERENCES jobs_source.children, PRIMARY KEY (a, b));
CREATE TABLE jobs_source.folders (id serial PRIMARY KEY, inside int REFERENCES jobs_source.folders, name text);
INSERT INTO jobs_source.parents (name) SELECT 'parent ' || i FROM generate_series(1, 25) AS i;
INSERT INTO jobs_source.children (parent, name) SELECT 1 + i % 25, 'child ' || i FROM generate_series(1, 60) AS i;
INSERT INTO jobs_source.pairs SELECT p, c FROM generate_series(1, 25) AS p, generate_series(1, 3) AS c;
INSERT INTO jobs_source.folders (inside, name) SELECT nullif(i - 1, 0), 'folder ' || i FROM generate_series(1, 25) AS i;

-- between 1 and 64
CALL snowflake_migrate.merge('{jobs_source}', 'jobs_target', '{11}', jobs => 0);
CALL snowflake_migrate.merge('{jobs_source}', 'jobs_target', '{11}', jobs => -1);
CALL snowflake_migrate.merge('{jobs_source}', 'jobs_target', '{11}', jobs => 65);
CALL snowflake_migrate.merge('{jobs_source}', 'jobs_target', '{11}', jobs => NULL);
CALL snowflake_migrate.merge('{jobs_source}', '{jobs_target}'::name[], '{11}', jobs => 0);
SELECT count(*) FROM snowflake_migrate.runs WHERE 'jobs_target' = ANY (targets);

-- a dry run is one transaction
SET client_min_messages = notice;
CALL snowflake_migrate.merge('{no_source}', 'jobs_target', '{11}', jobs => 2, dry_run => true);
SET client_min_messages = warning;

-- the ranges of a table, from the start and from where one job has come to
BEGIN;
CALL snowflake_migrate.merge('{jobs_source}', 'jobs_target', '{11}', jobs => 2);
ROLLBACK;
CALL snowflake_migrate.merge('{jobs_source}', 'jobs_target', '{11}', batch_size => 10, jobs => 2) \gset
SELECT c.name, p.name FROM jobs_target.children AS c JOIN jobs_target.parents AS p ON p.id = c.parent
EXCEPT
SELECT c.name, p.name FROM jobs_source.children AS c JOIN jobs_source.parents AS p ON p.id = c.parent;
SELECT relation, rows_done, rows_to_do, rate > 0 AS rate, time_left FROM snowflake_migrate.progress WHERE run = :run ORDER BY relation;
SELECT t.relation, t.parents = ARRAY[]::int[] AS first, s.is_split, cardinality(s.copied_by) AS transactions
FROM snowflake_migrate_internal.plan_tables AS t JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
WHERE run = :run AND t.relation <> 'jobs_target.folders'::regclass ORDER BY t.relation::text;
SELECT * FROM snowflake_migrate.verify(:run);
CALL snowflake_migrate.rollback(:run);
SELECT count(*) FROM jobs_target.children;

-- a split that goes on behind a position, and one whose first column of the key has few values
BEGIN;
UPDATE snowflake_migrate_internal.plan_sources SET position = '25', done = false WHERE run = :run;
SELECT snowflake_migrate_internal.split(:run, t.no, 1) FROM snowflake_migrate_internal.plan_tables AS t
	WHERE t.run = :run AND t.relation = 'jobs_target.children'::regclass;
UPDATE snowflake_migrate_internal.plan_sources SET position = NULL WHERE run = :run;
SELECT snowflake_migrate_internal.split(:run, t.no, 1) FROM snowflake_migrate_internal.plan_tables AS t
	WHERE t.run = :run AND t.relation = 'jobs_target.pairs'::regclass;
SELECT t.relation, b.batch, b.after, b.position
FROM snowflake_migrate_internal.plan_batches AS b JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
WHERE b.run = :run AND NOT (t.relation = 'jobs_target.pairs'::regclass AND b.batch > 3) ORDER BY 1, 2;
ROLLBACK;
DROP SCHEMA jobs_target, jobs_source CASCADE;

-- workers have the settings that no library has defined, which a view reads
CREATE SCHEMA jobs_target;
CREATE SCHEMA jobs_source;
CREATE SCHEMA jobs_rows;
CREATE TABLE jobs_target.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), tenant text);
CREATE TABLE jobs_rows.players (id int PRIMARY KEY);
INSERT INTO jobs_rows.players SELECT generate_series(1, 40);
CREATE VIEW jobs_source.players AS SELECT id, coalesce(current_setting('app.tenant', true), 'none') AS tenant FROM jobs_rows.players;
SET app.tenant = 'it''s "a"';
CALL snowflake_migrate.merge('{jobs_source}', 'jobs_target', '{12}', batch_size => 10, jobs => 2) \gset
SELECT tenant, count(*) FROM jobs_target.players GROUP BY tenant;
RESET app.tenant;
DROP SCHEMA jobs_target, jobs_source, jobs_rows CASCADE;
