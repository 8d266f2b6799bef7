/*
 * Existing integer keys go over to snowflake ids.
 *
 * A key's column is widened to bigint together with every column that references it, by a foreign key or as declared with
 * snowflake_migrate.declare_reference(), those that reference these, and so on, each with its partitions and inheritance children.  Old
 * rows keep their ids, which must sort before all new ones.
 *
 * Nothing here has more rights than its caller.  The tables are locked in ACCESS EXCLUSIVE mode, all of them before the
 * first is changed, in the order of their OIDs, partitions and children after their parent: two calls can't deadlock, and
 * one that deadlocks with something else has not rewritten anything yet.
 */

/*
 * The columns that the adoption of these keys changes.  A column is listed with the topmost table that has it, its root,
 * which ALTER TABLE is called for; one that is inherited from several tables, once for each.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_columns(
	tables regclass[],
	columns name[],
	OUT root regclass,
	OUT member regclass,
	OUT attnum smallint,
	OUT attname name,
	OUT adopted boolean,
	OUT widened boolean) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE
	reached (relid, attnum) AS (
		SELECT a.attrelid, a.attnum
		FROM unnest(tables, columns) AS g (relid, attname) JOIN pg_attribute AS a ON a.attrelid = g.relid AND a.attname = g.attname
		UNION
		SELECT n.relid, n.attnum
		FROM reached AS r JOIN pg_attribute AS a ON a.attrelid = r.relid AND a.attnum = r.attnum,
			LATERAL (
				SELECT b.attrelid, b.attnum
				FROM (SELECT i.inhparent FROM pg_inherits AS i WHERE i.inhrelid = r.relid
					  UNION ALL
					  SELECT i.inhrelid FROM pg_inherits AS i WHERE i.inhparent = r.relid) AS kin (relid)
					JOIN pg_attribute AS b ON b.attrelid = kin.relid AND b.attname = a.attname
				UNION ALL
				SELECT f.conrelid, f.conkey[k.i]
				FROM pg_constraint AS f, generate_subscripts(f.confkey, 1) AS k (i)
				WHERE f.contype = 'f' AND f.confrelid = r.relid AND f.confkey[k.i] = r.attnum
				UNION ALL
				SELECT b.attrelid, b.attnum
				FROM snowflake_migrate.declared_references AS d
					JOIN pg_attribute AS b ON b.attrelid = d.relation AND b.attname = d.column_name
				WHERE d.referenced = r.relid AND b.atttypid IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype)
					AND EXISTS (SELECT FROM unnest(tables, columns) AS g (relid, attname) WHERE g.relid = r.relid AND g.attname = a.attname)
			) AS n (relid, attnum)
	),
	tree (root, relid, attnum) AS (
		SELECT r.relid, r.relid, r.attnum
		FROM reached AS r JOIN pg_attribute AS a ON a.attrelid = r.relid AND a.attnum = r.attnum
		WHERE a.attinhcount = 0
		UNION
		SELECT t.root, b.attrelid, b.attnum
		FROM tree AS t
			JOIN pg_attribute AS a ON a.attrelid = t.relid AND a.attnum = t.attnum
			JOIN pg_inherits AS i ON i.inhparent = t.relid
			JOIN pg_attribute AS b ON b.attrelid = i.inhrelid AND b.attname = a.attname
	)
	SELECT t.root, t.relid, t.attnum, a.attname,
		EXISTS (SELECT FROM unnest(tables, columns) AS g (relid, attname) WHERE g.relid = t.root AND g.attname = a.attname),
		a.atttypid IN ('smallint'::regtype, 'integer'::regtype)
	FROM tree AS t JOIN pg_attribute AS a ON a.attrelid = t.relid AND a.attnum = t.attnum
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_columns(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: the columns that it changes';

/* What creates a view or a materialized view again, with what would go with it when it is dropped. */
CREATE FUNCTION snowflake_migrate_internal.adopt_view(view regclass) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT concat_ws(E'\n',
		format('CREATE %s %s%s AS%s', k.kind, view, ' WITH (' || array_to_string(c.reloptions, ', ') || ')',
			   E'\n' || CASE WHEN c.relkind = 'm' AND NOT c.relispopulated THEN rtrim(pg_get_viewdef(view), ';') || E'\n  WITH NO DATA;'
							 ELSE pg_get_viewdef(view) END),
		(SELECT string_agg(pg_get_indexdef(i.indexrelid) || ';', E'\n' ORDER BY i.indexrelid) FROM pg_index AS i WHERE i.indrelid = view),
		(SELECT string_agg(pg_get_triggerdef(t.oid) || ';', E'\n' ORDER BY t.tgname) FROM pg_trigger AS t WHERE t.tgrelid = view),
		(SELECT string_agg(pg_get_ruledef(r.oid), E'\n' ORDER BY r.rulename) FROM pg_rewrite AS r WHERE r.ev_class = view AND r.ev_type <> '1'),
		CASE WHEN c.relowner <> current_user::regrole THEN format('ALTER %s %s OWNER TO %s;', k.kind, view, c.relowner::regrole) END,
		(SELECT string_agg(format('GRANT %s ON %s TO %s%s;', g.privileges, view, g.grantee, g.option), E'\n' ORDER BY g.grantee, g.option)
		 FROM (SELECT CASE WHEN x.grantee = 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END AS grantee,
					  CASE WHEN x.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END AS option,
					  string_agg(x.privilege_type, ', ' ORDER BY x.privilege_type) AS privileges
			   FROM aclexplode(c.relacl) AS x WHERE x.grantee <> c.relowner GROUP BY 1, 2) AS g),
		(SELECT string_agg(format('GRANT %s (%I) ON %s TO %s%s;', x.privilege_type, a.attname, view,
								  CASE WHEN x.grantee = 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END,
								  CASE WHEN x.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END), E'\n' ORDER BY a.attnum)
		 FROM pg_attribute AS a, aclexplode(a.attacl) AS x WHERE a.attrelid = view),
		format('COMMENT ON %s %s IS ', k.kind, view) || quote_literal(obj_description(view, 'pg_class')) || ';')
	FROM pg_class AS c, LATERAL (SELECT CASE c.relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'VIEW' END) AS k (kind)
	WHERE c.oid = view
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_view(regclass)
	IS 'for snowflake_migrate.adopt()''s own use: what creates a view again';

