/* Making ids. */

CREATE FUNCTION snowflake_internal.nextval_support(internal) RETURNS internal
AS 'MODULE_PATHNAME', 'snowflake_nextval_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_internal.nextval_support(internal) IS
	'for the planner: lets COPY FROM insert many rows at once';

CREATE FUNCTION @extschema@.snowflake_nextval() RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL SAFE SUPPORT snowflake_internal.nextval_support;
COMMENT ON FUNCTION @extschema@.snowflake_nextval() IS 'a new id, greater than all that this server has made';

/* STABLE is not so, and said to COPY FROM alone: src/postgres/copy_from.cpp has why. */
CREATE FUNCTION snowflake_internal.nextval_in_copy() RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_nextval_in_copy' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION snowflake_internal.nextval_in_copy() IS
	'snowflake_nextval() for COPY FROM, which alone can call it';

CREATE FUNCTION @extschema@.snowflake_nextval_batch(n int) RETURNS SETOF bigint
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_nextval_batch(int) IS 'n new ids, ascending';

CREATE FUNCTION @extschema@.snowflake_lastval() RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION @extschema@.snowflake_lastval() IS 'the newest id that this session was given';

CREATE FUNCTION @extschema@.snowflake_advance_past(id bigint) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.snowflake_advance_past(bigint) IS 'makes all later ids sort after this one';
REVOKE ALL ON FUNCTION @extschema@.snowflake_advance_past(bigint) FROM PUBLIC;

CREATE FUNCTION @extschema@.snowflake_set_reserved_until(ts timestamptz) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.snowflake_set_reserved_until(timestamptz) IS
	'moves the time that this server has reserved, also back, for a node number that has issued nothing above it';
REVOKE ALL ON FUNCTION @extschema@.snowflake_set_reserved_until(timestamptz) FROM PUBLIC;

CREATE FUNCTION @extschema@.snowflake_limit_layout(
	OUT epoch timestamptz,
	OUT tick interval,
	OUT timestamp_shift int) RETURNS record
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_limit_layout() IS
	'what decides which ids the layout gave that the durable limit was made in';

CREATE VIEW snowflake_internal.limit_layout AS SELECT * FROM @extschema@.snowflake_limit_layout();
GRANT SELECT ON snowflake_internal.limit_layout TO PUBLIC;
COMMENT ON VIEW snowflake_internal.limit_layout IS 'snowflake_limit_layout()';

CREATE FUNCTION @extschema@.snowflake_accept_layout() RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.snowflake_accept_layout() IS
	'goes on in the server''s layout, whatever the durable limit was made in; ids may repeat those before';
REVOKE ALL ON FUNCTION @extschema@.snowflake_accept_layout() FROM PUBLIC;

/*
 * The origins of the limit have no names, and PostgreSQL drops by name: they get one for as long as that takes.  What
 * is dropped stays so even where the transaction is rolled back.
 */
CREATE FUNCTION @extschema@.snowflake_forget_limit() RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp SET allow_system_table_mods = on
AS $$
DECLARE
	server record;
BEGIN
	SELECT s.* INTO STRICT server FROM snowflake_internal.server() AS s;
	IF server.preloaded THEN
		RAISE EXCEPTION USING ERRCODE = 'object_in_use',
			MESSAGE = 'cannot forget the limit of snowflake ids while the library is loaded',
			DETAIL = 'Ids that are made after this start by the clock alone, and may repeat earlier ones.',
			HINT = 'To uninstall snowflake, remove it from "shared_preload_libraries" and restart the server first.';
	ELSIF server.max_origins = 0 THEN
		RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
			MESSAGE = 'cannot forget the limit of snowflake ids without room for replication origins',
			HINT = 'Set "max_replication_slots" (from PostgreSQL 18 on "max_active_replication_origins") '
				'as it was, and restart the server.';
	END IF;
	INSERT INTO pg_catalog.pg_replication_origin (roident, roname)
		VALUES (65534, 'snowflake_forget_limit'), (65533, 'snowflake_forget_layout');
	PERFORM pg_catalog.pg_replication_origin_drop(o.roname)
		FROM pg_catalog.pg_replication_origin AS o WHERE o.roident IN (65533, 65534);
END
$$;
COMMENT ON FUNCTION @extschema@.snowflake_forget_limit() IS 'removes the durable limit when snowflake is uninstalled';
REVOKE ALL ON FUNCTION @extschema@.snowflake_forget_limit() FROM PUBLIC;

CREATE FUNCTION @extschema@.snowflake_accept_clock() RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.snowflake_accept_clock() IS 'believes the wall clock as it is now';
REVOKE ALL ON FUNCTION @extschema@.snowflake_accept_clock() FROM PUBLIC;
