/* Layouts and presets. */

/* What the extension itself calls: nothing in the user's schema but what is for users. */
CREATE SCHEMA snowflake_internal;
GRANT USAGE ON SCHEMA snowflake_internal TO PUBLIC;

CREATE FUNCTION snowflake_layout(
	OUT name text,
	OUT spec text,
	OUT timestamp_bits int,
	OUT node_bits int,
	OUT sequence_bits int,
	OUT tick interval,
	OUT epoch timestamptz,
	OUT ends_at timestamptz,
	OUT max_node bigint,
	OUT ids_per_second double precision) RETURNS record
AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_layout() IS 'the properties of the server''s layout';

CREATE FUNCTION snowflake_layout(
	layout text,
	OUT name text,
	OUT spec text,
	OUT timestamp_bits int,
	OUT node_bits int,
	OUT sequence_bits int,
	OUT tick interval,
	OUT epoch timestamptz,
	OUT ends_at timestamptz,
	OUT max_node bigint,
	OUT ids_per_second double precision) RETURNS record
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION snowflake_layout(text) IS 'the properties of a layout';

CREATE FUNCTION snowflake_internal.layouts(
	OUT name text,
	OUT spec text,
	OUT timestamp_bits int,
	OUT node_bits int,
	OUT sequence_bits int,
	OUT tick interval,
	OUT epoch timestamptz,
	OUT ends_at timestamptz,
	OUT max_node bigint,
	OUT ids_per_second double precision) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'snowflake_layouts' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 11;
COMMENT ON FUNCTION snowflake_internal.layouts() IS 'the rows of the view snowflake_layouts';

CREATE VIEW snowflake_layouts AS SELECT * FROM snowflake_internal.layouts();
GRANT SELECT ON snowflake_layouts TO PUBLIC;
COMMENT ON VIEW snowflake_layouts IS 'the preset layouts';
