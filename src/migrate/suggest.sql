/*
 * What a merge should be told, as far as the schemas and their rows say so: declarations to be read, edited and run.
 *
 * All is done as in a check, in a block that is rolled back.  What seems right is tried there: the declarations are
 * made, another plan is drawn, and what the check would then call an error is suggested as a question.
 *
 * Keys need not hold snowflake ids yet: in the place of the maps are their old keys alone.
 */

/*
 * certainty: sure, to be run as it is; likely, and open, which are printed as comments.  alternatives: what could be
 * run in its place.  step: 1 tables, 2 references, 3 times, 4 policies, 5 keys.
 */
CREATE TYPE snowflake_migrate_internal.suggestion AS (
	step int,
	certainty text,
	relation regclass,
	object text,
	reason text,
	statement text,
	alternatives text[],
	referenced text,
	condition text,
	path text
);

/* Fills the maps of a run with the keys that the sources have, each as it is; of those tables that can be read. */
CREATE FUNCTION snowflake_migrate_internal.collect_keys(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	t record;
BEGIN
	PERFORM snowflake_migrate_internal.create_maps(run_);
	FOR t IN
		SELECT snowflake_migrate_internal.names(run_, p.no) || jsonb_build_object(
				'no', CASE p.kind WHEN 'id' THEN p.no::text || ',' ELSE '' END,
				'no_column', CASE p.kind WHEN 'id' THEN 'no,' ELSE '' END,
				'source', s.source_no,
				'values', v.key_values,
				'are_there', v.are_there,
				'source_table', snowflake_migrate_internal.only(s.source_relation)) AS names
		FROM snowflake_migrate_internal.plan_tables AS p
			JOIN snowflake_migrate_internal.source_tables(run_) AS s USING (no)
			CROSS JOIN LATERAL (
				SELECT string_agg(k.value, ', ' ORDER BY k.n), string_agg(format('v.o%s IS NOT NULL', k.n), ' AND ')
				FROM snowflake_migrate_internal.key_values(p.relation, s.source_relation, p.key) AS k
			) AS v (key_values, are_there)
		WHERE p.run = run_ AND p.kind <> 'none'
			AND snowflake_migrate_internal.can_read(s.source_relation)
			AND snowflake_migrate_internal.has_columns(s.source_relation, p.key)
			AND snowflake_migrate_internal.can_cast_key(p.relation, s.source_relation, p.key)
	LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			INSERT INTO {map} ({no_column} source, {o#}, {n#}, action)
			SELECT {no} {source}, {v.o#}, {v.o#}, 'c'
			FROM (SELECT DISTINCT {values} FROM {source_table} AS s) AS v ({o#})
			WHERE {are_there}
		$query$, t.names);
		EXECUTE snowflake_migrate_internal.fill('ANALYZE {map}', t.names);
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.collect_keys(bigint)
	IS 'for snowflake_migrate.suggest()''s own use: the keys that the sources have';

/* Whether a column's name is one for the time when a row was made: 1 surely, 2 for things that are made so. */
CREATE FUNCTION snowflake_migrate_internal.tells_creation(word text) RETURNS int
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE
		WHEN w.stem ~ '^(date_|time_)?(created|creation|inserted|insertion)$' THEN 1
		WHEN w.stem ~ ('^(date_|time_)?(added|entered|founded|issued|joined|logged|opened|ordered|placed|posted'
			'|received|registered|registration|sent|signed_up|submitted|uploaded)$') THEN 2 END
	FROM (SELECT regexp_replace(word, '(_(at|on|date|time|datetime|ts|utc))+$', '')) AS w (stem)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.tells_creation(text)
	IS 'for snowflake_migrate.suggest()''s own use: whether a column is called like a time of creation';

/*
 * How far the rows of the sources are the target's, by the values of some columns: rows of the sources and the target,
 * those that are in both, how many of these differ elsewhere, in which columns, and an example; repeated: rows of a
 * source whose values another has, too.  References and times of creation are not compared; is_compared: anything was.
 * Nothing of a table with many rows.
 */
CREATE FUNCTION snowflake_migrate_internal.alike(
	run_ bigint,
	no_ int,
	by name[],
	OUT rows bigint,
	OUT target_rows bigint,
	OUT same bigint,
	OUT different bigint,
	OUT repeated bigint,
	OUT columns text,
	OUT example text,
	OUT is_compared boolean)
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	names jsonb;
	one record;
BEGIN
	rows := 0; same := 0; different := 0; repeated := 0; is_compared := true;
	IF NOT snowflake_migrate_internal.can_read((SELECT t.relation FROM snowflake_migrate_internal.plan_tables AS t
												WHERE t.run = run_ AND t.no = no_))
		/* Values of other types could be compared by code of their owners. */
		OR EXISTS (
			SELECT FROM snowflake_migrate_internal.plan_tables AS t
				JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attname = ANY (by)
				JOIN pg_type AS y ON y.oid = a.atttypid
			WHERE t.run = run_ AND t.no = no_ AND y.typnamespace <> 'pg_catalog'::regnamespace) THEN
		RETURN;
	END IF;
	EXECUTE snowflake_migrate_internal.fill('SELECT count(*) FROM (SELECT FROM {target} LIMIT 100001) AS t',
		snowflake_migrate_internal.names(run_, no_)) INTO target_rows;
	IF target_rows > 100000 THEN
		RETURN;
	END IF;
	FOR names IN SELECT n FROM snowflake_migrate_internal.alike_names(run_, no_, by) AS n LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*) AS rows, count(t."merge is there") AS same,
				count(*) FILTER (WHERE t."merge is there" AND {differs}) AS different,
				count(*) - count(DISTINCT ROW ({values})) AS repeated, {columns} AS columns,
				min(left(ROW ({values})::text, 100)) FILTER (WHERE t."merge is there") AS example
			FROM {source} AS s LEFT JOIN (SELECT true AS "merge is there", t.* FROM {target} AS t) AS t ON {equal}
		$query$, names) INTO one;
		is_compared := is_compared AND names ->> 'differs' <> 'false';
		rows := rows + one.rows;
		same := same + one.same;
		different := different + one.different;
		repeated := repeated + one.repeated;
		columns := coalesce(columns, nullif(one.columns, ''));
		example := coalesce(example, btrim(one.example, '()'));
	END LOOP;
/* Types that have no such operator, and values that cannot become the target's. */
EXCEPTION WHEN syntax_error_or_access_rule_violation OR data_exception OR feature_not_supported THEN
	same := 0;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.alike(bigint, int, name[])
	IS 'for snowflake_migrate.suggest()''s own use: how far the rows of the sources are the target''s';

/* The names for the queries of alike(), for each source that has these columns. */
CREATE FUNCTION snowflake_migrate_internal.alike_names(run_ bigint, no_ int, by name[]) RETURNS SETOF jsonb
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT snowflake_migrate_internal.names(run_, no_) || jsonb_build_object(
		'source', snowflake_migrate_internal.only(s.relation),
		'values', (
			SELECT string_agg(snowflake_migrate_internal.source_value(t.relation, s.relation, b.name), ', '
							  ORDER BY b.n)
			FROM unnest(by) WITH ORDINALITY AS b (name, n)),
		'equal', (
			SELECT string_agg(snowflake_migrate_internal.compared(NULL, format('t.%I', b.name),
				snowflake_migrate_internal.source_value(t.relation, s.relation, b.name)), ' AND ' ORDER BY b.n)
			FROM unnest(by) WITH ORDINALITY AS b (name, n)),
		'differs', coalesce(snowflake_migrate_internal.differs(t.relation, o.names, o.expressions), 'false'),
		'columns', coalesce((
			SELECT format('array_to_string(ARRAY[%s]::text[], '', '')', string_agg(
				format('CASE WHEN bool_or(t."merge is there" AND %s) THEN %L END',
					   snowflake_migrate_internal.differs(t.relation, ARRAY[e.name], ARRAY[e.expression]), e.name),
				', '))
			FROM unnest(o.names, o.expressions) AS e (name, expression)), 'NULL'))
	FROM snowflake_migrate_internal.plan_tables AS t
		JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
		CROSS JOIN LATERAL (
			SELECT array_agg(c.attname::text ORDER BY c.attnum),
				array_agg(snowflake_migrate_internal.source_value(t.relation, s.relation, c.attname) ORDER BY c.attnum)
			FROM snowflake_migrate_internal.columns_of(t.relation) AS c
				JOIN pg_attribute AS b ON b.attrelid = s.relation AND b.attname = c.attname
					AND b.attnum > 0 AND NOT b.attisdropped
			WHERE c.attname <> ALL (by) AND c.attname <> ALL (t.key) AND c.attgenerated = ''
				AND snowflake_migrate_internal.cast(b.atttypid, b.atttypmod, c.atttypid, c.atttypmod) IS NOT NULL
				AND snowflake_migrate_internal.tells_creation(snowflake_migrate_internal.word(c.attname)) IS NULL
				/* Ids differ; a document is more than these. */
				AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS f
								WHERE f.run = run_ AND f.no = no_ AND f.name = c.attname AND f.path IS NULL)
		) AS o (names, expressions)
	WHERE t.run = run_ AND t.no = no_
		AND snowflake_migrate_internal.can_read(s.relation)
		AND snowflake_migrate_internal.has_columns(s.relation, by)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.alike_names(bigint, int, name[])
	IS 'for snowflake_migrate.suggest()''s own use: the names in the queries of alike()';

/* What alike() found, for people. */
CREATE FUNCTION snowflake_migrate_internal.alike_reason(
	rows bigint,
	same bigint,
	different bigint,
	columns text,
	example text,
	by name[]) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE same WHEN 0 THEN format('none of the sources'' %s rows is in the target by %s', rows, b.names)
		ELSE format('%s of the sources'' %s rows are in the target by %s, such as %s', same, rows, b.names, example) END
		|| CASE WHEN different > 0 THEN format('; %s of them differ in %s', different, columns) ELSE '' END
	FROM (SELECT array_to_string(by, ', ')) AS b (names)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.alike_reason(bigint, bigint, bigint, text, text, name[])
	IS 'for snowflake_migrate.suggest()''s own use: what was found of rows that are in both';

/* Whether each source has all columns of a table, so that none is left out where its rows are compared. */
CREATE FUNCTION snowflake_migrate_internal.have_all_columns(run_ bigint, no_ int) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT coalesce(bool_and(snowflake_migrate_internal.has_columns(s.relation, ARRAY(
			SELECT c.attname FROM snowflake_migrate_internal.columns_of(t.relation) AS c WHERE c.attgenerated = ''))),
		false)
	FROM snowflake_migrate_internal.plan_tables AS t JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
	WHERE t.run = run_ AND t.no = no_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.have_all_columns(bigint, int)
	IS 'for snowflake_migrate.suggest()''s own use: whether each source has all columns of a table';

/*
 * A table whose key nothing makes, or is no number: the same row has it everywhere, where the rows say so.  Where
 * something makes it, all rows must say so, and that is likely at most.  null: there is nothing to say.
 */
CREATE FUNCTION snowflake_migrate_internal.suggest_by_key(run_ bigint, plan jsonb, is_made boolean)
RETURNS snowflake_migrate_internal.suggestion
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	relation CONSTANT regclass := plan ->> 'relation';
	key CONSTANT name[] := ARRAY(SELECT k.name FROM jsonb_array_elements_text(plan -> 'key')
									WITH ORDINALITY AS k (name, n) ORDER BY k.n);
	found CONSTANT record := snowflake_migrate_internal.alike(run_, (plan ->> 'no')::int, key);
	is_equal CONSTANT boolean := found.same > 0 AND found.different = 0 AND found.is_compared
		AND 10 * found.same >= 9 * least(found.rows, found.target_rows);
	reason CONSTANT text := snowflake_migrate_internal.alike_reason(
		found.rows, found.same, found.different, found.columns, found.example, key);
	same_id CONSTANT text := snowflake_migrate_internal.table_declaration(relation, 'same_id');
	answers text[];
BEGIN
	IF plan ->> 'kind' = 'id' AND NOT is_made THEN
		answers := ARRAY(SELECT a.declaration
			FROM snowflake_migrate_internal.key_answers(run_, relation, key[1]) AS a ORDER BY a.is_named DESC, a.n);
		IF NOT is_equal OR answers[1] <> same_id THEN
			RETURN ROW (1, 'open', relation, key[1], 'nothing makes the key: ' || reason, answers[1], answers[2 :],
						NULL, NULL, NULL)::snowflake_migrate_internal.suggestion;
		END IF;
	ELSIF plan ->> 'kind' = 'key' AND found.same > 0 AND (found.different > 0 OR NOT found.is_compared) THEN
		RETURN ROW (1, 'open', relation, array_to_string(key, ', '), reason, same_id, ARRAY[
				snowflake_migrate_internal.table_declaration(relation, 'ignore')] || ARRAY(
					SELECT format('SELECT snowflake_migrate.declare_policy(%L, %L, %L);', relation, u.label, p.policy)
					FROM snowflake_migrate_internal.unique_constraints(run_, (plan ->> 'no')::int) AS u,
						unnest('{keep_target,keep_source}'::text[]) AS p (policy)
					WHERE u.is_key), NULL, NULL, NULL)::snowflake_migrate_internal.suggestion;
	ELSIF NOT is_equal OR is_made AND (found.same < 3 OR found.same < found.rows) THEN
		RETURN NULL;
	END IF;
	RETURN ROW (1, CASE WHEN is_made OR NOT snowflake_migrate_internal.have_all_columns(run_, (plan ->> 'no')::int)
					THEN 'likely' ELSE 'sure' END, relation, array_to_string(key, ', '),
				reason || ', and they are equal', same_id, NULL, NULL, NULL, NULL)
		::snowflake_migrate_internal.suggestion;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.suggest_by_key(bigint, jsonb, boolean)
	IS 'for snowflake_migrate.suggest()''s own use: a table of which an equal key may be the same row';

/* A table whose rows are the target's by a natural key: the one by which most are; null where there is none. */
CREATE FUNCTION snowflake_migrate_internal.suggest_by_natural_key(run_ bigint, no_ int, relation regclass)
RETURNS snowflake_migrate_internal.suggestion
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	k record;
	is_whole boolean;
BEGIN
	SELECT n.names, a.* INTO k
		FROM snowflake_migrate_internal.natural_keys(run_, no_) AS n
			CROSS JOIN LATERAL snowflake_migrate_internal.alike(run_, no_, n.names) AS a
		WHERE a.same > 0 AND 2 * a.same >= least(a.rows, a.target_rows)
		ORDER BY a.same DESC, n.label LIMIT 1;
	IF NOT FOUND THEN
		RETURN NULL;
	END IF;
	/* Numbers alone are in all databases: those of plots, of slots, of ranks. */
	is_whole := k.same >= 3 AND 10 * k.same >= 9 * least(k.rows, k.target_rows) AND k.different = 0 AND k.repeated = 0
		AND snowflake_migrate_internal.have_all_columns(run_, no_)
		AND EXISTS (
			SELECT FROM pg_attribute AS a
				CROSS JOIN LATERAL snowflake_migrate_internal.base_type(a.atttypid, a.atttypmod) AS y
			WHERE a.attrelid = suggest_by_natural_key.relation AND a.attname = ANY (k.names)
				AND y.base NOT IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype));
	RETURN ROW (1, CASE WHEN is_whole THEN 'sure' ELSE 'likely' END, relation, array_to_string(k.names, ', '),
		snowflake_migrate_internal.alike_reason(k.rows, k.same, k.different, k.columns, k.example, k.names),
		snowflake_migrate_internal.table_declaration(relation, 'match', k.names, ARRAY(
			SELECT a.name FROM (VALUES ('differences', k.different), ('duplicates', k.repeated)) AS a (name, rows)
			WHERE a.rows > 0)), NULL, NULL, NULL, NULL)::snowflake_migrate_internal.suggestion;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.suggest_by_natural_key(bigint, int, regclass)
	IS 'for snowflake_migrate.suggest()''s own use: a table whose rows are the target''s by a natural key';

/* The tables that are no player's and no customer's, but the application's: the same in all databases. */
CREATE FUNCTION snowflake_migrate_internal.suggest_tables(run_ bigint)
RETURNS SETOF snowflake_migrate_internal.suggestion
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	plan record;
	suggestion snowflake_migrate_internal.suggestion;
BEGIN
	FOR plan IN
		SELECT t.*, u.relation IS NULL AS is_made
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			LEFT JOIN snowflake_migrate_internal.unfit_keys(run_) AS u ON u.relation = t.relation AND NOT u.is_declared
		WHERE t.kind <> 'none'
			AND t.relation NOT IN (SELECT d.relation FROM snowflake_migrate.declared_tables AS d)
			AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_references AS f
							WHERE f.run = run_ AND f.no = t.no AND f.name = ANY (t.key))
		ORDER BY t.no
	LOOP
		suggestion := NULL;
		IF plan.kind = 'id' AND plan.is_made THEN
			suggestion := snowflake_migrate_internal.suggest_by_natural_key(run_, plan.no, plan.relation);
		END IF;
		IF suggestion IS NULL THEN
			suggestion := snowflake_migrate_internal.suggest_by_key(
				run_, to_jsonb(plan), plan.is_made AND plan.kind = 'id');
		END IF;
		IF suggestion.step IS NOT NULL THEN
			RETURN NEXT suggestion;
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.suggest_tables(bigint)
	IS 'for snowflake_migrate.suggest()''s own use: tables that are the same in all databases';

