# What another role changes while a superuser's call waits for its lock, or between its transactions: no code of hers runs with the superuser's
# rights, and no node number is used twice.  And code where it is looked for in few calls alone: in triggers, defaults, a plan's tables.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Test::More;

my $server = Snowflake::Server->new('meanwhile');

$server->init;
$server->start;

my $superuser = $server->safe_psql('postgres', 'SELECT current_user');
my $refusal = qr/code of role mallory(?:, [a-z ]+,)? (?:would|could) run with the rights of role \Q$superuser\E/;
my $log_start;

sub as
{
	my ($role, $sql) = @_;
	my ($out, $err);

	$server->psql('postgres', $sql, stdout => \$out, stderr => \$err, on_error_stop => 0, connstr => $server->connstr('postgres') . " user=$role");
	return "$out$err";
}

# Everything anew, and mallory's own.
sub begin
{
	$server->safe_psql('postgres', 'DROP EXTENSION IF EXISTS snowflake_migrate, snowflake CASCADE; DROP SCHEMA IF EXISTS own, src, realm, west, shop CASCADE');
	$server->safe_psql('postgres', q{SELECT format('DROP SCHEMA %I CASCADE', nspname) FROM pg_namespace WHERE nspname LIKE 'snowflake\_merge\_%' \gexec});
	$server->safe_psql('postgres', q{
		CREATE EXTENSION snowflake_migrate CASCADE;
		CREATE SCHEMA realm; CREATE SCHEMA west; CREATE SCHEMA shop AUTHORIZATION app;
		CREATE SCHEMA own AUTHORIZATION mallory; CREATE SCHEMA src AUTHORIZATION mallory;
		GRANT USAGE ON SCHEMA own, shop TO PUBLIC});
	foreach my $argument ('text', 'int', 'bigint')
	{
		as('mallory', "CREATE FUNCTION own.spring($argument) RETURNS boolean LANGUAGE plpgsql AS \$\$ BEGIN
			RAISE LOG 'a deed with the rights of %', current_user; RETURN true; END \$\$");
	}
	$log_start = -s $server->logfile;
	return;
}

sub nothing_ran
{
	my ($name) = @_;

	unlike(slurp_file($server->logfile, $log_start), qr/a deed with the rights of \Q$superuser\E/, "$name: nothing of mallory's runs");
	return;
}

sub refused
{
	my ($name, $call, $said) = @_;

	like(as($superuser, $call), $said // $refusal, "$name: is refused");
	nothing_ran($name);
	return;
}

sub wait_for_lock
{
	my ($relation, $mode) = @_;

	$server->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = '$relation'::regclass AND mode ~ '^$mode')")
	  or die "nobody waits for $relation";
	return;
}

# A session of mallory's that has locked a table, so that the superuser's call waits; then she makes a change, and commits.
sub changed
{
	my ($name, $relation, $call, $change, $said) = @_;
	my $holder = $server->background_psql('postgres', extra_params => [ '-U', 'mallory' ]);

	$holder->query_safe("BEGIN; LOCK TABLE $relation");

	my $called = $server->start_call('superuser', $call);

	$server->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'superuser' AND wait_event_type = 'Lock')") or die "$name: the call does not wait";
	$holder->query_safe("$change; COMMIT");
	$holder->quit;
	$called->{run}->finish;
	like("$called->{out}$called->{err}", $said // $refusal, "$name: is refused");
	nothing_ran($name);
	return;
}

$server->safe_psql('postgres', 'CREATE ROLE mallory LOGIN; CREATE ROLE app LOGIN');

# A column's type is looked at when the table is locked.
begin();
as('mallory', q{
	CREATE TABLE own.letters (id bigint, created timestamptz NOT NULL, what text); INSERT INTO own.letters VALUES (1, '2024-01-01', 'a'), (NULL, '2024-01-02', 'b');
	CREATE TYPE own.odd AS ENUM ('x');
	CREATE FUNCTION own.number(own.odd) RETURNS bigint LANGUAGE sql AS 'SELECT own.spring(1::bigint)::int::bigint';
	CREATE FUNCTION own.time(own.odd) RETURNS timestamptz LANGUAGE sql AS $$ SELECT timestamptz '2024-01-01' WHERE own.spring(1::bigint) $$;
	CREATE CAST (own.odd AS bigint) WITH FUNCTION own.number(own.odd); CREATE CAST (own.odd AS timestamptz) WITH FUNCTION own.time(own.odd)});
changed('audit, a column of another type', 'own.letters', q{SELECT * FROM snowflake_audit('own.letters', 'id')},
	q{ALTER TABLE own.letters ALTER COLUMN id TYPE own.odd USING 'x'}, qr/column "id" of table own.letters has the type own.odd/);
as('mallory', q{ALTER TABLE own.letters ALTER COLUMN id TYPE bigint USING NULL});
changed('backfill, a column of another type', 'own.letters', q{CALL snowflake_migrate.backfill('own.letters', 'id', 'created', 700)},
	q{ALTER TABLE own.letters ALTER COLUMN created TYPE own.odd USING 'x'}, qr/column "created" of table own.letters holds no time/);

# Between the transactions of a call, another table takes the name: mallory queues up behind the first one.
begin();
as('mallory', q{CREATE TABLE own.letters (id bigint, created timestamptz NOT NULL, what text); INSERT INTO own.letters VALUES (NULL, '2024-01-01', 'a')});
{
	my ($first, $second) = map { $server->background_psql('postgres', extra_params => [ '-U', 'mallory' ]) } 1 .. 2;

	$first->query_safe('BEGIN; LOCK TABLE own.letters');

	my $called = $server->start_call('superuser', q{CALL snowflake_migrate.backfill('own.letters', 'id', 'created', 701)});

	wait_for_lock('own.letters', 'ShareRowExclusive');
	$second->query_until(qr/queued/, "\\echo queued\nBEGIN; LOCK TABLE own.letters;\n");
	wait_for_lock('own.letters', 'AccessExclusive');
	$first->query_safe('COMMIT');
	# The second has the lock now, and the call waits for it again.
	wait_for_lock('own.letters', 'ShareRowExclusive');
	$second->query_safe(q{ALTER TABLE own.letters RENAME TO former;
		CREATE TABLE own.letters (id bigint, created timestamptz NOT NULL, what text CHECK (own.spring(what)));
		INSERT INTO own.letters VALUES (NULL, '2024-01-01', 'a'); COMMIT});
	$called->{run}->finish;
	like($called->{err}, qr/table own.letters was renamed while it was to be locked/, 'backfill, another table between its transactions: is refused');
	nothing_ran('backfill, another table between its transactions');
	is($server->safe_psql('postgres', 'SELECT count(id) FROM own.letters'), 0, 'and no row is filled');
	$_->quit foreach $first, $second;
}

# Its rows are updated with all triggers.
begin();
as('mallory', q{CREATE TABLE own.letters (id bigint, created timestamptz NOT NULL); INSERT INTO own.letters VALUES (NULL, '2024-01-01');
	CREATE FUNCTION own.fire() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM own.spring(1); RETURN new; END $$;
	CREATE TRIGGER fire BEFORE UPDATE ON own.letters FOR EACH ROW EXECUTE FUNCTION own.fire()});
refused('backfill, a trigger', q{CALL snowflake_migrate.backfill('own.letters', 'id', 'created', 702)});

# Which columns the sources have is looked at again, too: else the target's default gives what they lack.
foreach my $call (q{SELECT problem FROM snowflake_migrate.check('{src}', 'own')}, q{CALL snowflake_migrate.merge('{src}', 'own', '{703}')})
{
	begin();
	as('mallory', q{
		CREATE TABLE own.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text NOT NULL, told boolean DEFAULT own.spring('x'::text) UNIQUE);
		CREATE TABLE src.heroes (id int PRIMARY KEY, name text NOT NULL, told boolean); INSERT INTO src.heroes VALUES (1, 'Bob', false)});
	unlike(as($superuser, q{SELECT problem FROM snowflake_migrate.check('{src}', 'own')}), $refusal, 'a default that is not used is nobody\'s business');
	changed('a column that a source lacks meanwhile, ' . ($call =~ /(check|merge)/)[0], 'own.heroes', $call, 'ALTER TABLE src.heroes DROP COLUMN told');
}

