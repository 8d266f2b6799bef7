/*
 * What stands in the way of snowflake_migrate.adopt().  PostgreSQL names only the first thing that it finds when it
 * changes a column's type, some of them after the table was rewritten.
 *
 * Each function adopt_..._blockers() looks for one kind of thing.  Those that read the catalogs return a rank, the
 * place of a kind in the list, and a level: views are listed in the order in which they can be created again.
 */

/* Ids that are there and are greater than new ones.  Reads the tables, where they can have such ids. */
CREATE FUNCTION snowflake_migrate_internal.adopt_greater_ids(
	tables regclass[],
	columns name[],
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET row_security = off
AS $$
DECLARE
	key record;
	largest bigint;
BEGIN
	FOR key IN
		SELECT DISTINCT c.root, c.attname, c.widened
		FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c
		WHERE c.adopted
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
				THEN format('before: SELECT %s.snowflake_advance_past(%s);',
							snowflake_migrate_internal.snowflake_schema(), largest)
				ELSE 'give the rows whose ids lie more than a day ahead other ids, '
					'or choose a layout whose ids are greater' END;
			RETURN NEXT;
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_greater_ids(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: ids that are greater than new ones';

/* A role as commands name it. */
CREATE FUNCTION snowflake_migrate_internal.adopt_role(role oid) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT CASE WHEN role = 0 THEN 'PUBLIC' ELSE role::regrole::text END $$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_role(oid)
	IS 'for snowflake_migrate.adopt()''s own use: a role as commands name it';

/* What grants the rights on a view, and on its columns, again; and no others than it had, by default. */
CREATE FUNCTION snowflake_migrate_internal.adopt_grants(view regclass) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT string_agg(g.command, E'\n' ORDER BY g.attnum, g.grantee, g.option)
	FROM (
		SELECT DISTINCT -1 AS attnum, t.grantee, NULL AS option,
			format('REVOKE ALL ON %s FROM %s;', view, t.grantee) AS command
		FROM pg_class AS c
			JOIN pg_default_acl AS d ON d.defaclobjtype = 'r' AND d.defaclnamespace IN (0, c.relnamespace)
				AND pg_get_userbyid(d.defaclrole) = current_user
			CROSS JOIN LATERAL aclexplode(d.defaclacl) AS x
			CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.adopt_role(x.grantee)) AS t (grantee)
		WHERE c.oid = view AND x.grantee NOT IN (d.defaclrole, c.relowner)
		UNION ALL
		SELECT 0 AS attnum, t.grantee, t.option,
			format('GRANT %s ON %s TO %s%s;', string_agg(x.privilege_type, ', ' ORDER BY x.privilege_type),
				   view, t.grantee, t.option) AS command
		FROM pg_class AS c
			CROSS JOIN LATERAL aclexplode(c.relacl) AS x
			CROSS JOIN LATERAL (
				SELECT snowflake_migrate_internal.adopt_role(x.grantee) AS grantee,
					CASE WHEN x.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END AS option) AS t
		WHERE c.oid = view AND x.grantee <> c.relowner
		GROUP BY t.grantee, t.option
		UNION ALL
		SELECT a.attnum, t.grantee, t.option,
			format('GRANT %s (%I) ON %s TO %s%s;', x.privilege_type, a.attname, view, t.grantee, t.option)
		FROM pg_attribute AS a
			CROSS JOIN LATERAL aclexplode(a.attacl) AS x
			CROSS JOIN LATERAL (
				SELECT snowflake_migrate_internal.adopt_role(x.grantee) AS grantee,
					CASE WHEN x.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END AS option) AS t
		WHERE a.attrelid = view
	) AS g
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_grants(regclass)
	IS 'for snowflake_migrate.adopt()''s own use: what grants the rights on a view again';

/* A view as commands name it. */
CREATE FUNCTION snowflake_migrate_internal.adopt_view_name(view regclass) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT format('%s %s', CASE c.relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'VIEW' END, view)
	FROM pg_class AS c
	WHERE c.oid = view
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_view_name(regclass)
	IS 'for snowflake_migrate.adopt()''s own use: a view as commands name it';

/*
 * What belongs to a view: its indexes, statistics, columns' defaults, triggers and rules (rank: in this order); what
 * creates each again, and its comment (commands, or null); and its expressions (tree).
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_view_parts(
	view regclass,
	OUT classid oid,
	OUT objid oid,
	OUT rank int,
	OUT definition text,
	OUT comment text,
	OUT tree text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT p.classid, p.objid, row_number() OVER (ORDER BY p.kind, p.place, p.name)::int, p.definition,
		format('COMMENT ON %s IS ', p.name)
			|| quote_literal((SELECT obj_description(p.objid, c.relname) FROM pg_class AS c WHERE c.oid = p.classid))
			|| ';',
		p.tree
	FROM (
		SELECT 1 AS kind, i.indexrelid::bigint AS place, 'pg_class'::regclass::oid AS classid, i.indexrelid AS objid,
			format('INDEX %s', i.indexrelid::regclass) AS name,
			concat_ws(E'\n', pg_get_indexdef(i.indexrelid) || ';',
				(SELECT format('ALTER INDEX %s SET TABLESPACE %I;', i.indexrelid::regclass, s.spcname)
				 FROM pg_tablespace AS s WHERE s.oid = x.reltablespace),
				CASE WHEN i.indisclustered
					THEN format('ALTER %s CLUSTER ON %I;', snowflake_migrate_internal.adopt_view_name(view), x.relname)
				END) AS definition,
			concat(i.indexprs::text, i.indpred::text) AS tree
		FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid WHERE i.indrelid = view
		UNION ALL
		SELECT 2, 0, 'pg_statistic_ext'::regclass, s.oid, format('STATISTICS %I.%I', n.nspname, s.stxname),
			pg_get_statisticsobjdef(s.oid) || ';', s.stxexprs::text
		FROM pg_statistic_ext AS s JOIN pg_namespace AS n ON n.oid = s.stxnamespace WHERE s.stxrelid = view
		UNION ALL
		SELECT 3, a.attnum, 'pg_attrdef'::regclass, d.oid, NULL,
			format('ALTER VIEW %s ALTER COLUMN %I SET DEFAULT %s;', view, a.attname, pg_get_expr(d.adbin, d.adrelid)),
			d.adbin::text
		FROM pg_attrdef AS d JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
		WHERE d.adrelid = view
		UNION ALL
		SELECT 4, 0, 'pg_trigger'::regclass, t.oid, format('TRIGGER %I ON %s', t.tgname, view),
			pg_get_triggerdef(t.oid) || ';', t.tgqual::text
		FROM pg_trigger AS t WHERE t.tgrelid = view
		UNION ALL
		/* Its query is one of them. */
		SELECT 5, 0, 'pg_rewrite'::regclass, r.oid, format('RULE %I ON %s', r.rulename, view),
			CASE WHEN r.ev_type <> '1' THEN pg_get_ruledef(r.oid) END, concat(r.ev_qual::text, r.ev_action::text)
		FROM pg_rewrite AS r WHERE r.ev_class = view
	) AS p
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_view_parts(regclass)
	IS 'for snowflake_migrate.adopt()''s own use: what belongs to a view';

/* The relations that views, and what belongs to them, depend on. */
CREATE FUNCTION snowflake_migrate_internal.adopt_used_by_views(views oid[]) RETURNS oid[]
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT ARRAY(
		SELECT d.refobjid
		FROM unnest(views) AS v (oid)
			CROSS JOIN LATERAL snowflake_migrate_internal.adopt_view_parts(v.oid) AS p
			JOIN pg_depend AS d
				ON d.classid = p.classid AND d.objid = p.objid AND d.refclassid = 'pg_class'::regclass)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_used_by_views(oid[])
	IS 'for snowflake_migrate.adopt()''s own use: the relations that views depend on';

