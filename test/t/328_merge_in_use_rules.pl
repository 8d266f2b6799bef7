# The rules of a merge with a target in use: rows that stay behind, a precedence between sources, policies that can't be followed, and
# several jobs.
#
# As doc/merging.md says: what stays behind is decided when the maps are made, also of rows that are resolved again.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Merge::InUse qw($server $stopped $verify begin call_sql database finish_merge hold players run_of sql start_merge wait_until);
use Test::More;

begin();

# Of these, none may come: players and accounts that the conditions name, the players of these accounts, and all that must refer to them.
my @behind = qw(sa9 sa12 sg3 sp8 sp10 sp48 sp11 sp51);
my $behind = join ',', map { "'$_'" } @behind;

{
	my $name = database('behind',
		q{SELECT snowflake_migrate.declare_table('t.players', 'copy', "only" => $$mark <> ALL ('{sp10,sp11}')$$)},
		q{SELECT snowflake_migrate.declare_table('t.accounts', 'copy', "only" => $$mark NOT IN ('sa9', 'sa12')$$)},
		q{SELECT snowflake_migrate.declare_table('t.guilds', 'copy', "only" => $$name <> 'g3'$$)});
	my $first = sql($name, q{SELECT string_agg(p::text, ' ' ORDER BY id) FROM t.players AS p});
	my $holder = hold($name, 'sa1');
	my $call = start_merge($name, call_sql('s', 100, 20) =~ s/true\)/true, jobs => 3)/r);

	wait_until($call, $stopped, 'the merge is stopped at its first row');
	like($call->{err}, qr/NOTICE:  a merge into a target that is in use has one job\nDETAIL:  What clashes/, 'a merge into a target in use has one job, and says so');
	is(sql($name, q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'snowflake_migrate worker'}), 0, 'there are no workers');
	sql($name,
		# names of rows that stay behind, and one that is to come: what is not copied yet is resolved again
		q{INSERT INTO t.accounts (login, mark) VALUES ('a9', 'x1'), ('a2', 'x2')},
		q{INSERT INTO t.players (account_id, name, mark) SELECT id, 'p10', 'x3' FROM t.accounts WHERE login = 'a4'},
		q{INSERT INTO t.players (account_id, name, mark) SELECT id, 'p7', 'x4' FROM t.accounts WHERE login = 'a4'},
		q{INSERT INTO t.guilds (name, mark) VALUES ('g3', 'x5'), ('g2', 'x6')},
		# what stands for a row that comes, and what is like one that stays behind
		q{DELETE FROM t.accounts WHERE login = 'a8'}, q{DELETE FROM t.accounts WHERE login = 'a12'},
		q{DELETE FROM t.items WHERE kind_id = (SELECT id FROM t.kinds WHERE code = 'k4')}, q{DELETE FROM t.kinds WHERE code = 'k4'});
	my $former = $holder;
	$holder = hold($name, 'si60');
	$former->quit;
	wait_until($call, $stopped, 'it goes on to the items');
	# a row that is deleted after others were left behind, whose references become null, or which are skipped
	sql($name, q{DELETE FROM t.players WHERE mark = 'sp20'}, q{DELETE FROM t.guilds WHERE mark = 'sg5'},
		q{INSERT INTO t.players (account_id, name, mark) SELECT id, 'x7', 'x7' FROM t.accounts WHERE mark = 'x1'});
	$holder->quit;
	finish_merge($call, 'rows stay behind');
	is(sql($name, $verify), '', 'it is verified');
	foreach my $table (qw(accounts guilds players))
	{
		is(sql($name, "SELECT string_agg(mark, ' ') FROM t.$table WHERE mark IN ($behind)"), '', "$table: none of those that stay behind");
		is(sql($name, "SELECT string_agg(mark, ' ') FROM s.$table WHERE mark NOT IN ($behind, 'sp20', 'sg5') AND mark NOT IN (SELECT mark FROM t.$table)"),
			$table eq 'accounts' ? join(' ', sort { substr($a, 2) <=> substr($b, 2) } 'sa2', map { 'sa' . 4 * $_ } grep { $_ != 2 && $_ != 3 } 1 .. 10) : '',
			"$table: all others, but accounts that are the target's");
	}
	foreach my $child ([ items => 'owner_id' ], [ ranks => 'player_id' ], [ bounties => 'player_id' ])
	{
		my ($table, $column) = @$child;

		is(sql($name, "SELECT count(*) FROM t.$table AS c JOIN t.players AS p ON p.id = c.$column WHERE p.mark ~ '^s'"),
			sql($name, "SELECT count(*) FROM s.$table AS c JOIN s.players AS p ON p.id = c.$column WHERE p.mark NOT IN ($behind, 'sp20')"),
			"$table: those of rows that came");
	}
	is(sql($name, qq{SELECT count(*) FROM t.players AS p JOIN s.players AS s USING (mark) WHERE s.guild_id = 3 AND p.guild_id IS NULL}),
		sql($name, qq{SELECT count(*) FROM s.players WHERE guild_id = 3 AND mark NOT IN ($behind)}), 'references to a guild that stays behind become null');
	is(sql($name, q{SELECT action || ' ' || count(*) FROM snowflake_migrate.map WHERE relation = 't.players' GROUP BY action ORDER BY action}),
		"copied 55\nleft_behind 5", 'the map has them');
	is(sql($name, q{SELECT bool_and(rows_done = rows_to_do) FROM snowflake_migrate.progress}), 't', 'all is counted');

	sql($name, q{DELETE FROM t.players WHERE mark = 'x7'});
	sql($name, 'CALL snowflake_migrate.rollback(' . run_of($name) . ', force => true)');
	foreach my $table (qw(accounts guilds players))
	{
		is(sql($name, "SELECT string_agg(mark, ' ') FROM t.$table WHERE mark ~ '^s'"), '', "$table: the way back takes what came");
	}
}

