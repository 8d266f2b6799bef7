/*
 * Indexes that are dropped before the rows are copied, and built again after them (rebuild_indexes => true): those of
 * tables that grow by more than a third.
 *
 * Which these are is decided when the maps are made (write_indexes), and put on record in plan_indexes.  Each goes
 * through these states:
 *
 *     planned   it is there
 *     kept      it stays, since it is no longer as it was when that was decided
 *     dropped   its definition is on record, in the transaction that dropped it
 *     built     its rows are in it; what else it had is not
 *     there     it is as it was
 *
 * One that can't be built holds up no other: what PostgreSQL says is put on record (problem), the others are built, and
 * then the call ends with an error that names it.  The next call tries again.
 *
 * While indexes are gone, a view in the schema of the run's maps has the statements that bring them back, and keeps the
 * extension, whose table it reads, from being dropped (hold_extension).
 *
 * An index of a partitioned table has a row for each partition's index that is attached to it, and root is the id of
 * the one over all of them.  They are built one by one, and attached.
 *
 * Locking: dropping takes ACCESS EXCLUSIVE on the table, building SHARE, making an index a constraint again ACCESS
 * EXCLUSIVE, for a moment.
 */

/* All that an index has, but its rows. */
CREATE FUNCTION snowflake_migrate_internal.index_state(index_ oid) RETURNS jsonb
LANGUAGE sql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off
AS $$
	SELECT jsonb_strip_nulls(jsonb_build_object(
		'definition', pg_get_indexdef(i.indexrelid),
		'is_valid', i.indisvalid AND i.indisready,
		'is_clustered', nullif(i.indisclustered, false),
		'tablespace', (SELECT s.spcname FROM pg_tablespace AS s WHERE s.oid = c.reltablespace),
		'attached_to', (SELECT h.inhparent::regclass::text FROM pg_inherits AS h WHERE h.inhrelid = c.oid),
		'statistics', (
			SELECT jsonb_object_agg(a.attnum, a.attstattarget)
			FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attstattarget >= 0),
		'comment', obj_description(c.oid, 'pg_class'),
		'constraint', quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid),
		'constraint_comment', obj_description(k.oid, 'pg_constraint')))
	FROM pg_index AS i
		JOIN pg_class AS c ON c.oid = i.indexrelid
		LEFT JOIN pg_constraint AS k ON k.conindid = c.oid AND k.conrelid = i.indrelid AND k.contype IN ('p', 'u', 'x')
	WHERE i.indexrelid = index_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.index_state(oid)
	IS 'for snowflake_migrate.merge()''s own use: all that an index has';

/*
 * What builds an index again, in its tablespace: the definition, which takes as long as there are rows; and the
 * statements that give it what else it had.
 */
CREATE FUNCTION snowflake_migrate_internal.index_definition(
	index_ oid,
	OUT definition text,
	OUT statements text[])
