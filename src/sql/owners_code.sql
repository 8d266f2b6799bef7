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

/* The roles whose rights code that runs in this session could have: the caller's, and those that it can go back to. */
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

/* The roles that have fewer rights than these: what they own is others' code. */
CREATE FUNCTION snowflake_internal.other_roles() RETURNS oid[]
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
	SELECT coalesce(array_agg(r.oid), '{}')
	FROM pg_roles AS r, (SELECT snowflake_internal.session_roles() OFFSET 0) AS s (roles)
	WHERE NOT r.rolsuper
		AND EXISTS (SELECT FROM unnest(s.roles) AS c (oid) WHERE NOT pg_has_role(r.oid, c.oid, 'USAGE'))
$$;
COMMENT ON FUNCTION snowflake_internal.other_roles() IS 'the roles that have fewer rights than the caller';

/* One of these roles, if there is any, that may create in a schema. */
CREATE FUNCTION snowflake_internal.other_creator(schema oid) RETURNS oid
LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
	SELECT r.oid
	FROM pg_namespace AS n
		CROSS JOIN unnest(snowflake_internal.other_roles()) AS o (oid)
		JOIN pg_roles AS r ON r.oid = o.oid
	WHERE n.oid = schema AND n.nspname <> 'pg_catalog'
		/* This role is its member, the owner of the database. */
		AND r.rolname <> 'pg_database_owner'
		AND (has_schema_privilege(r.oid, n.oid, 'CREATE') OR pg_has_role(r.oid, n.nspowner, 'MEMBER'))
	ORDER BY r.rolcanlogin DESC, r.oid
	LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_internal.other_creator(oid)
	IS 'a role with fewer rights than the caller that may create in a schema';

/*
 * One of these roles, if there is any, whose schema it is: what others have there, it can drop.  With CREATE on the
 * database it can rename the schema, and put another in its place (can_rename).
 */
CREATE FUNCTION snowflake_internal.other_schema_owner(
	schema oid,
	others oid[],
	OUT role oid,
	OUT can_rename boolean)
LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
	SELECT r.oid, p.can_rename
	FROM pg_namespace AS n
		JOIN pg_roles AS r ON r.oid = ANY (others)
			/* This role is its member, the owner of the database. */
			AND r.rolname <> 'pg_database_owner' AND pg_has_role(r.oid, n.nspowner, 'USAGE')
		CROSS JOIN LATERAL (SELECT has_database_privilege(r.oid, current_database(), 'CREATE')) AS p (can_rename)
	WHERE n.oid = schema
	ORDER BY p.can_rename DESC, r.oid = n.nspowner DESC, r.oid
	LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_internal.other_schema_owner(oid, oid[])
	IS 'a role with fewer rights than the caller whose schema it is';

/* Whether the current role can keep others from renaming schemas: row locks of the catalog are for superusers. */
CREATE FUNCTION snowflake_internal.can_lock_schemas() RETURNS boolean
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
	SELECT NOT pg_is_in_recovery() AND NOT current_setting('transaction_read_only')::boolean
		AND (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = current_user)
$$;
COMMENT ON FUNCTION snowflake_internal.can_lock_schemas() IS 'whether the caller can keep schemas from being renamed';

/* A column of a table. */
CREATE TYPE snowflake_internal.table_column AS (relation oid, name name);

/*
 * What is touched with these relations: partitions and children, the tables over them, and what views and rules read;
 * and of these, where rows are stored or deleted (all_written).  PostgreSQL passes over temporary children of other
 * sessions.
 */
CREATE FUNCTION snowflake_internal.touched(
	read oid[],
	written oid[],
	OUT touched oid[],
	OUT all_written oid[])
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	reached record;
BEGIN
	touched := read || written;
	all_written := written;
	LOOP
		/* For all of them at once: to ask for each relation takes much longer. */
		SELECT array_agg(DISTINCT n.oid) AS touched,
				coalesce(array_agg(DISTINCT n.oid) FILTER (WHERE n.is_written), '{}') AS written
			INTO reached
			FROM (
				SELECT t.oid, false AS is_written FROM unnest(touched) AS t (oid)
				UNION ALL
				SELECT w.oid, true FROM unnest(all_written) AS w (oid)
				UNION ALL
				SELECT i.inhrelid, i.inhparent = ANY (all_written)
				FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
				WHERE i.inhparent = ANY (touched) AND NOT pg_is_other_temp_schema(c.relnamespace)
				UNION ALL
				SELECT i.inhparent, i.inhrelid = ANY (all_written)
				FROM pg_inherits AS i WHERE i.inhrelid = ANY (touched)
				UNION ALL
				/* An INSERT in a view's or a table's rule writes. */
				SELECT d.refobjid, w.ev_type <> '1'
				FROM pg_rewrite AS w
					JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
						AND d.refclassid = 'pg_class'::regclass
				WHERE w.ev_class = ANY (touched) AND (w.ev_type = '1' OR w.ev_class = ANY (all_written))
			) AS n;
		EXIT WHEN reached.touched IS NULL OR (reached.touched = touched AND reached.written = all_written);
		touched := reached.touched;
		all_written := reached.written;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_internal.touched(oid[], oid[]) IS 'what is touched with relations';

