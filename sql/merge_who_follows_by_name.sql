-- Foreign keys by names and other columns that are not the key: compared as the foreign key does, whatever they are made of.
SET client_min_messages = error;
CREATE EXTENSION citext;
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\set VERBOSITY terse
-- whatever ran before
ALTER SEQUENCE snowflake_migrate_internal.run_number RESTART 90001;
CREATE SCHEMA n;
CREATE SCHEMA n1;
CREATE SCHEMA n2;
CREATE FUNCTION report(sources name[] DEFAULT '{n1}') RETURNS TABLE (severity text, source name, relation text, object text, problem text, count bigint, example text)
LANGUAGE sql AS $$
	SELECT c.severity, c.source, c.relation, c.object, c.problem, c.count, regexp_replace(c.example, '\d{15,}', 'ID', 'g')
	FROM snowflake_migrate.check(sources, 'n') AS c WHERE c.problem NOT LIKE '%has no such table' AND c.problem NOT LIKE 'may be null%'
$$;

-- ann is ANN, whose row stays behind
CREATE TABLE n.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), login citext UNIQUE, seen int, whose text);
CREATE TABLE n.mails (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), login citext REFERENCES n.heroes (login), words text);
CREATE TABLE n1.heroes AS SELECT 1 AS id, 'ANN'::citext AS login, 0 AS seen, 'one'::text AS whose;
CREATE TABLE n1.mails AS SELECT 1 AS id, 'ann'::citext AS login, 'to ann of one'::text AS words;
INSERT INTO n.heroes VALUES (1, 'ann', 1, 'target');
SELECT snowflake_migrate.declare_table('n.heroes', 'copy', "only" => 'seen > 0'), snowflake_migrate.declare_no_reference('n.heroes', 'seen') \g /dev/null
SELECT * FROM report();
CALL snowflake_migrate.merge('{n1}', 'n', '{380}') \gset
SELECT words FROM n.mails;
CALL snowflake_migrate.rollback(:run);
DROP TABLE n.mails, n.heroes, n1.heroes, n1.mails;

-- a schema that was merged before: whose rows stayed behind then
CREATE SCHEMA g;
CREATE SCHEMA g1;
CREATE TABLE n.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), login text UNIQUE, seen int, whose text);
CREATE TABLE g.mails (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), login text REFERENCES n.heroes (login), words text);
CREATE TABLE n1.heroes AS SELECT * FROM (VALUES (1, 'ann', 0, 'one'), (2, 'bo', 1, 'one')) AS v (id, login, seen, whose);
CREATE TABLE g1.mails AS SELECT id, login, 'to ' || login || ' of one' AS words FROM n1.heroes;
INSERT INTO n.heroes VALUES (1, 'ann', 1, 'target');
SELECT snowflake_migrate.declare_table('n.heroes', 'copy', "only" => 'seen > 0'), snowflake_migrate.declare_no_reference('n.heroes', 'seen') \g /dev/null
CALL snowflake_migrate.merge('{n1}', 'n', '{381}') \gset former_
SELECT c.relation, c.object, c.problem, c.count FROM snowflake_migrate.check('{{n1,g1}}', targets => '{n,g}') AS c WHERE c.relation = 'g.mails';
CALL snowflake_migrate.merge('{{n1,g1}}', targets => '{n,g}', nodes => '{382}') \gset
SELECT m.words, h.whose FROM g.mails AS m JOIN n.heroes AS h USING (login);
CALL snowflake_migrate.rollback(:run);
CALL snowflake_migrate.rollback(:former_run);
DROP SCHEMA g, g1 CASCADE;
DROP TABLE n.heroes, n1.heroes;

-- a generated column that changes with the id, or with what a policy changes
CREATE TABLE n.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), login text UNIQUE, seen int,
	code text GENERATED ALWAYS AS ('H' || id) STORED UNIQUE, lower_login text GENERATED ALWAYS AS (lower(login)) STORED UNIQUE);
