/*
 * Places in the json and jsonb documents of the sources that look like references and are not declared.
 */

/*
 * The paths in the documents of a column at which there may be ids, of the first 1000 rows of a source, each with the
 * member's name, guild_id for the id of a guild, and a sample of its values, as take_samples() takes it of columns.
 * is_called_id: the name says that there are ids, or they are the names of members; elsewhere, each value must be one.
 * has_kind: a member beside it may say of which table they are.
 */
CREATE FUNCTION snowflake_migrate_internal.document_ids(
	relation regclass,
	attname name,
	OUT path text,
	OUT name text,
	OUT is_called_id boolean,
	OUT has_kind boolean,
	OUT sample bigint[]) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
BEGIN
	RETURN QUERY EXECUTE snowflake_migrate_internal.fill($query$
		WITH RECURSIVE document (content) AS (
			/* Unpacked once, and not for each of its members. */
			SELECT s.{"column"}::jsonb #> '{}' FROM {source} AS s WHERE s.{"column"} IS NOT NULL LIMIT 1000
		),
		part (path, name, content, has_kind, depth) AS (
			SELECT '$', '', d.content, false, 0 FROM document AS d
			UNION ALL
			SELECT p.path || n.step, n.name, n.content, coalesce(n.has_kind, false) OR p.has_kind, p.depth + 1
			FROM part AS p,
				LATERAL (
					SELECT CASE WHEN e.key ~ '^[0-9]+$' THEN '.*'
							WHEN e.key ~ '^[A-Za-z_][[:word:]]*$' THEN '.' || e.key
							ELSE '.' || to_json(e.key) END,
						/* Of a long one, what it is about is at its end. */
						CASE WHEN e.key ~ '^[0-9]+$' THEN p.name
							WHEN e.key ~* '^_?ids?$' AND p.name <> '' THEN p.name || '_id'
							ELSE right(e.key, 100) END, e.value,
						p.content ?| (ARRAY(SELECT regexp_replace(e.key, '_?ids?$', '', 'i') || k.ending
											FROM unnest(ARRAY['_type', 'Type', '_kind', 'Kind', '_class', '_model'])
												AS k (ending))
							|| CASE WHEN e.key ~* '^_?ids?$' OR snowflake_migrate_internal.may_be_any(regexp_replace(
									snowflake_migrate_internal.word(e.key), '(_?ids?|s)$', ''))
								THEN ARRAY['type', 'kind', 'class', 'model', 'entity', 'table', 'object'] END)
					FROM jsonb_each(CASE jsonb_typeof(p.content) WHEN 'object' THEN p.content ELSE '{}' END) AS e
					UNION ALL
					SELECT '[*]', p.name, e.value, NULL
					FROM jsonb_array_elements(CASE jsonb_typeof(p.content) WHEN 'array' THEN p.content
											  ELSE '[]' END) AS e
				) AS n (step, name, content, has_kind)
			WHERE p.depth < 20
		)
		/* What is asked of each value is asked once, and of each name. */
		SELECT q.path, n.word, q.is_name OR n.is_id, q.has_kind, q.sample
		FROM (
				SELECT s.path, min(s.name), s.is_name, bool_or(s.has_kind), count(s.value), bool_or(s.value IS NULL),
					array_agg(s.value) FILTER (WHERE s.value > 0 AND (s.from_greatest <= 10 OR s.at_random <= 20))
				FROM (
					SELECT v.*,
						row_number() OVER (PARTITION BY v.path ORDER BY v.value DESC NULLS LAST) AS from_greatest,
						row_number() OVER (PARTITION BY v.path ORDER BY hashint8(v.value)) AS at_random
					FROM (
						SELECT DISTINCT f.path, f.is_name, f.name, f.has_kind,
							CASE WHEN f.value ~ '^[1-9][0-9]*([.]0+)?$'
								THEN snowflake_migrate_internal.text_id(f.value) END
						FROM (
							SELECT DISTINCT p.path, false, p.name, p.has_kind, left(p.content #>> '{}', 20)
							FROM part AS p
							WHERE jsonb_typeof(p.content) IN ('number', 'string')
							UNION ALL
							SELECT DISTINCT p.path || '.keyvalue().key', true, p.name, p.has_kind, k.name
							FROM part AS p
								CROSS JOIN LATERAL jsonb_object_keys(
									CASE jsonb_typeof(p.content) WHEN 'object' THEN p.content ELSE '{}' END) AS k (name)
							WHERE k.name ~ '^[0-9]+$'
						) AS f (path, is_name, name, has_kind, value)
						/* As a rule, those of nothing. */
						WHERE f.value NOT IN ('', '0', '-1')
					) AS v (path, is_name, name, has_kind, value)
				) AS s
				GROUP BY s.path, s.is_name
			) AS q (path, name, is_name, has_kind, total, has_others, sample)
			CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.word(q.name)) AS w (word)
			CROSS JOIN LATERAL (SELECT w.word, q.name ~* 'ids?$' AND w.word ~ '(^|_)ids?$') AS n (word, is_id)
		WHERE q.total > 0 AND (q.is_name OR n.is_id OR NOT q.has_others)
		ORDER BY n.is_id DESC, q.is_name DESC, q.total >= 8 DESC, q.path COLLATE "C"
		LIMIT 50
	$query$, jsonb_build_object('column', attname, 'source', snowflake_migrate_internal.only(relation)));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.document_ids(regclass, name)
	IS 'for snowflake_migrate.merge()''s own use: where documents seem to hold ids';

