-- References of other types than integers: those that hold new ids are renumbered, arrays of them too; others are errors.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\pset format unaligned
CREATE SCHEMA realm;
CREATE SCHEMA west;
CREATE DOMAIN merge_types_short AS varchar(7);
CREATE DOMAIN merge_types_texts AS text[];
CREATE TABLE realm.people (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text NOT NULL);
CREATE TABLE realm.teams (
	id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
	in_text text, in_varchar varchar(19), in_char char(19), in_numeric numeric(21,2), in_bigint bigint,
	texts text[], varchars varchar(19)[], numerics numeric[], bigints bigint[], domains merge_types_texts, seen text[]
);
CREATE TABLE west.people (LIKE realm.people INCLUDING ALL);
CREATE TABLE west.teams (LIKE realm.teams INCLUDING ALL);
INSERT INTO west.people SELECT g, 'person ' || g FROM generate_series(1, 40) AS g;
INSERT INTO west.teams
	SELECT g, g + 1, g + 2, g + 3, g + 4, g + 5, ARRAY[(g + 6)::text, 'nobody', NULL, ''], ARRAY[g + 7, g + 8], ARRAY[g + 9, NULL], ARRAY[g + 10],
		ARRAY[(g + 11)::text], ARRAY[(g + 12)::text, '999', NULL]
	FROM generate_series(1, 20) AS g;
INSERT INTO west.teams (id, texts, numerics) VALUES (21, '{}', NULL);

-- What the values tell.
SELECT object, problem FROM snowflake_migrate.check('{west}', 'realm') WHERE severity = 'warning' ORDER BY object COLLATE "C";
SELECT snowflake_migrate.declare_reference('realm.teams', c, 'realm.people')
FROM unnest('{in_text,in_varchar,in_char,in_numeric,in_bigint,texts,varchars,numerics,bigints,domains}'::text[]) AS c \g /dev/null
SELECT snowflake_migrate.declare_reference('realm.teams', 'seen', 'realm.people', dangling => 'keep') \g /dev/null
SELECT severity, object, problem FROM snowflake_migrate.check('{west}', 'realm');
CALL snowflake_migrate.merge('{west}', 'realm', '{565}') \gset

-- By names, as they were.
CREATE FUNCTION pg_temp.seen(team text, people text) RETURNS TABLE (n bigint, line text) LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY EXECUTE format($query$
		WITH name AS (SELECT p.id::text, p.name FROM %2$s AS p)
		SELECT row_number() OVER (ORDER BY t.id), concat_ws(' | ',
			(SELECT string_agg(n.name, ',' ORDER BY v.i)
			 FROM unnest(ARRAY[t.in_text, t.in_varchar, rtrim(t.in_char), trim_scale(t.in_numeric)::text, t.in_bigint::text]) WITH ORDINALITY AS v (value, i)
				LEFT JOIN name AS n ON n.id = v.value),
			(SELECT string_agg(coalesce(n.name, 'text ' || v.value, 'null'), ',' ORDER BY v.i)
			 FROM unnest(t.texts || t.varchars::text[] || t.numerics::text[] || t.bigints::text[] || t.domains::text[] || t.seen) WITH ORDINALITY AS v (value, i)
				LEFT JOIN name AS n ON n.id = v.value))
		FROM %1$s AS t
	$query$, team, people);
END
$$;
SELECT count(*) AS teams, count(*) FILTER (WHERE s.line = r.line) AS equal
FROM pg_temp.seen('west.teams', 'west.people') AS s JOIN pg_temp.seen('realm.teams', 'realm.people') AS r USING (n);
SELECT line FROM pg_temp.seen('realm.teams', 'realm.people') WHERE n IN (1, 21) ORDER BY n;
SELECT * FROM snowflake_migrate.verify(:run);
BEGIN;
UPDATE realm.teams SET texts[1] = (SELECT id FROM realm.people WHERE name = 'person 1') WHERE in_text = (SELECT id::text FROM realm.people WHERE name = 'person 2');
SELECT relation, problem, count FROM snowflake_migrate.verify(:run);
ROLLBACK;
-- Newer rows refer to them, in each of the forms.
SELECT set_config('test.run', :'run', false) \g /dev/null
CREATE FUNCTION pg_temp.refused(insert_ text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE insert_;
	PERFORM snowflake_migrate_internal.refuse_newer(current_setting('test.run')::bigint, NULL, NULL);
	RETURN 'not refused';
EXCEPTION WHEN object_not_in_prerequisite_state OR foreign_key_violation OR object_in_use THEN
	RETURN regexp_replace(SQLERRM, '[0-9]+', 'N', 'g');
END
$$;
SELECT c AS column, pg_temp.refused(format('INSERT INTO realm.teams (%I) SELECT %s FROM realm.people AS p LIMIT 1', c, v))
FROM (VALUES ('in_text', 'p.id'), ('in_numeric', 'p.id'), ('texts', 'ARRAY[''x'', p.id::text]'), ('numerics', 'ARRAY[p.id]'),
	('domains', 'ARRAY[p.id]'), ('bigints', 'ARRAY[p.id]'), ('texts', 'ARRAY[''x'', NULL]')) AS x (c, v);
CALL snowflake_migrate.rollback(:run);
SELECT (SELECT count(*) FROM realm.teams) AS teams, (SELECT count(*) FROM realm.people) AS people;

-- Ids have up to 19 digits: what would cut, round or refuse them is an error before the merge.
CREATE TABLE realm.narrow (
	id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
	a varchar(18), b char(18), c numeric(18), d numeric(20,2), e numeric(19,-2), f real, g double precision, h merge_types_short, i "char",
	j varchar(5)[], k numeric(5)[], l float8[], m int, n uuid
);
CREATE TABLE west.narrow (LIKE realm.narrow INCLUDING ALL);
SELECT snowflake_migrate.declare_reference('realm.narrow', c, 'realm.people') FROM unnest('{a,b,c,d,e,f,g,h,i,j,k,l,m,n}'::text[]) AS c \g /dev/null
SELECT object, problem, advice FROM snowflake_migrate.check('{west}', 'realm') WHERE severity = 'error' ORDER BY object COLLATE "C";
SET client_min_messages = error;
DROP SCHEMA realm, west CASCADE;
DROP DOMAIN merge_types_short, merge_types_texts;
