/*
 * Columns that look like references and have neither a foreign key nor a declaration: by their names, by a column
 * beside them that says of which table the ids are, and by their values, where the maps know the keys of the sources;
 * and places in the documents of the sources, likewise.
 *
 * A warning of them is a question: a merge does not begin while one is unanswered (declare_reference(),
 * declare_no_reference()), unless its caller says so.
 */

/*
 * The tables whose ids can be referred to, each under all words that a column could call it by: a word is of the
 * relation at the same place.  A word is its own name's; or its key's, where that is made in no other table and no
 * table is called so.  is_plain: its key is called id, as any other, so that a column may call it by its name's end.
 * unchanging: the tables whose ids stay what they are.
 */
CREATE TYPE snowflake_migrate_internal.vocabulary AS (
	words text[],
	relations regclass[],
	schemas oid[],			-- of the relations
	is_plain boolean[],
	endings text[],			-- their last words, and those before _type
	unchanging regclass[]
);

CREATE FUNCTION snowflake_migrate_internal.vocabulary(run_ bigint) RETURNS snowflake_migrate_internal.vocabulary
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH referable AS (
		SELECT t.relation, c.relnamespace, t.mode, snowflake_migrate_internal.word(c.relname) AS word, k.stem,
			m.is_made, m.is_made AND count(*) FILTER (WHERE m.is_made) OVER (PARTITION BY k.stem) = 1 AS is_only_maker
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN pg_class AS c ON c.oid = t.relation
			JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attname = t.key[1]
			CROSS JOIN LATERAL (SELECT a.atthasdef OR a.attidentity <> '') AS m (is_made)
			CROSS JOIN LATERAL (
				SELECT snowflake_migrate_internal.stem(snowflake_migrate_internal.word(t.key[1]))) AS k (stem)
		WHERE t.run = run_ AND cardinality(t.key) = 1 AND t.mode <> 'ignore'
			AND (t.kind = 'id' OR t.mode = 'same_id'
				 OR EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS f
							WHERE f.run = run_ AND f.no = t.no AND f.name = t.key[1]))
	),
	named AS (
		SELECT g.word, r.relation, r.relnamespace, r.mode, r.stem IS NULL AS is_plain
		FROM referable AS r CROSS JOIN LATERAL snowflake_migrate_internal.singulars(r.word) AS g (word)
	),
	word AS (
		TABLE named
		UNION ALL
		/* Where keys of several are called entity_id, entity says no more in customer_entity than id does. */
		SELECT x.word, r.relation, r.relnamespace, r.mode, true
		FROM referable AS r
			CROSS JOIN LATERAL (SELECT left(r.word, -length('_' || r.stem))) AS x (word)
		WHERE r.is_made AND NOT r.is_only_maker AND r.word LIKE E'%\\_' || r.stem
			AND NOT EXISTS (SELECT FROM named AS n WHERE n.word = x.word)
		UNION ALL
		SELECT r.stem, r.relation, r.relnamespace, r.mode, false
		FROM referable AS r
		WHERE r.is_only_maker AND r.stem IS NOT NULL AND NOT EXISTS (SELECT FROM named AS n WHERE n.word = r.stem)
		UNION ALL
		/* The number of a version, labels2, lease6_types, where no other is called so without it. */
		SELECT g.word, x.relation, x.relnamespace, x.mode, x.is_plain
		FROM (SELECT r.relation, r.relnamespace, r.mode, r.stem IS NULL AS is_plain, y.word,
				count(*) OVER (PARTITION BY y.word) AS count
			  FROM referable AS r
				CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.without_numbers(r.word)) AS y (word)
			  WHERE y.word <> r.word) AS x
			CROSS JOIN LATERAL snowflake_migrate_internal.singulars(x.word) AS g (word)
		WHERE x.count = 1 AND NOT EXISTS (SELECT FROM named AS n WHERE n.word = g.word)
	)
	SELECT coalesce(array_agg(w.word ORDER BY w.word, w.relation), '{}'),
		coalesce(array_agg(w.relation ORDER BY w.word, w.relation), '{}'),
		coalesce(array_agg(w.relnamespace ORDER BY w.word, w.relation), '{}'),
		coalesce(array_agg(w.is_plain ORDER BY w.word, w.relation), '{}'),
		ARRAY(SELECT DISTINCT substring(e.word FROM '[^_]+$')
			  FROM word AS w CROSS JOIN LATERAL (VALUES (w.word), (regexp_replace(w.word, '_type$', ''))) AS e (word)),
		coalesce(array_agg(w.relation) FILTER (WHERE w.mode = 'same_id'), '{}')
	FROM word AS w
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.vocabulary(bigint)
	IS 'for snowflake_migrate.merge()''s own use: what the tables of a run are called';

/*
 * The table that a word names, or whose name it ends with (also_end): players for player, sender_player.  Of those that
 * are called alike the one of this schema.
 */
CREATE FUNCTION snowflake_migrate_internal.named(
	name text,
	schema oid,
	known snowflake_migrate_internal.vocabulary,
	also_end boolean) RETURNS regclass
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT w.relation
	FROM unnest(known.words, known.relations, known.schemas) AS w (word, relation, schema)
	WHERE w.word = name OR (also_end AND right(name, length(w.word) + 1) = '_' || w.word)
	ORDER BY length(w.word) DESC, w.schema <> named.schema, w.relation
	LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.named(text, oid, snowflake_migrate_internal.vocabulary, boolean)
	IS 'for snowflake_migrate.merge()''s own use: the table that a word names';

/*
 * The table that a table's column names by its stem, or by its whole name (is_stem).  Of the rules below, the
 * first that finds a table in the order of the last query counts.  Of tables that are called alike, each rule
 * takes that of the column's own schema; called and akin prefer it even to what the other finds elsewhere.
 */
CREATE FUNCTION snowflake_migrate_internal.named_by(
	own regclass,
	name text,
	is_stem boolean,
	known snowflake_migrate_internal.vocabulary) RETURNS regclass
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	own_schema CONSTANT oid := (SELECT c.relnamespace FROM pg_class AS c WHERE c.oid = own);
	called regclass;
