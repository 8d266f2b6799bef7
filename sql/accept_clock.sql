-- snowflake_accept_clock(): here, where the clock did nothing, it changes nothing.
-- What it is for needs a clock that jumps: see test/t.
SELECT snowflake_nextval() AS newest \gset
SELECT snowflake_accept_clock();
SELECT last_id = :newest AS unchanged, claim, forward_jumps FROM snowflake_stat;
SELECT snowflake_nextval() > :newest AS after;
BEGIN READ ONLY;
SELECT snowflake_accept_clock();
COMMIT;
