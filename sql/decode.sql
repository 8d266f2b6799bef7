-- Reading ids.
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- What others say of their ids: Twitter's post 1541815603606036480 was made at
-- 2022-06-28 16:07:40.105 UTC on machine 378 (Wikipedia, "Snowflake ID"), and
-- Discord's documentation takes 175928847299117063 apart as 2016-04-30
-- 11:18:25.796 UTC, worker 1, process 0, increment 7.
SELECT * FROM snowflake_decode(1541815603606036480, 'twitter');
SELECT * FROM snowflake_decode(175928847299117063, 'discord');
SELECT snowflake_timestamp(1541815603606036480, 'twitter'), snowflake_node(1541815603606036480, 'twitter'),
	snowflake_sequence(1541815603606036480, 'twitter');
SELECT snowflake_timestamp(175928847299117063, 'discord'), snowflake_field(175928847299117063, 'worker', 'discord'),
	snowflake_field(175928847299117063, 'process', 'discord'), snowflake_sequence(175928847299117063, 'discord');

-- the server's layout is twitter
SELECT * FROM snowflake_decode(1541815603606036480);
SELECT snowflake_timestamp(1541815603606036480), snowflake_node(1541815603606036480), snowflake_sequence(1541815603606036480);
SELECT snowflake_field(1541815603606036480, 'datacenter') AS datacenter, snowflake_field(1541815603606036480, 'worker') AS worker,
	snowflake_field(1541815603606036480, 'sequence') AS sequence, snowflake_field(1541815603606036480, 'timestamp') AS timestamp;

-- an id of this server's own
SELECT node, fields, sequence BETWEEN 0 AND 4095 AS sequence, ts BETWEEN statement_timestamp() - interval '1 ms' AND clock_timestamp() AS just_now
FROM snowflake_decode(snowflake_nextval());
SELECT d.node = snowflake_node(id) AND d.sequence = snowflake_sequence(id) AND d.ts = snowflake_timestamp(id)
	AND (d.fields->>'worker')::bigint = snowflake_field(id, 'worker') AND (d.fields->>'datacenter')::bigint = snowflake_field(id, 'datacenter')
	AND d.node = snowflake_field(id, 'datacenter') * 32 + snowflake_field(id, 'worker') AS agree
FROM snowflake_nextval() id, snowflake_decode(id) d;

-- the first and the last id of each preset
SELECT l.name, d.* FROM snowflake_layouts l, snowflake_decode(0, l.name) d;
SELECT l.name, d.* FROM snowflake_layouts l,
	snowflake_decode((2::numeric ^ (timestamp_bits + node_bits + sequence_bits) - 1)::bigint, l.name) d;

-- a time of the first and the last tick that timestamptz holds no more
SELECT snowflake_timestamp(0, 'timestamp:62 sequence:1 tick:86400s epoch:9999-12-31');
SELECT snowflake_timestamp(9223372036854775807, 'timestamp:62 sequence:1 tick:1us epoch:1970-01-01');
SELECT snowflake_timestamp(9223372036854775807, 'timestamp:62 sequence:1 tick:2us epoch:1970-01-01');
SELECT * FROM snowflake_decode(9223372036854775807, 'timestamp:62 sequence:1 tick:1s epoch:1970-01-01');
SELECT snowflake_node(9223372036854775807, 'timestamp:62 sequence:1 tick:1s epoch:1970-01-01'),
	snowflake_sequence(9223372036854775807, 'timestamp:62 sequence:1 tick:1s epoch:1970-01-01'),
	snowflake_field(9223372036854775807, 'timestamp', 'timestamp:62 sequence:1 tick:1s epoch:1970-01-01');

-- laid open for a person
SELECT * FROM snowflake_explain(1541815603606036480);
SELECT * FROM snowflake_explain(175928847299117063, 'discord');
SELECT * FROM snowflake_explain(129, 'sonyflake');
SELECT * FROM snowflake_explain(70000, 'mastodon');
SELECT * FROM snowflake_explain(9223372036854775807, 'timestamp:60 node:2 sequence:1 tick:1s epoch:2025-01-01');
SELECT field, sum(bits) FROM snowflake_nextval() id, snowflake_explain(id) GROUP BY ROLLUP (field) ORDER BY field;
SELECT (snowflake_explain(1)).field;

-- parts of the node number anywhere: it is their bits in the order given
SELECT * FROM snowflake_decode(b'011010011001'::int, 'high:2 timestamp:4 middle:1 sequence:3 low:2 epoch:0');
SELECT field, bits, value FROM snowflake_explain(b'011010011001'::int, 'high:2 timestamp:4 middle:1 sequence:3 low:2 epoch:0');
SELECT b'01' || b'0' || b'01' AS node;

-- a time is the same time in every zone
SET timezone = 'Asia/Kathmandu';
SELECT snowflake_timestamp(1541815603606036480) = '2022-06-28 16:07:40.105+00' AS same;
SELECT meaning FROM snowflake_explain(1541815603606036480) WHERE field = 'timestamp';
SET timezone = 'UTC';

-- in an index, where the layout is given
CREATE TABLE orders (id bigint PRIMARY KEY);
\set VERBOSITY sqlstate
CREATE INDEX ON orders ((snowflake_timestamp(id)));
\set VERBOSITY default
CREATE INDEX ON orders ((snowflake_timestamp(id, 'twitter')));
DROP TABLE orders;

-- ids that are none in the layout
SELECT snowflake_decode(-1);
SELECT snowflake_timestamp(-1);
SELECT snowflake_node(-9223372036854775808);
SELECT snowflake_sequence(-1, 'game');
SELECT snowflake_field(-1, 'worker');
SELECT * FROM snowflake_explain(-1);
SELECT snowflake_node(9007199254740991, 'js53');
SELECT snowflake_node(9007199254740992, 'js53');
SELECT * FROM snowflake_explain(9007199254740992, 'js53');

-- fields that are none in the layout
SELECT snowflake_field(1, 'node');
SELECT snowflake_field(1, '');
SELECT snowflake_field(1, 'Worker');
SELECT snowflake_field(1, 'worker ');
SELECT snowflake_field(1, 'größe', 'discord');
SELECT snowflake_field(1, 'node', 'mastodon');
SELECT snowflake_field(1, 'node', 'agrona');

-- nothing for nothing
SELECT snowflake_decode(NULL) IS NULL AND snowflake_decode(NULL, 'twitter') IS NULL AND snowflake_decode(1, NULL) IS NULL
	AND snowflake_timestamp(NULL) IS NULL AND snowflake_timestamp(1, NULL) IS NULL
	AND snowflake_node(NULL) IS NULL AND snowflake_sequence(NULL) IS NULL
	AND snowflake_field(NULL, 'worker') IS NULL AND snowflake_field(1, NULL) IS NULL AND snowflake_field(1, 'worker', NULL) IS NULL AS strict;
SELECT count(*) FROM snowflake_explain(NULL);
SELECT count(*) FROM snowflake_explain(1, NULL);
