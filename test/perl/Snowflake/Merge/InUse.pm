# A small game whose target is in use while others are merged into it: the target "t", and the sources "s" and "u", whose names
# and serial keys are the same.  Rows are known by marks, which no merge changes.

package Snowflake::Merge::InUse;

use strict;
use warnings FATAL => 'all';

use Exporter qw(import);
use IPC::Run;
use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT_OK = qw($server $stopped $verify begin call_sql database finish_merge hold players run_of sql start_merge wait_until);

our $server;

sub world_sql
{
	my ($schema) = @_;
	my $s = $schema ne 't';
	my ($accounts, $players, $items) = $s ? (40, 60, 120) : (20, 30, 30);
	# Every fourth name is the target's, too.
	my $n = $s ? 'i' : '4 * i';

	return qq{
		CREATE SCHEMA $schema;
		CREATE TABLE $schema.kinds (id bigserial PRIMARY KEY, code text NOT NULL UNIQUE);
		CREATE TABLE $schema.accounts (id bigserial PRIMARY KEY, login text NOT NULL UNIQUE, mark text NOT NULL);
		CREATE TABLE $schema.wallets (account_id bigint PRIMARY KEY REFERENCES $schema.accounts ON DELETE CASCADE, mark text);
		CREATE TABLE $schema.guilds (id bigserial PRIMARY KEY, name text NOT NULL UNIQUE, mark text NOT NULL);
		CREATE TABLE $schema.players (id bigserial PRIMARY KEY,
			account_id bigint NOT NULL REFERENCES $schema.accounts ON DELETE CASCADE,
			guild_id bigint REFERENCES $schema.guilds ON DELETE SET NULL, name text NOT NULL UNIQUE, mark text NOT NULL);
		CREATE TABLE $schema.items (id bigserial PRIMARY KEY, owner_id bigint NOT NULL REFERENCES $schema.players ON DELETE CASCADE,
			kind_id bigint NOT NULL REFERENCES $schema.kinds, mark text NOT NULL);
		CREATE TABLE $schema.friends (lo bigint REFERENCES $schema.players ON DELETE CASCADE,
			hi bigint REFERENCES $schema.players ON DELETE CASCADE, PRIMARY KEY (lo, hi));
		CREATE TABLE $schema.ranks (player_id bigint PRIMARY KEY REFERENCES $schema.players ON DELETE CASCADE, rating int NOT NULL,
			rank int NOT NULL UNIQUE);
		CREATE TABLE $schema.log (player_id bigint REFERENCES $schema.players ON DELETE CASCADE, what text);
		CREATE TABLE $schema.bounties (id bigserial PRIMARY KEY, player_id bigint NOT NULL REFERENCES $schema.players,
			mark text NOT NULL UNIQUE);
		INSERT INTO $schema.kinds (code) SELECT 'k' || $n FROM generate_series(1, 6) AS i;
		INSERT INTO $schema.accounts (login, mark) SELECT 'a' || $n, '${schema}a' || i FROM generate_series(1, $accounts) AS i;
		INSERT INTO $schema.wallets SELECT i, '${schema}w' || i FROM generate_series(1, $accounts - 2) AS i;
		INSERT INTO $schema.guilds (name, mark) SELECT 'g' || $n, '${schema}g' || i FROM generate_series(1, 10) AS i;
		INSERT INTO $schema.players (account_id, guild_id, name, mark)
			SELECT 1 + i % $accounts, nullif(i % 11, 0), 'p' || $n, '${schema}p' || i FROM generate_series(1, $players) AS i;
		INSERT INTO $schema.items (owner_id, kind_id, mark)
			SELECT 1 + i % $players, 1 + i % 5, '${schema}i' || i FROM generate_series(1, $items) AS i;
		INSERT INTO $schema.friends SELECT i, i + 1 + i % 3 FROM generate_series(1, $players - 4) AS i;
		INSERT INTO $schema.ranks SELECT i, (i * 7919) % 50, i FROM generate_series(1, $players / 2) AS i;
		INSERT INTO $schema.log SELECT 1 + i % $players, '${schema}l' || i FROM generate_series(1, 20) AS i;
		INSERT INTO $schema.bounties (player_id, mark) SELECT i, '${schema}b' || i FROM generate_series(1, 10) AS i WHERE '$schema' <> 't';
	};
}

sub sql
{
	my ($database, @statements) = @_;

	return $server->safe_psql($database, join ";\n", @statements);
}

