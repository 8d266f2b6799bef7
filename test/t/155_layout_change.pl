# Another layout than the one that the limit was made in: refused where its ids
# could be those that were made before, over restarts, crashes, promotions and base
# backups.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Test::More;

my $bits = 'timestamp:41 node:10 sequence:12';
my $base = "$bits epoch:2010-01-01T00:00:15Z";
my $later = "$bits epoch:2010-01-02T00:00:15Z";
my $day = 86400;
my $refused = qr/ERROR: .*cannot make snowflake ids in another layout than before/;

my $server = Snowflake::Server->new('one');

$server->set_clock(0);
$server->init(allows_streaming => 1);
$server->configure('snowflake.layout' => $base);
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');

sub layout_on_record
{
	my ($node) = @_;

	return $node->safe_psql('postgres', q{SET timezone = 'UTC'; SELECT * FROM snowflake_limit_layout()});
}

# Starts with another layout and the same ledger: all ids must lie above those before.
sub restart_as
{
	my ($node, $layout, %settings) = @_;

	$node->configure('snowflake.layout' => $layout, %settings);
	$node->restart;
	return;
}

is(layout_on_record($server), '||', 'nothing is on record before the first id');
$server->take(1000);
is(layout_on_record($server), '2010-01-01 00:00:15+00|00:00:00.001|22', 'the layout is on record with the first id');
is($server->value(q{count(*) FROM pg_replication_origin_status WHERE local_id IN (65533, 65534) AND external_id IS NULL}), 2,
	'in the progress of two origins without names');

# An epoch a day later: for a day the ids would be those of the last one.
$server->start_clients(qw(stream batch single));
$server->wait_for_clients(4096);
$server->finish_clients;
my $newest = $server->stat('last_id');
restart_as($server, $later);
foreach my $call ('nextval()', 'nextval_batch(3)', 'set_reserved_until(now())', "advance_past($newest)")
{
	$server->refuses("SELECT snowflake_$call",
		qr/$refused.*DETAIL: .*epoch 2010-01-01 00:00:15\+00, a tick of 1ms and 22 bits.*2010-01-02 00:00:15\+00.*until 20.*HINT: .*snowflake_accept_layout/s,
		"an epoch a day later, $call");
}
is($server->stat('last_id IS NULL AND errors = 4'), 't', 'nothing is issued, and refusals count');
cmp_ok($server->value("snowflake_timestamp($newest)"), 'gt', '2020', 'ids can be read');
$server->restart('immediate');
$server->refuses('SELECT snowflake_nextval()', $refused, 'after a crash');
restart_as($server, $base);
$server->take(1000);

# A day later it lies above by itself.  A crash between the two records, the limit's and the layout's, which waits for
# a standby that is not there: the layout on record is that of the ids that were made, and the clock may go back.
restart_as($server, $later, 'synchronous_standby_names' => 'nobody');
$server->step_clock($day + 600);
my $call = $server->start_call('first', 'SELECT snowflake_nextval()');
$server->wait_for_waiters('SnowflakeSyncRep', 1);
$server->stop('immediate');
is($server->finish_call($call), 0, 'a crash before the layout is written: nothing is issued');
$server->configure('synchronous_standby_names' => undef);
$server->step_clock(- $day - 600);
$server->start;
is(layout_on_record($server), '2010-01-01 00:00:15+00|00:00:00.001|22', 'a crash before the layout is written: it is as it was');
$server->refuses('SELECT snowflake_nextval()', $refused, 'a crash before the layout is written, then the clock goes back');

# The change, and the clock goes back.
$server->step_clock(3 * $day);
my $log = $server->log_position;
$server->take(1000);
like($server->log_since($log), qr/LOG:  layout of snowflake ids was changed\n.*DETAIL:  It has the epoch 2010-01-02 00:00:15\+00, .*before it had the epoch 2010-01-01 00:00:15\+00, /,
	'the log says that the layout was changed');
$server->step_clock(-3 * $day);
$server->restart('immediate');
$server->refuses('SELECT snowflake_nextval()', qr/clock is .* behind/, 'the clock goes back after the change');
$server->step_clock(3 * $day);
$server->take(1000);

# An earlier epoch lies above at once; it is not left again so easily.  Parts below the timestamp do not matter.
restart_as($server, $base);
$server->take(1000);
restart_as($server, $later);
$server->refuses('SELECT snowflake_nextval()', $refused, 'back to the later epoch');
restart_as($server, $base =~ s/node:10 sequence:12/sequence:10 machine:12/r);
$server->take(1000);
restart_as($server, "$base tick:2ms");
$server->refuses('SELECT snowflake_nextval()', qr/$refused.*a tick of 2ms/s, 'a longer tick');
restart_as($server, $base =~ s/sequence:12/sequence:11/r);
$server->refuses('SELECT snowflake_nextval()', qr/$refused.*21 bits below/s, 'the timestamp one bit lower');
restart_as($server, $base);
$server->take(1000);

