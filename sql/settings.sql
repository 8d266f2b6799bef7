-- The settings, what they accept and who may set them.

SELECT name, setting, unit, context, vartype, min_val, max_val, boot_val, enumvals
FROM pg_settings WHERE name LIKE 'snowflake.%' ORDER BY name COLLATE "C";
SELECT name, short_desc, extra_desc FROM pg_settings WHERE name LIKE 'snowflake.%' ORDER BY name COLLATE "C";
SHOW snowflake.node_id;
SHOW snowflake.layout;
SHOW snowflake.clock;
SHOW snowflake.max_drift;
SHOW snowflake.max_wait;
SHOW snowflake.max_session_rate;
SHOW snowflake.sequence_start;
SHOW snowflake.reserve_ahead;
SHOW snowflake.max_forward_jump;
SHOW snowflake.registry;
SHOW snowflake.registry_group;
SHOW snowflake.claim_window;
-- a registry takes the same windows
SELECT max_val::int * interval '1 ms' = snowflake_internal.registry_longest_window() FROM pg_settings WHERE name = 'snowflake.claim_window';

-- in a session only how long it is ready to wait
SET snowflake.node_id = '1';
SET snowflake.layout = 'leaf';
SET snowflake.clock = 'monotonic';
SET snowflake.max_drift = 1000;
SET snowflake.sequence_start = 'zero';
SET snowflake.reserve_ahead = '1s';
SET snowflake.max_forward_jump = '1d';
SET snowflake.registry = 'postgresql://registry.example.com/ids';
SET snowflake.registry_group = 'orders';
SET snowflake.claim_window = '10s';
RESET snowflake.node_id;
SELECT set_config('snowflake.layout', 'game', false);
SELECT snowflake_node(snowflake_nextval());

CREATE ROLE regress_snowflake_user;
SET ROLE regress_snowflake_user;
SET snowflake.max_wait = '5ms';
SHOW snowflake.max_wait;
SELECT snowflake_nextval() > 0 AS made;
-- its bound is for others to set
SET snowflake.max_session_rate = 0;
SELECT set_config('snowflake.max_session_rate', '0', true);
-- whom this server asks for its number is nobody else's business
SELECT name FROM pg_settings WHERE name LIKE 'snowflake.registry%';
RESET ROLE;
BEGIN;
SET LOCAL snowflake.max_wait = 0;
SHOW snowflake.max_wait;
SELECT count(*) FROM snowflake_nextval_batch(10000);	-- a wait of at most one tick is always made
ROLLBACK;
SHOW snowflake.max_wait;
RESET snowflake.max_wait;
SHOW snowflake.max_wait;
ALTER ROLE regress_snowflake_user SET snowflake.max_wait = '1min';
ALTER ROLE regress_snowflake_user SET snowflake.max_session_rate = 1000;
ALTER ROLE regress_snowflake_user SET snowflake.max_drift = '1min';
DROP ROLE regress_snowflake_user;

-- units
SET snowflake.max_wait = '1.5s';
SHOW snowflake.max_wait;
SET snowflake.max_wait = '2min';
SHOW snowflake.max_wait;
SET snowflake.max_wait = '1d';
SHOW snowflake.max_wait;
SET snowflake.max_wait = 2147483647;
SHOW snowflake.max_wait;
RESET snowflake.max_wait;

-- out of range; how the message writes the range depends on the version
\set VERBOSITY sqlstate
SET snowflake.max_wait = -1;
SET snowflake.max_wait = 2147483648;
SET snowflake.max_wait = '1 year';
SET snowflake.max_wait = 'long';
SET snowflake.max_wait = '';
SET snowflake.max_session_rate = -1;
SET snowflake.max_session_rate = 1000000001;
SET snowflake.max_session_rate = '1s';
ALTER SYSTEM SET snowflake.max_drift = -1;
ALTER SYSTEM SET snowflake.max_drift = '25d';
ALTER SYSTEM SET snowflake.reserve_ahead = '9ms';
ALTER SYSTEM SET snowflake.reserve_ahead = '60001ms';
ALTER SYSTEM SET snowflake.reserve_ahead = 0;
ALTER SYSTEM SET snowflake.max_forward_jump = 0;
ALTER SYSTEM SET snowflake.max_forward_jump = -1;
ALTER SYSTEM SET snowflake.claim_window = '999ms';
ALTER SYSTEM SET snowflake.claim_window = '601s';
\set VERBOSITY default
ALTER SYSTEM SET snowflake.clock = 'coarse';
ALTER SYSTEM SET snowflake.sequence_start = 'one';

-- malformed layouts
ALTER SYSTEM SET snowflake.layout = '';
ALTER SYSTEM SET snowflake.layout = 'snowflake';
ALTER SYSTEM SET snowflake.layout = 'timestamp:41 node:10 sequence:13 epoch:0';
ALTER SYSTEM SET snowflake.layout = 'twitter tick:1h';
ALTER SYSTEM SET snowflake.layout = 'timestamp:41 größe:10 sequence:12 epoch:0';

