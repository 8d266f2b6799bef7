-- The declarations of a merge: what they keep, and what they refuse.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
-- others' tests leave some
DELETE FROM snowflake_migrate.declared_references;
CREATE SCHEMA world;
CREATE TABLE world.players (id bigint PRIMARY KEY, name text UNIQUE, born date, seen timestamptz, met timestamp, place int, division int,
	UNIQUE (division, place));
CREATE UNIQUE INDEX players_lower ON world.players (lower(name));
CREATE TABLE world."Mail" (id bigint PRIMARY KEY, "Sender" int, kind text, ids int[], document jsonb, other json, twice int GENERATED ALWAYS AS (2) STORED);
CREATE TABLE world.log (id bigint, at date) PARTITION BY RANGE (at);
CREATE TABLE world.log_1 PARTITION OF world.log DEFAULT;
CREATE TABLE world.pairs (a int REFERENCES world.players, b int, one varchar(8), two text, UNIQUE (a, b), UNIQUE (a), UNIQUE (one, two));
CREATE INDEX pairs_plain ON world.pairs (b);
CREATE SEQUENCE world.numbers;

--
-- Tables
--
SELECT snowflake_migrate.declare_table('world.players', 'match', '{name}', '{duplicates,differences}');
SELECT snowflake_migrate.declare_table('world."Mail"', 'copy', ignored_columns => '{any,"thing"}');
SELECT relation, mode, key, accept, ignored_columns FROM snowflake_migrate.declared_tables ORDER BY relation;
-- another time, in place of the first
SELECT snowflake_migrate.declare_table('world.players', 'same_id');
SELECT relation, mode, key, accept, ignored_columns FROM snowflake_migrate.declared_tables WHERE relation = 'world.players'::regclass;
DELETE FROM snowflake_migrate.declared_tables;

SELECT snowflake_migrate.declare_table(NULL, 'copy');
SELECT snowflake_migrate.declare_table('world.players', NULL);
SELECT snowflake_migrate.declare_table('world.players', 'move');
SELECT snowflake_migrate.declare_table('world.players', 'match');
SELECT snowflake_migrate.declare_table('world.players', 'match', '{}');
SELECT snowflake_migrate.declare_table('world.players', 'copy', '{name}');
SELECT snowflake_migrate.declare_table('world.players', 'match', '{name,nobody}');
SELECT snowflake_migrate.declare_table('world.players', 'match', '{name}', '{everything}');
SELECT snowflake_migrate.declare_table('world.players', 'same_id', accept => '{differences}');
SELECT snowflake_migrate.declare_table('world.log_1', 'ignore');
SELECT snowflake_migrate.declare_table('world.numbers', 'ignore');
SELECT snowflake_migrate.declare_table('world.nothing', 'ignore');

--
-- References
--
SELECT snowflake_migrate.declare_reference('world."Mail"', 'Sender', 'world.players', $$kind = 'player'$$);
SELECT snowflake_migrate.declare_reference('world."Mail"', 'Sender', 'world."Mail"', $$"Mail".kind = 'reply'$$, dangling => 'null');
SELECT snowflake_migrate.declare_reference('world."Mail"', 'ids', 'world.players');
SELECT snowflake_migrate.declare_reference('world."Mail"', 'document', 'world.players', path => '$.a');
SELECT snowflake_migrate.declare_reference('world."Mail"', 'document', 'world.players', path => '$.b[*].keyvalue().key');
SELECT snowflake_migrate.declare_reference('world."Mail"', 'other', 'world.players', 'id > 0', '$.* ? (@.type == "player").ids[0]', 'keep');
-- the same again, otherwise
SELECT snowflake_migrate.declare_reference('world."Mail"', 'ids', 'world."Mail"', dangling => 'skip');
SELECT relation, column_name, referenced, condition, path, dangling FROM snowflake_migrate.declared_references
ORDER BY column_name COLLATE "C", condition COLLATE "C", path COLLATE "C";
DELETE FROM snowflake_migrate.declared_references;

SELECT snowflake_migrate.declare_reference('world."Mail"', NULL, 'world.players');
SELECT snowflake_migrate.declare_reference('world."Mail"', 'Sender', NULL);
SELECT snowflake_migrate.declare_reference('world."Mail"', 'Sender', 'world.players', dangling => 'forget');
SELECT snowflake_migrate.declare_reference('world."Mail"', 'sender', 'world.players');
SELECT snowflake_migrate.declare_reference('world.log_1', 'id', 'world.players');
SELECT snowflake_migrate.declare_reference('world.log', 'id', 'world.log_1');
SELECT snowflake_migrate.declare_reference('world.log', 'id', 'world.numbers');
-- documents have paths, and others have none
SELECT snowflake_migrate.declare_reference('world."Mail"', 'document', 'world.players');
SELECT snowflake_migrate.declare_reference('world."Mail"', 'Sender', 'world.players', path => '$.a');
-- conditions
\set VERBOSITY terse
SELECT snowflake_migrate.declare_reference('world."Mail"', 'Sender', 'world.players', 'no_column = 1');
SELECT snowflake_migrate.declare_reference('world."Mail"', 'Sender', 'world.players', 'id');
SELECT snowflake_migrate.declare_reference('world."Mail"', 'Sender', 'world.players', 'id = ');
SELECT snowflake_migrate.declare_reference('world."Mail"', 'Sender', 'world.players', 'true) AS x, (SELECT');
-- nothing is on the search path
CREATE FUNCTION public.merge_declare_true() RETURNS boolean LANGUAGE sql AS 'SELECT true';
SELECT snowflake_migrate.declare_reference('world."Mail"', 'Sender', 'world.players', 'merge_declare_true()');
DROP FUNCTION public.merge_declare_true();
\set VERBOSITY default
-- paths
SELECT path, p.* FROM unnest(ARRAY['$', '$.a', 'lax $."a b".*[*][7]', '$.a[*] ? (@.t == "x)" && (@.n > 1)).id', '$.a.keyvalue().key']) AS path,
	snowflake_migrate_internal.path(path) AS p;
