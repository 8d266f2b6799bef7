-- What a rollback would lose, or could not bring back, it says before it takes anything back; in a batch, too, where others
-- write meanwhile.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\set VERBOSITY terse
CREATE SCHEMA there; CREATE SCHEMA here;

-- Why a rollback, or its next batch, is refused; null: it is not.  What it did is undone.
CREATE FUNCTION refused(run bigint, batch boolean DEFAULT false) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
	hint text;
BEGIN
	IF batch THEN
		PERFORM snowflake_migrate_internal.begin(run, '{"rolling back"}');
		PERFORM snowflake_migrate_internal.rollback_step(run, false);
	ELSE
		PERFORM snowflake_migrate_internal.rollback_start(run, false);
	END IF;
	RAISE EXCEPTION USING ERRCODE = 'SF999';
EXCEPTION WHEN SQLSTATE 'SF999' THEN
	RETURN NULL;
WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN regexp_replace(regexp_replace(concat_ws(E'\n', SQLERRM, detail, hint), '\m(merge) \d+', '\1 N', 'g'), '\d{15,}', 'ID', 'g');
END $$;
CREATE FUNCTION step(run bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM snowflake_migrate_internal.begin(run, '{"rolling back"}');
	PERFORM snowflake_migrate_internal.rollback_step(run, false);
END $$;

CREATE EXTENSION citext;
CREATE TABLE there.guilds (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), code citext UNIQUE);
CREATE TABLE there.players (
	id bigint PRIMARY KEY DEFAULT snowflake_nextval(), email text NOT NULL UNIQUE, guild bigint REFERENCES there.guilds,
	gold int, zone int4range, seen int, nick text UNIQUE, CONSTRAINT players_zone EXCLUDE USING gist (zone WITH &&));
CREATE TABLE there.wallets (player bigint PRIMARY KEY REFERENCES there.players, coins int);
CREATE TABLE there.bets (code citext REFERENCES there.guilds (code));
CREATE TABLE here.guilds (id serial PRIMARY KEY, code citext UNIQUE);
CREATE TABLE here.players (id serial PRIMARY KEY, email text UNIQUE, guild int REFERENCES here.guilds, gold int, zone int4range, seen int, nick text);
CREATE TABLE here.wallets (player int PRIMARY KEY REFERENCES here.players, coins int);
INSERT INTO there.guilds VALUES (5, 'theirs');
INSERT INTO there.players VALUES (7, 'a@x', 5, 1, '[10,15)', 1, 'old');
INSERT INTO here.guilds (code) VALUES ('ours');
INSERT INTO here.players (email, guild, gold, zone, seen, nick) VALUES ('a@x', 1, 100, '[100,105)', 2, 'new'), ('b@x', 1, 200, '[200,205)', 2, 'b');
INSERT INTO here.wallets VALUES (2, 20);
SELECT snowflake_migrate.declare_policy('there.players', 'players_email_key', 'keep_source'),
	snowflake_migrate.declare_table('there.bets', 'ignore');
CREATE TABLE before AS SELECT * FROM there.players;
CALL snowflake_migrate.merge('{here}', 'there', '{680}', batch_size => 1) \gset
SELECT refused(:run);

-- a row that comes back refers to one that is gone, or wants what a newer row has
DELETE FROM there.guilds WHERE id = 5;
SELECT refused(:run);
INSERT INTO there.guilds VALUES (5, 'theirs');
INSERT INTO there.players (email, zone) VALUES ('new', '[12,13)');
SELECT refused(:run);
DELETE FROM there.players WHERE email = 'new';
-- a newer row refers to a value that was another
CREATE TABLE there.letters (nick text REFERENCES there.players (nick));
INSERT INTO there.letters VALUES ('new');
SELECT refused(:run);
DROP TABLE there.letters;
-- a column has another name
ALTER TABLE there.players RENAME gold TO coins;
SELECT refused(:run);
ALTER TABLE there.players RENAME coins TO gold;

-- in its batches: a row that comes back refers to one that is gone by now; what was taken back is written again; what
-- refers to a row by another column than its key
SELECT snowflake_migrate_internal.rollback_start(:run, false);
SELECT step(:run);
SELECT count(*) AS wallets FROM there.wallets;
DELETE FROM there.guilds WHERE id = 5;
SELECT refused(:run, batch => true);
INSERT INTO there.guilds VALUES (5, 'theirs');
SELECT step(:run);
INSERT INTO there.wallets SELECT id, 1 FROM there.players WHERE email = 'b@x';
SELECT refused(:run), refused(:run, batch => true);
DELETE FROM there.wallets;
SELECT step(:run);
INSERT INTO there.bets VALUES ('OURS');
SELECT refused(:run), refused(:run, batch => true);
DELETE FROM there.bets;
CALL snowflake_migrate.rollback(:run);
SELECT count(*) AS rows, bool_and(p = b) AS as_before FROM there.players AS p FULL JOIN before AS b USING (id);

