-- Merges that went wrong in one way or another: each with what came of it.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\set VERBOSITY terse
CREATE FUNCTION forget() RETURNS void LANGUAGE sql AS $$
	DROP SCHEMA IF EXISTS t, a, b, o CASCADE; CREATE SCHEMA t; CREATE SCHEMA a; CREATE SCHEMA b; CREATE SCHEMA o;
	DELETE FROM snowflake_migrate.declared_tables; DELETE FROM snowflake_migrate.declared_references; DELETE FROM snowflake_migrate.declared_no_references; DELETE FROM snowflake_migrate.declared_policies; DELETE FROM snowflake_migrate.declared_created;
	UPDATE snowflake_migrate.runs SET state = 'rolled back' $$;
CREATE FUNCTION last() RETURNS bigint LANGUAGE sql AS 'SELECT max(run) FROM snowflake_migrate.runs';
CREATE SEQUENCE node START 20;
CREATE FUNCTION node() RETURNS bigint[] LANGUAGE sql AS $$ SELECT ARRAY[nextval('node')] $$;
CREATE FUNCTION two_nodes() RETURNS bigint[] LANGUAGE sql AS $$ SELECT ARRAY[nextval('node'), nextval('node')] $$;
CREATE FUNCTION errors(sources name[] DEFAULT '{a}') RETURNS TABLE (source name, relation text, object text, problem text, count bigint) LANGUAGE sql
	AS $$ SELECT source, relation, object, problem, count FROM snowflake_migrate.check(sources, 't') WHERE severity = 'error' ORDER BY 2, 1, 3, 4 $$;

-- a matched row's key is another row's key in the source
SELECT forget();
CREATE TABLE t.items (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text NOT NULL);
CREATE TABLE t.inv (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), item bigint REFERENCES t.items, note text);
CREATE TABLE a.items (id bigint PRIMARY KEY, name text NOT NULL);
CREATE TABLE a.inv (id bigint PRIMARY KEY, item bigint REFERENCES a.items, note text);
SELECT snowflake_nextval() AS i1, snowflake_nextval() AS i2, snowflake_nextval() AS i3 \gset
INSERT INTO t.items VALUES (:i1, 'sword'), (:i2, 'shield');
INSERT INTO a.items VALUES (:i1, 'shield'), (:i2, 'sword'), (:i3, 'helmet');
INSERT INTO a.inv VALUES (1, :i2, 'sword'), (2, :i1, 'shield'), (3, :i3, 'helmet');
SELECT snowflake_migrate.declare_table('t.items', 'match', '{name}');
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT note AS owned, i.name AS now_owns FROM t.inv AS v JOIN t.items AS i ON i.id = v.item ORDER BY 1;
-- the proof does not take the map's word for it
UPDATE t.items SET name = CASE name WHEN 'sword' THEN 'shield' ELSE 'sword' END WHERE name <> 'helmet';
SELECT relation, problem, count FROM snowflake_migrate.verify(last());

-- matched rows whose key is not renumbered, and differs
SELECT forget();
CREATE TABLE t.countries (code text PRIMARY KEY, iso3 text NOT NULL);
CREATE TABLE t.people (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text, country text REFERENCES t.countries);
CREATE TABLE a.countries (code text PRIMARY KEY, iso3 text NOT NULL);
CREATE TABLE a.people (id int PRIMARY KEY, name text, country text REFERENCES a.countries);
INSERT INTO t.countries VALUES ('A', 'AUT'), ('B', 'DEU');
INSERT INTO a.countries VALUES ('B', 'AUT'), ('A', 'DEU');
INSERT INTO a.people VALUES (1, 'a German', 'A');
SELECT snowflake_migrate.declare_table('t.countries', 'match', '{iso3}');
SELECT * FROM errors();

-- a composite foreign key through a table whose id is renumbered
SELECT forget();
CREATE TABLE t.tenants (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE t.orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), tenant_id bigint NOT NULL REFERENCES t.tenants, UNIQUE (tenant_id, id));
CREATE TABLE t.items (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), tenant_id bigint NOT NULL, order_id bigint NOT NULL,
	FOREIGN KEY (tenant_id, order_id) REFERENCES t.orders (tenant_id, id));
CREATE TABLE a.tenants (id int PRIMARY KEY, name text);
CREATE TABLE a.orders (id int PRIMARY KEY, tenant_id int NOT NULL);
CREATE TABLE a.items (id int PRIMARY KEY, tenant_id int NOT NULL, order_id int NOT NULL);
INSERT INTO a.tenants VALUES (1, 'x'); INSERT INTO a.orders VALUES (1, 1); INSERT INTO a.items VALUES (1, 1, 1);
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT n.name FROM t.items AS i JOIN t.orders AS o ON (o.tenant_id, o.id) = (i.tenant_id, i.order_id) JOIN t.tenants AS n ON n.id = i.tenant_id;

-- a key that is a reference, in a cycle with what it refers to
SELECT forget();
CREATE TABLE t.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text CONSTRAINT pn UNIQUE, profile bigint);
CREATE TABLE t.profiles (player_id bigint PRIMARY KEY REFERENCES t.players, bio text);
ALTER TABLE t.players ADD FOREIGN KEY (profile) REFERENCES t.profiles;
CREATE TABLE a.players (id int PRIMARY KEY, name text, profile int);
CREATE TABLE a.profiles (player_id int PRIMARY KEY, bio text);
INSERT INTO t.players VALUES (1, 'tp'); INSERT INTO a.players VALUES (1, 'tp', 1), (2, 'bp', 2); INSERT INTO a.profiles VALUES (1, 'a1'), (2, 'a2');
SELECT snowflake_migrate.declare_policy('t.players', 'pn', 'keep_target');
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT p.name, f.bio FROM t.players AS p JOIN t.profiles AS f ON f.player_id = p.id ORDER BY 1;

-- a guild whose leader is one of its own members, by a foreign key that has the guild's id
SELECT forget();
CREATE TABLE t.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE t.guilds (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text, leader_id bigint);
CREATE TABLE t.members (guild_id bigint NOT NULL REFERENCES t.guilds, player_id bigint NOT NULL REFERENCES t.players, PRIMARY KEY (guild_id, player_id));
ALTER TABLE t.guilds ADD FOREIGN KEY (id, leader_id) REFERENCES t.members (guild_id, player_id);
CREATE TABLE a.players (id int PRIMARY KEY, name text);
CREATE TABLE a.guilds (id int PRIMARY KEY, name text, leader_id int);
CREATE TABLE a.members (guild_id int, player_id int, PRIMARY KEY (guild_id, player_id));
INSERT INTO t.guilds VALUES (1, 'old', NULL);
INSERT INTO a.players VALUES (1, 'p'), (2, 'q'); INSERT INTO a.guilds VALUES (1, 'g', 2), (2, 'h', NULL); INSERT INTO a.members VALUES (1, 1), (1, 2), (2, 1);
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT g.name, p.name AS leader, (SELECT count(*) FROM t.members AS m WHERE m.guild_id = g.id) AS members FROM t.guilds AS g LEFT JOIN t.players AS p ON p.id = g.leader_id ORDER BY 1;

