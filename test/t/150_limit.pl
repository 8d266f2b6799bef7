# Where the limit is kept: the progress of replication origin 65534.

use strict;
use warnings FATAL => 'all';

use Snowflake::Server;
use Test::More;

my $server = Snowflake::Server->new('one');

$server->set_clock(0);
$server->init;
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
$server->take(1000);
is($server->value('count(*) FROM pg_replication_origin'), 0, 'the origin has no row');
is($server->value(q{count(*) FROM pg_replication_origin_status WHERE local_id = 65534 AND external_id IS NULL}), 1, 'it has a progress');

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
$server->safe_psql('postgres', q{SET allow_system_table_mods = on; INSERT INTO pg_replication_origin VALUES (65534, 'somebody''s')});
foreach my $call ('SELECT snowflake_nextval()', 'SELECT snowflake_nextval_batch(2)', 'SELECT snowflake_advance_past(1)', 'SELECT snowflake_set_limit(now())')
{
	$server->refuses($call, qr/ERROR: .*replication origin 65534 belongs to "somebody's".*HINT: .*"somebody's"/s, "$call with an origin of this number");
}
is($server->stat('last_id'), $newest, 'nothing is issued');
$server->restart;
$server->refuses('SELECT snowflake_nextval()', qr/replication origin 65534 belongs to/, 'an origin of this number, after a restart');
$server->safe_psql('postgres', q{SET allow_system_table_mods = on; DELETE FROM pg_replication_origin});
$server->take(1000);

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
$server->stop;
my $fresh = Snowflake::Server->new('fresh');
$fresh->init;
$fresh->configure($setting => 0);
$fresh->start;
$fresh->safe_psql('postgres', 'CREATE EXTENSION snowflake');
foreach my $call ('SELECT snowflake_nextval()', 'SELECT snowflake_nextval()', 'SELECT snowflake_nextval_batch(2)', 'SELECT snowflake_advance_past(1)', 'SELECT snowflake_set_limit(now())')
{
	$fresh->refuses($call, qr/ERROR: .*"$setting" is 0.*HINT: .*"$setting" to at least 1 .*standby/s, "$call without a place for the limit");
}
is($fresh->stat('last_id IS NULL'), 't', 'nothing is issued');
is($fresh->value("snowflake_node($newest_id)"), 1, 'ids can be read');

# All places taken by others: PostgreSQL's error, which says so.
$fresh->configure($setting => 1);
$fresh->restart;
$fresh->safe_psql('postgres', q{SELECT pg_replication_origin_create('a'); SELECT pg_replication_origin_advance('a', '0/1000')});
$fresh->refuses('SELECT snowflake_nextval()', qr/ERROR: .*replication origin.*65534.*HINT: .*$setting/s, 'all places for origins taken');
is($fresh->stat('last_id IS NULL'), 't', 'nothing is issued');
$fresh->safe_psql('postgres', q{SELECT pg_replication_origin_drop('a')});
$fresh->take(1000);

$server->{ledger}->check('origins that come and go');
$fresh->{ledger}->check('one origin');
done_testing();
