/*
 * Columns that one side lacks, and those that do not take all values of a source's.  Nothing is lost of a table
 * without rows.
 */

/* The columns of a table that another lacks. */
CREATE FUNCTION snowflake_migrate_internal.lacking_columns(relation regclass, other regclass)
RETURNS SETOF pg_catalog.pg_attribute
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE ROWS 1
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
	RETURN QUERY SELECT c.*
		FROM pg_attribute AS c
		WHERE c.attrelid = lacking_columns.relation AND c.attnum > 0 AND NOT c.attisdropped
			AND c.attname <> ALL (ARRAY(
				SELECT o.attname FROM pg_attribute AS o
				WHERE o.attrelid = lacking_columns.other AND o.attnum > 0 AND NOT o.attisdropped));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.lacking_columns(regclass, regclass)
	IS 'for snowflake_migrate.merge()''s own use: the columns of a table that another lacks';

/*
 * What to do about a column of a source that a table of the target lacks.  A declaration replaces the former: it has
 * to name all columns that are to be left out, of any source.
 */
CREATE FUNCTION snowflake_migrate_internal.column_advice(run_ bigint, no_ int, name name, type text) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT snowflake_migrate_internal.fill(
		'ALTER TABLE {table} ADD COLUMN {"column"} {type}; or, to leave it out: '
			'SELECT snowflake_migrate.declare_table({''table''}, {''mode''}{key}{accept}, '
			'ignored_columns => {''ignored''});',
		jsonb_build_object(
			'table', t.relation::text,
			'column', column_advice.name,
			'type', type,
			'mode', t.mode,
			'key', CASE WHEN t.natural_key IS NOT NULL THEN format(', key => %L', t.natural_key) ELSE '' END,
			'accept', CASE WHEN t.accept <> '{}' THEN format(', accept => %L', t.accept) ELSE '' END,
			'ignored', (
				SELECT array_agg(DISTINCT g.name ORDER BY g.name)::text
				FROM (
					SELECT unnest(t.ignored_columns)
					UNION ALL
					SELECT c.attname
					FROM snowflake_migrate_internal.plan_sources AS s
						CROSS JOIN LATERAL snowflake_migrate_internal.lacking_columns(s.relation, t.relation) AS c
					WHERE s.run = run_ AND s.no = no_
				) AS g (name))))
	FROM snowflake_migrate_internal.plan_tables AS t
	WHERE t.run = run_ AND t.no = no_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.column_advice(bigint, int, name, text)
	IS 'for snowflake_migrate.merge()''s own use: what to do about a column that the target lacks';

