/*
 * A registry in this database: who may issue ids under which node number, up to
 * when.  Servers whose snowflake.registry names this database read and write it
 * through the functions below, as a role that needs USAGE on the schema and EXECUTE
 * on the three of them, and no other right.
 *
 * What may be written is decided by the servers, by the rules in core/claim.h.
 * Here a claim is only written where it is still what was read, and where the
 * registry's own rules, in the same file, admit it: granted_until never goes back but
 * by its own holder's release, nor runs further ahead of this server's clock than
 * snowflake.max_forward_jump; and a holder that is alive keeps its number.
 *
 * Such a role is not trusted further than that (doc/security.md).  So every text that
 * comes from it is compared under COLLATE "C", as it may come with a collation under
 * which all texts are equal; its arguments are checked; and no row is locked for it
 * that it may not write, with two exceptions: after the clock was set back, whoever
 * reads or lists claims shortens others' lives (registry_shorten_lives()); and while
 * the registry is unsettled, others raise a living holder's granted_until.  No function
 * waits longer for a lock than its lock_timeout: but for these two, a transaction that
 * is left open costs others a moment, not their claims.
 */

CREATE TABLE snowflake_internal.registry_claim (
	registry_group text COLLATE "C" NOT NULL,
	node bigint NOT NULL,
	generation bigint NOT NULL,			-- grows with each grant, renewal, release and assertion
	holder text COLLATE "C",			-- a nonce; null: nobody
	made_by name NOT NULL,				-- the role that wrote it last: the holder's, if any; see registry_is_of()
	host text NOT NULL,
	port int NOT NULL,
	data_directory text NOT NULL,
	since timestamptz NOT NULL,			-- when the holder was granted it
	granted_from timestamptz NOT NULL,	-- granted_until before that: its holder's release goes no further back
	granted_until timestamptz NOT NULL,	-- the time in ids, exclusive: what a later grant starts above
	own_until timestamptz NOT NULL DEFAULT '-infinity',	-- that, as its holder was granted it: without what others told
	alive_until timestamptz NOT NULL,	-- by this server's clock; past that, or released: another may have it
	claim_window interval NOT NULL,
	write_number bigint NOT NULL,		-- of the newest write; see snowflake_internal.registry_memory()
	is_doubtful boolean NOT NULL DEFAULT false,	-- claimed anew while unsettled: somebody else may know more of it
	incarnation bigint NOT NULL DEFAULT 0,	-- settled, which made the grant; another one: see registry_fence()
	PRIMARY KEY (registry_group, node)
);
CREATE INDEX registry_claim_write_number ON snowflake_internal.registry_claim (write_number);
COMMENT ON TABLE snowflake_internal.registry_claim IS 'the claims on node numbers; see the view snowflake_claims';

/* The layout of a group's ids, from its first claim on. */
CREATE TABLE snowflake_internal.registry_group (
	registry_group text COLLATE "C" PRIMARY KEY,
	layout text COLLATE "C" NOT NULL
);
COMMENT ON TABLE snowflake_internal.registry_group IS 'the layout in which the servers of a group make ids';

/*
 * Where this registry was used last.  Another place (restored, failed over, copied,
 * its table's content put back) may lack what the holders know; so may one that was
 * never used: until it has settled it grants nothing anew, so that they can tell.  A dump
 * that is restored may leave two rows, which is another place, too.
 */
CREATE TABLE snowflake_internal.registry_server (
	system_identifier bigint NOT NULL,
	timeline text NOT NULL,
	started_at timestamptz NOT NULL,
	database oid NOT NULL,
	claims oid NOT NULL,				-- the table
	claims_file oid NOT NULL,
	incarnation bigint NOT NULL,		-- the memory that belongs to it has the same
	settled_at bigint NOT NULL,			-- on CLOCK_BOOTTIME, microseconds: from then on it grants anew
	others_settled_at bigint NOT NULL	-- and from then on what another held
);
COMMENT ON TABLE snowflake_internal.registry_server IS 'where the registry was when it was used last';
/* For DELETE where a publication has all tables. */
ALTER TABLE snowflake_internal.registry_server REPLICA IDENTITY FULL;

/* What a subscription brings is another registry's, and must not take the place of what this one has granted. */
CREATE FUNCTION snowflake_internal.registry_keep_own() RETURNS trigger
AS 'MODULE_PATHNAME', 'snowflake_registry_keep_own' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION snowflake_internal.registry_keep_own() IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_keep_own() FROM PUBLIC;

CREATE TRIGGER keep_own BEFORE INSERT OR UPDATE OR DELETE ON snowflake_internal.registry_claim
	FOR EACH ROW EXECUTE FUNCTION snowflake_internal.registry_keep_own();
CREATE TRIGGER keep_own BEFORE INSERT OR UPDATE OR DELETE ON snowflake_internal.registry_group
	FOR EACH ROW EXECUTE FUNCTION snowflake_internal.registry_keep_own();
CREATE TRIGGER keep_own BEFORE INSERT OR UPDATE OR DELETE ON snowflake_internal.registry_server
	FOR EACH ROW EXECUTE FUNCTION snowflake_internal.registry_keep_own();
CREATE TRIGGER keep_all BEFORE TRUNCATE ON snowflake_internal.registry_claim
	FOR EACH STATEMENT EXECUTE FUNCTION snowflake_internal.registry_keep_own();
CREATE TRIGGER keep_all BEFORE TRUNCATE ON snowflake_internal.registry_group
	FOR EACH STATEMENT EXECUTE FUNCTION snowflake_internal.registry_keep_own();
