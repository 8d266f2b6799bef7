-- What is in the target, without its ids: how many orders and items, and sums of their hashes, an item's with its order's
-- note.  With "before" true, what must be there after a merge: the rows of both shops.
WITH all_orders AS MATERIALIZED (
	SELECT 'public' AS shop, o.id, customer, created_at, status, total, note FROM public.orders AS o
	UNION ALL
	SELECT 'source', o.id, customer, created_at, status, total, note FROM source.orders AS o WHERE :before),
all_items AS (
	SELECT 'public' AS shop, order_id, product, quantity, price, created_at FROM public.items
	UNION ALL
	SELECT 'source', order_id, product, quantity, price, created_at FROM source.items WHERE :before)
SELECT * FROM
	(SELECT count(*), sum(hash_record_extended(ROW(customer, created_at, status, total, note), 0)) FROM all_orders) AS o,
	(SELECT count(*), sum(hash_record_extended(ROW(o.note, i.product, i.quantity, i.price, i.created_at), 0))
	 FROM all_items AS i JOIN all_orders AS o ON o.shop = i.shop AND o.id = i.order_id) AS i;
