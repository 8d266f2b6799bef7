/*
 * What the catalogs can't say about databases that are merged is declared beforehand: tables that are shared,
 * references without a foreign key, times, and what becomes of rows that clash.  A declaration is about a table of
 * the target; one that is made again replaces the former, and one whose row is deleted from its table is gone.
 *
 * Conditions and expressions are SQL that runs with the rights of whoever merges: only those who may change these
 * tables can declare, and a merge runs what a superuser or its own role declared, and nobody else's (owner.sql).
 */

CREATE TABLE snowflake_migrate.declared_tables (
	relation regclass PRIMARY KEY,
	mode text NOT NULL CHECK (mode IN ('copy', 'match', 'same_id', 'ignore')),
	key name[],
	accept text[] NOT NULL DEFAULT '{}' CHECK (accept <@ ARRAY['duplicates', 'differences']),
	ignored_columns name[] NOT NULL DEFAULT '{}',
	condition text,										-- which rows of a source come; null: all
	declared_by name NOT NULL DEFAULT current_user
);
COMMENT ON TABLE snowflake_migrate.declared_tables IS 'declared by snowflake_migrate.declare_table()';

CREATE TABLE snowflake_migrate.declared_references (
	relation regclass NOT NULL,
	column_name name NOT NULL,
	referenced regclass NOT NULL,
	condition text,
	path text,
	dangling text NOT NULL CHECK (dangling IN ('error', 'null', 'keep', 'skip')),
	declared_by name NOT NULL DEFAULT current_user,		-- see owner.sql
	CONSTRAINT declared_references_key UNIQUE NULLS NOT DISTINCT (relation, column_name, condition, path)
);
COMMENT ON TABLE snowflake_migrate.declared_references IS 'declared by snowflake_migrate.declare_reference()';

CREATE TABLE snowflake_migrate.declared_no_references (
	relation regclass NOT NULL,
	column_name name NOT NULL,
	path text,						-- in a document; null: the whole column
	CONSTRAINT declared_no_references_key UNIQUE NULLS NOT DISTINCT (relation, column_name, path)
);
COMMENT ON TABLE snowflake_migrate.declared_no_references IS 'declared by snowflake_migrate.declare_no_reference()';

CREATE TABLE snowflake_migrate.declared_created (
	relation regclass PRIMARY KEY,
	column_name name NOT NULL,
	early text NOT NULL DEFAULT 'error' CHECK (early IN ('error', 'pack'))
);
COMMENT ON TABLE snowflake_migrate.declared_created IS 'declared by snowflake_migrate.declare_created()';

CREATE TABLE snowflake_migrate.declared_policies (
	relation regclass NOT NULL,
	constraint_name name NOT NULL,
	policy text NOT NULL
		CHECK (policy IN ('error', 'suffix', 'next_free', 'keep_target', 'keep_source', 'keep_first', 'skip', 'rerank',
						  'renumber')),
	argument text,
	precedence text,				-- which of the rows that clash comes first; null: the target's
	combine jsonb,					-- how columns of rows that become one are combined
	declared_by name NOT NULL DEFAULT current_user,
	PRIMARY KEY (relation, constraint_name)
);
COMMENT ON TABLE snowflake_migrate.declared_policies IS 'declared by snowflake_migrate.declare_policy()';

SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.declared_tables', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.declared_references', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.declared_no_references', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.declared_created', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.declared_policies', '');

/* They say nothing about rows, and snowflake_migrate.adopt(), which anybody may call, looks at them. */
GRANT SELECT ON snowflake_migrate.declared_tables, snowflake_migrate.declared_references,
	snowflake_migrate.declared_no_references, snowflake_migrate.declared_created, snowflake_migrate.declared_policies
	TO PUBLIC;

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
		WHERE NOT EXISTS (
			SELECT FROM pg_attribute AS a
			WHERE a.attrelid = relation_ AND a.attname = g.name AND a.attnum > 0 AND NOT a.attisdropped);
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_column',
			MESSAGE = format('column "%s" of table %s does not exist', missing, relation_);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.columns_exist(regclass, name[])
	IS 'for the declarations of a merge: an error where columns do not exist';