CREATE TRIGGER keep_all BEFORE TRUNCATE ON snowflake_internal.registry_server
	FOR EACH STATEMENT EXECUTE FUNCTION snowflake_internal.registry_keep_own();
ALTER TABLE snowflake_internal.registry_claim ENABLE ALWAYS TRIGGER keep_all;
ALTER TABLE snowflake_internal.registry_group ENABLE ALWAYS TRIGGER keep_all;
ALTER TABLE snowflake_internal.registry_server ENABLE ALWAYS TRIGGER keep_all;
ALTER TABLE snowflake_internal.registry_claim ENABLE ALWAYS TRIGGER keep_own;
ALTER TABLE snowflake_internal.registry_group ENABLE ALWAYS TRIGGER keep_own;
ALTER TABLE snowflake_internal.registry_server ENABLE ALWAYS TRIGGER keep_own;

SELECT pg_catalog.pg_extension_config_dump('snowflake_internal.registry_claim', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_internal.registry_group', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_internal.registry_server', '');

CREATE VIEW @extschema@.snowflake_claims AS
SELECT registry_group, node,
	CASE WHEN holder IS NULL THEN 'free'
		 WHEN alive_until > pg_catalog.clock_timestamp() THEN 'held'
		 ELSE 'expired' END AS state,
	granted_until, host, port, data_directory, since, alive_until, generation, made_by
  FROM snowflake_internal.registry_claim;
COMMENT ON VIEW @extschema@.snowflake_claims IS 'who holds which node number, in the registry in this database';

/* For the functions below, in C: see src/registry/server.cpp. */

CREATE FUNCTION snowflake_internal.registry_max_forward_jump() RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_registry_max_forward_jump' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_internal.registry_max_forward_jump() IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_max_forward_jump() FROM PUBLIC;

CREATE FUNCTION snowflake_internal.registry_memory(
	OUT incarnation bigint,
	OUT committed bigint,
	OUT asked bigint,
	OUT boot_clock bigint,
	OUT shortest_settling bigint,
	OUT kept_until bigint) RETURNS record
AS 'MODULE_PATHNAME', 'snowflake_registry_memory' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_internal.registry_memory() IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_memory() FROM PUBLIC;

/* A claim window is this long at most: as longest_window_us in core/claim.h. */
CREATE FUNCTION snowflake_internal.registry_longest_window() RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT interval '10 min' $$;
COMMENT ON FUNCTION snowflake_internal.registry_longest_window() IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_longest_window() FROM PUBLIC;

/* An error where no claim window is that long: in seconds, as months and days count otherwise elsewhere. */
CREATE FUNCTION snowflake_internal.registry_check_window(claim_window interval) RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	IF (extract(epoch FROM claim_window)
		BETWEEN 1 AND extract(epoch FROM snowflake_internal.registry_longest_window())) IS NOT TRUE THEN
		RAISE EXCEPTION 'claim window must be from 1 s to 10 min, not %', claim_window
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_internal.registry_check_window(interval) IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_check_window(interval) FROM PUBLIC;

CREATE FUNCTION snowflake_internal.registry_note(newest bigint) RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_registry_note' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_internal.registry_note(bigint) IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_note(bigint) FROM PUBLIC;

CREATE FUNCTION snowflake_internal.registry_begin(newest bigint) RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_registry_begin' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_internal.registry_begin(bigint) IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_begin(bigint) FROM PUBLIC;

CREATE FUNCTION snowflake_internal.registry_keep_unsettled(is_kept boolean) RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_registry_keep_unsettled' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_internal.registry_keep_unsettled(boolean) IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_keep_unsettled(boolean) FROM PUBLIC;

CREATE FUNCTION snowflake_internal.registry_draw(newest bigint) RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_registry_draw' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_internal.registry_draw(bigint) IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_draw(bigint) FROM PUBLIC;

CREATE FUNCTION snowflake_internal.registry_wrote(number bigint) RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_registry_wrote' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_internal.registry_wrote(bigint) IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_wrote(bigint) FROM PUBLIC;

CREATE FUNCTION snowflake_internal.registry_admit(
	form text,
	node bigint,
	known_generation bigint,
	known_holder text,
	known_alive boolean,
	known_from bigint,
	known_until bigint,
	me text,
	expected_generation bigint,
	generation bigint,
	granted_until bigint,
	furthest_of_others bigint,
	is_others_role boolean) RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_registry_admit' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_internal.registry_admit IS
	'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_admit FROM PUBLIC;

/*
 * Unix microseconds, from 0 to far beyond all that is ever granted: a row that somebody has written by hand, with
 * infinity, say, must not fail those who read all rows.
 */
CREATE FUNCTION snowflake_internal.registry_us(moment timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN least(greatest(extract(epoch FROM moment) OPERATOR(pg_catalog.*) 1000000::pg_catalog.numeric,
					  0::pg_catalog.numeric), 9000000000000000000::pg_catalog.numeric)::pg_catalog.int8;
COMMENT ON FUNCTION snowflake_internal.registry_us(timestamptz) IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_us(timestamptz) FROM PUBLIC;

/*
 * May whoever is logged in write what this role has claimed?  That role may, the registry's owner, and a superuser.
 * A role that is not there any more (it was renamed, or the registry was restored where it never was) keeps nobody
 * from a claim: then the holder's nonce decides alone.  By name, as a dump keeps names.
 */
CREATE FUNCTION snowflake_internal.registry_is_of(made_by name) RETURNS boolean
LANGUAGE sql STABLE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT $1 = session_user OR pg_has_role(session_user, c.relowner, 'MEMBER') OR
		   NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = $1)
	  FROM pg_class AS c WHERE c.oid = 'snowflake_internal.registry_claim'::regclass
