# Merges by several workers: what comes of them is what one makes of the same rows, whatever becomes of the workers, their caller and
# the server.
#
# It runs what doc/merging.md says of several jobs.
#
# A merge is held up while it inserts a row, in the middle of a batch: see Snowflake::Merge::hold().

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Merge;
use Snowflake::Wait qw(wait_until);
use Test::More;

my $merge = Snowflake::Merge->new;
my $server = $merge->server;
my %size = (batch_size => 25);
my $statement = $merge->call_sql(%size, jobs => 3);
my $a_worker = q{backend_type = 'snowflake_migrate worker'};
my $stopped = qq{EXISTS (SELECT FROM pg_stat_activity WHERE $a_worker AND wait_event = 'advisory')};
my $workers = qq{(SELECT count(*) FROM pg_stat_activity WHERE $a_worker)};
my $caller = q{SELECT pid FROM pg_stat_activity WHERE application_name = 'merge' AND backend_type = 'client backend'};

# The module.
my $library = qx(pg_config --pkglibdir) =~ s/\n//r . '/snowflake_migrate.so';

unlike(qx(nm -D --undefined-only $library), qr/ (_Z|__cxa|__gxx)/, 'the module needs no C++ library');
unlike(qx(nm -C $library), qr/GLOBAL__sub/, 'it has no static initialiser');

# By one job, and by several.
$merge->ready($_) foreach qw(quiet several torn);
$merge->call('quiet', %size);
$merge->is_merged('quiet', 'one job');

sub as_by_one
{
	my ($database, $name, @before) = @_;

	is($merge->sql($database, q{SELECT string_agg(state, ' ') FROM snowflake_migrate.runs}), 'done', "$name: one run, which is done");
	is($merge->sql($database, @before, 'SELECT * FROM snowflake_migrate.verify((SELECT run FROM snowflake_migrate.runs))'), '', "$name: it is verified");
	$merge->is_merged($database, $name);
	is_deeply($merge->natural($database), $merge->natural('quiet'), "$name: rows as of a merge by one job");
	is_deeply($merge->counts($database), $merge->counts('quiet'), "$name: as many");
	is_deeply($merge->policed($database), $merge->policed('quiet'), "$name: what the policies made of them too");
	is($merge->sql($database, 'SELECT bool_and(rows_done = rows_to_do) FROM snowflake_migrate.progress'), 't', "$name: all is counted");
	is($merge->sql($database, 'SELECT count(*) FROM snowflake_migrate_internal.plan_batches'), 0, "$name: no batch is left");
	return;
}

my $run = $merge->call('several', %size, jobs => 4);

as_by_one('several', 'four jobs');
is($merge->sql('several', "SELECT $workers"), 0, 'four jobs: no worker is left');
cmp_ok($merge->sql('several', q{SELECT max(cardinality(copied_by)) FROM snowflake_migrate_internal.plan_sources}), '>', 2, 'four jobs: large tables were split');

# Taken back: the transactions of all workers are on record.  Of a table without a key, rows that refer to nothing stay, if
# the worlds have any.
$merge->sql('several', "CALL snowflake_migrate.rollback($run, force => true)");
is_deeply({ %{ $merge->natural('several') }, 'Guild Log' => '' }, { %{ $merge->{at_first} }, 'Guild Log' => '' }, 'four jobs, taken back: as at first');

