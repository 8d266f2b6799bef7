-- Rows of a day, evenly: an hour of them by the id, and by an index on the time.
DROP TABLE IF EXISTS day;
CREATE TABLE day (id bigint PRIMARY KEY, created_at timestamptz NOT NULL, item int NOT NULL);
INSERT INTO day
	SELECT snowflake_encode(t.at, 1, g % 4096), t.at, g
	FROM generate_series(0, :rows - 1) AS g,
		LATERAL (SELECT '2026-01-01 00:00:00+00'::timestamptz + g * interval '1 day' / :rows) AS t (at);
CREATE INDEX day_created_at ON day (created_at);
VACUUM (FREEZE, ANALYZE) day;

CREATE OR REPLACE FUNCTION plan_of(query text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ' || query INTO plan;
	RETURN plan -> 0;
END
$$;
-- by,hour,rows,ms,buffers,index_bytes
\pset format unaligned
\pset tuples_only
\pset fieldsep ,
SELECT q.by, h.hour, p.plan #>> '{Plan,Plans,-1,Actual Rows}', p.plan #>> '{Execution Time}',
	(p.plan #>> '{Plan,Shared Hit Blocks}')::bigint + (p.plan #>> '{Plan,Shared Read Blocks}')::bigint,
	pg_relation_size(q.index)
FROM generate_series(0, 22) AS h (hour),
	LATERAL (SELECT '2026-01-01 00:00:00+00'::timestamptz + h.hour * interval '1 hour') AS t (at),
	LATERAL (VALUES
		('id', 'day_pkey', format('SELECT sum(item) FROM day WHERE id >= (SELECT snowflake_min_id(%L)) AND id < (SELECT snowflake_min_id(%L))',
								  t.at, t.at + interval '1 hour')),
		('created_at', 'day_created_at', format('SELECT sum(item) FROM day WHERE created_at >= %L AND created_at < %L',
												t.at, t.at + interval '1 hour'))) AS q (by, index, query),
	LATERAL (SELECT plan_of(q.query)) AS p (plan)
ORDER BY h.hour, q.by;
