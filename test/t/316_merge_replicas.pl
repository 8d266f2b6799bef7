# Merges whose server has others that follow it, and other databases: subscribers of the target's tables, a standby that is promoted
# in the middle, databases that are renamed or dropped meanwhile, and two that are merged at once.
#
# It runs what doc/merging.md says of publications, and of a primary that is lost.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Merge;
use Snowflake::Server;
use Test::More;

my $merge = Snowflake::Merge->new(streams => 1, scale => 0.5);
my $server = $merge->server;
my $statement = $merge->call_sql(batch_size => 25, jobs => 3);
my $a_worker = q{backend_type = 'snowflake_migrate worker'};

# Each with three workers, and those of logical replication.
$server->append_conf('postgresql.conf', 'max_worker_processes = 16');
$server->restart;
$merge->ready($_) foreach qw(quiet first second other);
$merge->call('quiet', batch_size => 25);

sub as_quiet
{
	my ($database, $name) = @_;

	is($merge->sql($database, q{SELECT string_agg(state, ' ') FROM snowflake_migrate.runs}), 'done', "$name: one run, which is done");
	is($merge->sql($database, 'SELECT * FROM snowflake_migrate.verify((SELECT run FROM snowflake_migrate.runs))'), '', "$name: it is verified");
	$merge->is_merged($database, $name);
	is_deeply($merge->counts($database), $merge->counts('quiet'), "$name: as many rows as of a merge by one job");
	return;
}

# Stopped in a batch of a worker.
sub stop
{
	my ($database) = @_;

	$merge->allow_stops($database);
	$merge->stop_at($database, 3, merged => 'quiet') or die 'no row is left to be stopped at';

	my $holder = $merge->hold($database);
	my $call = $merge->start_merge($database, $statement);

	ok($merge->wait_for($database, qq{EXISTS (SELECT FROM pg_stat_activity WHERE $a_worker AND datname = '$database' AND wait_event = 'advisory')}, $call),
		"$database: the merge is stopped in a batch") or diag($call->{err});
	return ($holder, $call);
}

# Two databases at once, each with workers, into targets of one name, with the same node numbers.  Neither can be renamed or dropped
# meanwhile; dropped by force, its call ends with its workers, and the other goes on.
{
	my ($holder, $call) = stop('first');
	my ($other_holder, $other) = stop('other');

	is($merge->sql('first', "SELECT string_agg(n || ' of ' || datname, ', ' ORDER BY datname) FROM (SELECT datname, count(*) AS n FROM pg_stat_activity WHERE $a_worker GROUP BY 1) AS w"),
		'3 of first, 3 of other', 'both have their workers');
	$holder->quit;
	ok($merge->finish_merge($call), 'first: it ends while the other is held up') or diag($call->{err});
	as_quiet('first', 'two at once');

	foreach my $statement ('ALTER DATABASE other RENAME TO another', 'DROP DATABASE other')
	{
		$merge->refuses('postgres', $statement, qr/database "other" is being accessed by other users/, $statement);
	}
	$merge->sql('postgres', 'DROP DATABASE other WITH (FORCE)');
	ok(!$merge->finish_merge($other), 'DROP DATABASE WITH (FORCE): the call ends');
	like($other->{err}, qr/terminating connection due to administrator command/, 'DROP DATABASE WITH (FORCE): it says why');
	is($merge->sql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE $a_worker"), 0, 'DROP DATABASE WITH (FORCE): no worker is left');
	eval { $other_holder->quit };

	# Between two calls nothing is in the way.
	my ($second_holder, $second) = stop('second');

	$merge->sql('second', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'merge' AND backend_type = 'client backend'});
	ok(!$merge->finish_merge($second), 'second: cancelled');
	$second_holder->quit;
	$merge->sql('second', 'TRUNCATE watch.stops');
	$merge->sql('postgres', 'ALTER DATABASE second RENAME TO renamed');
	$merge->sql('renamed', $statement);
	as_quiet('renamed', 'renamed between two calls');
}

