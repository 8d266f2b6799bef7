# What may happen between servers that hold claims and their registry, with
# clients writing all the while: a copy beside its original, a keeper that stands
# still, a registry that is away, a network that is cut, answers that are lost.
#
# Every id is recorded, and in the end none is there twice, over all servers.
# What comes again comes by itself.

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
my %new = (registry => $registry, ledger => $ledger);

# A copy beside its original, any number: two numbers.
my $any = Snowflake::Holder->new('any', %new);

$any->init(allows_streaming => 1);
$any->begin;
$any->start_clients('single');
$any->wait_for_clients(4096);

my $any_copy = $any->copy('any_copy');

$any_copy->begin;
$any_copy->start_clients('single');
$_->wait_for_clients(20_000) foreach $any, $any_copy;
isnt($any_copy->held, $any->held, 'a copy beside its original, auto: another number');

# A fixed number: the copy is refused until the original has given it back.  The original reaches the registry through the proxy.
my $fixed = Snowflake::Holder->new('fixed', %new);

$fixed->init(allows_streaming => 1);
$fixed->configure(
	'snowflake.node_id' => 7,
	'snowflake.registry' => $registry->address(host => '127.0.0.1', port => $proxy->port));
$fixed->begin;
$fixed->start_clients(qw(single batch));
$fixed->wait_for_clients(4096);

my $fixed_copy = $fixed->copy('fixed_copy');

$fixed_copy->configure('snowflake.registry' => $registry->address);
$fixed_copy->start;
$fixed_copy->refused_for($fixed, 'a copy beside its original, fixed number');
$fixed->wait_for_clients(20_000);
is($fixed->held, 7, 'the original goes on');
is($fixed_copy->stat('ids'), 0, 'the copy has made no id');
$fixed->finish_clients;
$_->{line} = 'number 7' foreach $fixed, $fixed_copy;
$fixed->take(1000);
$fixed->stop;
is($fixed_copy->held, 7, 'the copy has the number when the original has given it back');
$fixed_copy->take(1000);
$fixed->start;
$fixed->refused_for($fixed_copy, 'the original beside its copy');
$fixed_copy->stop;
is($fixed->held, 7, 'the original has it again');
$fixed->take(1000);

# The keeper stands still for a moment: the same claim goes on.
$fixed->{line} = 'fixed';
$fixed_copy->{line} = 'fixed_copy';
$fixed->start_clients(qw(single batch));
$fixed->wait_for_clients(4096);

my $since = $registry->claim(7, 'since');
my $generation = $registry->claim(7, 'generation');
my $keeper = $fixed->keeper;

kill 'STOP', $keeper;
$registry->wait_for_claim(7, "alive_until - clock_timestamp() < interval '1.5 s'");
kill 'CONT', $keeper;
$registry->wait_for_claim(7, "generation > $generation + 1");
$fixed->goes_on;
is($registry->claim(7, 'since'), $since, 'the keeper stood still for a moment: the same claim goes on');

# Another takes the number while its holder, whose ids are over, does not know.
sub taken_by_the_copy
{
	my ($why, $end) = @_;
	my $granted_until = $registry->claim(7, 'granted_until');

	$fixed_copy->start;
	is($fixed_copy->held, 7, "$why: another has its number");
	$fixed_copy->start_clients(qw(single batch));
	$fixed_copy->wait_for_clients(4096);
	$end->();
	$fixed->refused_for($fixed_copy, "$why, and is over");
	is($fixed->stat('claim'), 'lost', "$why, and is over: the claim is lost");
	$fixed_copy->goes_on;
	is($fixed_copy->held, 7, "$why, and is over: the other goes on");
	is($fixed->stat("last_timestamp < '$granted_until'"), 't', "$why: no id from granted_until on");
	is($fixed_copy->value("snowflake_timestamp(@{[ $fixed_copy->first_of_clients ]}) >= '$granted_until'"), 't', "$why: the other begins there");
	$fixed_copy->finish_clients;
	$fixed_copy->stop;
	$fixed->goes_on;
	return;
}

# The keeper stands still for longer than the claim.
kill 'STOP', $keeper;
$fixed->wait_for_state('lost');
$fixed->refuses('SELECT snowflake_nextval()',
	qr/registry grants the node number no further\n.*node number 7, granted until .*claim "lost" since \d{4}-[^;]*: it has not answered in time/s, 'the keeper stands still');
taken_by_the_copy('the keeper stands still', sub { kill 'CONT', $keeper });

# The registry is away: ids go on up to granted_until, and come again with it.
my @holders = ($fixed, $any, $any_copy);
my (%number, %since, %log);