$$;
COMMENT ON FUNCTION snowflake_internal.registry_is_of(name) IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_is_of(name) FROM PUBLIC;

/* Where the registry is now; when it has settled is for the caller to say. */
CREATE FUNCTION snowflake_internal.registry_place() RETURNS snowflake_internal.registry_server
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT c.system_identifier, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), pg_postmaster_start_time(),
		   d.oid, t.oid, pg_relation_filenode(t.oid), 0::bigint, 0::bigint, 0::bigint
	  FROM pg_control_system() AS c, pg_database AS d, pg_class AS t
	 WHERE d.datname = current_database() AND t.oid = 'snowflake_internal.registry_claim'::regclass
$$;
COMMENT ON FUNCTION snowflake_internal.registry_place() IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_place() FROM PUBLIC;

/*
 * How long it takes until all holders have been heard, microseconds: the longest claim window, 10 min at most.  A
 * holder that was out of reach for longer than that, when others were not, has long lost what it held.
 */
CREATE FUNCTION snowflake_internal.registry_settling(claim_window interval, shortest bigint) RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT least(extract(epoch FROM snowflake_internal.registry_longest_window()) * 1000000,
		greatest(shortest, extract(epoch FROM greatest(claim_window, (
		SELECT max(c.claim_window) FROM snowflake_internal.registry_claim AS c
		WHERE c.holder IS NOT NULL AND c.alive_until > (
			SELECT max(l.alive_until) FROM snowflake_internal.registry_claim AS l
			WHERE l.holder IS NOT NULL AND isfinite(l.alive_until)
		) - snowflake_internal.registry_longest_window()))) * 1000000))::bigint
$$;
COMMENT ON FUNCTION snowflake_internal.registry_settling(interval, bigint) IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_settling(interval, bigint) FROM PUBLIC;

/*
 * Notices that the registry may have forgotten something, and returns for how long it grants nothing anew, and for
 * how long nothing that another held, microseconds; claim_window is the asking server's.
 *
 * Whoever notices it first says so when its transaction is committed.  Until then others find the registry unsettled,
 * in an incarnation 0: they renew what they hold, and what they have read counts no more as soon as that is done.
 */
CREATE FUNCTION snowflake_internal.registry_unsettled(
	claim_window interval,
	OUT unsettled bigint,
	OUT others_unsettled bigint,
	OUT incarnation bigint) RETURNS record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '20ms'		-- a renewal asks four times, and has a third of the window
AS $$
#variable_conflict use_column
DECLARE
	ask_again_after CONSTANT bigint := 1000000;
	here snowflake_internal.registry_server;
	known snowflake_internal.registry_server;
	memory record;
	rows_known bigint;
	newest bigint;
	is_here boolean;
	is_whole boolean;
BEGIN
	-- An older snapshot would not see what the memory knows of.
	IF current_setting('transaction_isolation') <> 'read committed' THEN
		RAISE EXCEPTION 'cannot use a snowflake registry in a transaction that is not READ COMMITTED'
			USING ERRCODE = 'invalid_transaction_state',
				  DETAIL = format('It is %s.', current_setting('transaction_isolation'));
	END IF;

	FOR attempt IN 1..2 LOOP
		-- Before what it is compared with.
		SELECT * INTO memory FROM snowflake_internal.registry_memory();
		SELECT * INTO here FROM snowflake_internal.registry_place();
		SELECT count(*) INTO rows_known FROM snowflake_internal.registry_server;
		SELECT * INTO known FROM snowflake_internal.registry_server LIMIT 1;
		SELECT coalesce(max(c.write_number), 0) INTO newest FROM snowflake_internal.registry_claim AS c;
		-- It is where it was ...
		is_here := coalesce(rows_known = 1 AND
			(known.system_identifier, known.timeline, known.database) =
			(here.system_identifier, here.timeline, here.database) AND
			(known.claims, known.claims_file) = (here.claims, here.claims_file), false);
		incarnation := known.incarnation;
		-- ... and has all that it ever committed.
		is_whole := coalesce(is_here AND known.incarnation = memory.incarnation AND newest >= memory.committed, false);
		IF is_whole AND known.started_at = here.started_at THEN
			-- Whoever reads it relies upon it, also where its writer had no answer.
			PERFORM snowflake_internal.registry_note(newest);
			unsettled := greatest(known.settled_at - memory.boot_clock, memory.kept_until - memory.boot_clock, 0);
			others_unsettled := greatest(known.others_settled_at - memory.boot_clock, unsettled);
			RETURN;
		ELSIF is_here AND known.started_at = here.started_at AND memory.incarnation IS NULL THEN
			-- Without its memory it can't tell what it has, for as long as that lasts.
			unsettled := memory.shortest_settling;
			others_unsettled := memory.shortest_settling;
			RETURN;
		END IF;
		BEGIN
			LOCK TABLE snowflake_internal.registry_server IN SHARE ROW EXCLUSIVE MODE;
		EXCEPTION WHEN lock_not_available THEN
			unsettled := ask_again_after;
			others_unsettled := ask_again_after;
			incarnation := 0;
			RETURN;
		END;
	END LOOP;

	-- From now on, not from the server's start: until now its holders may not have reached it.
	others_unsettled := snowflake_internal.registry_settling(claim_window, memory.shortest_settling);
	here.others_settled_at := memory.boot_clock + others_unsettled;
	IF is_whole AND memory.boot_clock - memory.asked < memory.shortest_settling THEN
		-- Whoever took its place while it was stopped has granted nothing anew in so short a time, but may have
		-- renewed claims.
		here.settled_at := known.settled_at;
		here.incarnation := known.incarnation;
		PERFORM snowflake_internal.registry_note(newest);
	ELSE
		here.settled_at := here.others_settled_at;
		here.incarnation := snowflake_internal.registry_begin(newest);
	END IF;
	DELETE FROM snowflake_internal.registry_server;
	INSERT INTO snowflake_internal.registry_server VALUES (here.*);
	incarnation := here.incarnation;
	unsettled := greatest(here.settled_at - memory.boot_clock, memory.kept_until - memory.boot_clock, 0);
	others_unsettled := greatest(others_unsettled, unsettled);
