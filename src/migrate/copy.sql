/*
 * The copying: step() copies one batch of one table of one source, or all tables of a cycle, and keeps the position.
 *
 * Triggers, and with them the checks of foreign keys, do not fire where the right is there to say so.  A batch's
 * references are then checked as a set, by the query that copies it: it locks the rows that they lead to, and counts.
 */

/*
 * The names in a query that checks the foreign keys of a table for some of its rows; rows is the name of a query in
 * WITH, with their columns and tableoid.  foreign_key_checks are further queries for WITH, which lock what the rows
 * refer to; missing is how much of it is not there, for each of the foreign keys in labels.  With null for the table,
 * there are none.
 */
CREATE FUNCTION snowflake_migrate_internal.foreign_key_checks(relation regclass, rows text) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT jsonb_build_object(
		'rows', rows,
		'foreign_key_checks', coalesce(string_agg(snowflake_migrate_internal.fill($query$,
				d{n} AS (
					SELECT DISTINCT {columns} FROM {rows} AS t WHERE {given}
				),
				l{n} AS (
					SELECT 0 FROM {parent} AS p JOIN d{n} AS t ON {same} {locked}
				)$query$, k.names), '' ORDER BY k.n), ''),
		'missing', format('ARRAY[%s]::bigint[]', string_agg(snowflake_migrate_internal.fill(
				'(SELECT count(*) FROM d{n}) - (SELECT count(*) FROM l{n})', k.names), ', ' ORDER BY k.n)),
		'labels', coalesce(array_agg(k.conname ORDER BY k.n), '{}')::text)
	FROM (
		SELECT i.n, i.conname, snowflake_migrate_internal.foreign_key_names(i.oid)
				|| jsonb_build_object('n', i.n, 'rows', rows) AS names
		FROM (
			SELECT f.oid, f.conname, row_number() OVER (ORDER BY f.oid) AS n
			FROM snowflake_migrate_internal.with_partitions(relation) AS p (oid)
				JOIN pg_constraint AS f ON f.conrelid = p.oid AND f.contype = 'f' AND f.conparentid = 0
		) AS i
	) AS k
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.foreign_key_checks(regclass, text)
	IS 'for snowflake_migrate.merge()''s own use: the names in a query that checks foreign keys';

/* What those checks need of rows that are written, as a RETURNING clause. */
CREATE FUNCTION snowflake_migrate_internal.returning(relation regclass) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT 'RETURNING ' || coalesce(string_agg(DISTINCT format('t.%I', a.attname), ', ') || ', ', '') || 't.tableoid'
	FROM snowflake_migrate_internal.with_partitions(relation) AS p (oid)
		JOIN pg_constraint AS f ON f.conrelid = p.oid AND f.contype = 'f'
		JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = ANY (f.conkey)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.returning(regclass)
	IS 'for snowflake_migrate.merge()''s own use: the columns that foreign keys need';

/* Raises an error where rows that these refer to are not there. */
CREATE FUNCTION snowflake_migrate_internal.refuse_missing(
	relation regclass,
	missing bigint[],
	labels name[]) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	n int;
BEGIN
	SELECT i INTO n FROM generate_subscripts(missing, 1) AS i WHERE missing[i] > 0 ORDER BY i LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'foreign_key_violation',
			MESSAGE = format('rows of table %s violate the foreign key constraint "%s"', relation, labels[n]),
			DETAIL = format('%s rows that they refer to are not in the target.', missing[n]),
			HINT = 'Look whether the source or the target changed since the merge began.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_missing(regclass, bigint[], name[])
	IS 'for snowflake_migrate.merge()''s own use: an error where rows are missing';

/*
 * The transactions that copied rows of a run, or of one table of one source, as an array of xid; and those that took
 * some back, whose triggers may have changed others.
 */
CREATE FUNCTION snowflake_migrate_internal.run_transactions(
	run_ bigint,
	no_ int DEFAULT NULL,
	source_ int DEFAULT NULL,
	and_back boolean DEFAULT false) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT ARRAY(
		SELECT DISTINCT x::xid::text
		FROM snowflake_migrate_internal.plan_sources AS s,
			unnest(s.copied_by || CASE WHEN and_back THEN s.taken_back_by END) AS x
		WHERE s.run = run_ AND (no_ IS NULL OR s.no = no_) AND (source_ IS NULL OR s.source = source_))::text
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.run_transactions(bigint, int, int, boolean)
	IS 'for snowflake_migrate.merge()''s own use: the transactions that copied rows';

/*
 * Whether a run has a table of this name.  What cannot be read, or may not be what that merge made, is not looked at;
 * nor what a role has made whose record the current one does not use: its expressions, and types, would run with this
 * one's rights.
 */
