# A dump does not carry the reserved time: the statement of doc/operations.md, as it stands
# there, keeps a restored server above the ids in its tables.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Documentation qw(sql_like);
use Snowflake::Server;
use Test::More;

my $statement = sql_like('doc/operations.md', qr/^DO \$\$/);

my $server = Snowflake::Server->new('old');

$server->set_clock(0);
$server->init;
$server->start;
$server->safe_psql('postgres', q{
	CREATE SCHEMA ids;
	CREATE EXTENSION snowflake SCHEMA ids;
	SET search_path = public, ids;
	CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
	CREATE SCHEMA "Other";
	CREATE TABLE "Other"."My events" (at timestamptz DEFAULT now(), "The id" bigint DEFAULT snowflake_nextval()) PARTITION BY RANGE ("The id");
	CREATE TABLE "Other".events_all PARTITION OF "Other"."My events" DEFAULT;
	CREATE TABLE codes (code text DEFAULT snowflake_to_base62(snowflake_nextval()), small int DEFAULT (snowflake_nextval() % 10)::int);
	CREATE TABLE empty (id bigint DEFAULT snowflake_nextval());
	INSERT INTO orders SELECT FROM generate_series(1, 1000);
	INSERT INTO codes SELECT FROM generate_series(1, 10);
	INSERT INTO "Other"."My events" SELECT FROM generate_series(1, 1000)});
my $newest = $server->value(q{max("The id") FROM "Other"."My events"});
my $dump = "$PostgreSQL::Test::Utils::tmp_check/dump.sql";
$server->command_ok([ 'pg_dump', '-f', $dump, $server->connstr('postgres') ], 'dumped');
$server->stop;

my $restored = Snowflake::Server->new('new');

$restored->set_clock(0);
$restored->init;
$restored->start;
$restored->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, $restored->connstr('postgres') ], 'restored');
is($restored->value('reserved_until IS NULL FROM ids.snowflake_stat'), 't', 'a dump does not carry the reserved time');
$restored->stop;
# Behind all of the ids.
$restored->step_clock(-600);
$restored->start;
$restored->safe_psql('postgres', "SET search_path = public, ids; $statement");
$restored->refuses('SET search_path = ids; SELECT snowflake_nextval()', qr/clock is .* behind/, 'with the clock 10 min back');
$restored->step_clock(605);
cmp_ok($restored->value('ids.snowflake_nextval()'), '>', $newest, 'ids go on above the greatest in any table');

# Nothing there to go past.
$restored->safe_psql('postgres', "SET search_path = public, ids; TRUNCATE orders, \"Other\".\"My events\"; $statement");
done_testing();
