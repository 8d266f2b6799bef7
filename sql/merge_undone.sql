-- Merges that are taken back after something else has happened: nothing of the target is lost, and nothing left without a word.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\pset format unaligned
CREATE SCHEMA lost_a;
CREATE SCHEMA lost_b;
CREATE SCHEMA lost_t;
CREATE ROLE regress_snowflake_forger;
-- What a rollback says, and what becomes of the run.
CREATE FUNCTION pg_temp.taken_back(run bigint, force boolean DEFAULT false) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
	hint text;
BEGIN
	PERFORM snowflake_migrate_internal.rollback_start(run, force);
	PERFORM snowflake_migrate_internal.begin(run, '{"rolling back"}');
	PERFORM snowflake_migrate_internal.rollback_step(run, force);
	RETURN 'is taken back';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN regexp_replace(regexp_replace(concat_ws(' / ', SQLERRM, detail, hint), '\m(merge) \d+', '\1 N', 'g'), '\d{15,}', 'ID', 'g');
END $$;
-- What the call of a merge that was broken off says when it is made again.
CREATE FUNCTION pg_temp.continued() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	run bigint;
BEGIN
	CALL snowflake_migrate.merge('{lost_a}', 'lost_t', '{359}', run => run);
	RETURN 'goes on';
EXCEPTION WHEN OTHERS THEN
	RETURN regexp_replace(SQLERRM, '\m(merge) \d+', '\1 N');
END $$;

-- keys that are no ids, and that users have changed
CREATE TABLE lost_t.jobs (tenant text, no int, status text, PRIMARY KEY (tenant, no, status)) PARTITION BY LIST (status);
CREATE TABLE lost_t.jobs_open PARTITION OF lost_t.jobs FOR VALUES IN ('open');
CREATE TABLE lost_t.jobs_closed PARTITION OF lost_t.jobs FOR VALUES IN ('closed');
CREATE TABLE lost_t.pages (slug text PRIMARY KEY, body text);
INSERT INTO lost_t.jobs VALUES ('t', 1, 'open');
CREATE TABLE lost_a.jobs AS SELECT 'a' AS tenant, g AS no, 'open' AS status FROM generate_series(1, 3) AS g;
CREATE TABLE lost_a.pages AS SELECT 'a' || g AS slug, 'a' AS body FROM generate_series(1, 3) AS g;
CALL snowflake_migrate.merge('{lost_a}', 'lost_t', '{356}') \gset
UPDATE lost_t.jobs SET status = 'closed' WHERE (tenant, no) = ('a', 2);
UPDATE lost_t.pages SET slug = 'renamed' WHERE slug = 'a2';
CALL snowflake_migrate.rollback(:run);
SELECT state FROM snowflake_migrate.runs WHERE runs.run = :run;
TABLE lost_t.jobs; TABLE lost_t.pages;
DROP TABLE lost_t.jobs, lost_t.pages, lost_a.jobs, lost_a.pages;

-- two merges that both have replaced a row: the later one is taken back first, whatever is forced
CREATE TABLE lost_t.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE, gold int);
CREATE TABLE lost_t.guilds (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE, gold int);
INSERT INTO lost_t.heroes VALUES (1, 'x', 100); INSERT INTO lost_t.guilds VALUES (1, 'x', 100);
CREATE TABLE lost_a.heroes AS SELECT 1::bigint AS id, 'x' AS name, 10 AS gold; CREATE TABLE lost_a.guilds AS TABLE lost_a.heroes;
CREATE TABLE lost_b.heroes AS SELECT 1::bigint AS id, 'x' AS name, 1 AS gold; CREATE TABLE lost_b.guilds AS TABLE lost_b.heroes;
SELECT snowflake_migrate.declare_policy('lost_t.heroes', 'heroes_name_key', 'keep_source'),
	snowflake_migrate.declare_policy('lost_t.guilds', 'guilds_name_key', 'keep_target', combine => '{"gold": "sum"}') \g /dev/null
