-- Layouts: the presets, their overrides, and every way to be refused.
SET timezone = 'UTC';
SET datestyle = 'ISO';
SET intervalstyle = 'postgres';

-- the presets, each with its own properties
SELECT name, spec FROM snowflake_layouts;
SELECT name, timestamp_bits, node_bits, sequence_bits, tick, max_node, ids_per_second FROM snowflake_layouts;
SELECT name, epoch, ends_at FROM snowflake_layouts;
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = 'snowflake_layouts'::regclass AND attnum > 0 ORDER BY attnum;

-- a preset's name and its text are the same layout, and the text reads back
SELECT name FROM snowflake_layouts v
WHERE snowflake_layout(v.name) IS DISTINCT FROM snowflake_layout(v.spec) OR (snowflake_layout(v.spec)).spec <> v.spec
	OR snowflake_layout(v.name)::text <> v::text;

-- the server's own
SELECT name, spec FROM snowflake_layout();
SELECT snowflake_layout() = snowflake_layout('twitter') AS twitter;

-- a preset with another tick, another epoch; by another name of the same thing it is still the preset
SELECT l.* FROM (VALUES (1, 'twitter epoch:2024-01-01'), (2, 'twitter tick:10ms'), (3, 'leaf epoch:0 tick:1s'), (4, 'game tick:10ms'),
	(5, 'timestamp:41 worker:10 sequence:12 epoch:1288834974657')) v (n, layout), snowflake_layout(layout) l ORDER BY n;

-- what is written in several ways
SELECT n, spec, epoch FROM (VALUES
	(1, 'timestamp:41 sequence:12 epoch:2024-02-29'),
	(2, 'timestamp:41 sequence:12 epoch:2024-02-29T00:00:00Z'),
	(3, 'timestamp:41 sequence:12 epoch:2024-02-29T00:00:00.000Z'),
	(4, 'timestamp:41 sequence:12 epoch:1709164800000'),
	(5, 'epoch:2024-02-29 timestamp:41 tick:1000us sequence:12'),
	(6, 'tick:1ms timestamp:041 epoch:2024-02-29 sequence:12'),
	(7, 'timestamp:41 sequence:12 epoch:2024-02-29T23:59:59.999Z'),
	(8, 'timestamp:41 sequence:12 epoch:2024-02-29T23:59:59Z')) v (n, layout), snowflake_layout(layout) ORDER BY n;

-- the largest and the smallest of everything
SELECT n, l.* FROM (VALUES
	(1, 'timestamp:62 sequence:1 tick:86400s epoch:9999-12-31T23:59:59.999Z'),
	(2, 'timestamp:1 sequence:62 tick:1us epoch:1970-01-01'),
	(3, 'timestamp:1 sequence:1 epoch:253402300799999'),
	(4, 'timestamp:1 node:61 sequence:1 epoch:0'),
	(5, 'a:1 timestamp:30 _b2:3 sequence:4 a23456789012345678901234567890b:5 epoch:0')) v (n, layout), snowflake_layout(layout) l ORDER BY n;
SELECT spec = 'timestamp:1 sequence:1 ' || fields || ' tick:1ms epoch:1970-01-01' AS as_given, node_bits, max_node
FROM (SELECT string_agg('f' || n || ':1', ' ' ORDER BY n) AS fields FROM generate_series(1, 61) n) f,
	snowflake_layout('timestamp:1 sequence:1 ' || fields || ' epoch:0');

SELECT snowflake_layout(NULL) IS NULL AS strict;

-- one error in full: what, why, what to do
SELECT snowflake_layout('snowflake');

