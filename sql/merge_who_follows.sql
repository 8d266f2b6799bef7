-- Rows that follow others by columns that are not renumbered; rows that are lost without ids; what the check has to know of both.
SET client_min_messages = warning;
SET datestyle = 'ISO, YMD';
\set SHOW_CONTEXT never
\set VERBOSITY terse
CREATE SCHEMA f;
CREATE SCHEMA f1;
CREATE SCHEMA f2;
CREATE FUNCTION report() RETURNS TABLE (severity text, source name, relation text, object text, problem text, count bigint, example text)
LANGUAGE sql AS $$
	SELECT c.severity, c.source, c.relation, c.object, c.problem, c.count, regexp_replace(c.example, '\d{15,}', 'ID', 'g')
	FROM snowflake_migrate.check('{f1,f2}', 'f') AS c WHERE c.problem NOT LIKE '%has no such table' AND c.problem NOT LIKE 'may be null%' AND c.problem NOT LIKE 'the source has none%'
$$;

-- what refers to a unique column of a row that stays behind, or is skipped with another, goes to no stranger
CREATE TABLE f.accounts (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), email text UNIQUE);
CREATE TABLE f.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), account_id bigint NOT NULL REFERENCES f.accounts,
	login text NOT NULL UNIQUE, seen int, whose text);
CREATE TABLE f.mails (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), login text REFERENCES f.heroes (login), words text);
CREATE TABLE f1.accounts AS SELECT * FROM (VALUES (1, 'ann@x'), (2, 'bo@x'), (3, 'cid@x'), (4, 'dan@x')) AS v (id, email);
CREATE TABLE f1.heroes AS SELECT * FROM (VALUES (1, 1, 'ann', 0, 'one'), (2, 2, 'bo', 5, 'one'), (3, 3, 'cid', 5, 'one'), (4, 4, 'dan', 0, 'one'))
	AS v (id, account_id, login, seen, whose);
CREATE TABLE f1.mails AS SELECT id, login, 'to ' || login || ' of one' AS words FROM f1.heroes;
CREATE TABLE f2.accounts AS SELECT 1 AS id, 'else@x'::text AS email;
CREATE TABLE f2.heroes AS SELECT 1 AS id, 1 AS account_id, 'bo'::text AS login, 5 AS seen, 'two'::text AS whose;
CREATE TABLE f2.mails AS SELECT 1 AS id, 'bo'::text AS login, 'to bo of two'::text AS words;
INSERT INTO f.accounts VALUES (1, 'bo@x'), (2, 'first@x');
INSERT INTO f.heroes VALUES (1, 2, 'ann', 9, 'target');
SELECT snowflake_migrate.declare_policy('f.accounts', 'accounts_email_key', 'skip'),
	snowflake_migrate.declare_table('f.heroes', 'copy', "only" => 'seen > 0'),
	snowflake_migrate.declare_no_reference('f.heroes', 'seen') \g /dev/null
SELECT * FROM report();
CALL snowflake_migrate.merge('{f1,f2}', 'f', '{327,328}') \gset
SELECT m.words, h.whose FROM f.mails AS m LEFT JOIN f.heroes AS h USING (login) ORDER BY 1;
SELECT * FROM snowflake_migrate.verify(:run);
CALL snowflake_migrate.rollback(:run);
SELECT count(*) FROM f.mails;
-- they cannot, without a key
ALTER TABLE f.mails DROP CONSTRAINT mails_pkey;
ALTER TABLE f.mails ALTER id DROP DEFAULT;
SELECT * FROM report() WHERE severity = 'error';
DROP TABLE f.mails, f.heroes, f.accounts, f1.mails, f1.heroes, f1.accounts, f2.mails, f2.heroes, f2.accounts;

-- columns of two collations
CREATE TABLE f.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), login text COLLATE "C" UNIQUE, seen int);
CREATE TABLE f.mails (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), login text COLLATE "POSIX" REFERENCES f.heroes (login));
CREATE TABLE f1.heroes AS SELECT * FROM (VALUES (1, 'ann', 0), (2, 'bo', 1)) AS v (id, login, seen);
CREATE TABLE f1.mails AS SELECT id, login FROM f1.heroes;
SELECT snowflake_migrate.declare_table('f.heroes', 'copy', "only" => 'seen > 0'), snowflake_migrate.declare_no_reference('f.heroes', 'seen') \g /dev/null
SELECT * FROM report();
CALL snowflake_migrate.merge('{f1}', 'f', '{335}') \gset
SELECT login FROM f.mails;
SELECT * FROM snowflake_migrate.verify(:run);
CALL snowflake_migrate.rollback(:run);
DROP TABLE f.mails, f.heroes, f1.mails, f1.heroes;

