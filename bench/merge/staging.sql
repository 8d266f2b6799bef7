-- As in_place.sql, by somebody who keeps the source: the rows are copied to staging tables first, which are not logged and are
-- indexed only after their ids and references are updated, so that an UPDATE changes no index.
CREATE SCHEMA by_hand;

CREATE TABLE by_hand.orders_map AS
	SELECT id::bigint AS old_id, snowflake_nextval() AS new_id FROM (SELECT id FROM source.orders ORDER BY id) AS o;
CREATE TABLE by_hand.items_map AS
	SELECT id::bigint AS old_id, snowflake_nextval() AS new_id FROM (SELECT id FROM source.items ORDER BY id) AS i;
ALTER TABLE by_hand.orders_map ADD PRIMARY KEY (old_id);
ALTER TABLE by_hand.items_map ADD PRIMARY KEY (old_id);
ANALYZE by_hand.orders_map, by_hand.items_map;

CREATE UNLOGGED TABLE by_hand.orders AS
	SELECT id::bigint, customer, created_at, status, total, note FROM source.orders;
CREATE UNLOGGED TABLE by_hand.items AS
	SELECT id::bigint, order_id::bigint, product, quantity, price, created_at FROM source.items;
ANALYZE by_hand.orders, by_hand.items;

UPDATE by_hand.orders AS o SET id = m.new_id FROM by_hand.orders_map AS m WHERE m.old_id = o.id;
UPDATE by_hand.items AS i SET id = m.new_id, order_id = o.new_id
	FROM by_hand.items_map AS m, by_hand.orders_map AS o
	WHERE m.old_id = i.id AND o.old_id = i.order_id;
CREATE INDEX ON by_hand.orders (id);
CREATE INDEX ON by_hand.items (id);
ANALYZE by_hand.orders, by_hand.items;

SELECT set_config('by_hand.batch_size', :'batch_size', false) \g /dev/null
DO $$
DECLARE
	batch_size int := current_setting('by_hand.batch_size');
	position bigint;
	moved bigint;
	tab text;
BEGIN
	FOREACH tab IN ARRAY ARRAY['orders', 'items'] LOOP
		position := 0;
		LOOP
			EXECUTE format('WITH batch AS (
				INSERT INTO public.%1$I SELECT * FROM by_hand.%1$I WHERE id > $1 ORDER BY id LIMIT $2 RETURNING id)
				SELECT count(*), max(id) FROM batch', tab) INTO moved, position USING position, batch_size;
			EXIT WHEN moved = 0;
			COMMIT;
		END LOOP;
	END LOOP;
END
$$;

SELECT count(*) = (SELECT count(*) FROM source.orders) AND (SELECT count(*) FROM by_hand.items_map) = (SELECT count(*) FROM source.items)
FROM by_hand.orders_map \g /dev/null
DROP TABLE by_hand.orders, by_hand.items;
