-- snowflake_migrate.suggest(): declarations to be read, edited and run, as doc/merging.md says.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\pset format unaligned
\pset footer off

--
-- The game of examples/merge, on two servers
--
CREATE SCHEMA avalon;
CREATE SCHEMA camelot;
\set ECHO none
SET search_path = camelot, public;
\i examples/merge/schema.sql
SET search_path = avalon, public;
\i examples/merge/schema.sql
\set ECHO all
INSERT INTO server_settings VALUES ('motd', 'welcome to avalon');
INSERT INTO camelot.server_settings VALUES ('motd', 'welcome to camelot');
INSERT INTO seasons SELECT g, date '2025-01-01' + 30 * g FROM generate_series(1, 3) AS g;
INSERT INTO camelot.seasons SELECT * FROM seasons WHERE season > 1;
INSERT INTO item_templates (code, name, power) SELECT 'code ' || g, 'name ' || g, g FROM generate_series(1, 20) AS g;
INSERT INTO camelot.item_templates (code, name, power) SELECT 'code ' || g, 'name ' || g, g FROM generate_series(20, 2, -1) AS g;
INSERT INTO accounts (email) SELECT g || '@example.org' FROM generate_series(1, 20) AS g;
INSERT INTO camelot.accounts (email, created_at) SELECT g || '@example.org', '2014-01-01' FROM generate_series(19, 60) AS g;
INSERT INTO players (account_id, name, class) SELECT g, 'player ' || g, 'mage' FROM generate_series(1, 20) AS g;
INSERT INTO camelot.players (account_id, name, class) SELECT g, 'player ' || 19 + g, 'mage' FROM generate_series(1, 40) AS g;
INSERT INTO camelot.mail (recipient_id, sender_type, sender_id, subject)
SELECT g, CASE WHEN g % 4 = 0 THEN 'system' ELSE 'player' END, CASE g WHEN 7 THEN 1007 ELSE 41 - g END, 'hello' FROM generate_series(1, 40) AS g;
INSERT INTO camelot.settings SELECT g, '{"labels": {"17": "for sale"}}' FROM generate_series(1, 2) AS g;
-- names are written with their schemas, whatever the search path
SET search_path = avalon, public;
CREATE TEMPORARY TABLE suggested AS SELECT * FROM snowflake_migrate.suggest('{camelot}', 'avalon');
SELECT step, certainty, relation, object, reason FROM suggested;
SELECT statement FROM suggested;
-- nothing is left of it
SELECT count(*) FROM snowflake_migrate.declared_created;
SELECT count(*) FROM pg_namespace AS n, snowflake_migrate.runs AS r
WHERE n.nspname = 'snowflake_merge_' || r.run AND '{camelot}' = r.sources;
-- all of it can be run as it is: what is sure answers the check
\o /dev/null
SELECT statement FROM suggested \gexec
\o
SELECT count(*) FROM snowflake_migrate.declared_created;
SELECT severity, relation, object, problem FROM snowflake_migrate.check('{camelot}', 'avalon')
WHERE severity <> 'info' AND problem NOT LIKE 'key %' ORDER BY 2, 3;
-- with what is likely, too, and the keys adopted, nothing that was suggested is an error
\o /dev/null
SELECT regexp_replace(split_part(statement, E'\n', 1), '^-- ', '') FROM snowflake_migrate.suggest('{camelot}', 'avalon')
WHERE certainty = 'likely' OR step = 'policy' AND statement NOT LIKE '%rerank%' ORDER BY step <> 'adopt', statement \gexec
\o
SELECT severity, relation, object, problem FROM snowflake_migrate.check('{camelot}', 'avalon') WHERE severity = 'error';
SELECT step, certainty, relation, object FROM snowflake_migrate.suggest('{camelot}', 'avalon');
DROP SCHEMA avalon, camelot CASCADE;
DELETE FROM snowflake_migrate.declared_tables;
DELETE FROM snowflake_migrate.declared_references;
DELETE FROM snowflake_migrate.declared_created;
DELETE FROM snowflake_migrate.declared_policies;

