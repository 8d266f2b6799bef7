/*
 * References: conditions that overlap or leave values out, and foreign keys that lead to what is not merged or not
 * kept.
 */

/*
 * The columns, and the places in documents, whose references have conditions that can be looked at in the rows of a
 * source, each with all of its conditions as one sum, those of references to keys that stay as well.  is_complete:
 * values for which none holds are looked after.
 */
CREATE FUNCTION snowflake_migrate_internal.conditional_references(
	run_ bigint,
	OUT no int,
	OUT source_no int,
	OUT source name,
	OUT relation regclass,
	OUT source_relation regclass,
	OUT key name[],
	OUT name name,
	OUT conditions text,
	OUT is_complete boolean) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT s.no, s.source_no, s.source, t.relation, s.source_relation, t.key, f.name,
		string_agg(format('((%s) IS TRUE)::int', f.condition), ' + ') FILTER (WHERE f.condition IS NOT NULL),
		/* A document for which no condition holds need not hold ids.  Of others, it may be declared. */
		bool_or(f.condition IS NULL) OR f.path IS NOT NULL OR EXISTS (
			SELECT FROM snowflake_migrate.declared_no_references AS r
			WHERE r.relation = t.relation AND r.column_name = f.name AND r.path IS NULL)
	FROM snowflake_migrate_internal.source_tables(run_) AS s
		JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.no = s.no
		JOIN (
			SELECT r.no, r.name, r.path, r.condition
			FROM snowflake_migrate_internal.plan_references AS r
			WHERE r.run = run_
			UNION
			SELECT c.no, c.name, NULL, k.condition
			FROM snowflake_migrate_internal.plan_columns AS c, unnest(c.kept_conditions) AS k (condition)
			WHERE c.run = run_
		) AS f ON f.no = s.no
	WHERE snowflake_migrate_internal.can_read(s.source_relation)
		AND snowflake_migrate_internal.has_columns(s.source_relation, ARRAY[f.name])
	GROUP BY s.no, s.source_no, s.source, t.relation, s.source_relation, t.key, f.name, f.path
	HAVING count(f.condition) > 0
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.conditional_references(bigint)
	IS 'for snowflake_migrate.merge()''s own use: references with conditions';

/*
 * Conditions of references from one table of a source, rows of conditional_references(), that overlap, that leave
 * values out, or that can't be evaluated.  All in one pass over the table: it may be on another server.  Where a
 * condition may read ids, what these become counts; so rows are counted in another stage than 'before the maps': 'with
 * maps', or by the ids of the source if there are none ('without maps').
 */
CREATE FUNCTION snowflake_migrate_internal.check_conditions_of(run_ bigint, refs jsonb[], stage text) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	source CONSTANT name := refs[1] ->> 'source';
	relation CONSTANT regclass := refs[1] ->> 'relation';
	source_relation CONSTANT regclass := refs[1] ->> 'source_relation';
	conditions CONSTANT text[] := ARRAY(
		SELECT c.ref ->> 'conditions' FROM unnest(refs) WITH ORDINALITY AS c (ref, n) ORDER BY c.n);
	asked CONSTANT text[] := ARRAY(
		SELECT snowflake_migrate_internal.asked_of_target(run_, (c.ref ->> 'no')::int, (c.ref ->> 'source_no')::int,
														  (c.ref ->> 'name')::name, c.ref ->> 'conditions')
		FROM unnest(refs) WITH ORDINALITY AS c (ref, n)
		ORDER BY c.n);
	may_read_ids CONSTANT boolean := asked <> conditions;
	r record;
