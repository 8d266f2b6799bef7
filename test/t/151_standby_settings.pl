# What a standby has its own settings for: room for the origins of the limit, the
# node number, the layout.  Warnings at its start, snowflake_check_cluster(), and
# what happens where nobody reads them.  At the end the limit is forgotten.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Test::More;

my $primary = Snowflake::Server->new('primary');
my $standby = Snowflake::Server->new('standby');
my $setting = $primary->pg_version >= 18 ? 'max_active_replication_origins' : 'max_replication_slots';

$primary->init(allows_streaming => 1);
$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION snowflake; CREATE EXTENSION postgres_fdw');
$primary->backup('first');
$standby->init_from($primary, 'first');

# Starts the standby with settings of its own; what its log says since.
sub start_standby
{
	my (%settings) = @_;
	my $log = -e $standby->logfile ? $standby->log_position : 0;

	$standby->configure(%settings);
	$standby->start;
	return $standby->log_since($log);
}

sub problems_of_standby
{
	return $standby->value(q{problems FROM snowflake_check_cluster('{}')});
}

# As its primary: nothing to say.
my $log = start_standby();
unlike($log, qr/WARNING/, 'a standby with its primary\'s settings: no warning');
is(problems_of_standby(), 'is in recovery: no ids until it is promoted', 'a standby with its primary\'s settings: no problem');
$primary->safe_psql('postgres', sprintf(q{CREATE SERVER standby FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname 'postgres');
	CREATE USER MAPPING FOR CURRENT_USER SERVER standby}, $standby->host, $standby->port));
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));

# No number, or one of its own.
$standby->stop;
$log = start_standby('snowflake.node_id' => undef);
like($log, qr/WARNING:  standby has no node number for snowflake ids\n.*HINT:  Set "snowflake.node_id" and "snowflake.layout" as they are on the primary/s,
	'no number: the log warns at the start');
like(problems_of_standby(), qr/no node number is set/, 'no number: a problem');
$standby->stop;
$log = start_standby('snowflake.node_id' => 'address:127.0.0.0/24');
like($log, qr/WARNING:  standby has a node number of its own for snowflake ids\n.*DETAIL:  .*"address:127.0.0.0\/24", 1 on this host/s,
	'a number by address: the log warns at the start');
like(problems_of_standby(), qr/^promoted, it makes ids under a node number of its own, 1, by address$/m, 'a number by address: a problem');
unlike($primary->value(q{problems FROM snowflake_check_cluster('{standby}') WHERE server = 'standby'}), qr/promoted, it/,
	'the same number as its primary: no problem beside it');
$standby->stop;
$log = start_standby('snowflake.node_id' => '7');
unlike($log, qr/WARNING/, 'another number: no warning');
like($primary->value(q{problems FROM snowflake_check_cluster('{standby}') WHERE server = 'standby'}),
	qr/^promoted, it makes ids under node number 7; this server, its primary, has 1$/m, 'another number: a problem beside its primary');

# No room, or room for one of two: warned of.
$standby->stop;
foreach my $room (0, 1)
{
	$log = start_standby('snowflake.node_id' => '1', $setting => $room);
	like($log, qr/WARNING:  too few replication origins for snowflake ids\n.*DETAIL:  "$setting" is $room\..*HINT:  This standby shuts down at the first id/s,
		"room for $room: the log warns at the start");
	like(problems_of_standby(), qr/^has room for $room replication origins: shuts down at the first id that its primary makes; /m, "room for $room: a problem");
	$standby->stop if $room == 0;
}
# And then it happens, at each start again until there is room.
$primary->take(1000);
my $gone = $PostgreSQL::Test::Utils::timeout_default * 10;
while (-e $standby->data_dir . '/postmaster.pid')
{
	die 'the standby did not shut down' if $gone-- == 0;
	select undef, undef, undef, 0.1;
}
like(slurp_file($standby->logfile), qr/FATAL:  could not find free replication state slot/, 'without room a standby shuts down at the first id');
# Forgets the process that is no more.
$standby->stop('fast', fail_ok => 1);
$standby->_update_pid(0) if defined $standby->{_pid};
start_standby($setting => 2);
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));
is($standby->stat('reserved_until'), $primary->stat('reserved_until'), 'with room it follows again');

# Another layout than the limit's.
$standby->stop;
start_standby('snowflake.layout' => 'twitter epoch:2020-01-01');
like(problems_of_standby(), qr/^its reserved time was made in another layout, with the epoch 2010-11-04 \S+, the tick 00:00:00.001 and 22 bits below the timestamp: see snowflake_accept_layout\(\)$/m,
	'another layout: a problem');
$standby->stop;
start_standby('snowflake.layout' => undef);
unlike(problems_of_standby(), qr/reserved time/, 'the same layout: no problem');

# Forgetting the limit: not while ids can be made, nor on a standby.
sub origins
{
	my ($server) = @_;

	return $server->value('count(*) FROM pg_replication_origin_status');
}

$primary->refuses('SELECT snowflake_forget_limit()', qr/cannot forget the limit of snowflake ids while the library is loaded/, 'forgotten while the library is loaded');
is(origins($primary), 2, 'what is refused forgets nothing');
$primary->configure('shared_preload_libraries' => '');
$primary->restart;
$primary->safe_psql('postgres', 'CREATE ROLE visitor; GRANT EXECUTE ON FUNCTION snowflake_forget_limit() TO visitor');
$primary->refuses('SET ROLE visitor; SELECT snowflake_forget_limit()', qr/permission denied/, 'forgotten by an ordinary user');
$primary->safe_psql('postgres', 'SELECT snowflake_forget_limit()');
is(origins($primary), 0, 'the limit is forgotten');
is($primary->value('count(*) FROM pg_replication_origin'), 0, 'no row is left');
$primary->safe_psql('postgres', 'SELECT snowflake_forget_limit(); DROP EXTENSION snowflake CASCADE');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));
is(origins($standby), 0, 'it is forgotten on a standby, too');
foreach my $mode ('immediate', 'fast')
{
	$primary->restart($mode);
	is(origins($primary), 0, "and stays so after a stop, $mode");
}

$primary->{ledger}->check('a standby that went down');
done_testing();