BEGIN
	IF NOT is_stem THEN
		name := regexp_replace(name, '_(from|to|src|dst|source|target|key)$', '');
	END IF;
	/* A whole name ends with the last word of one that is known.  As a rule, it does not. */
	IF NOT is_stem AND substring(name FROM '[^_]+$') <> ALL (known.endings) THEN
		RETURN NULL;
	END IF;
	called := snowflake_migrate_internal.named(name, own_schema, known, is_stem);
	RETURN (
		WITH own_name AS (
			SELECT DISTINCT n.word, split_part(n.word, '_', 1) || '_' AS beginning
			FROM pg_class AS c
				CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.word(c.relname)) AS w (word)
				CROSS JOIN LATERAL snowflake_migrate_internal.singulars(w.word) AS g (word)
				CROSS JOIN LATERAL (
					VALUES (g.word), (snowflake_migrate_internal.without_numbers(g.word))) AS n (word)
			WHERE c.oid = own
		),
		/* Each of the rules below wants a word that ends as the name does, but one: few of a great schema's. */
		candidate AS (
			SELECT w.relation, w.word, w.is_plain, w.is_near,
				CASE WHEN starts_with(w.word, n.beginning) THEN substr(w.word, length(n.beginning) + 1) END AS rest
			FROM (
					SELECT w.*, w.schema = own_schema AS is_near,
						bool_or(w.schema = own_schema) OVER (PARTITION BY w.word) AS has_near
					FROM (SELECT coalesce(substring(name FROM '[^_]+$'), '')) AS l (word)
						JOIN unnest(known.words, known.relations, known.schemas, known.is_plain)
								AS w (word, relation, schema, is_plain)
							ON right(w.word, length(l.word)) = l.word OR w.word = name || '_type'
				) AS w
				CROSS JOIN (SELECT DISTINCT o.beginning FROM own_name AS o) AS n
			WHERE w.is_near OR NOT w.has_near
		),
		/* Without the first word, where its own table has the same: server of dhcp6_options, dhcp6_server. */
		akin AS (
			SELECT c.relation, c.is_near FROM candidate AS c
			WHERE c.rest = name
				OR right(name, length(c.rest) + 1) = '_' || c.rest AND (is_stem OR strpos(c.rest, '_') > 0)
			ORDER BY c.is_near DESC, length(c.rest) DESC, c.relation LIMIT 1
		),
		/* A part of its own table: type of prefs, prefs_types; state of lease4, lease_state. */
		part AS (
			SELECT c.relation FROM candidate AS c JOIN own_name AS o ON c.word = o.word || '_' || name
			WHERE c.is_plain
			ORDER BY c.relation LIMIT 1
		),
		/* For sole. */
		ending AS (
			SELECT c.relation, c.word, c.rest IS NOT NULL AS is_akin FROM candidate AS c
			WHERE c.is_plain AND right(c.word, length(name) + 1) = '_' || name
		),
		/* What its own table is called as a part of: list of datalist_entry, datalist. */
		whole AS (
			SELECT c.relation FROM candidate AS c JOIN own_name AS o ON starts_with(o.word, c.word || '_')
			WHERE is_stem AND c.is_plain
				AND (right(c.word, length(name) + 1) = '_' || name
					 OR length(name) >= 4 AND right(c.word, length(name)) = name)
			ORDER BY length(c.word) DESC, c.relation LIMIT 1
		),
		/*
		 * The only one that ends so: build, ci_builds.  Of all, or of those with the first word of its own table, which
		 * alone count for a whole name.
		 */
		sole AS (
			SELECT CASE
				WHEN is_stem AND count(DISTINCT e.relation) = 1 THEN min(e.relation::oid)
				WHEN count(DISTINCT e.relation) FILTER (WHERE e.is_akin) = 1
					THEN min(e.relation::oid) FILTER (WHERE e.is_akin)
				END::regclass AS relation
			FROM ending AS e
		),
		/* The only one that has a word more: parameter_type, parameter_data_type; name, name_types. */
		longer AS (
			SELECT CASE WHEN count(DISTINCT c.relation) = 1 THEN min(c.relation::oid)::regclass END AS relation
			FROM candidate AS c
				CROSS JOIN LATERAL (SELECT split_part(name, '_', 1) || '_') AS n (beginning)
			WHERE NOT is_stem AND c.is_plain AND starts_with(c.word, n.beginning)
				AND (c.word = name || '_type'
					 OR right(c.word, length(name) - length(n.beginning) + 1)
							= '_' || substr(name, length(n.beginning) + 1)
						AND length(c.word) > length(name) AND length(name) > length(n.beginning))
		),
		/*
		 * One that stands in its singular behind a word for its part: from_account, accounts.  Unless that says that it
		 * is a measure: max_level.
		 */
		part_played AS (
			SELECT c.relation FROM candidate AS c
			WHERE NOT is_stem AND right(name, length(c.word) + 1) = '_' || c.word AND c.word !~ '[^s]s$'
				AND snowflake_migrate_internal.stem(name) IS NULL
				AND name !~ ('(^|_)(allow|avg|base|can|count|cur|current|display|has|is|label|last|max|min|need|needed'
					'|next|no|num|per|prev|req|required|send|show|sort|sum|total|type|use|verify)_')
			ORDER BY length(c.word) DESC, c.relation LIMIT 1
		)
		SELECT CASE
			WHEN is_stem AND name = 'parent' THEN coalesce((SELECT p.relation FROM part AS p), own)
			ELSE coalesce(
				(SELECT c.oid FROM pg_class AS c WHERE c.oid = called AND c.relnamespace = own_schema),
				(SELECT a.relation FROM akin AS a WHERE a.is_near AND a.relation <> own),
				called,
				(SELECT a.relation FROM akin AS a),
				(SELECT p.relation FROM part AS p),
				(SELECT w.relation FROM whole AS w),
				(SELECT s.relation FROM sole AS s),
				(SELECT l.relation FROM longer AS l),
				(SELECT p.relation FROM part_played AS p),
				CASE WHEN is_stem AND name ~ '(^parent_|_parent$)' AND own = ANY (known.relations) AND EXISTS (
					SELECT FROM own_name AS o
					WHERE '_' || o.word LIKE E'%\\_' || regexp_replace(name, '(^parent_|_parent$)', ''))
				THEN own END) END);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.named_by(regclass, text, boolean, snowflake_migrate_internal.vocabulary)
	IS 'for snowflake_migrate.merge()''s own use: the table that a column names';

/* The table that a column names by its whole name; an array's in the plural, too: players for home_players. */
CREATE FUNCTION snowflake_migrate_internal.namesake(
	own regclass,
	name text,
	also_several boolean,
	known snowflake_migrate_internal.vocabulary) RETURNS regclass
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT coalesce(
		snowflake_migrate_internal.named_by(own, name, false, known),
		CASE WHEN also_several THEN (
			SELECT min(r.relation::oid)::regclass
			FROM snowflake_migrate_internal.singulars(name) AS g (word)
				CROSS JOIN LATERAL (
					SELECT snowflake_migrate_internal.named_by(own, g.word, false, known)) AS r (relation)) END)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.namesake(regclass, text, boolean, snowflake_migrate_internal.vocabulary)
	IS 'for snowflake_migrate.merge()''s own use: the table that a column names by its whole name';

