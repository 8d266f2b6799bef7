/*
 * How queries are written here: as templates, indented as any other SQL, with named placeholders.  fill() puts the
 * names of a run's tables and columns in, and quotes them; nothing else in this extension has to.
 *
 *     {target}        SQL: the name of a table as names() gives it, or a query in brackets
 *     {"column"}      an identifier
 *     {'source'}      a literal, or NULL
 *     {m.o#}          m.o1, m.o2, ..: an item for each column of the key; @ is the name of that column in the target
 *     {c.e#}          c.e1, c.e2, ..: an item for each expression of a unique constraint
 *     {m.o#::text}    a key for people: its value, or all its values in brackets
 *
 * Two keys are compared as rows: ({m.o#}) = ({c.o#}).
 *
 * fill() looks at a template once.  What it puts in is never looked at again, so that a table called {map} is
 * harmless.  Never call replace() or format() on SQL that is finished.
 */

/* An item for each column of a key: # in it is the number of the column, and @ its name. */
CREATE FUNCTION snowflake_migrate_internal.key_list(format text, key name[], separator text DEFAULT ', ') RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RETURN (
		SELECT string_agg(replace(replace(format, '#', n::text), '@', quote_ident(key[n])), separator ORDER BY n)
		FROM generate_subscripts(key, 1) AS n);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.key_list(text, name[], text)
	IS 'for snowflake_migrate.merge()''s own use: a list with an item for each column of a key';

/* A key for people: the value, or all values in brackets; null where there is no key. */
CREATE FUNCTION snowflake_migrate_internal.key_text(format text, key name[]) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE cardinality(key)
			WHEN 0 THEN 'NULL::text'
			WHEN 1 THEN snowflake_migrate_internal.key_list(format, key) || '::text'
			ELSE 'ROW (' || snowflake_migrate_internal.key_list(format, key) || ')::text' END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.key_text(text, name[])
	IS 'for snowflake_migrate.merge()''s own use: a key as text';

