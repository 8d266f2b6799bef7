/*
 * A run as a page for people: what came, what clashed, who was renamed, what was proved, and how to take it back.
 *
 * The page needs nothing from outside, and has no scripts.  It is HTML that is well-formed XML as well.  All that comes
 * from tables goes through html(), which is the one place that escapes; what html() and the functions that call it
 * return is never escaped again, nor anything else put between.  It reads what its caller may read, and runs nothing of
 * a run's plan.
 */

/*
 * A value as text of a page.  Characters that no document may have are shown as what they are, replacements.  bdi keeps
 * what is written from right to left from turning its surroundings around.
 */
CREATE FUNCTION snowflake_migrate_internal.html(value text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT '<bdi>' || replace(replace(replace(replace(replace(
			regexp_replace(value, E'[\\x01-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f\\ufffe\\uffff]', '?', 'g'),
			'&', '&amp;'), '<', '&lt;'), '>', '&gt;'), '"', '&quot;'), '''', '&#39;') || '</bdi>'
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.html(text)
	IS 'for snowflake_migrate.report_html()''s own use: a value as text of a page';

/* A name of an object, which may break where its parts end. */
CREATE FUNCTION snowflake_migrate_internal.html_name(name text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT regexp_replace(snowflake_migrate_internal.html(name), '([._])(?=.)', E'\\1<wbr/>', 'g') $$;
COMMENT ON FUNCTION snowflake_migrate_internal.html_name(text)
	IS 'for snowflake_migrate.report_html()''s own use: a name of an object';

/* A number with commas. */
CREATE FUNCTION snowflake_migrate_internal.html_number(number numeric) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT reverse(regexp_replace(reverse(trunc(number)::text), '([0-9]{3})(?=[0-9])', E'\\1,', 'g')) $$;
COMMENT ON FUNCTION snowflake_migrate_internal.html_number(numeric)
	IS 'for snowflake_migrate.report_html()''s own use: a number with commas';

/* A number of things, in the singular or the plural. */
CREATE FUNCTION snowflake_migrate_internal.html_count(number numeric, one text, many text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT snowflake_migrate_internal.html_number(number) || ' ' || CASE number WHEN 1 THEN one ELSE many END $$;
COMMENT ON FUNCTION snowflake_migrate_internal.html_count(numeric, text, text)
	IS 'for snowflake_migrate.report_html()''s own use: a number of things';

CREATE FUNCTION snowflake_migrate_internal.html_time(at timestamptz) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT coalesce(nullif(to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'), ''), 'not yet') $$;
COMMENT ON FUNCTION snowflake_migrate_internal.html_time(timestamptz)
	IS 'for snowflake_migrate.report_html()''s own use: a time';

/* SQL that shows all rows of what the page has some of. */
CREATE FUNCTION snowflake_migrate_internal.html_query(query text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT '<pre><code>' || snowflake_migrate_internal.html(query) || '</code></pre>' $$;
COMMENT ON FUNCTION snowflake_migrate_internal.html_query(text)
	IS 'for snowflake_migrate.report_html()''s own use: SQL on a page';

/*
 * A table: the caption, the names of the columns (those that begin with # are of numbers), and for each row its cells,
 * which are HTML.  total: how many rows there are, of which the page has the first; query shows all.
 */
CREATE FUNCTION snowflake_migrate_internal.html_table(
	caption text,
	columns text[],
	rows text[],
	total bigint DEFAULT NULL,
	query text DEFAULT NULL) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT '<div class="scroll" role="region" tabindex="0" aria-label="' || caption || '"><table><caption>' || caption
		|| '</caption><thead><tr>'
		|| (SELECT string_agg(format('<th scope="col"%s>%s</th>', CASE WHEN c.name LIKE '#%' THEN ' class="number"' END,
									 ltrim(c.name, '#')), '' ORDER BY c.n)
			FROM unnest(columns) WITH ORDINALITY AS c (name, n))
		|| E'</tr></thead>\n<tbody>' || array_to_string(rows, E'\n') || E'</tbody></table></div>\n'
		|| CASE WHEN total > cardinality(rows) THEN format(E'<p>And %s more. All of them:</p>%s\n',
				snowflake_migrate_internal.html_number(total - cardinality(rows)),
				snowflake_migrate_internal.html_query(query))
			ELSE '' END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.html_table(text, text[], text[], bigint, text)
	IS 'for snowflake_migrate.report_html()''s own use: a table of a page';

/* A row of a table: its cells, HTML; the first is its name, and those whose column is of numbers are numbers. */
CREATE FUNCTION snowflake_migrate_internal.html_row(columns text[], cells text[]) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT '<tr>' || string_agg(CASE
			WHEN c.n = 1 THEN '<th scope="row">' || coalesce(c.content, '') || '</th>'
			WHEN columns[c.n] LIKE '#%' THEN '<td class="number">' || coalesce(c.content, '') || '</td>'
			ELSE '<td>' || coalesce(c.content, '') || '</td>' END, '' ORDER BY c.n) || '</tr>'
	FROM unnest(cells) WITH ORDINALITY AS c (content, n)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.html_row(text[], text[])
	IS 'for snowflake_migrate.report_html()''s own use: a row of a table';

/* A bar of this part of a whole, with what it shows as text beside it. */
CREATE FUNCTION snowflake_migrate_internal.html_bar(part numeric, whole numeric, label text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT format('<div class="bar" aria-hidden="true"><div style="width: %s%%"></div></div><span>%s</span>',
				  round(100 * least(greatest(part / greatest(whole, 1), 0), 1), 1), label)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.html_bar(numeric, numeric, text)
	IS 'for snowflake_migrate.report_html()''s own use: a bar';

/* The tables of a run, each with how many rows of which source came, or are to come; of a dry run, by its report. */
CREATE FUNCTION snowflake_migrate_internal.brought(
	run_ bigint,
	OUT relation text,
	OUT source name,
	OUT rows_done numeric,
	OUT rows_to_do numeric,
	OUT former_rows bigint) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT snowflake_migrate_internal.table_name(t.relation), r.sources[s.source], s.rows_done::numeric,
		s.rows_to_do::numeric, t.former_rows
	FROM snowflake_migrate_internal.plan_sources AS s
		JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
		JOIN snowflake_migrate.runs AS r USING (run)
	WHERE s.run = run_
	UNION ALL
	SELECT f.relation, f.source, f.count::numeric, f.count::numeric, NULL
	FROM snowflake_migrate.report AS f
	WHERE f.run = run_ AND f.problem = 'rows are copied'
		AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.brought(bigint)
	IS 'for snowflake_migrate.report_html()''s own use: how many rows came';

/* What came, table by table. */
CREATE FUNCTION snowflake_migrate_internal.html_brought(run_ bigint, state text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH h (columns) AS (
		SELECT ARRAY['Table', 'From', '#Rows', 'Share',
			CASE state WHEN 'dry run' THEN '#' ELSE '#In the target before' END]
	),
	b AS (
		SELECT b.*, CASE state WHEN 'rolled back' THEN b.rows_to_do ELSE b.rows_done END AS rows,
			max(b.rows_to_do) OVER () AS greatest_one, count(*) OVER () AS total,
			row_number() OVER (ORDER BY b.rows_to_do DESC, b.relation COLLATE "C", b.source COLLATE "C") AS n
		FROM snowflake_migrate_internal.brought(run_) AS b
	)
	SELECT E'<section><h2>What came</h2>\n' || CASE WHEN count(b.n) = 0 THEN E'<p>No table.</p>\n' ELSE
		snowflake_migrate_internal.html_table('Rows of each table and source, the most first', h.columns,
			array_agg(snowflake_migrate_internal.html_row(h.columns, ARRAY[
				snowflake_migrate_internal.html_name(b.relation),
				snowflake_migrate_internal.html(b.source),
				snowflake_migrate_internal.html_number(b.rows),
				snowflake_migrate_internal.html_bar(b.rows, b.greatest_one, CASE
					WHEN state = 'rolled back' AND b.rows_done = 0 THEN 'none left'
					WHEN state = 'rolled back' THEN snowflake_migrate_internal.html_number(b.rows_done) || ' left'
					WHEN b.rows_to_do = b.rows_done AND b.rows_done = 0 THEN 'none'
					WHEN b.rows_to_do = b.rows_done THEN 'all'
					ELSE format('%s of %s', snowflake_migrate_internal.html_number(b.rows_done),
								snowflake_migrate_internal.html_number(b.rows_to_do)) END),
				snowflake_migrate_internal.html_number(b.former_rows)]) ORDER BY b.n) FILTER (WHERE b.n <= 1000),
			max(b.total), format('SELECT * FROM snowflake_migrate.progress WHERE run = %s;', run_)) END
		|| '</section>'
	FROM h LEFT JOIN b ON true
	GROUP BY h.columns
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.html_brought(bigint, text)
	IS 'for snowflake_migrate.report_html()''s own use: what came';

/* What a policy did, as a sentence has it. */
CREATE FUNCTION snowflake_migrate_internal.became(policy text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE policy
		WHEN 'suffix' THEN 'got a suffix'
		WHEN 'next_free' THEN 'got the next free number'
		WHEN 'keep_target' THEN 'became one with the row that was there first, which stays'
		WHEN 'keep_source' THEN 'became one with the row that was there, which took the values of the source'
		WHEN 'keep_first' THEN 'became one with the row that comes first, which stays'
		WHEN 'combine' THEN 'stayed for several rows, with their combined values'
		WHEN 'skip' THEN 'were left out'
		WHEN 'rerank' THEN 'were ranked anew'
		WHEN 'renumber' THEN 'got new ids'
		ELSE policy END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.became(text)
	IS 'for snowflake_migrate.report_html()''s own use: what a policy did';

/* What clashed, and what became of it: by the records, or, as a dry run has none, by the report. */
CREATE FUNCTION snowflake_migrate_internal.html_clashes(run_ bigint) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH h (columns) AS (SELECT ARRAY['Table', 'Of', 'Constraint or column', '#Rows', 'They', 'Such as']),
	c AS (
		SELECT r.relation, r.source, r.constraint_name::text AS name, count(*) AS rows,
			snowflake_migrate_internal.became(r.policy) AS what,
			min(concat_ws(' ', r.old_key, r.old_value || ' -> ' || r.new_value)) AS example
		FROM snowflake_migrate.records AS r WHERE r.run = run_
		GROUP BY r.relation, r.source, r.constraint_name, r.policy
		UNION ALL
		SELECT f.relation, f.source, f.object, f.count, f.problem, f.example
		FROM snowflake_migrate.report AS f
		WHERE f.run = run_ AND f.severity = 'info'
			AND f.problem ~ '^(rows clash: |rows are skipped|ranks are numbered|snowflake ids clash)'
			AND NOT EXISTS (SELECT FROM snowflake_migrate.records AS r WHERE r.run = run_)
	),
	n AS (
		SELECT c.*, count(*) OVER () AS total,
			row_number() OVER (ORDER BY c.rows DESC, c.relation COLLATE "C", c.name COLLATE "C", c.source COLLATE "C",
				c.what) AS n
		FROM c
	)
	SELECT E'<section><h2>What clashed, and what became of it</h2>\n' || CASE
		WHEN count(n.n) = 0 THEN E'<p>Nothing clashed.</p>\n'
		ELSE snowflake_migrate_internal.html_table('Rows that could not be there twice', h.columns,
			array_agg(snowflake_migrate_internal.html_row(h.columns, ARRAY[
				snowflake_migrate_internal.html_name(n.relation),
				coalesce(snowflake_migrate_internal.html(n.source), 'the target'),
				snowflake_migrate_internal.html_name(n.name),
				snowflake_migrate_internal.html_number(n.rows),
				snowflake_migrate_internal.html(n.what),
				snowflake_migrate_internal.html(left(n.example, 200))]) ORDER BY n.n) FILTER (WHERE n.n <= 500),
			max(n.total), format('SELECT * FROM snowflake_migrate.records WHERE run = %s;', run_)) END || '</section>'
	FROM h LEFT JOIN n ON true
	GROUP BY h.columns
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.html_clashes(bigint)
	IS 'for snowflake_migrate.report_html()''s own use: what clashed';

/* Who has another name or number than before, but not ranks, and not combined values: of each table some. */
CREATE FUNCTION snowflake_migrate_internal.html_renamed(run_ bigint) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH h (columns) AS (SELECT ARRAY['Table', 'Of', 'Column', 'Was', 'Is', '#Key']),
	n AS (
		SELECT x.*, row_number() OVER (ORDER BY x.place > 20, x.relation COLLATE "C", x.place) AS n
		FROM (
			SELECT r.*, count(*) OVER () AS total,
				row_number() OVER (PARTITION BY r.relation
					ORDER BY r.old_value COLLATE "C", r.source COLLATE "C", r.old_key COLLATE "C") AS place
			FROM snowflake_migrate.records AS r
			WHERE r.run = run_ AND r.column_name IS NOT NULL AND r.policy NOT IN ('rerank', 'combine')
		) AS x
	)
	SELECT E'<section><h2>Who was renamed</h2>\n' || CASE
		WHEN count(n.n) = 0 THEN E'<p>Nobody.</p>\n'
		ELSE snowflake_migrate_internal.html_table('Values that are not what they were', h.columns,
			array_agg(snowflake_migrate_internal.html_row(h.columns, ARRAY[
				snowflake_migrate_internal.html_name(n.relation),
				coalesce(snowflake_migrate_internal.html(n.source), 'the target'),
				snowflake_migrate_internal.html_name(n.column_name),
				snowflake_migrate_internal.html(left(n.old_value, 200)),
				'<strong>' || snowflake_migrate_internal.html(left(n.new_value, 200)) || '</strong>',
				snowflake_migrate_internal.html(left(coalesce(n.new_key, n.old_key), 60))])
				ORDER BY n.n) FILTER (WHERE n.n <= 100),
			max(n.total), format(E'SELECT relation, source, old_key, new_key, old_value, new_value\n'
					|| E'  FROM snowflake_migrate.records\n'
					|| '  WHERE run = %s AND column_name IS NOT NULL AND policy NOT IN (''rerank'', ''combine'');',
				run_)) END || '</section>'
	FROM h LEFT JOIN n ON true
	GROUP BY h.columns
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.html_renamed(bigint)
	IS 'for snowflake_migrate.report_html()''s own use: who was renamed';

/* What the report of a run says, of these severities. */
CREATE FUNCTION snowflake_migrate_internal.html_findings(run_ bigint, severities text[], caption text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH h (columns) AS (SELECT ARRAY['What', 'Table', 'From', 'Of', '#Rows', 'Such as', 'Advice']),
	n AS (
		SELECT f.*, count(*) OVER () AS total,
			row_number() OVER (ORDER BY array_position(severities, f.severity), f.relation COLLATE "C",
				f.source COLLATE "C", f.object COLLATE "C", f.problem COLLATE "C") AS n
		FROM snowflake_migrate.report AS f
		WHERE f.run = run_ AND f.severity = ANY (severities) AND f.problem <> 'rows are copied'
	)
	SELECT CASE WHEN count(n.n) = 0 THEN '' ELSE
		snowflake_migrate_internal.html_table(caption, h.columns,
			array_agg(snowflake_migrate_internal.html_row(h.columns, ARRAY[
				format('<span class="%1$s">%1$s</span> %2$s', n.severity, snowflake_migrate_internal.html(n.problem)),
				snowflake_migrate_internal.html_name(n.relation),
				snowflake_migrate_internal.html(n.source),
				snowflake_migrate_internal.html_name(n.object),
				snowflake_migrate_internal.html_number(n.count),
				snowflake_migrate_internal.html(left(n.example, 200)),
				snowflake_migrate_internal.html(n.advice)]) ORDER BY n.n) FILTER (WHERE n.n <= 300),
			max(n.total), format('SELECT * FROM snowflake_migrate.report WHERE run = %s;', run_)) END
	FROM h LEFT JOIN n ON true
	GROUP BY h.columns
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.html_findings(bigint, text[], text)
	IS 'for snowflake_migrate.report_html()''s own use: what the report says';

/* What the report says besides errors; what is only good to know is there for whoever opens it. */
CREATE FUNCTION snowflake_migrate_internal.html_report(run bigint) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT E'<section><h2>What else to know</h2>\n'
		|| coalesce(nullif(snowflake_migrate_internal.html_findings(run, '{warning}', 'Warnings'), ''),
					'<p>There were no warnings.</p>')
		|| coalesce('<details><summary>What is good to know</summary>'
			|| nullif(snowflake_migrate_internal.html_findings(run, '{info}', 'What is good to know'), '')
			|| '</details>', '')
		|| '</section>'
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.html_report(bigint)
	IS 'for snowflake_migrate.report_html()''s own use: warnings, and what is good to know';

/* Whether the rows are what they should be. */
CREATE FUNCTION snowflake_migrate_internal.html_proof(run snowflake_migrate.runs) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT E'<section><h2>What was proved</h2>\n' || CASE
			WHEN run.state = 'done' OR run.state = 'dry run' AND e.errors = 0 THEN
				'<ul><li>The map has each row of the sources, and the row that it leads to is there'
				|| CASE WHEN run.target_in_use THEN ', or was deleted since' ELSE '' END
				|| '.</li><li>Each column is equal, bit by bit; a reference is what the map says; a policy&#39;s '
				'change is what is on record'
				|| CASE WHEN run.target_in_use THEN ', but for rows that users have changed or deleted since, which '
					'the report counts.</li><li>The merge wrote no row that the map does not have; what users have '
					'added is not looked at'
				ELSE '.</li><li>No table has more rows than it had, plus those that came' END
				|| '. Foreign keys hold, for all rows.</li><li>Constraints and triggers are as they were.</li></ul><p>'
				|| CASE run.state WHEN 'done' THEN format('That was so on %s. What happened since, this says:</p>%s',
						snowflake_migrate_internal.html_time(run.finished_at), snowflake_migrate_internal.html_query(
							format('SELECT * FROM snowflake_migrate.verify(%s);', run.run)))
					ELSE 'That was so within the dry run, which was rolled back.</p>' END
			WHEN run.state IN ('verifying', 'dry run') AND e.errors > 0 THEN
				format('<p><strong>The proof failed: %s.</strong> %s</p>',
					   snowflake_migrate_internal.html_count(e.errors, 'problem', 'problems'), CASE run.state
						WHEN 'verifying' THEN 'Put right what it says and merge again, or take the merge back.'
						ELSE 'The dry run was rolled back.' END)
			WHEN run.state IN ('rolling back', 'rolled back') THEN '<p>Nothing: the merge is taken back.</p>'
			ELSE '<p>Nothing yet: the merge is not finished. It is proved when all rows are copied.</p>' END
		|| snowflake_migrate_internal.html_findings(run.run, '{error}',
			format('What %s not as it should be', CASE run.state WHEN 'rolled back' THEN 'was' ELSE 'is' END))
		|| '</section>'
	FROM (SELECT count(*) AS errors FROM snowflake_migrate.report AS f
		  WHERE f.run = html_proof.run.run AND f.severity = 'error') AS e
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.html_proof(snowflake_migrate.runs)
	IS 'for snowflake_migrate.report_html()''s own use: what was proved';

/* How to take a run back. */
CREATE FUNCTION snowflake_migrate_internal.html_way_back(run snowflake_migrate.runs) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT E'<section><h2>How to take it back</h2>\n' || CASE run.state
			WHEN 'dry run' THEN '<p>There is nothing to take back: a dry run changes nothing.</p>'
			WHEN 'rolled back' THEN format('<p>It was taken back on %s.</p>',
				snowflake_migrate_internal.html_time(run.finished_at))
			ELSE CASE run.state WHEN 'rolling back' THEN '<p>It is being taken back. The same call goes on:</p>'
					ELSE '<p>At any time, also days later, connected as the role that merged:</p>' END
				|| snowflake_migrate_internal.html_query(format('CALL snowflake_migrate.rollback(%s);', run.run))
				|| '<p>It removes the rows that came, and gives the rows that were changed their former values. Where '
				'newer rows refer to merged ones it refuses, and says which.</p>' END || '</section>'
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.html_way_back(snowflake_migrate.runs)
	IS 'for snowflake_migrate.report_html()''s own use: how to take a run back';

/* The declarations that made the plan of a run, as sentences. */
CREATE FUNCTION snowflake_migrate_internal.declarations(
	run_ bigint,
	OUT relation text,
	OUT object text,
	OUT what text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT snowflake_migrate_internal.table_name(t.relation), array_to_string(t.natural_key, ', '),
		t.mode || coalesce(', accepts ' || nullif(array_to_string(t.accept, ', '), ''), '')
			|| coalesce(', leaves out ' || nullif(array_to_string(t.ignored_columns, ', '), ''), '')
			|| coalesce(', only rows where ' || t.condition, '')
	FROM snowflake_migrate_internal.plan_tables AS t
	WHERE t.run = run_ AND (t.mode <> 'copy' OR t.ignored_columns <> '{}' OR t.condition IS NOT NULL)
	UNION ALL
	SELECT snowflake_migrate_internal.table_name(t.relation), f.name || coalesce(' ' || f.path, ''),
		format('refers to %s', snowflake_migrate_internal.table_name(p.relation))
			|| coalesce(' where ' || f.condition, '') || CASE f.dangling WHEN 'error' THEN ''
				ELSE format('; what dangles: %s', f.dangling) END
	FROM snowflake_migrate_internal.plan_references AS f
		JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
		JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = f.run AND p.no = f.referenced
	WHERE f.run = run_ AND f.declared
	UNION ALL
	SELECT snowflake_migrate_internal.table_name(t.relation), t.created, 'tells when a row was created'
			|| CASE c.early WHEN 'pack' THEN '; rows older than the epoch come in order after it' ELSE '' END
	FROM snowflake_migrate_internal.plan_tables AS t
		LEFT JOIN snowflake_migrate.declared_created AS c ON c.relation = t.relation
	WHERE t.run = run_ AND t.created IS NOT NULL
	UNION ALL
	SELECT snowflake_migrate_internal.table_name(t.relation), p.constraint_name,
		format('rows that clash: %s', p.policy) || coalesce(', ' || p.argument, '')
			|| coalesce('; precedence: ' || p.precedence, '')
			|| coalesce('; combined: ' || (
				SELECT string_agg(format('%s (%s)', e.key, e.value), ', ' ORDER BY e.key COLLATE "C")
				FROM jsonb_each_text(p.combine) AS e), '')
	FROM snowflake_migrate_internal.plan_tables AS t
		JOIN snowflake_migrate.declared_policies AS p ON p.relation = t.relation
	WHERE t.run = run_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.declarations(bigint)
	IS 'for snowflake_migrate.report_html()''s own use: the declarations of a run';

CREATE FUNCTION snowflake_migrate_internal.html_declarations(run_ bigint) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH h (columns) AS (SELECT ARRAY['Table', 'Column or constraint', 'Declared']),
	n AS (
		SELECT d.*, count(*) OVER () AS total,
			row_number() OVER (ORDER BY d.relation COLLATE "C", d.object COLLATE "C", d.what COLLATE "C") AS n
		FROM snowflake_migrate_internal.declarations(run_) AS d
	)
	SELECT CASE WHEN count(n.n) = 0 THEN '' ELSE E'<section><h2>What was declared</h2>\n'
		|| snowflake_migrate_internal.html_table('Declarations that made the plan; policies and early rows as they are '
			'declared now', h.columns, array_agg(snowflake_migrate_internal.html_row(h.columns, ARRAY[
				snowflake_migrate_internal.html_name(n.relation), snowflake_migrate_internal.html_name(n.object),
				snowflake_migrate_internal.html(n.what)]) ORDER BY n.n) FILTER (WHERE n.n <= 1000),
			max(n.total), 'SELECT * FROM snowflake_migrate.declared_references;') || '</section>' END
	FROM h LEFT JOIN n ON true
	GROUP BY h.columns
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.html_declarations(bigint)
	IS 'for snowflake_migrate.report_html()''s own use: the declarations of a run on a page';

/* The run itself: times, node numbers, and whatever else is on record of it. */
CREATE FUNCTION snowflake_migrate_internal.html_run(run snowflake_migrate.runs) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT E'<section><h2>The run</h2>\n'
		|| snowflake_migrate_internal.html_table('Sources and their node numbers', c.columns, ARRAY(
			SELECT snowflake_migrate_internal.html_row(c.columns, ARRAY[
				snowflake_migrate_internal.html(run.sources[s.n]),
				(SELECT string_agg(
					snowflake_migrate_internal.html(run.schemas[s.n][t.n] || ' into ' || run.targets[t.n]), '<br/>'
					ORDER BY t.n)
				 FROM generate_subscripts(run.targets, 1) AS t (n)),
				run.nodes[s.n]::text])
			FROM generate_subscripts(run.sources, 1) AS s (n)
			ORDER BY s.n))
		|| '<dl>' || (
			SELECT string_agg(format('<div><dt>%s</dt><dd>%s</dd></div>', f.name, f.value), '' ORDER BY f.n)
			FROM (
				SELECT v.* FROM (VALUES
					(1, 'Began', snowflake_migrate_internal.html_time(run.started_at)),
					(2, 'All keys had new ones', snowflake_migrate_internal.html_time(run.mapped_at)),
					(3, 'All rows were copied', snowflake_migrate_internal.html_time(run.copied_at)),
					(4, 'Ended', snowflake_migrate_internal.html_time(run.finished_at)),
					(5, 'Merged by', snowflake_migrate_internal.html(run.merged_by))) AS v (n, name, value)
				UNION ALL
				SELECT 6, snowflake_migrate_internal.html(upper(left(k.key, 1)) || replace(substr(k.key, 2), '_', ' ')),
					snowflake_migrate_internal.html(k.value)
				FROM jsonb_each_text(to_jsonb(run)) AS k
				WHERE k.value IS NOT NULL
					AND k.key <> ALL ('{run,sources,schemas,targets,nodes,state,started_at,mapped_at,copied_at,'
									  'finished_at,merged_by,merged_by_id}')
			) AS f
			WHERE run.state <> 'dry run' OR f.n NOT IN (2, 3)) || '</dl></section>'
	FROM (SELECT ARRAY['Source', 'Schemas', '#Node number']) AS c (columns)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.html_run(snowflake_migrate.runs)
	IS 'for snowflake_migrate.report_html()''s own use: times and node numbers of a run';

/* Where a run stands, in one line. */
CREATE FUNCTION snowflake_migrate_internal.html_state(run snowflake_migrate.runs) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT format('<p class="state %s"><strong>%s</strong> %s</p>', s.class, s.words, s.sentence)
	FROM (SELECT count(*) AS errors FROM snowflake_migrate.report AS f
		  WHERE f.run = html_state.run.run AND f.severity = 'error') AS e
		CROSS JOIN (SELECT sum(b.rows_done) AS rows_left
					FROM snowflake_migrate_internal.brought(html_state.run.run) AS b) AS l
		CROSS JOIN LATERAL (SELECT CASE run.state
			WHEN 'done' THEN ARRAY['good', 'Done, and proved.', '']
			WHEN 'dry run' THEN CASE e.errors
				WHEN 0 THEN ARRAY['good', 'A dry run.', 'Nothing was changed: this is what the merge would do.']
				ELSE ARRAY['bad', 'A dry run that failed its proof.', 'Nothing was changed.'] END
			WHEN 'verifying' THEN CASE e.errors
				WHEN 0 THEN ARRAY['open', 'Copied, and not proved yet.', 'The same call of the merge goes on.']
				ELSE ARRAY['bad', 'The proof failed.', 'What is wrong is below.'] END
			WHEN 'copying' THEN ARRAY['open', 'Not finished.', 'The same call of the merge goes on where it stopped.']
			WHEN 'rolling back' THEN ARRAY['open', 'Being taken back.', 'The same call of the rollback goes on.']
			ELSE ARRAY['open', 'Taken back.', CASE l.rows_left
				WHEN 0 THEN 'The target has none of these rows any more.'
				ELSE 'Rows of tables without a key stay in the target: nothing tells them from others.' END]
			END) AS a (state)
		CROSS JOIN LATERAL (SELECT a.state[1], a.state[2], a.state[3]) AS s (class, words, sentence)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.html_state(snowflake_migrate.runs)
	IS 'for snowflake_migrate.report_html()''s own use: where a run stands';

/* The numbers at the top. */
CREATE FUNCTION snowflake_migrate_internal.html_summary(run snowflake_migrate.runs) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
	SET intervalstyle = 'postgres'
AS $$
	SELECT snowflake_migrate_internal.html_state(run) || '<dl class="numbers">' || (
			SELECT string_agg(format('<div><dt>%s</dt><dd>%s</dd></div>', n.name, n.value), '' ORDER BY n.n)
			FROM (VALUES
				(1, CASE WHEN run.state = 'dry run' THEN 'Rows would come'
					WHEN run.state IN ('rolling back', 'rolled back') THEN 'Rows still there' ELSE 'Rows came' END,
				 snowflake_migrate_internal.html_number(b.rows_done)
					|| CASE WHEN b.rows_done < b.rows_to_do AND run.state <> 'rolled back'
						THEN ' of ' || snowflake_migrate_internal.html_number(b.rows_to_do) ELSE '' END),
				(2, 'Tables', snowflake_migrate_internal.html_number(b.tables)),
				(3, 'Sources', snowflake_migrate_internal.html_number(cardinality(run.sources))),
				(4, 'Rows on record', snowflake_migrate_internal.html_number(c.records)),
				(5, 'Renamed', snowflake_migrate_internal.html_number(c.renamed)),
				(6, 'Took', CASE WHEN isfinite(run.finished_at) AND isfinite(run.started_at)
					AND run.state IN ('done', 'dry run') THEN snowflake_migrate_internal.html(
						date_trunc('second', run.finished_at - run.started_at)::text) END)
			) AS n (n, name, value)
			WHERE n.value IS NOT NULL AND (run.state <> 'dry run' OR n.n NOT IN (4, 5))) || '</dl>'
	FROM (SELECT coalesce(sum(b.rows_done), 0), coalesce(sum(b.rows_to_do), 0), count(DISTINCT b.relation)
		  FROM snowflake_migrate_internal.brought(run.run) AS b) AS b (rows_done, rows_to_do, tables),
		(SELECT count(*), count(*) FILTER (WHERE r.column_name IS NOT NULL AND r.policy NOT IN ('rerank', 'combine'))
		 FROM snowflake_migrate.records AS r WHERE r.run = html_summary.run.run) AS c (records, renamed)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.html_summary(snowflake_migrate.runs)
	IS 'for snowflake_migrate.report_html()''s own use: a run in numbers';

/* How the page looks: on a wide screen and a narrow one, light and dark, and on paper. */
CREATE FUNCTION snowflake_migrate_internal.html_style() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT $style$
:root { color-scheme: light dark; --text: #1c2329; --soft: #56626d; --back: #ffffff; --card: #f3f5f7; --line: #d5dbe1;
	--bar: #2f6fb3; --rest: #dde4ea; --good: #14683a; --bad: #a3161b; --open: #7a5200 }
@media (prefers-color-scheme: dark) { :root { --text: #e4e9ee; --soft: #a4b0bb; --back: #14191e; --card: #1f262d;
	--line: #38434d; --bar: #5b9bdc; --rest: #2d3740; --good: #6fd19a; --bad: #ff8f8f; --open: #f0c060 } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 75rem; background: var(--back); color: var(--text);
	font: 1rem/1.5 system-ui, sans-serif }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 1rem; overflow-wrap: anywhere }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem }
.state { padding: .7rem 1rem; border-left: .3rem solid var(--open); background: var(--card) }
.state.good { border-color: var(--good) } .state.bad { border-color: var(--bad) }
.good strong, .info { color: var(--good) } .bad strong, .error { color: var(--bad) }
.open strong, .warning { color: var(--open) } details { margin: 1rem 0 } summary { cursor: pointer; padding: .3rem 0 }
dl { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1rem 0 }
dl div { background: var(--card); padding: .6rem 1rem; min-width: 8rem; max-width: 100% }
dt, caption, footer { color: var(--soft); font-size: .85rem } dd { margin: 0; overflow-wrap: anywhere }
.numbers dd { font-size: 1.35rem; font-variant-numeric: tabular-nums }
.scroll { overflow-x: auto; border: 1px solid var(--line) }
table { border-collapse: collapse; width: 100%; font-size: .9rem } caption { text-align: left; padding: .5rem .7rem }
th, td { text-align: left; vertical-align: top; padding: .4rem .7rem; border-top: 1px solid var(--line);
	min-width: 6.5rem; overflow-wrap: anywhere; white-space: pre-line }
th { font-weight: 600; overflow-wrap: break-word } tbody th { min-width: 9rem } thead th { color: var(--soft) }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
.error, .warning, .info { font-weight: 600; text-transform: uppercase; font-size: .75rem; letter-spacing: .03em }
.bar { background: var(--rest); height: .7rem; min-width: 7rem; margin-top: .3rem }
.bar div { background: var(--bar); height: 100%; min-width: 1px } .bar + span { color: var(--soft); font-size: .8rem }
pre { background: var(--card); padding: .7rem 1rem; overflow-x: auto } footer { margin-top: 3rem }
@media (max-width: 48rem) { th, td { padding: .35rem .5rem } tbody th { overflow-wrap: anywhere }
	.bar { min-width: 5rem } }
@media print { body { max-width: none; padding: 0; font-size: 10pt } .scroll { overflow: visible; border: 0 }
	tr, .state, dl div { break-inside: avoid } h2 { break-after: avoid } .bar, .bar div { print-color-adjust: exact } }
$style$
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.html_style()
	IS 'for snowflake_migrate.report_html()''s own use: how the page looks';

/* The page. */
CREATE FUNCTION snowflake_migrate.report_html(run bigint) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET jit = off SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres'
	SET quote_all_identifiers = off
AS $$
DECLARE
	run_row snowflake_migrate.runs;
	title text;
BEGIN
	SELECT r.* INTO run_row FROM snowflake_migrate.runs AS r WHERE r.run = report_html.run;
	IF NOT FOUND THEN
		RAISE EXCEPTION USING ERRCODE = CASE WHEN run IS NULL THEN 'null_value_not_allowed' ELSE 'undefined_object' END,
			MESSAGE = CASE WHEN run IS NULL THEN 'run must not be null' ELSE format('merge %s does not exist', run) END,
			HINT = 'See snowflake_migrate.runs.';
	END IF;
	title := format('Merge %s: %s into %s', run,
		snowflake_migrate_internal.html(array_to_string(run_row.sources[: 5], ', ')
			|| CASE WHEN cardinality(run_row.sources) > 5 THEN ', ...' ELSE '' END),
		snowflake_migrate_internal.html(array_to_string(run_row.targets, ', ')));
	RETURN format(E'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>\n'
				  || E'<meta name="viewport" content="width=device-width, initial-scale=1"/>\n<title>%s</title>\n'
				  || E'<style>%s</style></head>\n<body><header><h1>%s</h1>\n',
				  regexp_replace(title, '</?bdi>', '', 'g'), snowflake_migrate_internal.html_style(), title)
		|| concat_ws(E'\n',
			snowflake_migrate_internal.html_summary(run_row) || '</header><main>',
			snowflake_migrate_internal.html_brought(run, run_row.state),
			snowflake_migrate_internal.html_clashes(run),
			CASE WHEN run_row.state <> 'dry run' THEN snowflake_migrate_internal.html_renamed(run) END,
			snowflake_migrate_internal.html_proof(run_row),
			snowflake_migrate_internal.html_way_back(run_row),
			snowflake_migrate_internal.html_report(run),
			snowflake_migrate_internal.html_declarations(run),
			snowflake_migrate_internal.html_run(run_row),
			format(E'</main><footer><p>As of %s.</p></footer></body></html>\n',
				   snowflake_migrate_internal.html_time(statement_timestamp())));
END
$$;
COMMENT ON FUNCTION snowflake_migrate.report_html(bigint) IS 'a page about a merge, for people';