foreach my $holder (@holders)
{
	my $number = $number{$holder} = $holder->held;

	$holder->reconfigure('snowflake.claim_window' => '15s');
	$registry->wait_for_claim($number, "granted_until - clock_timestamp() > interval '10 s'");
	$since{$holder} = $registry->claim($number, 'since');
	$log{$holder} = $holder->log_position;
}
$registry->stop('immediate');

my $stopped = $fixed->value('clock_timestamp()');

$_->wait_for_log(qr/claim on the snowflake node number is suspended\n.*DETAIL: .*Ids can be made up to/, $log{$_}) foreach @holders;
foreach my $holder (@holders)
{
	my $name = $holder->name . ' without the registry';

	$holder->wait_for_state('lost');
	$holder->refuses('SELECT snowflake_nextval()', qr/registry grants the node number no further\n.*node number \d+, granted until .*claim "lost" since \d{4}-/s, $name);
	is($holder->stat("last_timestamp > '$stopped'"), 't', "$name: ids went on");
}
$registry->start;
foreach my $holder (@holders)
{
	my $name = $holder->name . ' with the registry again';

	$holder->goes_on;
	is($holder->stat('node_id'), $number{$holder}, "$name: the same number");
	is($registry->claim($number{$holder}, 'since'), $since{$holder}, "$name: the same claim");
}
$_->finish_clients foreach $any, $any_copy;

# The network is cut for longer than the claim.  What was sent arrives afterwards.
$fixed->reconfigure('snowflake.claim_window' => '3s');
$proxy->stop_passing;
$fixed->wait_for_state('lost');
taken_by_the_copy('the network is cut', sub { $proxy->pass_again });

# Nobody else wants the number: the same claim goes on.
$since = $registry->claim(7, 'since');
$proxy->stop_passing;
$fixed->wait_for_state('lost');
$proxy->pass_again;
$fixed->goes_on;
is($registry->claim(7, 'since'), $since, 'the network was cut: the same claim goes on');

# Holds back what is written in the registry until a server waits there to write its claim, and then the answers: what it
# writes changes this value.  The registry ends what waits for long, so this may take more than one attempt.
sub lose_answer
{
	my ($lock, $value, $begin) = @_;
	my $keepers = q{FROM pg_stat_activity WHERE application_name = 'snowflake keeper'};
	my $before;

	do
	{
		my $session = $registry->background_psql('postgres', on_error_stop => 0);

		$session->query("BEGIN; $lock");
		$before = $registry->value($value);
		$proxy->pass_again;
		$begin->() if $begin;
		$begin = undef;
		$registry->poll_query_until('postgres', "SELECT count(*) > 0 $keepers AND wait_event_type = 'Lock'") or die 'no claim was to be written';
		$proxy->stop_passing_answers;
		$session->query('COMMIT');
		$session->quit;
		$registry->poll_query_until('postgres', "SELECT count(*) = 0 $keepers AND state = 'active'") or die 'what was to be written waits';
	} while ($registry->value($value) eq $before);
	return;
}

# A renewal is carried out and its answer is lost: the same claim goes on.
foreach my $loss ('its connection', 'the time to wait for it')
{
	lose_answer('SELECT 1 FROM snowflake_internal.registry_claim WHERE node = 7 FOR UPDATE', 'generation FROM snowflake_claims WHERE node = 7');

	my $generation = $registry->claim(7, 'generation');

	$proxy->cut if $loss eq 'its connection';
	$fixed->poll_query_until('postgres', q{SELECT claim <> 'held' FROM snowflake_stat}) or die 'no answer was lost';
	$proxy->pass_again;
	$registry->wait_for_claim(7, "generation > $generation");
	$fixed->goes_on;
	is($registry->claim(7, 'since'), $since, "a renewal's answer is lost with $loss: the same claim goes on");
}
$fixed->finish_clients;

# A grant is carried out and its answer is lost: the number is not lost with it.
$_->stop foreach @holders;
$any->configure('snowflake.registry' => $registry->address(host => '127.0.0.1', port => $proxy->port));
lose_answer('LOCK TABLE snowflake_internal.registry_claim IN SHARE MODE', q{count(*) FROM snowflake_claims WHERE state <> 'free'}, sub { $any->start });
is($any->stat('claim'), 'none', 'a grant whose answer is lost is none');
$proxy->cut;
$proxy->pass_again;
is($any->held, $registry->value(q{node FROM snowflake_claims WHERE state <> 'free'}), "a grant's answer is lost: it has this number");
$any->take_in_the_end(1000);

$ledger->check('faults of servers, registry and network');
done_testing();
