-- Rules of a merge: which rows come, who keeps a name, what rows that become one have.  The examples are in doc/merging.md.
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

-- who ranks first keeps the name, whichever side it is on
CREATE SCHEMA ruled; CREATE SCHEMA ra; CREATE SCHEMA rb;
CREATE TABLE ruled.accounts (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), mark text, name varchar(9) CHECK (name !~ ' '), email text, played date, born date,
	plain text GENERATED ALWAYS AS (lower(name)) STORED, "odd {map} # @ % 'x" int);
CREATE UNIQUE INDEX accounts_plain ON ruled.accounts (lower(name)); CREATE UNIQUE INDEX accounts_stored ON ruled.accounts (plain);
CREATE UNIQUE INDEX accounts_email ON ruled.accounts (email);
CREATE TABLE ruled.items (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text, owner_id bigint NOT NULL REFERENCES ruled.accounts, UNIQUE (owner_id, name));
CREATE TABLE ruled.seats (no int UNIQUE, holder text, since date, id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE ruled.titles (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), title text UNIQUE, holder text, since date);
DO $$
DECLARE s text;
BEGIN
	FOREACH s IN ARRAY '{ra,rb}'::text[] LOOP
		EXECUTE format('CREATE TABLE %1$s.accounts (id serial PRIMARY KEY, mark text, name text, email text, played date, born date, "odd {map} # @ %% ''x" int);
			CREATE TABLE %1$s.items (id serial PRIMARY KEY, name text, owner_id int NOT NULL);
			CREATE TABLE %1$s.seats (no int, holder text, since date, id serial PRIMARY KEY);
			CREATE TABLE %1$s.titles (id serial PRIMARY KEY, title text, holder text, since date)', s);
	END LOOP;
END
$$;
INSERT INTO ruled.accounts (id, mark, name, email, played, born) VALUES (1, 't1', 'Ann', 't1', '2026-01-01', '2020-01-01'), (2, 't2', 'bob', 'both', '2020-01-01', '2020-01-01'),
	(3, 't3', 'bob_ruled', 't3', '2020-01-01', '2020-01-01'), (4, 't4', 'cid', 't4', '2026-01-01', '2020-01-01'), (5, 't5', 'dan', 'new', NULL, '2020-01-01'), (6, 't6', 'longname9', 't6', NULL, '2020-01-01'),
	(7, 't7', 'eve', NULL, NULL, NULL);
INSERT INTO ra.accounts VALUES (1, 'a1', 'ann', 'a1', '2025-01-01', '2020-01-01'), (2, 'a2', 'Bob', 'a2', '2026-01-01', '2020-01-01'), (3, 'a3', 'CID', 'a3', '2026-01-01', '2020-01-01'),
	(4, 'a4', 'fay', 'both', '2026-01-01', '2020-01-01'), (5, 'a5', 'gus', 'ours', '2020-01-01', '2020-01-01'), (6, 'a6', 'eve', NULL, NULL, NULL);
INSERT INTO rb.accounts VALUES (1, 'b1', 'bob', 'b1', '2026-06-06', '2020-01-01'), (2, 'b2', 'dan', 'b2', NULL, '2019-01-01'), (3, 'b3', 'LONGNAME9', 'b3', '2020-01-01', '2020-01-01'),
	(4, 'b4', 'hal', 'both', '2025-01-01', '2020-01-01'), (5, 'b5', 'ida', 'ours', '2021-01-01', '2020-01-01'), (6, 'b6', 'kim', 'new', '1999-01-01', '2020-01-01');
INSERT INTO ruled.items VALUES (1, 'sword', 2), (2, 'bow', 5);
INSERT INTO ra.items VALUES (1, 'sword', 4), (2, 'axe', 4), (3, 'axe', 5);
INSERT INTO rb.items VALUES (1, 'bow', 4), (2, 'pike', 5), (3, 'pike', 6), (4, 'axe', 4);
INSERT INTO ruled.seats VALUES (1, 't', '2020-01-01'), (2, 't', '2026-01-01'), (4, 't', NULL);
INSERT INTO ra.seats VALUES (1, 'a', '2019-01-01'), (2, 'a', '2026-01-01'), (4, 'a', '2026-01-01');
INSERT INTO rb.seats VALUES (1, 'b', '2018-01-01'), (3, 'b', '2026-01-01');
INSERT INTO ruled.titles VALUES (1, 'king', 't', '2026-01-01');
INSERT INTO ra.titles VALUES (1, 'king', 'a', '2020-01-01'), (2, 'queen', 'a', '2021-01-01'), (3, 'duke', 'a', NULL);
INSERT INTO rb.titles VALUES (1, 'queen', 'b', '2020-01-01'), (2, 'duke', 'b', '2020-01-01');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_plain', 'suffix', '_{source}', precedence => $$played DESC NULLS LAST, born, "odd {map} # @ % 'x", left(mark, 0) || '{name} # @ %s'$$);
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email', 'keep_first', precedence => 'played DESC NULLS LAST, born');
SELECT snowflake_migrate.declare_policy('ruled.items', 'items_owner_id_name_key', 'keep_target');
SELECT snowflake_migrate.declare_policy('ruled.seats', 'seats_no_key', 'next_free', precedence => 'since');
SELECT snowflake_migrate.declare_policy('ruled.titles', 'titles_title_key', 'skip', precedence => 'since NULLS LAST');
SELECT constraint_name, policy, argument, precedence FROM snowflake_migrate.declared_policies ORDER BY 1;
SELECT severity, source, relation, object, problem, count, example FROM snowflake_migrate.check('{ra,rb}', 'ruled') WHERE problem LIKE '%clash%' OR problem LIKE '%skip%' OR severity = 'error' ORDER BY relation, object, source;
CREATE FUNCTION sums() RETURNS text LANGUAGE sql AS $$
	SELECT md5(concat_ws('|', (SELECT string_agg(t::text, ',' ORDER BY id) FROM ruled.accounts AS t), (SELECT string_agg(t::text, ',' ORDER BY id) FROM ruled.items AS t),
		(SELECT string_agg(t::text, ',' ORDER BY no) FROM ruled.seats AS t), (SELECT string_agg(t::text, ',' ORDER BY id) FROM ruled.titles AS t)))
$$;
SELECT sums() AS before \gset
CALL snowflake_migrate.merge('{ra,rb}', 'ruled', '{695,696}', batch_size => 2) \g /dev/null
SELECT max(run) AS run FROM snowflake_migrate.runs \gset
SELECT mark, name, plain, email, id < 10 AS of_target FROM ruled.accounts ORDER BY lower(name), mark;
SELECT i.name, a.mark AS owner FROM ruled.items AS i JOIN ruled.accounts AS a ON a.id = owner_id ORDER BY 1, 2;
SELECT no, holder, since FROM ruled.seats ORDER BY no;
SELECT title, holder FROM ruled.titles ORDER BY 1, 2;
SELECT source, relation, constraint_name, policy, old_key, CASE WHEN length(new_key) < 3 THEN new_key END AS new_key, column_name, old_value, new_value, former_row ->> 'mark' AS former
FROM snowflake_migrate.records WHERE run = :run ORDER BY relation, constraint_name, source, old_key, new_key, old_value;
SELECT * FROM snowflake_migrate.verify(:run);
-- each damage is found
BEGIN; UPDATE ruled.accounts SET name = 'other' WHERE name = 'lon_ruled'; SELECT relation, problem, count, example FROM snowflake_migrate.verify(:run); ROLLBACK;
BEGIN; UPDATE ruled.seats SET no = 99 WHERE holder = 't' AND since IS NULL; SELECT relation, problem, count FROM snowflake_migrate.verify(:run); ROLLBACK;
-- the way back: refused where a renamed row was renamed again, or somebody has the name now
UPDATE ruled.accounts SET played = now() WHERE mark = 't6';
UPDATE ruled.accounts SET name = 'robert' WHERE name = 'lon_ruled';
-- the number of the run is not shown
\set VERBOSITY sqlstate
CALL snowflake_migrate.rollback(:run);
\set VERBOSITY terse
CALL snowflake_migrate.rollback(:run, force => true);
SELECT id, mark, name, plain FROM ruled.accounts ORDER BY id;
SELECT relation, problem, count FROM snowflake_migrate.report WHERE run = :run AND severity = 'warning' ORDER BY 1, 2;
UPDATE ruled.accounts SET name = 'longname9', played = NULL WHERE id = 6;
SELECT sums() = :'before' AS as_before;
CALL snowflake_migrate.merge('{ra,rb}', 'ruled', '{697,698}', batch_size => 3) \g /dev/null
SELECT max(run) AS run FROM snowflake_migrate.runs \gset
UPDATE ruled.accounts SET name = 'was_dan' WHERE mark = 'b2'; INSERT INTO ruled.accounts (id, name) VALUES (8, 'DAN');
\set VERBOSITY sqlstate
CALL snowflake_migrate.rollback(:run, force => true);
UPDATE ruled.accounts SET name = 'was_long' WHERE mark = 'b3'; UPDATE ruled.accounts SET name = 'Longname9' WHERE id = 8;
CALL snowflake_migrate.rollback(:run, force => true);
\set VERBOSITY terse
DELETE FROM ruled.accounts WHERE id = 8;
CALL snowflake_migrate.rollback(:run, force => true);
SELECT sums() = :'before' AS as_before;

-- bad precedences
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email', 'keep_first');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email', 'error', precedence => 'played');
SELECT snowflake_migrate.declare_policy('ruled.seats', 'seats_no_key', 'rerank', 'since', precedence => 'since');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email', 'keep_first', precedence => 'last_login DESC');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email', 'keep_first', precedence => '');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email', 'keep_first', precedence => 'count(*)');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email', 'keep_first', precedence => 'rank() OVER ()');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email', 'keep_first', precedence => 'generate_series(1, 2)');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email', 'keep_first', precedence => 'played), (born');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email', 'keep_first', precedence => 'played LIMIT 1');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email', 'keep_first', precedence => 'played -- the last');
ALTER TABLE ruled.accounts ADD UNIQUE (name); CREATE TABLE ruled.notes (name varchar(9) REFERENCES ruled.accounts (name));
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_plain', 'suffix', precedence => 'played');
DROP TABLE ruled.notes; ALTER TABLE ruled.accounts DROP CONSTRAINT accounts_name_key;
-- nobody else's
CREATE ROLE regress_ruler;
GRANT USAGE ON SCHEMA ruled TO regress_ruler; GRANT SELECT ON ruled.accounts TO regress_ruler; SELECT snowflake_migrate.grant_to('regress_ruler');
SET ROLE regress_ruler;
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email', 'keep_first', precedence => 'played');
RESET ROLE;
CALL snowflake_migrate.merge('{ra,rb}', 'ruled', '{640,641}');
DROP OWNED BY regress_ruler; DROP ROLE regress_ruler;

