-- snowflake_migrate.check(): columns that are references without a foreign key, by their names and values.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\pset format unaligned

--
-- A schema without foreign keys, as frameworks that know none make it
--
CREATE SCHEMA a;
CREATE SCHEMA world;
CREATE TABLE world.users (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text, best_friend bigint, phone text, level int);
CREATE TABLE world.people (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE world.ci_builds (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), status text);
CREATE TABLE world.stages (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE world.ranks (id int PRIMARY KEY, name text);
SELECT snowflake_migrate.declare_table('world.ranks', 'same_id');
CREATE TABLE world.issues (
	id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
	author_id bigint,				-- somebody
	updated_by bigint,				-- likewise, without id
	mentor bigint,
	build_id bigint,				-- of ci_builds
	id_stage bigint,				-- with id before
	person_id bigint,				-- of people
	milestone_id bigint,			-- of nothing that is merged
	weight int,						-- small numbers, as keys are
	rank_id int,					-- these are the same everywhere
	user_id bigint,					-- called so, but not their ids
	object_id text, content_type_id int,
	item_id text, item_type text,
	subject_class text, subject_id bigint,
	slug_id text,					-- texts that are no numbers
	stage text,						-- ids, though not called so
	watcher_ids bigint[],
	seen int[],						-- numbers
	serial_number bigint,			-- great numbers of nothing
	tracker bigint,					-- great numbers that are keys
	payload jsonb
);
CREATE TABLE world.labels (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), owner_id bigint);	-- without rows
CREATE TABLE a.users AS SELECT * FROM world.users;
CREATE TABLE a.people AS SELECT * FROM world.people;
CREATE TABLE a.ci_builds AS SELECT * FROM world.ci_builds;
CREATE TABLE a.stages AS SELECT * FROM world.stages;
CREATE TABLE a.ranks AS SELECT * FROM world.ranks;
CREATE TABLE a.issues AS SELECT * FROM world.issues;
CREATE TABLE a.labels AS SELECT * FROM world.labels;
INSERT INTO a.users SELECT g, 'user ' || g, 41 - g, '0170' || g, g % 60 FROM generate_series(1, 40) AS g;
INSERT INTO a.people SELECT g, 'person ' || g FROM generate_series(1, 500) AS g;
-- with gaps, as snowflake ids have them
INSERT INTO a.ci_builds SELECT g * 1000003, 'ok' FROM generate_series(1, 300) AS g;
INSERT INTO a.stages SELECT g, 'stage ' || g FROM generate_series(1, 12) AS g;
INSERT INTO a.ranks SELECT g, 'rank ' || g FROM generate_series(1, 5) AS g;
INSERT INTO a.issues
SELECT g, g % 40 + 1, (g * 7) % 40 + 1, (g * 3) % 40 + 1, (g % 300 + 1) * 1000003, g % 12 + 1, g * 7 % 500 + 1, 90000 + g, g % 9, g % 5 + 1,
	700000 + g, (g % 40 + 1)::text, 7, (g % 40 + 1)::text, 'User', 'Stage', g % 12 + 1, 'slug-' || g, (g % 12 + 1)::text,
	ARRAY[g % 40 + 1, 40], ARRAY[g % 3], 5000000000 + g * 17, (g % 300 + 1) * 1000003, '{"build_id": 3}'
FROM generate_series(1, 200) AS g;
SELECT severity, relation, object, problem, example, advice FROM snowflake_migrate.check('{a}', 'world') WHERE severity = 'error' OR object IS NOT NULL ORDER BY relation, object;
-- suggestions: what is sure is no question any more, and the rest still is
BEGIN;
CREATE TEMPORARY TABLE suggested AS SELECT * FROM snowflake_migrate.suggest('{a}', 'world');
SELECT object, certainty, statement FROM suggested;
\o /dev/null
SELECT statement FROM suggested WHERE certainty = 'sure' \gexec
\o
SELECT string_agg(object, ' ' ORDER BY object) AS questions FROM snowflake_migrate.check('{a}', 'world') WHERE advice LIKE '%If it is none%';
SELECT string_agg(object, ' ' ORDER BY object) AS left_over FROM snowflake_migrate.suggest('{a}', 'world');
ROLLBACK;
-- a merge wants an answer to each
CALL snowflake_migrate.merge('{a}', 'world', '{701}');
-- unless its caller says that they are no references: a dry run needs no answers, and shows them
CALL snowflake_migrate.merge('{a}', 'world', '{701}', dry_run => true) \g /dev/null
SELECT object, problem FROM snowflake_migrate.report WHERE severity = 'warning' AND is_question AND relation = 'world.users' ORDER BY object;
-- the first of each advice is a declaration that can be executed; texts, arrays, documents follow
SELECT substring(advice FROM 'If it is a reference: ([^\n]*)') AS declaration
FROM snowflake_migrate.check('{a}', 'world')
WHERE object IN ('author_id', 'updated_by', 'mentor', 'build_id', 'id_stage', 'person_id', 'stage', 'tracker', 'watcher_ids') ORDER BY object \gexec
SELECT snowflake_migrate.declare_reference('world.issues', 'item_id', 'world.users', $$item_type = 'User'$$);
SELECT snowflake_migrate.declare_reference('world.issues', 'object_id', 'world.users', 'content_type_id = 7');
SELECT snowflake_migrate.declare_reference('world.issues', 'subject_id', 'world.stages', $$subject_class = 'Stage'$$);
SELECT snowflake_migrate.declare_reference('world.users', 'best_friend', 'world.users');
SELECT snowflake_migrate.declare_no_reference('world.issues', 'user_id');
SELECT snowflake_migrate.declare_no_reference('world.issues', 'content_type_id');
SELECT snowflake_migrate.declare_no_reference('world.issues', 'payload');
SELECT snowflake_migrate.declare_no_reference('world.issues', 'milestone_id');
SELECT snowflake_migrate.declare_no_reference('world.labels', 'owner_id');
SELECT severity, relation, object, problem, example FROM snowflake_migrate.check('{a}', 'world') WHERE severity <> 'info' AND object IS NOT NULL OR problem = 'may hold ids' ORDER BY relation, object;
CALL snowflake_migrate.merge('{a}', 'world', '{701}') \g /dev/null
-- by what does not change
SELECT count(*) AS issues,
	count(*) FILTER (WHERE i.author_id = u.id AND i.object_id = u.id::text AND i.item_id = u.id::text AND i.watcher_ids[1] = u.id) AS users,
	count(*) FILTER (WHERE i.id_stage = s.id AND i.stage = s.id::text AND i.subject_id = s.id) AS stages
