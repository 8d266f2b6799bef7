-- The database of one game server.  Every server began with serial keys that start at 1.

CREATE TYPE player_class AS ENUM ('warrior', 'ranger', 'mage', 'priest');

CREATE TABLE server_settings (
	name text PRIMARY KEY,
	value text NOT NULL
);

CREATE TABLE seasons (
	season int PRIMARY KEY,
	starts_on date NOT NULL
);

CREATE TABLE accounts (
	id serial PRIMARY KEY,
	email text NOT NULL UNIQUE,
	created_at timestamptz NOT NULL DEFAULT now()
);

-- A guild has a leader, who is one of its members: each of the two tables references the other.
CREATE TABLE guilds (
	id serial PRIMARY KEY,
	name varchar(24) NOT NULL UNIQUE,
	leader_id int NOT NULL,
	founded_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE players (
	id serial PRIMARY KEY,
	account_id int NOT NULL REFERENCES accounts,
	guild_id int REFERENCES guilds,
	name varchar(16) NOT NULL UNIQUE,
	class player_class NOT NULL,
	level int NOT NULL DEFAULT 1 CHECK (level BETWEEN 1 AND 99),
	gold bigint NOT NULL DEFAULT 0 CHECK (gold >= 0),
	created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON players (account_id);
CREATE INDEX ON players (guild_id);
ALTER TABLE guilds ADD FOREIGN KEY (leader_id) REFERENCES players DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX ON guilds (leader_id);

-- What there is to own.  The game knows a template by its code; its id is another one on each server.
CREATE TABLE item_templates (
	id serial PRIMARY KEY,
	code text NOT NULL UNIQUE,
	name text NOT NULL,
	power int NOT NULL
);
CREATE TABLE items (
	id serial PRIMARY KEY,
	owner_id int NOT NULL REFERENCES players ON DELETE CASCADE,
	template_id int NOT NULL REFERENCES item_templates,
	quantity int NOT NULL DEFAULT 1 CHECK (quantity > 0),
	created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON items (owner_id);
CREATE INDEX ON items (template_id);

-- sender_id is a player's id, or a number that stands in the game's program: 1 is the auction house, 2 the arena,
-- 3 the game master.  No foreign key can say that, so that a mail outlives its sender.
CREATE TABLE mail (
	id serial PRIMARY KEY,
	recipient_id int NOT NULL REFERENCES players ON DELETE CASCADE,
	sender_type text NOT NULL CHECK (sender_type IN ('player', 'system')),
	sender_id int,
	subject text NOT NULL,
	item_id int REFERENCES items ON DELETE SET NULL,
	sent_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON mail (recipient_id);
CREATE INDEX ON mail (item_id);

-- A friendship has no direction: the smaller id comes first.
CREATE TABLE friendships (
	lo int NOT NULL REFERENCES players ON DELETE CASCADE,
	hi int NOT NULL REFERENCES players ON DELETE CASCADE,
	since date NOT NULL,
	PRIMARY KEY (lo, hi),
	CHECK (lo < hi)
);
CREATE INDEX ON friendships (hi);

CREATE TABLE arena_ranks (
	season int NOT NULL REFERENCES seasons,
	player_id int NOT NULL REFERENCES players ON DELETE CASCADE,
	rating int NOT NULL,
	rank int NOT NULL,
	PRIMARY KEY (season, player_id),
	UNIQUE (season, rank)
);
CREATE INDEX ON arena_ranks (player_id);

CREATE TABLE chat_log (
	id bigserial,
	sent_at timestamptz NOT NULL DEFAULT now(),
	player_id int REFERENCES players ON DELETE SET NULL,
	guild_id int REFERENCES guilds ON DELETE CASCADE,
	message text NOT NULL,
	PRIMARY KEY (id, sent_at)
) PARTITION BY RANGE (sent_at);
CREATE INDEX ON chat_log (player_id);
CREATE INDEX ON chat_log (guild_id);
CREATE TABLE chat_log_2025_01 PARTITION OF chat_log FOR VALUES FROM ('2025-01-01') TO ('2025-02-01');
CREATE TABLE chat_log_2025_02 PARTITION OF chat_log FOR VALUES FROM ('2025-02-01') TO ('2025-03-01');
CREATE TABLE chat_log_2025_03 PARTITION OF chat_log FOR VALUES FROM ('2025-03-01') TO ('2025-04-01');

-- What the client remembers of a player.  It names items by their ids: {"hotbar": [17, null, 23], "equipped": {"weapon": 23},
-- "labels": {"17": "for sale"}, "volume": 70}
CREATE TABLE settings (
	player_id int PRIMARY KEY REFERENCES players ON DELETE CASCADE,
	settings jsonb NOT NULL
);
