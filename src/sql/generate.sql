/* Making ids. */

CREATE FUNCTION snowflake_nextval() RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_nextval() IS 'a new id, greater than all that this server has made';

CREATE FUNCTION snowflake_nextval_batch(n int) RETURNS SETOF bigint
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_nextval_batch(int) IS 'n new ids, ascending';

CREATE FUNCTION snowflake_lastval() RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION snowflake_lastval() IS 'the newest id that this session was given';

CREATE FUNCTION snowflake_advance_past(id bigint) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_advance_past(bigint) IS 'makes all later ids sort after this one';
REVOKE ALL ON FUNCTION snowflake_advance_past(bigint) FROM PUBLIC;

CREATE FUNCTION snowflake_set_limit(ts timestamptz) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_set_limit(timestamptz) IS 'moves the durable limit, for a node number that has issued nothing above it';
REVOKE ALL ON FUNCTION snowflake_set_limit(timestamptz) FROM PUBLIC;

CREATE FUNCTION snowflake_accept_clock() RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_accept_clock() IS 'believes the wall clock as it is now';
REVOKE ALL ON FUNCTION snowflake_accept_clock() FROM PUBLIC;
