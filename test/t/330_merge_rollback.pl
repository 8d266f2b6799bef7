# Taking back what a merge brought in: the target is as it was, what it replaced and renumbered too.  It is refused while newer
# rows need what it would take away, goes on after a crash, and an unfinished merge can be taken back as well.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Merge;
use Test::More;

my $merge = Snowflake::Merge->new;
my $server = $merge->server;

$merge->ready($_) foreach qw(done unfinished keyless);

my $before = $merge->checksums('done');

# Of a table without a key, rows that refer to others are told by them; those that refer to nothing stay, which must be asked for.
$merge->sql('keyless', q{INSERT INTO west."Guild Log" VALUES (NULL, NULL, now(), 'nobody')});

my $run = $merge->call('keyless', sources => ['west'], nodes => [11]);
my $refers = '(guild_id > 1000000 OR actor_id > 1000000) IS TRUE';
my $stay = $merge->sql('keyless', qq{SELECT count(*) FROM realm."Guild Log" WHERE NOT $refers});

cmp_ok($merge->sql('keyless', qq{SELECT count(*) FROM realm."Guild Log" WHERE $refers}), '>', 0, 'a table without a key: rows refer to others');
$merge->refuses('keyless', "CALL snowflake_migrate.rollback($run)", qr/Table realm."Guild Log" has no key by which [0-9]+ rows/, 'a table without a key');
is($merge->sql('keyless', "SELECT state FROM snowflake_migrate.runs WHERE run = $run"), 'done', 'a table without a key: nothing was done');
$merge->sql('keyless', q{INSERT INTO realm."Guild Log" SELECT new_key::bigint, NULL, now(), 'newer'
	FROM snowflake_migrate.map WHERE relation = 'realm.guilds' AND action = 'copied' LIMIT 1});
$merge->refuses('keyless', "CALL snowflake_migrate.rollback($run, force => true)", qr/Guild Log.*1 rows, for example .*newer/, 'a newer row that refers to merged ones');
$merge->sql('keyless', q{DELETE FROM realm."Guild Log" WHERE "Größe" = 'newer'});
$merge->sql('keyless', "CALL snowflake_migrate.rollback($run, force => true)");

my $after = $merge->checksums('keyless');

is_deeply({ %$after, 'Guild Log' => '' }, { %$before, 'Guild Log' => '' }, 'a table without a key: all else is as before');
is($merge->sql('keyless', qq{SELECT count(*) = $stay AND count(*) FILTER (WHERE $refers) = 0 FROM realm."Guild Log"}), 't',
	'a table without a key: rows that refer to nothing are left');
$merge->sql($_, q{SELECT snowflake_migrate.declare_table('realm."Guild Log"', 'ignore')}) foreach qw(done unfinished);

sub rolled_back
{
	my ($database, $run, $name) = @_;

	is($merge->sql($database, "SELECT state FROM snowflake_migrate.runs WHERE run = $run"), 'rolled back', "$name: its state");
	is_deeply($merge->checksums($database), $before, "$name: the target is as before");
	is($merge->sql($database, 'SELECT count(*) FROM watch.fired'), 0, "$name: no trigger has fired");
	is($merge->sql($database, q{SELECT count(*) FROM pg_trigger WHERE tgenabled NOT IN ('O', 'A')}), 0, "$name: no trigger is disabled");
	return;
}

# By a role that has the rights that a merge needs, and no other.
$merge->allow_merger('done');

my $call = $merge->start_merge('done', $merge->call_sql, user => 'merger');

ok($merge->finish_merge($call), 'merged') or diag($call->{err});

($run) = $call->{out} =~ /^(\d+)$/m;
$call = $merge->start_merge('done', "CALL snowflake_migrate.rollback($run)", user => 'merger');
ok($merge->finish_merge($call), 'taken back') or diag($call->{err});
rolled_back('done', $run, 'taken back');
$merge->refuses('done', $merge->call_sql, qr/\b1[12]\b/, 'the same node numbers again');

# Others, and what players do then.
my @nodes = (31, 32);

$run = $merge->call('done', nodes => \@nodes);