/*
 * The others that a column of its own table may mean by a name that names one (referenced): those that are called
 * alike, as in another schema, and those that are called so behind the first words of its own table, forum_users beside
 * users.
 */
CREATE FUNCTION snowflake_migrate_internal.namesakes(
	own regclass,
	name text,
	referenced regclass,
	known snowflake_migrate_internal.vocabulary) RETURNS regclass[]
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH meant AS (
		SELECT w.word
		FROM unnest(known.words, known.relations) AS w (word, relation)
		WHERE w.relation = referenced
			AND (right('_' || name, length(w.word) + 1) = '_' || w.word
				 OR right('_' || w.word, length(name) + 1) = '_' || name)
		UNION
		SELECT name
	)
	SELECT array_agg(DISTINCT w.relation)
	FROM unnest(known.words, known.relations) AS w (word, relation)
	WHERE w.relation <> ALL (ARRAY[own, referenced]) AND w.word = ANY (ARRAY(
		SELECT b.beginning || m.word
		FROM meant AS m
			CROSS JOIN (
				VALUES ('')
				UNION ALL
				SELECT array_to_string(p.words[: i.n], '_') || '_'
				FROM pg_class AS c
					CROSS JOIN LATERAL (
						SELECT string_to_array(snowflake_migrate_internal.word(c.relname), '_')) AS p (words)
					CROSS JOIN LATERAL generate_series(1, cardinality(p.words) - 1) AS i (n)
				WHERE c.oid = own) AS b (beginning)))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.namesakes(
	regclass, text, regclass, snowflake_migrate_internal.vocabulary)
	IS 'for snowflake_migrate.merge()''s own use: the other tables that a column may mean by its name';

/*
 * The columns that refer to nothing yet, of types that can; form is their type's.  is_somebody: its word is one for
 * somebody, or an array's for several.  kind_column: the column beside it that says of which table the ids are.
 */
