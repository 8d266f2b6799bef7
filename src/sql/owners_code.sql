/*
 * Whose code a query or a change would run.
 *
 * A table's owner can make whoever touches it run code: CHECKs, index expressions and generated columns call functions,
 * and PostgreSQL computes what is constant in them already when it plans a query.  Views run the functions in them with
 * the rights of who reads the view.  A superuser would thus do whatever the owner of any of these wants.
 *
 * Code is another role's where that role can change it and has not the caller's rights anyway.  It is found in the
 * catalogs, before anything is read or planned.  The code can put off a role that the caller has put on (SET ROLE), so
 * that the roles that the session began with count as well.
 */

/* The roles whose rights code that runs in this session could have: the caller's, and those that he can go back to. */
CREATE FUNCTION snowflake_internal.session_roles() RETURNS oid[]
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
	SELECT array_agg(r.oid)
	FROM pg_roles AS r
	WHERE r.rolname IN (current_user, session_user)
		OR r.oid IN (SELECT a.usesysid FROM pg_stat_get_activity(pg_backend_pid()) AS a)
$$;
COMMENT ON FUNCTION snowflake_internal.session_roles() IS 'the roles whose rights code in this session could have';

/* The role whose rights others' code would have: a superuser, if there is one among them. */
CREATE FUNCTION snowflake_internal.strongest_role(OUT role regrole, OUT is_superuser boolean)
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
	SELECT r.oid, r.rolsuper
	FROM pg_roles AS r
	WHERE r.oid = ANY (snowflake_internal.session_roles())
	ORDER BY r.rolsuper DESC, r.rolname = current_user DESC
	LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_internal.strongest_role() IS 'the role whose rights others'' code would have';

/* The roles that have less rights than these: what they own is others' code. */
CREATE FUNCTION snowflake_internal.other_roles() RETURNS oid[]
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
	SELECT coalesce(array_agg(r.oid), '{}')
	FROM pg_roles AS r, (SELECT snowflake_internal.session_roles() OFFSET 0) AS s (roles)
	WHERE NOT r.rolsuper
		AND EXISTS (SELECT FROM unnest(s.roles) AS c (oid) WHERE NOT pg_has_role(r.oid, c.oid, 'USAGE'))
$$;
COMMENT ON FUNCTION snowflake_internal.other_roles() IS 'the roles that have less rights than the caller';

/*
 * What is touched with these relations: partitions and children, the tables over them, and what views and rules read.
 * written: rows are stored there, or deleted.
 */
CREATE FUNCTION snowflake_internal.touched(
	read oid[],
	written oid[],
	OUT oid oid,
	OUT is_written boolean) RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH RECURSIVE t (oid, is_written) AS (
		SELECT r.oid, false FROM unnest(read) AS r (oid)
		UNION
		SELECT w.oid, true FROM unnest(written) AS w (oid)
		UNION
		SELECT n.oid, n.is_written
		FROM t, LATERAL (
				SELECT i.inhrelid, t.is_written FROM pg_inherits AS i WHERE i.inhparent = t.oid
				UNION ALL
				SELECT i.inhparent, t.is_written FROM pg_inherits AS i WHERE i.inhrelid = t.oid
				UNION ALL
				/* An INSERT in a view's or a table's rule writes. */
				SELECT d.refobjid, w.ev_type <> '1'
				FROM pg_rewrite AS w
					JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
						AND d.refclassid = 'pg_class'::regclass
				WHERE w.ev_class = t.oid AND (w.ev_type = '1' OR t.is_written)
			) AS n (oid, is_written)
	)
	SELECT t.oid, bool_or(t.is_written) FROM t GROUP BY t.oid
$$;
COMMENT ON FUNCTION snowflake_internal.touched(oid[], oid[]) IS 'what is touched with relations';

/*
 * The expressions that are evaluated when these relations are read (or written, for those that are), as pg_depend names
 * them.
 */
