/*
 * Sequences of the target whose values a merge brings: they go on after the greatest.
 */

/*
 * The sequences of columns that are not renumbered, those that a column owns and those that its default asks, with what
 * they can give.
 */
CREATE FUNCTION snowflake_migrate_internal.merged_sequences(
	run_ bigint,
	OUT relation regclass,
	OUT column_name name,
	OUT sequence regclass,
	OUT ascending boolean,
	OUT least_value bigint,
	OUT greatest_value bigint,
	OUT of_numbers boolean) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT DISTINCT t.relation, a.attname, q.seqrelid::regclass, q.seqincrement > 0, q.seqmin, q.seqmax,
		b.base IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype, 'numeric'::regtype, 'real'::regtype,
				   'double precision'::regtype)
	FROM snowflake_migrate_internal.merged_tables(run_) AS t
		JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attnum > 0 AND NOT a.attisdropped
		CROSS JOIN LATERAL snowflake_migrate_internal.base_type(a.atttypid, a.atttypmod) AS b
		LEFT JOIN pg_attrdef AS d ON d.adrelid = t.relation AND d.adnum = a.attnum
		JOIN pg_depend AS u ON (u.classid = 'pg_class'::regclass AND u.refclassid = 'pg_class'::regclass
								AND u.refobjid = t.relation AND u.refobjsubid = a.attnum AND u.deptype IN ('a', 'i'))
			OR (u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid AND u.refclassid = 'pg_class'::regclass)
		JOIN pg_sequence AS q ON q.seqrelid IN (u.objid, u.refobjid)
	WHERE NOT (t.kind = 'id' AND a.attname = t.key[1])
	ORDER BY 1, 2
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.merged_sequences(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the sequences of columns that are not renumbered';

/*
 * A query for the values of a column that is not renumbered: the target's, and where that is in use the sources', which
 * are still to come.
 */
CREATE FUNCTION snowflake_migrate_internal.sequence_values(
	run_ bigint,
	relation regclass,
	column_name name) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT format('SELECT %I::numeric FROM %s', column_name, snowflake_migrate_internal.only(sequence_values.relation))
		|| coalesce(string_agg(format(' UNION ALL SELECT %I::numeric FROM %s', column_name,
									  snowflake_migrate_internal.only(s.relation)), '' ORDER BY s.source), '')
	FROM snowflake_migrate_internal.plan_tables AS t
		JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
		JOIN pg_attribute AS a ON a.attrelid = s.relation AND a.attname = column_name AND NOT a.attisdropped
	WHERE t.run = run_ AND t.relation = sequence_values.relation AND snowflake_migrate_internal.is_in_use(run_)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.sequence_values(bigint, regclass, name)
	IS 'for snowflake_migrate.merge()''s own use: the values that a sequence must be past';

/*
 * Sets the sequences of columns that are not renumbered past the merged values; those of renumbered ones stay as they
 * are.  A dry run only reports it, as it could not be rolled back.
 */
CREATE FUNCTION snowflake_migrate_internal.set_sequences(run_ bigint, dry_run boolean) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	in_use CONSTANT boolean := snowflake_migrate_internal.is_in_use(run_);
	seq record;
	/* One before the first, or the distance of two, may be no bigint. */
	last numeric;
	reached bigint;
	increment bigint;
BEGIN
	FOR seq IN SELECT q.* FROM snowflake_migrate_internal.merged_sequences(run_) AS q WHERE q.of_numbers LOOP
		/* What it can't give never clashes with what it gives. */
		EXECUTE format('SELECT %s FROM (%s) AS x (n) WHERE x.n BETWEEN %s AND %s',
					   CASE WHEN seq.ascending THEN 'ceil(max(x.n))' ELSE 'floor(min(x.n))' END,
					   snowflake_migrate_internal.sequence_values(run_, seq.relation, seq.column_name),
					   seq.least_value, seq.greatest_value) INTO reached;
		CONTINUE WHEN reached IS NULL;
		IF NOT snowflake_migrate_internal.can_set(seq.sequence, seq.relation) THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, seq.relation::text, seq.column_name,
				format('permission denied for sequence %s: it is not set past the merged values', seq.sequence),
				NULL, reached::text,
				format('Before the table is written to: SELECT setval(%L, %s);', seq.sequence, reached));
			CONTINUE;
		END IF;
		SELECT s.seqincrement, s.seqstart::numeric - s.seqincrement INTO STRICT increment, last
			FROM pg_sequence AS s WHERE s.seqrelid = seq.sequence;
		/* One that was never asked gives its start. */
		last := coalesce(pg_sequence_last_value(seq.sequence), last);
		IF (CASE WHEN seq.ascending THEN reached > last ELSE reached < last END) THEN
			IF in_use AND abs(reached - last) < 10000 THEN
				/* Users may have drawn from it since: never back, nor over its end. */
				WHILE CASE WHEN seq.ascending THEN last < reached AND last <= seq.greatest_value - increment
						ELSE last > reached AND last >= seq.least_value - increment END LOOP
					last := nextval(seq.sequence);
				END LOOP;
			ELSIF NOT dry_run THEN
				PERFORM setval(seq.sequence, reached);
			END IF;
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', NULL, seq.relation::text, seq.column_name,
				format('sequence %s is set past the merged values', seq.sequence), NULL, reached::text, NULL);
		END IF;
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, seq.relation::text, seq.column_name,
				format('sequence %s is used up by the merged values', seq.sequence), NULL, reached::text,
				format('ALTER SEQUENCE %s MAXVALUE or MINVALUE, or give these rows other values.', seq.sequence))
			FROM pg_sequence AS s
			WHERE s.seqrelid = seq.sequence AND NOT s.seqcycle
				AND CASE WHEN seq.ascending THEN reached > s.seqmax - s.seqincrement
					ELSE reached < s.seqmin - s.seqincrement END;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.set_sequences(bigint, boolean)
	IS 'for snowflake_migrate.merge()''s own use: sets sequences past the merged values';
