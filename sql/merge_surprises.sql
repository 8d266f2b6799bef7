-- What would come out wrong, or fail in the middle, is known before a row is copied; and what is taken back leaves nothing behind.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\set VERBOSITY terse
CREATE FUNCTION forget() RETURNS void LANGUAGE sql AS $$
	DROP SCHEMA IF EXISTS t, a, o CASCADE; CREATE SCHEMA t; CREATE SCHEMA a; CREATE SCHEMA o;
	DELETE FROM snowflake_migrate.declared_tables; DELETE FROM snowflake_migrate.declared_references; DELETE FROM snowflake_migrate.declared_no_references; DELETE FROM snowflake_migrate.declared_policies;
	UPDATE snowflake_migrate.runs SET state = 'rolled back' $$;
CREATE FUNCTION last() RETURNS bigint LANGUAGE sql AS 'SELECT max(run) FROM snowflake_migrate.runs';
CREATE SEQUENCE node START 800;
CREATE FUNCTION node() RETURNS bigint[] LANGUAGE sql AS $$ SELECT ARRAY[nextval('node')] $$;
CREATE FUNCTION problems() RETURNS TABLE (severity text, relation text, object text, problem text, count bigint, example text) LANGUAGE sql
	AS $$ SELECT severity, relation, object, problem, count, example FROM snowflake_migrate.check('{a}', 't') WHERE severity <> 'info' ORDER BY 2, 3, 4 $$;

-- types of one name: composite ones go by the order of their attributes, domains by what is under them
SELECT forget();
CREATE TYPE t.place AS (x int, y int);
CREATE TYPE a.place AS (y int, x int);
CREATE TYPE t.same AS (x int, y int);
CREATE TYPE a.same AS (x int, y int);
CREATE TYPE t.mood AS ENUM ('glad');
CREATE TYPE a.mood AS ENUM ('glad');
CREATE DOMAIN t.short AS varchar(3);
CREATE DOMAIN a.short AS varchar(10);
CREATE DOMAIN t.day AS date;
CREATE DOMAIN a.day AS timestamp;
CREATE DOMAIN t.felt AS t.mood;
CREATE DOMAIN a.felt AS a.mood;
CREATE TABLE t.p (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), at t.place, same t.same, name t.short, note t.short, day t.day, felt t.felt);
CREATE TABLE a.p (id bigint PRIMARY KEY, at a.place, same a.same, name a.short, note text, day a.day, felt a.felt);
INSERT INTO a.p VALUES (1, (100, 7), (1, 2), 'kingarthur', 'abcdefg', '2020-01-02 12:34:56', 'glad');
SELECT * FROM problems();
ALTER TABLE a.p DROP at, DROP name, DROP note, DROP day;
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT same, felt FROM t.p;

-- foreign keys to keys that are not renumbered: a text, the same everywhere, of several columns, outside of the target
SELECT forget();
CREATE TABLE t.countries (code text PRIMARY KEY);
CREATE TABLE t.seasons (season int PRIMARY KEY);
SELECT snowflake_migrate.declare_table('t.seasons', 'same_id');
CREATE TABLE t.guilds (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE t.slots (guild_id bigint REFERENCES t.guilds, slot int, PRIMARY KEY (guild_id, slot));
CREATE TABLE o.languages (code text PRIMARY KEY);
CREATE TABLE t.p (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), country text REFERENCES t.countries, season int REFERENCES t.seasons,
	language text REFERENCES o.languages, guild_id bigint, slot int, FOREIGN KEY (guild_id, slot) REFERENCES t.slots);
CREATE TABLE a.countries AS TABLE t.countries;
CREATE TABLE a.seasons AS TABLE t.seasons;
CREATE TABLE a.guilds AS TABLE t.guilds;
CREATE TABLE a.slots AS TABLE t.slots;
CREATE TABLE a.p AS TABLE t.p;
INSERT INTO t.countries VALUES ('DE');
INSERT INTO a.countries VALUES ('FR');
INSERT INTO a.seasons VALUES (1);
INSERT INTO o.languages VALUES ('de');
INSERT INTO a.guilds VALUES (1);
INSERT INTO a.slots VALUES (1, 1);
INSERT INTO a.p VALUES (1, 'FR', 1, 'de', 1, 1), (2, 'DE', NULL, NULL, NULL, 5), (3, 'XX', 1, 'de', 1, 1), (4, 'FR', 2, 'de', 1, 1), (5, 'FR', 1, 'xx', 1, 1), (6, 'FR', 1, 'de', 1, 2);
SELECT severity, relation, object, problem, count FROM problems();
DELETE FROM a.p WHERE id > 2;
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT country, season, language, slot FROM t.p ORDER BY country;

-- out of the target by a chain of foreign keys
SELECT forget();
CREATE TABLE o.users (id bigserial PRIMARY KEY);
CREATE TABLE o.profiles (user_id bigint PRIMARY KEY REFERENCES o.users);
CREATE TABLE t.orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), profile_id bigint REFERENCES o.profiles);
CREATE TABLE a.orders AS TABLE t.orders;
SELECT * FROM problems();
SELECT snowflake_migrate.declare_table('o.users', 'same_id');
SELECT * FROM problems();

