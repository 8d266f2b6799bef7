# A role that merges with the documented rights, and means ill: it puts something else in the place of its run's maps, adds to them,
# writes into its plan and into that of others, and declares.  Superusers and others who read the map, go on with the run, prove it or
# take it back do not run what it wrote.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Documentation qw(sql_like);
use Snowflake::Server;
use Test::More;

my $server = Snowflake::Server->new('owner');

$server->init;
$server->start;
$server->safe_psql('postgres', 'CREATE ROLE merger LOGIN; CREATE ROLE other LOGIN; CREATE ROLE support LOGIN; CREATE DATABASE game');

# What a role gets, as (status, output, errors).
sub as
{
	my ($role, $sql, %params) = @_;
	my ($out, $err);
	my $status = $server->psql('game', $sql, stdout => \$out, stderr => \$err, connstr => $server->connstr('game') . " user=$role", %params);

	return ($status, $out // '', $err // '');
}

sub does
{
	my ($role, $what, $sql) = @_;
	my ($status, $out, $err) = as($role, $sql);

	is($status, 0, "$role: $what") or diag($err);
	return $out;
}

sub refused
{
	my ($role, $what, $sql, $message) = @_;
	my ($status, $out, $err) = as($role, $sql);

	isnt($status, 0, "$role: $what is refused");
	like($err, $message, "$role: $what: it says why");
	return;
}

# Who has run what the merger wrote.
sub victims
{
	return $server->safe_psql('game', q{SELECT string_agg(DISTINCT who, ', ' ORDER BY who) FROM trap.log});
}

$server->safe_psql('game', q{
	CREATE EXTENSION snowflake_migrate CASCADE;
	SELECT snowflake_migrate.grant_to('merger'), snowflake_migrate.grant_to('other');
	CREATE SCHEMA trap AUTHORIZATION merger;
	CREATE SCHEMA realm; CREATE SCHEMA west; CREATE SCHEMA east;
	GRANT USAGE ON SCHEMA realm, west, east TO merger, other, support;
	CREATE TABLE realm.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text NOT NULL UNIQUE, place int UNIQUE, joined timestamptz);
	CREATE TABLE realm.mail (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), sender bigint, kind text);
	CREATE TABLE west.heroes (id int PRIMARY KEY, name text NOT NULL, place int);
	CREATE TABLE west.mail (id int PRIMARY KEY, sender int, kind text);
	CREATE TABLE east.heroes (LIKE west.heroes); CREATE TABLE east.mail (LIKE west.mail);
	INSERT INTO realm.heroes VALUES (1, 'Ann', 1);
	INSERT INTO west.heroes VALUES (1, 'Ann', 1), (2, 'Bob', 2);
	INSERT INTO west.mail VALUES (1, 2, 'hero');
	INSERT INTO east.heroes VALUES (1, 'Eve', 1);
	GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA realm, west, east TO merger, other;
	SELECT snowflake_migrate.declare_policy('realm.heroes', 'heroes_name_key', 'keep_source'), snowflake_migrate.declare_policy('realm.heroes', 'heroes_place_key', 'rerank', 'name'),
		snowflake_migrate.declare_reference('realm.mail', 'sender', 'realm.heroes', $$kind = 'hero'$$);
	GRANT SELECT ON snowflake_migrate.map, snowflake_migrate_internal.plan_tables TO support;
});
does('merger', 'sets traps', q{
	GRANT USAGE ON SCHEMA trap TO PUBLIC;
	CREATE TABLE trap.log (who text);
	GRANT INSERT ON trap.log TO PUBLIC;
	CREATE FUNCTION trap.spring() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$ BEGIN INSERT INTO trap.log VALUES (current_user || ' as ' || session_user); RETURN true; END $$;
	CREATE FUNCTION trap.still() RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN trap.spring(); END $$;
	CREATE FUNCTION trap.fire() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM trap.spring(); RETURN new; END $$});

my $node = 800;

sub merge_call
{
	my ($source) = @_;

	$node++;
	return "CALL snowflake_migrate.merge('{$source}', 'realm', '{$node}') \\gset\nSELECT :run";
}

my $run = does('merger', 'merges', merge_call('west'));
my $maps = "snowflake_merge_$run";
my $read = "SELECT relation, action, old_key FROM snowflake_migrate.map WHERE run = $run ORDER BY 1, 2, 3";
my $expected = "realm.heroes|copied|2\nrealm.heroes|kept_source|1\nrealm.mail|copied|1";

is(does('merger', 'reads the map', $read), $expected, 'the map as the merger reads it');
$server->safe_psql('game', "GRANT USAGE ON SCHEMA $maps TO support; GRANT SELECT ON ALL TABLES IN SCHEMA $maps TO support");
is(does('support', 'reads the map', $read), $expected, 'the map as support reads it');
is($server->safe_psql('game', $read), $expected, 'the map as a superuser reads it');

