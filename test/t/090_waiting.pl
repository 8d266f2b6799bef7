# A call that waits for the clock: seen, cancelled, ended, without a lock held.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Snowflake::Wait qw(wait_until);
use Test::More;

my $server = Snowflake::Server->new('one');

$server->set_clock(0);
$server->init;
# Longer than any test takes: what waits, waits until something happens to it.
$server->configure('snowflake.max_wait' => '2h');
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
$server->take(100);
$server->step_clock(-3600);

# Cancelled.
my $call = $server->start_call('cancelled', 'SELECT snowflake_nextval()', q{SELECT 'goes on'});
$server->wait_for_waiters('SnowflakeClock', 1);
is($server->value(q{count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE application_name = 'cancelled' AND locktype <> 'virtualxid'}), 0,
	'a call that waits holds no lock');
is($server->value(q{pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'cancelled'}), 't', 'a call that waits is cancelled');
is($server->finish_call($call), 0, 'a cancelled call returns no id');
like($call->{err}, qr/canceling statement due to user request/, 'a cancelled call says so');
like($call->{out}, qr/goes on/, 'its session goes on');

# By statement_timeout.
my ($status, $out, $err) = $server->psql('postgres', q{SET statement_timeout = '50ms'; SELECT snowflake_nextval()});
isnt($status, 0, 'statement_timeout ends a call that waits');
like($err, qr/canceling statement due to statement timeout/, 'and says so');

# Several, of which one is ended; then the clock is put right, and the others get their ids.
my @calls = map { $server->start_call(@$_) } (
	[ 'ended', 'SELECT snowflake_nextval()' ],
	[ 'one', 'SELECT snowflake_nextval()' ],
	[ 'batch', 'SELECT snowflake_nextval_batch(5)' ],
	[ 'rows', 'SELECT snowflake_nextval() FROM generate_series(1, 3)' ]);
$server->wait_for_waiters('SnowflakeClock', 4);
is($server->value(q{pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ended'}), 't', 'a session whose call waits is ended');
is($server->finish_call($calls[0]), 0, 'it returns no id');
like($calls[0]->{err}, qr/terminating connection due to administrator command/, 'it was told');
$server->wait_for_waiters('SnowflakeClock', 3);

# Others can do what needs the lock meanwhile.
$server->safe_psql('postgres', 'SELECT snowflake_stat_reset()');
$server->safe_psql('postgres', 'SELECT snowflake_advance_past(snowflake_max_id(now()))');
is($server->stat('ids'), 0, 'nothing was issued to those that wait');
my $newest = $server->stat('last_id');
$server->step_clock(3600);
$server->{ledger}->next_phase('one');
my $got = 0;
$got += $server->finish_call($_) foreach @calls[ 1 .. 3 ];
is($got, 1 + 5 + 3, 'with the clock put right the others get their ids');
cmp_ok($server->take, '>', $newest, 'and it goes on');

# A batch that waits for the next tick again and again.
$server->restart_with_layout('timestamp:32 node:30 sequence:1 tick:1s epoch:2025-01-01', 'snowflake.max_wait' => undef);
$call = $server->start_call('batch', 'COPY (SELECT snowflake_nextval_batch(1000000)) TO STDOUT');
$server->wait_for_waiters('SnowflakeClock', 1);
$server->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'batch'});
$server->{ledger}->next_phase('one');
$server->finish_call($call);
like($call->{err}, qr/canceling statement due to user request/, 'a batch that waits for a tick is cancelled');
$server->take(3);

# More callers than ids: one that has waited for max_wait and a tick while others took the ids is refused, however long the queue.
$server->restart_with_layout('timestamp:32 node:30 sequence:1 tick:1s epoch:2025-01-01', 'snowflake.max_wait' => '0');
$server->start_clients(('single') x 20);
$server->poll_query_until('postgres', 'SELECT errors > 0 OR ids > 100 FROM snowflake_stat') or die 'the clients are given nothing';
cmp_ok($server->stat('errors'), '>', 0, 'who has waited long enough is refused');

my @errors = map { "$_->{file}.errors" } @{ $server->{clients} };

$server->finish_clients;
like(join('', map { slurp_file($_) } @errors), qr/ERROR:  clock is behind the snowflake ids\nDETAIL:  .* other calls took those that this one had waited for\..*\nHINT:  Try again;/,
	'the error says why');
note('the longest wait: ' . $server->stat('longest_wait'));
is($server->stat(q{longest_wait > '0' AND longest_wait <= wait_time}), 't', 'the longest wait is shown');
$server->configure('snowflake.max_wait' => undef);

# A batch that is being read is cancelled midway.
$server->restart_with_layout('twitter');
$server->start_clients('endless_batch');
$server->wait_for_clients(100_000);
$server->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'client'});
$server->finish_clients;
$server->take(1000);

# The postmaster dies: those that wait notice.
$server->reconfigure('snowflake.max_wait' => '2h');
$server->take;
$server->step_clock(-3600);
$call = $server->start_call('left', 'SELECT snowflake_nextval()');
$server->wait_for_waiters('SnowflakeClock', 1);
my $pid = $server->value(q{pid FROM pg_stat_activity WHERE application_name = 'left'});
$server->kill9;
wait_until('a call that waits notices that the postmaster is gone', sub { !kill(0, $pid) });
$server->finish_call($call);

$server->{ledger}->check('calls that waited');
done_testing();