/* What the check asks about columns, with the likeliest answer. */
CREATE FUNCTION snowflake_migrate_internal.suggest_references(run_ bigint)
RETURNS SETOF snowflake_migrate_internal.suggestion
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT ROW (2, CASE WHEN r.referenced = '?' THEN 'open' ELSE q.certainty END, q.relation, q.name,
		q.problem || coalesce(' (' || q.example || ')', ''),
		CASE WHEN q.referenced IS NULL THEN none.declaration
			ELSE snowflake_migrate_internal.reference_declaration(
				q.relation, q.name, r.referenced, r.condition, q.path) END,
		CASE WHEN q.kind IN ('reference', 'perhaps') THEN ARRAY(
				SELECT snowflake_migrate_internal.reference_declaration(q.relation, q.name, o.referenced, NULL, q.path)
				FROM unnest(q.referenced[2 : 3]) AS o (referenced))
			ELSE '{}' END
			|| CASE WHEN q.referenced IS NULL OR q.kind = 'kinds' AND NOT ('?' = ALL (q.referenced) AND r.n = 1)
				THEN '{}' ELSE ARRAY[none.declaration] END,
		r.referenced, r.condition, q.path)::snowflake_migrate_internal.suggestion
	FROM snowflake_migrate_internal.questions(run_) AS q
		CROSS JOIN LATERAL (
			SELECT snowflake_migrate_internal.no_reference_declaration(q.relation, q.name, q.path)
		) AS none (declaration)
		CROSS JOIN LATERAL (
			SELECT u.* FROM unnest(q.referenced, q.conditions) WITH ORDINALITY AS u (referenced, condition, n)
			WHERE q.kind = 'kinds' OR u.n = 1
			UNION ALL
			SELECT NULL, NULL, 1 WHERE q.referenced IS NULL) AS r (referenced, condition, n)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.suggest_references(bigint)
	IS 'for snowflake_migrate.suggest()''s own use: columns that look like references';

