-- snowflake_min_id() and snowflake_max_id(): which ids were born in a time.
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- around the borders of a tick
SELECT ts, snowflake_min_id(ts, layout) AS min_id, snowflake_max_id(ts, layout) AS max_id
FROM (VALUES ('timestamp:40 node:2 sequence:3 tick:1ms epoch:2025-01-01')) l (layout),
	(VALUES ('2025-01-01 00:00:00.999999'::timestamptz), ('2025-01-01 00:00:01'), ('2025-01-01 00:00:01.000001'),
		('2025-01-01 00:00:01.000999'), ('2025-01-01 00:00:01.001')) t (ts)
ORDER BY ts;
SELECT snowflake_decode(snowflake_min_id('2022-06-28 16:07:40.105')), snowflake_decode(snowflake_max_id('2022-06-28 16:07:40.105'));
SELECT snowflake_decode(snowflake_min_id('2022-06-28 16:07:40.105001')), snowflake_decode(snowflake_max_id('2022-06-28 16:07:40.105999'));

-- clamped: from before the epoch to past the end
SELECT ts, snowflake_min_id(ts) AS min_id, snowflake_max_id(ts) AS max_id
FROM (VALUES ('-infinity'::timestamptz), ('4714-11-24 00:00:00 BC'), ('1970-01-01'), ('2010-11-04 01:42:54.656'), ('2010-11-04 01:42:54.656999'),
	('2010-11-04 01:42:54.657'), ('2010-11-04 01:42:54.657001'), ('2010-11-04 01:42:54.657999'), ('2010-11-04 01:42:54.658'),
	('2080-07-10 17:30:30.207001'), ('2080-07-10 17:30:30.208'), ('2080-07-10 17:30:30.208001'), ('2080-07-10 17:30:30.208999'), ('2080-07-10 17:30:30.209'),
	('294276-12-31 23:59:59.999999'), ('infinity')) t (ts)
ORDER BY ts;
SELECT name, snowflake_min_id('-infinity', name), snowflake_max_id('-infinity', name), snowflake_min_id('infinity', name), snowflake_max_id('infinity', name)
FROM snowflake_layouts;
-- also where the layout lasts longer than timestamptz, or begins at its end
SELECT snowflake_min_id(ts, layout) AS min_id, snowflake_max_id(ts, layout) AS max_id
FROM (VALUES ('timestamp:62 sequence:1 tick:1s epoch:1970-01-01')) l (layout), (VALUES ('-infinity'::timestamptz), ('1970-01-01'), ('infinity')) t (ts)
ORDER BY ts;
SELECT snowflake_max_id('9999-12-31 23:59:59.998999', layout), snowflake_min_id('9999-12-31 23:59:59.999', layout), snowflake_max_id('9999-12-31 23:59:59.999', layout)
FROM (VALUES ('timestamp:41 sequence:12 epoch:9999-12-31T23:59:59.999Z')) l (layout);

-- inverse of snowflake_timestamp(), for random times, in layouts with odd ticks and fields in any order below the time
SELECT setseed(0.75);
CREATE TEMP TABLE tried AS
SELECT spec, epoch, tick, ends_at, max_node, sequence_bits, ts, snowflake_min_id(ts, spec) AS min_id, snowflake_max_id(ts, spec) AS max_id
FROM (SELECT name FROM snowflake_layouts
	UNION ALL VALUES ('timestamp:30 node:5 sequence:3 tick:333us epoch:2001-02-03T04:05:06.007Z'),
		('timestamp:20 a:1 sequence:7 b:4 tick:7s epoch:2024-02-29'), ('timestamp:12 sequence:1 tick:86400s epoch:1970-01-01')) l (layout),
	snowflake_layout(layout),
	LATERAL (SELECT epoch + (ends_at - tick - epoch) * random() AS ts FROM generate_series(1, 100)
		UNION ALL SELECT epoch + tick * trunc(random() * 1000) FROM generate_series(1, 100)) t;
SELECT count(DISTINCT spec), count(*) FROM tried;
-- ids from min_id up are born at or after the time, the one below it before
SELECT count(*) AS wrong FROM tried
WHERE snowflake_timestamp(min_id, spec) < ts OR min_id > 0 AND snowflake_timestamp(min_id - 1, spec) >= ts;
-- ids up to max_id are born at or before the time, the one above it after
SELECT count(*) AS wrong FROM tried WHERE snowflake_timestamp(max_id, spec) > ts OR snowflake_timestamp(max_id + 1, spec) <= ts;
-- a time between two ticks belongs to no id, a tick's own to all of the tick's
SELECT count(*) AS wrong FROM tried
WHERE max_id - min_id + 1 <> CASE WHEN snowflake_timestamp(max_id, spec) = ts THEN (max_node + 1) * 2::numeric ^ sequence_bits ELSE 0 END;
-- the id with the smallest parts, and the one with the largest
SELECT count(*) AS wrong FROM tried
WHERE snowflake_encode(snowflake_timestamp(min_id, spec), 0, 0, spec) <> min_id
	OR snowflake_encode(ts, max_node, (2 ^ sequence_bits - 1)::bigint, spec) <> max_id;

