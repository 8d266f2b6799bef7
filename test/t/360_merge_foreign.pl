# Merges of schemas that come over a foreign data wrapper, where what is read there is not what is there.

use strict;
use warnings FATAL => 'all';

use Snowflake::Server;
use Test::More;

my $server = Snowflake::Server->new('worlds');

$server->init;
$server->start;
$server->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(game realm);
$server->safe_psql('game', 'CREATE EXTENSION snowflake_migrate CASCADE; CREATE EXTENSION postgres_fdw');

# Tables that inherit.  The other server's SELECT has no ONLY.
$server->safe_psql('game', q{
	CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), what text);
	CREATE TABLE logins (name text, PRIMARY KEY (id)) INHERITS (events);
});
$server->safe_psql('realm', q{
	CREATE TABLE events (id bigserial PRIMARY KEY, what text);
	CREATE TABLE logins (name text, PRIMARY KEY (id)) INHERITS (events);
	INSERT INTO events (what) SELECT 'event ' || n FROM generate_series(1, 10) AS n;
	INSERT INTO logins (what, name) SELECT 'login ' || n, 'player ' || n FROM generate_series(1, 10) AS n;
});

sub import_realm
{
	$server->safe_psql('game', sprintf q{
		CREATE SERVER realm FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname 'realm');
		CREATE USER MAPPING FOR CURRENT_USER SERVER realm;
		CREATE SCHEMA realm;
		IMPORT FOREIGN SCHEMA public FROM SERVER realm INTO realm}, $server->host, $server->port);
	return;
}

import_realm();

my $errors = q{SELECT relation, problem, advice FROM snowflake_migrate.check('{realm}', 'public') WHERE severity = 'error'};
my $found = $server->safe_psql('game', $errors);

like($found, qr/^public\.events\|foreign table realm\.events is of a table that has children: their rows come with its own\|/, 'a parent is refused');
unlike($found, qr/^public\.logins/m, 'its child is not');

my ($status, $out, $err) = $server->psql('game', "CALL snowflake_migrate.merge('{realm}', 'public', '{77}')");

isnt($status, 0, 'nor does a merge begin');
like($err, qr/cannot merge the schemas as they are\nDETAIL: .*public\.events/, 'the error says why');

# As it advises.
my ($there, $here) = $found =~ /On the source's server: (.*;)\nHere: (.*;)/ or die $found;

$server->safe_psql('realm', $there);
$server->safe_psql('game', $here);
is($server->safe_psql('game', $errors), '', 'a view with ONLY is no error');
$server->safe_psql('game', q{CALL snowflake_migrate.merge('{realm}', 'public', '{77}')});
is($server->safe_psql('game', 'SELECT count(*), count(DISTINCT id), count(DISTINCT what) FROM events'), '20|20|20', 'each row comes once');
is($server->safe_psql('game', 'SELECT count(*) FROM ONLY events'), '10', 'the parent has its own');
is($server->safe_psql('game', 'SELECT count(*) FROM snowflake_migrate.runs AS r, snowflake_migrate.verify(r.run)'), '0', 'it is proved');

# Children that only the source's server has, a parent that is called otherwise here, and one that a view reads; nothing that
# is partitioned.
$server->safe_psql('realm', q{
	CREATE SCHEMA "Old";
	CREATE TABLE "Old"."Pets" (id bigserial PRIMARY KEY, name text);
	CREATE TABLE "Old".dragons () INHERITS ("Old"."Pets");
	CREATE TABLE "Old".moves (id bigint PRIMARY KEY, what text) PARTITION BY RANGE (id);
	CREATE TABLE "Old".moves_1 PARTITION OF "Old".moves DEFAULT;
	INSERT INTO "Old"."Pets" (name) VALUES ('cat'); INSERT INTO "Old".dragons (name) VALUES ('dragon'); INSERT INTO "Old".moves VALUES (1, 'up')});
$server->safe_psql('game', q{
	CREATE SCHEMA zoo; CREATE SCHEMA old; CREATE SCHEMA view_of_old;
	CREATE TABLE zoo.pets (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
	CREATE TABLE zoo.moves (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), what text);
	CREATE FOREIGN TABLE old.pets (id bigint, name text) SERVER realm OPTIONS (schema_name 'Old', table_name 'Pets');
	CREATE FOREIGN TABLE old.moves (id bigint, what text) SERVER realm OPTIONS (schema_name 'Old');
	CREATE VIEW view_of_old.pets AS TABLE old.pets});