# Standbys with another layout, or with none, which is the default's: refused when they are promoted.
$server->backup('base');
my %standby;
foreach my $name ('later', 'none')
{
	$standby{$name} = Snowflake::Server->new($name);
	$standby{$name}->set_clock($server->{clock});
	$standby{$name}->init_from($server, 'base');
	$standby{$name}->configure('snowflake.layout' => $name eq 'later' ? $later : undef);
	$standby{$name}->start;
}
$server->take(1000);
foreach my $name ('later', 'none')
{
	$server->wait_for_catchup($standby{$name}, 'replay', $server->lsn('flush'));
	is(layout_on_record($standby{$name}), '2010-01-01 00:00:15+00|00:00:00.001|22', "$name: a standby has the layout on record");
	$standby{$name}->refuses('SELECT snowflake_accept_layout()', qr/cannot execute snowflake_accept_layout\(\) during recovery/, "$name: not accepted by a standby");
}
$server->stop('immediate');
foreach my $name ('later', 'none')
{
	$standby{$name}->promote;
	$standby{$name}->refuses('SELECT snowflake_nextval()', $refused, "$name: promoted with another layout");
}

# Put right, it goes on.
restart_as($standby{none}, $base);
$standby{none}->take(1000);

# Accepted, under a number that no id has.
restart_as($standby{later}, $later, 'snowflake.node_id' => '2');
$standby{later}->refuses('SELECT snowflake_nextval()', $refused, 'under another number');
$log = $standby{later}->log_position;
$standby{later}->safe_psql('postgres', 'SELECT snowflake_accept_layout(); SELECT snowflake_accept_layout()');
like($standby{later}->log_since($log), qr/LOG:  layout of snowflake ids was accepted/, 'the log says that the layout was accepted');
$standby{later}->{line} = 'two';
$standby{later}->take(1000);
$standby{later}->restart('immediate');
is(layout_on_record($standby{later}), '2010-01-02 00:00:15+00|00:00:00.001|22', 'what was accepted is durable');
$standby{later}->take(1000);
$standby{later}->safe_psql('postgres', 'CREATE ROLE visitor; GRANT EXECUTE ON FUNCTION snowflake_accept_layout() TO visitor');
$standby{later}->refuses('SET ROLE visitor; SELECT snowflake_accept_layout()', qr/must be superuser to accept/, 'accepted by an ordinary user');

# From an accepted layout no other one lies above by itself: ids of the one before it may lie anywhere.  These lie
# above those of the accepted one, but they are those that the first layout had 10 s ago.
my $third = "$bits epoch:2010-01-01T00:00:25Z";
my $over = qr/$refused.*DETAIL: .*epoch 2010-01-02 00:00:15\+00, .*which was accepted over another one.*HINT: .*snowflake_accept_layout/s;
foreach my $layout ($third, $base)
{
	restart_as($standby{later}, $layout);
	$standby{later}->refuses('SELECT snowflake_nextval()', $over, "from an accepted layout to $layout");
	is($standby{later}->stat('refusal'), 'another layout', "from an accepted layout to $layout: the refusal");
}
restart_as($standby{later}, $later);
$standby{later}->take(1000);
restart_as($standby{later}, $third);
$standby{later}->safe_psql('postgres', 'SELECT snowflake_accept_layout()');
is(layout_on_record($standby{later}), '2010-01-01 00:00:25+00|00:00:00.001|22', 'the next one was accepted');
$standby{later}->{line} = 'three';
$standby{later}->take(1000);

# Layouts that the record has no room for are for reading only.
foreach my $case ([ "$base tick:4097us", qr/Ticks of 1 to 4095 us, ms or s/, 'set_reserved_until(now())' ],
	[ "$bits epoch:2249-01-01", qr/Epochs before the year 2248/ ])
{
	my ($layout, $reason, @calls) = @$case;

	restart_as($standby{later}, $layout);
	foreach my $call ('nextval()', 'accept_layout()', @calls)
	{
		$standby{later}->refuses("SELECT snowflake_$call", qr/ERROR: .*cannot make ids with the setting of "snowflake.layout".*DETAIL: .*$reason/s,
			"$layout, $call");
	}
	is($standby{later}->stat('refusal'), 'layout for reading only', "$layout: the refusal");
}

# A base backup that is started with another layout.
my $copy = Snowflake::Server->new('copy');
$copy->init_from($server, 'base', has_streaming => 0);
$copy->set_clock($server->{clock});
$copy->configure('snowflake.layout' => $later);
$copy->start;
$copy->refuses('SELECT snowflake_nextval()', $refused, 'a base backup with another layout');

$server->{ledger}->check('changes of layout');
done_testing();
