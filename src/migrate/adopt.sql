/*
 * Existing integer keys go over to snowflake ids.
 *
 * A key's column is widened to bigint together with every column that references it, by a foreign key or as declared
 * with snowflake_migrate.declare_reference(), arrays included, those that reference these, and so on, each with its
 * partitions and inheritance children.  Old rows keep their ids, which must sort before all new ones.
 *
 * Nothing here has more rights than its caller.  The tables are locked in ACCESS EXCLUSIVE mode, all of them before
 * the first is changed, in the order of their OIDs, partitions and children after their parent: two calls can't
 * deadlock, and one that deadlocks with something else has not rewritten anything yet.
 *
 * adopt_columns() says what is changed, adopt_check() refuses what can't be, adopt_blockers() (in adopt_blockers.sql)
 * says what stands in the way, and adopt_steps() what is to be done.
 */

/* The type for ids in the place of a narrower one, or null. */
CREATE FUNCTION snowflake_migrate_internal.adopt_type(type oid) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN type IN ('smallint'::regtype, 'integer'::regtype) THEN 'bigint'
		WHEN type IN ('smallint[]'::regtype, 'integer[]'::regtype) THEN 'bigint[]' END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_type(oid)
	IS 'for snowflake_migrate.adopt()''s own use: the type for ids in the place of a narrower one';

