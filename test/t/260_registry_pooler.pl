# A registry behind PgBouncer in transaction mode: servers share one connection to
# it, with each other and with other clients, and leave nothing there.

use strict;
use warnings FATAL => 'all';

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils qw(append_to_file);
use Snowflake::Holder;
use Snowflake::Ledger;
use Snowflake::Missing qw(missing);
use Snowflake::Registry;
use Snowflake::Wait qw(wait_until);
use Test::More;

my ($program) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin';

my $reason = missing(defined $program ? undef : 'there is no PgBouncer');

plan skip_all => $reason if defined $reason;

my $ledger = Snowflake::Ledger->new;
my $registry = Snowflake::Registry->new('registry');

$registry->init;
$registry->start;
$registry->safe_psql('postgres', 'ALTER ROLE keeper SET synchronous_commit = off');

my $port = PostgreSQL::Test::Cluster::get_free_port();
my $configuration = "$PostgreSQL::Test::Utils::tmp_check/pgbouncer.ini";

append_to_file($configuration, <<"END");
[databases]
postgres = host=@{[ $registry->host ]} port=@{[ $registry->port ]} user=keeper
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 1
logfile = $PostgreSQL::Test::Utils::log_path/pgbouncer.log
END

my $pooler = IPC::Run::start([ $program, '-q', $configuration ], '<', '/dev/null', '>', '/dev/null', '2>&1');

END
{
	local $?;
	$pooler->kill_kill if $pooler;
}

my $address = $registry->address(host => '127.0.0.1', port => $port);
# What any client finds on the connection: a value for each of what servers set for themselves.
my $settings = q{SELECT string_agg(name || ' ' || setting, ', ' ORDER BY name) FROM pg_settings
	WHERE name IN ('synchronous_commit', 'lock_timeout', 'statement_timeout')};
my @client = ('psql', '-XAtq', '-d', $address, '-c', $settings);
my $clean = "lock_timeout 0, statement_timeout 0, synchronous_commit off\n";
my ($found, $error);

wait_until('the pooler answers', sub { IPC::Run::run([@client], '>', \$found, '2>', \$error) });
is($found, $clean, 'a connection of the pooler\'s');

my @holders = map { Snowflake::Holder->new($_, registry => $registry, ledger => $ledger) } qw(first second);

foreach my $holder (@holders)
{
	$holder->init;
	$holder->configure('snowflake.registry' => $address, 'snowflake.claim_window' => '10s');
	$holder->begin;
	$holder->held;
}
$_->take(1000) foreach @holders;
foreach my $number (0, 1)
{
	my $generation = $registry->claim($number, 'generation');

	$registry->wait_for_claim($number, "generation > $generation");
}
$_->take(1000) foreach @holders;
IPC::Run::run([@client], '>', \$found, '2>', \$error);
is($found, $clean, 'after grants and renewals it is as it was');

# What the registry refuses ends a transaction, too.
$registry->safe_psql('postgres', 'REVOKE EXECUTE ON FUNCTION snowflake_internal.registry_write FROM keeper');
$_->wait_for_state('suspended') foreach @holders;
$registry->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION snowflake_internal.registry_write TO keeper');
$_->wait_for_state('held') foreach @holders;
$_->take(1000) foreach @holders;
IPC::Run::run([@client], '>', \$found, '2>', \$error);
is($found, $clean, 'after what was refused it is as it was');

$_->stop foreach @holders;
$ledger->check('servers behind a pooler');
done_testing();
