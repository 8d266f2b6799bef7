# The reserved time survives dumps and pg_upgrade, with nobody's help: the new server's clock is
# an hour behind, the newest rows were deleted before, and all ids lie above those that were made.
#
# With "oldinstall" in the environment, the folder that has bin/postgres of an older PostgreSQL with
# snowflake, the old server is of that version; test/upgrade does so.

use strict;
use warnings FATAL => 'all';

use Cwd qw(getcwd);
use PostgreSQL::Test::Utils;
use Snowflake::Registry;
use Snowflake::Server;
use Test::More;

my $scratch = $PostgreSQL::Test::Utils::tmp_check;
my $table = 'CREATE EXTENSION snowflake; CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), item text)';
my $insert = q{INSERT INTO orders (item) VALUES ('next') RETURNING id};
my $newest;

# An empty server whose clock is so many seconds behind.
sub new_server
{
	my ($name, $behind, %settings) = @_;
	my @version = $name eq 'old' && $ENV{oldinstall} ? (install_path => $ENV{oldinstall}) : ();
	my $server = Snowflake::Server->new($name, @version);

	$server->set_clock(-$behind);
	# From 18 on it is the default, and pg_upgrade wants both alike.
	$server->init($ENV{oldinstall} ? (extra => ['--data-checksums']) : ());
	$server->configure(%settings);
	return $server;
}

# No id is to be had until the clock is where it was; then they lie above all that were made.
sub goes_on_above
{
	my ($server, $what, @databases) = @_;
	my ($status, $out, $err) = $server->psql($databases[0], $insert);

	isnt($status, 0, "$what: with the clock an hour back, an id is refused");
	like($err, qr/ERROR:  clock is behind the snowflake ids/, "$what: since the clock is behind");
	# Not more than max_forward_jump.
	$server->step_clock(3599);
	cmp_ok($server->safe_psql($_, $insert), '>', $newest, "$what: ids go on above, in $_") foreach @databases;
	return;
}

my $old = new_server('old', 0);

$old->start;
$old->safe_psql('postgres', 'CREATE DATABASE shop');
$old->safe_psql($_, "$table; INSERT INTO orders (item) SELECT n FROM generate_series(1, 100) AS n") foreach qw(postgres shop);
$newest = $old->take;
$old->safe_psql($_, 'DELETE FROM orders WHERE id > (SELECT id FROM orders ORDER BY id OFFSET 50 LIMIT 1)') foreach qw(postgres shop);

my $limit = $old->value('extract(epoch FROM reserved_until) FROM snowflake_stat');
my %dump = map { $_ => "$scratch/$_.dump" } qw(one inserts data all custom);

$old->command_ok([ 'pg_dump', '-f', $dump{one}, $old->connstr('postgres') ], 'one database');
$old->command_ok([ 'pg_dump', '--inserts', '-f', $dump{inserts}, $old->connstr('postgres') ], 'one database, as INSERTs');
$old->command_ok([ 'pg_dump', '--data-only', '-f', $dump{data}, $old->connstr('postgres') ], 'data only');
$old->command_ok([ 'pg_dump', '-Fc', '-f', $dump{custom}, $old->connstr('shop') ], 'custom format');
$old->command_ok([ 'pg_dumpall', '-f', $dump{all}, '-d', $old->connstr('postgres') ], 'all databases');
like(slurp_file($dump{inserts}), qr/^INSERT INTO snowflake_internal\.restored_limit VALUES \(\d+, \d+, true\);$/m, 'INSERTs have the limit, too');

# One database, as a superuser.
{
	my $server = new_server('one', 3600);

	$server->start;
	$server->command_ok([ 'psql', '-XqAt', '-1', '-v', 'ON_ERROR_STOP=1', '-f', $dump{one}, '-d', $server->connstr('postgres') ], 'restored');
	cmp_ok($server->value('extract(epoch FROM reserved_until) FROM snowflake_stat'), '>=', $limit, 'one database: the limit came along');
	is($server->value('count(*) FROM snowflake_internal.restored_limit'), 0, 'one database: nothing is left to be done');
	$server->restart('immediate');
	goes_on_above($server, 'one database', 'postgres');
	$server->stop('immediate');
}

