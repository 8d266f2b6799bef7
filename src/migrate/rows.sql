/*
 * The rows of a source as they become in the target: every value that refers to a key is replaced through the map of that
 * key, all others are taken as they are.  Clashes, copying and the proof afterwards read these same rows.
 *
 * Maps are named map_NO in the run's schema, with the columns source, o1 .. oN (old key), n1 .. nN (new key) and action:
 * c copied, m matched, k the target's row was kept, r the target's row takes the source's values, s skipped (no new key).
 * What a policy changed is in change_NO: source, o1 .. oN, tries, and the changed columns, null where they stay.
 * What the target's rows were before is in rank_NO (old and new ranks) and former_NO (rows that took a source's values).
 */

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
COMMENT ON FUNCTION snowflake_migrate_internal.cast(oid, int, oid, int)
	IS 'for snowflake_migrate.merge()''s own use: how a value becomes one of another type';

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
COMMENT ON FUNCTION snowflake_migrate_internal.document_at(jsonb, text[], text[], text[], int, jsonb, boolean)
	IS 'for snowflake_migrate_internal.document(): the part at a step of the path';

CREATE FUNCTION snowflake_migrate_internal.document(document jsonb, path text, ids jsonb, unknown_null boolean) RETURNS jsonb
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_migrate_internal.document_at(document, coalesce(array_agg(p.kind), '{}'), array_agg(p.name), array_agg(p.filter), 1, ids, unknown_null)
	FROM snowflake_migrate_internal.path(path) AS p
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.document(jsonb, text, jsonb, boolean)
	IS 'for snowflake_migrate.merge()''s own use: a document with new ids';

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
COMMENT ON FUNCTION snowflake_migrate_internal.in_part(regclass, text)
	IS 'for snowflake_migrate.merge()''s own use: the rows of a partition, as a condition';

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
COMMENT ON FUNCTION snowflake_migrate_internal.key_values(regclass, regclass, name[])
	IS 'for snowflake_migrate.merge()''s own use: a source''s key in the types of the map';

/*
 * The name of the column of a source's row that tells whether the condition of a reference holds; null: there is none.
 */
CREATE FUNCTION snowflake_migrate_internal.condition_column(reference_id int, condition text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT quote_ident('snowflake condition ' || reference_id) $$;
COMMENT ON FUNCTION snowflake_migrate_internal.condition_column(int, text)
	IS 'for snowflake_migrate.merge()''s own use: the column that tells whether a condition holds';

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
COMMENT ON FUNCTION snowflake_migrate_internal.differs(regclass, text[], text[])
	IS 'for snowflake_migrate.merge()''s own use: whether a row differs';

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
COMMENT ON FUNCTION snowflake_migrate_internal.rows_parts(bigint, int, int, boolean, boolean)
	IS 'for snowflake_migrate.merge()''s own use: the parts of a query for rows as they become';

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
COMMENT ON FUNCTION snowflake_migrate_internal.with_generated(regclass, text)
	IS 'for snowflake_migrate.merge()''s own use: adds generated columns to a query';

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
COMMENT ON FUNCTION snowflake_migrate_internal.rows(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: a query for rows as they become';

/* A query for the rows of all sources as they become, with "merge source" before. */
CREATE FUNCTION snowflake_migrate_internal.all_rows(run_ bigint, no_ int) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT string_agg(format('SELECT %s AS "merge source", s.* FROM (%s) AS s', s.source,
							 snowflake_migrate_internal.rows(run_, no_, s.source)), ' UNION ALL ' ORDER BY s.source)
	FROM snowflake_migrate_internal.plan_sources AS s
	WHERE s.run = run_ AND s.no = no_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.all_rows(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: a query for the rows of all sources as they become';
