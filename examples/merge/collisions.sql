-- What can't be put into one database as it is.
SELECT count(*), 'players with one id' AS collision, min(format('%s is %s and %s', a.id, a.name, b.name)) AS "for example"
FROM players AS a JOIN camelot.players AS b USING (id)
UNION ALL
SELECT count(*), 'items with one id', min(format('%s is %s and %s', a.id, c.code, d.code))
FROM items AS a JOIN camelot.items AS b USING (id)
	JOIN item_templates AS c ON c.id = a.template_id JOIN camelot.item_templates AS d ON d.id = b.template_id
UNION ALL
SELECT count(*), 'item templates with one id', min(format('%s is %s and %s', a.id, a.code, b.code))
FROM item_templates AS a JOIN camelot.item_templates AS b USING (id) WHERE a.code <> b.code
UNION ALL
SELECT count(*), 'players with one name', min(a.name) FROM players AS a JOIN camelot.players AS b USING (name)
UNION ALL
SELECT count(*), 'guilds with one name', min(a.name) FROM guilds AS a JOIN camelot.guilds AS b USING (name)
UNION ALL
SELECT count(*), 'persons with two accounts', min(a.email) FROM accounts AS a JOIN camelot.accounts AS b USING (email)
UNION ALL
SELECT count(*), 'ranks held twice', min(format('%s in season %s by %s and %s', rank, season, p.name, q.name))
FROM arena_ranks AS a JOIN camelot.arena_ranks AS b USING (season, rank)
	JOIN players AS p ON p.id = a.player_id JOIN camelot.players AS q ON q.id = b.player_id;
