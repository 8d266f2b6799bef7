/*
 * References that lead nowhere: to a row that the source does not have, or to one that is skipped or stays behind.  Of
 * the former, the declaration says what becomes.  Of the latter, a row that must refer to it is skipped, or stays
 * behind, too, and one that need not loses the reference; where the key is not renumbered, it is skipped or stays
 * behind in any case.
 *
 * The queries read the rows of one source as rows_parts() gives them: s is the source's row, m its entry in the map,
 * rID the entry that a reference leads to.
 */

/* Skips the rows of a query ({gone}: what follows FROM) that are still to be copied.  Returns how many. */
CREATE FUNCTION snowflake_migrate_internal.skip_rows(names jsonb, object name, gone text) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	done bigint;
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		WITH skipped AS (
			UPDATE {map} AS g
			SET ({n#}, action) = ROW ({nulls}, 's')
			FROM (SELECT DISTINCT {m.o#} FROM {gone} AND m.action = 'c') AS x
			WHERE g.source = {source} AND ({g.o#}) = ({x.o#})
			RETURNING {g.o#::text} AS old_key
		)
		INSERT INTO snowflake_migrate.records (run, source, relation, constraint_name, policy, old_key)
		SELECT {run}, {'source_name'}, {'table'}, {'object'}, 'skip', s.old_key FROM skipped AS s
	$query$, names || jsonb_build_object('object', object, 'gone', gone));
	GET DIAGNOSTICS done = ROW_COUNT;
	RETURN done;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.skip_rows(jsonb, name, text)
	IS 'for snowflake_migrate.merge()''s own use: skips rows of a source';

/* The rows of a source that have a reference, as what follows FROM in a query. */
CREATE FUNCTION snowflake_migrate_internal.referring_rows(names jsonb) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_migrate_internal.fill(CASE
		WHEN names ->> 'path' IS NOT NULL THEN $query$
				{origin}, jsonb_path_query(({value})::jsonb, {'path'}, silent => true) AS p (part),
					snowflake_migrate_internal.json_id(p.part) AS e (id)
				WHERE e.id IS NOT NULL{and_holds}{and_comes}
			$query$
		WHEN names -> 'elements' = 'true' THEN '{origin}, {elements_of} WHERE e.id IS NOT NULL{and_holds}{and_comes}'
		ELSE '{origin} WHERE {value} IS NOT NULL{and_holds}{and_comes}' END, names)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.referring_rows(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: rows that have a reference';

/* The condition that a reference of such a row dangles. */
CREATE FUNCTION snowflake_migrate_internal.dangles(names jsonb) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_migrate_internal.fill(CASE
		WHEN names -> 'is_plain' = 'true' THEN 'r{id}.o1 IS NULL'
		ELSE 'NOT EXISTS (SELECT FROM {parent_map} AS f WHERE f.source = {source} AND f.o1 = e.id)' END, names)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.dangles(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: whether a reference dangles';

/*
 * The references of one table of one source, each with the names for the queries about it: parent is the table that
 * it leads to, dangling_rows and dangling_value those whose reference dangles.
 */
CREATE FUNCTION snowflake_migrate_internal.reference_names(run_ bigint, no_ int, source_ int) RETURNS SETOF jsonb
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY
	WITH own AS MATERIALIZED (
		SELECT snowflake_migrate_internal.names(run_, no_) AS names
	),
	q AS MATERIALIZED (
		SELECT snowflake_migrate_internal.rows_origin(run_, no_, source_, t.kind <> 'none') AS origin,
			snowflake_migrate_internal.rows_origin(run_, no_, source_, false) AS all_rows
		FROM snowflake_migrate_internal.plan_tables AS t
		WHERE t.run = run_ AND t.no = no_
	),
	ref AS MATERIALIZED (
		SELECT r.id, to_jsonb(r) || own.names || jsonb_build_object(
				'source', source_,
				'source_name', u.sources[source_],
				'origin', q.origin,
				'all_rows', q.all_rows,
				'column', r.name,
				'value', format('s.%I', r.name),
				'elements_of', snowflake_migrate_internal.elements_of(format('s.%I', r.name), b.atttypid),
				'dangling_value', CASE WHEN i.is_plain THEN format('s.%I', r.name) ELSE 'e.id' END,
				'and_holds', coalesce(' AND s.' || snowflake_migrate_internal.condition_column(r.id, r.condition), ''),
				/* Rows that stay behind need not refer to anything. */
				'and_comes', i.and_comes,
				'must_refer', i.is_plain AND (a.attnotnull OR r.declared AND r.dangling IN ('error', 'skip')),
				'parent', p.relation::text,
				'parent_map', snowflake_migrate_internal.relation(run_, 'map_' || r.referenced),
				'not_null', a.attnotnull AND i.is_plain,
				'is_plain', i.is_plain) AS names
		FROM snowflake_migrate_internal.plan_references AS r
			JOIN snowflake_migrate.runs AS u USING (run)
			JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
			JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.no = r.referenced
			JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attname = r.name
			JOIN pg_attribute AS b ON b.attrelid = s.relation AND b.attname = r.name AND NOT b.attisdropped
			CROSS JOIN LATERAL (
				SELECT r.path IS NULL AND NOT r.elements,
					CASE t.kind WHEN 'none' THEN '' ELSE ' AND m.action <> ''b''' END) AS i (is_plain, and_comes)
			CROSS JOIN own
			CROSS JOIN q
		WHERE r.run = run_ AND r.no = no_ AND s.source = source_
	)
	SELECT ref.names || jsonb_build_object('dangling_rows',
		concat_ws(' AND ', snowflake_migrate_internal.referring_rows(ref.names),
			snowflake_migrate_internal.dangles(ref.names)))
	FROM ref
	ORDER BY ref.id;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.reference_names(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: the names in the queries about references';

/* Arrays and documents that could not be written again with other ids. */
CREATE FUNCTION snowflake_migrate_internal.check_form(names jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	found bigint;
	example text;
BEGIN
	IF names -> 'elements' = 'true' AND names ->> 'kind' <> 'none' THEN
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*), min({m.o#::text})
			FROM {origin}
			WHERE (array_ndims({value}) > 1 OR array_lower({value}, 1) <> 1){and_comes}
		$query$, names) INTO found, example;
		IF found > 0 THEN
			PERFORM snowflake_migrate_internal.add_to_report((names ->> 'run')::bigint, 'error',
				names ->> 'source_name', names ->> 'table', names ->> 'column',
				'arrays of ids have several dimensions, or do not begin with 1', found, example,
				'Give a view that has them in another form in the place of the table.');
		END IF;
	ELSIF names ->> 'path' LIKE '%keyvalue()%' THEN
		BEGIN
			EXECUTE snowflake_migrate_internal.fill($query$
				SELECT count(x.document) FROM (SELECT {becomes} FROM {origin} WHERE true{and_comes}) AS x (document)
			$query$, names || jsonb_build_object('becomes', (
				SELECT p.expressions[array_position(p.names, check_form.names ->> 'column')]
				FROM snowflake_migrate_internal.rows_parts(
					(check_form.names ->> 'run')::bigint, (check_form.names ->> 'no')::int,
					(check_form.names ->> 'source')::int, check_form.names ->> 'kind' <> 'none', false) AS p)))
				INTO found;
		/* Of keys, which would become one. */
		EXCEPTION WHEN unique_violation THEN
			GET STACKED DIAGNOSTICS example = PG_EXCEPTION_DETAIL;
			PERFORM snowflake_migrate_internal.add_to_report((names ->> 'run')::bigint, 'error',
				names ->> 'source_name', names ->> 'table', names ->> 'column', SQLERRM, NULL, example,
				'Add their values up in the source, or leave the reference out.');
		END;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_form(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: whether arrays and documents can be written again';

/*
 * For each of the references of one table of one source, how many of its values lead to a row that the source does not
 * have: of all of them in one pass over the table.  A foreign key of the source is no proof: triggers may have been
 * off.  Null for arrays and documents.
 *
 * Where none of a table's rows has such a value, none of those in its map has, and that need not be read.
 */
CREATE FUNCTION snowflake_migrate_internal.count_dangling(refs jsonb[]) RETURNS bigint[]
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	rows text;
	counts text;
	found bigint[];
BEGIN
	FOREACH rows IN ARRAY '{all_rows,origin}'::text[] LOOP
		SELECT string_agg(CASE WHEN r.names -> 'is_plain' = 'true' THEN snowflake_migrate_internal.fill(
				'count(*) FILTER (WHERE {value} IS NOT NULL AND r{id}.o1 IS NULL{and_holds}'
				|| CASE rows WHEN 'origin' THEN '{and_comes})' ELSE ')' END, r.names)
				ELSE 'NULL' END, ', ' ORDER BY r.n)
			INTO counts
			FROM unnest(refs) WITH ORDINALITY AS r (names, n)
			HAVING bool_or(r.names -> 'is_plain' = 'true');
		EXIT WHEN counts IS NULL;
		EXECUTE snowflake_migrate_internal.fill('SELECT ARRAY[{counts}] FROM {rows}',
			jsonb_build_object('counts', counts, 'rows', refs[1] ->> rows)) INTO found;
		EXIT WHEN array_remove(array_remove(found, NULL), 0) = '{}';
	END LOOP;
	RETURN found;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.count_dangling(jsonb[])
	IS 'for snowflake_migrate.merge()''s own use: how many references dangle';

/* References whose row the source does not have.  Returns how many rows are skipped. */
CREATE FUNCTION snowflake_migrate_internal.find_dangling(names jsonb) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	dangling CONSTANT text := names ->> 'dangling';
	not_null CONSTANT boolean := (names ->> 'not_null')::boolean;
	has_key CONSTANT boolean := names ->> 'kind' <> 'none';
	found bigint;
	example text;
	is_far boolean;				-- of what they refer to, the source has no rows
	advice text;
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT count(*), string_agg(x.example, '; ') FILTER (WHERE x.n <= 3)
		FROM (
			SELECT concat_ws(': ', {m.o#::text}, {dangling_value}) AS example,
				row_number() OVER (ORDER BY {dangling_value}) AS n
			FROM {dangling_rows}
		) AS x
	$query$, names) INTO found, example;
	IF found = 0 THEN
		RETURN 0;
	END IF;
	IF dangling = 'error' OR (dangling = 'null' AND not_null) OR (dangling = 'skip' AND NOT has_key) THEN
		EXECUTE snowflake_migrate_internal.fill('SELECT NOT EXISTS (SELECT FROM {parent_map} WHERE source = {source})',
												names) INTO is_far;
		advice := 'Declare what becomes of them, for example: SELECT snowflake_migrate.declare_reference('
			|| snowflake_migrate_internal.fill(
				$query${'table'}, {'column'}, {'parent'}, {'condition'}, {'path'}, {'then'});$query$,
				names || jsonb_build_object(
					'then', CASE WHEN NOT not_null THEN 'null' WHEN has_key THEN 'skip' ELSE 'keep' END,
					/* That of the values for which no other holds is nowhere declared. */
					'condition', (
						SELECT d.condition FROM snowflake_migrate.declared_references AS d
						WHERE d.relation = (names ->> 'oid')::oid AND d.column_name = names ->> 'column'
							AND d.condition = names ->> 'condition')))
			|| CASE WHEN is_far THEN E'\nIf an equal key is the same row in all databases: '
				|| snowflake_migrate_internal.table_declaration((names ->> 'parent')::regclass, 'same_id') ELSE '' END;
	END IF;
	PERFORM snowflake_migrate_internal.add_to_report((names ->> 'run')::bigint,
		CASE WHEN advice IS NOT NULL THEN 'error' ELSE 'warning' END,
		names ->> 'source_name', names ->> 'table', names ->> 'column',
		format('references to %s dangle', names ->> 'parent')
			|| CASE dangling
				WHEN 'null' THEN CASE WHEN not_null THEN ', and the column cannot be null' ELSE ': they become null' END
				WHEN 'keep' THEN ': they stay as they are'
				WHEN 'skip' THEN CASE WHEN has_key THEN ': their rows are skipped'
								 ELSE ', and of a table without a key no rows can be skipped' END
				ELSE '' END,
		found, example, advice);
	IF dangling = 'skip' AND has_key THEN
		RETURN snowflake_migrate_internal.skip_rows(names, names ->> 'column', names ->> 'dangling_rows');
	END IF;
	RETURN 0;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_dangling(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: references to rows that the source does not have';

/* Whether a map has an entry of a source with this action. */
CREATE FUNCTION snowflake_migrate_internal.has_action(map text, source int, action "char") RETURNS boolean
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	found boolean;
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT EXISTS (SELECT FROM {map} AS m WHERE m.source = {source} AND m.action = {'action'})
	$query$, jsonb_build_object('map', map, 'source', source, 'action', action)) INTO found;
	RETURN found;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.has_action(text, int, "char")
	IS 'for snowflake_migrate.merge()''s own use: whether a map has entries with an action';

/* Whether any table of a run leaves rows behind. */
CREATE FUNCTION snowflake_migrate_internal.leaves_rows_behind(run_ bigint) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RETURN EXISTS (SELECT FROM snowflake_migrate_internal.plan_tables AS t
				   WHERE t.run = run_ AND t.condition IS NOT NULL);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.leaves_rows_behind(bigint)
	IS 'for snowflake_migrate.merge()''s own use: whether tables of a run leave rows behind';

/* Whether rows of a run may be skipped: by a policy, or with what they refer to. */
CREATE FUNCTION snowflake_migrate_internal.skips_rows(run_ bigint) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	RETURN EXISTS (
			SELECT FROM snowflake_migrate_internal.plan_references AS r WHERE r.run = run_ AND r.dangling = 'skip')
		OR EXISTS (
			SELECT FROM snowflake_migrate.declared_policies AS p
				JOIN snowflake_migrate_internal.plan_tables AS t USING (relation)
			WHERE t.run = run_ AND p.policy = 'skip');
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.skips_rows(bigint)
	IS 'for snowflake_migrate.merge()''s own use: whether rows may be skipped';

/*
 * Rows of a query ({gone}: what follows FROM), unless they are skipped, stay behind with those that they must refer to.
 * Returns how many.
 */
CREATE FUNCTION snowflake_migrate_internal.leave_rows(names jsonb, gone text) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	done bigint;
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		UPDATE {map} AS g
		SET ({n#}, action) = ROW ({nulls}, 'b')
		FROM (SELECT DISTINCT {m.o#} FROM {gone} AND m.action NOT IN ('s', 'b')) AS x
		WHERE g.source = {source} AND ({g.o#}) = ({x.o#})
	$query$, names || jsonb_build_object('gone', gone));
	GET DIAGNOSTICS done = ROW_COUNT;
	RETURN done;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.leave_rows(jsonb, text)
	IS 'for snowflake_migrate.merge()''s own use: leaves rows behind';

/*
 * Rows that must refer by object, a column or a foreign key, to rows of parent that are skipped (action s) or stay
 * behind (b).  gone: what follows FROM in a query for them.  Returns of how many the same becomes.
 */
CREATE FUNCTION snowflake_migrate_internal.follow_gone(
	names jsonb,
	action "char",
	object text,
	parent text,
	gone text) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	found bigint;
BEGIN
	IF names ->> 'kind' <> 'none' THEN
		RETURN CASE action WHEN 's' THEN snowflake_migrate_internal.skip_rows(names, object, gone)
			ELSE snowflake_migrate_internal.leave_rows(names, gone) END;
	END IF;
	EXECUTE 'SELECT count(*) FROM ' || gone INTO found;
	IF found > 0 THEN
		PERFORM snowflake_migrate_internal.add_to_report((names ->> 'run')::bigint, 'error',
			names ->> 'source_name', names ->> 'table', object,
			format(CASE action
					WHEN 's' THEN 'rows refer to rows of %s that are skipped, and cannot be skipped themselves: '
						'their table has no key'
					ELSE 'rows refer to rows of %s that stay behind, and cannot stay behind themselves: '
						'their table has no key' END, parent),
			found, NULL,
			CASE action WHEN 's' THEN 'Choose another policy.' ELSE 'Give the table a primary key.' END);
	END IF;
	RETURN 0;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.follow_gone(jsonb, "char", text, text, text)
	IS 'for snowflake_migrate.merge()''s own use: rows that are skipped or stay behind with others';

/* The same of one reference. */
CREATE FUNCTION snowflake_migrate_internal.follow(names jsonb, action "char") RETURNS bigint
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_migrate_internal.follow_gone(names, action, names ->> 'column', names ->> 'parent',
		snowflake_migrate_internal.fill('{origin} WHERE r{id}.action = {''action''}',
			names || jsonb_build_object('action', action)))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.follow(jsonb, "char")
	IS 'for snowflake_migrate.merge()''s own use: rows that must refer to rows that are skipped or stay behind';

/*
 * A condition on rows s of a source: that they get into a partition of their table.  True where that takes a value that
 * they get only in the target: of a key that is renumbered, a reference, a default, or what a policy changes.
 */
CREATE FUNCTION snowflake_migrate_internal.in_partition(run_ bigint, no_ int, source_ int, partition oid) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH bound AS MATERIALIZED (
		SELECT k.attname AS name, p.partexprs IS NOT NULL AS is_expression, c.given,
			c.given IS NOT NULL AND c.changed_by IS NULL AND NOT c.combined
				AND NOT (t.kind = 'id' AND c.key_position IS NOT NULL)
				AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS r
								WHERE r.run = run_ AND r.no = no_ AND r.name = k.attname) AS stays
		FROM pg_partition_ancestors(partition) AS o (oid)
			JOIN pg_partitioned_table AS p ON p.partrelid = o.oid
			CROSS JOIN unnest(p.partattrs) AS n (attnum)
			CROSS JOIN snowflake_migrate_internal.planned_table(run_, no_) AS t
			LEFT JOIN pg_attribute AS k ON k.attrelid = p.partrelid AND k.attnum = n.attnum AND n.attnum > 0
			LEFT JOIN snowflake_migrate_internal.stored_columns(run_, no_, source_) AS c ON c.name = k.attname
	)
	SELECT CASE WHEN bool_and(b.stays IS TRUE AND NOT b.is_expression) THEN format('(SELECT %s FROM (SELECT %s) AS x)',
			pg_get_partition_constraintdef(partition), string_agg(DISTINCT format('%s AS %I', b.given, b.name), ', '))
		ELSE 'true' END
	FROM bound AS b
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.in_partition(bigint, int, int, oid)
	IS 'for snowflake_migrate.merge()''s own use: which rows of a source get into a partition';

/*
 * Rows that refer, by a foreign key to columns that are not renumbered, to a row that is skipped or stays behind: the
 * values of their columns do not tell.  Returns of how many the same becomes.
 */
CREATE FUNCTION snowflake_migrate_internal.follow_keys(run_ bigint, no_ int, source_ int, action "char") RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	names jsonb;
	fk record;
	gone text;
	followed bigint := 0;
BEGIN
	SELECT t.relation, t.kind, s.relation AS source_relation INTO STRICT plan
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
		WHERE t.run = run_ AND t.no = no_ AND s.source = source_;
	FOR fk IN
		/* OFFSET: each by its key, as nobody has made statistics of the plan. */
		SELECT c.conname, p.relation AS parent, snowflake_migrate_internal.relation(run_, 'map_' || p.no) AS parent_map,
			snowflake_migrate_internal.only(ps.relation) AS parent_source, p.key, k.parent_columns, q.origin,
			(SELECT string_agg(snowflake_migrate_internal.compared(k.operators[v.n], 'f.f' || v.n,
				snowflake_migrate_internal.collated(v.value, k.collations[v.n], k.parent_collations[v.n])),
				' AND ' ORDER BY v.n)
			 FROM snowflake_migrate_internal.key_values(plan.relation, plan.source_relation, k.columns) AS v) AS same,
			snowflake_migrate_internal.in_partition(run_, no_, source_, c.conrelid) AS in_child,
			snowflake_migrate_internal.source_values(p.relation, ps.relation, k.parent_columns) AS referenced,
			snowflake_migrate_internal.source_values(p.relation, ps.relation, p.key) AS key_values,
			snowflake_migrate_internal.has_columns(plan.source_relation, k.columns)
				AND coalesce(snowflake_migrate_internal.has_columns(ps.relation, k.parent_columns || p.key), false)
				AS has_all
		FROM snowflake_migrate_internal.with_partitions(plan.relation) AS o (oid)
			JOIN pg_constraint AS c ON c.conrelid = o.oid AND c.contype = 'f' AND c.conparentid = 0
			CROSS JOIN LATERAL snowflake_migrate_internal.foreign_key_columns(c.oid) AS k
			CROSS JOIN LATERAL (
				SELECT p.* FROM snowflake_migrate_internal.plan_tables AS p
				WHERE p.relation = coalesce(pg_partition_root(c.confrelid), c.confrelid)
				OFFSET 0
			) AS p
			CROSS JOIN LATERAL (
				SELECT s.relation FROM snowflake_migrate_internal.plan_sources AS s
				WHERE s.run = run_ AND s.no = p.no AND s.source = source_
				UNION ALL
				SELECT f.source_relation FROM snowflake_migrate_internal.former_tables(run_) AS f
				WHERE f.no = p.no AND f.source_no = source_
				OFFSET 0
			) AS ps
			CROSS JOIN LATERAL snowflake_migrate_internal.rows_parts(
				run_, no_, source_, plan.kind <> 'none', false) AS q
		WHERE p.run = run_ AND p.kind <> 'none'
			/* Else the id among them is a reference. */
			AND NOT (p.kind = 'id' AND p.key <@ k.parent_columns)
	LOOP
		CONTINUE WHEN NOT snowflake_migrate_internal.has_action(fk.parent_map, source_, action);
		IF NOT fk.has_all THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', r.sources[source_], plan.relation::text,
					fk.conname::text,
					format('rows of %s are skipped or stay behind, and the source lacks columns by which others '
						   'refer to them', fk.parent),
					advice => 'Give views that have these columns in the place of the source''s tables.')
				FROM snowflake_migrate.runs AS r WHERE r.run = run_;
			CONTINUE;
		END IF;
		names := coalesce(names, snowflake_migrate_internal.names(run_, no_) || jsonb_build_object(
			'source', source_,
			'source_name', (SELECT r.sources[source_] FROM snowflake_migrate.runs AS r WHERE r.run = run_)));
		gone := snowflake_migrate_internal.fill($query$
			{origin} JOIN (
					SELECT {referenced}
					FROM {parent_source} AS s JOIN {parent_map} AS f
						ON f.source = {source} AND f.action = {'action'} AND ({f.o#}) = ({key_values})
				) AS f ({parent_columns}) ON {same}
			WHERE {in_child}
		$query$, to_jsonb(fk) || jsonb_build_object('source', source_, 'action', action,
			'parent_columns', snowflake_migrate_internal.key_list('f#', fk.parent_columns)));
		followed := followed
			+ snowflake_migrate_internal.follow_gone(names, action, fk.conname::text, fk.parent::text, gone);
	END LOOP;
	RETURN followed;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.follow_keys(bigint, int, int, "char")
	IS 'for snowflake_migrate.merge()''s own use: rows that refer to rows that do not come, by other keys than ids';

/*
 * Adds to the report the conditions of references from one table of one source that hold for other rows than they
 * seem to: by the ids that are in the target, though asked_of_target() does not know them (it is an error); and by
 * those of shared rows, which it does know, but who declared the condition may have meant the source's.  The column
 * that the reference is about may be read, as nothing else tells what its values are.
 */
CREATE FUNCTION snowflake_migrate_internal.find_conditions_on_ids(run_ bigint, no_ int, source_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	source_name CONSTANT name := (SELECT r.sources[source_] FROM snowflake_migrate.runs AS r WHERE r.run = run_);
	plan record;
	names jsonb;
	r record;
BEGIN
	SELECT t.relation, t.kind, t.key, c.relname, s.relation AS source_relation INTO STRICT plan
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
			JOIN pg_class AS c ON c.oid = t.relation
		WHERE t.run = run_ AND t.no = no_ AND s.source = source_;
	names := jsonb_build_object(
		'origin', snowflake_migrate_internal.rows_origin(run_, no_, source_, plan.kind <> 'none'),
		'comes', CASE plan.kind WHEN 'none' THEN 'true' ELSE 'm.action IN (''c'', ''r'')' END,
		'row', snowflake_migrate_internal.row_text(plan.key),
		'values', (
			SELECT string_agg(format('(%L, ARRAY[%s], ARRAY[%s], ARRAY[%s], ARRAY[%s])',
									 x.name, x.holds, x.was, x.shared, x.becomes), ', ')
			FROM (
				SELECT f.name,
					string_agg('s.' || snowflake_migrate_internal.condition_column(f.id, f.condition), ', '
							   ORDER BY f.id),
					string_agg(format('(SELECT (%s) IS TRUE FROM (SELECT %s) AS %I)', f.condition, w.was, plan.relname),
							   ', ' ORDER BY f.id),
					string_agg(format('(SELECT (%s) IS TRUE FROM (SELECT %s) AS %I)', f.condition, w.shared,
									  plan.relname), ', ' ORDER BY f.id),
					string_agg(format('(SELECT (%s) IS TRUE FROM (%s) AS %I)', f.condition,
									  snowflake_migrate_internal.with_generated(plan.relation, 'SELECT ' || l.becomes),
									  plan.relname), ', ' ORDER BY f.id)
				FROM snowflake_migrate_internal.plan_references AS f
					CROSS JOIN LATERAL (
						SELECT string_agg(format('%s AS %I', CASE
								WHEN c.name = f.name THEN c.given
								WHEN plan.kind <> 'none' AND c.key_position IS NOT NULL THEN 'm.n' || c.key_position
								WHEN c.given IS NULL THEN format('CAST(NULL AS %s)', c.type)
								ELSE snowflake_migrate_internal.referring_value(
									run_, no_, source_, c.name, c.given, c.type) END, c.name), ', ')
						FROM snowflake_migrate_internal.stored_columns(run_, no_, source_) AS c
					) AS l (becomes)
					CROSS JOIN LATERAL (
						SELECT string_agg(format('s.%I', a.attname), ', '),
							/* Shared rows alone have the ids of the target. */
							string_agg(format(CASE WHEN k.id IS NULL THEN 's.%3$I'
								ELSE 'CASE WHEN r%1$s.action NOT IN (''c'', ''r'') THEN CAST(r%1$s.n1 AS %2$s) '
									'ELSE CAST(s.%3$I AS %2$s) END AS %3$I' END,
								k.id, format_type(y.base, y.base_typmod), a.attname), ', ')
						FROM snowflake_migrate_internal.columns_of(plan.source_relation) AS a
							JOIN pg_attribute AS b ON b.attrelid = plan.relation AND b.attname = a.attname
								AND b.attnum > 0 AND NOT b.attisdropped
							CROSS JOIN LATERAL snowflake_migrate_internal.base_type(b.atttypid, b.atttypmod) AS y
							LEFT JOIN LATERAL snowflake_migrate_internal.plain_reference(run_, no_, a.attname) AS k
								ON a.attname <> f.name
					) AS w (was, shared)
				WHERE f.run = run_ AND f.no = no_ AND f.condition IS NOT NULL
					AND snowflake_migrate_internal.has_columns(plan.source_relation, ARRAY[f.name])
				GROUP BY f.name
			) AS x (name, holds, was, shared, becomes)));
	IF names ->> 'values' IS NULL THEN
		RETURN;
	END IF;
	FOR r IN EXECUTE snowflake_migrate_internal.fill($query$
		SELECT x.name, count(*) FILTER (WHERE x.is_wrong) AS wrong, min(x.example) FILTER (WHERE x.is_wrong) AS example,
			count(*) AS differing, min(x.example) AS differing_example
		FROM (
			SELECT w.name, w.holds <> w.becomes OR w.holds <> w.shared, w.holds <> w.was, {row}
			FROM {origin}
				CROSS JOIN LATERAL (VALUES {values}) AS w (name, holds, was, shared, becomes)
			WHERE {comes}
		) AS x (name, is_wrong, differs, example)
		WHERE x.is_wrong OR x.differs
		GROUP BY x.name
		ORDER BY x.name
	$query$, names)
	LOOP
		IF r.wrong > 0 THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', source_name, plan.relation::text, r.name,
				'the condition of the reference reads ids that are others in the target', r.wrong, r.example,
				'Declare the reference with a condition on another column, which tells the same in each source and in '
					'the target. Where these are ids of shared rows (mode "match"), insert into the target those that '
					'only sources have, and give the condition their ids there.');
		ELSE
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', source_name, plan.relation::text, r.name,
				'the condition of the reference is asked of the ids that shared rows have in the target, '
					'which are others in the source', r.differing, r.differing_example,
				'If you meant those of the source, declare it with those of the target.');
		END IF;
	END LOOP;
EXCEPTION WHEN data_exception THEN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', source_name, plan.relation::text, NULL,
		'the conditions of references cannot be evaluated: ' || SQLERRM,
		advice => 'Declare the references with snowflake_migrate.declare_reference() again.');
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_conditions_on_ids(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: conditions that mean other rows in a source';

/*
 * The references of one table of one source that lead nowhere.  Returns how many rows are skipped, or stay behind: what
 * these refer to does not matter, so they come first.
 */
CREATE FUNCTION snowflake_migrate_internal.dangling(run_ bigint, no_ int, source_ int) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	refs CONSTANT jsonb[] := ARRAY(SELECT r FROM snowflake_migrate_internal.reference_names(run_, no_, source_) AS r);
	counts bigint[];
	names jsonb;
	skipped bigint := 0;
BEGIN
	IF snowflake_migrate_internal.leaves_rows_behind(run_) THEN
		FOREACH names IN ARRAY refs LOOP
			IF names -> 'must_refer' = 'true'
				AND snowflake_migrate_internal.has_action(names ->> 'parent_map', source_, 'b') THEN
				skipped := skipped + snowflake_migrate_internal.follow(names, 'b');
			END IF;
		END LOOP;
		skipped := skipped + snowflake_migrate_internal.follow_keys(run_, no_, source_, 'b');
	END IF;
	counts := snowflake_migrate_internal.count_dangling(refs);
	FOR n IN 1 .. cardinality(refs) LOOP
		names := refs[n];
		PERFORM snowflake_migrate_internal.check_form(names);
		IF counts[n] IS DISTINCT FROM 0 THEN
			skipped := skipped + snowflake_migrate_internal.find_dangling(names);
		END IF;
		IF names -> 'not_null' = 'true'
			AND snowflake_migrate_internal.has_action(names ->> 'parent_map', source_, 's') THEN
			skipped := skipped + snowflake_migrate_internal.follow(names, 's');
		END IF;
	END LOOP;
	RETURN skipped + snowflake_migrate_internal.follow_keys(run_, no_, source_, 's');
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.dangling(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: references to rows that are not there';
