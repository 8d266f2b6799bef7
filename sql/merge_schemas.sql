-- Several schemas of each source, which refer to each other, are merged into as many of the target in one run.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\pset format unaligned
CREATE FUNCTION pg_temp.make(prefix text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE replace($make$
		CREATE SCHEMA {}person;
		CREATE TABLE {}person.person (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text NOT NULL UNIQUE);
		CREATE SCHEMA {}sales;
		/* The same name in both schemas, and keys that are references from one to the other, both ways. */
		CREATE TABLE {}sales.person (
			id bigint PRIMARY KEY REFERENCES {}person.person, since date NOT NULL DEFAULT '2026-01-01');
		CREATE TABLE {}sales.orders (
			id bigint PRIMARY KEY DEFAULT snowflake_nextval(), buyer bigint NOT NULL REFERENCES {}sales.person,
			seller bigint REFERENCES {}person.person, item text NOT NULL);
		CREATE TABLE {}person.last_order (
			person bigint PRIMARY KEY REFERENCES {}person.person, orders bigint NOT NULL REFERENCES {}sales.orders,
			first_order_id bigint);
	$make$, '{}', prefix);
END
$$;
SELECT pg_temp.make(p.prefix) FROM unnest('{"",east_,west_}'::text[]) AS p (prefix) \g /dev/null
-- Equal ids, other people: and in the target, too.
CREATE FUNCTION pg_temp.fill(prefix text, of text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE replace(replace($fill$
		INSERT INTO {}person.person SELECT g, '<of> ' || g FROM generate_series(1, 20) AS g;
		INSERT INTO {}sales.person SELECT g FROM generate_series(1, 20, 2) AS g;
		INSERT INTO {}sales.orders SELECT g, g % 10 * 2 + 1, g % 20 + 1, '<of> ' || g FROM generate_series(1, 50) AS g;
		INSERT INTO {}person.last_order SELECT g, 50 - g, g + 1 FROM generate_series(1, 20, 3) AS g;
	$fill$, '{}', prefix), '<of>', of);
END
$$;
SELECT pg_temp.fill('', 'own'), pg_temp.fill('east_', 'east'), pg_temp.fill('west_', 'west') \g /dev/null
-- By natural keys: what refers to whom.
CREATE FUNCTION pg_temp.seen(prefix text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY EXECUTE replace($seen$
		SELECT concat_ws(', ', o.item, 'bought by', b.name, 'sold by', s.name, 'as person', p.name, 'last of', l.name, 'after', f.item)
		FROM {}sales.orders AS o JOIN {}sales.person AS c ON c.id = o.buyer JOIN {}person.person AS b ON b.id = c.id
			LEFT JOIN {}person.person AS s ON s.id = o.seller
			LEFT JOIN {}sales.person AS d ON d.id = o.seller LEFT JOIN {}person.person AS p ON p.id = d.id
			LEFT JOIN {}person.last_order AS x ON x.orders = o.id LEFT JOIN {}person.person AS l ON l.id = x.person
			LEFT JOIN {}sales.orders AS f ON f.id = x.first_order_id
	$seen$, '{}', prefix);
END
$$;
CREATE TEMPORARY TABLE wanted AS
	SELECT pg_temp.seen(p.prefix) AS line FROM unnest('{"",east_,west_}'::text[]) AS p (prefix);
CREATE TEMPORARY TABLE former AS SELECT pg_temp.seen('') AS line;

-- One schema after the other, strangers would be referred to: refused.
SELECT severity, relation, object, problem, advice FROM snowflake_migrate.check('{east_sales}', 'sales')
	WHERE severity = 'error';
-- A reference without a foreign key, from one schema to the other.
SELECT severity, relation, object, problem, advice
	FROM snowflake_migrate.check('{{east_person,east_sales},{west_person,west_sales}}', targets => '{person,sales}')
	WHERE severity <> 'info';
SELECT snowflake_migrate.declare_reference('person.last_order', 'first_order_id', 'sales.orders');
SELECT severity, source, relation, object, problem, count
	FROM snowflake_migrate.check('{{east_person,east_sales},{west_person,west_sales}}', targets => '{person,sales}');
SELECT DISTINCT severity, problem FROM snowflake_migrate.check('{east_person}', targets => '{person}')
	WHERE severity = 'error';

-- Bad input: nothing happens.
SELECT FROM snowflake_migrate.check('{{east_person,east_sales}}', '{person,sales}');
SELECT FROM snowflake_migrate.check('{east_person}', '{person,sales}');
SELECT FROM snowflake_migrate.check('{{east_person,east_sales}}', targets => '{}');
SELECT FROM snowflake_migrate.check('{}', targets => '{person,sales}');
SELECT FROM snowflake_migrate.check('{{east_person,east_sales}}', targets => NULL::name[]);
SELECT FROM snowflake_migrate.check('{{east_person,east_sales}}', targets => '{person,NULL}');
SELECT FROM snowflake_migrate.check('{{east_person,NULL}}', targets => '{person,sales}');
SELECT FROM snowflake_migrate.check('{{east_person,east_sales}}', targets => '{{person,sales}}');
SELECT FROM snowflake_migrate.check('{east_person,east_sales}', targets => '{person,sales}');
SELECT FROM snowflake_migrate.check('{{east_person,east_sales},{west_person,west_sales}}', targets => '{person}');
SELECT FROM snowflake_migrate.check('{{east_person,east_sales},{east_person,west_sales}}', targets => '{person,sales}');
SELECT FROM snowflake_migrate.check('{{east_person,east_sales}}', targets => '{person,person}');
SELECT FROM snowflake_migrate.check('{{east_person,person}}', targets => '{person,sales}');
SELECT FROM snowflake_migrate.check('{{east_person,nowhere}}', targets => '{person,sales}');
SELECT FROM snowflake_migrate.check('{{east_person,east_sales}}', targets => '{person,nowhere}');
CALL snowflake_migrate.merge('{{east_person,east_sales},{west_person,west_sales}}', targets => '{person,sales}', nodes => '{560}');

-- A dry run, and the merge, as doc/merging.md has it, in small batches.
CALL snowflake_migrate.merge('{{east_person,east_sales},{west_person,west_sales}}', targets => '{person,sales}', nodes => '{560,561}',
	dry_run => true) \g /dev/null
SELECT count(*) = 0 AS nothing_came FROM ((SELECT pg_temp.seen('') EXCEPT ALL TABLE former) UNION ALL (TABLE former EXCEPT ALL SELECT pg_temp.seen(''))) AS d;
CALL snowflake_migrate.merge('{{east_person,east_sales},{west_person,west_sales}}', targets => '{person,sales}',
    nodes => '{1021,1022}', batch_size => 7) \gset
SELECT sources, schemas, targets, nodes, state FROM snowflake_migrate.runs WHERE runs.run = :run;
SELECT count(*) AS lines FROM wanted;
(SELECT pg_temp.seen('') EXCEPT ALL TABLE wanted) UNION ALL (TABLE wanted EXCEPT ALL SELECT pg_temp.seen(''));
SELECT * FROM snowflake_migrate.verify(:run);
SELECT source, relation, rows_done, rows_to_do FROM snowflake_migrate.progress WHERE run = :run ORDER BY 1, 2;
SELECT DISTINCT source, relation, action FROM snowflake_migrate.map WHERE run = :run ORDER BY 1, 2, 3;
-- A reference between the schemas that was changed is seen.
BEGIN;
UPDATE sales.orders AS o SET seller = (SELECT id FROM person.person WHERE name = 'own 3') WHERE item = 'west 5';
SELECT source, relation, problem, count FROM snowflake_migrate.verify(:run);
ROLLBACK;

-- The same call again; and others on one of its schemas.
CALL snowflake_migrate.merge('{{east_person,east_sales},{west_person,west_sales}}', targets => '{person,sales}', nodes => '{1021,1022}') \g /dev/null
SELECT pg_temp.make('north_'), pg_temp.fill('north_', 'north') \g /dev/null
-- What a call says, without numbers of runs.
CREATE FUNCTION pg_temp.said(sources name[], targets name[], run bigint DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
BEGIN
	CALL snowflake_migrate.merge(sources, targets => targets, nodes => '{562}', run => run);
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN regexp_replace(concat_ws(' | ', SQLERRM, nullif(detail, '')), '([Mm]erge) [0-9]+', '\1 N', 'g');
END
$$;
SELECT pg_temp.said('{{west_person,north_sales}}', '{person,sales}');
SELECT pg_temp.said('{west_person}', '{person}');
SELECT pg_temp.said('{{north_person,north_sales}}', '{person,sales}', 0);
-- Newer references from the other schema are in the way of a rollback.
SELECT set_config('test.run', :'run', false) \g /dev/null
INSERT INTO sales.person SELECT id FROM person.person WHERE name = 'east 2';
DO $$
BEGIN
	CALL snowflake_migrate.rollback(current_setting('test.run')::bigint);
EXCEPTION WHEN OTHERS THEN
	RAISE WARNING '%', regexp_replace(SQLERRM, '[0-9]+', 'N', 'g');
END
$$;
DELETE FROM sales.person WHERE id = (SELECT id FROM person.person WHERE name = 'east 2');
CALL snowflake_migrate.rollback(:run);
(SELECT pg_temp.seen('') EXCEPT ALL TABLE former) UNION ALL (TABLE former EXCEPT ALL SELECT pg_temp.seen(''));
-- Afterwards a single schema may be a source again, and the order of the targets is the caller's.
CALL snowflake_migrate.merge('{{east_sales,east_person},{west_sales,west_person}}', targets => '{sales,person}', nodes => '{563,564}') \gset
(SELECT pg_temp.seen('') EXCEPT ALL TABLE wanted) UNION ALL (TABLE wanted EXCEPT ALL SELECT pg_temp.seen(''));
SELECT * FROM snowflake_migrate.verify(:run);

SET client_min_messages = error;
DO $$
DECLARE
	s name;
BEGIN
	FOR s IN SELECT nspname FROM pg_namespace WHERE nspname ~ '^(snowflake_merge_.*|((east|west|north)_)?(person|sales))$' LOOP
		EXECUTE format('DROP SCHEMA %I CASCADE', s);
	END LOOP;
END
$$;