CREATE FUNCTION snowflake_migrate_internal.undeclared_columns(
	run_ bigint,
	OUT no int,
	OUT relation regclass,
	OUT name name,
	OUT form text,
	OUT word text,
	OUT stem text,
	OUT is_somebody boolean,
	OUT kind_column name) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH foreign_key AS MATERIALIZED (
		SELECT f.relation, f.name
		FROM snowflake_migrate.runs AS r, snowflake_migrate_internal.foreign_keys(r.targets) AS f
		WHERE r.run = run_
	)
	SELECT t.no, t.relation, c.attname, y.form, w.word, w.stem,
		snowflake_migrate_internal.is_somebody(w.word, y.form = 'array'),
		(SELECT k.attname
		 FROM snowflake_migrate_internal.columns_of(t.relation) AS k
			JOIN pg_type AS d ON d.oid = k.atttypid LEFT JOIN pg_type AS b ON b.oid = d.typbasetype
			CROSS JOIN LATERAL (SELECT replace(snowflake_migrate_internal.word(k.attname), '_', '')) AS g (word)
		 WHERE w.stem IS NOT NULL AND k.attname <> c.attname
			AND (coalesce(b.typcategory, d.typcategory) IN ('S', 'E')
					AND g.word ~ '.(type|kind|class|table|model|entity)$'
					AND regexp_replace(g.word, '(type|kind|class|table|model|entity)$', '') = replace(w.stem, '_', '')
				 /* As Django has them. */
				 OR w.stem = 'object' AND g.word = 'contenttypeid')
		 ORDER BY k.attnum LIMIT 1)
	FROM snowflake_migrate_internal.merged_tables(run_) AS t
		CROSS JOIN LATERAL snowflake_migrate_internal.columns_of(t.relation) AS c
		/* OFFSET: of each column, and once; of all types there are, it would be thousands of times. */
		CROSS JOIN LATERAL (
			SELECT CASE
				WHEN b.oid IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype, 'numeric'::regtype)
					THEN 'integer'
				WHEN b.oid IN ('smallint[]'::regtype, 'integer[]'::regtype, 'bigint[]'::regtype, 'numeric[]'::regtype)
					THEN 'array'
				WHEN b.oid IN ('text'::regtype, 'varchar'::regtype, 'bpchar'::regtype,
							   'text[]'::regtype, 'varchar[]'::regtype, 'bpchar[]'::regtype) THEN 'text'
				WHEN b.oid IN ('jsonb'::regtype, 'json'::regtype) THEN 'document'
				WHEN b.oid IN ('jsonb[]'::regtype, 'json[]'::regtype) THEN 'documents'
				WHEN b.oid = 'oid'::regtype THEN 'large object' END
			FROM (
				SELECT CASE WHEN d.typbasetype = 0 AND d.typcategory <> 'A' THEN d.oid
					ELSE snowflake_migrate_internal.without_domain(d.oid) END
				FROM pg_type AS d WHERE d.oid = c.atttypid
				OFFSET 0
			) AS b (oid)
			OFFSET 0
		) AS y (form)
		CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.word(c.attname)) AS g (word)
		CROSS JOIN LATERAL (SELECT g.word, snowflake_migrate_internal.stem(g.word)) AS w (word, stem)
	WHERE c.attgenerated = '' AND y.form IS NOT NULL
		AND NOT (t.kind = 'id' AND t.key = ARRAY[c.attname])
		/* A document may hold more than what is declared. */
		AND (y.form = 'document' OR NOT EXISTS (
			SELECT FROM snowflake_migrate_internal.plan_references AS f
			WHERE f.run = run_ AND f.no = t.no AND f.name = c.attname))
		AND (y.form = 'document' OR NOT EXISTS (
			SELECT FROM snowflake_migrate.declared_references AS f
			WHERE f.relation = t.relation AND f.column_name = c.attname))
		AND NOT EXISTS (
			SELECT FROM snowflake_migrate.declared_no_references AS f
			WHERE f.relation = t.relation AND f.column_name = c.attname AND f.path IS NULL)
		AND NOT EXISTS (SELECT FROM foreign_key AS f WHERE f.relation = t.relation AND f.name = c.attname)
	ORDER BY t.no, c.attnum
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.undeclared_columns(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the columns that could be references';

/*
 * A column of which somebody has to say what it refers to, if anything.  kind: reference; kinds, where another column
 * says of which table the ids are; perhaps, which does not stop a merge; array of documents; large object.
 * referenced: the tables, the likeliest first, or for each of the conditions its own; ? where it is not known.
 * certainty: sure, likely, or open.
 */
CREATE TYPE snowflake_migrate_internal.question AS (
	kind text,
	relation regclass,
	name name,
	problem text,
	example text,
	referenced text[],
	conditions text[],
	path text,
	certainty text,
	source name
);

/* The call that declares a table. */
CREATE FUNCTION snowflake_migrate_internal.table_declaration(
	relation regclass,
	mode text,
	key name[] DEFAULT NULL,
	accept text[] DEFAULT '{}') RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT format('SELECT snowflake_migrate.declare_table(%L, %L%s%s);', relation, mode,
				  ', key => ' || quote_literal(key), ', accept => ' || quote_literal(nullif(accept, '{}')))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.table_declaration(regclass, text, name[], text[])
	IS 'for snowflake_migrate.merge()''s own use: the declaration of a table';

/* The declaration of a reference. */
CREATE FUNCTION snowflake_migrate_internal.reference_declaration(
	relation regclass,
	name name,
	referenced text,
	condition text,
	path text,
	dangling text DEFAULT NULL) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT format('SELECT snowflake_migrate.declare_reference(%L, %L, %L%s%s%s);', relation, name, referenced,
				  ', ' || quote_literal(condition), ', path => ' || quote_literal(path),
				  ', dangling => ' || quote_literal(dangling))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.reference_declaration(regclass, name, text, text, text, text)
	IS 'for snowflake_migrate.merge()''s own use: the declaration of a reference';

/* The declaration that a column is no reference, or that a path in its documents is none. */
CREATE FUNCTION snowflake_migrate_internal.no_reference_declaration(relation regclass, name name, path text)
RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT format('SELECT snowflake_migrate.declare_no_reference(%L, %L%s);', relation, name,
				  ', path => ' || quote_literal(nullif(path, '?')))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.no_reference_declaration(regclass, name, text)
	IS 'for snowflake_migrate.merge()''s own use: the declaration that a column is no reference';

/* A column in question: as undeclared_columns() and value_matches() have it. */
CREATE TYPE snowflake_migrate_internal.questioned_column AS (
	no int,
	relation regclass,
	name name,
	form text,
	word text,
	stem text,
	is_somebody boolean,
	kind_column name,
	total bigint,
	has_others boolean,
	relations regclass[],
	hits bigint[]
);

/*
 * The kinds of ids that columns of a table hold in the sources, as the columns beside them name them: up to 100 for
 * each, by its name.  One pass over each source's rows.
 */
CREATE FUNCTION snowflake_migrate_internal.kinds(run_ bigint, relation_ regclass, names name[], kind_columns name[])
RETURNS jsonb
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	source record;
	kinds jsonb := jsonb '[]';
BEGIN
	FOR source IN
		SELECT string_agg(snowflake_migrate_internal.fill($query$
				SELECT {'column'}, {value} WHERE s.{"kind"} IS NOT NULL AND s.{"column"} IS NOT NULL
			$query$, jsonb_build_object('column', p.name, 'kind', p.kind_column,
				/*
				 * By the ids of the target, as conditions are asked.  What they will be is not known before the maps
				 * are made, nor of a row that has yet to come.
				 */
				'value', coalesce((
					SELECT CASE WHEN to_regclass(snowflake_migrate_internal.relation(run_, 'map')) IS NULL
							THEN 'NULL::text'
						ELSE format('(SELECT f.n1::text FROM (SELECT %s) AS i (id) JOIN %s AS f '
									'ON f.source = %s AND f.n1 = i.id AND f.action IN (''m'', ''k'') LIMIT 1)',
							snowflake_migrate_internal.mapped_id(
								m.map, s.source_no, format('s.%I', a.attname), a.atttypid, 'bigint'),
							m.map, s.source_no) END
					FROM snowflake_migrate_internal.plain_reference(run_, s.no, p.kind_column) AS f
						CROSS JOIN LATERAL (
							SELECT snowflake_migrate_internal.relation(run_, 'map_' || f.referenced)) AS m (map)
						JOIN pg_attribute AS a ON a.attrelid = s.source_relation AND a.attname = p.kind_column
					WHERE f.referenced IS NOT NULL),
					format('s.%I::text', p.kind_column)))), ' UNION ALL ') AS pairs,
			snowflake_migrate_internal.only(s.source_relation) AS relation
		FROM snowflake_migrate_internal.source_tables(run_) AS s
			CROSS JOIN unnest(names, kind_columns) AS p (name, kind_column)
		WHERE s.relation = relation_ AND snowflake_migrate_internal.can_read(s.source_relation)
			AND snowflake_migrate_internal.has_columns(s.source_relation, ARRAY[p.name, p.kind_column])
		GROUP BY s.source_no, s.source_relation
	LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT $1 || coalesce(jsonb_agg(jsonb_build_array(k.name, k.kind)), '[]')
			FROM (
				SELECT p.name, p.kind, row_number() OVER (PARTITION BY p.name ORDER BY p.kind) AS n
				FROM (
					SELECT DISTINCT q.name, q.kind
					FROM {source} AS s CROSS JOIN LATERAL ({pairs}) AS q (name, kind)
					/* What is longer is no name of a class, and could take long to be looked at. */
					WHERE length(q.kind) <= 200
				) AS p
			) AS k
			WHERE k.n <= 100
		$query$, jsonb_build_object('source', source.relation, 'pairs', source.pairs)) INTO kinds USING kinds;
	END LOOP;
	RETURN (
		SELECT jsonb_object_agg(k.name, k.kinds)
		FROM (
			SELECT d.name, jsonb_agg(d.kind ORDER BY d.kind) FILTER (WHERE d.n <= 100)
			FROM (
				SELECT k ->> 0, k ->> 1, row_number() OVER (PARTITION BY k ->> 0 ORDER BY k ->> 1)
				FROM jsonb_array_elements(kinds) AS k
				GROUP BY k ->> 0, k ->> 1
			) AS d (name, kind, n)
			GROUP BY d.name
		) AS k (name, kinds));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.kinds(bigint, regclass, name[], name[])
	IS 'for snowflake_migrate.merge()''s own use: the kinds of ids that columns hold';

/*
 * What is to be asked of a column that another beside it says of which table its ids are: of each kind of ids that
 * it holds, by what kinds() found in the table.  is_table_itself: by its own name and values they are one table's, so
 * that the kind may be an attribute of the rows there.
 */
CREATE FUNCTION snowflake_migrate_internal.find_kinds(
	col snowflake_migrate_internal.questioned_column,
	kinds_of_table jsonb,
	is_table_itself boolean,
	known snowflake_migrate_internal.vocabulary) RETURNS snowflake_migrate_internal.question
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	kinds text[] := ARRAY(SELECT jsonb_array_elements_text(kinds_of_table -> col.name));
	referenced text[];
	conditions text[];
	are_alike boolean;
	is_doubtful boolean;
