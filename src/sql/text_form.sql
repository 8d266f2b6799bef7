/* Ids as short text. */

CREATE FUNCTION @extschema@.snowflake_to_base62(id bigint) RETURNS text
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_to_base62(bigint)
	IS '11 characters that sort as the ids do under COLLATE "C"';

CREATE FUNCTION @extschema@.snowflake_from_base62(form text) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_from_base62(text) IS 'the id of its base62 form';

CREATE FUNCTION @extschema@.snowflake_to_base32(id bigint) RETURNS text
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_to_base32(bigint) IS '13 characters of Crockford''s base32 alphabet';

CREATE FUNCTION @extschema@.snowflake_from_base32(form text) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_from_base32(text)
	IS 'the id of its base32 form; forgives case, I, L, O and hyphens';

CREATE FUNCTION @extschema@.snowflake_to_typed(id bigint, prefix text) RETURNS text
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_to_typed(bigint, text)
	IS 'a prefix that says what the id is of, an underscore, and the base62 form';

CREATE FUNCTION @extschema@.snowflake_from_typed(form text, prefix text) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_from_typed(text, text)
	IS 'the id of its typed form; an error where it has another prefix';

/* As pg_partman calls them for a key of text in base62: see doc/time-from-keys.md. */
CREATE FUNCTION @extschema@.snowflake_time_encoder(ts timestamptz) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN @extschema@.snowflake_to_base62(@extschema@.snowflake_min_id(ts));
COMMENT ON FUNCTION @extschema@.snowflake_time_encoder(timestamptz)
	IS 'the base62 form of the smallest id at or after a time, for pg_partman';

CREATE FUNCTION @extschema@.snowflake_time_decoder(form text) RETURNS timestamptz
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN @extschema@.snowflake_timestamp(@extschema@.snowflake_from_base62(form));
COMMENT ON FUNCTION @extschema@.snowflake_time_decoder(text) IS 'the time of an id in its base62 form, for pg_partman';
