/* Reading ids and building them from their parts: in the server's layout, or in the one given. */

CREATE FUNCTION @extschema@.snowflake_decode(
	id bigint,
	OUT ts timestamptz,
	OUT node bigint,
	OUT sequence bigint,
	OUT fields jsonb) RETURNS record
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_decode(bigint) IS 'an id''s parts, in the server''s layout';

CREATE FUNCTION @extschema@.snowflake_decode(
	id bigint,
	layout text,
	OUT ts timestamptz,
	OUT node bigint,
	OUT sequence bigint,
	OUT fields jsonb) RETURNS record
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_decode(bigint, text) IS 'an id''s parts, in the layout given';

CREATE FUNCTION @extschema@.snowflake_timestamp(id bigint) RETURNS timestamptz
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_timestamp(bigint) IS 'when an id was made, in the server''s layout';

CREATE FUNCTION @extschema@.snowflake_timestamp(id bigint, layout text) RETURNS timestamptz
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_timestamp(bigint, text) IS 'when an id was made, in the layout given';

CREATE FUNCTION @extschema@.snowflake_node(id bigint) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_node(bigint) IS 'an id''s node number, in the server''s layout';

CREATE FUNCTION @extschema@.snowflake_node(id bigint, layout text) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_node(bigint, text) IS 'an id''s node number, in the layout given';

/* As snowflake_internal.layout. */
CREATE FUNCTION snowflake_internal.timestamp(id bigint) RETURNS timestamptz
AS 'MODULE_PATHNAME', 'snowflake_timestamp' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_internal.timestamp(bigint) IS 'snowflake_timestamp()';

CREATE FUNCTION snowflake_internal.node(id bigint) RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_node' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_internal.node(bigint) IS 'snowflake_node()';

CREATE FUNCTION @extschema@.snowflake_sequence(id bigint) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_sequence(bigint) IS 'an id''s sequence number, in the server''s layout';

CREATE FUNCTION @extschema@.snowflake_sequence(id bigint, layout text) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_sequence(bigint, text) IS 'an id''s sequence number, in the layout given';

CREATE FUNCTION @extschema@.snowflake_field(id bigint, field text) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_field(bigint, text) IS 'one named field of an id, in the server''s layout';

CREATE FUNCTION @extschema@.snowflake_field(id bigint, field text, layout text) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_field(bigint, text, text) IS 'one named field of an id, in the layout given';

CREATE FUNCTION @extschema@.snowflake_encode(ts timestamptz, node bigint, sequence bigint) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_encode(timestamptz, bigint, bigint)
	IS 'the id with these parts, in the server''s layout';

CREATE FUNCTION @extschema@.snowflake_encode(ts timestamptz, node bigint, sequence bigint, layout text) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_encode(timestamptz, bigint, bigint, text)
	IS 'the id with these parts, in the layout given';

CREATE FUNCTION @extschema@.snowflake_min_id(ts timestamptz) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_min_id(timestamptz)
	IS 'the smallest id made at or after a time, in the server''s layout';

CREATE FUNCTION @extschema@.snowflake_min_id(ts timestamptz, layout text) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_min_id(timestamptz, text)
	IS 'the smallest id made at or after a time, in the layout given';

CREATE FUNCTION @extschema@.snowflake_max_id(ts timestamptz) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_max_id(timestamptz)
	IS 'the largest id made at or before a time, in the server''s layout';

CREATE FUNCTION @extschema@.snowflake_max_id(ts timestamptz, layout text) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_max_id(timestamptz, text)
	IS 'the largest id made at or before a time, in the layout given';

CREATE FUNCTION @extschema@.snowflake_explain(
	id bigint,
	OUT field text,
	OUT bits int,
	OUT value bigint,
	OUT meaning text) RETURNS SETOF record
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_explain(bigint) IS 'an id laid open, in the server''s layout';

CREATE FUNCTION @extschema@.snowflake_explain(
	id bigint,
	layout text,
	OUT field text,
	OUT bits int,
	OUT value bigint,
	OUT meaning text) RETURNS SETOF record
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION @extschema@.snowflake_explain(bigint, text) IS 'an id laid open, in the layout given';
