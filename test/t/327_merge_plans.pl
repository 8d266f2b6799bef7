# How often a merge reads whole tables, by the plans that auto_explain writes to the log.  The planner has to guess: of
# foreign tables it knows nothing, and of the target no id that comes, since it was analyzed before.

use strict;
use warnings FATAL => 'all';

use List::Util qw(sum);
use Snowflake::Plans qw(plans_of read_again);
use Snowflake::Server;
use Test::More;

my $server = Snowflake::Server->new('plans');
my $references = 12;
my @columns = map { "player_$_" } 1 .. $references;
my $check = q{SELECT count(*) FROM snowflake_migrate.check('{realm}', 'public')};
my @checked;

$server->init;
$server->configure('autovacuum' => 'off');
$server->start;
$server->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(game realm);
$server->safe_psql('game', 'CREATE EXTENSION snowflake_migrate CASCADE; CREATE EXTENSION postgres_fdw');

# No index leads from an event to its players.
sub tables
{
	my ($key) = @_;

	return "CREATE TABLE players (id $key, name text);
		CREATE TABLE items (id $key, player_id bigint NOT NULL REFERENCES players, what text);
		CREATE TABLE events (id $key, what text, " . join(', ', map { "$_ bigint" } @columns) . ');
		CREATE TABLE titles (title text PRIMARY KEY, what text);';
}

sub rows
{
	my ($players) = @_;

	return "INSERT INTO players (name) SELECT 'player ' || g FROM generate_series(1, $players) AS g;
		INSERT INTO items (player_id, what) SELECT id, 'item of ' || name FROM players;
		INSERT INTO events (" . join(', ', @columns) . ') SELECT ' . join(', ', ('id') x @columns) . " FROM players;
		INSERT INTO titles SELECT 'title ' || g, 'of $players' FROM generate_series(1, $players) AS g;";
}

$server->safe_psql('game', tables('bigint PRIMARY KEY DEFAULT snowflake_nextval()') . rows(5_000) . 'ANALYZE;');
$server->safe_psql('realm', tables('bigserial PRIMARY KEY') . rows(1_000));
$server->safe_psql('game', sprintf q{
	CREATE SERVER realm FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname 'realm', fetch_size '1000');
	CREATE USER MAPPING FOR CURRENT_USER SERVER realm;
	CREATE SCHEMA realm;
	IMPORT FOREIGN SCHEMA public FROM SERVER realm INTO realm}, $server->host, $server->port);

sub reads_of_events
{
	return sum(0, map { $_->{loops} } grep { $_->{type} eq 'Foreign Scan' && $_->{table} =~ /\bevents\b/ } map { @{ $_->{nodes} } } @_);
}

sub declare
{
	my ($condition, @names) = @_;

	$server->safe_psql('game', sprintf q{SELECT snowflake_migrate.declare_reference('events', '%s', 'players', %s)}, $_, $condition) foreach @names;
	return;
}

# How often a check reads the events, with references of one column, and of all.
sub reads_by_one_and_all
{
	my ($condition) = @_;
	my ($one, @others) = @columns;
	my @reads;

	$server->safe_psql('game', 'DELETE FROM snowflake_migrate.declared_references');
	$server->safe_psql('game', "SELECT snowflake_migrate.declare_no_reference('events', '$_')") foreach @others;
	declare($condition, $one);
	push @reads, reads_of_events(plans_of($server, 'game', $check));
	$server->safe_psql('game', 'DELETE FROM snowflake_migrate.declared_no_references');
	declare($condition, @others);
	push @reads, reads_of_events(@checked = plans_of($server, 'game', $check));
	return @reads;
}

# What the planner knows of the records are those of an earlier merge: of another one, it expects none.
$server->safe_psql('game', q{
	CREATE SCHEMA target;
	CREATE SCHEMA source;
	CREATE TABLE target.names (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE);
	CREATE TABLE source.names (id int PRIMARY KEY, name text);
	INSERT INTO target.names (name) SELECT 'n' || g FROM generate_series(1, 30) AS g;
	INSERT INTO source.names SELECT g, 'n' || g FROM generate_series(1, 30) AS g;
	SELECT snowflake_migrate.declare_policy('target.names', 'names_name_key', 'suffix', '_s')});
$server->safe_psql('game', q{CALL snowflake_migrate.merge('{source}', 'target', '{76}')});
$server->safe_psql('game', 'ANALYZE snowflake_migrate.records');

# Each title of the source takes the place of one of the target's, which is put on record.
$server->safe_psql('game', q{SELECT snowflake_migrate.declare_policy('titles', 'titles_pkey', 'keep_source')});
foreach my $condition ('NULL', q{'what IS NOT NULL'})
{
	my ($by_one, $by_all) = reads_by_one_and_all($condition);

	cmp_ok($by_one, '>', 0, 'the check reads the foreign table');
	is($by_all, $by_one, "$references references are checked in as many passes as one (condition: $condition)");
	is_deeply([ read_again(@checked) ], [], 'the check reads no table for each row of another');
}
$server->safe_psql('game', 'DELETE FROM snowflake_migrate.declared_references');
declare('NULL', @columns);
is_deeply([ read_again(plans_of($server, 'game', q{CALL snowflake_migrate.merge('{realm}', 'public', '{77}', dry_run => true)})) ], [], 'nor does a dry run, in which nothing is analyzed');
is_deeply([ read_again(plans_of($server, 'game', q{CALL snowflake_migrate.merge('{realm}', 'public', '{77}', batch_size => 1000)})) ], [], 'nor does the merge');

my $run = $server->safe_psql('game', 'SELECT max(run) FROM snowflake_migrate.runs');

is($server->safe_psql('game', q{SELECT count(*) FROM snowflake_migrate.records WHERE former_row ->> 'what' = 'of 5000'}), '1000', 'titles that were replaced are on record');
is_deeply([ read_again(plans_of($server, 'game', "SELECT count(*) FROM snowflake_migrate.verify($run)")) ], [], 'nor does the proof');
is($server->safe_psql('game', "SELECT count(*) FROM snowflake_migrate.verify($run)"), '0', 'it is proved');
is_deeply([ read_again(plans_of($server, 'game', "CALL snowflake_migrate.rollback($run)")) ], [], 'nor does the way back');
is($server->safe_psql('game', q{SELECT count(*) FROM titles WHERE what = 'of 5000'}), '5000', 'the titles are back');

# The proof, where statistics mislead: they were made when two rows were there, and views of the source leave nothing out of what they
# know.  The last id lies far off, so that there seem to be none before it.
$server->safe_psql('game', q{
	CREATE SCHEMA own;
	CREATE SCHEMA olden;
	CREATE SCHEMA older;
	CREATE TABLE own.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
	CREATE TABLE own.deeds (hero_id bigint REFERENCES own.heroes, what text);
	CREATE TABLE olden.heroes (id bigint PRIMARY KEY, name text);
	CREATE TABLE olden.deeds (hero_id bigint, what text);
	INSERT INTO own.heroes VALUES (1, 'x'), (4600000000000000000, 'x');
	INSERT INTO own.deeds VALUES (1, 'x'), (1, 'x');
	INSERT INTO olden.heroes TABLE own.heroes;
	INSERT INTO olden.deeds TABLE own.deeds;
	ANALYZE own.heroes, own.deeds, olden.heroes, olden.deeds;
	DELETE FROM olden.deeds;
	DELETE FROM olden.heroes;
	CREATE VIEW older.heroes AS SELECT * FROM olden.heroes WHERE name <> 'x';
	CREATE VIEW older.deeds AS SELECT * FROM olden.deeds WHERE what <> 'x' AND hero_id <> 1;
	INSERT INTO olden.heroes SELECT g, 'hero ' || g FROM generate_series(2, 600) AS g;
	INSERT INTO olden.deeds SELECT id, 'deed of ' || name FROM olden.heroes});
is_deeply([ read_again(plans_of($server, 'game', q{CALL snowflake_migrate.merge('{older}', 'own', '{78}', target_in_use => true)})) ], [], 'statistics of two rows: a merge into a target in use, with its proof');
$run = $server->safe_psql('game', 'SELECT max(run) FROM snowflake_migrate.runs');
$server->safe_psql('game', "CALL snowflake_migrate.rollback($run)");
is_deeply([ read_again(plans_of($server, 'game', q{CALL snowflake_migrate.merge('{older}', 'own', '{79}')})) ], [], 'statistics of two rows: a merge');
$server->safe_psql('game', q{INSERT INTO own.heroes (name) SELECT 'new ' || g FROM generate_series(1, 600) AS g});
$run = $server->safe_psql('game', 'SELECT max(run) FROM snowflake_migrate.runs');
is_deeply([ read_again(plans_of($server, 'game', "SELECT count(*) FROM snowflake_migrate.verify($run)")) ], [], 'statistics of two rows: the proof looks for copies among new rows');
is($server->safe_psql('game', "SELECT count(*) FROM snowflake_migrate.verify($run)"), '0', 'statistics of two rows: it is proved');

$server->stop;
done_testing();
