# A registry whose content is put back while its server runs, or whose clock is set: a
# copy of its database that takes the database's name again, a table that is emptied and
# filled from a dump.  It notices by itself, and a newcomer gets no number that it has
# forgotten.  And a registry that was only started again has lost nothing, and knows.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Holder;
use Snowflake::Ledger;
use Snowflake::Proxy;
use Snowflake::Registry;
use Snowflake::Wait qw(wait_until);
use Test::More;

my $ledger = Snowflake::Ledger->new;
my $registry = Snowflake::Registry->new('registry');

$registry->set_clock(0);
$registry->init(allows_streaming => 1);
$registry->start;

my $unsettled = qr/it is new, or was restored, failed over or stopped for long, and grants nothing anew for 00:0/;
my ($holder, $newcomer) = map { Snowflake::Holder->new($_, registry => $registry, ledger => $ledger) } qw(holder newcomer);

$_->init foreach $holder, $newcomer;
# Few ids a second, so that it takes few to run ahead of the clock.
$_->configure('snowflake.node_id' => 7, 'snowflake.layout' => 'game') foreach $holder, $newcomer;
$newcomer->configure('snowflake.claim_window' => '1s');

# Since this moment (boot_time) it has noticed that it may have forgotten something: it grants nothing anew for 30 s.
sub is_unsettled_since
{
	my ($since, $name, $node) = @_;

	cmp_ok($registry->settled_at('default', $node) - $since, '>=', 30, $name);
	return;
}

sub close_database
{
	my ($name) = @_;

	$registry->safe_psql('template1', "ALTER DATABASE $name ALLOW_CONNECTIONS false");
	$registry->safe_psql('template1', "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '$name'");
	return;
}

# The registry is saved while nobody holds number 7; put back under a holder whose clients write.
sub put_back
{
	my ($how, $save, $put_back) = @_;

	is($registry->unsettled_for, 0, "$how: settled before");
	$save->();
	$holder->begin;
	is($holder->held, 7, "$how: number 7 is held");
	$holder->start_clients('single');
	$holder->wait_for_clients(4096);
	$holder->suspend_keeper;

	my $since = $registry->boot_time;

	$put_back->();
	is($registry->claim(7, 'count(*)'), 0, "$how: the registry has forgotten who holds number 7");
	$newcomer->begin;
	$newcomer->refused_in_the_end($unsettled, "$how: a newcomer");
	is_unsettled_since($since, "$how: not settled for longer than a holder may be silent");
	$holder->resume_keeper;
	$newcomer->refused_for($holder, "$how: the holder has been heard");
	$holder->goes_on;
	is($newcomer->stat('ids'), 0, "$how: the newcomer has made no id");
	$newcomer->stop;
	$holder->finish_clients;
	$holder->stop;
	$registry->safe_psql('postgres', q{SELECT snowflake_registry_settle(); DELETE FROM snowflake_internal.registry_claim});
	# What the owner takes away by hand is missing, too.
	cmp_ok($registry->unsettled_for, '>', 0, "$how: rows that are taken away are noticed");
	$registry->settle;
	return;
}

my $dump = $registry->basedir . "/data.sql";
my $tables = 'snowflake_internal.registry_claim, snowflake_internal.registry_group, snowflake_internal.registry_server';

put_back('a copy of the database in its place',
	sub { $registry->safe_psql('template1', 'CREATE DATABASE copy TEMPLATE postgres; ALTER DATABASE copy SET search_path = public, "Our ids"') },
	sub {
		close_database('postgres');
		$registry->safe_psql('template1', 'ALTER DATABASE postgres RENAME TO lost');
		$registry->safe_psql('template1', 'ALTER DATABASE copy RENAME TO postgres');
	});

# The first one has its memory, and knows nothing of what the copy has granted meanwhile.
my $since = $registry->boot_time;

close_database('postgres');
$registry->safe_psql('template1', 'ALTER DATABASE postgres RENAME TO copy; ALTER DATABASE lost ALLOW_CONNECTIONS true');
$registry->safe_psql('template1', 'ALTER DATABASE lost RENAME TO postgres');
is_unsettled_since($since, 'the database that had the name before: not settled');
$registry->safe_psql('postgres', 'DELETE FROM snowflake_internal.registry_claim');
$registry->settle;

# Somebody has claimed something before, so that there is something to put back.
my $other = Snowflake::Holder->new('other', registry => $registry, ledger => $ledger);

$other->init;
# The keeper's statement_timeout is a third of the window, as is the pause between renewals: an alarm that was left over would come
# in the middle of the next renewal, where libfaketime, which reads its file in PostgreSQL's signal handler, may break malloc().
# From 15 s on the two differ.
$other->configure('snowflake.node_id' => 5, 'snowflake.layout' => 'game', 'snowflake.claim_window' => '20s');
foreach my $way ('TRUNCATE', 'DELETE FROM')
{
	$other->begin;
	$other->held;
	$other->stop;
	put_back("a dump of the data in place of it, after $way",
		sub { system_or_bail('pg_dump', '-a', '-f', $dump, '-d', $registry->connstr('postgres')) },
		sub {
			$registry->safe_psql('postgres', join '; ', map { "$way $_" } split /, /, $tables);
			system_or_bail('psql', '-XqAt', '-1', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $registry->connstr('postgres'));
		});
}

