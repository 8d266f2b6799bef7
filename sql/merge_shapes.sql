-- Tables and values of shapes that few have: merged rightly, or refused before a row is read.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\pset format unaligned
CREATE SCHEMA a;
CREATE SCHEMA t;

-- ids in documents and arrays of texts that are written otherwise, as clients with floats or fixed widths write them
CREATE TABLE t.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE t.notes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), kind text, doc jsonb, refs text[], ref text);
CREATE TABLE a.players AS SELECT g::bigint AS id, 'a' || g AS name FROM generate_series(1, 9) AS g;
INSERT INTO t.players SELECT g, 't' || g FROM generate_series(1, 9) AS g;
CREATE TABLE a.notes (id bigint, kind text, doc jsonb, refs text[], ref text);
INSERT INTO a.notes VALUES
	(1, 'plain', '{"at": 1, "by": {"1": true}}', '{1}', '1'),
	(2, 'decimal', '{"at": 2.0, "by": {"02": true}}', '{2.0}', '2.0'),
	(3, 'exponent', '{"at": 3e0, "by": {"3 ": true}}', '{" 3"}', '3 '),
	(4, 'zeros', '{"at": "04", "by": {"+4": true}}', '{004}', '+4'),
	(5, 'none', '{"at": 5.5, "by": {"x": true}}', '{x,99999999999999999999}', NULL),
	(6, 'none', '{"at": 99999999999999999999999}', '{1e1}', NULL);
SELECT snowflake_migrate.declare_reference('t.notes', 'doc', 't.players', path => p.path) FROM unnest('{$.at,$.by.keyvalue().key}'::text[]) AS p (path) \g /dev/null
SELECT snowflake_migrate.declare_reference('t.notes', c.name, 't.players') FROM unnest('{refs,ref}'::text[]) AS c (name) \g /dev/null
SELECT severity, object, problem, count, example FROM snowflake_migrate.check('{a}', 't') WHERE severity <> 'info';
CALL snowflake_migrate.merge('{a}', 't', '{351}') \gset
SELECT * FROM snowflake_migrate.verify(:run);
SELECT n.kind, d.name AS at, k.name AS by, r.name AS refs, f.name AS ref, CASE WHEN d.id IS NULL THEN n.doc || jsonb_build_object('refs', n.refs) END AS rest
FROM t.notes AS n LEFT JOIN t.players AS d ON n.doc ->> 'at' = d.id::text
	LEFT JOIN t.players AS k ON n.doc -> 'by' ? k.id::text
	LEFT JOIN t.players AS r ON n.refs = ARRAY[r.id::text] LEFT JOIN t.players AS f ON n.ref = f.id::text
ORDER BY n.id;
-- NULL among the elements, whatever a database's owner has set
CREATE TYPE a.mood AS ENUM ('sad', 'NULL');
CREATE TYPE t.mood AS ENUM ('sad', 'NULL');
CREATE TABLE t.moods (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), moods t.mood[]);
CREATE TABLE a.moods AS SELECT 1::bigint AS id, '{sad,NULL,"NULL"}'::a.mood[] AS moods;
SET array_nulls = off;
CALL snowflake_migrate.rollback(:run);
CALL snowflake_migrate.merge('{a}', 't', '{352}') \gset
SELECT count(*) FROM snowflake_migrate.verify(:run);
RESET array_nulls;
SELECT moods FROM t.moods;
CALL snowflake_migrate.rollback(:run);
DROP TABLE t.notes, t.players, t.moods, a.notes, a.players, a.moods;

-- more than a hundred columns: in what is suggested, reported of rows that are there already, and named by the proof
SELECT format('CREATE TABLE %s.wide (id bigint %s, %s)', s.name, s.key, string_agg(format('c%s int', g), ', ' ORDER BY g))
FROM (VALUES ('t', 'PRIMARY KEY DEFAULT snowflake_nextval()'), ('a', '')) AS s (name, key), generate_series(1, 120) AS g GROUP BY s.name, s.key \gexec
INSERT INTO t.wide (id, c1, c120) VALUES (1, 1, 1);
INSERT INTO a.wide (id, c1, c120) VALUES (1, 1, 2), (2, 2, 2);
SELECT snowflake_migrate.declare_table('t.wide', 'same_id') \g /dev/null
SELECT severity, problem, count, example FROM snowflake_migrate.check('{a}', 't') WHERE severity <> 'info';
DELETE FROM snowflake_migrate.declared_tables WHERE relation = 't.wide'::regclass;
SELECT count(*) FROM snowflake_migrate.suggest('{a}', 't');
CALL snowflake_migrate.merge('{a}', 't', '{353}') \gset
UPDATE a.wide SET c120 = 5 WHERE id = 2;
SELECT problem, count, regexp_replace(example, '\d{15,}', 'ID') AS example FROM snowflake_migrate.verify(:run);
CALL snowflake_migrate.rollback(:run);
DROP TABLE t.wide, a.wide;