/* The columns that tell when rows were made, which their new ids could tell. */
CREATE FUNCTION snowflake_migrate_internal.suggest_created(run_ bigint)
RETURNS SETOF snowflake_migrate_internal.suggestion
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH candidate AS (
		SELECT t.relation, c.attname, c.attnum, w.rank, d.is_now,
			format('SELECT snowflake_migrate.declare_created(%L, %L);', t.relation, c.attname) AS declaration,
			row_number() OVER (PARTITION BY t.relation ORDER BY w.rank, NOT d.is_now, c.attnum) AS place
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			CROSS JOIN LATERAL snowflake_migrate_internal.columns_of(t.relation) AS c
			LEFT JOIN pg_attrdef AS f ON f.adrelid = t.relation AND f.adnum = c.attnum
			CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.word(c.attname)) AS n (word)
			CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.tells_creation(n.word)) AS w (rank)
			CROSS JOIN LATERAL (
				SELECT coalesce(pg_get_expr(f.adbin, f.adrelid), '')
						~* '^[(]*((now|(clock|statement|transaction)_timestamp)[(][)]|(current_|local)(timestamp|date))'
					AND NOT snowflake_migrate_internal.tells_change(n.word)) AS d (is_now)
		WHERE t.kind = 'id' AND t.created IS NULL
			AND c.atttypid IN ('timestamptz'::regtype, 'timestamp'::regtype, 'date'::regtype)
			AND c.attname <> ALL (t.key)
			AND (w.rank IS NOT NULL OR d.is_now)
	)
	SELECT ROW (3, CASE WHEN c.rank = 1 OR c.rank = 2 AND c.is_now THEN 'sure' ELSE 'likely' END, c.relation, c.attname,
		'tells when a row was made, by its ' || CASE WHEN c.rank IS NULL THEN 'default'
			WHEN c.is_now THEN 'name and its default' ELSE 'name' END,
		c.declaration,
		ARRAY(SELECT o.declaration FROM candidate AS o WHERE o.relation = c.relation AND o.place > 1 ORDER BY o.place),
		NULL, NULL, NULL)::snowflake_migrate_internal.suggestion
	FROM candidate AS c
	WHERE c.place = 1
	ORDER BY c.relation::text COLLATE "C"
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.suggest_created(bigint)
	IS 'for snowflake_migrate.suggest()''s own use: columns that tell when rows were made';

