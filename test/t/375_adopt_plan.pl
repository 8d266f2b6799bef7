# Keys go over to snowflake ids while others write: what each writer was told is in the tables in the end, nobody waits for
# a plan that waits itself, and a plan that is cancelled or killed goes on where it was.
#
# The writers' own output is the record: it has a line for each row that they were told is written.

use strict;
use warnings FATAL => 'all';

use IPC::Run;
use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Snowflake::Wait qw(wait_until);
use Test::More;

my $server = Snowflake::Server->new('shop');
my $keys = q{'{accounts,orders}'};
my $writers = 2;
my $rows = 3000;
my $alone = $rows + 1;	# an order that no writer touches
my (@writers, %told, %unsure);
my $stops = 0;
my $started = 0;

$server->init;
$server->start;
$server->safe_psql('postgres', q{
	CREATE ROLE keeper LOGIN;
	CREATE DATABASE shop OWNER keeper;
});
$server->safe_psql('shop', qq{
	CREATE EXTENSION snowflake;
	CREATE EXTENSION snowflake_migrate;
	GRANT SELECT ON snowflake_migrate.declared_references TO keeper;
	SET ROLE keeper;
	CREATE SCHEMA game;
	CREATE TABLE game.accounts (id serial PRIMARY KEY, name text UNIQUE);
	CREATE TABLE game.orders (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, account int NOT NULL REFERENCES game.accounts, n int NOT NULL);
	CREATE INDEX ON game.orders (account);
	CREATE TABLE game.payments (id bigserial PRIMARY KEY, "order" int REFERENCES game.orders ON DELETE CASCADE, n int NOT NULL);
	CREATE INDEX ON game.payments ("order");
	CREATE TABLE game.friends (one int REFERENCES game.accounts, other int REFERENCES game.accounts, PRIMARY KEY (one, other));
	CREATE VIEW game.paid AS SELECT o.id, o.n, p.n AS paid FROM game.orders o JOIN game.payments p ON p."order" = o.id;
	INSERT INTO game.accounts (name) SELECT 'a' || g FROM generate_series(1, 100) g;
	INSERT INTO game.orders (account, n) SELECT 1 + g % 100, g FROM generate_series(1, $alone) g;
	INSERT INTO game.payments ("order", n) SELECT id, n FROM game.orders;
	INSERT INTO game.friends SELECT 1 + g % 100, 1 + g * 7 % 100 FROM generate_series(1, 99) g;
	ALTER ROLE keeper SET search_path = game, public;
});
$told{$_} = $_ foreach 1 .. $alone;

sub keeper { return ('psql', '-XAtq', '-d', $server->connstr('shop') . ' user=keeper', '-v', 'ON_ERROR_STOP=1', @_) }

sub sql
{
	my ($sql) = @_;
	my ($out, $err) = ('', '');

	IPC::Run::run([ keeper() ], \$sql, \$out, \$err) or die "$sql: $err";
	chomp $out;
	return $out;
}

# What a writer does: it adds orders with a payment, changes those that are its own, and deletes some.
sub statements
{
	my ($writer) = @_;
	my $sql = '';

	foreach my $round (1 .. 1000)
	{
		my $id = 1 + $writer + $writers * int(rand($rows / $writers));

		$sql .= sprintf q{WITH o AS (INSERT INTO orders (account, n) VALUES (%d, %d) RETURNING id, n)
			INSERT INTO payments ("order", n) SELECT id, n FROM o RETURNING 'is', "order", n;} . "\n", 1 + rand(100), rand(1e9);
		$sql .= "\\echo try|$id\nUPDATE orders SET n = n + 1 WHERE id = $id RETURNING 'is', id, n;\n";
		# There are others on the machine.
		$sql .= "SELECT pg_sleep(0.005);\n";
		$sql .= "\\echo try|$id\nDELETE FROM orders WHERE id = $id RETURNING 'gone', id, n;\n" if $round % 20 == 0;
	}
	return $sql;
}

# The numbers of those that are to begin anew.
sub start_writers
{
	foreach my $n (@_)
	{
		my $name = $server->basedir . "/writer_$n." . ++$started;
		my $writer = { out => "$name.out", err => '', read => 0, count => $writers[$n] ? $writers[$n]{count} : 0 };

		append_to_file("$name.sql", statements($n));
		append_to_file($writer->{out}, '');
		# Each line as it is told: what a writer was told and has not passed on is lost with it.
		$writer->{run} = IPC::Run::start([ 'stdbuf', '-oL', keeper(), '-f', "$name.sql" ], '<', '/dev/null', '>', $writer->{out}, '2>', \$writer->{err});
		$writers[$n] = $writer;
	}
	return;
}