-- an index of another collation than its column's
SELECT forget();
CREATE COLLATION o.any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE t.p (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE UNIQUE INDEX p_name ON t.p (name COLLATE o.any_case);
CREATE TABLE a.p AS TABLE t.p;
INSERT INTO t.p (name) VALUES ('Arthur');
INSERT INTO a.p VALUES (1, 'ARTHUR'), (2, 'b');
SELECT * FROM problems();
SELECT snowflake_migrate.declare_policy('t.p', 'p_name', 'suffix', '.x');
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT name FROM t.p ORDER BY name COLLATE "C";
-- so of an exclusion constraint
SELECT forget();
CREATE COLLATION o.any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE t.p (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text, CONSTRAINT p_name EXCLUDE USING btree (name COLLATE o.any_case WITH =));
CREATE TABLE a.p AS TABLE t.p;
INSERT INTO t.p (name) VALUES ('Arthur');
INSERT INTO a.p VALUES (1, 'ARTHUR'), (2, 'b');
SELECT * FROM problems();

-- columns that a policy can't change; modes that need a key
SELECT forget();
CREATE TABLE t.p (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE, seq int GENERATED ALWAYS AS IDENTITY);
CREATE TABLE a.p (id bigint PRIMARY KEY, name text, seq int);
SELECT snowflake_migrate.declare_policy('t.p', 'p_name_key', 'keep_source');
SELECT * FROM problems();
SELECT forget();
CREATE TABLE t.templates (code text, name text);
CREATE TABLE a.templates AS TABLE t.templates;
SELECT snowflake_migrate.declare_table('t.templates', 'match', '{code}');
SELECT * FROM problems();

-- ids in texts beside words for none, numbers of other types, several places in a document, keys with great gaps
SELECT forget();
CREATE TABLE t.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE t.items (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE t.logs (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), player_id text, owner_id numeric, tracker bigint, doc jsonb, plain json);
CREATE TABLE a.players AS TABLE t.players;
CREATE TABLE a.items AS TABLE t.items;
CREATE TABLE a.logs AS TABLE t.logs;
INSERT INTO a.players SELECT g FROM generate_series(1, 41) AS g;
INSERT INTO a.items SELECT 1000000000000000 * g FROM generate_series(1, 50) AS g;
INSERT INTO a.logs SELECT g, CASE g WHEN 1 THEN '0' WHEN 2 THEN 'none' ELSE g::text END, g, 1000000000000000 * g,
	jsonb_build_object('device_id', g, 'item_id', g, 'player_id', g), CASE g WHEN 1 THEN json '{"a": "\u0000"}' END FROM generate_series(1, 40) AS g;
SELECT snowflake_migrate.declare_reference('t.logs', 'doc', 't.items', path => '$.item_id', dangling => 'keep');
SELECT severity, object, problem, example FROM problems();

-- a column that the source lacks, of a domain that is not null: its default is the domain's
SELECT forget();
CREATE DOMAIN t.level AS int DEFAULT 5 NOT NULL;
CREATE DOMAIN t.high_level AS t.level CHECK (value > 3);
CREATE DOMAIN t.must AS int NOT NULL;
CREATE TABLE t.p (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text, level t.level, high t.high_level, given t.level DEFAULT 7);
CREATE TABLE t.q (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text, level t.must);
CREATE TABLE a.p (id int PRIMARY KEY, name text);
CREATE TABLE a.q (id int PRIMARY KEY, name text);
INSERT INTO a.p VALUES (1, 'x');
INSERT INTO a.q VALUES (1, 'x');
SELECT * FROM problems();
DROP TABLE t.q, a.q;
CALL snowflake_migrate.merge('{a}', 't', node(), accept_warnings => true) \g /dev/null
SELECT name, level, high, given FROM t.p;

-- a sequence that the table's owner may only use, and not set: a superuser's merge does not do it for him
SELECT forget();
CREATE ROLE regress_snowflake_owner;
GRANT USAGE ON SCHEMA t, o TO regress_snowflake_owner;
CREATE SEQUENCE o.tickets;
GRANT USAGE ON SEQUENCE o.tickets TO regress_snowflake_owner;
CREATE TABLE t.p (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), ticket bigint DEFAULT nextval('o.tickets'));
ALTER TABLE t.p OWNER TO regress_snowflake_owner;
CREATE TABLE a.p (id int PRIMARY KEY, ticket bigint);
INSERT INTO a.p VALUES (1, 9223372036854775807);
SELECT severity, object, problem, advice FROM snowflake_migrate.check('{a}', 't') WHERE object = 'ticket';
CALL snowflake_migrate.merge('{a}', 't', node(), accept_warnings => true) \g /dev/null
SELECT last_value, is_called FROM o.tickets;
SELECT forget();
DROP ROLE regress_snowflake_owner;

-- numbers that may mean something: nobody, the system
SELECT forget();
CREATE TABLE t.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE a.players (id int PRIMARY KEY, name text);
INSERT INTO a.players VALUES (-1, 'system'), (0, 'nobody'), (1, 'Ada');
SELECT * FROM problems();

-- taken back: rows of a table without a key that others refer to, that refer to several, that are in a cycle
SELECT forget();
CREATE TABLE t.guilds (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE t.codes (code text UNIQUE, guild_id bigint REFERENCES t.guilds);
CREATE TABLE t.invites (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), code text REFERENCES t.codes (code));
CREATE TABLE t.parties (name text, member_ids bigint[]);
SELECT snowflake_migrate.declare_reference('t.parties', 'member_ids', 't.guilds');
CREATE TABLE a.guilds AS TABLE t.guilds;
CREATE TABLE a.codes AS TABLE t.codes;
CREATE TABLE a.invites AS TABLE t.invites;
CREATE TABLE a.parties AS TABLE t.parties;
INSERT INTO a.guilds VALUES (1, 'g'), (2, 'h'), (3, 'i');
INSERT INTO a.codes VALUES ('abc', 1);
INSERT INTO a.invites VALUES (1, 'abc');
INSERT INTO a.parties VALUES ('full', '{1,2,3}'), ('empty', '{}');
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
INSERT INTO t.invites (code) VALUES ('abc');
-- its number in the messages is not shown: first one that nothing tells from others is in the way, then what refers to another
\set VERBOSITY sqlstate
CALL snowflake_migrate.rollback(last());
CALL snowflake_migrate.rollback(last(), force => true);
DELETE FROM t.invites WHERE id = (SELECT max(id) FROM t.invites);
CALL snowflake_migrate.rollback(last());
CALL snowflake_migrate.rollback(last(), force => true);
\set VERBOSITY terse
SELECT (SELECT count(*) FROM t.guilds) AS guilds, (SELECT count(*) FROM t.codes) AS codes, (SELECT count(*) FROM t.invites) AS invites,
	(SELECT string_agg(name, ',') FROM t.parties) AS parties;