-- nor can it be told where the source lacks a column of the foreign key
CREATE TABLE f.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), login text, realm int NOT NULL DEFAULT 0, seen int, UNIQUE (login, realm));
CREATE TABLE f.mails (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), login text, realm int NOT NULL DEFAULT 0, FOREIGN KEY (login, realm) REFERENCES f.heroes (login, realm));
CREATE TABLE f1.heroes AS SELECT 1 AS id, 'ann'::text AS login, 0 AS seen;
CREATE TABLE f1.mails AS SELECT 1 AS id, 'ann'::text AS login;
INSERT INTO f.heroes VALUES (1, 'ann', 0, 9);
SELECT snowflake_migrate.declare_table('f.heroes', 'copy', "only" => 'seen > 0'), snowflake_migrate.declare_no_reference('f.heroes', 'seen') \g /dev/null
SELECT * FROM report() WHERE severity = 'error';
UPDATE f1.heroes SET seen = 1, login = 'bo';
UPDATE f1.mails SET login = 'bo';
SELECT * FROM report() WHERE severity = 'error';
DROP TABLE f.mails, f.heroes, f1.mails, f1.heroes;

-- keys of an enum of each schema's own
CREATE TYPE f.kind AS ENUM ('a', 'b', 'c');
CREATE TYPE f1.kind AS ENUM ('a', 'b', 'c');
CREATE TABLE f.things (kind f.kind, day date, n int, PRIMARY KEY (kind, day));
CREATE TABLE f.parts (kind f.kind, day date, name text, PRIMARY KEY (kind, day, name), FOREIGN KEY (kind, day) REFERENCES f.things);
CREATE TABLE f1.things (kind f1.kind, day date, n int);
CREATE TABLE f1.parts (kind f1.kind, day date, name text);
INSERT INTO f.things VALUES ('c', '2024-01-01', 3);
INSERT INTO f1.things VALUES ('a', '2024-01-01', 1), ('b', '2024-01-01', 2), ('c', '2024-01-01', 4);
INSERT INTO f1.parts SELECT kind, day, 'part' FROM f1.things;
SELECT snowflake_migrate.declare_no_reference('f.things', 'n'),
	snowflake_migrate.declare_table('f.things', 'copy', "only" => 'n <> 1'),
	snowflake_migrate.declare_policy('f.things', 'things_pkey', 'skip') \g /dev/null
SELECT * FROM report();
CALL snowflake_migrate.merge('{f1}', 'f', '{329}') \gset
SELECT * FROM f.parts;
SELECT * FROM snowflake_migrate.verify(:run);
CALL snowflake_migrate.rollback(:run);
DROP TABLE f.parts, f.things, f1.parts, f1.things;

-- rows that are lost for a value that in the end no row has, whatever the key is
CREATE TABLE f.by_text (handle text PRIMARY KEY, email text UNIQUE, login text UNIQUE);
CREATE TABLE f.by_two (realm text, handle text, email text UNIQUE, login text UNIQUE, PRIMARY KEY (realm, handle));
CREATE TABLE f.by_uuid (key uuid PRIMARY KEY, email text UNIQUE, login text UNIQUE);
CREATE TABLE f.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE);
CREATE TABLE f.ranks (season text, hero_id bigint REFERENCES f.heroes, place int, PRIMARY KEY (season, hero_id), UNIQUE (season, place));
CREATE TABLE f1.by_text (LIKE f.by_text);
CREATE TABLE f1.by_two (LIKE f.by_two);
CREATE TABLE f1.by_uuid (LIKE f.by_uuid);
CREATE TABLE f1.heroes AS SELECT * FROM (VALUES (1, 'ann'), (2, 'cid')) AS v (id, name);
CREATE TABLE f1.ranks AS SELECT * FROM (VALUES ('S', 1, 2), ('S', 2, 1)) AS v (season, hero_id, place);
INSERT INTO f.by_text VALUES ('t', 'ann@x', 'L1');
INSERT INTO f.by_two VALUES ('r', 't', 'ann@x', 'L1');
INSERT INTO f.by_uuid VALUES ('00000000-0000-0000-0000-000000000001', 'ann@x', 'L1');
INSERT INTO f1.by_text VALUES ('a', 'ann@x', 'L2'), ('c', 'cid@x', 'L1');
INSERT INTO f1.by_two VALUES ('r', 'a', 'ann@x', 'L2'), ('r', 'c', 'cid@x', 'L1');
INSERT INTO f1.by_uuid VALUES ('00000000-0000-0000-0000-00000000000a', 'ann@x', 'L2'), ('00000000-0000-0000-0000-00000000000c', 'cid@x', 'L1');
INSERT INTO f.heroes VALUES (1, 'ann');
INSERT INTO f.ranks VALUES ('S', 1, 1);
SELECT snowflake_migrate.declare_policy(format('f.%I', t)::regclass, t || '_email_key', 'keep_source'),
		snowflake_migrate.declare_policy(format('f.%I', t)::regclass, t || '_login_key', 'keep_target')
	FROM unnest('{by_text,by_two,by_uuid}'::text[]) AS t \g /dev/null
