# Expressions that somebody declared for a merge: conditions of references and of rows, what ranks and precedence go by, how values
# are combined.  What they read and call must not be another role's when a superuser merges, nor what took its place meanwhile; nor may
# they be another role's themselves.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Test::More;

my $server = Snowflake::Server->new('declared');

$server->init;
$server->start;
$server->safe_psql('postgres', 'CREATE ROLE mallory LOGIN; CREATE ROLE app LOGIN');
$server->safe_psql('postgres', q{
	CREATE EXTENSION snowflake_migrate CASCADE;
	CREATE SCHEMA t; CREATE SCHEMA s; CREATE SCHEMA lib;
	CREATE SCHEMA mallory AUTHORIZATION mallory; GRANT USAGE ON SCHEMA mallory, lib, t, s TO PUBLIC;
	CREATE TABLE t.players (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text CONSTRAINT players_name_key UNIQUE, gold bigint);
	CREATE TABLE t.notes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), kind text, owner_id bigint);
	CREATE TABLE s.players (id int PRIMARY KEY, name text, gold bigint); CREATE TABLE s.notes (id int PRIMARY KEY, kind text, owner_id int);
	INSERT INTO s.players VALUES (1, 'Ann', 1); INSERT INTO s.notes VALUES (1, 'player', 1);
	CREATE TABLE lib.kinds (kind text); INSERT INTO lib.kinds VALUES ('player');
	CREATE FUNCTION lib.norm(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT lower($1)';
	CREATE FUNCTION mallory.norm(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT lower($1)';
	SELECT snowflake_migrate.declare_table('t.players', 'copy');
});

my $superuser = $server->safe_psql('postgres', 'SELECT current_user');

sub as
{
	my ($role, $sql) = @_;
	my ($out, $err);

	$server->psql('postgres', $sql, stdout => \$out, stderr => \$err, on_error_stop => 0, connstr => $server->connstr('postgres') . " user=$role");
	return "$out$err";
}

as('mallory', q{
	CREATE FUNCTION mallory.deed() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'a deed with the rights of %', current_user; RETURN 'player'; END $$;
	CREATE TABLE mallory.kinds (kind text); INSERT INTO mallory.kinds VALUES ('player');
	GRANT SELECT ON mallory.kinds TO PUBLIC});

my $check = q{SELECT * FROM snowflake_migrate.check('{s}', 't')};
my $refusal = qr/code of role mallory would run with the rights of role \Q$superuser\E/;
my $deed = qr/a deed with the rights of \Q$superuser\E/;

