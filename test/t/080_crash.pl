# Crashes under load, with the clock going back each time.

use strict;
use warnings FATAL => 'all';

use Snowflake::Server;
use Test::More;

my $server = Snowflake::Server->new('one');

$server->set_clock(0);
$server->init;
# So that clients soon go on where the clock went back.
$server->configure('snowflake.reserve_ahead' => '200ms', 'checkpoint_timeout' => '30s');
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
$server->take;

# A backend killed under load: the server starts anew by itself, with all else.
foreach my $round (1 .. 3)
{
	$server->start_clients(qw(single stream batch single));
	$server->wait_for_clients(4096);

	my $pid = $server->value(q{pid FROM pg_stat_activity WHERE application_name = 'client' ORDER BY random() LIMIT 1});

	$server->step_clock(-0.7);
	$server->crash($pid);
	pass("round $round: a backend is killed, the server starts anew");
	# Every client has lost its connection.
	$server->finish_clients;
	$server->take(1000);
}

# Immediate stops under load, in every state that a reservation can be in.
foreach my $round (1 .. 20)
{
	$server->start_clients(qw(single stream batch stream));
	$server->wait_for_clients(500 * $round);
	$server->safe_psql('postgres', 'CHECKPOINT') if $round % 3 == 0;
	$server->stop('immediate');
	$server->finish_clients;
	# Now and then some way ahead, so that there is room to go back.
	$server->step_clock($round % 4 == 0 ? 3 : -0.2);
	$server->start;
}

# The postmaster alone: its children notice when they wait for the next statement.
$server->start_clients(qw(single batch single));
$server->wait_for_clients(4096);
$server->kill9;
$server->finish_clients;
$server->step_clock(-0.5);
$server->start_in_the_end;
$server->take(1000);

$server->{ledger}->check('crashes with the clock going back');
done_testing();
