# A registry that has forgotten a living holder's claim, and a role that has EXECUTE on its functions and comes before the holder:
# with a transaction that it leaves open, with a claim that it takes back, with a layout of its own.  What the holder may issue the
# registry learns all the same, or it does not settle.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils qw(run_command);
use Snowflake::Holder;
use Snowflake::Ledger;
use Snowflake::Registry;
use Snowflake::Wait qw(wait_until);
use Test::More;

my $ledger = Snowflake::Ledger->new;
my $registry = Snowflake::Registry->new('registry');

$registry->init(allows_streaming => 1);
$registry->configure('max_prepared_transactions' => 5);
$registry->start;
$registry->safe_psql('postgres', q{CREATE ROLE intruder LOGIN;
	GRANT EXECUTE ON FUNCTION snowflake_internal.registry_read, snowflake_internal.registry_list, snowflake_internal.registry_write TO intruder});

my ($one, $two) = map { Snowflake::Holder->new($_, registry => $registry, ledger => $ledger) } qw(one two);

$_->init foreach $one, $two;
$one->configure('snowflake.node_id' => 7, 'snowflake.layout' => 'game', 'snowflake.claim_window' => '60s');
$two->configure('snowflake.node_id' => 7, 'snowflake.layout' => 'game', 'snowflake.claim_window' => '10s');

my $me = '5' x 32;
my $spec = 'timestamp:38 server:20 sequence:5 tick:10ms epoch:2025-01-01';

# What psql prints, or the error.
sub told
{
	my (@statements) = @_;
	my ($out, $err) = run_command([ 'psql', '-XAtq', '-d', $registry->connstr('postgres') . ' user=intruder', map { ('-c', $_) } @statements ]);

	return $err eq '' ? $out : $err;
}

# The intruder's write of what is there.
sub written
{
	my ($node, $form, $until, %given) = @_;
	my $window = $given{window} // '10 min';
	my $layout = $given{layout} // "coalesce(r.layout, '$spec')";

	return qq{SELECT snowflake_internal.registry_write('default', $node, '$form', r.incarnation, coalesce(r.generation, 0), coalesce(r.generation, 0) + 1, '$me',
		$layout, 'elsewhere', 1, '/data', r.clock, $until, interval '$window')
		FROM snowflake_internal.registry_read('default', $node, '$me', '1s') AS r};
}

sub unsettled
{
	return told("SELECT unsettled > 0 FROM snowflake_internal.registry_read('default', 99, '$me', '1s')");
}

# It settles in so many seconds, whatever its holders' windows are.
sub settle_in
{
	my ($seconds) = @_;

	$registry->safe_psql('postgres', qq{UPDATE snowflake_internal.registry_server
		SET settled_at = (snowflake_internal.registry_memory()).boot_clock + $seconds * 1000000,
			others_settled_at = (snowflake_internal.registry_memory()).boot_clock + $seconds * 1000000});
	return;
}

# The registry is as it was at a backup, and its holder can't reach it before resume_keeper().
sub put_back
{
	my ($backup) = @_;

	$one->suspend_keeper;
	$registry->stop('immediate');
	$registry->put_back($backup);
	is(unsettled(), 't', 'the registry is put back: it is unsettled');
	return;
}

$registry->backup('empty');
$one->begin;
is($one->held, 7, 'one holds the number');
$one->take(100);

#
# A transaction that is left open keeps the holder from telling, and the registry from settling.
#

put_back('empty');

my $session = $registry->background_psql('postgres', on_error_stop => 0, extra_params => [ '-U', 'intruder' ]);

$session->query('BEGIN');
is($session->query(written(7, 'claim', 'r.clock', window => '1 s')), 't', 'a number that was forgotten is claimed, and the transaction left open');
settle_in(3);
$one->resume_keeper;
wait_until('one is told that another is writing', sub { $one->stat('problem') =~ /claim is being written by another transaction/ });
$registry->poll_query_until('postgres', 'SELECT settled_at < (snowflake_internal.registry_memory()).boot_clock FROM snowflake_internal.registry_server') or die;
is(unsettled(), 't', 'the registry would have settled: it has not');
$session->query('ROLLBACK');
$session->quit;
$registry->wait_for_claim(7, q{state = 'held'});
is($one->held, 7, 'one tells what it holds');
$one->take(100);
$registry->settle;
is(unsettled(), 'f', 'the owner knows better: it is settled');
$two->begin;
$two->refused_for($one, 'another that wants the number');
$two->stop;

#
# A claim that covers what its holder issued is not taken back again.
#

my $far = 'r.clock + 3000000000';
my $fence = q{extract(epoch FROM granted_until) > extract(epoch FROM now()) + 1800};

put_back('empty');
is(told(written(7, 'claim', $far)), 't', 'a number that was forgotten is claimed, far ahead');

my $log = $one->log_position;

$one->resume_keeper;
$one->wait_for_log(qr/claim on the snowflake node number is lost/, $log);
$one->stop;
is(told(written(7, 'release', 0)), 't', 'it is released');
is($registry->claim(7, "state || ' ' || ($fence)"), 'free true', 'which sets nothing back');
is(told(written(7, 'claim', 'r.granted_until')), 't', 'claimed again');
$registry->settle;
is(told(written(7, 'claim', 'r.granted_until')), 't', 'renewed when it has settled');
is(told(written(7, 'release', 0)), 't', 'released');
is($registry->claim(7, "state || ' ' || ($fence)"), 'free true', 'nor does that');
$registry->safe_psql('postgres', q{SELECT snowflake_registry_repair('default', 7, now())});

