/*
 * What becomes of rows that clash: two that can't both be in the target, as a unique constraint or index says.
 *
 * resolve() looks at one constraint: find_clashes() puts the rows that clash into a temporary table, and the function
 * of the constraint's policy writes what becomes of them into the map, or into what changes:
 *
 *     error, renumber          policy_error(); renumber has given new ids before (numbering.sql)
 *     match, same_id           policy_match()
 *     keep_target              policy_keep_target()
 *     keep_source, keep_first  policy_keep_source()
 *     skip                     policy_skip()
 *     suffix                   policy_suffix()
 *     next_free                policy_next_free()
 *     rerank                   policy_rerank(), after the last pass (record_policies()), or place_ranks() at the end,
 *                              where the target is in use
 *
 * To add a policy, write its function, call it from resolve(), and let declare_policy() know it.
 */

/*
 * A unique index, or what is matched like one: the text of its expressions, how they are compared, and which rows are
 * in it.
 */
CREATE FUNCTION snowflake_migrate_internal.unique_constraints(
	run_ bigint,
	no_ int,
	OUT label name,
	OUT expressions text[],
	OUT operators oid[],
	OUT distinct_nulls boolean,
	OUT predicate text,
	OUT policy text,
	OUT argument text,
	OUT precedence text,
	OUT declared_by name,
	OUT changed name,
	OUT is_key boolean) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY
	SELECT u.* FROM (
		SELECT x.relname,
			(SELECT array_agg(snowflake_migrate_internal.index_expression(i.indexrelid, n) ORDER BY n)
			 FROM generate_series(1, i.indnkeyatts) AS n),
			(SELECT array_agg(a.amopopr ORDER BY k.n)
			 FROM unnest(i.indclass) WITH ORDINALITY AS k (opclass, n)
				JOIN pg_opclass AS c ON c.oid = k.opclass
				JOIN pg_amop AS a ON a.amopfamily = c.opcfamily AND a.amopstrategy = 3
					AND a.amoplefttype = c.opcintype AND a.amoprighttype = c.opcintype),
			NOT i.indnullsnotdistinct,
			snowflake_migrate_internal.index_predicate(i.indexrelid, t.relation),
			CASE WHEN t.mode = 'same_id' AND k.is_key THEN 'same_id' ELSE coalesce(p.policy, 'error') END,
			p.argument, p.precedence, p.declared_by,
			CASE WHEN p.policy IN ('suffix', 'next_free', 'rerank')
				THEN (snowflake_migrate_internal.policy_columns(t.relation, x.relname, p.policy))[1] END,
			k.is_key
		FROM snowflake_migrate_internal.plan_tables AS t
			CROSS JOIN LATERAL snowflake_migrate_internal.with_partitions(t.relation) AS o (oid)
			JOIN pg_index AS i ON i.indrelid = o.oid AND i.indisunique AND i.indislive
				AND (o.oid = t.relation
					 OR NOT EXISTS (SELECT FROM pg_inherits AS h WHERE h.inhrelid = i.indexrelid))
			JOIN pg_class AS x ON x.oid = i.indexrelid
			CROSS JOIN LATERAL (
				SELECT i.indrelid = t.relation AND i.indexprs IS NULL AND i.indpred IS NULL AND t.key = ARRAY(
					SELECT a.attname
					FROM unnest(i.indkey[0 : i.indnkeyatts - 1]) WITH ORDINALITY AS c (attnum, n)
						JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = c.attnum
					ORDER BY c.n)) AS k (is_key)
			LEFT JOIN snowflake_migrate.declared_policies AS p
				ON p.relation = t.relation AND p.constraint_name = x.relname
		WHERE t.run = run_ AND t.no = no_
		UNION ALL
		SELECT 'natural key', (SELECT array_agg(snowflake_migrate_internal.column_expression(k.name) ORDER BY k.n)
			 FROM unnest(t.natural_key) WITH ORDINALITY AS k (name, n)),
			(SELECT array_agg(o.amopopr ORDER BY k.n)
			 FROM unnest(t.natural_key) WITH ORDINALITY AS k (name, n)
				JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attname = k.name
				CROSS JOIN LATERAL snowflake_migrate_internal.base_type(a.atttypid, a.atttypmod) AS y
				LEFT JOIN pg_opclass AS c ON c.opcintype = y.base AND c.opcdefault
					AND c.opcmethod = (SELECT m.oid FROM pg_am AS m WHERE m.amname = 'btree')
				LEFT JOIN pg_amop AS o ON o.amopfamily = c.opcfamily AND o.amopstrategy = 3
					AND o.amoplefttype = c.opcintype AND o.amoprighttype = c.opcintype),
			false, NULL, 'match', NULL, NULL, NULL, NULL, false
		FROM snowflake_migrate_internal.plan_tables AS t
		WHERE t.run = run_ AND t.no = no_ AND t.mode = 'match'
	) AS u (label, expressions, operators, distinct_nulls, predicate, policy, argument, precedence, declared_by,
			changed, is_key)
	/* What decides which rows are the same comes first, and before others get other values, which of them come. */
	ORDER BY u.policy NOT IN ('match', 'same_id'), NOT u.is_key, u.policy IN ('suffix', 'next_free'), u.label;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.unique_constraints(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: what must be unique in a table';

/* The exclusion constraints of a table and of its partitions, as unique_constraints() has the unique ones. */
CREATE FUNCTION snowflake_migrate_internal.exclusion_constraints(
	relation regclass,
	OUT label name,
	OUT expressions text[],
	OUT operators oid[],
	OUT distinct_nulls boolean,
	OUT predicate text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
	RETURN QUERY
	SELECT c.conname,
		ARRAY(SELECT snowflake_migrate_internal.index_expression(c.conindid, n)
			  FROM generate_subscripts(c.conexclop, 1) AS n ORDER BY n),
		c.conexclop, true, snowflake_migrate_internal.index_predicate(c.conindid, relation)
	FROM snowflake_migrate_internal.with_partitions(relation) AS o (oid)
		JOIN pg_constraint AS c ON c.conrelid = o.oid AND c.contype = 'x' AND (o.oid = relation OR c.conparentid = 0);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.exclusion_constraints(regclass)
	IS 'for snowflake_migrate.merge()''s own use: exclusion constraints of a table';

/*
 * The CHECK constraints of a table, of its partitions and of the domains of its columns, and the NOT NULL of partitions
 * alone, as expressions over the table's columns.  A plan for any table would read all constraints for each.
 */
CREATE FUNCTION snowflake_migrate_internal.check_constraints(
	relation regclass,
	OUT label name,
	OUT names name[],
	OUT expression text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp SET jit = off SET plan_cache_mode = auto
AS $$
BEGIN
	RETURN QUERY
	SELECT c.conname,
		(SELECT array_agg(a.attname) FROM pg_attribute AS a WHERE a.attrelid = relation AND a.attnum = ANY (c.conkey)),
		pg_get_expr(c.conbin, c.conrelid)
	FROM pg_constraint AS c WHERE c.conrelid = relation AND c.contype = 'c'
	UNION ALL
	/* That of a domain calls the column VALUE. */
	SELECT c.conname, ARRAY[a.attname],
		format('(SELECT %s FROM (SELECT CAST(%I AS %s) AS value) AS d)', pg_get_expr(c.conbin, 0), a.attname,
			   format_type(b.base, b.base_typmod))
	FROM pg_attribute AS a
		JOIN pg_type AS y ON y.oid = a.atttypid AND y.typtype = 'd'
		CROSS JOIN LATERAL snowflake_migrate_internal.base_type(a.atttypid, a.atttypmod) AS b
		CROSS JOIN LATERAL (
			WITH RECURSIVE domain AS (
				SELECT y.oid, y.typbasetype
				UNION ALL
				SELECT u.oid, u.typbasetype
				FROM domain AS o JOIN pg_type AS u ON u.oid = o.typbasetype AND u.typtype = 'd')
			SELECT o.oid FROM domain AS o) AS o
		JOIN pg_constraint AS c ON c.contypid = o.oid AND c.contype = 'c'
	WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped;
	IF NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = relation AND c.relkind = 'p') THEN
		RETURN;
	END IF;
	RETURN QUERY
	/* One that a partition has for itself is about the rows that get there. */
	SELECT c.conname,
		(SELECT array_agg(a.attname) FROM pg_attribute AS a WHERE a.attrelid = p.oid AND a.attnum = ANY (c.conkey)),
		format('(%s) IS NOT TRUE OR (%s)', coalesce(pg_get_partition_constraintdef(p.oid), 'true'),
			   pg_get_expr(c.conbin, c.conrelid))
	FROM snowflake_migrate_internal.with_partitions(relation) AS p (oid)
		JOIN pg_constraint AS c ON c.conrelid = p.oid AND c.contype = 'c' AND c.coninhcount = 0
	WHERE p.oid <> relation
	UNION ALL
	SELECT format('%s.%s IS NOT NULL', c.relname, a.attname), ARRAY[a.attname],
		format('(%s) IS NOT TRUE OR %I IS NOT NULL', coalesce(pg_get_partition_constraintdef(p.oid), 'true'), a.attname)
	FROM snowflake_migrate_internal.with_partitions(relation) AS p (oid)
		JOIN pg_class AS c ON c.oid = p.oid
		JOIN pg_attribute AS a ON a.attrelid = p.oid AND a.attnum > 0 AND a.attnotnull
		JOIN pg_attribute AS r ON r.attrelid = relation AND r.attname = a.attname AND NOT r.attnotnull
	WHERE p.oid <> relation;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_constraints(regclass)
	IS 'for snowflake_migrate.merge()''s own use: CHECK constraints as expressions';

/*
 * What the queries about one constraint, a row of unique_constraints(), have in common, besides the names of its table:
 *
 *     taken      the target's rows as it sees them: t1 .. (the key), e1 ..
 *     same       whether rows w and t are the same to it
 *     compared   whether a row c can be the same as any: nulls are not, unless the constraint says so
 *     values     e1 .. of a row under the table's name; indexed: whether it is in the index
 */
CREATE FUNCTION snowflake_migrate_internal.constraint_names(run_ bigint, no_ int, constraint_ jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	names jsonb := snowflake_migrate_internal.names(run_, no_);
	same_values text;
BEGIN
	SELECT names || constraint_ || jsonb_build_object(
			'accept', t.accept,
			'natural_key', array_to_string(t.natural_key, ', '),
			'old_changed', snowflake_migrate_internal.beside('old', constraint_ ->> 'changed'),
			'indexed', coalesce(constraint_ ->> 'predicate', 'true'),
			'values', (SELECT string_agg(format('%s AS e%s', e.expression, e.n), ', ' ORDER BY e.n)
					   FROM jsonb_array_elements_text(constraint_ -> 'expressions')
						WITH ORDINALITY AS e (expression, n)))
		INTO STRICT names
		FROM snowflake_migrate_internal.plan_tables AS t
		WHERE t.run = run_ AND t.no = no_;
	SELECT string_agg(snowflake_migrate_internal.compared(o.operator::oid, 't.e' || o.n, 'w.e' || o.n), ' AND '
					  ORDER BY o.n) INTO same_values
		FROM jsonb_array_elements_text(constraint_ -> 'operators') WITH ORDINALITY AS o (operator, n);
	RETURN names || jsonb_build_object(
		'taken', snowflake_migrate_internal.fill($query$(
				SELECT {@ AS t#}, {values} FROM {target} AS {"name"} WHERE {indexed}
			)$query$, names),
		/* Records take nulls as equal, and can be hashed. */
		'same', CASE WHEN (names ->> 'distinct_nulls')::boolean THEN same_values
			ELSE snowflake_migrate_internal.fill(
				'ROW ({t.e#})::record OPERATOR(pg_catalog.=) ROW ({w.e#})::record', names) END,
		'compared', CASE WHEN (names ->> 'distinct_nulls')::boolean
			THEN snowflake_migrate_internal.fill('ROW ({c.e#}) IS NOT NULL', names) ELSE 'true' END);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.constraint_names(bigint, int, jsonb)
	IS 'for snowflake_migrate.merge()''s own use: the names in the queries about a unique constraint';

/*
 * The same with the sources' rows that are not copied yet (to_come: rows_to_come()): become, the rows as they become,
 * and wanted, as the constraint sees them: source, o1 .., n1 .., action, tries, e1 ..; with a precedence also place, in
 * which order rows that want the same come.
 *
 * Where the target's rows are ranked among the others (ranks_target), they are of become and wanted, as those of source
 * 0.  Only policies that can change a target's row, or put another in its place, ask for that.
 */
CREATE FUNCTION snowflake_migrate_internal.wanted_names(
	run_ bigint,
	no_ int,
	constraint_ jsonb,
	to_come text) RETURNS jsonb
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	names jsonb := snowflake_migrate_internal.constraint_names(run_, no_, constraint_);
	ranks_target CONSTANT boolean := names ->> 'precedence' IS NOT NULL
		AND names ->> 'policy' IN ('suffix', 'next_free', 'keep_first');
BEGIN
	/* It may have been declared anew since the plan was written. */
	PERFORM snowflake_migrate_internal.refuse_declared((names ->> 'declared_by')::name,
			(names ->> 'oid')::oid::regclass, names ->> 'label')
		WHERE names ->> 'precedence' IS NOT NULL;
	names := names || jsonb_build_object(
		'ranks_target', ranks_target,
		'become', to_come
			|| CASE WHEN ranks_target THEN format(' UNION ALL SELECT 0, t.* FROM (%s) AS t',
				snowflake_migrate_internal.target_rows(run_, no_, true)) ELSE '' END,
		'and_place', CASE WHEN names ->> 'precedence' IS NULL THEN '' ELSE snowflake_migrate_internal.fill($query$,
				row_number() OVER (
					PARTITION BY {partition}
					/* A row of the target whose place is taken is in nobody's way. */
					ORDER BY "merge action" = 'x', {tries}{precedence}, "merge source", {"merge o#"}) AS place
			$query$, names || jsonb_build_object(
				'partition', (SELECT string_agg(e, ', ') FROM jsonb_array_elements_text(names -> 'expressions') AS e),
				/* Who got another value goes on from there, so that this comes to an end. */
				'tries', CASE WHEN names ->> 'policy' IN ('suffix', 'next_free') THEN '"merge tries", ' ELSE '' END))
			END,
		/* As the target's rows become, too. */
		'taken', CASE WHEN EXISTS (SELECT FROM snowflake_migrate_internal.plan_columns AS c
								   WHERE c.run = run_ AND c.no = no_ AND c.in_target)
			THEN snowflake_migrate_internal.fill($query$(
					SELECT {@ AS t#}, {values} FROM ({rows}) AS {"name"} WHERE {indexed}
				)$query$, names || jsonb_build_object(
					'rows', snowflake_migrate_internal.target_rows(run_, no_, false)))
			ELSE names ->> 'taken' END);
	RETURN names || jsonb_build_object('wanted', snowflake_migrate_internal.fill($query$(
				SELECT "merge source" AS source, {"merge o#" AS o#}, {"merge n#" AS n#},
					"merge action" AS action, "merge tries" AS tries, {values}{and_place}
				FROM ({become}) AS {"name"}
				WHERE "merge action" IN ('c', 'r', 't', 'x') AND ({indexed})
			)$query$, names));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.wanted_names(bigint, int, jsonb, text)
	IS 'for snowflake_migrate.merge()''s own use: the same, with the rows of the sources';

/*
 * Whether to look up by an index all rows that come costs more than to read the target's table, by what PostgreSQL
 * counts for a page here and there (4) and one in order (1), and two pages for each row.  Then a nested loop is never
 * the best plan; and where few conditions are thought to leave no row, it could be one that reads the table for each.
 */
CREATE FUNCTION snowflake_migrate_internal.is_read_whole(names jsonb) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RETURN (
		SELECT sum(pg_relation_size(p.oid)) / current_setting('block_size')::int <= 2 * 4 * c.rows
		FROM (
				SELECT CASE WHEN sum(s.rows_to_do) > 0 THEN sum(s.rows_to_do - s.rows_done)
					/* The maps are being made. */
					ELSE (SELECT m.reltuples FROM pg_class AS m WHERE m.oid = to_regclass(names ->> 'map')) END
				FROM snowflake_migrate_internal.plan_sources AS s
				WHERE s.run = (names ->> 'run')::bigint AND s.no = (names ->> 'no')::int
			) AS c (rows)
			CROSS JOIN snowflake_migrate_internal.with_partitions((names ->> 'oid')::oid::regclass) AS p (oid)
		GROUP BY c.rows);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.is_read_whole(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: whether reading the target''s table costs less than its index';

/*
 * Finds the rows that clash in one unique constraint, with the target's rows or with those of other sources.  Returns
 * how many, and where there are any, puts them into the temporary table snowflake_merge_clash: the columns of wanted,
 * place (who comes first of those that want the same), first_source and w1 .. (the first one's source and new key),
 * and t1 .. (the target's row, or null).
 *
 * Who was there first: the target's row, then those that no policy has changed, in the order of the sources.  With a
 * precedence, that decides among them; and where it ranks the target's rows as well, one of these may be the one that
 * clashes, with source 0: of those that get another value.
 */
CREATE FUNCTION snowflake_migrate_internal.find_clashes(names jsonb) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = on
AS $$
DECLARE
	total bigint;
	clashes CONSTANT text := snowflake_migrate_internal.fill($query$
		WITH c AS MATERIALIZED (
			SELECT * FROM {wanted} AS v
		),
		w AS (
			SELECT c.*{place}, first_value(c.source) OVER w AS first_source,
				{first_value(c.n#) OVER w AS w#}
			FROM c
			WHERE {compared}
			WINDOW w AS (PARTITION BY {c.e#} ORDER BY {in_order})
		)
		SELECT DISTINCT ON (w.source, {w.o#}) w.*, {t.t#}
		FROM w LEFT JOIN {taken} AS t ON {same} AND {may_meet} AND NOT (w.action = 'r' AND ({t.t#}) = ({w.n#}))
		WHERE {may_clash} AND (w.place > 1 OR t.t1 IS NOT NULL)
		ORDER BY w.source, {w.o#}, {t.t#}
	$query$, names || CASE WHEN names ->> 'precedence' IS NULL THEN jsonb_build_object(
			'place', ', row_number() OVER w AS place',
			'in_order', snowflake_migrate_internal.fill('c.tries, c.source, {c.o#}', names))
			ELSE '{"place": "", "in_order": "c.place"}' END
		/* Who gets another value is ranked among all; whose place is taken, is known by the target's row. */
		|| CASE WHEN names -> 'ranks_target' = 'true' AND names ->> 'policy' <> 'keep_first'
			THEN '{"may_meet": "false", "may_clash": "true"}'
			ELSE '{"may_meet": "w.source > 0", "may_clash": "w.source > 0"}' END::jsonb
		/* A row that takes the place of one of the target's, and has the same value, was there first. */
		|| CASE WHEN names ->> 'policy' = 'keep_target'
			THEN jsonb_build_object('may_clash', snowflake_migrate_internal.fill($query$
				w.source > 0 AND NOT (w.action = 'r' AND EXISTS (
					SELECT FROM {taken} AS t WHERE ({t.t#}) = ({w.n#}) AND {same}))
			$query$, names)) ELSE '{}' END);
BEGIN
	/* Until the function ends, as it has a setting of its own. */
	IF snowflake_migrate_internal.is_read_whole(names) THEN
		PERFORM set_config('enable_nestloop', 'off', true);
	END IF;
	/* A table only where there are any: each costs locks until the end of the transaction. */
	EXECUTE 'SELECT count(*) FROM (' || clashes || ') AS x' INTO total;
	IF total > 0 THEN
		IF to_regclass('pg_temp.snowflake_merge_clash') IS NOT NULL THEN
			DROP TABLE pg_temp.snowflake_merge_clash;
		END IF;
		EXECUTE 'CREATE TEMPORARY TABLE snowflake_merge_clash ON COMMIT DROP AS ' || clashes;
		/* Of a target in use, there may be others by now. */
		GET DIAGNOSTICS total = ROW_COUNT;
	END IF;
	RETURN total;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_clashes(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: the rows that clash in a unique constraint';

/*
 * Adds an error, or a warning that wants an answer, to the report for each source that has any of the rows, with how
 * many and which; rows is a query for source (its place in the list), example, and place (the first three are told).
 */
CREATE FUNCTION snowflake_migrate_internal.report_rows(
	names jsonb,
	rows text,
	object text,
	problem text,
	advice text,
	severity text DEFAULT 'error') RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	source name;
	found bigint;
	example text;
BEGIN
	FOR source, found, example IN EXECUTE snowflake_migrate_internal.fill($query$
		SELECT ({'sources'}::name[])[x.source], count(*),
			string_agg(x.example, '; ' ORDER BY x.place) FILTER (WHERE x.place <= 3)
		FROM ({rows}) AS x (source, example, place)
		GROUP BY x.source
		ORDER BY x.source
	$query$, names || jsonb_build_object('rows', rows))
	LOOP
		PERFORM snowflake_migrate_internal.add_to_report((names ->> 'run')::bigint, severity, source,
			names ->> 'table', object, problem, found, example, advice, is_question => severity = 'warning');
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.report_rows(jsonb, text, text, text, text, text)
	IS 'for snowflake_migrate.merge()''s own use: adds an error about rows to the report, for each source';

/* Adds an error about one unique constraint to the report. */
CREATE FUNCTION snowflake_migrate_internal.report_constraint(
	names jsonb,
	problem text,
	count bigint,
	advice text) RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_migrate_internal.add_to_report((names ->> 'run')::bigint, 'error', NULL,
		names ->> 'table', names ->> 'label', problem, count, names ->> 'remark', advice)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.report_constraint(jsonb, text, bigint, text)
	IS 'for snowflake_migrate.merge()''s own use: adds an error about a unique constraint to the report';

/*
 * The foreign keys that lead to a table by other columns than its key, and would be left behind by rows that are not
 * copied.
 */
CREATE FUNCTION snowflake_migrate_internal.foreign_keys_not_followed(names jsonb) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT string_agg(format('%s of table %s', quote_ident(f.conname), f.conrelid::regclass), ', ')
	FROM snowflake_migrate_internal.plan_tables AS t
		JOIN LATERAL snowflake_migrate_internal.foreign_keys_to(t.relation) AS f ON f.conparentid = 0
		CROSS JOIN LATERAL (
			SELECT array_agg(a.attname) AS columns
			FROM unnest(f.confkey) AS k (attnum)
				JOIN pg_attribute AS a ON a.attrelid = f.confrelid AND a.attnum = k.attnum) AS c
	WHERE t.run = (foreign_keys_not_followed.names ->> 'run')::bigint
		AND t.no = (foreign_keys_not_followed.names ->> 'no')::int
		AND NOT c.columns <@ t.key
		/* With the key among them, they follow it. */
		AND NOT (t.kind = 'id' AND t.key <@ c.columns)
		AND (names ->> 'policy' IN ('keep_source', 'keep_first') OR EXISTS (
				SELECT
				FROM snowflake_migrate_internal.plan_tables AS o
					JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
				WHERE o.run = t.run AND o.relation = coalesce(pg_partition_root(f.conrelid), f.conrelid)))
		/* If their values are those that clash, they lead to the row that stays. */
		AND (names ->> 'policy' = 'skip'
			 OR NOT (SELECT array_agg(snowflake_migrate_internal.column_expression(n)) FROM unnest(c.columns) AS n)
				<@ ARRAY(SELECT jsonb_array_elements_text(names -> 'expressions')))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.foreign_keys_not_followed(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: references that do not follow rows that are not copied';

/* Whether a column of texts has the key of a row that clashes, in the source of that row. */
CREATE FUNCTION snowflake_migrate_internal.has_clashing_key(run_ bigint, no_ int, column_ name) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
DECLARE
	query CONSTANT text := (
		SELECT string_agg(snowflake_migrate_internal.fill($query$
				SELECT FROM {source_table} AS s JOIN pg_temp.snowflake_merge_clash AS c
					ON c.source = {source} AND c.o1::text = s.{"column"}::text
				WHERE coalesce(c.t1, c.w1) IS DISTINCT FROM c.n1
			$query$, jsonb_build_object('source', s.source, 'column', column_,
				'source_table', snowflake_migrate_internal.only(s.relation))), ' UNION ALL ')
		FROM snowflake_migrate_internal.plan_sources AS s
		WHERE s.run = run_ AND s.no = no_ AND snowflake_migrate_internal.has_columns(s.relation, ARRAY[column_]));
	found boolean;
BEGIN
	EXECUTE format('SELECT EXISTS (%s)', coalesce(query, 'SELECT WHERE false')) INTO found;
	RETURN found;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.has_clashing_key(bigint, int, name)
	IS 'for snowflake_migrate.merge()''s own use: whether a column has the key of a row that clashes';

/*
 * Asks of columns which nothing says anything about whether they refer to this table: rows of it that clash go where
 * other keys are.  Where its key is a uuid, of each column of that type; where it is a text, of those texts that have
 * the key of such a row.
 */
CREATE FUNCTION snowflake_migrate_internal.ask_followers(names jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	run_ CONSTANT bigint := (names ->> 'run')::bigint;
	asked CONSTANT text := format('may refer to %s, of which rows that clash get other keys', names ->> 'table');
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, t.relation::text, a.attname, asked,
			advice => format('If it does: SELECT snowflake_migrate.declare_reference(%L, %L, %L); if not: '
							 'SELECT snowflake_migrate.declare_no_reference(%1$L, %2$L);', t.relation, a.attname,
							 names ->> 'table'),
			is_question => true)
		FROM snowflake_migrate_internal.planned_table(run_, (names ->> 'no')::int) AS p
			JOIN pg_attribute AS k ON k.attrelid = p.relation AND p.key = ARRAY[k.attname]
			CROSS JOIN snowflake_migrate_internal.merged_tables(run_) AS t
			JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attnum > 0 AND NOT a.attisdropped
			JOIN pg_type AS y ON y.oid = snowflake_migrate_internal.without_domain(k.atttypid)
			JOIN pg_type AS b ON b.oid = snowflake_migrate_internal.without_domain(a.atttypid)
		WHERE (y.oid = 'uuid'::regtype AND b.oid = y.oid
				OR y.typcategory = 'S' AND b.typcategory = 'S'
					AND snowflake_migrate_internal.has_clashing_key(run_, t.no, a.attname))
			AND ARRAY[a.attname] <> t.key
			AND NOT EXISTS (SELECT FROM pg_constraint AS f
							WHERE f.contype = 'f' AND f.conrelid = t.relation AND a.attnum = ANY (f.conkey))
			AND NOT EXISTS (SELECT FROM snowflake_migrate.declared_references AS d
							WHERE d.relation = t.relation AND d.column_name = a.attname)
			AND NOT EXISTS (SELECT FROM snowflake_migrate.declared_no_references AS d
							WHERE d.relation = t.relation AND d.column_name = a.attname)
			AND NOT EXISTS (SELECT FROM snowflake_migrate.report AS f
							WHERE f.run = run_ AND f.relation = t.relation::text AND f.object = a.attname
								AND f.problem = asked)
		ORDER BY t.no, a.attnum;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.ask_followers(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: asks what may refer to rows that clash';

/* Adds to the report what refers to the rows that clash and would not follow them where the policy sends them. */
CREATE FUNCTION snowflake_migrate_internal.check_followers(names jsonb, total bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	table_ CONSTANT oid := (names ->> 'oid')::oid;
	declared CONSTANT boolean := EXISTS (
		SELECT FROM snowflake_migrate.declared_references AS r WHERE r.referenced = table_);
	is_referred CONSTANT boolean := declared OR EXISTS (SELECT FROM snowflake_migrate_internal.foreign_keys_to(table_));
	foreign_keys CONSTANT text := snowflake_migrate_internal.foreign_keys_not_followed(names);
	moved bigint;
BEGIN
	IF foreign_keys IS NOT NULL THEN
		PERFORM snowflake_migrate_internal.report_constraint(names,
			'rows clash that other tables refer to by other columns than the key', total,
			'Choose another policy. The references are ' || foreign_keys || '.');
	END IF;
	IF names ->> 'policy' = 'skip' THEN
		IF names ->> 'kind' = 'key' AND declared THEN
			PERFORM snowflake_migrate_internal.report_constraint(names,
				'rows are skipped to which declared references lead that are not renumbered', total,
				'Choose another policy.');
		END IF;
	/* Rows that refer to a key of several columns, or to one that is a reference, find each column by itself. */
	ELSIF names ->> 'kind' = 'key' THEN
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*) FROM pg_temp.snowflake_merge_clash AS c
			WHERE ({coalesce(c.t#, c.w#)}) IS DISTINCT FROM ({c.n#})
		$query$, names) INTO moved;
		IF moved > 0 AND NOT is_referred THEN
			PERFORM snowflake_migrate_internal.ask_followers(names);
		ELSIF moved > 0 THEN
			PERFORM snowflake_migrate_internal.report_constraint(names,
				'rows that clash in this constraint have other keys, which other tables refer to', moved,
				'Choose another policy, or let the table have a key of one integer column.');
		END IF;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_followers(jsonb, bigint)
	IS 'for snowflake_migrate.merge()''s own use: what would not follow rows that clash';

/*
 * Writes into the map what becomes of the rows that clash: the key {became} and the {action}, in terms of m (the map)
 * and c (the clash).  What stood for one of these rows, and not for a row of the target, stands for what it became,
 * with {others_action}.
 *
 * What the planner knows of the actions in the map is from before the passes changed them.  Where it expects a row or
 * none, it would read all that clash for each, in a nested loop.  The target's rows are looked up one by one (OFFSET).
 */
CREATE FUNCTION snowflake_migrate_internal.set_clashing(names jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
DECLARE
	moved bigint;
BEGIN
	IF to_regclass(names ->> 'own') IS NOT NULL THEN
		EXECUTE snowflake_migrate_internal.fill($query$
			INSERT INTO {own}
			SELECT m.source, {m.o#}, {m.n#}, false
			FROM {map} AS m JOIN pg_temp.snowflake_merge_clash AS c ON m.source = c.source AND ({m.o#}) = ({c.o#})
			WHERE m.action = 'c'
			ON CONFLICT DO NOTHING
		$query$, names);
	END IF;
	EXECUTE snowflake_migrate_internal.fill($query$
		UPDATE {map} AS m
		SET ({n#}, action) = ROW ({became}, {action})
		FROM pg_temp.snowflake_merge_clash AS c
		WHERE m.source = c.source AND ({m.o#}) = ({c.o#})
	$query$, names);
	EXECUTE snowflake_migrate_internal.fill($query$
		UPDATE {map} AS m
		SET ({n#}, action) = ROW ({became}, {others_action})
		FROM pg_temp.snowflake_merge_clash AS c
		WHERE m.action IN ('m', 'k') AND ({m.n#}) = ({c.n#})
			AND NOT EXISTS (SELECT FROM pg_temp.snowflake_merge_clash AS x
							WHERE x.source = m.source AND ({m.o#}) = ({x.o#}))
			AND NOT EXISTS (SELECT FROM {target} AS t WHERE ({t.@}) = ({c.n#}) OFFSET 0)
	$query$, names);
	GET DIAGNOSTICS moved = ROW_COUNT;
	IF moved > 0 THEN
		UPDATE snowflake_migrate_internal.plan_tables AS t SET some_moved = true
			WHERE t.run = (names ->> 'run')::bigint AND t.no = (names ->> 'no')::int AND NOT t.some_moved;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.set_clashing(jsonb)
	IS 'for the policies of snowflake_migrate.merge(): writes into the map what becomes of rows that clash';

/* Puts on record what the rows that clash became, {new_key} as text. */
CREATE FUNCTION snowflake_migrate_internal.record_clashing(names jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		INSERT INTO snowflake_migrate.records (run, source, relation, constraint_name, policy, old_key, new_key)
		SELECT {run}, ({'sources'}::name[])[c.source], {'table'}, {'label'}, {'policy'}, {c.o#::text}, {new_key}
		FROM pg_temp.snowflake_merge_clash AS c
	$query$, names);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.record_clashing(jsonb)
	IS 'for the policies of snowflake_migrate.merge(): puts on record what rows that clash became';

/* What to do about rows that clash in a constraint. */
CREATE FUNCTION snowflake_migrate_internal.policy_advice(relation regclass, label text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN snowflake_migrate_internal.find_index(relation, label) IS NOT NULL
		THEN format('Declare what becomes of them, for example: SELECT %s(%L, %L, ''keep_target'');',
					'snowflake_migrate.declare_policy', relation, label)
		ELSE 'Change these rows in the source: no policy can be declared for an index of one partition.' END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.policy_advice(regclass, text)
	IS 'for snowflake_migrate.merge()''s own use: what to do about rows that clash';

/* Without a policy, and where new ids did not help: the merge is refused. */
CREATE FUNCTION snowflake_migrate_internal.policy_error(names jsonb) RETURNS void
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT snowflake_migrate_internal.report_rows(names,
		snowflake_migrate_internal.fill($query$
			SELECT c.source, concat_ws(', ', {c.e#}), row_number() OVER (PARTITION BY c.source ORDER BY {c.o#})
			FROM pg_temp.snowflake_merge_clash AS c
		$query$, names),
		names ->> 'label', 'rows clash',
		snowflake_migrate_internal.policy_advice((names ->> 'oid')::oid::regclass, names ->> 'label'))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.policy_error(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: rows clash';

/* The modes match and same_id: a row is the one that was there first. */
CREATE FUNCTION snowflake_migrate_internal.policy_match(names jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	duplicates bigint;
	of_natural_key CONSTANT jsonb := names || jsonb_build_object('label', names ->> 'natural_key');
BEGIN
	IF names ->> 'policy' = 'match' AND NOT names -> 'accept' ? 'duplicates' THEN
		SELECT count(*) INTO duplicates FROM pg_temp.snowflake_merge_clash AS c
			WHERE c.place > 1 AND c.first_source = c.source;
		IF duplicates > 0 THEN
			PERFORM snowflake_migrate_internal.report_constraint(of_natural_key,
				'the natural key is not unique in a source', duplicates, 'Choose other columns, or accept duplicates.');
		END IF;
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*) FROM (SELECT FROM {taken} AS t GROUP BY {t.e#} HAVING count(*) > 1) AS x
		$query$, names) INTO duplicates;
		IF duplicates > 0 THEN
			PERFORM snowflake_migrate_internal.report_constraint(of_natural_key || '{"remark": null}',
				'the natural key is not unique in the target', duplicates,
				'Choose other columns, or accept duplicates.');
		END IF;
	END IF;
	PERFORM snowflake_migrate_internal.set_clashing(names || jsonb_build_object(
		'became', snowflake_migrate_internal.fill('{coalesce(c.t#, c.w#)}', names),
		'action', '''m''',
		'others_action', 'm.action'));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.policy_match(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: equal rows become one';

/* The row that was there first stays. */
CREATE FUNCTION snowflake_migrate_internal.policy_keep_target(names jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.set_clashing(names || jsonb_build_object(
		'became', snowflake_migrate_internal.fill('{coalesce(c.t#, c.w#)}', names),
		'action', '''k''',
		'others_action', '''k'''));
	PERFORM snowflake_migrate_internal.record_clashing(names || jsonb_build_object(
		'new_key', snowflake_migrate_internal.fill('{coalesce(c.t#, c.w#)::text}', names)));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.policy_keep_target(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: keep_target';

/*
 * The source's row takes the place of the target's: the first of those that want it, once.  With keep_first, the
 * target's row is one of them, and may be the first.
 */
CREATE FUNCTION snowflake_migrate_internal.policy_keep_source(names jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	/* The rows that are in the place of one of the target's; one that another comes before gives way. */
	placed CONSTANT text := snowflake_migrate_internal.fill($query$(
			SELECT o.* FROM {map} AS o
			WHERE o.action = 'r' AND NOT EXISTS (
				SELECT FROM pg_temp.snowflake_merge_clash AS x
				WHERE x.place > 1 AND x.source = o.source AND ({x.o#}) = ({o.o#})))$query$, names);
BEGIN
	/* A row is in the place of the target's if no other is.  These queries are the same for all rows: read once. */
	PERFORM snowflake_migrate_internal.set_clashing(names || jsonb_build_object(
		'became', snowflake_migrate_internal.fill(
			'{coalesce(c.t#, CASE m.action WHEN ''r'' THEN m.n# ELSE c.w# END)}', names),
		'action', snowflake_migrate_internal.fill($query$
				CASE WHEN c.place = 1 AND c.t1 IS NOT NULL AND (
						({c.t#}) NOT IN (SELECT {o.n#} FROM {placed} AS o)
						OR (c.source, {c.o#}, {c.t#}) IN (
							SELECT o.source, {o.o#}, {o.n#} FROM {placed} AS o
							WHERE ({o.n#}) NOT IN (
								SELECT {o.n#} FROM {placed} AS o GROUP BY {o.n#} HAVING count(*) > 1)))
					THEN 'r' ELSE 'k' END
			$query$, names || jsonb_build_object('placed', placed)),
		'others_action', '''k'''));
	PERFORM snowflake_migrate_internal.record_clashing(names || jsonb_build_object(
		'new_key', snowflake_migrate_internal.fill('{coalesce(c.t#, c.w#)::text}', names)));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.policy_keep_source(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: keep_source';

/* Rows that clash do not come; dangling() sees to the rows that must refer to them. */
CREATE FUNCTION snowflake_migrate_internal.policy_skip(names jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.set_clashing(names || jsonb_build_object(
		'became', names ->> 'nulls', 'action', '''s''', 'others_action', '''s'''));
	PERFORM snowflake_migrate_internal.record_clashing(names || '{"new_key": "NULL"}');
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.policy_skip(jsonb) IS 'for snowflake_migrate.merge()''s own use: skip';

/*
 * A suffix, and a number from the second try on, makes a text unique; it is shortened until it fits and passes the
 * CHECKs.  Rows that would get the same value are told apart at once, by the number that a further try would append.
 * Returns how many got one.
 */
CREATE FUNCTION snowflake_migrate_internal.policy_suffix(names jsonb) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	table_ CONSTANT oid := (names ->> 'oid')::oid;
	changed CONSTANT name := names ->> 'changed';
	length_limit int;
	column_type text;		/* what a domain is over, as the domain's CHECKs are among those that are tried */
	done bigint;
BEGIN
	SELECT CASE WHEN y.base IN ('varchar'::regtype, 'bpchar'::regtype) AND y.base_typmod > 4 THEN y.base_typmod - 4 END,
			format_type(y.base, y.base_typmod)
		INTO length_limit, column_type
		FROM pg_attribute AS a CROSS JOIN LATERAL snowflake_migrate_internal.base_type(a.atttypid, a.atttypmod) AS y
		WHERE a.attrelid = table_ AND a.attname = changed;
	EXECUTE snowflake_migrate_internal.fill($query$
		INSERT INTO {change} AS v ("merge source", {"merge o#"}, "merge tries", {"changed"}, {"old_changed"})
		SELECT y."merge source", {y."merge o#"}, y."merge try", x.value, y."merge former"
		FROM (
				SELECT q.*, b.former AS "merge former", b.suffix AS "merge suffix", b.tries + row_number() OVER (
						PARTITION BY b.tries, b.suffix, left(b.former,
							CASE b.tries WHEN 0 THEN coalesce({limit} - length(b.suffix), length(b.former)) ELSE 1 END)
						ORDER BY c.source, {c.o#}) AS "merge try"
				FROM pg_temp.snowflake_merge_clash AS c
					JOIN ({become}) AS q ON q."merge source" = c.source AND ({q."merge o#"}) = ({c.o#})
					LEFT JOIN {change} AS f ON f."merge source" = c.source AND ({f."merge o#"}) = ({c.o#})
					CROSS JOIN LATERAL (
						/* Of this column: another policy may have changed others. */
						SELECT CASE WHEN f.{"old_changed"} IS NULL THEN 0 ELSE c.tries END,
							coalesce(f.{"old_changed"}, q.{"changed"}::text),
							replace({'pattern'}, {'mark'}, coalesce(({'sources'}::name[])[c.source], {'target_schema'}))
						) AS b (tries, former, suffix)
			) AS y
			CROSS JOIN LATERAL (SELECT y."merge suffix" || coalesce(nullif(y."merge try", 1)::text, '')) AS b (suffix)
			CROSS JOIN LATERAL (
				SELECT left(y."merge former", n) || b.suffix
				FROM generate_series(least(length(y."merge former"), {limit} - length(b.suffix)), 1, -1) AS n
				WHERE (SELECT {valid} FROM (SELECT {columns}) AS {"name"})
				LIMIT 1) AS x (value)
		ON CONFLICT ("merge source", {"merge o#"}) DO UPDATE
			SET "merge tries" = greatest(v."merge tries", excluded."merge tries"), {"changed"} = excluded.{"changed"},
				{"old_changed"} = excluded.{"old_changed"}
	$query$, names || jsonb_build_object(
		'pattern', coalesce(names ->> 'argument', '_{source}'),
		'mark', '{source}',
		'limit', coalesce(length_limit::text, 'NULL::int'),
		'valid', coalesce((SELECT string_agg(format('(%s) IS NOT FALSE', k.expression), ' AND ')
						   FROM snowflake_migrate_internal.check_constraints(table_) AS k
						   WHERE changed = ANY (k.names)), 'true'),
		'columns', (SELECT string_agg(format(
						/* Of its type, by which the CHECKs know their functions and operators. */
						CASE WHEN c.name = changed THEN 'CAST(left(y."merge former", n) || b.suffix AS %2$s) AS %1$I'
							ELSE 'y.%1$I' END, c.name, column_type), ', ')
					FROM snowflake_migrate_internal.plan_columns AS c
					WHERE c.run = (names ->> 'run')::bigint AND c.no = (names ->> 'no')::int)));
	GET DIAGNOSTICS done = ROW_COUNT;
	RETURN done;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.policy_suffix(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: suffix';

/*
 * A number becomes the next that is free: the least from the table's least number on that no row has that is the same
 * in the other columns of the constraint.
 */
CREATE FUNCTION snowflake_migrate_internal.policy_next_free(names jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	changed CONSTANT text := snowflake_migrate_internal.column_expression((names ->> 'changed')::name);
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		WITH numbered AS MATERIALIZED (
			/* Its ladders are those of the index: 1.0 is 1.00. */
			SELECT a.*, dense_rank() OVER (ORDER BY {ladder}) AS ladder
			FROM (
				SELECT t.source, {t.o#}, {t.e#} FROM pg_temp.snowflake_merge_clash AS t
				UNION ALL
				SELECT NULL, {nulls}, {t.e#} FROM {taken} AS t
				UNION ALL
				SELECT NULL, {nulls}, {t.e#} FROM {wanted} AS t
			) AS a
		),
		used AS MATERIALIZED (
			SELECT DISTINCT a.ladder, a.e{number} AS number FROM numbered AS a WHERE a.source IS NULL
		),
		clash AS (
			SELECT a.source, {a.o#}, a.e{number} AS number, a.ladder,
				row_number() OVER (PARTITION BY a.ladder ORDER BY a.source, {a.o#}) AS n
			FROM numbered AS a WHERE a.source IS NOT NULL
		),
		free AS (
			SELECT p.ladder, f.number, row_number() OVER (PARTITION BY p.ladder ORDER BY f.number) AS n
			FROM (SELECT c.ladder, count(*) AS rows FROM clash AS c GROUP BY c.ladder) AS p
				JOIN (SELECT u.ladder, count(*) AS rows FROM used AS u GROUP BY u.ladder) AS o USING (ladder)
				CROSS JOIN LATERAL generate_series(
					(SELECT min(u.number) FROM used AS u)::bigint,
					(SELECT min(u.number) FROM used AS u) + o.rows + p.rows) AS f (number)
			WHERE NOT EXISTS (SELECT FROM used AS u WHERE u.ladder = p.ladder AND u.number = f.number)
		)
		INSERT INTO {change} AS v ("merge source", {"merge o#"}, "merge tries", {"changed"}, {"old_changed"})
		SELECT c.source, {c.o#}, 1, f.number, c.number::text
		FROM clash AS c JOIN free AS f ON f.ladder = c.ladder AND f.n = c.n
		ON CONFLICT ("merge source", {"merge o#"}) DO UPDATE
			SET "merge tries" = v."merge tries" + 1, {"changed"} = excluded.{"changed"},
				/* By another policy, the row may have got other values of other columns. */
				{"old_changed"} = coalesce(v.{"old_changed"}, excluded.{"old_changed"})
	$query$, names || (
		SELECT jsonb_build_object(
			'number', min(e.n) FILTER (WHERE e.expression = changed),
			'ladder', coalesce(
				string_agg('a.e' || e.n, ', ' ORDER BY e.n) FILTER (WHERE e.expression <> changed), 'NULL::int'))
		FROM jsonb_array_elements_text(names -> 'expressions') WITH ORDINALITY AS e (expression, n)));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.policy_next_free(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: next_free';

/*
 * Asks about rows that become one with a row that in the end does not have the value by which they clash.  constraints:
 * the names of each; see ask_about_lost_rows().
 */
CREATE FUNCTION snowflake_migrate_internal.ask_about_joined_rows(names jsonb, constraints jsonb[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
DECLARE
	joined text;
BEGIN
	SELECT string_agg(snowflake_migrate_internal.fill($query$
			SELECT w.source, {w.o#}
			FROM {valued} AS w JOIN {valued} AS t ON ({t.n#}) = ({w.n#}) AND {same}
			WHERE w.action IN ('k', 'm') AND t.action IN ('c', 'r')
			UNION ALL
			SELECT w.source, {w.o#}
			FROM {valued} AS w JOIN {taken} AS t ON ({t.t#}) = ({w.n#}) AND {same}
			WHERE w.action IN ('k', 'm') AND NOT EXISTS (
				SELECT FROM {map} AS m WHERE m.action IN ('c', 'r') AND ({m.n#}) = ({w.n#}))
		$query$, c.names), ' UNION ALL ')
		INTO joined
		FROM unnest(constraints) AS c (names);
	/* By a natural key, rows are declared to be the same: what one of them has, all have. */
	joined := joined || coalesce((
		SELECT snowflake_migrate_internal.fill($query$
			UNION ALL
			SELECT w.source, {w.o#}
			FROM {valued} AS w
				JOIN {valued} AS t ON ({t.n#}) = ({w.n#}) AND {same}
				JOIN ({joined}) AS j ON j.source = t.source AND ({j.o#}) = ({t.o#})
			WHERE w.action IN ('k', 'm')
		$query$, c.names || jsonb_build_object('joined', joined))
		FROM unnest(constraints) AS c (names)
		WHERE c.names ->> 'policy' = 'match'), '');
	/* In a target in use, what they gave way to may be gone: then they are looked at again. */
	PERFORM snowflake_migrate_internal.report_rows(names,
		snowflake_migrate_internal.fill($query$
			SELECT x.source, concat_ws(', ', {x.o#}), row_number() OVER (PARTITION BY x.source ORDER BY {x.o#})
			FROM (
				SELECT m.source, {m.o#} FROM {map} AS m
				WHERE m.action IN ('k', 'm') AND {entries} AND ({m.n#}) IN (
					SELECT {f.n#} FROM {map} AS f WHERE f.action IN ('c', 'r')
					UNION ALL SELECT {t.@} FROM {target} AS t)
				EXCEPT ({joined})) AS x
		$query$, names || jsonb_build_object('joined', joined)),
		NULL, 'rows become one with rows that in the end do not have the value by which they clash',
		'They are lost, and what refers to them leads to the others: call merge() with accept_warnings => true if '
			'all of them are the same. If not, change these rows in the source, or the values in the target.',
		'warning');
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.ask_about_joined_rows(jsonb, jsonb[])
	IS 'for snowflake_migrate.merge()''s own use: rows that become one with strangers';

/* The same about rows that are skipped for a value that in the end no row has. */
CREATE FUNCTION snowflake_migrate_internal.ask_about_skipped_rows(names jsonb, constraints jsonb[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET enable_nestloop = off
AS $$
DECLARE
	skipped_for CONSTANT text := (
		SELECT string_agg(snowflake_migrate_internal.fill($query$
			SELECT w.source, {w.o#}
			FROM {valued} AS w JOIN {valued} AS t ON {same}
			WHERE w.action = 's' AND t.action IN ('c', 'r')
			UNION ALL
			SELECT w.source, {w.o#}
			FROM {valued} AS w JOIN {taken} AS t ON {same}
			WHERE w.action = 's' AND NOT EXISTS (
				SELECT FROM {map} AS m WHERE m.action = 'r' AND ({m.n#}) = ({t.t#}))
		$query$, c.names), ' UNION ALL ')
		FROM unnest(constraints) AS c (names));
	labels CONSTANT name[] := ARRAY(SELECT c.names ->> 'label' FROM unnest(constraints) AS c (names));
BEGIN
	/* Those that are skipped with what they refer to are on record by the reference. */
	PERFORM snowflake_migrate_internal.report_rows(names,
		snowflake_migrate_internal.fill($query$
			SELECT x.source, concat_ws(', ', {x.o#}), row_number() OVER (PARTITION BY x.source ORDER BY {x.o#})
			FROM (
				SELECT m.source, {m.o#} FROM {map} AS m
				WHERE m.action = 's' AND {entries}
					AND NOT EXISTS (
						SELECT FROM snowflake_migrate.records AS r
						WHERE r.run = {run} AND r.relation = {'table'} AND r.policy = 'skip'
							AND r.source = ({'sources'}::name[])[m.source] AND r.old_key = {m.o#::text}
							AND r.constraint_name <> ALL ({'labels'}::name[]))
				EXCEPT ({skipped_for})) AS x
		$query$, names || jsonb_build_object('skipped_for', skipped_for, 'labels', labels::text)),
		NULL, 'rows are skipped for a value that in the end no row has',
		'They are lost: call merge() with accept_warnings => true if they may be. If not, change these rows in the '
			'source, or the values in the target.', 'warning');
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.ask_about_skipped_rows(jsonb, jsonb[])
	IS 'for snowflake_migrate.merge()''s own use: rows that are skipped for nothing';

/*
 * Asks about rows that would be lost for a value that nobody keeps: those that become one with a row that in the end
 * does not have the value by which they clash, so that what refers to them leads to a stranger; and those that are
 * skipped for a value that in the end no row has.  Which is right if they are the same all the same.
 *
 * A row only gives way to one that is to come, or is the target's.  So there can be such rows where one that was to
 * come has given way itself (some_moved, or is skipped), takes a place in the target, or where policies change the
 * target's rows.  Both are asked without nested loops: see set_clashing().
 */
CREATE FUNCTION snowflake_migrate_internal.ask_about_lost_rows(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	names jsonb;
	become text;
	are_joined boolean;
	are_placed boolean;
	are_skipped boolean;
	constraints jsonb[];
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	IF plan.mode = 'copy' AND NOT EXISTS (
			SELECT FROM snowflake_migrate.declared_policies AS p WHERE p.relation = plan.relation) THEN
		RETURN;
	END IF;
	names := snowflake_migrate_internal.names(run_, no_) || jsonb_build_object(
		'entries', snowflake_migrate_internal.entries_to_come(run_, no_));
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT coalesce(bool_or(m.action IN ('k', 'm')), false), coalesce(bool_or(m.action = 'r'), false),
			coalesce(bool_or(m.action = 's'), false)
		FROM {map} AS m
		WHERE m.action <> 'c'
	$query$, names) INTO are_joined, are_placed, are_skipped;
	are_joined := are_joined AND (are_placed OR plan.some_moved OR EXISTS (
		SELECT FROM snowflake_migrate_internal.plan_columns AS c WHERE c.run = run_ AND c.no = no_ AND c.in_target));
	are_skipped := are_skipped AND EXISTS (
		SELECT FROM snowflake_migrate.declared_policies AS p WHERE p.relation = plan.relation AND p.policy = 'skip');
	IF NOT are_joined AND NOT are_skipped THEN
		RETURN;
	END IF;
	/* Of a target in use, some may be copied, under other keys than they have by now. */
	become := snowflake_migrate_internal.all_rows(run_, no_, own_keys => true);
	/* New ids say nothing. */
	SELECT array_agg(u.names || jsonb_build_object('valued', snowflake_migrate_internal.fill($query$(
			SELECT "merge source" AS source, {"merge o#" AS o#}, {"merge n#" AS n#}, "merge action" AS action, {values}
			FROM ({become}) AS {"name"} WHERE {indexed}
		)$query$, u.names || jsonb_build_object('become', become))) ORDER BY x.label)
		INTO constraints
		FROM snowflake_migrate_internal.unique_constraints(run_, no_) AS x
			CROSS JOIN LATERAL (
				SELECT snowflake_migrate_internal.wanted_names(run_, no_, to_jsonb(x), become)) AS u (names)
		WHERE NOT (x.is_key AND plan.kind = 'id');
	/* STRICT: nothing where there are none. */
	PERFORM snowflake_migrate_internal.ask_about_joined_rows(names, constraints) WHERE are_joined;
	PERFORM snowflake_migrate_internal.ask_about_skipped_rows(names, array_agg(c.one))
		FROM unnest(constraints) AS c (one) WHERE are_skipped AND c.one ->> 'policy' = 'skip';
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.ask_about_lost_rows(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: rows that would be lost for a value that goes';

/*
 * Adds an error to the report about rows that are in the place of one of the target's rows by another constraint, and
 * are a second one's by this.  Leaves these out, and returns how many they are.
 */
CREATE FUNCTION snowflake_migrate_internal.leave_out_double_matches(names jsonb) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	done bigint;
BEGIN
	PERFORM snowflake_migrate_internal.report_rows(names,
		snowflake_migrate_internal.fill($query$
			SELECT c.source, concat_ws(', ', {c.o#}), row_number() OVER (PARTITION BY c.source ORDER BY {c.o#})
			FROM pg_temp.snowflake_merge_clash AS c
			WHERE c.action = 'r' AND c.t1 IS NOT NULL
		$query$, names),
		names ->> 'label', 'rows clash with different rows of the target by different constraints',
		'Choose another policy for one of the constraints, or change these rows in the source.');
	DELETE FROM pg_temp.snowflake_merge_clash AS c WHERE c.action = 'r' AND c.t1 IS NOT NULL;
	GET DIAGNOSTICS done = ROW_COUNT;
	RETURN done;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.leave_out_double_matches(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: rows that would take several places';

/*
 * Does what the policy of one unique constraint says with the rows that clash in it.  Returns how many rows it
 * changed.
 */
CREATE FUNCTION snowflake_migrate_internal.resolve(
	run_ bigint,
	no_ int,
	constraint_ jsonb,
	to_come text) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	names jsonb := snowflake_migrate_internal.wanted_names(run_, no_, constraint_, to_come);
	total bigint := snowflake_migrate_internal.find_clashes(names);
	done bigint;
	remark text;
BEGIN
	IF total = 0 THEN
		RETURN 0;
	END IF;
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT concat_ws(', ', {c.e#}) FROM pg_temp.snowflake_merge_clash AS c
	$query$, names) INTO remark;
	names := names || jsonb_build_object('remark', remark);
	CASE names ->> 'policy'
	WHEN 'error', 'renumber' THEN
		PERFORM snowflake_migrate_internal.policy_error(names);
		RETURN 0;
	WHEN 'suffix' THEN
		done := snowflake_migrate_internal.policy_suffix(names);
		IF done < total THEN
			PERFORM snowflake_migrate_internal.report_constraint(names,
				format('no suffix makes column %I both unique and valid', names ->> 'changed'), total - done,
				'Choose another suffix or another policy.');
			RETURN 0;
		END IF;
		RETURN total;
	WHEN 'next_free' THEN
		PERFORM snowflake_migrate_internal.policy_next_free(names);
		RETURN total;
	ELSE
		IF names ->> 'policy' IN ('keep_target', 'keep_source', 'keep_first') THEN
			total := total - snowflake_migrate_internal.leave_out_double_matches(names);
			IF total = 0 THEN
				RETURN 0;
			END IF;
		END IF;
		PERFORM snowflake_migrate_internal.check_followers(names, total);
	END CASE;
	CASE names ->> 'policy'
	WHEN 'match', 'same_id' THEN
		PERFORM snowflake_migrate_internal.policy_match(names);
	WHEN 'keep_target' THEN
		PERFORM snowflake_migrate_internal.policy_keep_target(names);
	WHEN 'keep_source', 'keep_first' THEN
		PERFORM snowflake_migrate_internal.policy_keep_source(names);
	WHEN 'skip' THEN
		PERFORM snowflake_migrate_internal.policy_skip(names);
	END CASE;
	RETURN total;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.resolve(bigint, int, jsonb, text)
	IS 'for snowflake_migrate.merge()''s own use: what becomes of the rows that clash in one unique constraint';

/*
 * The target's ranks before and after, to be put in force when copying begins, and put back; and what ranks became,
 * for people.
 */
CREATE FUNCTION snowflake_migrate_internal.record_ranks(names jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		CREATE TABLE {rank} AS
		SELECT {r.n#}, r.old, r.new
		FROM pg_temp.snowflake_merge_rank AS r
		WHERE r.source = 0 AND r.old IS DISTINCT FROM r.new
	$query$, names);
	/*
	 * A row that takes a source's values gets that row's rank with the others, so that it is in nobody's way, also
	 * where that row has none.  Where that row is ranked elsewhere, it gets one behind all others, until it is
	 * replaced.
	 */
	EXECUTE snowflake_migrate_internal.fill($query$
		INSERT INTO {rank}
		SELECT {x.n#}, x.old, x.new
		FROM (
			SELECT {m.n# AS n#}, t.old, CASE
					WHEN r.new IS NOT NULL THEN r.new
					WHEN q.{"changed"} IS NOT NULL
						THEN l.last + row_number() OVER (PARTITION BY t.ladder ORDER BY {m.n#}) END AS new
			FROM {map} AS m
				JOIN pg_temp.snowflake_merge_rank AS t ON t.source < 0 AND ({t.n#}) = ({m.n#})
				JOIN ({become}) AS q ON q."merge source" = m.source AND ({q."merge o#"}) = ({m.o#})
				LEFT JOIN pg_temp.snowflake_merge_rank AS r
					ON r.source = m.source AND ({r.o#}) = ({m.o#}) AND r.ladder = t.ladder
				JOIN (
					SELECT u.ladder, max(greatest(u.old, u.new)) AS last
					FROM pg_temp.snowflake_merge_rank AS u
					GROUP BY u.ladder) AS l ON l.ladder = t.ladder
			WHERE m.action = 'r'
		) AS x
		WHERE x.old IS DISTINCT FROM x.new
	$query$, names);
	EXECUTE snowflake_migrate_internal.fill($query$
		INSERT INTO snowflake_migrate.records
			(run, source, relation, constraint_name, policy, old_key, new_key, column_name, old_value, new_value)
		SELECT {run}, ({'sources'}::name[])[r.source], {'table'}, {'label'}, 'rerank',
			CASE WHEN r.source > 0 THEN {r.o#::text} END, {r.n#::text}, {'changed'}, r.old, r.new
		FROM pg_temp.snowflake_merge_rank AS r
		WHERE r.old IS DISTINCT FROM r.new AND r.source >= 0
	$query$, names);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.record_ranks(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: keeps the ranks that change';

/* The expressions of a constraint about ranks that tell its ladders apart; null: there is one. */
CREATE FUNCTION snowflake_migrate_internal.ladder(names jsonb) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT string_agg(e, ', ')
	FROM jsonb_array_elements_text(names -> 'expressions') AS e
	WHERE e <> snowflake_migrate_internal.column_expression((names ->> 'changed')::name)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.ladder(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: what tells ladders apart';

/* Ranks are numbered anew over the rows of the target and of all sources: rank_NO has what becomes of the target's. */
CREATE FUNCTION snowflake_migrate_internal.policy_rerank(run_ bigint, no_ int, constraint_ jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	names jsonb := snowflake_migrate_internal.wanted_names(
		run_, no_, constraint_, snowflake_migrate_internal.rows_to_come(run_, no_));
	ladder CONSTANT text := snowflake_migrate_internal.ladder(names);
BEGIN
	/* It may have been declared anew since the plan was written. */
	PERFORM snowflake_migrate_internal.refuse_declared((names ->> 'declared_by')::name,
		(names ->> 'oid')::oid::regclass, names ->> 'label');
	names := names || jsonb_build_object(
		'columns', (SELECT string_agg(quote_ident(c.name), ', ' ORDER BY c.position)
					FROM snowflake_migrate_internal.plan_columns AS c WHERE c.run = run_ AND c.no = no_),
		'ladder', coalesce('dense_rank() OVER (ORDER BY ' || ladder || ')', '1'),
		'partition', coalesce('PARTITION BY ' || ladder, ''),
		'and_ladder', coalesce(', ' || ladder, ''));
	IF to_regclass('pg_temp.snowflake_merge_rank') IS NOT NULL THEN
		DROP TABLE pg_temp.snowflake_merge_rank;
	END IF;
	/* A row without a rank, or outside of the index, stays as it is.  Source -1: one of the target that is replaced. */
	EXECUTE snowflake_migrate_internal.fill($query$
		CREATE TEMPORARY TABLE snowflake_merge_rank ON COMMIT DROP AS
		SELECT "merge source" AS source, {"merge o#" AS o#}, {"merge n#" AS n#}, {"changed"} AS old,
			row_number() OVER (
				PARTITION BY "merge source" < 0{and_ladder} ORDER BY {argument}, "merge source", {"changed"}) AS new,
			count(*) FILTER (WHERE "merge source" > 0) OVER ({partition}) AS coming,
			{ladder} AS ladder
		FROM (
			SELECT CASE WHEN ({@}) IN (SELECT {m.n#} FROM {map} AS m WHERE m.action = 'r') THEN -1 ELSE 0 END
					AS "merge source", {NULL AS "merge o#"}, {@ AS "merge n#"}, {columns}
			FROM {target} AS {"name"}
			WHERE {"changed"} IS NOT NULL AND ({indexed})
			UNION ALL
			SELECT "merge source", {"merge o#"}, {"merge n#"}, {columns}
			FROM ({become}) AS {"name"}
			WHERE "merge action" IN ('c', 'r') AND {"changed"} IS NOT NULL AND ({indexed})
		) AS {"name"}
	$query$, names);
	/* A ladder that no row comes into is nobody's business: a closed season's, say. */
	DELETE FROM pg_temp.snowflake_merge_rank AS r WHERE r.coming = 0;
	EXECUTE snowflake_migrate_internal.fill($query$
		INSERT INTO {change} AS v ("merge source", {"merge o#"}, "merge tries", {"changed"})
		SELECT r.source, {r.o#}, 0, r.new FROM pg_temp.snowflake_merge_rank AS r WHERE r.source > 0
		ON CONFLICT ("merge source", {"merge o#"}) DO UPDATE SET {"changed"} = excluded.{"changed"}
	$query$, names);
	PERFORM snowflake_migrate_internal.record_ranks(names);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.policy_rerank(bigint, int, jsonb)
	IS 'for snowflake_migrate.merge()''s own use: rerank';
