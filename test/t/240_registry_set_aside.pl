# Node numbers that are set aside in a registry for ids that are made at once, as a
# merge makes them: never one that was claimed, and whoever is granted one later
# makes ids above all of them.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Holder;
use Snowflake::Names;
use Snowflake::Proxy;
use Snowflake::Registry;
use Snowflake::Wait qw(wait_until);
use Snowflake::ZooKeeper;
use Sys::Hostname;
use Test::More;

my $registry = Snowflake::Registry->new('registry');

$registry->init;
$registry->start;

my $holder = Snowflake::Holder->new('holder', registry => $registry);
my $later = Snowflake::Holder->new('later', registry => $registry);

$_->init foreach $holder, $later;
# It must not lose its claim on a slow machine; the other is to lose its own.
$holder->configure('snowflake.node_id' => 1, 'snowflake.claim_window' => '5min');
$holder->begin;
$holder->held;

my $shown = 'postgresql://' . Snowflake::Registry::escape($registry->host) . ':' . $registry->port . '/postgres';

# Reserves a number on a server.
sub set_aside
{
	my ($server, $node, $until) = @_;

	return $server->value("snowflake_internal.set_aside($node, '$until')");
}

sub refuses_to_set_aside
{
	my ($server, $node, $until, $pattern, $name) = @_;

	$server->refuses("SELECT snowflake_internal.set_aside($node, '$until')", $pattern, $name);
	return;
}

# A time on the server's clock, to the tick.
sub soon
{
	my ($interval) = @_;

	return $holder->value("date_trunc('milliseconds', clock_timestamp() + interval '$interval')");
}

# Settings of a server that runs take a restart.
sub start_anew
{
	my ($server, %settings) = @_;

	$server->stop;
	$server->configure(%settings);
	$server->begin;
	return;
}

#
# A number that nobody ever claimed.
#

my $until = soon('20 s');

is(set_aside($holder, 50, '-infinity'), 't', 'a number that nobody had can be set aside');
is($registry->claim(50, 'count(*)'), 0, 'to ask is not to set aside');
is(set_aside($holder, 50, $until), 't', 'it is set aside');

my $set_aside = $registry->claim(50, 'registry_group, state, granted_until, generation, host, port, data_directory');

is($set_aside, join('|', 'default', 'free', $until, 1, hostname(), $holder->port, $holder->data_dir), 'the registry shows it: nobody holds it, up to when, and who set it aside');
is(set_aside($holder, 50, $until), 't', 'a call that is repeated');
is($registry->claim(50, 'registry_group, state, granted_until, generation, host, port, data_directory'), $set_aside, 'changes nothing');
is($holder->value(q{snowflake_internal.set_aside(50, NULL) IS NULL}), 't', 'no time, nothing set aside');

# Also in a transaction that is rolled back; and times before all ids.
$holder->safe_psql('postgres', "BEGIN; SELECT snowflake_internal.set_aside(51, '1900-01-01'); ROLLBACK");
is($registry->claim(51, 'state, granted_until = to_timestamp(0)'), 'free|t', 'a rollback does not take it back');

# As doc/registry.md has it: numbers that were used before there was a registry.
$holder->safe_psql('postgres', q{SET client_min_messages = error; CREATE EXTENSION snowflake_migrate CASCADE; INSERT INTO snowflake_migrate.nodes VALUES (90, 1, 'west');
	INSERT INTO snowflake_migrate.backfills (node, relation, until) VALUES (91, 'history', now())});
is($holder->safe_psql('postgres', q{SELECT node, snowflake_internal.set_aside(node, now()) FROM (SELECT node FROM snowflake_migrate.nodes UNION SELECT node FROM snowflake_migrate.backfills) AS used ORDER BY node}),
	"90|t\n91|t", 'numbers of merges and backfills are set aside');
is(join(' ', map { $registry->claim($_, 'state') } 90, 91), 'free free', 'the registry has them');
$holder->safe_psql('postgres', 'DROP EXTENSION snowflake_migrate');

my $set_aside_detail = qr/DETAIL: .*Registry "\Q$shown\E", group "default": set aside by \S+:@{[ $holder->port ]}, \Q${\ $holder->data_dir }\E, up to 20\d\d-.*\.\nHINT: .*never used/;

