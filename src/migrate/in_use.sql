/*
 * A target in use: its users go on while rows are copied, and only the sources are closed.
 *
 * The users may change rows that the maps were made by.  When a batch clashes with a row of theirs, or refers to one
 * that is gone, the merge rolls it back, and in the same transaction resolves the maps of all that is not copied yet
 * again, by the same policies (resolve_again()).
 * An entry that stands for a row of the target that is gone has its own key again (own_NO).  A row that refers to one
 * that was merged and deleted since becomes what is declared, or what the foreign key says (lost_NO).  What is copied
 * keeps its key.  Ranks are numbered when all is copied; which of the rows that get another one a user had changed is
 * kept (edited_NO).
 *
 * A batch waits for a lock no longer than half of deadlock_timeout, so that nobody waits longer for it than for a
 * batch, and no deadlock is found that a user's transaction would be the victim of.
 */

/*
 * The order in which the tables of a plan are copied: parents first by declared references, too, since what refers to a
 * row must not be there before it is known what becomes of that.  In a cycle of such references, rows whose keys may
 * change are one transaction.
 */
CREATE FUNCTION snowflake_migrate_internal.write_steps_in_use(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
BEGIN
	IF NOT snowflake_migrate_internal.is_in_use(run_) THEN
		RETURN;
	END IF;
	UPDATE snowflake_migrate_internal.plan_tables AS t
	SET copy_step = o.step, cyclic = o.cyclic
	FROM (
		SELECT p.no, p.cyclic OR g.together AS cyclic,
			dense_rank() OVER (ORDER BY p.map_step, CASE WHEN g.together THEN 0 ELSE p.copy_step END)::int AS step
		FROM snowflake_migrate_internal.plan_tables AS p
			CROSS JOIN LATERAL (
				SELECT bool_or(o.no <> p.no OR EXISTS (
							SELECT FROM snowflake_migrate_internal.plan_references AS r
							WHERE r.run = run_ AND r.no = p.no AND r.referenced = p.no AND r.declared))
						AND bool_or(o.mode IN ('match', 'same_id') OR EXISTS (
							SELECT FROM snowflake_migrate.declared_policies AS d
							WHERE d.relation = o.relation AND d.policy IN ('keep_target', 'keep_source', 'skip')))
				FROM snowflake_migrate_internal.plan_tables AS o
				WHERE o.run = run_ AND o.map_step = p.map_step) AS g (together)
		WHERE p.run = run_
	) AS o
	WHERE t.run = run_ AND t.no = o.no;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.write_steps_in_use(bigint)
	IS 'for snowflake_migrate.merge()''s own use: in which order a target in use is copied into';

/* What a table has besides its map, names as create_map() has them. */
CREATE FUNCTION snowflake_migrate_internal.create_maps_in_use(names jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		CREATE TABLE {own} (
			source int NOT NULL, {old_columns}, {new_columns}, again boolean NOT NULL,
			PRIMARY KEY (source, {o#}))
	$query$, names);
	EXECUTE snowflake_migrate_internal.fill($query$
		CREATE TABLE {lost} (source int NOT NULL, {old_columns}, name name, PRIMARY KEY (source, {o#}, name))
	$query$, names);
	IF EXISTS (SELECT FROM snowflake_migrate.declared_policies AS p
			   WHERE p.relation = (names ->> 'oid')::oid AND p.policy = 'rerank') THEN
		EXECUTE snowflake_migrate_internal.fill($query$
			CREATE TABLE {rank} AS
			SELECT {m.n#}, NULL::bigint AS old, NULL::bigint AS new FROM {map} AS m LIMIT 0
		$query$, names);
		EXECUTE snowflake_migrate_internal.fill(
			'CREATE TABLE {edited} ({new_columns}, PRIMARY KEY ({n#}))', names);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.create_maps_in_use(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: what a table has besides its map';

/* Raises an error where a target could not be in use meanwhile. */
CREATE FUNCTION snowflake_migrate_internal.refuse_locks(dry_run boolean, rebuild_indexes boolean) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF dry_run THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'dry_run cannot be combined with target_in_use',
			DETAIL = 'A dry run is one transaction, for whose locks the target''s users would wait until its end.',
			HINT = 'See snowflake_migrate.check(), or call it with dry_run on a copy.';
	ELSIF rebuild_indexes THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'rebuild_indexes cannot be combined with target_in_use',
			DETAIL = 'Without indexes, nothing keeps users'' rows unique, and to build them again locks tables.',
			HINT = 'Call it without rebuild_indexes, or close the target.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_locks(boolean, boolean)
	IS 'for snowflake_migrate.merge()''s own use: an error where a target could not be in use meanwhile';

/*
 * Raises an error where rows that are referred to could not be locked: a batch checks a foreign key by itself, and
 * whoever deletes such a row meanwhile must wait for it.
 */
CREATE FUNCTION snowflake_migrate_internal.refuse_unlocked(run_ bigint) RETURNS void
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	tables text[];
BEGIN
	SELECT array_agg(DISTINCT f.referenced::text ORDER BY f.referenced::text) INTO tables
		FROM snowflake_migrate_internal.foreign_keys(snowflake_migrate_internal.targets_of(run_)) AS f
			JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.relation = f.relation
			JOIN snowflake_migrate_internal.plan_sources AS s ON s.run = run_ AND s.no = t.no
		WHERE NOT has_table_privilege(f.referenced, 'UPDATE')
			AND has_parameter_privilege('session_replication_role', 'SET');
	IF tables IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = format('permission denied for table %s', tables[1]),
			DETAIL = format('With target_in_use, a merge locks rows of %s, which takes the right to update.',
							array_to_string(tables, ', ')),
			HINT = format('GRANT UPDATE ON %s TO %I;', array_to_string(tables, ', '), current_user);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_unlocked(bigint)
	IS 'for snowflake_migrate.merge()''s own use: an error where rows could not be locked';

/* Raises an error where a constraint is deferrable: a batch would not notice that two rows clash in it. */
CREATE FUNCTION snowflake_migrate_internal.refuse_deferrable(run_ bigint) RETURNS void
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	constraints text;
BEGIN
	SELECT string_agg(format('Table %s, constraint "%s".', k.conrelid::regclass, k.conname), E'\n'
					  ORDER BY t.no, k.conrelid::regclass::text, k.conname)
		INTO constraints
		FROM snowflake_migrate_internal.plan_tables AS t
			CROSS JOIN LATERAL snowflake_migrate_internal.deferrable_constraints(t.relation) AS k
		WHERE t.run = run_
			AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = t.no);
	IF constraints IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
			MESSAGE = 'cannot merge into a target in use whose unique or exclusion constraints are deferrable',
			DETAIL = constraints,
			HINT = 'Merge with the target closed, or drop the constraints and add them as NOT DEFERRABLE.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_deferrable(bigint)
	IS 'for snowflake_migrate.merge()''s own use: an error where a batch would not notice a clash';

/*
 * The rows of the target whose place a batch takes are locked, so that the former row on record is the last one; an
 * error where one is gone, or does not clash any more.
 */
CREATE FUNCTION snowflake_migrate_internal.lock_replaced(names jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	entries bigint;
	locked bigint;
	moved text;
BEGIN
	IF names ->> 'kind' = 'none' OR to_regclass(names ->> 'former') IS NULL THEN
		RETURN;
	END IF;
	EXECUTE snowflake_migrate_internal.fill(
		'SELECT count(*) FROM {map} AS m WHERE {of_map} AND m.action = ''r''', names) INTO entries;
	IF entries = 0 THEN
		RETURN;
	END IF;
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT count(*)
		FROM (
			SELECT FROM {target} AS t JOIN {map} AS m ON ({t.@}) = ({m.n#}) WHERE {of_map} AND m.action = 'r'
			FOR UPDATE OF t
		) AS x
	$query$, names) INTO locked;
	moved := snowflake_migrate_internal.moved_entries((names ->> 'run')::bigint, (names ->> 'no')::int);
	IF moved IS NOT NULL THEN
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT {locked} - count(*)
			FROM ({moved}) AS q JOIN {map} AS m ON m.source = q.source AND ({m.o#}) = ({q.o#})
			WHERE {of_map}
		$query$, names || jsonb_build_object('moved', moved, 'locked', locked)) INTO locked;
	END IF;
	IF locked < entries THEN
		RAISE EXCEPTION USING ERRCODE = 'serialization_failure',
			MESSAGE = format('rows of table %s whose place a source''s would take have changed', names ->> 'table'),
			DETAIL = format('%s rows are gone, or clash no longer.', entries - locked);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.lock_replaced(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: locks the rows that a batch replaces';

/*
 * A query for the entries (source, o1 ..) of one table that were to take the place of a row of the target, and do not
 * clash with it any more; null where that can't be.
 */
CREATE FUNCTION snowflake_migrate_internal.moved_entries(run_ bigint, no_ int) RETURNS text
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	u record;
	names jsonb;
	found text;
BEGIN
	FOR u IN SELECT x.* FROM snowflake_migrate_internal.unique_constraints(run_, no_) AS x
		WHERE x.policy = 'keep_source' LOOP
		/* The same key is the same row. */
		IF u.is_key THEN
			RETURN NULL;
		END IF;
		names := snowflake_migrate_internal.wanted_names(
			run_, no_, to_jsonb(u), snowflake_migrate_internal.rows_to_come(run_, no_));
		found := coalesce(found, snowflake_migrate_internal.fill($query$
				SELECT m.source, {m.o#} FROM {map} AS m WHERE m.action = 'r' AND {to_come}
			$query$, names || jsonb_build_object(
				'to_come', snowflake_migrate_internal.entries_to_come(run_, no_))))
			|| snowflake_migrate_internal.fill($query$
				AND NOT EXISTS (SELECT FROM {wanted} AS w JOIN {taken} AS t ON {same}
								WHERE w.source = m.source AND ({w.o#}) = ({m.o#}) AND ({t.t#}) = ({m.n#}))
			$query$, names);
	END LOOP;
	RETURN found;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.moved_entries(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: rows that have nothing to take the place of';

/*
 * Proves a batch before it is committed, while nobody can have changed its rows: after that, a row that differs may be
 * the work of a user.  Of few rows, each is looked up.
 */
CREATE FUNCTION snowflake_migrate_internal.prove_batch(batch jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
	SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
	names jsonb;
	wrong bigint;
	example text;
BEGIN
	IF batch ->> 'kind' = 'none' THEN
		RETURN;
	END IF;
	names := snowflake_migrate_internal.verify_names(
		(batch ->> 'run')::bigint, (batch ->> 'no')::int, (batch ->> 'source')::int);
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT count(*), min({m.o#::text})
		FROM {origin} LEFT JOIN {target} AS t ON ({t.@}) = ({m.n#})
		WHERE {of_map}{of_source} AND m.action IN ('c', 'r') AND (t.{"first_key"} IS NULL OR {differs})
	$query$, names || jsonb_build_object('of_map', batch ->> 'of_map', 'of_source', batch ->> 'of_source'))
		INTO wrong, example;
	IF wrong > 0 THEN
		RAISE EXCEPTION USING ERRCODE = 'data_exception',
			MESSAGE = format('rows of table %s were not stored as they should be', names ->> 'table'),
			DETAIL = format('%s rows of source %s, for example %s.', wrong, batch ->> 'source_name', example),
			HINT = 'Look for triggers that are ENABLE ALWAYS and change or leave out rows.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.prove_batch(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: proves a batch';

/*
 * Entries of one table that stand for a row of the target that is gone, or that take the place of one that they do not
 * clash with any more, have their own key again.  Those that the copying has passed are to be copied again.  Returns
 * how many.
 */
CREATE FUNCTION snowflake_migrate_internal.revert_entries(run_ bigint, no_ int) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	names jsonb := snowflake_migrate_internal.names(run_, no_)
		|| jsonb_build_object('to_come', snowflake_migrate_internal.entries_to_come(run_, no_));
	moved CONSTANT text := snowflake_migrate_internal.moved_entries(run_, no_);
	done bigint;
BEGIN
	/* A row of another source that is still to come is not gone. */
	names := names || jsonb_build_object('gone', snowflake_migrate_internal.fill($query$
		SELECT w.source, {w.o#} FROM {own} AS w JOIN {map} AS g ON g.source = w.source AND ({g.o#}) = ({w.o#})
		WHERE g.action IN ('m', 'k', 'r')
			AND NOT EXISTS (SELECT FROM {target} AS t WHERE ({t.@}) = ({g.n#}))
			AND NOT EXISTS (SELECT FROM {map} AS m WHERE m.action = 'c' AND ({m.n#}) = ({g.n#}) AND {to_come})
	$query$, names) || coalesce(' UNION ' || moved, ''));
	EXECUTE snowflake_migrate_internal.fill($query$
		WITH gone AS MATERIALIZED (
			{gone}
		),
		reverted AS (
			UPDATE {map} AS m
			SET ({n#}, action) = ROW ({w.n#}, 'c'::"char")
			FROM {own} AS w, gone AS g
			WHERE w.source = g.source AND ({w.o#}) = ({g.o#}) AND m.source = g.source AND ({m.o#}) = ({g.o#})
			RETURNING m.source, {m.o#}, NOT {to_come} AS again
		),
		forgotten AS (
			DELETE FROM snowflake_migrate.records AS r USING reverted AS m
			WHERE r.run = {run} AND r.relation = {'table'} AND r.source = ({'sources'}::name[])[m.source]
				AND r.policy IN ('keep_target', 'keep_source') AND r.old_key = {m.o#::text}
		)
		UPDATE {own} AS w SET again = true
		FROM reverted AS m
		WHERE m.again AND w.source = m.source AND ({w.o#}) = ({m.o#})
	$query$, names);
	EXECUTE snowflake_migrate_internal.fill($query$
		DELETE FROM {own} AS w USING {map} AS m
		WHERE m.source = w.source AND ({m.o#}) = ({w.o#}) AND m.action = 'c' AND NOT w.again
	$query$, names);
	GET DIAGNOSTICS done = ROW_COUNT;
	EXECUTE snowflake_migrate_internal.fill('SELECT {done} + count(*) FROM {own} AS w WHERE w.again',
		names || jsonb_build_object('done', done)) INTO done;
	RETURN done;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.revert_entries(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: entries that have their own key again';

/*
 * The foreign keys of one table, each with the names for the query for the rows of one source that are still to come
 * and refer by it to what neither is in the target nor comes (lost, with "merge o1" ..); rule: what becomes of them.  A
 * row that only stood for the source's is none that was merged: when it is gone, the source's own comes.
 */
CREATE FUNCTION snowflake_migrate_internal.lost_references(run_ bigint, no_ int, source_ int) RETURNS SETOF jsonb
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY
	WITH fk AS (
		SELECT c.oid, c.conname, c.confrelid::regclass AS parent, p.no AS parent_no,
			/* A declaration comes before what the foreign key says. */
			coalesce((
				SELECT nullif(d.dangling, 'keep') FROM snowflake_migrate.declared_references AS d
				WHERE d.relation = t.relation AND d.column_name = ANY (k.columns)
					AND d.condition IS NULL AND d.path IS NULL
				ORDER BY d.dangling DESC LIMIT 1),
				CASE c.confdeltype WHEN 'c' THEN 'skip' WHEN 'n' THEN 'null' ELSE 'error' END) AS rule,
			k.columns, k.nullable,
			/* What it has of the parent's key, where that is what it refers to. */
			(SELECT CASE WHEN count(*) = cardinality(p.key) AND count(*) = cardinality(c.conkey)
					THEN string_agg(format('t.%I', a.attname), ', ' ORDER BY array_position(p.key, b.attname)) END
			 FROM unnest(c.conkey, c.confkey) AS r (attnum, parent_attnum)
				JOIN pg_attribute AS a ON a.attrelid = c.conrelid AND a.attnum = r.attnum
				JOIN pg_attribute AS b ON b.attrelid = c.confrelid AND b.attnum = r.parent_attnum
					AND b.attname = ANY (p.key)
			 WHERE p.kind <> 'none') AS key_values,
			snowflake_migrate_internal.foreign_key_names(c.oid) AS names
		FROM snowflake_migrate_internal.plan_tables AS t
			CROSS JOIN LATERAL snowflake_migrate_internal.with_partitions(t.relation) AS o (oid)
			JOIN pg_constraint AS c ON c.conrelid = o.oid AND c.contype = 'f' AND c.conparentid = 0
			CROSS JOIN LATERAL (
				SELECT array_agg(a.attname) AS columns,
					array_agg(a.attname) FILTER (WHERE NOT a.attnotnull AND a.attname <> ALL (t.key)
						AND (c.confdelsetcols IS NULL OR a.attnum = ANY (c.confdelsetcols))) AS nullable
				FROM pg_attribute AS a WHERE a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey)) AS k
			LEFT JOIN (snowflake_migrate_internal.plan_tables AS p
					JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no))
				ON p.run = run_ AND s.source = source_
					AND p.relation = coalesce(pg_partition_root(c.confrelid), c.confrelid)
		WHERE t.run = run_ AND t.no = no_
	),
	own AS MATERIALIZED (
		SELECT snowflake_migrate_internal.names(run_, no_)
				|| jsonb_build_object('source', source_, 'source_name', r.sources[source_]) AS names,
			snowflake_migrate_internal.source_rows(run_, no_, source_, n.of_map || n.of_source) AS rows
		FROM snowflake_migrate.runs AS r, snowflake_migrate_internal.not_copied(run_, no_, source_) AS n
		WHERE r.run = run_
	)
	SELECT own.names || jsonb_build_object('label', fk.conname, 'parent', fk.parent::text, 'rule', fk.rule,
		'columns', fk.columns, 'nullable', fk.nullable,
		'orphans', snowflake_migrate_internal.fill($query$
				SELECT t.*
				FROM (SELECT * FROM ({rows}) AS {"name"} WHERE {in_child}) AS t
				WHERE {comes} AND {given_to_come} AND NOT EXISTS (SELECT FROM {parent} AS p WHERE {same})
					{and_merged}{and_not_coming}
			$query$, fk.names || own.names || jsonb_build_object(
				'rows', own.rows,
				'and_merged', CASE WHEN fk.key_values IS NULL THEN '' ELSE snowflake_migrate_internal.fill(
					' AND EXISTS (SELECT FROM {map} AS f WHERE f.action = ''c'' AND ({f.n#}) = ({key_values}))',
					snowflake_migrate_internal.names(run_, fk.parent_no)
						|| jsonb_build_object('key_values', fk.key_values)) END,
				'and_not_coming', CASE WHEN fk.parent_no IS NULL THEN '' ELSE snowflake_migrate_internal.fill(
					$q$ AND NOT EXISTS (
						SELECT FROM (SELECT * FROM ({rows}) AS {"name"} WHERE {in_parent}) AS p
						WHERE {comes} AND {same_to_come})$q$,
					fk.names || snowflake_migrate_internal.names(run_, fk.parent_no) || jsonb_build_object(
						'rows', snowflake_migrate_internal.rows_to_come(run_, fk.parent_no))) END)))
	FROM fk CROSS JOIN own
	ORDER BY fk.conname;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.lost_references(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: rows that refer to what was deleted meanwhile';

/*
 * What becomes of the rows of one table that refer by a foreign key to what was deleted since it was merged: they are
 * left out, they lose the reference, or it is an error.  Returns how many are left out.
 */
CREATE FUNCTION snowflake_migrate_internal.lose_references(run_ bigint, no_ int, source_ int) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	names jsonb;
	rule text;
	found bigint;
	example text;
	skipped bigint := 0;
BEGIN
	FOR names IN SELECT f FROM snowflake_migrate_internal.lost_references(run_, no_, source_) AS f LOOP
		EXECUTE snowflake_migrate_internal.fill(CASE names ->> 'kind'
			WHEN 'none' THEN 'SELECT count(*), NULL FROM ({orphans}) AS q'
			ELSE 'SELECT count(*), min({q."merge o#"::text}) FROM ({orphans}) AS q' END, names) INTO found, example;
		CONTINUE WHEN found = 0;
		rule := CASE WHEN names ->> 'kind' = 'none' OR names ->> 'rule' = 'null' AND names ->> 'nullable' IS NULL
			THEN 'error' ELSE names ->> 'rule' END;
		CASE rule
		WHEN 'skip' THEN
			skipped := skipped + snowflake_migrate_internal.skip_rows(names, names ->> 'label',
				snowflake_migrate_internal.fill($query$
					({orphans}) AS q JOIN {map} AS m ON m.source = {source} AND ({m.o#}) = ({q."merge o#"}) WHERE true
				$query$, names));
			/* One that would have taken the place of a row of the target's leaves it as it is. */
			EXECUTE snowflake_migrate_internal.fill($query$
				UPDATE {map} AS m SET action = 'k' FROM ({orphans}) AS q
				WHERE m.source = {source} AND ({m.o#}) = ({q."merge o#"}) AND m.action = 'r'
			$query$, names);
		WHEN 'null' THEN
			EXECUTE snowflake_migrate_internal.fill($query$
				INSERT INTO {lost} SELECT {source}, {q."merge o#"}, c.name
				FROM ({orphans}) AS q, jsonb_array_elements_text({'nullable'}::jsonb) AS c (name)
				ON CONFLICT DO NOTHING
			$query$, names);
			UPDATE snowflake_migrate_internal.plan_columns AS c SET is_lost = true
				WHERE c.run = run_ AND c.no = no_ AND names -> 'nullable' ? c.name::text;
		ELSE
			NULL;
		END CASE;
		PERFORM snowflake_migrate_internal.add_to_report(run_, CASE rule WHEN 'error' THEN 'error' ELSE 'warning' END,
			names ->> 'source_name', names ->> 'table', names ->> 'label',
			format('rows refer to rows of %s that were deleted meanwhile', names ->> 'parent')
				|| CASE rule WHEN 'skip' THEN ': they are skipped' WHEN 'null' THEN ': they lose the reference'
					ELSE '' END,
			found, example,
			CASE rule WHEN 'error' THEN format('Put these rows back, or declare what becomes of what refers to them, '
				'for example: SELECT snowflake_migrate.declare_reference(%L, %L, %L, dangling => ''skip'');',
				names ->> 'table', names -> 'columns' ->> 0, names ->> 'parent') END);
	END LOOP;
	RETURN skipped;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.lose_references(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: what becomes of rows that refer to what was deleted meanwhile';

/*
 * A policy as a run can follow it that goes on: one that was declared since may need what the run has not made ready.
 */
CREATE FUNCTION snowflake_migrate_internal.policy_in_use(run_ bigint, no_ int, constraint_ jsonb) RETURNS jsonb
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT constraint_ || CASE
		WHEN constraint_ ->> 'policy' = 'keep_source'
				AND to_regclass(snowflake_migrate_internal.relation(run_, 'former_' || no_)) IS NULL
			OR constraint_ ->> 'policy' IN ('suffix', 'next_free')
				AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_columns AS c
								WHERE c.run = run_ AND c.no = no_ AND c.name = constraint_ ->> 'changed'
									AND c.changed_by = constraint_ ->> 'policy')
		THEN '{"policy": "error"}' ELSE '{}' END::jsonb
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.policy_in_use(bigint, int, jsonb)
	IS 'for snowflake_migrate.merge()''s own use: a policy as a run can follow it that goes on';

/*
 * What clashes and dangles in one table of what is still to come, once.  Returns whether anything changed, and whether
 * keys did, which others refer to.
 */
CREATE FUNCTION snowflake_migrate_internal.pass_again(run_ bigint, no_ int, OUT changed boolean, OUT moved boolean)
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	s record;
	u jsonb;
	done bigint := 0;
	skipped bigint := 0;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	moved := plan.kind = 'key' AND snowflake_migrate_internal.refresh_map(run_, no_);
	FOR s IN SELECT p.source FROM snowflake_migrate_internal.plan_sources AS p
		WHERE p.run = run_ AND p.no = no_ ORDER BY p.source
	LOOP
		skipped := skipped + snowflake_migrate_internal.lose_references(run_, no_, s.source)
			+ snowflake_migrate_internal.follow_keys(run_, no_, s.source, 's');
		SELECT skipped + coalesce(sum(snowflake_migrate_internal.follow(r.names, 's')), 0) INTO skipped
			FROM snowflake_migrate_internal.reference_names(run_, no_, s.source) AS r (names)
			WHERE r.names -> 'not_null' = 'true'
				AND snowflake_migrate_internal.has_action(r.names ->> 'parent_map', s.source, 's');
	END LOOP;
	IF plan.kind = 'none' THEN
		PERFORM snowflake_migrate_internal.find_keyless_clashes(
			run_, no_, snowflake_migrate_internal.rows_to_come(run_, no_));
		changed := false;
		RETURN;
	END IF;
	moved := moved OR skipped > 0;
	changed := moved;
	FOR u IN SELECT snowflake_migrate_internal.policy_in_use(run_, no_, to_jsonb(x))
		FROM snowflake_migrate_internal.unique_constraints(run_, no_) AS x WHERE x.policy <> 'rerank'
	LOOP
		IF plan.kind = 'id' AND u -> 'expressions' ? snowflake_migrate_internal.column_expression(plan.key[1]) THEN
			PERFORM snowflake_migrate_internal.find_equal_ids(
				snowflake_migrate_internal.names(run_, no_), (u ->> 'label')::name);
			CONTINUE;
		END IF;
		done := snowflake_migrate_internal.resolve(run_, no_, u, snowflake_migrate_internal.rows_to_come(run_, no_));
		changed := changed OR done > 0;
		moved := moved OR done > 0 AND u ->> 'policy' NOT IN ('suffix', 'next_free');
		IF done > 0 AND u ->> 'policy' = 'match' THEN
			PERFORM snowflake_migrate_internal.report_matched(run_, no_, p.source,
					snowflake_migrate_internal.fill($query$
						EXISTS (SELECT FROM pg_temp.snowflake_merge_clash AS c
								WHERE c.source = m.source AND ({c.o#}) = ({m.o#}))
					$query$, snowflake_migrate_internal.names(run_, no_)))
				FROM snowflake_migrate_internal.plan_sources AS p WHERE p.run = run_ AND p.no = no_;
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.pass_again(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: what clashes in a table of what is still to come';

/* Whether a table refers to any of others. */
CREATE FUNCTION snowflake_migrate_internal.refers_to(run_ bigint, no_ int, others int[]) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS r
				   WHERE r.run = run_ AND r.no = no_ AND r.referenced = ANY (others))
		OR EXISTS (
			SELECT
			FROM snowflake_migrate_internal.plan_tables AS t
				CROSS JOIN LATERAL snowflake_migrate_internal.with_partitions(t.relation) AS o (oid)
				JOIN pg_constraint AS c ON c.conrelid = o.oid AND c.contype = 'f'
				JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.no = ANY (others)
					AND p.relation = coalesce(pg_partition_root(c.confrelid), c.confrelid)
			WHERE t.run = run_ AND t.no = no_)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refers_to(bigint, int, int[])
	IS 'for snowflake_migrate.merge()''s own use: whether a table refers to others';

/* Adds to the report keys of one table, made of others' keys, that two rows have: no policy has told them apart. */
CREATE FUNCTION snowflake_migrate_internal.find_equal_keys(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	names CONSTANT jsonb := snowflake_migrate_internal.names(run_, no_);
	found bigint;
	example text;
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT count(*), min({m.n#::text})
		FROM (SELECT {m.n#} FROM {map} AS m WHERE m.action = 'c' GROUP BY {m.n#} HAVING count(*) > 1) AS m
	$query$, names) INTO found, example;
	PERFORM snowflake_migrate_internal.add_to_report(
			run_, 'error', NULL, names ->> 'table', NULL, 'several rows have the same key', found, example)
		WHERE found > 0;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_equal_keys(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: keys that two rows have';

/* Puts on record what became of the rows of one table that were resolved again. */
CREATE FUNCTION snowflake_migrate_internal.finish_again(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	plan record;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	IF plan.kind <> 'none' THEN
		DELETE FROM snowflake_migrate.records AS r
			WHERE r.run = run_ AND r.relation = plan.relation::text AND r.policy IN ('suffix', 'next_free', 'renumber');
		DELETE FROM snowflake_migrate.report AS f
			WHERE f.run = run_ AND f.relation = plan.relation::text AND f.is_question AND f.object IS NULL;
		PERFORM snowflake_migrate_internal.ask_about_lost_rows(run_, no_);
		PERFORM snowflake_migrate_internal.record_policies(run_, no_)
			WHERE EXISTS (SELECT FROM snowflake_migrate.declared_policies AS p WHERE p.relation = plan.relation);
	END IF;
	PERFORM snowflake_migrate_internal.find_equal_keys(run_, no_) WHERE plan.kind = 'key';
	PERFORM snowflake_migrate_internal.find_violations(
		run_, no_, snowflake_migrate_internal.rows_to_come(run_, no_));
	DELETE FROM snowflake_migrate.report AS f
		WHERE f.run = run_ AND f.relation = plan.relation::text AND f.severity = 'info'
			AND EXISTS (SELECT FROM snowflake_migrate.declared_policies AS p
						WHERE p.relation = plan.relation AND p.constraint_name = f.object);
	PERFORM snowflake_migrate_internal.report_policies(run_, no_);
	PERFORM snowflake_migrate_internal.count_rows(run_, no_, s.source)
		FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.finish_again(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: puts on record what was resolved again';

/*
 * Resolves again what is not copied yet of the tables whose batch has failed, of those whose entries stood for rows
 * that are gone, and of what refers to any whose keys change.  Returns the tables that were looked at, and whether
 * anything changed.
 */
CREATE FUNCTION snowflake_migrate_internal.resolve_tables(
	run_ bigint,
	failed int[],
	OUT tables int[],
	OUT changed boolean)
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	step record;
	no_ int;
	pass record;
	moved int[];
	again boolean;
BEGIN
	SELECT coalesce(array_agg(t.no) FILTER (WHERE snowflake_migrate_internal.revert_entries(run_, t.no) > 0), '{}')
		INTO moved
		FROM snowflake_migrate_internal.plan_tables AS t
		WHERE t.run = run_ AND t.kind <> 'none'
			AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = t.no);
	changed := moved <> '{}';
	tables := failed || moved;
	FOR step IN
		SELECT t.map_step, array_agg(t.no ORDER BY t.no) AS tables FROM snowflake_migrate_internal.plan_tables AS t
		WHERE t.run = run_ AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s
									   WHERE s.run = run_ AND s.no = t.no AND (NOT s.done OR t.no = ANY (moved)))
		GROUP BY t.map_step ORDER BY t.map_step
	LOOP
		/* What still clashes after so many fails again when it is copied, where tries are counted. */
		FOR n IN 1 .. 100 LOOP
			again := false;
			/* Of what stands in the way, only what the last pass finds counts. */
			DELETE FROM snowflake_migrate.report AS f USING snowflake_migrate_internal.plan_tables AS t
				WHERE t.run = run_ AND t.no = ANY (step.tables) AND f.run = run_ AND f.relation = t.relation::text
					AND f.severity = 'error';
			FOREACH no_ IN ARRAY step.tables LOOP
				CONTINUE WHEN no_ <> ALL (tables) AND NOT snowflake_migrate_internal.refers_to(run_, no_, moved);
				tables := CASE WHEN no_ = ANY (tables) THEN tables ELSE tables || no_ END;
				pass := snowflake_migrate_internal.pass_again(run_, no_);
				moved := CASE WHEN pass.moved AND no_ <> ALL (moved) THEN moved || no_ ELSE moved END;
				again := again OR pass.changed;
			END LOOP;
			EXIT WHEN NOT again;
			changed := true;
		END LOOP;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.resolve_tables(bigint, int[])
	IS 'for snowflake_migrate.merge()''s own use: resolves again what tables have that is not copied yet';

/* Copies the rows again whose entries have their own key again, behind what is copied. */
CREATE FUNCTION snowflake_migrate_internal.copy_again(run_ bigint, tables int[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	t record;
	names jsonb;
	sources int[];
	source int;
BEGIN
	FOR t IN SELECT p.* FROM snowflake_migrate_internal.plan_tables AS p
		WHERE p.run = run_ AND p.no = ANY (tables) AND p.kind <> 'none' ORDER BY p.copy_step, p.no
	LOOP
		names := snowflake_migrate_internal.names(run_, t.no);
		EXECUTE snowflake_migrate_internal.fill(
			'SELECT array_agg(DISTINCT w.source) FROM {own} AS w WHERE w.again', names) INTO sources;
		CONTINUE WHEN sources IS NULL;
		FOREACH source IN ARRAY sources LOOP
			PERFORM snowflake_migrate_internal.copy(run_, t.no, source, again => true);
		END LOOP;
		EXECUTE snowflake_migrate_internal.fill($query$
			DELETE FROM {own} AS w USING {map} AS m
			WHERE w.again AND m.source = w.source AND ({m.o#}) = ({w.o#}) AND m.action = 'c'
		$query$, names);
		EXECUTE snowflake_migrate_internal.fill('UPDATE {own} AS w SET again = false WHERE w.again', names);
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.copy_again(bigint, int[])
	IS 'for snowflake_migrate.merge()''s own use: copies rows again whose entries have their own key again';

/* Raises an error where the maps can't be resolved by the policies. */
CREATE FUNCTION snowflake_migrate_internal.refuse_again(run_ bigint) RETURNS void
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	problems text;
BEGIN
	SELECT string_agg(concat_ws(': ', snowflake_migrate_internal.problem_text(f), f.advice),
					  E'\n' ORDER BY f.relation, f.source, f.object)
		INTO problems
		FROM snowflake_migrate.report AS f JOIN snowflake_migrate.runs AS r USING (run)
		/* About columns, all questions were answered before the first row. */
		WHERE f.run = run_ AND (f.severity = 'error' OR f.is_question AND f.object IS NULL AND NOT r.accept_warnings);
	IF problems IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('merge %s cannot go on: the target changed, and no policy says what becomes of it', run_),
			DETAIL = problems,
			HINT = 'Do what it says, and call snowflake_migrate.merge() again: it goes on where it is.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_again(bigint)
	IS 'for snowflake_migrate.merge()''s own use: an error where no policy says what becomes of a clash';

/* Resolves the maps again after a batch has failed.  Returns whether anything changed. */
CREATE FUNCTION snowflake_migrate_internal.resolve_again(run_ bigint, failed int[]) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	resolved record;
BEGIN
	PERFORM snowflake_migrate_internal.allow_memory();
	/* They may have been declared since. */
	PERFORM snowflake_migrate_internal.refuse_rules_in_use(run_);
	resolved := snowflake_migrate_internal.resolve_tables(run_, failed);
	PERFORM snowflake_migrate_internal.finish_again(run_, t.no)
		FROM (SELECT DISTINCT u.no FROM unnest(resolved.tables) AS u (no) ORDER BY u.no) AS t;
	PERFORM snowflake_migrate_internal.refuse_again(run_);
	PERFORM snowflake_migrate_internal.copy_again(run_, resolved.tables);
	RETURN resolved.changed;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.resolve_again(bigint, int[])
	IS 'for snowflake_migrate.merge()''s own use: resolves the maps again';

/*
 * Ranks that are to come are put behind all others, and are numbered anew when everything is copied (number_ranks()):
 * those that have none yet, and those that a user has taken meanwhile.
 */
CREATE FUNCTION snowflake_migrate_internal.place_ranks(run_ bigint, no_ int, constraint_ jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	names jsonb := snowflake_migrate_internal.wanted_names(
		run_, no_, constraint_, snowflake_migrate_internal.rows_to_come(run_, no_));
BEGIN
	/* Users go on to number theirs: a distance, as far as the type has room. */
	names := names || jsonb_build_object('last', (
		SELECT CASE a.atttypid WHEN 'smallint'::regtype THEN 32767 WHEN 'integer'::regtype THEN 2147483647
			ELSE 9223372036854775807 END
		FROM pg_attribute AS a WHERE a.attrelid = (names ->> 'oid')::oid AND a.attname = names ->> 'changed'));
	FOR try IN 1 .. 2 LOOP
		BEGIN
			EXECUTE snowflake_migrate_internal.fill($query$
				WITH r AS MATERIALIZED (
					SELECT r.*, count(*) OVER () AS "merge rows",
						row_number() OVER (ORDER BY "merge source", {"changed"}) AS "merge place"
					FROM ({become}) AS r
					WHERE {comes} AND {"changed"} IS NOT NULL
						AND (EXISTS (SELECT FROM {clashing}) OR NOT EXISTS (
							SELECT FROM {change} AS v
							WHERE v."merge source" = r."merge source" AND ({v."merge o#"}) = ({r."merge o#"})
								AND v.{"changed"} IS NOT NULL))
				),
				base AS (
					SELECT greatest((SELECT max({"changed"}) FROM {target}), (SELECT max({"changed"}) FROM {change}),
									(SELECT max({"changed"}) FROM r), 0) AS last
				)
				INSERT INTO {change} AS v ("merge source", {"merge o#"}, "merge tries", {"changed"}, {"old_changed"})
				SELECT r."merge source", {r."merge o#"}, 0,
					b.last + least(1000000, greatest(({last} - b.last - r."merge rows") / 2, 0)) + r."merge place",
					r.{"changed"}::text
				FROM r, base AS b
				ON CONFLICT ("merge source", {"merge o#"}) DO UPDATE
					SET {"changed"} = excluded.{"changed"},
						{"old_changed"} = coalesce(v.{"old_changed"}, excluded.{"old_changed"})
			$query$, names || jsonb_build_object('clashing',
				CASE try WHEN 1 THEN '(SELECT WHERE false) AS x' ELSE '(SELECT) AS x' END));
		EXCEPTION WHEN numeric_value_out_of_range THEN
			RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
				MESSAGE = format('column "%s" of table %s has no room for ranks until they are numbered anew',
								 names ->> 'changed', names ->> 'table'),
				DETAIL = format('They come after all that the target has: %s.', SQLERRM),
				HINT = 'Assign smaller values to the rows with the greatest ones, or merge while the target is closed.';
		END;
		EXIT WHEN try = 2 OR snowflake_migrate_internal.find_clashes(names) = 0;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.place_ranks(bigint, int, jsonb)
	IS 'for snowflake_migrate.merge()''s own use: ranks until they are numbered anew';

/*
 * Numbers the ranks of one table anew over all of its rows, users' among them, under a lock that keeps others from
 * writing to it: those of the run by the ranks that they had in their source, where the policy's expression does not
 * tell them apart, and after the target's.
 */
CREATE FUNCTION snowflake_migrate_internal.number_ranks(run_ bigint, no_ int, constraint_ jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	names jsonb := snowflake_migrate_internal.constraint_names(run_, no_, constraint_);
BEGIN
	PERFORM snowflake_migrate_internal.refuse_declared((names ->> 'declared_by')::name,
		(names ->> 'oid')::oid::regclass, names ->> 'label');
	names := names || jsonb_build_object(
		'partition', coalesce('PARTITION BY ' || snowflake_migrate_internal.ladder(names), ''));
	EXECUTE snowflake_migrate_internal.fill('LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE', names);
	IF to_regclass('pg_temp.snowflake_merge_rank') IS NOT NULL THEN
		DROP TABLE pg_temp.snowflake_merge_rank;
	END IF;
	EXECUTE snowflake_migrate_internal.fill($query$
		CREATE TEMPORARY TABLE snowflake_merge_rank ON COMMIT DROP AS
		SELECT "merge source" AS source, "merge action" AS action, {"merge o#" AS o#}, {@ AS n#},
			{"changed"}::bigint AS old, "merge rank" AS former,
			row_number() OVER ({partition} ORDER BY {argument}, coalesce("merge source", 0), "merge rank") AS new,
			count("merge source") OVER ({partition}) AS coming
		FROM (
			SELECT t.*, m.source AS "merge source", m.action AS "merge action", {m.o# AS "merge o#"},
				coalesce(v.{"old_changed"}::bigint, t.{"changed"}) AS "merge rank"
			FROM {target} AS t
				LEFT JOIN {map} AS m ON m.action IN ('c', 'r') AND ({m.n#}) = ({t.@})
				LEFT JOIN {change} AS v ON v."merge source" = m.source AND ({v."merge o#"}) = ({m.o#})
		) AS {"name"}
		WHERE {"changed"} IS NOT NULL AND ({indexed})
	$query$, names);
	/* As in policy_rerank(). */
	DELETE FROM pg_temp.snowflake_merge_rank AS r WHERE r.coming = 0;
	PERFORM snowflake_migrate_internal.record_ranks_in_use(names);
	/* Who has the right one keeps it, untouched. */
	DELETE FROM pg_temp.snowflake_merge_rank AS r WHERE r.old = r.new;
	/* The rank will be written by the run, the rest of such a row stays a user's. */
	EXECUTE snowflake_migrate_internal.fill($query$
		INSERT INTO {edited}
		SELECT {r.n#}
		FROM pg_temp.snowflake_merge_rank AS r JOIN {target} AS t ON ({t.@}) = ({r.n#})
		WHERE r.action IN ('c', 'r') AND NOT {as_left}
	$query$, names || jsonb_build_object('as_left', snowflake_migrate_internal.as_left(run_, no_)));
	PERFORM snowflake_migrate_internal.apply_ranks(run_, no_, false, 'pg_temp.snowflake_merge_rank');
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.number_ranks(bigint, int, jsonb)
	IS 'for snowflake_migrate.merge()''s own use: numbers ranks anew when everything is copied';

/* Keeps which ranks change: those of the target's rows to be put back, the others to be proved, and all for people. */
CREATE FUNCTION snowflake_migrate_internal.record_ranks_in_use(names jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
BEGIN
	IF to_regclass(names ->> 'former') IS NULL THEN
		EXECUTE snowflake_migrate_internal.fill($query$
			INSERT INTO {rank}
			SELECT {r.n#}, r.old, r.new FROM pg_temp.snowflake_merge_rank AS r
			WHERE r.source IS NULL AND r.old IS DISTINCT FROM r.new
		$query$, names);
	ELSE
		/* A row that took a source's values comes back with the others' ranks as they are then. */
		EXECUTE snowflake_migrate_internal.fill($query$
			INSERT INTO {rank}
			SELECT {r.n#}, coalesce(f.{"changed"}, r.old), r.new
			FROM pg_temp.snowflake_merge_rank AS r LEFT JOIN {former} AS f ON r.action = 'r' AND ({f.@}) = ({r.n#})
			WHERE r.source IS NULL AND r.old IS DISTINCT FROM r.new
				OR r.action = 'r' AND f.{"changed"} IS DISTINCT FROM r.new
			UNION ALL
			/* Also where it has none now. */
			SELECT {f.@}, f.{"changed"}, t.{"changed"}
			FROM {former} AS f JOIN {target} AS t ON ({t.@}) = ({f.@})
			WHERE f.{"changed"} IS DISTINCT FROM t.{"changed"}
				AND NOT EXISTS (SELECT FROM pg_temp.snowflake_merge_rank AS r WHERE ({r.n#}) = ({f.@}))
		$query$, names);
		EXECUTE snowflake_migrate_internal.fill($query$
			UPDATE {former} AS f SET {"changed"} = r.new FROM {rank} AS r WHERE ({r.n#}) = ({f.@})
		$query$, names);
	END IF;
	EXECUTE snowflake_migrate_internal.fill($query$
		UPDATE {change} AS v SET {"changed"} = r.new
		FROM pg_temp.snowflake_merge_rank AS r WHERE v."merge source" = r.source AND ({v."merge o#"}) = ({r.o#})
	$query$, names);
	EXECUTE snowflake_migrate_internal.fill($query$
		INSERT INTO snowflake_migrate.records
			(run, source, relation, constraint_name, policy, old_key, new_key, column_name, old_value, new_value)
		SELECT {run}, ({'sources'}::name[])[r.source], {'table'}, {'label'}, 'rerank',
			CASE WHEN r.source > 0 THEN {r.o#::text} END, {r.n#::text}, {'changed'}, r.former, r.new
		FROM pg_temp.snowflake_merge_rank AS r
		WHERE r.former IS DISTINCT FROM r.new
	$query$, names);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.record_ranks_in_use(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: keeps the ranks that change';

/* Numbers the ranks of the next table whose ranks are not numbered.  Returns false where there is none. */
CREATE FUNCTION snowflake_migrate_internal.rank_step(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	next record;
BEGIN
	SELECT t.no, to_jsonb(u) AS constraint_, (
			SELECT min(s.source) FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = t.no
		) AS source
		INTO next
		FROM snowflake_migrate_internal.plan_tables AS t,
			LATERAL (SELECT x.* FROM snowflake_migrate_internal.unique_constraints(run_, t.no) AS x
					 WHERE x.policy = 'rerank' LIMIT 1) AS u
		WHERE t.run = run_ AND NOT t.is_ranked AND t.kind <> 'none'
			AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = t.no)
			AND to_regclass(snowflake_migrate_internal.relation(run_, 'rank_' || t.no)) IS NOT NULL
		ORDER BY t.no
		LIMIT 1;
	IF NOT FOUND THEN
		RETURN false;
	END IF;
	PERFORM snowflake_migrate_internal.number_ranks(run_, next.no, next.constraint_);
	PERFORM snowflake_migrate_internal.report_policies(run_, next.no);
	UPDATE snowflake_migrate_internal.plan_tables AS t SET is_ranked = true WHERE t.run = run_ AND t.no = next.no;
	/* As record_transaction() wants it: written in this transaction. */
	UPDATE snowflake_migrate_internal.plan_sources AS s SET failures = 0
		WHERE s.run = run_ AND s.no = next.no AND s.source = next.source;
	PERFORM snowflake_migrate_internal.record_transaction(run_, next.no, next.source);
	RETURN true;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.rank_step(bigint)
	IS 'for snowflake_migrate.merge()''s own use: numbers the ranks of a table';

/*
 * What follows a batch that has failed: it is tried again, smaller.  One that waited for a lock in vain is tried until
 * it gets it; one that clashed, until the maps were resolved so often that nothing else can be expected.
 */
CREATE FUNCTION snowflake_migrate_internal.note_failure(
	run_ bigint,
	failed int[],
	clash jsonb,
	changed boolean) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	tries int;
BEGIN
	/* One that nothing can be resolved of may have been about rows that are gone by now; a few times. */
	UPDATE snowflake_migrate_internal.plan_sources AS s
		SET batch_rows = greatest(coalesce(s.batch_rows, r.batch_size) / 2, 1),
			failures = s.failures + CASE WHEN changed IS NULL THEN 0 WHEN changed THEN 1 ELSE 10 END
		FROM snowflake_migrate.runs AS r
		WHERE s.run = run_ AND s.no = ANY (failed) AND NOT s.done AND r.run = run_;
	SELECT max(s.failures) INTO tries FROM snowflake_migrate_internal.plan_sources AS s
		WHERE s.run = run_ AND s.no = ANY (failed);
	IF changed IS NULL THEN
		PERFORM pg_sleep(0.02);
	ELSIF tries >= 50 THEN
		RAISE EXCEPTION USING ERRCODE = clash ->> 'code',
			MESSAGE = format('merge %s cannot go on: %s', run_, clash ->> 'message'),
			DETAIL = clash ->> 'detail',
			HINT = 'Its maps were resolved again, and the batch still failed. Look at what the target''s users write, '
				'and call snowflake_migrate.merge() again: it goes on where it is.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.note_failure(bigint, int[], jsonb, boolean)
	IS 'for snowflake_migrate.merge()''s own use: what follows a batch that has failed';

/* The tables of the next batch: one, or those of a cycle. */
CREATE FUNCTION snowflake_migrate_internal.next_tables(run_ bigint) RETURNS int[]
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT CASE WHEN n.cyclic
			THEN ARRAY(SELECT t.no FROM snowflake_migrate_internal.plan_tables AS t
					   WHERE t.run = run_ AND t.copy_step = n.copy_step
						AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s
									WHERE s.run = run_ AND s.no = t.no)
					   ORDER BY t.no)
			ELSE ARRAY[n.no] END
	FROM (
		SELECT s.no, t.copy_step, t.cyclic
		FROM snowflake_migrate_internal.plan_sources AS s
			CROSS JOIN LATERAL snowflake_migrate_internal.planned_table(run_, s.no) AS t
		WHERE s.run = run_ AND NOT s.done
		ORDER BY t.copy_step, s.source, s.no
		LIMIT 1
	) AS n
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.next_tables(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the tables of the next batch';

/*
 * One transaction of the copying into a target in use: a batch, and where that fails, what to do about it; at the end,
 * ranks.  Returns false when there is nothing left.
 */
CREATE FUNCTION snowflake_migrate_internal.step_in_use(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	next CONSTANT int[] := snowflake_migrate_internal.next_tables(run_);
	own_limit CONSTANT int := (SELECT s.setting::int FROM pg_settings AS s WHERE s.name = 'lock_timeout');
	waits boolean := false;
	clash jsonb;
	code text;
	message text;
	detail text;
	changed boolean;
BEGIN
	/* Less than a millisecond would be none: 0 is no limit. */
	PERFORM set_config('lock_timeout', least(nullif(own_limit, 0), greatest(1, s.setting::int / 2))::text, true)
		FROM pg_settings AS s WHERE s.name = 'deadlock_timeout';
	BEGIN
		RETURN CASE WHEN next IS NULL THEN snowflake_migrate_internal.rank_step(run_)
			ELSE snowflake_migrate_internal.step(run_) END;
	EXCEPTION
		WHEN lock_not_available OR deadlock_detected THEN
			waits := true;
			/* Whose lock it is, or that a source's server says so. */
			IF snowflake_migrate_internal.is_time_to_tell() THEN
				RAISE NOTICE 'merge % tries its batch again: %', run_, SQLERRM;
			END IF;
		WHEN unique_violation OR foreign_key_violation OR exclusion_violation OR serialization_failure THEN
			/* Of ranks, there is nothing to resolve. */
			IF next IS NULL THEN
				RAISE;
			END IF;
			GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
			clash := jsonb_build_object('code', code, 'message', message, 'detail', detail);
	END;
	IF NOT waits AND next IS NOT NULL THEN
		BEGIN
			changed := snowflake_migrate_internal.resolve_again(run_, next);
		EXCEPTION
			WHEN lock_not_available OR deadlock_detected THEN
				NULL;
			WHEN unique_violation OR foreign_key_violation OR exclusion_violation OR serialization_failure THEN
				changed := true;
		END;
	END IF;
	PERFORM snowflake_migrate_internal.note_failure(run_, coalesce(next, '{}'), clash, changed);
	RETURN true;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.step_in_use(bigint)
	IS 'for snowflake_migrate.merge()''s own use: one transaction of the copying into a target in use';

/* One transaction of the copying, into whatever target.  Returns false when there is nothing left. */
CREATE FUNCTION snowflake_migrate_internal.next_step(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF snowflake_migrate_internal.is_in_use(run_) THEN
		RETURN snowflake_migrate_internal.step_in_use(run_);
	END IF;
	RETURN snowflake_migrate_internal.step(run_);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.next_step(bigint)
	IS 'for snowflake_migrate.merge()''s own use: one transaction of the copying';