SELECT forget();
CREATE TABLE t.codes (code text UNIQUE, guild_id bigint);
CREATE TABLE t.guilds (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), code text REFERENCES t.codes (code));
ALTER TABLE t.codes ADD FOREIGN KEY (guild_id) REFERENCES t.guilds;
CREATE TABLE a.guilds AS TABLE t.guilds;
CREATE TABLE a.codes AS TABLE t.codes;
INSERT INTO a.guilds VALUES (1, 'abc');
INSERT INTO a.codes VALUES ('abc', 1);
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
CALL snowflake_migrate.rollback(last());
SELECT (SELECT count(*) FROM t.guilds) AS guilds, (SELECT count(*) FROM t.codes) AS codes;

-- a run is not that of another role of the name, were it a superuser
CREATE ROLE regress_snowflake_heir;
SELECT snowflake_migrate.grant_to('regress_snowflake_heir');
CREATE FUNCTION pg_temp.told(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text;
	hint text;
BEGIN
	EXECUTE format(statement, last());
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
	RETURN replace(concat_ws(' / ', message, nullif(hint, '')), last()::text, 'N');
END
$$;
SET ROLE regress_snowflake_heir;
INSERT INTO snowflake_migrate.runs (run, sources, schemas, targets, nodes, state, batch_size, started_at)
	VALUES (nextval('snowflake_migrate_internal.run_number'), '{a}', '{a}', '{t}', '{1}', 'verifying', 1, now());
SELECT pg_temp.told('SELECT * FROM snowflake_migrate.verify(%s)');
RESET ROLE;
DROP OWNED BY regress_snowflake_heir;
DROP ROLE regress_snowflake_heir;
CREATE ROLE regress_snowflake_heir SUPERUSER;
SET ROLE regress_snowflake_heir;
SELECT pg_temp.told('SELECT * FROM snowflake_migrate.verify(%s)');
RESET ROLE;
ALTER ROLE regress_snowflake_heir NOSUPERUSER;
SELECT snowflake_migrate.grant_to('regress_snowflake_heir');
SET ROLE regress_snowflake_heir;
SELECT pg_temp.told('SELECT * FROM snowflake_migrate.verify(%s)');
SELECT pg_temp.told('CALL snowflake_migrate.rollback(%s)');
SELECT pg_temp.told('UPDATE snowflake_migrate.runs SET merged_by_id = snowflake_migrate_internal.current_role_id() WHERE run = %s');
SELECT pg_temp.told('INSERT INTO snowflake_migrate.nodes VALUES (1, %s, $$a$$)');
RESET ROLE;
UPDATE snowflake_migrate.runs AS r SET merged_by_id = o.oid FROM pg_roles AS o WHERE o.rolname = r.merged_by AND r.run = last();
SET ROLE regress_snowflake_heir;
SELECT pg_temp.told('SELECT * FROM snowflake_migrate.verify(%s)');
RESET ROLE;
DELETE FROM snowflake_migrate.runs WHERE run = last();
DROP OWNED BY regress_snowflake_heir;
DROP ROLE regress_snowflake_heir;

--
-- A source that was dropped: there is no proof any more, but the way back
--
SELECT forget();
CREATE TABLE t.x (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE a.x (id int PRIMARY KEY, name text);
INSERT INTO a.x SELECT g, 'x ' || g FROM generate_series(1, 5) AS g;
\o /dev/null
CALL snowflake_migrate.merge('{a}', 't', node(), batch_size => 2);
\o
DROP TABLE a.x;
SELECT pg_temp.told('SELECT * FROM snowflake_migrate.verify(%s)');
-- nor is a run continued
UPDATE snowflake_migrate.runs SET state = 'copying' WHERE run = last();
SELECT pg_temp.told(format('CALL snowflake_migrate.merge($${a}$$, $$t$$, %L, batch_size => 2)', nodes)) FROM snowflake_migrate.runs WHERE run = last();
SELECT last() AS last \gset
CALL snowflake_migrate.rollback(:last);
SELECT count(*) FROM t.x;

-- the target's definitions: a new table that refers to a merged one is nothing to tell of; what keeps less than before is
SELECT forget();
CREATE TABLE t.p (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text NOT NULL CONSTRAINT named CHECK (name <> ''), gold int);
CREATE UNIQUE INDEX p_name ON t.p (lower(name));
CREATE TABLE t.i (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), p_id bigint REFERENCES t.p);
CREATE TABLE a.p (id int PRIMARY KEY, name text, gold int); CREATE TABLE a.i (id int PRIMARY KEY, p_id int);
INSERT INTO a.p VALUES (1, 'ann', 7); INSERT INTO a.i VALUES (1, 1);
\o /dev/null
CALL snowflake_migrate.merge('{a}', 't', node());
\o
SELECT * FROM snowflake_migrate.verify(last());
CREATE TABLE o.later (p_id bigint REFERENCES t.p);
SELECT * FROM snowflake_migrate.verify(last());
ALTER TABLE t.i DROP CONSTRAINT i_p_id_fkey, ADD CONSTRAINT i_p_id_fkey FOREIGN KEY (p_id) REFERENCES t.p ON DELETE CASCADE;
ALTER TABLE t.p DROP CONSTRAINT named, ADD CONSTRAINT named CHECK (true), ALTER name DROP NOT NULL;
DROP INDEX t.p_name;
\x on
SELECT relation, problem, example FROM snowflake_migrate.verify(last());
ALTER TABLE o.later DISABLE TRIGGER ALL; ALTER TABLE t.p DISABLE TRIGGER ALL;
SELECT relation, problem, example FROM snowflake_migrate.verify(last()) WHERE relation = 't.p';
\x off
-- columns by which nothing can be proved any more
ALTER TABLE t.p RENAME gold TO coins; UPDATE t.p SET coins = 0;
ALTER TABLE t.i DROP COLUMN p_id;
SELECT pg_temp.told('SELECT * FROM snowflake_migrate.verify(%s)');

--
-- A condition that reads a reference is about the ids that the target has, also where the source calls shared rows otherwise
--
SELECT forget();
CREATE TABLE t.kinds (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE NOT NULL);
CREATE TABLE t.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE t.guilds (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE t.notes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), kind_id bigint REFERENCES t.kinds, object_id bigint, own bigint);
CREATE TABLE a.kinds (id int PRIMARY KEY, name text); CREATE TABLE a.players (id int PRIMARY KEY); CREATE TABLE a.guilds (id int PRIMARY KEY);
CREATE TABLE a.notes (id int PRIMARY KEY, kind_id int, object_id int, own int);
INSERT INTO t.kinds VALUES (1, 'player'), (2, 'guild'); INSERT INTO a.kinds VALUES (1, 'guild'), (2, 'player');
INSERT INTO a.players VALUES (1), (2); INSERT INTO a.guilds VALUES (1), (2); INSERT INTO a.notes VALUES (1, 1, 1, 1), (2, 2, 1, 2), (3, NULL, NULL, 2);
-- a policy that changes a column
ALTER TABLE t.notes ADD name text CONSTRAINT notes_name_key UNIQUE; ALTER TABLE a.notes ADD name text DEFAULT 'note'; UPDATE a.notes SET name = 'note' WHERE id < 3;
SELECT snowflake_migrate.declare_policy('t.notes', 'notes_name_key', 'suffix');
-- a reference beside it, to rows that get new ids, that no condition reads
ALTER TABLE t.notes ADD author_id bigint REFERENCES t.players; ALTER TABLE a.notes ADD author_id int; UPDATE a.notes SET author_id = 1;
SELECT snowflake_migrate.declare_table('t.kinds', 'match', '{name}');
SELECT snowflake_migrate.declare_reference('t.notes', 'object_id', 't.players', '(SELECT k.name FROM t.kinds AS k WHERE k.id = kind_id) = $$player$$');
SELECT snowflake_migrate.declare_reference('t.notes', 'object_id', 't.guilds', 'notes.kind_id = 2');
-- its own values may be read
SELECT snowflake_migrate.declare_reference('t.notes', 'own', 't.players', 'own > 0');
SELECT * FROM problems();
\o /dev/null
CALL snowflake_migrate.merge('{a}', 't', node());
\o
CREATE VIEW o.notes AS SELECT k.name, p.id IS NOT NULL AS player, g.id IS NOT NULL AS guild
	FROM t.notes AS n LEFT JOIN t.kinds AS k ON k.id = n.kind_id
		LEFT JOIN t.players AS p ON p.id = n.object_id LEFT JOIN t.guilds AS g ON g.id = n.object_id ORDER BY 1;