/*
 * Whether a path that was declared leads to all that another leads to that was found in documents: a wildcard leads to
 * whatever stands there, and a path goes through the elements of arrays by itself.  Who declared one with a filter has
 * thought of what else is there, as with the condition of a column.
 */
CREATE FUNCTION snowflake_migrate_internal.path_covers(declared text, found text) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH steps AS (
		SELECT p.of, s.kind, s.name, row_number() OVER (PARTITION BY p.of ORDER BY s.n) AS n
		FROM (VALUES (1, declared), (2, found)) AS p (of, path)
			CROSS JOIN LATERAL snowflake_migrate_internal.path(p.path) WITH ORDINALITY AS s (kind, name, filter, n)
		WHERE s.kind <> 'elements'
	)
	/* One that is longer than the other has a step that meets none. */
	SELECT coalesce(bool_and(coalesce(
		d.kind = f.kind AND d.name IS NOT DISTINCT FROM f.name
		OR d.kind = 'wildcard_member' AND f.kind = 'member', false)), true)
	FROM (SELECT * FROM steps AS s WHERE s.of = 1) AS d
		FULL JOIN (SELECT * FROM steps AS s WHERE s.of = 2) AS f ON f.n = d.n
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.path_covers(text, text)
	IS 'for snowflake_migrate.merge()''s own use: whether a declared path leads to what another does';

/* The paths to ids that the sources have in a column of documents, and that are not declared. */
CREATE FUNCTION snowflake_migrate_internal.undeclared_paths(
	run_ bigint,
	relation_ regclass,
	name_ name,
	OUT source int,
	OUT path text,
	OUT member text,
	OUT is_called_id boolean,
	OUT has_kind boolean,
	OUT sample bigint[]) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	declared CONSTANT text[] := ARRAY(
		SELECT r.path FROM snowflake_migrate.declared_references AS r
		WHERE r.relation = relation_ AND r.column_name = name_
		UNION ALL
		SELECT r.path FROM snowflake_migrate.declared_no_references AS r
		WHERE r.relation = relation_ AND r.column_name = name_);
	of_source record;
BEGIN
	FOR of_source IN
		SELECT s.source_no, s.source_relation
		FROM snowflake_migrate_internal.source_tables(run_) AS s
			JOIN pg_attribute AS a ON a.attrelid = s.source_relation AND a.attname = name_
		WHERE s.relation = relation_
			AND snowflake_migrate_internal.without_domain(a.atttypid) IN ('jsonb'::regtype, 'json'::regtype)
			AND snowflake_migrate_internal.can_read(s.source_relation)
		ORDER BY s.source_no
	LOOP
		/* A json document may be none that jsonb can have; it is copied all the same. */
		BEGIN
			RETURN QUERY SELECT of_source.source_no, d.*
				FROM snowflake_migrate_internal.document_ids(of_source.source_relation, name_) AS d
				WHERE NOT EXISTS (
					SELECT FROM unnest(declared) AS p (path)
					WHERE snowflake_migrate_internal.path_covers(p.path, d.path));
		EXCEPTION WHEN data_exception THEN
			NULL;
		END;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.undeclared_paths(bigint, regclass, name)
	IS 'for snowflake_migrate.merge()''s own use: where documents seem to hold ids, and nobody said so';

