/*
 * Rows that clash, before there are maps: by the values that they have now.  It is a warning, as the maps may tell
 * otherwise: keys and references are not renumbered yet, and other policies may keep away rows that clash here.
 */

/*
 * The columns that a unique index of a table itself, not of one of its partitions, is about: in expressions and
 * conditions, and those that generated columns are made of, too.
 */
CREATE FUNCTION snowflake_migrate_internal.index_columns(relation regclass, label name) RETURNS name[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	attnums smallint[];
BEGIN
	SELECT array_agg(a.attnum) INTO attnums
		FROM pg_index AS i
			JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum > 0
				AND (a.attnum = ANY (i.indkey[0 : i.indnkeyatts - 1])
					 OR EXISTS (SELECT FROM pg_depend AS d
								WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
									AND d.refclassid = 'pg_class'::regclass AND d.refobjid = i.indrelid
									AND d.refobjsubid = a.attnum AND NOT a.attnum = ANY (i.indkey)))
		WHERE i.indexrelid = snowflake_migrate_internal.find_index(relation, label);
	RETURN ARRAY(
		SELECT a.attname
		FROM pg_attribute AS a
		WHERE a.attrelid = index_columns.relation AND a.attnum > 0
			AND (a.attnum = ANY (attnums) OR EXISTS (
				SELECT FROM pg_attribute AS g
				WHERE g.attrelid = a.attrelid AND g.attnum = ANY (attnums) AND g.attgenerated <> ''
					AND a.attname IN (SELECT snowflake_migrate_internal.made_of(g.attrelid, g.attname)))));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.index_columns(regclass, name)
	IS 'for snowflake_migrate.check()''s own use: the columns that an index is about';

/* Whether such an index is about values that come as they are: that are not renumbered, nor changed by a policy. */
CREATE FUNCTION snowflake_migrate_internal.is_about_values(run_ bigint, no_ int, label name) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
BEGIN
	RETURN (
		SELECT i.columns <> '{}' AND NOT (t.kind = 'id' AND t.key && i.columns)
			AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_columns AS c
							WHERE c.run = run_ AND c.no = no_ AND c.name = ANY (i.columns) AND c.changed_by IS NOT NULL)
			AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS r
							WHERE r.run = run_ AND r.no = no_ AND r.name = ANY (i.columns))
		FROM snowflake_migrate_internal.planned_table(run_, no_) AS t
			CROSS JOIN LATERAL (
				SELECT snowflake_migrate_internal.index_columns(t.relation, is_about_values.label)) AS i (columns));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.is_about_values(bigint, int, name)
	IS 'for snowflake_migrate.check()''s own use: whether what is unique comes as it is';

/*
 * How many rows of the sources a unique constraint, a row of unique_constraints(), would not let beside those of the
 * target and of the sources before; and one of them.
 */
CREATE FUNCTION snowflake_migrate_internal.clashing(
	run_ bigint,
	no_ int,
	constraint_ jsonb,
	OUT clashes bigint,
	OUT example text)
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
DECLARE
	names CONSTANT jsonb := snowflake_migrate_internal.constraint_names(run_, no_, constraint_);
	taken text := names ->> 'taken';
	source_rows text;
	n bigint;
	one text;
BEGIN
	clashes := 0;
	FOR source_rows IN
		SELECT snowflake_migrate_internal.fill('SELECT {values} FROM {named_rows} WHERE {indexed}',
			names || jsonb_build_object(
				'named_rows', snowflake_migrate_internal.named_rows(s.source_relation, s.relation,
					snowflake_migrate_internal.index_columns(s.relation, (constraint_ ->> 'label')::name))))
		FROM snowflake_migrate_internal.source_tables(run_) AS s
		WHERE s.no = no_ AND snowflake_migrate_internal.can_read(s.source_relation)
			AND snowflake_migrate_internal.can_read(s.relation)
		ORDER BY s.source_no
	LOOP
		BEGIN
			EXECUTE snowflake_migrate_internal.fill($query$
				SELECT count(*), min(left(concat_ws(', ', {w.e#}), 100))
				FROM ({source_rows}) AS w
				WHERE EXISTS (SELECT FROM ({taken}) AS t WHERE {same})
			$query$, names || jsonb_build_object('taken', taken, 'source_rows', source_rows)) INTO n, one;
			clashes := clashes + n;
			example := coalesce(example, one);
			taken := snowflake_migrate_internal.fill('SELECT {t.e#} FROM ({taken}) AS t UNION ALL {source_rows}',
				names || jsonb_build_object('taken', taken, 'source_rows', source_rows));
		/* As in a source that lacks a column, or has values that do not become the target's: the maps tell more. */
		EXCEPTION WHEN others THEN
			NULL;
		END;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.clashing(bigint, int, jsonb)
	IS 'for snowflake_migrate.check()''s own use: how many rows clash in a unique constraint';

/* Adds to the report which rows clash.  Which rows stay behind by a condition (only) is not known yet. */
CREATE FUNCTION snowflake_migrate_internal.check_clashes(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, t.relation::text, u.label,
			'rows clash by the values that they have now', c.clashes, c.example,
			snowflake_migrate_internal.policy_advice(t.relation, u.label))
		FROM snowflake_migrate_internal.plan_tables AS t
			CROSS JOIN LATERAL snowflake_migrate_internal.unique_constraints(run_, t.no) AS u
			CROSS JOIN LATERAL snowflake_migrate_internal.clashing(run_, t.no, to_jsonb(u)) AS c
		WHERE t.run = run_ AND t.mode = 'copy' AND t.kind <> 'none' AND t.condition IS NULL AND u.policy = 'error'
			AND snowflake_migrate_internal.is_about_values(run_, t.no, u.label) AND c.clashes > 0
			/* What may be a reference, it is asked about: as one, it would be renumbered. */
			AND NOT EXISTS (
				SELECT FROM snowflake_migrate.report AS f
				WHERE f.run = run_ AND f.severity = 'warning' AND f.relation = t.relation::text
					AND f.object = ANY (snowflake_migrate_internal.index_columns(t.relation, u.label)));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_clashes(bigint)
	IS 'for snowflake_migrate.check()''s own use: finds rows that clash, before there are maps';
