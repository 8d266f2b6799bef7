# A merge that is killed, whose source goes away, that is cancelled: the same CALL goes on where it stopped, and what comes of
# it is what an undisturbed merge makes of the same rows.
#
# A merge is disturbed while it inserts a row, in the middle of a batch, or at some number of rows, both by chance.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Merge;
use Test::More;

my $merge = Snowflake::Merge->new;
my $server = $merge->server;
my $batch_size = 20;
# Indexes are gone when it is disturbed; undisturbed, they stay.
my $statement = $merge->call_sql(batch_size => $batch_size, rebuild_indexes => 'true');
my $done = q{(SELECT coalesce(sum(rows_done), 0) FROM snowflake_migrate.progress)};
my $to_do = q{(SELECT coalesce(sum(rows_to_do), 0) FROM snowflake_migrate.progress)};

# Without a disturbance.
$merge->ready($_) foreach qw(quiet killed torn);
$merge->call('quiet', batch_size => $batch_size);
$merge->is_merged('quiet', 'undisturbed');

my $total = $merge->sql('quiet', "SELECT $done");

cmp_ok($total, '>', 50 * $batch_size, "there are $total rows to do");

my $indexes = q{SELECT indexdef, (SELECT i.indisvalid FROM pg_index AS i WHERE i.indexrelid = format('%I.%I', schemaname, indexname)::regclass)
	FROM pg_indexes WHERE schemaname = 'realm' ORDER BY 1};

sub as_undisturbed
{
	my ($database, $name) = @_;

	is($merge->sql($database, q{SELECT string_agg(state, ' ') FROM snowflake_migrate.runs}), 'done', "$name: one run, which is done");
	is($merge->sql($database, 'SELECT * FROM snowflake_migrate.verify((SELECT run FROM snowflake_migrate.runs))'), '', "$name: it is verified");
	$merge->is_merged($database, $name);
	is_deeply($merge->natural($database), $merge->natural('quiet'), "$name: rows as of an undisturbed merge");
	is_deeply($merge->counts($database), $merge->counts('quiet'), "$name: as many");
	is_deeply($merge->policed($database), $merge->policed('quiet'), "$name: what the policies made of them too");
	is($merge->sql($database, $indexes), $merge->sql('quiet', $indexes), "$name: indexes as they were");
	cmp_ok($merge->sql($database, q{SELECT count(*) FROM snowflake_migrate_internal.plan_indexes WHERE state = 'there'}), '>', 5, "$name: they were dropped");
	is($merge->sql($database, 'SELECT run FROM snowflake_migrate.runs'), $merge->call($database, batch_size => $batch_size), "$name: it is not repeated");
	return;
}

# Killed, ten times.
my $rounds = 10;

srand($merge->{seed});
$merge->allow_stops('killed');
foreach my $round (1 .. $rounds)
{
	my $before = $merge->sql('killed', "SELECT $done");
	my $within_batch = $round % 2;

	# In the other rounds it is killed before it comes there, or else it would be done where this test is slow.
	$merge->stop_at('killed', 3 * (1 + $rounds - $round), merged => 'quiet') or die 'no row is left to be stopped at';

	my $holder = $merge->hold('killed');
	my $until = $Snowflake::Merge::stopped;

	$until .= " OR $done >= " . int($before + 1 + rand($total - $before) / (2 + $rounds - $round)) unless $within_batch;

	my $call = $merge->start_merge('killed', $statement);

	ok($merge->wait_for('killed', $until, $call), "round $round: the merge goes on") or diag($call->{err});

	my $reached = $merge->sql('killed', "SELECT $done");

	if ($round % 4 < 2)
	{
		my $pid = $merge->sql('killed', q{SELECT pid FROM pg_stat_activity WHERE application_name = 'merge'});

		$server->crash($pid);
		ok(!$merge->finish_merge($call), "round $round: it is killed, " . ($within_batch ? 'in a batch ' : '') . "after $reached of $total rows");
	}
	else
	{
		$server->stop('immediate');
		ok(!$merge->finish_merge($call), "round $round: the server is stopped, " . ($within_batch ? 'in a batch ' : '') . "after $reached of $total rows");
		$server->start;
	}
	# Its session has ended with the server.
	eval { $holder->quit };
	$merge->sql('killed', 'TRUNCATE watch.stops');
	cmp_ok($merge->sql('killed', "SELECT $done"), '>=', $reached, "round $round: what was done is done");
}
$merge->call('killed', batch_size => $batch_size);
as_undisturbed('killed', 'killed');

# Cancelled, its session ended, its source gone; at the first of so many rows of a source.
sub disturb
{
	my ($name, $count, $from, $error, $disturb) = @_;

	$merge->stop_at('torn', $count, marks => $from, merged => 'quiet') or die 'no row is left to be stopped at';

	my $holder = $merge->hold('torn');
	my $call = $merge->start_merge('torn', $statement);

	ok($merge->wait_for('torn', $Snowflake::Merge::stopped, $call), "$name: the merge goes on") or diag($call->{err});
	$disturb->();
	$holder->quit;
	ok(!$merge->finish_merge($call), "$name: the call fails");
	like($call->{err}, $error, "$name: it says why");
	is($merge->sql('torn', 'SELECT count(*) FROM snowflake_migrate.runs WHERE finished_at IS NULL'), 1, "$name: the run is not finished");
	$merge->sql('torn', 'TRUNCATE watch.stops');
	return;
}

# What cancels or ends the merge.
sub by
{
	my ($function) = @_;

	return sub { $merge->sql('torn', "SELECT $function(pid) FROM pg_stat_activity WHERE application_name = 'merge'") };
}

my $cancelled = qr/canceling statement due to user request/;
my $gone = qr/could not connect|terminat|connection/;

$merge->allow_stops('torn');
disturb('cancelled', 4, qr/^W/, $cancelled, by('pg_cancel_backend'));
disturb('session ended', 3, qr/^W/, qr/terminating connection/, by('pg_terminate_backend'));
disturb('source gone', 2, qr/^E/, $gone, sub { $merge->far->stop('immediate') });
$merge->refuses('torn', $statement, $gone, 'source not there');
$merge->far->start;
disturb('cancelled, with rows of the other source', 1, qr/^E/, $cancelled, by('pg_cancel_backend'));
$merge->call('torn', batch_size => $batch_size);
as_undisturbed('torn', 'torn');

done_testing();
