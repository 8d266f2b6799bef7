-- Each line has how many rows were looked at, and how many are lost or wrong.
SELECT 'gold of players:', count(*), count(*) FILTER (WHERE p.gold IS DISTINCT FROM coalesce(l.gold, 0))
FROM players AS p
	FULL JOIN (SELECT one AS id, sum(other) AS gold FROM log WHERE what = 'play' GROUP BY one) AS l USING (id);
SELECT 'new scores:', (SELECT count(*) FROM scores WHERE points < 0), count(*)
FROM ((SELECT player, -points FROM scores WHERE points < 0 EXCEPT ALL SELECT one, other FROM log WHERE what = 'play')
	  UNION ALL
	  (SELECT one, other FROM log WHERE what = 'play' EXCEPT ALL SELECT player, -points FROM scores WHERE points < 0)) AS d;
SELECT 'new players, with a friend:', count(*), count(*) FILTER (WHERE l.one IS NULL OR p.id IS NULL OR f.player IS NULL)
FROM (SELECT id FROM players WHERE name = 'new') AS p
	FULL JOIN (SELECT * FROM log WHERE what = 'join') AS l ON l.one = p.id
	LEFT JOIN friends AS f ON f.player = l.one AND f.friend = l.other;
SELECT 'traded items:', count(DISTINCT i.id),
	count(*) FILTER (WHERE NOT EXISTS (SELECT FROM log AS l WHERE l.what = 'trade' AND l.one = i.id AND l.other = i.owner))
FROM items AS i WHERE i.id IN (SELECT one FROM log WHERE what = 'trade');
SELECT 'new ids of each table:', (SELECT count(*) FROM players WHERE id > 2147483647), (SELECT count(*) FROM scores WHERE id > 2147483647);
