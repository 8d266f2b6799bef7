/*
 * The rows of a source as they become in the target: every value that refers to a key is replaced through the map of
 * that key, all others are taken as they are.  Clashes, copying and the proof afterwards read these same rows.
 *
 * Maps are named map_NO in the run's schema, with the columns source, o1 .. oN (old key), n1 .. nN (new key) and
 * action, which read_map() writes out:
 *
 *     c  copied        a new row
 *     r  kept_source   a row of the target takes the values of the source's
 *     m  matched       a row that the target has, or that another source brings
 *     k  kept_target   as m, by a policy
 *     s  skipped       no row, and no new key
 *     b  left_behind   as s, by a condition
 *
 * So c and r are the rows that come, and all but s and b have a new key.  Among rows of the target (target_rows()), t
 * stays as it is, and a source's takes the place of x.
 *
 * What a policy changed is in change_NO: source (0: a row of the target), o1 .. oN, tries, and the changed columns,
 * null where they stay.  What the target's rows were before is in rank_NO (old and new ranks) and former_NO (rows that
 * took a source's values).
 *
 * Of a target in use, own_NO has the keys that entries had before they got another row's (source, o1 .., n1 .., again:
 * the entry has its own key again, and its row is still to be copied), and lost_NO (source, o1 .., name) the columns
 * that became null, since what they referred to was deleted meanwhile.  edited_NO (n1 ..) has the rows that users had
 * changed before their ranks were numbered anew.
 *
 * unchanged_NO (run, n1 ..) has the rows that this run changes and that were as the earlier run had left them.
 */

/* A type as it is cast: the base of a domain, and what an array has as elements (of: what kind of type these are). */
CREATE FUNCTION snowflake_migrate_internal.cast_traits(
	type oid,
	typmod int,
	OUT base oid,
	OUT base_typmod int,
	OUT name name,
	OUT category "char",
	OUT element oid,
	OUT of "char")
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN y.typtype = 'd' THEN (snowflake_migrate_internal.base_type(type, typmod)).base ELSE y.oid END,
		CASE WHEN y.typtype = 'd' THEN (snowflake_migrate_internal.base_type(type, typmod)).base_typmod ELSE typmod END,
		y.typname, y.typcategory, e.oid, coalesce(e.typtype, y.typtype)
	FROM pg_type AS y LEFT JOIN pg_type AS e ON e.oid = y.typelem AND y.typcategory = 'A'
	WHERE y.oid = type
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.cast_traits(oid, int)
	IS 'for snowflake_migrate_internal.cast(): a type as it is cast';

/* The attributes of a composite type, in order: a value's text has no more than their order. */
CREATE FUNCTION snowflake_migrate_internal.attributes(type oid) RETURNS name[]
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT ARRAY(
		SELECT a.attname
		FROM pg_type AS y JOIN pg_attribute AS a ON a.attrelid = y.typrelid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE y.oid = type
		ORDER BY a.attnum)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.attributes(oid)
	IS 'for snowflake_migrate_internal.cast(): the attributes of a composite type';

/*
 * What has to follow a value of one type so that it becomes one of another without a loss; null where nothing does
 * that.  Types that both schemas have under one name (enums, composite types, arrays of them) go by their text.
 */
CREATE FUNCTION snowflake_migrate_internal.cast(from_type oid, from_typmod int, to_type oid, to_typmod int) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	integers CONSTANT oid[] := ARRAY['smallint'::regtype, 'integer'::regtype, 'bigint'::regtype];
	target CONSTANT text := format_type(to_type, CASE WHEN to_type = 'varchar'::regtype THEN -1 ELSE to_typmod END);
	f record;
	t record;
BEGIN
	IF from_type = to_type AND from_typmod = to_typmod THEN
		RETURN '';
	END IF;
	f := snowflake_migrate_internal.cast_traits(from_type, from_typmod);
	t := snowflake_migrate_internal.cast_traits(to_type, to_typmod);
	/* A value that is cast to a domain is cut to its length. */
	IF to_type <> t.base AND t.base IN ('varchar'::regtype, 'bpchar'::regtype) AND t.base_typmod <> -1
		AND NOT (f.base = t.base AND f.base_typmod BETWEEN 0 AND t.base_typmod) THEN
		RETURN NULL;
	ELSIF f.base = t.base THEN
		/* A length that is too great is an error when the row is stored; digits would be lost. */
		IF t.base_typmod <> -1 AND t.base <> 'varchar'::regtype AND f.base_typmod <> t.base_typmod
			AND NOT (t.base IN ('bpchar'::regtype, 'varbit'::regtype)
					 AND f.base_typmod BETWEEN 0 AND t.base_typmod) THEN
			RETURN NULL;
		END IF;
		RETURN '::' || target;
	ELSIF f.base = ANY (integers) AND t.base = ANY (integers)
		OR f.element = ANY (integers) AND t.element = ANY (integers)
		OR f.base = 'json'::regtype AND t.base = 'jsonb'::regtype
		OR EXISTS (SELECT FROM pg_cast AS c
				   WHERE c.castsource = f.base AND c.casttarget = t.base AND c.castcontext = 'i')
			AND (t.base_typmod = -1 OR t.base = 'varchar'::regtype)
		OR t.category = 'S' AND t.base IN ('text'::regtype, 'varchar'::regtype) AND f.category = 'S' THEN
		RETURN '::' || target;
	ELSIF f.of = t.of AND f.of IN ('e', 'c') AND f.name = t.name
		AND snowflake_migrate_internal.attributes(coalesce(f.element, f.base))
			= snowflake_migrate_internal.attributes(coalesce(t.element, t.base)) THEN
		RETURN '::text::' || target;
	/* Domains over such types. */
	ELSIF from_type <> f.base AND to_type <> t.base AND f.name = t.name
		AND snowflake_migrate_internal.cast(f.base, f.base_typmod, t.base, t.base_typmod) LIKE '::text::%' THEN
		RETURN '::text::' || target;
	END IF;
	RETURN NULL;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.cast(oid, int, oid, int)
	IS 'for snowflake_migrate.merge()''s own use: how a value becomes one of another type';

/* The value of a column of a source's row s, in the type and collation of the target's column. */
CREATE FUNCTION snowflake_migrate_internal.source_value(
	relation regclass,
	source_relation regclass,
	name name) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
	RETURN (
		SELECT format('s.%I', s.attname)
			|| coalesce(snowflake_migrate_internal.cast(s.atttypid, s.atttypmod, t.atttypid, t.atttypmod),
						'::' || format_type(t.atttypid, t.atttypmod))
			|| snowflake_migrate_internal.collate_clause(nullif(t.attcollation, s.attcollation))
		FROM pg_attribute AS t JOIN pg_attribute AS s ON s.attname = t.attname
		WHERE t.attrelid = relation AND t.attname = source_value.name
			AND s.attrelid = source_relation AND s.attnum > 0 AND NOT s.attisdropped);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.source_value(regclass, regclass, name)
	IS 'for snowflake_migrate.merge()''s own use: a source''s value in the target''s type';

