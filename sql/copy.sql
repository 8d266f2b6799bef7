-- COPY FROM keeps its fast path, many rows in one WAL record, with DEFAULT snowflake_nextval(): by a twin of the function
-- that nothing else calls.
CREATE EXTENSION pg_walinspect;
SET track_functions = 'all';
\getenv folder PG_ABS_BUILDDIR
\set file :folder /results/copy.data
COPY (SELECT i FROM generate_series(1, 1000) AS i) TO :'file';
CREATE TABLE loaded (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int);
SELECT format('COPY loaded (v) FROM %L', :'file') AS load \gset
-- how often this transaction has called which, where the session's earlier calls were told before
CREATE VIEW calls AS
	SELECT funcname, calls FROM pg_stat_xact_user_functions
	WHERE funcname IN ('snowflake_nextval', 'nextval_in_copy') ORDER BY funcname;
-- whether WAL from here on has records of several rows for a table
CREATE FUNCTION many_at_once(start pg_lsn, relation regclass) RETURNS boolean
BEGIN ATOMIC
	SELECT count(*) > 0 FROM pg_get_wal_records_info(start, pg_current_wal_insert_lsn())
	WHERE record_type LIKE 'MULTI_INSERT%' AND block_ref ~ format('/%s\M', pg_relation_filenode(relation));
END;

SELECT pg_current_wal_insert_lsn() AS start \gset
SELECT pg_stat_force_next_flush() \g /dev/null
BEGIN;
:load;
SELECT * FROM calls;
COMMIT;
SELECT many_at_once(:'start', 'loaded'), count(*), count(DISTINCT id) FROM loaded;
-- in order of the rows
SELECT bool_and(earlier < id) AS in_order FROM (SELECT id, lag(id, 1, 0::bigint) OVER (ORDER BY v) AS earlier FROM loaded) AS l;
SELECT max(id) = snowflake_lastval() AS is_last FROM loaded;
-- beside a volatile function, which may look at the table, it is slow as with the built-in nextval()
CREATE FUNCTION looks() RETURNS bigint VOLATILE LANGUAGE sql AS 'SELECT count(*) FROM loaded';
ALTER TABLE loaded ADD seen bigint DEFAULT looks();
TRUNCATE loaded;
SELECT pg_current_wal_insert_lsn() AS start \gset
:load;
SELECT many_at_once(:'start', 'loaded'), count(DISTINCT id), max(seen) FROM loaded;
ALTER TABLE loaded DROP seen;
TRUNCATE loaded;

-- nothing but COPY calls the twin
SELECT snowflake_internal.nextval_in_copy();
SELECT count(snowflake_internal.nextval_in_copy()) FROM generate_series(1, 10);
CREATE TABLE wrong (id bigint DEFAULT snowflake_internal.nextval_in_copy(), v int);
SELECT format('COPY wrong (v) FROM %L', :'file') AS load_wrong \gset
:load_wrong;
DROP TABLE wrong;
-- with the rights of snowflake_nextval()
CREATE ROLE loader IN ROLE pg_read_server_files;
GRANT INSERT ON loaded TO loader;
REVOKE EXECUTE ON FUNCTION snowflake_nextval() FROM PUBLIC;
SET ROLE loader;
:load;
RESET ROLE;
GRANT EXECUTE ON FUNCTION snowflake_nextval() TO PUBLIC;
DROP OWNED BY loader;
DROP ROLE loader;

-- a domain's default, an expression, partitions, a generated column
CREATE DOMAIN snowflake AS bigint DEFAULT snowflake_nextval();
CREATE TABLE parts (id snowflake, other bigint DEFAULT -snowflake_nextval(), v int,
	last_digit int GENERATED ALWAYS AS (id % 10) STORED) PARTITION BY LIST (v);
CREATE TABLE few PARTITION OF parts FOR VALUES IN (1, 2, 3);
CREATE TABLE many PARTITION OF parts DEFAULT;
SELECT format('COPY parts (v) FROM %L', :'file') AS load_parts \gset
SELECT pg_current_wal_insert_lsn() AS start \gset
SELECT pg_stat_force_next_flush() \g /dev/null
BEGIN;
:load_parts;
SELECT * FROM calls;
COMMIT;
SELECT many_at_once(:'start', 'few') AS few, many_at_once(:'start', 'many') AS many;
SELECT count(*), count(DISTINCT id), count(DISTINCT other), bool_and(last_digit = id % 10) AS generated FROM parts;

-- where the planner could put a function's body in the place of a call, with two ids for the one that it is given; in a
-- domain's CHECK, which the session keeps; in a WHERE: the twin is not there
CREATE FUNCTION with_check_digit(x bigint) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT x::text || '-' || (x % 97)::text $$;
CREATE TABLE codes (code text DEFAULT with_check_digit(snowflake_nextval()), v int);
SELECT format('COPY codes (v) FROM %L', :'file') AS load_codes \gset
:load_codes;
SELECT count(*), count(*) FILTER (WHERE split_part(code, '-', 1)::bigint % 97 <> split_part(code, '-', 2)::int) AS wrong FROM codes;
CREATE DOMAIN below AS bigint CHECK (snowflake_nextval() > VALUE);
CREATE TABLE checked (id below DEFAULT 1, other bigint DEFAULT snowflake_nextval(), v int);
SELECT format('COPY checked (v) FROM %L', :'file') AS load_checked \gset
SELECT format('COPY loaded (v) FROM %L WHERE snowflake_nextval() > 0', :'file') AS load_where \gset
SELECT pg_stat_force_next_flush() \g /dev/null
BEGIN;
:load_checked;
SELECT 5::below;
:load_where;
SELECT * FROM calls;
COMMIT;
TRUNCATE loaded;
DROP TABLE codes, checked;
DROP DOMAIN below;
DROP FUNCTION with_check_digit;

