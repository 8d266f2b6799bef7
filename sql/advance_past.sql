-- snowflake_advance_past(): later ids sort after one that came from elsewhere.
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- an id ahead of the clock: later ones wait until they can sort after it
SELECT snowflake_encode(clock_timestamp() + interval '100 ms', 1023, 4095) AS ahead \gset
SELECT snowflake_advance_past(:ahead);
SELECT snowflake_nextval() > :ahead AS after;
SELECT reserved_until > snowflake_timestamp(:ahead) AS durable FROM snowflake_stat;

-- also ids of other sessions, and after a transaction that was rolled back
SELECT snowflake_encode(clock_timestamp() + interval '100 ms', 1023, 4095) AS ahead \gset
BEGIN;
SELECT snowflake_advance_past(:ahead);
ROLLBACK;
\c
SET timezone = 'UTC';
SET datestyle = 'ISO';
SELECT snowflake_nextval() > :ahead AS after;

-- in a read-only transaction, and without a transaction id
BEGIN READ ONLY;
SELECT snowflake_advance_past(:ahead);
SELECT pg_current_xact_id_if_assigned() IS NULL AS no_xid;
COMMIT;

-- past the newest id of this server: nothing changes but the tick
SELECT snowflake_nextval() AS newest \gset
SELECT snowflake_advance_past(:newest);
SELECT last_id = :newest AS unchanged FROM snowflake_stat;
SELECT snowflake_nextval() > snowflake_max_id(snowflake_timestamp(:newest)) AS in_a_later_tick;

-- never backwards
SELECT last_id AS newest, reserved_until AS reserved FROM snowflake_stat \gset
SELECT snowflake_advance_past(0);
SELECT snowflake_advance_past(1541815603606036480);
SELECT last_id = :newest AS unchanged, reserved_until >= :'reserved' AS reserved FROM snowflake_stat;
SELECT snowflake_nextval() > :newest AS after;

-- ids that cannot be this server's
SELECT snowflake_advance_past(-1);
SELECT snowflake_advance_past(-9223372036854775808);
SELECT snowflake_advance_past(NULL);

-- more than a day ahead would stop this server for a day: refused, and nothing has changed
CREATE FUNCTION pg_temp.refusal(query text, OUT code text, OUT message text, OUT detail text, OUT hint text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE query;
	message := 'accepted';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	detail := regexp_replace(detail, 'reads [-0-9]+ [0-9:.]+\+00', 'reads TIME');
END
$$;
\x
SELECT * FROM pg_temp.refusal('SELECT snowflake_advance_past(9223372036854775807)');
SELECT code, message
FROM pg_temp.refusal('SELECT snowflake_advance_past(snowflake_min_id(clock_timestamp() + interval ''24:00:01''))');
\x
SELECT snowflake_nextval() > 0 AS made;

-- nearly a day ahead: accepted, and ids are refused from then on, with the reason
SELECT last_id AS newest FROM snowflake_stat \gset
SELECT snowflake_advance_past(snowflake_min_id(clock_timestamp() + interval '23:59:59'));
\x
SELECT code, message,
	regexp_replace(regexp_replace(detail, 'up to [-0-9]+ [0-9:.]+\+00', 'up to TIME'), '23:59:5[\d.]+', 'N', 'g') AS detail, hint
FROM pg_temp.refusal('SELECT snowflake_nextval()');
\x
SELECT last_id = :newest AS unchanged, reserved_until > clock_timestamp() + interval '23:59:00' AS reserved FROM snowflake_stat;

-- the way out: nothing was issued there
SELECT snowflake_set_reserved_until(snowflake_timestamp(:newest) + interval '1 ms');
SELECT snowflake_nextval() > :newest AS after;