CALL snowflake_migrate.merge('{lost_a}', 'lost_t', '{357}') \gset
\set first :run
\unset run
CALL snowflake_migrate.merge('{lost_b}', 'lost_t', '{358}') \gset
SELECT pg_temp.taken_back(:first), pg_temp.taken_back(:first, true);
CALL snowflake_migrate.rollback(:run);
CALL snowflake_migrate.rollback(:first);
TABLE lost_t.heroes; TABLE lost_t.guilds;
DELETE FROM snowflake_migrate.declared_policies WHERE relation IN ('lost_t.heroes'::regclass, 'lost_t.guilds'::regclass);
DROP TABLE lost_t.heroes, lost_t.guilds, lost_a.heroes, lost_a.guilds, lost_b.heroes, lost_b.guilds;

-- three merges that replace, rank and combine rows of each other's: in the right order, each is taken back as it is, unless a user
-- changed a row in between, whatever the later merges gave back
CREATE TABLE lost_t.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE, gold int);
CREATE TABLE lost_t.guilds (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE, gold int);
CREATE TABLE lost_t.ladder (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), place int UNIQUE, points int);
CREATE SCHEMA lost_c;
SELECT format('CREATE TABLE lost_%1$s.heroes AS SELECT g::bigint AS id, ''x'' || g AS name, %2$s AS gold FROM generate_series(1, 2) AS g; '
	'CREATE TABLE lost_%1$s.guilds AS TABLE lost_%1$s.heroes; '
	'CREATE TABLE lost_%1$s.ladder AS SELECT g::bigint AS id, g AS place, 10 * g + %2$s AS points FROM generate_series(1, 2) AS g', s, n)
	FROM unnest('{a,b,c}'::text[], '{1,2,3}'::int[]) AS x (s, n) \gexec
SELECT snowflake_migrate.declare_policy('lost_t.heroes', 'heroes_name_key', 'keep_source'),
	snowflake_migrate.declare_policy('lost_t.guilds', 'guilds_name_key', 'keep_target', combine => '{"gold": "sum"}'),
	snowflake_migrate.declare_policy('lost_t.ladder', 'ladder_place_key', 'rerank', 'points DESC') \g /dev/null
CREATE FUNCTION pg_temp.rows() RETURNS text LANGUAGE sql AS $$
	SELECT concat_ws(' / ', (SELECT string_agg(format('%s %s', name, gold), ', ' ORDER BY name) FROM lost_t.heroes),
		(SELECT string_agg(format('%s %s', name, gold), ', ' ORDER BY name) FROM lost_t.guilds),
		(SELECT string_agg(format('%s %s', place, points), ', ' ORDER BY place) FROM lost_t.ladder))
$$;
\unset run
CALL snowflake_migrate.merge('{lost_a}', 'lost_t', '{301}') \gset a_
CALL snowflake_migrate.merge('{lost_b}', 'lost_t', '{302}') \gset b_
CALL snowflake_migrate.merge('{lost_c}', 'lost_t', '{303}') \gset c_
SELECT pg_temp.rows();
CALL snowflake_migrate.rollback(:c_run);
SELECT pg_temp.rows();
CALL snowflake_migrate.rollback(:b_run);
SELECT pg_temp.rows();
SELECT snowflake_migrate.declare_policy('lost_t.guilds', 'guilds_name_key', 'keep_target') \g /dev/null
CALL snowflake_migrate.merge('{lost_c}', 'lost_t', '{304}', target_in_use => true) \gset d_
CALL snowflake_migrate.rollback(:d_run);
SELECT pg_temp.rows();
UPDATE lost_t.heroes SET gold = 7 WHERE name = 'x2'; UPDATE lost_t.ladder SET points = 77 WHERE place = 1;
SELECT pg_temp.taken_back(:a_run);
CALL snowflake_migrate.merge('{lost_c}', 'lost_t', '{305}') \gset d_
CALL snowflake_migrate.rollback(:d_run);
SELECT pg_temp.taken_back(:a_run);
UPDATE lost_t.heroes SET gold = 8 WHERE name = 'x1';
SELECT pg_temp.taken_back(:a_run);
CALL snowflake_migrate.rollback(:a_run, force => true);
SELECT pg_temp.rows();
DELETE FROM snowflake_migrate.declared_policies WHERE relation::text ~ '^lost_t.(heroes|guilds|ladder)$';
DROP TABLE lost_t.heroes, lost_t.guilds, lost_t.ladder, lost_a.heroes, lost_a.guilds, lost_a.ladder, lost_b.heroes, lost_b.guilds, lost_b.ladder;
DROP SCHEMA lost_c CASCADE;