TABLE o.notes;
SELECT * FROM snowflake_migrate.verify(last());
CALL snowflake_migrate.rollback(last());
SELECT count(*) FROM t.notes;
-- the same ids on both sides
DELETE FROM a.kinds; INSERT INTO a.kinds VALUES (1, 'player'), (2, 'guild');
SELECT * FROM problems();
\o /dev/null
CALL snowflake_migrate.merge('{a}', 't', node());
\o
TABLE o.notes;
CALL snowflake_migrate.rollback(last());
-- the whole row has them, too; which conditions overlap, and leave values out, is counted by them
DELETE FROM a.kinds; INSERT INTO a.kinds VALUES (1, 'guild'), (2, 'player');
DELETE FROM snowflake_migrate.declared_references WHERE column_name = 'object_id';
SELECT snowflake_migrate.declare_reference('t.notes', 'object_id', 't.players', $$to_jsonb(notes) ->> 'kind_id' = '1'$$);
SELECT snowflake_migrate.declare_reference('t.notes', 'object_id', 't.guilds', 'kind_id = 1 AND object_id = 1');
SELECT * FROM problems();
-- what is asked about a column beside one that refers to kinds is asked by the target's ids
DELETE FROM snowflake_migrate.declared_references WHERE column_name = 'object_id';
ALTER TABLE t.notes RENAME kind_id TO content_type_id; ALTER TABLE a.notes RENAME kind_id TO content_type_id;
UPDATE t.kinds SET id = id + 50;
SELECT advice FROM snowflake_migrate.check('{a}', 't') WHERE object = 'object_id';
-- ids that nobody can have meant: of rows that get new ones
DELETE FROM snowflake_migrate.declared_references WHERE column_name = 'own';
SELECT snowflake_migrate.declare_reference('t.notes', 'own', 't.players');
SELECT snowflake_migrate.declare_reference('t.notes', 'object_id', 't.players', 'own = 2');
SELECT * FROM problems();
-- null is null everywhere, and two that are the same stay so
DELETE FROM snowflake_migrate.declared_references WHERE column_name = 'object_id';
SELECT snowflake_migrate.declare_reference('t.notes', 'object_id', 't.players', 'content_type_id IS NOT NULL');
SELECT snowflake_migrate.declare_reference('t.notes', 'object_id', 't.guilds', 'content_type_id IS NULL AND own <> object_id');
SELECT * FROM problems();
-- a column that is made of ids
DELETE FROM snowflake_migrate.declared_references WHERE column_name = 'object_id';
ALTER TABLE t.notes ADD is_player boolean GENERATED ALWAYS AS (content_type_id = 51) STORED; ALTER TABLE a.notes ADD is_player boolean GENERATED ALWAYS AS (content_type_id = 1) STORED;
SELECT snowflake_migrate.declare_reference('t.notes', 'object_id', 't.players', 'is_player');
SELECT * FROM problems();
-- one that refers by conditions itself, and elements of an array
DELETE FROM snowflake_migrate.declared_references WHERE column_name = 'object_id';
ALTER TABLE t.notes DROP is_player, ADD seen bigint[], DROP CONSTRAINT notes_kind_id_fkey; ALTER TABLE a.notes DROP is_player, ADD seen int[] DEFAULT '{2}';
SELECT snowflake_migrate.declare_reference('t.notes', 'seen', 't.kinds');
SELECT snowflake_migrate.declare_reference('t.notes', 'content_type_id', 't.players', 'notes.id < 2');
SELECT snowflake_migrate.declare_reference('t.notes', 'content_type_id', 't.kinds', 'object_id IS NOT NULL AND content_type_id > 1');
SELECT snowflake_migrate.declare_reference('t.notes', 'object_id', 't.guilds', 'content_type_id = 2');
DELETE FROM snowflake_migrate.declared_references WHERE column_name = 'own';
SELECT snowflake_migrate.declare_reference('t.notes', 'own', 't.players', '2 = ANY (seen)');
SELECT * FROM problems();
-- what is about several rows is no condition
SELECT snowflake_migrate.declare_reference('t.notes', 'own', 't.players', 'own > 0 AND row_number() OVER () < 3');
SELECT snowflake_migrate.declare_reference('t.notes', 'own', 't.players', 'generate_series(1, 2) = 1');

