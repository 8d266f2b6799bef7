/*
 * What the statements of snowflake_migrate.adopt_plan() call: a short statement that is tried until it gets its locks,
 * a column that is filled, and the swap.  Each commits as it goes on, and can be called again.
 *
 * Procedures that commit have no SET clause: each transaction begins with begin_adopting(), and is READ COMMITTED, as
 * what was changed while a lock was waited for must be seen, whatever default_transaction_isolation says.
 */

/*
 * Settings of a transaction: nothing is found by a path that others are on, and constants are as pg_dump has them.
 * They stay: so it has no SET clause, and its body is bound to what it calls as it is created.
 */
CREATE FUNCTION snowflake_migrate_internal.begin_adopting() RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT set_config('search_path', 'pg_catalog, pg_temp', true), set_config('jit', 'off', true),
		set_config('row_security', 'off', true),
		set_config('datestyle', 'ISO', true), set_config('intervalstyle', 'postgres', true),
		set_config('extra_float_digits', '3', true),
		set_config('default_tablespace', '', true), set_config('default_table_access_method', 'heap', true);
END;
COMMENT ON FUNCTION snowflake_migrate_internal.begin_adopting()
	IS 'for snowflake_migrate.adopt_step()''s own use: settings of a transaction';

/* The lock_timeout for what may take until then. */
CREATE FUNCTION snowflake_migrate_internal.adopt_limit_locks(until timestamptz) RETURNS void
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT set_config('lock_timeout',
					  greatest(1, ceil(1000 * extract(epoch FROM until - clock_timestamp())))::bigint::text, true)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_limit_locks(timestamptz)
	IS 'for snowflake_migrate.adopt_step()''s own use: how long locks are waited for';

/* Raises an error where lock_timeout or attempts is out of range. */
CREATE FUNCTION snowflake_migrate_internal.adopt_check_times(lock_timeout interval, attempts int) RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF lock_timeout IS NULL OR lock_timeout NOT BETWEEN interval '1 ms' AND interval '1 day' THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('invalid value for lock_timeout: %s', coalesce(lock_timeout::text, 'null')),
			DETAIL = 'It must be between 1 ms and 1 day.';
	ELSIF attempts IS NULL OR attempts < 1 THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = format('invalid value for attempts: %s', coalesce(attempts::text, 'null')),
			DETAIL = 'It must be at least 1.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_check_times(interval, int)
	IS 'for snowflake_migrate.adopt_step()''s own use: refuses arguments';

/* Waits a little longer with each attempt, or gives up. */
CREATE FUNCTION snowflake_migrate_internal.adopt_pause(attempt int, attempts int, lock_timeout interval) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF attempt >= attempts THEN
		RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
			MESSAGE = format('could not obtain the locks within %s in %s attempts', lock_timeout, attempts),
			HINT = 'Look in pg_stat_activity for transactions that stay open, and call it again.';
	ELSIF attempt % 10 = 1 THEN
		RAISE NOTICE 'waiting for locks: attempt % of %', attempt, attempts;
	END IF;
	PERFORM pg_sleep(least(0.1 * attempt, 2));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_pause(int, int, interval)
	IS 'for snowflake_migrate.adopt_step()''s own use: waits before the next attempt';

/* Executes statements; false where they got no lock in time.  A constraint that is there was added before. */
CREATE FUNCTION snowflake_migrate_internal.adopt_execute(statement text, lock_timeout interval) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.adopt_limit_locks(clock_timestamp() + lock_timeout);
	/* Not of what is not there to be dropped. */
	PERFORM set_config('client_min_messages', 'warning', true);
	EXECUTE statement;
	RETURN true;
EXCEPTION
	WHEN lock_not_available OR deadlock_detected THEN
		RETURN false;
	WHEN duplicate_object THEN
		RAISE NOTICE '%', SQLERRM;
		RETURN true;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_execute(text, interval)
	IS 'for snowflake_migrate.adopt_step()''s own use: executes statements';

/* Whether a column is widened: what a plan does for it is done. */
CREATE FUNCTION snowflake_migrate_internal.adopt_is_widened(relation regclass, column_name name) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	type oid;
BEGIN
	IF relation IS NULL THEN
		RETURN false;
	END IF;
	SELECT a.atttypid INTO type
		FROM pg_attribute AS a
		WHERE a.attrelid = relation AND a.attname = column_name AND NOT a.attisdropped;
	IF NOT FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_column',
			MESSAGE = format('column "%s" of table %s does not exist', column_name, relation);
	END IF;
	RETURN type IN ('bigint'::regtype, 'bigint[]'::regtype);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_is_widened(regclass, name)
	IS 'for snowflake_migrate.adopt_step()''s own use: whether a column is widened';

/*
 * Executes a short statement of a plan in one transaction: with a lock_timeout, and again until it gets its locks.
 * Nothing where the column is widened already.
 */
CREATE PROCEDURE snowflake_migrate.adopt_step(
	statement text,
	relation regclass DEFAULT NULL,
	column_name name DEFAULT NULL,
	lock_timeout interval DEFAULT '200 ms',
	attempts int DEFAULT 300)
LANGUAGE plpgsql
AS $$
DECLARE
	attempt pg_catalog.int4 := 0;
