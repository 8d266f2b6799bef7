/*
 * Clashes as they are before there are maps: by the values that the sources have.
 */

/*
 * The unique constraints of a table, as unique_constraints() has them, in which rows that clash stop the merge, and of
 * which the values tell whether any do: new ids change nothing in them.
 */
CREATE FUNCTION snowflake_migrate_internal.unsettled_constraints(
	run_ bigint,
	no_ int,
	OUT label name,
	OUT definition jsonb) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT u.label, to_jsonb(u)
	FROM snowflake_migrate_internal.plan_tables AS t
		CROSS JOIN LATERAL snowflake_migrate_internal.unique_constraints(run_, no_) AS u
	WHERE t.run = run_ AND t.no = no_ AND t.mode = 'copy' AND u.policy = 'error' AND NOT u.is_key
		AND NOT EXISTS (
			SELECT FROM pg_class AS o
				JOIN pg_index AS n ON n.indexrelid = o.oid AND n.indrelid = t.relation
				JOIN pg_attribute AS a ON a.attrelid = n.indrelid AND a.attnum = ANY (n.indkey)
				JOIN snowflake_migrate_internal.plan_references AS f
					ON f.run = run_ AND f.no = no_ AND f.name = a.attname
			WHERE o.relname = u.label)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.unsettled_constraints(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: the unique constraints without a policy';

/*
 * How many rows of the sources a unique constraint, a row of unique_constraints(), would not let beside those of the
 * target and of the sources before; and one of them.
 */
CREATE FUNCTION snowflake_migrate_internal.clashing(
	run_ bigint,
	no_ int,
	constraint_ jsonb,
	OUT clashes bigint,
	OUT example text)
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	names CONSTANT jsonb := snowflake_migrate_internal.names(run_, no_) || constraint_ || jsonb_build_object(
		'indexed', coalesce(constraint_ ->> 'predicate', 'true'),
		'given', (SELECT string_agg(format('w."merge e%s"', e.n), ', ')
				  FROM jsonb_array_elements_text(constraint_ -> 'expressions') WITH ORDINALITY AS e (expression, n)),
		'values', (SELECT string_agg(format('%s AS "merge e%s"', e.expression, e.n), ', ')
				   FROM jsonb_array_elements_text(constraint_ -> 'expressions') WITH ORDINALITY AS e (expression, n)),
		'same', (SELECT string_agg(snowflake_migrate_internal.compared(o.operator::oid,
								format('w."merge e%s"', o.n), format('t."merge e%s"', o.n)), ' AND ')
				 FROM jsonb_array_elements_text(constraint_ -> 'operators') WITH ORDINALITY AS o (operator, n)));
	taken text := snowflake_migrate_internal.fill(
		'SELECT {values} FROM {target} AS {"name"} WHERE {indexed}', names);
	source record;
	n bigint;
	one text;
BEGIN
	clashes := 0;
	FOR source IN
		SELECT s.source_relation AS relation FROM snowflake_migrate_internal.source_tables(run_) AS s
		WHERE s.no = no_ AND snowflake_migrate_internal.can_read(s.source_relation)
			AND snowflake_migrate_internal.can_read(s.relation)
			/* A column that is called like its table would be the whole row where it is not there: its owner's code. */
			AND (snowflake_migrate_internal.has_columns(s.source_relation, ARRAY[names ->> 'name']::name[])
				 OR NOT snowflake_migrate_internal.has_columns(s.relation, ARRAY[names ->> 'name']::name[]))
		ORDER BY s.source_no
	LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT count(*), min(left(concat_ws(', ', {given}), 100))
			FROM (SELECT {values} FROM {source_table} AS {"name"} WHERE {indexed}) AS w
			WHERE EXISTS (SELECT FROM ({taken}) AS t WHERE {same})
		$query$, names || jsonb_build_object(
			'taken', taken, 'source_table', snowflake_migrate_internal.only(source.relation))) INTO n, one;
		clashes := clashes + n;
		example := coalesce(example, one);
		taken := taken || ' UNION ALL ' || snowflake_migrate_internal.fill(
			'SELECT {values} FROM {source_table} AS {"name"} WHERE {indexed}',
			names || jsonb_build_object('source_table', snowflake_migrate_internal.only(source.relation)));
	END LOOP;
/* A source lacks a column, or has it in another type. */
EXCEPTION WHEN syntax_error_or_access_rule_violation OR data_exception THEN
	clashes := 0;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.clashing(bigint, int, jsonb)
	IS 'for snowflake_migrate.merge()''s own use: how many rows clash in a unique constraint';
