/*
 * Several servers side by side: what each knows of itself, and what is wrong between them.
 *
 * Nothing here has more rights than its caller.
 */

CREATE FUNCTION snowflake_internal.server(
	OUT preloaded boolean,
	OUT node_id bigint,
	OUT node_source text,
	OUT claim text,
	OUT registry_group text,
	OUT layout text,
	OUT preset text,
	OUT epoch timestamptz,
	OUT tick interval,
	OUT layout_ends_at timestamptz,
	OUT timestamp_shift int,
	OUT limit_epoch timestamptz,
	OUT limit_tick interval,
	OUT limit_timestamp_shift int,
	OUT max_origins int,
	OUT in_recovery boolean,
	OUT system_identifier bigint,
	OUT started_at timestamptz,
	OUT server_version text,
	OUT extension_version text,
	OUT clock timestamptz) RETURNS record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	in_recovery := pg_catalog.pg_is_in_recovery();
	system_identifier := (SELECT c.system_identifier FROM pg_catalog.pg_control_system() AS c);
	started_at := pg_catalog.pg_postmaster_start_time();
	server_version := pg_catalog.split_part(pg_catalog.current_setting('server_version'), ' ', 1);
	extension_version := (SELECT e.extversion FROM pg_catalog.pg_extension AS e WHERE e.extname = 'snowflake');
	max_origins := coalesce(pg_catalog.current_setting('max_active_replication_origins', true),
							pg_catalog.current_setting('max_replication_slots'))::pg_catalog.int4;
	SELECT m.epoch, m.tick, m.timestamp_shift INTO limit_epoch, limit_tick, limit_timestamp_shift
		FROM snowflake_internal.limit_layout AS m;

	/* A library that is not preloaded knows a layout and a node number, but not those that ids were made with. */
	BEGIN
		SELECT s.node_id, s.node_source, s.claim, s.layout, s.layout_ends_at,
				l.name, l.epoch, l.tick, l.node_bits + l.sequence_bits
			INTO node_id, node_source, claim, layout, layout_ends_at, preset, epoch, tick, timestamp_shift
			FROM snowflake_internal.stat() AS s, snowflake_internal.layout AS l;
		/* pg_settings leaves out what the caller may not read. */
		registry_group := (SELECT g.setting FROM pg_catalog.pg_settings AS g WHERE g.name = 'snowflake.registry_group');
		preloaded := true;
	EXCEPTION WHEN object_not_in_prerequisite_state THEN
		preloaded := false;
	END;
	clock := pg_catalog.clock_timestamp();
END
$$;
COMMENT ON FUNCTION snowflake_internal.server() IS 'the row of the view snowflake_internal.server';

CREATE VIEW snowflake_internal.server AS SELECT * FROM snowflake_internal.server();
GRANT SELECT ON snowflake_internal.server TO PUBLIC;
COMMENT ON VIEW snowflake_internal.server
	IS 'what other servers compare themselves with: this server''s node number, layout, clock and versions';

/*
 * Asks one server of postgres_fdw.  A server that can't be asked is a row with the error's text: facts is NULL then,
 * and so is extension_version where the extension is not there.  Only a server that goes away while it is asked fails
 * the call: postgres_fdw then refuses to end the transaction.
 *
 * The clocks are compared by a reading there between two readings here: the difference is uncertain by half of the time
 * between those.  Of three tries the quickest counts, since the first one also plans and fills caches.
 */
CREATE FUNCTION snowflake_internal.remote_server(
	server name,
	OUT facts snowflake_internal.server,
	OUT extension_version text,
	OUT clock_difference interval,
	OUT clock_uncertainty interval,
	OUT error text) RETURNS record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	columns text;
	asked_at timestamptz;
	half interval;
	code text;
	message text;
	detail text;
	context text;
	done boolean := false;
