# A registry's server that speaks the protocol wrongly: whatever it answers, no server takes it for a claim, crashes, waits
# for ever, fills its memory, or can't be cancelled.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::FakeServer;
use Snowflake::Server;
use Snowflake::Wait qw(wait_until);
use Test::More;

my $fake = Snowflake::FakeServer->new;
my $server = Snowflake::Server->new('one');
my $password_file = "$PostgreSQL::Test::Utils::tmp_check/passwords";

append_to_file($password_file, "*:*:*:*:secret of the keeper\n");
chmod 0600, $password_file;
$server->init;

sub address
{
	my ($parameters) = @_;

	return "postgresql://keeper\@127.0.0.1:@{[ $fake->port ]}/ids?$parameters";
}

$server->configure(
	'snowflake.node_id' => 7,
	'snowflake.claim_window' => '3s',
	'snowflake.registry' => address('sslmode=disable&gssencmode=disable'));
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');

sub keeper
{
	my ($pid) = map { /^\s*(\d+)\s+$server->{_pid}\s.*snowflake keeper/ } split /\n/, qx{ps -A -o pid,ppid,args};

	return $pid;
}

# The most memory that a process has had in use, MB.
sub most_memory
{
	my ($pid) = @_;
	my ($kilobytes) = slurp_file("/proc/$pid/status") =~ /^VmHWM:\s+(\d+) kB/m;

	return $kilobytes / 1024;
}

my $time = qr/(?:has not answered|could not connect to the registry) in time/;
my $unread = qr/^the registry's answer cannot be read: /;
# A slow machine takes longer for a flood than the time that it has to answer in.
my $too_much = qr/$time|^the registry's answer cannot be read: it sends too much that was not asked for|^the registry's answer cannot be read: it takes too much memory|memory|lost synchronization|^out of/;
my %said = (
	no_columns => $unread, no_rows => $unread, no_result => $unread, empty_query => $unread, two_rows => $unread, two_results => $unread,
	many_columns => $unread, other_types => $unread, no_number => $unread, half_a_number => $unread, huge_number => $unread,
	long_texts => $unread, not_committed => $unread, too_early => $unread,
	fewer_values => qr/./,
	row_after_error => qr/./,
	error => qr/^permission denied$/,
	long_error => qr/^eeeee/,
	copy_in => $unread, copy_out => $unread, copy_both => $unread, copy_flood => $unread,
	rows => $unread, wide_rows => $unread,
	long_row => $too_much, long_description => $too_much,
	notices => $too_much, parameters => $too_much, same_parameter => $too_much, notifications => $too_much,
	connect_notices => $too_much, connect_parameters => $too_much,
	garbage => qr/./,
	slow => $time, silence => $time);

my $keeper = keeper();
my $start = most_memory($keeper);
my $log = $server->log_position;

foreach my $how (sort keys %said)
{
	my $told = $fake->answer($how);

	$server->reload;
	# When it comes back, the first time is over.
	wait_until("$how: the keeper has come back", sub { -e $told && (() = slurp_file($told) =~ /^$how$/mg) > 1 });
	# Where the machine is slow, it may be late for a try or two.
	wait_until("$how: the keeper says what is wrong", sub { $server->stat('problem') =~ $said{$how} });
	is($server->stat('claim'), 'none', "$how: no claim");
}

# While it waits for the next turn.
foreach my $how (qw(idle_parameters idle_rows idle_long_row))
{
	my $told = $fake->answer($how);

	$server->reload;
	wait_until("$how: the keeper has come back", sub { -e $told && (() = slurp_file($told) =~ /^$how$/mg) > 4 });
}

is(keeper(), $keeper, 'the keeper is the one that it was');
unlike($server->log_since($log), qr/terminated by signal|server process|reinitializing/, 'and nothing has crashed');
cmp_ok(most_memory($keeper), '<', $start + 150, 'nor has it taken much memory');

# The call that speaks to the registry itself ends, too, and can be cancelled.
my $session = $server->background_psql('postgres', on_error_stop => 0);
my $pid = $session->query('SELECT pg_backend_pid()');

