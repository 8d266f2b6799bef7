/*
 * The tables that all merges share: runs with their numbers, plans, reports, and records of what became of rows.
 * Each run's own tables, such as its maps, are in a schema of its own, snowflake_merge_RUN.  Whose they are, and who
 * may write here: see owner.sql.
 */

CREATE SEQUENCE snowflake_migrate_internal.run_number;

/*
 * The number of a new run; an error where the role may not merge.  An extension that was dropped may have left the
 * schemas of its runs: their numbers are passed over.
 */
CREATE FUNCTION snowflake_migrate_internal.new_run() RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	run bigint;
BEGIN
	IF NOT has_sequence_privilege('snowflake_migrate_internal.run_number', 'USAGE') THEN
		RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
			MESSAGE = 'permission denied to merge',
			HINT = format('As a superuser: SELECT snowflake_migrate.grant_to(%L);', quote_ident(current_user));
	END IF;
	LOOP
		run := nextval('snowflake_migrate_internal.run_number');
		EXIT WHEN to_regnamespace('snowflake_merge_' || run) IS NULL;
	END LOOP;
	RETURN run;
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.new_run()
	IS 'for snowflake_migrate.merge()''s own use: the number of a new run';

/*
 * The number of a new run whose schema is created with it.  Whoever may create schemas could hold up one of that name,
 * by a transaction that stays open, and of the next numbers too: such a number is given up at once, and with each
 * of them the next is drawn from so many more that nobody can know which.
 */
CREATE FUNCTION snowflake_migrate_internal.new_run_with_schema() RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET lock_timeout = '10ms'
AS $$
DECLARE
	run bigint;
BEGIN
	FOR try IN 0 .. 9 LOOP
		PERFORM nextval('snowflake_migrate_internal.run_number')
			FROM generate_series(1, floor(random() * 4 ^ try)::int);
		run := snowflake_migrate_internal.new_run();
		BEGIN
			EXECUTE format('CREATE SCHEMA %I', 'snowflake_merge_' || run);
			RETURN run;
		EXCEPTION
			WHEN lock_not_available OR duplicate_schema OR unique_violation THEN
				NULL;
			/* check_rights() says so. */
			WHEN insufficient_privilege THEN
				RETURN run;
		END;
	END LOOP;
	RAISE EXCEPTION USING ERRCODE = 'object_in_use', MESSAGE = 'could not create a schema for the maps of a merge',
		DETAIL = format('Another session has created schema "%s" but has not committed.', 'snowflake_merge_' || run),
		HINT = 'Find it in pg_stat_activity. REVOKE CREATE ON DATABASE keeps its role from this.';
END
$$;
COMMENT ON FUNCTION snowflake_migrate_internal.new_run_with_schema()
	IS 'for snowflake_migrate.merge()''s own use: the number of a new run, with its schema';

/*
 * The current role, as no other will ever be: another can be created under its name when it is gone.  In a cluster that
 * a dump was restored into it is another.
 */
CREATE FUNCTION snowflake_migrate_internal.current_role_id() RETURNS oid
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT r.oid FROM pg_roles AS r WHERE r.rolname = current_user $$;
COMMENT ON FUNCTION snowflake_migrate_internal.current_role_id()
	IS 'for snowflake_migrate.merge()''s own use: whose a run is';

CREATE TABLE snowflake_migrate.runs (
	run bigint PRIMARY KEY DEFAULT snowflake_migrate_internal.new_run(),
	sources name[] NOT NULL,			-- what each is called: the first of its schemas
	schemas name[] NOT NULL,			-- schemas[source][target]
	targets name[] NOT NULL,
	nodes bigint[] NOT NULL,
	state text NOT NULL CHECK (state IN ('copying', 'verifying', 'done', 'rolling back', 'rolled back', 'dry run')),
	batch_size int NOT NULL,
	started_at timestamptz NOT NULL,
	mapped_at timestamptz,				-- when all keys had their new ones
	copied_at timestamptz,
	finished_at timestamptz,			-- when it was verified, or taken back
	merged_by name NOT NULL DEFAULT current_user,
	merged_by_id oid NOT NULL DEFAULT snowflake_migrate_internal.current_role_id(),
	target_in_use boolean NOT NULL DEFAULT false,
	accept_warnings boolean NOT NULL DEFAULT false,
	fires_triggers boolean NOT NULL DEFAULT false,	-- its role could not set session_replication_role when it began
	/* What values become on their way to other types, whoever goes on. */
	time_zone text NOT NULL DEFAULT current_setting('TimeZone'),
	lc_monetary text NOT NULL DEFAULT current_setting('lc_monetary')
);
COMMENT ON TABLE snowflake_migrate.runs IS 'the merges into schemas of this database';