# A default tells what the superuser may read, or takes what the table's owner may not.
begin();
as('app', 'CREATE TABLE shop.orders (id serial PRIMARY KEY)');
my $sequence = $server->safe_psql('postgres', q{SELECT 'shop.orders_id_seq'::regclass::oid});
$server->safe_psql('postgres', q{CREATE TABLE west.heroes (id int PRIMARY KEY, name text); INSERT INTO west.heroes VALUES (1, 'Bob')});
foreach my $default (q{current_setting('primary_conninfo')}, 'pg_stat_get_backend_activity(1)', "nextval(${sequence}::oid::regclass)::text", "nextval('own.own')::text || nextval(${sequence}::oid::regclass)")
{
	as('mallory', "DROP TABLE IF EXISTS own.heroes; CREATE SEQUENCE IF NOT EXISTS own.own;
		CREATE TABLE own.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text, told text DEFAULT $default)");
	refused("a default, $default", q{CALL snowflake_migrate.merge('{west}', 'own', '{704}')});
}
is($server->safe_psql('postgres', 'SELECT is_called FROM shop.orders_id_seq'), 'f', 'nothing is drawn from another role\'s sequence');
as('mallory', q{DROP TABLE own.heroes; CREATE TABLE own.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text, place bigint DEFAULT nextval('own.own'), at timestamptz DEFAULT now())});
unlike(as($superuser, q{CALL snowflake_migrate.merge('{west}', 'own', '{704}')}), qr/ERROR/, 'a default that draws from the owner\'s sequence is none');

