/*
 * A registry in this database: who may issue ids under which node number, up to
 * when.  Servers whose snowflake.registry names this database read and write it
 * through the functions below, as a role that needs USAGE on the schema and EXECUTE
 * on the three of them, and no other right.
 *
 * What may be written is decided by the servers, by the rules in core/claim.h.
 * Here a claim is only written where it is still what was read; granted_until never
 * goes back but by its own holder's release, nor runs further ahead of this server's
 * clock than snowflake.max_forward_jump; and a holder that is alive keeps its number.
 */

CREATE TABLE snowflake_registry_claim (
	registry_group text NOT NULL,
	node bigint NOT NULL,
	generation bigint NOT NULL,			-- grows with each grant, renewal and release
	holder text,						-- a nonce; null: nobody
	host text NOT NULL,
	port int NOT NULL,
	data_directory text NOT NULL,
	since timestamptz NOT NULL,			-- when the holder was granted it
	granted_until timestamptz NOT NULL,	-- the time in ids, exclusive: what a later grant starts above
	alive_until timestamptz NOT NULL,	-- by this server's clock; past that, or released: another may have it
	claim_window interval NOT NULL,
	PRIMARY KEY (registry_group, node)
);
COMMENT ON TABLE snowflake_registry_claim IS 'the claims on node numbers; see the view snowflake_claims';

/*
 * The server that this registry was in last.  Another one (restored, failed over,
 * started again) may lack what the holders know; until settled_at it grants nothing
 * anew, so that they can tell.  A dump that is restored leaves two rows, which is
 * another server, too.
 */
CREATE TABLE snowflake_registry_server (
	system_identifier bigint NOT NULL,
	timeline text NOT NULL,
	started_at timestamptz NOT NULL,
	claims oid NOT NULL,				-- the table
	settled_at timestamptz NOT NULL,
	settling interval NOT NULL			-- so long before that it was noticed
);
COMMENT ON TABLE snowflake_registry_server IS 'the server that the registry was in when it was used last';

INSERT INTO snowflake_registry_server
SELECT c.system_identifier, pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8),
	pg_catalog.pg_postmaster_start_time(), '@extschema@.snowflake_registry_claim'::pg_catalog.regclass, pg_catalog.clock_timestamp(), '0'
  FROM pg_catalog.pg_control_system() AS c;

SELECT pg_catalog.pg_extension_config_dump('snowflake_registry_claim', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_registry_server', '');

CREATE VIEW snowflake_claims AS
SELECT registry_group, node,
	CASE WHEN holder IS NULL THEN 'free'
		 WHEN alive_until > pg_catalog.clock_timestamp() THEN 'held'
		 ELSE 'expired' END AS state,
	granted_until, host, port, data_directory, since, alive_until, generation
  FROM snowflake_registry_claim;
COMMENT ON VIEW snowflake_claims IS 'who holds which node number, in the registry in this database';

/* Notices another server, and returns for how long nothing is granted anew; claim_window is the asking server's. */
CREATE FUNCTION snowflake_registry_unsettled(claim_window interval) RETURNS interval
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	now_here @extschema@.snowflake_registry_server;
	known @extschema@.snowflake_registry_server;
	rows_known bigint;
BEGIN
	SELECT c.system_identifier, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), pg_postmaster_start_time(),
		   '@extschema@.snowflake_registry_claim'::regclass
	  INTO now_here.system_identifier, now_here.timeline, now_here.started_at, now_here.claims
	  FROM pg_control_system() AS c;
	SELECT count(*) INTO rows_known FROM @extschema@.snowflake_registry_server;
	SELECT * INTO known FROM @extschema@.snowflake_registry_server LIMIT 1;
	IF rows_known = 1 AND (known.system_identifier, known.timeline, known.started_at, known.claims) =
		(now_here.system_identifier, now_here.timeline, now_here.started_at, now_here.claims)
		-- Further away than that: the clock was set back.
		AND known.settled_at - clock_timestamp() <= known.settling THEN
		RETURN greatest(known.settled_at - clock_timestamp(), interval '0');
	END IF;

	LOCK TABLE @extschema@.snowflake_registry_server IN SHARE ROW EXCLUSIVE MODE;
	-- From now on, not from the server's start: until now its holders may not have reached it.
	now_here.settling := least(interval '10min',
		greatest(claim_window, (SELECT max(c.claim_window) FROM @extschema@.snowflake_registry_claim AS c)));
	now_here.settled_at := clock_timestamp() + now_here.settling;
	DELETE FROM @extschema@.snowflake_registry_server;
	INSERT INTO @extschema@.snowflake_registry_server VALUES (now_here.*);
	RETURN greatest(now_here.settled_at - clock_timestamp(), interval '0');