SELECT snowflake_migrate_internal.path('strict $.a');
SELECT snowflake_migrate_internal.path('$.**.a');
SELECT snowflake_migrate_internal.path('$.a[1 to 2]');
SELECT snowflake_migrate_internal.path('$.a[last]');
SELECT snowflake_migrate_internal.path('$.a.size()');
SELECT snowflake_migrate_internal.path('$.keyvalue().key.a');
SELECT snowflake_migrate_internal.path('$.keyvalue().value');
SELECT snowflake_migrate_internal.path('$.a + 1');
SELECT snowflake_migrate_internal.path('7');

--
-- Times
--
SELECT snowflake_migrate.declare_created('world.players', c.name) FROM unnest('{born,met,seen}'::name[]) AS c (name);
SELECT * FROM snowflake_migrate.declared_created;
DELETE FROM snowflake_migrate.declared_created;
SELECT snowflake_migrate.declare_created('world.players', 'name');
SELECT snowflake_migrate.declare_created('world.players', 'nobody');
SELECT snowflake_migrate.declare_created('world.players', NULL);
SELECT snowflake_migrate.declare_created('world.log_1', 'at');

--
-- Policies
--
SELECT snowflake_migrate.declare_policy('world.players', 'players_name_key', 'suffix');
SELECT snowflake_migrate.declare_policy('world.players', 'players_lower', 'suffix', '@{source}');
SELECT snowflake_migrate.declare_policy('world.players', 'players_division_place_key', 'keep_source');
SELECT snowflake_migrate.declare_policy('world.players', 'players_pkey', 'renumber');
SELECT snowflake_migrate.declare_policy('world.pairs', 'pairs_a_b_key', 'rerank', 'a DESC, pairs.one');
SELECT snowflake_migrate.declare_policy('world.pairs', 'pairs_a_key', 'keep_target');
-- another time, in place of the first
SELECT snowflake_migrate.declare_policy('world.pairs', 'pairs_a_key', 'skip');
SELECT relation, constraint_name, policy, argument FROM snowflake_migrate.declared_policies
ORDER BY constraint_name COLLATE "C";
DELETE FROM snowflake_migrate.declared_policies;

SELECT snowflake_migrate.declare_policy('world.players', NULL, 'skip');
SELECT snowflake_migrate.declare_policy('world.players', 'players_name_key', 'rename');
SELECT snowflake_migrate.declare_policy('world.players', 'players_nobody_key', 'skip');
SELECT snowflake_migrate.declare_policy('world.pairs', 'pairs_plain', 'skip');
SELECT snowflake_migrate.declare_policy('world.pairs', 'players_name_key', 'skip');
SELECT snowflake_migrate.declare_policy('world.players', 'players_name_key', 'skip', 'an argument');
SELECT snowflake_migrate.declare_policy('world.players', 'players_name_key', 'suffix', '');
SELECT snowflake_migrate.declare_policy('world.players', 'players_name_key', 'renumber');
-- which column is changed must be clear
SELECT snowflake_migrate.declare_policy('world.pairs', 'pairs_one_two_key', 'suffix');
SELECT snowflake_migrate.declare_policy('world.players', 'players_division_place_key', 'suffix');
SELECT snowflake_migrate.declare_policy('world.players', 'players_division_place_key', 'rerank', 'seen');
SELECT snowflake_migrate.declare_policy('world.pairs', 'pairs_a_key', 'rerank', 'b');
-- a reference is not changed
SELECT snowflake_migrate.declare_reference('world.players', 'division', 'world."Mail"');
SELECT snowflake_migrate.declare_policy('world.players', 'players_division_place_key', 'rerank', 'seen');
-- what is ordered by
SELECT snowflake_migrate.declare_policy('world.players', 'players_division_place_key', 'rerank');
SELECT snowflake_migrate.declare_policy('world.players', 'players_division_place_key', 'rerank', 'rating DESC');

-- not for everybody
CREATE ROLE regress_snowflake_declarer;
GRANT USAGE ON SCHEMA world TO regress_snowflake_declarer;
SET ROLE regress_snowflake_declarer;
SELECT snowflake_migrate.declare_table('world.players', 'same_id');
RESET ROLE;
REVOKE ALL ON SCHEMA world FROM regress_snowflake_declarer;
DROP ROLE regress_snowflake_declarer;

DELETE FROM snowflake_migrate.declared_references;
DELETE FROM snowflake_migrate.declared_policies;
DROP SCHEMA world CASCADE;
