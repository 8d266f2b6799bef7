# Ticks that are full, where the sequence starts, batches over several ticks.

use strict;
use warnings FATAL => 'all';

use Snowflake::Server;
use Test::More;

# Four ids a millisecond: every tick is full.
my $small = 'timestamp:41 node:14 sequence:2 tick:1ms epoch:2020-01-01';
my $server = Snowflake::Server->new('one');

$server->set_clock(0);
$server->init;
$server->configure('snowflake.layout' => $small);
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');

cmp_ok($server->furthest_ahead(2000), '<=', 0, 'in full ticks no id lies ahead of the clock');
cmp_ok($server->stat('waits'), '>', 0, 'full ticks are waited for');

my %sequences = map { ($_ & 3) => 1 } $server->take(4000);
is(scalar keys %sequences, 4, 'every number of the sequence is used');

# Several sessions at once.
$server->start_clients(qw(single stream batch stream));
$server->wait_for_clients(20 * 300);
cmp_ok($server->furthest_ahead(200), '<=', 0, 'in full ticks shared with others no id lies ahead of the clock');
$server->step_clock(-0.5);
$server->wait_for_clients(20 * 300);
$server->finish_clients;

# max_wait 0: at most a tick is waited for, always.
$server->record(split /\n/, $server->safe_psql('postgres', 'SET snowflake.max_wait = 0; SELECT snowflake_nextval() FROM generate_series(1, 200)'));

# A batch waits for each of its runs; a run is what a tick holds.
my @ids = split /\n/, $server->safe_psql('postgres', 'SET snowflake.max_wait = 0; SELECT snowflake_nextval_batch(1001)');
$server->record(@ids);
is(scalar @ids, 1001, 'a batch over several ticks has as many ids as were asked for');
@ids = split /\n/, $server->safe_psql('postgres', 'SELECT * FROM snowflake_nextval_batch(1)');
$server->record(@ids);
is(scalar @ids, 1, 'a batch of one');

# Ids ahead of the clock, up to max_drift.
$server->reconfigure('snowflake.max_drift' => '50ms');
my $furthest = $server->furthest_ahead(2000);
cmp_ok($furthest, '<=', 0.05, 'no id lies further ahead of the clock than max_drift');
cmp_ok($furthest, '>', 0, 'a burst runs ahead of the clock');
$server->start_clients(qw(stream single));
$server->wait_for_clients(20 * 300);
cmp_ok($server->furthest_ahead(200), '<=', 0.05, 'no id lies further ahead of the clock than max_drift, with others at it');
$server->finish_clients;

# max_drift counts in whole ticks.
$server->restart_with_layout('timestamp:38 node:17 sequence:3 tick:100ms epoch:2020-01-01', 'snowflake.max_drift' => '199ms');
cmp_ok($server->furthest_ahead(100), '<=', 0.1, 'max_drift is rounded down to whole ticks');
$server->reconfigure('snowflake.max_drift' => '99ms');
cmp_ok($server->furthest_ahead(50), '<=', 0, 'a max_drift below a tick is none');
$server->reconfigure('snowflake.max_drift' => '0');

# Where the sequence starts, as a part of the tick, some times; and whether the
# id's time, to the sequence number, is that at which it was made.
sub sequence_starts
{
	my $bits = 20;
	my @starts;

	while (@starts < 4)
	{
		my ($id, $start, $at_clock, $same_tick) = split /\|/, $server->safe_psql('postgres', qq{
			WITH taken AS MATERIALIZED (
				SELECT (SELECT last_id FROM snowflake_stat) AS before,
					   clock_timestamp() AS clock_before, snowflake_nextval() AS id, clock_timestamp() AS clock_after),
			parts AS (
				SELECT *, snowflake_sequence(id) / (1 << $bits)::float8 AS start FROM taken)
			SELECT id, start,
				   snowflake_timestamp(id) + start * interval '100 ms' BETWEEN clock_before - interval '10 us' AND clock_after,
				   snowflake_timestamp(id) = snowflake_timestamp(before)
			  FROM parts});

		$server->record($id);
		push @starts, [ $start, $at_clock ] if $same_tick ne 't';
	}
	return @starts;
}

$server->restart_with_layout(
	'timestamp:36 node:7 sequence:20 tick:100ms epoch:2020-01-01',
	'snowflake.max_drift' => undef,
	'snowflake.sequence_start' => 'subtick');
$server->take;
is($_->[1], 't', 'subtick: the sequence starts at the clock\'s fraction of the tick') foreach sequence_starts();

$server->reconfigure('snowflake.sequence_start' => 'zero');
is($_->[0], 0, 'zero: the sequence starts at 0') foreach sequence_starts();

$server->reconfigure('snowflake.sequence_start' => 'random');
my %starts = map { $_->[0] => 1 } sequence_starts();
cmp_ok(scalar keys %starts, '>', 2, 'random: the sequence starts at different numbers');
is(scalar(grep { $_ >= 0.5 } keys %starts), 0, 'random: the sequence starts in the lower half');

$server->{ledger}->check('layout with long ticks');
done_testing();
