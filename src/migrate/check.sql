/*
 * What would stop a merge or surprise those who start it, found before it begins: from the catalogs, and from the
 * rows where the catalogs can't say.  An error is what the merge would fail or go wrong with, and
 * snowflake_migrate.merge() refuses to go on; a warning is what may surprise; the rest is good to know.
 *
 * check_schemas() calls a function for each subject, which is in the file check_SUBJECT.sql.  Functions that return a
 * boolean say whether the keys can be mapped all the same.  They read the rows of a table only where the caller can
 * see all of them.  What the rows become is looked at later, when the maps are made (map.sql); and what columns without
 * a foreign key may refer to, after that (check_undeclared.sql).
 */

/* The schemas of sources, as groups: where there is one target, each may be given as its only schema. */
CREATE FUNCTION snowflake_migrate_internal.grouped(sources name[], targets name[]) RETURNS name[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN cardinality(targets) = 1 AND array_ndims(sources) = 1 AND array_lower(sources, 1) = 1
			THEN (SELECT array_agg(ARRAY[s.name] ORDER BY s.n) FROM unnest(sources) WITH ORDINALITY AS s (name, n))
			ELSE sources END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.grouped(name[], name[])
	IS 'for snowflake_migrate.merge()''s own use: the schemas of sources, as groups';

/* Raises an error where these can't be the schemas of a merge: of each source, one for each target. */
CREATE FUNCTION snowflake_migrate_internal.check_arguments(schemas name[], targets name[]) RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	schema name;
	/* An array without a name is taken for the name of one target. */
	for_several CONSTANT text := (SELECT format('For several targets, write targets => %L.', targets[1])
								  WHERE targets[1] LIKE '{%}');
BEGIN
	IF schemas IS NULL OR targets IS NULL OR targets = ARRAY[NULL]::name[] THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'sources and targets must not be null';
	ELSIF cardinality(targets) = 0 THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'targets must not be empty',
			HINT = 'Give the schemas that rows are to be merged into.';
	ELSIF cardinality(schemas) = 0 THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'sources must not be empty',
			HINT = 'Give the schemas whose rows are to be merged into the target.';
	ELSIF array_ndims(targets) <> 1 OR array_lower(targets, 1) <> 1 THEN
		RAISE EXCEPTION USING ERRCODE = 'array_subscript_error',
			MESSAGE = 'targets must be a one-dimensional array that begins with 1';
	ELSIF array_ndims(schemas) <> 2 OR array_lower(schemas, 1) <> 1 OR array_lower(schemas, 2) <> 1 THEN
		RAISE EXCEPTION USING ERRCODE = 'array_subscript_error',
			MESSAGE = format('sources must be a %s-dimensional array that begins with 1',
							 CASE cardinality(targets) WHEN 1 THEN 'one' ELSE 'two' END),
			HINT = 'Give the schema of each source, or of each source an array with one for each of several targets.';
	ELSIF array_length(schemas, 2) <> cardinality(targets) THEN
		RAISE EXCEPTION USING ERRCODE = 'array_subscript_error',
			MESSAGE = 'a source must have a schema for each of the targets',
			DETAIL = format('Each source has %s schemas; the number of targets is %s.',
							array_length(schemas, 2), cardinality(targets)),
			HINT = coalesce(for_several, 'Give them in the order of the targets.');
	ELSIF array_position(targets, NULL) IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'targets must not contain nulls';
	ELSIF EXISTS (SELECT FROM unnest(schemas) AS s (name) WHERE s.name IS NULL) THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'sources must not contain nulls';
	END IF;
	SELECT s.name INTO schema FROM unnest(schemas) AS s (name)
		GROUP BY s.name HAVING count(*) > 1 ORDER BY s.name LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('source "%s" is given twice', schema);
	END IF;
	SELECT t.name INTO schema FROM unnest(targets) AS t (name)
		GROUP BY t.name HAVING count(*) > 1 ORDER BY t.name LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('target "%s" is given twice', schema);
	END IF;
	SELECT t.name INTO schema FROM unnest(targets) AS t (name)
		WHERE t.name IN (SELECT s.name FROM unnest(schemas) AS s (name)) ORDER BY t.name LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('source "%s" is the target', schema);
	END IF;
	SELECT s.name INTO schema
		FROM (
			SELECT u.name, u.n FROM unnest(schemas) WITH ORDINALITY AS u (name, n)
			UNION ALL
			SELECT u.name, cardinality(schemas) + u.n FROM unnest(targets) WITH ORDINALITY AS u (name, n)) AS s
		WHERE NOT EXISTS (SELECT FROM pg_namespace AS n WHERE n.nspname = s.name) ORDER BY s.n LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_schema_name',
			MESSAGE = format('schema "%s" does not exist', schema),
			HINT = coalesce(for_several,
				'Sources are schemas of this database; use IMPORT FOREIGN SCHEMA for those of another.');
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_arguments(name[], name[])
	IS 'for snowflake_migrate.merge()''s own use: refuses what can''t be its schemas';

/*
 * Raises an error where a publication has all tables of the database.  It would have those that a run makes for itself,
 * too: they have no replica identity, and its subscribers, who do not have them, would stop.
 */
CREATE FUNCTION snowflake_migrate_internal.refuse_publications() RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	names CONSTANT text := (SELECT string_agg(format('"%s"', p.pubname), ', ' ORDER BY p.pubname)
							FROM pg_publication AS p WHERE p.puballtables);
BEGIN
	IF names IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = 'cannot merge while a publication has all tables: ' || names,
			DETAIL = 'It would publish the tables that a merge makes for itself, which its subscribers do not have.',
			HINT = 'Drop it, and create one FOR TABLES IN SCHEMA, of the schemas that are to be published.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_publications()
	IS 'for snowflake_migrate.merge()''s own use: an error where a publication has all tables';

/*
 * Whether a table has rows, or may have some that the caller can't see.  It may have come after check_code() had
 * looked: so it is looked at here.
 */
CREATE FUNCTION snowflake_migrate_internal.may_have_rows(relation regclass) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	has_rows boolean := true;
BEGIN
	PERFORM snowflake_internal.refuse_dangerous_code(ARRAY[relation::oid], '{}');
	IF snowflake_migrate_internal.can_read(relation) THEN
		EXECUTE format('SELECT EXISTS (SELECT FROM %s)', snowflake_migrate_internal.only(relation)) INTO has_rows;
	END IF;
	RETURN has_rows;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.may_have_rows(regclass)
	IS 'for snowflake_migrate.merge()''s own use: whether a table may have rows';

/* Whether the caller may read and set a sequence; and the owner of the table that has it in a default, as well. */
CREATE FUNCTION snowflake_migrate_internal.can_set(sequence regclass, relation regclass) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT has_sequence_privilege(sequence, 'UPDATE') AND has_sequence_privilege(sequence, 'SELECT, USAGE')
		AND has_sequence_privilege(c.relowner, sequence, 'UPDATE')
	FROM pg_class AS c
	WHERE c.oid = relation
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.can_set(regclass, regclass)
	IS 'for snowflake_migrate.merge()''s own use: whether the caller may set a sequence';

/*
 * Adds to the report that the caller lacks a privilege.  grant_on: on what, as GRANT names it.  purpose: what fails
 * without it.
 */
CREATE FUNCTION snowflake_migrate_internal.report_missing_right(
	run bigint,
	severity text,
	source name,
	relation text,
	object text,
	privilege text,
	grant_on text,
	purpose text DEFAULT NULL) RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_migrate_internal.add_to_report(run, severity, source, relation, object,
		format('role %I has no right to %s', current_user, privilege) || coalesce(': ' || purpose, ''),
		advice => format('GRANT %s ON %s TO %I;', privilege, grant_on, current_user))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.report_missing_right(bigint, text, name, text, text, text, text, text)
	IS 'for snowflake_migrate.merge()''s own use: adds a right that the caller lacks to the report';

/* Adds to the report that the caller may not see all rows of a table. */
CREATE FUNCTION snowflake_migrate_internal.report_hidden_rows(run bigint, severity text, source name, relation text)
RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_migrate_internal.add_to_report(run, severity, source, relation, NULL,
		'row security may hide rows from the current user',
		advice => 'Merge as the owner of the table, or as a role with BYPASSRLS.')
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.report_hidden_rows(bigint, text, name, text)
	IS 'for snowflake_migrate.merge()''s own use: adds rows that may be hidden to the report';

/* A line of the report, for the detail of an error. */
CREATE FUNCTION snowflake_migrate_internal.problem_text(line snowflake_migrate.report) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT concat_ws(': ', concat_ws(', ', 'source ' || line.source, 'table ' || line.relation, line.object),
					 concat_ws(' ', line.problem, '(' || line.count || ')', 'for example ' || line.example))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.problem_text(snowflake_migrate.report)
	IS 'for snowflake_migrate.merge()''s own use: a line of the report as a text';

/*
 * All that can be found before the keys are mapped: whether they can be (can_map), and whether rows may be read at all
 * (can_read), which would run code.
 */
CREATE FUNCTION snowflake_migrate_internal.check_schemas(run_ bigint, OUT can_read boolean, OUT can_map boolean)
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	rights boolean;
	tables boolean;
	columns boolean;
	keys boolean;
	conditions boolean;
BEGIN
	/* Before a row is read. */
	can_read := snowflake_migrate_internal.check_code(run_);
	IF NOT can_read THEN
		can_map := false;
		RETURN;
	END IF;
	rights := snowflake_migrate_internal.check_rights(run_);
	tables := snowflake_migrate_internal.check_tables(run_);
	columns := snowflake_migrate_internal.check_columns(run_);
	keys := snowflake_migrate_internal.check_keys(run_);
	conditions := snowflake_migrate_internal.check_references(run_);
	PERFORM snowflake_migrate_internal.check_effects(run_);
	can_map := rights AND tables AND columns AND keys AND conditions;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_schemas(bigint)
	IS 'for snowflake_migrate.merge()''s own use: adds what it finds to the report of a run';

/*
 * Node numbers for the new ids of a check, or fewer where there are not enough: from the top, as servers are numbered
 * from the bottom, so that ids do not clash by their numbers alone.
 */
CREATE FUNCTION snowflake_migrate_internal.unused_nodes(wanted int) RETURNS bigint[]
LANGUAGE sql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT ARRAY(
		SELECT g.node
		FROM snowflake_migrate_internal.layout() AS l,
			generate_series(l.max_node,
							greatest(0, l.max_node - wanted - (SELECT count(*) FROM snowflake_migrate.nodes)
												- (SELECT count(*) FROM snowflake_migrate.backfills)),
							-1) AS g (node)
		WHERE NOT EXISTS (SELECT FROM snowflake_migrate.nodes AS n WHERE n.node = g.node)
			AND NOT EXISTS (SELECT FROM snowflake_migrate.backfills AS b WHERE b.node = g.node)
			AND g.node IS DISTINCT FROM snowflake_migrate_internal.own_node()
		LIMIT wanted)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.unused_nodes(int)
	IS 'for snowflake_migrate.check()''s own use: node numbers for new ids';

/* What check_schemas() and the maps find, the worst first. */
CREATE FUNCTION snowflake_migrate_internal.check_run(run_ bigint) RETURNS SETOF snowflake_migrate.report
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	checked CONSTANT record := snowflake_migrate_internal.check_schemas(run_);
	can_map boolean := checked.can_map;
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, NULL, NULL,
			'not enough unused node numbers to give one to each source', cardinality(r.nodes),
			advice => 'Choose a layout with more node numbers.')
		FROM snowflake_migrate.runs AS r
		WHERE r.run = run_ AND cardinality(r.nodes) < cardinality(r.sources);
	can_map := can_map AND NOT FOUND;
	IF can_map THEN
		IF snowflake_migrate_internal.make_maps(run_) THEN
			PERFORM snowflake_migrate_internal.check_target(run_);
			PERFORM snowflake_migrate_internal.take_samples(run_);
		END IF;
	ELSE
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', NULL, NULL, NULL,
			'clashes of rows and references to missing rows were not looked for, as the errors stand in the way',
			advice => 'Correct the errors, and check again.');
		PERFORM snowflake_migrate_internal.check_conditions(run_, 'without maps') WHERE checked.can_read;
	END IF;
	IF checked.can_read THEN
		PERFORM snowflake_migrate_internal.check_undeclared(run_);
		PERFORM snowflake_migrate_internal.check_clashes(run_) WHERE NOT can_map;
	END IF;
	RETURN QUERY SELECT f.*
		FROM snowflake_migrate.report AS f
		WHERE f.run = run_
		ORDER BY array_position('{error,warning,info}', f.severity), f.relation COLLATE "C" NULLS FIRST,
			f.source COLLATE "C" NULLS FIRST, f.object COLLATE "C" NULLS FIRST, f.problem COLLATE "C";
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_run(bigint)
	IS 'for snowflake_migrate.check()''s own use: the report of a run that is rolled back';

