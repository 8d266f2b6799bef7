# Game servers that are merged into one: what is said before, what a merge makes of clashing keys, references and names,
# what is on record of it afterwards, and with which rights it is done.
#
# What it must make is computed from the sources without the merge's map: see Snowflake::Merge.

use strict;
use warnings FATAL => 'all';

use JSON::PP;
use PostgreSQL::Test::Utils;
use Snowflake::Merge;
use Test::More;

my $merge = Snowflake::Merge->new;
my $server = $merge->server;

# What the check finds; after these statements, which are undone.
sub check
{
	my ($database, @before) = @_;
	my $rows = $merge->sql($database, 'BEGIN', @before, q{SELECT json_agg(c) FROM snowflake_migrate.check('{west,East}', 'realm') AS c}, 'ROLLBACK');

	# What the statements return is of no interest.
	my @found = @{ JSON::PP->new->decode($rows =~ s/^\n+//r) };

	foreach my $finding (@found)
	{
		$_ //= '' foreach values %$finding;
	}
	return @found;
}

# Those of them whose columns are like this: equal to a string, or matched by a pattern.
sub those
{
	my ($found, %columns) = @_;
	my @those = @$found;

	foreach my $column (keys %columns)
	{
		my $like = $columns{$column};

		@those = grep { ref $like ? $_->{$column} =~ $like : $_->{$column} eq $like } @those;
	}
	return @those;
}

# There is one.
sub finds
{
	my ($name, $found, %columns) = @_;

	isnt(scalar those($found, %columns), 0, "check: $name")
	  or diag(map { join(' | ', @$_{qw(severity source table object problem count example)}) . "\n" } those($found, severity => qr/error|warning/));
	return;
}

# How many rows it is about, of each source that has any.
sub counts
{
	my ($name, $found, $expected, %columns) = @_;
	my %some = map { $_ => $expected->{$_} } grep { $expected->{$_} } keys %$expected;

	is_deeply({ map { $_->{source} => $_->{count} } those($found, %columns) }, \%some, "check: $name, counted");
	return;
}

# The rows that a query names in a database: name => value.
sub pairs
{
	my ($query) = @_;

	return map { split /\t/, $_, 2 } split /\n/, $merge->sql('one', "SELECT concat_ws(E'\\t', n, v) FROM ($query) AS q (n, v)");
}

# The rows of a source's table by the report of a run.
sub reported
{
	my ($run, $source, $table) = @_;

	return $merge->sql('one', qq{SELECT count FROM snowflake_migrate.report
		WHERE run = $run AND severity = 'info' AND source = '$source' AND relation ~ '\\m$table\$' AND object IS NULL AND count IS NOT NULL});
}

# Tables as they were before anybody thought of a merge.
$merge->load('one');

my @found = check('one');

foreach my $table (@Snowflake::Merge::adopted)
{
	finds("the key of $table must be adopted", \@found, severity => 'error', relation => qr/\b$table$/, advice => qr/snowflake_migrate.adopt/);
}
$merge->refuses('one', $merge->call_sql, qr/check|adopt/, 'tables that were not adopted');
is_deeply($merge->natural('one'), $merge->{at_first}, 'tables that were not adopted: nothing was done');

# References that look like one, and what sources have that the target lacks, before it is declared.
$merge->declare('one', qr/^reference.*visits/);
$merge->adopt('one');
is($merge->sql('one', q{SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'realm.visits'::regclass AND attname = 'host_id'}),
	'bigint', 'a declared reference is widened with its key');
$merge->sql('one', q{DELETE FROM snowflake_migrate.declared_references});
@found = check('one');
foreach my $column ([ qw(mail sender_id) ], [ qw(mail attachment_id) ], [ qw(loadouts item_ids) ], [ qw(visits host_id) ], [ 'Guild Log', 'actor_id' ])
{
	my ($table, $name) = @$column;

	finds("$name of $table looks like a reference", \@found, relation => qr/\b$table\b/, object => qr/$name/, advice => qr/snowflake_migrate.declare_reference/);
}
finds('a table that the target lacks', \@found, severity => 'error', source => 'west', relation => qr/legacy_notes/);
finds('a column that the target lacks', \@found, severity => 'error', source => 'west', relation => qr/accounts/, object => qr/fax/);

# What there is to know, when that is declared.
$merge->declare('one', qr/^(table|reference|no_reference|created)/);
@found = check('one');
finds('a column that a source lacks', \@found, severity => 'info', source => 'East', relation => qr/players/, object => qr/motto/);
finds('columns in another order', \@found, source => 'East', relation => qr/players/, problem => qr/order/);
finds('a table without a key', \@found, severity => 'warning', relation => qr/Guild Log/, problem => qr/key/);
finds('a trigger', \@found, relation => qr/items/, object => qr/watch/);
finds('a generated column', \@found, relation => qr/items/, object => qr/worth/);
finds('an identity column', \@found, relation => qr/accounts/, object => qr/customer_no/, problem => qr/identity/);
finds('a sequence', \@found, relation => qr/seasons/, object => qr/id/, problem => qr/sequence/);

# Clashes, those between sources too, with counts and examples.
my %t = map { $_ => $merge->{at_first}->{$_} } qw(accounts titles);
my %w = %{ $merge->source('one', 'west') };
my %e = %{ $merge->source('one', 'East') };
my %names = map { my $world = $_; $world => { map { $_->{mark} => $_->{name} } @{ $merge->{worlds}->{$world}->{players} } } } qw(realm west East);
my %guilds = map { my $world = $_; $world => { map { $_->{mark} => $_->{name} } @{ $merge->{worlds}->{$world}->{guilds} } } } qw(realm west East);

# How many of some names are among others.
sub clashing
{
	my ($names, @others) = @_;
	my %others = map { lc($_) => 1 } @others;

	return scalar grep { $others{ lc $_ } } @$names;
}

foreach my $case (
	[ 'players_name_key', map { [ values %$_ ] } @names{qw(realm west East)} ],
	[ 'guilds_name', map { [ values %$_ ] } @guilds{qw(realm west East)} ],
	[ 'accounts_login_key', map { [ keys %{ $_->{accounts} } ] } \%t, \%w, \%e ],
	[ 'titles_title_key', map { [ keys %{ $_->{titles} } ] } \%t, \%w, \%e ])
{
	my ($constraint, $target, $west, $east) = @$case;
	my ($clash) = those(\@found, severity => 'error', source => 'west', object => $constraint);

	counts("clashes of $constraint", \@found, { west => clashing($west, @$target), East => clashing($east, @$target, @$west) }, object => $constraint);
	ok((grep { index(lc $clash->{example}, lc $_) >= 0 } @$west), "check: an example of a clash of $constraint") or diag($clash->{example});
}
finds('snowflake ids that clash', \@found, severity => 'error', object => 'items_pkey', count => 3);
finds('ranks that clash', \@found, severity => 'error', source => 'west', object => 'arena_ranks_season_id_rank_key', count => 36);
$merge->refuses('one', $merge->call_sql, qr/check|clash/, 'clashes without a policy');

# Of what is not known from the catalogs, and of children of rows that are kept.
@found = check('one',
	q{SELECT snowflake_migrate.declare_reference('realm.visits', 'host_id', 'realm.players', dangling => 'error')},
	q{SELECT snowflake_migrate.declare_policy('realm.accounts', 'accounts_login_key', 'keep_target')},
	'ALTER TABLE west.badges DROP CONSTRAINT badges_code_key', 'INSERT INTO west.badges SELECT 1000, code, "Größe" FROM west.badges WHERE id = 1',
	'UPDATE west.upgrades SET cost = -1',
	q{UPDATE west.accounts SET created = '2001-01-01' WHERE id = 1},
	q{UPDATE west.players SET created_at = timestamptz '2022-01-01' - id * interval '1 h'});
counts('dangling references', \@found, { west => 4, East => 4 }, severity => 'error', relation => qr/visits/, object => 'host_id', example => qr/9000\d\d/);
foreach my $table ('wallets', 'Select')
{
	my $clashes = grep { exists $merge->{at_first}->{$table}->{$_} } keys %{ $w{$table} };

	counts("clashes of $table", \@found, { west => $clashes }, severity => 'error', source => 'west', object => "${table}_pkey");
}
finds('a key that is not unique', \@found, severity => 'error', relation => qr/badges/, count => 1);
finds('matched rows that differ', \@found, severity => 'error', source => 'west', relation => qr/upgrades/);
finds('a time before the epoch', \@found, severity => 'error', source => 'west', relation => qr/accounts/, object => 'created', count => 1);
finds('a CHECK that will not hold', \@found, severity => 'error', source => 'west', relation => qr/friendships/, object => qr/check/);

$merge->declare('one', qr/^policy/);
@found = check('one');
is(join("\n", map { join ' ', @$_{qw(source table object problem count example)} } those(\@found, severity => 'error')), '', 'check: no error is left');

# What is seldom there.
@found = check('one',
	'ALTER TABLE realm.titles ADD EXCLUDE USING hash (title WITH =)',
	'CREATE RULE ruled AS ON UPDATE TO realm.titles DO ALSO NOTHING',
	'ALTER TABLE realm.votes ENABLE ROW LEVEL SECURITY',
	'ALTER TABLE realm.items ENABLE ALWAYS TRIGGER watch',
	'ALTER TABLE west.mail ALTER sender_type DROP NOT NULL',
	'ALTER TABLE west.wallets ALTER coins TYPE numeric');
finds('an exclusion constraint', \@found, relation => qr/titles/, object => 'titles_title_excl');
finds('a rule', \@found, relation => qr/titles/, object => 'ruled');
finds('row security', \@found, relation => qr/votes/, problem => qr/row/);
finds('a trigger that fires always', \@found, severity => 'warning', relation => qr/items/, object => 'watch');
finds('a column that may be null in a source alone', \@found, source => 'west', relation => qr/mail/, object => 'sender_type');
finds('a column of another type', \@found, source => 'west', relation => qr/wallets/, object => 'coins');

$merge->refuses('one', $merge->call_sql(nodes => [ 13, 21 ]), qr/\b21\b/, 'a node number that is in ids of a source');
$merge->refuses('one', $merge->call_sql(nodes => [ 1, 13 ]), qr/\b1\b/, 'the node number of the server');
$merge->refuses('one', 'BEGIN; ' . $merge->call_sql, qr/transaction/, 'a merge in a transaction block');

# A dry run leaves its report.
$merge->sql('one', 'CREATE SEQUENCE realm.tickets', q{SELECT nextval('realm.tickets')});

my $before = $merge->checksums('one');
my $sequences = q{SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'realm' ORDER BY 1};
my $sequences_before = $merge->sql('one', $sequences);
my $dry = $merge->call('one', dry_run => 'true');

like($dry, qr/^\d+$/, 'dry run: it has a number');
is($merge->sql('one', "SELECT state FROM snowflake_migrate.runs WHERE run = $dry"), 'dry run', 'dry run: its state');
is_deeply($merge->checksums('one'), $before, 'dry run: the target is as before');
is($merge->sql('one', $sequences), $sequences_before, 'dry run: its sequences too');
is($merge->sql('one', 'SELECT (SELECT count(*) FROM snowflake_migrate.map), (SELECT count(*) FROM snowflake_migrate.records)'),
	'0|0', 'dry run: no map, no records');
is(reported($dry, 'west', 'items'), scalar(keys %{ $w{items} }), 'dry run: its report counts the rows of a table');

# With just the rights that are needed.  A lock holds it up, so that others can look.
$merge->allow_merger('one');
my $holder = $server->background_psql('one');
$holder->query_safe('BEGIN');
$holder->query_safe('LOCK TABLE realm.mail IN SHARE MODE');

my $call = $merge->start_merge('one', $merge->call_sql(batch_size => 50), user => 'merger');

my $waits = q{EXISTS (SELECT FROM pg_locks WHERE relation = 'realm.mail'::regclass AND NOT granted)};
my $progress = q{FROM snowflake_migrate.progress WHERE state = 'copying'};

ok($merge->wait_for('one', $waits, $call), 'a merge waits for a lock') or diag($call->{err});
is($merge->sql('one', q{SELECT state FROM snowflake_migrate.runs WHERE finished_at IS NULL}), 'copying', 'progress: it copies');
is($merge->sql('one', "SELECT sum(rows_done) > 0 AND sum(rows_done) < sum(rows_to_do) AND bool_and(rows_done BETWEEN 0 AND rows_to_do) $progress"),
	't', 'progress: some rows are done');
is($merge->sql('one', qq{SELECT rows_to_do $progress AND source = 'East' AND relation ~ '\\mitems\$'}),
	scalar(keys %{ $e{items} }), 'progress: the rows to do are those of the source');
$merge->refuses('one', $merge->call_sql, qr/merge|run/, 'the same merge at once');
$merge->refuses('one', $merge->call_sql(sources => ['west'], nodes => [13]), qr/merge|run/, 'another merge into the target');
$holder->query_safe('COMMIT');
$holder->quit;
ok($merge->finish_merge($call), 'a merge, by a role without superuser') or diag($call->{err});

my ($run) = $call->{out} =~ /^(\d+)$/m;

is($merge->sql('one', "SELECT state, finished_at > started_at FROM snowflake_migrate.runs WHERE run = $run"), 'done|t', 'it is done');
$merge->is_merged('one', 'merged');
is($server->safe_psql('one', "SELECT * FROM snowflake_migrate.verify($run)", connstr => $server->connstr('one') . ' user=merger'), '',
	'it is verified, by the same role');

# Names: those that clash have the suffix, in the length that they may have; no other is changed.
foreach my $case ([ 'players', 'players_name_key', \%names, 12, '_%s' ], [ 'guilds', 'guilds_name', \%guilds, 20, ' (%s)' ])
{
	my ($table, $constraint, $old, $length, $suffix) = @$case;
	my %new = pairs("SELECT mark, name FROM realm.$table");
	my %recorded = pairs(qq{SELECT t.mark, concat_ws('/', r.policy, r.column_name, r.old_value, r.new_value)
		FROM snowflake_migrate.records AS r JOIN realm.$table AS t ON r.new_key = t.id::text
		WHERE r.run = $run AND r.constraint_name = '$constraint'});
	my %taken = map { lc($_) => 1 } values %{ $old->{realm} };
	my @wrong;
	my %expected_records;

	foreach my $world (qw(realm west East))
	{
		my @here = sort keys %{ $old->{$world} };
		my $with = sprintf $suffix, $world;

		foreach my $mark (@here)
		{
			my ($was, $is) = ($old->{$world}->{$mark}, $new{$mark});

			if ($world eq 'realm' || !$taken{ lc $was })
			{
				push @wrong, "$mark: $was became $is" if $is ne $was;
				next;
			}
			$expected_records{$mark} = "suffix/name/$was/$is";

			utf8::decode($_) foreach $was, $is;

			my $rest = $is =~ /^(.*)\Q$with\E\d*$/s ? $1 : undef;

			push @wrong, "$mark: $was became $is" unless defined $rest && $rest eq substr($was, 0, length $rest) && length $is <= $length;
		}
		$taken{ lc $_ } = 1 foreach values %{ $old->{$world} };
	}
	is("@wrong", '', "names of $table: those that clash have the suffix, others are as they were");
	is_deeply(\%recorded, \%expected_records, "names of $table: each is on record");
}

# Keys.
is($merge->sql('one', q{SELECT count(*) FROM (SELECT FROM snowflake_migrate.map WHERE action = 'copied' AND new_key ~ '^\d{15,}$'
		AND relation !~ 'wallets|Select|settings' GROUP BY new_key HAVING count(*) > 1) AS twice}), 0, 'keys: no new id is in two tables');
foreach my $case (
	[ 'accounts', 'login', 'created' ], [ 'players', 'mark', 'created_at' ], [ 'guilds', 'mark', 'founded' ], [ 'items', 'mark', 'created_at' ],
	[ 'mail', 'mark', 'sent_at' ], [ 'chat', 'body', 'sent_at' ])
{
	my ($table, $mark, $created) = @$case;
	my %old = pairs("SELECT $mark, id FROM west.$table");
	my %new = pairs("SELECT $mark, id FROM realm.$table");
	my %map = pairs(qq{SELECT old_key, new_key FROM snowflake_migrate.map WHERE source = 'west' AND relation ~ '\\m$table\$'});
	my $renumbered = "FROM realm.$table AS t JOIN west.$table AS s USING ($mark) WHERE s.id < 1000000 AND t.id > 1000000";

	is_deeply(\%map, { map { $old{$_} => $new{$_} } keys %old }, "keys of $table: the map says which row became which");
	is($merge->sql('one', "SELECT DISTINCT snowflake_node(t.id) $renumbered"), 11, "keys of $table: new ones are of the source's node");
	is($merge->sql('one', "SELECT count(*) FROM (SELECT t.id > lag(t.id) OVER (ORDER BY t.$created, s.id) AS ascends $renumbered) AS k WHERE NOT ascends"),
		0, "keys of $table: new ones are in order of time");
	is($merge->sql('one', "SELECT count(*) $renumbered AND date_trunc('milliseconds', t.$created) > snowflake_timestamp(t.id)"),
		0, "keys of $table: none is earlier than its row");
}
is_deeply({ pairs(q{SELECT mark, id FROM realm.items WHERE mark ~ '^T'}) }, { map { $_->{mark} => $_->{id} } @{ $merge->{worlds}->{realm}->{items} } },
	'keys: rows of the target keep theirs');
is($merge->sql('one', q{SELECT count(*) FILTER (WHERE t.id = s.id), count(*) FILTER (WHERE t.id <> s.id)
		FROM realm.items AS t JOIN west.items AS s USING (mark) WHERE s.id > 1000000}),
	'47|3', 'keys: snowflake ids of a source are kept but for those that clash');

# The map has every row, under what became of it.
my %in_target = map { my $rows = $merge->{at_first}->{$_}; $_ => { map { $_ => 1 } ref $rows eq 'HASH' ? keys %$rows : () } } keys %w;
my %known = map { my $table = $_; $table => scalar grep { $in_target{$table}->{$_} } keys %{ $w{$table} } } grep { ref $w{$_} eq 'HASH' } keys %w;

foreach my $case (
	[ 'accounts', 'kept_target' ], [ 'wallets', 'kept_source' ], [ 'Select', 'kept_target' ], [ 'titles', 'skipped' ],
	[ 'item_templates', 'matched' ], [ 'upgrades', 'matched' ], [ 'badges', 'matched' ], [ 'seasons', 'matched' ])
{
	my ($table, $action) = @$case;
	my %expected = ($action => $known{$table}, copied => keys(%{ $w{$table} }) - $known{$table});

	is_deeply({ pairs(qq{SELECT action, count(*) FROM snowflake_migrate.map
			WHERE run = $run AND source = 'west' AND relation ~ '\\m$table\\M' GROUP BY action}) },
		{ map { $_ => $expected{$_} } grep { $expected{$_} > 0 } keys %expected }, "map: rows of $table");
}

# Composite keys, whose parts are in the maps of the tables that they refer to.
foreach my $source (@Snowflake::Merge::sources)
{
	my %players = pairs(qq{SELECT old_key, new_key FROM snowflake_migrate.map WHERE source = '$source' AND relation ~ '\\mplayers\$'});
	my %friends = pairs(qq{SELECT regexp_replace(old_key, '[^0-9]+', ' ', 'g'), regexp_replace(new_key, '[^0-9]+', ' ', 'g')
		FROM snowflake_migrate.map WHERE source = '$source' AND relation ~ '\\mfriendships\$'});

	my @friends = @{ $merge->{worlds}->{$source}->{friendships} };

	is_deeply(\%friends, { map { (" $_->{lo} $_->{hi} " => " $players{ $_->{lo} } $players{ $_->{hi} } ") } @friends }, "map: composite keys of $source");
}

# On record is what the policies did.
foreach my $case (
	[ 'wallets_pkey', 'keep_source', $known{wallets} ], [ 'titles_title_key', 'skip', $known{titles} ],
	[ 'accounts_login_key', 'keep_target', $known{accounts} ], [ 'items_pkey', 'renumber', 3 ])
{
	my ($constraint, $policy, $count) = @$case;

	is($merge->sql('one', qq{SELECT policy, count(*) FROM snowflake_migrate.records
		WHERE run = $run AND source = 'west' AND constraint_name = '$constraint' GROUP BY policy}), "$policy|$count", "records: rows of $constraint");
}
is_deeply({ pairs(qq{SELECT login, former_row->>'coins' FROM snowflake_migrate.records AS r JOIN realm.accounts AS a ON a.id::text = r.new_key
		WHERE run = $run AND source = 'west' AND constraint_name = 'wallets_pkey'}) },
	{ map { $_ => $merge->{at_first}->{wallets}->{$_} =~ /(\d+)/ } grep { $in_target{wallets}->{$_} } keys %{ $w{wallets} } },
	'records: rows that were replaced');
is($merge->sql('one', qq{SELECT count(*) FROM realm.arena_ranks AS a JOIN west.arena_ranks AS s USING (mark)
		WHERE a.rank <> s.rank AND NOT EXISTS (SELECT FROM snowflake_migrate.records AS r WHERE r.run = $run AND r.policy = 'rerank'
			AND r.constraint_name = 'arena_ranks_season_id_rank_key' AND r.old_value = s.rank::text AND r.new_value = a.rank::text)}),
	0, 'records: ranks that were numbered anew');
is(reported($run, 'East', 'chat'), scalar(keys %{ $e{chat} }), 'report: rows of a table');

# Sequences of columns that were not renumbered, and no other.
is($merge->sql('one', q{INSERT INTO realm.accounts (login, created) VALUES ('new', now())
		RETURNING customer_no > (SELECT max(customer_no) FROM realm.accounts)}),
	't', 'sequences: an identity column goes on');
is($merge->sql('one', q{INSERT INTO realm.seasons (title) VALUES ('new') RETURNING id}), 6, 'sequences: that of a shared table goes on');
is($merge->sql('one', q{SELECT last_value FROM realm.tickets}), 1, 'sequences: another is as it was');
is($merge->sql('one', q{SELECT DISTINCT t.tgenabled FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid WHERE c.relnamespace = 'realm'::regnamespace}), 'O', 'triggers are as they were');
is($merge->sql('one', q{UPDATE realm.items SET quantity = quantity WHERE mark = 'Wi0001'}, 'SELECT count(*) FROM watch.fired'), 1, 'and fire');

# Again.
$before = $merge->checksums('one');

my ($status, $out, $err) = $server->psql('one', $merge->call_sql, connstr => $server->connstr('one') . ' user=merger');

is("$status $out", "0 $run", 'again: the number of the run that is done');
like($err, qr/NOTICE/, 'again: it says so');
is_deeply($merge->checksums('one'), $before, 'again: nothing is done');
$merge->refuses('one', $merge->call_sql(nodes => [ 13, 14 ]), qr/already/, 'the same sources under other node numbers');

# One after the other, in two runs; the second from views, as somebody may write them to adapt what is older.
$merge->ready('two');
$merge->sql('two', 'CREATE SCHEMA seen', (map { "CREATE VIEW seen.$_ AS SELECT * FROM west.$_" } map { Snowflake::Merge::quoted($_) } sort keys %w),
	'ALTER VIEW seen.accounts RENAME fax TO facsimile', q{SELECT snowflake_migrate.declare_table('realm.accounts', 'copy', ignored_columns => '{facsimile}')});
$merge->call('two', sources => ['East'], nodes => [11]);
$merge->is_merged('two', 'one source', ['East']);
$merge->refuses('two', $merge->call_sql(sources => ['seen'], nodes => [11]), qr/\b11\b/, 'a node number that is used');
$merge->call('two', sources => ['seen'], nodes => [12]);
$merge->is_merged('two', 'another, seen through views', ['East'], ['west']);
is($merge->sql('two', q{SELECT string_agg(state, ' ') FROM snowflake_migrate.runs}), 'done done', 'both are done');

# A tree, whose nodes are the same where their paths are.
my $zones = 'zones (id serial PRIMARY KEY, within int REFERENCES %1$s.zones, name text NOT NULL, UNIQUE NULLS NOT DISTINCT (within, name))';

$merge->sql('two', (map { ("CREATE SCHEMA $_", sprintf("CREATE TABLE %1\$s.$zones", $_)) } qw(forest glade)),
	q{INSERT INTO forest.zones (within, name) VALUES (NULL, 'a'), (1, 'b'), (2, 'c'), (3, 'd')},
	q{INSERT INTO glade.zones (within, name) VALUES (NULL, 'other'), (NULL, 'a'), (1, 'b'), (2, 'b'), (4, 'c'), (4, 'x'), (5, 'd'), (7, 'e')},
	q{SELECT count(*) FROM snowflake_migrate.adopt('{forest.zones}', '{id}')},
	q{SELECT snowflake_migrate.declare_table('forest.zones', 'match', '{within,name}')},
	$merge->call_sql(sources => ['glade'], target => 'forest', nodes => [13]));
is($merge->sql('two', q{WITH RECURSIVE p (id, path) AS (
			SELECT id, name FROM forest.zones WHERE within IS NULL
			UNION ALL
			SELECT z.id, path || '/' || name FROM p JOIN forest.zones AS z ON within = p.id)
		SELECT string_agg(path, ' ' ORDER BY path COLLATE "C") FROM p}),
	'a a/b a/b/c a/b/c/d a/b/c/d/e a/b/x other other/b', 'a tree is matched from its roots');

done_testing();
