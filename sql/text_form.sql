-- Ids as short text.

-- known values
SELECT id, snowflake_to_base62(id) AS base62, snowflake_to_base32(id) AS base32
FROM unnest(ARRAY[0, 1, 9, 10, 31, 32, 35, 36, 61, 62, 1541815603606036480, 175928847299117063, 9223372036854775806, 9223372036854775807]::bigint[]) id;
SELECT snowflake_from_base62('00000000000'), snowflake_from_base62('0000000000z'), snowflake_from_base62('00000000010'), snowflake_from_base62('AzL8n0Y58m7');
SELECT snowflake_from_base32('0000000000000'), snowflake_from_base32('000000000000Z'), snowflake_from_base32('0000000000010'), snowflake_from_base32('7ZZZZZZZZZZZZ');

-- every digit, in order
SELECT string_agg(right(snowflake_to_base62(n), 1), '' ORDER BY n) FROM generate_series(0, 61) n;
SELECT string_agg(right(snowflake_to_base32(n), 1), '' ORDER BY n) FROM generate_series(0, 31) n;

-- back, and sorted as the ids are, for random ids of every size
SELECT setseed(0.5);
CREATE TEMP TABLE tried AS
SELECT id, snowflake_to_base62(id) AS base62, snowflake_to_base32(id) AS base32
FROM (SELECT (trunc(random() * 2 ^ 31)::bigint << 32 | trunc(random() * 2 ^ 32)::bigint) >> (n % 63) AS id
	FROM generate_series(1, 5000) n OFFSET 0) v;
SELECT count(*) FILTER (WHERE snowflake_from_base62(base62) <> id) AS wrong62, count(*) FILTER (WHERE snowflake_from_base32(base32) <> id) AS wrong32,
	min(length(base62)) AS min62, max(length(base62)) AS max62, min(length(base32)) AS min32, max(length(base32)) AS max32 FROM tried;
SELECT bool_and(base62 COLLATE "C" >= before62 COLLATE "C") AS in_order62, bool_and(base32 COLLATE "C" >= before32 COLLATE "C") AS in_order32
FROM (SELECT base62, base32, lag(base62) OVER w AS before62, lag(base32) OVER w AS before32 FROM tried WINDOW w AS (ORDER BY id)) pairs;

-- base32 forgives case, I, L, O, and hyphens anywhere
SELECT count(*) FILTER (WHERE snowflake_from_base32(lower(base32)) <> id
	OR snowflake_from_base32(translate(base32, '10', 'IO')) <> id OR snowflake_from_base32(translate(base32, '10', 'lo')) <> id
	OR snowflake_from_base32(translate(base32, '1', 'i')) <> id OR snowflake_from_base32(translate(base32, '1', 'L')) <> id
	OR snowflake_from_base32(regexp_replace(base32, '(...)', '\1-', 'g')) <> id OR snowflake_from_base32('-' || base32 || '--') <> id) AS wrong FROM tried;
-- base62 does not
SELECT snowflake_from_base62('0000000000A'), snowflake_from_base62('0000000000a');

-- an index for looking them up
CREATE TABLE orders (id bigint PRIMARY KEY);
CREATE INDEX ON orders (snowflake_to_base62(id));
INSERT INTO orders SELECT snowflake_nextval_batch(100);
SELECT count(*) FROM orders WHERE snowflake_from_base62(snowflake_to_base62(id)) = id;
DROP TABLE orders;

-- no id
SELECT snowflake_to_base62(-1);
SELECT snowflake_to_base32(-9223372036854775808);

-- no form of an id: what, why, what to do
SELECT snowflake_from_base62('');
SELECT snowflake_from_base32('');