-- two merges that combine the same rows: the later one first; what a user has written since it is not lost with the earlier one
CREATE TABLE lost_t.wallets (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), email text UNIQUE, gold int, note text);
INSERT INTO lost_t.wallets VALUES (1, 'x1', 5);
CREATE TABLE lost_a.wallets AS SELECT g::bigint AS id, 'x' || g AS email, 10 * g AS gold FROM generate_series(1, 3) AS g;
CREATE TABLE lost_b.wallets AS SELECT g::bigint AS id, 'x' || g AS email, g AS gold FROM generate_series(1, 3) AS g;
SELECT snowflake_migrate.declare_policy('lost_t.wallets', 'wallets_email_key', 'keep_target', combine => '{"gold": "sum"}') \g /dev/null
CALL snowflake_migrate.merge('{lost_a}', 'lost_t', '{309}', accept_warnings => true) \gset a_
CALL snowflake_migrate.merge('{lost_b}', 'lost_t', '{310}', accept_warnings => true) \gset b_
SELECT pg_temp.taken_back(:a_run, true);
UPDATE lost_t.wallets SET note = 'of a user' WHERE email = 'x2';
CALL snowflake_migrate.rollback(:b_run);
SELECT email, gold, note FROM lost_t.wallets ORDER BY email;
SELECT pg_temp.taken_back(:a_run);
CALL snowflake_migrate.rollback(:a_run, force => true);
SELECT email, gold, note FROM lost_t.wallets ORDER BY email;
DELETE FROM snowflake_migrate.declared_policies WHERE relation = 'lost_t.wallets'::regclass;
DROP TABLE lost_t.wallets, lost_a.wallets, lost_b.wallets;

-- two merges that rank the same rows: the later one first
CREATE TABLE lost_t.ladder (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), place int UNIQUE, points int);
INSERT INTO lost_t.ladder VALUES (1, 1, 100), (2, 2, 90);
CREATE TABLE lost_a.ladder AS SELECT g::bigint AS id, g AS place, 100 + g AS points FROM generate_series(1, 2) AS g;
CREATE TABLE lost_b.ladder AS SELECT g::bigint AS id, g AS place, 200 + g AS points FROM generate_series(1, 2) AS g;
SELECT snowflake_migrate.declare_policy('lost_t.ladder', 'ladder_place_key', 'rerank', 'points DESC') \g /dev/null
CALL snowflake_migrate.merge('{lost_a}', 'lost_t', '{312}') \gset a_
CALL snowflake_migrate.merge('{lost_b}', 'lost_t', '{313}') \gset b_
SELECT pg_temp.taken_back(:a_run, true);
CALL snowflake_migrate.rollback(:b_run);
CALL snowflake_migrate.rollback(:a_run);
TABLE lost_t.ladder;
DELETE FROM snowflake_migrate.declared_policies WHERE relation = 'lost_t.ladder'::regclass;
DROP TABLE lost_t.ladder, lost_a.ladder, lost_b.ladder;

