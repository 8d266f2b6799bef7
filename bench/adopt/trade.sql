\set owner random(1, :players)
\set item random(1, :players / 4)
WITH i AS (UPDATE items SET owner = :owner WHERE id = :item AND owner <> :owner RETURNING id, owner)
INSERT INTO log SELECT 'trade', id, owner FROM i;