END
$$;
COMMENT ON FUNCTION snowflake_internal.registry_unsettled IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_unsettled FROM PUBLIC;

/*
 * After the clock was set back, nobody lives longer than its window from now on.  node: null for the whole group.
 * Whoever only reads waits for no row.
 */
CREATE FUNCTION snowflake_internal.registry_shorten_lives(registry_group text, node bigint) RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
	WITH late AS MATERIALIZED (
		SELECT c.node, w.longest
		  FROM snowflake_internal.registry_claim AS c,
			   LATERAL (SELECT least(greatest(c.claim_window, interval '0'),
									 snowflake_internal.registry_longest_window())) AS w (longest)
		 WHERE c.registry_group = $1 COLLATE "C" AND ($2 IS NULL OR c.node = $2)
		   AND c.alive_until > clock_timestamp() + w.longest
		   FOR UPDATE OF c SKIP LOCKED
	)
	UPDATE snowflake_internal.registry_claim AS c SET alive_until = clock_timestamp() + late.longest
	  FROM late
	 WHERE c.registry_group = $1 COLLATE "C" AND c.node = late.node
$$;
COMMENT ON FUNCTION snowflake_internal.registry_shorten_lives(text, bigint) IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_shorten_lives(text, bigint) FROM PUBLIC;

/* The number of a new write. */
CREATE FUNCTION snowflake_internal.registry_number() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_internal.registry_draw(coalesce(max(c.write_number), 0))
	  FROM snowflake_internal.registry_claim AS c
$$;
COMMENT ON FUNCTION snowflake_internal.registry_number() IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_number() FROM PUBLIC;

/*
 * One row: this server's clock and what it grants by, and the claim, or nulls
 * where there is none.  Times and durations in microseconds, Unix time.  me is the
 * asking server's nonce; another holder's is not told: it is 'other'.
 */
CREATE FUNCTION snowflake_internal.registry_read(
	registry_group text,
	node bigint,
	me text,
	claim_window interval,
	OUT clock bigint,
	OUT max_forward_jump bigint,
	OUT unsettled bigint,
	OUT incarnation bigint,
	OUT layout text,
	OUT generation bigint,
	OUT holder text,
	OUT host text,
	OUT port int,
	OUT data_directory text,
	OUT since bigint,
	OUT granted_until bigint,
	OUT alive boolean) RETURNS record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '200ms'
AS $$
#variable_conflict use_column
DECLARE
	wait record;
BEGIN
	PERFORM snowflake_internal.registry_check_window(claim_window);
	-- Without months and days, which compare otherwise than they count.
	claim_window := make_interval(secs => extract(epoch FROM claim_window)::double precision);
	SELECT * INTO wait FROM snowflake_internal.registry_unsettled(claim_window);
	incarnation := wait.incarnation;
	clock := extract(epoch FROM clock_timestamp()) * 1000000;
	max_forward_jump := snowflake_internal.registry_max_forward_jump();
	SELECT g.layout INTO layout FROM snowflake_internal.registry_group AS g WHERE g.registry_group = $1 COLLATE "C";
	PERFORM snowflake_internal.registry_shorten_lives($1, $2);
	SELECT c.generation, CASE WHEN c.holder <> me COLLATE "C" THEN 'other' ELSE c.holder END,
		   c.host, c.port, c.data_directory,
		   snowflake_internal.registry_us(c.since), snowflake_internal.registry_us(c.granted_until),
		   c.holder IS NOT NULL AND c.alive_until > clock_timestamp()
	  INTO generation, holder, host, port, data_directory, since, granted_until, alive
	  FROM snowflake_internal.registry_claim AS c
	 WHERE c.registry_group = $1 COLLATE "C" AND c.node = $2;
	unsettled := CASE WHEN holder = 'other' COLLATE "C" THEN wait.others_unsettled ELSE wait.unsettled END;
END
$$;
COMMENT ON FUNCTION snowflake_internal.registry_read IS 'reads a claim, for the server that wants it';
REVOKE ALL ON FUNCTION snowflake_internal.registry_read FROM PUBLIC;

/* The group's claims in order of their numbers, as far as choosing among them needs it. */
CREATE FUNCTION snowflake_internal.registry_list(registry_group text)
RETURNS TABLE (node bigint, granted_until bigint, freed bigint, free boolean)
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '200ms'
SET enable_seqscan = off		-- other groups' rows, dead ones too, may be far more, and statistics be old
AS $$
	-- So that its locks do not outlive the session: see finish_write() in server.cpp.
	SELECT FROM snowflake_internal.registry_memory();
	SELECT snowflake_internal.registry_shorten_lives($1, NULL);
	-- Those that a holder has left without a word come last: a registry that was started again gives them to nobody
	-- for a while.
	SELECT c.node, snowflake_internal.registry_us(c.granted_until),
		   snowflake_internal.registry_us(CASE WHEN c.holder IS NULL THEN c.alive_until ELSE clock_timestamp() END),
		   c.holder IS NULL OR c.alive_until <= clock_timestamp()
	  FROM snowflake_internal.registry_claim AS c
	 WHERE c.registry_group = $1 COLLATE "C" AND c.node >= 0
	 ORDER BY c.node