# A plan is many transactions: nothing that others could change between them.
begin();
$server->safe_psql('postgres', q{CREATE TABLE realm.t (id serial PRIMARY KEY, x int); GRANT USAGE ON SCHEMA realm TO mallory; GRANT REFERENCES, TRIGGER, SELECT ON realm.t TO mallory;
	CREATE TABLE own.orders (id serial PRIMARY KEY, CONSTRAINT positive CHECK (id > 0))});
refused('a plan, a table in her schema', q{SELECT * FROM snowflake_migrate.adopt_plan('{own.orders}')});
as('mallory', 'CREATE TABLE own.child (t_id bigint REFERENCES realm.t)');
refused('a plan, a table of hers that refers to it', q{SELECT * FROM snowflake_migrate.adopt_plan('{realm.t}')});
as('mallory', q{DROP TABLE own.child; CREATE DOMAIN own.dom AS int CHECK (own.spring(value));
	CREATE FUNCTION own.noop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
	CREATE TRIGGER a AFTER DELETE ON realm.t FOR EACH ROW WHEN (OLD.id > 0 AND '{1}'::own.dom[] IS NOT NULL) EXECUTE FUNCTION own.noop()});
$log_start = -s $server->logfile;
refused('a plan, a constant of a type of hers in a trigger', q{SELECT * FROM snowflake_migrate.adopt_plan('{realm.t}')});