# Whatever could be done to the maps, once they are made.
foreach my $attack (
	"ALTER TABLE $maps.map_1 RENAME TO gone",
	"ALTER SCHEMA $maps RENAME TO gone",
	"CREATE VIEW $maps.trap AS SELECT trap.spring()",
	"DROP TABLE $maps.map_1",
	"CREATE RULE trap AS ON INSERT TO $maps.map_1 DO ALSO SELECT trap.spring()",
	"CREATE TRIGGER trap BEFORE UPDATE ON $maps.map_1 FOR EACH ROW EXECUTE FUNCTION trap.fire()",
	"ALTER TABLE $maps.map_1 ENABLE ROW LEVEL SECURITY",
	"CREATE POLICY trap ON $maps.map_1 USING (trap.spring())",
	"CREATE TABLE trap.child () INHERITS ($maps.rank_1)",
	"CREATE INDEX ON $maps.map_1 ((trap.still()))",
	"ALTER TABLE $maps.map_1 ADD CHECK (trap.still())",
	"ALTER TABLE $maps.map_1 ALTER COLUMN n1 SET DEFAULT trap.spring()::int",
	"CREATE STATISTICS trap.s ON (trap.still()), n1 FROM $maps.map_1",
	"UPDATE $maps.map_1 SET n1 = 7",
	"DELETE FROM $maps.map_1",
	"INSERT INTO $maps.map SELECT * FROM $maps.map")
{
	refused('merger', $attack =~ s/\Q$maps\E/maps/gr, $attack, qr/must be owner|permission denied/);
}

# What is about others' runs.
my $others = does('other', 'merges', merge_call('east'));
foreach my $attack (
	"UPDATE snowflake_migrate.runs SET state = 'copying' WHERE run = $others",
	"UPDATE snowflake_migrate.runs SET merged_by = 'postgres' WHERE run = $run",
	"UPDATE snowflake_migrate.runs SET merged_by = 'merger' WHERE run = $others",
	"UPDATE snowflake_migrate.runs SET run = 99 WHERE run = $run",
	"INSERT INTO snowflake_migrate.runs SELECT 99, r.sources, r.schemas, '{elsewhere}', r.nodes, r.state, 1, now(), now(), now(), now(), 'merger' FROM snowflake_migrate.runs AS r WHERE r.run = $run",
	"INSERT INTO snowflake_migrate.runs (sources, schemas, targets, nodes, state, batch_size, started_at, merged_by) VALUES ('{west}', '{{west}}', '{realm}', '{9}', 'done', 1, now(), 'postgres')",
	"DELETE FROM snowflake_migrate.runs", "DELETE FROM snowflake_migrate.nodes", "TRUNCATE snowflake_migrate.records",
	"INSERT INTO snowflake_migrate.nodes VALUES (700, $others, 'east')",
	"INSERT INTO snowflake_migrate.report (run, severity, problem) VALUES ($others, 'error', 'none')",
	"DELETE FROM snowflake_migrate.report WHERE run = $others",
	"UPDATE snowflake_migrate.records SET run = $others WHERE run = $run",
	"INSERT INTO snowflake_migrate_internal.plan_references VALUES ($others, 1, 9, 'name', 1, 'trap.spring()', NULL, false, 'error', true)",
	"INSERT INTO snowflake_migrate_internal.plan_references VALUES (99, 1, 9, 'name', 1, 'trap.spring()', NULL, false, 'error', true)",
	"UPDATE snowflake_migrate_internal.plan_tables SET relation = 'realm.mail' WHERE run = $others",
	"SET session_replication_role = replica; UPDATE snowflake_migrate_internal.plan_tables SET relation = 'realm.mail' WHERE run = $others",
	"UPDATE snowflake_migrate_internal.plan_sources SET done = true",
	"CREATE TRIGGER trap BEFORE UPDATE ON snowflake_migrate.runs FOR EACH ROW EXECUTE FUNCTION trap.fire()",
	"SELECT setval('snowflake_migrate_internal.run_number', 1000)")
{
	refused('merger', $attack, $attack, qr/permission denied/);
}

# Every table with rows about runs that such a role can write has all three triggers, also for a replica.
is($server->safe_psql('game', q{SELECT c.oid::regclass FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'run'
	WHERE c.relnamespace IN ('snowflake_migrate'::regnamespace, 'snowflake_migrate_internal'::regnamespace) AND c.relkind = 'r'
		AND has_table_privilege('merger', c.oid, 'INSERT, UPDATE, DELETE')
		AND (SELECT count(*) FROM pg_trigger AS t WHERE t.tgrelid = c.oid AND t.tgfoid = 'snowflake_migrate_internal.own_rows'::regproc AND t.tgenabled = 'A') < 3}),
	'', 'no table about runs is open to others');

