/*
 * What the target does by itself when rows come in: triggers and rules, generated columns, sequences, exclusion
 * constraints, publications.
 */

/* The right to keep triggers and foreign keys from firing, without which tables in a cycle can't be merged. */
CREATE FUNCTION snowflake_migrate_internal.check_replication_role(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	advice CONSTANT text := format('GRANT SET ON PARAMETER session_replication_role TO %I;', current_user);
BEGIN
	IF has_parameter_privilege('session_replication_role', 'SET') THEN
		RETURN;
	END IF;
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, NULL, 'session_replication_role',
		'cannot be set by the current user: triggers fire, and foreign keys are checked row by row', advice => advice);
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, t.relation::text, NULL,
			'is in a cycle of references, and session_replication_role cannot be set by the current user',
			advice => advice)
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
		WHERE t.cyclic;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_replication_role(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds whether triggers fire';

/* The triggers and rules for INSERT and UPDATE.  A trigger of a partitioned table has copies on the partitions. */
CREATE FUNCTION snowflake_migrate_internal.triggers(
	run_ bigint,
	OUT relation regclass,
	OUT kind text,
	OUT fires boolean,
	OUT names text) RETURNS SETOF record
LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
	WITH t AS MATERIALIZED (SELECT m.relation FROM snowflake_migrate_internal.merged_tables(run_) AS m),
	enabled (relation, kind, name, enabled) AS (
		SELECT t.relation, 'trigger', g.tgname, g.tgenabled
		FROM t JOIN pg_trigger AS g
			ON g.tgrelid IN (SELECT o.oid FROM snowflake_migrate_internal.with_partitions(t.relation) AS o (oid))
		WHERE NOT g.tgisinternal AND g.tgparentid = 0 AND g.tgtype & 20 <> 0
		UNION ALL
		SELECT t.relation, 'rule', w.rulename, w.ev_enabled
		FROM t JOIN pg_rewrite AS w ON w.ev_class = t.relation
		WHERE w.ev_type IN ('2', '3')
	)
	SELECT e.relation, e.kind, f.fires, string_agg(DISTINCT quote_ident(e.name), ', ')
	FROM enabled AS e
		CROSS JOIN LATERAL (
			SELECT e.enabled IN ('A', 'R')
				OR (e.enabled = 'O' AND NOT has_parameter_privilege('session_replication_role', 'SET'))) AS f (fires)
	WHERE e.enabled <> 'D'
	GROUP BY e.relation, e.kind, f.fires
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.triggers(bigint)
	IS 'for snowflake_migrate.merge()''s own use: the triggers and rules of the tables that rows are merged into';

CREATE FUNCTION snowflake_migrate_internal.check_triggers(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT t.* FROM snowflake_migrate_internal.triggers(run_) AS t LOOP
		IF r.fires THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, r.relation::text, r.names,
				CASE r.kind WHEN 'trigger' THEN 'trigger fires for rows that are merged'
					ELSE 'rule applies to rows that are merged' END,
				advice => format('If it should not: ALTER TABLE %s DISABLE %s ...; '
									 'else it must name objects with their schema, and not write rows into tables that '
									 'are merged, which the proof would not expect.', r.relation, upper(r.kind)));
		ELSE
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', NULL, r.relation::text, r.names,
				CASE r.kind WHEN 'trigger' THEN 'trigger does not fire for rows that are merged'
					ELSE 'rule does not apply to rows that are merged' END);
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_triggers(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds which triggers and rules fire';

/* Is a column called like the time of something that happens to a row later? */
CREATE FUNCTION snowflake_migrate_internal.tells_change(word text) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT word ~ '(^|_)(updated|modified|changed|last|seen|deleted|removed|retired|expire|ended|closed)'
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.tells_change(text)
	IS 'for snowflake_migrate.merge()''s own use: whether a column is called like a time of a later change';

/* Generated columns, and new ids that could tell when rows were created and don't. */
CREATE FUNCTION snowflake_migrate_internal.check_generated(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', NULL, t.relation::text,
			string_agg(quote_ident(c.attname), ', ' ORDER BY c.attnum),
			'generated by the target, whatever the sources have')
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			CROSS JOIN LATERAL snowflake_migrate_internal.columns_of(t.relation) AS c
		WHERE c.attgenerated <> ''
		GROUP BY t.relation;
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', NULL, t.relation::text,
			string_agg(quote_ident(c.attname), ', ' ORDER BY c.attnum),
			'identity that is generated always: rows that are merged keep their values')
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			CROSS JOIN LATERAL snowflake_migrate_internal.columns_of(t.relation) AS c
		WHERE c.attidentity = 'a'
		GROUP BY t.relation;
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', NULL, t.relation::text, min(c.attname::text),
			'new ids are packed at the start of the merge, as nothing tells when rows were created',
			advice => format('If this column does: SELECT snowflake_migrate.declare_created(%L, %L);',
							 t.relation, min(c.attname::text)))
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			CROSS JOIN LATERAL snowflake_migrate_internal.columns_of(t.relation) AS c
		WHERE t.mode = 'copy' AND t.kind = 'id' AND t.created IS NULL
			AND c.atttypid IN ('timestamptz'::regtype, 'timestamp'::regtype)
			AND NOT snowflake_migrate_internal.tells_change(snowflake_migrate_internal.word(c.attname))
		GROUP BY t.relation
		HAVING count(*) = 1;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_generated(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds what the target generates';

/* Sequences of columns other than the keys that get snowflake ids. */
CREATE FUNCTION snowflake_migrate_internal.check_sequences(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	r record;
BEGIN
	FOR r IN
		SELECT q.relation::text, q.column_name AS name, q.sequence, q.of_numbers,
			snowflake_migrate_internal.can_set(q.sequence, q.relation) AS can_set,
			has_sequence_privilege(o.relowner, q.sequence, 'UPDATE') AS can_owner_set,
			has_sequence_privilege(o.relowner, q.sequence, 'USAGE') AS can_owner_use,
			o.relowner::regrole AS owner
		FROM snowflake_migrate_internal.merged_sequences(run_) AS q JOIN pg_class AS o ON o.oid = q.relation
	LOOP
		IF NOT r.of_numbers THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, r.relation, r.name,
				format('sequence %s is not set past the values that are merged, as they are no numbers', r.sequence),
				advice => 'Set it past them before the table is written to.');
		ELSIF r.can_set THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', NULL, r.relation, r.name,
				format('sequence %s is set past the values that are merged', r.sequence));
		ELSIF NOT r.can_owner_set THEN
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, r.relation, r.name,
				format('sequence %s is not set past the values that are merged, '
						   'as the owner of the table may not set it', r.sequence),
				/* Whoever owns the table may have named a sequence that is none of his business. */
				advice => CASE WHEN r.can_owner_use
						THEN format('GRANT UPDATE ON SEQUENCE %s TO %s;', r.sequence, r.owner)
					ELSE format('Role %s may not use it: ask what the default is for.', r.owner) END);
		ELSE
			PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, r.relation, r.name,
				format('sequence %s cannot be set past the values that are merged by the current user', r.sequence),
				advice => format('GRANT SELECT, UPDATE ON SEQUENCE %s TO %I;', r.sequence, current_user));
		END IF;
	END LOOP;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_sequences(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds which sequences are set';

/* Exclusion constraints, for which there is no policy, and policies for which there is no constraint. */
CREATE FUNCTION snowflake_migrate_internal.check_policies(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'info', NULL, t.relation::text, x.conname,
			'exclusion constraint: rows that clash in it stop the merge, as no policy is for these')
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			JOIN pg_constraint AS x
				ON x.conrelid IN (SELECT o.oid FROM snowflake_migrate_internal.with_partitions(t.relation) AS o (oid))
		WHERE x.contype = 'x';
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, t.relation::text, a.attname,
			format('the policy %s cannot change a column that is GENERATED ALWAYS AS IDENTITY', p.policy),
			advice => format('ALTER TABLE %s ALTER COLUMN %I SET GENERATED BY DEFAULT; or choose another policy.',
							 t.relation, a.attname))
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			JOIN pg_attribute AS a ON a.attrelid = t.relation AND a.attidentity = 'a' AND a.attname <> ALL (t.key)
			JOIN snowflake_migrate.declared_policies AS p
				ON p.relation = t.relation AND p.policy IN ('keep_source', 'keep_first');
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, t.relation::text, c.name,
			'values of the column cannot be combined: ' || r.reason,
			advice => 'Declare the policy of the table without the column.')
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			JOIN snowflake_migrate_internal.plan_columns AS c ON c.run = run_ AND c.no = t.no AND c.combine IS NOT NULL
			CROSS JOIN LATERAL (
				SELECT coalesce(snowflake_migrate_internal.not_combined(t.relation, c.name),
					(SELECT format('the policy of "%s" combines them otherwise than that of "%s"', p.constraint_name,
								   c.combined_by)
					 FROM snowflake_migrate.declared_policies AS p
					 WHERE p.relation = t.relation AND p.combine ->> c.name <> c.combine
					 ORDER BY p.constraint_name LIMIT 1))) AS r (reason)
		WHERE r.reason IS NOT NULL;
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, t.relation::text, p.constraint_name,
			'a policy is declared for a constraint that does not exist',
			advice => format('DELETE FROM snowflake_migrate.declared_policies '
							 'WHERE relation = %L::regclass AND constraint_name = %L;', t.relation, p.constraint_name))
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			JOIN snowflake_migrate.declared_policies AS p ON p.relation = t.relation
		WHERE NOT EXISTS (
			SELECT FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid
			WHERE i.indrelid = t.relation AND i.indisunique AND x.relname = p.constraint_name);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_policies(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds what is wrong with policies';

/*
 * Columns that are called like a number or a name that a policy changes, and may refer to it.  What only calls itself
 * a name says nothing, unless it says whose.
 */
CREATE FUNCTION snowflake_migrate_internal.check_pointers(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	/* To look for undeclared columns takes long. */
	IF NOT EXISTS (SELECT FROM snowflake_migrate_internal.plan_columns AS k
				   WHERE k.run = run_ AND k.changed_by IN ('rerank', 'next_free', 'suffix')) THEN
		RETURN;
	END IF;
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, c.relation::text, c.name,
			format('may refer to column %I of %s, which the policy %s changes', k.name, t.relation, k.changed_by),
			advice => format('If it does, choose another policy; if not: '
							 'SELECT snowflake_migrate.declare_no_reference(%L, %L);', c.relation, c.name),
			is_question => true)
		FROM snowflake_migrate_internal.plan_columns AS k
			JOIN snowflake_migrate_internal.merged_tables(run_) AS t ON t.no = k.no
			JOIN pg_class AS r ON r.oid = t.relation
			CROSS JOIN LATERAL (
				SELECT snowflake_migrate_internal.word(k.name), snowflake_migrate_internal.word(r.relname)
				) AS w (word, whose)
			JOIN snowflake_migrate_internal.undeclared_columns(run_) AS c
				ON (c.relation, c.name) <> (t.relation, k.name)
					AND c.form = ANY (CASE k.changed_by WHEN 'suffix' THEN '{text}' ELSE '{integer,array}' END::text[])
					AND CASE WHEN k.changed_by = 'suffix' AND w.word IN ('name', 'title', 'label', 'code', 'text')
						THEN c.word IN (SELECT g.word || '_' || w.word
										FROM snowflake_migrate_internal.singulars(w.whose) AS g (word))
						ELSE c.word = w.word OR right(c.word, length(w.word) + 1) = '_' || w.word END
		WHERE k.run = run_ AND k.changed_by IN ('rerank', 'next_free', 'suffix');
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_pointers(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds what may refer to numbers that a policy changes';

/*
 * What PostgreSQL says where a publication keeps a table, or a partition of it, from being updated (UPDATE) or deleted
 * from (DELETE): it has no replica identity, or one without a column that the publication's condition names.  Null
 * where none does.  No catalog says that in one place; PostgreSQL looks when a statement begins, EXPLAIN's too.
 */
CREATE FUNCTION snowflake_migrate_internal.kept_by_publication(relation regclass, command text) RETURNS text
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
	part record;
BEGIN
	IF NOT EXISTS (SELECT FROM pg_publication) THEN
		RETURN NULL;
	END IF;
	FOR part IN
		SELECT c.oid::regclass AS relation, (
				SELECT a.attname FROM pg_attribute AS a
				WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
					AND a.attidentity <> 'a'
				LIMIT 1) AS column_name
		FROM snowflake_migrate_internal.with_partitions(relation) AS p (oid)
			JOIN pg_class AS c ON c.oid = p.oid AND c.relkind = 'r'
	LOOP
		BEGIN
			IF command = 'DELETE' THEN
				EXECUTE format('EXPLAIN DELETE FROM ONLY %s WHERE false', part.relation);
			ELSIF part.column_name IS NOT NULL THEN
				EXECUTE format('EXPLAIN UPDATE ONLY %s SET %I = %2$I WHERE false', part.relation, part.column_name);
			END IF;
		EXCEPTION
			WHEN object_not_in_prerequisite_state OR invalid_column_reference THEN
				RETURN SQLERRM;
			/* Whether it is there is asked elsewhere. */
			WHEN insufficient_privilege THEN
				NULL;
		END;
	END LOOP;
	RETURN NULL;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.kept_by_publication(regclass, text)
	IS 'for snowflake_migrate.merge()''s own use: how a publication keeps a table from being written';

/* Publications that keep rows from being changed, or from being taken back. */
CREATE FUNCTION snowflake_migrate_internal.check_publications(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'error', NULL, t.relation::text, NULL,
			'a publication keeps its rows from being updated, as policies may have to', NULL, k.problem,
			format('ALTER TABLE %s REPLICA IDENTITY FULL;', t.relation))
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			CROSS JOIN LATERAL (
				SELECT snowflake_migrate_internal.kept_by_publication(t.relation, 'UPDATE')
				WHERE EXISTS (SELECT FROM snowflake_migrate.declared_policies AS p
							  WHERE p.relation = t.relation AND p.policy IN ('keep_source', 'keep_first'))
					OR EXISTS (SELECT FROM snowflake_migrate_internal.plan_columns AS c
							   WHERE c.run = run_ AND c.no = t.no AND (c.changed_by = 'rerank' OR c.in_target))
			) AS k (problem)
		WHERE k.problem IS NOT NULL;
	PERFORM snowflake_migrate_internal.add_to_report(run_, 'warning', NULL, t.relation::text, NULL,
			'a publication keeps its rows from being deleted: the merge could not be taken back', NULL, k.problem,
			format('ALTER TABLE %s REPLICA IDENTITY FULL;', t.relation))
		FROM snowflake_migrate_internal.merged_tables(run_) AS t
			CROSS JOIN LATERAL (
				SELECT snowflake_migrate_internal.kept_by_publication(t.relation, 'DELETE')) AS k (problem)
		WHERE k.problem IS NOT NULL;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_publications(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds what publications do not let a merge do';

CREATE FUNCTION snowflake_migrate_internal.check_effects(run_ bigint) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
	PERFORM snowflake_migrate_internal.check_replication_role(run_);
	PERFORM snowflake_migrate_internal.check_triggers(run_);
	PERFORM snowflake_migrate_internal.check_generated(run_);
	PERFORM snowflake_migrate_internal.check_sequences(run_);
	PERFORM snowflake_migrate_internal.check_policies(run_);
	PERFORM snowflake_migrate_internal.check_pointers(run_);
	PERFORM snowflake_migrate_internal.check_publications(run_);
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.check_effects(bigint)
	IS 'for snowflake_migrate.merge()''s own use: finds what the target does by itself';