# What a dry run says to create again says by whom.
as('mallory', q{CREATE VIEW own.v AS SELECT id, '{1}'::own.dom[] AS c FROM realm.t; CREATE FUNCTION own.f() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT max(t.id) FROM realm.t AS t WHERE '{1}'::own.dom[] IS NOT NULL; END});
$log_start = -s $server->logfile;
{
	my $told = as($superuser, q{SELECT action FROM snowflake_migrate.adopt('{realm.t}', dry_run => true)});

	foreach my $statement ('CREATE VIEW own.v', "SET ROLE mallory;\nCREATE OR REPLACE FUNCTION own.f", 'CREATE TRIGGER a')
	{
		like($told, qr/-- connected as role mallory: [^\n]*\n\Q$statement\E/, "the dry run says who is to create again: $statement");
	}
	nothing_ran('a dry run of an adoption');
	as('mallory', q{CREATE TABLE own.hers (id serial PRIMARY KEY); CREATE VIEW own.of_hers AS SELECT id, '{1}'::own.dom[] AS c FROM own.hers});
	my $told_her = as('mallory', q{SELECT action FROM snowflake_migrate.adopt('{own.hers}', dry_run => true)});
	like($told_her, qr/CREATE VIEW own\.of_hers/, 'she is told to create her own view again');
	unlike($told_her, qr/connected as/, 'and not as whom');
}

