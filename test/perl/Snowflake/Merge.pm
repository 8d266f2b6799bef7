# Game servers that are merged: one schema, three worlds of rows, made by a seeded generator.
#
#     my $merge = Snowflake::Merge->new(seed => 42);
#     $merge->load('one');     # a database with the target and the sources
#     $merge->adopt('one');
#     $merge->declare('one');
#     $merge->call('one');
#     is_deeply($merge->natural('one'), $merge->expected, 'what has come of it');
#
# The rows come from Snowflake::Merge::World; what the merge should make of them, Snowflake::Merge::Oracle knows.

package Snowflake::Merge;

use strict;
use warnings FATAL => 'all';

use IPC::Run;
use PostgreSQL::Test::Cluster;
use Snowflake::Merge::World qw(choose literal quoted types_sql);
use Snowflake::Server;
use Test::More;

use parent qw(Snowflake::Merge::World Snowflake::Merge::Oracle);

our @sources = @Snowflake::Merge::World::sources;
our @nodes = (11, 12);

# The keys that go over to snowflake ids.
our @adopted = qw(badges item_templates upgrades accounts guilds players items mail chat vault_items titles decrees votes visits);

# What catalogs can't say.
my @declarations = (
	q{table('{t}.item_templates', 'match', '{code}', '{differences}')},
	q{table('{t}.upgrades', 'match', '{template_id,step}')},
	q{table('{t}.badges', 'match', '{code}')},
	q{table('{t}.seasons', 'same_id')},
	q{table('{t}.accounts', 'copy', ignored_columns => '{fax}')},
	q{table('west.legacy_notes', 'ignore')},
	q{reference('{t}.mail', 'sender_id', '{t}.players', $$sender_type = 'player'$$)},
	q{reference('{t}.mail', 'sender_id', '{t}.guilds', $$sender_type = 'guild'$$)},
	q{no_reference('{t}.mail', 'sender_id')},
	q{reference('{t}.mail', 'attachment_id', '{t}.items', dangling => 'null')},
	q{reference('{t}.loadouts', 'item_ids', '{t}.items')},
	q{reference('{t}.settings', 'prefs', '{t}.items', path => '$.bars[*].item')},
	q{reference('{t}.settings', 'prefs', '{t}.items', path => '$.favourites.keyvalue().key')},
	q{reference('{t}."Guild Log"', 'actor_id', '{t}.players', dangling => 'keep')},
	q{reference('{t}.visits', 'host_id', '{t}.players', dangling => 'skip')},
	q{created('{t}.accounts', 'created')},
	q{created('{t}.guilds', 'founded')},
	q{created('{t}.players', 'created_at')},
	q{created('{t}.items', 'created_at')},
	q{created('{t}.mail', 'sent_at')},
	q{created('{t}.chat', 'sent_at')},
	q{policy('{t}.accounts', 'accounts_login_key', 'keep_target')},
	q{policy('{t}.wallets', 'wallets_pkey', 'keep_source')},
	q{policy('{t}."Select"', 'Select_pkey', 'keep_target')},
	q{policy('{t}.players', 'players_name_key', 'suffix', '_{source}')},
	q{policy('{t}.players', 'players_account_id_slot_key', 'rerank', 'created_at, mark')},
	q{policy('{t}.guilds', 'guilds_name', 'suffix', ' ({source})')},
	q{policy('{t}.items', 'items_pkey', 'renumber')},
	q{policy('{t}.arena_ranks', 'arena_ranks_season_id_rank_key', 'rerank', 'rating DESC, mark')},
	q{policy('{t}.titles', 'titles_title_key', 'skip')},
);

# Other rules for some of these.
my @rules = (
	qq{table('{t}.titles', 'copy', "only" => \$\$title <> '$Snowflake::Merge::World::banned'\$\$)},
	q{policy('{t}.wallets', 'wallets_pkey', 'keep_first', precedence => 'coins DESC', combine => '{"coins": "sum"}')},
	q{policy('{t}.players', 'players_name_key', 'suffix', '_{source}', precedence => 'level DESC, created_at')},
	q{policy('{t}.guilds', 'guilds_name', 'suffix', ' ({source})', precedence => 'founded')},
);