# The server, and a database that is ready to be merged into.
#
# A merge can be stopped where it inserts a row with a mark in watch.stops, as long as the advisory lock 1 is held: it tries
# again and again.
sub begin
{
	$server = Snowflake::Server->new('realm');
	$server->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
	# A batch waits for half of deadlock_timeout.
	$server->append_conf('postgresql.conf', "deadlock_timeout = 400ms\nautovacuum = off");
	$server->start;
	$server->safe_psql('postgres', 'CREATE DATABASE ready');
	sql('ready', 'CREATE EXTENSION snowflake_migrate CASCADE', world_sql('t'), world_sql('s'), world_sql('u'),
		q{SELECT count(*) FROM snowflake_migrate.adopt('{t.kinds,t.accounts,t.guilds,t.players,t.items,t.bounties}', '{id,id,id,id,id,id}')},
		(map { "SELECT snowflake_migrate.declare_$_" }
			q{table('t.kinds', 'match', '{code}')},
			q{policy('t.accounts', 'accounts_login_key', 'keep_target')},
			q{policy('t.wallets', 'wallets_pkey', 'keep_source')},
			q{policy('t.guilds', 'guilds_name_key', 'suffix', '_{source}')},
			q{policy('t.players', 'players_name_key', 'suffix', '_{source}')},
			q{policy('t.ranks', 'ranks_rank_key', 'rerank', 'rating DESC')},
			q{no_reference('t.ranks', 'rank')}),
		'CREATE ROLE merger LOGIN', 'GRANT USAGE ON SCHEMA t, u TO merger', 'GRANT SELECT ON ALL TABLES IN SCHEMA u TO merger',
		'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA t TO merger',
		'CREATE SCHEMA watch', 'CREATE TABLE watch.stops (mark text PRIMARY KEY)', 'GRANT USAGE ON SCHEMA watch TO merger', 'GRANT SELECT ON watch.stops TO merger',
		q{CREATE FUNCTION watch.stop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
			IF current_setting(''application_name'') = ''merge'' AND EXISTS (SELECT FROM watch.stops AS s WHERE s.mark = NEW.mark) THEN
				PERFORM pg_advisory_xact_lock_shared(1);
			END IF;
			RETURN NEW;
		END'},
		map { ("CREATE TRIGGER stop BEFORE INSERT ON t.$_ FOR EACH ROW EXECUTE FUNCTION watch.stop()", "ALTER TABLE t.$_ ENABLE ALWAYS TRIGGER stop") }
		  qw(accounts guilds players items bounties));
	return;
}

# A copy of it, after further statements.
sub database
{
	my ($name, @statements) = @_;

	$server->safe_psql('postgres', "CREATE DATABASE $name TEMPLATE ready");
	sql($name, @statements) if @statements;
	return $name;
}

sub call_sql
{
	my ($source, $node, $size) = @_;

	return "CALL snowflake_migrate.merge('{$source}', 't'::name, '{$node}', batch_size => $size, target_in_use => true)";
}

sub start_merge
{
	my ($database, $statement, $user) = @_;
	my $call = { database => $database, out => '', err => '' };
	my $place = $server->connstr($database) . ' application_name=merge' . (defined $user ? " user=$user" : '');

	$call->{run} = IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $place, '-c', $statement ], '<', '/dev/null', '>', \$call->{out}, '2>', \$call->{err});
	return $call;
}

sub finish_merge
{
	my ($call, $name) = @_;

	$call->{run}->finish;
	is($call->{run}->result(0), 0, "$name: the merge is done")
	  or diag($call->{err}, sql($call->{database}, q{SELECT * FROM snowflake_migrate.report WHERE severity = 'error'}));
	return;
}

sub hold
{
	my ($database, @marks) = @_;
	my $holder = $server->background_psql($database);

	sql($database, 'TRUNCATE watch.stops', map { "INSERT INTO watch.stops VALUES ('$_')" } @marks);
	$holder->query_safe('SELECT pg_advisory_lock(1)');
	return $holder;
}

# Until a condition holds, or the merge has ended.
sub wait_until
{
	my ($call, $condition, $name) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	my $holds;

	for (;;)
	{
		$holds = sql($call->{database}, "SELECT ($condition) IS TRUE") eq 't';
		$call->{run}->pump_nb if $call->{run}->pumpable;
		last if $holds || !$call->{run}->pumpable || time > $deadline;
		usleep(10_000);
	}
	ok($holds, $name) or BAIL_OUT("$name: $call->{err}");
	return;
}

our $stopped = q{EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'merge' AND wait_event = 'advisory')};
our $verify = 'SELECT * FROM snowflake_migrate.verify((SELECT max(run) FROM snowflake_migrate.runs))';

sub run_of
{
	my ($database) = @_;

	return sql($database, 'SELECT max(run) FROM snowflake_migrate.runs');
}

# The players of a schema: by mark, the login of the account and the mark of the guild.
sub players
{
	my ($database, $schema) = @_;

	return { map { my ($mark, @rest) = split /\|/; $mark => join ' ', @rest } split /\n/, sql($database,
		"SELECT p.mark, a.login, coalesce(g.mark, '-') FROM $schema.players AS p JOIN $schema.accounts AS a ON a.id = account_id
			LEFT JOIN $schema.guilds AS g ON g.id = guild_id") };
}

1;
