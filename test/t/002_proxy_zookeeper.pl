# What the tests of registries rely on: a network that can be cut, and a
# ZooKeeper server that can crash and end sessions.

use strict;
use warnings FATAL => 'all';

use IO::Select;
use IO::Socket::INET;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Snowflake::Proxy;
use Snowflake::Wait qw(wait_until);
use Snowflake::ZooKeeper;
use Test::More;

# A program that runs beside the test; say() gives it input, and sees() waits for output.
sub start_program
{
	my (@command) = @_;
	my $program = { in => '', out => '' };

	$program->{run} = IPC::Run::start(\@command, '<', \$program->{in}, '>&', \$program->{out},
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	return $program;
}

sub sees
{
	my ($program, $pattern, $name) = @_;

	eval { $program->{run}->pump until $program->{out} =~ $pattern };
	return like($program->{out}, $pattern, $name);
}

sub alive
{
	my ($pid) = @_;

	return kill 0, $pid;
}

# Bytes, with the test as client and as server.
my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5) // die $@;
my $proxy = Snowflake::Proxy->new('127.0.0.1', $listener->sockport);

sub connect_to_proxy
{
	return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $proxy->port);
}

# The next bytes that come; none at the end.
sub receive
{
	my ($socket) = @_;
	my $bytes = '';

	IO::Select->new($socket)->can_read($PostgreSQL::Test::Utils::timeout_default) or die 'nothing came';
	sysread $socket, $bytes, 1000;
	return $bytes;
}

# Whether nothing came, after the proxy has had its chance.
sub nothing_came
{
	my ($socket) = @_;

	$proxy->connections foreach 1 .. 3;
	return !IO::Select->new($socket)->can_read(0);
}

my $client = connect_to_proxy();
my $server = $listener->accept;
syswrite $client, 'question';
is(receive($server), 'question', 'requests pass');
syswrite $server, 'answer';
is(receive($client), 'answer', 'answers pass');

$proxy->stop_passing;
syswrite $client, 'held question';
syswrite $server, 'held answer';
ok(nothing_came($server), 'no request passes a network that is cut');
ok(nothing_came($client), 'no answer passes a network that is cut');
my $late = connect_to_proxy();
syswrite $late, 'late question';
ok(nothing_came($listener), 'no connection passes a network that is cut');
is($proxy->connections, 2, 'connections stay, and new ones are accepted');

$proxy->stop_passing_answers;
is(receive($server), 'held question', 'requests alone pass');
is(receive($listener->accept), 'late question', 'so do new connections');
ok(nothing_came($client), 'answers do not');
$proxy->pass_again;
is(receive($client), 'held answer', 'what was held passes when the network is whole again');

$proxy->refuse;
ok(!connect_to_proxy(), 'a connection is refused');
like($!, qr/refused/, 'the error says so');
syswrite $client, 'more';
is(receive($server), 'more', 'the connection that was there stays');
$proxy->accept;
ok(connect_to_proxy(), 'connections are accepted again');

$client = connect_to_proxy();
$proxy->cut;
is(receive($client), '', 'the connections are closed');
is($proxy->connections, 0, 'none is left');
$proxy->stop;
ok(!connect_to_proxy(), 'a proxy that was stopped is gone');

# A PostgreSQL server.
my $node = PostgreSQL::Test::Cluster->new('one');

$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE TABLE done (what text)');
$proxy = Snowflake::Proxy->new($node->host, $node->port);

my @psql = ('psql', '-XAtq', '-d', 'host=127.0.0.1 dbname=postgres port=' . $proxy->port);
my ($out, $err);