BEGIN
	IF stage <> 'before the maps' AND NOT may_read_ids THEN
		RETURN true;
	END IF;
	FOR r IN EXECUTE snowflake_migrate_internal.fill($query$
		SELECT c.ref ->> 'name' AS name, (c.ref -> 'is_complete')::boolean AS is_complete, f.*
		FROM unnest({'refs'}::jsonb[]) WITH ORDINALITY AS c (ref, n)
			JOIN (
				SELECT v.n, count(*) FILTER (WHERE v.held > 1) AS overlapping,
					min({row}) FILTER (WHERE v.held > 1) AS overlapping_example,
					count(*) FILTER (WHERE v.held = 0) AS left_out,
					min({row}) FILTER (WHERE v.held = 0) AS left_out_example
				FROM (SELECT *, {held} FROM {named_rows}) AS s
					CROSS JOIN LATERAL (VALUES {values}) AS v (n, held, is_given)
				WHERE v.is_given
				GROUP BY v.n
			) AS f USING (n)
		ORDER BY n
	$query$, jsonb_build_object(
		'refs', refs::text,
		'row', snowflake_migrate_internal.row_text(
			ARRAY(SELECT jsonb_array_elements_text(refs[1] -> 'key'))::name[],
			(SELECT string_agg(format('s.%I', a.attname), ', ' ORDER BY a.attnum)
			 FROM pg_attribute AS a
			 WHERE a.attrelid = source_relation AND a.attnum > 0 AND NOT a.attisdropped
				AND snowflake_migrate_internal.has_columns(relation, ARRAY[a.attname]))),
		'named_rows', snowflake_migrate_internal.named_rows(source_relation, relation),
		'held', (
			SELECT string_agg(format('%s AS "snowflake conditions %s"', c.condition, c.n), ', ')
			FROM unnest(CASE stage WHEN 'with maps' THEN asked ELSE conditions END)
				WITH ORDINALITY AS c (condition, n)),
		'values', (
			SELECT string_agg(format('(%s, s."snowflake conditions %1$s", nullif(s.%I::text, ''{}'') IS NOT NULL)',
									 c.n, c.ref ->> 'name'),
							  ', ')
			FROM unnest(refs) WITH ORDINALITY AS c (ref, n))))
	LOOP
		EXIT WHEN stage = 'before the maps' AND may_read_ids;
		IF r.overlapping > 0 THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', source, relation::text, r.name,
				'more than one condition of a reference holds', r.overlapping, r.overlapping_example,
				'Declare references whose conditions exclude each other.');
		END IF;
		IF r.left_out > 0 AND NOT r.is_complete THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', source, relation::text, r.name,
				'no condition of a reference holds: values are copied as they are', r.left_out, r.left_out_example,
				format('If they are ids too: SELECT snowflake_migrate.declare_reference(%L, %L, ''?'', ''?''); if not: '
					   'SELECT snowflake_migrate.declare_no_reference(%1$L, %2$L);', relation, r.name),
				is_question => true);
		END IF;
	END LOOP;
	RETURN true;
EXCEPTION WHEN syntax_error_or_access_rule_violation OR data_exception THEN
	IF stage = 'without maps' THEN
		/* It is in the report. */
		RETURN false;
	ELSIF cardinality(refs) > 1 THEN
		/* Which of them it is. */
		RETURN (SELECT bool_and(snowflake_migrate_internal.check_conditions_of(run_, ARRAY[c.ref], stage))
				FROM unnest(refs) AS c (ref));
	END IF;
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', source, relation::text, refs[1] ->> 'name',
		'the condition of the reference cannot be evaluated: ' || SQLERRM,
		advice => 'Declare the reference with snowflake_migrate.declare_reference() again, '
			'or give a view of the source that has what the condition needs.');
	RETURN false;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_conditions_of(bigint, jsonb[], text)
	IS 'for snowflake_migrate.merge()''s own use: finds what is wrong with conditions of references from a table';

/* The same for all tables of all sources; returns whether the maps can be made. */
CREATE FUNCTION snowflake_migrate_internal.check_conditions(run_ bigint, stage text) RETURNS boolean
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT coalesce(bool_and(snowflake_migrate_internal.check_conditions_of(run_, t.refs, stage)), true)
	FROM (
		SELECT array_agg(to_jsonb(c) ORDER BY c.name) AS refs
		FROM snowflake_migrate_internal.conditional_references(run_) AS c
		GROUP BY c.source, c.source_relation
		ORDER BY c.source, c.source_relation
	) AS t
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_conditions(bigint, text)
	IS 'for snowflake_migrate.merge()''s own use: finds what is wrong with conditions of references';

/*
 * Conditions of references that would say something else when they are asked again, as the maps, the copy and the proof
 * do: those that read what the merge changes, or users of a target in use may, in sub-selects or functions; and those
 * that depend on the time, or on chance.  When the maps are made, it is known what comes.
 */
