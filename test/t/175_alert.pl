# The query for an alert in doc/operations.md: true where ids can't be had, or soon can't, and on no standby.  And the
# SQLSTATEs of the tables in doc/clocks.md.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Documentation qw(sql_like);
use Snowflake::Holder;
use Snowflake::Registry;
use Snowflake::Server;
use Test::More;

my $alert = sql_like('doc/operations.md', qr/^SELECT NOT pg_is_in_recovery/);

sub alerts
{
	my ($server, $expected, $name) = @_;

	is($server->safe_psql('postgres', $alert), $expected ? 't' : 'f', ($expected ? 'alert: ' : 'no alert: ') . $name);
	return;
}

# The error's SQLSTATE and message.
sub refused
{
	my ($server, $pattern, $name) = @_;

	$server->refuses("\\set VERBOSITY verbose\nSELECT snowflake_nextval()", $pattern, $name);
	return;
}

# The column that says why the next call is refused, and what it says then.
sub refused_for
{
	my ($server, $problem, $pattern) = @_;

	is($server->stat('refusal'), $problem, "refused: $problem");
	alerts($server, 1, $problem);
	refused($server, $pattern, $problem);
	is($server->stat('refusal'), $problem, "still: $problem");
	return;
}

my $primary = Snowflake::Server->new('primary');

$primary->set_clock(0);
$primary->init(allows_streaming => 1);
$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION snowflake');
alerts($primary, 0, 'no id yet');
$primary->take(10);
alerts($primary, 0, 'ids can be had');
is($primary->stat('claim_since IS NULL AND granted_until IS NULL AND problem IS NULL AND refusal IS NULL'), 't', 'no registry, no claim from one');
$primary->backup('first');

my $standby = Snowflake::Server->new('standby');

$standby->set_clock(0);
$standby->init_from($primary, 'first');
$standby->start;
alerts($standby, 0, 'a standby');
is($standby->stat(q{claim || ' ' || (reserved_ahead IS NOT NULL) || ' ' || (refusal IS NULL)}), 'none true true', 'a standby: as shown');
refused($standby, qr/ERROR:  25006: cannot execute snowflake_nextval\(\) during recovery\n/, 'a standby');
$standby->step_clock(-3600);
alerts($standby, 0, 'a standby with its clock set back');

# Behind, by more than this session would wait.
$primary->step_clock(-3600);
refused_for($primary, 'clock behind', qr/ERROR:  SF001: clock is behind the snowflake ids\n/);
is($primary->safe_psql('postgres', q{SET snowflake.max_wait = '2h'; SELECT refusal IS NULL FROM snowflake_stat}), 't', 'not for who waits longer');
$primary->restart('immediate');
refused_for($primary, 'clock behind', qr/ERROR:  SF001: clock is behind the snowflake ids\n/);
$primary->step_clock(3600);
is($primary->stat('refusal IS NULL'), 't', 'put right');
alerts($primary, 0, 'put right');
$primary->take(10);

# Ahead.
$primary->step_clock(2 * 3600);
refused_for($primary, 'clock jumped forward', qr/ERROR:  55000: clock jumped forward and is not believed\n/);
$primary->step_clock(-2 * 3600);
alerts($primary, 0, 'put right again');
$primary->step_clock(2 * 3600);
alerts($primary, 1, 'ahead again');
$primary->safe_psql('postgres', 'SELECT snowflake_accept_clock()');
alerts($primary, 0, 'accepted');
$primary->take(10);

# With another layout; where its time has ended, or not begun.
$primary->step_clock(-2 * 3600);
$primary->safe_psql('postgres', q{SELECT snowflake_accept_clock()});
$primary->configure('snowflake.layout' => 'twitter epoch:2010-11-05');
$primary->restart;
refused_for($primary, 'another layout', qr/ERROR:  55000: cannot make snowflake ids in another layout than before\n/);
$primary->restart_with_layout('baidu');
refused_for($primary, 'past the layout', qr/ERROR:  2200H: snowflake layout has no time left\n/);
$primary->restart_with_layout(sprintf 'twitter epoch:%d', 1000 * (time + 30 * 86400));
refused_for($primary, 'before the epoch', qr/ERROR:  55000: cannot make ids before the epoch of the snowflake layout\n/);
$primary->restart_with_layout('twitter');
$primary->wait_for_catchup($standby);
$primary->stop;

# Promoted with the clock behind, then without a number.
$standby->promote;
refused_for($standby, 'clock behind', qr/ERROR:  SF001: clock is behind the snowflake ids\n/);
$standby->configure('snowflake.node_id' => undef);
$standby->restart;
refused_for($standby, 'no node number', qr/ERROR:  55000: cannot make ids without a node number\n/);
$standby->configure('snowflake.node_id' => 1, 'snowflake.layout' => 'node:10 timestamp:41 sequence:12 epoch:2025-01-01');
$standby->restart;
refused_for($standby, 'layout for reading only', qr/ERROR:  55000: cannot make ids with the setting of "snowflake.layout"\n/);
$standby->stop;

# With a registry.
my $registry = Snowflake::Registry->new('registry');

$registry->init;
$registry->start;

my $holder = Snowflake::Holder->new('holder', registry => $registry);
my $other = Snowflake::Holder->new('other', registry => $registry);

$holder->init(allows_streaming => 1);
$holder->configure('snowflake.node_id' => 7);
$holder->begin;
$holder->held;
alerts($holder, 0, 'a claim is held');
$holder->take(10);
is($holder->stat(q{claim_since <= now() AND granted_until > now() AND problem IS NULL}), 't', 'what is granted is shown');
$holder->backup('second');

my $holders_standby = Snowflake::Holder->new('holders_standby', registry => $registry);

$holders_standby->init_from($holder, 'second');
$holders_standby->start;
alerts($holders_standby, 0, 'a standby that is to have a claim');

$other->init;
$other->configure('snowflake.node_id' => 7);
$other->begin;
alerts($other, 1, 'no claim');
refused($other, qr/ERROR:  SF002: cannot make ids: the registry has granted no node number\n/, 'no claim');
$other->poll_query_until('postgres', 'SELECT problem IS NOT NULL FROM snowflake_stat') or die 'the keeper says nothing';
like($other->stat('problem'), qr/^node number 7 is held by /, 'what the keeper says is shown');
$other->safe_psql('postgres', 'CREATE ROLE anybody; CREATE ROLE monitor IN ROLE pg_read_all_settings');
is($other->safe_psql('postgres', 'SET ROLE anybody; SELECT problem IS NULL, claim FROM snowflake_stat'), 't|none', 'but not to everybody');
is($other->safe_psql('postgres', 'SET ROLE monitor; SELECT problem IS NULL FROM snowflake_stat'), 'f', 'to who may see the settings');
# It would take the number when its holder is overdue.
$other->stop;

# Suspended for long enough to be seen.
$holder->reconfigure('snowflake.claim_window' => '15s');
$registry->wait_for_claim(7, q{granted_until > clock_timestamp() + interval '10 s'});
$registry->stop;
$holder->wait_for_state('suspended');
alerts($holder, 1, 'the registry is away');
$holder->wait_for_state('lost');
alerts($holder, 1, 'the claim is lost');
refused($holder, qr/ERROR:  SF002: cannot make ids: the (registry grants the node number no further|claim on the node number is lost)\n/, 'the claim is lost');
is($holder->stat('claim_since >= granted_until AND granted_until < clock_timestamp()'), 't', 'lost since what was granted is over');
$registry->start;
$holder->held;
alerts($holder, 0, 'the registry is back');

done_testing();
