# Claims in ZooKeeper: a real ZooKeeper server that crashes, comes back, ends
# sessions and is cut off, and servers that make ids all the while.
#
# Every id is recorded; in the end none is there twice, over all servers.  Nobody
# lends a hand: what comes again comes by itself.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Ledger;
use Snowflake::Proxy;
use Snowflake::Server;
use Snowflake::Wait qw(wait_until);
use Snowflake::ZooKeeper;
use Test::More;
use Time::HiRes ();

my $reason = Snowflake::ZooKeeper->missing_registry;

plan skip_all => $reason if defined $reason;

my $module = Snowflake::ZooKeeper->module;

unlike(qx(nm -D --undefined-only $module), qr/ (_Z|__gxx|__cxa_(?!finalize))/, 'the module needs no C++ library');

my $zookeeper = Snowflake::ZooKeeper->new;

$zookeeper->start;

my $proxy = Snowflake::Proxy->new('127.0.0.1', $zookeeper->port);
my $ledger = Snowflake::Ledger->new;
# No server listens at port 1: the next one is tried.
my $address = 'zookeeper://127.0.0.1:1,' . $zookeeper->address . '/services/ids';
my $group = '/services/ids/orders%2Feu';

# A new server with the registry; it is running.
sub new_server
{
	my ($name, $node_id, %settings) = @_;
	my $server = Snowflake::Server->new($name, ledger => $ledger);

	my $clock = delete $settings{clock};

	$server->set_clock($clock) if defined $clock;
	$server->init;
	$server->configure(
		'snowflake.node_id' => $node_id,
		'snowflake.registry' => $address,
		'snowflake.registry_group' => 'orders/eu',
		'snowflake.claim_window' => '3s',
		%settings);
	$server->start;
	$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
	return $server;
}

