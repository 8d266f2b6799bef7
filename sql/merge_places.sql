-- Rows that take others' places, and names, ranks and keys that others lose by that: nothing is lost without a word.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\pset format unaligned
CREATE FUNCTION problems(sources name[] DEFAULT '{s1}', OUT severity text, OUT source name, OUT relation text, OUT object text, OUT problem text, OUT count bigint, OUT example text)
	RETURNS SETOF record LANGUAGE sql AS $$
	SELECT c.severity, c.source, c.relation, c.object, c.problem, c.count, c.example FROM snowflake_migrate.check(sources, 't') AS c WHERE c.severity <> 'info' $$;
CREATE SCHEMA t; CREATE SCHEMA s1; CREATE SCHEMA s2;
-- a row is kept out for a value of a row of the target that loses it to a third
CREATE TABLE t.users (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), email text CONSTRAINT users_email_key UNIQUE, login text CONSTRAINT users_login_key UNIQUE, last_login int);
CREATE TABLE t.posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), author_id bigint REFERENCES t.users, title text);
CREATE TABLE s1.users AS SELECT * FROM (VALUES (1, 'ann@x', 'ann', 9), (2, 'cid@x', 'max', 1)) AS v (id, email, login, last_login);
CREATE TABLE s1.posts AS SELECT i AS id, i AS author_id, 'of ' || i AS title FROM generate_series(1, 2) AS i;
INSERT INTO t.users VALUES (1, 'ann@x', 'max', 5);
SELECT snowflake_migrate.declare_policy('t.users', c, 'keep_source') FROM unnest('{users_email_key,users_login_key}'::name[]) AS c \g /dev/null
SELECT * FROM problems();
SELECT snowflake_migrate.declare_policy('t.users', c, 'keep_first', precedence => 'last_login DESC') FROM unnest('{users_email_key,users_login_key}'::name[]) AS c \g /dev/null
SELECT * FROM problems();
UPDATE s1.users SET last_login = 10 WHERE id = 2;
SELECT * FROM problems();
SELECT snowflake_migrate.declare_policy('t.users', 'users_login_key', 'keep_target') \g /dev/null
SELECT * FROM problems();
CALL snowflake_migrate.merge('{s1}', 't', '{314}');
-- whatever the constraints are called
ALTER TABLE t.users RENAME CONSTRAINT users_email_key TO zzz;
DELETE FROM snowflake_migrate.declared_policies;
SELECT snowflake_migrate.declare_policy('t.users', c, 'keep_source') FROM unnest('{zzz,users_login_key}'::name[]) AS c \g /dev/null
SELECT problem FROM problems();
ALTER TABLE t.users RENAME CONSTRAINT zzz TO users_email_key;
DELETE FROM snowflake_migrate.declared_policies;
-- with another value there is nothing to lose
SELECT snowflake_migrate.declare_policy('t.users', c, 'keep_source') FROM unnest('{users_email_key,users_login_key}'::name[]) AS c \g /dev/null
UPDATE s1.users SET login = 'cid' WHERE id = 2;
-- and two sources may have the same row
CREATE TABLE s2.users AS SELECT id, email, login, last_login FROM s1.users WHERE id = 1;
SELECT * FROM problems('{s1,s2}');
CALL snowflake_migrate.merge('{s1,s2}', 't', '{314,315}') \g /dev/null
SELECT p.title, u.email, u.login FROM t.posts AS p JOIN t.users AS u ON u.id = p.author_id ORDER BY p.title;
DELETE FROM snowflake_migrate.declared_policies;
DROP TABLE t.posts, t.users, s1.posts, s1.users, s2.users;
-- nor where the key itself says which rows are the same
CREATE SCHEMA s10; CREATE SCHEMA s11;
CREATE TABLE t.settings (name text PRIMARY KEY, value text); INSERT INTO t.settings VALUES ('motd', 'hi'), ('rate', '1');
CREATE TABLE s10.settings AS SELECT 'motd'::text AS name, 'hello'::text AS value; CREATE TABLE s11.settings AS SELECT 'motd'::text AS name, 'welcome'::text AS value;
SELECT snowflake_migrate.declare_policy('t.settings', 'settings_pkey', 'keep_source') \g /dev/null
SELECT * FROM problems('{s10,s11}');
CALL snowflake_migrate.merge('{s10,s11}', 't', '{322,323}') \g /dev/null
SELECT * FROM t.settings ORDER BY name;
DROP SCHEMA s10, s11 CASCADE; DROP TABLE t.settings;
DELETE FROM snowflake_migrate.declared_policies;
-- a row of an earlier source becomes a row of a later one, to which others of the earlier refer
CREATE TABLE t.accounts (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), email text NOT NULL CONSTRAINT accounts_email_key UNIQUE, last_login int, referrer_id bigint REFERENCES t.accounts);
CREATE SCHEMA s8; CREATE SCHEMA s9;
CREATE TABLE s8.accounts AS SELECT * FROM (VALUES (1, 'ann', 5, NULL), (2, 'bob', 5, 1)) AS v (id, email, last_login, referrer_id);
CREATE TABLE s9.accounts AS SELECT * FROM (VALUES (1, 'ann', 9, NULL::int), (2, 'eve', 1, 1)) AS v (id, email, last_login, referrer_id);
SELECT snowflake_migrate.declare_policy('t.accounts', 'accounts_email_key', 'keep_first', precedence => 'last_login DESC') \g /dev/null
CALL snowflake_migrate.merge('{s8,s9}', 't', '{316,317}') \g /dev/null
SELECT a.email, r.email AS referrer, r.last_login FROM t.accounts AS a LEFT JOIN t.accounts AS r ON r.id = a.referrer_id ORDER BY a.email;
-- likewise with users on the target, and two tables
DROP TABLE t.accounts; DROP SCHEMA s8, s9 CASCADE;
DELETE FROM snowflake_migrate.declared_policies;
CREATE TABLE t.accounts (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), email text CONSTRAINT accounts_email_key UNIQUE, last_login int, main_id bigint);
CREATE TABLE t.characters (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text, account_id bigint NOT NULL REFERENCES t.accounts);
ALTER TABLE t.accounts ADD FOREIGN KEY (main_id) REFERENCES t.characters DEFERRABLE INITIALLY DEFERRED;
CREATE SCHEMA s3; CREATE SCHEMA s4;
CREATE TABLE s3.accounts AS SELECT 1 AS id, 'x'::text AS email, 1 AS last_login, 1 AS main_id; CREATE TABLE s3.characters AS SELECT 1 AS id, 'a1'::text AS name, 1 AS account_id;
CREATE TABLE s4.accounts AS SELECT 5 AS id, 'x'::text AS email, 9 AS last_login, 7 AS main_id; CREATE TABLE s4.characters AS SELECT 7 AS id, 'b7'::text AS name, 5 AS account_id;
SELECT snowflake_migrate.declare_policy('t.accounts', 'accounts_email_key', 'keep_target', precedence => 'last_login DESC') \g /dev/null
CALL snowflake_migrate.merge('{s3,s4}', 't', '{318,319}', target_in_use => true) \g /dev/null
SELECT a.email, m.name AS main, (SELECT string_agg(c.name, ' ' ORDER BY c.name) FROM t.characters AS c WHERE c.account_id = a.id) AS characters FROM t.accounts AS a JOIN t.characters AS m ON m.id = a.main_id;
DROP SCHEMA s3, s4 CASCADE; DROP TABLE t.accounts, t.characters CASCADE;
DELETE FROM snowflake_migrate.declared_policies;
-- ranks of a ladder that nothing comes into stay, gaps and all
CREATE TABLE t.seasons (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE);
CREATE TABLE t.ladder (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), season_id bigint REFERENCES t.seasons, place int, score int, CONSTRAINT ladder_place_key UNIQUE (season_id, place));
INSERT INTO t.seasons VALUES (1, 'now'), (2, 'closed');
INSERT INTO t.ladder VALUES (1, 1, 1, 90), (2, 1, 5, 80), (3, 2, 1, 70), (4, 2, 2, 75), (5, 2, 9, 1);
CREATE SCHEMA s5; CREATE SCHEMA s6;
CREATE TABLE s5.seasons AS SELECT 1 AS id, 'now'::text AS name;
CREATE TABLE s5.ladder AS SELECT 1 AS id, 1 AS season_id, 1 AS place, 85 AS score;
CREATE TABLE s6.seasons AS TABLE s5.seasons;
CREATE TABLE s6.ladder AS SELECT 1 AS id, 1 AS season_id, 1 AS place, 95 AS score;
SELECT snowflake_migrate.declare_table('t.seasons', 'match', key => '{name}'), snowflake_migrate.declare_policy('t.ladder', 'ladder_place_key', 'rerank', 'score DESC') \g /dev/null
CALL snowflake_migrate.merge('{s5}', 't', '{320}') \g /dev/null
SELECT s.name, l.place, l.score FROM t.ladder AS l JOIN t.seasons AS s ON s.id = l.season_id ORDER BY s.name, l.place;
CALL snowflake_migrate.merge('{s6}', 't', '{321}', target_in_use => true) \g /dev/null
SELECT s.name, l.place, l.score FROM t.ladder AS l JOIN t.seasons AS s ON s.id = l.season_id ORDER BY s.name, l.place;
DROP SCHEMA s5, s6 CASCADE; DROP TABLE t.ladder, t.seasons;
DELETE FROM snowflake_migrate.declared_policies; DELETE FROM snowflake_migrate.declared_tables;
-- a row that is one of the target's by its email and another by its login takes no place; likewise two that cross
CREATE TABLE t.users (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), email text CONSTRAINT users_email_key UNIQUE, login text CONSTRAINT users_login_key UNIQUE);
CREATE TABLE s1.users AS SELECT 1 AS id, 'ann@x'::text AS email, 'bob'::text AS login;
INSERT INTO t.users VALUES (1, 'ann@x', 'ann'), (2, 'bob@x', 'bob');
SELECT snowflake_migrate.declare_policy('t.users', c, 'keep_source') FROM unnest('{users_email_key,users_login_key}'::name[]) AS c \g /dev/null
SELECT * FROM problems();
INSERT INTO s1.users VALUES (2, 'bob@x', 'ann');
SELECT * FROM problems();
SELECT snowflake_migrate.declare_policy('t.users', 'users_login_key', 'keep_target') \g /dev/null
SELECT * FROM problems();
DROP TABLE t.users, s1.users;
DELETE FROM snowflake_migrate.declared_policies;
-- each source has its own suffix, and its own numbers behind it
CREATE TABLE t.guilds (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text CONSTRAINT guilds_name_key UNIQUE);
INSERT INTO t.guilds VALUES (1, 'Guild');
CREATE TABLE s1.guilds AS SELECT 1 AS id, 'Guild'::text AS name; CREATE TABLE s2.guilds AS TABLE s1.guilds;
SELECT snowflake_migrate.declare_policy('t.guilds', 'guilds_name_key', 'suffix', ' of {source}') \g /dev/null
SELECT c.source, c.example FROM snowflake_migrate.check('{s1,s2}', 't') AS c WHERE c.object = 'guilds_name_key';
DROP TABLE t.guilds, s1.guilds, s2.guilds;
DELETE FROM snowflake_migrate.declared_policies;
-- names that others use as references are asked about where a policy changes them
CREATE TABLE t.users (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), username text CONSTRAINT users_username_key UNIQUE);
CREATE TABLE t.guilds (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text CONSTRAINT guilds_name_key UNIQUE);
CREATE TABLE t.posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), author_username text, guild_name text, name text, item_name text);
CREATE TABLE s1.users AS SELECT 1 AS id, 'ann'::text AS username; CREATE TABLE s1.guilds AS SELECT 1 AS id, 'red'::text AS name;
CREATE TABLE s1.posts AS SELECT 1 AS id, 'ann'::text AS author_username, 'red'::text AS guild_name, 'hello'::text AS name, 'axe'::text AS item_name;
SELECT snowflake_migrate.declare_policy('t.users', 'users_username_key', 'suffix', '.{source}'), snowflake_migrate.declare_policy('t.guilds', 'guilds_name_key', 'suffix', '.{source}') \g /dev/null
SELECT * FROM problems();
SELECT snowflake_migrate.declare_no_reference('t.posts', c) FROM unnest('{author_username,guild_name}'::name[]) AS c \g /dev/null
SELECT * FROM problems();
DROP TABLE t.users, t.guilds, t.posts, s1.users, s1.guilds, s1.posts;
DELETE FROM snowflake_migrate.declared_policies; DELETE FROM snowflake_migrate.declared_no_references;
-- so are columns of a uuid key's type, where rows get other keys
CREATE TABLE t.users (id uuid PRIMARY KEY, email text CONSTRAINT users_email_key UNIQUE);
CREATE TABLE t.posts (id uuid PRIMARY KEY, author_id uuid, title text);
CREATE TABLE s1.users AS SELECT md5('s')::uuid AS id, 'ann'::text AS email; CREATE TABLE s1.posts AS SELECT md5('p')::uuid AS id, md5('s')::uuid AS author_id, 'hello'::text AS title;
SELECT snowflake_migrate.declare_policy('t.users', 'users_email_key', 'keep_target') \g /dev/null
SELECT * FROM problems();
INSERT INTO t.users VALUES (md5('t')::uuid, 'ann');
SELECT * FROM problems();
SELECT snowflake_migrate.declare_reference('t.posts', 'author_id', 't.users') \g /dev/null
SELECT severity, object, problem FROM problems();
-- and those that have the key of such a row, where keys are texts
CREATE SCHEMA g1;
CREATE TABLE t.people (username text PRIMARY KEY, email text CONSTRAINT people_email_key UNIQUE);
CREATE TABLE t.letters (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), sender text, recipient varchar(10), body text);
CREATE TABLE g1.people AS SELECT * FROM (VALUES ('annie', 'ann@x'), ('bob', 'bob@x')) AS v (username, email);
CREATE TABLE g1.letters AS SELECT 1 AS id, 'annie' AS sender, 'bob' AS recipient, 'hello' AS body;
INSERT INTO t.people VALUES ('ann', 'ann@x');
SELECT snowflake_migrate.declare_policy('t.people', 'people_email_key', 'keep_target') \g /dev/null
SELECT severity, object, problem FROM problems('{g1}');
DROP TABLE t.people, t.letters; DROP SCHEMA g1 CASCADE;
DELETE FROM snowflake_migrate.declared_references;
SELECT snowflake_migrate.declare_no_reference('t.posts', 'author_id') \g /dev/null
SELECT * FROM problems();
-- and texts of all kinds beside a key, if those that are numbers are keys
CREATE SCHEMA s7;
DROP TABLE t.posts, t.users;
CREATE TABLE t.posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), title text);
CREATE TABLE t.postmeta (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), post_id bigint REFERENCES t.posts, key text, value text);
CREATE TABLE s7.posts AS SELECT i AS id, 'post ' || i AS title FROM generate_series(1, 500) AS i;
CREATE TABLE s7.postmeta AS SELECT i AS id, i AS post_id, CASE i % 2 WHEN 0 THEN 'thumbnail' ELSE 'note' END AS key, CASE i % 2 WHEN 0 THEN (500 - i)::text ELSE 'blah' END AS value FROM generate_series(1, 400) AS i;
SELECT * FROM problems('{s7}');
-- a row gives way to one of another source that does not come itself: whatever the constraints are called
DROP SCHEMA s7 CASCADE; DROP TABLE t.posts, t.postmeta; DELETE FROM snowflake_migrate.declared_policies; DELETE FROM snowflake_migrate.declared_no_references;
CREATE SCHEMA e8; CREATE SCHEMA e9;
CREATE TABLE t.users (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), email text CONSTRAINT m_email UNIQUE, login text CONSTRAINT a_login UNIQUE, seen int);
INSERT INTO t.users VALUES (1, 'ann@x', 'ann', 3);
CREATE TABLE e8.users AS SELECT 1 AS id, 'ann@x'::text AS email, 'max'::text AS login, 5 AS seen;
CREATE TABLE e9.users AS SELECT 1 AS id, 'cid@x'::text AS email, 'max'::text AS login, 1 AS seen;
SELECT snowflake_migrate.declare_policy('t.users', c, 'keep_target') FROM unnest('{m_email,a_login}'::name[]) AS c \g /dev/null
SELECT * FROM problems('{e8,e9}');
CALL snowflake_migrate.merge('{e8,e9}', 't', '{325,326}');
ALTER TABLE t.users RENAME CONSTRAINT a_login TO z_login; DELETE FROM snowflake_migrate.declared_policies;
SELECT snowflake_migrate.declare_policy('t.users', c, 'keep_target') FROM unnest('{m_email,z_login}'::name[]) AS c \g /dev/null
SELECT * FROM problems('{e8,e9}');
-- in the target there need be nobody
ALTER TABLE t.users RENAME CONSTRAINT z_login TO a_login; DELETE FROM snowflake_migrate.declared_policies; DELETE FROM t.users;
SELECT snowflake_migrate.declare_policy('t.users', c, 'keep_first', precedence => 'seen DESC') FROM unnest('{m_email,a_login}'::name[]) AS c \g /dev/null
INSERT INTO e9.users VALUES (2, 'ann@x', 'ann', 9);
SELECT * FROM problems('{e8,e9}');
-- a row that has the value by which another one gives way is the same as that, through a third as well
UPDATE e9.users SET login = 'max' WHERE id = 2;
SELECT * FROM problems('{e8,e9}');
-- a row is skipped for one that does not come itself; and one that is skipped for what the target has
DELETE FROM snowflake_migrate.declared_policies; DELETE FROM e9.users; INSERT INTO t.users VALUES (1, 'ann@x', 'ann', 3);
UPDATE e8.users SET email = 'dan@x', login = 'ann'; INSERT INTO e9.users VALUES (1, 'dan@x', 'dan', 1), (2, 'eve@x', 'ann', 1);
ALTER TABLE t.users RENAME CONSTRAINT a_login TO z_login;
SELECT snowflake_migrate.declare_policy('t.users', c, 'skip') FROM unnest('{m_email,z_login}'::name[]) AS c \g /dev/null
SELECT * FROM problems('{e8,e9}');
UPDATE t.users SET email = 'dan@x';
SELECT * FROM problems('{e8,e9}');
-- a row that another one replaces, which is ranked elsewhere, or nowhere: its rank is given to others, and given back
CREATE SCHEMA f1;
CREATE TABLE t.seats (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), nick text CONSTRAINT seats_nick UNIQUE, season text, place int, score int, CONSTRAINT seats_place UNIQUE (season, place));
INSERT INTO t.seats VALUES (1, 'a', 'old', 1, 9), (2, 'b', 'old', 2, 5), (3, 'c', 'old', 3, 2), (4, 'd', 'closed', 1, 2);
CREATE TABLE f1.seats AS SELECT * FROM (VALUES (1, 'a', 'new', 1, 1), (2, 'z', 'old', 1, 99), (3, 'c', 'new', NULL, 7), (4, 'd', 'new', 2, 3)) AS v (id, nick, season, place, score);
CREATE TABLE former_seats AS TABLE t.seats;
SELECT snowflake_migrate.declare_policy('t.seats', 'seats_nick', 'keep_source'), snowflake_migrate.declare_policy('t.seats', 'seats_place', 'rerank', 'score DESC') \g /dev/null
CALL snowflake_migrate.merge('{f1}', 't', '{324}', batch_size => 1) \g /dev/null
SELECT nick, season, place, score FROM t.seats ORDER BY season, place;
SELECT * FROM snowflake_migrate.verify((SELECT max(run) FROM snowflake_migrate.runs));
SELECT max(run) AS run FROM snowflake_migrate.runs \gset
CALL snowflake_migrate.rollback(:run);
SELECT count(*) FROM (TABLE t.seats EXCEPT TABLE former_seats) AS x;
DROP TABLE t.seats, former_seats; DROP SCHEMA f1 CASCADE; DELETE FROM snowflake_migrate.declared_policies;
-- what loses a reference is told, in arrays and documents too, and where rows are skipped
DROP TABLE t.users, e8.users, e9.users; DROP SCHEMA e8, e9; DELETE FROM snowflake_migrate.declared_policies;
CREATE TABLE t.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text CONSTRAINT players_name_key UNIQUE, seen int);
CREATE TABLE t.notes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), player_id bigint REFERENCES t.players, friends bigint[], data jsonb);
CREATE TABLE s1.players AS SELECT * FROM (VALUES (1, 'ann', 1), (2, 'bob', 9)) AS v (id, name, seen);
CREATE TABLE s1.notes AS SELECT * FROM (VALUES (1, 2, '{1,2}'::int[], '{"p": 1}'::jsonb), (2, 1, '{2}', '{"p": 2}')) AS v (id, player_id, friends, data);
SELECT snowflake_migrate.declare_table('t.players', 'copy', "only" => 'seen > 5'), snowflake_migrate.declare_reference('t.notes', 'friends', 't.players', dangling => 'keep'),
	snowflake_migrate.declare_reference('t.notes', 'data', 't.players', path => '$.p', dangling => 'keep') \g /dev/null
