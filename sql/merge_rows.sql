-- What becomes of rows in a merge: documents, ids in order of time, matches and clashes.
-- New ids are never shown: they are followed to the names of what they refer to.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\set VERBOSITY terse

-- the steps of a path, and places that can't be found again
SELECT * FROM snowflake_migrate_internal.path('$.a."b c"[*] ? (@.kind == "it)em" && (@.n > 1)).id');
SELECT * FROM snowflake_migrate_internal.path('$.a.*[2].keyvalue().key');
SELECT * FROM snowflake_migrate_internal.path('$');
SELECT * FROM snowflake_migrate_internal.path('$.a.size()');
SELECT * FROM snowflake_migrate_internal.path('strict $.a');
SELECT * FROM snowflake_migrate_internal.path('$.a.**.b');

-- a document's ids are replaced where the path leads, in their own form, and nothing else
CREATE FUNCTION mapped(document jsonb, path text, unknown_null boolean DEFAULT false) RETURNS jsonb LANGUAGE sql
	AS $$ SELECT snowflake_migrate_internal.document(document, path, '{"1": 1001, "2": 1002, "3": null}', unknown_null) $$;
SELECT mapped('{"id": 1, "other": 1}', '$.id');
SELECT mapped('{"id": "2"}', '$.id');
SELECT mapped('{"id": 9223372036854775807}', '$.id'), mapped('{"id": 9}', '$.id', true);
SELECT mapped('{"id": 3}', '$.id'), mapped('{"id": 1.5}', '$.id', true), mapped('{"id": "x1"}', '$.id', true), mapped('{"id": null}', '$.id', true);
SELECT mapped('[1, 2, [1], {"a": 1}, "2", true]', '$[*]');
SELECT mapped('[1, 2]', '$[1]'), mapped('[1]', '$[1]'), mapped('1', '$[0]'), mapped('1', '$[*]');
SELECT mapped('{"items": [{"id": 1, "kind": "item"}, {"id": 2, "kind": "gold"}]}', '$.items[*] ? (@.kind == "item").id');
SELECT mapped('{"items": [{"id": 1}, {"id": 2}, 1]}', '$.items.id');
SELECT mapped('{"a": {"x": 1, "y": 2}, "b": 1}', '$.a.*');
SELECT mapped('{"slots": {"1": "a", "2": {"1": 1}, "3": "gone", "x": 1}}', '$.slots.keyvalue().key');
SELECT mapped('{"slots": {"1": "a", "4": "b"}}', '$.slots.keyvalue().key', true);
SELECT mapped('{}', '$.slots.keyvalue().key'), mapped('[]', '$.a'), mapped('"1"', '$'), mapped('7', '$.a.b[*]');
-- as jsonpath itself finds them
SELECT path, document
FROM unnest(ARRAY['$.a', '$[*]', '$.a[*]', '$.a.b', '$.*', '$.a[0].b', '$.a.keyvalue().key', '$.*.*']) AS path,
	unnest(ARRAY['{"a": 1}', '[1, 2]', '{"a": [1, {"b": 2}]}', '{"a": {"b": 1, "2": 2}}', '[{"a": 1}, {"a": [2]}]', '1']::jsonb[]) AS document
WHERE ARRAY(SELECT p FROM jsonb_path_query(mapped(document, path), path::jsonpath, silent => true) AS p ORDER BY p::text)
	IS DISTINCT FROM ARRAY(SELECT CASE p #>> '{}' WHEN '1' THEN CASE jsonb_typeof(p) WHEN 'string' THEN '"1001"' ELSE '1001' END::jsonb
		WHEN '2' THEN CASE jsonb_typeof(p) WHEN 'string' THEN '"1002"' ELSE '1002' END::jsonb ELSE p END AS p
		FROM jsonb_path_query(document, path::jsonpath, silent => true) AS p ORDER BY p::text)
	AND NOT (path = '$.*.*' AND document::text LIKE '%[%');

-- the order of tables: parents first, those that refer to each other together
SELECT relation, step, cyclic FROM snowflake_migrate_internal.dependency_order('{1,2,3,4,5,6}', '{2,3,4,4,5,6}', '{1,4,3,2,5,9}') ORDER BY step, relation;

-- two sources: what is unique, in the target and among the sources
CREATE SCHEMA tg; CREATE SCHEMA sa; CREATE SCHEMA sb;
CREATE TYPE tg.mood AS ENUM ('calm', 'wild');
CREATE TYPE sa.mood AS ENUM ('wild', 'calm');
CREATE TYPE sb.mood AS ENUM ('calm', 'wild');
CREATE TABLE tg.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE, tag text UNIQUE, mood tg.mood, born timestamptz);
CREATE TABLE tg.pets (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), player_id bigint NOT NULL REFERENCES tg.players, name varchar(6) CHECK (length(name) < 6),
	friends bigint[], bag jsonb, loud text GENERATED ALWAYS AS (upper(name)) STORED, UNIQUE (player_id, name));
