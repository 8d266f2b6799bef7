/*
 * Questions to the catalogs: about relations and their columns, types, indexes and keys.  Nothing here knows of a
 * merge.
 */

/* A table and its partitions.  Few, so that the catalogs are read by their indexes for each. */
CREATE FUNCTION snowflake_migrate_internal.with_partitions(relation regclass) RETURNS SETOF oid
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE ROWS 2 SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RETURN NEXT relation;
	RETURN QUERY SELECT p.relid::oid FROM pg_partition_tree(relation) AS p WHERE p.relid <> relation;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.with_partitions(regclass)
	IS 'for snowflake_migrate.merge()''s own use: a table and its partitions';

/* A relation as it is read: without the children that are tables of their own. */
CREATE FUNCTION snowflake_migrate_internal.only(relation regclass) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RETURN (
		SELECT CASE WHEN c.relkind = 'r' THEN 'ONLY ' ELSE '' END || relation::text
		FROM pg_class AS c
		WHERE c.oid = relation);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.only(regclass)
	IS 'for snowflake_migrate.merge()''s own use: a table as it is read';

/* The index of a table that has a name. */
CREATE FUNCTION snowflake_migrate_internal.find_index(relation regclass, name name) RETURNS regclass
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT i.indexrelid
	FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
	WHERE i.indrelid = relation AND c.relname = find_index.name
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.find_index(regclass, name)
	IS 'for snowflake_migrate.merge()''s own use: an index of a table';

/*
 * The foreign keys that lead to a table, or to a partition: found by what they depend on, as pg_constraint would be
 * read as a whole.
 */
CREATE FUNCTION snowflake_migrate_internal.foreign_keys_to(relation oid) RETURNS SETOF pg_catalog.pg_constraint
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE ROWS 2 SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RETURN QUERY SELECT f.*
		FROM pg_constraint AS f
		WHERE f.oid = ANY (ARRAY(
				SELECT d.objid FROM pg_depend AS d
				WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = relation
					AND d.classid = 'pg_constraint'::regclass))
			AND f.contype = 'f' AND f.confrelid = relation;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.foreign_keys_to(oid)
	IS 'for snowflake_migrate.merge()''s own use: the foreign keys that lead to a table';

/*
 * A value of a column with a collation, to be compared with one that has another: by that, as PostgreSQL compares the
 * columns of a foreign key by the collation of what they refer to.
 */
CREATE FUNCTION snowflake_migrate_internal.collated(value text, own_collation oid, other_collation oid) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT value || snowflake_migrate_internal.collate_clause(nullif(other_collation, own_collation))
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.collated(text, oid, oid)
	IS 'for snowflake_migrate.merge()''s own use: a value to be compared by another collation';

/*
 * The columns of a foreign key, and those that they refer to, with the collations of both, and the operators that
 * compare what is referred to with what refers, and with its like.
 */
CREATE FUNCTION snowflake_migrate_internal.foreign_key_columns(
	foreign_key oid,
	OUT columns name[],
	OUT parent_columns name[],
	OUT operators oid[],
	OUT parent_operators oid[],
	OUT collations oid[],
	OUT parent_collations oid[])
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT array_agg(a.attname ORDER BY k.n), array_agg(b.attname ORDER BY k.n), array_agg(k.operator ORDER BY k.n),
		array_agg(k.parent_operator ORDER BY k.n), array_agg(a.attcollation ORDER BY k.n),
		array_agg(b.attcollation ORDER BY k.n)
	FROM pg_constraint AS f
		CROSS JOIN LATERAL unnest(f.conkey, f.confkey, f.conpfeqop, f.conppeqop)
			WITH ORDINALITY AS k (attnum, parent_attnum, operator, parent_operator, n)
		JOIN pg_attribute AS a ON a.attrelid = f.conrelid AND a.attnum = k.attnum
		JOIN pg_attribute AS b ON b.attrelid = f.confrelid AND b.attnum = k.parent_attnum
	WHERE f.oid = foreign_key
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.foreign_key_columns(oid)
	IS 'for snowflake_migrate.merge()''s own use: the columns of a foreign key, and what they refer to';