-- all of them
CREATE FUNCTION pg_temp.refusal(bits int, form text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text;
	detail text;
BEGIN
	IF bits = 62 THEN
		RETURN 'accepted as ' || snowflake_from_base62(form);
	ELSE
		RETURN 'accepted as ' || snowflake_from_base32(form);
	END IF;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
	IF SQLSTATE <> '22P02' OR message <> format('invalid base%s form of a snowflake id: "%s"', bits, form) THEN
		detail := format('%s: %s: %s', SQLSTATE, message, detail);
	END IF;
	RETURN detail;
END
$$;
SELECT form, pg_temp.refusal(62, form) FROM (VALUES
	('0'), ('0000000000'), ('000000000000'), ('-0000000001'), ('+0000000001'), ('00000-00001'), (' 0000000001'), ('0000000001 '), (E'0000000001\n'), ('0000000000é'),
	('000000000é'), ('0000000000_'), ('0000000000@'), ('0000000000['), ('0000000000`'), ('0000000000{'), ('0000000000/'), ('0000000000:'),
	('AzL8n0Y58m8'), ('AzL8n0Y58mz'), ('B0000000000'), ('zzzzzzzzzzz'), ('zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz')) v (form);
SELECT form, pg_temp.refusal(32, form) FROM (VALUES
	('-'), ('0'), ('000000000000'), ('000000-000000'), ('00000000000000'), ('000000000000U'), ('u000000000000'), ('000000000000*'), ('000000000000='), ('000000 000000'), ('000000000000é'),
	('000000000000/'), ('000000000000:'), ('000000000000@'), ('000000000000['), ('000000000000`'), ('000000000000{'),
	('8000000000000'), ('80000-0000-0000'), ('ZZZZZZZZZZZZZ'), ('zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz')) v (form);
SELECT pg_temp.refusal(62, repeat('z', 1000000)), pg_temp.refusal(32, repeat('z', 1000000));
SELECT snowflake_from_base32(repeat('-', 1000000) || '7ZZZZZZZZZZZZ');

-- typed: what the id is of, and the base62 form
SELECT snowflake_to_typed(2124085317031325697, 'order'), snowflake_from_typed('order_2WuKf9bWXGj', 'order'), snowflake_from_typed('order_item_00000000000', 'order_item');
SELECT count(*) FROM tried WHERE snowflake_from_typed(snowflake_to_typed(id, 'x'), 'x') <> id OR snowflake_to_typed(id, 'x') <> 'x_' || base62;
SELECT snowflake_from_typed('user_2WuKf9bWXGj', 'order');
SELECT snowflake_from_typed('2WuKf9bWXGj', 'order');
SELECT snowflake_from_typed('order_2WuKf9bWXG', 'order');
SELECT snowflake_from_typed('ORDER_2WuKf9bWXGj', 'order');
SELECT snowflake_from_typed('é_2WuKf9bWXGj', 'order');
SELECT snowflake_to_typed(1, 'Order');
SELECT snowflake_to_typed(1, '');
SELECT snowflake_to_typed(1, 'order_');
SELECT snowflake_to_typed(1, '2nd');
SELECT snowflake_to_typed(1, repeat('x', 64));
SELECT snowflake_from_typed('é_2WuKf9bWXGj', 'é');
SELECT snowflake_to_typed(-1, 'order');
SELECT snowflake_to_typed(1, NULL) IS NULL AND snowflake_from_typed('order_2WuKf9bWXGj', NULL) IS NULL AS strict;
-- errors repeat no more than the beginning of what is long, and cut no character in two
CREATE FUNCTION pg_temp.lengths(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text;
	detail text;
BEGIN
	EXECUTE statement;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
	RETURN format('%s (%s characters), %s (%s)', left(message, 60), length(message), left(detail, 60), length(detail) < 300);
END
$$;
SELECT pg_temp.lengths(format(call, quote_literal(repeat(c, 100000)))) FROM unnest(ARRAY[
	'SELECT snowflake_to_typed(1, %s)', $$SELECT snowflake_from_typed('order_2WuKf9bWXGj', %s)$$, $$SELECT snowflake_from_typed(%s, 'order')$$,
	'SELECT snowflake_from_base62(%s)', 'SELECT snowflake_from_base32(%s)', $$SELECT snowflake_field(1, %s, 'twitter')$$, 'SELECT snowflake_layout(%s)',
	'SELECT snowflake_decode(1, %s)', $$SELECT snowflake_internal.registry_admit(%s, 1, 1, NULL, false, 1, 1, repeat('5', 32), 1, 2, 1, 1, false)$$]) AS call, unnest(ARRAY['x', 'é']) AS c;

-- nothing for nothing
SELECT snowflake_to_base62(NULL) IS NULL AND snowflake_from_base62(NULL) IS NULL AND snowflake_to_base32(NULL) IS NULL AND snowflake_from_base32(NULL) IS NULL AS strict;

-- a time as a bound of text, and back; an id of the text lies in the time's partition
SELECT snowflake_time_encoder('2026-11-21 00:00Z'), snowflake_time_decoder(snowflake_time_encoder('2026-11-21 00:00Z')) = '2026-11-21 00:00Z' AS same,
	snowflake_time_decoder('2WuKf9bWXGj') = snowflake_timestamp(2124085317031325697) AS time,
	'2WuKf9bWXGj' COLLATE "C" BETWEEN snowflake_time_encoder('2026-11-21 00:00Z') AND snowflake_time_encoder('2026-11-22 00:00Z') AS within,
	snowflake_time_encoder('-infinity'), snowflake_time_encoder('infinity'), snowflake_time_encoder(NULL), snowflake_time_decoder(NULL);
SELECT snowflake_time_decoder('2WuKf9bWXG');
