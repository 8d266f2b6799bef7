\set player random(1, :players)
\set n random(1, 1000000)
BEGIN;
UPDATE players SET gold = gold + :n WHERE id = :player;
INSERT INTO scores (player, points) VALUES (:player, -:n);
INSERT INTO log VALUES ('play', :player, :n);
COMMIT;