/* In which states a run may have rows in the target that it brought. */
CREATE FUNCTION snowflake_migrate_internal.states_to_take_back() RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT '{copying,verifying,done,rolling back}'::text[] $$;
COMMENT ON FUNCTION snowflake_migrate_internal.states_to_take_back()
	IS 'for snowflake_migrate.merge()''s own use: in which states a run may have rows in the target';

CREATE FUNCTION snowflake_migrate_internal.can_be_taken_back(state text) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT state = ANY (snowflake_migrate_internal.states_to_take_back()) $$;
COMMENT ON FUNCTION snowflake_migrate_internal.can_be_taken_back(text)
	IS 'for snowflake_migrate.merge()''s own use: whether a run may have rows in the target';

/* Whether a run in this state is to go on, by the same call. */
CREATE FUNCTION snowflake_migrate_internal.is_unfinished(state text) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT state IN ('copying', 'verifying', 'rolling back') $$;
COMMENT ON FUNCTION snowflake_migrate_internal.is_unfinished(text)
	IS 'for snowflake_migrate.merge()''s own use: whether a run is to go on';

CREATE TABLE snowflake_migrate.nodes (
	node bigint PRIMARY KEY,			-- never to be used again
	run bigint NOT NULL,
	source name NOT NULL
);
COMMENT ON TABLE snowflake_migrate.nodes IS 'the node numbers under which rows were renumbered';

/* A row for each target, and each node number, that there ever was: who uses it locks it (nodes.sql). */
CREATE TABLE snowflake_migrate_internal.targets (
	target name PRIMARY KEY
);

CREATE TABLE snowflake_migrate_internal.plan_tables (
	run bigint NOT NULL,
	no int NOT NULL,
	relation regclass NOT NULL,
	mode text NOT NULL,
	kind text NOT NULL CHECK (kind IN ('id', 'key', 'none')),	-- id: renumbered; key: has one all the same
	key name[] NOT NULL,
	natural_key name[],
	accept text[] NOT NULL,
	ignored_columns name[] NOT NULL,
	created name,
	map_step int NOT NULL,				-- tables that refer to each other in a cycle share it
	copy_step int NOT NULL,				-- likewise, by foreign keys alone
	cyclic boolean NOT NULL,			-- likewise; of a target in use, by declared references, too
	parents int[] NOT NULL DEFAULT '{}',		-- the tables of other steps that its step's foreign keys lead to
	former_rows bigint,					-- of the target, before
	former_state text[],				-- its constraints and triggers, before
	is_ranked boolean NOT NULL DEFAULT false,	-- of a target in use, at the end
	proved boolean NOT NULL DEFAULT false,		-- by a worker, in this proof: what it found is in the report
	condition text,						-- which rows of a source come; null: all
	declared_by name,					-- who declared the condition
	some_moved boolean NOT NULL DEFAULT false,	-- rows that others gave way to have given way themselves
	former_ahead bigint NOT NULL DEFAULT 0,		-- of former_rows, those whose ids lie ahead of the run's beginning
	PRIMARY KEY (run, no)
);
/* Of the table alone: where there are few, one by (run, relation) seems as good for a number as the primary key. */
CREATE INDEX ON snowflake_migrate_internal.plan_tables (relation);
/* Whether there is any is asked for each table. */
CREATE INDEX ON snowflake_migrate_internal.plan_tables (run) WHERE condition IS NOT NULL;

/*
 * One table of a run, for queries that ask for that of each of many rows: by its key.  With statistics from another
 * moment, the planner expects one row of each side, and a join would read all tables of the run for each.  Without a
 * SET clause, and not strict, it is inlined; the OFFSET keeps it apart.
 */
CREATE FUNCTION snowflake_migrate_internal.planned_table(
	run_ bigint,
	no_ int,
	OUT relation regclass,
	OUT kind text,
	OUT key name[],
	OUT copy_step int,
	OUT cyclic boolean) RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT t.relation, t.kind, t.key, t.copy_step, t.cyclic
	FROM snowflake_migrate_internal.plan_tables AS t
	WHERE t.run = run_ AND t.no = no_
	OFFSET 0;
END;
COMMENT ON FUNCTION snowflake_migrate_internal.planned_table(bigint, int)
	IS 'for snowflake_migrate.merge()''s own use: one table of a run';

CREATE TABLE snowflake_migrate_internal.plan_columns (
	run bigint NOT NULL,
	no int NOT NULL,
	name name NOT NULL,
	position int NOT NULL,
	generated boolean NOT NULL,
	changed_by text,					-- the policy that may change it
	is_lost boolean NOT NULL DEFAULT false,		-- null in the rows that lost_NO has
	in_target boolean NOT NULL DEFAULT false,		-- in rows of the target, too
	combine text,						-- how values of rows that become one are combined
	combined_by name,					-- by which constraint's policy
	declared_by name,					-- and by whom
	kept_conditions text[],				-- of references to keys that stay; an element is null: of one without any
	kept_declared_by name[],			-- who declared these conditions
	PRIMARY KEY (run, no, name)
);