-- many rows, by chance: who keeps the name, and who stays, told without the map
TRUNCATE ruled.accounts, ruled.items, ruled.seats, ruled.titles, ra.accounts, ra.items, ra.seats, ra.titles, rb.accounts, rb.items, rb.seats, rb.titles;
SELECT setseed(0.42);
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email', 'keep_first', precedence => 'played DESC NULLS LAST, born');
INSERT INTO ruled.accounts (id, mark, name, email, played, born) SELECT i, 't' || i, 'n' || i, CASE WHEN i % 3 > 0 THEN 'e' || i END, CASE WHEN random() < .8 THEN date '2020-01-01' + (random() * 3)::int END, date '2010-01-01' + (random() * 2)::int FROM generate_series(1, 300) AS i;
INSERT INTO ra.accounts SELECT i, 'a' || i, 'N' || 2 * i, CASE WHEN i % 2 > 0 THEN 'e' || i END, CASE WHEN random() < .8 THEN date '2020-01-01' + (random() * 3)::int END, date '2010-01-01' + (random() * 2)::int FROM generate_series(1, 300) AS i;
INSERT INTO rb.accounts SELECT i, 'b' || i, 'n' || 3 * i, CASE WHEN i % 5 > 0 THEN 'e' || 2 * i END, CASE WHEN random() < .8 THEN date '2020-01-01' + (random() * 3)::int END, date '2010-01-01' + (random() * 2)::int FROM generate_series(1, 300) AS i;
INSERT INTO ra.items SELECT id, mark, id FROM ra.accounts; INSERT INTO rb.items SELECT id, mark, id FROM rb.accounts;
CREATE TABLE everybody AS SELECT 0 AS source, mark, name, email, played, born, id FROM ruled.accounts UNION ALL SELECT 1, mark, name, email, played, born, id FROM ra.accounts UNION ALL SELECT 2, mark, name, email, played, born, id FROM rb.accounts;
SELECT sums() AS before \gset
CALL snowflake_migrate.merge('{ra,rb}', 'ruled', '{642,643}', batch_size => 100) \g /dev/null
SELECT max(run) AS run FROM snowflake_migrate.runs \gset
-- of each address one account is there, the first, under the target's id where it had it
CREATE TABLE staying AS SELECT *, min(id) FILTER (WHERE source = 0) OVER (PARTITION BY coalesce(email, mark)) AS target_id,
	row_number() OVER (PARTITION BY coalesce(email, mark) ORDER BY played DESC NULLS LAST, born, source) = 1 AS stays FROM everybody;
