/*
 * What stands in the way of snowflake_migrate.adopt_plan(), besides most of what stands in the way of adopt()
 * (adopt_blockers.sql): what can't be made anew while others write, or what filling the shadows would set off.
 */

/* Tables that a plan can't be made for. */
CREATE FUNCTION snowflake_migrate_internal.adopt_plan_table_blockers(
	tables regclass[],
	columns name[],
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
	WITH s AS MATERIALIZED (
		SELECT s.* FROM snowflake_migrate_internal.adopt_shadows(tables, columns) AS s
	),
	t AS MATERIALIZED (
		SELECT c.*, c.oid::regclass AS name FROM pg_class AS c WHERE c.oid IN (SELECT s.relation FROM s)
	),
	caller AS MATERIALIZED (
		SELECT r.role, snowflake_internal.other_roles() AS others
		FROM snowflake_internal.strongest_role() AS r WHERE r.is_superuser
	),
	/* Those that refer to what is widened, or are referred to, are changed as well: foreign keys are made anew. */
	changed AS MATERIALIZED (
		SELECT c.relowner, c.relnamespace, c.oid::regclass AS name
		FROM snowflake_migrate_internal.adopt_relations(tables, columns) AS r, unnest(r.read) AS x (oid)
			JOIN pg_class AS c USING (oid)
	)
	SELECT t.name, 'adopt it by snowflake_migrate.adopt(), which takes it with its partitions or children',
		format(CASE WHEN t.relkind = 'p' OR t.relispartition
				THEN '%s is partitioned, or a partition, whose indexes cannot be built CONCURRENTLY as a whole'
				ELSE '%s inherits, or is inherited from, and the copies of a column must change together' END, t.name)
	FROM t
	WHERE t.relkind = 'p' OR EXISTS (SELECT FROM pg_inherits AS i WHERE t.oid IN (i.inhrelid, i.inhparent))
	UNION ALL
	SELECT c.name, format('connect as role %s', c.relowner::regrole),
		format('code of role %s, its owner, could run with the rights of role %s between the steps',
			   c.relowner::regrole, r.role)
	FROM changed AS c CROSS JOIN caller AS r
	WHERE c.relowner = ANY (r.others)
	UNION ALL
	/* Its owner can drop the table, and put another in its place. */
	SELECT c.name, format('connect as the owner of the table, where that is no superuser; '
						  'or ALTER SCHEMA %I OWNER TO %s;', n.nspname, r.role),
		format('code of role %s, whose schema it is in, could run with the rights of role %s between the steps',
			   o.role::regrole, r.role)
	FROM changed AS c
		CROSS JOIN caller AS r
		JOIN pg_namespace AS n ON n.oid = c.relnamespace
		CROSS JOIN LATERAL snowflake_internal.other_schema_owner(n.oid, r.others) AS o
	WHERE c.relowner <> ALL (r.others) AND o.role IS NOT NULL
	UNION ALL
	SELECT t.name, format('GRANT CREATE ON SCHEMA %I TO %I;', n.nspname, current_user),
		format('role %I may not create in schema %I, where the trigger''s function and the indexes are', current_user,
			   n.nspname)
	FROM t JOIN pg_namespace AS n ON n.oid = t.relnamespace
	WHERE NOT has_schema_privilege(n.oid, 'CREATE')
	UNION ALL
	SELECT t.name, format('before: ALTER TABLE %s NO FORCE ROW LEVEL SECURITY;', t.name),
		format('its policies hold for role %I, too, which could not fill rows that they hide', current_user)
	FROM t
	WHERE row_security_active(t.oid)
	UNION ALL
	SELECT s.relation, 'rename it before', format('column %I has the name that the plan has for a new one', s.shadow)
	FROM s JOIN pg_attribute AS a ON a.attrelid = s.relation AND a.attnum = s.shadow_attnum
	WHERE format_type(a.atttypid, a.atttypmod) <> s.new_type OR a.atthasdef OR a.attidentity <> ''
	UNION ALL
	SELECT t.name, 'give its keys in the same call, or lead it back by snowflake_migrate.adopt_undo_plan()',
		format('column %I of another plan', a.attname)
	FROM t JOIN pg_attribute AS a ON a.attrelid = t.oid AND NOT a.attisdropped
	WHERE starts_with(a.attname, 'snowflake_new_')
		AND NOT EXISTS (SELECT FROM s WHERE s.relation = t.oid AND s.shadow = a.attname)
	UNION ALL
	SELECT t.name, format('before: ALTER TABLE %s VALIDATE CONSTRAINT %I;', t.name, k.conname),
		format('constraint %I is not valid: to fill a row that violates it would fail', k.conname)
	FROM t JOIN pg_constraint AS k ON k.conrelid = t.oid AND k.contype = 'c' AND NOT k.convalidated
	WHERE NOT starts_with(ltrim(k.conname, '~'), 'snowflake_new_')
	UNION ALL
	SELECT t.name, format(E'drop it before, create it again after:\n%s',
					  snowflake_migrate_internal.adopt_definition('pg_rewrite'::regclass, r.oid)),
		format('rule %I, which writes to the table may be turned into others by', r.rulename)
	FROM t JOIN pg_rewrite AS r ON r.ev_class = t.oid
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_plan_table_blockers(regclass[], name[])
	IS 'for snowflake_migrate.adopt_plan()''s own use: tables that it can''t plan for';

/* Triggers that would change a key after its shadow was made equal, or that filling the shadows would fire. */
CREATE FUNCTION snowflake_migrate_internal.adopt_plan_trigger_blockers(
	tables regclass[],
	columns name[],
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
	WITH s AS MATERIALIZED (
		SELECT s.relation, min('~' || s.shadow) AS first_trigger
		FROM snowflake_migrate_internal.adopt_shadows(tables, columns) AS s
		GROUP BY s.relation
	),
	t AS MATERIALIZED (
		SELECT s.relation, s.first_trigger, t.oid, t.tgname, t.tgenabled, t.tgtype::int AS type, t.tgattr
		FROM s JOIN pg_trigger AS t ON t.tgrelid = s.relation
		WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' AND NOT starts_with(t.tgname, '~snowflake_new_')
	)
	/* 1: for each row; 2: BEFORE; 4: INSERT; 16: UPDATE. */
	SELECT t.relation, 'rename it before, so that its name sorts before ~',
		format('trigger %I, which fires after those that keep the new columns equal', t.tgname)
	FROM t
	WHERE t.type & 3 = 3 AND t.type & 20 <> 0 AND t.tgname COLLATE "C" > t.first_trigger COLLATE "C"
	UNION ALL
	SELECT t.relation,
		concat_ws('; or ', CASE WHEN t.tgenabled = 'O' THEN
					format('GRANT SET ON PARAMETER session_replication_role TO %I', current_user) END,
				  format('disable it while the columns are filled: ALTER TABLE %s DISABLE TRIGGER %I;',
						 t.relation, t.tgname)),
		format('trigger %I, which would fire for each row that is filled', t.tgname)
	FROM t
	WHERE t.type & 16 <> 0 AND cardinality(t.tgattr::int2[]) = 0
		AND t.tgenabled IN ('A', CASE WHEN has_parameter_privilege('session_replication_role', 'SET')
									THEN 'R' ELSE 'O' END::"char")
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_plan_trigger_blockers(regclass[], name[])
	IS 'for snowflake_migrate.adopt_plan()''s own use: triggers that stand in its way';

/* Publications that would send the new columns to subscribers without them, or that the caller can't change. */
CREATE FUNCTION snowflake_migrate_internal.adopt_publication_blockers(
	tables regclass[],
	columns name[],
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH t AS MATERIALIZED (
		SELECT DISTINCT s.relation FROM snowflake_migrate_internal.adopt_shadows(tables, columns) AS s
	)
	SELECT t.relation, format('before: ALTER PUBLICATION %I DROP TABLE %s; ALTER PUBLICATION %1$I ADD TABLE %2$s '
							  '(with a list of the columns that it has now)', b.pubname, t.relation),
		format('publication %I, which would publish the new columns, too', b.pubname)
	FROM t
		JOIN pg_publication_rel AS p ON p.prrelid = t.relation AND p.prattrs IS NULL
		JOIN pg_publication AS b ON b.oid = p.prpubid
	UNION ALL
	SELECT t.relation, 'adopt it by snowflake_migrate.adopt(), or let the publication name tables and columns',
		format('publication %I, which would publish the new columns, too', b.pubname)
	FROM t
		JOIN pg_class AS c ON c.oid = t.relation
		JOIN pg_publication AS b ON b.puballtables
			OR EXISTS (SELECT FROM pg_publication_namespace AS n
					   WHERE n.pnpubid = b.oid AND n.pnnspid = c.relnamespace)
	UNION ALL
	SELECT t.relation, format('connect as a role with the rights of role %s', b.pubowner::regrole),
		format('publication %I, whose list of columns changes, and which belongs to role %s', b.pubname,
			   b.pubowner::regrole)
	FROM t
		JOIN pg_publication_rel AS p ON p.prrelid = t.relation AND p.prattrs IS NOT NULL
		JOIN pg_publication AS b ON b.oid = p.prpubid
	WHERE NOT pg_has_role(b.pubowner, 'USAGE')
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_publication_blockers(regclass[], name[])
	IS 'for snowflake_migrate.adopt_plan()''s own use: publications that stand in its way';

/* Constraints and indexes that can't be made anew beside those that are there; what a column would lose. */
CREATE FUNCTION snowflake_migrate_internal.adopt_part_blockers(
	tables regclass[],
	columns name[],
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH s AS MATERIALIZED (
		SELECT s.* FROM snowflake_migrate_internal.adopt_shadows(tables, columns) AS s
	),
	c AS (
		SELECT DISTINCT s.relation, k.*, k.contype = 'f' AND (k.confdeltype = 'd' OR k.confupdtype = 'd') AS to_default
		FROM s JOIN pg_constraint AS k ON (k.conrelid = s.relation AND s.attnum = ANY (k.conkey))
				OR (k.confrelid = s.relation AND s.attnum = ANY (k.confkey))
	)
	SELECT c.relation, 'drop it before, add it again after, or adopt the table by snowflake_migrate.adopt()',
		format('%s, which %s', pg_describe_object('pg_constraint'::regclass, c.oid, 0),
			   CASE WHEN c.contype = 'x' THEN 'cannot be made beside the one that is there without a lock'
					WHEN c.to_default THEN 'sets a default, which the new column does not have yet'
					WHEN c.contype IN ('p', 'u') THEN 'is deferrable: an index that is built beside it is not'
					ELSE 'is temporal, or not enforced' END)
	FROM c
	WHERE c.contype = 'x' OR c.to_default OR (c.contype IN ('p', 'u') AND c.condeferrable)
		OR to_jsonb(c) ->> 'conperiod' = 'true' OR (c.contype = 'f' AND to_jsonb(c) ->> 'conenforced' = 'false')
	UNION ALL
	SELECT DISTINCT s.relation, 'drop it before, add it again after',
		format('%s, whose index has column %I', pg_describe_object('pg_constraint'::regclass, f.oid, 0), s.attname)
	FROM s
		JOIN pg_constraint AS f ON f.contype = 'f' AND f.confrelid = s.relation AND s.attnum <> ALL (f.confkey)
		JOIN pg_index AS i ON i.indexrelid = f.conindid AND s.attnum = ANY (i.indkey::int2[])
	UNION ALL
	SELECT DISTINCT s.relation, 'drop it before, create it again after',
		format('index %s, which has a condition and a tablespace of its own', x.oid::regclass)
	FROM s
		JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
			AND d.refobjid = s.relation AND d.refobjsubid = s.attnum
		JOIN pg_index AS i ON i.indexrelid = d.objid AND i.indpred IS NOT NULL
		JOIN pg_class AS x ON x.oid = i.indexrelid AND x.reltablespace <> 0
	UNION ALL
	SELECT s.relation, 'take it away before, and give it again after',
		format('column %I would lose %s', s.attname, l.what)
	FROM s
		JOIN pg_attribute AS a ON a.attrelid = s.relation AND a.attnum = s.attnum
		JOIN pg_type AS y ON y.oid = a.atttypid
		JOIN pg_class AS r ON r.oid = s.relation
		CROSS JOIN LATERAL (
			SELECT 'rights that were granted by others than the table''s owner'
			WHERE EXISTS (SELECT FROM aclexplode(a.attacl) AS x WHERE x.grantor <> r.relowner)
			UNION ALL
			SELECT 'its storage or compression' WHERE a.attstorage <> y.typstorage OR a.attcompression <> ''
			UNION ALL
			SELECT 'its security label'
			WHERE EXISTS (SELECT FROM pg_seclabel AS l WHERE l.classoid = 'pg_class'::regclass
							AND l.objoid = s.relation AND l.objsubid = s.attnum)) AS l (what)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_part_blockers(regclass[], name[])
	IS 'for snowflake_migrate.adopt_plan()''s own use: constraints and indexes that stand in its way';

/* What the swap creates again, besides views: it names functions and operators, which are looked for anew. */
CREATE FUNCTION snowflake_migrate_internal.adopt_recreated(
	tables regclass[],
	columns name[],
	OUT relation regclass,
	OUT classid oid,
	OUT objid oid) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT DISTINCT t.oid::regclass, d.classid, d.objid
	FROM snowflake_migrate_internal.adopt_dependents(tables, columns) AS d
		LEFT JOIN pg_trigger AS g ON d.classid = 'pg_trigger'::regclass AND g.oid = d.objid
		LEFT JOIN pg_policy AS p ON d.classid = 'pg_policy'::regclass AND p.oid = d.objid
		LEFT JOIN pg_publication_rel AS b ON d.classid = 'pg_publication_rel'::regclass AND b.oid = d.objid
		LEFT JOIN pg_statistic_ext AS x ON d.classid = 'pg_statistic_ext'::regclass AND x.oid = d.objid
		JOIN pg_class AS t ON t.oid = coalesce(g.tgrelid, p.polrelid, b.prrelid, x.stxrelid)
	WHERE d.level = 0
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_recreated(regclass[], name[])
	IS 'for snowflake_migrate.adopt_plan()''s own use: what the swap creates again';

/* Why what is created again can't be: it is not the caller's, or another role's code could take a place in it. */
CREATE FUNCTION snowflake_migrate_internal.adopt_recreated_blockers(
	tables regclass[],
	columns name[],
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
	WITH o AS MATERIALIZED (
		SELECT o.* FROM snowflake_migrate_internal.adopt_recreated(tables, columns) AS o
	)
	SELECT o.relation, format('connect as a role with the rights of role %s', c.relowner::regrole),
		format('%s, as the table belongs to role %s', pg_describe_object(o.classid, o.objid, 0), c.relowner::regrole)
	FROM o JOIN pg_class AS c ON c.oid = o.relation
	WHERE NOT pg_has_role(c.relowner, 'USAGE')
	UNION ALL
	SELECT DISTINCT o.relation, 'connect as the owner of the table',
		format('%s: code of role %s could take the place of %s', pg_describe_object(o.classid, o.objid, 0),
			   x.role::regrole, pg_describe_object(d.refclassid, d.refobjid, 0))
	FROM o
		CROSS JOIN snowflake_internal.strongest_role() AS r
		JOIN pg_depend AS d ON d.classid = o.classid AND d.objid = o.objid
		LEFT JOIN pg_proc AS f ON d.refclassid = 'pg_proc'::regclass AND f.oid = d.refobjid
		CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.overloader(d.refclassid, d.refobjid)) AS x (role)
	/* Of a trigger function there is one alone. */
	WHERE r.is_superuser AND f.prorettype IS DISTINCT FROM 'trigger'::regtype AND x.role IS NOT NULL
	UNION ALL
	/* A constant is read anew, as its type's owner says. */
	SELECT DISTINCT o.relation,
		format('connect as the owner of the table; or ALTER TYPE %s OWNER TO %s;', y.oid::regtype, r.role),
		format('%s: code of role %s would run with the rights of role %s: %s',
			   pg_describe_object(o.classid, o.objid, 0), y.typowner::regrole, r.role,
			   pg_describe_object('pg_type'::regclass, y.oid, 0))
	FROM o
		CROSS JOIN snowflake_internal.strongest_role() AS r
		JOIN pg_depend AS d ON d.classid = o.classid AND d.objid = o.objid AND d.refclassid = 'pg_type'::regclass
		JOIN pg_type AS y ON y.oid = d.refobjid
	WHERE r.is_superuser AND y.typowner = ANY ((SELECT snowflake_internal.other_roles())::oid[])
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_recreated_blockers(regclass[], name[])
	IS 'for snowflake_migrate.adopt_plan()''s own use: what it can''t create again';

/* All that stands in the way of a plan, by what the catalogs say. */
CREATE FUNCTION snowflake_migrate_internal.adopt_plan_blockers(
	tables regclass[],
	columns name[],
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	views CONSTANT regclass[] := ARRAY(
		SELECT v.view FROM snowflake_migrate_internal.adopt_views(tables, columns) AS v);
BEGIN
	/* Before anything is read, or tried. */
	RETURN QUERY SELECT c.* FROM snowflake_migrate_internal.adopt_code_blockers(tables, columns) AS c;
	IF FOUND THEN
		RETURN;
	END IF;
	RETURN QUERY SELECT l.* FROM snowflake_migrate_internal.adopt_lock_blockers(tables, columns) AS l;
	RETURN QUERY SELECT v.* FROM snowflake_migrate_internal.adopt_view_blockers(tables, columns) AS v;
	RETURN QUERY
		SELECT b.relation, b.action, b.blocked_by
		FROM (SELECT o.* FROM snowflake_migrate_internal.adopt_object_blockers(tables, columns, views) AS o
			  /* Triggers, policies and entries of publications are made again. */
			  WHERE o.rank NOT IN (40, 50, 70)
			  UNION ALL
			  SELECT * FROM snowflake_migrate_internal.adopt_table_blockers(tables, columns)
			  UNION ALL
			  SELECT * FROM snowflake_migrate_internal.adopt_reference_blockers(tables, columns)) AS b
		ORDER BY b.rank, b.level, b.blocked_by, b.relation;
	RETURN QUERY
		SELECT b.*
		FROM (SELECT * FROM snowflake_migrate_internal.adopt_plan_table_blockers(tables, columns)
			  UNION
			  SELECT * FROM snowflake_migrate_internal.adopt_plan_trigger_blockers(tables, columns)
			  UNION
			  SELECT * FROM snowflake_migrate_internal.adopt_publication_blockers(tables, columns)
			  UNION
			  SELECT * FROM snowflake_migrate_internal.adopt_part_blockers(tables, columns)
			  UNION
			  SELECT * FROM snowflake_migrate_internal.adopt_recreated_blockers(tables, columns)) AS b
		ORDER BY b.relation, b.blocked_by;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_plan_blockers(regclass[], name[])
	IS 'for snowflake_migrate.adopt_plan()''s own use: what stands in its way';