/* What comes in the place of one placeholder. */
CREATE FUNCTION snowflake_migrate_internal.placeholder(item text, names jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	name CONSTANT text := btrim(item, '''"');
	key name[];
BEGIN
	IF item ~ '[#@]' THEN
		key := ARRAY(
			SELECT k.name
			FROM jsonb_array_elements_text(names -> CASE WHEN item ~ E'\\me#' THEN 'expressions' ELSE 'key' END)
				WITH ORDINALITY AS k (name, n)
			ORDER BY k.n);
		IF item LIKE '%::text' THEN
			RETURN snowflake_migrate_internal.key_text(left(item, -length('::text')), key);
		END IF;
		RETURN snowflake_migrate_internal.key_list(item, key);
	ELSIF NOT names ? name OR (names ->> name IS NULL AND item NOT LIKE '''%') THEN
		RAISE EXCEPTION USING ERRCODE = 'internal_error', MESSAGE = format('no value for placeholder {%s}', item);
	END IF;
	RETURN CASE left(item, 1) WHEN '"' THEN quote_ident(names ->> name) WHEN '''' THEN quote_nullable(names ->> name)
		ELSE names ->> name END;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.placeholder(text, jsonb)
	IS 'for snowflake_migrate_internal.fill(): what comes in the place of a placeholder';

/* The query that a template becomes. */
CREATE FUNCTION snowflake_migrate_internal.fill(template text, names jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	parts CONSTANT text[] := string_to_array(template, '{');
	filled text := parts[1];
	item text;
BEGIN
	FOR n IN 2 .. cardinality(parts) LOOP
		item := split_part(parts[n], '}', 1);
		filled := filled || CASE
			/* A bracket, and no placeholder. */
			WHEN strpos(parts[n], '}') < 2 THEN '{' || parts[n]
			/* Most are a name, and nothing more. */
			ELSE coalesce(names ->> item, snowflake_migrate_internal.placeholder(item, names))
				|| substr(parts[n], length(item) + 2) END;
	END LOOP;
	RETURN filled;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.fill(text, jsonb)
	IS 'for snowflake_migrate.merge()''s own use: the query that a template becomes';

/* A table of a run, in the run's schema.  Without a SET clause, and strict in all that it calls, it is inlined. */
CREATE FUNCTION snowflake_migrate_internal.relation(run bigint, name text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN 'snowflake_merge_' || run::text || '.' || quote_ident(name);
COMMENT ON FUNCTION snowflake_migrate_internal.relation(bigint, text)
	IS 'for snowflake_migrate.merge()''s own use: a table of a run';

/* A text as lines of a comment, whatever names in it have. */
CREATE FUNCTION snowflake_migrate_internal.commented(lines text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT '-- ' || regexp_replace(lines, E'[\n\r]+', E'\\&-- ', 'g') $$;
COMMENT ON FUNCTION snowflake_migrate_internal.commented(text) IS 'a text as a comment';

/*
 * A statement that PostgreSQL has written under standard_conforming_strings, as it reads the same without it: there, a
 * backslash would hide the end of a literal.
 */
CREATE FUNCTION snowflake_migrate_internal.portable(statement text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN strpos(statement, E'\\') = 0 THEN statement ELSE (
			SELECT string_agg(CASE WHEN m.token[1] ^@ E'\'' AND strpos(m.token[1], E'\\') > 0
					THEN 'E' || replace(m.token[1], E'\\', E'\\\\') ELSE m.token[1] END, '' ORDER BY m.n)
			FROM regexp_matches(statement, E'"(?:[^"]|"")*"|E?\'(?:[^\']|\'\')*\'|[^"\'E]+|E|.', 'g')
				WITH ORDINALITY AS m (token, n)) END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.portable(text)
	IS 'a statement, whatever standard_conforming_strings is';

/*
 * The unique and exclusion constraints of a table and its partitions that are deferrable: that two rows clash in one is
 * found by a trigger at the end of a transaction, and not where triggers do not fire.
 */
CREATE FUNCTION snowflake_migrate_internal.deferrable_constraints(relation regclass) RETURNS SETOF pg_constraint
LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 2 SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT c.*
	FROM snowflake_migrate_internal.with_partitions(relation) AS p (oid)
		JOIN pg_constraint AS c ON c.conrelid = p.oid AND c.contype IN ('p', 'u', 'x') AND c.condeferrable
			AND c.conparentid = 0
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.deferrable_constraints(regclass)
	IS 'for snowflake_migrate.merge()''s own use: constraints that a trigger looks at';

/*
 * A comparison by one operator, or by what = is where that is null.  Outside of pg_catalog another role may have one of
 * the same name for the types that the values have: only for an operator's own types is there one alone.  A text beside
 * a char(n) would be compared as texts are.
 */
CREATE FUNCTION snowflake_migrate_internal.compared(operator oid, left_ text, right_ text) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
	RETURN coalesce((
			SELECT CASE WHEN n.nspname = 'pg_catalog' AND o.oprleft <> 'bpchar'::regtype
				THEN format('%s OPERATOR(pg_catalog.%s) %s', left_, o.oprname, right_)
				ELSE format('CAST(%s AS %s) OPERATOR(%I.%s) CAST(%s AS %s)', left_, format_type(o.oprleft, -1),
							n.nspname, o.oprname, right_, format_type(o.oprright, -1)) END
			FROM pg_operator AS o JOIN pg_namespace AS n ON n.oid = o.oprnamespace
			WHERE o.oid = operator),
		format('%s OPERATOR(pg_catalog.=) %s', left_, right_));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.compared(oid, text, text)
	IS 'for snowflake_migrate.merge()''s own use: a comparison by one operator';

/*
 * A condition on rows of two tables, by their aliases: that the child refers to the parent by a foreign key.
 * In PL/pgSQL, which keeps the query's plan.
 */
CREATE FUNCTION snowflake_migrate_internal.refers_by(foreign_key oid, parent text, child text) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
	RETURN (
		SELECT string_agg(snowflake_migrate_internal.compared(
				c.operator, format('%s.%I', parent, b.attname), snowflake_migrate_internal.collated(
					format('%s.%I', child, a.attname), a.attcollation, b.attcollation)), ' AND ' ORDER BY c.n)
		FROM pg_constraint AS f
			CROSS JOIN LATERAL unnest(f.conkey, f.confkey, f.conpfeqop)
				WITH ORDINALITY AS c (attnum, parent_attnum, operator, n)
			JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = c.attnum
			JOIN pg_attribute AS b ON b.attrelid = f.confrelid AND b.attnum = c.parent_attnum
		WHERE f.oid = foreign_key);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refers_by(oid, text, text)
	IS 'for snowflake_migrate.merge()''s own use: that a row refers to another by a foreign key';

/*
 * The name of another column beside one: where it would be longer than a name may be, a hash stands for the column's,
 * as names that begin alike would be cut to the same.
 */
CREATE FUNCTION snowflake_migrate_internal.beside(word text, column_ text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT word || ' ' || CASE WHEN octet_length(word || ' ' || column_) < 64 THEN column_
		ELSE snowflake_migrate_internal.digest(column_) END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.beside(text, text)
	IS 'for snowflake_migrate.merge()''s own use: the name of a column beside another';

/*
 * What the queries for one table of a run have in common:
 *
 *     run, no    the run's number, and the table's in its plan; oid: the target's table
 *     key        the columns of the key, for # and @; first_key: the first of them
 *     kind       id: its key is renumbered; key: it has one all the same; none
 *     comes      whether a row of all_rows() gets into the target
 *     table      the table of the target, by its name: to be written to, or (as a literal) for the report
 *     target     the same, to be read
 *     name       its name without a schema, under which expressions of indexes and constraints know its columns
 *     map        which row of which source became which: source, o1 .., n1 .., action
 *     change     what policies changed, of the target's rows (source 0), too; rank, former: what these were before
 *     own, lost, edited  of a target in use (in_use.sql)
 *     unchanged  which rows were as an earlier run had left them
 *     target_schema  the schema of the target's table
 *     nulls      as many as the key has columns
 *     sources    the names of the sources, in their order
 *     of_map_no  the number of the map, where it is a partition: to be put before other columns of an INSERT and, as
 *                map_no, of its values
 */
CREATE FUNCTION snowflake_migrate_internal.names(run_ bigint, no_ int) RETURNS jsonb
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
BEGIN
	RETURN (
		SELECT jsonb_build_object(
			'run', run_,
			'no', no_,
			'oid', t.relation::oid,
			'kind', t.kind,
			'comes', CASE t.kind WHEN 'none' THEN 'true' ELSE '"merge action" IN (''c'', ''r'')' END,
			'table', t.relation::text,
			'target', snowflake_migrate_internal.only(t.relation),
			'name', c.relname,
			'target_schema', c.relnamespace::regnamespace,
			/*
			 * Of a run that is taken back before it was finished, a query for what it has brought.  The map itself
			 * stays as it was made: it is a superuser's (owner.sql).
			 */
			'map', coalesce(
				(SELECT format('(SELECT m.* FROM %s AS m WHERE ',
							   snowflake_migrate_internal.relation(run_, 'map_' || no_))
					|| string_agg(format('(m.source <> %s OR NOT (%s))', s.source, s.not_brought), ' AND '
								  ORDER BY s.source)
					|| ')'
				 FROM snowflake_migrate_internal.plan_sources AS s
				 WHERE s.run = run_ AND s.no = no_ AND s.not_brought IS NOT NULL),
				snowflake_migrate_internal.relation(run_, 'map_' || no_)),
			'change', snowflake_migrate_internal.relation(run_, 'change_' || no_),
			'rank', snowflake_migrate_internal.relation(run_, 'rank_' || no_),
			'former', snowflake_migrate_internal.relation(run_, 'former_' || no_),
			'unchanged', snowflake_migrate_internal.relation(run_, 'unchanged_' || no_),
			'own', snowflake_migrate_internal.relation(run_, 'own_' || no_),
			'lost', snowflake_migrate_internal.relation(run_, 'lost_' || no_),
			'edited', snowflake_migrate_internal.relation(run_, 'edited_' || no_),
			'key', t.key,
			'first_key', t.key[1],
			'nulls', array_to_string(array_fill('NULL'::text, ARRAY[coalesce(cardinality(t.key), 0)]), ', '),
			'of_map_no', CASE t.kind WHEN 'id' THEN 'no, ' ELSE '' END,
			'map_no', CASE t.kind WHEN 'id' THEN no_ || ', ' ELSE '' END,
			'sources', r.sources::text)
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN snowflake_migrate.runs AS r USING (run)
			LEFT JOIN pg_class AS c ON c.oid = t.relation
		WHERE t.run = run_ AND t.no = no_);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.names(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: the names in the queries for a table';

/*
 * An expression for what names the row s in a report: its key, or all of it (whole); a cast could be its table's
 * owner's.
 */
CREATE FUNCTION snowflake_migrate_internal.row_text(key name[], whole text DEFAULT 's.*') RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE cardinality(key) WHEN 0 THEN 'left(ROW (' || whole || ')::text, 100)'
			ELSE snowflake_migrate_internal.key_text('s.@', key) END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.row_text(name[], text)
	IS 'for snowflake_migrate.merge()''s own use: an expression for a row''s key';
