/*
 * Keys that can't hold the new ids, and what refers to them; keys that a source has more than once.
 */

/* The columns of the unique indexes of a table that could tell which rows are the same, instead of its key. */
CREATE FUNCTION snowflake_migrate_internal.natural_keys(run_ bigint, no_ int, OUT label name, OUT names name[])
RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT x.relname, k.names
	FROM snowflake_migrate_internal.plan_tables AS t
		JOIN pg_index AS i ON i.indrelid = t.relation AND i.indisunique AND i.indisvalid
			AND i.indexprs IS NULL AND i.indpred IS NULL
		JOIN pg_class AS x ON x.oid = i.indexrelid
		CROSS JOIN LATERAL (
			SELECT array_agg(a.attname ORDER BY u.n)
			FROM unnest(i.indkey[0 : i.indnkeyatts - 1]) WITH ORDINALITY AS u (attnum, n)
				JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = u.attnum) AS k (names)
	WHERE t.run = run_ AND t.no = no_ AND NOT k.names && t.key
		AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS f
						WHERE f.run = run_ AND f.no = no_ AND f.name = ANY (k.names))
	ORDER BY i.indexrelid
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.natural_keys(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: columns that could tell which rows are the same';

/* The table at the top of an inheritance tree that has this column: it is altered there. */
CREATE FUNCTION snowflake_migrate_internal.inherited_from(relation regclass, name name) RETURNS regclass
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE ancestor (oid, depth) AS (
		SELECT relation::oid, 0
		UNION
		SELECT i.inhparent, n.depth + 1
		FROM ancestor AS n
			JOIN pg_inherits AS i ON i.inhrelid = n.oid
			JOIN pg_attribute AS a ON a.attrelid = i.inhparent AND a.attname = inherited_from.name
	)
	SELECT n.oid::regclass FROM ancestor AS n ORDER BY n.depth DESC, n.oid LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.inherited_from(regclass, name)
	IS 'for snowflake_migrate.merge()''s own use: the table that a column is inherited from';

/*
 * The keys that are to be given snowflake ids and can't be.  What nothing makes may mean something, as a season's
 * number does, or refer to another table's row, and must not be adopted before somebody has said that it is neither:
 * is_declared is false there.
 */
CREATE FUNCTION snowflake_migrate_internal.unfit_keys(
	run_ bigint,
	OUT relation regclass,
	OUT mode text,
	OUT key name,
	OUT type text,
	OUT is_domain boolean,
	OUT is_bigint boolean,
	OUT is_declared boolean,
	OUT adopted regclass) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT t.relation, t.mode, a.attname, format_type(a.atttypid, a.atttypmod), y.typtype = 'd',
		a.atttypid = 'bigint'::regtype,
		t.mode <> 'copy' OR a.attidentity <> '' OR a.atthasdef OR EXISTS (
			SELECT FROM snowflake_migrate.declared_tables AS d WHERE d.relation = t.relation),
		snowflake_migrate_internal.inherited_from(t.relation, a.attname)
	FROM snowflake_migrate_internal.merged_tables(run_) AS t
		JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attname = t.key[1]
		JOIN pg_type AS y ON y.oid = a.atttypid
	WHERE t.kind = 'id'
		AND (a.atttypid <> 'bigint'::regtype
			 OR NOT snowflake_migrate_internal.has_snowflake_default(t.relation, a.attnum))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.unfit_keys(bigint)
	IS 'for snowflake_migrate.merge()''s own use: keys that cannot be given snowflake ids';

/* What a key that nothing makes could be, and how that is declared. */
CREATE FUNCTION snowflake_migrate_internal.key_answers(
	run_ bigint,
	relation regclass,
	key name,
	OUT n int,
	OUT is_named boolean,
	OUT question text,
	OUT declaration text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT q.*
	FROM snowflake_migrate_internal.vocabulary(run_) AS v
		CROSS JOIN LATERAL (
			SELECT nullif(snowflake_migrate_internal.named(
				snowflake_migrate_internal.stem(snowflake_migrate_internal.word(key)), c.relnamespace, v, true),
				relation)::regclass
			FROM pg_class AS c WHERE c.oid = relation)
			AS r (referenced)
		CROSS JOIN LATERAL (VALUES
			(1, false, 'If an equal key is the same row in all databases: ',
				snowflake_migrate_internal.table_declaration(relation, 'same_id')),
			(2, false, 'If other columns tell which rows are the same: ',
				snowflake_migrate_internal.table_declaration(relation, 'match', coalesce((
					SELECT n.names
					FROM snowflake_migrate_internal.plan_tables AS t,
						snowflake_migrate_internal.natural_keys(run_, t.no) AS n
					WHERE t.run = run_ AND t.relation = key_answers.relation LIMIT 1), '{?}'))),
			(3, r.referenced IS NOT NULL, 'If it is the key of another table''s row: ',
				snowflake_migrate_internal.reference_declaration(
					relation, key, coalesce(r.referenced::text, '?'), NULL, NULL)),
			(4, false, 'If it is none of these, and its rows get other keys: ',
				snowflake_migrate_internal.table_declaration(relation, 'copy')))
			AS q (n, is_named, question, declaration)
	ORDER BY q.is_named DESC, q.n
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.key_answers(bigint, regclass, name)
	IS 'for snowflake_migrate.merge()''s own use: what a key that nothing makes could be';

/* Advice on a key that nothing makes: what it could be, the likeliest first. */
CREATE FUNCTION snowflake_migrate_internal.key_question(run_ bigint, relation regclass, key name) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT string_agg(a.question || a.declaration, E'\n' ORDER BY a.is_named DESC, a.n)
	FROM snowflake_migrate_internal.key_answers(run_, relation, key) AS a
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.key_question(bigint, regclass, name)
	IS 'for snowflake_migrate.merge()''s own use: advice on a key that nothing makes';

/* The keys that one call can adopt. */
CREATE FUNCTION snowflake_migrate_internal.keys_to_adopt(run_ bigint, OUT tables regclass[], OUT keys name[])
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT coalesce(array_agg(a.adopted ORDER BY a.first), '{}'), coalesce(array_agg(a.key ORDER BY a.first), '{}')
	FROM (
		SELECT DISTINCT ON (u.adopted) u.adopted, u.key,
			min(u.relation::text COLLATE "C") OVER (PARTITION BY u.adopted) AS first
		FROM snowflake_migrate_internal.unfit_keys(run_) AS u
		WHERE u.is_declared AND NOT u.is_domain AND (u.mode = 'copy' OR NOT u.is_bigint)
		ORDER BY u.adopted, u.relation::text COLLATE "C"
	) AS a
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.keys_to_adopt(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the keys that one call can adopt';

/* The call that adopts keys.  Of very many, one transaction may need more locks than there are. */
CREATE FUNCTION snowflake_migrate_internal.adoption_call(tables regclass[], keys name[]) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT format(CASE WHEN cardinality(tables) > 50 THEN 'CALL snowflake_migrate.adopt_in_parts(%L, %L);'
				  ELSE 'SELECT snowflake_migrate.adopt(%L, %L);' END, tables, keys)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adoption_call(regclass[], name[])
	IS 'for snowflake_migrate.merge()''s own use: the call that adopts keys';

/* Keys that can't hold the new ids, or are not given any, or are generated; tables without a key. */
CREATE FUNCTION snowflake_migrate_internal.check_key_types(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	can_map boolean;
	k record;
	adopted CONSTANT record := snowflake_migrate_internal.keys_to_adopt(run_);
	advice text;
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, t.relation::text, NULL,
			'has no key: is copied in one transaction, and ' || CASE
				WHEN EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS f
							 WHERE f.run = run_ AND f.no = t.no)
				THEN 'of its rows only those that refer to others can be taken back' ELSE 'cannot be taken back' END,
			advice => format('ALTER TABLE %s ADD PRIMARY KEY (...);', t.relation))
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
		WHERE t.kind = 'none';
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, t.relation::text, NULL,
			format('is declared as %s, and has no key', t.mode),
			advice => format('ALTER TABLE %s ADD PRIMARY KEY (...);', t.relation))
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
		WHERE t.kind = 'none' AND t.mode IN ('match', 'same_id');
	can_map := NOT FOUND;
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, t.relation::text, a.attname,
			'the key has a generated column, which cannot be given a value',
			advice => 'Leave the table out: ' || snowflake_migrate_internal.table_declaration(t.relation, 'ignore'))
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attname = ANY (t.key) AND a.attgenerated <> '';
	can_map := can_map AND NOT FOUND;
	FOR k IN SELECT u.* FROM snowflake_migrate_internal.unfit_keys(run_) AS u ORDER BY u.relation::text COLLATE "C" LOOP
		can_map := can_map AND k.is_bigint;
		IF NOT k.is_declared THEN
			advice := snowflake_migrate_internal.key_question(run_, k.relation, k.key);
		ELSIF k.is_domain THEN
			advice := format('ALTER TABLE %s ALTER COLUMN %I TYPE bigint;', k.adopted, k.key);
		ELSE
			advice := format('SELECT snowflake_migrate.adopt(ARRAY[%L]::regclass[], ARRAY[%L]::name[]);',
							 k.adopted, k.key);
		END IF;
		/* Rows of shared tables may all be there, so that none is given an id. */
		PERFORM snowflake_migrate_internal.add_to_report(run_,
			CASE WHEN k.is_bigint AND k.mode <> 'copy' THEN 'warning' ELSE 'error' END, NULL, k.relation::text, k.key,
			CASE WHEN k.is_bigint THEN 'key is not given snowflake ids by default'
				ELSE format('key has the type %s, which snowflake ids do not fit into', k.type) END,
			advice => advice);
	END LOOP;
	IF cardinality(adopted.tables) > 1 THEN
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', NULL, NULL, NULL,
			'keys are to be adopted, which one call can do', cardinality(adopted.tables),
			advice => snowflake_migrate_internal.adoption_call(adopted.tables, adopted.keys));
	END IF;
	RETURN can_map;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_key_types(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds keys that cannot hold the new ids';

/* The type that a reference of this type must have to hold all ids; null where it holds them.  Of arrays likewise. */
CREATE FUNCTION snowflake_migrate_internal.type_for_ids(type oid, typmod int) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE
			WHEN e.oid = 'bigint'::regtype THEN NULL
			/* An id has up to 19 digits. */
			WHEN e.oid IN ('varchar'::regtype, 'bpchar'::regtype) THEN
				CASE WHEN u.typmod BETWEEN 4 AND 22 THEN 'text' END
			WHEN e.oid = 'numeric'::regtype THEN
				CASE WHEN u.typmod <> -1 AND (n.scale < 0 OR n.digits - n.scale < 19) THEN 'numeric' END
			WHEN e.typcategory = 'S' THEN NULL
			ELSE 'bigint' END
		|| CASE b.typcategory WHEN 'A' THEN '[]' ELSE '' END
	FROM pg_type AS y
		CROSS JOIN LATERAL snowflake_migrate_internal.base_type(y.oid, typmod) AS m (base, typmod)
		JOIN pg_type AS b ON b.oid = m.base
		CROSS JOIN LATERAL snowflake_migrate_internal.base_type(
			CASE b.typcategory WHEN 'A' THEN b.typelem ELSE b.oid END, m.typmod) AS u (base, typmod)
		JOIN pg_type AS e ON e.oid = u.base
		/* As numeric.c packs them. */
		CROSS JOIN LATERAL (
			SELECT (u.typmod - 4) >> 16 & 65535, ((u.typmod - 4 & 2047) # 1024) - 1024) AS n (digits, scale)
	WHERE y.oid = type
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.type_for_ids(oid, int)
	IS 'for snowflake_migrate.merge()''s own use: the type that a reference must have';

/* References that can't hold the new ids, and are not widened where the key that they refer to is adopted. */
CREATE FUNCTION snowflake_migrate_internal.check_reference_types(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, t.relation::text, a.attname,
			format('has the type %s and refers to ids of %s, which do not fit',
				   format_type(a.atttypid, a.atttypmod), p.relation),
			advice => format('ALTER TABLE %s ALTER COLUMN %I TYPE %s;', t.relation, a.attname, i.type))
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			JOIN snowflake_migrate_internal.plan_references AS f ON f.run = run_ AND f.no = t.no AND f.path IS NULL
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.no = f.referenced
			JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attname = f.name
			JOIN pg_attribute AS k ON k.attrelid = p.relation AND k.attname = p.key[1]
			/* OFFSET: not for all columns of the table. */
			CROSS JOIN LATERAL (
				SELECT snowflake_migrate_internal.type_for_ids(a.atttypid, a.atttypmod) OFFSET 0) AS i (type)
		WHERE i.type IS NOT NULL
			AND (snowflake_migrate_internal.adopt_type(a.atttypid) IS NULL OR k.atttypid = 'bigint'::regtype)
		GROUP BY t.relation, a.attname, a.atttypid, a.atttypmod, p.relation, i.type;
	RETURN NOT FOUND;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_reference_types(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds references that cannot hold the new ids';

/* Whether a source's key can become the target's: each of its columns has a cast. */
CREATE FUNCTION snowflake_migrate_internal.can_cast_key(relation regclass, source_relation regclass, key name[])
RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT NOT EXISTS (
		SELECT FROM pg_attribute AS a
			JOIN pg_attribute AS o ON o.attrelid = source_relation AND o.attname = a.attname
		WHERE a.attrelid = relation AND a.attname = ANY (key)
			AND snowflake_migrate_internal.cast(o.atttypid, o.atttypmod, a.atttypid, a.atttypmod) IS NULL)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.can_cast_key(regclass, regclass, name[])
	IS 'for snowflake_migrate.merge()''s own use: whether a key of a source can become the target''s';

/*
 * The tables of sources whose keys may repeat, as no index proves that they don't: in views and foreign tables there
 * is none. key_values: the key in the target's types; a key that can't be had in these is reported elsewhere.
 */
CREATE FUNCTION snowflake_migrate_internal.unproved_keys(
	run_ bigint,
	OUT source name,
	OUT relation regclass,
	OUT source_relation regclass,
	OUT key name[],
	OUT key_values text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT s.source, t.relation, s.source_relation, t.key, v.key_values
	FROM snowflake_migrate_internal.source_tables(run_) AS s
		JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.no = s.no
		CROSS JOIN LATERAL (
			SELECT string_agg(k.value, ', ' ORDER BY k.n)
			FROM snowflake_migrate_internal.key_values(t.relation, s.source_relation, t.key) AS k) AS v (key_values)
	WHERE t.kind <> 'none'
		AND snowflake_migrate_internal.can_read(s.source_relation)
		AND snowflake_migrate_internal.has_columns(s.source_relation, t.key)
		AND NOT EXISTS (
			SELECT FROM pg_index AS i
			WHERE i.indrelid = s.source_relation AND i.indisunique AND i.indisvalid AND i.indimmediate
				AND i.indexprs IS NULL AND i.indpred IS NULL
				AND NOT EXISTS (
					SELECT FROM unnest(i.indkey[0 : i.indnkeyatts - 1]) AS k (attnum)
						JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
						LEFT JOIN pg_attribute AS b ON b.attrelid = t.relation AND b.attname = a.attname
						LEFT JOIN pg_type AS y ON y.oid = b.atttypid
						LEFT JOIN pg_collation AS l ON l.oid = b.attcollation
					WHERE a.attname <> ALL (t.key)
						/* Texts that the source tells apart may be equal in the target. */
						OR y.typcategory = 'S' AND b.atttypid <> a.atttypid
						OR b.attcollation <> a.attcollation AND NOT l.collisdeterministic))
		AND snowflake_migrate_internal.can_cast_key(t.relation, s.source_relation, t.key)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.unproved_keys(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the tables of sources whose keys may repeat';

/* Keys that several rows of a source have. */
CREATE FUNCTION snowflake_migrate_internal.check_duplicates(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	can_map boolean := true;
	r record;
	duplicates bigint;
	example text;
BEGIN
	FOR r IN
		SELECT u.*, c.columns
		FROM snowflake_migrate_internal.unproved_keys(run_) AS u
			CROSS JOIN LATERAL (
				SELECT string_agg('k' || n, ', ' ORDER BY n) FROM generate_subscripts(u.key, 1) AS n) AS c (columns)
	LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*), string_agg(d.key, ', ' ORDER BY d.n, d.key) FILTER (WHERE d.n <= 3)
			FROM (
				SELECT {key_text}::text, row_number() OVER (ORDER BY {columns})
				/* OFFSET 0: postgres_fdw would have groups of casts made there, in a query that is none. */
				FROM (SELECT {values} FROM {source} AS s OFFSET 0) AS v ({columns})
				GROUP BY {columns}
				HAVING count(*) > 1
			) AS d (key, n)
		$query$, jsonb_build_object(
			'source', snowflake_migrate_internal.only(r.source_relation),
			'values', r.key_values,
			'columns', r.columns,
			'key_text', format(CASE cardinality(r.key) WHEN 1 THEN '(%s)' ELSE 'ROW (%s)' END, r.columns)))
			INTO duplicates, example;
		IF duplicates > 0 THEN
			can_map := false;
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', r.source, r.relation::text,
				array_to_string(r.key, ', '), 'several rows have the same key', duplicates, example,
				'Give each row a key of its own, or a view of the source with one row for each key.');
		END IF;
	END LOOP;
	RETURN can_map;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_duplicates(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds keys that several rows of a source have';

/*
 * Policies that change a column of the key by which a table's rows are told, in the maps, the proof and the rollback:
 * these know a row by its key in the source and its id in the target.
 */
CREATE FUNCTION snowflake_migrate_internal.check_changed_keys(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, t.relation::text, c.name,
			format('policy "%s" changes it, and it is part of the key (%s) by which rows are told', c.changed_by,
				   array_to_string(t.key, ', ')),
			advice => 'Give the table another primary key, and make this one a UNIQUE constraint, for which the policy '
				'is declared; or choose another policy.')
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN snowflake_migrate_internal.plan_columns AS c USING (run, no)
		WHERE t.run = run_ AND t.kind = 'key' AND c.changed_by IN ('suffix', 'next_free', 'rerank')
			AND c.name = ANY (t.key);
	RETURN NOT FOUND;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_changed_keys(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds keys that policies would change';

/* Tables of which a source has no column, or the target too many. */
CREATE FUNCTION snowflake_migrate_internal.check_number_of_columns(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	can_map boolean;
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', s.source, t.relation::text, NULL,
			'no column of the table is copied',
			advice => 'Leave the table out: ' || snowflake_migrate_internal.table_declaration(t.relation, 'ignore'))
		FROM snowflake_migrate_internal.source_tables(run_) AS s
			JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.no = s.no
		WHERE t.kind = 'none' AND NOT EXISTS (
			SELECT FROM snowflake_migrate_internal.columns_of(t.relation) AS c
			WHERE c.attgenerated = '' AND c.attname <> ALL (t.ignored_columns)
				AND snowflake_migrate_internal.has_columns(s.source_relation, ARRAY[c.attname]));
	can_map := NOT FOUND;
	/* The proof joins both sides of a row, and a row of a query has at most 1664 columns. */
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, t.relation::text, NULL,
			format('has %s columns, and the proof compares no more than 800', c.columns),
			advice => 'Leave the table out: ' || snowflake_migrate_internal.table_declaration(t.relation, 'ignore'))
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			CROSS JOIN LATERAL (
				SELECT count(*) FROM snowflake_migrate_internal.columns_of(t.relation)) AS c (columns)
		WHERE c.columns > 800;
	RETURN can_map AND NOT FOUND;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_number_of_columns(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds tables with no column, or too many';

CREATE FUNCTION snowflake_migrate_internal.check_keys(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	key_types CONSTANT boolean := snowflake_migrate_internal.check_key_types(run_);
	columns CONSTANT boolean := snowflake_migrate_internal.check_number_of_columns(run_);
	reference_types CONSTANT boolean := snowflake_migrate_internal.check_reference_types(run_);
	uniqueness CONSTANT boolean := snowflake_migrate_internal.check_duplicates(run_);
	changes CONSTANT boolean := snowflake_migrate_internal.check_changed_keys(run_);
BEGIN
	RETURN key_types AND columns AND reference_types AND uniqueness AND changes;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_keys(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds what is wrong with keys';