CREATE TABLE snowflake_migrate_internal.plan_references (
	run bigint NOT NULL,
	no int NOT NULL,
	id int NOT NULL,					-- in the run
	name name NOT NULL,
	referenced int NOT NULL,			-- a table's no, whose map applies
	condition text,
	path text,
	elements boolean NOT NULL,			-- of an array
	dangling text NOT NULL,
	declared boolean NOT NULL,
	declared_by name,					-- null: a foreign key
	PRIMARY KEY (run, id)
);
CREATE INDEX ON snowflake_migrate_internal.plan_references (run, no);

/* A table of a source, and how far it is copied, or taken back. */
CREATE TABLE snowflake_migrate_internal.plan_sources (
	run bigint NOT NULL,
	no int NOT NULL,
	source int NOT NULL,				-- its place in sources
	relation regclass NOT NULL,
	rows_to_do bigint NOT NULL DEFAULT 0,
	rows_done bigint NOT NULL DEFAULT 0,
	position text,						-- the last batch's last key, of the first column that can be compared
	done boolean NOT NULL DEFAULT false,
	busy interval NOT NULL DEFAULT '0',
	copied_by xid8[] NOT NULL DEFAULT '{}',		-- the transactions
	taken_back_by xid8[] NOT NULL DEFAULT '{}',	-- likewise
	batch_rows int,						-- of the next batch, where one has failed
	failures int NOT NULL DEFAULT 0,	-- since the last batch
	is_split boolean NOT NULL DEFAULT false,	-- what is left of it is in plan_batches
	not_brought text,					-- when it was taken back: a condition on the entries m of its map
	PRIMARY KEY (run, no, source)
);

/* An index that is dropped before rows are copied, and built again after them; see indexes.sql. */
CREATE TABLE snowflake_migrate_internal.plan_indexes (
	run bigint NOT NULL,
	no int NOT NULL,
	id int NOT NULL,					-- in the run: those that others are attached to come before these
	root int NOT NULL,					-- the id of the index of the partitioned table; else its own
	relation regclass NOT NULL,			-- the table, or a partition
	name name NOT NULL,
	definition text NOT NULL,			-- the statement that builds it
	statements text[] NOT NULL,			-- and those that give it what else it had
	tablespace text NOT NULL,			-- empty: the database's
	former jsonb NOT NULL,				-- all that it had
	state text NOT NULL CHECK (state IN ('planned', 'kept', 'dropped', 'built', 'there')),
	problem jsonb,						-- why this call could not build it
	PRIMARY KEY (run, id)
);
CREATE INDEX ON snowflake_migrate_internal.plan_indexes (run, no);

/*
 * Ranges of a table of a source, which several workers copy; settle_batches() counts those that are copied in its row
 * of plan_sources, and removes them here.
 */
CREATE TABLE snowflake_migrate_internal.plan_batches (
	run bigint NOT NULL,
	no int NOT NULL,
	source int NOT NULL,
	batch int NOT NULL,
	after text,							-- the last key of the one before; null: none is before it
	position text,						-- its own last key; null: none is behind it
	rows_done bigint NOT NULL DEFAULT 0,
	busy interval NOT NULL DEFAULT '0',
	copied_by xid8,						-- null: it is to be copied
	PRIMARY KEY (run, no, source, batch)
);
CREATE INDEX ON snowflake_migrate_internal.plan_batches (run, no, source, batch) WHERE copied_by IS NULL;

CREATE TABLE snowflake_migrate.report (
	run bigint NOT NULL,
	severity text NOT NULL CHECK (severity IN ('error', 'warning', 'info')),
	source name,
	relation text,
	object text,
	problem text NOT NULL,
	count bigint,
	example text,
	advice text,
	is_question boolean NOT NULL DEFAULT false		-- a merge does not begin before it is answered
);
COMMENT ON TABLE snowflake_migrate.report IS 'what a merge found and did';

CREATE TABLE snowflake_migrate.records (
	run bigint NOT NULL,
	source name,						-- null: a row of the target
	relation text NOT NULL,
	constraint_name name NOT NULL,
	policy text NOT NULL,
	old_key text,
	new_key text,
	column_name name,
	old_value text,
	new_value text,
	former_row jsonb
);
COMMENT ON TABLE snowflake_migrate.records IS 'what the policies of a merge did to each row';
CREATE INDEX ON snowflake_migrate.records (run, relation);
CREATE INDEX ON snowflake_migrate.report (run, relation);

SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.runs', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate_internal.run_number', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.nodes', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate_internal.plan_tables', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate_internal.plan_columns', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate_internal.plan_references', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate_internal.plan_sources', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate_internal.plan_indexes', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate_internal.plan_batches', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.report', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate.records', '');