/*
 * The expressions that are evaluated when these relations, as touched() gives them, are read, or written; as pg_depend
 * names them.  given_columns: of these, all that is stored is given, in the table and in its partitions.
 * fires_triggers: else who may set session_replication_role writes as a replica.
 */
CREATE FUNCTION snowflake_internal.expressions(
	touched oid[],
	written oid[],
	given_columns snowflake_internal.table_column[],
	fires_triggers boolean,
	OUT relation oid,
	OUT classid oid,
	OUT objid oid,
	OUT tree text) RETURNS SETOF record
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 100 SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	RETURN QUERY
	/* A query that only reads evaluates a CHECK for constraint exclusion alone. */
	SELECT c.conrelid, 'pg_constraint'::regclass::oid, c.oid, c.conbin::text
	FROM unnest(touched) AS t (oid) JOIN pg_constraint AS c ON c.conrelid = t.oid AND c.contype = 'c'
	WHERE current_setting('constraint_exclusion') <> 'off' OR c.conrelid = ANY (written)
	UNION ALL
	SELECT d.adrelid, 'pg_attrdef'::regclass, d.oid, d.adbin::text
	FROM pg_attrdef AS d JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
	WHERE d.adrelid = ANY (touched)
		AND (a.attgenerated <> ''
			 OR (d.adrelid = ANY (written)
				 AND ((coalesce(pg_partition_root(d.adrelid), d.adrelid), a.attname)
						NOT IN (SELECT g.relation, g.name FROM unnest(given_columns) AS g)
					  /* What a rule stores may leave out any column. */
					  OR EXISTS (SELECT FROM pg_rewrite AS w WHERE w.ev_class = ANY (written) AND w.ev_type <> '1'))))
	UNION ALL
	SELECT i.indrelid, 'pg_class'::regclass, i.indexrelid, concat(i.indexprs::text, i.indpred::text)
	FROM pg_index AS i
	WHERE i.indrelid = ANY (touched)
		AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL
			 /* An operator class, or a column's type, that is not PostgreSQL's own. */
			 OR EXISTS (SELECT FROM unnest(i.indclass) AS k (oid) WHERE k.oid >= 16384)
			 OR EXISTS (SELECT FROM pg_attribute AS a
						WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) AND a.atttypid >= 16384))
	UNION ALL
	SELECT s.stxrelid, 'pg_statistic_ext'::regclass, s.oid, s.stxexprs::text
	FROM pg_statistic_ext AS s
	WHERE s.stxrelid = ANY (touched) AND s.stxexprs IS NOT NULL
	UNION ALL
	SELECT p.partrelid, 'pg_class'::regclass, p.partrelid, p.partexprs::text
	FROM pg_partitioned_table AS p
	WHERE p.partrelid = ANY (touched)
	UNION ALL
	SELECT w.ev_class, 'pg_rewrite'::regclass, w.oid, concat(w.ev_qual::text, w.ev_action::text)
	FROM pg_rewrite AS w
	WHERE w.ev_class = ANY (touched)
		AND (w.ev_type = '1' OR (w.ev_enabled <> 'D' AND w.ev_class = ANY (written)))
	UNION ALL
	SELECT g.tgrelid, 'pg_trigger'::regclass, g.oid, g.tgqual::text
	FROM pg_trigger AS g
	WHERE g.tgrelid = ANY (written) AND NOT g.tgisinternal
		AND (g.tgenabled IN ('A', 'R')
			 OR g.tgenabled = 'O'
				AND (fires_triggers OR NOT has_parameter_privilege('session_replication_role', 'SET')));
END
$$;
COMMENT ON FUNCTION snowflake_internal.expressions(oid[], oid[], snowflake_internal.table_column[], boolean)
	IS 'the expressions that are evaluated when relations are read or written';

/*
 * Whether a function can do more than compute, whoever owns it: what is volatile, would call what its arguments name,
 * or tells of the server and its sessions what it does not tell everybody.  What makes a key by default is harmless.
 *
 * These extensions' own functions that are not in C execute text, and read what their arguments name.  Those that users
 * call on ids are in C.
 */
