# A range of time over a table whose partitions are on other servers: the servers are asked for it alone.
# Which server evaluates a default, and so which node number the ids have: with postgres_fdw, logical replication both ways,
# PL/Proxy; also while a shard is added.

use strict;
use warnings FATAL => 'all';

use IPC::Run;
use PostgreSQL::Test::Utils;
use Snowflake::Missing qw(missing);
use Snowflake::Server;
use Snowflake::Wait qw(wait_until);
use Test::More;

my $coordinator = Snowflake::Server->new('coordinator');
my $shard = Snowflake::Server->new('shard');

sub start_server
{
	my ($server, $node) = @_;

	$server->init(allows_streaming => 'logical');
	$server->configure('snowflake.node_id' => $node);
	$server->start;
	$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
	return;
}

start_server($coordinator, 1);
start_server($shard, 2);
$shard->safe_psql('postgres', 'CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint NOT NULL)');
$coordinator->safe_psql('postgres', sprintf(q{
	CREATE EXTENSION postgres_fdw;
	CREATE SERVER shard FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname 'postgres');
	CREATE USER MAPPING FOR CURRENT_USER SERVER shard;
	CREATE TABLE orders (id bigint NOT NULL DEFAULT snowflake_nextval(), customer_id bigint NOT NULL) PARTITION BY RANGE (customer_id);
	CREATE TABLE orders_here PARTITION OF orders (PRIMARY KEY (id)) FOR VALUES FROM (1) TO (1001);
	CREATE FOREIGN TABLE orders_there PARTITION OF orders FOR VALUES FROM (1001) TO (2001) SERVER shard OPTIONS (table_name 'orders')},
	$shard->host, $shard->port));

# A day ago many, and a few just now, in both partitions.
$coordinator->safe_psql('postgres', q{
	INSERT INTO orders SELECT snowflake_encode(now() - interval '1 day', 3, n), n FROM generate_series(1, 2000) AS n;
	INSERT INTO orders (customer_id) SELECT 1000 + n FROM generate_series(-6, 7) AS n});

