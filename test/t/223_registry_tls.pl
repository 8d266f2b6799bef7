# A registry that is reached over a network: with sslmode=verify-full the keeper speaks to the server that the certificate names
# and to nobody else, in the forms of address that doc/registry.md gives.

use strict;
use warnings FATAL => 'all';

use IPC::Run;
use PostgreSQL::Test::Utils qw(append_to_file);
use Snowflake::Holder;
use Snowflake::Ledger;
use Snowflake::Missing qw(missing);
use Snowflake::Registry;
use Test::More;

my $reason = missing(
	qx(pg_config --configure) !~ /--with-(?:open)?ssl/ ? 'PostgreSQL was built without SSL'
	: !(grep { -x "$_/openssl" } split /:/, $ENV{PATH}) ? 'there is no openssl'
	: undef);

plan skip_all => $reason if defined $reason;

my $directory = PostgreSQL::Test::Utils::tempdir;

sub openssl
{
	my ($out, $err) = ('', '');

	IPC::Run::run([ 'openssl', @_ ], '>', \$out, '2>', \$err) or die "openssl @_: $err";
	return;
}

# A root, and a certificate for a name that is signed by one.
sub make_root
{
	my ($root) = @_;

	openssl(qw(req -x509 -newkey rsa:2048 -nodes -days 2 -subj), "/CN=$root", '-keyout', "$directory/$root.key", '-out', "$directory/$root.crt");
	return;
}

sub make_certificate
{
	my ($root, $name) = @_;
	my $file = "$directory/$root.$name";

	openssl(qw(req -newkey rsa:2048 -nodes -subj), "/CN=$name", '-keyout', "$file.key", '-out', "$file.csr");
	openssl(qw(x509 -req -days 2 -CAcreateserial), '-in', "$file.csr", '-CA', "$directory/$root.crt", '-CAkey', "$directory/$root.key", '-out', "$file.crt");
	chmod 0600, "$file.key" or die "could not change the mode: $!";
	return;
}

make_root($_) foreach qw(ours theirs);
make_certificate(@$_) foreach [qw(ours registry.example)], [qw(ours other.example)], [qw(theirs registry.example)], [qw(ours keeper)], [qw(ours stranger)];

my $ledger = Snowflake::Ledger->new;
my $registry = Snowflake::Registry->new('registry');

$registry->init;
$registry->configure('listen_addresses' => '127.0.0.1');
$registry->start;
$registry->safe_psql('postgres', q{SET password_encryption = 'scram-sha-256'; ALTER ROLE keeper PASSWORD 'sesame'});

# The server has this certificate from now on, and lets the keeper in so.
sub serve
{
	my ($certificate, $method) = @_;
	my $hba = $registry->data_dir . '/pg_hba.conf';

	$registry->stop;
	unlink $hba;
	append_to_file($hba, "local all all trust\n$method\n");
	$registry->configure(
		'ssl' => defined $certificate ? 'on' : 'off',
		'ssl_cert_file' => defined $certificate ? "$directory/$certificate.crt" : undef,
		'ssl_key_file' => defined $certificate ? "$directory/$certificate.key" : undef,
		'ssl_ca_file' => defined $certificate ? "$directory/ours.crt" : undef);
	$registry->start;
	$registry->settle;
	return;
}

my $passwords = "$directory/passwords";

append_to_file($passwords, "registry.example:*:*:keeper:sesame\n");
chmod 0600, $passwords or die "could not change the mode: $!";

sub address
{
	return $registry->address(host => 'registry.example', hostaddr => '127.0.0.1', sslmode => 'verify-full', sslrootcert => "$directory/ours.crt", @_);
}

my %password = (passfile => $passwords, channel_binding => 'require');
my $by_password = 'hostssl all keeper 127.0.0.1/32 scram-sha-256';
my $server = Snowflake::Holder->new('one', registry => $registry, ledger => $ledger);

$server->init;
$server->configure('snowflake.node_id' => 7);
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');

# Starts anew with an address, and does what it is to do.
sub begin
{
	my ($address) = @_;

	$server->stop;
	$server->configure('snowflake.registry' => $address);

	my $log = $server->log_position;

	$server->start;
	return $log;
}

sub held
{
	my ($address, $name) = @_;
	my $log = begin($address);

	is($server->held, 7, "$name: the number is held");
	$server->take(100);
	unlike($server->log_since($log), qr/sslmode/, "$name: no word about sslmode in the log");
	is($registry->value(q{string_agg(DISTINCT concat_ws(' ', s.ssl, a.usename), ', ') FROM pg_stat_ssl AS s JOIN pg_stat_activity AS a USING (pid)
		WHERE a.client_addr IS NOT NULL}), 't keeper', "$name: over an encrypted connection");
	return;
}

sub refused
{
	my ($address, $why, $name) = @_;
	my $log = begin($address);

	$server->wait_for_log(qr/no snowflake node number is claimed\n.*DETAIL: .*$why/, $log);
	is($server->stat('claim'), 'none', "$name: nothing is claimed");
	return;
}

serve('ours.registry.example', $by_password);
held(address(%password), 'a password');
held(address(passfile => $passwords, require_auth => 'scram-sha-256'), 'a password, require_auth') if $registry->pg_version >= 16;

# A certificate of the server that is renewed, and a password that is: whoever is connected stays, and comes back with the new one.
$registry->safe_psql('postgres', q{SET password_encryption = 'scram-sha-256'; ALTER ROLE keeper PASSWORD 'mellon'});
unlink $passwords;
append_to_file($passwords, "registry.example:*:*:keeper:mellon\n");
chmod 0600, $passwords or die "could not change the mode: $!";
$registry->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'keeper'});
my $generation = $registry->claim(7, 'generation');
$registry->wait_for_claim(7, "generation > $generation + 1");
is($server->stat('claim'), 'held', 'a new password in the password file: the number is held on');
$server->take(100);

refused(address(%password, sslrootcert => "$directory/theirs.crt"), 'certificate verify failed', 'a root that is not the server\'s');
refused(address(%password, sslrootcert => "$directory/none.crt"), 'root certificate file .* does not exist', 'no root');
refused(address(%password, host => 'elsewhere.example'), 'server certificate for "registry.example" does not match host name "elsewhere.example"', 'another host name');

serve('ours.other.example', $by_password);
refused(address(%password), 'server certificate for "other.example" does not match host name "registry.example"', 'another server of the same root');
serve('theirs.registry.example', $by_password);
refused(address(%password), 'certificate verify failed', 'a server that calls itself so');
serve(undef, 'host all keeper 127.0.0.1/32 scram-sha-256');
refused(address(%password), 'server does not support SSL', 'a server without certificate');
serve('ours.registry.example', 'hostssl all keeper 127.0.0.1/32 password');
refused(address(%password), 'channel binding required', 'a server that wants the password in clear');
serve('ours.registry.example', 'hostssl all keeper 127.0.0.1/32 trust');
refused(address(%password), 'channel binding required', 'a server that wants no password');

# A client certificate in the place of a password.
my $by_certificate = 'hostssl all keeper 127.0.0.1/32 cert';

serve('ours.registry.example', $by_certificate);
held(address(sslcert => "$directory/ours.keeper.crt", sslkey => "$directory/ours.keeper.key"), 'a client certificate');
refused(address(sslcert => "$directory/ours.stranger.crt", sslkey => "$directory/ours.stranger.key"), 'certificate authentication failed for user "keeper"', 'another\'s client certificate');
refused(address(), 'connection requires a valid client certificate', 'no client certificate');

$server->stop;
done_testing();