--
-- Names; what an earlier answer would make an error; several targets
--
CREATE SCHEMA "It's";
CREATE SCHEMA "From";
CREATE TABLE "It's"."Order's" (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), "Created At" timestamp, "The Name" text UNIQUE);
CREATE TABLE "It's"."Line;
DROP TABLE ""It's"".""Order's"";" (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), "Order's Id" bigint NOT NULL, "Thing""Id" bigint, "Thing""Type" text, old_order_id numeric(5),
	created_at date);
CREATE TABLE "From"."Order's" (LIKE "It's"."Order's");
CREATE TABLE "From"."Line;
DROP TABLE ""It's"".""Order's"";" (LIKE "It's"."Line;
DROP TABLE ""It's"".""Order's"";");
INSERT INTO "From"."Order's" SELECT g, '2020-01-01', 'order ' || g FROM generate_series(1, 30) AS g;
INSERT INTO "From"."Line;
DROP TABLE ""It's"".""Order's"";" SELECT g, g, g, E'x''\nOrder''s', NULL, '1999-01-01' FROM generate_series(1, 30) AS g;
SELECT step, certainty, object, statement FROM snowflake_migrate.suggest(ARRAY[ARRAY['From']], targets => ARRAY['It''s']);
-- no row, no value
UPDATE "From"."Line;
DROP TABLE ""It's"".""Order's"";" SET "Order's Id" = 1000 WHERE id = 1;
SELECT certainty, object, reason FROM snowflake_migrate.suggest('{From}', 'It''s') WHERE object = 'Order''s Id';
\o /dev/null
SELECT statement FROM snowflake_migrate.suggest('{From}', 'It''s') \gexec
\o
SELECT relation, column_name, condition FROM snowflake_migrate.declared_references;
SELECT to_regclass('"It''s"."Order''s"') IS NOT NULL AS is_there;
SELECT snowflake_migrate.suggest('{nowhere}', 'It''s');
SELECT snowflake_migrate.suggest(NULL, 'It''s');
-- rights as for the check: a table that may not be read says nothing
CREATE ROLE suggester;
SET ROLE suggester;
SELECT snowflake_migrate.suggest('{From}', 'It''s');
RESET ROLE;
SELECT snowflake_migrate.grant_to('suggester');
GRANT USAGE ON SCHEMA "It's", "From" TO suggester;
GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA "It's" TO suggester;
GRANT SELECT ON "From"."Order's" TO suggester;
SET ROLE suggester;
SELECT step, certainty, object FROM snowflake_migrate.suggest('{From}', 'It''s');
RESET ROLE;
DELETE FROM snowflake_migrate.declared_references;
DELETE FROM snowflake_migrate.declared_created;
DROP SCHEMA "It's", "From" CASCADE;
DROP OWNED BY suggester;
DROP ROLE suggester;

