# What a registry grants, and what it keeps through faults: one layout for a group, a
# fence that follows ids and not a wrong clock, numbers whose fence does not lie ahead, a
# claim that outlives a backend's crash, a restart that forgets nothing, a claim that its
# registry's owner has taken away.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Holder;
use Snowflake::Ledger;
use Snowflake::Proxy;
use Snowflake::Registry;
use Test::More;

my $ledger = Snowflake::Ledger->new;
my $registry = Snowflake::Registry->new('registry');

$registry->init;
$registry->start;

my $proxy = Snowflake::Proxy->new($registry->host, $registry->port);
my ($one, $two) = map { Snowflake::Holder->new($_, registry => $registry, ledger => $ledger) } qw(one two);

$_->set_clock(0) foreach $one, $two;
$one->init(allows_streaming => 1);
$two->init;
$one->configure('snowflake.node_id' => 7, 'snowflake.layout' => 'game');

#
# One layout for a group.
#

$one->begin;
is($one->held, 7, 'a number is held');
$one->take(100);
is($registry->value(q{layout = (snowflake_layout('game')).spec FROM snowflake_internal.registry_group WHERE registry_group = 'default'}), 't', 'the group has its layout');
$two->configure('snowflake.node_id' => 8, 'snowflake.layout' => 'game epoch:2025-01-01T00:00:15Z');
$two->begin;
$two->refused_in_the_end(qr/its group has the layout "timestamp:38 server:20 sequence:5 tick:10ms epoch:2025-01-01", this server "timestamp:38 server:20 sequence:5 tick:10ms epoch:2025-01-01T00:00:15Z"/,
	'another layout in the group');