-- rows of a table without a key that were purged, or changed so that nothing tells them, are told of; those that are left go
CREATE TABLE lost_t.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE lost_t.visits (hero_id bigint REFERENCES lost_t.heroes, at int);
CREATE TABLE lost_a.heroes AS SELECT g::bigint AS id, 'x' || g AS name FROM generate_series(1, 5) AS g;
CREATE TABLE lost_a.visits AS SELECT g::bigint AS hero_id, g AS at FROM generate_series(1, 5) AS g;
INSERT INTO lost_t.visits VALUES (NULL, 0);
CALL snowflake_migrate.merge('{lost_a}', 'lost_t', '{306}') \gset a_
DELETE FROM lost_t.visits WHERE at < 3;
UPDATE lost_t.visits SET hero_id = NULL WHERE at = 3;
CALL snowflake_migrate.rollback(:a_run);
TABLE lost_t.visits;
INSERT INTO lost_a.visits VALUES (NULL, 6);
CALL snowflake_migrate.merge('{lost_a}', 'lost_t', '{307}') \gset a_
DELETE FROM lost_t.visits WHERE at < 3;
SELECT pg_temp.taken_back(:a_run);
CALL snowflake_migrate.rollback(:a_run, force => true);
TABLE lost_t.visits;
DROP TABLE lost_t.visits, lost_t.heroes, lost_a.visits, lost_a.heroes;

-- a role that can't keep triggers from firing takes back what it merged, also where a table that was not merged refers
-- to itself, or has no key and can't be read; and twice into one table
CREATE TABLE lost_t.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE, gold int);
CREATE TABLE lost_t.archive (t text);
CREATE TABLE lost_t.folders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), parent_id bigint REFERENCES lost_t.folders);
CREATE TABLE lost_a.heroes AS SELECT g::bigint AS id, 'x' || g AS name, 1 AS gold FROM generate_series(1, 5) AS g;
CREATE TABLE lost_b.heroes AS SELECT id, name, 2 AS gold FROM lost_a.heroes;
SELECT snowflake_migrate.declare_policy('lost_t.heroes', 'heroes_name_key', 'keep_source', combine => '{"gold": "sum"}') \g /dev/null
-- a dry run is on record under the number that it has from the beginning
SELECT last_value AS last FROM snowflake_migrate_internal.run_number \gset
CALL snowflake_migrate.merge('{lost_a}', 'lost_t', '{308}', accept_warnings => true, dry_run => true) \gset dry_
SELECT :dry_run - :last AS numbers, state FROM snowflake_migrate.runs WHERE run = :dry_run;
GRANT USAGE ON SCHEMA lost_t, lost_a, lost_b TO regress_snowflake_forger;
GRANT ALL ON ALL TABLES IN SCHEMA lost_t, lost_a, lost_b TO regress_snowflake_forger;
REVOKE ALL ON lost_t.archive FROM regress_snowflake_forger;
SELECT snowflake_migrate.grant_to('regress_snowflake_forger') \g /dev/null
REVOKE SET ON PARAMETER session_replication_role FROM regress_snowflake_forger;
SET SESSION AUTHORIZATION regress_snowflake_forger;
CALL snowflake_migrate.merge('{lost_a}', 'lost_t', '{308}', accept_warnings => true) \gset a_
CALL snowflake_migrate.merge('{lost_b}', 'lost_t', '{311}', accept_warnings => true) \gset b_
SELECT count(*), max(gold) FROM lost_t.heroes;
CALL snowflake_migrate.rollback(:b_run);
SELECT count(*), max(gold) FROM lost_t.heroes;
CALL snowflake_migrate.rollback(:a_run);
RESET SESSION AUTHORIZATION;
-- suggestions need the rights of the check, and say which
DO $$ BEGIN EXECUTE format('REVOKE CREATE ON DATABASE %I FROM regress_snowflake_forger', current_database()); END $$;
SET SESSION AUTHORIZATION regress_snowflake_forger;
SELECT statement FROM snowflake_migrate.suggest('{lost_a}', 'lost_t');
RESET SESSION AUTHORIZATION;
TABLE lost_t.heroes;
DELETE FROM snowflake_migrate.declared_policies WHERE relation = 'lost_t.heroes'::regclass;
DROP TABLE lost_t.heroes, lost_t.folders, lost_t.archive, lost_a.heroes, lost_b.heroes;

