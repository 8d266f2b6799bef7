# Merging into a target that is in use: its users insert the names that are to come, rename rows to them, delete rows that
# stand for the sources', and rows that were merged, while batches are copied.
#
# doc/merging.md says what becomes of each.  What users did is known outside of the database; rows are compared by marks, which no merge changes.

use strict;
use warnings FATAL => 'all';

use IPC::Run;
use PostgreSQL::Test::Utils;
use Snowflake::Merge::InUse qw($server $stopped $verify begin call_sql database finish_merge hold players run_of sql start_merge wait_until);
use Test::More;

begin();

# Stopped before anything is copied, and among the items.
{
	my $name = database('steps');
	my $holder = hold($name, 'sa1');
	my $call = start_merge($name, call_sql('s', 100, 20));
	my %expected = (%{ players($name, 't') }, %{ players($name, 's') });

	wait_until($call, $stopped, 'the merge is stopped at its first row');
	sql($name,
		# names that are to come, and a name that a suffix will want
		q{INSERT INTO t.players (account_id, name, mark) SELECT id, 'p7', 'x1' FROM t.accounts WHERE login = 'a4'},
		q{INSERT INTO t.players (account_id, name, mark) SELECT id, 'p7_s', 'x2' FROM t.accounts WHERE login = 'a4'},
		q{UPDATE t.players SET name = 'p9' WHERE mark = 'tp30'},
		q{INSERT INTO t.accounts (login, mark) VALUES ('a1', 'x3')},
		# what stands for the source's rows: an account with its players and its wallet, a kind
		q{DELETE FROM t.accounts WHERE login = 'a8'},
		q{DELETE FROM t.items WHERE kind_id = (SELECT id FROM t.kinds WHERE code = 'k4')}, q{DELETE FROM t.kinds WHERE code = 'k4'},
		# a rank that is free, and a wallet that would be replaced
		q{INSERT INTO t.ranks SELECT id, 3, 16 FROM t.players WHERE mark = 'x1'},
		q{UPDATE t.wallets SET mark = 'x4' WHERE account_id = (SELECT id FROM t.accounts WHERE login = 'a4')});
	is(sql($name, q{SELECT number FROM t.accounts WHERE mark = 'x3'}), 50040, 'numbers of users come after those that are to come');
	my $former = $holder;
	$holder = hold($name, 'si60');
	$former->quit;
	wait_until($call, $stopped, 'it goes on to the items');
	is(sql($name, q{SELECT name FROM t.players WHERE mark = 'sp7'}), 'p7_s2', 'a name that was taken meanwhile gets a suffix, and the next where that is taken too');
	is(sql($name, q{SELECT name FROM t.players WHERE mark = 'sp9'}), 'p9_s', 'so does one that a row was renamed to');
	is(sql($name, q{SELECT mark FROM t.accounts WHERE login = 'a1'}), 'x3', 'an account that came meanwhile stays');
	is(sql($name, q{SELECT mark FROM t.accounts WHERE login = 'a8'}), 'sa8', 'an account comes when the one that stood for it is gone');
	is(sql($name, q{SELECT w.mark FROM t.wallets AS w JOIN t.accounts AS a ON a.id = account_id WHERE login = 'a4'}), 'sw4', 'a wallet is replaced');
	is(sql($name, q{SELECT string_agg(code, ' ' ORDER BY code) FROM t.kinds WHERE code IN ('k4', 'k5')}), 'k4 k5', 'a kind comes in the place of the one that is gone');
	# rows that were merged, and refer, or are referred to
	sql($name, q{DELETE FROM t.wallets WHERE mark = 'sw12'}, q{DELETE FROM t.players WHERE mark IN ('sp20', 'sp21')}, q{UPDATE t.players SET name = 'x' WHERE mark = 'sp22'},
		q{INSERT INTO t.items (owner_id, kind_id, mark) SELECT p.id, k.id, 'x5' FROM t.players AS p, t.kinds AS k
			WHERE p.mark = 'sp23' AND code = 'k2'});
	$holder->quit;
	finish_merge($call, 'stopped twice');
	is(sql($name, $verify), '', 'it is verified');
	is(sql($name, q{SELECT count(*) FROM t.wallets WHERE mark = 'sw12'}), 1, 'a wallet whose place was taken, and that was deleted then, comes again');
	is(sql($name, q{SELECT string_agg(relation, ' ') FROM snowflake_migrate.progress WHERE rows_done <> rows_to_do}), '', 'rows that come again are counted once');
	# tp7 and tp27 were of the account that is gone.
	delete @expected{ 'sp20', 'sp21', grep { $expected{$_} =~ /^a8 / && /^t/ } keys %expected };
	is_deeply(players($name, 't'), { %expected, x1 => 'a4 -', x2 => 'a4 -' }, 'the players of both, with their accounts and guilds');
	is(sql($name, q{SELECT count(*) FROM t.items AS i JOIN t.players AS p ON p.id = owner_id JOIN t.kinds AS k ON k.id = kind_id
			JOIN (SELECT i.mark, p.mark AS owner, code FROM s.items AS i JOIN s.players AS p ON p.id = owner_id JOIN s.kinds AS k ON k.id = kind_id) AS s
				ON s.mark = i.mark AND s.owner = p.mark AND s.code = k.code}), 120 - 4, 'all items but those of players who were deleted');
	is(sql($name, 'SELECT count(*), min(rank), max(rank), count(DISTINCT rank) = count(*) FROM t.ranks'), sql($name, q{
		SELECT count(*), 1, count(*), true FROM (SELECT 1 FROM t.ranks JOIN t.players ON id = player_id) AS r}), 'ranks are numbered over all rows');
	is(sql($name, 'SELECT count(*) FROM (SELECT rating, lag(rating) OVER (ORDER BY rank) AS before FROM t.ranks) AS r WHERE rating > before'), 0,
		'by their ratings');
	is(sql($name, q{SELECT string_agg(relation || ': ' || problem || ' ' || count, E'\n' ORDER BY relation, problem) FROM snowflake_migrate.report
			WHERE problem ~ 'since|meanwhile'}), join("\n",
			't.friends: rows that the merge brought were deleted since 4',
			't.items: rows refer to rows of t.players that were deleted meanwhile: they are skipped 2',
			't.items: rows that the merge brought were deleted since 2',
			't.log: rows that the merge brought were changed or deleted since 2',
			't.players: rows that the merge brought were changed since 1',
			't.players: rows that the merge brought were deleted since 2',
			't.ranks: rows that the merge brought were deleted since 2'), 'what users did is counted');

	# The way back.
	sql($name, q{DELETE FROM t.items WHERE mark = 'x5'});
	sql($name, 'CALL snowflake_migrate.rollback(' . run_of($name) . ', force => true)');
	is(sql($name, q{SELECT count(*) FROM t.players WHERE mark ~ '^s'}), 0, 'the way back takes what the merge brought');
	is(sql($name, q{SELECT string_agg(mark || ' ' || name, ' ' ORDER BY mark) FROM t.players WHERE mark ~ '^x' OR mark = 'tp30'}), 'tp30 p9 x1 p7 x2 p7_s', 'and leaves what users made');
	is(sql($name, q{SELECT w.mark FROM t.wallets AS w JOIN t.accounts AS a ON a.id = account_id WHERE login = 'a4'}), 'x4', 'a wallet is again as a user had left it');
}