CREATE FUNCTION snowflake_internal.expressions(
	read oid[],
	written oid[],
	OUT relation oid,
	OUT classid oid,
	OUT objid oid,
	OUT tree text) RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH t AS MATERIALIZED (
		SELECT u.oid, u.is_written FROM snowflake_internal.touched(read, written) AS u
	)
	SELECT t.oid, 'pg_constraint'::regclass::oid, c.oid, c.conbin::text
	FROM t JOIN pg_constraint AS c ON c.conrelid = t.oid AND c.contype = 'c'
	UNION ALL
	/* A default is evaluated where a source lacks the column. */
	SELECT t.oid, 'pg_attrdef'::regclass, d.oid, d.adbin::text
	FROM t
		JOIN pg_attrdef AS d ON d.adrelid = t.oid
		JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum = d.adnum
	WHERE a.attgenerated <> '' OR t.is_written
	UNION ALL
	SELECT t.oid, 'pg_class'::regclass, i.indexrelid, concat(i.indexprs::text, i.indpred::text)
	FROM t JOIN pg_index AS i ON i.indrelid = t.oid
	UNION ALL
	SELECT t.oid, 'pg_statistic_ext'::regclass, s.oid, s.stxexprs::text
	FROM t JOIN pg_statistic_ext AS s ON s.stxrelid = t.oid
	WHERE s.stxexprs IS NOT NULL
	UNION ALL
	SELECT t.oid, 'pg_class'::regclass, p.partrelid, p.partexprs::text
	FROM t JOIN pg_partitioned_table AS p ON p.partrelid = t.oid
	UNION ALL
	SELECT t.oid, 'pg_rewrite'::regclass, w.oid, concat(w.ev_qual::text, w.ev_action::text)
	FROM t JOIN pg_rewrite AS w ON w.ev_class = t.oid
	WHERE w.ev_type = '1' OR (t.is_written AND w.ev_enabled <> 'D')
	UNION ALL
	SELECT t.oid, 'pg_trigger'::regclass, g.oid, g.tgqual::text
	FROM t JOIN pg_trigger AS g ON g.tgrelid = t.oid
	WHERE t.is_written AND NOT g.tgisinternal
		AND (g.tgenabled IN ('A', 'R')
			 OR g.tgenabled = 'O' AND NOT has_parameter_privilege('session_replication_role', 'SET'))
$$;
COMMENT ON FUNCTION snowflake_internal.expressions(oid[], oid[])
	IS 'the expressions that are evaluated when relations are read or written';

/*
 * The types that expressions use, and those of the columns of these relations (with_columns): each with all that it is
 * made of.  relation and object: who uses it, and where.
 */
CREATE FUNCTION snowflake_internal.used_types(
	read oid[],
	written oid[],
	with_columns boolean,
	OUT relation oid,
	OUT object text,
	OUT is_column boolean,
	OUT type oid) RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH RECURSIVE u (relation, object, is_column, type) AS (
		SELECT e.relation, pg_describe_object(e.classid, e.objid, 0), false, d.refobjid
		FROM snowflake_internal.expressions(read, written) AS e
			JOIN pg_depend AS d ON d.classid = e.classid AND d.objid = e.objid AND d.refclassid = 'pg_type'::regclass
		UNION
		SELECT t.oid, pg_describe_object('pg_class'::regclass, t.oid, a.attnum), true, a.atttypid
		FROM snowflake_internal.touched(read, written) AS t
			JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE with_columns AND a.atttypid >= 16384
		UNION
		SELECT u.relation, u.object, u.is_column, n.type
		FROM u
			JOIN pg_type AS y ON y.oid = u.type
			CROSS JOIN LATERAL (
				SELECT p.type FROM unnest(ARRAY[y.typbasetype, y.typelem]) AS p (type)
				UNION ALL
				SELECT a.atttypid FROM pg_attribute AS a
				WHERE a.attrelid = y.typrelid AND y.typrelid <> 0 AND a.attnum > 0 AND NOT a.attisdropped
				UNION ALL
				SELECT p.type FROM pg_range AS r, unnest(ARRAY[r.rngsubtype, r.rngtypid]) AS p (type)
				WHERE u.type IN (r.rngtypid, r.rngmultitypid)
				UNION ALL
				SELECT d.refobjid
				FROM pg_constraint AS c
					JOIN pg_depend AS d ON d.classid = 'pg_constraint'::regclass AND d.objid = c.oid
						AND d.refclassid = 'pg_type'::regclass
				WHERE c.contypid = u.type
			) AS n (type)
		WHERE n.type >= 16384
	)
	SELECT u.* FROM u
$$;
COMMENT ON FUNCTION snowflake_internal.used_types(oid[], oid[], boolean)
	IS 'the types that are used when relations are read or written';

/*
 * Whether a function can do more than compute, whoever owns it: what is volatile, or would call what its arguments name
 * or cast as their types' owners say.  What makes a key by default is harmless.
 */
