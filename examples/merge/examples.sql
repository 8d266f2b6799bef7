-- What a reader can follow by name.  The psql variables: run is the merge's number, node the number that the source's rows got.
\echo Whose ids they are, and when players were born:
SELECT coalesce(node::text, 'serial') AS node, ids, first_time::date AS first, last_time::date AS last, remark
FROM snowflake_audit('players', 'id');

\echo Who was renamed, and is somebody else now than the player of that name:
SELECT r.old_value AS "was", p.name AS "is", p.class, p.level, p.gold,
	format('%s of level %s with %s gold', o.class, o.level, o.gold) AS "the other one"
FROM snowflake_migrate.records AS r
	JOIN players AS p ON p.id::text = r.new_key
	JOIN players AS o ON o.name = r.old_value
WHERE r.run = :run AND r.policy = 'suffix' AND r.relation::regclass = 'players'::regclass
ORDER BY r.old_value LIMIT 3;

\echo Guilds that were renamed, and their leaders, who are among their members:
SELECT g.name AS guild, l.name AS leader, count(*) AS members, bool_or(m.id = g.leader_id) AS "leader is one"
FROM snowflake_migrate.records AS r
	JOIN guilds AS g ON g.id::text = r.new_key
	JOIN players AS l ON l.id = g.leader_id
	JOIN players AS m ON m.guild_id = g.id
WHERE r.run = :run AND r.policy = 'suffix' AND r.relation::regclass = 'guilds'::regclass
GROUP BY g.name, l.name ORDER BY g.name LIMIT 3;

\echo One person, one account, the players of both servers:
SELECT a.email, count(*) AS players, string_agg(p.name, ', ' ORDER BY p.id) AS names
FROM accounts AS a JOIN players AS p ON p.account_id = a.id
WHERE EXISTS (SELECT FROM snowflake_migrate.map AS m
			  WHERE m.run = :run AND m.relation::regclass = 'accounts'::regclass AND m.action = 'kept_target' AND m.new_key = a.id::text)
GROUP BY a.id ORDER BY a.email LIMIT 3;

\echo Mail that came with its readers, by its sender:
SELECT m.sender_type, CASE m.sender_type WHEN 'player' THEN coalesce(s.name, 'left the game') ELSE 'number ' || m.sender_id END AS sender,
	r.name AS reader, m.subject, m.sent_at::date AS sent, t.code AS item
FROM (SELECT m.*, row_number() OVER (PARTITION BY m.sender_type, m.sender_id IS NULL, m.item_id IS NULL ORDER BY m.id) AS n FROM mail AS m
	  WHERE m.id > 2147483647 AND snowflake_node(m.id) = :node) AS m
	JOIN players AS r ON r.id = m.recipient_id
	LEFT JOIN players AS s ON m.sender_type = 'player' AND s.id = m.sender_id
	LEFT JOIN (items AS i JOIN item_templates AS t ON t.id = i.template_id) ON i.id = m.item_id
WHERE m.n = 1 ORDER BY 1, 2;

\echo The arena, numbered anew:
SELECT a.season, a.rank, p.name, a.rating, coalesce(m.source, 'avalon') AS "from"
FROM arena_ranks AS a JOIN players AS p ON p.id = a.player_id
	LEFT JOIN snowflake_migrate.map AS m ON m.run = :run AND m.relation::regclass = 'players'::regclass AND m.new_key = p.id::text
WHERE a.season = 2 AND a.rank <= 5 ORDER BY a.rank;