FROM world.issues AS i
	JOIN a.issues AS o ON o.slug_id = i.slug_id
	JOIN world.users AS u ON u.name = 'user ' || o.author_id
	JOIN world.stages AS s ON s.name = 'stage ' || o.id_stage;

-- declarations
SELECT snowflake_migrate.declare_no_reference('world.issues', 'nothing');
SELECT snowflake_migrate.declare_no_reference('world.issues', 'author_id');
SELECT snowflake_migrate.declare_no_reference('world.issues', NULL);
SELECT snowflake_migrate.declare_no_reference('world.issues', 'payload');
SELECT count(*) FROM snowflake_migrate.declared_no_references WHERE column_name = 'payload';
-- the last word counts
SELECT snowflake_migrate.declare_reference('world.issues', 'milestone_id', 'world.users');
SELECT count(*) FROM snowflake_migrate.declared_no_references WHERE column_name = 'milestone_id';

DELETE FROM snowflake_migrate.declared_tables;
DELETE FROM snowflake_migrate.declared_references;
DELETE FROM snowflake_migrate.declared_no_references;
DROP SCHEMA a, world CASCADE;

-- documents: numbers at a path that is not called so, which are keys; small ones may be anything; names of members
CREATE SCHEMA a; CREATE SCHEMA world;
CREATE TABLE world.items (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE world.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), kit jsonb, look jsonb, seen jsonb);
CREATE TABLE a.items (id serial PRIMARY KEY, name text);
CREATE TABLE a.heroes (id serial PRIMARY KEY, kit jsonb, look jsonb, seen jsonb);
INSERT INTO a.items SELECT i, 'item ' || i FROM generate_series(1, 3000) AS i;
INSERT INTO a.heroes (kit, look, seen)
	SELECT jsonb_build_object('hotbar', ARRAY[i, NULL, 100 * i], 'labels', jsonb_build_object(i, 'mine'),
							  'gold', 2000 + 500 * i, 'note', CASE WHEN i > 1 THEN (1000 + i)::text ELSE 'none yet' END, 'worn', jsonb_build_object('head', (3001 - i)::text)),
		jsonb_build_object('hue', i), jsonb_build_object('year', 2026)
	FROM generate_series(1, 30) AS i;
SELECT severity, object, problem, example, advice FROM snowflake_migrate.check('{a}', 'world')
WHERE relation = 'world.heroes' AND object IS NOT NULL ORDER BY object, problem COLLATE "C";
SELECT snowflake_migrate.declare_no_reference('world.heroes', 'kit', path => '$.labels.keyvalue().key');
SELECT snowflake_migrate.declare_reference('world.heroes', 'kit', 'world.items', path => '$.hotbar[*]');
SELECT object, problem, example FROM snowflake_migrate.check('{a}', 'world') WHERE relation = 'world.heroes' AND severity = 'warning';
SELECT snowflake_migrate.declare_no_reference('world.heroes', 'kit', path => 'lax $."worn"."head"');
SELECT object, problem, example FROM snowflake_migrate.check('{a}', 'world') WHERE relation = 'world.heroes' AND severity = 'warning';
-- a path with a wildcard, or without the elements of an array, leads there, too
SELECT declared, found, snowflake_migrate_internal.path_covers(declared, found) FROM (VALUES
	('$.worn.*', '$.worn.head'), ('$.hotbar', '$.hotbar[*]'), ('$.b[*].id', '$.b.id'), ('$.worn.*', '$.worn.a.head'),
	('$.worn', '$.worn.head'), ('$.worn.feet', '$.worn.head'), ('$.worn.*', '$.worn.keyvalue().key'), ('$[*]', '$[*]'),
	('$.l.keyvalue().key', '$."l".keyvalue().key'), ('$.pair[0]', '$.pair[*]'), ('$.b[*] ? (@.kind == 1).id', '$.b[*].id')) AS p (declared, found);
-- the last word counts
SELECT snowflake_migrate.declare_reference('world.heroes', 'kit', 'world.items', path => '$.worn.head');
SELECT column_name, path FROM snowflake_migrate.declared_no_references;
SELECT snowflake_migrate.declare_no_reference('world.heroes', 'kit', path => '$.worn.head');
SELECT snowflake_migrate.declare_no_reference('world.heroes', 'kit');
SELECT snowflake_migrate.declare_no_reference('world.heroes', 'id', path => '$.x');
SELECT snowflake_migrate.declare_no_reference('world.heroes', 'look', path => '$.x[');
SELECT snowflake_migrate.declare_no_reference('world.heroes', 'look', path => '$.**.x');
DELETE FROM snowflake_migrate.declared_references;
DELETE FROM snowflake_migrate.declared_no_references;
DROP SCHEMA a, world CASCADE;

