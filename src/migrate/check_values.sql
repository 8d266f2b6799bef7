/*
 * What the values of a column tell about what it refers to: a few of each source are looked for in the maps, which know
 * all keys of the sources.
 */

/*
 * The query for the values of a column of this type in a row s that may be ids: integers above a limit, and texts, of
 * which those that are no ids are null.
 */
CREATE FUNCTION snowflake_migrate_internal.values_query(name name, type oid, limit_ int) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_migrate_internal.fill(CASE
		WHEN type IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype)
			THEN 'SELECT {''column''}::name, s.{"column"}::bigint WHERE s.{"column"} > {limit}'
		WHEN type IN ('smallint[]'::regtype, 'integer[]'::regtype, 'bigint[]'::regtype)
			THEN 'SELECT {''column''}::name, e.id::bigint FROM unnest(s.{"column"}) AS e (id) WHERE e.id > {limit}'
		WHEN type IN ('numeric'::regtype, 'numeric[]'::regtype) THEN $query$
			SELECT {'column'}::name, t.value::bigint
			FROM {values} AS t (value)
			WHERE t.value > {limit} AND t.value < 9e18 AND t.value = trunc(t.value)
			$query$
		WHEN type IN ('text'::regtype, 'varchar'::regtype, 'bpchar'::regtype,
					  'text[]'::regtype, 'varchar[]'::regtype, 'bpchar[]'::regtype) THEN $query$
			SELECT {'column'}::name,
				CASE WHEN t.value COLLATE "C" ~ '^[1-9][0-9]*$' AND length(t.value) < 20 AND t.value::numeric < 9e18
					THEN t.value::bigint END
			FROM {values} AS t (value)
			/* As a rule, those of nothing. */
			WHERE t.value COLLATE "C" NOT IN ('', '0', '-1')
			$query$ END, jsonb_build_object('column', name, 'limit', limit_, 'values', format(
				CASE WHEN type = 'numeric[]'::regtype THEN 'unnest(s.%I)'
					WHEN type IN ('text[]'::regtype, 'varchar[]'::regtype, 'bpchar[]'::regtype)
						THEN 'unnest(s.%I::text[])'
					WHEN type = 'numeric'::regtype THEN '(SELECT s.%I)'
					ELSE '(SELECT s.%I::text)' END, name)))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.values_query(name, oid, int)
	IS 'for snowflake_migrate.merge()''s own use: the ids that a column has in a row';

/*
 * Takes a sample of each column that could be a reference, from the first 1000 rows of each source: the 10 greatest
 * ids, which fewest tables have, and 20 by chance (is_random, as are all of documents); of how many
 * (distinct_values), and, where add_greatest_to_samples() has been, the greatest id of all rows.  Of columns whose
 * names say nothing of ids, numbers below 1000 tell nothing, but in lists.
 */
CREATE FUNCTION snowflake_migrate_internal.take_samples(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	names CONSTANT jsonb := jsonb_build_object('sample', snowflake_migrate_internal.relation(run_, 'sample'));
	known CONSTANT snowflake_migrate_internal.vocabulary := snowflake_migrate_internal.vocabulary(run_);
	t record;
BEGIN
	EXECUTE snowflake_migrate_internal.fill('CREATE TABLE {sample} '
		'(no int NOT NULL, source int NOT NULL, name name NOT NULL, path text, value bigint, '
		'is_random boolean NOT NULL DEFAULT true, distinct_values int, greatest bigint)', names);
	FOR t IN
		SELECT s.no, s.source_no AS source, snowflake_migrate_internal.only(s.source_relation) AS source_table,
			string_agg(quote_ident(c.name), ', ') AS columns, string_agg(v.query, ' UNION ALL ') AS values
		FROM snowflake_migrate_internal.undeclared_columns(run_) AS c
			JOIN snowflake_migrate_internal.source_tables(run_) AS s USING (no)
			JOIN pg_attribute AS a ON a.attrelid = s.source_relation AND a.attname = c.name
				AND a.attnum > 0 AND NOT a.attisdropped
			JOIN pg_type AS y ON y.oid = a.atttypid
			CROSS JOIN LATERAL snowflake_migrate_internal.values_query(
				c.name, snowflake_migrate_internal.without_domain(y.oid),
				CASE WHEN c.stem IS NOT NULL OR c.is_somebody OR c.form = 'array'
						OR snowflake_migrate_internal.is_another(c.word)
						OR snowflake_migrate_internal.namesake(c.relation, c.word, c.form = 'array', known) IS NOT NULL
					THEN 0 ELSE 999 END) AS v (query)
		WHERE v.query IS NOT NULL AND snowflake_migrate_internal.can_read(s.source_relation)
		GROUP BY s.no, s.source_no, s.source_relation
	LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			INSERT INTO {sample} (no, source, name, value, is_random, distinct_values)
			SELECT {no}, {source}, q.name, q.value, q.at_random <= 20, q.distinct_values
			FROM (
				SELECT v.name, v.value, count(v.value) OVER (PARTITION BY v.name) AS distinct_values,
					row_number() OVER (PARTITION BY v.name ORDER BY v.value DESC) AS from_greatest,
					row_number() OVER (PARTITION BY v.name ORDER BY hashint8(v.value)) AS at_random
				FROM (SELECT {columns} FROM {source_table} LIMIT 1000) AS s
					CROSS JOIN LATERAL ({values}) AS v (name, value)
				GROUP BY v.name, v.value
			) AS q
			WHERE q.value IS NULL OR q.from_greatest <= 10 OR q.at_random <= 20
		$query$, names || to_jsonb(t));
	END LOOP;
	FOR t IN
		SELECT c.no, c.relation, c.name FROM snowflake_migrate_internal.undeclared_columns(run_) AS c
		WHERE c.form = 'document'
	LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			INSERT INTO {sample} (no, source, name, path, value)
			SELECT {no}, u.source, {'column'}, u.path, v.value
			FROM snowflake_migrate_internal.undeclared_paths({run}, {relation}, {'column'}) AS u
				CROSS JOIN LATERAL unnest(u.sample) AS v (value)
		$query$, names || jsonb_build_object('run', run_, 'no', t.no, 'relation', t.relation::oid, 'column', t.name));
	END LOOP;
	EXECUTE snowflake_migrate_internal.fill('ANALYZE {sample}', names);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.take_samples(bigint)
	IS 'for snowflake_migrate.merge()''s own use: takes samples of columns';

