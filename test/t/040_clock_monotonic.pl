# snowflake.clock = monotonic: the wall clock counts at the server's start, and
# when somebody says so.

use strict;
use warnings FATAL => 'all';

use Snowflake::Server;
use Test::More;

my $server = Snowflake::Server->new('one');

# How far the ids' time lies ahead of the wall clock, in whole seconds.
sub ahead_of_wall_clock
{
	return sprintf '%.0f', $server->furthest_ahead(10);
}

# Kills a backend: the server makes its shared memory anew.
sub crash_one
{
	my $victim = $server->background_psql('postgres', on_error_stop => 0);

	$server->crash($victim->query_safe('SELECT pg_backend_pid()'));
	eval { $victim->quit };
	return;
}

$server->set_clock(0);
$server->init;
$server->configure('snowflake.clock' => 'monotonic');
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
cmp_ok(ahead_of_wall_clock(), '==', 0, 'at the start the ids follow the wall clock');

# Steps while the server runs change nothing; the test knows where the clock was at the start.
foreach my $offset (-3600, 86400, 10 * 365 * 86400, -2_000_000_000, 1800)
{
	$server->set_clock($offset);
	$server->take(1000);
	cmp_ok(ahead_of_wall_clock(), '==', -$offset, "a clock stepped to $offset s changes nothing");
}
is($server->stat('clock_rollbacks'), 0, 'no rollback is counted');
is($server->stat('forward_jumps'), 0, 'no jump is counted');
is($server->stat('waits < 1000'), 't', 'and no id waited for the clock');

# Nor does a crash of one process, after which the same server goes on.
crash_one();
$server->take(1000);
cmp_ok(ahead_of_wall_clock(), '==', -1800, 'a crash of one process changes nothing');

# Now the clock is half an hour ahead of the ids: it is read again.
$server->take;
$server->safe_psql('postgres', 'SELECT snowflake_accept_clock()');
cmp_ok(ahead_of_wall_clock(), '==', 0, 'snowflake_accept_clock() reads the wall clock again');
# libfaketime lets the postmaster see the clock as it was at the start: it must not read it.
crash_one();
$server->take(1000);
cmp_ok(ahead_of_wall_clock(), '==', 0, 'and a crash of one process does not');

# In every session, old ones too.
my $session = $server->background_psql('postgres');
$server->record($session->query_safe('SELECT snowflake_nextval()'));
$server->step_clock(86400);
$server->safe_psql('postgres', 'SELECT snowflake_accept_clock()');
$server->record($session->query_safe('SELECT snowflake_nextval()'));
cmp_ok(ahead_of_wall_clock(), '==', 0, 'snowflake_accept_clock() believes a jump, in one session for all');
$session->quit;

# Back: the ids that are there lie ahead of the clock then.
$server->step_clock(-3600);
$server->take;
$server->safe_psql('postgres', 'SELECT snowflake_accept_clock()');
$server->refuses('SELECT snowflake_nextval()', qr/clock is (?:00:59|01:00):\S* behind/,
	'snowflake_accept_clock() with the clock an hour back');
$server->step_clock(3600);
$server->refuses('SELECT snowflake_nextval()', qr/ behind the snowflake ids/, 'the clock put right, but not read');
$server->safe_psql('postgres', 'SELECT snowflake_accept_clock()');
$server->take;

# A restart reads it; the limit is kept all the same.
$server->stop;
$server->step_clock(-1);
$server->start;
$server->take;
cmp_ok(ahead_of_wall_clock(), '==', 0, 'a start reads the wall clock');
cmp_ok($server->furthest_ahead(1000), '<=', 0.1, 'no id lies ahead of the clock');

# The clock ten years ahead at the start: there is nothing to compare it with.
my $log = $server->log_position;
$server->stop;
$server->step_clock(10 * 365 * 86400);
$server->start;
$server->take;
cmp_ok(ahead_of_wall_clock(), '==', 0, 'a start believes the clock');
unlike($server->log_since($log), qr/WARNING/, 'max_forward_jump is not for monotonic');

$server->{ledger}->check('a monotonic clock');
done_testing();
