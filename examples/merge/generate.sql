-- Fills a game server, up to 2025-03-31.  The psql variables: server is its name, seed a number, players how many come,
-- opened the day on which the server opened.  The same seed gives the same server.

SET timezone = 'UTC';
BEGIN;

-- A die with that many sides, from 0 up: the same for the same seed, what it is thrown for, and n.
CREATE FUNCTION pg_temp.die(seed int, what text, n bigint, sides bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT ('x' || left(md5(seed || '/' || what || '/' || n), 15))::bit(60)::bigint % sides $$;

-- No two names are equal on a server, and some are on two servers: n goes through all combinations of three syllables,
-- in an order that the seed gives (30 * any + 7 and 30^3 have no common divisor).
CREATE FUNCTION pg_temp.syllables(i bigint) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
	SELECT split_part('Al Ar Be Bran Ca Cor Da Dra El Er Fa Fin Ga Gor Ha Il Ka Kor La Lo Ma Mor Na Or Ra Sa Tha Ul Va Za',
					  ' ', 1 + (i % 30)::int)
		|| split_part('ba bri ca da dri el fa ga gri in ka la len li lo ma mi na nor ra ri ro sa sha tan the ti va wy za',
					  ' ', 1 + (i / 30 % 30)::int)
		|| split_part('bar dan das del dor dra fel gar grim hild las leth lin mar mir mon nar nia nor rac ras rin ros sil stan thas thor '
					  'var wen wyn', ' ', 1 + (i / 900 % 30)::int)
$$;
CREATE FUNCTION pg_temp.name(seed int, what text, n bigint) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
	SELECT pg_temp.syllables(
			((30 * pg_temp.die(seed, what || ' step', 0, 900) + 7) * n + pg_temp.die(seed, what || ' first', 0, 27000)) % 27000)
		|| coalesce(nullif(n / 27000, 0)::text, '')
$$;
CREATE FUNCTION pg_temp.two_words(i bigint) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
	SELECT split_part('Black Blue Broken Crimson Dark Eternal Fallen Golden Hidden Iron Last Lost Mad Noble Old Red Royal Silent '
					  'Silver Wild', ' ', 1 + (i % 20)::int)
		|| ' ' || split_part('Arrows Blades Crows Dawn Dragons Eagles Flames Foxes Guards Hands Knights Lions Moons Ravens Roses '
							 'Shields Stars Storms Towers Wolves', ' ', 1 + (i / 20)::int)
$$;
CREATE FUNCTION pg_temp.guild_name(seed int, n bigint) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
	SELECT pg_temp.two_words(((10 * pg_temp.die(seed, 'guild step', 0, 40) + 7) * n + pg_temp.die(seed, 'guild first', 0, 400)) % 400)
		|| coalesce(' ' || nullif(n / 400, 0), '')
$$;

INSERT INTO server_settings VALUES ('name', :'server'), ('opened', :'opened'), ('motd', 'Welcome to ' || :'server' || '!');
INSERT INTO seasons VALUES (1, '2025-01-01'), (2, '2025-03-01');

-- What all servers have, in another order on each, and an event's own items.  A wrong name was put right on later servers.
INSERT INTO item_templates (code, name, power)
	SELECT code,
		CASE WHEN code = 'bow_long' AND :seed % 2 = 0 THEN 'Longe Bow'
			ELSE initcap(split_part(code, '_', 2) || ' ' || split_part(code, '_', 1)) END,
		10 * power
	FROM string_to_table('sword_short sword_long sword_great axe_battle axe_hand bow_short bow_long staff_oak staff_ash wand_bone wand_ivory '
						 'shield_round shield_tower helm_iron helm_leather boots_iron boots_leather ring_silver ring_gold amulet_jade '
						 'potion_healing potion_mana scroll_portal scroll_fire horse_brown horse_white arrow_iron arrow_fire', ' ')
		WITH ORDINALITY AS t (code, power)
	ORDER BY pg_temp.die(:seed, 'template', power, 1000000), power;
INSERT INTO item_templates (code, name, power) VALUES ('crown_' || :'server', 'Crown of ' || initcap(:'server'), 500);

-- How much there is of all else.
SELECT :players * 4 / 5 AS accounts, :players / 25 AS guilds, :players * 5 AS items, :players * 2 AS mails, :players * 8 AS messages
\gset

-- When a part of the time since the opening had passed; and one of the players that were there then.
CREATE FUNCTION pg_temp.moment(opened timestamptz, part double precision) RETURNS timestamptz
LANGUAGE sql STABLE AS $$ SELECT date_trunc('second', opened + part * (timestamptz '2025-03-31' - opened)) $$;
CREATE FUNCTION pg_temp.player(seed int, what text, n bigint, players bigint, part double precision) RETURNS int
LANGUAGE sql IMMUTABLE AS $$ SELECT (1 + pg_temp.die(seed, what, n, greatest(1, floor(players * part)::bigint)))::int $$;

INSERT INTO accounts (email, created_at)
	SELECT lower(pg_temp.name(:seed, 'email', n)) || '@example.org', pg_temp.moment(:'opened', 0.9 * n / :players)
	FROM generate_series(1, :accounts) AS n ORDER BY n;

-- The first player of each account, then more for some of them.
INSERT INTO players (account_id, name, class, level, gold, created_at)
	SELECT CASE WHEN n <= :accounts THEN n ELSE 1 + pg_temp.die(:seed, 'account', n, :accounts) END,
		pg_temp.name(:seed, 'player', n),
		(enum_range(NULL::player_class))[1 + pg_temp.die(:seed, 'class', n, 4)],
		1 + pg_temp.die(:seed, 'level', n, 99),
		pg_temp.die(:seed, 'gold', n, power(10, pg_temp.die(:seed, 'rich', n, 7))::bigint),
		pg_temp.moment(:'opened', 0.9 * n / :players) + interval '1 minute'
	FROM generate_series(1, :players) AS n ORDER BY n;

-- Every twentieth player founded a guild, until there were enough.
INSERT INTO guilds (name, leader_id, founded_at)
	SELECT pg_temp.guild_name(:seed, n), n * 20, pg_temp.moment(:'opened', 0.9 * n * 20 / :players) + interval '1 hour'
	FROM generate_series(1, :guilds) AS n ORDER BY n;
UPDATE players SET guild_id = coalesce((SELECT g.id FROM guilds AS g WHERE g.leader_id = players.id),
									   1 + pg_temp.die(:seed, 'guild', id, :guilds))
	WHERE id % 20 = 0 OR pg_temp.die(:seed, 'member', id, 3) > 0;

INSERT INTO items (owner_id, template_id, quantity, created_at)
	SELECT pg_temp.player(:seed, 'owner', n, :players, n::float / :items), t.id,
		CASE WHEN t.code ~ '^(potion|scroll|arrow)' THEN 1 + pg_temp.die(:seed, 'quantity', n, 20) ELSE 1 END,
		pg_temp.moment(:'opened', n::float / :items)
	FROM generate_series(1, :items) AS n
		JOIN item_templates AS t ON t.id = 1 + pg_temp.die(:seed, 'template of', n, (SELECT count(*) FROM item_templates))
	ORDER BY n;

INSERT INTO mail (recipient_id, sender_type, sender_id, subject, item_id, sent_at)
	SELECT m.recipient, CASE WHEN m.kind > 3 THEN 'player' ELSE 'system' END,
		CASE WHEN m.kind > 3 THEN pg_temp.player(:seed, 'sender', m.n, :players, m.part) ELSE m.kind END,
		CASE m.kind WHEN 1 THEN 'Your auction has ended' WHEN 2 THEN 'A new season begins' WHEN 3 THEN 'Thank you for your report'
			WHEN 4 THEN 'Join us?' WHEN 5 THEN 'See you tonight' ELSE 'For you' END,
		CASE WHEN m.kind IN (1, 6) THEN i.first END,
		pg_temp.moment(:'opened', m.part)
	FROM (SELECT n, n::float / :mails AS part, 1 + pg_temp.die(:seed, 'mail', n, 6) AS kind,
			pg_temp.player(:seed, 'recipient', n, :players, n::float / :mails) AS recipient
		  FROM generate_series(1, :mails) AS n) AS m
		LEFT JOIN (SELECT owner_id, min(id) AS first FROM items GROUP BY owner_id) AS i ON i.owner_id = m.recipient
	ORDER BY m.n;

INSERT INTO friendships (lo, hi, since)
	SELECT DISTINCT ON (least(a, b), greatest(a, b)) least(a, b), greatest(a, b), date '2025-03-31' - pg_temp.die(:seed, 'since', n, 30)::int
	FROM (SELECT n, pg_temp.player(:seed, 'friend', n, :players, 1) AS a, pg_temp.player(:seed, 'other', n, :players, 1) AS b
		  FROM generate_series(1, :players * 2) AS n) AS f
	WHERE a <> b
	ORDER BY least(a, b), greatest(a, b), n;

INSERT INTO chat_log (sent_at, player_id, guild_id, message)
	SELECT c.sent_at, p.id, CASE WHEN pg_temp.die(:seed, 'channel', c.n, 2) = 0 THEN p.guild_id END,
		split_part('Hello!/Who comes to the tower?/Selling a horse/gg/Any potions?/Good night', '/', 1 + pg_temp.die(:seed, 'says', c.n, 6)::int)
			|| ' (' || c.n || ')'
	FROM (SELECT n, date_trunc('second', timestamptz '2025-01-01' + n * (interval '89 days' / :messages)) AS sent_at
		  FROM generate_series(1, :messages) AS n) AS c
		JOIN players AS p ON p.id = pg_temp.player(:seed, 'chat', c.n, :players,
			extract(epoch FROM c.sent_at - timestamptz :'opened') / extract(epoch FROM timestamptz '2025-03-31' - timestamptz :'opened'))
	ORDER BY c.n;

-- The newest items are in the hotbar, the strongest weapon is worn, the oldest one is for sale.
INSERT INTO settings (player_id, settings)
	SELECT p.id, jsonb_build_object('volume', pg_temp.die(:seed, 'volume', p.id, 101), 'hotbar', i.hotbar,
		'equipped', jsonb_build_object('weapon', i.weapon), 'labels', jsonb_build_object(i.oldest, 'for sale'))
	FROM players AS p
		JOIN (SELECT i.owner_id, to_jsonb((array_agg(i.id ORDER BY i.id DESC))[1:3]) || 'null' AS hotbar,
				(array_agg(i.id ORDER BY t.power DESC, i.id) FILTER (WHERE t.code ~ '^(sword|axe|bow|staff|wand)'))[1] AS weapon,
				min(i.id) AS oldest
			  FROM items AS i JOIN item_templates AS t ON t.id = i.template_id
			  GROUP BY i.owner_id) AS i ON i.owner_id = p.id
	ORDER BY p.id;

-- Some players left, and some items were used up: what held on to them by a foreign key went with them, a mail's sender and
-- an item in a hotbar stayed.
DELETE FROM players WHERE id NOT IN (SELECT leader_id FROM guilds) AND pg_temp.die(:seed, 'left', id, 50) = 0;
DELETE FROM items USING settings AS s
	WHERE s.player_id = items.owner_id AND pg_temp.die(:seed, 'used up', items.id, 20) = 0
		AND items.id IS DISTINCT FROM (s.settings #>> '{equipped,weapon}')::int AND NOT s.settings -> 'labels' ? items.id::text;

INSERT INTO arena_ranks (season, player_id, rating, rank)
	SELECT season, player_id, rating, row_number() OVER (PARTITION BY season ORDER BY rating DESC, player_id)
	FROM (SELECT s.season, p.id AS player_id, 1000 + pg_temp.die(:seed, 'rating ' || s.season, p.id, 1500) AS rating
		  FROM seasons AS s, players AS p WHERE p.level >= 60) AS r
	ORDER BY season, rating DESC, player_id;

COMMIT;
ANALYZE;
