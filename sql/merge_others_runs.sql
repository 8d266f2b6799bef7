-- Records of merges that another role, who may merge and means ill, has made up: about any table, with SQL and maps of types of its own.
-- Nobody else's merge or rollback reads them.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\pset format unaligned
CREATE ROLE regress_snowflake_mallory;
CREATE ROLE regress_snowflake_merger;
CREATE ROLE regress_snowflake_app;
SELECT snowflake_migrate.grant_to('regress_snowflake_mallory'), snowflake_migrate.grant_to('regress_snowflake_merger'),
	format('GRANT CREATE ON DATABASE %I TO regress_snowflake_app', current_database()) AS grant_app \gset
:grant_app;
CREATE SCHEMA realm; CREATE SCHEMA west;
CREATE TABLE realm.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text NOT NULL UNIQUE, gold int, place int UNIQUE);
CREATE TABLE realm.mail (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), hero_id bigint REFERENCES realm.heroes);
INSERT INTO realm.heroes VALUES (1, 'Ann', 1, 1), (2, 'Zed', 0, 2);
INSERT INTO realm.mail VALUES (1, NULL);
CREATE TABLE west.heroes AS SELECT * FROM (VALUES (1::bigint, 'Bob', 1, 1), (2, 'Cyd', 2, 2)) AS v (id, name, gold, place);
CREATE TABLE west.mail AS SELECT 1::bigint AS id, 1::bigint AS hero_id;
GRANT USAGE ON SCHEMA realm, west TO regress_snowflake_merger; GRANT ALL ON ALL TABLES IN SCHEMA realm, west TO regress_snowflake_merger;
SELECT snowflake_migrate.declare_policy('realm.heroes', 'heroes_place_key', 'rerank', 'name') \g /dev/null
SELECT 'realm.heroes'::regclass::oid AS heroes, 'realm.mail'::regclass::oid AS mail \gset

-- what springs says with whose rights
SET ROLE regress_snowflake_mallory;
CREATE SCHEMA trap;
GRANT USAGE ON SCHEMA trap TO PUBLIC;
CREATE FUNCTION trap.spring() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	RAISE WARNING 'runs with the rights of %', CASE WHEN current_user = 'regress_snowflake_merger' THEN 'the merger' ELSE 'a superuser' END;
	RETURN false;