--
-- What happens to a row later does not tell when it was made
--
CREATE SCHEMA old;
CREATE SCHEMA new;
CREATE TABLE new.films (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), last_update timestamptz NOT NULL DEFAULT now());
CREATE TABLE new.actors (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), retired timestamptz DEFAULT now());
CREATE TABLE new.visits (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), at timestamptz DEFAULT now(), updated_at timestamptz DEFAULT now());
CREATE TABLE new.rooms (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), happened timestamptz, deleted_at timestamptz);
CREATE TABLE old.films (LIKE new.films);
CREATE TABLE old.actors (LIKE new.actors);
CREATE TABLE old.visits (LIKE new.visits);
CREATE TABLE old.rooms (LIKE new.rooms);
SELECT step, certainty, relation, object FROM snowflake_migrate.suggest('{old}', 'new');
SELECT relation, object, advice FROM snowflake_migrate.check('{old}', 'new') WHERE problem ~ 'packed at the start' ORDER BY 1;
-- a column that is called like its table is not taken for the row where a source lacks it: its owner's code would run
CREATE TABLE new.tag (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), tag text UNIQUE);
INSERT INTO new.tag (tag) VALUES ('k');
CREATE TABLE old.tag (id int);
INSERT INTO old.tag VALUES (1);
CREATE FUNCTION old.as_text(old.tag) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'code of the source''s owner'; RETURN 'k'; END $$;
CREATE CAST (old.tag AS text) WITH FUNCTION old.as_text(old.tag) AS IMPLICIT;
SELECT step, certainty, relation, object FROM snowflake_migrate.suggest('{old}', 'new') WHERE relation = 'new.tag';
-- what cannot be compared in one source is counted in others; nulls that are alike clash where the constraint says so
CREATE SCHEMA older;
CREATE TABLE older.tag (id int, tag text);
INSERT INTO older.tag VALUES (1, 'k'), (2, 'l'), (3, 'm');
INSERT INTO new.tag (tag) VALUES ('x'), ('y'), ('z');
CREATE TABLE new.places (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), x int, y int, UNIQUE NULLS NOT DISTINCT (x, y));
CREATE TABLE old.places (id int, x smallint, y bigint);
INSERT INTO new.places (x, y) VALUES (NULL, 1), (NULL, NULL);
INSERT INTO old.places VALUES (1, NULL, 1), (2, NULL, 2), (3, 1, 1);
SELECT relation, object, reason FROM snowflake_migrate.suggest('{old,older}', 'new') WHERE step = 'policy' ORDER BY 1;
-- equal numbers may be of different rows
CREATE TABLE new.plots (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), number int UNIQUE, guild_id bigint);
CREATE TABLE old.plots (id int PRIMARY KEY, number int, guild_id int);
INSERT INTO new.plots (number, guild_id) SELECT g, g % 4 + 1 FROM generate_series(1, 10) AS g; INSERT INTO old.plots SELECT 11 - g, g, g % 4 + 1 FROM generate_series(1, 10) AS g;
SELECT certainty, relation, object FROM snowflake_migrate.suggest('{old}', 'new') WHERE step = 'table' AND relation = 'new.plots';
-- a document is more than the ids in it
CREATE TABLE new.kinds (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), code text UNIQUE); CREATE TABLE new.saves (slot int PRIMARY KEY, version text, data jsonb);
INSERT INTO new.kinds SELECT i, 'k' || i FROM generate_series(1, 40) AS i; INSERT INTO new.saves SELECT i, '1.0', jsonb_build_object('kind_id', i, 'text', 'new ' || i) FROM generate_series(1, 40) AS i;
CREATE TABLE old.kinds AS TABLE new.kinds; CREATE TABLE old.saves AS SELECT slot, version, jsonb_build_object('kind_id', slot, 'text', 'old ' || slot) AS data FROM new.saves;
SELECT snowflake_migrate.declare_table('new.kinds', 'match', '{code}'), snowflake_migrate.declare_reference('new.saves', 'data', 'new.kinds', path => '$.kind_id') \g /dev/null
SELECT certainty, relation, object, reason FROM snowflake_migrate.suggest('{old}', 'new') WHERE step = 'table' AND relation = 'new.saves';
UPDATE old.saves AS s SET data = t.data FROM new.saves AS t WHERE t.slot = s.slot;
SELECT certainty, relation, object, reason FROM snowflake_migrate.suggest('{old}', 'new') WHERE step = 'table' AND relation = 'new.saves';
-- no suffix is suggested where there is no room for it
CREATE TABLE new.clans (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), tag varchar(5) UNIQUE, name varchar(6) UNIQUE); CREATE TABLE old.clans AS SELECT i AS id, 'T' || i AS tag, 'name' || i AS name FROM generate_series(1, 5) AS i;
INSERT INTO new.clans (tag, name) VALUES ('T1', 'one'), ('U2', 'name2'), ('U3', 'x'), ('U4', 'y'), ('U5', 'z');
SELECT certainty, object, statement FROM snowflake_migrate.suggest('{old}', 'new') WHERE step = 'policy' AND relation = 'new.clans' ORDER BY object;
DELETE FROM snowflake_migrate.declared_references WHERE relation = 'new.saves'::regclass; DELETE FROM snowflake_migrate.declared_tables WHERE relation = 'new.kinds'::regclass;
DROP SCHEMA older CASCADE;
DROP SCHEMA old, new CASCADE;