--
-- What columns are called: a key's name, with a word after it; without the word that all tables begin with; a part of their
-- own table
--
CREATE SCHEMA b;
CREATE SCHEMA net;
CREATE TABLE net.hstgrp (groupid bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.group_usage (groupid bigint PRIMARY KEY, hits int);	-- one to one: not where it is made
SELECT snowflake_migrate.declare_reference('net.group_usage', 'groupid', 'net.hstgrp');
CREATE TABLE net.icon_map (iconmapid bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.app_users (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.app_states (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.web_states (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.app_feed (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), parent_id bigint, kind_id bigint);
CREATE TABLE net.app_feed_parents (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.app_feed_kinds (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.user_settings (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), groupid bigint, discovery_groupid bigint, groupid_off bigint, groupid2 bigint, iconmapid bigint);
CREATE TABLE net.app_entry (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), owner_uid bigint, parent bigint, parent_feed bigint, state_id bigint, state int, paid int, valid_days int, androids int, paid_user_id bigint);
CREATE TABLE b.hstgrp AS TABLE net.hstgrp;
CREATE TABLE b.group_usage AS TABLE net.group_usage;
CREATE TABLE b.icon_map AS TABLE net.icon_map;
CREATE TABLE b.app_users AS TABLE net.app_users;
CREATE TABLE b.app_states AS TABLE net.app_states;
CREATE TABLE b.web_states AS TABLE net.web_states;
CREATE TABLE b.app_feed AS TABLE net.app_feed;
CREATE TABLE b.app_feed_parents AS TABLE net.app_feed_parents;
CREATE TABLE b.app_feed_kinds AS TABLE net.app_feed_kinds;
CREATE TABLE b.user_settings AS TABLE net.user_settings;
CREATE TABLE b.app_entry AS TABLE net.app_entry;
SELECT severity, relation, object, problem FROM snowflake_migrate.check('{b}', 'net') WHERE object IS NOT NULL ORDER BY relation, object;
-- a table's name in a column that says nothing of ids: its values have to be keys; where they are of another table, that is said
INSERT INTO b.app_states SELECT g FROM generate_series(1, 4) AS g;
INSERT INTO b.hstgrp SELECT g FROM generate_series(1, 200) AS g;
INSERT INTO b.app_feed_kinds SELECT g FROM generate_series(1001, 1100) AS g;
INSERT INTO b.app_feed SELECT g, NULL, g FROM generate_series(101, 120) AS g;
INSERT INTO b.app_entry (id, state, parent_feed, paid) SELECT g, g % 4 + 1, 1000 + g, g FROM generate_series(1, 40) AS g;
SELECT severity, relation, object, problem, example FROM snowflake_migrate.check('{b}', 'net')
WHERE object IN ('state', 'parent_feed', 'paid', 'kind_id') ORDER BY relation, object;
DELETE FROM snowflake_migrate.declared_references;
DROP SCHEMA b, net CASCADE;
-- a part of a table that two are called as; the one with the same first word; a second version, where there is one; and where
-- neither tells
CREATE SCHEMA b;
CREATE SCHEMA net;
CREATE TABLE net.v4_client_class (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.v6_client_class (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.v4_filters2 (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.v4_zones1 (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.v4_zones2 (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.v6_client_class_options (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), class_id bigint);
CREATE TABLE net.v4_lease (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), class_id bigint, filter_id bigint, zone_id bigint);
CREATE TABLE net.host (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), class_id bigint);
SELECT format('CREATE TABLE b.%I AS TABLE %s', relname, oid::regclass) FROM pg_class WHERE relnamespace = 'net'::regnamespace AND relkind = 'r' ORDER BY relname \gexec
SELECT severity, relation, object, problem FROM snowflake_migrate.check('{b}', 'net') WHERE object <> 'id' ORDER BY relation, object;
DROP SCHEMA b, net CASCADE;
-- whole names: a state of its own table, a version's number, a word more, the end of a name with the same first word; fk and ref;
-- by values: another of the same, and what its own table is called as a part of, before smaller ones; two that are called so
CREATE SCHEMA b;
CREATE SCHEMA net;
CREATE TABLE net.lease_state (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.lease6_types (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.parameter_data_type (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.label_types (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.host_identifier_type (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.app_settings_profiles (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.feeds (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.archived_feeds (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.hosts (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), dhcp_identifier_type int, size int);
CREATE TABLE net.app_prefs (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), profile int, data_type int);
CREATE TABLE net.lease4 (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), state int, lease_type int, parameter_type int, label int,
	fk_host bigint, host_ref bigint, templateid bigint, old_feed_id bigint, feed_id bigint, external_id bigint);
CREATE TABLE net.lease4_note (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), ref_key bigint, thing_id bigint);
SELECT format('CREATE TABLE b.%I AS TABLE %s', relname, oid::regclass) FROM pg_class WHERE relnamespace = 'net'::regnamespace AND relkind = 'r' ORDER BY relname \gexec
SELECT severity, relation, object, problem FROM snowflake_migrate.check('{b}', 'net') WHERE object <> 'id' ORDER BY relation, object;
SELECT format('INSERT INTO b.%I (id) SELECT g FROM generate_series(1, 60) AS g', relname) FROM pg_class WHERE relnamespace = 'net'::regnamespace AND relkind = 'r' AND relnatts = 1 ORDER BY relname \gexec
INSERT INTO b.hosts SELECT g, g, 2000 + g FROM generate_series(1, 50) AS g;
INSERT INTO b.app_prefs SELECT g, g, g FROM generate_series(1, 50) AS g;
INSERT INTO b.lease4 SELECT g, g % 4 + 1, g % 4 + 1, g % 4 + 1, g, g, g, g, g, g + 10, g FROM generate_series(1, 50) AS g;
INSERT INTO b.lease4_note SELECT g, g % 40 + 1, g % 40 + 1 FROM generate_series(1, 50) AS g;
SELECT severity, relation, object, problem, example FROM snowflake_migrate.check('{b}', 'net') WHERE object <> 'id' ORDER BY relation, object;
DROP SCHEMA b, net CASCADE;

-- a name is right, or a smaller table is; by the whole table where its first rows lead to the first ones of another
CREATE SCHEMA b;
CREATE SCHEMA net;
CREATE TABLE net.location (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.warehouse (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.asset (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), location_id bigint, location_ids bigint[]);
CREATE TABLE net.visit (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), location_id bigint, location_no text);
CREATE TABLE net.street (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), location_id bigint);
SELECT format('CREATE TABLE b.%I AS TABLE %s', relname, oid::regclass) FROM pg_class WHERE relnamespace = 'net'::regnamespace AND relkind = 'r' ORDER BY relname \gexec
INSERT INTO b.location SELECT g FROM generate_series(1, 3000) AS g;
INSERT INTO b.warehouse SELECT g FROM generate_series(1, 1200) AS g;
INSERT INTO b.asset SELECT 5000 + g, g % 1200 + 1, ARRAY[g % 1200 + 1] FROM generate_series(1, 1500) AS g;
INSERT INTO b.visit SELECT 5000 + g, g, g::text FROM generate_series(1, 3000) AS g;
INSERT INTO b.street SELECT 5000 + g, g % 3 + 1 FROM generate_series(1, 30) AS g;	-- three of so many keys are hardly the lowest by chance
SELECT relation, object, problem, advice FROM snowflake_migrate.check('{b}', 'net') WHERE object <> 'id' ORDER BY relation, object;
SELECT relation, object, certainty FROM snowflake_migrate.suggest('{b}', 'net') WHERE step = 'reference' ORDER BY relation, object;
DROP SCHEMA b, net CASCADE;
-- a tree has a root
CREATE SCHEMA b;
CREATE SCHEMA net;
CREATE TABLE net.comments (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), parent_id bigint);
CREATE TABLE net.replies (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), parent_id bigint);
CREATE TABLE net.pages (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), parent_id bigint);
SELECT format('CREATE TABLE b.%I AS TABLE %s', relname, oid::regclass) FROM pg_class WHERE relnamespace = 'net'::regnamespace AND relkind = 'r' ORDER BY relname \gexec
INSERT INTO b.comments SELECT g, nullif(g / 2, 0) FROM generate_series(1, 50) AS g;
INSERT INTO b.replies SELECT g, g % 40 + 1 FROM generate_series(1, 60) AS g;
INSERT INTO b.pages SELECT g, g / 2 FROM generate_series(1, 40) AS g;
-- a root alone makes no tree; a whole name, beside a part of the own table; a kind that may be the order's
CREATE TABLE net.attachments (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), parent_id bigint); CREATE TABLE b.attachments AS TABLE net.attachments;
INSERT INTO b.attachments SELECT g, CASE WHEN g > 1 THEN 1 + g % 30 END FROM generate_series(1, 90) AS g;
CREATE TABLE net.categories (id bigint PRIMARY KEY DEFAULT snowflake_nextval()); CREATE TABLE b.categories AS TABLE net.categories;
CREATE TABLE net.product_categories (id bigint PRIMARY KEY DEFAULT snowflake_nextval()); CREATE TABLE b.product_categories AS TABLE net.product_categories;
CREATE TABLE net.products (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), category_id bigint); CREATE TABLE b.products AS TABLE net.products;
INSERT INTO b.categories SELECT g FROM generate_series(1, 30) AS g; INSERT INTO b.product_categories SELECT g FROM generate_series(1, 30) AS g;
INSERT INTO b.products SELECT g, 1 + g % 30 FROM generate_series(1, 100) AS g;
CREATE TABLE net.orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval()); CREATE TABLE b.orders AS TABLE net.orders;
CREATE TABLE net.subscriptions (id bigint PRIMARY KEY DEFAULT snowflake_nextval()); CREATE TABLE b.subscriptions AS TABLE net.subscriptions;
CREATE TABLE net.payments (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), order_id bigint, order_type text); CREATE TABLE b.payments AS TABLE net.payments;
INSERT INTO b.orders SELECT g FROM generate_series(1, 60) AS g; INSERT INTO b.subscriptions SELECT g FROM generate_series(1, 60) AS g;
INSERT INTO b.payments SELECT g, g, CASE WHEN g % 2 = 0 THEN 'subscription' ELSE 'product' END FROM generate_series(1, 60) AS g;
SELECT relation, object, problem FROM snowflake_migrate.check('{b}', 'net') WHERE object <> 'id' ORDER BY relation, object;
SELECT relation, object, certainty FROM snowflake_migrate.suggest('{b}', 'net') WHERE step = 'reference' ORDER BY relation, object;
DROP SCHEMA b, net CASCADE;
-- kinds of ids beside several columns of a table: no more passes over it than for one
CREATE SCHEMA b;
CREATE SCHEMA net;
CREATE TABLE net.one (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), thing_id bigint, thing_type text);
CREATE TABLE net.three (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), thing_id bigint, thing_type text,
	place_id bigint, place_class varchar, target_id text, target_kind text);