/* Adds the greatest id of all rows of each source to the samples of a table's columns: one pass over each. */
CREATE FUNCTION snowflake_migrate_internal.add_greatest_to_samples(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	names CONSTANT jsonb := jsonb_build_object(
		'sample', snowflake_migrate_internal.relation(run_, 'sample'), 'no', no_);
	sampled name[];
	t record;
BEGIN
	EXECUTE snowflake_migrate_internal.fill(
			'SELECT array_agg(DISTINCT s.name) FROM {sample} AS s WHERE s.no = {no} AND s.path IS NULL', names)
		INTO sampled;
	FOR t IN
		SELECT s.source_no AS source, snowflake_migrate_internal.only(s.source_relation) AS source_table,
			string_agg(quote_ident(a.attname), ', ') AS columns,
			string_agg(snowflake_migrate_internal.values_query(
				a.attname, snowflake_migrate_internal.without_domain(y.oid), 0), ' UNION ALL ') AS values
		FROM snowflake_migrate_internal.source_tables(run_) AS s
			JOIN pg_attribute AS a ON a.attrelid = s.source_relation AND a.attname = ANY (sampled)
				AND a.attnum > 0 AND NOT a.attisdropped
			JOIN pg_type AS y ON y.oid = a.atttypid
		WHERE s.no = no_ AND snowflake_migrate_internal.can_read(s.source_relation)
		GROUP BY s.source_no, s.source_relation
	LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			UPDATE {sample} AS a SET greatest = g.value
			FROM (
					SELECT v.name, max(v.value)
					FROM (SELECT {columns} FROM {source_table}) AS s CROSS JOIN LATERAL ({values}) AS v (name, value)
					GROUP BY v.name
				) AS g (name, value)
			WHERE a.no = {no} AND a.source = {source} AND a.name = g.name AND a.path IS NULL
		$query$, names || to_jsonb(t));
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.add_greatest_to_samples(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: adds the greatest ids to samples of columns';

/*
 * Whether a column's values end so far below the greatest key of a table that this would hardly be so, in a source, if
 * they were any of its keys.  Of n different ids of a table all lie in the lower part q of its keys with a probability
 * of q^n, at most.
 */
CREATE FUNCTION snowflake_migrate_internal.values_fall_short(run_ bigint, no_ int, name_ name, referenced regclass)
RETURNS boolean
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	do_fall boolean;
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT coalesce(bool_or(s.distinct_values * ln(p.part) < ln(0.001)), false)
		FROM (
				SELECT s.source, greatest(max(s.value), max(s.greatest))::float8, max(s.distinct_values)
				FROM {sample} AS s
				WHERE s.no = {no} AND s.name = {'name'} AND s.path IS NULL
				GROUP BY s.source
			) AS s (source, value, distinct_values)
			CROSS JOIN LATERAL (
				SELECT min(m.o1)::float8, max(m.o1)::float8 FROM {map} AS m WHERE m.source = s.source
			) AS k (least, greatest)
			CROSS JOIN LATERAL (
				SELECT least(greatest(s.value - k.least, 0.5) / greatest(k.greatest - k.least, 1), 1)
			) AS p (part)
	$query$, jsonb_build_object('no', no_, 'name', name_,
		'sample', snowflake_migrate_internal.relation(run_, 'sample'),
		'map', snowflake_migrate_internal.relation(run_, 'map_' || (
			SELECT t.no FROM snowflake_migrate_internal.plan_tables AS t
			WHERE t.run = run_ AND t.relation = referenced))))
		INTO do_fall;
	RETURN do_fall;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.values_fall_short(bigint, int, name, regclass)
	IS 'for snowflake_migrate.merge()''s own use: whether values end far below the keys of a table';