# As a role that has the rights that a merge needs and no other: a name that is not committed, rows that are locked, readers, clashes
# that no policy is for, and a server that is killed.
{
	my $name = database('locks', q{SELECT snowflake_migrate.grant_to('merger')}, 'REVOKE UPDATE ON t.kinds FROM merger');
	my $statement = call_sql('u', 200, 20);
	my $place = $server->connstr($name) . ' user=merger application_name=merge';
	my $refused = sub {
		my ($sql, $pattern, $what) = @_;
		my ($out, $err) = ('', '');

		ok(!IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $place, '-c', $sql ], '>', \$out, '2>', \$err), "$what is refused");
		like($err, $pattern, "$what: the error says why");
	};

	$refused->($statement, qr/permission denied for table t\.kinds\nDETAIL:  With target_in_use.*GRANT UPDATE ON t\.kinds TO /s, 'a merge that could not lock what its rows refer to');
	foreach my $other (qw(dry_run rebuild_indexes))
	{
		$refused->($statement =~ s/target_in_use/$other => true, target_in_use/r, qr/$other cannot be combined with target_in_use/, $other);
	}
	sql($name, 'GRANT UPDATE ON t.kinds TO merger');

	my $writer = $server->background_psql($name);
	my $reader = $server->background_psql($name);
	my $locker = $server->background_psql($name);
	my $holder = hold($name, 'ub1');

	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t.players, t.accounts, t.ranks');
	$writer->query_safe(q{BEGIN; INSERT INTO t.players (account_id, name, mark) SELECT id, 'p5', 'y1' FROM t.accounts WHERE login = 'a4'});
	$locker->query_safe(q{BEGIN; SELECT FROM t.accounts WHERE login = 'a12' FOR UPDATE});

	my $call = start_merge($name, $statement, 'merger');

	wait_until($call, q{EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'merge' AND wait_event = 'transactionid')},
		'a batch waits for who has not committed');
	# The wallets, one of whose accounts is locked: who wants what the batch has inserted does not wait for that lock.  No batch passes it.
	sql($name, q{SET lock_timeout = '10s'}, q{INSERT INTO t.wallets SELECT id, 'y3' FROM t.accounts WHERE mark = 'ua13'});
	$locker->query_safe('COMMIT');
	wait_until($call, q{(SELECT rows_done = rows_to_do FROM snowflake_migrate.progress WHERE relation = 't.wallets')}, 'it goes on when that is over');
	wait_until($call, q{EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'merge' AND wait_event = 'transactionid')},
		'a batch waits for a name that is not committed');
	$writer->query_safe('COMMIT');
	wait_until($call, $stopped, 'it is stopped at the bounties');
	is(sql($name, q{SELECT string_agg(mark || ' ' || name, ', ' ORDER BY mark) FROM t.players WHERE name ~ '^p5(_|$)'}), 'up5 p5_u, y1 p5',
		'a name that is committed while a batch waits clashes, and that is resolved');
	$_->quit foreach $writer, $locker, $reader;

	# Killed here, and cancelled by an error.
	$server->crash(sql($name, q{SELECT pid FROM pg_stat_activity WHERE application_name = 'merge'}));
	$call->{run}->finish;
	eval { $holder->quit };
	sql($name, 'TRUNCATE watch.stops', q{INSERT INTO t.bounties (player_id, mark) SELECT id, 'ub3' FROM t.players WHERE mark = 'tp1'},
		q{DELETE FROM t.players WHERE mark = 'up5'});
	$refused->($statement, qr/cannot go on: the target changed.*bounties_mark_key: rows clash \(1\) for example ub3.*t\.players that were deleted meanwhile \(1\)/s,
		'a clash without a policy');
	is(sql($name, 'SELECT state FROM snowflake_migrate.runs ORDER BY run DESC LIMIT 1'), 'copying', 'the run is not finished');
	$refused->($statement =~ s/, target_in_use => true//r, qr/has begun with target_in_use => true/, 'another way to go on');
	sql($name, q{DELETE FROM t.bounties WHERE mark = 'ub3'},
		q{SELECT snowflake_migrate.declare_reference('t.bounties', 'player_id', 't.players', dangling => 'skip')});
	# However short the deadlock_timeout, there is a limit: 0 would be none.
	is(sql($name, 'BEGIN', 'SET LOCAL deadlock_timeout = 1', 'SELECT FROM snowflake_migrate.runs AS r, snowflake_migrate_internal.next_step(r.run)', 'SHOW lock_timeout', 'ROLLBACK'),
		'1ms', 'a batch waits for a lock for a moment');
	finish_merge(start_merge($name, $statement, 'merger'), 'put right');
	is($server->safe_psql($name, $verify, connstr => $place), '', 'it is verified');
	is(sql($name, q{SELECT count(*) FROM t.bounties WHERE mark ~ '^u'}), 9, 'a bounty on a player who was deleted is left out, as is declared');
	is(sql($name, q{SELECT w.mark FROM t.wallets AS w JOIN t.accounts AS a ON a.id = account_id WHERE a.mark = 'ua13'}), 'uw13',
		'a wallet that came meanwhile is replaced, as is declared');
	is(sql($name, q{SELECT former_row ->> 'mark' FROM snowflake_migrate.records WHERE policy = 'keep_source' AND former_row ->> 'mark' = 'y3'}), 'y3',
		'and is on record');
}

done_testing();