CREATE FUNCTION snowflake_internal.does_more(function oid) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN p.proname IN ('nextval', 'currval', 'lastval', 'snowflake_nextval', 'random', 'random_normal',
								   'gen_random_uuid', 'uuidv4', 'uuidv7', 'uuid_generate_v1', 'uuid_generate_v1mc',
								   'uuid_generate_v4', 'clock_timestamp', 'timeofday') THEN false
			ELSE p.provolatile = 'v' OR p.proretset
				OR (p.oid < 16384
					AND (p.proname ~ '_to_xml|_to_json|^to_jsonb?$|^jsonb?_(build|agg|object_agg|populate)|^pg_input_'
						 OR p.proname IN ('row_to_json', 'array_to_json', 'ts_rewrite', 'ts_stat')
						 /* Input functions are told of what type. */
						 OR (p.pronargs >= 2 AND p.proargtypes[1] = 'oid'::regtype
							 AND p.proargtypes[0] IN ('cstring'::regtype, 'internal'::regtype)))) END
	FROM pg_proc AS p
	WHERE p.oid = function
$$;
COMMENT ON FUNCTION snowflake_internal.does_more(oid) IS 'whether a function can do more than compute';

/* The functions that are called when these relations are read or written; is_named: an expression names it itself. */
CREATE FUNCTION snowflake_internal.called_functions(
	read oid[],
	written oid[],
	with_columns boolean,
	OUT relation oid,
	OUT object text,
	OUT function oid,
	OUT is_named boolean) RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH e AS MATERIALIZED (
		SELECT x.relation, x.classid, x.objid, pg_describe_object(x.classid, x.objid, 0) AS object, x.tree
		FROM snowflake_internal.expressions(read, written) AS x
		/* Constraints of domains, too. */
		UNION ALL
		SELECT u.relation, 'pg_constraint'::regclass, c.oid, u.object, c.conbin::text
		FROM snowflake_internal.used_types(read, written, with_columns) AS u
			JOIN pg_constraint AS c ON c.contypid = u.type
	),
	named AS MATERIALIZED (
		SELECT e.relation, e.object, d.refclassid, d.refobjid
		FROM e JOIN pg_depend AS d ON d.classid = e.classid AND d.objid = e.objid
		WHERE d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_opclass'::regclass)
	)
	SELECT n.relation, n.object, n.refobjid, true
	FROM named AS n WHERE n.refclassid = 'pg_proc'::regclass
	UNION
	SELECT n.relation, n.object, o.oprcode, true
	FROM named AS n JOIN pg_operator AS o ON o.oid = n.refobjid
	WHERE n.refclassid = 'pg_operator'::regclass
	UNION
	SELECT n.relation, n.object, f.oid, false
	FROM named AS n
		JOIN pg_opclass AS c ON c.oid = n.refobjid
		CROSS JOIN LATERAL (
			SELECT a.amproc::oid FROM pg_amproc AS a WHERE a.amprocfamily = c.opcfamily
			UNION ALL
			SELECT o.oprcode FROM pg_amop AS a JOIN pg_operator AS o ON o.oid = a.amopopr
			WHERE a.amopfamily = c.opcfamily) AS f (oid)
	WHERE n.refclassid = 'pg_opclass'::regclass
	UNION
	/* What PostgreSQL has itself is not in pg_depend. */
	SELECT e.relation, e.object, m.ids[1]::oid, true
	FROM e, regexp_matches(e.tree, ':(?:funcid|opfuncid|aggfnoid|winfnoid|tsmhandler) (\d+)', 'g') AS m (ids)
	UNION
	SELECT u.relation, u.object, f.oid, false
	FROM snowflake_internal.used_types(read, written, with_columns) AS u
		CROSS JOIN LATERAL (
			SELECT c.castfunc FROM pg_cast AS c WHERE u.type IN (c.castsource, c.casttarget)
			UNION ALL
			SELECT p.oid::oid FROM pg_range AS r, unnest(ARRAY[r.rngcanonical, r.rngsubdiff]) AS p (oid)
			WHERE r.rngtypid = u.type) AS f (oid)
$$;
COMMENT ON FUNCTION snowflake_internal.called_functions(oid[], oid[], boolean)
	IS 'the functions that are called when relations are read or written';

/*
 * Other roles' code that would run when these relations are read, or written.  with_columns: values of all columns are
 * cast, for which a type's owner can add a cast, or a CHECK to a domain, at any time; no lock is against that.
 */