-- what no proof could compare, no copy fill, and no row be told by
SELECT format('CREATE TABLE t.wider (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), %s)', string_agg(format('c%s int', g), ', ' ORDER BY g)) FROM generate_series(1, 800) AS g \gexec
CREATE TABLE t.spots (x int, y int, spot text GENERATED ALWAYS AS (x || ',' || y) STORED PRIMARY KEY);
CREATE TABLE t.nothing ();
CREATE TABLE t.other (n int DEFAULT 1);
CREATE TABLE a.wider AS SELECT 1::bigint AS id;
CREATE TABLE a.spots AS SELECT 1 AS x, 2 AS y;
CREATE TABLE a.nothing AS SELECT;
CREATE TABLE a.other AS SELECT 5 AS m;
SELECT snowflake_migrate.declare_table('t.other', 'copy', ignored_columns => '{m}') \g /dev/null
SELECT severity, relation, object, problem, advice FROM snowflake_migrate.check('{a}', 't') WHERE severity = 'error' ORDER BY relation, object;
DROP TABLE t.wider, t.spots, t.nothing, t.other, a.wider, a.spots, a.nothing, a.other;

-- keys that the source tells apart, and the target does not; a domain that allows no null
CREATE COLLATION t.any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE DOMAIN t.filled AS text NOT NULL;
CREATE TABLE t.codes (code text COLLATE t.any_case PRIMARY KEY, name t.filled);
CREATE TABLE a.codes (code text PRIMARY KEY, name text);
INSERT INTO a.codes VALUES ('r', 'x'), ('R', NULL);
SELECT severity, relation, object, problem, count, advice FROM snowflake_migrate.check('{a}', 't') WHERE severity = 'error' ORDER BY object;
DROP TABLE t.codes, a.codes;

-- arrays of a domain, a domain over documents, and arrays of documents
CREATE DOMAIN t.ref AS bigint;
CREATE DOMAIN t.doc AS jsonb;
CREATE TABLE t.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE t.teams (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), player_ids t.ref[], doc t.doc, docs jsonb[]);
CREATE TABLE a.players AS SELECT g::bigint AS id, 'a' || g AS name FROM generate_series(1, 40) AS g;
CREATE TABLE a.teams AS SELECT g::bigint AS id, ARRAY[g, 41 - g]::t.ref[] AS player_ids, jsonb_build_object('player_id', g)::t.doc AS doc, ARRAY[jsonb_build_object('player_id', g)] AS docs
FROM generate_series(1, 40) AS g;
INSERT INTO t.players SELECT g, 't' || g FROM generate_series(1, 40) AS g;
SELECT severity, object, problem, advice FROM snowflake_migrate.check('{a}', 't') WHERE relation = 't.teams' AND severity <> 'info' ORDER BY object;
SELECT object, certainty, reason FROM snowflake_migrate.suggest('{a}', 't') WHERE step = 'reference' ORDER BY object;
SELECT snowflake_migrate.declare_reference('t.teams', 'player_ids', 't.players'),
	snowflake_migrate.declare_reference('t.teams', 'doc', 't.players', path => '$.player_id') \g /dev/null
SELECT snowflake_migrate.declare_no_reference('t.teams', 'docs') \g /dev/null
CALL snowflake_migrate.merge('{a}', 't', '{354}') \gset
SELECT * FROM snowflake_migrate.verify(:run);
SELECT count(*) FROM t.teams AS m JOIN t.players AS p ON m.doc ->> 'player_id' = p.id::text JOIN t.players AS q ON m.player_ids[1] = q.id
WHERE p.name LIKE 'a%' AND q.name = p.name;
CALL snowflake_migrate.rollback(:run);
DROP TABLE t.teams, t.players, a.teams, a.players;

-- a sequence that goes over what came, and begins anew: a target in use draws from it no further than its end
CREATE SEQUENCE t.numbers INCREMENT 7 MAXVALUE 100 CYCLE;
CREATE TABLE t.tickets (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), number int DEFAULT nextval('t.numbers'));
CREATE TABLE a.tickets AS SELECT 1::bigint AS id, 100 AS number;
SELECT nextval('t.numbers');
CALL snowflake_migrate.merge('{a}', 't', '{355}', target_in_use => true) \gset
SELECT last_value FROM t.numbers;
SELECT number FROM t.tickets;
CALL snowflake_migrate.rollback(:run);
DROP TABLE t.tickets, a.tickets;
-- a sequence that was never asked gives its start: it is not set back
CREATE SEQUENCE t.later START 100000;
CREATE TABLE t.orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), number int DEFAULT nextval('t.later'));
CREATE TABLE a.orders AS SELECT 1::bigint AS id, 7 AS number;
CALL snowflake_migrate.merge('{a}', 't', '{366}') \gset
SELECT nextval('t.later');
CALL snowflake_migrate.rollback(:run);
-- keys of an object that are the same id
CREATE TABLE t.bags (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), doc jsonb);
CREATE TABLE a.bags AS SELECT 1::bigint AS id, '{"1": 5, "01": 6}'::jsonb AS doc;
SELECT snowflake_migrate.declare_reference('t.bags', 'doc', 't.orders', path => '$.keyvalue().key') \g /dev/null
SELECT severity, relation, object, problem, example, advice FROM snowflake_migrate.check('{a}', 't') WHERE relation = 't.bags' AND severity <> 'info';

SET client_min_messages = error;
DROP SCHEMA a, t CASCADE;
DO $$
DECLARE
	s name;
BEGIN
	FOR s IN SELECT nspname FROM pg_namespace WHERE nspname ~ '^snowflake_merge_' LOOP
		EXECUTE format('DROP SCHEMA %I CASCADE', s);
	END LOOP;
END $$;
