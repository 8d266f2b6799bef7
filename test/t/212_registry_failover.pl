# Holders of claims that die, standbys that are promoted beside a primary that
# lives, and clocks that are set: with a registry, no id twice.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Holder;
use Snowflake::Ledger;
use Snowflake::Registry;
use Test::More;

my $ledger = Snowflake::Ledger->new;
my $registry = Snowflake::Registry->new('registry');

$registry->init;
$registry->start;

my %new = (registry => $registry, ledger => $ledger);
my $primary = Snowflake::Holder->new('primary', %new);

$primary->set_clock(0);
$primary->init(allows_streaming => 1);
$primary->configure('snowflake.node_id' => 7);
$primary->begin;

# Two standbys of a primary that clients write to: one is to have the same number, one any.
sub new_standby
{
	my ($name, %settings) = @_;
	my $standby = $primary->copy($name, has_streaming => 1);

	$standby->set_clock(0);
	$standby->configure(%settings);
	$standby->start;
	return $standby;
}

$primary->start_clients(qw(single batch));
$primary->wait_for_clients(4096);

my $same = new_standby('same');
my $other = new_standby('other', 'snowflake.node_id' => 'auto');

is($same->stat('claim'), 'none', 'a standby has no claim');
$_->promote foreach $same, $other;
$_->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') foreach $same, $other;
isnt($other->held, 7, 'promoted beside the living primary, auto: another number');
$other->start_clients(qw(single batch));
$same->refused_for($primary, 'promoted beside the living primary, fixed number');
$primary->goes_on;
$other->goes_on;
is($same->stat('ids'), 0, 'the promoted standby has made no id');

# A server has number 7, from a time on that its clock has not reached.
sub gets_later
{
	my ($server, $name) = @_;

	ok($server->poll_query_until('postgres', q{SELECT node_id = 7 AND claim = 'suspended' AND problem ~ 'clock' FROM snowflake_stat}), $name);
	return;
}

# The primary's postmaster is killed while a session makes ids as fast as it can, which goes on without it for a while.
$primary->finish_clients;
$primary->start_clients(qw(stream single));
$primary->wait_for_clients(4096);
$primary->kill9;
$same->{line} = $primary->{line};
is($same->held, 7, 'the primary has died: the promoted standby has its number');
$primary->finish_clients;
$same->take_in_the_end(1000);
$other->finish_clients;
$other->stop;

# The holder dies; a new server, which knows nothing, with its clock behind, wants its number.
my $behind = Snowflake::Holder->new('behind', %new);

$behind->{line} = $primary->{line};
$behind->set_clock(0);
$behind->init;
$behind->configure('snowflake.node_id' => 7);
$behind->begin;
$behind->restart_keeper;
$behind->set_clock(-60);
$behind->refused_for($same, 'a new server wants the number of another');
# It is to be seen that the claim outlives its holder.
$same->reconfigure('snowflake.claim_window' => '15s');
$registry->wait_for_claim(7, "alive_until - clock_timestamp() > interval '10 s'");
$same->start_clients(qw(single batch));
$same->wait_for_clients(4096);
$same->stop('immediate');
$behind->refused_for($same, 'the other has died');
$same->finish_clients;
gets_later($behind, 'it gets the number when the claim is over');
$behind->refuses('SELECT snowflake_nextval()', qr/clock is behind the snowflake ids.*the registry granted the time up to .* before.*does not help/s, 'with the clock behind');
is($behind->stat('ids'), 0, 'with the clock behind: no ids');
$behind->set_clock(0);
$behind->take_in_the_end(1000);

# The old holder comes back, as it was.
$same->start;
$same->restart_keeper;
$same->refused_for($behind, 'the old holder comes back');

# Clocks that are set while clients write: forward, within the time that is granted and past it; and back.
$behind->start_clients(qw(single batch));
$behind->wait_for_clients(4096);

my $since = $registry->claim(7, 'since');

foreach my $step (1, -1, 8, -1, 30)
{
	my $newest = $behind->stat('last_timestamp');

	$behind->step_clock($step);
	$behind->poll_query_until('postgres', "SELECT last_timestamp > '$newest'::timestamptz + interval '$step s' FROM snowflake_stat")
	  or die "no ids after the clock was set by $step s";
	$behind->goes_on;
	is($registry->claim(7, 'since'), $since, "the clock was set by $step s: the same claim goes on");
}
$behind->finish_clients;

# It gives the number back; the ids of the next begin above, as soon as its clock is there.
$behind->stop;
gets_later($same, 'the next has the number');
$same->refuses('SELECT snowflake_nextval()', qr/clock is behind the snowflake ids/, 'above the ids of a clock that was ahead');
$same->step_clock($behind->{clock});
$same->take_in_the_end(1000);

$ledger->check('failover');
done_testing();
