# A registry that knows less than its holders do: restored from a base backup or
# a dump, or failed over to a standby that lacks its last transactions.  Clients
# write to the holders all the while, who tell it what it lacks; newcomers have to
# wait for that.
#
# Every id is recorded, and in the end none is there twice, over all servers.
# What comes again comes by itself.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::RecursiveCopy;
use PostgreSQL::Test::Utils;
use Snowflake::Holder;
use Snowflake::Ledger;
use Snowflake::Proxy;
use Snowflake::Registry;
use Test::More;

my $ledger = Snowflake::Ledger->new;
my $registry = Snowflake::Registry->new('registry');

$registry->init(allows_streaming => 1);
$registry->start;

# The one that takes its place in the end.
my $successor = Snowflake::Registry->new('successor');

# The one that is asked now.
my $asked = $registry;

# Of number 7 a registry that was restored knows the former holder, not the present one; of number 8 it does not know
# that it was given back, and of the number that its holder has now it knows nothing.  One holder is as it was.
my ($steady, $former, $present, $moved, $newcomer) =
  map { Snowflake::Holder->new($_, registry => $registry, ledger => $ledger) } qw(steady former present moved newcomer);
my $places = join ',', map { Snowflake::Registry::escape($_->host) . ':' . $_->port } $registry, $successor;

foreach my $server ($steady, $former, $present, $moved, $newcomer)
{
	$server->init;
	$server->configure('snowflake.registry' => "postgresql://keeper\@$places/postgres?target_session_attrs=read-write");
}
$_->configure('snowflake.node_id' => 7) foreach $former, $present;
$_->{line} = 'number 7' foreach $former, $present;
# Starts a server on any number, or this one.
sub start_on
{
	my ($server, $node_id) = @_;

	$server->configure('snowflake.node_id' => $node_id);
	$server->{line} = $node_id eq 'auto' ? $server->name : "number $node_id";
	$server->begin;
	return;
}

sub stop_registry
{
	$registry->stop('immediate');
	return;
}

# A base backup in its place.
sub put_back
{
	my ($backup) = @_;
	my $directory = $registry->data_dir;

	rename $directory, "$directory.before.$backup" or die "could not rename $directory: $!";
	PostgreSQL::Test::RecursiveCopy::copypath($registry->backup_dir . "/$backup", $directory);
	chmod 0700, $directory;
	$registry->start;
	return;
}

my $unsettled = qr/it was started, restored or failed over, and grants nothing anew/;

# A registry that is restored and looked at before holders can reach it: the time that they are given begins when it is used.
my $proxy = Snowflake::Proxy->new($registry->host, $registry->port);
my $address = $moved->{settings}->{'snowflake.registry'};

$registry->backup('empty');
$moved->configure('snowflake.registry' => $registry->address(host => '127.0.0.1', port => $proxy->port));
start_on($moved, 9);
is($moved->held, 9, 'restored and looked at: number 9 is held');
$moved->start_clients('single');
$moved->wait_for_clients(4096);
$proxy->refuse;
$proxy->cut;
stop_registry();
put_back('empty');
$registry->poll_query_until('postgres', "SELECT clock_timestamp() > pg_postmaster_start_time() + interval '4 s'") or die 'the clock stands still';
start_on($newcomer, 9);
$newcomer->refused_in_the_end($unsettled, 'restored and looked at: a newcomer');
$proxy->accept;
$moved->goes_on;
$newcomer->refused_for($moved, 'restored and looked at: a newcomer wants number 9');
is($newcomer->stat('ids'), 0, 'restored and looked at: the newcomer has made no id');
$newcomer->stop;
$moved->finish_clients;
$moved->stop;
$moved->configure('snowflake.registry' => $address);

$steady->begin;
$steady->start_clients('single');

