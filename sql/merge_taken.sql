-- What a rollback puts back, and newer rows have by now: it is refused before anything is taken back, and says which.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\pset format unaligned
CREATE SCHEMA taken;
CREATE TABLE taken.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), login text NOT NULL CONSTRAINT login UNIQUE, name text CONSTRAINT name UNIQUE);
CREATE TABLE taken.guilds (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text NOT NULL CONSTRAINT guild_name UNIQUE, founded date);
CREATE SCHEMA from_taken;
CREATE TABLE from_taken.players AS TABLE taken.players;
CREATE TABLE from_taken.guilds AS TABLE taken.guilds;
INSERT INTO taken.players VALUES (1, 'ann', 'ann of the target'), (2, 'bob', 'bob');
INSERT INTO from_taken.players VALUES (1, 'cid', 'cid'), (2, 'ann', 'ann of the source');
INSERT INTO taken.guilds VALUES (1, 'wolves', '2026-01-01'), (2, 'bears', '2026-01-01');
INSERT INTO from_taken.guilds VALUES (1, 'wolves', '2020-01-01'), (2, 'bears', '2026-02-01');
SELECT snowflake_migrate.declare_policy('taken.players', 'login', 'keep_source');
SELECT snowflake_migrate.declare_policy('taken.guilds', 'guild_name', 'suffix', '.{source}', precedence => 'founded');
CALL snowflake_migrate.merge('{from_taken}', 'taken', '{595}') \gset
SELECT login, name FROM taken.players ORDER BY login;
SELECT name FROM taken.guilds ORDER BY name;
CREATE FUNCTION pg_temp.taken_back(run bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
BEGIN
	CALL snowflake_migrate.rollback(run, force => true);
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN regexp_replace(SQLERRM || ' | ' || detail, 'merge [0-9]+', 'merge N');
END
$$;
-- values of a row that was replaced; of the run's own rows there is nothing to say
INSERT INTO taken.players VALUES (7, 'eve', 'ann of the target');
SELECT pg_temp.taken_back(:run);
DELETE FROM taken.players WHERE id = 7;
-- a value that a policy changed in a row of the target
INSERT INTO taken.guilds VALUES (8, 'wolves of the target', NULL);
UPDATE taken.guilds SET name = 'cats' WHERE name = 'wolves';
UPDATE taken.guilds SET name = 'wolves' WHERE id = 8;
SELECT pg_temp.taken_back(:run);
DELETE FROM taken.guilds WHERE id = 8;
CALL snowflake_migrate.rollback(:run, force => true);
SELECT * FROM taken.players ORDER BY id;
SELECT id, name FROM taken.guilds ORDER BY id;
SET client_min_messages = error;
DROP SCHEMA taken, from_taken CASCADE;
