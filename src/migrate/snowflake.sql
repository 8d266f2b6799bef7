/*
 * What is used of the extension snowflake.  Its schema is known while this script runs, and not in the functions'
 * bodies: these are parsed now, and are bound to the functions themselves.
 */

/*
 * The schema of this extension may have been there before.  Whoever owns it, or something in it, could have put there
 * what superusers then call.
 */
DO $$
DECLARE
	schema CONSTANT regnamespace := 'snowflake_migrate';
	owner regrole;
BEGIN
	SELECT n.nspowner INTO owner
		FROM pg_namespace AS n JOIN pg_roles AS r ON r.oid = n.nspowner
		WHERE n.oid = schema AND NOT r.rolsuper;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = format('schema "%s" belongs to role %s, which is no superuser', schema, owner),
			HINT = 'Drop the schema: CREATE EXTENSION creates it anew.';
	END IF;
	IF EXISTS (SELECT FROM pg_depend AS d
			   WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = schema
				AND d.classid NOT IN ('pg_extension'::regclass, 'pg_default_acl'::regclass)) THEN
		RAISE EXCEPTION USING ERRCODE = 'object_in_use',
			MESSAGE = format('schema "%s" is not empty', schema),
			HINT = 'Drop the schema: CREATE EXTENSION creates it anew.';
	END IF;
END
$$;

CREATE SCHEMA snowflake_migrate_internal;
GRANT USAGE ON SCHEMA snowflake_migrate, snowflake_migrate_internal TO PUBLIC;

/*
 * For the next functions, the schema of snowflake is on the path.  Others may have put something beside it: each call
 * here has the exact types of the function's arguments, and no operator.
 */
SELECT pg_catalog.set_config('search_path',
	pg_catalog.concat_ws(', ', 'pg_catalog', pg_catalog.quote_ident(n.nspname), 'pg_temp'), true)
FROM pg_catalog.pg_extension AS e JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace
WHERE e.extname = 'snowflake';

CREATE FUNCTION snowflake_migrate_internal.nextval() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL SAFE RETURN snowflake_nextval();
COMMENT ON FUNCTION snowflake_migrate_internal.nextval() IS 'snowflake_nextval()';

/* What a column's default depends on. */
CREATE FUNCTION snowflake_migrate_internal.default_function() RETURNS regprocedure
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 'snowflake_nextval()'::regprocedure;
COMMENT ON FUNCTION snowflake_migrate_internal.default_function() IS 'the function of the default';

CREATE FUNCTION snowflake_migrate_internal.layout(
	OUT epoch timestamptz,
	OUT tick interval,
	OUT timestamp_bits int,
	OUT sequence_bits int,
	OUT max_node bigint) RETURNS record
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT l.epoch, l.tick, l.timestamp_bits, l.sequence_bits, l.max_node FROM snowflake_layout() AS l;
END;
COMMENT ON FUNCTION snowflake_migrate_internal.layout() IS 'snowflake_layout()';

CREATE FUNCTION snowflake_migrate_internal.own_node() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL SAFE
BEGIN ATOMIC
	SELECT s.node_id FROM snowflake_stat AS s;
END;
COMMENT ON FUNCTION snowflake_migrate_internal.own_node() IS 'this server''s node number';

/* The time that this server will make ids of: ids may have run ahead of the clock. */
CREATE FUNCTION snowflake_migrate_internal.own_time() RETURNS timestamptz
LANGUAGE sql VOLATILE PARALLEL SAFE
BEGIN ATOMIC
	SELECT greatest(s.last_timestamp, clock_timestamp()) FROM snowflake_stat AS s;
END;
COMMENT ON FUNCTION snowflake_migrate_internal.own_time() IS 'the time that this server will make ids of';

CREATE FUNCTION snowflake_migrate_internal.encode(ts timestamptz, node bigint, sequence bigint) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE RETURN snowflake_encode(ts, node, sequence);
COMMENT ON FUNCTION snowflake_migrate_internal.encode(timestamptz, bigint, bigint) IS 'snowflake_encode()';

CREATE FUNCTION snowflake_migrate_internal.timestamp(id bigint) RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE RETURN snowflake_timestamp(id);
COMMENT ON FUNCTION snowflake_migrate_internal.timestamp(bigint) IS 'snowflake_timestamp()';

CREATE FUNCTION snowflake_migrate_internal.node(id bigint) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE RETURN snowflake_node(id);
COMMENT ON FUNCTION snowflake_migrate_internal.node(bigint) IS 'snowflake_node()';

CREATE FUNCTION snowflake_migrate_internal.min_id(ts timestamptz) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE RETURN snowflake_min_id(ts);
COMMENT ON FUNCTION snowflake_migrate_internal.min_id(timestamptz) IS 'snowflake_min_id()';

CREATE FUNCTION snowflake_migrate_internal.max_id(ts timestamptz) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE RETURN snowflake_max_id(ts);
COMMENT ON FUNCTION snowflake_migrate_internal.max_id(timestamptz) IS 'snowflake_max_id()';

SET LOCAL search_path = pg_catalog, pg_temp;

CREATE FUNCTION snowflake_migrate_internal.has_snowflake_default(
	relation regclass,
	attnum smallint) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT EXISTS (
		SELECT FROM pg_attrdef AS d JOIN pg_depend AS u ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid
		WHERE d.adrelid = relation AND d.adnum = attnum
			AND u.refclassid = 'pg_proc'::regclass AND u.refobjid = snowflake_migrate_internal.default_function());
END;
COMMENT ON FUNCTION snowflake_migrate_internal.has_snowflake_default(regclass, smallint)
	IS 'whether snowflake_nextval() gives a column its values';

CREATE FUNCTION snowflake_migrate_internal.snowflake_schema() RETURNS regnamespace
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT p.pronamespace::regnamespace FROM pg_proc AS p WHERE p.oid = snowflake_migrate_internal.default_function();
END;
COMMENT ON FUNCTION snowflake_migrate_internal.snowflake_schema() IS 'the schema of the extension snowflake';

/*
 * What stands for a long text in a name, or for what was read: 32 hexadecimal digits.  md5() fails on servers whose
 * OpenSSL is in FIPS mode.
 */
CREATE FUNCTION snowflake_migrate_internal.digest(of text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT left(encode(sha256(convert_to(of, getdatabaseencoding())), 'hex'), 32) $$;
COMMENT ON FUNCTION snowflake_migrate_internal.digest(text) IS 'what stands for a long text';
