# Attacks on a superuser who migrates: the owner of something that is touched has planted code there, in every place where PostgreSQL
# runs code by itself.  The code asks for mallory to be a superuser and leaves a line in the server's log, which no rollback takes
# back.  It must never run with a superuser's rights, neither in what only looks nor in what does.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Test::More;

my $server = Snowflake::Server->new('owners');

$server->init(extra => [ '--encoding=UTF8', '--no-locale' ], allows_streaming => 1);
$server->start;
$server->safe_psql('postgres', q{
	CREATE ROLE mallory LOGIN;
	CREATE ROLE app LOGIN;
	CREATE ROLE merger LOGIN;
	CREATE DATABASE game;
});
$server->safe_psql('game', q{
	CREATE EXTENSION snowflake_migrate CASCADE;
	CREATE SCHEMA mallory AUTHORIZATION mallory;
	CREATE SCHEMA app AUTHORIZATION app;
	GRANT CREATE ON DATABASE game TO mallory;
	CREATE FUNCTION public.shown(anyelement) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1::text; END $$;
});

my $superuser = $server->safe_psql('game', 'SELECT current_user');

# Runs SQL as a role; returns what it prints and its errors.
sub run_as
{
	my ($role, $sql) = @_;
	my ($out, $err);

	$server->psql('game', $sql, stdout => \$out, stderr => \$err, on_error_stop => 0, connstr => $server->connstr('game') . " user=$role");
	return ($out, $err);
}

sub prepare_as { my ($role, $sql) = @_; return $server->prepare('game', $sql, $role) }