SELECT snowflake_migrate.declare_policy('f.heroes', 'heroes_name_key', 'keep_target'),
	snowflake_migrate.declare_policy('f.ranks', 'ranks_pkey', 'keep_source'),
	snowflake_migrate.declare_policy('f.ranks', 'ranks_season_place_key', 'keep_target'),
	snowflake_migrate.declare_no_reference('f.ranks', 'place') \g /dev/null
SELECT * FROM report() WHERE severity = 'warning';
-- and no question where the other row has the value
DELETE FROM f1.by_text WHERE handle = 'a';
DELETE FROM f1.by_two WHERE handle = 'a';
DELETE FROM f1.by_uuid WHERE email = 'ann@x';
UPDATE f1.ranks SET place = 1 WHERE hero_id = 1;
DELETE FROM f1.ranks WHERE hero_id = 2;
SELECT * FROM report() WHERE severity = 'warning';
UPDATE f1.by_text SET handle = 't';
UPDATE f1.by_two SET handle = 't';
SELECT snowflake_migrate.declare_policy('f.by_text', 'by_text_pkey', 'skip'), snowflake_migrate.declare_policy('f.by_two', 'by_two_pkey', 'skip'),
	snowflake_migrate.declare_policy('f.ranks', 'ranks_pkey', 'skip') \g /dev/null
SELECT * FROM report();
DROP TABLE f.by_text, f.by_two, f.by_uuid, f.ranks, f.heroes, f1.by_text, f1.by_two, f1.by_uuid, f1.ranks, f1.heroes;

-- rows that match one that is skipped, or that gives way to one with another natural key
CREATE TABLE f.things (handle text PRIMARY KEY, code text UNIQUE);
CREATE TABLE f1.things (LIKE f.things);
CREATE TABLE f2.things (LIKE f.things);
INSERT INTO f.things VALUES ('h', 'target');
INSERT INTO f1.things VALUES ('h', 'x');
INSERT INTO f2.things VALUES ('q', 'x');
SELECT snowflake_migrate.declare_table('f.things', 'match', '{code}', '{differences}'), snowflake_migrate.declare_policy('f.things', 'things_pkey', 'skip') \g /dev/null
SELECT * FROM report() WHERE severity = 'error';
UPDATE f.things SET code = 'x';
UPDATE f2.things SET handle = 'h', code = 'y';
SELECT snowflake_migrate.declare_policy('f.things', 'things_pkey', 'keep_source') \g /dev/null
SELECT * FROM report() WHERE severity = 'error';
UPDATE f2.things SET code = 'x';
SELECT * FROM report() WHERE severity = 'error';
DROP TABLE f.things, f1.things, f2.things;

-- a row that takes the place of one of the target's clashes with none that gives way to it
CREATE TABLE f.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), a text UNIQUE, b text UNIQUE);
CREATE TABLE f.mails (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), hero_id bigint REFERENCES f.heroes);
CREATE TABLE f1.heroes AS SELECT 4 AS id, 'a1'::text AS a, 'b0'::text AS b;
CREATE TABLE f2.heroes AS SELECT * FROM (VALUES (5, 'a1', NULL), (6, 'a0', 'b0')) AS v (id, a, b);
CREATE TABLE f2.mails AS SELECT 1 AS id, 6 AS hero_id;
INSERT INTO f.heroes VALUES (6, 'a0', 'b0');
SELECT snowflake_migrate.declare_policy('f.heroes', 'heroes_a_key', 'keep_source'), snowflake_migrate.declare_policy('f.heroes', 'heroes_b_key', 'keep_target') \g /dev/null
CALL snowflake_migrate.merge('{f1,f2}', 'f', '{333,334}', accept_warnings => true) \gset
SELECT source, action, old_key, new_key FROM snowflake_migrate.map WHERE run = :run AND relation = 'f.heroes' ORDER BY 1, 3;
SELECT hero_id FROM f.mails;
CALL snowflake_migrate.rollback(:run);
DROP TABLE f.mails, f.heroes, f1.heroes, f2.heroes, f2.mails;