/*
 * What stands in the way.  PostgreSQL names only the first thing that it finds when it changes a column's type, some of
 * them after the table was rewritten.  Views come in the order in which they can be created again.
 *
 * To compile these queries would take seconds.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_blockers(
	tables regclass[],
	columns name[],
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	key record;
	trial record;
	largest bigint;
	problems text[];
	done boolean;
BEGIN
	FOR key IN SELECT DISTINCT c.root, c.attname, c.widened FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c WHERE c.adopted
		ORDER BY c.root, c.attname
	LOOP
		/* No integer is that large, so that the table need not be read. */
		CONTINUE WHEN key.widened AND snowflake_migrate_internal.nextval() > 2147483647;
		EXECUTE format('SELECT max(%I) FROM %s', key.attname, key.root) INTO largest;
		/* All later ids are greater than this one. */
		IF largest >= snowflake_migrate_internal.nextval() THEN
			relation := key.root;
			blocked_by := format('id %s, as new ids would sort before it', largest);
			action := CASE WHEN largest <= snowflake_migrate_internal.max_id(clock_timestamp() + interval '1 day')
				THEN format('before: SELECT %s.snowflake_advance_past(%s);', snowflake_migrate_internal.snowflake_schema(), largest)
				ELSE 'give the rows whose ids lie more than a day ahead other ids, or choose a layout whose ids are greater' END;
			RETURN NEXT;
		END IF;
	END LOOP;

	RETURN QUERY
	WITH RECURSIVE
	changed AS MATERIALIZED (SELECT c.* FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c),
	widened AS MATERIALIZED (SELECT c.* FROM changed AS c WHERE c.widened),
	/* The row types of what is rewritten, and all types that contain them. */
	row_type (root, oid) AS (
		SELECT w.root, r.reltype FROM widened AS w JOIN pg_class AS r ON r.oid = w.member
		UNION
		SELECT t.root, coalesce(r.reltype, d.objid)
		FROM row_type AS t
			JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = t.oid
			LEFT JOIN pg_class AS r ON d.classid = 'pg_class'::regclass AND r.oid = d.objid
		WHERE d.classid = 'pg_type'::regclass OR (r.relkind IN ('c', 'v', 'f') AND d.objsubid > 0)
	),
	uses (root, classid, objid, objsubid, of_row) AS (
		SELECT w.root, d.classid, d.objid, d.objsubid, false
		FROM widened AS w
			JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = w.member AND d.refobjsubid = w.attnum
		WHERE NOT EXISTS (SELECT FROM pg_attrdef AS own
						  WHERE d.classid = 'pg_attrdef'::regclass AND own.oid = d.objid AND own.adrelid = w.member AND own.adnum = w.attnum)
		UNION
		SELECT t.root, d.classid, d.objid, d.objsubid, true
		FROM row_type AS t JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = t.oid
		WHERE d.deptype = 'n'
		GROUP BY t.root, d.refobjid, d.classid, d.objid, d.objsubid
		/* A function's arguments and result may be of the row type, its body and its defaults, which depend on their own, may not. */
		HAVING d.classid <> 'pg_proc'::regclass
			OR count(*) > (SELECT (d.refobjid = p.prorettype OR d.refobjid = ANY (p.proargtypes)
								   OR coalesce(d.refobjid = ANY (p.proallargtypes), false))::int
						   FROM pg_proc AS p WHERE p.oid = d.objid)
	),
	/* Views, and all that can't be there without them. */
	lost (root, classid, objid, level) AS (
		SELECT u.root, 'pg_class'::regclass::oid, v.ev_class, 1
		FROM uses AS u JOIN pg_rewrite AS v ON u.classid = 'pg_rewrite'::regclass AND v.oid = u.objid AND v.ev_type = '1'
		UNION
		SELECT l.root, n.classid, n.objid, l.level + 1
		FROM lost AS l,
			LATERAL (
				SELECT CASE WHEN v.oid IS NULL THEN d.classid ELSE 'pg_class'::regclass END, coalesce(v.ev_class, d.objid)
				FROM pg_depend AS d
					LEFT JOIN pg_rewrite AS v ON d.classid = 'pg_rewrite'::regclass AND v.oid = d.objid AND v.ev_type = '1'
				WHERE d.deptype = 'n'
					AND ((d.refclassid = l.classid AND d.refobjid = l.objid)
						 OR (d.refclassid = 'pg_type'::regclass AND l.classid = 'pg_class'::regclass AND d.refobjid IN (
								SELECT t.oid FROM pg_type AS t JOIN pg_class AS r ON r.oid = l.objid AND r.reltype IN (t.oid, t.typelem))))
			) AS n (classid, objid)
		/* Views that select from each other are possible, though they can't be used. */
		WHERE (n.classid, n.objid) <> (l.classid, l.objid) AND l.level < 1000
	),
	object (root, classid, objid, objsubid, level, of_row) AS (
		SELECT l.root, l.classid, l.objid, 0, max(l.level), false FROM lost AS l GROUP BY l.root, l.classid, l.objid
		UNION ALL
		SELECT u.root, u.classid, u.objid, u.objsubid, 0, bool_or(u.of_row)
		FROM uses AS u
		WHERE NOT EXISTS (SELECT FROM pg_rewrite AS v WHERE u.classid = 'pg_rewrite'::regclass AND v.oid = u.objid AND v.ev_type = '1')
			AND NOT EXISTS (SELECT FROM lost AS l WHERE (l.root, l.classid, l.objid) = (u.root, u.classid, u.objid))
		GROUP BY u.root, u.classid, u.objid, u.objsubid
	),
	found (rank, root, level, blocked_by, action) AS (
		SELECT 10, o.root, o.level, pg_describe_object(o.classid, o.objid, 0),
			E'drop it before, create it again after:\n' || snowflake_migrate_internal.adopt_view(c.oid::regclass)
		FROM object AS o JOIN pg_class AS c ON o.classid = 'pg_class'::regclass AND c.oid = o.objid AND c.relkind IN ('v', 'm')
		WHERE o.level > 0
		UNION ALL
		SELECT CASE WHEN o.level = 0 THEN 20 ELSE 10 END, o.root, o.level, pg_describe_object(o.classid, o.objid, 0),
			E'drop it before, create it again after:\n' || pg_get_ruledef(o.objid)
		FROM object AS o WHERE o.classid = 'pg_rewrite'::regclass
		UNION ALL
		SELECT CASE WHEN o.level = 0 THEN 30 ELSE 10 END, o.root, o.level, pg_describe_object(o.classid, o.objid, 0),
			E'drop it before, create it again after:\n' || pg_get_functiondef(o.objid)
		FROM object AS o JOIN pg_proc AS p ON o.classid = 'pg_proc'::regclass AND p.oid = o.objid AND p.prokind <> 'a'
		UNION ALL
		SELECT CASE WHEN o.level = 0 THEN 40 ELSE 10 END, o.root, o.level, pg_describe_object(o.classid, o.objid, 0),
			E'drop it before, create it again after:\n' || pg_get_triggerdef(t.oid) || ';'
		FROM object AS o JOIN pg_trigger AS t ON o.classid = 'pg_trigger'::regclass AND t.oid = o.objid
		WHERE NOT t.tgisinternal AND t.tgparentid = 0
		UNION ALL
		SELECT CASE WHEN o.level = 0 THEN 50 ELSE 10 END, o.root, o.level, pg_describe_object(o.classid, o.objid, 0),
			E'drop it before, create it again after:\n'
				|| format('CREATE POLICY %I ON %s AS %s FOR %s TO %s', p.polname, p.polrelid::regclass,
						  CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
						  CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE' ELSE 'ALL' END,
						  (SELECT string_agg(CASE WHEN r = 0 THEN 'PUBLIC' ELSE r::regrole::text END, ', ') FROM unnest(p.polroles) AS r))
				|| coalesce(' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')', '')
				|| coalesce(' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')', '') || ';'
		FROM object AS o JOIN pg_policy AS p ON o.classid = 'pg_policy'::regclass AND p.oid = o.objid
		UNION ALL
		SELECT 60, o.root, 0, format('generated column %I of table %s', a.attname, d.adrelid::regclass),
			E'drop it before, add it again after:\n'
				|| format('ALTER TABLE %s ADD COLUMN %I %s GENERATED ALWAYS AS (%s) %s;', d.adrelid::regclass, a.attname,
						  format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid),
						  CASE a.attgenerated WHEN 's' THEN 'STORED' ELSE 'VIRTUAL' END)
		FROM object AS o
			JOIN pg_attrdef AS d ON o.classid = 'pg_attrdef'::regclass AND d.oid = o.objid
			JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
		WHERE a.attgenerated <> '' AND a.attinhcount = 0
		UNION ALL
		SELECT 70, o.root, 0, pg_describe_object(o.classid, o.objid, 0),
			E'drop it before, add it again after:\n'
				|| format('ALTER PUBLICATION %I ADD TABLE ONLY %s', b.pubname, p.prrelid::regclass)
				|| coalesce(' (' || (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY k.i)
									 FROM unnest(p.prattrs) WITH ORDINALITY AS k (attnum, i)
										JOIN pg_attribute AS a ON a.attrelid = p.prrelid AND a.attnum = k.attnum) || ')', '')
				|| coalesce(' WHERE (' || pg_get_expr(p.prqual, p.prrelid) || ')', '') || ';'
		FROM object AS o
			JOIN pg_publication_rel AS p ON o.classid = 'pg_publication_rel'::regclass AND p.oid = o.objid
			JOIN pg_publication AS b ON b.oid = p.prpubid
		UNION ALL
		/* What else has expressions with the row type, and columns that hold rows. */
		SELECT 80, o.root, 0, pg_describe_object(o.classid, o.objid, o.objsubid),
			format('drop it before, as it %s rows of %s', CASE WHEN o.objsubid > 0 THEN 'holds' ELSE 'makes' END, o.root)
		FROM object AS o LEFT JOIN pg_class AS c ON o.classid = 'pg_class'::regclass AND c.oid = o.objid
		WHERE o.of_row
			AND (c.relkind IN ('r', 'p', 'm', 'i', 'I')
				 OR o.classid IN ('pg_constraint'::regclass, 'pg_statistic_ext'::regclass)
				 OR EXISTS (SELECT FROM pg_attrdef AS d JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
							WHERE o.classid = 'pg_attrdef'::regclass AND d.oid = o.objid AND a.attgenerated = ''))
		UNION ALL
		SELECT 90, w.root, 0, format('partition key of table %s', w.member),
			format('a new table that is partitioned by a bigint column must take the rows: %s', pg_get_partkeydef(w.member))
		FROM widened AS w JOIN pg_partitioned_table AS p ON p.partrelid = w.member
		WHERE w.attnum = ANY (p.partattrs)
			OR EXISTS (SELECT FROM pg_depend AS d
					   WHERE d.classid = 'pg_class'::regclass AND d.objid = w.member AND d.objsubid = 0
						AND d.refclassid = 'pg_class'::regclass AND d.refobjid = w.member AND d.refobjsubid = w.attnum)
		UNION ALL
		SELECT 100, w.root, 0, format('type %s of table %s', c.reloftype::regtype, w.member),
			format('before: ALTER TABLE %s NOT OF;', w.member)
		FROM widened AS w JOIN pg_class AS c ON c.oid = w.member WHERE c.reloftype <> 0
		UNION ALL
		SELECT 110, w.root, 0, format('foreign table %s', w.member),
			'detach it before; after, make the column bigint on its server too, and attach it again'
		FROM widened AS w JOIN pg_class AS c ON c.oid = w.member WHERE c.relkind = 'f'
		UNION ALL
		SELECT 120, w.root, 0, format('temporary table %s of another session', w.member), 'end that session before'
		FROM widened AS w JOIN pg_class AS c ON c.oid = w.member WHERE pg_is_other_temp_schema(c.relnamespace)
		UNION ALL
		SELECT 130, min(w.root::oid)::regclass, 0,
			format('column %I of table %s, which is inherited from %s', w.attname, w.member,
				   string_agg(w.root::text, ' and ' ORDER BY w.root::text)),
			format('before: ALTER TABLE %s NO INHERIT ...; for all of these but one', w.member)
		FROM widened AS w GROUP BY w.member, w.attname HAVING count(DISTINCT w.root) > 1
		UNION ALL
		/* From PostgreSQL 18 on these have names, which ALTER TABLE can't bring together while they are inherited. */
		SELECT 140, w.root, 0, pg_describe_object('pg_constraint'::regclass, n.oid, 0),
			format(E'before:\nALTER TABLE %1$s NO INHERIT %2$s;\nALTER TABLE %1$s RENAME CONSTRAINT %3$I TO %4$I;\nALTER TABLE %1$s INHERIT %2$s;',
				   w.member, i.inhparent::regclass, n.conname, o.conname)
		FROM widened AS w
			JOIN pg_constraint AS n ON n.contype = 'n' AND n.conrelid = w.member AND n.conkey[1] = w.attnum AND n.conislocal
			JOIN pg_inherits AS i ON i.inhrelid = w.member
			JOIN pg_attribute AS a ON a.attrelid = i.inhparent AND a.attname = w.attname
			JOIN pg_constraint AS o ON o.contype = 'n' AND o.conrelid = i.inhparent AND o.conkey[1] = a.attnum
		WHERE n.conname <> o.conname
		UNION ALL
		SELECT 150, c.root, 0, format('column %I of table %s', a.attname, c.root),
			format('it references what is adopted and has the type %s: make it bigint, or a type over bigint, before',
				   format_type(a.atttypid, a.atttypmod))
		FROM changed AS c JOIN pg_attribute AS a ON a.attrelid = c.root AND a.attnum = c.attnum
		WHERE c.member = c.root AND NOT c.widened
			AND (WITH RECURSIVE base (oid, next) AS (
					SELECT t.oid, t.typbasetype FROM pg_type AS t WHERE t.oid = a.atttypid
					UNION ALL
					SELECT t.oid, t.typbasetype FROM base AS b JOIN pg_type AS t ON t.oid = b.next)
				 SELECT b.oid FROM base AS b WHERE b.next = 0) <> 'bigint'::regtype
		UNION ALL
		/* Its index is a part of that of the whole table, which PostgreSQL can't make anew under it. */
		SELECT 160, w.root, 0, pg_describe_object('pg_constraint'::regclass, f.oid, 0),
			E'it references a partition; drop it before, add it again after:\n'
				|| format('ALTER TABLE %s ADD CONSTRAINT %I %s;', f.conrelid::regclass, f.conname, pg_get_constraintdef(f.oid))
		FROM widened AS w
			JOIN pg_constraint AS f ON f.contype = 'f' AND f.conparentid = 0 AND f.confrelid = w.member AND w.attnum = ANY (f.confkey)
			JOIN pg_class AS i ON i.oid = f.conindid AND i.relispartition
		UNION ALL
		SELECT 170, c.root, 0, pg_describe_object('pg_constraint'::regclass, f.oid, 0),
			format('column %I takes its values from %s: adopt the column there instead', c.attname, f.confrelid::regclass)
		FROM changed AS c
			JOIN pg_constraint AS f ON f.contype = 'f' AND f.conparentid = 0 AND f.conrelid = c.member AND c.attnum = ANY (f.conkey)
		WHERE c.adopted
		UNION ALL
		SELECT 180, c.root, 0, pg_describe_object(d.classid, d.objid, d.objsubid),
			format('it uses the sequence of identity column %I, %s, which is dropped: give it another one before', c.attname, s.objid::regclass)
		FROM changed AS c
			JOIN pg_depend AS s ON s.classid = 'pg_class'::regclass AND s.refclassid = 'pg_class'::regclass
				AND s.refobjid = c.member AND s.refobjsubid = c.attnum AND s.deptype = 'i'
			JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.objid
		WHERE c.adopted
	)
	SELECT f.root, f.action, f.blocked_by
	FROM (SELECT f.*, row_number() OVER (PARTITION BY f.rank, f.blocked_by ORDER BY f.level DESC, f.root) AS repeated FROM found AS f) AS f
	WHERE f.repeated = 1
	ORDER BY f.rank, f.level, f.blocked_by, f.root;

	/* Whether an expression has a meaning for bigint is tried on an empty table of the same columns, which is taken back at once. */
	FOR trial IN
		WITH widened AS MATERIALIZED (
			SELECT c.* FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c WHERE c.widened
		),
		part (relid, name, definition, statement) AS (
			SELECT i.indrelid, pg_describe_object('pg_class'::regclass, i.indexrelid, 0), d.definition,
				format('CREATE INDEX ON pg_temp.snowflake_adopt_trial%s',
					   substr(d.definition, 1 + length(format('CREATE%s INDEX %I ON%s %s', CASE WHEN i.indisunique THEN ' UNIQUE' END, x.relname,
															  CASE WHEN x.relkind = 'I' THEN ' ONLY' END, i.indrelid::regclass))))
			FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid, pg_get_indexdef(i.indexrelid) AS d (definition)
			WHERE NOT x.relispartition AND NOT i.indisexclusion
				AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL
					 OR EXISTS (SELECT FROM pg_opclass AS o WHERE o.oid = ANY (i.indclass) AND NOT o.opcdefault))
				AND EXISTS (SELECT FROM widened AS w JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass
								AND d.refobjid = w.member AND d.refobjsubid = w.attnum
							WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid)
			UNION ALL
			SELECT c.conrelid, pg_describe_object('pg_constraint'::regclass, c.oid, 0),
				format('ALTER TABLE %s ADD CONSTRAINT %I %s', c.conrelid::regclass, c.conname, d.definition),
				format('ALTER TABLE pg_temp.snowflake_adopt_trial ADD %s', d.definition)
			FROM pg_constraint AS c, pg_get_constraintdef(c.oid) AS d (definition)
			WHERE c.contype IN ('c', 'x') AND c.conparentid = 0 AND c.coninhcount = 0
				AND EXISTS (SELECT FROM widened AS w WHERE w.member = c.conrelid AND w.attnum = ANY (c.conkey))
			UNION ALL
			SELECT s.stxrelid, pg_describe_object('pg_statistic_ext'::regclass, s.oid, 0), pg_get_statisticsobjdef(s.oid),
				format('CREATE STATISTICS pg_temp.snowflake_adopt_trial_statistics ON %s FROM pg_temp.snowflake_adopt_trial',
					   pg_get_statisticsobjdef_columns(s.oid))
			FROM pg_statistic_ext AS s
			WHERE s.stxexprs IS NOT NULL AND EXISTS (SELECT FROM widened AS w WHERE w.member = s.stxrelid)
		)
		SELECT p.relid::regclass AS member,
			(SELECT min(w.root::oid)::regclass FROM widened AS w WHERE w.member = p.relid) AS root,
			(SELECT string_agg(DISTINCT format('ALTER COLUMN %I TYPE bigint', w.attname), ', ')
			 FROM widened AS w WHERE w.member = p.relid) AS widening,
			array_agg(p.name ORDER BY p.name) AS names,
			array_agg(p.definition ORDER BY p.name) AS definitions,
			array_agg(p.statement ORDER BY p.name) AS statements
		FROM part AS p GROUP BY p.relid ORDER BY p.relid
	LOOP
		IF current_setting('transaction_read_only')::boolean THEN
			RAISE EXCEPTION USING ERRCODE = 'read_only_sql_transaction',
				MESSAGE = format('cannot try the expressions of table %s in a read-only transaction', trial.member),
				DETAIL = 'They are tried on a temporary table.',
				HINT = 'Call snowflake_migrate.adopt() in a read-write transaction.';
		ELSIF NOT has_database_privilege(current_database(), 'TEMP') THEN
			RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
				MESSAGE = format('permission denied to create temporary tables in database "%s"', current_database()),
				DETAIL = format('The expressions of table %s are tried on a temporary table.', trial.member),
				HINT = 'Grant the privilege TEMP on the database.';
		END IF;

		problems := array_fill(NULL::text, ARRAY[cardinality(trial.statements)]);
		done := false;
		BEGIN
			EXECUTE format('CREATE TABLE pg_temp.snowflake_adopt_trial (LIKE %s)', trial.member);
			EXECUTE format('ALTER TABLE pg_temp.snowflake_adopt_trial %s', trial.widening);
			FOR n IN 1 .. cardinality(trial.statements) LOOP
				BEGIN
					EXECUTE trial.statements[n];
					RAISE EXCEPTION USING ERRCODE = 'SF000', MESSAGE = 'it has a meaning';
				EXCEPTION
					WHEN SQLSTATE 'SF000' THEN
						NULL;
					WHEN OTHERS THEN
						problems[n] := SQLERRM;
				END;
			END LOOP;
			done := true;
			RAISE EXCEPTION 'the table is not needed any more';
		EXCEPTION WHEN OTHERS THEN
			IF NOT done THEN
				RAISE;
			END IF;
		END;
		FOR n IN 1 .. cardinality(problems) LOOP
			IF problems[n] IS NOT NULL THEN
				relation := trial.root;
				blocked_by := format('%s: %s', trial.names[n], problems[n]);
				action := format(E'drop it before; after, create it in a form that has a meaning for bigint, instead of:\n%s;',
								 trial.definitions[n]);
				RETURN NEXT;
			END IF;
		END LOOP;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_blockers(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: what stands in its way';

/* The primary keys' columns; what is no table or has none of one column is told by adopt_check(). */
CREATE FUNCTION snowflake_migrate_internal.adopt_keys(tables regclass[]) RETURNS name[]
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	keys name[];
	keyless regclass;
BEGIN
	SELECT array_agg(a.attname ORDER BY g.n),
			(array_agg(g.relid ORDER BY g.n) FILTER (WHERE a.attname IS NULL AND c.relkind IN ('r', 'p')))[1]
		INTO keys, keyless
		FROM unnest(tables) WITH ORDINALITY AS g (relid, n)
			LEFT JOIN pg_class AS c ON c.oid = g.relid
			LEFT JOIN pg_index AS i ON i.indrelid = g.relid AND i.indisprimary AND i.indnkeyatts = 1
			LEFT JOIN pg_attribute AS a ON a.attrelid = g.relid AND a.attnum = i.indkey[0];
	IF keyless IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'invalid_column_reference',
			MESSAGE = format('table %s has no primary key of one column', keyless),
			HINT = 'Give the columns to adopt, one for each table.';
	END IF;
	RETURN coalesce(keys, '{}');
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_keys(regclass[])
	IS 'for snowflake_migrate.adopt()''s own use: the columns of the primary keys';

/* Raises an error where these are not keys that can go over to snowflake ids. */
CREATE FUNCTION snowflake_migrate_internal.adopt_check(tables regclass[], columns name[]) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	given record;
	relation record;
	attribute record;
	parents text;
BEGIN
	IF cardinality(tables) <> cardinality(columns) THEN
		RAISE EXCEPTION USING ERRCODE = 'array_subscript_error',
			MESSAGE = 'tables and columns must have the same number of elements',
			DETAIL = format('The numbers are %s and %s.', cardinality(tables), cardinality(columns)),
			HINT = 'Give a key column for each table.';
	END IF;

	FOR given IN SELECT g.relid, g.attname FROM unnest(tables, columns) AS g (relid, attname) LOOP
		IF given.relid IS NULL THEN
			RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'table must not be null';
		ELSIF given.attname IS NULL THEN
			RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
				MESSAGE = format('column of table %s must not be null', given.relid);
		END IF;

		SELECT c.* INTO relation FROM pg_class AS c WHERE c.oid = given.relid;
		IF NOT FOUND THEN
			RAISE EXCEPTION USING ERRCODE = 'undefined_table',
				MESSAGE = format('table with OID %s does not exist', given.relid::oid);
		ELSIF relation.relkind = 'f' THEN
			RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
				MESSAGE = format('%s is a foreign table', given.relid),
				HINT = 'Adopt the table on the server that it is on.';
		ELSIF relation.relkind NOT IN ('r', 'p') THEN
			RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
				MESSAGE = format('%s is not a table', given.relid),
				HINT = 'Give tables or partitioned tables.';
		ELSIF given.relid::oid < 16384 THEN
			RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
				MESSAGE = format('permission denied: %s is a system catalog', given.relid),
				HINT = 'Give tables that were created by users.';
		ELSIF relation.relpersistence = 't' THEN
			RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
				MESSAGE = format('table %s is a temporary table%s', given.relid,
								 CASE WHEN pg_is_other_temp_schema(relation.relnamespace) THEN ' of another session' END),
				HINT = 'Give tables that stay; a temporary table can be created with DEFAULT snowflake_nextval().';
		END IF;

		SELECT a.* INTO attribute FROM pg_attribute AS a
			WHERE a.attrelid = given.relid AND a.attname = given.attname AND a.attnum > 0 AND NOT a.attisdropped;
		IF NOT FOUND THEN
			RAISE EXCEPTION USING ERRCODE = 'undefined_column',
				MESSAGE = format('column "%s" of table %s does not exist', given.attname, given.relid);
		ELSIF attribute.atttypid NOT IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype) THEN
			RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
				MESSAGE = format('column "%s" of table %s has the type %s', given.attname, given.relid,
								 format_type(attribute.atttypid, attribute.atttypmod)),
				HINT = 'Give columns of the types smallint, integer and bigint.';
		ELSIF attribute.attgenerated <> '' THEN
			RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
				MESSAGE = format('column "%s" of table %s is a generated column', given.attname, given.relid),
				HINT = 'Give columns that can have a default.';
		ELSIF attribute.attinhcount > 0 THEN
			SELECT string_agg(i.inhparent::regclass::text, ', ' ORDER BY i.inhseqno) INTO parents
				FROM pg_inherits AS i JOIN pg_attribute AS a ON a.attrelid = i.inhparent AND a.attname = given.attname
				WHERE i.inhrelid = given.relid;
			RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
				MESSAGE = format('column "%s" of table %s is inherited', given.attname, given.relid),
				HINT = format('Give the table that it is inherited from (%s): partitions and children go with it.', parents);
		END IF;

		PERFORM FROM pg_index AS i
			WHERE i.indrelid = given.relid AND i.indisprimary AND i.indnkeyatts = 1 AND i.indkey[0] = attribute.attnum
		UNION ALL
		SELECT FROM pg_attrdef AS d JOIN pg_depend AS u ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid
			LEFT JOIN pg_class AS s ON u.refclassid = 'pg_class'::regclass AND s.oid = u.refobjid
			WHERE d.adrelid = given.relid AND d.adnum = attribute.attnum
				AND (s.relkind = 'S'
					 OR (u.refclassid = 'pg_proc'::regclass AND u.refobjid = snowflake_migrate_internal.default_function()));
		IF NOT FOUND AND attribute.attidentity = '' THEN
			RAISE EXCEPTION USING ERRCODE = 'invalid_column_reference',
				MESSAGE = format('column "%s" of table %s is not a key', given.attname, given.relid),
				DETAIL = 'A key is the one column of a primary key, an identity column, or a column whose default is taken from a sequence.',
				HINT = 'Give the key; columns that reference it are changed with it.';
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_check(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: refuses what is not a key';

/*
 * Rows: each command that is executed, in order, with the size of what it rewrites, table and indexes; sequences that are
 * kept, and why; and functions that can't take or return the new ids.  For a dry run what stands in the way comes first,
 * with what is to be done about it; otherwise it is an error that names all of it, and nothing is changed.
 *
 * What a function does with its arguments can't be known.  Listed are those in the schemas of the changed tables that have
 * an argument or result of type smallint or integer, and either an argument of these types that is named as a changed
 * column, or as one with a prefix (id, p_id, order_id), or a body that names a changed table.
 */
CREATE FUNCTION snowflake_migrate.adopt(
	relations regclass[],
	columns name[] DEFAULT NULL,
	dry_run boolean DEFAULT false,
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text,
	OUT bytes bigint) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
#variable_conflict use_column
DECLARE
	changed regclass[];
	locked regclass[];
	missing text;
	blocker record;
	blockers text[] := '{}';
	step record;
	steps json;
	narrow_types CONSTANT oid[] := ARRAY['smallint'::regtype, 'integer'::regtype, 'smallint[]'::regtype, 'integer[]'::regtype];
BEGIN
	IF relations IS NULL OR dry_run IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
			MESSAGE = format('%s must not be null', CASE WHEN relations IS NULL THEN 'relations' ELSE 'dry_run' END);
	END IF;
	columns := coalesce(columns, snowflake_migrate_internal.adopt_keys(relations));

	/* The largest id must be that of all committed rows. */
	IF NOT dry_run AND current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
		RAISE EXCEPTION USING ERRCODE = 'active_sql_transaction',
			MESSAGE = format('cannot adopt tables in a %s transaction', upper(current_setting('transaction_isolation'))),
			HINT = 'Use a READ COMMITTED transaction.';
	END IF;

	/* Until nothing was added or taken away while a lock was waited for. */
	LOOP
		PERFORM snowflake_migrate_internal.adopt_check(relations, columns);
		changed := coalesce((SELECT array_agg(DISTINCT c.member ORDER BY c.member)
							 FROM snowflake_migrate_internal.adopt_columns(relations, columns) AS c), '{}');
		SELECT string_agg(format('Table %s belongs to role %s.', c.oid::regclass, c.relowner::regrole), E'\n' ORDER BY c.oid) INTO missing
			FROM pg_class AS c WHERE c.oid = ANY (changed) AND NOT pg_has_role(c.relowner, 'USAGE');
		IF missing IS NOT NULL THEN
			RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
				MESSAGE = 'must be owner of all tables that would be changed',
				DETAIL = missing,
				HINT = 'The tables that reference a key are changed with it, and so are partitions and children.';
		END IF;
		EXIT WHEN dry_run OR changed = locked;

		/* A table that is only referenced is locked as ALTER TABLE will lock it. */
		FOR step IN
			WITH c AS MATERIALIZED (SELECT c.* FROM snowflake_migrate_internal.adopt_columns(relations, columns) AS c)
			SELECT c.root AS relation, 'ACCESS EXCLUSIVE' AS mode FROM c
			UNION
			SELECT f.confrelid, 'SHARE ROW EXCLUSIVE'
			FROM c JOIN pg_constraint AS f ON f.contype = 'f' AND f.conparentid = 0 AND f.conrelid = c.member AND c.attnum = ANY (f.conkey)
			WHERE f.confrelid <> ALL (changed) AND has_table_privilege(f.confrelid, 'UPDATE, DELETE, TRUNCATE')
			ORDER BY 1
		LOOP
			EXECUTE format('LOCK TABLE %s IN %s MODE', step.relation, step.mode);
		END LOOP;
		locked := changed;
	END LOOP;

	FOR blocker IN SELECT b.* FROM snowflake_migrate_internal.adopt_blockers(relations, columns) AS b LOOP
		relation := blocker.relation;
		action := blocker.action;
		blocked_by := blocker.blocked_by;
		RETURN NEXT;
		blockers := blockers || format('Table %s: %s.', relation, blocked_by);
	END LOOP;
	IF NOT dry_run AND cardinality(blockers) > 0 THEN
		RAISE EXCEPTION USING ERRCODE = 'dependent_objects_still_exist',
			MESSAGE = 'cannot adopt the tables as they are',
			DETAIL = array_to_string(blockers, E'\n'),
			HINT = 'Call snowflake_migrate.adopt() with dry_run => true, which says what to do about each.';
	END IF;

	WITH changed AS MATERIALIZED (
		SELECT c.*, a.attidentity,
			EXISTS (SELECT FROM pg_attrdef AS d JOIN pg_depend AS u ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid
					WHERE d.adrelid = c.member AND d.adnum = c.attnum
						AND u.refclassid = 'pg_proc'::regclass AND u.refobjid = snowflake_migrate_internal.default_function()) AS has_default
		FROM snowflake_migrate_internal.adopt_columns(relations, columns) AS c
			JOIN pg_attribute AS a ON a.attrelid = c.member AND a.attnum = c.attnum
	),
	/* Where one belongs to an identity column, it goes with the identity. */
	sequence AS MATERIALIZED (
		SELECT s.oid AS relid, min(s.root::oid)::regclass AS root, bool_or(s.deptype = 'a') AS owned, bool_or(s.deptype = 'i') AS identity,
			(SELECT string_agg(DISTINCT pg_describe_object(u.classid, u.objid, u.objsubid), ', ')
			 FROM pg_depend AS u
			 WHERE u.refclassid = 'pg_class'::regclass AND u.refobjid = s.oid
				AND NOT EXISTS (SELECT FROM pg_attrdef AS d JOIN changed AS c ON c.adopted AND c.member = d.adrelid AND c.attnum = d.adnum
								WHERE u.classid = 'pg_attrdef'::regclass AND d.oid = u.objid)) AS users
		FROM (SELECT o.objid AS oid, c.root, o.deptype
			  FROM changed AS c
				JOIN pg_depend AS o ON o.classid = 'pg_class'::regclass AND o.refclassid = 'pg_class'::regclass
					AND o.refobjid = c.member AND o.refobjsubid = c.attnum AND o.deptype IN ('a', 'i')
				JOIN pg_sequence AS q ON q.seqrelid = o.objid
			  WHERE c.adopted
			  UNION ALL
			  SELECT q.seqrelid, c.root, 'n'
			  FROM changed AS c
				JOIN pg_attrdef AS d ON d.adrelid = c.member AND d.adnum = c.attnum
				JOIN pg_depend AS u ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid AND u.refclassid = 'pg_class'::regclass
				JOIN pg_sequence AS q ON q.seqrelid = u.refobjid
			  WHERE c.adopted) AS s
		GROUP BY s.oid
	),
	step (rank, relation, command, note, bytes) AS (
		/* An identity that is not inherited, of a partition before PostgreSQL 17 or of a child: ALTER TABLE of the root leaves it. */
		SELECT 1, c.member, format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', c.member, c.attname), NULL, 0
		FROM changed AS c
		WHERE c.adopted AND c.member <> c.root AND c.attidentity <> ''
			AND EXISTS (SELECT FROM pg_depend AS o WHERE o.classid = 'pg_class'::regclass AND o.refclassid = 'pg_class'::regclass
							AND o.refobjid = c.member AND o.refobjsubid = c.attnum AND o.deptype = 'i')
		UNION ALL
		SELECT 2, c.root,
			'ALTER TABLE ' || c.root || ' ' || string_agg(concat_ws(', ',
				CASE WHEN c.adopted AND c.attidentity <> '' THEN format('ALTER COLUMN %I DROP IDENTITY', c.attname) END,
				CASE WHEN c.widened THEN format('ALTER COLUMN %I TYPE bigint', c.attname) END,
				CASE WHEN c.adopted AND NOT c.has_default THEN
					format('ALTER COLUMN %I SET DEFAULT %s', c.attname, snowflake_migrate_internal.default_function()) END), ', ' ORDER BY c.attnum),
			NULL,
			CASE WHEN bool_or(c.widened) THEN
				(SELECT sum(pg_total_relation_size(m.member)) FROM (SELECT DISTINCT m.member FROM changed AS m WHERE m.root = c.root) AS m)
				ELSE 0 END
		FROM changed AS c
		WHERE c.member = c.root AND (c.widened OR (c.adopted AND NOT c.has_default))
		GROUP BY c.root
		UNION ALL
		SELECT 3, c.root, NULL, format('nothing, as column %I is adopted already', c.attname), 0
		FROM changed AS c
		WHERE c.member = c.root AND c.adopted AND c.has_default AND NOT c.widened
		UNION ALL
		SELECT 4, s.root, CASE WHEN s.owned AND s.users IS NULL THEN format('DROP SEQUENCE %s', s.relid::regclass) END,
			format('sequence %s is kept, as %s', s.relid::regclass,
				   CASE WHEN s.owned THEN 'it is used: ' || s.users ELSE 'it does not belong to the column' END),
			0
		FROM sequence AS s WHERE NOT s.identity
		UNION ALL
		SELECT 5, f.root, NULL,
			format('look at function %s, as new ids do not fit: %s', f.oid::regprocedure, f.narrow), NULL
		FROM (
			SELECT p.oid, min(c.root::oid)::regclass AS root,
				concat_ws(', ', max(n.arguments),
						  CASE WHEN p.prorettype = ANY (narrow_types) THEN 'its result ' || format_type(p.prorettype, NULL) END) AS narrow
			FROM pg_proc AS p
				CROSS JOIN LATERAL (
					SELECT string_agg(format('%s %s', coalesce(nullif(p.proargnames[a.i], ''), '$' || a.i), format_type(a.type, NULL)),
									  ', ' ORDER BY a.i) AS arguments,
						array_agg(lower(p.proargnames[a.i])) AS names
					FROM unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) WITH ORDINALITY AS a (type, i)
					WHERE a.type = ANY (narrow_types)) AS n
				JOIN (SELECT c.* FROM changed AS c WHERE c.member = c.root) AS c
					ON EXISTS (SELECT FROM unnest(n.names) AS a (name)
							   WHERE a.name = lower(c.attname) OR right(a.name, length(c.attname) + 1) = '_' || lower(c.attname))
					OR coalesce(pg_get_function_sqlbody(p.oid), p.prosrc)
						~* ('\m' || regexp_replace((SELECT r.relname FROM pg_class AS r WHERE r.oid = c.root), '(\W)', '\\\1', 'g') || '\M')
			WHERE p.pronamespace IN (SELECT r.relnamespace FROM changed AS m JOIN pg_class AS r ON r.oid = m.root)
				AND (n.arguments IS NOT NULL OR p.prorettype = ANY (narrow_types))
				AND NOT EXISTS (SELECT FROM pg_depend AS e WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e')
			GROUP BY p.oid) AS f
	)
	SELECT json_agg(json_build_object('relation', s.relation::oid, 'command', s.command, 'note', s.note, 'bytes', s.bytes)
					ORDER BY s.rank, s.relation::oid, s.command, s.note)
		INTO steps FROM step AS s;

	blocked_by := NULL;
	FOR step IN SELECT s.* FROM json_to_recordset(steps) AS s (relation oid, command text, note text, bytes bigint) LOOP
		IF NOT dry_run AND step.command IS NOT NULL THEN
			EXECUTE step.command;
		END IF;
		relation := step.relation;
		action := coalesce(step.command, step.note);
		bytes := step.bytes;
		RETURN NEXT;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate.adopt(regclass[], name[], boolean)
	IS 'puts existing integer keys, and what references them, on snowflake ids';
