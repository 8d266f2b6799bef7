-- players, and three tables that refer to them; log has what the load does.
CREATE EXTENSION snowflake;
CREATE EXTENSION snowflake_migrate;
CREATE TABLE players (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, gold bigint NOT NULL DEFAULT 0);
INSERT INTO players (name) SELECT 'player ' || n FROM generate_series(1, :players) AS n;
CREATE TABLE scores (id serial PRIMARY KEY, player int NOT NULL REFERENCES players, points int NOT NULL);
INSERT INTO scores (player, points) SELECT 1 + n * 7919::bigint % :players, n FROM generate_series(1, :players / 4) AS n;
CREATE INDEX ON scores (player);
CREATE TABLE items (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, owner int REFERENCES players, kind int NOT NULL);
INSERT INTO items (owner, kind) SELECT 1 + n * 104729::bigint % :players, n % 100 FROM generate_series(1, :players / 4) AS n;
CREATE INDEX ON items (owner);
CREATE TABLE friends (player int REFERENCES players, friend int REFERENCES players, PRIMARY KEY (player, friend));
INSERT INTO friends SELECT n, n + 1 FROM generate_series(1, :players / 4) AS n;
CREATE TABLE log (what text NOT NULL, one bigint, other bigint);
VACUUM ANALYZE;
CHECKPOINT;