CREATE TABLE b.one AS TABLE net.one;
CREATE TABLE b.three AS TABLE net.three;
INSERT INTO b.one SELECT g, g, 'Three' FROM generate_series(1, 20) AS g;
INSERT INTO b.three SELECT 100 + g, g, 'One', CASE WHEN g > 12 THEN g END, 'App\' || chr(64 + g), g, 'Three' FROM generate_series(1, 26) AS g;
BEGIN;
CREATE TEMPORARY TABLE found AS SELECT relation, object, advice FROM snowflake_migrate.check('{b}', 'net') WHERE problem LIKE '%names';
SELECT one.seq_scan = three.seq_scan AS as_many_passes FROM pg_stat_xact_user_tables AS one, pg_stat_xact_user_tables AS three
WHERE one.relid = 'b.one'::regclass AND three.relid = 'b.three'::regclass;
TABLE found ORDER BY 1, 2;
ROLLBACK;
DROP SCHEMA b, net CASCADE;
-- the part that a row of a table plays; measures of it; a kind beside a column that is called like a table, too
CREATE SCHEMA b;
CREATE SCHEMA net;
CREATE TABLE net.accounts (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), max_account int, account_count int);
CREATE TABLE net.order_items (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.transfers (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), from_account bigint, "toAccount" bigint, account_to bigint, at_accounts int);
CREATE TABLE net.versions (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), item_type text, item_id bigint);
CREATE TABLE net.uses (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), item_type text, item_id bigint);
SELECT format('CREATE TABLE b.%I AS TABLE %s', relname, oid::regclass) FROM pg_class WHERE relnamespace = 'net'::regnamespace AND relkind = 'r' ORDER BY relname \gexec
INSERT INTO b.accounts SELECT g, g, g FROM generate_series(1, 40) AS g;
INSERT INTO b.order_items SELECT g FROM generate_series(1, 90) AS g;
INSERT INTO b.transfers SELECT 5000 + g, g, 41 - g, g, g FROM generate_series(1, 40) AS g;
INSERT INTO b.versions SELECT 5000 + g, CASE g % 2 WHEN 0 THEN 'Account' ELSE 'OrderItem' END, g FROM generate_series(1, 40) AS g;
INSERT INTO b.uses SELECT 5000 + g, 'sword', 91 - g FROM generate_series(1, 40) AS g;
SELECT relation, object, problem, advice FROM snowflake_migrate.check('{b}', 'net') WHERE object <> 'id' AND problem NOT LIKE 'may be null%' ORDER BY relation, object;
DROP SCHEMA b, net CASCADE;
-- the rows of the greatest ids are gone: most of what a column holds are keys, and it is asked about
CREATE SCHEMA b;
CREATE SCHEMA net;
CREATE TABLE net.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE net.trips (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), hero_id bigint, from_hero bigint, carrier_id bigint);
CREATE TABLE b.heroes AS SELECT g::bigint AS id, 'h' || g AS name FROM generate_series(1, 900) AS g;
CREATE TABLE b.trips AS SELECT 5000 + g::bigint AS id, h.id AS hero_id, h.id AS from_hero, h.id AS carrier_id
FROM generate_series(1, 910) AS g, LATERAL (SELECT CASE WHEN g > 900 THEN 1000 + g ELSE g END::bigint) AS h (id);
SELECT relation, object, problem, example, advice FROM snowflake_migrate.check('{b}', 'net') WHERE object <> 'id' ORDER BY relation, object;
SELECT * FROM snowflake_migrate.suggest('{b}', 'net') WHERE statement LIKE '%hero%';
DROP SCHEMA b, net CASCADE;
-- tables that are called alike, in one schema and in two: both are told, and neither is sure; of two schemas, the own one's comes first
CREATE FUNCTION pg_temp.make_forum(shop text, forum text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE replace(replace($make$
		CREATE SCHEMA <shop>;
		CREATE SCHEMA <forum>;
		CREATE TABLE <shop>.users (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
		CREATE TABLE <shop>.orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), user_id bigint, buyer_user bigint);
		CREATE TABLE <forum>.users (LIKE <shop>.users INCLUDING ALL);
		CREATE TABLE <forum>.forum_members (LIKE <shop>.users INCLUDING ALL);
		CREATE TABLE <forum>.members (LIKE <shop>.users INCLUDING ALL);
		CREATE TABLE <forum>.admin_topics (LIKE <shop>.users INCLUDING ALL);
		CREATE TABLE <shop>.admin_topics (LIKE <shop>.users INCLUDING ALL);
		CREATE TABLE <forum>.forum_posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), user_id bigint, member_id bigint,
			topic_id bigint, place jsonb, owner_id bigint, owner_type text);
		CREATE TABLE <shop>.app_members (LIKE <shop>.users INCLUDING ALL);
		CREATE TABLE <shop>.app_sales_members (LIKE <shop>.users INCLUDING ALL);
		CREATE TABLE <shop>.app_sales_returns (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), member_id bigint);
	$make$, '<shop>', shop), '<forum>', forum);
