-- snowflake_migrate.check(): what would stop a merge, or surprise, by subject.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\pset format unaligned

--
-- Schemas that can't be merged
--
CREATE SCHEMA a;
CREATE SCHEMA b;
CREATE SCHEMA world;
SELECT * FROM snowflake_migrate.check(NULL, 'world');
SELECT * FROM snowflake_migrate.check('{a,NULL}', 'world');
SELECT * FROM snowflake_migrate.check('{a}', NULL);
SELECT * FROM snowflake_migrate.check('{}', 'world');
SELECT * FROM snowflake_migrate.check('{{a},{b}}', 'world');
SELECT * FROM snowflake_migrate.check('{b,a,b}', 'world');
SELECT * FROM snowflake_migrate.check('{a,world}', 'world');
SELECT * FROM snowflake_migrate.check('{a,nowhere}', 'world');
SELECT * FROM snowflake_migrate.check('{a}', 'World');
-- nothing to say about nothing
SELECT * FROM snowflake_migrate.check('{a,b}', 'world');

--
-- Tables
--
CREATE TABLE a.left_behind (id int PRIMARY KEY);
INSERT INTO a.left_behind VALUES (1);
CREATE TABLE b.left_behind (LIKE a.left_behind INCLUDING ALL);
CREATE TABLE a.on_purpose (id int PRIMARY KEY);
INSERT INTO a.on_purpose VALUES (1);
SELECT snowflake_migrate.declare_table('a.on_purpose', 'ignore');
CREATE VIEW a.report AS SELECT * FROM a.left_behind;
CREATE TABLE world.here_alone (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE world.in_one (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE b.in_one (id int PRIMARY KEY);
CREATE TABLE world.not_wanted (id int PRIMARY KEY);
SELECT snowflake_migrate.declare_table('world.not_wanted', 'ignore');
-- other kinds of relations
CREATE VIEW world.totals AS SELECT 1 AS total;
CREATE TABLE a.totals AS SELECT 1 AS total;
CREATE FOREIGN DATA WRAPPER regress_snowflake_wrapper;
CREATE SERVER regress_snowflake_server FOREIGN DATA WRAPPER regress_snowflake_wrapper;
CREATE FOREIGN TABLE world.elsewhere (id int) SERVER regress_snowflake_server;
CREATE TABLE a.elsewhere AS SELECT 1 AS id;
CREATE FOREIGN TABLE a.snowflake_layouts (name text) SERVER regress_snowflake_server;
CREATE FOREIGN TABLE a.view_there (n int) SERVER regress_snowflake_server;
CREATE VIEW world.view_there AS SELECT 1 AS n;
-- a partition comes with its table, where the source has that
CREATE TABLE world.log (id bigint DEFAULT snowflake_nextval(), at date, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE world.log_old PARTITION OF world.log FOR VALUES FROM (MINVALUE) TO ('2025-01-01');
CREATE TABLE a.log (id bigint, at date, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE a.log_old PARTITION OF a.log FOR VALUES FROM (MINVALUE) TO ('2025-01-01');
CREATE TABLE b.log_old AS SELECT 1 AS id, date '2024-01-01' AS at;
-- what a table is
CREATE TABLE world.keyless (n int);
CREATE TABLE a.keyless (n int);
CREATE UNLOGGED TABLE world.cache (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE a.cache (id bigint PRIMARY KEY);
CREATE TABLE world.cache_child () INHERITS (world.cache);
SELECT * FROM snowflake_migrate.check('{a,b}', 'world');
DROP SCHEMA a, b, world CASCADE;
DROP SERVER regress_snowflake_server;
DROP FOREIGN DATA WRAPPER regress_snowflake_wrapper;

--
-- Columns
--
CREATE SCHEMA a;
CREATE SCHEMA "B c";
CREATE SCHEMA world;
CREATE TYPE a.color AS ENUM ('red', 'green', 'blue');
CREATE TYPE "B c".color AS ENUM ('green', 'red');
CREATE TYPE world.color AS ENUM ('red', 'green');
CREATE TABLE world.items (
	id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
	code varchar(5) NOT NULL,
	worth int NOT NULL DEFAULT 7,
	seller text NOT NULL,
	made timestamptz,
	weight real,
	color world.color,
	colors world.color[],
	price numeric(8,2),
	doubled int GENERATED ALWAYS AS (worth * 2) STORED,
	note text,
	serial int GENERATED ALWAYS AS IDENTITY
);
-- all of it differs
CREATE TABLE a.items (
	serial int NOT NULL DEFAULT 1,
	id int PRIMARY KEY,
	weight int,
	code varchar(10),
	worth bigint,
	seller text,
	made timestamp,
	color a.color,
	colors a.color[],
	price numeric(8,3),
	doubled int,
	note char(10),
	old_one text,
	"Older one" text
);
INSERT INTO a.items VALUES
	(1, 1, 7, 'short', 1, 'Ann', now(), 'red', '{red}', 1),
	(1, 2, 7, 'longer', 3000000000, NULL, now(), 'blue', '{red,blue}', 1),
	(1, 3, 7, NULL, NULL, NULL, now(), 'blue', '{}', 1);
-- an older version, in which all values fit
CREATE TABLE "B c".items (code varchar(10), id smallint PRIMARY KEY, color "B c".color, worth bigint, old_one text);
INSERT INTO "B c".items VALUES ('short', 1, 'red', 3);
SELECT * FROM snowflake_migrate.check('{a,"B c"}', 'world');

-- what is declared, and what is put right
SELECT snowflake_migrate.declare_table('world.items', 'copy', ignored_columns => '{old_one,"Older one"}');
ALTER TABLE world.items ALTER price TYPE numeric;
ALTER TABLE world.items ALTER seller SET DEFAULT 'nobody';
ALTER TYPE world.color ADD VALUE 'blue';
UPDATE a.items SET code = 'short', worth = 1, seller = 'Ann';
SELECT severity, source, object, problem FROM snowflake_migrate.check('{a,"B c"}', 'world') WHERE object IS NOT NULL;
-- of an empty table, nothing is lost
TRUNCATE a.items, "B c".items;
DELETE FROM snowflake_migrate.declared_tables;
ALTER TABLE world.items ALTER seller DROP DEFAULT;
SELECT severity, source, object, problem FROM snowflake_migrate.check('{a,"B c"}', 'world') WHERE object IN ('old_one', 'seller');

-- columns of the key
CREATE TABLE world.prices (region text, item text, price int, PRIMARY KEY (region, item));
CREATE TABLE a.prices (item text, price int);
INSERT INTO a.prices VALUES ('sword', 1);
CREATE VIEW "B c".prices AS SELECT CASE WHEN n < 3 THEN 'north' END AS region, 'sword'::text AS item, n AS price FROM generate_series(1, 3) AS n;
CREATE TABLE world.tags (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), tag text, made timestamptz DEFAULT now());
CREATE TABLE a.tags (id int PRIMARY KEY);
INSERT INTO a.tags VALUES (1);
SELECT snowflake_migrate.declare_table('world.tags', 'match', '{tag}');
SELECT snowflake_migrate.declare_created('world.tags', 'made');
SELECT * FROM snowflake_migrate.check('{a,"B c"}', 'world') WHERE relation <> 'world.items';
DELETE FROM snowflake_migrate.declared_tables;
DELETE FROM snowflake_migrate.declared_created;
DROP SCHEMA a, "B c", world CASCADE;

--
-- Keys
--
CREATE SCHEMA a;
CREATE SCHEMA world;
CREATE TABLE world.narrow (id serial PRIMARY KEY);
CREATE TABLE world.wide (id bigserial PRIMARY KEY);
CREATE TABLE world.shared (id int PRIMARY KEY, code text UNIQUE);
CREATE TABLE world.shared_too (id bigint PRIMARY KEY, code text UNIQUE);
CREATE TABLE world.same (id int PRIMARY KEY);
SELECT snowflake_migrate.declare_table('world.shared', 'match', '{code}');
SELECT snowflake_migrate.declare_table('world.shared_too', 'match', '{code}');
SELECT snowflake_migrate.declare_table('world.same', 'same_id');
CREATE TABLE world.adopted (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
-- one-to-one, and what refers to that
CREATE TABLE world.detail (adopted_id int PRIMARY KEY REFERENCES world.adopted);
CREATE TABLE world.more_detail (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), detail int REFERENCES world.detail, narrow smallint REFERENCES world.narrow,
	same int REFERENCES world.same, several int[], wide text);
SELECT snowflake_migrate.declare_reference('world.more_detail', 'several', 'world.wide');
SELECT snowflake_migrate.declare_reference('world.more_detail', 'wide', 'world.wide');
CREATE TABLE a.narrow (LIKE world.narrow INCLUDING ALL);
CREATE TABLE a.wide (LIKE world.wide INCLUDING ALL);
CREATE TABLE a.shared (LIKE world.shared INCLUDING ALL);
CREATE TABLE a.shared_too (LIKE world.shared INCLUDING ALL);
CREATE TABLE a.same (LIKE world.same INCLUDING ALL);
CREATE TABLE a.detail (LIKE world.detail INCLUDING ALL);
CREATE TABLE a.more_detail (LIKE world.more_detail INCLUDING ALL);
-- no index, a part of one, and a better one
CREATE VIEW a.adopted AS SELECT nullif(n / 2, 9) AS id FROM generate_series(2, 19) AS n;
CREATE TABLE world.pairs (x int, y int, PRIMARY KEY (x, y));
CREATE TABLE a.pairs (x bigint, y smallint, z int);
CREATE UNIQUE INDEX ON a.pairs (x, y) WHERE z = 0;
CREATE UNIQUE INDEX ON a.pairs (x, y, z);
INSERT INTO a.pairs VALUES (1, 1, 0), (1, 1, 1), (1, 2, 0);
SELECT snowflake_migrate.declare_table('world.pairs', 'copy', ignored_columns => '{z}');
CREATE TABLE world.proved (x int, y int, PRIMARY KEY (x, y));
CREATE TABLE a.proved (x int UNIQUE, y int);
SELECT * FROM snowflake_migrate.check('{a}', 'world') ORDER BY severity, relation, source, object, problem;
DELETE FROM snowflake_migrate.declared_tables;
DELETE FROM snowflake_migrate.declared_references;
DROP SCHEMA a, world CASCADE;

-- a key that no sequence gives may mean something: it is not to be adopted before that is known
CREATE SCHEMA a;
CREATE SCHEMA world;
CREATE TABLE world.seasons (season int PRIMARY KEY, starts_on date);
CREATE TABLE world.years (year bigint PRIMARY KEY, title text, UNIQUE (title) INCLUDE (year));
CREATE TABLE world.maps (no bigint PRIMARY KEY, code text, region int, UNIQUE (code, region) INCLUDE (no), UNIQUE (region, code));
CREATE TABLE world.ranks (season int REFERENCES world.seasons, place int, PRIMARY KEY (season, place));
CREATE TABLE a.seasons (LIKE world.seasons INCLUDING ALL);
CREATE TABLE a.years (LIKE world.years INCLUDING ALL);
CREATE TABLE a.maps (LIKE world.maps INCLUDING ALL);
CREATE TABLE a.ranks (LIKE world.ranks INCLUDING ALL);
INSERT INTO world.seasons VALUES (1, '2025-01-01'), (2, '2025-03-01');
INSERT INTO world.ranks VALUES (1, 1);
INSERT INTO a.seasons SELECT * FROM world.seasons;
INSERT INTO a.ranks VALUES (2, 1);
-- of other tables: one-to-one, without a foreign key; its own key is no answer
CREATE TABLE world.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE world.wallets (player_id int PRIMARY KEY, gold int);
CREATE TABLE world.maps_seen (maps_seen_id bigint PRIMARY KEY);
-- in a domain, and inherited
CREATE DOMAIN world.plot AS int;
CREATE TABLE world.plots (id world.plot PRIMARY KEY DEFAULT 1);
CREATE TABLE world.elder (id serial);
CREATE TABLE world.younger () INHERITS (world.elder);
ALTER TABLE world.younger ADD PRIMARY KEY (id);
CREATE TABLE a.players (LIKE world.players INCLUDING ALL);
CREATE TABLE a.wallets (LIKE world.wallets INCLUDING ALL);
CREATE TABLE a.maps_seen (LIKE world.maps_seen INCLUDING ALL);
CREATE TABLE a.plots (LIKE world.plots INCLUDING ALL);
CREATE TABLE a.younger (LIKE world.younger INCLUDING ALL);
INSERT INTO a.players VALUES (1, 'Managrim'), (2, 'Tilda');
INSERT INTO a.wallets VALUES (2, 20), (1, 10);
SELECT severity, relation, object, problem, advice FROM snowflake_migrate.check('{a}', 'world') ORDER BY relation, object;
-- by the first of it, seasons stay what they are
SELECT split_part(split_part(advice, E'\n', 1), ': ', 2) AS same_id FROM snowflake_migrate.check('{a}', 'world') WHERE object = 'season' AND relation = 'world.seasons' \gexec
-- by the first of it, wallets stay with their players; another is said to have keys of its own
SELECT split_part(split_part(advice, E'\n', 1), ': ', 2) AS reference FROM snowflake_migrate.check('{a}', 'world') WHERE relation = 'world.wallets' \gexec
ALTER TABLE world.wallets ALTER COLUMN player_id TYPE bigint;
SELECT snowflake_migrate.declare_table('world.years', 'copy');
SELECT snowflake_migrate.declare_table('world.maps', 'ignore');
SELECT snowflake_migrate.declare_table('world.maps_seen', 'ignore');
SELECT severity, relation, object, problem, advice FROM snowflake_migrate.check('{a}', 'world') WHERE severity = 'error' OR problem ~ 'adopted' ORDER BY relation, object;
SELECT advice AS adopt FROM snowflake_migrate.check('{a}', 'world') WHERE problem ~ 'adopted' \gexec
ALTER TABLE world.plots ALTER COLUMN id TYPE bigint, ALTER COLUMN id SET DEFAULT snowflake_nextval();
SELECT severity, relation, object, problem, count FROM snowflake_migrate.check('{a}', 'world') WHERE relation ~ 'seasons|ranks|wallets|years|younger|plots' ORDER BY relation, object;
DELETE FROM snowflake_migrate.declared_references;
DELETE FROM snowflake_migrate.declared_tables;
DROP SCHEMA a, world CASCADE;

--
-- References
--
CREATE SCHEMA a;
CREATE SCHEMA b;
CREATE SCHEMA world;
CREATE TABLE world.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), parent_id bigint, name text UNIQUE);
CREATE TABLE world."gameCities" (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE world.boxes (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE world.ranks (id int PRIMARY KEY);
SELECT snowflake_migrate.declare_table('world.ranks', 'same_id');
CREATE TABLE world.words (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
SELECT snowflake_migrate.declare_table('world.words', 'ignore');
CREATE TABLE public.merge_check_outside (id int PRIMARY KEY);
-- a database gives its keys anew, and equal ones may be other rows
CREATE TABLE public.merge_check_persons (id serial PRIMARY KEY);
CREATE TYPE world.kind AS ENUM ('player', 'system');
CREATE TABLE world.things (
	id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
	player_id bigint,				-- of players
	sender_player_id int,			-- a player too
	"receivingPlayerId" bigint,		-- in mixed case
	playerid smallint,
	player bigint,					-- may be one
	game_city_id bigint,
	"CITY_ID" bigint,				-- of the table whose name ends so
	town_id bigint,					-- of no table
	box_ids bigint[],
	rank_id int,					-- these are the same everywhere
	paid int,						-- is none
	grid int[],
	name_id text,					-- not an integer
	known_id bigint REFERENCES world.players,
	declared_id bigint,
	outside_id int REFERENCES public.merge_check_outside,
	person_id int REFERENCES public.merge_check_persons,
	word_id bigint REFERENCES world.words,
	player_name text REFERENCES world.players (name),
	owner_id bigint, owner_type text,
	"subjectId" bigint, "subjectKind" world.kind,
	box_id bigint, box_type text,	-- of boxes, of which there are types
	empty_id int, empty_type varchar(10),
	document jsonb, other json, plain jsonb, known jsonb
);
SELECT snowflake_migrate.declare_reference('world.things', 'declared_id', 'world.players');
SELECT snowflake_migrate.declare_reference('world.things', 'known', 'world.players', path => '$.id');
SELECT snowflake_migrate.declare_policy('world.players', 'players_name_key', 'suffix');
CREATE TABLE a.players (LIKE world.players);
CREATE TABLE a.things (LIKE world.things);
CREATE VIEW b.things AS SELECT * FROM a.things WHERE false;
INSERT INTO a.things (id, owner_id, owner_type, "subjectId", "subjectKind", document, other) VALUES
	(1, 1, 'Game\Player', 1, 'player', '{"a": {"player_id": "x"}, "n": 7}', '{"marks": {"7": "seven"}}'),
	(2, 1, 'guild''s', 1, 'system', '[{"b c": [{"boxIds": [1, 2]}]}]', '{"marks": {}}'),
	(3, 1, 'boxes', NULL, 'player', NULL, NULL);
ALTER TABLE a.things ADD PRIMARY KEY (id);
ALTER TABLE a.players ADD PRIMARY KEY (id);
SELECT severity, source, object, problem, count, example, advice FROM snowflake_migrate.check('{a,b}', 'world')
WHERE relation = 'world.things' OR object = 'parent_id';
-- the source refers to the very same table, or an equal key is said to be the same row
ALTER TABLE a.things ADD FOREIGN KEY (person_id) REFERENCES public.merge_check_persons;
SELECT severity, object, problem FROM snowflake_migrate.check('{a}', 'world') WHERE object = 'person_id';
SELECT severity, object FROM snowflake_migrate.check('{a,b}', 'world') WHERE object = 'person_id';
SELECT snowflake_migrate.declare_table('public.merge_check_persons', 'same_id');
SELECT severity, object FROM snowflake_migrate.check('{a,b}', 'world') WHERE object = 'person_id';

-- conditions
SELECT snowflake_migrate.declare_reference('world.things', 'owner_id', 'world.players', $$owner_type LIKE '%Player'$$);
SELECT snowflake_migrate.declare_reference('world.things', 'owner_id', 'world.boxes', $$things.owner_type IN ('Game\Player', 'boxes')$$);
-- one for all others leaves nothing out
SELECT snowflake_migrate.declare_reference('world.things', 'subjectId', 'world.players', $$"subjectKind" = 'player'$$);
SELECT snowflake_migrate.declare_reference('world.things', 'subjectId', 'world.boxes');
-- a source that has not what the condition needs
CREATE TABLE world.marks (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), on_id bigint, on_player boolean);
CREATE TABLE b.marks (id bigint PRIMARY KEY, on_id bigint);
SELECT snowflake_migrate.declare_reference('world.marks', 'on_id', 'world.players', 'on_player');
SELECT severity, source, relation, object, problem, count, example, advice FROM snowflake_migrate.check('{a,b}', 'world')
WHERE object IN ('owner_id', 'subjectId', 'on_id');
DELETE FROM snowflake_migrate.declared_tables;
DELETE FROM snowflake_migrate.declared_references;
DELETE FROM snowflake_migrate.declared_policies;
DROP SCHEMA a, b, world CASCADE;
DROP TABLE public.merge_check_outside, public.merge_check_persons;

--
-- What the target does by itself, and what the user may do
--
CREATE SCHEMA a;
CREATE SCHEMA world;
CREATE FUNCTION world.nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TABLE world.rows (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), parent bigint REFERENCES world.rows, made timestamptz,
	twice int GENERATED ALWAYS AS (2) STORED, number int GENERATED ALWAYS AS IDENTITY, "Other number" serial, during int4range);
ALTER TABLE world.rows ADD CONSTRAINT rows_during EXCLUDE USING gist (during WITH &&);
CREATE TRIGGER t1 AFTER INSERT ON world.rows EXECUTE FUNCTION world.nothing();
CREATE TRIGGER t2 AFTER UPDATE ON world.rows EXECUTE FUNCTION world.nothing();
CREATE TRIGGER "T 3" AFTER INSERT ON world.rows EXECUTE FUNCTION world.nothing();
CREATE TRIGGER t4 AFTER INSERT ON world.rows EXECUTE FUNCTION world.nothing();
CREATE TRIGGER t5 AFTER INSERT ON world.rows EXECUTE FUNCTION world.nothing();
CREATE TRIGGER t6 AFTER DELETE ON world.rows EXECUTE FUNCTION world.nothing();
ALTER TABLE world.rows ENABLE ALWAYS TRIGGER "T 3", ENABLE REPLICA TRIGGER t4, DISABLE TRIGGER t5;
CREATE RULE r1 AS ON INSERT TO world.rows DO ALSO NOTIFY rows;
CREATE RULE r2 AS ON INSERT TO world.rows DO ALSO NOTIFY rows;
ALTER TABLE world.rows ENABLE ALWAYS RULE r2;
-- of partitions too, once
CREATE TABLE world.parts (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), made timestamptz, changed timestamptz) PARTITION BY RANGE (id);
CREATE TABLE world.part PARTITION OF world.parts DEFAULT;
CREATE TRIGGER t1 AFTER INSERT ON world.parts FOR EACH ROW EXECUTE FUNCTION world.nothing();
CREATE TRIGGER t2 AFTER INSERT ON world.part FOR EACH ROW EXECUTE FUNCTION world.nothing();
CREATE TABLE world.secret (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
ALTER TABLE world.secret ENABLE ROW LEVEL SECURITY;
CREATE TABLE a.rows (id int PRIMARY KEY, parent bigint, made timestamptz, twice int, number int NOT NULL, "Other number" int NOT NULL, during int4range);
CREATE TABLE a.parts (id int PRIMARY KEY, made timestamptz, changed timestamptz);
CREATE TABLE a.secret (id int PRIMARY KEY);
INSERT INTO a.secret VALUES (1);
ALTER TABLE a.secret ENABLE ROW LEVEL SECURITY;
-- a policy whose constraint is gone
ALTER TABLE world.rows ADD CONSTRAINT gone UNIQUE (made);
SELECT snowflake_migrate.declare_policy('world.rows', 'gone', 'skip');
ALTER TABLE world.rows DROP CONSTRAINT gone;
SELECT * FROM snowflake_migrate.check('{a}', 'world') WHERE problem NOT LIKE 'rows%';

-- a user who may do this, but nothing in the schemas
CREATE ROLE regress_snowflake_merger;
GRANT SELECT, INSERT, DELETE ON snowflake_migrate.runs, snowflake_migrate.nodes, snowflake_migrate_internal.plan_tables, snowflake_migrate_internal.plan_columns,
	snowflake_migrate_internal.plan_references, snowflake_migrate_internal.plan_sources, snowflake_migrate.report TO regress_snowflake_merger;
GRANT SELECT ON snowflake_migrate.declared_tables, snowflake_migrate.declared_references, snowflake_migrate.declared_policies, snowflake_migrate.declared_created TO regress_snowflake_merger;
GRANT USAGE ON SEQUENCE snowflake_migrate_internal.run_number TO regress_snowflake_merger;
SET ROLE regress_snowflake_merger;
SELECT severity, source, relation, object, problem, advice FROM snowflake_migrate.check('{a}', 'world') WHERE severity = 'error' OR relation IS NULL;
RESET ROLE;
-- one who may read and write it all
GRANT USAGE ON SCHEMA a, world TO regress_snowflake_merger;
GRANT SELECT ON ALL TABLES IN SCHEMA a TO regress_snowflake_merger;
GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA world TO regress_snowflake_merger;
SET ROLE regress_snowflake_merger;
SELECT severity, source, relation, object, problem, advice FROM snowflake_migrate.check('{a}', 'world') WHERE severity <> 'info' OR relation IS NULL;
RESET ROLE;
GRANT SET ON PARAMETER session_replication_role TO regress_snowflake_merger;
SET ROLE regress_snowflake_merger;
SELECT severity, source, relation, object, problem, advice FROM snowflake_migrate.check('{a}', 'world') WHERE severity = 'error';
RESET ROLE;
DROP OWNED BY regress_snowflake_merger;
REVOKE SET ON PARAMETER session_replication_role FROM regress_snowflake_merger;
DROP ROLE regress_snowflake_merger;
DELETE FROM snowflake_migrate.declared_policies;
DROP SCHEMA a, world CASCADE;

--
-- Nothing in the way: keys are mapped, and nothing is left
--
CREATE SCHEMA a;
CREATE SCHEMA world;
CREATE TABLE world.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE);
CREATE TABLE world.items (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), player_id bigint NOT NULL REFERENCES world.players);
CREATE TABLE a.players (id int PRIMARY KEY, name text UNIQUE);
CREATE TABLE a.items (id int PRIMARY KEY, player_id int NOT NULL REFERENCES a.players);
INSERT INTO a.players VALUES (1, 'Ann'), (2, 'Bob');
INSERT INTO a.items VALUES (1, 2), (2, 1);
SELECT * FROM snowflake_migrate.check('{a}', 'world') WHERE severity = 'error' OR relation IS NULL;
SELECT (SELECT count(*) FROM snowflake_migrate.runs) AS runs, (SELECT count(*) FROM snowflake_migrate_internal.plan_tables) AS plans,
	(SELECT count(*) FROM snowflake_migrate.report) AS findings, (SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'snowflake\_merge\_%') AS schemas;
-- rows that clash are found with the maps
INSERT INTO world.players (name) VALUES ('Ann');
SELECT severity, source, relation, object, count, example FROM snowflake_migrate.check('{a}', 'world') WHERE severity = 'error';
-- so many keys that one transaction may need more locks than there are
DO $$ BEGIN FOR i IN 1 .. 51 LOOP EXECUTE format('CREATE TABLE world.many_%s (id serial PRIMARY KEY); CREATE TABLE a.many_%1$s (id int PRIMARY KEY)', i); END LOOP; END $$;
SELECT count, left(advice, 65) AS advice FROM snowflake_migrate.check('{a}', 'world') WHERE problem ~ 'one call';
DO $$ BEGIN FOR i IN 1 .. 51 LOOP EXECUTE format('DROP TABLE world.many_%s, a.many_%1$s', i); END LOOP; END $$;
-- other errors are not hidden
CREATE VIEW a.broken AS SELECT 1 / 0 AS id;
CREATE TABLE world.broken (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
SELECT * FROM snowflake_migrate.check('{a}', 'world');
DROP SCHEMA a, world CASCADE;

--
-- Keys that are not adopted yet: rows that clash are told all the same, by what is not renumbered
--
CREATE SCHEMA a;
CREATE SCHEMA b;
CREATE SCHEMA world;
CREATE TABLE world.players (id serial PRIMARY KEY, realm int, name text, mail text, tag text, folded text GENERATED ALWAYS AS (id::text) STORED,
	leader_id int REFERENCES world.players);
CREATE UNIQUE INDEX of_names ON world.players (lower(name)) WHERE realm > 0;
CREATE UNIQUE INDEX of_ids ON world.players (id, realm);
CREATE UNIQUE INDEX of_leaders ON world.players (leader_id);
CREATE UNIQUE INDEX of_some ON world.players (mail) WHERE id > 0;
CREATE UNIQUE INDEX of_made ON world.players (folded);
CREATE UNIQUE INDEX of_tags ON world.players (tag);
CREATE UNIQUE INDEX of_mail ON world.players (mail) INCLUDE (id);
CREATE TABLE world.realms (code text PRIMARY KEY, note text);
CREATE TABLE a.players (id int PRIMARY KEY, realm int, name text, mail text, tag text, leader_id int REFERENCES a.players);
CREATE TABLE b.players (LIKE a.players);
CREATE TABLE a.realms (code text PRIMARY KEY, note text);
INSERT INTO world.players VALUES (1, 1, 'Ann', 'ann@example.com', 'k'), (2, 0, 'Bob', 'bob@example.com', 'l');
INSERT INTO a.players VALUES (1, 1, 'ANN', 'ann@example.com', 'k', NULL), (2, 1, 'bob', 'bob@example.com', 'm', 1);
INSERT INTO b.players VALUES (1, 1, 'Bob', 'eve@example.com', 'n', NULL), (2, 0, 'ann', 'fay@example.com', 'o', 1);
INSERT INTO world.realms VALUES ('north');
INSERT INTO a.realms VALUES ('north'), ('south');
SELECT snowflake_migrate.declare_policy('world.players', 'of_tags', 'suffix', '_{source}');
-- values that an index, or a domain, does not take
CREATE FUNCTION world.code(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN IF $1 = 'south' THEN RAISE 'not there' USING ERRCODE = 'MY001'; END IF; RETURN $1; END $$;
CREATE UNIQUE INDEX of_codes ON world.realms (world.code(code));
-- nor what is in other columns, or looks like a reference
CREATE TABLE world.pets (id serial PRIMARY KEY, name text UNIQUE, tame boolean, player_id int UNIQUE);
CREATE TABLE a.pets (id int PRIMARY KEY, name text, tame smallint, player_id int);
INSERT INTO world.pets VALUES (1, 'Rex', true, 1);
INSERT INTO a.pets VALUES (1, 'Rex', 1, 1);
CREATE DOMAIN world.short AS text CHECK (length(VALUE) < 3);
CREATE TABLE world.coins (id serial PRIMARY KEY, code world.short UNIQUE);
CREATE TABLE a.coins (id int PRIMARY KEY, code text);
INSERT INTO a.coins VALUES (1, 'long');
SELECT relation, object, problem, count, example, advice FROM snowflake_migrate.check('{a,b}', 'world') WHERE severity = 'warning';
DELETE FROM snowflake_migrate.declared_policies;
DROP SCHEMA a, b, world CASCADE;

--
-- Conditions: on a source's rows they run none of its owner's code, and one that fails is told
--
CREATE SCHEMA a;
CREATE SCHEMA world;
CREATE TABLE world.tag (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), tag text, upper text, next bigint);
CREATE TABLE a.tag (id int PRIMARY KEY, next int);
INSERT INTO a.tag VALUES (1, 1);
CREATE FUNCTION a.as_text(a.tag) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'code of the source''s owner'; RETURN 'k'; END $$;
CREATE CAST (a.tag AS text) WITH FUNCTION a.as_text(a.tag) AS IMPLICIT;
-- a column that is called like its table is not the row, where the source lacks it
SELECT snowflake_migrate.declare_reference('world.tag', 'next', 'world.tag', 'tag = ''k''');
SELECT snowflake_migrate.declare_table('world.tag', 'copy', "only" => 'tag IS NOT NULL');
SELECT relation, object, problem FROM snowflake_migrate.check('{a}', 'world') WHERE severity = 'error';
SELECT snowflake_migrate.declare_table('world.tag', 'copy', "only" => 'tag.next = 1 AND "merge row" IS NULL');
SELECT snowflake_migrate.declare_table('world.tag', 'copy', "only" => 'tag.next = 1');
SELECT relation, object, problem FROM snowflake_migrate.check('{a}', 'world') WHERE severity = 'error';
-- nor is one that the source lacks a function of the row
ALTER TABLE a.tag ADD tag text DEFAULT 'k';
UPDATE snowflake_migrate.declared_references SET condition = 'tag.upper = ''K''';
SELECT snowflake_migrate.declare_table('world.tag', 'copy', "only" => 'tag.upper = ''K''');
SELECT relation, object, problem FROM snowflake_migrate.check('{a}', 'world') WHERE severity = 'error';
-- a value that the condition fails for
ALTER TABLE a.tag ADD upper text DEFAULT 'five';
UPDATE snowflake_migrate.declared_references SET condition = 'upper::int = 5';
SELECT snowflake_migrate.declare_table('world.tag', 'copy');
SELECT relation, object, problem FROM snowflake_migrate.check('{a}', 'world') WHERE severity = 'error';
DELETE FROM snowflake_migrate.declared_references;
SELECT snowflake_migrate.declare_table('world.tag', 'copy', "only" => 'upper::int = 5');
SELECT relation, object, problem FROM snowflake_migrate.check('{a}', 'world') WHERE severity = 'error';
-- nor the row, or a column that the target lacks: what becomes a text or a document, does by casts
ALTER TABLE world.tag DROP tag;
ALTER TABLE a.tag DROP tag;
CREATE TYPE a.planted AS ENUM ('x');
CREATE FUNCTION a.as_text(a.planted) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'code of the source''s owner'; RETURN 'k'; END $$;
CREATE FUNCTION a.as_json(a.planted) RETURNS json LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'code of the source''s owner'; RETURN '1'; END $$;
CREATE CAST (a.planted AS text) WITH FUNCTION a.as_text(a.planted) AS IMPLICIT;
CREATE CAST (a.planted AS json) WITH FUNCTION a.as_json(a.planted);
ALTER TABLE a.tag ADD tag a.planted DEFAULT 'x';
SELECT snowflake_migrate.declare_table('world.tag', 'copy', ignored_columns => '{tag}', "only" => 'to_jsonb(tag) ? ''upper''');
SELECT snowflake_migrate.declare_reference('world.tag', 'next', 'world.tag', 'tag::text <> ''''');
SELECT relation, object, problem FROM snowflake_migrate.check('{a}', 'world') WHERE severity = 'error';
DELETE FROM snowflake_migrate.declared_references;
-- a value of another type in a condition fails before a row is read; and rows come without system columns
ALTER TABLE a.tag DROP tag, DROP upper;
ALTER TABLE a.tag ADD upper int;
SELECT snowflake_migrate.declare_table('world.tag', 'copy', "only" => 'upper <> ''five''');
SELECT relation, object, problem FROM snowflake_migrate.check('{a}', 'world') WHERE severity = 'error';
SELECT snowflake_migrate.declare_table('world.tag', 'copy', "only" => 'ctid IS NOT NULL');
SELECT relation, object, problem FROM snowflake_migrate.check('{a}', 'world') WHERE severity = 'error';
-- a name that the check gives to a column of its own
ALTER TABLE a.tag ADD "snowflake conditions 1" int;
SELECT snowflake_migrate.declare_table('world.tag', 'copy');
SELECT relation, object, problem FROM snowflake_migrate.check('{a}', 'world') WHERE severity = 'error';
DELETE FROM snowflake_migrate.declared_tables;
DROP SCHEMA a, world CASCADE;