$$;
COMMENT ON FUNCTION snowflake_internal.registry_list IS 'lists a group''s claims, for a server that wants any';
REVOKE ALL ON FUNCTION snowflake_internal.registry_list FROM PUBLIC;

/* A group's first claim sets its layout; another one is refused from then on. */
CREATE FUNCTION snowflake_internal.registry_keep_layout(registry_group text, layout text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	group_layout text;
BEGIN
	IF NOT EXISTS (SELECT FROM snowflake_internal.registry_group AS g WHERE g.registry_group = $1 COLLATE "C") THEN
		-- Nobody could ever use a group whose layout is none.
		IF $2 <> snowflake_internal.layout_spec($2) COLLATE "C" THEN
			RAISE EXCEPTION 'layout of a snowflake registry''s group must be written out'
				USING ERRCODE = 'invalid_parameter_value', DETAIL = format('It is "%s".', $2);
		END IF;
		INSERT INTO snowflake_internal.registry_group VALUES ($1, $2) ON CONFLICT DO NOTHING;
	END IF;
	SELECT g.layout INTO group_layout FROM snowflake_internal.registry_group AS g
		WHERE g.registry_group = $1 COLLATE "C";
	IF group_layout <> $2 COLLATE "C" THEN
		RAISE EXCEPTION 'layout does not match that of the snowflake registry''s group'
			USING ERRCODE = 'object_not_in_prerequisite_state',
				  DETAIL = format('Group "%s" has the layout "%s", not "%s".', $1, group_layout, $2);
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_internal.registry_keep_layout(text, text) IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_keep_layout(text, text) FROM PUBLIC;

/*
 * Keeps what one role may write within bounds: numbers that its group's layout has, a million of them, and a thousand
 * groups.  Asked for numbers that the registry does not know yet.
 */
CREATE FUNCTION snowflake_internal.registry_check_room(registry_group text, max_node bigint) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	most_groups CONSTANT bigint := 1000;
	most_numbers CONSTANT bigint := 1 << 20;
BEGIN
	IF EXISTS (SELECT FROM snowflake_internal.registry_claim AS c WHERE c.registry_group = $1 COLLATE "C") THEN
		IF $2 >= most_numbers AND most_numbers <= (
			SELECT count(*) FROM snowflake_internal.registry_claim AS c WHERE c.registry_group = $1 COLLATE "C")
		THEN
			RAISE EXCEPTION 'group of a snowflake registry has too many node numbers'
				USING ERRCODE = 'program_limit_exceeded',
					  DETAIL = format('Group "%s" has %s of them, the most that there can be.', $1, most_numbers);
		END IF;
	ELSIF most_groups <= (
		-- From one group to the next by the index.
		WITH RECURSIVE found (name) AS (
			SELECT min(c.registry_group) FROM snowflake_internal.registry_claim AS c
			UNION ALL
			SELECT (SELECT min(c.registry_group) FROM snowflake_internal.registry_claim AS c
					WHERE c.registry_group > f.name)
			  FROM found AS f WHERE f.name IS NOT NULL
		)
		SELECT count(f.name) FROM found AS f)
	THEN
		RAISE EXCEPTION 'snowflake registry has too many groups'
			USING ERRCODE = 'program_limit_exceeded',
				  DETAIL = format('It has %s of them, the most that there can be.', most_groups),
				  HINT = 'See the view snowflake_claims.';
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_internal.registry_check_room(text, bigint) IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_check_room(text, bigint) FROM PUBLIC;

/*
 * The fence that a write is to store; null where the registry may have forgotten something since the claim was read,
 * or has another one.  known is what it has.  An error where it is refused.  is_unsettled: the registry may still lack
 * what it granted, as registry_unsettled() says.
 *
 * What a grant began with is known in the settled incarnation alone that made it.  In another one somebody may have had
 * the number since, and may rely upon what granted_until covers: a release sets it no further back than it is.
 */
CREATE FUNCTION snowflake_internal.registry_fence(
	known snowflake_internal.registry_claim,
	form text,
	node bigint,
	incarnation bigint,
	expected_generation bigint,
	generation bigint,
	me text,
	granted_until bigint,
	claim_window interval,
	OUT fence bigint,
	OUT is_unsettled boolean,
	OUT now_incarnation bigint) RETURNS record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	wait record;
	is_alive boolean;
	is_from_here boolean;
	furthest_of_others bigint;
BEGIN
	SELECT * INTO wait FROM snowflake_internal.registry_unsettled(greatest(claim_window, interval '30s'));
	-- What was decided before it noticed counts no more.
	IF incarnation IS DISTINCT FROM wait.incarnation THEN
		RETURN;
	END IF;
	is_unsettled := wait.unsettled > 0;
	now_incarnation := CASE WHEN is_unsettled THEN 0 ELSE wait.incarnation END;
	is_from_here := known.incarnation = now_incarnation AND NOT is_unsettled;
	is_alive := known.holder IS NOT NULL AND known.alive_until > clock_timestamp();
	-- What others may tell of a living holder's number goes no further ahead than its own time did when it was granted;
	-- unless that one may have taken what the registry has forgotten, and they are to tell.
	IF is_alive AND is_unsettled AND known.is_doubtful THEN
		furthest_of_others := snowflake_internal.registry_us(clock_timestamp()) +
			snowflake_internal.registry_max_forward_jump();
	ELSIF is_alive AND is_unsettled THEN
		-- Whoever has lost it may have had a longer window.  What was told before counts for nothing here: each of many
		-- would tell of more.
		furthest_of_others :=
			snowflake_internal.registry_us(clock_timestamp() + snowflake_internal.registry_longest_window()) +
			greatest(snowflake_internal.registry_us(known.own_until) -
					 snowflake_internal.registry_us(known.alive_until), 0);
	END IF;
	fence := snowflake_internal.registry_admit(form, node, known.generation, known.holder, is_alive,
		snowflake_internal.registry_us(
			CASE WHEN is_from_here THEN known.granted_from ELSE known.granted_until END),
		snowflake_internal.registry_us(known.granted_until),
		me, expected_generation, generation, granted_until, furthest_of_others,
		NOT snowflake_internal.registry_is_of(known.made_by));
END
$$;
COMMENT ON FUNCTION snowflake_internal.registry_fence IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_fence FROM PUBLIC;

/*
 * A write that was not done may have been to tell what an unsettled registry has forgotten: it stays unsettled for a
 * while.  Where a transaction was in the way, for as long as that lasts; else for as long as a window is at most, since
 * who was refused for longer holds nothing any more.
 */
CREATE FUNCTION snowflake_internal.registry_not_heard(is_locked boolean) RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
	SELECT snowflake_internal.registry_keep_unsettled(true)
	  FROM snowflake_internal.registry_memory() AS m, snowflake_internal.registry_server AS s
	 WHERE m.boot_clock < greatest(s.settled_at, m.kept_until)
	   AND (is_locked OR m.boot_clock < s.settled_at +
			extract(epoch FROM snowflake_internal.registry_longest_window()) * 1000000)
$$;
COMMENT ON FUNCTION snowflake_internal.registry_not_heard(boolean) IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_internal.registry_not_heard(boolean) FROM PUBLIC;

/*
 * Writes a claim where the registry has it in this generation, 0 for none at all, and still has the incarnation in
 * which the claim was read; false where not.  me is the writing server's nonce, layout its layout.  form is what
 * becomes of the claim: 'claim', the server is granted it, or renews it, and counts as alive for alive_for from now on;
 * 'release', nobody holds it; 'assertion', it stays with its holder, and only granted_until is raised.
 *
 * It looks at the claim twice: without a lock, as whoever may not write it must not lock it either, and again under
 * its lock.  Where another transaction keeps it from that lock for long, nothing is written: the error's SQLSTATE is
 * lock_not_available, and the server tries again soon.
 */
CREATE FUNCTION snowflake_internal.registry_write(
	registry_group text,
	node bigint,
	form text,
	incarnation bigint,
	expected_generation bigint,
	generation bigint,
	me text,
	layout text,
	host text,
	port int,
	data_directory text,
	since bigint,
	granted_until bigint,
	alive_for interval) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '200ms'
AS $$
#variable_conflict use_column
DECLARE
	window_s double precision := extract(epoch FROM alive_for);
	is_claim boolean := form = 'claim' COLLATE "C";
	control_characters CONSTANT text := E'[\\x01-\\x1f\\x7f-\\x9f]';	-- to terminals \x9b is as good as \x1b
	max_node bigint;
	granted_at timestamptz;
	fence timestamptz;
	number bigint;
	known snowflake_internal.registry_claim;
	decided record;
BEGIN
	IF num_nulls($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) > 0 THEN
		RAISE EXCEPTION 'argument of a write to a snowflake registry must not be null'
			USING ERRCODE = 'null_value_not_allowed';
	END IF;
	IF is_claim THEN
		PERFORM snowflake_internal.registry_check_window(alive_for);
	END IF;
	IF octet_length(host) > 1024 OR octet_length(data_directory) > 4096 OR octet_length(registry_group) > 1024 THEN
		RAISE EXCEPTION 'claim names a place that is too long' USING ERRCODE = 'string_data_right_truncation';
	END IF;
	-- People see it: in a terminal, and in the log of whoever has trouble.
	IF registry_group ~ control_characters COLLATE "C" THEN
		RAISE EXCEPTION 'name of a snowflake registry''s group must not have control characters'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	IF port NOT BETWEEN 0 AND 65535 THEN
		RAISE EXCEPTION 'port of a claim''s holder must be from 0 to 65535, not %', port
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	-- These are for people only.
	granted_at := timestamptz 'epoch' +
		least(greatest(since, 0), snowflake_internal.registry_us(clock_timestamp())) * interval '1 microsecond';
	host := regexp_replace(host COLLATE "C", control_characters, '?', 'g');
	data_directory := regexp_replace(data_directory COLLATE "C", control_characters, '?', 'g');
	-- Without months and days, which count otherwise where they are added to a time.
	alive_for := make_interval(secs => CASE WHEN is_claim THEN window_s ELSE 0 END);

	-- What it locks it writes, or else lets go at once.
	BEGIN
		max_node := snowflake_internal.layout_max_node(coalesce(
			(SELECT g.layout FROM snowflake_internal.registry_group AS g WHERE g.registry_group = $1 COLLATE "C"), $8));
		-- What is told of a number in the writer's own layout is heard, whatever the group was given since.
		IF NOT is_claim THEN
			max_node := greatest(max_node, snowflake_internal.layout_max_node($8));
		END IF;
		IF node NOT BETWEEN 0 AND max_node THEN
			RAISE EXCEPTION 'node number of a claim does not fit the layout'
				USING ERRCODE = 'numeric_value_out_of_range',
					  DETAIL = format('It is %s; the layout has those from 0 to %s.', node, max_node);
		END IF;
		SELECT * INTO known FROM snowflake_internal.registry_claim AS c
		 WHERE c.registry_group = $1 COLLATE "C" AND c.node = $2;
		SELECT * INTO decided FROM snowflake_internal.registry_fence(
			known, form, node, incarnation, expected_generation, generation, me, granted_until, alive_for);
		-- What was noticed on the way stays.
		IF decided.fence IS NULL THEN
			PERFORM snowflake_internal.registry_not_heard(false) WHERE form = 'assertion' COLLATE "C";
			RETURN false;
		END IF;

		SELECT * INTO known FROM snowflake_internal.registry_claim AS c
		 WHERE c.registry_group = $1 COLLATE "C" AND c.node = $2
		   FOR UPDATE;
		SELECT * INTO decided FROM snowflake_internal.registry_fence(
			known, form, node, incarnation, expected_generation, generation, me, granted_until, alive_for);
		IF decided.fence IS NULL THEN
			RAISE SQLSTATE 'SF0NO';
		END IF;
		fence := timestamptz 'epoch' + decided.fence * interval '1 microsecond';
		IF is_claim THEN
			PERFORM snowflake_internal.registry_keep_layout($1, $8);
		END IF;
		IF expected_generation = 0 THEN
			PERFORM snowflake_internal.registry_check_room($1, max_node);
		END IF;

		number := snowflake_internal.registry_number();
		IF expected_generation = 0 THEN
			INSERT INTO snowflake_internal.registry_claim
				(registry_group, node, generation, holder, made_by, host, port, data_directory, since,
				 granted_from, granted_until, own_until, alive_until, claim_window, write_number, is_doubtful,
				 incarnation)
			VALUES ($1, $2, $6, CASE WHEN is_claim THEN me END, session_user, $9, $10, $11, granted_at,
					timestamptz 'epoch', fence, fence, clock_timestamp() + alive_for, alive_for, number,
					decided.is_unsettled, decided.now_incarnation)
			ON CONFLICT DO NOTHING;
		ELSIF is_claim THEN
			UPDATE snowflake_internal.registry_claim AS c
			   SET (generation, holder, made_by, host, port, data_directory, since,
					granted_from, granted_until, own_until,
					alive_until, claim_window, write_number, is_doubtful, incarnation) =
				   ($6, me, session_user, $9, $10, $11, granted_at,
					CASE WHEN c.holder = me COLLATE "C" AND c.incarnation = decided.now_incarnation
						THEN c.granted_from ELSE c.granted_until END, fence, fence,
					clock_timestamp() + alive_for, alive_for, number,
					decided.is_unsettled AND (c.is_doubtful OR c.holder IS DISTINCT FROM me COLLATE "C"),
					decided.now_incarnation)
			 WHERE c.registry_group = $1 COLLATE "C" AND c.node = $2;
		ELSIF form = 'release' COLLATE "C" THEN
			UPDATE snowflake_internal.registry_claim AS c
			   SET (generation, holder, made_by, host, port, data_directory, granted_until, alive_until, write_number) =
				   ($6, NULL, session_user, '', 0, '', fence, clock_timestamp(), number)
			 WHERE c.registry_group = $1 COLLATE "C" AND c.node = $2;
		ELSIF form = 'assertion' COLLATE "C" THEN
			-- What was told stays: the holder's release goes no further back than that.
			UPDATE snowflake_internal.registry_claim AS c
			   SET (generation, granted_from, granted_until, write_number) =
				   ($6, greatest(c.granted_from, fence), fence, number)
			 WHERE c.registry_group = $1 COLLATE "C" AND c.node = $2;
		ELSE
			RAISE EXCEPTION 'form "%" of a write is not known here', form USING ERRCODE = 'internal_error';
		END IF;
		-- Another may have been faster to insert it.
		IF NOT FOUND THEN
			RAISE SQLSTATE 'SF0NO';
		END IF;
	EXCEPTION
		WHEN SQLSTATE 'SF0NO' THEN
			PERFORM snowflake_internal.registry_not_heard(false) WHERE form = 'assertion' COLLATE "C";
			RETURN false;
		WHEN lock_not_available THEN
			PERFORM snowflake_internal.registry_not_heard(true);
			RAISE EXCEPTION 'claim is being written by another transaction, which is still open'
				USING ERRCODE = 'lock_not_available',
					  DETAIL = format('It is that on node number %s of group "%s".', $2, $1),
					  HINT = 'See pg_stat_activity in the registry''s database for a transaction that was left open.';
		-- By no fault of the writer: its role, the group's layout, too many groups.  Time that is out of bounds is
		-- not heard for long in any case.
		WHEN insufficient_privilege OR object_not_in_prerequisite_state OR program_limit_exceeded THEN
			PERFORM snowflake_internal.registry_not_heard(false);
			RAISE;
	END;
	PERFORM snowflake_internal.registry_wrote(number);
	RETURN true;
END
$$;
COMMENT ON FUNCTION snowflake_internal.registry_write IS
	'writes a claim where it is still what was read, for the server that wants it';
REVOKE ALL ON FUNCTION snowflake_internal.registry_write FROM PUBLIC;

/* For the registry's owner, who knows that no server holds what this registry does not know. */
CREATE FUNCTION @extschema@.snowflake_registry_settle() RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '1s'
AS $$
BEGIN
	PERFORM snowflake_internal.registry_unsettled(interval '1s');
	UPDATE snowflake_internal.registry_server SET settled_at = 0, others_settled_at = 0;
	PERFORM snowflake_internal.registry_keep_unsettled(false);
END
$$;
COMMENT ON FUNCTION @extschema@.snowflake_registry_settle() IS
	'lets a registry grant at once; for one that is new, or has lost nothing';
REVOKE ALL ON FUNCTION @extschema@.snowflake_registry_settle() FROM PUBLIC;

/*
 * For the registry's owner, who knows that no id of this number has a time from granted_until on: frees the number and
 * sets its fence there, back too.  Not under a living holder, which goes on by what it was granted until it asks again.
 */
CREATE FUNCTION @extschema@.snowflake_registry_repair(registry_group text, node bigint, granted_until timestamptz)
RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '1s'
AS $$
DECLARE
	most_generations CONSTANT bigint := 1::bigint << 62;
	known snowflake_internal.registry_claim;
	number bigint;
BEGIN
	IF NOT isfinite($3) OR $3 < timestamptz 'epoch' OR $3 > clock_timestamp() + interval '10 years' THEN
		RAISE EXCEPTION 'granted_until of a claim must be a time from 1970 on, and not far ahead'
			USING ERRCODE = 'invalid_parameter_value', DETAIL = format('It is %s.', $3);
	END IF;
	PERFORM snowflake_internal.registry_shorten_lives($1, $2);
	-- The number is drawn when nobody else can write the row any more.
	SELECT * INTO known FROM snowflake_internal.registry_claim AS c
	 WHERE c.registry_group = $1 COLLATE "C" AND c.node = $2
	   FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'node number was never claimed in this registry'
			USING ERRCODE = 'undefined_object', DETAIL = format('Node number %s of group "%s" has no claim.', $2, $1),
				  HINT = 'See the view snowflake_claims.';
	ELSIF known.holder IS NOT NULL AND known.alive_until > clock_timestamp() THEN
		RAISE EXCEPTION 'cannot repair the claim of a living holder'
			USING ERRCODE = 'object_in_use',
				  DETAIL = format('Node number %s of group "%s" is held by %s:%s, %s, which counts as alive until %s.',
								  $2, $1, known.host, known.port, known.data_directory, known.alive_until),
				  HINT = 'Stop that server first. A claim that is not renewed any more ends at that time.';
	END IF;
	-- A write of its own would hide that this registry's content was put back.
	PERFORM snowflake_internal.registry_unsettled(interval '30s');
	number := snowflake_internal.registry_number();
	-- Whoever has read the claim before must fail to write it, unless all generations are used up: then it begins
	-- anew, above the first, which is that of a number that was set aside.
	UPDATE snowflake_internal.registry_claim AS c
	   SET (generation, holder, made_by, host, port, data_directory, granted_until, alive_until, claim_window,
			write_number) =
		   (CASE WHEN c.generation < most_generations THEN c.generation + 2 ELSE 2 END,
			NULL, session_user, '', 0, '', $3, clock_timestamp(), interval '0', number)
	 WHERE c.registry_group = $1 COLLATE "C" AND c.node = $2;
	PERFORM snowflake_internal.registry_wrote(number);
END
$$;
COMMENT ON FUNCTION @extschema@.snowflake_registry_repair(text, bigint, timestamptz) IS
	'frees a node number and sets up to where it was granted, which its owner alone may do';
REVOKE ALL ON FUNCTION @extschema@.snowflake_registry_repair(text, bigint, timestamptz) FROM PUBLIC;

/*
 * For the registry's owner, who knows that no server makes ids in this group: its next claim sets its layout anew.
 * Numbers that were used keep their fences, which say nothing about ids of another layout.
 */
CREATE FUNCTION @extschema@.snowflake_registry_forget_layout(registry_group text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '1s'
AS $$
DECLARE
	holder record;
BEGIN
	LOCK TABLE snowflake_internal.registry_claim IN SHARE ROW EXCLUSIVE MODE;
	SELECT c.node, c.host, c.port, c.data_directory INTO holder FROM snowflake_internal.registry_claim AS c
	 WHERE c.registry_group = $1 COLLATE "C" AND c.holder IS NOT NULL AND c.alive_until > clock_timestamp()
	 ORDER BY c.node LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'cannot forget the layout of a group with a living holder'
			USING ERRCODE = 'object_in_use',
				  DETAIL = format('Node number %s of group "%s" is held by %s:%s, %s.',
								  holder.node, $1, holder.host, holder.port, holder.data_directory),
				  HINT = 'Stop the servers of the group first.';
	END IF;
	DELETE FROM snowflake_internal.registry_group AS g WHERE g.registry_group = $1 COLLATE "C";
	IF NOT FOUND THEN
		RAISE EXCEPTION 'group of a snowflake registry has no layout'
			USING ERRCODE = 'undefined_object', DETAIL = format('The group is "%s".', $1);
	END IF;
END
$$;
COMMENT ON FUNCTION @extschema@.snowflake_registry_forget_layout(text)
	IS 'lets a group of servers begin anew in another layout';
REVOKE ALL ON FUNCTION @extschema@.snowflake_registry_forget_layout(text) FROM PUBLIC;

/*
 * Sets aside a node number that nobody ever claimed in this server's registry, for ids that are made at once and end
 * before until; with -infinity only says whether it could be.  A rollback does not take it back.  False: there is no
 * registry.
 */
CREATE FUNCTION snowflake_internal.set_aside(node bigint, until timestamptz) RETURNS boolean
AS 'MODULE_PATHNAME', 'snowflake_set_aside' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_internal.set_aside(bigint, timestamptz) IS
	'for snowflake_migrate.merge()''s own use: sets a node number aside in the registry';
REVOKE ALL ON FUNCTION snowflake_internal.set_aside(bigint, timestamptz) FROM PUBLIC;
