/*
 * Keys that can't hold the new ids, and what refers to them; keys that a source has more than once.
 */

/* The columns of a unique index that could say which rows are the same, instead of a key; {?} where there is none. */
CREATE FUNCTION snowflake_migrate_internal.natural_key_advice(relation regclass, key name) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT coalesce((
			SELECT array_agg(a.attname ORDER BY a.attnum)::text
			FROM pg_index AS i
				CROSS JOIN LATERAL unnest(i.indkey[0 : i.indnkeyatts - 1]) AS k (attnum)
				JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
			WHERE i.indrelid = relation AND i.indisunique AND i.indexprs IS NULL AND i.indpred IS NULL
			GROUP BY i.indexrelid
			HAVING key <> ALL (array_agg(a.attname))
			ORDER BY i.indexrelid
			LIMIT 1), '{?}')
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.natural_key_advice(regclass, name)
	IS 'for snowflake_migrate.merge()''s own use: columns that could say which rows are the same';

/*
 * What to do about a key that is to be given snowflake ids and can't be.  A key that no sequence gives may mean
 * something, as a season's number does: then it must stay what it is.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_advice(relation regclass, mode text, key name) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN mode = 'copy' AND a.attidentity = '' AND NOT a.atthasdef
			THEN 'If an equal key is the same row in all databases: '
				|| format(E'SELECT snowflake_migrate.declare_table(%L, ''same_id'');\n', relation)
				|| 'If other columns tell which rows are the same: '
				|| format(E'SELECT snowflake_migrate.declare_table(%L, ''match'', %L);\n',
						  relation, snowflake_migrate_internal.natural_key_advice(relation, key))
				|| 'Else, as its rows get other keys: '
			ELSE '' END
		|| format('SELECT snowflake_migrate.adopt(ARRAY[%L]::regclass[], ARRAY[%L]::name[]);', relation, key)
	FROM pg_attribute AS a
	WHERE a.attrelid = relation AND a.attname = key
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_advice(regclass, text, name)
	IS 'for snowflake_migrate.merge()''s own use: what to do about a key that cannot be given snowflake ids';

/* Keys that can't hold the new ids, or are not given any; tables without a key. */
CREATE FUNCTION snowflake_migrate_internal.check_key_types(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	can_map boolean;
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, t.relation::text, NULL,
			'has no key: is copied in one transaction, and cannot be taken back',
			advice => format('ALTER TABLE %s ADD PRIMARY KEY (...);', t.relation))
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
		WHERE t.kind = 'none';
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, t.relation::text, a.attname,
			format('key has the type %s, which snowflake ids do not fit into', format_type(a.atttypid, a.atttypmod)),
			advice => snowflake_migrate_internal.adopt_advice(t.relation, t.mode, a.attname))
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attname = t.key[1]
		WHERE t.kind = 'id' AND a.atttypid <> 'bigint'::regtype;
	can_map := NOT FOUND;
	/* Rows of shared tables may all be there, so that none is given an id. */
	PERFORM snowflake_migrate_internal.add_to_report(run_, CASE t.mode WHEN 'copy' THEN 'error' ELSE 'warning' END,
			NULL, t.relation::text, a.attname, 'key is not given snowflake ids by default',
			advice => snowflake_migrate_internal.adopt_advice(t.relation, t.mode, a.attname))
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attname = t.key[1]
		WHERE t.kind = 'id' AND a.atttypid = 'bigint'::regtype
			AND NOT snowflake_migrate_internal.has_snowflake_default(t.relation, a.attnum);
	RETURN can_map;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_key_types(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds keys that cannot hold the new ids';

/* References that can't hold the new ids. */
CREATE FUNCTION snowflake_migrate_internal.check_reference_types(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, t.relation::text, a.attname,
			format('has the type %s and refers to ids of %s, which do not fit',
				   format_type(a.atttypid, a.atttypmod), p.relation),
			advice => CASE
				WHEN NOT bool_or(f.declared) AND k.atttypid <> 'bigint'::regtype
					THEN snowflake_migrate_internal.adopt_advice(p.relation, p.mode, k.attname)
				ELSE format('ALTER TABLE %s ALTER COLUMN %I TYPE %s;', t.relation, a.attname,
							CASE WHEN bool_or(f.elements) THEN 'bigint[]' ELSE 'bigint' END) END)
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			JOIN snowflake_migrate_internal.plan_references AS f ON f.run = run_ AND f.no = t.no AND f.path IS NULL
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.no = f.referenced
			JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attname = f.name
			JOIN pg_attribute AS k ON k.attrelid = p.relation AND k.attname = p.key[1]
			JOIN pg_type AS y ON y.oid = a.atttypid
		WHERE coalesce(nullif(y.typbasetype, 0), y.oid) IN ('smallint'::regtype, 'integer'::regtype)
			OR y.oid IN ('smallint[]'::regtype, 'integer[]'::regtype)
		GROUP BY t.relation, a.attname, a.atttypid, a.atttypmod, p.relation, p.mode, k.attname, k.atttypid;
	RETURN NOT FOUND;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_reference_types(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds references that cannot hold the new ids';

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
					WHERE a.attname <> ALL (t.key)))
		AND NOT EXISTS (
			SELECT FROM pg_attribute AS a
				JOIN pg_attribute AS o ON o.attrelid = s.source_relation AND o.attname = a.attname
			WHERE a.attrelid = t.relation AND a.attname = ANY (t.key)
				AND snowflake_migrate_internal.cast(o.atttypid, o.atttypmod, a.atttypid, a.atttypmod) IS NULL)
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
	FOR r IN SELECT u.* FROM snowflake_migrate_internal.unproved_keys(run_) AS u LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*), string_agg(d.key, ', ' ORDER BY d.n, d.key) FILTER (WHERE d.n <= 3)
			FROM (
				SELECT {key_text}::text, row_number() OVER (ORDER BY {values})
				FROM {source} AS s
				GROUP BY {values}
				HAVING count(*) > 1
			) AS d (key, n)
		$query$, jsonb_build_object(
			'source', snowflake_migrate_internal.only(r.source_relation),
			'values', r.key_values,
			'key_text', format(CASE cardinality(r.key) WHEN 1 THEN '(%s)' ELSE 'ROW (%s)' END, r.key_values)))
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

CREATE FUNCTION snowflake_migrate_internal.check_keys(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	key_types CONSTANT boolean := snowflake_migrate_internal.check_key_types(run_);
	reference_types CONSTANT boolean := snowflake_migrate_internal.check_reference_types(run_);
	uniqueness CONSTANT boolean := snowflake_migrate_internal.check_duplicates(run_);
BEGIN
	RETURN key_types AND reference_types AND uniqueness;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_keys(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds what is wrong with keys';
