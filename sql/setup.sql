-- The extension itself: where it is installed, who may call what, and what the
-- planner is told of its functions.  Leaves it installed for the other tests.

-- in a schema of one's choice, without that schema on the search path
CREATE SCHEMA ids;
CREATE EXTENSION snowflake SCHEMA ids;
SELECT e.extversion, n.nspname
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'snowflake';
\set VERBOSITY sqlstate
SELECT snowflake_nextval();
\set VERBOSITY default
SELECT ids.snowflake_nextval() > 0 AS made;
SELECT ids.snowflake_node(ids.snowflake_nextval());
SELECT count(*) FROM ids.snowflake_layouts;
SELECT node_id FROM ids.snowflake_stat;

-- nothing outside that schema but what the extension itself calls
SELECT d.classid::regclass, count(*)
FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
WHERE e.extname = 'snowflake' AND d.deptype = 'e'
	AND NOT coalesce((SELECT pronamespace FROM pg_proc WHERE d.classid = 'pg_proc'::regclass AND oid = d.objid),
					 (SELECT relnamespace FROM pg_class WHERE d.classid = 'pg_class'::regclass AND oid = d.objid),
					 (SELECT typnamespace FROM pg_type WHERE d.classid = 'pg_type'::regclass AND oid = d.objid),
					 (SELECT oid FROM pg_namespace WHERE d.classid = 'pg_namespace'::regclass AND oid = d.objid))
		IN ('ids'::regnamespace, 'snowflake_internal'::regnamespace)
GROUP BY 1;

-- a default keeps it from being dropped
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT ids.snowflake_nextval());
DROP EXTENSION snowflake;
DROP TABLE orders;
DROP EXTENSION snowflake;
DROP SCHEMA ids;

-- again, and then nothing is left of the first time but the ids
CREATE EXTENSION snowflake;
CREATE EXTENSION snowflake;

-- what users call, and what the planner is told of it: v STABLE without a layout, i IMMUTABLE with one
SELECT p.oid::regprocedure AS function,
	pg_get_function_result(p.oid) AS result,
	p.provolatile AS volatile, p.proparallel AS parallel, p.proisstrict AS strict,
	p.prosecdef AS definer, p.pronargdefaults AS defaults
FROM pg_proc p
	JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
	JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
WHERE e.extname = 'snowflake' AND p.pronamespace = 'public'::regnamespace
ORDER BY p.oid::regprocedure::text COLLATE "C";

-- everything says what it is
SELECT p.oid::regprocedure AS without_comment
FROM pg_proc p WHERE p.oid::regprocedure::text ~ 'snowflake' AND obj_description(p.oid, 'pg_proc') IS NULL;

-- not for everybody
CREATE ROLE regress_snowflake_user;
SELECT p.oid::regprocedure AS not_for_public
FROM pg_proc p
WHERE p.oid::regprocedure::text ~ 'snowflake' AND NOT has_function_privilege('regress_snowflake_user', p.oid, 'EXECUTE')
ORDER BY p.oid::regprocedure::text COLLATE "C";

SET ROLE regress_snowflake_user;
SELECT snowflake_nextval() > 0 AS made;
SELECT count(*) FROM snowflake_nextval_batch(10);
SELECT snowflake_lastval() > 0 AS made;
SELECT node_id FROM snowflake_stat;
SELECT count(*) FROM snowflake_layouts;
-- of its tables and views, the registry's are not for others
SELECT c.relname, has_table_privilege(c.oid, 'SELECT') AS can_read,
	has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') AS can_change
FROM pg_class c
	JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
	JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
WHERE e.extname = 'snowflake'
ORDER BY c.relname COLLATE "C";
SELECT snowflake_advance_past(1);
SELECT snowflake_set_reserved_until(now());
SELECT snowflake_accept_clock();
SELECT snowflake_stat_reset();
RESET ROLE;

