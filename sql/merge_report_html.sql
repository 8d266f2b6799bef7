-- snowflake_migrate.report_html(): a page for people about a merge, see doc/merging.md.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\pset format unaligned
\pset footer off
-- The page without its looks, times, ids, and settings of the run: a line for each row, | between cells.
CREATE FUNCTION page(run bigint) RETURNS text LANGUAGE sql AS $$
	SELECT regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(
		snowflake_migrate.report_html(run),
		'<style>.*</style>', ''),
		'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC', 'TIME', 'g'),
		'</t[dh]>|</dt>', ' | ', 'g'),
		'</(h1|h2|p|tr|caption|dd|li|pre)>', E'\n', 'g'),
		'<wbr/>|<[^>]*>', '', 'g'),
		E'\n\\s*\n+', E'\n', 'g'),
		'(?<=Merge |run = |rollback\(|verify\()\d+', 'RUN', 'g'), '\d{15,}', 'ID', 'g'),
		'(Merged by )[^\n]*.*(?=\nAs of)', '\1')
$$;
-- PostgreSQL's own parser of XML, where it has one
CREATE FUNCTION is_well_formed(run bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	RETURN xmlparse(DOCUMENT snowflake_migrate.report_html(run)) IS NOT NULL;
EXCEPTION WHEN feature_not_supported THEN
	RETURN true;
END
$$;
CREATE FUNCTION is_safe(run bigint) RETURNS boolean LANGUAGE sql AS $$
	SELECT p.page !~* '<script|<i>|http|src=|href=|url\(|@import| on[a-z]+=' AND p.page !~ '[\x01-\x08\x0b\x0c\x0e-\x1f]'
		AND is_well_formed(run)
	FROM snowflake_migrate.report_html(run) AS p (page)
$$;

--
-- Names and values that are no HTML
--
CREATE SCHEMA t;
CREATE SCHEMA "a<script>alert(""1"")</script>";
CREATE TABLE t."<script>&amp;""'_sixty_three_bytes_long_name_of_a_table_as_long_a" (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), "<b>&name" text CONSTRAINT "one <i>" UNIQUE, n int DEFAULT 0);
CREATE TABLE t.letters (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), kind text, sender bigint, sent_at date);
CREATE TABLE t.empty (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
CREATE TABLE "a<script>alert(""1"")</script>"."<script>&amp;""'_sixty_three_bytes_long_name_of_a_table_as_long_a" (LIKE t."<script>&amp;""'_sixty_three_bytes_long_name_of_a_table_as_long_a");
CREATE TABLE "a<script>alert(""1"")</script>".letters (LIKE t.letters);
CREATE TABLE "a<script>alert(""1"")</script>".empty (LIKE t.empty);
INSERT INTO t."<script>&amp;""'_sixty_three_bytes_long_name_of_a_table_as_long_a" ("<b>&name")
VALUES ('<script>alert(2)</script>'), ('&lt;"''>'), (E'two\nlines'), (U&'\05E9\05DC\05D5\05DD\202E abc'), (repeat('x', 1000)), (E'bell\x07'), ('http://example.org');
INSERT INTO "a<script>alert(""1"")</script>"."<script>&amp;""'_sixty_three_bytes_long_name_of_a_table_as_long_a"
SELECT row_number() OVER (ORDER BY "<b>&name" COLLATE "C"), "<b>&name", 0 FROM t."<script>&amp;""'_sixty_three_bytes_long_name_of_a_table_as_long_a" WHERE "<b>&name" NOT LIKE 'http%';
INSERT INTO "a<script>alert(""1"")</script>".letters SELECT g, '<script>', g, '2024-01-01' FROM generate_series(1, 1500) AS g;
INSERT INTO "a<script>alert(""1"")</script>"."<script>&amp;""'_sixty_three_bytes_long_name_of_a_table_as_long_a" SELECT 100 + g, 'name ' || g FROM generate_series(1, 120) AS g;
INSERT INTO t."<script>&amp;""'_sixty_three_bytes_long_name_of_a_table_as_long_a" ("<b>&name") SELECT 'name ' || g FROM generate_series(1, 120) AS g;
SELECT snowflake_migrate.declare_policy('t."<script>&amp;""''_sixty_three_bytes_long_name_of_a_table_as_long_a"', 'one <i>', 'suffix', '<i>{source}');
SELECT snowflake_migrate.declare_reference('t.letters', 'sender', 't."<script>&amp;""''_sixty_three_bytes_long_name_of_a_table_as_long_a"', $$kind = '<script>'$$, dangling => 'null');
SELECT snowflake_migrate.declare_created('t.letters', 'sent_at');
CALL snowflake_migrate.merge(ARRAY['a<script>alert("1")</script>'], 't', '{960}', dry_run => true) \gset dry_
SELECT is_safe(:dry_run);
SELECT regexp_replace(page(:dry_run), 'Took[^\n]*', '');
CALL snowflake_migrate.merge(ARRAY['a<script>alert("1")</script>'], 't', '{961}') \gset
SELECT is_safe(:run);
-- a hundred of those who were renamed, and how to see the others
SELECT string_agg(line, E'\n' ORDER BY n) FROM regexp_split_to_table(page(:run), '\n') WITH ORDINALITY AS l (line, n)
WHERE line !~ 'name \d' AND line !~ '^Took';
SELECT count(*) FROM regexp_matches(snowflake_migrate.report_html(:run), '<strong><bdi>', 'g');

--
-- What else a run can be: not finished, not proved, wrong, taken back
--
CREATE FUNCTION states(run bigint) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT line FROM regexp_split_to_table(page(run), '\n') WITH ORDINALITY AS l (line, n)
	WHERE line ~ '^(Done|Not finished|Copied|The proof|Being|Taken|Nothing|At any time|It was|It is|CALL|Rows came|Rows still there|error|Ended)' ORDER BY n
$$;
UPDATE snowflake_migrate.runs SET state = 'copying', finished_at = NULL, copied_at = NULL WHERE run = :run;
UPDATE snowflake_migrate_internal.plan_sources SET rows_done = rows_done / 2 WHERE run = :run;
SELECT states(:run);
UPDATE snowflake_migrate_internal.plan_sources SET rows_done = rows_to_do WHERE run = :run;
UPDATE snowflake_migrate.runs SET state = 'verifying' WHERE run = :run;
SELECT states(:run);
DELETE FROM t.letters WHERE id = (SELECT min(id) FROM t.letters);
\set VERBOSITY sqlstate
CALL snowflake_migrate.merge(ARRAY['a<script>alert("1")</script>'], 't', '{961}', run => :run);
\set VERBOSITY default
SELECT states(:run);
SELECT is_safe(:run);
UPDATE snowflake_migrate.runs SET state = 'rolling back' WHERE run = :run;
SELECT states(:run);
UPDATE snowflake_migrate.runs SET state = 'verifying' WHERE run = :run;
CALL snowflake_migrate.rollback(:run, force => true);
SELECT states(:run);
SELECT is_safe(:run);
-- its tables are gone; numbers of rows that somebody made up
DROP SCHEMA t, "a<script>alert(""1"")</script>" CASCADE;
UPDATE snowflake_migrate_internal.plan_sources SET rows_done = -9223372036854775808, rows_to_do = 9223372036854775807 WHERE run = :run;
UPDATE snowflake_migrate.runs SET started_at = '-infinity', finished_at = '2300-01-01' WHERE run = :run;
SELECT is_safe(:run);

--
-- Declarations, all of them; combined values are no new names; what is not proved of a target in use
--
CREATE SCHEMA t;
CREATE SCHEMA s;
CREATE TABLE t.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text CONSTRAINT players_name_key UNIQUE, gold int, seen int, born date);
CREATE TABLE t.chests (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), code text CONSTRAINT chests_code_key UNIQUE, is_open boolean);
CREATE TABLE s.players (LIKE t.players);
CREATE TABLE s.chests (LIKE t.chests);
INSERT INTO t.players (name, gold, seen, born) VALUES ('Ada', 10, 1, '2024-01-01'), ('Bob', 5, 9, '2024-01-02');
INSERT INTO s.players VALUES (1, 'Ada', 7, 2, '2024-01-03'), (2, 'Cid', 1, 1, '1990-01-01');
INSERT INTO t.chests (code) VALUES ('a');
INSERT INTO s.chests VALUES (1, 'a', true), (2, 'b', false);
SELECT snowflake_migrate.declare_policy('t.players', 'players_name_key', 'keep_first', precedence => 'seen DESC', combine => '{"seen": "max", "gold": "sum"}');
SELECT snowflake_migrate.declare_created('t.players', 'born', early => 'pack');
SELECT snowflake_migrate.declare_table('t.chests', 'copy', "only" => 'is_open');
SELECT snowflake_migrate.declare_policy('t.chests', 'chests_code_key', 'suffix', '.{source}');
CALL snowflake_migrate.merge('{s}', 't', '{962}') \gset
CREATE FUNCTION section(run bigint, title text) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT * FROM regexp_split_to_table(split_part(split_part(regexp_replace(snowflake_migrate.report_html(run), '(<h2>[^<]*</h2>)', E'\n\\1', 'g'),
		'<h2>' || title || '</h2>', 2), '<h2>', 1), '</tr>|</li>|</p>') AS line
	WHERE line ~ '[^\s]' AND line !~ '<pre>|^</tbody>'
