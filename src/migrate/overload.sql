/*
 * Code that could be called in the place of other code: expressions that are read anew, as text, look for their
 * functions and operators by name.
 */

/*
 * Whether an expression that is read anew, by its tree as the catalogs have it, may find another function or operator
 * than the one that it uses now: what is cast by itself on the way (COERCE_IMPLICIT_CAST is 2), or takes any type, a
 * domain or a row, another could fit better.  Where each is given its very types, it is found alone.
 */
CREATE FUNCTION snowflake_migrate_internal.is_vague(tree text, class oid, object oid) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT tree ~ E':[a-z_]*format 2\\M|[{]NAMEDARGEXPR ' OR EXISTS (
		SELECT
		FROM (
				SELECT p.provariadic <> 0, p.proargtypes::oid[]
				FROM pg_proc AS p WHERE class = 'pg_proc'::regclass AND p.oid = object
				UNION ALL
				SELECT false, ARRAY[o.oprleft, o.oprright]
				FROM pg_operator AS o WHERE class = 'pg_operator'::regclass AND o.oid = object
			) AS f (is_variadic, types)
		WHERE f.is_variadic
			OR EXISTS (SELECT FROM pg_type AS y WHERE y.oid = ANY (f.types) AND y.typtype IN ('p', 'd', 'c')))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.is_vague(text, oid, oid)
	IS 'for snowflake_migrate''s own use: whether an expression that is read anew may find another function';

/*
 * A role, if there is one, that has fewer rights than the caller, and could have code of its own called in the place of
 * a function or an operator that is looked for anew by its name: it may create others in the schema, has done so, or
 * owns a type of which there is one of that name for its values, as it can add a cast.
 */
CREATE FUNCTION snowflake_migrate_internal.overloader(class oid, object oid) RETURNS oid
LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
	WITH namesake (schema, owner, types) AS (
		SELECT n.pronamespace, n.proowner, n.proargtypes::oid[]
		FROM pg_proc AS p JOIN pg_proc AS n ON n.proname = p.proname AND n.pronamespace = p.pronamespace
		WHERE class = 'pg_proc'::regclass AND p.oid = object
		UNION ALL
		SELECT n.oprnamespace, n.oprowner, ARRAY[n.oprleft, n.oprright]
		FROM pg_operator AS o JOIN pg_operator AS n ON n.oprname = o.oprname AND n.oprnamespace = o.oprnamespace
		WHERE class = 'pg_operator'::regclass AND o.oid = object
	)
	SELECT coalesce(
		(SELECT snowflake_internal.other_creator(n.schema) FROM namesake AS n LIMIT 1),
		(SELECT r.role
		 FROM namesake AS n
			CROSS JOIN LATERAL (
				SELECT n.owner
				UNION ALL
				SELECT e.typowner
				FROM pg_type AS y JOIN pg_type AS e ON e.oid IN (y.oid, y.typelem, y.typbasetype)
				WHERE y.oid = ANY (n.types)) AS r (role)
		 WHERE r.role = ANY ((SELECT snowflake_internal.other_roles())::oid[])
		 ORDER BY r.role
		 LIMIT 1))
	FROM pg_namespace AS s
	WHERE s.nspname = 'pg_catalog' AND s.oid NOT IN (SELECT n.schema FROM namesake AS n)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.overloader(oid, oid)
	IS 'for snowflake_migrate''s own use: whose code could be called in the place of a function or an operator';

/* What is said of a role that could have its code called in the place of a function, an operator, or a type's cast. */
CREATE FUNCTION snowflake_migrate_internal.overload_report(
	role oid,
	class oid,
	object oid,
	OUT problem text,
	OUT advice text)
LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
	SELECT format('code of role %s would run with the rights of role %s if it took the place of %s',
			overload_report.role::regrole, s.role, pg_describe_object(class, object, 0)),
		format('Let no other role create in the schema of the function or operator, nor own it, the type, or '
				   'another of the same name there%s.',
			   CASE WHEN s.is_superuser THEN '; or connect as a role that is no superuser' ELSE '' END)
	FROM snowflake_internal.strongest_role() AS s
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.overload_report(oid, oid, oid)
	IS 'for snowflake_migrate''s own use: what is said of who could have code called in another''s place';