/*
 * The id that a part of a document is, written as a number or as a string; null where it is none.  Who reads a number
 * from it finds the same: 7 in 7.0, '07' and '7 '.
 */
CREATE FUNCTION snowflake_migrate_internal.json_id(part jsonb) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	value CONSTANT text := CASE WHEN jsonb_typeof(part) IN ('number', 'string') THEN part #>> '{}' END;
BEGIN
	IF value ~ E'^\\s*[+-]?[0-9]{1,40}([.]0{0,40})?\\s*$'
		AND value::numeric BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
		RETURN value::numeric::bigint;
	END IF;
	RETURN NULL;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.json_id(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: the id that a part of a document is';

/* The id that a text is; null where it is none. */
CREATE FUNCTION snowflake_migrate_internal.text_id(value text) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT snowflake_migrate_internal.json_id(to_jsonb(value)) $$;
COMMENT ON FUNCTION snowflake_migrate_internal.text_id(text)
	IS 'for snowflake_migrate.merge()''s own use: the id that a text is';

/* A column's value as an id: what is no whole number is none. */
CREATE FUNCTION snowflake_migrate_internal.id_of(value text, type oid) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN type IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype) THEN value || '::bigint'
			WHEN type IN ('numeric'::regtype, 'real'::regtype, 'double precision'::regtype)
				THEN format('snowflake_migrate_internal.text_id(trim_scale(%s::numeric)::text)', value)
			ELSE format('snowflake_migrate_internal.text_id(%s::text)', value) END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.id_of(text, oid)
	IS 'for snowflake_migrate.merge()''s own use: a column''s value as an id';

/* The elements e of an array, as an item after FROM: each as an id, as it is, and its place. */
CREATE FUNCTION snowflake_migrate_internal.elements_of(value text, type oid) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RETURN (
		SELECT format('LATERAL (SELECT %s, u.given, u.n FROM unnest(%s) WITH ORDINALITY AS u (given, n)) '
						  'AS e (id, given, n)',
					  snowflake_migrate_internal.id_of('u.given', b.typelem), value)
		FROM snowflake_migrate_internal.base_type(type, -1) AS y JOIN pg_type AS b ON b.oid = y.base);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.elements_of(text, oid)
	IS 'for snowflake_migrate.merge()''s own use: the elements of an array of ids';

/* The id that is a document's part, replaced as ids says: an object from old ids to new ones. */
CREATE FUNCTION snowflake_migrate_internal.document_id(part jsonb, ids jsonb, unknown_null boolean) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	id CONSTANT text := snowflake_migrate_internal.json_id(part);
BEGIN
	IF id IS NULL THEN
		RETURN part;
	ELSIF NOT ids ? id THEN
		RETURN CASE WHEN unknown_null THEN 'null' ELSE part END;
	ELSIF jsonb_typeof(part) = 'number' OR ids -> id = 'null' THEN
		RETURN ids -> id;
	END IF;
	RETURN to_jsonb(ids ->> id);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.document_id(jsonb, jsonb, boolean)
	IS 'for snowflake_migrate_internal.document(): a part that is an id';

/* The same of the keys of an object; one that has no new key goes. */
CREATE FUNCTION snowflake_migrate_internal.document_keys(part jsonb, ids jsonb, unknown_null boolean) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF (SELECT count(DISTINCT coalesce(ids ->> i.id, k)) < count(*)
		FROM jsonb_object_keys(part) AS k
			CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.text_id(k)::text) AS i (id)
		WHERE ids -> i.id IS DISTINCT FROM 'null') THEN
		RAISE EXCEPTION USING ERRCODE = 'unique_violation',
			MESSAGE = 'keys of an object in a document would become one',
			DETAIL = format('The object is %s.', left(part::text, 200)),
			HINT = 'Add their values up in the source, or leave the reference out.';
	END IF;
	RETURN (
		SELECT coalesce(jsonb_object_agg(coalesce(ids ->> i.id, e.key), e.value), '{}')
		FROM jsonb_each(part) AS e
			CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.text_id(e.key)::text) AS i (id)
		WHERE CASE WHEN ids ? i.id THEN ids -> i.id <> 'null' ELSE NOT unknown_null OR i.id IS NULL END);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.document_keys(jsonb, jsonb, boolean)
	IS 'for snowflake_migrate_internal.document(): keys of an object that are ids';

/* A document whose ids at these steps of a path are replaced. */
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
	type CONSTANT text := jsonb_typeof(part);
	kind CONSTANT text := kinds[step];
	name CONSTANT text := names[step];
BEGIN
	/* What the step before chose, its filter decides. */
	IF step > 1 AND filters[step - 1] IS NOT NULL AND NOT jsonb_path_exists(part, filters[step - 1]::jsonpath) THEN
		RETURN part;
	ELSIF step > cardinality(kinds) THEN
		RETURN snowflake_migrate_internal.document_id(part, ids, unknown_null);
	/* Arrays are taken apart as the lax mode of jsonpath does, and what is no array stands for its one element. */
	ELSIF type = 'array' AND kind IN ('member', 'wildcard_member', 'keys') THEN
		RETURN (
			SELECT coalesce(jsonb_agg(CASE WHEN jsonb_typeof(e.value) = 'object'
					THEN snowflake_migrate_internal.document_at(e.value, kinds, names,
						filters[: step - 2] || NULL::text || filters[step :], step, ids, unknown_null)
					ELSE e.value END ORDER BY e.n), '[]')
			FROM jsonb_array_elements(part) WITH ORDINALITY AS e (value, n));
	ELSIF type <> 'array' AND (kind = 'elements' OR kind = 'element' AND name = '0') THEN
		RETURN snowflake_migrate_internal.document_at(part, kinds, names, filters, step + 1, ids, unknown_null);
	END IF;
	IF kind = 'member' AND type = 'object' AND part ? name THEN
		RETURN part || jsonb_build_object(name, snowflake_migrate_internal.document_at(
			part -> name, kinds, names, filters, step + 1, ids, unknown_null));
	ELSIF kind = 'wildcard_member' AND type = 'object' THEN
		RETURN (
			SELECT coalesce(jsonb_object_agg(e.key, snowflake_migrate_internal.document_at(
				e.value, kinds, names, filters, step + 1, ids, unknown_null)), '{}')
			FROM jsonb_each(part) AS e);
	ELSIF kind = 'elements' THEN
		RETURN (
			SELECT coalesce(jsonb_agg(snowflake_migrate_internal.document_at(
				e.value, kinds, names, filters, step + 1, ids, unknown_null) ORDER BY e.n), '[]')
			FROM jsonb_array_elements(part) WITH ORDINALITY AS e (value, n));
	ELSIF kind = 'element' AND type = 'array' AND name::int < jsonb_array_length(part) THEN
		RETURN jsonb_set(part, ARRAY[name], snowflake_migrate_internal.document_at(
			part -> name::int, kinds, names, filters, step + 1, ids, unknown_null));
	ELSIF kind = 'keys' AND type = 'object' THEN
		RETURN snowflake_migrate_internal.document_keys(part, ids, unknown_null);
	END IF;
	RETURN part;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.document_at(jsonb, text[], text[], text[], int, jsonb, boolean)
	IS 'for snowflake_migrate_internal.document(): the part at a step of the path';

