# What errors tell: a role without rights learns the state of the claim and since when, and nothing of where the registry is, who
# holds what, or what libpq said.  The log has all of it, and so has the error of a superuser, or of a member of
# pg_read_all_settings.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Holder;
use Snowflake::Ledger;
use Snowflake::Registry;
use Test::More;

my $ledger = Snowflake::Ledger->new;
my $registry = Snowflake::Registry->new('registry');
my $roles = q{
	CREATE ROLE plain LOGIN;
	CREATE ROLE reader LOGIN;
	GRANT pg_monitor TO reader;
	GRANT EXECUTE ON FUNCTION snowflake_advance_past(bigint), snowflake_internal.set_aside TO plain, reader;
	CREATE FUNCTION by_superuser() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT snowflake_nextval()'};

$registry->init;
$registry->start;

my ($one, $two) = map { Snowflake::Holder->new($_, registry => $registry, ledger => $ledger) } qw(one two);

$_->init foreach $one, $two;
$_->configure('snowflake.node_id' => 7, 'snowflake.registry_group' => 'secretgroup', 'snowflake.claim_window' => '60s') foreach $one, $two;
$one->begin;
is($one->held, 7, 'one holds the number');
$one->safe_psql('postgres', $roles);

my @secrets = ($registry->host, $registry->port, 'secretgroup', $one->data_dir, $two->data_dir, $one->port, $two->port, 'keeper@', 'connection to server', 'postgresql://');
my $secret = join '|', map { "\Q$_\E" } @secrets;

# What psql tells a role, with all of an error's fields.
sub told
{
	my ($server, $role, $sql) = @_;
	my ($status, $out, $err) = $server->psql('postgres', "\\set VERBOSITY verbose\n\\set SHOW_CONTEXT always\n$sql",
		connstr => $server->connstr('postgres') . " user=$role", on_error_stop => 1, on_error_die => 0);

	return "$out$err";
}

sub hides
{
	my ($server, $sql, $public, $private, $name) = @_;
	my $position = $server->log_position;
	my $told = told($server, 'plain', $sql);

	like($told, $public, "$name: a plain role is told that");
	unlike($told, qr/$secret/, "$name: and nothing of the registry's");
	like($server->log_since($position), qr/DETAIL: .*$private/, "$name: the log has it all");
	like(told($server, 'reader', $sql), $private, "$name: so has a member of pg_monitor");
	return;
}

# Another holds the number.
$two->start;
$two->safe_psql('postgres', 'CREATE EXTENSION snowflake');
$two->safe_psql('postgres', $roles);
$two->refused_for($one, 'the number is held');
hides($two, $_, qr/the registry has granted no node number\n.*DETAIL:  Claim "none" since 20\d\d-\S+ \S+; the server's log says why\./s,
	qr/group "secretgroup".*node number 7 is held by /, $_)
  foreach 'SELECT snowflake_nextval()', 'SELECT count(*) FROM snowflake_nextval_batch(10)';
like(told($two, 'plain', 'SELECT by_superuser()'), qr/Claim "none" since 20/, 'a function of a superuser');
unlike(told($two, 'plain', 'SELECT by_superuser()'), qr/$secret/, 'a function of a superuser: nothing of the registry\'s');
unlike(told($two, 'plain', 'TABLE snowflake_stat'), qr/$secret/, 'nor does snowflake_stat');
like(told($two, 'reader', 'TABLE snowflake_stat'), qr/is held by/, 'but to a member of pg_monitor');
unlike(told($two, 'plain', "SELECT * FROM pg_settings; SELECT pid, query, backend_type FROM pg_stat_activity WHERE backend_type ~ 'snowflake'"),
	qr/secretgroup|postgresql:\/\//, 'nor do pg_settings and pg_stat_activity');
foreach my $setting (qw(snowflake.registry snowflake.registry_group snowflake.registry_auth_file))
{
	like(told($two, 'plain', "SHOW $setting"), qr/ERROR:  42501: /, "SHOW $setting");
	like(told($two, 'plain', "SELECT current_setting('$setting', true)"), qr/ERROR:  42501: /, "current_setting('$setting')");
	like(told($two, 'plain', "SET $setting = 'x'"), qr/ERROR: /, "SET $setting");
	is(told($two, 'plain', "SELECT count(*) FROM pg_settings WHERE name = '$setting'"), '0', "pg_settings: $setting");
}

# What the merge's function says.
hides($two, 'SELECT snowflake_internal.set_aside(7, now())', qr/node number 7 was claimed.*DETAIL:  It is held by another server, up to 20\d\d-\S+ \S+; the server's log says why/s,
	qr/group "secretgroup".*: held by \S+:\d+, /, 'a number that is held');
like(told($two, 'plain', "SELECT snowflake_internal.set_aside(8, now() + interval '1 year')"), qr/could not set aside.*DETAIL:  The registry refuses it: it grants time at most/s,
	'what the rules refuse, they say');
$two->stop;

# The id lies beyond the grant.
my $told = told($one, 'plain', q{SELECT snowflake_advance_past(snowflake_encode(now() + interval '30 min', 7, 0))});

like($told, qr/id lies beyond what the registry has granted.*DETAIL: /s, 'an id beyond the grant');
unlike($told, qr/$secret/, 'an id beyond the grant: nothing of the registry\'s');

# The registry is away, and what was granted is over.
$one->reconfigure('snowflake.claim_window' => '3s');
$one->stop;
$one->start;
is($one->held, 7, 'one holds the number again');
$registry->stop;
$one->wait_for_state('lost');
hides($one, 'SELECT snowflake_nextval()', qr/no further\n.*DETAIL:  Node number 7, granted until 20\d\d-.*, claim "lost" since 20\d\d-\S+ \S+; the server's log says why/s,
	qr/group "secretgroup", node number 7.*connection to server/, 'the registry is away');
hides($one, 'SELECT snowflake_internal.set_aside(9, now())', qr/could not set aside.*DETAIL:  The server's log says why/s, qr/connection to server/, 'the registry is away: a number to set aside');
$one->stop;

done_testing();