LANGUAGE sql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET jit = off
AS $$
	SELECT CASE WHEN c.relkind = 'I' AND k.oid IS NOT NULL
			THEN format('ALTER TABLE ONLY %s ADD CONSTRAINT %I %s', t.name, k.conname, pg_get_constraintdef(k.oid))
			ELSE pg_get_indexdef(c.oid) END,
		array_remove(ARRAY[
			CASE WHEN c.relkind = 'i' AND k.oid IS NOT NULL
				THEN format('ALTER TABLE %s ADD CONSTRAINT %I UNIQUE USING INDEX %I', t.name, k.conname, c.relname)
					|| CASE WHEN k.condeferrable THEN ' DEFERRABLE' ELSE '' END
					|| CASE WHEN k.condeferred THEN ' INITIALLY DEFERRED' ELSE '' END END,
			(SELECT format('ALTER INDEX %s ATTACH PARTITION %s', h.inhparent::regclass, t.index)
			 FROM pg_inherits AS h WHERE h.inhrelid = c.oid),
			CASE WHEN i.indisclustered THEN format('ALTER TABLE %s CLUSTER ON %I', t.name, c.relname) END,
			'COMMENT ON INDEX ' || t.index || ' IS ' || quote_literal(obj_description(c.oid, 'pg_class')),
			'COMMENT ON CONSTRAINT ' || quote_ident(k.conname) || ' ON ' || t.name || ' IS '
				|| quote_literal(obj_description(k.oid, 'pg_constraint'))
			] || ARRAY(
				SELECT format('ALTER INDEX %s ALTER COLUMN %s SET STATISTICS %s', t.index, a.attnum, a.attstattarget)
				FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attstattarget >= 0 ORDER BY a.attnum),
			NULL)
	FROM pg_index AS i
		JOIN pg_class AS c ON c.oid = i.indexrelid
		LEFT JOIN pg_constraint AS k ON k.conindid = c.oid AND k.conrelid = i.indrelid AND k.contype = 'u'
		CROSS JOIN LATERAL (SELECT i.indrelid::regclass::text, c.oid::regclass::text) AS t (name, index)
	WHERE i.indexrelid = index_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.index_definition(oid)
	IS 'for snowflake_migrate.merge()''s own use: what builds an index again';

/*
 * Whose code would be run by who builds this index again, and finds another role's function or operator in the place of
 * the one that the index uses now (overload.sql).  While the index is gone, nothing depends on the functions, operators
 * and types of its definition either: in a superuser's index, a role that owns their schema, or can create in it, could
 * put others in their place.
 */
