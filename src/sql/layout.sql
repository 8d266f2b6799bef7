/* Layouts and presets. */

/* What the extension itself calls: nothing in the user's schema but what is for users. */
CREATE SCHEMA snowflake_internal;
GRANT USAGE ON SCHEMA snowflake_internal TO PUBLIC;

CREATE FUNCTION @extschema@.snowflake_layout(
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
COMMENT ON FUNCTION @extschema@.snowflake_layout() IS 'the properties of the server''s layout';

CREATE FUNCTION @extschema@.snowflake_layout(
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
COMMENT ON FUNCTION @extschema@.snowflake_layout(text) IS 'the properties of a layout';

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

CREATE VIEW @extschema@.snowflake_layouts AS SELECT * FROM snowflake_internal.layouts();
GRANT SELECT ON @extschema@.snowflake_layouts TO PUBLIC;
COMMENT ON VIEW @extschema@.snowflake_layouts IS 'the preset layouts';

/*
 * For the functions of this extension whose bodies are text: these look names up when they are called, and whoever owns
 * the schema chosen for the extension could rename it and put another in its place.  These are bound once.
 */
CREATE VIEW snowflake_internal.layout AS SELECT * FROM @extschema@.snowflake_layout();
GRANT SELECT ON snowflake_internal.layout TO PUBLIC;
COMMENT ON VIEW snowflake_internal.layout IS 'snowflake_layout()';

CREATE FUNCTION snowflake_internal.layout_spec(layout text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN (SELECT l.spec FROM @extschema@.snowflake_layout(layout) AS l);
COMMENT ON FUNCTION snowflake_internal.layout_spec(text) IS 'a layout written out';

CREATE FUNCTION snowflake_internal.layout_max_node(layout text) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN (SELECT l.max_node FROM @extschema@.snowflake_layout(layout) AS l);
COMMENT ON FUNCTION snowflake_internal.layout_max_node(text) IS 'the greatest node number of a layout';
