CREATE EXTENSION snowflake;
CREATE FUNCTION bench_constant() RETURNS bigint AS :'constant' LANGUAGE C VOLATILE STRICT;
CREATE FUNCTION bench_latency(function oid, calls bigint) RETURNS bigint[] AS :'latency' LANGUAGE C VOLATILE STRICT;
CREATE SEQUENCE cache_1;
CREATE SEQUENCE cache_32 CACHE 32;
CREATE SEQUENCE cache_1000 CACHE 1000;

-- As people write it: milliseconds, a number for the server, and a sequence.  After "Sharding & IDs at Instagram" (2012).
CREATE SEQUENCE plpgsql_sequence;
CREATE FUNCTION plpgsql_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	epoch CONSTANT bigint := 1314220021721;		-- milliseconds after 1970
	shard CONSTANT bigint := 5;
	milliseconds bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
	RETURN (milliseconds - epoch) << 23 | shard << 10 | nextval('plpgsql_sequence') % 1024;
END
$$;