# A function that is not a plan's is not dropped with it, whatever it is called.
begin();
as('app', q{CREATE FUNCTION shop.snowflake_new_prices() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'});
as('mallory', q{CREATE TABLE own.t (id serial PRIMARY KEY, snowflake_new_id bigint); CREATE TRIGGER "~snowflake_new_id" BEFORE INSERT ON own.t FOR EACH ROW EXECUTE FUNCTION shop.snowflake_new_prices()});
like(as($superuser, q{SELECT statement FROM snowflake_migrate.adopt_undo_plan('{own.t}')}), qr/^(?!.*DROP FUNCTION).*DROP TRIGGER/s, 'leading a plan back drops no other function');

# A node number is used by one session alone, whatever it does with it; who waits for another's transaction is told so.
begin();
$server->safe_psql('postgres', q{SELECT snowflake_migrate.grant_to('mallory');
	CREATE TABLE realm.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text); CREATE TABLE west.heroes (id int PRIMARY KEY, name text); INSERT INTO west.heroes VALUES (1, 'Bob')});
as('mallory', q{CREATE TABLE own.letters (id bigint, created timestamptz NOT NULL); INSERT INTO own.letters VALUES (NULL, '2024-01-01')});
{
	my $holder = $server->background_psql('postgres');

	$holder->query_safe('BEGIN; LOCK TABLE west.heroes');

	my $called = $server->start_call('superuser', q{CALL snowflake_migrate.merge('{west}', 'realm', '{801}')});

	wait_for_lock('west.heroes', 'AccessShare');
	like(as('mallory', q{CALL snowflake_migrate.backfill('own.letters', 'id', 'created', 801)}), qr/node number 801 is in use by another session/, 'a number that a merge is about to use is not for backfill()');
	$holder->query_safe('COMMIT');
	$called->{run}->finish;
	is($called->{err} =~ s/^NOTICE.*\n//mgr, '', 'the merge goes on');
	like(as('mallory', q{CALL snowflake_migrate.backfill('own.letters', 'id', 'created', 801)}), qr/node number 801 has already been used by a merge/, 'nor when it is done');
	$holder->quit;

	my $written = $server->background_psql('postgres', extra_params => [ '-U', 'mallory' ]);

	$written->query_safe(q{INSERT INTO snowflake_migrate.runs (sources, schemas, targets, nodes, state, batch_size, started_at) VALUES ('{own}', '{{own}}', '{own}', '{900}', 'dry run', 1, now());
		BEGIN; INSERT INTO snowflake_migrate.nodes SELECT 802, max(run), 'own' FROM snowflake_migrate.runs WHERE merged_by = 'mallory';
		INSERT INTO snowflake_migrate.backfills (node, relation, until) VALUES (803, 'own', now())});
	$server->safe_psql('postgres', q{CREATE SCHEMA east; CREATE TABLE east.heroes (LIKE west.heroes INCLUDING ALL)});
	like(as($superuser, q{CALL snowflake_migrate.merge('{east}', 'realm', '{802}')}), qr/node number 802 is in use by another session/, 'a merge does not wait for a number that somebody has written');
	as('app', 'CREATE TABLE shop.letters (id bigint, created timestamptz NOT NULL)');
	like(as($superuser, q{CALL snowflake_migrate.backfill('shop.letters', 'id', 'created', 803)}), qr/node number 803 is in use by another session/, 'nor does backfill()');
	$written->query_safe('ROLLBACK');
	$written->quit;
	unlike(as($superuser, q{CALL snowflake_migrate.merge('{east}', 'realm', '{802}'); CALL snowflake_migrate.backfill('shop.letters', 'id', 'created', 803)}), qr/ERROR/, 'both can be used when it is taken back');
}

# What looks like computing: PostgreSQL's own functions that read code, and what tells about sessions; and sequences that are named otherwise.
begin();
as('mallory', q{CREATE DOMAIN own.trap AS int CHECK (own.spring(value)); CREATE FUNCTION own.parsed() RETURNS int[] LANGUAGE sql AS $$ SELECT '{1}'::own.trap[]::int[] $$;
	CREATE TABLE own.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text, created timestamptz NOT NULL DEFAULT now()); CREATE TABLE own.others (id serial PRIMARY KEY);
	CREATE TABLE src.heroes (id int PRIMARY KEY, name text); INSERT INTO src.heroes VALUES (1, 'Bob')});
as('mallory', "ALTER TABLE own.$_ ADD CHECK (fmgr_sql_validator(" . as('mallory', q{SELECT 'own.parsed'::regproc::oid}) . "::oid) IS NOT NULL)") foreach qw(heroes others);
refused('a validator, merge()', q{CALL snowflake_migrate.merge('{src}', 'own', '{810}')}, qr/function fmgr_sql_validator|$refusal/);
refused('a validator, backfill()', q{CALL snowflake_migrate.backfill('own.heroes', 'id', 'created', 811)});
refused('a validator, adopt()', q{SELECT snowflake_migrate.adopt('{own.others}')}, qr/function fmgr_sql_validator/);
as('app', 'CREATE SEQUENCE shop.invoices');
my $invoices = as($superuser, q{SELECT 'shop.invoices'::regclass::oid});
foreach my $default ("nextval($invoices\::oid::regclass) + 0 * length('own.mine'::regclass::text)", 'inet_client_port()', "has_table_privilege(1259::oid, 'SELECT')::int", 'txid_current()')
{
	as('mallory', "DROP TABLE IF EXISTS own.heroes, own.others; CREATE SEQUENCE IF NOT EXISTS own.mine; CREATE TABLE own.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text, told bigint DEFAULT $default)");
	refused("DEFAULT $default", q{CALL snowflake_migrate.merge('{src}', 'own', '{812}')}, qr/default value for column told of table own.heroes: $refusal/);
}
is(as($superuser, 'SELECT is_called FROM shop.invoices'), 'f', 'no number is drawn');
as('mallory', q{DROP TABLE own.heroes; CREATE TABLE own.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text, told bigint DEFAULT nextval('own.mine') + nextval('own.mine'), at timestamptz DEFAULT now(), who text DEFAULT session_user)});
unlike(as($superuser, q{CALL snowflake_migrate.merge('{src}', 'own', '{813}')}), qr/ERROR/, 'her own sequence, twice, is drawn from');