SELECT count(*) FILTER (WHERE s.stays) AS stay, count(*) FILTER (WHERE s.stays AND s.source > 0 AND s.target_id IS NOT NULL) AS took_a_place,
	count(*) FILTER (WHERE s.stays IS DISTINCT FROM (a.mark IS NOT NULL) OR a.id <> s.target_id OR (a.played, a.born, a.email) IS DISTINCT FROM (s.played, s.born, s.email) AND s.stays) AS wrong
FROM staying AS s FULL JOIN ruled.accounts AS a USING (mark);
-- of each name the first of those has it, and the others something like it
SELECT count(*) FILTER (WHERE s.n > 1 AND s.source = 0) AS of_target, count(*) FILTER (WHERE s.n > 1 AND s.source > 0) AS of_sources,
	count(*) FILTER (WHERE (s.n = 1) IS DISTINCT FROM (a.name = s.name) OR s.n > 1 AND a.name !~ ('^' || left(s.name, 2) || '_?[a-z]*')) AS wrong
FROM (SELECT *, row_number() OVER (PARTITION BY lower(name) ORDER BY played DESC NULLS LAST, born, source) AS n FROM staying WHERE stays) AS s JOIN ruled.accounts AS a USING (mark);
-- what refers to an account follows it
SELECT count(*) AS items, count(*) FILTER (WHERE coalesce(a.email, a.mark) IS DISTINCT FROM coalesce(e.email, e.mark)) AS wrong
FROM ruled.items AS i JOIN ruled.accounts AS a ON a.id = i.owner_id JOIN everybody AS e ON e.mark = i.name;
SELECT * FROM snowflake_migrate.verify(:run);
CALL snowflake_migrate.rollback(:run);
SELECT sums() = :'before' AS as_before;

