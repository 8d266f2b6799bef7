-- The durable limit: the progress of replication origin 65534, which has no row
-- in pg_replication_origin.  It is Unix microseconds, written as an LSN.  65533
-- likewise says which layout it was made in.
SET timezone = 'UTC';
SET datestyle = 'ISO';
CREATE VIEW durable AS
SELECT to_timestamp(trunc((remote_lsn - '0/0') / 1000000)) + mod(remote_lsn - '0/0', 1000000)::int * interval '1 us' AS until
FROM pg_replication_origin_status WHERE local_id = 65534;

-- no id above it, and nobody is told of a limit that is not durable
SELECT count(*) FROM snowflake_nextval_batch(1000);
SELECT last_timestamp + interval '1 ms' <= until AS above_ids, reserved_until <= until AS published FROM snowflake_stat, durable;
SELECT count(*) FROM pg_replication_origin;

-- the layout that it was made in
SELECT * FROM snowflake_limit_layout();
SELECT snowflake_accept_layout();

-- raised before snowflake_advance_past() returns
SELECT snowflake_encode(clock_timestamp() + interval '1 hour', 0, 0) AS ahead \gset
SELECT snowflake_advance_past(:ahead);
SELECT until = snowflake_timestamp(:ahead) + interval '1 ms' AS raised FROM durable;

-- lowered before snowflake_set_reserved_until() returns
SELECT last_timestamp + interval '1 ms' AS back FROM snowflake_stat \gset
SELECT snowflake_set_reserved_until(:'back');
SELECT until = :'back' AS lowered FROM durable;
SELECT snowflake_nextval() > 0 AS made;
SELECT last_timestamp + interval '1 ms' <= until AS above_ids, reserved_until <= until AS published FROM snowflake_stat, durable;

-- outlives the extension
BEGIN;
SELECT until FROM durable \gset
DROP EXTENSION snowflake CASCADE;
SELECT until >= :'until' AS still_there FROM durable;
ROLLBACK;

-- when somebody has taken the number, nothing is reserved; ids below what was reserved before may still be made
SELECT last_timestamp + interval '1 ms' AS back FROM snowflake_stat \gset
BEGIN;
SET LOCAL allow_system_table_mods = on;
INSERT INTO pg_replication_origin VALUES (65534, 'mine');
SAVEPOINT here;
SELECT snowflake_advance_past(0);
ROLLBACK TO here;
SELECT snowflake_set_reserved_until(:'back');
ROLLBACK;
SELECT snowflake_advance_past(0);

-- not forgotten while ids can be made
SELECT snowflake_forget_limit();

DROP VIEW durable;
