# The rows by which a database brings reserved time from another server: what the owner of a database puts there holds up
# that database alone, also after a superuser has dumped and restored it, and nobody by a publication; and nobody makes
# ids after a look at rows that a rollback has brought back.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Test::More;

my $scratch = $PostgreSQL::Test::Utils::tmp_check;
my $server = Snowflake::Server->new('server');
my $refused = qr/ERROR:  cannot make snowflake ids in a database whose restored ids lie above/;

# The row of a database's owner, who says that a superuser did that.
sub plant
{
	my ($database, $ahead) = @_;

	$server->safe_psql($database, qq{SET client_min_messages = error; SET ROLE owner;
		INSERT INTO snowflake_internal.restored_limit
		VALUES ((extract(epoch FROM clock_timestamp() + interval '$ahead') * 1000000)::bigint, 0, true)});
	return;
}

$server->init(allows_streaming => 'logical');
$server->configure('max_prepared_transactions' => '2');
$server->start;
$server->safe_psql('postgres', $_) foreach 'CREATE ROLE owner LOGIN', 'CREATE DATABASE shop OWNER owner', 'CREATE DATABASE copy OWNER owner',
	'CREATE DATABASE subscriber', 'CREATE EXTENSION snowflake';
$server->safe_psql($_, 'CREATE EXTENSION snowflake') foreach qw(shop subscriber);
$server->take;

# A superuser's dump of such a database, restored by a superuser.
plant('shop', '23 hours');
$server->command_ok([ 'pg_dump', '-f', "$scratch/planted.dump", $server->connstr('shop') ], 'dumped');
$server->safe_psql('copy', slurp_file("$scratch/planted.dump"));
foreach my $database (qw(shop copy))
{
	my (undef, undef, $err) = $server->psql($database, 'SELECT snowflake_nextval()');

	like($err, $refused, "the database of who planted a row makes no ids: $database");
}
like($server->take, qr/^\d+$/, 'others do');
is($server->safe_psql('copy', 'SELECT count(*) FROM snowflake_internal.restored_limit WHERE NOT is_trusted'), 1,
	'a row that somebody has planted stays what it is');

# A dump of its own is trusted, where a superuser restores it.
like(slurp_file("$scratch/planted.dump"), qr/^\d+\t0\tf\n\d+\t\d+\tt$/m, 'a dump tells which is which');

# The owner's own dump, of all but a registry's tables.
$server->command_ok([ 'pg_dump', '--exclude-table-data=snowflake_internal.registry_*', '-f', "$scratch/own.dump", $server->connstr('shop') . ' user=owner' ],
	'dumped by the owner of the database');
like(slurp_file("$scratch/own.dump"), qr/^\d+\t0\tf\n\d+\t\d+\tt$/m, 'which has the limit, too');

# A time that is refused now, as it lies more than a day ahead, does not move the server's limit when it lies less ahead.
$server->safe_psql('copy', q{SET client_min_messages = error; DELETE FROM snowflake_internal.restored_limit;
	INSERT INTO snowflake_internal.restored_limit
	SELECT (extract(epoch FROM clock_timestamp() + ahead * interval '1 hour') * 1000000)::bigint, 0, true FROM unnest('{25, 100}'::int[]) AS ahead});
is($server->safe_psql('copy', 'SELECT count(*) FROM snowflake_internal.restored_limit WHERE NOT is_trusted'), 2, 'more than a day ahead');

# Who is in the middle of a transaction, or of a statement, learns of such a row within moments. The statement waits at its
# second turn, when all that it needs is planned: nothing else lets it hear of what others do.
$server->safe_psql('copy', 'DELETE FROM snowflake_internal.restored_limit');
foreach my $level ('READ COMMITTED', 'REPEATABLE READ')
{
	my $gate = $server->background_psql('copy');
	my $session = $server->background_psql('copy', on_error_stop => 0);

	$gate->query_safe('SELECT pg_advisory_lock(2)');
	like($session->query("BEGIN ISOLATION LEVEL $level; SELECT snowflake_nextval()"), qr/^\d+$/, "$level: an id");
	$session->query_until(qr/begun/, q{\echo begun
		DO $$
		BEGIN
			FOR turn IN 1 .. 2 LOOP
				PERFORM pg_advisory_xact_lock(turn);
				PERFORM count(snowflake_nextval()) FROM generate_series(1, 100000);
			END LOOP;
		END
		$$;
		\echo ended
		});
	$server->poll_query_until('copy', q{SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)})
	  or die "$level: the statement does not wait";
	plant('copy', '2 days');
	$gate->quit;
	$session->query_until(qr/ended/, '');
	like($session->{stderr}, $refused, "$level: none once restored ids lie above");
	$session->quit;
	$server->safe_psql('copy', 'DELETE FROM snowflake_internal.restored_limit');
}
plant('copy', '2 days');

# What was looked at in a transaction that is taken back is looked at again: no DELETE that is rolled back invalidates anything.
my $hide = 'DELETE FROM snowflake_internal.restored_limit; SELECT snowflake_nextval()';

foreach my $try (
	[ 'ROLLBACK', "BEGIN; $hide; ROLLBACK" ],
	[ 'ROLLBACK TO', "BEGIN; SAVEPOINT s; $hide; ROLLBACK TO s" ],
	[ 'ROLLBACK TO, of a savepoint further out', "BEGIN; SAVEPOINT r; SAVEPOINT s; $hide; RELEASE s; ROLLBACK TO r" ],
	[ 'ROLLBACK PREPARED', "BEGIN; $hide; PREPARE TRANSACTION 'hidden'; ROLLBACK PREPARED 'hidden'" ])
{
	my ($what, $statements) = @$try;
	my (undef, $made, $why) = $server->psql('shop', join("\n", map { "$_;" } split(/; /, $statements), "SELECT 'made: ' || snowflake_nextval()"));

	unlike($made, qr/made:/, "$what: no id");
	like($why, $refused, "$what: the row is seen again");
}

