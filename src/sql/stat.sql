/* The view snowflake_stat: the server's node number, claim, newest id and limit, and counters. */

CREATE FUNCTION snowflake_internal.stat(
	OUT node_id bigint,
	OUT node_source text,
	OUT claim text,
	OUT claim_since timestamptz,
	OUT granted_until timestamptz,
	OUT problem text,
	OUT refusal text,
	OUT layout text,
	OUT last_id bigint,
	OUT last_timestamp timestamptz,
	OUT drift interval,
	OUT reserved_until timestamptz,
	OUT reserved_ahead interval,
	OUT ids bigint,
	OUT reservations bigint,
	OUT clock_rollbacks bigint,
	OUT max_rollback interval,
	OUT forward_jumps bigint,
	OUT waits bigint,
	OUT wait_time interval,
	OUT longest_wait interval,
	OUT errors bigint,
	OUT layout_ends_at timestamptz,
	OUT stats_reset timestamptz) RETURNS record
AS 'MODULE_PATHNAME', 'snowflake_stat' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_internal.stat() IS 'the row of the view snowflake_stat';

CREATE VIEW @extschema@.snowflake_stat AS SELECT * FROM snowflake_internal.stat();
GRANT SELECT ON @extschema@.snowflake_stat TO PUBLIC;
COMMENT ON VIEW @extschema@.snowflake_stat IS 'this server''s node number, newest id, reserved time and counters';

CREATE FUNCTION @extschema@.snowflake_stat_reset() RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION @extschema@.snowflake_stat_reset() IS 'zeroes the counters of snowflake_stat';
REVOKE ALL ON FUNCTION @extschema@.snowflake_stat_reset() FROM PUBLIC;