-- rows that no partition takes, CHECKs that the source lacks, exclusion constraints
SELECT forget();
CREATE TABLE t.chat (id bigint NOT NULL DEFAULT snowflake_nextval(), at timestamptz NOT NULL, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE t.chat_1 PARTITION OF t.chat FOR VALUES FROM ('2025-01-01') TO ('2025-02-01');
CREATE TABLE t.rooms (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), d int4range, level int CHECK (level <= 100), EXCLUDE USING gist (d WITH &&));
CREATE TABLE a.chat (id int NOT NULL PRIMARY KEY, at timestamptz NOT NULL);
CREATE TABLE a.rooms (id int PRIMARY KEY, d int4range, level int);
INSERT INTO a.chat VALUES (1, '2025-01-05'), (2, '2024-12-31');
INSERT INTO t.rooms VALUES (1, '[1,5]', 1); INSERT INTO a.rooms VALUES (1, '[5,6]', 1), (2, '[7,8]', 120);
SELECT * FROM errors();
-- of one that PostgreSQL looks at with a trigger, nothing would tell that rows of the sources clash
ALTER TABLE t.rooms DROP CONSTRAINT rooms_d_excl, ADD CONSTRAINT later EXCLUDE USING gist (d WITH &&) DEFERRABLE;
SELECT * FROM errors();

-- a row does not clash in one with the row whose place it takes, nor with one that gets another name
SELECT forget();
CREATE TABLE t.rooms (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text CONSTRAINT rooms_name UNIQUE, d int4range, EXCLUDE USING gist (d WITH &&));
CREATE TABLE t.halls (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text CONSTRAINT halls_name UNIQUE, d int4range, level int, EXCLUDE USING gist (d WITH &&) WHERE (name !~ 'old$'));
CREATE TABLE a.rooms (id int PRIMARY KEY, name text, d int4range); CREATE TABLE a.halls (id int PRIMARY KEY, name text, d int4range, level int);
INSERT INTO t.rooms VALUES (1, 'r', '[1,5]'), (2, 'other', '[20,29]'); INSERT INTO a.rooms VALUES (1, 'r', '[4,6]'), (2, 's', '[7,8]'), (3, 'clash', '[20,21]');
INSERT INTO t.halls VALUES (1, 'h', '[1,5]', 1), (2, 'i old', '[10,19]', 1), (3, 'i', '[30,39]', 1), (4, 'other', '[20,29]', 1);
INSERT INTO a.halls VALUES (1, 'h', '[4,6]', 2), (2, 'j', '[10,19]', 2), (3, 'clash', '[20,21]', 2);
SELECT snowflake_migrate.declare_policy('t.rooms', 'rooms_name', 'keep_source'), snowflake_migrate.declare_policy('t.halls', 'halls_name', 'suffix', ' old', precedence => 'level DESC');
SELECT * FROM errors();
UPDATE a.rooms SET d = '[9,9]' WHERE name = 'clash'; UPDATE a.halls SET d = '[9,9]' WHERE name = 'clash';
CALL snowflake_migrate.merge('{a}', 't', node(), 1) \g /dev/null
SELECT name, d FROM t.rooms ORDER BY name; SELECT name, d FROM t.halls ORDER BY name;

-- the place of a row is taken, and ranks are numbered anew
SELECT forget();
CREATE TABLE t.ranks (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text CONSTRAINT rn UNIQUE, rating int, rank int);
CREATE UNIQUE INDEX rr ON t.ranks (rank) WHERE rating > 0;
CREATE TABLE a.ranks (id int PRIMARY KEY, name text, rating int, rank int);
INSERT INTO t.ranks VALUES (1, 'A', 50, 1), (2, 'B', 10, 2), (3, 'old', -5, 7), (4, 'unranked', 40, NULL);
INSERT INTO a.ranks VALUES (1, 'B', 90, 1), (2, 'X', 60, 2), (3, 'aold', -3, 9), (4, 'aunranked', 45, NULL);
SELECT snowflake_migrate.declare_policy('t.ranks', 'rn', 'keep_source'), snowflake_migrate.declare_policy('t.ranks', 'rr', 'rerank', 'rating DESC');
CALL snowflake_migrate.merge('{a}', 't', node(), 1) \g /dev/null
SELECT name, rating, rank FROM t.ranks ORDER BY name;
CALL snowflake_migrate.rollback(last());
SELECT name, rating, rank FROM t.ranks ORDER BY name;

-- two rows for the place of one
SELECT forget();
CREATE TABLE t.p (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text CONSTRAINT pn UNIQUE, mail text CONSTRAINT pm UNIQUE, gold int);
CREATE TABLE a.p (id int PRIMARY KEY, name text, mail text, gold int);
INSERT INTO t.p VALUES (1, 'n', 'm', 0); INSERT INTO a.p VALUES (1, 'n', 'm1', 10), (2, 'n2', 'm', 20);
SELECT snowflake_migrate.declare_policy('t.p', 'pn', 'keep_source'), snowflake_migrate.declare_policy('t.p', 'pm', 'keep_source');
CALL snowflake_migrate.merge('{a}', 't', node());
CALL snowflake_migrate.merge('{a}', 't', node(), accept_warnings => true) \g /dev/null
SELECT name, mail, gold FROM t.p;
SELECT policy, constraint_name, old_key, former_row IS NOT NULL AS took_the_place FROM snowflake_migrate.records WHERE run = last() ORDER BY old_key;

-- the former row comes back as it was
SELECT forget();
CREATE TABLE t.p (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text CONSTRAINT pn UNIQUE, j jsonb NOT NULL, k json, arr int[]);
CREATE TABLE a.p (id int PRIMARY KEY, name text, j jsonb NOT NULL, k json, arr int[]);
INSERT INTO t.p VALUES (1, 'n', 'null', '{"b":1,  "a":2, "a":3}', '[0:1]={1,2}'); INSERT INTO a.p VALUES (1, 'n', '1', '1', '{1}');
SELECT snowflake_migrate.declare_policy('t.p', 'pn', 'keep_source');
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT * FROM t.p;
CALL snowflake_migrate.rollback(last());
SELECT * FROM t.p;