# A precedence between sources holds for what is resolved again.  One that could change the target's rows is refused, when the merge
# begins and when it goes on.
{
	my $name = database('ranked', q{SELECT snowflake_migrate.declare_policy('t.accounts', 'accounts_login_key', 'keep_target', precedence => 'mark DESC')});
	my $statement = call_sql('s,u', '103,104', 20);
	my $refused = sub {
		my ($declaration, $pattern) = @_;
		my ($status, $out, $err) = $server->psql($name, "BEGIN; SELECT snowflake_migrate.declare_policy($declaration); "
				. "SELECT snowflake_migrate_internal.start('{{s},{u}}', '{t}', '{103,104}', 20, false, true, false, NULL, false)");

		isnt($status, 0, "$declaration: refused");
		like($err, $pattern, "$declaration: the error says why");
	};
	my $by = qr/policy "\w+" of constraint "\w+" cannot be followed with target_in_use/;

	$refused->(q{'t.players', 'players_name_key', 'suffix', '_x', precedence => 'mark'}, qr/$by\nDETAIL:  With a precedence, it could change rows of table t\.players/);
	$refused->(q{'t.accounts', 'accounts_number_key', 'next_free', precedence => 'mark'}, qr/$by\nDETAIL:  With a precedence, it could change rows of table t\.accounts/);
	$refused->(q{'t.wallets', 'wallets_pkey', 'keep_first', precedence => 'mark'}, qr/$by\nDETAIL:  With a precedence, it could change rows of table t\.wallets/);
	$refused->(q{'t.wallets', 'wallets_pkey', 'keep_source', combine => '{"mark": "max"}'}, qr/$by\nDETAIL:  With combine, it could change rows of table t\.wallets/);

	my $holder = hold($name, 'ua5');
	my $call = start_merge($name, $statement);

	wait_until($call, $stopped, 'the merge is stopped');
	sql($name, q{SELECT snowflake_migrate.declare_policy('t.players', 'players_name_key', 'suffix', '_x', precedence => 'mark')},
		q{INSERT INTO t.accounts (login, mark) VALUES ('a5', 'x1')}, q{DELETE FROM t.accounts WHERE login = 'a8'});
	$holder->quit;
	$call->{run}->finish;
	isnt($call->{run}->result(0), 0, 'a rule that came meanwhile: the call fails');
	like($call->{err}, qr/$by/, 'a rule that came meanwhile: the error says why');
	is(sql($name, 'SELECT state FROM snowflake_migrate.runs'), 'copying', 'the run is not finished');
	$refused = [ $server->psql($name, $statement) ];
	like($refused->[2], qr/$by/, 'nor does another call go on');
	sql($name, q{SELECT snowflake_migrate.declare_policy('t.players', 'players_name_key', 'suffix', '_{source}')});
	finish_merge(start_merge($name, $statement), 'declared as before');
	is(sql($name, $verify), '', 'it is verified');
	is(sql($name, q{SELECT string_agg(login || ' ' || mark, ', ' ORDER BY login) FROM t.accounts WHERE login IN ('a1', 'a4', 'a5', 'a8')}),
		'a1 ua1, a4 ta1, a5 x1, a8 ua8', 'of two sources, the row that ranks first stays, also where it was resolved again');
	is(sql($name, q{SELECT string_agg(w.mark, ' ' ORDER BY login) FROM t.wallets AS w JOIN t.accounts AS a ON a.id = account_id WHERE login IN ('a5', 'a8')}),
		'sw5 sw8', 'and so do rows whose key is that of a row that was resolved again');
	is(sql($name, q{SELECT count(DISTINCT a.login) FROM t.players AS p JOIN t.accounts AS a ON a.id = account_id WHERE p.mark IN ('sp7', 'up7', 'sp47', 'up47')}),
		1, 'and the players of both are its');
}