BEGIN
	/* The foreign tables are there for the length of this block: it always ends by an error, which takes them back. */
	BEGIN
		EXECUTE pg_catalog.format(
			'CREATE FOREIGN TABLE pg_temp.snowflake_remote_extension (extname name, extversion text)
				SERVER %I OPTIONS (schema_name ''pg_catalog'', table_name ''pg_extension'')', server);
		EXECUTE 'SELECT e.extversion FROM pg_temp.snowflake_remote_extension AS e WHERE e.extname = ''snowflake'''
			INTO extension_version;

		IF extension_version IS NOT NULL THEN
			SELECT pg_catalog.string_agg(pg_catalog.concat_ws(' ', pg_catalog.quote_ident(a.attname),
						pg_catalog.format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY a.attnum)
				INTO STRICT columns
				FROM pg_catalog.pg_attribute AS a
				WHERE a.attrelid = 'snowflake_internal.server'::pg_catalog.regclass
					AND a.attnum > 0 AND NOT a.attisdropped;
			EXECUTE pg_catalog.format(
				'CREATE FOREIGN TABLE pg_temp.snowflake_remote_server (%s)
					SERVER %I OPTIONS (schema_name ''snowflake_internal'', table_name ''server'')', columns, server);
			FOR try IN 1..3 LOOP
				asked_at := pg_catalog.clock_timestamp();
				EXECUTE 'SELECT * FROM pg_temp.snowflake_remote_server' INTO STRICT facts;
				half := (pg_catalog.clock_timestamp() - asked_at) / 2;
				IF clock_uncertainty IS NULL OR half < clock_uncertainty THEN
					clock_uncertainty := half;
					clock_difference := facts.clock - (asked_at + half);
				END IF;
			END LOOP;
		END IF;
		done := true;
		RAISE EXCEPTION 'the foreign tables are not needed any more';
	EXCEPTION WHEN OTHERS OR query_canceled THEN
		IF NOT done THEN
			GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
				context = PG_EXCEPTION_CONTEXT;
			/*
			 * This session's query is cancelled, or the other server's.  Of that, postgres_fdw tells the command,
			 * before this function's own statement, with which the context of the other ones begins.
			 */
			IF code = '57014' AND coalesce(pg_catalog."substring"(context, '^(.*)pg_temp[.]snowflake_remote_'), '')
					!~ 'FROM (pg_catalog[.]pg_extension|snowflake_internal[.]server)|START TRANSACTION|SET [a-z_]+ = '
			THEN
				RAISE;
			END IF;
			facts := NULL;
			clock_difference := NULL;
			clock_uncertainty := NULL;
			/* libpq has a line for each address that it tried, and indented ones with advice. */
			error := pg_catalog.concat_ws(': ', message,
				nullif(pg_catalog.replace(pg_catalog.regexp_replace(detail, E'\n\t[^\n]*', '', 'g'), E'\n', '; '), ''));
		END IF;
	END;
END
$$;
COMMENT ON FUNCTION snowflake_internal.remote_server(name)
	IS 'what another server''s view snowflake_internal.server says, and how far its clock is from this one';

/* Reports an error where other servers can't be asked at all: said once, rather than by every server's row. */
CREATE FUNCTION snowflake_internal.check_servers(servers name[]) RETURNS void
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	name name;
	wrapper name;
BEGIN
	FOREACH name IN ARRAY servers LOOP
		IF name IS NULL THEN
			RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed', MESSAGE = 'server name must not be null';
		END IF;
		SELECT w.fdwname INTO wrapper
			FROM pg_catalog.pg_foreign_server AS f JOIN pg_catalog.pg_foreign_data_wrapper AS w ON w.oid = f.srvfdw
			WHERE f.srvname = name;
		IF NOT FOUND THEN
			RAISE EXCEPTION USING ERRCODE = 'undefined_object',
				MESSAGE = pg_catalog.format('server "%s" does not exist', name),
				HINT = 'Create it with CREATE SERVER ... FOREIGN DATA WRAPPER postgres_fdw, '
					'or give one of those in pg_foreign_server.';
		ELSIF wrapper <> 'postgres_fdw' THEN
			RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
				MESSAGE = pg_catalog.format('server "%s" is not a postgres_fdw server', name),
				DETAIL = pg_catalog.format('Its foreign-data wrapper is "%s".', wrapper),
				HINT = 'Give servers that were created with FOREIGN DATA WRAPPER postgres_fdw.';
		END IF;
	END LOOP;

	IF pg_catalog.cardinality(servers) > 0 THEN
		IF pg_catalog.pg_is_in_recovery() THEN
			RAISE EXCEPTION USING ERRCODE = 'read_only_sql_transaction',
				MESSAGE = 'cannot check other servers during recovery',
				HINT = 'Call snowflake_check_cluster() on a server that is not a standby, or with an empty array.';
		ELSIF pg_catalog.current_setting('transaction_read_only')::boolean THEN
			RAISE EXCEPTION USING ERRCODE = 'read_only_sql_transaction',
				MESSAGE = 'cannot check other servers in a read-only transaction',
				DETAIL = 'They are asked through temporary foreign tables.',
				HINT = 'Call snowflake_check_cluster() in a read-write transaction, or with an empty array.';
		ELSIF NOT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMP') THEN
			RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
				MESSAGE = pg_catalog.format('permission denied to create temporary tables in database "%s"',
											pg_catalog.current_database()),
				DETAIL = 'Other servers are asked through temporary foreign tables.',
				HINT = 'Grant the privilege TEMP on the database.';
		END IF;
	END IF;
END
$$;
COMMENT ON FUNCTION snowflake_internal.check_servers(name[])
	IS 'for snowflake_check_cluster()''s own use: whether the caller can ask these servers';

/*
 * One row for this server, '(this server)', and one for each server named, in that order.
 *
 * The caller needs TEMP on this database (for foreign tables that are taken back at once), USAGE on the servers and a
 * user mapping for each; the user there needs nothing but to connect.  Whether this server uses a registry is seen by
 * those who may read snowflake.registry; others see it by a claim that is suspended or lost.
 *
 * clock_difference is that of the wall clocks, also where snowflake.clock is monotonic; what is less than its
 * uncertainty is shown as 0.  It is a problem beyond snowflake.max_wait as it is in this session: an id that came from
 * that server, or its node number, is so far ahead that a call here would rather fail than wait.  Below 100 ms it is
 * none: clocks that are kept by NTP differ by less, and a max_wait of 0 does not ask for better ones.
 *
 * Layouts, epochs, ticks, registry groups and versions are compared with those of the first row that has them.
 */
CREATE FUNCTION @extschema@.snowflake_check_cluster(
	servers name[],
	OUT server text,
	OUT node_id bigint,
	OUT node_source text,
	OUT claim text,
	OUT layout text,
	OUT epoch timestamptz,
	OUT clock_difference interval,
	OUT server_version text,
	OUT extension_version text,
	OUT problems text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	max_difference interval;
BEGIN
	PERFORM snowflake_internal.check_servers(servers);
	/* Where the library was neither preloaded nor used yet, there is no setting. */
	max_difference := greatest(interval '100 ms',
		coalesce((SELECT g.setting::float8 FROM pg_catalog.pg_settings AS g WHERE g.name = 'snowflake.max_wait'), 2000)
			* interval '1 ms');

	RETURN QUERY
	WITH asked AS MATERIALIZED (
		SELECT 0::bigint AS place, '(this server)' AS name, 'this server' AS label, own.*, NULL::text AS error,
			own.extension_version AS installed, interval '0' AS difference, interval '0' AS uncertainty
		FROM snowflake_internal.server AS own
		UNION ALL
		SELECT listed.place, listed.name::text, pg_catalog.format('"%s"', listed.name), (remote.facts).*, remote.error,
			remote.extension_version,
			CASE WHEN pg_catalog.abs(extract(epoch FROM remote.clock_difference))
					> extract(epoch FROM remote.clock_uncertainty)
				THEN remote.clock_difference ELSE remote.clock_difference * 0 END,
			remote.clock_uncertainty
		FROM pg_catalog.unnest(servers) WITH ORDINALITY AS listed (name, place),
			snowflake_internal.remote_server(listed.name) AS remote
	),
	cluster AS MATERIALIZED (
		SELECT a.*, pg_catalog.regexp_replace(a.layout, ' tick:.*', '') AS fields,
			/* The first row of the same running server: a copy has started at another time. */
			(SELECT min(b.place) FROM asked AS b
			 WHERE b.system_identifier = a.system_identifier AND b.started_at = a.started_at) AS first_place,
			/* The row that answers for the node number: a standby has its primary's. */
			(SELECT b.place FROM asked AS b
			 WHERE b.system_identifier = a.system_identifier AND (b.started_at = a.started_at OR a.in_recovery)
			 ORDER BY b.in_recovery, b.place LIMIT 1) AS number_place
		FROM asked AS a
	),
	/* What the others are compared with. */
	model AS MATERIALIZED (SELECT c.* FROM cluster AS c WHERE c.layout IS NOT NULL ORDER BY c.place LIMIT 1),
	registry AS MATERIALIZED (
		SELECT EXISTS (SELECT FROM pg_catalog.pg_settings AS g WHERE g.name = 'snowflake.registry' AND g.setting <> '')
			OR EXISTS (SELECT FROM cluster AS c WHERE c.claim IN ('suspended', 'lost')) AS used
	)
	SELECT c.name, c.node_id, c.node_source, c.claim, coalesce(c.preset, c.layout), c.epoch, c.difference,
		c.server_version, c.installed,
		(SELECT pg_catalog.string_agg(p.problem, E'\n' ORDER BY p.rank)
		 FROM (VALUES
			(1, 'could not be asked: ' || c.error),
			(2, CASE WHEN c.error IS NULL AND c.installed IS NULL
				THEN 'the extension is not there: '
					'CREATE EXTENSION snowflake in the database that the server names' END),
			(3, CASE WHEN c.installed <> own.installed
				THEN pg_catalog.format('its extension has version %s, that of this server %s: '
									   'ALTER EXTENSION snowflake UPDATE where it is older',
									   c.installed, own.installed) END),
			(4, CASE WHEN c.first_place < c.place
				THEN 'is the same server as ' || (SELECT f.label FROM cluster AS f WHERE f.place = c.first_place) END),
			(5, CASE WHEN c.in_recovery THEN 'is in recovery: no ids until it is promoted' END),
			(6, CASE WHEN c.error IS NULL AND c.installed IS NOT NULL AND c.preloaded IS NOT TRUE
				THEN 'the library is not loaded: add snowflake to shared_preload_libraries and restart the server' END),
			(7, CASE WHEN c.preloaded AND c.node_id IS NULL AND c.node_source IS NULL
				THEN 'no node number is set: set snowflake.node_id and restart the server'
				WHEN c.preloaded AND c.node_id IS NULL
				THEN pg_catalog.format('has no node number; snowflake.node_id gives none by %s', c.node_source) END),
			(8, (SELECT pg_catalog.format('%s have the same node number, %s: their ids can repeat',
										  pg_catalog.string_agg(t.label, ' and ' ORDER BY t.place), c.node_id)
				 FROM cluster AS t
				 WHERE t.node_id = c.node_id AND t.place = t.number_place AND c.place = c.number_place
				 HAVING count(*) > 1)),
			(9, CASE WHEN c.fields <> model.fields
				THEN pg_catalog.format('its layout is %s, that of %s %s', c.fields, model.label, model.fields) END),
			(10, CASE WHEN c.epoch <> model.epoch
				THEN pg_catalog.format('its epoch is %s, that of %s %s', c.epoch, model.label, model.epoch) END),
			(11, CASE WHEN c.tick <> model.tick
				THEN pg_catalog.format('its tick is %s, that of %s %s', c.tick, model.label, model.tick) END),
			(12, CASE WHEN c.layout_ends_at <= c.clock
				THEN pg_catalog.format('the time of its layout ended at %s', c.layout_ends_at)
				/* Seconds can't overflow, whatever the server says. */
				WHEN extract(epoch FROM c.layout_ends_at) - extract(epoch FROM c.clock) <= 366 * 86400
				THEN pg_catalog.format('the time of its layout ends within a year, at %s', c.layout_ends_at) END),
			(13, CASE WHEN c.claim = 'lost' THEN 'its claim is lost: no ids until it holds one again'
				WHEN c.claim = 'suspended'
				THEN 'its claim is suspended: no ids after what it was granted; its snowflake_stat says why'
				WHEN c.claim <> 'held' AND registry.used AND NOT c.in_recovery
				THEN 'holds no claim, and a registry is used' END),
			(14, CASE WHEN registry.used AND c.registry_group <> model.registry_group
				THEN pg_catalog.format('its registry group is "%s", that of %s "%s"',
									   c.registry_group, model.label, model.registry_group) END),
			(15, CASE WHEN pg_catalog.abs(extract(epoch FROM c.difference)) - extract(epoch FROM c.uncertainty)
					> extract(epoch FROM max_difference)
				THEN pg_catalog.format('its clock is %s %s this server''s, more than %s: set it right',
									   pg_catalog.date_trunc('milliseconds', greatest(c.difference, - c.difference)),
									   CASE WHEN c.difference > interval '0' THEN 'ahead of' ELSE 'behind' END,
									   max_difference) END),
			(16, CASE WHEN c.preloaded AND c.max_origins < 2 AND c.in_recovery
				THEN pg_catalog.format('has room for %s replication origins: '
									   'shuts down at the first id that its primary makes; '
									   'set max_replication_slots (18: max_active_replication_origins) to at least 2',
									   c.max_origins)
				WHEN c.preloaded AND c.max_origins < 2 AND c.node_id IS NOT NULL
				THEN pg_catalog.format('has room for %s replication origins: no ids; '
									   'set max_replication_slots (18: max_active_replication_origins) to at least 2',
									   c.max_origins) END),
			(17, CASE WHEN (c.limit_epoch, coalesce(c.limit_tick, c.tick), c.limit_timestamp_shift)
					<> (c.epoch, c.tick, c.timestamp_shift)
				THEN pg_catalog.format('its reserved time was made in another layout, '
									   'with the epoch %s, the tick %s and %s bits below the timestamp: '
									   'see snowflake_accept_layout()',
									   c.limit_epoch, coalesce(c.limit_tick, c.tick), c.limit_timestamp_shift) END),
			(18, CASE WHEN c.in_recovery AND c.node_id <> primary_server.node_id
				THEN pg_catalog.format('promoted, it makes ids under node number %s; %s, its primary, has %s',
									   c.node_id, primary_server.label, primary_server.node_id)
				WHEN c.in_recovery AND primary_server.node_id IS NULL AND c.node_source IN ('hostname', 'address')
				THEN pg_catalog.format('promoted, it makes ids under a node number of its own, %s, by %s',
									   c.node_id, c.node_source) END)
		 ) AS p (rank, problem)
		 WHERE p.problem IS NOT NULL)
	FROM cluster AS c
		JOIN cluster AS own ON own.place = 0
		LEFT JOIN model ON true
		LEFT JOIN cluster AS primary_server ON primary_server.place = c.number_place AND NOT primary_server.in_recovery
		CROSS JOIN registry
	ORDER BY c.place;
END
$$;
COMMENT ON FUNCTION @extschema@.snowflake_check_cluster(name[])
	IS 'this server and others, by their postgres_fdw servers, side by side, and what is wrong';