/*
 * Nothing is left of it: the plan and the maps are made as for a merge, in a block that ends with an error of its
 * own, SNOWF, and so is undone.  What it found is in a variable, which outlives it.
 */
CREATE FUNCTION snowflake_migrate.check(
	sources name[],
	targets name[],
	OUT severity text,
	OUT source name,
	OUT relation text,
	OUT object text,
	OUT problem text,
	OUT count bigint,
	OUT example text,
	OUT advice text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off SET quote_all_identifiers = off
AS $$
#variable_conflict use_column
DECLARE
	schemas CONSTANT name[] := snowflake_migrate_internal.grouped(sources, targets);
	run_ bigint;
	found_ snowflake_migrate.report[];
	is_over boolean := false;
BEGIN
	PERFORM snowflake_migrate_internal.check_arguments(schemas, targets);
	PERFORM snowflake_migrate_internal.refuse_publications();
	BEGIN
		run_ := snowflake_migrate_internal.new_run_with_schema();
		PERFORM snowflake_migrate_internal.write_run(run_, schemas, targets,
			snowflake_migrate_internal.unused_nodes(array_length(schemas, 1)), 'dry run', 1, clock_timestamp());
		PERFORM snowflake_migrate_internal.plan(run_);
		found_ := ARRAY(SELECT f FROM snowflake_migrate_internal.check_run(run_) AS f);
		is_over := true;
		RAISE EXCEPTION USING ERRCODE = 'SNOWF', MESSAGE = 'the check is rolled back';
	EXCEPTION WHEN SQLSTATE 'SNOWF' THEN
		/* A source's code, or its server, can raise the same. */
		IF NOT is_over THEN
			RAISE;
		END IF;
	END;
	RETURN QUERY SELECT f.severity, f.source, f.relation, f.object, f.problem, f.count, f.example, f.advice
		FROM unnest(found_) AS f;
END
$$;
COMMENT ON FUNCTION snowflake_migrate.check(name[], name[])
	IS 'what would stop a merge of these groups of schemas into the targets, or surprise';

/* The same with one target, and for each source the schema that would be merged into it. */
CREATE FUNCTION snowflake_migrate.check(
	sources name[],
	target name,
	OUT severity text,
	OUT source name,
	OUT relation text,
	OUT object text,
	OUT problem text,
	OUT count bigint,
	OUT example text,
	OUT advice text) RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT c.* FROM snowflake_migrate.check(sources, ARRAY[target]) AS c
$$;
COMMENT ON FUNCTION snowflake_migrate.check(name[], name)
	IS 'what would stop a merge of these schemas into the target, or surprise';
