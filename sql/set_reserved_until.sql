-- snowflake_set_reserved_until(): the way out when a wrong clock has moved the reserved time ahead.
SET timezone = 'UTC';
SET datestyle = 'ISO';
SET snowflake.max_wait = '10s';

CREATE FUNCTION pg_temp.refusal(query text, OUT code text, OUT message text, OUT detail text, OUT hint text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE query;
	message := 'accepted';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	detail := regexp_replace(detail, '20[-0-9]+ [0-9:.]+\+00', 'TIME', 'g');
	detail := regexp_replace(detail, 'wait for [^;]*', 'wait for INTERVAL');
	detail := regexp_replace(detail, 'is .* behind', 'is INTERVAL behind');
END
$$;

-- not below what was issued
SELECT snowflake_nextval() AS newest \gset
\x
SELECT * FROM pg_temp.refusal(format('SELECT snowflake_set_reserved_until(%L)', snowflake_timestamp(:newest)));
SELECT * FROM pg_temp.refusal(format('SELECT snowflake_set_reserved_until(%L)', snowflake_timestamp(:newest) + interval '999 us'));
SELECT * FROM pg_temp.refusal('SELECT snowflake_set_reserved_until(''2010-11-04 01:42:54.657'')');
\x
-- and what was refused has changed nothing
SELECT last_id = :newest AS unchanged, claim FROM snowflake_stat;
SELECT snowflake_nextval() > :newest AS after;

-- a little ahead: ids go on from there
SELECT clock_timestamp() + interval '100 ms' AS ahead \gset
SELECT snowflake_set_reserved_until(:'ahead');
SELECT claim, reserved_until = :'ahead' AS reserved FROM snowflake_stat;
SELECT snowflake_timestamp(snowflake_nextval()) >= :'ahead' AS after;

-- far ahead, as a clock that jumped would have done it, and back
SELECT last_id AS newest FROM snowflake_stat \gset
SELECT snowflake_set_reserved_until('2079-01-01');
\x
SELECT * FROM pg_temp.refusal('SELECT snowflake_nextval()');
SELECT * FROM pg_temp.refusal('SELECT snowflake_nextval_batch(10)');
\x
SELECT last_id = :newest AS unchanged, reserved_until FROM snowflake_stat;
SELECT snowflake_set_reserved_until('2080-07-10 17:30:30.208999');
\x
SELECT * FROM pg_temp.refusal('SELECT snowflake_nextval()');
\x
SELECT snowflake_set_reserved_until(snowflake_timestamp(:newest) + interval '1 ms');
SELECT reserved_until = snowflake_timestamp(:newest) + interval '1 ms' AS back FROM snowflake_stat;
SELECT snowflake_nextval() > :newest AS after;
SELECT last_timestamp <= clock_timestamp() AS not_ahead FROM snowflake_stat;

-- in a transaction that is rolled back it stays done
SELECT last_id AS newest FROM snowflake_stat \gset
BEGIN;
SELECT snowflake_set_reserved_until('2079-01-01');
ROLLBACK;
SELECT reserved_until FROM snowflake_stat;
SELECT snowflake_set_reserved_until(snowflake_timestamp(:newest) + interval '1 ms');

-- times outside the layout
SELECT snowflake_set_reserved_until('infinity');
SELECT snowflake_set_reserved_until('-infinity');
SELECT snowflake_set_reserved_until('2010-11-04 01:42:54.656999');
SELECT snowflake_set_reserved_until('2080-07-10 17:30:30.209');
SELECT snowflake_set_reserved_until('294276-12-31');
SELECT snowflake_set_reserved_until(NULL);

-- for superusers only, whatever was granted
CREATE ROLE regress_snowflake_user;
GRANT EXECUTE ON FUNCTION snowflake_set_reserved_until TO regress_snowflake_user;
SET ROLE regress_snowflake_user;
SELECT snowflake_set_reserved_until(now());
RESET ROLE;
REVOKE EXECUTE ON FUNCTION snowflake_set_reserved_until FROM regress_snowflake_user;
DROP ROLE regress_snowflake_user;

SELECT snowflake_nextval() > :newest AS after;
