-- What people write who merge a database by hand: it is restored into a schema of its own, its ids and references are updated there
-- through maps of old to new ids, with the indexes that it was restored with, and the rows are moved into the target, which
-- is in use, in batches.  The source is lost by that.
--
-- As in the other scripts, foreign keys of the target stay, maps are filled before they are indexed, an UPDATE changes a row's
-- id and its reference at once, and there are no checks but the counts.  The source's own foreign key goes first.
CREATE SCHEMA by_hand;

CREATE TABLE by_hand.orders_map AS
	SELECT id::bigint AS old_id, snowflake_nextval() AS new_id FROM (SELECT id FROM source.orders ORDER BY id) AS o;
CREATE TABLE by_hand.items_map AS
	SELECT id::bigint AS old_id, snowflake_nextval() AS new_id FROM (SELECT id FROM source.items ORDER BY id) AS i;
ALTER TABLE by_hand.orders_map ADD PRIMARY KEY (old_id);
ALTER TABLE by_hand.items_map ADD PRIMARY KEY (old_id);
ANALYZE by_hand.orders_map, by_hand.items_map;

ALTER TABLE source.items DROP CONSTRAINT items_order_id_fkey;
ALTER TABLE source.orders ALTER id TYPE bigint;
ALTER TABLE source.items ALTER id TYPE bigint, ALTER order_id TYPE bigint;
ANALYZE source.orders, source.items;

UPDATE source.orders AS o SET id = m.new_id FROM by_hand.orders_map AS m WHERE m.old_id = o.id;
UPDATE source.items AS i SET id = m.new_id, order_id = o.new_id
	FROM by_hand.items_map AS m, by_hand.orders_map AS o
	WHERE m.old_id = i.id AND o.old_id = i.order_id;
ANALYZE source.orders, source.items;

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
				INSERT INTO public.%1$I SELECT * FROM source.%1$I WHERE id > $1 ORDER BY id LIMIT $2 RETURNING id)
				SELECT count(*), max(id) FROM batch', tab) INTO moved, position USING position, batch_size;
			EXIT WHEN moved = 0;
			COMMIT;
		END LOOP;
	END LOOP;
END
$$;

SELECT count(*) = (SELECT count(*) FROM source.orders) AND (SELECT count(*) FROM by_hand.items_map) = (SELECT count(*) FROM source.items)
FROM by_hand.orders_map \g /dev/null
