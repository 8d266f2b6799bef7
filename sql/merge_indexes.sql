-- Secondary indexes of tables that grow are dropped before the copy and built again after it: all of them are as they were, whatever
-- comes between.  As doc/merging.md says.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\pset format unaligned
CREATE SCHEMA t;
CREATE SCHEMA a;
CREATE TYPE t.mood AS ENUM ('glad', 'sad');
CREATE TABLE t.guilds (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), code text NOT NULL UNIQUE, motto text UNIQUE);
CREATE INDEX guilds_code ON t.guilds (code DESC);
CREATE TABLE t."Players" (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text NOT NULL, guild text REFERENCES t.guilds (code),
	mood t.mood, level int NOT NULL, doc jsonb, seat int4range, EXCLUDE USING gist (seat WITH &&),
	CONSTRAINT "Name's" UNIQUE (name) INCLUDE (level) WITH (fillfactor = 70) DEFERRABLE INITIALLY DEFERRED,
	UNIQUE NULLS NOT DISTINCT (guild, name, seat));
CREATE INDEX players_guild ON t."Players" (guild DESC NULLS LAST, level) WITH (deduplicate_items = off);
CREATE UNIQUE INDEX "Players %s ""lower""" ON t."Players" (lower(name) COLLATE "C" text_pattern_ops, level) WHERE level > 0;
CREATE INDEX players_mood ON t."Players" (mood) WHERE mood = 'glad';
CREATE INDEX players_doc ON t."Players" USING gin (doc jsonb_path_ops) WITH (fastupdate = off);
CREATE INDEX players_hash ON t."Players" USING hash (level);
CREATE INDEX players_slash ON t."Players" (level) WHERE name <> 'x\' AND name <> ' y\';
CREATE UNIQUE INDEX players_identity ON t."Players" (name, level);
ALTER TABLE t."Players" REPLICA IDENTITY USING INDEX players_identity;
ALTER TABLE t."Players" CLUSTER ON players_guild;
ALTER INDEX t."Players %s ""lower""" ALTER COLUMN 1 SET STATISTICS 7;
COMMENT ON INDEX t.players_doc IS 'it''s a document';
COMMENT ON INDEX t."Name's" IS 'the index';
COMMENT ON CONSTRAINT "Name's" ON t."Players" IS 'the constraint';
CREATE TABLE t.log (id bigint DEFAULT snowflake_nextval(), at date NOT NULL, what text NOT NULL, PRIMARY KEY (id, at), UNIQUE (at, what))
	PARTITION BY RANGE (at);
CREATE INDEX log_what ON ONLY t.log (what);
CREATE TABLE t.log_old PARTITION OF t.log FOR VALUES FROM (MINVALUE) TO ('2026-01-01');
CREATE TABLE t.log_new PARTITION OF t.log FOR VALUES FROM ('2026-01-01') TO (MAXVALUE) PARTITION BY RANGE (at);
CREATE TABLE t.log_new_0 PARTITION OF t.log_new FOR VALUES FROM (MINVALUE) TO ('2026-01-11');
CREATE TABLE t.log_new_1 PARTITION OF t.log_new FOR VALUES FROM ('2026-01-11') TO (MAXVALUE);
CREATE INDEX log_at ON t.log USING brin (at) WITH (pages_per_range = 8);
CREATE INDEX log_new_length ON t.log_new (length(what));
COMMENT ON INDEX t.log_new_0_length_idx IS 'of a partition';
ALTER TABLE t.log_old CLUSTER ON log_old_at_what_key;
-- it does not grow
CREATE TABLE t.few (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int UNIQUE);

CREATE TABLE a.guilds (id int PRIMARY KEY, code text NOT NULL, motto text);
CREATE TABLE a."Players" (id int PRIMARY KEY, name text NOT NULL, guild text, mood t.mood, level int NOT NULL, doc jsonb, seat int4range);
CREATE TABLE a.log (id int PRIMARY KEY, at date NOT NULL, what text NOT NULL);
CREATE TABLE a.few (id int PRIMARY KEY, n int);
INSERT INTO t.guilds VALUES (1, 'own', 'first');
INSERT INTO t."Players" VALUES (1, 'Arthur', 'own', 'glad', 1, '{}', '[0,1)');
INSERT INTO a.guilds VALUES (1, 'east', 'second'), (2, 'west', NULL);
INSERT INTO a."Players" SELECT g, 'player ' || g, CASE WHEN g % 3 = 0 THEN 'east' END, 'glad', g, '{"a": 1}', int4range(g, g + 1) FROM generate_series(1, 30) AS g;
INSERT INTO a.log SELECT g, date '2025-12-20' + g, 'line ' || g FROM generate_series(1, 30) AS g;
INSERT INTO t.few SELECT g, g FROM generate_series(1, 9) AS g;
INSERT INTO a.few VALUES (1, 10), (2, 11), (3, 12);