# A trigger on the superuser's table, by whoever had the right.
begin();
$server->safe_psql('postgres', q{CREATE TABLE realm.letters (id bigint, created timestamptz NOT NULL); INSERT INTO realm.letters VALUES (NULL, now()); GRANT USAGE ON SCHEMA realm TO mallory; GRANT TRIGGER ON realm.letters TO mallory});
as('mallory', q{CREATE TRIGGER a BEFORE UPDATE ON realm.letters FOR EACH ROW WHEN (query_to_xml('SELECT own.spring(1)', true, true, '') IS NOT NULL) EXECUTE FUNCTION suppress_redundant_updates_trigger()});
refused('a condition of a trigger', q{CALL snowflake_migrate.backfill('realm.letters', 'id', 'created', 814)}, qr/trigger a on table realm.letters: $refusal/);
$server->safe_psql('postgres', 'REVOKE TRIGGER ON realm.letters FROM mallory');
refused('a condition of a trigger, when the right is gone', q{CALL snowflake_migrate.backfill('realm.letters', 'id', 'created', 814)}, qr/trigger a on table realm.letters: .*function query_to_xml/);

# What is printed to be run later: the name of a role, and literals, whatever the settings are then.
# PostgreSQL 19 has no such names any more.
my $lines = "x\nSELECT own.spring(1); --";
my $has_lines = as($superuser, qq{CREATE ROLE "$lines"}) !~ /newline/ || do { as($superuser, 'CREATE ROLE x'); $lines = 'x'; 0 };
$server->safe_psql('postgres', qq{SET client_min_messages = error; GRANT "$lines" TO mallory; GRANT CREATE, USAGE ON SCHEMA own TO "$lines";
	CREATE TABLE realm.t (id serial PRIMARY KEY, x text); GRANT USAGE ON SCHEMA realm TO PUBLIC; GRANT TRIGGER, SELECT ON realm.t TO PUBLIC});
as('mallory', qq{SET ROLE "$lines"; CREATE VIEW own.v AS SELECT id FROM realm.t});
as('mallory', q{CREATE TRIGGER b BEFORE UPDATE OF id ON realm.t FOR EACH ROW WHEN (new.x <> 'x\\' AND new.x <> ')) EXECUTE FUNCTION suppress_redundant_updates_trigger(); SELECT own.spring(1); --') EXECUTE FUNCTION suppress_redundant_updates_trigger()} =~ s/\\\\/\\/r);
{
	my $told = as($superuser, q{SELECT action FROM snowflake_migrate.adopt('{realm.t}', dry_run => true)});

	like($told, qr/^-- SELECT own\.spring\(1\); --": SET ROLE is not enough/m, 'a name of two lines is two lines of a comment') if $has_lines;
	like($told, qr/new\.x <> E'x\\\\'::text/, 'a literal with a backslash reads the same everywhere');
}
$server->safe_psql('postgres', qq{SET client_min_messages = error; DROP SCHEMA own CASCADE; DROP ROLE "$lines"});

# A merge that is broken off in the middle: the third hero waits for a row that somebody else has not committed.
sub break_off
{
	my ($role, $target, $call) = @_;
	my $holder = $server->background_psql('postgres');

	$holder->query_safe("BEGIN; INSERT INTO $target VALUES (3, 'hero 3')");

	my $called = $server->start_call("broken_off user=$role", $call);

	$server->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'broken_off' AND wait_event_type = 'Lock')") or die 'the merge does not wait';
	$server->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'broken_off'");
	$called->{run}->finish;
	$holder->query_safe('ROLLBACK');
	$holder->quit;
	is($server->safe_psql('postgres', 'SELECT state FROM snowflake_migrate.runs'), 'copying', "a merge of $role is broken off");
	return;
}

sub heroes
{
	my ($target, $source) = @_;

	return "CREATE TABLE $target.heroes (id bigint PRIMARY KEY DEFAULT public.snowflake_nextval(), name text UNIQUE);
		CREATE TABLE $source.heroes (id int PRIMARY KEY, name text); INSERT INTO $source.heroes SELECT n, 'hero ' || n FROM generate_series(1, 9) AS n";
}