CREATE TABLE sa.players (id serial PRIMARY KEY, name text UNIQUE, tag text UNIQUE, mood sa.mood, born timestamptz);
CREATE TABLE sa.pets (id serial PRIMARY KEY, player_id int NOT NULL REFERENCES sa.players, name varchar(6), friends int[], bag jsonb, UNIQUE (player_id, name));
CREATE TABLE sb.players (mood sb.mood, tag text UNIQUE, name text UNIQUE, id smallint PRIMARY KEY);
CREATE TABLE sb.pets (id serial PRIMARY KEY, player_id smallint NOT NULL REFERENCES sb.players, name varchar(6), friends smallint[], bag json, UNIQUE (player_id, name));
INSERT INTO tg.players VALUES (1, 'ann', 'x1', 'calm', '2025-01-01'), (2, 'bob', 'x2', 'wild', '2025-01-02');
INSERT INTO tg.pets VALUES (1, 1, 'rex', '{}', '{}'), (2, 2, 'tom', NULL, NULL);
INSERT INTO sa.players VALUES (1, 'ann', 'y1', 'calm', '2025-01-03'), (2, 'cid', 'x2', 'wild', '2025-01-02'), (3, 'dan', 'y3', NULL, '2025-01-01');
INSERT INTO sa.pets VALUES (1, 1, 'rex', '{2,3}', '{"items": [{"id": 1, "kind": "pet"}, {"id": 2, "kind": "gold"}], "slots": {"1": true, "3": false}, "own": "2"}'),
	(2, 2, 'kit', '{}', '{}'), (3, 3, 'may', ARRAY[1, NULL, 3], '{"own": 3}');
INSERT INTO sb.players VALUES ('calm', 'z1', 'cid', 1), ('wild', 'y3', 'eve', 2);
INSERT INTO sb.pets VALUES (1, 1, 'rex', '{1}', '{"own": 2}'), (2, 2, 'kit', NULL, NULL), (3, 2, 'may', NULL, NULL);
SELECT snowflake_migrate.declare_created('tg.players', 'born');
SELECT snowflake_migrate.declare_reference('tg.pets', 'friends', 'tg.pets');
SELECT snowflake_migrate.declare_reference('tg.pets', 'bag', 'tg.pets', path => '$.items[*] ? (@.kind == "pet").id');
SELECT snowflake_migrate.declare_reference('tg.pets', 'bag', 'tg.pets', path => '$.own');
SELECT snowflake_migrate.declare_reference('tg.pets', 'bag', 'tg.pets', path => '$.slots.keyvalue().key');
SELECT snowflake_migrate.declare_policy('tg.players', 'players_name_key', 'keep_target');
SELECT snowflake_migrate.declare_policy('tg.players', 'players_tag_key', 'keep_source');
-- a clash in the children of rows that are kept
SELECT severity, source, relation, object, problem, count FROM snowflake_migrate.check('{sa,sb}', 'tg') WHERE severity = 'error';
CALL snowflake_migrate.merge('{sa,sb}', 'tg', '{900,901}', run => NULL) \g /dev/null
SELECT snowflake_migrate.declare_policy('tg.pets', 'pets_player_id_name_key', 'suffix', '-{source}');
CALL snowflake_migrate.merge('{sa,sb}', 'tg', '{900,901}', batch_size => 2) \g /dev/null
SELECT max(run) AS run FROM snowflake_migrate.runs \gset
SELECT source, relation, action, old_key, new_key::bigint < 10 AS kept FROM snowflake_migrate.map WHERE run = :run ORDER BY relation, source, old_key;
SELECT source, relation, constraint_name, policy, old_key, column_name, old_value, new_value, former_row FROM snowflake_migrate.records WHERE run = :run ORDER BY relation, source, policy, old_key;
SELECT name, tag, mood, born::date FROM tg.players ORDER BY name;
SELECT p.name AS player, t.name, t.loud, ARRAY(SELECT f.name FROM unnest(t.friends) WITH ORDINALITY AS u (id, n) LEFT JOIN tg.pets AS f USING (id) ORDER BY u.n) AS friends,
	(SELECT string_agg(f.name, ',') FROM jsonb_path_query(t.bag, '$.items[*] ? (@.kind == "pet").id') AS i JOIN tg.pets AS f ON f.id = i::bigint) AS items,
	t.bag #> '{items,1,id}' AS not_a_pet,
	(SELECT f.name FROM tg.pets AS f WHERE f.id = (t.bag ->> 'own')::bigint) AS own, jsonb_typeof(t.bag -> 'own') AS form,
	(SELECT string_agg(f.name || ' ' || s.value, ',' ORDER BY f.name) FROM jsonb_each_text(t.bag -> 'slots') AS s JOIN tg.pets AS f ON f.id = s.key::bigint) AS slots