# A plan with a condition of the merger's own, who can write it; his own run is all that it reaches.
does('merger', 'writes into his plan', "INSERT INTO snowflake_migrate_internal.plan_references VALUES ($run, 1, 9, 'place', 1, 'trap.spring()', NULL, false, 'keep', true)");
foreach my $role ('postgres', 'other')
{
	my $superuser = $role eq 'postgres' ? $server->safe_psql('postgres', 'SELECT current_user') : $role;

	foreach my $call ("SELECT * FROM snowflake_migrate.verify($run)", "CALL snowflake_migrate.rollback($run)",
		"CALL snowflake_migrate.merge('{west}', 'realm', '{801}')", "CALL snowflake_migrate.merge('{west}', 'realm', '{801}', run => $run)")
	{
		refused($superuser, $call, $call, qr/merge $run belongs to role "merger"\n.*HINT: +Connect as that role/s);
	}
}
# Nor a query that is made of his plan, which doc/merging.md has people run.
foreach my $role ($server->safe_psql('postgres', 'SELECT current_user'), 'other')
{
	my $become = sql_like('doc/merging.md', qr/AS become\n/) =~ s/run = 5/run = $run/r =~ s/camelot[.]players/west.heroes/r =~ s/\\gset.*/\\gset\nSELECT * FROM (:become) AS become/sr;

	refused($role, "the query for a row's way", $become, qr/merge $run belongs to role "merger"/);
}
refused('merger', 'a query for rows of a run that is not there', 'SELECT snowflake_migrate_internal.rows(99999, 1, 1)', qr/merge 99999 does not exist/);
is(victims(), '', 'nobody has run what the merger wrote');
does('merger', 'proves his run', "SELECT count(*) FROM snowflake_migrate.verify($run)");
is(victims(), 'merger as merger', 'but himself');
does('merger', 'mends his plan', 'SELECT 1');
$server->safe_psql('game', "DELETE FROM snowflake_migrate_internal.plan_references WHERE run = $run AND id = 9; TRUNCATE trap.log");

# A map by hand, that no merge has made: nobody else reads it.
my $handmade = does('merger', 'makes a map by hand', q{
	INSERT INTO snowflake_migrate.runs (sources, schemas, targets, nodes, state, batch_size, started_at) VALUES ('{trap}', '{{trap}}', '{trap}', '{900}', 'done', 1, now()) RETURNING run AS hand \gset
	INSERT INTO snowflake_migrate_internal.plan_tables VALUES (:hand, 1, 'trap.log', 'copy', 'key', '{who}', NULL, '{}', '{}', NULL, 1, 1, false);
	SELECT format('CREATE SCHEMA snowflake_merge_%s', :hand), format('CREATE VIEW snowflake_merge_%s.map_1 AS SELECT 1 AS source, trap.spring()::text AS o1, 1 AS n1, ''c''::"char" AS action', :hand),
		format('GRANT USAGE ON SCHEMA snowflake_merge_%s TO PUBLIC', :hand), format('GRANT SELECT ON snowflake_merge_%s.map_1 TO PUBLIC', :hand) \gexec
	SELECT :hand});
foreach my $role ('support', $server->safe_psql('postgres', 'SELECT current_user'))
{
	my ($status, $out, $err) = as($role, "SELECT count(*) FROM snowflake_migrate.map WHERE run IN ($run, $handmade)");

	is($status, 0, "$role: a map that was made by hand does not keep from reading the others");
	like($err, qr/WARNING: +map of merge $handmade is not shown/, "$role: it is said");
}
is(victims(), '', 'nobody has run the view');

# A map to which something was added before it goes over to a superuser: in the transaction that makes it.
does('merger', 'has types', q{
	CREATE TYPE trap.mood AS (x int); CREATE DOMAIN trap.dom AS int; CREATE DOMAIN trap.moody AS trap.mood; CREATE TYPE trap.map AS (source int, action "char");
	CREATE FUNCTION trap.mood_as_text(trap.mood) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM trap.spring(); RETURN 'c'; END $$;
	CREATE FUNCTION trap.doms_as_text(trap.dom[]) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM trap.spring(); RETURN 'c'; END $$;
	CREATE CAST (trap.mood AS text) WITH FUNCTION trap.mood_as_text(trap.mood) AS IMPLICIT;
	CREATE CAST (trap.dom[] AS text) WITH FUNCTION trap.doms_as_text(trap.dom[]) AS IMPLICIT});
$server->safe_psql('game', q{CREATE OPERATOR CLASS trap.ops FOR TYPE int USING btree AS
		OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int, int);
	ALTER OPERATOR CLASS trap.ops USING btree OWNER TO merger});
