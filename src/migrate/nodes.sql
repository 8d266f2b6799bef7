/*
 * The node numbers under which a run makes ids.  No id with one of them may be there already, and no server may make
 * one later: a number is used by one run alone, and where there is a registry it is set aside.
 */

/*
 * Locks a name of the table "targets" until the end of the transaction: that of a target, or a node number's.  Returns
 * whether it could.  Only the first transaction of all inserts the row; another one would wait for that.  strength is
 * that of the lock: see jobs.sql.
 */
CREATE FUNCTION snowflake_migrate_internal.lock_name(locked name, strength text) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms'
AS $$
DECLARE
	found_ name;
BEGIN
	EXECUTE format('SELECT t.target FROM snowflake_migrate_internal.targets AS t
		WHERE t.target = $1 FOR %s SKIP LOCKED', strength) INTO found_ USING locked;
	IF found_ IS NOT NULL THEN
		RETURN true;
	ELSIF EXISTS (SELECT FROM snowflake_migrate_internal.targets AS t WHERE t.target = locked) THEN
		RETURN false;
	END IF;
	INSERT INTO snowflake_migrate_internal.targets VALUES (locked) ON CONFLICT DO NOTHING;
	RETURN FOUND;
EXCEPTION WHEN lock_not_available THEN
	RETURN false;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.lock_name(name, text)
	IS 'for snowflake_migrate.merge()''s own use: locks a target, or a node number';

/* Raises the error that another session is about to use a node number. */
CREATE FUNCTION snowflake_migrate_internal.refuse_locked_node(n bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RAISE EXCEPTION USING ERRCODE = 'object_in_use',
		MESSAGE = format('node number %s is in use by another session', n), HINT = 'Give one that was never used.';
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_locked_node(bigint)
	IS 'for snowflake_migrate.merge()''s own use: an error where a node number is in use';

/*
 * Raises an error where this can't be the node of new ids: one that has made ids could make them again.  Until the end
 * of the transaction, by which its use is on record, no other session can use it.
 */
CREATE FUNCTION snowflake_migrate_internal.check_node(n bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	max_node CONSTANT bigint := (SELECT l.max_node FROM snowflake_migrate_internal.layout() AS l);
	used record;
BEGIN
	IF n NOT BETWEEN 0 AND max_node THEN
		RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
			MESSAGE = format('node number %s is out of range', n),
			DETAIL = format('In the server''s layout, node numbers are from 0 to %s.', max_node);
	END IF;
	PERFORM snowflake_migrate_internal.refuse_locked_node(n)
		WHERE NOT snowflake_migrate_internal.lock_name(('pg_node ' || n)::name, 'UPDATE');
	SELECT u.* INTO used FROM snowflake_migrate.nodes AS u WHERE u.node = n;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'object_in_use',
			MESSAGE = format('node number %s has already been used by a merge', n),
			DETAIL = format('Merge %s made ids with it for schema "%s".', used.run, used.source),
			HINT = 'Give one that was never used.';
	END IF;
	SELECT u.* INTO used FROM snowflake_migrate.backfills AS u WHERE u.node = n;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'object_in_use',
			MESSAGE = format('node number %s has already been used for ids of past times', n),
			DETAIL = format('They were made for table %s.', used.relation),
			HINT = 'Give one that was never used.';
	ELSIF n = snowflake_migrate_internal.own_node() THEN
		RAISE EXCEPTION USING ERRCODE = 'object_in_use',
			MESSAGE = format('node number %s is this server''s own', n), HINT = 'Give one that was never used.';
	END IF;
	/* Only asks; an error where the registry would not set it aside. */
	PERFORM snowflake_internal.set_aside(n, '-infinity');
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_node(bigint)
	IS 'for snowflake_migrate.merge()''s own use: whether a node can be used';

/* Puts the use of a node number on record; somebody may have written it beside check_node(), and not committed. */
CREATE FUNCTION snowflake_migrate_internal.record_node(node bigint, run bigint, source name) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms'
AS $$
BEGIN
	INSERT INTO snowflake_migrate.nodes (node, run, source) VALUES (node, run, source);
EXCEPTION WHEN lock_not_available THEN
	PERFORM snowflake_migrate_internal.refuse_locked_node(node);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.record_node(bigint, bigint, name)
	IS 'for snowflake_migrate.merge()''s own use: puts the use of a node number on record';

/* Raises an error where these can't be the nodes of a merge. */
CREATE FUNCTION snowflake_migrate_internal.check_nodes(sources int, nodes bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF nodes IS NULL OR array_position(nodes, NULL) IS NOT NULL OR array_ndims(nodes) <> 1
		OR cardinality(nodes) <> sources THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'a merge needs a node number for each of its sources',
			DETAIL = format('There are %s sources, and the node numbers are %s.',
							sources, coalesce(nodes::text, 'null'));
	ELSIF (SELECT count(DISTINCT u.node) FROM unnest(nodes) AS u (node)) < cardinality(nodes) THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'the node numbers of a merge must be distinct',
			DETAIL = format('The node numbers are %s.', nodes);
	END IF;
	PERFORM snowflake_migrate_internal.check_node(u.node) FROM unnest(nodes) AS u (node);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_nodes(int, bigint[])
	IS 'for snowflake_migrate.merge()''s own use: whether nodes can be used';

/* Whether a column of integers is wide enough for snowflake ids. */
CREATE FUNCTION snowflake_migrate_internal.may_hold_ids(relation regclass, attname name) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT y.base NOT IN ('smallint'::regtype, 'integer'::regtype)
	FROM pg_attribute AS a CROSS JOIN LATERAL snowflake_migrate_internal.base_type(a.atttypid, a.atttypmod) AS y
	WHERE a.attrelid = relation AND a.attname = may_hold_ids.attname
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.may_hold_ids(regclass, name)
	IS 'for snowflake_migrate.merge()''s own use: whether snowflake ids fit into a column';

/* Adds to the report which of the run's nodes occur in ids of a source, or of any table of the target. */
CREATE FUNCTION snowflake_migrate_internal.find_nodes(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	nodes CONSTANT bigint[] := (SELECT r.nodes FROM snowflake_migrate.runs AS r WHERE r.run = run_);
	t record;
	found bigint;
	example text;
BEGIN
	FOR t IN
		SELECT p.relation, p.key[1] AS key, NULL::name AS source, p.relation AS target
		FROM snowflake_migrate_internal.plan_tables AS p
		WHERE p.run = run_ AND p.kind = 'id'
		UNION ALL
		SELECT s.relation, p.key[1], r.sources[s.source], p.relation
		FROM snowflake_migrate_internal.plan_sources AS s
			JOIN snowflake_migrate_internal.plan_tables AS p USING (run, no)
			JOIN snowflake_migrate.runs AS r USING (run)
		WHERE p.run = run_ AND p.kind = 'id'
	LOOP
		CONTINUE WHEN NOT snowflake_migrate_internal.may_hold_ids(t.relation, t.key);
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*), min(t.{"column"})::text
			FROM {table} AS t
			WHERE t.{"column"} > {last_serial}
				AND snowflake_migrate_internal.node(t.{"column"}::bigint) = ANY ({'nodes'}::bigint[])
		$query$, jsonb_build_object(
			'table', snowflake_migrate_internal.only(t.relation),
			'column', t.key,
			'last_serial', snowflake_migrate_internal.last_serial(),
			'nodes', nodes::text)) INTO found, example;
		IF found > 0 THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', t.source, t.target::text, t.key,
				format('ids have a node number of %s already', nodes), found, example,
				format('Give node numbers that were never used. Ids that are none of this layout can stay: '
						   'SELECT snowflake_migrate.declare_table(%L, ''same_id'');', t.target));
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_nodes(bigint)
	IS 'for snowflake_migrate.merge()''s own use: whether nodes occur in ids';

/* Sets the run's nodes aside, where there is a registry, up to the end of the newest new id, or the merge's start. */
CREATE FUNCTION snowflake_migrate_internal.set_aside_nodes(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	tick CONSTANT interval := (SELECT l.tick FROM snowflake_migrate_internal.layout() AS l);
	t record;
	newest bigint;
BEGIN
	/* Asks first: none is used up where another can't be had. */
	FOR t IN
		SELECT u.node FROM snowflake_migrate.runs AS r, unnest(r.nodes) AS u (node) WHERE r.run = run_
	LOOP
		IF NOT snowflake_internal.set_aside(t.node, '-infinity') THEN
			RETURN;
		END IF;
	END LOOP;
	FOR t IN
		SELECT u.node, u.source, r.started_at
		FROM snowflake_migrate.runs AS r, unnest(r.nodes) WITH ORDINALITY AS u (node, source)
		WHERE r.run = run_
	LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT max(m.n1)
			FROM {all_maps} AS m
			WHERE m.source = {source} AND m.n1 > {last_serial} AND snowflake_migrate_internal.node(m.n1) = {node}
		$query$, jsonb_build_object(
			'all_maps', snowflake_migrate_internal.relation(run_, 'map'),
			'source', t.source,
			'last_serial', snowflake_migrate_internal.last_serial(),
			'node', t.node)) INTO newest;
		PERFORM snowflake_internal.set_aside(t.node,
			greatest(t.started_at, snowflake_migrate_internal.timestamp(newest) + tick));
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.set_aside_nodes(bigint)
	IS 'for snowflake_migrate.merge()''s own use: sets nodes aside in the registry';