# Nor one that the registry knew, and that has been another's since.
is(told(written(7, 'claim', 'r.clock', window => '10 min')), 't', 'a claim that is in the backup');
$registry->backup('with_claim');
is(told(written(7, 'release', 0)), 't', 'it is released');
$one->start;
is($one->held, 7, 'one holds the number');
$one->take(100);
put_back('with_claim');
is(told(written(7, 'claim', $far)), 't', 'its former holder renews it');
$log = $one->log_position;
$one->resume_keeper;
$one->wait_for_log(qr/claim on the snowflake node number is lost/, $log);
$one->stop;
is(told(written(7, 'release', 0)), 't', 'and releases it');
is($registry->claim(7, "state || ' ' || ($fence)"), 'free true', 'which sets nothing back');

# In a settled registry a release gives back what its grant got, as ever.
$registry->settle;
$registry->safe_psql('postgres', q{SELECT snowflake_registry_repair('default', 7, now())});

my $before = $registry->claim(7, 'granted_until');

is(told(written(7, 'claim', $far)), 't', 'a grant of a settled registry');
is(told(written(7, 'release', 0)), 't', 'its release');
is($registry->claim(7, "granted_until = '$before'"), 't', 'gives back what it got');

#
# A layout that is chosen for a group that was forgotten.
#

$one->start;
is($one->held, 7, 'one holds the number');
$one->take(100);
put_back('empty');
# It has no number 7.
is(told(written(1, 'claim', 'r.clock', layout => q{'timestamp:38 node:2 sequence:5 tick:10ms epoch:2025-01-01'}, window => '1 s')), 't', 'another layout');
$one->resume_keeper;
wait_until('one is told that', sub { $one->stat('problem') =~ /its group has the layout/ });
$registry->wait_for_claim(7, q{granted_until > now() + interval '10 s'});
$registry->wait_for_claim(1, q{state = 'expired'});
$registry->safe_psql('postgres', q{SELECT snowflake_registry_forget_layout('default')});
$registry->settle;
is($one->held, 7, 'the layout is forgotten: one holds its number again');
$one->take(100);

# A write that is refused may have been to tell something.
put_back('empty');
is(told(written(8, 'claim', 'r.clock', window => '1 s')), 't', 'a number is claimed');

my $other = written(7, 'claim', 'r.clock', layout => q{'timestamp:38 server:20 sequence:5 tick:10ms epoch:2025-01-02'});

settle_in(3);
like(told($other), qr/ERROR: .*layout does not match/, 'a write that is refused');
$registry->poll_query_until('postgres', 'SELECT settled_at < (snowflake_internal.registry_memory()).boot_clock FROM snowflake_internal.registry_server') or die;
is(unsettled(), 't', 'the registry would have settled: it has not');
$registry->safe_psql('postgres', 'UPDATE snowflake_internal.registry_server SET settled_at = settled_at - 600000000');
$registry->safe_psql('postgres', 'SELECT snowflake_internal.registry_keep_unsettled(false)');
like(told($other), qr/ERROR: .*layout does not match/, 'a write that is refused after 10 min');
is(unsettled(), 'f', 'it has settled');
$one->resume_keeper;
is($one->held, 7, 'one holds the number');
$one->stop;

#
# Transactions that would outlive their session, and windows that are none.
#

like(told('BEGIN', @{ $_->[1] }, q{PREPARE TRANSACTION 'left'}), qr/cannot PREPARE a transaction that has used a snowflake registry/, "PREPARE TRANSACTION: $_->[0]")
  foreach [ 'a write', [ written(8, 'claim', 'r.clock') ] ],
  [ 'a write, and one that is taken back', [ written(8, 'claim', 'r.clock'), 'SAVEPOINT s', written(9, 'claim', 'r.clock'), 'ROLLBACK TO s' ] ],
  [ 'a read', [ "SELECT FROM snowflake_internal.registry_read('default', 8, '$me', '1s')" ] ],
  [ 'a list', [ q{SELECT FROM snowflake_internal.registry_list('default')} ] ],
  [ 'a read that is taken back', [ 'SAVEPOINT s', "SELECT FROM snowflake_internal.registry_read('default', 8, '$me', '1s')", 'ROLLBACK TO s' ] ];
like(told("SELECT FROM snowflake_internal.registry_read('default', 8, '$me', '$_')"), qr/claim window must be from 1 s to 10 min/, "a window of $_")
  foreach '-12 mon 360 days 10 min', '0', '601 s', '1 mon';

# What a transaction wrote before what it took back counts as committed with it.
is(told('BEGIN', written(8, 'claim', 'r.clock', window => '1 s'), 'SAVEPOINT s', written(9, 'claim', 'r.clock', window => '1 s'), 'ROLLBACK TO s', 'COMMIT'), "t\nt", 'a write, and one that is taken back');
is($registry->value('committed >= (SELECT max(write_number) FROM snowflake_internal.registry_claim) FROM snowflake_internal.registry_memory()'), 't', 'the memory knows of the first');

$ledger->check('what was forgotten');
done_testing();