# A column that both sides have got since the run was planned: rows are stored without it, and its default is taken.
begin();
as('mallory', heroes('own', 'src'));
{
	my $call = q{CALL snowflake_migrate.merge('{src}', 'own', '{820}', batch_size => 1)};

	break_off($superuser, 'own.heroes', $call);
	as('mallory', q{ALTER TABLE src.heroes ADD COLUMN x boolean; ALTER TABLE own.heroes ADD COLUMN x boolean; ALTER TABLE own.heroes ALTER COLUMN x SET DEFAULT own.spring(1)});
	refused('a default of a column that was added meanwhile', $call);
	as('mallory', 'ALTER TABLE own.heroes ALTER COLUMN x DROP DEFAULT');
	unlike(as($superuser, $call), qr/ERROR/, 'without the default, it goes on');
	is($server->safe_psql('postgres', 'SELECT count(*), count(x) FROM own.heroes'), '9|0', 'all have come');
}

# A run whose triggers fire goes on with them, whatever its role may do by then.
begin();
$server->safe_psql('postgres', heroes('realm', 'west'));
$server->safe_psql('postgres', q{ALTER TABLE realm.heroes OWNER TO mallory; ALTER TABLE west.heroes OWNER TO mallory; GRANT USAGE ON SCHEMA realm, west TO app, mallory;
	SELECT snowflake_migrate.grant_to('app'); REVOKE SET ON PARAMETER session_replication_role FROM app; GRANT SELECT, INSERT, UPDATE, DELETE ON realm.heroes, west.heroes TO app});
{
	my $call = q{CALL snowflake_migrate.merge('{west}', 'realm', '{821}', batch_size => 1)};

	break_off('app', 'realm.heroes', $call);
	as('mallory', q{CREATE FUNCTION own.fire() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM own.spring(1); RETURN new; END $$;
		CREATE TRIGGER fire BEFORE INSERT ON realm.heroes FOR EACH ROW EXECUTE FUNCTION own.fire()});
	$server->safe_psql('postgres', 'GRANT SET ON PARAMETER session_replication_role TO app');
	$log_start = -s $server->logfile;

	my $called = $server->start_call('again', 'SET ROLE app', $call);

	$called->{run}->finish;
	like($called->{err}, qr/trigger fire on table realm.heroes/, 'a trigger of a run whose triggers fire: is refused');
	nothing_ran('a trigger of a run whose triggers fire');
	$server->safe_psql('postgres', 'REVOKE SET ON PARAMETER session_replication_role FROM app');
}

# Who may create a trigger need not own anything.
begin();
$server->safe_psql('postgres', q{DROP SCHEMA own, src CASCADE; CREATE TABLE realm.letters (id bigint, created timestamptz NOT NULL); INSERT INTO realm.letters VALUES (NULL, now());
	CREATE SCHEMA tools; GRANT USAGE ON SCHEMA realm, tools TO PUBLIC; GRANT TRIGGER ON realm.letters TO mallory;
	CREATE FUNCTION tools.on_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE tg_argv[0]; RETURN new; END $$});
as('mallory', q{CREATE TRIGGER t BEFORE UPDATE ON realm.letters FOR EACH ROW EXECUTE FUNCTION tools.on_change('DO $$ BEGIN RAISE LOG ''a deed with the rights of %'', current_user; END $$')});
is($server->safe_psql('postgres', q{SELECT count(*) FROM pg_shdepend WHERE refobjid = 'mallory'::regrole AND deptype = 'o' AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())}), 0, 'mallory owns nothing');
refused('a trigger of who owns nothing', q{CALL snowflake_migrate.backfill('realm.letters', 'id', 'created', 822)}, qr/trigger t on table realm.letters/);
$server->safe_psql('postgres', 'DROP SCHEMA tools CASCADE');

# A table that comes to a source while a check waits: here, for what a view of the source reads.
begin();
$server->safe_psql('postgres', q{CREATE TABLE west.rows (id int, name text); CREATE VIEW src.heroes AS SELECT * FROM west.rows;
	CREATE TABLE realm.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text)});