CREATE FUNCTION snowflake_internal.does_more(function oid) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN p.proname IN ('nextval', 'currval', 'snowflake_nextval', 'random', 'random_normal',
								   'gen_random_uuid', 'uuidv4', 'uuidv7', 'uuid_generate_v1', 'uuid_generate_v1mc',
								   'uuid_generate_v4', 'clock_timestamp', 'timeofday') THEN false
			ELSE p.provolatile = 'v' OR p.proretset
				OR (p.oid < 16384
					AND (p.proname ~ '_to_xml|^pg_input_'
						 OR p.proname IN ('ts_rewrite', 'ts_stat', 'current_setting', 'current_query')
						 /* What looks at objects, functions of languages that read code among it, or at sessions. */
						 OR (p.provolatile = 's'
							 AND (p.proargtypes::oid[] && ARRAY['oid'::regtype, 'internal'::regtype]::oid[]
								  OR (p.proname ^@ 'pg_'
									  AND p.proname NOT IN ('pg_typeof', 'pg_column_size', 'pg_client_encoding'))
								  OR (p.pronargs = 0
									  AND p.proname NOT IN (
										'now', 'transaction_timestamp', 'statement_timestamp', 'current_user',
										'session_user', 'current_database', 'current_schema', 'getdatabaseencoding',
										'version', 'json_build_array', 'json_build_object', 'jsonb_build_array',
										'jsonb_build_object'))))
						 /* Input functions are told of what type. */
						 OR (p.pronargs >= 2 AND p.proargtypes[1] = 'oid'::regtype
							 AND p.proargtypes[0] IN ('cstring'::regtype, 'internal'::regtype))))
				OR (p.prolang <> (SELECT l.oid FROM pg_language AS l WHERE l.lanname = 'c')
					AND EXISTS (SELECT FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid
								WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
									AND d.refclassid = 'pg_extension'::regclass
									AND e.extname IN ('snowflake', 'snowflake_migrate'))) END
	FROM pg_proc AS p
	WHERE p.oid = function
$$;
COMMENT ON FUNCTION snowflake_internal.does_more(oid) IS 'whether a function can do more than compute';

/*
 * Whether a function may cast what it is given, or make values of that type, and so does as the types' owners say, by
 * casts and domains' CHECKs.  One that takes any type may.  Of PostgreSQL's own, those in C do not, but for JSON.
 */
CREATE FUNCTION snowflake_internal.does_as_types_say(function oid) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT (p.oid < 16384
			AND p.proname ~ '^(row|array)_to_json$|^to_jsonb?$|^jsonb?_(build|agg|object_agg|populate)')
		OR ((p.oid >= 16384 OR p.prolang = (SELECT l.oid FROM pg_language AS l WHERE l.lanname = 'sql'))
			AND EXISTS (SELECT FROM pg_type AS y
						WHERE y.oid = ANY (p.proargtypes) AND y.typtype = 'p'
							AND (y.typname ^@ 'any' OR y.typname IN ('record', '_record'))))
	FROM pg_proc AS p
	WHERE p.oid = function
$$;
COMMENT ON FUNCTION snowflake_internal.does_as_types_say(oid)
	IS 'whether a function may run what the owners of its arguments'' types say';

/* The types, but PostgreSQL's own, of all that is computed or read in an expression. */
CREATE FUNCTION snowflake_internal.computed_types(tree text) RETURNS SETOF oid
LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 2 SET search_path = pg_catalog, pg_temp
AS $$
	SELECT DISTINCT y.oid
	FROM regexp_matches(tree, ':[a-z_]*typ(?:e|es|eid|eId|id) (?:[(]o )?([0-9 ]+)', 'g') AS m (ids)
		CROSS JOIN LATERAL regexp_split_to_table(btrim(m.ids[1]), ' +') AS i (id)
		JOIN pg_type AS y ON y.oid = i.id::oid
	WHERE y.oid >= 16384
$$;
COMMENT ON FUNCTION snowflake_internal.computed_types(text) IS 'the types of what is computed in an expression';

/*
 * The ranges, but PostgreSQL's own, that a type is, or is made of as a domain or an array.  A GiST index, and the
 * planner where it looks at a column's statistics, call what a range's owner has given it to measure distances.
 */
CREATE FUNCTION snowflake_internal.ranges_in(type oid) RETURNS SETOF oid
LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 2 SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE part (oid) AS (
		SELECT ranges_in.type
		UNION
		SELECT n.oid
		FROM part AS p JOIN pg_type AS y ON y.oid = p.oid
			CROSS JOIN LATERAL unnest(ARRAY[y.typbasetype, y.typelem]) AS n (oid)
		WHERE n.oid >= 16384
	)
	SELECT p.oid FROM part AS p JOIN pg_type AS y ON y.oid = p.oid
	WHERE y.typtype IN ('r', 'm') AND p.oid >= 16384
$$;
COMMENT ON FUNCTION snowflake_internal.ranges_in(oid) IS 'the ranges that a type is made of';

/*
 * Code of others, roles as other_roles() gives them, that would run when these relations, as touched() gives them, are
 * read, or written.  cast_columns: columns whose values are cast; others: see expressions().  Where values are
 * cast, a type's owner can add a cast, or a CHECK to a domain, at any time (is_possible); no lock is against that.
 * type: this type, where it is not a table's.
 *
 * In PL/pgSQL, as this is looked for in every transaction of a merge, and its plans are kept.
 */