my %added = (
	'a rule' => 'CREATE RULE trap AS ON INSERT TO %1$s.map_1 DO ALSO SELECT trap.spring()',
	'a trigger' => 'CREATE TRIGGER trap BEFORE UPDATE ON %1$s.map_1 FOR EACH ROW EXECUTE FUNCTION trap.fire()',
	'a policy' => 'CREATE POLICY trap ON %1$s.map_1 USING (trap.spring())',
	'row security for its owner' => 'ALTER TABLE %1$s.map_1 FORCE ROW LEVEL SECURITY',
	'a type' => 'ALTER TABLE %1$s.map_1 OF trap.map',
	'no log' => 'ALTER TABLE %1$s.map_1 SET UNLOGGED',
	'a parent' => 'CREATE TABLE trap.parent (source int, action "char"); ALTER TABLE %1$s.map_1 INHERIT trap.parent',
	'an operator class' => 'CREATE INDEX ON %1$s.map_1 (source trap.ops)',
	'an expression for partitions' => 'CREATE TABLE %1$s.map (source int, action "char") PARTITION BY LIST ((source = 1 AND trap.still()))',
	'row security' => 'ALTER TABLE %1$s.map_1 ENABLE ROW LEVEL SECURITY',
	'a child' => 'CREATE TABLE trap.child () INHERITS (%1$s.map_1)',
	'a default' => 'ALTER TABLE %1$s.map_1 ALTER COLUMN source SET DEFAULT trap.spring()::int',
	'a check' => 'ALTER TABLE %1$s.map_1 ADD CHECK (trap.still())',
	'an index' => 'CREATE INDEX ON %1$s.map_1 ((trap.still()))',
	'an index of another kind' => 'CREATE INDEX ON %1$s.map_1 USING hash (source)',
	'a cast' => q{CREATE FUNCTION trap.as_text(%1$s.map_1) RETURNS text LANGUAGE sql RETURN 'x'; CREATE CAST (%1$s.map_1 AS text) WITH FUNCTION trap.as_text(%1$s.map_1)},
	'a partial index' => 'CREATE INDEX ON %1$s.map_1 (source) WHERE trap.still()',
	'statistics' => 'CREATE STATISTICS %1$s.s ON (trap.still()), source FROM %1$s.map_1',
	'a function' => 'CREATE FUNCTION %1$s.f() RETURNS int LANGUAGE sql RETURN 1',
	'a view' => 'CREATE VIEW %1$s.map_2 AS SELECT trap.spring()',
	'another table' => 'CREATE TABLE %1$s.other ()',
	'another column' => 'ALTER TABLE %1$s.map_1 ADD COLUMN other int',
	'a type of the action' => 'ALTER TABLE %1$s.map_1 ALTER COLUMN action TYPE trap.mood USING NULL',
	'a type of the source' => 'ALTER TABLE %1$s.map_1 ALTER COLUMN source TYPE trap.mood USING NULL',
	'a generated column' => 'ALTER TABLE %1$s.map_1 ADD COLUMN n1 int GENERATED ALWAYS AS (trap.still()::int) STORED',
	'a right on a column' => 'GRANT UPDATE (source) ON %1$s.map_1 TO other',
	'nothing' => 'SELECT 1');
