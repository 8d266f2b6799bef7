-- Schemas of a source that a merge has brought before: with others of the same source, the maps of that merge count.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\pset format unaligned
CREATE FUNCTION pg_temp.make(prefix text, of text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE replace(replace($make$
		CREATE SCHEMA {}folk;
		CREATE TABLE {}folk.person (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text NOT NULL UNIQUE);
		CREATE TABLE {}folk.country (id int PRIMARY KEY, code text NOT NULL UNIQUE);
		CREATE SCHEMA {}trade;
		CREATE TABLE {}trade.customer (id bigint PRIMARY KEY REFERENCES {}folk.person, country int REFERENCES {}folk.country);
		CREATE TABLE {}trade.orders (
			id bigint PRIMARY KEY DEFAULT snowflake_nextval(), item text NOT NULL, buyer bigint NOT NULL REFERENCES {}trade.customer,
			seller bigint REFERENCES {}folk.person, helper_ids bigint[], seen jsonb);
		INSERT INTO {}folk.person SELECT g, '<of> ' || g FROM generate_series(1, 20) AS g;
		INSERT INTO {}folk.country VALUES (1, 'AT'), (2, 'BE');
		INSERT INTO {}trade.customer SELECT g, g % 2 + 1 FROM generate_series(1, 20, 2) AS g;
		INSERT INTO {}trade.orders SELECT g, '<of> ' || g, g % 10 * 2 + 1, g % 20 + 1, ARRAY[g % 20 + 1, 3], jsonb_build_object('by', g % 7 + 1)
			FROM generate_series(1, 50) AS g;
	$make$, '{}', prefix), '<of>', of);
END
$$;
SELECT pg_temp.make('', 'own'), pg_temp.make('east_', 'east'), pg_temp.make('west_', 'west') \g /dev/null
-- By natural keys: what refers to whom.
CREATE FUNCTION pg_temp.seen(prefix text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY EXECUTE replace($seen$
		SELECT concat_ws(', ', o.item, 'bought by', b.name, 'in', y.code, 'sold by', s.name, 'helped by',
			(SELECT string_agg(h.name, ' and ' ORDER BY e.n) FROM unnest(o.helper_ids) WITH ORDINALITY AS e (id, n) JOIN {}folk.person AS h ON h.id = e.id),
			'seen by', v.name)
		FROM {}trade.orders AS o JOIN {}trade.customer AS c ON c.id = o.buyer JOIN {}folk.person AS b ON b.id = c.id
			JOIN {}folk.country AS y ON y.id = c.country LEFT JOIN {}folk.person AS s ON s.id = o.seller
			LEFT JOIN {}folk.person AS v ON v.id = (o.seen ->> 'by')::bigint
	$seen$, '{}', prefix);
END
$$;
CREATE TEMPORARY TABLE wanted AS SELECT pg_temp.seen(p.prefix) AS line FROM unnest('{"",east_,west_}'::text[]) AS p (prefix);
SELECT snowflake_migrate.declare_table('folk.country', 'same_id');
SELECT snowflake_migrate.declare_reference('trade.orders', 'helper_ids', 'folk.person');
SELECT snowflake_migrate.declare_reference('trade.orders', 'seen', 'folk.person', path => '$.by');
CREATE FUNCTION pg_temp.numberless(message text) RETURNS text LANGUAGE sql AS $$ SELECT regexp_replace(message, '(merge) [0-9]+', '\1 N', 'gi') $$;
CREATE FUNCTION pg_temp.said(sources name[], targets name[], target_in_use boolean DEFAULT false) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	run bigint;
BEGIN
	CALL snowflake_migrate.merge(sources, targets => targets, nodes => '{590,591}', target_in_use => target_in_use, run => run);
	RETURN 'merged';
EXCEPTION WHEN OTHERS THEN
	RETURN pg_temp.numberless(SQLERRM);
END
$$;
CREATE FUNCTION pg_temp.taken_back(run bigint) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	CALL snowflake_migrate.rollback(run);
EXCEPTION WHEN OTHERS THEN
	RETURN pg_temp.numberless(SQLERRM);
END
$$;

-- The persons of one source first; then all of both.
CALL snowflake_migrate.merge('{east_folk}', 'folk', '{592}') \gset former_
DELETE FROM folk.person WHERE name = 'east 20';
INSERT INTO east_folk.person VALUES (21, 'east 21');
-- An order of one that is gone, and of one that is not merged.
UPDATE east_trade.orders SET seller = 2 WHERE seller = 20;
UPDATE east_trade.orders SET seller = CASE id WHEN 1 THEN 20 ELSE 21 END WHERE id IN (1, 2);
UPDATE east_trade.orders SET helper_ids = '{1}' WHERE 20 = ANY (helper_ids);
SELECT severity, source, relation, object, pg_temp.numberless(problem) AS problem, count, example
	FROM snowflake_migrate.check('{{east_folk,east_trade},{west_folk,west_trade}}', targets => '{folk,trade}')
	WHERE severity <> 'info' OR problem LIKE 'merge %' ORDER BY 1, 2, 3, 4;
UPDATE east_trade.orders SET seller = 3 WHERE seller IN (20, 21);
DELETE FROM wanted;
INSERT INTO wanted SELECT pg_temp.seen(p.prefix) FROM unnest('{"",east_,west_}'::text[]) AS p (prefix);
-- What must not come again, or come of another source.
SELECT pg_temp.said('{{east_folk},{west_folk}}', '{folk}');
SELECT pg_temp.said('{{west_folk,east_trade},{east_folk,west_trade}}', '{trade,folk}');
SELECT pg_temp.said('{{east_folk,east_trade},{west_folk,west_trade}}', '{folk,trade}', target_in_use => true);
CALL snowflake_migrate.merge('{{east_trade,east_folk},{west_trade,west_folk}}', targets => '{trade,folk}', nodes => '{593,594}', batch_size => 7) \gset
SELECT count(*) AS lines FROM wanted;
(SELECT pg_temp.seen('') EXCEPT ALL TABLE wanted) UNION ALL (TABLE wanted EXCEPT ALL SELECT pg_temp.seen(''));
SELECT * FROM snowflake_migrate.verify(:run);
SELECT * FROM snowflake_migrate.verify(:former_run);
SELECT relation, source, action, count(*) FROM snowflake_migrate.map WHERE run = :run GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;
-- What would be another source's.
SELECT pg_temp.make('north_', 'north') \g /dev/null
SELECT pg_temp.said('{{east_folk,north_trade}}', '{folk,trade}');
-- A reference by a former map that was changed is seen.
BEGIN;
UPDATE trade.orders SET seller = (SELECT id FROM folk.person WHERE name = 'own 3') WHERE item = 'east 5';
SELECT source, relation, problem, count FROM snowflake_migrate.verify(:run);
ROLLBACK;
-- The way back, in order.
SELECT pg_temp.taken_back(:former_run);
CALL snowflake_migrate.rollback(:run);
SELECT (SELECT count(*) FROM trade.orders) AS orders, count(*) AS persons, count(*) FILTER (WHERE name LIKE 'east%') AS former FROM folk.person;
CALL snowflake_migrate.rollback(:former_run);
SELECT count(*) AS persons FROM folk.person;

DELETE FROM snowflake_migrate.declared_tables;
DELETE FROM snowflake_migrate.declared_references;
SET client_min_messages = error;
DO $$
DECLARE
	s name;
BEGIN
	FOR s IN SELECT nspname FROM pg_namespace WHERE nspname ~ '^(snowflake_merge_.*|((east|west|north)_)?(folk|trade))$' LOOP
		EXECUTE format('DROP SCHEMA %I CASCADE', s);
	END LOOP;
END
$$;