# scale: 1 makes some 1000 rows for each world.  streams: the target's server may have standbys and subscribers.  A seed that
# was printed comes again by MERGE_SEED in the environment.
sub new
{
	my ($class, %params) = @_;
	my $seed = $params{seed} || $ENV{MERGE_SEED} || 1 + int rand 1_000_000;
	my $self = bless { scale => $params{scale} // 1, seed => $seed }, $class;

	note("seed of the worlds: $seed");
	$self->{worlds} = { realm => $self->make_world('T', 0), west => $self->make_world('W', 1), East => $self->make_world('E', 2) };

	my $realm = Snowflake::Server->new('realm');
	my $far = PostgreSQL::Test::Cluster->new('far');

	foreach my $server ($realm, $far)
	{
		# Lengths are in characters.
		$server->init(extra => [ '--encoding=UTF8', '--no-locale' ], allows_streaming => $params{streams} && $server == $realm ? 'logical' : 0);
		$server->start;
	}
	$far->safe_psql('postgres', $self->world_sql('East', 'East'));
	@$self{ 'realm', 'far' } = ($realm, $far);
	$self->{user} = $far->safe_psql('postgres', 'SELECT current_user');
	return $self;
}

sub server
{
	my ($self) = @_;

	return $self->{realm};
}

sub far
{
	my ($self) = @_;

	return $self->{far};
}

# A database with the target and the sources, and the role "merger", which has the rights that a merge needs, and no other.
sub load
{
	my ($self, $database) = @_;
	my ($host, $port) = ($self->{far}->host, $self->{far}->port);

	$self->{realm}->safe_psql('postgres', "CREATE DATABASE $database");
	$self->sql($database, 'CREATE EXTENSION snowflake_migrate CASCADE', 'CREATE EXTENSION postgres_fdw',
		$self->world_sql('realm', 'realm'), $self->world_sql('west', 'west'),
		'CREATE TABLE west.legacy_notes (id serial PRIMARY KEY, note text)',
		q{INSERT INTO west.legacy_notes (note) VALUES ('of no use')},
		# Types must be there before tables are imported that use them.
		'CREATE SCHEMA "East"', types_sql('"East"'),
		"CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres')",
		"CREATE USER MAPPING FOR CURRENT_USER SERVER far OPTIONS (user '$self->{user}')",
		'IMPORT FOREIGN SCHEMA "East" FROM SERVER far INTO "East"',
		# A trigger that counts, which no merge may fire.
		'CREATE SCHEMA watch', 'CREATE TABLE watch.fired (what text)',
		'GRANT USAGE ON SCHEMA watch TO public', 'GRANT INSERT ON watch.fired TO public',
		q{CREATE FUNCTION watch.fire() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
			INSERT INTO watch.fired VALUES (TG_ARGV[0]);
			RETURN NULL;
		END'},
		(map { "CREATE TRIGGER watch AFTER INSERT OR UPDATE OR DELETE ON realm.$_ FOR EACH ROW EXECUTE FUNCTION watch.fire('$_')" }
			qw(items players chat wallets arena_ranks)),
		'ANALYZE');
	$self->{at_first} //= $self->natural($database);
	return;
}

# Statements in one session, which must succeed; what they return.
sub sql
{
	my ($self, $database, @statements) = @_;

	return $self->{realm}->safe_psql($database, join(";\n", @statements) . ';');
}

# Statements as the role that has the rights that a merge needs, and no other.
sub allow_merger
{
	my ($self, $database) = @_;
	my $schemas = 'realm, west, "East"';

	$self->sql($database,
		q{DO $$ BEGIN CREATE ROLE merger LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$},
		"GRANT USAGE ON SCHEMA $schemas TO merger",
		'GRANT SELECT ON ALL TABLES IN SCHEMA west, "East" TO merger',
		'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA realm TO merger',
		'GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA realm TO merger',
		"SELECT snowflake_migrate.grant_to('merger')",
		"CREATE USER MAPPING FOR merger SERVER far OPTIONS (user '$self->{user}', password_required 'false')");
	return;
}

sub adopt
{
	my ($self, $database) = @_;
	my $tables = join ', ', map { "realm.$_" } @adopted;
	my $columns = join ', ', map { 'id' } @adopted;

	return $self->sql($database, "SELECT count(*) FROM snowflake_migrate.adopt('{$tables}', '{$columns}')");
}

# All declarations, or those that match.
sub declare
{
	my ($self, $database, $pattern) = @_;

	$self->sql($database, map { 'SELECT snowflake_migrate.declare_' . s/\{t\}/realm/gr } grep { !defined $pattern || /$pattern/ } @declarations);
	return;
}

# Declares other rules; from then on, the oracle goes by them.
sub rule
{
	my ($self, $database) = @_;

	$self->sql($database, map { 'SELECT snowflake_migrate.declare_' . s/\{t\}/realm/gr } @rules);
	$self->{ruled} = 1;
	return;
}

# A statement fails, with an error that matches.
sub refuses
{
	my ($self, $database, $sql, $pattern, $name) = @_;
	my ($status, $out, $err) = $self->{realm}->psql($database, $sql);

	isnt($status, 0, "$name: refused");
	like($err =~ s/^(QUERY|CONTEXT):.*//msr, $pattern, "$name: the error says why");
	return;
}

# A database that is ready to be merged; a copy of one that was made before.
sub ready
{
	my ($self, $database) = @_;

	if (!$self->{template})
	{
		$self->{template} = 'prepared';
		$self->load('prepared');
		$self->declare('prepared');
		$self->adopt('prepared');
	}
	$self->{realm}->safe_psql('postgres', "CREATE DATABASE $database TEMPLATE prepared");
	return;
}

# The statement that merges.
sub call_sql
{
	my ($self, %params) = @_;
	my $names = join ', ', map { literal($_) } @{ $params{sources} // \@sources };
	my $numbers = join ', ', @{ $params{nodes} // \@nodes };
	my $target = $params{target} // 'realm';
	my $rest = join '', map { ", $_ => $params{$_}" } grep { exists $params{$_} } qw(batch_size jobs dry_run rebuild_indexes);

	return "CALL snowflake_migrate.merge(ARRAY[$names]::name[], '$target', ARRAY[$numbers]$rest)";
}

# Merges; the number of the run.
sub call
{
	my ($self, $database, %params) = @_;

	return $self->sql($database, $self->call_sql(%params));
}

# The merge in a session of its own: see Snowflake::Server::start_call().
sub start_merge
{
	my ($self, $database, $statement, %params) = @_;
	my $call = { out => '', err => '' };

	my $place = $self->{realm}->connstr($database) . ' application_name=merge' . (defined $params{user} ? " user=$params{user}" : '')
	  . (defined $params{options} ? " options='$params{options}'" : '');

	$call->{run} = IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $place, '-c', $statement ],
		'<', '/dev/null', '>', \$call->{out}, '2>', \$call->{err});
	return $call;
}

# Waits for its end; whether it succeeded.
sub finish_merge
{
	my ($self, $call) = @_;

	$call->{run}->finish;
	return $call->{run}->result(0) == 0;
}

# Waits in one statement until a condition holds, or a merge has ended; whether it holds.  It looks as often as it can be read.
sub wait_for
{
	my ($self, $database, $condition, $call) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;

	for (;;)
	{
		my $answer = $self->sql($database, qq{DO \$wait\$ BEGIN
				FOR i IN 1 .. 200 LOOP
					PERFORM pg_stat_clear_snapshot();
					EXIT WHEN ($condition);
					PERFORM pg_sleep(0.005);
				END LOOP;
			END \$wait\$}, "SELECT ($condition) IS TRUE");

		return 1 if $answer eq 't';
		if ($call)
		{
			$call->{run}->pump_nb if $call->{run}->pumpable;
			return 0 unless $call->{run}->pumpable;
		}
		die "waited in vain until $condition" if time > $deadline;
	}
}

# Rows that a merge or its rollback can be stopped at, by who holds the advisory lock 1: while they are inserted, deleted, or one is put
# into another's place, in the middle of a batch.
my @stoppable = qw(wallets players items mail vault_items visits);

sub allow_stops
{
	my ($self, $database) = @_;

	$self->sql($database,
		'CREATE TABLE watch.stops (mark text PRIMARY KEY)', 'GRANT SELECT ON watch.stops TO public',
		q{CREATE FUNCTION watch.stop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
			IF EXISTS (SELECT FROM watch.stops AS s WHERE s.mark IN (NEW.mark, OLD.mark)) THEN
				PERFORM pg_advisory_xact_lock_shared(1);
			END IF;
			RETURN coalesce(NEW, OLD);
		END'},
		(map { "CREATE TRIGGER stop BEFORE INSERT OR UPDATE OR DELETE ON realm.$_ FOR EACH ROW EXECUTE FUNCTION watch.stop()" } @stoppable),
		(map { "ALTER TABLE realm.$_ ENABLE ALWAYS TRIGGER stop" } @stoppable));
	return;
}

# Stops the next merge at the first of so many rows that are not there yet, or the next rollback at one that is; of rows whose
# marks match.  Fewer, if there are fewer.  A merge never comes to a row that a policy leaves out: with "merged", only rows count that
# another merge brought to that database.  Also at every row of the tables "all_of", so that no worker copies them meanwhile.
sub stop_at
{
	my ($self, $database, $count, %params) = @_;
	my $pattern = $params{marks} // qr/^[WE]/;
	my $marks = join ' UNION ALL ', map { "SELECT mark FROM realm.$_" } @stoppable;
	my %there = map { $_ => 1 } split /\n/, $self->sql($database, $marks);
	my %comes = $params{merged} ? map { $_ => 1 } split /\n/, $self->sql($params{merged}, $marks) : ();
	my $marks_of = sub { my @tables = @_; return map { my $world = $self->{worlds}->{$_}; map { map { $_->{mark} } @{ $world->{$_} } } @tables } @sources };
	my @chosen = choose($count, grep { $_ =~ $pattern && ($params{rollback} ? $there{$_} : !$there{$_} && (!$params{merged} || $comes{$_})) } $marks_of->(@stoppable));
	my $stops = join ',', @chosen, $marks_of->(@{ $params{all_of} // [] });

	$self->sql($database, 'TRUNCATE watch.stops', "INSERT INTO watch.stops SELECT DISTINCT unnest('{$stops}'::text[])");
	return scalar @chosen;
}

# Whether a merge waits at such a row.
our $stopped = q{EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'merge' AND wait_event = 'advisory')};

# Holds merges up at the rows where they may be stopped, until the session ends.
sub hold
{
	my ($self, $database) = @_;
	my $holder = $self->{realm}->background_psql($database);

	$holder->query_safe('SELECT pg_advisory_lock(1)');
	return $holder;
}

1;
