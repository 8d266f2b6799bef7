\set friend random(1, :players)
WITH p AS (INSERT INTO players (name) VALUES ('new') RETURNING id),
	f AS (INSERT INTO friends SELECT id, :friend FROM p)
INSERT INTO log SELECT 'join', id, :friend FROM p;