CREATE FUNCTION snowflake_migrate_internal.find_changing_conditions(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	is_in_use CONSTANT boolean := snowflake_migrate_internal.is_in_use(run_);
	ref record;
	view regclass;
	found_ record;
BEGIN
	FOR ref IN
		SELECT t.relation, f.name, f.condition, c.relname
		FROM snowflake_migrate_internal.plan_references AS f
			JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
			JOIN pg_class AS c ON c.oid = t.relation
		WHERE f.run = run_ AND f.condition IS NOT NULL
			AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s
						WHERE s.run = f.run AND s.no = f.no AND (s.rows_to_do > 0 OR t.mode IN ('match', 'same_id')))
		ORDER BY f.id
	LOOP
		/* The row itself is given: only what is read beside it counts. */
		EXECUTE format('CREATE TEMPORARY VIEW snowflake_row AS SELECT * FROM ONLY %s', ref.relation);
		view := snowflake_migrate_internal.create_expressions_view(
			ARRAY[format('SELECT (%s) IS TRUE FROM pg_temp.snowflake_row AS %I', ref.condition, ref.relname)]);
		WITH read AS MATERIALIZED (
			SELECT r.class, r.oid
			FROM snowflake_migrate_internal.read_by(view, true, 'pg_temp.snowflake_row'::regclass) AS r
		),
		tree AS MATERIALIZED (
			SELECT w.ev_action::text AS tree
			FROM read AS r JOIN pg_rewrite AS w ON w.ev_class = r.oid AND w.ev_type = '1'
			WHERE r.class = 'pg_class'::regclass AND r.oid <> 'pg_temp.snowflake_row'::regclass
		)
		SELECT
			(SELECT string_agg(t.relation::text, ', ' ORDER BY t.no)
			 FROM snowflake_migrate_internal.plan_tables AS t
			 WHERE t.run = run_
				AND EXISTS (
					SELECT FROM read AS r
					WHERE r.class = 'pg_class'::regclass
						AND (r.oid = t.relation OR pg_partition_root(r.oid) = t.relation))
				AND (EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s
							 WHERE s.run = run_ AND s.no = t.no AND s.rows_to_do > 0)
					 OR EXISTS (SELECT FROM snowflake_migrate_internal.plan_columns AS c
								WHERE c.run = run_ AND c.no = t.no AND (c.in_target OR c.combine IS NOT NULL)))
			) AS changed,
			(SELECT string_agg(c.oid::regclass::text, ', ' ORDER BY c.oid)
			 FROM read AS r JOIN pg_class AS c ON r.class = 'pg_class'::regclass AND c.oid = r.oid
			 WHERE is_in_use AND c.relkind IN ('r', 'p', 'f', 'm')) AS in_use,
			coalesce(
				(SELECT min(p.oid::regprocedure::text)
				 FROM tree AS w,
					regexp_matches(w.tree, ':(?:funcid|opfuncid) ([0-9]+)', 'g') AS m (ids)
					JOIN pg_proc AS p ON p.oid = m.ids[1]::oid
				 WHERE p.oid < 16384 AND (p.provolatile = 'v'
					OR p.proname IN ('now', 'transaction_timestamp', 'statement_timestamp')
					OR p.proname = 'age' AND p.pronargs = 1)),
				(SELECT min('current_timestamp') FROM tree AS w WHERE w.tree ~ '[{]SQLVALUEFUNCTION ')) AS unsteady,
			(SELECT string_agg(r.oid::regprocedure::text, ', ' ORDER BY r.oid::regprocedure::text)
			 FROM read AS r JOIN pg_proc AS p USING (oid)
			 WHERE r.class = 'pg_proc'::regclass AND p.provolatile <> 'i' AND p.oid >= 16384
				AND NOT EXISTS (SELECT FROM pg_depend AS e
								WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e')
			) AS called
			INTO found_;
		DROP VIEW pg_temp.snowflake_expressions, pg_temp.snowflake_row;
		PERFORM snowflake_migrate_internal.add_to_report(run_, p.severity, NULL, ref.relation::text, ref.name,
				'the condition of the reference ' || p.problem, advice => p.advice)
			FROM (
				SELECT 1, 'error', format('reads %s, which the merge changes', found_.changed),
					'Declare the reference with a condition on the row''s own columns, or on tables that the merge '
						'does not change. Where rows are shared (mode "match"), insert into the target those that only '
						'sources have; then the merge does not change the table.'
				UNION ALL
				SELECT 2, 'error', format('reads %s, which users of the target may change', found_.in_use),
					'Declare the reference with a condition on the row''s own columns, or merge with the target closed.'
				UNION ALL
				SELECT 3, 'error', format('calls %s, which says something else each time', found_.unsteady),
					'It is asked for the maps, the copy and the proof: give the time as a constant.'
				UNION ALL
				SELECT 4, 'warning', format('calls %s, which may read what the merge changes', found_.called),
					'If it does, declare the reference with another condition: rows that are to come are not there '
						'yet. If it reads no table, it can be IMMUTABLE.'
			) AS p (n, severity, problem, advice)
			WHERE p.n = CASE WHEN found_.changed IS NOT NULL THEN 1 WHEN found_.in_use IS NOT NULL THEN 2
				WHEN found_.unsteady IS NOT NULL THEN 3 WHEN found_.called IS NOT NULL THEN 4 END;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_changing_conditions(bigint)
	IS 'for snowflake_migrate.merge()''s own use: conditions of references that would say something else later';

/* Conditions on the rows that come: that can't be evaluated in a source, or in a table without a key. */
CREATE FUNCTION snowflake_migrate_internal.check_only(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	can_map boolean := true;
	t record;
BEGIN
	FOR t IN
		SELECT s.source, s.source_relation, p.relation, p.kind, p.condition
		FROM snowflake_migrate_internal.source_tables(run_) AS s
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.no = s.no
		WHERE p.condition IS NOT NULL AND snowflake_migrate_internal.can_read(s.source_relation)
	LOOP
		IF t.kind = 'none' THEN
			can_map := false;
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, t.relation::text, 'only',
				'the table has no key by which the rows that stay behind could be known',
				advice => 'Give the table a primary key, or put a view that leaves the rows out in its place.');
			CONTINUE;
		END IF;
		BEGIN
			EXECUTE snowflake_migrate_internal.fill(
				'SELECT FROM {named_rows} WHERE ({condition}) IS NOT TRUE LIMIT 0', jsonb_build_object(
					'named_rows', snowflake_migrate_internal.named_rows(t.source_relation, t.relation),
					'condition', t.condition));
		/* A literal of another type than the source's fails before a row is read. */
		EXCEPTION WHEN syntax_error_or_access_rule_violation OR data_exception THEN
			can_map := false;
			PERFORM snowflake_migrate_internal.report_failed_only(run_, t.source, t.relation::text, SQLERRM);
		END;
	END LOOP;
	RETURN can_map;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_only(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds what is wrong with conditions on rows';

/*
 * Whether an equal key of a table outside of the target is the same row for all sources: nobody's default makes such
 * keys, it is declared, or the source's own foreign key leads to the very same table.
 */
CREATE FUNCTION snowflake_migrate_internal.is_shared(
	run_ bigint,
	no_ int,
	column_name name,
	referenced regclass,
	referenced_name name) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	/* The key may be a reference itself. */
	WITH RECURSIVE reached (relation, attnum) AS (
		SELECT k.attrelid, k.attnum
		FROM pg_attribute AS k WHERE k.attrelid = is_shared.referenced AND k.attname = referenced_name
		UNION
		SELECT f.confrelid, f.confkey[n]
		FROM reached AS r
			JOIN pg_constraint AS f ON f.contype = 'f' AND f.conrelid = r.relation
			CROSS JOIN LATERAL generate_subscripts(f.conkey, 1) AS n
		WHERE f.conkey[n] = r.attnum
	)
	SELECT NOT EXISTS (
			SELECT FROM reached AS r
			WHERE snowflake_migrate_internal.makes_numbers(r.relation, r.attnum)
				AND NOT EXISTS (SELECT FROM snowflake_migrate.declared_tables AS d
								WHERE d.relation IN (r.relation, is_shared.referenced) AND d.mode = 'same_id'))
		OR NOT EXISTS (
			SELECT FROM snowflake_migrate_internal.plan_sources AS s
			WHERE s.run = run_ AND s.no = no_ AND NOT EXISTS (
				SELECT FROM pg_constraint AS f
					JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = ANY (f.conkey)
				WHERE f.contype = 'f' AND f.conrelid = s.relation AND f.confrelid = is_shared.referenced
					AND a.attname = is_shared.column_name))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.is_shared(bigint, int, name, regclass, name)
	IS 'for snowflake_migrate.merge()''s own use: whether equal keys outside of the target are the same row';

/* Foreign keys that lead to what is outside of the target, ignored, or changed by a policy. */
CREATE FUNCTION snowflake_migrate_internal.check_foreign_keys(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	r record;
BEGIN
	FOR r IN
		SELECT f.relation::text, f.name, f.referenced::text, f.referenced_name,
			x.is_outside, q.mode = 'ignore' AS is_ignored, k.changed_by,
			/* What is generated itself changes as well, and the proof compares it. */
			CASE WHEN k.generated AND q.mode <> 'ignore' AND NOT EXISTS (
					SELECT FROM snowflake_migrate_internal.plan_columns AS o
					WHERE o.run = run_ AND o.no = t.no AND o.name = f.name AND o.generated) THEN (
				SELECT min(m.name)
				FROM snowflake_migrate_internal.made_of(f.referenced, f.referenced_name) AS m (name)
					JOIN snowflake_migrate_internal.plan_columns AS b
						ON b.run = run_ AND b.no = q.no AND b.name = m.name
				WHERE b.changed_by IS NOT NULL OR b.combine IS NOT NULL OR q.kind = 'id' AND b.name = q.key[1]
					OR EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS o
							   WHERE o.run = run_ AND o.no = q.no AND o.name = b.name)) END AS changing_input,
			CASE WHEN x.is_outside
				THEN snowflake_migrate_internal.is_shared(run_, t.no, f.name, f.referenced, f.referenced_name)
				END AS is_shared,
			EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS o
					WHERE o.run = run_ AND o.no = t.no AND o.name = f.name) AS is_mapped
		FROM snowflake_migrate.runs AS u
			CROSS JOIN LATERAL snowflake_migrate_internal.foreign_keys(u.targets) AS f
			JOIN snowflake_migrate_internal.merged_tables(run_) AS t ON t.relation = f.relation
			JOIN pg_class AS c ON c.oid = f.referenced
			JOIN pg_namespace AS n ON n.oid = c.relnamespace
			CROSS JOIN LATERAL (SELECT n.nspname <> ALL (u.targets)) AS x (is_outside)
			LEFT JOIN snowflake_migrate_internal.plan_tables AS q ON q.run = run_ AND q.relation = f.referenced
			LEFT JOIN snowflake_migrate_internal.plan_columns AS k
				ON k.run = run_ AND k.no = q.no AND k.name = f.referenced_name
		WHERE u.run = run_
			AND NOT EXISTS (
				SELECT FROM snowflake_migrate.declared_references AS d
				WHERE d.relation = f.relation AND d.column_name = f.name)
	LOOP
		IF r.is_outside AND NOT r.is_shared THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, r.relation, r.name,
				format('refers to %s, outside of the target, whose keys each database gives anew: '
					   'an equal key may be another row', r.referenced),
				advice => format('If an equal key is the same row in all databases: %s '
									 'else merge its schema with this one, by targets, so that its rows come, too; '
									 'or, if a merge has brought them, are found by its maps.',
								 snowflake_migrate_internal.table_declaration(r.referenced, 'same_id')));
		ELSIF r.is_outside THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', NULL, r.relation, r.name,
				format('refers to %s, outside of the target: values are copied as they are, and checked',
					   r.referenced));
		ELSIF r.is_ignored THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, r.relation, r.name,
				format('refers to %s, which is ignored', r.referenced) || CASE
					WHEN r.is_mapped THEN ', so that no row is found'
					ELSE ': values are copied as they are, and checked' END,
				advice => 'If an equal key is the same row in all databases: '
					|| snowflake_migrate_internal.table_declaration(r.referenced, 'same_id'));
		ELSIF r.changed_by IS NOT NULL AND NOT r.is_mapped THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, r.relation, r.name,
				format('refers to column %I of %s, which the policy %s may change',
					   r.referenced_name, r.referenced, r.changed_by),
				advice => 'Choose another policy, or let the column refer to the key.');
		ELSIF r.changing_input IS NOT NULL AND NOT r.is_mapped THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, r.relation, r.name,
				format('refers to generated column %I of %s, which changes with column %I',
					   r.referenced_name, r.referenced, r.changing_input),
				advice => 'Let the column refer to the key.');
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_foreign_keys(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds foreign keys that lead to what is not merged or not kept';

/*
 * Columns by which the partitions of a table refer to different tables.  Which of them a row refers to, its partition
 * tells: a condition has to.
 */
CREATE FUNCTION snowflake_migrate_internal.check_partition_references(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, t.relation::text, a.attname,
			format('refers to %s, by foreign keys of different partitions',
				   string_agg(DISTINCT r.root::regclass::text, ' and ' ORDER BY r.root::regclass::text)),
			advice => format('Declare each as a reference with a condition that tells which rows it is for, '
				'for example: SELECT snowflake_migrate.declare_reference(%L, %L, %L, condition => %L);',
				t.relation, a.attname, min(r.root::regclass::text), min(pg_get_partition_constraintdef(f.conrelid))))
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			JOIN pg_class AS c ON c.oid = t.relation AND c.relkind = 'p'
			CROSS JOIN LATERAL snowflake_migrate_internal.with_partitions(t.relation) AS o (oid)
			JOIN pg_constraint AS f ON f.conrelid = o.oid AND f.contype = 'f' AND f.conparentid = 0
			CROSS JOIN LATERAL (SELECT coalesce(pg_partition_root(f.confrelid), f.confrelid)) AS r (root)
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.relation = r.root AND p.kind = 'id'
			CROSS JOIN LATERAL unnest(f.conkey, f.confkey) AS k (attnum, parent_attnum)
			JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = k.attnum
			JOIN pg_attribute AS b ON b.attrelid = f.confrelid AND b.attnum = k.parent_attnum AND b.attname = p.key[1]
		WHERE NOT EXISTS (
			SELECT FROM snowflake_migrate.declared_references AS d
			WHERE d.relation = t.relation AND d.column_name = a.attname)
		GROUP BY t.relation, a.attname
		HAVING count(DISTINCT r.root) > 1 AND count(DISTINCT f.conrelid) > 1;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_partition_references(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds partitions that refer to different tables';

/* Rows of the target that refer to nothing before the merge: its proof would find them when all is copied. */
CREATE FUNCTION snowflake_migrate_internal.check_target(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, t.relation::text, NULL,
			'in the target, ' || v.problem, v.count, v.example,
			'Bring back what these rows refer to, or change them, before the merge.')
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			CROSS JOIN LATERAL snowflake_migrate_internal.verify_foreign_keys(run_, t.no) AS v
		/* A right that is missing is in the report. */
		WHERE NOT EXISTS (
			SELECT FROM pg_constraint AS f
				CROSS JOIN LATERAL (
					SELECT coalesce(pg_partition_root(f.conrelid), f.conrelid) AS child,
						coalesce(pg_partition_root(f.confrelid), f.confrelid) AS parent) AS r
			WHERE f.contype = 'f' AND t.relation IN (r.child, r.parent)
				AND NOT (snowflake_migrate_internal.can_read(r.child)
						 AND snowflake_migrate_internal.can_read(r.parent)));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_target(bigint)
	IS 'for snowflake_migrate.merge()''s own use: rows of the target that refer to nothing';

/* Declared paths into a document of which one leads to the ids of the other, too: they would be mapped twice. */
CREATE FUNCTION snowflake_migrate_internal.check_paths(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, t.relation::text, a.name,
			format('path %s leads to the ids at %s, too', a.path, b.path),
			advice => 'Declare paths that exclude each other, or conditions that do.')
		FROM snowflake_migrate_internal.plan_references AS a
			JOIN snowflake_migrate_internal.plan_references AS b USING (run, no, name)
			CROSS JOIN LATERAL snowflake_migrate_internal.planned_table(run_, a.no) AS t
		WHERE run = run_ AND a.path <> b.path AND (a.condition IS NULL OR b.condition IS NULL)
			AND snowflake_migrate_internal.path_covers(a.path, b.path);
	RETURN NOT FOUND;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_paths(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds paths that overlap';

CREATE FUNCTION snowflake_migrate_internal.check_references(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	can_map CONSTANT boolean := snowflake_migrate_internal.check_only(run_);
	are_apart CONSTANT boolean := snowflake_migrate_internal.check_paths(run_);
BEGIN
	PERFORM snowflake_migrate_internal.check_foreign_keys(run_);
	PERFORM snowflake_migrate_internal.check_partition_references(run_);
	RETURN snowflake_migrate_internal.check_conditions(run_, 'before the maps') AND can_map AND are_apart;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_references(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds what is wrong with references';

/* Enters into the report that a condition on the rows that come failed in a source. */
CREATE FUNCTION snowflake_migrate_internal.report_failed_only(
	run_ bigint,
	source name,
	relation text,
	message text) RETURNS void
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT snowflake_migrate_internal.add_to_report(run_, 'error', source, relation, 'only',
		'the condition on the rows that come cannot be evaluated: ' || message,
		advice => 'Declare the table with snowflake_migrate.declare_table() again, '
			'or give a view of the source that has what the condition needs.')
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.report_failed_only(bigint, name, text, text)
	IS 'for snowflake_migrate.merge()''s own use: a condition on rows that failed';
