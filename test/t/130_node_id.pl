# Where the node number comes from; settings that are well-formed but do not fit
# the layout or the host: a warning at the start, an error at each call, and
# ids can be read all the same.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Test::More;

my $server = Snowflake::Server->new('one');

# A host name as the test wants it: the server's gethostname() comes from here.
my $library = "$PostgreSQL::Test::Utils::tmp_check/host_name.so";
append_to_file("$library.cpp", <<'CODE');
#include <cstdio>
#include <cstdlib>
extern "C" int gethostname(char *name, std::size_t size)
{
	std::snprintf(name, size, "%s", std::getenv("TEST_HOST_NAME"));
	return 0;
}
CODE
system_or_bail($ENV{CXX} // 'c++', '-shared', '-fPIC', '-o', $library, "$library.cpp");

$server->init;
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
my $id = $server->take;

# Starts with a setting; what the log says since.
sub start_with
{
	my ($node_id, $host_name, %settings) = @_;
	my $log = $server->log_position;

	$server->{environment} = { LD_PRELOAD => join(' ', $library, $ENV{LD_PRELOAD} // ()), TEST_HOST_NAME => $host_name // 'localhost' };
	$server->configure('snowflake.node_id' => $node_id, 'snowflake.layout' => undef, %settings);
	$server->restart;
	$log = $server->log_since($log);
	# An error where the layout is one for reading only.
	$server->psql('postgres', 'SELECT snowflake_accept_layout()');
	return $log;
}

# [ snowflake.node_id, the node number, node_source, host name, other settings ]
my @good = (
	[ '0', 0, 'setting' ],
	[ '103', 103, 'setting' ],
	[ '1023', 1023, 'setting' ],
	[ 'datacenter=3,worker=7', 103, 'setting' ],
	[ 'worker=7,datacenter=3', 103, 'setting' ],
	[ 'hostname', 3, 'hostname', 'orders-3' ],
	[ 'hostname', 12, 'hostname', 'orders-012.shop9.example.com' ],
	[ 'hostname', 1000, 'hostname', '1000' ],
	[ 'address:127.0.0.0/24', 1, 'address' ],
	[ 'address:127.0.0.0/22', 1, 'address' ],
	[ 'address:127.0.0.1/32', 0, 'address' ],
	[ 'address:127.0.0.0/8', 1, 'address', undef, 'snowflake.layout' => 'timestamp:35 node:24 sequence:4 tick:100ms epoch:2020-01-01' ],
	[ '70000', 70000, 'setting', undef, 'snowflake.layout' => 'game' ],
	[ '0', 0, 'setting', undef, 'snowflake.layout' => 'timestamp:47 sequence:16 epoch:2020-01-01' ]);

# The kernel says whether there is an IPv6 loopback address.
my $has_ipv6 = -e '/proc/net/if_inet6' && slurp_file('/proc/net/if_inet6') =~ /^0{31}1 /m;
push @good, [ 'address:::/120', 1, 'address' ] if $has_ipv6;

foreach my $case (@good)
{
	my ($node_id, $number, $source, $host_name, %settings) = @$case;
	my $name = "\"$node_id\"" . (defined $host_name ? " on $host_name" : '');
	my $log = start_with($node_id, $host_name, %settings);

	unlike($log, qr/WARNING/, "$name: no warning");
	is($server->value('snowflake_node(snowflake_nextval())'), $number, "$name: the node number");
	is($server->stat(q{node_id || ' ' || node_source}), "$number $source", "$name: as shown");
}

# [ snowflake.node_id, what the warning and the error say, host name, other settings ]
my @misfits = (
	[ '1024', qr/1024 is outside the range of the layout, 0 to 1023/ ],
	[ '9223372036854775807', qr/9223372036854775807 is outside the range of the layout/ ],
	[ 'datacenter=32,worker=0', qr/part "datacenter" is 32, outside its range in the layout, 0 to 31/ ],
	[ 'datacenter=3', qr/part "worker" is missing/ ],
	[ 'shard=1', qr/no node field "shard"/ ],
	[ 'datacenter=1,worker=1,sequence=1', qr/no node field "sequence"/ ],
	[ 'hostname', qr/host name "orders" does not end in digits/, 'orders' ],
	[ 'hostname', qr/host name "orders.shop9" does not end in digits/, 'orders.shop9' ],
	[ 'hostname', qr/host name "orders-1024".*range of the layout, 0 to 1023/, 'orders-1024' ],
	[ 'hostname', qr/host name "ip-10-1-2-3.shop" ends in two numbers/, 'ip-10-1-2-3.shop' ],
	[ 'address:203.0.113.0/24', qr/no address in the network/ ],
	[ 'address:127.0.0.0/8', qr/24 host bits, but the node number of the layout has 10/ ],
	[ 'address:2001:db8::/120', qr/no address in the network/ ],
	[ 'auto', qr/free node number can only come from a registry, and "snowflake.registry" is empty/ ],
	[ '1', qr/1 is outside the range of the layout, 0 to 0/, undef, 'snowflake.layout' => 'mastodon' ],
	[ '1', qr/first field is not the timestamp/, undef, 'snowflake.layout' => 'node:10 timestamp:41 sequence:12 epoch:2025-01-01' ]);

foreach my $case (@misfits)
{
	my ($node_id, $reason, $host_name, %settings) = @$case;
	my $name = "\"$node_id\"" . (defined $host_name ? " on $host_name" : '') . (%settings ? ' with another layout' : '');
	my $log = start_with($node_id, $host_name, %settings);

	like($log, qr/WARNING: .*cannot make ids/, "$name: a warning at the start");
	like($log, $reason, "$name: the warning says why");
	foreach my $call ('SELECT snowflake_nextval()', 'SELECT snowflake_nextval()', 'SELECT snowflake_nextval_batch(2)')
	{
		$server->refuses($call, qr/ERROR: .*cannot make ids with .*$reason.*HINT: /s, "$name, $call");
	}
	is($server->value("snowflake_timestamp($id, 'twitter') < now()"), 't', "$name: ids can be read");
	is($server->value('count(*) FROM snowflake_decode(1)'), 1, "$name: ids can be read in the server's layout");
	is($server->stat('last_id IS NULL AND claim = \'none\' AND errors > 0'), 't', "$name: nothing is issued");
}

# None: no warning, since not every server makes ids; the error says what to do.
unlike(start_with(''), qr/WARNING/, 'no node number: no warning');
$server->refuses('SELECT snowflake_nextval()', qr/ERROR: .*cannot make ids without a node number.*"snowflake.node_id".*HINT: .*0 to 1023.*snowflake.node_id = /s, 'no node number');
$server->refuses('CREATE TABLE orders (id bigint DEFAULT snowflake_nextval()); INSERT INTO orders DEFAULT VALUES', qr/without a node number/, 'a default without a node number');
$server->safe_psql('postgres', q{
	DO $$
	BEGIN
		FOR i IN 1 .. 3 LOOP
			BEGIN
				PERFORM snowflake_nextval();
			EXCEPTION WHEN object_not_in_prerequisite_state THEN
				NULL;
			END;
		END LOOP;
		PERFORM snowflake_stat_reset();
	END $$});
pass('no node number: an error that is caught leaves no lock behind');
is($server->value("snowflake_node($id)"), 1, 'no node number: ids can be read');
is($server->stat('node_id IS NULL AND node_source IS NULL AND layout IS NOT NULL'), 't', 'no node number: snowflake_stat shows none');

start_with('1');
$server->take(10);
$server->{ledger}->check('node numbers');
done_testing();
