/*
 * Code of other roles that a merge would run with the rights of who merges: functions that the owners of tables, types
 * and views have put there.  A superuser's merge is refused before a row is read; of others, the check says so.
 */

/*
 * The relations that a run reads, and those that it writes to.  Those of the sources that nothing is merged from are
 * read by the check alone.
 */
CREATE FUNCTION snowflake_migrate_internal.run_relations(
	run_ bigint,
	OUT read oid[],
	OUT written oid[])
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH w AS MATERIALIZED (
		SELECT t.relation::oid AS oid FROM snowflake_migrate_internal.merged_tables(run_) AS t
		UNION
		SELECT c.oid
		FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE n.nspname = 'snowflake_merge_' || run_ AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
	)
	SELECT
		ARRAY(
			SELECT t.relation::oid FROM snowflake_migrate_internal.plan_tables AS t WHERE t.run = run_
			UNION
			SELECT s.relation::oid FROM snowflake_migrate_internal.plan_sources AS s WHERE s.run = run_
			UNION
			/* Foreign keys are checked at both ends. */
			SELECT k.oid
			FROM pg_constraint AS f, unnest(ARRAY[f.conrelid, f.confrelid]) AS k (oid)
			WHERE f.contype = 'f' AND (f.conrelid IN (SELECT w.oid FROM w) OR f.confrelid IN (SELECT w.oid FROM w))
			EXCEPT
			SELECT w.oid FROM w
			ORDER BY 1),
		ARRAY(SELECT w.oid FROM w ORDER BY 1)
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.run_relations(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the relations that a run reads and writes to';

/*
 * Raises an error where going on with a run would run other roles' code with a superuser's rights.  While it waits for
 * a lock, foreign keys may be added: it looks until nothing is.
 */
CREATE FUNCTION snowflake_migrate_internal.refuse_code(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	relations record;
	seen_read oid[];
	seen_written oid[];
BEGIN
	LOOP
		SELECT r.read, r.written INTO relations FROM snowflake_migrate_internal.run_relations(run_) AS r;
		EXIT WHEN relations.read = seen_read AND relations.written = seen_written;
		PERFORM snowflake_internal.refuse_dangerous_code(relations.read, relations.written, true);
		seen_read := relations.read;
		seen_written := relations.written;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.refuse_code(bigint)
	IS 'for snowflake_migrate.merge()''s own use: an error where others'' code would run with a superuser''s rights';

/* Returns whether rows may be read.  That a type's owner could add code is no news to who is no superuser. */
CREATE FUNCTION snowflake_migrate_internal.check_code(run_ bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	relations record;
	seen_read oid[];
	seen_written oid[];
	caller CONSTANT record := snowflake_internal.strongest_role();
BEGIN
	LOOP
		SELECT r.read || ARRAY(SELECT m.relation::oid FROM snowflake_migrate_internal.not_merged(run_) AS m ORDER BY 1)
				AS read,
				r.written
			INTO relations
			FROM snowflake_migrate_internal.run_relations(run_) AS r;
		EXIT WHEN NOT caller.is_superuser OR (relations.read = seen_read AND relations.written = seen_written);
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, d.relation::text, d.object, d.problem,
				advice => d.advice)
			FROM snowflake_internal.dangerous_code(relations.read, relations.written, true) AS d;
		IF FOUND THEN
			RETURN false;
		END IF;
		seen_read := relations.read;
		seen_written := relations.written;
	END LOOP;
	IF NOT caller.is_superuser THEN
		PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, c.relation::text, c.object,
				format('code of role %s would run with the rights of role %s: %s', c.owner, caller.role, c.code),
				advice => format('Look at what it does, and make sure that you trust role %s.', c.owner))
			FROM snowflake_internal.touched(relations.read, relations.written) AS t
				CROSS JOIN LATERAL snowflake_internal.foreign_code(
					t.touched, t.all_written, true, snowflake_internal.other_roles()) AS c
			WHERE NOT c.is_possible;
	END IF;
	RETURN true;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_code(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds other roles'' code that a merge would run';