-- what triggers of a COPY do is none of its planning: columns that are added, statements, plans, CREATE TABLE AS
CREATE TABLE grown (v int);
CREATE TABLE log (id bigint DEFAULT snowflake_nextval(), v int CHECK (snowflake_nextval() > 0));
INSERT INTO grown SELECT i FROM generate_series(1, 10) AS i;
PREPARE made AS SELECT snowflake_nextval() AS id FROM generate_series(1, 10) AS i;
CREATE FUNCTION work() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF tg_level = 'ROW' AND new.v <> 500 THEN
		RETURN new;
	END IF;
	ALTER TABLE grown ADD id bigint DEFAULT snowflake_nextval();
	CREATE TABLE queried AS SELECT snowflake_nextval() AS id FROM generate_series(1, 10) AS i;
	CREATE TABLE executed AS EXECUTE made;
	INSERT INTO log (v) SELECT i FROM generate_series(1, 8) AS i;
	INSERT INTO log (v) VALUES (9), (10);
	RAISE NOTICE '% %: % % % %', tg_when, tg_level, (SELECT count(DISTINCT id) FROM grown),
		(SELECT count(DISTINCT id) FROM queried), (SELECT count(DISTINCT id) FROM executed),
		(SELECT count(DISTINCT id) FROM log);
	DROP TABLE queried, executed;
	ALTER TABLE grown DROP id;
	RETURN new;
END
$$;
CREATE TRIGGER before_all BEFORE INSERT ON loaded EXECUTE FUNCTION work();
CREATE TRIGGER before_one BEFORE INSERT ON loaded FOR EACH ROW EXECUTE FUNCTION work();
CREATE TRIGGER after_one AFTER INSERT ON loaded FOR EACH ROW EXECUTE FUNCTION work();
CREATE FUNCTION on_command() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM snowflake_nextval();
END
$$;
CREATE EVENT TRIGGER on_command ON ddl_command_end WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION on_command();
SELECT pg_stat_force_next_flush() \g /dev/null
BEGIN;
:load;
-- three times 10 + 10 + 10 + 10 * 2 with the CHECK + 2 for the event trigger
SELECT * FROM calls;
SELECT count(DISTINCT id) FROM loaded;
ROLLBACK;
DROP EVENT TRIGGER on_command;
DROP TRIGGER before_all ON loaded;
DROP TRIGGER before_one ON loaded;
DROP TRIGGER after_one ON loaded;

-- a COPY of a COPY's trigger, and what follows it there
CREATE FUNCTION load_more() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF new.v = 500 THEN
		EXECUTE tg_argv[0];
		ALTER TABLE grown ADD id bigint DEFAULT snowflake_nextval();
	END IF;
	RETURN NULL;
END
$$;
SELECT format('CREATE TRIGGER load_more AFTER INSERT ON loaded FOR EACH ROW EXECUTE FUNCTION load_more(%L)',
			  format('COPY log (v) FROM %L', :'file')) AS load_more \gset
:load_more;
SELECT pg_stat_force_next_flush() \g /dev/null
BEGIN;
:load;
-- by the CHECK, and for the column
SELECT * FROM calls;
SELECT (SELECT count(DISTINCT id) FROM log) AS log, (SELECT count(DISTINCT id) FROM grown) AS grown,
	(SELECT count(DISTINCT id) FROM loaded) AS loaded;
ROLLBACK;
DROP TRIGGER load_more ON loaded;

-- an error in the middle, caught, leaves nothing behind
CREATE PROCEDURE try(load text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE load;
EXCEPTION WHEN OTHERS THEN
	RAISE NOTICE '%', sqlerrm;
	EXECUTE 'INSERT INTO log (v) SELECT i FROM generate_series(1, 10) AS i';
	ALTER TABLE grown ADD id bigint DEFAULT snowflake_nextval();
END
$$;
SELECT pg_stat_force_next_flush() \g /dev/null
BEGIN;
ALTER TABLE loaded ADD CHECK (v < 500);
CALL try(:'load');
SELECT (SELECT count(DISTINCT id) FROM log) AS log, (SELECT count(DISTINCT id) FROM grown) AS grown, count(*) FROM loaded;
-- the defaults and the CHECKs of ten rows, and the column
SELECT calls FROM calls WHERE funcname = 'snowflake_nextval';
ROLLBACK;
-- an error, not caught: the CHECK is planned next, without a query
COPY loaded (v) FROM '/nonexistent';
SELECT pg_stat_force_next_flush() \g /dev/null
INSERT INTO log (id, v) VALUES (1, 1) \; SELECT * FROM calls;

DROP VIEW calls;
DROP TABLE loaded, parts, grown, log;
DROP DOMAIN snowflake;
DROP FUNCTION many_at_once, looks, work, on_command, load_more;
DROP PROCEDURE try;
DROP EXTENSION pg_walinspect;
DEALLOCATE made;
\setenv FILE :file
\! rm "$FILE"
