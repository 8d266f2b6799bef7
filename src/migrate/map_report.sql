/*
 * What the maps of a table say, once they are resolved: what they show to stand in the way goes into the report, and
 * what policies did with the rows into the records.
 */

/*
 * The constraints of one table that rows as they become may violate: CHECKs, exclusion constraints, partitions that
 * are missing.  violated is a condition on such a row; one without a problem only computes what could fail: generated
 * columns, what becomes of composite types and arrays, and indexes as far as that is safe (index_planter()).  In an
 * exclusion constraint, a row does not clash with the one of the target that has its key: it is that row, or takes its
 * place.
 */
CREATE FUNCTION snowflake_migrate_internal.violations(
	run_ bigint,
	no_ int,
	OUT label name,
	OUT violated text,
	OUT problem text,
	OUT advice text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
	names CONSTANT jsonb := snowflake_migrate_internal.names(run_, no_);
	relation CONSTANT regclass := (names ->> 'oid')::oid;
BEGIN
	RETURN QUERY
	SELECT k.label, format('(%s) IS FALSE', k.expression), 'rows as they become violate the CHECK',
		'New ids are in order of time: without a declared time of creation of what the columns refer to, '
			'they are in the order of the old ones. '
			'Else change these rows in the source, or put a view that leaves them out in its place.'
	FROM snowflake_migrate_internal.check_constraints(relation) AS k
	UNION ALL
	SELECT c.label,
		snowflake_migrate_internal.fill($query$
				EXISTS (
					SELECT FROM (SELECT {values} FROM ({become}) AS {"name"} WHERE {indexed}) AS t
					WHERE {same}{and_another})
				AND ({indexed})
			$query$, names || jsonb_build_object(
				'become', snowflake_migrate_internal.target_rows(run_, no_, false),
				'and_another', CASE names ->> 'kind' WHEN 'none' THEN '' ELSE snowflake_migrate_internal.fill(
					' AND NOT (({t."merge k#"}) = ({"merge n#"}))', names) END,
				'indexed', coalesce(c.predicate, 'true'),
				'values', (SELECT string_agg(format('%s AS "merge e%s"', e.expression, e.n), ', ')
						   FROM unnest(c.expressions) WITH ORDINALITY AS e (expression, n))
					|| CASE names ->> 'kind' WHEN 'none' THEN ''
						ELSE ', ' || snowflake_migrate_internal.fill('{@ AS "merge k#"}', names) END,
				'same', (SELECT string_agg(
							snowflake_migrate_internal.compared(e.operator, format('t."merge e%s"', e.n), e.expression),
							' AND ')
						 FROM unnest(c.expressions, c.operators) WITH ORDINALITY AS e (expression, operator, n)))),
		'rows clash with the target''s in the exclusion constraint',
		'Change these rows in the source, or put a view that leaves them out in its place.'
	FROM snowflake_migrate_internal.exclusion_constraints(relation) AS c
	UNION ALL
	SELECT NULL,
		coalesce('(' || string_agg('(' || coalesce(pg_get_partition_constraintdef(l.relid), 'true') || ')', ' OR ')
				 || ') IS NOT TRUE', 'true'),
		'no partition takes the rows', 'Create the partitions that are missing, or a default one.'
	FROM pg_class AS c LEFT JOIN pg_partition_tree(c.oid) AS l ON l.isleaf AND l.relid <> c.oid
	WHERE c.oid = relation AND c.relkind = 'p'
	GROUP BY c.oid
	UNION ALL
	SELECT NULL, string_agg(c.expression || ' < 0', ' OR '), NULL, NULL
	FROM (
		SELECT format('num_nulls(%I)', a.attname)
		FROM snowflake_migrate_internal.columns_of(relation) AS a
			JOIN pg_type AS y ON y.oid = a.atttypid
			LEFT JOIN pg_type AS e ON e.oid = y.typelem AND y.typcategory = 'A'
		WHERE a.attgenerated <> '' OR y.typtype = 'c' OR e.typtype IN ('c', 'd')
		UNION ALL
		/* What is unique is computed where clashes are looked for. */
		SELECT format('CASE WHEN %s THEN CASE WHEN %s THEN num_nulls(%s) END END',
				coalesce(CASE WHEN i.indrelid <> relation THEN pg_get_partition_constraintdef(i.indrelid) END, 'true'),
				coalesce(pg_get_expr(i.indpred, i.indrelid), 'true'),
				coalesce((SELECT string_agg(snowflake_migrate_internal.index_expression(i.indexrelid, n), ', ')
						  FROM generate_series(1, i.indnkeyatts) AS n WHERE i.indkey[n - 1] = 0), '1'))
		FROM snowflake_migrate_internal.with_partitions(relation) AS o (oid)
			JOIN pg_index AS i ON i.indrelid = o.oid AND NOT i.indisunique AND NOT i.indisexclusion
				AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL)
				AND (o.oid = relation OR NOT EXISTS (SELECT FROM pg_inherits AS h WHERE h.inhrelid = i.indexrelid))
			CROSS JOIN LATERAL (SELECT concat(i.indexprs::text, i.indpred::text)) AS x (tree)
		/*
		 * A row as it becomes has not the table's type.  Read anew, = is pg_catalog's where a text names no operator;
		 * and it must be no other role's code that is found.
		 */
		WHERE x.tree !~ ':varattno 0 '
			AND NOT (x.tree ~ '[{](DISTINCTEXPR|NULLIFEXPR|CASETESTEXPR) ' AND x.tree ~ ':opno [1-9][0-9]{4}')
			AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.index_planter(i.indexrelid))
			AND NOT EXISTS (SELECT FROM snowflake_internal.computed_types(x.tree) AS y (oid) JOIN pg_type USING (oid)
							WHERE typowner = ANY ((SELECT snowflake_internal.other_roles())::oid[]))
	) AS c (expression)
	HAVING count(*) > 0;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.violations(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: what rows as they become may violate';

/* The target's rows in which policies change something, as a further part of all_rows(); null: there are none. */
CREATE FUNCTION snowflake_migrate_internal.changed_target_rows(run_ bigint, no_ int) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	names CONSTANT jsonb := snowflake_migrate_internal.target_change_names(run_, no_);
BEGIN
	IF names IS NULL THEN
		RETURN NULL;
	END IF;
	RETURN snowflake_migrate_internal.fill($query$
			UNION ALL
			SELECT 0, t.* FROM ({rows}) AS t
			WHERE EXISTS (SELECT FROM {change} AS v WHERE v."merge source" = 0 AND ({v."merge o#"}) = ({t."merge o#"}))
		$query$, names || jsonb_build_object('rows', snowflake_migrate_internal.target_rows(run_, no_, true)));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.changed_target_rows(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: the target''s rows in which policies change something';

/*
 * Adds to the report which of one table's rows, as they become, violate its constraints: the sources may not have
 * them.
 */
CREATE FUNCTION snowflake_migrate_internal.find_violations(run_ bigint, no_ int, to_come text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	names jsonb;
	con record;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	/* What is copied is in the target; rows of the target that change are looked at as well. */
	names := snowflake_migrate_internal.names(run_, no_) || jsonb_build_object(
		'become', to_come || coalesce(snowflake_migrate_internal.changed_target_rows(run_, no_), ''),
		'comes', CASE plan.kind WHEN 'none' THEN 'true' ELSE '"merge action" IN (''c'', ''r'', ''t'')' END);
	IF (SELECT count(*) > 1 FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_) THEN
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, plan.relation::text, c.conname,
				'rows of different sources that clash in an exclusion constraint are not looked for', NULL, NULL,
				'Merge the sources one after the other.')
			FROM snowflake_migrate_internal.with_partitions(plan.relation) AS o (oid)
				JOIN pg_constraint AS c ON c.conrelid = o.oid AND c.contype = 'x'
					AND (o.oid = plan.relation OR c.conparentid = 0);
	END IF;
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, plan.relation::text, c.conname,
			'rows that clash with each other in a deferrable exclusion constraint would not be noticed', NULL, NULL,
			'Drop the constraint, and add it as NOT DEFERRABLE.')
		FROM snowflake_migrate_internal.deferrable_constraints(plan.relation) AS c
		WHERE c.contype = 'x' AND has_parameter_privilege('session_replication_role', 'SET');
	FOR con IN SELECT v.* FROM snowflake_migrate_internal.violations(run_, no_) AS v LOOP
		PERFORM snowflake_migrate_internal.report_rows(names,
			snowflake_migrate_internal.fill($query$
				SELECT q.*, row_number() OVER (PARTITION BY q.source ORDER BY q.example)
				FROM (
					SELECT "merge source", {"merge o#"::text} FROM ({become}) AS {"name"} WHERE {comes} AND ({violated})
				) AS q (source, example)
			$query$, names || jsonb_build_object('violated', con.violated)),
			con.label, con.problem, con.advice);
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_violations(bigint, int, text)
	IS 'for snowflake_migrate.merge()''s own use: CHECKs and exclusion constraints over rows as they become';

/*
 * Adds to the report which rows of a table without a key clash in its unique indexes: there is nothing by which a
 * policy could tell them.
 */
CREATE FUNCTION snowflake_migrate_internal.find_keyless_clashes(run_ bigint, no_ int, to_come text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	names jsonb;
	found bigint;
	example text;
BEGIN
	FOR names IN
		SELECT snowflake_migrate_internal.constraint_names(run_, no_, to_jsonb(u))
			|| jsonb_build_object('become', to_come)
		FROM snowflake_migrate_internal.unique_constraints(run_, no_) AS u
		WHERE u.policy <> 'match'
	LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			WITH w AS MATERIALIZED (
				SELECT c.* FROM (SELECT {values} FROM ({become}) AS {"name"} WHERE {indexed}) AS c WHERE {compared}
			)
			SELECT count(*), min(ROW (x.*)::text)
			FROM (
				SELECT {w.e#} FROM w GROUP BY {w.e#} HAVING count(*) > 1
				UNION ALL
				SELECT {w.e#} FROM w JOIN (SELECT {values} FROM {target} AS {"name"} WHERE {indexed}) AS t ON {same}
			) AS x
		$query$, names) INTO found, example;
		IF found > 0 THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, names ->> 'table', names ->> 'label',
				'rows clash, and their table has no key to tell them by', found, example,
				'Give the table a primary key, or change these rows in the source.');
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_keyless_clashes(bigint, int, text)
	IS 'for snowflake_migrate.merge()''s own use: rows of a table without a key that clash';

/*
 * Adds to the report which of one table's rows, as they become, refer by a foreign key to a row that neither the target
 * has nor a source brings.  Where the value is a renumbered key, count_dangling() has looked.
 */
CREATE FUNCTION snowflake_migrate_internal.find_lost_references(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	names CONSTANT jsonb := snowflake_migrate_internal.names(run_, no_);
	fk record;
BEGIN
	FOR fk IN
		SELECT c.conname, c.confrelid::regclass AS parent, p.no AS parent_no,
			snowflake_migrate_internal.foreign_key_names(c.oid) AS names
		FROM snowflake_migrate_internal.plan_tables AS t
			CROSS JOIN LATERAL snowflake_migrate_internal.with_partitions(t.relation) AS o (oid)
			JOIN pg_constraint AS c ON c.conrelid = o.oid AND c.contype = 'f' AND c.conparentid = 0
			/* Once for each, and not for each table of the run. */
			CROSS JOIN LATERAL (
				SELECT coalesce(pg_partition_root(c.confrelid), c.confrelid)::regclass OFFSET 0) AS root (parent)
			/* By the table, whatever the planner knows of the plan: all of the run would be read for each. */
			LEFT JOIN LATERAL (
				SELECT k.* FROM snowflake_migrate_internal.plan_tables AS k
				WHERE k.relation = root.parent OFFSET 0) AS p
				ON p.run = run_ AND EXISTS (
					SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no)
		WHERE t.run = run_ AND t.no = no_
			/* A right that is missing is in the report. */
			AND snowflake_migrate_internal.can_read(root.parent)
			AND NOT (p.kind IS NOT DISTINCT FROM 'id' AND cardinality(c.conkey) = 1
					 AND c.confkey = (SELECT array_agg(a.attnum) FROM pg_attribute AS a
									  WHERE a.attrelid = c.confrelid AND a.attname = p.key[1]))
		ORDER BY c.conname
	LOOP
		PERFORM snowflake_migrate_internal.report_rows(names,
			snowflake_migrate_internal.fill($query$
				SELECT t."merge source", concat_ws(', ', {columns}),
					row_number() OVER (PARTITION BY t."merge source" ORDER BY concat_ws(', ', {columns}))
				FROM (SELECT * FROM ({become}) AS {"name"} WHERE {in_child}) AS t
				WHERE {comes} AND {given_to_come}
					AND NOT EXISTS (SELECT FROM {parent} AS p WHERE {same}){and_not_brought}
			$query$, names || fk.names || jsonb_build_object(
				'become', snowflake_migrate_internal.all_rows(run_, no_),
				'and_not_brought', CASE WHEN fk.parent_no IS NULL THEN '' ELSE snowflake_migrate_internal.fill(
					$q$ AND NOT EXISTS (
						SELECT FROM (SELECT * FROM ({rows}) AS {"name"} WHERE {in_parent}) AS p
						WHERE {comes} AND {same_to_come})$q$,
					fk.names || snowflake_migrate_internal.names(run_, fk.parent_no) || jsonb_build_object(
						'rows', snowflake_migrate_internal.all_rows(run_, fk.parent_no))) END)),
			fk.conname, format('rows refer to rows of %s that are in neither the target nor a source', fk.parent),
			'Bring these rows into the target, or change what refers to them.');
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_lost_references(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: rows that refer to what nobody has';

/* Puts on record which values of rows a policy changed: of the sources', and of the target's. */
CREATE FUNCTION snowflake_migrate_internal.record_changes(names jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		INSERT INTO snowflake_migrate.records
			(run, source, relation, constraint_name, policy, old_key, new_key, column_name, old_value, new_value)
		SELECT {run}, ({'sources'}::name[])[v."merge source"], {'table'}, {'label'}, {'policy'},
			{m.o#::text}, {m.n#::text}, {'changed'}, v.{"old_changed"}, v.{"changed"}
		FROM {change} AS v JOIN {map} AS m ON m.source = v."merge source" AND ({m.o#}) = ({v."merge o#"})
		WHERE v.{"old_changed"} IS NOT NULL
		UNION ALL
		SELECT {run}, NULL, {'table'}, {'label'}, {'policy'},
			NULL, {v."merge o#"::text}, {'changed'}, v.{"old_changed"}, v.{"changed"}
		FROM {change} AS v
		/* One that a source's takes the place of has another value only until then. */
		WHERE v."merge source" = 0 AND v.{"old_changed"} IS NOT NULL
			AND NOT EXISTS (SELECT FROM {map} AS m WHERE m.action = 'r' AND ({m.n#}) = ({v."merge o#"}))
	$query$, names);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.record_changes(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: puts on record which values a policy changed';

/* Puts on record, when it is known which rows clash, what became of one table's rows. */
CREATE FUNCTION snowflake_migrate_internal.record_policies(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	names CONSTANT jsonb := snowflake_migrate_internal.names(run_, no_);
	plan record;
	u record;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	FOR u IN
		SELECT x.*
		FROM snowflake_migrate_internal.unique_constraints(run_, no_) AS x
		WHERE x.policy IN ('rerank', 'suffix', 'next_free')
	LOOP
		CASE u.policy
		WHEN 'rerank' THEN
			IF snowflake_migrate_internal.is_in_use(run_) THEN
				PERFORM snowflake_migrate_internal.place_ranks(run_, no_, to_jsonb(u));
			ELSE
				PERFORM snowflake_migrate_internal.policy_rerank(run_, no_, to_jsonb(u));
			END IF;
		WHEN 'suffix', 'next_free' THEN
			PERFORM snowflake_migrate_internal.record_changes(names || jsonb_build_object(
				'label', u.label, 'policy', u.policy, 'changed', u.changed,
				'old_changed', snowflake_migrate_internal.beside('old', u.changed)));
		END CASE;
	END LOOP;
	INSERT INTO snowflake_migrate.records (run, source, relation, constraint_name, policy, old_key, new_key)
	SELECT run_, m.source, m.relation, p.constraint_name, 'renumber', m.old_key, m.new_key
	FROM snowflake_migrate.declared_policies AS p
		JOIN snowflake_migrate.map AS m ON m.run = run_ AND m.relation = plan.relation::text
	WHERE p.relation = plan.relation AND p.policy = 'renumber'
		AND plan.kind = 'id' AND m.action = 'copied' AND m.new_key <> m.old_key
		AND m.old_key::bigint > snowflake_migrate_internal.last_serial();
	/* What a row became may have changed once more since it was put on record. */
	EXECUTE snowflake_migrate_internal.fill($query$
		UPDATE snowflake_migrate.records AS r
		SET new_key = CASE WHEN m.action NOT IN ('s', 'b') THEN {m.n#::text} END,
			policy = CASE WHEN m.action = 'k' AND r.policy = 'keep_source' THEN 'keep_target' ELSE r.policy END
		FROM {map} AS m
		WHERE r.run = {run} AND r.relation = {'table'} AND r.source = ({'sources'}::name[])[m.source]
			AND r.policy IN ('keep_target', 'keep_source', 'keep_first') AND r.old_key = {m.o#::text}
	$query$, names);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.record_policies(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: puts on record what policies did';

/*
 * Adds to the report how many rows of one table of one source are there already, how many of them differ elsewhere, and
 * in which columns; of those entries m of the map for which a condition holds.
 */
CREATE FUNCTION snowflake_migrate_internal.report_matched(
	run_ bigint,
	no_ int,
	source_ int,
	of_entries text DEFAULT 'true') RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	sources name[];
	names jsonb;
	found bigint;
	example text;
	columns text;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	SELECT r.sources INTO STRICT sources FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	SELECT snowflake_migrate_internal.names(run_, no_) || jsonb_build_object(
			'source', source_,
			'origin', p.origin,
			'of_entries', of_entries,
			'differs', snowflake_migrate_internal.differs(plan.relation,
				array_agg(e.name) FILTER (WHERE e.name IS NOT NULL),
				array_agg(e.expression) FILTER (WHERE e.name IS NOT NULL)),
			'columns', 'array_to_string(ARRAY[' || string_agg(format('CASE WHEN bool_or(%s) THEN %L END',
				snowflake_migrate_internal.differs(plan.relation, ARRAY[e.name], ARRAY[e.expression]), e.name), ', ')
				FILTER (WHERE e.name IS NOT NULL) || '], '', '')')
		INTO names
		FROM snowflake_migrate_internal.rows_parts(run_, no_, source_, true, false) AS p
			LEFT JOIN LATERAL unnest(p.names, p.expressions) AS e (name, expression)
				ON e.name <> ALL (plan.key::text[]) AND e.name <> ALL (coalesce(plan.natural_key, '{}')::text[])
					AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_columns AS c
									WHERE c.run = run_ AND c.no = no_ AND c.name = e.name AND c.combine IS NOT NULL)
		GROUP BY p.origin;
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT count(*) FROM {map} AS m WHERE m.source = {source} AND m.action = 'm'
	$query$, names) INTO found;
	IF found > 0 THEN
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', sources[source_], plan.relation::text, NULL,
			'rows are there already', found);
	END IF;
	/* Than the target's, or than the row of another source that is added. */
	IF names ->> 'differs' IS NOT NULL THEN
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*), min({m.o#::text}), {columns}
			FROM {origin} JOIN {target} AS t ON ({t.@}) = ({m.n#})
			WHERE m.action = 'm' AND {of_entries} AND {differs}
		$query$, names) INTO found, example, columns;
		IF found = 0 AND cardinality(sources) > 1 THEN
			EXECUTE snowflake_migrate_internal.fill($query$
				SELECT count(*), min({m.o#::text}), {columns}
				FROM {origin} JOIN ({become}) AS t ON t."merge action" IN ('c', 'r') AND ({t.@}) = ({m.n#})
				WHERE m.action = 'm' AND {of_entries} AND {differs}
			$query$, names || jsonb_build_object('become', snowflake_migrate_internal.all_rows(run_, no_)))
				INTO found, example, columns;
		END IF;
		IF found > 0 THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_,
				CASE WHEN plan.mode = 'same_id' OR 'differences' = ANY (plan.accept) THEN 'warning' ELSE 'error' END,
				sources[source_], plan.relation::text, columns,
				'rows that are there already differ in other columns', found, example,
				CASE WHEN plan.mode = 'match' AND NOT 'differences' = ANY (plan.accept)
					THEN 'Make them equal, or accept differences: the values that are there stay.'
					ELSE 'The values that are there stay.' END);
		END IF;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.report_matched(bigint, int, int, text)
	IS 'for snowflake_migrate.merge()''s own use: rows that are there already';

/*
 * Adds to the report how many rows of one table of one source stay behind with others, and which of its references that
 * lead to rows that stay behind become null.
 */
CREATE FUNCTION snowflake_migrate_internal.report_behind(run_ bigint, no_ int, source_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	names jsonb := snowflake_migrate_internal.names(run_, no_) || jsonb_build_object('source', source_);
	source_name CONSTANT name := (SELECT r.sources[source_] FROM snowflake_migrate.runs AS r WHERE r.run = run_);
	found bigint;
BEGIN
	IF names ->> 'kind' <> 'none' THEN
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*) FROM {map} AS m WHERE m.source = {source} AND m.action = 'b'
		$query$, names) INTO found;
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', source_name, names ->> 'table', NULL,
				'rows stay behind to which declared references lead that are not renumbered', found, NULL,
				'Leave the condition out, or let the table have a key that is renumbered.')
			WHERE found > 0 AND names ->> 'kind' = 'key' AND EXISTS (
				SELECT FROM snowflake_migrate.declared_references AS r WHERE r.referenced = (names ->> 'oid')::oid);
		found := found - coalesce((
			SELECT f.count FROM snowflake_migrate.report AS f
			WHERE f.run = run_ AND f.relation = names ->> 'table' AND f.source = source_name AND f.object = 'only'
				AND f.problem = 'rows stay behind'), 0);
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', source_name, names ->> 'table', 'only',
				'rows stay behind with rows that they must refer to', found)
			WHERE found > 0;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.report_behind(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: reports what stays behind with others';

/*
 * Reports which references of one table of a source lose what they lead to: rows that do not come, by this action in
 * their map.  No nested loops: see set_clashing().
 */
CREATE FUNCTION snowflake_migrate_internal.report_emptied(
	run_ bigint,
	no_ int,
	source_ int,
	action "char",
	why text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
DECLARE
	names jsonb;
	found bigint;
BEGIN
	FOR names IN SELECT r FROM snowflake_migrate_internal.reference_names(run_, no_, source_) AS r LOOP
		CONTINUE WHEN NOT snowflake_migrate_internal.has_action(names ->> 'parent_map', source_, action);
		names := names || jsonb_build_object('action', action);
		EXECUTE 'SELECT count(*) FROM ' || snowflake_migrate_internal.referring_rows(names)
			|| snowflake_migrate_internal.fill(concat(
				CASE WHEN names ->> 'kind' <> 'none' THEN ' AND m.action IN (''c'', ''r'')' END,
				CASE WHEN names -> 'is_plain' = 'true' THEN ' AND r{id}.action = {''action''}'
					ELSE ' AND EXISTS (SELECT FROM {parent_map} AS f
								WHERE f.source = {source} AND f.o1 = e.id AND f.action = {''action''})' END), names)
			INTO found;
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', names ->> 'source_name', names ->> 'table',
				names ->> 'column', format('references to rows of %s that %s %s', names ->> 'parent', why,
					CASE WHEN names -> 'elements' = 'true' THEN 'are taken out' ELSE 'become null' END), found)
			WHERE found > 0;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.report_emptied(bigint, int, int, "char", text)
	IS 'for snowflake_migrate.merge()''s own use: references to rows that do not come';

/*
 * Adds to the report, in one pass over all maps, which keys may mean something by themselves (low: numbers below 1),
 * and which ids of times to come are kept: a server with their node number, this one (own) or another (others), would
 * make them again.
 */
CREATE FUNCTION snowflake_migrate_internal.find_odd_keys(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	own_node CONSTANT bigint := snowflake_migrate_internal.own_node();
	odd record;
BEGIN
	FOR odd IN EXECUTE snowflake_migrate_internal.fill($query$
		SELECT k.kind, m.no, m.source, count(*),
			CASE k.kind WHEN 'low' THEN min(m.o1) ELSE max(m.o1) END::text AS example
		FROM {map} AS m
			CROSS JOIN LATERAL (
				SELECT CASE WHEN m.o1 < 1 THEN 'low'
					WHEN snowflake_migrate_internal.node(m.n1) = {'own_node'} THEN 'own' ELSE 'others' END) AS k (kind)
		WHERE m.action = 'c' AND (m.o1 < 1 OR m.n1 = m.o1 AND m.n1 > {newest})
		GROUP BY k.kind, m.no, m.source
		ORDER BY k.kind, m.no, m.source
	$query$, jsonb_build_object(
		'map', snowflake_migrate_internal.relation(run_, 'map'),
		'own_node', own_node::text,
		'newest', snowflake_migrate_internal.max_id(snowflake_migrate_internal.own_time())))
	LOOP
		PERFORM snowflake_migrate_internal.add_to_report(run_, CASE odd.kind WHEN 'own' THEN 'error' ELSE 'warning' END,
				r.sources[odd.source], t.relation::text, t.key[1],
				CASE odd.kind WHEN 'low' THEN 'keys below 1 get new ones, as all others do'
					WHEN 'own' THEN format('ids of times to come have the node number of this server, %s: '
										   'it would make them again', own_node)
					ELSE 'ids are of times to come' END,
				odd.count, odd.example,
				CASE odd.kind
					WHEN 'low' THEN 'If they mean something to the application, put a view without these rows in the '
						'place of the table, and declare references to it with dangling => ''keep''.'
					WHEN 'own' THEN 'Give these rows other ids in the source, or merge when their times are over.'
					ELSE 'No server must make ids with their node numbers before their times are over.' END)
			FROM snowflake_migrate_internal.plan_tables AS t JOIN snowflake_migrate.runs AS r USING (run)
			WHERE t.run = run_ AND t.no = odd.no;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_odd_keys(bigint)
	IS 'for snowflake_migrate.merge()''s own use: keys that mean something, and ids that may be made again';

/* Adds to the report what policies did to how many rows of one table. */
CREATE FUNCTION snowflake_migrate_internal.report_policies(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', x.source, x.relation, x.constraint_name,
		CASE x.policy
			WHEN 'suffix' THEN CASE WHEN x.source IS NULL THEN 'rows clash: those of the target get a suffix'
				ELSE 'rows clash: they get a suffix' END
			WHEN 'next_free' THEN CASE WHEN x.source IS NULL
				THEN 'rows clash: those of the target get the next free number'
				ELSE 'rows clash: they get the next free number' END
			WHEN 'keep_first' THEN 'rows clash: the row that ranks first stays'
			WHEN 'combine' THEN format('values of column %I are combined', x.column_name)
			WHEN 'keep_target' THEN 'rows clash: the row that was there first stays'
			WHEN 'keep_source' THEN 'rows clash: the source''s row takes the place'
			WHEN 'skip' THEN 'rows are skipped'
			WHEN 'rerank' THEN 'ranks are numbered anew'
			WHEN 'renumber' THEN 'snowflake ids clash: they get new ones' END,
		x.count, x.example)
	FROM (
		SELECT r.source, r.relation, r.constraint_name, r.policy, c.column_name, count(*),
			min(concat_ws(' ', r.old_key, r.old_value || ' -> ' || r.new_value)) AS example
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN snowflake_migrate.records AS r ON r.run = run_ AND r.relation = t.relation::text
			CROSS JOIN LATERAL (SELECT CASE r.policy WHEN 'combine' THEN r.column_name END) AS c (column_name)
		WHERE t.run = run_ AND t.no = no_
		GROUP BY r.source, r.relation, r.constraint_name, r.policy, c.column_name
		ORDER BY r.source, r.constraint_name, r.policy
	) AS x;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.report_policies(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: reports what policies did';

/*
 * Rows of the target to which others refer by a foreign key of the id and further columns, where a source's row takes
 * the place and has other values there.
 */
CREATE FUNCTION snowflake_migrate_internal.find_changed_references(run_ bigint, no_ int, to_come text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
DECLARE
	fk record;
	found bigint;
	example text;
BEGIN
	FOR fk IN
		SELECT f.conname, snowflake_migrate_internal.foreign_key_names(f.oid) AS names,
			(SELECT string_agg(format('(%1$s) IS NOT TRUE AND (p.%2$I IS NOT NULL OR w.%2$I IS NOT NULL)',
					snowflake_migrate_internal.compared(c.operator, format('p.%I', c.name), format('w.%I', c.name)),
					c.name), ' OR ' ORDER BY c.n)
			 FROM unnest(k.parent_columns, k.parent_operators) WITH ORDINALITY AS c (name, operator, n)) AS changed,
			snowflake_migrate_internal.can_read(f.conrelid) AS can_read
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN LATERAL snowflake_migrate_internal.foreign_keys_to(t.relation) AS f ON f.conparentid = 0
			CROSS JOIN LATERAL snowflake_migrate_internal.foreign_key_columns(f.oid) AS k
		WHERE t.run = run_ AND t.no = no_ AND t.kind = 'id' AND t.key <@ k.parent_columns
			AND cardinality(k.parent_columns) > 1
	LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*), min({p.@::text})
			FROM ({to_come}) AS w JOIN {target} AS p ON ({p.@}) = ({w."merge n#"})
			WHERE w."merge action" = 'r' AND ({changed}){and_referred}
		$query$, fk.names || snowflake_migrate_internal.names(run_, no_) || jsonb_build_object(
			'to_come', to_come,
			'changed', fk.changed,
			'and_referred', CASE WHEN fk.can_read THEN snowflake_migrate_internal.fill(
				' AND EXISTS (SELECT FROM {child} AS t WHERE {same})', fk.names) ELSE '' END)) INTO found, example;
		IF found > 0 THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, t.relation::text, fk.conname,
					'rows take the place of others to which this foreign key refers by other values', found, example,
					'Choose another policy, or give the rows of the source the same values.')
				FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_changed_references(bigint, int, text)
	IS 'for snowflake_migrate.merge()''s own use: finds references to rows that change';

/*
 * Rows of a table of mode match that are the same as others by their natural key, which in the end are not there: these
 * are skipped, or a row with another natural key takes their place.
 */
CREATE FUNCTION snowflake_migrate_internal.find_unmatched(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
DECLARE
	names CONSTANT jsonb := snowflake_migrate_internal.names(run_, no_) || (
		SELECT jsonb_build_object(
			'become', snowflake_migrate_internal.all_rows(run_, no_),
			/* Records need no operator by its name. */
			'same', format('ROW (%s)::record OPERATOR(pg_catalog.=) ROW (%s)::record',
				snowflake_migrate_internal.key_list('t.@', p.natural_key),
				snowflake_migrate_internal.key_list('w.@', p.natural_key)))
		FROM snowflake_migrate_internal.plan_tables AS p WHERE p.run = run_ AND p.no = no_);
	found bigint;
	example text;
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		WITH b AS MATERIALIZED (
			SELECT * FROM ({become}) AS b WHERE b."merge action" IN ('c', 'm', 'r')
		)
		SELECT count(*), min({w."merge o#"::text})
		FROM b AS w
		WHERE w."merge action" = 'm'
			AND NOT EXISTS (
				SELECT FROM b AS t
				WHERE t."merge action" IN ('c', 'r') AND ({t."merge n#"}) = ({w."merge n#"}) AND {same})
			AND NOT EXISTS (
				SELECT FROM {target} AS t
				WHERE ({t.@}) = ({w."merge n#"}) AND {same} AND NOT EXISTS (
					SELECT FROM {map} AS m WHERE m.action = 'r' AND ({m.n#}) = ({t.@})))
	$query$, names) INTO found, example;
	IF found > 0 THEN
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, names ->> 'table', NULL,
			'rows are the same as others by the natural key, which are skipped or give way to rows with another one',
			found, example, 'Choose another policy for the other constraints, or change these rows in the source.');
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_unmatched(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: finds rows that match what is not there in the end';