/*
 * Whether a name may well be of something else than the table that is called so: its own one, of which an item's
 * item_id need be none; an id that others gave; type_id, where there are only product_types.
 */
CREATE FUNCTION snowflake_migrate_internal.is_doubtful(
	own regclass,
	stem text,
	referenced regclass,
	known snowflake_migrate_internal.vocabulary) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT referenced = own AND NOT snowflake_migrate_internal.is_another(stem)
		OR stem ~ ('^(apple|discord|epic|ext|external|facebook|foreign|google|imported|legacy|platform|psn|remote'
			'|steam|stripe|twitch|twitter|upstream|vendor|wp|xbox)_')
		OR stem IN ('category', 'class', 'group', 'kind', 'level', 'method', 'mode', 'role', 'stage', 'state',
					'status', 'type', 'version')
			AND NOT EXISTS (
				SELECT FROM unnest(known.words, known.relations) AS w (word, relation)
					CROSS JOIN pg_class AS c
					CROSS JOIN LATERAL snowflake_migrate_internal.word(c.relname) AS n (word)
					CROSS JOIN LATERAL snowflake_migrate_internal.singulars(n.word) AS o (word)
				WHERE w.relation = referenced AND c.oid = own
					AND (w.word = stem OR starts_with(w.word, split_part(o.word, '_', 1) || '_')))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.is_doubtful(
	regclass, text, regclass, snowflake_migrate_internal.vocabulary)
	IS 'for snowflake_migrate.merge()''s own use: whether a name may well be of something else';

/*
 * What is to be asked of a column of documents: each path whose member is called like a table, or has values that are
 * keys of one (matches: what value_matches() found); or else the first that looks like one to ids.  Where no name
 * says so, small numbers may be anything, and so may few.
 */
CREATE FUNCTION snowflake_migrate_internal.find_documents(
	run_ bigint,
	no_ int,
	relation_ regclass,
	name_ name,
	known snowflake_migrate_internal.vocabulary,
	matches jsonb) RETURNS SETOF snowflake_migrate_internal.question
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	found record;
	unnamed text;
	fitting regclass[];
	is_asked boolean := false;
