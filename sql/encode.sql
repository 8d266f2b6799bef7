-- Building ids from their parts.
SET timezone = 'UTC';
SET datestyle = 'ISO';

SELECT snowflake_encode('2022-06-28 16:07:40.105', 378, 0), snowflake_encode('2022-06-28 16:07:40.105', 378, 0, 'twitter');
SELECT snowflake_encode('2016-04-30 11:18:25.796', 32, 7, 'discord');

-- within a tick the time is cut off
SELECT snowflake_encode('2022-06-28 16:07:40.105999', 378, 0), snowflake_encode('2022-06-28 16:07:40.106', 378, 0) - (1 << 22) AS tick_before;

-- the first and the last id of each preset
SELECT name, snowflake_encode(epoch, 0, 0, name) AS first,
	snowflake_encode(ends_at - interval '1 us', max_node, (2::numeric ^ sequence_bits)::bigint - 1, name) AS last FROM snowflake_layouts;

-- the inverse of decoding, for random parts in every preset and in stranger layouts
SELECT setseed(0.25);
CREATE TEMP TABLE tried AS
SELECT spec, id, d.*
FROM (SELECT spec, timestamp_bits + node_bits + sequence_bits AS total, trunc(random() * 2 ^ 31)::bigint << 32 | trunc(random() * 2 ^ 32)::bigint AS bits
	FROM (SELECT name FROM snowflake_layouts
		UNION ALL VALUES ('high:5 timestamp:30 middle:3 sequence:12 low:7 tick:3ms epoch:2001-02-03T04:05:06.007Z'),
			('sequence:4 timestamp:40 epoch:0'), ('timestamp:3 sequence:60 epoch:0'), ('timestamp:50 node:12 sequence:1 tick:7us epoch:2020-01-01')) l (layout),
		snowflake_layout(layout), generate_series(1, 100) OFFSET 0) v,
	LATERAL (SELECT bits >> (63 - total) AS id) i, snowflake_decode(id, spec) d;
SELECT count(DISTINCT spec), count(*), count(*) FILTER (WHERE snowflake_encode(ts, node, sequence, spec) <> id) AS wrong FROM tried;
-- and snowflake_explain() shows every bit of them
SELECT count(*) AS wrong FROM tried
WHERE id <> (SELECT sum(value * 2::numeric ^ below)
	FROM (SELECT value, sum(bits) OVER (ORDER BY n DESC) - bits AS below
		FROM snowflake_explain(id, spec) WITH ORDINALITY e (field, bits, value, meaning, n)) fields);

-- each part out of its range
SELECT snowflake_encode('2024-01-01', -1, 0);
SELECT snowflake_encode('2024-01-01', 1024, 0);
SELECT snowflake_encode('2024-01-01', 9223372036854775807, 0);
SELECT snowflake_encode('2024-01-01', 0, -1);
SELECT snowflake_encode('2024-01-01', 0, 4096);
SELECT snowflake_encode('2024-01-01', 0, -9223372036854775808);
SELECT snowflake_encode('2024-01-01', 1, 0, 'mastodon');
SELECT snowflake_encode('2025-01-01', 1048576, 0, 'game');
SELECT snowflake_encode('2025-01-01', 0, 32, 'game');

-- times before the epoch and past the end
SELECT snowflake_encode('2010-11-04 01:42:54.657', 0, 0);
SELECT snowflake_encode('2010-11-04 01:42:54.656999', 0, 0);
SELECT snowflake_encode('2080-07-10 17:30:30.208999', 1023, 4095);
SELECT snowflake_encode('2080-07-10 17:30:30.209', 0, 0);
SELECT snowflake_encode('-infinity', 0, 0);
SELECT snowflake_encode('infinity', 0, 0);
SELECT snowflake_encode('4714-11-24 00:00:00 BC', 0, 0);
SELECT snowflake_encode('294276-12-31 23:59:59.999999', 0, 0);
SELECT snowflake_encode('2024-11-20 13:24:16', 0, 0, 'baidu');
SELECT snowflake_encode('294276-12-31', 0, 0, 'timestamp:62 sequence:1 tick:1s epoch:1970-01-01');

-- a layout that has ended, or not begun, still encodes
SELECT snowflake_encode('2024-11-20 13:24:15.999', 1, 1, 'baidu');
SELECT snowflake_encode('9000-01-01 00:00:01', 1, 1, 'agrona epoch:9000-01-01');

-- nothing for nothing
SELECT snowflake_encode(NULL, 0, 0) IS NULL AND snowflake_encode('2024-01-01', NULL, 0) IS NULL AND snowflake_encode('2024-01-01', 0, NULL) IS NULL
	AND snowflake_encode('2024-01-01', 0, 0, NULL) IS NULL AND snowflake_encode('2024-01-01', -1, 0, NULL) IS NULL AS strict;
\set VERBOSITY sqlstate
SELECT snowflake_encode('2024-01-01');
\set VERBOSITY default