-- all of them
CREATE FUNCTION pg_temp.refusal(layout text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text;
	detail text;
BEGIN
	RETURN 'accepted as ' || (snowflake_layout(layout)).spec;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
	IF SQLSTATE <> '22023' OR message <> format('invalid snowflake layout "%s"', layout) THEN
		detail := format('%s: %s: %s', SQLSTATE, message, detail);
	END IF;
	RETURN detail;
END
$$;
\pset format unaligned
\pset fieldsep ' => '
\pset tuples_only on

-- no items, or wrongly separated
SELECT '"' || layout || '"', pg_temp.refusal(layout) FROM (VALUES
	(''), (' '), ('   '), ('twitter '), (' twitter'), ('twitter  epoch:0'), ('timestamp:41 sequence:12  epoch:0'),
	(E'twitter\tepoch:0'), (E'twitter\nepoch:0'), (E'twitter\n'), (E'\t'), ('twitter,epoch:0'), ('twitter;')) v (layout);

-- presets that are none, or followed by what cannot follow
SELECT layout, pg_temp.refusal(layout) FROM (VALUES
	('Twitter'), ('TWITTER'), ('twitterx'), ('twitte'), ('41'), ('timestamp'), ('twitter leaf'), ('epoch:0 twitter'), ('twitter sequence:3'),
	('twitter timestamp:41'), ('twitter node:1'), ('twitter epoch:0 epoch:0'), ('twitter tick:1ms tick:1ms'), ('twitter epoch'),
	('twitter "x"'), ('twitter:'), ('twitter:1')) v (layout);

-- fields that are missing, twice there, or have no good name
SELECT layout, pg_temp.refusal(layout) FROM (VALUES
	('timestamp:41'), ('sequence:12'), ('epoch:0'), ('tick:1ms'), ('timestamp:41 epoch:0'), ('sequence:12 epoch:0'), ('timestamp:41 sequence:12'),
	('node:10 epoch:0'), ('timestamp:41 timestamp:1 sequence:12 epoch:0'), ('timestamp:41 sequence:12 sequence:12 epoch:0'),
	('timestamp:41 node:5 node:5 sequence:12 epoch:0'), ('timestamp:41 ts:5 sequence:12 epoch:0'), ('timestamp:41 id:5 sequence:12 epoch:0'),
	('timestamp:41 Node:5 sequence:12 epoch:0'), ('timestamp:41 5node:5 sequence:12 epoch:0'), ('timestamp:41 a-b:5 sequence:12 epoch:0'),
	('timestamp:41 a.b:5 sequence:12 epoch:0'), ('timestamp:41 "a":5 sequence:12 epoch:0'), ('timestamp:41 :5 sequence:12 epoch:0'), (':'), ('::'),
	('timestamp:41 a23456789012345678901234567890bc:5 sequence:12 epoch:0'), ('timestamp=41 sequence=12'), ('timestamp:41:1 sequence:12 epoch:0')) v (layout);

-- widths
SELECT layout, pg_temp.refusal(layout) FROM (VALUES
	('timestamp:0 sequence:12 epoch:0'), ('timestamp:41 sequence:0 epoch:0'), ('timestamp:41 node:0 sequence:12 epoch:0'),
	('timestamp: sequence:12 epoch:0'), ('timestamp:-1 sequence:12 epoch:0'), ('timestamp:+1 sequence:12 epoch:0'), ('timestamp:x sequence:12 epoch:0'),
	('timestamp:4.1 sequence:12 epoch:0'), ('timestamp:0x1 sequence:12 epoch:0'), ('timestamp:1e1 sequence:12 epoch:0'),
	('timestamp:63 sequence:1 epoch:0'), ('timestamp:64 sequence:1 epoch:0'), ('timestamp:41 sequence:23 epoch:0'), ('timestamp:41 sequence:22 node:1 epoch:0'),
	('timestamp:256 sequence:1 epoch:0'), ('timestamp:4294967297 sequence:1 epoch:0'), ('timestamp:41 sequence:18446744073709551615 epoch:0'),
	('timestamp:41 sequence:18446744073709551616 epoch:0'), ('timestamp:37 server:20 sequence:16 epoch:2025-01-01')) v (layout);

-- ticks
SELECT tick, pg_temp.refusal('twitter tick:' || tick) FROM (VALUES
	(''), ('1'), ('ms'), ('s'), ('0ms'), ('0s'), ('00us'), ('-1ms'), ('+1ms'), ('1.5ms'), ('1 ms'), ('1m'), ('1min'), ('1h'), ('1ns'), ('1MS'), ('1Ms'), ('1sec'), ('1ms1'),
	('86401s'), ('86400001ms'), ('86400000001us'), ('18446744073709551617us'), ('99999999999999999999999ms')) v (tick);

-- epochs
SELECT epoch, pg_temp.refusal('twitter epoch:' || epoch) FROM (VALUES
	(''), ('now'), ('infinity'), ('-1'), ('+1'), ('1e3'), ('253402300800000'), ('18446744073709551617'), ('99999999999999999999999999999999999999999999999'),
	('1969-12-31'), ('1969-12-31T23:59:59.999Z'), ('0000-01-01'), ('10000-01-01'), ('2024-02-30'), ('2023-02-29'), ('2024-13-01'), ('2024-00-01'), ('2024-01-00'),
	('2024-1-1'), ('2024/01/01'), ('24-01-01'), ('2024-01-01T'), ('2024-01-01Z'), ('2024-01-01T00:00Z'), ('2024-01-01T00:00:00'), ('2024-01-01t00:00:00z'),
	('2024-01-01T00:00:00+00'), ('2024-01-01T00:00:00+01:00'), ('2024-01-01T24:00:00Z'), ('2024-01-01T00:60:00Z'), ('2024-01-01T00:00:60Z'),
	('2024-01-01T00:00:00.1Z'), ('2024-01-01T00:00:00.1234Z'), ('2024-01-01T00:00:00.123456Z'), ('2024-01-01T00:00:00,123Z'), ('2024-01-01T-1:00:00Z'),
	('2024-01-01 00:00:00'), (' 2024-01-01')) v (epoch);

-- what is not ASCII, and what is long, is repeated in the message, and cut short in the reason
SELECT layout, pg_temp.refusal(layout) FROM (VALUES
	('timestamp:41 größe:3 sequence:12 epoch:0'), ('雪片'), ('twitter epoch:２０２４'), (U&'twitter\00A0epoch:0'), (repeat('x', 50)), (repeat('é', 30) || ':3')) v (layout);
SELECT 'a million times twitter', pg_temp.refusal(rtrim(repeat('twitter ', 1000000)));
SELECT 'a field with a million letters', pg_temp.refusal(repeat('x', 1000000) || ':1');
SELECT 'a width with a million digits', pg_temp.refusal('timestamp:' || repeat('0', 1000000) || '64');
\pset format aligned
\pset tuples_only off

-- refused everywhere alike, also after the same call site had a good one
SELECT snowflake_timestamp(1, 'x');
SELECT snowflake_node(1, 'twitter sequence:1');
SELECT snowflake_min_id(now(), '');
SELECT layout, snowflake_node(4096, layout) FROM unnest(ARRAY['twitter', 'mastodon', 'twitter', 'nothing']) layout;