BEGIN
	IF kinds = '{}' THEN
		kinds := '{?}';
	END IF;
	/*
	 * The last word: Player of App\Models\Player; with the one before it, where that is no framework's, chat_message
	 * of Chat::Message.
	 */
	SELECT array_agg(coalesce(r.referenced::text, '?') ORDER BY k.n),
			array_agg(format('%I = %L', col.kind_column, k.kind) ORDER BY k.n),
			bool_or(snowflake_migrate_internal.namesakes(col.relation, w.word, r.referenced, known) IS NOT NULL
					OR b.whole <> b.referenced),
			/* Another table of that name may be its module's. */
			bool_or(s.word IS NOT NULL AND b.whole IS NULL)
		INTO referenced, conditions, are_alike, is_doubtful
		FROM (
				SELECT u.kind, row_number() OVER (ORDER BY u.kind COLLATE "C") FROM unnest(kinds) AS u (kind)
			) AS k (kind, n)
			CROSS JOIN LATERAL (
				SELECT snowflake_migrate_internal.word(substring(k.kind FROM E'(\\w+)\\W*$')),
					ARRAY(
						SELECT snowflake_migrate_internal.word(p.word)
						FROM regexp_split_to_table(k.kind, E'::|[\\\\./]') WITH ORDINALITY AS p (word, n)
						ORDER BY p.n DESC OFFSET 1)) AS w (word, before)
			/* That of the module: frameworks' own words are passed over. */
			CROSS JOIN LATERAL (
				SELECT (SELECT b.word FROM unnest(w.before) WITH ORDINALITY AS b (word, n)
						WHERE b.word !~ '^(apps?|com|domain|entit(y|ies)|main|models?|modules?|org|public|src)?$'
						ORDER BY b.n LIMIT 1) || '_' || w.word) AS s (word)
			CROSS JOIN LATERAL (
				SELECT snowflake_migrate_internal.named(w.word, c.relnamespace, known, false),
					snowflake_migrate_internal.named(s.word, c.relnamespace, known, false)
				FROM pg_class AS c WHERE c.oid = col.relation) AS b (referenced, whole)
			CROSS JOIN LATERAL (SELECT coalesce(b.whole, b.referenced)) AS r (referenced);
	RETURN ROW ('kinds', col.relation, col.name,
		format('looks like a reference to a table that column %I names', col.kind_column)
			|| CASE WHEN are_alike THEN ', of several that are called alike' ELSE '' END, NULL,
		referenced, conditions, NULL,
		CASE WHEN is_table_itself THEN 'open' WHEN are_alike OR is_doubtful THEN 'likely' ELSE 'sure' END, NULL)
		::snowflake_migrate_internal.question;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_kinds(
	snowflake_migrate_internal.questioned_column, jsonb, boolean, snowflake_migrate_internal.vocabulary)
	IS 'for snowflake_migrate.merge()''s own use: what is to be asked of a column of ids of several tables';

/*
 * The tables that a column may refer to, by its values alone, the likeliest first: for a word that is one for somebody
 * those of persons, its own first; for one that is one for another of the same, its own; those that its own is called
 * as a part of; then the smallest, as in a great one any number is a key.  Its own is among those that listed() names.
 */
CREATE FUNCTION snowflake_migrate_internal.likeliest(
	own regclass,
	word text,
	fitting regclass[],
	known snowflake_migrate_internal.vocabulary) RETURNS regclass[]
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH kind AS (
		SELECT snowflake_migrate_internal.is_somebody(likeliest.word, true) AS is_somebody,
			snowflake_migrate_internal.is_another(likeliest.word) AS is_another,
			(SELECT snowflake_migrate_internal.word(c.relname) FROM pg_class AS c WHERE c.oid = own) AS own_word
	),
	ranked AS (
		SELECT f.relation,
			row_number() OVER (ORDER BY p.is_person DESC, p.is_own AND (p.is_person OR k.is_another) DESC,
				p.is_whole DESC, p.is_own, f.n) AS rank
		FROM unnest(fitting) WITH ORDINALITY AS f (relation, n)
			CROSS JOIN kind AS k
			CROSS JOIN LATERAL (
				SELECT f.relation = own,
					k.is_somebody AND NOT k.is_another AND coalesce(bool_or(w.word ~ (
						'(^|_)(account|avatar|character|client|customer|employee|hero|member|person|player|profile'
						'|user)$')), false),
					coalesce(bool_or(starts_with(k.own_word, w.word || '_')), false)
				FROM unnest(known.words, known.relations) AS w (word, relation)
				WHERE w.relation = f.relation
			) AS p (is_own, is_person, is_whole)
	)
	SELECT array_agg(r.relation ORDER BY CASE WHEN r.relation = own THEN least(r.rank, 3.5) ELSE r.rank END)
	FROM ranked AS r
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.likeliest(
	regclass, text, regclass[], snowflake_migrate_internal.vocabulary)
	IS 'for snowflake_migrate.merge()''s own use: the tables that a column may refer to';

/* Up to three tables, and how many more there are; null for none. */
CREATE FUNCTION snowflake_migrate_internal.listed(relations regclass[]) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT nullif(array_to_string(relations[1 : 3], ', '), '')
		|| CASE WHEN cardinality(relations) > 3 THEN format(' and %s more', cardinality(relations) - 3) ELSE '' END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.listed(regclass[])
	IS 'for snowflake_migrate.merge()''s own use: tables, as a sentence has them';

/*
 * What is to be asked of a column whose name says nothing of a table, or has a namesake, where its values are keys.
 * Small numbers are keys of many tables, and a column that is not called like an id is suspect only where that can
 * hardly be by chance.
 */
CREATE FUNCTION snowflake_migrate_internal.find_by_values(
	run_ bigint,
	col snowflake_migrate_internal.questioned_column,
	namesake regclass,
	known snowflake_migrate_internal.vocabulary) RETURNS SETOF snowflake_migrate_internal.question
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	has_id CONSTANT boolean := col.stem IS NOT NULL;
	fitting regclass[];