FROM tg.pets AS t JOIN tg.players AS p ON p.id = t.player_id ORDER BY 1, 2;
SELECT * FROM snowflake_migrate.verify(:run);
-- the time that a new id tells is the row's
SELECT name, snowflake_timestamp(id) = born AS is_born FROM tg.players WHERE name = 'dan';
CALL snowflake_migrate.merge('{sa,sb}', 'tg', '{900,901}') \g /dev/null
CALL snowflake_migrate.merge('{sa,sb}', 'tg', '{902,903}');
CALL snowflake_migrate.merge('{sb}', 'tg', '{902}');
CALL snowflake_migrate.rollback(:run);
SELECT * FROM tg.players ORDER BY id;
SELECT * FROM tg.pets ORDER BY id;
-- once; the number is not shown
\set VERBOSITY sqlstate
CALL snowflake_migrate.rollback(:run);
SELECT * FROM snowflake_migrate.verify(:run);
\set VERBOSITY terse
CALL snowflake_migrate.rollback(999);
-- its node numbers stay used
CALL snowflake_migrate.merge('{sa,sb}', 'tg', '{900,901}');

-- bad arguments
CALL snowflake_migrate.merge('{sa}', 'tg', '{}');
CALL snowflake_migrate.merge('{sa}', 'tg', '{1024}');
CALL snowflake_migrate.merge('{sa,sb}', 'tg', '{910,910}');
CALL snowflake_migrate.merge('{sa}', 'tg', '{910}', 0);
CALL snowflake_migrate.merge('{sa}', 'tg', '{910}', run => 999);
CALL snowflake_migrate.merge(NULL, 'tg', '{910}');
CALL snowflake_migrate.merge('{nowhere}', 'tg', '{910}');

DROP SCHEMA tg, sa, sb CASCADE;
DELETE FROM snowflake_migrate.declared_references; DELETE FROM snowflake_migrate.declared_policies; DELETE FROM snowflake_migrate.declared_created;

-- a slot for each row: the first of its tick, or the one after that of the row before; there is none after the last bigint
SELECT at, snowflake_migrate_internal.free_slot(at) OVER (ORDER BY n ROWS UNBOUNDED PRECEDING)
FROM (VALUES (1, -3::bigint), (2, 7), (3, 7), (4, 8), (5, 9), (6, 20)) AS v (n, at);
SELECT snowflake_migrate_internal.next_slot(9223372036854775807, 0);

-- the memory of CREATE INDEX, until the transaction ends, and no less than a query has
SET maintenance_work_mem = '40MB';
BEGIN;
SELECT snowflake_migrate_internal.allow_memory();
SHOW work_mem;
SET LOCAL work_mem = '48MB';
SELECT snowflake_migrate_internal.allow_memory();
SHOW work_mem;
ROLLBACK;
RESET maintenance_work_mem;

-- new ids: in order of time over all tables, a full tick spills into the next, rows without a time end at the start
CREATE SCHEMA tg; CREATE SCHEMA sa;
CREATE TABLE tg.a (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), at timestamptz);
CREATE TABLE tg.b (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), at timestamp);
CREATE TABLE tg.c (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int);
CREATE TABLE sa.a (id serial PRIMARY KEY, at timestamptz);
CREATE TABLE sa.b (id serial PRIMARY KEY, at timestamp);
CREATE TABLE sa.c (id bigint PRIMARY KEY, n int);
-- more than a tick has ids for; one in the future, one without a time, one with a snowflake id
INSERT INTO sa.a (at) SELECT '2026-01-01 00:00:00+00' FROM generate_series(1, 5000);
INSERT INTO sa.b (at) SELECT '2026-01-01 00:00:00.001' FROM generate_series(1, 100);
INSERT INTO sa.a (at) VALUES ('2200-01-01'), (NULL), ('2026-01-01 00:00:00.003+00');
INSERT INTO sa.c VALUES (1, 1), (2, 2), (3, 3), (snowflake_encode('2025-05-05', 5, 5), 4);
SET timezone = 'UTC';
SELECT snowflake_migrate.declare_created('tg.a', 'at'), snowflake_migrate.declare_created('tg.b', 'at') \g /dev/null
CALL snowflake_migrate.merge('{sa}', 'tg', '{905}') \g /dev/null
SELECT started_at FROM snowflake_migrate.runs ORDER BY run DESC LIMIT 1 \gset
SELECT snowflake_timestamp(id) AS ms, count(*), min(snowflake_sequence(id)), max(snowflake_sequence(id))
FROM (SELECT id FROM tg.a UNION ALL SELECT id FROM tg.b) AS x WHERE snowflake_timestamp(id) < '2026-01-02' GROUP BY 1 ORDER BY 1;
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM tg.a UNION ALL SELECT id FROM tg.b UNION ALL SELECT id FROM tg.c) AS x;
-- by time, then by table and old id
SELECT bool_and(x.new_key > x.before) FROM (SELECT m.new_key::bigint AS new_key, lag(m.new_key::bigint) OVER (ORDER BY m.old_key::bigint) AS before
	FROM snowflake_migrate.map AS m WHERE m.relation = 'tg.a' AND m.old_key::bigint <= 5000) AS x;