CREATE TABLE n.mails (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), code text REFERENCES n.heroes (code), login text REFERENCES n.heroes (lower_login));
CREATE TABLE n1.heroes AS SELECT 1 AS id, 'ann'::text AS login, 0 AS seen, 'H1'::text AS code, 'ann'::text AS lower_login;
CREATE TABLE n1.mails AS SELECT 1 AS id, 'H1'::text AS code, 'ann'::text AS login;
SELECT * FROM report() WHERE severity = 'error';
SELECT snowflake_migrate.declare_policy('n.heroes', 'heroes_login_key', 'suffix', '.{source}', precedence => 'seen DESC');
SELECT snowflake_migrate.declare_policy('n.heroes', 'heroes_login_key', 'suffix', '.{source}') \g /dev/null
SELECT * FROM report() WHERE severity = 'error';
DROP TABLE n.mails, n.heroes, n1.heroes, n1.mails;

-- MATCH FULL: no row has half a reference
CREATE TABLE n.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), realm text NOT NULL, seen int, UNIQUE (id, realm));
CREATE TABLE n.mails (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), hero_id bigint, realm text, FOREIGN KEY (hero_id, realm) REFERENCES n.heroes (id, realm) MATCH FULL);
CREATE TABLE n1.heroes AS SELECT * FROM (VALUES (1, 'west', 0), (2, 'west', 1)) AS v (id, realm, seen);
CREATE TABLE n1.mails AS SELECT * FROM (VALUES (1, 1, 'west'), (2, 2, 'west'), (3, NULL, NULL)) AS v (id, hero_id, realm);
SELECT snowflake_migrate.declare_table('n.heroes', 'copy', "only" => 'seen > 0'), snowflake_migrate.declare_no_reference('n.heroes', 'seen') \g /dev/null
SELECT * FROM report() WHERE severity = 'error';
DELETE FROM n1.mails WHERE hero_id = 1;
CALL snowflake_migrate.merge('{n1}', 'n', '{383}') \gset
SELECT count(hero_id), count(realm), count(*) FROM n.mails;
CALL snowflake_migrate.rollback(:run);
DROP TABLE n.mails, n.heroes, n1.heroes, n1.mails;

-- the way back: a newer row refers to one of the run's by another case
CREATE TABLE n.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE n.logins (hero_id bigint NOT NULL REFERENCES n.heroes, login citext UNIQUE);
CREATE TABLE n.mails (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), login citext REFERENCES n.logins (login));
CREATE TABLE n1.heroes AS SELECT 1 AS id;
CREATE TABLE n1.logins AS SELECT 1 AS hero_id, 'ANN'::citext AS login;
CALL snowflake_migrate.merge('{n1}', 'n', '{384}') \gset
INSERT INTO n.mails (login) VALUES ('ann');
CALL snowflake_migrate.rollback(:run);
DELETE FROM n.mails;
CALL snowflake_migrate.rollback(:run);
DROP TABLE n.mails, n.logins, n.heroes, n1.heroes, n1.logins;

