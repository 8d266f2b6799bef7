-- The keys become bigint, and the columns that reference them with it; new rows get snowflake ids.  It says what it did.
\pset format unaligned
\pset tuples_only
SELECT action FROM snowflake_adopt('{accounts,guilds,players,item_templates,items,mail,chat_log}', '{id,id,id,id,id,id,id}')
WHERE action NOT LIKE 'DROP SEQUENCE %';
-- No foreign key says that players' ids are in here.
ALTER TABLE mail ALTER COLUMN sender_id TYPE bigint;
\echo 'and, as no foreign key says that it holds ids: ALTER TABLE mail ALTER COLUMN sender_id TYPE bigint'