/*
 * What could become of rows that clash: of names, which both sides have or may have soon, and of all others that do.
 * alike: the tables whose rows are the same rows.
 */
CREATE FUNCTION snowflake_migrate_internal.suggest_policies(run_ bigint, alike regclass[])
RETURNS SETOF snowflake_migrate_internal.suggestion
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT ROW (4, CASE WHEN k.is_name THEN 'likely' ELSE 'open' END, t.relation, u.label,
		CASE c.clashes WHEN 0 THEN 'names that may come to clash: none does now'
			ELSE format('%s of the sources'' rows clash, such as %s', c.clashes, c.example) END,
		p.statements[1], p.statements[2 :], NULL, NULL, NULL)::snowflake_migrate_internal.suggestion
	FROM snowflake_migrate_internal.merged_tables(run_) AS t
		CROSS JOIN LATERAL snowflake_migrate_internal.unique_constraints(run_, t.no) AS u
		/* Which have room for one. */
		CROSS JOIN LATERAL (
			SELECT array_agg(n.name)
			FROM unnest(snowflake_migrate_internal.policy_columns(t.relation, u.label, 'suffix')) AS n (name)
				JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attname = n.name
				CROSS JOIN LATERAL snowflake_migrate_internal.base_type(a.atttypid, a.atttypmod) AS y
			WHERE y.base NOT IN ('varchar'::regtype, 'bpchar'::regtype) OR y.base_typmod < 4
				OR y.base_typmod - 4 > (
					SELECT 2 + max(length(s)) FROM snowflake_migrate.runs AS r, unnest(r.sources) AS s
					WHERE r.run = run_)) AS x (names)
		CROSS JOIN LATERAL snowflake_migrate_internal.policy_columns(t.relation, u.label, 'next_free') AS i (names)
		CROSS JOIN LATERAL (
			SELECT coalesce(cardinality(x.names) = 1 AND snowflake_migrate_internal.word(x.names[1])
				~ '(^|_)(name|nick|nickname|username|login|title|tag|handle|slug|alias|label)$', false)) AS k (is_name)
		CROSS JOIN LATERAL snowflake_migrate_internal.clashing(run_, t.no, to_jsonb(u)) AS c
		CROSS JOIN LATERAL (
			SELECT array_agg(format('SELECT snowflake_migrate.declare_policy(%L, %L, %L%s);', t.relation, u.label,
									s.policy, ', ' || quote_literal(s.argument)) ORDER BY s.n)
			FROM (VALUES (1, 'suffix', '.{source}', k.is_name),
						 (1, 'rerank', '?', cardinality(i.names) = 1
							AND snowflake_migrate_internal.word(i.names[1])
								~ '(^|_)(place|position|rank|ranking|standing)$'),
						 (2, 'next_free', NULL, cardinality(i.names) = 1),
						 (3, 'keep_target', NULL, true),
						 (4, 'suffix', '.{source}', cardinality(x.names) = 1 AND NOT k.is_name),
						 (5, 'keep_source', NULL, true),
						 (6, 'skip', NULL, true)) AS s (n, policy, argument, applies)
			WHERE s.applies) AS p (statements)
	WHERE t.mode = 'copy' AND t.relation <> ALL (alike) AND u.policy = 'error' AND NOT u.is_key AND t.kind <> 'none'
		AND (c.clashes > 0 OR k.is_name) AND snowflake_migrate_internal.is_about_values(run_, t.no, u.label)
	ORDER BY t.relation::text COLLATE "C", u.label
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.suggest_policies(bigint, regclass[])
	IS 'for snowflake_migrate.suggest()''s own use: what could become of rows that clash';

