\echo Use "CREATE EXTENSION snowflake_migrate" to load this file. \quit

/*
 * What is used of the extension snowflake.  Its schema is known while this script runs, and not in the functions' bodies: these
 * are parsed now, and are bound to the functions themselves.
 */

CREATE SCHEMA snowflake_migrate_internal;
GRANT USAGE ON SCHEMA snowflake_migrate, snowflake_migrate_internal TO PUBLIC;

CREATE FUNCTION snowflake_migrate_internal.nextval() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL SAFE RETURN snowflake_nextval();
COMMENT ON FUNCTION snowflake_migrate_internal.nextval() IS 'snowflake_nextval()';

/* What a column's default depends on. */
CREATE FUNCTION snowflake_migrate_internal.default_function() RETURNS regprocedure
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'snowflake_nextval()'::regprocedure;
COMMENT ON FUNCTION snowflake_migrate_internal.default_function() IS 'the function of the default';

CREATE FUNCTION snowflake_migrate_internal.snowflake_schema() RETURNS regnamespace
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT p.pronamespace::regnamespace FROM pg_proc AS p WHERE p.oid = 'snowflake_nextval()'::regprocedure;
END;
COMMENT ON FUNCTION snowflake_migrate_internal.snowflake_schema() IS 'the schema of the extension snowflake';

CREATE FUNCTION snowflake_migrate_internal.layout(
	OUT epoch timestamptz, OUT tick interval, OUT timestamp_bits int, OUT sequence_bits int, OUT max_node bigint) RETURNS record
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT l.epoch, l.tick, l.timestamp_bits, l.sequence_bits, l.max_node FROM snowflake_layout() AS l;
END;
COMMENT ON FUNCTION snowflake_migrate_internal.layout() IS 'snowflake_layout()';

CREATE FUNCTION snowflake_migrate_internal.own_node() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL SAFE
BEGIN ATOMIC
	SELECT s.node_id FROM snowflake_stat AS s;
END;
COMMENT ON FUNCTION snowflake_migrate_internal.own_node() IS 'this server''s node number';

CREATE FUNCTION snowflake_migrate_internal.encode(ts timestamptz, node bigint, sequence bigint) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE RETURN snowflake_encode(ts, node, sequence);
COMMENT ON FUNCTION snowflake_migrate_internal.encode(timestamptz, bigint, bigint) IS 'snowflake_encode()';

CREATE FUNCTION snowflake_migrate_internal.timestamp(id bigint) RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE RETURN snowflake_timestamp(id);
COMMENT ON FUNCTION snowflake_migrate_internal.timestamp(bigint) IS 'snowflake_timestamp()';

CREATE FUNCTION snowflake_migrate_internal.node(id bigint) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE RETURN snowflake_node(id);
COMMENT ON FUNCTION snowflake_migrate_internal.node(bigint) IS 'snowflake_node()';

CREATE FUNCTION snowflake_migrate_internal.min_id(ts timestamptz) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE RETURN snowflake_min_id(ts);
COMMENT ON FUNCTION snowflake_migrate_internal.min_id(timestamptz) IS 'snowflake_min_id()';

CREATE FUNCTION snowflake_migrate_internal.max_id(ts timestamptz) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE RETURN snowflake_max_id(ts);
COMMENT ON FUNCTION snowflake_migrate_internal.max_id(timestamptz) IS 'snowflake_max_id()';

/*
 * What the catalogs can't say about databases that are merged is declared beforehand: tables that are shared, references
 * without a foreign key, times, and what becomes of rows that clash.  A declaration is about a table of the target; one
 * that is made again replaces the former, and one whose row is deleted from its table is gone.
 *
 * Conditions and expressions are SQL that runs with the rights of whoever merges: only those who may change these tables
 * can declare, and a merge should be called by nobody who would not run what they wrote.
 */

CREATE TABLE snowflake_migrate.declared_tables (
	relation regclass PRIMARY KEY,
	mode text NOT NULL CHECK (mode IN ('copy', 'match', 'same_id', 'ignore')),
	key name[],
	accept text[] NOT NULL DEFAULT '{}' CHECK (accept <@ ARRAY['duplicates', 'differences']),
	ignored_columns name[] NOT NULL DEFAULT '{}'
);
COMMENT ON TABLE snowflake_migrate.declared_tables IS 'declared by snowflake_migrate.declare_table()';

CREATE TABLE snowflake_migrate.declared_references (
	relation regclass NOT NULL,
	column_name name NOT NULL,
	referenced regclass NOT NULL,
	condition text,
	path text,
	dangling text NOT NULL CHECK (dangling IN ('error', 'null', 'keep', 'skip')),
	CONSTRAINT declared_references_key UNIQUE NULLS NOT DISTINCT (relation, column_name, condition, path)
);
COMMENT ON TABLE snowflake_migrate.declared_references IS 'declared by snowflake_migrate.declare_reference()';

CREATE TABLE snowflake_migrate.declared_created (
	relation regclass PRIMARY KEY,
	column_name name NOT NULL
);
COMMENT ON TABLE snowflake_migrate.declared_created IS 'declared by snowflake_migrate.declare_created()';

CREATE TABLE snowflake_migrate.declared_policies (
	relation regclass NOT NULL,
	constraint_name name NOT NULL,
	policy text NOT NULL CHECK (policy IN ('error', 'suffix', 'keep_target', 'keep_source', 'skip', 'rerank', 'renumber')),
	argument text,
	PRIMARY KEY (relation, constraint_name)
);
COMMENT ON TABLE snowflake_migrate.declared_policies IS 'declared by snowflake_migrate.declare_policy()';

SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.declared_tables', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.declared_references', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.declared_created', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.declared_policies', '');

/* They say nothing about rows, and snowflake_migrate.adopt(), which anybody may call, looks at them. */
GRANT SELECT ON snowflake_migrate.declared_tables, snowflake_migrate.declared_references, snowflake_migrate.declared_created, snowflake_migrate.declared_policies TO PUBLIC;

/* Raises an error where this is no table, or has not all of these columns. */
CREATE FUNCTION snowflake_migrate_internal.columns_exist(relation_ regclass, columns name[]) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	missing name;
BEGIN
	IF NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = relation_ AND c.relkind IN ('r', 'p', 'f', 'v', 'm')) THEN
		RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
			MESSAGE = format('%s is not a table', relation_);
	ELSIF EXISTS (SELECT FROM pg_class AS c WHERE c.oid = relation_ AND c.relispartition) THEN
		RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
			MESSAGE = format('%s is a partition', relation_),
			HINT = format('Give the partitioned table, %s.', pg_partition_root(relation_));
	END IF;
	SELECT g.name INTO missing FROM unnest(columns) AS g (name)
	WHERE NOT EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = relation_ AND a.attname = g.name AND a.attnum > 0 AND NOT a.attisdropped);
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_column',
			MESSAGE = format('column "%s" of table %s does not exist', missing, relation_);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.columns_exist(regclass, name[]) IS 'for the declarations of a merge: an error where columns do not exist';

/*
 * mode: copy (what is not declared), match, same_id, ignore.  key: the natural key, for match alone.  accept: duplicates (of the
 * natural key), differences (of other columns in matched rows).  ignored_columns: of the sources, which the target lacks.
 */
CREATE FUNCTION snowflake_migrate.declare_table(
	relation regclass,
	mode text,
	key name[] DEFAULT NULL,
	accept text[] DEFAULT '{}',
	ignored_columns name[] DEFAULT '{}') RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
	IF relation IS NULL OR mode IS NULL OR accept IS NULL OR ignored_columns IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'only the key of a table may be null';
	ELSIF mode NOT IN ('copy', 'match', 'same_id', 'ignore') THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('"%s" is not a mode of a table that is merged', mode),
			HINT = 'Modes are copy, match, same_id and ignore.';
	ELSIF (mode = 'match') <> (coalesce(cardinality(key), 0) > 0) THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = CASE mode WHEN 'match' THEN 'the mode match needs the columns of the natural key'
					  ELSE format('the mode %s has no natural key', mode) END;
	ELSIF NOT accept <@ ARRAY['duplicates', 'differences'] OR (accept <> '{}' AND mode <> 'match') THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('cannot accept "%s" of a table with the mode %s', array_to_string(accept, ', '), mode),
			HINT = 'Duplicates and differences can be accepted of the mode match.';
	END IF;
	PERFORM snowflake_migrate_internal.columns_exist(relation, key);
	INSERT INTO snowflake_migrate.declared_tables AS d VALUES (relation, mode, key, accept, ignored_columns)
	ON CONFLICT (relation) DO UPDATE
		SET mode = excluded.mode, key = excluded.key, accept = excluded.accept, ignored_columns = excluded.ignored_columns;
END
$$;
COMMENT ON FUNCTION snowflake_migrate.declare_table(regclass, text, name[], text[], name[]) IS 'declares what a merge does with a table';

/*
 * The steps of a path, as (kind, name, filter): member, wildcard_member, element, elements, keys.  This is the part of the
 * jsonpath language in which a place can be found again to be written to.
 */
CREATE FUNCTION snowflake_migrate_internal.path(
	path text,
	OUT kind text,
	OUT name text,
	OUT filter text) RETURNS SETOF record
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	rest text;
	piece text[];
	depth int;
	quoted boolean;
	c text;
	n int;
BEGIN
	/* As PostgreSQL writes it: names in quotes, one blank at most. */
	rest := path::jsonpath::text;
	IF rest LIKE 'strict %' THEN
		RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
			MESSAGE = format('path %s is strict', path), HINT = 'Leave out "strict": what a document lacks is no reference.';
	END IF;
	IF left(rest, 1) <> '$' THEN
		rest := NULL;
	ELSE
		rest := substr(rest, 2);
	END IF;
	WHILE rest <> '' LOOP
		filter := NULL;
		name := NULL;
		IF rest = '.keyvalue()."key"' THEN
			kind := 'keys';
			rest := '';
			RETURN NEXT;
			EXIT;
		ELSIF rest ~ '^\.\*' THEN
			kind := 'wildcard_member';
			rest := substr(rest, 3);
		ELSIF rest ~ '^\[\*\]' THEN
			kind := 'elements';
			rest := substr(rest, 4);
		ELSIF rest ~ '^\[\d+\]' THEN
			kind := 'element';
			name := substring(rest FROM '^\[(\d+)\]');
			rest := substr(rest, length(name) + 3);
		ELSE
			piece := regexp_match(rest, '^\.("(?:[^"\\]|\\.)*")');
			IF piece IS NULL THEN
				rest := NULL;
				EXIT;
			END IF;
			kind := 'member';
			name := piece[1]::jsonb #>> '{}';
			rest := substr(rest, length(piece[1]) + 2);
		END IF;
		/* A filter, up to its closing bracket. */
		IF rest ~ '^ ?\?\(' THEN
			depth := 0;
			quoted := false;
			n := position('(' IN rest) - 1;
			LOOP
				n := n + 1;
				c := substr(rest, n, 1);
				EXIT WHEN c = '';
				IF c = '\' THEN
					n := n + 1;
				ELSIF c = '"' THEN
					quoted := NOT quoted;
				ELSIF NOT quoted THEN
					depth := depth + CASE c WHEN '(' THEN 1 WHEN ')' THEN -1 ELSE 0 END;
					EXIT WHEN depth = 0;
				END IF;
			END LOOP;
			filter := '$ ' || ltrim(left(rest, n));
			rest := ltrim(substr(rest, n + 1));
		END IF;
		RETURN NEXT;
	END LOOP;
	IF rest IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
			MESSAGE = format('cannot follow the path %s to the place of an id', path),
			HINT = 'A path starts with $ and goes on with .name, .*, [n], [*], each with a filter or none; .keyvalue().key may be its end.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.path(text) IS 'for the declarations of a merge: the steps of a path through a document';

/*
 * condition: SQL over the row's columns, for which values this is the reference.  path: where in a jsonb or json column.  dangling:
 * what becomes of a value whose row the source does not have (error, null, keep, skip the row).  Elements of an array column are
 * references each.
 */
CREATE FUNCTION snowflake_migrate.declare_reference(
	relation regclass,
	column_name name,
	referenced regclass,
	condition text DEFAULT NULL,
	path text DEFAULT NULL,
	dangling text DEFAULT 'error') RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	type text;
	is_document boolean;
BEGIN
	IF relation IS NULL OR column_name IS NULL OR referenced IS NULL OR dangling IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
			MESSAGE = 'only the condition and the path of a reference may be null';
	ELSIF dangling NOT IN ('error', 'null', 'keep', 'skip') THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('"%s" is not what can become of a dangling reference', dangling),
			HINT = 'It can be error, null, keep or skip.';
	END IF;
	PERFORM snowflake_migrate_internal.columns_exist(relation, ARRAY[column_name]);
	PERFORM snowflake_migrate_internal.columns_exist(referenced, '{}');

	SELECT format_type(a.atttypid, NULL), a.atttypid IN ('jsonb'::regtype, 'json'::regtype) INTO type, is_document
		FROM pg_attribute AS a WHERE a.attrelid = relation AND a.attname = column_name;
	IF is_document <> (path IS NOT NULL) THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('column "%s" of table %s has the type %s', column_name, relation, type),
			HINT = CASE WHEN is_document THEN 'Give the path to the ids in it.' ELSE 'A path is for jsonb and json.' END;
	END IF;
	PERFORM FROM snowflake_migrate_internal.path(path);
	IF condition IS NOT NULL THEN
		EXECUTE format('SELECT (%s) IS TRUE FROM ONLY %s AS %I WHERE false', condition, relation,
					   (SELECT c.relname FROM pg_class AS c WHERE c.oid = relation));
	END IF;

	INSERT INTO snowflake_migrate.declared_references AS d VALUES (relation, column_name, referenced, condition, path, dangling)
	ON CONFLICT ON CONSTRAINT declared_references_key DO UPDATE
		SET referenced = excluded.referenced, dangling = excluded.dangling;
END
$$;
COMMENT ON FUNCTION snowflake_migrate.declare_reference(regclass, name, regclass, text, text, text) IS 'declares a reference without a foreign key';

/* The column holds the time that a row's new id tells: a timestamp, with or without time zone, or a date. */
CREATE FUNCTION snowflake_migrate.declare_created(relation regclass, column_name name) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	type regtype;
BEGIN
	PERFORM snowflake_migrate_internal.columns_exist(relation, ARRAY[column_name]);
	SELECT a.atttypid INTO type FROM pg_attribute AS a WHERE a.attrelid = relation AND a.attname = column_name;
	IF type NOT IN ('timestamptz'::regtype, 'timestamp'::regtype, 'date'::regtype) THEN
		RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
			MESSAGE = format('column "%s" of table %s has the type %s', column_name, relation, type),
			HINT = 'Give a column of the type timestamp with time zone, timestamp without time zone or date.';
	END IF;
	INSERT INTO snowflake_migrate.declared_created AS d VALUES (relation, column_name)
	ON CONFLICT (relation) DO UPDATE SET column_name = excluded.column_name;
END
$$;
COMMENT ON FUNCTION snowflake_migrate.declare_created(regclass, name) IS 'declares which column holds the time of creation';

/*
 * The columns of a unique index that a policy may change: for suffix the only one of a text type, for rerank the only one of an
 * integer type, of those that are no references.
 */
CREATE FUNCTION snowflake_migrate_internal.policy_columns(relation_ regclass, constraint_ name, policy_ text) RETURNS name[]
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT coalesce(array_agg(a.attname ORDER BY a.attnum), '{}')
	FROM pg_index AS i
		JOIN pg_class AS x ON x.oid = i.indexrelid AND x.relname = constraint_
		JOIN pg_attribute AS a ON a.attrelid = i.indrelid
		JOIN pg_type AS t ON t.oid = a.atttypid
		LEFT JOIN pg_type AS b ON b.oid = t.typbasetype
	WHERE i.indrelid = relation_ AND a.attnum > 0
		AND (a.attnum = ANY (i.indkey)
			 OR (i.indexprs IS NOT NULL
				 AND EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
								AND d.refclassid = 'pg_class'::regclass AND d.refobjid = relation_ AND d.refobjsubid = a.attnum)))
		AND CASE policy_
			WHEN 'suffix' THEN coalesce(b.typcategory, t.typcategory) = 'S'
			ELSE coalesce(b.oid, t.oid) IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype) END
		AND NOT EXISTS (SELECT FROM pg_constraint AS f WHERE f.contype = 'f' AND f.conrelid = relation_ AND a.attnum = ANY (f.conkey))
		AND NOT EXISTS (SELECT FROM snowflake_migrate.declared_references AS r WHERE r.relation = relation_ AND r.column_name = a.attname)
		AND a.attgenerated = ''
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.policy_columns(regclass, name, text) IS 'for snowflake_migrate.declare_policy(): the columns that a policy may change';

/* constraint: a unique constraint, the primary key, or a unique index of the table. */
CREATE FUNCTION snowflake_migrate.declare_policy(
	relation regclass,
	constraint_name name,
	policy text,
	argument text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	changed name[];
BEGIN
	IF relation IS NULL OR constraint_name IS NULL OR policy IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'only the argument of a policy may be null';
	ELSIF policy NOT IN ('error', 'suffix', 'keep_target', 'keep_source', 'skip', 'rerank', 'renumber') THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('"%s" is not a policy for rows that clash', policy),
			HINT = 'Policies are error, suffix, keep_target, keep_source, skip, rerank and renumber.';
	END IF;
	PERFORM snowflake_migrate_internal.columns_exist(relation, '{}');
	IF NOT EXISTS (SELECT FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid
				   WHERE i.indrelid = relation AND i.indisunique AND x.relname = constraint_name) THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_object',
			MESSAGE = format('"%s" is not a unique constraint or index of table %s', constraint_name, relation);
	ELSIF argument IS NULL AND policy = 'rerank' THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'the policy rerank needs an expression to order by', HINT = 'For example: rating DESC.';
	ELSIF argument IS NOT NULL AND policy NOT IN ('suffix', 'rerank') THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('the policy %s has no argument', policy);
	ELSIF argument = '' THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('the argument of the policy %s is empty', policy);
	ELSIF policy = 'rerank' THEN
		EXECUTE format('SELECT row_number() OVER (ORDER BY %s) FROM ONLY %s AS %I WHERE false', argument, relation,
					   (SELECT c.relname FROM pg_class AS c WHERE c.oid = relation));
	END IF;
	IF policy IN ('suffix', 'rerank') THEN
		changed := snowflake_migrate_internal.policy_columns(relation, constraint_name, policy);
		IF cardinality(changed) <> 1 THEN
			RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
				MESSAGE = format('cannot tell which column of "%s" the policy %s changes', constraint_name, policy),
				DETAIL = format('It has %s columns of %s type that are no references.', cardinality(changed),
								CASE policy WHEN 'suffix' THEN 'a text' ELSE 'an integer' END);
		END IF;
	END IF;
	IF policy = 'renumber' AND NOT EXISTS (SELECT FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid
										   WHERE i.indrelid = relation AND i.indisprimary AND x.relname = constraint_name) THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'the policy renumber is for the primary key alone';
	END IF;
	INSERT INTO snowflake_migrate.declared_policies AS d VALUES (relation, constraint_name, policy, argument)
	ON CONFLICT (relation, constraint_name) DO UPDATE SET policy = excluded.policy, argument = excluded.argument;
END
$$;
COMMENT ON FUNCTION snowflake_migrate.declare_policy(regclass, name, text, text) IS 'declares what becomes of rows that clash';
/*
 * Existing integer keys go over to snowflake ids.
 *
 * A key's column is widened to bigint together with every column that references it, by a foreign key or as declared with
 * snowflake_migrate.declare_reference(), those that reference these, and so on, each with its partitions and inheritance children.  Old
 * rows keep their ids, which must sort before all new ones.
 *
 * Nothing here has more rights than its caller.  The tables are locked in ACCESS EXCLUSIVE mode, all of them before the
 * first is changed, in the order of their OIDs, partitions and children after their parent: two calls can't deadlock, and
 * one that deadlocks with something else has not rewritten anything yet.
 */

/*
 * The columns that the adoption of these keys changes.  A column is listed with the topmost table that has it, its root,
 * which ALTER TABLE is called for; one that is inherited from several tables, once for each.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_columns(
	tables regclass[],
	columns name[],
	OUT root regclass,
	OUT member regclass,
	OUT attnum smallint,
	OUT attname name,
	OUT adopted boolean,
	OUT widened boolean) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE
	reached (relid, attnum) AS (
		SELECT a.attrelid, a.attnum
		FROM unnest(tables, columns) AS g (relid, attname) JOIN pg_attribute AS a ON a.attrelid = g.relid AND a.attname = g.attname
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
				WHERE d.referenced = r.relid AND b.atttypid IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype)
					AND EXISTS (SELECT FROM unnest(tables, columns) AS g (relid, attname) WHERE g.relid = r.relid AND g.attname = a.attname)
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
		EXISTS (SELECT FROM unnest(tables, columns) AS g (relid, attname) WHERE g.relid = t.root AND g.attname = a.attname),
		a.atttypid IN ('smallint'::regtype, 'integer'::regtype)
	FROM tree AS t JOIN pg_attribute AS a ON a.attrelid = t.relid AND a.attnum = t.attnum
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_columns(regclass[], name[]) IS 'for snowflake_migrate.adopt()''s own use: the columns that it changes';

/* What creates a view or a materialized view again, with what would go with it when it is dropped. */
CREATE FUNCTION snowflake_migrate_internal.adopt_view(view regclass) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT concat_ws(E'\n',
		format('CREATE %s %s%s AS%s', k.kind, view, ' WITH (' || array_to_string(c.reloptions, ', ') || ')',
			   E'\n' || CASE WHEN c.relkind = 'm' AND NOT c.relispopulated THEN rtrim(pg_get_viewdef(view), ';') || E'\n  WITH NO DATA;'
							 ELSE pg_get_viewdef(view) END),
		(SELECT string_agg(pg_get_indexdef(i.indexrelid) || ';', E'\n' ORDER BY i.indexrelid) FROM pg_index AS i WHERE i.indrelid = view),
		(SELECT string_agg(pg_get_triggerdef(t.oid) || ';', E'\n' ORDER BY t.tgname) FROM pg_trigger AS t WHERE t.tgrelid = view),
		(SELECT string_agg(pg_get_ruledef(r.oid), E'\n' ORDER BY r.rulename) FROM pg_rewrite AS r WHERE r.ev_class = view AND r.ev_type <> '1'),
		CASE WHEN c.relowner <> current_user::regrole THEN format('ALTER %s %s OWNER TO %s;', k.kind, view, c.relowner::regrole) END,
		(SELECT string_agg(format('GRANT %s ON %s TO %s%s;', g.privileges, view, g.grantee, g.option), E'\n' ORDER BY g.grantee, g.option)
		 FROM (SELECT CASE WHEN x.grantee = 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END AS grantee,
					  CASE WHEN x.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END AS option,
					  string_agg(x.privilege_type, ', ' ORDER BY x.privilege_type) AS privileges
			   FROM aclexplode(c.relacl) AS x WHERE x.grantee <> c.relowner GROUP BY 1, 2) AS g),
		(SELECT string_agg(format('GRANT %s (%I) ON %s TO %s%s;', x.privilege_type, a.attname, view,
								  CASE WHEN x.grantee = 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END,
								  CASE WHEN x.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END), E'\n' ORDER BY a.attnum)
		 FROM pg_attribute AS a, aclexplode(a.attacl) AS x WHERE a.attrelid = view),
		format('COMMENT ON %s %s IS ', k.kind, view) || quote_literal(obj_description(view, 'pg_class')) || ';')
	FROM pg_class AS c, LATERAL (SELECT CASE c.relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'VIEW' END) AS k (kind)
	WHERE c.oid = view
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_view(regclass) IS 'for snowflake_migrate.adopt()''s own use: what creates a view again';

/*
 * What stands in the way.  PostgreSQL names only the first thing that it finds when it changes a column's type, some of
 * them after the table was rewritten.  Views come in the order in which they can be created again.
 *
 * To compile these queries would take seconds.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_blockers(
	tables regclass[],
	columns name[],
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	key record;
	trial record;
	largest bigint;
	statements text[];
	problems text[];
	message text;
	done boolean;
BEGIN
	FOR key IN SELECT DISTINCT c.root, c.attname, c.widened FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c WHERE c.adopted
		ORDER BY c.root, c.attname
	LOOP
		/* No integer is that large, so that the table need not be read. */
		CONTINUE WHEN key.widened AND snowflake_migrate_internal.nextval() > 2147483647;
		EXECUTE format('SELECT max(%I) FROM %s', key.attname, key.root) INTO largest;
		/* All later ids are greater than this one. */
		IF largest >= snowflake_migrate_internal.nextval() THEN
			relation := key.root;
			blocked_by := format('id %s, as new ids would sort before it', largest);
			action := CASE WHEN largest <= snowflake_migrate_internal.max_id(clock_timestamp() + interval '1 day')
				THEN format('before: SELECT %s.snowflake_advance_past(%s);', snowflake_migrate_internal.snowflake_schema(), largest)
				ELSE 'give the rows whose ids lie more than a day ahead other ids, or choose a layout whose ids are greater' END;
			RETURN NEXT;
		END IF;
	END LOOP;

	RETURN QUERY
	WITH RECURSIVE
	changed AS MATERIALIZED (SELECT c.* FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c),
	widened AS MATERIALIZED (SELECT c.* FROM changed AS c WHERE c.widened),
	/* The row types of what is rewritten, and all types that contain them. */
	row_type (root, oid) AS (
		SELECT w.root, r.reltype FROM widened AS w JOIN pg_class AS r ON r.oid = w.member
		UNION
		SELECT t.root, coalesce(r.reltype, d.objid)
		FROM row_type AS t
			JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = t.oid
			LEFT JOIN pg_class AS r ON d.classid = 'pg_class'::regclass AND r.oid = d.objid
		WHERE d.classid = 'pg_type'::regclass OR (r.relkind IN ('c', 'v', 'f') AND d.objsubid > 0)
	),
	uses (root, classid, objid, objsubid, of_row) AS (
		SELECT w.root, d.classid, d.objid, d.objsubid, false
		FROM widened AS w
			JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = w.member AND d.refobjsubid = w.attnum
		WHERE NOT EXISTS (SELECT FROM pg_attrdef AS own
						  WHERE d.classid = 'pg_attrdef'::regclass AND own.oid = d.objid AND own.adrelid = w.member AND own.adnum = w.attnum)
		UNION
		SELECT t.root, d.classid, d.objid, d.objsubid, true
		FROM row_type AS t JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = t.oid
		WHERE d.deptype = 'n'
		GROUP BY t.root, d.refobjid, d.classid, d.objid, d.objsubid
		/* A function's arguments and result may be of the row type, its body and its defaults, which depend on their own, may not. */
		HAVING d.classid <> 'pg_proc'::regclass
			OR count(*) > (SELECT (d.refobjid = p.prorettype OR d.refobjid = ANY (p.proargtypes)
								   OR coalesce(d.refobjid = ANY (p.proallargtypes), false))::int
						   FROM pg_proc AS p WHERE p.oid = d.objid)
	),
	/* Views, and all that can't be there without them. */
	lost (root, classid, objid, level) AS (
		SELECT u.root, 'pg_class'::regclass::oid, v.ev_class, 1
		FROM uses AS u JOIN pg_rewrite AS v ON u.classid = 'pg_rewrite'::regclass AND v.oid = u.objid AND v.ev_type = '1'
		UNION
		SELECT l.root, n.classid, n.objid, l.level + 1
		FROM lost AS l,
			LATERAL (
				SELECT CASE WHEN v.oid IS NULL THEN d.classid ELSE 'pg_class'::regclass END, coalesce(v.ev_class, d.objid)
				FROM pg_depend AS d
					LEFT JOIN pg_rewrite AS v ON d.classid = 'pg_rewrite'::regclass AND v.oid = d.objid AND v.ev_type = '1'
				WHERE d.deptype = 'n'
					AND ((d.refclassid = l.classid AND d.refobjid = l.objid)
						 OR (d.refclassid = 'pg_type'::regclass AND l.classid = 'pg_class'::regclass AND d.refobjid IN (
								SELECT t.oid FROM pg_type AS t JOIN pg_class AS r ON r.oid = l.objid AND r.reltype IN (t.oid, t.typelem))))
			) AS n (classid, objid)
		/* Views that select from each other are possible, though they can't be used. */
		WHERE (n.classid, n.objid) <> (l.classid, l.objid) AND l.level < 1000
	),
	object (root, classid, objid, objsubid, level, of_row) AS (
		SELECT l.root, l.classid, l.objid, 0, max(l.level), false FROM lost AS l GROUP BY l.root, l.classid, l.objid
		UNION ALL
		SELECT u.root, u.classid, u.objid, u.objsubid, 0, bool_or(u.of_row)
		FROM uses AS u
		WHERE NOT EXISTS (SELECT FROM pg_rewrite AS v WHERE u.classid = 'pg_rewrite'::regclass AND v.oid = u.objid AND v.ev_type = '1')
			AND NOT EXISTS (SELECT FROM lost AS l WHERE (l.root, l.classid, l.objid) = (u.root, u.classid, u.objid))
		GROUP BY u.root, u.classid, u.objid, u.objsubid
	),
	found (rank, root, level, blocked_by, action) AS (
		SELECT 10, o.root, o.level, pg_describe_object(o.classid, o.objid, 0),
			E'drop it before, create it again after:\n' || snowflake_migrate_internal.adopt_view(c.oid::regclass)
		FROM object AS o JOIN pg_class AS c ON o.classid = 'pg_class'::regclass AND c.oid = o.objid AND c.relkind IN ('v', 'm')
		WHERE o.level > 0
		UNION ALL
		SELECT CASE WHEN o.level = 0 THEN 20 ELSE 10 END, o.root, o.level, pg_describe_object(o.classid, o.objid, 0),
			E'drop it before, create it again after:\n' || pg_get_ruledef(o.objid)
		FROM object AS o WHERE o.classid = 'pg_rewrite'::regclass
		UNION ALL
		SELECT CASE WHEN o.level = 0 THEN 30 ELSE 10 END, o.root, o.level, pg_describe_object(o.classid, o.objid, 0),
			E'drop it before, create it again after:\n' || pg_get_functiondef(o.objid)
		FROM object AS o JOIN pg_proc AS p ON o.classid = 'pg_proc'::regclass AND p.oid = o.objid AND p.prokind <> 'a'
		UNION ALL
		SELECT CASE WHEN o.level = 0 THEN 40 ELSE 10 END, o.root, o.level, pg_describe_object(o.classid, o.objid, 0),
			E'drop it before, create it again after:\n' || pg_get_triggerdef(t.oid) || ';'
		FROM object AS o JOIN pg_trigger AS t ON o.classid = 'pg_trigger'::regclass AND t.oid = o.objid
		WHERE NOT t.tgisinternal AND t.tgparentid = 0
		UNION ALL
		SELECT CASE WHEN o.level = 0 THEN 50 ELSE 10 END, o.root, o.level, pg_describe_object(o.classid, o.objid, 0),
			E'drop it before, create it again after:\n'
				|| format('CREATE POLICY %I ON %s AS %s FOR %s TO %s', p.polname, p.polrelid::regclass,
						  CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
						  CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE' ELSE 'ALL' END,
						  (SELECT string_agg(CASE WHEN r = 0 THEN 'PUBLIC' ELSE r::regrole::text END, ', ') FROM unnest(p.polroles) AS r))
				|| coalesce(' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')', '')
				|| coalesce(' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')', '') || ';'
		FROM object AS o JOIN pg_policy AS p ON o.classid = 'pg_policy'::regclass AND p.oid = o.objid
		UNION ALL
		SELECT 60, o.root, 0, format('generated column %I of table %s', a.attname, d.adrelid::regclass),
			E'drop it before, add it again after:\n'
				|| format('ALTER TABLE %s ADD COLUMN %I %s GENERATED ALWAYS AS (%s) %s;', d.adrelid::regclass, a.attname,
						  format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid),
						  CASE a.attgenerated WHEN 's' THEN 'STORED' ELSE 'VIRTUAL' END)
		FROM object AS o
			JOIN pg_attrdef AS d ON o.classid = 'pg_attrdef'::regclass AND d.oid = o.objid
			JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
		WHERE a.attgenerated <> '' AND a.attinhcount = 0
		UNION ALL
		SELECT 70, o.root, 0, pg_describe_object(o.classid, o.objid, 0),
			E'drop it before, add it again after:\n'
				|| format('ALTER PUBLICATION %I ADD TABLE ONLY %s', b.pubname, p.prrelid::regclass)
				|| coalesce(' (' || (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY k.i)
									 FROM unnest(p.prattrs) WITH ORDINALITY AS k (attnum, i)
										JOIN pg_attribute AS a ON a.attrelid = p.prrelid AND a.attnum = k.attnum) || ')', '')
				|| coalesce(' WHERE (' || pg_get_expr(p.prqual, p.prrelid) || ')', '') || ';'
		FROM object AS o
			JOIN pg_publication_rel AS p ON o.classid = 'pg_publication_rel'::regclass AND p.oid = o.objid
			JOIN pg_publication AS b ON b.oid = p.prpubid
		UNION ALL
		/* What else has expressions with the row type, and columns that hold rows. */
		SELECT 80, o.root, 0, pg_describe_object(o.classid, o.objid, o.objsubid),
			format('drop it before, as it %s rows of %s', CASE WHEN o.objsubid > 0 THEN 'holds' ELSE 'makes' END, o.root)
		FROM object AS o LEFT JOIN pg_class AS c ON o.classid = 'pg_class'::regclass AND c.oid = o.objid
		WHERE o.of_row
			AND (c.relkind IN ('r', 'p', 'm', 'i', 'I')
				 OR o.classid IN ('pg_constraint'::regclass, 'pg_statistic_ext'::regclass)
				 OR EXISTS (SELECT FROM pg_attrdef AS d JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
							WHERE o.classid = 'pg_attrdef'::regclass AND d.oid = o.objid AND a.attgenerated = ''))
		UNION ALL
		SELECT 90, w.root, 0, format('partition key of table %s', w.member),
			format('a new table that is partitioned by a bigint column must take the rows: %s', pg_get_partkeydef(w.member))
		FROM widened AS w JOIN pg_partitioned_table AS p ON p.partrelid = w.member
		WHERE w.attnum = ANY (p.partattrs)
			OR EXISTS (SELECT FROM pg_depend AS d
					   WHERE d.classid = 'pg_class'::regclass AND d.objid = w.member AND d.objsubid = 0
						AND d.refclassid = 'pg_class'::regclass AND d.refobjid = w.member AND d.refobjsubid = w.attnum)
		UNION ALL
		SELECT 100, w.root, 0, format('type %s of table %s', c.reloftype::regtype, w.member),
			format('before: ALTER TABLE %s NOT OF;', w.member)
		FROM widened AS w JOIN pg_class AS c ON c.oid = w.member WHERE c.reloftype <> 0
		UNION ALL
		SELECT 110, w.root, 0, format('foreign table %s', w.member),
			'detach it before; after, make the column bigint on its server too, and attach it again'
		FROM widened AS w JOIN pg_class AS c ON c.oid = w.member WHERE c.relkind = 'f'
		UNION ALL
		SELECT 120, w.root, 0, format('temporary table %s of another session', w.member), 'end that session before'
		FROM widened AS w JOIN pg_class AS c ON c.oid = w.member WHERE pg_is_other_temp_schema(c.relnamespace)
		UNION ALL
		SELECT 130, min(w.root::oid)::regclass, 0,
			format('column %I of table %s, which is inherited from %s', w.attname, w.member,
				   string_agg(w.root::text, ' and ' ORDER BY w.root::text)),
			format('before: ALTER TABLE %s NO INHERIT ...; for all of these but one', w.member)
		FROM widened AS w GROUP BY w.member, w.attname HAVING count(DISTINCT w.root) > 1
		UNION ALL
		/* From PostgreSQL 18 on these have names, which ALTER TABLE can't bring together while they are inherited. */
		SELECT 140, w.root, 0, pg_describe_object('pg_constraint'::regclass, n.oid, 0),
			format(E'before:\nALTER TABLE %1$s NO INHERIT %2$s;\nALTER TABLE %1$s RENAME CONSTRAINT %3$I TO %4$I;\nALTER TABLE %1$s INHERIT %2$s;',
				   w.member, i.inhparent::regclass, n.conname, o.conname)
		FROM widened AS w
			JOIN pg_constraint AS n ON n.contype = 'n' AND n.conrelid = w.member AND n.conkey[1] = w.attnum AND n.conislocal
			JOIN pg_inherits AS i ON i.inhrelid = w.member
			JOIN pg_attribute AS a ON a.attrelid = i.inhparent AND a.attname = w.attname
			JOIN pg_constraint AS o ON o.contype = 'n' AND o.conrelid = i.inhparent AND o.conkey[1] = a.attnum
		WHERE n.conname <> o.conname
		UNION ALL
		SELECT 150, c.root, 0, format('column %I of table %s', a.attname, c.root),
			format('it references what is adopted and has the type %s: make it bigint, or a type over bigint, before',
				   format_type(a.atttypid, a.atttypmod))
		FROM changed AS c JOIN pg_attribute AS a ON a.attrelid = c.root AND a.attnum = c.attnum
		WHERE c.member = c.root AND NOT c.widened
			AND (WITH RECURSIVE base (oid, next) AS (
					SELECT t.oid, t.typbasetype FROM pg_type AS t WHERE t.oid = a.atttypid
					UNION ALL
					SELECT t.oid, t.typbasetype FROM base AS b JOIN pg_type AS t ON t.oid = b.next)
				 SELECT b.oid FROM base AS b WHERE b.next = 0) <> 'bigint'::regtype
		UNION ALL
		/* Its index is a part of that of the whole table, which PostgreSQL can't make anew under it. */
		SELECT 160, w.root, 0, pg_describe_object('pg_constraint'::regclass, f.oid, 0),
			E'it references a partition; drop it before, add it again after:\n'
				|| format('ALTER TABLE %s ADD CONSTRAINT %I %s;', f.conrelid::regclass, f.conname, pg_get_constraintdef(f.oid))
		FROM widened AS w
			JOIN pg_constraint AS f ON f.contype = 'f' AND f.conparentid = 0 AND f.confrelid = w.member AND w.attnum = ANY (f.confkey)
			JOIN pg_class AS i ON i.oid = f.conindid AND i.relispartition
		UNION ALL
		SELECT 170, c.root, 0, pg_describe_object('pg_constraint'::regclass, f.oid, 0),
			format('column %I takes its values from %s: adopt the column there instead', c.attname, f.confrelid::regclass)
		FROM changed AS c
			JOIN pg_constraint AS f ON f.contype = 'f' AND f.conparentid = 0 AND f.conrelid = c.member AND c.attnum = ANY (f.conkey)
		WHERE c.adopted
		UNION ALL
		SELECT 180, c.root, 0, pg_describe_object(d.classid, d.objid, d.objsubid),
			format('it uses the sequence of identity column %I, %s, which is dropped: give it another one before', c.attname, s.objid::regclass)
		FROM changed AS c
			JOIN pg_depend AS s ON s.classid = 'pg_class'::regclass AND s.refclassid = 'pg_class'::regclass
				AND s.refobjid = c.member AND s.refobjsubid = c.attnum AND s.deptype = 'i'
			JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.objid
		WHERE c.adopted
	)
	SELECT f.root, f.action, f.blocked_by
	FROM (SELECT f.*, row_number() OVER (PARTITION BY f.rank, f.blocked_by ORDER BY f.level DESC, f.root) AS repeated FROM found AS f) AS f
	WHERE f.repeated = 1
	ORDER BY f.rank, f.level, f.blocked_by, f.root;

	/* Whether an expression has a meaning for bigint is tried on an empty table of the same columns, which is taken back at once. */
	FOR trial IN
		WITH widened AS MATERIALIZED (
			SELECT c.* FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c WHERE c.widened
		),
		part (relid, name, definition, statement) AS (
			SELECT i.indrelid, pg_describe_object('pg_class'::regclass, i.indexrelid, 0), d.definition,
				format('CREATE INDEX ON pg_temp.snowflake_adopt_trial%s',
					   substr(d.definition, 1 + length(format('CREATE%s INDEX %I ON%s %s', CASE WHEN i.indisunique THEN ' UNIQUE' END, x.relname,
															  CASE WHEN x.relkind = 'I' THEN ' ONLY' END, i.indrelid::regclass))))
			FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid, pg_get_indexdef(i.indexrelid) AS d (definition)
			WHERE NOT x.relispartition AND NOT i.indisexclusion
				AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL
					 OR EXISTS (SELECT FROM pg_opclass AS o WHERE o.oid = ANY (i.indclass) AND NOT o.opcdefault))
				AND EXISTS (SELECT FROM widened AS w JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass
								AND d.refobjid = w.member AND d.refobjsubid = w.attnum
							WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid)
			UNION ALL
			SELECT c.conrelid, pg_describe_object('pg_constraint'::regclass, c.oid, 0),
				format('ALTER TABLE %s ADD CONSTRAINT %I %s', c.conrelid::regclass, c.conname, d.definition),
				format('ALTER TABLE pg_temp.snowflake_adopt_trial ADD %s', d.definition)
			FROM pg_constraint AS c, pg_get_constraintdef(c.oid) AS d (definition)
			WHERE c.contype IN ('c', 'x') AND c.conparentid = 0 AND c.coninhcount = 0
				AND EXISTS (SELECT FROM widened AS w WHERE w.member = c.conrelid AND w.attnum = ANY (c.conkey))
			UNION ALL
			SELECT s.stxrelid, pg_describe_object('pg_statistic_ext'::regclass, s.oid, 0), pg_get_statisticsobjdef(s.oid),
				format('CREATE STATISTICS pg_temp.snowflake_adopt_trial_statistics ON %s FROM pg_temp.snowflake_adopt_trial',
					   pg_get_statisticsobjdef_columns(s.oid))
			FROM pg_statistic_ext AS s
			WHERE s.stxexprs IS NOT NULL AND EXISTS (SELECT FROM widened AS w WHERE w.member = s.stxrelid)
		)
		SELECT p.relid::regclass AS member,
			(SELECT min(w.root::oid)::regclass FROM widened AS w WHERE w.member = p.relid) AS root,
			(SELECT string_agg(DISTINCT format('ALTER COLUMN %I TYPE bigint', w.attname), ', ')
			 FROM widened AS w WHERE w.member = p.relid) AS widening,
			array_agg(p.name ORDER BY p.name) AS names,
			array_agg(p.definition ORDER BY p.name) AS definitions,
			array_agg(p.statement ORDER BY p.name) AS statements
		FROM part AS p GROUP BY p.relid ORDER BY p.relid
	LOOP
		IF current_setting('transaction_read_only')::boolean THEN
			RAISE EXCEPTION USING ERRCODE = 'read_only_sql_transaction',
				MESSAGE = format('cannot try the expressions of table %s in a read-only transaction', trial.member),
				DETAIL = 'They are tried on a temporary table.',
				HINT = 'Call snowflake_migrate.adopt() in a read-write transaction.';
		ELSIF NOT has_database_privilege(current_database(), 'TEMP') THEN
			RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
				MESSAGE = format('permission denied to create temporary tables in database "%s"', current_database()),
				DETAIL = format('The expressions of table %s are tried on a temporary table.', trial.member),
				HINT = 'Grant the privilege TEMP on the database.';
		END IF;

		problems := array_fill(NULL::text, ARRAY[cardinality(trial.statements)]);
		done := false;
		BEGIN
			EXECUTE format('CREATE TABLE pg_temp.snowflake_adopt_trial (LIKE %s)', trial.member);
			EXECUTE format('ALTER TABLE pg_temp.snowflake_adopt_trial %s', trial.widening);
			FOR n IN 1 .. cardinality(trial.statements) LOOP
				BEGIN
					EXECUTE trial.statements[n];
					RAISE EXCEPTION USING ERRCODE = 'SF000', MESSAGE = 'it has a meaning';
				EXCEPTION
					WHEN SQLSTATE 'SF000' THEN
						NULL;
					WHEN OTHERS THEN
						problems[n] := SQLERRM;
				END;
			END LOOP;
			done := true;
			RAISE EXCEPTION 'the table is not needed any more';
		EXCEPTION WHEN OTHERS THEN
			IF NOT done THEN
				RAISE;
			END IF;
		END;
		FOR n IN 1 .. cardinality(problems) LOOP
			IF problems[n] IS NOT NULL THEN
				relation := trial.root;
				blocked_by := format('%s: %s', trial.names[n], problems[n]);
				action := format(E'drop it before; after, create it in a form that has a meaning for bigint, instead of:\n%s;',
								 trial.definitions[n]);
				RETURN NEXT;
			END IF;
		END LOOP;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_blockers(regclass[], name[]) IS 'for snowflake_migrate.adopt()''s own use: what stands in its way';

/* The primary keys' columns; what is no table or has none of one column is told by adopt_check(). */
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
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_keys(regclass[]) IS 'for snowflake_migrate.adopt()''s own use: the columns of the primary keys';

/* Raises an error where these are not keys that can go over to snowflake ids. */
CREATE FUNCTION snowflake_migrate_internal.adopt_check(tables regclass[], columns name[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	given record;
	relation record;
	attribute record;
	parents text;
BEGIN
	IF cardinality(tables) <> cardinality(columns) THEN
		RAISE EXCEPTION USING ERRCODE = 'array_subscript_error',
			MESSAGE = 'tables and columns must have the same number of elements',
			DETAIL = format('The numbers are %s and %s.', cardinality(tables), cardinality(columns)),
			HINT = 'Give a key column for each table.';
	END IF;

	FOR given IN SELECT g.relid, g.attname FROM unnest(tables, columns) AS g (relid, attname) LOOP
		IF given.relid IS NULL THEN
			RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'table must not be null';
		ELSIF given.attname IS NULL THEN
			RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
				MESSAGE = format('column of table %s must not be null', given.relid);
		END IF;

		SELECT c.* INTO relation FROM pg_class AS c WHERE c.oid = given.relid;
		IF NOT FOUND THEN
			RAISE EXCEPTION USING ERRCODE = 'undefined_table',
				MESSAGE = format('table with OID %s does not exist', given.relid::oid);
		ELSIF relation.relkind = 'f' THEN
			RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
				MESSAGE = format('%s is a foreign table', given.relid),
				HINT = 'Adopt the table on the server that it is on.';
		ELSIF relation.relkind NOT IN ('r', 'p') THEN
			RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
				MESSAGE = format('%s is not a table', given.relid),
				HINT = 'Give tables or partitioned tables.';
		ELSIF given.relid::oid < 16384 THEN
			RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
				MESSAGE = format('permission denied: %s is a system catalog', given.relid),
				HINT = 'Give tables that were created by users.';
		ELSIF relation.relpersistence = 't' THEN
			RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
				MESSAGE = format('table %s is a temporary table%s', given.relid,
								 CASE WHEN pg_is_other_temp_schema(relation.relnamespace) THEN ' of another session' END),
				HINT = 'Give tables that stay; a temporary table can be created with DEFAULT snowflake_nextval().';
		END IF;

		SELECT a.* INTO attribute FROM pg_attribute AS a
			WHERE a.attrelid = given.relid AND a.attname = given.attname AND a.attnum > 0 AND NOT a.attisdropped;
		IF NOT FOUND THEN
			RAISE EXCEPTION USING ERRCODE = 'undefined_column',
				MESSAGE = format('column "%s" of table %s does not exist', given.attname, given.relid);
		ELSIF attribute.atttypid NOT IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype) THEN
			RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
				MESSAGE = format('column "%s" of table %s has the type %s', given.attname, given.relid,
								 format_type(attribute.atttypid, attribute.atttypmod)),
				HINT = 'Give columns of the types smallint, integer and bigint.';
		ELSIF attribute.attgenerated <> '' THEN
			RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
				MESSAGE = format('column "%s" of table %s is a generated column', given.attname, given.relid),
				HINT = 'Give columns that can have a default.';
		ELSIF attribute.attinhcount > 0 THEN
			SELECT string_agg(i.inhparent::regclass::text, ', ' ORDER BY i.inhseqno) INTO parents
				FROM pg_inherits AS i JOIN pg_attribute AS a ON a.attrelid = i.inhparent AND a.attname = given.attname
				WHERE i.inhrelid = given.relid;
			RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
				MESSAGE = format('column "%s" of table %s is inherited', given.attname, given.relid),
				HINT = format('Give the table that it is inherited from (%s): partitions and children go with it.', parents);
		END IF;

		PERFORM FROM pg_index AS i
			WHERE i.indrelid = given.relid AND i.indisprimary AND i.indnkeyatts = 1 AND i.indkey[0] = attribute.attnum
		UNION ALL
		SELECT FROM pg_attrdef AS d JOIN pg_depend AS u ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid
			LEFT JOIN pg_class AS s ON u.refclassid = 'pg_class'::regclass AND s.oid = u.refobjid
			WHERE d.adrelid = given.relid AND d.adnum = attribute.attnum
				AND (s.relkind = 'S'
					 OR (u.refclassid = 'pg_proc'::regclass AND u.refobjid = snowflake_migrate_internal.default_function()));
		IF NOT FOUND AND attribute.attidentity = '' THEN
			RAISE EXCEPTION USING ERRCODE = 'invalid_column_reference',
				MESSAGE = format('column "%s" of table %s is not a key', given.attname, given.relid),
				DETAIL = 'A key is the one column of a primary key, an identity column, or a column whose default is taken from a sequence.',
				HINT = 'Give the key; columns that reference it are changed with it.';
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_check(regclass[], name[]) IS 'for snowflake_migrate.adopt()''s own use: refuses what is not a key';

/*
 * Rows: each command that is executed, in order, with the size of what it rewrites, table and indexes; sequences that are
 * kept, and why; and functions that can't take or return the new ids.  For a dry run what stands in the way comes first,
 * with what is to be done about it; otherwise it is an error that names all of it, and nothing is changed.
 *
 * What a function does with its arguments can't be known.  Listed are those in the schemas of the changed tables that have
 * an argument or result of type smallint or integer, and either an argument of these types that is named as a changed
 * column, or as one with a prefix (id, p_id, order_id), or a body that names a changed table.
 */
CREATE FUNCTION snowflake_migrate.adopt(
	relations regclass[],
	columns name[] DEFAULT NULL,
	dry_run boolean DEFAULT false,
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text,
	OUT bytes bigint) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	changed regclass[];
	locked regclass[];
	missing text;
	blocker record;
	blockers text[] := '{}';
	step record;
	steps json;
	narrow_types CONSTANT oid[] := ARRAY['smallint'::regtype, 'integer'::regtype, 'smallint[]'::regtype, 'integer[]'::regtype];
BEGIN
	IF relations IS NULL OR dry_run IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
			MESSAGE = format('%s must not be null', CASE WHEN relations IS NULL THEN 'relations' ELSE 'dry_run' END);
	END IF;
	columns := coalesce(columns, snowflake_migrate_internal.adopt_keys(relations));

	/* The largest id must be that of all committed rows. */
	IF NOT dry_run AND current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
		RAISE EXCEPTION USING ERRCODE = 'active_sql_transaction',
			MESSAGE = format('cannot adopt tables in a %s transaction', upper(current_setting('transaction_isolation'))),
			HINT = 'Use a READ COMMITTED transaction.';
	END IF;

	/* Until nothing was added or taken away while a lock was waited for. */
	LOOP
		PERFORM snowflake_migrate_internal.adopt_check(relations, columns);
		changed := coalesce((SELECT array_agg(DISTINCT c.member ORDER BY c.member)
							 FROM snowflake_migrate_internal.adopt_columns(relations, columns) AS c), '{}');
		SELECT string_agg(format('Table %s belongs to role %s.', c.oid::regclass, c.relowner::regrole), E'\n' ORDER BY c.oid) INTO missing
			FROM pg_class AS c WHERE c.oid = ANY (changed) AND NOT pg_has_role(c.relowner, 'USAGE');
		IF missing IS NOT NULL THEN
			RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
				MESSAGE = 'must be owner of all tables that would be changed',
				DETAIL = missing,
				HINT = 'The tables that reference a key are changed with it, and so are partitions and children.';
		END IF;
		EXIT WHEN dry_run OR changed = locked;

		/* A table that is only referenced is locked as ALTER TABLE will lock it. */
		FOR step IN
			WITH c AS MATERIALIZED (SELECT c.* FROM snowflake_migrate_internal.adopt_columns(relations, columns) AS c)
			SELECT c.root AS relation, 'ACCESS EXCLUSIVE' AS mode FROM c
			UNION
			SELECT f.confrelid, 'SHARE ROW EXCLUSIVE'
			FROM c JOIN pg_constraint AS f ON f.contype = 'f' AND f.conparentid = 0 AND f.conrelid = c.member AND c.attnum = ANY (f.conkey)
			WHERE f.confrelid <> ALL (changed) AND has_table_privilege(f.confrelid, 'UPDATE, DELETE, TRUNCATE')
			ORDER BY 1
		LOOP
			EXECUTE format('LOCK TABLE %s IN %s MODE', step.relation, step.mode);
		END LOOP;
		locked := changed;
	END LOOP;

	FOR blocker IN SELECT b.* FROM snowflake_migrate_internal.adopt_blockers(relations, columns) AS b LOOP
		relation := blocker.relation;
		action := blocker.action;
		blocked_by := blocker.blocked_by;
		RETURN NEXT;
		blockers := blockers || format('Table %s: %s.', relation, blocked_by);
	END LOOP;
	IF NOT dry_run AND cardinality(blockers) > 0 THEN
		RAISE EXCEPTION USING ERRCODE = 'dependent_objects_still_exist',
			MESSAGE = 'cannot adopt the tables as they are',
			DETAIL = array_to_string(blockers, E'\n'),
			HINT = 'Call snowflake_migrate.adopt() with dry_run => true, which says what to do about each.';
	END IF;

	WITH changed AS MATERIALIZED (
		SELECT c.*, a.attidentity,
			EXISTS (SELECT FROM pg_attrdef AS d JOIN pg_depend AS u ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid
					WHERE d.adrelid = c.member AND d.adnum = c.attnum
						AND u.refclassid = 'pg_proc'::regclass AND u.refobjid = snowflake_migrate_internal.default_function()) AS has_default
		FROM snowflake_migrate_internal.adopt_columns(relations, columns) AS c
			JOIN pg_attribute AS a ON a.attrelid = c.member AND a.attnum = c.attnum
	),
	/* Where one belongs to an identity column, it goes with the identity. */
	sequence AS MATERIALIZED (
		SELECT s.oid AS relid, min(s.root::oid)::regclass AS root, bool_or(s.deptype = 'a') AS owned, bool_or(s.deptype = 'i') AS identity,
			(SELECT string_agg(DISTINCT pg_describe_object(u.classid, u.objid, u.objsubid), ', ')
			 FROM pg_depend AS u
			 WHERE u.refclassid = 'pg_class'::regclass AND u.refobjid = s.oid
				AND NOT EXISTS (SELECT FROM pg_attrdef AS d JOIN changed AS c ON c.adopted AND c.member = d.adrelid AND c.attnum = d.adnum
								WHERE u.classid = 'pg_attrdef'::regclass AND d.oid = u.objid)) AS users
		FROM (SELECT o.objid AS oid, c.root, o.deptype
			  FROM changed AS c
				JOIN pg_depend AS o ON o.classid = 'pg_class'::regclass AND o.refclassid = 'pg_class'::regclass
					AND o.refobjid = c.member AND o.refobjsubid = c.attnum AND o.deptype IN ('a', 'i')
				JOIN pg_sequence AS q ON q.seqrelid = o.objid
			  WHERE c.adopted
			  UNION ALL
			  SELECT q.seqrelid, c.root, 'n'
			  FROM changed AS c
				JOIN pg_attrdef AS d ON d.adrelid = c.member AND d.adnum = c.attnum
				JOIN pg_depend AS u ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid AND u.refclassid = 'pg_class'::regclass
				JOIN pg_sequence AS q ON q.seqrelid = u.refobjid
			  WHERE c.adopted) AS s
		GROUP BY s.oid
	),
	step (rank, relation, command, note, bytes) AS (
		/* An identity that is not inherited, of a partition before PostgreSQL 17 or of a child: ALTER TABLE of the root leaves it. */
		SELECT 1, c.member, format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', c.member, c.attname), NULL, 0
		FROM changed AS c
		WHERE c.adopted AND c.member <> c.root AND c.attidentity <> ''
			AND EXISTS (SELECT FROM pg_depend AS o WHERE o.classid = 'pg_class'::regclass AND o.refclassid = 'pg_class'::regclass
							AND o.refobjid = c.member AND o.refobjsubid = c.attnum AND o.deptype = 'i')
		UNION ALL
		SELECT 2, c.root,
			'ALTER TABLE ' || c.root || ' ' || string_agg(concat_ws(', ',
				CASE WHEN c.adopted AND c.attidentity <> '' THEN format('ALTER COLUMN %I DROP IDENTITY', c.attname) END,
				CASE WHEN c.widened THEN format('ALTER COLUMN %I TYPE bigint', c.attname) END,
				CASE WHEN c.adopted AND NOT c.has_default THEN
					format('ALTER COLUMN %I SET DEFAULT %s', c.attname, snowflake_migrate_internal.default_function()) END), ', ' ORDER BY c.attnum),
			NULL,
			CASE WHEN bool_or(c.widened) THEN
				(SELECT sum(pg_total_relation_size(m.member)) FROM (SELECT DISTINCT m.member FROM changed AS m WHERE m.root = c.root) AS m)
				ELSE 0 END
		FROM changed AS c
		WHERE c.member = c.root AND (c.widened OR (c.adopted AND NOT c.has_default))
		GROUP BY c.root
		UNION ALL
		SELECT 3, c.root, NULL, format('nothing, as column %I is adopted already', c.attname), 0
		FROM changed AS c
		WHERE c.member = c.root AND c.adopted AND c.has_default AND NOT c.widened
		UNION ALL
		SELECT 4, s.root, CASE WHEN s.owned AND s.users IS NULL THEN format('DROP SEQUENCE %s', s.relid::regclass) END,
			format('sequence %s is kept, as %s', s.relid::regclass,
				   CASE WHEN s.owned THEN 'it is used: ' || s.users ELSE 'it does not belong to the column' END),
			0
		FROM sequence AS s WHERE NOT s.identity
		UNION ALL
		SELECT 5, f.root, NULL,
			format('look at function %s, as new ids do not fit: %s', f.oid::regprocedure, f.narrow), NULL
		FROM (
			SELECT p.oid, min(c.root::oid)::regclass AS root,
				concat_ws(', ', max(n.arguments),
						  CASE WHEN p.prorettype = ANY (narrow_types) THEN 'its result ' || format_type(p.prorettype, NULL) END) AS narrow
			FROM pg_proc AS p
				CROSS JOIN LATERAL (
					SELECT string_agg(format('%s %s', coalesce(nullif(p.proargnames[a.i], ''), '$' || a.i), format_type(a.type, NULL)),
									  ', ' ORDER BY a.i) AS arguments,
						array_agg(lower(p.proargnames[a.i])) AS names
					FROM unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) WITH ORDINALITY AS a (type, i)
					WHERE a.type = ANY (narrow_types)) AS n
				JOIN (SELECT c.* FROM changed AS c WHERE c.member = c.root) AS c
					ON EXISTS (SELECT FROM unnest(n.names) AS a (name)
							   WHERE a.name = lower(c.attname) OR right(a.name, length(c.attname) + 1) = '_' || lower(c.attname))
					OR coalesce(pg_get_function_sqlbody(p.oid), p.prosrc)
						~* ('\m' || regexp_replace((SELECT r.relname FROM pg_class AS r WHERE r.oid = c.root), '(\W)', '\\\1', 'g') || '\M')
			WHERE p.pronamespace IN (SELECT r.relnamespace FROM changed AS m JOIN pg_class AS r ON r.oid = m.root)
				AND (n.arguments IS NOT NULL OR p.prorettype = ANY (narrow_types))
				AND NOT EXISTS (SELECT FROM pg_depend AS e WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e')
			GROUP BY p.oid) AS f
	)
	SELECT json_agg(json_build_object('relation', s.relation::oid, 'command', s.command, 'note', s.note, 'bytes', s.bytes)
					ORDER BY s.rank, s.relation::oid, s.command, s.note)
		INTO steps FROM step AS s;

	blocked_by := NULL;
	FOR step IN SELECT s.* FROM json_to_recordset(steps) AS s (relation oid, command text, note text, bytes bigint) LOOP
		IF NOT dry_run AND step.command IS NOT NULL THEN
			EXECUTE step.command;
		END IF;
		relation := step.relation;
		action := coalesce(step.command, step.note);
		bytes := step.bytes;
		RETURN NEXT;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate.adopt(regclass[], name[], boolean) IS 'puts existing integer keys, and what references them, on snowflake ids';
/*
 * What a merge keeps on record, and its plan: which tables in which order, and what each of their columns refers to, read from
 * the target's catalogs and the declarations once, so that a merge that goes on after a crash goes on by the same plan.
 *
 * Tables have numbers, parents before children where there is no cycle.  The maps from old keys to new ones are tables in a
 * schema of the run's own, snowflake_merge_RUN, which belongs to whoever merges.
 */

CREATE SEQUENCE snowflake_migrate_internal.run_number;

/* A number whose schema is not there from a time when the extension was another. */
CREATE FUNCTION snowflake_migrate_internal.new_run() RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	run bigint;
BEGIN
	LOOP
		run := nextval('snowflake_migrate_internal.run_number');
		IF to_regnamespace('snowflake_merge_' || run) IS NULL THEN
			RETURN run;
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.new_run() IS 'for snowflake_migrate.merge()''s own use: the number of a new run';

CREATE TABLE snowflake_migrate.runs (
	run bigint PRIMARY KEY DEFAULT snowflake_migrate_internal.new_run(),
	sources name[] NOT NULL,
	target name NOT NULL,
	nodes bigint[] NOT NULL,
	state text NOT NULL CHECK (state IN ('copying', 'verifying', 'done', 'rolling back', 'rolled back', 'dry run')),
	batch_size int NOT NULL,
	started_at timestamptz NOT NULL,
	mapped_at timestamptz,				-- when all keys had their new ones
	copied_at timestamptz,
	finished_at timestamptz,			-- when it was verified, or taken back
	merged_by name NOT NULL DEFAULT current_user
);
COMMENT ON TABLE snowflake_migrate.runs IS 'the merges into schemas of this database';

/* Of a target that is in the middle of a merge, no other may begin. */
CREATE UNIQUE INDEX runs_unfinished ON snowflake_migrate.runs (target)
	WHERE state IN ('copying', 'verifying', 'rolling back');

CREATE TABLE snowflake_migrate.nodes (
	node bigint PRIMARY KEY,			-- never to be used again
	run bigint NOT NULL,
	source name NOT NULL
);
COMMENT ON TABLE snowflake_migrate.nodes IS 'the node numbers under which rows were renumbered';

CREATE TABLE snowflake_migrate_internal.plan_tables (
	run bigint NOT NULL,
	no int NOT NULL,
	relation regclass NOT NULL,
	mode text NOT NULL,
	kind text NOT NULL CHECK (kind IN ('id', 'key', 'none')),	-- id: renumbered; key: has one all the same
	key name[] NOT NULL,
	natural_key name[],
	accept text[] NOT NULL,
	ignored_columns name[] NOT NULL,
	created name,
	map_step int NOT NULL,				-- tables that refer to each other in a cycle share it
	copy_step int NOT NULL,				-- likewise, by foreign keys alone
	cyclic boolean NOT NULL,			-- by foreign keys
	former_rows bigint,					-- of the target, before
	former_state text,					-- its constraints and triggers, before
	PRIMARY KEY (run, no)
);

CREATE TABLE snowflake_migrate_internal.plan_columns (
	run bigint NOT NULL,
	no int NOT NULL,
	name name NOT NULL,
	position int NOT NULL,
	generated boolean NOT NULL,
	changed_by text,					-- the policy that may change it
	PRIMARY KEY (run, no, name)
);

CREATE TABLE snowflake_migrate_internal.plan_references (
	run bigint NOT NULL,
	no int NOT NULL,
	id int NOT NULL,					-- in the run
	name name NOT NULL,
	referenced int NOT NULL,			-- a table's no, whose map applies
	condition text,
	path text,
	elements boolean NOT NULL,			-- of an array
	dangling text NOT NULL,
	declared boolean NOT NULL,
	PRIMARY KEY (run, id)
);

/* A table of a source, and how far it is copied, or taken back. */
CREATE TABLE snowflake_migrate_internal.plan_sources (
	run bigint NOT NULL,
	no int NOT NULL,
	source int NOT NULL,				-- its place in sources
	relation regclass NOT NULL,
	rows_to_do bigint NOT NULL DEFAULT 0,
	rows_done bigint NOT NULL DEFAULT 0,
	position text,						-- the last key of the last batch, of the key's first column that can be compared
	done boolean NOT NULL DEFAULT false,
	busy interval NOT NULL DEFAULT '0',
	copied_by xid8[] NOT NULL DEFAULT '{}',		-- the transactions
	PRIMARY KEY (run, no, source)
);

CREATE TABLE snowflake_migrate.report (
	run bigint NOT NULL,
	severity text NOT NULL CHECK (severity IN ('error', 'warning', 'info')),
	source name,
	relation text,
	object text,
	problem text NOT NULL,
	count bigint,
	example text,
	advice text
);
COMMENT ON TABLE snowflake_migrate.report IS 'what a merge found and did';

CREATE TABLE snowflake_migrate.records (
	run bigint NOT NULL,
	source name,						-- null: a row of the target
	relation text NOT NULL,
	constraint_name name NOT NULL,
	policy text NOT NULL,
	old_key text,
	new_key text,
	column_name name,
	old_value text,
	new_value text,
	former_row jsonb
);
COMMENT ON TABLE snowflake_migrate.records IS 'what the policies of a merge did to each row';
CREATE INDEX ON snowflake_migrate.records (run, relation);
CREATE INDEX ON snowflake_migrate.report (run);

SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.runs', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate_internal.run_number', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.nodes', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate_internal.plan_tables', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate_internal.plan_columns', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate_internal.plan_references', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate_internal.plan_sources', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.report', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.records', '');

CREATE FUNCTION snowflake_migrate_internal.find(
	run bigint,
	severity text,
	source name,
	relation text,
	object text,
	problem text,
	count bigint,
	example text,
	advice text) RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
	/* What is found again is found once. */
	DELETE FROM snowflake_migrate.report AS f
		WHERE (f.run, f.severity, f.source, f.relation, f.object, f.problem)
			IS NOT DISTINCT FROM (find.run, find.severity, find.source, find.relation,
								  find.object, find.problem);
	INSERT INTO snowflake_migrate.report VALUES (run, severity, source, relation, object, problem, count, example, advice)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find(bigint, text, name, text, text, text, bigint, text, text) IS 'for snowflake_migrate.merge()''s own use: adds to its report';

/*
 * References by foreign keys between the tables of a schema, column by column: of a partitioned table those of any of its
 * partitions count as its own.
 */
CREATE FUNCTION snowflake_migrate_internal.foreign_keys(
	target name,
	OUT conoid oid,
	OUT relation regclass,
	OUT name name,
	OUT referenced regclass,
	OUT referenced_name name) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT DISTINCT ON (r.root, a.attname, p.root, b.attname) f.oid, r.root, a.attname, p.root, b.attname
	FROM pg_constraint AS f
		JOIN pg_class AS c ON c.oid = f.conrelid
		CROSS JOIN LATERAL (SELECT coalesce(pg_partition_root(f.conrelid), f.conrelid)) AS r (root)
		CROSS JOIN LATERAL (SELECT coalesce(pg_partition_root(f.confrelid), f.confrelid)) AS p (root)
		CROSS JOIN LATERAL unnest(f.conkey, f.confkey) AS k (attnum, referenced_attnum)
		JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = k.attnum
		JOIN pg_attribute AS b ON b.attrelid = f.confrelid AND b.attnum = k.referenced_attnum
		JOIN pg_class AS t ON t.oid = r.root
		JOIN pg_namespace AS n ON n.oid = t.relnamespace AND n.nspname = target
	WHERE f.contype = 'f'
	ORDER BY r.root, a.attname, p.root, b.attname, f.conparentid <> 0, f.oid
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.foreign_keys(name) IS 'for snowflake_migrate.merge()''s own use: the references by foreign keys in a schema';

/*
 * An order of the tables in which parents come first: the number of tables that each reaches, and for those that reach each
 * other, one step.
 */
CREATE FUNCTION snowflake_migrate_internal.order(
	tables oid[],
	children oid[],
	parents oid[],
	OUT relation oid,
	OUT step int,
	OUT cyclic boolean) RETURNS SETOF record
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE reach (child, parent) AS (
		SELECT e.child, e.parent FROM unnest(children, parents) AS e (child, parent) WHERE e.parent = ANY (tables)
		UNION
		SELECT r.child, e.parent FROM reach AS r JOIN unnest(children, parents) AS e (child, parent) ON e.child = r.parent
		WHERE e.parent = ANY (tables)
	),
	reached (relation, tables) AS (SELECT r.child, count(*) FILTER (WHERE r.parent <> r.child) FROM reach AS r GROUP BY r.child),
	mutual (relation, first) AS (
		SELECT r.child, min(r.parent) FROM reach AS r JOIN reach AS b ON b.child = r.parent AND b.parent = r.child GROUP BY r.child
	),
	own (relation, reached, first, cyclic) AS (
		SELECT t.oid, coalesce(r.tables, 0), coalesce(m.first, t.oid), m.first IS NOT NULL
		FROM unnest(tables) AS t (oid) LEFT JOIN reached AS r ON r.relation = t.oid LEFT JOIN mutual AS m ON m.relation = t.oid
	)
	SELECT o.relation, dense_rank() OVER (ORDER BY o.reached, o.first)::int, o.cyclic FROM own AS o
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.order(oid[], oid[], oid[]) IS 'for snowflake_migrate.merge()''s own use: an order in which parents come first';

/*
 * Writes the plan of a run.  A key is renumbered where it is one integer column: the primary key, or the column that has a
 * sequence, an identity or snowflake_nextval() as its default; but not a key that is a reference, which follows what it refers
 * to, and not where an equal id is the same row.
 */
CREATE FUNCTION snowflake_migrate_internal.plan(run_ bigint, sources name[], target name) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
BEGIN
	WITH relation AS MATERIALIZED (
		SELECT c.oid, coalesce(d.mode, 'copy') AS mode, d.key AS natural_key, coalesce(d.accept, '{}') AS accept,
			coalesce(d.ignored_columns, '{}') AS ignored_columns
		FROM pg_class AS c
			JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = target
			LEFT JOIN snowflake_migrate.declared_tables AS d ON d.relation = c.oid
		WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
			AND NOT EXISTS (SELECT FROM pg_depend AS e WHERE e.classid = 'pg_class'::regclass AND e.objid = c.oid AND e.deptype = 'e')
	),
	fk AS MATERIALIZED (SELECT f.relation, f.name, f.referenced, f.referenced_name FROM snowflake_migrate_internal.foreign_keys(target) AS f),
	declared AS MATERIALIZED (
		SELECT r.* FROM snowflake_migrate.declared_references AS r WHERE r.relation IN (SELECT c.oid FROM relation AS c)
	),
	copy_order AS MATERIALIZED (
		SELECT o.* FROM snowflake_migrate_internal.order((SELECT array_agg(c.oid) FROM relation AS c),
			coalesce((SELECT array_agg(f.relation ORDER BY f.relation, f.name) FROM fk AS f)::oid[], '{}'),
			coalesce((SELECT array_agg(f.referenced ORDER BY f.relation, f.name) FROM fk AS f)::oid[], '{}')) AS o
	),
	map_order AS MATERIALIZED (
		SELECT o.* FROM snowflake_migrate_internal.order((SELECT array_agg(c.oid) FROM relation AS c),
			coalesce((SELECT array_agg(e.child ORDER BY e.child, e.parent)
			 FROM (SELECT f.relation, f.referenced FROM fk AS f UNION ALL SELECT d.relation, d.referenced FROM declared AS d) AS e (child, parent)
			)::oid[], '{}'),
			coalesce((SELECT array_agg(e.parent ORDER BY e.child, e.parent)
			 FROM (SELECT f.relation, f.referenced FROM fk AS f UNION ALL SELECT d.relation, d.referenced FROM declared AS d) AS e (child, parent)
			)::oid[], '{}')) AS o
	),
	/* The index that says what a row is: the primary key, or else a unique one without nulls, expressions and conditions. */
	key AS MATERIALIZED (
		SELECT DISTINCT ON (i.indrelid) i.indrelid, i.indisprimary,
			(SELECT array_agg(a.attname ORDER BY k.n) FROM unnest(i.indkey[0 : i.indnkeyatts - 1]) WITH ORDINALITY AS k (attnum, n)
			 JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum) AS names
		FROM pg_index AS i JOIN relation AS c ON c.oid = i.indrelid
		WHERE i.indisunique AND i.indisvalid AND i.indexprs IS NULL AND i.indpred IS NULL
			AND (i.indisprimary
				 OR NOT EXISTS (SELECT FROM unnest(i.indkey[0 : i.indnkeyatts - 1]) AS k (attnum)
								JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND NOT a.attnotnull))
		ORDER BY i.indrelid, i.indisprimary DESC, i.indisreplident DESC, i.indnkeyatts, i.indexrelid
	),
	numbered AS MATERIALIZED (
		SELECT DISTINCT ON (c.oid) c.oid, a.attname
		FROM relation AS c
			JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
			/* A domain over integers can't hold new ids, which the check says. */
			JOIN pg_type AS y ON y.oid = a.atttypid
				AND coalesce(nullif(y.typbasetype, 0), y.oid) IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype)
			LEFT JOIN key AS k ON k.indrelid = c.oid
			LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
		WHERE a.attgenerated = ''
			AND (k.names = ARRAY[a.attname]
				 OR ((k.names IS NULL OR a.attname = ANY (k.names))
					 AND (a.attidentity <> ''
						  OR EXISTS (SELECT FROM pg_depend AS u
									 WHERE u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid
										AND ((u.refclassid = 'pg_proc'::regclass
											  AND u.refobjid = snowflake_migrate_internal.default_function())
											 OR (u.refclassid = 'pg_class'::regclass
												 AND EXISTS (SELECT FROM pg_sequence AS q WHERE q.seqrelid = u.refobjid)))))))
			/* A reference that leads back to the column itself is none. */
			AND NOT EXISTS (SELECT FROM fk AS f WHERE f.relation = c.oid AND f.name = a.attname AND NOT EXISTS (
				WITH RECURSIVE w (relation, name) AS (
					SELECT f.referenced, f.referenced_name
					UNION
					SELECT g.referenced, g.referenced_name FROM w JOIN fk AS g ON g.relation = w.relation AND g.name = w.name)
				SELECT FROM w WHERE w.relation = c.oid AND w.name = a.attname))
			AND NOT EXISTS (SELECT FROM declared AS f WHERE f.relation = c.oid AND f.column_name = a.attname)
		ORDER BY c.oid, k.names IS NOT DISTINCT FROM ARRAY[a.attname] DESC, a.attnum
	)
	INSERT INTO snowflake_migrate_internal.plan_tables (run, no, relation, mode, kind, key, natural_key, accept, ignored_columns, created,
														  map_step, copy_step, cyclic)
	SELECT run_, row_number() OVER (ORDER BY p.step, m.step, c.oid), c.oid, c.mode,
		CASE WHEN n.attname IS NOT NULL AND c.mode <> 'same_id' THEN 'id' WHEN k.names IS NOT NULL OR n.attname IS NOT NULL THEN 'key' ELSE 'none' END,
		CASE WHEN n.attname IS NOT NULL AND c.mode <> 'same_id' THEN ARRAY[n.attname] ELSE coalesce(k.names, array_remove(ARRAY[n.attname], NULL)) END,
		c.natural_key, c.accept, c.ignored_columns, t.column_name, m.step, p.step, p.cyclic
	FROM relation AS c
		JOIN copy_order AS p ON p.relation = c.oid
		JOIN map_order AS m ON m.relation = c.oid
		LEFT JOIN key AS k ON k.indrelid = c.oid
		LEFT JOIN numbered AS n ON n.oid = c.oid
		LEFT JOIN snowflake_migrate.declared_created AS t ON t.relation = c.oid;

	INSERT INTO snowflake_migrate_internal.plan_columns (run, no, name, position, generated, changed_by)
	SELECT run_, t.no, a.attname, a.attnum, a.attgenerated <> '',
		(SELECT p.policy FROM snowflake_migrate.declared_policies AS p
		 WHERE p.relation = t.relation AND p.policy IN ('suffix', 'rerank')
			AND a.attname = ANY (snowflake_migrate_internal.policy_columns(t.relation, p.constraint_name, p.policy)) LIMIT 1)
	FROM snowflake_migrate_internal.plan_tables AS t
		JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attnum > 0 AND NOT a.attisdropped
	WHERE t.run = run_;

	/*
	 * A column refers to the key whose map applies to it: through chains of foreign keys, as those of one-to-one tables are, and of
	 * the parts of composite keys.  What is declared of a column takes the place of its foreign keys.
	 */
	WITH RECURSIVE
	edge (relation, name, referenced, referenced_name, condition, path, dangling, declared) AS (
		SELECT r.relation, r.column_name, r.referenced, p.key[1], r.condition, r.path, r.dangling, true
		FROM snowflake_migrate.declared_references AS r
			JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.relation = r.relation
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.relation = r.referenced
		UNION ALL
		SELECT f.relation, f.name, f.referenced, f.referenced_name, NULL, NULL, 'error', false
		FROM snowflake_migrate_internal.foreign_keys(target) AS f
		WHERE NOT EXISTS (SELECT FROM snowflake_migrate.declared_references AS r WHERE r.relation = f.relation AND r.column_name = f.name)
	),
	followed (relation, name, at, at_name, condition, path, dangling, declared) AS (
		SELECT e.* FROM edge AS e
		UNION
		SELECT o.relation, o.name, e.referenced, e.referenced_name, o.condition, o.path, o.dangling, o.declared
		FROM followed AS o JOIN edge AS e ON e.relation = o.at AND e.name = o.at_name AND e.condition IS NULL AND e.path IS NULL
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.relation = o.at AND NOT (p.kind = 'id' AND p.key = ARRAY[o.at_name])
	)
	INSERT INTO snowflake_migrate_internal.plan_references (run, no, id, name, referenced, condition, path, elements, dangling, declared)
	SELECT run_, t.no, row_number() OVER (ORDER BY t.no, o.name, p.no), o.name, p.no, o.condition, o.path, y.typcategory = 'A', o.dangling, o.declared
	FROM (SELECT DISTINCT o.relation, o.name, o.at, o.at_name, o.condition, o.path, o.dangling, o.declared FROM followed AS o) AS o
		JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.relation = o.relation
		JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.relation = o.at AND p.kind = 'id' AND p.key = ARRAY[o.at_name]
		JOIN pg_attribute AS a ON a.attrelid = o.relation AND a.attname = o.name
		JOIN pg_type AS y ON y.oid = a.atttypid
	/* A key that is renumbered refers to nothing. */
	WHERE NOT (t.kind = 'id' AND t.key = ARRAY[o.name]) AND t.mode <> 'ignore' AND a.attgenerated = '';

	/* What is generated refers to what the columns refer to that it is made of. */
	PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, t.relation::text, f.name,
			format('the column is generated and refers to %s, whose keys are renumbered', f.referenced), NULL, NULL,
			format('Declare what the columns that it is made of refer to: SELECT %s(%L, ..., %L, ...);', 'snowflake_migrate.declare_reference', t.relation, f.referenced))
		FROM snowflake_migrate_internal.foreign_keys(target) AS f
			JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.relation = f.relation AND t.mode <> 'ignore'
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.relation = f.referenced AND p.kind = 'id' AND p.key = ARRAY[f.referenced_name]
			JOIN pg_attribute AS a ON a.attrelid = f.relation AND a.attname = f.name AND a.attgenerated <> ''
			JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		WHERE NOT EXISTS (SELECT FROM pg_depend AS u JOIN pg_attribute AS b ON b.attrelid = u.refobjid AND b.attnum = u.refobjsubid
							JOIN snowflake_migrate_internal.plan_references AS r ON r.run = run_ AND r.no = t.no AND r.name = b.attname AND r.referenced = p.no
						  WHERE u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid AND u.refclassid = 'pg_class'::regclass AND u.refobjid = a.attrelid);
	PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, t.relation::text, r.column_name,
			format('the declared reference to %s leads to no key that is renumbered: values stay as they are', r.referenced), NULL, NULL, NULL)
		FROM snowflake_migrate.declared_references AS r
			JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.relation = r.relation AND t.mode <> 'ignore'
		WHERE NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS f WHERE f.run = run_ AND f.no = t.no AND f.name = r.column_name AND f.declared);

	INSERT INTO snowflake_migrate_internal.plan_sources (run, no, source, relation)
	SELECT run_, t.no, s.n, c.oid
	FROM snowflake_migrate_internal.plan_tables AS t
		JOIN pg_class AS r ON r.oid = t.relation
		CROSS JOIN unnest(sources) WITH ORDINALITY AS s (name, n)
		JOIN pg_namespace AS n ON n.nspname = s.name
		JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = r.relname AND c.relkind IN ('r', 'p', 'f', 'v', 'm') AND NOT c.relispartition
	WHERE t.run = run_ AND t.mode <> 'ignore';
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.plan(bigint, name[], name) IS 'for snowflake_migrate.merge()''s own use: writes the plan of a run';
/*
 * The rows of a source as they become in the target: every value that refers to a key is replaced through the map of that
 * key, all others are taken as they are.  Clashes, copying and the proof afterwards read these same rows.
 *
 * Maps are named map_NO in the run's schema, with the columns source, o1 .. oN (old key), n1 .. nN (new key) and action:
 * c copied, m matched, k the target's row was kept, r the target's row takes the source's values, s skipped (no new key).
 * What a policy changed is in change_NO: source, o1 .. oN, tries, and the changed columns, null where they stay.
 * What the target's rows were before is in rank_NO (old and new ranks) and former_NO (rows that took a source's values).
 */

/* The schema of a run, and a table in it. */
CREATE FUNCTION snowflake_migrate_internal.relation(run bigint, name text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT format('snowflake_merge_%s.%I', run, name) $$;
COMMENT ON FUNCTION snowflake_migrate_internal.relation(bigint, text) IS 'for snowflake_migrate.merge()''s own use: a table of a run';

/*
 * How a value of one type becomes one of another without a loss, as a format with %s for the value; null where it can't.  Types
 * that both schemas have under one name (enums, composite types, arrays of them) go by their text.
 */
CREATE FUNCTION snowflake_migrate_internal.cast(from_type oid, from_typmod int, to_type oid, to_typmod int) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	f record;
	t record;
	integers CONSTANT oid[] := ARRAY['smallint'::regtype, 'integer'::regtype, 'bigint'::regtype];
	target CONSTANT text := format_type(to_type, CASE WHEN to_type = 'varchar'::regtype THEN -1 ELSE to_typmod END);
BEGIN
	IF from_type = to_type AND from_typmod = to_typmod THEN
		RETURN '%s';
	END IF;
	SELECT CASE WHEN y.typtype = 'd' THEN y.typbasetype ELSE y.oid END AS base, CASE WHEN y.typtype = 'd' THEN y.typtypmod ELSE from_typmod END AS typmod,
		y.typname, y.typtype, y.typcategory, e.oid AS element, coalesce(e.typtype, y.typtype) AS of INTO f
		FROM pg_type AS y LEFT JOIN pg_type AS e ON e.oid = y.typelem AND y.typcategory = 'A' WHERE y.oid = from_type;
	SELECT CASE WHEN y.typtype = 'd' THEN y.typbasetype ELSE y.oid END AS base, CASE WHEN y.typtype = 'd' THEN y.typtypmod ELSE to_typmod END AS typmod,
		y.typname, y.typtype, y.typcategory, e.oid AS element, coalesce(e.typtype, y.typtype) AS of INTO t
		FROM pg_type AS y LEFT JOIN pg_type AS e ON e.oid = y.typelem AND y.typcategory = 'A' WHERE y.oid = to_type;
	IF f.base = t.base THEN
		/* A length that is too great is an error when the row is stored; digits would be lost. */
		IF t.typmod <> -1 AND t.base <> 'varchar'::regtype AND f.typmod <> t.typmod
			AND NOT (t.base IN ('bpchar'::regtype, 'varbit'::regtype) AND f.typmod BETWEEN 0 AND t.typmod) THEN
			RETURN NULL;
		END IF;
		RETURN '(%s)::' || target;
	ELSIF f.base = ANY (integers) AND t.base = ANY (integers)
		OR f.element = ANY (integers) AND t.element = ANY (integers)
		OR f.base = 'json'::regtype AND t.base = 'jsonb'::regtype
		OR EXISTS (SELECT FROM pg_cast AS c WHERE c.castsource = f.base AND c.casttarget = t.base AND c.castcontext = 'i')
			AND (t.typmod = -1 OR t.base = 'varchar'::regtype)
		OR t.typcategory = 'S' AND t.base IN ('text'::regtype, 'varchar'::regtype) AND f.typcategory = 'S' THEN
		RETURN '(%s)::' || target;
	ELSIF f.of = t.of AND f.of IN ('e', 'c', 'd') AND f.typname = t.typname THEN
		RETURN '(%s)::text::' || target;
	END IF;
	RETURN NULL;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.cast(oid, int, oid, int) IS 'for snowflake_migrate.merge()''s own use: how a value becomes one of another type';

/* The id that a part of a document is, written as a number or as a string; null where it is none. */
CREATE FUNCTION snowflake_migrate_internal.json_id(part jsonb) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF jsonb_typeof(part) IN ('number', 'string') AND part #>> '{}' ~ '^-?(0|[1-9]\d{0,18})$'
		AND (part #>> '{}')::numeric BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
		RETURN (part #>> '{}')::bigint;
	END IF;
	RETURN NULL;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.json_id(jsonb) IS 'for snowflake_migrate.merge()''s own use: the id that a part of a document is';

/* The id that a text is; null where it is none. */
CREATE FUNCTION snowflake_migrate_internal.text_id(value text) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT snowflake_migrate_internal.json_id(to_jsonb(value)) $$;
COMMENT ON FUNCTION snowflake_migrate_internal.text_id(text) IS 'for snowflake_migrate.merge()''s own use: the id that a text is';

/* A column's value as an id: what is no whole number is none. */
CREATE FUNCTION snowflake_migrate_internal.id_of(value text, type oid) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN type IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype) THEN value || '::bigint'
			WHEN type IN ('numeric'::regtype, 'real'::regtype, 'double precision'::regtype)
				THEN format('snowflake_migrate_internal.text_id(trim_scale(%s::numeric)::text)', value)
			ELSE format('snowflake_migrate_internal.text_id(%s::text)', value) END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.id_of(text, oid) IS 'for snowflake_migrate.merge()''s own use: a column''s value as an id';

/* A document whose ids at these steps of a path are replaced as ids says: an object from old ids to new ones. */
CREATE FUNCTION snowflake_migrate_internal.document_at(
	part jsonb,
	kinds text[],
	names text[],
	filters text[],
	step int,
	ids jsonb,
	unknown_null boolean) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	id text;
	type CONSTANT text := jsonb_typeof(part);
BEGIN
	/* What the step before chose, its filter decides. */
	IF step > 1 AND filters[step - 1] IS NOT NULL AND NOT jsonb_path_exists(part, filters[step - 1]::jsonpath) THEN
		RETURN part;
	ELSIF step > cardinality(kinds) THEN
		id := snowflake_migrate_internal.json_id(part);
		IF id IS NULL THEN
			RETURN part;
		ELSIF ids ? id THEN
			RETURN CASE WHEN type = 'number' OR ids -> id = 'null' THEN ids -> id ELSE to_jsonb(ids ->> id) END;
		END IF;
		RETURN CASE WHEN unknown_null THEN 'null' ELSE part END;
	END IF;
	/* Arrays are taken apart as the lax mode of jsonpath does, and what is no array stands for its one element. */
	IF type = 'array' AND kinds[step] IN ('member', 'wildcard_member', 'keys') THEN
		RETURN (SELECT coalesce(jsonb_agg(CASE WHEN jsonb_typeof(e.value) = 'object'
					THEN snowflake_migrate_internal.document_at(e.value, kinds, names, filters[: step - 2] || NULL::text || filters[step :],
																  step, ids, unknown_null)
					ELSE e.value END ORDER BY e.n), '[]')
				FROM jsonb_array_elements(part) WITH ORDINALITY AS e (value, n));
	ELSIF type <> 'array' AND (kinds[step] = 'elements' OR kinds[step] = 'element' AND names[step] = '0') THEN
		RETURN snowflake_migrate_internal.document_at(part, kinds, names, filters, step + 1, ids, unknown_null);
	END IF;
	CASE kinds[step]
	WHEN 'member' THEN
		IF type = 'object' AND part ? names[step] THEN
			RETURN part || jsonb_build_object(names[step],
				snowflake_migrate_internal.document_at(part -> names[step], kinds, names, filters, step + 1, ids, unknown_null));
		END IF;
	WHEN 'wildcard_member' THEN
		IF type = 'object' THEN
			RETURN (SELECT coalesce(jsonb_object_agg(e.key,
						snowflake_migrate_internal.document_at(e.value, kinds, names, filters, step + 1, ids, unknown_null)), '{}')
					FROM jsonb_each(part) AS e);
		END IF;
	WHEN 'elements' THEN
		RETURN (SELECT coalesce(jsonb_agg(
					snowflake_migrate_internal.document_at(e.value, kinds, names, filters, step + 1, ids, unknown_null) ORDER BY e.n), '[]')
				FROM jsonb_array_elements(part) WITH ORDINALITY AS e (value, n));
	WHEN 'element' THEN
		IF names[step]::int < jsonb_array_length(part) THEN
			RETURN jsonb_set(part, ARRAY[names[step]],
				snowflake_migrate_internal.document_at(part -> names[step]::int, kinds, names, filters, step + 1, ids, unknown_null));
		END IF;
	WHEN 'keys' THEN
		IF type = 'object' THEN
			IF (SELECT count(DISTINCT coalesce(ids ->> e, e)) < count(*) FROM jsonb_object_keys(part) AS e WHERE ids -> e IS DISTINCT FROM 'null') THEN
				RAISE EXCEPTION USING ERRCODE = 'unique_violation', MESSAGE = 'keys of an object in a document would become one',
					DETAIL = format('The object is %s.', left(part::text, 200)), HINT = 'Add their values up in the source, or leave the reference out.';
			END IF;
			/* A key that has no new one goes. */
			RETURN (SELECT coalesce(jsonb_object_agg(coalesce(ids ->> e.key, e.key), e.value), '{}')
					FROM jsonb_each(part) AS e
					WHERE NOT (coalesce(ids -> e.key, CASE WHEN unknown_null AND snowflake_migrate_internal.json_id(to_jsonb(e.key)) IS NOT NULL
													  THEN 'null'::jsonb ELSE 'true'::jsonb END) = 'null'));
		END IF;
	END CASE;
	RETURN part;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.document_at(jsonb, text[], text[], text[], int, jsonb, boolean) IS 'for snowflake_migrate_internal.document(): the part at a step of the path';

CREATE FUNCTION snowflake_migrate_internal.document(document jsonb, path text, ids jsonb, unknown_null boolean) RETURNS jsonb
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_migrate_internal.document_at(document, coalesce(array_agg(p.kind), '{}'), array_agg(p.name), array_agg(p.filter), 1, ids, unknown_null)
	FROM snowflake_migrate_internal.path(path) AS p
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.document(jsonb, text, jsonb, boolean) IS 'for snowflake_migrate.merge()''s own use: a document with new ids';

/* A relation as it is read: without the children that are tables of their own. */
CREATE FUNCTION snowflake_migrate_internal.only(relation regclass) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN c.relkind = 'r' THEN 'ONLY ' ELSE '' END || relation::text FROM pg_class AS c WHERE c.oid = relation
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.only(regclass) IS 'for snowflake_migrate.merge()''s own use: a table as it is read';

/*
 * A partition is read through its table, as rights on that are enough: the partition's own rows among those of an alias, as a
 * condition that follows others.
 */
CREATE FUNCTION snowflake_migrate_internal.in_part(relation regclass, alias text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN pg_partition_root(relation) <> relation
		THEN format(' AND %s.tableoid IN (SELECT l.relid FROM pg_partition_tree(%s) AS l)', alias, relation::oid) ELSE '' END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.in_part(regclass, text) IS 'for snowflake_migrate.merge()''s own use: the rows of a partition, as a condition';

/*
 * A source's key in the types of the map: integers of any width can be compared with each other, so that a source on another
 * server can compare them; what else has not the target's type becomes it.
 */
CREATE FUNCTION snowflake_migrate_internal.key_values(
	relation regclass,
	source_relation regclass,
	key name[],
	OUT n int,
	OUT value text,
	OUT type text,
	OUT can_range boolean) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT k.n,
		CASE WHEN i.is_integer AND s.atttypid IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype) THEN format('s.%I', k.name)
			ELSE replace(coalesce(snowflake_migrate_internal.cast(s.atttypid, s.atttypmod, t.atttypid, t.atttypmod),
								  '(%s)::' || format_type(t.atttypid, t.atttypmod)),
						 '%s', format('s.%I', k.name)) END
			|| CASE WHEN t.attcollation <> s.attcollation
				THEN (SELECT format(' COLLATE %I.%I', n.nspname, l.collname) FROM pg_collation AS l JOIN pg_namespace AS n ON n.oid = l.collnamespace
					  WHERE l.oid = t.attcollation) ELSE '' END,
		CASE WHEN i.is_integer THEN 'bigint' ELSE format_type(t.atttypid, t.atttypmod) END,
		/* Texts may sort otherwise where the source is. */
		i.is_integer OR t.atttypid IN ('uuid'::regtype, 'date'::regtype, 'timestamptz'::regtype, 'timestamp'::regtype)
	FROM unnest(key) WITH ORDINALITY AS k (name, n)
		JOIN pg_attribute AS t ON t.attrelid = relation AND t.attname = k.name
		JOIN pg_attribute AS s ON s.attrelid = source_relation AND s.attname = k.name AND s.attnum > 0,
		LATERAL (SELECT t.atttypid IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype)) AS i (is_integer)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.key_values(regclass, regclass, name[]) IS 'for snowflake_migrate.merge()''s own use: a source''s key in the types of the map';

/*
 * Whether a row of the target (t) differs from what it should be.  Where values of a type that are equal have the same bits, they
 * are compared as such, which is faster; the others by their bits.
 */
CREATE FUNCTION snowflake_migrate_internal.differs(relation regclass, names text[], expressions text[]) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT '(' || concat_ws(' OR ',
			string_agg(format('t.%I IS DISTINCT FROM %s', e.name, e.expression), ' OR ' ORDER BY e.n) FILTER (WHERE e.exact),
			'ROW (' || string_agg(format('t.%I', e.name), ', ' ORDER BY e.n) FILTER (WHERE NOT e.exact) || ')::record OPERATOR(pg_catalog.*<>) ROW ('
				|| string_agg(e.expression, ', ' ORDER BY e.n) FILTER (WHERE NOT e.exact) || ')::record')
		|| ')'
	FROM (
		SELECT u.*,
			a.atttypid IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype, 'boolean'::regtype, 'timestamptz'::regtype, 'timestamp'::regtype,
						   'date'::regtype, 'uuid'::regtype, 'bytea'::regtype)
				OR a.atttypid IN ('text'::regtype, 'varchar'::regtype) AND l.collisdeterministic AS exact
		FROM unnest(names, expressions) WITH ORDINALITY AS u (name, expression, n)
			JOIN pg_attribute AS a ON a.attrelid = relation AND a.attname = u.name
			LEFT JOIN pg_collation AS l ON l.oid = a.attcollation) AS e
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.differs(regclass, text[], text[]) IS 'for snowflake_migrate.merge()''s own use: whether a row differs';

/*
 * The parts of a query for the rows of one table of one source: the target's columns that it gives, what each becomes, and
 * where from.  There, s is the source's row, m its entry in the map (with_map), v what policies changed.  Columns that the source
 * lacks are not among them, or with all_columns are their defaults.
 */
CREATE FUNCTION snowflake_migrate_internal.rows_parts(
	run_ bigint,
	no_ int,
	source_ int,
	with_map boolean,
	all_columns boolean,
	OUT names text[],
	OUT expressions text[],
	OUT origin text)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	source_relation regclass;
	map text;
	inner_columns text := '';
	joins text := '';
	col record;
	ref record;
	value text;
	expr text;
	plain text;
	cases text;
	mapped text;
	has_change boolean;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	SELECT s.relation INTO STRICT source_relation FROM snowflake_migrate_internal.plan_sources AS s
		WHERE s.run = run_ AND s.no = no_ AND s.source = source_;
	has_change := with_map AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_columns AS c
									   WHERE c.run = run_ AND c.no = no_ AND c.changed_by IS NOT NULL);
	names := '{}';
	expressions := '{}';

	FOR col IN
		SELECT c.name, c.generated, c.changed_by, array_position(plan.key, c.name) AS key_position,
			t.atttypid AS type, t.atttypmod AS typmod, format_type(t.atttypid, t.atttypmod) AS type_name,
			s.attname IS NOT NULL AS given, s.atttypid AS source_type, s.atttypmod AS source_typmod,
			CASE WHEN t.attcollation <> s.attcollation
				THEN (SELECT format('%I.%I', n.nspname, l.collname) FROM pg_collation AS l JOIN pg_namespace AS n ON n.oid = l.collnamespace
					  WHERE l.oid = t.attcollation) END AS collation,
			format('CAST((%s) AS %s)', coalesce(pg_get_expr(d.adbin, d.adrelid), 'NULL'), format_type(t.atttypid, t.atttypmod)) AS default_value
		FROM snowflake_migrate_internal.plan_columns AS c
			JOIN pg_attribute AS t ON t.attrelid = plan.relation AND t.attname = c.name
			LEFT JOIN pg_attrdef AS d ON d.adrelid = plan.relation AND d.adnum = t.attnum
			LEFT JOIN pg_attribute AS s ON s.attrelid = source_relation AND s.attname = c.name AND s.attnum > 0 AND NOT s.attisdropped
		WHERE c.run = run_ AND c.no = no_ AND NOT c.generated
		ORDER BY c.position
	LOOP
		value := format('s.%I', col.name);
		IF NOT col.given THEN
			CONTINUE WHEN NOT all_columns AND NOT (has_change AND col.changed_by IS NOT NULL);
			expr := col.default_value;
		ELSE
			expr := replace(coalesce(snowflake_migrate_internal.cast(col.source_type, col.source_typmod, col.type, col.typmod),
									 '(%s)::' || col.type_name), '%s', value)
				|| coalesce(' COLLATE ' || col.collation, '');
			plain := expr;
			cases := '';
			FOR ref IN
				SELECT r.*, snowflake_migrate_internal.relation(run_, 'map_' || r.referenced) AS map,
					CASE WHEN r.condition IS NOT NULL THEN format('s.%I', 'snowflake condition ' || r.id) END AS condition_column
				FROM snowflake_migrate_internal.plan_references AS r
				WHERE r.run = run_ AND r.no = no_ AND r.name = col.name ORDER BY r.path DESC NULLS LAST, r.condition NULLS LAST, r.id
			LOOP
				IF ref.condition IS NOT NULL THEN
					inner_columns := inner_columns || format(', (%s) IS TRUE AS %I', ref.condition, 'snowflake condition ' || ref.id);
				END IF;
				/* OFFSET 0: the few ids of a value are looked up one by one, by the index, and not in a join with the whole map. */
				IF ref.path IS NOT NULL THEN
					mapped := format('snowflake_migrate_internal.document((%s)::jsonb, %L, (SELECT coalesce(jsonb_object_agg(r.o1, r.n1), %L) '
						'FROM (SELECT DISTINCT snowflake_migrate_internal.json_id(p.part) FROM jsonb_path_query((%s)::jsonb, %L, silent => true) AS p (part)) AS i (id) '
						'CROSS JOIN LATERAL (SELECT f.o1, f.n1 FROM %s AS f WHERE f.source = %s AND f.o1 = i.id OFFSET 0) AS r), %L)::%s',
						expr, ref.path, '{}', value, ref.path, ref.map, source_, ref.dangling = 'null', col.type_name);
					expr := CASE WHEN ref.condition IS NULL THEN mapped
							ELSE format('CASE WHEN %s THEN %s ELSE %s END', ref.condition_column, mapped, expr) END;
					CONTINUE;
				ELSIF ref.elements THEN
					mapped := format('CASE WHEN %s IS NOT NULL THEN coalesce((SELECT array_agg(%s ORDER BY e.n) '
						'FROM unnest(%s) WITH ORDINALITY AS e (id, n) LEFT JOIN LATERAL (SELECT f.o1, f.n1 FROM %s AS f WHERE f.source = %s AND f.o1 = e.id OFFSET 0) AS r ON true '
						'WHERE r.o1 IS NULL OR r.n1 IS NOT NULL), ''{}'') END',
						value, CASE WHEN ref.dangling = 'keep' THEN 'CASE WHEN r.o1 IS NULL THEN e.id ELSE r.n1 END' ELSE 'r.n1' END,
						value, ref.map, source_);
				ELSE
					/* Only a value for which the condition holds need be an id. */
					joins := joins || format(' LEFT JOIN %s AS r%s ON r%s.source = %s AND r%s.o1 = %s', ref.map, ref.id, ref.id, source_, ref.id,
						CASE WHEN ref.condition IS NULL THEN snowflake_migrate_internal.id_of(value, col.source_type)
							 ELSE format('CASE WHEN %s THEN %s END', ref.condition_column, snowflake_migrate_internal.id_of(value, col.source_type)) END);
					mapped := CASE WHEN ref.dangling = 'keep'
						THEN format('CASE WHEN r%s.o1 IS NULL THEN %s ELSE r%s.n1::%s END', ref.id, plain, ref.id, col.type_name)
						ELSE format('r%s.n1', ref.id) END;
				END IF;
				IF col.type NOT IN ('bigint'::regtype, 'bigint[]'::regtype) THEN
					mapped := format('(%s)::%s', mapped, col.type_name);
				END IF;
				IF ref.condition IS NULL THEN
					expr := mapped;
				ELSE
					cases := cases || format(' WHEN %s THEN %s', ref.condition_column, mapped);
				END IF;
			END LOOP;
			IF cases <> '' THEN
				expr := 'CASE' || cases || ' ELSE ' || expr || ' END';
			END IF;
		END IF;
		IF with_map AND col.key_position IS NOT NULL THEN
			expr := 'm.n' || col.key_position;
			IF col.type IN ('smallint'::regtype, 'integer'::regtype) THEN
				expr := expr || '::' || col.type_name;
			END IF;
		END IF;
		IF has_change AND col.changed_by IS NOT NULL THEN
			expr := format('coalesce(v.%I, %s)', col.name, expr);
		END IF;
		names := names || col.name::text;
		expressions := expressions || expr;
	END LOOP;

	origin := snowflake_migrate_internal.only(source_relation);
	IF inner_columns = '' THEN
		origin := origin || ' AS s';
	ELSE
		origin := format('(SELECT %I.*%s FROM %s AS %I) AS s', (SELECT c.relname FROM pg_class AS c WHERE c.oid = plan.relation), inner_columns,
						 origin, (SELECT c.relname FROM pg_class AS c WHERE c.oid = plan.relation));
	END IF;
	IF with_map THEN
		map := snowflake_migrate_internal.relation(run_, 'map_' || no_);
		origin := origin || format(' JOIN %s AS m ON m.source = %s', map, source_)
			|| (SELECT string_agg(format(' AND m.o%s = %s', k.n, k.value), '' ORDER BY k.n)
				FROM snowflake_migrate_internal.key_values(plan.relation, source_relation, plan.key) AS k);
		IF has_change THEN
			origin := origin || format(' LEFT JOIN %s AS v ON v.source = %s', snowflake_migrate_internal.relation(run_, 'change_' || no_), source_)
				|| (SELECT string_agg(format(' AND v.o%s = m.o%s', k.n, k.n), '' ORDER BY k.n)
					FROM generate_subscripts(plan.key, 1) AS k (n));
		END IF;
	END IF;
	origin := origin || joins;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.rows_parts(bigint, int, int, boolean, boolean) IS 'for snowflake_migrate.merge()''s own use: the parts of a query for rows as they become';

/* A query for a table's rows, with its generated columns, which are made of the others, added. */
CREATE FUNCTION snowflake_migrate_internal.with_generated(relation regclass, rows text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN count(a.attname) = 0 THEN rows
			ELSE format('SELECT %I.*, %s FROM (%s) AS %I', c.relname,
						string_agg(format('(%s) AS %I', pg_get_expr(d.adbin, d.adrelid), a.attname), ', ' ORDER BY a.attnum)
							FILTER (WHERE a.attname IS NOT NULL),
						rows, c.relname) END
	FROM pg_class AS c
		LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attgenerated <> '' AND NOT a.attisdropped
		LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
	WHERE c.oid = relation
	GROUP BY c.relname
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.with_generated(regclass, text) IS 'for snowflake_migrate.merge()''s own use: adds generated columns to a query';

/*
 * A query for the rows of one table of one source as they become, with all columns.  Of a table with a key, "merge o1" .. are the
 * source's key, "merge n1" .. the target's, then "merge action" and "merge tries", how often a policy has changed the row.
 */
CREATE FUNCTION snowflake_migrate_internal.rows(run_ bigint, no_ int, source_ int) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT snowflake_migrate_internal.with_generated(t.relation,
		format('SELECT %s FROM %s',
			concat_ws(', ',
				CASE WHEN t.kind <> 'none' THEN
					(SELECT string_agg(format('m.o%s AS "merge o%s", m.n%s AS "merge n%s"', n, n, n, n), ', ' ORDER BY n)
					 FROM generate_subscripts(t.key, 1) AS n)
					|| ', m.action AS "merge action"'
					|| CASE WHEN EXISTS (SELECT FROM snowflake_migrate_internal.plan_columns AS c
										 WHERE c.run = run_ AND c.no = no_ AND c.changed_by IS NOT NULL)
						THEN ', coalesce(v.tries, 0) AS "merge tries"' ELSE ', 0 AS "merge tries"' END END,
				(SELECT string_agg(format('%s AS %I', e.expression, e.name), ', ') FROM unnest(p.names, p.expressions) AS e (name, expression))),
			p.origin))
	FROM snowflake_migrate_internal.plan_tables AS t,
		snowflake_migrate_internal.rows_parts(run_, no_, source_, t.kind <> 'none', true) AS p
	WHERE t.run = run_ AND t.no = no_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.rows(bigint, int, int) IS 'for snowflake_migrate.merge()''s own use: a query for rows as they become';
/*
 * The maps of a run: which row of a source becomes which of the target.  All of them are made in one transaction, before the
 * first row is copied, so that everything that would stop the merge is known by then.
 *
 * Ids: those that were taken from a sequence are renumbered under the source's node number, in order of time over all of its
 * tables.  A place in time is a slot: the tick times the ids of a tick, plus the sequence.  The i-th row goes to slot
 * i + max over j <= i of (the first slot of j's tick - j), the first that is free from its tick on, so that a full tick spills into
 * the next.
 */

/* The columns x1 .. xn of an alias, or as it is called in a query for rows. */
CREATE FUNCTION snowflake_migrate_internal.key_list(format text, key name[], separator text DEFAULT ', ') RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT string_agg(replace(replace(format, '#', n::text), '@', quote_ident(key[n])), separator ORDER BY n) FROM generate_subscripts(key, 1) AS n
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.key_list(text, name[], text) IS 'for snowflake_migrate.merge()''s own use: a list with an item for each column of a key';

/* A key for people: the value, or all values in brackets. */
CREATE FUNCTION snowflake_migrate_internal.key_text(format text, key name[]) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE cardinality(key) WHEN 1 THEN snowflake_migrate_internal.key_list(format, key) || '::text'
			ELSE 'ROW (' || snowflake_migrate_internal.key_list(format, key) || ')::text' END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.key_text(text, name[]) IS 'for snowflake_migrate.merge()''s own use: a key as text';

/* The greatest id that counts as taken from a sequence: of the first day after the layout's epoch. */
CREATE FUNCTION snowflake_migrate_internal.last_serial() RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_migrate_internal.min_id(l.epoch + interval '1 day') - 1 FROM snowflake_migrate_internal.layout() AS l
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.last_serial() IS 'for snowflake_migrate.merge()''s own use: the greatest id that counts as taken from a sequence';

/* The new ids of one source, and the ids that it keeps. */
CREATE FUNCTION snowflake_migrate_internal.number(run_ bigint, source_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	layout record;
	run_row record;
	plan record;
	node bigint;
	zero bigint;			-- the id of slot 0
	tick_unit bigint;		-- between the ids of a tick and the next
	sequence_unit bigint;
	slots bigint;			-- of a tick
	start_slot bigint;
	last_slot bigint;
	last_serial CONSTANT bigint := snowflake_migrate_internal.last_serial();
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map');
	serial text;
	at text;
	timed text[] := '{}';
	untimed text[] := '{}';
	early bigint;
	example text;
	overflow boolean;
BEGIN
	SELECT r.* INTO STRICT run_row FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	node := run_row.nodes[source_];
	SELECT l.* INTO layout FROM snowflake_migrate_internal.layout() AS l;
	zero := snowflake_migrate_internal.encode(layout.epoch, node, 0);
	tick_unit := snowflake_migrate_internal.encode(layout.epoch + layout.tick, node, 0) - zero;
	sequence_unit := snowflake_migrate_internal.encode(layout.epoch, node, 1) - zero;
	slots := 1::bigint << layout.sequence_bits;
	last_slot := (2::numeric ^ (layout.timestamp_bits + layout.sequence_bits) - 1)::bigint;
	start_slot := snowflake_migrate_internal.max_id(run_row.started_at) / tick_unit * slots;

	FOR plan IN
		SELECT t.no, t.relation, t.key[1] AS key, s.relation AS source_relation, c.attname AS created,
			EXISTS (SELECT FROM snowflake_migrate.declared_policies AS p WHERE p.relation = t.relation AND p.policy = 'renumber') AS renumber
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN snowflake_migrate_internal.plan_sources AS s ON s.run = run_ AND s.no = t.no AND s.source = source_
			LEFT JOIN pg_attribute AS c ON c.attrelid = s.relation AND c.attname = t.created AND NOT c.attisdropped
		WHERE t.run = run_ AND t.kind = 'id' AND t.mode <> 'ignore'
		ORDER BY t.no
	LOOP
		serial := format('s.%I <= %s', plan.key, last_serial);
		at := CASE WHEN plan.created IS NULL THEN 'NULL::timestamptz' ELSE format('s.%I::timestamptz', plan.created) END;
		IF plan.renumber THEN
			/* An id that is there already gets another, at the time that it tells. */
			serial := format('(%s OR EXISTS (SELECT FROM %s AS t WHERE t.%I = s.%I) OR EXISTS (SELECT FROM %s AS m WHERE m.no = %s AND m.source < %s AND m.n1 = s.%I))',
							 serial, snowflake_migrate_internal.only(plan.relation), plan.key, plan.key, map, plan.no, source_, plan.key);
			at := format('CASE WHEN s.%I <= %s THEN %s ELSE snowflake_migrate_internal.timestamp(s.%I::bigint) END', plan.key, last_serial, at, plan.key);
		END IF;
		IF plan.created IS NOT NULL OR plan.renumber THEN
			EXECUTE format('SELECT count(*), min(%I::text) FROM %s AS s WHERE %s AND %s < %L', plan.key, snowflake_migrate_internal.only(plan.source_relation),
						   serial, at, layout.epoch) INTO early, example;
			IF early > 0 THEN
				PERFORM snowflake_migrate_internal.find(run_, 'error', run_row.sources[source_], plan.relation::text, plan.created,
					format('rows were created before the layout''s epoch, %s', layout.epoch), early, example,
					'Give these rows another time, or take back the declaration of the column, or merge under a layout with an earlier epoch.');
			END IF;
			timed := timed || format('SELECT %s AS no, s.%I::bigint AS o, least(snowflake_migrate_internal.max_id(%s) / %s * %s, %s) AS at FROM %s AS s WHERE %s AND %s IS NOT NULL',
				plan.no, plan.key, at, tick_unit, slots, start_slot, snowflake_migrate_internal.only(plan.source_relation), serial, at);
			untimed := untimed || format('SELECT %s AS no, s.%I::bigint AS o FROM %s AS s WHERE %s AND %s IS NULL',
				plan.no, plan.key, snowflake_migrate_internal.only(plan.source_relation), serial, at);
		ELSE
			untimed := untimed || format('SELECT %s AS no, s.%I::bigint AS o FROM %s AS s WHERE %s',
				plan.no, plan.key, snowflake_migrate_internal.only(plan.source_relation), serial);
		END IF;

		/* Rows that have a snowflake id keep it. */
		EXECUTE format('INSERT INTO %s (no, source, o1, n1, action) SELECT %s, %s, s.%I, s.%I, ''c'' FROM %s AS s WHERE NOT %s',
					   map, plan.no, source_, plan.key, plan.key, snowflake_migrate_internal.only(plan.source_relation), serial);
	END LOOP;
	IF untimed = '{}' THEN
		RETURN;
	END IF;

	EXECUTE format(
		'INSERT INTO %s (no, source, o1, n1, action) SELECT z.no, %s, z.o, CASE WHEN z.slot BETWEEN 0 AND %s THEN %s + z.slot / %s * %s + z.slot %% %s * %s END, ''c'' '
		'FROM (SELECT r.no, r.o, r.i + max(r.at - r.i) OVER (ORDER BY r.at, r.no, r.o ROWS UNBOUNDED PRECEDING) AS slot '
		'FROM (SELECT p.no, p.o, p.at, row_number() OVER (ORDER BY p.at, p.no, p.o) AS i '
		'FROM (SELECT u.no, u.o, %s - count(*) OVER () + row_number() OVER (ORDER BY u.no, u.o) - 1 AS at FROM (%s) AS u%s) AS p) AS r) AS z',
		map, source_, last_slot, zero, slots, tick_unit, slots, sequence_unit, start_slot,
		array_to_string(untimed, ' UNION ALL '), CASE WHEN timed = '{}' THEN '' ELSE ' UNION ALL ' || array_to_string(timed, ' UNION ALL ') END);
	EXECUTE format('SELECT EXISTS (SELECT FROM %s AS m WHERE m.source = %s AND m.n1 IS NULL)', map, source_) INTO overflow;
	IF overflow THEN
		PERFORM snowflake_migrate_internal.find(run_, 'error', run_row.sources[source_], NULL, NULL,
			'the layout has no room for the new ids between its epoch and its end', NULL, NULL, 'Merge under another layout.');
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.number(bigint, int) IS 'for snowflake_migrate.merge()''s own use: the new ids of a source';

/* A unique index, or what is matched like one: the text of its expressions, how they are compared, and which rows are in it. */
CREATE FUNCTION snowflake_migrate_internal.unique(
	run_ bigint,
	no_ int,
	OUT label name,
	OUT expressions text[],
	OUT operators text[],
	OUT distinct_nulls boolean,
	OUT predicate text,
	OUT policy text,
	OUT argument text,
	OUT changed name,
	OUT is_key boolean) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT u.* FROM (
		SELECT x.relname,
			(SELECT array_agg('(' || pg_get_indexdef(i.indexrelid, n, true) || ')' ORDER BY n) FROM generate_series(1, i.indnkeyatts) AS n),
			(SELECT array_agg(format('OPERATOR(%I.%s)', s.nspname, p.oprname) ORDER BY k.n)
			 FROM unnest(i.indclass) WITH ORDINALITY AS k (opclass, n)
				JOIN pg_opclass AS c ON c.oid = k.opclass
				JOIN pg_amop AS a ON a.amopfamily = c.opcfamily AND a.amoplefttype = c.opcintype AND a.amoprighttype = c.opcintype
					AND a.amopstrategy = 3
				JOIN pg_operator AS p ON p.oid = a.amopopr
				JOIN pg_namespace AS s ON s.oid = p.oprnamespace),
			NOT i.indnullsnotdistinct,
			pg_get_expr(i.indpred, i.indrelid),
			CASE WHEN t.mode = 'same_id' AND k.is_key THEN 'same_id' ELSE coalesce(p.policy, 'error') END,
			p.argument,
			CASE WHEN p.policy IN ('suffix', 'rerank')
				THEN (snowflake_migrate_internal.policy_columns(t.relation, x.relname, p.policy))[1] END,
			k.is_key
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN pg_index AS i ON i.indrelid = t.relation AND i.indisunique AND i.indislive
			JOIN pg_class AS x ON x.oid = i.indexrelid
			CROSS JOIN LATERAL (
				SELECT i.indexprs IS NULL AND i.indpred IS NULL
					AND ARRAY(SELECT a.attname FROM unnest(i.indkey[0 : i.indnkeyatts - 1]) WITH ORDINALITY AS c (attnum, n)
							  JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = c.attnum ORDER BY c.n) = t.key) AS k (is_key)
			LEFT JOIN snowflake_migrate.declared_policies AS p ON p.relation = t.relation AND p.constraint_name = x.relname
		WHERE t.run = run_ AND t.no = no_
		UNION ALL
		SELECT 'natural key', (SELECT array_agg(quote_ident(n)) FROM unnest(t.natural_key) AS n),
			(SELECT array_agg(format('OPERATOR(%I.=)', coalesce(s.nspname, 'pg_catalog')) ORDER BY k.n)
			 FROM unnest(t.natural_key) WITH ORDINALITY AS k (name, n)
				JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attname = k.name
				LEFT JOIN pg_opclass AS c ON c.opcintype = a.atttypid AND c.opcdefault AND c.opcmethod = (SELECT m.oid FROM pg_am AS m WHERE m.amname = 'btree')
				LEFT JOIN pg_namespace AS s ON s.oid = c.opcnamespace),
			false, NULL, 'match', NULL, NULL, false
		FROM snowflake_migrate_internal.plan_tables AS t
		WHERE t.run = run_ AND t.no = no_ AND t.mode = 'match'
	) AS u (label, expressions, operators, distinct_nulls, predicate, policy, argument, changed, is_key)
	/* What decides which rows are the same comes first. */
	ORDER BY u.policy NOT IN ('match', 'same_id'), NOT u.is_key, u.label
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.unique(bigint, int) IS 'for snowflake_migrate.merge()''s own use: what must be unique in a table';

/* The CHECK constraints of a table, and of the domains of its columns, as expressions over the table's columns. */
CREATE FUNCTION snowflake_migrate_internal.checks(
	relation regclass,
	OUT label name,
	OUT names name[],
	OUT expression text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT c.conname, (SELECT array_agg(a.attname) FROM pg_attribute AS a WHERE a.attrelid = relation AND a.attnum = ANY (c.conkey)),
		pg_get_expr(c.conbin, c.conrelid)
	FROM pg_constraint AS c WHERE c.conrelid = relation AND c.contype = 'c'
	UNION ALL
	SELECT c.conname, ARRAY[a.attname], regexp_replace(pg_get_expr(c.conbin, 0), '\mVALUE\M', quote_ident(a.attname), 'g')
	FROM pg_attribute AS a JOIN pg_constraint AS c ON c.contypid = a.atttypid AND c.contype = 'c'
	WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.checks(regclass) IS 'for snowflake_migrate.merge()''s own use: CHECK constraints as expressions';

/* The rows of all sources as they become, where they are rows of their own, with their source before. */
CREATE FUNCTION snowflake_migrate_internal.all_rows(run_ bigint, no_ int, list text, predicate text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT string_agg(format('SELECT %s AS "merge source", %s FROM (%s) AS %I WHERE %s%s', s.source, list,
							 snowflake_migrate_internal.rows(run_, no_, s.source), c.relname,
							 CASE WHEN t.kind = 'none' THEN 'true' ELSE '"merge action" IN (''c'', ''r'')' END, ' AND (' || predicate || ')'),
					  ' UNION ALL ' ORDER BY s.source)
	FROM snowflake_migrate_internal.plan_sources AS s
		JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.no = no_
		JOIN pg_class AS c ON c.oid = t.relation
	WHERE s.run = run_ AND s.no = no_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.all_rows(bigint, int, text, text) IS 'for snowflake_migrate.merge()''s own use: the rows of all sources as they become';

/*
 * Finds the rows that clash in one unique index, with the target's rows or with those of other sources, and does what the policy
 * says.  Returns how many rows it changed.
 *
 * Who was there first: the target's row, then those that no policy has changed, in the order of the sources.
 */
CREATE FUNCTION snowflake_migrate_internal.resolve(
	run_ bigint,
	no_ int,
	label name,
	expressions text[],
	operators text[],
	distinct_nulls boolean,
	predicate text,
	policy text,
	argument text,
	changed name) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	name CONSTANT name := (SELECT c.relname FROM snowflake_migrate_internal.plan_tables AS t JOIN pg_class AS c ON c.oid = t.relation
						   WHERE t.run = run_ AND t.no = no_);
	sources name[];
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map_' || no_);
	change CONSTANT text := snowflake_migrate_internal.relation(run_, 'change_' || no_);
	own text;
	same_key text;
	clashes text;
	find record;
	total bigint;
	done bigint;
	length_limit int;
	fits text;
	remark text;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	SELECT r.sources INTO sources FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	own := snowflake_migrate_internal.key_list('o#', plan.key);
	same_key := snowflake_migrate_internal.key_list('m.o# = c.o#', plan.key, ' AND ');

	clashes := format(
		'WITH c (source, %s, %s, action, tries, %s) AS MATERIALIZED (%s), '
		'w AS (SELECT c.*, row_number() OVER w AS place, first_value(c.source) OVER w AS first_source, %s FROM c WHERE %s WINDOW w AS (PARTITION BY %s ORDER BY c.tries, c.source, %s)) '
		'SELECT DISTINCT ON (w.source, %s) w.*, %s FROM w LEFT JOIN (SELECT %s, %s FROM %s AS %I%s) AS t (%s, %s) ON %s AND NOT (w.action = ''r'' AND %s) '
		'WHERE w.place > 1 OR t.t1 IS NOT NULL ORDER BY w.source, %s, %s',
		own, snowflake_migrate_internal.key_list('n#', plan.key), (SELECT string_agg('e' || n, ', ' ORDER BY n) FROM generate_subscripts(expressions, 1) AS n),
		snowflake_migrate_internal.all_rows(run_, no_,
			snowflake_migrate_internal.key_list('"merge o#"', plan.key) || ', ' || snowflake_migrate_internal.key_list('"merge n#"', plan.key)
				|| ', "merge action", "merge tries", ' || array_to_string(expressions, ', '), predicate),
		snowflake_migrate_internal.key_list('first_value(c.n#) OVER w AS w#', plan.key),
		CASE WHEN distinct_nulls THEN (SELECT string_agg(format('c.e%s IS NOT NULL', n), ' AND ' ORDER BY n) FROM generate_subscripts(expressions, 1) AS n) ELSE 'true' END,
		(SELECT string_agg('c.e' || n, ', ' ORDER BY n) FROM generate_subscripts(expressions, 1) AS n),
		snowflake_migrate_internal.key_list('c.o#', plan.key),
		snowflake_migrate_internal.key_list('w.o#', plan.key),
		snowflake_migrate_internal.key_list('t.t#', plan.key),
		snowflake_migrate_internal.key_list('@', plan.key), array_to_string(expressions, ', '), snowflake_migrate_internal.only(plan.relation), name,
		coalesce(' WHERE ' || predicate, ''),
		snowflake_migrate_internal.key_list('t#', plan.key), (SELECT string_agg('e' || n, ', ' ORDER BY n) FROM generate_subscripts(expressions, 1) AS n),
		/* Records take nulls as equal, and can be hashed. */
		CASE WHEN distinct_nulls THEN (SELECT string_agg(format('t.e%s %s w.e%s', n, operators[n], n), ' AND ' ORDER BY n) FROM generate_subscripts(expressions, 1) AS n)
			ELSE (SELECT format('ROW (%s)::record OPERATOR(pg_catalog.=) ROW (%s)::record', string_agg('t.e' || n, ', ' ORDER BY n), string_agg('w.e' || n, ', ' ORDER BY n))
				  FROM generate_subscripts(expressions, 1) AS n) END,
		snowflake_migrate_internal.key_list('t.t# = w.n#', plan.key, ' AND '),
		snowflake_migrate_internal.key_list('w.o#', plan.key), snowflake_migrate_internal.key_list('t.t#', plan.key));
	/* A table only where there are any: each costs locks until the end of the transaction. */
	EXECUTE 'SELECT count(*) FROM (' || clashes || ') AS x' INTO total;
	IF total = 0 THEN
		RETURN 0;
	END IF;
	IF to_regclass('pg_temp.snowflake_merge_clash') IS NOT NULL THEN
		DROP TABLE pg_temp.snowflake_merge_clash;
	END IF;
	EXECUTE 'CREATE TEMPORARY TABLE snowflake_merge_clash ON COMMIT DROP AS ' || clashes;
	EXECUTE 'SELECT concat_ws('', '', ' || (SELECT string_agg('c.e' || n, ', ' ORDER BY n) FROM generate_subscripts(expressions, 1) AS n)
		|| ') FROM pg_temp.snowflake_merge_clash AS c' INTO remark;
	IF policy IN ('error', 'renumber') THEN
		FOR find IN EXECUTE format(
			'SELECT x.source, count(*) AS count, string_agg(x.example, ''; '' ORDER BY x.n) FILTER (WHERE x.n <= 3) AS example FROM ('
			'SELECT c.source, row_number() OVER (PARTITION BY c.source ORDER BY %s) AS n, concat_ws('', '', %s) AS example FROM pg_temp.snowflake_merge_clash AS c) AS x '
			'GROUP BY x.source ORDER BY x.source',
			snowflake_migrate_internal.key_list('c.o#', plan.key), (SELECT string_agg('c.e' || n, ', ' ORDER BY n) FROM generate_subscripts(expressions, 1) AS n))
		LOOP
			PERFORM snowflake_migrate_internal.find(run_, 'error', sources[find.source], plan.relation::text, label, 'rows clash', find.count, find.example,
				format('Declare what becomes of them, for example: SELECT %s(%L, %L, ''keep_target'');', 'snowflake_migrate.declare_policy', plan.relation, label));
		END LOOP;
		RETURN 0;
	END IF;

	IF policy = 'match' AND NOT 'duplicates' = ANY (plan.accept) THEN
		SELECT count(*) INTO done FROM pg_temp.snowflake_merge_clash AS c WHERE c.place > 1 AND c.first_source = c.source;
		IF done > 0 THEN
			PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, plan.relation::text, array_to_string(plan.natural_key, ', '),
				'the natural key is not unique in a source', done, remark, 'Choose other columns, or accept duplicates.');
		END IF;
		EXECUTE format('SELECT count(*) FROM (SELECT %s FROM %s GROUP BY %s HAVING count(*) > 1) AS x',
			array_to_string(expressions, ', '), snowflake_migrate_internal.only(plan.relation), array_to_string(expressions, ', ')) INTO done;
		IF done > 0 THEN
			PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, plan.relation::text, array_to_string(plan.natural_key, ', '),
				'the natural key is not unique in the target', done, NULL, 'Choose other columns, or accept duplicates.');
		END IF;
	END IF;

	/* What refers to other columns than the key does not follow a row that is not copied, unless its values are those that clash. */
	IF policy <> 'suffix' THEN
		SELECT string_agg(format('%s of table %s', quote_ident(f.conname), f.conrelid::regclass), ', ') INTO fits
			FROM pg_constraint AS f
				CROSS JOIN LATERAL (SELECT array_agg(a.attname) AS names FROM unnest(f.confkey) AS k (attnum) JOIN pg_attribute AS a ON a.attrelid = f.confrelid AND a.attnum = k.attnum) AS c
			WHERE f.contype = 'f' AND f.conparentid = 0 AND f.confrelid = plan.relation AND NOT c.names <@ plan.key
				/* With the key among them, they follow it. */
				AND NOT (plan.kind = 'id' AND plan.key <@ c.names)
				AND (policy = 'keep_source' OR EXISTS (
						SELECT FROM snowflake_migrate_internal.plan_tables AS t JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
						WHERE t.run = run_ AND t.relation = coalesce(pg_partition_root(f.conrelid), f.conrelid)))
				AND (policy = 'skip' OR NOT (SELECT array_agg('(' || quote_ident(n) || ')') FROM unnest(c.names) AS n) <@ expressions);
		IF fits IS NOT NULL THEN
			PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, plan.relation::text, label,
				'rows clash that other tables refer to by other columns than the key', total, remark, 'Choose another policy. The references are ' || fits || '.');
		END IF;
		IF policy = 'skip' AND plan.kind = 'key' AND EXISTS (SELECT FROM snowflake_migrate.declared_references AS r WHERE r.referenced = plan.relation) THEN
			PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, plan.relation::text, label,
				'rows are skipped to which declared references lead that are not renumbered', total, remark, 'Choose another policy.');
		END IF;
	END IF;

	CASE policy
	WHEN 'match', 'same_id', 'keep_target', 'keep_source' THEN
		/* Rows that refer to a key of several columns, or to one that is a reference itself, find its columns each by itself. */
		IF plan.kind = 'key' THEN
			EXECUTE format('SELECT count(*) FROM pg_temp.snowflake_merge_clash AS c WHERE (%s) IS DISTINCT FROM (%s)',
				snowflake_migrate_internal.key_list('coalesce(c.t#, c.w#)', plan.key), snowflake_migrate_internal.key_list('c.n#', plan.key)) INTO done;
			IF done > 0 AND (EXISTS (SELECT FROM pg_constraint AS f WHERE f.contype = 'f' AND f.confrelid = plan.relation)
				OR EXISTS (SELECT FROM snowflake_migrate.declared_references AS r WHERE r.referenced = plan.relation)) THEN
				PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, plan.relation::text, label,
					'rows that clash in this constraint have other keys, which other tables refer to', done, remark,
					'Choose another policy, or let the table have a key of one integer column.');
			END IF;
		END IF;
		EXECUTE format('UPDATE %s AS m SET (%s, action) = ROW (%s, CASE WHEN %L AND c.place = 1 AND c.t1 IS NOT NULL AND NOT EXISTS (SELECT FROM %s AS o WHERE o.action = ''r'' AND %s AND NOT (o.source = c.source AND %s)) THEN ''r'' ELSE %L END) '
			'FROM pg_temp.snowflake_merge_clash AS c WHERE m.source = c.source AND %s',
			map, snowflake_migrate_internal.key_list('n#', plan.key), snowflake_migrate_internal.key_list('coalesce(c.t#, c.w#)', plan.key),
			policy = 'keep_source', map, snowflake_migrate_internal.key_list('o.n# = c.t#', plan.key, ' AND '), snowflake_migrate_internal.key_list('o.o# = c.o#', plan.key, ' AND '),
			CASE WHEN policy IN ('match', 'same_id') THEN 'm' ELSE 'k' END, same_key);
	WHEN 'skip' THEN
		EXECUTE format('UPDATE %s AS m SET (%s, action) = ROW (%s, ''s'') FROM pg_temp.snowflake_merge_clash AS c WHERE m.source = c.source AND %s',
			map, snowflake_migrate_internal.key_list('n#', plan.key), snowflake_migrate_internal.key_list('NULL', plan.key), same_key);
	WHEN 'suffix' THEN
		SELECT CASE WHEN y.oid IN ('varchar'::regtype, 'bpchar'::regtype) AND a.atttypmod > 4 THEN a.atttypmod - 4
				WHEN y.typbasetype IN ('varchar'::regtype, 'bpchar'::regtype) AND y.typtypmod > 4 THEN y.typtypmod - 4 END INTO length_limit
			FROM pg_attribute AS a JOIN pg_type AS y ON y.oid = a.atttypid WHERE a.attrelid = plan.relation AND a.attname = changed;
		SELECT string_agg(format('(%s) IS NOT FALSE', k.expression), ' AND ') INTO fits
			FROM snowflake_migrate_internal.checks(plan.relation) AS k WHERE changed = ANY (k.names);
		/* Rows that would get the same value are told apart at once, by the number that a further try would append. */
		EXECUTE format(
			'INSERT INTO %s AS v (source, %s, tries, %I, %I) SELECT y."merge source", %s, y."merge try", x.value, y."merge former" FROM ('
			'SELECT q.*, b.former AS "merge former", c.tries + row_number() OVER (PARTITION BY c.tries, left(b.former, CASE c.tries WHEN 0 THEN %s ELSE 1 END) ORDER BY c.source, %s) AS "merge try" FROM pg_temp.snowflake_merge_clash AS c '
			'JOIN (%s) AS q ON q."merge source" = c.source AND %s '
			'LEFT JOIN %s AS f ON f.source = c.source AND %s '
			'CROSS JOIN LATERAL (SELECT coalesce(f.%I, q.%I::text)) AS b (former)) AS y '
			'CROSS JOIN LATERAL (SELECT replace(%L, ''{source}'', (%L::name[])[y."merge source"]) || CASE y."merge try" WHEN 1 THEN '''' ELSE y."merge try"::text END) AS b (suffix) '
			'CROSS JOIN LATERAL (SELECT left(y."merge former", n) || b.suffix FROM generate_series(least(length(y."merge former"), %s), 1, -1) AS n %s LIMIT 1) AS x (value) '
			'ON CONFLICT (source, %s) DO UPDATE SET tries = excluded.tries, %I = excluded.%I',
			change, own, changed, 'old ' || changed, snowflake_migrate_internal.key_list('y."merge o#"', plan.key),
			coalesce(length_limit::text || ' - length(replace(' || quote_literal(coalesce(argument, '_{source}')) || ', ''{source}'', (' || quote_literal(sources) || '::name[])[c.source]))', 'length(b.former)'),
			snowflake_migrate_internal.key_list('c.o#', plan.key),
			snowflake_migrate_internal.all_rows(run_, no_, snowflake_migrate_internal.key_list('"merge o#"', plan.key) || ', '
				|| (SELECT string_agg(quote_ident(c.name), ', ' ORDER BY c.position) FROM snowflake_migrate_internal.plan_columns AS c WHERE c.run = run_ AND c.no = no_), NULL),
			snowflake_migrate_internal.key_list('q."merge o#" = c.o#', plan.key, ' AND '),
			change, snowflake_migrate_internal.key_list('f.o# = c.o#', plan.key, ' AND '),
			'old ' || changed, changed, coalesce(argument, '_{source}'), sources,
			coalesce(length_limit || ' - length(b.suffix)', 'length(y."merge former")'),
			CASE WHEN fits IS NULL THEN '' ELSE format('WHERE (SELECT %s FROM (SELECT %s) AS %I)', fits,
				(SELECT string_agg(CASE WHEN c.name = changed THEN format('left(y."merge former", n) || b.suffix AS %I', c.name) ELSE format('y.%I', c.name) END, ', ')
				 FROM snowflake_migrate_internal.plan_columns AS c WHERE c.run = run_ AND c.no = no_), name) END,
			own, changed, changed);
		GET DIAGNOSTICS done = ROW_COUNT;
		IF done < total THEN
			PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, plan.relation::text, label,
				format('no suffix makes column %I both unique and valid', changed), total - done, remark, 'Choose another suffix or another policy.');
			RETURN 0;
		END IF;
		RETURN total;
	END CASE;

	/* What stood for one of these rows, and not for a row of the target, stands for what it became. */
	EXECUTE format('UPDATE %s AS m SET (%s, action) = ROW (%s, CASE %L WHEN ''skip'' THEN ''s'' WHEN ''keep_target'' THEN ''k'' WHEN ''keep_source'' THEN ''k'' ELSE m.action END) FROM pg_temp.snowflake_merge_clash AS c '
		'WHERE m.action IN (''m'', ''k'') AND %s AND NOT EXISTS (SELECT FROM pg_temp.snowflake_merge_clash AS x WHERE x.source = m.source AND %s) '
		'AND NOT EXISTS (SELECT FROM %s AS t WHERE %s)',
		map, snowflake_migrate_internal.key_list('n#', plan.key),
		snowflake_migrate_internal.key_list(CASE policy WHEN 'skip' THEN 'NULL' ELSE 'coalesce(c.t#, c.w#)' END, plan.key), policy,
		snowflake_migrate_internal.key_list('m.n# = c.n#', plan.key, ' AND '), snowflake_migrate_internal.key_list('m.o# = x.o#', plan.key, ' AND '),
		snowflake_migrate_internal.only(plan.relation), snowflake_migrate_internal.key_list('t.@ = c.n#', plan.key, ' AND '));

	EXECUTE format('INSERT INTO snowflake_migrate.records (run, source, relation, constraint_name, policy, old_key, new_key) '
		'SELECT %s, (%L::name[])[c.source], %L, %L, %L, %s, %s FROM pg_temp.snowflake_merge_clash AS c WHERE %L NOT IN (''match'', ''same_id'')',
		run_, sources, plan.relation, label, policy, snowflake_migrate_internal.key_text('c.o#', plan.key),
		CASE WHEN policy = 'skip' THEN 'NULL' ELSE snowflake_migrate_internal.key_text('coalesce(c.t#, c.w#)', plan.key) END, policy);
	RETURN total;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.resolve(bigint, int, name, text[], text[], boolean, text, text, text, name) IS 'for snowflake_migrate.merge()''s own use: what becomes of the rows that clash in one unique index';

/*
 * References of one table of one source whose row the source does not have, or whose row is skipped: what the declaration says of
 * the former; of the latter, a row that must refer to it is skipped too, and one that may not loses the reference.  Returns how many
 * rows were skipped.
 */
CREATE FUNCTION snowflake_migrate_internal.dangling(run_ bigint, no_ int, source_ int) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	source record;
	ref record;
	parts record;
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map_' || no_);
	skip CONSTANT text := 'WITH gone AS (UPDATE %s AS g SET (%s, action) = ROW (%s, ''s'') FROM (SELECT DISTINCT %s FROM %s AND m.action = ''c'') AS x '
		'WHERE g.source = %s AND %s RETURNING %s AS k) '
		'INSERT INTO snowflake_migrate.records (run, source, relation, constraint_name, policy, old_key) SELECT %s, %L, %L, %L, ''skip'', k FROM gone';
	key_text text;
	lost text;			-- the rows that have such a reference
	lost_value text;
	found bigint;
	example text;
	any_skipped boolean;
	skipped bigint := 0;
	done bigint;
	fk record;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	SELECT s.relation, r.sources[source_] AS name INTO STRICT source
		FROM snowflake_migrate_internal.plan_sources AS s JOIN snowflake_migrate.runs AS r ON r.run = s.run
		WHERE s.run = run_ AND s.no = no_ AND s.source = source_;
	parts := snowflake_migrate_internal.rows_parts(run_, no_, source_, plan.kind <> 'none', false);
	key_text := CASE WHEN plan.kind = 'none' THEN 'NULL::text' ELSE snowflake_migrate_internal.key_text('m.o#', plan.key) END;

	FOR ref IN
		SELECT r.*, p.relation AS parent, p.key[1] AS parent_key, p.mode AS parent_mode, s.relation AS source_parent,
			format('s.%I', r.name) AS value, snowflake_migrate_internal.relation(run_, 'map_' || r.referenced) AS map,
			CASE WHEN r.condition IS NOT NULL THEN format('s.%I', 'snowflake condition ' || r.id) END AS condition_column,
			t.attnotnull
		FROM snowflake_migrate_internal.plan_references AS r
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.no = r.referenced
			JOIN pg_attribute AS t ON t.attrelid = plan.relation AND t.attname = r.name
			JOIN pg_attribute AS a ON a.attrelid = source.relation AND a.attname = r.name AND NOT a.attisdropped
			LEFT JOIN snowflake_migrate_internal.plan_sources AS s ON s.run = run_ AND s.no = r.referenced AND s.source = source_
		WHERE r.run = run_ AND r.no = no_
		ORDER BY r.id
	LOOP
		IF ref.path IS NOT NULL THEN
			lost := format(', jsonb_path_query((%s)::jsonb, %L, silent => true) AS p (part), snowflake_migrate_internal.json_id(p.part) AS e (id) '
				'WHERE e.id IS NOT NULL AND NOT EXISTS (SELECT FROM %s AS f WHERE f.source = %s AND f.o1 = e.id)', ref.value, ref.path, ref.map, source_);
			lost_value := 'e.id';
		ELSIF ref.elements THEN
			lost := format(', unnest(%s) AS e (id) WHERE e.id IS NOT NULL AND NOT EXISTS (SELECT FROM %s AS f WHERE f.source = %s AND f.o1 = e.id)',
				ref.value, ref.map, source_);
			lost_value := 'e.id';
		ELSE
			lost := format(' WHERE %s IS NOT NULL AND r%s.o1 IS NULL', ref.value, ref.id);
			lost_value := ref.value;
		END IF;
		lost := parts.origin || lost || coalesce(' AND ' || ref.condition_column, '');

		IF ref.elements AND plan.kind <> 'none' THEN
			EXECUTE format('SELECT count(*), min(%s) FROM %s WHERE array_ndims(%s) > 1 OR array_lower(%s, 1) <> 1', key_text, parts.origin, ref.value, ref.value) INTO found, example;
			IF found > 0 THEN
				PERFORM snowflake_migrate_internal.find(run_, 'error', source.name, plan.relation::text, ref.name,
					'arrays of ids have several dimensions, or do not begin with 1', found, example, 'Give a view that has them in another form in the place of the table.');
			END IF;
		ELSIF ref.path IS NOT NULL AND ref.path LIKE '%keyvalue()%' THEN
			/* An error where keys would become one. */
			EXECUTE format('SELECT count(x.document) FROM (SELECT %s FROM %s) AS x (document)', parts.expressions[array_position(parts.names, ref.name::text)], parts.origin) INTO found;
		END IF;

		/* Where the source has the same foreign key, none dangles. */
		IF NOT EXISTS (SELECT FROM pg_constraint AS f
					   WHERE f.contype = 'f' AND f.convalidated AND f.conrelid = source.relation AND f.confrelid = ref.source_parent
						AND ref.path IS NULL AND NOT ref.elements AND ref.parent_mode <> 'ignore'
						AND f.conkey = ARRAY[(SELECT a.attnum FROM pg_attribute AS a WHERE a.attrelid = source.relation AND a.attname = ref.name)]
						AND f.confkey = ARRAY[(SELECT a.attnum FROM pg_attribute AS a WHERE a.attrelid = ref.source_parent AND a.attname = ref.parent_key)]) THEN
			EXECUTE format('SELECT count(*), string_agg(x.example, ''; '') FILTER (WHERE x.n <= 3) '
						   'FROM (SELECT concat_ws('': '', %s, %s) AS example, row_number() OVER (ORDER BY %s) AS n FROM %s) AS x',
						   key_text, lost_value, lost_value, lost) INTO found, example;
			IF found > 0 THEN
				PERFORM snowflake_migrate_internal.find(run_,
					CASE WHEN ref.dangling = 'error' OR (ref.dangling = 'null' AND ref.attnotnull AND ref.path IS NULL AND NOT ref.elements)
							OR (ref.dangling = 'skip' AND plan.kind = 'none') THEN 'error' ELSE 'warning' END,
					source.name, plan.relation::text, ref.name,
					format('references to %s dangle', ref.parent)
						|| CASE ref.dangling
							WHEN 'null' THEN CASE WHEN ref.attnotnull AND ref.path IS NULL AND NOT ref.elements THEN ', and the column cannot be null' ELSE ': they become null' END
							WHEN 'keep' THEN ': they stay as they are'
							WHEN 'skip' THEN CASE plan.kind WHEN 'none' THEN ', and of a table without a key no rows can be skipped' ELSE ': their rows are skipped' END
							ELSE '' END,
					found, example,
					CASE WHEN ref.dangling = 'error' THEN format('Declare what becomes of them, for example: SELECT %s(%L, %L, %L, %L, %L, ''null'');',
						'snowflake_migrate.declare_reference', plan.relation, ref.name, ref.parent, ref.condition, ref.path) END);
				IF ref.dangling = 'skip' AND plan.kind <> 'none' THEN
					EXECUTE format(skip, map, snowflake_migrate_internal.key_list('n#', plan.key), snowflake_migrate_internal.key_list('NULL', plan.key),
						snowflake_migrate_internal.key_list('m.o#', plan.key), lost, source_,
						snowflake_migrate_internal.key_list('g.o# = x.o#', plan.key, ' AND '), snowflake_migrate_internal.key_text('g.o#', plan.key),
						run_, source.name, plan.relation, ref.name);
					GET DIAGNOSTICS done = ROW_COUNT;
					skipped := skipped + done;
				END IF;
			END IF;
		END IF;

		EXECUTE format('SELECT EXISTS (SELECT FROM %s AS m WHERE m.source = %s AND m.action = ''s'')', ref.map, source_) INTO any_skipped;
		CONTINUE WHEN NOT any_skipped OR NOT ref.attnotnull OR ref.path IS NOT NULL OR ref.elements;
		lost := format('%s WHERE r%s.o1 IS NOT NULL AND r%s.n1 IS NULL', parts.origin, ref.id, ref.id);
		IF plan.kind = 'none' THEN
			EXECUTE format('SELECT count(*) FROM %s', lost) INTO found;
			IF found > 0 THEN
				PERFORM snowflake_migrate_internal.find(run_, 'error', source.name, plan.relation::text, ref.name,
					format('rows must refer to rows of %s that are skipped, and of a table without a key no rows can be skipped', ref.parent),
					found, NULL, 'Choose another policy.');
			END IF;
		ELSE
			EXECUTE format(skip, map, snowflake_migrate_internal.key_list('n#', plan.key), snowflake_migrate_internal.key_list('NULL', plan.key),
				snowflake_migrate_internal.key_list('m.o#', plan.key), lost, source_,
				snowflake_migrate_internal.key_list('g.o# = x.o#', plan.key, ' AND '), snowflake_migrate_internal.key_text('g.o#', plan.key),
				run_, source.name, plan.relation, ref.name);
			GET DIAGNOSTICS done = ROW_COUNT;
			skipped := skipped + done;
		END IF;
	END LOOP;

	/* Where the parent's key is not renumbered itself, the values of the columns do not tell that its row is skipped. */
	IF plan.kind <> 'none' THEN
		FOR fk IN
			SELECT p.no, p.relation, p.key, c.conname,
				(SELECT array_agg(a.attname ORDER BY array_position(p.key, b.attname)) FROM unnest(c.conkey, c.confkey) AS k (attnum, parent_attnum)
				 JOIN pg_attribute AS a ON a.attrelid = c.conrelid AND a.attnum = k.attnum
				 JOIN pg_attribute AS b ON b.attrelid = c.confrelid AND b.attnum = k.parent_attnum) AS columns,
				(SELECT array_agg(b.attname ORDER BY array_position(p.key, b.attname)) FROM unnest(c.confkey) AS k (attnum)
				 JOIN pg_attribute AS b ON b.attrelid = c.confrelid AND b.attnum = k.attnum) AS parent_columns
			FROM pg_constraint AS c JOIN snowflake_migrate_internal.plan_tables AS p
					ON p.run = run_ AND p.relation = coalesce(pg_partition_root(c.confrelid), c.confrelid) AND p.kind = 'key'
			WHERE c.contype = 'f' AND c.conparentid = 0 AND coalesce(pg_partition_root(c.conrelid), c.conrelid) = plan.relation
		LOOP
			CONTINUE WHEN fk.parent_columns <> fk.key;
			EXECUTE format('SELECT EXISTS (SELECT FROM %s AS m WHERE m.source = %s AND m.action = ''s'')',
						   snowflake_migrate_internal.relation(run_, 'map_' || fk.no), source_) INTO any_skipped;
			CONTINUE WHEN NOT any_skipped;
			EXECUTE format(skip, map, snowflake_migrate_internal.key_list('n#', plan.key), snowflake_migrate_internal.key_list('NULL', plan.key),
				snowflake_migrate_internal.key_list('m.o#', plan.key),
				format('%s JOIN %s AS f ON f.source = %s AND f.action = ''s'' AND %s WHERE true', parts.origin,
					   snowflake_migrate_internal.relation(run_, 'map_' || fk.no), source_, snowflake_migrate_internal.key_list('f.o# = s.@', fk.columns, ' AND ')),
				source_, snowflake_migrate_internal.key_list('g.o# = x.o#', plan.key, ' AND '), snowflake_migrate_internal.key_text('g.o#', plan.key),
				run_, source.name, plan.relation, fk.conname);
			GET DIAGNOSTICS done = ROW_COUNT;
			skipped := skipped + done;
		END LOOP;
	END IF;
	RETURN skipped;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.dangling(bigint, int, int) IS 'for snowflake_migrate.merge()''s own use: references to rows that are not there';

/* Ranks are numbered anew over the rows of the target and of all sources: rank_NO has what becomes of the target's. */
CREATE FUNCTION snowflake_migrate_internal.rank(
	run_ bigint,
	no_ int,
	label name,
	expressions text[],
	predicate text,
	argument text,
	changed name) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map_' || no_);
	change CONSTANT text := snowflake_migrate_internal.relation(run_, 'change_' || no_);
	rank CONSTANT text := snowflake_migrate_internal.relation(run_, 'rank_' || no_);
	columns text;
	others text;
	ranked text;
BEGIN
	SELECT t.*, c.relname INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t JOIN pg_class AS c ON c.oid = t.relation
		WHERE t.run = run_ AND t.no = no_;
	SELECT string_agg(quote_ident(c.name), ', ' ORDER BY c.position) INTO columns
		FROM snowflake_migrate_internal.plan_columns AS c WHERE c.run = run_ AND c.no = no_;
	/* A row without a rank, or outside of the index, stays as it is. */
	ranked := format(' AND %I IS NOT NULL%s', changed, coalesce(' AND (' || predicate || ')', ''));
	SELECT string_agg(e, ', ') INTO others FROM unnest(expressions) AS e WHERE e <> '(' || quote_ident(changed) || ')';

	IF to_regclass('pg_temp.snowflake_merge_rank') IS NOT NULL THEN
		DROP TABLE pg_temp.snowflake_merge_rank;
	END IF;
	EXECUTE format(
		'CREATE TEMPORARY TABLE snowflake_merge_rank ON COMMIT DROP AS '
		'SELECT "merge source" AS source, %s, %s, %I AS old, row_number() OVER (%s ORDER BY %s, "merge source", %I) AS new '
		'FROM (SELECT 0 AS "merge source", %s, %s, %s FROM %s AS %I WHERE NOT EXISTS (SELECT FROM %s AS m WHERE m.action = ''r'' AND %s)%s UNION ALL %s) AS %I',
		snowflake_migrate_internal.key_list('"merge o#" AS o#', plan.key), snowflake_migrate_internal.key_list('"merge n#" AS n#', plan.key), changed,
		coalesce('PARTITION BY ' || others, ''), argument, changed,
		snowflake_migrate_internal.key_list('NULL AS "merge o#"', plan.key), snowflake_migrate_internal.key_list('@ AS "merge n#"', plan.key),
		columns, snowflake_migrate_internal.only(plan.relation), plan.relname, map,
		snowflake_migrate_internal.key_list('m.n# = ' || quote_ident(plan.relname) || '.@', plan.key, ' AND '), ranked,
		snowflake_migrate_internal.all_rows(run_, no_, snowflake_migrate_internal.key_list('"merge o#"', plan.key) || ', '
			|| snowflake_migrate_internal.key_list('"merge n#"', plan.key) || ', ' || columns, substr(ranked, 6)),
		plan.relname);
	EXECUTE format('INSERT INTO %s AS v (source, %s, tries, %I) SELECT r.source, %s, 0, r.new FROM pg_temp.snowflake_merge_rank AS r WHERE r.source > 0 '
		'ON CONFLICT (source, %s) DO UPDATE SET %I = excluded.%I',
		change, snowflake_migrate_internal.key_list('o#', plan.key), changed, snowflake_migrate_internal.key_list('r.o#', plan.key),
		snowflake_migrate_internal.key_list('o#', plan.key), changed, changed);
	/* With what is needed to put them back. */
	EXECUTE format('CREATE TABLE %s AS SELECT %s, r.old, r.new FROM pg_temp.snowflake_merge_rank AS r WHERE r.source = 0 AND r.old IS DISTINCT FROM r.new',
				   rank, snowflake_migrate_internal.key_list('r.n#', plan.key));
	/* A row that takes a source's values gets that row's rank with the others, so that it is in nobody's way. */
	EXECUTE format('INSERT INTO %s SELECT %s, t.%I, r.new FROM pg_temp.snowflake_merge_rank AS r JOIN %s AS m ON m.source = r.source AND m.action = ''r'' AND %s '
		'JOIN %s AS t ON %s WHERE t.%I IS DISTINCT FROM r.new', rank, snowflake_migrate_internal.key_list('r.n#', plan.key), changed, map,
		snowflake_migrate_internal.key_list('m.o# = r.o#', plan.key, ' AND '), snowflake_migrate_internal.only(plan.relation),
		snowflake_migrate_internal.key_list('t.@ = r.n#', plan.key, ' AND '), changed);
	EXECUTE format('INSERT INTO snowflake_migrate.records (run, source, relation, constraint_name, policy, old_key, new_key, column_name, old_value, new_value) '
		'SELECT u.run, u.sources[r.source], %L, %L, ''rerank'', CASE WHEN r.source > 0 THEN %s END, %s, %L, r.old, r.new '
		'FROM pg_temp.snowflake_merge_rank AS r, snowflake_migrate.runs AS u WHERE u.run = %s AND r.old IS DISTINCT FROM r.new',
		plan.relation, label, snowflake_migrate_internal.key_text('r.o#', plan.key), snowflake_migrate_internal.key_text('r.n#', plan.key), changed, run_);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.rank(bigint, int, name, text[], text, text, name) IS 'for snowflake_migrate.merge()''s own use: numbers ranks anew';

/* CHECKs, which the sources may not have, exclusion constraints, and partitions that are missing, of one table. */
CREATE FUNCTION snowflake_migrate_internal.constraints(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	con record;
	find record;
BEGIN
	SELECT t.*, c.relname INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t JOIN pg_class AS c ON c.oid = t.relation
		WHERE t.run = run_ AND t.no = no_;
	IF (SELECT count(*) > 1 FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_) THEN
		PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, plan.relation::text, c.conname,
				'rows of different sources that clash in an exclusion constraint are not looked for', NULL, NULL, 'Merge the sources one after the other.')
			FROM pg_constraint AS c WHERE c.conrelid = plan.relation AND c.contype = 'x';
	END IF;
	FOR con IN
		SELECT k.label, format('(%s) IS FALSE', k.expression) AS violated, 'rows as they become violate the CHECK' AS problem,
			'New ids are in order of time: without a declared time of creation of what the columns refer to, they are in the order of the old ones. '
				'Else change these rows in the source, or put a view that leaves them out in its place.' AS advice
		FROM snowflake_migrate_internal.checks(plan.relation) AS k
		UNION ALL
		SELECT c.conname,
			format('EXISTS (SELECT FROM (SELECT %s FROM %s AS %I%s) AS t WHERE %s)',
				(SELECT string_agg(format('(%s) AS "merge e%s"', pg_get_indexdef(c.conindid, n, true), n), ', ') FROM generate_subscripts(c.conexclop, 1) AS n),
				snowflake_migrate_internal.only(plan.relation), plan.relname, coalesce(' WHERE ' || pg_get_expr(i.indpred, i.indrelid), ''),
				(SELECT string_agg(format('t."merge e%s" OPERATOR(%I.%s) (%s)', o.n, s.nspname, p.oprname, pg_get_indexdef(c.conindid, o.n::int, true)), ' AND ')
				 FROM unnest(c.conexclop) WITH ORDINALITY AS o (operator, n) JOIN pg_operator AS p ON p.oid = o.operator
				 JOIN pg_namespace AS s ON s.oid = p.oprnamespace)) || coalesce(' AND (' || pg_get_expr(i.indpred, i.indrelid) || ')', ''),
			'rows clash with the target''s in the exclusion constraint',
			'Change these rows in the source, or put a view that leaves them out in its place.'
		FROM pg_constraint AS c JOIN pg_index AS i ON i.indexrelid = c.conindid
		WHERE c.conrelid = plan.relation AND c.contype = 'x'
		UNION ALL
		SELECT NULL, coalesce('(' || string_agg('(' || coalesce(pg_get_partition_constraintdef(l.relid), 'true') || ')', ' OR ') || ') IS NOT TRUE', 'true'),
			'no partition takes the rows', 'Create the partitions that are missing, or a default one.'
		FROM pg_class AS c LEFT JOIN pg_partition_tree(c.oid) AS l ON l.isleaf AND l.relid <> c.oid
		WHERE c.oid = plan.relation AND c.relkind = 'p' GROUP BY c.oid
	LOOP
		FOR find IN EXECUTE format(
			'SELECT x.source, count(*) AS count, string_agg(x.example, ''; '') FILTER (WHERE x.n <= 3) AS example FROM ('
			'SELECT q.*, row_number() OVER (PARTITION BY q.source ORDER BY q.example) AS n FROM (%s) AS q (source, example)) AS x GROUP BY x.source ORDER BY x.source',
			snowflake_migrate_internal.all_rows(run_, no_,
				CASE WHEN plan.kind = 'none' THEN 'NULL::text' ELSE snowflake_migrate_internal.key_text('"merge o#"', plan.key) END, con.violated))
		LOOP
			PERFORM snowflake_migrate_internal.find(run_, 'error', (SELECT r.sources[find.source] FROM snowflake_migrate.runs AS r WHERE r.run = run_),
				plan.relation::text, con.label, con.problem, find.count, find.example, con.advice);
		END LOOP;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.constraints(bigint, int) IS 'for snowflake_migrate.merge()''s own use: CHECKs and exclusion constraints over rows as they become';

/* The maps of one table, empty. */
CREATE FUNCTION snowflake_migrate_internal.create_map(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	old_columns text;
	new_columns text;
	changes text;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	SELECT string_agg(format('o%s %s', k.n, k.type), ', ' ORDER BY k.n), string_agg(format('n%s %s', k.n, k.type), ', ' ORDER BY k.n) INTO old_columns, new_columns
		FROM snowflake_migrate_internal.key_values(plan.relation, plan.relation, plan.key) AS k;
	IF plan.kind = 'id' THEN
		EXECUTE format('CREATE TABLE %s PARTITION OF %s FOR VALUES IN (%s)', snowflake_migrate_internal.relation(run_, 'map_' || no_),
					   snowflake_migrate_internal.relation(run_, 'map'), no_);
	ELSE
		EXECUTE format('CREATE TABLE %s (source int NOT NULL, %s, %s, action "char" NOT NULL)', snowflake_migrate_internal.relation(run_, 'map_' || no_),
					   old_columns, new_columns);
	END IF;
	IF EXISTS (SELECT FROM snowflake_migrate.declared_policies AS p WHERE p.relation = plan.relation AND p.policy = 'keep_source')
		AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_) THEN
		EXECUTE format('CREATE TABLE %s (LIKE %s)', snowflake_migrate_internal.relation(run_, 'former_' || no_), plan.relation);
	END IF;
	SELECT string_agg(format('%I %s, %I text', c.name, format_type(a.atttypid, a.atttypmod), 'old ' || c.name), ', ') INTO changes
		FROM snowflake_migrate_internal.plan_columns AS c JOIN pg_attribute AS a ON a.attrelid = plan.relation AND a.attname = c.name
		WHERE c.run = run_ AND c.no = no_ AND c.changed_by IS NOT NULL;
	IF changes IS NOT NULL THEN
		EXECUTE format('CREATE TABLE %s (source int NOT NULL, %s, tries int NOT NULL, %s, PRIMARY KEY (source, %s))',
					   snowflake_migrate_internal.relation(run_, 'change_' || no_), old_columns, changes, snowflake_migrate_internal.key_list('o#', plan.key));
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.create_map(bigint, int) IS 'for snowflake_migrate.merge()''s own use: creates the maps of a table';

/* A query for the keys o1 .. of a source, in a table whose key is not renumbered, and what n1 .. becomes of each. */
CREATE FUNCTION snowflake_migrate_internal.keys(run_ bigint, no_ int, source_ int) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT format('SELECT %s, %s FROM %s',
		(SELECT string_agg(format('%s AS o%s', k.value, k.n), ', ' ORDER BY k.n) FROM snowflake_migrate_internal.key_values(t.relation, s.relation, t.key) AS k),
		(SELECT string_agg(format('%s AS n%s', p.expressions[array_position(p.names, k.name::text)], k.n), ', ' ORDER BY k.n)
		 FROM unnest(t.key) WITH ORDINALITY AS k (name, n)),
		p.origin)
	FROM snowflake_migrate_internal.plan_tables AS t JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no),
		snowflake_migrate_internal.rows_parts(run_, no_, source_, false, false) AS p
	WHERE t.run = run_ AND t.no = no_ AND s.source = source_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.keys(bigint, int, int) IS 'for snowflake_migrate.merge()''s own use: a query for keys, and what becomes of them';

/* Fills the map of a table whose key is not renumbered, and indexes the map of any. */
CREATE FUNCTION snowflake_migrate_internal.fill_map(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	source int;
	detail text;
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map_' || no_);
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	IF plan.kind = 'key' THEN
		FOR source IN SELECT s.source FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_ ORDER BY s.source LOOP
			EXECUTE format('INSERT INTO %s (source, %s, %s, action) SELECT %s, q.*, ''c'' FROM (%s) AS q', map,
				snowflake_migrate_internal.key_list('o#', plan.key), snowflake_migrate_internal.key_list('n#', plan.key), source,
				snowflake_migrate_internal.keys(run_, no_, source));
		END LOOP;
	END IF;
	BEGIN
		/* The source last, as it tells the least. */
		EXECUTE format('CREATE UNIQUE INDEX ON %s (%s, source)', map, snowflake_migrate_internal.key_list('o#', plan.key));
	EXCEPTION WHEN unique_violation THEN
		GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
		RAISE EXCEPTION USING ERRCODE = 'unique_violation',
			MESSAGE = format('a source has several rows of table %s with the same key', plan.relation),
			DETAIL = detail, HINT = 'In the detail, source is a place in the list of the sources.';
	END;
	EXECUTE format('ANALYZE %s', map);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.fill_map(bigint, int) IS 'for snowflake_migrate.merge()''s own use: fills and indexes the map of a table';

/*
 * The keys of one table that are made of others' keys, anew, where those may have changed since.  Returns whether any did.
 */
CREATE FUNCTION snowflake_migrate_internal.refresh_map(run_ bigint, no_ int) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	source int;
	done bigint;
	changed boolean := false;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	FOR source IN SELECT s.source FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_ ORDER BY s.source LOOP
		EXECUTE format('UPDATE %s AS m SET (%s, action) = ROW (%s, m.action) FROM (%s) AS q WHERE m.source = %s AND m.action = ''c'' AND %s AND (%s)',
			snowflake_migrate_internal.relation(run_, 'map_' || no_), snowflake_migrate_internal.key_list('n#', plan.key),
			snowflake_migrate_internal.key_list('q.n#', plan.key), snowflake_migrate_internal.keys(run_, no_, source), source,
			snowflake_migrate_internal.key_list('m.o# = q.o#', plan.key, ' AND '),
			snowflake_migrate_internal.key_list('m.n# IS DISTINCT FROM q.n#', plan.key, ' OR '));
		GET DIAGNOSTICS done = ROW_COUNT;
		changed := done > 0 OR changed;
	END LOOP;
	RETURN changed;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refresh_map(bigint, int) IS 'for snowflake_migrate.merge()''s own use: makes keys of keys anew';

/* What clashes in one table, once over all its unique indexes.  Returns whether anything changed. */
CREATE FUNCTION snowflake_migrate_internal.pass(run_ bigint, no_ int) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	source int;
	u record;
	changed boolean := false;
	found bigint;
	example text;
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map_' || no_);
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	IF plan.kind = 'key' AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.map_step = plan.map_step AND t.no <> no_) THEN
		changed := snowflake_migrate_internal.refresh_map(run_, no_);
	END IF;
	FOR source IN SELECT s.source FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_ ORDER BY s.source LOOP
		changed := snowflake_migrate_internal.dangling(run_, no_, source) > 0 OR changed;
	END LOOP;
	IF plan.kind = 'none' THEN
		RETURN changed;
	END IF;
	FOR u IN SELECT x.* FROM snowflake_migrate_internal.unique(run_, no_) AS x WHERE x.policy <> 'rerank' LOOP
		IF plan.kind <> 'id' OR '(' || quote_ident(plan.key[1]) || ')' <> ALL (u.expressions) THEN
			changed := snowflake_migrate_internal.resolve(run_, no_, u.label, u.expressions, u.operators, u.distinct_nulls, u.predicate,
														   u.policy, u.argument, u.changed) > 0 OR changed;
		ELSE
			/* New ids are in no table: only those that are kept can be there. */
			EXECUTE format('SELECT count(*), min(m.n1)::text FROM %s AS m WHERE m.action = ''c'' AND m.n1 = m.o1 '
				'AND (EXISTS (SELECT FROM %s AS t WHERE t.%I = m.n1) OR EXISTS (SELECT FROM %s AS f WHERE f.n1 = m.n1 AND f.source < m.source AND f.action = ''c''))',
				map, snowflake_migrate_internal.only(plan.relation), plan.key[1], map) INTO found, example;
			IF found > 0 THEN
				PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, plan.relation::text, u.label,
					'snowflake ids of a source are in the target, or in another source, as well', found, example,
					format('If these are other rows: SELECT %s(%L, %L, ''renumber'');', 'snowflake_migrate.declare_policy', plan.relation, u.label));
			END IF;
		END IF;
	END LOOP;
	RETURN changed;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.pass(bigint, int) IS 'for snowflake_migrate.merge()''s own use: what clashes in a table';

/* What is left to do for one table when it is known which of its rows clash, and what is reported of it. */
CREATE FUNCTION snowflake_migrate_internal.finish_map(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	run_row record;
	plan record;
	source record;
	u record;
	parts record;
	statement text;
	found bigint;
	example text;
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map_' || no_);
BEGIN
	SELECT r.* INTO STRICT run_row FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	IF plan.kind <> 'none' THEN
		FOR u IN SELECT x.* FROM snowflake_migrate_internal.unique(run_, no_) AS x WHERE x.policy IN ('rerank', 'suffix') LOOP
			IF u.policy = 'rerank' THEN
				PERFORM snowflake_migrate_internal.rank(run_, no_, u.label, u.expressions, u.predicate, u.argument, u.changed);
			ELSE
				EXECUTE format('INSERT INTO snowflake_migrate.records (run, source, relation, constraint_name, policy, old_key, new_key, column_name, old_value, new_value) '
					'SELECT %s, (%L::name[])[v.source], %L, %L, ''suffix'', %s, %s, %L, v.%I, v.%I FROM %s AS v JOIN %s AS m ON m.source = v.source AND %s WHERE v.%I IS NOT NULL',
					run_, run_row.sources, plan.relation, u.label, snowflake_migrate_internal.key_text('m.o#', plan.key),
					snowflake_migrate_internal.key_text('m.n#', plan.key), u.changed, 'old ' || u.changed, u.changed,
					snowflake_migrate_internal.relation(run_, 'change_' || no_), map, snowflake_migrate_internal.key_list('m.o# = v.o#', plan.key, ' AND '),
					'old ' || u.changed);
			END IF;
		END LOOP;
		INSERT INTO snowflake_migrate.records (run, source, relation, constraint_name, policy, old_key, new_key)
		SELECT run_, m.source, m.relation, p.constraint_name, 'renumber', m.old_key, m.new_key
		FROM snowflake_migrate.declared_policies AS p JOIN snowflake_migrate.map AS m ON m.run = run_ AND m.relation = plan.relation::text
		WHERE p.relation = plan.relation AND p.policy = 'renumber' AND plan.kind = 'id' AND m.action = 'copied' AND m.new_key <> m.old_key
			AND m.old_key::bigint > snowflake_migrate_internal.last_serial();
		/* What a row became may have changed once more since it was put on record. */
		EXECUTE format('UPDATE snowflake_migrate.records AS r SET new_key = CASE WHEN m.action <> ''s'' THEN %s END, policy = CASE m.action WHEN ''k'' THEN ''keep_target'' ELSE r.policy END FROM %s AS m '
			'WHERE r.run = %s AND r.relation = %L AND r.source = (%L::name[])[m.source] AND r.policy IN (''keep_target'', ''keep_source'') AND r.old_key = %s',
			snowflake_migrate_internal.key_text('m.n#', plan.key), map, run_, plan.relation, run_row.sources, snowflake_migrate_internal.key_text('m.o#', plan.key));
	END IF;
	PERFORM snowflake_migrate_internal.constraints(run_, no_);
	INSERT INTO snowflake_migrate.report (run, severity, source, relation, object, problem, count, example)
	SELECT run_, 'info', r.source, r.relation, r.constraint_name,
		CASE r.policy WHEN 'suffix' THEN 'rows clash: they get a suffix' WHEN 'keep_target' THEN 'rows clash: the row that was there first stays'
			WHEN 'keep_source' THEN 'rows clash: the source''s row takes the place' WHEN 'skip' THEN 'rows are skipped'
			WHEN 'rerank' THEN 'ranks are numbered anew' WHEN 'renumber' THEN 'snowflake ids clash: they get new ones' END,
		count(*), min(concat_ws(' ', r.old_key, r.old_value || ' -> ' || r.new_value))
	FROM snowflake_migrate.records AS r WHERE r.run = run_ AND r.relation = plan.relation::text
	GROUP BY r.source, r.relation, r.constraint_name, r.policy ORDER BY r.source, r.constraint_name, r.policy;

	FOR source IN SELECT s.* FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_ ORDER BY s.source LOOP
		IF plan.mode IN ('match', 'same_id') THEN
			EXECUTE format('SELECT count(*) FROM %s AS m WHERE m.source = %s AND m.action = ''m''', map, source.source) INTO found;
			IF found > 0 THEN
				PERFORM snowflake_migrate_internal.find(run_, 'info', run_row.sources[source.source], plan.relation::text, NULL, 'rows are there already', found, NULL, NULL);
			END IF;
			parts := snowflake_migrate_internal.rows_parts(run_, no_, source.source, true, false);
			SELECT format('SELECT count(*), min(%s) FROM %s JOIN %s AS t ON %s WHERE m.action = ''m'' AND ',
					snowflake_migrate_internal.key_text('m.o#', plan.key), parts.origin, snowflake_migrate_internal.only(plan.relation),
					snowflake_migrate_internal.key_list('t.@ = m.n#', plan.key, ' AND '))
					|| snowflake_migrate_internal.differs(plan.relation, array_agg(e.name), array_agg(e.expression)) INTO statement
				FROM unnest(parts.names, parts.expressions) WITH ORDINALITY AS e (name, expression, n)
				WHERE e.name <> ALL (plan.key::text[]) AND e.name <> ALL (coalesce(plan.natural_key, '{}')::text[]);
			IF statement IS NOT NULL THEN
				EXECUTE statement INTO found, example;
				IF found = 0 AND cardinality(run_row.sources) > 1 THEN
					/* Or than the row of another source that is added. */
					EXECUTE replace(statement, format(' JOIN %s AS t ON ', snowflake_migrate_internal.only(plan.relation)),
									format(' JOIN (%s) AS t ON ', snowflake_migrate_internal.all_rows(run_, no_,
										(SELECT string_agg(quote_ident(c.name), ', ' ORDER BY c.position) FROM snowflake_migrate_internal.plan_columns AS c WHERE c.run = run_ AND c.no = no_),
										NULL))) INTO found, example;
				END IF;
				IF found > 0 THEN
					PERFORM snowflake_migrate_internal.find(run_,
						CASE WHEN plan.mode = 'same_id' OR 'differences' = ANY (plan.accept) THEN 'warning' ELSE 'error' END,
						run_row.sources[source.source], plan.relation::text, NULL, 'rows that are there already differ in other columns', found, example,
						CASE WHEN plan.mode = 'match' AND NOT 'differences' = ANY (plan.accept) THEN 'Make them equal, or accept differences: the values that are there stay.'
							ELSE 'The values that are there stay.' END);
				END IF;
			END IF;
		END IF;
		EXECUTE CASE WHEN plan.kind = 'none' THEN format('SELECT count(*) FROM %s', snowflake_migrate_internal.only(source.relation))
			ELSE format('SELECT count(*) FROM %s AS m WHERE m.source = %s AND m.action IN (''c'', ''r'')', map, source.source) END INTO found;
		UPDATE snowflake_migrate_internal.plan_sources AS s SET rows_to_do = found WHERE s.run = run_ AND s.no = no_ AND s.source = source.source;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.finish_map(bigint, int) IS 'for snowflake_migrate.merge()''s own use: completes the map of a table';

/* Makes all maps of a run, and adds to its report what stands in the way. */
CREATE FUNCTION snowflake_migrate_internal.make_maps(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	step int;
	table_no int;
	passes int;
	changed boolean;
BEGIN
	/* These sort and hash whole tables, as CREATE INDEX does. */
	PERFORM set_config('work_mem', current_setting('maintenance_work_mem'), true);
	EXECUTE format('CREATE SCHEMA %I', 'snowflake_merge_' || run_);
	EXECUTE format('CREATE TABLE %s (no int NOT NULL, source int NOT NULL, o1 bigint NOT NULL, n1 bigint, action "char" NOT NULL) PARTITION BY LIST (no)',
				   snowflake_migrate_internal.relation(run_, 'map'));
	FOR table_no IN SELECT t.no FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.kind <> 'none' ORDER BY t.no LOOP
		PERFORM snowflake_migrate_internal.create_map(run_, table_no);
	END LOOP;
	PERFORM snowflake_migrate_internal.number(run_, n) FROM (SELECT generate_subscripts(r.sources, 1) FROM snowflake_migrate.runs AS r WHERE r.run = run_) AS s (n);

	FOR step IN SELECT DISTINCT t.map_step FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ ORDER BY 1 LOOP
		FOR table_no IN SELECT t.no FROM snowflake_migrate_internal.plan_tables AS t
			WHERE t.run = run_ AND t.map_step = step AND t.kind <> 'none' ORDER BY t.kind = 'key', t.no
		LOOP
			PERFORM snowflake_migrate_internal.fill_map(run_, table_no);
		END LOOP;
		/* Until nothing changes: what becomes of one row decides about others. */
		passes := 0;
		LOOP
			passes := passes + 1;
			IF passes > 100 THEN
				PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, (SELECT string_agg(t.relation::text, ', ') FROM snowflake_migrate_internal.plan_tables AS t
						WHERE t.run = run_ AND t.map_step = step), NULL, 'the policies do not come to an end', NULL, NULL, 'Does a unique index not see the suffix? Choose another policy.');
				EXIT;
			END IF;
			/* Only what clashes when nothing changes any more does. */
			DELETE FROM snowflake_migrate.report AS f USING snowflake_migrate_internal.plan_tables AS t
				WHERE t.run = run_ AND t.map_step = step AND f.run = run_ AND f.relation = t.relation::text AND f.severity = 'error' AND f.problem = 'rows clash';
			changed := false;
			FOR table_no IN SELECT DISTINCT s.no FROM snowflake_migrate_internal.plan_sources AS s JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
				WHERE t.run = run_ AND t.map_step = step ORDER BY 1
			LOOP
				changed := snowflake_migrate_internal.pass(run_, table_no) OR changed;
			END LOOP;
			EXIT WHEN NOT changed;
		END LOOP;
		FOR table_no IN SELECT DISTINCT s.no FROM snowflake_migrate_internal.plan_sources AS s JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
			WHERE t.run = run_ AND t.map_step = step ORDER BY 1
		LOOP
			PERFORM snowflake_migrate_internal.finish_map(run_, table_no);
		END LOOP;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.make_maps(bigint) IS 'for snowflake_migrate.merge()''s own use: makes the maps of a run';
/*
 * What would stop a merge or surprise those who start it, found before it begins: from the catalogs, and from the rows where
 * the catalogs can't say.  An error is what the merge would fail or go wrong with, and snowflake_migrate.merge() refuses to go on; a
 * warning is what may surprise; the rest is good to know.
 *
 * The functions that look at one subject each return whether the keys can be mapped all the same.  They read the rows of a
 * table only where the caller can see all of them.
 */

/* Raises an error where these can't be the schemas of a merge. */
CREATE FUNCTION snowflake_migrate_internal.check_arguments(sources name[], target name) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	schema name;
BEGIN
	IF sources IS NULL OR target IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'sources and target must not be null';
	ELSIF cardinality(sources) = 0 THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'there is no source', HINT = 'Give the schemas whose rows are to be merged into the target.';
	ELSIF array_ndims(sources) <> 1 OR array_lower(sources, 1) <> 1 THEN
		RAISE EXCEPTION USING ERRCODE = 'array_subscript_error',
			MESSAGE = 'sources must be an array of one dimension that begins with 1';
	ELSIF array_position(sources, NULL) IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'a source must not be null';
	END IF;
	SELECT s.name INTO schema FROM unnest(sources) AS s (name) GROUP BY s.name HAVING count(*) > 1 ORDER BY s.name LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('source "%s" is given twice', schema);
	ELSIF target = ANY (sources) THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('source "%s" is the target', target);
	END IF;
	SELECT s.name INTO schema FROM unnest(sources || target) WITH ORDINALITY AS s (name, n)
		WHERE NOT EXISTS (SELECT FROM pg_namespace AS n WHERE n.nspname = s.name) ORDER BY s.n LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_schema_name',
			MESSAGE = format('schema "%s" does not exist', schema),
			HINT = 'Sources are schemas of this database; those of another can be had by IMPORT FOREIGN SCHEMA.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_arguments(name[], name) IS 'for snowflake_migrate.merge()''s own use: refuses what can''t be its schemas';

/* Whether the caller sees all rows of a table. */
CREATE FUNCTION snowflake_migrate_internal.can_read(relation regclass) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT has_schema_privilege(c.relnamespace, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
		AND NOT (c.relkind IN ('r', 'p') AND row_security_active(c.oid))
	FROM pg_class AS c WHERE c.oid = relation
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.can_read(regclass) IS 'for snowflake_migrate.merge()''s own use: whether the caller sees all rows';

/* Whether the caller may read and set a sequence. */
CREATE FUNCTION snowflake_migrate_internal.can_set(sequence regclass) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT has_sequence_privilege(sequence, 'UPDATE') AND has_sequence_privilege(sequence, 'SELECT, USAGE') $$;
COMMENT ON FUNCTION snowflake_migrate_internal.can_set(regclass) IS 'for snowflake_migrate.merge()''s own use: whether the caller may set a sequence';

/* An expression for what names the row s in a report: its key, or all of it. */
CREATE FUNCTION snowflake_migrate_internal.row_text(key name[]) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE cardinality(key) WHEN 0 THEN 'left(s::text, 100)' ELSE snowflake_migrate_internal.key_text('s.@', key) END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.row_text(name[]) IS 'for snowflake_migrate.merge()''s own use: an expression for a row''s key';

/* Tables that one side lacks, and those that the caller may not read or write. */
CREATE FUNCTION snowflake_migrate_internal.check_tables(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	can_map boolean := true;
	r record;
	is_filled boolean;
BEGIN
	FOR r IN
		SELECT s.name, s.source
		FROM snowflake_migrate.runs AS u
			CROSS JOIN LATERAL (SELECT u.target, NULL::name UNION ALL SELECT g.name, g.name FROM unnest(u.sources) AS g (name)) AS s (name, source)
			JOIN pg_namespace AS n ON n.nspname = s.name
		WHERE u.run = run_ AND NOT has_schema_privilege(n.oid, 'USAGE')
	LOOP
		can_map := false;
		PERFORM snowflake_migrate_internal.find(run_, 'error', r.source, NULL, format('schema %I', r.name),
			format('permission denied for role %I', current_user), NULL, NULL, format('GRANT USAGE ON SCHEMA %I TO %I;', r.name, current_user));
	END LOOP;

	/* What is imported from another server is a foreign table there be a view or a table; what extensions have, they have on each. */
	FOR r IN
		SELECT s.name AS source, c.oid::regclass AS relation, t.oid::regclass AS there, t.relkind, t.relispartition
		FROM snowflake_migrate.runs AS u
			CROSS JOIN unnest(u.sources) AS s (name)
			JOIN pg_namespace AS n ON n.nspname = s.name
			JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'f') AND NOT c.relispartition
			JOIN pg_namespace AS m ON m.nspname = u.target
			LEFT JOIN pg_class AS t ON t.relnamespace = m.oid AND t.relname = c.relname AND t.relkind IN ('r', 'p', 'f', 'v', 'm')
		WHERE u.run = run_
			AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_tables AS p WHERE p.run = run_ AND p.relation = t.oid)
			AND NOT EXISTS (SELECT FROM snowflake_migrate.declared_tables AS d WHERE d.relation IN (c.oid, t.oid) AND d.mode = 'ignore')
			AND NOT (c.relkind = 'f' AND coalesce(t.relkind IN ('v', 'm'), false))
			AND NOT EXISTS (SELECT FROM pg_depend AS e JOIN pg_class AS x ON x.oid = e.objid AND x.relname = c.relname
							WHERE e.classid = 'pg_class'::regclass AND e.deptype = 'e' AND (x.oid = c.oid OR c.relkind = 'f'))
			AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_tables AS p
								JOIN snowflake_migrate_internal.plan_sources AS o USING (run, no)
							WHERE p.run = run_ AND t.relispartition AND p.relation = pg_partition_root(t.oid) AND u.sources[o.source] = s.name)
	LOOP
		is_filled := true;
		IF snowflake_migrate_internal.can_read(r.relation) THEN
			EXECUTE format('SELECT EXISTS (SELECT FROM %s)', snowflake_migrate_internal.only(r.relation)) INTO is_filled;
		END IF;
		PERFORM snowflake_migrate_internal.find(run_, CASE WHEN is_filled THEN 'error' ELSE 'warning' END, r.source, r.relation::text, NULL,
			CASE WHEN r.relispartition THEN format('is a partition in the target, of table %s', pg_partition_root(r.there))
				ELSE CASE r.relkind WHEN 'f' THEN 'is a foreign table in the target' WHEN 'v' THEN 'is a view in the target'
						WHEN 'm' THEN 'is a materialized view in the target' ELSE 'the target has no such table' END END
				|| CASE WHEN is_filled THEN '' ELSE '; it is empty' END,
			NULL, NULL,
			format('Create the table in the target, or leave it out: SELECT %s(%L, %L);', 'snowflake_migrate.declare_table', r.relation, 'ignore'));
	END LOOP;

	FOR r IN
		SELECT p.relation, g.name AS source
		FROM (SELECT p.relation, u.sources, array_agg(s.source) FILTER (WHERE s.source IS NOT NULL) AS having_it
			  FROM snowflake_migrate.runs AS u
				JOIN snowflake_migrate_internal.plan_tables AS p USING (run)
				LEFT JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
			  WHERE u.run = run_ AND p.mode <> 'ignore' GROUP BY p.relation, u.sources) AS p
			CROSS JOIN LATERAL (SELECT NULL::name WHERE p.having_it IS NULL
								UNION ALL
								SELECT s.name FROM unnest(p.sources) WITH ORDINALITY AS s (name, n) WHERE s.n <> ALL (p.having_it)) AS g (name)
	LOOP
		PERFORM snowflake_migrate_internal.find(run_, 'info', r.source, r.relation::text, NULL,
			CASE WHEN r.source IS NULL THEN 'no source has such a table' ELSE 'the source has no such table' END, NULL, NULL, NULL);
	END LOOP;

	FOR r IN
		SELECT c.oid::regclass AS relation
		FROM snowflake_migrate.runs AS u
			JOIN pg_namespace AS n ON n.nspname = u.target
			JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relkind = 'f' AND NOT c.relispartition
		WHERE u.run = run_ AND NOT EXISTS (SELECT FROM snowflake_migrate.declared_tables AS d WHERE d.relation = c.oid AND d.mode = 'ignore')
	LOOP
		PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, r.relation::text, NULL, 'is a foreign table, which is not merged into', NULL, NULL,
			format('If that is as it should be: SELECT %s(%L, %L);', 'snowflake_migrate.declare_table', r.relation, 'ignore'));
	END LOOP;

	/* Only where there is something to be merged. */
	FOR r IN
		SELECT p.relation, c.relpersistence, c.relrowsecurity, row_security_active(c.oid) AS is_subject, has_table_privilege(c.oid, 'SELECT') AS can_read,
			(SELECT string_agg(g.privilege, ', ') FROM unnest('{SELECT,INSERT,UPDATE}'::text[]) AS g (privilege)
			 WHERE NOT has_table_privilege(c.oid, g.privilege)) AS denied,
			(SELECT string_agg(i.inhrelid::regclass::text, ', ' ORDER BY i.inhrelid) FROM pg_inherits AS i
			 WHERE i.inhparent = c.oid AND c.relkind = 'r') AS children
		FROM snowflake_migrate_internal.plan_tables AS p JOIN pg_class AS c ON c.oid = p.relation
		WHERE p.run = run_ AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no)
	LOOP
		IF r.denied IS NOT NULL THEN
			can_map := can_map AND r.can_read;
			PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, r.relation::text, NULL,
				format('role %I has no right to %s', current_user, r.denied), NULL, NULL, format('GRANT %s ON %s TO %I;', r.denied, r.relation, current_user));
		END IF;
		IF r.is_subject THEN
			can_map := false;
			PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, r.relation::text, NULL, 'row security may hide rows from the current user', NULL, NULL,
				'Merge as the owner of the table, or as a role with BYPASSRLS.');
		ELSIF r.relrowsecurity THEN
			PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, r.relation::text, NULL,
				'policies of row security do not apply to rows that are merged', NULL, NULL, 'Look whether the rows should pass the policies.');
		END IF;
		IF r.relpersistence = 'u' THEN
			PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, r.relation::text, NULL, 'is unlogged: a crash loses its rows, merged ones too', NULL, NULL,
				format('ALTER TABLE %s SET LOGGED;', r.relation));
		END IF;
		IF r.children IS NOT NULL THEN
			PERFORM snowflake_migrate_internal.find(run_, 'info', NULL, r.relation::text, NULL,
				format('has children, each of which is merged as a table of its own: %s', r.children), NULL, NULL, NULL);
		END IF;
	END LOOP;

	FOR r IN
		SELECT u.sources[s.source] AS source, p.relation, s.relation AS source_relation, c.relrowsecurity,
			CASE WHEN c.relkind IN ('r', 'p') THEN row_security_active(c.oid) ELSE false END AS is_subject, has_table_privilege(c.oid, 'SELECT') AS can_read
		FROM snowflake_migrate.runs AS u
			JOIN snowflake_migrate_internal.plan_sources AS s USING (run)
			JOIN snowflake_migrate_internal.plan_tables AS p USING (run, no)
			JOIN pg_class AS c ON c.oid = s.relation
		WHERE u.run = run_
	LOOP
		IF NOT r.can_read THEN
			can_map := false;
			PERFORM snowflake_migrate_internal.find(run_, 'error', r.source, r.relation::text, NULL,
				format('role %I has no right to SELECT', current_user), NULL, NULL, format('GRANT SELECT ON %s TO %I;', r.source_relation, current_user));
		ELSIF r.is_subject THEN
			can_map := false;
			PERFORM snowflake_migrate_internal.find(run_, 'error', r.source, r.relation::text, NULL, 'row security may hide rows from the current user', NULL, NULL,
				'Merge as the owner of the table, or as a role with BYPASSRLS.');
		ELSIF r.relrowsecurity THEN
			PERFORM snowflake_migrate_internal.find(run_, 'info', r.source, r.relation::text, NULL,
				'row security does not apply to the current user, who merges all rows', NULL, NULL, NULL);
		END IF;
	END LOOP;
	RETURN can_map;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_tables(bigint) IS 'for snowflake_migrate.merge()''s own use: finds what is wrong with tables';

/*
 * Rights beside those on the tables that are merged, as far as the check does not need them itself: of the merge and its proof, and of
 * a rollback, whose lack is a warning.
 */
CREATE FUNCTION snowflake_migrate_internal.check_rights(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	can_map boolean := true;
	r record;
BEGIN
	FOR r IN
		WITH merged AS MATERIALIZED (
			SELECT p.no, p.relation FROM snowflake_migrate_internal.plan_tables AS p
			WHERE p.run = run_ AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no)
		),
		/* What is read though it is not merged. */
		looked_at (severity, relation, object, purpose) AS (
			SELECT 'error', CASE WHEN c.relation IS NULL THEN k.child ELSE k.parent END, f.conname, 'the foreign key could not be checked'
			FROM pg_constraint AS f
				CROSS JOIN LATERAL (SELECT coalesce(pg_partition_root(f.conrelid), f.conrelid)::regclass,
										coalesce(pg_partition_root(f.confrelid), f.confrelid)::regclass) AS k (child, parent)
				LEFT JOIN merged AS c ON c.relation = k.child LEFT JOIN merged AS p ON p.relation = k.parent
			WHERE f.contype = 'f' AND f.conparentid = 0 AND (c.relation IS NULL) <> (p.relation IS NULL)
			UNION ALL
			SELECT 'error', p.relation, p.key[1], 'it could not be seen which node numbers the ids have'
			FROM snowflake_migrate_internal.plan_tables AS p
			WHERE p.run = run_ AND p.kind = 'id' AND p.no NOT IN (SELECT m.no FROM merged AS m) AND snowflake_migrate_internal.may_hold_ids(p.relation, p.key[1])
			UNION ALL
			SELECT 'warning', p.relation, f.name, 'the merge could not be taken back'
			FROM snowflake_migrate_internal.plan_references AS f JOIN snowflake_migrate_internal.plan_tables AS p USING (run, no)
			WHERE f.run = run_ AND f.declared AND f.no NOT IN (SELECT m.no FROM merged AS m) AND f.referenced IN (SELECT m.no FROM merged AS m)
		),
		/* What expressions call when rows are stored. */
		expression (relation, classid, objid) AS (
			SELECT m.relation, 'pg_constraint'::regclass, c.oid FROM merged AS m JOIN pg_constraint AS c ON c.conrelid = m.relation AND c.contype = 'c'
			UNION ALL
			SELECT m.relation, 'pg_class'::regclass, i.indexrelid FROM merged AS m JOIN pg_index AS i ON i.indrelid = m.relation
			UNION ALL
			SELECT m.relation, 'pg_attrdef'::regclass, d.oid
			FROM merged AS m JOIN pg_attrdef AS d ON d.adrelid = m.relation JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
			WHERE a.attgenerated <> '' OR EXISTS (
				SELECT FROM snowflake_migrate_internal.plan_sources AS s
				WHERE s.run = run_ AND s.no = m.no AND NOT EXISTS (
					SELECT FROM pg_attribute AS o WHERE o.attrelid = s.relation AND o.attname = a.attname AND o.attnum > 0 AND NOT o.attisdropped))
		)
		SELECT 'error' AS severity, NULL::regclass AS relation, format('database %I', d.datname) AS object, g.privilege,
			format('%s ON DATABASE %I', g.privilege, d.datname) AS granted, NULL AS purpose, true AS by_check
		FROM pg_database AS d, unnest('{CREATE,TEMPORARY}'::text[]) AS g (privilege)
		WHERE d.datname = current_database() AND NOT has_database_privilege(d.oid, g.privilege)
		UNION ALL
		/* The check needs the others of these itself. */
		SELECT 'error', NULL, t.relation::regclass::text, t.privilege, format('%s ON %s', t.privilege, t.relation::regclass), NULL, false
		FROM (VALUES ('snowflake_migrate.runs', 'UPDATE'), ('snowflake_migrate.nodes', 'INSERT'),
					 ('snowflake_migrate_internal.plan_tables', 'UPDATE')) AS t (relation, privilege)
		WHERE NOT has_table_privilege(t.relation, t.privilege)
		UNION ALL
		SELECT 'error', NULL, f.oid::regproc::text, 'EXECUTE', format('EXECUTE ON FUNCTION %s', f.oid::regprocedure), NULL, false
		FROM pg_proc AS f WHERE f.oid = 'snowflake_internal.set_aside'::regproc AND NOT has_function_privilege(f.oid, 'EXECUTE')
		UNION ALL
		SELECT 'warning', m.relation, NULL, 'DELETE', format('DELETE ON %s', m.relation), 'the merge could not be taken back', false
		FROM merged AS m WHERE NOT has_table_privilege(m.relation, 'DELETE')
		UNION ALL
		SELECT DISTINCT l.severity, l.relation, l.object, g.privilege, g.privilege || ' ON ' || g.what, l.purpose, false
		FROM looked_at AS l JOIN pg_class AS c ON c.oid = l.relation
			CROSS JOIN LATERAL (SELECT 'SELECT', l.relation::text WHERE NOT has_table_privilege(c.oid, 'SELECT')
								UNION ALL
								SELECT 'USAGE', format('SCHEMA %I', n.nspname) FROM pg_namespace AS n WHERE n.oid = c.relnamespace AND NOT has_schema_privilege(n.oid, 'USAGE')
							   ) AS g (privilege, what)
		UNION ALL
		SELECT DISTINCT 'error', e.relation, x.object, g.privilege, g.privilege || ' ON ' || g.what, NULL, true
		FROM expression AS e JOIN pg_depend AS u ON u.classid = e.classid AND u.objid = e.objid
			CROSS JOIN LATERAL (SELECT f.oid::regproc::text, f.pronamespace, has_function_privilege(f.oid, 'EXECUTE'), 'EXECUTE', 'FUNCTION ' || f.oid::regprocedure
								FROM pg_proc AS f WHERE u.refclassid = 'pg_proc'::regclass AND f.oid = u.refobjid
								UNION ALL
								SELECT c.oid::regclass::text, c.relnamespace, has_sequence_privilege(c.oid, 'USAGE, UPDATE'), 'USAGE', 'SEQUENCE ' || c.oid::regclass
								FROM pg_class AS c WHERE u.refclassid = 'pg_class'::regclass AND c.oid = u.refobjid AND c.relkind = 'S'
							   ) AS x (object, schema, can_use, privilege, what)
			CROSS JOIN LATERAL (SELECT x.privilege, x.what WHERE NOT x.can_use
								UNION ALL
								SELECT 'USAGE', format('SCHEMA %I', n.nspname) FROM pg_namespace AS n WHERE n.oid = x.schema AND NOT has_schema_privilege(n.oid, 'USAGE')
							   ) AS g (privilege, what)
		UNION ALL
		SELECT DISTINCT l.severity, l.relation, NULL, NULL, NULL, NULL, false
		FROM looked_at AS l JOIN pg_class AS c ON c.oid = l.relation
		WHERE has_table_privilege(c.oid, 'SELECT') AND row_security_active(c.oid)
	LOOP
		can_map := can_map AND NOT r.by_check;
		IF r.privilege IS NULL THEN
			PERFORM snowflake_migrate_internal.find(run_, r.severity, NULL, r.relation::text, NULL, 'row security may hide rows from the current user', NULL, NULL,
				'Merge as the owner of the table, or as a role with BYPASSRLS.');
		ELSE
			PERFORM snowflake_migrate_internal.find(run_, r.severity, NULL, r.relation::text, r.object,
				format('role %I has no right to %s', current_user, r.privilege) || coalesce(': ' || r.purpose, ''), NULL, NULL, format('GRANT %s TO %I;', r.granted, current_user));
		END IF;
	END LOOP;
	RETURN can_map;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_rights(bigint) IS 'for snowflake_migrate.merge()''s own use: finds which rights the caller lacks';

/* Columns that one side lacks, and those that differ. */
CREATE FUNCTION snowflake_migrate_internal.check_columns(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	can_map boolean := true;
	pair record;
	col record;
	rule record;
	is_filled boolean;
	can_read boolean;
	problem text;
	names text[];
	predicates text[];
	problems text[];
	otherwise text[];
	advices text[];
	block boolean[];
	counts bigint[];
	example text;
	n int;
BEGIN
	FOR pair IN
		SELECT p.*, u.sources[s.source] AS source, s.relation AS source_relation, c.relkind AS source_kind,
			/* What the target lacks of any source, as a declaration replaces the former. */
			(SELECT array_agg(DISTINCT g.name ORDER BY g.name)
			 FROM (SELECT unnest(p.ignored_columns)
				   UNION ALL
				   SELECT a.attname
				   FROM snowflake_migrate_internal.plan_sources AS o JOIN pg_attribute AS a ON a.attrelid = o.relation AND a.attnum > 0 AND NOT a.attisdropped
				   WHERE o.run = run_ AND o.no = p.no
						AND NOT EXISTS (SELECT FROM pg_attribute AS t WHERE t.attrelid = p.relation AND t.attname = a.attname AND t.attnum > 0)
				  ) AS g (name)) AS lacking
		FROM snowflake_migrate.runs AS u
			JOIN snowflake_migrate_internal.plan_sources AS s USING (run)
			JOIN snowflake_migrate_internal.plan_tables AS p USING (run, no)
			JOIN pg_class AS c ON c.oid = s.relation
		WHERE u.run = run_ ORDER BY p.no, s.source
	LOOP
		names := '{}';
		predicates := '{}';
		problems := '{}';
		otherwise := '{}';
		advices := '{}';
		block := '{}';
		can_read := snowflake_migrate_internal.can_read(pair.source_relation);
		is_filled := true;
		IF can_read THEN
			EXECUTE format('SELECT EXISTS (SELECT FROM %s)', snowflake_migrate_internal.only(pair.source_relation)) INTO is_filled;
		END IF;

		FOR col IN
			SELECT attname AS name, t.attnum AS target_position, t.atttypid AS type, t.atttypmod AS typmod,
				t.attnotnull OR coalesce(y.typnotnull, false) AS is_required, t.attgenerated <> '' AS generated, t.attidentity <> '' AS is_identity,
				pg_get_expr(d.adbin, d.adrelid) AS default_value, y.typcategory AS category, coalesce(e.typtype, y.typtype) AS of, coalesce(e.oid, y.oid) AS element,
				s.attnum AS source_position, s.atttypid AS source_type, s.atttypmod AS source_typmod, s.attnotnull AS source_required,
				coalesce(f.oid, z.oid) AS source_element, coalesce(attname = ANY (pair.key), false) AS is_key
			FROM (SELECT a.* FROM pg_attribute AS a WHERE a.attrelid = pair.relation AND a.attnum > 0 AND NOT a.attisdropped) AS t
				FULL JOIN (SELECT a.* FROM pg_attribute AS a WHERE a.attrelid = pair.source_relation AND a.attnum > 0 AND NOT a.attisdropped) AS s
					USING (attname)
				LEFT JOIN pg_attrdef AS d ON d.adrelid = t.attrelid AND d.adnum = t.attnum
				LEFT JOIN pg_type AS y ON y.oid = t.atttypid
				LEFT JOIN pg_type AS e ON e.oid = y.typelem AND y.typcategory = 'A'
				LEFT JOIN pg_type AS z ON z.oid = s.atttypid
				LEFT JOIN pg_type AS f ON f.oid = z.typelem AND z.typcategory = 'A'
			ORDER BY t.attnum, s.attnum
		LOOP
			IF col.target_position IS NULL THEN
				IF col.name = ANY (pair.ignored_columns) THEN
					PERFORM snowflake_migrate_internal.find(run_, 'info', pair.source, pair.relation::text, col.name,
						'is left out, as declared: the target has no such column', NULL, NULL, NULL);
				ELSE
					PERFORM snowflake_migrate_internal.find(run_, CASE WHEN is_filled THEN 'error' ELSE 'warning' END, pair.source, pair.relation::text, col.name,
						'the target has no such column' || CASE WHEN is_filled THEN '' ELSE '; the table is empty' END, NULL, NULL,
						format('ALTER TABLE %s ADD COLUMN %I %s; or, to leave it out: SELECT %s(%L, %L%s%s, ignored_columns => %L);', pair.relation, col.name,
							   format_type(col.source_type, col.source_typmod), 'snowflake_migrate.declare_table', pair.relation, pair.mode,
							   CASE WHEN pair.natural_key IS NOT NULL THEN format(', key => %L', pair.natural_key) END,
							   CASE WHEN pair.accept <> '{}' THEN format(', accept => %L', pair.accept) END, pair.lacking));
				END IF;
				CONTINUE;
			ELSIF col.generated THEN
				CONTINUE;
			ELSIF col.source_position IS NULL THEN
				IF col.is_key OR col.name = ANY (pair.natural_key) THEN
					can_map := false;
					PERFORM snowflake_migrate_internal.find(run_, 'error', pair.source, pair.relation::text, col.name,
						format('the source has no such column, which is part of the %skey', CASE WHEN col.is_key THEN '' ELSE 'natural ' END), NULL, NULL,
						'Add the column to the source, or give a view of it that has one.');
				ELSIF col.is_required AND col.default_value IS NULL AND NOT col.is_identity AND is_filled THEN
					PERFORM snowflake_migrate_internal.find(run_, 'error', pair.source, pair.relation::text, col.name,
						'the source has no such column, which must not be null and has no default', NULL, NULL,
						format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT ...; or give a view of the source that has the column.', pair.relation, col.name));
				ELSE
					PERFORM snowflake_migrate_internal.find(run_, 'info', pair.source, pair.relation::text, col.name,
						'the source has no such column: ' || CASE WHEN col.default_value IS NOT NULL THEN 'rows take the default ' || col.default_value
							WHEN col.is_identity THEN 'rows take new values of the identity' ELSE 'rows take NULL' END, NULL, NULL, NULL);
				END IF;
				IF col.name = pair.created AND pair.kind = 'id' AND is_filled THEN
					PERFORM snowflake_migrate_internal.find(run_, 'warning', pair.source, pair.relation::text, col.name,
						'the source does not tell when rows were created: new ids are packed at the start of the merge', NULL, NULL,
						'Give a view of the source that has the column.');
				END IF;
				CONTINUE;
			END IF;

			IF (col.source_type, col.source_typmod) IS DISTINCT FROM (col.type, col.typmod) THEN
				problem := format('type %s becomes %s', format_type(col.source_type, col.source_typmod), format_type(col.type, col.typmod));
				SELECT
					CASE WHEN y.typname IN ('int2', 'int4', 'int8') AND z.typname IN ('int2', 'int4', 'int8') AND y.typlen < z.typlen
							AND NOT (col.is_key AND pair.kind = 'id')
						THEN format('s.%I NOT BETWEEN %s AND %s', col.name, -(2 ^ (8 * y.typlen - 1))::bigint, (2 ^ (8 * y.typlen - 1))::bigint - 1)
						WHEN y.typname = 'varchar' AND col.typmod <> -1 AND (z.typname <> 'varchar' OR col.source_typmod NOT BETWEEN 0 AND col.typmod)
						THEN format('length(rtrim(s.%I::text)) > %s', col.name, col.typmod - 4)
						WHEN col.of = 'e' AND l.missing IS NOT NULL
						THEN format(CASE WHEN col.category = 'A' THEN 's.%I::text[] && %L::text[]' ELSE 's.%I::text = ANY (%L::text[])' END, col.name, l.missing)
						END AS predicate,
					CASE WHEN y.typname = 'varchar' THEN format('values are longer than %s allows', format_type(col.type, col.typmod))
						WHEN col.of = 'e' THEN format('type %s of the target has no %s', col.element::regtype, (SELECT string_agg(quote_literal(m), ', ') FROM unnest(l.missing) AS m))
						ELSE format('values are too great for type %s', format_type(col.type, col.typmod)) END AS problem,
					CASE WHEN y.typname = 'varchar' OR col.of <> 'e' THEN format('ALTER TABLE %s ALTER COLUMN %I TYPE %s;', pair.relation, col.name,
																				format_type(col.source_type, col.source_typmod))
						ELSE (SELECT string_agg(format('ALTER TYPE %s ADD VALUE %L;', col.element::regtype, m), ' ') FROM unnest(l.missing) AS m) END AS advice,
					y.typname <> 'varchar' AS blocks,
					/* What depends on more than the value, or keeps fewer digits. */
					CASE WHEN y.typname = 'timestamptz' AND z.typname IN ('timestamp', 'date') THEN 'by the time zone of the session that merges'
						WHEN y.typname IN ('float4', 'float8') AND z.typname IN ('int4', 'int8', 'numeric', 'float8') AND NOT (y.typname = 'float8' AND z.typname = 'int4')
						THEN 'digits may get lost' END AS surprise,
					col.of = 'e' AND z.typname = y.typname AS is_same_enum
				INTO rule
				FROM pg_type AS y
					JOIN pg_type AS z ON z.oid = col.source_type,
					LATERAL (SELECT array_agg(x.enumlabel::text ORDER BY x.enumsortorder) FROM pg_enum AS x
							 WHERE x.enumtypid = col.source_element
								AND NOT EXISTS (SELECT FROM pg_enum AS o WHERE o.enumtypid = col.element AND o.enumlabel = x.enumlabel)) AS l (missing)
				WHERE y.oid = col.type;
				IF snowflake_migrate_internal.cast(col.source_type, col.source_typmod, col.type, col.typmod) IS NULL THEN
					can_map := false;
					PERFORM snowflake_migrate_internal.find(run_, 'error', pair.source, pair.relation::text, col.name,
						format('type %s cannot become %s without a loss', format_type(col.source_type, col.source_typmod), format_type(col.type, col.typmod)),
						NULL, NULL,
						format('ALTER TABLE %s ALTER COLUMN %I TYPE %s; or give a view of the source that converts it.', pair.relation, col.name,
							   format_type(col.source_type, col.source_typmod)));
				ELSIF rule.predicate IS NOT NULL THEN
					names := names || col.name::text;
					predicates := predicates || rule.predicate;
					problems := problems || rule.problem;
					otherwise := otherwise || (problem || '; all values fit');
					advices := advices || rule.advice;
					block := block || rule.blocks;
				/* Of ids, it goes without saying. */
				ELSIF NOT rule.is_same_enum
					AND NOT (col.is_key AND pair.kind = 'id')
					AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS f WHERE f.run = run_ AND f.no = pair.no AND f.name = col.name) THEN
					PERFORM snowflake_migrate_internal.find(run_, CASE WHEN rule.surprise IS NULL THEN 'info' ELSE 'warning' END, pair.source, pair.relation::text,
						col.name, problem || coalesce(': ' || rule.surprise, ''), NULL, NULL,
						CASE WHEN rule.surprise LIKE 'by the time zone%' THEN 'Set timezone to that of the source before the merge.' END);
				END IF;
			END IF;

			IF col.is_required AND NOT col.source_required THEN
				names := names || col.name::text;
				predicates := predicates || format('s.%I IS NULL', col.name);
				problems := problems || CASE WHEN col.is_key THEN 'part of the key is null' ELSE 'is null, which the target does not allow' END;
				/* Columns of a view always may be. */
				otherwise := otherwise || CASE WHEN pair.source_kind IN ('r', 'p', 'f') THEN 'may be null, unlike in the target; it is in no row' END;
				advices := advices || CASE WHEN col.is_key THEN 'Give the rows a key.'
					ELSE format('Give the rows a value, or ALTER TABLE %s ALTER COLUMN %I DROP NOT NULL;', pair.relation, col.name) END;
				block := block || col.is_key;
			END IF;
		END LOOP;

		IF can_read AND predicates <> '{}' THEN
			EXECUTE format('SELECT ARRAY[%s] FROM %s AS s',
				(SELECT string_agg(format('count(*) FILTER (WHERE %s)', p.predicate), ', ' ORDER BY p.n) FROM unnest(predicates) WITH ORDINALITY AS p (predicate, n)),
				snowflake_migrate_internal.only(pair.source_relation)) INTO counts;
			FOR n IN 1 .. cardinality(predicates) LOOP
				IF counts[n] > 0 THEN
					can_map := can_map AND NOT block[n];
					/* A key that the source lacks can't name a row. */
					EXECUTE format('SELECT %s FROM %s AS s WHERE %s ORDER BY 1 LIMIT 1',
						snowflake_migrate_internal.row_text(CASE WHEN EXISTS (SELECT FROM unnest(pair.key) AS k (name) WHERE NOT EXISTS (
								SELECT FROM pg_attribute AS a WHERE a.attrelid = pair.source_relation AND a.attname = k.name AND a.attnum > 0 AND NOT a.attisdropped))
							OR problems[n] = 'part of the key is null' THEN '{}' ELSE pair.key END),
						snowflake_migrate_internal.only(pair.source_relation), predicates[n]) INTO example;
					PERFORM snowflake_migrate_internal.find(run_, 'error', pair.source, pair.relation::text, names[n], problems[n], counts[n], example, advices[n]);
				ELSIF otherwise[n] IS NOT NULL THEN
					PERFORM snowflake_migrate_internal.find(run_, 'info', pair.source, pair.relation::text, names[n], otherwise[n], NULL, NULL, NULL);
				END IF;
			END LOOP;
		END IF;

		PERFORM snowflake_migrate_internal.find(run_, 'info', pair.source, pair.relation::text, NULL,
			'columns are in another order than in the target; they go by their names', NULL, NULL, NULL)
		FROM pg_attribute AS t
			JOIN pg_attribute AS s ON s.attrelid = pair.source_relation AND s.attname = t.attname AND s.attnum > 0 AND NOT s.attisdropped
		WHERE t.attrelid = pair.relation AND t.attnum > 0 AND NOT t.attisdropped
		HAVING array_agg(t.attname ORDER BY t.attnum) <> array_agg(t.attname ORDER BY s.attnum);
	END LOOP;
	RETURN can_map;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_columns(bigint) IS 'for snowflake_migrate.merge()''s own use: finds what is wrong with columns';

/*
 * What to do about a key that is to be given snowflake ids and can't be.  A key that no sequence gives may mean something, as a season's
 * number does: then it must stay what it is.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_advice(relation regclass, mode text, key name) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN mode = 'copy' AND a.attidentity = '' AND NOT a.atthasdef
			THEN format(E'If an equal key is the same row in all databases: SELECT %s(%L, %L);\nIf other columns tell which rows are the same: SELECT %s(%L, %L, %L);\n'
						'Else, as its rows get other keys: ', 'snowflake_migrate.declare_table', relation, 'same_id', 'snowflake_migrate.declare_table', relation, 'match',
						coalesce((SELECT array_agg(o.attname ORDER BY o.attnum)::text
								  FROM pg_index AS i CROSS JOIN LATERAL (SELECT i.indkey[0 : i.indnkeyatts - 1]) AS k (attnums)
									JOIN pg_attribute AS o ON o.attrelid = i.indrelid AND o.attnum = ANY (k.attnums)
								  WHERE i.indrelid = relation AND i.indisunique AND i.indexprs IS NULL AND i.indpred IS NULL AND a.attnum <> ALL (k.attnums)
								  GROUP BY i.indexrelid ORDER BY i.indexrelid LIMIT 1), '{?}')) ELSE '' END
		|| format('SELECT %s(ARRAY[%L]::regclass[], ARRAY[%L]::name[]);', 'snowflake_migrate.adopt', relation, key)
	FROM pg_attribute AS a WHERE a.attrelid = relation AND a.attname = key
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_advice(regclass, text, name) IS 'for snowflake_migrate.merge()''s own use: what to do about a key that cannot be given snowflake ids';

/* Keys that can't hold the new ids, and what refers to them; keys that a source has more than once. */
CREATE FUNCTION snowflake_migrate_internal.check_keys(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	can_map boolean := true;
	r record;
	duplicates bigint;
	example text;
BEGIN
	FOR r IN
		SELECT p.relation, p.mode, p.kind, p.key, a.atttypid, format_type(a.atttypid, a.atttypmod) AS type,
			EXISTS (SELECT FROM pg_attrdef AS d JOIN pg_depend AS u ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid
					WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum
						AND u.refclassid = 'pg_proc'::regclass AND u.refobjid = snowflake_migrate_internal.default_function()) AS has_default,
			snowflake_migrate_internal.adopt_advice(p.relation, p.mode, p.key[1]) AS advice
		FROM snowflake_migrate_internal.plan_tables AS p
			LEFT JOIN pg_attribute AS a ON p.kind = 'id' AND a.attrelid = p.relation AND a.attname = p.key[1]
		WHERE p.run = run_ AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no)
	LOOP
		IF r.kind = 'none' THEN
			PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, r.relation::text, NULL,
				'has no key: is copied in one transaction, and cannot be taken back', NULL, NULL,
				format('ALTER TABLE %s ADD PRIMARY KEY (...);', r.relation));
		ELSIF r.kind = 'id' AND (r.atttypid <> 'bigint'::regtype OR NOT r.has_default) THEN
			can_map := can_map AND r.atttypid = 'bigint'::regtype;
			/* Rows of shared tables may all be there, so that none is given an id. */
			PERFORM snowflake_migrate_internal.find(run_, CASE WHEN r.mode = 'copy' OR r.atttypid <> 'bigint'::regtype THEN 'error' ELSE 'warning' END,
				NULL, r.relation::text, r.key[1],
				CASE WHEN r.atttypid <> 'bigint'::regtype THEN format('key has the type %s, which snowflake ids do not fit into', r.type)
					ELSE 'key is not given snowflake ids by default' END,
				NULL, NULL, r.advice);
		END IF;
	END LOOP;

	FOR r IN
		SELECT t.relation, f.name, p.relation AS referenced, p.mode, p.key[1] AS key, k.atttypid AS key_type, format_type(a.atttypid, a.atttypmod) AS type,
			bool_or(f.declared) AS declared, a.atttypid IN ('smallint[]'::regtype, 'integer[]'::regtype) AS is_array
		FROM snowflake_migrate_internal.plan_references AS f
			JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.no = f.referenced
			JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attname = f.name
			JOIN pg_attribute AS k ON k.attrelid = p.relation AND k.attname = p.key[1]
		WHERE f.run = run_ AND f.path IS NULL
			AND (a.atttypid IN ('smallint'::regtype, 'integer'::regtype, 'smallint[]'::regtype, 'integer[]'::regtype)
				 OR EXISTS (SELECT FROM pg_type AS y WHERE y.oid = a.atttypid AND y.typbasetype IN ('smallint'::regtype, 'integer'::regtype)))
			AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = t.no)
		GROUP BY t.relation, f.name, p.relation, p.mode, p.key, k.atttypid, a.atttypid, a.atttypmod
	LOOP
		can_map := false;
		PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, r.relation::text, r.name,
			format('has the type %s and refers to ids of %s, which do not fit', r.type, r.referenced), NULL, NULL,
			CASE WHEN NOT r.declared AND r.key_type <> 'bigint'::regtype
				THEN snowflake_migrate_internal.adopt_advice(r.referenced, r.mode, r.key)
				ELSE format('ALTER TABLE %s ALTER COLUMN %I TYPE %s;', r.relation, r.name, CASE WHEN r.is_array THEN 'bigint[]' ELSE 'bigint' END) END);
	END LOOP;

	/* Where an index of the source does not prove it: in views and foreign tables never. */
	FOR r IN
		SELECT u.sources[s.source] AS source, p.relation, s.relation AS source_relation, p.key, v.key_values
		FROM snowflake_migrate.runs AS u
			JOIN snowflake_migrate_internal.plan_sources AS s USING (run)
			JOIN snowflake_migrate_internal.plan_tables AS p USING (run, no)
			CROSS JOIN LATERAL (SELECT count(*) AS columns, string_agg(k.value, ', ' ORDER BY k.n) AS key_values
								FROM snowflake_migrate_internal.key_values(p.relation, s.relation, p.key) AS k) AS v
		WHERE u.run = run_ AND p.kind <> 'none' AND v.columns = cardinality(p.key) AND snowflake_migrate_internal.can_read(s.relation)
			AND NOT EXISTS (
				SELECT FROM pg_index AS i
				WHERE i.indrelid = s.relation AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indexprs IS NULL AND i.indpred IS NULL
					AND NOT EXISTS (SELECT FROM unnest(i.indkey[0 : i.indnkeyatts - 1]) AS k (attnum)
									JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum WHERE a.attname <> ALL (p.key)))
			/* What can't be converted is reported already. */
			AND NOT EXISTS (
				SELECT FROM pg_attribute AS t JOIN pg_attribute AS o ON o.attrelid = s.relation AND o.attname = t.attname AND o.attnum > 0
				WHERE t.attrelid = p.relation AND t.attname = ANY (p.key)
					AND snowflake_migrate_internal.cast(o.atttypid, o.atttypmod, t.atttypid, t.atttypmod) IS NULL)
	LOOP
		EXECUTE format('SELECT count(*), string_agg(d.key, %L ORDER BY d.n, d.key) FILTER (WHERE d.n <= 3) '
			'FROM (SELECT %s, row_number() OVER (ORDER BY %s) FROM %s AS s GROUP BY %s HAVING count(*) > 1) AS d (key, n)',
			', ', CASE cardinality(r.key) WHEN 1 THEN format('(%s)::text', r.key_values) ELSE format('ROW(%s)::text', r.key_values) END, r.key_values,
			snowflake_migrate_internal.only(r.source_relation), r.key_values) INTO duplicates, example;
		IF duplicates > 0 THEN
			can_map := false;
			PERFORM snowflake_migrate_internal.find(run_, 'error', r.source, r.relation::text, array_to_string(r.key, ', '),
				'several rows have the same key', duplicates, example, 'Give each row a key of its own, or a view of the source with one row for each key.');
		END IF;
	END LOOP;
	RETURN can_map;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_keys(bigint) IS 'for snowflake_migrate.merge()''s own use: finds what is wrong with keys';

/* A name in small letters, with an underscore between its words. */
CREATE FUNCTION snowflake_migrate_internal.word(name text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT lower(regexp_replace(regexp_replace(name, '([a-z0-9])([A-Z])', '\1_\2', 'g'), '\W+', '_', 'g')) $$;
COMMENT ON FUNCTION snowflake_migrate_internal.word(text) IS 'for snowflake_migrate.merge()''s own use: a name as it is compared with others';

/* The tables whose ids can be referred to, each by all names that a column could call it, and whether the ids may change. */
CREATE FUNCTION snowflake_migrate_internal.words(run_ bigint, OUT word text, OUT relation regclass, OUT may_change boolean) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT DISTINCT g.word, p.relation, p.mode <> 'same_id'
	FROM snowflake_migrate_internal.plan_tables AS p
		JOIN pg_class AS c ON c.oid = p.relation
		CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.word(c.relname)) AS w (word)
		CROSS JOIN LATERAL unnest(ARRAY[w.word, regexp_replace(w.word, 's$', ''), regexp_replace(w.word, 'es$', ''),
										 regexp_replace(w.word, 'ies$', 'y')]) AS g (word)
	WHERE p.run = run_ AND cardinality(p.key) = 1 AND p.mode <> 'ignore'
		AND (p.kind = 'id' OR p.mode = 'same_id'
			 OR EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS f WHERE f.run = run_ AND f.no = p.no AND f.name = p.key[1]))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.words(bigint) IS 'for snowflake_migrate.merge()''s own use: what the tables of a run are called';

/* The table that a word names, or that its end names: players for player, sender_player. */
CREATE FUNCTION snowflake_migrate_internal.named(name text, words text[], relations regclass[], also_end boolean) RETURNS regclass
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT w.relation FROM unnest(words, relations) AS w (word, relation)
	WHERE w.word = name OR (also_end AND right(name, length(w.word) + 1) = '_' || w.word)
	ORDER BY length(w.word) DESC, w.relation LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.named(text, text[], regclass[], boolean) IS 'for snowflake_migrate.merge()''s own use: the table that a word names';

/* A path in the documents of a column that looks like one to ids, with the member's name; of the first 1000 rows of a source. */
CREATE FUNCTION snowflake_migrate_internal.document_ids(relation regclass, attname name, OUT path text, OUT name text)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
BEGIN
	EXECUTE format($query$
		WITH RECURSIVE document (content) AS (SELECT s.%I::jsonb FROM %s AS s WHERE s.%I IS NOT NULL LIMIT 1000),
		part (path, name, content, depth) AS (
			SELECT '$', '', d.content, 0 FROM document AS d
			UNION ALL
			SELECT p.path || n.step, n.name, n.content, p.depth + 1
			FROM part AS p,
				LATERAL (
					SELECT CASE WHEN e.key ~ '^\d+$' THEN '.*' WHEN e.key ~ '^[A-Za-z_]\w*$' THEN '.' || e.key ELSE '.' || to_json(e.key) END,
						CASE WHEN e.key ~ '^\d+$' THEN p.name ELSE e.key END, e.value
					FROM jsonb_each(CASE jsonb_typeof(p.content) WHEN 'object' THEN p.content ELSE '{}' END) AS e
					UNION ALL
					SELECT '[*]', p.name, e.value FROM jsonb_array_elements(CASE jsonb_typeof(p.content) WHEN 'array' THEN p.content ELSE '[]' END) AS e
				) AS n (step, name, content)
			WHERE p.depth < 20
		)
		SELECT f.path, f.name
		FROM (
			SELECT 1, p.path, snowflake_migrate_internal.word(p.name) FROM part AS p
			WHERE p.name ~* 'ids?$' AND snowflake_migrate_internal.word(p.name) ~ '(^|_)ids?$' AND snowflake_migrate_internal.json_id(p.content) IS NOT NULL
			UNION ALL
			SELECT 2, p.path || '.keyvalue().key', snowflake_migrate_internal.word(p.name) FROM part AS p
			WHERE jsonb_typeof(p.content) = 'object' AND EXISTS (SELECT FROM jsonb_object_keys(p.content) AS k (name) WHERE k.name ~ '^\d+$')
		) AS f (rank, path, name)
		ORDER BY f.rank, f.path COLLATE "C" LIMIT 1
		$query$, attname, snowflake_migrate_internal.only(relation), attname) INTO path, name;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.document_ids(regclass, name) IS 'for snowflake_migrate.merge()''s own use: where documents seem to hold ids';

/* Conditions that overlap or leave values out; columns that look like references; references to what is not merged. */
CREATE FUNCTION snowflake_migrate_internal.check_references(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	can_map boolean := true;
	target name;
	r record;
	source record;
	overlapping bigint;
	left_out bigint;
	example text;
	left_example text;
	words text[];
	relations regclass[];
	unchanging regclass[];
	named regclass;
	only_called regclass;	/* named without saying that it holds ids */
	kinds text[];
	more text[];
	path record;
BEGIN
	SELECT u.target INTO STRICT target FROM snowflake_migrate.runs AS u WHERE u.run = run_;

	FOR r IN
		SELECT u.sources[s.source] AS source, p.relation, c.relname, s.relation AS source_relation, p.key, f.name, f.path,
			array_agg(DISTINCT f.condition) AS conditions, bool_or(f.condition IS NULL) AS has_other
		FROM snowflake_migrate.runs AS u
			JOIN snowflake_migrate_internal.plan_sources AS s USING (run)
			JOIN snowflake_migrate_internal.plan_tables AS p USING (run, no)
			JOIN snowflake_migrate_internal.plan_references AS f USING (run, no)
			JOIN pg_class AS c ON c.oid = p.relation
		WHERE u.run = run_ AND snowflake_migrate_internal.can_read(s.relation)
			AND EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = s.relation AND a.attname = f.name AND a.attnum > 0 AND NOT a.attisdropped)
		GROUP BY u.sources, s.source, p.relation, c.relname, s.relation, p.key, f.name, f.path
		HAVING count(f.condition) > 0
	LOOP
		BEGIN
			EXECUTE format('SELECT count(*) FILTER (WHERE s."snowflake conditions" > 1), min(%s) FILTER (WHERE s."snowflake conditions" > 1), '
				'count(*) FILTER (WHERE s."snowflake conditions" = 0), min(%s) FILTER (WHERE s."snowflake conditions" = 0) '
				'FROM (SELECT %I.*, %s AS "snowflake conditions" FROM %s AS %I) AS s WHERE s.%I IS NOT NULL',
				snowflake_migrate_internal.row_text(r.key), snowflake_migrate_internal.row_text(r.key), r.relname,
				(SELECT string_agg(format('((%s) IS TRUE)::int', g.condition), ' + ') FROM unnest(r.conditions) AS g (condition) WHERE g.condition IS NOT NULL),
				snowflake_migrate_internal.only(r.source_relation), r.relname, r.name)
				INTO overlapping, example, left_out, left_example;
		EXCEPTION WHEN syntax_error_or_access_rule_violation THEN
			can_map := false;
			PERFORM snowflake_migrate_internal.find(run_, 'error', r.source, r.relation::text, r.name,
				'the condition of the reference cannot be evaluated: ' || SQLERRM, NULL, NULL,
				format('Declare the reference with %s() again, or give a view of the source that has what the condition needs.', 'snowflake_migrate.declare_reference'));
			CONTINUE;
		END;
		IF overlapping > 0 THEN
			PERFORM snowflake_migrate_internal.find(run_, 'error', r.source, r.relation::text, r.name,
				'more than one condition of a reference holds', overlapping, example, 'Declare references whose conditions exclude each other.');
		END IF;
		IF left_out > 0 AND NOT r.has_other AND r.path IS NULL THEN
			PERFORM snowflake_migrate_internal.find(run_, 'warning', r.source, r.relation::text, r.name,
				'no condition of a reference holds: values are copied as they are', left_out, left_example,
				format('If they are ids too: SELECT %s(%L, %L, ''?'', %L);', 'snowflake_migrate.declare_reference', r.relation, r.name, '?'));
		END IF;
	END LOOP;

	SELECT coalesce(array_agg(w.word ORDER BY w.word, w.relation), '{}'), coalesce(array_agg(w.relation ORDER BY w.word, w.relation), '{}'),
		coalesce(array_agg(w.relation) FILTER (WHERE NOT w.may_change), '{}')
		INTO words, relations, unchanging FROM snowflake_migrate_internal.words(run_) AS w;

	FOR r IN
		WITH fk AS MATERIALIZED (SELECT f.* FROM snowflake_migrate_internal.foreign_keys(target) AS f),
		/* Whatever refers to nothing yet, of types that can. */
		candidate AS (
			SELECT p.no, p.relation, a.attname, a.attnum, snowflake_migrate_internal.word(a.attname) AS word,
				y.oid IN ('jsonb'::regtype, 'json'::regtype) AS is_document
			FROM snowflake_migrate_internal.plan_tables AS p
				JOIN pg_attribute AS a ON a.attrelid = p.relation AND a.attnum > 0 AND NOT a.attisdropped
				JOIN pg_type AS d ON d.oid = a.atttypid
				JOIN pg_type AS y ON y.oid = coalesce(nullif(d.typbasetype, 0), d.oid)
			WHERE p.run = run_ AND a.attgenerated = ''
				AND y.oid IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype, 'smallint[]'::regtype, 'integer[]'::regtype, 'bigint[]'::regtype,
							  'jsonb'::regtype, 'json'::regtype)
				AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no)
				AND NOT (p.kind = 'id' AND p.key = ARRAY[a.attname])
				AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS f WHERE f.run = run_ AND f.no = p.no AND f.name = a.attname)
				AND NOT EXISTS (SELECT FROM snowflake_migrate.declared_references AS f WHERE f.relation = p.relation AND f.column_name = a.attname)
				AND NOT EXISTS (SELECT FROM fk AS f WHERE f.relation = p.relation AND f.name = a.attname)
		)
		SELECT c.*, g.stem,
			/* What says of which table the id is. */
			CASE WHEN NOT c.is_document THEN
				(SELECT a.attname FROM pg_attribute AS a JOIN pg_type AS y ON y.oid = a.atttypid LEFT JOIN pg_type AS b ON b.oid = y.typbasetype
				 WHERE a.attrelid = c.relation AND a.attnum > 0 AND NOT a.attisdropped AND coalesce(b.typcategory, y.typcategory) IN ('S', 'E')
					AND replace(snowflake_migrate_internal.word(a.attname), '_', '') IN (replace(g.stem, '_', '') || 'type', replace(g.stem, '_', '') || 'kind')
				 ORDER BY a.attnum LIMIT 1) END AS kind_column
		FROM candidate AS c, LATERAL (SELECT CASE WHEN c.word ~ '.ids?$' THEN regexp_replace(c.word, '_?ids?$', '') END) AS g (stem)
		ORDER BY c.no, c.attnum
	LOOP
		IF r.is_document THEN
			SELECT NULL::text AS path, NULL::text AS name INTO path;
			FOR source IN SELECT s.relation FROM snowflake_migrate_internal.plan_sources AS s
				JOIN pg_attribute AS a ON a.attrelid = s.relation AND a.attname = r.attname AND a.atttypid IN ('jsonb'::regtype, 'json'::regtype)
				WHERE s.run = run_ AND s.no = r.no AND snowflake_migrate_internal.can_read(s.relation) ORDER BY s.source
			LOOP
				SELECT d.* INTO path FROM snowflake_migrate_internal.document_ids(source.relation, r.attname) AS d;
				EXIT WHEN path.path IS NOT NULL;
			END LOOP;
			PERFORM snowflake_migrate_internal.find(run_, 'info', NULL, r.relation::text, r.attname, 'may hold ids', NULL, path.path,
				format('If it does: SELECT %s(%L, %L, %L, path => %L);', 'snowflake_migrate.declare_reference', r.relation, r.attname,
					   coalesce(snowflake_migrate_internal.named(regexp_replace(path.name, '_?ids?$', ''), words, relations, true)::text, '?'),
					   coalesce(path.path, '?')));
			CONTINUE;
		END IF;

		named := CASE r.stem WHEN 'parent' THEN r.relation
			ELSE coalesce(snowflake_migrate_internal.named(r.stem, words, relations, true),
						  CASE WHEN r.stem LIKE '%\_parent' AND r.relation = ANY (relations) THEN r.relation END) END;
		only_called := snowflake_migrate_internal.named(r.word, words, relations, false);
		IF coalesce(named, only_called) = ANY (unchanging) THEN
			CONTINUE;
		ELSIF named IS NOT NULL THEN
			PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, r.relation::text, r.attname,
				format('looks like a reference to %s, but has no foreign key', named), NULL, NULL,
				format('If it is one: SELECT %s(%L, %L, %L);', 'snowflake_migrate.declare_reference', r.relation, r.attname, named));
		ELSIF r.kind_column IS NOT NULL THEN
			kinds := '{}';
			FOR source IN SELECT s.relation FROM snowflake_migrate_internal.plan_sources AS s
				WHERE s.run = run_ AND s.no = r.no AND snowflake_migrate_internal.can_read(s.relation)
					AND (SELECT count(*) FROM pg_attribute AS a WHERE a.attrelid = s.relation AND a.attname IN (r.attname, r.kind_column)
							AND a.attnum > 0 AND NOT a.attisdropped) = 2
				ORDER BY s.source
			LOOP
				EXECUTE format('SELECT array_agg(d.kind) FROM (SELECT DISTINCT s.%I::text FROM %s AS s WHERE s.%I IS NOT NULL AND s.%I IS NOT NULL '
					'ORDER BY 1 LIMIT 10) AS d (kind)', r.kind_column, snowflake_migrate_internal.only(source.relation), r.kind_column, r.attname) INTO more;
				kinds := kinds || more;
			END LOOP;
			PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, r.relation::text, r.attname,
				format('looks like a reference to a table that column %I tells', r.kind_column), NULL, NULL,
				E'For each kind of ids that it holds, with the table:\n'
					|| coalesce((
						SELECT string_agg(format('SELECT %s(%L, %L, %L, %L);', 'snowflake_migrate.declare_reference', r.relation, r.attname,
							/* The last word: Player of App\Models\Player. */
							coalesce(snowflake_migrate_internal.named(snowflake_migrate_internal.word(substring(k.kind FROM '(\w+)\W*$')), words, relations, false)::text, '?'),
							format('%I = %L', r.kind_column, k.kind)), E'\n' ORDER BY k.kind COLLATE "C")
						FROM (SELECT DISTINCT g.kind FROM unnest(kinds) AS g (kind) ORDER BY 1 LIMIT 10) AS k),
					format('SELECT %s(%L, %L, ''?'', %L);', 'snowflake_migrate.declare_reference', r.relation, r.attname, format('%I = ''?''', r.kind_column))));
		ELSIF r.word ~ '_ids?$' OR only_called IS NOT NULL THEN
			PERFORM snowflake_migrate_internal.find(run_, 'info', NULL, r.relation::text, r.attname, 'may hold ids', NULL, NULL,
				format('If it does: SELECT %s(%L, %L, %L);', 'snowflake_migrate.declare_reference', r.relation, r.attname, coalesce(only_called::text, '?')));
		END IF;
	END LOOP;

	FOR r IN
		SELECT f.relation, f.name, f.referenced, f.referenced_name,
			EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS o WHERE o.run = run_ AND o.no = p.no AND o.name = f.name) AS is_mapped,
			c.relnamespace <> n.oid AS is_outside, q.mode = 'ignore' AS is_ignored, k.changed_by
		FROM snowflake_migrate_internal.foreign_keys(target) AS f
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.relation = f.relation
			JOIN pg_class AS c ON c.oid = f.referenced
			JOIN pg_namespace AS n ON n.nspname = target
			LEFT JOIN snowflake_migrate_internal.plan_tables AS q ON q.run = run_ AND q.relation = f.referenced
			LEFT JOIN snowflake_migrate_internal.plan_columns AS k ON k.run = run_ AND k.no = q.no AND k.name = f.referenced_name
		WHERE EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no)
			AND NOT EXISTS (SELECT FROM snowflake_migrate.declared_references AS d WHERE d.relation = f.relation AND d.column_name = f.name)
	LOOP
		IF r.is_outside THEN
			PERFORM snowflake_migrate_internal.find(run_, 'info', NULL, r.relation::text, r.name,
				format('refers to %s, outside of the target: values are copied as they are, and checked', r.referenced), NULL, NULL, NULL);
		ELSIF r.is_ignored THEN
			PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, r.relation::text, r.name,
				CASE WHEN r.is_mapped THEN format('refers to %s, which is ignored, so that no row is found', r.referenced)
					ELSE format('refers to %s, which is ignored: values are copied as they are, and checked', r.referenced) END, NULL, NULL,
				format('If an equal key is the same row in all databases: SELECT %s(%L, %L);', 'snowflake_migrate.declare_table', r.referenced, 'same_id'));
		ELSIF r.changed_by IS NOT NULL AND NOT r.is_mapped THEN
			PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, r.relation::text, r.name,
				format('refers to column %I of %s, which the policy %s may change', r.referenced_name, r.referenced, r.changed_by), NULL, NULL,
				'Choose another policy, or let the column refer to the key.');
		END IF;
	END LOOP;
	RETURN can_map;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_references(bigint) IS 'for snowflake_migrate.merge()''s own use: finds what is wrong with references, and what may be one';

/* What the target does by itself when rows come in. */
CREATE FUNCTION snowflake_migrate_internal.check_effects(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	has_right CONSTANT boolean := has_parameter_privilege('session_replication_role', 'SET');
	right_advice CONSTANT text := format('GRANT SET ON PARAMETER session_replication_role TO %I;', current_user);
	plan record;
	r record;
BEGIN
	IF NOT has_right THEN
		PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, NULL, 'session_replication_role',
			'cannot be set by the current user: triggers fire, and foreign keys are checked row by row', NULL, NULL, right_advice);
	END IF;

	FOR plan IN
		SELECT p.* FROM snowflake_migrate_internal.plan_tables AS p
		WHERE p.run = run_ AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no)
		ORDER BY p.no
	LOOP
		IF plan.cyclic AND NOT has_right THEN
			PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, plan.relation::text, NULL,
				'is in a cycle of foreign keys, and session_replication_role cannot be set by the current user', NULL, NULL, right_advice);
		END IF;

		/* Those for INSERT and UPDATE; a trigger of a partitioned table has copies on partitions. */
		FOR r IN
			SELECT g.fires, g.kind, string_agg(DISTINCT quote_ident(g.name), ', ') AS names
			FROM (
				SELECT t.tgname, 'trigger', t.tgenabled IN ('A', 'R') OR (t.tgenabled = 'O' AND NOT has_right)
				FROM pg_trigger AS t
				WHERE (t.tgrelid = plan.relation OR t.tgrelid IN (SELECT l.relid FROM pg_partition_tree(plan.relation) AS l))
					AND NOT t.tgisinternal AND t.tgparentid = 0 AND t.tgtype & 20 <> 0 AND t.tgenabled <> 'D'
				UNION ALL
				SELECT w.rulename, 'rule', w.ev_enabled IN ('A', 'R') OR (w.ev_enabled = 'O' AND NOT has_right)
				FROM pg_rewrite AS w
				WHERE w.ev_class = plan.relation AND w.ev_type IN ('2', '3') AND w.ev_enabled <> 'D'
			) AS g (name, kind, fires)
			GROUP BY g.fires, g.kind
		LOOP
			PERFORM snowflake_migrate_internal.find(run_, CASE WHEN r.fires THEN 'warning' ELSE 'info' END, NULL, plan.relation::text, r.names,
				CASE r.kind WHEN 'trigger' THEN CASE WHEN r.fires THEN 'trigger fires for rows that are merged' ELSE 'trigger does not fire for rows that are merged' END
					ELSE CASE WHEN r.fires THEN 'rule applies to rows that are merged' ELSE 'rule does not apply to rows that are merged' END END,
				NULL, NULL, CASE WHEN r.fires THEN format('If it should not: ALTER TABLE %s DISABLE %s ...; else it must name objects with their schema.', plan.relation, upper(r.kind)) END);
		END LOOP;

		FOR r IN
			SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FILTER (WHERE a.attgenerated <> '') AS generated,
				string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FILTER (WHERE a.attidentity = 'a') AS always,
				CASE WHEN plan.mode = 'copy' AND plan.kind = 'id' AND plan.created IS NULL
						AND count(*) FILTER (WHERE a.atttypid IN ('timestamptz'::regtype, 'timestamp'::regtype)) = 1
					THEN min(a.attname::text) FILTER (WHERE a.atttypid IN ('timestamptz'::regtype, 'timestamp'::regtype)) END AS created
			FROM pg_attribute AS a WHERE a.attrelid = plan.relation AND a.attnum > 0 AND NOT a.attisdropped
		LOOP
			IF r.generated IS NOT NULL THEN
				PERFORM snowflake_migrate_internal.find(run_, 'info', NULL, plan.relation::text, r.generated,
					'generated by the target, whatever the sources have', NULL, NULL, NULL);
			END IF;
			IF r.always IS NOT NULL THEN
				PERFORM snowflake_migrate_internal.find(run_, 'info', NULL, plan.relation::text, r.always,
					'identity that is generated always: rows that are merged keep their values', NULL, NULL, NULL);
			END IF;
			IF r.created IS NOT NULL THEN
				PERFORM snowflake_migrate_internal.find(run_, 'info', NULL, plan.relation::text, r.created,
					'new ids are packed at the start of the merge, as nothing tells when rows were created', NULL, NULL,
					format('If this column does: SELECT %s(%L, %L);', 'snowflake_migrate.declare_created', plan.relation, r.created));
			END IF;
		END LOOP;

		FOR r IN
			SELECT DISTINCT a.attname, q.seqrelid::regclass AS sequence, snowflake_migrate_internal.can_set(q.seqrelid) AS can_set
			FROM pg_attribute AS a
				LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
				JOIN pg_depend AS u ON (u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid AND u.refclassid = 'pg_class'::regclass)
					OR (u.classid = 'pg_class'::regclass AND u.refclassid = 'pg_class'::regclass AND u.refobjid = a.attrelid
						AND u.refobjsubid = a.attnum AND u.deptype IN ('a', 'i'))
				JOIN pg_sequence AS q ON q.seqrelid = CASE u.classid WHEN 'pg_attrdef'::regclass THEN u.refobjid ELSE u.objid END
			WHERE a.attrelid = plan.relation AND a.attnum > 0 AND NOT (plan.kind = 'id' AND plan.key = ARRAY[a.attname])
		LOOP
			PERFORM snowflake_migrate_internal.find(run_, CASE WHEN r.can_set THEN 'info' ELSE 'warning' END, NULL, plan.relation::text, r.attname,
				format(CASE WHEN r.can_set THEN 'sequence %s is set past the values that are merged' ELSE 'sequence %s cannot be set past the values that are merged by the current user' END,
					   r.sequence), NULL, NULL, CASE WHEN NOT r.can_set THEN format('GRANT SELECT, UPDATE ON SEQUENCE %s TO %I;', r.sequence, current_user) END);
		END LOOP;

		FOR r IN
			SELECT DISTINCT x.conname FROM pg_constraint AS x
			WHERE x.contype = 'x' AND (x.conrelid = plan.relation OR x.conrelid IN (SELECT l.relid FROM pg_partition_tree(plan.relation) AS l))
		LOOP
			PERFORM snowflake_migrate_internal.find(run_, 'info', NULL, plan.relation::text, r.conname,
				'exclusion constraint: rows that clash in it stop the merge, as no policy is for these', NULL, NULL, NULL);
		END LOOP;

		FOR r IN
			SELECT p.constraint_name FROM snowflake_migrate.declared_policies AS p
			WHERE p.relation = plan.relation
				AND NOT EXISTS (SELECT FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid
								WHERE i.indrelid = plan.relation AND i.indisunique AND x.relname = p.constraint_name)
		LOOP
			PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, plan.relation::text, r.constraint_name,
				'a policy is declared for a constraint that does not exist', NULL, NULL,
				format('DELETE FROM %s WHERE relation = %L::regclass AND constraint_name = %L;', 'snowflake_migrate.declared_policies', plan.relation, r.constraint_name));
		END LOOP;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_effects(bigint) IS 'for snowflake_migrate.merge()''s own use: finds what the target does by itself';

/* All that can be found before the keys are mapped.  Returns whether they can be. */
CREATE FUNCTION snowflake_migrate_internal.check_schemas(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	rights CONSTANT boolean := snowflake_migrate_internal.check_rights(run_);
	tables CONSTANT boolean := snowflake_migrate_internal.check_tables(run_);
	columns CONSTANT boolean := snowflake_migrate_internal.check_columns(run_);
	keys CONSTANT boolean := snowflake_migrate_internal.check_keys(run_);
	reference CONSTANT boolean := snowflake_migrate_internal.check_references(run_);
BEGIN
	PERFORM snowflake_migrate_internal.check_effects(run_);
	RETURN rights AND tables AND columns AND keys AND reference;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_schemas(bigint) IS 'for snowflake_migrate.merge()''s own use: adds what it finds to the report of a run';

/* Nothing is left of it: the plan and the maps are made as for a merge, and rolled back. */
CREATE FUNCTION snowflake_migrate.check(
	sources name[],
	target name,
	OUT severity text,
	OUT source name,
	OUT relation text,
	OUT object text,
	OUT problem text,
	OUT count bigint,
	OUT example text,
	OUT advice text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	run_ bigint;
	nodes bigint[];
	can_map boolean;
	found_ snowflake_migrate.report[];
BEGIN
	PERFORM snowflake_migrate_internal.check_arguments(sources, target);
	BEGIN
		/* From the top, as servers are numbered from the bottom: new ids must not clash by their numbers alone. */
		SELECT coalesce(array_agg(g.node), '{}') INTO nodes
			FROM (SELECT g.node
				  FROM snowflake_migrate_internal.layout() AS l,
					generate_series(l.max_node, greatest(0, l.max_node - cardinality(sources) - (SELECT count(*) FROM snowflake_migrate.nodes)), -1) AS g (node)
				  WHERE NOT EXISTS (SELECT FROM snowflake_migrate.nodes AS n WHERE n.node = g.node)
					AND g.node IS DISTINCT FROM snowflake_migrate_internal.own_node()
				  LIMIT cardinality(sources)) AS g;
		INSERT INTO snowflake_migrate.runs AS r (sources, target, nodes, state, batch_size, started_at)
			VALUES (sources, target, nodes, 'dry run', 1, clock_timestamp()) RETURNING r.run INTO run_;
		PERFORM snowflake_migrate_internal.plan(run_, sources, target);
		can_map := snowflake_migrate_internal.check_schemas(run_);
		IF cardinality(nodes) < cardinality(sources) THEN
			can_map := false;
			PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, NULL, NULL, 'too few node numbers were never used to give one to each source',
				cardinality(nodes), NULL, 'Choose a layout with more node numbers.');
		END IF;
		IF can_map THEN
			PERFORM snowflake_migrate_internal.make_maps(run_);
		ELSE
			PERFORM snowflake_migrate_internal.find(run_, 'info', NULL, NULL, NULL,
				'clashes of rows and references to missing rows were not looked for, as the errors stand in the way', NULL, NULL,
				'Put the errors right, and check again.');
		END IF;
		SELECT array_agg(f ORDER BY array_position('{error,warning,info}', f.severity), f.relation COLLATE "C" NULLS FIRST,
						 f.source COLLATE "C" NULLS FIRST, f.object COLLATE "C" NULLS FIRST, f.problem COLLATE "C") INTO found_
			FROM snowflake_migrate.report AS f WHERE f.run = run_;
		RAISE EXCEPTION USING ERRCODE = 'SNOWF', MESSAGE = 'the check is rolled back';
	EXCEPTION WHEN SQLSTATE 'SNOWF' THEN
		NULL;
	END;
	RETURN QUERY SELECT f.severity, f.source, f.relation, f.object, f.problem, f.count, f.example, f.advice
		FROM unnest(found_) WITH ORDINALITY AS f (run, severity, source, relation, object, problem, count, example, advice, n) ORDER BY f.n;
END
$$;
COMMENT ON FUNCTION snowflake_migrate.check(name[], name) IS 'what would stop a merge of these schemas into the target, or surprise';
/*
 * The merge itself: rows are copied in batches, parents before children; each batch commits its rows and its position together.
 *
 * Locking: a transaction of a merge holds an advisory lock on the target's name and the run's row, so that another session's is an
 * error; the position is read under them.  Between two batches nothing is locked, but no other run can begin on the target.
 *
 * The transaction's settings: nothing on the search path that somebody else could have put there, rows that row security hides are
 * an error, and triggers do not fire where the right is there to say so; references are then checked for the batch as a set.
 */

/* Begins a transaction of a run, which must be in one of these states. */
CREATE FUNCTION snowflake_migrate_internal.begin(run_ bigint, states text[]) RETURNS text
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
AS $$
#variable_conflict use_column
DECLARE
	run_row record;
BEGIN
	PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
	PERFORM set_config('row_security', 'off', true), set_config('jit', 'off', true);
	/* Keys and rows are kept and compared as texts as well, whoever goes on. */
	PERFORM set_config('datestyle', 'ISO, YMD', true), set_config('intervalstyle', 'postgres', true), set_config('extra_float_digits', '1', true),
		set_config('bytea_output', 'hex', true);
	SELECT r.* INTO run_row FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	IF NOT FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_object', MESSAGE = format('there is no merge with the number %s', run_),
			HINT = 'See snowflake_migrate.runs.';
	ELSIF NOT pg_try_advisory_xact_lock(hashtext('snowflake_migrate.merge'), hashtext(run_row.target)) THEN
		RAISE EXCEPTION USING ERRCODE = 'object_in_use', MESSAGE = format('another session merges into schema "%s"', run_row.target),
			HINT = 'See snowflake_migrate.progress.';
	END IF;
	SELECT r.* INTO run_row FROM snowflake_migrate.runs AS r WHERE r.run = run_ FOR UPDATE;
	IF run_row.state <> ALL (states) THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = format('the merge with the number %s is %s', run_, run_row.state);
	END IF;
	IF EXISTS (SELECT FROM snowflake_migrate_internal.plan_tables AS p WHERE p.run = run_ AND NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = p.relation)) THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_table', MESSAGE = format('tables of the merge with the number %s are gone', run_),
			HINT = 'It can be neither gone on with nor taken back.';
	END IF;
	IF has_parameter_privilege('session_replication_role', 'SET') THEN
		PERFORM set_config('session_replication_role', 'replica', true);
	END IF;
	RETURN run_row.state;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.begin(bigint, text[]) IS 'for snowflake_migrate.merge()''s own use: begins a transaction of a run';

/* The constraints and triggers of a table, and whether they are in force: a merge leaves them as they are. */
CREATE FUNCTION snowflake_migrate_internal.state(relation regclass) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT coalesce(string_agg(x.state, ', ' ORDER BY x.state), '')
	FROM (SELECT format('constraint %I%s', c.conname, CASE WHEN NOT c.convalidated THEN ' not valid' END) FROM pg_constraint AS c WHERE c.conrelid = relation AND c.contype <> 'n'
		  UNION ALL
		  SELECT format('trigger %I %s', CASE WHEN t.tgisinternal THEN regexp_replace(t.tgname, '\d+$', '') ELSE t.tgname END, t.tgenabled) FROM pg_trigger AS t WHERE t.tgrelid = relation) AS x (state)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.state(regclass) IS 'for snowflake_migrate.merge()''s own use: the constraints and triggers of a table';

/* Raises an error where these can't be the node numbers of new ids: one that has made ids could make one of them again. */
CREATE FUNCTION snowflake_migrate_internal.check_nodes(sources name[], nodes bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	max_node CONSTANT bigint := (SELECT l.max_node FROM snowflake_migrate_internal.layout() AS l);
	n bigint;
	used record;
BEGIN
	IF nodes IS NULL OR array_position(nodes, NULL) IS NOT NULL OR array_ndims(nodes) <> 1 OR cardinality(nodes) <> cardinality(sources) THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = 'a merge needs a node number for each of its sources',
			DETAIL = format('There are %s sources, and the node numbers are %s.', cardinality(sources), coalesce(nodes::text, 'null'));
	ELSIF (SELECT count(DISTINCT u.node) FROM unnest(nodes) AS u (node)) < cardinality(nodes) THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('node numbers are given twice: %s', nodes);
	END IF;
	FOREACH n IN ARRAY nodes LOOP
		IF n NOT BETWEEN 0 AND max_node THEN
			RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range', MESSAGE = format('node number %s is out of range', n),
				DETAIL = format('In the server''s layout, node numbers are from 0 to %s.', max_node);
		END IF;
		SELECT u.* INTO used FROM snowflake_migrate.nodes AS u WHERE u.node = n;
		IF FOUND THEN
			RAISE EXCEPTION USING ERRCODE = 'object_in_use', MESSAGE = format('node number %s was used by a merge already', n),
				DETAIL = format('Merge %s made ids with it for schema "%s".', used.run, used.source), HINT = 'Give one that was never used.';
		ELSIF n = snowflake_migrate_internal.own_node() THEN
			RAISE EXCEPTION USING ERRCODE = 'object_in_use', MESSAGE = format('node number %s is this server''s own', n), HINT = 'Give one that was never used.';
		END IF;
		PERFORM snowflake_internal.set_aside(n, '-infinity');
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_nodes(name[], bigint[]) IS 'for snowflake_migrate.merge()''s own use: whether nodes can be used';

/* No two rows become one; and who looks for a row of the target finds where it came from. */
CREATE FUNCTION snowflake_migrate_internal.index_map(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	EXECUTE format('CREATE UNIQUE INDEX ON %s (%s) WHERE action = ''c''', snowflake_migrate_internal.relation(run_, 'map_' || no_),
		(SELECT snowflake_migrate_internal.key_list('n#', t.key) FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.index_map(bigint, int) IS 'for snowflake_migrate.merge()''s own use: the index of a map by new keys';

/* Whether a column of integers is wide enough for snowflake ids. */
CREATE FUNCTION snowflake_migrate_internal.may_hold_ids(relation regclass, attname name) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT coalesce(nullif(y.typbasetype, 0), y.oid) NOT IN ('smallint'::regtype, 'integer'::regtype)
	FROM pg_attribute AS a JOIN pg_type AS y ON y.oid = a.atttypid WHERE a.attrelid = relation AND a.attname = may_hold_ids.attname
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.may_hold_ids(regclass, name) IS 'for snowflake_migrate.merge()''s own use: whether snowflake ids fit into a column';

/* Adds to the report which of the run's nodes occur in ids of the target, what is not merged included, or of a source. */
CREATE FUNCTION snowflake_migrate_internal.find_nodes(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	t record;
	found bigint;
	example text;
BEGIN
	FOR t IN
		SELECT p.relation, p.key[1] AS key, NULL::name AS source, p.relation AS target, r.nodes
		FROM snowflake_migrate_internal.plan_tables AS p JOIN snowflake_migrate.runs AS r USING (run) WHERE p.run = run_ AND p.kind = 'id'
		UNION ALL
		SELECT s.relation, p.key[1], r.sources[s.source], p.relation, r.nodes
		FROM snowflake_migrate_internal.plan_sources AS s JOIN snowflake_migrate_internal.plan_tables AS p USING (run, no)
			JOIN snowflake_migrate.runs AS r USING (run) WHERE p.run = run_ AND p.kind = 'id'
	LOOP
		CONTINUE WHEN NOT snowflake_migrate_internal.may_hold_ids(t.relation, t.key);
		EXECUTE format('SELECT count(*), min(t.%I)::text FROM %s AS t WHERE t.%I > %s AND snowflake_migrate_internal.node(t.%I::bigint) = ANY (%L::bigint[])',
			t.key, snowflake_migrate_internal.only(t.relation), t.key, snowflake_migrate_internal.last_serial(), t.key, t.nodes) INTO found, example;
		IF found > 0 THEN
			PERFORM snowflake_migrate_internal.find(run_, 'error', t.source, t.target::text, t.key,
				format('ids have a node number of %s already', t.nodes), found, example, 'Give node numbers that were never used.');
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_nodes(bigint) IS 'for snowflake_migrate.merge()''s own use: whether nodes occur in ids';

/* Reserves the run's nodes, where there is a registry, up to the end of the newest new id's tick, or the start of the merge. */
CREATE FUNCTION snowflake_migrate_internal.set_aside_nodes(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	tick CONSTANT interval := (SELECT l.tick FROM snowflake_migrate_internal.layout() AS l);
	t record;
	newest bigint;
BEGIN
	/* None is used up where another can't be had. */
	FOR t IN SELECT u.node FROM snowflake_migrate.runs AS r, unnest(r.nodes) AS u (node) WHERE r.run = run_ LOOP
		IF NOT snowflake_internal.set_aside(t.node, '-infinity') THEN
			RETURN;
		END IF;
	END LOOP;
	FOR t IN SELECT u.node, u.source, r.started_at FROM snowflake_migrate.runs AS r, unnest(r.nodes) WITH ORDINALITY AS u (node, source) WHERE r.run = run_ LOOP
		EXECUTE format('SELECT max(m.n1) FROM %s AS m WHERE m.source = %s AND m.n1 > %s AND snowflake_migrate_internal.node(m.n1) = %s',
					   snowflake_migrate_internal.relation(run_, 'map'), t.source, snowflake_migrate_internal.last_serial(), t.node) INTO newest;
		PERFORM snowflake_internal.set_aside(t.node, greatest(t.started_at, snowflake_migrate_internal.timestamp(newest) + tick));
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.set_aside_nodes(bigint) IS 'for snowflake_migrate.merge()''s own use: reserves nodes in the registry';

/* The number of the run that goes on, or of a new one, whose plan and maps are made. */
CREATE FUNCTION snowflake_migrate_internal.start(sources_ name[], target_ name, nodes_ bigint[], batch_size_ int, dry_run boolean, given bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
AS $$
#variable_conflict use_column
DECLARE
	run_ bigint;
	known record;
	t record;
	n bigint;
BEGIN
	PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
	PERFORM snowflake_migrate_internal.check_arguments(sources_, target_);
	IF batch_size_ IS NULL OR batch_size_ < 1 THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = format('the size of a batch must be at least 1, not %s', coalesce(batch_size_::text, 'null'));
	END IF;
	SELECT r.* INTO known FROM snowflake_migrate.runs AS r
		WHERE r.target = target_ AND r.state <> 'dry run'
			AND CASE WHEN given IS NOT NULL THEN r.run = given
				ELSE r.state IN ('copying', 'verifying', 'rolling back') OR (r.sources, r.nodes, r.state) = (sources_, nodes_, 'done') END
		ORDER BY r.state = 'done' LIMIT 1;
	IF NOT FOUND AND given IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_object', MESSAGE = format('there is no merge into schema "%s" with the number %s', target_, given), HINT = 'See snowflake_migrate.runs.';
	ELSIF known.run IS NOT NULL THEN
		IF dry_run OR (known.sources, known.nodes) IS DISTINCT FROM (sources_, nodes_) THEN
			RAISE EXCEPTION USING ERRCODE = 'object_in_use', MESSAGE = format('merge %s into schema "%s" is %s', known.run, target_, known.state),
				DETAIL = format('It is called with the sources %s and the nodes %s.', known.sources, known.nodes),
				HINT = CASE WHEN known.state IN ('copying', 'verifying', 'rolling back') THEN 'Let it end, or take it back with snowflake_migrate.rollback().' END;
		END IF;
		PERFORM snowflake_migrate_internal.begin(known.run, ARRAY['copying', 'verifying', 'done']);
		UPDATE snowflake_migrate.runs AS r SET batch_size = batch_size_ WHERE r.run = known.run AND r.state <> 'done';
		RETURN known.run;
	END IF;

	IF NOT pg_try_advisory_xact_lock(hashtext('snowflake_migrate.merge'), hashtext(target_)) THEN
		RAISE EXCEPTION USING ERRCODE = 'object_in_use', MESSAGE = format('another session merges into schema "%s"', target_);
	END IF;
	SELECT r.* INTO known FROM snowflake_migrate.runs AS r WHERE r.target = target_ AND r.state = 'done' AND r.sources && sources_ LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'object_in_use', MESSAGE = format('a source was merged into schema "%s" already', target_),
			DETAIL = format('Merge %s had the sources %s and the nodes %s.', known.run, known.sources, known.nodes),
			HINT = 'Take it back with snowflake_migrate.rollback(), or, if these are other rows, give the schema another name.';
	END IF;
	PERFORM snowflake_migrate_internal.check_nodes(sources_, nodes_);
	INSERT INTO snowflake_migrate.runs (sources, target, nodes, state, batch_size, started_at)
		VALUES (sources_, target_, nodes_, 'copying', batch_size_, clock_timestamp()) RETURNING run INTO run_;
	INSERT INTO snowflake_migrate.nodes (node, run, source) SELECT u.node, run_, u.source FROM unnest(nodes_, sources_) AS u (node, source);
	PERFORM snowflake_migrate_internal.begin(run_, ARRAY['copying']);
	PERFORM snowflake_migrate_internal.plan(run_, sources_, target_);
	PERFORM snowflake_migrate_internal.check_schemas(run_);
	PERFORM snowflake_migrate_internal.refuse(run_);
	PERFORM snowflake_migrate_internal.find_nodes(run_);
	PERFORM snowflake_migrate_internal.make_maps(run_);
	PERFORM snowflake_migrate_internal.refuse(run_);
	PERFORM snowflake_migrate_internal.index_map(run_, p.no) FROM snowflake_migrate_internal.plan_tables AS p WHERE p.run = run_ AND p.kind <> 'none';

	FOR t IN SELECT p.no, p.relation FROM snowflake_migrate_internal.plan_tables AS p
		WHERE p.run = run_ AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no)
	LOOP
		EXECUTE format('SELECT count(*) FROM %s', snowflake_migrate_internal.only(t.relation)) INTO n;
		UPDATE snowflake_migrate_internal.plan_tables AS p SET former_rows = n, former_state = snowflake_migrate_internal.state(t.relation)
			WHERE p.run = run_ AND p.no = t.no;
	END LOOP;
	UPDATE snowflake_migrate.runs AS r SET mapped_at = clock_timestamp() WHERE r.run = run_;
	/* The last, since no rollback takes it back. */
	IF NOT dry_run THEN
		PERFORM snowflake_migrate_internal.set_aside_nodes(run_);
	END IF;
	RETURN run_;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.start(name[], name, bigint[], int, boolean, bigint) IS 'for snowflake_migrate.merge()''s own use: the run to go on with';

/* Raises an error where the report of a run has errors. */
CREATE FUNCTION snowflake_migrate_internal.refuse(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	problems text;
BEGIN
	SELECT string_agg(concat_ws(': ', concat_ws(', ', 'source ' || f.source, 'table ' || f.relation, f.object),
								concat_ws(' ', f.problem, '(' || f.count || ')', 'for example ' || f.example)), E'\n' ORDER BY f.relation, f.source, f.object)
		INTO problems
		FROM (SELECT f.* FROM snowflake_migrate.report AS f WHERE f.run = run_ AND f.severity = 'error' ORDER BY f.relation, f.source, f.object LIMIT 20) AS f;
	IF problems IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = 'cannot merge the schemas as they are', DETAIL = problems,
			HINT = 'snowflake_migrate.check() tells what to do about each.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse(bigint) IS 'for snowflake_migrate.merge()''s own use: an error where the report has errors';

/*
 * A query that locks the rows that these rows refer to and counts those that are not there, for each foreign key one column; rows is
 * the name of a query with the table's columns and tableoid.  Null where there is nothing to check.
 */
CREATE FUNCTION snowflake_migrate_internal.reference_check(relation regclass, rows text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH fk AS (
		SELECT row_number() OVER (ORDER BY f.oid) AS n, f.*,
			(SELECT string_agg(format('x.%I', a.attname), ', ' ORDER BY k.n) FROM unnest(f.conkey) WITH ORDINALITY AS k (attnum, n)
			 JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = k.attnum) AS columns,
			(SELECT string_agg(format('x.%I IS NOT NULL', a.attname), ' AND ' ORDER BY k.n) FROM unnest(f.conkey) WITH ORDINALITY AS k (attnum, n)
			 JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = k.attnum) AS given,
			(SELECT string_agg(format('p.%I OPERATOR(%I.%s) d.%I', b.attname, s.nspname, o.oprname, a.attname), ' AND ' ORDER BY k.n)
			 FROM unnest(f.conkey, f.confkey, f.conpfeqop) WITH ORDINALITY AS k (attnum, parent_attnum, operator, n)
				JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = k.attnum
				JOIN pg_attribute AS b ON b.attrelid = f.confrelid AND b.attnum = k.parent_attnum
				JOIN pg_operator AS o ON o.oid = k.operator JOIN pg_namespace AS s ON s.oid = o.oprnamespace) AS same
		FROM pg_constraint AS f
		WHERE f.contype = 'f'
			AND ((f.conrelid = relation AND f.conparentid = 0)
				 /* Of a partition alone. */
				 OR (f.conparentid = 0 AND f.conrelid <> relation AND pg_partition_root(f.conrelid) = relation))
			/* Not one that stands for a partition of what is referred to. */
			AND NOT EXISTS (SELECT FROM pg_constraint AS w WHERE w.oid = f.conparentid)
	)
	SELECT string_agg(format(
			', d%s AS (SELECT DISTINCT %s FROM %s AS x WHERE %s%s), l%s AS (SELECT 0 FROM %s AS p JOIN d%s AS d ON %s%s)',
			f.n, f.columns, rows, f.given,
			snowflake_migrate_internal.in_part(f.conrelid, 'x'),
			f.n, snowflake_migrate_internal.only(coalesce(pg_partition_root(f.confrelid), f.confrelid)), f.n, f.same || snowflake_migrate_internal.in_part(f.confrelid, 'p'),
			CASE WHEN has_table_privilege(coalesce(pg_partition_root(f.confrelid), f.confrelid), 'UPDATE') THEN ' FOR KEY SHARE OF p' ELSE '' END), '' ORDER BY f.n)
		|| ' SELECT (SELECT count(*) FROM ' || rows || '), ARRAY[' ||
		string_agg(format('(SELECT count(*) FROM d%s) - (SELECT count(*) FROM l%s)', f.n, f.n), ', ' ORDER BY f.n) || '], ARRAY['
		|| string_agg(quote_literal(f.conname), ', ' ORDER BY f.n) || ']'
	FROM fk AS f
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.reference_check(regclass, text) IS 'for snowflake_migrate.merge()''s own use: a query that checks foreign keys';

/* What that query needs of rows that are written, as a RETURNING clause. */
CREATE FUNCTION snowflake_migrate_internal.returning(relation regclass) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT ' RETURNING ' || coalesce(string_agg(DISTINCT format('t.%I', a.attname), ', ') || ', ', '') || 't.tableoid'
	FROM pg_constraint AS f JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = ANY (f.conkey)
	WHERE f.contype = 'f' AND coalesce(pg_partition_root(f.conrelid), f.conrelid) = relation
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.returning(regclass) IS 'for snowflake_migrate.merge()''s own use: the columns that foreign keys need';

/* Raises an error where rows that these refer to are not there. */
CREATE FUNCTION snowflake_migrate_internal.refuse_missing(relation regclass, missing bigint[], names text[]) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	n int;
BEGIN
	SELECT i INTO n FROM generate_subscripts(missing, 1) AS i WHERE missing[i] > 0 ORDER BY i LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'foreign_key_violation',
			MESSAGE = format('rows of table %s violate the foreign key constraint "%s"', relation, names[n]),
			DETAIL = format('%s rows that they refer to are not in the target.', missing[n]),
			HINT = 'Look whether the source or the target changed since the merge began.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_missing(regclass, bigint[], text[]) IS 'for snowflake_migrate.merge()''s own use: an error where rows are missing';

/* Gives the target's rows their new ranks, or (back) the former ones: over null, or values that no row has, as they are unique. */
CREATE FUNCTION snowflake_migrate_internal.apply_ranks(run_ bigint, no_ int, back boolean) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	changed name;
	rank CONSTANT text := snowflake_migrate_internal.relation(run_, 'rank_' || no_);
	nullable boolean;
	offset_ bigint;
	same text;
BEGIN
	IF to_regclass(rank) IS NULL THEN
		RETURN;
	END IF;
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	SELECT c.name INTO STRICT changed FROM snowflake_migrate_internal.plan_columns AS c WHERE c.run = run_ AND c.no = no_ AND c.changed_by = 'rerank';
	same := snowflake_migrate_internal.key_list('t.@ = r.n#', plan.key, ' AND ');
	SELECT NOT a.attnotnull AND NOT back
			AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = plan.relation AND i.indnullsnotdistinct AND a.attnum = ANY (i.indkey))
			AND NOT EXISTS (SELECT FROM pg_constraint AS c WHERE c.conrelid = plan.relation AND c.contype = 'c' AND a.attnum = ANY (c.conkey))
		INTO nullable FROM pg_attribute AS a WHERE a.attrelid = plan.relation AND a.attname = changed;
	EXECUTE format('SELECT greatest((SELECT max(%I) FROM %s), (SELECT max(greatest(r.old, r.new)) FROM %s AS r))', changed,
				   snowflake_migrate_internal.only(plan.relation), rank) INTO offset_;
	EXECUTE format('UPDATE %s AS t SET %I = %s FROM %s AS r WHERE %s AND t.%I = r.%I', snowflake_migrate_internal.only(plan.relation),
				   changed, CASE WHEN nullable THEN 'NULL' ELSE format('t.%I + %s', changed, offset_) END, rank, same, changed, CASE WHEN back THEN 'new' ELSE 'old' END);
	EXECUTE format('UPDATE %s AS t SET %I = r.%I FROM %s AS r WHERE %s AND %s', snowflake_migrate_internal.only(plan.relation),
				   changed, CASE WHEN back THEN 'old' ELSE 'new' END, rank, same,
				   CASE WHEN nullable THEN format('t.%I IS NULL', changed) ELSE format('t.%I = r.%I + %s', changed, CASE WHEN back THEN 'new' ELSE 'old' END, offset_) END);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.apply_ranks(bigint, int, boolean) IS 'for snowflake_migrate.merge()''s own use: gives the target''s rows their new ranks';

/*
 * The next batch of one table of one source, from where the last one ended, as a condition on the map's columns m and on the source's
 * columns s, the end of it, and whether it is the last; entries says which of the map's entries count.
 */
CREATE FUNCTION snowflake_migrate_internal.range(
	run_ bigint,
	no_ int,
	source_ int,
	batch_size int,
	entries text,
	OUT of_map text,
	OUT of_source text,
	OUT range_end text)
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	progress record;
	range_key record;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	SELECT s.* INTO STRICT progress FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_ AND s.source = source_;
	SELECT k.* INTO range_key FROM snowflake_migrate_internal.key_values(plan.relation, plan.relation, plan.key) AS k WHERE k.can_range ORDER BY k.n LIMIT 1;
	of_map := format('m.source = %s AND %s', source_, entries);
	of_source := '';
	IF plan.kind = 'none' THEN
		of_map := NULL;
		RETURN;
	ELSIF plan.cyclic OR range_key IS NULL THEN
		RETURN;
	END IF;
	IF progress.position IS NOT NULL THEN
		of_map := of_map || format(' AND m.o%s > %L::%s', range_key.n, progress.position, range_key.type);
		of_source := format(' AND s.%I > %L::%s', plan.key[range_key.n], progress.position, range_key.type);
	END IF;
	EXECUTE format('SELECT m.o%s::text FROM %s AS m WHERE %s ORDER BY m.o%s OFFSET %s LIMIT 1', range_key.n, snowflake_migrate_internal.relation(run_, 'map_' || no_),
				   of_map, range_key.n, batch_size - 1) INTO range_end;
	IF range_end IS NOT NULL THEN
		of_map := of_map || format(' AND m.o%s <= %L::%s', range_key.n, range_end, range_key.type);
		of_source := of_source || format(' AND s.%I <= %L::%s', plan.key[range_key.n], range_end, range_key.type);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.range(bigint, int, int, int, text) IS 'for snowflake_migrate.merge()''s own use: the next batch of a table';

/* Copies one batch of one table of one source. */
CREATE FUNCTION snowflake_migrate_internal.copy(run_ bigint, no_ int, source_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	run_row record;
	plan record;
	part record;
	parts record;
	insert_text text;
	update_text text := '';
	replaced boolean;
	returned text;
	check_text text;
	copied bigint;
	missing bigint[];
	names text[];
	started CONSTANT timestamptz := clock_timestamp();
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map_' || no_);
BEGIN
	SELECT r.* INTO STRICT run_row FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	IF NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_ AND s.copied_by <> '{}') THEN
		PERFORM snowflake_migrate_internal.apply_ranks(run_, no_, false);
	END IF;
	part := snowflake_migrate_internal.range(run_, no_, source_, run_row.batch_size, 'm.action IN (''c'', ''r'')');
	parts := snowflake_migrate_internal.rows_parts(run_, no_, source_, plan.kind <> 'none', false);
	returned := snowflake_migrate_internal.returning(plan.relation);

	insert_text := format('INSERT INTO %s AS t (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM %s%s', plan.relation,
		(SELECT string_agg(quote_ident(n), ', ' ORDER BY i) FROM unnest(parts.names) WITH ORDINALITY AS u (n, i)),
		array_to_string(parts.expressions, ', '), parts.origin, ' WHERE ' || part.of_map || part.of_source || ' AND m.action = ''c''' || CASE plan.kind WHEN 'id' THEN ' ORDER BY m.n1' ELSE '' END);
	IF to_regclass(snowflake_migrate_internal.relation(run_, 'former_' || no_)) IS NOT NULL THEN
		EXECUTE format('SELECT EXISTS (SELECT FROM %s AS m WHERE %s AND m.action = ''r'')', map, part.of_map) INTO replaced;
		IF replaced THEN
			/* Once for people, and once as it was. */
			EXECUTE format('INSERT INTO %s SELECT t.* FROM %s AS t JOIN %s AS m ON %s WHERE %s AND m.action = ''r''',
				snowflake_migrate_internal.relation(run_, 'former_' || no_), snowflake_migrate_internal.only(plan.relation), map,
				snowflake_migrate_internal.key_list('t.@ = m.n#', plan.key, ' AND '), part.of_map);
			EXECUTE format('UPDATE snowflake_migrate.records AS c SET former_row = to_jsonb(t) FROM %s AS m JOIN %s AS t ON %s '
				'WHERE %s AND m.action = ''r'' AND c.run = %s AND c.relation = %L AND c.source = %L AND c.policy = ''keep_source'' AND c.old_key = %s',
				map, snowflake_migrate_internal.only(plan.relation), snowflake_migrate_internal.key_list('t.@ = m.n#', plan.key, ' AND '),
				part.of_map, run_, plan.relation, run_row.sources[source_], snowflake_migrate_internal.key_text('m.o#', plan.key));
			SELECT format(', u AS (UPDATE %s AS t SET (%s) = ROW (%s) FROM (SELECT %s, %s FROM %s WHERE %s%s AND m.action = ''r'') AS q WHERE %s%s), '
					'b AS (SELECT * FROM i UNION ALL SELECT * FROM u)',
					snowflake_migrate_internal.only(plan.relation), string_agg(quote_ident(e.name), ', ' ORDER BY e.n), string_agg(format('q.%I', e.name), ', ' ORDER BY e.n),
					snowflake_migrate_internal.key_list('m.n# AS "merge n#"', plan.key), string_agg(format('%s AS %I', e.expression, e.name), ', ' ORDER BY e.n),
					parts.origin, part.of_map, part.of_source, snowflake_migrate_internal.key_list('t.@ = q."merge n#"', plan.key, ' AND '), returned)
				INTO update_text
				FROM unnest(parts.names, parts.expressions) WITH ORDINALITY AS e (name, expression, n)
					JOIN pg_attribute AS a ON a.attrelid = plan.relation AND a.attname = e.name
				WHERE e.name <> ALL (plan.key::text[]) AND a.attidentity <> 'a';
			update_text := coalesce(update_text, '');
		END IF;
	END IF;

	/* Where triggers are on, they check the foreign keys; where tables refer to each other, it is done when all of them are copied. */
	check_text := CASE WHEN current_setting('session_replication_role') = 'replica' AND NOT plan.cyclic
		THEN snowflake_migrate_internal.reference_check(plan.relation, CASE WHEN update_text = '' THEN 'i' ELSE 'b' END) END;
	IF check_text IS NULL AND update_text = '' THEN
		EXECUTE insert_text;
		GET DIAGNOSTICS copied = ROW_COUNT;
	ELSE
		EXECUTE format('WITH i AS (%s%s)%s%s', insert_text, returned, update_text,
			coalesce(check_text, format(' SELECT (SELECT count(*) FROM %s), NULL::bigint[], NULL::text[]', CASE WHEN update_text = '' THEN 'i' ELSE 'b' END)))
			INTO copied, missing, names;
		PERFORM snowflake_migrate_internal.refuse_missing(plan.relation, missing, names);
	END IF;

	UPDATE snowflake_migrate_internal.plan_sources AS s
		SET rows_done = s.rows_done + copied, position = part.range_end, done = part.range_end IS NULL,
			busy = s.busy + (clock_timestamp() - started), copied_by = s.copied_by || pg_current_xact_id()
		WHERE s.run = run_ AND s.no = no_ AND s.source = source_;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.copy(bigint, int, int) IS 'for snowflake_migrate.merge()''s own use: copies a batch';

/* What one transaction of the copying does: a batch, or all tables of a cycle.  Returns false when there is nothing left. */
CREATE FUNCTION snowflake_migrate_internal.step(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	next record;
	member record;
	check_text text;
	copied bigint;
	missing bigint[];
	names text[];
BEGIN
	SELECT s.no, s.source, t.copy_step, t.cyclic INTO next
		FROM snowflake_migrate_internal.plan_sources AS s JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
		WHERE s.run = run_ AND NOT s.done ORDER BY t.copy_step, s.source, s.no LIMIT 1;
	IF NOT FOUND THEN
		RETURN false;
	ELSIF NOT next.cyclic THEN
		PERFORM snowflake_migrate_internal.copy(run_, next.no, next.source);
		RETURN true;
	END IF;
	FOR member IN SELECT s.no FROM snowflake_migrate_internal.plan_sources AS s JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
		WHERE s.run = run_ AND t.copy_step = next.copy_step AND s.source = next.source ORDER BY s.no
	LOOP
		PERFORM snowflake_migrate_internal.copy(run_, member.no, next.source);
	END LOOP;
	FOR member IN SELECT s.no, t.relation, t.key FROM snowflake_migrate_internal.plan_sources AS s JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
		WHERE s.run = run_ AND t.copy_step = next.copy_step AND s.source = next.source AND t.kind <> 'none' ORDER BY s.no
	LOOP
		check_text := snowflake_migrate_internal.reference_check(member.relation, 'i');
		CONTINUE WHEN check_text IS NULL;
		EXECUTE format('WITH i AS (SELECT t.*, t.tableoid FROM %s AS t JOIN %s AS m ON m.source = %s AND m.action IN (''c'', ''r'') AND %s)%s',
			snowflake_migrate_internal.only(member.relation), snowflake_migrate_internal.relation(run_, 'map_' || member.no), next.source,
			snowflake_migrate_internal.key_list('t.@ = m.n#', member.key, ' AND '), check_text) INTO copied, missing, names;
		PERFORM snowflake_migrate_internal.refuse_missing(member.relation, missing, names);
	END LOOP;
	RETURN true;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.step(bigint) IS 'for snowflake_migrate.merge()''s own use: one transaction of the copying';

/*
 * Sets the sequences of columns that are not renumbered past the merged values; those of renumbered ones stay as they are.  A dry
 * run only reports it, as it could not be rolled back.
 */
CREATE FUNCTION snowflake_migrate_internal.set_sequences(run_ bigint, dry_run boolean) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	seq record;
	last bigint;
	reached bigint;
BEGIN
	FOR seq IN
		SELECT DISTINCT t.relation, a.attname, q.seqrelid::regclass AS sequence, q.seqincrement > 0 AS ascending
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attnum > 0 AND NOT a.attisdropped
			LEFT JOIN pg_attrdef AS d ON d.adrelid = t.relation AND d.adnum = a.attnum
			JOIN pg_depend AS u ON (u.classid = 'pg_class'::regclass AND u.refclassid = 'pg_class'::regclass AND u.refobjid = t.relation AND u.refobjsubid = a.attnum
									AND u.deptype IN ('a', 'i'))
				OR (u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid AND u.refclassid = 'pg_class'::regclass)
			JOIN pg_sequence AS q ON q.seqrelid IN (u.objid, u.refobjid)
		WHERE t.run = run_ AND t.mode <> 'ignore' AND NOT (t.kind = 'id' AND a.attname = t.key[1])
			AND a.atttypid IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype)
			AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = t.no)
		ORDER BY 1, 2
	LOOP
		EXECUTE format('SELECT %s(%I) FROM %s', CASE WHEN seq.ascending THEN 'max' ELSE 'min' END, seq.attname, snowflake_migrate_internal.only(seq.relation)) INTO reached;
		CONTINUE WHEN reached IS NULL;
		IF NOT snowflake_migrate_internal.can_set(seq.sequence) THEN
			PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, seq.relation::text, seq.attname,
				format('permission denied to set sequence %s past the merged values', seq.sequence), NULL, reached::text,
				format('Before the table is written to: SELECT setval(%L, %s);', seq.sequence, reached));
			CONTINUE;
		END IF;
		last := pg_sequence_last_value(seq.sequence);
		IF (last IS NULL OR CASE WHEN seq.ascending THEN reached > last ELSE reached < last END) THEN
			IF NOT dry_run THEN
				PERFORM setval(seq.sequence, reached);
			END IF;
			PERFORM snowflake_migrate_internal.find(run_, 'info', NULL, seq.relation::text, seq.attname, format('sequence %s is set past the merged values', seq.sequence),
													 NULL, reached::text, NULL);
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.set_sequences(bigint, boolean) IS 'for snowflake_migrate.merge()''s own use: sets sequences past the merged values';

/* After the last batch: sequences, and the report of what was copied. */
CREATE FUNCTION snowflake_migrate_internal.end_of_copy(run_ bigint, dry_run boolean) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	grown regclass;
BEGIN
	PERFORM snowflake_migrate_internal.set_sequences(run_, dry_run);
	PERFORM snowflake_migrate_internal.find(run_, 'info', r.sources[s.source], t.relation::text, NULL, 'rows are copied', s.rows_done, NULL, NULL)
		FROM snowflake_migrate_internal.plan_sources AS s JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
			JOIN snowflake_migrate.runs AS r USING (run)
		WHERE s.run = run_ ORDER BY s.source, s.no;
	/* They have grown so much that the planner should know. */
	IF NOT dry_run THEN
		FOR grown IN SELECT t.relation FROM snowflake_migrate_internal.plan_tables AS t JOIN pg_class AS c ON c.oid = t.relation
			WHERE t.run = run_ AND pg_has_role(c.relowner, 'USAGE')
				AND (SELECT sum(s.rows_done) FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = t.no) > t.former_rows / 10 + 1000
		LOOP
			EXECUTE format('ANALYZE %s', grown);
		END LOOP;
	END IF;
	UPDATE snowflake_migrate.runs AS r SET state = 'verifying', copied_at = clock_timestamp() WHERE r.run = run_;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.end_of_copy(bigint, boolean) IS 'for snowflake_migrate.merge()''s own use: what follows the last batch';

/* Verifies a run, adds to its report what it finds, and returns whether that is nothing: then the run is done. */
CREATE FUNCTION snowflake_migrate_internal.end(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	proved boolean;
BEGIN
	DELETE FROM snowflake_migrate.report AS f WHERE f.run = run_ AND f.severity = 'error';
	INSERT INTO snowflake_migrate.report (run, severity, source, relation, problem, count, example)
		SELECT run_, 'error', v.source, v.relation, v.problem, v.count, v.example FROM snowflake_migrate.verify(run_) AS v;
	proved := NOT FOUND;
	UPDATE snowflake_migrate.runs AS r SET state = 'done', finished_at = clock_timestamp() WHERE r.run = run_ AND proved;
	RETURN proved;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.end(bigint) IS 'for snowflake_migrate.merge()''s own use: verifies a run';

/* Puts on record what a dry run found, after it was rolled back. */
CREATE FUNCTION snowflake_migrate_internal.record_dry_run(sources_ name[], target_ name, nodes_ bigint[], batch_size_ int, started timestamptz, report jsonb) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	run_ bigint;
BEGIN
	INSERT INTO snowflake_migrate.runs (sources, target, nodes, state, batch_size, started_at, finished_at)
		VALUES (sources_, target_, nodes_, 'dry run', batch_size_, started, clock_timestamp()) RETURNING run INTO run_;
	INSERT INTO snowflake_migrate.report
		SELECT run_, f.severity, f.source, f.relation, f.object, f.problem, f.count, f.example, f.advice
		FROM jsonb_to_recordset(report) AS f (severity text, source name, relation text, object text, problem text, count bigint, example text, advice text);
	RETURN run_;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.record_dry_run(name[], name, bigint[], int, timestamptz, jsonb) IS 'for snowflake_migrate.merge()''s own use: keeps the report of a dry run';

/*
 * Merges schemas into one.  Nothing is copied before everything that can be known to stop it is known.  To be called outside of a
 * transaction block; the same call goes on with a run that was interrupted.
 *
 * sources: schemas of this database; nodes: for each, a node number that no id has; batch_size: rows in a transaction, but that a
 * cycle of tables and tables without a key are one; dry_run: all of it, rolled back but for the report; run: the number of the run.
 */
CREATE PROCEDURE snowflake_migrate.merge(
	sources name[],
	target name,
	nodes bigint[],
	batch_size int DEFAULT 10000,
	dry_run boolean DEFAULT false,
	INOUT run bigint DEFAULT NULL)
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
	started timestamptz := pg_catalog.clock_timestamp();
	state text;
	proved boolean;
	report jsonb;
BEGIN
	run := snowflake_migrate_internal.start(sources, target, nodes, batch_size, dry_run IS TRUE, run);
	IF dry_run IS NOT TRUE THEN
		COMMIT;
	END IF;
	LOOP
		state := snowflake_migrate_internal.begin(run, ARRAY['copying', 'verifying', 'done']);
		IF state = 'done' THEN
			RAISE NOTICE 'merge % is done already', run;
			RETURN;
		END IF;
		EXIT WHEN state = 'verifying';
		IF NOT snowflake_migrate_internal.step(run) THEN
			PERFORM snowflake_migrate_internal.end_of_copy(run, dry_run IS TRUE);
		END IF;
		IF dry_run IS NOT TRUE THEN
			COMMIT;
		END IF;
	END LOOP;
	proved := snowflake_migrate_internal.end(run);
	IF dry_run IS TRUE THEN
		SELECT jsonb_agg(to_jsonb(f)) INTO report FROM snowflake_migrate.report AS f WHERE f.run = merge.run;
		ROLLBACK;
		run := snowflake_migrate_internal.record_dry_run(sources, target, nodes, batch_size, started, report);
	END IF;
	COMMIT;
	IF NOT proved THEN
		RAISE EXCEPTION USING ERRCODE = 'data_exception', MESSAGE = pg_catalog.format('merge %s does not pass its verification', run),
			HINT = 'See snowflake_migrate.report; put it right and call snowflake_migrate.merge() again, or take it back with snowflake_migrate.rollback().';
	END IF;
END
$$;
COMMENT ON PROCEDURE snowflake_migrate.merge(name[], name, bigint[], int, boolean, bigint) IS 'merges schemas into one';

/* One map, for people. */
CREATE FUNCTION snowflake_migrate_internal.read_map(
	run_ bigint,
	no_ int,
	OUT source int,
	OUT action text,
	OUT old_key text,
	OUT new_key text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET bytea_output = 'hex'
AS $$
#variable_conflict use_column
DECLARE
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map_' || no_);
	key name[];
BEGIN
	IF to_regclass(map) IS NOT NULL THEN
		SELECT t.key INTO key FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
		RETURN QUERY EXECUTE format('SELECT m.source, CASE m.action WHEN ''c'' THEN ''copied'' WHEN ''m'' THEN ''matched'' WHEN ''k'' THEN ''kept_target'' '
			'WHEN ''r'' THEN ''kept_source'' WHEN ''s'' THEN ''skipped'' END, %s, CASE WHEN m.action <> ''s'' THEN %s END FROM %s AS m',
			snowflake_migrate_internal.key_text('m.o#', key), snowflake_migrate_internal.key_text('m.n#', key), map);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.read_map(bigint, int) IS 'for the view snowflake_migrate.map: one map';

/* As the report and the records have it, whatever the caller's search path. */
CREATE FUNCTION snowflake_migrate_internal.table_name(relation regclass) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT relation::text $$;
COMMENT ON FUNCTION snowflake_migrate_internal.table_name(regclass) IS 'for views: the name of a table with its schema';

CREATE VIEW snowflake_migrate.map AS
SELECT t.run, r.sources[m.source] AS source, snowflake_migrate_internal.table_name(t.relation) AS relation, m.action, m.old_key, m.new_key
  FROM snowflake_migrate_internal.plan_tables AS t JOIN snowflake_migrate.runs AS r USING (run), LATERAL snowflake_migrate_internal.read_map(t.run, t.no) AS m
 WHERE t.kind OPERATOR(pg_catalog.<>) 'none';
COMMENT ON VIEW snowflake_migrate.map IS 'which row of which source became which of the target';

CREATE VIEW snowflake_migrate.progress AS
SELECT s.run, r.state, r.sources[s.source] AS source, snowflake_migrate_internal.table_name(t.relation) AS relation, s.rows_done, s.rows_to_do,
	pg_catalog.round((s.rows_done / nullif(extract(epoch FROM s.busy), 0))) AS rate,
	CASE WHEN s.done OR s.rows_done = 0 THEN CASE WHEN s.done THEN '0'::interval END
		 ELSE s.busy * ((s.rows_to_do - s.rows_done) / s.rows_done::float8) END AS time_left
  FROM snowflake_migrate_internal.plan_sources AS s JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no) JOIN snowflake_migrate.runs AS r USING (run);
COMMENT ON VIEW snowflake_migrate.progress IS 'how far merges are, by table; rate in rows a second';
/*
 * The proof of a merge.  Each row of a source is compared with the row of the target that the map names, column by column, bit by
 * bit: what is no reference must be equal, what is one must be what the map says of the source's value.  As the map leads from
 * each row of the source to one of the target, and a new key is used once, no row is missing and none is somebody else's.
 */

/* The rows of one table of one source. */
CREATE FUNCTION snowflake_migrate_internal.verify_source(
	run_ bigint,
	no_ int,
	source_ int,
	OUT problem text,
	OUT count bigint,
	OUT example text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	source_relation regclass;
	parts record;
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map_' || no_);
	given text;
	expected text;
	differs text;
	unmapped text;
	in_source bigint;
	in_map bigint;
	joined bigint;
	missing bigint;
	differing bigint;
	gone bigint;
	unmapped_rows bigint;
	others bigint;
	other text;
	bounds text := '';
	key_text text;
	is_own CONSTANT text := 'm.action IN (''c'', ''r'')';		-- has values of the source
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	SELECT s.relation INTO STRICT source_relation FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_ AND s.source = source_;
	parts := snowflake_migrate_internal.rows_parts(run_, no_, source_, plan.kind <> 'none', false);
	SELECT string_agg(format('t.%I', e.name), ', ' ORDER BY e.n), string_agg(e.expression, ', ' ORDER BY e.n) INTO given, expected
		FROM unnest(parts.names, parts.expressions) WITH ORDINALITY AS e (name, expression, n);

	differs := snowflake_migrate_internal.differs(plan.relation, parts.names, parts.expressions);

	IF plan.kind = 'none' THEN
		/* As often as there, at least: by their text, since not every type can be grouped. */
		EXECUTE format('SELECT sum(s.n - coalesce(t.n, 0)), min(s.r) FROM (SELECT ROW (%s)::text AS r, count(*) AS n FROM %s GROUP BY 1) AS s '
			'LEFT JOIN (SELECT ROW (%s)::text AS r, count(*) AS n FROM %s AS t GROUP BY 1) AS t USING (r) WHERE coalesce(t.n, 0) < s.n',
			expected, parts.origin, given, snowflake_migrate_internal.only(plan.relation)) INTO missing, example;
		IF missing > 0 THEN
			problem := 'rows are missing in the target';
			count := missing;
			RETURN NEXT;
		END IF;
		RETURN;
	END IF;

	key_text := snowflake_migrate_internal.key_text('m.o#', plan.key);
	SELECT string_agg(format('(s.%I IS NOT NULL AND r%s.o1 IS NULL%s)', r.name, r.id, CASE WHEN r.condition IS NULL THEN '' ELSE format(' AND s.%I', 'snowflake condition ' || r.id) END), ' OR ') INTO unmapped
		FROM snowflake_migrate_internal.plan_references AS r
		WHERE r.run = run_ AND r.no = no_ AND r.dangling = 'error' AND r.path IS NULL AND NOT r.elements AND r.name <> ALL (plan.key) AND r.name::text = ANY (parts.names);

	/* A row that stands for the source's has its natural key, or its key. */
	SELECT coalesce(string_agg(format('(t.%I %s %s) IS NOT TRUE AND NOT (t.%I IS NULL AND %s IS NULL)', k.name, u.operators[k.n],
									  parts.expressions[array_position(parts.names, k.name::text)], k.name,
									  parts.expressions[array_position(parts.names, k.name::text)]), ' OR '), 'false') INTO other
		FROM snowflake_migrate_internal.unique(run_, no_) AS u, unnest(plan.natural_key) WITH ORDINALITY AS k (name, n)
		WHERE u.policy = 'match';
	/* New ids lie close together: the rest of the target need not be looked at. */
	IF plan.kind = 'id' THEN
		EXECUTE format('SELECT format('' AND t.%%I BETWEEN %%s AND %%s'', %L::text, min(m.n1), max(m.n1)) FROM %s AS m WHERE m.source = %s AND m.action <> ''s''', plan.key[1], map, source_)
			INTO bounds;
		bounds := CASE WHEN bounds LIKE '%BETWEEN  AND %' THEN '' ELSE bounds END;
	END IF;
	unmapped := coalesce(is_own || ' AND (' || unmapped || ')', 'false');
	EXECUTE format('SELECT count(*) FROM %s', snowflake_migrate_internal.only(source_relation)) INTO in_source;
	EXECUTE format('SELECT count(*) FROM %s AS m WHERE m.source = %s', map, source_) INTO in_map;
	/* What is dear to compute, whether a row differs, stands here once. */
	EXECUTE format(
		'SELECT count(*), count(*) FILTER (WHERE %s AND t.%I IS NULL), count(*) FILTER (WHERE %s AND t.%I IS NOT NULL AND %s), '
		'count(*) FILTER (WHERE m.action IN (''m'', ''k'') AND t.%I IS NULL), count(*) FILTER (WHERE %s), '
		'count(*) FILTER (WHERE m.action = ''m'' AND t.%I IS NOT NULL AND %s), '
		'min(%s) FILTER (WHERE m.action <> ''s'' AND t.%I IS NULL OR %s) FROM %s LEFT JOIN %s AS t ON %s',
		is_own, plan.key[1], is_own, plan.key[1], differs, plan.key[1], unmapped, plan.key[1], other, key_text, plan.key[1], unmapped,
		parts.origin, snowflake_migrate_internal.only(plan.relation), snowflake_migrate_internal.key_list('t.@ = m.n#', plan.key, ' AND ') || bounds)
		INTO joined, missing, differing, gone, unmapped_rows, others, example;
	IF missing > 0 THEN
		problem := 'rows are missing in the target';
		count := missing;
		RETURN NEXT;
	END IF;
	IF differing > 0 THEN
		problem := 'rows of the target are not what they should be';
		count := differing;
		EXECUTE format('SELECT string_agg(format(''%%s -> %%s: %%s'', x.o, x.n, x.columns), ''; '') FROM (SELECT %s AS o, %s AS n, concat_ws('', '', %s) AS columns '
			'FROM %s JOIN %s AS t ON %s WHERE m.action IN (''c'', ''r'') AND %s LIMIT 3) AS x',
			key_text, snowflake_migrate_internal.key_text('m.n#', plan.key),
			(SELECT string_agg(format('CASE WHEN ROW (t.%I)::record OPERATOR(pg_catalog.*<>) ROW (%s)::record THEN %L END', e.name, e.expression, e.name), ', ' ORDER BY e.n)
			 FROM unnest(parts.names, parts.expressions) WITH ORDINALITY AS e (name, expression, n)),
			parts.origin, snowflake_migrate_internal.only(plan.relation), snowflake_migrate_internal.key_list('t.@ = m.n#', plan.key, ' AND '), differs) INTO example;
		RETURN NEXT;
	END IF;
	IF gone > 0 THEN
		problem := 'rows of the target that stand for the source''s are gone';
		count := gone;
		RETURN NEXT;
	END IF;
	IF others > 0 THEN
		problem := 'rows of the target that stand for the source''s are others';
		count := others;
		RETURN NEXT;
	END IF;
	IF unmapped_rows > 0 THEN
		problem := 'rows refer to rows that the map does not have';
		count := unmapped_rows;
		RETURN NEXT;
	END IF;
	IF in_source > joined THEN
		problem := 'rows of the source are not in the map: it changed';
		count := in_source - joined;
		example := NULL;
		RETURN NEXT;
	END IF;
	IF in_map > joined THEN
		problem := 'rows in the map are no longer in the source: it changed';
		count := in_map - joined;
		example := NULL;
		RETURN NEXT;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.verify_source(bigint, int, int) IS 'for snowflake_migrate.verify(): the rows of a table of a source';

/*
 * What a table of the target has that it should not.  Where every row of the map is there (complete), it is enough to count: the map
 * has each new key once.  When the target has been opened again, or another merge has followed, it may have more rows whose keys do
 * not tell where they came from: then only what the merge's own node numbers made, and copies of its rows, can be told.
 */
CREATE FUNCTION snowflake_migrate_internal.verify_target(
	run_ bigint,
	no_ int,
	complete boolean,
	OUT problem text,
	OUT count bigint,
	OUT example text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	run_row record;
	plan record;
	fk record;
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map_' || no_);
	target CONSTANT text := snowflake_migrate_internal.only((SELECT t.relation FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_));
	followed boolean;
	counts text;
	in_map bigint[];
	in_target bigint[];		-- all, of the merge's nodes, of keys made since it began
	former bigint;
	boundary bigint;
	others text;
	state text;
BEGIN
	SELECT r.* INTO STRICT run_row FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	followed := EXISTS (SELECT FROM snowflake_migrate.runs AS r
						WHERE r.target = run_row.target AND r.started_at > run_row.started_at AND r.state IN ('copying', 'verifying', 'done', 'rolling back'));
	boundary := snowflake_migrate_internal.max_id(run_row.started_at);
	IF plan.kind = 'none' THEN
		EXECUTE format('SELECT ARRAY[count(*), 0, 0] FROM %s', target) INTO in_target;
		SELECT ARRAY[sum(s.rows_done), 0, 0] INTO in_map FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_;
	ELSE
		counts := CASE plan.kind WHEN 'id' THEN
			format('SELECT ARRAY[count(*), count(*) FILTER (WHERE x.k > %s AND snowflake_migrate_internal.node(x.k) = ANY (%L::bigint[])), count(*) FILTER (WHERE x.k > %s)]',
				   snowflake_migrate_internal.last_serial(), run_row.nodes, boundary) ELSE 'SELECT ARRAY[count(*), 0, 0]' END;
		EXECUTE format('%s FROM (SELECT t.%I AS k FROM %s AS t) AS x', counts, plan.key[1], target) INTO in_target;
		EXECUTE format('%s FROM (SELECT m.n1 AS k FROM %s AS m WHERE m.action = ''c'') AS x', counts, map) INTO in_map;
		IF NOT complete OR in_target[2] <> in_map[2] OR in_target[3] <> in_map[3] THEN
			EXECUTE format('%s FROM (SELECT t.%I AS k FROM %s AS t JOIN %s AS m ON m.action = ''c'' AND %s) AS x', counts, plan.key[1], target, map,
						   snowflake_migrate_internal.key_list('m.n# = t.@', plan.key, ' AND ')) INTO in_map;
		END IF;
		IF in_target[2] > in_map[2] THEN
			problem := 'ids have a node number of the merge and are not in the map';
			count := in_target[2] - in_map[2];
			RETURN NEXT;
		END IF;
		SELECT string_agg(format('t.%I', c.name), ', ' ORDER BY c.position) INTO others
			FROM snowflake_migrate_internal.plan_columns AS c WHERE c.run = run_ AND c.no = no_ AND c.name <> ALL (plan.key);
		IF in_target[3] > in_map[3] AND others IS NOT NULL THEN
			EXECUTE format('SELECT count(*), min(x.key) FROM (SELECT t.%I::text AS key, ROW (%s)::text AS r FROM %s AS t WHERE t.%I > %s AND NOT EXISTS (SELECT FROM %s AS m WHERE m.action = ''c'' AND m.n1 = t.%I)) AS x '
				'WHERE x.r IN (SELECT ROW (%s)::text FROM %s AS t JOIN %s AS m ON m.action = ''c'' AND m.n1 = t.%I)',
				plan.key[1], others, target, plan.key[1], boundary, map, plan.key[1], others, target, map, plan.key[1]) INTO count, example;
			IF count > 0 THEN
				problem := 'rows are in the target twice, under another key';
				RETURN NEXT;
			END IF;
		END IF;
	END IF;
	former := in_target[1] - in_map[1] - CASE plan.kind WHEN 'id' THEN in_target[3] - in_map[3] ELSE 0 END;
	IF former < plan.former_rows AND run_row.state <> 'done' THEN
		problem := 'rows that the target had are gone';
		count := plan.former_rows - former;
		example := NULL;
		RETURN NEXT;
	ELSIF former > plan.former_rows AND NOT followed AND (plan.kind = 'id' OR run_row.state <> 'done') THEN
		problem := 'rows are in the target that neither it nor a source had';
		count := former - plan.former_rows;
		example := NULL;
		RETURN NEXT;
	ELSIF former > plan.former_rows AND plan.kind = 'none' AND NOT followed THEN
		EXECUTE format('SELECT sum(x.n - x.m), min(x.r) FROM (SELECT q.r, sum(q.n) AS n, sum(q.m) AS m FROM (SELECT ROW (t.*)::text AS r, 1 AS n, 0 AS m FROM %s AS t%s) AS q GROUP BY q.r) AS x '
			'WHERE x.m > 0 AND x.n > x.m', target,
			(SELECT string_agg(format(' UNION ALL SELECT ROW (t.*)::text, 0, 1 FROM (%s) AS t', snowflake_migrate_internal.rows(run_, no_, s.source)), '')
			 FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_)) INTO count, example;
		IF count > 0 THEN
			problem := 'rows are in the target more often than they should be';
			RETURN NEXT;
		END IF;
	END IF;

	/* Triggers that check them may have been off. */
	example := NULL;
	FOR fk IN
		SELECT f.conname, coalesce(pg_partition_root(f.conrelid), f.conrelid)::regclass AS child, coalesce(pg_partition_root(f.confrelid), f.confrelid)::regclass AS parent,
			string_agg(format('t.%I IS NOT NULL', a.attname), ' AND ' ORDER BY k.n) || snowflake_migrate_internal.in_part(f.conrelid, 't') AS given,
			string_agg(format('p.%I OPERATOR(%I.%s) t.%I', b.attname, s.nspname, o.oprname, a.attname), ' AND ' ORDER BY k.n)
				|| snowflake_migrate_internal.in_part(f.confrelid, 'p') AS same
		FROM pg_constraint AS f
			CROSS JOIN LATERAL unnest(f.conkey, f.confkey, f.conpfeqop) WITH ORDINALITY AS k (attnum, parent_attnum, operator, n)
			JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = k.attnum
			JOIN pg_attribute AS b ON b.attrelid = f.confrelid AND b.attnum = k.parent_attnum
			JOIN pg_operator AS o ON o.oid = k.operator JOIN pg_namespace AS s ON s.oid = o.oprnamespace
		WHERE f.contype = 'f' AND f.conparentid = 0
			AND (coalesce(pg_partition_root(f.conrelid), f.conrelid) = plan.relation
				 /* From tables that are not merged. */
				 OR coalesce(pg_partition_root(f.confrelid), f.confrelid) = plan.relation AND coalesce(pg_partition_root(f.conrelid), f.conrelid) NOT IN (
						SELECT o.relation FROM snowflake_migrate_internal.plan_tables AS o JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no) WHERE o.run = run_))
		GROUP BY f.oid, f.conname, f.conrelid, f.confrelid ORDER BY f.conname
	LOOP
		EXECUTE format('SELECT count(*) FROM %s AS t WHERE %s AND NOT EXISTS (SELECT FROM %s AS p WHERE %s)', snowflake_migrate_internal.only(fk.child), fk.given,
					   snowflake_migrate_internal.only(fk.parent), fk.same) INTO count;
		IF count > 0 THEN
			problem := format('rows that the foreign key %I refers to are not there', fk.conname);
			RETURN NEXT;
		END IF;
	END LOOP;
	state := snowflake_migrate_internal.state(plan.relation);
	IF state <> plan.former_state THEN
		problem := 'constraints or triggers are not as they were';
		count := NULL;
		SELECT string_agg(coalesce(n.item, 'no ' || f.item), ', ') INTO example
			FROM unnest(string_to_array(state, ', ')) AS n (item) FULL JOIN unnest(string_to_array(plan.former_state, ', ')) AS f (item) ON f.item = n.item
			WHERE f.item IS NULL OR n.item IS NULL;
		RETURN NEXT;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.verify_target(bigint, int, boolean) IS 'for snowflake_migrate.verify(): what a table of the target has that it should not';

/*
 * A row for each thing that is not as it should be after a merge; none: it is proved.  Sources and target must not have changed
 * since: rows that somebody changed, or another merge, are named like any that the merge got wrong.
 */
CREATE FUNCTION snowflake_migrate.verify(
	run bigint,
	OUT source name,
	OUT relation text,
	OUT problem text,
	OUT count bigint,
	OUT example text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
	SET datestyle = 'ISO, YMD' SET intervalstyle = 'postgres' SET extra_float_digits = 1 SET bytea_output = 'hex'
AS $$
#variable_conflict use_column
DECLARE
	run_row record;
	t record;
	s record;
	complete boolean;
	work_mem CONSTANT text := current_setting('work_mem');
BEGIN
	SELECT r.* INTO run_row FROM snowflake_migrate.runs AS r WHERE r.run = verify.run;
	IF NOT FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_object', MESSAGE = format('there is no merge with the number %s', verify.run),
			HINT = 'See snowflake_migrate.runs.';
	ELSIF run_row.state NOT IN ('verifying', 'done') THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = format('the merge with the number %s is %s', run_row.run, run_row.state);
	END IF;
	/* These hash whole tables, as CREATE INDEX sorts them. */
	PERFORM set_config('work_mem', current_setting('maintenance_work_mem'), true);
	FOR t IN SELECT p.no, p.relation FROM snowflake_migrate_internal.plan_tables AS p WHERE p.run = run_row.run ORDER BY p.no LOOP
		relation := t.relation::text;
		complete := true;
		FOR s IN SELECT p.source FROM snowflake_migrate_internal.plan_sources AS p WHERE p.run = run_row.run AND p.no = t.no ORDER BY p.source LOOP
			source := run_row.sources[s.source];
			FOR problem, count, example IN SELECT v.* FROM snowflake_migrate_internal.verify_source(run_row.run, t.no, s.source) AS v LOOP
				complete := false;
				RETURN NEXT;
			END LOOP;
		END LOOP;
		source := NULL;
		CONTINUE WHEN NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS p WHERE p.run = run_row.run AND p.no = t.no);
		FOR problem, count, example IN SELECT v.* FROM snowflake_migrate_internal.verify_target(run_row.run, t.no, complete) AS v LOOP
			RETURN NEXT;
		END LOOP;
	END LOOP;
	PERFORM set_config('work_mem', work_mem, true);
END
$$;
COMMENT ON FUNCTION snowflake_migrate.verify(bigint) IS 'proves a merge row by row: what is not as it should be';
/*
 * Taking a merge back: the rows that it brought are deleted, children before parents, in batches that commit; rows and ranks that
 * it replaced come back.  That nothing newer refers to them is known before the first is deleted, since ON DELETE CASCADE would
 * remove it silently, and without triggers it would be left dangling.
 *
 * A row that changed since it was copied has another xmin than the transactions that copied it.
 */

/*
 * What refers to the rows that a run brought and is not of that run: one row for each reference.  Of all that it brought, or
 * (parent_no, of_map) of the entries of one map for which the condition holds, whose rows may be gone by now.
 */
CREATE FUNCTION snowflake_migrate_internal.newer_references(
	run_ bigint,
	parent_no int,
	of_map text,
	OUT relation text,
	OUT object text,
	OUT count bigint,
	OUT example text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	ref record;
BEGIN
	FOR ref IN
		/* By a foreign key, from whatever table. */
		SELECT c.root AS child, f.conname::text AS object, k.no AS child_no, k.kind AS child_kind, k.key AS child_key, p.no AS parent_no,
			CASE WHEN parent_no IS NULL
				THEN format('JOIN %s AS p ON %s JOIN %s AS m ON m.action = ''c'' AND %s', snowflake_migrate_internal.only(p.relation),
					(SELECT string_agg(format('p.%I = x.%I', b.attname, a.attname), ' AND ') FROM unnest(f.conkey, f.confkey) AS u (attnum, parent_attnum)
						JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = u.attnum
						JOIN pg_attribute AS b ON b.attrelid = f.confrelid AND b.attnum = u.parent_attnum),
					snowflake_migrate_internal.relation(run_, 'map_' || p.no), snowflake_migrate_internal.key_list('m.n# = p.@', p.key, ' AND '))
				ELSE format('JOIN %s AS m ON m.action = ''c'' AND %s AND %s', snowflake_migrate_internal.relation(run_, 'map_' || p.no), of_map,
					(SELECT string_agg(format('m.n%s = x.%I', array_position(p.key, b.attname), a.attname), ' AND ') FROM unnest(f.conkey, f.confkey) AS u (attnum, parent_attnum)
						JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = u.attnum
						JOIN pg_attribute AS b ON b.attrelid = f.confrelid AND b.attnum = u.parent_attnum AND b.attname = ANY (p.key))) END AS refers
		FROM snowflake_migrate_internal.plan_tables AS p
			JOIN pg_constraint AS f ON f.contype = 'f' AND coalesce(pg_partition_root(f.confrelid), f.confrelid) = p.relation
			CROSS JOIN LATERAL (SELECT coalesce(pg_partition_root(f.conrelid), f.conrelid)::regclass) AS c (root)
			LEFT JOIN snowflake_migrate_internal.plan_tables AS k ON k.run = run_ AND k.relation = c.root
		WHERE p.run = run_ AND p.kind <> 'none' AND f.conparentid = 0 AND (parent_no IS NULL OR p.no = parent_no)
			AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no)
			AND EXISTS (SELECT FROM unnest(f.confkey) AS u (attnum) JOIN pg_attribute AS b ON b.attrelid = f.confrelid AND b.attnum = u.attnum
						WHERE parent_no IS NULL OR b.attname = ANY (p.key))
		UNION ALL
		/* By a declaration. */
		SELECT k.relation, r.name, k.no, k.kind, k.key, p.no,
			format('CROSS JOIN LATERAL (SELECT %s) AS i (id) JOIN %s AS m ON m.action = ''c'' AND m.n1 = i.id%s%s',
				CASE WHEN r.path IS NOT NULL THEN format('snowflake_migrate_internal.json_id(q.part) FROM jsonb_path_query(x.%I::jsonb, %L, silent => true) AS q (part)', r.name, r.path)
					WHEN r.elements THEN format('unnest(x.%I)::bigint', r.name)
					ELSE snowflake_migrate_internal.id_of(format('x.%I', r.name), a.atttypid) END,
				snowflake_migrate_internal.relation(run_, 'map_' || p.no), ' AND ' || of_map,
				/* As it was tried when it was declared: under the table's name. */
				CASE WHEN r.condition IS NOT NULL THEN format(' AND (SELECT (%s) IS TRUE FROM (SELECT x.*) AS %I)', r.condition, c.relname) END)
		FROM snowflake_migrate_internal.plan_references AS r
			JOIN snowflake_migrate_internal.plan_tables AS k ON k.run = run_ AND k.no = r.no
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.no = r.referenced
			JOIN pg_class AS c ON c.oid = k.relation
			JOIN pg_attribute AS a ON a.attrelid = k.relation AND a.attname = r.name
		WHERE r.run = run_ AND r.declared AND (parent_no IS NULL OR p.no = parent_no)
			AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no)
	LOOP
		/* A row may refer to several. */
		EXECUTE format('SELECT count(*), string_agg(y.example, ''; '') FILTER (WHERE y.n <= 3) FROM ('
			'SELECT z.example, row_number() OVER (ORDER BY z.example) AS n FROM (SELECT DISTINCT left(%s, 100) AS example FROM %s AS x %s%s) AS z) AS y',
			CASE WHEN ref.child_key <> '{}' THEN snowflake_migrate_internal.key_text('x.@', ref.child_key) ELSE 'x::text' END,
			snowflake_migrate_internal.only(ref.child), ref.refers,
			CASE WHEN ref.child_no IS NULL OR ref.child_kind = 'none' THEN ''
				/* Rows that took the place of others come back before the batches that they would be in the way of, but within a cycle. */
				ELSE format(' WHERE NOT EXISTS (SELECT FROM %s AS c WHERE c.action IN (''c'', %L) AND %s)', snowflake_migrate_internal.relation(run_, 'map_' || ref.child_no),
							CASE WHEN parent_no IS NULL OR EXISTS (SELECT FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = parent_no AND t.cyclic)
								THEN 'r' ELSE 'c' END,
							snowflake_migrate_internal.key_list('c.n# = x.@', ref.child_key, ' AND ')) END)
			INTO count, example;
		IF count > 0 THEN
			relation := ref.child::text;
			object := ref.object;
			RETURN NEXT;
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.newer_references(bigint, int, text) IS 'for snowflake_migrate.rollback(): what refers to the rows of a run';

/* Raises an error where anything does. */
CREATE FUNCTION snowflake_migrate_internal.refuse_newer(run_ bigint, parent_no int, of_map text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	problems text;
BEGIN
	SELECT string_agg(format('Table %s, %s: %s rows, for example %s.', r.relation, r.object, r.count, r.example), E'\n' ORDER BY r.relation, r.object) INTO problems
		FROM snowflake_migrate_internal.newer_references(run_, parent_no, of_map) AS r;
	IF problems IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'foreign_key_violation', MESSAGE = format('cannot take merge %s back, as rows that it did not bring refer to rows that it brought', run_),
			DETAIL = problems, HINT = 'Delete these rows, or let them refer to others.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_newer(bigint, int, text) IS 'for snowflake_migrate.rollback(): an error where newer rows refer to those of a run';

/* Begins to take a run back, or goes on: checks what is in the way first. */
CREATE FUNCTION snowflake_migrate_internal.rollback_start(run_ bigint, force boolean) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
AS $$
#variable_conflict use_column
DECLARE
	problems text;
	t record;
	n bigint;
	example text;
	changed text[] := '{}';
BEGIN
	IF snowflake_migrate_internal.begin(run_, ARRAY['copying', 'verifying', 'done', 'rolling back']) = 'rolling back' THEN
		/* What came since it was interrupted. */
		PERFORM snowflake_migrate_internal.refuse_newer(run_, NULL, NULL);
		RETURN;
	END IF;
	IF EXISTS (SELECT FROM snowflake_migrate.runs AS r JOIN snowflake_migrate.runs AS o ON o.run = run_
			   WHERE r.target = o.target AND r.run <> run_ AND r.state IN ('copying', 'verifying', 'rolling back')) THEN
		RAISE EXCEPTION USING ERRCODE = 'object_in_use', MESSAGE = 'another merge into the same schema is not finished', HINT = 'See snowflake_migrate.runs.';
	END IF;
	/* Before it begins, as it could not go back from there. */
	SELECT string_agg(format('Role %I has no right to %s on table %s.', current_user, d.denied, p.relation), E'\n' ORDER BY p.no) INTO problems
		FROM snowflake_migrate_internal.plan_tables AS p,
			LATERAL (SELECT string_agg(g.privilege, ', ') FROM unnest('{SELECT,UPDATE,DELETE}'::text[]) AS g (privilege)
					 WHERE NOT has_table_privilege(p.relation, g.privilege)
						AND (g.privilege <> 'UPDATE' OR to_regclass(snowflake_migrate_internal.relation(run_, 'rank_' || p.no)) IS NOT NULL
							 OR to_regclass(snowflake_migrate_internal.relation(run_, 'former_' || p.no)) IS NOT NULL)) AS d (denied)
		WHERE p.run = run_ AND p.kind <> 'none' AND d.denied IS NOT NULL AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no);
	IF problems IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE = 'permission denied to take the merge back', DETAIL = problems, HINT = 'GRANT these rights.';
	END IF;
	SELECT string_agg(format('Table %s is one of them.', p.relation), E'\n' ORDER BY p.no) INTO problems
		FROM snowflake_migrate_internal.plan_tables AS p
		WHERE p.run = run_ AND p.kind = 'none' AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no AND s.rows_done > 0);
	IF problems IS NOT NULL AND NOT force THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = format('cannot take all of merge %s back', run_),
			DETAIL = E'Rows of tables without a key cannot be told from others.\n' || problems, HINT = 'With force => true, they stay.';
	END IF;
	PERFORM snowflake_migrate_internal.refuse_newer(run_, NULL, NULL);
	/* Ranks come back, unless newer rows have them. */
	FOR t IN SELECT p.*, c.relname, u.label, u.changed, u.expressions, snowflake_migrate_internal.relation(run_, 'rank_' || p.no) AS ranks,
			array_position(u.expressions, '(' || quote_ident(u.changed) || ')') AS place
		FROM snowflake_migrate_internal.plan_tables AS p JOIN pg_class AS c ON c.oid = p.relation, snowflake_migrate_internal.unique(run_, p.no) AS u
		WHERE p.run = run_ AND p.kind <> 'none' AND u.policy = 'rerank' AND to_regclass(snowflake_migrate_internal.relation(run_, 'rank_' || p.no)) IS NOT NULL
			AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no AND s.copied_by <> '{}')
	LOOP
		EXECUTE format('WITH q (%s, %s) AS (SELECT %s, %s FROM %s AS %I) '
			'SELECT count(*), min(%s) FROM %s AS r JOIN q AS f ON %s AND f.e%s = r.new JOIN q AS t ON t.e%s = r.old%s '
			'WHERE NOT EXISTS (SELECT FROM %s AS m WHERE m.action = ''c'' AND %s) AND NOT EXISTS (SELECT FROM %s AS o WHERE %s AND t.e%s = o.new)',
			snowflake_migrate_internal.key_list('k#', t.key), (SELECT string_agg('e' || i, ', ' ORDER BY i) FROM generate_subscripts(t.expressions, 1) AS i),
			snowflake_migrate_internal.key_list('@', t.key), array_to_string(t.expressions, ', '), snowflake_migrate_internal.only(t.relation), t.relname,
			snowflake_migrate_internal.key_text('t.k#', t.key), t.ranks, snowflake_migrate_internal.key_list('f.k# = r.n#', t.key, ' AND '), t.place, t.place,
			coalesce((SELECT string_agg(format(' AND t.e%s IS NOT DISTINCT FROM f.e%s', i, i), '') FROM generate_subscripts(t.expressions, 1) AS i WHERE i <> t.place), ''),
			snowflake_migrate_internal.relation(run_, 'map_' || t.no), snowflake_migrate_internal.key_list('m.n# = t.k#', t.key, ' AND '),
			t.ranks, snowflake_migrate_internal.key_list('o.n# = t.k#', t.key, ' AND '), t.place) INTO n, example;
		IF n > 0 THEN
			RAISE EXCEPTION USING ERRCODE = 'unique_violation', MESSAGE = format('cannot take merge %s back, as newer rows have ranks that come back', run_),
				DETAIL = format('Table %s, "%s": %s rows, for example %s.', t.relation, t.label, n, example), HINT = format('Give these rows another %I.', t.changed);
		END IF;
	END LOOP;
	/* Rows that were replaced come back, unless newer rows have what must be unique in them. */
	FOR t IN SELECT p.*, c.relname, u.label, u.expressions, u.operators, u.distinct_nulls, u.predicate, snowflake_migrate_internal.relation(run_, 'former_' || p.no) AS former
		FROM snowflake_migrate_internal.plan_tables AS p JOIN pg_class AS c ON c.oid = p.relation, snowflake_migrate_internal.unique(run_, p.no) AS u
		WHERE p.run = run_ AND p.kind <> 'none' AND u.policy NOT IN ('match', 'rerank') AND NOT u.is_key
			AND to_regclass(snowflake_migrate_internal.relation(run_, 'former_' || p.no)) IS NOT NULL
	LOOP
		EXECUTE format('SELECT count(*), min(%s) FROM (SELECT %s FROM %s AS %I%s) AS f (%s) JOIN (SELECT %s, %s FROM %s AS %I%s) AS t (%s, %s) ON %s '
			'WHERE NOT EXISTS (SELECT FROM %s AS m WHERE m.action IN (''c'', ''r'') AND %s)',
			snowflake_migrate_internal.key_text('t.k#', t.key), array_to_string(t.expressions, ', '), t.former, t.relname, coalesce(' WHERE ' || t.predicate, ''),
			(SELECT string_agg('e' || i, ', ' ORDER BY i) FROM generate_subscripts(t.expressions, 1) AS i),
			snowflake_migrate_internal.key_list('@', t.key), array_to_string(t.expressions, ', '), snowflake_migrate_internal.only(t.relation), t.relname,
			coalesce(' WHERE ' || t.predicate, ''), snowflake_migrate_internal.key_list('k#', t.key),
			(SELECT string_agg('e' || i, ', ' ORDER BY i) FROM generate_subscripts(t.expressions, 1) AS i),
			(SELECT string_agg(format('f.e%s %s t.e%s', i, t.operators[i], i), ' AND ' ORDER BY i) FROM generate_subscripts(t.expressions, 1) AS i),
			snowflake_migrate_internal.relation(run_, 'map_' || t.no), snowflake_migrate_internal.key_list('m.n# = t.k#', t.key, ' AND ')) INTO n, example;
		IF n > 0 THEN
			RAISE EXCEPTION USING ERRCODE = 'unique_violation', MESSAGE = format('cannot take merge %s back, as newer rows clash with rows that come back', run_),
				DETAIL = format('Table %s, "%s": %s rows, for example %s.', t.relation, t.label, n, example), HINT = 'Give these rows other values.';
		END IF;
	END LOOP;
	IF current_setting('session_replication_role') <> 'replica'
		AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_tables AS p WHERE p.run = run_ AND p.cyclic) THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE = 'permission denied to set session_replication_role',
			DETAIL = 'Tables refer to each other in a cycle, so that none can be deleted from first.', HINT = 'GRANT SET ON PARAMETER session_replication_role.';
	END IF;
	FOR t IN SELECT p.*, (SELECT array_agg(DISTINCT x) FROM snowflake_migrate_internal.plan_sources AS s, unnest(s.copied_by) AS x WHERE s.run = run_) AS xids
		FROM snowflake_migrate_internal.plan_tables AS p
		WHERE p.run = run_ AND p.kind <> 'none' AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = p.no) ORDER BY p.no
	LOOP
		EXECUTE format('SELECT count(*), string_agg(x.key, '', '') FILTER (WHERE x.n <= 3) FROM (SELECT %s AS key, row_number() OVER () AS n FROM %s AS t JOIN %s AS m ON m.action IN (''c'', ''r'') AND %s '
			'WHERE t.xmin <> ALL (%L::xid[])%s) AS x', snowflake_migrate_internal.key_text('m.n#', t.key), snowflake_migrate_internal.only(t.relation),
			snowflake_migrate_internal.relation(run_, 'map_' || t.no), snowflake_migrate_internal.key_list('t.@ = m.n#', t.key, ' AND '),
			(SELECT coalesce(array_agg(x::xid), '{}') FROM unnest(t.xids) AS x),
			/* Of an unfinished run, rows whose place was not taken yet are as they were. */
			CASE WHEN to_regclass(snowflake_migrate_internal.relation(run_, 'former_' || t.no)) IS NOT NULL
				THEN format(' AND (m.action = ''c'' OR EXISTS (SELECT FROM %s AS f WHERE %s))', snowflake_migrate_internal.relation(run_, 'former_' || t.no),
							snowflake_migrate_internal.key_list('f.@ = t.@', t.key, ' AND ')) ELSE '' END) INTO n, example;
		IF n > 0 THEN
			changed := changed || format('Table %s: %s rows, for example %s.', t.relation, n, example);
			PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, t.relation::text, NULL, 'rows had changed since when they were taken back', n, example, NULL);
		END IF;
	END LOOP;
	IF changed <> '{}' AND NOT force THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state', MESSAGE = format('rows that merge %s brought have changed since', run_),
			DETAIL = array_to_string(changed, E'\n'), HINT = 'With force => true, they are taken back all the same.';
	END IF;
	UPDATE snowflake_migrate_internal.plan_sources AS s SET position = NULL, done = false WHERE s.run = run_;
	UPDATE snowflake_migrate.runs AS r SET state = 'rolling back', finished_at = NULL WHERE r.run = run_;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.rollback_start(bigint, boolean) IS 'for snowflake_migrate.rollback(): checks what is in the way';

/* Takes back a batch of one table of one source. */
CREATE FUNCTION snowflake_migrate_internal.uncopy(run_ bigint, no_ int, source_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	run_row record;
	plan record;
	part record;
	columns text;
	former_columns text;
	deleted bigint := 0;
	restored bigint := 0;
	started CONSTANT timestamptz := clock_timestamp();
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map_' || no_);
	former CONSTANT text := snowflake_migrate_internal.relation(run_, 'former_' || no_);
BEGIN
	SELECT r.* INTO STRICT run_row FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	part := snowflake_migrate_internal.range(run_, no_, source_, run_row.batch_size, 'm.action IN (''c'', ''r'')');
	IF plan.kind <> 'none' THEN
		EXECUTE format('DELETE FROM %s AS t USING %s AS m WHERE %s AND %s AND m.action = ''c''', snowflake_migrate_internal.only(plan.relation), map,
			snowflake_migrate_internal.key_list('t.@ = m.n#', plan.key, ' AND '), part.of_map);
		GET DIAGNOSTICS deleted = ROW_COUNT;
		/*
		 * The rows are locked now: who refers to one of them has committed, and is seen, or will not find it.  Of a cycle, other members'
		 * rows may still be there; they are of the run, and not newer.
		 */
		IF current_setting('session_replication_role') = 'replica' THEN
			PERFORM snowflake_migrate_internal.refuse_newer(run_, no_, part.of_map);
		END IF;
		SELECT string_agg(quote_ident(c.name), ', ' ORDER BY c.position), string_agg('f.' || quote_ident(c.name), ', ' ORDER BY c.position) INTO columns, former_columns
			FROM snowflake_migrate_internal.plan_columns AS c JOIN pg_attribute AS a ON a.attrelid = plan.relation AND a.attname = c.name
			WHERE c.run = run_ AND c.no = no_ AND NOT c.generated AND a.attidentity <> 'a' AND c.name <> ALL (plan.key);
		IF columns IS NOT NULL AND to_regclass(former) IS NOT NULL THEN
			EXECUTE format('UPDATE %s AS t SET (%s) = (SELECT %s FROM %s AS f WHERE %s) FROM %s AS m JOIN %s AS o ON %s WHERE %s AND %s AND m.action = ''r''',
				snowflake_migrate_internal.only(plan.relation), columns, former_columns,
				former, snowflake_migrate_internal.key_list('f.@ = t.@', plan.key, ' AND '), map, former, snowflake_migrate_internal.key_list('o.@ = m.n#', plan.key, ' AND '),
				snowflake_migrate_internal.key_list('t.@ = m.n#', plan.key, ' AND '), part.of_map);
			GET DIAGNOSTICS restored = ROW_COUNT;
		END IF;
	END IF;
	UPDATE snowflake_migrate_internal.plan_sources AS s
		SET rows_done = greatest(s.rows_done - deleted - restored, 0), position = part.range_end, done = part.range_end IS NULL, busy = s.busy + (clock_timestamp() - started)
		WHERE s.run = run_ AND s.no = no_ AND s.source = source_;
	/* When the last of the table's merged rows is gone, the ranks are free again. */
	IF NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_ AND NOT s.done)
		AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_ AND s.copied_by <> '{}') THEN
		PERFORM snowflake_migrate_internal.apply_ranks(run_, no_, true);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.uncopy(bigint, int, int) IS 'for snowflake_migrate.rollback(): takes back a batch';

/* What one transaction takes back.  Returns false when there is nothing left, and the run is rolled back. */
CREATE FUNCTION snowflake_migrate_internal.rollback_step(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	next record;
	member record;
BEGIN
	SELECT s.no, s.source, t.copy_step, t.cyclic INTO next
		FROM snowflake_migrate_internal.plan_sources AS s JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
		WHERE s.run = run_ AND NOT s.done ORDER BY t.copy_step DESC, s.no DESC, s.source DESC LIMIT 1;
	IF NOT FOUND THEN
		UPDATE snowflake_migrate.runs AS r SET state = 'rolled back', finished_at = clock_timestamp() WHERE r.run = run_;
		RETURN false;
	END IF;
	FOR member IN SELECT s.no, s.source FROM snowflake_migrate_internal.plan_sources AS s JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
		WHERE s.run = run_ AND t.copy_step = next.copy_step AND NOT s.done AND (next.cyclic OR (s.no, s.source) = (next.no, next.source)) ORDER BY s.no DESC, s.source DESC
	LOOP
		PERFORM snowflake_migrate_internal.uncopy(run_, member.no, member.source);
	END LOOP;
	RETURN true;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.rollback_step(bigint) IS 'for snowflake_migrate.rollback(): one of its transactions';

/*
 * Takes a merge back, also one that is not finished.  To be called outside of a transaction block; the same call goes on where it
 * was interrupted.  An error names the newer rows that refer to merged ones.  force: rows that changed since are taken back as
 * well, and those of tables without a key stay.
 */
CREATE PROCEDURE snowflake_migrate.rollback(run bigint, force boolean DEFAULT false)
LANGUAGE plpgsql
AS $$
DECLARE
	more boolean;
BEGIN
	PERFORM snowflake_migrate_internal.rollback_start(run, force IS TRUE);
	COMMIT;
	LOOP
		PERFORM snowflake_migrate_internal.begin(run, ARRAY['rolling back']);
		more := snowflake_migrate_internal.rollback_step(run);
		COMMIT;
		EXIT WHEN NOT more;
	END LOOP;
END
$$;
COMMENT ON PROCEDURE snowflake_migrate.rollback(bigint, boolean) IS 'takes a merge back';
/*
 * What a role needs of the extension and of this database to adopt, merge, verify and take back.  What it needs of the tables
 * that are merged depends on them: snowflake_migrate.check(), called by that role, says what is missing.
 *
 * For superusers: nobody else may grant SET on session_replication_role.
 */
CREATE FUNCTION snowflake_migrate.grant_to(role regrole) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	EXECUTE format('GRANT CONNECT, CREATE, TEMPORARY ON DATABASE %I TO %s', current_database(), role);
	EXECUTE format('GRANT SET ON PARAMETER session_replication_role TO %s', role);
	EXECUTE format('GRANT EXECUTE ON FUNCTION snowflake_internal.set_aside TO %s', role);
	EXECUTE format('GRANT USAGE ON SEQUENCE snowflake_migrate_internal.run_number TO %s', role);
	EXECUTE format('GRANT SELECT ON snowflake_migrate.map, snowflake_migrate.progress TO %s', role);
	EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON
			snowflake_migrate.runs, snowflake_migrate.nodes, snowflake_migrate.report, snowflake_migrate.records,
			snowflake_migrate_internal.plan_tables, snowflake_migrate_internal.plan_columns,
			snowflake_migrate_internal.plan_references, snowflake_migrate_internal.plan_sources TO %s', role);
END
$$;
COMMENT ON FUNCTION snowflake_migrate.grant_to(regrole) IS 'gives a role the rights that migrating needs, but those on the tables that are migrated';