-- unless a newer row has what must be unique in it
CREATE TABLE b.p (id int PRIMARY KEY, name text, j jsonb NOT NULL);
INSERT INTO b.p VALUES (1, 'n', '2');
CREATE UNIQUE INDEX pj ON t.p ((j ->> 'mail'));
UPDATE t.p SET j = '{"mail": "m"}';
CALL snowflake_migrate.merge('{b}', 't', node()) \g /dev/null
INSERT INTO t.p VALUES (2, 'other', '{"mail": "m"}');
\set VERBOSITY sqlstate
CALL snowflake_migrate.rollback(last());
\set VERBOSITY terse
DELETE FROM t.p WHERE id = 2;
CALL snowflake_migrate.rollback(last());
SELECT name, j FROM t.p;

-- a row that takes the place of another and refers to a merged one; names with commas
SELECT forget();
CREATE TABLE t.g (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n text);
CREATE TABLE t.p (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text CONSTRAINT pn UNIQUE, "a, b" text, g bigint REFERENCES t.g);
CREATE TABLE a.g (id int PRIMARY KEY, n text);
CREATE TABLE a.p (id int PRIMARY KEY, name text, "a, b" text, g int);
INSERT INTO t.g VALUES (1, 'tg'); INSERT INTO t.p VALUES (1, 'n', 't', 1); INSERT INTO a.g VALUES (1, 'ag'); INSERT INTO a.p VALUES (1, 'n', 'a', 1);
SELECT snowflake_migrate.declare_policy('t.p', 'pn', 'keep_source');
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT p.name, p."a, b", g.n FROM t.p JOIN t.g ON g.id = p.g;
CALL snowflake_migrate.rollback(last());
SELECT p.name, p."a, b", g.n FROM t.p JOIN t.g ON g.id = p.g;

-- a tree that is matched level by level; what stands for a row that is kept by another constraint
SELECT forget();
CREATE TABLE t.categories (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), parent_id bigint REFERENCES t.categories, name text NOT NULL, UNIQUE NULLS NOT DISTINCT (parent_id, name));
CREATE TABLE a.categories (id serial PRIMARY KEY, parent_id int REFERENCES a.categories, name text NOT NULL);
INSERT INTO t.categories VALUES (1, NULL, 'root'), (2, 1, 'x'), (3, 2, 'deep');
INSERT INTO a.categories (parent_id, name) VALUES (NULL, 'zz'), (NULL, 'root'), (2, 'x'), (3, 'deep');
CREATE TABLE t.i (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text, code text CONSTRAINT ic UNIQUE);
CREATE TABLE a.i (id int PRIMARY KEY, name text, code text);
CREATE TABLE b.i (id int PRIMARY KEY, name text, code text);
INSERT INTO t.i VALUES (1, 'Y', 'c1'); INSERT INTO a.i VALUES (1, 'X', 'c1'); INSERT INTO b.i VALUES (1, 'X', 'c2');
SELECT snowflake_migrate.declare_table('t.categories', 'match', '{parent_id,name}'), snowflake_migrate.declare_table('t.i', 'match', '{name}', '{differences}'),
	snowflake_migrate.declare_policy('t.i', 'ic', 'keep_target');
CALL snowflake_migrate.merge('{a,b}', 't', two_nodes()) \g /dev/null
SELECT c.name, p.name AS parent FROM t.categories AS c LEFT JOIN t.categories AS p ON p.id = c.parent_id ORDER BY 1;
SELECT name, code FROM t.i;
SELECT source, action, new_key FROM snowflake_migrate.map WHERE run = last() AND relation = 't.i' ORDER BY 1;

-- a reference on a generated column, which follows what it is made of
SELECT forget();
CREATE TABLE t.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE t.items (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), kind text, holder bigint,
	player bigint GENERATED ALWAYS AS (CASE WHEN kind = 'player' THEN holder END) STORED REFERENCES t.players);
CREATE TABLE a.players (id int PRIMARY KEY, name text);
CREATE TABLE a.items (id int PRIMARY KEY, kind text, holder int, player int GENERATED ALWAYS AS (CASE WHEN kind = 'player' THEN holder END) STORED REFERENCES a.players);
INSERT INTO t.players VALUES (2, 'stranger'); INSERT INTO a.players VALUES (11, 'x'), (2, 'y'); INSERT INTO a.items VALUES (1, 'player', 2), (2, 'system', 0);
SELECT * FROM errors();
SELECT snowflake_migrate.declare_reference('t.items', 'holder', 't.players', 'kind = ''player''');
SELECT snowflake_migrate.declare_no_reference('t.items', 'holder') \g /dev/null
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT i.kind, p.name FROM t.items AS i LEFT JOIN t.players AS p ON p.id = i.player ORDER BY 1;

