# Adopting more tables than the server has locks for: said beforehand, and possible in several transactions.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $server = PostgreSQL::Test::Cluster->new('shop');

$server->init;
$server->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'snowflake'
	snowflake.node_id = '1'
	max_connections = 10
	max_wal_senders = 0
	max_worker_processes = 2
});
$server->start;
$server->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE EXTENSION snowflake_migrate;
	CREATE TABLE t1 (id serial PRIMARY KEY, note text UNIQUE);
	INSERT INTO t1 VALUES (1, 'x');
});
# The extension takes more locks to be created than its functions need.
$server->append_conf('postgresql.conf', 'max_locks_per_transaction = 40');
$server->restart;
$server->safe_psql('postgres', "CREATE TABLE t$_ (id serial PRIMARY KEY, note text UNIQUE, parent int REFERENCES t" . ($_ - 1) . "); INSERT INTO t$_ VALUES (1, 'x', 1)")
	foreach 2 .. 40;

my $tables = '{' . join(',', map { "t$_" } 1 .. 40) . '}';
my $adopted = q{SELECT count(*) FROM pg_attribute AS a JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
	WHERE a.attname = 'id' AND a.atttypid = 'bigint'::regtype AND pg_get_expr(d.adbin, d.adrelid) = 'snowflake_nextval()'};

like($server->safe_psql('postgres', "SELECT blocked_by, action FROM snowflake_migrate.adopt('$tables', dry_run => true) WHERE blocked_by IS NOT NULL"),
	qr/^about [0-9]+ locks for all tables of the call, where the server has room for [0-9]+\|CALL snowflake_migrate.adopt_in_parts\(...\); or set max_locks_per_transaction to [0-9]+/,
	'a dry run says so');

my ($status, $out, $err) = $server->psql('postgres', "SELECT * FROM snowflake_migrate.adopt('$tables')");

isnt($status, 0, 'refused');
like($err, qr/cannot adopt the tables as they are.*about [0-9]+ locks/s, 'with the reason');
is($server->safe_psql('postgres', $adopted), 0, 'nothing is changed');

($status, $out, $err) = $server->psql('postgres', "CALL snowflake_migrate.adopt_in_parts('$tables', part_size => 4)");
is($status, 0, 'adopted in parts') or diag($err);
like($err, qr/NOTICE:  4 of 40 keys are adopted.*NOTICE:  12 of 40 keys are adopted/s, 'it says how far it is');
is($server->safe_psql('postgres', $adopted), 40, 'all keys');
is($server->safe_psql('postgres', "SELECT count(*) FROM pg_attribute WHERE attrelid::regclass::text ~ '^t[0-9]+\$' AND attname = 'parent' AND atttypid = 'bigint'::regtype"), 39,
	'and what refers to them');
($status, $out, $err) = $server->psql('postgres', "CALL snowflake_migrate.adopt_in_parts('$tables', part_size => 5)");
is($status, 0, 'the same again') or diag($err);
($status, $out, $err) = $server->psql('postgres', "CALL snowflake_migrate.adopt_in_parts('$tables', part_size => 0)");
like($err, qr/part_size must be at least 1/, 'a part has a table at least');
$server->stop;
done_testing();
