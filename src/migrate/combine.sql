/*
 * Rows that become one: columns whose values are combined, as the policies of their table say.
 *
 * When it is known which rows become one, combine_rows() combines them, before the first row is copied, and puts the
 * values into what policies change (change_NO): of the row that is copied, or of the target's (source 0).  Copying,
 * proof and rollback see to them as to all other changes.  The proof combines the rows once more (verify_combined).
 *
 * Nobody has made statistics of what the passes have changed in the maps, nor of a query's own tables: without nested
 * loops, whole tables are joined by hashing (enable_nestloop).
 */

/*
 * A query for the rows of one table that become one with others, each as it is alone: the columns of all_rows(), and
 * "merge rank": the row that stays is the first, then come the target's, and those of the sources in their order.  When
 * the target's rows are others by now, the changes and the former rows tell what they were; those that the run brought
 * are none.
 */
CREATE FUNCTION snowflake_migrate_internal.rows_to_combine(run_ bigint, no_ int) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT snowflake_migrate_internal.fill($query$
			SELECT q.*, row_number() OVER (
					PARTITION BY {q."merge n#"}
					ORDER BY q."merge action" <> 'r', q."merge action" <> 't', q."merge action" <> 'c',
						q."merge source", {q."merge o#"}) AS "merge rank"
			FROM ({rows} UNION ALL SELECT 0, t.* FROM ({target_rows}) AS t) AS q
			WHERE q."merge action" IN ('c', 'r', 'k', 'm', 't') AND ({q."merge n#"}) IN (
				SELECT {m.n#} FROM {map} AS m WHERE m.action IN ('k', 'm', 'r'))
		$query$, names || jsonb_build_object(
			'rows', snowflake_migrate_internal.all_rows(run_, no_, false),
			'target_rows', snowflake_migrate_internal.with_generated((names ->> 'oid')::oid::regclass,
				snowflake_migrate_internal.fill($query$
					SELECT {t.@ AS "merge o#", t.@ AS "merge n#"}, 't'::"char" AS "merge action",
						0 AS "merge tries", {columns}
					FROM {originals} AS t LEFT JOIN {change} AS v ON v."merge source" = 0 AND ({v."merge o#"}) = ({t.@})
					WHERE NOT EXISTS (SELECT FROM {map} AS c WHERE c.action = 'c' AND ({c.n#}) = ({t.@}))
				$query$, names || jsonb_build_object(
					'originals', CASE WHEN to_regclass(names ->> 'former') IS NULL THEN names ->> 'target'
						ELSE snowflake_migrate_internal.fill($query$(
							SELECT f.* FROM {former} AS f
							UNION ALL
							SELECT t.* FROM {target} AS t
							WHERE NOT EXISTS (SELECT FROM {former} AS f WHERE ({f.@}) = ({t.@}))
						)$query$, names) END,
					'columns', (
						SELECT string_agg(CASE
								WHEN c.combine IS NOT NULL
									THEN format('CASE WHEN v."merge combined" THEN v.%I::%s ELSE t.%I END AS %I',
												b.old, format_type(a.atttypid, a.atttypmod), c.name, c.name)
								WHEN c.in_target THEN format('CASE WHEN v.%I IS NULL THEN t.%I ELSE v.%I::%s END AS %I',
									c.name, c.name, b.old, format_type(a.atttypid, a.atttypmod), c.name)
								ELSE format('t.%I', c.name) END, ', ' ORDER BY c.position)
						FROM snowflake_migrate_internal.plan_columns AS c
							JOIN pg_attribute AS a ON a.attrelid = (names ->> 'oid')::oid AND a.attname = c.name
							CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.beside('old', c.name)) AS b (old)
						WHERE c.run = run_ AND c.no = no_ AND NOT c.generated))))))
	FROM snowflake_migrate_internal.names(run_, no_) AS names
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.rows_to_combine(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: a query for the rows that become one with others';

/*
 * The columns of one table as the queries about combined rows list them: those that are combined (columns, and how:
 * aggregates, next_values), or all.  alone: as if only one were combined.
 */
CREATE FUNCTION snowflake_migrate_internal.combine_columns(run_ bigint, no_ int, relation_ oid, alone name)
RETURNS jsonb
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
BEGIN
	RETURN (
		SELECT jsonb_build_object(
				'columns', string_agg(quote_ident(c.name), ', ' ORDER BY c.position)
					FILTER (WHERE c.combine IS NOT NULL),
				'old_columns', string_agg(quote_ident(b.old), ', ' ORDER BY c.position)
					FILTER (WHERE c.combine IS NOT NULL),
				'own_texts', string_agg(format('q.%I::text', b.own), ', ' ORDER BY c.position)
					FILTER (WHERE c.combine IS NOT NULL),
				'assigned', string_agg(format('%I = excluded.%I, %I = excluded.%I', c.name, c.name, b.old, b.old), ', ')
					FILTER (WHERE c.combine IS NOT NULL),
				'differs', string_agg(format(
						'ROW (q.%1$I)::record OPERATOR(pg_catalog.*<>) '
						'ROW (CASE WHEN v."merge combined" THEN v.%1$I ELSE q.%2$I END)::record',
						c.name, b.own), ' OR ') FILTER (WHERE c.combine IS NOT NULL),
				'changes', string_agg(format('ROW (q.%I)::record OPERATOR(pg_catalog.*<>) ROW (q.%I)::record',
											 c.name, b.own), ' OR ') FILTER (WHERE c.combine IS NOT NULL),
				'aggregates', coalesce(string_agg(', ' || format('CAST(%s AS %s)%s AS %I',
					x.aggregate, x.type, x.collation, c.name), '' ORDER BY c.position)
					FILTER (WHERE x.aggregate IS NOT NULL), ''),
				'values', string_agg(format('%s.%I, s.%I AS %I', CASE WHEN x.aggregate IS NULL THEN 'e' ELSE 'a' END,
					c.name, c.name, b.own), ', ' ORDER BY c.position) FILTER (WHERE c.combine IS NOT NULL),
				'first_values', string_agg(CASE WHEN x.is_expression
					THEN format('CAST(s.%I AS %s)%s AS %I', c.name, x.type, x.collation, c.name)
					ELSE format('s.%I', c.name) END, ', ' ORDER BY c.position),
				'next_values', string_agg(CASE WHEN x.is_expression
					THEN format('CAST((%s) AS %s)%s', c.combine, x.type, x.collation)
					ELSE format('kept.%I', c.name) END, ', ' ORDER BY c.position),
				'has_expressions', bool_or(x.is_expression))
			FROM (
					SELECT k.name, k.position, CASE WHEN k.name = coalesce(alone, k.name) THEN k.combine END AS combine
					FROM snowflake_migrate_internal.plan_columns AS k
					WHERE k.run = run_ AND k.no = no_) AS c
				JOIN pg_attribute AS a ON a.attrelid = relation_ AND a.attname = c.name
				CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.beside('old', c.name),
					snowflake_migrate_internal.beside('own', c.name)) AS b (old, own)
				CROSS JOIN LATERAL (
					SELECT g.aggregate, c.combine IS NOT NULL AND g.aggregate IS NULL AS is_expression,
						format_type(a.atttypid, a.atttypmod) AS type,
						snowflake_migrate_internal.collate_clause(a.attcollation) AS collation
					FROM snowflake_migrate_internal.combining(
						c.combine, quote_ident(c.name), a.atttypid, '"merge rank"') AS g (aggregate)
				) AS x);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.combine_columns(bigint, int, oid, name)
	IS 'for snowflake_migrate.merge()''s own use: the columns in queries about combined rows';

/*
 * The names in queries about combined rows, or null where none are.  combined is a query for the rows that stay, each
 * with the combined values of its columns, and what they were ("own ..") alone; differs: whether these are not what is
 * on record, v.  alone: of one column only.
 *
 * An expression is about two rows: where more become one, it is evaluated for the first two, then for what came of
 * these and the third, and so on.
 */
CREATE FUNCTION snowflake_migrate_internal.combine_names(run_ bigint, no_ int, alone name DEFAULT NULL) RETURNS jsonb
LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	names jsonb := snowflake_migrate_internal.names(run_, no_);
BEGIN
	names := names || snowflake_migrate_internal.combine_columns(run_, no_, (names ->> 'oid')::oid, alone);
	IF names ->> 'columns' IS NULL OR names ->> 'kind' = 'none'
		OR NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_) THEN
		RETURN NULL;
	END IF;
	names := names || jsonb_build_object('rows', snowflake_migrate_internal.rows_to_combine(run_, no_));
	RETURN names || jsonb_build_object('combined', snowflake_migrate_internal.fill($query$
		WITH RECURSIVE r AS MATERIALIZED (
			{rows}
		),
		a AS (
			SELECT {r."merge n#"}{aggregates} FROM r GROUP BY {r."merge n#"}
		){expressions}
		SELECT s."merge source", {s."merge o#"}, {s."merge n#"}, {values}
		FROM r AS s JOIN a ON ({a."merge n#"}) = ({s."merge n#"}){join_expressions}
		WHERE s."merge rank" = 1
	$query$, names || CASE WHEN names -> 'has_expressions' = 'false' THEN '{"expressions": "", "join_expressions": ""}'
		ELSE jsonb_build_object(
			'expressions', snowflake_migrate_internal.fill($query$,
				steps AS (
					SELECT {s."merge n#"}, s."merge rank", {first_values} FROM r AS s WHERE s."merge rank" = 1
					UNION ALL
					SELECT {kept."merge n#"}, gone."merge rank", {next_values}
					FROM steps AS kept
						JOIN r AS gone ON ({gone."merge n#"}) = ({kept."merge n#"})
							AND gone."merge rank" = kept."merge rank" + 1
				)$query$, names),
			'join_expressions', snowflake_migrate_internal.fill($query$
				JOIN (
					SELECT DISTINCT ON ({x."merge n#"}) x.* FROM steps AS x ORDER BY {x."merge n#"}, x."merge rank" DESC
				) AS e ON ({e."merge n#"}) = ({s."merge n#"})$query$, names)) END));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.combine_names(bigint, int, name)
	IS 'for snowflake_migrate.merge()''s own use: the names in queries about combined rows';

/* Adds to the report which columns cannot be combined, as their values are. */
CREATE FUNCTION snowflake_migrate_internal.find_uncombined(names jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
DECLARE
	name name;
BEGIN
	FOR name IN SELECT c.name FROM snowflake_migrate_internal.plan_columns AS c
		WHERE c.run = (names ->> 'run')::bigint AND c.no = (names ->> 'no')::int AND c.combine IS NOT NULL
		ORDER BY c.position
	LOOP
		BEGIN
			EXECUTE snowflake_migrate_internal.fill('SELECT count(q.{"column"}) FROM ({combined}) AS q',
				snowflake_migrate_internal.combine_names((names ->> 'run')::bigint, (names ->> 'no')::int, name)
					|| jsonb_build_object('column', name));
		EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
			PERFORM snowflake_migrate_internal.add_to_report((names ->> 'run')::bigint, 'error', NULL,
				names ->> 'table', name, 'values cannot be combined: ' || SQLERRM, NULL, NULL,
				'Widen the column, combine it in another way, or change these rows.');
		END;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_uncombined(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: columns that cannot be combined';

/* Combines the rows of one table that become one, and puts on record what they were. */
CREATE FUNCTION snowflake_migrate_internal.combine_rows(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
#variable_conflict use_column
DECLARE
	names CONSTANT jsonb := snowflake_migrate_internal.combine_names(run_, no_);
	c record;
	found bigint;
BEGIN
	BEGIN
		EXECUTE snowflake_migrate_internal.fill($query$
			INSERT INTO {change} AS v
				("merge source", {"merge o#"}, "merge tries", "merge combined", {columns}, {old_columns})
			SELECT q."merge source", {q."merge o#"}, 0, true, {q_columns}, {own_texts}
			FROM ({combined}) AS q
			WHERE q."merge source" > 0 OR {changes}
			ON CONFLICT ("merge source", {"merge o#"}) DO UPDATE SET "merge combined" = true, {assigned}
		$query$, names || jsonb_build_object('q_columns', (
			SELECT string_agg(format('q.%I', k.name), ', ' ORDER BY k.position)
			FROM snowflake_migrate_internal.plan_columns AS k
			WHERE k.run = run_ AND k.no = no_ AND k.combine IS NOT NULL)));
	EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
		PERFORM snowflake_migrate_internal.find_uncombined(names);
		RETURN;
	END;
	FOR c IN
		SELECT k.name, k.combined_by, a.attnotnull AS not_null
		FROM snowflake_migrate_internal.plan_columns AS k
			JOIN pg_attribute AS a ON a.attrelid = (names ->> 'oid')::oid AND a.attname = k.name
		WHERE k.run = run_ AND k.no = no_ AND k.combine IS NOT NULL
		ORDER BY k.position
	LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			INSERT INTO snowflake_migrate.records
				(run, source, relation, constraint_name, policy, old_key, new_key, column_name, old_value, new_value)
			SELECT {run}, ({'sources'}::name[])[v."merge source"], {'table'}, {'label'}, 'combine',
				CASE WHEN v."merge source" > 0 THEN {v."merge o#"::text} END,
				coalesce({m.n#::text}, {v."merge o#"::text}), {'column'}, v.{"old_column"}, v.{"column"}::text
			FROM {change} AS v
				LEFT JOIN {map} AS m ON m.source = v."merge source" AND ({m.o#}) = ({v."merge o#"})
			WHERE v."merge combined" AND v.{"column"}::text IS DISTINCT FROM v.{"old_column"}
		$query$, names || jsonb_build_object('column', c.name, 'label', c.combined_by,
			'old_column', snowflake_migrate_internal.beside('old', c.name)));
		EXECUTE snowflake_migrate_internal.fill(
			'SELECT count(*) FROM {change} AS v WHERE v."merge combined" AND v.{"column"} IS NULL',
			names || jsonb_build_object('column', c.name)) INTO found;
		IF c.not_null AND found > 0 THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, names ->> 'table', c.name,
				'combined values are null, and the column cannot be null', found, NULL,
				'Combine the column in another way.');
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.combine_rows(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: combines rows that become one';