BEGIN
	COMMIT;
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	PERFORM snowflake_migrate_internal.adopt_check_times(lock_timeout, attempts);
	LOOP
		PERFORM snowflake_migrate_internal.begin_adopting();
		IF statement IS NULL THEN
			RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'statement must not be null';
		ELSIF snowflake_migrate_internal.adopt_is_widened(relation, column_name) THEN
			RAISE NOTICE 'column % of table % is widened already', column_name, relation;
			EXIT;
		END IF;
		EXIT WHEN snowflake_migrate_internal.adopt_execute(statement, lock_timeout);
		COMMIT;
		SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
		PERFORM snowflake_migrate_internal.begin_adopting();
		attempt := attempt + 1;
		PERFORM snowflake_migrate_internal.adopt_pause(attempt, attempts, lock_timeout);
		COMMIT;
		SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	END LOOP;
	COMMIT;
END
$$;
COMMENT ON PROCEDURE snowflake_migrate.adopt_step(text, regclass, name, interval, int)
	IS 'executes a short statement of adopt_plan(), until it gets its locks';

/*
 * The queries that fill a range of blocks, from $1 to before $2: fill, which fills at most $3 rows and leaves out those
 * that others have locked, as whoever locks rows in another order could deadlock with it; and left_out, which counts
 * what is left.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_fill_queries(
	relation regclass,
	columns name[],
	OUT fill text,
	OUT left_out text)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	names jsonb;
	missing name;
BEGIN
	SELECT jsonb_build_object('table', relation::text,
				'set', string_agg(format('%I = %I', n.shadow, c.attname), ', '),
				'differs', string_agg(format('%I IS DISTINCT FROM %I%s', n.shadow, c.attname,
					CASE WHEN a.atttypid <> 'bigint'::regtype THEN '::int8[]' END), ' OR ')),
			min(c.attname::text) FILTER (WHERE t.oid IS NULL OR a.attnum IS NULL)
		INTO names, missing
		FROM unnest(columns) AS c (attname)
			CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.adopt_shadow_name(c.attname)) AS n (shadow)
			LEFT JOIN pg_attribute AS a ON a.attrelid = relation AND a.attname = n.shadow AND NOT a.attisdropped
			LEFT JOIN pg_trigger AS t ON t.tgrelid = relation AND t.tgname = '~' || n.shadow AND t.tgenabled = 'A';
	IF missing IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = format('there is nothing to fill beside column "%s" of table %s', missing, relation),
			HINT = 'Ask snowflake_migrate.adopt_plan() what is to be done.';
	END IF;
	fill := snowflake_migrate_internal.fill($query$
UPDATE ONLY {table} SET {set}
WHERE ctid = ANY (ARRAY(
	SELECT ctid FROM ONLY {table}
	WHERE ctid >= format('(%s,0)', $1)::tid AND ctid < format('(%s,0)', $2)::tid AND ({differs})
	LIMIT $3
	FOR NO KEY UPDATE SKIP LOCKED))
$query$, names);
	left_out := snowflake_migrate_internal.fill($query$
SELECT count(*) FROM ONLY {table}
WHERE ctid >= format('(%s,0)', $1)::tid AND ctid < format('(%s,0)', $2)::tid AND ({differs})
$query$, names);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_fill_queries(regclass, name[])
	IS 'for snowflake_migrate.adopt_fill()''s own use: the queries that fill a column';

/*
 * Fills the columns beside these in a range of blocks, at most so many rows.  No other trigger fires where the caller
 * may see to that.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_fill_blocks(
	relation regclass,
	columns name[],
	first bigint,
	size bigint,
	most bigint,
	OUT filled bigint,
	OUT left_out bigint)
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	queries CONSTANT record := snowflake_migrate_internal.adopt_fill_queries(relation, columns);
BEGIN
	IF has_parameter_privilege('session_replication_role', 'SET') THEN
		PERFORM set_config('session_replication_role', 'replica', true);
	END IF;
	EXECUTE queries.fill USING first, first + size, most;
	GET DIAGNOSTICS filled = ROW_COUNT;
	EXECUTE queries.left_out USING first, first + size INTO left_out;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_fill_blocks(regclass, name[], bigint, bigint, bigint)
	IS 'for snowflake_migrate.adopt_fill()''s own use: fills a range of blocks';

/* Raises an error where a column can't be filled.  Returns how many blocks the table has. */
CREATE FUNCTION snowflake_migrate_internal.adopt_fill_check(
	relation regclass,
	columns name[],
	batch_time interval,
	max_rate int) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	class record;
BEGIN
	IF relation IS NULL OR columns IS NULL OR batch_time IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
			MESSAGE = 'relation, columns and batch_time must not be null';
	ELSIF batch_time NOT BETWEEN interval '1 ms' AND interval '1 hour' OR max_rate < 1 THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
			MESSAGE = 'batch_time must be between 1 ms and 1 hour, and max_rate at least 1';
	END IF;
	PERFORM snowflake_migrate_internal.adopt_check_table(relation);
	SELECT c.* INTO class FROM pg_class AS c WHERE c.oid = relation;
	IF NOT pg_has_role(class.relowner, 'USAGE') THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = format('must be owner of table %s', relation);
	ELSIF (SELECT s.is_superuser FROM snowflake_internal.strongest_role() AS s)
			AND class.relowner = ANY (snowflake_internal.other_roles()) THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = 'cannot run code of other roles with the rights of a superuser',
			DETAIL = format('Table %s belongs to role %s.', relation, class.relowner::regrole),
			HINT = format('Connect as role %s.', class.relowner::regrole);
	END IF;
	PERFORM snowflake_internal.refuse_dangerous_code(ARRAY[relation]::oid[], ARRAY[relation]::oid[]);
	RETURN pg_relation_size(relation) / current_setting('block_size')::int;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_fill_check(regclass, name[], interval, int)
	IS 'for snowflake_migrate.adopt_fill()''s own use: refuses what can''t be filled';