# Publications.  In a small world: what has no replica identity, and policies that change rows of the target.
{
	my $publish = 'CREATE PUBLICATION game FOR TABLES IN SCHEMA t';
	my $check = q{SELECT concat_ws(': ', severity, relation, problem, example, advice) FROM snowflake_migrate.check('{a}', 't') WHERE problem ~ 'publication'};
	my $tables = q{
		CREATE SCHEMA t;
		CREATE TABLE t.players (id bigint PRIMARY KEY, name text NOT NULL CONSTRAINT name UNIQUE, wide text);
		CREATE TABLE t.wallets (player bigint NOT NULL CONSTRAINT wallet UNIQUE REFERENCES t.players, coins int);
		CREATE TABLE t.ranks (player bigint PRIMARY KEY REFERENCES t.players, rating int, rank int NOT NULL CONSTRAINT rank UNIQUE);
		CREATE TABLE t.log (player bigint, month int, what text) PARTITION BY LIST (month);
		CREATE TABLE t.log_1 PARTITION OF t.log FOR VALUES IN (1)};

	$merge->sql('postgres', "CREATE DATABASE $_") foreach qw(publisher subscriber);
	$merge->sql('subscriber', $tables);
	$merge->sql('publisher', 'CREATE EXTENSION snowflake_migrate CASCADE', $tables, q{
		ALTER TABLE t.players ALTER COLUMN id SET DEFAULT snowflake_nextval();
		CREATE INDEX ON t.players (wide);
		CREATE SCHEMA a;
		CREATE TABLE a.players (id int PRIMARY KEY, name text NOT NULL, wide text);
		CREATE TABLE a.wallets (player int NOT NULL, coins int);
		CREATE TABLE a.ranks (player int PRIMARY KEY, rating int, rank int NOT NULL);
		CREATE TABLE a.log (player int, month int, what text);
		INSERT INTO t.players (name) SELECT 'p' || g FROM generate_series(1, 20) AS g;
		INSERT INTO t.wallets SELECT id, 5 FROM t.players;
		INSERT INTO t.ranks SELECT id, 100 * row_number() OVER w, row_number() OVER w FROM t.players WINDOW w AS (ORDER BY id);
		INSERT INTO a.players SELECT g, 'p' || 2 * g, repeat(md5(g::text), 2000) FROM generate_series(1, 100) AS g;
		ALTER TABLE t.players ALTER COLUMN wide SET STORAGE EXTERNAL;
		DROP INDEX t.players_wide_idx;
		CREATE INDEX ON t.players (length(wide));
		INSERT INTO a.wallets SELECT id, id FROM a.players;
		INSERT INTO a.ranks SELECT id, 50 * id, id FROM a.players;
		INSERT INTO a.log SELECT id, 1, 'log ' || id FROM a.players WHERE id > 10;
		SELECT snowflake_migrate.declare_policy('t.players', 'name', 'keep_target'), snowflake_migrate.declare_policy('t.wallets', 'wallet', 'keep_source'),
			snowflake_migrate.declare_policy('t.ranks', 'rank', 'rerank', 'rating DESC'), snowflake_migrate.declare_policy('t.ranks', 'ranks_pkey', 'keep_target'),
			snowflake_migrate.declare_reference('t.log', 'player', 't.players'), snowflake_migrate.declare_no_reference('t.ranks', 'rank')});

	my $call = q{CALL snowflake_migrate.merge('{a}', 't', '{7}', batch_size => 20, jobs => 3, rebuild_indexes => true)};
	my $identity = 'ALTER TABLE t.%1$s REPLICA IDENTITY FULL';

	$merge->sql('publisher', 'CREATE PUBLICATION all_of_it FOR ALL TABLES');
	foreach my $refused ($check, $call)
	{
		$merge->refuses('publisher', $refused, qr/cannot merge while a publication has all tables: "all_of_it"\nDETAIL:  .*\nHINT:  .*FOR TABLES IN SCHEMA/, 'a publication of all tables');
	}
	$merge->sql('publisher', 'DROP PUBLICATION all_of_it', $publish);
	is($merge->sql('publisher', $check), join("\n",
			'error: t.wallets: a publication keeps its rows from being updated, as policies may have to: '
			  . 'cannot update table "wallets" because it does not have a replica identity and publishes updates: ALTER TABLE t.wallets REPLICA IDENTITY FULL;',
			map { my ($table, $part) = @$_; "warning: t.$table: a publication keeps its rows from being deleted: the merge could not be taken back: "
				  . qq{cannot delete from table "$part" because it does not have a replica identity and publishes deletes: ALTER TABLE t.$table REPLICA IDENTITY FULL;} }
			  [ log => 'log_1' ], [ wallets => 'wallets' ]), 'the check names what has no replica identity');
	$merge->refuses('publisher', $call, qr/cannot merge the schemas as they are\nDETAIL:  table t\.wallets: a publication keeps its rows from being updated/, 'without a replica identity');
	is($merge->sql('publisher', 'SELECT count(*) FROM snowflake_migrate.runs'), 0, 'nothing has begun');
	$merge->sql('publisher', sprintf($identity, 'wallets'));

	my $place = $server->connstr('publisher') =~ s/'/''/gr;

	$merge->sql('publisher', q{SELECT pg_create_logical_replication_slot('game', 'pgoutput')});
	$merge->sql('subscriber', "CREATE SUBSCRIPTION game CONNECTION '$place' PUBLICATION game WITH (create_slot = false, slot_name = 'game')");
	$server->wait_for_subscription_sync($server, 'game', 'subscriber');

	my $contents = join ' UNION ALL ', map { "SELECT '$_', $_\::text FROM t.$_" } qw(players wallets ranks log);
	my $same = sub {
		my ($name) = @_;

		$server->wait_for_catchup('game');
		is($merge->sql('subscriber', "$contents ORDER BY 1, 2"), $merge->sql('publisher', "$contents ORDER BY 1, 2"), $name);
		return;
	};
	my $first = $merge->sql('publisher', "$contents ORDER BY 1, 2");

	$same->('the subscriber has the target');
	my $run = $merge->sql('publisher', $call);
	is($merge->sql('publisher', "SELECT * FROM snowflake_migrate.verify($run)"), '', 'merged, with workers');
	is($merge->sql('publisher', 'SELECT count(*) FROM a.players JOIN t.players USING (name, wide)'), 90, 'long values are whole');
	is($merge->sql('publisher', 'SELECT count(*), sum(coins) FROM t.wallets'), '110|5100', 'rows of the target have taken values of the source');
	$same->('the subscriber has what the merge brought, and what it changed');
	$merge->refuses('publisher', "CALL snowflake_migrate.rollback($run, force => true)",
		qr/cannot roll back merge $run because of a publication\nDETAIL:  Table t\.log: cannot delete from table "log_1".*\nHINT:  .*REPLICA IDENTITY/, 'the way back, without a replica identity');
	is($merge->sql('publisher', "SELECT state FROM snowflake_migrate.runs WHERE run = $run"), 'done', 'nothing is taken back');
	$merge->sql('publisher', sprintf($identity, 'log_1'), "CALL snowflake_migrate.rollback($run, force => true)");
	is($merge->sql('publisher', "$contents ORDER BY 1, 2"), $first, 'taken back');
	$same->('the subscriber has that, too');
	$merge->sql('subscriber', 'DROP SUBSCRIPTION game');
}