/* A document with new ids: those at a path become what ids says, an object from old ids to new ones. */
CREATE FUNCTION snowflake_migrate_internal.document(
	document jsonb,
	path text,
	ids jsonb,
	unknown_null boolean) RETURNS jsonb
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_migrate_internal.document_at(
		document, coalesce(array_agg(p.kind), '{}'), array_agg(p.name), array_agg(p.filter), 1, ids, unknown_null)
	FROM snowflake_migrate_internal.path(path) AS p
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.document(jsonb, text, jsonb, boolean)
	IS 'for snowflake_migrate.merge()''s own use: a document with new ids';

/*
 * A partition is read through its table, as rights on that are enough: the partition's own rows among those of an
 * alias, as a condition that follows others.
 */
CREATE FUNCTION snowflake_migrate_internal.in_part(relation regclass, alias text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN pg_partition_root(relation) <> relation
		THEN format(' AND %s.tableoid IN (SELECT l.relid FROM pg_partition_tree(%s) AS l)', alias, relation::oid)
		ELSE '' END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.in_part(regclass, text)
	IS 'for snowflake_migrate.merge()''s own use: the rows of a partition, as a condition';

/*
 * The rows of a table of a source as an item after FROM, for an expression over the columns of the target's table,
 * whose name they have: with those columns alone, as they are, or those in as_target in the target's types.
 *
 * What the source's owner created for the type of the table's rows, or of other columns, does not run: the row as a
 * whole is of no type, and has no other columns.  Where the source lacks a column that is called like the table, it is
 * there twice, for an error: its name would be the row's.
 */
CREATE FUNCTION snowflake_migrate_internal.named_rows(
	source_relation regclass,
	relation regclass,
	as_target name[] DEFAULT '{}') RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
	RETURN (
		SELECT format('(SELECT %s FROM %s AS s) AS %I',
			concat_ws(', ', string_agg(CASE WHEN a.attname = ANY (as_target)
					THEN snowflake_migrate_internal.source_value(
						named_rows.relation, named_rows.source_relation, a.attname) || format(' AS %I', a.attname)
					ELSE format('s.%I', a.attname) END, ', ' ORDER BY a.attnum),
				CASE WHEN snowflake_migrate_internal.has_columns(named_rows.relation, ARRAY[c.relname])
						AND NOT snowflake_migrate_internal.has_columns(named_rows.source_relation, ARRAY[c.relname])
					THEN format('NULL AS %1$I, NULL AS %1$I', c.relname) END),
			snowflake_migrate_internal.only(named_rows.source_relation), c.relname)
		FROM pg_class AS c
			LEFT JOIN pg_attribute AS a ON a.attrelid = named_rows.source_relation AND a.attnum > 0
				AND NOT a.attisdropped
				AND snowflake_migrate_internal.has_columns(named_rows.relation, ARRAY[a.attname])
		WHERE c.oid = named_rows.relation
		GROUP BY c.relname);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.named_rows(regclass, regclass, name[])
	IS 'for snowflake_migrate.merge()''s own use: the rows of a source under the name of the target''s table';

/*
 * A source's key in the types of the map: integers of any width can be compared with each other, so that a source on
 * another server can compare them; what else has not the target's type becomes it.  type has the target's collation,
 * without which a text of the map could not be compared with one of the target.
 */
CREATE FUNCTION snowflake_migrate_internal.key_values(
	relation regclass,
	source_relation regclass,
	key name[],
	OUT n int,
	OUT value text,
	OUT type text,
	OUT can_range boolean) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY
	SELECT k.n::int,
		CASE WHEN i.is_integer AND s.atttypid IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype)
			THEN format('s.%I', k.name)
			ELSE snowflake_migrate_internal.source_value(relation, source_relation, k.name) END,
		CASE WHEN i.is_integer THEN 'bigint' ELSE format_type(t.atttypid, t.atttypmod) END
			|| snowflake_migrate_internal.collate_clause(t.attcollation),
		/* Texts may sort otherwise where the source is. */
		i.is_integer
			OR t.atttypid IN ('uuid'::regtype, 'date'::regtype, 'timestamptz'::regtype, 'timestamp'::regtype)
	FROM unnest(key) WITH ORDINALITY AS k (name, n)
		JOIN pg_attribute AS t ON t.attrelid = relation AND t.attname = k.name
		JOIN pg_attribute AS s ON s.attrelid = source_relation AND s.attname = k.name AND s.attnum > 0
		CROSS JOIN LATERAL (
			SELECT t.atttypid IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype)) AS i (is_integer);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.key_values(regclass, regclass, name[])
	IS 'for snowflake_migrate.merge()''s own use: a source''s key in the types of the map';

/* The values of columns of a source's row s, in the target's types. */
CREATE FUNCTION snowflake_migrate_internal.source_values(
	relation regclass,
	source_relation regclass,
	columns name[]) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT string_agg(k.value, ', ' ORDER BY k.n)
	FROM snowflake_migrate_internal.key_values(relation, source_relation, columns) AS k
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.source_values(regclass, regclass, name[])
	IS 'for snowflake_migrate.merge()''s own use: the values of a source''s columns in the target''s types';

/*
 * The name of the column of a source's row that tells whether the condition of a reference holds; null: there is none.
 */