END
$$;
SELECT pg_temp.make_forum('shop', 'forum'), pg_temp.make_forum('a_shop', 'a_forum') \g /dev/null
SELECT format('INSERT INTO %s (id) SELECT generate_series(1, 200)', c.oid::regclass) FROM pg_class AS c
WHERE c.relnamespace IN ('a_shop'::regnamespace, 'a_forum'::regnamespace) AND c.relkind = 'r' ORDER BY c.oid \gexec
UPDATE a_shop.orders SET user_id = 201 - id, buyer_user = id;
UPDATE a_shop.app_sales_returns SET member_id = 201 - id;
UPDATE a_forum.forum_posts SET user_id = 201 - id, member_id = id, topic_id = id, place = jsonb_build_object('user_id', id),
	owner_id = id, owner_type = 'User';
SELECT relation, object, problem, advice FROM snowflake_migrate.check('{{a_shop,a_forum}}', targets => '{shop,forum}') WHERE object <> 'id' ORDER BY relation, object;
SELECT relation, object, certainty FROM snowflake_migrate.suggest('{{a_shop,a_forum}}', targets => '{shop,forum}') WHERE step = 'reference' ORDER BY relation, object;
DROP SCHEMA a_shop, a_forum, shop, forum CASCADE;
-- arrays of several persons, or of rows in the plural; numbers that are called so
CREATE SCHEMA b;
CREATE SCHEMA net;
CREATE TABLE net.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.rounds (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), opponents bigint[], home_players int[], participants int, friends int[]);
CREATE TABLE b.players AS SELECT g::bigint AS id FROM generate_series(1, 100) AS g;
CREATE TABLE b.rounds AS SELECT 5000 + g::bigint AS id, ARRAY[g, 101 - g]::bigint[] AS opponents, ARRAY[g] AS home_players, g AS participants,
	ARRAY[0] AS friends