my $merged = $merge->checksums('done');
my $player = q{(SELECT id FROM realm.players WHERE mark = 'Wp0001')};
my $item = q{(SELECT id FROM realm.items WHERE mark = 'Wi0001')};

# Newer rows, each with what takes it away.
foreach my $case (
	[ 'mail', "INSERT INTO realm.mail (mark, sender_type, receiver_id, sent_at) VALUES ('new', 'system', $player, now())",
	  q{DELETE FROM realm.mail WHERE mark = 'new'} ],
	[ 'mail', "INSERT INTO realm.mail (mark, sender_type, sender_id, receiver_id, sent_at) VALUES ('new', 'player', $player, 1, now())",
	  q{DELETE FROM realm.mail WHERE mark = 'new'} ],
	# It would go with its owner, by ON DELETE CASCADE.
	[ 'items', "INSERT INTO realm.items (mark, owner_id, template_id, quantity, rarity, created_at) VALUES ('new', $player, 1, 1, 'common', now())",
	  q{DELETE FROM realm.items WHERE mark = 'new'} ],
	[ 'friendships', "INSERT INTO realm.friendships VALUES (1, $player, now())", 'DELETE FROM realm.friendships WHERE lo = 1 AND hi > 1000000' ],
	[ 'loadouts', "INSERT INTO realm.loadouts VALUES (1, 'new', ARRAY[$item])", q{DELETE FROM realm.loadouts WHERE slot = 'new'} ],
	[ 'settings', "INSERT INTO realm.settings SELECT p.id, jsonb_build_object('bars', jsonb_build_array(jsonb_build_object('item', $item)))
		FROM realm.players AS p WHERE mark ~ '^T' AND NOT EXISTS (SELECT FROM realm.settings WHERE player_id = p.id) ORDER BY mark LIMIT 1",
	  qq{DELETE FROM realm.settings WHERE NOT prefs ? 'theme'} ],
	# A row of the target's that refers to one since.
	[ 'players', q{UPDATE realm.players SET guild_id = (SELECT id FROM realm.guilds WHERE mark = 'Wg0001') WHERE mark = 'Tp0003'},
	  q{UPDATE realm.players SET guild_id = } . ($merge->{worlds}->{realm}->{players}->[2]->{guild_id} // 'NULL') . q{ WHERE mark = 'Tp0003'} ])
{
	my ($table, $statement, $undo) = @$case;

	$merge->sql('done', $statement);

	my $with = $merge->checksums('done');

	$merge->refuses('done', "CALL snowflake_migrate.rollback($run)", qr/\b$table\b/, "a newer row in $table");
	is_deeply($merge->checksums('done'), $with, "a newer row in $table: nothing was done");
	$merge->sql('done', $undo);
}
$merge->sql('done', 'TRUNCATE watch.fired');
is_deeply($merge->checksums('done'), $merged, 'newer rows are gone');

# Rows that were changed since.
$merge->sql('done', q{UPDATE realm.players SET level = 99 WHERE mark = 'Ep0002'},
	q{UPDATE realm.wallets SET coins = 5 WHERE mark = (SELECT min(mark) FROM realm.wallets WHERE mark ~ '^E' AND account_id < 1000000)},
	'TRUNCATE watch.fired');
$merge->refuses('done', "CALL snowflake_migrate.rollback($run)", qr/players/, 'a row that was changed');
$merge->refuses('done', "CALL snowflake_migrate.rollback($run)", qr/wallets/, 'a replaced row that was changed');
is($merge->sql('done', "SELECT state FROM snowflake_migrate.runs WHERE run = $run"), 'done', 'a row that was changed: nothing was done');
$merge->sql('done', "CALL snowflake_migrate.rollback($run, force => true)");
rolled_back('done', $run, 'taken back by force');
$merge->refuses('done', $merge->call_sql(nodes => [ 11, 33 ]), qr/\b11\b/, 'a node number of the first run');
$merge->refuses('done', $merge->call_sql(nodes => [ 33, 32 ]), qr/\b32\b/, 'a node number of the second run');

# An unfinished merge, killed after some rows; and its rollback, killed in the middle of a batch.
$merge->allow_stops('unfinished');
srand($merge->{seed});

sub kill_when
{
	my ($name, $until, $statement) = @_;

	$call = $merge->start_merge('unfinished', $statement);
	ok($merge->wait_for('unfinished', $until, $call), "$name: it goes on") or diag($call->{err});
	$server->crash($merge->sql('unfinished', q{SELECT pid FROM pg_stat_activity WHERE application_name = 'merge'}));
	ok(!$merge->finish_merge($call), "$name: it is killed");
	return;
}

# At the first of so many rows that are still there.
sub kill_rollback
{
	my ($name, $count) = @_;

	$merge->stop_at('unfinished', $count, rollback => 1) or die 'no row is left to be stopped at';

	my $holder = $merge->hold('unfinished');

	kill_when($name, $Snowflake::Merge::stopped, "CALL snowflake_migrate.rollback($run)");
	# Its session has ended with the server.
	eval { $holder->quit };
	$merge->sql('unfinished', 'TRUNCATE watch.stops');
	return;
}

kill_when('an unfinished merge', '(SELECT sum(rows_done) FROM snowflake_migrate.progress) >= ' . int(300 + rand 1000), $merge->call_sql(batch_size => 20));
$run = $merge->sql('unfinished', 'SELECT run FROM snowflake_migrate.runs');
is($merge->sql('unfinished', "SELECT state FROM snowflake_migrate.runs WHERE run = $run"), 'copying', 'an unfinished merge: its state');
kill_rollback('its rollback', 1);
$merge->refuses('unfinished', $merge->call_sql, qr/roll/, 'to go on with a merge that is taken back');
$merge->sql('unfinished', "CALL snowflake_migrate.rollback($run)");
rolled_back('unfinished', $run, 'an unfinished merge is taken back');

# One that has only just begun: what it would have replaced is as it was.
$merge->stop_at('unfinished', 1000, marks => qr/^Ww/) or die 'there is no such row';

my $holder = $merge->hold('unfinished');

kill_when('a merge that has begun', $Snowflake::Merge::stopped, $merge->call_sql(batch_size => 1, nodes => [ 41, 42 ]));
eval { $holder->quit };
$run = $merge->sql('unfinished', 'SELECT max(run) FROM snowflake_migrate.runs');
$merge->sql('unfinished', 'TRUNCATE watch.stops', "CALL snowflake_migrate.rollback($run)");
rolled_back('unfinished', $run, 'a merge that has begun is taken back');

# A whole one, killed again and again while it is taken back.
$run = $merge->call('unfinished', nodes => \@nodes);
kill_rollback("rollback, kill $_", 4 - $_) foreach 1 .. 3;
$merge->sql('unfinished', "CALL snowflake_migrate.rollback($run)");
rolled_back('unfinished', $run, 'a rollback that was killed');
$server->psql('unfinished', "CALL snowflake_migrate.rollback($run)");
rolled_back('unfinished', $run, 'once more');

# By other rules: who ranks first keeps the name, rows of the target are renamed and replaced, coins are added up, titles stay behind.
$merge->ready('ruled');
$merge->rule('ruled');
$before = $merge->checksums('ruled');
$run = $merge->call('ruled');
$merge->is_merged('ruled', 'by rules');
is($merge->misnamed('ruled', 'players', sub { $_[1]->{level} <=> $_[0]->{level} || $_[0]->{created_at} cmp $_[1]->{created_at} }), '',
	'by rules: the highest level keeps the name of a player');
is($merge->misnamed('ruled', 'guilds', sub { $_[0]->{founded} cmp $_[1]->{founded} }), '', 'by rules: the oldest keeps the name of a guild');
isnt($merge->sql('ruled', "SELECT count(*) FROM snowflake_migrate.records WHERE run = $run AND source IS NULL AND policy = 'suffix'"), 0,
	'by rules: rows of the target were renamed');
$merge->sql('ruled', "CALL snowflake_migrate.rollback($run, force => true)");
is_deeply({ %{ $merge->checksums('ruled') }, 'Guild Log' => '' }, { %$before, 'Guild Log' => '' }, 'by rules: taken back, to the bit');

done_testing();
