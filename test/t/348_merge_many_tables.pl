# What a merge of many tables reads: three times the tables, about three times the blocks, and not nine or 27 times.  Half of the
# tables have a few rows, the others none, as an application's tables often are in a game's or a shop's database.

use strict;
use warnings FATAL => 'all';

use Snowflake::Server;
use Test::More;

my $server = Snowflake::Server->new('many');
my @sizes = (50, 150);

$server->init;
# Blocks that somebody else reads would count, too.
$server->configure('autovacuum' => 'off', 'max_locks_per_transaction' => 256);
$server->start;

# The blocks that a statement has read, of each catalog and of each table of the extensions.
sub blocks_of
{
	my ($database, $statement) = @_;
	# Counters of a session are seen by others, and by itself, from its next idle moment on.
	my $read = q{SELECT pg_stat_force_next_flush();
		SELECT 'blocks', relname, coalesce(heap_blks_hit, 0) + coalesce(heap_blks_read, 0) + coalesce(idx_blks_hit, 0) + coalesce(idx_blks_read, 0)
		FROM pg_statio_all_tables WHERE schemaname IN ('pg_catalog', 'snowflake_migrate', 'snowflake_migrate_internal');
		SELECT 'blocks', 'all', sum(coalesce(heap_blks_hit, 0) + coalesce(heap_blks_read, 0) + coalesce(idx_blks_hit, 0) + coalesce(idx_blks_read, 0))
		FROM pg_statio_all_tables;};
	my %blocks;

	foreach ($server->safe_psql($database, "$read $statement; $read") =~ /^blocks\|(.+)$/mg)
	{
		my ($relation, $read_by_now) = split /\|/;

		$blocks{$relation} = $read_by_now - ($blocks{$relation} // 0);
	}
	return \%blocks;
}

# Each table but the first ten refers to two others: one of the first, which always have rows, and any before it.
sub schema
{
	my ($name, $default, $tables) = @_;
	my $sql = "CREATE SCHEMA $name;";

	foreach my $i (1 .. $tables)
	{
		my ($any, $first) = (($i * 7) % ($i > 1 ? $i - 1 : 1) + 1, ($i * 3) % 10 + 1);
		my $references = $i <= 10 ? '' : ", first_id bigint NOT NULL REFERENCES $name.t$first, any_id bigint REFERENCES $name.t$any";

		$sql .= "CREATE TABLE $name.t$i (id bigint PRIMARY KEY $default, name text UNIQUE$references);";
		next if $default || $i > 10 && $i % 2;
		$sql .= "INSERT INTO $name.t$i SELECT g, '$name $i ' || g" . ($i > 10 ? ", g, CASE WHEN $any <= 10 OR $any % 2 = 0 THEN g END" : '') .
			' FROM generate_series(1, 20) AS g;';
	}
	return $sql;
}

# Of each table that has rows, its row, and those that it refers to, by their names.
sub rows
{
	my ($database, $tables, @schemas) = @_;
	my @queries;

	foreach my $i (grep { $_ <= 10 || $_ % 2 == 0 } 1 .. $tables)
	{
		my ($any, $first) = (($i * 7) % ($i > 1 ? $i - 1 : 1) + 1, ($i * 3) % 10 + 1);

		push @queries, $i <= 10 ? "SELECT name, NULL, NULL FROM $_.t$i" :
			"SELECT t.name, f.name, a.name FROM $_.t$i AS t JOIN $_.t$first AS f ON f.id = t.first_id LEFT JOIN $_.t$any AS a ON a.id = t.any_id"
			foreach @schemas;
	}
	return $server->safe_psql($database, 'SELECT count(*), sum(hashtextextended(r::text, 0)) FROM (' . join(' UNION ALL ', @queries) . ') AS r');
}

my %blocks;

foreach my $tables (@sizes)
{
	my $database = "of_$tables";

	$server->safe_psql('postgres', "CREATE DATABASE $database");
	$server->safe_psql($database, 'CREATE EXTENSION snowflake_migrate CASCADE');
	$server->safe_psql($database, schema('world', 'DEFAULT snowflake_nextval()', $tables) . schema('one', '', $tables) . schema('two', '', $tables) . 'ANALYZE');

	my $sources = rows($database, $tables, qw(one two));

	# What the planner knows of the plan is from another moment: a merge of one table, as autovacuum may find it.
	$server->safe_psql($database, q{
		CREATE SCHEMA little; CREATE TABLE little.t (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
		CREATE SCHEMA other; CREATE TABLE other.t (id int PRIMARY KEY); INSERT INTO other.t VALUES (1);
		CALL snowflake_migrate.merge('{other}', 'little', '{1000}');
		SELECT format('ANALYZE %s', c.oid::regclass) FROM pg_class AS c
		WHERE c.relnamespace = 'snowflake_migrate_internal'::regnamespace AND c.relname LIKE 'plan\_%' AND c.relkind = 'r'} . "\\gexec\n");

	push @{ $blocks{$_->[0]} }, blocks_of($database, $_->[1])
		foreach [ check => q{SELECT count(*) FROM snowflake_migrate.check('{one,two}', 'world')} ],
		[ merge => q{CALL snowflake_migrate.merge('{one,two}', 'world', '{1001,1002}')} ];

	my $run = $server->safe_psql($database, 'SELECT max(run) FROM snowflake_migrate.runs');

	is(rows($database, $tables, 'world'), $sources, "$tables tables: each row has come, and refers to what it referred to");
	push @{ $blocks{proof} }, blocks_of($database, "SELECT count(*) FROM snowflake_migrate.verify($run)");
	is($server->safe_psql($database, "SELECT count(*) FROM snowflake_migrate.verify($run)"), '0', "$tables tables: it is proved");
	push @{ $blocks{rollback} }, blocks_of($database, "CALL snowflake_migrate.rollback($run)");
	is(rows($database, $tables, 'world'), '0|', "$tables tables: and taken back");
}

# Each by itself: what grows with the square hides behind what others read anyway.  Some blocks for each table are no matter; of the
# plan, to look at all of it for each table takes a few.
foreach my $what (sort keys %blocks)
{
	my ($few, $many) = @{ $blocks{$what} };
	my ($few_in_all, $many_in_all) = map { delete $_->{all} } $few, $many;
	my %growth = map { $_ => $many->{$_} / ($few->{$_} || 1) } grep { $many->{$_} > 100 * $sizes[1] } keys %$many;
	my @growing = grep { $growth{$_} > 2 * $sizes[1] / $sizes[0] && $many->{$_} > (/^plan_/ ? 20_000 : 1000) * $sizes[1] } sort keys %growth;

	note sprintf '%s: %s of %d blocks, %.1f times as many', $what, $_, $many->{$_}, $growth{$_} foreach sort { $growth{$b} <=> $growth{$a} } keys %growth;
	cmp_ok(scalar keys %growth, '>', 3, "$what: blocks are counted");
	# A rollback looks through what is left of the plan for each batch.
	cmp_ok($many_in_all, '<', ($what eq 'rollback' ? 3 : 2) * $few_in_all * $sizes[1] / $sizes[0], "$what: $sizes[1] tables read not many more blocks for each than $sizes[0]");
	is("@growing", '', "$what: of $sizes[1] tables, none is read twice as often for each as of $sizes[0]");
}

$server->stop;
done_testing();
