# Many sessions at once, in two databases; read-only transactions, parallel
# workers, no transaction id.

use strict;
use warnings FATAL => 'all';

use IPC::Run;
use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Test::More;

my $server = Snowflake::Server->new('one');
my $ledger = $server->{ledger};

$server->init;
# The plans that use workers need some.
$server->configure('max_worker_processes' => 8, 'max_parallel_workers' => 4);
$server->start;
$server->safe_psql('postgres', 'CREATE DATABASE orders');
foreach my $database (qw(postgres orders))
{
	$server->safe_psql($database, 'CREATE EXTENSION snowflake');
	# 40 pages or so: something to share among workers.
	$server->safe_psql($database, 'CREATE TABLE numbers AS SELECT n FROM generate_series(1, 10000) AS n');
	$server->safe_psql($database, 'CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), payload int)');
}

# The first call after a start reserves: in a read-only transaction, without a transaction id.
foreach my $mode (qw(fast immediate))
{
	$server->restart($mode);

	my ($id, $xid) = split /\|/, $server->safe_psql('orders',
		"BEGIN READ ONLY; SELECT snowflake_nextval(), coalesce(pg_current_xact_id_if_assigned()::text, 'none'); COMMIT");

	$server->record($id);
	is($xid, 'none', "the first id after a $mode stop, in a read-only transaction, assigns no transaction id");
	cmp_ok($server->stat('reservations'), '>', 0, "and reserves after a $mode stop");
}
$server->record($server->safe_psql('orders', 'BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE; SELECT snowflake_nextval(); COMMIT'));

# Parallel workers alone: the leader takes none.
$server->restart;
my $parallel = q{
	SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
	SET max_parallel_workers_per_gather = 3; SET parallel_leader_participation = off;
};
my $plan = $server->safe_psql('orders', "$parallel EXPLAIN (VERBOSE, COSTS off) SELECT snowflake_nextval() FROM numbers");
like($plan, qr/Gather.*\n.*Output: \(snowflake_nextval.*Seq Scan/s, 'ids are made in parallel workers');
my @ids = split /\n/, $server->safe_psql('orders', "BEGIN READ ONLY; $parallel SELECT snowflake_nextval() FROM numbers; COMMIT");
# Those of several workers come mixed.
$server->record(sort { $a <=> $b } @ids);
is(scalar @ids, 10000, 'parallel workers make ids, the first after a start too');
$server->refuses("$parallel SELECT count(snowflake_nextval()) FROM numbers; SELECT snowflake_lastval()",
	qr/snowflake_lastval is not yet defined in this session/, 'ids of workers are not snowflake_lastval()');

# A transaction that was rolled back, and one that failed, give no id back.
my $before = $server->take;
my $rolled_back = $server->safe_psql('orders', 'BEGIN; SELECT snowflake_nextval(); ROLLBACK');
cmp_ok($rolled_back, '>', $before, 'an id from a transaction that is rolled back');
cmp_ok($server->take, '>', $rolled_back, 'is not issued again');

# Two sessions by turns: each id is greater than the other session's before it.
my @turns = map { $server->background_psql($_) } qw(postgres orders);
my @by_turns = map { $turns[ $_ % 2 ]->query_safe('SELECT snowflake_nextval()') } 1 .. 200;
is(scalar(grep { $by_turns[$_] <= $by_turns[ $_ - 1 ] } 1 .. $#by_turns), 0, 'ids ascend over two sessions by turns');
$server->record(@by_turns);
$_->quit foreach @turns;

# 8 sessions with 1,000,000 ids each, four ways to ask for them, in two databases.
my @sessions;
my @ways = (
	'COPY (SELECT snowflake_nextval() FROM (SELECT generate_series(1, 1000000)) AS s) TO STDOUT',
	'COPY (SELECT snowflake_nextval_batch(1000000)) TO STDOUT',
	'COPY (SELECT snowflake_nextval_batch(1000) FROM (SELECT generate_series(1, 1000)) AS s) TO STDOUT',
	'WITH made AS (INSERT INTO events (payload) SELECT generate_series(1, 1000000) RETURNING id) SELECT id FROM made',
);

my $issued = $server->stat('ids');
$ledger->next_phase('one');
foreach my $n (0 .. 7)
{
	my $file = $ledger->file('one');

	push @sessions, {
		file => $file,
		run => IPC::Run::start([
			'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1',
			'-d', $server->connstr($n % 2 ? 'orders' : 'postgres'), '-c', $ways[$n / 2]
		], '<', '/dev/null', '>', $file, '2>', "$file.errors"),
	};
}
foreach my $session (@sessions)
{
	$session->{run}->finish;
	is(slurp_file("$session->{file}.errors"), '', 'a session among eight makes its ids');
}
is($server->stat('ids'), $issued + 8_000_000, 'all ids are counted');
cmp_ok($server->take, '>', 0, 'and it goes on');
is($server->safe_psql('orders', 'SELECT count(*) FROM events'), 1_000_000, 'all ids are primary keys');

$ledger->check('8 sessions in two databases');
done_testing();
