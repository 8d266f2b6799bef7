-- A rollback that is broken off, while users go on: what they changed is found again before it goes on, and in each batch.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\set VERBOSITY terse
CREATE SCHEMA there; CREATE SCHEMA here;
CREATE ROLE regress_rollback;
SELECT snowflake_migrate.grant_to('regress_rollback');

-- Takes back a batch, as rollback() does.
CREATE FUNCTION step(run bigint, force boolean DEFAULT false) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	PERFORM snowflake_migrate_internal.begin(run, '{"rolling back"}');
	RETURN snowflake_migrate_internal.rollback_step(run, force);
END $$;
-- What a batch, or a rollback that begins or goes on, is refused for; null: nothing.
CREATE FUNCTION refused(run bigint, batch boolean DEFAULT false) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
BEGIN
	IF batch THEN
		PERFORM step(run);
	ELSE
		PERFORM snowflake_migrate_internal.rollback_start(run, false);
	END IF;
	RETURN NULL;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN replace(SQLERRM, run::text, 'N') || ': ' || regexp_replace(detail, '\d{15,}', 'ID', 'g');
END $$;

CREATE TABLE there.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE, email text UNIQUE, gold int);
CREATE TABLE there.titles (no int PRIMARY KEY, note text);
CREATE TABLE here.players (id serial PRIMARY KEY, name text, email text, gold int);
CREATE TABLE here.titles (no int PRIMARY KEY, note text);
CREATE TABLE there.letters (player_id bigint REFERENCES there.players ON DELETE CASCADE, words text);
INSERT INTO here.players (name, email, gold)
	SELECT 'player ' || i, CASE i WHEN 9 THEN 'arthur@there' ELSE i || '@here' END, i FROM generate_series(1, 9) AS i;
INSERT INTO here.titles SELECT i, 'here' FROM generate_series(1, 9) AS i;
INSERT INTO there.players (name, email) VALUES ('Arthur', 'arthur@there');
SELECT snowflake_migrate.declare_table('there.titles', 'same_id'),
	snowflake_migrate.declare_policy('there.players', 'players_email_key', 'keep_source');
GRANT USAGE ON SCHEMA there, here TO regress_rollback;
GRANT SELECT ON ALL TABLES IN SCHEMA here TO regress_rollback;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA there TO regress_rollback;
SET ROLE regress_rollback;
CALL snowflake_migrate.merge('{here}', 'there', '{670}', batch_size => 3) \gset
SELECT refused(:run);
SELECT step(:run);
RESET ROLE;
SELECT relation, rows_done, rows_to_do FROM snowflake_migrate.progress WHERE run = :run ORDER BY 1;

-- rows that are still to be taken back change, or give way to others; those that are gone may come again
UPDATE there.titles SET note = 'changed' WHERE no = 5;
DELETE FROM there.titles WHERE no = 6; INSERT INTO there.titles VALUES (1, 'somebody''s'), (6, 'somebody''s');
UPDATE there.players SET gold = 1000 WHERE name = 'player 8';
SET ROLE regress_rollback;
SELECT refused(:run);
SELECT refused(:run, batch => true);
SELECT step(:run, force => true);
SELECT refused(:run);
RESET ROLE;
SELECT * FROM there.titles ORDER BY 1;

-- another takes the name of a row of the target that comes back
INSERT INTO there.players (name) VALUES ('Arthur');
SET ROLE regress_rollback;
SELECT refused(:run);
RESET ROLE;
DELETE FROM there.players WHERE name = 'Arthur';
-- another refers to a row that is still there
INSERT INTO there.letters SELECT id, 'words' FROM there.players WHERE name = 'player 2';
SET ROLE regress_rollback;
SELECT refused(:run);
SELECT step(:run);
SELECT refused(:run, batch => true);
RESET ROLE;
DELETE FROM there.letters;
SET ROLE regress_rollback;
CALL snowflake_migrate.rollback(:run, force => true);
RESET ROLE;
SELECT name, email, gold FROM there.players;
SELECT * FROM there.titles;
SELECT severity, relation, problem, count FROM snowflake_migrate.report WHERE run = :run AND severity <> 'info' ORDER BY 1, 2, 4;
DELETE FROM there.titles;

-- where triggers fire, ON DELETE CASCADE would take away what another wrote meanwhile; what a trigger of the rollback
-- changes has not changed since
REVOKE SET ON PARAMETER session_replication_role FROM regress_rollback;
CREATE FUNCTION there.counts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE there.players SET gold = gold + 1;
	RETURN NULL;
END $$;
CREATE TRIGGER counts AFTER DELETE ON there.titles FOR EACH ROW EXECUTE FUNCTION there.counts();
SET ROLE regress_rollback;
CALL snowflake_migrate.merge('{here}', 'there', '{671}', batch_size => 3) \gset
RESET ROLE;
REVOKE UPDATE ON there.titles FROM regress_rollback;
SET ROLE regress_rollback;
SELECT refused(:run);
RESET ROLE;
GRANT UPDATE ON there.titles TO regress_rollback;
SET ROLE regress_rollback;
SELECT refused(:run);
SELECT step(:run);
SELECT step(:run);
SELECT step(:run);
RESET ROLE;
INSERT INTO there.letters SELECT id, 'words' FROM there.players WHERE name = 'player 2';
SET ROLE regress_rollback;
SELECT refused(:run, batch => true);
RESET ROLE;
SELECT count(*) AS letters FROM there.letters;
DELETE FROM there.letters;
SET ROLE regress_rollback;
CALL snowflake_migrate.rollback(:run);
RESET ROLE;
SELECT name, email FROM there.players;
SELECT state FROM snowflake_migrate.runs WHERE run = :run;