# What the shard is asked, and how many rows it returns.
sub asked
{
	my ($condition) = @_;
	my $plan = $coordinator->safe_psql('postgres',
		"EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM orders WHERE $condition");
	my ($rows) = $plan =~ /Foreign Scan on public\.orders_there .*\(actual rows=(\d+)/;
	my ($query) = $plan =~ /Remote SQL: (.*)/;

	note($plan);
	return ($query, $rows);
}

foreach my $case (
	[ q{id >= (SELECT snowflake_min_id(now() - interval '1 hour'))}, qr/WHERE \(+id >= \$1::bigint\)+$/, 'since a time, in a sub-select' ],
	[ q{id BETWEEN (SELECT snowflake_min_id(now() - interval '1 hour')) AND (SELECT snowflake_max_id(now() + interval '1 hour'))},
		qr/WHERE \(+id >= \$1::bigint\)+ AND \(+id <= \$2::bigint\)+$/, 'a range of time, in sub-selects' ],
	[ q{id >= snowflake_min_id('2020-01-01 00:00Z', 'twitter') AND id >= (SELECT snowflake_min_id(now() - interval '1 hour'))},
		qr/WHERE \(+id >= '?\d+'?::bigint\)+ AND \(+id >= \$1::bigint\)+$/, 'a time and a layout that are constants need no sub-select' ])
{
	my ($condition, $pattern, $name) = @$case;
	my ($query, $rows) = asked($condition);

	like($query, $pattern, "$name: the shard is asked for it");
	is($rows, 7, "$name: and returns no more");
	is($coordinator->value("count(*) FROM orders WHERE $condition"), 14, "$name: all are found");
}

# What is to be said of the plain form in doc/sharding.md.
my ($query, $rows) = asked(q{id >= snowflake_min_id(now() - interval '1 hour')});

unlike($query, qr/WHERE/, 'without a sub-select: the shard is asked for all');
is($rows, 7, 'and the coordinator throws away the others');

# Each publishes a table to the other; the subscriber's has one more column with the default.
foreach my $way ([ $coordinator, 1, $shard, 2 ], [ $shard, 2, $coordinator, 1 ])
{
	my ($publisher, $publisher_node, $subscriber, $subscriber_node) = @$way;
	my $name = 'notes_' . $publisher->name;

	foreach my $server ($publisher, $subscriber)
	{
		$server->safe_psql('postgres', "CREATE TABLE $name (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), body text)");
	}
	$subscriber->safe_psql('postgres', "ALTER TABLE $name ADD COLUMN copy_id bigint DEFAULT snowflake_nextval()");
	$publisher->safe_psql('postgres', "INSERT INTO $name (body) VALUES ('before'); CREATE PUBLICATION $name FOR TABLE $name");
	$subscriber->safe_psql('postgres', sprintf("CREATE SUBSCRIPTION $name CONNECTION '%s dbname=postgres' PUBLICATION $name",
		$publisher->connstr));
	$subscriber->wait_for_subscription_sync($publisher, $name);
	$publisher->safe_psql('postgres', "INSERT INTO $name (body) VALUES ('after')");
	$publisher->wait_for_catchup($name);
	is($subscriber->safe_psql('postgres',
			"SELECT body, snowflake_node(id), snowflake_node(copy_id) FROM $name ORDER BY id"),
		"before|$publisher_node|$subscriber_node\nafter|$publisher_node|$subscriber_node",
		"$name: the publisher makes the published column's ids, the subscriber those of its own column");
}

# Defaults of foreign tables.
$shard->safe_psql('postgres', 'CREATE TABLE letters (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), body text)');
$coordinator->safe_psql('postgres', q{
	CREATE FOREIGN TABLE letters (body text) SERVER shard;
	INSERT INTO letters VALUES ('not listed');
	CREATE FOREIGN TABLE listed_letters (id bigint, body text) SERVER shard OPTIONS (table_name 'letters');
	ALTER FOREIGN TABLE listed_letters ALTER id SET DEFAULT snowflake_nextval();
	INSERT INTO listed_letters (body) VALUES ('listed')});
is($shard->safe_psql('postgres', 'SELECT body, snowflake_node(id) FROM letters ORDER BY 1'), "listed|1\nnot listed|2",
	'a foreign table without the column leaves the id to the remote server');
$coordinator->safe_psql('postgres', q{
	CREATE TABLE parent (id bigint, kind int) PARTITION BY LIST (kind);
	CREATE FOREIGN TABLE child PARTITION OF parent FOR VALUES IN (1) SERVER shard OPTIONS (table_name 'parts');
	ALTER FOREIGN TABLE child ALTER id SET DEFAULT snowflake_nextval()});
$shard->safe_psql('postgres', 'CREATE TABLE parts (id bigint DEFAULT snowflake_nextval(), kind int)');
$coordinator->safe_psql('postgres', 'INSERT INTO parent (kind) VALUES (1)');
is($shard->value('id IS NULL FROM parts'), 't', "through the parent, the foreign partition's default and the remote one are not used");

# PL/Proxy runs a function on the shard that its argument leads to.  Debian has none for PostgreSQL 19 yet.
my $has_proxy = $coordinator->value(q{count(*) FROM pg_available_extensions WHERE name = 'plproxy'});
my $is_too_new = $coordinator->pg_version->major >= 19;
my $no_proxy = $has_proxy || $is_too_new ? undef : missing('there is no PL/Proxy');
my $added = Snowflake::Server->new('added');
my $parcels = q{
	CREATE TABLE parcels (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), customer_id int);
	CREATE FUNCTION send_parcel(customer_id int) RETURNS bigint LANGUAGE sql AS
		'INSERT INTO parcels (customer_id) VALUES ($1) RETURNING id'};