-- a later merge that has found its rows in the target, and not copied them
CREATE TABLE lost_t.badges (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE);
CREATE TABLE lost_a.badges AS SELECT 1::bigint AS id, 'brave' AS name; CREATE TABLE lost_b.badges AS TABLE lost_a.badges;
SELECT snowflake_migrate.declare_table('lost_t.badges', 'match', '{name}') \g /dev/null
CALL snowflake_migrate.merge('{lost_a}', 'lost_t', '{364}') \gset
\set first :run
\unset run
CALL snowflake_migrate.merge('{lost_b}', 'lost_t', '{365}') \gset
SELECT pg_temp.taken_back(:first, true);
CALL snowflake_migrate.rollback(:run);
SELECT count(*) FROM lost_t.badges;
CALL snowflake_migrate.rollback(:first);
SELECT count(*) FROM lost_t.badges;
DROP TABLE lost_t.badges, lost_a.badges, lost_b.badges;

-- a table that its owner drops in the middle: the rest is taken back, and the next source comes
CREATE TABLE lost_t.logs (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE lost_t.marks (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), log bigint REFERENCES lost_t.logs);
CREATE TABLE lost_a.logs AS SELECT g::bigint AS id, 'a' || g AS name FROM generate_series(1, 3) AS g;
CREATE TABLE lost_a.marks AS SELECT g::bigint AS id, g::bigint AS log FROM generate_series(1, 3) AS g;
CREATE FUNCTION lost_t.not_now() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not now'; END $$;
CREATE TRIGGER not_now BEFORE INSERT ON lost_t.marks FOR EACH ROW EXECUTE FUNCTION lost_t.not_now();
ALTER TABLE lost_t.marks ENABLE ALWAYS TRIGGER not_now;
CALL snowflake_migrate.merge('{lost_a}', 'lost_t', '{359}', batch_size => 1);
SELECT max(run) AS run FROM snowflake_migrate.runs \gset
SELECT state, (SELECT count(*) FROM lost_t.logs) AS logs FROM snowflake_migrate.runs WHERE runs.run = :run;
ALTER TABLE lost_t.marks RENAME id TO mark;
SELECT pg_temp.continued();
ALTER TABLE lost_t.marks DROP mark;
SELECT pg_temp.taken_back(:run, true);
DROP TABLE lost_t.marks;
SELECT pg_temp.continued();
CALL snowflake_migrate.rollback(:run);
SELECT state, (SELECT count(*) FROM lost_t.logs) AS logs FROM snowflake_migrate.runs WHERE runs.run = :run;
SELECT severity, problem, count FROM snowflake_migrate.report WHERE report.run = :run AND problem LIKE '%no longer exist%';
CREATE TABLE lost_b.logs AS TABLE lost_a.logs;
CALL snowflake_migrate.merge('{lost_b}', 'lost_t', '{360}') \gset
SELECT state FROM snowflake_migrate.runs WHERE runs.run = :run;

-- another role's record of a merge that never was: it holds up no rollback, and where it could be true a superuser can remove it
SELECT snowflake_migrate.grant_to('regress_snowflake_forger');
SET ROLE regress_snowflake_forger;
INSERT INTO snowflake_migrate.runs (sources, schemas, targets, nodes, state, batch_size, started_at)
VALUES ('{x}', '{{lost_b}}', '{lost_t}', '{361}', 'done', 1, clock_timestamp()),
	('{x}', '{}', '{}', '{362}', 'done', 1, clock_timestamp()), ('{x}', '{{lost_b},{lost_b}}', '{}', '{363}', 'done', 1, clock_timestamp());
RESET ROLE;
CALL snowflake_migrate.rollback(:run);
SELECT state FROM snowflake_migrate.runs WHERE runs.run = :run;
CREATE SCHEMA lost_u; CREATE SCHEMA lost_c;
CREATE TABLE lost_u.one (id bigint PRIMARY KEY DEFAULT snowflake_nextval()); CREATE TABLE lost_c.one AS TABLE lost_u.one;
DO $$
DECLARE
	detail text;
	hint text;
