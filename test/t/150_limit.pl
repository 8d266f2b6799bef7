# Where the limit and its layout are kept: the progress of replication origins 65534 and 65533.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Test::More;

my $server = Snowflake::Server->new('one');

$server->set_clock(0);
$server->init;
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
$server->take(1000);
is($server->value('count(*) FROM pg_replication_origin'), 0, 'the origins have no rows');
is($server->value(q{count(*) FROM pg_replication_origin_status WHERE local_id IN (65533, 65534) AND external_id IS NULL}), 2, 'they have a progress');

# Uses up what is reserved, so that the next call has to reserve.
sub use_up_the_limit
{
	$server->poll_query_until('postgres', 'SELECT coalesce(clock_timestamp() > reserved_until, true) FROM snowflake_stat')
	  or die 'the limit is still ahead';
	return;
}

# An origin by this number: refused, as it would be given WAL positions that are none.
use_up_the_limit();
my $newest = $server->stat('last_id');
foreach my $origin (65534, 65533)
{
	use_up_the_limit();
	$server->safe_psql('postgres', qq{SET allow_system_table_mods = on; INSERT INTO pg_replication_origin VALUES ($origin, 'somebody''s')});
	foreach my $call ('SELECT snowflake_nextval()', 'SELECT snowflake_nextval_batch(2)', 'SELECT snowflake_advance_past(1)', 'SELECT snowflake_set_reserved_until(now())')
	{
		$server->refuses($call, qr/ERROR: .*replication origin that has a name.*DETAIL: .*; $origin belongs to "somebody's".*HINT: .*"somebody's"/s,
			"$call with origin $origin taken");
	}
	is($server->stat('last_id'), $newest, 'nothing is issued') if $origin == 65534;
	$server->restart;
	$server->refuses('SELECT snowflake_nextval()', qr/$origin belongs to/, "origin $origin taken, after a restart");
	$server->safe_psql('postgres', q{SET allow_system_table_mods = on; DELETE FROM pg_replication_origin});
	$server->take(1000);
}

# Other origins come and go beside it.
$server->safe_psql('postgres', q{SELECT pg_replication_origin_create('a'), pg_replication_origin_create('b'); SELECT pg_replication_origin_advance('a', '0/1000')});
$server->take;
$server->restart('immediate');
$server->take(1000);
$server->safe_psql('postgres', q{SELECT pg_replication_origin_drop('a'), pg_replication_origin_drop('b')});
$server->take(1000);

# No place for the progress: an error that names the setting.
my $setting = $server->pg_version >= 18 ? 'max_active_replication_origins' : 'max_replication_slots';
my $newest_id = $server->take;
my $fresh = Snowflake::Server->new('fresh');
$fresh->init;
$fresh->configure($setting => 0);
$fresh->start;
$fresh->safe_psql('postgres', 'CREATE EXTENSION snowflake');
foreach my $call ('SELECT snowflake_nextval()', 'SELECT snowflake_nextval()', 'SELECT snowflake_nextval_batch(2)', 'SELECT snowflake_advance_past(1)', 'SELECT snowflake_set_reserved_until(now())')
{
	$fresh->refuses($call, qr/ERROR: .*cannot reserve time .* so few replication origins.*DETAIL: .*"$setting" is 0.*HINT: .*"$setting" to at least 2 .*standby/s,
		"$call without a place for the limit");
}
$fresh->configure($setting => 1);
$fresh->restart;
$fresh->refuses('SELECT snowflake_nextval()', qr/"$setting" is 1/, 'a place for one of two');
like(slurp_file($fresh->logfile), qr/WARNING:  too few replication origins for snowflake ids\n.*DETAIL:  "$setting" is 0\..*DETAIL:  "$setting" is 1\./s,
	'the log warns at the start');
is($fresh->stat('last_id IS NULL'), 't', 'nothing is issued');
is($fresh->value("snowflake_node($newest_id)"), 1, 'ids can be read');

# All places taken by others: PostgreSQL's error, which says so.
my $log = $fresh->log_position;
$fresh->configure($setting => 2);
$fresh->restart;
unlike($fresh->log_since($log), qr/WARNING/, 'two places: no warning');
$fresh->safe_psql('postgres', q{SELECT pg_replication_origin_create(n), pg_replication_origin_advance(n, '0/1000') FROM unnest('{a,b}'::text[]) AS n});
foreach my $name ('a', 'b')
{
	$fresh->refuses('SELECT snowflake_nextval()', qr/ERROR: .*replication origin.*6553.*HINT:  Increase "$setting" here and on every standby/s, 'all places for origins taken');
	is($fresh->stat('last_id IS NULL'), 't', 'nothing is issued');
	$fresh->safe_psql('postgres', qq{SELECT pg_replication_origin_drop('$name')});
}
$fresh->take(1000);

# Lowered, with the limit there: no ids, or no start; raised again, all is as it was, though the clock goes back.
my $limit = $server->stat('reserved_until');
$server->stop;
# Further than what follows takes on a slow machine.
$server->step_clock(-3600);
$log = $server->log_position;
$server->configure($setting => 1);
ok(!$server->start(fail_ok => 1), 'room for one of two: no start');
like($server->log_since($log), qr/WARNING:  too few replication origins.*PANIC:  could not find free replication state/s, 'room for one of two: the log says why');
$server->configure($setting => 0);
$server->start;
$server->refuses('SELECT snowflake_nextval()', qr/so few replication origins/, 'no room any more');
is($server->stat(q{refusal || ' ' || errors}), 'no replication origin 1', 'no room any more: it is seen');
$server->safe_psql('postgres', 'CREATE TABLE written (); CHECKPOINT');
$server->restart('immediate');
$server->configure($setting => 2);
$server->restart;
is($server->stat('reserved_until'), $limit, 'with room again the limit is there');
$server->refuses('SELECT snowflake_nextval()', qr/clock is .*behind/, 'and counts');
$server->step_clock(3600);
$server->take(1000);

$server->{ledger}->check('origins that come and go');
$fresh->{ledger}->check('one origin');
done_testing();