--
-- A condition that reads what the merge changes would say something else of the copy than of the maps
--
SELECT forget();
CREATE TABLE t.kinds (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE NOT NULL, n int);
CREATE TABLE t.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE t.notes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), kind_id bigint REFERENCES t.kinds, object_id bigint);
CREATE TABLE a.kinds (id int PRIMARY KEY, name text, n int); CREATE TABLE a.players (id int PRIMARY KEY);
CREATE TABLE a.notes (id int PRIMARY KEY, kind_id int, object_id int);
INSERT INTO t.kinds VALUES (1, 'guild', 1); INSERT INTO a.kinds VALUES (1, 'player', 1), (2, 'guild', 2);
-- the second note's object is not there
INSERT INTO a.players VALUES (1); INSERT INTO a.notes VALUES (1, 1, 1), (2, 1, 9), (3, 2, 9);
SELECT snowflake_migrate.declare_table('t.kinds', 'match', '{name}', '{differences}');
CREATE TABLE o.settled AS SELECT 'player' AS name;
CREATE VIEW o.kinds AS SELECT * FROM t.kinds;
CREATE FUNCTION o.name_of(bigint) RETURNS text STABLE BEGIN ATOMIC SELECT k.name FROM o.kinds AS k WHERE k.id = $1; END;
CREATE FUNCTION o.late_name_of(bigint) RETURNS text STABLE LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT k.name FROM t.kinds AS k WHERE k.id = $1); END';
CREATE FUNCTION o.has_name(bigint, text) RETURNS boolean STABLE BEGIN ATOMIC SELECT o.name_of($1) = $2; END;
CREATE OPERATOR o.?= (FUNCTION = o.has_name, LEFTARG = bigint, RIGHTARG = text);
CREATE FUNCTION o.twice(bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 2 * $1';
CREATE FUNCTION ask(condition text) RETURNS SETOF text LANGUAGE sql AS $$
	DELETE FROM snowflake_migrate.declared_references;
	SELECT snowflake_migrate.declare_reference('t.notes', 'object_id', 't.players', condition, dangling => 'skip');
	SELECT concat_ws(': ', c.severity, c.object, c.problem) FROM snowflake_migrate.check('{a}', 't') AS c WHERE c.problem ~ 'condition of the reference'
$$;
SELECT ask('EXISTS (SELECT FROM t.kinds AS k WHERE k.id = kind_id AND k.name = $$player$$)');
SELECT ask('EXISTS (SELECT FROM o.kinds AS k WHERE k.id = kind_id AND k.name = $$player$$)');
SELECT ask('(SELECT max(n.id) FROM t.notes AS n) > 1');
SELECT ask('o.name_of(kind_id) = $$player$$');
SELECT ask('kind_id OPERATOR(o.?=) $$player$$');
SELECT ask('o.late_name_of(kind_id) = $$player$$');
-- what reads nothing, or what no merge changes; a declared table of which no rows come
SELECT ask('o.twice(object_id) > 1 AND $$player$$ IN (SELECT s.name FROM o.settled AS s)');
INSERT INTO t.kinds VALUES (2, 'player', 1);
SELECT ask('EXISTS (SELECT FROM t.kinds AS k WHERE k.id = kind_id AND k.name = $$player$$)');
-- rows that are there and change
SELECT snowflake_migrate.declare_policy('t.kinds', 'kinds_name_key', 'keep_target', combine => '{"n": "sum"}');
SELECT ask('EXISTS (SELECT FROM t.kinds AS k WHERE k.id = kind_id AND k.name = $$player$$)');
-- by the time, or by chance; in a table of which all rows are there
SELECT ask('now() > $$2020-01-01$$');
SELECT ask('object_id > random()');
SELECT ask('current_date > $$2020-01-01$$');
TRUNCATE t.notes; DELETE FROM t.kinds WHERE name = 'player'; DELETE FROM snowflake_migrate.declared_policies;
ALTER TABLE t.notes ADD label text; ALTER TABLE a.notes ADD label text; UPDATE a.notes SET label = 'n' || id; INSERT INTO t.notes (label) VALUES ('n1'), ('n2'), ('n3');
SELECT snowflake_migrate.declare_table('t.notes', 'match', '{label}', '{differences}');
SELECT ask('EXISTS (SELECT FROM t.kinds AS k WHERE k.id = kind_id AND k.name = $$player$$)');
-- users of the target may change what no merge does
DELETE FROM snowflake_migrate.declared_tables WHERE relation = 't.notes'::regclass; DELETE FROM t.notes;
SELECT ask('$$player$$ IN (SELECT s.name FROM o.settled AS s)');
CALL snowflake_migrate.merge('{a}', 't', node(), target_in_use => true, accept_warnings => true);
DROP FUNCTION ask;

--
-- A reference without a condition is for the values for which none of the others holds
--
SELECT forget();
CREATE TABLE t.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE);
CREATE TABLE t.guilds (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE);
CREATE TABLE t.mail (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), kind text, owner_id bigint, doc jsonb, must bigint NOT NULL, note text);
CREATE TABLE a.players AS TABLE t.players; CREATE TABLE a.guilds AS TABLE t.guilds; CREATE TABLE a.mail AS TABLE t.mail;
-- two guilds, one of which stays behind; ten players
INSERT INTO a.players SELECT g, 'p' || g FROM generate_series(1, 10) AS g; INSERT INTO a.guilds VALUES (1, 'g1'), (2, 'g2');
INSERT INTO a.mail SELECT g, 'p', g, jsonb_build_object('o', g), g, 'p' || g FROM generate_series(1, 10) AS g;
INSERT INTO a.mail VALUES (11, NULL, 1, '{"o": 1}', 1, 'g1'), (12, 'g', 2, '{"o": 2}', 2, 'g2'), (13, 'g', 3, '{"o": 3}', 1, 'g3');
SELECT snowflake_migrate.declare_table('t.guilds', 'copy', "only" => 'id <> 2');
SELECT snowflake_migrate.declare_reference('t.mail', c.name, 't.players', 'kind = $$p$$', c.path),
	snowflake_migrate.declare_reference('t.mail', c.name, 't.guilds', NULL, c.path, c.dangling)