# Where triggers do not fire, nothing would tell that rows clash in a deferrable constraint.
{
	my $name = database('deferred', 'ALTER TABLE t.players DROP CONSTRAINT players_name_key',
		'ALTER TABLE t.players ADD CONSTRAINT players_name_key UNIQUE (name) DEFERRABLE');
	my ($status, $out, $err) = $server->psql($name, call_sql('s', 105, 20));

	isnt($status, 0, 'a deferrable constraint is refused');
	like($err, qr/unique or exclusion constraints are deferrable\nDETAIL:  Table t\.players, constraint "players_name_key"\./, 'the error names it');
	is(sql($name, 'SELECT count(*) FROM snowflake_migrate.runs'), 0, 'nothing has begun');
}

# What is copied does not clash in an exclusion constraint with itself, nor a row with the one whose place it takes.
{
	my $rooms = 'rooms (id bigserial PRIMARY KEY, name text NOT NULL CONSTRAINT %1$s_name UNIQUE, code text CONSTRAINT %1$s_code UNIQUE,
		mark text, d int4range, CONSTRAINT %1$s_d EXCLUDE USING gist (d WITH &&))';
	my $name = database('rooms', (map { "CREATE TABLE $_." . sprintf($rooms, $_) } qw(t s)),
		q{SELECT snowflake_migrate.adopt('{t.rooms}')},
		q{SELECT snowflake_migrate.declare_policy('t.rooms', 't_name', 'suffix', '_{source}')},
		q{SELECT snowflake_migrate.declare_policy('t.rooms', 't_code', 'keep_source')},
		q{INSERT INTO t.rooms (name, code, mark, d) VALUES ('lobby', 'c15', 't1', '[152,153]')},
		q{INSERT INTO s.rooms (name, code, mark, d) SELECT 'r' || i, 'c' || i, 's' || i, int4range(10 * i, 10 * i + 5) FROM generate_series(1, 20) AS i},
		'CREATE TRIGGER stop BEFORE INSERT ON t.rooms FOR EACH ROW EXECUTE FUNCTION watch.stop()', 'ALTER TABLE t.rooms ENABLE ALWAYS TRIGGER stop');
	# The batch's first: fewer rows, as it is tried again with, have it, too.
	my $holder = hold($name, 's11');
	my $call = start_merge($name, call_sql('s', 106, 10));

	wait_until($call, $stopped, 'rooms: the merge is stopped in its second batch');
	is(sql($name, 'SELECT count(*) FROM t.rooms'), 11, 'rooms: the first is copied');
	sql($name, q{INSERT INTO t.rooms (name, mark, d) VALUES ('r12', 'x1', '[1000,1000]')});
	$holder->quit;
	finish_merge($call, 'rooms');
	is(sql($name, $verify), '', 'rooms: it is verified');
	is(sql($name, q{SELECT string_agg(concat_ws(' ', mark, name, d), ', ' ORDER BY mark) FROM t.rooms WHERE mark IN ('x1', 's12', 's15', 't1')}),
		's12 r12_s [120,125), s15 r15 [150,155), x1 r12 [1000,1001)', 'rooms: one gets a suffix, another takes the place of the target\'s');

	# What clashes all the same is refused, and goes on when it is gone.
	sql($name, 'CALL snowflake_migrate.rollback(' . run_of($name) . ', force => true)');
	$holder = hold($name, 's11');
	$call = start_merge($name, call_sql('s', 107, 10));
	wait_until($call, $stopped, 'rooms: another merge is stopped in its second batch');
	sql($name, q{INSERT INTO t.rooms (name, mark, d) VALUES ('x2', 'x2', '[181,181]')});
	$holder->quit;
	$call->{run}->finish;
	like($call->{err}, qr/cannot go on.*t_d: rows clash with the target's in the exclusion constraint \(1\) for example 18:/s, 'rooms: a row that clashes is named');
	sql($name, q{DELETE FROM t.rooms WHERE mark = 'x2'});
	finish_merge(start_merge($name, call_sql('s', 107, 10)), 'rooms, once more');
	is(sql($name, $verify), '', 'rooms: it is verified once more');
}

