-- Nanoseconds for one call with a transaction of its own, the transaction included.
SET synchronous_commit = off;
SELECT clock_timestamp() AS start \gset
SELECT format('DO $do$ BEGIN FOR i IN 1..20000 LOOP PERFORM %s; COMMIT; END LOOP; END $do$', :'function') AS calls \gset
:calls;
SELECT extract(epoch FROM clock_timestamp() - :'start'::timestamptz) * 1e9 / 20000;