/* The columns that a generated column is made of. */
CREATE FUNCTION snowflake_migrate_internal.made_of(relation regclass, generated name) RETURNS SETOF name
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT DISTINCT b.attname
	FROM pg_attribute AS a
		JOIN pg_attrdef AS e ON e.adrelid = a.attrelid AND e.adnum = a.attnum
		JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = e.oid
			AND d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid
		JOIN pg_attribute AS b ON b.attrelid = a.attrelid AND b.attnum = d.refobjsubid AND b.attnum <> a.attnum
	WHERE a.attrelid = relation AND a.attname = generated AND a.attgenerated <> ''
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.made_of(regclass, name)
	IS 'for snowflake_migrate.merge()''s own use: what a generated column is made of';

/* As the report and the records have it, whatever the caller's search path. */
CREATE FUNCTION snowflake_migrate_internal.table_name(relation regclass) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off
AS $$ SELECT relation::text $$;
COMMENT ON FUNCTION snowflake_migrate_internal.table_name(regclass) IS 'for views: the name of a table with its schema';

/* What a domain is over, however many domains lie between; another type is its own base. */
CREATE FUNCTION snowflake_migrate_internal.base_type(type oid, typmod int, OUT base oid, OUT base_typmod int)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	under record;
BEGIN
	base := type;
	base_typmod := typmod;
	LOOP
		SELECT y.typbasetype, y.typtypmod INTO under FROM pg_type AS y WHERE y.oid = base AND y.typtype = 'd';
		EXIT WHEN NOT FOUND;
		base := under.typbasetype;
		base_typmod := under.typtypmod;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.base_type(oid, int)
	IS 'for snowflake_migrate.merge()''s own use: what a domain is over';

/* A type without its domain: of a domain its base, of an array of a domain the array of that. */
CREATE FUNCTION snowflake_migrate_internal.without_domain(type oid) RETURNS oid
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT coalesce(nullif(b.typarray, 0), y.oid)
	FROM pg_type AS t
		JOIN pg_type AS y ON y.oid = CASE t.typtype
			WHEN 'd' THEN (snowflake_migrate_internal.base_type(t.oid, -1)).base ELSE t.oid END
		LEFT JOIN pg_type AS e ON e.oid = y.typelem AND y.typcategory = 'A' AND e.typtype = 'd'
		LEFT JOIN pg_type AS b ON b.oid = (snowflake_migrate_internal.base_type(e.oid, -1)).base
	WHERE t.oid = type
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.without_domain(oid)
	IS 'for snowflake_migrate.merge()''s own use: a type without its domain';

/* Whether a column gets numbers by default: by an identity, a sequence, or snowflake_nextval(). */
CREATE FUNCTION snowflake_migrate_internal.makes_numbers(relation regclass, attnum int2) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	SELECT a.attidentity <> '' OR snowflake_migrate_internal.has_snowflake_default(relation, a.attnum) OR EXISTS (
		SELECT FROM pg_attrdef AS d
			JOIN pg_depend AS u ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid
			JOIN pg_sequence AS q ON u.refclassid = 'pg_class'::regclass AND q.seqrelid = u.refobjid
		WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum)
	FROM pg_attribute AS a
	WHERE a.attrelid = relation AND a.attnum = makes_numbers.attnum
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.makes_numbers(regclass, int2)
	IS 'for snowflake_migrate.merge()''s own use: whether a column''s default makes numbers';

/*
 * The columns of a table that are there.  In PL/pgSQL, which keeps the query's plan, and whose body is a text: with one
 * that is bound, pg_upgrade would bring the catalog's columns to a server that has others.
 */
CREATE FUNCTION snowflake_migrate_internal.columns_of(relation regclass) RETURNS SETOF pg_catalog.pg_attribute
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE ROWS 10
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
	RETURN QUERY SELECT a.*
		FROM pg_attribute AS a
		WHERE a.attrelid = columns_of.relation AND a.attnum > 0 AND NOT a.attisdropped;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.columns_of(regclass)
	IS 'for snowflake_migrate.merge()''s own use: the columns of a table';

