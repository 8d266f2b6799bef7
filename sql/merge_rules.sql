-- Rules of a merge: which rows come at all.  The examples are in doc/merging.md.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\set VERBOSITY terse

CREATE SCHEMA ruled; CREATE SCHEMA ra; CREATE SCHEMA rb;
CREATE TABLE ruled.kinds (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), code text UNIQUE);
CREATE TABLE ruled.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE, played date, mentor_id bigint REFERENCES ruled.players,
	boss_id bigint, "odd {map} # @ % 'x" int);
CREATE TABLE ruled.items (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text, owner_id bigint NOT NULL REFERENCES ruled.players, kind_id bigint REFERENCES ruled.kinds);
CREATE TABLE ruled.parts (item_id bigint NOT NULL REFERENCES ruled.items, no int, PRIMARY KEY (item_id, no));
CREATE TABLE ruled.scars (item_id bigint, no int, depth int NOT NULL, PRIMARY KEY (item_id, no, depth), FOREIGN KEY (item_id, no) REFERENCES ruled.parts);
CREATE TABLE ruled.mail (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), body text, from_id bigint, to_id bigint, cc_id bigint, about_id bigint, readers bigint[]);
CREATE TABLE ruled.log (player_id bigint REFERENCES ruled.players, body text);
DO $$
DECLARE s text;
BEGIN
	FOREACH s IN ARRAY '{ra,rb}'::text[] LOOP
		EXECUTE format('CREATE TABLE %1$s.kinds (id serial PRIMARY KEY, code text);
			CREATE TABLE %1$s.players (id serial PRIMARY KEY, name text, played date, mentor_id int, boss_id int, "odd {map} # @ %% ''x" int);
			CREATE TABLE %1$s.items (id serial PRIMARY KEY, name text, owner_id int NOT NULL, kind_id int);
			CREATE TABLE %1$s.parts (item_id int, no int, PRIMARY KEY (item_id, no));
			CREATE TABLE %1$s.scars (item_id int, no int, depth int, PRIMARY KEY (item_id, no, depth));
			CREATE TABLE %1$s.mail (id serial PRIMARY KEY, body text, from_id int, to_id int, cc_id int, about_id int, readers int[]);
			CREATE TABLE %1$s.log (player_id int, body text)', s);
	END LOOP;
END
$$;
INSERT INTO ruled.kinds VALUES (1, 'sword');
INSERT INTO ruled.players VALUES (1, 'ann', '2026-01-01', NULL, NULL, 1);
INSERT INTO ra.kinds VALUES (1, 'sword'), (2, 'rusty'), (3, 'bow');
-- dan last played long ago; eve nobody knows when; ann's name is in the target
INSERT INTO ra.players VALUES (1, 'bob', '2026-01-02', NULL, 1, 1), (2, 'cid', '2026-01-03', 3, 3, 1), (3, 'dan', '2020-01-01', 1, 1, 1), (4, 'eve', NULL, 99, NULL, 1),
	(5, 'fay', '2026-01-01', 3, 2, 1), (6, 'gus', '2026-01-01', 5, 1, 0);
INSERT INTO ra.items VALUES (1, 'of bob', 1, 1), (2, 'of dan', 3, 1), (3, 'of cid', 2, 2), (4, 'of dan, of nobody''s kind', 3, 77);
INSERT INTO ra.parts VALUES (1, 1), (2, 1), (3, 1), (3, 2);
INSERT INTO ra.scars VALUES (1, 1, 5), (2, 1, 5), (3, 2, 1);
INSERT INTO ra.mail VALUES (1, 'from dan', 3, 1, 1, 2, '{1,3,2}'), (2, 'to dan', 1, 3, 1, 1, NULL), (3, 'cc dan', 1, 2, 3, 3, '{3}'), (4, 'about dan''s item', 1, 2, 1, 2, '{}');
INSERT INTO ra.log VALUES (1, 'bob'), (3, 'dan'), (NULL, 'nobody');
INSERT INTO rb.players VALUES (1, 'hal', '2019-01-01', 2, NULL, 1), (2, 'ida', '2026-02-02', 1, NULL, 1);
SELECT snowflake_migrate.declare_table('ruled.kinds', 'match', '{code}', "only" => $$code <> 'rusty'$$);
SELECT snowflake_migrate.declare_table('ruled.players', 'copy', "only" => $$played > '2024-01-01' AND "odd {map} # @ % 'x" > 0 AND '{"source"} {table} # %s' IS NOT NULL$$);
SELECT snowflake_migrate.declare_reference('ruled.players', 'boss_id', 'ruled.players', dangling => 'skip');
SELECT snowflake_migrate.declare_reference('ruled.mail', 'from_id', 'ruled.players');
SELECT snowflake_migrate.declare_reference('ruled.mail', 'to_id', 'ruled.players', dangling => 'null');
SELECT snowflake_migrate.declare_reference('ruled.mail', 'cc_id', 'ruled.players', dangling => 'keep');
SELECT snowflake_migrate.declare_reference('ruled.mail', 'about_id', 'ruled.items', dangling => 'null');
SELECT snowflake_migrate.declare_reference('ruled.mail', 'readers', 'ruled.players', dangling => 'null');
SELECT relation, condition, declared_by = current_user AS own FROM snowflake_migrate.declared_tables ORDER BY 1;
CREATE TABLE before AS SELECT ARRAY(SELECT p::text FROM ruled.players AS p UNION ALL SELECT k::text FROM ruled.kinds AS k ORDER BY 1) AS rows;

-- cid must refer to dan by boss_id, fay to cid: they stay behind with him; gus for his oddity; the items of each, and their parts
SELECT severity, source, relation, object, problem, count FROM snowflake_migrate.check('{ra,rb}', 'ruled') WHERE problem NOT LIKE '%renumbered' ORDER BY relation, source, object, problem;
-- what the target has already stays, whatever the condition says of it
CALL snowflake_migrate.merge('{ra,rb}', 'ruled', '{690,691}', batch_size => 2) \g /dev/null
SELECT max(run) AS run FROM snowflake_migrate.runs \gset
SELECT relation, source, old_key, action FROM snowflake_migrate.map WHERE run = :run ORDER BY relation, source, old_key;
SELECT p.name, m.name AS mentor, b.name AS boss FROM ruled.players AS p LEFT JOIN ruled.players AS m ON m.id = p.mentor_id LEFT JOIN ruled.players AS b ON b.id = p.boss_id ORDER BY 1;
SELECT i.name, p.name AS owner, k.code FROM ruled.items AS i JOIN ruled.players AS p ON p.id = i.owner_id LEFT JOIN ruled.kinds AS k ON k.id = i.kind_id ORDER BY 1;
SELECT i.name, no, (SELECT count(*) FROM ruled.scars AS s WHERE s.item_id = p.item_id AND s.no = p.no) AS scars FROM ruled.parts AS p JOIN ruled.items AS i ON i.id = p.item_id ORDER BY 1, 2;
SELECT body, f.name AS "from", t.name AS "to", c.name AS cc, i.name AS about, ARRAY(SELECT r.name FROM ruled.players AS r WHERE r.id = ANY (readers) ORDER BY 1) AS readers
FROM ruled.mail AS m LEFT JOIN ruled.players AS f ON f.id = from_id LEFT JOIN ruled.players AS t ON t.id = to_id LEFT JOIN ruled.players AS c ON c.id = cc_id LEFT JOIN ruled.items AS i ON i.id = about_id ORDER BY 1;
SELECT p.name, l.body FROM ruled.log AS l LEFT JOIN ruled.players AS p ON p.id = l.player_id ORDER BY 2;
SELECT * FROM snowflake_migrate.verify(:run);
-- the map decides: what the condition would say now is not asked, and a row that comes later is not taken for one that stays behind
UPDATE ra.players SET played = '2026-06-06' WHERE name = 'dan';
SELECT * FROM snowflake_migrate.verify(:run);
INSERT INTO ra.players VALUES (7, 'new', '2020-01-01', NULL, NULL, 1);
SELECT * FROM snowflake_migrate.verify(:run);
DELETE FROM ra.players WHERE id = 7;
CALL snowflake_migrate.rollback(:run, force => true);
SELECT rows = ARRAY(SELECT p::text FROM ruled.players AS p UNION ALL SELECT k::text FROM ruled.kinds AS k ORDER BY 1) AS as_before, (SELECT count(*) FROM ruled.items) AS items FROM before;

-- a condition that each look would answer otherwise decides once
CREATE SEQUENCE tosses;
SELECT snowflake_migrate.declare_table('ruled.players', 'copy', "only" => $$nextval('public.tosses') % 2 = 0$$);
DELETE FROM snowflake_migrate.declared_references WHERE column_name = 'from_id'; SELECT snowflake_migrate.declare_reference('ruled.mail', 'from_id', 'ruled.players', dangling => 'null');
CALL snowflake_migrate.merge('{rb}', 'ruled', '{692}') \g /dev/null
SELECT max(run) AS run FROM snowflake_migrate.runs \gset
SELECT action, count(*) FROM snowflake_migrate.map WHERE run = :run GROUP BY 1 ORDER BY 1;
SELECT * FROM snowflake_migrate.verify(:run);
SELECT last_value FROM tosses;
CALL snowflake_migrate.rollback(:run);
-- time is asked once, too
SELECT snowflake_migrate.declare_table('ruled.players', 'copy', "only" => 'played > now() - interval ''200 years''');
SELECT problem, count FROM snowflake_migrate.check('{ra,rb}', 'ruled') WHERE object = 'only';

-- a must that nobody can meet: a table without a key, a key that is not renumbered
DELETE FROM ruled.log; ALTER TABLE ruled.log ALTER player_id SET NOT NULL;
DELETE FROM ra.log WHERE player_id IS NULL; UPDATE ra.players SET mentor_id = NULL WHERE name = 'eve'; UPDATE ra.items SET kind_id = NULL WHERE kind_id = 77;
SELECT snowflake_migrate.declare_table('ruled.players', 'copy', "only" => 'name <> ''dan''');
SELECT relation, object, problem, count, advice FROM snowflake_migrate.check('{ra}', 'ruled') WHERE severity = 'error' ORDER BY 1, 2;
SELECT snowflake_migrate.declare_table('ruled.log', 'copy', "only" => 'body <> ''dan''');
SELECT relation, object, problem, count, advice FROM snowflake_migrate.check('{ra}', 'ruled') WHERE severity = 'error' ORDER BY 1, 2;
DROP TABLE ruled.log;
SELECT snowflake_migrate.declare_table('ruled.kinds', 'same_id', "only" => 'id <> 2');
SELECT snowflake_migrate.declare_reference('ruled.mail', 'about_id', 'ruled.kinds', dangling => 'null');
SELECT relation, object, problem, count, advice FROM snowflake_migrate.check('{ra}', 'ruled') WHERE severity = 'error' ORDER BY 1, 2;
-- what a source does not have can't be asked
ALTER TABLE ra.players DROP COLUMN played;
SELECT snowflake_migrate.declare_table('ruled.players', 'copy', "only" => 'played IS NOT NULL');
SELECT source, relation, object, problem FROM snowflake_migrate.check('{ra,rb}', 'ruled') WHERE severity = 'error' AND object = 'only';

-- bad conditions
SELECT snowflake_migrate.declare_table('ruled.players', 'copy', "only" => 'last_login > now()');
SELECT snowflake_migrate.declare_table('ruled.players', 'copy', "only" => 'name');
SELECT snowflake_migrate.declare_table('ruled.players', 'copy', "only" => '');
SELECT snowflake_migrate.declare_table('ruled.players', 'copy', "only" => 'count(*) > 1');
SELECT snowflake_migrate.declare_table('ruled.players', 'copy', "only" => 'row_number() OVER () > 1');
SELECT snowflake_migrate.declare_table('ruled.players', 'copy', "only" => 'generate_series(1, 2) > 1');
SELECT snowflake_migrate.declare_table('ruled.players', 'copy', "only" => 'true) OR (true');
SELECT snowflake_migrate.declare_table('ruled.players', 'copy', "only" => 'true, true');
SELECT snowflake_migrate.declare_table('ruled.players', 'copy', "only" => 'true -- all');
SELECT snowflake_migrate.declare_table('ruled.players', 'ignore', "only" => 'true');
SELECT condition FROM snowflake_migrate.declared_tables WHERE relation = 'ruled.players'::regclass;
-- nobody else's
CREATE ROLE regress_ruler;
GRANT USAGE ON SCHEMA ruled, ra, rb TO regress_ruler; GRANT ALL ON ALL TABLES IN SCHEMA ruled, ra, rb TO regress_ruler;
SELECT snowflake_migrate.grant_to('regress_ruler');
SET ROLE regress_ruler;
SELECT snowflake_migrate.declare_table('ruled.players', 'copy', "only" => 'name <> ''dan''');
RESET ROLE;
CALL snowflake_migrate.merge('{ra,rb}', 'ruled', '{693,694}');

DROP SCHEMA ruled, ra, rb CASCADE;
DROP OWNED BY regress_ruler; DROP ROLE regress_ruler;
DROP TABLE before; DROP SEQUENCE tosses;
DELETE FROM snowflake_migrate.declared_tables; DELETE FROM snowflake_migrate.declared_references;