DROP FUNCTION sums(); DROP TABLE everybody, staying;
DROP SCHEMA ruled, ra, rb CASCADE;
DELETE FROM snowflake_migrate.declared_policies;

-- rows that become one are combined
CREATE SCHEMA ruled; CREATE SCHEMA ra; CREATE SCHEMA rb;
CREATE DOMAIN ruled.coins AS int CHECK (VALUE >= 0);
CREATE TABLE ruled.accounts (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), email text UNIQUE, played date, gold ruled.coins, level smallint, born date, flags int, vip boolean, quiet boolean NOT NULL,
	motto text COLLATE "C", last_motto text, spent numeric(10, 2), tags text[], "odd {map} # @ % 'x" int, worth real, rich boolean GENERATED ALWAYS AS (gold > 100) STORED, CHECK (level < 100));
CREATE TABLE ruled.items (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text, owner_id bigint NOT NULL REFERENCES ruled.accounts);
CREATE TABLE ruled.kinds (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), code text, visits int, label text, UNIQUE (code));
DO $$
DECLARE s text;
BEGIN
	FOREACH s IN ARRAY '{ra,rb}'::text[] LOOP
		EXECUTE format('CREATE TABLE %1$s.accounts (id serial PRIMARY KEY, email text, played date, gold int, level smallint, born date, flags int, vip boolean, quiet boolean,
				motto text, last_motto text, spent numeric(10, 2), tags text[], "odd {map} # @ %% ''x" int, worth real);
			CREATE TABLE %1$s.items (id serial PRIMARY KEY, name text, owner_id int NOT NULL);
			CREATE TABLE %1$s.kinds (id serial PRIMARY KEY, code text, visits int, label text)', s);
	END LOOP;
END
$$;
INSERT INTO ruled.accounts VALUES (1, 'all', '2026-01-01', 100, 10, '2020-01-01', 1, false, true, NULL, 'mine', 1.10, '{a}', 1, 0.1), (2, 'none', '2020-01-01', 5, NULL, NULL, NULL, NULL, true, 'x', NULL, NULL, NULL, NULL, NULL),
	(3, 'alone', NULL, 7, 7, NULL, 7, NULL, true, 'y', NULL, NULL, '{}', NULL, NULL), (4, 'same', '2026-01-01', 9, 9, '2020-01-01', 1, true, true, 'z', 'z', 1, '{a}', 2, 1);