END $$;
CREATE TYPE trap.key AS ENUM ('x');
CREATE FUNCTION trap.to_bigint(trap.key) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN PERFORM trap.spring(); RETURN 1; END';
CREATE CAST (trap.key AS bigint) WITH FUNCTION trap.to_bigint AS IMPLICIT;
RESET ROLE;
-- a run of mallory's, as old as is said; with what its one table has
CREATE FUNCTION pg_temp.forge(relation oid, age interval, not_brought text, tables text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	forged bigint;
BEGIN
	SET LOCAL ROLE regress_snowflake_mallory;
	INSERT INTO snowflake_migrate.runs (sources, schemas, targets, nodes, state, batch_size, started_at)
		VALUES ('{trap}', '{{trap}}', '{trap}', '{900}', 'done', 1, clock_timestamp() - age) RETURNING run INTO forged;
	INSERT INTO snowflake_migrate_internal.plan_tables VALUES (forged, 1, relation, 'copy', 'id', '{id}', NULL, '{}', '{}', NULL, 1, 1, false);
	INSERT INTO snowflake_migrate_internal.plan_sources (run, no, source, relation, not_brought, copied_by, taken_back_by)
		SELECT forged, 1, 1, relation, not_brought, x.ids, x.ids
		FROM (SELECT array_agg(n::text::xid8) FROM generate_series(3, pg_current_xact_id()::text::bigint + 5000) AS n) AS x (ids);
	EXECUTE format('CREATE SCHEMA snowflake_merge_%1$s; GRANT USAGE ON SCHEMA snowflake_merge_%1$s TO PUBLIC', forged);
	EXECUTE replace(tables, '{schema}', 'snowflake_merge_' || forged);
	EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA snowflake_merge_%s TO PUBLIC', forged);
	PERFORM snowflake_migrate_internal.seal(forged);
END $$;
SELECT
	/* A later run: its SQL, and its map. */
	pg_temp.forge(:heroes, '-1 day', 'trap.spring()', 'CREATE TABLE {schema}.map_1 (no int, source int, o1 bigint, n1 bigint, action "char");
		INSERT INTO {schema}.map_1 SELECT 1, 1, 1, n, ''m'' FROM generate_series(1, 10) AS n'),
	pg_temp.forge(:heroes, '-1 day', NULL, 'CREATE TABLE {schema}.map_1 (no int, source int, o1 bigint, n1 trap.key, action "char");
		INSERT INTO {schema}.map_1 VALUES (1, 1, 1, ''x'', ''m'')'),
	/* One whose map lacks what is read. */
	pg_temp.forge(:heroes, '-1 day', NULL, 'CREATE TABLE {schema}.map_1 (no int, source int, action "char")'),
	/* An earlier one: rows that users had changed, rows as they were left, former rows that refer to others. */
	pg_temp.forge(:heroes, '1 day', NULL, 'CREATE TABLE {schema}.map_1 (no int, source int, o1 bigint, n1 bigint, action "char");
		CREATE TABLE {schema}.edited_1 (n1 trap.key); INSERT INTO {schema}.edited_1 VALUES (''x'');
		CREATE TABLE {schema}.unchanged_1 (run bigint, n1 trap.key);
		INSERT INTO {schema}.unchanged_1 SELECT n, ''x'' FROM generate_series(1, 100) AS n'),
	pg_temp.forge(:mail, '1 day', NULL, 'CREATE TABLE {schema}.map_1 (no int, source int, o1 bigint, n1 bigint, action "char");
		INSERT INTO {schema}.map_1 SELECT 1, 1, 1, n, ''r'' FROM generate_series(1, 10) AS n;
		CREATE TABLE {schema}.former_1 (id trap.key, hero_id bigint);
		INSERT INTO {schema}.former_1 SELECT ''x'', n FROM generate_series(1, 10) AS n') \g /dev/null
-- a superuser, and another who may merge
CALL snowflake_migrate.merge('{west}', 'realm', '{372}', accept_warnings => true) \gset
SELECT name, place FROM realm.heroes ORDER BY place;
UPDATE realm.heroes SET gold = 500 WHERE name = 'Bob';
\set VERBOSITY sqlstate
CALL snowflake_migrate.rollback(:run);
\set VERBOSITY default
SELECT name, gold FROM realm.heroes ORDER BY place;
CALL snowflake_migrate.rollback(:run, force => true);
SELECT name, place FROM realm.heroes ORDER BY place;
DELETE FROM snowflake_migrate.declared_policies;
UPDATE west.heroes SET place = place + 10;
SET ROLE regress_snowflake_merger;
CALL snowflake_migrate.merge('{west}', 'realm', '{373}', accept_warnings => true) \gset
CALL snowflake_migrate.rollback(:run);
RESET ROLE;
SELECT name, place FROM realm.heroes ORDER BY place;

-- maps that are gone, in whose place another role puts its own: they do not become a superuser's, who would not notice
CALL snowflake_migrate.merge('{west}', 'realm', '{374}', accept_warnings => true) \gset
SELECT id AS bob FROM realm.heroes WHERE name = 'Bob' \gset
DROP SCHEMA snowflake_merge_:run CASCADE;
SET ROLE regress_snowflake_app;
BEGIN;
CREATE SCHEMA snowflake_merge_:run;
CREATE TABLE snowflake_merge_:run.map (no int NOT NULL, source int NOT NULL, o1 bigint NOT NULL, n1 bigint, action "char" NOT NULL) PARTITION BY LIST (no);
CREATE TABLE snowflake_merge_:run.map_1 PARTITION OF snowflake_merge_:run.map FOR VALUES IN (1);
INSERT INTO snowflake_merge_:run.map_1 VALUES (1, 1, 1, :bob, 'r');
CREATE TABLE snowflake_merge_:run.former_1 (id bigint NOT NULL, name text NOT NULL, gold int, place int);
INSERT INTO snowflake_merge_:run.former_1 VALUES (:bob, 'not Bob', 1000000, 11);
SELECT snowflake_migrate_internal.seal(:run);
COMMIT;
RESET ROLE;
\set VERBOSITY sqlstate
CALL snowflake_migrate.rollback(:run);
\set VERBOSITY default
SELECT name, gold FROM realm.heroes ORDER BY place;

SET client_min_messages = error;
DROP SCHEMA realm, west CASCADE;
DROP OWNED BY regress_snowflake_mallory, regress_snowflake_merger, regress_snowflake_app CASCADE;
DO $$
DECLARE
	s name;
BEGIN
	FOR s IN SELECT nspname FROM pg_namespace WHERE nspname ~ '^snowflake_merge_' LOOP
		EXECUTE format('DROP SCHEMA %I CASCADE', s);
	END LOOP;
END $$;
DELETE FROM snowflake_migrate.runs WHERE merged_by ~ '^regress_snowflake' OR targets = '{realm}';
REVOKE SET ON PARAMETER session_replication_role FROM regress_snowflake_mallory, regress_snowflake_merger;
DROP ROLE regress_snowflake_mallory, regress_snowflake_merger, regress_snowflake_app;