CREATE FUNCTION snowflake_internal.foreign_code(
	read oid[],
	written oid[],
	with_columns boolean,
	OUT relation regclass,
	OUT object text,
	OUT code text,
	OUT owner regrole,
	OUT is_possible boolean) RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH other AS MATERIALIZED (
		SELECT o.oid FROM unnest(snowflake_internal.other_roles()) AS o (oid)
	),
	code (relation, object, classid, objid, owner, is_possible) AS (
		SELECT f.relation, f.object, 'pg_proc'::regclass, p.oid,
			CASE WHEN p.proowner IN (SELECT o.oid FROM other AS o) THEN p.proowner ELSE c.relowner END, false
		FROM snowflake_internal.called_functions(read, written, with_columns) AS f
			JOIN pg_proc AS p ON p.oid = f.function
			JOIN pg_class AS c ON c.oid = f.relation
		WHERE p.proowner IN (SELECT o.oid FROM other AS o)
			OR (c.relowner IN (SELECT o.oid FROM other AS o) AND f.is_named
				AND snowflake_internal.does_more(p.oid))
		UNION ALL
		/* The planner may take an operator's negator or commutator instead, which its owner chooses. */
		SELECT e.relation, pg_describe_object(e.classid, e.objid, 0), 'pg_operator'::regclass, p.oid, p.oprowner, false
		FROM snowflake_internal.expressions(read, written) AS e
			JOIN pg_depend AS d ON d.classid = e.classid AND d.objid = e.objid
				AND d.refclassid = 'pg_operator'::regclass
			JOIN pg_operator AS p ON p.oid = d.refobjid
		WHERE p.oprowner IN (SELECT o.oid FROM other AS o)
		UNION ALL
		/* What a view reads its owner can change at any time, and where a foreign table leads to. */
		SELECT t.oid, pg_describe_object('pg_class'::regclass, t.oid, 0), 'pg_class'::regclass, t.oid, c.relowner, false
		FROM snowflake_internal.touched(read, written) AS t
			JOIN pg_class AS c ON c.oid = t.oid
		WHERE c.relkind IN ('v', 'm', 'f') AND c.relowner IN (SELECT o.oid FROM other AS o)
		UNION ALL
		SELECT t.oid, pg_describe_object('pg_class'::regclass, t.oid, 0), 'pg_foreign_server'::regclass, s.oid,
			s.srvowner, false
		FROM snowflake_internal.touched(read, written) AS t
			JOIN pg_foreign_table AS f ON f.ftrelid = t.oid
			JOIN pg_foreign_server AS s ON s.oid = f.ftserver
		WHERE s.srvowner IN (SELECT o.oid FROM other AS o)
		UNION ALL
		SELECT u.relation, u.object, 'pg_type'::regclass, y.oid, y.typowner, u.is_column
		FROM snowflake_internal.used_types(read, written, with_columns) AS u
			JOIN pg_type AS y ON y.oid = u.type
		WHERE y.typowner IN (SELECT o.oid FROM other AS o)
			AND (y.typtype = 'd' OR (u.is_column AND y.typtype <> 'm' AND y.typcategory <> 'A'))
	)
	SELECT DISTINCT c.relation::regclass, c.object, pg_describe_object(c.classid, c.objid, 0), c.owner::regrole,
		c.is_possible
	FROM code AS c
$$;
COMMENT ON FUNCTION snowflake_internal.foreign_code(oid[], oid[], boolean)
	IS 'other roles'' code that would run when relations are read or written';

/*
 * Until the end of the transaction, keeps what other roles own from being changed or renamed: their tables from
 * everything but reading and writing rows, and the names of all schemas.  What is not a table is not locked;
 * foreign_code() names it in any case.
 */