CREATE FUNCTION snowflake_internal.foreign_code(
	touched oid[],
	written oid[],
	cast_columns snowflake_internal.table_column[],
	given_columns snowflake_internal.table_column[],
	fires_triggers boolean,
	others oid[],
	OUT relation regclass,
	OUT object text,
	OUT code text,
	OUT owner regrole,
	OUT is_possible boolean,
	OUT type regtype) RETURNS SETOF record
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	has_ranges CONSTANT boolean := EXISTS (
		SELECT FROM pg_range AS r JOIN pg_proc AS p ON p.oid IN (r.rngcanonical, r.rngsubdiff)
		WHERE p.proowner = ANY (others));
BEGIN
	RETURN QUERY
	WITH RECURSIVE expression AS MATERIALIZED (
		SELECT x.relation, x.classid, x.objid, x.tree
		FROM snowflake_internal.expressions(touched, written, given_columns, fires_triggers) AS x
	),
	in_tree (relation, classid, objid, function) AS MATERIALIZED (
		SELECT DISTINCT e.relation, e.classid, e.objid, m.ids[1]::oid
		FROM expression AS e,
			regexp_matches(e.tree, ':(?:funcid|opfuncid|aggfnoid|winfnoid|tsmhandler) ([0-9]+)', 'g') AS m (ids)
	),
	/* Expressions that cast by the type of what they are given.  SQL/JSON names no function. */
	casting AS MATERIALIZED (
		SELECT e.relation, e.classid, e.objid, e.tree
		FROM expression AS e
		WHERE e.tree ~ '[{]JSON(CONSTRUCTOR)?EXPR '
			OR EXISTS (
				SELECT
				FROM in_tree AS i
					JOIN (SELECT d.function
						  FROM (SELECT DISTINCT t.function FROM in_tree AS t OFFSET 0) AS d
						  WHERE snowflake_internal.does_as_types_say(d.function)) AS f ON f.function = i.function
				WHERE i.classid = e.classid AND i.objid = e.objid)
	),
	/*
	 * The types that expressions and columns use, each with all that it is made of; who uses it, and where.  is_cast:
	 * values of it are cast as its owner says.
	 */
	used (relation, classid, objid, attnum, type, is_cast) AS (
		SELECT e.relation, e.classid, e.objid, 0, d.refobjid, false
		FROM expression AS e
			JOIN pg_depend AS d ON d.classid = e.classid AND d.objid = e.objid AND d.refclassid = 'pg_type'::regclass
		UNION
		SELECT c.relation, c.classid, c.objid, 0, t.oid, true
		FROM casting AS c CROSS JOIN LATERAL snowflake_internal.computed_types(c.tree) AS t (oid)
		UNION
		SELECT e.relation, e.classid, e.objid, 0, r.oid, false
		FROM expression AS e
			CROSS JOIN LATERAL (
				SELECT t.oid FROM snowflake_internal.computed_types(e.tree) AS t (oid)
				UNION ALL
				SELECT a.atttypid
				FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
				WHERE e.classid = 'pg_class'::regclass AND i.indexrelid = e.objid AND a.atttypid >= 16384) AS t (oid)
			CROSS JOIN LATERAL snowflake_internal.ranges_in(t.oid) AS r (oid)
		WHERE has_ranges
		UNION
		SELECT a.attrelid, 'pg_class'::regclass, a.attrelid, a.attnum::int, a.atttypid, true
		FROM unnest(cast_columns) AS c JOIN pg_attribute AS a ON a.attrelid = c.relation AND a.attname = c.name
		WHERE a.attnum > 0 AND NOT a.attisdropped AND a.atttypid >= 16384
		UNION
		/* A domain's CHECKs may cast. */
		SELECT u.relation, u.classid, u.objid, u.attnum, n.type, u.is_cast OR y.typtype = 'd'
		FROM used AS u
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
	),
	/* With the constraints of domains; depends: what pg_depend knows it by. */
	evaluated (relation, classid, objid, attnum, depends_class, depends, tree) AS MATERIALIZED (
		SELECT e.relation, e.classid, e.objid, 0, e.classid, e.objid, e.tree FROM expression AS e
		UNION ALL
		SELECT u.relation, u.classid, u.objid, u.attnum, 'pg_constraint'::regclass, c.oid, c.conbin::text
		FROM used AS u JOIN pg_constraint AS c ON c.contypid = u.type
	),
	named AS MATERIALIZED (
		SELECT e.relation, e.classid, e.objid, e.attnum, d.refclassid, d.refobjid
		FROM evaluated AS e JOIN pg_depend AS d ON d.classid = e.depends_class AND d.objid = e.depends
		WHERE d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_opclass'::regclass)
	),
	/* is_named: the expression names the function itself. */
	called (relation, classid, objid, attnum, function, is_named) AS MATERIALIZED (
		SELECT n.relation, n.classid, n.objid, n.attnum, n.refobjid, true
		FROM named AS n WHERE n.refclassid = 'pg_proc'::regclass
		UNION
		SELECT n.relation, n.classid, n.objid, n.attnum, o.oprcode, true
		FROM named AS n JOIN pg_operator AS o ON o.oid = n.refobjid
		WHERE n.refclassid = 'pg_operator'::regclass
		UNION
		SELECT n.relation, n.classid, n.objid, n.attnum, f.oid, false
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
		SELECT i.relation, i.classid, i.objid, 0, i.function, true FROM in_tree AS i
		UNION
		SELECT e.relation, e.classid, e.objid, e.attnum, m.ids[1]::oid, true
		FROM evaluated AS e, regexp_matches(e.tree, ':(?:funcid|opfuncid) ([0-9]+)', 'g') AS m (ids)
		WHERE e.depends <> e.objid
		UNION
		SELECT u.relation, u.classid, u.objid, u.attnum, f.oid, false
		FROM used AS u
			CROSS JOIN LATERAL (
				SELECT c.castfunc FROM pg_cast AS c WHERE u.type IN (c.castsource, c.casttarget)
				UNION ALL
				SELECT p.oid::oid FROM pg_range AS r, unnest(ARRAY[r.rngcanonical, r.rngsubdiff]) AS p (oid)
				WHERE r.rngtypid = u.type) AS f (oid)
	),
	/* Once for each function. */
	powerful AS MATERIALIZED (
		SELECT d.function
		FROM (SELECT DISTINCT c.function FROM called AS c WHERE c.is_named OFFSET 0) AS d
		WHERE snowflake_internal.does_more(d.function)
	),
	code (relation, classid, objid, attnum, code_class, code, owner, is_possible) AS (
		SELECT f.relation, f.classid, f.objid, f.attnum, 'pg_proc'::regclass, p.oid, p.proowner, false
		FROM called AS f JOIN pg_proc AS p ON p.oid = f.function
		WHERE p.proowner = ANY (others)
		UNION ALL
		SELECT f.relation, f.classid, f.objid, f.attnum, 'pg_proc'::regclass, f.function, c.relowner, false
		FROM called AS f
			JOIN powerful AS p ON p.function = f.function
			JOIN pg_class AS c ON c.oid = f.relation
		WHERE c.relowner = ANY (others) AND f.is_named
		UNION ALL
		/*
		 * A trigger is whoever's had that right on the table.  Its condition is looked at always, and its function,
		 * which is told what to do by its arguments, while others have it.
		 */
		SELECT f.relation, f.classid, f.objid, f.attnum, 'pg_proc'::regclass, f.function,
			coalesce(nullif(g.grantee, 0), c.relowner), false
		FROM called AS f
			JOIN powerful AS p ON p.function = f.function
			JOIN pg_class AS c ON c.oid = f.relation
			JOIN pg_trigger AS t ON t.oid = f.objid
			LEFT JOIN LATERAL (
				SELECT max(a.grantee)
				FROM aclexplode(c.relacl) AS a
				WHERE a.privilege_type = 'TRIGGER' AND (a.grantee = 0 OR a.grantee = ANY (others))
			) AS g (grantee) ON true
		WHERE c.relowner <> ALL (others) AND f.classid = 'pg_trigger'::regclass AND f.is_named
			AND (f.function <> t.tgfoid OR g.grantee IS NOT NULL)
		UNION ALL
		/*
		 * A default may draw from a sequence that its table's owner must not use: it must name those that it draws
		 * from, as it then depends on them.
		 */
		SELECT e.relation, e.classid, e.objid, 0, 'pg_proc'::regclass, 'nextval(regclass)'::regprocedure, c.relowner,
			false
		FROM expression AS e JOIN pg_class AS c ON c.oid = e.relation
		WHERE c.relowner = ANY (others) AND e.tree ~ ':funcid 157[45] '
			AND ((SELECT count(*) FROM regexp_matches(e.tree, ':funcid 157[45] ', 'g')) > (
					SELECT count(*)
					FROM regexp_matches(e.tree, ':funcid 157[45] [^{}()]*:args [(][{]CONST :consttype 2205 ', 'g'))
				OR EXISTS (
					SELECT
					FROM pg_depend AS d JOIN pg_class AS q ON q.oid = d.refobjid
					WHERE d.classid = e.classid AND d.objid = e.objid AND d.refclassid = 'pg_class'::regclass
						AND CASE q.relkind
							WHEN 'S' THEN NOT has_sequence_privilege(c.relowner, q.oid, 'USAGE, UPDATE') END))
		UNION ALL
		/* The planner may take an operator's negator or commutator instead, which its owner chooses. */
		SELECT n.relation, n.classid, n.objid, n.attnum, 'pg_operator'::regclass, p.oid, p.oprowner, false
		FROM named AS n JOIN pg_operator AS p ON p.oid = n.refobjid
		WHERE n.refclassid = 'pg_operator'::regclass AND p.oprowner = ANY (others)
		UNION ALL
		/* What a view reads its owner can change at any time, and where a foreign table leads to. */
		SELECT c.oid, 'pg_class'::regclass, c.oid, 0, 'pg_class'::regclass, c.oid, c.relowner, false
		FROM pg_class AS c
		WHERE c.oid = ANY (touched) AND c.relkind IN ('v', 'm', 'f') AND c.relowner = ANY (others)
		UNION ALL
		SELECT f.ftrelid, 'pg_class'::regclass, f.ftrelid, 0, 'pg_foreign_server'::regclass, s.oid, s.srvowner, false
		FROM pg_foreign_table AS f JOIN pg_foreign_server AS s ON s.oid = f.ftserver
		WHERE f.ftrelid = ANY (touched) AND s.srvowner = ANY (others)
		UNION ALL
		SELECT u.relation, u.classid, u.objid, u.attnum, 'pg_type'::regclass, y.oid, y.typowner, u.is_cast
		FROM used AS u JOIN pg_type AS y ON y.oid = u.type
		WHERE y.typowner = ANY (others)
			AND (y.typtype = 'd' OR (u.is_cast AND y.typtype <> 'm' AND y.typcategory <> 'A'))
	)
	SELECT c.relation::regclass, pg_describe_object(c.classid, c.objid, c.attnum),
		pg_describe_object(c.code_class, c.code, 0), c.owner::regrole, bool_and(c.is_possible),
		(SELECT y.oid::regtype
		 FROM pg_type AS y LEFT JOIN pg_class AS r ON r.oid = y.typrelid
		 WHERE c.code_class = 'pg_type'::regclass AND y.oid = c.code AND (r.oid IS NULL OR r.relkind = 'c'))
	FROM code AS c
	GROUP BY c.relation, c.classid, c.objid, c.attnum, c.code_class, c.code, c.owner;