-- a row that takes the place of one without a rank is no newer one
CREATE TABLE f.ranks (name text PRIMARY KEY, place int UNIQUE, rating int);
CREATE TABLE f1.ranks AS SELECT 'ann'::text AS name, 1 AS place, 90 AS rating;
INSERT INTO f.ranks VALUES ('ann', NULL, 0), ('bo', 1, 50);
SELECT snowflake_migrate.declare_policy('f.ranks', 'ranks_pkey', 'keep_source'),
	snowflake_migrate.declare_policy('f.ranks', 'ranks_place_key', 'rerank', 'rating DESC'),
	snowflake_migrate.declare_no_reference('f.ranks', c) FROM unnest('{place,rating}'::name[]) AS c \g /dev/null
CALL snowflake_migrate.merge('{f1}', 'f', '{330}') \gset
SELECT * FROM f.ranks ORDER BY place;
CALL snowflake_migrate.rollback(:run);
SELECT * FROM f.ranks ORDER BY name;
DROP TABLE f.ranks, f1.ranks;

-- the least number that is free, among values that are equal and look otherwise
CREATE TABLE f.plots (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), street numeric, number int, UNIQUE (street, number));
CREATE TABLE f1.plots AS SELECT * FROM (VALUES (1, 1.00, 1), (2, 1.000, 2), (3, 2, 7)) AS v (id, street, number);
INSERT INTO f.plots (street, number) VALUES (1.0, 1), (1.0, 2), (1.0, 4);
SELECT snowflake_migrate.declare_policy('f.plots', 'plots_street_number_key', 'next_free'), snowflake_migrate.declare_no_reference('f.plots', 'number') \g /dev/null
SELECT * FROM report();
CALL snowflake_migrate.merge('{f1}', 'f', '{331}') \gset
SELECT street, number FROM f.plots ORDER BY street, number;
CALL snowflake_migrate.rollback(:run);
DROP TABLE f.plots, f1.plots;

-- what refers to an id and another column does not follow a change of the other
CREATE TABLE f.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), realm text, name text UNIQUE, UNIQUE (id, realm));
CREATE TABLE f.items (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), hero_id bigint, realm text, FOREIGN KEY (hero_id, realm) REFERENCES f.heroes (id, realm));
CREATE TABLE f1.heroes AS SELECT * FROM (VALUES (1, 'west', 'ann'), (2, 'west', 'cid')) AS v (id, realm, name);
CREATE TABLE f1.items AS SELECT * FROM (VALUES (1, 1, 'west'), (2, 2, 'west')) AS v (id, hero_id, realm);
INSERT INTO f.heroes VALUES (1, 'east', 'ann'), (2, 'east', 'bo');
INSERT INTO f.items VALUES (1, 1, 'east');
SELECT snowflake_migrate.declare_policy('f.heroes', 'heroes_name_key', 'keep_source') \g /dev/null
SELECT * FROM report() WHERE severity = 'error';
UPDATE f1.heroes SET realm = 'east' WHERE id = 1;
UPDATE f1.items SET realm = 'east' WHERE id = 1;
SELECT * FROM report() WHERE severity = 'error';
CALL snowflake_migrate.merge('{f1}', 'f', '{332}') \g /dev/null
SELECT h.name, i.realm FROM f.items AS i JOIN f.heroes AS h ON (h.id, h.realm) = (i.hero_id, i.realm) ORDER BY 1, 2;
DROP TABLE f.items, f.heroes, f1.items, f1.heroes;

-- a view of a source that reads what the merge writes
CREATE TABLE f.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE);
CREATE TABLE f2.rows AS SELECT n AS id, 'hero ' || n AS name FROM generate_series(1, 3) AS n;
CREATE VIEW f2.new AS SELECT * FROM f2.rows AS r WHERE NOT EXISTS (SELECT FROM f.heroes AS h WHERE h.name = r.name);
CREATE VIEW f1.heroes AS SELECT * FROM f2.new;
SELECT * FROM report() WHERE severity = 'error' AND problem ~ 'reads';

DROP SCHEMA f, f1, f2 CASCADE;
DROP FUNCTION report;
-- of what is gone
DELETE FROM snowflake_migrate.declared_tables WHERE relation::oid NOT IN (SELECT oid FROM pg_class);
DELETE FROM snowflake_migrate.declared_policies WHERE relation::oid NOT IN (SELECT oid FROM pg_class);
DELETE FROM snowflake_migrate.declared_no_references WHERE relation::oid NOT IN (SELECT oid FROM pg_class);