my $parents = q{SELECT relation, problem, advice FROM snowflake_migrate.check('{%s}', 'zoo') WHERE severity = 'error'};

foreach my $source (qw(old view_of_old)) {
	is($server->safe_psql('game', sprintf $parents, $source), <<~'END' =~ s/\n\z//r, "a parent of children that are only there, by $source");
		zoo.pets|foreign table old.pets is of a table that has children: their rows come with its own|On the source's server: CREATE VIEW "Old"."Pets_only" AS SELECT * FROM ONLY "Old"."Pets";
		Here: ALTER FOREIGN TABLE old.pets OPTIONS (SET table_name 'Pets_only');
		END
}
# Who may not make foreign tables of the server is told by what the target has.
$server->safe_psql('game', q{
	CREATE ROLE guest; CREATE USER MAPPING FOR guest SERVER realm OPTIONS (user 'postgres', password_required 'false');
	GRANT USAGE, CREATE ON SCHEMA zoo, old TO guest; GRANT ALL ON ALL TABLES IN SCHEMA zoo, old TO guest; GRANT CREATE ON DATABASE game TO guest;
	SELECT snowflake_migrate.grant_to('guest')});
is($server->safe_psql('game', 'SET ROLE guest; ' . sprintf $parents, 'old'), '', 'without USAGE of the server');
$server->safe_psql('game', q{CREATE TABLE zoo.dragons (PRIMARY KEY (id)) INHERITS (zoo.pets); ALTER FOREIGN TABLE old.pets RENAME TO "Pets"; ALTER TABLE zoo.pets RENAME TO "Pets"});
like($server->safe_psql('game', 'SET ROLE guest; ' . sprintf $parents, 'old'), qr/foreign table old\."Pets" is of a table/, 'unless the target has children, too');
$server->safe_psql('game', 'DROP SCHEMA zoo, old, view_of_old CASCADE');

# Views of another role, who alone has a user mapping: the server can't be asked, and the merge goes on.
$server->safe_psql('realm', q{CREATE TABLE pets (id bigserial PRIMARY KEY, name text); INSERT INTO pets (name) VALUES ('cat')});
$server->safe_psql('game', sprintf q{
	CREATE ROLE keeper SUPERUSER; CREATE SCHEMA zoo; CREATE SCHEMA old; CREATE SCHEMA view_of_old;
	CREATE TABLE zoo.pets (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
	CREATE SERVER keepers FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname 'realm');
	CREATE USER MAPPING FOR keeper SERVER keepers OPTIONS (user '%s');
	SET ROLE keeper; IMPORT FOREIGN SCHEMA public LIMIT TO (pets) FROM SERVER keepers INTO old;
	CREATE VIEW view_of_old.pets AS TABLE old.pets}, $server->host, $server->port, $server->value('current_user'));
is($server->safe_psql('game', sprintf $parents, 'view_of_old'), '', 'views of who alone has a user mapping can be read');
$server->safe_psql('game', 'SET client_min_messages = warning; DROP SCHEMA zoo, old, view_of_old CASCADE; DROP SERVER keepers CASCADE; DROP ROLE keeper');
$server->safe_psql('realm', 'DROP TABLE pets');

# Rows that the role there may not see.
$server->safe_psql('realm', q{
	CREATE ROLE reader LOGIN; CREATE TABLE posts (id bigserial PRIMARY KEY, body text);
	INSERT INTO posts (body) SELECT 'post ' || n FROM generate_series(1, 10) AS n;
	ALTER TABLE posts ENABLE ROW LEVEL SECURITY; CREATE POLICY first ON posts USING (id < 5); GRANT SELECT ON posts TO reader});
$server->safe_psql('game', sprintf q{
	CREATE SCHEMA forum; CREATE SCHEMA old_forum; CREATE TABLE forum.posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), body text);
	CREATE SERVER old_forum FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname 'realm');
	CREATE USER MAPPING FOR CURRENT_USER SERVER old_forum OPTIONS (user 'reader', password_required 'false');
	IMPORT FOREIGN SCHEMA public LIMIT TO (posts) FROM SERVER old_forum INTO old_forum}, $server->host, $server->port);
