# A registry's host that is a name.  Name servers may be silent for longer than a
# server can wait: it looks up in another process, which it can end.
#
# Where nothing else is said the look-up never ends by itself: what is waited for
# here comes although it goes on.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Holder;
use Snowflake::Names;
use Snowflake::Proxy;
use Snowflake::Registry;
use Snowflake::Wait qw(wait_until);
use Snowflake::ZooKeeper;
use Test::More;

my $registry = Snowflake::Registry->new('registry');

$registry->init;
$registry->start;

my $proxy = Snowflake::Proxy->new($registry->host, $registry->port);
my $names = Snowflake::Names->new;
my $holder = Snowflake::Holder->new('holder', registry => $registry);
my %name = (host => 'registry.test', port => $proxy->port);

# The password belongs to the name.
unlink $registry->data_dir . '/pg_hba.conf';
append_to_file($registry->data_dir . '/pg_hba.conf', "local all keeper scram-sha-256\nlocal all all trust\n");
$registry->reload;
$registry->safe_psql('postgres', q{ALTER ROLE keeper PASSWORD 'sesame'});

my $passwords = $holder->basedir . '/passwords';

append_to_file($passwords, "registry.test:*:*:keeper:sesame\n");
chmod 0600, $passwords or die "could not change the mode: $!";

# Starts with other settings, and other things in the environment.
sub start_anew
{
	my ($settings, %environment) = @_;

	$holder->stop;
	$holder->configure(%$settings);
	$holder->{environment} = { $names->environment, PGPASSFILE => $passwords, %environment };
	$holder->start;
	return;
}

$holder->init;
$holder->configure('snowflake.registry' => $registry->address(%name), 'snowflake.claim_window' => '30s');
$holder->{environment} = { $names->environment, PGPASSFILE => $passwords };

#
# Names that are found.
#

$names->answer('::2', '127.0.0.99', '127.0.0.1');
$holder->begin;
$holder->held;
$holder->take(10);
is_deeply([ map { s/^\d+ //r } $names->look_ups ], ['registry.test'], 'one look-up; each of the addresses is tried; the password file goes by the name');
is_deeply([ Snowflake::Names::children($holder->keeper) ], [], 'nothing is left of the look-up');

my $before = $names->look_ups;

start_anew({ 'snowflake.registry' => $registry->address(%name, hostaddr => '127.0.0.1') });
$holder->held;
start_anew({ 'snowflake.registry' => $registry->address(%name, host => '127.0.0.1', passfile => '/nowhere') });
$holder->wait_for_log(qr/no password supplied/);
start_anew({ 'snowflake.registry' => $registry->address(passfile => '/nowhere') });
$holder->wait_for_log(qr/no password supplied/);
is($names->look_ups, $before, 'an address that is given, and a directory, are not looked up');

append_to_file($holder->basedir . '/services', "[ids]\nhost=registry.test\nport=$name{port}\n");
start_anew({ 'snowflake.registry' => 'postgresql://keeper@/postgres?service=ids' }, PGSERVICEFILE => $holder->basedir . '/services');
$holder->held;
is($names->look_ups, ++$before, 'a name in a service file is looked up');

# By libpq, where there is no such program, or it knows no such thing.
append_to_file($passwords, "localhost:*:*:keeper:sesame\n");
start_anew({ 'snowflake.registry' => $registry->address(%name, host => 'localhost') }, PATH => $holder->config_data('--bindir'));
$holder->held;
is($names->look_ups, $before, 'a server without the program has its registry');
$names->answer('exit 1');
start_anew({});
$holder->held;
is($names->look_ups, ++$before, 'so has one with another system\'s program');

#
# Names that are not found.
#

$names->answer('exit 2');

my $log = $holder->log_position;

start_anew({ 'snowflake.registry' => $registry->address(%name) });
$holder->wait_for_log(qr/WARNING: .*no snowflake node number is claimed\n.*DETAIL: .*could not look up host "registry\.test"\.\n/, $log);
pass('a name that nobody knows: the log says so');

# The first of several hosts: its share of the time.
$names->answer('silent');
start_anew({ 'snowflake.registry' => sprintf 'postgresql://keeper@registry.test:1,127.0.0.1:%d/postgres?passfile=%s',
	$proxy->port, Snowflake::Registry::escape($passwords) });
append_to_file($passwords, "127.0.0.1:*:*:keeper:sesame\n");
$holder->held;
pass('a name that is not found leaves time for another host');

# The keeper of a server that has a claim, or is to have one.
sub check_silence
{
	my ($why, $problem) = @_;
	my $position = $holder->log_position;
	my $keeper = $holder->keeper;

	$holder->safe_psql('postgres', 'CREATE DATABASE old');
	$names->answer('silent');
	$holder->safe_psql('postgres', q{SELECT pg_reload_conf()});
	$names->wait_for_look_ups(1);
	$holder->safe_psql('postgres', 'DROP DATABASE old');
	pass("$why: a database can be dropped");
	$names->wait_for_look_ups(2);
	$holder->wait_for_log(qr/DETAIL: .*$problem/, $position);
	cmp_ok(Snowflake::Names::children($keeper), '<=', 1, "$why: look-ups are ended, and waited for");
	is($holder->stop('fast', fail_ok => 1), 1, "$why: a fast stop");
	$names->wait_for_end;

	$before = $names->look_ups;
	$holder->start;
	wait_until('a look-up is begun', sub { $names->look_ups > $before });
	$holder->stop('immediate');
	$names->wait_for_end;
	pass("$why: no look-up outlives the server");
	return;
}

$names->answer('127.0.0.1');
start_anew({ 'snowflake.registry' => $registry->address(%name), 'snowflake.claim_window' => '3s' });
$holder->held;
check_silence('silent name servers', qr/could not look up host "registry\.test" in time/);

SKIP:
{
	my $reason = Snowflake::ZooKeeper->missing_registry;

	skip $reason, 1 if defined $reason;

	my $zookeeper = Snowflake::ZooKeeper->new;

	$zookeeper->start;
	$names->answer('127.0.0.99', '127.0.0.1');
	$holder->configure('snowflake.registry' => 'zookeeper://' . $zookeeper->address =~ s/.*:/registry.test:/r . '/ids');
	$holder->start;
	$holder->held;
	$holder->take(10);
	check_silence('silent name servers before ZooKeeper', qr/could not look up host "registry\.test" in time/);
}

done_testing();