-- domains over integers
SELECT forget();
CREATE DOMAIN o.pid AS bigint; CREATE DOMAIN o.pref AS int;
CREATE TABLE t.players (id o.pid PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE t.accounts (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE t.x (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), account o.pref REFERENCES t.accounts, p o.pid REFERENCES t.players);
CREATE TABLE a.players (id int PRIMARY KEY, name text); CREATE TABLE a.accounts (id int PRIMARY KEY); CREATE TABLE a.x (id int PRIMARY KEY, account int, p int);
SELECT * FROM errors();

-- domains over domains hold what the last of them holds
SELECT forget();
CREATE DOMAIN o.positive AS bigint CHECK (VALUE > 0); CREATE DOMAIN o.pid AS o.positive; CREATE DOMAIN o.small AS int; CREATE DOMAIN o.pref AS o.small;
CREATE DOMAIN o.list AS bigint[]; CREATE DOMAIN o.pids AS o.list;
CREATE TABLE t.x (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text, friend o.pid REFERENCES t.x, others o.pids, foe o.pref REFERENCES t.x);
CREATE TABLE t.y (id o.pref PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE a.x (LIKE t.x); CREATE TABLE a.y (id int PRIMARY KEY);
INSERT INTO t.x VALUES (1, 'of t');
INSERT INTO a.x VALUES (1, 'a 1', NULL, '{2,1}'), (2, 'a 2', 1, '{1}');
SELECT snowflake_migrate.declare_reference('t.x', 'others', 't.x');
SELECT * FROM errors();
ALTER TABLE t.x DROP foe; ALTER TABLE a.x DROP foe; DROP TABLE t.y;
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT x.name, f.name AS friend, ARRAY(SELECT o.name FROM unnest(x.others) WITH ORDINALITY AS e (id, n) JOIN t.x AS o USING (id) ORDER BY e.n) AS others
	FROM t.x LEFT JOIN t.x AS f ON f.id = x.friend ORDER BY 1;

-- values that are too great for a domain over integers, or for an array of them
SELECT forget();
CREATE DOMAIN o.score AS int; CREATE DOMAIN o.big AS bigint;
CREATE TABLE t.x (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), score o.score, scores int[], few smallint[], fits o.score);
CREATE TABLE a.x (id int PRIMARY KEY, score bigint, scores bigint[], few int[], fits o.big);
INSERT INTO a.x VALUES (1, 2147483647, '{NULL,-2147483648}', '{{1,2},{3,32767}}', 1), (2, 2147483648, '{1,2147483648}', '{{1,2},{3,32768}}', 2);
SELECT * FROM errors();
UPDATE a.x SET (score, scores, few) = (1, '{1}', '{1}');
SELECT * FROM errors();
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT score, scores, few, fits FROM t.x ORDER BY fits;

-- rows of two sources that are the same, and are not
SELECT forget();
CREATE TABLE t.i (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text, price int);
CREATE TABLE a.i (id int PRIMARY KEY, name text, price int); CREATE TABLE b.i (id int PRIMARY KEY, name text, price int);
INSERT INTO a.i VALUES (1, 'sword', 10); INSERT INTO b.i VALUES (1, 'sword', 999);
SELECT snowflake_migrate.declare_table('t.i', 'match', '{name}');
SELECT * FROM errors('{a,b}');

-- ranks that a source does not have; a skipped row that another must refer to, in one table
SELECT forget();
CREATE TABLE t.r (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), rating int, rank int NOT NULL DEFAULT 0 CONSTRAINT rr UNIQUE CHECK (rank > 0));
CREATE TABLE a.r (id int PRIMARY KEY, rating int);
INSERT INTO t.r VALUES (1, 50, 1); INSERT INTO a.r VALUES (1, 99), (2, 10);
CREATE TABLE t.n (a bigint, b int, pa bigint, pb int, tag text CONSTRAINT tg UNIQUE, PRIMARY KEY (a, b), FOREIGN KEY (pa, pb) REFERENCES t.n (a, b));
CREATE TABLE a.n (a bigint, b int, pa bigint, pb int, tag text, PRIMARY KEY (a, b));
INSERT INTO t.n VALUES (1, 1, NULL, NULL, 'x'); INSERT INTO a.n VALUES (5, 1, NULL, NULL, 'x'), (5, 2, 5, 1, 'y'), (5, 3, 5, 2, 'z'), (6, 1, NULL, NULL, 'w');
SELECT snowflake_migrate.declare_policy('t.r', 'rr', 'rerank', 'rating DESC'), snowflake_migrate.declare_policy('t.n', 'tg', 'skip');
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT rating, rank FROM t.r ORDER BY rank;
SELECT a, b, tag FROM t.n ORDER BY 1, 2;

-- a suffix that the index does not see
SELECT forget();
CREATE TABLE t.p (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE UNIQUE INDEX pn ON t.p (left(name, 4));
CREATE TABLE a.p (id int PRIMARY KEY, name text);
INSERT INTO t.p VALUES (1, 'Tomas'); INSERT INTO a.p VALUES (1, 'Tomasz');
SELECT snowflake_migrate.declare_policy('t.p', 'pn', 'suffix');
SELECT * FROM errors();

-- columns that policies change, whose long names begin alike
SELECT forget();
CREATE TABLE t.p (id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
	"the display name of the player as it is shown in the lobby, one" text CONSTRAINT one UNIQUE,
	"the display name of the player as it is shown in the lobby, two" text CONSTRAINT two UNIQUE,
	"the pieces of gold that the player has, as the bank counts, one" int,
	"the pieces of gold that the player has, as the bank counts, two" int, login text CONSTRAINT logins UNIQUE);
CREATE TABLE a.p (LIKE t.p INCLUDING INDEXES);
INSERT INTO t.p VALUES (DEFAULT, 'a', 'b', 1, 10, 'ann'), (DEFAULT, 'd', 'e', 1, 10, 'bob'); INSERT INTO a.p VALUES (1, 'a', 'b', 2, 20, 'ann'), (2, 'd', 'e', 2, 20, 'eve');
SELECT snowflake_migrate.declare_policy('t.p', 'one', 'suffix', '.x'), snowflake_migrate.declare_policy('t.p', 'two', 'suffix', '.y'),
	snowflake_migrate.declare_policy('t.p', 'logins', 'keep_target',
		combine => '{"the pieces of gold that the player has, as the bank counts, one": "sum", "the pieces of gold that the player has, as the bank counts, two": "max"}');
SELECT * FROM errors();
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT "the display name of the player as it is shown in the lobby, one" AS one, "the display name of the player as it is shown in the lobby, two" AS two,
	"the pieces of gold that the player has, as the bank counts, one" AS gold, "the pieces of gold that the player has, as the bank counts, two" AS more_gold, login FROM t.p ORDER BY 1;
SELECT problem, count FROM snowflake_migrate.verify(last());
CALL snowflake_migrate.rollback(last());
SELECT count(*), sum("the pieces of gold that the player has, as the bank counts, two") FROM t.p;

-- a merge that another session goes on with has another way to write times, and another time zone
SELECT forget();
CREATE TABLE t.m (at timestamptz PRIMARY KEY, v int, since timestamptz);
CREATE TABLE a.m (at timestamptz PRIMARY KEY, v int, since timestamp);
INSERT INTO a.m SELECT '2025-01-01'::date + g, g, '2025-01-01'::date + g FROM generate_series(0, 364) AS g;
SET datestyle = 'SQL, DMY'; SET timezone = 'Asia/Tokyo';
SELECT node() AS nodes \gset
SELECT snowflake_migrate_internal.start('{a}', '{t}', :'nodes', 40, false, false, false, NULL, false) > 0 AS started;
SELECT last() AS run \gset
BEGIN; SELECT snowflake_migrate_internal.begin(:run, '{copying}'); SELECT snowflake_migrate_internal.step(:run); COMMIT;
RESET datestyle; RESET timezone;
CALL snowflake_migrate.merge('{a}', 't', :'nodes', 40) \g /dev/null
SELECT count(*), sum(v), count(DISTINCT m.since - o.since AT TIME ZONE 'UTC') FROM t.m AS m JOIN a.m AS o USING (at, v);
BEGIN; SELECT problem, count FROM snowflake_migrate.verify(last()); SHOW timezone; COMMIT;

-- skipped rows to which a text leads; keys that stay, to which a declaration leads
SELECT forget();
CREATE TABLE t.cards (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), code text NOT NULL CONSTRAINT cc UNIQUE, owner text);
CREATE TABLE t.uses (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), code text NOT NULL REFERENCES t.cards (code));
CREATE TABLE t.kinds (id int PRIMARY KEY, name text CONSTRAINT kn UNIQUE);
CREATE TABLE t.things (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), kind int);
CREATE TABLE a.cards (id int PRIMARY KEY, code text NOT NULL, owner text);
CREATE TABLE a.uses (id int PRIMARY KEY, code text);
CREATE TABLE a.kinds (id int PRIMARY KEY, name text);
CREATE TABLE a.things (id int PRIMARY KEY, kind int);
INSERT INTO t.cards VALUES (1, 'X', 'Tom'); INSERT INTO a.cards VALUES (1, 'X', 'Ann'); INSERT INTO a.uses VALUES (1, 'X');
INSERT INTO t.kinds VALUES (1, 'sword'), (2, 'shield'); INSERT INTO a.kinds VALUES (1, 'sword'), (7, 'shield'); INSERT INTO a.things VALUES (1, 7);
SELECT snowflake_migrate.declare_policy('t.cards', 'cc', 'skip'), snowflake_migrate.declare_table('t.kinds', 'same_id'), snowflake_migrate.declare_policy('t.kinds', 'kn', 'keep_target'),
	snowflake_migrate.declare_reference('t.things', 'kind', 't.kinds');
