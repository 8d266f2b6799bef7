/*
 * Existing integer keys go over to snowflake ids while their tables are in use.
 *
 * Beside each column that snowflake_migrate.adopt() would widen stands a bigint column, its shadow.  A trigger keeps it
 * equal in every row that is written, batches fill it in the others, and a CHECK that is validated proves it.  Indexes,
 * CHECKs and foreign keys are made anew over the shadows.  One short transaction (adopt_swap.sql) then drops the
 * columns and gives their names to the shadows.
 *
 * Nothing is on record but in the catalogs: what is there says what is left to do, so that a plan that was broken off
 * goes on when it is asked for again.  What belongs to a plan is found by its name: adopt_shadow_name() of the name of
 * what it stands for, and for a shadow's trigger and CHECK, that with a ~ before it.  Triggers fire in the order of
 * their names.
 *
 * A lock that keeps others from a table is held for an instant, and waited for no longer than they may be kept waiting:
 * who waits for a lock keeps all that come later waiting, too.
 */

/* The name of what stands for an object until it takes its place. */
CREATE FUNCTION snowflake_migrate_internal.adopt_shadow_name(name text) RETURNS name
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT ('snowflake_new_' || CASE WHEN octet_length(name) <= 48 THEN name
		ELSE snowflake_migrate_internal.digest(name) END)::name
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_shadow_name(text)
	IS 'for snowflake_migrate.adopt_plan()''s own use: the name of what stands for an object';