INSERT INTO ra.accounts VALUES (1, 'all', '2025-01-01', 20, 30, '2019-01-01', 4, NULL, true, 'of ra', 'ra''s', 2.20, '{b,a}', 10, 0.2), (2, 'none', '2025-01-01', NULL, 1, NULL, NULL, NULL, false, NULL, NULL, NULL, '{c}', NULL, NULL),
	(3, 'ours', '2025-01-01', 1, 1, '2020-01-01', 1, false, true, 'of ra', NULL, 1, '{d}', 5, 1), (4, 'same', '2025-01-01', 0, 9, '2020-01-01', 1, true, true, NULL, NULL, 0, '{a}', 0, 0);
INSERT INTO rb.accounts VALUES (1, 'ours', '2026-01-01', 2, 2, '2018-01-01', 2, true, true, NULL, 'rb''s', 2, '{e}', 6, 2), (2, 'all', '2024-01-01', 3, 20, NULL, 2, true, false, 'of rb', NULL, 3.30, NULL, 100, 0.3);
INSERT INTO ra.items VALUES (1, 'axe', 1), (2, 'bow', 3); INSERT INTO rb.items VALUES (1, 'pike', 1);
INSERT INTO ruled.kinds VALUES (1, 'sword', 5, 'Sword'); INSERT INTO ra.kinds VALUES (7, 'sword', 6, 'Sword'), (8, 'rod', 1, 'Rod'); INSERT INTO rb.kinds VALUES (7, 'rod', 2, 'Rod'), (8, 'sword', 1, 'Sword');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'keep_first', precedence => 'played DESC NULLS LAST', combine => $${"gold": "sum", "level": "max", "born": "min", "flags": "or", "vip": "or",
	"quiet": "and", "motto": "first", "last_motto": "last", "spent": "sum", "worth": "sum", "tags": "ARRAY(SELECT DISTINCT t FROM pg_catalog.unnest(kept.tags || gone.tags) AS t ORDER BY 1)",
	"odd {map} # @ % 'x": "kept.\"odd {map} # @ % 'x\" * 2 + gone.\"odd {map} # @ % 'x\" + 0 * length('{rows} # @ %s')"}$$);
SELECT snowflake_migrate.declare_table('ruled.kinds', 'match', '{code}');
SELECT snowflake_migrate.declare_policy('ruled.kinds', 'kinds_code_key', 'keep_target', combine => '{"visits": "sum"}');
SELECT relation, policy, combine - 'tags' AS combine FROM snowflake_migrate.declared_policies WHERE relation = 'ruled.kinds'::regclass;
CREATE FUNCTION sums() RETURNS text LANGUAGE sql AS $$
	SELECT md5(concat_ws('|', (SELECT string_agg(t::text, ',' ORDER BY id) FROM ruled.accounts AS t), (SELECT string_agg(t::text, ',' ORDER BY id) FROM ruled.items AS t), (SELECT string_agg(t::text, ',' ORDER BY id) FROM ruled.kinds AS t)))