END
$$;
COMMENT ON FUNCTION snowflake_internal.foreign_code(
	oid[], oid[], snowflake_internal.table_column[], snowflake_internal.table_column[], boolean, oid[])
	IS 'other roles'' code that would run when relations are read or written';

/*
 * The locks that keep what was looked at as it is: which of these relations, in which mode, against which role (null:
 * against several), and whether it can be had.
 *
 * Others' own tables: no lock that keeps CREATE INDEX CONCURRENTLY and CREATE STATISTICS out is weaker, as they take
 * this one themselves.  So VACUUM waits as well, and the look of another superuser.
 *
 * Tables that others may refer to, of those whose rows are written or referred to: a foreign key to them would bring
 * its table along.
 *
 * What is in others' schemas: the owner of a schema drops what others have there, and puts something else in its place.
 * With CREATE on the database they do so with the whole schema, which a superuser alone can lock.
 *
 * A standby has none of the stronger locks, and what it replays does not wait for others; a read-only transaction can
 * lock no schema.
 */
CREATE FUNCTION snowflake_internal.definition_locks(
	relations oid[],
	referenced oid[],
	others oid[],
	OUT relation oid,
	OUT mode text,
	OUT role oid,
	OUT can_lock boolean,
	OUT can_lock_schema boolean) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	can_lock_schemas CONSTANT boolean := snowflake_internal.can_lock_schemas();