-- triggers that keep rows, or change them
CREATE FUNCTION there.keeps() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE FUNCTION there.changes() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.gold := NEW.gold + 1; RETURN NEW; END';
CALL snowflake_migrate.merge('{here}', 'there', '{682}') \gset
CREATE TRIGGER keeps BEFORE DELETE ON there.players FOR EACH ROW EXECUTE FUNCTION there.keeps();
ALTER TABLE there.players ENABLE ALWAYS TRIGGER keeps;
CREATE TRIGGER changes BEFORE UPDATE ON there.players FOR EACH ROW EXECUTE FUNCTION there.changes();
SELECT snowflake_migrate_internal.rollback_start(:run, false);
SELECT refused(:run, batch => true);
ALTER TABLE there.players DISABLE TRIGGER keeps, ENABLE ALWAYS TRIGGER changes;
SELECT refused(:run, batch => true);
DROP TRIGGER changes ON there.players;
CREATE TRIGGER keeps_former BEFORE UPDATE ON there.players FOR EACH ROW EXECUTE FUNCTION there.keeps();
ALTER TABLE there.players ENABLE ALWAYS TRIGGER keeps_former;
SELECT refused(:run, batch => true);
ALTER TABLE there.players DISABLE TRIGGER keeps_former;
CALL snowflake_migrate.rollback(:run);
SELECT count(*) AS rows, bool_and(p = b) AS as_before FROM there.players AS p FULL JOIN before AS b USING (id);

-- columns that were added since, one with a foreign key, and one whose type is another now; one that was dropped
CALL snowflake_migrate.merge('{here}', 'there', '{689}') \gset
ALTER TABLE there.players ADD clan bigint REFERENCES there.guilds, ADD area int4range,
	ADD CONSTRAINT players_area EXCLUDE USING gist (area WITH &&), ALTER nick TYPE varchar, DROP seen;
UPDATE there.guilds SET code = 'Ours' WHERE code = 'ours';
SELECT refused(:run);
CALL snowflake_migrate.rollback(:run, force => true);
SELECT p.id, p.email, p.guild, p.gold, p.zone, p.nick FROM there.players AS p;
ALTER TABLE there.players DROP area, DROP clan, ALTER nick TYPE text, ADD seen int;
UPDATE there.players SET seen = 1;
DROP TABLE before;
CREATE TABLE before AS SELECT * FROM there.players;

-- a declared reference of a row that was replaced, to one of another table that is taken back before
CREATE TABLE there.pets (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), owner bigint REFERENCES there.players, name text);
CREATE TABLE here.pets (id serial PRIMARY KEY, owner int REFERENCES here.players, name text);
ALTER TABLE there.players ADD pet bigint; ALTER TABLE here.players ADD pet int;
INSERT INTO here.pets (owner, name) VALUES (1, 'rex');
UPDATE here.players SET pet = 1 WHERE id = 1;
SELECT snowflake_migrate.declare_reference('there.players', 'pet', 'there.pets');
CALL snowflake_migrate.merge('{here}', 'there', '{675}') \gset
SELECT p.email, e.name FROM there.players AS p JOIN there.pets AS e ON e.id = p.pet;
CALL snowflake_migrate.rollback(:run);
SELECT id, email, pet FROM there.players;
SELECT count(*) FROM there.pets;
DELETE FROM snowflake_migrate.declared_references WHERE relation = 'there.players'::regclass;
DROP TABLE there.pets, here.pets;
ALTER TABLE there.players DROP pet; ALTER TABLE here.players DROP pet;
DROP TABLE before;
CREATE TABLE before AS SELECT * FROM there.players;

-- another merge has replaced a row that refers to one of this: that one goes first
CALL snowflake_migrate.merge('{here}', 'there', '{685}') \gset
CREATE SCHEMA third;
CREATE TABLE third.players (id serial PRIMARY KEY, email text UNIQUE, guild int, gold int, zone int4range, seen int, nick text);
INSERT INTO third.players (email, gold, seen) VALUES ('a@x', 3, 3);
CALL snowflake_migrate.merge('{third}', 'there', '{681}') \gset third_
SELECT refused(:run);
CALL snowflake_migrate.rollback(:third_run);
-- by force: that one has written the row
CALL snowflake_migrate.rollback(:run, force => true);
SELECT count(*) AS rows, bool_and(p = b) AS as_before FROM there.players AS p FULL JOIN before AS b USING (id);

