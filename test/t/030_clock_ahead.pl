# The clock jumps ahead by ten years, and is put right or believed; a server is
# started with such a clock.

use strict;
use warnings FATAL => 'all';

use Snowflake::Server;
use Test::More;

my $ten_years = 10 * 365 * 86400;
my $ledger = Snowflake::Ledger->new;
my $server = Snowflake::Server->new('one', ledger => $ledger, line => 'node 1');

$server->set_clock(0);
$server->init;
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
$server->safe_psql('postgres', 'CREATE ROLE nobody');

# While the server runs: not believed, and put right again without a trace.
my $newest = $server->take(1000);
my $reserved = $server->stat('reserved_until');
$server->step_clock($ten_years);
foreach my $n (1, 2)
{
	$server->refuses(
		'SELECT snowflake_nextval()',
		qr/ERROR: .*clock jumped forward and is not believed\n.*moved 36(49|50) days\S* \S* forward.*"snowflake.max_forward_jump" allows 3600 s.*snowflake_accept_clock\(\)/s,
		"a clock that jumped ahead by ten years, call $n");
}
$server->refuses('SELECT snowflake_nextval_batch(5)', qr/jumped forward/, 'a batch with a clock that jumped ahead');
is($server->stat('last_id'), $newest, 'nothing is issued');
is($server->stat('reserved_until'), $reserved, 'nothing is reserved');
is($server->stat('forward_jumps'), 1, 'the jump is counted once');
cmp_ok($server->stat('errors'), '>=', 3, 'the errors are counted');
$server->safe_psql('postgres', 'CHECKPOINT');
$server->step_clock(-$ten_years);
$server->take(1000);
cmp_ok($server->furthest_ahead(1000), '<=', 0, 'with the clock put right, ids go on at once');
my $reservations = $server->stat('reservations');
$server->take(1000) while $server->stat('reservations') == $reservations;
$server->step_clock($ten_years);
$server->refuses('SELECT snowflake_nextval()', qr/jumped forward/, 'the next jump');
is($server->stat('forward_jumps'), 2, 'the next jump is counted');
$server->step_clock(-$ten_years);
$server->take;

# Nor is it believed after a crash of one process, after which the same server goes on.
$server->step_clock($ten_years);
$server->refuses('SELECT snowflake_nextval()', qr/jumped forward/, 'a jump before a process is killed');
my $victim = $server->background_psql('postgres', on_error_stop => 0);
$server->crash($victim->query_safe('SELECT pg_backend_pid()'));
eval { $victim->quit };
$server->refuses('SELECT snowflake_nextval()', qr/jumped forward/, 'the same jump afterwards');
$server->step_clock(-$ten_years);
$server->take(1000);
cmp_ok($server->furthest_ahead(1000), '<=', 0, 'and with the clock put right, ids go on at once');

# Beyond the end of the layout, too.
my $sixty_years = 60 * 365 * 86400;
$server->step_clock($sixty_years);
$server->refuses('SELECT snowflake_nextval()', qr/no time left|jumped forward/, 'a clock that jumped ahead by sixty years');
$server->step_clock(-$sixty_years);
$server->take;

# A restart after such a jump, once the clock is right, finds nothing poisoned.
$server->step_clock($ten_years);
$server->refuses('SELECT snowflake_nextval()', qr/jumped forward/, 'a jump before a restart');
$server->stop;
$server->step_clock(-$ten_years);
$server->start;
$server->take(1000);

# By less than max_forward_jump: believed.
$server->step_clock(1800);
$server->take(1000);
$server->step_clock(3000);
$server->take(1000);
cmp_ok($server->furthest_ahead(10), '>', -10, 'a clock that jumped by less than max_forward_jump is followed');

# By more: believed when somebody says so.
$server->step_clock(86400);
$server->refuses('SELECT snowflake_nextval()', qr/has moved (1 day|2[34]:)\S* .*forward/, 'a clock that jumped ahead by a day');
$server->refuses('SET ROLE nobody; SELECT snowflake_accept_clock()', qr/permission denied/, 'snowflake_accept_clock() as anybody');
$server->refuses('SELECT snowflake_nextval()', qr/jumped forward/, 'a jump that was not accepted');
$server->safe_psql('postgres', 'SELECT snowflake_accept_clock()');
$server->take(1000);
cmp_ok($server->furthest_ahead(10), '>', -10, 'after snowflake_accept_clock() the clock is followed');
$server->step_clock(4000);
$server->refuses('SELECT snowflake_nextval()', qr/jumped forward/, 'another jump after the accepted one');
$server->step_clock(-4000);
$server->take;