# Rows that would be lost, as the target is now, are asked about, as they are before a merge begins.
{
	my $seats = 'seats (id bigserial PRIMARY KEY, name text CONSTRAINT %1$s_name UNIQUE, code text CONSTRAINT %1$s_code UNIQUE, mark text)';
	my $name = database('seats', (map { "CREATE TABLE $_." . sprintf($seats, $_) } qw(t s)),
		q{SELECT snowflake_migrate.adopt('{t.seats}')},
		(map { "SELECT snowflake_migrate.declare_policy('t.seats', '$_', 'keep_source')" } qw(t_name t_code)),
		q{INSERT INTO s.seats (name, code, mark) SELECT 'n' || i, 'c' || i, 's' || i FROM generate_series(1, 20) AS i},
		'CREATE TRIGGER stop BEFORE INSERT ON t.seats FOR EACH ROW EXECUTE FUNCTION watch.stop()', 'ALTER TABLE t.seats ENABLE ALWAYS TRIGGER stop');
	my $holder = hold($name, 's11');
	my $call = start_merge($name, call_sql('s', 108, 10));

	wait_until($call, $stopped, 'seats: the merge is stopped in its second batch');
	sql($name, q{INSERT INTO t.seats (name, code, mark) VALUES ('n15', 'c16', 'x1')});
	$holder->quit;
	$call->{run}->finish;
	isnt($call->{run}->result(0), 0, 'seats: the call fails');
	like($call->{err}, qr/cannot go on.*table t\.seats: rows become one with rows that in the end do not have the value by which they clash \(1\) for example 15: .*accept_warnings/s,
		'seats: a row that would be lost is named');
	is(sql($name, q{SELECT count(*) FROM t.seats WHERE mark = 'x1'}), 1, 'seats: nothing is lost before somebody says so');
	finish_merge(start_merge($name, call_sql('s', 108, 10) =~ s/\)$/, accept_warnings => true)/r), 'seats, where all are the same');
	is(sql($name, $verify), '', 'seats: it is verified');
	is(sql($name, q{SELECT count(*), string_agg(concat_ws(' ', name, code), ', ') FILTER (WHERE mark = 's16') FROM t.seats}), '19|n16 c16', 'seats: one row stays of three');
}

done_testing();
