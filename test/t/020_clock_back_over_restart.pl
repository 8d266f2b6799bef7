# The clock is set back while the server is down: after crashes, with a
# checkpoint in between and without, and after a clean stop.

use strict;
use warnings FATAL => 'all';

use Snowflake::Server;
use Test::More;

my $server = Snowflake::Server->new('one');

$server->set_clock(0);
$server->init;
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');

# The very first id of a server.
is($server->stat('last_id IS NULL AND reserved_until IS NULL'), 't', 'a new server has issued and reserved nothing');
$server->take;
is($server->stat('reserved_until > last_timestamp'), 't', 'the limit lies above the newest id');

foreach my $way ([ 'immediate', 0 ], [ 'immediate', 1 ], [ 'fast', 0 ])
{
	my ($mode, $checkpoint) = @$way;
	my $name = "$mode stop" . ($checkpoint ? ', a checkpoint before' : '');

	# By less than max_wait: a wait.
	$server->take(1000);
	$server->safe_psql('postgres', 'CHECKPOINT') if $checkpoint;
	my $reserved = $server->stat('reserved_until');
	$server->stop($mode);
	$server->step_clock(-1);
	$server->start;
	is($server->stat('reserved_until'), $reserved, "$name: the limit is still there");
	is($server->stat('last_id IS NULL'), 't', "$name: nothing was issued since the start");
	my ($taken) = $server->take_beside_clock(1);
	my ($first, $ahead) = @$taken;
	cmp_ok($ahead, '<=', 0, "$name: the first id waits for the clock");
	is($server->value("snowflake_timestamp($first) >= '$reserved'"), 't', "$name: the first id starts at the limit");
	cmp_ok($server->furthest_ahead(1000), '<=', 0, "$name: no id lies ahead of the clock");

	# By more: an error, which goes away with its cause.
	$server->stop($mode);
	$server->step_clock(-7200);
	$server->start;
	$server->refuses(
		'SELECT snowflake_nextval()',
		qr/clock is (?:01:59|02:00):\S* behind/,
		"$name, a clock two hours behind");
	$server->refuses(
		'SELECT snowflake_nextval()',
		qr/this server reserved the time up to 20\d\d-.*"snowflake.max_wait" is 2000 ms/s,
		"$name, a clock two hours behind");

	# Another such stop with nothing issued, and then the clock is right.
	$server->stop($mode);
	$server->start;
	$server->refuses('SELECT snowflake_nextval()', qr/ behind the snowflake ids/, "$name, twice");
	$server->step_clock(7200);
	$server->take(1000);

	# The limit outlives a restart in which no id was asked for.
	$server->stop($mode);
	$server->start;
	$server->stop($mode);
	$server->step_clock(-0.8);
	$server->start;
	$server->take(1000);
}

# Another layout or node number starts above what came before, too.
my $newest = $server->take;
my $newest_time = $server->value("snowflake_timestamp($newest)");

$server->stop;
$server->configure('snowflake.layout' => 'game', 'snowflake.node_id' => '70000');
$server->step_clock(-1);
$server->start;
$server->safe_psql('postgres', 'SELECT snowflake_accept_layout()');
is($server->value("snowflake_timestamp(snowflake_nextval()) > '$newest_time'"), 't', 'another layout starts above the old limit');

# The limit is exact: where a reservation holds no more than one tick, the next one's ids need another.
$server->restart_with_layout('timestamp:36 node:20 sequence:7 tick:100ms epoch:2020-01-01', 'snowflake.reserve_ahead' => '10ms');
foreach my $round (1 .. 5)
{
	my $first = $server->take;

	$server->poll_query_until('postgres', q{SELECT clock_timestamp() >= last_timestamp + interval '100 ms' FROM snowflake_stat})
	  or die 'the tick does not end';
	cmp_ok($server->take, '>', $first, "round $round: an id in a later tick");
	is($server->stat(q{reserved_until >= last_timestamp + interval '100 ms'}), 't', "round $round: its tick is reserved");
	$server->stop('immediate');
	$server->step_clock(-0.2);
	$server->start;
}
$server->take;

$server->{ledger}->check('a clock set back over restarts');
done_testing();
