# Merging into a target whose users write all the time: they insert names that are to come, rename rows to them, delete rows,
# and refer to rows that were merged, while two merges run with small batches, one of which is killed.
#
# What users did is logged here, when they have committed it; what must have come of it is told without the merge's map.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Merge::InUse qw($server $verify begin call_sql database finish_merge players run_of sql start_merge);
use Test::More;
use Time::HiRes qw(usleep);

my $seed = $ENV{MERGE_SEED} || 1 + int rand 1_000_000;

note("seed of the users: $seed");
srand($seed);
begin();

# Of a table without a key no row can be left out.
my $name = database('load', 'DELETE FROM s.log', 'DELETE FROM u.log', q{SELECT snowflake_migrate.declare_reference('t.bounties', 'player_id', 't.players', dangling => 'skip')});
my %login;    # of the players that are or were there, by mark
my %name;     # undefined: deleted
my %owner;    # of items of users
my %gone;     # accounts and guilds that were deleted
my $made = 0;

foreach (split /\n/, sql($name, 'SELECT p.mark, name, login FROM t.players AS p JOIN t.accounts AS a ON a.id = account_id'))
{
	my ($mark, $called, $login) = split /\|/;

	$name{$mark} = $called;
	$login{$mark} = $login;
}

# A user does something in a transaction: the statement, and what is logged of the rows that it returns.
my $any = 'ORDER BY random() LIMIT 1';
my @acts = (
	sub {
		my ($n, $mark) = (1 + int rand 60, 'x' . ++$made);

		return (qq{INSERT INTO t.players (account_id, name, mark) SELECT id, 'p$n', '$mark' FROM t.accounts $any
			RETURNING (SELECT login FROM t.accounts AS a WHERE a.id = account_id)}, sub { $name{$mark} = "p$n"; $login{$mark} = $_[0] });
	},
	sub {
		my $n = 1 + int rand 60;

		return (qq{UPDATE t.players SET name = 'p$n' WHERE id = (SELECT id FROM t.players $any) RETURNING mark}, sub { $name{ $_[0] } = "p$n" });
	},
	sub {
		return ("DELETE FROM t.players WHERE id = (SELECT id FROM t.players $any) RETURNING mark", sub { $name{ $_[0] } = undef });
	},
	sub {
		my $n = 1 + int rand 40;

		return ("INSERT INTO t.accounts (login, mark) VALUES ('a$n', 'x" . ++$made . "')", sub { });
	},
	sub {
		# Who refers to it waits, so that these are all that go with it.
		return (qq{WITH d AS MATERIALIZED (SELECT id, mark FROM t.accounts WHERE id = (SELECT id FROM t.accounts $any) FOR UPDATE)
			SELECT 'account', mark FROM d}, sub { $gone{ $_[1] } = 1 }, 'account');
	},
	sub {
		my $mark = 'x' . ++$made;

		return (qq{INSERT INTO t.items (owner_id, kind_id, mark) SELECT p.id, k.id, '$mark' FROM t.players AS p, t.kinds AS k $any
			RETURNING (SELECT mark FROM t.players AS p WHERE p.id = owner_id)}, sub { $owner{$mark} = $_[0] });
	},
	sub {
		my $n = 1 + int rand 10;

		return ("INSERT INTO t.guilds (name, mark) VALUES ('g$n', 'x" . ++$made . "')", sub { });
	},
	sub {
		return ("DELETE FROM t.guilds WHERE id = (SELECT id FROM t.guilds $any) RETURNING mark", sub { $gone{ $_[0] } = 1 });
	});
my @likely = (0, 0, 0, 1, 1, 1, 2, 3, 3, 4, 5, 5, 6, 7);

# Users have sessions, with transactions of several statements, that may fail, as they do not wait for long.
my @users;

sub connect_users
{
	@users = map { { session => $server->background_psql($name, on_error_stop => 0), pending => [], open => 0 } } 1 .. 3;
	$_->{session}->query(q{SET lock_timeout = '50ms'}) foreach @users;
	return;
}

sub ask
{
	my ($user, $sql) = @_;

	# It keeps what was said before.
	$user->{session}->{stderr} = '';

	my $out = $user->{session}->query($sql);

	return $user->{session}->{stderr} eq '' ? [ map { [ split /\|/ ] } split /\n/, $out ] : undef;
}
my ($committed, $failed) = (0, 0);