CREATE FUNCTION snowflake_migrate_internal.has_run_table(run bigint, name text) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT EXISTS (
		SELECT FROM pg_namespace AS s
			JOIN pg_roles AS u ON u.oid = s.nspowner AND (u.rolsuper OR u.rolname = current_user)
			JOIN pg_class AS c ON c.relnamespace = s.oid AND c.relkind = 'r'
			JOIN snowflake_migrate.runs AS o ON o.run = has_run_table.run
				AND snowflake_migrate_internal.is_trusted_record(o.merged_by, o.merged_by_id)
		WHERE s.nspname = 'snowflake_merge_' || has_run_table.run AND c.relname = name
			AND has_schema_privilege(s.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.has_run_table(bigint, text)
	IS 'for snowflake_migrate.merge()''s own use: whether a run has a table that can be read';

/* The other runs that have a table of a run, with the same key, and which of theirs it is. */
CREATE FUNCTION snowflake_migrate_internal.other_runs(
	run_ bigint,
	no_ int,
	OUT run bigint,
	OUT no int) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT o.run, o.no
	FROM snowflake_migrate_internal.plan_tables AS t
		JOIN snowflake_migrate_internal.plan_tables AS o ON o.relation = t.relation AND o.key = t.key AND o.run <> t.run
	WHERE t.run = run_ AND t.no = no_ AND t.kind <> 'none'
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.other_runs(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: the other runs that have a table of a run';

/*
 * A condition on rows t of one table that a run brought: users had not changed them when their ranks were numbered anew
 * (in_use.sql).
 */
CREATE FUNCTION snowflake_migrate_internal.not_edited(run_ bigint, no_ int) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT CASE WHEN snowflake_migrate_internal.has_run_table(run_, 'edited_' || no_)
		THEN snowflake_migrate_internal.fill('NOT EXISTS (SELECT FROM {edited} AS e WHERE ({e.n#}) = ({t.@}))',
											 snowflake_migrate_internal.names(run_, no_))
		ELSE 'true' END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.not_edited(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: whether users had changed rows before they got their ranks';

/*
 * A condition on rows t of one table that a run brought or changed: it wrote them last, or a later merge, which is
 * taken back, had changed them, and gave them back as they were.
 */
CREATE FUNCTION snowflake_migrate_internal.as_left(run_ bigint, no_ int) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT snowflake_migrate_internal.fill('({not_edited} AND (t.xmin = ANY ({''xids''}::xid[])', jsonb_build_object(
			'not_edited', snowflake_migrate_internal.not_edited(run_, no_),
			'xids', snowflake_migrate_internal.run_transactions(run_, and_back => true)))
		|| coalesce(string_agg(snowflake_migrate_internal.fill($query$
				OR t.xmin = ANY ({'xids'}::xid[])
					AND ({t.@}) IN (SELECT {u.n#} FROM {unchanged} AS u WHERE u.run = {of_run})
			$query$, snowflake_migrate_internal.names(l.run, l.no) || jsonb_build_object('of_run', run_,
				'xids', (SELECT array_agg(x::xid)::text
						 FROM snowflake_migrate_internal.plan_sources AS s, unnest(s.taken_back_by) AS x
						 WHERE s.run = l.run AND s.no = l.no))), ''), '') || '))'
	FROM snowflake_migrate_internal.other_runs(run_, no_) AS l
	WHERE snowflake_migrate_internal.has_run_table(l.run, 'unchanged_' || l.no)
		AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s
					WHERE s.run = l.run AND s.no = l.no AND s.taken_back_by <> '{}')
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.as_left(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: whether rows are as a run has left them';

/* The earlier merges that may be taken back and have a table of a run, and which of theirs it is. */
CREATE FUNCTION snowflake_migrate_internal.earlier_runs(
	run_ bigint,
	no_ int,
	OUT run bigint,
	OUT no int) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT e.run, e.no
	FROM snowflake_migrate_internal.other_runs(run_, no_) AS e
		JOIN snowflake_migrate.runs AS r USING (run)
	WHERE snowflake_migrate_internal.can_be_taken_back(r.state)
		AND snowflake_migrate_internal.has_run_table(e.run, 'map_' || e.no)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.earlier_runs(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: the earlier merges into a table';

/*
 * Keeps which of the rows that a run is about to change are as an earlier merge has left them, so that this one can
 * still be taken back when the run has been.  rows: a query for their keys, n1 ...
 */
CREATE FUNCTION snowflake_migrate_internal.keep_unchanged(run_ bigint, no_ int, rows text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	earlier record;
	names CONSTANT jsonb := snowflake_migrate_internal.names(run_, no_) || jsonb_build_object('rows', rows);
BEGIN
	IF to_regclass(names ->> 'unchanged') IS NULL THEN
		RETURN;
	END IF;
	FOR earlier IN SELECT e.* FROM snowflake_migrate_internal.earlier_runs(run_, no_) AS e LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			INSERT INTO {unchanged}
			SELECT {earlier}, {r.n#}
			FROM ({rows}) AS r JOIN {target} AS t ON ({t.@}) = ({r.n#})
			WHERE {as_left}
			FOR UPDATE OF t
		$query$, names || jsonb_build_object('earlier', earlier.run,
			'as_left', snowflake_migrate_internal.as_left(earlier.run, earlier.no)));
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.keep_unchanged(bigint, int, text)
	IS 'for snowflake_migrate.merge()''s own use: keeps which rows are as an earlier merge has left them';

/*
 * Forgets it of rows that somebody has written since the run changed them, before it gives back what they had: the rest
 * of what was written stays.  rows: as for keep_unchanged().
 */
CREATE FUNCTION snowflake_migrate_internal.forget_unchanged(run_ bigint, no_ int, rows text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
DECLARE
	names CONSTANT jsonb := snowflake_migrate_internal.names(run_, no_) || jsonb_build_object('rows', rows);
BEGIN
	IF to_regclass(names ->> 'unchanged') IS NOT NULL THEN
		EXECUTE snowflake_migrate_internal.fill($query$
			WITH locked AS MATERIALIZED (
				SELECT {r.n#}, {as_left} AS as_left
				FROM ({rows}) AS r JOIN {target} AS t ON ({t.@}) = ({r.n#})
				FOR UPDATE OF t
			)
			DELETE FROM {unchanged} AS u USING locked AS l WHERE ({u.n#}) = ({l.n#}) AND NOT l.as_left
		$query$, names || jsonb_build_object('as_left', snowflake_migrate_internal.as_left(run_, no_)));
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.forget_unchanged(bigint, int, text)
	IS 'for snowflake_migrate.rollback(): forgets that rows are as an earlier merge has left them';

/*
 * The names in queries that give the target's rows their new ranks, or (back) the former ones.  As ranks are unique,
 * they are first put aside: null where the column may be, or else values behind all that a row has, or before them.
 */
CREATE FUNCTION snowflake_migrate_internal.rank_names(
	run_ bigint,
	no_ int,
	back boolean,
	ranks text DEFAULT NULL) RETURNS jsonb
LANGUAGE plpgsql STABLE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	names jsonb := snowflake_migrate_internal.names(run_, no_)
		|| CASE WHEN ranks IS NULL THEN '{}' ELSE jsonb_build_object('rank', ranks) END
		|| CASE WHEN back THEN '{"from": "new", "to": "old"}' ELSE '{"from": "old", "to": "new"}' END::jsonb;
	may_be_null boolean;
	last numeric;
	beside record;
BEGIN
	names := names || jsonb_build_object('placed', snowflake_migrate_internal.fill(
		'(SELECT r.*, row_number() OVER (ORDER BY {r.n#}) AS place FROM {rank} AS r)', names));
	SELECT names || jsonb_build_object('changed', c.name),
			NOT a.attnotnull AND NOT back
				AND NOT EXISTS (SELECT FROM pg_index AS i
								WHERE i.indrelid = t.relation AND i.indnullsnotdistinct AND a.attnum = ANY (i.indkey))
				AND NOT EXISTS (SELECT FROM pg_constraint AS k
								WHERE k.conrelid = t.relation AND k.contype = 'c' AND a.attnum = ANY (k.conkey)),
			CASE a.atttypid WHEN 'smallint'::regtype THEN 32767 WHEN 'integer'::regtype THEN 2147483647
				WHEN 'bigint'::regtype THEN 9223372036854775807 ELSE numeric 'infinity' END
		INTO STRICT names, may_be_null, last
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN snowflake_migrate_internal.plan_columns AS c USING (run, no)
			JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attname = c.name
		WHERE t.run = run_ AND t.no = no_ AND c.changed_by = 'rerank';
	IF may_be_null THEN
		RETURN names || jsonb_build_object('aside', 'NULL',
			'is_aside', snowflake_migrate_internal.fill('t.{"changed"} IS NULL', names));
	END IF;
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT greatest((SELECT max({"changed"}) FROM {target}), max(greatest(r.old, r.new))) AS greatest,
			least((SELECT min({"changed"}) FROM {target}), min(least(r.old, r.new))) AS least, count(*) AS rows
		FROM {rank} AS r
	$query$, names) INTO beside;
	IF beside.greatest + beside.rows::numeric > last AND beside.least - beside.rows::numeric < -last - 1 THEN
		RAISE EXCEPTION USING ERRCODE = 'numeric_value_out_of_range',
			MESSAGE = format('column "%s" of table %s has no room for ranks while they change', names ->> 'changed',
							 names ->> 'table'),
			DETAIL = format('It has values of %s to %s, and %s ranks change.', beside.least, beside.greatest,
							beside.rows),
			HINT = 'Assign smaller values to the rows with the greatest ones.';
	END IF;
	names := names || jsonb_build_object('aside', CASE WHEN beside.greatest + beside.rows::numeric <= last
		THEN format('%s + r.place', coalesce(beside.greatest, 0)) ELSE format('%s - r.place', beside.least) END);
	RETURN names || jsonb_build_object(
		'is_aside', snowflake_migrate_internal.fill('t.{"changed"} = {aside}', names));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.rank_names(bigint, int, boolean, text)
	IS 'for snowflake_migrate.merge()''s own use: the names in queries that change ranks';

/* Gives the target's rows their new ranks, or (back) the former ones; of the run's table of ranks, or of another. */
CREATE FUNCTION snowflake_migrate_internal.apply_ranks(
	run_ bigint,
	no_ int,
	back boolean,
	ranks text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	names jsonb;
	touched text;
BEGIN
	IF to_regclass(coalesce(ranks, snowflake_migrate_internal.relation(run_, 'rank_' || no_))) IS NULL THEN
		RETURN;
	END IF;
	names := snowflake_migrate_internal.rank_names(run_, no_, back, ranks);
	touched := snowflake_migrate_internal.fill('SELECT {r.n#} FROM {rank} AS r', names);
	PERFORM snowflake_migrate_internal.keep_unchanged(run_, no_, touched) WHERE NOT back;
	PERFORM snowflake_migrate_internal.forget_unchanged(run_, no_, touched) WHERE back;
	EXECUTE snowflake_migrate_internal.fill($query$
		UPDATE {target} AS t
		SET {"changed"} = {aside}
		FROM {placed} AS r
		WHERE ({t.@}) = ({r.n#}) AND t.{"changed"} IS NOT DISTINCT FROM r.{from}
	$query$, names);
	EXECUTE snowflake_migrate_internal.fill($query$
		UPDATE {target} AS t
		SET {"changed"} = r.{to}
		FROM {placed} AS r
		WHERE ({t.@}) = ({r.n#}) AND {is_aside}
	$query$, names);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.apply_ranks(bigint, int, boolean, text)
	IS 'for snowflake_migrate.merge()''s own use: gives the target''s rows their new ranks';

/*
 * The names in queries about the target's rows t in which policies change something, v; null where there are none.  Of
 * the columns, given is what they become, former what they were, where they are that; differ: one is not, in a row
 * whose place no source's row takes.  before: what they were, of such a row, too.
 */
CREATE FUNCTION snowflake_migrate_internal.target_change_names(run_ bigint, no_ int) RETURNS jsonb
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	names jsonb := snowflake_migrate_internal.names(run_, no_);
	found boolean;
BEGIN
	IF to_regclass(names ->> 'change') IS NULL THEN
		RETURN NULL;
	END IF;
	EXECUTE snowflake_migrate_internal.fill(
		'SELECT EXISTS (SELECT FROM {change} AS v WHERE v."merge source" = 0)', names) INTO found;
	IF NOT found THEN
		RETURN NULL;
	END IF;
	RETURN names || (
		SELECT jsonb_build_object(
			'columns', string_agg(quote_ident(c.name), ', ' ORDER BY c.position),
			'former', string_agg(format('CASE WHEN %s AND NOT %s THEN %s ELSE t.%I END',
					d.is_given, d.differs, d.former, c.name), ', ' ORDER BY c.position),
			'before', string_agg(format('CASE WHEN %s AND (NOT %s OR %s) THEN %s ELSE t.%I END',
					d.is_given, d.differs, r.is_replaced, d.former, c.name), ', ' ORDER BY c.position),
			'undone', string_agg(format('CASE WHEN %s THEN jsonb_build_object(%L, %s) ELSE ''{}'' END',
					d.is_given, c.name, d.former), ' || ' ORDER BY c.position),
			'given', string_agg(format('CASE WHEN %s THEN v.%I ELSE t.%I END', d.is_given, c.name, c.name), ', '
								ORDER BY c.position),
			'differ', format('(%s) AND NOT %s', string_agg(
				format('%s AND %s', d.is_given, d.differs), ' OR ' ORDER BY c.position), r.is_replaced))
		FROM snowflake_migrate_internal.plan_columns AS c
			JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
			JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attname = c.name
			CROSS JOIN LATERAL (
				SELECT format('ROW (t.%I)::record OPERATOR(pg_catalog.*<>) ROW (v.%I)::record', c.name, c.name),
					CASE WHEN c.combine IS NOT NULL THEN '(v."merge combined" IS TRUE)'
						ELSE format('v.%I IS NOT NULL', c.name) END,
					format('v.%I::%s', snowflake_migrate_internal.beside('old', c.name),
						format_type(a.atttypid, a.atttypmod))
			) AS d (differs, is_given, former)
			CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.fill($query$
				EXISTS (SELECT FROM {map} AS m WHERE m.action = 'r' AND ({m.n#}) = ({v."merge o#"}))
			$query$, names)) AS r (is_replaced)
		WHERE c.run = run_ AND c.no = no_ AND c.in_target
		GROUP BY r.is_replaced);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.target_change_names(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: the names in queries about rows of the target that change';

/*
 * Gives the target's rows what policies changed in them, or (back) the former values, where nobody changed them since.
 */
CREATE FUNCTION snowflake_migrate_internal.apply_changes(run_ bigint, no_ int, back boolean) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	names CONSTANT jsonb := snowflake_migrate_internal.target_change_names(run_, no_);
	touched text;
BEGIN
	IF names IS NOT NULL THEN
		touched := snowflake_migrate_internal.fill(
			'SELECT {v."merge o#" AS n#} FROM {change} AS v WHERE v."merge source" = 0', names);
		PERFORM snowflake_migrate_internal.keep_unchanged(run_, no_, touched) WHERE NOT back;
		PERFORM snowflake_migrate_internal.forget_unchanged(run_, no_, touched) WHERE back;
		EXECUTE snowflake_migrate_internal.fill($query$
			UPDATE {target} AS t SET ({columns}) = ROW ({values})
			FROM {change} AS v
			WHERE v."merge source" = 0 AND ({t.@}) = ({v."merge o#"})
		$query$, names || jsonb_build_object('values', names ->> CASE WHEN back THEN 'former' ELSE 'given' END));
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.apply_changes(bigint, int, boolean)
	IS 'for snowflake_migrate.merge()''s own use: changes the target''s rows as policies say';

/*
 * The next batch of one table of one source, from where the last one ended, as conditions: of_map on the map's columns
 * m; of_source, which follows others, on the source's columns s.  range_end is the batch's last key, or null where it
 * is the last batch.  entries says which of the map's entries count; again: those that are to be copied again
 * (in_use.sql).  batch_: the one of plan_batches, unless it is 0.
 */
CREATE FUNCTION snowflake_migrate_internal.next_batch(
	run_ bigint,
	no_ int,
	source_ int,
	batch_ int,
	batch_size int,
	entries text,
	again boolean DEFAULT false,
	OUT of_map text,
	OUT of_source text,
	OUT range_end text)
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	progress record;
	range_key record;
	key_range record;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	IF batch_ = 0 THEN
		SELECT s.position AS after INTO STRICT progress FROM snowflake_migrate_internal.plan_sources AS s
			WHERE s.run = run_ AND s.no = no_ AND s.source = source_;
	ELSE
		SELECT b.after, b.position INTO STRICT progress FROM snowflake_migrate_internal.plan_batches AS b
			WHERE b.run = run_ AND b.no = no_ AND b.source = source_ AND b.batch = batch_;
		range_end := progress.position;
	END IF;
	SELECT k.n, k.type INTO range_key FROM snowflake_migrate_internal.range_key(plan.relation, plan.key) AS k;
	of_map := format('m.source = %s AND %s', source_, entries);
	of_source := '';
	IF plan.kind = 'none' THEN
		of_map := NULL;
		RETURN;
	ELSIF again THEN
		of_map := of_map || snowflake_migrate_internal.fill($query$ AND EXISTS (
				SELECT FROM {own} AS w WHERE w.again AND w.source = m.source AND ({w.o#}) = ({m.o#}))
			$query$, snowflake_migrate_internal.names(run_, no_));
		RETURN;
	ELSIF plan.cyclic OR range_key.n IS NULL THEN
		RETURN;
	END IF;
	IF batch_ = 0 THEN
		key_range := snowflake_migrate_internal.key_range(run_, no_, source_, progress.after, NULL);
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT m.o{n}::text FROM {map} AS m WHERE {of_map}{behind} ORDER BY m.o{n} OFFSET {before_last} LIMIT 1
		$query$, snowflake_migrate_internal.names(run_, no_) || jsonb_build_object(
			'n', range_key.n, 'of_map', of_map, 'behind', coalesce(' AND ' || key_range.of_map, ''),
			'before_last', batch_size - 1)) INTO range_end;
	END IF;
	key_range := snowflake_migrate_internal.key_range(run_, no_, source_, progress.after, range_end);
	of_map := concat_ws(' AND ', of_map, key_range.of_map);
	of_source := coalesce(' AND ' || key_range.of_source, '');
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.next_batch(bigint, int, int, int, int, text, boolean)
	IS 'for snowflake_migrate.merge()''s own use: the next batch of a table';

/*
 * The names in queries that copy the next batch of one table of one source.  There, s is the source's row, and m its
 * entry in the map.  A row that takes the place of one of the target's changes only its replaced_columns.
 */
CREATE FUNCTION snowflake_migrate_internal.batch_names(
	run_ bigint,
	no_ int,
	source_ int,
	batch_ int,
	again boolean) RETURNS jsonb
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT snowflake_migrate_internal.names(run_, no_) || to_jsonb(b) || c.names || jsonb_build_object(
		'source', source_,
		'source_name', r.sources[source_],
		'origin', p.origin,
		/* Of a table without a key, all rows are one batch. */
		'of_batch', coalesce('WHERE ' || b.of_map || b.of_source || ' AND m.action = ''c''', ''),
		'in_order', CASE t.kind WHEN 'id' THEN 'ORDER BY m.n1' ELSE '' END,
		'returning', snowflake_migrate_internal.returning(t.relation))
	FROM snowflake_migrate_internal.plan_tables AS t
		JOIN snowflake_migrate_internal.plan_sources AS s ON s.run = run_ AND s.no = no_ AND s.source = source_
		JOIN snowflake_migrate.runs AS r ON r.run = run_
		CROSS JOIN LATERAL snowflake_migrate_internal.next_batch(
			run_, no_, source_, batch_, coalesce(s.batch_rows, r.batch_size), 'm.action IN (''c'', ''r'')', again) AS b
		CROSS JOIN LATERAL snowflake_migrate_internal.rows_parts(run_, no_, source_, t.kind <> 'none', false) AS p
		CROSS JOIN LATERAL (
			SELECT jsonb_build_object(
				'columns', string_agg(quote_ident(e.name), ', ' ORDER BY e.n),
				'expressions', string_agg(e.expression, ', ' ORDER BY e.n),
				'named_expressions', string_agg(format('%s AS %I', e.expression, e.name), ', ' ORDER BY e.n)
					FILTER (WHERE i.is_replaced),
				'replaced_columns', string_agg(quote_ident(e.name), ', ' ORDER BY e.n) FILTER (WHERE i.is_replaced),
				'replacements', string_agg('q.' || quote_ident(e.name), ', ' ORDER BY e.n) FILTER (WHERE i.is_replaced))
			FROM unnest(p.names, p.expressions) WITH ORDINALITY AS e (name, expression, n)
				JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attname = e.name
				CROSS JOIN LATERAL (SELECT e.name <> ALL (t.key::text[]) AND a.attidentity <> 'a') AS i (is_replaced)
		) AS c (names)
	WHERE t.run = run_ AND t.no = no_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.batch_names(bigint, int, int, int, boolean)
	IS 'for snowflake_migrate.merge()''s own use: the names in queries that copy a batch';

/*
 * Puts on record which transaction has written the rows of one table of one source: what it has just written into the
 * plan tells.  Within a subtransaction it is that one, which nothing else names.
 */
CREATE FUNCTION snowflake_migrate_internal.record_transaction(run_ bigint, no_ int, source_ int) RETURNS void
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
	UPDATE snowflake_migrate_internal.plan_sources AS s
		SET copied_by = s.copied_by || (
			SELECT (t.id + (x.xid - t.id % e.wrap) + CASE WHEN x.xid < t.id % e.wrap THEN e.wrap ELSE 0 END)::text::xid8
			FROM (SELECT pg_current_xact_id()::text::numeric) AS t (id),
				(SELECT s.xmin::text::numeric) AS x (xid),
				(SELECT 4294967296::numeric) AS e (wrap))
		WHERE s.run = run_ AND s.no = no_ AND s.source = source_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.record_transaction(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: keeps which transaction wrote rows';

/*
 * Keeps for people the rows whose place a batch takes, which keep_former() has kept.  Nobody has made statistics of the
 * records, nor of these: a nested loop would take the square of the time.
 */
CREATE FUNCTION snowflake_migrate_internal.record_former(names jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_nestloop = off
AS $$
DECLARE
	changes CONSTANT jsonb := snowflake_migrate_internal.target_change_names(
		(names ->> 'run')::bigint, (names ->> 'no')::int);
BEGIN
	EXECUTE snowflake_migrate_internal.fill($query$
		UPDATE snowflake_migrate.records AS c
		SET former_row = to_jsonb(t){and_undone}
		FROM {map} AS m JOIN {former} AS t ON ({t.@}) = ({m.n#}){changes}
		WHERE {of_map} AND m.action = 'r'
			AND c.run = {run} AND c.relation = {'table'} AND c.source = {'source_name'}
			AND c.policy IN ('keep_source', 'keep_first') AND c.old_key = {m.o#::text}
	$query$, names || CASE WHEN changes IS NULL THEN '{"and_undone": "", "changes": ""}' ELSE jsonb_build_object(
		/* A policy may have given it another value, to be out of the way. */
		'and_undone', ' || ' || (changes ->> 'undone'),
		'changes', snowflake_migrate_internal.fill(
			' LEFT JOIN {change} AS v ON v."merge source" = 0 AND ({v."merge o#"}) = ({t.@})', names)) END);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.record_former(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: keeps for people the rows that a batch replaces';

/* Keeps the target's rows whose place a batch takes, as they were and for people.  Returns whether there are any. */
CREATE FUNCTION snowflake_migrate_internal.keep_former(names jsonb) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	is_replaced boolean;
BEGIN
	IF to_regclass(names ->> 'former') IS NULL THEN
		RETURN false;
	END IF;
	EXECUTE snowflake_migrate_internal.fill($query$
		SELECT EXISTS (SELECT FROM {map} AS m WHERE {of_map} AND m.action = 'r')
	$query$, names) INTO is_replaced;
	IF is_replaced THEN
		PERFORM snowflake_migrate_internal.keep_unchanged((names ->> 'run')::bigint, (names ->> 'no')::int,
			snowflake_migrate_internal.fill(
				'SELECT {m.n#} FROM {map} AS m WHERE {of_map} AND m.action = ''r''', names));
		EXECUTE snowflake_migrate_internal.fill($query$
			INSERT INTO {former}
			SELECT t.* FROM {target} AS t JOIN {map} AS m ON ({t.@}) = ({m.n#}) WHERE {of_map} AND m.action = 'r'
		$query$, names);
		PERFORM snowflake_migrate_internal.record_former(names);
	END IF;
	RETURN is_replaced;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.keep_former(jsonb)
	IS 'for snowflake_migrate.merge()''s own use: keeps the rows that a batch replaces';

/* The query that writes a batch, in parts: insert adds rows; replace, which may be empty, changes the target's. */
CREATE FUNCTION snowflake_migrate_internal.batch_writes(names jsonb, replaces boolean) RETURNS jsonb
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT jsonb_build_object(
		'insert', snowflake_migrate_internal.fill($query$
				INSERT INTO {table} AS t ({columns}) OVERRIDING SYSTEM VALUE
				SELECT {expressions} FROM {origin} {of_batch} {in_order}
			$query$, names),
		'replace', CASE WHEN replaces THEN snowflake_migrate_internal.fill($query$,
				u AS (
					UPDATE {target} AS t
					SET ({replaced_columns}) = ROW ({replacements})
					FROM (
						SELECT {m.n# AS "merge n#"}, {named_expressions}
						FROM {origin}
						WHERE {of_map}{of_source} AND m.action = 'r'
					) AS q
					WHERE ({t.@}) = ({q."merge n#"})
					{returning}
				),
				b AS (
					SELECT * FROM i UNION ALL SELECT * FROM u
				)$query$, names) ELSE '' END)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.batch_writes(jsonb, boolean)
	IS 'for snowflake_migrate.merge()''s own use: the parts of the query that writes a batch';

/*
 * Copies one batch of one table of one source: the next, or (batch_) one of plan_batches; again: the rows behind its
 * position that are to be copied again (in_use.sql).  Returns how many rows.
 */
CREATE FUNCTION snowflake_migrate_internal.copy(
	run_ bigint,
	no_ int,
	source_ int,
	batch_ int DEFAULT 0,
	again boolean DEFAULT false) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	started CONSTANT timestamptz := clock_timestamp();
	in_use CONSTANT boolean := snowflake_migrate_internal.is_in_use(run_);
	plan record;
	names jsonb;
	replaces boolean;
	copied bigint;
	missing bigint[];
	labels name[];
BEGIN
	PERFORM snowflake_migrate_internal.allow_memory();
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	IF NOT in_use
		AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s
						WHERE s.run = run_ AND s.no = no_ AND s.copied_by <> '{}')
		AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_batches AS b
						WHERE b.run = run_ AND b.no = no_ AND b.copied_by IS NOT NULL) THEN
		PERFORM snowflake_migrate_internal.apply_ranks(run_, no_, false),
			snowflake_migrate_internal.apply_changes(run_, no_, false);
	END IF;
	names := snowflake_migrate_internal.batch_names(run_, no_, source_, batch_, again);
	PERFORM snowflake_migrate_internal.lock_replaced(names) WHERE in_use;
	replaces := snowflake_migrate_internal.keep_former(names) AND names ->> 'replaced_columns' IS NOT NULL;
	/* Where triggers are on, they check the foreign keys; of a cycle, it is done when all of its tables are copied. */
	names := names || snowflake_migrate_internal.foreign_key_checks(
		CASE WHEN current_setting('session_replication_role') = 'replica' AND NOT plan.cyclic THEN plan.relation END,
		CASE WHEN replaces THEN 'b' ELSE 'i' END);
	names := names || snowflake_migrate_internal.batch_writes(names, replaces);
	IF names ->> 'replace' = '' AND names ->> 'foreign_key_checks' = '' THEN
		EXECUTE names ->> 'insert';
		GET DIAGNOSTICS copied = ROW_COUNT;
	ELSE
		EXECUTE snowflake_migrate_internal.fill($query$
			WITH i AS (
				{insert} {returning}
			){replace}{foreign_key_checks}
			SELECT (SELECT count(*) FROM {rows}), {missing}, {'labels'}::name[]
		$query$, names) INTO copied, missing, labels;
		PERFORM snowflake_migrate_internal.refuse_missing(plan.relation, missing, labels);
	END IF;

	PERFORM snowflake_migrate_internal.prove_batch(names) WHERE in_use;

	IF batch_ > 0 THEN
		UPDATE snowflake_migrate_internal.plan_batches AS b
			SET rows_done = copied, copied_by = pg_current_xact_id(),
				busy = (clock_timestamp() - started) / snowflake_migrate_internal.workers()
			WHERE b.run = run_ AND b.no = no_ AND b.source = source_ AND b.batch = batch_;
		RETURN copied;
	END IF;
	UPDATE snowflake_migrate_internal.plan_sources AS s
		/* A row that took another's place, and comes again as that was deleted, has been counted. */
		SET rows_done = CASE WHEN in_use THEN least(s.rows_done + copied, s.rows_to_do) ELSE s.rows_done + copied END,
			position = CASE WHEN again THEN s.position ELSE names ->> 'range_end' END,
			done = CASE WHEN again THEN s.done ELSE names ->> 'range_end' IS NULL END,
			busy = s.busy + (clock_timestamp() - started),
			batch_rows = nullif(least(s.batch_rows::bigint * 2, r.batch_size), r.batch_size),
			failures = 0
		FROM snowflake_migrate.runs AS r
		WHERE s.run = run_ AND s.no = no_ AND s.source = source_ AND r.run = run_;
	PERFORM snowflake_migrate_internal.record_transaction(run_, no_, source_);
	RETURN copied;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.copy(bigint, int, int, int, boolean)
	IS 'for snowflake_migrate.merge()''s own use: copies a batch';

/* Checks the foreign keys of a table of a cycle for one source's rows, when all of the cycle is copied. */
CREATE FUNCTION snowflake_migrate_internal.check_copied(run_ bigint, no_ int, source_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	relation regclass;
	names jsonb;
	missing bigint[];
	labels name[];
BEGIN
	SELECT t.relation INTO relation FROM snowflake_migrate_internal.plan_tables AS t
		WHERE t.run = run_ AND t.no = no_ AND t.kind <> 'none';
	IF NOT FOUND THEN
		RETURN;
	END IF;
	names := snowflake_migrate_internal.names(run_, no_) || jsonb_build_object('source', source_)
		|| snowflake_migrate_internal.foreign_key_checks(relation, 'i');
	IF names ->> 'foreign_key_checks' <> '' THEN
		EXECUTE snowflake_migrate_internal.fill($query$
			WITH i AS (
				SELECT t.*, t.tableoid
				FROM {target} AS t
					JOIN {map} AS m ON m.source = {source} AND m.action IN ('c', 'r') AND ({t.@}) = ({m.n#})
			){foreign_key_checks}
			SELECT {missing}, {'labels'}::name[]
		$query$, names) INTO missing, labels;
		PERFORM snowflake_migrate_internal.refuse_missing(relation, missing, labels);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_copied(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: checks the foreign keys of a table of a cycle';

/*
 * Whether rows of one source became rows of a later one, in any table of a cycle: by a precedence, these may rank
 * first.  What refers to them can't be copied before.  No nested loops: see set_clashing().
 */
CREATE FUNCTION snowflake_migrate_internal.leads_to_later(run_ bigint, step_ int, source_ int) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET jit = off SET enable_nestloop = off
AS $$
#variable_conflict use_column
DECLARE
	member int;
	leads boolean;
BEGIN
	FOREACH member IN ARRAY ARRAY(
		SELECT t.no FROM snowflake_migrate_internal.plan_tables AS t
		WHERE t.run = run_ AND t.copy_step = step_ AND t.kind <> 'none' ORDER BY t.no)
	LOOP
		EXECUTE snowflake_migrate_internal.fill($query$
			SELECT EXISTS (
				SELECT FROM {map} AS m JOIN {map} AS o ON ({o.n#}) = ({m.n#})
				WHERE m.source = {source} AND m.action IN ('k', 'm') AND o.source > {source} AND o.action IN ('c', 'r'))
		$query$, snowflake_migrate_internal.names(run_, member) || jsonb_build_object('source', source_)) INTO leads;
		IF leads THEN
			RETURN true;
		END IF;
	END LOOP;
	RETURN false;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.leads_to_later(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: whether a cycle needs rows of later sources';

/* Copies all tables of a cycle from a source, and from those after it where it needs these. */
CREATE FUNCTION snowflake_migrate_internal.copy_cycle(run_ bigint, step_ int, source_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	with_later CONSTANT boolean := snowflake_migrate_internal.leads_to_later(run_, step_, source_);
	members CONSTANT jsonb[] := ARRAY(
		SELECT jsonb_build_object('no', s.no, 'source', s.source)
		FROM snowflake_migrate_internal.plan_sources AS s
			JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
		WHERE s.run = run_ AND t.copy_step = step_ AND (s.source = source_ OR with_later AND s.source > source_)
		ORDER BY s.source, s.no);
	member jsonb;
BEGIN
	FOREACH member IN ARRAY members LOOP
		PERFORM snowflake_migrate_internal.copy(run_, (member ->> 'no')::int, (member ->> 'source')::int, 0);
	END LOOP;
	FOREACH member IN ARRAY members LOOP
		PERFORM snowflake_migrate_internal.check_copied(run_, (member ->> 'no')::int, (member ->> 'source')::int);
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.copy_cycle(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: copies the tables of a cycle';

/*
 * One transaction of the copying: batches, or all tables of a cycle.  Tables that fit into one batch together share a
 * transaction, at most tables_at_once().  Returns false when there is nothing left.
 */
CREATE FUNCTION snowflake_migrate_internal.step(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	in_use CONSTANT boolean := snowflake_migrate_internal.is_in_use(run_);
	rows_left bigint := (SELECT r.batch_size FROM snowflake_migrate.runs AS r WHERE r.run = run_);
	/*
	 * Looked for once, as that takes as long as there are tables.  Where the target is in use, each table by itself:
	 * its locks are short, and it is known what clashed.  OFFSET: each by its key, as in planned_table().
	 */
	batches CONSTANT jsonb[] := ARRAY(
		SELECT jsonb_build_object('no', s.no, 'source', s.source, 'batch', coalesce(b.batch, 0),
				'to_do', s.rows_to_do - s.rows_done, 'copy_step', t.copy_step, 'cyclic', t.cyclic)
			FROM snowflake_migrate_internal.plan_sources AS s
				CROSS JOIN LATERAL snowflake_migrate_internal.planned_table(run_, s.no) AS t
				LEFT JOIN LATERAL (
					SELECT b.batch FROM snowflake_migrate_internal.plan_batches AS b
					WHERE b.run = run_ AND b.no = s.no AND b.source = s.source AND b.copied_by IS NULL
					ORDER BY b.batch LIMIT 1) AS b ON true
			WHERE s.run = run_ AND NOT s.done AND (NOT s.is_split OR b.batch IS NOT NULL)
			ORDER BY t.copy_step, s.source, s.no
			LIMIT snowflake_migrate_internal.tables_at_once(in_use));
	batch jsonb;
	is_first boolean := true;
	is_cyclic boolean;
	is_done boolean;
	to_do bigint;
	no_ int;
	source_ int;
BEGIN
	FOREACH batch IN ARRAY batches LOOP
		is_cyclic := (batch ->> 'cyclic')::boolean;
		no_ := (batch ->> 'no')::int;
		source_ := (batch ->> 'source')::int;
		to_do := (batch ->> 'to_do')::bigint;
		EXIT WHEN NOT is_first AND (is_cyclic OR to_do > rows_left);
		is_first := false;
		IF is_cyclic THEN
			PERFORM snowflake_migrate_internal.copy_cycle(run_, (batch ->> 'copy_step')::int, source_);
			EXIT;
		END IF;
		LOOP
			rows_left := rows_left - snowflake_migrate_internal.copy(run_, no_, source_, (batch ->> 'batch')::int);
			SELECT s.done, s.rows_to_do - s.rows_done INTO is_done, to_do
				FROM snowflake_migrate_internal.plan_sources AS s
				WHERE s.run = run_ AND s.no = no_ AND s.source = source_;
			/* Of a table that was split, each batch is a transaction. */
			EXIT WHEN is_done OR in_use OR to_do > rows_left OR (batch ->> 'batch')::int > 0;
		END LOOP;
		/* What refers to a table waits for the rest of it. */
		EXIT WHEN NOT is_done;
	END LOOP;
	RETURN NOT is_first;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.step(bigint)
	IS 'for snowflake_migrate.merge()''s own use: one transaction of the copying';