refuses_to_set_aside($holder, 50, soon('21 s'), qr/ERROR: .*node number 50 was claimed in the registry\n$set_aside_detail/, 'up to another time');
refuses_to_set_aside($holder, 50, '-infinity', qr/ERROR: .*node number 50 was claimed in the registry\n$set_aside_detail/, 'a number that is set aside can be set aside no more');

# Whoever is granted it later makes ids above all of that.
$later->configure('snowflake.node_id' => 50, 'snowflake.max_drift' => '1min');
$later->begin;
$later->held;
my ($id) = $later->take(1);
is($later->value("snowflake_node($id) || ' ' || (snowflake_timestamp($id) >= '$until')"), '50 true', 'a later holder makes ids above what was set aside');

refuses_to_set_aside($holder, 50, $until, qr/node number 50 was claimed in the registry\nDETAIL: .*: held by \S+:@{[ $later->port ]}, \Q${\ $later->data_dir }\E, up to 20\d\d-/, 'a number that is held');
$later->stop('immediate');
$registry->wait_for_claim(50, q{state = 'expired'});
refuses_to_set_aside($holder, 50, $until, qr/node number 50 was claimed in the registry\nDETAIL: .*: last held by \S+:@{[ $later->port ]}, /, 'a number whose holder is dead');
$later->start;
$later->held;
$later->stop;
is($registry->claim(50, 'state'), 'free', 'the number was given back');
refuses_to_set_aside($holder, 50, $registry->claim(50, 'granted_until'), qr/node number 50 was claimed in the registry\nDETAIL: .*: ids were made with it up to 20\d\d-/, 'a number that was held once');
refuses_to_set_aside($holder, 1, $until, qr/node number 1 was claimed in the registry\nDETAIL: .*: held by \S+:@{[ $holder->port ]}, /, 'the number of the server itself');
is($holder->stat('claim'), 'held', 'the server keeps its own');
$holder->take(10);

# What can't be.
refuses_to_set_aside($holder, 52, soon('2 h'), qr/could not set aside node number 52\nDETAIL: .*it grants time at most \S+ ahead of its clock, which reads /, 'too far ahead');
refuses_to_set_aside($holder, 52, 'infinity', qr/could not set aside node number 52\nDETAIL: .*it grants time at most \S+ ahead of its clock/, 'for ever');
refuses_to_set_aside($holder, -1, $until, qr/node number -1 is out of range\nDETAIL: .*from 0 to 1023/, 'no node number');
refuses_to_set_aside($holder, 1024, $until, qr/node number 1024 is out of range/, 'a number that the layout has no room for');
is($registry->value('count(*) FROM snowflake_claims WHERE node NOT IN (1, 50, 51, 90, 91)'), 0, 'what is refused leaves nothing');

$holder->safe_psql('postgres', 'CREATE ROLE somebody');
my (undef, undef, $error) = $holder->psql('postgres', "SET ROLE somebody; SELECT snowflake_internal.set_aside(52, '$until')");
like($error, qr/permission denied for function set_aside/, 'not for everybody');
$holder->safe_psql('postgres', "GRANT EXECUTE ON FUNCTION snowflake_internal.set_aside TO somebody; SET ROLE somebody; SELECT snowflake_internal.set_aside(52, '$until')");
is($registry->claim(52, 'granted_until'), $until, 'but for who has the right, and may not read the setting');

# Each call has a connection of its own, which does not stay.
is($holder->value('count(*) FILTER (WHERE snowflake_internal.set_aside(n, clock_timestamp())) FROM generate_series(100, 119) AS n'), 20, 'many in one statement');
is($registry->value('count(*) FROM snowflake_claims WHERE node BETWEEN 100 AND 119'), 20, 'and they are there');
$registry->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE usename = 'keeper'}) or die 'connections stay';
pass('no connection stays but the keeper\'s');

# Of two that want the same number one has it.
my @racers = map { $holder->start_call("racer$_", "SELECT count(snowflake_internal.set_aside(n, now())) FROM generate_series(200, 230) AS n") } 1, 2;
my $failed = 0;

foreach my $racer (@racers)
{
	$racer->{run}->finish;
	$failed++ if $racer->{err} =~ /node number 2\d\d was claimed/;
	unlike($racer->{err}, qr/could not/, 'a race: won or lost, and no other error');
}
is($failed, 1, 'a race: one of two has a number');

#
# Merges.
#