note($no_proxy // 'Debian has no PL/Proxy for this version') unless $has_proxy;
$shard->safe_psql('postgres', $parcels);
$coordinator->safe_psql('postgres', 'CREATE TABLE customers (id int); INSERT INTO customers SELECT n FROM generate_series(1, 2000) AS n');
$coordinator->safe_psql('postgres', sprintf(q{
	CREATE EXTENSION plproxy;
	CREATE FOREIGN DATA WRAPPER proxies;
	CREATE SERVER shop FOREIGN DATA WRAPPER proxies OPTIONS (p0 'host=%s port=%s dbname=postgres');
	CREATE USER MAPPING FOR CURRENT_USER SERVER shop;
	CREATE FUNCTION send_parcel(customer_id int) RETURNS bigint LANGUAGE plproxy AS 'CLUSTER ''shop''; RUN ON customer_id;'},
	$shard->host, $shard->port)) if $has_proxy;

# A shard is added while clients write: they take any customer that there is.
my $statements = join "\n", 'SELECT id AS customer_id FROM customers ORDER BY random() LIMIT 1 \gset',
	'INSERT INTO orders (customer_id) VALUES (:customer_id) RETURNING id;', $has_proxy ? 'SELECT send_parcel(:customer_id);' : ();
my @clients = map { my $file = "$PostgreSQL::Test::Utils::tmp_check/client$_"; {
	file => $file,
	run => IPC::Run::start([ 'yes', $statements ], '<', '/dev/null', '2>', '/dev/null', '|',
		[ 'psql', '-XAtq', '-d', $coordinator->connstr('postgres') . ' application_name=client' ], '>', $file, '2>', "$file.errors") } } 1 .. 3;

sub wait_for_clients
{
	my ($count) = @_;

	foreach my $client (@clients)
	{
		my $size = (-s $client->{file}) + 20 * $count;

		wait_until("$client->{file} has $size bytes of ids", sub { -s $client->{file} >= $size });
	}
	return;
}

wait_for_clients(20);
start_server($added, 3);
$added->safe_psql('postgres', "$parcels; CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint NOT NULL)");
wait_for_clients(20);
$coordinator->safe_psql('postgres', sprintf(q{
	CREATE SERVER added FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%1$s', port '%2$s', dbname 'postgres');
	CREATE USER MAPPING FOR CURRENT_USER SERVER added;
	CREATE FOREIGN TABLE orders_added (id bigint NOT NULL DEFAULT snowflake_nextval(), customer_id bigint NOT NULL) SERVER added OPTIONS (table_name 'orders');
	ALTER TABLE orders ATTACH PARTITION orders_added FOR VALUES FROM (2001) TO (3001)}, $added->host, $added->port));
$coordinator->safe_psql('postgres', sprintf(q{ALTER SERVER shop OPTIONS (ADD p1 'host=%s port=%s dbname=postgres')}, $added->host, $added->port))
  if $has_proxy;
$coordinator->safe_psql('postgres', 'INSERT INTO customers SELECT n FROM generate_series(2001, 3000) AS n');
wait_for_clients(40);
$coordinator->value(q{count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'client'});

my @ids;

foreach my $client (@clients)
{
	$client->{run}->finish;
	push @ids, slurp_file($client->{file}) =~ /^(\d+)$/mg;
	unlike(slurp_file("$client->{file}.errors"), qr/ERROR/, 'a client that wrote meanwhile had no error');
}

my %nodes;

foreach my $row (split /\n/, $coordinator->safe_psql('postgres', sprintf("SELECT snowflake_node(id), count(*) FROM unnest('{%s}'::bigint[]) AS id GROUP BY 1",
			join ',', @ids)))
{
	my ($node, $count) = split /\|/, $row;

	$nodes{$node} = $count;
}
is(scalar keys %{ { map { $_ => 1 } @ids } }, scalar @ids, 'all ids that they were given are unique');
is(join(' ', sort keys %nodes), $has_proxy ? '1 2 3' : '1', 'the coordinator has made the orders, and PL/Proxy the parcels on the shards');
is($added->value('count(*) > 0 AND bool_and(snowflake_node(id) = 1) FROM orders'), 't', 'orders on the added shard have the number of the coordinator');
is($shard->value('count(*) > 0 AND bool_and(snowflake_node(id) = 2) FROM parcels'), 't', 'parcels on the first shard have its number') if $has_proxy;
is($added->value('count(*) > 0 AND bool_and(snowflake_node(id) = 3) FROM parcels'), 't', 'parcels on the added one have its own') if $has_proxy;

done_testing();