FROM generate_series(1, 100) AS g;
SELECT relation, object, problem FROM snowflake_migrate.check('{b}', 'net') WHERE object <> 'id' ORDER BY relation, object;
DROP SCHEMA b, net CASCADE;
-- domains over domains
CREATE SCHEMA b;
CREATE SCHEMA net;
CREATE DOMAIN net.id AS bigint; CREATE DOMAIN net.player AS net.id;
CREATE TABLE net.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.rounds (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), player_id net.player, player_ids net.player[]);
CREATE TABLE b.players AS SELECT g::bigint AS id FROM generate_series(1, 100) AS g;
CREATE TABLE b.rounds AS SELECT 5000 + g::bigint AS id, g::bigint AS player_id, ARRAY[g, 101 - g]::net.player[] AS player_ids FROM generate_series(1, 100) AS g;
SELECT relation, object, problem FROM snowflake_migrate.check('{b}', 'net') WHERE object <> 'id' AND problem !~ 'may be null' ORDER BY relation, object;
DROP SCHEMA b, net CASCADE;
-- documents: of an id, the member around it says whose; a member that is called like a table, or like somebody, without id
CREATE SCHEMA b;
CREATE SCHEMA net;
CREATE TABLE net.cities (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.guilds (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.logs (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), meta jsonb, few jsonb);
CREATE TABLE b.cities AS SELECT g::bigint AS id FROM generate_series(1, 30) AS g;
CREATE TABLE b.guilds AS SELECT g::bigint AS id FROM generate_series(1, 40) AS g;
CREATE TABLE b.players AS SELECT g::bigint AS id FROM generate_series(1, 200) AS g;
CREATE TABLE b.logs AS SELECT 5000 + g::bigint AS id, jsonb_build_object('id', g, 'guild', jsonb_build_object('id', 1 + g % 30, 'level', 1 + g % 30),
	'cities', jsonb_build_array(jsonb_build_object('_id', 1 + g % 20, 'height', g % 25)), 'player', 1 + g % 30, 'winner', g, 'losers', jsonb_build_array(g)) AS meta,
	CASE WHEN g < 3 THEN jsonb_build_object('player', g, 'lives', g) END AS few
FROM generate_series(1, 200) AS g;
SELECT object, problem, example, advice FROM snowflake_migrate.check('{b}', 'net') WHERE relation = 'net.logs' ORDER BY object, problem;
SELECT object, certainty, reason FROM snowflake_migrate.suggest('{b}', 'net') WHERE step = 'reference' ORDER BY object, reason;
DROP SCHEMA b, net CASCADE;
-- rows that are equal but for what they refer to are not surely the same, nor are those of which a source has some columns only
CREATE SCHEMA b;
CREATE SCHEMA net;
CREATE TABLE net.users (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE, secret text);
CREATE TABLE net.houses (plot text PRIMARY KEY, user_id bigint NOT NULL);
CREATE TABLE net.bans (plot text PRIMARY KEY, owner bigint REFERENCES net.users);
CREATE TABLE net.plots (plot text PRIMARY KEY, size int);
INSERT INTO net.users SELECT g, 'user ' || g, 's' || g FROM generate_series(1, 40) AS g;
INSERT INTO net.houses SELECT 'plot' || g, g FROM generate_series(1, 40) AS g;
INSERT INTO net.bans SELECT 'plot' || g, g FROM generate_series(1, 40) AS g;
INSERT INTO net.plots SELECT 'plot' || g, g FROM generate_series(1, 40) AS g;
CREATE TABLE b.users AS SELECT g::bigint AS id, 'b' || g AS name, 's' AS secret FROM generate_series(1, 40) AS g;
CREATE TABLE b.houses AS TABLE net.houses;
CREATE TABLE b.bans AS TABLE net.bans;
CREATE TABLE b.plots AS TABLE net.plots;
SELECT certainty, relation, reason, statement FROM snowflake_migrate.suggest('{b}', 'net') WHERE step = 'table' ORDER BY relation;
DROP TABLE b.users;
CREATE TABLE b.users AS SELECT g::bigint AS id, 'user ' || g AS name FROM generate_series(1, 3) AS g;
ALTER TABLE b.plots DROP size;
SELECT certainty, relation, reason FROM snowflake_migrate.suggest('{b}', 'net') WHERE step = 'table' AND relation IN ('net.users', 'net.plots') ORDER BY relation;
DROP SCHEMA b, net CASCADE;
-- columns of other types, which the check refuses: the rest is suggested
CREATE SCHEMA b;
CREATE SCHEMA net;
CREATE TABLE net.users (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE net.nodes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), parent_id bigint, created_at timestamptz);
CREATE TABLE net.posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), user_id bigint);
CREATE TABLE b.users AS SELECT g::bigint AS id, 'b' || g AS name FROM generate_series(1, 40) AS g;
CREATE TABLE b.nodes AS SELECT g::bigint AS id, CASE g WHEN 1 THEN NULL WHEN 7 THEN 'abc' ELSE (g / 2)::text END AS parent_id, 7::bigint AS created_at FROM generate_series(1, 40) AS g;
CREATE TABLE b.posts AS SELECT g::bigint AS id, 41 - g AS user_id FROM generate_series(1, 40) AS g;
SELECT certainty, relation, object, reason FROM snowflake_migrate.suggest('{b}', 'net') ORDER BY relation, object;
DROP SCHEMA b, net CASCADE;
-- kinds as Django has them: by the target's ids, once they are known, and none that is yet to come; a text that is no name of a kind
CREATE SCHEMA b;
CREATE SCHEMA net;
CREATE TABLE net.content_type (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), model text UNIQUE);
CREATE TABLE net.items (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.tags (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), content_type_id bigint REFERENCES net.content_type, object_id bigint,
	owner_type text, owner_id bigint);