SELECT * FROM errors();

-- what is no whole number is no id; nor is an array with another shape a list of them, nor may keys of an object become one
SELECT forget();
CREATE TABLE t.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE t.log (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), actor text, n numeric);
CREATE TABLE a.players (id int PRIMARY KEY, name text);
CREATE TABLE a.log (id int PRIMARY KEY, actor text, n numeric);
INSERT INTO a.players VALUES (1, 'x'); INSERT INTO a.log VALUES (1, 'system', 1.4), (2, '1', 1.0), (3, '7', 7), (4, NULL, NULL);
SELECT snowflake_migrate.declare_reference('t.log', 'actor', 't.players', dangling => 'keep'), snowflake_migrate.declare_reference('t.log', 'n', 't.players', dangling => 'keep');
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT coalesce(p.name, l.actor) AS actor, coalesce(q.name, l.n::text) AS n FROM t.log AS l LEFT JOIN t.players AS p ON p.id::text = l.actor LEFT JOIN t.players AS q ON q.id = l.n ORDER BY l.id;
CREATE TABLE t.items (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE t.bags (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), grid bigint[], c jsonb);
CREATE TABLE b.items (id int PRIMARY KEY, name text);
CREATE TABLE b.bags (id int PRIMARY KEY, grid int[], c jsonb);
INSERT INTO t.items VALUES (1, 'sword'); INSERT INTO b.items VALUES (3, 'sword'), (4, 'sword');
INSERT INTO b.bags VALUES (1, '{{3,4},{4,3}}', '{}'), (2, '[0:1]={3,4}', '{}');
SELECT snowflake_migrate.declare_table('t.items', 'match', '{name}', '{duplicates}'), snowflake_migrate.declare_reference('t.bags', 'grid', 't.items'),
	snowflake_migrate.declare_reference('t.bags', 'c', 't.items', path => '$.keyvalue().key');
SELECT * FROM errors('{b}');
UPDATE b.bags SET grid = NULL, c = '{"3": 10, "4": 20}' WHERE id = 1;
SELECT * FROM errors('{b}');

-- ranks of a table that is empty in the target
SELECT forget();
CREATE TABLE t.ladder (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), rating int, place int NOT NULL CONSTRAINT lp UNIQUE);
CREATE TABLE a.ladder (id int PRIMARY KEY, rating int, place int NOT NULL);
INSERT INTO a.ladder VALUES (1, 10, 1), (2, 20, 2);
SELECT snowflake_migrate.declare_policy('t.ladder', 'lp', 'rerank', 'rating DESC');
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT rating, place FROM t.ladder ORDER BY place;
CALL snowflake_migrate.rollback(last());
SELECT count(*) FROM t.ladder;

-- a domain whose CHECK has the word VALUE in a text
SELECT forget();
CREATE DOMAIN o.tag AS text CHECK (VALUE !~ 'VALUE');
CREATE TABLE t.tags (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), tag o.tag CONSTRAINT tt UNIQUE);
CREATE TABLE a.tags (id int PRIMARY KEY, tag o.tag);
INSERT INTO t.tags VALUES (1, 'tag'); INSERT INTO a.tags VALUES (1, 'tag');
SELECT snowflake_migrate.declare_policy('t.tags', 'tt', 'suffix');
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT tag FROM t.tags ORDER BY tag;

-- ids of times to come, which this server, or another, would make again
SELECT forget();
CREATE TABLE t.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE a.heroes (id bigint PRIMARY KEY, name text);
INSERT INTO a.heroes SELECT snowflake_encode(now() + interval '1 hour', n, 0), 'of ' || n FROM unnest(ARRAY[(SELECT node_id FROM snowflake_stat), 400]) AS u (n);
SELECT severity, object, regexp_replace(problem, '[0-9]+', 'N') AS problem, count, snowflake_node(example::bigint) = 400 AS others, advice FROM snowflake_migrate.check('{a}', 't') WHERE severity <> 'info';
DELETE FROM a.heroes WHERE name <> 'of 400';
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT name FROM t.heroes;

-- domains over domains, of a text and of a number
SELECT forget();
CREATE DOMAIN o.word AS text CHECK (length(VALUE) <= 12); CREATE DOMAIN o.callsign AS o.word CHECK (VALUE <> '');
CREATE DOMAIN o.number AS int CHECK (VALUE > 0); CREATE DOMAIN o.slot AS o.number;
CREATE TABLE t.pilots (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), callsign o.callsign CONSTRAINT pc UNIQUE, slot o.slot CONSTRAINT ps UNIQUE);
CREATE TABLE a.pilots (id int PRIMARY KEY, callsign text, slot int);
INSERT INTO t.pilots VALUES (1, 'thunderbird', 1); INSERT INTO a.pilots VALUES (1, 'thunderbird', 1);
SELECT snowflake_migrate.declare_policy('t.pilots', 'pc', 'suffix', '.{source}'), snowflake_migrate.declare_policy('t.pilots', 'ps', 'next_free');
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT callsign, slot FROM t.pilots ORDER BY slot;

-- an element of what is no array
SELECT snowflake_migrate_internal.document('{"slot": 7}', '$.slot[0]', '{"7": 8}', false) AS zero,
	snowflake_migrate_internal.document('{"slot": 7}', '$.slot[1]', '{"7": 8}', false) AS one;

