# Merging with the rights of the guide: its statements, read from doc/merging.md, are run on the servers of its example, and the role
# that they make does all that the guide says it can.  Without one of these rights the check says what is missing, and nothing begins.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Test::More;

my $guide = slurp_file('doc/merging.md');

# The statements of a chapter of the guide, from its n-th block of SQL.
sub statements
{
	my ($chapter, $n) = @_;
	my ($text) = $guide =~ /^## \Q$chapter\E\n(.*?)(?=^## |\z)/ms or die "the guide has no chapter \"$chapter\"";
	my @blocks = $text =~ /^```sql\n(.*?)^```/msg;

	return $blocks[ $n - 1 ] // die "chapter \"$chapter\" has no block $n";
}

my $connect = statements('Preparing', 1) . statements(q{The source's tables}, 1);
my ($map_user, $import) = split /^-- As .*\n/m, statements(q{The source's tables}, 2);
my $rights = statements('Rights', 1);
my $rights_on_source = statements('Rights', 2);

my $server = Snowflake::Server->new('realm');

$server->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
# postgres_fdw lets nobody but superusers connect without a password.
my $hba = $server->data_dir . '/pg_hba.conf';
my $others = slurp_file($hba);

unlink $hba;
append_to_file($hba, "local all camelot_reader scram-sha-256\n$others");
$server->start;

# Both game servers are databases of one server here.
my ($host, $port) = ($server->host, $server->port);

$connect =~ s/host 'camelot.example', dbname 'game'/host '$host', port '$port', dbname 'camelot'/
  or die "the guide connects otherwise:\n$connect";

sub run_file
{
	my ($database, $file, %variables) = @_;

	run_log([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', (map { ('-v', "$_=$variables{$_}") } sort keys %variables),
			'-d', $server->connstr($database), '-o', '/dev/null', '-f', "examples/merge/$file.sql" ]) or die "$file.sql failed";
	return;
}

# What the role gets from one call, as (status, output, errors); in a session of its own.
sub as_merger
{
	my ($statement, $database) = @_;
	my ($out, $err);
	my $status = $server->psql('postgres', $statement, stdout => \$out, stderr => \$err, connstr => $server->connstr($database // 'game') . ' user=merger');

	return ($status, $out, $err);
}

sub succeeds
{
	my ($name, $statement, $database) = @_;
	my ($status, $out, $err) = as_merger($statement, $database);

	is($status, 0, "$name: the role may do it") or diag($err);
	return $out;
}

sub contents
{
	my ($out, $err);

	$server->psql('game', slurp_file('examples/merge/contents.sql'), stdout => \$out, stderr => \$err);
	die $err if $err ne '';
	return $out;
}

my $node = 900;

sub call
{
	my (%params) = @_;

	$node++;
	return "CALL snowflake_migrate.merge('{camelot}', 'public', '{$node}'" . join('', map { ", $_ => $params{$_}" } sort keys %params) . ')';
}

my $check = q{SELECT concat_ws(' | ', severity, relation, object, problem, advice) FROM snowflake_migrate.check('{camelot}', 'public')};

# As little as can be by default.
foreach my $world ([ 'game', 'avalon', 1 ], [ 'camelot', 'camelot', 2 ])
{
	my ($database, $name, $seed) = @$world;

	$server->safe_psql('postgres', "CREATE DATABASE $database; REVOKE ALL ON DATABASE $database FROM PUBLIC;
		\\connect $database
		REVOKE ALL ON SCHEMA public FROM PUBLIC;");
	run_file($database, 'schema');
	run_file($database, 'generate', server => $name, seed => $seed, players => 100, opened => '2022-11-15');
}
$server->safe_psql('game', $connect . $rights . $map_user);
$server->safe_psql('camelot', $rights_on_source . 'GRANT CONNECT ON DATABASE camelot TO camelot_reader');
succeeds('IMPORT FOREIGN SCHEMA', $import);
run_file('game', 'declare');
run_file('game', 'adopt');

# All of the guide, in its order, and once more.
my $before = contents();

unlike(succeeds('check', $check), qr/^error/m, 'check: there is no error');
is(succeeds('dry run', call(dry_run => 'true') . "\\gset\nSELECT state FROM snowflake_migrate.runs"), 'dry run', 'dry run: its state');
foreach my $time ('first', 'second')
{
	my $run = succeeds("$time merge", call(batch_size => 100));

	is(succeeds("$time merge, progress", "SELECT bool_and(rows_done = rows_to_do) FROM snowflake_migrate.progress WHERE run = $run"), 't', "$time merge: its progress");
	is(succeeds("$time merge, report", "SELECT count(*) FROM snowflake_migrate.report WHERE run = $run AND severity = 'error'"), 0, "$time merge: its report");
	is(succeeds("$time merge, records", "SELECT count(*) > 0 FROM snowflake_migrate.records WHERE run = $run"), 't', "$time merge: its records");
	is(succeeds("$time merge, map", "SELECT count(*) > 0 FROM snowflake_migrate.map WHERE run = $run"), 't', "$time merge: its map");
	is(succeeds("$time merge, proof", "SELECT * FROM snowflake_migrate.verify($run)"), '', "$time merge: its proof");
	ok(contents() ne $before, "$time merge: rows are there");
	succeeds("$time merge, taken back", "CALL snowflake_migrate.rollback($run)");
	is(succeeds("$time merge, runs", "SELECT state FROM snowflake_migrate.runs WHERE run = $run"), 'rolled back', "$time merge: its state");
	ok(contents() eq $before, "$time merge: the target is as before");
}

# Without one of the rights: what the check says of it, and whether a merge, its proof and its rollback can be done.  In a schema that has
# what is seldom there: tables that are not merged and are looked at all the same, foreign keys of one partition, ranks, rows that
# replace others, columns that a source lacks.
$server->safe_psql('game', q{
	CREATE SCHEMA realm;
	CREATE SCHEMA west;
	CREATE SCHEMA other;
	CREATE FUNCTION other.motto() RETURNS text LANGUAGE sql AS $$ SELECT 'none yet' $$;
	REVOKE EXECUTE ON FUNCTION other.motto FROM PUBLIC;
	CREATE SEQUENCE other.tickets;
	CREATE TABLE other.guilds (id bigint PRIMARY KEY);
	INSERT INTO other.guilds VALUES (7);
	CREATE TABLE realm.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text NOT NULL UNIQUE, guild bigint REFERENCES other.guilds,
		number int NOT NULL GENERATED BY DEFAULT AS IDENTITY, ticket bigint DEFAULT nextval('other.tickets'), motto text DEFAULT other.motto());
	CREATE TABLE realm.wallets (owner bigint PRIMARY KEY REFERENCES realm.heroes, coins int);
	CREATE TABLE realm.log (id bigint DEFAULT snowflake_nextval(), month int, hero bigint, PRIMARY KEY (id, month)) PARTITION BY LIST (month);
	CREATE TABLE realm.log_1 PARTITION OF realm.log FOR VALUES IN (1);
	CREATE TABLE realm.log_2 PARTITION OF realm.log FOR VALUES IN (2);
	ALTER TABLE realm.log_2 ADD FOREIGN KEY (hero) REFERENCES realm.heroes;
	CREATE TABLE realm.ranks (hero bigint PRIMARY KEY REFERENCES realm.heroes, rank int UNIQUE);
	CREATE TABLE realm.bans (hero bigint REFERENCES realm.heroes);
	CREATE TABLE realm.notes (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
	CREATE TABLE realm.sightings (hero bigint);
	-- On these, there is no right to anything.
	CREATE TABLE realm.left_alone (id int PRIMARY KEY);
	CREATE TABLE realm.here_alone (code text PRIMARY KEY);
	CREATE TABLE west.heroes (id int PRIMARY KEY, name text NOT NULL, guild bigint, number int NOT NULL);
	CREATE TABLE west.wallets (owner int PRIMARY KEY, coins int);
	CREATE TABLE west.log (id int, month int, hero int, PRIMARY KEY (id, month));
	CREATE TABLE west.ranks (hero int PRIMARY KEY, rank int);
	CREATE TABLE west.left_alone (id int PRIMARY KEY);
	INSERT INTO realm.heroes (id, name, number) VALUES (1, 'Ann', 1), (2, 'Bob', 2);
	INSERT INTO realm.wallets VALUES (1, 10);
	INSERT INTO realm.ranks VALUES (1, 1), (2, 2);
	INSERT INTO realm.here_alone VALUES ('x');
	INSERT INTO west.heroes VALUES (1, 'Ann', 7, 1), (2, 'Cid', 7, 20);
	INSERT INTO west.wallets VALUES (1, 5), (2, 6);
	INSERT INTO west.log VALUES (1, 1, 1), (2, 2, 2);
	INSERT INTO west.ranks VALUES (2, 1);
	SELECT snowflake_migrate.declare_policy('realm.heroes', 'heroes_name_key', 'keep_target'), snowflake_migrate.declare_policy('realm.wallets', 'wallets_pkey', 'keep_source'),
		snowflake_migrate.declare_policy('realm.ranks', 'ranks_rank_key', 'rerank', 'hero'), snowflake_migrate.declare_policy('realm.here_alone', 'here_alone_pkey', 'keep_source'),
		snowflake_migrate.declare_table('realm.left_alone', 'ignore'), snowflake_migrate.declare_table('realm.bans', 'ignore'), snowflake_migrate.declare_table('realm.notes', 'ignore'),
		snowflake_migrate.declare_reference('realm.sightings', 'hero', 'realm.heroes'), snowflake_migrate.declare_reference('realm.wallets', 'owner', 'realm.heroes');
	ANALYZE});

# All rights that are needed, and what the check makes of the lack of each: an error (e), a warning (w), or it fails itself (f).
my %use = (
	'CREATE ON DATABASE game' => 'e',
	'TEMPORARY ON DATABASE game' => 'e',
	'USAGE ON SCHEMA realm' => 'e',
	'USAGE ON SCHEMA west' => 'e',
	'USAGE ON SCHEMA other' => 'e',
	'SET ON PARAMETER session_replication_role' => 'w',
	(map { my ($table, $rights) = @$_; map { my ($right, $use) = split /=/; ("$right ON realm.$table" => $use) } split ' ', $rights }
		[ heroes => 'SELECT=e INSERT=e UPDATE=e DELETE=w' ], [ wallets => 'SELECT=e INSERT=e UPDATE=e DELETE=w' ],
		[ log => 'SELECT=e INSERT=e UPDATE=e DELETE=w' ], [ ranks => 'SELECT=e INSERT=e UPDATE=e DELETE=w' ],
		[ bans => 'SELECT=e' ], [ notes => 'SELECT=e' ], [ sightings => 'SELECT=w' ]),
	'SELECT, UPDATE ON SEQUENCE realm.heroes_number_seq' => 'w',
	'SELECT, UPDATE ON SEQUENCE other.tickets' => 'e',
	'EXECUTE ON FUNCTION other.motto' => 'e',
	'SELECT ON other.guilds' => 'e',
	(map { ("SELECT ON west.$_" => 'e') } qw(heroes wallets log ranks)),
	(map { my ($table, $rights) = @$_; map { my ($right, $use) = split /=/; ("$right ON $table" => $use) } split ' ', $rights }
		[ 'snowflake_migrate.runs' => 'SELECT=f INSERT=f UPDATE=e' ], [ 'snowflake_migrate.nodes' => 'SELECT=f INSERT=e' ], [ 'snowflake_migrate.report' => 'SELECT=f INSERT=f DELETE=f' ],
		[ 'snowflake_migrate.records' => 'SELECT=f INSERT=f UPDATE=f' ], [ 'snowflake_migrate_internal.plan_tables' => 'SELECT=f INSERT=f UPDATE=e' ], [ 'snowflake_migrate_internal.plan_columns' => 'SELECT=f INSERT=f' ],
		[ 'snowflake_migrate_internal.targets' => 'SELECT=e INSERT=e UPDATE=e' ],
		[ 'snowflake_migrate_internal.plan_batches' => 'SELECT=e DELETE=e' ], [ 'snowflake_migrate_internal.plan_indexes' => 'SELECT=e' ],
		[ 'snowflake_migrate_internal.plan_references' => 'SELECT=f INSERT=f' ], [ 'snowflake_migrate_internal.plan_sources' => 'SELECT=f INSERT=f UPDATE=f' ]),
	'USAGE ON SEQUENCE snowflake_migrate_internal.run_number' => 'f',
	'SELECT ON snowflake_migrate.map' => 'f',
	'EXECUTE ON FUNCTION snowflake_internal.set_aside' => 'e',
);

$server->safe_psql('game', join '', 'REVOKE ALL ON ALL TABLES IN SCHEMA public, snowflake_migrate, snowflake_migrate_internal FROM merger;', map { "GRANT $_ TO merger;" } sort keys %use);

# Merges and verifies, or takes back: what went wrong, empty if nothing did.
sub merged
{
	$node++;

	my ($status, $out, $err) = as_merger("CALL snowflake_migrate.merge('{west}', 'realm', '{$node}') \\gset
		SELECT problem FROM snowflake_migrate.verify(:run);");

	return $status == 0 && $out eq '' ? '' : "$out$err";
}

my $last_run = "(SELECT max(run) FROM snowflake_migrate.runs WHERE targets = '{realm}' AND state <> 'dry run')";

sub taken_back
{
	my ($status, $out, $err) = as_merger("SELECT $last_run AS run \\gset\nCALL snowflake_migrate.rollback(:run);");

	return $status == 0 ? '' : $err;
}

my $small_check = q{SELECT concat_ws(' | ', severity, relation, object, problem, advice) FROM snowflake_migrate.check('{west}', 'realm') WHERE severity <> 'info'};
my $all_of_realm = q{SELECT array_agg(h ORDER BY id) FROM realm.heroes AS h; SELECT array_agg(w ORDER BY owner) FROM realm.wallets AS w;
	SELECT array_agg(r ORDER BY hero) FROM realm.ranks AS r; SELECT count(*) FROM realm.log};
my $at_first = $server->safe_psql('game', $all_of_realm);

is(succeeds('all these rights: check', $small_check), '', 'with all these rights there is nothing to say');
is(merged(), '', 'with all these rights: merged');
isnt($server->safe_psql('game', $all_of_realm), $at_first, 'with all these rights: rows are there');
is(taken_back(), '', 'with all these rights: taken back');
is($server->safe_psql('game', $all_of_realm), $at_first, 'with all these rights: the target is as before');

foreach my $right (sort keys %use)
{
	$server->safe_psql('game', "REVOKE $right FROM merger");

	my ($status, $found, $err) = as_merger($small_check);
	my $said = $status != 0 ? 'f' : $found =~ /^error/m ? 'e' : $found =~ /^warning/m ? 'w' : '-';

	is($said, $use{$right}, "without $right: the check says it") or diag("$found$err");

	my $problem = merged();

	if ($said =~ /[ef]/)
	{
		isnt($problem, '', "without $right: the merge is refused");
		like($problem, qr/permission denied|cannot merge the schemas as they are/, "without $right: it says why");
		is($server->safe_psql('game', "SELECT count(*) FROM snowflake_migrate.runs WHERE state IN ('copying', 'verifying', 'done')"), 0, "without $right: nothing has begun");
	}
	else
	{
		is($problem, '', "without $right: merged and proved");
		$problem = taken_back();
		if ($found =~ /could not be taken back/)
		{
			like($problem, qr/permission denied/, "without $right: it can't be taken back");
			is($server->safe_psql('game', "SELECT state FROM snowflake_migrate.runs WHERE run = $last_run"), 'done', "without $right: it is not begun to be taken back");
		}
		else
		{
			is($problem, '', "without $right: taken back");
		}
	}
	$server->safe_psql('game', "GRANT $right TO merger");
	is(taken_back(), '', "with $right: taken back") if $problem =~ /^psql.*permission denied/ && $said eq 'w';
	is($server->safe_psql('game', $all_of_realm), $at_first, "without $right: the target is as before");
}

# The right not to fire triggers, lost in the middle, and before the way back.
{
	my $right = 'SET ON PARAMETER session_replication_role';
	my $refused = qr/permission denied to set parameter "session_replication_role"\nDETAIL:  Merge \d+ began with that right: from now on, triggers would fire\./;

	$server->safe_psql('game', q{CREATE FUNCTION realm.stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'stopped'; END $$;
		CREATE TRIGGER stop BEFORE INSERT ON realm.log FOR EACH ROW EXECUTE FUNCTION realm.stop(); ALTER TABLE realm.log ENABLE ALWAYS TRIGGER stop});
	like(merged(), qr/stopped/, 'a merge is stopped');
	$node--;
	$server->safe_psql('game', "CREATE OR REPLACE FUNCTION realm.stop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'; REVOKE $right FROM merger");
	like(merged(), $refused, 'without the right that it began with, it does not go on');
	$node--;
	$server->safe_psql('game', "GRANT $right TO merger");
	is(merged(), '', 'with the right, it does');
	$server->safe_psql('game', "REVOKE $right FROM merger");
	like(taken_back(), $refused, 'without the right that it began with, it is not taken back');
	$server->safe_psql('game', "GRANT $right TO merger");
	is(taken_back(), '', 'with the right, it is');
}

# Several schemas, one of which came before: the maps of that merge count, though they are no longer the role's own.
$server->safe_psql('postgres', 'CREATE DATABASE shop; REVOKE ALL ON DATABASE shop FROM PUBLIC');
$server->safe_psql('shop', 'REVOKE ALL ON SCHEMA public FROM PUBLIC; CREATE EXTENSION snowflake_migrate CASCADE;'
	. join('', statements('Rights', 1) =~ /^((?:GRANT USAGE ON SCHEMA public|SELECT snowflake_migrate.grant_to)[^\n]*\n)/mg)
	. join('', map { my $prefix = $_; qq{
		CREATE SCHEMA ${prefix}folk;
		CREATE SCHEMA ${prefix}trade;
		CREATE TABLE ${prefix}folk.person (id bigint PRIMARY KEY DEFAULT public.snowflake_nextval(), name text NOT NULL UNIQUE);
		CREATE TABLE ${prefix}trade.orders (id bigint PRIMARY KEY DEFAULT public.snowflake_nextval(), item text, buyer bigint NOT NULL REFERENCES ${prefix}folk.person);
		INSERT INTO ${prefix}folk.person SELECT g, '${prefix}' || g FROM generate_series(1, 20) AS g;
		INSERT INTO ${prefix}trade.orders SELECT g, '${prefix}' || g, 21 - g FROM generate_series(1, 20) AS g;
	} } '', 'east_', 'west_')
	. q{
	GRANT USAGE ON SCHEMA folk, trade, east_folk, east_trade, west_folk, west_trade TO merger;
	GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA folk, trade TO merger;
	GRANT SELECT ON ALL TABLES IN SCHEMA east_folk, east_trade, west_folk, west_trade TO merger});

my $who_bought = q{SELECT string_agg(o.item || ' ' || p.name, ',' ORDER BY o.item) FROM trade.orders AS o JOIN folk.person AS p ON p.id = o.buyer};
my $at_all = q{SELECT (SELECT array_agg(p ORDER BY id) FROM folk.person AS p), (SELECT array_agg(o ORDER BY id) FROM trade.orders AS o)};
my $shop_at_first = $server->safe_psql('shop', $at_all);
my $all = q{'{{east_folk,east_trade},{west_folk,west_trade}}', targets => '{folk,trade}'};
my $former = succeeds('one schema', q{CALL snowflake_migrate.merge('{east_folk}', 'folk', '{801}')}, 'shop');
my ($status, undef, $again) = as_merger(q{CALL snowflake_migrate.merge('{east_folk}', 'folk', '{802}')}, 'shop');

isnt($status, 0, 'the same schema does not come again');
like($again, qr/a source has already been merged into schema "folk"
DETAIL:  Merge $former had the sources \{east_folk\} and the nodes \{801\}\.
HINT:  Take it back with snowflake_migrate\.rollback\(\), or, if these are other rows, give the schema another name\./, 'it says which merge had it, and what to do');
is(succeeds('several schemas: check', "SELECT concat_ws(' | ', severity, relation, problem) FROM snowflake_migrate.check($all) WHERE severity <> 'info'", 'shop'), '',
	'several schemas: there is nothing to say');
my $later = succeeds('several schemas', "CALL snowflake_migrate.merge($all, nodes => '{803,804}')", 'shop');

is($server->safe_psql('shop', $who_bought), join(',', sort { $a cmp $b } map { my $prefix = $_; map { "$prefix$_ $prefix" . (21 - $_) } 1 .. 20 } '', 'east_', 'west_'),
	'several schemas: all orders are of whom they were');
is(succeeds('several schemas: proof', "SELECT * FROM snowflake_migrate.verify($_)", 'shop'), '', "several schemas: merge $_ is proved") foreach $former, $later;
like((as_merger("CALL snowflake_migrate.rollback($former)", 'shop'))[2], qr/cannot roll back merge $former because merge $later has found references by its maps/, 'the former merge stays as long as the later');
succeeds("several schemas: merge $_, taken back", "CALL snowflake_migrate.rollback($_)", 'shop') foreach $later, $former;
is($server->safe_psql('shop', $at_all), $shop_at_first, 'several schemas: the target is as before');

done_testing();
