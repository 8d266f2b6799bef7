-- Beside this extension, which has its name, but not its functions' arguments.
CREATE FUNCTION pgedge_nextval(regclass) RETURNS bigint AS :'library', 'snowflake_nextval' LANGUAGE C VOLATILE STRICT;
CREATE SEQUENCE pgedge_sequence;