# Code that expressions may call, and what it really does.
prepare_as('mallory', q{
	CREATE FUNCTION mallory.deed() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
	BEGIN
		RAISE LOG 'a deed with the rights of %', current_user;
		BEGIN
			PERFORM pg_catalog.set_config('session_authorization', a.usename, false) FROM pg_catalog.pg_stat_activity AS a WHERE a.pid = pg_catalog.pg_backend_pid();
			PERFORM pg_catalog.set_config('role', 'none', false);
			RAISE LOG 'a deed with the rights of %', current_user;
			ALTER ROLE mallory SUPERUSER;
		EXCEPTION WHEN OTHERS THEN
			NULL;
		END;
		RETURN true;
	END $$;
	CREATE FUNCTION mallory.good(bigint DEFAULT 1) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
		$$ BEGIN RETURN mallory.deed(); END $$;
	CREATE FUNCTION mallory.worth(bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS
		$$ BEGIN PERFORM mallory.deed(); RETURN $1; END $$;
	CREATE FUNCTION mallory.fire() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM mallory.deed(); RETURN coalesce(new, old); END $$;
	CREATE FUNCTION mallory.sum(bigint, bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
		$$ BEGIN RETURN mallory.deed(); END $$;
	CREATE OPERATOR mallory.=== (leftarg = bigint, rightarg = bigint, function = mallory.sum);
	CREATE OPERATOR mallory.>>> (leftarg = bigint, rightarg = bigint, function = mallory.sum);
	CREATE OPERATOR mallory.<<< (leftarg = bigint, rightarg = bigint, function = int8lt, negator = OPERATOR(mallory.>>>));
	CREATE DOMAIN mallory.number AS bigint CHECK (mallory.good(VALUE));
	CREATE DOMAIN mallory.numbers AS bigint[] CHECK (mallory.good(VALUE[1]));
	CREATE TYPE mallory.color AS ENUM ('red');
	CREATE FUNCTION mallory.to_json(mallory.color) RETURNS json LANGUAGE plpgsql IMMUTABLE AS
		$$ BEGIN PERFORM mallory.deed(); RETURN '1'; END $$;
	CREATE CAST (mallory.color AS json) WITH FUNCTION mallory.to_json(mallory.color);
	CREATE FUNCTION mallory.to_text(mallory.color) RETURNS text LANGUAGE plpgsql AS
		$$ BEGIN PERFORM mallory.deed(); RETURN '1'; END $$;
	CREATE CAST (mallory.color AS text) WITH FUNCTION mallory.to_text(mallory.color);
	CREATE TYPE mallory.shade AS ENUM ('dark');
	CREATE TYPE mallory.pair AS (n mallory.number);
	CREATE TYPE mallory.digit AS ENUM ('1');
	CREATE FUNCTION mallory.to_bigint(mallory.digit) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS
		$$ BEGIN PERFORM mallory.deed(); RETURN 1; END $$;
	CREATE CAST (mallory.digit AS bigint) WITH FUNCTION mallory.to_bigint(mallory.digit) AS IMPLICIT;
	GRANT USAGE ON SCHEMA mallory TO PUBLIC;
});

my ($out, $err);
my $log_start;

sub watch { $log_start = -s $server->logfile; return }

# Whether planted code ran with a superuser's rights since watch().
sub deeds
{
	my $log = slurp_file($server->logfile, $log_start);
	my $superusers = $server->prepare('game', q{SELECT count(*) FROM pg_roles WHERE rolname IN ('mallory', 'app', 'merger') AND rolsuper});

	$server->prepare('game', 'ALTER ROLE mallory NOSUPERUSER') if $superusers;
	return ($log =~ /a deed with the rights of \Q$superuser\E\b/ ? 1 : 0) + $superusers;
}

sub wait_for_lock
{
	my ($relation, $mode) = @_;

	$server->poll_query_until('game', "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = '$relation'::regclass AND mode ~ '$mode')")
	  or die "nobody waits for $relation";
	return;
}

# While a call of the superuser's waits for what another session holds, each change that mallory tries waits for the call.
sub change_waits
{
	my ($name, %try) = @_;
	my ($holder, $caller) = map { $server->background_psql('game', on_error_stop => 0) } 1 .. 2;

	$holder->query_safe($try{hold});
	$caller->query_until(qr/started/, "\\echo started\n$try{call};\n");
	$server->poll_query_until('game', "SELECT EXISTS ($try{is_waiting})") or die "$name: the call does not wait";
	my ($out, $err) = run_as('mallory', join '; ', "SET lock_timeout = '100ms'", @{ $try{changes} });
	my $each = join '.*', map { 'lock timeout' } @{ $try{changes} };

	like($err, qr/$each/s, $name);
	$holder->query_safe($try{release});
	$_->quit foreach $holder, $caller;
	return;
}

sub is_waiting_for_lock
{
	my ($call) = @_;

	return "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%$call%' AND pid <> pg_backend_pid()";
}

# Calls by the superuser, by what they do.  Each has to be refused for mallory's code, and none may run anything of mallory's.
sub refused
{
	my ($place, @calls) = @_;

	watch();
	my ($out, $err) = run_as($superuser, join ";\n", map { "\\echo call\n$_" } map { $calls[ 2 * $_ + 1 ] } 0 .. $#calls / 2);

	is(deeds(), 0, "$place: nothing of mallory's runs");
	# Errors and output are apart: what is refused says so in one or the other.
	my $refusals = grep { /code of role mallory would run with the rights of role \Q$superuser\E/ }
	  split(/^call$/m, $out), split(/^psql:\S+ ERROR:/m, $err);

	is($refusals, @calls / 2, "$place: is refused in " . join ', ', map { $calls[ 2 * $_ ] } 0 .. $#calls / 2) or diag("$out$err");
	return;
}

sub allowed
{
	my ($name, $role, $call) = @_;

	watch();
	my ($out, $err) = run_as($role, $call);

	unlike($err, qr/ERROR/, "$name: is done");
	is(deeds(), 0, "$name: nothing runs with a superuser's rights");
	return $out;
}

# Where code can be planted in a table's definition.  The key is the column id; t is the table's name.
my %plants = (
	'CHECK' => 'ALTER TABLE t ADD CHECK (mallory.good(id))',
	'CHECK of a constant' => 'ALTER TABLE t ADD CHECK (mallory.good())',
	'operator' => 'ALTER TABLE t ADD CHECK (id OPERATOR(mallory.===) 1)',
	'negator of an operator' => 'ALTER TABLE t ADD CHECK (NOT (id OPERATOR(mallory.<<<) 1))',
	'cast to a domain' => 'ALTER TABLE t ADD CHECK (id::mallory.number IS NOT NULL)',
	'cast to a domain of arrays' => q{ALTER TABLE t ADD CHECK (ARRAY[id]::mallory.numbers IS NOT NULL)},
	'built-in function that runs queries' => q{ALTER TABLE t ADD CHECK (id IS NULL OR query_to_xml('SELECT mallory.deed()', true, true, '') IS NOT NULL)},
	'built-in function that reads views' => q{CREATE VIEW mallory.seen AS SELECT mallory.deed();
		ALTER TABLE t ADD CHECK (id IS NULL OR table_to_xml('mallory.seen', true, true, '') IS NOT NULL)},
	'built-in input function' => q{ALTER TABLE t ADD CHECK (id IS NULL OR domain_in('1', 'mallory.number'::regtype, -1) IS NOT NULL)},
	'function of the extension that runs queries' => q{ALTER TABLE t ADD CHECK (id IS NULL OR snowflake_migrate_internal.has_action(
		'(SELECT 1 AS source, ''s''::"char" AS action WHERE mallory.deed())', 1, 's') IS NOT NULL)},
	'cast that a function looks for' => q{ALTER TABLE t ADD COLUMN color mallory.color DEFAULT 'red', ADD CHECK (id IS NULL OR to_json(color) IS NOT NULL)},
	'cast in the text of a built-in function' => q{ALTER TABLE t ADD COLUMN color mallory.color DEFAULT 'red', ADD CHECK (id IS NULL OR 'x'::text || color <> '')},
	'cast that may come, in the text of a built-in function' => q{ALTER TABLE t ADD COLUMN shade mallory.shade DEFAULT 'dark', ADD CHECK (id IS NULL OR quote_literal(shade) <> '')},
	"cast in a superuser's function" => q{ALTER TABLE t ADD COLUMN color mallory.color DEFAULT 'red', ADD CHECK (id IS NULL OR public.shown(color) <> '')},
	'index' => 'CREATE INDEX ON t ((mallory.good(id)))',
	'index of a constant' => 'CREATE INDEX ON t ((mallory.good()))',
	'condition of an index' => 'CREATE INDEX ON t (id) WHERE mallory.good()',
	'statistics' => 'CREATE STATISTICS mallory.planted ON (mallory.good()), (id + 1) FROM t',
	'generated column' => 'ALTER TABLE t ADD COLUMN planted bigint GENERATED ALWAYS AS (mallory.worth(id)) STORED',
	'exclusion' => 'ALTER TABLE t ADD EXCLUDE (mallory.worth(id) WITH =)',
);
# What contrib has may not be installed.
if ($server->prepare('game', q{SELECT count(*) FROM pg_available_extensions WHERE name = 'hstore'}))
{
	$server->prepare('game', 'CREATE EXTENSION hstore SCHEMA public');
	$plants{'domain that a function of an extension makes values of'} = q{ALTER TABLE t ADD COLUMN pair mallory.pair,
		ADD CHECK (id IS NULL OR public.populate_record(pair, 'n=>1'::public.hstore) IS NOT NULL)};
}
$plants{'cast in SQL/JSON'} = q{ALTER TABLE t ADD COLUMN color mallory.color DEFAULT 'red', ADD CHECK (id IS NULL OR JSON_OBJECT('a': color) IS NOT NULL)}
  if $server->pg_version >= 16;

# Adopting: a table that others may only refer to.
$server->prepare('game', q{
	CREATE SCHEMA shop;
	GRANT USAGE ON SCHEMA shop TO mallory;
});

sub create_orders
{
	$server->prepare('game', q{
		SET client_min_messages = warning;
		DROP TABLE IF EXISTS shop.orders CASCADE;
		CREATE TABLE shop.orders (id serial PRIMARY KEY);
		INSERT INTO shop.orders SELECT FROM generate_series(1, 3);
		GRANT REFERENCES ON shop.orders TO mallory;
	});
	return;
}

foreach my $place (sort keys %plants)
{
	my $plant = $plants{$place} =~ s/\bt\b/mallory.notes/gr =~ s/\bid\b/order_id/gr;

	create_orders();
	prepare_as('mallory', "CREATE TABLE mallory.notes (order_id int REFERENCES shop.orders);
		INSERT INTO mallory.notes VALUES (1), (2); $plant");
	refused($place, 'adopt, dry run' => q{SELECT * FROM snowflake_migrate.adopt('{shop.orders}', dry_run => true)},
		'adopt' => q{SELECT * FROM snowflake_migrate.adopt('{shop.orders}')});
	prepare_as('mallory', 'DROP TABLE mallory.notes; DROP VIEW IF EXISTS mallory.seen');
}
# Of the extension's functions, the look trusts those in C alone, which users call on ids.
is($server->prepare('game', q{
	SELECT string_agg(p.oid::regprocedure::text, ', ' ORDER BY p.oid)
	FROM pg_proc AS p JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
		JOIN pg_extension AS e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
	WHERE e.extname LIKE 'snowflake%' AND p.prokind = 'f' AND NOT snowflake_internal.does_more(p.oid)
		AND p.probin IS NULL}), 'snowflake_migrate_internal.nextval()', 'functions of the extension: of those not in C, one that makes ids is trusted');
like($server->prepare('game', q{SELECT snowflake_internal.does_more('snowflake_migrate_internal.verify_bounds(jsonb)'::regprocedure),
	snowflake_internal.does_more('snowflake_migrate_internal.document_ids(regclass,name)'::regprocedure),
	snowflake_internal.does_more('snowflake_timestamp(bigint)'::regprocedure), snowflake_internal.does_more('snowflake_nextval()'::regprocedure)}),
	qr/^t\|t\|f\|f$/, 'functions of the extension: which are trusted');
# Built-in ones that call what their arguments name, or cast as these' owners say; views may use those that return sets.
is($server->prepare('game', q{SELECT f FROM unnest('{row_to_json(record),array_to_json(anyarray),to_json(anyelement),to_jsonb(anyelement),
	"json_build_object(\"any\")","jsonb_build_array(\"any\")",json_agg(anyelement),"jsonb_object_agg(\"any\",\"any\")","jsonb_populate_record(anyelement,jsonb)",
	"table_to_xml(regclass,boolean,boolean,text)","query_to_xml(text,boolean,boolean,text)","domain_in(cstring,oid,integer)","ts_rewrite(tsquery,text)",ts_stat(text),
	"generate_series(bigint,bigint)"}'::regprocedure[]) AS f WHERE NOT (snowflake_internal.does_more(f) OR snowflake_internal.does_as_types_say(f))}), '', 'built-in functions that are not trusted');

# A database's owner can change how literals are read.
my %strings = $server->string_settings;
$server->safe_psql('postgres', "ALTER DATABASE game SET $_ = $strings{$_}") foreach sort keys %strings;
# Without it, a query that only reads evaluates no CHECK; adopting does.
$server->safe_psql('postgres', 'ALTER DATABASE game SET constraint_exclusion = off');
create_orders();
prepare_as('mallory', 'CREATE TABLE mallory.notes (order_id int REFERENCES shop.orders);
	INSERT INTO mallory.notes VALUES (1), (2); '
	. $plants{'built-in function that runs queries'} =~ s/\bt\b/mallory.notes/gr =~ s/\bid\b/order_id/gr);
refused('standard_conforming_strings = off', 'adopt, dry run' => q{SELECT * FROM snowflake_migrate.adopt('{shop.orders}', dry_run => true)},
	'adopt' => q{SELECT * FROM snowflake_migrate.adopt('{shop.orders}')});
prepare_as('mallory', 'DROP TABLE mallory.notes');
$server->safe_psql('postgres', 'ALTER DATABASE game RESET ALL');

create_orders();
# A partition's and a child's owner.
prepare_as($superuser, q{
	CREATE TABLE shop.log (id int PRIMARY KEY) PARTITION BY RANGE (id);
	CREATE TABLE shop.log_1 PARTITION OF shop.log FOR VALUES FROM (0) TO (10);
	ALTER TABLE shop.log_1 OWNER TO mallory;
	GRANT CREATE ON SCHEMA shop TO mallory;
});
prepare_as('mallory', 'CREATE INDEX ON shop.log_1 ((mallory.good()))');
refused('partition', 'adopt, dry run' => q{SELECT * FROM snowflake_migrate.adopt('{shop.log}', '{id}', dry_run => true)},
	'adopt' => q{SELECT * FROM snowflake_migrate.adopt('{shop.log}', '{id}')});

# ALTER TABLE looks for functions and operators anew, by their names: others of the same name may fit bigint better.
$server->prepare('game', q{
	CREATE FUNCTION shop.size(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
	CREATE FUNCTION shop.minus(int[], int) RETURNS int[] LANGUAGE sql IMMUTABLE AS 'SELECT $1';
	CREATE OPERATOR shop.- (leftarg = int[], rightarg = int, function = shop.minus);
});
prepare_as('mallory', q{
	CREATE FUNCTION shop.size(bigint) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM mallory.deed(); RETURN 1; END $$;
	CREATE FUNCTION mallory.minus(int[], bigint) RETURNS int[] LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM mallory.deed(); RETURN $1; END $$;
	CREATE OPERATOR shop.- (leftarg = int[], rightarg = bigint, function = mallory.minus);
});
foreach my $plant ('ADD CHECK (shop.size(id) > 0)', q{ADD CHECK (('{1}'::int[] OPERATOR(shop.-) id) IS NOT NULL)},
	'ADD CHECK (shop.size(CASE WHEN id IS NULL THEN 1 ELSE 2 END) > 0)', 'ADD EXCLUDE (shop.size(id) WITH =)')
{
	prepare_as('mallory', "CREATE TABLE mallory.sized (id serial PRIMARY KEY); INSERT INTO mallory.sized DEFAULT VALUES; ALTER TABLE mallory.sized $plant");
	refused("overloaded: $plant", 'adopt, dry run' => q{SELECT * FROM snowflake_migrate.adopt('{mallory.sized}', dry_run => true)},
		'adopt' => q{SELECT * FROM snowflake_migrate.adopt('{mallory.sized}')});
	prepare_as('mallory', 'DROP TABLE mallory.sized');
}

# Another role's rights that are put on are not enough: the code puts them off.
foreach my $command ('SET ROLE', 'SET SESSION AUTHORIZATION')
{
	prepare_as('mallory', q{DROP TABLE IF EXISTS mallory.own;
		CREATE TABLE mallory.own (id serial PRIMARY KEY CHECK (mallory.good(id)));
		INSERT INTO mallory.own DEFAULT VALUES});
	refused($command, 'adopt' => "$command mallory; SELECT * FROM snowflake_migrate.adopt('{mallory.own}')");
}

# What mallory adds or changes between the look and the change has to wait, or is seen.
$server->prepare('game', 'GRANT SELECT, INSERT, UPDATE ON snowflake_migrate.declared_references TO mallory');
prepare_as('mallory', 'CREATE TABLE mallory.notes (order_id int REFERENCES shop.orders CHECK (order_id > 0)); INSERT INTO mallory.notes VALUES (1)');
foreach my $change ('ALTER TABLE mallory.notes ADD CHECK (mallory.good(order_id))', 'CREATE INDEX CONCURRENTLY ON mallory.notes ((mallory.good()))',
	'CREATE TABLE mallory.more (order_id int REFERENCES shop.orders)', q{SELECT snowflake_migrate.declare_reference('mallory.own', 'id', 'shop.orders')},
	'ALTER SCHEMA mallory RENAME TO other')
{
	my ($out, $err);
	my $session = $server->background_psql('game', on_error_stop => 1);

	watch();
	$session->query_safe(q{BEGIN; SELECT * FROM snowflake_migrate.adopt('{shop.orders}', dry_run => true)});
	($out, $err) = run_as('mallory', "SET lock_timeout = '100ms'; SET statement_timeout = '2s'; $change");
	like($err, qr/lock timeout|statement timeout/, "$change: waits for the superuser's transaction") or diag($out);
	$server->prepare('game', 'ALTER SCHEMA other RENAME TO mallory') if $err eq '' && $change =~ /RENAME/;
	$session->query_safe('ROLLBACK');
	$session->quit;
	is(deeds(), 0, "$change: nothing of mallory's runs");
	prepare_as('mallory', 'DROP TABLE mallory.notes; CREATE TABLE mallory.notes (order_id int REFERENCES shop.orders CHECK (order_id > 0)); INSERT INTO mallory.notes VALUES (1)');
	$server->prepare('game', 'SET client_min_messages = warning; DROP TABLE IF EXISTS mallory.more; DELETE FROM snowflake_migrate.declared_references');
}

# A foreign key that commits while the look waits for its lock.
foreach my $dry_run ('true', 'false')
{
	my ($planting, $adopting) = map { $server->background_psql('game', on_error_stop => 0, extra_params => ["--username=$_"]) } 'mallory', $superuser;

	watch();
	$planting->query_safe('BEGIN; CREATE TABLE mallory.more (order_id int REFERENCES shop.orders, CHECK (order_id IS NULL OR mallory.good()))');
	$adopting->query_until(qr/adopting/, "\\echo adopting\nSELECT * FROM snowflake_migrate.adopt('{shop.orders}', dry_run => $dry_run);\n");
	wait_for_lock('shop.orders', $dry_run eq 'true' ? '^RowExclusive' : '^AccessExclusive');
	$planting->query_safe('COMMIT');
	my $said = $adopting->query('SELECT 1');

	like("$said$adopting->{stderr}", qr/code of role mallory would run/, "foreign key that is added meanwhile, dry_run => $dry_run: is refused");
	is(deeds(), 0, "foreign key that is added meanwhile, dry_run => $dry_run: nothing of mallory's runs");
	$_->quit foreach $planting, $adopting;
	prepare_as('mallory', 'DROP TABLE mallory.more');
}

# After SET ROLE to one that can't lock the declarations, mallory could declare that a table of his refers.
prepare_as('app', 'CREATE TABLE app.alone (id serial PRIMARY KEY)');
refused('declarations that cannot be locked', 'adopt, dry run' => q{SET ROLE app; SELECT * FROM snowflake_migrate.adopt('{app.alone}', dry_run => true)});
$server->prepare('game', 'REVOKE ALL ON snowflake_migrate.declared_references FROM mallory');
allowed('declarations that nobody writes', $superuser, q{SET ROLE app; SELECT * FROM snowflake_migrate.adopt('{app.alone}', dry_run => true)});

# The schema of the new default can't be exchanged meanwhile.
$server->prepare('game', 'ALTER SCHEMA public OWNER TO mallory');
{
	my $session = $server->background_psql('game', on_error_stop => 1);

	$session->query_safe(q{BEGIN; SELECT * FROM snowflake_migrate.adopt('{app.alone}', dry_run => true)});
	($out, $err) = run_as('mallory', q{SET lock_timeout = '100ms'; ALTER SCHEMA public RENAME TO other});
	like($err, qr/lock timeout/, "schema of snowflake_nextval(): waits for the superuser's transaction");
	$session->query_safe('ROLLBACK');
	$session->quit;
	$server->prepare('game', 'ALTER SCHEMA other RENAME TO public') if $err eq '';
}
$server->prepare('game', q{
	CREATE FUNCTION shop.exchange() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
	BEGIN
		ALTER SCHEMA public RENAME TO other;
		CREATE SCHEMA public;
		GRANT USAGE ON SCHEMA public TO PUBLIC;
		CREATE FUNCTION public.snowflake_nextval() RETURNS bigint LANGUAGE sql AS 'SELECT 7::bigint';
	END $$;
	CREATE EVENT TRIGGER exchange ON ddl_command_start WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION shop.exchange();
});
($out, $err) = run_as('app', q{SELECT * FROM snowflake_migrate.adopt('{app.alone}')});
like($err, qr/ERROR:  the schema of snowflake_nextval\(\) was renamed while tables were adopted/, 'schema of snowflake_nextval(): that it was exchanged is an error') or diag($out);
$server->prepare('game', 'DROP EVENT TRIGGER exchange; ALTER SCHEMA public OWNER TO pg_database_owner');

# What is plain is not refused, whoever owns it; nor what casts, but no type of another role.
prepare_as('mallory', q{ALTER TABLE mallory.notes ADD COLUMN shade mallory.shade DEFAULT 'dark', ADD CHECK (to_jsonb(order_id) IS NOT NULL AND 'n'::text || order_id <> ''),
	ADD CHECK (shade >= 'dark' AND shade::text <> 'x')});
allowed('adopt, a plain CHECK of another role', $superuser, q{SELECT * FROM snowflake_migrate.adopt('{shop.orders}')});
is($server->prepare('game', q{SELECT format_type(atttypid, -1) FROM pg_attribute WHERE attrelid = 'mallory.notes'::regclass AND attname = 'order_id'}),
	'bigint', 'adopt, a plain CHECK of another role: the column is widened');

# An application's role owns all tables and has functions in its CHECKs.  The operator connects as that role.
prepare_as('app', q{
	CREATE FUNCTION app.is_good(bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1 > 0';
	CREATE TABLE app.orders (id serial PRIMARY KEY CHECK (app.is_good(id)));
	CREATE TABLE app.items (id serial PRIMARY KEY, order_id int REFERENCES app.orders CHECK (app.is_good(order_id)));
	CREATE INDEX ON app.items ((app.is_good(order_id)));
	INSERT INTO app.orders DEFAULT VALUES;
	INSERT INTO app.items (order_id) VALUES (1);
});
($out, $err) = run_as($superuser, q{SELECT * FROM snowflake_migrate.adopt('{app.orders,app.items}', dry_run => true)});
like($out, qr/Connect as role app, .*code of role app would run with the rights of role \Q$superuser\E/, 'adopt, an application: says who has to connect');
allowed('adopt, an application', 'app', q{SELECT * FROM snowflake_migrate.adopt('{app.orders,app.items}')});
is($server->prepare('game', q{SELECT count(*) FROM pg_attribute WHERE attrelid IN ('app.orders'::regclass, 'app.items'::regclass) AND attnum > 0 AND atttypid = 'bigint'::regtype}),
	3, 'adopt, an application: its columns are widened');

# What the dry run advises to create again: another role's function does not become the superuser's, and nobody else gets a right on it;
# nor does the query of another role's materialized view run.
create_orders();
prepare_as('mallory', q{
	DROP TABLE mallory.notes;
	CREATE TABLE mallory.notes (order_id int REFERENCES shop.orders, next int GENERATED ALWAYS AS (order_id + 1) STORED); INSERT INTO mallory.notes VALUES (1);
	CREATE FUNCTION mallory.count(int) RETURNS boolean LANGUAGE sql SECURITY DEFINER BEGIN ATOMIC SELECT order_id FROM mallory.notes; SELECT mallory.deed(); END;
	REVOKE ALL ON FUNCTION mallory.count(int) FROM PUBLIC; GRANT EXECUTE ON FUNCTION mallory.count(int) TO app; COMMENT ON FUNCTION mallory.count(int) IS 'counts';
	CREATE PROCEDURE mallory.proceed() LANGUAGE sql SECURITY DEFINER BEGIN ATOMIC SELECT order_id FROM mallory.notes; SELECT mallory.deed(); END;
	CREATE MATERIALIZED VIEW mallory.noted AS SELECT order_id FROM mallory.notes WHERE mallory.deed();
	CREATE INDEX ON mallory.noted ((mallory.good())); CREATE INDEX ON mallory.noted ((mallory.good(order_id)));
	CREATE MATERIALIZED VIEW mallory.unnoted AS SELECT order_id FROM mallory.notes WITH NO DATA;
});
$server->prepare('game', 'CREATE FUNCTION shop.own() RETURNS int LANGUAGE sql SECURITY DEFINER BEGIN ATOMIC SELECT id FROM shop.orders; END; REVOKE ALL ON FUNCTION shop.own() FROM PUBLIC');

my $again_as = sub
{
	my ($role) = @_;

	my ($commands, $errors) = run_as($superuser, qq{SELECT substr(action, strpos(action, E'\n') + 1) FROM snowflake_migrate.adopt('{shop.orders}', dry_run => true)
		WHERE action ~ '^[^\n]* it again after} . ($role ? ", connected as role $role" : '') . q{:'});

	is($errors, '', 'advice: a dry run');
	return $commands;
};
my $definitions = q{SELECT oid::regprocedure, proowner::regrole, proacl, obj_description(oid) FROM pg_proc WHERE oid IN ('mallory.count(int)'::regprocedure, 'mallory.proceed'::regproc, 'shop.own'::regproc) ORDER BY 1;
	SELECT oid::regclass, relowner::regrole, relispopulated FROM pg_class WHERE oid IN ('mallory.noted'::regclass, 'mallory.unnoted'::regclass) ORDER BY oid::regclass::text;
	SELECT replace(indexdef, '(order_id)::bigint', 'order_id') FROM pg_indexes WHERE tablename = 'noted' ORDER BY 1};
my $defined = $server->prepare('game', $definitions);
my $again = $again_as->();

is($again_as->('mallory'), 'ALTER TABLE mallory.notes ADD COLUMN next integer GENERATED ALWAYS AS ((order_id + 1)) STORED;', "advice: a column of another role's table is his to add again");
$server->prepare('game', 'DROP FUNCTION mallory.count; DROP PROCEDURE mallory.proceed; DROP FUNCTION shop.own; DROP MATERIALIZED VIEW mallory.noted, mallory.unnoted; ALTER TABLE mallory.notes DROP COLUMN next');
allowed('advice: adopt, when all of it is dropped', $superuser, q{SELECT * FROM snowflake_migrate.adopt('{shop.orders}')});
allowed('advice: what creates it again', $superuser, $again);
is($server->prepare('game', $definitions), $defined, 'advice: it is as it was');
allowed("advice: mallory's calls", 'mallory', 'SELECT mallory.count(1); CALL mallory.proceed(); REFRESH MATERIALIZED VIEW mallory.noted');
$server->prepare('game', 'DROP FUNCTION mallory.count; DROP PROCEDURE mallory.proceed; DROP FUNCTION shop.own; DROP MATERIALIZED VIEW mallory.noted, mallory.unnoted');

# Looking at ids.
prepare_as('mallory', q{
	CREATE TABLE mallory.ids (id bigint);
	CREATE INDEX ON mallory.ids ((mallory.good()));
	CREATE VIEW mallory.few AS SELECT id FROM mallory.ids WHERE mallory.deed();
	CREATE VIEW mallory.many AS SELECT 1::bigint AS id, mallory.deed() AS d OFFSET 0;
	CREATE MATERIALIZED VIEW mallory.kept AS SELECT 1::bigint AS id;
	CREATE INDEX ON mallory.kept ((mallory.good()));
	CREATE TABLE mallory.plain (id bigint CHECK (id > 0));
	GRANT SELECT ON ALL TABLES IN SCHEMA mallory TO PUBLIC;
});
$server->prepare('game', q{CREATE VIEW shop.all_ids AS SELECT id FROM mallory.few;
	CREATE TABLE mallory.colored (id bigint, color mallory.color, shade mallory.shade);
	ALTER TABLE mallory.colored OWNER TO mallory;
	INSERT INTO mallory.colored VALUES (1, 'red', 'dark');
	CREATE VIEW shop.red AS SELECT id FROM mallory.colored WHERE quote_literal(color) <> '';
	CREATE VIEW shop.dark AS SELECT id FROM mallory.colored WHERE 'x'::text || shade <> '';
	CREATE VIEW shop.dark_rows AS SELECT id FROM (SELECT id, shade FROM mallory.colored) AS r WHERE to_json(r) IS NOT NULL;
	CREATE VIEW shop.all_shades AS SELECT id FROM mallory.colored WHERE shade::text || '' <> ''});
refused($_, audit => "SELECT * FROM snowflake_audit('$_', 'id')") foreach qw(mallory.ids mallory.few mallory.many mallory.kept shop.all_ids
  shop.red shop.dark shop.dark_rows);
refused('mallory.ids, read-only', audit => q{BEGIN READ ONLY; SELECT * FROM snowflake_audit('mallory.ids', 'id')});
refused('mallory.ids, repeatable read', audit => q{BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM snowflake_audit('mallory.ids', 'id')});
allowed("audit, a view that casts to a type of PostgreSQL's own", $superuser, q{SELECT * FROM snowflake_audit('shop.all_shades', 'id')});
refused('mallory.plain, repeatable read', audit => q{BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM snowflake_audit('mallory.plain', 'id')});
allowed('audit, a plain table', $superuser, q{SELECT * FROM snowflake_audit('mallory.plain', 'id')});
prepare_as('mallory', 'CREATE TABLE mallory.checked (id bigint CHECK (mallory.good(id)), CHECK (mallory.good())); INSERT INTO mallory.checked VALUES (1)');
allowed("audit, a table with CHECKs, constraint_exclusion = $_", $superuser, "SET constraint_exclusion = $_; SELECT * FROM snowflake_audit('mallory.checked', 'id')")
  foreach qw(off partition on);
# A read-only transaction can't lock the schema, whose owner could put another in its place.
refused('mallory.plain, read-only', audit => q{BEGIN READ ONLY; SELECT * FROM snowflake_audit('mallory.plain', 'id')});
$server->prepare('game', 'REVOKE CREATE ON DATABASE game FROM mallory');
allowed('audit, a plain table, read-only', $superuser, q{BEGIN READ ONLY; SELECT * FROM snowflake_audit('mallory.plain', 'id')});
$server->prepare('game', 'GRANT CREATE ON DATABASE game TO mallory');
allowed('audit, with rights of its own', 'app', q{SELECT * FROM snowflake_audit('mallory.few', 'id')});

# In a superuser's function that others may call.
$server->prepare('game', q{
	CREATE FUNCTION shop.audit(regclass) RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$ SELECT count(*) FROM snowflake_audit($1, 'id') $$;
	GRANT USAGE ON SCHEMA shop TO app});
watch();
like((run_as('app', q{SELECT shop.audit('mallory.ids')}))[1], qr/code of role mallory would run with the rights of role \Q$superuser\E/, 'audit in a function of a superuser: is refused');
is(deeds(), 0, 'audit in a function of a superuser: nothing of mallory\'s runs');

# What a superuser has made of mallory's, and the other way round.
prepare_as('mallory', q{
	CREATE FUNCTION mallory.compare(bigint, bigint) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM mallory.deed(); RETURN btint8cmp($1, $2); END $$;
	CREATE FUNCTION mallory.difference(bigint, bigint) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM mallory.deed(); RETURN 0; END $$});
$server->prepare('game', q{
	CREATE OPERATOR CLASS shop.ops FOR TYPE bigint USING btree AS
		OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 mallory.compare(bigint, bigint);
	CREATE DOMAIN shop.domain AS mallory.number;
	CREATE DOMAIN shop.array AS mallory.number[];
	CREATE TYPE shop.row AS (number mallory.number);
	CREATE TYPE shop.range AS RANGE (subtype = mallory.number);
	CREATE TYPE shop.differs AS RANGE (subtype = bigint, subtype_diff = mallory.difference);
	CREATE DOMAIN shop.checked AS bigint CHECK (VALUE::mallory.number IS NOT NULL);
	CREATE FOREIGN DATA WRAPPER nowhere;
	CREATE SERVER trusted FOREIGN DATA WRAPPER nowhere;
	GRANT USAGE ON FOREIGN SERVER trusted TO mallory;
	CREATE SERVER others FOREIGN DATA WRAPPER nowhere;
	ALTER SERVER others OWNER TO mallory;
	CREATE FOREIGN TABLE shop.far (id bigint) SERVER others});
prepare_as('mallory', q{CREATE FOREIGN TABLE mallory.far (id bigint) SERVER trusted});
refused($_, audit => "SELECT * FROM snowflake_audit('$_', 'id')") foreach qw(mallory.far shop.far);
foreach my $index ('id shop.ops', map { "(NULL::shop.$_ IS NULL)" } qw(domain array row range differs checked))
{
	prepare_as('mallory', "CREATE TABLE mallory.indexed (id bigint); CREATE INDEX ON mallory.indexed ($index)");
	refused("index ($index)", audit => q{SELECT * FROM snowflake_audit('mallory.indexed', 'id')});
	prepare_as('mallory', 'DROP TABLE mallory.indexed');
}
prepare_as('mallory', 'CREATE TABLE mallory.keyed (id bigint) PARTITION BY LIST ((mallory.good(id)))');
refused('partition key', audit => q{SELECT * FROM snowflake_audit('mallory.keyed', 'id')});

# A role that has nothing but one of these.
foreach my $object ('FUNCTION shop.audit(regclass)', 'OPERATOR shop.- (int[], int)', 'SERVER trusted')
{
	$server->prepare('game', "CREATE ROLE nobody; ALTER $object OWNER TO nobody");
	is($server->prepare('game', q{SELECT snowflake_internal.has_foreign_objects(ARRAY['nobody'::regrole::oid], '{}')}), 't', "a role that has $object");
	$server->prepare('game', 'REASSIGN OWNED BY nobody TO CURRENT_USER; DROP ROLE nobody');
}

# Where a table can't be locked, code could be added between the look and the query.
$server->prepare('game', q{
	CREATE ROLE reader;
	CREATE TABLE mallory.supers (id bigint);
	CREATE VIEW mallory.supers_few AS SELECT id FROM shop.orders;
	CREATE MATERIALIZED VIEW mallory.supers_kept AS SELECT id FROM shop.orders;
	GRANT SELECT ON mallory.supers, mallory.supers_few, mallory.supers_kept TO reader;
});
refused('SET ROLE to one that only reads', audit => q{SET ROLE reader; SELECT * FROM snowflake_audit('mallory.plain', 'id')});
# Nor can a schema: its owner could rename it, and put another in its place.
refused('SET ROLE, schema of another role', audit => q{SET ROLE reader; SELECT * FROM snowflake_audit('mallory.supers', 'id')});
$server->prepare('game', 'REVOKE CREATE ON DATABASE game FROM mallory');
allowed('SET ROLE, schema of another role that cannot create one', $superuser, q{SET ROLE reader; SELECT * FROM snowflake_audit('mallory.supers', 'id')});
$server->prepare('game', 'GRANT CREATE ON DATABASE game TO mallory');
refused('SET ROLE, table in a schema of another role', audit => q{SET ROLE reader; SELECT * FROM snowflake_audit('mallory.supers_kept', 'id')});
# Whoever owns a schema drops what others have in it, and could put something else in its place.
foreach my $relation ('TABLE mallory.supers', 'VIEW mallory.supers_few')
{
	my $session = $server->background_psql('game', on_error_stop => 1);
	my ($name) = $relation =~ /(\S+)$/;

	$session->query_safe("BEGIN; SELECT * FROM snowflake_audit('$name', 'id')");
	($out, $err) = run_as('mallory', "SET lock_timeout = '100ms'; BEGIN; DROP $relation CASCADE; ROLLBACK");
	like($err, qr/lock timeout/, "DROP $relation: waits for the superuser's transaction");
	$session->query_safe('ROLLBACK');
	$session->quit;
}
$server->backup('primary');

my $standby = Snowflake::Server->new('owners_standby');

$standby->init_from_backup($server, 'primary', has_streaming => 1);
$standby->start;
$server->wait_for_catchup($standby);
my $standby_err;
$standby->psql('game', q{SELECT * FROM snowflake_audit('mallory.plain', 'id')}, stderr => \$standby_err);
like($standby_err, qr/code of role mallory would run with the rights of role \Q$superuser\E if it was added meanwhile/, 'standby: an audit is refused');
$standby->psql('game', q{SELECT * FROM snowflake_audit('mallory.supers', 'id')}, stderr => \$standby_err);
like($standby_err, qr/code of role mallory .* as the schema of the table cannot be locked/, "standby: an audit of a superuser's table is refused in another role's schema");
$standby->psql('game', q{SELECT * FROM snowflake_audit('mallory.plain', 'id')}, stderr => \$standby_err, connstr => $standby->connstr('game') . ' user=app');
is($standby_err, '', 'standby: an audit by another role is done');
$standby->stop;

# A partition that is attached while the look waits for a lock.
prepare_as('mallory', q{
	CREATE TABLE mallory.parts (id bigint, k int) PARTITION BY LIST (k);
	CREATE TABLE mallory.parts_1 PARTITION OF mallory.parts FOR VALUES IN (1);
	CREATE TABLE mallory.attached (id bigint, k int NOT NULL CHECK (k = 2));
});

my ($attaching, $holding) = map { $server->background_psql('game', on_error_stop => 0, extra_params => [ '--username=mallory' ]) } 1 .. 2;
my $looking = $server->background_psql('game', on_error_stop => 0);

watch();
$attaching->query_safe('BEGIN; ALTER TABLE mallory.parts ATTACH PARTITION mallory.attached FOR VALUES IN (2)');
$holding->query_until(qr/holding/, "\\echo holding\nBEGIN; LOCK TABLE mallory.attached IN ACCESS EXCLUSIVE MODE;\n");
wait_for_lock('mallory.attached', '^AccessExclusive');
$looking->query_until(qr/looking/, "\\echo looking\nSELECT * FROM snowflake_audit('mallory.parts', 'id');\n");
wait_for_lock('mallory.parts', '^ShareUpdate');
$attaching->query_safe('COMMIT');
wait_for_lock('mallory.attached', '^(ShareUpdate|AccessShare)');
$holding->query_safe('CREATE INDEX ON mallory.attached ((mallory.good())); COMMIT');
$looking->query('SELECT 1');
like($looking->{stderr}, qr/code of role mallory would run/, 'partition that is attached meanwhile: is refused');
is(deeds(), 0, 'partition that is attached meanwhile: nothing of mallory\'s runs');
$_->quit foreach $attaching, $holding;

# Another table that takes the name of one that is to be locked.
my $renaming = $server->background_psql('game', on_error_stop => 0, extra_params => [ '--username=mallory' ]);

$renaming->query_safe('BEGIN; ALTER TABLE mallory.plain RENAME TO renamed; CREATE TABLE mallory.plain (id bigint)');
$looking->{stderr} = '';
$looking->query_until(qr/looking/, "\\echo looking\nSELECT * FROM snowflake_audit('mallory.plain', 'id');\n");
wait_for_lock('mallory.plain', '^ShareUpdate');
$renaming->query_safe('COMMIT');
$looking->query('SELECT 1');
like($looking->{stderr}, qr/table mallory.plain was renamed while it was to be locked/, 'table that is renamed meanwhile: is refused');
$_->quit foreach $renaming, $looking;

# A temporary table of another session is passed over.
my $temporary = $server->background_psql('game', on_error_stop => 1, extra_params => [ '--username=mallory' ]);

$temporary->query_safe('CREATE TEMPORARY TABLE child () INHERITS (mallory.plain); CREATE INDEX ON child ((mallory.good()))');
allowed("audit, a table with a temporary child of another session", $superuser, q{SELECT * FROM snowflake_audit('mallory.plain', 'id')});
$temporary->quit;

# Declaring: the expression is tried.
refused('declaration', 'declare_reference' => q{SELECT snowflake_migrate.declare_reference('mallory.ids', 'id', 'shop.orders', 'id > 0')});
prepare_as('mallory', 'CREATE UNIQUE INDEX ids_id ON mallory.ids (id)');
refused('declaration', 'declare_policy' => q{SELECT snowflake_migrate.declare_policy('mallory.ids', 'ids_id', 'rerank', 'id')});

# Merging.
my $node = 700;

sub world
{
	my ($owner) = @_;

	$server->prepare('game', qq{
		SET client_min_messages = warning;
		DROP SCHEMA IF EXISTS realm, west CASCADE;
		DELETE FROM snowflake_migrate.runs;
		CREATE SCHEMA realm AUTHORIZATION $owner;
		CREATE SCHEMA west AUTHORIZATION $owner;
		SET ROLE $owner;
		CREATE TABLE realm.heroes (id bigint PRIMARY KEY DEFAULT public.snowflake_nextval() CHECK (id <> 0), name text, rank int);
		CREATE TABLE west.heroes (id bigint PRIMARY KEY, name text, rank int);
		CREATE TABLE realm.items (id bigint PRIMARY KEY DEFAULT public.snowflake_nextval(), hero bigint REFERENCES realm.heroes);
		CREATE TABLE west.items (id bigint PRIMARY KEY, hero bigint REFERENCES west.heroes);
		INSERT INTO realm.heroes VALUES (1, 'Lancelot', 1);
		INSERT INTO realm.items VALUES (1, 1);
		INSERT INTO west.heroes VALUES (1, 'Gawain', 1), (2, 'Bors', 2);
		INSERT INTO west.items VALUES (1, 2);
	});
	return;
}

sub merge_call
{
	my ($more) = @_;

	$node++;
	return "CALL snowflake_migrate.merge('{west}', 'realm', '{$node}'" . ($more // '') . ')';
}

my $check = q{SELECT concat_ws(' | ', severity, relation, object, problem, advice) FROM snowflake_migrate.check('{west}', 'realm')};

# Without planted code the superuser may.
world('mallory');
allowed('check, plain', $superuser, $check);
allowed('dry run, plain', $superuser, merge_call(', dry_run => true'));

my %target_plants = (
	%plants,
	'default of a column that the source lacks' => 'ALTER TABLE t ADD COLUMN planted boolean; ALTER TABLE t ALTER planted SET DEFAULT mallory.deed()',
	'trigger' => 'CREATE TRIGGER planted BEFORE INSERT OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION mallory.fire(); ALTER TABLE t ENABLE ALWAYS TRIGGER planted',
	'trigger of replicas' => 'CREATE TRIGGER planted BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION mallory.fire(); ALTER TABLE t ENABLE REPLICA TRIGGER planted',
	'condition of a trigger' => 'CREATE TRIGGER planted BEFORE INSERT ON t FOR EACH ROW WHEN (mallory.good()) EXECUTE FUNCTION suppress_redundant_updates_trigger(); ALTER TABLE t ENABLE ALWAYS TRIGGER planted',
	'rule' => 'CREATE RULE planted AS ON INSERT TO t DO ALSO SELECT mallory.deed(); ALTER TABLE t ENABLE ALWAYS RULE planted',
	'domain' => 'ALTER TABLE t ALTER rank TYPE mallory.number',
	'domain without a CHECK yet' => 'CREATE DOMAIN mallory.plain_number AS int; ALTER TABLE t ALTER rank TYPE mallory.plain_number',
	'type with a cast' => q{ALTER TABLE t ADD COLUMN color mallory.color DEFAULT 'red'},
	'partition key of a parent' => 'CREATE TABLE mallory.parent (LIKE t) PARTITION BY LIST ((mallory.good(id)));
		ALTER TABLE mallory.parent ATTACH PARTITION t FOR VALUES IN (true)',
	'default of a column that one source lacks' => 'ALTER TABLE t ADD COLUMN planted boolean; ALTER TABLE west.heroes ADD COLUMN planted boolean;
		ALTER TABLE t ALTER planted SET DEFAULT mallory.deed(); CREATE RULE planted AS ON DELETE TO realm.items DO ALSO INSERT INTO t (name) VALUES (NULL)',
	'cast of a referring column' => q{CREATE TABLE mallory.refers (id mallory.digit REFERENCES t)},
	'referring table' => 'CREATE TABLE mallory.refers (id bigint REFERENCES t); CREATE INDEX ON mallory.refers ((mallory.good()))',
);
my %source_plants = (
	'index of a source' => 'CREATE INDEX ON west.heroes ((mallory.good()))',
	# What the check reads to find ids: documents, kinds of ids.
	'index of a source with documents' => q{ALTER TABLE realm.heroes ADD doc jsonb; ALTER TABLE west.heroes ADD doc jsonb; UPDATE west.heroes SET doc = '{"item_id": 1}';
		CREATE INDEX ON west.heroes (id) WHERE mallory.good()},
	'index of a source with kinds of ids' => q{ALTER TABLE realm.heroes ADD owner_type text, ADD owner_id bigint; ALTER TABLE west.heroes ADD owner_type text, ADD owner_id bigint;
		UPDATE west.heroes SET owner_type = 'item', owner_id = 1; CREATE INDEX ON west.heroes (id) WHERE mallory.good()},
	'view as a source' => 'ALTER TABLE west.items DROP CONSTRAINT items_hero_fkey; ALTER TABLE west.heroes RENAME TO really;
		CREATE VIEW west.heroes AS SELECT id, name, rank FROM west.really WHERE mallory.deed()',
	'domain of a source' => 'ALTER TABLE west.heroes ALTER rank TYPE mallory.number',
	'table that only the source has' => 'CREATE TABLE west.more (id bigint); CREATE INDEX ON west.more ((mallory.good()))',
);

foreach my $place (sort(keys %target_plants, keys %source_plants))
{
	world('mallory');
	prepare_as('mallory', ($target_plants{$place} // $source_plants{$place}) =~ s/\bt\b/realm.heroes/gr);
	refused($place, check => $check, 'dry run' => merge_call(', dry_run => true'), merge => merge_call());
	$server->prepare('game', q{SET client_min_messages = warning; DROP SCHEMA realm, west CASCADE; DROP DOMAIN IF EXISTS mallory.plain_number;
		DROP TABLE IF EXISTS mallory.refers, mallory.parent; DROP VIEW IF EXISTS mallory.seen});
}

# What is not evaluated is not refused: types and defaults that no row passes through.
world('mallory');
prepare_as('mallory', q{
	CREATE TABLE realm.more (id bigint PRIMARY KEY DEFAULT public.snowflake_nextval(), color mallory.color);
	CREATE TABLE realm.ignored (id bigint PRIMARY KEY DEFAULT public.snowflake_nextval(), color mallory.color);
	CREATE TABLE mallory.refers (id bigint REFERENCES realm.heroes, color mallory.color);
	ALTER TABLE realm.heroes ALTER name SET DEFAULT mallory.deed()::text;
	ALTER TABLE west.heroes ADD COLUMN color mallory.color DEFAULT 'red';
});
$server->prepare('game', q{SELECT snowflake_migrate.declare_table('realm.ignored', 'ignore'),
	snowflake_migrate.declare_table('realm.heroes', 'copy', ignored_columns => '{color}')});
unlike(allowed('check, what is not evaluated', $superuser, $check), qr/code of role/, 'check, what is not evaluated: no code is found');
my $plain_run = allowed('merge, what is not evaluated', $superuser, merge_call());
allowed('verify, what is not evaluated', $superuser, "SELECT * FROM snowflake_migrate.verify($plain_run)");

# Rows are told of as records: their owner could add a cast for his own table's.
prepare_as('mallory', q{
	INSERT INTO mallory.refers SELECT id FROM realm.heroes ORDER BY id DESC LIMIT 1;
	CREATE FUNCTION mallory.to_text(mallory.refers) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM mallory.deed(); RETURN ''; END $$;
	CREATE CAST (mallory.refers AS text) WITH FUNCTION mallory.to_text(mallory.refers);
});
watch();
like((run_as($superuser, "CALL snowflake_migrate.rollback($plain_run)"))[1], qr/refer/, 'rollback, a newer reference: is refused');
is(deeds(), 0, "rollback, a newer reference: nothing of mallory's runs");
prepare_as('mallory', 'DROP TABLE mallory.refers CASCADE');
allowed('rollback, what is not evaluated', $superuser, "CALL snowflake_migrate.rollback($plain_run)");
world('mallory');
prepare_as('mallory', q{
	CREATE TABLE realm.notes (note varchar(3));
	CREATE TABLE west.notes (note text);
	INSERT INTO west.notes VALUES ('abcd');
	CREATE FUNCTION mallory.to_text(west.notes) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM mallory.deed(); RETURN ''; END $$;
	CREATE CAST (west.notes AS text) WITH FUNCTION mallory.to_text(west.notes);
});
watch();
like((run_as($superuser, $check))[0], qr/^error \| realm.notes \| note /m, 'check, a row that does not fit: is told of');
is(deeds(), 0, "check, a row that does not fit: nothing of mallory's runs");
$server->prepare('game', 'SET client_min_messages = warning; DROP SCHEMA realm, west CASCADE');

# Foreign keys of one partition, and to one, of a table that is the superuser's.
my %partition_plants = (
	'foreign key to a partition' => 'CREATE TABLE mallory.refers (x bigint REFERENCES realm.log_1); CREATE INDEX ON mallory.refers ((mallory.good()))',
	'foreign key of a partition' => 'CREATE TABLE mallory.refers (x bigint PRIMARY KEY); ALTER TABLE realm.log_1 ADD FOREIGN KEY (k) REFERENCES mallory.refers;
		CREATE INDEX ON mallory.refers ((mallory.good()))',
);

sub partitioned_world
{
	$server->prepare('game', q{
		SET client_min_messages = warning;
		DROP TABLE IF EXISTS mallory.refers CASCADE;
		DROP SCHEMA IF EXISTS realm, west CASCADE;
		DELETE FROM snowflake_migrate.runs;
		CREATE SCHEMA realm;
		CREATE SCHEMA west;
		GRANT USAGE ON SCHEMA realm, west TO merger;
		GRANT USAGE, CREATE ON SCHEMA realm TO mallory;
		CREATE TABLE realm.log (id bigint PRIMARY KEY DEFAULT public.snowflake_nextval(), k bigint) PARTITION BY RANGE (id);
		CREATE TABLE realm.log_1 PARTITION OF realm.log DEFAULT;
		GRANT REFERENCES ON realm.log_1 TO mallory;
		CREATE TABLE west.log (id bigint PRIMARY KEY, k bigint);
		INSERT INTO west.log SELECT g FROM generate_series(1, 10) AS g;
		GRANT ALL ON ALL TABLES IN SCHEMA realm, west TO merger;
	});
	return;
}

$server->prepare('game', q{SELECT snowflake_migrate.grant_to('merger')});
foreach my $place (sort keys %partition_plants)
{
	partitioned_world();
	my $run = allowed("merge, before $place", $superuser, merge_call());

	$server->prepare('game', 'ALTER TABLE realm.log_1 OWNER TO mallory') if $place =~ /of a partition/;
	prepare_as('mallory', $partition_plants{$place});
	$server->prepare('game', 'ALTER TABLE realm.log_1 OWNER TO CURRENT_USER');
	refused($place, check => $check,
		verify => "SELECT * FROM snowflake_migrate.verify($run)", rollback => "CALL snowflake_migrate.rollback($run)");
	like(allowed("$place, a role that merges", 'merger', $check), qr/^warning \| mallory.refers \| index \S+ \| code of role mallory would run with the rights of role merger/m,
		"$place: the check says so to a role that merges");
}

# A foreign key to a table of the superuser's, that is added while it is proved or taken back.
partitioned_world();
my $proved = allowed('merge, before a foreign key', $superuser, merge_call());
my $planted = 'CREATE TABLE mallory.refers (x bigint REFERENCES realm.log_1); CREATE INDEX ON mallory.refers ((mallory.good()))';
{
	my $session = $server->background_psql('game', on_error_stop => 1);

	$session->query_safe("BEGIN; SELECT * FROM snowflake_migrate.verify($proved)");
	($out, $err) = run_as('mallory', "SET lock_timeout = '100ms'; $planted");
	like($err, qr/lock timeout/, "foreign key to what is proved: waits for the superuser's transaction");
	$session->query_safe('ROLLBACK');
	$session->quit;
	$server->prepare('game', 'SET client_min_messages = warning; DROP TABLE IF EXISTS mallory.refers');
}
{
	my ($planting, $taking_back) = map { $server->background_psql('game', on_error_stop => 0, extra_params => ["--username=$_"]) } 'mallory', $superuser;

	watch();
	$planting->query_safe("BEGIN; $planted");
	$taking_back->query_until(qr/begun/, "\\echo begun\nCALL snowflake_migrate.rollback($proved);\n");
	wait_for_lock('realm.log_1', '^RowExclusive');
	$planting->query_safe('COMMIT');
	$taking_back->query('SELECT 1');
	like($taking_back->{stderr}, qr/code of role mallory would run/, 'foreign key to what is taken back: is refused');
	is(deeds(), 0, 'foreign key to what is taken back: nothing of mallory\'s runs');
	$_->quit foreach $planting, $taking_back;
}

# The snapshot of a query that verifies may be older than the look.
partitioned_world();
$proved = allowed('merge, before an older snapshot', $superuser, merge_call());
prepare_as('mallory', 'CREATE TABLE mallory.refers (x bigint CONSTRAINT fk REFERENCES realm.log_1)');
{
	my ($holding, $proving) = map { $server->background_psql('game', on_error_stop => 0) } 1 .. 2;

	watch();
	$holding->query_safe('SELECT pg_advisory_lock(1)');
	$proving->query_until(qr/begun/, "\\echo begun\nSELECT v.* FROM (SELECT pg_advisory_lock(1) OFFSET 0) AS w, snowflake_migrate.verify($proved + 0 * length(w::text)) AS v;\n");
	$server->poll_query_until('game', q{SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND locktype = 'advisory')});
	prepare_as('mallory', 'BEGIN; ALTER TABLE mallory.refers DROP CONSTRAINT fk; CREATE INDEX ON mallory.refers ((mallory.good())); COMMIT');
	$holding->query_safe('SELECT pg_advisory_unlock(1)');
	$proving->query_safe('SELECT 1');
	is(deeds(), 0, 'verify, an older snapshot: nothing of mallory\'s runs');
	$_->quit foreach $holding, $proving;
}
$server->prepare('game', 'SET client_min_messages = warning; DROP TABLE mallory.refers');

# A superuser who has put on a role that can't lock the schema of a source: its owner could exchange it.
partitioned_world();
$server->prepare('game', 'ALTER SCHEMA west OWNER TO mallory');
refused('SET ROLE, schema of a source', check => "SET ROLE merger; $check", 'dry run' => 'SET ROLE merger; ' . merge_call(', dry_run => true'));
allowed('schema of a source, without SET ROLE', $superuser, $check);
# Functions and operators that a merge looks for anew, by their names: others of the same name may fit better.
$server->prepare('game', q{
	CREATE FUNCTION shop.is_set(anyelement) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1 IS NOT NULL';
	CREATE FUNCTION shop.is_large(bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1 > 0';
	CREATE FUNCTION shop.is_small(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1 < 1000';
});
my $overloads = q{
	CREATE FUNCTION shop.is_set(int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN mallory.deed(); END $$;
	CREATE FUNCTION shop.is_large(int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN mallory.deed(); END $$;
};
prepare_as('mallory', q{
	CREATE FUNCTION shop.is_small(bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN mallory.deed(); END $$;
	CREATE FUNCTION shop.is_small(anyelement) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN mallory.deed(); END $$;
});
my %rebound = (
	'CHECK of any type' => 'ALTER TABLE realm.heroes ADD CHECK (shop.is_set(rank))',
	'CHECK of a wider type' => 'ALTER TABLE realm.heroes ADD CHECK (shop.is_large(rank))',
	'generated column' => 'ALTER TABLE realm.heroes ADD COLUMN is_set boolean GENERATED ALWAYS AS (shop.is_set(rank)) STORED',
	'unique index' => 'CREATE UNIQUE INDEX ON realm.heroes (id, (shop.is_large(rank)))',
	'default' => 'ALTER TABLE realm.heroes ADD COLUMN good boolean DEFAULT shop.is_set(1)',
	'CHECK of a domain' => 'CREATE DOMAIN realm.number AS int CHECK (shop.is_large(VALUE)); ALTER TABLE realm.heroes ALTER rank TYPE realm.number',
	'CHECK of a domain that a domain is over' => 'CREATE DOMAIN realm.n AS int CHECK (shop.is_large(VALUE)); CREATE DOMAIN realm.number AS realm.n; ALTER TABLE realm.heroes ALTER rank TYPE realm.number',
	'default of a domain' => 'CREATE DOMAIN realm.good AS boolean DEFAULT shop.is_set(1); ALTER TABLE realm.heroes ADD COLUMN good realm.good',
	'CHECK of a partition' => 'CREATE TABLE realm.log (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), rank int) PARTITION BY HASH (id); '
		. 'CREATE TABLE realm.log_1 PARTITION OF realm.log (CHECK (shop.is_set(rank))) FOR VALUES WITH (MODULUS 1, REMAINDER 0); CREATE TABLE west.log (id int PRIMARY KEY, rank int)',
	'unique index of a partition' => 'CREATE TABLE realm.log (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), rank int) PARTITION BY HASH (id); '
		. 'CREATE TABLE realm.log_1 PARTITION OF realm.log FOR VALUES WITH (MODULUS 1, REMAINDER 0); CREATE UNIQUE INDEX ON realm.log_1 (id, (shop.is_set(rank))); CREATE TABLE west.log (id int PRIMARY KEY, rank int)',
);
foreach my $place (sort keys %rebound)
{
	world($superuser);
	$server->prepare('game', $rebound{$place});
	prepare_as('mallory', $overloads);
	refused("overloaded, $place", check => $check, 'dry run' => merge_call(', dry_run => true'), merge => merge_call());
	prepare_as('mallory', 'DROP FUNCTION shop.is_set(int), shop.is_large(int)');
}
# Who may not create there any more has done so; an index that is only read is built again by it, too.
world($superuser);
$server->prepare('game', 'ALTER TABLE realm.heroes ADD CONSTRAINT is_set CHECK (shop.is_set(rank)); CREATE INDEX by_set ON realm.heroes (shop.is_set(rank))');
prepare_as('mallory', $overloads);
my $creators = $server->prepare('game', q{SELECT string_agg(DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, ', ')
	FROM pg_namespace AS n, aclexplode(n.nspacl) AS a WHERE n.nspname = 'shop' AND a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner});
$server->prepare('game', "REVOKE CREATE ON SCHEMA shop FROM $creators");
refused('overloaded before', check => $check, 'dry run' => merge_call(', dry_run => true'), merge => merge_call());
$server->prepare('game', 'ALTER TABLE realm.heroes DROP CONSTRAINT is_set');
allowed('overloaded before, an index: stays', $superuser, merge_call(', rebuild_indexes => true'));
is($server->prepare('game', q{SELECT count(*) FROM snowflake_migrate.report WHERE object = 'by_set' AND problem LIKE 'the index stays while rows are copied: role mallory could put something else %'}), '1',
	'overloaded before, an index: says why it stays');
$server->prepare('game', "GRANT CREATE ON SCHEMA shop TO $creators");
prepare_as('mallory', 'DROP FUNCTION shop.is_set(int), shop.is_large(int)');
# A name with a suffix is tried as what its column is: by the function of its very type.
world($superuser);
$server->prepare('game', q{
	CREATE FUNCTION shop.is_short(varchar) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT length($1) < 20';
	CREATE TABLE realm.names (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name varchar(20) CONSTRAINT names_name_key UNIQUE CHECK (shop.is_short(name)));
	CREATE TABLE west.names (id int PRIMARY KEY, name varchar(20));
	INSERT INTO realm.names VALUES (1, 'Ann'); INSERT INTO west.names VALUES (1, 'Ann');
	SELECT snowflake_migrate.declare_policy('realm.names', 'names_name_key', 'suffix')});
prepare_as('mallory', 'CREATE FUNCTION shop.is_short(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN mallory.deed(); END $$');
allowed('overloaded, a name with a suffix', $superuser, merge_call());
is($server->prepare('game', q{SELECT string_agg(name, ' ' ORDER BY name) FROM realm.names}), 'Ann Ann_west', 'overloaded, a name with a suffix: is one');
prepare_as('mallory', 'DROP FUNCTION shop.is_short(text)');
world($superuser);
$server->prepare('game', q{
	ALTER TABLE realm.heroes ADD CHECK (shop.is_small(rank)), ADD COLUMN sum bigint GENERATED ALWAYS AS (rank + 1) STORED;
	CREATE UNIQUE INDEX ON realm.heroes (id, (shop.is_small(rank)));
	CREATE DOMAIN realm.number AS int CHECK (shop.is_small(VALUE));
	ALTER TABLE realm.heroes ADD COLUMN number realm.number;
	GRANT USAGE ON SCHEMA realm TO mallory;
});
prepare_as('mallory', 'CREATE FUNCTION shop.is_small(realm.number) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN mallory.deed(); END $$');
allowed('overloaded, of the very types: check', $superuser, $check);
# What is named with its schema is looked for again: its owner could put another schema in its place.
$server->prepare('game', 'CREATE SCHEMA tools AUTHORIZATION mallory; ALTER FUNCTION shop.is_small(int) SET SCHEMA tools');
refused('functions in a schema of another role, SET ROLE', check => "SET ROLE merger; $check", 'dry run' => 'SET ROLE merger; ' . merge_call(', dry_run => true'));
# No lock keeps the constraint of a domain from being dropped with its function, in whose place another could come.
refused("a domain's function in a schema of another role", check => $check, merge => merge_call());
$server->prepare('game', 'ALTER DOMAIN realm.number DROP CONSTRAINT number_check');
change_waits("ALTER SCHEMA .. RENAME, of a schema of functions: waits for the superuser's check",
	hold => 'BEGIN; LOCK TABLE west.heroes IN ACCESS EXCLUSIVE MODE', release => 'ROLLBACK',
	call => $check, is_waiting => is_waiting_for_lock('snowflake_migrate.check'),
	changes => ['ALTER SCHEMA tools RENAME TO former_tools']);
$server->prepare('game', 'ALTER FUNCTION tools.is_small(int) SET SCHEMA shop; DROP SCHEMA tools; ALTER DOMAIN realm.number ADD CHECK (shop.is_small(VALUE))');
# One that has nothing but a type, which the texts that the check has made name.
prepare_as('mallory', 'CREATE SCHEMA kinds; GRANT USAGE, CREATE ON SCHEMA kinds TO PUBLIC');
$server->prepare('game', q{
	CREATE SCHEMA typed;
	CREATE SCHEMA typed_source;
	CREATE DOMAIN kinds.amount AS bigint;
	CREATE FUNCTION typed.waits(bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT pg_advisory_xact_lock_shared(7) IS NOT NULL';
	CREATE TABLE typed.notes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), kind bigint CHECK (typed.waits(kind)), amount kinds.amount CHECK (amount > 0));
	CREATE TABLE typed_source.notes AS SELECT 1 AS id, 1::bigint AS kind, 1::bigint AS amount;
	ALTER TABLE typed_source.notes ADD PRIMARY KEY (id);
});
change_waits("ALTER SCHEMA .. RENAME, of a schema of types: waits for the superuser's check",
	hold => 'SELECT pg_advisory_lock(7)', release => 'SELECT pg_advisory_unlock(7)',
	call => q{SELECT * FROM snowflake_migrate.check('{typed_source}', 'typed')},
	is_waiting => q{SELECT FROM pg_locks WHERE NOT granted AND locktype = 'advisory'},
	changes => ['ALTER SCHEMA kinds RENAME TO former_kinds']);
$server->prepare('game', 'DROP SCHEMA typed, typed_source, kinds CASCADE');
allowed('overloaded, of the very types: merge', $superuser, merge_call());
if ($server->prepare('game', q{SELECT count(*) FROM pg_available_extensions WHERE name = 'citext'}))
{
	world($superuser);
	$server->prepare('game', q{
		CREATE EXTENSION citext SCHEMA shop;
		CREATE DOMAIN realm.email AS shop.citext;
		ALTER TABLE realm.heroes ADD COLUMN mail realm.email UNIQUE;
		ALTER TABLE west.heroes ADD COLUMN mail realm.email;
		UPDATE realm.heroes SET mail = 'A@b';
		UPDATE west.heroes SET mail = id || '@b';
		CREATE TABLE realm.mails (mail realm.email REFERENCES realm.heroes (mail));
		GRANT USAGE ON SCHEMA realm TO mallory;
	});
	prepare_as('mallory', q{
		CREATE FUNCTION mallory.equal(realm.email, realm.email) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN NOT mallory.deed(); END $$;
		CREATE OPERATOR shop.= (leftarg = realm.email, rightarg = realm.email, function = mallory.equal);
	});
	my $mails = allowed('overloaded, an operator of a domain: merge', $superuser, merge_call());
	allowed('overloaded, an operator of a domain: verify', $superuser, "SELECT * FROM snowflake_migrate.verify($mails)");
	$server->prepare('game', 'SET client_min_messages = warning; DROP EXTENSION citext CASCADE');
}
$server->prepare('game', 'SET client_min_messages = warning; DROP SCHEMA realm, west CASCADE');

# Planted when the rows are copied already: to prove and to take back.  Each in a world of its own.
foreach my $place ('index of a constant', 'condition of an index', 'trigger', 'type with a cast', 'referring table')
{
	world('mallory');
	my $run = allowed("merge, before $place", $superuser, merge_call());

	prepare_as('mallory', $target_plants{$place} =~ s/\bt\b/realm.heroes/gr);
	refused($place, verify => "SELECT * FROM snowflake_migrate.verify($run)", rollback => "CALL snowflake_migrate.rollback($run)");
	$server->prepare('game', 'SET client_min_messages = warning; DROP TABLE IF EXISTS mallory.refers');
}

# A role that is made for migrating: the check says whose code it runs, and the merge goes on.
world('app');
prepare_as('app', q{
	GRANT USAGE ON SCHEMA app, realm, west TO merger;
	GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA realm, west TO merger;
	ALTER TABLE realm.heroes ADD CHECK (app.is_good(id));
});
$server->prepare('game', q{SELECT snowflake_migrate.grant_to('merger')});
($out, $err) = run_as($superuser, $check);
like($out, qr/^error \| realm.heroes \| constraint \S+ on table realm.heroes \| code of role app would run with the rights of role \Q$superuser\E: function app.is_good\(bigint\) \| Connect as .* Role app needs the rights to merge: SELECT snowflake_migrate.grant_to\('app'\);$/m,
	'check, an application: says who has to connect');
like(allowed('check, an application', 'merger', $check), qr/^warning \| realm.heroes \| constraint \S+ on table realm.heroes \| code of role app would run with the rights of role merger: function app.is_good\(bigint\)/m,
	'check, an application: says whose code runs');
# So it does of what could take the place of something.
$server->prepare('game', 'GRANT USAGE ON SCHEMA shop TO merger; ALTER TABLE realm.heroes ADD CONSTRAINT is_set CHECK (shop.is_set(rank))');
like(allowed('check, overloaded', 'merger', $check), qr/^warning \| realm.heroes \| constraint is_set .* of role mallory would run with the rights of role merger if it took the place of function shop.is_set\(anyelement\)/m,
	'check, overloaded: says whose code could run');
$server->prepare('game', 'ALTER TABLE realm.heroes DROP CONSTRAINT is_set; CREATE INDEX by_set ON realm.heroes (shop.is_set(rank))');
like(allowed('check, overloaded index', 'merger', q{
	CALL snowflake_migrate.merge('{west}', 'realm', '{501}', dry_run => true, rebuild_indexes => true);
	SELECT problem FROM snowflake_migrate.report WHERE object = 'by_set'}), qr/^the index stays while rows are copied: role mallory could put something else /m,
	'check, overloaded index: it stays');
$server->prepare('game', 'DROP INDEX realm.by_set');

# A type that the superuser has taken over can't be given casts by others.
prepare_as('app', q{CREATE TYPE app.mood AS ENUM ('glad'); ALTER TABLE realm.heroes ADD COLUMN mood app.mood; ALTER TABLE west.heroes ADD COLUMN mood app.mood DEFAULT 'glad'});
like((run_as($superuser, $check))[0], qr/^error \| realm.heroes \| column mood .*: type app.mood \| .* ALTER TYPE app.mood OWNER TO \Q$superuser\E;/m, 'check, a type: says how to take it over');
$server->prepare('game', "ALTER TYPE app.mood OWNER TO $superuser");
unlike((run_as($superuser, $check))[0], qr/app.mood/, 'check, a type that was taken over: is none of the application');
my $run = allowed('merge, an application', 'merger', merge_call());

like($run, qr/^\d+$/, 'merge, an application: is done');
allowed('verify, an application', 'merger', "SELECT * FROM snowflake_migrate.verify($run)");
allowed('rollback, an application', 'merger', "CALL snowflake_migrate.rollback($run)");

# Views that a superuser's adoption would create again: what is constant in one is computed when its definition is read, and
# a materialized view is filled.
$server->prepare('game', q{
	CREATE SCHEMA lib;
	GRANT USAGE ON SCHEMA lib TO mallory;
	CREATE FUNCTION lib.f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
	CREATE TABLE public.keys (id int PRIMARY KEY);
	INSERT INTO public.keys VALUES (1);
	GRANT SELECT ON public.keys TO mallory;
});
prepare_as('mallory', q{
	CREATE DOMAIN mallory.planted AS int CHECK (mallory.deed());
	CREATE TABLE mallory.joined (id int, n int);
	CREATE VIEW mallory.of_keys AS SELECT id FROM public.keys;
});
my @recreate = ('adopt, dry run' => q{SELECT * FROM snowflake_migrate.adopt('{public.keys}', dry_run => true, recreate_views => true)},
	adopt => q{SELECT * FROM snowflake_migrate.adopt('{public.keys}', recreate_views => true)});
refused("another role's view", @recreate);
prepare_as('mallory', q{CREATE OR REPLACE VIEW mallory.of_keys AS SELECT id, '{1}'::mallory.planted[] AS numbers FROM public.keys});
refused("another role's view, an array of a domain", @recreate);
prepare_as('mallory', 'DROP VIEW mallory.of_keys');
$server->prepare('game', q{CREATE MATERIALIZED VIEW public.joined AS SELECT k.id, j.n FROM public.keys AS k JOIN mallory.joined AS j USING (id) WHERE j.n > 0});
prepare_as('mallory', 'CREATE INDEX ON mallory.joined (n) WHERE n > length(mallory.good()::text)');
refused("a superuser's materialized view that reads another role's table", @recreate);
$server->prepare('game', 'DROP MATERIALIZED VIEW public.joined; CREATE MATERIALIZED VIEW public.listed AS SELECT id FROM public.keys; CREATE INDEX ON public.listed (lib.f(id))');
$server->prepare('game', 'GRANT CREATE ON SCHEMA lib TO mallory');
prepare_as('mallory', 'CREATE FUNCTION lib.f(bigint) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM mallory.deed(); RETURN 1; END $$');
watch();
($out, $err) = run_as($superuser, $recreate[3]);
like($err, qr/public.listed cannot be dropped and created again: code of role mallory could take the place of function lib.f\(integer\) for bigint/, 'an index that would call another function: is refused');
is(deeds(), 0, 'an index that would call another function: is not called');
prepare_as('mallory', 'DROP FUNCTION lib.f(bigint)');
$server->prepare('game', 'REVOKE CREATE ON SCHEMA lib FROM mallory; DROP MATERIALIZED VIEW public.listed');
# In another role's schema, its owner could put a view of his own in the place of a superuser's, which would then be given to him.
$server->prepare('game', 'CREATE VIEW public.first_keys AS SELECT id FROM public.keys; CREATE VIEW mallory.supers_keys AS SELECT id FROM public.keys');
# It waits for the lock on the first view; by then the look is over.
change_waits("a superuser's view in another role's schema: is neither dropped nor moved meanwhile",
	hold => q{BEGIN; COMMENT ON VIEW public.first_keys IS 'x'}, release => 'ROLLBACK',
	call => $recreate[3], is_waiting => is_waiting_for_lock('recreate_views'),
	changes => [ 'DROP VIEW mallory.supers_keys', 'ALTER SCHEMA mallory RENAME TO former_mallory' ]);
is($server->prepare('game', q{SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'mallory.supers_keys'::regclass AND attname = 'id'}), 'bigint', 'and it is created again');
# Ranges: a GiST index, and the planner by its statistics, call what measures the distance of their bounds.
prepare_as('mallory', q{
	CREATE FUNCTION mallory.distance(float8, float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1 - $2; END $$;
	CREATE TYPE mallory.span AS RANGE (subtype = float8, subtype_diff = mallory.distance, multirange_type_name = mallory.spans);
	CREATE TABLE mallory.spanned (id int PRIMARY KEY, during mallory.span, times mallory.spans);
	INSERT INTO mallory.spanned SELECT g, mallory.span(g, g + 1), mallory.spans(mallory.span(g, g + 1)) FROM generate_series(1, 500) AS g;
	ANALYZE mallory.spanned;
});
$server->prepare('game', q{
	CREATE TABLE public.spans AS SELECT * FROM mallory.spanned;
	ALTER TABLE public.spans ADD PRIMARY KEY (id);
	CREATE INDEX ON public.spans USING gist (during);
	ANALYZE public.spans;
	CREATE VIEW public.in_span AS SELECT id FROM mallory.spanned WHERE during @> 5::float8;
	CREATE TABLE public.span_keys (id int PRIMARY KEY);
	CREATE MATERIALIZED VIEW public.filled AS SELECT k.id FROM public.span_keys AS k JOIN public.in_span USING (id);
});
prepare_as('mallory', q{CREATE OR REPLACE FUNCTION mallory.distance(float8, float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS
	$$ BEGIN PERFORM mallory.deed(); RETURN $1 - $2; END $$});
refused('a GiST index of a range', 'adopt, dry run' => q{SELECT * FROM snowflake_migrate.adopt('{public.spans}', dry_run => true)},
	adopt => q{SELECT * FROM snowflake_migrate.adopt('{public.spans}')});
$server->prepare('game', 'CREATE VIEW public.in_spans AS SELECT id FROM public.spans WHERE times @> 5::float8');
refused("a range's statistics", audit => q{SELECT * FROM snowflake_audit('public.in_span', 'id')}, 'audit of a multirange' => q{SELECT * FROM snowflake_audit('public.in_spans', 'id')},
	adopt => q{SELECT * FROM snowflake_migrate.adopt('{public.span_keys}', recreate_views => true)});
$server->prepare('game', 'DROP TABLE public.spans, public.span_keys CASCADE');

# A foreign key of two columns: when it is added again, the other column is cast, too.
prepare_as('app', 'CREATE TABLE app.kinds (id int PRIMARY KEY, kind int, UNIQUE (id, kind)); INSERT INTO app.kinds VALUES (1, 1);
	GRANT USAGE ON SCHEMA app TO mallory; GRANT REFERENCES ON app.kinds TO mallory');
prepare_as('mallory', q{
	CREATE TYPE mallory.kind AS (n int);
	CREATE FUNCTION mallory.kind_number(mallory.kind) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM mallory.deed(); RETURN ($1).n; END $$;
	CREATE CAST (mallory.kind AS int) WITH FUNCTION mallory.kind_number(mallory.kind) AS IMPLICIT;
	CREATE TABLE mallory.of_kinds (item int, kind mallory.kind, FOREIGN KEY (item, kind) REFERENCES app.kinds (id, kind));
	INSERT INTO mallory.of_kinds VALUES (1, row(1)::mallory.kind);
});
refused("a cast in another table's foreign key", 'adopt, dry run' => q{SELECT * FROM snowflake_migrate.adopt('{app.kinds}', dry_run => true)},
	adopt => q{SELECT * FROM snowflake_migrate.adopt('{app.kinds}')});
prepare_as('mallory', 'DROP TABLE mallory.of_kinds');

# Where a function of a superuser's is there twice, the owner of one's type decides, by a cast, which is called for bigint.
prepare_as('mallory', 'CREATE TYPE mallory.wrapped AS (n bigint)');
$server->prepare('game', q{
	CREATE FUNCTION lib.twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
	CREATE FUNCTION lib.twice(mallory.wrapped) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT ($1).n::int';
	CREATE FUNCTION lib.is_more(int, int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1 > $2';
	CREATE FUNCTION lib.is_more(mallory.wrapped, int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT ($1).n > $2';
	CREATE OPERATOR lib.>> (leftarg = int, rightarg = int, function = lib.is_more);
	CREATE OPERATOR lib.>> (leftarg = mallory.wrapped, rightarg = int, function = lib.is_more);
	CREATE TABLE public.checked (id int PRIMARY KEY, CHECK (lib.twice(id) > 0));
	CREATE TABLE public.indexed (id int PRIMARY KEY);
	CREATE INDEX ON public.indexed (id) WHERE id OPERATOR(lib.>>) 0;
	CREATE TABLE public.viewed (id int PRIMARY KEY);
	CREATE MATERIALIZED VIEW public.twices AS SELECT id, lib.twice(id) FROM public.viewed;
	INSERT INTO public.checked VALUES (1);
	INSERT INTO public.indexed VALUES (1);
	INSERT INTO public.viewed VALUES (1);
});
prepare_as('mallory', q{
	CREATE FUNCTION mallory.wrap(bigint) RETURNS mallory.wrapped LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM mallory.deed(); RETURN row($1); END $$;
	CREATE CAST (bigint AS mallory.wrapped) WITH FUNCTION mallory.wrap(bigint) AS IMPLICIT;
});
refused("a type's owner who adds a cast: $_", 'adopt, dry run' => "SELECT * FROM snowflake_migrate.adopt('{public.$_}', dry_run => true)",
	adopt => "SELECT * FROM snowflake_migrate.adopt('{public.$_}')") foreach qw(checked indexed);
watch();
($out, $err) = run_as($superuser, q{SELECT * FROM snowflake_migrate.adopt('{public.viewed}', recreate_views => true)});
like($err, qr/public.twices cannot be dropped and created again: code of role mallory could take the place of function lib.twice\(integer\) for bigint/, "a type's owner who adds a cast: a view is refused");
is(deeds(), 0, "a type's owner who adds a cast: nothing of mallory's runs");
$server->prepare('game', 'DROP TABLE public.checked, public.indexed, public.viewed CASCADE');

# What a merge has brought, another that has more schemas of the source looks at again: it may be mallory's code by then.
$server->prepare('game', q{
	CREATE SCHEMA folk;
	CREATE SCHEMA trade;
	CREATE TABLE folk.persons (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
	CREATE TABLE trade.orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), buyer bigint REFERENCES folk.persons);
	CREATE SCHEMA east_folk AUTHORIZATION mallory;
	CREATE SCHEMA east_trade;
	CREATE TABLE east_trade.orders AS SELECT 1::bigint AS id, 1::bigint AS buyer;
});
prepare_as('mallory', q{CREATE TABLE east_folk.persons (id bigint, name text); INSERT INTO east_folk.persons VALUES (1, 'ann')});
$server->safe_psql('game', q{CALL snowflake_migrate.merge('{east_folk}', 'folk', '{940}')});
foreach my $plant ('CREATE INDEX ON east_folk.persons ((id + mallory.worth(1)))',
	q{DROP TABLE east_folk.persons; CREATE VIEW east_folk.persons AS SELECT mallory.worth(1) AS id, 'ann' AS name},
	q{DROP VIEW east_folk.persons; CREATE TABLE east_folk.persons AS SELECT '1'::mallory.digit AS id, 'ann' AS name})
{
	prepare_as('mallory', $plant);
	refused("a schema that was merged before: $plant",
		check => q{SELECT * FROM snowflake_migrate.check('{{east_folk,east_trade}}', targets => '{folk,trade}')},
		merge => q{CALL snowflake_migrate.merge('{{east_folk,east_trade}}', targets => '{folk,trade}', nodes => '{941}')});
	watch();
	like((run_as($superuser, q{SELECT * FROM snowflake_migrate.suggest('{{east_folk,east_trade}}', targets => '{folk,trade}')}))[1], qr/That would run code of others/, 'suggest is refused');
	is(deeds(), 0, "nothing of mallory's runs");
}
$server->prepare('game', 'DROP SCHEMA folk, trade, east_folk, east_trade CASCADE');

# A condition of the superuser's own, whose text is read as a value of another role's type.
prepare_as('mallory', q{
	CREATE DOMAIN mallory.trap AS int CHECK (mallory.good(VALUE));
	CREATE TABLE mallory.trapped (id int PRIMARY KEY, ref int, traps mallory.trap[]);
});
$server->prepare('game', 'CREATE TABLE public.referred (id int PRIMARY KEY)');
refused('a declared condition', declare_reference => q{SELECT snowflake_migrate.declare_reference('mallory.trapped', 'ref', 'public.referred', 'traps = ''{1}''')},
	declare_policy => q{SELECT snowflake_migrate.declare_policy('mallory.trapped', 'trapped_pkey', 'rerank', 'traps = ''{1}''')});

# While views are created again, a schema of another role's has the name that their definitions have.
$server->prepare('game', q{
	CREATE FUNCTION mallory.by_superuser() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
	CREATE TYPE mallory.superusers AS ENUM ('x');
	CREATE TABLE public.keys2 (id int PRIMARY KEY);
	CREATE VIEW public.fired AS SELECT id FROM public.keys2;
	CREATE TRIGGER fire INSTEAD OF INSERT ON public.fired FOR EACH ROW EXECUTE FUNCTION mallory.by_superuser();
	CREATE VIEW public.of_type AS SELECT id, '{x}'::mallory.superusers[] AS x FROM public.keys2;
	GRANT SELECT ON public.keys2 TO mallory;
});
# It waits for the lock on the table; by then the definitions are known.
change_waits("a schema whose types and trigger functions views name: isn't renamed meanwhile",
	hold => q{BEGIN; SELECT FROM public.keys2}, release => 'ROLLBACK',
	call => q{SELECT * FROM snowflake_migrate.adopt('{public.keys2}', recreate_views => true)},
	is_waiting => is_waiting_for_lock('keys2%recreate_views'),
	changes => ['ALTER SCHEMA mallory RENAME TO former_mallory']);
is($server->prepare('game', q{SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'public.of_type'::regclass AND attname = 'id'}), 'bigint', 'and they are created again');
# A superuser who has put on another role can't lock it.
$server->prepare('game', 'CREATE TABLE public.keys3 (id int PRIMARY KEY); ALTER TABLE public.keys3 OWNER TO app; GRANT CREATE ON SCHEMA public TO app; GRANT USAGE ON SCHEMA snowflake_migrate TO app;
	CREATE VIEW public.of_app AS SELECT id FROM public.keys3; ALTER VIEW public.of_app OWNER TO app;
	CREATE TRIGGER fire INSTEAD OF INSERT ON public.of_app FOR EACH ROW EXECUTE FUNCTION mallory.by_superuser()');
watch();
($out, $err) = run_as($superuser, q{SET ROLE app; SELECT * FROM snowflake_migrate.adopt('{public.keys3}', recreate_views => true)});
like($err, qr/public.of_app/, 'with SET ROLE: is refused');
is(deeds(), 0, 'with SET ROLE: nothing runs');
is($server->prepare('game', q{SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'}), 'f', 'mallory is no superuser');

done_testing();