BEGIN
	IF coalesce(cardinality(col.relations), 0) = 0 THEN
		/* No row has a value yet, or those that there are belong to nothing that is merged. */
		IF (has_id OR namesake IS NOT NULL) AND col.form <> 'text' THEN
			RETURN NEXT ROW ('perhaps', col.relation, col.name,
				'may hold ids' || coalesce(' of ' || namesake, ''), NULL,
				ARRAY[coalesce(namesake::text, '?')], NULL, NULL, 'open', NULL)::snowflake_migrate_internal.question;
		END IF;
		RETURN;
	END IF;
	fitting := snowflake_migrate_internal.likeliest(
		col.relation, coalesce(col.stem, col.word), col.relations, known);
	/* A list of numbers is no count. */
	IF has_id OR col.is_somebody OR col.form = 'array' AND col.total >= 8
		OR snowflake_migrate_internal.is_another(col.word) AND col.relation = ANY (fitting)
			AND col.word !~ '(count|level|limit|number|size|total)s?$'
		OR col.form = 'text' AND col.total >= 3 AND cardinality(fitting) <= 3
		OR col.total >= 8 AND cardinality(fitting) <= 3
			AND col.total * ln(snowflake_migrate_internal.key_density(run_, fitting[1])) < ln(0.001) THEN
		RETURN NEXT ROW ('reference', col.relation, col.name,
			format('may be a reference to %s: its values are keys of it', fitting[1])
				|| coalesce(', and of ' || snowflake_migrate_internal.listed(fitting[2 :]), ''),
			format('%s of %s values', col.hits[array_position(col.relations, fitting[1])], col.total),
			fitting::text[], NULL, NULL,
			CASE cardinality(fitting) WHEN 1 THEN 'likely' ELSE 'open' END, NULL)::snowflake_migrate_internal.question;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_by_values(
		bigint, snowflake_migrate_internal.questioned_column, regclass, snowflake_migrate_internal.vocabulary)
	IS 'for snowflake_migrate.merge()''s own use: what is to be asked of a column whose values are keys';

/*
 * Whether this column has the parents of a tree: its root has none (else: rootless), and rows come after their parents,
 * so that these have the lower numbers (else: unordered).
 */
CREATE FUNCTION snowflake_migrate_internal.tree_shape(run_ bigint, col snowflake_migrate_internal.questioned_column)
RETURNS text
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	source record;
	has_root boolean := false;
	root_here boolean;
	ordered_here boolean;
	is_ordered boolean := true;
BEGIN
	FOR source IN
		SELECT s.source_relation, t.key[1] AS key
		FROM snowflake_migrate_internal.source_tables(run_) AS s
			CROSS JOIN LATERAL snowflake_migrate_internal.planned_table(run_, s.no) AS t
		WHERE s.no = col.no AND snowflake_migrate_internal.can_read(s.source_relation)
			AND snowflake_migrate_internal.has_columns(s.source_relation, ARRAY[col.name, t.key[1]])
	LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT coalesce(bool_or(v.value IN ('', '0', '-1')), false),
				coalesce(bool_and(v.value IN ('', '0', '-1') OR v.value::numeric < s.{"key"}), true)
			FROM {source} AS s CROSS JOIN LATERAL (SELECT coalesce(s.{"column"}::text, '')) AS v (value)
		$query$, jsonb_build_object('source', snowflake_migrate_internal.only(source.source_relation),
									'column', col.name, 'key', source.key)) INTO root_here, ordered_here;
		has_root := has_root OR root_here;
		is_ordered := is_ordered AND ordered_here;
	END LOOP;
	RETURN CASE WHEN NOT has_root THEN 'rootless' WHEN NOT is_ordered THEN 'unordered' ELSE 'tree' END;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.tree_shape(bigint, snowflake_migrate_internal.questioned_column)
	IS 'for snowflake_migrate.merge()''s own use: whether a column has the parents of a tree';

/*
 * What is to be asked of a column whose name is one of a table (referenced): with an id in it (is_stem), or else just
 * the table's.  Its values may say so, too, or not; is_short: they are keys of it, and rather those of a smaller table;
 * shape: where they are keys of its own table, and of another, that of the tree of rows.
 */
CREATE FUNCTION snowflake_migrate_internal.find_by_name(
	col snowflake_migrate_internal.questioned_column,
	referenced regclass,
	is_stem boolean,
	is_short boolean,
	shape text,
	known snowflake_migrate_internal.vocabulary) RETURNS snowflake_migrate_internal.question
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	n CONSTANT int := array_position(col.relations, referenced);
	is_odd CONSTANT boolean := n IS NULL AND col.total > 0;
	/* Of some that are keys by chance, the greatest need not be. */
	are_most CONSTANT boolean := coalesce(10 * col.hits[n] >= 9 * col.total, false);
	own_word CONSTANT text := (
		SELECT snowflake_migrate_internal.word(c.relname) FROM pg_class AS c WHERE c.oid = col.relation);
	/*
	 * What may say of which table the ids are, also by numbers: item_type, item_is_pet; and for what may be anything,
	 * plain type, reward_type, is_pet.
	 */
	kind_column CONSTANT name := coalesce(col.kind_column, (
		SELECT min(c.attname)
		FROM snowflake_migrate_internal.columns_of(col.relation) AS c
			JOIN pg_type AS y ON y.oid = snowflake_migrate_internal.without_domain(c.atttypid)
			CROSS JOIN LATERAL snowflake_migrate_internal.word(c.attname) AS w (word)
			CROSS JOIN LATERAL snowflake_migrate_internal.may_be_any(col.stem) AS m (is_any)
		WHERE is_stem AND c.attname <> col.name AND CASE
			WHEN y.typcategory = 'B' THEN starts_with(w.word, col.stem || '_is_')
				OR m.is_any AND starts_with(w.word, 'is_') AND substr(w.word, 4) = ANY (known.words)
			WHEN y.oid <> '"char"'::regtype AND y.typcategory NOT IN ('N', 'S', 'E') THEN false
			WHEN m.is_any THEN w.word = col.stem
				OR w.word ~ '(^|_)(type|kind|class|category|entity|object|model|module)$'
			ELSE w.word IN (col.stem || '_type', col.stem || '_kind', col.stem || '_class',
							col.stem || '_category') END));
	namesakes CONSTANT regclass[] := snowflake_migrate_internal.namesakes(
		col.relation, CASE WHEN is_stem THEN col.stem ELSE col.word END, referenced, known);
	is_doubtful CONSTANT boolean := snowflake_migrate_internal.is_doubtful(col.relation, col.stem, referenced, known);
	/* A parent may as well be a row of the table that its own is called after: sales_order of sales_order_address. */
	is_either CONSTANT boolean := col.stem = 'parent' AND referenced = col.relation AND EXISTS (
		SELECT FROM unnest(known.words, known.relations) AS w (word, relation)
			JOIN pg_class AS c ON c.oid = col.relation
		WHERE w.relation <> col.relation AND w.relation = ANY (col.relations)
			AND starts_with(snowflake_migrate_internal.word(c.relname), w.word || '_'));
	/*
	 * The others that are called so: the namesakes; and where the name has words more than its table's, archived_feeds,
	 * beside feeds, for old_feed.
	 */
	others regclass[] := (
		SELECT array_agg(DISTINCT w.relation)
		FROM unnest(known.words, known.relations, known.is_plain) AS w (word, relation, is_plain)
			CROSS JOIN LATERAL (SELECT '_' || substring(col.stem FROM '[^_]+$')) AS l (word)
		WHERE n IS NOT NULL AND w.relation <> referenced AND w.relation = ANY (col.relations)
			AND (w.relation = ANY (namesakes)
				 OR is_stem AND w.is_plain AND right('_' || w.word, length(l.word)) = l.word
					/* Of the whole name, only a part of its own table may be one: product_categories of products. */
					AND (EXISTS (SELECT FROM snowflake_migrate_internal.singulars(own_word) AS o (word)
								 WHERE starts_with(w.word, o.word || '_'))
						 OR NOT EXISTS (
							SELECT FROM unnest(known.words, known.relations) AS r (word, relation)
							WHERE r.relation = referenced
								AND right('_' || r.word, length(col.stem) + 1) = '_' || col.stem))));
