# A merge that has dropped indexes is killed, or cancelled, while they are gone, or one of them is built, by one job or a worker: the same
# CALL builds them, and so does taking it back.
#
# An index over a function is built for as long as somebody holds the advisory lock 1.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Test::More;

my $server = Snowflake::Server->new('indexes');

$server->init;
$server->start;
$server->safe_psql('postgres', q{
	CREATE EXTENSION snowflake_migrate CASCADE;
	CREATE SCHEMA t;
	CREATE SCHEMA a;
	CREATE FUNCTION t.held(text) RETURNS text IMMUTABLE LANGUAGE plpgsql
		AS $$BEGIN
			/* The maps compute it, too. */
			IF (SELECT r.mapped_at FROM snowflake_migrate.runs AS r ORDER BY r.run DESC LIMIT 1) IS NOT NULL THEN
				PERFORM pg_catalog.pg_advisory_xact_lock_shared(1);
			END IF;
			RETURN $1;
		END$$;
	CREATE TABLE t.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text NOT NULL CONSTRAINT a_key UNIQUE DEFERRABLE, level int);
	CREATE INDEX b_held ON t.players (t.held(name));
	CREATE INDEX c_level ON t.players (level);
	CREATE TABLE a.players (id int PRIMARY KEY, name text NOT NULL, level int);
	INSERT INTO t.players SELECT g, 'old ' || g, g FROM generate_series(1, 10) AS g;
	INSERT INTO a.players SELECT g, 'new ' || g, g FROM generate_series(1, 100) AS g;
});

my $indexes = q{SELECT pg_get_indexdef(indexrelid), indisvalid, (SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conindid = indexrelid)
	FROM pg_index WHERE indrelid = 't.players'::regclass ORDER BY 1};
my $former = $server->safe_psql('postgres', $indexes);
my $states = q{SELECT string_agg(name || ' ' || state, ', ' ORDER BY id) FROM snowflake_migrate_internal.plan_indexes
	WHERE run = (SELECT max(run) FROM snowflake_migrate.runs)};
my $merge = q{CALL snowflake_migrate.merge('{a}', 't', '{%d}', batch_size => 30, rebuild_indexes => true)};
my $by_workers = $merge =~ s/true\)/true, jobs => 2)/r;
my $a_worker = q{backend_type = 'snowflake_migrate worker'};
my $workers = qq{SELECT count(*) FROM pg_stat_activity WHERE $a_worker};

# Runs a statement, which is disturbed while it builds the index; what it said.
sub disturb
{
	my ($name, $statement, $disturb, %params) = @_;
	my $holder = $server->background_psql('postgres');

	$holder->query_safe('SELECT pg_advisory_lock(1)');

	my $call = $server->start_call('merge', $statement);

	# The other worker builds the other one meanwhile.
	my ($who, $is, $there) = $params{jobs} ? ($a_worker, 'built', 'a_key c_level players_pkey') : (q{application_name = 'merge'}, 'dropped', 'a_key players_pkey');

	$server->poll_query_until('postgres', qq{SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $who AND wait_event = 'advisory')
			AND ($states) = 'a_key built, b_held dropped, c_level $is'})
		or die "$name: no index is built";
	$disturb->($server->safe_psql('postgres', qq{SELECT pid FROM pg_stat_activity WHERE }
			. ($params{worker} ? "$who AND wait_event = 'advisory'" : q{application_name = 'merge' AND backend_type = 'client backend'})));
	# What fails does so by itself: what is let on before could be built after all.
	$call->{run}->finish unless $params{succeeds};
	# A worker that was ended was not alone: the call ends when it is let on.
	eval { $holder->quit };
	$call->{run}->finish if $params{succeeds};
	return $call->{err} if $params{succeeds} && is($call->{run}->result(0), 0, "$name: the call goes on");
	isnt($call->{run}->result(0), 0, "$name: the call fails");
	is($server->safe_psql('postgres', $workers), 0, "$name: no worker is left");
	is($server->safe_psql('postgres', $states), "a_key built, b_held dropped, c_level $is", "$name: what is to be built is on record");
	is($server->safe_psql('postgres', q{SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relkind = 'i' AND relnamespace = 't'::regnamespace}),
		$there, "$name: and not there");
	return $call->{err};
}

# The statement that takes the last run back.
sub taken_back { return 'CALL snowflake_migrate.rollback(' . $server->safe_psql('postgres', 'SELECT max(run) FROM snowflake_migrate.runs') . ')' }

my $cancel = sub { $server->safe_psql('postgres', "SELECT pg_cancel_backend($_[0])") };

disturb('killed', sprintf($merge, 11), sub { $server->crash($_[0]) });
like(disturb('cancelled', sprintf($merge, 11), $cancel), qr/canceling statement due to user request/, 'cancelled: it says so');
$server->safe_psql('postgres', sprintf($merge, 11));
is($server->safe_psql('postgres', 'SELECT state FROM snowflake_migrate.runs'), 'done', 'the same call goes on');
is($server->safe_psql('postgres', $states), 'a_key there, b_held there, c_level there', 'all are there');
is($server->safe_psql('postgres', $indexes), $former, 'as they were');
$server->safe_psql('postgres', 'CALL snowflake_migrate.rollback(1)');

disturb('stopped', sprintf($merge, 12), sub { $server->stop('immediate'); $server->start });

my $rollback = taken_back();

disturb('taken back, cancelled', $rollback, $cancel);
$server->safe_psql('postgres', $rollback);
is($server->safe_psql('postgres', $indexes), $former, 'taken back: all are as they were');
is($server->safe_psql('postgres', 'SELECT count(*), max(level) FROM t.players'), '10|10', 'taken back: and the rows');

# The same by workers: one is killed; one is ended, and the merge goes on without it.
disturb('worker killed', sprintf($by_workers, 13), sub { $server->crash($_[0]) }, jobs => 2, worker => 1);
like(disturb('worker ended', sprintf($by_workers, 13), sub {
			$server->safe_psql('postgres', "SELECT pg_terminate_backend($_[0])");
			$server->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $_[0])") or die 'it does not end';
		}, jobs => 2, worker => 1, succeeds => 1),
	qr/WARNING:  a worker of merge \d+ has ended before its work was done\nDETAIL:  It was at table t\.players, index "b_held"/, 'worker ended: it says so');
is($server->safe_psql('postgres', 'SELECT state FROM snowflake_migrate.runs ORDER BY run DESC LIMIT 1'), 'done', 'worker ended: the merge is done');
is($server->safe_psql('postgres', $indexes), $former, 'worker ended: all are as they were');
$server->safe_psql('postgres', taken_back());

# Stopped, cancelled, and taken back in the middle.
disturb('workers, stopped', sprintf($by_workers, 14), sub { $server->stop('immediate'); $server->start }, jobs => 2);
like(disturb('workers, cancelled', sprintf($by_workers, 14), $cancel, jobs => 2), qr/canceling statement due to user request/, 'workers, cancelled: it says so');
$server->safe_psql('postgres', taken_back());
is($server->safe_psql('postgres', $indexes), $former, 'workers, taken back: all are as they were');
is($server->safe_psql('postgres', 'SELECT count(*), max(level) FROM t.players'), '10|10', 'workers, taken back: and the rows');

done_testing();