# max_forward_jump can be reloaded.
$server->reconfigure('snowflake.max_forward_jump' => '2d');
$server->step_clock(86400);
$server->take(1000);
$server->reconfigure('snowflake.max_forward_jump' => '1min');
$server->step_clock(90);
$server->refuses('SELECT snowflake_nextval()', qr/has moved 00:01:(29\.9|30)\S* forward.*allows 60 s/s, 'a jump above a reloaded max_forward_jump');
$server->step_clock(-90);
$server->take;

# A jump is as little believed where the reservation reaches beyond it.
$server->reconfigure('snowflake.max_forward_jump' => '1s', 'snowflake.reserve_ahead' => '1min');
$server->take for 1 .. 2;
$server->step_clock(20);
$server->refuses('SELECT snowflake_nextval()', qr/has moved 00:00:(19\.9|20)\S* forward/, 'a jump above max_forward_jump within the reservation');
$server->step_clock(-20);
$server->reconfigure('snowflake.max_forward_jump' => undef, 'snowflake.reserve_ahead' => undef);

# A server that is started with the clock ten years ahead: believed, with a warning.
my $before = $server->take;
my $log = $server->log_position;
$server->stop;
$server->step_clock($ten_years);
$server->start;
my ($status, $id, $warning) = $server->psql('postgres', 'SELECT snowflake_nextval()');
$server->record($id);
is($status, 0, 'at the start a clock ten years ahead is believed');
like($warning, qr/WARNING: .*clock is far past the time that this server's snowflake ids had reached\n.* 36\d\d days \S* before/, 'the client is warned');
like($server->log_since($log), qr/WARNING: .*clock is far past the time/, 'the log is told');
is($server->value("snowflake_timestamp($id) - snowflake_timestamp($before) > '9 years'"), 't', 'the id lies ten years ahead');

# Put right: an error, the ids of the future are there, under this number.
$server->step_clock(-$ten_years);
my $behind = qr/clock is behind the snowflake ids\n.*clock is 36\d\d days \S* behind.*snowflake_set_reserved_until\(\)/s;
$server->refuses('SELECT snowflake_nextval()', $behind, 'the clock put right');
$server->refuses('SELECT snowflake_set_reserved_until(now())', qr/cannot set the reserved time below ids that were issued.*HINT: .*"snowflake.node_id"/s,
	'snowflake_set_reserved_until() below ids that were issued');
$server->refuses('SELECT snowflake_nextval()', $behind, 'after a refused snowflake_set_reserved_until()');
$server->restart('immediate');
$server->refuses('SELECT snowflake_nextval()', $behind, 'the clock put right, and a restart');

# The way out: a new number, and the limit set back.
$server->configure('snowflake.node_id' => '2');
$server->{line} = 'node 2';
$server->restart;
$server->refuses('SELECT snowflake_nextval()', $behind, 'with a new number alone');
$server->refuses('SET ROLE nobody; SELECT snowflake_set_reserved_until(now())', qr/permission denied/, 'snowflake_set_reserved_until() as anybody');
$server->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION snowflake_set_reserved_until(timestamptz) TO nobody');
$server->refuses('SET ROLE nobody; SELECT snowflake_set_reserved_until(now())', qr/must be superuser/, 'snowflake_set_reserved_until() by a grant');
$server->safe_psql('postgres', 'SELECT snowflake_set_reserved_until(now())');
# It is durable before it returns.
$server->restart('immediate');
my $first = $server->take;
is($server->value("snowflake_node($first)"), 2, 'the new number is used');
cmp_ok($server->furthest_ahead(1000), '<=', 0, 'ids follow the clock again');

# It lasts, with a crash right after.
$server->restart('immediate');
$server->take(1000);
$server->refuses(q{SELECT snowflake_set_reserved_until(now() - interval '1 hour')}, qr/cannot set the reserved time below ids that were issued/,
	'snowflake_set_reserved_until() below the newest id');
$server->take;

$ledger->check('a clock that jumped ahead');
done_testing();