CREATE FUNCTION snowflake_migrate_internal.condition_column(reference_id int, condition text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT quote_ident('snowflake condition ' || reference_id) $$;
COMMENT ON FUNCTION snowflake_migrate_internal.condition_column(int, text)
	IS 'for snowflake_migrate.merge()''s own use: the column that tells whether a condition holds';

/*
 * Whether a row of the target (t) differs from what it should be.  Where values of a type that are equal have the same
 * bits, they are compared as such, which is faster; the others by their bits.
 */
CREATE FUNCTION snowflake_migrate_internal.differs(relation regclass, names text[], expressions text[]) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT '(' || concat_ws(' OR ',
			string_agg(format('t.%I IS DISTINCT FROM %s', e.name, e.expression), ' OR ' ORDER BY e.n)
				FILTER (WHERE e.exact),
			'ROW (' || string_agg(format('t.%I', e.name), ', ' ORDER BY e.n) FILTER (WHERE NOT e.exact)
				|| ')::record OPERATOR(pg_catalog.*<>) ROW ('
				|| string_agg(e.expression, ', ' ORDER BY e.n) FILTER (WHERE NOT e.exact) || ')::record')
		|| ')'
	FROM (
		SELECT u.*,
			a.atttypid IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype, 'boolean'::regtype,
						   'timestamptz'::regtype, 'timestamp'::regtype, 'date'::regtype,
						   'uuid'::regtype, 'bytea'::regtype)
				OR a.atttypid IN ('text'::regtype, 'varchar'::regtype) AND l.collisdeterministic AS exact
		FROM unnest(names, expressions) WITH ORDINALITY AS u (name, expression, n)
			JOIN pg_attribute AS a ON a.attrelid = relation AND a.attname = u.name
			LEFT JOIN pg_collation AS l ON l.oid = a.attcollation
	) AS e
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.differs(regclass, text[], text[])
	IS 'for snowflake_migrate.merge()''s own use: whether a row differs';

/*
 * The columns of one table that are stored, as a row s of one source has them: given is the value in the target's type,
 * or null where the source lacks the column.
 */