CREATE FUNCTION snowflake_migrate_internal.index_planter(index_ oid, OUT role oid, OUT object text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT p.role, pg_describe_object(d.refclassid, d.refobjid, 0)
	FROM snowflake_internal.strongest_role() AS s
		JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.objid = index_
		LEFT JOIN pg_proc AS f ON d.refclassid = 'pg_proc'::regclass AND f.oid = d.refobjid
		LEFT JOIN pg_operator AS o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
		LEFT JOIN pg_type AS y ON d.refclassid = 'pg_type'::regclass AND y.oid = d.refobjid
		CROSS JOIN LATERAL (SELECT coalesce(f.pronamespace, o.oprnamespace, y.typnamespace)) AS n (schema)
		JOIN pg_index AS i ON i.indexrelid = index_
		CROSS JOIN LATERAL (
			SELECT coalesce(
				CASE WHEN snowflake_migrate_internal.is_vague(
						concat(i.indexprs::text, i.indpred::text), d.refclassid, d.refobjid)
					THEN snowflake_migrate_internal.overloader(d.refclassid, d.refobjid) END,
				CASE WHEN s.is_superuser THEN coalesce(
					snowflake_internal.other_creator(n.schema),
					(SELECT w.role FROM snowflake_internal.other_schema_owner(
						n.schema, snowflake_internal.other_roles()) AS w)) END)) AS p (role)
	WHERE n.schema IS NOT NULL AND p.role IS NOT NULL
	LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.index_planter(oid)
	IS 'for snowflake_migrate.merge()''s own use: who could change what the definition of an index means';

/*
 * Why an index can't be dropped while rows are copied into its table, or null.  The copy and the way back find rows by
 * the table's key, and foreign keys by what they refer to.
 */
CREATE FUNCTION snowflake_migrate_internal.index_stays(index_ oid, relation regclass, key name[]) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH member AS MATERIALIZED (
		SELECT i.*, c.relkind, c.reloptions, k.oid AS constraint_oid
		FROM snowflake_migrate_internal.with_partitions(index_) AS m (oid)
			JOIN pg_index AS i ON i.indexrelid = m.oid
			JOIN pg_class AS c ON c.oid = m.oid
			LEFT JOIN pg_constraint AS k ON k.conindid = m.oid AND k.conrelid = i.indrelid
				AND k.contype IN ('p', 'u', 'x')
	),
	object (classid, oid) AS MATERIALIZED (
		SELECT 'pg_class'::regclass, m.indexrelid FROM member AS m
		UNION ALL
		SELECT 'pg_constraint'::regclass, m.constraint_oid FROM member AS m WHERE m.constraint_oid IS NOT NULL
	)
	SELECT r.reason
	FROM (
		SELECT 1, 'it is a primary key' FROM member AS m WHERE m.indisprimary
		UNION ALL
		SELECT 2, 'it is the replica identity' FROM member AS m WHERE m.indisreplident
		UNION ALL
		SELECT 3, 'it belongs to an exclusion constraint' FROM member AS m WHERE m.indisexclusion
		UNION ALL
		SELECT 4, 'it is not valid' FROM member AS m WHERE NOT (m.indisvalid AND m.indisready AND m.indislive)
		UNION ALL
		SELECT 5, 'rows are found by it'
		FROM member AS m
		WHERE m.indexrelid = index_ AND m.indpred IS NULL AND key <> '{}' AND key::text[] <@ ARRAY(
			SELECT a.attname::text
			FROM unnest(m.indkey[0 : cardinality(key) - 1]) AS u (attnum)
				JOIN pg_attribute AS a ON a.attrelid = m.indrelid AND a.attnum = u.attnum)
		UNION ALL
		(SELECT 6, format('%s depends on it', pg_describe_object(d.classid, d.objid, 0))
		 FROM object AS o JOIN pg_depend AS d ON d.refclassid = o.classid AND d.refobjid = o.oid
		 WHERE NOT EXISTS (SELECT FROM object AS own WHERE own.classid = d.classid AND own.oid = d.objid)
			AND NOT EXISTS (SELECT FROM pg_trigger AS t
							WHERE d.classid = 'pg_trigger'::regclass AND t.oid = d.objid AND t.tgisinternal)
		 ORDER BY d.classid, d.objid LIMIT 1)
		UNION ALL
		SELECT 7, 'it belongs to an extension'
		FROM object AS o JOIN pg_depend AS d ON d.classid = o.classid AND d.objid = o.oid
		WHERE d.refclassid = 'pg_extension'::regclass
		UNION ALL
		SELECT 8, 'its triggers are not as they would be made'
		FROM member AS m JOIN pg_trigger AS t ON t.tgconstraint = m.constraint_oid
		WHERE t.tgenabled <> 'O'
		UNION ALL
		SELECT 9, 'its options could not be given to a constraint'
		FROM member AS m WHERE m.relkind = 'I' AND m.reloptions IS NOT NULL AND m.constraint_oid IS NOT NULL
		UNION ALL
		SELECT 10, 'a partition is a foreign table'
		FROM snowflake_migrate_internal.with_partitions(relation) AS p (oid) JOIN pg_class AS c ON c.oid = p.oid
		WHERE c.relkind = 'f'
		UNION ALL
		SELECT 11, format('role %s could put something else in the place of %s', p.role::regrole, p.object)
		FROM member AS m CROSS JOIN LATERAL snowflake_migrate_internal.index_planter(m.indexrelid) AS p
	) AS r (n, reason)
	ORDER BY r.n
	LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.index_stays(oid, regclass, name[])
	IS 'for snowflake_migrate.merge()''s own use: why an index stays while rows are copied';

/* Puts on record an index and those that are attached to it. */
CREATE FUNCTION snowflake_migrate_internal.write_index(run_ bigint, no_ int, index_ oid) RETURNS void
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	INSERT INTO snowflake_migrate_internal.plan_indexes
		(run, no, id, root, relation, name, definition, statements, tablespace, former, state)
	SELECT run_, no_, l.id + m.n, l.id + 1, i.indrelid, c.relname, d.definition, d.statements, coalesce(s.spcname, ''),
		snowflake_migrate_internal.index_state(c.oid), 'planned'
	FROM (SELECT coalesce(max(x.id), 0) FROM snowflake_migrate_internal.plan_indexes AS x WHERE x.run = run_) AS l (id)
		/* Those that others are attached to come first. */
		CROSS JOIN snowflake_migrate_internal.with_partitions(index_) WITH ORDINALITY AS m (oid, n)
		JOIN pg_index AS i ON i.indexrelid = m.oid
		JOIN pg_class AS c ON c.oid = m.oid
		LEFT JOIN pg_tablespace AS s ON s.oid = c.reltablespace
		CROSS JOIN LATERAL snowflake_migrate_internal.index_definition(c.oid) AS d
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.write_index(bigint, int, oid)
	IS 'for snowflake_migrate.merge()''s own use: puts an index on record';

/* Raises an error where the caller may not drop the indexes on record, or not build them again. */
CREATE FUNCTION snowflake_migrate_internal.refuse_index_rights(run_ bigint) RETURNS void
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	denied text;
	problems text;
BEGIN
	SELECT (array_agg(p.denied ORDER BY p.problem))[1], string_agg(DISTINCT p.problem, E'\n')
		INTO denied, problems
		FROM snowflake_migrate_internal.plan_indexes AS x
			JOIN pg_class AS c ON c.oid = x.relation
			JOIN pg_namespace AS n ON n.oid = c.relnamespace
			CROSS JOIN LATERAL (
				SELECT format('must be owner of table %s', x.relation),
					format('Role %I does not own table %s.', current_user, x.relation)
				WHERE NOT pg_has_role(c.relowner, 'USAGE')
				UNION ALL
				SELECT format('permission denied for schema %I', n.nspname),
					format('Role %I has no right to create in schema %I.', current_user, n.nspname)
				WHERE NOT has_schema_privilege(n.oid, 'CREATE')
				UNION ALL
				SELECT format('permission denied for tablespace %I', x.tablespace),
					format('Role %I has no right to create in tablespace %I, where index "%s" of table %s is.',
						   current_user, x.tablespace, x.name, x.relation)
				WHERE x.tablespace <> '' AND NOT has_tablespace_privilege(x.tablespace, 'CREATE'))
				AS p (denied, problem)
		WHERE x.run = run_;
	IF problems IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = denied,
			DETAIL = problems,
			HINT = 'To drop indexes and build them again takes these rights. '
				'Grant them, or call without rebuild_indexes.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_index_rights(bigint)
	IS 'for snowflake_migrate.merge()''s own use: an error where indexes could not be built again';

/* Decides which indexes are dropped, puts them on record, and adds to the report which they are and which stay. */
CREATE FUNCTION snowflake_migrate_internal.write_indexes(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	i record;
BEGIN
	FOR i IN
		SELECT t.no, t.relation, c.oid, c.relname, s.reason
		FROM snowflake_migrate_internal.plan_tables AS t
			CROSS JOIN LATERAL snowflake_migrate_internal.with_partitions(t.relation) AS p (oid)
			JOIN pg_index AS x ON x.indrelid = p.oid AND NOT x.indisprimary
				AND NOT EXISTS (SELECT FROM pg_inherits AS h WHERE h.inhrelid = x.indexrelid)
			JOIN pg_class AS c ON c.oid = x.indexrelid
			CROSS JOIN LATERAL (
				SELECT snowflake_migrate_internal.index_stays(c.oid, t.relation, t.key)) AS s (reason)
		WHERE t.run = run_
			AND 3 * (SELECT sum(r.rows_to_do) FROM snowflake_migrate_internal.plan_sources AS r
					 WHERE r.run = run_ AND r.no = t.no) > t.former_rows
		ORDER BY t.no, c.relname COLLATE "C", c.oid
	LOOP
		IF i.reason IS NULL THEN
			PERFORM snowflake_migrate_internal.write_index(run_, i.no, i.oid);
		END IF;
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', NULL, i.relation::text, i.relname,
			coalesce('the index stays while rows are copied: ' || i.reason,
					 'the index is dropped before rows are copied, and built again after them'));
	END LOOP;
	PERFORM snowflake_migrate_internal.refuse_index_rights(run_);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.write_indexes(bigint)
	IS 'for snowflake_migrate.merge()''s own use: decides which indexes are dropped';

/*
 * Drops the indexes of tables that are to be dropped, as they are still what is on record: of at most 50 tables, since
 * each is locked.  Returns false when there are none left.
 */
CREATE FUNCTION snowflake_migrate_internal.drop_indexes(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	t record;
	root record;
	index regclass;
	dropped boolean := false;
	same boolean;
BEGIN
	FOR t IN
		SELECT p.no, p.relation, p.key
		FROM snowflake_migrate_internal.plan_tables AS p
		WHERE p.run = run_ AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_indexes AS x
									   WHERE x.run = run_ AND x.no = p.no AND x.state = 'planned')
		ORDER BY p.no
		LIMIT 50
	LOOP
		dropped := true;
		EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', snowflake_migrate_internal.only(t.relation));
		FOR root IN SELECT x.* FROM snowflake_migrate_internal.plan_indexes AS x
			WHERE x.run = run_ AND x.no = t.no AND x.id = x.root AND x.state = 'planned' ORDER BY x.id
		LOOP
			index := snowflake_migrate_internal.find_index(root.relation, root.name);
			SELECT coalesce(bool_and(x.former = snowflake_migrate_internal.index_state(
						snowflake_migrate_internal.find_index(x.relation, x.name))
					AND snowflake_migrate_internal.index_stays(index, t.relation, t.key) IS NULL), false)
					AND count(*) = (SELECT count(*) FROM snowflake_migrate_internal.with_partitions(index))
				INTO same
				FROM snowflake_migrate_internal.plan_indexes AS x
				WHERE x.run = run_ AND x.root = root.id;
			IF same IS TRUE AND root.former ? 'constraint' THEN
				EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', root.relation, root.name);
			ELSIF same IS TRUE THEN
				EXECUTE format('DROP INDEX %s', index);
			END IF;
			UPDATE snowflake_migrate_internal.plan_indexes AS x
				SET state = CASE WHEN same IS TRUE THEN 'dropped' ELSE 'kept' END
				WHERE x.run = run_ AND x.root = root.id;
		END LOOP;
	END LOOP;
	IF dropped THEN
		PERFORM snowflake_migrate_internal.hold_extension(run_);
	END IF;
	RETURN dropped;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.drop_indexes(bigint)
	IS 'for snowflake_migrate.merge()''s own use: drops indexes';

/* The view that has the statements which bring the indexes of a run back. */
CREATE FUNCTION snowflake_migrate_internal.indexes_to_build(run_ bigint) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT format('snowflake_merge_%s.indexes_to_build', run_) $$;
COMMENT ON FUNCTION snowflake_migrate_internal.indexes_to_build(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the view of the statements that bring indexes back';

/*
 * Keeps the extension from being dropped without CASCADE, as a view reads a table of it, while indexes of a run are
 * gone; and no longer.  The schema is a superuser's, where the maps are.
 *
 * Anybody may call this, about a run of anybody: it does what the plan says.
 */
CREATE FUNCTION snowflake_migrate_internal.hold_extension(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms'
AS $$
DECLARE
	view CONSTANT text := snowflake_migrate_internal.indexes_to_build(run_);
	is_held CONSTANT boolean := to_regclass(view) IS NOT NULL;
	is_needed CONSTANT boolean := EXISTS (
		SELECT FROM snowflake_migrate_internal.plan_indexes AS x
		WHERE x.run = run_ AND x.state IN ('dropped', 'built'));
BEGIN
	IF is_held = is_needed OR NOT EXISTS (
			SELECT FROM pg_namespace AS n JOIN pg_roles AS r ON r.oid = n.nspowner
			WHERE n.nspname = 'snowflake_merge_' || run_ AND r.rolsuper) THEN
		RETURN;
	ELSIF is_held THEN
		BEGIN
			EXECUTE format('DROP VIEW %s', view);
		EXCEPTION WHEN lock_not_available THEN
			/* Somebody reads it, as pg_dump does: it goes with the maps. */
			NULL;
		END;
		RETURN;
	END IF;
	EXECUTE snowflake_migrate_internal.fill($query$
		CREATE VIEW {view} AS
		SELECT x.relation, x.name, x.problem ->> 'message' AS problem, s.statement
		FROM snowflake_migrate_internal.plan_indexes AS x
			CROSS JOIN LATERAL (
				SELECT 0, format('SET default_tablespace = %L; %s', x.tablespace,
								 snowflake_migrate_internal.portable(x.definition))
				WHERE x.state = 'dropped'
				UNION ALL
				SELECT u.n, snowflake_migrate_internal.portable(u.statement)
				FROM unnest(x.statements) WITH ORDINALITY AS u (statement, n)
			) AS s (n, statement)
		WHERE x.run = {run} AND x.state IN ('dropped', 'built')
		ORDER BY s.n > 0, x.id, s.n
	$query$, jsonb_build_object('view', view, 'run', run_));
	EXECUTE (SELECT format('GRANT SELECT ON %s TO %I', view, r.merged_by) FROM snowflake_migrate.runs AS r
			 WHERE r.run = run_);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.hold_extension(bigint)
	IS 'for snowflake_migrate.merge()''s own use: keeps the extension while indexes are gone';

/* Runs what brings an index back, in its tablespace.  Returns what was wrong, or null. */
CREATE FUNCTION snowflake_migrate_internal.run_for_index(
	index_ snowflake_migrate_internal.plan_indexes,
	statements text[]) RETURNS jsonb
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	statement text;
	message text;
	detail text;
BEGIN
	PERFORM set_config('default_tablespace', index_.tablespace, true);
	FOREACH statement IN ARRAY statements LOOP
		EXECUTE statement;
	END LOOP;
	RETURN NULL;
EXCEPTION
	WHEN deadlock_detected THEN
		RAISE;
	WHEN OTHERS THEN
		GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
		RETURN jsonb_build_object('code', SQLSTATE, 'message', concat_ws(E'\n', message, nullif(detail, '')));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.run_for_index(snowflake_migrate_internal.plan_indexes, text[])
	IS 'for snowflake_migrate.merge()''s own use: runs what brings an index back';

/* Indexes that could not be built are tried again.  A run without such needs no right to update the table. */
CREATE FUNCTION snowflake_migrate_internal.retry_indexes(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	IF EXISTS (SELECT FROM snowflake_migrate_internal.plan_indexes AS x
			   WHERE x.run = run_ AND x.problem IS NOT NULL) THEN
		UPDATE snowflake_migrate_internal.plan_indexes AS x SET problem = NULL
			WHERE x.run = run_ AND x.problem IS NOT NULL;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.retry_indexes(bigint)
	IS 'for snowflake_migrate.merge()''s own use: indexes that could not be built are tried again';

/* Raises an error where indexes, or unique ones, could not be built. */
CREATE FUNCTION snowflake_migrate_internal.refuse_unbuilt(run_ bigint, only_unique boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	codes text[];
	names text[];
	messages text[];
BEGIN
	SELECT array_agg(x.problem ->> 'code' ORDER BY x.id), array_agg(x.problem ->> 'message' ORDER BY x.id),
			array_agg(format('index "%s" of table %s', x.name, x.relation) ORDER BY x.id)
		INTO codes, messages, names
		FROM snowflake_migrate_internal.plan_indexes AS x
		WHERE x.run = run_ AND x.problem IS NOT NULL
			AND (x.former ->> 'definition' LIKE 'CREATE UNIQUE %' OR NOT only_unique);
	IF cardinality(names) = 1 THEN
		RAISE EXCEPTION USING ERRCODE = codes[1],
			MESSAGE = format('could not build %s again', names[1]),
			DETAIL = messages[1],
			HINT = 'When this is put right, the same call goes on with it.';
	ELSIF names IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = codes[1],
			MESSAGE = format('could not build %s indexes again', cardinality(names)),
			DETAIL = (SELECT string_agg(format('%s%s: %s', upper(left(n.name, 1)), substr(n.name, 2), n.message), E'\n')
					  FROM unnest(names[: 20], messages) AS n (name, message) WHERE n.name IS NOT NULL),
			HINT = 'When this is put right, the same call goes on with them.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_unbuilt(bigint, boolean)
	IS 'for snowflake_migrate.merge()''s own use: an error where indexes could not be built';

/*
 * Gives indexes that are built what else they had: up to 50 of them; those of a partitioned table when all of them are
 * built.  Returns false when there are none left.
 */
CREATE FUNCTION snowflake_migrate_internal.complete_indexes(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	x snowflake_migrate_internal.plan_indexes;
	state jsonb;
	found_problem jsonb;
	completed boolean := false;
BEGIN
	FOR x IN SELECT p.* FROM snowflake_migrate_internal.plan_indexes AS p
		WHERE p.run = run_ AND p.state = 'built' AND p.problem IS NULL
			AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_indexes AS o
							WHERE o.run = run_ AND o.root = p.root AND (o.state = 'dropped' OR o.problem IS NOT NULL))
		ORDER BY p.id
		LIMIT 50
	LOOP
		completed := true;
		state := snowflake_migrate_internal.index_state(snowflake_migrate_internal.find_index(x.relation, x.name));
		found_problem := NULL;
		/* Whoever has built it by hand may have done that too. */
		IF state IS DISTINCT FROM x.former THEN
			found_problem := snowflake_migrate_internal.run_for_index(x, x.statements);
		END IF;
		UPDATE snowflake_migrate_internal.plan_indexes AS p
			SET state = CASE WHEN found_problem IS NULL THEN 'there' ELSE p.state END, problem = found_problem
			WHERE p.run = run_ AND p.id = x.id;
	END LOOP;
	RETURN completed;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.complete_indexes(bigint)
	IS 'for snowflake_migrate.merge()''s own use: gives indexes what else they had';

/*
 * Builds one of the indexes that were dropped, or completes them.  Returns false when all are there that can be.  A
 * worker takes one that no other has, of a table that is copied, and leaves it to its caller to complete them.
 */
CREATE FUNCTION snowflake_migrate_internal.build_index(run_ bigint, is_worker boolean DEFAULT false) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	x snowflake_migrate_internal.plan_indexes;
	state jsonb;
	found_problem jsonb;
BEGIN
	IF is_worker THEN
		SELECT p.* INTO x FROM snowflake_migrate_internal.plan_indexes AS p
			WHERE p.run = run_ AND p.state = 'dropped' AND p.problem IS NULL
				AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.open_sources(run_) AS o WHERE o.no = p.no)
			ORDER BY p.id
			LIMIT 1
			FOR UPDATE SKIP LOCKED;
	ELSE
		SELECT p.* INTO x FROM snowflake_migrate_internal.plan_indexes AS p
			WHERE p.run = run_ AND p.state = 'dropped' AND p.problem IS NULL ORDER BY p.id LIMIT 1;
	END IF;
	IF NOT FOUND THEN
		RETURN NOT is_worker AND snowflake_migrate_internal.complete_indexes(run_);
	END IF;
	PERFORM snowflake_migrate_internal.set_unit(format('table %s, index "%s"', x.relation, x.name));
	/* Many are built side by side; the last ones, each by several processes. */
	PERFORM set_config('max_parallel_maintenance_workers', greatest(0, snowflake_migrate_internal.workers()
			/ (SELECT count(*) FROM snowflake_migrate_internal.plan_indexes AS p
			   WHERE p.run = run_ AND p.state = 'dropped' AND p.problem IS NULL) - 1)::text, true) WHERE is_worker;
	/* Somebody may have built it by hand. */
	state := snowflake_migrate_internal.index_state(snowflake_migrate_internal.find_index(x.relation, x.name));
	IF state IS NULL OR state -> 'definition' <> x.former -> 'definition' OR state -> 'is_valid' = 'false' THEN
		found_problem := snowflake_migrate_internal.run_for_index(x, ARRAY[x.definition]);
	END IF;
	UPDATE snowflake_migrate_internal.plan_indexes AS p
		SET state = CASE WHEN found_problem IS NULL THEN 'built' ELSE p.state END, problem = found_problem
		WHERE p.run = run_ AND p.id = x.id;
	RETURN true;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.build_index(bigint, boolean)
	IS 'for snowflake_migrate.merge()''s own use: builds one of the indexes that were dropped';

/*
 * One transaction of the building: an index, or those of small tables whose rows fit into a batch together, at most 50
 * of them.  Returns false when all are there that can be.
 */
CREATE FUNCTION snowflake_migrate_internal.build_indexes(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	rows_left bigint := (SELECT r.batch_size FROM snowflake_migrate.runs AS r WHERE r.run = run_);
	next_rows bigint;
BEGIN
	FOR built IN 1 .. snowflake_migrate_internal.tables_at_once() LOOP
		SELECT t.former_rows + (SELECT sum(s.rows_to_do) FROM snowflake_migrate_internal.plan_sources AS s
								WHERE s.run = run_ AND s.no = x.no)
			INTO next_rows
			FROM snowflake_migrate_internal.plan_indexes AS x
				JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
			WHERE x.run = run_ AND x.state = 'dropped' AND x.problem IS NULL
			ORDER BY x.id
			LIMIT 1;
		EXIT WHEN built > 1 AND (NOT FOUND OR next_rows > rows_left);
		IF NOT snowflake_migrate_internal.build_index(run_) THEN
			PERFORM snowflake_migrate_internal.hold_extension(run_);
			RETURN false;
		END IF;
		EXIT WHEN next_rows IS NULL;
		rows_left := rows_left - next_rows;
	END LOOP;
	RETURN true;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.build_indexes(bigint)
	IS 'for snowflake_migrate.merge()''s own use: one transaction of the building of indexes';

/* Indexes of a table that were dropped, and are not there again as they were. */
CREATE FUNCTION snowflake_migrate_internal.verify_indexes(
	run_ bigint,
	no_ int,
	OUT problem text,
	OUT count bigint,
	OUT example text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT p.problem, count(*), array_to_string((array_agg(x.name ORDER BY x.id))[: 3], ', ')
	FROM (
			SELECT i.id, i.name, i.former,
				snowflake_migrate_internal.index_state(
					snowflake_migrate_internal.find_index(i.relation, i.name)) AS state
			FROM snowflake_migrate_internal.plan_indexes AS i
			WHERE i.run = run_ AND i.no = no_ AND i.state <> 'kept'
		) AS x
		CROSS JOIN LATERAL (
			SELECT CASE WHEN x.state IS NULL THEN 'indexes are missing'
				WHEN x.state -> 'is_valid' = 'false' THEN 'indexes are not valid'
				/* Comments and the like may change. */
				WHEN EXISTS (SELECT FROM unnest('{definition,constraint,attached_to,tablespace}'::text[]) AS k (key)
							 WHERE x.state -> k.key IS DISTINCT FROM x.former -> k.key)
				THEN 'indexes are not as they were' END) AS p (problem)
	WHERE p.problem IS NOT NULL
	GROUP BY p.problem
	ORDER BY p.problem
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.verify_indexes(bigint, int)
	IS 'for snowflake_migrate.verify(): indexes that are not there again';