BEGIN
	RETURN QUERY
	WITH class AS MATERIALIZED (
		SELECT c.* FROM pg_class AS c WHERE c.oid = ANY (relations) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
	),
	foreign_schema AS MATERIALIZED (
		SELECT n.oid, o.role, o.can_rename
		FROM (SELECT DISTINCT c.relnamespace FROM class AS c) AS n (oid)
			CROSS JOIN LATERAL snowflake_internal.other_schema_owner(n.oid, others) AS o
		WHERE o.role IS NOT NULL
	),
	lock AS (
		SELECT c.oid, c.relnamespace, c.relkind, 'SHARE UPDATE EXCLUSIVE' AS mode, c.relowner AS role
		FROM class AS c
		WHERE c.relowner = ANY (others) AND c.relkind IN ('r', 'p')
		UNION ALL
		SELECT c.oid, c.relnamespace, c.relkind, 'ROW EXCLUSIVE', nullif(min(g.grantee), 0::oid)
		FROM class AS c
			CROSS JOIN LATERAL (
				SELECT c.relacl
				UNION ALL
				SELECT a.attacl FROM pg_attribute AS a WHERE a.attrelid = c.oid AND NOT a.attisdropped) AS l (acl)
			CROSS JOIN LATERAL aclexplode(l.acl) AS g
		WHERE c.oid = ANY (referenced) AND c.relowner <> ALL (others) AND c.relkind IN ('r', 'p')
			AND g.privilege_type = 'REFERENCES' AND g.grantee = ANY (others || 0::oid)
		GROUP BY c.oid, c.relnamespace, c.relkind
		UNION ALL
		SELECT c.oid, c.relnamespace, c.relkind, 'ACCESS SHARE', s.role
		FROM class AS c JOIN foreign_schema AS s ON s.oid = c.relnamespace
		WHERE c.relowner <> ALL (others)
	)
	SELECT l.oid, l.mode, l.role,
		l.relkind IN ('r', 'p', 'v') AND NOT pg_is_other_temp_schema(l.relnamespace)
			AND CASE l.mode WHEN 'ACCESS SHARE' THEN has_table_privilege(l.oid, 'SELECT')
				ELSE NOT pg_is_in_recovery() AND has_table_privilege(l.oid, 'UPDATE, DELETE, TRUNCATE') END,
		can_lock_schemas OR s.can_rename IS NOT TRUE
	FROM lock AS l LEFT JOIN foreign_schema AS s ON s.oid = l.relnamespace;