BEGIN
	FOR found IN
		WITH ids AS MATERIALIZED (
			SELECT u.path, u.is_called_id, u.has_kind, b.is_somebody, u.is_great,
				coalesce(v.total, 0) >= 8 AS are_several, n.referenced, n.name, v.total, v.relations, v.hits,
				(SELECT array_agg(o.relation)
				 FROM unnest(snowflake_migrate_internal.namesakes(relation_, n.name, n.referenced, known))
					AS o (relation)
				 WHERE n.referenced = ANY (v.relations) AND o.relation = ANY (v.relations)) AS others
			FROM (
					SELECT p.path, bool_or(p.is_called_id) AS is_called_id, bool_or(p.has_kind) AS has_kind,
						min(p.member) AS member,
						bool_or(999 < ANY (p.sample)) AS is_great
					FROM snowflake_migrate_internal.undeclared_paths(run_, relation_, name_) AS p
					GROUP BY p.path
				) AS u
				CROSS JOIN LATERAL (
					SELECT coalesce(snowflake_migrate_internal.stem(u.member), u.member), right(u.path, 3) = '[*]'
				) AS m (name, is_array)
				CROSS JOIN LATERAL (SELECT m.name, CASE
					WHEN u.is_called_id THEN snowflake_migrate_internal.named_by(relation_, m.name, true, known)
					ELSE snowflake_migrate_internal.namesake(relation_, m.name, m.is_array, known) END
				) AS n (name, referenced)
				CROSS JOIN LATERAL (
					SELECT snowflake_migrate_internal.is_somebody(m.name, m.is_array)) AS b (is_somebody)
				LEFT JOIN jsonb_to_recordset(matches)
						AS v (no int, name name, path text, total bigint, relations regclass[], hits bigint[])
					ON v.no = no_ AND v.name = name_ AND v.path = u.path
		)
		/* Members that are called by numbers are any, and those that have other names are among them. */
		SELECT i.*, EXISTS (
				SELECT FROM ids AS a
				WHERE a.path LIKE '%.*%' AND a.path <> i.path AND a.referenced = i.referenced
					AND (a.is_called_id OR a.referenced = ANY (a.relations))
					AND i.has_kind IS NOT DISTINCT FROM a.has_kind
					AND snowflake_migrate_internal.path_covers(a.path, i.path)
					AND (a.path < i.path OR NOT snowflake_migrate_internal.path_covers(i.path, a.path)))
				AS is_among_others
		FROM ids AS i
		ORDER BY NOT i.is_called_id, i.path COLLATE "C"
	LOOP
		CONTINUE WHEN found.is_among_others;
		IF found.is_called_id AND found.referenced IS NOT NULL OR found.referenced = ANY (found.relations) THEN
			is_asked := true;
			RETURN NEXT ROW ('reference', relation_, name_,
				format(CASE WHEN found.is_called_id THEN 'documents seem to hold ids of %s at %s'
					ELSE 'documents may hold ids of %s at %s: its member is called so, and its values are keys of it'
					END || CASE WHEN found.has_kind THEN '; a member beside it may say of which table' ELSE '' END,
					concat_ws(', or of ', found.referenced, snowflake_migrate_internal.listed(found.others)),
					found.path), NULL,
				(found.referenced || coalesce(found.others, '{}'))::text[], NULL, found.path,
				CASE WHEN found.is_called_id AND found.referenced = ANY (found.relations) AND found.others IS NULL
						AND NOT found.has_kind
						AND NOT snowflake_migrate_internal.is_doubtful(relation_, found.name, found.referenced, known)
						/* Names of members may be slots. */
						AND (found.is_great OR found.path NOT LIKE '%.keyvalue().key')
					THEN 'sure' ELSE 'likely' END,
				NULL)::snowflake_migrate_internal.question;
		ELSIF cardinality(found.relations) > 0
			AND (found.is_somebody OR found.is_great AND found.are_several
				 /* Names of members are numbers of slots, of keys, of years as well. */
				 OR found.is_called_id
					AND (found.path NOT LIKE '%.keyvalue().key' OR found.is_great OR found.are_several)) THEN
			is_asked := true;
			fitting := snowflake_migrate_internal.likeliest(relation_, found.name, found.relations, known);
			RETURN NEXT ROW ('reference', relation_, name_,
				format('documents may hold ids of %s at %s: its values are keys of it', fitting[1], found.path)
					|| coalesce(', and of ' || snowflake_migrate_internal.listed(fitting[2 :]), ''),
				format('%s of %s values', found.hits[array_position(found.relations, fitting[1])], found.total),
				fitting::text[], NULL, found.path, 'open', NULL)::snowflake_migrate_internal.question;
		ELSIF found.is_called_id OR cardinality(found.relations) > 0 AND found.are_several THEN
			unnamed := coalesce(unnamed, found.path);
		END IF;
	END LOOP;
	IF NOT is_asked AND NOT EXISTS (SELECT FROM snowflake_migrate.declared_references AS r
									WHERE r.relation = relation_ AND r.column_name = name_) THEN
		RETURN NEXT ROW ('perhaps', relation_, name_, 'may hold ids', unnamed, ARRAY['?'], NULL,
			coalesce(unnamed, '?'), 'open', NULL)::snowflake_migrate_internal.question;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_documents(
	bigint, int, regclass, name, snowflake_migrate_internal.vocabulary, jsonb)
	IS 'for snowflake_migrate.merge()''s own use: what is to be asked of documents that may hold ids';
