# What snowflake_migrate.verify() must not pass: each damage that a merge could do, done to one that is right.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Merge;
use Test::More;

my $merge = Snowflake::Merge->new;

$merge->ready('one');

my $run = $merge->call('one');

$merge->is_merged('one', 'merged');

# What is right passes.
sub passes
{
	my ($name) = @_;

	is($merge->sql('one', "SELECT * FROM snowflake_migrate.verify($run)"), '', "passed: $name");
	return;
}

# The statements' damage is found, and the table named; then it is put right.  Foreign keys and triggers do not get in the way.
sub finds
{
	my ($name, $table, @statements) = @_;
	my $found = $merge->sql('one', 'BEGIN', 'SET LOCAL session_replication_role = replica', @statements, 'SAVEPOINT damaged',
		qq{SELECT concat_ws(' ', source, relation, problem, count, example) FROM snowflake_migrate.verify($run) ORDER BY relation !~ '$table'}, 'ROLLBACK');

	like($found, qr/^[^\n]*\b$table\b/, "found: $name");
	note($found);
	return;
}

# A row's id in the target, by its mark.
sub id
{
	my ($table, $mark) = @_;

	return "(SELECT id FROM realm.$table WHERE mark = '$mark')";
}

# The mark of the first row of west for which a condition holds, or of the one after so many.
sub first_mark
{
	my ($table, $condition, $number) = @_;

	return $merge->sql('one', "SELECT mark FROM realm.$table WHERE mark ~ '^W' AND ($condition) ORDER BY mark LIMIT 1 OFFSET " . ($number // 0));
}

my ($one, $two) = map { first_mark('players', 'true', $_) } 0, 1;
my ($id_one, $id_two) = map { $merge->sql('one', 'SELECT ' . id('players', $_)) } $one, $two;
my $item = first_mark('items', "owner_id <> $id_one");
my $from_player = first_mark('mail', q{sender_type = 'player'});
my $from_system = first_mark('mail', q{sender_type = 'system' AND sender_id = 7});
my $lonely = first_mark('mail', 'NOT EXISTS (SELECT FROM realm.mail AS r WHERE r.reply_to = mail.id)');
my $in_guild = first_mark('players', 'guild_id IS NOT NULL');

# A row of these tables without a mark belongs to a player of west.
my $of_west = q{(SELECT id FROM realm.players WHERE mark ~ '^W')};

sub one_of
{
	my ($table, $column, $condition) = @_;

	return "ctid = (SELECT min(ctid) FROM realm.$table WHERE $column IN $of_west AND $condition)";
}

passes('what was merged');

# Credited to a stranger.
sub credited
{
	my ($name, $to, $which) = @_;

	finds($name, 'items', "UPDATE realm.items SET owner_id = " . id('players', $to) . " WHERE mark = '$which'");
	return;
}

credited('an item of another player', $one, $item);
credited('an item of a player of another source', 'Ep0001', $item);
credited('an item of a player of the target', 'Tp0001', $item);
credited('a row of the other server', $one, 'Ei0001');
finds('a player in a guild of the target', 'players', "UPDATE realm.players SET guild_id = " . id('guilds', 'Tg0001') . " WHERE mark = '$in_guild'");
passes('rows that are credited as they were');

# Swapped.
finds(q(two players with each other's keys), 'players',
	map { "UPDATE realm.players SET id = $_->[1] WHERE id = $_->[0]" } [ $id_one, -1 ], [ $id_two, $id_one ], [ -1, $id_two ]);
finds(q(two items with each other's contents), 'items',
	q{UPDATE realm.items AS a SET (mark, owner_id, template_id, quantity, rarity, created_at) =
		(SELECT b.mark, b.owner_id, b.template_id, b.quantity, b.rarity, b.created_at FROM realm.items AS b
		 WHERE b.mark IN ('Wi0005', 'Wi0006') AND b.mark <> a.mark)
	WHERE mark IN ('Wi0005', 'Wi0006')});
passes('rows that were swapped back');

# References that were not mapped.
finds('a foreign key', 'items', "UPDATE realm.items AS t SET owner_id = s.owner_id FROM west.items AS s WHERE t.mark = '$item' AND s.mark = t.mark");
finds('a declared reference', 'mail',
	"UPDATE realm.mail AS t SET sender_id = s.sender_id FROM west.mail AS s WHERE t.mark = '$from_player' AND s.mark = t.mark");
finds('a sender that is none', 'mail', "UPDATE realm.mail SET sender_id = $id_one WHERE mark = '$from_system'");
finds('an element of an array', 'loadouts',
	'UPDATE realm.loadouts SET item_ids[1] = 1 WHERE ' . one_of('loadouts', 'player_id', q{item_ids <> '{}'}));
finds('the order of an array', 'loadouts',
	'UPDATE realm.loadouts SET item_ids = item_ids[2:] || item_ids[1] WHERE ' . one_of('loadouts', 'player_id', 'item_ids[1] <> item_ids[2]'));

my $settings = one_of('settings', 'player_id', q{prefs->'bars' <> '[]'});

finds('an id in jsonb', 'settings', qq{UPDATE realm.settings SET prefs = jsonb_set(prefs, '{bars,0,item}', '1') WHERE $settings});
finds('an id that is a key in jsonb', 'settings', qq{UPDATE realm.settings SET prefs = jsonb_set(prefs, '{favourites}', '{"1": "left"}') WHERE $settings});
finds('something else in jsonb', 'settings', qq{UPDATE realm.settings SET prefs = jsonb_set(prefs, '{theme}', '"none"') WHERE $settings});
passes('references that are mapped again');

# Missing.
finds('one mail less', 'mail', "DELETE FROM realm.mail WHERE mark = '$lonely'");
finds('one friendship less', 'friendships', 'DELETE FROM realm.friendships WHERE ' . one_of('friendships', 'lo', 'true'));
finds('a line of chat less', 'chat', q{DELETE FROM realm.chat WHERE body = 'Ec0001'});
finds('a row without a key less', 'Guild Log', 'DELETE FROM realm."Guild Log" WHERE ' . one_of('"Guild Log"', 'actor_id', 'true'));
finds('a shared row less', 'item_templates', 'DELETE FROM realm.item_templates WHERE code = (SELECT min(code) FROM west.item_templates)');
passes('rows that are there again');

# More.
sub doubled
{
	my ($id) = @_;

	return "INSERT INTO realm.mail SELECT $id, mark, sender_type, sender_id, receiver_id, reply_to, attachment_id, sent_at
		FROM realm.mail WHERE mark = '$lonely'";
}

finds('a mail twice', 'mail', doubled('snowflake_encode(sent_at, 11, 4000)'));
finds(q(a mail twice, with an id of the server's), 'mail', doubled('snowflake_nextval()'));
# When the target has been opened again, nothing tells such a row from a new one.
finds('a friendship more', 'friendships', q{UPDATE snowflake_migrate.runs SET state = 'verifying'},
	"INSERT INTO realm.friendships SELECT min(lo), $id_two, '2020-01-01' FROM realm.friendships WHERE lo <> $id_two");

# Of a table whose keys tell when they were made, they do; but until the run is done the target is closed.
sub says
{
	my ($state, @statements) = @_;

	return $merge->sql('one', 'BEGIN', 'SET LOCAL session_replication_role = replica', "UPDATE snowflake_migrate.runs SET state = '$state'", @statements,
		qq{SELECT concat_ws(' ', relation, problem, count) FROM snowflake_migrate.verify($run)}, 'ROLLBACK');
}

my $late = q{INSERT INTO realm.mail (mark, sender_type, receiver_id, sent_at) VALUES ('late', 'system', 1, now())};
my $gone = q{DELETE FROM realm.mail WHERE mark = (SELECT min(mark) FROM realm.mail WHERE mark ~ '^T' AND NOT EXISTS (SELECT FROM realm.mail AS r WHERE r.reply_to = mail.id))};

is(says('done', $late), '', 'a mail that was written since is none of the merge');
is(says('verifying', $late), 'realm.mail rows are in the target that neither it nor a source had 1', 'found: a mail that was written before the proof');
is(says('verifying', $late, 'SELECT example = (SELECT max(id)::text FROM realm.mail) FROM snowflake_migrate.verify(' . $run . ')'), "t\nrealm.mail rows are in the target that neither it nor a source had 1", 'it says which');
like(says('done', doubled('snowflake_encode(sent_at, 11, 4000)'), "SELECT example = (SELECT max(id)::text FROM realm.mail WHERE mark = '$lonely' AND snowflake_sequence(id) = 4000) FROM snowflake_migrate.verify($run) WHERE problem ~ 'node number'"), qr/^t$/m,
	'it says which id has a node number of the merge');
is(says('verifying', $late, $gone), "realm.mail rows that the target had are gone 1\nrealm.mail rows are in the target that neither it nor a source had 1",
	'found: a mail that came, and one that is gone');
finds('a row without a key twice', 'Guild Log',
	'INSERT INTO realm."Guild Log" SELECT * FROM realm."Guild Log" WHERE ' . one_of('"Guild Log"', 'actor_id', 'true'));
passes('rows that are there once');

# Values.
finds('a level', 'players', "UPDATE realm.players SET level = level + 1 WHERE mark = '$two'");
finds('a name', 'players', "UPDATE realm.players SET name = 'Nobody' WHERE mark = '$two'");
finds('a time, by a microsecond', 'chat', q{UPDATE realm.chat SET sent_at = sent_at + interval '1 us' WHERE body = 'Wc0001'});
finds('a value that is null', 'Select',
	q{UPDATE realm."Select" SET "from" = NULL WHERE "Group By" = (SELECT min("Group By") FROM realm."Select" WHERE "Group By" ~ '^W')});
finds('a row that took the place of another', 'wallets',
	q{UPDATE realm.wallets SET coins = coins + 1 WHERE mark = (SELECT min(mark) FROM realm.wallets WHERE mark ~ '^E')});
passes('values as they were');

# Sources that have changed meanwhile.
finds('a source that has changed', 'items', q{UPDATE west.items SET quantity = quantity + 1 WHERE mark = 'Wi0007'});
finds('a source that has a row more', 'mail', q{INSERT INTO west.mail (mark, sender_type, receiver_id, sent_at) VALUES ('late', 'system', 1, now())});
finds('a source on another server that has changed', 'wallets',
	q{UPDATE "East".wallets SET coins = coins + 1 WHERE mark = (SELECT min(mark) FROM realm.wallets WHERE mark ~ '^E')});
passes('sources as they were');

# Guards.
my $foreign_key = 'ADD CONSTRAINT mail_receiver_id_fkey FOREIGN KEY (receiver_id) REFERENCES realm.players (id) NOT VALID';

finds('a trigger that is disabled', 'items', 'ALTER TABLE realm.items DISABLE TRIGGER watch');
finds('foreign keys that are not enforced', 'items', 'ALTER TABLE realm.items DISABLE TRIGGER ALL');
finds('a constraint that is not valid', 'mail', 'ALTER TABLE realm.mail DROP CONSTRAINT mail_receiver_id_fkey', "ALTER TABLE realm.mail $foreign_key");
finds('a constraint that is gone', 'friendships', 'ALTER TABLE realm.friendships DROP CONSTRAINT friendships_check');

passes('guards that are in place again');
$merge->is_merged('one', 'nothing was changed');
done_testing();