-- several policies give one row of the target other values of several columns
CREATE TABLE there.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text NOT NULL UNIQUE, slot int NOT NULL UNIQUE, motto text UNIQUE, seen int);
CREATE TABLE here.heroes (id serial PRIMARY KEY, name text, slot int, motto text, seen int);
INSERT INTO there.heroes VALUES (7, 'bob', 1, 'x', 1);
INSERT INTO here.heroes (name, slot, motto, seen) VALUES ('bob', 1, 'x', 2);
SELECT snowflake_migrate.declare_policy('there.heroes', 'heroes_name_key', 'suffix', '.{source}', precedence => 'seen DESC'),
	snowflake_migrate.declare_policy('there.heroes', 'heroes_slot_key', 'next_free', precedence => 'seen DESC'),
	snowflake_migrate.declare_policy('there.heroes', 'heroes_motto_key', 'suffix', '-{source}', precedence => 'seen DESC');
CALL snowflake_migrate.merge('{here}', 'there', '{683}') \gset
SELECT column_name, old_value, new_value FROM snowflake_migrate.records
	WHERE run = :run AND relation = 'there.heroes' ORDER BY column_name COLLATE "C";
ALTER TABLE there.bets DROP CONSTRAINT bets_code_fkey, ALTER code TYPE text, ADD FOREIGN KEY (code) REFERENCES there.heroes (name);
INSERT INTO there.bets VALUES ('bob.there');
SELECT refused(:run);
DELETE FROM there.bets;
CALL snowflake_migrate.rollback(:run);
SELECT * FROM there.heroes;

-- a policy that was declared otherwise since
CREATE TABLE there.ladder (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), rank int NOT NULL UNIQUE, rating int);
CREATE TABLE here.ladder (id serial PRIMARY KEY, rank int, rating int);
INSERT INTO there.ladder VALUES (7, 1, 10), (8, 2, 5), (9, 50, 1);
INSERT INTO here.ladder (rank, rating) VALUES (1, 20), (2, 6);
SELECT snowflake_migrate.declare_policy('there.ladder', 'ladder_rank_key', 'rerank', 'rating DESC');
CALL snowflake_migrate.merge('{here}', 'there', '{684}') \gset
DELETE FROM snowflake_migrate.declared_policies WHERE relation = 'there.ladder'::regclass;
SELECT refused(:run);
INSERT INTO there.ladder VALUES (20, 50, 0);
SELECT refused(:run);
-- a unique index of some rows says nothing of the others
DELETE FROM there.ladder WHERE id = 20;
ALTER TABLE there.ladder DROP CONSTRAINT ladder_rank_key;
CREATE UNIQUE INDEX ladder_rank_key ON there.ladder (rank) WHERE rating > 0;
INSERT INTO there.ladder VALUES (20, 50, 0);
SELECT refused(:run);
DELETE FROM there.ladder WHERE id = 20;
CALL snowflake_migrate.rollback(:run);
SELECT * FROM there.ladder ORDER BY id;

DELETE FROM snowflake_migrate.declared_policies WHERE relation = 'there.heroes'::regclass;
DELETE FROM snowflake_migrate.declared_tables WHERE relation = 'there.bets'::regclass;
DROP TABLE there.bets, there.heroes, here.heroes, there.ladder, here.ladder;

-- a row without a rank takes the place of one that has one; and ranks that have little room
CREATE TABLE there.places (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), email text UNIQUE, rank smallint UNIQUE, rating int);
CREATE TABLE here.places (id serial PRIMARY KEY, email text, rank smallint, rating int);
INSERT INTO there.places VALUES (7, 'a', 1, 10), (8, 'c', 20000, 5);
INSERT INTO here.places (email, rank, rating) VALUES ('a', NULL, 1), ('b', 1, 20);
SELECT snowflake_migrate.declare_policy('there.places', 'places_email_key', 'keep_source'),
	snowflake_migrate.declare_policy('there.places', 'places_rank_key', 'rerank', 'rating DESC');
CALL snowflake_migrate.merge('{here}', 'there', '{686}', batch_size => 1) \gset
SELECT email, rank FROM there.places ORDER BY rank;
INSERT INTO there.places VALUES (9, 'd', 32767, 0);
CALL snowflake_migrate.rollback(:run);
SELECT * FROM there.places ORDER BY id;
CALL snowflake_migrate.merge('{here}', 'there', '{687}') \gset
SELECT email, rank FROM there.places ORDER BY rank;
CALL snowflake_migrate.rollback(:run);
SELECT * FROM there.places ORDER BY id;
DELETE FROM there.places WHERE id = 9;
CALL snowflake_migrate.merge('{here}', 'there', '{688}', target_in_use => true) \gset
SELECT email, rank FROM there.places ORDER BY rank;
CALL snowflake_migrate.rollback(:run);
SELECT * FROM there.places ORDER BY id;

DELETE FROM snowflake_migrate.declared_policies WHERE relation IN ('there.players'::regclass, 'there.places'::regclass);
DROP SCHEMA there, here, third CASCADE;
DROP TABLE before;
DROP FUNCTION refused, step;
DROP EXTENSION citext;