BEGIN
	PERFORM FROM snowflake_migrate.check('{{lost_b,lost_c}}', targets => '{lost_t,lost_u}');
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RAISE WARNING '%', regexp_replace(concat_ws(' / ', SQLERRM, detail, hint), '(merge|run =) \d+', '\1 N', 'g');
END $$;
DELETE FROM snowflake_migrate.runs WHERE merged_by = 'regress_snowflake_forger';
SELECT severity, relation, problem FROM snowflake_migrate.check('{{lost_b,lost_c}}', targets => '{lost_t,lost_u}') WHERE severity <> 'info';

-- of a target in use, rows that users change between their copying and the numbering of ranks: their changes stay theirs, and a
-- rollback, of this merge and of an earlier one, asks before it loses them
CREATE SCHEMA rank_a; CREATE SCHEMA rank_b; CREATE SCHEMA rank_t;
CREATE TABLE rank_t.climbers (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE, place int UNIQUE, points int, gold int);
CREATE TABLE rank_t.toys (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), climber_id bigint REFERENCES rank_t.climbers);
INSERT INTO rank_t.climbers VALUES (1, 't1', 1, 100, 0), (2, 't2', 2, 90, 0);
CREATE TABLE rank_a.climbers AS
	SELECT g::bigint AS id, 'a' || g AS name, g AS place, points, 0 AS gold FROM unnest('{200,95,94}'::int[]) WITH ORDINALITY AS x (points, g);
CREATE TABLE rank_b.climbers AS
	SELECT g::bigint AS id, n AS name, g AS place, points, 0 AS gold FROM unnest('{300,97,1}'::int[], '{b1,a2,b3}'::text[]) WITH ORDINALITY AS x (points, n, g);
CREATE TABLE rank_b.toys AS SELECT 1::bigint AS id, 1::bigint AS climber_id;
SELECT snowflake_migrate.declare_policy('rank_t.climbers', 'climbers_place_key', 'rerank', 'points DESC, id'),
	snowflake_migrate.declare_policy('rank_t.climbers', 'climbers_name_key', 'keep_source') \g /dev/null
CALL snowflake_migrate.merge('{rank_a}', 'rank_t', '{367}', accept_warnings => true) \gset a_
CREATE FUNCTION rank_t.stop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no toys today''; END';
CREATE TRIGGER stop BEFORE INSERT ON rank_t.toys FOR EACH ROW EXECUTE FUNCTION rank_t.stop();
ALTER TABLE rank_t.toys ENABLE ALWAYS TRIGGER stop;
\set VERBOSITY terse
CALL snowflake_migrate.merge('{rank_b}', 'rank_t', '{368}', target_in_use => true, accept_warnings => true);
\set VERBOSITY default
UPDATE rank_t.climbers SET gold = 500 WHERE name IN ('a1', 'a2', 'b1');
CREATE OR REPLACE FUNCTION rank_t.stop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
CALL snowflake_migrate.merge('{rank_b}', 'rank_t', '{368}', target_in_use => true, accept_warnings => true) \gset b_
SELECT name, place, points, gold FROM rank_t.climbers ORDER BY place;
SELECT state FROM snowflake_migrate.runs WHERE run = :b_run;
SELECT severity, relation, problem, count FROM snowflake_migrate.report
WHERE run = :b_run AND (severity <> 'info' OR problem ~ 'changed since') ORDER BY relation;
SELECT pg_temp.taken_back(:b_run) ~ '^.*rank_t.climbers: 2 rows' AS asks;
CALL snowflake_migrate.rollback(:b_run, force => true);
SELECT name, place, points, gold FROM rank_t.climbers ORDER BY place;
SELECT pg_temp.taken_back(:a_run) ~ '^.*rank_t.climbers: 2 rows' AS asks;
CALL snowflake_migrate.rollback(:a_run, force => true);
SELECT name, place, points, gold FROM rank_t.climbers ORDER BY place;
DELETE FROM snowflake_migrate.declared_policies WHERE relation = 'rank_t.climbers'::regclass;

