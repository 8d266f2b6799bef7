-- A line for each number, in bytes or rows.
SELECT format('%s, %s', t, kind), bytes
FROM unnest(ARRAY['orders', 'items']) WITH ORDINALITY AS tables (t, i),
	LATERAL (VALUES ('table', pg_table_size(t::regclass)), ('indexes', pg_indexes_size(t::regclass))) AS sizes (kind, bytes)
ORDER BY i, kind DESC;
SELECT 'dead rows', sum(n_dead_tup) FROM pg_stat_user_tables WHERE relid IN ('orders'::regclass, 'items'::regclass);
SELECT 'database', pg_database_size(current_database());
