/*
 * Whose a run is, and what others may do with it.
 *
 * A run executes SQL that its plan has: conditions of tables and references, expressions of policies.  Whoever merges
 * writes the plan and the maps with a role of its own.  So that nobody else runs what such a role wrote,
 *
 * - a run is continued, proved and taken back by the role that began it (refuse_other);
 * - rows about a run are written by that role alone (own_rows);
 * - when the maps are made, they go over to a superuser, in the transaction that made them (seal): from then on nobody
 *   can put anything else in their place.  Only such maps are read by others than their owner, and maps of anybody
 *   else by none (refuse_maps).
 * - a declared expression is run by the role that declared it, or where a superuser did (refuse_declared).
 */

/* Whether a role is a superuser; false where it does not exist any more. */
CREATE FUNCTION snowflake_migrate_internal.is_superuser(role name) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = role AND r.rolsuper) $$;
COMMENT ON FUNCTION snowflake_migrate_internal.is_superuser(name)
	IS 'for snowflake_migrate.merge()''s own use: whether a role is a superuser';

/* Whether the current role uses what another has written.  Superusers trust each other. */
CREATE FUNCTION snowflake_migrate_internal.is_trusted(role name) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT coalesce(
		role = current_user
			OR snowflake_migrate_internal.is_superuser(role) AND snowflake_migrate_internal.is_superuser(current_user),
		false)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.is_trusted(name)
	IS 'for snowflake_migrate.merge()''s own use: whether the current role uses what another has written';

/*
 * Whether the current role uses the record of a run, of one whose role has this name and this OID: a superuser who has
 * the name of one that was none would run what that one wrote.
 */
CREATE FUNCTION snowflake_migrate_internal.is_trusted_record(merged_by name, merged_by_id oid) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_migrate_internal.is_trusted(merged_by)
		AND (merged_by_id = snowflake_migrate_internal.current_role_id()
			 OR snowflake_migrate_internal.is_superuser(current_user)
				AND EXISTS (SELECT FROM pg_roles AS r WHERE r.oid = merged_by_id AND r.rolsuper))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.is_trusted_record(name, oid)
	IS 'for snowflake_migrate.merge()''s own use: whether the current role uses the record of a run';

/* Raises an error where a run is another role's. */
CREATE FUNCTION snowflake_migrate_internal.refuse_other(run_ bigint, merged_by name) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF NOT snowflake_migrate_internal.is_trusted(merged_by) THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = format('merge %s belongs to role "%s"', run_, merged_by),
			DETAIL = 'Its plan has expressions, which would run with the rights of the current user.',
			HINT = 'Connect as that role.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_other(bigint, name)
	IS 'for snowflake_migrate.merge()''s own use: an error where a run is another role''s';

/* A run of the current role's; an error where there is none, or it is another role's. */
CREATE FUNCTION snowflake_migrate_internal.own_run(run_ bigint) RETURNS snowflake_migrate.runs
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	run_row snowflake_migrate.runs;
BEGIN
	SELECT r.* INTO run_row FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	IF NOT FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_object', MESSAGE = format('merge %s does not exist', run_),
			HINT = 'See snowflake_migrate.runs.';
	END IF;
	PERFORM snowflake_migrate_internal.refuse_other(run_, run_row.merged_by);
	IF NOT snowflake_migrate_internal.is_trusted_record(run_row.merged_by, run_row.merged_by_id) THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = format('merge %s belongs to another role named "%s"', run_, run_row.merged_by),
			DETAIL = 'That role was dropped, or was one of the server that this database was dumped from.',
			HINT = format('A superuser who has read its plan can give it away: '
						  'UPDATE snowflake_migrate.runs AS r SET merged_by_id = o.oid FROM pg_roles AS o '
						  'WHERE o.rolname = r.merged_by AND r.run = %s;', run_);
	END IF;
	RETURN run_row;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.own_run(bigint)
	IS 'for snowflake_migrate.merge()''s own use: a run of the current role''s';

/*
 * Raises an error where the maps of a run are neither its role's nor a superuser's, or its schema is not: somebody else
 * could have listed rows there that the run did not bring, and put others in their place at any time.
 */
CREATE FUNCTION snowflake_migrate_internal.refuse_maps(run_ bigint) RETURNS void
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	run_row record;
	odd record;