/* What adopt_view() does not bring back, or null. */
CREATE FUNCTION snowflake_migrate_internal.adopt_view_losses(view regclass) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT string_agg(l.what, ', ' ORDER BY l.what)
	FROM (
		SELECT 'rights that were granted by others than its owner, or taken from the owner' AS what
		FROM pg_class AS c
		WHERE c.oid = view AND (
			EXISTS (SELECT FROM aclexplode(c.relacl) AS x WHERE x.grantor <> c.relowner)
			OR EXISTS (SELECT FROM pg_attribute AS a CROSS JOIN LATERAL aclexplode(a.attacl) AS x
					   WHERE a.attrelid = c.oid AND x.grantor <> c.relowner)
			OR c.relacl IS NOT NULL AND EXISTS (
				SELECT FROM aclexplode(acldefault('r', c.relowner)) AS d
				WHERE NOT EXISTS (SELECT FROM aclexplode(c.relacl) AS x
								  WHERE x.grantee = c.relowner AND x.privilege_type = d.privilege_type)))
		UNION ALL
		SELECT format('settings of column %I', a.attname)
		FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
		WHERE a.attrelid = view AND a.attnum > 0
			AND (a.attoptions::text ~ 'n_distinct' OR a.attcompression <> '' OR a.attstorage <> t.typstorage)
		UNION ALL
		SELECT format('statistics targets of index %s', i.indexrelid::regclass)
		FROM pg_index AS i
		WHERE i.indrelid = view AND EXISTS (
			SELECT FROM pg_attribute AS a WHERE a.attrelid = i.indexrelid AND a.attstattarget >= 0)
		UNION ALL
		SELECT format('the replica identity, index %s', i.indexrelid::regclass)
		FROM pg_index AS i WHERE i.indrelid = view AND i.indisreplident
		UNION ALL
		SELECT 'settings of its TOAST table'
		FROM pg_class AS c JOIN pg_class AS t ON t.oid = c.reltoastrelid
		WHERE c.oid = view AND t.reloptions IS NOT NULL
		UNION ALL
		SELECT format('owner or target of statistics %s', s.stxname)
		FROM pg_statistic_ext AS s JOIN pg_class AS c ON c.oid = s.stxrelid
		WHERE s.stxrelid = view AND (s.stxowner <> c.relowner OR s.stxstattarget >= 0)
		UNION ALL
		SELECT format('that it depends on %s', pg_describe_object(d.refclassid, d.refobjid, 0))
		FROM pg_depend AS d
		WHERE d.deptype = 'x' AND (
			(d.classid, d.objid) = ('pg_class'::regclass, view)
			OR EXISTS (SELECT FROM snowflake_migrate_internal.adopt_view_parts(view) AS p
					   WHERE (p.classid, p.objid) = (d.classid, d.objid)))
		UNION ALL
		SELECT format('that rule %I is disabled, or enabled for replicas', r.rulename)
		FROM pg_rewrite AS r WHERE r.ev_class = view AND r.ev_enabled <> 'O'
		UNION ALL
		SELECT 'the comment on the type of its rows'
		FROM pg_class AS c WHERE c.oid = view AND obj_description(c.reltype, 'pg_type') IS NOT NULL
		UNION ALL
		SELECT format('security label %s', quote_literal(l.label))
		FROM pg_seclabel AS l WHERE l.classoid = 'pg_class'::regclass AND l.objoid = view
	) AS l
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_view_losses(regclass)
	IS 'for snowflake_migrate.adopt()''s own use: what would be lost of a view that is created again';

/*
 * What creates a view or a materialized view again, with what would go with it when it is dropped.
 *
 * The query of another role's materialized view runs with that role's rights, as REFRESH has it, and not with those of
 * who creates it, who may be a superuser.  So does what its indexes call.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_view(view regclass) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT concat_ws(E'\n',
		format('CREATE %s%s%s%s AS', k.name, (SELECT format(' USING %I', a.amname) FROM pg_am AS a
				WHERE a.oid = c.relam AND a.amname <> 'heap'),
			   ' WITH (' || array_to_string(c.reloptions, ', ') || ')',
			   (SELECT format(' TABLESPACE %I', s.spcname) FROM pg_tablespace AS s WHERE s.oid = c.reltablespace)),
		CASE WHEN c.relkind = 'm' AND (k.is_others OR NOT c.relispopulated)
			THEN rtrim(pg_get_viewdef(view), ';') || E'\n  WITH NO DATA;'
			ELSE pg_get_viewdef(view) END,
		CASE WHEN k.is_others THEN format('ALTER %s OWNER TO %s;', k.name, c.relowner::regrole) END,
		p.definitions,
		(SELECT string_agg(format('ALTER %s ALTER COLUMN %I SET STATISTICS %s;', k.name, a.attname, a.attstattarget),
						   E'\n' ORDER BY a.attnum)
		 FROM pg_attribute AS a WHERE a.attrelid = view AND a.attstattarget >= 0 AND a.attnum > 0 AND c.relkind = 'm'),
		p.comments,
		snowflake_migrate_internal.adopt_grants(view),
		format('COMMENT ON %s IS ', k.name) || quote_literal(obj_description(view, 'pg_class')) || ';',
		(SELECT string_agg(format('COMMENT ON COLUMN %s.%I IS %L;', view, a.attname, d.description),
						   E'\n' ORDER BY a.attnum)
		 FROM pg_description AS d JOIN pg_attribute AS a ON a.attrelid = view AND a.attnum = d.objsubid
		 WHERE d.classoid = 'pg_class'::regclass AND d.objoid = view AND d.objsubid > 0),
		CASE WHEN c.relkind = 'm' AND k.is_others AND c.relispopulated THEN format('REFRESH %s;', k.name) END)
	FROM pg_class AS c
		CROSS JOIN LATERAL (
			SELECT snowflake_migrate_internal.adopt_view_name(view), pg_get_userbyid(c.relowner) <> current_user
			) AS k (name, is_others)
		CROSS JOIN LATERAL (
			SELECT string_agg(p.definition, E'\n' ORDER BY p.rank), string_agg(p.comment, E'\n' ORDER BY p.comment)
			FROM snowflake_migrate_internal.adopt_view_parts(view) AS p) AS p (definitions, comments)
	WHERE c.oid = view
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_view(regclass)
	IS 'for snowflake_migrate.adopt()''s own use: what creates a view again';

/*
 * What creates a function or a procedure again, with the rights on it.  Another role's is created as that role: with
 * SECURITY DEFINER, it would have the rights of who creates it, if only until it is given to its owner.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_function(function regprocedure) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT concat_ws(E'\n',
		'SET ROLE ' || k.others || ';',
		rtrim(pg_get_functiondef(function), E'\n') || ';',
		CASE WHEN NOT EXISTS (SELECT FROM aclexplode(p.proacl) AS x WHERE x.grantee = 0)
			AND p.proacl IS NOT NULL THEN format('REVOKE ALL ON ROUTINE %s FROM PUBLIC;', function) END,
		(SELECT string_agg(format('GRANT EXECUTE ON ROUTINE %s TO %s%s;', function, x.grantee::regrole,
								  CASE WHEN x.is_grantable THEN ' WITH GRANT OPTION' END),
						   E'\n' ORDER BY x.grantee::regrole::text COLLATE "C")
		 FROM aclexplode(p.proacl) AS x WHERE x.grantee NOT IN (0, p.proowner)),
		format('COMMENT ON ROUTINE %s IS ', function) || quote_literal(obj_description(function, 'pg_proc')) || ';',
		CASE WHEN k.others IS NOT NULL THEN 'RESET ROLE;' END)
	FROM pg_proc AS p,
		LATERAL (SELECT CASE WHEN pg_get_userbyid(p.proowner) <> current_user
							THEN p.proowner::regrole::text END) AS k (others)
	WHERE p.oid = function AND p.prokind <> 'a'
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_function(regprocedure)
	IS 'for snowflake_migrate.adopt()''s own use: what creates a function again';

/* What creates a policy of row security again. */
CREATE FUNCTION snowflake_migrate_internal.adopt_policy(policy oid) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT concat_ws(' ',
			format('CREATE POLICY %I ON %s', p.polname, p.polrelid::regclass),
			CASE WHEN p.polpermissive THEN 'AS PERMISSIVE' ELSE 'AS RESTRICTIVE' END,
			CASE p.polcmd WHEN 'r' THEN 'FOR SELECT' WHEN 'a' THEN 'FOR INSERT' WHEN 'w' THEN 'FOR UPDATE'
				WHEN 'd' THEN 'FOR DELETE' ELSE 'FOR ALL' END,
			'TO ' || (SELECT string_agg(snowflake_migrate_internal.adopt_role(r), ', ') FROM unnest(p.polroles) AS r),
			'USING (' || pg_get_expr(p.polqual, p.polrelid) || ')',
			'WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')') || ';'
	FROM pg_policy AS p
	WHERE p.oid = policy
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_policy(oid)
	IS 'for snowflake_migrate.adopt()''s own use: what creates a policy again';