/* Says how far a column is filled. */
CREATE FUNCTION snowflake_migrate_internal.adopt_fill_notice(
	relation regclass,
	done bigint,
	blocks bigint,
	filled bigint,
	since timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	seconds CONSTANT numeric := greatest(extract(epoch FROM clock_timestamp() - since), 0.001);
BEGIN
	RAISE NOTICE '%: % of % blocks, % rows filled, % rows/s, % s left', relation, done, blocks, filled,
		round(filled / seconds), round(seconds * (blocks - done) / greatest(done, 1));
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_fill_notice(regclass, bigint, bigint, bigint, timestamptz)
	IS 'for snowflake_migrate.adopt_fill()''s own use: says how far it is';

/*
 * How many blocks the next batch has, and rows at most, where the last one took so many seconds for the rows that it
 * filled: at most twice as many.  Blocks alone would not do, as what is filled already is read in no time.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_fill_pace(
	INOUT size bigint,
	INOUT most bigint,
	filled bigint,
	seconds float8,
	batch_time interval)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT greatest(1, ceil(size * f.factor))::bigint,
		CASE WHEN 2 * filled >= most THEN greatest(100, ceil(most * f.factor))::bigint ELSE most END
	FROM (SELECT least(2, extract(epoch FROM batch_time) / seconds)) AS f (factor)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_fill_pace(bigint, bigint, bigint, float8, interval)
	IS 'for snowflake_migrate.adopt_fill()''s own use: how large the next batch is';

/*
 * Fills the columns that a plan has added beside these, block by block, in batches that take about batch_time, and at
 * most max_rate rows a second.  Rows that come later, or are moved, are filled by the trigger.  Rows that others have
 * locked are left for later passes.  The same call goes on where it was broken off: what is filled is only read.
 */
CREATE PROCEDURE snowflake_migrate.adopt_fill(
	relation regclass,
	columns name[],
	batch_time interval DEFAULT '100 ms',
	max_rate int DEFAULT NULL)
LANGUAGE plpgsql
AS $$
DECLARE
	since pg_catalog.timestamptz := pg_catalog.clock_timestamp();
	told pg_catalog.timestamptz := since;
	began pg_catalog.timestamptz;
	total pg_catalog.int8;
	first pg_catalog.int8 := 0;
	size pg_catalog.int8 := 8;
	most pg_catalog.int8 := 500;
	filled pg_catalog.int8 := 0;
	skipped pg_catalog.int8 := 0;
	passes pg_catalog.int4 := 0;
	batch pg_catalog.record;
	seconds pg_catalog.float8;
BEGIN
	COMMIT;
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	PERFORM snowflake_migrate_internal.begin_adopting();
	total := snowflake_migrate_internal.adopt_fill_check(relation, columns, batch_time, max_rate);
	LOOP
		PERFORM snowflake_migrate_internal.begin_adopting();
		EXIT WHEN first >= total AND skipped = 0;
		IF first >= total THEN
			/* What was locked in this pass. */
			first := 0;
			skipped := 0;
			passes := passes + 1;
			PERFORM pg_sleep(least(0.1 * passes, 5));
		END IF;
		began := clock_timestamp();
		SELECT b.* INTO batch
			FROM snowflake_migrate_internal.adopt_fill_blocks(relation, columns, first, size, most) AS b;
		COMMIT;
		SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
		PERFORM snowflake_migrate_internal.begin_adopting();
		filled := filled + batch.filled;
		/* Otherwise, the same blocks may have more. */
		IF batch.filled < most THEN
			skipped := skipped + batch.left_out;
			first := first + size;
		END IF;
		seconds := greatest(extract(epoch FROM clock_timestamp() - began), 0.0001);
		IF clock_timestamp() >= told + interval '5 s' THEN
			told := clock_timestamp();
			PERFORM snowflake_migrate_internal.adopt_fill_notice(relation, least(first, total), total, filled, since);
		END IF;
		IF batch.filled > max_rate * seconds THEN
			PERFORM pg_sleep(batch.filled::float8 / max_rate - seconds);
		END IF;
		SELECT p.* INTO size, most
			FROM snowflake_migrate_internal.adopt_fill_pace(size, most, batch.filled, seconds, batch_time) AS p;
		COMMIT;
		SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	END LOOP;
	PERFORM snowflake_migrate_internal.adopt_fill_notice(relation, total, total, filled, since);
	COMMIT;
END
$$;
COMMENT ON PROCEDURE snowflake_migrate.adopt_fill(regclass, name[], interval, int)
	IS 'fills the columns that adopt_plan() adds';

/*
 * The swap's commands, in order of their ranks:
 *
 *	10	drops what stands in the way and is created again
 *	20	drops foreign keys that lead to the former columns, or from them
 *	30	takes sequences that stay from the former columns
 *	40	drops the triggers that keep the shadows equal
 *	50	drops the former columns
 *	60	gives the shadows their names
 *	70	gives indexes and constraints over the shadows their names; 75: what belongs to these
 *	80	what belongs to a column, and a partition's own identity; 81: the table's default, which comes after it
 *	85	gives the sequences that stay to the new columns; 86: drops the others
 *	90	creates what 10 has dropped
 */

/* What creates what the swap drops again: triggers, policies, entries of publications, statistics. */
CREATE FUNCTION snowflake_migrate_internal.adopt_recreate_commands(
	tables regclass[],
	columns name[],
	OUT rank int,
	OUT command text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH o AS MATERIALIZED (
		SELECT o.* FROM snowflake_migrate_internal.adopt_recreated(tables, columns) AS o
	),
	object AS (
		SELECT o.classid, o.objid, format('TRIGGER %I ON %s', t.tgname, o.relation) AS name,
			format('DROP TRIGGER %I ON %s', t.tgname, o.relation) AS dropping,
			pg_get_triggerdef(t.oid) AS creating,
			CASE WHEN t.tgenabled <> 'O' THEN format('ALTER TABLE %s %s TRIGGER %I', o.relation,
				CASE t.tgenabled WHEN 'D' THEN 'DISABLE' WHEN 'A' THEN 'ENABLE ALWAYS' ELSE 'ENABLE REPLICA' END,
				t.tgname) END AS setting
		FROM o JOIN pg_trigger AS t ON o.classid = 'pg_trigger'::regclass AND t.oid = o.objid
		UNION ALL
		SELECT o.classid, o.objid, format('POLICY %I ON %s', p.polname, o.relation),
			format('DROP POLICY %I ON %s', p.polname, o.relation),
			snowflake_migrate_internal.adopt_policy(p.oid), NULL
		FROM o JOIN pg_policy AS p ON o.classid = 'pg_policy'::regclass AND p.oid = o.objid
		UNION ALL
		SELECT o.classid, o.objid, NULL, format('ALTER PUBLICATION %I DROP TABLE ONLY %s', b.pubname, o.relation),
			snowflake_migrate_internal.adopt_published_table(p.oid), NULL
		FROM o
			JOIN pg_publication_rel AS p ON o.classid = 'pg_publication_rel'::regclass AND p.oid = o.objid
			JOIN pg_publication AS b ON b.oid = p.prpubid
		UNION ALL
		SELECT o.classid, o.objid, format('STATISTICS %s', n.name), format('DROP STATISTICS %s', n.name),
			pg_get_statisticsobjdef(x.oid),
			concat_ws(E';\n', CASE WHEN pg_get_userbyid(x.stxowner) <> current_user
						THEN format('ALTER STATISTICS %s OWNER TO %s', n.name, x.stxowner::regrole) END,
					  CASE WHEN x.stxstattarget >= 0
						THEN format('ALTER STATISTICS %s SET STATISTICS %s', n.name, x.stxstattarget) END)
		FROM o
			JOIN pg_statistic_ext AS x ON o.classid = 'pg_statistic_ext'::regclass AND x.oid = o.objid
			JOIN pg_namespace AS s ON s.oid = x.stxnamespace
			CROSS JOIN LATERAL (SELECT format('%I.%I', s.nspname, x.stxname)) AS n (name)
	)
	SELECT 10, b.dropping FROM object AS b
	UNION ALL
	SELECT 90, concat_ws(E';\n', rtrim(b.creating, ';'), nullif(b.setting, ''),
						 format('COMMENT ON %s IS ', b.name) || quote_literal(obj_description(b.objid, c.relname)))
	FROM object AS b JOIN pg_class AS c ON c.oid = b.classid
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_recreate_commands(regclass[], name[])
	IS 'for snowflake_migrate.adopt_swap()''s own use: what creates what it drops again';

/* The commands that put the shadows into the places of the columns, with what only a column has. */
CREATE FUNCTION snowflake_migrate_internal.adopt_column_commands(
	tables regclass[],
	columns name[],
	OUT rank int,
	OUT command text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH s AS MATERIALIZED (
		SELECT s.*, c.relowner, a.attacl, a.attstattarget, a.attoptions,
			format('ALTER TABLE %s ALTER COLUMN %I', s.relation, s.attname) AS alter_column
		FROM snowflake_migrate_internal.adopt_shadows(tables, columns) AS s
			JOIN pg_class AS c ON c.oid = s.relation
			JOIN pg_attribute AS a ON a.attrelid = s.relation AND a.attnum = s.attnum
	)
	SELECT 40, format('DROP TRIGGER %I ON %s; DROP FUNCTION %s', '~' || s.shadow, s.relation, s.trigger_function)
	FROM s
	UNION ALL
	SELECT 50, format('ALTER TABLE %s ', s.relation)
			|| string_agg(format('DROP COLUMN %I', s.attname), ', ' ORDER BY s.attnum)
	FROM s GROUP BY s.relation
	UNION ALL
	SELECT 60, format('ALTER TABLE %s RENAME COLUMN %I TO %I', s.relation, s.shadow, s.attname) FROM s
	UNION ALL
	SELECT 80, format('%s SET DEFAULT %s', s.alter_column, pg_get_expr(d.adbin, d.adrelid))
	FROM s JOIN pg_attrdef AS d ON d.adrelid = s.relation AND d.adnum = s.attnum
	WHERE NOT s.adopted
	UNION ALL
	SELECT 80, format('%s SET STATISTICS %s', s.alter_column, s.attstattarget) FROM s WHERE s.attstattarget >= 0
	UNION ALL
	/* Minor releases keep options of their own there. */
	SELECT 80, format('%s SET (%s)', s.alter_column, o.option)
	FROM s CROSS JOIN unnest(s.attoptions) AS o (option) WHERE starts_with(o.option, 'n_distinct')
	UNION ALL
	SELECT 80, format('COMMENT ON COLUMN %s.%I IS %L', s.relation, s.attname, d.description)
	FROM s JOIN pg_description AS d
		ON d.classoid = 'pg_class'::regclass AND d.objoid = s.relation AND d.objsubid = s.attnum
	UNION ALL
	SELECT 80, format('GRANT %s (%I) ON %s TO %s%s', x.privilege_type, s.attname, s.relation,
					  snowflake_migrate_internal.adopt_role(x.grantee),
					  CASE WHEN x.is_grantable THEN ' WITH GRANT OPTION' END)
	FROM s CROSS JOIN LATERAL aclexplode(s.attacl) AS x
	UNION ALL
	/* From PostgreSQL 18 on NOT NULL has a name. */
	SELECT 80, format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', s.relation, n.conname, o.conname)
	FROM s
		JOIN pg_constraint AS o ON o.contype = 'n' AND o.conrelid = s.relation AND o.conkey[1] = s.attnum
		JOIN pg_constraint AS n ON n.contype = 'n' AND n.conrelid = s.relation AND n.conkey[1] = s.shadow_attnum
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_column_commands(regclass[], name[])
	IS 'for snowflake_migrate.adopt_swap()''s own use: the commands that swap columns';

/* The commands that give indexes, CHECKs and foreign keys over the shadows the names and places of the former ones. */
CREATE FUNCTION snowflake_migrate_internal.adopt_part_commands(
	tables regclass[],
	columns name[],
	OUT rank int,
	OUT command text) RETURNS SETOF record
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH p AS MATERIALIZED (
		SELECT p.*, s.nspname, i.indisclustered, i.indisreplident, k.oid AS constraint_oid, k.contype
		FROM snowflake_migrate_internal.adopt_parts(tables, columns) AS p
			JOIN pg_class AS r ON r.oid = p.relation
			JOIN pg_namespace AS s ON s.oid = r.relnamespace
			LEFT JOIN pg_index AS i ON p.is_index AND i.indexrelid = p.objid
			LEFT JOIN pg_constraint AS k ON k.conindid = p.objid AND k.conrelid = p.relation AND k.contype IN ('p', 'u')
	),
	f AS MATERIALIZED (
		SELECT f.* FROM snowflake_migrate_internal.adopt_foreign_keys(tables, columns) AS f
	)
	SELECT 20, format('ALTER TABLE %s DROP CONSTRAINT %I', f.relation, f.name) FROM f
	UNION ALL
	SELECT 70, format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', f.relation, f.new_name, f.name) FROM f
	UNION ALL
	SELECT 70, format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', p.relation, p.new_name, p.name)
	FROM p WHERE NOT p.is_index
	UNION ALL
	SELECT 70, CASE WHEN p.constraint_oid IS NULL
			THEN format('ALTER INDEX %I.%I RENAME TO %I', p.nspname, p.new_name, p.name)
			ELSE format('ALTER TABLE %s ADD CONSTRAINT %I %s USING INDEX %I', p.relation, p.name,
						CASE p.contype WHEN 'p' THEN 'PRIMARY KEY' ELSE 'UNIQUE' END, p.new_name) END
	FROM p WHERE p.is_index
	UNION ALL
	SELECT 75, format('ALTER TABLE %s CLUSTER ON %I', p.relation, p.name) FROM p WHERE p.indisclustered
	UNION ALL
	SELECT 75, format('ALTER TABLE %s REPLICA IDENTITY USING INDEX %I', p.relation, p.name)
	FROM p WHERE p.indisreplident
	UNION ALL
	SELECT 75, format('ALTER INDEX %I.%I ALTER COLUMN %s SET STATISTICS %s', p.nspname, p.name, a.attnum,
					  a.attstattarget)
	FROM p JOIN pg_attribute AS a ON a.attrelid = p.objid AND a.attstattarget >= 0 WHERE p.is_index
	UNION ALL
	SELECT 75, format('COMMENT ON INDEX %I.%I IS %L', p.nspname, p.name, d.description)
	FROM p, obj_description(p.objid, 'pg_class') AS d (description) WHERE p.is_index AND d.description IS NOT NULL
	UNION ALL
	SELECT 75, format('COMMENT ON CONSTRAINT %I ON %s IS %L', c.name, c.relation, d.description)
	FROM (SELECT f.name, f.relation, f.objid FROM f
		  UNION ALL
		  SELECT p.name, p.relation, coalesce(p.constraint_oid, CASE WHEN NOT p.is_index THEN p.objid END) FROM p) AS c,
		obj_description(c.objid, 'pg_constraint') AS d (description)
	WHERE d.description IS NOT NULL
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_part_commands(regclass[], name[])
	IS 'for snowflake_migrate.adopt_swap()''s own use: the commands that give indexes and constraints their places';

/* The commands that let snowflake give the keys their values. */
CREATE FUNCTION snowflake_migrate_internal.adopt_default_commands(
	tables regclass[],
	columns name[],
	OUT rank int,
	OUT command text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH c AS MATERIALIZED (
		SELECT c.*, a.attidentity <> '' AND NOT c.widened AS has_identity
		FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c
			JOIN pg_attribute AS a ON a.attrelid = c.member AND a.attnum = c.attnum
		WHERE c.adopted
	)
	SELECT 80, format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', c.member, c.attname)
	FROM c
	WHERE c.has_identity AND c.member <> c.root
		AND snowflake_migrate_internal.adopt_has_own_identity(c.member, c.attnum)
	UNION ALL
	SELECT 81, format('ALTER TABLE %s %sALTER COLUMN %I SET DEFAULT %s', c.root,
					  CASE WHEN c.has_identity THEN format('ALTER COLUMN %I DROP IDENTITY, ', c.attname) END,
					  c.attname, snowflake_migrate_internal.default_function())
	FROM c
	WHERE c.member = c.root
		AND (c.widened OR NOT snowflake_migrate_internal.has_snowflake_default(c.member, c.attnum))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_default_commands(regclass[], name[])
	IS 'for snowflake_migrate.adopt_swap()''s own use: the commands that let snowflake give the keys their values';

/*
 * Sequences that would go with a column, and are used by others, or by views that are created again (kept), stay.
 * Others go, where they have not gone with a column.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_sequence_commands(
	tables regclass[],
	columns name[],
	kept oid[],
	OUT rank int,
	OUT command text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT r.rank, format('ALTER SEQUENCE %s OWNED BY %s', o.objid::regclass,
						  CASE r.rank WHEN 30 THEN 'NONE' ELSE format('%s.%I', s.relation, s.attname) END)
	FROM snowflake_migrate_internal.adopt_shadows(tables, columns) AS s
		JOIN pg_depend AS o ON o.classid = 'pg_class'::regclass AND o.refclassid = 'pg_class'::regclass
			AND o.refobjid = s.relation AND o.refobjsubid = s.attnum AND o.deptype = 'a'
		JOIN pg_sequence AS q ON q.seqrelid = o.objid
		CROSS JOIN (VALUES (30), (85)) AS r (rank)
	WHERE o.objid = ANY (kept)
		OR EXISTS (
			SELECT
			FROM pg_depend AS u
				LEFT JOIN pg_attrdef AS d ON u.classid = 'pg_attrdef'::regclass AND d.oid = u.objid
			WHERE u.refclassid = 'pg_class'::regclass AND u.refobjid = o.objid
				AND (d.adrelid, d.adnum) IS DISTINCT FROM (s.relation::oid, s.attnum))
	UNION ALL
	SELECT 86, regexp_replace(q.command, '^DROP SEQUENCE', 'DROP SEQUENCE IF EXISTS')
	FROM snowflake_migrate_internal.adopt_sequence_steps(tables, columns, kept) AS q WHERE q.command IS NOT NULL
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_sequence_commands(regclass[], name[], oid[])
	IS 'for snowflake_migrate.adopt_swap()''s own use: sequences that stay or go';

/* Raises an error where the shadows are not ready to be swapped. */
CREATE FUNCTION snowflake_migrate_internal.adopt_swap_check(tables regclass[], columns name[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	steps text[];
BEGIN
	PERFORM snowflake_migrate_internal.adopt_plan_refuse(tables, columns, false);
	steps := ARRAY(
		SELECT s.statement FROM snowflake_migrate_internal.adopt_steps_left(tables, columns) AS s
		ORDER BY s.rank, s.relation::oid, s.part);
	IF steps <> '{}' THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = 'new columns are not ready to replace the former ones',
			DETAIL = format('Of the plan, %s steps are left. The first: %s', cardinality(steps), steps[1]),
			HINT = 'Ask snowflake_migrate.adopt_plan() again, and execute what it returns.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_swap_check(regclass[], name[])
	IS 'for snowflake_migrate.adopt_swap()''s own use: refuses what is not ready';

/* What is in the catalogs of these relations, in short. */
CREATE FUNCTION snowflake_migrate_internal.adopt_fingerprint(relations oid[]) RETURNS text
LANGUAGE sql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_migrate_internal.digest(
			string_agg(concat_ws(' ', c.tableoid, c.ctid, c.xmin), ',' ORDER BY c.tableoid, c.ctid))
	FROM (
		SELECT c.tableoid, c.ctid, c.xmin FROM pg_class AS c WHERE c.oid = ANY (relations)
			OR c.oid IN (SELECT i.indexrelid FROM pg_index AS i WHERE i.indrelid = ANY (relations))
		UNION ALL
		SELECT n.tableoid, n.ctid, n.xmin FROM pg_namespace AS n
		WHERE n.oid IN (SELECT c.relnamespace FROM pg_class AS c WHERE c.oid = ANY (relations))
		UNION ALL
		SELECT a.tableoid, a.ctid, a.xmin FROM pg_attribute AS a WHERE a.attrelid = ANY (relations)
		UNION ALL
		SELECT d.tableoid, d.ctid, d.xmin FROM pg_attrdef AS d WHERE d.adrelid = ANY (relations)
		UNION ALL
		SELECT k.tableoid, k.ctid, k.xmin FROM pg_constraint AS k
		WHERE k.conrelid = ANY (relations) OR k.confrelid = ANY (relations)
		UNION ALL
		SELECT i.tableoid, i.ctid, i.xmin FROM pg_index AS i WHERE i.indrelid = ANY (relations)
		UNION ALL
		SELECT i.tableoid, i.ctid, i.xmin FROM pg_inherits AS i
		WHERE i.inhparent = ANY (relations) OR i.inhrelid = ANY (relations)
		UNION ALL
		SELECT t.tableoid, t.ctid, t.xmin FROM pg_trigger AS t WHERE t.tgrelid = ANY (relations)
		UNION ALL
		SELECT r.tableoid, r.ctid, r.xmin FROM pg_rewrite AS r WHERE r.ev_class = ANY (relations)
		UNION ALL
		SELECT d.tableoid, d.ctid, d.xmin FROM pg_depend AS d
		WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = ANY (relations)
		UNION ALL
		SELECT p.tableoid, p.ctid, p.xmin FROM pg_policy AS p WHERE p.polrelid = ANY (relations)
		UNION ALL
		SELECT p.tableoid, p.ctid, p.xmin FROM pg_publication_rel AS p WHERE p.prrelid = ANY (relations)
		UNION ALL
		SELECT p.tableoid, p.ctid, p.xmin FROM pg_publication AS p
		UNION ALL
		SELECT p.tableoid, p.ctid, p.xmin FROM pg_publication_namespace AS p
		UNION ALL
		SELECT x.tableoid, x.ctid, x.xmin FROM pg_statistic_ext AS x WHERE x.stxrelid = ANY (relations)
		UNION ALL
		SELECT d.tableoid, d.ctid, d.xmin FROM snowflake_migrate.declared_references AS d) AS c
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_fingerprint(oid[])
	IS 'for snowflake_migrate.adopt_swap()''s own use: what is in the catalogs of relations';

/* The tables that the swap changes. */
CREATE FUNCTION snowflake_migrate_internal.adopt_swap_relations(tables regclass[], columns name[])
RETURNS SETOF regclass
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT c.member FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c
	WHERE c.widened OR (c.adopted AND NOT snowflake_migrate_internal.has_snowflake_default(c.member, c.attnum))
	UNION
	SELECT r.relation
	FROM snowflake_migrate_internal.adopt_foreign_keys(tables, columns) AS f
		CROSS JOIN unnest(ARRAY[f.relation, f.referenced]) AS r (relation)
	UNION
	SELECT o.relation FROM snowflake_migrate_internal.adopt_recreated(tables, columns) AS o
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_swap_relations(regclass[], name[])
	IS 'for snowflake_migrate.adopt_swap()''s own use: the tables that it changes';

/*
 * All that the swap needs to know, looked up before anything is locked: the relations and views that it locks (views by
 * what locks them), the schemas of what views name, its commands, and a fingerprint of what these were made from.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_swap_look(
	tables regclass[],
	columns name[],
	OUT relations regclass[],
	OUT view_locks text[],
	OUT schemas oid[],
	OUT commands text[],
	OUT seen oid[],
	OUT fingerprint text)
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	views oid[];
	dropping text[];
	creating text[];
BEGIN
	relations := ARRAY(
		SELECT r.relation FROM snowflake_migrate_internal.adopt_swap_relations(tables, columns) AS r (relation)
		ORDER BY r.relation);
	SELECT coalesce(array_agg(v.view::oid ORDER BY v.view), '{}'),
			coalesce(array_agg(v.dropping ORDER BY v.level DESC, v.view DESC), '{}'),
			coalesce(array_agg(v.creating ORDER BY v.level, v.view), '{}')
		INTO views, dropping, creating
		FROM snowflake_migrate_internal.adopt_views(tables, columns) AS v;
	seen := relations::oid[] || views;
	fingerprint := snowflake_migrate_internal.adopt_fingerprint(seen);
	PERFORM snowflake_migrate_internal.adopt_swap_check(tables, columns);
	view_locks := ARRAY(
		SELECT format('ALTER %s OWNER TO %s', snowflake_migrate_internal.adopt_view_name(c.oid), c.relowner::regrole)
		FROM pg_class AS c WHERE c.oid = ANY (views) ORDER BY c.oid);
	schemas := ARRAY(
		SELECT DISTINCT s.oid
		FROM unnest(views) AS v (oid), snowflake_migrate_internal.adopt_view_schemas(v.oid) AS s (oid));
	commands := dropping || ARRAY(
		SELECT c.command
		FROM (SELECT * FROM snowflake_migrate_internal.adopt_recreate_commands(tables, columns)
			  UNION ALL SELECT * FROM snowflake_migrate_internal.adopt_part_commands(tables, columns)
			  UNION ALL SELECT * FROM snowflake_migrate_internal.adopt_sequence_commands(
				tables, columns, snowflake_migrate_internal.adopt_used_by_views(views))
			  UNION ALL SELECT * FROM snowflake_migrate_internal.adopt_column_commands(tables, columns)
			  UNION ALL SELECT * FROM snowflake_migrate_internal.adopt_default_commands(tables, columns)) AS c
		ORDER BY c.rank, c.command) || creating;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_swap_look(regclass[], name[])
	IS 'for snowflake_migrate.adopt_swap()''s own use: what it needs to know';

/*
 * Swaps the columns as was looked up.  Returns how long it had locks, or null where these were not to be had in time,
 * or what was looked at has changed.  That the shadows are equal was proved by their CHECKs, which hold for what was
 * written since, too.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_swap_once(
	tables regclass[],
	columns name[],
	relations regclass[],
	view_locks text[],
	schemas oid[],
	commands text[],
	seen oid[],
	fingerprint text,
	lock_timeout interval) RETURNS interval
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	until CONSTANT timestamptz := clock_timestamp() + lock_timeout;
	locked timestamptz;
	relation regclass;
	command text;
BEGIN
	PERFORM snowflake_migrate_internal.adopt_limit_locks(until);
	/* No notices that ALTER TABLE renames an index to the name of its constraint. */
	PERFORM set_config('client_min_messages', 'warning', true);
	PERFORM snowflake_migrate_internal.adopt_hold();
	IF (SELECT s.is_superuser FROM snowflake_internal.strongest_role() AS s) THEN
		PERFORM snowflake_internal.lock_schemas(schemas);
	END IF;
	/*
	 * Views first: whoever reads a view locks it before its tables.  LOCK TABLE would lock the tables of a view, too;
	 * ALTER VIEW ... OWNER TO its owner locks the view alone.
	 */
	FOREACH command IN ARRAY view_locks LOOP
		PERFORM snowflake_migrate_internal.adopt_limit_locks(until);
		EXECUTE command;
		locked := coalesce(locked, clock_timestamp());
	END LOOP;
	FOREACH relation IN ARRAY relations LOOP
		PERFORM snowflake_migrate_internal.adopt_limit_locks(until);
		IF (SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class AS c WHERE c.oid = relation) THEN
			EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', relation);
			locked := coalesce(locked, clock_timestamp());
		END IF;
	END LOOP;
	IF snowflake_migrate_internal.adopt_fingerprint(seen) IS DISTINCT FROM fingerprint THEN
		RAISE EXCEPTION USING ERRCODE = 'lock_not_available', MESSAGE = 'the catalogs have changed since';
	END IF;
	PERFORM snowflake_migrate_internal.adopt_plan_refuse(tables, columns, true);
	FOREACH command IN ARRAY commands LOOP
		EXECUTE command;
	END LOOP;
	RETURN clock_timestamp() - locked;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
	RETURN NULL;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_swap_once(
	regclass[], name[], regclass[], text[], oid[], text[], oid[], text, interval)
	IS 'for snowflake_migrate.adopt_swap()''s own use: swaps the columns';

/*
 * Puts the columns that adopt_plan() has made into the places of the former ones, in one short transaction, and lets
 * snowflake give the keys their values.  All is looked up before anything is locked; under the locks, it only sees that
 * nothing was changed since, and executes the commands.
 */
CREATE PROCEDURE snowflake_migrate.adopt_swap(
	relations regclass[],
	columns name[],
	lock_timeout interval DEFAULT '200 ms',
	attempts int DEFAULT 300)
LANGUAGE plpgsql
AS $$
DECLARE
	attempt pg_catalog.int4 := 0;
	look pg_catalog.record;
	locked pg_catalog.interval;
BEGIN
	COMMIT;
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	PERFORM snowflake_migrate_internal.adopt_check_times(lock_timeout, attempts);
	LOOP
		PERFORM snowflake_migrate_internal.begin_adopting();
		IF relations IS NULL OR columns IS NULL THEN
			RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
				MESSAGE = 'relations and columns must not be null';
		END IF;
		PERFORM snowflake_migrate_internal.adopt_check(relations, columns);
		IF snowflake_migrate_internal.adopt_is_done(relations, columns) THEN
			RAISE NOTICE 'the keys are adopted already';
			EXIT;
		END IF;
		SELECT l.* INTO look FROM snowflake_migrate_internal.adopt_swap_look(relations, columns) AS l;
		COMMIT;
		SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
		PERFORM snowflake_migrate_internal.begin_adopting();
		locked := snowflake_migrate_internal.adopt_swap_once(
			relations, columns, look.relations, look.view_locks, look.schemas, look.commands, look.seen,
			look.fingerprint, lock_timeout);
		COMMIT;
		SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
		PERFORM snowflake_migrate_internal.begin_adopting();
		IF locked IS NOT NULL THEN
			RAISE NOTICE 'the keys are adopted; the tables were locked for % ms',
				round(1000 * extract(epoch FROM locked));
			EXIT;
		END IF;
		attempt := attempt + 1;
		PERFORM snowflake_migrate_internal.adopt_pause(attempt, attempts, lock_timeout);
		COMMIT;
		SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	END LOOP;
	COMMIT;
END
$$;
COMMENT ON PROCEDURE snowflake_migrate.adopt_swap(regclass[], name[], interval, int)
	IS 'puts the columns that adopt_plan() has made into the places of the former ones';
