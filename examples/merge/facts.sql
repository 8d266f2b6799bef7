-- All that is known on a server, a line each, in names alone: what has to be the same whatever becomes of the ids.  Before the
-- merge the psql variable server is the server's name.  After it, run is the merge's number: whoever came by it is called what
-- the source called them, and the name of the source stands before the others.
SET timezone = 'UTC';
\if :{?run}
CREATE TEMP VIEW came AS
	SELECT m.source, m.relation::regclass AS relation, m.new_key, r.old_value
	FROM snowflake_migrate.map AS m
		LEFT JOIN snowflake_migrate.records AS r ON r.run = m.run AND r.source = m.source AND r.relation = m.relation AND r.new_key = m.new_key
			AND r.policy = 'suffix'
	WHERE m.run = :run AND m.action = 'copied';
CREATE TEMP VIEW player AS
	SELECT p.id, concat(coalesce(c.source, 'avalon'), '/', coalesce(c.old_value, p.name)) AS name
	FROM players AS p LEFT JOIN came AS c ON c.relation = 'players'::regclass AND c.new_key = p.id::text;
CREATE TEMP VIEW guild AS
	SELECT g.id, concat(coalesce(c.source, 'avalon'), '/', coalesce(c.old_value, g.name)) AS name
	FROM guilds AS g LEFT JOIN came AS c ON c.relation = 'guilds'::regclass AND c.new_key = g.id::text;
\else
CREATE TEMP VIEW player AS SELECT id, concat(:'server', '/', name) AS name FROM players;
CREATE TEMP VIEW guild AS SELECT id, concat(:'server', '/', name) AS name FROM guilds;
\endif
CREATE TEMP VIEW item AS
	SELECT i.id, i.owner_id, concat_ws(' ', i.quantity, t.code, 'of', i.created_at) AS what
	FROM items AS i JOIN item_templates AS t ON t.id = i.template_id;

SELECT concat_ws(' ', n.name, 'of', a.email, 'is a', p.class, 'of level', p.level, 'with', p.gold, 'gold, born', p.created_at,
	'in', coalesce(g.name, 'no guild'))
FROM players AS p JOIN player AS n USING (id) JOIN accounts AS a ON a.id = p.account_id LEFT JOIN guild AS g ON g.id = p.guild_id;

SELECT concat_ws(' ', n.name, 'was founded', g.founded_at, 'and is led by', l.name)
FROM guilds AS g JOIN guild AS n USING (id) JOIN player AS l ON l.id = g.leader_id;

SELECT concat_ws(' ', n.name, 'owns', i.what) FROM item AS i JOIN player AS n ON n.id = i.owner_id;

SELECT concat_ws(' ', n.name, 'got a mail at', m.sent_at, 'from',
	CASE m.sender_type WHEN 'player' THEN coalesce(s.name, 'a player who left') ELSE 'the system, ' || m.sender_id END,
	m.subject, CASE WHEN i.id IS NOT NULL THEN concat('(', i.what, ', of ', o.name, ')') END)
FROM mail AS m JOIN player AS n ON n.id = m.recipient_id
	LEFT JOIN player AS s ON m.sender_type = 'player' AND s.id = m.sender_id
	LEFT JOIN (item AS i JOIN player AS o ON o.id = i.owner_id) ON i.id = m.item_id;

SELECT concat_ws(' ', least(a.name COLLATE "C", b.name), 'and', greatest(a.name COLLATE "C", b.name), 'are friends since', f.since)
FROM friendships AS f JOIN player AS a ON a.id = f.lo JOIN player AS b ON b.id = f.hi;

SELECT concat_ws(' ', n.name, 'is rated', r.rating, 'in the season that began', s.starts_on)
FROM arena_ranks AS r JOIN seasons AS s USING (season) JOIN player AS n ON n.id = r.player_id;

SELECT concat_ws(' ', coalesce(n.name, 'somebody'), 'said at', c.sent_at, 'to', coalesce(g.name, 'all') || ':', c.message)
FROM chat_log AS c LEFT JOIN player AS n ON n.id = c.player_id LEFT JOIN guild AS g ON g.id = c.guild_id;

SELECT concat_ws(' ', n.name, 'has the volume at', s.settings -> 'volume', 'and', d.place, coalesce(i.what, 'nothing'))
FROM settings AS s JOIN player AS n ON n.id = s.player_id
	CROSS JOIN LATERAL (
		SELECT concat('in slot ', h.slot), h.id FROM jsonb_array_elements_text(s.settings -> 'hotbar') WITH ORDINALITY AS h (id, slot)
		UNION ALL
		SELECT concat('as ', e.key), e.value FROM jsonb_each_text(s.settings -> 'equipped') AS e
		UNION ALL
		SELECT concat('marked ', l.value), l.key FROM jsonb_each_text(s.settings -> 'labels') AS l
	) AS d (place, id)
	LEFT JOIN item AS i ON i.id = d.id::bigint AND i.owner_id = s.player_id;