-- partitions that refer to different tables, and one alone that refers
CREATE TABLE n.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), login text UNIQUE, seen int);
CREATE TABLE n.guilds (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE n.mails (id bigint DEFAULT snowflake_nextval(), kind int NOT NULL, to_id bigint, login text, PRIMARY KEY (id, kind)) PARTITION BY LIST (kind);
CREATE TABLE n.mails_1 PARTITION OF n.mails FOR VALUES IN (1);
CREATE TABLE n.mails_2 PARTITION OF n.mails FOR VALUES IN (2);
ALTER TABLE n.mails_1 ADD FOREIGN KEY (to_id) REFERENCES n.heroes, ADD FOREIGN KEY (login) REFERENCES n.heroes (login);
ALTER TABLE n.mails_2 ADD FOREIGN KEY (to_id) REFERENCES n.guilds;
CREATE TABLE n1.heroes AS SELECT * FROM (VALUES (1, 'ann', 0), (2, 'bo', 1)) AS v (id, login, seen);
CREATE TABLE n1.guilds AS SELECT 2 AS id, 'guild'::text AS name;
CREATE TABLE n1.mails AS SELECT * FROM (VALUES (1, 1, 2, 'bo'), (2, 2, 2, 'ann'), (3, 1, 2, 'ann')) AS v (id, kind, to_id, login);
SELECT snowflake_migrate.declare_table('n.heroes', 'copy', "only" => 'seen > 0'), snowflake_migrate.declare_no_reference('n.heroes', 'seen'),
	snowflake_migrate.declare_no_reference('n.mails', 'kind') \g /dev/null
SELECT * FROM report() WHERE severity = 'error';
SELECT advice FROM snowflake_migrate.check('{n1}', 'n') WHERE problem ~ 'of different partitions';
SELECT snowflake_migrate.declare_reference('n.mails', 'to_id', 'n.guilds', condition => 'kind = 2'),
	snowflake_migrate.declare_reference('n.mails', 'to_id', 'n.heroes', condition => 'kind = 1') \g /dev/null
SELECT * FROM report();
CALL snowflake_migrate.merge('{n1}', 'n', '{385}') \gset
SELECT m.kind, m.login, h.login AS hero, g.name AS guild
FROM n.mails AS m LEFT JOIN n.heroes AS h ON h.id = m.to_id LEFT JOIN n.guilds AS g ON g.id = m.to_id ORDER BY 1;
CALL snowflake_migrate.rollback(:run);
DROP TABLE n.mails, n.heroes, n.guilds, n1.heroes, n1.guilds, n1.mails;

-- partitions by what the row gets only in the target: a reference, and a default
CREATE TABLE n.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), login text UNIQUE, seen int, whose text);
CREATE TABLE n.mails (id bigint DEFAULT snowflake_nextval(), to_id bigint REFERENCES n.heroes, login text, PRIMARY KEY (id, to_id)) PARTITION BY RANGE (to_id);
CREATE TABLE n.mails_1 PARTITION OF n.mails FOR VALUES FROM (0) TO (1000);
CREATE TABLE n.mails_2 PARTITION OF n.mails FOR VALUES FROM (1000) TO (MAXVALUE);
ALTER TABLE n.mails_2 ADD FOREIGN KEY (login) REFERENCES n.heroes (login);
CREATE TABLE n.notes (id bigint DEFAULT snowflake_nextval(), kind int NOT NULL DEFAULT 1, login text, PRIMARY KEY (id, kind)) PARTITION BY LIST (kind);
CREATE TABLE n.notes_1 PARTITION OF n.notes FOR VALUES IN (1);
ALTER TABLE n.notes_1 ADD FOREIGN KEY (login) REFERENCES n.heroes (login);
CREATE TABLE n1.heroes AS SELECT * FROM (VALUES (1, 'ann', 0, 'one'), (2, 'bo', 1, 'one')) AS v (id, login, seen, whose);
CREATE TABLE n1.mails AS SELECT id, 2 AS to_id, login FROM n1.heroes;
CREATE TABLE n1.notes AS SELECT id, login FROM n1.heroes;
INSERT INTO n.heroes VALUES (1, 'ann', 1, 'target');
SELECT snowflake_migrate.declare_table('n.heroes', 'copy', "only" => 'seen > 0'), snowflake_migrate.declare_no_reference('n.heroes', 'seen') \g /dev/null
CALL snowflake_migrate.merge('{n1}', 'n', '{390}') \gset
SELECT m.login, h.whose FROM n.mails AS m JOIN n.heroes AS h USING (login) UNION ALL SELECT m.login, h.whose FROM n.notes AS m JOIN n.heroes AS h USING (login);
CALL snowflake_migrate.rollback(:run);
DROP TABLE n.mails, n.notes, n.heroes, n1.heroes, n1.mails, n1.notes;