# Two realms and what becomes of them; the rows of one are older.
$holder->safe_psql('postgres', q{
	CREATE EXTENSION snowflake_migrate;
	CREATE SCHEMA realm;
	CREATE SCHEMA east;
	CREATE SCHEMA west;
	CREATE TABLE realm.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
	CREATE TABLE realm.items (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), player_id bigint REFERENCES realm.players);
	CREATE TABLE east.players (id int PRIMARY KEY, name text);
	CREATE TABLE west.players (id int PRIMARY KEY, name text);
	CREATE TABLE east.items (id int PRIMARY KEY, player_id int);
	CREATE TABLE west.items (id int PRIMARY KEY, player_id int);
	INSERT INTO east.items VALUES (1, 5000);
	INSERT INTO realm.players (name) VALUES ('here');
	INSERT INTO east.players SELECT n, 'east ' || n FROM generate_series(1, 5000) AS n;
	INSERT INTO west.players SELECT n, 'west ' || n FROM generate_series(1, 10) AS n});

sub merges
{
	my ($nodes, $dry_run) = @_;

	return "CALL snowflake_migrate.merge(ARRAY['east', 'west'], 'realm', ARRAY[$nodes], dry_run => " . ($dry_run ? 'true' : 'false') . ')';
}

my $left = 'count(*) FROM snowflake_claims WHERE node BETWEEN 300 AND 400';

$holder->refuses(merges('300, 50'), qr/ERROR: .*node number 50 was claimed in the registry\nDETAIL: .*: ids were made with it up to /, 'a merge with a number that was claimed');
is($holder->value('(SELECT count(*) FROM realm.players) || \' \' || (SELECT count(*) FROM snowflake_migrate.runs) || \' \' || (SELECT count(*) FROM snowflake_migrate.nodes)'),
	'1 0 0', 'leaves nothing');
is($registry->value($left), 0, 'in the registry either');

$holder->safe_psql('postgres', merges('300, 301', 1));
is($registry->value($left), 0, 'a dry run sets nothing aside');
$holder->refuses(merges('300, 50', 1), qr/node number 50 was claimed in the registry/, 'but it says what could not be');

$holder->safe_psql('postgres', merges('300, 301'));
is($holder->value('count(*) FROM realm.players'), 5011, 'a merge with numbers that nobody had');
foreach my $node (300, 301)
{
	my $newest = $holder->value("max(id) FROM realm.players WHERE snowflake_node(id) = $node");
	my $fence = $registry->claim($node, 'granted_until');

	is($registry->claim($node, 'state, generation'), 'free|1', "the merge has set $node aside");
	is($holder->value("'$fence' >= snowflake_timestamp($newest) + interval '1 ms' AND '$fence' < clock_timestamp() AND '$fence' >= started_at FROM snowflake_migrate.runs WHERE state = 'done'"),
		't', "up to above its newest id of $node");
}
refuses_to_set_aside($holder, 300, '-infinity', qr/node number 300 was claimed/, 'for ever');
$later->configure('snowflake.node_id' => 300);
$later->start;
$later->held;
($id) = $later->take(1);
cmp_ok($id, '>', $holder->value('max(id) FROM realm.players WHERE snowflake_node(id) = 300'), 'who has the number later makes ids above those of the merge');
$later->stop;

# What ends before it is complete sets nothing aside.
$holder->safe_psql('postgres', q{
	CREATE SCHEMA north;
	CREATE TABLE north.players (id int PRIMARY KEY, nickname text);
	CREATE TABLE north.items (id int PRIMARY KEY, player_id int);
	INSERT INTO north.players VALUES (1, 'north 1')});
# Ids of past times: by a number that is set aside before the first is made.
$holder->safe_psql('postgres', q{CREATE TABLE history AS SELECT NULL::bigint AS id, now() - interval '1 day' AS at FROM generate_series(1, 5000)});
$holder->refuses(q{CALL snowflake_migrate.backfill('history', 'id', 'at', 50)}, qr/node number 50 was claimed in the registry/, 'a number that was claimed');
is($holder->value('count(*) FROM snowflake_migrate.backfills'), 0, 'and no record of it');
$holder->safe_psql('postgres', q{CALL snowflake_migrate.backfill('history', 'id', 'at', 310)});
is($registry->claim(310, 'state, generation'), 'free|1', 'ids of past times have set their number aside');
is($holder->value(q{max(snowflake_timestamp(id)) < '} . $registry->claim(310, 'granted_until') . q{' FROM history}), 't', 'up to behind the newest of them');
$holder->refuses(q{BEGIN; CALL snowflake_migrate.backfill('history', 'id', 'at', 311)}, qr/invalid transaction termination/, 'in a transaction block, it does nothing');
is($registry->claim(311, 'count(*)'), 0, 'nor does it ask the registry');

