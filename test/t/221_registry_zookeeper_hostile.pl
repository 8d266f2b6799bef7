# ZooKeeper that others write to: znodes that can't be claims, and numbers that can't be meant, keep nobody else from a claim;
# with snowflake.registry_auth_file others can't write at all.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Ledger;
use Snowflake::Server;
use Snowflake::Wait qw(wait_until);
use Snowflake::ZooKeeper;
use Test::More;

my $reason = Snowflake::ZooKeeper->missing_registry;

plan skip_all => $reason if defined $reason;

my $zookeeper = Snowflake::ZooKeeper->new;

$zookeeper->start;

my $ledger = Snowflake::Ledger->new;
my $group = '/ids/default';

sub new_server
{
	my ($name, %settings) = @_;
	my $server = Snowflake::Server->new($name, ledger => $ledger);

	$server->init;
	$server->configure(
		'snowflake.node_id' => 'auto',
		'snowflake.registry' => 'zookeeper://' . $zookeeper->address . '/ids',
		'snowflake.claim_window' => '15s',
		%settings);
	return $server;
}

sub begin
{
	my ($server) = @_;

	$server->start;
	$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
	return;
}

sub held
{
	my ($server) = @_;

	$server->poll_query_until('postgres', q{SELECT claim = 'held' FROM snowflake_stat}) or die 'no claim: ' . $server->stat('problem');
	return $server->stat('node_id');
}

sub claim_text
{
	my (%values) = (generation => 5, granted_until_us => 1735689600000000, since_us => 1735689500000000, @_);

	return "snowflake-claim 1\ngeneration $values{generation}\ngranted_until_us $values{granted_until_us}\nsince_us $values{since_us}\n"
	  . "nonce \nport 5432\nhost h\ndata_directory /d\n";
}

# A znode with any content, made by a client of the test's own; ZooKeeper's takes no newline in it.
sub put
{
	my ($path, $data) = @_;
	# Protocol version, last transaction seen, timeout in ms, session, password, not read-only.
	my $connect = pack 'N q> N q> N/a* C', 0, 0, 4000, 0, "\0" x 16, 0;
	# Number of the request, create, path, data, one ACL: all rights, world, anyone; persistent.
	my $create = pack 'l> l> N/a* N/a* l> l> N/a* N/a* l>', 1, 1, $path, $data, 1, 31, 'world', 'anyone', 0;
	my $close = pack 'l> l>', 2, -11;
	my (undef, $answer) = unpack '(N/a*)*', $zookeeper->ask(pack 'N/a* N/a* N/a*', $connect, $create, $close);

	is(unpack('x12 l>', $answer), 0, "znode $path is made");
	return;
}

my $max = '9223372036854775807';
my $server = new_server('auto');

put('/ids', '');
put($group, '');
put("$group/0", 'nothing');
put("$group/1", claim_text(generation => $max));
put("$group/2", claim_text(granted_until_us => $max));
put("$group/3", claim_text(since_us => $max));
put("$group/4", claim_text() . 'x' x 1_000_000);
put("$group/5", '');
put("$group/99999999", "\0" x 100);
put("$group/00", 'x');
put("$group/" . '9' x 30, 'x');
begin($server);
my $node = held($server);

# What later versions may add does not make a claim another: number 4 can be read, but was used.
is($node, 6, 'auto: the lowest number that nobody has put anything at');
$server->take(100);

my $log = slurp_file($server->logfile);

foreach my $number (0, 1, 2, 3, 5, 99999999)
{
	is(scalar(() = $log =~ m{WARNING: .*snowflake registry has a claim that cannot be read\n.*DETAIL: .*znode "\Q$group\E/$number" in ZooKeeper holds no claim}g),
		1, "the log tells of number $number once");
}
unlike($log, qr/terminated by signal/, 'nothing crashed');

# A fixed number that can't be read is refused, and nothing is written there.
foreach my $number (1, 2)
{
	$server->stop;
	$server->configure('snowflake.node_id' => $number);
	$server->start;
	wait_until("number $number is refused", sub { $server->stat('problem') =~ m{znode "\Q$group\E/$number" in ZooKeeper holds no claim that can be read} });
	is($server->stat('granted_until'), '', "number $number: nothing is granted");
}
$server->stop;

# A layout of a megabyte is another layout.
my $other = new_server('other', 'snowflake.registry_group' => 'long');