# All databases, into a server that is not preloaded yet; a database that was not restored makes the first id.
{
	my $server = new_server('all', 3600, 'shared_preload_libraries' => '', 'snowflake.node_id' => undef);

	$server->start;
	# The role postgres is there already.
	$server->command_checks_all([ 'psql', '-XqAt', '-f', $dump{all}, '-d', $server->connstr('template1') ], 0, [], [], 'restored all');
	$server->configure('shared_preload_libraries' => 'snowflake', 'snowflake.node_id' => '1');
	$server->restart;
	$server->safe_psql('postgres', 'CREATE DATABASE fresh');
	$server->safe_psql('fresh', $table);
	goes_on_above($server, 'all databases', qw(fresh shop postgres));
	$server->stop('immediate');
}

# Data alone, into a database where a session makes ids already; then rows that somebody has edited.
{
	my $server = new_server('data', 3600);

	$server->start;
	$server->safe_psql('postgres', $table);
	like($server->value('snowflake_nextval()'), qr/^\d+$/, 'data only: ids are made already');
	$server->command_ok([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-f', $dump{data}, '-d', $server->connstr('postgres') ], 'restored');
	goes_on_above($server, 'data only', 'postgres');

	foreach my $row (
		[ '2080', q{(extract(epoch FROM timestamptz '2080-01-01') * 1000000)::bigint, 0}, qr/reach up to 2080-01-01/ ],
		[ 'another layout', q{(extract(epoch FROM now()) * 1000000)::bigint, (extract(epoch FROM timestamptz '2000-01-01Z') * 1000)::bigint << 20 | 40 << 14 | 1 << 12 | 1}, qr/Ids of another layout, made before/ ])
	{
		my ($what, $values, $detail) = @$row;
		my ($status, $out, $err) = $server->psql('postgres', "INSERT INTO snowflake_internal.restored_limit VALUES ($values, true)");

		is($status, 0, "$what: restored");
		like($err, qr/WARNING:  restored snowflake ids lie above/, "$what: with a warning");
		$server->refuses('SELECT snowflake_nextval()', $detail, $what);
		$server->refuses("DELETE FROM snowflake_internal.restored_limit; SELECT snowflake_nextval(); INSERT INTO snowflake_internal.restored_limit VALUES ($values, true); SELECT snowflake_nextval()",
			$detail, "$what, in a session that has made ids");
		$server->safe_psql('postgres', 'DELETE FROM snowflake_internal.restored_limit');
		like($server->take, qr/^\d+$/, "$what: until the row is deleted");
	}
	$server->refuses('INSERT INTO snowflake_internal.restored_limit VALUES (9223372036854775807, -1, true)', qr/violates check constraint/, 'beyond all times');
	$server->stop('immediate');
}

# By the owner of the database, who is no superuser: other databases go on, and this one makes no id below those restored.
{
	my $server = new_server('lesser', 3600);
	my $log;

	$server->start;
	$server->safe_psql('postgres', 'CREATE ROLE owner LOGIN; CREATE DATABASE shop OWNER owner; CREATE EXTENSION snowflake');
	$server->safe_psql('shop', 'CREATE EXTENSION snowflake; ALTER SCHEMA public OWNER TO owner');
	$log = $server->log_position;
	# The tables of a registry are not for this role.
	$server->command_checks_all([ 'pg_restore', '--no-owner', '-j2', '-d', $server->connstr('shop') . ' user=owner', $dump{custom} ], 1, [],
		[ qr/permission denied for table registry_claim/ ], 'restored by the owner of the database');
	like($server->log_since($log), qr/WARNING:  restored snowflake ids lie above those that this server may make/, 'the log has a warning');
	like($server->value('snowflake_nextval()'), qr/^\d+$/, 'the owner of one database cannot stop others');

	my ($status, $out, $err) = $server->psql('shop', $insert);

	isnt($status, 0, 'in the restored database an id is refused');
	like($err, qr/ERROR:  cannot make snowflake ids in a database whose restored ids lie above.*reach up to.*HINT:.*superuser/s, 'and it says why');
	is($server->safe_psql('shop', 'SELECT refusal FROM snowflake_stat'), 'restored ids lie above', 'so does snowflake_stat');
	is($server->safe_psql('shop', 'SELECT is_trusted FROM snowflake_internal.restored_limit'), 'f', 'a dump cannot say that it is trusted');

	my $again = "$scratch/again.dump";
	my $bin = qx(pg_config --bindir) =~ s/\n//r;

	# By its path: IPC::Run knows pg_dump as the old server's.
	$server->command_ok([ "$bin/pg_dump", '--data-only', '-f', $again, $server->connstr('shop') ], 'dumped again');
	is(scalar(() = slurp_file($again) =~ /^\d+\t\d+\t[ft]$/mg), 2, 'with the limit of both servers');
	$server->step_clock(3599);
	cmp_ok($server->safe_psql('shop', $insert), '>', $newest, 'ids go on above');
	$server->stop('immediate');
}

# Into a server that has its time from a registry.
{
	my $registry = Snowflake::Registry->new('registry');
	my $server = new_server('registered', 3600, 'snowflake.registry' => $registry->address);

	$registry->init;
	$registry->start;
	$server->start;
	$server->safe_psql('postgres', $table);
	$server->poll_query_until('postgres', 'SELECT snowflake_nextval() > 0') or die 'no ids with a registry';
	$server->command_ok([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-f', $dump{data}, '-d', $server->connstr('postgres') ], 'restored');
	# Whether the registry has granted that time yet decides which.
	$server->refuses($insert, qr/clock is behind the snowflake ids|restored ids lie above/, 'with a registry, and the clock an hour back');
	$server->step_clock(3599);
	# The registry has to be asked for the time first.
	$server->poll_query_until('postgres', "SELECT snowflake_nextval() > $newest")
	  or die 'no id above those restored';
	cmp_ok($server->safe_psql('postgres', $insert), '>', $newest, 'with a registry: ids go on above');
	$server->stop('immediate');
	$registry->stop('immediate');
}

# pg_upgrade, to another data directory; of the same version, unless the old server is of another.
sub upgrade
{
	my ($from, $to, @mode) = @_;
	my $bin = qx(pg_config --bindir) =~ s/\n//r;
	my $old_bin = $from == $old && $ENV{oldinstall} ? "$ENV{oldinstall}/bin" : $bin;
	my $directory = getcwd();

	chdir $scratch or die "could not change to $scratch: $!";
	command_ok([ 'pg_upgrade', '--no-sync', '-d', $from->data_dir, '-D', $to->data_dir, '-b', $old_bin, '-B', $bin, '-s', $from->host,
		'-p', $from->port, '-P', $to->port, @mode ], "pg_upgrade @mode")
	  or diag(map { "$_: " . substr(slurp_file($_), -1500) } glob $to->data_dir . '/pg_upgrade_output.d/*/log/*_dump_*.log');
	chdir $directory or die "could not change to $directory: $!";
	return;
}

# Loaded in both: pg_upgrade itself brings the limit over, before any database can make ids.
$old->stop;

my $copied = new_server('copied', 3600);

upgrade($old, $copied);
$copied->start;
$copied->safe_psql('postgres', 'CREATE DATABASE fresh');
$copied->safe_psql('fresh', $table);
goes_on_above($copied, 'upgraded by copying', qw(fresh shop));
# In a database that has made none since: what pg_upgrade left is done with, in a read-only transaction, without a transaction id.
my $left = 'SELECT limit_us > 0 FROM snowflake_internal.upgraded_limit';

is($copied->safe_psql('postgres', $left), 't', 'the limit is there until the first id');
like($copied->safe_psql('postgres', 'BEGIN READ ONLY; SELECT snowflake_nextval(); SELECT pg_current_xact_id_if_assigned() IS NULL; COMMIT'), qr/^\d+\nt$/,
	'an id in a read-only transaction, which gets no transaction id');
is($copied->safe_psql('postgres', $left), 'f', 'and not any more');
$copied->stop;

# An upgrade that is given up: the server goes on, and what it left is void from its next id on.
command_ok([ 'pg_ctl', '-w', '-D', $copied->data_dir, '-l', "$scratch/given_up.log", '-o', '-b', 'start' ], 'started as pg_upgrade does');
is($copied->safe_psql('shop', $left), 't', 'the limit is left');
command_ok([ 'pg_ctl', '-w', '-D', $copied->data_dir, 'stop' ], 'stopped');
$copied->start;
$newest = $copied->safe_psql('shop', $insert);
is($copied->safe_psql('shop', $left), 'f', 'void after the next id');
$copied->stop;

# Loaded in the old one alone.  One of its databases has made no id since the upgrade before.
my $linked = new_server('linked', 3600, 'shared_preload_libraries' => '');

upgrade($ENV{oldinstall} ? $old : $copied, $linked, '--link');
$linked->configure('shared_preload_libraries' => 'snowflake');
$linked->start;
is($linked->value('reserved_until IS NULL FROM snowflake_stat'), 't', 'the limit still lies in the databases');
$linked->safe_psql('shop', 'REFRESH MATERIALIZED VIEW snowflake_internal.upgraded_limit; VACUUM FULL snowflake_internal.upgraded_limit');
goes_on_above($linked, 'upgraded by links', qw(shop postgres), $ENV{oldinstall} ? () : 'fresh');
$newest = $linked->take;

# The same with an upgrade that was given up before: one database has made an id since, the others have a limit from before
# it.  Then loaded in the new one alone: nothing is known, and nothing is made, in databases that are new or go on, whichever
# of them pg_upgrade comes to first.
$linked->stop;
command_ok([ 'pg_ctl', '-w', '-D', $linked->data_dir, '-l', "$scratch/given_up.log", '-o', '-b', 'start' ], 'an upgrade that is given up');
$linked->safe_psql($_, 'SELECT') foreach qw(postgres shop);
command_ok([ 'pg_ctl', '-w', '-D', $linked->data_dir, 'stop' ], 'and over');
$linked->start;
$newest = $linked->safe_psql('shop', $insert);
is($linked->safe_psql($_, 'SELECT limit_us > 0 FROM snowflake_internal.upgraded_limit'), $_ eq 'shop' ? 'f' : 't', "what it left in $_")
  foreach qw(postgres shop);
$linked->configure('shared_preload_libraries' => '');
$linked->stop;

my $last = new_server('last', 3600);

sub refuses_everywhere
{
	my ($what) = @_;

	foreach my $database (qw(fresher postgres shop))
	{
		my ($status, $out, $err) = $last->psql($database, 'SELECT snowflake_nextval()');

		isnt($status, 0, "$what: $database refuses an id");
		like($err, qr/ERROR:  cannot make snowflake ids after an upgrade that has lost the reserved time.*HINT:  Call snowflake_advance_past/s, 'and says what to do');
		is($last->safe_psql($database, 'SELECT refusal FROM snowflake_stat'), 'limit lost by an upgrade', 'so does snowflake_stat');
	}
	is($last->value('reserved_until IS NULL FROM snowflake_stat'), 't', "$what: there is no reserved time");
	return;
}

upgrade($linked, $last, '--link');
$last->start;
$last->safe_psql('postgres', 'CREATE DATABASE fresher');
$last->safe_psql('fresher', $table);
refuses_everywhere('upgraded without the library');
# A dump knows nothing of the ids of these.
$last->command_ok([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-f', $dump{data}, '-d', $last->connstr('fresher') ], 'a dump is restored');
$last->restart('immediate');
refuses_everywhere('after a crash');

# The order of databases in which nothing is known yet, when it is found that nothing will be.
$last->configure('shared_preload_libraries' => '');
$last->restart;
$last->safe_psql('postgres', 'SELECT snowflake_forget_limit()');
$last->configure('shared_preload_libraries' => 'snowflake');
$last->stop;
command_ok([ 'pg_ctl', '-w', '-D', $last->data_dir, '-l', "$scratch/given_up.log", '-o', '-b', 'start' ], 'looked at once more');
$last->safe_psql('shop', 'SELECT');
command_ok([ 'pg_ctl', '-w', '-D', $last->data_dir, 'stop' ], 'and stopped');
$last->start;
refuses_everywhere('another order');

$last->safe_psql('shop', "SELECT snowflake_advance_past($newest)");
goes_on_above($last, 'after that', qw(fresher shop postgres));
done_testing();