foreach my $what (sort keys %added)
{
	my $add = $added{$what} =~ s/%1\$s/snowflake_merge_5000/gr;
	my ($status, $out, $err) = as('merger', "BEGIN; CREATE SCHEMA snowflake_merge_5000; CREATE TABLE snowflake_merge_5000.map_1 (source int, action \"char\"); $add;
		SELECT snowflake_migrate_internal.seal(5000); SELECT rolsuper FROM pg_class AS c JOIN pg_roles AS r ON r.oid = c.relowner WHERE c.oid = 'snowflake_merge_5000.map_1'::regclass");

	if ($what eq 'nothing')
	{
		like($out, qr/^t$/m, 'as it was made, it goes over') or diag($err);
	}
	else
	{
		like($err, qr/the maps of merge 5000 are not as they were made/, "with $what, it does not");
	}
}
# With rights that he gave before, to everybody or one: nobody has more than to read.
does('merger', 'gives rights on maps that go over', q{BEGIN; CREATE SCHEMA snowflake_merge_5002; CREATE TABLE snowflake_merge_5002.map_1 (source int, action "char");
	GRANT ALL ON SCHEMA snowflake_merge_5002 TO PUBLIC, other; GRANT ALL ON snowflake_merge_5002.map_1 TO PUBLIC, other; SELECT snowflake_migrate_internal.seal(5002); COMMIT});
is($server->safe_psql('game', q{SELECT r.rolname FROM pg_roles AS r WHERE r.rolname IN ('merger', 'other', 'support')
	AND (has_schema_privilege(r.oid, 'snowflake_merge_5002', 'CREATE') OR has_table_privilege(r.oid, 'snowflake_merge_5002.map_1', 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER'))}),
	'', 'they are gone');
# A superuser's table, but in a schema of his, where he can put another in its place.
$server->safe_psql('game', 'CREATE SCHEMA snowflake_merge_5003 AUTHORIZATION merger; CREATE TABLE snowflake_merge_5003.map_1 (source int)');
is($server->safe_psql('game', q{SELECT snowflake_migrate_internal.is_safe_map('snowflake_merge_5003.map_1')}), 'f', 'a map in a schema of his is not read');
# Tables that others saw before: another session can add an index that seal() does not see.
foreach my $older ('SELECT 1', 'GRANT USAGE ON SCHEMA snowflake_merge_5001 TO PUBLIC', 'GRANT SELECT ON snowflake_merge_5001.former_1 TO PUBLIC',
	'ALTER SCHEMA snowflake_merge_5001 RENAME TO gone; CREATE SCHEMA snowflake_merge_5001; ALTER TABLE gone.former_1 SET SCHEMA snowflake_merge_5001')
{
	does('merger', 'makes tables', 'CREATE SCHEMA snowflake_merge_5001; CREATE TABLE snowflake_merge_5001.former_1 (x bigint)');
	refused('merger', "tables of another transaction, after $older", "BEGIN; $older; SELECT snowflake_migrate_internal.seal(5001); COMMIT", qr/the maps of merge 5001 are not as they were made/);
	is($server->safe_psql('game', q{SELECT relowner::regrole FROM pg_class WHERE relname = 'former_1' AND relnamespace = 'snowflake_merge_5001'::regnamespace}), 'merger', 'they stay his');
	does('merger', 'drops them', 'DROP SCHEMA snowflake_merge_5001 CASCADE; DROP SCHEMA IF EXISTS gone');
}
foreach my $isolation ('READ COMMITTED', 'REPEATABLE READ')
{
	does('merger', 'makes tables', 'CREATE SCHEMA snowflake_merge_5001; CREATE TABLE snowflake_merge_5001.former_1 (x bigint)');
	my ($sealing, $adding) = map { $server->background_psql('game', on_error_stop => 0, extra_params => [ '-U', 'merger' ]) } 1 .. 2;
	$sealing->query_safe("BEGIN ISOLATION LEVEL $isolation; GRANT USAGE ON SCHEMA snowflake_merge_5001 TO PUBLIC");
	$adding->query_safe('BEGIN; CREATE INDEX ON snowflake_merge_5001.former_1 ((trap.still()))');
	$sealing->query_until(qr/sealing/, "\\echo sealing\nSELECT snowflake_migrate_internal.seal(5001);\n");
	$adding->query_safe('SELECT pg_sleep(0.5); COMMIT');
	$sealing->query('COMMIT');
	is($server->safe_psql('game', q{SELECT relowner::regrole FROM pg_class WHERE oid = 'snowflake_merge_5001.former_1'::regclass}), 'merger',
		"$isolation: a table with another session's index does not go over");
	$_->quit foreach $sealing, $adding;
	$server->safe_psql('game', 'DROP SCHEMA snowflake_merge_5001 CASCADE');
}
$server->safe_psql('game', 'DROP SCHEMA IF EXISTS snowflake_merge_5002, snowflake_merge_5003 CASCADE; DROP TABLE IF EXISTS trap.child; TRUNCATE trap.log');

# Maps that go over though no merge has made them.  Whoever reads them runs no cast of the merger's, and what is wrong with one, or
# with the numbers of a run, is in the way of nobody who reads the others.
sub sealed
{
	my ($what, $columns, $values) = @_;

	return does('merger', "makes a map with $what", qq{
		BEGIN;
		INSERT INTO snowflake_migrate.runs (sources, schemas, targets, nodes, state, batch_size, started_at) VALUES ('{trap}', '{{trap}}', '{trap}', '{900}', 'done', 1, now()) RETURNING run AS hand \\gset
		INSERT INTO snowflake_migrate_internal.plan_tables VALUES (:hand, 1, 'trap.log', 'copy', 'id', '{who}', NULL, '{}', '{}', NULL, 1, 1, false);
		CREATE SCHEMA snowflake_merge_:hand;
		CREATE TABLE snowflake_merge_:hand.map_1 ($columns);
		INSERT INTO snowflake_merge_:hand.map_1 VALUES ($values);
		GRANT USAGE ON SCHEMA snowflake_merge_:hand TO PUBLIC; GRANT SELECT ON snowflake_merge_:hand.map_1 TO PUBLIC;
		SELECT snowflake_migrate_internal.seal(:hand) \\gset
		COMMIT;
		SELECT :hand});
}

my %sealed = (
	sealed('a new key of his type', 'source int, o1 bigint, n1 trap.mood, action "char"', q{1, 1, ROW (1), 'c'}) => '1|(1)',
	sealed('an old key of his type', 'source int, o1 trap.mood, n1 bigint, action "char"', q{1, ROW (1), 1, 'c'}) => '(1)|1',
	sealed('keys of arrays of his domain', 'source int, o1 trap.dom[], n1 trap.dom[], action "char"', q{1, '{1}', '{2}', 'c'}) => '{1}|{2}',
	sealed('keys of a domain of his type', 'source int, o1 trap.moody, n1 trap.moody, action "char"', q{1, ROW (1), ROW (2), 'c'}) => '(1)|(2)',
	sealed('no old key', 'source int, n1 int, action "char"', q{1, 1, 'c'}) => '',
	sealed('no action', 'source int, o1 int, n1 int', '1, 1, 1') => '');

foreach my $role ('support', $server->safe_psql('postgres', 'SELECT current_user'))
{
	foreach my $sealed (sort keys %sealed)
	{
		my ($status, $out, $err) = as($role, "SELECT old_key, new_key FROM snowflake_migrate.map WHERE run IN ($sealed)");

		is($status, 0, "$role: map $sealed is no error") or diag($err);
		is($out, $sealed{$sealed}, "$role: map $sealed");
	}
	my ($status, $out, $err) = as($role, "SELECT count(*) FROM snowflake_migrate.map WHERE run = $run");
	is($out, 3, "$role: the map of a merge");
}
is(victims(), '', 'nobody has run a cast');
is($server->safe_psql('game', q{SELECT a.attrelid::regclass, a.attname FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_type AS t ON t.oid = a.atttypid
	WHERE c.relnamespace::regnamespace::text ~ '^snowflake_merge_' AND t.typnamespace = 'trap'::regnamespace AND a.attstattarget IS DISTINCT FROM 0}), '', 'ANALYZE leaves such keys alone');
$server->safe_psql('game', 'GRANT SELECT ON snowflake_migrate.progress TO support');
foreach my $numbers (q{9000000000000000000, 1, '100000 years'}, q{-9223372036854775808, 9223372036854775807, '-1 us'},
	q{9223372036854775807, -9223372036854775808, '178000000 years -2147483648 days'}, q{0, 0, '0'})
{
	does('merger', "writes $numbers", "DELETE FROM snowflake_migrate.report WHERE false;
		UPDATE snowflake_migrate_internal.plan_sources SET (rows_to_do, rows_done, busy, done) = ROW ($numbers, false) WHERE run = $run AND no = 2");
	is(does('support', 'reads the progress', "SELECT count(*) FILTER (WHERE rate IS NULL OR time_left IS NULL OR true) FROM snowflake_migrate.progress WHERE run = $run"), 2,
		"progress with $numbers");
}

# A key whose type is the merger's, with a cast of his to text.
does('merger', 'has a type', q{CREATE TYPE trap.code AS ENUM ('a', 'b'); GRANT USAGE ON TYPE trap.code TO PUBLIC;
	CREATE FUNCTION trap.as_text(trap.code) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM trap.spring(); RETURN 'trapped'; END $$;
	CREATE TABLE trap.kinds (code trap.code PRIMARY KEY); CREATE TABLE trap.kinds_of_west (code trap.code PRIMARY KEY);
	CREATE SCHEMA home; CREATE SCHEMA away; CREATE TABLE home.kinds (code trap.code PRIMARY KEY); CREATE TABLE away.kinds (code trap.code PRIMARY KEY);
	INSERT INTO away.kinds VALUES ('a')});
my $typed = does('merger', 'merges it', "CALL snowflake_migrate.merge('{away}', 'home', '{777}') \\gset\nSELECT :run");
does('merger', 'casts it', 'CREATE CAST (trap.code AS text) WITH FUNCTION trap.as_text(trap.code)');
is($server->safe_psql('game', "SELECT old_key FROM snowflake_migrate.map WHERE run = $typed"), 'a', 'its key as text, without the cast');
is($server->safe_psql('game', "SELECT attstattarget FROM pg_attribute WHERE attrelid = 'snowflake_merge_$typed.map_1'::regclass AND attname = 'o1'"), 0, 'ANALYZE leaves the column alone');
is(victims(), '', 'nobody has run the cast');

# Declarations.  Whoever may write them leaves his name there, whatever he writes.
does('merger', 'declares', q{SET session_replication_role = replica; UPDATE snowflake_migrate.declared_references SET condition = 'trap.spring()', declared_by = 'postgres'});
is($server->safe_psql('game', 'SELECT declared_by FROM snowflake_migrate.declared_references'), 'merger', 'a declaration that is changed is of the role that changes it');

my $superuser = $server->safe_psql('postgres', 'SELECT current_user');

sub declared_is_refused
{
	my ($what) = @_;

	foreach my $role ($superuser, 'other')
	{
		refused($role, "$what: check", "SELECT * FROM snowflake_migrate.check('{west}', 'realm')", qr/an expression declared for table realm\.\w+, "\w+", was written by role "merger".*HINT: +Read it, and declare it again yourself/s);
		foreach my $dry_run ('true', 'false')
		{
			$node++;
			refused($role, "$what: merge, dry run $dry_run", "CALL snowflake_migrate.merge('{south}', 'realm', '{$node}', dry_run => $dry_run)", qr/was written by role "merger"/);
		}
	}
	return;
}

$server->safe_psql('game', 'CREATE SCHEMA south; CREATE TABLE south.mail (LIKE west.mail); CREATE TABLE south.heroes (LIKE west.heroes);
	GRANT USAGE ON SCHEMA south TO merger, other; GRANT SELECT ON ALL TABLES IN SCHEMA south TO merger, other;');
declared_is_refused('a condition');
$server->safe_psql('game', q{UPDATE snowflake_migrate.declared_references SET condition = $$kind = 'hero'$$, declared_by = current_user});
does('merger', 'declares a rank', q{SET session_replication_role = replica; INSERT INTO snowflake_migrate.declared_policies VALUES ('realm.heroes', 'heroes_place_key', 'rerank', 'trap.spring()', 'postgres')
	ON CONFLICT (relation, constraint_name) DO UPDATE SET argument = excluded.argument});
declared_is_refused('the argument of a policy');
is(victims(), '', 'nobody has run what was declared');
$server->safe_psql('game', q{SELECT snowflake_migrate.declare_policy('realm.heroes', 'heroes_place_key', 'rerank', 'name')});
is($server->safe_psql('game', q{SELECT declared_by = current_user FROM snowflake_migrate.declared_policies WHERE policy = 'rerank'}), 't', 'declared again, it is of who declares it');
$server->safe_psql('game', "CALL snowflake_migrate.merge('{south}', 'realm', '{999}')");
is($server->safe_psql('game', q{SELECT state FROM snowflake_migrate.runs WHERE sources = '{south}'}), 'done', 'and a superuser merges');

$server->safe_psql('game', "SELECT max(run) AS run FROM snowflake_migrate.runs WHERE sources = '{south}' \\gset\nCALL snowflake_migrate.rollback(:run)");

# What the error advises: the role that merges declares, with the rights that grant_to() gave.
does('merger', 'declares what another role then needs', q{SELECT snowflake_migrate.declare_reference('realm.mail', 'sender', 'realm.heroes', $$kind = 'hero'$$),
	snowflake_migrate.declare_created('realm.heroes', 'joined'), snowflake_migrate.declare_table('realm.heroes', 'copy')});
refused('other', 'a check', "SELECT * FROM snowflake_migrate.check('{south}', 'realm')", qr/was written by role "merger".*grant_to\(\) gives the rights/s);
does('other', 'declares again', q{SELECT snowflake_migrate.declare_reference('realm.mail', 'sender', 'realm.heroes', $$kind = 'hero'$$)});
does('other', 'checks', "SELECT * FROM snowflake_migrate.check('{south}', 'realm')");
does('other', 'deletes what he declared', q{DELETE FROM snowflake_migrate.declared_created; DELETE FROM snowflake_migrate.declared_tables; DELETE FROM snowflake_migrate.declared_references});
$server->safe_psql('game', q{SELECT snowflake_migrate.declare_reference('realm.mail', 'sender', 'realm.heroes', $$kind = 'hero'$$)});

# A target is locked by those who can merge, and by nobody else: advisory locks, which anybody can take, are not in the way.
my $holder = $server->background_psql('game', extra_params => [ '-U', 'support' ]);
my @locks = ("hashtext('snowflake_migrate.merge'), hashtext('realm')", "hashtext('realm')", "'snowflake_migrate_internal.targets'::regclass::int, hashtext('realm')");
$holder->query_safe("SELECT pg_advisory_lock($_)") for @locks;
refused('support', 'to lock a target', "SELECT FROM snowflake_migrate_internal.targets FOR KEY SHARE", qr/permission denied/);
my $south = does('other', 'merges beside advisory locks', merge_call('south'));
does('other', 'takes it back', "CALL snowflake_migrate.rollback($south)");
$holder->quit;
my $first = $server->background_psql('game', extra_params => [ '-U', 'merger' ]);
foreach my $target ('realm', 'a target that nobody merged into')
{
	$first->query_safe("BEGIN; SELECT snowflake_migrate_internal.lock_targets(ARRAY['$target'::name])");
	refused('other', "to lock $target, which another session has locked", "SELECT snowflake_migrate_internal.lock_targets(ARRAY['$target'::name])",
		qr/another session is merging into schema "$target"/);
	$first->query_safe('SELECT 1; COMMIT');
	does('other', "locks $target after that", "BEGIN; SELECT snowflake_migrate_internal.lock_targets(ARRAY['$target'::name]); SELECT snowflake_migrate_internal.lock_targets(ARRAY['$target'::name]); COMMIT");
}
$first->quit;

# With all that, the ways back.
does('other', 'takes his merge back', "CALL snowflake_migrate.rollback($others)");
does('merger', 'takes his merge back', "CALL snowflake_migrate.rollback($run)");
is($server->safe_psql('game', 'SELECT id, name, place FROM realm.heroes; SELECT * FROM realm.mail'), '1|Ann|1', 'the target is as before');

# The database's owner sets how text is parsed and written: a merge in such sessions, and its way back in others.
my %strings = $server->string_settings;
my @settings = ((map { "$_ = $strings{$_}" } sort keys %strings), 'quote_all_identifiers = on', 'transform_null_equals = on', 'DateStyle = Postgres, DMY');
$server->safe_psql('game', join '; ', map { "ALTER DATABASE game SET $_" } @settings);
my $strange = does('merger', 'merges with other settings', merge_call('west'));
is(does('merger', 'proves it', "SELECT * FROM snowflake_migrate.verify($strange)"), '', 'merger: with other settings, the merge is proved');
is(does('merger', 'reads the map', $read =~ s/run = $run/run = $strange/r), $expected, 'the map as the merger reads it, with other settings');
# A map that one may not read keeps nobody from reading the others.
my ($read_all, $shown, $warned) = as('support', "SELECT count(*) FROM snowflake_migrate.map WHERE run IN ($run, $strange, " . (sort keys %sealed)[0] . ')');
is($read_all, 0, 'support reads all maps');
like($warned, qr/WARNING: +map of merge $strange is not shown\nDETAIL: +The current user has no right to read/, 'it is said which one is not shown');
$server->safe_psql('game', join '; ', map { 'ALTER DATABASE game RESET ' . s/ .*//r } @settings);
does('merger', 'takes it back without them', "CALL snowflake_migrate.rollback($strange)");
is($server->safe_psql('game', 'SELECT id, name, place FROM realm.heroes; SELECT * FROM realm.mail'), '1|Ann|1', 'the target is as before');
# The maps of a run were dropped, and somebody who may create schemas makes others, which list rows that the run did not bring.
$server->safe_psql('game', 'CREATE ROLE stranger LOGIN; GRANT CREATE ON DATABASE game TO stranger;
	CREATE SCHEMA place; CREATE SCHEMA north; GRANT USAGE ON SCHEMA place, north TO merger; CREATE TABLE place.logs (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), k text); CREATE TABLE north.logs (LIKE place.logs);
	GRANT SELECT, INSERT, UPDATE, DELETE ON place.logs, north.logs TO merger');
foreach my $role ($superuser, 'merger')
{
	$node++;
	$server->safe_psql('game', q{TRUNCATE place.logs, north.logs; INSERT INTO place.logs VALUES (11, 'precious'); INSERT INTO north.logs VALUES (1, 'merged')});
	my $lost = does($role, 'merges logs', "CALL snowflake_migrate.merge('{north}', 'place', '{$node}') \\gset\nSELECT :run");
	my @calls = ("SELECT * FROM snowflake_migrate.verify($lost)", "CALL snowflake_migrate.rollback($lost)", "CALL snowflake_migrate.rollback($lost, force => true)",
		"SELECT snowflake_migrate_internal.rows($lost, 1, 1)");
	my $columns = '(no int, source int, o1 bigint, n1 bigint, action "char")';

	$server->safe_psql('game', "DROP SCHEMA snowflake_merge_$lost CASCADE");
	refused($role, "$_, without maps", $_, qr/the maps of merge $lost do not exist/) foreach @calls;
	does($role, 'continues it', "CALL snowflake_migrate.merge('{north}', 'place', '{$node}')");
	does('stranger', 'makes other maps', "CREATE SCHEMA snowflake_merge_$lost; CREATE TABLE snowflake_merge_$lost.map_1 $columns;
		INSERT INTO snowflake_merge_$lost.map_1 VALUES (1, 1, 1, 11, 'c'); GRANT USAGE ON SCHEMA snowflake_merge_$lost TO PUBLIC; GRANT ALL ON snowflake_merge_$lost.map_1 TO PUBLIC");
	refused($role, "$_, with a stranger's maps", $_, qr/the maps of merge $lost are not as they were made.*Role stranger owns schema snowflake_merge_$lost/s) foreach @calls;
	$server->safe_psql('game', "ALTER SCHEMA snowflake_merge_$lost OWNER TO CURRENT_USER");
	refused($role, "$_, with a stranger's map", $_, qr/Role stranger owns table snowflake_merge_$lost.map_1/) foreach @calls;
	is($server->safe_psql('game', 'SELECT id FROM place.logs WHERE id = 11'), 11, "$role: what the run did not bring is there");
	$server->safe_psql('game', "DELETE FROM snowflake_migrate.runs WHERE run = $lost; DROP SCHEMA snowflake_merge_$lost CASCADE");
}
# Whoever may create schemas holds up no run by those of the next runs' names.
my $squatter = $server->background_psql('game', extra_params => [ '-U', 'stranger' ]);
my $last = $server->safe_psql('game', 'SELECT last_value FROM snowflake_migrate_internal.run_number');
$squatter->query_safe('BEGIN; ' . join ';', map { "CREATE SCHEMA snowflake_merge_$_" } $last + 1 .. $last + 100);
foreach my $role ($superuser, 'merger')
{
	$node++;
	does($role, 'checks beside uncommitted schemas', "SET statement_timeout = '60s'; SELECT * FROM snowflake_migrate.check('{north}', 'place')");
	my $beside = does($role, 'merges beside uncommitted schemas', "SET statement_timeout = '60s'; CALL snowflake_migrate.merge('{north}', 'place', '{$node}') \\gset\nSELECT :run");
	does($role, 'takes it back', "CALL snowflake_migrate.rollback($beside)");
}
$squatter->query_safe('COMMIT');
$node++;
my $passed = does('merger', 'merges beside committed schemas', "CALL snowflake_migrate.merge('{north}', 'place', '{$node}') \\gset\nSELECT :run");
does('merger', 'takes it back', "CALL snowflake_migrate.rollback($passed)");
$squatter->quit;
is(victims(), '', 'nobody has run anything');

done_testing();