$$;
SELECT sums() AS before \gset
SELECT severity, source, relation, object, problem, count, example FROM snowflake_migrate.check('{ra,rb}', 'ruled') WHERE problem LIKE '%combine%' OR severity = 'error' ORDER BY relation, object, source, problem;
CALL snowflake_migrate.merge('{ra,rb}', 'ruled', '{644,645}', batch_size => 2) \g /dev/null
SELECT max(run) AS run FROM snowflake_migrate.runs \gset
SELECT CASE WHEN id < 10 THEN id END AS id, email, played, gold, level, born, flags, vip, quiet, rich FROM ruled.accounts ORDER BY email;
SELECT email, motto, last_motto, spent, tags, "odd {map} # @ % 'x" AS odd, worth FROM ruled.accounts ORDER BY email;
SELECT code, visits, label FROM ruled.kinds ORDER BY 1;
SELECT i.name, a.email FROM ruled.items AS i JOIN ruled.accounts AS a ON a.id = owner_id ORDER BY 1;
SELECT source, constraint_name, policy, old_key, column_name, old_value, new_value FROM snowflake_migrate.records WHERE run = :run AND policy = 'combine' ORDER BY column_name, source, old_key, old_value;
SELECT * FROM snowflake_migrate.verify(:run);
-- damage to what was combined, in rows that were there and in rows that came; a source that changes
BEGIN; UPDATE ruled.accounts SET gold = gold + 1 WHERE email = 'all'; SELECT relation, problem, count, example FROM snowflake_migrate.verify(:run); ROLLBACK;
BEGIN; UPDATE ruled.accounts SET level = NULL WHERE email = 'ours'; SELECT source, relation, problem, count FROM snowflake_migrate.verify(:run); ROLLBACK;
BEGIN; UPDATE ra.accounts SET gold = gold + 1 WHERE email = 'all'; SELECT source, relation, problem, count, example FROM snowflake_migrate.verify(:run); ROLLBACK;
BEGIN; UPDATE ra.accounts SET "odd {map} # @ % 'x" = 11 WHERE email = 'same'; SELECT source, relation, problem, count, example FROM snowflake_migrate.verify(:run); ROLLBACK;
BEGIN; UPDATE rb.kinds SET visits = 0 WHERE code = 'sword'; SELECT source, relation, problem, count, example FROM snowflake_migrate.verify(:run); ROLLBACK;
-- the way back: what was spent since is not given back twice
UPDATE ruled.accounts SET gold = gold - 23 WHERE email = 'all';
\set VERBOSITY sqlstate
CALL snowflake_migrate.rollback(:run);
\set VERBOSITY terse
CALL snowflake_migrate.rollback(:run, force => true);
SELECT gold, level FROM ruled.accounts WHERE email = 'all';
UPDATE ruled.accounts SET gold = 100 WHERE email = 'all';
SELECT sums() = :'before' AS as_before;

-- not while others change the target
CALL snowflake_migrate.merge('{ra,rb}', 'ruled', '{646,647}', target_in_use => true);

-- what overflows, or can't be, is found before a row is copied
UPDATE ruled.accounts SET gold = 2147483647 WHERE email = 'all'; UPDATE ra.accounts SET level = 100 WHERE email = 'all';
SELECT severity, relation, object, problem, count FROM snowflake_migrate.check('{ra,rb}', 'ruled') WHERE severity = 'error' ORDER BY relation, object;
UPDATE ruled.accounts SET gold = 100 WHERE email = 'all';
SELECT severity, relation, object, problem, count FROM snowflake_migrate.check('{ra,rb}', 'ruled') WHERE severity = 'error' ORDER BY relation, object;
UPDATE ra.accounts SET level = 30 WHERE email = 'all';
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'keep_target', combine => '{"gold": "100 / gone.level + 0 / (kept.gold - 100)", "quiet": "NULL"}');
SELECT severity, relation, object, problem, count FROM snowflake_migrate.check('{ra,rb}', 'ruled') WHERE severity = 'error' ORDER BY relation, object;
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'keep_target', combine => '{"gold": "gone.gold - 1000", "quiet": "NULL"}');
SELECT severity, relation, object, problem, count FROM snowflake_migrate.check('{ra,rb}', 'ruled') WHERE severity = 'error' ORDER BY relation, object;
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'keep_target', combine => '{"quiet": "NULL"}');
SELECT severity, relation, object, problem, count FROM snowflake_migrate.check('{ra,rb}', 'ruled') WHERE severity = 'error' ORDER BY relation, object;
-- a column of which two policies say different things, or that has become unique since
ALTER TABLE ruled.accounts ADD UNIQUE (last_motto);
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'keep_target', combine => '{"gold": "sum", "level": "max"}');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_last_motto_key', 'keep_target', combine => '{"gold": "max", "level": "max"}');
CREATE UNIQUE INDEX leveled ON ruled.accounts ((level + 1)) WHERE level > 1000;
SELECT severity, relation, object, problem, count FROM snowflake_migrate.check('{ra,rb}', 'ruled') WHERE severity = 'error' ORDER BY relation, object;
DROP INDEX ruled.leveled;