END
$$;
COMMENT ON FUNCTION snowflake_registry_unsettled(interval) IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_registry_unsettled(interval) FROM PUBLIC;

/* How far past this server's clock granted_until may lie. */
CREATE FUNCTION snowflake_registry_max_forward_jump() RETURNS interval
LANGUAGE sql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$ SELECT coalesce(current_setting('snowflake.max_forward_jump', true), '1h')::interval $$;
COMMENT ON FUNCTION snowflake_registry_max_forward_jump() IS 'for a registry''s own use';
REVOKE ALL ON FUNCTION snowflake_registry_max_forward_jump() FROM PUBLIC;

/*
 * One row: this server's clock and what it grants by, and the claim, or nulls
 * where there is none.  Times and durations in microseconds, Unix time.  me is the
 * asking server's nonce; another holder's is not told: it is 'other'.
 */
CREATE FUNCTION snowflake_registry_read(registry_group text, node bigint, me text, claim_window interval,
	OUT clock bigint, OUT max_forward_jump bigint, OUT unsettled bigint, OUT generation bigint, OUT holder text,
	OUT host text, OUT port int, OUT data_directory text, OUT since bigint, OUT granted_until bigint, OUT alive boolean) RETURNS record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
	IF claim_window NOT BETWEEN interval '1s' AND interval '10min' THEN
		RAISE EXCEPTION 'claim window must be from 1 s to 10 min, not %', claim_window USING ERRCODE = 'invalid_parameter_value';
	END IF;
	unsettled := extract(epoch FROM @extschema@.snowflake_registry_unsettled(claim_window)) * 1000000;
	clock := extract(epoch FROM clock_timestamp()) * 1000000;
	max_forward_jump := extract(epoch FROM @extschema@.snowflake_registry_max_forward_jump()) * 1000000;
	-- A clock that was set back: nobody is alive for longer than its window from now on.
	UPDATE @extschema@.snowflake_registry_claim AS c SET alive_until = clock_timestamp() + c.claim_window
	 WHERE c.registry_group = $1 AND c.node = $2 AND c.alive_until > clock_timestamp() + c.claim_window;
	SELECT c.generation, CASE WHEN c.holder <> me THEN 'other' ELSE c.holder END, c.host, c.port, c.data_directory,
		   extract(epoch FROM c.since) * 1000000, extract(epoch FROM c.granted_until) * 1000000,
		   c.holder IS NOT NULL AND c.alive_until > clock_timestamp()
	  INTO generation, holder, host, port, data_directory, since, granted_until, alive
	  FROM @extschema@.snowflake_registry_claim AS c
	 WHERE c.registry_group = $1 AND c.node = $2;
END
$$;
COMMENT ON FUNCTION snowflake_registry_read(text, bigint, text, interval) IS 'reads a claim, for the server that wants it';
REVOKE ALL ON FUNCTION snowflake_registry_read(text, bigint, text, interval) FROM PUBLIC;

/* The group's claims in order of their numbers, as far as choosing among them needs it. */
CREATE FUNCTION snowflake_registry_list(registry_group text)
RETURNS TABLE (node bigint, granted_until bigint, freed bigint, free boolean)
LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
	UPDATE @extschema@.snowflake_registry_claim AS c SET alive_until = clock_timestamp() + c.claim_window
	 WHERE c.registry_group = $1 AND c.alive_until > clock_timestamp() + c.claim_window;
	SELECT c.node, (extract(epoch FROM c.granted_until) * 1000000)::bigint, (extract(epoch FROM c.alive_until) * 1000000)::bigint,
		   c.holder IS NULL OR c.alive_until <= clock_timestamp()
	  FROM @extschema@.snowflake_registry_claim AS c
	 WHERE c.registry_group = $1
	 ORDER BY c.node
$$;
COMMENT ON FUNCTION snowflake_registry_list(text) IS 'lists a group''s claims, for a server that wants any';
REVOKE ALL ON FUNCTION snowflake_registry_list(text) FROM PUBLIC;

/*
 * Writes a claim where the registry has it in this generation, 0 for none at
 * all; false where not.  me is the writing server's nonce, holder what it wants
 * the claim's to be: the same, to claim or to renew it; null, to release it; 'other',
 * to leave it with its holder and only raise granted_until.  alive_for is how long
 * the holder counts as alive from now on.
 */