put('/ids/long', '');
put('/ids/long/.layout', 'l' x 1_000_000);
begin($other);
wait_until('the layout is refused', sub { $other->stat('problem') =~ /its group has the layout "l/ });
$other->stop;

#
# With a user that ZooKeeper knows.
#

my $auth_file = "$PostgreSQL::Test::Utils::tmp_check/zookeeper_user";

append_to_file($auth_file, "keeper:the secret\n");

my $known = new_server('known', 'snowflake.registry' => 'zookeeper://' . $zookeeper->address . '/guarded', 'snowflake.registry_auth_file' => $auth_file);

# A file that others may read is not used.
chmod 0644, $auth_file;
begin($known);
wait_until('a file that others may read', sub { $known->stat('problem') =~ /the file of "snowflake.registry_auth_file" must be a regular file/ });
chmod 0600, $auth_file;
is(held($known), 0, 'a claim with a user');
$known->take(100);
foreach my $path ('/guarded', '/guarded/default', '/guarded/default/0', '/guarded/default/0/alive', '/guarded/default/.layout', '/guarded/default/.keepers')
{
	like($zookeeper->cli('get', $path), qr/NoAuth|Insufficient permission/, "others can't read $path");
}
foreach my $command ([ 'set', '/guarded/default/0', 'x' ], [ 'delete', '/guarded/default/.layout' ], [ 'create', '/guarded/default/7', 'x' ],
	[ 'deleteall', '/guarded' ], [ 'setAcl', '/guarded/default/0', 'world:anyone:cdrwa' ])
{
	like($zookeeper->cli(@$command), qr/NoAuth|Insufficient permission|Failed to delete/i, "others can't @$command[0 .. 1]");
}
is(held($known), 0, 'the claim is held');
$known->take(10);

# Nor a server without the secret, or with another one.
my $stranger = new_server('stranger', 'snowflake.registry' => 'zookeeper://' . $zookeeper->address . '/guarded');

begin($stranger);
wait_until('a server without the secret', sub { $stranger->stat('problem') =~ /in ZooKeeper: not authenticated/ });
is($stranger->stat('claim'), 'none', 'a server without the secret has no claim');
$stranger->stop;
append_to_file("$auth_file.other", "keeper:another\n");
chmod 0600, "$auth_file.other";
$stranger->configure('snowflake.registry_auth_file' => "$auth_file.other");
$stranger->start;
wait_until('a server with another secret', sub { $stranger->stat('problem') =~ /in ZooKeeper: not authenticated/ });
is($stranger->stat('claim'), 'none', 'a server with another secret has no claim');
$stranger->stop;
$stranger->configure('snowflake.registry_auth_file' => $auth_file);
$stranger->start;
is(held($stranger), 1, 'a server with the secret has one');
$stranger->take(10);
$stranger->stop;
unlike(slurp_file($_->logfile), qr/the secret/, 'no log has the secret') foreach $known, $stranger;

# Gives commands to one session of ZooKeeper's own client; what it prints.
sub command_zookeeper
{
	my ($commands) = @_;
	my $output;

	unlink "$auth_file.commands";
	append_to_file("$auth_file.commands", $commands);
	IPC::Run::run([ $zookeeper->cli_command ], '<', "$auth_file.commands", '>&', \$output, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	return $output;
}

unlike(slurp_file($known->logfile), qr/can be changed by others/, 'nor does it warn of the znodes');

# Somebody was there before the first server, and could delete what it creates.
$zookeeper->cli('create', '/before', 'x');
$zookeeper->cli('create', '/before/default', 'x');
$stranger->configure('snowflake.registry' => 'zookeeper://' . $zookeeper->address . '/before');
$log = $stranger->log_position;
$stranger->start;
is(held($stranger), 0, 'a path that somebody else has created');
foreach my $path ('/before', '/before/default')
{
	like($stranger->log_since($log), qr/WARNING:  snowflake registry can be changed by others than its user\n.*DETAIL: .* the rights on "$path" let anybody change it/, "$path: the log warns of it");
}
unlike($stranger->log_since($log), qr/the rights on "[^"]*keepers"/, 'not of what the server has created');
command_zookeeper(qq{addauth digest "keeper:the secret"\nsetAcl -R /before auth::cdrwa\n});
like($zookeeper->cli('delete', '/before/default/0'), qr/NoAuth|Insufficient permission|not empty/i, 'closed as it advises, nobody else deletes a claim');
$log = $stranger->log_position;
$stranger->restart;
isnt(held($stranger), '', 'after that');
unlike($stranger->log_since($log), qr/can be changed by others/, 'there is no warning');
$stranger->stop;

# Another password, with one server after the other.
my $both = qq{addauth digest "keeper:the secret"\naddauth digest "keeper:the next"\n};

command_zookeeper("${both}setAcl -R /guarded auth::cdrwa\n");
is(held($known), 0, 'a password is to be changed: the claim is held');
$known->take(10);
$known->stop;
$known->configure('snowflake.node_id' => 0);
unlink $auth_file;
append_to_file($auth_file, "keeper:the next\n");
chmod 0600, $auth_file;
$known->start;
is(held($known), 0, 'with the new password: the number is held again');
$known->take(10);

my ($next) = command_zookeeper(qq{addauth digest "keeper:the next"\ncreate /of_next x auth::cdrwa\ngetAcl /of_next\n}) =~ /digest,'(keeper:\S+)/;

command_zookeeper("${both}setAcl -R /guarded digest:$next:cdrwa\n");
like(command_zookeeper(qq{addauth digest "keeper:the secret"\nget /guarded/default/0\n}), qr/NoAuth|Insufficient permission/, 'the old password counts no more');
is(held($known), 0, 'and the claim is held');
$known->restart;
is(held($known), 0, 'also after a restart');
$known->take(10);

# Turned on for znodes that are there, without a pause: the servers first, then the znodes.
$server->configure('snowflake.node_id' => 'auto', 'snowflake.registry_auth_file' => $auth_file);
$server->start;
isnt(held($server), '', 'a server with a user, at znodes that are open');

my $output = command_zookeeper(qq{addauth digest "keeper:the next"\nsetAcl -R /ids auth::cdrwa\n});

like($zookeeper->cli('get', "$group/6"), qr/NoAuth|Insufficient permission/, 'znodes that were open are not any more') or diag($output);
$log = $server->log_position;
$server->reload;
$server->take(10);
is($server->stat('claim'), 'held', 'and the server goes on');
$server->stop;
$known->stop;

$ledger->check('ZooKeeper that others write to');
done_testing();
