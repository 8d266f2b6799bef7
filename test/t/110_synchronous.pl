# A synchronous standby: the limit counts when it is durable there too, whatever
# a session says about synchronous_commit.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Test::More;

my $primary = Snowflake::Server->new('primary');

$primary->set_clock(0);
$primary->init(allows_streaming => 1);
$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION snowflake');
$primary->backup('first');

my $standby = Snowflake::Server->new('standby');

$standby->set_clock(0);
$standby->init_from($primary, 'first');
$standby->start;

sub make_synchronous
{
	$primary->reconfigure('synchronous_standby_names' => 'standby');
	$primary->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_replication WHERE application_name = 'standby' AND sync_state = 'sync'})
	  or die 'the standby did not become synchronous';
	return;
}

# Uses up what is reserved, so that the next call has to reserve.
sub use_up_the_limit
{
	$primary->poll_query_until('postgres', 'SELECT clock_timestamp() > reserved_until FROM snowflake_stat')
	  or die 'the limit is still ahead';
	return;
}

make_synchronous();
$primary->take(1000);
foreach my $level (qw(off local remote_write on remote_apply))
{
	use_up_the_limit();
	$primary->record($primary->safe_psql('postgres', "SET synchronous_commit = $level; SELECT snowflake_nextval()"));
}
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));
is($standby->stat('reserved_until'), $primary->stat('reserved_until'), 'the standby has the limit');

# Without the standby: no id above the old limit, whatever the session says.
$standby->stop;
$primary->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_replication') or die 'the standby is still there';
use_up_the_limit();
my $newest = $primary->stat('last_id');
my $reserved = $primary->stat('reserved_until');
my @calls = map { $primary->start_call($_, "SET synchronous_commit = $_", 'SELECT snowflake_nextval()') } qw(off local on);
$primary->wait_for_waiters('SnowflakeSyncRep', 3);
is($primary->stat('last_id'), $newest, 'nothing is issued without the standby');
is($primary->stat('reserved_until'), $reserved, 'the limit stays where it was');

# One is cancelled, one ended, one by a timeout: nothing is issued for that.
is($primary->value(q{pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'off'}), 't', 'a reservation that waits is cancelled');
is($primary->value(q{pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'local'}), 't', 'a session whose reservation waits is ended');
is($primary->finish_call($calls[0]) + $primary->finish_call($calls[1]), 0, 'they return no id');
like($calls[0]->{err}, qr/canceling statement due to user request/, 'the one was told');
like($calls[1]->{err}, qr/terminating connection due to administrator command/, 'so was the other');
foreach my $n (1 .. 3)
{
	$primary->refuses(
		q{SET synchronous_commit = off; SET statement_timeout = '50ms'; SELECT snowflake_nextval()},
		qr/canceling statement due to statement timeout/,
		"statement_timeout while the standby is away, call $n");
}
$primary->refuses(q{SET statement_timeout = '50ms'; SELECT snowflake_advance_past(snowflake_max_id(now()))}, qr/statement timeout/, 'snowflake_advance_past() without the standby');
is($primary->stat('last_id'), $newest, 'nothing is issued by cancelling');
is($primary->stat('reserved_until'), $reserved, 'the limit stays where it was');

# The standby comes back: the one that waited on gets its id.
$standby->start;
$primary->{ledger}->next_phase($primary->{line});
is($primary->finish_call($calls[2]), 1, 'with the standby back the call returns its id');
$primary->take(1000);

# Without the standby again, until it is no longer asked for.
make_synchronous();
$standby->stop;
$primary->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_replication') or die 'the standby is still there';
$primary->restart('immediate');
my $call = $primary->start_call('waits', 'SELECT snowflake_nextval()');
$primary->wait_for_waiters('SnowflakeSyncRep', 1);
$primary->configure('synchronous_standby_names' => undef);
# A commit of its own would wait for the standby.
$primary->safe_psql('postgres', q{ALTER SYSTEM SET synchronous_standby_names = ''});
$primary->reload;
$primary->{ledger}->next_phase($primary->{line});
is($primary->finish_call($call), 1, 'without synchronous standbys the call returns its id');
$primary->take(1000);
$primary->safe_psql('postgres', 'ALTER SYSTEM RESET synchronous_standby_names');

# Under load, and the standby is promoted as it stands, its clock behind.
$standby->start;
make_synchronous();
$primary->start_clients(qw(single stream batch));
$primary->wait_for_clients(20_000);
$primary->stop('immediate');
$primary->finish_clients;
$standby->step_clock(-1);
$standby->promote;
$standby->take(1000);

# The same with two, of which any one counts.
$primary = $standby;
$primary->configure('synchronous_standby_names' => undef);
$primary->restart;
$primary->backup('second');
my @standbys = map { Snowflake::Server->new("pair$_") } 1, 2;
foreach my $one (@standbys)
{
	$one->set_clock($primary->{clock});
	$one->init_from($primary, 'second');
	$one->start;
}
$primary->reconfigure('synchronous_standby_names' => 'ANY 2 (pair1, pair2)');
$primary->poll_query_until('postgres', q{SELECT count(*) = 2 FROM pg_stat_replication WHERE sync_state = 'quorum'}) or die 'no quorum';
$primary->start_clients(qw(single stream));
$primary->wait_for_clients(20_000);
$standbys[1]->stop('immediate');
use_up_the_limit();
$newest = $primary->stat('last_id');
$primary->refuses(q{SET statement_timeout = '50ms'; SELECT snowflake_nextval()}, qr/statement timeout/, 'one of two standbys is not enough for ANY 2');
is($primary->stat('last_id'), $newest, 'nothing is issued with one of two');
$primary->stop('immediate');
$primary->finish_clients;
$standbys[0]->step_clock(-1);
$standbys[0]->promote;
$standbys[0]->take(1000);

$primary->{ledger}->check('synchronous standbys');
done_testing();
