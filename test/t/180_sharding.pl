# A range of time over a table whose partitions are on other servers: the servers are asked for it alone.
# Logical replication both ways: which server evaluates a default.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Test::More;

my $coordinator = Snowflake::Server->new('coordinator');
my $shard = Snowflake::Server->new('shard');

foreach my $server ($coordinator, $shard)
{
	$server->init(allows_streaming => 'logical');
	$server->configure('snowflake.node_id' => $server == $shard ? 2 : 1);
	$server->start;
	$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');
}
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

done_testing();