INSERT INTO net.content_type VALUES (12, 'items');
CREATE TABLE b.content_type AS SELECT * FROM (VALUES (7::bigint, 'items'), (8, 'maps')) AS v (id, model);
CREATE TABLE b.items AS SELECT g::bigint AS id FROM generate_series(1, 40) AS g;
CREATE TABLE b.tags AS SELECT g::bigint AS id, 7::bigint + g % 2 AS content_type_id, g::bigint AS object_id, repeat('a', 100000) || '!b' AS owner_type, g::bigint AS owner_id
FROM generate_series(1, 40) AS g;
SELECT snowflake_migrate.declare_table('net.content_type', 'match', '{model}') \g /dev/null
SELECT object, problem, advice FROM snowflake_migrate.check('{b}', 'net') WHERE relation = 'net.tags' AND problem LIKE '%names' ORDER BY object;
SELECT object, statement FROM snowflake_migrate.suggest('{b}', 'net') WHERE relation = 'net.tags' AND object = 'object_id';
DROP SCHEMA b, net CASCADE;
-- numbers that say of which table ids are, beside a column or in a document: not sure; numbers that are called like several are how many
CREATE SCHEMA b;
CREATE SCHEMA net;
CREATE TABLE net.items (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE net.bags (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), item_type smallint, item_id bigint, doc jsonb, posts int, house_no text);
CREATE TABLE net.forums (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), post int, keys jsonb);
CREATE TABLE net.rewards (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), type text, item_id bigint, post_id bigint);
CREATE TABLE net.drops (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), item_is_pet boolean, item_id bigint);
CREATE TABLE net.teams (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), doc jsonb, mixed jsonb);
CREATE TABLE net.more (id bigint PRIMARY KEY DEFAULT snowflake_nextval()); CREATE TABLE net.most (LIKE net.more INCLUDING ALL);
SELECT format('CREATE TABLE b.%I AS SELECT g::bigint AS id FROM generate_series(1, 60) AS g', t.name) FROM unnest('{items,posts,more,most}'::text[]) AS t (name) \gexec
CREATE TABLE b.bags AS SELECT 5000 + g::bigint AS id, (g % 2)::smallint AS item_type, g::bigint AS item_id, jsonb_build_object(
	'item', jsonb_build_object('type', 'pet', 'id', g), 'item_kind', 'x', 'item_id', g, 'items', jsonb_build_array(jsonb_build_object('kind', 'pet', 'id', g))) AS doc,
	g AS posts, g::text AS house_no
FROM generate_series(1, 60) AS g;
CREATE TABLE b.forums AS SELECT 5000 + g::bigint AS id, g AS post, '{"hotkeys": {"1": "x", "2": "y"}}'::jsonb AS keys FROM generate_series(1, 60) AS g;
CREATE TABLE b.rewards AS SELECT 5000 + g::bigint AS id, CASE g % 2 WHEN 0 THEN 'pet' ELSE 'item' END AS type, g::bigint AS item_id, g::bigint AS post_id
FROM generate_series(1, 60) AS g;
CREATE TABLE b.drops AS SELECT 5000 + g::bigint AS id, g % 2 = 0 AS item_is_pet, g::bigint AS item_id FROM generate_series(1, 60) AS g;
CREATE TABLE b.teams AS SELECT 5000 + g::bigint AS id, jsonb_build_object('1', jsonb_build_object('item_id', g), 'main', jsonb_build_object('item_id', g)) AS doc,
	jsonb_build_object('items', jsonb_build_object('1', jsonb_build_object('id', g), 'post', jsonb_build_object('id', g))) AS mixed
FROM generate_series(1, 60) AS g;
SELECT relation, object, problem FROM snowflake_migrate.check('{b}', 'net') WHERE object <> 'id' ORDER BY relation, object, problem;
SELECT certainty, relation, object, reason FROM snowflake_migrate.suggest('{b}', 'net') WHERE step = 'reference' ORDER BY object, relation, reason;
DROP SCHEMA b, net CASCADE;
-- names that say more than they mean: a table's own, another system's id, a type of anything, slots; never sure, as is a kind whose class
-- has a namesake in its module
CREATE SCHEMA b;
CREATE SCHEMA net;
DO $$
DECLARE
	s name;