SELECT n, snowflake_timestamp(id) BETWEEN :'started_at'::timestamptz - interval '2 ms' AND :'started_at'::timestamptz AS at_start, snowflake_node(id) FROM tg.c ORDER BY n;
SELECT at, snowflake_timestamp(id) BETWEEN :'started_at'::timestamptz - interval '2 ms' AND :'started_at'::timestamptz AS at_start FROM tg.a WHERE at IS NULL OR at > '2100-01-01' ORDER BY at;
-- before the layout's epoch there are none
CREATE SCHEMA sb;
CREATE TABLE sb.a (id serial PRIMARY KEY, at timestamptz);
INSERT INTO sb.a (at) VALUES ('2010-11-04 01:42:54.656+00'), ('2010-11-04 01:42:54.657+00');
CALL snowflake_migrate.merge('{sb}', 'tg', '{904}');
-- but where they may be packed after it: in order, beside others, none as an id that counts as taken from a sequence
SELECT snowflake_migrate.declare_created('tg.a', 'at', 'last');
SELECT snowflake_migrate.declare_created('tg.a', 'at', 'pack');
INSERT INTO sb.a (at) SELECT '2010-11-05'::timestamptz + g * interval '1 s' FROM generate_series(0, 9999) AS g ORDER BY g % 7, g;
INSERT INTO sb.a (at) VALUES ('-infinity'), ('1970-01-01'), ('2010-11-05 01:42:54.657+00'), ('2010-11-05 01:42:54.658+00');
SELECT severity, relation, object, problem, count, example, advice FROM snowflake_migrate.check('{sb}', 'tg') WHERE object = 'at';
CALL snowflake_migrate.merge('{sb}', 'tg', '{903}', accept_warnings => true) \g /dev/null
SELECT count(*), bool_and(in_order) AS in_order, min(snowflake_timestamp(id)), max(snowflake_timestamp(id))
FROM (SELECT id, at >= lag(at) OVER (ORDER BY id) IS NOT FALSE AS in_order FROM tg.a WHERE snowflake_node(id) = 903) AS x;
SELECT at, snowflake_timestamp(id) FROM tg.a WHERE snowflake_node(id) = 903 AND (at < '2010-11-05' OR at BETWEEN '2010-11-05 01:42:54+00' AND '2010-11-05 01:42:55+00') ORDER BY id;
SELECT remark, ids FROM snowflake_audit('tg.a', 'id') WHERE node = 903 OR remark LIKE 'serial%';
-- a snowflake id that is there already
CREATE SCHEMA sc;
CREATE TABLE sc.c AS TABLE sa.c;
CALL snowflake_migrate.merge('{sc}', 'tg', '{904}');
SELECT snowflake_migrate.declare_policy('tg.c', 'c_pkey', 'renumber') \g /dev/null
CALL snowflake_migrate.merge('{sc}', 'tg', '{904}') \g /dev/null
SELECT n, snowflake_node(id), snowflake_timestamp(id) = '2025-05-05' AS same_time FROM tg.c ORDER BY n, 2;
-- a node number that made ids, or is this server's own
ALTER SCHEMA sc RENAME TO sd;
CALL snowflake_migrate.merge('{sd}', 'tg', '{5}');
SELECT node_id AS own FROM snowflake_stat \gset
CALL snowflake_migrate.merge('{sd}', 'tg', ARRAY[:own]);
DROP SCHEMA tg, sa, sb, sd CASCADE;
DELETE FROM snowflake_migrate.declared_policies; DELETE FROM snowflake_migrate.declared_created;
DROP FUNCTION mapped;