is($registry->claim(8, 'count(*)'), 0, 'another layout in the group: no claim');
$registry->command_fails_like([ 'psql', '-XAtq', '-d', $registry->connstr('postgres') . ' user=keeper', '-c',
	q{SELECT snowflake_internal.registry_write('default', 8, 'claim', incarnation, 0, 1, repeat('5', 32), 'other', '', 0, '', clock, clock, '1s')
	  FROM snowflake_internal.registry_read('default', 8, repeat('5', 32), '1s')} ],
	qr/layout does not match that of the snowflake registry's group\n.*DETAIL: .*Group "default" has the layout "timestamp:38 .*", not "other"/, 'nor by a server that does not look');
$two->stop;
$two->configure('snowflake.registry_group' => 'another');
$two->start;
is($two->held, 8, 'another layout in another group');
$two->stop;
$two->configure('snowflake.registry_group' => 'default', 'snowflake.layout' => 'game', 'snowflake.node_id' => 'auto');

#
# A wrong clock, by which no id is made, leaves no trace in the registry.
#

$one->restart_keeper;
$one->held;

my $generation = $registry->claim(7, 'generation');

$one->set_clock(3000);
$registry->wait_for_claim(7, "generation > $generation + 3");
is($registry->claim(7, q{granted_until < clock_timestamp() + interval '1 min'}), 't', 'a clock that is ahead: the fence is not');
$one->set_clock(0);
$one->take(10);

# What ids need by that clock is granted, as far as the registry allows.
$one->set_clock(30);
$one->take(10);
is($registry->claim(7, q{granted_until > clock_timestamp() + interval '20 s'}), 't', 'ids by a clock that is ahead: the fence follows them');
$one->stop;

#
# auto: a number whose fence lies ahead is the last that is chosen.
#

is($registry->claim(7, q{state, granted_until > clock_timestamp()}), 'free|t', 'a number whose fence lies ahead');
$two->configure('snowflake.registry_group' => 'few', 'snowflake.layout' => 'timestamp:38 server:1 sequence:5 tick:10ms epoch:2025-01-01');
$two->start;
is($two->held, 0, 'auto: the first number');
$two->set_clock(60);
$two->safe_psql('postgres', 'SELECT snowflake_nextval()');
$two->stop;
$two->set_clock(0);
$two->start;
is($two->held, 1, 'auto: the number that was never used');
$two->stop;
is($registry->value(q{bool_and(state = 'free') AND min(granted_until) < clock_timestamp() AND max(granted_until) FILTER (WHERE node = 0) > clock_timestamp()
	FROM snowflake_claims WHERE registry_group = 'few'}), 't', 'two numbers, the one that was freed first with its fence ahead');
$two->start;
is($two->held, 1, 'auto: the number whose fence does not lie ahead');
$two->stop;
$two->configure('snowflake.registry_group' => undef, 'snowflake.layout' => 'game');

#
# A backend is killed: the server is the same holder, and needs not even the registry to go on.
#

$one->set_clock(0);
$one->configure('snowflake.max_drift' => '60s', 'snowflake.claim_window' => '60s',
	'snowflake.registry' => $registry->address(host => '127.0.0.1', port => $proxy->port));
$one->start;
is($one->held, 7, 'before a backend is killed: a claim');
$one->start_clients(qw(single batch));
$one->wait_for_clients(4096);

sub kill_a_backend
{
	$one->crash($one->value(q{pid FROM pg_stat_activity WHERE application_name = 'client' LIMIT 1}));
	$one->finish_clients;
	return;
}

my $claim = $registry->claim(7, 'since');

$proxy->refuse;
$proxy->cut;
kill_a_backend();
$one->take_in_the_end(1000);
is($one->stat('node_id'), 7, 'a backend was killed while the registry is away: ids go on');
$proxy->accept;
$one->wait_for_state('held');
is($registry->claim(7, 'since'), $claim, 'the same claim goes on');
$one->start_clients(qw(single batch));
$one->wait_for_clients(4096);
kill_a_backend();
$one->take_in_the_end(1000);
is($registry->claim(7, 'since'), $claim, 'a backend was killed beside its registry: the same claim goes on');
$one->stop;
is($registry->claim(7, 'state'), 'free', 'and it is given back');

# Not one that was given back before.
$one->start;
$one->held;
$one->restart_keeper;
$one->held;
$one->start_clients('single');
$one->wait_for_clients(100);
kill_a_backend();
$one->take_in_the_end(1000);
$one->stop;

#
# A registry that was only started again has lost nothing: whoever is overdue goes on at once.
#

$one->configure('snowflake.claim_window' => '2s', 'snowflake.max_drift' => '0');
foreach my $mode (qw(fast immediate))
{
	$one->start;
	is($one->held, 7, "the registry is stopped ($mode): a claim");
	$one->take_in_the_end(10);
	$registry->stop($mode);
	$one->wait_for_state('lost');
	$registry->start;
	is($registry->unsettled_for, 0, "the registry is started again ($mode): it has nothing to wait for");
	$one->wait_for_state('held');
	$one->take_in_the_end(10);
	$one->stop;
}

#
# A number whose fence a wrong clock has moved ahead, without an id there: its registry's owner sets it back, but not under a
# holder, which would go on by what it was granted.
#

$one->configure('snowflake.node_id' => 7, 'snowflake.max_wait' => '2s');
$one->start;
$one->held;
$one->{line} = 'one again';
$one->take_in_the_end(100);
$registry->command_fails_like([ 'psql', '-XAtq', '-d', $registry->connstr('postgres'), '-c', q{SELECT snowflake_registry_repair('default', 7, '2025-01-02')} ],
	qr/cannot repair the claim of a living holder\n.*DETAIL: .*Node number 7 of group "default" is held by .*, which counts as alive until .*HINT: .*Stop that server first/s,
	'no repair under a living holder');
$one->take(100);
$one->stop;
$registry->safe_psql('postgres', q{UPDATE snowflake_internal.registry_claim SET granted_until = now() + interval '50 min' WHERE node = 7 AND registry_group = 'default'});
$one->start;
$one->wait_for_state('suspended');
$one->refuses('SELECT snowflake_nextval()', qr/clock is behind the snowflake ids\n.*HINT: .*snowflake_registry_repair\(\) while this server is stopped/s, 'a fence far ahead');
$one->stop;
$registry->safe_psql('postgres', q{SELECT snowflake_registry_repair('default', 7, now())});
$one->start;
$one->held;
$one->take_in_the_end(100);
$one->stop;

# Generations that somebody has used up.
$registry->safe_psql('postgres', q{UPDATE snowflake_internal.registry_claim SET generation = 9223372036854775807 WHERE node = 7 AND registry_group = 'default';
	SELECT snowflake_registry_repair('default', 7, granted_until) FROM snowflake_claims WHERE node = 7 AND registry_group = 'default'});
$one->start;
$one->held;
$one->take_in_the_end(100);

#
# What a server was told to pass, and what it made before it had a registry, its number's next holder passes too.
#

$one->stop;
$one->configure('snowflake.claim_window' => '60s');
$one->start;
$one->held;

sub passed
{
	my ($server) = @_;
	my $past = $server->value("date_trunc('second', clock_timestamp()) + interval '20 s'");

	$server->safe_psql('postgres', "SELECT snowflake_advance_past(snowflake_encode('$past', 7, 0))");
	return $past;
}

my $past = passed($one);
$one->stop;
is($registry->claim(7, "state, granted_until > '$past'"), 'free|t', 'what was to be passed is passed by the next holder');
$registry->safe_psql('postgres', q{DELETE FROM snowflake_internal.registry_claim WHERE node = 7 AND registry_group = 'default'});
$one->configure('snowflake.registry' => undef);
$one->start;
$past = passed($one);
$one->stop;
$registry->settle;
$one->configure('snowflake.registry' => $registry->address);
$one->start;
is($one->held, 7, 'a server with a past gets its number');
$one->stop;
is($registry->claim(7, "state, granted_until > '$past'"), 'free|t', 'what it made without a registry is passed by the next holder');

$ledger->check('a registry\'s rules');
done_testing();
