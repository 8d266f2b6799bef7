CREATE EXTENSION snowflake;
CREATE FUNCTION bench_constant() RETURNS bigint AS :'module' LANGUAGE C VOLATILE STRICT;
CREATE SEQUENCE plain;
CREATE SEQUENCE cached CACHE 100;
CREATE TABLE by_snowflake (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int);
CREATE TABLE by_nextval (id bigint PRIMARY KEY DEFAULT nextval('plain'), v int);