-- what stays, since nothing tells it from others, is said
CREATE TABLE there.log (words text); CREATE TABLE here.log (words text);
INSERT INTO here.log VALUES ('one'), ('two');
CALL snowflake_migrate.merge('{here}', 'there', '{672}') \gset
CALL snowflake_migrate.rollback(:run, force => true);
SELECT relation, rows_done, rows_to_do FROM snowflake_migrate.progress WHERE run = :run ORDER BY 1;
SELECT coalesce(m[1], m[2]) AS said
	FROM regexp_matches(snowflake_migrate.report_html(:run), '(Taken back[^\n]*)</p>|(\d+ left|none left)', 'g') AS m;

DELETE FROM snowflake_migrate.declared_policies WHERE relation = 'there.players'::regclass;
DELETE FROM snowflake_migrate.declared_tables WHERE relation = 'there.titles'::regclass;
DROP SCHEMA there, here CASCADE;

--
-- Of a target in use, a cycle is one step, whatever the numbers of its tables: what refers into it goes before
--
CREATE SCHEMA there; CREATE SCHEMA here;
CREATE TABLE there.guild (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE, leader bigint);
CREATE TABLE there.title (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE there.banner (guild_name text REFERENCES there.guild (name));
CREATE TABLE there.rank (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), title_id bigint REFERENCES there.title);
CREATE TABLE there.member (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), guild_id bigint REFERENCES there.guild, rank_id bigint REFERENCES there.rank);
CREATE TABLE here.guild (id int PRIMARY KEY, name text, leader int);
CREATE TABLE here.title (id int PRIMARY KEY);
CREATE TABLE here.banner (guild_name text);
CREATE TABLE here.rank (id int PRIMARY KEY, title_id int);
CREATE TABLE here.member (id int PRIMARY KEY, guild_id int, rank_id int);
INSERT INTO here.title VALUES (1);
INSERT INTO here.rank VALUES (1, 1);
INSERT INTO here.guild SELECT g, 'guild ' || g, g FROM generate_series(1, 30) AS g;
INSERT INTO here.banner SELECT 'guild ' || g FROM generate_series(1, 30) AS g;
INSERT INTO here.member SELECT g, g, 1 FROM generate_series(1, 30) AS g;
SELECT snowflake_migrate.declare_reference('there.guild', 'leader', 'there.member');
SELECT snowflake_migrate.declare_policy('there.guild', 'guild_name_key', 'keep_target');
CALL snowflake_migrate.merge('{here}', 'there', '{673}', target_in_use => true, batch_size => 10, accept_warnings => true) \gset
SELECT string_agg(relation::text, ', ' ORDER BY no) AS by_number, string_agg(relation::text, ', ' ORDER BY copy_step, no) AS by_step
	FROM snowflake_migrate_internal.plan_tables WHERE run = :run AND relation IN ('there.banner'::regclass, 'there.guild'::regclass, 'there.member'::regclass);
CALL snowflake_migrate.rollback(:run);
SELECT (SELECT count(*) FROM there.banner) AS banners, (SELECT count(*) FROM there.guild) AS guilds, (SELECT count(*) FROM there.member) AS members;
DELETE FROM snowflake_migrate.declared_references WHERE relation = 'there.guild'::regclass;
DELETE FROM snowflake_migrate.declared_policies WHERE relation = 'there.guild'::regclass;
DROP SCHEMA there, here CASCADE;

--
-- Rows of a table without a key are taken back of all sources at once: broken off after that, it goes on
--
CREATE SCHEMA there; CREATE SCHEMA here; CREATE SCHEMA near;
CREATE TABLE there.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE there.chat (player_id bigint NOT NULL REFERENCES there.players, words text);
CREATE TABLE here.players (id int PRIMARY KEY, name text); CREATE TABLE here.chat (player_id int, words text);
CREATE TABLE near.players (id int PRIMARY KEY, name text); CREATE TABLE near.chat (player_id int, words text);
INSERT INTO here.players SELECT g, 'here' FROM generate_series(1, 10) AS g; INSERT INTO here.chat SELECT g, 'here' FROM generate_series(1, 10) AS g;
INSERT INTO near.players SELECT g, 'near' FROM generate_series(1, 10) AS g; INSERT INTO near.chat SELECT g, 'near' FROM generate_series(1, 10) AS g;
CALL snowflake_migrate.merge('{here,near}', 'there', '{766,767}', batch_size => 5) \gset
SELECT snowflake_migrate_internal.rollback_start(:run, false) \g /dev/null
SELECT step(:run);
SELECT (SELECT count(*) FROM there.chat) AS chat, (SELECT count(*) FROM there.players) AS players,
	(SELECT sum(rows_done) FROM snowflake_migrate.progress WHERE run = :run AND relation = 'there.chat') AS to_take_back;
CALL snowflake_migrate.rollback(:run);
SELECT (SELECT count(*) FROM there.chat) AS chat, (SELECT count(*) FROM there.players) AS players, state FROM snowflake_migrate.runs WHERE run = :run;
DROP SCHEMA there, here, near CASCADE;
DROP FUNCTION refused, step;
DROP OWNED BY regress_rollback;
DROP ROLE regress_rollback;