-- a key with a collation of its own
SELECT forget();
CREATE TABLE t.words (word text COLLATE "C" PRIMARY KEY, n int);
CREATE TABLE t.uses (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), word text COLLATE "C" REFERENCES t.words);
CREATE TABLE a.words (word varchar(5) PRIMARY KEY, n int);
CREATE TABLE a.uses (id int PRIMARY KEY, word varchar(5) REFERENCES a.words);
INSERT INTO t.words VALUES ('one', 1);
INSERT INTO a.words VALUES ('one', 1), ('two', 2); INSERT INTO a.uses VALUES (1, 'one'), (2, 'two');
SELECT snowflake_migrate.declare_table('t.words', 'match', '{word}');
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT word, n, u.id IS NOT NULL AS used FROM t.words LEFT JOIN t.uses AS u USING (word) ORDER BY word;
CALL snowflake_migrate.rollback(last());
SELECT * FROM t.words;
DELETE FROM snowflake_migrate.declared_tables WHERE relation = 't.words'::regclass;
TRUNCATE t.words CASCADE;
CALL snowflake_migrate.merge('{a}', 't', node(), 1) \g /dev/null
SELECT word, n, u.id IS NOT NULL AS used FROM t.words LEFT JOIN t.uses AS u USING (word) ORDER BY word;
CALL snowflake_migrate.rollback(last());
SELECT * FROM t.words;

-- a rollback looks for newer rows again, before it goes on and in each batch
SELECT forget();
CREATE TABLE t.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE t.mail (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), sender bigint REFERENCES t.players ON DELETE CASCADE, kind text);
CREATE TABLE a.players (id int PRIMARY KEY, name text);
CREATE TABLE a.mail (id int PRIMARY KEY, sender int, kind text);
INSERT INTO a.players SELECT g, 'p' || g FROM generate_series(1, 10) AS g; INSERT INTO a.mail VALUES (1, 1, 'player');
-- a condition may have the table's name
SELECT snowflake_migrate.declare_reference('t.mail', 'sender', 't.players', 'mail.kind = ''player''');
CALL snowflake_migrate.merge('{a}', 't', node(), 2) \g /dev/null
SELECT last() AS run \gset
SELECT snowflake_migrate_internal.rollback_start(:run, false);
BEGIN; SELECT snowflake_migrate_internal.begin(:run, '{"rolling back"}'); SELECT snowflake_migrate_internal.rollback_step(:run, false); COMMIT;
BEGIN; SELECT snowflake_migrate_internal.begin(:run, '{"rolling back"}'); SELECT snowflake_migrate_internal.rollback_step(:run, false); COMMIT;
INSERT INTO t.mail (sender, kind) SELECT max(id), 'new' FROM t.players;
\set VERBOSITY sqlstate
CALL snowflake_migrate.rollback(:run);
-- also when it comes in the middle
BEGIN; SELECT snowflake_migrate_internal.begin(:run, '{"rolling back"}'); SELECT snowflake_migrate_internal.uncopy(:run, 1, 1, false) FROM generate_series(1, 5); ROLLBACK;
\set VERBOSITY terse
DELETE FROM t.mail;
CALL snowflake_migrate.rollback(:run);
SELECT count(*) FROM t.players;

-- a key that is another table's, without a foreign key: it is not adopted, and stays with its row
SELECT forget();
CREATE TABLE t.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE t.wallets (player_id bigint PRIMARY KEY, gold int);
CREATE TABLE a.players (id int PRIMARY KEY, name text);
CREATE TABLE a.wallets (player_id int PRIMARY KEY, gold int);
INSERT INTO a.players VALUES (1, 'Managrim'), (2, 'Tilda');
INSERT INTO a.wallets VALUES (2, 20), (1, 10);
SELECT * FROM errors();
CALL snowflake_migrate.merge('{a}', 't', node());
-- as the advice says first
SELECT split_part(split_part(advice, E'\n', 1), ': ', 2) AS reference FROM snowflake_migrate.check('{a}', 't') WHERE relation = 't.wallets' \gexec
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT name, gold FROM t.players JOIN t.wallets ON player_id = id ORDER BY name;

SELECT forget();
-- a table without a key that has a unique index: its rows clash with the target's, and with each other
SELECT forget();
CREATE TABLE t.codes (code text, n int);
CREATE UNIQUE INDEX codes_code ON t.codes (lower(code)) WHERE n > 0;
CREATE TABLE a.codes (LIKE t.codes);
CREATE TABLE b.codes (LIKE t.codes);
INSERT INTO t.codes VALUES ('x', 1), ('y', 0);
INSERT INTO a.codes VALUES ('X', 1), ('Y', 2), ('z', 3), (NULL, 1), (NULL, 1);
INSERT INTO b.codes VALUES ('Z', 4), ('z', 0);
SELECT * FROM errors('{a,b}');
DELETE FROM a.codes WHERE code IN ('X', 'z');
SELECT * FROM errors('{a,b}');

-- a unique index, a CHECK, a NOT NULL and an exclusion constraint that one partition alone has
SELECT forget();
CREATE TABLE t.parts (id bigint DEFAULT snowflake_nextval(), kind int, name text, PRIMARY KEY (id, kind)) PARTITION BY LIST (kind);
CREATE TABLE t.parts_1 PARTITION OF t.parts FOR VALUES IN (1);
CREATE TABLE t.parts_2 PARTITION OF t.parts DEFAULT;
CREATE UNIQUE INDEX parts_1_name ON t.parts_1 (name);
ALTER TABLE t.parts_2 ADD CONSTRAINT no_bad CHECK (name <> 'bad');
CREATE TABLE t.parts_7 PARTITION OF t.parts (name NOT NULL) FOR VALUES IN (7);
CREATE TABLE t.parts_8 PARTITION OF t.parts FOR VALUES IN (8);
ALTER TABLE t.parts_8 ADD CONSTRAINT one_each EXCLUDE (lower(name) WITH =) WHERE (name <> 'any');
INSERT INTO t.parts (kind, name) VALUES (1, 'x'), (2, 'x'), (8, 'X'), (8, 'any');
CREATE TABLE a.parts (id bigint, kind int, name text, PRIMARY KEY (id, kind));
INSERT INTO a.parts VALUES (1, 1, 'x'), (2, 2, 'x'), (3, 2, 'bad'), (4, 1, 'bad'), (5, 3, 'x'), (6, 1, NULL), (7, 7, NULL), (8, 7, 'x'),
	(9, 8, 'x'), (10, 8, 'any'), (11, 8, NULL), (12, 8, 'y');
SELECT * FROM errors();
DELETE FROM a.parts WHERE id IN (1, 3, 7, 9);
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT state FROM snowflake_migrate.runs WHERE run = last();

