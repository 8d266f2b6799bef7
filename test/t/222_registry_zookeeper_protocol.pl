# A ZooKeeper server that speaks the protocol wrongly: whatever it answers, no server crashes, takes it for a claim, or waits for ever.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::FakeZooKeeper;
use Snowflake::Server;
use Snowflake::Wait qw(wait_until);
use Snowflake::ZooKeeper;
use Test::More;

my $reason = Snowflake::ZooKeeper->missing_library;

plan skip_all => $reason if defined $reason;

my $fake = Snowflake::FakeZooKeeper->new;
my $auth_file = "$PostgreSQL::Test::Utils::tmp_check/zookeeper_protocol_user";

append_to_file($auth_file, "keeper:secret\n");
chmod 0600, $auth_file or die "could not change the mode: $!";

my $server = Snowflake::Server->new('one');

$server->init;
$server->configure(
	'snowflake.node_id' => 'auto',
	'snowflake.claim_window' => '3s',
	'snowflake.registry_auth_file' => $auth_file,
	'snowflake.registry' => "zookeeper://127.0.0.1:@{[ $fake->port ]}/ids");
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');

sub keeper
{
	my ($pid) = map { /^\s*(\d+)\s+$server->{_pid}\s.*snowflake keeper/ } split /\n/, qx{ps -A -o pid,ppid,args};

	return $pid;
}

my $keeper = keeper();
my $log = $server->log_position;

# First the lists: a number that may have been granted is asked for again without one.
foreach my $how (sort { ($b =~ /children/) <=> ($a =~ /children/) || $a cmp $b } $fake->names)
{
	next if $how =~ /right/;
	my $told = $fake->answer($how);

	$server->reload;
	# When it comes back, the first time is over.
	wait_until("$how: the keeper has come back", sub { -e $told && (() = slurp_file($told) =~ /^$how$/mg) > 1 });
	isnt($server->stat('problem'), '', "$how: the keeper says that something is wrong: " . $server->stat('problem'));
	is($server->stat('claim'), 'none', "$how: no claim");
}
is(keeper(), $keeper, 'the keeper is the one that it was');
unlike($server->log_since($log), qr/terminated by signal|all server processes terminated/, 'and nothing has crashed');

my $session = $server->background_psql('postgres', on_error_stop => 0);
my $pid = $session->query('SELECT pg_backend_pid()');

$session->query(q{SET statement_timeout = '2s'});
foreach my $how ($fake->names)
{
	next if $how =~ /right|children/;
	$fake->answer($how);
	$session->{stderr} = '';
	$session->query(q{SELECT snowflake_internal.set_aside(50, now())});
	like($session->{stderr}, qr/ERROR:  (?:could not set aside node number 50|canceling statement due to statement timeout)/, "$how: the call ends");
}
is($session->query('SELECT pg_backend_pid()'), $pid, 'in the same session');
$session->quit;

# The rights on znodes are asked for once in a session.
foreach my $how (grep { /rights/ } $fake->names)
{
	my $told = $fake->answer($how);

	$server->restart;
	wait_until("$how: the keeper has come back", sub { -e $told && (() = slurp_file($told) =~ /^$how$/mg) > 1 });
	# Many rights, but each is one: the keeper may go on.
	is($server->stat('claim'), 'none', "$how: no claim") unless $how eq 'big_rights';
}
unlike($server->log_since($log), qr/terminated by signal|all server processes terminated/, 'nor has anything crashed');

# The right answers are taken.
$fake->answer('right');
$server->reload;
$server->poll_query_until('postgres', q{SELECT claim = 'held' FROM snowflake_stat}) or diag($server->stat('problem'));
is($server->stat('claim'), 'held', 'a server that speaks rightly');
$server->stop;

done_testing();
