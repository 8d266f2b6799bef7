/*
 * The maps of a run: which row of a source becomes which of the target.  All of them are made in one transaction, before the
 * first row is copied, so that everything that would stop the merge is known by then.
 *
 * Ids: those that were taken from a sequence are renumbered under the source's node number, in order of time over all of its
 * tables.  A place in time is a slot: the tick times the ids of a tick, plus the sequence.  The i-th row goes to slot
 * i + max over j <= i of (the first slot of j's tick - j), the first that is free from its tick on, so that a full tick spills into
 * the next.
 */

/* The greatest id that counts as taken from a sequence: of the first day after the layout's epoch. */
CREATE FUNCTION snowflake_migrate_internal.last_serial() RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_migrate_internal.min_id(l.epoch + interval '1 day') - 1 FROM snowflake_migrate_internal.layout() AS l
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.last_serial()
	IS 'for snowflake_migrate.merge()''s own use: the greatest id that counts as taken from a sequence';

/* The new ids of one source, and the ids that it keeps. */
CREATE FUNCTION snowflake_migrate_internal.number(run_ bigint, source_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	layout record;
	run_row record;
	plan record;
	node bigint;
	zero bigint;			-- the id of slot 0
	tick_unit bigint;		-- between the ids of a tick and the next
	sequence_unit bigint;
	slots bigint;			-- of a tick
	start_slot bigint;
	last_slot bigint;
	last_serial CONSTANT bigint := snowflake_migrate_internal.last_serial();
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map');
	serial text;
	at text;
	timed text[] := '{}';
	untimed text[] := '{}';
	early bigint;
	example text;
	overflow boolean;
BEGIN
	SELECT r.* INTO STRICT run_row FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	node := run_row.nodes[source_];
	SELECT l.* INTO layout FROM snowflake_migrate_internal.layout() AS l;
	zero := snowflake_migrate_internal.encode(layout.epoch, node, 0);
	tick_unit := snowflake_migrate_internal.encode(layout.epoch + layout.tick, node, 0) - zero;
	sequence_unit := snowflake_migrate_internal.encode(layout.epoch, node, 1) - zero;
	slots := 1::bigint << layout.sequence_bits;
	last_slot := (2::numeric ^ (layout.timestamp_bits + layout.sequence_bits) - 1)::bigint;
	start_slot := snowflake_migrate_internal.max_id(run_row.started_at) / tick_unit * slots;

	FOR plan IN
		SELECT t.no, t.relation, t.key[1] AS key, s.relation AS source_relation, c.attname AS created,
			EXISTS (SELECT FROM snowflake_migrate.declared_policies AS p WHERE p.relation = t.relation AND p.policy = 'renumber') AS renumber
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN snowflake_migrate_internal.plan_sources AS s ON s.run = run_ AND s.no = t.no AND s.source = source_
			LEFT JOIN pg_attribute AS c ON c.attrelid = s.relation AND c.attname = t.created AND NOT c.attisdropped
		WHERE t.run = run_ AND t.kind = 'id' AND t.mode <> 'ignore'
		ORDER BY t.no
	LOOP
		serial := format('s.%I <= %s', plan.key, last_serial);
		at := CASE WHEN plan.created IS NULL THEN 'NULL::timestamptz' ELSE format('s.%I::timestamptz', plan.created) END;
		IF plan.renumber THEN
			/* An id that is there already gets another, at the time that it tells. */
			serial := format('(%s OR EXISTS (SELECT FROM %s AS t WHERE t.%I = s.%I) OR EXISTS (SELECT FROM %s AS m WHERE m.no = %s AND m.source < %s AND m.n1 = s.%I))',
							 serial, snowflake_migrate_internal.only(plan.relation), plan.key, plan.key, map, plan.no, source_, plan.key);
			at := format('CASE WHEN s.%I <= %s THEN %s ELSE snowflake_migrate_internal.timestamp(s.%I::bigint) END', plan.key, last_serial, at, plan.key);
		END IF;
		IF plan.created IS NOT NULL OR plan.renumber THEN
			EXECUTE format('SELECT count(*), min(%I::text) FROM %s AS s WHERE %s AND %s < %L', plan.key, snowflake_migrate_internal.only(plan.source_relation),
						   serial, at, layout.epoch) INTO early, example;
			IF early > 0 THEN
				PERFORM snowflake_migrate_internal.find(run_, 'error', run_row.sources[source_], plan.relation::text, plan.created,
					format('rows were created before the layout''s epoch, %s', layout.epoch), early, example,
					'Give these rows another time, or take back the declaration of the column, or merge under a layout with an earlier epoch.');
			END IF;
			timed := timed || format('SELECT %s AS no, s.%I::bigint AS o, least(snowflake_migrate_internal.max_id(%s) / %s * %s, %s) AS at FROM %s AS s WHERE %s AND %s IS NOT NULL',
				plan.no, plan.key, at, tick_unit, slots, start_slot, snowflake_migrate_internal.only(plan.source_relation), serial, at);
			untimed := untimed || format('SELECT %s AS no, s.%I::bigint AS o FROM %s AS s WHERE %s AND %s IS NULL',
				plan.no, plan.key, snowflake_migrate_internal.only(plan.source_relation), serial, at);
		ELSE
			untimed := untimed || format('SELECT %s AS no, s.%I::bigint AS o FROM %s AS s WHERE %s',
				plan.no, plan.key, snowflake_migrate_internal.only(plan.source_relation), serial);
		END IF;

		/* Rows that have a snowflake id keep it. */
		EXECUTE format('INSERT INTO %s (no, source, o1, n1, action) SELECT %s, %s, s.%I, s.%I, ''c'' FROM %s AS s WHERE NOT %s',
					   map, plan.no, source_, plan.key, plan.key, snowflake_migrate_internal.only(plan.source_relation), serial);
	END LOOP;
	IF untimed = '{}' THEN
		RETURN;
	END IF;

	EXECUTE format(
		'INSERT INTO %s (no, source, o1, n1, action) SELECT z.no, %s, z.o, CASE WHEN z.slot BETWEEN 0 AND %s THEN %s + z.slot / %s * %s + z.slot %% %s * %s END, ''c'' '
		'FROM (SELECT r.no, r.o, r.i + max(r.at - r.i) OVER (ORDER BY r.at, r.no, r.o ROWS UNBOUNDED PRECEDING) AS slot '
		'FROM (SELECT p.no, p.o, p.at, row_number() OVER (ORDER BY p.at, p.no, p.o) AS i '
		'FROM (SELECT u.no, u.o, %s - count(*) OVER () + row_number() OVER (ORDER BY u.no, u.o) - 1 AS at FROM (%s) AS u%s) AS p) AS r) AS z',
		map, source_, last_slot, zero, slots, tick_unit, slots, sequence_unit, start_slot,
		array_to_string(untimed, ' UNION ALL '), CASE WHEN timed = '{}' THEN '' ELSE ' UNION ALL ' || array_to_string(timed, ' UNION ALL ') END);
	EXECUTE format('SELECT EXISTS (SELECT FROM %s AS m WHERE m.source = %s AND m.n1 IS NULL)', map, source_) INTO overflow;
	IF overflow THEN
		PERFORM snowflake_migrate_internal.find(run_, 'error', run_row.sources[source_], NULL, NULL,
			'the layout has no room for the new ids between its epoch and its end', NULL, NULL, 'Merge under another layout.');
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.number(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: the new ids of a source';

/* A unique index, or what is matched like one: the text of its expressions, how they are compared, and which rows are in it. */
CREATE FUNCTION snowflake_migrate_internal.unique(
	run_ bigint,
	no_ int,
	OUT label name,
	OUT expressions text[],
	OUT operators text[],
	OUT distinct_nulls boolean,
	OUT predicate text,
	OUT policy text,
	OUT argument text,
	OUT changed name,
	OUT is_key boolean) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT u.* FROM (
		SELECT x.relname,
			(SELECT array_agg('(' || pg_get_indexdef(i.indexrelid, n, true) || ')' ORDER BY n) FROM generate_series(1, i.indnkeyatts) AS n),
			(SELECT array_agg(format('OPERATOR(%I.%s)', s.nspname, p.oprname) ORDER BY k.n)
			 FROM unnest(i.indclass) WITH ORDINALITY AS k (opclass, n)
				JOIN pg_opclass AS c ON c.oid = k.opclass
				JOIN pg_amop AS a ON a.amopfamily = c.opcfamily AND a.amoplefttype = c.opcintype AND a.amoprighttype = c.opcintype
					AND a.amopstrategy = 3
				JOIN pg_operator AS p ON p.oid = a.amopopr
				JOIN pg_namespace AS s ON s.oid = p.oprnamespace),
			NOT i.indnullsnotdistinct,
			pg_get_expr(i.indpred, i.indrelid),
			CASE WHEN t.mode = 'same_id' AND k.is_key THEN 'same_id' ELSE coalesce(p.policy, 'error') END,
			p.argument,
			CASE WHEN p.policy IN ('suffix', 'rerank')
				THEN (snowflake_migrate_internal.policy_columns(t.relation, x.relname, p.policy))[1] END,
			k.is_key
		FROM snowflake_migrate_internal.plan_tables AS t
			JOIN pg_index AS i ON i.indrelid = t.relation AND i.indisunique AND i.indislive
			JOIN pg_class AS x ON x.oid = i.indexrelid
			CROSS JOIN LATERAL (
				SELECT i.indexprs IS NULL AND i.indpred IS NULL
					AND ARRAY(SELECT a.attname FROM unnest(i.indkey[0 : i.indnkeyatts - 1]) WITH ORDINALITY AS c (attnum, n)
							  JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = c.attnum ORDER BY c.n) = t.key) AS k (is_key)
			LEFT JOIN snowflake_migrate.declared_policies AS p ON p.relation = t.relation AND p.constraint_name = x.relname
		WHERE t.run = run_ AND t.no = no_
		UNION ALL
		SELECT 'natural key', (SELECT array_agg(quote_ident(n)) FROM unnest(t.natural_key) AS n),
			(SELECT array_agg(format('OPERATOR(%I.=)', coalesce(s.nspname, 'pg_catalog')) ORDER BY k.n)
			 FROM unnest(t.natural_key) WITH ORDINALITY AS k (name, n)
				JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attname = k.name
				LEFT JOIN pg_opclass AS c ON c.opcintype = a.atttypid AND c.opcdefault AND c.opcmethod = (SELECT m.oid FROM pg_am AS m WHERE m.amname = 'btree')
				LEFT JOIN pg_namespace AS s ON s.oid = c.opcnamespace),
			false, NULL, 'match', NULL, NULL, false
		FROM snowflake_migrate_internal.plan_tables AS t
		WHERE t.run = run_ AND t.no = no_ AND t.mode = 'match'
	) AS u (label, expressions, operators, distinct_nulls, predicate, policy, argument, changed, is_key)
	/* What decides which rows are the same comes first. */
	ORDER BY u.policy NOT IN ('match', 'same_id'), NOT u.is_key, u.label
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.unique(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: what must be unique in a table';

/* The CHECK constraints of a table, and of the domains of its columns, as expressions over the table's columns. */
CREATE FUNCTION snowflake_migrate_internal.checks(
	relation regclass,
	OUT label name,
	OUT names name[],
	OUT expression text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT c.conname, (SELECT array_agg(a.attname) FROM pg_attribute AS a WHERE a.attrelid = relation AND a.attnum = ANY (c.conkey)),
		pg_get_expr(c.conbin, c.conrelid)
	FROM pg_constraint AS c WHERE c.conrelid = relation AND c.contype = 'c'
	UNION ALL
	SELECT c.conname, ARRAY[a.attname], regexp_replace(pg_get_expr(c.conbin, 0), '\mVALUE\M', quote_ident(a.attname), 'g')
	FROM pg_attribute AS a JOIN pg_constraint AS c ON c.contypid = a.atttypid AND c.contype = 'c'
	WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.checks(regclass)
	IS 'for snowflake_migrate.merge()''s own use: CHECK constraints as expressions';

/* The rows of all sources as they become, where they are rows of their own, with their source before. */
CREATE FUNCTION snowflake_migrate_internal.all_rows(run_ bigint, no_ int, list text, predicate text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT string_agg(format('SELECT %s AS "merge source", %s FROM (%s) AS %I WHERE %s%s', s.source, list,
							 snowflake_migrate_internal.rows(run_, no_, s.source), c.relname,
							 CASE WHEN t.kind = 'none' THEN 'true' ELSE '"merge action" IN (''c'', ''r'')' END, ' AND (' || predicate || ')'),
					  ' UNION ALL ' ORDER BY s.source)
	FROM snowflake_migrate_internal.plan_sources AS s
		JOIN snowflake_migrate_internal.plan_tables AS t ON t.run = run_ AND t.no = no_
		JOIN pg_class AS c ON c.oid = t.relation
	WHERE s.run = run_ AND s.no = no_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.all_rows(bigint, int, text, text)
	IS 'for snowflake_migrate.merge()''s own use: the rows of all sources as they become';

/*
 * Finds the rows that clash in one unique index, with the target's rows or with those of other sources, and does what the policy
 * says.  Returns how many rows it changed.
 *
 * Who was there first: the target's row, then those that no policy has changed, in the order of the sources.
 */
CREATE FUNCTION snowflake_migrate_internal.resolve(
	run_ bigint,
	no_ int,
	label name,
	expressions text[],
	operators text[],
	distinct_nulls boolean,
	predicate text,
	policy text,
	argument text,
	changed name) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	name CONSTANT name := (SELECT c.relname FROM snowflake_migrate_internal.plan_tables AS t JOIN pg_class AS c ON c.oid = t.relation
						   WHERE t.run = run_ AND t.no = no_);
	sources name[];
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map_' || no_);
	change CONSTANT text := snowflake_migrate_internal.relation(run_, 'change_' || no_);
	own text;
	same_key text;
	clashes text;
	find record;
	total bigint;
	done bigint;
	length_limit int;
	fits text;
	remark text;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	SELECT r.sources INTO sources FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	own := snowflake_migrate_internal.key_list('o#', plan.key);
	same_key := snowflake_migrate_internal.key_list('m.o# = c.o#', plan.key, ' AND ');

	clashes := format(
		'WITH c (source, %s, %s, action, tries, %s) AS MATERIALIZED (%s), '
		'w AS (SELECT c.*, row_number() OVER w AS place, first_value(c.source) OVER w AS first_source, %s FROM c WHERE %s WINDOW w AS (PARTITION BY %s ORDER BY c.tries, c.source, %s)) '
		'SELECT DISTINCT ON (w.source, %s) w.*, %s FROM w LEFT JOIN (SELECT %s, %s FROM %s AS %I%s) AS t (%s, %s) ON %s AND NOT (w.action = ''r'' AND %s) '
		'WHERE w.place > 1 OR t.t1 IS NOT NULL ORDER BY w.source, %s, %s',
		own, snowflake_migrate_internal.key_list('n#', plan.key), (SELECT string_agg('e' || n, ', ' ORDER BY n) FROM generate_subscripts(expressions, 1) AS n),
		snowflake_migrate_internal.all_rows(run_, no_,
			snowflake_migrate_internal.key_list('"merge o#"', plan.key) || ', ' || snowflake_migrate_internal.key_list('"merge n#"', plan.key)
				|| ', "merge action", "merge tries", ' || array_to_string(expressions, ', '), predicate),
		snowflake_migrate_internal.key_list('first_value(c.n#) OVER w AS w#', plan.key),
		CASE WHEN distinct_nulls THEN (SELECT string_agg(format('c.e%s IS NOT NULL', n), ' AND ' ORDER BY n) FROM generate_subscripts(expressions, 1) AS n) ELSE 'true' END,
		(SELECT string_agg('c.e' || n, ', ' ORDER BY n) FROM generate_subscripts(expressions, 1) AS n),
		snowflake_migrate_internal.key_list('c.o#', plan.key),
		snowflake_migrate_internal.key_list('w.o#', plan.key),
		snowflake_migrate_internal.key_list('t.t#', plan.key),
		snowflake_migrate_internal.key_list('@', plan.key), array_to_string(expressions, ', '), snowflake_migrate_internal.only(plan.relation), name,
		coalesce(' WHERE ' || predicate, ''),
		snowflake_migrate_internal.key_list('t#', plan.key), (SELECT string_agg('e' || n, ', ' ORDER BY n) FROM generate_subscripts(expressions, 1) AS n),
		/* Records take nulls as equal, and can be hashed. */
		CASE WHEN distinct_nulls THEN (SELECT string_agg(format('t.e%s %s w.e%s', n, operators[n], n), ' AND ' ORDER BY n) FROM generate_subscripts(expressions, 1) AS n)
			ELSE (SELECT format('ROW (%s)::record OPERATOR(pg_catalog.=) ROW (%s)::record', string_agg('t.e' || n, ', ' ORDER BY n), string_agg('w.e' || n, ', ' ORDER BY n))
				  FROM generate_subscripts(expressions, 1) AS n) END,
		snowflake_migrate_internal.key_list('t.t# = w.n#', plan.key, ' AND '),
		snowflake_migrate_internal.key_list('w.o#', plan.key), snowflake_migrate_internal.key_list('t.t#', plan.key));
	/* A table only where there are any: each costs locks until the end of the transaction. */
	EXECUTE 'SELECT count(*) FROM (' || clashes || ') AS x' INTO total;
	IF total = 0 THEN
		RETURN 0;
	END IF;
	IF to_regclass('pg_temp.snowflake_merge_clash') IS NOT NULL THEN
		DROP TABLE pg_temp.snowflake_merge_clash;
	END IF;
	EXECUTE 'CREATE TEMPORARY TABLE snowflake_merge_clash ON COMMIT DROP AS ' || clashes;
	EXECUTE 'SELECT concat_ws('', '', ' || (SELECT string_agg('c.e' || n, ', ' ORDER BY n) FROM generate_subscripts(expressions, 1) AS n)
		|| ') FROM pg_temp.snowflake_merge_clash AS c' INTO remark;
	IF policy IN ('error', 'renumber') THEN
		FOR find IN EXECUTE format(
			'SELECT x.source, count(*) AS count, string_agg(x.example, ''; '' ORDER BY x.n) FILTER (WHERE x.n <= 3) AS example FROM ('
			'SELECT c.source, row_number() OVER (PARTITION BY c.source ORDER BY %s) AS n, concat_ws('', '', %s) AS example FROM pg_temp.snowflake_merge_clash AS c) AS x '
			'GROUP BY x.source ORDER BY x.source',
			snowflake_migrate_internal.key_list('c.o#', plan.key), (SELECT string_agg('c.e' || n, ', ' ORDER BY n) FROM generate_subscripts(expressions, 1) AS n))
		LOOP
			PERFORM snowflake_migrate_internal.find(run_, 'error', sources[find.source], plan.relation::text, label, 'rows clash', find.count, find.example,
				format('Declare what becomes of them, for example: SELECT %s(%L, %L, ''keep_target'');', 'snowflake_migrate.declare_policy', plan.relation, label));
		END LOOP;
		RETURN 0;
	END IF;

	IF policy = 'match' AND NOT 'duplicates' = ANY (plan.accept) THEN
		SELECT count(*) INTO done FROM pg_temp.snowflake_merge_clash AS c WHERE c.place > 1 AND c.first_source = c.source;
		IF done > 0 THEN
			PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, plan.relation::text, array_to_string(plan.natural_key, ', '),
				'the natural key is not unique in a source', done, remark, 'Choose other columns, or accept duplicates.');
		END IF;
		EXECUTE format('SELECT count(*) FROM (SELECT %s FROM %s GROUP BY %s HAVING count(*) > 1) AS x',
			array_to_string(expressions, ', '), snowflake_migrate_internal.only(plan.relation), array_to_string(expressions, ', ')) INTO done;
		IF done > 0 THEN
			PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, plan.relation::text, array_to_string(plan.natural_key, ', '),
				'the natural key is not unique in the target', done, NULL, 'Choose other columns, or accept duplicates.');
		END IF;
	END IF;

	/* What refers to other columns than the key does not follow a row that is not copied, unless its values are those that clash. */
	IF policy <> 'suffix' THEN
		SELECT string_agg(format('%s of table %s', quote_ident(f.conname), f.conrelid::regclass), ', ') INTO fits
			FROM pg_constraint AS f
				CROSS JOIN LATERAL (SELECT array_agg(a.attname) AS names FROM unnest(f.confkey) AS k (attnum) JOIN pg_attribute AS a ON a.attrelid = f.confrelid AND a.attnum = k.attnum) AS c
			WHERE f.contype = 'f' AND f.conparentid = 0 AND f.confrelid = plan.relation AND NOT c.names <@ plan.key
				/* With the key among them, they follow it. */
				AND NOT (plan.kind = 'id' AND plan.key <@ c.names)
				AND (policy = 'keep_source' OR EXISTS (
						SELECT FROM snowflake_migrate_internal.plan_tables AS t JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no)
						WHERE t.run = run_ AND t.relation = coalesce(pg_partition_root(f.conrelid), f.conrelid)))
				AND (policy = 'skip' OR NOT (SELECT array_agg('(' || quote_ident(n) || ')') FROM unnest(c.names) AS n) <@ expressions);
		IF fits IS NOT NULL THEN
			PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, plan.relation::text, label,
				'rows clash that other tables refer to by other columns than the key', total, remark, 'Choose another policy. The references are ' || fits || '.');
		END IF;
		IF policy = 'skip' AND plan.kind = 'key' AND EXISTS (SELECT FROM snowflake_migrate.declared_references AS r WHERE r.referenced = plan.relation) THEN
			PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, plan.relation::text, label,
				'rows are skipped to which declared references lead that are not renumbered', total, remark, 'Choose another policy.');
		END IF;
	END IF;

	CASE policy
	WHEN 'match', 'same_id', 'keep_target', 'keep_source' THEN
		/* Rows that refer to a key of several columns, or to one that is a reference itself, find its columns each by itself. */
		IF plan.kind = 'key' THEN
			EXECUTE format('SELECT count(*) FROM pg_temp.snowflake_merge_clash AS c WHERE (%s) IS DISTINCT FROM (%s)',
				snowflake_migrate_internal.key_list('coalesce(c.t#, c.w#)', plan.key), snowflake_migrate_internal.key_list('c.n#', plan.key)) INTO done;
			IF done > 0 AND (EXISTS (SELECT FROM pg_constraint AS f WHERE f.contype = 'f' AND f.confrelid = plan.relation)
				OR EXISTS (SELECT FROM snowflake_migrate.declared_references AS r WHERE r.referenced = plan.relation)) THEN
				PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, plan.relation::text, label,
					'rows that clash in this constraint have other keys, which other tables refer to', done, remark,
					'Choose another policy, or let the table have a key of one integer column.');
			END IF;
		END IF;
		EXECUTE format('UPDATE %s AS m SET (%s, action) = ROW (%s, CASE WHEN %L AND c.place = 1 AND c.t1 IS NOT NULL AND NOT EXISTS (SELECT FROM %s AS o WHERE o.action = ''r'' AND %s AND NOT (o.source = c.source AND %s)) THEN ''r'' ELSE %L END) '
			'FROM pg_temp.snowflake_merge_clash AS c WHERE m.source = c.source AND %s',
			map, snowflake_migrate_internal.key_list('n#', plan.key), snowflake_migrate_internal.key_list('coalesce(c.t#, c.w#)', plan.key),
			policy = 'keep_source', map, snowflake_migrate_internal.key_list('o.n# = c.t#', plan.key, ' AND '), snowflake_migrate_internal.key_list('o.o# = c.o#', plan.key, ' AND '),
			CASE WHEN policy IN ('match', 'same_id') THEN 'm' ELSE 'k' END, same_key);
	WHEN 'skip' THEN
		EXECUTE format('UPDATE %s AS m SET (%s, action) = ROW (%s, ''s'') FROM pg_temp.snowflake_merge_clash AS c WHERE m.source = c.source AND %s',
			map, snowflake_migrate_internal.key_list('n#', plan.key), snowflake_migrate_internal.key_list('NULL', plan.key), same_key);
	WHEN 'suffix' THEN
		SELECT CASE WHEN y.oid IN ('varchar'::regtype, 'bpchar'::regtype) AND a.atttypmod > 4 THEN a.atttypmod - 4
				WHEN y.typbasetype IN ('varchar'::regtype, 'bpchar'::regtype) AND y.typtypmod > 4 THEN y.typtypmod - 4 END INTO length_limit
			FROM pg_attribute AS a JOIN pg_type AS y ON y.oid = a.atttypid WHERE a.attrelid = plan.relation AND a.attname = changed;
		SELECT string_agg(format('(%s) IS NOT FALSE', k.expression), ' AND ') INTO fits
			FROM snowflake_migrate_internal.checks(plan.relation) AS k WHERE changed = ANY (k.names);
		/* Rows that would get the same value are told apart at once, by the number that a further try would append. */
		EXECUTE format(
			'INSERT INTO %s AS v (source, %s, tries, %I, %I) SELECT y."merge source", %s, y."merge try", x.value, y."merge former" FROM ('
			'SELECT q.*, b.former AS "merge former", c.tries + row_number() OVER (PARTITION BY c.tries, left(b.former, CASE c.tries WHEN 0 THEN %s ELSE 1 END) ORDER BY c.source, %s) AS "merge try" FROM pg_temp.snowflake_merge_clash AS c '
			'JOIN (%s) AS q ON q."merge source" = c.source AND %s '
			'LEFT JOIN %s AS f ON f.source = c.source AND %s '
			'CROSS JOIN LATERAL (SELECT coalesce(f.%I, q.%I::text)) AS b (former)) AS y '
			'CROSS JOIN LATERAL (SELECT replace(%L, ''{source}'', (%L::name[])[y."merge source"]) || CASE y."merge try" WHEN 1 THEN '''' ELSE y."merge try"::text END) AS b (suffix) '
			'CROSS JOIN LATERAL (SELECT left(y."merge former", n) || b.suffix FROM generate_series(least(length(y."merge former"), %s), 1, -1) AS n %s LIMIT 1) AS x (value) '
			'ON CONFLICT (source, %s) DO UPDATE SET tries = excluded.tries, %I = excluded.%I',
			change, own, changed, 'old ' || changed, snowflake_migrate_internal.key_list('y."merge o#"', plan.key),
			coalesce(length_limit::text || ' - length(replace(' || quote_literal(coalesce(argument, '_{source}')) || ', ''{source}'', (' || quote_literal(sources) || '::name[])[c.source]))', 'length(b.former)'),
			snowflake_migrate_internal.key_list('c.o#', plan.key),
			snowflake_migrate_internal.all_rows(run_, no_, snowflake_migrate_internal.key_list('"merge o#"', plan.key) || ', '
				|| (SELECT string_agg(quote_ident(c.name), ', ' ORDER BY c.position) FROM snowflake_migrate_internal.plan_columns AS c WHERE c.run = run_ AND c.no = no_), NULL),
			snowflake_migrate_internal.key_list('q."merge o#" = c.o#', plan.key, ' AND '),
			change, snowflake_migrate_internal.key_list('f.o# = c.o#', plan.key, ' AND '),
			'old ' || changed, changed, coalesce(argument, '_{source}'), sources,
			coalesce(length_limit || ' - length(b.suffix)', 'length(y."merge former")'),
			CASE WHEN fits IS NULL THEN '' ELSE format('WHERE (SELECT %s FROM (SELECT %s) AS %I)', fits,
				(SELECT string_agg(CASE WHEN c.name = changed THEN format('left(y."merge former", n) || b.suffix AS %I', c.name) ELSE format('y.%I', c.name) END, ', ')
				 FROM snowflake_migrate_internal.plan_columns AS c WHERE c.run = run_ AND c.no = no_), name) END,
			own, changed, changed);
		GET DIAGNOSTICS done = ROW_COUNT;
		IF done < total THEN
			PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, plan.relation::text, label,
				format('no suffix makes column %I both unique and valid', changed), total - done, remark, 'Choose another suffix or another policy.');
			RETURN 0;
		END IF;
		RETURN total;
	END CASE;

	/* What stood for one of these rows, and not for a row of the target, stands for what it became. */
	EXECUTE format('UPDATE %s AS m SET (%s, action) = ROW (%s, CASE %L WHEN ''skip'' THEN ''s'' WHEN ''keep_target'' THEN ''k'' WHEN ''keep_source'' THEN ''k'' ELSE m.action END) FROM pg_temp.snowflake_merge_clash AS c '
		'WHERE m.action IN (''m'', ''k'') AND %s AND NOT EXISTS (SELECT FROM pg_temp.snowflake_merge_clash AS x WHERE x.source = m.source AND %s) '
		'AND NOT EXISTS (SELECT FROM %s AS t WHERE %s)',
		map, snowflake_migrate_internal.key_list('n#', plan.key),
		snowflake_migrate_internal.key_list(CASE policy WHEN 'skip' THEN 'NULL' ELSE 'coalesce(c.t#, c.w#)' END, plan.key), policy,
		snowflake_migrate_internal.key_list('m.n# = c.n#', plan.key, ' AND '), snowflake_migrate_internal.key_list('m.o# = x.o#', plan.key, ' AND '),
		snowflake_migrate_internal.only(plan.relation), snowflake_migrate_internal.key_list('t.@ = c.n#', plan.key, ' AND '));

	EXECUTE format('INSERT INTO snowflake_migrate.records (run, source, relation, constraint_name, policy, old_key, new_key) '
		'SELECT %s, (%L::name[])[c.source], %L, %L, %L, %s, %s FROM pg_temp.snowflake_merge_clash AS c WHERE %L NOT IN (''match'', ''same_id'')',
		run_, sources, plan.relation, label, policy, snowflake_migrate_internal.key_text('c.o#', plan.key),
		CASE WHEN policy = 'skip' THEN 'NULL' ELSE snowflake_migrate_internal.key_text('coalesce(c.t#, c.w#)', plan.key) END, policy);
	RETURN total;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.resolve(bigint, int, name, text[], text[], boolean, text, text, text, name)
	IS 'for snowflake_migrate.merge()''s own use: what becomes of the rows that clash in one unique index';

/*
 * References of one table of one source whose row the source does not have, or whose row is skipped: what the declaration says of
 * the former; of the latter, a row that must refer to it is skipped too, and one that may not loses the reference.  Returns how many
 * rows were skipped.
 */
CREATE FUNCTION snowflake_migrate_internal.dangling(run_ bigint, no_ int, source_ int) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	source record;
	ref record;
	parts record;
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map_' || no_);
	skip CONSTANT text := 'WITH gone AS (UPDATE %s AS g SET (%s, action) = ROW (%s, ''s'') FROM (SELECT DISTINCT %s FROM %s AND m.action = ''c'') AS x '
		'WHERE g.source = %s AND %s RETURNING %s AS k) '
		'INSERT INTO snowflake_migrate.records (run, source, relation, constraint_name, policy, old_key) SELECT %s, %L, %L, %L, ''skip'', k FROM gone';
	key_text text;
	lost text;			-- the rows that have such a reference
	lost_value text;
	found bigint;
	example text;
	any_skipped boolean;
	skipped bigint := 0;
	done bigint;
	fk record;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	SELECT s.relation, r.sources[source_] AS name INTO STRICT source
		FROM snowflake_migrate_internal.plan_sources AS s JOIN snowflake_migrate.runs AS r ON r.run = s.run
		WHERE s.run = run_ AND s.no = no_ AND s.source = source_;
	parts := snowflake_migrate_internal.rows_parts(run_, no_, source_, plan.kind <> 'none', false);
	key_text := CASE WHEN plan.kind = 'none' THEN 'NULL::text' ELSE snowflake_migrate_internal.key_text('m.o#', plan.key) END;

	FOR ref IN
		SELECT r.*, p.relation AS parent, p.key[1] AS parent_key, p.mode AS parent_mode, s.relation AS source_parent,
			format('s.%I', r.name) AS value, snowflake_migrate_internal.relation(run_, 'map_' || r.referenced) AS map,
			CASE WHEN r.condition IS NOT NULL THEN format('s.%I', 'snowflake condition ' || r.id) END AS condition_column,
			t.attnotnull
		FROM snowflake_migrate_internal.plan_references AS r
			JOIN snowflake_migrate_internal.plan_tables AS p ON p.run = run_ AND p.no = r.referenced
			JOIN pg_attribute AS t ON t.attrelid = plan.relation AND t.attname = r.name
			JOIN pg_attribute AS a ON a.attrelid = source.relation AND a.attname = r.name AND NOT a.attisdropped
			LEFT JOIN snowflake_migrate_internal.plan_sources AS s ON s.run = run_ AND s.no = r.referenced AND s.source = source_
		WHERE r.run = run_ AND r.no = no_
		ORDER BY r.id
	LOOP
		IF ref.path IS NOT NULL THEN
			lost := format(', jsonb_path_query((%s)::jsonb, %L, silent => true) AS p (part), snowflake_migrate_internal.json_id(p.part) AS e (id) '
				'WHERE e.id IS NOT NULL AND NOT EXISTS (SELECT FROM %s AS f WHERE f.source = %s AND f.o1 = e.id)', ref.value, ref.path, ref.map, source_);
			lost_value := 'e.id';
		ELSIF ref.elements THEN
			lost := format(', unnest(%s) AS e (id) WHERE e.id IS NOT NULL AND NOT EXISTS (SELECT FROM %s AS f WHERE f.source = %s AND f.o1 = e.id)',
				ref.value, ref.map, source_);
			lost_value := 'e.id';
		ELSE
			lost := format(' WHERE %s IS NOT NULL AND r%s.o1 IS NULL', ref.value, ref.id);
			lost_value := ref.value;
		END IF;
		lost := parts.origin || lost || coalesce(' AND ' || ref.condition_column, '');

		IF ref.elements AND plan.kind <> 'none' THEN
			EXECUTE format('SELECT count(*), min(%s) FROM %s WHERE array_ndims(%s) > 1 OR array_lower(%s, 1) <> 1', key_text, parts.origin, ref.value, ref.value) INTO found, example;
			IF found > 0 THEN
				PERFORM snowflake_migrate_internal.find(run_, 'error', source.name, plan.relation::text, ref.name,
					'arrays of ids have several dimensions, or do not begin with 1', found, example, 'Give a view that has them in another form in the place of the table.');
			END IF;
		ELSIF ref.path IS NOT NULL AND ref.path LIKE '%keyvalue()%' THEN
			/* An error where keys would become one. */
			EXECUTE format('SELECT count(x.document) FROM (SELECT %s FROM %s) AS x (document)', parts.expressions[array_position(parts.names, ref.name::text)], parts.origin) INTO found;
		END IF;

		/* Where the source has the same foreign key, none dangles. */
		IF NOT EXISTS (SELECT FROM pg_constraint AS f
					   WHERE f.contype = 'f' AND f.convalidated AND f.conrelid = source.relation AND f.confrelid = ref.source_parent
						AND ref.path IS NULL AND NOT ref.elements AND ref.parent_mode <> 'ignore'
						AND f.conkey = ARRAY[(SELECT a.attnum FROM pg_attribute AS a WHERE a.attrelid = source.relation AND a.attname = ref.name)]
						AND f.confkey = ARRAY[(SELECT a.attnum FROM pg_attribute AS a WHERE a.attrelid = ref.source_parent AND a.attname = ref.parent_key)]) THEN
			EXECUTE format('SELECT count(*), string_agg(x.example, ''; '') FILTER (WHERE x.n <= 3) '
						   'FROM (SELECT concat_ws('': '', %s, %s) AS example, row_number() OVER (ORDER BY %s) AS n FROM %s) AS x',
						   key_text, lost_value, lost_value, lost) INTO found, example;
			IF found > 0 THEN
				PERFORM snowflake_migrate_internal.find(run_,
					CASE WHEN ref.dangling = 'error' OR (ref.dangling = 'null' AND ref.attnotnull AND ref.path IS NULL AND NOT ref.elements)
							OR (ref.dangling = 'skip' AND plan.kind = 'none') THEN 'error' ELSE 'warning' END,
					source.name, plan.relation::text, ref.name,
					format('references to %s dangle', ref.parent)
						|| CASE ref.dangling
							WHEN 'null' THEN CASE WHEN ref.attnotnull AND ref.path IS NULL AND NOT ref.elements THEN ', and the column cannot be null' ELSE ': they become null' END
							WHEN 'keep' THEN ': they stay as they are'
							WHEN 'skip' THEN CASE plan.kind WHEN 'none' THEN ', and of a table without a key no rows can be skipped' ELSE ': their rows are skipped' END
							ELSE '' END,
					found, example,
					CASE WHEN ref.dangling = 'error' THEN format('Declare what becomes of them, for example: SELECT %s(%L, %L, %L, %L, %L, ''null'');',
						'snowflake_migrate.declare_reference', plan.relation, ref.name, ref.parent, ref.condition, ref.path) END);
				IF ref.dangling = 'skip' AND plan.kind <> 'none' THEN
					EXECUTE format(skip, map, snowflake_migrate_internal.key_list('n#', plan.key), snowflake_migrate_internal.key_list('NULL', plan.key),
						snowflake_migrate_internal.key_list('m.o#', plan.key), lost, source_,
						snowflake_migrate_internal.key_list('g.o# = x.o#', plan.key, ' AND '), snowflake_migrate_internal.key_text('g.o#', plan.key),
						run_, source.name, plan.relation, ref.name);
					GET DIAGNOSTICS done = ROW_COUNT;
					skipped := skipped + done;
				END IF;
			END IF;
		END IF;

		EXECUTE format('SELECT EXISTS (SELECT FROM %s AS m WHERE m.source = %s AND m.action = ''s'')', ref.map, source_) INTO any_skipped;
		CONTINUE WHEN NOT any_skipped OR NOT ref.attnotnull OR ref.path IS NOT NULL OR ref.elements;
		lost := format('%s WHERE r%s.o1 IS NOT NULL AND r%s.n1 IS NULL', parts.origin, ref.id, ref.id);
		IF plan.kind = 'none' THEN
			EXECUTE format('SELECT count(*) FROM %s', lost) INTO found;
			IF found > 0 THEN
				PERFORM snowflake_migrate_internal.find(run_, 'error', source.name, plan.relation::text, ref.name,
					format('rows must refer to rows of %s that are skipped, and of a table without a key no rows can be skipped', ref.parent),
					found, NULL, 'Choose another policy.');
			END IF;
		ELSE
			EXECUTE format(skip, map, snowflake_migrate_internal.key_list('n#', plan.key), snowflake_migrate_internal.key_list('NULL', plan.key),
				snowflake_migrate_internal.key_list('m.o#', plan.key), lost, source_,
				snowflake_migrate_internal.key_list('g.o# = x.o#', plan.key, ' AND '), snowflake_migrate_internal.key_text('g.o#', plan.key),
				run_, source.name, plan.relation, ref.name);
			GET DIAGNOSTICS done = ROW_COUNT;
			skipped := skipped + done;
		END IF;
	END LOOP;

	/* Where the parent's key is not renumbered itself, the values of the columns do not tell that its row is skipped. */
	IF plan.kind <> 'none' THEN
		FOR fk IN
			SELECT p.no, p.relation, p.key, c.conname,
				(SELECT array_agg(a.attname ORDER BY array_position(p.key, b.attname)) FROM unnest(c.conkey, c.confkey) AS k (attnum, parent_attnum)
				 JOIN pg_attribute AS a ON a.attrelid = c.conrelid AND a.attnum = k.attnum
				 JOIN pg_attribute AS b ON b.attrelid = c.confrelid AND b.attnum = k.parent_attnum) AS columns,
				(SELECT array_agg(b.attname ORDER BY array_position(p.key, b.attname)) FROM unnest(c.confkey) AS k (attnum)
				 JOIN pg_attribute AS b ON b.attrelid = c.confrelid AND b.attnum = k.attnum) AS parent_columns
			FROM pg_constraint AS c JOIN snowflake_migrate_internal.plan_tables AS p
					ON p.run = run_ AND p.relation = coalesce(pg_partition_root(c.confrelid), c.confrelid) AND p.kind = 'key'
			WHERE c.contype = 'f' AND c.conparentid = 0 AND coalesce(pg_partition_root(c.conrelid), c.conrelid) = plan.relation
		LOOP
			CONTINUE WHEN fk.parent_columns <> fk.key;
			EXECUTE format('SELECT EXISTS (SELECT FROM %s AS m WHERE m.source = %s AND m.action = ''s'')',
						   snowflake_migrate_internal.relation(run_, 'map_' || fk.no), source_) INTO any_skipped;
			CONTINUE WHEN NOT any_skipped;
			EXECUTE format(skip, map, snowflake_migrate_internal.key_list('n#', plan.key), snowflake_migrate_internal.key_list('NULL', plan.key),
				snowflake_migrate_internal.key_list('m.o#', plan.key),
				format('%s JOIN %s AS f ON f.source = %s AND f.action = ''s'' AND %s WHERE true', parts.origin,
					   snowflake_migrate_internal.relation(run_, 'map_' || fk.no), source_, snowflake_migrate_internal.key_list('f.o# = s.@', fk.columns, ' AND ')),
				source_, snowflake_migrate_internal.key_list('g.o# = x.o#', plan.key, ' AND '), snowflake_migrate_internal.key_text('g.o#', plan.key),
				run_, source.name, plan.relation, fk.conname);
			GET DIAGNOSTICS done = ROW_COUNT;
			skipped := skipped + done;
		END LOOP;
	END IF;
	RETURN skipped;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.dangling(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: references to rows that are not there';

/* Ranks are numbered anew over the rows of the target and of all sources: rank_NO has what becomes of the target's. */
CREATE FUNCTION snowflake_migrate_internal.rank(
	run_ bigint,
	no_ int,
	label name,
	expressions text[],
	predicate text,
	argument text,
	changed name) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map_' || no_);
	change CONSTANT text := snowflake_migrate_internal.relation(run_, 'change_' || no_);
	rank CONSTANT text := snowflake_migrate_internal.relation(run_, 'rank_' || no_);
	columns text;
	others text;
	ranked text;
BEGIN
	SELECT t.*, c.relname INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t JOIN pg_class AS c ON c.oid = t.relation
		WHERE t.run = run_ AND t.no = no_;
	SELECT string_agg(quote_ident(c.name), ', ' ORDER BY c.position) INTO columns
		FROM snowflake_migrate_internal.plan_columns AS c WHERE c.run = run_ AND c.no = no_;
	/* A row without a rank, or outside of the index, stays as it is. */
	ranked := format(' AND %I IS NOT NULL%s', changed, coalesce(' AND (' || predicate || ')', ''));
	SELECT string_agg(e, ', ') INTO others FROM unnest(expressions) AS e WHERE e <> '(' || quote_ident(changed) || ')';

	IF to_regclass('pg_temp.snowflake_merge_rank') IS NOT NULL THEN
		DROP TABLE pg_temp.snowflake_merge_rank;
	END IF;
	EXECUTE format(
		'CREATE TEMPORARY TABLE snowflake_merge_rank ON COMMIT DROP AS '
		'SELECT "merge source" AS source, %s, %s, %I AS old, row_number() OVER (%s ORDER BY %s, "merge source", %I) AS new '
		'FROM (SELECT 0 AS "merge source", %s, %s, %s FROM %s AS %I WHERE NOT EXISTS (SELECT FROM %s AS m WHERE m.action = ''r'' AND %s)%s UNION ALL %s) AS %I',
		snowflake_migrate_internal.key_list('"merge o#" AS o#', plan.key), snowflake_migrate_internal.key_list('"merge n#" AS n#', plan.key), changed,
		coalesce('PARTITION BY ' || others, ''), argument, changed,
		snowflake_migrate_internal.key_list('NULL AS "merge o#"', plan.key), snowflake_migrate_internal.key_list('@ AS "merge n#"', plan.key),
		columns, snowflake_migrate_internal.only(plan.relation), plan.relname, map,
		snowflake_migrate_internal.key_list('m.n# = ' || quote_ident(plan.relname) || '.@', plan.key, ' AND '), ranked,
		snowflake_migrate_internal.all_rows(run_, no_, snowflake_migrate_internal.key_list('"merge o#"', plan.key) || ', '
			|| snowflake_migrate_internal.key_list('"merge n#"', plan.key) || ', ' || columns, substr(ranked, 6)),
		plan.relname);
	EXECUTE format('INSERT INTO %s AS v (source, %s, tries, %I) SELECT r.source, %s, 0, r.new FROM pg_temp.snowflake_merge_rank AS r WHERE r.source > 0 '
		'ON CONFLICT (source, %s) DO UPDATE SET %I = excluded.%I',
		change, snowflake_migrate_internal.key_list('o#', plan.key), changed, snowflake_migrate_internal.key_list('r.o#', plan.key),
		snowflake_migrate_internal.key_list('o#', plan.key), changed, changed);
	/* With what is needed to put them back. */
	EXECUTE format('CREATE TABLE %s AS SELECT %s, r.old, r.new FROM pg_temp.snowflake_merge_rank AS r WHERE r.source = 0 AND r.old IS DISTINCT FROM r.new',
				   rank, snowflake_migrate_internal.key_list('r.n#', plan.key));
	/* A row that takes a source's values gets that row's rank with the others, so that it is in nobody's way. */
	EXECUTE format('INSERT INTO %s SELECT %s, t.%I, r.new FROM pg_temp.snowflake_merge_rank AS r JOIN %s AS m ON m.source = r.source AND m.action = ''r'' AND %s '
		'JOIN %s AS t ON %s WHERE t.%I IS DISTINCT FROM r.new', rank, snowflake_migrate_internal.key_list('r.n#', plan.key), changed, map,
		snowflake_migrate_internal.key_list('m.o# = r.o#', plan.key, ' AND '), snowflake_migrate_internal.only(plan.relation),
		snowflake_migrate_internal.key_list('t.@ = r.n#', plan.key, ' AND '), changed);
	EXECUTE format('INSERT INTO snowflake_migrate.records (run, source, relation, constraint_name, policy, old_key, new_key, column_name, old_value, new_value) '
		'SELECT u.run, u.sources[r.source], %L, %L, ''rerank'', CASE WHEN r.source > 0 THEN %s END, %s, %L, r.old, r.new '
		'FROM pg_temp.snowflake_merge_rank AS r, snowflake_migrate.runs AS u WHERE u.run = %s AND r.old IS DISTINCT FROM r.new',
		plan.relation, label, snowflake_migrate_internal.key_text('r.o#', plan.key), snowflake_migrate_internal.key_text('r.n#', plan.key), changed, run_);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.rank(bigint, int, name, text[], text, text, name)
	IS 'for snowflake_migrate.merge()''s own use: numbers ranks anew';

/* CHECKs, which the sources may not have, exclusion constraints, and partitions that are missing, of one table. */
CREATE FUNCTION snowflake_migrate_internal.constraints(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	con record;
	find record;
BEGIN
	SELECT t.*, c.relname INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t JOIN pg_class AS c ON c.oid = t.relation
		WHERE t.run = run_ AND t.no = no_;
	IF (SELECT count(*) > 1 FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_) THEN
		PERFORM snowflake_migrate_internal.find(run_, 'warning', NULL, plan.relation::text, c.conname,
				'rows of different sources that clash in an exclusion constraint are not looked for', NULL, NULL, 'Merge the sources one after the other.')
			FROM pg_constraint AS c WHERE c.conrelid = plan.relation AND c.contype = 'x';
	END IF;
	FOR con IN
		SELECT k.label, format('(%s) IS FALSE', k.expression) AS violated, 'rows as they become violate the CHECK' AS problem,
			'New ids are in order of time: without a declared time of creation of what the columns refer to, they are in the order of the old ones. '
				'Else change these rows in the source, or put a view that leaves them out in its place.' AS advice
		FROM snowflake_migrate_internal.checks(plan.relation) AS k
		UNION ALL
		SELECT c.conname,
			format('EXISTS (SELECT FROM (SELECT %s FROM %s AS %I%s) AS t WHERE %s)',
				(SELECT string_agg(format('(%s) AS "merge e%s"', pg_get_indexdef(c.conindid, n, true), n), ', ') FROM generate_subscripts(c.conexclop, 1) AS n),
				snowflake_migrate_internal.only(plan.relation), plan.relname, coalesce(' WHERE ' || pg_get_expr(i.indpred, i.indrelid), ''),
				(SELECT string_agg(format('t."merge e%s" OPERATOR(%I.%s) (%s)', o.n, s.nspname, p.oprname, pg_get_indexdef(c.conindid, o.n::int, true)), ' AND ')
				 FROM unnest(c.conexclop) WITH ORDINALITY AS o (operator, n) JOIN pg_operator AS p ON p.oid = o.operator
				 JOIN pg_namespace AS s ON s.oid = p.oprnamespace)) || coalesce(' AND (' || pg_get_expr(i.indpred, i.indrelid) || ')', ''),
			'rows clash with the target''s in the exclusion constraint',
			'Change these rows in the source, or put a view that leaves them out in its place.'
		FROM pg_constraint AS c JOIN pg_index AS i ON i.indexrelid = c.conindid
		WHERE c.conrelid = plan.relation AND c.contype = 'x'
		UNION ALL
		SELECT NULL, coalesce('(' || string_agg('(' || coalesce(pg_get_partition_constraintdef(l.relid), 'true') || ')', ' OR ') || ') IS NOT TRUE', 'true'),
			'no partition takes the rows', 'Create the partitions that are missing, or a default one.'
		FROM pg_class AS c LEFT JOIN pg_partition_tree(c.oid) AS l ON l.isleaf AND l.relid <> c.oid
		WHERE c.oid = plan.relation AND c.relkind = 'p' GROUP BY c.oid
	LOOP
		FOR find IN EXECUTE format(
			'SELECT x.source, count(*) AS count, string_agg(x.example, ''; '') FILTER (WHERE x.n <= 3) AS example FROM ('
			'SELECT q.*, row_number() OVER (PARTITION BY q.source ORDER BY q.example) AS n FROM (%s) AS q (source, example)) AS x GROUP BY x.source ORDER BY x.source',
			snowflake_migrate_internal.all_rows(run_, no_,
				CASE WHEN plan.kind = 'none' THEN 'NULL::text' ELSE snowflake_migrate_internal.key_text('"merge o#"', plan.key) END, con.violated))
		LOOP
			PERFORM snowflake_migrate_internal.find(run_, 'error', (SELECT r.sources[find.source] FROM snowflake_migrate.runs AS r WHERE r.run = run_),
				plan.relation::text, con.label, con.problem, find.count, find.example, con.advice);
		END LOOP;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.constraints(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: CHECKs and exclusion constraints over rows as they become';

/* The maps of one table, empty. */
CREATE FUNCTION snowflake_migrate_internal.create_map(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	old_columns text;
	new_columns text;
	changes text;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	SELECT string_agg(format('o%s %s', k.n, k.type), ', ' ORDER BY k.n), string_agg(format('n%s %s', k.n, k.type), ', ' ORDER BY k.n) INTO old_columns, new_columns
		FROM snowflake_migrate_internal.key_values(plan.relation, plan.relation, plan.key) AS k;
	IF plan.kind = 'id' THEN
		EXECUTE format('CREATE TABLE %s PARTITION OF %s FOR VALUES IN (%s)', snowflake_migrate_internal.relation(run_, 'map_' || no_),
					   snowflake_migrate_internal.relation(run_, 'map'), no_);
	ELSE
		EXECUTE format('CREATE TABLE %s (source int NOT NULL, %s, %s, action "char" NOT NULL)', snowflake_migrate_internal.relation(run_, 'map_' || no_),
					   old_columns, new_columns);
	END IF;
	IF EXISTS (SELECT FROM snowflake_migrate.declared_policies AS p WHERE p.relation = plan.relation AND p.policy = 'keep_source')
		AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_) THEN
		EXECUTE format('CREATE TABLE %s (LIKE %s)', snowflake_migrate_internal.relation(run_, 'former_' || no_), plan.relation);
	END IF;
	SELECT string_agg(format('%I %s, %I text', c.name, format_type(a.atttypid, a.atttypmod), 'old ' || c.name), ', ') INTO changes
		FROM snowflake_migrate_internal.plan_columns AS c JOIN pg_attribute AS a ON a.attrelid = plan.relation AND a.attname = c.name
		WHERE c.run = run_ AND c.no = no_ AND c.changed_by IS NOT NULL;
	IF changes IS NOT NULL THEN
		EXECUTE format('CREATE TABLE %s (source int NOT NULL, %s, tries int NOT NULL, %s, PRIMARY KEY (source, %s))',
					   snowflake_migrate_internal.relation(run_, 'change_' || no_), old_columns, changes, snowflake_migrate_internal.key_list('o#', plan.key));
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.create_map(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: creates the maps of a table';

/* A query for the keys o1 .. of a source, in a table whose key is not renumbered, and what n1 .. becomes of each. */
CREATE FUNCTION snowflake_migrate_internal.keys(run_ bigint, no_ int, source_ int) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT format('SELECT %s, %s FROM %s',
		(SELECT string_agg(format('%s AS o%s', k.value, k.n), ', ' ORDER BY k.n) FROM snowflake_migrate_internal.key_values(t.relation, s.relation, t.key) AS k),
		(SELECT string_agg(format('%s AS n%s', p.expressions[array_position(p.names, k.name::text)], k.n), ', ' ORDER BY k.n)
		 FROM unnest(t.key) WITH ORDINALITY AS k (name, n)),
		p.origin)
	FROM snowflake_migrate_internal.plan_tables AS t JOIN snowflake_migrate_internal.plan_sources AS s USING (run, no),
		snowflake_migrate_internal.rows_parts(run_, no_, source_, false, false) AS p
	WHERE t.run = run_ AND t.no = no_ AND s.source = source_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.keys(bigint, int, int)
	IS 'for snowflake_migrate.merge()''s own use: a query for keys, and what becomes of them';

/* Fills the map of a table whose key is not renumbered, and indexes the map of any. */
CREATE FUNCTION snowflake_migrate_internal.fill_map(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	source int;
	detail text;
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map_' || no_);
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	IF plan.kind = 'key' THEN
		FOR source IN SELECT s.source FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_ ORDER BY s.source LOOP
			EXECUTE format('INSERT INTO %s (source, %s, %s, action) SELECT %s, q.*, ''c'' FROM (%s) AS q', map,
				snowflake_migrate_internal.key_list('o#', plan.key), snowflake_migrate_internal.key_list('n#', plan.key), source,
				snowflake_migrate_internal.keys(run_, no_, source));
		END LOOP;
	END IF;
	BEGIN
		/* The source last, as it tells the least. */
		EXECUTE format('CREATE UNIQUE INDEX ON %s (%s, source)', map, snowflake_migrate_internal.key_list('o#', plan.key));
	EXCEPTION WHEN unique_violation THEN
		GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
		RAISE EXCEPTION USING ERRCODE = 'unique_violation',
			MESSAGE = format('a source has several rows of table %s with the same key', plan.relation),
			DETAIL = detail, HINT = 'In the detail, source is a place in the list of the sources.';
	END;
	EXECUTE format('ANALYZE %s', map);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.fill_map(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: fills and indexes the map of a table';

/*
 * The keys of one table that are made of others' keys, anew, where those may have changed since.  Returns whether any did.
 */
CREATE FUNCTION snowflake_migrate_internal.refresh_map(run_ bigint, no_ int) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	source int;
	done bigint;
	changed boolean := false;
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	FOR source IN SELECT s.source FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_ ORDER BY s.source LOOP
		EXECUTE format('UPDATE %s AS m SET (%s, action) = ROW (%s, m.action) FROM (%s) AS q WHERE m.source = %s AND m.action = ''c'' AND %s AND (%s)',
			snowflake_migrate_internal.relation(run_, 'map_' || no_), snowflake_migrate_internal.key_list('n#', plan.key),
			snowflake_migrate_internal.key_list('q.n#', plan.key), snowflake_migrate_internal.keys(run_, no_, source), source,
			snowflake_migrate_internal.key_list('m.o# = q.o#', plan.key, ' AND '),
			snowflake_migrate_internal.key_list('m.n# IS DISTINCT FROM q.n#', plan.key, ' OR '));
		GET DIAGNOSTICS done = ROW_COUNT;
		changed := done > 0 OR changed;
	END LOOP;
	RETURN changed;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refresh_map(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: makes keys of keys anew';

/* What clashes in one table, once over all its unique indexes.  Returns whether anything changed. */
CREATE FUNCTION snowflake_migrate_internal.pass(run_ bigint, no_ int) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	plan record;
	source int;
	u record;
	changed boolean := false;
	found bigint;
	example text;
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map_' || no_);
BEGIN
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	IF plan.kind = 'key' AND EXISTS (SELECT FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.map_step = plan.map_step AND t.no <> no_) THEN
		changed := snowflake_migrate_internal.refresh_map(run_, no_);
	END IF;
	FOR source IN SELECT s.source FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_ ORDER BY s.source LOOP
		changed := snowflake_migrate_internal.dangling(run_, no_, source) > 0 OR changed;
	END LOOP;
	IF plan.kind = 'none' THEN
		RETURN changed;
	END IF;
	FOR u IN SELECT x.* FROM snowflake_migrate_internal.unique(run_, no_) AS x WHERE x.policy <> 'rerank' LOOP
		IF plan.kind <> 'id' OR '(' || quote_ident(plan.key[1]) || ')' <> ALL (u.expressions) THEN
			changed := snowflake_migrate_internal.resolve(run_, no_, u.label, u.expressions, u.operators, u.distinct_nulls, u.predicate,
														   u.policy, u.argument, u.changed) > 0 OR changed;
		ELSE
			/* New ids are in no table: only those that are kept can be there. */
			EXECUTE format('SELECT count(*), min(m.n1)::text FROM %s AS m WHERE m.action = ''c'' AND m.n1 = m.o1 '
				'AND (EXISTS (SELECT FROM %s AS t WHERE t.%I = m.n1) OR EXISTS (SELECT FROM %s AS f WHERE f.n1 = m.n1 AND f.source < m.source AND f.action = ''c''))',
				map, snowflake_migrate_internal.only(plan.relation), plan.key[1], map) INTO found, example;
			IF found > 0 THEN
				PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, plan.relation::text, u.label,
					'snowflake ids of a source are in the target, or in another source, as well', found, example,
					format('If these are other rows: SELECT %s(%L, %L, ''renumber'');', 'snowflake_migrate.declare_policy', plan.relation, u.label));
			END IF;
		END IF;
	END LOOP;
	RETURN changed;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.pass(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: what clashes in a table';

/* What is left to do for one table when it is known which of its rows clash, and what is reported of it. */
CREATE FUNCTION snowflake_migrate_internal.finish_map(run_ bigint, no_ int) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	run_row record;
	plan record;
	source record;
	u record;
	parts record;
	statement text;
	found bigint;
	example text;
	map CONSTANT text := snowflake_migrate_internal.relation(run_, 'map_' || no_);
BEGIN
	SELECT r.* INTO STRICT run_row FROM snowflake_migrate.runs AS r WHERE r.run = run_;
	SELECT t.* INTO STRICT plan FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.no = no_;
	IF plan.kind <> 'none' THEN
		FOR u IN SELECT x.* FROM snowflake_migrate_internal.unique(run_, no_) AS x WHERE x.policy IN ('rerank', 'suffix') LOOP
			IF u.policy = 'rerank' THEN
				PERFORM snowflake_migrate_internal.rank(run_, no_, u.label, u.expressions, u.predicate, u.argument, u.changed);
			ELSE
				EXECUTE format('INSERT INTO snowflake_migrate.records (run, source, relation, constraint_name, policy, old_key, new_key, column_name, old_value, new_value) '
					'SELECT %s, (%L::name[])[v.source], %L, %L, ''suffix'', %s, %s, %L, v.%I, v.%I FROM %s AS v JOIN %s AS m ON m.source = v.source AND %s WHERE v.%I IS NOT NULL',
					run_, run_row.sources, plan.relation, u.label, snowflake_migrate_internal.key_text('m.o#', plan.key),
					snowflake_migrate_internal.key_text('m.n#', plan.key), u.changed, 'old ' || u.changed, u.changed,
					snowflake_migrate_internal.relation(run_, 'change_' || no_), map, snowflake_migrate_internal.key_list('m.o# = v.o#', plan.key, ' AND '),
					'old ' || u.changed);
			END IF;
		END LOOP;
		INSERT INTO snowflake_migrate.records (run, source, relation, constraint_name, policy, old_key, new_key)
		SELECT run_, m.source, m.relation, p.constraint_name, 'renumber', m.old_key, m.new_key
		FROM snowflake_migrate.declared_policies AS p JOIN snowflake_migrate.map AS m ON m.run = run_ AND m.relation = plan.relation::text
		WHERE p.relation = plan.relation AND p.policy = 'renumber' AND plan.kind = 'id' AND m.action = 'copied' AND m.new_key <> m.old_key
			AND m.old_key::bigint > snowflake_migrate_internal.last_serial();
		/* What a row became may have changed once more since it was put on record. */
		EXECUTE format('UPDATE snowflake_migrate.records AS r SET new_key = CASE WHEN m.action <> ''s'' THEN %s END, policy = CASE m.action WHEN ''k'' THEN ''keep_target'' ELSE r.policy END FROM %s AS m '
			'WHERE r.run = %s AND r.relation = %L AND r.source = (%L::name[])[m.source] AND r.policy IN (''keep_target'', ''keep_source'') AND r.old_key = %s',
			snowflake_migrate_internal.key_text('m.n#', plan.key), map, run_, plan.relation, run_row.sources, snowflake_migrate_internal.key_text('m.o#', plan.key));
	END IF;
	PERFORM snowflake_migrate_internal.constraints(run_, no_);
	INSERT INTO snowflake_migrate.report (run, severity, source, relation, object, problem, count, example)
	SELECT run_, 'info', r.source, r.relation, r.constraint_name,
		CASE r.policy WHEN 'suffix' THEN 'rows clash: they get a suffix' WHEN 'keep_target' THEN 'rows clash: the row that was there first stays'
			WHEN 'keep_source' THEN 'rows clash: the source''s row takes the place' WHEN 'skip' THEN 'rows are skipped'
			WHEN 'rerank' THEN 'ranks are numbered anew' WHEN 'renumber' THEN 'snowflake ids clash: they get new ones' END,
		count(*), min(concat_ws(' ', r.old_key, r.old_value || ' -> ' || r.new_value))
	FROM snowflake_migrate.records AS r WHERE r.run = run_ AND r.relation = plan.relation::text
	GROUP BY r.source, r.relation, r.constraint_name, r.policy ORDER BY r.source, r.constraint_name, r.policy;

	FOR source IN SELECT s.* FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_ AND s.no = no_ ORDER BY s.source LOOP
		IF plan.mode IN ('match', 'same_id') THEN
			EXECUTE format('SELECT count(*) FROM %s AS m WHERE m.source = %s AND m.action = ''m''', map, source.source) INTO found;
			IF found > 0 THEN
				PERFORM snowflake_migrate_internal.find(run_, 'info', run_row.sources[source.source], plan.relation::text, NULL, 'rows are there already', found, NULL, NULL);
			END IF;
			parts := snowflake_migrate_internal.rows_parts(run_, no_, source.source, true, false);
			SELECT format('SELECT count(*), min(%s) FROM %s JOIN %s AS t ON %s WHERE m.action = ''m'' AND ',
					snowflake_migrate_internal.key_text('m.o#', plan.key), parts.origin, snowflake_migrate_internal.only(plan.relation),
					snowflake_migrate_internal.key_list('t.@ = m.n#', plan.key, ' AND '))
					|| snowflake_migrate_internal.differs(plan.relation, array_agg(e.name), array_agg(e.expression)) INTO statement
				FROM unnest(parts.names, parts.expressions) WITH ORDINALITY AS e (name, expression, n)
				WHERE e.name <> ALL (plan.key::text[]) AND e.name <> ALL (coalesce(plan.natural_key, '{}')::text[]);
			IF statement IS NOT NULL THEN
				EXECUTE statement INTO found, example;
				IF found = 0 AND cardinality(run_row.sources) > 1 THEN
					/* Or than the row of another source that is added. */
					EXECUTE replace(statement, format(' JOIN %s AS t ON ', snowflake_migrate_internal.only(plan.relation)),
									format(' JOIN (%s) AS t ON ', snowflake_migrate_internal.all_rows(run_, no_,
										(SELECT string_agg(quote_ident(c.name), ', ' ORDER BY c.position) FROM snowflake_migrate_internal.plan_columns AS c WHERE c.run = run_ AND c.no = no_),
										NULL))) INTO found, example;
				END IF;
				IF found > 0 THEN
					PERFORM snowflake_migrate_internal.find(run_,
						CASE WHEN plan.mode = 'same_id' OR 'differences' = ANY (plan.accept) THEN 'warning' ELSE 'error' END,
						run_row.sources[source.source], plan.relation::text, NULL, 'rows that are there already differ in other columns', found, example,
						CASE WHEN plan.mode = 'match' AND NOT 'differences' = ANY (plan.accept) THEN 'Make them equal, or accept differences: the values that are there stay.'
							ELSE 'The values that are there stay.' END);
				END IF;
			END IF;
		END IF;
		EXECUTE CASE WHEN plan.kind = 'none' THEN format('SELECT count(*) FROM %s', snowflake_migrate_internal.only(source.relation))
			ELSE format('SELECT count(*) FROM %s AS m WHERE m.source = %s AND m.action IN (''c'', ''r'')', map, source.source) END INTO found;
		UPDATE snowflake_migrate_internal.plan_sources AS s SET rows_to_do = found WHERE s.run = run_ AND s.no = no_ AND s.source = source.source;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.finish_map(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: completes the map of a table';

/* Makes all maps of a run, and adds to its report what stands in the way. */
CREATE FUNCTION snowflake_migrate_internal.make_maps(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	step int;
	table_no int;
	passes int;
	changed boolean;
BEGIN
	/* These sort and hash whole tables, as CREATE INDEX does. */
	PERFORM set_config('work_mem', current_setting('maintenance_work_mem'), true);
	EXECUTE format('CREATE SCHEMA %I', 'snowflake_merge_' || run_);
	EXECUTE format('CREATE TABLE %s (no int NOT NULL, source int NOT NULL, o1 bigint NOT NULL, n1 bigint, action "char" NOT NULL) PARTITION BY LIST (no)',
				   snowflake_migrate_internal.relation(run_, 'map'));
	FOR table_no IN SELECT t.no FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ AND t.kind <> 'none' ORDER BY t.no LOOP
		PERFORM snowflake_migrate_internal.create_map(run_, table_no);
	END LOOP;
	PERFORM snowflake_migrate_internal.number(run_, n) FROM (SELECT generate_subscripts(r.sources, 1) FROM snowflake_migrate.runs AS r WHERE r.run = run_) AS s (n);

	FOR step IN SELECT DISTINCT t.map_step FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_ ORDER BY 1 LOOP
		FOR table_no IN SELECT t.no FROM snowflake_migrate_internal.plan_tables AS t
			WHERE t.run = run_ AND t.map_step = step AND t.kind <> 'none' ORDER BY t.kind = 'key', t.no
		LOOP
			PERFORM snowflake_migrate_internal.fill_map(run_, table_no);
		END LOOP;
		/* Until nothing changes: what becomes of one row decides about others. */
		passes := 0;
		LOOP
			passes := passes + 1;
			IF passes > 100 THEN
				PERFORM snowflake_migrate_internal.find(run_, 'error', NULL, (SELECT string_agg(t.relation::text, ', ') FROM snowflake_migrate_internal.plan_tables AS t
						WHERE t.run = run_ AND t.map_step = step), NULL, 'the policies do not come to an end', NULL, NULL, 'Does a unique index not see the suffix? Choose another policy.');
				EXIT;
			END IF;
			/* Only what clashes when nothing changes any more does. */
			DELETE FROM snowflake_migrate.report AS f USING snowflake_migrate_internal.plan_tables AS t
				WHERE t.run = run_ AND t.map_step = step AND f.run = run_ AND f.relation = t.relation::text AND f.severity = 'error' AND f.problem = 'rows clash';
			changed := false;
			FOR table_no IN SELECT DISTINCT s.no FROM snowflake_migrate_internal.plan_sources AS s JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
				WHERE t.run = run_ AND t.map_step = step ORDER BY 1
			LOOP
				changed := snowflake_migrate_internal.pass(run_, table_no) OR changed;
			END LOOP;
			EXIT WHEN NOT changed;
		END LOOP;
		FOR table_no IN SELECT DISTINCT s.no FROM snowflake_migrate_internal.plan_sources AS s JOIN snowflake_migrate_internal.plan_tables AS t USING (run, no)
			WHERE t.run = run_ AND t.map_step = step ORDER BY 1
		LOOP
			PERFORM snowflake_migrate_internal.finish_map(run_, table_no);
		END LOOP;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.make_maps(bigint)
	IS 'for snowflake_migrate.merge()''s own use: makes the maps of a run';
