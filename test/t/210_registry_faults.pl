# What may happen to servers that hold claims, to the registry and to the network
# between them, with clients writing all the while: a copy beside its original, a
# keeper that stands still, a registry that is away, answers that are lost.
#
# Every id is recorded; in the end none is there twice, over all servers.  Nobody
# lends a hand: what comes again comes by itself.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Ledger;
use Snowflake::Proxy;
use Snowflake::Server;
use Test::More;

my $ledger = Snowflake::Ledger->new;
my $registry = Snowflake::Server->new('registry', ledger => $ledger);

$registry->init;
$registry->configure('snowflake.node_id' => undef);
$registry->start;
$registry->safe_psql('postgres', 'CREATE EXTENSION snowflake');

my $proxy = Snowflake::Proxy->new($registry->host, $registry->port);
my $address = 'postgresql://' . $registry->host =~ s{/}{%2F}gr . ':' . $registry->port . '/postgres';

# A new server with the registry; it is running.
sub new_server
{
	my ($name, $node_id, %settings) = @_;
	my $server = Snowflake::Server->new($name, ledger => $ledger);

	$server->init(allows_streaming => 1);
	$server->configure(
		'snowflake.node_id' => $node_id,
		'snowflake.registry' => $address,
		'snowflake.claim_window' => '3s',
		%settings);
	$server->start;
	$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
	return $server;
}

# A copy of a running server's data directory, with its settings; it is not started.
sub copy_of
{
	my ($original, $name) = @_;
	my $copy = Snowflake::Server->new($name);

	$original->backup($name);
	$copy->init_from($original, $name, has_streaming => 0);
	$copy->{line} = $name;
	return $copy;
}

sub wait_for_claim
{
	my ($server, $state) = @_;

	$server->poll_query_until('postgres', "SELECT claim = '$state' FROM snowflake_stat")
	  or die $server->name . qq{'s claim did not become "$state"};
	return;
}

# What the registry says of a number.
sub claim_of
{
	my ($node, $expression) = @_;

	return $registry->safe_psql('postgres', "SELECT $expression FROM snowflake_claims WHERE node = $node");
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

# The process that holds the claim; it has no session.
sub keeper_of
{
	my ($server) = @_;
	my ($pid) = grep { $_ } map { /^\s*(\d+)\s+$server->{_pid}\s.*snowflake keeper/ && $1 } qx{ps -A -o pid,ppid,args};

	die 'there is no keeper' unless $pid;
	return $pid;
}

# A copy beside its original, any number: two numbers.
my $any = new_server('any', 'auto');

$any->start_clients(qw(single batch));
$any->wait_for_clients(4096);

my $any_copy = copy_of($any, 'any_copy');

$any_copy->start;
$any_copy->start_clients(qw(single batch));
$_->wait_for_clients(20_000) foreach $any, $any_copy;
isnt($any_copy->stat('node_id'), $any->stat('node_id'), 'a copy beside its original, auto: another number');
is($_->stat('claim'), 'held', $_->name . ' holds a claim') foreach $any, $any_copy;

# The same with a fixed number: the copy is refused, until the original gives the number back.
my $fixed = new_server('fixed', 7, 'snowflake.registry' => "postgresql://127.0.0.1:@{[ $proxy->port ]}/postgres");

$fixed->{line} = 'number 7';
$fixed->start_clients(qw(single batch));
$fixed->wait_for_clients(4096);

my $fixed_copy = copy_of($fixed, 'fixed_copy');

$fixed_copy->configure('snowflake.registry' => $address);
$fixed_copy->start;
refused_for($fixed_copy, $fixed, 'a copy beside its original, fixed number');
$fixed->wait_for_clients(20_000);
is($fixed->stat('claim'), 'held', 'the original goes on');
is($fixed_copy->stat('ids'), 0, 'the copy has made no id');
$fixed->finish_clients;
$fixed->stop;
$fixed_copy->{line} = 'number 7';
wait_for_claim($fixed_copy, 'held');
$fixed_copy->take(1000);
$fixed->start;
refused_for($fixed, $fixed_copy, 'the original beside its copy');
$fixed_copy->stop;
wait_for_claim($fixed, 'held');
$fixed->take(1000);

$_->finish_clients foreach $any, $any_copy;
$ledger->check('registry, faults');
done_testing();
