-- Ids that tell nothing: snowflake_mask() and snowflake_unmask().

-- test vectors, computed by another program: 10 rounds over halves of 31 and 32 bits, round i adding to the left half, modulo
-- its size, the first 4 bytes of HMAC-SHA-256(key, 'snowflake mask 1' || i as one byte || the right half as 4 bytes, big-endian)
CREATE TEMPORARY TABLE vectors (key bytea, id bigint, masked bigint);
INSERT INTO vectors SELECT decode(key, 'hex'), id, masked FROM (VALUES
	('000102030405060708090a0b0c0d0e0f', 0, 1666744990528149786),
	('000102030405060708090a0b0c0d0e0f', 1, 3845100286102222111),
	('000102030405060708090a0b0c0d0e0f', 2, 8406931548086091879),
	('000102030405060708090a0b0c0d0e0f', 4294967296, 5034161163340404711),
	('000102030405060708090a0b0c0d0e0f', 2124085317031325697, 3760284811876606865),
	('000102030405060708090a0b0c0d0e0f', 2124085317031325698, 8074357832455859696),
	('000102030405060708090a0b0c0d0e0f', 9223372036854775807, 8353939373636691245),
	('000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', 0, 5235015052594386770),
	('000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', 1, 4277352967920591012),
	('000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', 2, 487552982184119117),
	('000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', 4294967296, 1170134551305538811),
	('000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', 2124085317031325697, 3479802377516422807),
	('000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', 2124085317031325698, 2809172107977190897),
	('000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', 9223372036854775807, 313839258765327506),
	('ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff', 0, 2670665649767738288),
	('ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff', 1, 4585501937299442628),
	('ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff', 2, 4109940128916624677),
	('ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff', 4294967296, 5406200365290622485),
	('ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff', 2124085317031325697, 5099392503264684132),
	('ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff', 2124085317031325698, 4327895334787309569),
	('ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff', 9223372036854775807, 8322687611827922145)
) AS v (key, id, masked);
SELECT length(key), id, snowflake_mask(id, key) = masked AS masked, snowflake_unmask(masked, key) = id AS unmasked FROM vectors ORDER BY key, id;

-- one to one, and the sizes of neighbours say nothing
SELECT count(DISTINCT snowflake_mask(id, '\x000102030405060708090a0b0c0d0e0f')) AS distinct,
	bool_and(snowflake_unmask(snowflake_mask(id, '\x000102030405060708090a0b0c0d0e0f'), '\x000102030405060708090a0b0c0d0e0f') = id) AS back,
	min(snowflake_mask(id, '\x000102030405060708090a0b0c0d0e0f')) >= 0 AS positive,
	abs(corr(id - 2124085317031325697, snowflake_mask(id, '\x000102030405060708090a0b0c0d0e0f'))) < 0.1 AS in_no_order
FROM generate_series(2124085317031325697, 2124085317031325697 + 1999) AS id;
-- another key, another permutation; a longer key is another key
SELECT count(*) FROM generate_series(1, 100) AS id
WHERE snowflake_mask(id, '\x000102030405060708090a0b0c0d0e0f') = snowflake_mask(id, '\x010102030405060708090a0b0c0d0e0f')
	OR snowflake_mask(id, '\x000102030405060708090a0b0c0d0e0f') = snowflake_mask(id, '\x000102030405060708090a0b0c0d0e0f01');

-- in an index, so that what comes back in is looked up by it; short ids for people
CREATE TABLE orders (id bigint PRIMARY KEY);
CREATE INDEX ON orders (snowflake_mask(id, '\x000102030405060708090a0b0c0d0e0f'));
INSERT INTO orders VALUES (2124085317031325697);
SELECT snowflake_to_typed(snowflake_mask(id, '\x000102030405060708090a0b0c0d0e0f'), 'order') FROM orders;
DROP TABLE orders;

-- the key out of the queries: a function that reads it, for roles that may not
CREATE TABLE mask_key (key bytea NOT NULL CHECK (length(key) = 32));
INSERT INTO mask_key VALUES ('\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f');
CREATE FUNCTION public_id(id bigint) RETURNS bigint LANGUAGE sql STABLE STRICT SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp
	RETURN (SELECT public.snowflake_mask(id, k.key) FROM public.mask_key AS k);
CREATE ROLE regress_snowflake_web;
SET ROLE regress_snowflake_web;
SELECT public_id(2124085317031325697);
SELECT key FROM mask_key;
RESET ROLE;
DROP FUNCTION public_id;
DROP TABLE mask_key;
DROP ROLE regress_snowflake_web;

-- no id, no key: errors that do not show it
SELECT snowflake_mask(-1, '\x000102030405060708090a0b0c0d0e0f');
SELECT snowflake_unmask(-9223372036854775808, '\x000102030405060708090a0b0c0d0e0f');
SELECT snowflake_mask(1, '');
SELECT snowflake_mask(1, 'fifteen letters');
SELECT snowflake_unmask(1, convert_to(repeat('x', 65), 'UTF8'));
SELECT snowflake_mask(1, NULL) IS NULL AND snowflake_mask(NULL, '\x000102030405060708090a0b0c0d0e0f') IS NULL AND snowflake_unmask(NULL, NULL) IS NULL AS strict;
