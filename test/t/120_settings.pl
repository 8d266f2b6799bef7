# Settings: who can change them and when, and what becomes of bad ones.

use strict;
use warnings FATAL => 'all';

use Snowflake::Server;
use Test::More;

my $server = Snowflake::Server->new('one');

$server->set_clock(0);
$server->init;
$server->configure('snowflake.node_id' => '103');
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
$server->safe_psql('postgres', 'CREATE ROLE somebody LOGIN');

# The defaults.
my %defaults = (
	'snowflake.layout' => [ 'twitter', 'postmaster' ],
	'snowflake.node_id' => [ '', 'postmaster' ],
	'snowflake.clock' => [ 'realtime', 'postmaster' ],
	'snowflake.max_drift' => [ '0', 'sighup' ],
	'snowflake.max_wait' => [ '2000', 'user' ],
	'snowflake.max_session_rate' => [ '0', 'superuser' ],
	'snowflake.sequence_start' => [ 'subtick', 'sighup' ],
	'snowflake.reserve_ahead' => [ '500', 'sighup' ],
	'snowflake.max_forward_jump' => [ '3600', 'sighup' ],
	'snowflake.registry' => [ '', 'postmaster' ],
	'snowflake.registry_group' => [ 'default', 'postmaster' ],
	'snowflake.registry_auth_file' => [ '', 'postmaster' ],
	'snowflake.claim_window' => [ '30000', 'sighup' ]);

foreach my $name (sort keys %defaults)
{
	is($server->value("boot_val || ' ' || context FROM pg_settings WHERE name = '$name'"), join(' ', @{ $defaults{$name} }), "$name: default and context");
}

# Settings of the server's start: not by SET, not by a reload.
my %postmaster = (
	'snowflake.layout' => 'leaf',
	'snowflake.node_id' => '5',
	'snowflake.clock' => 'monotonic',
	'snowflake.registry' => 'postgresql://registry.example.com/ids',
	'snowflake.registry_group' => 'orders',
	'snowflake.registry_auth_file' => 'auth');
my $log = $server->log_position;
$server->reconfigure(%postmaster);
foreach my $name (sort keys %postmaster)
{
	$server->refuses("SET $name = '$postmaster{$name}'", qr/parameter "\Q$name\E" cannot be changed without restarting the server/, "SET $name");
	like($server->log_since($log), qr/parameter "\Q$name\E" cannot be changed without restarting the server/, "a reload that changes $name");
	is($server->value("pending_restart FROM pg_settings WHERE name = '$name'"), 't', "$name waits for a restart");
}
is($server->value('snowflake_node(' . $server->take . ')'), 103, 'the node number stays what it was');
$server->reconfigure(map { $_ => $_ eq 'snowflake.node_id' ? '103' : undef } keys %postmaster);

# Settings that a reload changes: not by SET; in sessions that are there too.
my %sighup = (
	'snowflake.max_drift' => '10min',
	'snowflake.sequence_start' => 'zero',
	'snowflake.reserve_ahead' => '30s',
	'snowflake.max_forward_jump' => '2h',
	'snowflake.claim_window' => '10s');
my $session = $server->background_psql('postgres');
$server->record($session->query_safe('SELECT snowflake_nextval()'));
foreach my $name (sort keys %sighup)
{
	$server->refuses("SET $name = '$sighup{$name}'", qr/parameter "\Q$name\E" cannot be changed now/, "SET $name");
}
$server->reconfigure(%sighup);
foreach my $name (sort keys %sighup)
{
	is($server->value("current_setting('$name')"), $sighup{$name}, "a reload changes $name");
	# It is read between statements.
	is($session->query_safe("SHOW $name"), $sighup{$name}, "a reload changes $name in a session that is there");
}
$server->step_clock(-300);
$server->record($session->query_safe('SELECT snowflake_nextval()'));
cmp_ok($server->stat('extract(epoch FROM drift)'), '>', 2, 'max_drift counts in a session that was there');
$server->step_clock(300);
$server->poll_query_until('postgres', q{SELECT last_timestamp < clock_timestamp() FROM snowflake_stat});
$server->step_clock(2000);
$server->record($session->query_safe('SELECT snowflake_nextval()'));
cmp_ok($server->stat('extract(epoch FROM reserved_until - last_timestamp)'), '>', 10, 'reserve_ahead counts in a session that was there');
$session->quit;
$server->reconfigure(map { $_ => undef } keys %sighup);

# A user's setting: for a session, a role, a database.
$server->refuses('SET snowflake.max_wait = -1', qr/-1 .*is outside the valid range for parameter "snowflake.max_wait"/, 'SET snowflake.max_wait to less than 0');
is($server->safe_psql('postgres', q{SET ROLE somebody; SET snowflake.max_wait = '1min'; SHOW snowflake.max_wait}), '1min', 'anybody can SET snowflake.max_wait');
$server->safe_psql('postgres', q{ALTER ROLE somebody SET snowflake.max_wait = '3s'});
is($server->safe_psql('postgres', 'SHOW snowflake.max_wait', extra_params => [ '-U', 'somebody' ]), '3s', 'a role can have its own snowflake.max_wait');

