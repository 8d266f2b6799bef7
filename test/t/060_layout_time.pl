# Layouts whose time has not begun, has ended, or ends soon: read, but not used
# for new ids, and the log says so in time.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Test::More;
use Time::HiRes qw(time);

my $day = 86400;
my $server = new_server('one');

sub new_server
{
	my ($name, %settings) = @_;
	my $new = Snowflake::Server->new($name);

	$new->set_clock(0);
	$new->init;
	$new->configure(%settings);
	$new->start;
	$new->safe_psql('postgres', 'CREATE EXTENSION snowflake');
	return $new;
}

# Starts with a layout; what the log says since.
sub start_with
{
	my ($layout) = @_;
	my $log = $server->log_position;

	$server->restart_with_layout($layout);
	return $server->log_since($log);
}

# A layout of 2^28 s, 8.5 years, that ends at a time.
sub ends_at
{
	my ($end, $fields) = @_;

	return ($fields // 'baidu') . ' epoch:' . ($end - 2**28) * 1000;
}

# Ended.
like(start_with('baidu'), qr/WARNING: .*cannot make ids with a snowflake layout whose time has ended\n.*at 2024-11-2/, 'an ended layout is warned of at the start');
$server->refuses('SELECT snowflake_nextval()', qr/ERROR: .*snowflake layout has no time left.*ends at 2024-11-2.*HINT: .*"snowflake.layout"/s, 'an ended layout');
$server->refuses('SELECT snowflake_nextval_batch(3)', qr/no time left/, 'a batch with an ended layout');
is($server->stat('reserved_until IS NULL AND last_id IS NULL'), 't', 'nothing was reserved');
is($server->value(q{snowflake_timestamp(snowflake_encode('2020-01-01 00:00:00+00', 7, 3)) = '2020-01-01 00:00:00+00'}), 't', 'an ended layout decodes');
is($server->value(q{count(*) FROM snowflake_layout()}), 1, 'an ended layout can be looked at');

# Not begun.
my $epoch = int((time + 30 * $day) * 1000);
like(start_with("twitter epoch:$epoch"), qr/WARNING: .*cannot make ids before the epoch/, 'a layout that has not begun is warned of at the start');
$server->refuses('SELECT snowflake_nextval()', qr/ERROR: .*cannot make ids before the epoch of the snowflake layout.*The clock reads 20.*epoch is 20.*HINT: /s,
	'a layout that has not begun');
is($server->stat('reserved_until IS NULL AND last_id IS NULL'), 't', 'nothing was reserved');
is($server->value('snowflake_node(snowflake_encode(to_timestamp(' . int($epoch / 1000 + 1) . '), 7, 3))'), 7, 'a layout that has not begun decodes');
$server->refuses('SELECT snowflake_encode(now(), 7, 3)', qr/ERROR/, 'encoding a time before the epoch');

# Its epoch comes while the server runs, by a clock that is put right.
$server->step_clock(31 * $day);
$server->safe_psql('postgres', 'SELECT snowflake_accept_clock()');
$server->take(100);
$server->step_clock(-31 * $day);
$server->refuses('SELECT snowflake_nextval()', qr/clock is 3\d days .* behind/, 'a clock back before the epoch, after ids were made');
$server->stop;
$server->{ledger}->check('an epoch that came');

$server = new_server('two');

# Ends soon.
like(start_with(ends_at(int(time) + 300 * $day)), qr/WARNING: .*snowflake layout has less than a year of time left\n.*ends at 20\d\d-/, 'less than a year before its end a layout is warned of at the start');
$server->take;
my $end = int(time) + 400 * $day;
unlike(start_with(ends_at($end)), qr/time left/, 'more than a year before its end nobody is warned');
my $log = $server->log_position;
$server->take;
unlike($server->log_since($log), qr/time left/, 'more than a year before its end making ids warns nobody');

# The server runs into the last year.
$server->step_clock(40 * $day);
$server->safe_psql('postgres', 'SELECT snowflake_accept_clock()');
my (undef, $id, $err) = $server->psql('postgres', 'SELECT snowflake_nextval()');
$server->record($id);
like($server->log_since($log), qr/snowflake layout has less than a year of time left\n.*ends at 20\d\d-.*HINT: .*layout with a later epoch or more timestamp bits/s,
	'making ids in the last year warns in the log');
is($err, '', 'but not the client');

# Once a day.
sub warnings
{
	return scalar(() = $server->log_since($log) =~ /LOG: .*less than a year of time left/g);
}
is(warnings(), 1, 'the log is told once');
$server->step_clock(0.8 * $day);
$server->safe_psql('postgres', 'SELECT snowflake_accept_clock()');
$server->take;
is(warnings(), 1, 'less than a day later it is not told again');
$server->step_clock(0.3 * $day);
$server->safe_psql('postgres', 'SELECT snowflake_accept_clock()');
$server->take;
is(warnings(), 2, 'a day later it is told again');

# Up to the end and not further.
$server->set_clock($end - 60 - time);
$server->safe_psql('postgres', 'SELECT snowflake_accept_clock()');
$server->take(100);
$server->set_clock($end - time);
$server->refuses('SELECT snowflake_nextval()', qr/no time left/, 'the end comes while the server runs');
$server->refuses('SELECT snowflake_nextval_batch(100)', qr/no time left/, 'a batch after the end');
is($server->stat('layout_ends_at > last_timestamp'), 't', 'no id lies beyond the end');
$server->restart;
$server->refuses('SELECT snowflake_nextval()', qr/no time left/, 'the end and a restart');
$server->step_clock(-400 * $day);
$server->refuses('SELECT snowflake_nextval()', qr/behind|no time left/, 'the clock put right');
$server->{ledger}->check('up to the end');

# The last tick of all: the ids run out in it, and none wraps.
$server->stop;
$end = int(time) + 1000;
$server = new_server('three',
	'snowflake.layout' => ends_at($end, 'timestamp:28 node:30 sequence:5 tick:1s'),
	'snowflake.max_wait' => '1min');
# The session is there before the last seconds begin.
my $session = $server->background_psql('postgres', on_error_stop => 0);
$server->set_clock($end - 5 - time);
$server->record(split /\n/, $session->query('COPY (SELECT snowflake_nextval() FROM (SELECT generate_series(1, 1000)) AS s) TO STDOUT'));
like($session->{stderr}, qr/no time left/, 'ids run out with the last tick');
$session->quit;
is($server->value('snowflake_timestamp(last_id) + interval \'1 s\' = layout_ends_at FROM snowflake_stat'), 't', 'the last id lies in the last tick');
is($server->stat('last_id & 31'), 31, 'the last id is the last of its tick');
$server->{ledger}->check('up to the last id');
done_testing();