-- all that the catalogs know of indexes, but their numbers and files; and NO INHERIT, which dump and restore changes as well
CREATE VIEW indexes AS
	SELECT c.relname, i.indrelid::regclass::text AS relation, pg_get_indexdef(c.oid) AS definition,
		to_jsonb(i) - '{indexrelid,indrelid,indcheckxmin}'::text[] - '{indexprs,indpred}'::text[] AS index,
		to_jsonb(c) - '{oid,relfilenode,relpages,reltuples,relallvisible,relallfrozen,relfrozenxid,relminmxid}'::text[] AS class,
		(SELECT jsonb_agg(to_jsonb(a) - 'attrelid'::text ORDER BY a.attnum) FROM pg_attribute AS a WHERE a.attrelid = c.oid) AS columns,
		to_jsonb(k) - '{oid,conindid,conparentid,connoinherit}'::text[] AS "constraint", k.conparentid <> 0 AS has_parent,
		(SELECT h.inhparent::regclass::text FROM pg_inherits AS h WHERE h.inhrelid = c.oid) AS parent,
		obj_description(c.oid, 'pg_class') AS comment, obj_description(k.oid, 'pg_constraint') AS constraint_comment,
		ARRAY(SELECT concat(regexp_replace(g.tgname, '[0-9]+', ''), ' ', g.tgenabled, g.tgdeferrable, g.tginitdeferred) FROM pg_trigger AS g
			WHERE g.tgconstraint = k.oid) AS triggers,
		ARRAY(SELECT concat(d.refclassid::regclass, d.deptype, CASE d.refclassid WHEN 'pg_class'::regclass THEN pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid) END) AS n
			FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid ORDER BY n) AS dependencies
	FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid LEFT JOIN pg_constraint AS k ON k.conindid = c.oid AND k.contype IN ('p', 'u', 'x')
	WHERE c.relnamespace = 't'::regnamespace;
CREATE TABLE former AS SELECT x.*, i.indexrelid FROM indexes AS x JOIN pg_index AS i ON i.indexrelid = format('t.%I', x.relname)::regclass;
CREATE VIEW differences AS
	SELECT relname, k.key, f.value AS former, i.value AS now
	FROM (SELECT relname, e.* FROM former AS f, jsonb_each(to_jsonb(f) - 'indexrelid') AS e) AS f
		FULL JOIN (SELECT relname, e.* FROM indexes AS i, jsonb_each(to_jsonb(i)) AS e) AS i USING (relname, key)
		CROSS JOIN LATERAL (SELECT key) AS k
	WHERE f.value IS DISTINCT FROM i.value;
CREATE FUNCTION last() RETURNS bigint LANGUAGE sql AS 'SELECT max(run) FROM snowflake_migrate.runs';
CREATE FUNCTION states() RETURNS SETOF text LANGUAGE sql
	AS $$ SELECT state || ': ' || count(*) FROM snowflake_migrate_internal.plan_indexes WHERE run = last() GROUP BY state ORDER BY 1 $$;
SELECT count(*) FROM differences;

-- a dry run says what would be done
CALL snowflake_migrate.merge('{a}', 't', '{750}', dry_run => true, rebuild_indexes => true) \g /dev/null
SELECT relation, object, problem FROM snowflake_migrate.report WHERE run = last() AND problem LIKE '%index%' ORDER BY relation, object COLLATE "C";
SELECT count(*) FROM former AS f WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = f.indexrelid);

-- nobody but an owner may do it
CREATE ROLE regress_snowflake_merger;
SELECT snowflake_migrate.grant_to('regress_snowflake_merger');
GRANT USAGE ON SCHEMA t, a TO regress_snowflake_merger;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA t, a TO regress_snowflake_merger;
ALTER TABLE t.guilds OWNER TO regress_snowflake_merger;
SET ROLE regress_snowflake_merger;
CALL snowflake_migrate.merge('{a}', 't', '{751}', rebuild_indexes => true);
RESET ROLE;
SELECT count(*) FROM snowflake_migrate.runs WHERE state <> 'dry run';
ALTER TABLE t.guilds OWNER TO CURRENT_USER;
DROP OWNED BY regress_snowflake_merger;
REVOKE SET ON PARAMETER session_replication_role FROM regress_snowflake_merger;
DROP ROLE regress_snowflake_merger;