$$;
SELECT regexp_replace(regexp_replace(section(:run, title), '<wbr/>|<[^>]*>|\n', ' ', 'g'), '\d{15,}', 'ID', 'g') AS line
FROM unnest(ARRAY['What clashed, and what became of it', 'Who was renamed', 'What was declared']) AS title;
SELECT regexp_replace(snowflake_migrate.report_html(:run), '.*<dt>Renamed</dt><dd>(\d+).*', '\1') AS renamed;
CALL snowflake_migrate.rollback(:run);
DELETE FROM snowflake_migrate.declared_policies WHERE relation = 't.players'::regclass;
SELECT snowflake_migrate.declare_policy('t.players', 'players_name_key', 'suffix', '.{source}');
CALL snowflake_migrate.merge('{s}', 't', '{963}', target_in_use => true) \gset
SELECT regexp_replace(section(:run, 'What was proved'), '<[^>]*>|\d{4}-\d.*', '', 'g') AS line;
SELECT is_safe(:run);
DROP FUNCTION section;
DROP SCHEMA s, t CASCADE;

--
-- Errors and rights
--
SELECT snowflake_migrate.report_html(9000000000000000000);
SELECT snowflake_migrate.report_html(NULL);
CREATE ROLE reader;
GRANT USAGE ON SCHEMA snowflake_migrate, snowflake_migrate_internal TO reader;
SET ROLE reader;
SELECT snowflake_migrate.report_html(:dry_run);
RESET ROLE;
GRANT SELECT ON snowflake_migrate.runs, snowflake_migrate.report, snowflake_migrate.records, snowflake_migrate_internal.plan_tables,
	snowflake_migrate_internal.plan_sources, snowflake_migrate_internal.plan_references TO reader;
SET ROLE reader;
SELECT length(snowflake_migrate.report_html(:dry_run)) > 1000 AS is_a_page;
RESET ROLE;
DROP OWNED BY reader;
DROP ROLE reader;
DELETE FROM snowflake_migrate.declared_policies;
DELETE FROM snowflake_migrate.declared_tables;
DELETE FROM snowflake_migrate.declared_references;
DELETE FROM snowflake_migrate.declared_created;
DROP FUNCTION states, page, is_safe, is_well_formed;