# The registry is saved, things happen, it is taken away, and what was saved is put into its place.  Where number 7 changes hands at once,
# the registry has then granted more of it to the former holder than that had when it gave it back.
sub forget
{
	my ($how, $at_once, $save, $take_away, $put_back) = @_;

	start_on($former, 7);
	start_on($moved, 8);
	is($_->held, $_->{settings}->{'snowflake.node_id'}, "$how: $_->{line} is held") foreach $former, $moved;
	$save->();
	$_->take(100) foreach $former, $moved;
	if (!$at_once)
	{
		my $granted_until = $asked->claim(7, 'granted_until');

		$former->poll_query_until('postgres', "SELECT clock_timestamp() > '$granted_until'") or die 'the clock stands still';
		$former->take(100);
	}
	$_->stop foreach $former, $moved;
	start_on($present, 7);
	start_on($moved, 'auto');

	my @holders = ($steady, $present, $moved);
	my %number = map { $_ => $_->held } @holders;
	my $since = $asked->claim($number{$moved}, 'since');
	my %log = map { $_ => $_->log_position } @holders;

	foreach my $holder ($present, $moved)
	{
		$holder->start_clients('single');
		$holder->wait_for_clients(4096);
	}

	# A newcomer asks all the while.
	$take_away->();
	start_on($newcomer, 'auto');
	$put_back->();
	$newcomer->refused_in_the_end($unsettled, "$how: a newcomer");
	$_->goes_on foreach @holders;
	is($_->stat('node_id'), $number{$_}, "$how: " . $_->name . ' goes on with its number') foreach @holders;
	isnt($asked->claim($number{$moved}, 'since'), $since, "$how: the registry had forgotten a number");
	foreach my $holder (@holders)
	{
		my $lost = $holder->log_since($log{$holder}) =~ /claim on node number \d+ is lost: node number \d+ is held by (\S+),/ ? $1 : 'nobody';

		like($lost, $at_once && $holder == $present ? qr/:@{[ $former->port ]}$/ : qr/^nobody$/, "$how: " . $holder->name . ' has lost its number to those who should have it');
	}

	my $new = $newcomer->held;

	is(scalar(grep { $number{$_} == $new } @holders), 0, "$how: a newcomer gets a number that nobody has");
	$newcomer->take(100);

	# The former holder, and one that wants the number that is free.
	$former->start;
	$former->refused_for($present, "$how: the former holder wants its number");
	$_->stop foreach $former, $newcomer;
	start_on($newcomer, 8);
	is($newcomer->held, 8, "$how: the number that was free can be had");
	$newcomer->take_in_the_end(100);
	$newcomer->stop;

	$_->goes_on foreach @holders;
	foreach my $holder ($present, $moved)
	{
		$holder->finish_clients;
		$holder->stop;
	}
	return;
}

# A base backup.
forget('restored from a base backup', 0, sub { $registry->backup('saved') }, \&stop_registry, sub { put_back('saved') });

# A dump, restored into a database of its own, which then takes the name of the other.  The server goes on.
my $dump = "$PostgreSQL::Test::Utils::tmp_check/registry.sql";

sub close_database
{
	$registry->safe_psql('template1', 'ALTER DATABASE postgres ALLOW_CONNECTIONS false');
	$registry->safe_psql('template1', q{SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = 'postgres'});
	return;
}

sub put_dump_back
{
	$registry->safe_psql('template1', 'CREATE DATABASE restored');
	$registry->safe_psql('template1', 'ALTER DATABASE restored SET search_path = public, "Our ids"');
	system_or_bail('psql', '-XqAt', '-1', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $registry->connstr('restored'));
	$registry->safe_psql('template1', 'ALTER DATABASE postgres RENAME TO lost');
	$registry->safe_psql('template1', 'ALTER DATABASE restored RENAME TO postgres');
	return;
}

forget('restored from a dump', 1, sub { system_or_bail('pg_dump', '-f', $dump, '-d', $registry->connstr('postgres')) },
	\&close_database, \&put_dump_back);

# A standby that has not received the last transactions.
sub make_standby
{
	$registry->backup('standby');
	$successor->init_from($registry, 'standby');
	$successor->{installed} = 1;
	$successor->start;
	$registry->wait_for_catchup($successor, 'replay', $registry->lsn('flush'));
	$successor->stop;
	return;
}

sub promote_standby
{
	$successor->start;
	$successor->promote;
	$successor->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'the standby was not promoted';
	$asked = $successor;
	return;
}

forget('failed over', 0, \&make_standby, \&stop_registry, \&promote_standby);

$steady->finish_clients;
$ledger->check('registries that were restored');
done_testing();
