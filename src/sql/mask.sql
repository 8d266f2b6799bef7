/* Ids that tell nothing: one to one, by a key. */

CREATE FUNCTION @extschema@.snowflake_mask(id bigint, key bytea) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_mask(bigint, bytea)
	IS 'a number in the place of an id, from 0 to 2^63 - 1, that tells nothing of it without the key';

CREATE FUNCTION @extschema@.snowflake_unmask(masked bigint, key bytea) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_unmask(bigint, bytea) IS 'the id that snowflake_mask() made a number of';
