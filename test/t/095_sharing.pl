# Ids as a shared resource: sessions that take all they can get, beside others that want one now and then.

use strict;
use warnings FATAL => 'all';

use Snowflake::Server;
use Test::More;

my $server = Snowflake::Server->new('one');

$server->init;
$server->configure('max_connections' => '40');
# At the beginning of an hour.
$server->set_clock(3600 - time % 3600);
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');

# Calls beside 8 hogs of this kind.  Two callers that wait when a tick begins have ids of that tick, or of the next one where a
# tick has fewer ids than there are sessions.  By luck alone each would wait for ten ticks or so.
#
# A tick lasts for an hour, and the test sets the clock: so it begins when the test says so, however slow the machine is.
sub has_its_share
{
	my ($kind, $sequence_bits) = @_;
	my $name = "beside $kind, " . 2**$sequence_bits . ' ids a tick';
	my $promised = 2**$sequence_bits < 10 ? 2 : 1;
	my $now = q{date_trunc('hour', clock_timestamp(), 'UTC')};
	my $rounds = 10;
	my $waited = 0;
	my $errors = '';

	$server->restart_with_layout("timestamp:20 node:19 sequence:$sequence_bits tick:3600s epoch:2025-01-01",
		'snowflake.max_wait' => '20d', 'snowflake.max_forward_jump' => '3h');
	$server->start_clients(($kind) x 8);
	foreach my $round (1 .. $rounds)
	{
		$server->wait_for_waiters('SnowflakeClock', 8);

		my $since = $server->value($now);
		my @calls = map { $server->start_call("caller$_", 'SELECT snowflake_nextval()') } 1 .. 2;

		$server->wait_for_waiters('SnowflakeClock', 10);
		do
		{
			$server->step_clock(3600);
			# All of the tick is taken: who still waits has been passed over.
			$server->poll_query_until('postgres',
				"SELECT last_timestamp = $now AND snowflake_sequence(last_id) = " . (2**$sequence_bits - 1) . ' FROM snowflake_stat')
			  or die 'the hogs do not take all ids';
		} while ($server->value(q{count(*) FROM pg_stat_activity WHERE application_name LIKE 'caller%'}) > 0);
		foreach my $call (@calls)
		{
			$server->finish_call($call);
			$waited += $server->value("extract(epoch FROM snowflake_timestamp($call->{out}) - '$since') / 3600");
			$errors .= $call->{err};
		}
	}
	is($errors, '', "$name: no call is refused");
	note("$name: $rounds rounds of two calls waited for $waited ticks");
	# Whoever gets no processor for a second loses his place; let that happen to two.
	cmp_ok($waited, '<=', 2 * $rounds * $promised + 2, "$name: each call has its id in the tick that it may expect");
	$server->finish_clients;
	return;
}

has_its_share('endless_batch', 12);
has_its_share('stream', 3);
has_its_share('batch', 3);

# Past what these long ticks reserved.
$server->step_clock(4 * 3600);

# Callers that went away while they waited leave their places: cancelled, or their sessions ended.
$server->restart_with_layout('timestamp:32 node:21 sequence:1 tick:1s epoch:2025-01-01', 'snowflake.max_wait' => '2h');
$server->take;
my @gone = map { $server->start_call("gone$_", 'COPY (SELECT snowflake_nextval_batch(1000000)) TO STDOUT') } 1 .. 6;
$server->poll_query_until('postgres', q{SELECT count(*) = 6 FROM pg_stat_activity WHERE application_name LIKE 'gone%' AND wait_event_type = 'Extension'})
  or die 'nobody waits';
$server->value(q{count(CASE WHEN pid % 2 = 0 THEN pg_cancel_backend(pid) ELSE pg_terminate_backend(pid) END) FROM pg_stat_activity WHERE application_name LIKE 'gone%'});
$server->finish_call($_) foreach @gone;
# Two ids a tick, and nobody waits for them: none of these has to wait for more than a tick.
$server->record(split /\n/, $server->safe_psql('postgres', q{SET snowflake.max_wait = '0'; SELECT snowflake_nextval() FROM generate_series(1, 3)}));
is($server->stat('errors'), 0, 'callers that went away keep nobody from his ids');

# With max_drift a session moves everybody's ids ahead of the clock: it takes whole ticks, and throws their ids away.
my $whole_ticks = 'FROM generate_series(1, %d) AS n, LATERAL (SELECT snowflake_nextval_batch(4096) + 0 * n AS id LIMIT 1) AS made';

$server->restart_with_layout('twitter', 'snowflake.max_wait' => undef, 'snowflake.max_drift' => '1h');
$server->safe_psql('postgres', 'CREATE ROLE hog LOGIN; ALTER ROLE hog SET snowflake.max_session_rate = 10000');
$server->record($server->safe_psql('postgres', sprintf "SELECT max(id) $whole_ticks", 60000));
cmp_ok($server->stat('extract(epoch FROM drift)'), '>', 10, 'a session without a bound takes a minute of time at once');

# In t seconds at most t + 1 times its rate.
my ($id, $ahead, $seconds) = split /\|/, $server->safe_psql('postgres', sprintf("
	WITH made AS MATERIALIZED (SELECT clock_timestamp() AS since, max(id) AS last, min(id) AS first $whole_ticks)
	SELECT last, extract(epoch FROM snowflake_timestamp(last) - snowflake_timestamp(first)), extract(epoch FROM clock_timestamp() - statement_timestamp())
	  FROM made", 300), extra_params => [ '-U', 'hog' ]);

$server->record($id);
cmp_ok($ahead, '<=', ($seconds + 1) * 10000 / 4096 / 1000 + 0.002, 'a session with a bound takes time at its rate');
cmp_ok($ahead, '<', 0.3, 'and not the ticks that it asked for');

# Nobody loosens his own bound, and no session of his begins with more than an id.
sub as_hog
{
	my ($sql) = @_;
	my ($status, $out, $err) = $server->psql('postgres', $sql, extra_params => [ '-U', 'hog' ]);

	$server->record(grep { /^\d{15,}$/ } split /\n/, $out);
	return $err;
}

foreach my $attempt ('SET snowflake.max_session_rate = 0', 'ALTER ROLE hog SET snowflake.max_session_rate = 0', q{SELECT set_config('snowflake.max_session_rate', '0', false)})
{
	like(as_hog($attempt), qr/permission denied to set parameter "snowflake.max_session_rate"/, "refused: $attempt");
}
$server->safe_psql('postgres', 'ALTER ROLE hog SET snowflake.max_session_rate = 1');

my $over_rate = qr/ERROR:  SF003: session takes snowflake ids faster than it may\nDETAIL:  "snowflake.max_session_rate" is 1 ids a second, .*"snowflake.max_wait" is 0 ms\.\nHINT:  Try again;/;

foreach my $between ('SELECT', 'RESET ALL', 'DISCARD ALL', q{SET snowflake.max_wait = '1ms'})
{
	like(as_hog("\\set VERBOSITY verbose\nSELECT snowflake_nextval();\n$between;\nSET snowflake.max_wait = 0;\nSELECT snowflake_nextval();"), $over_rate,
		"a session's second id in a second is refused, after $between");
}
is(as_hog('SELECT snowflake_nextval(); SELECT snowflake_nextval()'), '', 'or waited for');

$server->{ledger}->check('ids that were shared');
done_testing();