# A repair of one number does not hide that the others were put back.
$since = $registry->boot_time;
$other->begin;
$other->held;
system_or_bail('pg_dump', '-a', '-t', 'snowflake_internal.registry_claim', '-f', $dump, '-d', $registry->connstr('postgres'));
$other->stop;
$registry->command_ok([ 'psql', '-XqAt', '-1', '-v', 'ON_ERROR_STOP=1', '-c', 'DELETE FROM snowflake_internal.registry_claim', '-f', $dump,
		'-c', q{UPDATE snowflake_internal.registry_claim SET alive_until = now(); SELECT "Our ids".snowflake_registry_repair('default', 5, now())},
		'-d', $registry->connstr('postgres') ], 'content that is put back, and a repair');
is_unsettled_since($since, 'content that is put back, and a repair: not settled');
$registry->settle;

# A registry that can't have its memory goes on with the claims that it knows, and grants nothing anew.
$other->start;
$other->held;

my ($memory) = grep { -O } glob '/dev/shm/snowflake.' . $registry->value('system_identifier FROM pg_control_system()') . '.*';
my $at = $registry->log_position;

$since = $registry->boot_time;
unlink $memory or die "$memory: $!";
mkdir $memory or die "$memory: $!";
is_unsettled_since($since, 'without its memory: not settled');
$registry->safe_psql('postgres', 'SELECT snowflake_registry_settle()');
is_unsettled_since($since, 'without its memory: whoever says that it is');
$registry->wait_for_log(qr/snowflake registry has no shared memory\n.*DETAIL: .*It renews claims, and grants nothing anew/, $at);

my $generation = $registry->claim(5, 'generation');

wait_until('two renewals', sub { $registry->claim(5, 'generation') >= $generation + 2 });
is($other->stat('claim'), 'held', 'without its memory: what is held is renewed');
$other->take(100);
rmdir $memory or die "$memory: $!";
cmp_ok($registry->unsettled_for, '<=', 30, 'with a memory again: it settles');
$registry->settle;
is($registry->unsettled_for, 0, 'with a memory again: it can be settled');
$other->stop;

# Another may have taken its place while it was stopped for long; a short time is enough for renewals alone.
$other->begin;
$other->held;
$since = $registry->boot_time;
$registry->restart;
is($registry->unsettled_for, 0, 'started again: what nobody held can be had');
is_unsettled_since($since, 'started again: what another holds can not', 5);
is($registry->value(q{freed / 1e6 > extract(epoch FROM clock_timestamp()) - 5 FROM snowflake_internal.registry_list('default') WHERE node = 5}), 't',
	'started again: what another held is the last that a server of any number tries');
$other->stop('immediate');
$registry->stop;

my $stopped_at = time;

wait_until('others could have settled', sub { time > $stopped_at + 35 });
$since = $registry->boot_time;
$registry->start;
is_unsettled_since($since, 'started again after a long time: not settled');
$registry->settle;

# The time that holders are given is no wall clock's.
$since = $registry->boot_time;
$registry->safe_psql('postgres', 'VACUUM FULL snowflake_internal.registry_claim');
is_unsettled_since($since, 'a table with another file: not settled');
$registry->step_clock(7200);
is_unsettled_since($since, 'the clock is set forward: no sooner settled');
$registry->step_clock(-7200);
cmp_ok($registry->unsettled_for, '<=', 30, 'the clock is set back: no later settled');
$registry->settle;

# A holder with a long window that is not heard for a moment, and a newcomer with a short one.
my $proxy = Snowflake::Proxy->new($registry->host, $registry->port);

$holder->configure('snowflake.claim_window' => '60s', 'snowflake.registry' => $registry->address(host => '127.0.0.1', port => $proxy->port));
$registry->backup('empty');
$holder->start;
is($holder->held, 7, 'a long window: number 7 is held');
$holder->start_clients('single');
$holder->wait_for_clients(4096);
$proxy->refuse;
$proxy->cut;
$since = $registry->boot_time;
$registry->stop('immediate');
$registry->put_back('empty');
$newcomer->start;
$newcomer->refused_in_the_end($unsettled, 'a long window: a newcomer with a short one');
is_unsettled_since($since, 'a long window: the newcomer waits for longer than its own');
$holder->wait_for_clients(4096);
$proxy->accept;
$newcomer->refused_for($holder, 'a long window: the holder has been heard');
$holder->goes_on;
$newcomer->stop;
$holder->finish_clients;

# A clean stop before the holder has spoken with the registry that has forgotten it: no other begins below its ids, which
# lie ahead of the clock.
$holder->stop;
$registry->safe_psql('postgres', 'DELETE FROM snowflake_internal.registry_claim');
$registry->settle;
foreach my $server ($holder, $newcomer)
{
	$server->{line} = 'number 7';
	$server->configure('snowflake.max_drift' => '10min', 'snowflake.claim_window' => '3s');
}
foreach my $known ('nothing of the number', 'that it is free')
{
	my $name = "a stop where the registry knows $known";

	$registry->backup($known);
	$holder->start;
	is($holder->held, 7, "$name: number 7 is held");
	$holder->run_ahead(20);
	$holder->take(1000);

	my $newest = $holder->stat('last_timestamp');

	$holder->suspend_keeper;
	$registry->stop('immediate');
	$registry->put_back($known);
	isnt($registry->claim(7, 'state'), 'held', "$name: it does not know the holder");
	$holder->stop_while_keeper_sleeps;
	is($registry->claim(7, "state, granted_until > '$newest'"), 'free|t', "$name: it is told how far the ids went");
	$registry->settle;
	$newcomer->start;
	is($newcomer->held, 7, "$name: another has the number");
	$newcomer->take(1000);
	$newcomer->stop;
}

$ledger->check('a registry that was put back');
done_testing();
