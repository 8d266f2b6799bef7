-- snowflake_audit(): whose ids a column holds, and what is none.
\set SHOW_CONTEXT never
SET timezone = 'UTC';
SET datestyle = 'ISO';

CREATE TABLE "Audited" ("Id" bigint, word text);
INSERT INTO "Audited"
	SELECT snowflake_encode('2020-01-01 00:00Z', 7, n) FROM generate_series(1, 3) AS n
	UNION ALL SELECT snowflake_encode('2021-01-01 00:00Z', 7, 0)
	UNION ALL SELECT snowflake_encode('2022-01-01 00:00:00.001Z', 1023, 4095)
	UNION ALL SELECT snowflake_encode('2022-01-01 00:00:00.001Z', 0, 0)
	-- serial ones, negative ones, and nothing
	UNION ALL SELECT n FROM generate_series(0, 99) AS n
	UNION ALL SELECT snowflake_min_id(l.epoch + interval '24 hours') - 1 FROM snowflake_layout() AS l
	UNION ALL SELECT n FROM generate_series(-9223372036854775808, -9223372036854775807) AS n
	UNION ALL SELECT NULL
	-- the first ids that are none of these
	UNION ALL SELECT snowflake_min_id(l.epoch + interval '24 hours') FROM snowflake_layout() AS l
	-- from the future: the end of the layout
	UNION ALL SELECT 9223372036854775807
	UNION ALL SELECT snowflake_encode('2080-01-01 00:00Z', 7, 0);
SELECT * FROM snowflake_audit('"Audited"', 'Id');
SELECT sum(ids) = (SELECT count(*) FROM "Audited") AS all_rows FROM snowflake_audit('"Audited"', 'Id');

-- now is not the future; clocks may differ, by as much as is waited for; ids may run ahead, by as much as is set
TRUNCATE "Audited";
INSERT INTO "Audited" SELECT snowflake_nextval_batch(1000);
SELECT node, ids, first_id <= last_id AS in_order, first_time <= last_time AS in_time,
	(SELECT min("Id") FROM "Audited") = first_id AND (SELECT max("Id") FROM "Audited") = last_id AS range, remark
FROM snowflake_audit('"Audited"', 'Id');
TRUNCATE "Audited";
INSERT INTO "Audited" SELECT snowflake_encode(clock_timestamp() + interval '10 minutes', 8, 0);
SELECT node, ids, remark FROM snowflake_audit('"Audited"', 'Id');
SET snowflake.max_wait = '11min';
SELECT node, ids, remark FROM snowflake_audit('"Audited"', 'Id');
RESET snowflake.max_wait;
ALTER SYSTEM SET snowflake.max_drift = '11min';
SELECT pg_reload_conf();
-- until this session has read it
\set ECHO none
\o /dev/null
SELECT format('SELECT pg_sleep(0.01) WHERE current_setting(''snowflake.max_drift'') <> %L', '11min') FROM generate_series(1, 1000)
\gexec
\o
\set ECHO all
SELECT node, ids, remark FROM snowflake_audit('"Audited"', 'Id');
ALTER SYSTEM RESET snowflake.max_drift;
SELECT pg_reload_conf();
\set ECHO none
\o /dev/null
SELECT format('SELECT pg_sleep(0.01) WHERE current_setting(''snowflake.max_drift'') <> %L', '0') FROM generate_series(1, 1000)
\gexec
\o
\set ECHO all
SHOW snowflake.max_drift;

-- integers, partitions, views, domains; nothing at all
CREATE DOMAIN counted AS int;
CREATE TABLE small (a smallint, b int, c counted, d text) PARTITION BY LIST (a);
CREATE TABLE small_1 PARTITION OF small FOR VALUES IN (1);
CREATE TABLE small_2 PARTITION OF small FOR VALUES IN (2);
SELECT * FROM snowflake_audit('small', 'a');
INSERT INTO small VALUES (1, 2147483647, -1), (2, 5, 2);
SELECT * FROM snowflake_audit('small', 'a');
SELECT * FROM snowflake_audit('small', 'b');
SELECT * FROM snowflake_audit('small', 'c');
CREATE VIEW small_view AS SELECT b AS "b %s '" FROM small;
SELECT * FROM snowflake_audit('small_view', 'b %s ''');

-- input that is none
SELECT * FROM snowflake_audit('small', 'd');
SELECT * FROM snowflake_audit('small', 'e');
SELECT * FROM snowflake_audit('small', 'ctid');
SELECT * FROM snowflake_audit('1', 'a');
CREATE INDEX small_index ON small (b);
SELECT * FROM snowflake_audit('small_index', 'b');
SELECT count(*) FROM snowflake_audit(NULL, 'b');

-- with the rights of the caller; hidden rows are not left out
CREATE ROLE regress_snowflake_user;
SET ROLE regress_snowflake_user;
SELECT * FROM snowflake_audit('small', 'b');
RESET ROLE;
GRANT SELECT (b) ON small TO regress_snowflake_user;
SET ROLE regress_snowflake_user;
SELECT node, ids, remark FROM snowflake_audit('small', 'b');
SELECT * FROM snowflake_audit('small', 'a');
RESET ROLE;
ALTER TABLE small ENABLE ROW LEVEL SECURITY;
SET ROLE regress_snowflake_user;
SELECT * FROM snowflake_audit('small', 'b');
RESET ROLE;
DROP TABLE small, "Audited" CASCADE;
DROP DOMAIN counted;
DROP ROLE regress_snowflake_user;