-- a generated column that refers to another one, which is made alike; and a text to a char(n)
CREATE TABLE n.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), shard int GENERATED ALWAYS AS (id % 16) STORED, tag char(8) UNIQUE, UNIQUE (id, shard));
CREATE TABLE n.items (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), hero_id bigint, hero_shard int GENERATED ALWAYS AS (hero_id % 16) STORED,
	tag text REFERENCES n.heroes (tag), FOREIGN KEY (hero_id, hero_shard) REFERENCES n.heroes (id, shard));
CREATE TABLE n1.heroes AS SELECT 1 AS id, 'bo'::char(8) AS tag;
CREATE TABLE n1.items AS SELECT 1 AS id, 1 AS hero_id, 'bo '::text AS tag;
SELECT snowflake_migrate.declare_reference('n.items', 'hero_id', 'n.heroes') \g /dev/null
SELECT * FROM report() WHERE severity = 'error';
CALL snowflake_migrate.merge('{n1}', 'n', '{391}') \gset
SELECT h.tag FROM n.items AS i JOIN n.heroes AS h ON (h.id, h.shard) = (i.hero_id, i.hero_shard);
CALL snowflake_migrate.rollback(:run);
DROP TABLE n.items, n.heroes, n1.heroes, n1.items;

-- skip by a constraint that is not there any more
CREATE TABLE n.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), a text UNIQUE);
CREATE TABLE n.items (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), hero_id bigint, a text UNIQUE);
CREATE TABLE n1.heroes AS SELECT 1 AS id, 'ann'::text AS a;
CREATE TABLE n1.items AS SELECT 1 AS id, 7 AS hero_id, 'x'::text AS a;
SELECT snowflake_migrate.declare_policy('n.items', 'items_a_key', 'skip'), snowflake_migrate.declare_reference('n.items', 'hero_id', 'n.heroes', dangling => 'skip') \g /dev/null
ALTER TABLE n.items RENAME CONSTRAINT items_a_key TO items_a;
SELECT * FROM report();
DROP TABLE n.items, n.heroes, n1.heroes, n1.items;

-- a natural key that is a domain over citext
CREATE DOMAIN login AS citext;
CREATE TABLE n.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), login login, whose text);
CREATE TABLE n1.heroes AS SELECT 1 AS id, 'ANN'::login AS login, 'one'::text AS whose;
INSERT INTO n.heroes VALUES (1, 'ann', 'target');
SELECT snowflake_migrate.declare_table('n.heroes', 'match', key => '{login}', accept => '{differences}') \g /dev/null
CALL snowflake_migrate.merge('{n1}', 'n', '{386}') \gset
SELECT state FROM snowflake_migrate.runs WHERE run = :run;
SELECT login, whose FROM n.heroes;
CALL snowflake_migrate.rollback(:run);
DROP TABLE n.heroes, n1.heroes;

-- ANN takes the place of ann, to whom a row refers by the id and aNN
CREATE TABLE n.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), login citext UNIQUE, UNIQUE (id, login));
CREATE TABLE n.mails (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), hero_id bigint, login citext, FOREIGN KEY (hero_id, login) REFERENCES n.heroes (id, login));
CREATE TABLE n1.heroes AS SELECT 1 AS id, 'ANN'::citext AS login;
INSERT INTO n.heroes VALUES (1, 'ann');
INSERT INTO n.mails VALUES (1, 1, 'aNN');
SELECT snowflake_migrate.declare_policy('n.heroes', 'heroes_login_key', 'keep_source') \g /dev/null
CALL snowflake_migrate.merge('{n1}', 'n', '{387}') \gset
SELECT h.login, m.login FROM n.mails AS m JOIN n.heroes AS h ON h.id = m.hero_id ORDER BY m.id;
CALL snowflake_migrate.rollback(:run);
DROP TABLE n.mails, n.heroes, n1.heroes;