BEGIN
	IF shape IN ('rootless', 'unordered') THEN
		others := snowflake_migrate_internal.likeliest(
			col.relation, '', array_remove(col.relations, referenced), known);
		others := CASE shape WHEN 'rootless' THEN others || referenced ELSE referenced || others END;
		RETURN ROW ('reference', col.relation, col.name,
			format('may be a reference to %s: its values are keys of it, and of %s; as parents of its own table, %s',
				   others[1], snowflake_migrate_internal.listed(others[2 :]), CASE shape
					WHEN 'rootless' THEN 'no row is without one'
					ELSE 'some would have a higher number than their children' END),
			format('%s of %s values are keys of it', col.hits[array_position(col.relations, others[1])], col.total),
			others::text[], NULL, NULL, CASE WHEN is_either THEN 'likely' ELSE 'open' END,
			NULL)::snowflake_migrate_internal.question;
	END IF;
	/* Those that are called so are told first. */
	is_short := is_short AND others IS NULL;
	IF is_odd THEN
		others := snowflake_migrate_internal.likeliest(col.relation, col.stem, col.relations, known);
	ELSIF is_short THEN
		others := array_remove(col.relations, referenced);
	END IF;
	RETURN ROW ('reference', col.relation, col.name,
		CASE WHEN is_odd
			THEN format('is called like a reference to %s, though few of its values are keys of it', referenced)
				|| coalesce('; they are keys of ' || snowflake_migrate_internal.listed(others), '')
			WHEN is_short
				THEN format('is called like a reference to %s, though its values are only the lowest keys of it; '
							'they are keys of %s, too', referenced, snowflake_migrate_internal.listed(others))
			WHEN others IS NOT NULL
				THEN format('may be a reference to %s, or to %s: they are called so, and its values are keys of them',
							referenced, snowflake_migrate_internal.listed(others))
			WHEN is_stem AND n IS NULL THEN format('may be a reference to %s: it is called so', referenced)
			WHEN is_stem AND NOT are_most
				THEN format('may be a reference to %s: it is called so, and most of its values are keys of it',
							referenced)
			WHEN is_stem THEN format('looks like a reference to %s, but has no foreign key', referenced)
			ELSE format('may be a reference to %s: it is called so, and its values are keys of it', referenced) END
			|| CASE WHEN kind_column IS NOT NULL THEN format('; column %I may say of which table', kind_column)
				ELSE '' END,
		CASE WHEN n IS NOT NULL THEN format('%s of %s values are keys of it', col.hits[n], col.total) END,
		(referenced || coalesce(others, '{}'))::text[], NULL, NULL,
		CASE WHEN is_odd OR is_short THEN 'open'
			WHEN is_stem AND are_most AND NOT is_either AND NOT is_doubtful AND others IS NULL AND kind_column IS NULL
				THEN 'sure'
			ELSE 'likely' END,
		NULL)::snowflake_migrate_internal.question;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_by_name(
		snowflake_migrate_internal.questioned_column, regclass, boolean, boolean, text,
		snowflake_migrate_internal.vocabulary)
	IS 'for snowflake_migrate.merge()''s own use: what is to be asked of a column that is called like a table';

/* What is to be asked of a column that names large objects of other databases. */
CREATE FUNCTION snowflake_migrate_internal.find_large_objects(run_ bigint, relation_ regclass, name_ name)
RETURNS SETOF snowflake_migrate_internal.question
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT ROW ('large object', relation_, name_, 'may name large objects, which a merge does not copy', NULL, NULL,
				NULL, NULL, 'open', s.source)::snowflake_migrate_internal.question
	FROM snowflake_migrate_internal.source_tables(run_) AS s
	WHERE s.relation = relation_ AND EXISTS (SELECT snowflake_migrate_internal.foreign_tables(s.source_relation))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_large_objects(bigint, regclass, name)
	IS 'for snowflake_migrate.merge()''s own use: what is to be asked of a column that names large objects';

/* What is to be asked about the columns that refer to nothing yet. */
CREATE FUNCTION snowflake_migrate_internal.questions(run_ bigint) RETURNS SETOF snowflake_migrate_internal.question
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	known snowflake_migrate_internal.vocabulary;
	matches CONSTANT jsonb := (SELECT jsonb_agg(v) FROM snowflake_migrate_internal.value_matches(run_) AS v);
	col snowflake_migrate_internal.questioned_column;
	referenced regclass;
	namesake regclass;		/* its name says nothing of ids */
	is_short boolean;
	read_whole int;			/* the table whose samples have the greatest ids of all rows */
	kinds_no int;			/* the table that kinds is of */
	kinds jsonb;
	question snowflake_migrate_internal.question;
	cols snowflake_migrate_internal.questioned_column[];
