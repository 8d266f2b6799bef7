-- A merge that is copied range by range: what is read for each, and what of one that is broken off is taken back.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\set VERBOSITY terse
CREATE SCHEMA far; CREATE SCHEMA near;
CREATE ROLE regress_ranges;
SELECT snowflake_migrate.grant_to('regress_ranges');

CREATE FUNCTION refused(run bigint) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM snowflake_migrate_internal.rollback_start(run, true);
	RETURN NULL;
EXCEPTION WHEN OTHERS THEN RETURN replace(SQLERRM, run::text, 'N');
END $$;
-- rows that somebody has written under keys that were still to come stay, and no others
CREATE TABLE far.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
CREATE TABLE far.titles (title text PRIMARY KEY, note text);
CREATE TABLE far.seats (no int, place text, note text, player_id bigint REFERENCES far.players, PRIMARY KEY (no, place));
CREATE TABLE near.players (id serial PRIMARY KEY, name text);
CREATE TABLE near.titles (title text PRIMARY KEY, note text);
CREATE TABLE near.seats (no int, place text, note text, player_id int REFERENCES near.players, PRIMARY KEY (no, place));
INSERT INTO near.players (name) SELECT 'player ' || i FROM generate_series(1, 10) AS i;
INSERT INTO near.titles SELECT 'title ' || i, 'near' FROM generate_series(1, 10) AS i;
INSERT INTO near.seats SELECT i, 'left', 'near', 1 + i % 10 FROM generate_series(1, 100) AS i;
GRANT USAGE ON SCHEMA far, near TO regress_ranges;
GRANT SELECT ON ALL TABLES IN SCHEMA near TO regress_ranges;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA far TO regress_ranges;
SET ROLE regress_ranges;
SELECT snowflake_migrate_internal.start('{{near}}', '{far}', '{660}', 10, false, false, false, NULL, true) AS run \gset
RESET ROLE;
INSERT INTO far.titles VALUES ('title 5', 'somebody''s'); INSERT INTO far.seats VALUES (45, 'left', 'somebody''s', NULL);
SET ROLE regress_ranges;
CALL snowflake_migrate.merge('{near}', 'far', '{660}', batch_size => 10);
RESET ROLE;
DELETE FROM far.titles;
SET ROLE regress_ranges;
CALL snowflake_migrate.merge('{near}', 'far', '{660}', batch_size => 10);
RESET ROLE;
INSERT INTO far.titles VALUES ('somebody''s', 'somebody''s');
SELECT relation, rows_done FROM snowflake_migrate.progress WHERE run = :run ORDER BY 1;
-- they refer to what the merge brought
UPDATE far.seats SET player_id = (SELECT min(id) FROM far.players) WHERE no = 45;
SET ROLE regress_ranges;
SELECT refused(:run);
RESET ROLE;
UPDATE far.seats SET player_id = NULL WHERE no = 45;
SET ROLE regress_ranges;
CALL snowflake_migrate.rollback(:run);
RESET ROLE;
SELECT (SELECT count(*) FROM far.players) AS players, (SELECT string_agg(title || ', ' || note, '; ') FROM far.titles) AS titles,
	(SELECT string_agg(no || ', ' || note, '; ') FROM far.seats) AS seats;
DELETE FROM far.titles; DELETE FROM far.seats;

-- so of several workers, who have copied some ranges and not others
SELECT snowflake_migrate_internal.start('{{near}}', '{far}', '{661}', 10, false, false, false, NULL, true) AS run \gset
INSERT INTO far.seats VALUES (45, 'left', 'somebody''s', NULL);
CALL snowflake_migrate.merge('{near}', 'far', '{661}', batch_size => 10, jobs => 2);
SELECT after, position FROM snowflake_migrate_internal.plan_batches WHERE run = :run AND copied_by IS NULL AND after = '40';
SELECT count(*) > 0 AS copied FROM far.players;
CALL snowflake_migrate.rollback(:run, force => true);
SELECT (SELECT count(*) FROM far.players) AS players, (SELECT count(*) FROM far.titles) AS titles,
	(SELECT string_agg(no || ', ' || note, '; ') FROM far.seats) AS seats;
DROP OWNED BY regress_ranges; DROP ROLE regress_ranges;
DROP TABLE far.seats, far.titles, near.seats, near.titles, far.players, near.players;

-- what is read grows with the rows, also where ranges are those of a column that no index begins with
CREATE TABLE far.texts (locale text, item_id int, body text, PRIMARY KEY (locale, item_id)); CREATE TABLE near.texts (LIKE far.texts INCLUDING ALL);
INSERT INTO near.texts SELECT l, i, repeat(md5(l || i), 45) FROM unnest('{de,en}'::text[]) AS l, generate_series(1, 1000) AS i;
ANALYZE near.texts;
CREATE FUNCTION rows_read(relation text) RETURNS bigint LANGUAGE sql AS $$
	SELECT pg_stat_clear_snapshot();
	SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE schemaname || '.' || relname = relation $$;
SELECT pg_stat_force_next_flush();
SELECT snowflake_migrate_internal.start('{{near}}', '{far}', '{662}', 20, false, false, false, NULL, true) AS run \gset
SELECT pg_stat_force_next_flush();
SELECT format('snowflake_merge_%s.map_%s', run, no) AS map FROM snowflake_migrate_internal.plan_tables WHERE run = :run AND relation = 'far.texts'::regclass \gset
SELECT rows_read(:'map') AS map_before \gset
CALL snowflake_migrate.merge('{near}', 'far', '{662}', batch_size => 20) \gset
SELECT pg_stat_force_next_flush();
SELECT rows_read(:'map') - :map_before < 10 * count(*) AS map, count(*),
	(SELECT cardinality(copied_by) FROM snowflake_migrate_internal.plan_sources WHERE run = :run) AS batches
FROM far.texts;
DROP FUNCTION rows_read(text), refused(bigint);
DROP SCHEMA far, near CASCADE;