BEGIN
	SELECT r.*, to_regnamespace('snowflake_merge_' || run_) AS schema INTO STRICT run_row
		FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	IF run_row.mapped_at IS NOT NULL
		AND NOT EXISTS (SELECT FROM pg_namespace AS n WHERE n.oid = run_row.schema) THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_schema_name',
			MESSAGE = format('the maps of merge %s do not exist', run_),
			DETAIL = format('There is no schema "%s".', 'snowflake_merge_' || run_);
	END IF;
	SELECT pg_describe_object(x.class, x.oid, 0) AS object, r.rolname INTO odd
		FROM (
				SELECT 'pg_namespace'::regclass AS class, n.oid, n.nspowner AS owner
				FROM pg_namespace AS n WHERE n.oid = run_row.schema
				UNION ALL
				SELECT 'pg_class'::regclass, c.oid, c.relowner
				FROM pg_class AS c WHERE c.relnamespace = run_row.schema
			) AS x
			JOIN pg_roles AS r ON r.oid = x.owner
		WHERE NOT r.rolsuper AND r.rolname <> run_row.merged_by
		ORDER BY x.class DESC, x.oid
		LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = format('the maps of merge %s are not as they were made', run_),
			DETAIL = format('Role %I owns %s.', odd.rolname, odd.object),
			HINT = 'Without its maps, a merge can be neither continued nor taken back.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_maps(bigint)
	IS 'for snowflake_migrate.merge()''s own use: an error where the maps of a run are somebody else''s';

/* Raises an error where an expression was declared by a role that is neither the current one nor a superuser. */
CREATE FUNCTION snowflake_migrate_internal.refuse_declared(declared_by name, relation regclass, object text)
RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF declared_by IS DISTINCT FROM current_user
		AND snowflake_migrate_internal.is_superuser(declared_by) IS NOT TRUE THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = format('an expression declared for table %s, "%s", was written by role "%s"',
							 relation, object, declared_by),
			DETAIL = 'It would run with the rights of the current user.',
			HINT = 'Read it, and declare it again yourself, or merge as that role: '
				'snowflake_migrate.grant_to() gives the rights to do so.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_declared(name, regclass, text)
	IS 'for snowflake_migrate.merge()''s own use: an error where an expression is another role''s';

/* A declaration carries who made it, or changed it last.  Superusers, who restore dumps, may write another role. */
CREATE FUNCTION snowflake_migrate_internal.set_declared_by() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF new.declared_by IS NULL OR NOT snowflake_migrate_internal.is_superuser(current_user) THEN
		new.declared_by := current_user;
	END IF;
	RETURN new;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.set_declared_by() IS 'for the declarations of a merge: who made one';

CREATE TRIGGER declared_by BEFORE INSERT OR UPDATE ON snowflake_migrate.declared_tables
	FOR EACH ROW EXECUTE FUNCTION snowflake_migrate_internal.set_declared_by();
CREATE TRIGGER declared_by BEFORE INSERT OR UPDATE ON snowflake_migrate.declared_references
	FOR EACH ROW EXECUTE FUNCTION snowflake_migrate_internal.set_declared_by();
CREATE TRIGGER declared_by BEFORE INSERT OR UPDATE ON snowflake_migrate.declared_policies
	FOR EACH ROW EXECUTE FUNCTION snowflake_migrate_internal.set_declared_by();
/* Also where session_replication_role is replica, which merging sets. */
ALTER TABLE snowflake_migrate.declared_tables ENABLE ALWAYS TRIGGER declared_by;
ALTER TABLE snowflake_migrate.declared_references ENABLE ALWAYS TRIGGER declared_by;
ALTER TABLE snowflake_migrate.declared_policies ENABLE ALWAYS TRIGGER declared_by;

/*
 * Rows about a run are written by the role that merges.  These are triggers, since a merge turns row security into an
 * error.  The number of a run was drawn before: else its rows could be there before the run of somebody else.
 */
CREATE FUNCTION snowflake_migrate_internal.own_rows() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	runs bigint[] := ARRAY[]::bigint[];
	run bigint;
BEGIN
	IF snowflake_migrate_internal.is_superuser(current_user) THEN
		RETURN NULL;
	END IF;
	IF tg_op <> 'DELETE' THEN
		runs := ARRAY(SELECT DISTINCT n.run FROM new_rows AS n);
	END IF;
	IF tg_op <> 'INSERT' THEN
		runs := runs || ARRAY(SELECT DISTINCT o.run FROM old_rows AS o);
	END IF;
	IF tg_relid = 'snowflake_migrate.runs'::regclass AND tg_op <> 'INSERT' THEN
		/* What the rows were is not in the table any more. */
		SELECT o.run INTO run FROM old_rows AS o
			WHERE (o.merged_by, o.merged_by_id) IS DISTINCT FROM
				(current_user, snowflake_migrate_internal.current_role_id())
			LIMIT 1;
	END IF;
	IF run IS NULL THEN
		SELECT u.run INTO run
			FROM unnest(runs) AS u (run)
			WHERE u.run > coalesce(pg_sequence_last_value('snowflake_migrate_internal.run_number'), 0)
				OR NOT (tg_relid = 'snowflake_migrate.runs'::regclass AND tg_op = 'DELETE')
					AND NOT EXISTS (SELECT FROM snowflake_migrate.runs AS r
									WHERE r.run = u.run AND r.merged_by = current_user
										AND r.merged_by_id = snowflake_migrate_internal.current_role_id())
			LIMIT 1;
	END IF;
	IF run IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = format('permission denied for rows of merge %s', run),
			DETAIL = format('In table %s, a role writes what its own merges are about.', tg_relid::regclass);
	END IF;
	RETURN NULL;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.own_rows()
	IS 'for snowflake_migrate.merge()''s own use: an error where rows are about another role''s run';