sub wait_for_claim
{
	my ($server, $state) = @_;

	$server->poll_query_until('postgres', "SELECT claim = '$state' FROM snowflake_stat")
	  or die $server->name . qq{'s claim did not become "$state"};
	return;
}

# Waits until the keeper has noticed that ZooKeeper does not answer; a slow machine may see no more than the end of that.
sub wait_for_silence
{
	my ($server) = @_;

	$server->poll_query_until('postgres', q{SELECT claim IN ('suspended', 'lost') FROM snowflake_stat})
	  or die $server->name . ' does not notice';
	return;
}

# A line of a claim's text, read in a session that is closed at once; empty where there is no such line.
sub claim_of
{
	my ($node, $name) = @_;
	# Protocol version, last transaction seen, timeout in ms, session, password, not read-only.
	my $connect = pack 'N q> N q> N/a* C', 0, 0, 4000, 0, "\0" x 16, 0;
	# Number of the request, getData, path, no watch.
	my $get = pack 'l> l> N/a* C', 1, 4, "$group/$node", 0;
	# Number of the request, closeSession.
	my $close = pack 'l> l>', 2, -11;
	my (undef, $answer) = unpack '(N/a*)*', $zookeeper->ask(pack 'N/a* N/a* N/a*', $connect, $get, $close);
	# Number of the request, transaction, error; where there is none, data and what ZooKeeper knows of it.
	my ($value) = length($answer // '') > 20 && unpack('x16 N/a*', $answer) =~ /^$name (.*)$/m;

	return $value // '';
}

# The session whose znode says that the claim's holder is alive; empty where there is none.
sub alive_session
{
	my ($node) = @_;
	my $session = '';

	foreach my $line (split /\n/, $zookeeper->ask('dump'))
	{
		$session = $1 if $line =~ /^0x([0-9a-f]+):$/;
		return $session if $line =~ m{^\s+\Q$group\E/$node/alive$};
	}
	return '';
}

# No ids, and the error names the holder.
sub refused_for
{
	my ($server, $holder, $name) = @_;
	my $port = $holder->port;
	my $directory = $holder->data_dir;

	$server->refuses('SELECT snowflake_nextval()', qr/node number \d+ is held by \S+:$port, \Q$directory\E, since /, $name);
	return;
}

# The process that holds the claim; it has no session of the server's.
sub keeper_of
{
	my ($server) = @_;
	my ($pid) = grep { $_ } map { /^\s*(\d+)\s+$server->{_pid}\s.*snowflake keeper/ && $1 } qx{ps -A -o pid,ppid,args};

	die 'there is no keeper' unless $pid;
	return $pid;
}

# Any number: the lowest that nobody has.
my @any = map { new_server("any$_", 'auto') } 0, 1;

foreach my $number (0, 1)
{
	wait_for_claim($any[$number], 'held');
	is($any[$number]->stat('node_id'), $number, "auto: number $number");
	is($any[$number]->stat('node_source'), 'auto', 'from the registry');
	$any[$number]->take(1000);
}
is(claim_of(0, 'data_directory'), $any[0]->data_dir, 'the claim says whose it is');
is(claim_of(0, 'port'), $any[0]->port, 'and where');
isnt(alive_session(0), alive_session(1), 'each in a session of its own');

# A fixed number, held by another; a clean stop gives it back.
my $fixed = new_server('fixed', 7, 'snowflake.registry' => "zookeeper://127.0.0.1:@{[ $proxy->port ]}/services/ids");
my $other = new_server('other', 7);

wait_for_claim($fixed, 'held');
$_->{line} = 'number 7' foreach $fixed, $other;
$fixed->take(1000);
refused_for($other, $fixed, 'a fixed number, held by another');
is($other->stat('ids'), 0, 'the other has made no id');
$fixed->stop;
wait_for_claim($other, 'held');
$other->take(1000);
$fixed->start;
refused_for($fixed, $other, 'the other way round');
$other->stop;
wait_for_claim($fixed, 'held');
$fixed->take(1000);

# A crash gives nothing back: the number is free when the session has expired, and ids start above all that was granted.
my $granted_until = claim_of(7, 'granted_until_us');

$fixed->stop('immediate');
$fixed->start;
wait_for_claim($fixed, 'held');

my $first = $fixed->take(1);

is($fixed->value("snowflake_timestamp($first) >= to_timestamp($granted_until / 1000000.0) - interval '1 ms'"), 't',
	'after a crash: above all that was granted');
$fixed->start_clients(qw(single batch));

# ZooKeeper crashes: ids go on, and the same claim with them.
my $since = claim_of(7, 'since_us');

# Time for all that is looked at before it is over.
$_->reconfigure('snowflake.claim_window' => '15s') foreach $fixed, @any;
foreach my $node (7, 0, 1)
{
	wait_until('more is granted', sub { claim_of($node, 'granted_until_us') > (Time::HiRes::time() + 10) * 1_000_000 });
}
wait_for_claim($_, 'held') foreach $fixed, @any;
$zookeeper->kill;
wait_for_claim($_, 'suspended') foreach $fixed, @any;
$fixed->wait_for_clients(1000);
is($fixed->stat('claim'), 'suspended', 'ids go on without ZooKeeper');
$_->take(10) foreach @any;
wait_for_claim($_, 'lost') foreach $fixed, @any;
$fixed->refuses('SELECT snowflake_nextval()', qr/registry grants the node number no further\n.*node number 7, granted until .*: could not connect to ZooKeeper's server/s,
	'without ZooKeeper for longer');
$zookeeper->start;
wait_for_claim($_, 'held') foreach $fixed, @any;
$fixed->wait_for_clients(4096);
is(claim_of(7, 'since_us'), $since, 'ZooKeeper was away: the same claim');
$_->reconfigure('snowflake.claim_window' => '5s') foreach $fixed, @any;
is($any[$_]->stat('node_id'), $_, "the same number $_") foreach 0, 1;

# A crash that is over before the claim is.
$zookeeper->kill;
$zookeeper->start;
my $generation = claim_of(7, 'generation');
wait_until('the claim is renewed', sub { (claim_of(7, 'generation') || 0) > $generation });
is(claim_of(7, 'since_us'), $since, 'a short crash: the same claim');
$fixed->wait_for_clients(1000);

# It is restored from a backup, and knows less than its holders: they tell it.
my $data = "$zookeeper->{directory}/data";

$zookeeper->kill;
system_or_bail('cp', '-a', $data, "$data.backup");
$zookeeper->start;
$generation = claim_of(7, 'generation');
wait_until('the claim is renewed', sub { (claim_of(7, 'generation') || 0) > $generation + 1 });
$zookeeper->kill;
system_or_bail('rm', '-r', $data);
rename "$data.backup", $data or die "could not rename $data.backup: $!";
$zookeeper->start;
wait_until('the claim is renewed', sub { (claim_of(7, 'generation') || 0) > $generation + 2 });
wait_for_claim($_, 'held') foreach $fixed, @any;
is(claim_of(7, 'since_us'), $since, 'restored from a backup: the same claim');
$fixed->wait_for_clients(1000);

# All sessions end: the same claims go on in new ones.
my $session = alive_session(7);

isnt($session, '', 'the holder is alive');
$zookeeper->expire_sessions;
wait_until('the claim is alive again', sub { my $now = alive_session(7); $now ne '' && $now ne $session });
wait_for_claim($fixed, 'held');
is(claim_of(7, 'since_us'), $since, 'the session expired: the same claim');
$fixed->wait_for_clients(1000);

# Everything is taken away: it is there again.
$zookeeper->cli('deleteall', '/services');
wait_until('the claim is alive again', sub { alive_session(7) ne '' });
wait_for_claim($fixed, 'held');
$fixed->wait_for_clients(1000);
$fixed->finish_clients;
$fixed->reconfigure('snowflake.claim_window' => '3s');

# The keeper stands still for longer than the claim, and another takes the number.
$other->start;
refused_for($other, $fixed, 'the number is held');
kill 'STOP', my $keeper = keeper_of($fixed);
wait_for_claim($fixed, 'lost');
$fixed->refuses('SELECT snowflake_nextval()', qr/claim "lost"/, 'the keeper stands still');
wait_for_claim($other, 'held');
$other->{line} = 'number 7 of another';
$other->start_clients(qw(single batch));
$other->wait_for_clients(4096);

my $log = $fixed->log_position;

kill 'CONT', $keeper;
$fixed->wait_for_log(qr/claim on the snowflake node number is lost\n.*DETAIL: .*node number 7: node number 7 is held by/, $log);
refused_for($fixed, $other, 'the keeper goes on, and has lost its number');
$other->wait_for_clients(4096);
$other->finish_clients;
is($other->stat('claim'), 'held', 'the other holds it');
$other->stop;
$fixed->{line} = 'number 7 of another';
wait_for_claim($fixed, 'held');
$fixed->take(1000);

# The network is cut for longer, and another takes the number; what is sent arrives afterwards.
$proxy->stop_passing;
wait_for_claim($fixed, 'lost');
$other->start;
wait_for_claim($other, 'held');
$other->take(1000);
$log = $fixed->log_position;
$proxy->pass_again;
$fixed->wait_for_log(qr/claim on the snowflake node number is lost\n.*DETAIL: .*node number 7: node number 7 is held by/, $log);
refused_for($fixed, $other, 'the network was cut, and another has the number');
$other->take(1000);
is($other->stat('claim'), 'held', 'what arrives late changes nothing');
$other->stop;
wait_for_claim($fixed, 'held');
$fixed->take(1000);

# Nothing is lost by connections that break, or by answers that are held until they do.
$fixed->start_clients(qw(single batch));
$since = claim_of(7, 'since_us');
foreach my $round (1 .. 5)
{
	$generation = claim_of(7, 'generation');
	$proxy->cut if $round <= 2;
	if ($round > 2)
	{
		$proxy->stop_passing_answers;
		wait_for_silence($fixed);
		$proxy->cut;
		$proxy->pass_again;
	}
	wait_until('the claim is renewed', sub { (claim_of(7, 'generation') || 0) > $generation + 1 });
	wait_for_claim($fixed, 'held');
	is(claim_of(7, 'since_us'), $since, "round $round: the same claim");
	$fixed->wait_for_clients(1000);
}
$fixed->finish_clients;

# What can't be a claim is none.
$zookeeper->cli('create', "$group/9", 'snowflake-claim 1');
my $ninth = new_server('ninth', 9, 'snowflake.claim_window' => '1s');
wait_until('it has been read', sub { ($ninth->stat('problem') // '') =~ /holds no claim/ });
$ninth->refuses('SELECT snowflake_nextval()', qr{znode "\Q$group\E/9" in ZooKeeper holds no claim that can be read}, 'a znode that holds no claim');
$zookeeper->cli('delete', "$group/9");
wait_for_claim($ninth, 'held');
$ninth->take(10);
$ninth->stop;

# A server whose clock is wrong is granted nothing there, by ZooKeeper's clock.
my $ahead = new_server('ahead', 11, clock => 7200);
my $why = '';
wait_until('a clock that is far ahead is refused', sub { (undef, undef, $why) = $ahead->psql('postgres', 'SELECT snowflake_nextval()'); $why =~ /it grants time at most/ });
like($why, qr/cannot make ids: the registry grants the node number no further\nDETAIL: .*it grants time at most \S+ ahead of its clock, which reads /, 'a clock that is far ahead: refused');
$ahead->set_clock(0);
wait_for_claim($ahead, 'held');
$ahead->take(10);
$ahead->stop;

# A clean stop ends, though ZooKeeper does not answer; the claim is free when the session has expired.
$zookeeper->suspend;
wait_for_silence($fixed);
$fixed->stop;
$zookeeper->resume;
$other->start;
wait_for_claim($other, 'held');
$other->{line} = 'number 7 of another';
$other->take(1000);

# A password would be shown to others.
my (undef, undef, $error) = $other->psql('postgres', q{ALTER SYSTEM SET snowflake.registry = 'zookeeper://keeper:secret@127.0.0.1:2181/ids'});

like($error, qr/The address of a registry may hold no password/, 'a password in the address is refused');
unlike($error, qr/secret/, 'and not repeated');

$_->stop foreach $other, @any;
is(scalar(() = $zookeeper->ask('dump') =~ m{^\s+\Q$group\E/\d+/alive$}mg), 0, 'nothing is held after clean stops');
$ledger->check('registry, ZooKeeper');
done_testing();