sub psql
{
	my ($sql) = @_;

	my $file = "$PostgreSQL::Test::Utils::tmp_check/statement";

	# From a file: psql need not live to read what it is given.
	unlink $file;
	append_to_file($file, $sql);
	($out, $err) = ('', '');
	return IPC::Run::run([ @psql, '-f', $file ], '<', '/dev/null', '>', \$out, '2>', \$err,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
}

psql(q{SELECT repeat('answer ', 1000000)});
ok($out eq 'answer ' x 1_000_000 . "\n", 'a large answer passes whole');
psql(q{SET log_statement = 'none'; SELECT md5('} . 'request' x 1_000_000 . q{') = md5(repeat('request', 1000000))});
is($out, "t\n", 'a large request passes whole');

my $session = start_program(@psql);
$session->{in} .= "SELECT 'connected';\n";
sees($session, qr/^connected$/m, 'a session is there');
$proxy->stop_passing_answers;
$session->{in} .= "INSERT INTO done VALUES ('held') RETURNING 'answered';\n";
$session->{run}->pump_nb;
$node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM done') or die 'nothing was committed';
$proxy->connections;
$session->{run}->pump_nb;
unlike($session->{out}, qr/answered/, 'what is committed is not answered');
$proxy->pass_again;
sees($session, qr/^answered$/m, 'the answer comes when it may pass');

$proxy->cut;
$session->{in} .= "SELECT 1;\n";
sees($session, qr/server closed the connection|connection to server was lost/, 'a cut ends the session');
eval { $session->{run}->finish };
ok(psql('SELECT 1'), 'a new one is there at once');

$node->stop;
ok(!psql('SELECT 1'), 'no connection passes to a server that is down');
$node->start;
ok(psql('SELECT 1'), 'connections pass when it is up again');
$proxy->stop;
$node->stop;

# Proxies and servers end with a test that fails.
my $pids = "$PostgreSQL::Test::Utils::tmp_check/pids";
my $without = Snowflake::ZooKeeper->missing_server;

IPC::Run::run([ $^X, (map { "-I$_" } @INC), '-e', q{
	use PostgreSQL::Test::Utils;
	use Snowflake::Proxy;
	use Snowflake::ZooKeeper;
	my @started = map { Snowflake::Proxy->new('127.0.0.1', 9) } 1 .. 2;
	push @started, Snowflake::ZooKeeper->new if $ARGV[1];
	$started[2]->start if $ARGV[1];
	append_to_file($ARGV[0], join "\n", map { $_->{pid} } @started);
	die "the test fails\n";
}, $pids, !defined $without ]);
isnt($?, 0, 'the test failed');
my @pids = split /\n/, slurp_file($pids);
is(@pids, defined $without ? 2 : 3, 'it had started proxies and a server');
wait_until('they end', sub { !grep { alive($_) } @pids });

SKIP:
{
	skip $without, 1 if defined $without;

	my $zookeeper = Snowflake::ZooKeeper->new;

	$zookeeper->start;
	is($zookeeper->ask('ruok'), 'imok', 'the ZooKeeper server answers');
	is($zookeeper->cli('create', '/lasting', 'value'), 'Created /lasting', 'a znode is made');
	$zookeeper->kill;
	is($zookeeper->ask('ruok'), '', 'a server that has crashed does not answer');
	$zookeeper->start;
	is($zookeeper->cli('get', '/lasting'), 'value', 'the znode is there after a crash');
	is($zookeeper->cli('get', '/other'), 'Node does not exist: /other', 'errors are shown');

	$zookeeper->suspend;
	is($zookeeper->ask('ruok', 1), '', 'a suspended server does not answer');
	$zookeeper->resume;
	wait_until('the server answers when it goes on', sub { $zookeeper->ask('ruok') eq 'imok' });

	# A session that the server ends, with its client connected.
	$zookeeper->expire_sessions;
	is(join(' ', $zookeeper->sessions), '', 'no session is left');
	my $client = start_program($zookeeper->cli_command('-timeout', 3_600_000));
	$client->{in} .= "create -e /fleeting value\n";
	sees($client, qr/Created \/fleeting/, 'a client has an ephemeral znode');
	is(scalar(my @sessions = $zookeeper->sessions), 1, 'its session is seen');
	$zookeeper->expire_sessions;
	like($zookeeper->cli('get', '/fleeting'), qr/does not exist/, 'expired: the ephemeral znode is gone');
	sees($client, qr/state:Expired/, 'expired: the client is told');
	$client->{run}->kill_kill;

	# A session that expires by itself, since nothing of it passes.
	$proxy = Snowflake::Proxy->new('127.0.0.1', $zookeeper->port);
	$zookeeper->expire_sessions;
	$client = start_program($zookeeper->cli_command('-timeout', 4000, '-server', '127.0.0.1:' . $proxy->port));
	$client->{in} .= "create -e /fleeting value\n";
	sees($client, qr/Created \/fleeting/, 'a client has an ephemeral znode through a proxy');
	$proxy->stop_passing;
	wait_until('the session expires', sub { !$zookeeper->sessions });
	like($zookeeper->cli('get', '/fleeting'), qr/does not exist/, 'a network that is cut: the ephemeral znode is gone');
	$proxy->pass_again;
	sees($client, qr/state:Expired/, 'the client is told when the network is whole again');
	$client->{run}->kill_kill;
	$zookeeper->stop;
}

done_testing();