# Disturbed while a worker is within a batch.
sub disturb
{
	my ($name, $count, $from, $disturb, %params) = @_;

	$merge->stop_at('torn', $count, marks => $from, merged => 'quiet', all_of => $params{all_of}) or die 'no row is left to be stopped at';

	my $holder = $merge->hold('torn');
	my $call = $merge->start_merge('torn', $params{statement} // $statement);

	ok($merge->wait_for('torn', $params{stopped} // $stopped, $call), "$name: the merge goes on") or diag($call->{err});
	$disturb->($call);
	eval { $holder->quit };

	my $succeeds = $merge->finish_merge($call);

	$merge->sql('torn', 'TRUNCATE watch.stops');
	return ($succeeds, $call->{err});
}

sub fails
{
	my ($name, $error, $succeeds, $err) = @_;

	ok(!$succeeds, "$name: the call fails");
	like($err, $error, "$name: it says why");
	is($merge->sql('torn', "SELECT $workers"), 0, "$name: no worker is left");
	is($merge->sql('torn', 'SELECT count(*) FROM snowflake_migrate.runs WHERE finished_at IS NULL'), 1, "$name: the run is not finished");
	return;
}

# Sends a signal to the caller by one of PostgreSQL's functions.
sub to_caller
{
	my ($function) = @_;

	return sub { $merge->sql('torn', "SELECT $function(pid) FROM ($caller) AS c") };
}

$merge->allow_stops('torn');
# What the others copy while one is stopped, and this test is on its way; for a while, not all that is left.
my @but_vault = (all_of => ['vault_items']);
my $in_use = qr/another session is merging into schema "realm"/;

# While players are to come, nobody begins with what refers to them: the others wait, and say so.
my $idle = sprintf q{(SELECT count(*) FROM pg_stat_activity WHERE %s AND wait_event = '%s')}, $a_worker, $server->wait_event('SnowflakeMerge');

fails('parents first', qr/canceling statement due to user request/, disturb('parents first', 1, qr/^Wp/, sub {
			my ($call) = @_;

			ok($merge->wait_for('torn', "$idle = 2", $call), 'parents first: the other workers wait');
			is($merge->sql('torn', q{SELECT count(*) FROM realm.items WHERE mark ~ '^[WE]'}), 0, 'parents first: no item is there before all players are');
			to_caller('pg_cancel_backend')->();
		}));
fails('cancelled', qr/canceling statement due to user request/, disturb('cancelled', 3, qr/^W/, sub {
			$merge->refuses('torn', $statement, $in_use, 'a second call, with workers');
			$merge->refuses('torn', $merge->call_sql(%size), $in_use, 'a second call, without');
			$merge->refuses('torn', "CALL snowflake_migrate.rollback($run)", $in_use, 'a rollback');
			to_caller('pg_cancel_backend')->();
		}, @but_vault));
fails('session ended', qr/terminating connection/, disturb('session ended', 3, qr/^[WE]/, to_caller('pg_terminate_backend'), @but_vault));
fails('worker killed', qr/server closed the connection|terminating connection/, disturb('worker killed', 3, qr/^[WE]/, sub {
			$server->crash($merge->sql('torn', "SELECT min(pid) FROM pg_stat_activity WHERE $a_worker"));
		}, @but_vault));

# One job goes on with the batches that are left.
cmp_ok($merge->sql('torn', 'SELECT count(*) FROM snowflake_migrate_internal.plan_batches WHERE copied_by IS NULL'), '>', 0, 'batches are left');
fails('one job', qr/canceling statement due to user request/, disturb('one job', 2, qr/^[WE]/, to_caller('pg_cancel_backend'),
		statement => $merge->call_sql(%size), stopped => $Snowflake::Merge::stopped, @but_vault));

# An error in a batch.
$merge->sql('torn', q{CREATE FUNCTION watch.refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
		RAISE EXCEPTION USING ERRCODE = ''WATCH'', MESSAGE = ''not this one'', DETAIL = ''It is watched.'', TABLE = ''watched'';
	END'}, 'CREATE TRIGGER refuse BEFORE INSERT ON realm.vault_items FOR EACH ROW EXECUTE FUNCTION watch.refuse()',
	'ALTER TABLE realm.vault_items ENABLE ALWAYS TRIGGER refuse');
{
	my ($status, $out, $err) = $server->psql('torn', "\\set VERBOSITY verbose\n$statement");

	fails('error', qr/ERROR:  WATCH: not this one\nDETAIL:  It is watched\..*worker of merge \d+, table realm\.vault_items, source (west|East).*TABLE NAME:  watched/s,
		$status == 0, $err);
}

# A worker that is ended.  What is copied is not what it should be: a worker's proof finds it.
# It is one that is not copied yet: the batch that was refused is left, of whichever source it is.
my $comes = join ', ', map { "'$_'" } split /\n/, $merge->sql('quiet', 'SELECT mark FROM realm.vault_items');
my ($source, $doubled) = split /\|/, $merge->sql('torn', qq{SELECT source, mark
	FROM (SELECT 'west', mark FROM west.vault_items UNION ALL SELECT 'East', mark FROM "East".vault_items) AS items (source, mark)
	WHERE mark IN ($comes) AND mark NOT IN (SELECT mark FROM realm.vault_items) ORDER BY mark LIMIT 1}, 'DROP TRIGGER refuse ON realm.vault_items');

$merge->sql('torn', qq{CREATE FUNCTION watch.change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
		NEW.mark := NEW.mark || ''!'';
		RETURN NEW;
	END'}, "CREATE TRIGGER change BEFORE INSERT ON realm.vault_items FOR EACH ROW WHEN (NEW.mark = '$doubled') EXECUTE FUNCTION watch.change()",
	'ALTER TABLE realm.vault_items ENABLE ALWAYS TRIGGER change');
{
	my ($succeeds, $err) = disturb('worker ended', 2, qr/^[WE]/, sub {
			my ($call) = @_;

			wait_until('the caller is told how far it is', sub {
					$call->{run}->pump_nb;
					return $call->{err} =~ /NOTICE:  merge \d+: \d+ of \d+ tables, \d+ of \d+ rows are copied/;
				});
			$merge->sql('torn', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE $a_worker AND wait_event = 'advisory'");
			$merge->wait_for('torn', "$workers < 3", $call) or die 'it does not end';
		});

	ok(!$succeeds, 'worker ended, rows changed: the call fails');
	like($err, qr/merge \d+ does not pass its verification/, 'worker ended, rows changed: all was copied, and is refused');
	like($err, qr/WARNING:  a worker of merge \d+ has ended before its work was done\nDETAIL:  It was at (the cycle of )?table/, 'worker ended: the caller is told');
}
is($merge->sql('torn', q{SELECT concat_ws(' ', source, relation, problem, count) FROM snowflake_migrate.report WHERE severity = 'error' ORDER BY source}),
	"$source realm.vault_items rows of the target are not what they should be 1\nrealm.vault_items constraints or triggers are not as they were", 'rows changed: the report says which');
$merge->sql('torn', 'DROP TRIGGER change ON realm.vault_items', "UPDATE realm.vault_items SET mark = '$doubled' WHERE mark = '$doubled!'");
$merge->call('torn', %size, jobs => 2);
as_by_one('torn', 'torn');

# As a role with the rights of the guide; and by one that may not log in, as members of which others act.
$merge->ready('lesser');
$merge->allow_merger('lesser');
$merge->allow_stops('lesser');
$merge->refuses('lesser', q{SET ROLE pg_monitor; SELECT snowflake_migrate_internal.start_workers(1, 1, '{}')}, qr/permission denied for function start_workers/, 'without the right');
$merge->sql('lesser', q{CREATE FUNCTION watch.starts() RETURNS int LANGUAGE sql SECURITY DEFINER AS $$
	SELECT snowflake_migrate_internal.start_workers(1, 1, '{}') $$});
$merge->refuses('lesser', 'SELECT watch.starts()', qr/cannot start workers of a merge within a security-restricted operation/, 'with the rights of a function');
$merge->refuses('lesser', q{SELECT snowflake_migrate_internal.start_workers(1, 65, '{}')}, qr/jobs must be between 1 and 64/, 'too many');

sub by_role
{
	my ($name, $prepared, $count, $role, %params) = @_;

	$merge->stop_at('lesser', $count, merged => 'quiet') or die 'no row is left to be stopped at';

	my $holder = $merge->hold('lesser');
	my $call = $merge->start_merge('lesser', $prepared, %params);

	ok($merge->wait_for('lesser', $stopped, $call), "$name: the merge goes on") or diag($call->{err});
	is($merge->sql('lesser', "SELECT string_agg(DISTINCT usename, ' ') FROM pg_stat_activity WHERE $a_worker"), $role, "$name: its workers have the role");
	$merge->sql('lesser', "SELECT pg_cancel_backend(pid) FROM ($caller) AS c");
	$merge->finish_merge($call);
	$holder->quit;
	$merge->sql('lesser', 'TRUNCATE watch.stops');
	return;
}

by_role('merger', $statement, 3, 'merger', user => 'merger');
# An option of the connection is as good as SET, which would be another statement.
by_role('SET ROLE', $statement, 2, 'merger', options => '-c role=merger');
$merge->sql('lesser', 'ALTER ROLE merger NOLOGIN');
by_role('NOLOGIN', $statement, 1, $merge->{user}, options => '-c role=merger');
is($merge->sql('lesser', 'SET ROLE merger', $statement, 'SELECT merged_by FROM snowflake_migrate.runs'), "1\nmerger", 'NOLOGIN: it ends');
as_by_one('lesser', 'lesser', 'SET ROLE merger');

# Limits of time that a role has: the call says how to be rid of them, ends without leaving a worker, and goes on without them.
$merge->sql('lesser', 'ALTER ROLE merger LOGIN');
$merge->ready('limited');
$merge->allow_merger('limited');
$merge->allow_stops('limited');
$merge->stop_at('limited', 1, marks => qr/^Wp/, merged => 'quiet') or die 'no row is left to be stopped at';
{
	my $holder = $merge->hold('limited');
	my $call = $merge->start_merge('limited', $statement, user => 'merger');

	ok($merge->wait_for('limited', $stopped, $call), 'limits: the merge goes on') or diag($call->{err});
	unlike($call->{err}, qr/WARNING/, 'no limit: no warning');
	$merge->sql('limited', "SELECT pg_cancel_backend(pid) FROM ($caller) AS c");
	$merge->finish_merge($call);
	foreach my $limit ([ statement_timeout => '1s', qr/canceling statement due to statement timeout/ ],
		[ lock_timeout => '300ms', qr/canceling statement due to lock timeout\n.*worker of merge \d+, (the cycle of )?table/s ],
		[ transaction_timeout => '1s', qr/due to transaction timeout/ ])
	{
		my ($name, $value, $error) = @$limit;

	  SKIP:
		{
			skip "there is no $name", 4 if $merge->sql('limited', "SELECT count(*) FROM pg_settings WHERE name = '$name'") == 0;
			$merge->sql('limited', "ALTER ROLE merger SET $name = '$value'");
			$call = $merge->start_merge('limited', $statement, user => 'merger');
			ok(!$merge->finish_merge($call), "$name: the call ends");
			like($call->{err}, qr/WARNING:  $name may end the call before it is done: it is $value\nDETAIL:  .*\nHINT:  SET $name = 0; if it has ended a call, the same call goes on\..*$error/s,
				"$name: it says why, and what to do");
			is($merge->sql('limited', "SELECT $workers"), 0, "$name: no worker is left");
			is($merge->sql('limited', 'SELECT state FROM snowflake_migrate.runs'), 'copying', "$name: the run is not finished");
			$merge->sql('limited', "ALTER ROLE merger RESET $name");
		}
	}
	# Neither the session nor a worker is ever idle in a transaction.
	$merge->sql('limited', q{ALTER ROLE merger SET idle_in_transaction_session_timeout = '1ms'});
	$call = $merge->start_merge('limited', $statement, user => 'merger');
	ok($merge->wait_for('limited', $stopped, $call), 'idle_in_transaction_session_timeout: the merge goes on') or diag($call->{err});
	$merge->sql('limited', "SELECT pg_cancel_backend(pid) FROM ($caller) AS c");
	$merge->finish_merge($call);
	$holder->quit;

	# Row security that came meanwhile: in workers, too, the caller's rights count, and rows that are hidden are an error.
	$merge->sql('limited', map { ("ALTER TABLE $_.items ENABLE ROW LEVEL SECURITY", "CREATE POLICY none ON $_.items USING (false) WITH CHECK (true)") } qw(realm west));
	$call = $merge->start_merge('limited', $statement, user => 'merger');
	ok(!$merge->finish_merge($call), 'row security: the call ends');
	like($call->{err}, qr/ERROR:  query would be affected by row-level security policy for table "items".*worker of merge \d+, table realm\.items/s, 'row security: it says why');
	is($merge->sql('limited', 'SELECT state FROM snowflake_migrate.runs'), 'copying', 'row security: nothing was left out');
	$merge->sql('limited', 'ALTER ROLE merger BYPASSRLS');
	$call = $merge->start_merge('limited', $statement, user => 'merger');
	ok($merge->finish_merge($call), 'it ends with that right, and never idle in a transaction') or diag($call->{err});
	unlike($call->{err}, qr/WARNING/, 'idle_in_transaction_session_timeout: no warning');
	as_by_one('limited', 'limits', 'SET ROLE merger');
	$merge->sql('limited', 'ALTER ROLE merger RESET idle_in_transaction_session_timeout', 'ALTER ROLE merger NOBYPASSRLS');
	like(($server->psql('limited', q{SET statement_timeout = '1h'; CALL snowflake_migrate.rollback(0)}))[2], qr/WARNING:  statement_timeout may end the call.*merge 0 does not exist/s,
		'the way back warns, too');
}

# Whom a worker connects as has settings of its own; and the caller has some of a library that the worker has not loaded.  A run
# that does not exist is the error of a worker that has got so far.
sub as_caller
{
	my ($name, @settings) = @_;

	$merge->refuses('lesser', join('; ', @settings, 'BEGIN',
			'SELECT snowflake_migrate_internal.start_workers(0, 1, snowflake_migrate_internal.session_settings())',
			('SELECT snowflake_migrate_internal.wait_for_workers(1000)') x 60), qr/merge 0 does not exist/, $name);
	return;
}

$merge->sql('lesser', q{ALTER ROLE merger SET role = 'pg_monitor'}, q{ALTER ROLE merger SET lock_timeout = '5s'}, 'GRANT pg_monitor TO merger');
as_caller('a role with another role as its setting', 'SET ROLE merger');
$merge->sql('lesser', 'ALTER ROLE merger RESET role', 'ALTER ROLE merger SET transform_null_equals = on');
like($merge->sql('lesser', 'SET ROLE merger', 'SELECT snowflake_migrate_internal.session_settings()'), qr/"lock_timeout": "0".*"transform_null_equals": "off"/,
	'settings that the caller has not changed, and the role has');
$merge->sql('lesser', 'ALTER ROLE merger RESET transform_null_equals');
as_caller('settings of a library', q{LOAD 'auto_explain'}, 'SET auto_explain.log_timing = off');

# No worker to be had.
$server->append_conf('postgresql.conf', 'max_worker_processes = 1');
$server->restart;
$merge->ready('alone');
{
	my ($status, $out, $err) = $server->psql('alone', $statement);

	is($status, 0, 'no worker: the merge ends');
	like($err, qr/WARNING:  merge \d+ has 0 of 3 workers\nHINT:  .*max_worker_processes/, 'no worker: the caller is told');
}
as_by_one('alone', 'no worker');

done_testing();