-- broken off in the copy: they are gone, and come back with what is taken back
CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'stopped'; END $$;
CREATE TRIGGER stop BEFORE INSERT ON t."Players" FOR EACH ROW WHEN (new.level = 15) EXECUTE FUNCTION stop();
ALTER TABLE t."Players" ENABLE ALWAYS TRIGGER stop;
CALL snowflake_migrate.merge('{a}', 't', '{751}', batch_size => 200, rebuild_indexes => true);
SELECT states();
SELECT format('snowflake_merge_%s.indexes_to_build', last()) AS to_build \gset
SELECT relname FROM former WHERE relname NOT IN (SELECT relname FROM indexes) ORDER BY relname COLLATE "C";
-- meanwhile, the extension stays
\set VERBOSITY terse
BEGIN;
DROP EXTENSION snowflake_migrate;
ROLLBACK;
\set VERBOSITY default
SELECT count(DISTINCT (relation, name)), count(*), count(problem) FROM :to_build;
CALL snowflake_migrate.rollback(last());
SELECT states();
SELECT * FROM differences;
SELECT to_regclass(:'to_build');

-- broken off again; what came meanwhile clashes with what is to be unique
CALL snowflake_migrate.merge('{a}', 't', '{752}', batch_size => 200, rebuild_indexes => true);
CREATE OR REPLACE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN new; END $$;
INSERT INTO t."Players" VALUES (2, 'Arthur', 'own', 'sad', 2, '{}', '[1000,1001)');
CREATE INDEX players_mood ON t."Players" (level);
CREATE INDEX log_old_at_idx ON t.log_old (id);
-- all others are built
-- as they were written, whatever backslashes mean by now; from PostgreSQL 19 on, they always mean the same
DO $$ BEGIN SET standard_conforming_strings = off; EXCEPTION WHEN OTHERS THEN NULL; END $$;
CALL snowflake_migrate.merge('{a}', 't', '{752}', batch_size => 200);
RESET standard_conforming_strings;
SELECT states();
SELECT format('snowflake_merge_%s.indexes_to_build', last()) AS to_build \gset
SELECT relation, name, problem FROM :to_build WHERE statement LIKE 'SET%';
-- a unique one is needed to see what is in the way
CALL snowflake_migrate.rollback(last());
DELETE FROM t."Players" WHERE id = 2;
CALL snowflake_migrate.merge('{a}', 't', '{752}', batch_size => 200);
DROP INDEX t.log_old_at_idx;
CALL snowflake_migrate.merge('{a}', 't', '{752}', batch_size => 200);
SELECT states();
DROP INDEX t.players_mood;
-- of one that somebody has built by hand already, nothing is left to do
CREATE INDEX players_mood ON t."Players" (mood) WHERE mood = 'glad';
CALL snowflake_migrate.merge('{a}', 't', '{752}', batch_size => 200) \g /dev/null
SELECT state FROM snowflake_migrate.runs WHERE run = last();
SELECT states();
SELECT * FROM differences;
SELECT count(*) FROM former AS f WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = f.indexrelid);
SELECT count(*), count(DISTINCT lower(name)) FROM t."Players";

-- one that is missing, one that is not valid, one that is another
SELECT * FROM snowflake_migrate.verify(last());
BEGIN;
SET session_replication_role = replica;
INSERT INTO t."Players" (name, level, seat) SELECT 'player ' || n, 70 + g, int4range(2000 + g::int, 2001 + g::int) FROM unnest('{7,7,8}'::int[]) WITH ORDINALITY AS u (n, g);
SELECT relation, problem, count, example FROM snowflake_migrate.verify(last());
ROLLBACK;
DROP INDEX t.players_hash;
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 't.players_doc'::regclass;
ALTER INDEX t.players_guild SET (fillfactor = 50);
ALTER TABLE t."Players" DROP CONSTRAINT "Name's";
SELECT relation, problem, count, example FROM snowflake_migrate.verify(last());
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 't.players_doc'::regclass;
CALL snowflake_migrate.rollback(last());

