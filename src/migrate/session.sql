/*
 * The session of a merge: what it may use while it works, what may end it, and what it tells its caller meanwhile.
 */

CREATE FUNCTION snowflake_migrate_internal.workers() RETURNS int
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS '$libdir/snowflake_migrate', 'snowflake_migrate_workers';
COMMENT ON FUNCTION snowflake_migrate_internal.workers()
	IS 'for snowflake_migrate.merge()''s own use: how many work beside each other, for a worker, or 1';

CREATE FUNCTION snowflake_migrate_internal.set_telling(telling boolean) RETURNS void
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS '$libdir/snowflake_migrate', 'snowflake_migrate_set_telling';
COMMENT ON FUNCTION snowflake_migrate_internal.set_telling(boolean)
	IS 'for snowflake_migrate.merge()''s own use: whether the caller is to be told how far it is';

CREATE FUNCTION snowflake_migrate_internal.is_time_to_tell() RETURNS boolean
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS '$libdir/snowflake_migrate', 'snowflake_migrate_is_time_to_tell';
COMMENT ON FUNCTION snowflake_migrate_internal.is_time_to_tell()
	IS 'for snowflake_migrate.merge()''s own use: whether it is time to tell the caller how far it is';

/* Tells the caller at which of a run's tables it is: when is_time_to_tell(). */
CREATE FUNCTION snowflake_migrate_internal.tell_tables(run_ bigint, done text, n bigint, of_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	RAISE NOTICE USING MESSAGE = format('merge %s: %s of %s tables are %s', run_, n, of_, done);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.tell_tables(bigint, text, bigint, bigint)
	IS 'for snowflake_migrate.merge()''s own use: tells at which table it is';

/*
 * Warns of limits of time that may end a call in its middle, before hours have gone into it: PostgreSQL's own error,
 * then, would not say what to do.  A target in use is waited for no longer than a moment anyway.
 */
CREATE FUNCTION snowflake_migrate_internal.warn_of_limits(is_in_use boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	limit_ record;
BEGIN
	FOR limit_ IN
		SELECT l.name, l.what, current_setting(l.name) AS value
		FROM (VALUES ('statement_timeout', 'It counts for the whole call, however many transactions it has.'),
					 ('transaction_timeout', 'The maps are one transaction, and for who called all that workers do.'),
					 ('lock_timeout', 'It counts for workers, too.')) AS l (name, what)
			JOIN pg_settings AS s ON s.name = l.name
		WHERE s.setting <> '0' AND NOT (l.name = 'lock_timeout' AND is_in_use)
	LOOP
		RAISE WARNING USING
			MESSAGE = format('%s may end the call before it is done: it is %s', limit_.name, limit_.value),
			DETAIL = limit_.what,
			HINT = format('SET %s = 0; if it has ended a call, the same call goes on.', limit_.name);
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.warn_of_limits(boolean)
	IS 'for snowflake_migrate.merge()''s own use: warns of limits of time';

/* Lets PostgreSQL use as many processes for one query, or one index, as there are jobs. */
CREATE FUNCTION snowflake_migrate_internal.allow_parallel(jobs int) RETURNS void
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE
AS $$
	SELECT pg_catalog.set_config(s.name, greatest(s.setting::int, jobs OPERATOR(pg_catalog.-) 1)::pg_catalog.text, true)
	FROM pg_catalog.pg_settings AS s
	WHERE s.name OPERATOR(pg_catalog.=)
		ANY ('{max_parallel_workers_per_gather,max_parallel_maintenance_workers}'::pg_catalog.text[])
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.allow_parallel(int)
	IS 'for snowflake_migrate.merge()''s own use: lets PostgreSQL use as many processes as there are jobs';

/*
 * Until the end of the transaction, what sorts and hashes many rows has the memory that CREATE INDEX would have.
 * Workers share it.
 */
CREATE FUNCTION snowflake_migrate_internal.allow_memory() RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT set_config('work_mem', greatest(
			pg_size_bytes(current_setting('work_mem')) / 1024,
			pg_size_bytes(current_setting('maintenance_work_mem')) / 1024 / snowflake_migrate_internal.workers())
		|| 'kB', true)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.allow_memory()
	IS 'for snowflake_migrate.merge()''s own use: gives a transaction the memory to sort and hash many rows';

/*
 * So many tables are worked at in one transaction, at most, since each locks its table and indexes; one where the
 * target is in use, whose users wait for these locks.
 */
CREATE FUNCTION snowflake_migrate_internal.tables_at_once(is_in_use boolean DEFAULT false) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT CASE WHEN is_in_use THEN 1 ELSE 50 END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.tables_at_once(boolean)
	IS 'for snowflake_migrate.merge()''s own use: how many tables a transaction works at';
