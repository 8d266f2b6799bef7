-- As in_place.sql, by somebody who needs no updates: the rows are joined with the maps on their way.
CREATE SCHEMA by_hand;

CREATE TABLE by_hand.orders_map AS
	SELECT id::bigint AS old_id, snowflake_nextval() AS new_id FROM (SELECT id FROM source.orders ORDER BY id) AS o;
CREATE TABLE by_hand.items_map AS
	SELECT id::bigint AS old_id, snowflake_nextval() AS new_id FROM (SELECT id FROM source.items ORDER BY id) AS i;
ALTER TABLE by_hand.orders_map ADD PRIMARY KEY (old_id);
ALTER TABLE by_hand.items_map ADD PRIMARY KEY (old_id);
ANALYZE by_hand.orders_map, by_hand.items_map;

SELECT set_config('by_hand.batch_size', :'batch_size', false) \g /dev/null
DO $$
DECLARE
	batch_size int := current_setting('by_hand.batch_size');
	position int;
BEGIN
	-- EXECUTE, so that each range is planned as what it is.
	FOR position IN 1 .. (SELECT max(id) FROM source.orders) BY batch_size LOOP
		EXECUTE 'INSERT INTO public.orders
			SELECT m.new_id, s.customer, s.created_at, s.status, s.total, s.note
			FROM source.orders AS s JOIN by_hand.orders_map AS m ON m.old_id = s.id
			WHERE s.id BETWEEN $1 AND $2 AND m.old_id BETWEEN $1 AND $2'
			USING position, position + batch_size - 1;
		COMMIT;
	END LOOP;
	FOR position IN 1 .. (SELECT max(id) FROM source.items) BY batch_size LOOP
		EXECUTE 'INSERT INTO public.items
			SELECT m.new_id, o.new_id, s.product, s.quantity, s.price, s.created_at
			FROM source.items AS s JOIN by_hand.items_map AS m ON m.old_id = s.id JOIN by_hand.orders_map AS o ON o.old_id = s.order_id
			WHERE s.id BETWEEN $1 AND $2 AND m.old_id BETWEEN $1 AND $2'
			USING position, position + batch_size - 1;
		COMMIT;
	END LOOP;
END
$$;