-- what an owner grants can be called, but for the limit
GRANT EXECUTE ON FUNCTION snowflake_advance_past, snowflake_set_reserved_until, snowflake_accept_clock, snowflake_stat_reset
	TO regress_snowflake_user;
SET ROLE regress_snowflake_user;
SELECT snowflake_advance_past(1);
SELECT snowflake_accept_clock();
SELECT snowflake_stat_reset();
SELECT snowflake_set_reserved_until(now());
RESET ROLE;
REVOKE EXECUTE ON FUNCTION snowflake_advance_past, snowflake_set_reserved_until, snowflake_accept_clock, snowflake_stat_reset
	FROM regress_snowflake_user;
DROP ROLE regress_snowflake_user;

-- only superusers may install it
DROP EXTENSION snowflake;
CREATE ROLE regress_snowflake_user;
SELECT format('GRANT CREATE ON DATABASE %I TO regress_snowflake_user', current_database()) \gexec
SET ROLE regress_snowflake_user;
CREATE EXTENSION snowflake;
RESET ROLE;
DROP OWNED BY regress_snowflake_user;
DROP ROLE regress_snowflake_user;

--
-- The second extension, in schemas of its own
--
CREATE EXTENSION snowflake_migrate;
CREATE EXTENSION snowflake_migrate CASCADE;
SELECT e.extname, e.extversion, n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname LIKE 'snowflake%' ORDER BY e.extname;
DROP EXTENSION snowflake;

-- what users call, as \df shows it
SELECT p.oid::regprocedure AS function, pg_get_function_arguments(p.oid) AS arguments, pg_get_function_result(p.oid) AS result
FROM pg_proc p WHERE p.pronamespace = 'snowflake_migrate'::regnamespace
ORDER BY p.oid::regprocedure::text COLLATE "C";
SELECT c.relname, c.relkind FROM pg_class c
WHERE c.relnamespace = 'snowflake_migrate'::regnamespace AND c.relkind IN ('r', 'v', 'S') ORDER BY c.relname COLLATE "C";

-- nothing of it is outside of these two
SELECT d.classid::regclass, count(*)
FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
WHERE e.extname = 'snowflake_migrate' AND d.deptype = 'e'
	AND NOT coalesce((SELECT pronamespace FROM pg_proc WHERE d.classid = 'pg_proc'::regclass AND oid = d.objid),
					 (SELECT relnamespace FROM pg_class WHERE d.classid = 'pg_class'::regclass AND oid = d.objid),
					 (SELECT typnamespace FROM pg_type WHERE d.classid = 'pg_type'::regclass AND oid = d.objid),
					 (SELECT oid FROM pg_namespace WHERE d.classid = 'pg_namespace'::regclass AND oid = d.objid))
		IN ('snowflake_migrate'::regnamespace, 'snowflake_migrate_internal'::regnamespace)
GROUP BY 1;

-- everything says what it is
SELECT p.oid::regprocedure AS without_comment
FROM pg_proc p WHERE p.oid::regprocedure::text ~ '^snowflake_migrate' AND obj_description(p.oid, 'pg_proc') IS NULL;

-- rights for a role that is to migrate
CREATE ROLE regress_snowflake_user;
SELECT snowflake_migrate.grant_to('regress_snowflake_user');
SELECT c.oid::regclass, has_table_privilege('regress_snowflake_user', c.oid, 'SELECT') AS can_read,
	has_table_privilege('regress_snowflake_user', c.oid, 'INSERT, UPDATE, DELETE') AS can_change
FROM pg_class c WHERE c.relnamespace IN ('snowflake_migrate'::regnamespace, 'snowflake_migrate_internal'::regnamespace) AND c.relkind IN ('r', 'v')
ORDER BY c.oid::regclass::text COLLATE "C";
SELECT snowflake_migrate.grant_to('regress_snowflake_nobody');
DROP OWNED BY regress_snowflake_user;
REVOKE SET ON PARAMETER session_replication_role FROM regress_snowflake_user;
DROP ROLE regress_snowflake_user;