# What is refused when it is declared, and, declared by other means, when it is looked at or done.
sub refused
{
	my ($name, $declare, $insert, $said) = @_;

	$said //= $refusal;
	if (defined $declare)
	{
		my $told = as($superuser, "SELECT snowflake_migrate.$declare");

		like($told, $said, "$name: is refused when it is declared");
		unlike($told, $deed, "$name: and nothing runs");
	}
	as($superuser, $insert);
	foreach my $call ($check, q{CALL snowflake_migrate.merge('{s}', 't', '{1001}', accept_warnings => true)})
	{
		my $told = as($superuser, $call);

		like($told, $said, "$name: is refused by " . ($call =~ /(check|merge)\(/)[0]);
		unlike($told, $deed, "$name: and nothing runs");
	}
	as($superuser, 'DELETE FROM snowflake_migrate.declared_references; DELETE FROM snowflake_migrate.declared_policies; UPDATE snowflake_migrate.declared_tables SET condition = NULL');
	return;
}

sub condition { my ($condition) = @_; return "declare_reference('t.notes', 'owner_id', 't.players', \$x\$$condition\$x\$)" }
sub insert_condition { my ($condition, $referenced) = (@_, 't.players'); return "INSERT INTO snowflake_migrate.declared_references (relation, column_name, referenced, condition, dangling) VALUES ('t.notes', 'owner_id', '$referenced', \$x\$$condition\$x\$, 'error')" }

my $reads = 'kind IN (SELECT k.kind FROM mallory.kinds AS k)';

# A table of hers is one as long as she leaves it so; a view in its place calls what she wants.
like(as($superuser, 'SELECT snowflake_migrate.' . condition($reads) . "; $check"), qr/^(?!.*code of role)/s, 'a table that runs nothing may be read');
as($superuser, 'DELETE FROM snowflake_migrate.declared_references');
as('mallory', 'ALTER TABLE mallory.kinds RENAME TO former; CREATE VIEW mallory.kinds AS SELECT kind FROM mallory.former WHERE mallory.deed() IS NOT NULL; GRANT SELECT ON mallory.kinds TO PUBLIC');
refused('a view in a condition', condition($reads), insert_condition($reads));
refused('a function in her schema', condition(q{mallory.norm(kind) = 'player'}), insert_condition(q{mallory.norm(kind) = 'player'}));
# One of a reference that changes nothing is evaluated as well.
refused('a reference to keys that stay', undef, insert_condition(q{mallory.norm(kind) = 'player'}, 'lib.kinds'));
# lib.norm() is the superuser's; who may create there can do so once more.
as($superuser, 'GRANT CREATE ON SCHEMA lib TO mallory');
refused('a function that could be overloaded', condition(q{lib.norm(kind) = 'player'}), insert_condition(q{lib.norm(kind) = 'player'}));
as('mallory', q{CREATE FUNCTION lib.norm(varchar) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT mallory.deed()'});
as($superuser, 'REVOKE CREATE ON SCHEMA lib FROM mallory');
refused('a function that was overloaded', condition(q{lib.norm(kind) = 'player'}), insert_condition(q{lib.norm(kind) = 'player'}));
refused('rows that come', q{declare_table('t.players', 'copy', "only" => 'mallory.norm(name) <> ''x''')}, q{UPDATE snowflake_migrate.declared_tables SET condition = 'mallory.norm(name) <> ''x'''});
refused('precedence', q{declare_policy('t.players', 'players_name_key', 'keep_first', precedence => 'mallory.norm(name)')},
	q{INSERT INTO snowflake_migrate.declared_policies (relation, constraint_name, policy, precedence) VALUES ('t.players', 'players_name_key', 'keep_first', 'mallory.norm(name)')});
refused('combined values', q{declare_policy('t.players', 'players_name_key', 'keep_target', combine => '{"gold": "length(mallory.norm(kept.name || gone.name))"}')},
	q{INSERT INTO snowflake_migrate.declared_policies (relation, constraint_name, policy, combine) VALUES ('t.players', 'players_name_key', 'keep_target', '{"gold": "length(mallory.norm(kept.name || gone.name))"}')});
# Nothing of this is a superuser's who reads only what is its own.
as($superuser, 'DROP FUNCTION lib.norm(varchar)');
like(as($superuser, 'SELECT snowflake_migrate.' . condition(q{lib.norm(kind) IN (SELECT k.kind FROM lib.kinds AS k)}) . "; $check"), qr/^(?!.*(code of role|ERROR))/s, 'what is the superuser\'s own');
as($superuser, 'DELETE FROM snowflake_migrate.declared_references');

# Who may merge may declare, for themselves: by what the plan has on record of each expression.
$server->safe_psql('postgres', q{SELECT snowflake_migrate.grant_to('mallory')});
foreach my $what ([ 'only', q{UPDATE snowflake_migrate.declared_tables SET condition = 'mallory.deed() IS NOT NULL'} ],
	[ 'combine', q{INSERT INTO snowflake_migrate.declared_policies (relation, constraint_name, policy, combine) VALUES ('t.players', 'players_name_key', 'keep_target', '{"gold": "length(mallory.deed())"}')} ],
	[ 'keys that stay', insert_condition('mallory.deed() IS NULL', 'lib.kinds') ],
	[ 'the rest', insert_condition('mallory.deed() IS NULL') ])
{
	my ($name, $declare) = @$what;

	unlike(as('mallory', $declare), qr/ERROR/, "$name: declared");
	# For the values for which hers does not hold.
	as($superuser, q{SELECT snowflake_migrate.declare_reference('t.notes', 'owner_id', 't.players')}) if $name eq 'the rest';
	unlike(my $told = as($superuser, $check), $deed, "$name: nothing runs");
	like($told, qr/was written by role "mallory"/, "$name: says who has declared it");
	as($superuser, 'DELETE FROM snowflake_migrate.declared_references; DELETE FROM snowflake_migrate.declared_policies; DELETE FROM snowflake_migrate.declared_tables');
}

# A schema that the merge has nothing to do with, whose owner is about to change it.
{
	my $holder = $server->background_psql('postgres', extra_params => [ '-U', 'mallory' ]);

	$holder->query_safe('BEGIN; GRANT USAGE ON SCHEMA mallory TO app');
	unlike(as($superuser, "SET statement_timeout = '60s'; $check"), qr/ERROR/, 'an unrelated schema keeps nobody waiting');
	$holder->quit;
}
is($server->safe_psql('postgres', q{SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'}), 'f', 'mallory is no superuser');

done_testing();