my $forum = q{SELECT severity, problem, advice FROM snowflake_migrate.check('{old_forum}', 'forum') WHERE severity <> 'info'};

like($found = $server->safe_psql('game', $forum), qr/^warning\|foreign table old_forum.posts is of a table with row security: rows .* would be missing, without a word\|/, 'row security there is warned of');
$server->safe_psql('game', $found =~ /(ALTER SERVER .*;)/);
(undef, undef, $err) = $server->psql('game', $forum);
like($err, qr/query would be affected by row-level security policy for table "posts"/, 'as advised, it is an error');
$server->safe_psql('game', q{ALTER SERVER old_forum OPTIONS (SET options '-c geqo=off')});
like($found = $server->safe_psql('game', $forum), qr/\QALTER SERVER old_forum OPTIONS (SET options '-c geqo=off -c row_security=off');\E/, 'beside options that are there');
$server->safe_psql('game', $found =~ /(ALTER SERVER .*;)/);
$server->safe_psql('realm', 'ALTER ROLE reader BYPASSRLS');
is($server->safe_psql('game', $forum), '', 'unless the role sees all rows');
$server->safe_psql('game', q{SET client_min_messages = warning; DROP SCHEMA forum, old_forum CASCADE; DROP SERVER old_forum CASCADE});
$server->safe_psql('realm', 'DROP TABLE posts');

# Large objects stay where they are, and a number of one is that of another here.
$server->safe_psql($_, 'CREATE EXTENSION lo') foreach qw(game realm);
$server->safe_psql('game', 'CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), picture oid, sketch lo)');
$server->safe_psql('realm', q{CREATE TABLE photos (id bigserial PRIMARY KEY, picture oid, sketch lo); INSERT INTO photos (picture) SELECT lo_from_bytea(0, 'a picture')});
$server->safe_psql('game', 'IMPORT FOREIGN SCHEMA public LIMIT TO (photos) FROM SERVER realm INTO realm');

my $asked = q{SELECT severity, relation, object, problem FROM snowflake_migrate.check('{%s}', 'public') WHERE object IN ('picture', 'sketch') ORDER BY object};
my $questions = join "\n", map { "warning|public.photos|$_|may name large objects, which a merge does not copy" } qw(picture sketch);

is($server->safe_psql('game', sprintf $asked, 'realm'), $questions, 'columns of large objects are asked about');
# A view of what is elsewhere is elsewhere, too.
$server->safe_psql('game', q{
	CREATE SCHEMA far; IMPORT FOREIGN SCHEMA public LIMIT TO (photos, events) FROM SERVER realm INTO far;
	CREATE SCHEMA views; CREATE VIEW views.inner_photos AS SELECT * FROM far.photos; CREATE VIEW views.photos AS SELECT * FROM views.inner_photos;
	CREATE VIEW views.events AS SELECT e.id, e.what FROM far.events AS e});
is($server->safe_psql('game', sprintf $asked, 'views'), $questions, 'also where the source is a view');
# So that there is something to merge again.
$server->safe_psql('game', 'CALL snowflake_migrate.rollback(' . $server->safe_psql('game', 'SELECT max(run) FROM snowflake_migrate.runs') . ')');
($status, $out, $err) = $server->psql('game', "CALL snowflake_migrate.merge('{realm}', 'public', '{78}')");
isnt($status, 0, 'and a merge does not begin without an answer');
like($err, qr/columns may hold ids, and nothing says of which table\nDETAIL: .*\bpicture\b.*\bsketch\b/s, 'the error names the column');
$server->safe_psql('game', q{SELECT snowflake_migrate.declare_no_reference('photos', 'picture')});
$server->safe_psql('game', q{SELECT snowflake_migrate.declare_no_reference('photos', 'sketch')});
is($server->safe_psql('game', sprintf $asked, 'realm'), '', 'it is answered');
$server->safe_psql('game', q{CALL snowflake_migrate.merge('{realm}', 'public', '{78}')});
is($server->safe_psql('game', 'SELECT count(*) FROM photos'), '1', 'and the merge begins');

$server->stop;
done_testing();