sub end_transaction
{
	my ($user, $succeeds) = @_;

	if (ask($user, $succeeds ? 'COMMIT' : 'ROLLBACK') && $succeeds) { $_->() foreach @{ $user->{pending} }; $committed++ }
	else { $failed++ }
	@$user{ 'pending', 'open' } = ([], 0);
	return;
}

sub act
{
	my $user = $users[ int rand @users ];
	my ($sql, $log, $what) = $acts[ $likely[ int rand @likely ] ]->();

	ask($user, 'BEGIN') unless $user->{open}++;

	my $rows = ask($user, $sql);
	my @logs = map { my $row = $_; sub { $log->(@$row) } } @{ $rows // [] };

	if ($rows && $what && @$rows)
	{
		my $players = ask($user, "SELECT p.mark FROM t.players AS p JOIN t.accounts AS a ON a.id = account_id WHERE a.mark = '$rows->[0]->[1]'");

		push @logs, map { my $mark = $_->[0]; sub { $name{$mark} = undef } } @{ $players // [] };
		$rows = ask($user, "DELETE FROM t.accounts WHERE mark = '$rows->[0]->[1]'");
	}
	push @{ $user->{pending} }, @logs;
	end_transaction($user, $rows) if !$rows || $user->{open} > int rand 4;
	return;
}

# Keeps merges from copying items, until the session ends.
sub hold
{
	my $holder = $server->background_psql($name);

	# What users have written in transactions that are open keeps from the lock, and nobody else ends them.
	end_transaction($_, 0) foreach grep { $_->{open} } @users;
	$holder->query_safe('BEGIN; LOCK TABLE t.items IN SHARE MODE');
	return $holder;
}

# Merges while users act.
sub merge
{
	my ($source, $node, $killed) = @_;
	my $statement = call_sql($source, $node, 20);
	my $before = $committed;
	# It can't end before users have done something, however slow they are, and it is killed.
	my $holder = hold();
	my $call = start_merge($name, $statement);
	# So that a merge comes to its end on a slow machine too, where users come to less.
	my $acts = 120;

	for (;;)
	{
		if ($acts-- > 0 || $holder) { act() }
		elsif (!grep { $_->{open} } @users) { usleep(10_000) }
		# A transaction that is left open would hold the merge up.
		else { end_transaction($_, 0) foreach @users }
		$call->{run}->pump_nb if $call->{run}->pumpable;
		if ($holder && !$killed && $committed > $before + 10)
		{
			$holder->quit;
			undef $holder;
		}
		if ($killed && sql($name, q{SELECT sum(rows_done) > 120 FROM snowflake_migrate.progress WHERE state = 'copying'}) eq 't')
		{
			$server->crash(sql($name, q{SELECT pid FROM pg_stat_activity WHERE application_name = 'merge'}));
			$call->{run}->finish;
			eval { $_->quit } foreach $holder, map { $_->{session} } @users;
			connect_users();
			$holder = hold();
			$call = start_merge($name, $statement);
			$killed = 0;
		}
		last unless $call->{run}->pumpable;
	}
	finish_merge($call, $source);
	return;
}

connect_users();
merge('s', 100, 0);
merge('u', 101, 1);
foreach my $user (@users)
{
	ask($user, 'ROLLBACK');
	$user->{session}->quit;
}
note("$committed transactions of users, $failed that failed");
cmp_ok($committed, '>', 20, 'users have done something');
is(sql($name, "SELECT run, (snowflake_migrate.verify(run)).* FROM snowflake_migrate.runs WHERE state = 'done'"), '', 'both merges are verified');

# Each player of the sources, and those of users, as they left them.
my %found = map { my ($mark, @rest) = split /\|/; $mark => \@rest } split /\n/, sql($name,
	q{SELECT p.mark, p.name, a.login, coalesce(g.mark, '-'), p.id FROM t.players AS p JOIN t.accounts AS a ON a.id = account_id
		LEFT JOIN t.guilds AS g ON g.id = guild_id});
my @wrong;

foreach my $source (qw(s u))
{
	foreach (split /\n/, sql($name, qq{SELECT p.mark, p.name, a.login, coalesce(g.mark, '-'), a.mark FROM $source.players AS p
		JOIN $source.accounts AS a ON a.id = account_id LEFT JOIN $source.guilds AS g ON g.id = guild_id}))
	{
		my ($mark, $called, $login, $guild, $account) = split /\|/;
		my $is = delete $found{$mark};

		# Deleted, or gone with an account before it came.
		if (!$is) { push @wrong, "$mark is lost" unless exists $name{$mark} && !defined $name{$mark} || $gone{$account}; next }
		push @wrong, "$mark is there, though it was deleted" if exists $name{$mark} && !defined $name{$mark};
		push @wrong, "$mark is called $is->[0]" unless defined $name{$mark} ? $is->[0] eq $name{$mark} : $is->[0] =~ /^\Q$called\E(_$source\d*)?$/;
		push @wrong, "$mark belongs to $is->[1]" if $is->[1] ne $login;
		push @wrong, "$mark is in guild $is->[2]" unless $is->[2] eq ($gone{$guild} ? '-' : $guild);
	}
}
foreach my $mark (grep { !/^[su]/ } keys %name)
{
	my $is = delete $found{$mark};

	push @wrong, "$mark of a user's is " . ($is ? $is->[0] : 'lost')
	  unless defined $name{$mark} ? $is && $is->[0] eq $name{$mark} && $is->[1] eq $login{$mark} : !$is;
}
is_deeply(\@wrong, [], 'all players are as their source has them, or as users left them')
  or diag("@wrong\n", sql($name, q{SELECT run, source, old_key, new_key, policy, constraint_name, old_value, new_value FROM snowflake_migrate.records
		WHERE relation IN ('t.players', 't.accounts') AND policy <> 'suffix'}));
is_deeply([ keys %found ], [], 'there are no others');

# Each item of the sources whose owner is there, and those of users.
foreach my $source (qw(s u))
{
	is(sql($name, qq{SELECT string_agg(coalesce(s.mark, i.mark), ' ') FROM
		(SELECT i.mark, p.mark AS owner, k.code FROM $source.items AS i JOIN $source.players AS p ON p.id = owner_id JOIN $source.kinds AS k ON k.id = kind_id
		 WHERE p.mark IN (SELECT mark FROM t.players)) AS s
		FULL JOIN (SELECT i.mark, p.mark AS owner, k.code FROM t.items AS i JOIN t.players AS p ON p.id = owner_id JOIN t.kinds AS k ON k.id = kind_id
				   WHERE i.mark ~ '^$source') AS i USING (mark, owner, code)
		WHERE s.mark IS NULL OR i.mark IS NULL}), '', "items of $source");
}

my %items = map { split /\|/ } split /\n/, sql($name, q{SELECT i.mark, p.mark FROM t.items AS i JOIN t.players AS p ON p.id = owner_id WHERE i.mark ~ '^x'});
my %there = map { $_ => 1 } split /\n/, sql($name, 'SELECT mark FROM t.players');

is_deeply(\%items, { map { $_ => $owner{$_} } grep { $there{ $owner{$_} } } keys %owner }, 'items of users');
is(sql($name, q{SELECT count(*) FROM (SELECT rank, row_number() OVER (ORDER BY rating DESC) AS n, max(rank) OVER (PARTITION BY rating) AS m FROM t.ranks) AS r
	WHERE rank > m OR n > m}), 0, 'ranks are in the order of the ratings');

# The way back of the second leaves what users made, but for what refers to its rows.
sql($name, q{DELETE FROM t.items WHERE mark !~ '^u' AND owner_id IN (SELECT id FROM t.players WHERE mark ~ '^u')},
	q{DELETE FROM t.players WHERE mark !~ '^u' AND account_id IN (SELECT id FROM t.accounts WHERE mark ~ '^u')});

my $others = q{SELECT p.*, a.login, i.marks FROM t.players AS p JOIN t.accounts AS a ON a.id = account_id
	LEFT JOIN LATERAL (SELECT string_agg(mark, ' ' ORDER BY mark) AS marks FROM t.items WHERE owner_id = p.id AND mark !~ '^u') AS i ON true
	WHERE p.mark !~ '^u' ORDER BY p.id};
my $before = sql($name, $others);

sql($name, 'CALL snowflake_migrate.rollback(' . run_of($name) . ', force => true)');
is(sql($name, $others), $before, 'the way back leaves the rows of users and of the first merge');
is(sql($name, join ' UNION ALL ', map { "SELECT mark FROM t.$_ WHERE mark ~ '^u'" } qw(players accounts guilds items bounties wallets)), '', 'and takes all others');

done_testing();