FROM (VALUES ('owner_id', NULL, 'skip'), ('doc', '$.o', 'null'), ('must', NULL, 'error')) AS c (name, path, dangling);
SELECT severity, object, problem, count, example FROM snowflake_migrate.check('{a}', 't') WHERE relation = 't.mail' AND problem !~ 'may be null';
\o /dev/null
CALL snowflake_migrate.merge('{a}', 't', node(), accept_warnings => true);
\o
CREATE VIEW o.owners AS SELECT id, name FROM t.players UNION ALL SELECT id, name FROM t.guilds;
SELECT m.kind, count(*), count(*) FILTER (WHERE c.name = m.note AND d.name = m.note AND u.name = m.note) AS rightly
FROM t.mail AS m LEFT JOIN o.owners AS c ON c.id = m.owner_id LEFT JOIN o.owners AS d ON d.id = (m.doc ->> 'o')::bigint LEFT JOIN o.owners AS u ON u.id = m.must
GROUP BY m.kind ORDER BY m.kind;
SELECT * FROM snowflake_migrate.verify(last());
CALL snowflake_migrate.rollback(last());
-- paths that lead to the same ids
SELECT snowflake_migrate.declare_reference('t.mail', 'doc', 't.guilds', path => '$.*');
SELECT problem FROM snowflake_migrate.check('{a}', 't') WHERE severity = 'error';

-- what to do about references that dangle: those of the rest; of a column that cannot be null; to a table that no source has
DELETE FROM snowflake_migrate.declared_references WHERE path IS NOT NULL OR column_name = 'must';
SELECT snowflake_migrate.declare_reference('t.mail', 'owner_id', 't.guilds');
CREATE TABLE t.seasons (id bigint PRIMARY KEY DEFAULT snowflake_nextval()); CREATE TABLE t.scores (season_id bigint NOT NULL REFERENCES t.seasons, score int); CREATE TABLE a.scores AS SELECT 1 AS season_id, 2 AS score;
SELECT relation, object, advice FROM snowflake_migrate.check('{a}', 't') WHERE problem ~ 'dangle';
SELECT snowflake_migrate.declare_table('t.seasons', 'same_id');
SELECT relation, object, problem FROM snowflake_migrate.check('{a}', 't') WHERE relation = 't.scores' AND severity = 'error';

--
-- A policy that changes the key by which rows are told
--
SELECT forget();
CREATE TABLE t.tags (tag text PRIMARY KEY, info text); CREATE TABLE t.slots (realm text, slot int, CONSTRAINT slots_key UNIQUE (realm, slot), PRIMARY KEY (slot, realm));
CREATE TABLE a.tags AS TABLE t.tags; CREATE TABLE a.slots AS TABLE t.slots;
INSERT INTO t.tags VALUES ('A', 't'); INSERT INTO a.tags VALUES ('A', 'a'); INSERT INTO t.slots VALUES ('x', 1); INSERT INTO a.slots VALUES ('x', 1);
SELECT snowflake_migrate.declare_policy('t.tags', 'tags_pkey', 'suffix', '.{source}');
SELECT snowflake_migrate.declare_policy('t.slots', 'slots_key', 'next_free');
SELECT * FROM problems();
CALL snowflake_migrate.merge('{a}', 't', node());


-- A new partition of a table that is referred to adds a constraint to the one that refers; it is no change of this one
SELECT forget();
CREATE TABLE t.days (id bigint DEFAULT snowflake_nextval(), at date, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE t.days_1 PARTITION OF t.days FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE TABLE t.notes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), day_id bigint, day date, FOREIGN KEY (day_id, day) REFERENCES t.days);
CREATE TABLE a.days AS TABLE t.days; CREATE TABLE a.notes AS TABLE t.notes;
INSERT INTO a.days VALUES (1, '2020-02-01'); INSERT INTO a.notes VALUES (1, 1, '2020-02-01');
\o /dev/null
CALL snowflake_migrate.merge('{a}', 't', node());
\o
CREATE TABLE t.days_2 PARTITION OF t.days FOR VALUES FROM ('2021-01-01') TO ('2022-01-01');
SELECT * FROM snowflake_migrate.verify(last());
ALTER TABLE t.notes DROP CONSTRAINT notes_day_id_day_fkey;
SELECT problem, example FROM snowflake_migrate.verify(last());

--
-- Rows that cannot be computed: check() names their table, and goes on with the others
--
SELECT forget();
CREATE DOMAIN t.pos AS int CHECK (VALUE > 0); CREATE DOMAIN a.pos AS int;
CREATE DOMAIN t.low AS bigint CHECK (VALUE < 1000000);
CREATE TYPE t.place AS (name text, n t.pos); CREATE TYPE a.place AS (name text, n a.pos);
CREATE TABLE t.p (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n t.pos); CREATE TABLE a.p (id int PRIMARY KEY, n int);
INSERT INTO a.p VALUES (1, 1);
SELECT * FROM problems();
UPDATE a.p SET n = -1;
SELECT * FROM problems();
CALL snowflake_migrate.merge('{a}', 't', node());
UPDATE a.p SET n = 1;
CREATE TABLE t.q (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), p_id t.low REFERENCES t.p); CREATE TABLE a.q AS SELECT 1 AS id, 1::bigint AS p_id;
SELECT * FROM problems();
ALTER TABLE t.q ALTER p_id TYPE bigint, ADD CHECK (p_id::int > 0);
SELECT * FROM problems();
ALTER TABLE t.q DROP CONSTRAINT q_p_id_check; CREATE UNIQUE INDEX ON t.q ((p_id::int));
SELECT * FROM problems();
DROP INDEX t.q_p_id_idx; ALTER TABLE t.q ADD n int, ADD part int GENERATED ALWAYS AS (100 / n) STORED; ALTER TABLE a.q ADD n int DEFAULT 0;
SELECT * FROM problems();
ALTER TABLE t.q DROP part; CREATE INDEX q_part ON t.q ((100 / n));
SELECT * FROM problems();
DROP INDEX t.q_part; CREATE INDEX q_part ON t.q (id) WHERE 100 / n > 1;
SELECT * FROM problems();
DROP INDEX t.q_part; CREATE INDEX q_part ON t.q ((100 / n)) WHERE n <> 0;
SELECT * FROM problems();
DROP INDEX t.q_part; ALTER TABLE t.q DROP n; ALTER TABLE a.q DROP n;
ALTER TABLE t.q ADD at t.place, ADD ats t.place[]; ALTER TABLE a.q ADD at a.place DEFAULT ('x', 1), ADD ats a.place[];
SELECT * FROM problems();
UPDATE a.q SET at = ('x', -1);
SELECT * FROM problems();
UPDATE a.q SET at = NULL, ats = ARRAY[('x', -1)::a.place];
SELECT * FROM problems();

