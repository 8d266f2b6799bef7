# Random histories of real servers and their registry: crashes, keepers that
# stand still, networks that are cut, answers that are lost, clocks that are set,
# a registry that is away, with clients writing all the while.  Two servers want
# the same number, two any.
#
# No id is there twice, over all servers, and in the end all goes on by itself.
# The seed is printed; the same one asks for the same history:
#
#	SNOWFLAKE_SEED=1 SNOWFLAKE_ROUNDS=200 make tap PROVE_TESTS=test/t/230_registry_random.pl

use strict;
use warnings FATAL => 'all';

use Snowflake::Holder;
use Snowflake::Ledger;
use Snowflake::Proxy;
use Snowflake::Registry;
use Test::More;
use Time::HiRes qw(usleep);

my $seed = $ENV{SNOWFLAKE_SEED} || time;
my $rounds = $ENV{SNOWFLAKE_ROUNDS} || 15;

srand $seed;
note("seed $seed, $rounds rounds");

my $ledger = Snowflake::Ledger->new;
my $registry = Snowflake::Registry->new('registry');

$registry->init;
$registry->start;

my @servers;

foreach my $name (qw(fixed1 fixed2 any1 any2))
{
	my $server = Snowflake::Holder->new($name, registry => $registry, ledger => $ledger);
	my $proxy = Snowflake::Proxy->new($registry->host, $registry->port);

	$server->{proxy} = $proxy;
	$server->set_clock(0);
	$server->init;
	$server->configure(
		'snowflake.layout' => 'timestamp:41 node:2 sequence:12 tick:1ms epoch:2024-01-01',
		'snowflake.claim_window' => '1s',
		'snowflake.max_drift' => int(rand 2) * 300,
		$name =~ /fixed/ ? ('snowflake.node_id' => 1) : (),
		'snowflake.registry' => $registry->address(host => '127.0.0.1', port => $proxy->port));
	$server->begin;
	$server->start_clients(qw(single batch));
	push @servers, $server;
}
# Ends the clients of a server that is gone, and starts the server and others.
sub revive
{
	my ($server) = @_;

	$server->finish_clients;
	$server->start_in_the_end;
	$server->start_clients(qw(single batch));
	return;
}

# What can happen to a server.
my %events = (
	'is killed' => sub {
		my ($server) = @_;

		$server->kill9;
		revive($server);
	},
	'is stopped at once' => sub { my ($server) = @_; $server->stop('immediate'); revive($server) },
	'is stopped cleanly' => sub { my ($server) = @_; $server->stop('fast'); revive($server) },
	'has a keeper that stands still' => sub {
		my ($server) = @_;
		my $keeper = $server->find_keeper // return;

		kill 'STOP', $keeper;
		usleep(rand 3_000_000);
		kill 'CONT', $keeper;
	},
	'has its keeper ended' => sub { my ($server) = @_; my $keeper = $server->find_keeper // return; kill 'TERM', $keeper },
	'is cut off' => sub { my ($server) = @_; $server->{proxy}->stop_passing; usleep(rand 3_000_000); $server->{proxy}->pass_again },
	'misses answers' => sub { my ($server) = @_; $server->{proxy}->stop_passing_answers; usleep(rand 2_000_000); $server->{proxy}->pass_again },
	'loses its connections' => sub { my ($server) = @_; $server->{proxy}->cut },
	'has its clock set' => sub { my ($server) = @_; $server->set_clock(rand(3) - 1.5) },
	'sees the registry start anew' => sub { $registry->stop('immediate'); $registry->start },
);
my @names = sort keys %events;

foreach my $round (1 .. $rounds)
{
	my $server = $servers[ int rand @servers ];
	my $name = $names[ int rand @names ];

	note("round $round: " . $server->name . " $name");
	$events{$name}->($server);
	usleep(rand 700_000);
}

# Time heals, without anyone's hand. On a machine that has sixteen times too much to do, no claim of a second is renewed.
$_->set_clock(0) foreach @servers;
$_->reconfigure('snowflake.claim_window' => '30s') foreach @servers;
$servers[2]->goes_on;
$servers[3]->goes_on;
isnt($servers[2]->stat('node_id'), $servers[3]->stat('node_id'), 'the two that want any number have two');
# Two want number 1: one has it, for longer than any pause of this machine's, and the other, when that one is stopped.
# One of those that want any number may have taken it meanwhile, and keeps it until it is stopped.
my $has;
for (;;)
{
	$registry->wait_for_claim(1, q{state = 'held' AND alive_until > clock_timestamp() + interval '15 s'});
	my $port = $registry->claim(1, 'port');
	($has) = grep { $port == $_->port } @servers[ 0, 1 ];
	last if defined $has;
	my ($other) = grep { $port == $_->port } @servers[ 2, 3 ] or next;
	$other->finish_clients;
	$other->stop;
	@servers = grep { $_ != $other } @servers;
}
my ($wants) = grep { $_ != $has } @servers[ 0, 1 ];
$has->goes_on;
$has->stop;
$has->finish_clients;
$wants->goes_on;
foreach my $server (grep { $_ != $has } @servers)
{
	$server->finish_clients;
	$server->stop;
}

$ledger->check("seed $seed");
done_testing();