-- bad ways
\set VERBOSITY default
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'suffix', combine => '{"gold": "sum"}');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'keep_target', combine => '["gold"]');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'keep_target', combine => '{}');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'keep_target', combine => '{"gold": 1}');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'keep_target', combine => '{"silver": "sum"}');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'keep_target', combine => '{"motto": "sum"}');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'keep_target', combine => '{"gold": "kept.gold + gone.silver"}');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'keep_target', combine => '{"gold": "avg"}');
\set VERBOSITY terse
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'keep_target', combine => '{"gold": "count(*)"}');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'keep_target', combine => '{"gold": "generate_series(1, 2)"}');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'keep_target', combine => '{"gold": "1), (2"}');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'keep_target', combine => '{"gold": ""}');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'keep_target', combine => '{"id": "max"}');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'keep_target', combine => '{"email": "max"}');
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'keep_target', combine => '{"rich": "or"}');
SELECT snowflake_migrate.declare_policy('ruled.items', 'items_pkey', 'keep_target', combine => '{"owner_id": "max"}');
-- nobody else's
CREATE ROLE regress_ruler;
GRANT USAGE ON SCHEMA ruled TO regress_ruler; GRANT SELECT ON ruled.accounts TO regress_ruler; SELECT snowflake_migrate.grant_to('regress_ruler');
SET ROLE regress_ruler;
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'keep_target', combine => '{"gold": "kept.gold"}');
RESET ROLE;
CALL snowflake_migrate.merge('{ra,rb}', 'ruled', '{646,647}');
DROP OWNED BY regress_ruler; DROP ROLE regress_ruler;
ALTER TABLE ruled.accounts DROP CONSTRAINT accounts_last_motto_key; DELETE FROM snowflake_migrate.declared_policies WHERE constraint_name = 'accounts_last_motto_key';

-- many rows, by chance: the sums of all, told without the map
TRUNCATE ruled.accounts, ruled.items, ruled.kinds, ra.accounts, ra.items, ra.kinds, rb.accounts, rb.items, rb.kinds;
SELECT setseed(0.43);
SELECT snowflake_migrate.declare_policy('ruled.accounts', 'accounts_email_key', 'keep_first', precedence => 'played DESC NULLS LAST, born',
	combine => '{"gold": "sum", "level": "max", "flags": "or", "spent": "kept.spent + gone.spent"}');
INSERT INTO ruled.accounts (id, email, played, gold, level, flags, quiet, spent) SELECT i, 'e' || i, CASE WHEN random() < .8 THEN date '2020-01-01' + (random() * 3)::int END, CASE WHEN random() < .8 THEN (random() * 100)::int END, random() * 90, random() * 255, true, random() * 100 FROM generate_series(1, 300) AS i;
INSERT INTO ra.accounts (email, played, gold, level, flags, quiet, spent) SELECT 'e' || 2 * i, CASE WHEN random() < .8 THEN date '2020-01-01' + (random() * 3)::int END, CASE WHEN random() < .8 THEN (random() * 100)::int END, random() * 90, random() * 255, true, random() * 100 FROM generate_series(1, 300) AS i;
INSERT INTO rb.accounts (email, played, gold, level, flags, quiet, spent) SELECT 'e' || 3 * i, CASE WHEN random() < .8 THEN date '2020-01-01' + (random() * 3)::int END, CASE WHEN random() < .8 THEN (random() * 100)::int END, random() * 90, random() * 255, true, random() * 100 FROM generate_series(1, 300) AS i;
CREATE TABLE everybody AS SELECT email, sum(gold) AS gold, max(level) AS level, bit_or(flags) AS flags, sum(spent) AS spent, max(played) AS played, count(*) AS n
FROM (SELECT email, gold, level, flags, spent, played FROM ruled.accounts UNION ALL SELECT email, gold, level, flags, spent, played FROM ra.accounts UNION ALL SELECT email, gold, level, flags, spent, played FROM rb.accounts) AS a GROUP BY email;
SELECT sums() AS before \gset
CALL snowflake_migrate.merge('{ra,rb}', 'ruled', '{648,649}', batch_size => 100) \g /dev/null
SELECT max(run) AS run FROM snowflake_migrate.runs \gset
SELECT n, count(*), count(*) FILTER (WHERE (a.gold, a.level, a.flags, a.spent, a.played) IS DISTINCT FROM (e.gold, e.level, e.flags, e.spent, e.played)) AS wrong
FROM everybody AS e FULL JOIN ruled.accounts AS a USING (email) GROUP BY n ORDER BY n;
SELECT * FROM snowflake_migrate.verify(:run);
CALL snowflake_migrate.rollback(:run);
SELECT sums() = :'before' AS as_before;

DROP FUNCTION sums(); DROP TABLE everybody;
DROP SCHEMA ruled, ra, rb CASCADE;
DELETE FROM snowflake_migrate.declared_policies; DELETE FROM snowflake_migrate.declared_tables;