-- skipped for a value that in the end no row has, though another constraint agrees
CREATE TABLE n.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), a text UNIQUE, b text UNIQUE);
CREATE TABLE n1.heroes AS SELECT 5 AS id, 'bo'::text AS a, 'cid'::text AS b;
CREATE TABLE n2.heroes AS SELECT 3 AS id, 'bo'::text AS a, 'bo'::text AS b;
INSERT INTO n.heroes VALUES (7, NULL, 'cid'), (8, NULL, 'bo');
SELECT snowflake_migrate.declare_policy('n.heroes', 'heroes_a_key', 'skip'), snowflake_migrate.declare_policy('n.heroes', 'heroes_b_key', 'keep_target') \g /dev/null
SELECT * FROM report('{n1,n2}');
DROP TABLE n.heroes, n1.heroes, n2.heroes;

-- users of the target may give a login to another meanwhile; not of rows that are the same for all
CREATE TABLE n.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), login text UNIQUE);
CREATE TABLE n.mails (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), login text REFERENCES n.heroes (login));
CREATE TABLE n1.heroes AS SELECT 1 AS id, 'ann'::text AS login;
CREATE TABLE n1.mails AS SELECT 1 AS id, 'ann'::text AS login;
CALL snowflake_migrate.merge('{n1}', 'n', '{388}', target_in_use => true);
SELECT snowflake_migrate.declare_table('n.heroes', 'match', key => '{login}') \g /dev/null
CALL snowflake_migrate.merge('{n1}', 'n', '{388}', target_in_use => true) \gset
SELECT login FROM n.mails;
CALL snowflake_migrate.rollback(:run);
DROP TABLE n.mails, n.heroes, n1.mails, n1.heroes;

-- declarations about tables of a source, and a source that has none
CREATE TABLE n.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE n.mails (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), hero_id bigint, other_id bigint);
CREATE TABLE n1.heroes AS SELECT g AS id FROM generate_series(1, 30) AS g;
CREATE TABLE n1.mails AS SELECT 1 AS id, 30 AS hero_id, 1 AS other_id;
SELECT snowflake_migrate.declare_reference('n.mails', 'hero_id', 'n1.heroes'), snowflake_migrate.declare_table('n1.mails', 'ignore') \g /dev/null
SELECT * FROM report('{n1,n2}') WHERE severity <> 'info';
SELECT advice FROM snowflake_migrate.check('{n1,n2}', 'n') WHERE severity <> 'info' AND problem ~ 'of a source|none of';
DELETE FROM snowflake_migrate.declared_references WHERE relation = 'n.mails'::regclass;
DELETE FROM snowflake_migrate.declared_tables WHERE relation = 'n1.mails'::regclass;
CALL snowflake_migrate.merge('{n1}', 'n', '{389}', dry_run => true) \g /dev/null
CALL snowflake_migrate.merge('{n1}', 'n', '{389}');
-- nor is a table brought that the source gets afterwards
ALTER TABLE n1.mails SET SCHEMA n2;
CALL snowflake_migrate.merge('{n1}', 'n', '{389}') \gset
SELECT * FROM snowflake_migrate.verify(:run);
ALTER TABLE n2.mails SET SCHEMA n1;
SELECT * FROM snowflake_migrate.verify(:run);
CALL snowflake_migrate.rollback(:run);

DROP SCHEMA n, n1, n2 CASCADE;
DROP FUNCTION report;
DROP EXTENSION citext CASCADE;
-- of what is gone
DELETE FROM snowflake_migrate.declared_tables WHERE relation::oid NOT IN (SELECT oid FROM pg_class);
DELETE FROM snowflake_migrate.declared_policies WHERE relation::oid NOT IN (SELECT oid FROM pg_class);
DELETE FROM snowflake_migrate.declared_references WHERE relation::oid NOT IN (SELECT oid FROM pg_class);
DELETE FROM snowflake_migrate.declared_no_references WHERE relation::oid NOT IN (SELECT oid FROM pg_class);