as('mallory', q{CREATE FUNCTION own.late(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM own.spring(1); RETURN 1; END $$});
{
	my $holder = $server->background_psql('postgres');

	$holder->query_safe('BEGIN; LOCK TABLE west.rows');

	my $called = $server->start_call('superuser', q{SELECT * FROM snowflake_migrate.check('{src}', 'realm')});

	wait_for_lock('west.rows', 'AccessShare');
	as('mallory', q{CREATE TABLE src.late (x int); CREATE INDEX ON src.late ((x + own.late(1)))});
	$log_start = -s $server->logfile;
	$holder->query_safe('COMMIT');
	$holder->quit;
	$called->{run}->finish;
	like("$called->{out}$called->{err}", $refusal, 'a table that has come to a source meanwhile is refused');
	nothing_ran('a table that has come to a source meanwhile');
}

# What a declared condition reads is to be there when it is looked at.
begin();
as('mallory', q{CREATE TABLE own.chosen (id int); CREATE TABLE src.heroes (id int PRIMARY KEY, name text)});
$server->safe_psql('postgres', q{CREATE TABLE realm.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
	SELECT snowflake_migrate.declare_table('realm.heroes', 'copy', "only" => 'EXISTS (SELECT FROM own.chosen AS c WHERE c.id = heroes.id)')});
unlike(as($superuser, q{SELECT * FROM snowflake_migrate.check('{src}', 'realm')}), qr/^error/m, 'a condition that reads a table');
as('mallory', 'DROP TABLE own.chosen');
like(as($superuser, q{SELECT * FROM snowflake_migrate.check('{src}', 'realm')}), qr/^error.*only.*its expression cannot be evaluated: relation "own.chosen" does not exist/m, 'and one that reads none that is there');

# An error of a source's is none of the check's own, whatever its code.
begin();
$server->safe_psql('postgres', q{CREATE TABLE realm.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text);
	CREATE FUNCTION west.fail() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'nothing to see' USING ERRCODE = 'SNOWF'; END $$;
	CREATE TABLE west.rows (id int, name text); INSERT INTO west.rows VALUES (1, 'Bob'); CREATE VIEW src.heroes AS SELECT * FROM west.rows WHERE west.fail()});
like(as($superuser, "SELECT * FROM snowflake_migrate.$_('{src}', 'realm')"), qr/ERROR: +nothing to see/, "$_() fails with a source's error") foreach 'check', 'suggest';

# A worker begins with the path of its database, which is its owner's.
$server->safe_psql('postgres', 'CREATE DATABASE paths OWNER mallory');
$server->safe_psql('paths', q{
	CREATE EXTENSION snowflake_migrate CASCADE; CREATE SCHEMA own AUTHORIZATION mallory; GRANT USAGE ON SCHEMA own TO PUBLIC; CREATE SCHEMA realm; CREATE SCHEMA west;
	CREATE TABLE realm.heroes (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text); CREATE TABLE west.heroes (id int PRIMARY KEY, name text); INSERT INTO west.heroes VALUES (1, 'Bob'), (2, 'Cyd');
	SET SESSION AUTHORIZATION mallory;
	CREATE FUNCTION own.eq(text, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE LOG 'a deed with the rights of %', current_user; RETURN $1 OPERATOR(pg_catalog.=) $2; END $$;
	CREATE OPERATOR own.= (LEFTARG = text, RIGHTARG = text, FUNCTION = own.eq);
	ALTER DATABASE paths SET search_path = own, pg_catalog});
$log_start = -s $server->logfile;
$server->safe_psql('paths', q{SET search_path = pg_catalog; CALL snowflake_migrate.merge('{west}', 'realm', '{804}', jobs => 2)});
is($server->safe_psql('paths', 'SET search_path = pg_catalog; SELECT count(*) FROM realm.heroes'), 2, 'workers have merged');
nothing_ran('workers');

done_testing();
