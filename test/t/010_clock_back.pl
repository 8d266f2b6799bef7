# The clock is set back, or slewed, while the server runs.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Test::More;
use Time::HiRes qw(time);

my $server = Snowflake::Server->new('one');

$server->set_clock(0);
$server->init;
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');

# By less than max_wait: a wait, then it goes on.
$server->take(1000);
my $start = time;
$server->take;
$server->step_clock(-1);
$server->take(100);
cmp_ok(time - $start, '>=', 1, 'a clock set back by less than max_wait: the id waits until the clock has caught up');
is($server->stat('clock_rollbacks'), 1, 'the rollback is counted once');
is($server->stat(q{round(extract(epoch FROM max_rollback), 2)}), '1.00', 'the largest rollback is shown');
cmp_ok($server->furthest_ahead(20000), '<=', 0, 'no id lies ahead of the clock');

# By more: an error at once.
my $newest = $server->take;
my $newest_time = $server->value(qq{to_char(snowflake_timestamp($newest) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')});
my $issued = $server->stat('ids');
$server->step_clock(-3600);
$server->refuses(
	'SELECT snowflake_nextval()',
	qr/ERROR: .*clock is behind the snowflake ids\n.*clock is 00:59:\S* behind: .*newest id has the time \Q$newest_time\E.*"snowflake.max_wait" is 2000 ms.*HINT: /s,
	'a clock set back by more than max_wait');
is($server->stat('last_id'), $newest, 'nothing is issued meanwhile');
is($server->stat('ids'), $issued, 'nothing is counted as issued meanwhile');
$server->refuses('SELECT snowflake_nextval_batch(10)', qr/clock is 00:59:/, 'a batch with the clock set back');
is($server->value("snowflake_node($newest)"), 1, 'decoding works meanwhile');

# Each session decides how long it waits.
$server->step_clock(3600 - 3);
$server->record($server->safe_psql('postgres', q{SET snowflake.max_wait = '1min'; SELECT snowflake_nextval()}));
cmp_ok($server->furthest_ahead(20000), '<=', 0, 'a session with a larger max_wait waits longer');
$server->take;
$server->step_clock(-1200);
$server->refuses(
	'SET snowflake.max_wait = 0; SELECT snowflake_nextval()',
	qr/clock is .* behind.*"snowflake.max_wait" is 0 ms/s,
	'any clock set back in a session with max_wait 0');

# A wait is seen, and counted.
my $waits = $server->stat('waits');
my $call = $server->start_call('waits', q{SET snowflake.max_wait = '1h'}, 'SELECT snowflake_nextval()');
$server->wait_for_waiters('SnowflakeClock', 1);
$server->step_clock(1200);
$server->{ledger}->next_phase('one');
is($server->finish_call($call), 1, 'with the clock put right the one that waited has its id');
cmp_ok($server->stat('waits'), '>', $waits, 'the wait is counted');
$server->take;

# By less than max_drift: no wait.
$server->reconfigure('snowflake.max_drift' => '1h');
$waits = $server->stat('waits');
$server->step_clock(-600);
$server->take(10000);
is($server->stat('waits'), $waits, 'a clock set back by less than max_drift: ids go on without waiting');
cmp_ok($server->furthest_ahead(20000), '<=', 3600, 'no id lies further ahead of the clock than max_drift');
cmp_ok($server->furthest_ahead(10), '>', 500, 'ids run ahead of the clock');
cmp_ok($server->stat('extract(epoch FROM drift)'), '>', 500, 'the drift is shown');
$server->step_clock(-3600);
$server->refuses('SELECT snowflake_nextval()', qr/clock is .* behind.*"snowflake.max_drift" is 3600000 ms/s,
	'a clock set back by more than max_drift and max_wait');
$server->step_clock(600 + 3600);
$server->reconfigure('snowflake.max_drift' => undef);
$server->take;

# Before the layout's epoch, and before 1970: behind, like any other.
$server->step_clock(-500_000_000);
$server->refuses('SELECT snowflake_nextval()', qr/clock is .* behind: it reads 20\d\d/s, 'a clock 16 years behind');
$server->step_clock(-500_000_000);
$server->refuses('SELECT snowflake_nextval()', qr/clock is .* behind: it reads 199\d/s, 'a clock before the epoch');
$server->step_clock(-1_000_000_000);
$server->refuses('SELECT snowflake_nextval()', qr/clock is .* behind: it reads 196\d/s, 'a clock before 1970');
$server->step_clock(2_000_000_000);
$server->take;

# Steps to and fro under load.
$server->start_clients(qw(single stream batch));
foreach my $seconds (-0.7, 0.5, -1.1, 2, -0.3, -0.4)
{
	$server->wait_for_clients(4096);
	$server->step_clock($seconds);
}
$server->wait_for_clients(4096);
$server->finish_clients;

# A clock that runs at double or half speed.
foreach my $rate (2, 0.5)
{
	$server->stop;
	$server->set_clock("+0 x$rate");
	$server->start;
	$server->start_clients(qw(single stream));
	$server->wait_for_clients(20_000);
	cmp_ok($server->furthest_ahead(20000), '<=', 0, "no id lies ahead of a clock with a rate of $rate");
	$server->finish_clients;
}

$server->{ledger}->check('a clock set back');
done_testing();
