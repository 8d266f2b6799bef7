# A merge into tables that nobody has analyzed, of a schema of the same database and of one behind postgres_fdw: twice, once
# with four times as many rows on all sides.  What grows with the square takes sixteen times the work, which is the rows that
# plans go through, and the blocks that they look at.

use strict;
use warnings FATAL => 'all';

use List::Util qw(sum);
use Snowflake::Plans qw(plans_of read_again show_plans work_of);
use Snowflake::Server;
use Test::More;

# The players of the target and of each source; every other table has as many rows as the latter.
my %players = (small => [ 125_000, 1_000 ], large => [ 500_000, 4_000 ]);
my @sizes = sort keys %players;
my $server = Snowflake::Server->new('statistics');

$server->init;
$server->configure('autovacuum' => 'off');
$server->start;

# Half of the rows of a source clash with those of the target.
sub tables
{
	my ($schema, $who, $key, $players, $rows) = @_;
	my $name = "CASE WHEN g % 2 = 0 THEN 'all ' ELSE '$who ' END || g";

	return "CREATE SCHEMA IF NOT EXISTS $schema;
		SET search_path = $schema, public;
		CREATE TABLE kinds (id $key, name text NOT NULL UNIQUE);
		CREATE TABLE players (id $key, name text NOT NULL UNIQUE);
		CREATE TABLE items (id $key, player_id bigint NOT NULL REFERENCES players, maker_id bigint NOT NULL, owners bigint[] NOT NULL,
			kind_id bigint NOT NULL REFERENCES kinds);
		CREATE TABLE visits (player_id bigint NOT NULL REFERENCES players, page text);
		CREATE TABLE titles (name text PRIMARY KEY, what text);
		CREATE TABLE wallets (id $key, name text NOT NULL UNIQUE, gold int NOT NULL);
		CREATE TABLE ranks (id $key, position int NOT NULL UNIQUE);
		CREATE TABLE badges (id $key, name text NOT NULL, kind text, realm int, state text, deleted_at timestamptz);
		CREATE UNIQUE INDEX badges_name ON badges (name) WHERE kind = 'x' AND realm = 1 AND state = 's' AND deleted_at IS NULL;
		CREATE TABLE slots (id $key, kind_id bigint NOT NULL REFERENCES kinds, number int NOT NULL, UNIQUE (kind_id, number));
		INSERT INTO kinds (name) SELECT $name FROM generate_series(1, $rows) AS g;
		INSERT INTO players (name) SELECT $name FROM generate_series(1, $players) AS g;
		INSERT INTO items (player_id, maker_id, owners, kind_id)
			SELECT p.id, p.id, ARRAY[p.id, p.id], k.id
			FROM (SELECT id, row_number() OVER () AS n FROM players LIMIT $rows) AS p
				JOIN (SELECT id, row_number() OVER () AS n FROM kinds) AS k USING (n);
		INSERT INTO visits SELECT id, 'page of $who' FROM players LIMIT $rows;
		INSERT INTO titles SELECT $name, '$who' FROM generate_series(1, $rows) AS g;
		INSERT INTO wallets (name, gold) SELECT $name, g FROM generate_series(1, $rows) AS g;
		INSERT INTO badges (name, kind, realm, state) SELECT $name, 'x', 1, 's' FROM generate_series(1, $rows) AS g;
		INSERT INTO ranks (position) SELECT g FROM generate_series(1, $rows) AS g;
		INSERT INTO slots (kind_id, number) SELECT id, 1 FROM kinds;";
}

foreach my $size (@sizes)
{
	my ($in_target, $in_source) = @{ $players{$size} };
	my $serial = 'bigserial PRIMARY KEY';

	$server->safe_psql('postgres', "CREATE DATABASE $_") foreach $size, "realm_$size";
	$server->safe_psql($size, 'CREATE EXTENSION snowflake_migrate CASCADE; CREATE EXTENSION postgres_fdw');
	$server->safe_psql($size, tables('public', 'game', 'bigint PRIMARY KEY DEFAULT snowflake_nextval()', $in_target, $in_source));
	$server->safe_psql($size, tables('old', 'old', $serial, $in_source, $in_source));
	$server->safe_psql("realm_$size", tables('public', 'realm', $serial, $in_source, $in_source));
	show_plans($server, "realm_$size");
	$server->safe_psql($size, sprintf q{
		CREATE SERVER realm FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname 'realm_%s', fetch_size '1000');
		CREATE USER MAPPING FOR CURRENT_USER SERVER realm;
		CREATE SCHEMA realm;
		IMPORT FOREIGN SCHEMA public FROM SERVER realm INTO realm;
		SELECT snowflake_migrate.declare_table('kinds', 'match', '{name}');
		SELECT snowflake_migrate.declare_policy('players', 'players_name_key', 'suffix', '_s');
		SELECT snowflake_migrate.declare_policy('badges', 'badges_name', 'suffix', '_s');
		SELECT snowflake_migrate.declare_policy('titles', 'titles_pkey', 'keep_source');
		SELECT snowflake_migrate.declare_policy('wallets', 'wallets_name_key', 'keep_target', combine => '{"gold": "sum"}');
		SELECT snowflake_migrate.declare_policy('ranks', 'ranks_position_key', 'rerank', 'position');
		SELECT snowflake_migrate.declare_policy('slots', 'slots_kind_id_number_key', 'next_free');
		SELECT snowflake_migrate.declare_reference('items', 'maker_id', 'players');
		SELECT snowflake_migrate.declare_reference('items', 'owners', 'players');
	}, $server->host, $server->port, $size);
}

sub try
{
	my ($what, $statement) = @_;
	my (%work, %blocks);

	foreach my $size (@sizes)
	{
		my @plans = plans_of($server, $size, $statement);

		is_deeply([ read_again(@plans) ], [], "$what, $size: no table is read for each row of another");
		$work{$size} = work_of(@plans);
		$blocks{$size} = sum(map { $_->{blocks} // 0 } @plans);
	}
	note("$what: $work{small} rows, $work{large}; $blocks{small} blocks, $blocks{large}");
	cmp_ok($work{large}, '<', 5 * $work{small}, "$what: four times the rows are not more than five times the work");
	cmp_ok($blocks{large}, '<', 5 * $blocks{small}, "$what: nor more than five times the blocks");
	is($server->safe_psql('large', q{SELECT count(*) FROM pg_stats WHERE tablename = 'players'}), '0',
	 "$what: nobody has made statistics of the players");
	return;
}

my $sources = q{'{old, realm}', 'public'};
my $proof = 'SELECT count(*) FROM snowflake_migrate.verify((SELECT max(run) FROM snowflake_migrate.runs))';

try('the check', "SELECT count(*) FROM snowflake_migrate.check($sources)");
try('a dry run', "CALL snowflake_migrate.merge($sources, '{71, 72}', batch_size => 1000, dry_run => true)");
try('the merge', "CALL snowflake_migrate.merge($sources, '{71, 72}', batch_size => 1000)");
try('the proof', $proof);
is($server->safe_psql('large', $proof), '0', 'it is proved');
try('the way back', "SELECT max(run) AS run FROM snowflake_migrate.runs \\gset\nCALL snowflake_migrate.rollback(:run)");

$server->stop;
done_testing();