$session->query(q{SET statement_timeout = '2s'});
$start = most_memory($pid);
foreach my $how (sort keys %said)
{
	$fake->answer($how);
	$session->{stderr} = '';
	$session->query(q{SELECT snowflake_internal.set_aside(50, now())});
	like($session->{stderr}, qr/ERROR:  (?:could not set aside node number 50|canceling statement due to statement timeout)/, "$how: the call ends");
}
is($session->query('SELECT pg_backend_pid()'), $pid, 'in the same session');
cmp_ok(most_memory($pid), '<', $start + 150, 'which has not taken much memory');
$session->quit;

# Encryption that is negotiated, and passwords that are asked for.
foreach my $how (qw(garbage error gss unknown silence))
{
	$server->stop;
	$server->configure('snowflake.registry' => address($how eq 'gss' ? 'sslmode=disable' : 'sslmode=verify-full&gssencmode=disable'));
	$fake->answer("negotiation_$how");
	$log = $server->log_position;
	$server->start;
	$server->wait_for_log(qr/no snowflake node number is claimed/, $log);
	is($server->stat('claim'), 'none', "a negotiation that ends with $how: no claim");
}
foreach my $how (qw(clear md5 scram))
{
	foreach my $parameters ('', '&sslmode=verify-full', '&channel_binding=require')
	{
		$server->stop;

		my $told = $fake->answer("password_$how");

		$server->configure('snowflake.registry' => address("passfile=$password_file&gssencmode=disable$parameters"));
		$log = $server->log_position;
		$server->start;
		$server->wait_for_log(qr/no snowflake node number is claimed/, $log);
		if ($parameters eq '')
		{
			my $is_clear = $how eq 'clear';

			is((slurp_file($told) =~ /secret of the keeper/ ? 1 : 0), $is_clear ? 1 : 0, "an address without sslmode: $how");
		}
		else
		{
			ok(!-e $told, "an address with $parameters: nothing is told to a server that asks for a password: $how");
		}
	}
}

# A server that has passwords hashed as often as it likes: libpq computes for an hour, and the processes end with it.
$server->stop;
$server->configure('snowflake.registry' => address("passfile=$password_file&gssencmode=disable"));
$fake->answer('password_hashed_for_long');
$log = $server->log_position;
$server->start;
$server->wait_for_log(qr/FATAL: .*could not give up logging in to the snowflake registry\n/, $log);
wait_until('a password that is hashed for long: there is a keeper again', sub { keeper() });
is($server->stat('claim'), 'none', 'a password that is hashed for long: no claim');
my (undef, undef, $error) = $server->psql('postgres', q{SET statement_timeout = '2s'; SELECT snowflake_internal.set_aside(50, now())});

like($error, qr/FATAL:  could not give up logging in to the snowflake registry/, 'a password that is hashed for long: the call ends, with its session');
is($server->value('1'), 1, 'a password that is hashed for long: others go on');
# While the keeper is in it.
$server->stop;
unlike($server->log_since($log), qr/terminated by signal|reinitializing/, 'a password that is hashed for long: nothing has crashed, and the server could be stopped');

# An address that lets anybody on a network answer is warned of.
foreach my $case (
	[ 'registry.invalid/ids', 1 ],
	[ '127.0.0.1,registry.invalid/ids?sslmode=require', 1 ],
	[ 'registry.invalid/ids?hostaddr=192.0.2.1&sslmode=verify-ca', 1 ],
	[ 'registry.invalid/ids?sslmode=verify-full', 0 ],
	[ 'registry.invalid/ids?hostaddr=127.0.0.1', 0 ],
	[ '[::1]:1,localhost:1/ids', 0 ],
	[ '/ids?host=/nowhere', 0 ])
{
	my ($place, $is_warned) = @$case;
	my $warning = qr/WARNING: .*snowflake registry's server does not prove who it is\n/;

	$server->stop;
	$server->configure('snowflake.registry' => "postgresql://keeper\@$place");
	$log = $server->log_position;
	$server->start;
	$server->wait_for_log(qr/no snowflake node number is claimed/, $log);
	is(scalar(() = $server->log_since($log) =~ /$warning/g), $is_warned, "postgresql://$place: " . ($is_warned ? 'warned of' : 'not warned of'));
}
$server->stop;

done_testing();
