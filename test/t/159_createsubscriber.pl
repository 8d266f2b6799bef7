# pg_createsubscriber makes another server of a standby: it has its own system identifier, and keeps the reserved time.

use strict;
use warnings FATAL => 'all';

use IPC::Run;
use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Test::More;

my $publisher = Snowflake::Server->new('publisher');

plan skip_all => 'pg_createsubscriber comes with PostgreSQL 17' if $publisher->pg_version < 17;
$publisher->set_clock(0);
$publisher->init(allows_streaming => 'logical');
$publisher->start;
$publisher->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), item text);
	INSERT INTO orders (item) SELECT n FROM generate_series(1, 100) AS n});
$publisher->backup('backup');

my $subscriber = Snowflake::Server->new('subscriber');

$subscriber->init_from($publisher, 'backup');
$subscriber->set_clock(0);
$subscriber->start;

my $newest = $publisher->take(10);

$publisher->safe_psql('postgres', 'DELETE FROM orders');
$publisher->wait_for_catchup($subscriber);
$subscriber->stop;
$subscriber->command_ok([ 'pg_createsubscriber', '-D', $subscriber->data_dir, '-P', $publisher->connstr('postgres'), '-s', $subscriber->host,
	'-p', $subscriber->port, '-d', 'postgres' ], 'a subscriber is made of the standby');
$publisher->stop;
$subscriber->set_clock(-3600);
$subscriber->start;
$subscriber->refuses(q{INSERT INTO orders (item) VALUES ('next')}, qr/ERROR:  clock is behind the snowflake ids/, 'with the clock an hour back');
$subscriber->step_clock(3599);
cmp_ok($subscriber->safe_psql('postgres', q{INSERT INTO orders (item) VALUES ('next') RETURNING id}), '>', $newest, 'ids go on above');
done_testing();