-- what only the merged rows keep from being built, though nobody could know, comes back when they are gone; and what something else does, when that is
CREATE FUNCTION sound(text) RETURNS text IMMUTABLE LANGUAGE plpgsql
	AS $$ BEGIN IF $1 LIKE 'player 7' AND (SELECT r.mapped_at FROM snowflake_migrate.runs AS r ORDER BY r.run DESC LIMIT 1) IS NOT NULL THEN RAISE EXCEPTION 'no sound for %', $1; END IF; RETURN $1; END $$;
CREATE INDEX players_sound ON t."Players" (public.sound(name));
CALL snowflake_migrate.merge('{a}', 't', '{755}', rebuild_indexes => true);
SELECT states();
SELECT format('snowflake_merge_%s.indexes_to_build', last()) AS to_build \gset
DROP INDEX t.guilds_code;
CREATE INDEX guilds_code ON t.guilds (id);
UPDATE snowflake_migrate_internal.plan_indexes SET state = 'dropped' WHERE run = last() AND name = 'guilds_code';
CALL snowflake_migrate.rollback(last());
SELECT state, (SELECT count(*) FROM t."Players") AS players FROM snowflake_migrate.runs WHERE run = last();
SELECT states();
DROP INDEX t.guilds_code;
-- by hand
SELECT statement FROM :to_build \gexec
CALL snowflake_migrate.rollback(last());
SELECT state FROM snowflake_migrate.runs WHERE run = last();
SELECT states();
SELECT to_regclass(:'to_build');
DROP FUNCTION sound CASCADE;

-- those that are no longer as they were when the maps were made stay
CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('DROP INDEX') EXECUTE FUNCTION refuse();
ALTER EVENT TRIGGER refuse ENABLE ALWAYS;
CALL snowflake_migrate.merge('{a}', 't', '{753}', rebuild_indexes => true);
DROP EVENT TRIGGER refuse;
SELECT states();
ALTER INDEX t.guilds_code SET (fillfactor = 50);
COMMENT ON INDEX t.log_new_0_what_idx IS 'of a partition';
CALL snowflake_migrate.merge('{a}', 't', '{753}') \g /dev/null
SELECT states();
SELECT name FROM snowflake_migrate_internal.plan_indexes WHERE run = last() AND state = 'kept' ORDER BY name COLLATE "C";
CALL snowflake_migrate.rollback(last());

-- code of another role, which could take a place that is free meanwhile
CREATE ROLE regress_snowflake_owner;
CREATE SCHEMA of_another AUTHORIZATION regress_snowflake_owner;
CREATE FUNCTION of_another.twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 2';
CREATE INDEX guilds_length ON t.guilds (of_another.twice(length(code)));
CALL snowflake_migrate.merge('{a}', 't', '{754}', rebuild_indexes => true) \g /dev/null
SELECT relation, object, problem FROM snowflake_migrate.report WHERE run = last() AND object = 'guilds_length';
CALL snowflake_migrate.rollback(last());
DROP SCHEMA t, a, of_another CASCADE;
DROP ROLE regress_snowflake_owner;

-- a table that grows by a third keeps its indexes, one that grows by more does not
CREATE SCHEMA t;
CREATE SCHEMA a;
CREATE TABLE t.third (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int UNIQUE);
CREATE TABLE t.more (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int UNIQUE);
CREATE TABLE a.third (id int PRIMARY KEY, n int);
CREATE TABLE a.more (id int PRIMARY KEY, n int);
INSERT INTO t.third SELECT g, g FROM generate_series(1, 9) AS g;
INSERT INTO t.more SELECT g, g FROM generate_series(1, 9) AS g;
INSERT INTO a.third SELECT g, 10 + g FROM generate_series(1, 3) AS g;
INSERT INTO a.more SELECT g, 10 + g FROM generate_series(1, 4) AS g;
CALL snowflake_migrate.merge('{a}', 't', '{779}', rebuild_indexes => true, dry_run => true) \g /dev/null
SELECT relation, object, problem FROM snowflake_migrate.report WHERE run = last() AND problem ~ 'index';
DROP SCHEMA t, a CASCADE;
DROP TABLE former CASCADE;
DROP FUNCTION last, states, stop, refuse CASCADE;
UPDATE snowflake_migrate.runs SET state = 'rolled back';