/* What adds a generated column again.  Null for a default that is none, and for a column that is inherited. */
CREATE FUNCTION snowflake_migrate_internal.adopt_generated_column(default_ oid) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT concat_ws(' ',
			format('ALTER TABLE %s ADD COLUMN %I', d.adrelid::regclass, a.attname),
			format_type(a.atttypid, a.atttypmod),
			'GENERATED ALWAYS AS (' || pg_get_expr(d.adbin, d.adrelid) || ')',
			CASE a.attgenerated WHEN 's' THEN 'STORED;' ELSE 'VIRTUAL;' END)
	FROM pg_attrdef AS d JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
	WHERE d.oid = default_ AND a.attgenerated <> '' AND a.attinhcount = 0
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_generated_column(oid)
	IS 'for snowflake_migrate.adopt()''s own use: what adds a generated column again';

/* What adds a table to a publication again. */
CREATE FUNCTION snowflake_migrate_internal.adopt_published_table(publication_table oid) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT concat_ws(' ',
			format('ALTER PUBLICATION %I ADD TABLE ONLY %s', b.pubname, p.prrelid::regclass),
			(SELECT '(' || string_agg(quote_ident(a.attname), ', ' ORDER BY k.i) || ')'
			 FROM unnest(p.prattrs) WITH ORDINALITY AS k (attnum, i)
				JOIN pg_attribute AS a ON a.attrelid = p.prrelid AND a.attnum = k.attnum),
			'WHERE (' || pg_get_expr(p.prqual, p.prrelid) || ')') || ';'
	FROM pg_publication_rel AS p JOIN pg_publication AS b ON b.oid = p.prpubid
	WHERE p.oid = publication_table
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_published_table(oid)
	IS 'for snowflake_migrate.adopt()''s own use: what adds a table to a publication again';

/*
 * Who has to create an object again, as a comment before the statements: a constant is read by its type's owner's code,
 * which SET ROLE does not hold.  A view's and a function's owner made its constants; those of what is over a table may
 * be another's.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_only_as(class oid, object oid) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_migrate_internal.commented(
		format('connected as role %s: SET ROLE is not enough, as its code could go back', o.role::regrole))
	FROM snowflake_internal.strongest_role() AS s
		CROSS JOIN (
			SELECT c.relowner FROM pg_class AS c WHERE class = 'pg_class'::regclass AND c.oid = object
			UNION ALL
			SELECT p.proowner FROM pg_proc AS p WHERE class = 'pg_proc'::regclass AND p.oid = object
			UNION ALL
			SELECT y.typowner
			FROM pg_depend AS d JOIN pg_type AS y ON y.oid = d.refobjid
			WHERE d.classid = class AND d.objid = object AND d.refclassid = 'pg_type'::regclass) AS o (role)
	WHERE s.is_superuser AND o.role = ANY (snowflake_internal.other_roles())
	ORDER BY o.role
	LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_only_as(oid, oid)
	IS 'for snowflake_migrate.adopt()''s own use: who has to create an object again';

/* What creates an object again, or adds it again.  Null where this is not how to deal with it. */
CREATE FUNCTION snowflake_migrate_internal.adopt_definition(class oid, object oid) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
AS $$
	SELECT coalesce(snowflake_migrate_internal.adopt_only_as(class, object) || E'\n', '') || CASE class::regclass
		WHEN 'pg_proc'::regclass THEN
			snowflake_migrate_internal.adopt_function(object)
		ELSE snowflake_migrate_internal.portable(CASE class::regclass
			WHEN 'pg_class'::regclass THEN
				(SELECT snowflake_migrate_internal.adopt_view(c.oid) FROM pg_class AS c
				 WHERE c.oid = object AND c.relkind IN ('v', 'm'))
			WHEN 'pg_rewrite'::regclass THEN
				pg_get_ruledef(object)
			WHEN 'pg_trigger'::regclass THEN
				(SELECT pg_get_triggerdef(t.oid) || ';' FROM pg_trigger AS t
				 WHERE t.oid = object AND NOT t.tgisinternal AND t.tgparentid = 0)
			WHEN 'pg_policy'::regclass THEN
				snowflake_migrate_internal.adopt_policy(object)
			WHEN 'pg_attrdef'::regclass THEN
				snowflake_migrate_internal.adopt_generated_column(object)
			WHEN 'pg_publication_rel'::regclass THEN
				snowflake_migrate_internal.adopt_published_table(object)
			END)
		END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_definition(oid, oid)
	IS 'for snowflake_migrate.adopt()''s own use: what creates an object again';