-- malformed node numbers
ALTER SYSTEM SET snowflake.node_id = '-1';
ALTER SYSTEM SET snowflake.node_id = '+1';
ALTER SYSTEM SET snowflake.node_id = '1.5';
ALTER SYSTEM SET snowflake.node_id = '0x10';
ALTER SYSTEM SET snowflake.node_id = '1 ';
ALTER SYSTEM SET snowflake.node_id = ' 1';
ALTER SYSTEM SET snowflake.node_id = '9223372036854775808';
ALTER SYSTEM SET snowflake.node_id = 'one';
ALTER SYSTEM SET snowflake.node_id = 'worker';
ALTER SYSTEM SET snowflake.node_id = 'worker=';
ALTER SYSTEM SET snowflake.node_id = '=1';
ALTER SYSTEM SET snowflake.node_id = 'worker=-1';
ALTER SYSTEM SET snowflake.node_id = 'worker=9223372036854775808';
ALTER SYSTEM SET snowflake.node_id = 'worker=1=2';
ALTER SYSTEM SET snowflake.node_id = 'worker=1,';
ALTER SYSTEM SET snowflake.node_id = ',worker=1';
ALTER SYSTEM SET snowflake.node_id = 'datacenter=1,,worker=1';
ALTER SYSTEM SET snowflake.node_id = 'datacenter=1, worker=1';
ALTER SYSTEM SET snowflake.node_id = 'datacenter=1;worker=1';
ALTER SYSTEM SET snowflake.node_id = 'worker=1,worker=1';
ALTER SYSTEM SET snowflake.node_id = 'Worker=1';
ALTER SYSTEM SET snowflake.node_id = 'größe=1';
ALTER SYSTEM SET snowflake.node_id = 'Hostname';
ALTER SYSTEM SET snowflake.node_id = 'auto ';
ALTER SYSTEM SET snowflake.node_id = 'address';
ALTER SYSTEM SET snowflake.node_id = 'address:';
ALTER SYSTEM SET snowflake.node_id = 'address:10.1.0.0';
ALTER SYSTEM SET snowflake.node_id = 'address:10.1.0.0/';
ALTER SYSTEM SET snowflake.node_id = 'address:10.1.0.0/33';
ALTER SYSTEM SET snowflake.node_id = 'address:10.1.0.0/-1';
ALTER SYSTEM SET snowflake.node_id = 'address:10.1.0/22';
ALTER SYSTEM SET snowflake.node_id = 'address:10.1.0.1/22';
ALTER SYSTEM SET snowflake.node_id = 'address:fd00:1::/129';
ALTER SYSTEM SET snowflake.node_id = 'address:fd00:1::1/112';
ALTER SYSTEM SET snowflake.node_id = 'address:localhost/8';

-- malformed addresses of registries, and those with a password: the error never repeats them
ALTER SYSTEM SET snowflake.registry = 'registry.example.com';
ALTER SYSTEM SET snowflake.registry = 'host=registry.example.com dbname=ids';
ALTER SYSTEM SET snowflake.registry = 'https://registry.example.com/ids';
ALTER SYSTEM SET snowflake.registry = 'PostgreSQL://registry.example.com/ids';
ALTER SYSTEM SET snowflake.registry = 'postgresql://keeper:secret@registry.example.com/ids';
ALTER SYSTEM SET snowflake.registry = 'postgres://:@registry.example.com/ids';
ALTER SYSTEM SET snowflake.registry = 'postgresql://keeper@secret@registry.example.com/ids';
ALTER SYSTEM SET snowflake.registry = 'postgresql://registry.example.com/ids?password=secret';
ALTER SYSTEM SET snowflake.registry = 'postgresql://registry.example.com/ids?user=keeper&%70assw%6frd=secret';
ALTER SYSTEM SET snowflake.registry = 'postgresql://registry.example.com/ids?sslpassword=secret';
ALTER SYSTEM SET snowflake.registry_group = '';
ALTER SYSTEM SET snowflake.registry_group = '0123456789012345678901234567890123456789012345678901234567890123';
ALTER SYSTEM SET snowflake.registry_group = E'a\tb';

-- well-formed, if not for this server; in the file only, taken back here
ALTER SYSTEM SET snowflake.layout = 'baidu';
ALTER SYSTEM SET snowflake.layout = 'timestamp:41 node:10 sequence:12 tick:1ms epoch:2025-01-01';
ALTER SYSTEM SET snowflake.node_id = '';
ALTER SYSTEM SET snowflake.node_id = '9223372036854775807';
ALTER SYSTEM SET snowflake.node_id = 'shard=1';
ALTER SYSTEM SET snowflake.node_id = 'worker=1,datacenter=31';
ALTER SYSTEM SET snowflake.node_id = 'hostname';
ALTER SYSTEM SET snowflake.node_id = 'auto';
ALTER SYSTEM SET snowflake.node_id = 'address:10.1.0.0/22';
ALTER SYSTEM SET snowflake.node_id = 'address:fd00:1::/112';
ALTER SYSTEM SET snowflake.registry = 'postgresql://registry.example.com:6432/ids';
ALTER SYSTEM SET snowflake.registry = 'postgresql://keeper@registry1,registry2:6432/ids?target_session_attrs=read-write&passfile=/etc/keeper';
ALTER SYSTEM SET snowflake.registry = 'postgres:///ids?service=registry';
ALTER SYSTEM SET snowflake.registry = '';
ALTER SYSTEM SET snowflake.registry_group = '012345678901234567890123456789012345678901234567890123456789012';
ALTER SYSTEM SET snowflake.claim_window = '10min';
ALTER SYSTEM RESET snowflake.layout;
ALTER SYSTEM RESET snowflake.node_id;
ALTER SYSTEM RESET snowflake.registry;
ALTER SYSTEM RESET snowflake.registry_group;
ALTER SYSTEM RESET snowflake.claim_window;

-- no other names
SHOW snowflake.shard;
SET snowflake.shard = 1;
SELECT set_config('snowflake.node', '1', false);
