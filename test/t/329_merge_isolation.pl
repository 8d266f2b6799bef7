# Whatever transactions are by default, calls that wait for others see what these have committed: a rollback, who waits for workers,
# backfill, and adopting in parts.

use strict;
use warnings FATAL => 'all';

use IPC::Run;
use PostgreSQL::Test::Utils;
use Snowflake::Merge::InUse qw($server $stopped $verify begin database finish_merge hold run_of sql start_merge wait_until);
use Test::More;
use Time::HiRes qw(usleep);

begin();
$ENV{PGOPTIONS} = '-c default_transaction_isolation=repeatable\\ read';

# A session that sends statements, which may wait, and says when it has done them.
sub background
{
	my ($database, @statements) = @_;
	my %session = (in => join(";\n", @statements) . ";\n\\echo done\n", out => '', err => '');

	$session{run} = IPC::Run::start([ 'psql', '-XAtq', '-d', $server->connstr($database) . ' application_name=other' ], '<', \$session{in}, '>', \$session{out}, '2>', \$session{err});
	$session{run}->pump_nb;
	return \%session;
}

sub waiting
{
	my ($application) = @_;

	return "EXISTS (SELECT FROM pg_stat_activity WHERE application_name = '$application' AND wait_event_type = 'Lock' AND wait_event <> 'advisory')";
}

my $name = database('isolated',
	q{CREATE FUNCTION watch.stop_all() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
		IF current_setting(''application_name'') = ''merge'' THEN
			PERFORM pg_advisory_xact_lock_shared(s.lock) FROM watch.stops AS s WHERE s.mark = TG_OP;
		END IF;
		RETURN NULL;
	END'},
	'CREATE TRIGGER stop_all BEFORE DELETE ON t.players EXECUTE FUNCTION watch.stop_all()', 'ALTER TABLE t.players ENABLE ALWAYS TRIGGER stop_all');

is(sql($name, 'SHOW transaction_isolation'), 'repeatable read', 'transactions are not what they are by default');

# Workers, who are stopped among the items.
{
	my $holder = hold($name, 'si60');
	my $call = start_merge($name, q{CALL snowflake_migrate.merge('{s}', 't'::name, '{100}', batch_size => 20, jobs => 2)});

	wait_until($call, $stopped, 'a merge with workers is stopped');
	is(sql($name, q{SELECT sum(rows_done) > 0 FROM snowflake_migrate.progress}), 't', 'others see what is copied');

	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;

	while ($call->{err} !~ /, [1-9]\d* of \d+ rows are copied/ && $call->{run}->pumpable && time < $deadline)
	{
		$call->{run}->pump_nb;
		usleep(10_000);
	}
	like($call->{err}, qr/, [1-9]\d* of \d+ rows are copied/, 'so does the call that waits for the workers');
	$holder->quit;
	finish_merge($call, 'a merge with workers');
	is(sql($name, $verify), '', 'it is verified');
}

# Rows that refer to players who are about to be deleted: of this batch, which has locked them, and of a later one.
{
	my $holder = hold($name, 'DELETE');
	my $call = start_merge($name, 'CALL snowflake_migrate.rollback(' . run_of($name) . ')');
	my $item = q{INSERT INTO t.items (owner_id, kind_id, mark) SELECT p.id, k.id, 'x1' FROM t.players AS p, t.kinds AS k WHERE p.mark = '%s' AND code = 'k4'};

	wait_until($call, $stopped, 'a rollback is stopped before it deletes players');

	my $other = background($name, q{SET default_transaction_isolation = 'read committed'}, sprintf($item, 'sp10'));

	wait_until($call, waiting('other'), 'who refers to one of the batch waits');
	sql($name, sprintf($item, 'sp50'));
	$holder->quit;
	$call->{run}->finish;
	$other->{run}->finish;
	like($other->{err}, qr/violates foreign key constraint "items_owner_id_fkey"/, 'and does not find it');
	like($call->{err}, qr/cannot roll back merge [0-9]+ because other rows refer to its rows\nDETAIL:  Table t\.items, items_owner_id_fkey: 1 rows/, 'a row that refers to one of a later batch is seen');
	is(sql($name, q{SELECT p.mark FROM t.items AS i LEFT JOIN t.players AS p ON p.id = owner_id WHERE i.mark = 'x1'}), 'sp50', 'what it refers to is there');
	sql($name, q{DELETE FROM t.items WHERE mark = 'x1'}, 'TRUNCATE watch.stops');
	finish_merge(start_merge($name, 'CALL snowflake_migrate.rollback(' . run_of($name) . ')'), 'when it is gone, the rollback');
	is(sql($name, q{SELECT count(*) FROM t.players WHERE mark ~ '^s'}), 0, 'no player of the source is left');
}

# Rows that are committed while ids are made for others.
{
	sql($name, 'CREATE TABLE public.notes (id bigint, at timestamptz, note text)', q{INSERT INTO public.notes VALUES (NULL, '2024-01-01', 'first')});

	my $holder = $server->background_psql($name);

	$holder->query_safe(q{BEGIN; INSERT INTO public.notes VALUES (NULL, '2024-01-02', 'second')});

	my $call = start_merge($name, q{CALL snowflake_migrate.backfill('public.notes', 'id', 'at', 101)});

	wait_until($call, waiting('merge'), 'backfill waits for a row');

	my $other = background($name, 'BEGIN', q{INSERT INTO public.notes VALUES (NULL, '2024-01-03', 'third')});

	wait_until($call, waiting('other'), 'another waits for backfill');
	$holder->query_safe('COMMIT');
	$holder->quit;
	$other->{run}->pump until $other->{out} =~ /done/ || !$other->{run}->pumpable;
	wait_until($call, waiting('merge'), 'backfill, whose number is on record, waits for that row');
	$other->{in} .= "COMMIT;\n";
	$other->{run}->finish;
	finish_merge($call, 'backfill');
	is(sql($name, q{SELECT string_agg(note, ' ' ORDER BY id) FROM public.notes WHERE id IS NOT NULL}), 'first second third', 'every row has its id');
}

sql($name, 'CREATE TABLE public.a (id serial PRIMARY KEY)', 'CREATE TABLE public.b (id serial PRIMARY KEY, a int REFERENCES public.a)',
	q{CALL snowflake_migrate.adopt_in_parts('{public.a,public.b}', part_size => 1)});
is(sql($name, q{SELECT count(*) FROM pg_attribute WHERE attrelid IN ('public.a'::regclass, 'public.b'::regclass) AND attnum > 0 AND atttypid = 'bigint'::regtype}), 3,
	'adopted in parts');

$server->stop;
done_testing();