# Reads what they were told since, line by line.
sub hear
{
	foreach my $n (0 .. $#writers)
	{
		my $writer = $writers[$n];
		my $ended = !$writer->{run}->pumpable;
		my $lines = substr(slurp_file($writer->{out}), $writer->{read}) =~ s/[^\n]*\z//r;

		$writer->{run}->pump_nb unless $ended;
		$writer->{read} += length $lines;
		foreach my $line (split /\n/, $lines)
		{
			my ($what, $id, $n) = split /\|/, $line;

			next unless defined $what && $what =~ /^(is|gone|try)$/;
			$writer->{last} = $what eq 'try' ? $id : undef;
			$told{$id} = $n if $what eq 'is';
			delete $told{$id} if $what eq 'gone';
			$writer->{count}++ if $what ne 'try';
		}
		start_writers($n) if $ended && $writer->{err} eq '';
	}
	return;
}

# Others can write: each writer has been told of so many more rows.
sub they_write
{
	my ($name, $rows) = @_;

	hear();

	my @before = map { $_->{count} } @writers;

	wait_until("the writers go on: $name", sub {
		hear();
		die "a writer has failed: $_->{err}" foreach grep { $_->{err} ne '' } @writers;
		return !grep { $writers[$_]{count} < $before[$_] + ($rows // 5) } 0 .. $#writers;
	});
	pass("they write: $name");
	return;
}

# Of the last row that a writer wanted to write, it may not have been told.
sub stop_writers
{
	foreach my $writer (@writers)
	{
		$writer->{run}->kill_kill;
		$writer->{err} = 'stopped';
	}
	hear();
	foreach my $writer (@writers)
	{
		$unsure{ $writer->{last} } = 1 if defined $writer->{last};
		$stops++;
	}
	@writers = ();
	return;
}

# The statements of a plan that are left, up to the first that matches.
sub steps_left
{
	my ($until, %change) = @_;
	my ($plan, $of) = ($change{plan} // 'adopt_plan', $change{keys} // $keys);
	my @steps = split /\0/, sql(qq{\\pset recordsep_zero on\nSELECT statement FROM snowflake_migrate.$plan($of) ORDER BY step});
	my @before;

	foreach my $step (@steps)
	{
		return (\@before, $step) if defined $until && $step =~ $until;
		push @before, $step;
	}
	return (\@before, undef);
}

# Starts a step as a session of its own.
sub start_step
{
	my ($step) = @_;
	my $run = { err => '' };

	$run->{run} = IPC::Run::start([ keeper(), '-c', q{SET application_name = 'plan'}, '-c', $step ], '<', '/dev/null', '>', '/dev/null', '2>', \$run->{err});
	return $run;
}

# Executes a plan up to the statement that matches, and starts that, while a transaction holds a lock.
sub start_at
{
	my ($until, %change) = @_;
	my ($before, $step) = steps_left($until, %change);

	sql($_) foreach @$before;
	$step =~ s/\)$/, $change{add})/ if $change{add};
	!$change{after} || $server->poll_query_until('shop', $change{after}) or die "waited in vain for: $change{after}";

	my $holder = hold($change{hold});

	local $ENV{PGOPTIONS} = $change{options} // '';

	my $run = start_step($step);

	$run->{holder} = $holder;
	return $run;
}

sub planner { return $server->safe_psql('shop', q{SELECT pid FROM pg_stat_activity WHERE application_name = 'plan'}) }

# It is there, and this holds of it.
sub wait_for_plan
{
	my ($condition) = @_;

	$server->poll_query_until('shop', "SELECT count(*) = 1 FROM pg_stat_activity AS a WHERE application_name = 'plan' AND ($condition)")
	  or die "waited in vain for the plan: $condition";
	return;
}

sub cancel
{
	my ($run, $name) = @_;

	# PostgreSQL takes one that comes together with a lock_timeout for that.
	wait_until("$name is cancelled", sub {
		$server->safe_psql('shop', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'plan'});
		hear();
		$run->{run}->pump_nb if $run->{run}->pumpable;
		return !$run->{run}->pumpable;
	});
	$run->{run}->finish;
	like($run->{err}, qr/canceling statement due to user request/, "$name: cancelled");
	$run->{holder}->quit;
	they_write("after $name");
	return;
}

sub crash
{
	my ($run, $name) = @_;

	$server->crash(planner());
	$run->{run}->finish;
	like($run->{err}, qr/terminating connection|server closed the connection|connection to server was lost/, "$name: killed");
	# Its server process is gone.
	eval { $run->{holder}->quit };
	stop_writers();
	start_writers(0 .. $writers - 1);
	they_write("after $name");
	return;
}

# A transaction that stays open, with a lock on a table.
sub hold
{
	my ($lock) = @_;
	my $session = $server->background_psql('shop');

	$session->query_safe("BEGIN; $lock");
	return $session;
}

sub compare
{
	my ($name) = @_;
	my %is = map { split /\|/ } split /\n/, sql('SELECT id, n FROM orders');
	my @wrong = grep { !$unsure{$_} && ($is{$_} // 'none') ne $told{$_} } keys %told;
	my @more = grep { !exists $told{$_} && !$unsure{$_} } keys %is;

	is_deeply([ @wrong[0 .. ($#wrong < 5 ? $#wrong : 5)] ], [], "$name: " . scalar(keys %told) . ' orders are as the writers were told');
	cmp_ok(scalar @more, '<=', $stops, "$name: and no others, but what a writer was stopped at");
	is(sql('SELECT count(*) FROM payments p LEFT JOIN orders o ON o.id = p."order" WHERE o.id IS NULL'), 0, "$name: payments belong to orders");
	return;
}

# As the tables look to others.
sub schema
{
	my ($database) = @_;
	my ($dump, $err) = ('', '');

	IPC::Run::run([ 'pg_dump', '-d', $server->connstr($database), '-n', 'game', '-s' ], '>', \$dump, '2>', \$err) or die $err;
	return $dump =~ s/^\\(un)?restrict.*$//gmr;
}

my $before = schema('shop');

start_writers(0 .. $writers - 1);
they_write('before');

# A short statement waits for its lock as long as a transaction holds another, and lets others through; it is cancelled,
# then killed.
sub stop_at
{
	my ($name, $until, $lock, %change) = @_;

	foreach my $end (\&cancel, \&crash)
	{
		my $run = start_at($until, hold => $lock, %change);

		wait_until("$name has been tried", sub { hear(); $run->{run}->pump_nb; return $run->{err} =~ /attempt 1 of/ });
		they_write("while $name waits");
		$end->($run, $name);
	}
	return;
}

# Back from the middle.
{
	my ($steps) = steps_left(qr/ADD CONSTRAINT snowflake_new_payments/);

	sql($_) foreach @$steps;
	they_write('with columns and indexes of the plan');
	stop_at('the undo', qr/ALTER TABLE game.orders DROP COLUMN/, 'LOCK TABLE game.orders IN ACCESS SHARE MODE', plan => 'adopt_undo_plan');
	($steps) = steps_left(undef, plan => 'adopt_undo_plan');
	sql($_) foreach @$steps;
	is(schema('shop'), $before, 'undone: the tables are as before');
	they_write('after the undo');
}

stop_at('the first step', qr/ADD COLUMN/, 'LOCK TABLE game.accounts IN ACCESS SHARE MODE');

# Filling does not end while another has a row.
foreach my $end (\&cancel, \&crash)
{
	my $run = start_at(qr/adopt_fill\('game.orders'/, add => 'max_rate => 300', hold => "SELECT FROM game.orders WHERE id = $alone FOR UPDATE");

	# It sleeps after a batch.
	wait_for_plan(q{query ~ 'adopt_fill' AND wait_event = 'PgSleep'});
	they_write('while it fills');
	$end->($run, 'filling');
	is(sql("SELECT snowflake_new_id FROM orders WHERE id = $alone"), '', 'a row is not filled yet');
}

# VACUUM waits where it is to freeze a row that a cursor is at.  The row is one that all transactions see as filled.
foreach my $end (\&cancel, \&crash)
{
	my $run = start_at(qr/VACUUM .* game.orders/, hold => "DECLARE held CURSOR FOR SELECT id FROM game.orders WHERE id = $alone; FETCH held",
		after => "SELECT max(age(a.backend_xmin)) < (SELECT age(o.xmin) FROM game.orders AS o WHERE o.id = $alone) FROM pg_stat_activity AS a",
		options => '-c vacuum_freeze_table_age=0 -c vacuum_freeze_min_age=0');

	wait_for_plan(q{wait_event IN ('BufferPin', 'BufferCleanup')});
	they_write('while VACUUM is in the middle');
	$end->($run, 'VACUUM');
}

stop_at('the proof', qr/game.orders VALIDATE CONSTRAINT "~/, 'LOCK TABLE game.orders IN SHARE UPDATE EXCLUSIVE MODE');
stop_at('SET NOT NULL', qr/game.orders ALTER COLUMN .* SET NOT NULL/, 'LOCK TABLE game.orders IN ACCESS SHARE MODE');

# An index, while an old transaction keeps it from being built.
foreach my $end (\&cancel, \&crash)
{
	my $run = start_at(qr/CREATE UNIQUE INDEX CONCURRENTLY/, hold => q{INSERT INTO game.accounts (name) VALUES ('open')});

	wait_for_plan('EXISTS (SELECT FROM pg_stat_progress_create_index AS p WHERE p.pid = a.pid)');
	they_write('while an index is built');
	$end->($run, 'an index');
	is(sql(q{SELECT count(*) FROM pg_index WHERE NOT indisvalid}), 1, 'it is left, invalid');
	like((steps_left())[0][0], qr/^DROP INDEX CONCURRENTLY IF EXISTS game.snowflake_new_/, 'and dropped first');
}

stop_at('a reference', qr/VALIDATE CONSTRAINT snowflake_new_orders_account_fkey/, 'LOCK TABLE game.orders IN SHARE UPDATE EXCLUSIVE MODE');
stop_at('the swap', qr/adopt_swap/, 'LOCK TABLE game.payments IN ACCESS SHARE MODE');

is(sql(q{SELECT count(*) FROM orders WHERE id IS DISTINCT FROM snowflake_new_id OR account IS DISTINCT FROM snowflake_new_account}), 0, 'the new columns are equal');

my ($steps) = steps_left();

is(scalar @$steps, 1, 'only the swap is left');
sql($_) foreach @$steps;
they_write('after the swap', 50);
stop_writers();
compare('after the swap');
is(sql("SELECT count(*) FROM snowflake_migrate.adopt_plan($keys)"), 0, 'nothing is left to do');
cmp_ok(sql('SELECT count(*) FROM orders WHERE snowflake_node(id) = 1 AND id > 1e15'), '>=', 10 * $writers, 'new rows have snowflake ids');
cmp_ok(sql('SELECT count(*) FROM paid'), '>', 0, 'the view is there');

# The same tables, but for the types of the columns, and where they stand.
my $after = schema('shop');
my %lines = map { $_ => 1 } map { s/,$//r } split /\n/, $before;
my @others = sort grep { !$lines{$_} } map { s/,$//r } split /\n/, $after;

is_deeply(\@others, [ sort map { "    $_" } 'id bigint DEFAULT public.snowflake_nextval() NOT NULL', 'id bigint DEFAULT public.snowflake_nextval() NOT NULL',
	'account bigint NOT NULL', '"order" bigint', 'one bigint NOT NULL', 'other bigint NOT NULL' ], 'only columns have changed')
  or diag(join "\n", @others);

# What another does while the swap waits for its lock.
sub swap_meanwhile
{
	my ($keys, $does) = @_;
	my ($steps, $swap) = steps_left(qr/adopt_swap/, keys => $keys);

	sql($_) foreach @$steps;

	my $holder = hold($does);
	my $run = start_step($swap =~ s/\)$/, '60 s')/r);

	wait_for_plan(q{wait_event_type = 'Lock'});
	$holder->query_safe('COMMIT');
	$holder->quit;
	$run->{run}->finish;
	return $run->{err};
}

# What is added is not lost, whatever transactions are by default.
foreach my $isolation ('read\\ committed', 'repeatable\\ read', 'serializable')
{
	local $ENV{PGOPTIONS} = "-c default_transaction_isolation=$isolation";

	sql("CREATE TABLE later (id serial PRIMARY KEY, n int); INSERT INTO later (n) SELECT generate_series(1, 100)");
	like(swap_meanwhile("'{later}'", 'CREATE INDEX added ON game.later (id, n)'), qr/new columns are not ready to replace.*snowflake_new_added/s,
		"$isolation: the swap sees an index that was added while it waited");
	sql($_) foreach @{ (steps_left(undef, keys => "'{later}'"))[0] };
	is(sql(q{SELECT indexdef FROM pg_indexes WHERE indexname = 'added'}), 'CREATE INDEX added ON game.later USING btree (id, n)', "$isolation: it is there");
	sql('DROP TABLE later');

	sql('CREATE TABLE ahead (id bigint PRIMARY KEY)');
	like(swap_meanwhile("'{ahead}'", 'INSERT INTO game.ahead VALUES (9223372036854775806)'), qr/id 9223372036854775806, as new ids would sort before it/,
		"$isolation: and an id that is greater than new ones");
	is(sql(q{SELECT count(*) FROM pg_attrdef WHERE adrelid = 'ahead'::regclass}), 0, "$isolation: nothing has changed");
	sql('DROP TABLE ahead');
}

# Dumped and restored, it is the same again.
$server->safe_psql('postgres', 'CREATE DATABASE restored OWNER keeper');
my $dump = $server->basedir . '/dump';
$server->command_ok([ 'pg_dump', '-Fc', '-f', $dump, '-d', $server->connstr('shop') ], 'dumped');
$server->command_ok([ 'pg_restore', '-d', $server->connstr('restored'), $dump ], 'restored');
is(schema('restored'), $after, 'the same tables');
is($server->safe_psql('restored', 'SELECT count(*), sum(n) FROM game.orders'), $server->safe_psql('shop', 'SELECT count(*), sum(n) FROM game.orders'), 'and rows');

$server->stop;
done_testing();