BEGIN
	known := snowflake_migrate_internal.vocabulary(run_);
	cols := ARRAY(
		SELECT ROW (c.no, c.relation, c.name, c.form, c.word, c.stem, c.is_somebody, c.kind_column,
			coalesce(v.total, 0), coalesce(v.has_others, false),
			v.relations, v.hits)::snowflake_migrate_internal.questioned_column
		FROM snowflake_migrate_internal.undeclared_columns(run_) WITH ORDINALITY AS c
			LEFT JOIN jsonb_to_recordset(matches) AS v (no int, name name, path text, total bigint, has_others boolean,
					relations regclass[], hits bigint[])
				ON v.no = c.no AND v.name = c.name AND v.path IS NULL
		ORDER BY c.ordinality);
	FOREACH col IN ARRAY cols LOOP
		IF col.form = 'document' THEN
			RETURN QUERY SELECT q.*
				FROM snowflake_migrate_internal.find_documents(
					run_, col.no, col.relation, col.name, known, matches) AS q;
			CONTINUE;
		ELSIF col.form = 'documents' THEN
			RETURN NEXT ROW ('array of documents', col.relation, col.name,
				'may hold ids, and a merge does not look into arrays of documents', NULL, NULL, NULL, NULL, 'open',
				NULL)::snowflake_migrate_internal.question;
			CONTINUE;
		ELSIF col.form = 'large object' THEN
			RETURN QUERY SELECT q.*
				FROM snowflake_migrate_internal.find_large_objects(run_, col.relation, col.name) AS q;
			CONTINUE;
		END IF;
		/* Texts that are numbers; where the name is a table's, a few may be others. */
		CONTINUE WHEN col.form = 'text' AND col.total = 0 AND (col.has_others OR col.kind_column IS NULL);
		referenced := snowflake_migrate_internal.named_by(col.relation, col.stem, true, known);
		namesake := snowflake_migrate_internal.namesake(col.relation, col.word, col.form = 'array', known);
		/* Numbers that are called like several are how many there are: posts of a forum. */
		namesake := CASE WHEN col.form <> 'integer' OR col.word !~ '[^s]s$' OR EXISTS (
				SELECT FROM pg_class AS c
				WHERE c.oid = namesake AND snowflake_migrate_internal.word(c.relname) = col.word || 's')
			THEN namesake END;
		CONTINUE WHEN coalesce(referenced, namesake) = ANY (known.unchanging);
		/* Texts of all kinds, as those beside a key: if what is a number among them is a key, often enough. */
		CONTINUE WHEN col.has_others AND coalesce(referenced, namesake) = ANY (col.relations) IS NOT TRUE
			AND NOT (col.form = 'text' AND col.total >= 20 AND cardinality(col.relations) BETWEEN 1 AND 3);
		IF col.kind_column IS NOT NULL AND kinds_no IS DISTINCT FROM col.no THEN
			kinds_no := col.no;
			kinds := (
				SELECT snowflake_migrate_internal.kinds(run_, col.relation, array_agg(c.name), array_agg(c.kind_column))
				FROM unnest(cols) AS c WHERE c.no = col.no AND c.kind_column IS NOT NULL);
		END IF;
		question := CASE WHEN col.kind_column IS NOT NULL
			THEN snowflake_migrate_internal.find_kinds(
				col, kinds, coalesce(referenced = ANY (col.relations), false), known) END;
		/* Where the kinds are tables, its own name says less: item_type may be an order's. */
		IF referenced IS NOT NULL AND (question.referenced <@ '{?}') IS NOT FALSE
			AND (col.kind_column IS NULL OR col.total = 0 OR referenced = ANY (col.relations))
			/* A parent is a row of its own table only for want of another. */
			AND (col.stem = 'parent' AND referenced = col.relation AND cardinality(col.relations) > 0
				 AND referenced <> ALL (col.relations)) IS NOT TRUE THEN
			/* The first rows of a table may all lead to the first rows of another. */
			is_short := false;
			IF referenced <> col.relation AND referenced = ANY (col.relations[2 :]) THEN
				is_short := snowflake_migrate_internal.values_fall_short(run_, col.no, col.name, referenced);
				IF is_short AND read_whole IS DISTINCT FROM col.no THEN
					PERFORM snowflake_migrate_internal.add_greatest_to_samples(run_, col.no);
					read_whole := col.no;
					is_short := snowflake_migrate_internal.values_fall_short(run_, col.no, col.name, referenced);
				END IF;
			END IF;
			RETURN NEXT snowflake_migrate_internal.find_by_name(col, referenced, true, is_short,
				CASE WHEN col.stem = 'parent' AND col.form = 'integer' AND referenced = col.relation
						AND referenced = ANY (col.relations) AND cardinality(col.relations) > 1
					THEN snowflake_migrate_internal.tree_shape(run_, col) ELSE '' END, known);
		ELSIF col.kind_column IS NOT NULL THEN
			RETURN NEXT question;
		ELSIF namesake = ANY (col.relations) THEN
			RETURN NEXT snowflake_migrate_internal.find_by_name(col, namesake, false, false, '', known);
		ELSE
			RETURN QUERY SELECT q.*
				FROM snowflake_migrate_internal.find_by_values(run_, col, namesake, known) AS q;
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.questions(bigint)
	IS 'for snowflake_migrate.merge()''s own use: what is to be asked about columns that look like references';

/* What to do about a column that may be a reference. */
CREATE FUNCTION snowflake_migrate_internal.question_advice(question snowflake_migrate_internal.question) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	none CONSTANT text := snowflake_migrate_internal.no_reference_declaration(
		question.relation, question.name, question.path);
	declarations CONSTANT text[] := ARRAY(
		SELECT snowflake_migrate_internal.reference_declaration(
			question.relation, question.name, r.referenced, r.condition, question.path)
		FROM unnest(question.referenced, question.conditions) WITH ORDINALITY AS r (referenced, condition, n)
		ORDER BY r.n);
BEGIN
	RETURN CASE question.kind
		WHEN 'perhaps' THEN format('If it does: %s', declarations[1])
		WHEN 'kinds' THEN format(E'For each kind of ids that it holds, with the table:\n%s\nIf it holds none: %s',
								 array_to_string(declarations, E'\n'), none)
		WHEN 'array of documents' THEN
			format('If it does, let it be a jsonb array in the source and the target before; if it does not: %s', none)
		WHEN 'large object' THEN
			format('If it does, keep their contents in a column of type bytea before; if it does not: %s', none)
		/* As many as listed() names. */
		ELSE format(E'If it is a reference: %s\nIf it is none: %s',
					array_to_string(declarations[1 : 3], E'\nor: '), none) END;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.question_advice(snowflake_migrate_internal.question)
	IS 'for snowflake_migrate.merge()''s own use: what to do about a column that may be a reference';

CREATE FUNCTION snowflake_migrate_internal.check_undeclared(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	question snowflake_migrate_internal.question;
BEGIN
	FOR question IN SELECT q.* FROM snowflake_migrate_internal.questions(run_) AS q LOOP
		PERFORM snowflake_migrate_internal.add_to_report(run_,
			CASE question.kind WHEN 'perhaps' THEN 'info' ELSE 'warning' END,
			question.source, question.relation::text, question.name, question.problem, NULL, question.example,
			snowflake_migrate_internal.question_advice(question), question.kind <> 'perhaps');
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_undeclared(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds columns that look like references';
