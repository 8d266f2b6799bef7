-- What the merge has to know and the schema does not say.  Primary keys, foreign keys, unique constraints and checks are
-- read from the tables; a table that is not named here is copied, and its keys become snowflake ids.

-- Tables that are not copied as they are.  The templates are the game's: an equal code is the same template, whatever its id
-- and whatever has been done about its name since; one that only a source has is added.  A season has the same number on
-- every server.  What a server is called is nobody else's business.
SELECT snowflake_migrate.declare_table('item_templates', 'match', key => '{code}', accept => '{differences}');
SELECT snowflake_migrate.declare_table('seasons', 'same_id');
SELECT snowflake_migrate.declare_table('server_settings', 'ignore');

-- References that are no foreign keys.  sender_id is a player only where sender_type says so, and other numbers stay what they
-- are.  The senders of some mails have left the game: a mail without a sender can be read all the same, and NULL does not come
-- to mean somebody else.
SELECT snowflake_migrate.declare_reference('mail', 'sender_id', 'players', condition => $$sender_type = 'player'$$, dangling => 'null');
SELECT snowflake_migrate.declare_no_reference('mail', 'sender_id');

-- Ids in jsonb: elements of an array, values, and the keys of an object.  Items in the hotbar may have been used up.
SELECT snowflake_migrate.declare_reference('settings', 'settings', 'items', path => '$.hotbar[*]', dangling => 'null');
SELECT snowflake_migrate.declare_reference('settings', 'settings', 'items', path => '$.equipped.*');
SELECT snowflake_migrate.declare_reference('settings', 'settings', 'items', path => '$.labels.keyvalue().key');

-- When a row was made: its new id is of that time, so that rows go on to sort by age.
SELECT snowflake_migrate.declare_created('accounts', 'created_at');
SELECT snowflake_migrate.declare_created('guilds', 'founded_at');
SELECT snowflake_migrate.declare_created('players', 'created_at');
SELECT snowflake_migrate.declare_created('items', 'created_at');
SELECT snowflake_migrate.declare_created('mail', 'sent_at');
SELECT snowflake_migrate.declare_created('chat_log', 'sent_at');

-- What becomes of two rows that can't both be there.  Who has an account on both servers has one account now, with the players
-- of both.  Of two players or guilds with the same name the one that comes is renamed, and shortened if need be.  Ranks are
-- given anew over all players of a season.
SELECT snowflake_migrate.declare_policy('accounts', 'accounts_email_key', 'keep_target');
SELECT snowflake_migrate.declare_policy('players', 'players_name_key', 'suffix', '.{source}');
SELECT snowflake_migrate.declare_policy('guilds', 'guilds_name_key', 'suffix', ' of {source}');
SELECT snowflake_migrate.declare_policy('arena_ranks', 'arena_ranks_season_rank_key', 'rerank', 'rating DESC, player_id');