/* The keys that have to hold snowflake ids before the merge. */
CREATE FUNCTION snowflake_migrate_internal.suggest_adoption(run_ bigint)
RETURNS SETOF snowflake_migrate_internal.suggestion
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT ROW (5, 'likely', NULL, NULL,
		format('%s keys are not given snowflake ids; the call locks their tables, and rewrites those without bigint',
			   cardinality(k.tables)),
		snowflake_migrate_internal.adoption_call(k.tables, k.keys), NULL, NULL, NULL, NULL)
		::snowflake_migrate_internal.suggestion
	FROM snowflake_migrate_internal.keys_to_adopt(run_) AS k
	WHERE k.tables <> '{}'
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.suggest_adoption(bigint)
	IS 'for snowflake_migrate.suggest()''s own use: keys that have to be adopted';

/* How many values each declared reference of a run has in the sources, and how many of them lead to no row. */
CREATE FUNCTION snowflake_migrate_internal.count_references(
	run_ bigint,
	OUT relation regclass,
	OUT name name,
	OUT condition text,
	OUT path text,
	OUT can_be_null boolean,
	OUT total bigint,
	OUT lost bigint,
	OUT example text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	names jsonb;
BEGIN
	FOR names IN
		SELECT r
		FROM snowflake_migrate_internal.source_tables(run_) AS s
			CROSS JOIN LATERAL snowflake_migrate_internal.reference_names(run_, s.no, s.source_no) AS r
		WHERE r -> 'declared' = 'true' AND snowflake_migrate_internal.can_read(s.source_relation)
	LOOP
		relation := (names ->> 'table')::regclass;
		name := names ->> 'column';
		condition := names ->> 'condition';
		path := names ->> 'path';
		can_be_null := names -> 'not_null' = 'false';
		BEGIN
			/* Texts that are no numbers come first. */
			EXECUTE snowflake_migrate_internal.fill($query$
				SELECT count(*), count(*) FILTER (WHERE {is_lost}),
					max(concat({dangling_value}) COLLATE "C") FILTER (WHERE {is_lost})
				FROM {referring}
			$query$, names || jsonb_build_object('is_lost', snowflake_migrate_internal.dangles(names),
				'referring', snowflake_migrate_internal.referring_rows(names))) INTO total, lost, example;
			PERFORM snowflake_migrate_internal.check_form(names);
		/* A condition may name a column that this source lacks; the check says so. */
		EXCEPTION WHEN undefined_column OR data_exception THEN
			total := NULL; lost := NULL; example := NULL;
		END;
		RETURN NEXT;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.count_references(bigint)
	IS 'for snowflake_migrate.suggest()''s own use: how many references dangle';

/* What becomes of the suggestion of a reference, of whose values some, or most, lead to no row. */
CREATE FUNCTION snowflake_migrate_internal.with_lost(
	suggestion snowflake_migrate_internal.suggestion,
	total bigint,
	lost bigint,
	can_be_null boolean,
	example text) RETURNS snowflake_migrate_internal.suggestion
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	/* Another text means something by itself, and is nobody's id. */
	is_number CONSTANT boolean := example ~ '^-?[0-9]+([.]0+)?$' IS NOT FALSE;
	otherwise text[];
BEGIN
	IF coalesce(lost, 0) = 0 THEN
		RETURN suggestion;
	END IF;
	SELECT array_agg(snowflake_migrate_internal.reference_declaration(suggestion.relation, suggestion.object,
			suggestion.referenced, suggestion.condition, suggestion.path, d.dangling) ORDER BY d.n)
		INTO otherwise
		FROM unnest(CASE WHEN is_number THEN '{"null",keep,skip}' ELSE '{keep,"null",skip}' END::text[])
			WITH ORDINALITY AS d (dangling, n)
		WHERE d.dangling <> 'null' OR can_be_null;
	suggestion.reason := format('%s; %s of %s values are keys of no row, such as %s',
								suggestion.reason, lost, total, example);
	suggestion.statement := otherwise[1];
	suggestion.alternatives := otherwise[2 :] || suggestion.alternatives;
	IF 10 * lost > total OR NOT can_be_null THEN
		suggestion.certainty := 'open';
	ELSIF NOT is_number AND suggestion.certainty = 'sure' THEN
		suggestion.certainty := 'likely';
	END IF;
	RETURN suggestion;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.with_lost(
		snowflake_migrate_internal.suggestion, bigint, bigint, boolean, text)
	IS 'for snowflake_migrate.suggest()''s own use: a reference of which some dangle';

/* Runs those of the suggestions that are sure, or likely as well; one that can't be run is left to whoever reads it. */
CREATE FUNCTION snowflake_migrate_internal.run_suggestions(
	suggestions snowflake_migrate_internal.suggestion[],
	likely boolean) RETURNS SETOF snowflake_migrate_internal.suggestion
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	s snowflake_migrate_internal.suggestion;
BEGIN
	FOREACH s IN ARRAY suggestions LOOP
		IF s.certainty = 'sure' OR likely AND s.certainty = 'likely' THEN
			BEGIN
				EXECUTE s.statement;
			EXCEPTION WHEN others THEN
				s.certainty := 'open';
				s.reason := format('%s; but %s', s.reason, SQLERRM);
			END;
		END IF;
		RETURN NEXT s;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.run_suggestions(snowflake_migrate_internal.suggestion[], boolean)
	IS 'for snowflake_migrate.suggest()''s own use: runs declarations';

/* What is an error in the report of a run that tries a suggestion, and was none before. */
CREATE FUNCTION snowflake_migrate_internal.new_problem(
	run_ bigint,
	tried bigint,
	suggestion snowflake_migrate_internal.suggestion) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT min(f.problem)
	FROM snowflake_migrate.report AS f
	WHERE f.run = tried AND f.severity = 'error' AND suggestion.certainty <> 'open'
		AND f.relation = suggestion.relation::text AND (f.object = suggestion.object OR suggestion.step = 1)
		AND NOT EXISTS (SELECT FROM snowflake_migrate.report AS o
						WHERE o.run = run_ AND o.severity = 'error' AND o.problem = f.problem
							AND (o.relation, o.object) IS NOT DISTINCT FROM (f.relation, f.object))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.new_problem(bigint, bigint, snowflake_migrate_internal.suggestion)
	IS 'for snowflake_migrate.suggest()''s own use: what a suggestion would make an error';

/*
 * What a check would say of each of the suggestions, where they were all taken that are sure, and of columns those that
 * are likely: by a second plan (tried), with the declarations made.
 */
CREATE FUNCTION snowflake_migrate_internal.judge(
	run_ bigint,
	tried bigint,
	suggestions snowflake_migrate_internal.suggestion[]) RETURNS SETOF snowflake_migrate_internal.suggestion
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	counts CONSTANT jsonb := (SELECT jsonb_agg(c) FROM snowflake_migrate_internal.count_references(tried) AS c);
	s snowflake_migrate_internal.suggestion;
	counted record;
	problem text;
	own text;
BEGIN
	PERFORM snowflake_migrate_internal.find_early(t)
		FROM snowflake_migrate.runs AS r
			CROSS JOIN generate_subscripts(r.sources, 1) AS n
			CROSS JOIN LATERAL snowflake_migrate_internal.numbered_tables(tried, n) AS t
		WHERE r.run = tried AND t ->> 'created' IS NOT NULL
			AND snowflake_migrate_internal.can_read((
				SELECT o.relation FROM snowflake_migrate_internal.plan_sources AS o
				WHERE o.run = tried AND o.no = (t ->> 'no')::int AND o.source = n));
	FOREACH s IN ARRAY suggestions LOOP
		IF s.step = 2 THEN
			SELECT sum(c.total)::bigint AS total, sum(c.lost)::bigint AS lost, bool_and(c.can_be_null) AS can_be_null,
					max(c.example COLLATE "C") AS example
				INTO counted
				FROM jsonb_to_recordset(counts) AS c (relation regclass, name name, condition text, path text,
					can_be_null boolean, total bigint, lost bigint, example text)
				WHERE c.relation = s.relation AND c.name = s.object
					AND (c.condition, c.path) IS NOT DISTINCT FROM (s.condition, s.path);
			s := snowflake_migrate_internal.with_lost(
				s, counted.total, counted.lost, counted.can_be_null, counted.example);
		END IF;
		/* Of rows that are the same, the target's stay, and what the sources' refer to is lost. */
		IF s.step = 1 AND s.certainty IN ('sure', 'likely') THEN
			SELECT string_agg(DISTINCT quote_ident(f.name), ', ') INTO own
				FROM snowflake_migrate_internal.plan_references AS f
					JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
					JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = tried AND p.no = f.referenced
				WHERE f.run = tried AND t.relation = s.relation AND p.mode = 'copy' AND t.mode <> 'copy';
			IF own IS NOT NULL THEN
				s.certainty := 'likely';
				s.reason := format('%s; but they refer to rows that are not the same (%s)', s.reason, own);
			END IF;
			SELECT string_agg(DISTINCT q.object, ', ') INTO own
				FROM unnest(suggestions) AS q
				WHERE q.step = 2 AND q.relation = s.relation AND q.certainty = 'open'
					AND q.referenced IS DISTINCT FROM '?';
			IF own IS NOT NULL THEN
				s.certainty := 'likely';
				s.reason := format('%s; but it is not known what they refer to (%s)', s.reason, own);
			END IF;
		END IF;
		problem := snowflake_migrate_internal.new_problem(run_, tried, s);
		IF problem IS NOT NULL THEN
			s.certainty := 'open';
			s.reason := format('%s; but %s', s.reason, problem);
			IF s.step = 3 AND problem LIKE 'rows were created before%' THEN
				s.certainty := 'likely';
				s.statement := format('SELECT snowflake_migrate.declare_created(%L, %L, early => ''pack'');',
									  s.relation, s.object);
			END IF;
		END IF;
		RETURN NEXT s;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.judge(bigint, bigint, snowflake_migrate_internal.suggestion[])
	IS 'for snowflake_migrate.suggest()''s own use: what a check would say of suggestions';

/* A new run, planned and looked at, with the keys of the sources in the place of the maps. */
CREATE FUNCTION snowflake_migrate_internal.look(schemas name[], targets name[]) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	run_ CONSTANT bigint := snowflake_migrate_internal.new_run_with_schema();
BEGIN
	IF to_regnamespace('snowflake_merge_' || run_) IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = format('permission denied for database "%s"', current_database()),
			DETAIL = format('Role "%s" cannot create the schema in which it would look at the rows.', current_user),
			HINT = format('GRANT CREATE ON DATABASE %I TO %I;', current_database(), current_user);
	END IF;
	PERFORM snowflake_migrate_internal.write_run(run_, schemas, targets,
		snowflake_migrate_internal.unused_nodes(array_length(schemas, 1)), 'dry run', 1, clock_timestamp());
	PERFORM snowflake_migrate_internal.plan(run_);
	IF NOT (snowflake_migrate_internal.check_schemas(run_)).can_read THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = 'cannot look at the rows of the schemas',
			DETAIL = 'That would run code of others.',
			HINT = 'See what snowflake_migrate.check() says about it.';
	END IF;
	/* Of tables whose columns cannot become the target's, in any of the sources, the check says so. */
	DELETE FROM snowflake_migrate_internal.plan_sources AS s
		WHERE s.run = run_ AND s.no IN (
			SELECT t.no
			FROM snowflake_migrate_internal.plan_tables AS t
				JOIN snowflake_migrate_internal.plan_sources AS o USING (run, no)
				CROSS JOIN LATERAL snowflake_migrate_internal.columns_of(t.relation) AS c
				JOIN pg_attribute AS a ON a.attrelid = o.relation AND a.attname = c.attname
					AND a.attnum > 0 AND NOT a.attisdropped
			WHERE t.run = run_ AND c.attgenerated = '' AND c.attname <> ALL (t.ignored_columns)
				AND snowflake_migrate_internal.cast(a.atttypid, a.atttypmod, c.atttypid, c.atttypmod) IS NULL);
	PERFORM snowflake_migrate_internal.collect_keys(run_);
	RETURN run_;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.look(name[], name[])
	IS 'for snowflake_migrate.suggest()''s own use: a new run that is planned and looked at';

/*
 * All suggestions, in a transaction that is rolled back.  Which columns are questions depends on what is declared of
 * the tables, and what stands in the way on both.
 */
CREATE FUNCTION snowflake_migrate_internal.suggestions(schemas name[], targets name[])
RETURNS SETOF snowflake_migrate_internal.suggestion
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	run CONSTANT bigint := snowflake_migrate_internal.look(schemas, targets);
	tried bigint := run;
	tables snowflake_migrate_internal.suggestion[];
	columns snowflake_migrate_internal.suggestion[];
BEGIN
	tables := ARRAY(SELECT t FROM snowflake_migrate_internal.suggest_tables(run) AS t);
	tables := ARRAY(SELECT t FROM snowflake_migrate_internal.run_suggestions(tables, false) AS t);
	IF EXISTS (SELECT FROM unnest(tables) AS t WHERE t.certainty = 'sure') THEN
		tried := snowflake_migrate_internal.look(schemas, targets);
	END IF;
	PERFORM snowflake_migrate_internal.take_samples(tried);
	columns := ARRAY(
		SELECT r FROM snowflake_migrate_internal.suggest_references(tried) AS r
		UNION ALL
		SELECT c FROM snowflake_migrate_internal.suggest_created(tried) AS c);
	columns := ARRAY(SELECT c FROM snowflake_migrate_internal.run_suggestions(columns, true) AS c);
	tried := snowflake_migrate_internal.look(schemas, targets);
	RETURN QUERY SELECT j.* FROM snowflake_migrate_internal.judge(run, tried, tables || columns) AS j;
	RETURN QUERY SELECT p.* FROM snowflake_migrate_internal.suggest_policies(tried, ARRAY(
		SELECT t.relation FROM unnest(tables) AS t WHERE t.certainty <> 'open')) AS p;
	RETURN QUERY SELECT a.* FROM snowflake_migrate_internal.suggest_adoption(tried) AS a;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.suggestions(name[], name[])
	IS 'for snowflake_migrate.suggest()''s own use: what a merge should be told';

/* A suggestion as it is printed: what is not sure as a comment, each line of it, whatever a name has in it. */
CREATE FUNCTION snowflake_migrate_internal.printed(suggestion snowflake_migrate_internal.suggestion) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE suggestion.certainty WHEN 'sure' THEN suggestion.statement ELSE c.statement END
		|| coalesce((
			SELECT string_agg(E'\n' || snowflake_migrate_internal.commented('or: ' || a.statement), '' ORDER BY a.n)
			FROM unnest(suggestion.alternatives) WITH ORDINALITY AS a (statement, n)), '')
	FROM (SELECT snowflake_migrate_internal.commented(suggestion.statement)) AS c (statement)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.printed(snowflake_migrate_internal.suggestion)
	IS 'for snowflake_migrate.suggest()''s own use: a suggestion as it is printed';

/* Nothing is left of it but the answer: see snowflake_migrate.check(). */
CREATE FUNCTION snowflake_migrate.suggest(
	sources name[],
	targets name[],
	OUT step text,
	OUT certainty text,
	OUT relation text,
	OUT object text,
	OUT reason text,
	OUT statement text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET quote_all_identifiers = off
AS $$
#variable_conflict use_column
DECLARE
	schemas CONSTANT name[] := snowflake_migrate_internal.grouped(sources, targets);
	found_ snowflake_migrate_internal.suggestion[];
	is_over boolean := false;
BEGIN
	PERFORM snowflake_migrate_internal.check_arguments(schemas, targets);
	BEGIN
		found_ := ARRAY(SELECT s FROM snowflake_migrate_internal.suggestions(schemas, targets) AS s);
		is_over := true;
		RAISE EXCEPTION USING ERRCODE = 'SNOWF', MESSAGE = 'the suggestions are rolled back';
	EXCEPTION WHEN SQLSTATE 'SNOWF' THEN
		IF NOT is_over THEN
			RAISE;
		END IF;
	END;
	RETURN QUERY SELECT ('{table,reference,created,policy,adopt}'::text[])[s.step], s.certainty, s.relation::text,
			s.object, s.reason, snowflake_migrate_internal.printed(s)
		FROM unnest(found_) AS s
		ORDER BY s.step, s.relation::text COLLATE "C", s.object COLLATE "C", s.statement COLLATE "C";
END
$$;
COMMENT ON FUNCTION snowflake_migrate.suggest(name[], name[])
	IS 'declarations for a merge of these groups of schemas into the targets, to be read and run';

/* The same with one target, and for each source the schema that would be merged into it. */
CREATE FUNCTION snowflake_migrate.suggest(
	sources name[],
	target name,
	OUT step text,
	OUT certainty text,
	OUT relation text,
	OUT object text,
	OUT reason text,
	OUT statement text) RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT s.* FROM snowflake_migrate.suggest(sources, ARRAY[target]) AS s
$$;
COMMENT ON FUNCTION snowflake_migrate.suggest(name[], name)
	IS 'declarations for a merge of these schemas into the target, to be read and run';