# Names that are none.
$server->refuses('SET snowflake.max_drft = 1', qr/invalid configuration parameter name "snowflake.max_drft"/, 'a misspelt setting');

# Malformed settings: refused by ALTER SYSTEM and by a reload; they stop the start, with the name, the value and the reason.
my @malformed = (
	[ 'snowflake.layout', 'nosuch', qr/"nosuch" is neither a preset nor a field/ ],
	[ 'snowflake.layout', '', qr/empty/ ],
	[ 'snowflake.layout', 'timestamp:37 server:20 sequence:16 tick:1ms epoch:2025-01-01', qr/73 bits together; at most 63/ ],
	[ 'snowflake.layout', 'timestamp:41 node:10 sequence:12', qr/epoch is missing/ ],
	[ 'snowflake.layout', 'timestamp:41 node:10 epoch:2025-01-01', qr/field "sequence" is missing/ ],
	[ 'snowflake.layout', 'timestamp:41 node:10 node:2 sequence:10 epoch:2025-01-01', qr/field "node" is given twice/ ],
	[ 'snowflake.layout', 'timestamp:41 node:0 sequence:10 epoch:2025-01-01', qr/field "node" has no bits/ ],
	[ 'snowflake.layout', 'twitter tick:1h', qr/unknown unit/ ],
	[ 'snowflake.layout', 'twitter epoch:1969-12-31', qr/before 1970/ ],
	[ 'snowflake.layout', 'twitter  epoch:2025-01-01', qr/single spaces/ ],
	[ 'snowflake.node_id', '-1', qr/node number "-1" is not a whole number/ ],
	[ 'snowflake.node_id', '1.5', qr/node number "1.5" is not a whole number/ ],
	[ 'snowflake.node_id', '99999999999999999999', qr/node number "99999999999999999999" is not a whole number/ ],
	[ 'snowflake.node_id', 'seven', qr/"seven" is not a node number/ ],
	[ 'snowflake.node_id', 'datacenter=3,datacenter=4', qr/part "datacenter" is given twice/ ],
	[ 'snowflake.node_id', 'datacenter=3,worker=x', qr/part "worker".*"x"/ ],
	[ 'snowflake.node_id', 'address:10.1.0.0', qr/"10.1.0.0" is not a network/ ],
	[ 'snowflake.node_id', 'address:10.1.0.1/22', qr/bits set to the right of its prefix/ ],
	[ 'snowflake.clock', 'sundial', qr/Available values: realtime, monotonic/ ],
	[ 'snowflake.sequence_start', 'one', qr/Available values: subtick, zero, random/ ],
	[ 'snowflake.max_drift', '-1', qr/-1 ms is outside the valid range/ ],
	[ 'snowflake.max_drift', 'much', qr/invalid value for parameter "snowflake.max_drift": "much"/ ],
	[ 'snowflake.max_wait', '2 parsecs', qr/Valid units for this parameter/ ],
	[ 'snowflake.reserve_ahead', '9ms', qr/9 ms is outside the valid range .*10\D.*60000/ ],
	[ 'snowflake.reserve_ahead', '61s', qr/61000 ms is outside the valid range/ ],
	[ 'snowflake.max_forward_jump', '0', qr/0 s is outside the valid range/ ],
	[ 'snowflake.registry_group', 'g' x 64, qr/1 to 63 bytes/ ],
	[ 'snowflake.claim_window', '999ms', qr/999 ms is outside the valid range .*1000\D.*600000/ ],
	[ 'snowflake.claim_window', '11min', qr/660000 ms is outside the valid range/ ]);

foreach my $case (@malformed)
{
	my ($name, $value, $reason) = @$case;

	$server->refuses("ALTER SYSTEM SET $name = '$value'", qr/(?=.*"\Q$name\E")(?=.*$reason)/s, "ALTER SYSTEM SET $name = '$value'");
}

$log = $server->log_position;
$server->reconfigure('snowflake.reserve_ahead' => '1ms', 'snowflake.max_drift' => '1s');
like($server->log_since($log), qr/1 ms is outside the valid range for parameter "snowflake.reserve_ahead"/, 'a reload with a malformed setting is reported');
is($server->value(q{current_setting('snowflake.reserve_ahead')}), '500ms', 'and does not count');
$server->reconfigure('snowflake.reserve_ahead' => undef, 'snowflake.max_drift' => undef);
$server->take;

$server->stop;
foreach my $case (@malformed)
{
	my ($name, $value, $reason) = @$case;
	my $before = $server->{settings}->{$name};

	$log = $server->log_position;
	$server->configure($name => $value);
	is($server->start(fail_ok => 1), 0, "$name = '$value' stops the start");
	like($server->log_since($log), qr/FATAL: .*"\Q$name\E"/, "$name = '$value': the log names the setting");
	like($server->log_since($log), $reason, "$name = '$value': the log names the reason");
	like($server->log_since($log), qr/\Q$value\E|outside the valid range/, "$name = '$value': the log names the value") if $value ne '';
	$server->stop;
	$server->configure($name => $before);
}
# Past what was reserved by half a minute ahead.
$server->step_clock(60);
$server->start;
$server->take;

$server->{ledger}->check('settings');
done_testing();