-- an index of one partition
SELECT forget();
CREATE TABLE t.p (id bigint DEFAULT snowflake_nextval(), n int, PRIMARY KEY (id, n)) PARTITION BY LIST (n);
CREATE TABLE t.p_0 PARTITION OF t.p FOR VALUES IN (0); CREATE TABLE t.p_1 PARTITION OF t.p FOR VALUES IN (1);
CREATE INDEX ON t.p_1 ((100 / n)); CREATE TABLE a.p AS SELECT 1 AS id, 0 AS n;
SELECT * FROM problems();
DROP TABLE t.p_1; ALTER TABLE t.p DETACH PARTITION t.p_0; ALTER TABLE t.p ATTACH PARTITION t.p_0 DEFAULT; CREATE INDEX lone ON t.p_0 ((1 + n));
SELECT * FROM problems();
DROP INDEX t.lone;
CREATE INDEX ON t.p_0 ((100 / n));
SELECT * FROM problems();
-- by the whole row
DROP TABLE t.p, a.p;
CREATE TABLE t.p (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int); CREATE TABLE a.p AS SELECT 1 AS id, 0 AS n;
CREATE FUNCTION o.n(t.p) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1.n';
CREATE INDEX ON t.p (o.n(p));
SELECT * FROM problems();
CREATE UNIQUE INDEX p_row ON t.p (o.n(p)); ALTER TABLE t.p ADD CONSTRAINT whole CHECK (o.n(p) > 0), ADD CHECK (num_nonnulls(p.*) > 0);
SELECT * FROM problems();
-- a function that fails for a row
ALTER TABLE t.p DROP CONSTRAINT whole, DROP CONSTRAINT p_check; DROP INDEX t.p_row;
CREATE FUNCTION o.fail(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RAISE 'n is %', $1; END$$;
ALTER TABLE t.p ADD CHECK (o.fail(n) > 0);
SELECT * FROM problems();
-- functions that need a search path
ALTER TABLE t.p DROP CONSTRAINT p_n_check;
CREATE FUNCTION o.twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 2 * $1';
CREATE FUNCTION o.more(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN twice($1) + 1; END';
CREATE INDEX p_more ON t.p (o.more(n));
SELECT * FROM problems();
DROP INDEX t.p_more; CREATE UNIQUE INDEX p_more ON t.p (o.more(n));
SELECT * FROM problems();
DROP INDEX t.p_more; ALTER TABLE t.p ADD CHECK (o.more(n) > 0);
SELECT * FROM problems();
ALTER FUNCTION o.more SET search_path = o;
SELECT * FROM problems();
SELECT forget();
DROP SCHEMA t, a, o;
DROP FUNCTION forget, last, node, problems; DROP SEQUENCE node;
-- a row may belong to what keeps its keys: the condition that says so is none that is missing
CREATE SCHEMA t;
CREATE SCHEMA a;
CREATE TABLE t.npcs (id bigint PRIMARY KEY, name text);
CREATE TABLE t.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE t.bags (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), owner_id bigint, owner_type text);
CREATE TABLE a.npcs AS SELECT 1::bigint AS id, 'smith' AS name;
CREATE TABLE a.players AS SELECT 1::bigint AS id, 'ann' AS name;
CREATE TABLE a.bags AS SELECT 1::bigint AS id, 1::bigint AS owner_id, 'npc' AS owner_type UNION ALL SELECT 2, 1, 'player';
SELECT snowflake_migrate.declare_table('t.npcs', 'same_id'),
	snowflake_migrate.declare_reference('t.bags', 'owner_id', 't.players', 'owner_type = ''player''') \g /dev/null
SELECT severity, object, problem, count, example FROM snowflake_migrate.check('{a}', 't') WHERE relation = 't.bags' AND object = 'owner_id';
SELECT snowflake_migrate.declare_reference('t.bags', 'owner_id', 't.npcs', 'owner_type = ''npc''') \g /dev/null
SELECT severity, object, problem, count, example FROM snowflake_migrate.check('{a}', 't') WHERE relation = 't.bags' AND object = 'owner_id';
-- beside it, a kind that was forgotten is asked about
INSERT INTO a.bags VALUES (4, 1, 'guild');
SELECT severity, object, problem, count, example FROM snowflake_migrate.check('{a}', 't') WHERE relation = 't.bags' AND object = 'owner_id';
CALL snowflake_migrate.merge('{a}', 't', '{369}');
-- one that is of two kinds is an error
UPDATE a.bags SET owner_type = 'npc player' WHERE id = 4;
SELECT snowflake_migrate.declare_reference('t.bags', 'owner_id', 't.npcs', 'owner_type ~ ''npc'''),
	snowflake_migrate.declare_reference('t.bags', 'owner_id', 't.players', 'owner_type ~ ''player''') \g /dev/null
DELETE FROM snowflake_migrate.declared_references WHERE relation = 't.bags'::regclass AND condition LIKE '%=%';
SELECT severity, object, problem, count, example FROM snowflake_migrate.check('{a}', 't') WHERE relation = 't.bags' AND object = 'owner_id';
-- so where all that is declared leads to what keeps its keys
DELETE FROM snowflake_migrate.declared_references WHERE relation = 't.bags'::regclass AND referenced = 't.players'::regclass;
SELECT severity, object, problem, count, example FROM snowflake_migrate.check('{a}', 't') WHERE relation = 't.bags' AND object = 'owner_id';
-- one without a condition is for all others
SELECT snowflake_migrate.declare_reference('t.bags', 'owner_id', 't.npcs'),
	snowflake_migrate.declare_reference('t.bags', 'owner_id', 't.players', 'owner_type = ''player''') \g /dev/null
DELETE FROM snowflake_migrate.declared_references WHERE relation = 't.bags'::regclass AND condition LIKE '%~%';
SELECT severity, object, problem, count, example FROM snowflake_migrate.check('{a}', 't') WHERE relation = 't.bags' AND object = 'owner_id';
DELETE FROM snowflake_migrate.declared_references WHERE relation = 't.bags'::regclass AND condition IS NULL;
DELETE FROM a.bags WHERE id = 4;
-- values for which no condition holds want an answer, until it is said that they are no ids
INSERT INTO a.bags VALUES (3, 1, 'chest');
DELETE FROM a.bags WHERE owner_type = 'npc';
CALL snowflake_migrate.merge('{a}', 't', '{369}');
SELECT snowflake_migrate.declare_no_reference('t.bags', 'owner_id') \g /dev/null
SELECT severity, object, problem, count, example FROM snowflake_migrate.check('{a}', 't') WHERE relation = 't.bags' AND object = 'owner_id';
CALL snowflake_migrate.merge('{a}', 't', '{369}') \g /dev/null
SELECT owner_type, owner_id = 1 AS as_it_was FROM t.bags ORDER BY id;
-- an empty array leaves nothing out
CREATE TABLE t.parties (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), kind text, member_ids bigint[]);
CREATE TABLE a.parties AS SELECT 1::bigint AS id, 'none' AS kind, '{}'::bigint[] AS member_ids;
SELECT snowflake_migrate.declare_reference('t.parties', 'member_ids', 't.players', 'kind = ''player''') \g /dev/null
SELECT severity, object, problem, count, example FROM snowflake_migrate.check('{a}', 't') WHERE relation = 't.parties' AND object = 'member_ids';
-- the example of a row without a key is the row
CREATE TABLE t.logs (at int, who bigint, kind text);
CREATE TABLE a.logs AS SELECT 1 AS at, 2::bigint AS who, 'system' AS kind;
SELECT snowflake_migrate.declare_reference('t.logs', 'who', 't.players', 'kind = ''player''') \g /dev/null
SELECT severity, object, problem, count, example FROM snowflake_migrate.check('{a}', 't') WHERE relation = 't.logs' AND object = 'who';
DROP SCHEMA a, t CASCADE;

