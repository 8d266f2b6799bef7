/*
 * The reserved time that a database brings from another server: see src/postgres/carried.h.
 */

/* pg_dump and REFRESH read these. */
CREATE FUNCTION snowflake_internal.limit_to_dump(OUT limit_us bigint, OUT scale bigint) RETURNS record
AS 'MODULE_PATHNAME', 'snowflake_limit_to_dump' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_internal.limit_to_dump() IS 'the limit and its scale, for a dump';

CREATE FUNCTION snowflake_internal.upgraded_limit(
	OUT system_identifier bigint,
	OUT limit_us bigint,
	OUT scale bigint) RETURNS record
AS 'MODULE_PATHNAME', 'snowflake_upgraded_limit' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_internal.upgraded_limit() IS 'the row of the materialized view of the same name';

/* Empty, but for what a restore could not take over. */
CREATE TABLE snowflake_internal.restored_limit (
	limit_us bigint NOT NULL CHECK (limit_us BETWEEN 1 AND 288230376151711744),
	scale bigint NOT NULL,
	is_trusted boolean NOT NULL		-- the dump's server said so of itself, and a superuser has restored it
);
/* For DELETE where a publication has all tables. */
ALTER TABLE snowflake_internal.restored_limit REPLICA IDENTITY FULL;
COMMENT ON TABLE snowflake_internal.restored_limit IS
	'up to where ids of a restored dump reach, Unix microseconds, where the server''s limit could not be raised';
/* Who dumps and restores a database of one's own need not be a superuser.  What a row may do, the trigger decides. */
GRANT SELECT, INSERT ON snowflake_internal.restored_limit TO pg_database_owner;

CREATE FUNCTION snowflake_internal.restore_limit() RETURNS trigger
AS 'MODULE_PATHNAME', 'snowflake_restore_limit' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION snowflake_internal.restore_limit() IS 'raises the limit as a restored row says';
REVOKE ALL ON FUNCTION snowflake_internal.restore_limit() FROM PUBLIC;

CREATE TRIGGER restore_limit BEFORE INSERT ON snowflake_internal.restored_limit
	FOR EACH ROW EXECUTE FUNCTION snowflake_internal.restore_limit();
ALTER TABLE snowflake_internal.restored_limit ENABLE ALWAYS TRIGGER restore_limit;

/* pg_dump puts the condition behind "SELECT limit_us, scale, is_trusted FROM snowflake_internal.restored_limit". */
SELECT pg_catalog.pg_extension_config_dump('snowflake_internal.restored_limit',
	'UNION ALL SELECT l.limit_us, l.scale, true FROM snowflake_internal.limit_to_dump() AS l '
	'WHERE l.limit_us OPERATOR(pg_catalog.>) 0 '
	'UNION ALL SELECT u.limit_us, u.scale, true FROM snowflake_internal.upgraded_limit() AS u '
	'WHERE u.limit_us OPERATOR(pg_catalog.>) 0');

/* One row, which is overwritten in its place.  A materialized view, since no publication FOR ALL TABLES has those. */
CREATE MATERIALIZED VIEW snowflake_internal.upgraded_limit USING heap AS
	SELECT u.system_identifier, u.limit_us, u.scale FROM snowflake_internal.upgraded_limit() AS u;
COMMENT ON MATERIALIZED VIEW snowflake_internal.upgraded_limit IS
	'which server made ids in this database last, and its limit when pg_upgrade ran';