/* Columns that the target lacks. */
CREATE FUNCTION snowflake_migrate_internal.check_source_columns(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	col record;
	is_filled boolean;
BEGIN
	FOR col IN
		SELECT s.source, s.relation::text, s.source_relation, c.attname AS name,
			c.attname = ANY (t.ignored_columns) AS is_ignored,
			snowflake_migrate_internal.column_advice(run_, t.no, c.attname,
				format_type(c.atttypid, c.atttypmod)) AS advice
		FROM snowflake_migrate_internal.source_tables(run_) AS s
			JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.no = s.no
			CROSS JOIN LATERAL snowflake_migrate_internal.lacking_columns(s.source_relation, s.relation) AS c
	LOOP
		is_filled := snowflake_migrate_internal.may_have_rows(col.source_relation);
		IF col.is_ignored THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', col.source, col.relation, col.name,
				'is left out, as declared: the target has no such column');
		ELSIF is_filled THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', col.source, col.relation, col.name,
				'the target has no such column', advice => col.advice);
		ELSE
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', col.source, col.relation, col.name,
				'the target has no such column; the table is empty', advice => col.advice);
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_source_columns(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds columns that the target lacks';

/* Columns that a source lacks. */
CREATE FUNCTION snowflake_migrate_internal.check_target_columns(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	can_map boolean := true;
	col record;
	is_filled boolean;
BEGIN
	FOR col IN
		SELECT s.source, s.relation::text, s.source_relation, c.attname AS name,
			c.attname = ANY (t.key) AS is_key, c.attname = ANY (t.natural_key) AS is_natural_key,
			c.attnotnull OR y.typnotnull AS is_required, c.attidentity <> '' AS is_identity,
			coalesce(pg_get_expr(d.adbin, d.adrelid), pg_get_expr(y.typdefaultbin, 0)) AS default_value,
			t.kind = 'id' AND t.created = c.attname AS tells_time
		FROM snowflake_migrate_internal.source_tables(run_) AS s
			JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.no = s.no
			CROSS JOIN LATERAL snowflake_migrate_internal.lacking_columns(s.relation, s.source_relation) AS c
			JOIN pg_type AS y ON y.oid = c.atttypid
			LEFT JOIN pg_attrdef AS d ON d.adrelid = c.attrelid AND d.adnum = c.attnum
		WHERE c.attgenerated = ''
	LOOP
		is_filled := snowflake_migrate_internal.may_have_rows(col.source_relation);
		IF col.is_key OR col.is_natural_key THEN
			can_map := false;
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', col.source, col.relation, col.name,
				'the source has no such column, which is part of the '
					|| CASE WHEN col.is_key THEN 'key' ELSE 'natural key' END,
				advice => 'Add the column to the source, or give a view of it that has one.');
		ELSIF col.is_required AND col.default_value IS NULL AND NOT col.is_identity AND is_filled THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', col.source, col.relation, col.name,
				'the source has no such column, which must not be null and has no default',
				advice => format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT ...; '
									 'or give a view of the source that has the column.', col.relation, col.name));
		ELSE
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', col.source, col.relation, col.name,
				'the source has no such column: rows take ' || CASE
					WHEN col.default_value IS NOT NULL THEN 'the default ' || col.default_value
					WHEN col.is_identity THEN 'new values of the identity'
					ELSE 'NULL' END);
		END IF;
		IF col.tells_time AND is_filled THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', col.source, col.relation, col.name,
				'the source does not tell when rows were created: new ids are packed at the start of the merge',
				advice => 'Give a view of the source that has the column.');
		END IF;
	END LOOP;
	RETURN can_map;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_target_columns(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds columns that a source lacks';

/*
 * The columns that both sides have, with what is to be known of their types.  element: the type itself, or that of an
 * array's elements.  differs: the types do.  converts: values can be converted without a loss.  is_id: values get new
 * ids.
 */
CREATE FUNCTION snowflake_migrate_internal.common_columns(
	run_ bigint,
	OUT no int,
	OUT source name,
	OUT relation regclass,
	OUT source_relation regclass,
	OUT name name,
	OUT is_key boolean,
	OUT is_id boolean,
	OUT type regtype,
	OUT typmod int,
	OUT element regtype,
	OUT type_name text,
	OUT source_type regtype,
	OUT source_typmod int,
	OUT source_element regtype,
	OUT source_type_name text,
	OUT differs boolean,
	OUT converts boolean,
	OUT may_be_null boolean,
	OUT source_may_be_null boolean) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT p.no, p.source, p.relation, p.source_relation, c.attname, k.is_key, k.is_key AND r.kind = 'id',
		c.atttypid, c.atttypmod, CASE WHEN y.typcategory = 'A' AND y.typelem <> 0 THEN y.typelem ELSE y.oid END,
		format_type(c.atttypid, c.atttypmod),
		s.atttypid, s.atttypmod, CASE WHEN z.typcategory = 'A' AND z.typelem <> 0 THEN z.typelem ELSE z.oid END,
		format_type(s.atttypid, s.atttypmod),
		d.differs,
		CASE WHEN NOT d.differs THEN true
			ELSE snowflake_migrate_internal.cast(s.atttypid, s.atttypmod, c.atttypid, c.atttypmod) IS NOT NULL END,
		NOT c.attnotnull AND NOT y.typnotnull, NOT s.attnotnull
	FROM snowflake_migrate_internal.source_tables(run_) AS p
		JOIN snowflake_migrate_internal.plan_tables AS r ON r.run = run_ AND r.no = p.no
		/* As columns_of(); this is asked four times. */
		CROSS JOIN LATERAL (
			SELECT a.attname, a.atttypid, a.atttypmod, a.attnotnull
			FROM pg_attribute AS a
			WHERE a.attrelid = p.relation AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' OFFSET 0) AS c
		JOIN pg_attribute AS s ON s.attrelid = p.source_relation AND s.attname = c.attname
			AND s.attnum > 0 AND NOT s.attisdropped
		JOIN pg_type AS y ON y.oid = c.atttypid
		JOIN pg_type AS z ON z.oid = s.atttypid
		CROSS JOIN LATERAL (SELECT c.attname = ANY (r.key)) AS k (is_key)
		CROSS JOIN LATERAL (SELECT (c.atttypid, c.atttypmod) IS DISTINCT FROM (s.atttypid, s.atttypmod)) AS d (differs)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.common_columns(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the columns that a table of the target and one of a source have';

/* The labels of an enum that another lacks. */
CREATE FUNCTION snowflake_migrate_internal.lacking_labels(enum regtype, other regtype) RETURNS text[]
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT array_agg(e.enumlabel::text ORDER BY e.enumsortorder)
	FROM pg_enum AS e
	WHERE e.enumtypid = enum
		AND NOT EXISTS (SELECT FROM pg_enum AS o WHERE o.enumtypid = other AND o.enumlabel = e.enumlabel)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.lacking_labels(regtype, regtype)
	IS 'for snowflake_migrate.merge()''s own use: the labels of an enum that another lacks';

/* The greatest value of an integer type, where another has greater ones; of domains over them, and of arrays, too. */
CREATE FUNCTION snowflake_migrate_internal.narrower_integer(
	from_type oid,
	to_type oid,
	OUT largest int,
	OUT are_elements boolean) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT i.largest, t.element IS NOT NULL
	FROM snowflake_migrate_internal.cast_traits(from_type, -1) AS s
		CROSS JOIN snowflake_migrate_internal.cast_traits(to_type, -1) AS t
		JOIN (VALUES ('smallint'::regtype, 'integer'::regtype, 32767),
					 ('smallint', 'bigint', 32767),
					 ('integer', 'bigint', 2147483647)) AS i (type, source_type, largest)
			ON i.type = coalesce(t.element, t.base) AND i.source_type = coalesce(s.element, s.base)
	WHERE (s.element IS NULL) = (t.element IS NULL)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.narrower_integer(oid, oid)
	IS 'for snowflake_migrate.merge()''s own use: the greatest value that becomes one of a narrower type';

/*
 * Columns that take less than the source's: which values of a row s do not fit, and whether the keys can't be mapped
 * where there are any.
 */
CREATE FUNCTION snowflake_migrate_internal.narrower_columns(
	run_ bigint,
	OUT no int,
	OUT source_relation regclass,
	OUT name name,
	OUT predicate text,
	OUT problem text,
	OUT advice text,
	OUT blocks boolean) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH c AS MATERIALIZED (
		SELECT c.*, format('ALTER TABLE %s ALTER COLUMN %I TYPE %s;', c.relation, c.name, c.source_type_name) AS widen
		FROM snowflake_migrate_internal.common_columns(run_) AS c
		WHERE c.differs AND c.converts
	)
	SELECT c.no, c.source_relation, c.name,
		CASE WHEN i.are_elements
			THEN format('NOT coalesce(%s <= ALL (s.%I) AND %s >= ALL (s.%I), true)',
						-i.largest - 1, c.name, i.largest, c.name)
			ELSE format('s.%I NOT BETWEEN %s AND %s', c.name, -i.largest - 1, i.largest) END,
		format('values are too great for type %s', c.type_name), c.widen, true
	FROM c
		CROSS JOIN LATERAL snowflake_migrate_internal.narrower_integer(c.source_type, c.type) AS i
	WHERE NOT c.is_id
	UNION ALL
	SELECT c.no, c.source_relation, c.name, format('length(rtrim(s.%I::text)) > %s', c.name, c.typmod - 4),
		format('values are longer than %s allows', c.type_name), c.widen, false
	FROM c
	WHERE c.type = 'varchar'::regtype AND c.typmod <> -1
		AND (c.source_type <> 'varchar'::regtype OR c.source_typmod NOT BETWEEN 0 AND c.typmod)
	UNION ALL
	SELECT c.no, c.source_relation, c.name,
		format(CASE c.element WHEN c.type THEN 's.%I::text = ANY (%L::text[])' ELSE 's.%I::text[] && %L::text[]' END,
			   c.name, l.labels),
		format('type %s of the target has no %s', c.element,
			   (SELECT string_agg(quote_literal(g.label), ', ') FROM unnest(l.labels) AS g (label))),
		(SELECT string_agg(format('ALTER TYPE %s ADD VALUE %L;', c.element, g.label), ' ')
		 FROM unnest(l.labels) AS g (label)),
		true
	FROM c
		JOIN pg_type AS e ON e.oid = c.element AND e.typtype = 'e'
		CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.lacking_labels(c.source_element, c.element)) AS l (labels)
	WHERE l.labels IS NOT NULL
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.narrower_columns(bigint)
	IS 'for snowflake_migrate.merge()''s own use: columns that take less than a source''s';

/* What not everybody expects of a conversion: that it depends on more than the value, or keeps fewer digits. */
CREATE FUNCTION snowflake_migrate_internal.surprise(from_type regtype, to_type regtype) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE
		WHEN to_type = 'timestamptz'::regtype AND from_type IN ('timestamp'::regtype, 'date'::regtype)
			THEN 'by the time zone of the session that merges'
		WHEN to_type = 'real'::regtype AND from_type
				IN ('integer'::regtype, 'bigint'::regtype, 'numeric'::regtype, 'double precision'::regtype)
			OR to_type = 'double precision'::regtype AND from_type IN ('bigint'::regtype, 'numeric'::regtype)
			THEN 'digits may get lost' END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.surprise(regtype, regtype)
	IS 'for snowflake_migrate.merge()''s own use: what not everybody expects of a conversion';

/* Columns whose types differ, but those where it depends on the values what there is to say. */
CREATE FUNCTION snowflake_migrate_internal.check_types(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	can_map boolean;
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', c.source, c.relation::text, c.name,
			format('type %s cannot become %s without a loss', c.source_type_name, c.type_name),
			advice => format('ALTER TABLE %s ALTER COLUMN %I TYPE %s; or give a view of the source that converts it.',
							 c.relation, c.name, c.source_type_name))
		FROM snowflake_migrate_internal.common_columns(run_) AS c
		WHERE NOT c.converts;
	can_map := NOT FOUND;
	PERFORM snowflake_migrate_internal.add_to_report(run_, CASE WHEN g.surprise IS NULL THEN 'info' ELSE 'warning' END,
			c.source, c.relation::text, c.name,
			format('type %s becomes %s', c.source_type_name, c.type_name) || coalesce(': ' || g.surprise, ''),
			advice => CASE WHEN g.surprise LIKE '%time zone%'
				THEN 'Set timezone to that of the source before the merge.' END)
		FROM snowflake_migrate_internal.common_columns(run_) AS c
			JOIN pg_type AS y ON y.oid = c.type
			JOIN pg_type AS z ON z.oid = c.source_type
			JOIN pg_type AS e ON e.oid = c.element
			CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.surprise(c.source_type, c.type)) AS g (surprise)
		WHERE c.differs AND c.converts
			AND (c.source_relation, c.name) NOT IN (
				SELECT n.source_relation, n.name FROM snowflake_migrate_internal.narrower_columns(run_) AS n)
			/* Of enums of one name, and of ids, it goes without saying. */
			AND NOT (e.typtype = 'e' AND y.typname = z.typname)
			AND NOT c.is_id
			AND NOT EXISTS (
				SELECT FROM snowflake_migrate_internal.plan_references AS f
				WHERE f.run = run_ AND f.no = c.no AND f.name = c.name);
	RETURN can_map;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_types(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds columns whose types differ';

/*
 * What is to be looked for in the rows of the sources: values that do not fit, and nulls.  otherwise: what there is
 * to say where no row has such.
 */
CREATE FUNCTION snowflake_migrate_internal.misfits(
	run_ bigint,
	OUT no int,
	OUT source name,
	OUT relation regclass,
	OUT source_relation regclass,
	OUT name name,
	OUT predicate text,
	OUT problem text,
	OUT otherwise text,
	OUT advice text,
	OUT blocks boolean) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH c AS MATERIALIZED (SELECT c.* FROM snowflake_migrate_internal.common_columns(run_) AS c)
	SELECT c.no, c.source, c.relation, c.source_relation, c.name, n.predicate, n.problem,
		format('type %s becomes %s; all values fit', c.source_type_name, c.type_name), n.advice, n.blocks
	FROM c
		JOIN snowflake_migrate_internal.narrower_columns(run_) AS n USING (source_relation, name)
	UNION ALL
	SELECT c.no, c.source, c.relation, c.source_relation, c.name, format('s.%I IS NULL', c.name),
		CASE WHEN c.is_key THEN 'part of the key is null' ELSE 'is null, which the target does not allow' END,
		/* Columns of a view always may be. */
		CASE WHEN r.relkind IN ('r', 'p', 'f') THEN 'may be null, unlike in the target; it is in no row' END,
		CASE WHEN c.is_key THEN 'Give the rows a key.'
			WHEN a.attnotnull THEN format('Give the rows a value, or ALTER TABLE %s ALTER COLUMN %I DROP NOT NULL;',
										  c.relation, c.name)
			ELSE format('Give the rows a value, or ALTER DOMAIN %s DROP NOT NULL;', format_type(a.atttypid, NULL)) END,
		c.is_key
	FROM c
		JOIN pg_class AS r ON r.oid = c.source_relation
		JOIN pg_attribute AS a ON a.attrelid = c.relation AND a.attname = c.name
	WHERE NOT c.may_be_null AND c.source_may_be_null
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.misfits(bigint)
	IS 'for snowflake_migrate.merge()''s own use: what is to be looked for in the rows of the sources';

/* An example of such a row s of a source, for people: its key, or all of it where it has none. */
CREATE FUNCTION snowflake_migrate_internal.misfit_example(run_ bigint, misfit jsonb) RETURNS text
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	source_relation CONSTANT regclass := misfit ->> 'source_relation';
	key name[];
	example text;
BEGIN
	SELECT t.key INTO STRICT key FROM snowflake_migrate_internal.plan_tables AS t
		WHERE t.run = run_ AND t.no = (misfit ->> 'no')::int;
	IF misfit ->> 'problem' = 'part of the key is null'
		OR NOT snowflake_migrate_internal.has_columns(source_relation, key) THEN
		key := '{}';
	END IF;
	EXECUTE snowflake_migrate_internal.fill('SELECT {row} FROM {source} AS s WHERE {predicate} ORDER BY 1 LIMIT 1',
		misfit || jsonb_build_object(
			'row', snowflake_migrate_internal.row_text(key),
			'source', snowflake_migrate_internal.only(source_relation))) INTO example;
	RETURN example;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.misfit_example(bigint, jsonb)
	IS 'for snowflake_migrate.merge()''s own use: an example of a row that does not fit';

/* Values that do not fit: one look at a table for all of its columns. */
CREATE FUNCTION snowflake_migrate_internal.check_values(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	can_map boolean := true;
	r record;
	misfit jsonb;
	counts bigint[];
BEGIN
	FOR r IN
		SELECT m.source, m.relation::text, m.source_relation,
			string_agg(format('count(*) FILTER (WHERE %s)', m.predicate), ', ' ORDER BY m.name, m.problem) AS counting,
			array_agg(to_jsonb(m) ORDER BY m.name, m.problem) AS misfits
		FROM snowflake_migrate_internal.misfits(run_) AS m
		WHERE snowflake_migrate_internal.can_read(m.source_relation)
		GROUP BY m.source, m.relation, m.source_relation
	LOOP
		EXECUTE format('SELECT ARRAY[%s] FROM %s AS s', r.counting,
					   snowflake_migrate_internal.only(r.source_relation)) INTO counts;
		FOR n IN 1 .. cardinality(counts) LOOP
			misfit := r.misfits[n];
			IF counts[n] > 0 THEN
				can_map := can_map AND NOT (misfit ->> 'blocks')::boolean;
				PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', r.source, r.relation, misfit ->> 'name',
					misfit ->> 'problem', counts[n],
					snowflake_migrate_internal.misfit_example(run_, misfit), misfit ->> 'advice');
			ELSIF misfit ->> 'otherwise' IS NOT NULL THEN
				PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', r.source, r.relation, misfit ->> 'name',
					misfit ->> 'otherwise');
			END IF;
		END LOOP;
	END LOOP;
	RETURN can_map;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_values(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds values that do not fit';

CREATE FUNCTION snowflake_migrate_internal.check_column_order(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', p.source, p.relation::text, NULL,
			'columns are in another order than in the target; they go by their names')
		FROM snowflake_migrate_internal.source_tables(run_) AS p
			CROSS JOIN LATERAL snowflake_migrate_internal.columns_of(p.relation) AS c
			JOIN pg_attribute AS s ON s.attrelid = p.source_relation AND s.attname = c.attname
				AND s.attnum > 0 AND NOT s.attisdropped
		GROUP BY p.source, p.relation
		HAVING array_agg(c.attname ORDER BY c.attnum) <> array_agg(c.attname ORDER BY s.attnum);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_column_order(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds columns that are in another order';

/*
 * Columns whose names the merge's queries give to columns of their own, beside those of the table; and columns that
 * policies change whose name another's former values have in the table of changes (create_map()).
 */
CREATE FUNCTION snowflake_migrate_internal.check_column_names(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, r.relation::text, c.attname,
			'the merge uses this name for a column of its own', NULL, NULL, 'Give the column another name.')
		FROM (
			SELECT t.relation, t.relation AS read FROM snowflake_migrate_internal.merged_tables(run_) AS t
			UNION
			SELECT p.relation, p.source_relation FROM snowflake_migrate_internal.source_tables(run_) AS p
		) AS r
			CROSS JOIN LATERAL snowflake_migrate_internal.columns_of(r.read) AS c
		WHERE c.attname ~ ('^(merge ([oenk][0-9]+|source|action|tries|try|former|suffix|rank|rows|place|combined'
						   '|is there)'
						   '|snowflake conditions? [0-9]+)$')
		UNION ALL
		SELECT snowflake_migrate_internal.add_to_report(run_, 'error', NULL, t.relation::text, c.name,
			'a policy changes it, and the merge uses this name for a column of its own', NULL, NULL,
			'Give the column another name.')
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			JOIN snowflake_migrate_internal.plan_columns AS c ON c.run = run_ AND c.no = t.no
		WHERE c.changed_by IS NOT NULL
			AND EXISTS (
				SELECT FROM snowflake_migrate_internal.plan_columns AS k
				WHERE k.run = run_ AND k.no = t.no AND k.changed_by IS NOT NULL
					AND c.name = snowflake_migrate_internal.beside('old', k.name));
	RETURN NOT FOUND;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_column_names(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds columns with names that it uses itself';

/*
 * CHECKs and unique indexes over the whole row: while it is not there yet, a row as it becomes has not the table's
 * type, and has the merge's own columns as well.
 */
CREATE FUNCTION snowflake_migrate_internal.check_whole_rows(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, t.relation::text, e.name,
			'it is about the whole row: whether rows as they become fit cannot be known before they are there',
			advice => 'Write it over the columns, or drop it before the merge, and create it again after it.')
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			CROSS JOIN LATERAL snowflake_migrate_internal.with_partitions(t.relation) AS o (oid)
			CROSS JOIN LATERAL (
				SELECT n.conname, n.conbin::text
				FROM pg_constraint AS n WHERE n.conrelid = o.oid AND n.contype = 'c'
				UNION ALL
				SELECT x.relname, concat(i.indexprs::text, i.indpred::text)
				FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid
				WHERE i.indrelid = o.oid AND (i.indisunique OR i.indisexclusion)
			) AS e (name, tree)
		WHERE e.tree ~ ':varattno 0 ';
	RETURN NOT FOUND;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_whole_rows(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds what is about whole rows';

CREATE FUNCTION snowflake_migrate_internal.check_columns(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	names CONSTANT boolean := snowflake_migrate_internal.check_column_names(run_);
	target_columns CONSTANT boolean := snowflake_migrate_internal.check_target_columns(run_);
	types CONSTANT boolean := snowflake_migrate_internal.check_types(run_);
	values_ CONSTANT boolean := snowflake_migrate_internal.check_values(run_);
	whole_rows CONSTANT boolean := snowflake_migrate_internal.check_whole_rows(run_);
BEGIN
	PERFORM snowflake_migrate_internal.check_source_columns(run_);
	PERFORM snowflake_migrate_internal.check_column_order(run_);
	RETURN names AND target_columns AND types AND values_ AND whole_rows;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_columns(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds what is wrong with columns';