$holder->refuses(q{CALL snowflake_migrate.merge(ARRAY['north'], 'realm', ARRAY[302])}, qr/cannot merge the schemas as they are/, 'a merge that is refused');
is($registry->claim(302, 'count(*)'), 0, 'sets nothing aside');

is($registry->value("snowflake_internal.set_aside(50, '$until')"), 'f', 'a server that has no registry sets nothing aside');

#
# A registry that does not answer.
#

# A number that is set aside while the registry does not answer; returns the call when it waits.
sub start_waiting
{
	my ($server, $node, @before) = @_;
	my $call = $server->start_call('waiting', @before, "SELECT snowflake_internal.set_aside($node, '$until')");

	$server->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'waiting' AND wait_event_type = 'Extension'})
	  or die 'it does not wait for the registry';
	return $call;
}

sub ends_with
{
	my ($call, $pattern, $name) = @_;

	$call->{run}->finish;
	like($call->{err}, $pattern, $name);
	return;
}

# Ends the call in each way in which a backend can be told to, and by its own limit.
sub check_interrupts
{
	my ($server, $why) = @_;
	my %ways = ('pg_cancel_backend' => qr/ERROR: .*canceling statement due to user request/,
		'pg_terminate_backend' => qr/FATAL: .*terminating connection due to administrator command/);

	foreach my $way (sort keys %ways)
	{
		my $call = start_waiting($server, 60);

		$server->safe_psql('postgres', "SELECT $way(pid) FROM pg_stat_activity WHERE application_name = 'waiting'");
		ends_with($call, $ways{$way}, "$why: $way");
	}
	ends_with(start_waiting($server, 60, q{SET statement_timeout = '1s'}), qr/ERROR: .*canceling statement due to statement timeout/, "$why: statement_timeout");
	ends_with(start_waiting($server, 60), qr/ERROR: .*could not set aside node number 60\nDETAIL: .*Registry ".*", group ".*": .*\.\n/, "$why: an end all the same");
	return;
}

my $proxy = Snowflake::Proxy->new($registry->host, $registry->port);
my $names = Snowflake::Names->new;

$names->answer('127.0.0.1');
$holder->{environment} = { $names->environment };
start_anew($holder, 'snowflake.registry' => $registry->address(host => 'registry.test', port => $proxy->port), 'snowflake.claim_window' => '30s');
$holder->held;
$until = soon('5 min');
$proxy->stop_passing;
check_interrupts($holder, 'nothing is sent');
$proxy->pass_again;
$proxy->stop_passing_answers;
check_interrupts($holder, 'nothing is answered');
$proxy->pass_again;
$names->answer('silent');
check_interrupts($holder, 'name servers are silent');
$names->wait_for_end;
pass('name servers are silent: no look-up goes on');

# A call ends by itself after 10 s, which a slow machine may need to drop a database: some attempts.
my $is_dropped = 0;

for (my $tries = 5; $tries > 0 && !$is_dropped; $tries--)
{
	$holder->safe_psql('postgres', 'CREATE DATABASE old');

	my $call = start_waiting($holder, 60);

	$holder->safe_psql('postgres', 'DROP DATABASE old');
	$is_dropped = $holder->value(q{count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE application_name = 'waiting'});
	$call->{run}->finish;
}
ok($is_dropped, 'name servers are silent: a database can be dropped meanwhile');
$names->answer('127.0.0.1');
$proxy->refuse;
refuses_to_set_aside($holder, 60, $until, qr/could not set aside node number 60\nDETAIL: .*Connection refused/, 'nobody is there');
$proxy->accept;
$holder->poll_query_until('postgres', "SELECT snowflake_internal.set_aside(60, '$until')") or die 'the number can not be set aside';
pass('a registry that is there again');