SELECT c.object, c.problem, c.count FROM snowflake_migrate.check('{s1}', 't') AS c WHERE c.relation = 't.notes' AND c.problem ~ '^references';
SELECT snowflake_migrate.declare_table('t.players', 'copy'), snowflake_migrate.declare_policy('t.players', 'players_name_key', 'skip') \g /dev/null
INSERT INTO t.players VALUES (1, 'ann', 1);
SELECT c.object, c.problem, c.count FROM snowflake_migrate.check('{s1}', 't') AS c WHERE c.relation = 't.notes' AND c.problem ~ '^references';
DELETE FROM snowflake_migrate.declared_references; DELETE FROM snowflake_migrate.declared_tables;
DROP SCHEMA s1, s2, t CASCADE;
DELETE FROM snowflake_migrate.declared_policies; DELETE FROM snowflake_migrate.declared_no_references;
DROP FUNCTION problems;
DO $$
DECLARE
	schema name;
BEGIN
	FOR schema IN SELECT n.nspname FROM pg_namespace AS n WHERE n.nspname LIKE 'snowflake\_merge\_%' LOOP
		EXECUTE format('DROP SCHEMA %I CASCADE', schema);
	END LOOP;
END $$;
DELETE FROM snowflake_migrate.runs; DELETE FROM snowflake_migrate.nodes;