-- a merge that found a row by what an earlier one had given it: that one is not taken back before it
CREATE TABLE rank_t.accounts (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), email text UNIQUE, nick text UNIQUE);
CREATE TABLE rank_t.pets (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), account_id bigint REFERENCES rank_t.accounts, name text);
INSERT INTO rank_t.accounts VALUES (1, 'x', 'old');
DROP TABLE rank_a.climbers, rank_b.climbers, rank_b.toys;
CREATE TABLE rank_a.accounts AS SELECT 1::bigint AS id, 'x' AS email, 'new' AS nick;
CREATE TABLE rank_b.accounts AS SELECT 1::bigint AS id, 'y' AS email, 'new' AS nick;
CREATE TABLE rank_b.pets AS SELECT 1::bigint AS id, 1::bigint AS account_id, 'of y' AS name;
SELECT snowflake_migrate.declare_policy('rank_t.accounts', 'accounts_email_key', 'keep_source'),
	snowflake_migrate.declare_policy('rank_t.accounts', 'accounts_nick_key', 'keep_target') \g /dev/null
CALL snowflake_migrate.merge('{rank_a}', 'rank_t', '{370}', accept_warnings => true) \gset a_
CALL snowflake_migrate.merge('{rank_b}', 'rank_t', '{371}', accept_warnings => true) \gset b_
SELECT pg_temp.taken_back(:a_run), pg_temp.taken_back(:a_run, true);
CALL snowflake_migrate.rollback(:b_run);
CALL snowflake_migrate.rollback(:a_run);
SELECT a.email, a.nick, p.name FROM rank_t.accounts AS a LEFT JOIN rank_t.pets AS p ON p.account_id = a.id;
DELETE FROM snowflake_migrate.declared_policies WHERE relation = 'rank_t.accounts'::regclass;
DELETE FROM rank_t.accounts;
-- likewise where that one had only renamed the row
INSERT INTO rank_t.accounts VALUES (1, 'old', 'x');
UPDATE rank_a.accounts SET email = 'y', nick = 'x'; UPDATE rank_b.accounts SET email = 'z', nick = 'x.t';
SELECT snowflake_migrate.declare_policy('rank_t.accounts', 'accounts_nick_key', 'suffix', '.t', precedence => 'email DESC') \g /dev/null
CALL snowflake_migrate.merge('{rank_a}', 'rank_t', '{375}', accept_warnings => true) \gset a_
SELECT snowflake_migrate.declare_policy('rank_t.accounts', 'accounts_nick_key', 'keep_target') \g /dev/null
CALL snowflake_migrate.merge('{rank_b}', 'rank_t', '{376}', accept_warnings => true) \gset b_
SELECT pg_temp.taken_back(:a_run), pg_temp.taken_back(:a_run, true);
CALL snowflake_migrate.rollback(:b_run);
CALL snowflake_migrate.rollback(:a_run);
SELECT a.email, a.nick, p.name FROM rank_t.accounts AS a LEFT JOIN rank_t.pets AS p ON p.account_id = a.id;
DELETE FROM snowflake_migrate.declared_policies WHERE relation = 'rank_t.accounts'::regclass;

SET client_min_messages = error;
DROP SCHEMA lost_a, lost_b, lost_c, lost_t, lost_u, rank_a, rank_b, rank_t CASCADE;
DO $$
DECLARE
	s name;
BEGIN
	FOR s IN SELECT nspname FROM pg_namespace WHERE nspname ~ '^snowflake_merge_' LOOP
		EXECUTE format('DROP SCHEMA %I CASCADE', s);
	END LOOP;
END $$;
DROP OWNED BY regress_snowflake_forger;
REVOKE SET ON PARAMETER session_replication_role FROM regress_snowflake_forger;
DROP ROLE regress_snowflake_forger;