-- views whose rows can't be read: of rows that policies hide from the view's owner, or not populated
SET client_min_messages = warning;
SELECT current_user AS superuser \gset
CREATE ROLE regress_viewer LOGIN;
SELECT snowflake_migrate.grant_to('regress_viewer') \g /dev/null
CREATE SCHEMA views_source AUTHORIZATION regress_viewer;
CREATE SCHEMA views_target AUTHORIZATION regress_viewer;
CREATE SCHEMA hidden;
CREATE TABLE hidden.letters (id, body) AS SELECT 1::bigint, 'a'::text;
ALTER TABLE hidden.letters ENABLE ROW LEVEL SECURITY;
GRANT USAGE ON SCHEMA hidden TO regress_viewer;
GRANT SELECT ON hidden.letters TO regress_viewer;
\c - regress_viewer
SET client_min_messages = warning;
CREATE TABLE views_target.letters (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), body text);
CREATE TABLE views_target.totals (name text PRIMARY KEY, total bigint);
CREATE VIEW views_source.letters AS SELECT * FROM hidden.letters;
CREATE MATERIALIZED VIEW views_source.totals AS SELECT 'letters'::text AS name, 1::bigint AS total WITH NO DATA;
SELECT severity, relation, problem, advice FROM snowflake_migrate.check('{views_source}', 'views_target') WHERE severity = 'error';
CALL snowflake_migrate.merge('{views_source}', 'views_target', '{350}');
REFRESH MATERIALIZED VIEW views_source.totals;
\c - :superuser
SET client_min_messages = warning;
REVOKE SELECT ON hidden.letters FROM regress_viewer;
ALTER TABLE hidden.letters DISABLE ROW LEVEL SECURITY;
\c - regress_viewer
SET client_min_messages = warning;
SELECT severity, relation, problem FROM snowflake_migrate.check('{views_source}', 'views_target') WHERE severity = 'error';
\c - :superuser
SET client_min_messages = warning;
GRANT SELECT ON hidden.letters TO regress_viewer;
\c - regress_viewer
SET client_min_messages = warning;
SELECT severity, relation, problem FROM snowflake_migrate.check('{views_source}', 'views_target') WHERE severity = 'error';
\c - :superuser
SET client_min_messages = warning;
DROP SCHEMA views_source, views_target, hidden CASCADE;
DROP OWNED BY regress_viewer;
DROP ROLE regress_viewer;

-- references to a natural key lead to the row that stays
CREATE SCHEMA codes_source;
CREATE SCHEMA codes_target;
CREATE TABLE codes_target.countries (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), code text UNIQUE, name text);
CREATE TABLE codes_target.cities (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text,
	country text REFERENCES codes_target.countries (code));
INSERT INTO codes_target.countries (code, name) VALUES ('NO', 'Norway');
CREATE TABLE codes_source.countries AS SELECT * FROM (VALUES (1, 'NO', 'Norway'), (2, 'SE', 'Sweden')) AS v (id, code, name);
CREATE TABLE codes_source.cities AS SELECT * FROM (VALUES (1, 'Oslo', 'NO'), (2, 'Lund', 'SE')) AS v (id, name, country);
SELECT snowflake_migrate.declare_table('codes_target.countries', 'match', '{code}') \g /dev/null
SELECT severity, relation, object, problem, count, example FROM snowflake_migrate.check('{codes_source}', 'codes_target') WHERE severity = 'error';
CALL snowflake_migrate.merge('{codes_source}', 'codes_target', '{350}') \g /dev/null
SELECT c.name, o.name FROM codes_target.cities AS c JOIN codes_target.countries AS o ON o.code = c.country ORDER BY c.name;
DROP SCHEMA codes_source, codes_target CASCADE;
RESET client_min_messages;
