-- psql -v run=N -v avalon_players=N -v avalon_gold=N -f totals.sql: the merge, and what was there before it.
SELECT coalesce(m.source, 'avalon') AS "from", count(*) AS players, sum(p.gold) AS gold,
	CASE WHEN m.source IS NULL THEN :avalon_players ELSE (SELECT count(*) FROM camelot.players) END AS "players before",
	CASE WHEN m.source IS NULL THEN :avalon_gold ELSE (SELECT sum(gold) FROM camelot.players) END AS "gold before"
FROM players AS p
	LEFT JOIN snowflake_migrate.map AS m ON m.run = :run AND m.relation::regclass = 'players'::regclass AND m.new_key = p.id::text
GROUP BY m.source ORDER BY m.source NULLS FIRST;