/* A text between dollars, or where it has these, as a literal. */
CREATE FUNCTION snowflake_migrate_internal.adopt_quoted(item text, tag text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT CASE WHEN strpos(item, tag) = 0 THEN tag || item || tag ELSE quote_literal(item) END $$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_quoted(text, text)
	IS 'for snowflake_migrate.adopt_plan()''s own use: a text as a literal';

/* What the function of a shadow's trigger does: the shadow becomes what its column is, as an identifier. */
CREATE FUNCTION snowflake_migrate_internal.adopt_shadow_body(shadow name, of text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT format(' BEGIN NEW.%I := NEW.%s; RETURN NEW; END ', shadow, of) $$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_shadow_body(name, text)
	IS 'for snowflake_migrate.adopt_plan()''s own use: the body of the function of a shadow''s trigger';

/*
 * The function of a shadow's trigger, or null: whoever owns the table could put another's function there, too, so that
 * its name does not say enough.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_own_function(function oid, shadow name) RETURNS regprocedure
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT p.oid::regprocedure
	FROM pg_proc AS p
	WHERE p.oid = function AND starts_with(p.proname, 'snowflake_new_')
		/* Its column may have another name by now. */
		AND p.prosrc = snowflake_migrate_internal.adopt_shadow_body(
			shadow, substring(p.prosrc FROM ' := NEW[.](.*); RETURN'))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_own_function(oid, name)
	IS 'for snowflake_migrate.adopt_plan()''s own use: the function of a shadow''s trigger';

/*
 * The CHECK of a shadow, as pg_get_constraintdef() has it.  It is true for no row in which one is null and the other is
 * not; where the column is NOT NULL, it also proves that to SET NOT NULL.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_shadow_check(
	attname name,
	shadow name,
	new_type text,
	not_null boolean) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT format(CASE WHEN not_null THEN 'CHECK (((%1$I IS NOT NULL) AND (%1$I = %3$s)))'
			ELSE E'CHECK (\nCASE\n    WHEN (%2$I IS NULL) THEN (%1$I IS NULL)\n' ||
				E'    ELSE ((%1$I IS NOT NULL) AND (%1$I = %3$s))\nEND)' END,
		shadow, attname,
		CASE new_type WHEN 'bigint' THEN quote_ident(attname) ELSE format('(%I)::bigint[]', attname) END)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_shadow_check(name, name, text, boolean)
	IS 'for snowflake_migrate.adopt_plan()''s own use: the CHECK of a shadow';

/*
 * The columns that are widened, each with its shadow and what there is of it: null where there is none, or another, as
 * when a column has become NOT NULL since.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_shadows(
	tables regclass[],
	columns name[],
	OUT relation regclass,
	OUT attnum smallint,
	OUT attname name,
	OUT not_null boolean,
	OUT adopted boolean,
	OUT new_type text,
	OUT shadow name,
	OUT shadow_attnum smallint,
	OUT shadow_not_null boolean,
	OUT trigger_function regprocedure,
	OUT validated boolean) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT DISTINCT c.member, c.attnum, c.attname, a.attnotnull, c.adopted, c.new_type,
		n.shadow, s.attnum, s.attnotnull, t.tgfoid::regprocedure, k.convalidated
	FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c
		JOIN pg_attribute AS a ON a.attrelid = c.member AND a.attnum = c.attnum
		CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.adopt_shadow_name(c.attname)) AS n (shadow)
		LEFT JOIN pg_attribute AS s ON s.attrelid = c.member AND s.attname = n.shadow AND NOT s.attisdropped
		LEFT JOIN pg_trigger AS t ON t.tgrelid = c.member AND t.tgname = '~' || n.shadow AND t.tgenabled = 'A'
			AND snowflake_migrate_internal.adopt_own_function(t.tgfoid, n.shadow) IS NOT NULL
		LEFT JOIN pg_constraint AS k ON k.conrelid = c.member AND k.conname = '~' || n.shadow
			AND regexp_replace(pg_get_constraintdef(k.oid), ' NOT VALID$', '')
				= snowflake_migrate_internal.adopt_shadow_check(c.attname, n.shadow, c.new_type, a.attnotnull)
	WHERE c.widened
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_shadows(regclass[], name[])
	IS 'for snowflake_migrate.adopt_plan()''s own use: the columns that are widened, with their shadows';

/*
 * What makes a shadow.  A function of that name may be another role's, whose owner could change it: it is dropped, and
 * not replaced.  The trigger also fires for rows that come by replication, which fires no others.  A shadow that is
 * there may be NOT NULL, as the column was.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_make_shadow(
	relation regclass,
	attname name,
	new_type text,
	not_null boolean,
	shadow_not_null boolean) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_migrate_internal.fill($template$
ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {"shadow"} pg_catalog.{type};
DROP TRIGGER IF EXISTS {"trigger"} ON {table};
DROP FUNCTION IF EXISTS {"schema"}.{"function"}();
CREATE FUNCTION {"schema"}.{"function"}() RETURNS trigger LANGUAGE plpgsql AS {body};
CREATE TRIGGER {"trigger"} BEFORE INSERT OR UPDATE ON {table}
	FOR EACH ROW EXECUTE FUNCTION {"schema"}.{"function"}();
ALTER TABLE {table} ENABLE ALWAYS TRIGGER {"trigger"},
	{drop not null}DROP CONSTRAINT IF EXISTS {"trigger"}, ADD CONSTRAINT {"trigger"} {check} NOT VALID;
$template$, jsonb_build_object(
			'table', relation::text, 'schema', s.nspname, 'shadow', n.shadow, 'trigger', '~' || n.shadow,
			'type', CASE new_type WHEN 'bigint' THEN 'int8' ELSE 'int8[]' END,
			'function', snowflake_migrate_internal.adopt_shadow_name(
				snowflake_migrate_internal.digest(format('%I.%I', c.relname, attname))),
			'body', snowflake_migrate_internal.adopt_quoted(
				snowflake_migrate_internal.adopt_shadow_body(n.shadow, quote_ident(attname)), '$body$'),
			'drop not null', CASE WHEN shadow_not_null AND NOT not_null
				THEN format('ALTER COLUMN %I DROP NOT NULL, ', n.shadow) ELSE '' END,
			'check', snowflake_migrate_internal.adopt_shadow_check(attname, n.shadow, new_type, not_null)))
	FROM pg_class AS c
		JOIN pg_namespace AS s ON s.oid = c.relnamespace
		CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.adopt_shadow_name(attname)) AS n (shadow)
	WHERE c.oid = relation
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_make_shadow(regclass, name, text, boolean, boolean)
	IS 'for snowflake_migrate.adopt_plan()''s own use: what makes a shadow';

/* A short statement as the plan has it: for a table, and as long as this column of it is not widened. */
CREATE FUNCTION snowflake_migrate_internal.adopt_step_call(statement text, relation regclass, attname name) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT format('CALL snowflake_migrate.adopt_step(%s, %L, %L)',
				  snowflake_migrate_internal.adopt_quoted(statement, '$step$'), relation::text, attname)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_step_call(text, regclass, name)
	IS 'for snowflake_migrate.adopt_plan()''s own use: a short statement as the plan has it';

/*
 * Indexes and CHECKs over the columns, with the statement that makes each on an empty table of the same columns,
 * pg_temp.snowflake_adopt_trial, under a name that has its OID.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_part_trials(
	relation regclass,
	attnums smallint[],
	OUT objid oid,
	OUT statement text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT i.indexrelid,
		format('CREATE%s INDEX snowflake_part_%s ON pg_temp.snowflake_adopt_trial %s',
			   CASE WHEN i.indisunique THEN ' UNIQUE' END, i.indexrelid,
			   snowflake_migrate_internal.adopt_index_body(i.indexrelid))
	FROM pg_index AS i
		JOIN pg_class AS x ON x.oid = i.indexrelid
	WHERE i.indrelid = relation AND NOT i.indisexclusion AND NOT starts_with(x.relname, 'snowflake_new_')
		AND (i.indkey::smallint[] && attnums
			 OR EXISTS (SELECT FROM pg_depend AS d
						WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
							AND d.refclassid = 'pg_class'::regclass AND d.refobjid = relation
							AND d.refobjsubid = ANY (attnums)))
	UNION ALL
	SELECT k.oid, format('ALTER TABLE pg_temp.snowflake_adopt_trial ADD CONSTRAINT snowflake_part_%s %s', k.oid,
						 pg_get_constraintdef(k.oid))
	FROM pg_constraint AS k
	WHERE k.conrelid = relation AND k.contype = 'c' AND k.conkey && attnums
		AND NOT starts_with(ltrim(k.conname, '~'), 'snowflake_new_')
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_part_trials(regclass, smallint[])
	IS 'for snowflake_migrate.adopt_plan()''s own use: indexes and CHECKs over the columns';

/*
 * What indexes and CHECKs over a table's columns become over their shadows.  PostgreSQL itself says it: they are made
 * on an empty table of the same columns, whose types are changed, and which are then given the shadows' names.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_try_parts(
	relation regclass,
	attnums smallint[],
	changes text[],
	OUT objid oid,
	OUT definition text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	part record;
	change text;
	objects oid[] := ARRAY[]::oid[];
	definitions text[] := '{}';
	is_over boolean := false;
BEGIN
	BEGIN
		FOR part IN SELECT p.* FROM snowflake_migrate_internal.adopt_part_trials(relation, attnums) AS p LOOP
			IF cardinality(objects) = 0 THEN
				PERFORM snowflake_migrate_internal.adopt_check_trial(relation);
				EXECUTE format('CREATE TABLE pg_temp.snowflake_adopt_trial (LIKE %s)', relation);
			END IF;
			EXECUTE part.statement;
			objects := objects || part.objid;
		END LOOP;
		IF cardinality(objects) > 0 THEN
			FOREACH change IN ARRAY changes LOOP
				EXECUTE 'ALTER TABLE pg_temp.snowflake_adopt_trial ' || change;
			END LOOP;
			definitions := ARRAY(
				SELECT coalesce(
					(SELECT regexp_replace(pg_get_indexdef(x.oid),
										   '^CREATE (UNIQUE )?INDEX snowflake_part_[0-9]+ ON [a-z0-9_.]+ ', '')
					 FROM pg_class AS x WHERE x.relname = n.name AND x.relnamespace = pg_my_temp_schema()),
					(SELECT pg_get_constraintdef(k.oid)
					 FROM pg_constraint AS k
					 WHERE k.conname = n.name AND k.conrelid = 'pg_temp.snowflake_adopt_trial'::regclass))
				FROM unnest(objects) WITH ORDINALITY AS o (oid, i)
					CROSS JOIN LATERAL (SELECT 'snowflake_part_' || o.oid) AS n (name)
				ORDER BY o.i);
		END IF;
		is_over := true;
		RAISE EXCEPTION USING ERRCODE = 'SNOWF', MESSAGE = 'the table is not needed any more';
	EXCEPTION WHEN SQLSTATE 'SNOWF' THEN
		IF NOT is_over THEN
			RAISE;
		END IF;
	END;
	RETURN QUERY SELECT t.* FROM unnest(objects, definitions) AS t;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_try_parts(regclass, smallint[], text[])
	IS 'for snowflake_migrate.adopt_plan()''s own use: what indexes and CHECKs become';

/* The indexes and CHECKs (is_index: which) that are made anew: definition, and what there is in their place. */
CREATE FUNCTION snowflake_migrate_internal.adopt_parts(
	tables regclass[],
	columns name[],
	OUT relation regclass,
	OUT column_name name,
	OUT is_index boolean,
	OUT objid oid,
	OUT name name,
	OUT new_name name,
	OUT is_unique boolean,
	OUT definition text,
	OUT new_oid oid,
	OUT is_valid boolean) RETURNS SETOF record
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH changed AS MATERIALIZED (
		SELECT s.relation, min(s.attname::text)::name AS column_name, array_agg(s.attnum) AS attnums,
			array_agg(format('ALTER COLUMN %I TYPE %s', s.attname, s.new_type))
				|| array_agg(format('DROP COLUMN %I', s.shadow)) FILTER (WHERE s.shadow_attnum IS NOT NULL)
				|| array_agg(format('RENAME COLUMN %I TO %I', s.attname, s.shadow)) AS changes
		FROM snowflake_migrate_internal.adopt_shadows(tables, columns) AS s
		GROUP BY s.relation
	),
	part AS MATERIALIZED (
		SELECT c.relation, c.column_name, p.objid, p.definition, x.relname, k.conname, i.indisunique
		FROM changed AS c
			CROSS JOIN LATERAL snowflake_migrate_internal.adopt_try_parts(c.relation, c.attnums, c.changes) AS p
			LEFT JOIN (pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid)
				ON i.indexrelid = p.objid AND i.indrelid = c.relation
			LEFT JOIN pg_constraint AS k ON k.oid = p.objid AND k.conrelid = c.relation AND x.oid IS NULL
	)
	SELECT p.relation, p.column_name, p.relname IS NOT NULL, p.objid, n.name, m.new_name, p.indisunique,
		concat_ws(' ', p.definition, t.tablespace), coalesce(i.indexrelid, k.oid),
		CASE WHEN i.indexrelid IS NOT NULL THEN i.indisvalid AND i.indisready AND i.indisunique = p.indisunique
				AND snowflake_migrate_internal.adopt_index_body(i.indexrelid) = p.definition
			ELSE regexp_replace(pg_get_constraintdef(k.oid), ' NOT VALID$', '') = p.definition AND k.convalidated END
	FROM part AS p
		CROSS JOIN LATERAL (SELECT coalesce(p.relname, p.conname)) AS n (name)
		CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.adopt_shadow_name(n.name)) AS m (new_name)
		JOIN pg_class AS r ON r.oid = p.relation
		LEFT JOIN (pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid)
			ON i.indrelid = p.relation AND x.relname = m.new_name AND p.relname IS NOT NULL
		LEFT JOIN pg_constraint AS k ON k.conrelid = p.relation AND k.conname = m.new_name AND p.relname IS NULL
		LEFT JOIN LATERAL (
			SELECT format('TABLESPACE %I', s.spcname)
			FROM pg_class AS o JOIN pg_tablespace AS s ON s.oid = o.reltablespace
			WHERE o.oid = p.objid AND p.relname IS NOT NULL) AS t (tablespace) ON true
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_parts(regclass[], name[])
	IS 'for snowflake_migrate.adopt_plan()''s own use: the indexes and CHECKs that are made anew';

/* The columns of a foreign key, with shadows (OID and number: name) in the place of what they stand for. */
CREATE FUNCTION snowflake_migrate_internal.adopt_column_list(relation oid, attnums smallint[], shadows jsonb)
RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT string_agg(quote_ident(coalesce(shadows ->> format('%s %s', relation, k.attnum), a.attname)), ', '
					  ORDER BY k.i)
	FROM unnest(attnums) WITH ORDINALITY AS k (attnum, i)
		JOIN pg_attribute AS a ON a.attrelid = relation AND a.attnum = k.attnum
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_column_list(oid, smallint[], jsonb)
	IS 'for snowflake_migrate.adopt_plan()''s own use: the columns of a foreign key';

/* The foreign keys that are made anew: definition (as pg_get_constraintdef() has it), and what there is of each. */
CREATE FUNCTION snowflake_migrate_internal.adopt_foreign_keys(
	tables regclass[],
	columns name[],
	OUT relation regclass,
	OUT column_relation regclass,
	OUT column_name name,
	OUT referenced regclass,
	OUT objid oid,
	OUT name name,
	OUT new_name name,
	OUT definition text,
	OUT validated boolean,
	OUT new_oid oid,
	OUT is_valid boolean) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH shadow AS MATERIALIZED (
		SELECT s.* FROM snowflake_migrate_internal.adopt_shadows(tables, columns) AS s
	),
	shadows (list) AS MATERIALIZED (
		SELECT jsonb_object_agg(format('%s %s', s.relation::oid, s.attnum), s.shadow) FROM shadow AS s
	),
	action (code, name) AS (
		VALUES ('r'::"char", 'RESTRICT'), ('c', 'CASCADE'), ('n', 'SET NULL'), ('d', 'SET DEFAULT')
	),
	made AS MATERIALIZED (
		SELECT f.*, w.relation AS column_relation, w.attname,
			snowflake_migrate_internal.adopt_shadow_name(f.conname) AS new_name,
			concat('FOREIGN KEY (', snowflake_migrate_internal.adopt_column_list(f.conrelid, f.conkey, l.list),
				') REFERENCES ', f.confrelid::regclass, '(',
				snowflake_migrate_internal.adopt_column_list(f.confrelid, f.confkey, l.list), ')',
				CASE f.confmatchtype WHEN 'f' THEN ' MATCH FULL' END,
				' ON UPDATE ' || u.name, ' ON DELETE ' || d.name,
				' (' || snowflake_migrate_internal.adopt_column_list(f.conrelid, f.confdelsetcols, l.list) || ')',
				CASE WHEN f.condeferrable THEN ' DEFERRABLE' END,
				CASE WHEN f.condeferred THEN ' INITIALLY DEFERRED' END) AS definition
		FROM pg_constraint AS f
			CROSS JOIN shadows AS l
			CROSS JOIN LATERAL (
				SELECT s.relation, s.attname FROM shadow AS s
				WHERE (s.relation = f.conrelid AND s.attnum = ANY (f.conkey))
					OR (s.relation = f.confrelid AND s.attnum = ANY (f.confkey))
				ORDER BY s.relation = f.conrelid DESC, s.attnum
				LIMIT 1) AS w
			LEFT JOIN action AS u ON u.code = f.confupdtype
			LEFT JOIN action AS d ON d.code = f.confdeltype
		WHERE f.contype = 'f' AND f.conparentid = 0 AND NOT starts_with(f.conname, 'snowflake_new_')
	)
	SELECT m.conrelid, m.column_relation, m.attname, m.confrelid, m.oid, m.conname, m.new_name, m.definition,
		m.convalidated, n.oid,
		regexp_replace(pg_get_constraintdef(n.oid), ' NOT VALID$', '') = m.definition
	FROM made AS m LEFT JOIN pg_constraint AS n ON n.conrelid = m.conrelid AND n.conname = m.new_name
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_foreign_keys(regclass[], name[])
	IS 'for snowflake_migrate.adopt_plan()''s own use: the foreign keys that are made anew';

/* What makes the shadows, fills them, and proves that they are equal.  A table that was filled is vacuumed first. */
CREATE FUNCTION snowflake_migrate_internal.adopt_shadow_steps(
	tables regclass[],
	columns name[],
	OUT rank int,
	OUT relation regclass,
	OUT part int,
	OUT statement text,
	OUT lock text,
	OUT why text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH s AS MATERIALIZED (
		SELECT s.*, s.trigger_function IS NOT NULL AND s.shadow_attnum IS NOT NULL AND s.validated IS NOT NULL AS made,
			min(s.attname::text) OVER (PARTITION BY s.relation)::name AS first_name
		FROM snowflake_migrate_internal.adopt_shadows(tables, columns) AS s
	)
	SELECT 1, s.relation, 1,
		snowflake_migrate_internal.adopt_step_call(
			string_agg(snowflake_migrate_internal.adopt_make_shadow(
							s.relation, s.attname, s.new_type, s.not_null, s.shadow_not_null), '' ORDER BY s.attnum),
			s.relation, s.first_name),
		format('ACCESS EXCLUSIVE on %s', s.relation),
		'an empty column is added without a rewrite, and a trigger and a CHECK for what is written from now on'
	FROM s WHERE NOT s.made GROUP BY s.relation, s.first_name
	UNION ALL
	SELECT 2, s.relation, 1,
		format('CALL snowflake_migrate.adopt_fill(%L, %L)', s.relation::text,
			   array_agg(s.attname ORDER BY s.attnum)),
		format('ROW EXCLUSIVE on %s', s.relation),
		'batches of about 100 ms; rows that others have locked come later'
	FROM s WHERE NOT s.made OR NOT s.validated GROUP BY s.relation
	UNION ALL
	SELECT DISTINCT 2, s.relation, 2, format('VACUUM (ANALYZE, TRUNCATE false) %s', s.relation),
		format('SHARE UPDATE EXCLUSIVE on %s', s.relation),
		'reads and writes go on; the space of the rows'' former versions is used again, and plans know the new columns'
	FROM s WHERE NOT s.made OR NOT s.validated
	UNION ALL
	SELECT 2, s.relation, 3,
		snowflake_migrate_internal.adopt_step_call(
			format('ALTER TABLE %s ', s.relation)
				|| string_agg(format('VALIDATE CONSTRAINT %I', '~' || s.shadow), ', ' ORDER BY s.attnum),
			s.relation, s.first_name),
		format('SHARE UPDATE EXCLUSIVE on %s', s.relation),
		'all rows are compared while reads and writes go on'
	FROM s WHERE NOT s.made OR NOT s.validated GROUP BY s.relation, s.first_name
	UNION ALL
	SELECT 3, s.relation, 1,
		snowflake_migrate_internal.adopt_step_call(
			format('ALTER TABLE %s ', s.relation)
				|| string_agg(format('ALTER COLUMN %I SET NOT NULL', s.shadow), ', ' ORDER BY s.attnum),
			s.relation, s.first_name),
		format('ACCESS EXCLUSIVE on %s', s.relation),
		'no row is read, as the CHECK proves it'
	FROM s WHERE s.not_null AND s.shadow_not_null IS NOT TRUE GROUP BY s.relation, s.first_name
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_shadow_steps(regclass[], name[])
	IS 'for snowflake_migrate.adopt_plan()''s own use: what makes the shadows';

/*
 * Indexes and constraints over the shadows that have the plan's names; those among them that nothing is made for
 * are left of what was dropped or renamed since: they would stay, under these names, after the swap.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_leftovers(
	tables regclass[],
	columns name[],
	OUT relation regclass,
	OUT referenced regclass,
	OUT column_relation regclass,
	OUT column_name name,
	OUT is_index boolean,
	OUT objid oid,
	OUT name name) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH s AS MATERIALIZED (
		SELECT s.* FROM snowflake_migrate_internal.adopt_shadows(tables, columns) AS s
		WHERE s.trigger_function IS NOT NULL AND s.shadow_attnum IS NOT NULL
	)
	SELECT k.conrelid::regclass, f.oid::regclass, w.relation, w.attname, false, k.oid, k.conname
	FROM pg_constraint AS k
		CROSS JOIN LATERAL (
			SELECT s.relation, s.attname FROM s
			WHERE (s.relation = k.conrelid AND s.shadow_attnum = ANY (k.conkey))
				OR (s.relation = k.confrelid AND s.shadow_attnum = ANY (k.confkey))
			ORDER BY s.relation = k.conrelid DESC, s.attnum
			LIMIT 1) AS w
		LEFT JOIN pg_class AS f ON f.oid = k.confrelid AND f.oid <> k.conrelid
	WHERE k.contype IN ('c', 'f') AND k.conparentid = 0 AND starts_with(k.conname, 'snowflake_new_')
		AND NOT EXISTS (SELECT FROM snowflake_migrate_internal.adopt_foreign_keys(tables, columns) AS f
						WHERE f.new_oid = k.oid)
	UNION ALL
	SELECT DISTINCT s.relation, NULL::regclass, NULL::regclass, NULL::name, true, x.oid, x.relname
	FROM s
		JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
			AND d.refobjid = s.relation AND d.refobjsubid = s.shadow_attnum
		JOIN pg_index AS i ON i.indexrelid = d.objid
		JOIN pg_class AS x ON x.oid = i.indexrelid AND starts_with(x.relname, 'snowflake_new_')
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_leftovers(regclass[], name[])
	IS 'for snowflake_migrate.adopt_plan()''s own use: indexes and constraints over the shadows';

/* What makes indexes and CHECKs over the shadows.  An index that a cancel left invalid, or another, is dropped. */
CREATE FUNCTION snowflake_migrate_internal.adopt_part_steps(
	tables regclass[],
	columns name[],
	OUT rank int,
	OUT relation regclass,
	OUT part int,
	OUT statement text,
	OUT lock text,
	OUT why text) RETURNS SETOF record
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH a AS MATERIALIZED (
		SELECT a.* FROM snowflake_migrate_internal.adopt_parts(tables, columns) AS a
	),
	p AS MATERIALIZED (
		SELECT a.*, 2 * row_number() OVER (PARTITION BY a.relation ORDER BY a.objid)::int AS n
		FROM a WHERE a.is_valid IS NOT TRUE
	)
	SELECT 0, l.relation, (row_number() OVER (PARTITION BY l.relation ORDER BY l.objid))::int,
		snowflake_migrate_internal.adopt_step_call(
			format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS %I', l.relation, l.name), l.column_relation,
			l.column_name),
		format('ACCESS EXCLUSIVE on %s', concat_ws(' and ', l.relation, l.referenced)),
		'only the catalogs change; what it was made for is not there any more'
	FROM snowflake_migrate_internal.adopt_leftovers(tables, columns) AS l
	WHERE NOT l.is_index AND l.objid NOT IN (SELECT a.new_oid FROM a WHERE a.new_oid IS NOT NULL)
	UNION ALL
	SELECT 1, l.relation, (row_number() OVER (PARTITION BY l.relation ORDER BY l.objid))::int,
		format('DROP INDEX CONCURRENTLY IF EXISTS %s', l.objid::regclass),
		format('SHARE UPDATE EXCLUSIVE on %s', l.relation),
		'reads and writes go on; what it was made for is not there any more'
	FROM snowflake_migrate_internal.adopt_leftovers(tables, columns) AS l
	WHERE l.is_index AND l.objid NOT IN (SELECT a.new_oid FROM a WHERE a.new_oid IS NOT NULL)
	UNION ALL
	SELECT 4, p.relation, p.n, format('DROP INDEX CONCURRENTLY IF EXISTS %s', p.new_oid::regclass),
		format('SHARE UPDATE EXCLUSIVE on %s', p.relation),
		'reads and writes go on; what was broken off left it, and it is built again'
	FROM p WHERE p.is_index AND p.new_oid IS NOT NULL
	UNION ALL
	SELECT 4, p.relation, p.n + 1,
		format('CREATE%s INDEX CONCURRENTLY IF NOT EXISTS %I ON %s %s', CASE WHEN p.is_unique THEN ' UNIQUE' END,
			   p.new_name, p.relation, p.definition),
		format('SHARE UPDATE EXCLUSIVE on %s', p.relation),
		format('reads and writes go on while it is built; it takes the place of %I', p.name)
			|| CASE WHEN p.is_unique THEN
				'; until the swap, an INSERT ... ON CONFLICT may fail where another inserts the same key' ELSE '' END
	FROM p WHERE p.is_index
	UNION ALL
	SELECT 5, p.relation, p.n,
		snowflake_migrate_internal.adopt_step_call(
			format('ALTER TABLE %s %s%s NOT VALID', p.relation,
				   CASE WHEN p.new_oid IS NOT NULL THEN format('DROP CONSTRAINT IF EXISTS %I, ', p.new_name) END,
				   format('ADD CONSTRAINT %I %s', p.new_name, p.definition)), p.relation, p.column_name),
		format('ACCESS EXCLUSIVE on %s', p.relation),
		'no row is read: it holds for what is written from now on'
	FROM p WHERE NOT p.is_index
	UNION ALL
	SELECT 5, p.relation, p.n + 1,
		snowflake_migrate_internal.adopt_step_call(
			format('ALTER TABLE %s VALIDATE CONSTRAINT %I', p.relation, p.new_name), p.relation, p.column_name),
		format('SHARE UPDATE EXCLUSIVE on %s', p.relation),
		'all rows are looked at while reads and writes go on'
	FROM p WHERE NOT p.is_index
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_part_steps(regclass[], name[])
	IS 'for snowflake_migrate.adopt_plan()''s own use: what makes indexes and CHECKs over the shadows';

/* What makes foreign keys over the shadows.  One that was never validated is not now. */
CREATE FUNCTION snowflake_migrate_internal.adopt_foreign_key_steps(
	tables regclass[],
	columns name[],
	OUT rank int,
	OUT relation regclass,
	OUT part int,
	OUT statement text,
	OUT lock text,
	OUT why text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH f AS MATERIALIZED (
		SELECT f.*, n.convalidated, 2 * row_number() OVER (PARTITION BY f.relation ORDER BY f.objid)::int AS n
		FROM snowflake_migrate_internal.adopt_foreign_keys(tables, columns) AS f
			LEFT JOIN pg_constraint AS n ON n.oid = f.new_oid
	)
	SELECT 6, f.relation, f.n,
		snowflake_migrate_internal.adopt_step_call(
			format('ALTER TABLE %s %s%s NOT VALID', f.relation,
				   CASE WHEN f.new_oid IS NOT NULL THEN format('DROP CONSTRAINT IF EXISTS %I, ', f.new_name) END,
				   format('ADD CONSTRAINT %I %s', f.new_name, f.definition)), f.column_relation, f.column_name),
		format('%s on %s and %s', CASE WHEN f.new_oid IS NULL THEN 'SHARE ROW EXCLUSIVE' ELSE 'ACCESS EXCLUSIVE' END,
			   f.relation, f.referenced),
		'no row is read: it holds for what is written from now on'
	FROM f WHERE f.is_valid IS NOT TRUE
	UNION ALL
	SELECT 6, f.relation, f.n + 1,
		snowflake_migrate_internal.adopt_step_call(
			format('ALTER TABLE %s VALIDATE CONSTRAINT %I', f.relation, f.new_name), f.column_relation, f.column_name),
		format('SHARE UPDATE EXCLUSIVE on %s, ROW SHARE on %s', f.relation, f.referenced),
		'all rows are looked up while reads and writes go on'
	FROM f WHERE f.validated AND (f.is_valid IS NOT TRUE OR f.convalidated IS NOT TRUE)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_foreign_key_steps(regclass[], name[])
	IS 'for snowflake_migrate.adopt_plan()''s own use: what makes foreign keys over the shadows';

/* What is left to do before the columns can be swapped. */
CREATE FUNCTION snowflake_migrate_internal.adopt_steps_left(
	tables regclass[],
	columns name[],
	OUT rank int,
	OUT relation regclass,
	OUT part int,
	OUT statement text,
	OUT lock text,
	OUT why text) RETURNS SETOF record
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT s.* FROM snowflake_migrate_internal.adopt_shadow_steps(tables, columns) AS s
	UNION ALL
	SELECT p.* FROM snowflake_migrate_internal.adopt_part_steps(tables, columns) AS p
	UNION ALL
	SELECT f.* FROM snowflake_migrate_internal.adopt_foreign_key_steps(tables, columns) AS f
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_steps_left(regclass[], name[])
	IS 'for snowflake_migrate.adopt_plan()''s own use: what is left to do before the swap';

/*
 * Raises an error that names all that stands in the way.  Under the locks of the swap (locked), which has looked at all
 * before: ids that have come since.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_plan_refuse(tables regclass[], columns name[], locked boolean)
RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	problems text;
BEGIN
	SELECT string_agg(format('Table %s: %s: %s.', b.relation, b.blocked_by, rtrim(b.action, '.')), E'\n')
		INTO problems
		FROM snowflake_migrate_internal.adopt_plan_blockers(tables, columns) AS b
		WHERE NOT locked;
	/* These read the tables, and try expressions: nobody's code is in the way any more. */
	IF problems IS NULL THEN
		SELECT string_agg(format('Table %s: %s: %s.', b.relation, b.blocked_by, rtrim(b.action, '.')), E'\n')
			INTO problems
			FROM (SELECT * FROM snowflake_migrate_internal.adopt_greater_ids(tables, columns)
				  UNION ALL
				  SELECT * FROM snowflake_migrate_internal.adopt_expression_blockers(tables, columns)
				  WHERE NOT locked) AS b;
	END IF;
	IF problems IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'dependent_objects_still_exist',
			MESSAGE = 'cannot adopt the tables as they are while they are in use',
			DETAIL = problems;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_plan_refuse(regclass[], name[], boolean)
	IS 'for snowflake_migrate.adopt_plan()''s own use: an error that names all that stands in the way';

/* Whether all of these keys are adopted. */
CREATE FUNCTION snowflake_migrate_internal.adopt_is_done(tables regclass[], columns name[]) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT NOT EXISTS (
		SELECT FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c
		WHERE c.widened OR (c.adopted AND NOT snowflake_migrate_internal.has_snowflake_default(c.member, c.attnum)))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_is_done(regclass[], name[])
	IS 'for snowflake_migrate.adopt_plan()''s own use: whether keys are adopted';

/*
 * The statements that put existing integer keys on snowflake ids while their tables are in use, in their order, or what
 * is left of them.  None holds a lock for long that others wait for.  None can be in a transaction block.
 */
CREATE FUNCTION snowflake_migrate.adopt_plan(
	relations regclass[],
	columns name[] DEFAULT NULL,
	OUT step int,
	OUT statement text,
	OUT lock text,
	OUT why text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET jit = off SET standard_conforming_strings = on
AS $$
#variable_conflict use_column
DECLARE
	locked text;
BEGIN
	IF relations IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'relations must not be null';
	END IF;
	adopt_plan.columns := coalesce(adopt_plan.columns, snowflake_migrate_internal.adopt_keys(relations));
	PERFORM snowflake_migrate_internal.adopt_check(relations, adopt_plan.columns);
	IF snowflake_migrate_internal.adopt_is_done(relations, adopt_plan.columns) THEN
		RETURN;
	END IF;
	PERFORM snowflake_migrate_internal.adopt_plan_refuse(relations, adopt_plan.columns, false);
	SELECT string_agg(r.relation::text, ', ' ORDER BY r.relation::text) INTO locked
		FROM snowflake_migrate_internal.adopt_swap_relations(relations, adopt_plan.columns) AS r (relation);
	RETURN QUERY
		SELECT row_number() OVER (ORDER BY s.rank, s.relation::oid, s.part)::int,
			snowflake_migrate_internal.portable(s.statement), s.lock, s.why
		FROM (SELECT * FROM snowflake_migrate_internal.adopt_steps_left(relations, adopt_plan.columns)
			  UNION ALL
			  SELECT 9, NULL, 1,
				format('CALL snowflake_migrate.adopt_swap(%L, %L)', relations::text, adopt_plan.columns),
				format('ACCESS EXCLUSIVE on %s', locked),
				'only the catalogs change, as all is ready; it waits for the locks no longer than lock_timeout, '
				'lets others through, and tries again') AS s
		ORDER BY s.rank, s.relation::oid, s.part;
END
$$;
COMMENT ON FUNCTION snowflake_migrate.adopt_plan(regclass[], name[])
	IS 'the statements that put integer keys on snowflake ids while their tables are in use';

/* What takes a plan's objects away: foreign keys first, then each table's triggers, and columns with all over them. */
CREATE FUNCTION snowflake_migrate_internal.adopt_undo_steps(
	tables regclass[],
	columns name[],
	OUT rank int,
	OUT statement text,
	OUT lock text,
	OUT why text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH shadow AS MATERIALIZED (
		SELECT c.member, a.attnum, a.attname, t.tgname,
			snowflake_migrate_internal.adopt_own_function(t.tgfoid, a.attname) AS function
		FROM (SELECT DISTINCT c.member FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c) AS c
			JOIN pg_attribute AS a ON a.attrelid = c.member AND NOT a.attisdropped
			/* Made with it: a column of that name without the trigger is somebody else's. */
			JOIN pg_trigger AS t ON t.tgrelid = c.member AND t.tgname = '~' || a.attname
		WHERE starts_with(a.attname, 'snowflake_new_')
	)
	SELECT 1,
		format('CALL snowflake_migrate.adopt_step(%s)', snowflake_migrate_internal.adopt_quoted(
			format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS %I', f.conrelid::regclass, f.conname), '$step$')),
		format('ACCESS EXCLUSIVE on %s and %s', f.conrelid::regclass, f.confrelid::regclass),
		'only the catalogs change'
	FROM pg_constraint AS f
	WHERE f.contype = 'f' AND starts_with(f.conname, 'snowflake_new_')
		AND EXISTS (SELECT FROM shadow AS s WHERE (s.member = f.conrelid AND s.attnum = ANY (f.conkey))
						OR (s.member = f.confrelid AND s.attnum = ANY (f.confkey)))
	UNION ALL
	SELECT 2,
		format('CALL snowflake_migrate.adopt_step(%s)', snowflake_migrate_internal.adopt_quoted(
			string_agg(format(E'\nDROP TRIGGER IF EXISTS %I ON %s;', s.tgname, s.member)
						|| coalesce(E'\nDROP FUNCTION IF EXISTS ' || s.function::text || ';', ''), '' ORDER BY s.attnum)
				|| format(E'\nALTER TABLE %s ', s.member)
				|| string_agg(format('DROP COLUMN IF EXISTS %I', s.attname), ', ' ORDER BY s.attnum) || E';\n',
			'$step$')),
		format('ACCESS EXCLUSIVE on %s', s.member),
		'only the catalogs change; what was made over the columns goes with them'
	FROM shadow AS s GROUP BY s.member
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_undo_steps(regclass[], name[])
	IS 'for snowflake_migrate.adopt_undo_plan()''s own use: what takes a plan''s objects away';

/* The statements that lead a plan back, from any point before the swap. */
CREATE FUNCTION snowflake_migrate.adopt_undo_plan(
	relations regclass[],
	columns name[] DEFAULT NULL,
	OUT step int,
	OUT statement text,
	OUT lock text,
	OUT why text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
BEGIN
	IF relations IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'relations must not be null';
	END IF;
	adopt_undo_plan.columns := coalesce(adopt_undo_plan.columns, snowflake_migrate_internal.adopt_keys(relations));
	PERFORM snowflake_migrate_internal.adopt_check(relations, adopt_undo_plan.columns);
	RETURN QUERY
		SELECT row_number() OVER (ORDER BY s.rank, s.statement)::int, s.statement, s.lock, s.why
		FROM snowflake_migrate_internal.adopt_undo_steps(relations, adopt_undo_plan.columns) AS s
		ORDER BY s.rank, s.statement;
	IF NOT FOUND AND snowflake_migrate_internal.adopt_is_done(relations, adopt_undo_plan.columns) THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = 'cannot undo the adoption because the keys are adopted already',
			DETAIL = 'The former columns are gone, and rows that were written since have ids that do not fit them.',
			HINT = 'A backup from before has the former keys.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate.adopt_undo_plan(regclass[], name[])
	IS 'the statements that lead a plan of adopt_plan() back, before it has swapped the columns';
