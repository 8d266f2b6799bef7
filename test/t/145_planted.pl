# What a database's owner plants beside the extension, in the schema that CREATE EXTENSION puts it into, before and after: operators and
# functions whose arguments are nearer than PostgreSQL's own, and after a renaming a schema of the same name.  Superusers who create
# and use the extensions run nothing of it; and that the catalogs show it for all of their objects.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Documentation qw(sql_like);
use Snowflake::Server;
use Test::More;

my $server = Snowflake::Server->new('planted');

$server->init;
# The registry is this server's own: its functions are called too.
$server->configure('snowflake.registry' => '');
$server->start;
$server->safe_psql('postgres', 'CREATE ROLE owner LOGIN; CREATE DATABASE mine OWNER owner');

sub as
{
	my ($role, $sql) = @_;
	my ($out, $err);
	my $status = $server->psql('mine', $sql, stdout => \$out, stderr => \$err, connstr => $server->connstr('mine') . " user=$role");

	return ($status, $out // '', $err // '');
}

sub owner_does
{
	my ($sql) = @_;
	my ($status, $out, $err) = as('owner', $sql);

	is($status, 0, 'planted') or diag($err);
	return $out;
}

# Nothing planted says that it was called, in what psql is told or in the log since then.
sub runs_nothing
{
	my ($what, $sql) = @_;
	my $from = -s $server->logfile;
	my ($out, $err);

	$server->psql('mine', $sql, stdout => \$out, stderr => \$err, on_error_stop => 0);

	my $said = ($err // '') . slurp_file($server->logfile, $from);

	ok($said !~ /PLANTED/, "$what: nothing planted is called") or diag(join "\n", (grep { /PLANTED/ } split /\n/, $said)[ 0 .. 9 ]);
	return $err // '';
}

# Of all operators of PostgreSQL, for pairs of the types that catalogs and the extensions' tables have; and of all functions that the
# scripts call, for one or two arguments.
my $types = q(ARRAY['oid', 'regclass', 'regproc', 'regprocedure', 'regtype', 'regnamespace', 'regrole', 'name', 'text', 'varchar', '"char"',
	'int2', 'int4', 'int8', 'numeric', 'float8', 'bool', 'xid', 'xid8', 'timestamptz', 'interval', 'jsonb', 'jsonpath', 'text[]', 'name[]',
	'int2[]', 'int8[]', 'int2vector', 'oidvector', 'record']);
my $words = join ',', map { "'$_'" } do
{
	my %words;
	my $scripts = join '', map { slurp_file($_) } glob 'src/sql/*.sql src/migrate/*.sql';

	$words{$_} = 1 for $scripts =~ /\b([a-z_0-9]+) ?\(/g;
	sort keys %words;
};
my $plant_functions = qq{
	CREATE SCHEMA IF NOT EXISTS traps;
	DO \$do\$
	DECLARE
		f record;
	BEGIN
		FOR f IN
			SELECT p.proname, a.arguments, x.result
			FROM (SELECT DISTINCT proname, format_type(max(prorettype), NULL) AS result, count(*) FROM pg_proc
				  WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND NOT proretset AND proname IN ($words)
					AND prorettype <> ALL (ARRAY['internal', 'cstring', 'trigger', 'anyelement', 'anyarray', 'anyrange', 'anymultirange',
						'anynonarray', 'anycompatible', 'anycompatiblearray', 'anycompatiblerange', 'anycompatiblemultirange', 'anyenum']::regtype[])
				  GROUP BY proname) AS p (proname, result),
				LATERAL (
					SELECT t FROM unnest($types) AS t
					UNION ALL
					SELECT t || ', ' || u FROM unnest(ARRAY['oid', 'regclass', 'regproc', 'name', 'text', 'int2', 'int4', 'int8', 'timestamptz', 'jsonb', 'name[]', 'text[]']) AS t,
						unnest(ARRAY['name', 'text', 'varchar', 'int2', 'int4', 'int8', 'jsonb', 'interval']) AS u
				) AS a (arguments),
				LATERAL (SELECT p.result) AS x (result)
		LOOP
			BEGIN
				EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %s LANGUAGE plpgsql AS \$f\$ BEGIN RAISE WARNING ''PLANTED function %s'';
					RETURN NULL; END \$f\$', f.proname, f.arguments, f.result, f.proname);
			EXCEPTION WHEN OTHERS THEN
				NULL;
			END;
		END LOOP;
	END
	\$do\$;
};
my $plant_operators = qq{
	DO \$do\$
	DECLARE
		o record;
	BEGIN
		FOR o IN SELECT l, r FROM unnest($types) AS l, unnest($types) AS r LOOP
			BEGIN
				EXECUTE format('CREATE FUNCTION public.trap(a %s, b %s) RETURNS bool LANGUAGE plpgsql AS \$f\$ BEGIN
					RAISE WARNING ''PLANTED operator on %s and %s''; RETURN true; END \$f\$', o.l, o.r, o.l, o.r);
			EXCEPTION WHEN OTHERS THEN
				NULL;
			END;
		END LOOP;
		FOR o IN
			SELECT n.oprname AS name, format_type(p.proargtypes[0], NULL) AS l, format_type(p.proargtypes[1], NULL) AS r
			FROM pg_proc AS p,
				unnest(ARRAY['=', '<>', '<', '>', '<=', '>=', '+', '-', '*', '/', '||', '->', '->>', '#>>', '?', '<\@', '\@>', '&&', '~', '!~', '~~', '<<']) AS n (oprname)
			WHERE p.proname = 'trap' AND p.pronamespace = 'public'::regnamespace
				AND NOT EXISTS (SELECT FROM pg_operator AS x WHERE x.oprnamespace = 'pg_catalog'::regnamespace
								AND x.oprname = n.oprname AND x.oprleft = p.proargtypes[0] AND x.oprright = p.proargtypes[1])
		LOOP
			EXECUTE format('CREATE OPERATOR public.%s (FUNCTION = public.trap, LEFTARG = %s, RIGHTARG = %s)', o.name, o.l, o.r);
		END LOOP;
	END
	\$do\$;
};

owner_does('SET check_function_bodies = off; SET search_path = pg_catalog;' . $plant_functions . $plant_operators);
cmp_ok($server->safe_psql('mine', q{SELECT count(*) FROM pg_operator WHERE oprnamespace = 'public'::regnamespace}), '>', 10000, 'operators');
cmp_ok($server->safe_psql('mine', q{SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace}), '>', 5000, 'functions');

# What was planted does what it should, where a superuser is careless: else this test says nothing.
my (undef, undef, $careless) = $server->psql('mine', q{SELECT 'pg_class'::regclass = 1::int8});
like($careless // '', qr/PLANTED operator/, 'a careless call is caught');

# A schema that was there before, by its owner.
owner_does('CREATE SCHEMA snowflake_migrate; CREATE SCHEMA snowflake_internal');
like(runs_nothing('a schema that was there', 'CREATE EXTENSION snowflake'), qr/schema "snowflake_internal" already exists/, 'snowflake_internal of another role');
owner_does('DROP SCHEMA snowflake_internal');
is(runs_nothing('CREATE EXTENSION snowflake', 'CREATE EXTENSION snowflake'), '', 'CREATE EXTENSION snowflake');
like(runs_nothing('a schema that was there', 'CREATE EXTENSION snowflake_migrate'), qr/schema "snowflake_migrate" belongs to role owner, which is no superuser/, 'snowflake_migrate of another role');
owner_does('DROP SCHEMA snowflake_migrate');
like(runs_nothing('a schema with something in it', 'CREATE SCHEMA snowflake_migrate; CREATE TABLE snowflake_migrate.t (); CREATE EXTENSION snowflake_migrate'),
	qr/schema "snowflake_migrate" is not empty/, 'snowflake_migrate with a table in it');
$server->safe_psql('mine', 'DROP SCHEMA snowflake_migrate CASCADE');
is(runs_nothing('CREATE EXTENSION snowflake_migrate', 'CREATE EXTENSION snowflake_migrate'), '', 'CREATE EXTENSION snowflake_migrate');

# What belongs to the extensions depends on nothing but them, and what comes with PostgreSQL.
my $foreign = q{
	WITH RECURSIVE part (classid, objid) AS (
		SELECT d.classid, d.objid FROM pg_depend AS d JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
		WHERE e.extname LIKE 'snowflake%' AND d.deptype = 'e'
		UNION
		SELECT d.classid, d.objid FROM pg_depend AS d JOIN part AS p ON d.refclassid = p.classid AND d.refobjid = p.objid AND d.deptype IN ('a', 'i', 'P', 'S')
	)
	SELECT pg_describe_object(d.classid, d.objid, d.objsubid) || ' depends on ' || pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid)
	FROM part AS p JOIN pg_depend AS d ON d.classid = p.classid AND d.objid = p.objid
	WHERE NOT EXISTS (SELECT FROM part AS o WHERE (o.classid, o.objid) = (d.refclassid, d.refobjid))
		AND NOT (d.refclassid = 'pg_extension'::regclass AND d.refobjid IN (SELECT e.oid FROM pg_extension AS e WHERE e.extname LIKE 'snowflake%'))
		AND NOT (d.refclassid = 'pg_namespace'::regclass AND d.refobjid IN (SELECT e.extnamespace FROM pg_extension AS e WHERE e.extname LIKE 'snowflake%'))
		AND NOT (d.refclassid = 'pg_language'::regclass AND d.refobjid = (SELECT l.oid FROM pg_language AS l WHERE l.lanname = 'plpgsql'))
	ORDER BY 1};

# In another database, or planted operators would change the answer.
sub foreign_dependencies
{
	return $server->safe_psql('mine', "SET search_path = pg_catalog; $foreign");
}

is(foreign_dependencies(), '', 'no object depends on what is planted');

# Bodies that are text find what they name when they are called: by a path that is fixed, but for procedures that commit and what they call
# first, which set it themselves; and never in the schema that was chosen for the extension, which may be another's.
my $text_bodies = q{
	FROM pg_proc AS f JOIN pg_language AS l ON l.oid = f.prolang
		JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = f.oid AND d.deptype = 'e'
		JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND e.extname LIKE 'snowflake%'
	WHERE l.lanname IN ('sql', 'plpgsql') AND f.prosqlbody IS NULL};
my $unpinned = $server->safe_psql('mine', "SET search_path = pg_catalog;
	SELECT f.oid::regproc $text_bodies AND 'search_path=pg_catalog, pg_temp' <> ALL (coalesce(f.proconfig, '{}')) ORDER BY f.oid::regproc::text");
is($unpinned, join("\n", qw(snowflake_migrate.adopt_fill snowflake_migrate.adopt_in_parts snowflake_migrate.adopt_step snowflake_migrate.adopt_swap
	snowflake_migrate.backfill snowflake_migrate.merge snowflake_migrate.merge snowflake_migrate.rollback
	snowflake_migrate_internal.allow_parallel snowflake_migrate_internal.begin snowflake_migrate_internal.lead
	snowflake_migrate_internal.rollback_start snowflake_migrate_internal.session_settings snowflake_migrate_internal.start
	snowflake_migrate_internal.take_settings snowflake_migrate_internal.work snowflake_migrate_internal.work_together)), 'functions without a fixed path');
is($server->safe_psql('mine', "SET search_path = pg_catalog;
	SELECT f.oid::regproc $text_bodies AND f.prosrc ~ '(\\m|\")public\"? *[.]|''public''|\\msnowflake_(nextval|layout|stat|node|timestamp|encode|min_id|max_id)\\M *\\('
		AND f.prosrc !~ 'MESSAGE|HINT' ORDER BY 1"), '', 'bodies name nothing in the schema of snowflake');
# A body that was parsed is dumped by pg_upgrade as it was understood: SELECT * of a catalog as the columns that it has in this version,
# which the next one need not have.
my $whole_catalogs = sub {
	my ($functions) = @_;

	return $server->safe_psql('mine', "SET search_path = pg_catalog;
		SELECT f.oid::regproc, c.oid::regclass
		FROM pg_proc AS f CROSS JOIN LATERAL pg_get_function_sqlbody(f.oid) AS b (body)
			JOIN pg_class AS c ON c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind IN ('r', 'v') AND body ~ ('\\m' || c.relname || '\\M')
		WHERE f.prosqlbody IS NOT NULL AND $functions
			AND NOT EXISTS (SELECT FROM pg_attribute AS a
							WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND body !~ ('\\m' || a.attname || '\\M'))");
};

$server->safe_psql('mine', 'CREATE FUNCTION public.whole() RETURNS bigint BEGIN ATOMIC SELECT count(*) FROM (SELECT * FROM pg_catalog.pg_cast) AS c; END');
is($whole_catalogs->(q{f.oid = 'public.whole()'::regprocedure}), 'public.whole|pg_cast', 'a body with all columns of a catalog is seen');
$server->safe_psql('mine', 'DROP FUNCTION public.whole()');
is($whole_catalogs->(q{EXISTS (SELECT FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname LIKE 'snowflake%'
	WHERE d.classid = 'pg_proc'::regclass AND d.objid = f.oid AND d.deptype = 'e')}), '', 'no body of the extensions has them');
# It fails where OpenSSL is in FIPS mode.
is($server->safe_psql('mine', "SET search_path = pg_catalog; SELECT f.oid::regproc $text_bodies AND f.prosrc ~ '\\mmd5\\M' ORDER BY 1"), '', 'no body uses md5()');
is($server->safe_psql('mine', "SET search_path = pg_catalog; SELECT f.oid::regproc $text_bodies AND f.oid::regproc::text IN (
	'snowflake_migrate_internal.begin', 'snowflake_migrate_internal.rollback_start', 'snowflake_migrate_internal.start')
		AND f.prosrc !~ '\\nBEGIN\\n\\t(PERFORM pg_catalog.set_config\\(''search_path'', ''pg_catalog, pg_temp'', true\\)|was := snowflake_migrate_internal.begin\\()'"),
	'', 'those set it first');

# A body that is text is parsed with the settings of whoever calls it, and a database's owner sets these: a backslash is in no literal but
# E'', where it means the same under standard_conforming_strings = off.  In a dollar-quoted query inside of a body, too.
sub backslashes
{
	my ($body) = @_;
	my @found;

	while ($body =~ m{ -- [^\n]* | /\* .*? \*/ | "[^"]*" | \b[eE]'(?: [^'\\] | '' | \\. )*'(?: \s*\n\s*'(?: [^'\\] | '' | \\. )*' )* | ('(?: [^'] | '' )*') }gsx)
	{
		my $literal = $1 // '';

		push @found, $literal if index($literal, '\\') >= 0;
	}
	return @found;
}

is_deeply([ backslashes(qq{SELECT E'\\\\d'\n '\\\\D', E''\n '\\\\w' || '\\s'}) ], [ q{'\s'} ], 'lines after an E literal are a part of it');
is_deeply([ backslashes(q{SELECT E'\\d', '\d', x /* '\' */, 'it''s', $q$ SELECT '\m' $q$}) ], [ q{'\d'}, q{'\m'} ], 'a backslash in a literal is found');
foreach my $function (split /\n/, $server->safe_psql('mine', "SET search_path = pg_catalog; SELECT f.oid $text_bodies AND position(chr(92) IN f.prosrc) > 0 ORDER BY 1"))
{
	my $body = $server->safe_psql('mine', "SELECT prosrc FROM pg_proc WHERE oid = '$function'::oid");

	my $name = $server->safe_psql('mine', "SELECT '$function'::oid::regproc");

	is(join(' ', backslashes($body)), '', "$name: backslashes in E literals");
}

# Planted beside what is there by now: nearer types for every function of the extension.
owner_does(q{
	SET search_path = pg_catalog;
	DO $do$
	DECLARE
		f record;
	BEGIN
		FOR f IN
			SELECT p.proname, replace(replace(replace(oidvectortypes(p.proargtypes), 'bigint', n.number), 'text', n.words), 'timestamp with time zone', n.at) AS arguments,
				p.pronargs
			FROM pg_proc AS p, (VALUES ('int', 'varchar', 'timestamp'), ('numeric', 'name', 'date'), ('bigint', 'varchar', 'timestamp'), ('int', 'text', 'timestamptz')) AS n (number, words, at)
			WHERE p.pronamespace = 'public'::regnamespace AND p.proname LIKE 'snowflake%'
		LOOP
			BEGIN
				EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS bigint LANGUAGE plpgsql AS $f$ BEGIN RAISE WARNING ''PLANTED %s(%s)''; RETURN 1; END $f$',
					f.proname, f.arguments, f.proname, f.arguments);
			EXCEPTION WHEN duplicate_function THEN
				NULL;
			END;
		END LOOP;
	END
	$do$});

my $use = q{
	SELECT * FROM snowflake_stat; SELECT * FROM snowflake_layouts; SELECT * FROM snowflake_claims;
	SELECT * FROM snowflake_internal.server; SELECT * FROM snowflake_internal.layout; SELECT * FROM snowflake_internal.limit_layout;
	SELECT * FROM snowflake_check_cluster('{}'::name[]);
	SELECT snowflake_nextval(); SELECT snowflake_lastval();
	SELECT snowflake_decode(1::bigint), snowflake_timestamp(1::bigint), snowflake_node(1::bigint), snowflake_layout(), snowflake_layout('twitter'::text);
	SELECT snowflake_set_reserved_until(clock_timestamp() OPERATOR(pg_catalog.+) interval '5 ms'); SELECT snowflake_advance_past(1::bigint);
	SELECT * FROM snowflake_internal.registry_read('default'::text, 1::bigint, 'me'::text, '30 s'::interval);
	SELECT * FROM snowflake_internal.registry_list('default'::text);
	SELECT snowflake_registry_settle();
	SET search_path = pg_catalog;
	DROP SCHEMA IF EXISTS here, west CASCADE;
	CREATE SCHEMA here; CREATE SCHEMA west;
	CREATE TABLE here.heroes (id int PRIMARY KEY, name text UNIQUE, born timestamptz DEFAULT now());
	CREATE TABLE here.items (id int PRIMARY KEY, hero int REFERENCES here.heroes, prefs jsonb);
	CREATE TABLE west.heroes (LIKE here.heroes INCLUDING ALL); CREATE TABLE west.items (LIKE here.items INCLUDING ALL);
	INSERT INTO here.heroes VALUES (1, 'Ann'); INSERT INTO west.heroes VALUES (1, 'Ann'), (2, 'Bob');
	INSERT INTO west.items VALUES (1, 2, '{"hero": 1}');
	SELECT * FROM snowflake_migrate.adopt('{here.heroes,here.items}'::regclass[], dry_run => true);
	SELECT * FROM snowflake_migrate.adopt('{here.heroes,here.items}'::regclass[]);
	SELECT * FROM SNOWFLAKE_SCHEMA.snowflake_audit('here.heroes'::regclass, 'id'::name);
	SELECT snowflake_migrate.declare_policy('here.heroes', 'heroes_name_key', 'suffix'), snowflake_migrate.declare_reference('here.items', 'prefs', 'here.heroes', path => '$.hero'),
		snowflake_migrate.declare_created('here.heroes', 'born');
	SELECT * FROM snowflake_migrate.check('{west}', 'here');
	CALL snowflake_migrate.merge('{west}', 'here', ARRAY[NODE]::bigint[], dry_run => true);
	CALL snowflake_migrate.merge('{west}', 'here', ARRAY[NODE]::bigint[]);
	SELECT * FROM snowflake_migrate.verify((SELECT max(run) FROM snowflake_migrate.runs));
	SELECT * FROM snowflake_migrate.map; SELECT * FROM snowflake_migrate.progress; SELECT * FROM snowflake_migrate.report; SELECT * FROM snowflake_migrate.records;
	SELECT max(run) AS run FROM snowflake_migrate.runs \gset
	CALL snowflake_migrate.rollback(:run);
};

my $node = 500;

sub use_of
{
	my ($schema, $path) = @_;

	$path //= $schema;
	$node++;
	return "SET client_min_messages = warning; SET search_path = $path;" . ($use =~ s/SNOWFLAKE_SCHEMA/$schema/r =~ s/NODE/$node/gr);
}

is(runs_nothing('all of it is used', use_of('public')), '', 'all of it is used');
is($server->safe_psql('mine', 'SELECT state FROM snowflake_migrate.runs ORDER BY run OPERATOR(pg_catalog.>) 0, started_at DESC LIMIT 1'), 'rolled back', 'it did what it is for');

# The schema goes to another name, and another one comes in its place, with functions of the very same types.
owner_does(q{
	SET search_path = pg_catalog;
	ALTER SCHEMA public RENAME TO ids;
	CREATE SCHEMA public;
	DO $do$
	DECLARE
		f record;
	BEGIN
		FOR f IN SELECT p.proname, oidvectortypes(p.proargtypes) AS arguments FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
			WHERE p.pronamespace = 'ids'::regnamespace AND p.proname LIKE 'snowflake%'
		LOOP
			EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS record LANGUAGE plpgsql AS $f$ BEGIN RAISE WARNING ''PLANTED function %s(%s)''; RETURN NULL; END $f$',
				f.proname, f.arguments, f.proname, f.arguments);
		END LOOP;
	END
	$do$;
	CREATE FUNCTION public.trap() RETURNS bigint LANGUAGE plpgsql AS $f$ BEGIN RAISE WARNING 'PLANTED view'; RETURN NULL; END $f$;
	CREATE VIEW public.snowflake_stat AS SELECT s.*, public.trap() FROM ids.snowflake_stat AS s;
});
is(runs_nothing('after the schema was renamed', use_of('ids')), '', 'after the schema was renamed');
is(foreign_dependencies(), '', 'no object depends on what was planted later');

# Settings of the database that change how text is parsed or values are written.
my %parsing = ($server->string_settings, backslash_quote => 'off', quote_all_identifiers => 'on',
	transform_null_equals => 'on', array_nulls => 'off', DateStyle => 'Postgres, DMY', IntervalStyle => 'sql_standard',
	extra_float_digits => '-15', bytea_output => 'escape', xmlbinary => 'hex', xmloption => 'document', lc_monetary => 'C',
	lc_numeric => 'C', lc_time => 'C', default_transaction_isolation => 'read committed',
	check_function_bodies => 'off', row_security => 'off', client_encoding => 'SQL_ASCII', TimeZone => 'Pacific/Apia',
	enable_partition_pruning => 'off', constraint_exclusion => 'on', plan_cache_mode => 'force_generic_plan');

# What a merge did, but for what differs from one to the next.
my $outcome = q{SET search_path = pg_catalog;
	SELECT severity, source, relation, object, problem, count, example FROM snowflake_migrate.report WHERE run = (SELECT max(run) FROM snowflake_migrate.runs) ORDER BY 1, 2, 3, 4, 5;
	SELECT state FROM snowflake_migrate.runs ORDER BY started_at DESC LIMIT 1};
my $as_usual = $server->safe_psql('mine', $outcome);

# DateStyle is a list.
owner_does(join '; ', map { "ALTER DATABASE mine SET $_ = " . ($_ eq 'DateStyle' ? $parsing{$_} : "'$parsing{$_}'") } sort keys %parsing);
is($server->safe_psql('mine', "SELECT current_setting('backslash_quote'), current_setting('DateStyle')"), 'off|Postgres, DMY', 'other settings');
is(runs_nothing('with other settings', use_of('ids')), '', 'with other settings, all of it can be used');
is($server->safe_psql('mine', $outcome), $as_usual, 'with other settings, a merge does the same');
owner_does(join '; ', map { "ALTER DATABASE mine RESET $_" } sort keys %parsing);

# A search path of the database's on which all types have others before them.
my $types_of_calls = 'regclass|name|text|bigint|int|timestamptz|jsonb|interval';

sub with_exact_types
{
	my ($sql) = @_;
	my %names = (bigint => 'int8', int => 'int4');

	$sql =~ s/(?<!:)\b(text|timestamptz|jsonb)\b(?= UNIQUE| DEFAULT|[,)])/pg_catalog.$1/g;
	$sql =~ s/::($types_of_calls)\b/'::pg_catalog.' . ($names{$1} \/\/ $1)/ge;
	return $sql;
}

owner_does(q{
	SET search_path = pg_catalog;
	CREATE SCHEMA nearer;
	GRANT USAGE ON SCHEMA nearer TO PUBLIC;
	CREATE FUNCTION nearer.trap(name text) RETURNS bool LANGUAGE plpgsql AS $f$ BEGIN RAISE WARNING 'PLANTED type %', name; RETURN true; END $f$;
	DO $do$
	DECLARE
		t record;
	BEGIN
		FOR t IN SELECT typname, oid::regtype AS type, typtype FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype IN ('b', 'p') AND typname <> '"char"' LOOP
			BEGIN
				EXECUTE format('CREATE DOMAIN nearer.%I AS %s CHECK (nearer.trap(%L))', t.typname, CASE WHEN t.typtype = 'p' THEN 'pg_catalog.int4'::regtype ELSE t.type END, t.typname);
			EXCEPTION WHEN duplicate_object THEN
				NULL;
			END;
		END LOOP;
	END
	$do$;
	ALTER DATABASE mine SET search_path = nearer, pg_catalog});
cmp_ok($server->safe_psql('mine', 'SELECT pg_catalog.count(*) FROM pg_catalog.pg_type WHERE typnamespace OPERATOR(pg_catalog.=) (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname OPERATOR(pg_catalog.=) \'nearer\')'),
	'>', 100, 'types');
(undef, undef, $careless) = $server->psql('mine', 'SELECT 1::text');
like($careless // '', qr/PLANTED type text/, 'a careless cast is caught');
my $errors = runs_nothing('with other types', with_exact_types(use_of('ids', 'nearer, pg_catalog, ids')) =~ s/SET search_path = pg_catalog;/SET search_path = nearer, pg_catalog, ids;/r);
is($errors, '', 'with other types before those of PostgreSQL, all of it can be used');
is($server->safe_psql('mine', "SET search_path = pg_catalog; $outcome"), $as_usual, 'with other types, a merge does the same');
$server->safe_psql('mine', 'SET search_path = pg_catalog; DROP SCHEMA nearer CASCADE');
owner_does('ALTER DATABASE mine RESET search_path');

# In a schema of its own, as doc/security.md recommends, its owner can plant nothing.
$server->safe_psql('postgres', 'CREATE DATABASE mine_too OWNER owner');
$server->safe_psql('mine_too', sql_like('doc/security.md', qr/^CREATE SCHEMA ids;/));
foreach my $try ('CREATE FUNCTION ids.snowflake_decode(int) RETURNS int LANGUAGE sql RETURN 1', 'CREATE OPERATOR ids.= (FUNCTION = int4eq, LEFTARG = oid, RIGHTARG = int)',
	'ALTER SCHEMA ids RENAME TO gone', 'DROP SCHEMA ids CASCADE', 'ALTER FUNCTION ids.snowflake_node(bigint) RENAME TO gone')
{
	my ($out, $err);

	$server->psql('mine_too', $try, stderr => \$err, connstr => $server->connstr('mine_too') . ' user=owner');
	like($err, qr/permission denied for schema ids|must be owner of/, "$try: refused");
}
is($server->safe_psql('mine_too', 'SET ROLE owner; SELECT ids.snowflake_nextval() > 0'), 't', 'everybody can use it there');

done_testing();