# The primary is lost in the middle of a merge with workers: the same call goes on where it has been promoted.
{
	my $standby = Snowflake::Server->new('standby');

	$server->backup('first');
	$standby->init_from($server, 'first');
	$standby->start;
	$merge->ready('torn');

	my ($holder, $call) = stop('torn');
	# Not batches: the other workers may have no more to do by now but those of the table that the held one is in.
	my $left = 'SELECT count(*) FROM snowflake_migrate_internal.plan_sources WHERE NOT done';

	cmp_ok($merge->sql('torn', $left), '>', 0, 'something is left');
	$server->wait_for_catchup($standby, 'replay', $server->lsn('flush'));
	$server->stop('immediate');
	ok(!$merge->finish_merge($call), 'the primary is lost: the call fails');
	eval { $holder->quit };
	$merge->{realm} = $standby;
	$merge->refuses('torn', $statement, qr/cannot execute .* (in a read-only transaction|during recovery)/, 'on a standby');
	$standby->promote;
	$merge->sql('torn', 'TRUNCATE watch.stops');
	cmp_ok($merge->sql('torn', $left), '>', 0, 'something is left on the standby');
	like($merge->sql('torn', $statement), qr/^\d+$/, 'the same call goes on');
	as_quiet('torn', 'promoted');
	my $run = $merge->sql('torn', 'SELECT run FROM snowflake_migrate.runs');
	$merge->sql('torn', "CALL snowflake_migrate.rollback($run, force => true)");
	is_deeply({ %{ $merge->natural('torn') }, 'Guild Log' => '' }, { %{ $merge->{at_first} }, 'Guild Log' => '' }, 'promoted: it can be taken back');
	$standby->stop;
}

done_testing();