-- foreign keys that say that all is there, and it is not: triggers were off
SELECT forget();
CREATE TABLE t.p (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE t.c (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), p bigint REFERENCES t.p, q bigint NOT NULL REFERENCES t.p);
CREATE TABLE a.p (id bigint PRIMARY KEY);
CREATE TABLE a.c (id bigint PRIMARY KEY, p bigint REFERENCES a.p, q bigint REFERENCES a.p);
INSERT INTO a.p VALUES (1);
SET session_replication_role = replica;
INSERT INTO a.c VALUES (1, 1, 1), (2, 77, 1), (3, 1, 78);
WITH p AS (INSERT INTO t.p DEFAULT VALUES RETURNING id) INSERT INTO t.c (p, q) SELECT id, 79 FROM p;
RESET session_replication_role;
SELECT * FROM errors();
DELETE FROM a.c WHERE id > 1;
CALL snowflake_migrate.merge('{a}', 't', node());
DELETE FROM t.c;
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT state FROM snowflake_migrate.runs WHERE run = last();

-- slots from 0: the target's stay as they are, others get what is free; what may point at a slot is asked about
SELECT forget();
CREATE TABLE t.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE, active_slot int);
CREATE TABLE t.bags (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), hero bigint NOT NULL REFERENCES t.heroes, slot smallint, item text, from_slot int,
	UNIQUE (hero, slot), CHECK (slot < 6));
CREATE TABLE t.plots (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), number int NOT NULL, item text, CONSTRAINT plots_number UNIQUE (number));
CREATE TABLE a.heroes (id int PRIMARY KEY, name text, active_slot int);
CREATE TABLE a.bags (id int PRIMARY KEY, hero int REFERENCES a.heroes, slot int, item text);
CREATE TABLE a.plots (id int PRIMARY KEY, number int, item text);
CREATE TABLE b.heroes (LIKE a.heroes INCLUDING ALL);
CREATE TABLE b.bags (LIKE a.bags INCLUDING ALL);
CREATE TABLE b.plots (LIKE a.plots INCLUDING ALL);
INSERT INTO t.heroes (name, active_slot) VALUES ('Ada', 0), ('Ida', NULL);
INSERT INTO t.bags (hero, slot, item) SELECT id, s, 'target ' || s FROM t.heroes, unnest('{0,2}'::int[]) AS s WHERE name = 'Ada' OR s = 2;
INSERT INTO t.plots (number, item) VALUES (1, 'target 1'), (2, 'target 2'), (4, 'target 4');
INSERT INTO a.heroes VALUES (1, 'Ada', 0), (2, 'Eve', 0);
INSERT INTO a.bags VALUES (1, 1, 0, 'a 0'), (2, 1, 1, 'a 1'), (3, 2, 0, 'a 0'), (4, 1, NULL, 'a none');
INSERT INTO a.plots VALUES (1, 1, 'a 1'), (2, 3, 'a 3');
INSERT INTO b.heroes VALUES (1, 'Ada', 0), (2, 'Ida', NULL);
INSERT INTO b.bags VALUES (1, 1, 0, 'b 0'), (2, 1, 1, 'b 1'), (3, 2, 2, 'b 2');
INSERT INTO b.plots VALUES (1, 1, 'b 1'), (2, 7, 'b 7');
SELECT snowflake_migrate.declare_table('t.heroes', 'match', '{name}', '{differences}');
SELECT snowflake_migrate.declare_policy('t.bags', 'bags_hero_slot_key', 'next_free', '1');
SELECT snowflake_migrate.declare_policy('t.bags', 'bags_hero_slot_key', 'next_free');
SELECT snowflake_migrate.declare_policy('t.plots', 'plots_number', 'next_free');
SELECT * FROM errors('{a,b}');
CALL snowflake_migrate.merge('{a,b}', 't', two_nodes()) \g /dev/null
SELECT relation, object, problem FROM snowflake_migrate.check('{a,b}', 't') WHERE problem ~ 'may refer to column' ORDER BY 1;
SELECT snowflake_migrate.declare_no_reference('t.heroes', 'active_slot'), snowflake_migrate.declare_no_reference('t.bags', 'from_slot');
CALL snowflake_migrate.merge('{a,b}', 't', two_nodes()) \g /dev/null
SELECT h.name, g.slot, g.item FROM t.bags AS g JOIN t.heroes AS h ON h.id = g.hero ORDER BY h.name, g.slot, g.item;
SELECT number, item FROM t.plots ORDER BY number;
SELECT source, relation, policy, column_name, old_value, new_value FROM snowflake_migrate.records WHERE run = last() ORDER BY 1, 2, 5, 6;
CALL snowflake_migrate.rollback(last());
SELECT slot, item FROM t.bags ORDER BY slot;
-- one slot too many: known before
INSERT INTO a.bags VALUES (5, 1, 3, 'a 3'), (6, 1, 4, 'a 4');
SELECT * FROM errors('{a,b}');

-- ids of the target that lie ahead of the clock, as those of another layout may
SELECT forget();
CREATE TABLE t.p (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE a.p (id int PRIMARY KEY, name text);
INSERT INTO t.p VALUES (1, 'first'), (4600000000000000000, 'ahead');
INSERT INTO a.p VALUES (1, 'of a');
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT * FROM snowflake_migrate.verify(last());
-- before the merge is done, one of them that is gone is missed
UPDATE snowflake_migrate.runs SET state = 'verifying' WHERE run = last();
BEGIN;
DELETE FROM t.p WHERE name = 'ahead';
SELECT * FROM snowflake_migrate.verify(last());
ROLLBACK;
-- one that came since is counted, and none is named, as the newest is not the one
BEGIN;
INSERT INTO t.p (name) VALUES ('late');
SELECT relation, problem, count, example FROM snowflake_migrate.verify(last());
ROLLBACK;
-- a double under a newer id is told from it
INSERT INTO t.p (name) VALUES ('of a');
SELECT relation, problem, count FROM snowflake_migrate.verify(last());

-- Rows with the same snowflake id that a policy takes for the same row: an error of a former pass does not stay.
SELECT forget();
CREATE TABLE t.accounts (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), login text NOT NULL UNIQUE);
CREATE TABLE a.accounts (id bigint PRIMARY KEY, login text NOT NULL UNIQUE);
INSERT INTO t.accounts VALUES (4600000000000000001, 'ann');
INSERT INTO a.accounts VALUES (4600000000000000001, 'ann'), (7, 'bob');
SELECT snowflake_migrate.declare_policy('t.accounts', 'accounts_login_key', 'keep_target');
SELECT * FROM errors();
-- where it is another row, it is still one
UPDATE a.accounts SET login = 'eve' WHERE login = 'ann';
SELECT * FROM errors();