/* An error where a query can't be asked, or would run code of other roles. */
CREATE FUNCTION snowflake_migrate_internal.try_query(query text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	BEGIN
		PERFORM snowflake_migrate_internal.refuse_expressions(ARRAY[query]);
	EXCEPTION
		WHEN insufficient_privilege THEN
			RAISE;
		/* What cannot be parsed says so itself, and runs nothing. */
		WHEN syntax_error_or_access_rule_violation OR feature_not_supported THEN
			NULL;
	END;
	EXECUTE query;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.try_query(text)
	IS 'for the extension''s own use: an error where a query can''t be asked';

/*
 * An error where a table can't be asked for this.  To plan the query would run others' code, and to read it, where a
 * text is taken for a value of a column's type.
 */
CREATE FUNCTION snowflake_migrate_internal.try_expression(
	relation regclass,
	expression text,
	condition text DEFAULT 'false') RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	PERFORM snowflake_internal.refuse_dangerous_code(ARRAY[relation::oid], '{}', ARRAY(
		SELECT (a.attrelid, a.attname)::snowflake_internal.table_column
		FROM pg_attribute AS a WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped));
	PERFORM snowflake_migrate_internal.try_query(
		format('SELECT %s FROM ONLY %s AS %I WHERE %s', expression, relation,
			   (SELECT c.relname FROM pg_class AS c WHERE c.oid = relation), condition));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.try_expression(regclass, text, text)
	IS 'for the extension''s own use: an error where an expression can''t be evaluated in a table';

/*
 * An error where this is no condition on a table's row: in WHERE, PostgreSQL refuses what is about several rows.  One
 * that is an expression without brackets as well means the same wherever it is put.
 */
CREATE FUNCTION snowflake_migrate_internal.try_condition(relation regclass, condition text) RETURNS void
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_migrate_internal.try_expression(relation, condition);
	SELECT snowflake_migrate_internal.try_expression(relation, '1', format('(%s) IS TRUE AND false', condition))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.try_condition(regclass, text)
	IS 'for the declarations of a merge: an error where this is no condition';

/*
 * mode: copy (what is not declared), match, same_id, ignore.  key: the natural key, for match alone.  accept:
 * duplicates (of the natural key), differences (of other columns in matched rows).  ignored_columns: of the sources,
 * which the target lacks.  only: SQL over the row's columns, which rows of a source come.
 */
CREATE FUNCTION snowflake_migrate.declare_table(
	relation regclass,
	mode text,
	key name[] DEFAULT NULL,
	accept text[] DEFAULT '{}',
	ignored_columns name[] DEFAULT '{}',
	"only" text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off
AS $$
#variable_conflict use_column
BEGIN
	IF relation IS NULL OR mode IS NULL OR accept IS NULL OR ignored_columns IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
			MESSAGE = 'only the key and the condition of a table may be null';
	ELSIF mode NOT IN ('copy', 'match', 'same_id', 'ignore') THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('invalid value for "mode": "%s"', mode),
			HINT = 'Valid values are "copy", "match", "same_id" and "ignore".';
	ELSIF (mode = 'match') <> (coalesce(cardinality(key), 0) > 0) THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = CASE mode WHEN 'match' THEN 'mode "match" needs a natural key'
				ELSE format('mode "%s" has no natural key', mode) END,
			HINT = CASE mode WHEN 'match' THEN 'Give in "key" the columns that tell which rows are the same.'
				ELSE 'Leave out "key", which is for mode "match" alone.' END;
	ELSIF NOT accept <@ ARRAY['duplicates', 'differences'] OR (accept <> '{}' AND mode <> 'match') THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('invalid value for "accept" with mode "%s": "%s"', mode, array_to_string(accept, ', ')),
			HINT = 'Mode "match" can accept "duplicates" and "differences"; the others accept nothing.';
	ELSIF "only" IS NOT NULL AND mode = 'ignore' THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'mode "ignore" has no condition', HINT = 'Leave out "only": no row of the table comes.';
	END IF;
	PERFORM snowflake_migrate_internal.columns_exist(relation, key);
	PERFORM snowflake_migrate_internal.try_condition(relation, "only");
	INSERT INTO snowflake_migrate.declared_tables AS d
	VALUES (relation, mode, key, accept, ignored_columns, "only")
	ON CONFLICT (relation) DO UPDATE
		SET mode = excluded.mode, key = excluded.key, accept = excluded.accept,
			ignored_columns = excluded.ignored_columns, condition = excluded.condition,
			declared_by = excluded.declared_by;
END
$$;
COMMENT ON FUNCTION snowflake_migrate.declare_table(regclass, text, name[], text[], name[], text)
	IS 'declares what a merge does with a table';

/* The filter at the head of a path, up to its closing bracket; null where there is none. */
CREATE FUNCTION snowflake_migrate_internal.path_filter(path text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	depth int := 0;
	quoted boolean := false;
	c text;
	n int := position('(' IN path) - 1;
BEGIN
	IF path !~ '^ ?[?][(]' THEN
		RETURN NULL;
	END IF;
	LOOP
		n := n + 1;
		c := substr(path, n, 1);
		EXIT WHEN c = '';
		IF c = E'\\' THEN
			n := n + 1;
		ELSIF c = '"' THEN
			quoted := NOT quoted;
		ELSIF NOT quoted THEN
			depth := depth + CASE c WHEN '(' THEN 1 WHEN ')' THEN -1 ELSE 0 END;
			EXIT WHEN depth = 0;
		END IF;
	END LOOP;
	RETURN left(path, n);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.path_filter(text)
	IS 'for the declarations of a merge: the filter at the head of a path';

/*
 * The steps of a path, as (kind, name, filter): member, wildcard_member, element, elements, keys.  This is the part of
 * the jsonpath language in which a place can be found again to be written to.
 */
CREATE FUNCTION snowflake_migrate_internal.path(
	path text,
	OUT kind text,
	OUT name text,
	OUT filter text) RETURNS SETOF record
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	/* As PostgreSQL writes it: names in quotes, one blank at most. */
	rest text := path::jsonpath::text;
	step text;
BEGIN
	IF rest LIKE 'strict %' THEN
		RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
			MESSAGE = 'strict paths are not supported',
			DETAIL = format('The path is "%s".', path),
			HINT = 'Leave out "strict": what a document lacks is no reference.';
	END IF;
	rest := substring(rest FROM '^[$](.*)');
	WHILE rest <> '' LOOP
		step := substring(rest FROM
			E'^(\\.\\*|\\[\\*\\]|\\[\\d+\\]|\\."(?:[^"\\\\]|\\\\.)*"|\\.keyvalue\\(\\)\\."key"$)');
		EXIT WHEN step IS NULL;
		kind := CASE
			WHEN step = '.*' THEN 'wildcard_member'
			WHEN step = '[*]' THEN 'elements'
			WHEN step LIKE '[%' THEN 'element'
			WHEN step LIKE '."%' THEN 'member'
			ELSE 'keys' END;
		name := CASE kind WHEN 'member' THEN substr(step, 2)::jsonb #>> '{}' WHEN 'element' THEN btrim(step, '[]') END;
		rest := substr(rest, length(step) + 1);
		filter := snowflake_migrate_internal.path_filter(rest);
		IF filter IS NOT NULL THEN
			rest := ltrim(substr(rest, length(filter) + 1));
			filter := '$ ' || ltrim(filter);
		END IF;
		RETURN NEXT;
	END LOOP;
	IF rest IS DISTINCT FROM '' THEN
		RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
			MESSAGE = format('path "%s" is not supported', path),
			HINT = 'A path starts with $ and goes on with .name, .*, [n] or [*], each with or without a filter; '
				'it may end with .keyvalue().key.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.path(text)
	IS 'for the declarations of a merge: the steps of a path through a document';

/*
 * condition: SQL over the row's columns, for which values this is the reference.  path: where in a jsonb or json
 * column.  dangling: what becomes of a value whose row the source does not have (error, null, keep, skip the row).
 * Elements of an array column are references each.
 */
CREATE FUNCTION snowflake_migrate.declare_reference(
	relation regclass,
	column_name name,
	referenced regclass,
	condition text DEFAULT NULL,
	path text DEFAULT NULL,
	dangling text DEFAULT 'error') RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off
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
			MESSAGE = format('invalid value for "dangling": "%s"', dangling),
			HINT = 'Valid values are "error", "null", "keep" and "skip".';
	END IF;
	PERFORM snowflake_migrate_internal.columns_exist(relation, ARRAY[column_name]);
	PERFORM snowflake_migrate_internal.columns_exist(referenced, '{}');

	SELECT format_type(a.atttypid, NULL),
			snowflake_migrate_internal.without_domain(a.atttypid) IN ('jsonb'::regtype, 'json'::regtype)
		INTO type, is_document
		FROM pg_attribute AS a WHERE a.attrelid = relation AND a.attname = column_name;
	IF is_document <> (path IS NOT NULL) THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = CASE WHEN is_document THEN format('column "%s" of table %s needs a path', column_name, relation)
				ELSE format('column "%s" of table %s cannot have a path', column_name, relation) END,
			DETAIL = format('The column has type %s.', type),
			HINT = CASE WHEN is_document THEN 'Give the path to the ids in its documents.'
				ELSE 'A path is for columns of the types jsonb and json.' END;
	END IF;
	PERFORM FROM snowflake_migrate_internal.path(path);
	IF condition IS NOT NULL THEN
		PERFORM snowflake_migrate_internal.try_condition(relation, condition);
	END IF;

	INSERT INTO snowflake_migrate.declared_references AS d
	VALUES (relation, column_name, referenced, condition, path, dangling)
	ON CONFLICT ON CONSTRAINT declared_references_key DO UPDATE
		SET referenced = excluded.referenced, dangling = excluded.dangling, declared_by = excluded.declared_by;
	DELETE FROM snowflake_migrate.declared_no_references AS n
		WHERE (n.relation, n.column_name) = (declare_reference.relation, declare_reference.column_name)
			AND (n.path IS NULL OR n.path = declare_reference.path::jsonpath::text);
END
$$;
COMMENT ON FUNCTION snowflake_migrate.declare_reference(regclass, name, regclass, text, text, text)
	IS 'declares a reference without a foreign key';

/*
 * The column holds no ids, or none at this path in its documents, though it may look as if: the check has no more to
 * ask about it.  Of a column whose references have conditions: no ids where none of them holds.
 */
CREATE FUNCTION snowflake_migrate.declare_no_reference(relation regclass, column_name name, path text DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off
AS $$
#variable_conflict use_column
DECLARE
	/* As PostgreSQL writes it. */
	its_path CONSTANT text := path::jsonpath::text;
BEGIN
	IF relation IS NULL OR column_name IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
			MESSAGE = 'only the path may be null';
	END IF;
	PERFORM snowflake_migrate_internal.columns_exist(relation, ARRAY[column_name]);
	PERFORM FROM snowflake_migrate_internal.path(path);
	IF path IS NOT NULL AND NOT EXISTS (
			SELECT FROM pg_attribute AS a
			WHERE a.attrelid = relation AND a.attname = column_name
				AND snowflake_migrate_internal.without_domain(a.atttypid) IN ('jsonb'::regtype, 'json'::regtype)) THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('column "%s" of table %s cannot have a path', column_name, relation),
			HINT = 'A path is for columns of the types jsonb and json.';
	ELSIF EXISTS (SELECT FROM snowflake_migrate.declared_references AS r
				  WHERE r.relation = declare_no_reference.relation
					AND r.column_name = declare_no_reference.column_name
					AND CASE WHEN its_path IS NULL THEN r.condition IS NULL OR r.path IS NOT NULL
						ELSE r.path::jsonpath::text = its_path END) THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = CASE WHEN path IS NULL
				THEN format('column "%s" of table %s is declared as a reference', column_name, relation)
				ELSE format('path %s in column "%s" of table %s is declared as a reference', path, column_name,
							relation) END,
			HINT = 'Delete its rows from snowflake_migrate.declared_references first.';
	END IF;
	INSERT INTO snowflake_migrate.declared_no_references VALUES (relation, column_name, its_path)
		ON CONFLICT DO NOTHING;
END
$$;
COMMENT ON FUNCTION snowflake_migrate.declare_no_reference(regclass, name, text)
	IS 'declares that a column holds no ids';

/* The column holds the time that a row's new id tells: a timestamp, with or without time zone, or a date. */
CREATE FUNCTION snowflake_migrate.declare_created(relation regclass, column_name name, early text DEFAULT 'error')
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off
AS $$
#variable_conflict use_column
DECLARE
	type regtype;
BEGIN
	IF relation IS NULL OR column_name IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
			MESSAGE = 'neither the table nor the column may be null';
	ELSIF early IS NULL OR early NOT IN ('error', 'pack') THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('invalid value for early: %s', coalesce(quote_literal(early), 'NULL')),
			HINT = 'What becomes of rows that are older than the layout''s epoch is "error" or "pack".';
	END IF;
	PERFORM snowflake_migrate_internal.columns_exist(relation, ARRAY[column_name]);
	SELECT a.atttypid INTO type FROM pg_attribute AS a WHERE a.attrelid = relation AND a.attname = column_name;
	IF type NOT IN ('timestamptz'::regtype, 'timestamp'::regtype, 'date'::regtype) THEN
		RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
			MESSAGE = format('column "%s" of table %s holds no time', column_name, relation),
			DETAIL = format('The column has type %s.', type),
			HINT = 'Give a column of type timestamp with time zone, timestamp without time zone or date.';
	END IF;
	INSERT INTO snowflake_migrate.declared_created AS d VALUES (relation, column_name, early)
	ON CONFLICT (relation) DO UPDATE SET column_name = excluded.column_name, early = excluded.early;
END
$$;
COMMENT ON FUNCTION snowflake_migrate.declare_created(regclass, name, text)
	IS 'declares which column holds the time of creation';

/*
 * The columns of a unique index that a policy may change: for suffix the only one of a text type, for next_free and
 * rerank the only one of an integer type, of those that are no references.
 */
CREATE FUNCTION snowflake_migrate_internal.policy_columns(relation_ regclass, constraint_ name, policy_ text)
RETURNS name[]
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT coalesce(array_agg(a.attname ORDER BY a.attnum), '{}')
	FROM pg_index AS i
		JOIN pg_class AS x ON x.oid = i.indexrelid AND x.relname = constraint_
		JOIN pg_attribute AS a ON a.attrelid = i.indrelid
		JOIN pg_type AS t ON t.oid = snowflake_migrate_internal.without_domain(a.atttypid)
	WHERE i.indrelid = relation_ AND a.attnum > 0
		AND (a.attnum = ANY (i.indkey)
			 OR (i.indexprs IS NOT NULL
				 AND EXISTS (
					SELECT FROM pg_depend AS d
					WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
						AND d.objid = i.indexrelid AND d.refobjid = relation_ AND d.refobjsubid = a.attnum)))
		AND CASE policy_
			WHEN 'suffix' THEN t.typcategory = 'S'
			ELSE t.oid IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype) END
		AND NOT EXISTS (
			SELECT FROM pg_constraint AS f
			WHERE f.contype = 'f' AND f.conrelid = relation_ AND a.attnum = ANY (f.conkey))
		AND NOT EXISTS (
			SELECT FROM snowflake_migrate.declared_references AS r
			WHERE r.relation = relation_ AND r.column_name = a.attname)
		AND a.attgenerated = ''
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.policy_columns(regclass, name, text)
	IS 'for snowflake_migrate.declare_policy(): the columns that a policy may change';

/* Raises an error where a policy has an argument that it does not take, or not the one that it needs. */
CREATE FUNCTION snowflake_migrate_internal.check_policy_argument(relation_ regclass, policy text, argument text)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF argument IS NULL AND policy = 'rerank' THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'policy "rerank" needs an argument',
			HINT = 'Give the expression that ranks are ordered by, for example "rating DESC".';
	ELSIF argument IS NOT NULL AND policy NOT IN ('suffix', 'rerank') THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('policy "%s" does not take an argument', policy),
			HINT = 'Only the policies "suffix" and "rerank" take one.';
	ELSIF argument = '' THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('argument of policy "%s" must not be empty', policy);
	ELSIF policy = 'rerank' THEN
		PERFORM snowflake_migrate_internal.try_expression(
			relation_, format('row_number() OVER (ORDER BY %s)', argument));
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_policy_argument(regclass, text, text)
	IS 'for snowflake_migrate.declare_policy(): an error where the argument is not as it must be';

/*
 * Raises an error where a policy takes no precedence, needs one, or where this is no list for ORDER BY.  In an
 * aggregate, PostgreSQL refuses what is about several rows; one that stands without brackets as well means the same
 * wherever it is put.
 */
CREATE FUNCTION snowflake_migrate_internal.check_precedence(
	relation_ regclass,
	policy text,
	precedence text,
	changed name) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	foreign_key record;
BEGIN
	IF precedence IS NULL AND policy = 'keep_first' THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'policy "keep_first" needs a precedence',
			HINT = 'Give what the row that stays comes first by, for example "last_login DESC NULLS LAST".';
	ELSIF precedence IS NULL THEN
		RETURN;
	ELSIF policy NOT IN ('suffix', 'next_free', 'keep_target', 'keep_source', 'keep_first', 'skip') THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('policy "%s" does not take a precedence', policy),
			HINT = 'Only "suffix", "next_free", "keep_target", "keep_source", "keep_first" and "skip" take one.';
	END IF;
	PERFORM snowflake_migrate_internal.try_expression(relation_, '1', 'false ORDER BY ' || precedence);
	PERFORM snowflake_migrate_internal.try_expression(relation_, format('array_agg(true ORDER BY %s)', precedence));
	/* A row of the target may be the one that is changed, and with triggers off nothing follows it. */
	SELECT f.conname, f.conrelid::regclass AS child INTO foreign_key
		FROM pg_constraint AS f
			JOIN pg_attribute AS a ON a.attrelid = f.confrelid AND a.attnum = ANY (f.confkey)
				AND (a.attname = changed
					 OR changed IN (SELECT snowflake_migrate_internal.made_of(f.confrelid, a.attname)))
		WHERE f.contype = 'f' AND f.confrelid = relation_
		ORDER BY f.conname LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('policy "%s" cannot take a precedence for column "%s"', policy, changed),
			DETAIL = format('The foreign key "%s" of table %s refers to it, and would not follow rows of the target.',
							foreign_key.conname, foreign_key.child),
			HINT = 'Let it refer to the primary key, or leave the precedence out.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_precedence(regclass, text, text, name)
	IS 'for snowflake_migrate.declare_policy(): an error where the precedence is not as it must be';

/*
 * The aggregate that combines a column by one of the ways that have a name, over the values of rows in the order of an
 * expression; null: the way is an expression.  What or and and mean for numbers, is bit by bit.
 */
CREATE FUNCTION snowflake_migrate_internal.combining(way text, column_name text, type oid, ordered_by text)
RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT format(CASE
			WHEN way IN ('sum', 'max', 'min') THEN way || '(%1$s ORDER BY %2$s)'
			WHEN way IN ('or', 'and') AND y.oid = 'boolean'::regtype
				THEN 'bool_' || way || '(%1$s)'
			WHEN way IN ('or', 'and') THEN 'bit_' || way || '(%1$s)'
			WHEN way IN ('first', 'last')
				THEN '(array_agg(%1$s ORDER BY %2$s' || CASE way WHEN 'last' THEN ' DESC' ELSE '' END
					|| ') FILTER (WHERE %1$s IS NOT NULL))[1]' END, column_name, ordered_by)
	FROM pg_type AS y
	WHERE y.oid = snowflake_migrate_internal.without_domain(type)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.combining(text, text, oid, text)
	IS 'for snowflake_migrate.merge()''s own use: the aggregate that combines a column';

/* Why a column of rows that become one can't be combined; null: it can be. */
CREATE FUNCTION snowflake_migrate_internal.not_combined(relation_ regclass, column_name name) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE
			WHEN a.attgenerated <> '' THEN 'It is generated.'
			WHEN a.attidentity = 'a' THEN 'It is GENERATED ALWAYS AS IDENTITY.'
			WHEN i.label IS NOT NULL THEN format('It is in "%s", which rows as they become must not violate.', i.label)
			WHEN EXISTS (SELECT FROM pg_constraint AS f
						 WHERE f.contype = 'f' AND f.conrelid = relation_ AND a.attnum = ANY (f.conkey))
				OR EXISTS (SELECT FROM snowflake_migrate.declared_references AS r
						   WHERE r.relation = relation_ AND r.column_name = a.attname) THEN 'It is a reference.'
			WHEN EXISTS (SELECT FROM pg_partitioned_table AS p
						 WHERE p.partrelid = relation_ AND (a.attnum = ANY (p.partattrs) OR p.partexprs IS NOT NULL))
				THEN 'It is in the partition key.' END
	FROM pg_attribute AS a
		LEFT JOIN LATERAL (
			SELECT x.relname
			FROM snowflake_migrate_internal.with_partitions(relation_) AS o (oid)
				JOIN pg_index AS i ON i.indrelid = o.oid AND (i.indisunique OR i.indisexclusion)
				JOIN pg_class AS x ON x.oid = i.indexrelid
				JOIN pg_attribute AS b ON b.attrelid = i.indrelid AND b.attname = a.attname
			WHERE b.attnum = ANY (i.indkey) OR (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL) AND EXISTS (
				SELECT FROM pg_depend AS d
				WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
					AND d.refclassid = 'pg_class'::regclass AND d.refobjid = i.indrelid AND d.refobjsubid = b.attnum)
			ORDER BY o.oid <> relation_, x.relname
			LIMIT 1) AS i (label) ON true
	WHERE a.attrelid = relation_ AND a.attname = not_combined.column_name
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.not_combined(regclass, name)
	IS 'for snowflake_migrate.declare_policy(): why a column can''t be combined';

/* Raises an error where a column can't be combined in this way, an aggregate or an expression over both rows. */
CREATE FUNCTION snowflake_migrate_internal.try_combine(relation_ regclass, column_name name, way text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	type oid;
	type_name text;
	aggregate text;
BEGIN
	SELECT a.atttypid, format_type(a.atttypid, a.atttypmod) INTO type, type_name
		FROM pg_attribute AS a WHERE a.attrelid = relation_ AND a.attname = try_combine.column_name;
	aggregate := snowflake_migrate_internal.combining(way, quote_ident(column_name), type, '1');
	BEGIN
		IF aggregate IS NOT NULL THEN
			PERFORM snowflake_migrate_internal.try_expression(relation_,
				format('CAST(%s AS %s)', aggregate, type_name));
			RETURN;
		END IF;
		PERFORM snowflake_migrate_internal.try_expression(relation_, '1');
		PERFORM snowflake_migrate_internal.try_query(
			format('SELECT %s FROM ONLY %s AS kept, ONLY %s AS gone WHERE false', way, relation_, relation_));
		/* What is about more than these two rows is refused in WHERE. */
		PERFORM snowflake_migrate_internal.try_query(
			format('SELECT FROM ONLY %s AS kept, ONLY %s AS gone WHERE CAST((%s) AS %s) IS NULL AND false',
				   relation_, relation_, way, type_name));
	EXCEPTION
		WHEN insufficient_privilege THEN
			RAISE;
		WHEN syntax_error_or_access_rule_violation OR feature_not_supported THEN
			RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
				MESSAGE = format('column "%s" of table %s cannot be combined by "%s"', column_name, relation_, way),
				DETAIL = format('The column has type %s: %s.', type_name, SQLERRM),
				HINT = 'Give "sum", "max", "min", "or", "and", "first", "last", or an expression over the row that '
					'stays, kept, and the one that goes, gone, for example "kept.gold + gone.gold".';
	END;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.try_combine(regclass, name, text)
	IS 'for snowflake_migrate.declare_policy(): an error where a column can''t be combined in a way';

/* Raises an error where columns of rows that become one can't be combined as it is said. */
CREATE FUNCTION snowflake_migrate_internal.check_combine(relation_ regclass, policy text, combine jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	c record;
	reason text;
BEGIN
	IF combine IS NULL THEN
		RETURN;
	ELSIF policy NOT IN ('keep_target', 'keep_source', 'keep_first') THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('policy "%s" combines no rows', policy),
			HINT = 'Rows become one by the policies "keep_target", "keep_source" and "keep_first".';
	ELSIF jsonb_typeof(combine) <> 'object' OR combine = '{}'
		OR EXISTS (SELECT FROM jsonb_each(combine) AS e WHERE jsonb_typeof(e.value) <> 'string') THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'combine must be an object of column names, each with the way in which the column is combined',
			DETAIL = format('It is %s.', combine),
			HINT = 'For example {"gold": "sum", "level": "max"}.';
	END IF;
	FOR c IN SELECT e.key::name AS name, e.value AS way FROM jsonb_each_text(combine) AS e ORDER BY e.key LOOP
		PERFORM snowflake_migrate_internal.columns_exist(relation_, ARRAY[c.name]);
		reason := snowflake_migrate_internal.not_combined(relation_, c.name);
		IF reason IS NOT NULL THEN
			RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
				MESSAGE = format('column "%s" of table %s cannot be combined', c.name, relation_),
				DETAIL = reason;
		END IF;
		PERFORM snowflake_migrate_internal.try_combine(relation_, c.name, c.way);
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_combine(regclass, text, jsonb)
	IS 'for snowflake_migrate.declare_policy(): an error where columns can''t be combined as it is said';

/*
 * constraint: a unique constraint, the primary key, or a unique index of the table.  precedence: a list for ORDER BY
 * over the row's columns.  combine: for columns, how values of rows that become one are combined: an aggregate, or SQL
 * over the rows kept and gone.
 */
CREATE FUNCTION snowflake_migrate.declare_policy(
	relation regclass,
	constraint_name name,
	policy text,
	argument text DEFAULT NULL,
	precedence text DEFAULT NULL,
	combine jsonb DEFAULT NULL) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off
AS $$
#variable_conflict use_column
DECLARE
	is_primary boolean;
	changed name[];
BEGIN
	IF relation IS NULL OR constraint_name IS NULL OR policy IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
			MESSAGE = 'only the argument, the precedence and combine of a policy may be null';
	ELSIF policy <> ALL ('{error,suffix,next_free,keep_target,keep_source,keep_first,skip,rerank,renumber}') THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('invalid value for "policy": "%s"', policy),
			HINT = 'Valid values are "error", "suffix", "next_free", "keep_target", "keep_source", "keep_first", '
				'"skip", "rerank" and "renumber".';
	END IF;
	PERFORM snowflake_migrate_internal.columns_exist(relation, '{}');
	SELECT i.indisprimary INTO is_primary
		FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid
		WHERE i.indrelid = relation AND i.indisunique AND x.relname = constraint_name;
	IF NOT FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_object',
			MESSAGE = format('"%s" is not a unique constraint or index of table %s', constraint_name, relation),
			HINT = coalesce((
				SELECT format('The table has %s.', string_agg(quote_ident(x.relname), ', ' ORDER BY x.relname))
				FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid
				WHERE i.indrelid = relation AND i.indisunique), 'The table has none.');
	END IF;
	PERFORM snowflake_migrate_internal.check_policy_argument(relation, policy, argument);
	IF policy IN ('suffix', 'next_free', 'rerank') THEN
		changed := snowflake_migrate_internal.policy_columns(relation, constraint_name, policy);
		IF cardinality(changed) <> 1 THEN
			RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
				MESSAGE = format('cannot tell which column of "%s" policy "%s" changes', constraint_name, policy),
				DETAIL = format('It has %s columns of %s type that are not references.', cardinality(changed),
								CASE policy WHEN 'suffix' THEN 'a text' ELSE 'an integer' END);
		END IF;
	ELSIF policy = 'renumber' AND NOT is_primary THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'policy "renumber" is for primary keys alone',
			DETAIL = format('"%s" is not the primary key of table %s.', constraint_name, relation);
	END IF;
	PERFORM snowflake_migrate_internal.check_precedence(relation, policy, precedence, changed[1]);
	PERFORM snowflake_migrate_internal.check_combine(relation, policy, combine);
	INSERT INTO snowflake_migrate.declared_policies AS d
	VALUES (relation, constraint_name, policy, argument, precedence, combine)
	ON CONFLICT (relation, constraint_name) DO UPDATE
		SET policy = excluded.policy, argument = excluded.argument, precedence = excluded.precedence,
			combine = excluded.combine, declared_by = excluded.declared_by;
END
$$;
COMMENT ON FUNCTION snowflake_migrate.declare_policy(regclass, name, text, text, text, jsonb)
	IS 'declares what becomes of rows that clash';