CREATE FUNCTION snowflake_registry_write(registry_group text, node bigint, expected_generation bigint, generation bigint,
	me text, holder text, host text, port int, data_directory text, since bigint, granted_until bigint, alive_for interval) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	fence timestamptz := timestamptz 'epoch' + granted_until * interval '1 microsecond';
	granted_at timestamptz := timestamptz 'epoch' + since * interval '1 microsecond';
	furthest timestamptz := clock_timestamp() + @extschema@.snowflake_registry_max_forward_jump();
	claims boolean := coalesce(holder = me, false);
	releases boolean := holder IS NULL;
	known @extschema@.snowflake_registry_claim;
BEGIN
	IF claims AND alive_for NOT BETWEEN interval '1s' AND interval '10min' THEN
		RAISE EXCEPTION 'claim window must be from 1 s to 10 min, not %', alive_for USING ERRCODE = 'invalid_parameter_value';
	END IF;
	IF generation <= expected_generation OR generation > bigint '1000000000000000' THEN
		RAISE EXCEPTION 'generation % of node number % cannot be followed by %', expected_generation, $2, generation
			USING ERRCODE = 'invalid_parameter_value';
	END IF;

	SELECT * INTO known FROM @extschema@.snowflake_registry_claim AS c
	 WHERE c.registry_group = $1 AND c.node = $2
	   FOR UPDATE;
	IF coalesce(known.generation, 0) <> expected_generation THEN
		RETURN false;
	END IF;
	IF (claims AND known.holder <> me AND known.alive_until > clock_timestamp()) OR
		(releases AND known.holder IS DISTINCT FROM me AND expected_generation > 0) THEN
		RETURN false;
	END IF;
	IF fence < known.granted_until AND NOT releases THEN
		RAISE EXCEPTION 'granted_until of node number % cannot go back', $2
			USING ERRCODE = 'invalid_parameter_value',
				  DETAIL = format('It is %s; a grant up to %s was asked for.', known.granted_until, fence);
	END IF;
	IF fence > greatest(furthest, known.granted_until) THEN
		RAISE EXCEPTION 'granted_until of node number % cannot lie so far ahead of the registry''s clock', $2
			USING ERRCODE = 'invalid_parameter_value',
				  DETAIL = format('A grant up to %s was asked for; the clock and "snowflake.max_forward_jump" allow one up to %s.',
								  fence, furthest);
	END IF;

	IF expected_generation = 0 THEN
		INSERT INTO @extschema@.snowflake_registry_claim
		VALUES ($1, $2, $4, $6, $7, $8, $9, granted_at, fence, clock_timestamp() + alive_for, alive_for)
		ON CONFLICT DO NOTHING;
	ELSIF claims THEN
		UPDATE @extschema@.snowflake_registry_claim AS c
		   SET (generation, holder, host, port, data_directory, since, granted_until, alive_until, claim_window) =
			   ($4, $6, $7, $8, $9, granted_at, fence, clock_timestamp() + alive_for, alive_for)
		 WHERE c.registry_group = $1 AND c.node = $2;
	ELSIF releases THEN
		UPDATE @extschema@.snowflake_registry_claim AS c
		   SET (generation, holder, host, port, data_directory, granted_until, alive_until) =
			   ($4, NULL, '', 0, '', fence, clock_timestamp())
		 WHERE c.registry_group = $1 AND c.node = $2;
	ELSE
		UPDATE @extschema@.snowflake_registry_claim AS c SET (generation, granted_until) = ($4, fence)
		 WHERE c.registry_group = $1 AND c.node = $2;
	END IF;
	RETURN FOUND;
END
$$;
COMMENT ON FUNCTION snowflake_registry_write(text, bigint, bigint, bigint, text, text, text, int, text, bigint, bigint, interval) IS
	'writes a claim where it is still what was read, for the server that wants it';
REVOKE ALL ON FUNCTION snowflake_registry_write(text, bigint, bigint, bigint, text, text, text, int, text, bigint, bigint, interval) FROM PUBLIC;

/*
 * Reserves a node number that nobody ever claimed in this server's registry, for ids that are made at once and end
 * before until; with -infinity only says whether it could be.  A rollback does not take it back.  False: there is no registry.
 */
CREATE FUNCTION snowflake_registry_reserve(node bigint, until timestamptz) RETURNS boolean
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION snowflake_registry_reserve(bigint, timestamptz) IS
	'for snowflake_merge()''s own use: reserves a node number in the registry; who merges and is no superuser needs EXECUTE';
REVOKE ALL ON FUNCTION snowflake_registry_reserve(bigint, timestamptz) FROM PUBLIC;
