# The extension as a thing that is installed, dropped, dumped and restored; the
# library as it was built; a server that does not preload it.

use strict;
use warnings FATAL => 'all';

use IPC::Run;
use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Test::More;

# The library is C++ without a C++ run-time: nothing that could throw, nothing that runs while it is loaded.
my $library = qx(pg_config --pkglibdir) =~ s/\n//r . '/snowflake.so';

sub output_of
{
	my (@command) = @_;
	my ($out, $err);

	IPC::Run::run(\@command, '>', \$out, '2>', \$err) or die "@command: $err";
	return $out;
}

my $needed = output_of('nm', '-D', '--undefined-only', $library);
like($needed, qr/ errmsg$/m, 'the library needs PostgreSQL');
unlike($needed, qr/ (_Z|__cxa|__gxx)/, 'it needs no C++ symbol');
unlike(output_of('readelf', '-d', $library), qr/libstdc\+\+/, 'it needs no C++ library');
like(output_of('nm', '-C', $library), qr/ snowflake_nextval$/m, 'its symbols can be seen');
unlike(output_of('nm', '-C', $library), qr/GLOBAL__sub/, 'it has no static initialiser');
unlike(output_of('readelf', '-SW', $library), qr/\.(init_array|ctors)\b/, 'nothing runs while it is loaded');