END
$$;
COMMENT ON FUNCTION snowflake_internal.definition_locks(oid[], oid[], oid[])
	IS 'the locks that keep relations from being changed by other roles';

/* Keeps others from renaming these schemas, where the current role can. */
CREATE FUNCTION snowflake_internal.lock_schemas(schemas oid[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF snowflake_internal.can_lock_schemas() THEN
		PERFORM FROM pg_namespace AS n WHERE n.oid = ANY (schemas) ORDER BY n.oid FOR SHARE;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_internal.lock_schemas(oid[])
	IS 'for the extension''s own use: keeps schemas from being renamed';

/*
 * Until the end of the transaction, keeps others from changing, renaming or replacing these relations, as far as
 * definition_locks() can; what is not locked, foreign_code() or dangerous_code() names.
 */
CREATE FUNCTION snowflake_internal.lock_definitions(relations oid[], referenced oid[], others oid[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	lock record;
	renamed text;
BEGIN
	PERFORM snowflake_internal.lock_schemas(ARRAY(
		SELECT DISTINCT c.relnamespace
		FROM snowflake_internal.definition_locks(relations, referenced, others) AS l
			JOIN pg_class AS c ON c.oid = l.relation));
	FOR lock IN
		SELECT l.mode, array_agg(l.relation ORDER BY l.relation) AS oids,
			array_agg(l.relation::regclass::text ORDER BY l.relation) AS names
		FROM snowflake_internal.definition_locks(relations, referenced, others) AS l
		WHERE l.can_lock
		GROUP BY l.mode
		ORDER BY l.mode DESC
	LOOP
		EXECUTE format('LOCK TABLE ONLY %s IN %s MODE', array_to_string(lock.names, ', ONLY '), lock.mode);
		SELECT l.name INTO renamed FROM unnest(lock.oids, lock.names) AS l (oid, name)
			WHERE to_regclass(l.name) IS DISTINCT FROM l.oid::regclass LIMIT 1;
		IF FOUND THEN
			RAISE EXCEPTION USING ERRCODE = 'object_in_use',
				MESSAGE = format('table %s was renamed while it was to be locked', renamed);
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_internal.lock_definitions(oid[], oid[], oid[])
	IS 'keeps relations from being changed by other roles';

/* Whether there is anything that is these roles': where nothing is, nothing need be looked for. */
CREATE FUNCTION snowflake_internal.has_foreign_objects(others oid[], written oid[]) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	/* Every table has a type. */
	RETURN EXISTS (SELECT FROM pg_type AS t WHERE t.typowner = ANY (others))
		OR EXISTS (SELECT FROM pg_proc AS p WHERE p.proowner = ANY (others))
		OR EXISTS (SELECT FROM pg_operator AS o WHERE o.oprowner = ANY (others))
		OR EXISTS (SELECT FROM pg_foreign_server AS s WHERE s.srvowner = ANY (others))
		/* Whose a trigger is, is not on record. */
		OR EXISTS (SELECT FROM pg_trigger AS g WHERE g.tgrelid = ANY (written) AND NOT g.tgisinternal);
END
$$;
COMMENT ON FUNCTION snowflake_internal.has_foreign_objects(oid[], oid[])
	IS 'whether anything is another role''s, or may be';

/*
 * foreign_code() where a superuser's rights are at stake, and nothing otherwise.  What it looked at stays as it is
 * until the end of the transaction.  To what is written, or given as referenced, nobody can add a foreign key either.
 */
CREATE FUNCTION snowflake_internal.dangerous_code(
	read oid[],
	written oid[],
	cast_columns snowflake_internal.table_column[] DEFAULT '{}',
	given_columns snowflake_internal.table_column[] DEFAULT '{}',
	referenced oid[] DEFAULT '{}',
	fires_triggers boolean DEFAULT false,
	OUT relation regclass,
	OUT object text,
	OUT problem text,
	OUT advice text,
	OUT owner regrole) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	strongest CONSTANT record := snowflake_internal.strongest_role();
	others oid[];
	seen record;
	locked oid[];
BEGIN
	IF NOT strongest.is_superuser THEN
		RETURN;
	END IF;
	others := snowflake_internal.other_roles();
	/* While it waits for a lock, partitions may be attached. */
	LOOP
		SELECT t.* INTO seen FROM snowflake_internal.touched(read, written) AS t;
		EXIT WHEN seen.touched = locked;
		PERFORM snowflake_internal.lock_definitions(seen.touched, seen.all_written || referenced, others);
		locked := seen.touched;
	END LOOP;
	IF snowflake_internal.has_foreign_objects(others, seen.all_written) THEN
		RETURN QUERY
			SELECT c.relation, c.object,
				format('code of role %s would run with the rights of role %s: %s', c.owner, strongest.role, c.code),
				concat_ws(' ',
					format('Connect as role %s, or as one with rights on the tables that is no superuser. '
							   'SET ROLE is not enough, as the code could go back.', c.owner),
					CASE WHEN c.type IS NOT NULL
						THEN format('Or take the type over: ALTER TYPE %s OWNER TO %s;', c.type, strongest.role) END),
				c.owner
			FROM snowflake_internal.foreign_code(
				seen.touched, seen.all_written, cast_columns, given_columns, fires_triggers, others) AS c
			ORDER BY c.relation::text COLLATE "C", c.object COLLATE "C", c.code COLLATE "C";
		IF FOUND THEN
			RETURN;
		END IF;
	END IF;
	RETURN QUERY
		SELECT l.relation::regclass, NULL::text,
			format('code of %s would run with the rights of role %s '
					   'if it was added meanwhile, as the %s cannot be locked',
				   coalesce('role ' || l.role::regrole::text, 'other roles'), strongest.role,
				   CASE WHEN l.can_lock THEN 'schema of the table' ELSE 'table' END),
			CASE WHEN pg_is_in_recovery() THEN 'Ask the primary, or connect as a role that is no superuser.'
				WHEN l.can_lock AND r.rolsuper
					THEN 'Use a transaction that is not read-only, or connect as a role that is no superuser.'
				WHEN pg_is_other_temp_schema(c.relnamespace)
					THEN format('Wait until the session that made it ends, or connect as role %s.', c.relowner::regrole)
				ELSE format('Connect as %s, or as %s.',
							coalesce('role ' || l.role::regrole::text, 'a role that is no superuser'),
							CASE WHEN r.rolsuper THEN 'one with rights on the tables that is no superuser'
								ELSE 'a superuser without SET ROLE' END) END,
			l.role::regrole
		FROM snowflake_internal.definition_locks(seen.touched, seen.all_written || referenced, others) AS l
			JOIN pg_class AS c ON c.oid = l.relation
			JOIN pg_roles AS r ON r.rolname = current_user
		WHERE NOT (l.can_lock AND l.can_lock_schema)
		ORDER BY l.relation::regclass::text COLLATE "C", l.mode;
	/* With an older snapshot, the look would not see what was planted since. */
	IF NOT FOUND AND current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
		RETURN QUERY
			SELECT c.oid::regclass, NULL::text,
				format('code of role %s would run with the rights of role %s '
						   'if it was added since the transaction began',
					   c.relowner::regrole, strongest.role),
				'Use a READ COMMITTED transaction.', NULL::regrole
			FROM pg_class AS c
			WHERE c.oid = ANY (seen.touched) AND c.relowner = ANY (others)
			ORDER BY c.oid::regclass::text COLLATE "C"
			LIMIT 1;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_internal.dangerous_code(
	oid[], oid[], snowflake_internal.table_column[], snowflake_internal.table_column[], oid[], boolean)
	IS 'other roles'' code that would run with a superuser''s rights';

/* Raises an error where there is such code. */
CREATE FUNCTION snowflake_internal.refuse_dangerous_code(
	read oid[],
	written oid[],
	cast_columns snowflake_internal.table_column[] DEFAULT '{}',
	given_columns snowflake_internal.table_column[] DEFAULT '{}',
	fires_triggers boolean DEFAULT false) RETURNS void
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
			  FROM snowflake_internal.dangerous_code(
				read, written, cast_columns, given_columns, fires_triggers => fires_triggers) AS c
			  LIMIT 20) AS d;
	IF problems IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = 'cannot run code of other roles with the rights of a superuser',
			DETAIL = problems,
			HINT = first_advice;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_internal.refuse_dangerous_code(
	oid[], oid[], snowflake_internal.table_column[], snowflake_internal.table_column[], boolean)
	IS 'an error where other roles'' code would run with a superuser''s rights';