/*
 * For each column, or path in its documents, with a sample: how many ids it has (total), whether there are texts beside
 * them that are none, and the tables (relations) of whose keys at least nine in ten are, with how many (hits): those
 * with the most first, and of these the smallest.  Where there is none, nine in ten of those by chance, as the rows of
 * the greatest ids may all be gone.
 */
CREATE FUNCTION snowflake_migrate_internal.value_matches(
	run_ bigint,
	OUT no int,
	OUT name name,
	OUT path text,
	OUT total bigint,
	OUT has_others boolean,
	OUT relations regclass[],
	OUT hits bigint[]) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
BEGIN
	IF to_regclass(snowflake_migrate_internal.relation(run_, 'sample')) IS NULL THEN
		RETURN;
	END IF;
	RETURN QUERY EXECUTE snowflake_migrate_internal.fill($query$
		SELECT c.no, c.name, nullif(c.path, ''), c.total, c.has_others,
			coalesce(array_agg(t.relation ORDER BY h.hits DESC, k.reltuples, h.parent)
						FILTER (WHERE k.oid IS NOT NULL), '{}'),
			coalesce(array_agg(h.hits ORDER BY h.hits DESC, k.reltuples, h.parent)
						FILTER (WHERE k.oid IS NOT NULL), '{}')
		FROM (
				SELECT s.no, s.name, coalesce(s.path, ''), count(s.value), count(s.value) FILTER (WHERE s.is_random),
					count(*) > count(s.value)
				FROM {sample} AS s
				GROUP BY 1, 2, 3
			) AS c (no, name, path, total, random, has_others)
			LEFT JOIN (
				SELECT s.no, s.name, coalesce(s.path, ''), m.no, count(*), count(*) FILTER (WHERE s.is_random),
					max(count(*)) OVER (PARTITION BY s.no, s.name, coalesce(s.path, ''))
				FROM {sample} AS s JOIN ({keys}) AS m ON m.source = s.source AND m.o1 = s.value
				GROUP BY 1, 2, 3, 4
			) AS h (no, name, path, parent, hits, random, most)
				ON h.no = c.no AND h.name = c.name AND h.path = c.path
					AND (10 * h.hits >= 9 * c.total OR 10 * h.most < 9 * c.total AND 10 * h.random >= 9 * c.random)
			LEFT JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = {run} AND t.no = h.parent
			LEFT JOIN pg_class AS k
				ON k.oid = snowflake_migrate_internal.relation({run}, 'map_' || h.parent)::regclass
		GROUP BY c.no, c.name, c.path, c.total, c.has_others
	$query$, jsonb_build_object(
		'run', run_,
		'sample', snowflake_migrate_internal.relation(run_, 'sample'),
		'keys', (
			SELECT concat_ws(' UNION ALL ',
				format('SELECT m.no, m.source, m.o1 FROM %s AS m', snowflake_migrate_internal.relation(run_, 'map')),
				string_agg(format('SELECT %s, m.source, m.o1 FROM %s AS m', t.no, q.map), ' UNION ALL '))
			FROM snowflake_migrate_internal.plan_tables AS t
				CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.relation(run_, 'map_' || t.no)) AS q (map)
				JOIN pg_attribute AS a ON a.attrelid = to_regclass(q.map) AND a.attname = 'o1'
					AND a.atttypid = 'bigint'::regtype
			WHERE t.run = run_ AND t.kind = 'key' AND cardinality(t.key) = 1)));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.value_matches(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the tables of whose keys columns have values';

/* Which part of the numbers up to its greatest key each source has of a table as keys, about: 1 without gaps. */
CREATE FUNCTION snowflake_migrate_internal.key_density(run_ bigint, relation_ regclass) RETURNS float8
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	map text;
	keys float8;
	greatest_key bigint;
BEGIN
	SELECT q.map, k.reltuples / (SELECT count(*) FROM snowflake_migrate_internal.plan_sources AS s
								 WHERE s.run = run_ AND s.no = t.no)
		INTO STRICT map, keys
		FROM snowflake_migrate_internal.plan_tables AS t
			CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.relation(run_, 'map_' || t.no)) AS q (map)
			JOIN pg_class AS k ON k.oid = q.map::regclass
		WHERE t.run = run_ AND t.relation = relation_;
	EXECUTE snowflake_migrate_internal.fill('SELECT max(m.o1) FROM {map} AS m', jsonb_build_object('map', map))
		INTO greatest_key;
	RETURN least(greatest(keys, 1) / greatest(greatest_key, 1), 1);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.key_density(bigint, regclass)
	IS 'for snowflake_migrate.merge()''s own use: how dense the keys of a table are';

CREATE FUNCTION snowflake_migrate_internal.drop_samples(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	EXECUTE 'DROP TABLE ' || snowflake_migrate_internal.relation(run_, 'sample');
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.drop_samples(bigint)
	IS 'for snowflake_migrate.merge()''s own use: drops what take_samples() made';
