-- The rows of one schema, their ids 1, 2, ...; the note names an order in all databases.  Three items for an order on average.
SET search_path = :schema, public;
-- The references are right: no need to look them up.
SET session_replication_role = replica;
INSERT INTO orders
SELECT i, abs(hashint4(i) % 100000), '2025-01-01 00:00Z'::timestamptz + i * interval '20 s' + abs(hashint4(-i) % 600) * interval '1 s',
	(ARRAY['new', 'paid', 'shipped', 'returned'])[1 + i % 4], 10 + i % 9000 / 100.0, format('order %s of %s', i, :'schema')
FROM generate_series(1, :orders) AS i;
INSERT INTO items
SELECT row_number() OVER (), o.id, abs(hashint8(o.id * 10 + n) % 10000), n, 1 + o.id % 900 / 100.0, o.created_at + n * interval '1 s'
FROM (SELECT * FROM orders ORDER BY id) AS o, generate_series(1, 1 + o.id % 5) AS n;
CREATE INDEX ON orders (customer);
CREATE INDEX ON orders (created_at);
CREATE INDEX ON items (order_id);
CREATE INDEX ON items (product);
SELECT setval(pg_get_serial_sequence(t, 'id'), (SELECT count(*) FROM items)) FROM unnest(ARRAY['orders', 'items']) AS t \g /dev/null