CREATE FUNCTION snowflake_migrate_internal.stored_columns(
	run_ bigint,
	no_ int,
	source_ int,
	OUT n int,
	OUT name name,
	OUT type text,
	OUT key_position int,
	OUT changed_by text,
	OUT is_lost boolean,
	OUT combined boolean,
	OUT given text,
	OUT default_value text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY
	SELECT c.position, c.name, y.type, array_position(t.key, c.name), c.changed_by, c.is_lost,
		c.combine IS NOT NULL,
		snowflake_migrate_internal.source_value(t.relation, s.relation, c.name),
		format('CAST((%s) AS %s)',
			   coalesce(pg_get_expr(d.adbin, d.adrelid), pg_get_expr(b.typdefaultbin, 0), 'NULL'), y.type)
	FROM snowflake_migrate_internal.plan_columns AS c
		JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
		JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
		JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attname = c.name
		LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		/* A domain's default is that of its columns. */
		JOIN pg_type AS b ON b.oid = a.atttypid
		CROSS JOIN LATERAL format_type(a.atttypid, a.atttypmod) AS y (type)
	WHERE c.run = run_ AND c.no = no_ AND s.source = source_ AND NOT c.generated;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.stored_columns(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: the columns of a source''s rows';

/*
 * What one reference makes of a column's value, by the map of the key that it refers to: of a document (expression:
 * what other references made of it), of an array, or of an id, whose entry in the map is rID.  Texts that are no ids
 * stay.
 */
CREATE FUNCTION snowflake_migrate_internal.mapped_value(names jsonb) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	/* OFFSET 0: the few ids of a value are looked up one by one, by the index, and not in a join with the whole map. */
	SELECT snowflake_migrate_internal.fill(CASE
		WHEN names ->> 'path' IS NOT NULL THEN $query$
			snowflake_migrate_internal.document(({expression})::jsonb, {'path'}, (
				SELECT coalesce(jsonb_object_agg(r.o1, r.n1), '{}')
				FROM (
						SELECT DISTINCT snowflake_migrate_internal.json_id(p.part)
						FROM jsonb_path_query(({value})::jsonb, {'path'}, silent => true) AS p (part)
					) AS i (id)
					CROSS JOIN LATERAL (
						SELECT f.o1, f.n1 FROM {map} AS f WHERE f.source = {source} AND f.o1 = i.id OFFSET 0
					) AS r
			), {'dangling'} = 'null')
			$query$
		WHEN names -> 'elements' = 'true' THEN $query$
			CASE WHEN {value} IS NOT NULL THEN coalesce((
				SELECT array_agg(
						CASE WHEN e.id IS NULL OR r.o1 IS NULL AND {'dangling'} = 'keep' THEN e.given::{element}
							ELSE r.n1::{element} END ORDER BY e.n)
				FROM {elements_of}
					LEFT JOIN LATERAL (
						SELECT f.o1, f.n1 FROM {map} AS f WHERE f.source = {source} AND f.o1 = e.id OFFSET 0
					) AS r ON true
				WHERE r.o1 IS NULL OR r.n1 IS NOT NULL
			), '{}') END
			$query$
		WHEN names ->> 'dangling' = 'keep' THEN
			'CASE WHEN r{id}.o1 IS NULL THEN {given} ELSE r{id}.n1::{type} END'
		ELSE 'r{id}.n1' END, names)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.mapped_value(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: what a reference makes of a value';

/*
 * What the references of a column make of its value: those into a document one after the other; of others, the first
 * whose condition holds.
 */
CREATE FUNCTION snowflake_migrate_internal.referring_value(
	run_ bigint,
	no_ int,
	source_ int,
	name_ name,
	given text,
	type text) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	ref record;
	mapped text;
	expression text := given;
	cases text := '';
BEGIN
	FOR ref IN
		SELECT r.*, 's.' || snowflake_migrate_internal.condition_column(r.id, r.condition) AS holds,
			snowflake_migrate_internal.elements_of(format('s.%I', name_), a.atttypid) AS elements_of
		FROM snowflake_migrate_internal.plan_references AS r
			JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
			JOIN pg_attribute AS a ON a.attrelid = s.relation AND a.attname = r.name
				AND a.attnum > 0 AND NOT a.attisdropped
		WHERE r.run = run_ AND r.no = no_ AND s.source = source_ AND r.name = name_
		ORDER BY r.path DESC NULLS LAST, r.condition NULLS LAST, r.id
	LOOP
		mapped := snowflake_migrate_internal.mapped_value(to_jsonb(ref) || jsonb_build_object(
			'map', snowflake_migrate_internal.relation(run_, 'map_' || ref.referenced),
			'source', source_,
			'value', format('s.%I', name_),
			'given', given,
			'type', type,
			'element', CASE type WHEN 'bigint[]' THEN 'bigint' ELSE 'text' END,
			'expression', expression));
		IF type NOT IN ('bigint', 'bigint[]') THEN
			mapped := format('(%s)::%s', mapped, type);
		END IF;
		IF ref.condition IS NULL THEN
			expression := mapped;
		ELSIF ref.path IS NOT NULL THEN
			expression := format('CASE WHEN %s THEN %s ELSE %s END', ref.holds, mapped, expression);
		ELSE
			cases := cases || format(' WHEN %s THEN %s', ref.holds, mapped);
		END IF;
	END LOOP;
	RETURN CASE cases WHEN '' THEN expression ELSE format('CASE%s ELSE %s END', cases, expression) END;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.referring_value(bigint, int, int, name, text, text)
	IS 'for snowflake_migrate.merge()''s own use: what references make of a value';

/* The id that a column's value (of this type) becomes by a map, in the target's type; what is not in the map stays. */
CREATE FUNCTION snowflake_migrate_internal.mapped_id(
	map text,
	source int,
	value text,
	type oid,
	target_type text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_migrate_internal.fill($query$(
			SELECT CASE count(*) WHEN 0 THEN CAST({value} AS {type}) ELSE CAST(max(f.n1) AS {type}) END
			FROM {map} AS f
			WHERE f.source = {source} AND f.o1 = {id})
		$query$, jsonb_build_object('map', map, 'source', source, 'value', value, 'type', target_type,
			'id', snowflake_migrate_internal.id_of(value, type)))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.mapped_id(text, int, text, oid, text)
	IS 'for snowflake_migrate.merge()''s own use: what a map makes of an id';

/*
 * The reference of a column that has one alone, of every value: without a condition, and neither into a document nor of
 * an array's elements.  Null: there is none such.
 */
CREATE FUNCTION snowflake_migrate_internal.plain_reference(
	run_ bigint,
	no_ int,
	name_ name,
	OUT id int,
	OUT referenced int)
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT min(f.id), min(f.referenced)
	FROM snowflake_migrate_internal.plan_references AS f
	WHERE f.run = run_ AND f.no = no_ AND f.name = name_
	HAVING bool_and(f.condition IS NULL AND f.path IS NULL AND NOT f.elements)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.plain_reference(bigint, int, name)
	IS 'for snowflake_migrate.merge()''s own use: the reference of every value of a column';

/*
 * An expression over a row of named_rows(), such as the condition of a reference in column name_, as it is asked of
 * what the row becomes: other columns that refer to rows have the ids that these have in the target, so that a
 * condition means the same in all sources and in the target.  A column that refers by conditions stays as it is:
 * find_conditions_on_ids() sees to it.
 */
CREATE FUNCTION snowflake_migrate_internal.asked_of_target(
	run_ bigint,
	no_ int,
	source_ int,
	name_ name,
	expression text) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
BEGIN
	RETURN (
		SELECT CASE WHEN count(m.value) = 0 THEN expression
				ELSE format('(SELECT %s FROM (SELECT %s) AS %I)', expression, concat_ws(', ',
					string_agg(coalesce(m.value, v.value) || format(' AS %I', a.attname), ', ' ORDER BY a.attnum),
					/* As in named_rows(). */
					CASE WHEN snowflake_migrate_internal.has_columns(t.relation, ARRAY[c.relname])
							AND NOT snowflake_migrate_internal.has_columns(s.relation, ARRAY[c.relname])
						THEN format('NULL AS %1$I, NULL AS %1$I', c.relname) END), c.relname) END
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
			JOIN pg_class AS c ON c.oid = t.relation
			JOIN pg_attribute AS a ON a.attrelid = s.relation AND a.attnum > 0 AND NOT a.attisdropped
			JOIN pg_attribute AS b ON b.attrelid = t.relation AND b.attname = a.attname
				AND b.attnum > 0 AND NOT b.attisdropped
			CROSS JOIN LATERAL (SELECT format('%I.%I', c.relname, a.attname)) AS v (value)
			CROSS JOIN LATERAL snowflake_migrate_internal.base_type(b.atttypid, b.atttypmod) AS y
			LEFT JOIN LATERAL snowflake_migrate_internal.plain_reference(run_, no_, a.attname) AS f
				ON a.attname <> name_
			CROSS JOIN LATERAL (
				SELECT snowflake_migrate_internal.mapped_id(
					snowflake_migrate_internal.relation(run_, 'map_' || f.referenced), source_, v.value, a.atttypid,
					format_type(y.base, y.base_typmod))
			) AS m (value)
		WHERE t.run = run_ AND t.no = no_ AND s.source = source_
		GROUP BY t.relation, s.relation, c.relname);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.asked_of_target(bigint, int, int, name, text)
	IS 'for snowflake_migrate.merge()''s own use: a condition as it is asked of what a row becomes';

/*
 * What a query for the rows of one table of one source reads, after FROM: s is the source's row, m its entry in the map
 * (with_map), v what policies changed, rID the entry that a reference of the column leads to.
 */
CREATE FUNCTION snowflake_migrate_internal.rows_origin(run_ bigint, no_ int, source_ int, with_map boolean) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
BEGIN
	RETURN (
		WITH ref AS (
			SELECT r.id, r.name, r.condition,
				snowflake_migrate_internal.condition_column(r.id, r.condition) AS holds,
				r.path IS NULL AND NOT r.elements AS is_joined,
				snowflake_migrate_internal.relation(run_, 'map_' || r.referenced) AS map,
				snowflake_migrate_internal.id_of(format('s.%I', r.name), a.atttypid) AS value
			FROM snowflake_migrate_internal.plan_references AS r
				JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
				JOIN pg_attribute AS a ON a.attrelid = s.relation AND a.attname = r.name
					AND a.attnum > 0 AND NOT a.attisdropped
			WHERE r.run = run_ AND r.no = no_ AND s.source = source_
		)
		SELECT snowflake_migrate_internal.fill(
			CASE WHEN n.names ->> 'conditions' IS NULL THEN '{source_table} AS s'
				ELSE '(SELECT *, {conditions} FROM {named_rows}) AS s' END
			|| CASE WHEN with_map THEN ' JOIN {map} AS m ON m.source = {source} AND {same_key}' ELSE '' END
			|| CASE WHEN with_map AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_columns AS c
											  WHERE c.run = run_ AND c.no = no_ AND c.changed_by IS NOT NULL)
				THEN ' LEFT JOIN {change} AS v ON v."merge source" = {source} AND ({v."merge o#"}) = ({m.o#})'
				ELSE '' END
			|| '{joins}', n.names)
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
			CROSS JOIN LATERAL (
				SELECT snowflake_migrate_internal.names(run_, no_) || jsonb_build_object(
					'source', source_,
					'source_table', snowflake_migrate_internal.only(s.relation),
					'named_rows', CASE WHEN EXISTS (SELECT FROM ref AS r WHERE r.condition IS NOT NULL)
						THEN snowflake_migrate_internal.named_rows(s.relation, t.relation) END,
					'conditions', (
						SELECT string_agg(snowflake_migrate_internal.asked_of_target(
								run_, no_, source_, r.name, format('(%s) IS TRUE', r.condition)) || ' AS ' || r.holds,
							', ' ORDER BY r.id)
						FROM ref AS r WHERE r.condition IS NOT NULL),
					'same_key', (SELECT string_agg(format('m.o%s = %s', k.n, k.value), ' AND ' ORDER BY k.n)
								 FROM snowflake_migrate_internal.key_values(t.relation, s.relation, t.key) AS k),
					/* Only a value for which the condition holds need be an id. */
					'joins', coalesce((
						SELECT string_agg(snowflake_migrate_internal.fill(
							CASE WHEN r.condition IS NULL
								THEN ' LEFT JOIN {map} AS r{id} ON r{id}.source = {source} AND r{id}.o1 = {value}'
								ELSE ' LEFT JOIN {map} AS r{id} ON r{id}.source = {source}'
									' AND r{id}.o1 = CASE WHEN s.{holds} THEN {value} END' END,
							to_jsonb(r) || jsonb_build_object('source', source_)), '' ORDER BY r.id)
						FROM ref AS r WHERE r.is_joined), '')) AS names) AS n
		WHERE t.run = run_ AND t.no = no_ AND s.source = source_);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.rows_origin(bigint, int, int, boolean)
	IS 'for snowflake_migrate.merge()''s own use: what a query for rows as they become reads';

/*
 * The parts of a query for the rows of one table of one source: the target's columns that it gives, what each becomes,
 * and where from.  Columns that the source lacks are not among them, or with all_columns are their defaults.  Those
 * that are combined with other rows' are as they are alone, unless combined.  own_keys: the key of a row that becomes
 * another, or is skipped, is what its own would have become; new ids are none.
 */
CREATE FUNCTION snowflake_migrate_internal.rows_parts(
	run_ bigint,
	no_ int,
	source_ int,
	with_map boolean,
	all_columns boolean,
	combined boolean DEFAULT true,
	own_keys boolean DEFAULT false,
	OUT names text[],
	OUT expressions text[],
	OUT origin text)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
BEGIN
	SELECT coalesce(array_agg(c.name::text ORDER BY c.n), '{}'),
		coalesce(array_agg(e.expression ORDER BY c.n), '{}'),
		snowflake_migrate_internal.rows_origin(run_, no_, source_, with_map)
		INTO names, expressions, origin
		FROM snowflake_migrate_internal.names(run_, no_) AS t (names)
			CROSS JOIN snowflake_migrate_internal.stored_columns(run_, no_, source_) AS c
			CROSS JOIN LATERAL (
				SELECT CASE
					WHEN c.given IS NULL THEN c.default_value
					WHEN c.name <> ALL (ARRAY(
						SELECT r.name FROM snowflake_migrate_internal.plan_references AS r
						WHERE r.run = run_ AND r.no = no_)) THEN c.given
					ELSE snowflake_migrate_internal.referring_value(run_, no_, source_, c.name, c.given, c.type) END
			) AS g (value)
			CROSS JOIN LATERAL (
				SELECT 'm.n' || c.key_position
					|| CASE WHEN c.type IN ('smallint', 'integer') THEN '::' || c.type ELSE '' END
			) AS k (value)
			CROSS JOIN LATERAL (
				SELECT CASE WHEN NOT with_map OR c.key_position IS NULL THEN g.value
					WHEN own_keys AND t.names ->> 'kind' = 'key' THEN format(
						'CASE WHEN m.action IN (''k'', ''m'', ''s'') THEN CAST(%s AS %s) ELSE %s END',
						g.value, c.type, k.value)
					ELSE k.value END
			) AS v (value)
			CROSS JOIN LATERAL (
				SELECT CASE
					WHEN with_map AND c.changed_by IS NOT NULL AND (rows_parts.combined OR NOT c.combined)
						THEN format(CASE WHEN c.combined THEN 'CASE WHEN v."merge combined" THEN v.%I ELSE %s END'
							ELSE 'coalesce(v.%I, %s)' END, c.name, v.value)
					WHEN with_map AND c.is_lost THEN format(
						'CASE WHEN NOT EXISTS (SELECT FROM %s AS l WHERE l.source = %s AND (%s) = (%s) AND l.name = %L)'
							' THEN %s END',
						t.names ->> 'lost', source_,
						snowflake_migrate_internal.fill('{l.o#}', t.names),
						snowflake_migrate_internal.fill('{m.o#}', t.names), c.name, v.value)
					ELSE v.value END
			) AS e (expression)
		WHERE c.given IS NOT NULL OR all_columns OR with_map AND c.changed_by IS NOT NULL;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.rows_parts(bigint, int, int, boolean, boolean, boolean, boolean)
	IS 'for snowflake_migrate.merge()''s own use: the parts of a query for rows as they become';

/* A query for a table's rows, with its generated columns, which are made of the others, added. */
CREATE FUNCTION snowflake_migrate_internal.with_generated(relation regclass, rows text) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RETURN (
		SELECT CASE WHEN count(a.attname) = 0 THEN rows
				ELSE format('SELECT %I.*, %s FROM (%s) AS %I', c.relname,
							string_agg(format('CAST((%s) AS %s) AS %I', pg_get_expr(d.adbin, d.adrelid),
											  format_type(a.atttypid, a.atttypmod), a.attname), ', '
									   ORDER BY a.attnum) FILTER (WHERE a.attname IS NOT NULL),
							rows, c.relname) END
		FROM pg_class AS c
			LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attgenerated <> '' AND NOT a.attisdropped
			LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
		WHERE c.oid = relation
		GROUP BY c.relname);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.with_generated(regclass, text)
	IS 'for snowflake_migrate.merge()''s own use: adds generated columns to a query';

/*
 * A query for the rows of one table of one source as they become, with all columns.  Of a table with a key, "merge o1"
 * .. are the source's key, "merge n1" .. the target's, then "merge action" and "merge tries", how often a policy has
 * changed the row.  condition, on s and m, says which rows; null: all.
 */
CREATE FUNCTION snowflake_migrate_internal.source_rows(
	run_ bigint,
	no_ int,
	source_ int,
	condition text DEFAULT NULL,
	combined boolean DEFAULT true,
	own_keys boolean DEFAULT false) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	RETURN (
		SELECT snowflake_migrate_internal.with_generated(t.relation,
			format('SELECT %s FROM %s%s',
				concat_ws(', ',
					CASE WHEN t.kind <> 'none' THEN
						snowflake_migrate_internal.key_list('m.o# AS "merge o#", m.n# AS "merge n#"', t.key)
						|| ', m.action AS "merge action", '
						|| CASE WHEN EXISTS (SELECT FROM snowflake_migrate_internal.plan_columns AS c
											 WHERE c.run = run_ AND c.no = no_ AND c.changed_by IS NOT NULL)
							THEN 'coalesce(v."merge tries", 0)' ELSE '0' END || ' AS "merge tries"' END,
					(SELECT string_agg(format('%s AS %I', e.expression, e.name), ', ')
					 FROM unnest(p.names, p.expressions) AS e (name, expression))),
				p.origin,
				' WHERE ' || source_rows.condition))
		FROM snowflake_migrate_internal.plan_tables AS t,
			snowflake_migrate_internal.rows_parts(run_, no_, source_, t.kind <> 'none', true, combined, own_keys) AS p
		WHERE t.run = run_ AND t.no = no_);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.source_rows(bigint, int, int, text, boolean, boolean)
	IS 'for snowflake_migrate.merge()''s own use: a query for rows as they become';

/* source_rows() for people (doc/merging.md).  The query has what the role of the run wrote into its plan. */
CREATE FUNCTION snowflake_migrate_internal.rows(run_ bigint, no_ int, source_ int) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.own_run(run_), snowflake_migrate_internal.refuse_maps(run_);
	RETURN snowflake_migrate_internal.source_rows(run_, no_, source_);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.rows(bigint, int, int)
	IS 'a query for the rows of a table of a source as they become in a merge';

/*
 * A query for the target's rows as they become: with the columns that policies change in them, and, like those of
 * source_rows(), with "merge o1" .. before, if with_key.  "merge action" is t, or x where a source's row takes the
 * place.
 */
CREATE FUNCTION snowflake_migrate_internal.target_rows(run_ bigint, no_ int, with_key boolean) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT snowflake_migrate_internal.with_generated(t.relation, snowflake_migrate_internal.fill($query$
			SELECT {key}{columns} FROM {target} AS t {changes}{replaced}
		$query$, snowflake_migrate_internal.names(run_, no_) || c.names || jsonb_build_object(
			'key', CASE WHEN with_key THEN
				snowflake_migrate_internal.key_list('t.@ AS "merge o#", t.@ AS "merge n#"', t.key)
				|| format(', CASE WHEN x.action IS NULL THEN ''t'' ELSE ''x'' END::"char" AS "merge action", '
							  '%s AS "merge tries", ',
						  CASE WHEN c.names ->> 'changes' = '' THEN '0' ELSE 'coalesce(v."merge tries", 0)' END)
				ELSE '' END,
			'replaced', CASE WHEN with_key THEN snowflake_migrate_internal.fill(
				' LEFT JOIN {map} AS x ON x.action = ''r'' AND ({x.n#}) = ({t.@})',
				snowflake_migrate_internal.names(run_, no_)) ELSE '' END)))
	FROM snowflake_migrate_internal.plan_tables AS t
		CROSS JOIN LATERAL (
			SELECT jsonb_build_object(
				'columns', string_agg(
					format(CASE
						WHEN p.combine IS NOT NULL
							THEN 'CASE WHEN v."merge combined" THEN v.%1$I ELSE t.%1$I END AS %1$I'
						WHEN p.in_target THEN 'coalesce(v.%1$I, t.%1$I) AS %1$I'
						ELSE 't.%1$I' END, p.name),
					', ' ORDER BY p.position),
				'changes', CASE WHEN bool_or(p.in_target) THEN snowflake_migrate_internal.fill(
						'LEFT JOIN {change} AS v ON v."merge source" = 0 AND ({v."merge o#"}) = ({t.@})',
						snowflake_migrate_internal.names(run_, no_)) ELSE '' END)
			FROM snowflake_migrate_internal.plan_columns AS p
			WHERE p.run = run_ AND p.no = no_ AND NOT p.generated) AS c (names)
	WHERE t.run = run_ AND t.no = no_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.target_rows(bigint, int, boolean)
	IS 'for snowflake_migrate.merge()''s own use: a query for the target''s rows as they become';

/* A query for the rows of all sources as they become, with "merge source" before. */
CREATE FUNCTION snowflake_migrate_internal.all_rows(
	run_ bigint,
	no_ int,
	combined boolean DEFAULT true,
	own_keys boolean DEFAULT false) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT string_agg(format('SELECT %s AS "merge source", s.* FROM (%s) AS s', s.source,
							 snowflake_migrate_internal.source_rows(run_, no_, s.source, NULL, combined, own_keys)),
					  ' UNION ALL ' ORDER BY s.source)
	FROM snowflake_migrate_internal.plan_sources AS s
	WHERE s.run = run_ AND s.no = no_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.all_rows(bigint, int, boolean, boolean)
	IS 'for snowflake_migrate.merge()''s own use: a query for the rows of all sources as they become';

/* The first column of a table's key by which its rows can be read range by range, if there is one. */
CREATE FUNCTION snowflake_migrate_internal.range_key(
	relation regclass,
	key name[],
	OUT n int,
	OUT type text)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	SELECT k.n, k.type INTO range_key.n, range_key.type
		FROM snowflake_migrate_internal.key_values(relation, relation, key) AS k
		WHERE k.can_range
		ORDER BY k.n
		LIMIT 1;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.range_key(regclass, name[])
	IS 'for snowflake_migrate.merge()''s own use: the column by which a table is read range by range';

/*
 * The rows of one table of one source with keys behind one, up to another (null: no end), as conditions: of_map on the
 * entries m of its map, of_source on the source's rows s.  Null: that is all, also where a table is not read range by
 * range.
 */
CREATE FUNCTION snowflake_migrate_internal.key_range(
	run_ bigint,
	no_ int,
	source_ int,
	behind text,
	up_to text,
	OUT of_map text,
	OUT of_source text)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
BEGIN
	SELECT string_agg(format('m.o%s %s %L::%s', k.n, b.operator, b.key, k.type), ' AND ' ORDER BY b.operator DESC),
		string_agg(format('s.%I %s %L::%s', t.key[k.n], b.operator, b.key, k.type), ' AND ' ORDER BY b.operator DESC)
		INTO of_map, of_source
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
			CROSS JOIN LATERAL snowflake_migrate_internal.range_key(t.relation, t.key) AS k
			CROSS JOIN (VALUES ('>', behind), ('<=', up_to)) AS b (operator, key)
		WHERE t.run = run_ AND t.no = no_ AND s.source = source_ AND NOT t.cyclic AND k.n IS NOT NULL
			AND b.key IS NOT NULL;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.key_range(bigint, int, int, text, text)
	IS 'for snowflake_migrate.merge()''s own use: rows of a table with keys in a range';

/*
 * Which rows of one table of one source are not copied yet, as conditions: of_map on the entries m of its map, and
 * of_source, which follows others, on the source's rows s; of_map is null where that is all of them.
 */
CREATE FUNCTION snowflake_migrate_internal.not_copied(
	run_ bigint,
	no_ int,
	source_ int,
	OUT of_map text,
	OUT of_source text)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	own CONSTANT regclass := to_regclass(snowflake_migrate_internal.relation(run_, 'own_' || no_));
	names jsonb;
	has_again boolean := false;
	progress record;
BEGIN
	/* At the beginning, no table has a position yet. */
	SELECT s.done, s.is_split, k.of_map, k.of_source INTO STRICT progress
		FROM snowflake_migrate_internal.plan_sources AS s
			LEFT JOIN LATERAL snowflake_migrate_internal.key_range(run_, no_, source_, s.position, NULL) AS k
				ON s.position IS NOT NULL
		WHERE s.run = run_ AND s.no = no_ AND s.source = source_;
	of_source := '';
	IF progress.done THEN
		of_map := 'false';
	ELSIF progress.is_split THEN
		SELECT coalesce('(' || string_agg('(' || coalesce(k.of_map, 'true') || ')', ' OR ' ORDER BY b.batch) || ')',
						'false')
			INTO of_map
			FROM snowflake_migrate_internal.plan_batches AS b
				CROSS JOIN LATERAL
					snowflake_migrate_internal.key_range(run_, no_, source_, b.after, b.position) AS k
			WHERE b.run = run_ AND b.no = no_ AND b.source = source_ AND b.copied_by IS NULL;
	ELSE
		of_map := progress.of_map;
		of_source := coalesce(' AND ' || progress.of_source, '');
	END IF;
	IF of_map IS NOT NULL AND own IS NOT NULL THEN
		names := snowflake_migrate_internal.names(run_, no_) || jsonb_build_object('source', source_);
		EXECUTE snowflake_migrate_internal.fill(
			'SELECT EXISTS (SELECT FROM {own} AS w WHERE w.source = {source} AND w.again)', names) INTO has_again;
	END IF;
	IF has_again THEN
		of_source := '';
		of_map := snowflake_migrate_internal.fill($query$({of_map} OR EXISTS (
				SELECT FROM {own} AS w WHERE w.again AND w.source = {source} AND ({w.o#}) = ({m.o#})))
			$query$, names || jsonb_build_object('of_map', of_map));
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.not_copied(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: which rows are not copied yet';

/* As all_rows(), but those alone that are not copied yet. */
CREATE FUNCTION snowflake_migrate_internal.rows_to_come(run_ bigint, no_ int) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT string_agg(format('SELECT %s AS "merge source", s.* FROM (%s) AS s', s.source,
							 snowflake_migrate_internal.source_rows(run_, no_, s.source, n.of_map || n.of_source)),
					  ' UNION ALL ' ORDER BY s.source)
	FROM snowflake_migrate_internal.plan_sources AS s
		CROSS JOIN LATERAL snowflake_migrate_internal.not_copied(run_, no_, s.source) AS n
	WHERE s.run = run_ AND s.no = no_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.rows_to_come(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: a query for the rows of all sources that are not copied yet';

/* The entries m of the map of one table whose rows are not copied yet, as a condition. */
CREATE FUNCTION snowflake_migrate_internal.entries_to_come(run_ bigint, no_ int) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT CASE WHEN count(n.of_map) = 0 THEN 'true'
		ELSE '(' || string_agg('m.source = ' || s.source || coalesce(' AND ' || n.of_map, ''), ' OR ' ORDER BY s.source)
			|| ')' END
	FROM snowflake_migrate_internal.plan_sources AS s
		CROSS JOIN LATERAL snowflake_migrate_internal.not_copied(run_, no_, s.source) AS n
	WHERE s.run = run_ AND s.no = no_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.entries_to_come(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: the entries of a map whose rows are not copied yet';

/* A condition on the rows s of one table of one source: that leave_behind() has not entered them. */
CREATE FUNCTION snowflake_migrate_internal.not_behind(run_ bigint, no_ int, source_ int) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT CASE WHEN t.condition IS NULL THEN 'true'
			ELSE format('NOT EXISTS (SELECT FROM %s AS b WHERE b.source = %s AND b.action = ''b'' AND (%s) = (%s))',
				snowflake_migrate_internal.relation(run_, 'map_' || no_), source_,
				snowflake_migrate_internal.key_list('b.o#', t.key),
				snowflake_migrate_internal.source_values(t.relation, s.relation, t.key)) END
	FROM snowflake_migrate_internal.plan_tables AS t JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
	WHERE t.run = run_ AND t.no = no_ AND s.source = source_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.not_behind(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: that rows do not stay behind, as a condition';

/* The rows of one table of one source, as an item after FROM, without those that leave_behind() has entered. */
CREATE FUNCTION snowflake_migrate_internal.coming_rows(run_ bigint, no_ int, source_ int) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT CASE WHEN t.condition IS NULL THEN snowflake_migrate_internal.only(s.relation)
			ELSE format('(SELECT s.* FROM %s AS s WHERE %s)', snowflake_migrate_internal.only(s.relation),
						snowflake_migrate_internal.not_behind(run_, no_, source_)) END
	FROM snowflake_migrate_internal.plan_tables AS t JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
	WHERE t.run = run_ AND t.no = no_ AND s.source = source_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.coming_rows(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: the rows of a table of a source that come';

/*
 * The names in queries that check a foreign key.  There, t is a row of the table child, with the columns of the key,
 * and given where none of them is null; p is a row of the table parent, and same where t refers to it.  A partition is
 * read through its table.
 *
 * Rows that are still to come are in no partition yet.  Of them, in_child and in_parent, over the columns alone, tell
 * which get there; given_to_come and same_to_come are for those that do.
 */
CREATE FUNCTION snowflake_migrate_internal.foreign_key_names(foreign_key oid) RETURNS jsonb
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
BEGIN
	RETURN (
		SELECT jsonb_build_object(
			'child', snowflake_migrate_internal.only(r.child),
			'parent', snowflake_migrate_internal.only(r.parent),
			'columns', k.columns,
			'given', k.given || snowflake_migrate_internal.in_part(f.conrelid, 't'),
			'same', s.same || snowflake_migrate_internal.in_part(f.confrelid, 'p'),
			'given_to_come', k.given,
			'same_to_come', s.same,
			'in_child', coalesce(pg_get_partition_constraintdef(f.conrelid), 'true'),
			'in_parent', coalesce(pg_get_partition_constraintdef(f.confrelid), 'true'),
			'locked', CASE WHEN has_table_privilege(r.parent, 'UPDATE') THEN 'FOR KEY SHARE OF p' ELSE '' END)
		FROM pg_constraint AS f
			CROSS JOIN LATERAL (
				SELECT coalesce(pg_partition_root(f.conrelid), f.conrelid)::regclass AS child,
					coalesce(pg_partition_root(f.confrelid), f.confrelid)::regclass AS parent) AS r
			CROSS JOIN LATERAL (
				SELECT string_agg(format('t.%I', a.attname), ', ' ORDER BY c.n) AS columns,
					/* With MATCH FULL, a row with some of the values alone violates it, too: it finds no other. */
					'(' || string_agg(format('t.%I IS NOT NULL', a.attname),
						CASE f.confmatchtype WHEN 'f' THEN ' OR ' ELSE ' AND ' END ORDER BY c.n) || ')' AS given
				FROM unnest(f.conkey) WITH ORDINALITY AS c (attnum, n)
					JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = c.attnum) AS k
			CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.refers_by(f.oid, 'p', 't')) AS s (same)
		WHERE f.oid = foreign_key);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.foreign_key_names(oid)
	IS 'for snowflake_migrate.merge()''s own use: the names in queries that check a foreign key';
