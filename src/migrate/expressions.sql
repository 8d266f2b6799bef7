/*
 * Expressions that somebody declared: what they read and call, before they are planned, which would run code.  As the
 * query of a view, an expression is only parsed, and the view's dependencies tell.
 */

/*
 * A temporary view over all of these queries.  Whoever makes it drops it: what it depends on could not be changed while
 * it is there.
 */
CREATE FUNCTION snowflake_migrate_internal.create_expressions_view(queries text[]) RETURNS regclass
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	EXECUTE 'CREATE TEMPORARY VIEW snowflake_expressions AS ' || (
		SELECT string_agg(format(E'SELECT 1 AS n FROM (%s\n) AS q', q.query), ' UNION ALL ' ORDER BY q.n)
		FROM unnest(queries) WITH ORDINALITY AS q (query, n));
	RETURN 'pg_temp.snowflake_expressions'::regclass;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.create_expressions_view(text[])
	IS 'for snowflake_migrate''s own use: a view that tells what expressions depend on';

/*
 * Whose code these queries would run with the caller's rights, or could come to run: they are read anew each time, as
 * text, so that nothing keeps what they name from being put in the place of another.  In a superuser's expressions
 * nothing may be in a schema that another role owns, or can create in (overload.sql).
 */
CREATE FUNCTION snowflake_migrate_internal.expression_problems(
	queries text[],
	OUT problem text,
	OUT advice text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	caller CONSTANT record := snowflake_internal.strongest_role();
	others CONSTANT oid[] := snowflake_internal.other_roles();
	view regclass;
BEGIN
	IF cardinality(queries) = 0 OR cardinality(others) = 0 THEN
		RETURN;
	END IF;
	view := snowflake_migrate_internal.create_expressions_view(queries);
	RETURN QUERY
		SELECT DISTINCT d.problem, d.advice
		FROM snowflake_internal.dangerous_code(ARRAY(
			SELECT r.oid
			FROM snowflake_migrate_internal.read_by(view, false) AS r
			WHERE r.class = 'pg_class'::regclass AND r.oid <> view), '{}') AS d;
	/* Of the view itself, what it calls: that it is the current role's does no harm. */
	RETURN QUERY
		SELECT DISTINCT
			format('code of role %s would run with the rights of role %s: %s', c.owner, caller.role, c.code),
			format('Call nothing that role %s could change.', c.owner)
		FROM snowflake_internal.foreign_code(ARRAY[view::oid], '{}', '{}', '{}', false, others) AS c
		WHERE c.code <> pg_describe_object('pg_class'::regclass, view, 0);
	RETURN QUERY
		WITH tree AS MATERIALIZED (
			SELECT w.oid, w.ev_action::text AS tree FROM pg_rewrite AS w WHERE w.ev_class = view
		),
		used (class, oid, schema) AS (
			SELECT d.refclassid, d.refobjid, coalesce(f.pronamespace, o.oprnamespace)
			FROM tree AS w
				JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
				LEFT JOIN pg_proc AS f ON d.refclassid = 'pg_proc'::regclass AND f.oid = d.refobjid
				LEFT JOIN pg_operator AS o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
			WHERE f.oid IS NOT NULL OR o.oid IS NOT NULL
		),
		planter AS (
			SELECT u.class, u.oid, coalesce(snowflake_migrate_internal.overloader(u.class, u.oid),
				CASE WHEN caller.is_superuser
					THEN (SELECT s.role FROM snowflake_internal.other_schema_owner(u.schema, others) AS s) END) AS role
			FROM used AS u
			UNION
			/* Its owner can add casts, which is no news to who is no superuser. */
			SELECT 'pg_type'::regclass, y.oid, y.typowner
			FROM tree AS w
				CROSS JOIN LATERAL snowflake_internal.computed_types(w.tree) AS t (oid)
				JOIN pg_type AS y ON y.oid = t.oid
			WHERE caller.is_superuser AND y.typowner = ANY (others)
		)
		SELECT o.problem, o.advice
		FROM planter AS p
			CROSS JOIN LATERAL snowflake_migrate_internal.overload_report(p.role, p.class, p.oid) AS o
		WHERE p.role IS NOT NULL
		ORDER BY 1;
	DROP VIEW pg_temp.snowflake_expressions;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.expression_problems(text[])
	IS 'for snowflake_migrate''s own use: whose code expressions would run';

/* An error where a superuser would run another role's code by a query. */
CREATE FUNCTION snowflake_migrate_internal.refuse_expressions(queries text[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	first record;
BEGIN
	IF NOT (SELECT s.is_superuser FROM snowflake_internal.strongest_role() AS s) THEN
		RETURN;
	END IF;
	SELECT p.* INTO first FROM snowflake_migrate_internal.expression_problems(queries) AS p LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = 'cannot run code of other roles with the rights of a superuser',
			DETAIL = first.problem || '.', HINT = first.advice;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_expressions(text[])
	IS 'for snowflake_migrate''s own use: an error where an expression would run code of other roles';

/* The expressions that a run evaluates, as queries; label: what they were declared for. */
CREATE FUNCTION snowflake_migrate_internal.declared_queries(
	run_ bigint,
	OUT relation regclass,
	OUT label text,
	OUT query text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH t AS MATERIALIZED (
		SELECT p.no, p.relation, p.condition, format('ONLY %s AS %I', p.relation, c.relname) AS named
		FROM snowflake_migrate_internal.plan_tables AS p JOIN pg_class AS c ON c.oid = p.relation
		WHERE p.run = run_
	)
	SELECT t.relation, r.name, format('SELECT (%s) IS TRUE FROM %s', r.condition, t.named)
	FROM snowflake_migrate_internal.plan_references AS r JOIN t USING (no)
	WHERE r.run = run_ AND r.condition IS NOT NULL
	UNION ALL
	SELECT t.relation, c.name, format('SELECT (%s) IS TRUE FROM %s', k.condition, t.named)
	FROM snowflake_migrate_internal.plan_columns AS c
		JOIN t USING (no)
		CROSS JOIN LATERAL unnest(c.kept_conditions) AS k (condition)
	WHERE c.run = run_ AND k.condition IS NOT NULL
	UNION ALL
	SELECT t.relation, 'only', format('SELECT (%s) IS TRUE FROM %s', t.condition, t.named)
	FROM t
	WHERE t.condition IS NOT NULL
	UNION ALL
	SELECT t.relation, p.constraint_name, format('SELECT 1 FROM %s ORDER BY %s', t.named, o.ordering)
	FROM snowflake_migrate.declared_policies AS p
		JOIN t USING (relation)
		CROSS JOIN LATERAL (VALUES (CASE p.policy WHEN 'rerank' THEN p.argument END), (p.precedence)) AS o (ordering)
	WHERE o.ordering IS NOT NULL
	UNION ALL
	SELECT t.relation, c.combined_by, format('SELECT %s FROM ONLY %s AS kept, ONLY %2$s AS gone', c.combine, t.relation)
	FROM snowflake_migrate_internal.plan_columns AS c
		JOIN t USING (no)
		JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attname = c.name
	WHERE c.run = run_ AND c.combine IS NOT NULL
		AND snowflake_migrate_internal.combining(c.combine, '', a.atttypid, '') IS NULL
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.declared_queries(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the expressions that a run evaluates';

/*
 * Adds to the report of a run which of its expressions would run other roles' code.  Returns whether rows may be read;
 * those that are no superuser's may always.
 */
CREATE FUNCTION snowflake_migrate_internal.check_expressions(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	is_superuser CONSTANT boolean := (SELECT s.is_superuser FROM snowflake_internal.strongest_role() AS s);
	severity CONSTANT text := CASE WHEN is_superuser THEN 'error' ELSE 'warning' END;
	declared record;
	is_clean boolean := true;
BEGIN
	BEGIN
		/* All at once: most often there is nothing. */
		PERFORM FROM snowflake_migrate_internal.expression_problems(
			ARRAY(SELECT d.query FROM snowflake_migrate_internal.declared_queries(run_) AS d));
		IF NOT FOUND THEN
			RETURN true;
		END IF;
	EXCEPTION WHEN syntax_error_or_access_rule_violation OR data_exception THEN
		NULL;
	END;
	FOR declared IN SELECT d.* FROM snowflake_migrate_internal.declared_queries(run_) AS d LOOP
		BEGIN
			PERFORM snowflake_migrate_internal.add_to_report(
					run_, severity, NULL, declared.relation::text, declared.label, p.problem, advice => p.advice)
				FROM snowflake_migrate_internal.expression_problems(ARRAY[declared.query]) AS p;
			is_clean := is_clean AND NOT FOUND;
		EXCEPTION
			/* What lacks something is in the report later.  Until then, somebody could give it what it lacks. */
			WHEN undefined_column OR undefined_function OR undefined_table OR syntax_error THEN
				IF is_superuser THEN
					is_clean := false;
					PERFORM snowflake_migrate_internal.add_to_report(
						run_, 'error', NULL, declared.relation::text, declared.label,
						'its expression cannot be evaluated: ' || SQLERRM,
						advice => 'Declare it again with another expression.');
				END IF;
			WHEN syntax_error_or_access_rule_violation OR data_exception THEN
				is_clean := false;
				PERFORM snowflake_migrate_internal.add_to_report(
					run_, severity, NULL, declared.relation::text, declared.label,
					'what its expression reads and calls cannot be found out: ' || SQLERRM,
					advice => 'Declare it again with another expression.');
		END;
	END LOOP;
	RETURN is_clean OR NOT is_superuser;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_expressions(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds other roles'' code in what is declared';