DO $$
DECLARE
	t regclass;
	event text;
	rows text;
BEGIN
	FOR t, event, rows IN
		SELECT t.relation, e.event, e.rows
		FROM unnest(ARRAY['snowflake_migrate.runs', 'snowflake_migrate.nodes', 'snowflake_migrate.report',
						  'snowflake_migrate.records', 'snowflake_migrate_internal.plan_tables',
						  'snowflake_migrate_internal.plan_columns', 'snowflake_migrate_internal.plan_references',
						  'snowflake_migrate_internal.plan_sources',
						  'snowflake_migrate_internal.plan_indexes',
						  'snowflake_migrate_internal.plan_batches']::regclass[]) AS t (relation),
			(VALUES ('INSERT', 'NEW TABLE AS new_rows'), ('DELETE', 'OLD TABLE AS old_rows'),
					('UPDATE', 'OLD TABLE AS old_rows NEW TABLE AS new_rows')) AS e (event, rows)
	LOOP
		EXECUTE format(
			'CREATE TRIGGER %I AFTER %s ON %s REFERENCING %s FOR EACH STATEMENT
				EXECUTE FUNCTION snowflake_migrate_internal.own_rows()', 'own_rows_' || lower(event), event, t, rows);
		EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', t, 'own_rows_' || lower(event));
	END LOOP;
END
$$;

/*
 * Whether a type is PostgreSQL's own, or a superuser's; of a domain its base, of an array its elements as well.  There
 * are no casts of a domain, but of an array of domains its owner can make one.
 */
CREATE FUNCTION snowflake_migrate_internal.is_trusted_type(type oid) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE base (oid) AS (
		SELECT type
		UNION ALL
		SELECT coalesce(nullif(t.typbasetype, 0), nullif(t.typelem, 0))
		FROM base AS b JOIN pg_type AS t ON t.oid = b.oid
		WHERE t.typbasetype <> 0 OR t.typelem <> 0 AND t.typcategory = 'A'
	)
	SELECT bool_and(t.typtype = 'd' OR t.typnamespace = 'pg_catalog'::regnamespace OR r.rolsuper IS TRUE)
	FROM base AS b JOIN pg_type AS t ON t.oid = b.oid LEFT JOIN pg_roles AS r ON r.oid = t.typowner
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.is_trusted_type(oid)
	IS 'for snowflake_migrate.merge()''s own use: whether a superuser answers for a type';

/*
 * Whether a row that is seen was written by this transaction, or by a subtransaction of it, by its xmin: of another
 * transaction, only what it has committed is seen.
 */
CREATE FUNCTION snowflake_migrate_internal.is_own_write(xmin xid) RETURNS boolean
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
	/* A subtransaction has a greater number; a lesser one would be of another 2^32. */
	SELECT CASE WHEN x.id >= c.id THEN pg_xact_status((c.epoch + x.id)::text::xid8) = 'in progress' ELSE false END
	FROM (SELECT xmin::text::bigint) AS x (id),
		(SELECT n % 4294967296, n - n % 4294967296
		 FROM (SELECT pg_current_xact_id()::text::bigint) AS f (n)) AS c (id, epoch)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.is_own_write(xid)
	IS 'for snowflake_migrate.merge()''s own use: whether this transaction has written a row';

/*
 * What in the schema of a run is not as make_maps() made it in this transaction, or null: whoever owns it could have
 * added what others would run when they read it.
 */
CREATE FUNCTION snowflake_migrate_internal.odd_in_maps(schema regnamespace) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off
AS $$
	WITH made AS MATERIALIZED (
		SELECT c.*, n.nspowner
		FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE c.relnamespace = odd_in_maps.schema
	)
	SELECT pg_describe_object(d.classid, d.objid, 0)
	FROM pg_depend AS d
	WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = odd_in_maps.schema
		AND d.classid NOT IN ('pg_class'::regclass, 'pg_default_acl'::regclass)
	UNION ALL
	/*
	 * Of a table that others see, another session could add something that is not seen here: what it commits later, or
	 * has since an older snapshot.  That its type belongs to a table is written when it is created, and never again.
	 */
	SELECT pg_describe_object('pg_class'::regclass, c.oid, 0)
	FROM made AS c
	WHERE c.relkind IN ('r', 'p') AND NOT EXISTS (
			SELECT FROM pg_depend AS d
			WHERE d.classid = 'pg_type'::regclass AND d.objid = c.reltype AND d.deptype = 'i'
				AND d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
				AND snowflake_migrate_internal.is_own_write(d.xmin))
	UNION ALL
	SELECT pg_describe_object('pg_class'::regclass, c.oid, 0)
	FROM made AS c
	WHERE c.relowner <> c.nspowner OR c.relpersistence <> 'p' OR c.relhasrules OR c.relhastriggers
		OR c.relrowsecurity OR c.relforcerowsecurity OR c.reloftype <> 0
		OR NOT (c.relkind = 'r' AND c.relname ~ '^(map|change|rank|former|unchanged|own|lost|edited)_[0-9]+$'
				OR c.relkind = 'p' AND c.relname ~ '^map(s_[0-9]+)?$' OR c.relkind IN ('i', 'I'))
	UNION ALL
	/* Columns of maps, which others read; types of keys may be anybody's.  Rights on a column outlive its owner. */
	SELECT pg_describe_object('pg_class'::regclass, c.oid, a.attnum)
	FROM pg_attribute AS a JOIN made AS c ON c.oid = a.attrelid
	WHERE c.relkind IN ('r', 'p') AND a.attnum > 0
		AND (a.attacl IS NOT NULL OR a.attgenerated <> '' OR a.attidentity <> ''
			 OR c.relname ~ '^map' AND NOT a.attisdropped AND a.attname !~ '^[on][1-9][0-9]*$'
				AND (a.attname, a.atttypid)
					NOT IN (('no', 'int'::regtype), ('source', 'int'::regtype), ('action', '"char"'::regtype)))
	UNION ALL
	SELECT pg_describe_object('pg_constraint'::regclass, o.oid, 0)
	FROM pg_constraint AS o JOIN made AS c ON c.oid = o.conrelid
	WHERE o.contype NOT IN ('p', 'u', 'n')
	UNION ALL
	SELECT pg_describe_object('pg_attrdef'::regclass, o.oid, 0)
	FROM pg_attrdef AS o JOIN made AS c ON c.oid = o.adrelid
	UNION ALL
	SELECT pg_describe_object('pg_policy'::regclass, o.oid, 0)
	FROM pg_policy AS o JOIN made AS c ON c.oid = o.polrelid
	UNION ALL
	SELECT pg_describe_object('pg_statistic_ext'::regclass, o.oid, 0)
	FROM pg_statistic_ext AS o JOIN made AS c ON c.oid = o.stxrelid
	UNION ALL
	SELECT pg_describe_object('pg_class'::regclass, i.indexrelid, 0)
	FROM pg_index AS i JOIN made AS c ON c.oid = i.indrelid
	WHERE i.indexprs IS NOT NULL OR pg_get_expr(i.indpred, i.indrelid) <> '(action = ''c''::"char")'
		/* What those of other kinds call may be in a type that is anybody's. */
		OR (SELECT m.amname FROM pg_class AS x JOIN pg_am AS m ON m.oid = x.relam WHERE x.oid = i.indexrelid) <> 'btree'
		OR EXISTS (SELECT FROM unnest(i.indclass) AS k (oid) JOIN pg_opclass AS o ON o.oid = k.oid
					JOIN pg_roles AS r ON r.oid = o.opcowner WHERE NOT r.rolsuper)
	UNION ALL
	SELECT pg_describe_object('pg_cast'::regclass, k.oid, 0)
	FROM made AS c
		JOIN pg_type AS y ON y.oid = c.reltype
		JOIN pg_cast AS k ON k.castsource IN (y.oid, y.typarray) OR k.casttarget IN (y.oid, y.typarray)
	UNION ALL
	SELECT pg_describe_object('pg_class'::regclass, h.inhrelid, 0)
	FROM pg_inherits AS h LEFT JOIN made AS c ON c.oid = h.inhrelid LEFT JOIN made AS p ON p.oid = h.inhparent
	WHERE (c.oid IS NOT NULL OR p.oid IS NOT NULL)
		AND (c.oid IS NULL OR p.oid IS NULL OR p.relkind NOT IN ('p', 'I'))
	UNION ALL
	SELECT pg_describe_object('pg_class'::regclass, o.partrelid, 0)
	FROM pg_partitioned_table AS o JOIN made AS c ON c.oid = o.partrelid
	WHERE o.partexprs IS NOT NULL
	LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.odd_in_maps(regnamespace)
	IS 'for snowflake_migrate.merge()''s own use: what in a run''s schema is not as it was made';

/*
 * Gives the schema of a run and its maps to a superuser, and rights on them to the role that made them.  As they were
 * made in this same transaction, nobody else can change them meanwhile.
 *
 * Anybody may call this, about a run of anybody: all that it does is to take maps away from who made them.  Those that
 * another role than the run's has made, where its own are gone, stay that one's, and are refused (refuse_maps()).
 */
CREATE FUNCTION snowflake_migrate_internal.seal(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	in_use CONSTANT boolean := snowflake_migrate_internal.is_in_use(run_);
	schema regnamespace;
	merger name;
	odd text;
	t record;
	grantee regrole;
BEGIN
	SELECT n.oid, r.rolname INTO schema, merger
		FROM pg_namespace AS n JOIN pg_roles AS r ON r.oid = n.nspowner
		WHERE n.nspname = 'snowflake_merge_' || run_ AND NOT r.rolsuper
			AND NOT EXISTS (SELECT FROM snowflake_migrate.runs AS u
							WHERE u.run = run_ AND (u.merged_by, u.merged_by_id) <> (r.rolname, r.oid))
		/* Nobody renames it. */
		FOR UPDATE OF n;
	IF NOT FOUND THEN
		RETURN;
	END IF;
	odd := snowflake_migrate_internal.odd_in_maps(schema);
	IF odd IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('the maps of merge %s are not as they were made', run_),
			DETAIL = format('There is %s.', odd);
	END IF;
	EXECUTE format('ALTER SCHEMA %s OWNER TO CURRENT_USER', schema);
	FOR grantee IN SELECT DISTINCT a.grantee
		FROM pg_namespace AS n, aclexplode(n.nspacl) AS a WHERE n.oid = schema AND a.grantee <> n.nspowner LOOP
		EXECUTE format('REVOKE CREATE ON SCHEMA %s FROM %s', schema,
					   CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE grantee::text END);
	END LOOP;
	FOR t IN SELECT c.oid::regclass AS name, c.relname FROM pg_class AS c
		WHERE c.relnamespace = schema AND c.relkind IN ('r', 'p') ORDER BY c.relkind, c.oid LOOP
		EXECUTE format('ALTER TABLE %s OWNER TO CURRENT_USER', t.name);
		FOR grantee IN SELECT DISTINCT a.grantee
			FROM pg_class AS c, aclexplode(c.relacl) AS a WHERE c.oid = t.name AND a.grantee <> c.relowner LOOP
			EXECUTE format('REVOKE INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON TABLE %s FROM %s', t.name,
						   CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE grantee::text END);
		END LOOP;
		/* What becomes of rows may be decided again, where the target is in use: these are rows, and no definitions. */
		EXECUTE format('GRANT SELECT%s ON TABLE %s TO %I',
					   CASE WHEN in_use THEN ', INSERT, UPDATE, DELETE'
							WHEN t.relname LIKE 'former%' THEN ', INSERT'
							WHEN t.relname LIKE 'unchanged%' THEN ', INSERT, DELETE' END,
					   t.name, merger);
	END LOOP;
	/* ANALYZE would call functions of such types as a superuser. */
	FOR t IN SELECT a.attrelid::regclass AS name, a.attname
		FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
		WHERE c.relnamespace = schema AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
			AND NOT snowflake_migrate_internal.is_trusted_type(a.atttypid) LOOP
		EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', t.name, t.attname);
	END LOOP;
	EXECUTE format('GRANT USAGE ON SCHEMA %s TO %I', schema, merger);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.seal(bigint)
	IS 'for snowflake_migrate.merge()''s own use: gives the maps of a run to a superuser';

/* Whether the current user can read a map without running what somebody else may have put in its place. */
CREATE FUNCTION snowflake_migrate_internal.is_safe_map(map regclass) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT c.relkind = 'r'
		AND (t.rolname = current_user AND s.rolname = current_user OR t.rolsuper AND s.rolsuper)
	FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		JOIN pg_roles AS t ON t.oid = c.relowner
		JOIN pg_roles AS s ON s.oid = n.nspowner
	WHERE c.oid = map
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.is_safe_map(regclass)
	IS 'for the view snowflake_migrate.map: whether the current user can read a map safely';