/*
 * What uses a column that is widened (of_row: or the type of its rows), by what pg_depend says.
 *
 * ROWS, here and where else a recursive query calls a function: PostgreSQL 19 makes room at once for all the rows that
 * it expects of such a query.  With 1000 for each call that is a gigabyte.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_uses(
	tables regclass[],
	columns name[],
	OUT root regclass,
	OUT classid oid,
	OUT objid oid,
	OUT objsubid int,
	OUT of_row boolean) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 20 SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE
	widened AS MATERIALIZED (
		SELECT c.* FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c WHERE c.widened
	),
	/* The row types of what is rewritten, and all types that contain them. */
	row_type (root, oid) AS (
		SELECT w.root, r.reltype FROM widened AS w JOIN pg_class AS r ON r.oid = w.member
		UNION
		SELECT t.root, coalesce(r.reltype, d.objid)
		FROM row_type AS t
			JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = t.oid
			LEFT JOIN pg_class AS r ON d.classid = 'pg_class'::regclass AND r.oid = d.objid
		WHERE d.classid = 'pg_type'::regclass OR (r.relkind IN ('c', 'v', 'f') AND d.objsubid > 0)
	)
	SELECT w.root, d.classid, d.objid, d.objsubid, false
	FROM widened AS w
		JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass
			AND d.refobjid = w.member AND d.refobjsubid = w.attnum
	WHERE NOT EXISTS (SELECT FROM pg_attrdef AS own
					  WHERE d.classid = 'pg_attrdef'::regclass AND own.oid = d.objid
						AND own.adrelid = w.member AND own.adnum = w.attnum)
	UNION
	SELECT t.root, d.classid, d.objid, d.objsubid, true
	FROM row_type AS t JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = t.oid
	WHERE d.deptype = 'n'
	GROUP BY t.root, d.refobjid, d.classid, d.objid, d.objsubid
	/* A function's arguments and result may be of the row type; its body and its defaults may not. */
	HAVING d.classid <> 'pg_proc'::regclass
		OR count(*) > (SELECT (d.refobjid = p.prorettype OR d.refobjid = ANY (p.proargtypes)
							   OR coalesce(d.refobjid = ANY (p.proallargtypes), false))::int
					   FROM pg_proc AS p WHERE p.oid = d.objid)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_uses(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: what uses the columns that are widened';

/* What an object takes with it when it is dropped: views, and what has the type of a view's rows. */
CREATE FUNCTION snowflake_migrate_internal.adopt_lost_with(
	class oid,
	object oid,
	OUT classid oid,
	OUT objid oid) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 2 SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN v.oid IS NULL THEN d.classid ELSE 'pg_class'::regclass END, coalesce(v.ev_class, d.objid)
	FROM (SELECT class, object
		  UNION ALL
		  SELECT 'pg_type'::regclass, t.oid
		  FROM pg_class AS r JOIN pg_type AS t ON r.reltype IN (t.oid, t.typelem)
		  WHERE class = 'pg_class'::regclass AND r.oid = object) AS o (classid, objid)
		JOIN pg_depend AS d ON d.refclassid = o.classid AND d.refobjid = o.objid AND d.deptype = 'n'
		/* A view's other rules are created with it, and so are what they write to before it. */
		LEFT JOIN (pg_rewrite AS v JOIN pg_class AS w ON w.oid = v.ev_class AND w.relkind IN ('v', 'm'))
			ON d.classid = 'pg_rewrite'::regclass AND v.oid = d.objid
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_lost_with(oid, oid)
	IS 'for snowflake_migrate.adopt()''s own use: what goes with an object that is dropped';

/* All that depends on the columns that are widened: views, what goes with them, and (level 0) what uses the columns. */
CREATE FUNCTION snowflake_migrate_internal.adopt_dependents(
	tables regclass[],
	columns name[],
	OUT root regclass,
	OUT classid oid,
	OUT objid oid,
	OUT objsubid int,
	OUT of_row boolean,
	OUT level int) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH RECURSIVE
	used AS MATERIALIZED (
		SELECT u.*, v.ev_class AS view
		FROM snowflake_migrate_internal.adopt_uses(tables, columns) AS u
			LEFT JOIN pg_rewrite AS v ON u.classid = 'pg_rewrite'::regclass AND v.oid = u.objid AND v.ev_type = '1'
	),
	lost (root, classid, objid, level) AS (
		SELECT u.root, 'pg_class'::regclass::oid, u.view, 1 FROM used AS u WHERE u.view IS NOT NULL
		UNION
		SELECT l.root, n.classid, n.objid, l.level + 1
		FROM lost AS l, snowflake_migrate_internal.adopt_lost_with(l.classid, l.objid) AS n
		/* Views that select from each other are possible, though they can't be used. */
		WHERE (n.classid, n.objid) <> (l.classid, l.objid) AND l.level < 1000
	)
	SELECT l.root, l.classid, l.objid, 0, false, max(l.level)
	FROM lost AS l
	/* A view's own rules and triggers are created again with it. */
	WHERE NOT EXISTS (
		SELECT FROM lost AS v
		WHERE v.root = l.root AND v.classid = 'pg_class'::regclass AND v.objid = CASE l.classid
			WHEN 'pg_rewrite'::regclass THEN (SELECT r.ev_class FROM pg_rewrite AS r WHERE r.oid = l.objid)
			WHEN 'pg_trigger'::regclass THEN (SELECT t.tgrelid FROM pg_trigger AS t WHERE t.oid = l.objid) END)
	GROUP BY l.root, l.classid, l.objid
	UNION ALL
	SELECT u.root, u.classid, u.objid, u.objsubid, bool_or(u.of_row), 0
	FROM used AS u
	WHERE u.view IS NULL
		AND NOT EXISTS (SELECT FROM lost AS l WHERE (l.root, l.classid, l.objid) = (u.root, u.classid, u.objid))
	GROUP BY u.root, u.classid, u.objid, u.objsubid
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_dependents(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: what depends on the columns that are widened';

/* The schemas of all that a view's definition names, but PostgreSQL's own. */
CREATE FUNCTION snowflake_migrate_internal.adopt_view_schemas(view regclass) RETURNS SETOF oid
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT DISTINCT n.oid
	FROM snowflake_migrate_internal.adopt_view_parts(view) AS p
		JOIN pg_depend AS d ON d.classid = p.classid AND d.objid = p.objid AND d.refobjid >= 16384
		CROSS JOIN LATERAL pg_identify_object(d.refclassid, d.refobjid, 0) AS i
		JOIN pg_namespace AS n ON quote_ident(n.nspname) = i.schema
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_view_schemas(regclass)
	IS 'for snowflake_migrate.adopt()''s own use: the schemas of what a view names';

/*
 * The views that depend on the columns, in the order in which they can be created again; and why a view can't be by
 * adopt() itself, or null.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_views(
	tables regclass[],
	columns name[],
	OUT root regclass,
	OUT view regclass,
	OUT level int,
	OUT dropping text,
	OUT creating text,
	OUT obstacle text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
	WITH view AS MATERIALIZED (
		SELECT min(d.root::oid) AS root, d.objid AS oid, max(d.level) AS level
		FROM snowflake_migrate_internal.adopt_dependents(tables, columns) AS d
			JOIN pg_class AS c ON c.oid = d.objid AND c.relkind IN ('v', 'm')
		WHERE d.classid = 'pg_class'::regclass AND d.level > 0
		GROUP BY d.objid
	)
	SELECT v.root::regclass, v.oid::regclass, v.level,
		'DROP ' || snowflake_migrate_internal.adopt_view_name(v.oid),
		snowflake_migrate_internal.adopt_view(v.oid),
		CASE
			WHEN NOT pg_has_role(c.relowner, 'USAGE') THEN format('it belongs to role %s', c.relowner::regrole)
			WHEN EXISTS (SELECT FROM pg_depend AS d
						 WHERE d.classid = 'pg_class'::regclass AND d.objid = v.oid AND d.deptype = 'e')
				THEN 'it belongs to an extension'
			WHEN c.relpersistence = 't' THEN 'it is temporary'
			WHEN l.losses IS NOT NULL THEN 'it would lose ' || l.losses
			WHEN EXISTS (
				SELECT
				FROM snowflake_migrate_internal.adopt_view_parts(v.oid) AS p
					JOIN pg_depend AS d ON d.classid = p.classid AND d.objid = p.objid
						AND d.refclassid = 'pg_class'::regclass
					JOIN pg_depend AS i ON i.classid = 'pg_class'::regclass AND i.objid = d.refobjid AND i.deptype = 'i'
						AND i.refclassid = 'pg_class'::regclass
					JOIN snowflake_migrate_internal.adopt_columns(tables, columns) AS a
						ON a.adopted AND a.member = i.refobjid AND a.attnum = i.refobjsubid)
				THEN 'it uses the sequence of an identity, which goes'
			WHEN r.is_superuser THEN (
				SELECT format('code of role %s could take the place of %s for bigint', o.role::regrole, min(o.object))
				FROM (
					SELECT pg_describe_object(d.refclassid, d.refobjid, 0) AS object,
						coalesce(
							/* Of a trigger function there is one alone. */
							CASE WHEN f.prorettype IS DISTINCT FROM 'trigger'::regtype
								THEN snowflake_migrate_internal.overloader(d.refclassid, d.refobjid) END,
							CASE WHEN e.typowner = ANY (snowflake_internal.other_roles()) THEN e.typowner END) AS role
					FROM snowflake_migrate_internal.adopt_view_parts(v.oid) AS p
						JOIN pg_depend AS d ON d.classid = p.classid AND d.objid = p.objid
						LEFT JOIN pg_proc AS f ON d.refclassid = 'pg_proc'::regclass AND f.oid = d.refobjid
						LEFT JOIN pg_type AS y ON d.refclassid = 'pg_type'::regclass AND y.oid = d.refobjid
						/* What is read may be one of an array's: a constant's CHECKs are evaluated as it is read. */
						LEFT JOIN pg_type AS e ON e.oid IN (y.oid, y.typelem)
					UNION ALL
					/* Casts to them by other functions. */
					SELECT format('a cast to or from type %s', y.oid::regtype), y.typowner
					FROM snowflake_migrate_internal.adopt_view_parts(v.oid) AS p
						CROSS JOIN LATERAL snowflake_internal.computed_types(p.tree) AS t (oid)
						JOIN pg_type AS y ON y.oid = t.oid
					WHERE y.typowner = ANY (snowflake_internal.other_roles())
					UNION ALL
					/* What has a schema's name then may be something else, where adopt_lock_views() can't lock it. */
					SELECT format('schema %I', n.nspname), x.role
					FROM snowflake_migrate_internal.adopt_view_schemas(v.oid) AS s (oid)
						JOIN pg_namespace AS n ON n.oid = s.oid
						CROSS JOIN LATERAL snowflake_internal.other_schema_owner(
							n.oid, snowflake_internal.other_roles()) AS x
					WHERE x.can_rename AND NOT snowflake_internal.can_lock_schemas()) AS o
				WHERE o.role IS NOT NULL
				GROUP BY o.role
				ORDER BY o.role
				LIMIT 1) END
	FROM view AS v
		JOIN pg_class AS c ON c.oid = v.oid
		CROSS JOIN LATERAL (SELECT snowflake_migrate_internal.adopt_view_losses(v.oid)) AS l (losses)
		CROSS JOIN snowflake_internal.strongest_role() AS r
	ORDER BY v.level, v.oid
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_views(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: the views that depend on the columns that are widened';

/*
 * Views that can't be created again by adopt(), and others' code that a superuser would run with them: in what they
 * read, as a materialized view is filled, and in their own definitions, as they are read.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_view_blockers(
	tables regclass[],
	columns name[],
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
AS $$
#variable_conflict use_column
DECLARE
	views CONSTANT oid[] := ARRAY(
		SELECT v.view::oid FROM snowflake_migrate_internal.adopt_views(tables, columns) AS v ORDER BY v.view);
BEGIN
	IF views = '{}' THEN
		RETURN;
	END IF;
	RETURN QUERY
		SELECT d.relation, d.advice, concat_ws(': ', d.object, d.problem)
		FROM snowflake_internal.dangerous_code(views, views) AS d;
	IF FOUND THEN
		RETURN;
	END IF;
	RETURN QUERY
		SELECT v.root, E'connect as a role that can, or drop it before, create it again after:\n'
				|| snowflake_migrate_internal.portable(v.creating),
			format('%s cannot be dropped and created again: %s', v.view, v.obstacle)
		FROM snowflake_migrate_internal.adopt_views(tables, columns) AS v
		WHERE v.obstacle IS NOT NULL;
	/* What else goes with views, and has no definition here: columns of a view's type, aggregates. */
	RETURN QUERY
		SELECT d.root, 'drop it before, create it again after',
			pg_describe_object(d.classid, d.objid, d.objsubid)
		FROM snowflake_migrate_internal.adopt_dependents(tables, columns) AS d
		WHERE d.level > 0 AND snowflake_migrate_internal.adopt_definition(d.classid, d.objid) IS NULL;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_view_blockers(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: views that it can''t create again';

/* Objects that depend on the columns: most can be dropped before and created again after.  Views but these. */
CREATE FUNCTION snowflake_migrate_internal.adopt_object_blockers(
	tables regclass[],
	columns name[],
	recreated regclass[],
	OUT rank int,
	OUT level int,
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
	WITH object AS MATERIALIZED (
		SELECT o.* FROM snowflake_migrate_internal.adopt_dependents(tables, columns) AS o
		WHERE NOT (o.classid = 'pg_class'::regclass AND o.objid = ANY (recreated))
	)
	/* What goes with views is created again among them. */
	SELECT CASE WHEN o.level > 0 AND NOT k.is_added THEN 10 ELSE k.rank END,
		CASE WHEN k.is_added THEN 0 ELSE o.level END,
		o.root,
		format(E'drop it before, %s it again after%s:\n%s',
			   CASE WHEN k.is_added THEN 'add' ELSE 'create' END,
			   /* To add it evaluates it for each row, with what the table's owner has made of its columns by then. */
			   (SELECT ', connected as role ' || c.relowner::regrole::text
				FROM pg_attrdef AS e JOIN pg_class AS c ON c.oid = e.adrelid
				WHERE o.classid = 'pg_attrdef'::regclass AND e.oid = o.objid
					AND pg_get_userbyid(c.relowner) <> current_user),
			   d.definition),
		coalesce((SELECT format('generated column %I of table %s', a.attname, e.adrelid::regclass)
				  FROM pg_attrdef AS e JOIN pg_attribute AS a ON a.attrelid = e.adrelid AND a.attnum = e.adnum
				  WHERE o.classid = 'pg_attrdef'::regclass AND e.oid = o.objid),
				 pg_describe_object(o.classid, o.objid, 0))
	FROM object AS o
		JOIN (VALUES ('pg_class'::regclass, 10, false), ('pg_rewrite', 20, false), ('pg_proc', 30, false),
				('pg_trigger', 40, false), ('pg_policy', 50, false), ('pg_attrdef', 60, true),
				('pg_publication_rel', 70, true)) AS k (classid, rank, is_added) ON k.classid = o.classid
		CROSS JOIN LATERAL snowflake_migrate_internal.adopt_definition(o.classid, o.objid) AS d (definition)
	WHERE d.definition IS NOT NULL AND (o.level > 0 OR o.classid <> 'pg_class'::regclass)
	UNION ALL
	/* What else has expressions with the row type, and columns that hold rows. */
	SELECT 80, 0, o.root,
		format('drop it before, as it %s rows of %s', CASE WHEN o.objsubid > 0 THEN 'holds' ELSE 'makes' END, o.root),
		pg_describe_object(o.classid, o.objid, o.objsubid)
	FROM object AS o LEFT JOIN pg_class AS c ON o.classid = 'pg_class'::regclass AND c.oid = o.objid
	WHERE o.of_row
		AND (c.relkind IN ('r', 'p', 'm', 'i', 'I')
			 OR o.classid IN ('pg_constraint'::regclass, 'pg_statistic_ext'::regclass)
			 OR EXISTS (SELECT FROM pg_attrdef AS d
							JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
						WHERE o.classid = 'pg_attrdef'::regclass AND d.oid = o.objid AND a.attgenerated = ''))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_object_blockers(regclass[], name[], regclass[])
	IS 'for snowflake_migrate.adopt()''s own use: objects that stand in its way';

/* Tables whose columns can't be widened as they are. */
CREATE FUNCTION snowflake_migrate_internal.adopt_table_blockers(
	tables regclass[],
	columns name[],
	OUT rank int,
	OUT level int,
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH widened AS MATERIALIZED (
		SELECT w.* FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS w WHERE w.widened
	)
	SELECT 90, 0, w.root,
		'a new table that is partitioned by a bigint column must take the rows: ' || pg_get_partkeydef(w.member),
		format('partition key of table %s', w.member)
	FROM widened AS w JOIN pg_partitioned_table AS p ON p.partrelid = w.member
	WHERE w.attnum = ANY (p.partattrs)
		OR EXISTS (SELECT FROM pg_depend AS d
				   WHERE d.classid = 'pg_class'::regclass AND d.objid = w.member AND d.objsubid = 0
					AND d.refclassid = 'pg_class'::regclass AND d.refobjid = w.member AND d.refobjsubid = w.attnum)
	UNION ALL
	SELECT 100, 0, w.root, format('before: ALTER TABLE %s NOT OF;', w.member),
		format('type %s of table %s', c.reloftype::regtype, w.member)
	FROM widened AS w JOIN pg_class AS c ON c.oid = w.member WHERE c.reloftype <> 0
	UNION ALL
	SELECT 110, 0, w.root, 'detach it before; after, make the column bigint on its server too, and attach it again',
		format('foreign table %s', w.member)
	FROM widened AS w JOIN pg_class AS c ON c.oid = w.member WHERE c.relkind = 'f'
	UNION ALL
	SELECT 120, 0, w.root, 'end that session before', format('temporary table %s of another session', w.member)
	FROM widened AS w JOIN pg_class AS c ON c.oid = w.member WHERE pg_is_other_temp_schema(c.relnamespace)
	UNION ALL
	SELECT 130, 0, min(w.root::oid)::regclass,
		format('before: ALTER TABLE %s NO INHERIT ...; for all of these but one', w.member),
		format('column %I of table %s, which is inherited from %s', w.attname, w.member,
			   string_agg(w.root::text, ' and ' ORDER BY w.root::text))
	FROM widened AS w GROUP BY w.member, w.attname HAVING count(DISTINCT w.root) > 1
	UNION ALL
	/* From PostgreSQL 18 on these have names, which ALTER TABLE can't bring together while they are inherited. */
	SELECT 140, 0, w.root,
		concat_ws(E'\n', 'before:',
				  format('ALTER TABLE %s NO INHERIT %s;', w.member, i.inhparent::regclass),
				  format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I;', w.member, n.conname, o.conname),
				  format('ALTER TABLE %s INHERIT %s;', w.member, i.inhparent::regclass)),
		pg_describe_object('pg_constraint'::regclass, n.oid, 0)
	FROM widened AS w
		JOIN pg_constraint AS n ON n.contype = 'n' AND n.conrelid = w.member AND n.conkey[1] = w.attnum AND n.conislocal
		JOIN pg_inherits AS i ON i.inhrelid = w.member
		JOIN pg_attribute AS a ON a.attrelid = i.inhparent AND a.attname = w.attname
		JOIN pg_constraint AS o ON o.contype = 'n' AND o.conrelid = i.inhparent AND o.conkey[1] = a.attnum
	WHERE n.conname <> o.conname
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_table_blockers(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: tables that can''t be widened';

/* References that can't become bigint, or can't be made anew; keys that are references; other users of an identity. */
CREATE FUNCTION snowflake_migrate_internal.adopt_reference_blockers(
	tables regclass[],
	columns name[],
	OUT rank int,
	OUT level int,
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH changed AS MATERIALIZED (
		SELECT c.* FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c
	)
	SELECT 150, 0, c.root,
		format('it references what is adopted and has the type %s: make it bigint, or a type over bigint, before',
			   format_type(a.atttypid, a.atttypmod)),
		format('column %I of table %s', a.attname, c.root)
	FROM changed AS c JOIN pg_attribute AS a ON a.attrelid = c.root AND a.attnum = c.attnum
	WHERE c.member = c.root AND NOT c.widened
		AND (WITH RECURSIVE base (oid, next) AS (
				SELECT t.oid, t.typbasetype FROM pg_type AS t WHERE t.oid = a.atttypid
				UNION ALL
				SELECT t.oid, t.typbasetype FROM base AS b JOIN pg_type AS t ON t.oid = b.next)
			 SELECT b.oid FROM base AS b WHERE b.next = 0) NOT IN ('bigint'::regtype, 'bigint[]'::regtype)
	UNION ALL
	/* Its index is a part of that of the whole table, which PostgreSQL can't make anew under it. */
	SELECT 160, 0, c.root,
		E'it references a partition; drop it before, add it again after:\n'
			|| format('ALTER TABLE %s ADD CONSTRAINT %I %s;', f.conrelid::regclass, f.conname,
					  pg_get_constraintdef(f.oid)),
		pg_describe_object('pg_constraint'::regclass, f.oid, 0)
	FROM changed AS c
		JOIN pg_constraint AS f ON f.contype = 'f' AND f.conparentid = 0 AND f.confrelid = c.member
			AND c.attnum = ANY (f.confkey)
		JOIN pg_class AS i ON i.oid = f.conindid AND i.relispartition
	WHERE c.widened
	UNION ALL
	SELECT 170, 0, c.root,
		format('column %I takes its values from %s: adopt the column there instead', c.attname, f.confrelid::regclass),
		pg_describe_object('pg_constraint'::regclass, f.oid, 0)
	FROM changed AS c
		JOIN pg_constraint AS f ON f.contype = 'f' AND f.conparentid = 0 AND f.conrelid = c.member
			AND c.attnum = ANY (f.conkey)
	WHERE c.adopted
	UNION ALL
	SELECT 180, 0, c.root,
		format('it uses the sequence of identity column %I, %s, which is dropped: give it another one before',
			   c.attname, s.objid::regclass),
		pg_describe_object(d.classid, d.objid, d.objsubid)
	FROM changed AS c
		JOIN pg_depend AS s ON s.classid = 'pg_class'::regclass AND s.refclassid = 'pg_class'::regclass
			AND s.refobjid = c.member AND s.refobjsubid = c.attnum AND s.deptype = 'i'
		JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = s.objid
	WHERE c.adopted
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_reference_blockers(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: references that stand in its way';

/* What an index's definition has after its table. */
CREATE FUNCTION snowflake_migrate_internal.adopt_index_body(index oid) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT substr(pg_get_indexdef(index), 2 + length(
				format('CREATE%s INDEX %I ON%s %s', CASE WHEN i.indisunique THEN ' UNIQUE' END, x.relname,
					   CASE WHEN x.relkind = 'I' THEN ' ONLY' END, i.indrelid::regclass)))
	FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid
	WHERE i.indexrelid = index
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_index_body(oid)
	IS 'for snowflake_migrate.adopt()''s own use: what an index''s definition has after its table';

/*
 * The expressions over what is widened, table by table: of indexes, constraints and statistics, each with its name, its
 * definition, and the statement that makes it on an empty table, pg_temp.snowflake_adopt_trial.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_expressions(
	tables regclass[],
	columns name[],
	OUT member regclass,
	OUT root regclass,
	OUT widening text,
	OUT names text[],
	OUT definitions text[],
	OUT statements text[]) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH widened AS MATERIALIZED (
		SELECT c.* FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c WHERE c.widened
	),
	part (relid, name, definition, statement) AS (
		SELECT i.indrelid, pg_describe_object('pg_class'::regclass, i.indexrelid, 0), pg_get_indexdef(i.indexrelid),
			'CREATE INDEX ON pg_temp.snowflake_adopt_trial '
				|| snowflake_migrate_internal.adopt_index_body(i.indexrelid)
		FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid
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
			AND EXISTS (SELECT FROM widened AS w
						WHERE w.member = c.conrelid
							AND (w.attnum = ANY (c.conkey)
								 /* Of an exclusion constraint, an expression is in its index alone. */
								 OR EXISTS (SELECT FROM pg_depend AS d
											WHERE d.classid = 'pg_class'::regclass AND d.objid = c.conindid
												AND c.contype = 'x' AND d.refclassid = 'pg_class'::regclass
												AND d.refobjid = w.member AND d.refobjsubid = w.attnum)))
		UNION ALL
		SELECT s.stxrelid, pg_describe_object('pg_statistic_ext'::regclass, s.oid, 0), pg_get_statisticsobjdef(s.oid),
			'CREATE STATISTICS pg_temp.snowflake_adopt_trial_statistics ON '
				|| pg_get_statisticsobjdef_columns(s.oid) || ' FROM pg_temp.snowflake_adopt_trial'
		FROM pg_statistic_ext AS s
		WHERE s.stxexprs IS NOT NULL AND EXISTS (SELECT FROM widened AS w WHERE w.member = s.stxrelid)
	)
	SELECT p.relid::regclass, (SELECT min(w.root::oid)::regclass FROM widened AS w WHERE w.member = p.relid),
		(SELECT string_agg(DISTINCT format('ALTER COLUMN %I TYPE %s', w.attname, w.new_type), ', ')
		 FROM widened AS w WHERE w.member = p.relid),
		array_agg(p.name ORDER BY p.name),
		array_agg(p.definition ORDER BY p.name),
		array_agg(p.statement ORDER BY p.name)
	FROM part AS p GROUP BY p.relid ORDER BY p.relid
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_expressions(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: expressions over what is widened';

/* Executes a statement and takes it back at once.  Returns its error, or null. */
CREATE FUNCTION snowflake_migrate_internal.adopt_try(statement text) RETURNS text
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	is_over boolean := false;
BEGIN
	EXECUTE statement;
	is_over := true;
	RAISE EXCEPTION 'the trial is taken back';
EXCEPTION WHEN OTHERS THEN
	RETURN CASE WHEN NOT is_over THEN SQLERRM END;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_try(text)
	IS 'for snowflake_migrate.adopt()''s own use: the error of a statement';

/* Raises an error where the caller can't have the temporary table that expressions are tried on. */
CREATE FUNCTION snowflake_migrate_internal.adopt_check_trial(member regclass) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF current_setting('transaction_read_only')::boolean THEN
		RAISE EXCEPTION USING ERRCODE = 'read_only_sql_transaction',
			MESSAGE = format('cannot try the expressions of table %s in a read-only transaction', member),
			DETAIL = 'They are tried on a temporary table.',
			HINT = 'Call snowflake_migrate.adopt() in a read-write transaction.';
	ELSIF NOT has_database_privilege(current_database(), 'TEMP') THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = format('permission denied to create temporary tables in database "%s"', current_database()),
			DETAIL = format('The expressions of table %s are tried on a temporary table.', member),
			HINT = 'Grant the privilege TEMP on the database.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_check_trial(regclass)
	IS 'for snowflake_migrate.adopt()''s own use: refuses to try without a temporary table';

/*
 * Expressions that have no meaning for bigint.  Whether they have is tried on an empty table of the same columns, which
 * is taken back at once.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_expression_blockers(
	tables regclass[],
	columns name[],
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	trial record;
	problems text[];
	is_over boolean;
BEGIN
	FOR trial IN SELECT e.* FROM snowflake_migrate_internal.adopt_expressions(tables, columns) AS e LOOP
		PERFORM snowflake_migrate_internal.adopt_check_trial(trial.member);
		is_over := false;
		BEGIN
			EXECUTE format('CREATE TABLE pg_temp.snowflake_adopt_trial (LIKE %s)', trial.member);
			EXECUTE format('ALTER TABLE pg_temp.snowflake_adopt_trial %s', trial.widening);
			FOR n IN 1 .. cardinality(trial.statements) LOOP
				problems[n] := snowflake_migrate_internal.adopt_try(trial.statements[n]);
			END LOOP;
			is_over := true;
			RAISE EXCEPTION USING ERRCODE = 'SNOWF', MESSAGE = 'the table is not needed any more';
		EXCEPTION WHEN SQLSTATE 'SNOWF' THEN
			IF NOT is_over THEN
				RAISE;
			END IF;
		END;
		FOR n IN 1 .. cardinality(trial.statements) LOOP
			IF problems[n] IS NOT NULL THEN
				relation := trial.root;
				blocked_by := format('%s: %s', trial.names[n], problems[n]);
				action := E'drop it before; after, create it in a form that has a meaning for bigint, instead of:\n'
					|| trial.definitions[n] || ';';
				RETURN NEXT;
			END IF;
		END LOOP;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_expression_blockers(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: expressions that have no meaning for bigint';

/*
 * Expressions over what is widened that name functions, operators or types which a superuser would look for anew, by
 * their names, for bigint: whoever may create others of the same name beside them could have those called.  No lock
 * is against that.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_overload_blockers(
	tables regclass[],
	columns name[],
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
	WITH named AS (
		SELECT DISTINCT c.root, d.classid, d.objid, f.refclassid, f.refobjid, y.typowner
		FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c
			JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = c.member
				AND d.refobjsubid = c.attnum
				AND d.classid IN ('pg_constraint'::regclass, 'pg_class'::regclass, 'pg_statistic_ext'::regclass)
			JOIN pg_depend AS f ON f.classid = d.classid AND f.objid = d.objid AND f.objsubid = 0
			LEFT JOIN pg_type AS y ON f.refclassid = 'pg_type'::regclass AND y.oid = f.refobjid
		WHERE c.widened
	)
	SELECT n.root,
		format('Connect as the owner of the table, or as a role with its rights that is no superuser; '
				   'or let no other role %s.',
			   CASE WHEN n.typowner IS NULL THEN 'create in the schema of the function or operator, nor own another '
					'of its name, or a type of its arguments' ELSE 'own the type' END),
		format('%s: code of role %s would run with the rights of role %s if it took the place of %s for bigint',
			   pg_describe_object(n.classid, n.objid, 0), r.oid::regrole, s.role,
			   pg_describe_object(n.refclassid, n.refobjid, 0))
	FROM named AS n
		CROSS JOIN snowflake_internal.strongest_role() AS s
		CROSS JOIN LATERAL (
			SELECT o.oid FROM unnest(snowflake_internal.other_roles()) AS o (oid) WHERE o.oid = n.typowner
			UNION ALL
			SELECT snowflake_migrate_internal.overloader(n.refclassid, n.refobjid)
			LIMIT 1) AS r
	WHERE s.is_superuser AND r.oid IS NOT NULL
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_overload_blockers(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: what another role''s code could take the place of';

/*
 * The tables that an adoption changes, and those that they refer to by what is changed; and the columns of foreign keys
 * that are checked anew: where the types of two differ, one is cast.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_relations(
	tables regclass[],
	columns name[],
	OUT changed oid[],
	OUT read oid[],
	OUT cast_columns snowflake_internal.table_column[])
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	WITH c AS MATERIALIZED (SELECT c.* FROM snowflake_migrate_internal.adopt_columns(tables, columns) AS c)
	SELECT ARRAY(SELECT DISTINCT c.member::oid FROM c ORDER BY 1),
		ARRAY(
			SELECT c.member::oid FROM c
			UNION
			SELECT f.confrelid
			FROM c JOIN pg_constraint AS f ON f.contype = 'f' AND f.conrelid = c.member AND c.attnum = ANY (f.conkey)
			ORDER BY 1),
		ARRAY(
			SELECT (a.attrelid, a.attname)::snowflake_internal.table_column
			FROM c
				JOIN pg_constraint AS f ON f.contype = 'f' AND (
					f.conrelid = c.member AND c.attnum = ANY (f.conkey)
					OR f.confrelid = c.member AND c.attnum = ANY (f.confkey))
				CROSS JOIN LATERAL (VALUES (f.conrelid, f.conkey), (f.confrelid, f.confkey)) AS k (relation, columns)
				JOIN pg_attribute AS a ON a.attrelid = k.relation AND a.attnum = ANY (k.columns)
			ORDER BY a.attrelid, a.attnum)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_relations(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: the tables that it changes and reads';

/* Where adopt_hold() can't lock the declarations: another role could declare that a table of its own refers. */
CREATE FUNCTION snowflake_migrate_internal.adopt_declaration_blockers(
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text) RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
AS $$
	SELECT d.relation, 'Connect as a role that is no superuser, or as a superuser without SET ROLE.',
		format('code of role %s would run with the rights of role %s '
				   'if a reference was declared meanwhile, as the table cannot be locked', o.oid::regrole, s.role)
	FROM snowflake_internal.strongest_role() AS s,
		(SELECT 'snowflake_migrate.declared_references'::regclass) AS d (relation),
		unnest(snowflake_internal.other_roles()) AS o (oid)
	WHERE s.is_superuser
		AND (pg_is_in_recovery() OR NOT has_table_privilege(d.relation, 'UPDATE, DELETE, TRUNCATE'))
		/* PostgreSQL's own roles have members. */
		AND o.oid >= 16384 AND has_table_privilege(o.oid, d.relation, 'INSERT, UPDATE')
	ORDER BY o.oid
	LIMIT 1
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_declaration_blockers()
	IS 'for snowflake_migrate.adopt()''s own use: what another role could declare meanwhile';

/*
 * Code of other roles that would run with a superuser's rights when the tables are rewritten, and their references are
 * checked; or when they are only read.  CHECKs count, whatever the session has for constraint_exclusion: it evaluates
 * them.  While it waits for a lock, foreign keys may be added: it looks until nothing is.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_code_blockers(
	tables regclass[],
	columns name[],
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET constraint_exclusion = partition
AS $$
#variable_conflict use_column
DECLARE
	relations record;
	seen text;
BEGIN
	RETURN QUERY SELECT d.* FROM snowflake_migrate_internal.adopt_declaration_blockers() AS d;
	IF FOUND THEN
		RETURN;
	END IF;
	LOOP
		SELECT r.* INTO relations FROM snowflake_migrate_internal.adopt_relations(tables, columns) AS r;
		EXIT WHEN concat(relations) = seen;
		RETURN QUERY
			SELECT d.relation, d.advice, concat_ws(': ', d.object, d.problem)
			FROM snowflake_internal.dangerous_code(
				relations.read, '{}', relations.cast_columns, referenced => relations.changed) AS d;
		IF FOUND THEN
			RETURN;
		END IF;
		seen := concat(relations);
	END LOOP;
	RETURN QUERY SELECT o.* FROM snowflake_migrate_internal.adopt_overload_blockers(tables, columns) AS o;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_code_blockers(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: code that a superuser must not run';

/*
 * More locks than the server has room for.  What a rewrite takes was counted in pg_locks (PostgreSQL 15): the table,
 * its former and new file and types, 13; its TOAST table, 7; an index, 2; a foreign key, 6 at each end.  The room is
 * NLOCKENTS() of PostgreSQL's lock.c, without what is kept for chance.
 */
CREATE FUNCTION snowflake_migrate_internal.adopt_lock_blockers(
	tables regclass[],
	columns name[],
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text) RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	backends CONSTANT int := (
		SELECT sum(s.setting::int)
		FROM pg_settings AS s
		WHERE s.name IN ('max_connections', 'max_prepared_transactions', 'max_worker_processes', 'max_wal_senders')
			/* From PostgreSQL 18 on, more workers may be started than autovacuum_max_workers says now. */
			OR s.name = (SELECT max(v.name) FROM pg_settings AS v
						 WHERE v.name IN ('autovacuum_max_workers', 'autovacuum_worker_slots')));
	per_backend CONSTANT int := current_setting('max_locks_per_transaction')::int;
	wanted bigint;
BEGIN
	SELECT 70 + sum(13 + CASE WHEN c.reltoastrelid <> 0 THEN 7 ELSE 0 END
			+ 2 * (SELECT count(*) FROM pg_index AS i WHERE i.indrelid = c.oid)
			+ 6 * (SELECT count(*) FROM pg_constraint AS f WHERE f.contype = 'f' AND f.conrelid = c.oid)
			+ 6 * (SELECT count(*) FROM pg_constraint AS f WHERE f.contype = 'f' AND f.confrelid = c.oid))
		INTO wanted
		FROM snowflake_migrate_internal.adopt_relations(tables, columns) AS r
			JOIN pg_class AS c ON c.oid = ANY (r.changed);
	IF wanted > per_backend * (backends + 1) THEN
		relation := tables[1];
		blocked_by := format('about %s locks for all tables of the call, where the server has room for %s',
							 wanted, per_backend * (backends + 1));
		action := format('CALL snowflake_migrate.adopt_in_parts(...); or set max_locks_per_transaction to %s at least, '
						 'and restart', wanted / (backends + 1) + 1);
		RETURN NEXT;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_lock_blockers(regclass[], name[])
	IS 'for snowflake_migrate.adopt()''s own use: more locks than the server has room for';

/* All that stands in the way, but these views.  What stands in the way of several tables is told once. */
CREATE FUNCTION snowflake_migrate_internal.adopt_blockers(
	tables regclass[],
	columns name[],
	recreated regclass[],
	OUT relation regclass,
	OUT action text,
	OUT blocked_by text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
	/* Before anything is read, or tried. */
	RETURN QUERY SELECT c.* FROM snowflake_migrate_internal.adopt_code_blockers(tables, columns) AS c;
	IF FOUND THEN
		RETURN;
	END IF;
	RETURN QUERY SELECT l.* FROM snowflake_migrate_internal.adopt_lock_blockers(tables, columns) AS l;
	RETURN QUERY SELECT g.* FROM snowflake_migrate_internal.adopt_greater_ids(tables, columns) AS g;
	RETURN QUERY
		SELECT f.relation, f.action, f.blocked_by
		FROM (
			SELECT b.*,
				row_number() OVER (PARTITION BY b.rank, b.blocked_by ORDER BY b.level DESC, b.relation) AS repeated
			FROM (SELECT * FROM snowflake_migrate_internal.adopt_object_blockers(tables, columns, recreated)
				  UNION ALL
				  SELECT * FROM snowflake_migrate_internal.adopt_table_blockers(tables, columns)
				  UNION ALL
				  SELECT * FROM snowflake_migrate_internal.adopt_reference_blockers(tables, columns)) AS b
		) AS f
		WHERE f.repeated = 1
		ORDER BY f.rank, f.level, f.blocked_by, f.relation;
	RETURN QUERY SELECT e.* FROM snowflake_migrate_internal.adopt_expression_blockers(tables, columns) AS e;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.adopt_blockers(regclass[], name[], regclass[])
	IS 'for snowflake_migrate.adopt()''s own use: what stands in its way';