-- a range of time is a range of the primary key
CREATE TABLE orders (id bigint PRIMARY KEY, item int);
INSERT INTO orders SELECT snowflake_encode('2024-01-01'::timestamptz + n * interval '1 hour', n % 1024, n % 4096), n FROM generate_series(0, 9999) n;
ANALYZE orders;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET max_parallel_workers_per_gather = 0;
EXPLAIN (COSTS OFF) SELECT id FROM orders
WHERE id BETWEEN snowflake_min_id('2024-06-01', 'twitter') AND snowflake_max_id('2024-06-02', 'twitter');
EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE id BETWEEN snowflake_min_id('2024-06-01') AND snowflake_max_id('2024-06-02');
SELECT count(*), min(snowflake_timestamp(id)), max(snowflake_timestamp(id)) FROM orders
WHERE id BETWEEN snowflake_min_id('2024-06-01') AND snowflake_max_id('2024-06-02');
SELECT count(*) FROM orders WHERE id BETWEEN snowflake_min_id('-infinity') AND snowflake_max_id('infinity');
SELECT count(*) FROM orders WHERE id BETWEEN snowflake_min_id('1970-01-01') AND snowflake_max_id('2010-01-01');
SELECT count(*) FROM orders WHERE id BETWEEN snowflake_min_id('2090-01-01') AND snowflake_max_id('infinity');
-- the planner knows the bounds, and how much lies between them, in the server's layout too
RESET enable_seqscan;
EXPLAIN (COSTS OFF) SELECT item FROM orders WHERE id >= snowflake_min_id('2024-01-01');
EXPLAIN (COSTS OFF) SELECT item FROM orders WHERE id >= snowflake_min_id('2025-02-20 12:00');

-- page by page: the last id of a page is where the next begins
SELECT item, id FROM orders WHERE id >= snowflake_min_id('2024-03-01') ORDER BY id LIMIT 3;
SELECT item, id FROM orders WHERE id > 1763383654611559842 ORDER BY id LIMIT 3;
EXPLAIN (COSTS OFF) SELECT item, id FROM orders WHERE id > 1763383654611559842 ORDER BY id LIMIT 3;

-- partitions by time of a table whose key is the id alone
CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), item int) PARTITION BY RANGE (id);
CREATE TABLE events_before PARTITION OF events FOR VALUES FROM (MINVALUE) TO (snowflake_min_id('2024-01-01', 'twitter'));
CREATE TABLE events_2024_h1 PARTITION OF events
	FOR VALUES FROM (snowflake_min_id('2024-01-01', 'twitter')) TO (snowflake_min_id('2024-07-01', 'twitter'));
CREATE TABLE events_2024_h2 PARTITION OF events
	FOR VALUES FROM (snowflake_min_id('2024-07-01', 'twitter')) TO (snowflake_min_id('2025-01-01', 'twitter'));
CREATE TABLE events_after PARTITION OF events FOR VALUES FROM (snowflake_min_id('2025-01-01', 'twitter')) TO (MAXVALUE);
INSERT INTO events SELECT id, item FROM orders;
INSERT INTO events (item) VALUES (-1);
SELECT tableoid::regclass, count(*), min(snowflake_timestamp(id)) FROM events WHERE item >= 0 GROUP BY 1 ORDER BY 3;
SELECT tableoid::regclass FROM events WHERE item = -1;

-- pruned when it is planned, with a layout
EXPLAIN (COSTS OFF) SELECT * FROM events
WHERE id BETWEEN snowflake_min_id('2024-03-01', 'twitter') AND snowflake_max_id('2024-03-31', 'twitter');
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE id < snowflake_min_id('2024-07-01', 'twitter');
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE id <= snowflake_max_id('2024-07-01', 'twitter') AND item = 1;
-- pruned when it starts, with the server's
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE id BETWEEN snowflake_min_id('2024-03-01') AND snowflake_max_id('2024-03-31');
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE id < snowflake_min_id('2024-07-01');
-- pruned for the parameter of a prepared statement
PREPARE of_day (timestamptz) AS SELECT count(*) FROM events WHERE id >= snowflake_min_id($1) AND id < snowflake_min_id($1 + interval '1 day');
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE of_day ('2024-08-01');
EXECUTE of_day ('2024-08-01');
EXECUTE of_day ('2024-06-30 12:00');

DROP TABLE orders, events;

-- nothing for nothing
SELECT snowflake_min_id(NULL) IS NULL AND snowflake_max_id(NULL) IS NULL AND snowflake_min_id(NULL, 'twitter') IS NULL
	AND snowflake_max_id(now(), NULL) IS NULL AS strict;
SELECT snowflake_min_id('yesterday is over', 'twitter');