# The answer to the write is lost, and the write is carried out all the same, after it was repeated.  (A lock is not waited for long.)
$registry->safe_psql('postgres', q{
	CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN WHILE NOT pg_try_advisory_xact_lock_shared(1) LOOP PERFORM pg_sleep(0.05); END LOOP; RETURN NEW; END';
	CREATE TRIGGER stop BEFORE INSERT ON snowflake_internal.registry_claim FOR EACH ROW WHEN (NEW.node = 61) EXECUTE FUNCTION stop()});

my $stopped = q{SELECT count(*) = %d FROM pg_stat_activity WHERE usename = 'keeper' AND wait_event = 'PgSleep'};
my $lock = $registry->background_psql('postgres');

$lock->query_safe('SELECT pg_advisory_lock(1)');
my $call = start_waiting($holder, 61);
$registry->poll_query_until('postgres', sprintf $stopped, 1) or die 'nothing is written';
$proxy->cut;
$registry->poll_query_until('postgres', sprintf $stopped, 2) or die 'nothing is written again';
$lock->quit;
$call->{run}->finish;
is($call->{out} . $call->{err}, "t\n", 'an answer that is lost: it is set aside all the same');
is($registry->claim(61, 'generation, granted_until'), "1|$until", 'once');

# Its table has another file: it may have forgotten who had what.
$registry->safe_psql('postgres', 'VACUUM FULL snowflake_internal.registry_claim');
refuses_to_set_aside($holder, 62, $until, qr/could not set aside node number 62\nDETAIL: .*it is new, or was restored, failed over or stopped for long, and grants nothing anew for 00:00:/, 'a registry that is not settled');
$holder->stop;

#
# ZooKeeper.
#

SKIP:
{
	my $reason = Snowflake::ZooKeeper->missing_registry;

	skip $reason, 1 if defined $reason;

	my $zookeeper = Snowflake::ZooKeeper->new;

	$zookeeper->start;
	foreach my $server ($holder, $later)
	{
		$server->configure('snowflake.registry' => 'zookeeper://' . $zookeeper->address . '/ids');
	}
	$holder->start;
	$holder->held;
	$until = soon('20 s');

	is(set_aside($holder, 70, '-infinity'), 't', 'ZooKeeper: a number that nobody had can be set aside');
	is(set_aside($holder, 70, $until), 't', 'ZooKeeper: it is set aside');
	is(set_aside($holder, 70, $until), 't', 'ZooKeeper: a call that is repeated');

	wait_until('one session is left', sub { (() = $zookeeper->sessions) == 1 });
	pass('ZooKeeper: no session stays but the keeper\'s');

	my $until_us = $holder->value("(extract(epoch FROM timestamptz '$until') * 1000000)::bigint");

	like($zookeeper->cli('get', '/ids/default/70'), qr/^generation 1\ngranted_until_us $until_us\nsince_us \d+\nnonce \nport @{[ $holder->port ]}\n/m, 'ZooKeeper: what it has');
	refuses_to_set_aside($holder, 70, soon('21 s'), qr/node number 70 was claimed in the registry\nDETAIL: .*: set aside by \S+:@{[ $holder->port ]}, /, 'ZooKeeper: up to another time');
	refuses_to_set_aside($holder, 1, $until, qr/node number 1 was claimed in the registry\nDETAIL: .*: held by \S+:@{[ $holder->port ]}, /, 'ZooKeeper: a number that is held');
	refuses_to_set_aside($holder, 71, soon('2 h'), qr/could not set aside node number 71\nDETAIL: .*it grants time at most \S+ ahead of its clock/, 'ZooKeeper: too far ahead');
	$later->configure('snowflake.node_id' => 70);
	$later->start;
	$later->held;
	($id) = $later->take(1);
	is($later->value("snowflake_node($id) || ' ' || (snowflake_timestamp($id) >= '$until')"), '70 true', 'ZooKeeper: a later holder makes ids above what was set aside');
	$later->stop;

	$zookeeper->suspend;
	check_interrupts($holder, 'ZooKeeper stands still');
	$zookeeper->resume;
	$holder->poll_query_until('postgres', "SELECT snowflake_internal.set_aside(60, '$until')") or die 'the number can not be set aside';
	$zookeeper->kill;
	refuses_to_set_aside($holder, 72, $until, qr/could not set aside node number 72\nDETAIL: .*: could not connect to ZooKeeper's server/, 'ZooKeeper is not there');
	$holder->stop;
}

done_testing();