/* Whether a table has all of these columns. */
CREATE FUNCTION snowflake_migrate_internal.has_columns(relation regclass, columns name[]) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RETURN columns <@ ARRAY(
		SELECT a.attname FROM pg_attribute AS a
		WHERE a.attrelid = has_columns.relation AND a.attnum > 0 AND NOT a.attisdropped);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.has_columns(regclass, name[])
	IS 'for snowflake_migrate.merge()''s own use: whether a table has columns';

/*
 * Why a view's rows can't be read; NULL: they can.  Its owner has no right to what it reads, or policies of row
 * security hide some of that, or it is a materialized view that has not been populated.
 */
CREATE FUNCTION snowflake_migrate_internal.unreadable(view regclass) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET row_security = off SET jit = off
AS $$
BEGIN
	EXECUTE format('SELECT FROM %s LIMIT 0', view);
	RETURN NULL;
EXCEPTION WHEN insufficient_privilege OR object_not_in_prerequisite_state THEN
	RETURN SQLERRM;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.unreadable(regclass)
	IS 'for snowflake_migrate.merge()''s own use: why a view''s rows cannot be read, or null';

/* Whether the caller sees all rows of a table. */
CREATE FUNCTION snowflake_migrate_internal.can_read(relation regclass) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT has_schema_privilege(c.relnamespace, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
		AND CASE WHEN c.relkind IN ('r', 'p') THEN NOT row_security_active(c.oid)
				WHEN c.relkind IN ('v', 'm') THEN snowflake_migrate_internal.unreadable(c.oid) IS NULL
				ELSE true END
	FROM pg_class AS c WHERE c.oid = relation
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.can_read(regclass)
	IS 'for snowflake_migrate.merge()''s own use: whether the caller sees all rows';

/*
 * What follows an expression that is to have a collation; nothing for null, and for a type that has none (0).
 * In PL/pgSQL, which keeps the query's plan.
 */
CREATE FUNCTION snowflake_migrate_internal.collate_clause(collation_ oid) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
	IF coalesce(collation_, 0) = 0 THEN
		RETURN '';
	END IF;
	RETURN coalesce((
		SELECT format(' COLLATE %I.%I', n.nspname, l.collname)
		FROM pg_collation AS l JOIN pg_namespace AS n ON n.oid = l.collnamespace
		WHERE l.oid = collation_), '');
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.collate_clause(oid)
	IS 'for snowflake_migrate.merge()''s own use: what gives an expression a collation';

/*
 * What column n of an index is about, as an expression over its table's columns, compared as the index does.
 */
CREATE FUNCTION snowflake_migrate_internal.index_expression(index_ oid, n int) RETURNS text
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
	RETURN (
		SELECT '(' || pg_get_indexdef(index_, n, true)
				/* Which the text leaves out. */
				|| snowflake_migrate_internal.collate_clause(nullif(i.indcollation[n - 1],
					(SELECT a.attcollation FROM pg_attribute AS a
					 WHERE a.attrelid = i.indrelid AND a.attnum = i.indkey[n - 1])))
				|| ')'
		FROM pg_index AS i
		WHERE i.indexrelid = index_);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.index_expression(oid, int)
	IS 'for snowflake_migrate.merge()''s own use: what a column of an index is about';

/* A column alone, as index_expression() writes it. */
CREATE FUNCTION snowflake_migrate_internal.column_expression(column_ name) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT '(' || quote_ident(column_) || ')'
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.column_expression(name)
	IS 'for snowflake_migrate.merge()''s own use: what an index of a column is about';

/* Of which rows an index is: one that a partition has for itself, of those that get there.  NULL: of all. */
CREATE FUNCTION snowflake_migrate_internal.index_predicate(index_ oid, relation regclass) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT nullif(concat_ws(' AND ', '(' || pg_get_expr(i.indpred, i.indrelid) || ')',
		CASE WHEN i.indrelid <> relation
			THEN '(' || coalesce(pg_get_partition_constraintdef(i.indrelid), 'true') || ')' END), '')
	FROM pg_index AS i WHERE i.indexrelid = index_
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.index_predicate(oid, regclass)
	IS 'for snowflake_migrate.merge()''s own use: of which rows an index is';