# Where a client's pg_config names a pgxs.mk and there are no headers, "make" says what to install.
my $config = "$PostgreSQL::Test::Utils::tmp_check/client_pg_config";
append_to_file($config, qq{#!/bin/sh\n[ "\$1" != --includedir-server ] || exec echo /nowhere\nexec pg_config "\$@"\n});
chmod 0700, $config or die "could not change the mode: $!";
command_fails_like([ 'make', "PG_CONFIG=$config" ], qr/finds no PostgreSQL server headers: install them .*postgresql-server-dev-\d\d/, 'no headers');

my $server = Snowflake::Server->new('one');

$server->set_clock(0);
$server->init;
$server->start;

# Every version that there is a way to, from the first one up.
my @versions = split /\n/, $server->safe_psql('postgres', q{SELECT version FROM pg_available_extension_versions WHERE name = 'snowflake' ORDER BY string_to_array(version, '.')::int[]});
my $newest = $server->value(q{default_version FROM pg_available_extensions WHERE name = 'snowflake'});
is($versions[-1], $newest, 'the newest version is the default');
foreach my $version (@versions)
{
	$server->safe_psql('postgres', "CREATE EXTENSION snowflake VERSION '$version'");
	$server->safe_psql('postgres', 'ALTER EXTENSION snowflake UPDATE') if $version ne $newest;
	is($server->value(q{extversion FROM pg_extension WHERE extname = 'snowflake'}), $newest, "version $version comes to be $newest");
	$server->take(10);

	# Every function that SQL declares is in the library: it is called through its declaration.
	is($server->value(q{count(*) FROM pg_proc WHERE probin LIKE '%snowflake%' AND pg_get_functiondef(oid) IS NULL}), 0, "version $version: its functions are there");
	$server->safe_psql('postgres', 'DROP EXTENSION snowflake');
}

# Dropped and created again, in another database, in a schema, after a restart: ids go on ascending.
$server->safe_psql('postgres', 'CREATE SCHEMA ids; CREATE EXTENSION snowflake SCHEMA ids');
$server->record($server->safe_psql('postgres', 'SELECT ids.snowflake_nextval() FROM generate_series(1, 10)'));
is($server->safe_psql('postgres', 'SELECT ids.snowflake_stat.node_id FROM ids.snowflake_stat'), 1, 'everything lies in the schema that was chosen');
is($server->value(q{count(*) FROM pg_depend JOIN pg_proc ON pg_proc.oid = objid WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND pronamespace <> 'ids'::regnamespace AND proname LIKE 'snowflake%'}), 0, 'and nothing elsewhere');
$server->safe_psql('postgres', 'DROP EXTENSION snowflake');
$server->restart('immediate');
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
$server->take(10);
$server->safe_psql('postgres', 'BEGIN; DROP EXTENSION snowflake; ROLLBACK');
$server->take(10);
$server->safe_psql('postgres', 'CREATE DATABASE other');
$server->safe_psql('other', 'CREATE EXTENSION snowflake');
$server->record($server->safe_psql('other', 'SELECT snowflake_nextval()'));

# Dumped and restored into a server that knows nothing, its clock behind.
$server->safe_psql('postgres', 'CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), item text)');
$server->safe_psql('postgres', 'INSERT INTO orders (item) SELECT n::text FROM generate_series(1, 1000) AS n');
my $highest = $server->value('max(id) FROM orders');
my $dump = "$PostgreSQL::Test::Utils::tmp_check/orders.sql";
$server->command_ok([ 'pg_dump', '-f', $dump, '-d', $server->connstr('postgres') ], 'a dump');
$server->stop;

my $restored = Snowflake::Server->new('restored', ledger => $server->{ledger}, line => $server->{line});
$restored->set_clock(-1800);
$restored->init;
$restored->start;
$restored->command_ok([ 'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-q', '-f', $dump, '-d', $restored->connstr('postgres') ], 'a restore');
is($restored->value('max(id) FROM orders'), $highest, 'the rows have their ids');
is($restored->stat(qq{reserved_until > snowflake_timestamp($highest)}), 't', 'the limit lies above');
$restored->restart('immediate');
$restored->refuses(q{INSERT INTO orders (item) VALUES ('next')}, qr/clock is behind the snowflake ids\n.*clock is 00:[12]\d:\S* behind/, 'the clock behind the restored ids');
$restored->step_clock(1800);
$restored->safe_psql('postgres', q{INSERT INTO orders (item) VALUES ('next')});
cmp_ok($restored->value('max(id) FROM orders'), '>', $highest, 'ids go on above those restored');
$restored->record($restored->value('max(id) FROM orders'));
$restored->safe_psql('postgres', "SELECT snowflake_advance_past($highest)");
$restored->take(10);
$restored->refuses(q{SELECT snowflake_advance_past(snowflake_max_id(now() + interval '25 hours'))}, qr/more than a day ahead of the clock/, 'snowflake_advance_past() two days ahead');
$restored->take(10);
$restored->safe_psql('postgres', 'DROP TABLE orders');

# Durable before it returns: past a time to come, and a crash right then.
my $ahead = $restored->value(q{snowflake_max_id(clock_timestamp() + interval '1 s')});
$restored->safe_psql('postgres', "SELECT snowflake_advance_past($ahead)");
$restored->restart('immediate');
cmp_ok($restored->take, '>', $ahead, 'snowflake_advance_past() outlives a crash');

# Not preloaded: reading works, generating names the setting.
my $id = $restored->take;
my $decoded = $restored->value("snowflake_decode($id)::text");
$restored->configure('shared_preload_libraries' => '');
$restored->restart;
foreach my $call ('snowflake_nextval()', 'snowflake_nextval_batch(3)', 'snowflake_advance_past(1)', 'snowflake_set_reserved_until(now())',
	'snowflake_accept_clock()', 'snowflake_stat_reset()', '* FROM snowflake_stat')
{
	$restored->refuses("SELECT $call", qr/ERROR: .*snowflake must be loaded via "shared_preload_libraries".*HINT: .*restart/s, "not preloaded: $call");
}
is($restored->value("snowflake_decode($id)::text"), $decoded, 'not preloaded: an id is read in the default layout');
is($restored->value(q{snowflake_field(snowflake_encode('2025-06-01', 70000, 3, 'game'), 'server', 'game')}), 70000, 'not preloaded: an id is read in a layout that is named');
is($restored->value('count(*) FROM snowflake_layouts'), 11, 'not preloaded: the presets are there');
$restored->refuses('SELECT snowflake_lastval()', qr/not yet defined/, 'not preloaded: snowflake_lastval()');

# Its layout follows the configuration, in old sessions and in parallel workers too.
my $parallel = $restored->pg_version >= 16 ? 'debug_parallel_query' : 'force_parallel_mode';
$restored->configure('snowflake.layout' => 'game');
$restored->restart;
is($restored->value(q{snowflake_field(snowflake_encode('2025-06-01', 70000, 3), 'server')}), 70000, 'not preloaded: an id is read in the configured layout');
is($restored->value(q{spec LIKE '%server:20%' FROM snowflake_layout()}), 't', 'not preloaded: snowflake_layout() is the configured one');
is($restored->safe_psql('postgres', "SET $parallel = on; SELECT snowflake_field(snowflake_encode('2025-06-01', 70000, 3), 'server')"), 70000,
	'not preloaded: a parallel worker reads in the configured layout');
is($restored->safe_psql('postgres', "SELECT snowflake_layout(); SET $parallel = on; SELECT snowflake_field(snowflake_encode('2025-06-01', 70000, 3), 'server')") =~ /^70000$/m, 1,
	'not preloaded: so does one of a session that has loaded it');
$restored->refuses(q{SELECT snowflake_layout(); SET snowflake.layout = 'leaf'}, qr/parameter "snowflake.layout" cannot be changed now/, 'not preloaded: SET snowflake.layout');
$restored->refuses(q{SET snowflake.layout = 'leaf'; SELECT snowflake_field(1, 'worker')}, qr/parameter "snowflake.layout" cannot be changed now.*no field "worker"/s, 'not preloaded: SET snowflake.layout before it is loaded');

# A malformed setting is warned of, and reading in a layout that is named still works.
$restored->configure('snowflake.layout' => 'nosuch');
$restored->restart;
my ($status, $out, $warning) = $restored->psql('postgres', "SELECT snowflake_node($id, 'twitter')");
is($out, 1, 'not preloaded: a malformed layout does not keep from reading in another');
like($warning, qr/invalid value for parameter "snowflake.layout": "nosuch"/, 'not preloaded: a malformed layout is warned of');

$server->{ledger}->check('dropped, dumped, restored');
done_testing();