/*
 * The columns that the adoption of these keys changes.  A column is listed with the topmost table that has it, its
 * root, which ALTER TABLE is called for; one that is inherited from several tables, once for each.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_columns(
	tables regclass[],
	columns name[],
	OUT root regclass,
	OUT member regclass,
	OUT attnum smallint,
	OUT attname name,
	OUT adopted boolean,
	OUT widened boolean,
	OUT new_type text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE
	given (relid, attname) AS (
		SELECT g.relid, g.attname FROM unnest(tables, columns) AS g (relid, attname)
	),
	reached (relid, attnum) AS (
		SELECT a.attrelid, a.attnum
		FROM given AS g JOIN pg_attribute AS a ON a.attrelid = g.relid AND a.attname = g.attname
		UNION
		SELECT n.relid, n.attnum
		FROM reached AS r JOIN pg_attribute AS a ON a.attrelid = r.relid AND a.attnum = r.attnum,
			LATERAL (
				SELECT b.attrelid, b.attnum
				FROM (SELECT i.inhparent FROM pg_inherits AS i WHERE i.inhrelid = r.relid
					  UNION ALL
					  SELECT i.inhrelid FROM pg_inherits AS i WHERE i.inhparent = r.relid) AS kin (relid)
					JOIN pg_attribute AS b ON b.attrelid = kin.relid AND b.attname = a.attname
				UNION ALL
				SELECT f.conrelid, f.conkey[k.i]
				FROM pg_constraint AS f, generate_subscripts(f.confkey, 1) AS k (i)
				WHERE f.contype = 'f' AND f.confrelid = r.relid AND f.confkey[k.i] = r.attnum
				UNION ALL
				SELECT b.attrelid, b.attnum
				FROM snowflake_migrate.declared_references AS d
					JOIN pg_attribute AS b ON b.attrelid = d.relation AND b.attname = d.column_name
				WHERE d.referenced = r.relid
					AND (b.atttypid = 'bigint'::regtype
						 OR snowflake_migrate_internal.adopt_type(b.atttypid) IS NOT NULL
						 /* One that can't be widened stands in the way. */
						 OR EXISTS (SELECT FROM pg_type AS y
									WHERE y.oid = b.atttypid
										AND snowflake_migrate_internal.adopt_type(y.typbasetype) IS NOT NULL))
					AND EXISTS (SELECT FROM given AS g WHERE g.relid = r.relid AND g.attname = a.attname)
			) AS n (relid, attnum)
	),
	tree (root, relid, attnum) AS (
		SELECT r.relid, r.relid, r.attnum
		FROM reached AS r JOIN pg_attribute AS a ON a.attrelid = r.relid AND a.attnum = r.attnum
		WHERE a.attinhcount = 0
		UNION
		SELECT t.root, b.attrelid, b.attnum
		FROM tree AS t
			JOIN pg_attribute AS a ON a.attrelid = t.relid AND a.attnum = t.attnum
			JOIN pg_inherits AS i ON i.inhparent = t.relid
			JOIN pg_attribute AS b ON b.attrelid = i.inhrelid AND b.attname = a.attname
	)
	SELECT t.root, t.relid, t.attnum, a.attname,
		EXISTS (SELECT FROM given AS g WHERE g.relid = t.root AND g.attname = a.attname),
		n.type IS NOT NULL, n.type
	FROM tree AS t JOIN pg_attribute AS a ON a.attrelid = t.relid AND a.attnum = t.attnum
		CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.adopt_type(a.atttypid)) AS n (type)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_columns(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: the columns that it changes';

/* The columns of the primary keys.  A relation that is no table gets none: adopt_check() refuses it. */
CREATE FUNCTION snowflake_migrate_internal.adopt_keys(tables regclass[]) RETURNS name[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	keys name[];
	keyless regclass;
BEGIN
	SELECT array_agg(a.attname ORDER BY g.n),
			(array_agg(g.relid ORDER BY g.n) FILTER (WHERE a.attname IS NULL AND c.relkind IN ('r', 'p')))[1]
		INTO keys, keyless
		FROM unnest(tables) WITH ORDINALITY AS g (relid, n)
			LEFT JOIN pg_class AS c ON c.oid = g.relid
			LEFT JOIN pg_index AS i ON i.indrelid = g.relid AND i.indisprimary AND i.indnkeyatts = 1
			LEFT JOIN pg_attribute AS a ON a.attrelid = g.relid AND a.attnum = i.indkey[0];
	IF keyless IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_column_reference',
			MESSAGE = format('table %s has no primary key of one column', keyless),
			HINT = 'Give the columns to adopt, one for each table.';
	END IF;
	RETURN coalesce(keys, '{}');
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_keys(regclass[])
	IS 'for snowflake_migrate.adopt()''s own use: the columns of the primary keys';

/* Raises an error where this is not a table whose key can go over to snowflake ids. */
CREATE FUNCTION snowflake_migrate_internal.adopt_check_table(relation regclass) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	class record;
BEGIN
	SELECT c.* INTO class FROM pg_class AS c WHERE c.oid = relation;
	IF NOT FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_table',
			MESSAGE = format('table with OID %s does not exist', relation::oid);
	ELSIF class.relkind = 'f' THEN
		RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
			MESSAGE = format('%s is a foreign table', relation),
			HINT = 'Adopt the table on the server that it is on.';
	ELSIF class.relkind NOT IN ('r', 'p') THEN
		RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
			MESSAGE = format('%s is not a table', relation),
			HINT = 'Give tables or partitioned tables.';
	ELSIF relation::oid < 16384 THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = format('permission denied: %s is a system catalog', relation),
			HINT = 'Give tables that were created by users.';
	ELSIF class.relpersistence = 't' THEN
		RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
			MESSAGE = format('table %s is a temporary table%s', relation,
							 CASE WHEN pg_is_other_temp_schema(class.relnamespace) THEN ' of another session' END),
			HINT = 'Give tables that stay; a temporary table can be created with DEFAULT snowflake_nextval().';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_check_table(regclass)
	IS 'for snowflake_migrate.adopt()''s own use: refuses what is not a table that can be adopted';

/* A key is the one column of a primary key, or one that gets numbers by default. */
CREATE FUNCTION snowflake_migrate_internal.adopt_is_key(relation regclass, attnum smallint) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_migrate_internal.makes_numbers(relation, attnum) OR EXISTS (
		SELECT FROM pg_index AS i
		WHERE i.indrelid = relation AND i.indisprimary AND i.indnkeyatts = 1 AND i.indkey[0] = attnum)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_is_key(regclass, smallint)
	IS 'for snowflake_migrate.adopt()''s own use: whether a column is a key';

/* Raises an error where this column of a table is not a key that can go over to snowflake ids. */
CREATE FUNCTION snowflake_migrate_internal.adopt_check_column(relation regclass, column_name name) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	attribute record;
	parents text;
BEGIN
	SELECT a.* INTO attribute FROM pg_attribute AS a
		WHERE a.attrelid = relation AND a.attname = column_name AND a.attnum > 0 AND NOT a.attisdropped;
	IF NOT FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_column',
			MESSAGE = format('column "%s" of table %s does not exist', column_name, relation);
	ELSIF attribute.atttypid NOT IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype) THEN
		RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
			MESSAGE = format('column "%s" of table %s has the type %s', column_name, relation,
							 format_type(attribute.atttypid, attribute.atttypmod)),
			HINT = 'Give columns of the types smallint, integer and bigint.';
	ELSIF attribute.attgenerated <> '' THEN
		RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
			MESSAGE = format('column "%s" of table %s is a generated column', column_name, relation),
			HINT = 'Give columns that can have a default.';
	ELSIF attribute.attinhcount > 0 THEN
		SELECT string_agg(i.inhparent::regclass::text, ', ' ORDER BY i.inhseqno) INTO parents
			FROM pg_inherits AS i JOIN pg_attribute AS a ON a.attrelid = i.inhparent AND a.attname = column_name
			WHERE i.inhrelid = relation;
		RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
			MESSAGE = format('column "%s" of table %s is inherited', column_name, relation),
			HINT = format('Give the table that it is inherited from (%s): partitions and children go with it.',
						  parents);
	ELSIF NOT snowflake_migrate_internal.adopt_is_key(relation, attribute.attnum) THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_column_reference',
			MESSAGE = format('column "%s" of table %s is not a key', column_name, relation),
			DETAIL = 'A key is the one column of a primary key, an identity column, '
				'or a column whose default is taken from a sequence.',
			HINT = 'Give the key; columns that reference it are changed with it.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_check_column(regclass, name)
	IS 'for snowflake_migrate.adopt()''s own use: refuses what is not a key';

/* Raises an error where these are not keys that can go over to snowflake ids, or where a table is not the caller's. */
CREATE FUNCTION snowflake_migrate_internal.adopt_check(tables regclass[], columns name[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	given record;
	not_owned text;
	first regclass;
BEGIN
	IF cardinality(tables) <> cardinality(columns) THEN
		RAISE EXCEPTION USING ERRCODE = 'array_subscript_error',
			MESSAGE = 'relations and columns must have the same number of elements',
			DETAIL = format('Their numbers are %s and %s.', cardinality(tables), cardinality(columns)),
			HINT = 'Give a key column for each table.';
	END IF;

	FOR given IN SELECT g.relid, g.attname FROM unnest(tables, columns) AS g (relid, attname) LOOP
		IF given.relid IS NULL THEN
			RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'relations must not contain nulls';
		END IF;
		/* Before its column, which adopt_keys() leaves null where this is no table. */
		PERFORM snowflake_migrate_internal.adopt_check_table(given.relid);
		IF given.attname IS NULL THEN
			RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'columns must not contain nulls',
				DETAIL = format('The column of table %s is null.', given.relid);
		END IF;
		PERFORM snowflake_migrate_internal.adopt_check_column(given.relid, given.attname);
	END LOOP;

	SELECT string_agg(format('Table %s belongs to role %s.', c.oid::regclass, c.relowner::regrole),
					  E'\n' ORDER BY c.oid), min(c.oid)
		INTO not_owned, first
		FROM pg_class AS c
		WHERE c.oid IN (SELECT a.member FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS a)
			AND NOT pg_has_role(c.relowner, 'USAGE');
	IF not_owned IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = format('must be owner of table %s', first),
			DETAIL = not_owned,
			HINT = 'The tables that reference a key are changed with it, and so are partitions and children.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_check(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: refuses what can''t be adopted';

/*
 * With a superuser's rights, keeps others from what decides which tables are changed, and to what, besides the tables
 * themselves: from declaring references, and from renaming the schema of snowflake, whose function is the new default.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_hold() RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF pg_is_in_recovery() OR NOT (SELECT s.is_superuser FROM snowflake_internal.strongest_role() AS s) THEN
		RETURN;
	END IF;
	IF has_table_privilege('snowflake_migrate.declared_references', 'UPDATE, DELETE, TRUNCATE') THEN
		LOCK TABLE snowflake_migrate.declared_references IN SHARE MODE;
	END IF;
	PERFORM snowflake_internal.lock_schemas(ARRAY[snowflake_migrate_internal.snowflake_schema()]);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_hold()
	IS 'for snowflake_migrate.adopt()''s own use: locks what decides what it changes';

/*
 * Locks the views that are created again, and the names of the schemas that their definitions have, until none was
 * added while it waited for a lock.  LOCK TABLE would lock all that a view reads, and can't lock a materialized view;
 * to give a view to the owner that it has changes nothing.  Where another was put in its place, that is taken back with
 * the transaction.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_lock_views(tables regclass[], columns name[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	view record;
	views regclass[];
	locked regclass[];
BEGIN
	LOOP
		views := ARRAY(
			SELECT v.view FROM snowflake_migrate_internal.adopt_views(tables, columns) AS v ORDER BY v.view);
		EXIT WHEN views = locked;
		PERFORM snowflake_internal.lock_schemas(ARRAY(
			SELECT s.oid FROM unnest(views) AS v (oid),
				snowflake_migrate_internal.adopt_view_schemas(v.oid) AS s (oid)));
		FOR view IN
			SELECT c.oid, c.oid::regclass::text AS name,
				format('ALTER %s OWNER TO %s', snowflake_migrate_internal.adopt_view_name(c.oid),
					   c.relowner::regrole) AS command
			FROM pg_class AS c WHERE c.oid = ANY (views)
			ORDER BY c.oid
		LOOP
			EXECUTE view.command;
			IF to_regclass(view.name) IS DISTINCT FROM view.oid::regclass THEN
				RAISE EXCEPTION USING ERRCODE = 'object_in_use',
					MESSAGE = format('view %s was replaced while it was to be locked', view.name);
			END IF;
		END LOOP;
		locked := views;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_lock_views(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: locks the views that are created again';

/*
 * Checks and locks the tables, until nothing was added or taken away while it waited for a lock.  A table that is only
 * referenced is locked as ALTER TABLE will lock it.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_lock(tables regclass[], columns name[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	changed regclass[];
	locked regclass[];
	lock record;
BEGIN
	LOOP
		PERFORM snowflake_migrate_internal.adopt_check(tables, columns);
		changed := ARRAY(SELECT DISTINCT c.member FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c
						 ORDER BY c.member);
		EXIT WHEN changed = locked;
		FOR lock IN
			WITH c AS MATERIALIZED (SELECT c.* FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c)
			SELECT c.root AS relation, 'ACCESS EXCLUSIVE' AS mode FROM c
			UNION
			SELECT f.confrelid, 'SHARE ROW EXCLUSIVE'
			FROM c
				JOIN pg_constraint AS f ON f.contype = 'f' AND f.conparentid = 0 AND f.conrelid = c.member
					AND c.attnum = ANY (f.conkey)
			WHERE f.confrelid <> ALL (changed) AND has_table_privilege(f.confrelid, 'UPDATE, DELETE, TRUNCATE')
			ORDER BY 1
		LOOP
			EXECUTE format('LOCK TABLE %s IN %s MODE', lock.relation, lock.mode);
		END LOOP;
		locked := changed;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_lock(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: locks the tables that it changes';

/*
 * Does a column have an identity of its own?  ALTER TABLE of the root leaves the one that a partition (before
 * PostgreSQL 17) or a child has.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_has_own_identity(relation regclass, attnum smallint) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT EXISTS (SELECT FROM pg_depend AS o
				   WHERE o.classid = 'pg_class'::regclass AND o.refclassid = 'pg_class'::regclass
					AND o.refobjid = relation AND o.refobjsubid = attnum AND o.deptype = 'i')
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_has_own_identity(regclass, smallint)
	IS 'for snowflake_migrate.adopt()''s own use: whether a column has an identity of its own';

/* The commands that change the columns, with the size of what each rewrites, table and indexes. */
CREATE FUNCTION snowflake_migrate_internal.adopt_column_steps(
	tables regclass[],
	columns name[],
	OUT rank int,
	OUT relation regclass,
	OUT command text,
	OUT note text,
	OUT bytes bigint) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH changed AS MATERIALIZED (
		SELECT c.*, c.adopted AND a.attidentity <> '' AS has_identity,
			c.adopted AND snowflake_migrate_internal.has_snowflake_default(c.member, c.attnum) AS has_default
		FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c
			JOIN pg_attribute AS a ON a.attrelid = c.member AND a.attnum = c.attnum
	)
	SELECT 1, c.member, format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', c.member, c.attname), NULL, 0
	FROM changed AS c
	WHERE c.has_identity AND c.member <> c.root
		AND snowflake_migrate_internal.adopt_has_own_identity(c.member, c.attnum)
	UNION ALL
	SELECT 2, c.root,
		format('ALTER TABLE %s %s', c.root, string_agg(concat_ws(', ',
				CASE WHEN c.has_identity THEN format('ALTER COLUMN %I DROP IDENTITY', c.attname) END,
				CASE WHEN c.widened THEN format('ALTER COLUMN %I TYPE %s', c.attname, c.new_type) END,
				CASE WHEN c.adopted AND NOT c.has_default THEN format('ALTER COLUMN %I SET DEFAULT %s', c.attname,
					snowflake_migrate_internal.default_function()) END),
			', ' ORDER BY c.attnum)),
		NULL,
		CASE WHEN bool_or(c.widened)
			THEN (SELECT sum(pg_total_relation_size(m.member))::bigint
				  FROM (SELECT DISTINCT m.member FROM changed AS m WHERE m.root = c.root) AS m)
			ELSE 0 END
	FROM changed AS c
	WHERE c.member = c.root AND (c.widened OR (c.adopted AND NOT c.has_default))
	GROUP BY c.root
	UNION ALL
	SELECT 3, c.root, NULL, format('nothing, as column %I is adopted already', c.attname), 0
	FROM changed AS c
	WHERE c.member = c.root AND c.has_default AND NOT c.widened
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_column_steps(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: the commands that change columns';

/*
 * The commands that drop the sequences of adopted columns, and which are kept, and why: those that others use, or views
 * that are created again (kept).  The sequence of an identity column goes with the identity.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_sequence_steps(
	tables regclass[],
	columns name[],
	kept oid[],
	OUT rank int,
	OUT relation regclass,
	OUT command text,
	OUT note text,
	OUT bytes bigint) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH adopted AS MATERIALIZED (
		SELECT c.* FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c WHERE c.adopted
	),
	link (seqrelid, root, deptype) AS (
		SELECT q.seqrelid, a.root, o.deptype
		FROM adopted AS a
			JOIN pg_depend AS o ON o.classid = 'pg_class'::regclass AND o.refclassid = 'pg_class'::regclass
				AND o.refobjid = a.member AND o.refobjsubid = a.attnum AND o.deptype IN ('a', 'i')
			JOIN pg_sequence AS q ON q.seqrelid = o.objid
		UNION ALL
		SELECT q.seqrelid, a.root, 'n'
		FROM adopted AS a
			JOIN pg_attrdef AS d ON d.adrelid = a.member AND d.adnum = a.attnum
			JOIN pg_depend AS u ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid
				AND u.refclassid = 'pg_class'::regclass
			JOIN pg_sequence AS q ON q.seqrelid = u.refobjid
	),
	sequence AS (
		SELECT l.seqrelid::regclass AS name, min(l.root::oid)::regclass AS root, bool_or(l.deptype = 'a') AS owned,
			(SELECT string_agg(DISTINCT pg_describe_object(u.classid, u.objid, u.objsubid), ', ')
			 FROM pg_depend AS u
			 WHERE u.refclassid = 'pg_class'::regclass AND u.refobjid = l.seqrelid
				AND NOT EXISTS (SELECT FROM pg_attrdef AS d
									JOIN adopted AS a ON a.member = d.adrelid AND a.attnum = d.adnum
								WHERE u.classid = 'pg_attrdef'::regclass AND d.oid = u.objid)) AS users
		FROM link AS l
		GROUP BY l.seqrelid
		HAVING NOT bool_or(l.deptype = 'i')
	)
	SELECT 4, s.root, CASE WHEN s.owned AND u.users IS NULL THEN format('DROP SEQUENCE %s', s.name) END,
		format('sequence %s is kept, as %s', s.name,
			   CASE WHEN s.owned THEN 'it is used: ' || u.users ELSE 'it does not belong to the column' END),
		0
	FROM sequence AS s
		CROSS JOIN LATERAL (
			SELECT coalesce(s.users, CASE WHEN s.name = ANY (kept) THEN 'by views that are created again' END)
			) AS u (users)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_sequence_steps(regclass[], name[], oid[])
	IS 'for snowflake_migrate.adopt()''s own use: what becomes of sequences';

/*
 * Functions that can't take or return the new ids.  What a function does with its arguments can't be known.  Listed
 * are those in the schemas of the changed tables that have an argument or result of type smallint or integer, and
 * either an argument of these types that is named as a changed column, or as one with a prefix (id, p_id, order_id),
 * or a body that names a changed table.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_function_notes(
	tables regclass[],
	columns name[],
	OUT rank int,
	OUT relation regclass,
	OUT command text,
	OUT note text,
	OUT bytes bigint) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH changed AS MATERIALIZED (
		SELECT c.root, lower(c.attname) AS attname, r.relnamespace,
			/* No plain literal with a backslash: standard_conforming_strings may be off. */
			'[[:<:]]' || regexp_replace(r.relname, '([^[:alnum:]_])', E'\\\\\\1', 'g') || '[[:>:]]' AS table_pattern
		FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c JOIN pg_class AS r ON r.oid = c.root
		WHERE c.member = c.root
	),
	narrow (types) AS (
		SELECT ARRAY['smallint'::regtype, 'integer'::regtype, 'smallint[]'::regtype, 'integer[]'::regtype]::oid[]
	),
	candidate AS (
		SELECT p.oid, coalesce(pg_get_function_sqlbody(p.oid), p.prosrc) AS body, a.list AS arguments, a.names,
			CASE WHEN p.prorettype = ANY (n.types) THEN 'its result ' || format_type(p.prorettype, NULL) END AS result
		FROM pg_proc AS p
			CROSS JOIN narrow AS n
			CROSS JOIN LATERAL (
				SELECT string_agg(concat_ws(' ', coalesce(nullif(p.proargnames[t.i], ''), '$' || t.i),
											format_type(t.type, NULL)), ', ' ORDER BY t.i),
					array_agg(lower(p.proargnames[t.i]))
				FROM unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) WITH ORDINALITY AS t (type, i)
				WHERE t.type = ANY (n.types)) AS a (list, names)
		WHERE p.pronamespace IN (SELECT c.relnamespace FROM changed AS c)
			AND NOT EXISTS (SELECT FROM pg_depend AS e
							WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e')
	)
	SELECT 5, min(c.root::oid)::regclass, NULL,
		format('look at function %s, as new ids do not fit: %s', f.oid::regprocedure,
			   concat_ws(', ', f.arguments, f.result)),
		NULL::bigint
	FROM candidate AS f
		JOIN changed AS c ON f.body ~* c.table_pattern
			OR EXISTS (SELECT FROM unnest(f.names) AS a (name)
					   WHERE a.name = c.attname OR right(a.name, length(c.attname) + 1) = '_' || c.attname)
	WHERE f.arguments IS NOT NULL OR f.result IS NOT NULL
	GROUP BY f.oid, f.arguments, f.result
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_function_notes(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: functions that can''t take new ids';

/* What is to be done, in this order: a command, or where there is none, a note. */
CREATE FUNCTION snowflake_migrate_internal.adopt_steps(
	tables regclass[],
	columns name[],
	kept oid[],
	OUT relation regclass,
	OUT command text,
	OUT note text,
	OUT bytes bigint) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT s.relation, s.command, s.note, s.bytes
	FROM (SELECT * FROM snowflake_migrate_internal.adopt_column_steps(tables, columns)
		  UNION ALL
		  SELECT * FROM snowflake_migrate_internal.adopt_sequence_steps(tables, columns, kept)
		  UNION ALL
		  SELECT * FROM snowflake_migrate_internal.adopt_function_notes(tables, columns)) AS s
	ORDER BY s.rank, s.relation::oid, s.command, s.note
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_steps(regclass[], name[], oid[])
	IS 'for snowflake_migrate.adopt()''s own use: what is to be done';

/*
 * Rows: each command that is executed, in order, with the size of what it rewrites; sequences that are kept, and why;
 * and functions that can't take or return the new ids.  For a dry run what stands in the way comes first, with what is
 * to be done about it; otherwise it is an error that names all of it, and nothing is changed.
 *
 * recreate_views: views that depend on the columns are dropped, first of all, and created again in the end.  First, as
 * whoever reads one locks it before its tables; and all or none, so that none is left that another needs.
 *
 * Without JIT: to compile these queries would take seconds.  Constants in what is created again are written as pg_dump
 * does: so that they are read as they were; and a view has no tablespace and no access method but its own.
 */
CREATE FUNCTION snowflake_migrate.adopt(
	relations regclass[],
	columns name[] DEFAULT NULL,
	dry_run boolean DEFAULT false,
	recreate_views boolean DEFAULT false,
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text,
	OUT bytes bigint) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET extra_float_digits = 3
SET default_tablespace = '' SET default_table_access_method = 'heap'
AS $$
DECLARE
	blocker record;
	problems text[] := '{}';
	step record;
	recreated regclass[] := ARRAY[]::regclass[];
	used oid[] := ARRAY[]::oid[];		/* by what is created again */
	roots regclass[] := ARRAY[]::regclass[];
	dropping text[] := '{}';
	creating text[] := '{}';
BEGIN
	IF relations IS NULL OR dry_run IS NULL OR recreate_views IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
			MESSAGE = format('%s must not be null',
							 CASE WHEN relations IS NULL THEN 'relations' WHEN dry_run IS NULL THEN 'dry_run'
								 ELSE 'recreate_views' END);
	END IF;
	columns := coalesce(columns, snowflake_migrate_internal.adopt_keys(relations));
	PERFORM snowflake_migrate_internal.adopt_hold();

	/* The largest id must be that of all committed rows. */
	IF NOT dry_run AND current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
		RAISE EXCEPTION USING ERRCODE = 'active_sql_transaction',
			MESSAGE = format('cannot adopt tables in a %s transaction',
							 upper(current_setting('transaction_isolation'))),
			HINT = 'Use a READ COMMITTED transaction.';
	END IF;

	IF dry_run OR recreate_views THEN
		PERFORM snowflake_migrate_internal.adopt_check(relations, columns);
	END IF;
	IF recreate_views THEN
		/* Before a view is touched, by its name, and before what it reads is. */
		FOR blocker IN SELECT b.* FROM snowflake_migrate_internal.adopt_view_blockers(relations, columns) AS b LOOP
			relation := blocker.relation;
			action := blocker.action;
			blocked_by := blocker.blocked_by;
			RETURN NEXT;
			problems := problems || format('Table %s: %s.', relation, blocked_by);
		END LOOP;
		IF NOT dry_run AND problems = '{}' THEN
			PERFORM snowflake_migrate_internal.adopt_lock_views(relations, columns);
			/* Of those that were added meanwhile. */
			IF EXISTS (SELECT FROM snowflake_migrate_internal.adopt_view_blockers(relations, columns)) THEN
				RAISE EXCEPTION USING ERRCODE = 'object_in_use',
					MESSAGE = 'views were changed while they were to be locked', HINT = 'Call it again.';
			END IF;
		END IF;
		SELECT coalesce(array_agg(v.view), '{}'),
				coalesce(array_agg(v.root) FILTER (WHERE v.obstacle IS NULL), '{}'),
				coalesce(array_agg(v.dropping) FILTER (WHERE v.obstacle IS NULL), '{}'),
				coalesce(array_agg(v.creating) FILTER (WHERE v.obstacle IS NULL), '{}')
			INTO recreated, roots, dropping, creating
			FROM (SELECT v.* FROM snowflake_migrate_internal.adopt_views(relations, columns) AS v
				  ORDER BY v.level, v.view::oid) AS v;
		used := snowflake_migrate_internal.adopt_used_by_views(recreated);
	END IF;
	IF NOT dry_run AND problems = '{}' THEN
		/* What is no view stands in the way of them. */
		IF NOT EXISTS (SELECT FROM snowflake_migrate_internal.adopt_dependents(relations, columns) AS d
					   WHERE d.level > 0 AND NOT (d.classid = 'pg_class'::regclass AND d.objid = ANY (recreated))) THEN
			FOR n IN REVERSE cardinality(dropping) .. 1 LOOP
				EXECUTE dropping[n];
			END LOOP;
			recreated := ARRAY[]::regclass[];
		END IF;
		PERFORM snowflake_migrate_internal.adopt_lock(relations, columns);
	END IF;

	FOR blocker IN SELECT b.* FROM snowflake_migrate_internal.adopt_blockers(relations, columns, recreated) AS b LOOP
		relation := blocker.relation;
		action := blocker.action;
		blocked_by := blocker.blocked_by;
		RETURN NEXT;
		problems := problems || format('Table %s: %s.', relation, blocked_by);
	END LOOP;
	IF NOT dry_run AND problems <> '{}' THEN
		RAISE EXCEPTION USING ERRCODE = 'dependent_objects_still_exist',
			MESSAGE = 'cannot adopt the tables as they are',
			DETAIL = array_to_string(problems, E'\n'),
			HINT = 'Call snowflake_migrate.adopt() with dry_run => true, which says what to do about each.';
	END IF;

	blocked_by := NULL;
	FOR n IN REVERSE cardinality(dropping) .. 1 LOOP
		relation := roots[n];
		action := dropping[n];
		RETURN NEXT;
	END LOOP;
	/* All steps are known before the first is executed. */
	FOR step IN SELECT s.* FROM snowflake_migrate_internal.adopt_steps(relations, columns, used) AS s LOOP
		IF NOT dry_run AND step.command IS NOT NULL THEN
			EXECUTE step.command;
		END IF;
		relation := step.relation;
		action := coalesce(step.command, step.note);
		bytes := step.bytes;
		RETURN NEXT;
	END LOOP;
	FOR n IN 1 .. cardinality(creating) LOOP
		IF NOT dry_run THEN
			EXECUTE creating[n];
		END IF;
		relation := roots[n];
		action := creating[n];
		bytes := NULL;
		RETURN NEXT;
	END LOOP;
	/* The commands have its name, and not everybody can lock its schema. */
	IF NOT dry_run AND EXISTS (
			SELECT FROM snowflake_migrate_internal.adopt_columns(relations, columns) AS c
			WHERE c.adopted AND c.member = c.root
				AND NOT snowflake_migrate_internal.has_snowflake_default(c.member, c.attnum)) THEN
		RAISE EXCEPTION USING ERRCODE = 'object_in_use',
			MESSAGE = 'the schema of snowflake_nextval() was renamed while tables were adopted';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate.adopt(regclass[], name[], boolean, boolean)
	IS 'puts existing integer keys, and what references them, on snowflake ids';

/*
 * The same in several transactions, part_size tables in each: fewer locks at once, for a shorter time.  A column that
 * refers to tables of several parts is rewritten with each.  To be called outside of a transaction block; the same call
 * goes on where it was interrupted, since keys that are adopted already stay as they are.
 */
CREATE PROCEDURE snowflake_migrate.adopt_in_parts(
	relations regclass[],
	columns name[] DEFAULT NULL,
	part_size int DEFAULT 20,
	recreate_views boolean DEFAULT false)
LANGUAGE plpgsql
AS $$
DECLARE
	total pg_catalog.int4;
	first pg_catalog.int4 := 1;
BEGIN
	/* As adopt() wants it. */
	COMMIT;
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
	IF relations IS NULL OR recreate_views IS NULL OR part_size IS NULL OR part_size < 1 THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'relations and recreate_views must not be null, and part_size must be at least 1';
	END IF;
	columns := coalesce(columns, snowflake_migrate_internal.adopt_keys(relations));
	IF cardinality(columns) <> cardinality(relations) THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('there are %s relations and %s columns', cardinality(relations), cardinality(columns));
	END IF;
	total := cardinality(relations);
	LOOP
		/* Until the next COMMIT. */
		PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
		EXIT WHEN first > total;
		PERFORM FROM snowflake_migrate.adopt(
			relations[first : first + part_size - 1], columns[first : first + part_size - 1],
			recreate_views => recreate_views);
		RAISE NOTICE '% of % keys are adopted', least(first + part_size - 1, total), total;
		first := first + part_size;
		COMMIT;
		SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	END LOOP;
END
$$;
COMMENT ON PROCEDURE snowflake_migrate.adopt_in_parts(regclass[], name[], int, boolean)
	IS 'puts integer keys on snowflake ids, some in each transaction';