-- A foreign key that a partition has for itself is about the rows that get there.
SELECT forget();
CREATE TABLE t.gods (name text PRIMARY KEY);
CREATE TABLE t.vows (id bigint DEFAULT snowflake_nextval(), kind text, god text, PRIMARY KEY (id, kind)) PARTITION BY LIST (kind);
CREATE TABLE t.vows_given PARTITION OF t.vows (FOREIGN KEY (god) REFERENCES t.gods) FOR VALUES IN ('given');
CREATE TABLE t.vows_broken PARTITION OF t.vows FOR VALUES IN ('broken');
CREATE TABLE a.vows (id bigint, kind text, god text, PRIMARY KEY (id, kind));
INSERT INTO t.gods VALUES ('Thor');
INSERT INTO a.vows VALUES (1, 'given', 'Thor'), (2, 'given', 'Loki'), (3, 'broken', 'Loki');
SELECT * FROM errors();
-- and so is one that leads to a partition
CREATE TABLE t.cities (land text, name text, PRIMARY KEY (land, name)) PARTITION BY LIST (land);
CREATE TABLE t.cities_here PARTITION OF t.cities (UNIQUE (name)) FOR VALUES IN ('here');
CREATE TABLE t.cities_there PARTITION OF t.cities FOR VALUES IN ('there');
CREATE TABLE t.houses (no bigint PRIMARY KEY DEFAULT snowflake_nextval(), city text REFERENCES t.cities_here (name));
CREATE TABLE a.cities (land text, name text, PRIMARY KEY (land, name)); CREATE TABLE a.houses (no int PRIMARY KEY, city text);
DELETE FROM a.vows WHERE id = 2; INSERT INTO a.cities VALUES ('here', 'Rome'), ('there', 'Troy'); INSERT INTO a.houses VALUES (1, 'Rome'), (2, 'Troy');
SELECT * FROM errors();
DELETE FROM a.houses WHERE no = 2;
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT * FROM snowflake_migrate.verify(last());

-- Sequences of columns of all kinds of numbers are set past the merged values, as the check says; of others, it says so.
SELECT forget();
CREATE DOMAIN t.small AS int CHECK (value < 1000);
CREATE SEQUENCE t.ticket; CREATE SEQUENCE t.depth INCREMENT -1; CREATE SEQUENCE t.code; CREATE SEQUENCE t.short MAXVALUE 50; CREATE SEQUENCE t.least MINVALUE -9223372036854775808;
CREATE TABLE t.tickets (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), no numeric DEFAULT nextval('t.ticket'), depth float8 DEFAULT nextval('t.depth'),
	code text DEFAULT 'x' || nextval('t.code'), short numeric(3, 1) DEFAULT nextval('t.short'), small t.small DEFAULT 1,
	least bigint DEFAULT nextval('t.least'));
CREATE SEQUENCE t.small_no OWNED BY t.tickets.small;
CREATE TABLE a.tickets (id int PRIMARY KEY, no numeric, depth float8, code text, short numeric(3, 1), small int, least bigint);
INSERT INTO a.tickets SELECT i, i + 0.5, -i - 0.5, 'x' || i, i, i, i FROM generate_series(1, 70) AS i;
INSERT INTO a.tickets VALUES (100, 'NaN', '-Infinity', 'x', 50.5, 70), (101, NULL, NULL, NULL, NULL, NULL);
SELECT severity, object, problem, advice FROM snowflake_migrate.check('{a}', 't') WHERE problem ~ 'sequence' ORDER BY 2;
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
SELECT object, problem, example FROM snowflake_migrate.report WHERE run = last() AND problem ~ 'merged values' ORDER BY 1;
SELECT last_value FROM t.ticket; SELECT last_value FROM t.depth; SELECT last_value, is_called FROM t.code; SELECT last_value FROM t.short; SELECT last_value FROM t.small_no; SELECT last_value FROM t.least;

-- Ranks of a target in use come after its greatest until they are numbered anew: there must be room.
SELECT forget();
CREATE TABLE t.ladder (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), place smallint, rating int, CONSTRAINT lp UNIQUE (place));
CREATE TABLE a.ladder (id int PRIMARY KEY, place int, rating int);
INSERT INTO t.ladder (place, rating) VALUES (32766, 15);
INSERT INTO a.ladder VALUES (1, 1, 10), (2, 2, 20);
SELECT snowflake_migrate.declare_policy('t.ladder', 'lp', 'rerank', 'rating DESC');
\set VERBOSITY default
CALL snowflake_migrate.merge('{a}', 't', node(), target_in_use => true);
\set VERBOSITY terse
UPDATE t.ladder SET place = 32765;
CALL snowflake_migrate.merge('{a}', 't', node(), target_in_use => true) \g /dev/null
SELECT place, rating FROM t.ladder ORDER BY 1;

-- The proof says which rows it is about.
SELECT forget();
CREATE TABLE t.p (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text, rank int);
CREATE TABLE t.q (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), p bigint REFERENCES t.p);
CREATE TABLE t.r (x int, y text, n int, PRIMARY KEY (x, y));
CREATE TABLE a.p (id int PRIMARY KEY, name text, rank int);
CREATE TABLE a.q (id int PRIMARY KEY, p int REFERENCES a.p);
CREATE TABLE a.r (x int, y text, n int, PRIMARY KEY (x, y));
INSERT INTO a.p SELECT i, 'of ' || i, i FROM generate_series(1, 5) AS i;
INSERT INTO a.q VALUES (1, 5);
INSERT INTO a.r VALUES (1, 'one', 1), (2, 'two', 2);
CALL snowflake_migrate.merge('{a}', 't', node()) \g /dev/null
UPDATE t.p SET name = 'other', rank = 0 WHERE rank IN (1, 2);
SET session_replication_role = replica;
DELETE FROM t.p WHERE rank = 5;
RESET session_replication_role;
INSERT INTO a.p VALUES (10, 'of 10', 10);
DELETE FROM a.p WHERE id = 3;
INSERT INTO a.r VALUES (3, 'three', 3);
DELETE FROM a.r WHERE x = 1;
SELECT relation, problem, count, regexp_replace(example, E'\\d{15,}', '<id>', 'g') AS example FROM snowflake_migrate.verify(last()) ORDER BY 1, 2;
-- rows of the target that refer to nothing, before a merge
SELECT problem, count, regexp_replace(example, E'\\d{15,}', '<id>') AS example FROM snowflake_migrate.check('{a}', 't') WHERE problem ~ '^in the target';

SELECT forget();
DROP SCHEMA t, a, b, o;
DROP FUNCTION forget, last, node, two_nodes, errors; DROP SEQUENCE node;

-- A run that is none.
CALL snowflake_migrate.rollback(NULL);
