# Clocks that no clock should be: standing still, beyond what 64 bits of nanoseconds hold; put right after a rollback;
# and a postmaster that dies while its backends wait for theirs.

use strict;
use warnings FATAL => 'all';

use POSIX qw(strftime);
use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Snowflake::Wait qw(wait_until);
use Test::More;

my $server = Snowflake::Server->new('one');

$server->set_clock(0);
$server->init;
$server->configure('snowflake.max_wait' => '200ms', 'snowflake.reserve_ahead' => '10ms');
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
$server->take(10);

# Standing still, ahead of all ids: its tick can be filled, and then nobody waits for ever.
$server->set_clock(strftime('%Y-%m-%d %H:%M:%S', localtime(time + 300)));
$server->take(1);
$server->refuses('SELECT count(snowflake_nextval()) FROM generate_series(1, 10000)',
	qr/clock stands still/, 'a clock that stands still');
$server->set_clock(600);
$server->{ledger}->next_phase('one');
$server->take(10);

# Back, with leave to go on; put right: that is no jump forward.
$server->reconfigure('snowflake.max_drift' => '3h');
$server->step_clock(-7200);
$server->take(10);
cmp_ok($server->stat('clock_rollbacks'), '>=', 1, 'a rollback is counted');
# Reservations are made while the clock is back.
my $reservations = $server->stat('reservations');
until ($server->stat('reservations') > $reservations + 2)
{
	$server->take(50000);
}
$server->step_clock(7200);
$server->take(10);
is($server->stat('forward_jumps'), 0, 'a clock that is put right has not jumped');

# But what is further than it ever was, is measured from the last reservation.
$server->step_clock(3000);
$server->take(10);
$server->step_clock(-3000);
$reservations = $server->stat('reservations');
until ($server->stat('reservations') > $reservations + 2)
{
	$server->take(50000);
}
$server->step_clock(6000);
$server->refuses('SELECT count(snowflake_nextval()) FROM generate_series(1, 1000000)', qr/clock jumped forward and is not believed/,
	'a jump in two steps, with a way back between');
$server->step_clock(-6000);
$server->take(10);
$server->reconfigure('snowflake.max_drift' => undef);

# Beyond 2262.
$server->set_clock(5000);
$server->{ledger}->next_phase('one');
$server->restart_with_layout('mastodon', 'snowflake.node_id' => '0');
$server->take(10);
$server->set_clock(8_700_000_000);
$server->refuses('SELECT snowflake_nextval()', qr/clock jumped forward and is not believed/, 'a clock beyond 2262');
$server->restart;
$server->refuses(q{SET statement_timeout = '60s'; SELECT count(snowflake_nextval()) FROM generate_series(1, 100000)},
	qr/clock stands still/, 'a clock beyond 2262 since the start');
$server->set_clock(6000);

# A postmaster that is killed while a backend waits for one tick after the other.
$server->restart_with_layout('timestamp:41 node:20 sequence:2 tick:1ms epoch:2025-01-01', 'snowflake.node_id' => '1');
my $call = $server->start_call('orphan', 'COPY (SELECT snowflake_nextval_batch(2000000000)) TO STDOUT');
$server->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'orphan' AND state = 'active'})
	or die 'the call did not begin';
my $pid = $server->value(q{pid FROM pg_stat_activity WHERE application_name = 'orphan'});
kill 'KILL', $server->{_pid};
wait_until('a backend that waits for ticks ends when the postmaster has died', sub { !kill(0, $pid) });
$server->finish_call($call);
$server->{_pid} = undef;

done_testing();
