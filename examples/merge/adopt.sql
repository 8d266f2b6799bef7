-- The keys become bigint, and the columns that reference them, by foreign keys or as was declared; new rows get snowflake ids.
-- It says what it did.
\pset format unaligned
\pset tuples_only
SELECT action FROM snowflake_migrate.adopt('{accounts,guilds,players,item_templates,items,mail,chat_log}', '{id,id,id,id,id,id,id}')
WHERE action NOT LIKE 'DROP SEQUENCE %';