BEGIN
	FOREACH s IN ARRAY '{b,net}'::name[] LOOP
		PERFORM set_config('search_path', s || ', public', true);
		CREATE TABLE items (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), item_id bigint, parent_item_id bigint, note text);
		CREATE TABLE users (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
		CREATE TABLE product_types (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
		CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
		CREATE TABLE shop_orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
		CREATE TABLE tickets (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), type_id bigint, user_id bigint, discord_user_id bigint, slots jsonb, mail jsonb, doc jsonb, years jsonb);
		CREATE TABLE loot (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), item_id bigint, reward_type smallint);
		CREATE TABLE drops (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), item_id bigint, is_user boolean);
		CREATE TABLE comments (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), subject_type text, subject_id bigint);
		CREATE TABLE logs (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), user_id text);
		CREATE TABLE members (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), user_id bigint, order_id bigint);
		CREATE TABLE unlocks (toon int, stage int, PRIMARY KEY (toon, stage));
	END LOOP;
END
$$;
INSERT INTO b.users SELECT g, 'user ' || g FROM generate_series(1, 60) AS g;
INSERT INTO b.product_types SELECT g, 'type ' || g FROM generate_series(1, 60) AS g;
INSERT INTO b.orders SELECT g, 'order ' || g FROM generate_series(1, 60) AS g;
INSERT INTO b.shop_orders SELECT g, 'shop order ' || g FROM generate_series(1, 60) AS g;
INSERT INTO b.items SELECT g, 1 + g * 7 % 60, nullif(g - 1, 0), 'x' FROM generate_series(1, 60) AS g;
INSERT INTO b.tickets SELECT g, g, g, g, jsonb_build_object('items', jsonb_build_object(g::text, jsonb_build_object('name', 'x'))),
	jsonb_build_array(jsonb_build_object('type', 'pet', 'item_id', g)), jsonb_build_object('type_id', g, 'legacy_user_id', g,
		'a', jsonb_build_object('item_type', 'pet', 'item', jsonb_build_object('id', g)),
		'b', jsonb_build_object('type', 'pet', 'items', jsonb_build_array(jsonb_build_object('id', g)))),
	jsonb_build_object((2000 + g)::text, jsonb_build_object('item', 900000 + g), 'main', jsonb_build_object('item', g)) FROM generate_series(1, 60) AS g;
INSERT INTO b.loot SELECT g, g, g % 2 FROM generate_series(1, 60) AS g;
INSERT INTO b.drops SELECT g, g, g % 2 = 0 FROM generate_series(1, 60) AS g;
INSERT INTO b.comments SELECT g, CASE g % 4 WHEN 3 THEN E'Modules\\Shop\\Entities\\Order' WHEN 0 THEN 'Shop::Order' WHEN 1 THEN E'App\\Models\\User' ELSE 'ProductType' END, g FROM generate_series(1, 60) AS g;
INSERT INTO b.logs SELECT g, CASE WHEN g > 55 THEN 'system' WHEN g = 50 THEN '4711' ELSE g::text END FROM generate_series(1, 60) AS g;
INSERT INTO b.members SELECT g, 61 - g, g FROM generate_series(1, 60) AS g;
INSERT INTO net.members SELECT g, g, g FROM generate_series(1, 60) AS g;
INSERT INTO b.unlocks SELECT g, g % 7 FROM generate_series(1, 60) AS g; INSERT INTO net.unlocks TABLE b.unlocks;
SELECT certainty, relation, object, reason FROM snowflake_migrate.suggest('{b}', 'net') WHERE step IN ('table', 'reference') ORDER BY relation, object, reason;
SELECT statement FROM snowflake_migrate.suggest('{b}', 'net') WHERE relation = 'net.comments' AND step = 'reference';
-- an older source without the column that says of which table
CREATE SCHEMA old;
CREATE TABLE old.comments AS SELECT g::bigint AS id, g::bigint AS subject_id FROM generate_series(1, 60) AS g;
SELECT certainty, object, reason FROM snowflake_migrate.suggest('{b,old}', 'net') WHERE relation = 'net.comments' AND step = 'reference';
DROP SCHEMA b, net, old CASCADE;
-- more than ten kinds of ids in one column
CREATE SCHEMA b;
CREATE SCHEMA net;
SELECT format('CREATE TABLE %1$s.thing%2$s (id bigint PRIMARY KEY DEFAULT public.snowflake_nextval()); INSERT INTO %1$s.thing%2$s SELECT generate_series(1, 12)', s, n)
	FROM unnest('{b,net}'::text[]) AS s, generate_series(1, 12) AS n \gexec
CREATE TABLE net.notices (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), subject_type text, subject_id bigint);
CREATE TABLE b.notices AS SELECT g::bigint AS id, 'thing' || g AS subject_type, g::bigint AS subject_id FROM generate_series(1, 12) AS g;
SELECT count(*) FROM snowflake_migrate.suggest('{b}', 'net') AS s, string_to_table(s.statement, E'\n') AS l WHERE s.relation = 'net.notices' AND l LIKE 'SELECT %declare_reference%';
DROP SCHEMA b, net CASCADE;
-- a list of numbers is no count, nor is a number that is called like another row of the same table; a plain one may be
CREATE SCHEMA b;
CREATE SCHEMA net;
CREATE TABLE net.gifts (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE net.letters (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), reply_to bigint, attachments bigint[], mark int);
CREATE TABLE b.gifts AS SELECT g AS id, 'gift ' || g AS name FROM generate_series(1, 60) AS g;
CREATE TABLE b.letters AS SELECT g AS id, nullif(g - 1, 0) AS reply_to, ARRAY[g, g % 7 + 1] AS attachments, g % 5 + 1 AS mark FROM generate_series(1, 40) AS g;
SELECT severity, object, problem FROM snowflake_migrate.check('{b}', 'net') WHERE severity <> 'info' ORDER BY object;
DROP SCHEMA b, net CASCADE;