# The row for pg_upgrade can be emptied by a mistake; nobody would know of ids that are made then.
$server->safe_psql('postgres', 'REFRESH MATERIALIZED VIEW snowflake_internal.upgraded_limit WITH NO DATA');
$server->refuses('SELECT snowflake_nextval()', qr/ERROR:  cannot make snowflake ids without the row of "snowflake_internal.upgraded_limit"/, 'without the row');
is($server->value('refusal FROM snowflake_stat'), 'row for upgrades is gone', 'without the row: snowflake_stat');
$server->refuses('REFRESH MATERIALIZED VIEW snowflake_internal.upgraded_limit; SELECT snowflake_nextval();
	REFRESH MATERIALIZED VIEW snowflake_internal.upgraded_limit WITH NO DATA; SELECT snowflake_nextval()',
	qr/ERROR:  cannot make snowflake ids without the row/, 'in a session that has made ids');
$server->safe_psql('postgres', 'REFRESH MATERIALIZED VIEW snowflake_internal.upgraded_limit');
like($server->take, qr/^\d+$/, 'with the row');
is($server->value('system_identifier = (SELECT system_identifier FROM pg_control_system()) FROM snowflake_internal.upgraded_limit'), 't',
	'which has this server again');

# A publication of all tables has these rows, too; a subscription is a superuser's.
$server->safe_psql('shop', 'DELETE FROM snowflake_internal.restored_limit');
plant('shop', '50 years');
$server->safe_psql('shop', 'CREATE PUBLICATION everything FOR ALL TABLES');
$server->safe_psql('shop', q{SELECT pg_create_logical_replication_slot('everything', 'pgoutput')});
$server->safe_psql('subscriber', sprintf(q{CREATE SUBSCRIPTION everything CONNECTION '%s' PUBLICATION everything
	WITH (create_slot = false, slot_name = 'everything')}, $server->connstr('shop') =~ s/'/''/gr));
$server->poll_query_until('subscriber', q{SELECT count(*) > 0 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel})
  or die 'the subscriber does not copy';
plant('shop', '23 hours');
$server->wait_for_catchup('everything');
is($server->safe_psql('subscriber', 'SELECT count(*) FROM snowflake_internal.restored_limit'), 0, 'a subscriber has no rows of its publisher');
like($server->safe_psql('subscriber', 'SELECT snowflake_nextval()'), qr/^\d+$/, 'a subscriber makes ids');
like($server->take, qr/^\d+$/, 'and its server');

# Nor does it get a registry's rows, or lose its own. And a registry in a publication of all tables can be used.
$server->safe_psql($_, 'SELECT snowflake_registry_settle()') foreach qw(shop subscriber);
$server->safe_psql('subscriber', q{INSERT INTO snowflake_internal.registry_group VALUES ('default', 'own'), ('gone', 'own')});
$server->safe_psql('shop', q{INSERT INTO snowflake_internal.registry_group VALUES ('new', 'another');
	SET session_replication_role = replica;
	INSERT INTO snowflake_internal.registry_group VALUES ('restored', 'another')});
is($server->safe_psql('shop', q{SELECT count(*) FROM snowflake_internal.registry_group}), 2, 'rows that are no subscription\'s are written');
$server->wait_for_catchup('everything');
$server->safe_psql('subscriber', 'ALTER SUBSCRIPTION everything DISABLE');
$server->poll_query_until('subscriber', q{SELECT NOT EXISTS (SELECT FROM pg_stat_subscription WHERE subname = 'everything' AND pid IS NOT NULL)})
  or die 'the subscription goes on';
$server->safe_psql('shop', q{INSERT INTO snowflake_internal.registry_group VALUES ('default', 'another'), ('gone', 'another')});
$server->safe_psql('subscriber', 'ALTER SUBSCRIPTION everything ENABLE');
$server->wait_for_catchup('everything');
$server->safe_psql('shop', q{UPDATE snowflake_internal.registry_group SET layout = 'a third' WHERE registry_group = 'default';
	DELETE FROM snowflake_internal.registry_group WHERE registry_group = 'gone'; SELECT snowflake_registry_settle()});
$server->wait_for_catchup('everything');
is($server->safe_psql('subscriber', q{SELECT string_agg(registry_group || ' ' || layout, ', ' ORDER BY 1) FROM snowflake_internal.registry_group}),
	'default own, gone own', 'a subscriber keeps its registry');
is($server->safe_psql('subscriber', q{SELECT count(*) FROM snowflake_internal.registry_server}), 1, 'and where it is');
my $log = $server->log_position;
$server->safe_psql('shop', 'TRUNCATE snowflake_internal.registry_claim, snowflake_internal.registry_group, snowflake_internal.registry_server');
$server->wait_for_log(qr/ERROR:  cannot truncate the tables of a snowflake registry by a subscription/, $log);
is($server->safe_psql('subscriber', q{SELECT count(*) FROM snowflake_internal.registry_group}), 2, 'nor do they go by TRUNCATE');
$server->safe_psql('subscriber', 'ALTER SUBSCRIPTION everything DISABLE');
$server->safe_psql('subscriber', 'DROP SUBSCRIPTION everything');
done_testing();