CREATE FUNCTION snowflake_internal.lock_definitions(relations oid[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	locked record;
BEGIN
	IF pg_is_in_recovery() THEN
		RETURN;
	END IF;
	IF NOT current_setting('transaction_read_only')::boolean
		AND (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = current_user) THEN
		PERFORM FROM pg_namespace AS n
			WHERE n.oid IN (SELECT c.relnamespace FROM pg_class AS c WHERE c.oid = ANY (relations))
			ORDER BY n.oid
			FOR SHARE;
	END IF;
	FOR locked IN
		SELECT c.oid, c.oid::regclass::text AS name
		FROM pg_class AS c
		WHERE c.oid = ANY (relations) AND c.relkind IN ('r', 'p')
			AND c.relowner = ANY (snowflake_internal.other_roles())
			AND has_table_privilege(c.oid, 'UPDATE, DELETE, TRUNCATE')
			AND NOT pg_is_other_temp_schema(c.relnamespace)
		ORDER BY c.oid
	LOOP
		EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', locked.name);
		IF to_regclass(locked.name) IS DISTINCT FROM locked.oid::regclass THEN
			RAISE EXCEPTION USING ERRCODE = 'object_in_use',
				MESSAGE = format('table %s was renamed while it was to be locked', locked.name);
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_internal.lock_definitions(oid[])
	IS 'keeps what other roles own from being changed';

/* Whether there is anything that is another role's: where nothing is, nothing need be looked for. */
CREATE FUNCTION snowflake_internal.has_foreign_objects() RETURNS boolean
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
	WITH other AS MATERIALIZED (
		SELECT o.oid FROM unnest(snowflake_internal.other_roles()) AS o (oid)
	)
	SELECT EXISTS (SELECT FROM pg_proc AS p WHERE p.proowner IN (SELECT o.oid FROM other AS o))
		/* Every table has one. */
		OR EXISTS (SELECT FROM pg_type AS t WHERE t.typowner IN (SELECT o.oid FROM other AS o))
		OR EXISTS (SELECT FROM pg_foreign_server AS s WHERE s.srvowner IN (SELECT o.oid FROM other AS o))
$$;
COMMENT ON FUNCTION snowflake_internal.has_foreign_objects() IS 'whether anything is another role''s';

/*
 * foreign_code() where a superuser's rights are at stake, and nothing otherwise.  What it looked at stays as it is
 * until the end of the transaction.
 */
CREATE FUNCTION snowflake_internal.dangerous_code(
	read oid[],
	written oid[],
	with_columns boolean,
	OUT relation regclass,
	OUT object text,
	OUT problem text,
	OUT advice text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	strongest CONSTANT record := snowflake_internal.strongest_role();
BEGIN
	IF NOT strongest.is_superuser OR NOT snowflake_internal.has_foreign_objects() THEN
		RETURN;
	END IF;
	PERFORM snowflake_internal.lock_definitions(
		ARRAY(SELECT t.oid FROM snowflake_internal.touched(read, written) AS t));
	RETURN QUERY
		SELECT c.relation, c.object,
			format('code of role %s would run with the rights of role %s: %s', c.owner, strongest.role, c.code),
			format('Connect as role %s, or as one with rights on the tables that is no superuser. '
					   'SET ROLE is not enough, as the code could go back.', c.owner)
		FROM snowflake_internal.foreign_code(read, written, with_columns) AS c
		ORDER BY c.relation::text COLLATE "C", c.object COLLATE "C", c.code COLLATE "C";
	/* With an older snapshot, the look would not see what was planted since. */
	IF NOT FOUND AND current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
		RETURN QUERY
			SELECT c.oid::regclass, NULL::text,
				format('code of role %s would run with the rights of role %s '
						   'if it was added since the transaction began',
					   c.relowner::regrole, strongest.role),
				'Use a READ COMMITTED transaction.'
			FROM snowflake_internal.touched(read, written) AS t
				JOIN pg_class AS c ON c.oid = t.oid
			WHERE c.relowner = ANY (snowflake_internal.other_roles())
			ORDER BY c.oid::regclass::text COLLATE "C"
			LIMIT 1;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_internal.dangerous_code(oid[], oid[], boolean)
	IS 'other roles'' code that would run with a superuser''s rights';

/* Raises an error where there is such code. */
CREATE FUNCTION snowflake_internal.refuse_dangerous_code(read oid[], written oid[], with_columns boolean) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	problems text;
	first_advice text;
BEGIN
	SELECT string_agg(format('%s: %s.', coalesce(d.object, 'table ' || d.relation), d.problem), E'\n' ORDER BY d.n),
			min(d.advice) FILTER (WHERE d.n = 1)
		INTO problems, first_advice
		FROM (SELECT c.*, row_number() OVER () AS n
			  FROM snowflake_internal.dangerous_code(read, written, with_columns) AS c
			  LIMIT 20) AS d;
	IF problems IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = 'cannot run code of other roles with the rights of a superuser',
			DETAIL = problems,
			HINT = first_advice;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_internal.refuse_dangerous_code(oid[], oid[], boolean)
	IS 'an error where other roles'' code would run with a superuser''s rights';
