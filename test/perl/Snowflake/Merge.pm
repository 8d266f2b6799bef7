# Game servers that are merged: one schema, three worlds of rows, made by a seeded generator.
#
#     my $merge = Snowflake::Merge->new(seed => 42);
#     $merge->load('one');     # a database with the target and the sources
#     $merge->adopt('one');
#     $merge->declare('one');
#     $merge->call('one');
#     is_deeply($merge->natural('one'), $merge->expected, 'what has come of it');
#
# The target is the schema "realm".  The source "west" is a schema of the same database, of the same version, with a column
# and a table more than the target has; some of its items have snowflake ids.  The source "East" is on another server,
# behind postgres_fdw, one column behind, and with its columns in the opposite order.  Serial keys start at 1 everywhere,
# and names come from one pool, so that nearly everything clashes.
#
# What the merge should make is told without its map: each row has a mark, which no other row of any world has, or a name
# that is its own in each world; a row's natural form is its marks and names, those of the rows it refers to, and its plain
# values.

package Snowflake::Merge;

use strict;
use warnings FATAL => 'all';

use IPC::Run;
use POSIX qw(strftime);
use PostgreSQL::Test::Cluster;
use Snowflake::Server;
use Test::More;

our @sources = ('west', 'East');
our @nodes = (11, 12);

# Of the source rows that had snowflake ids before.
my $former_node = 21;

# table => [ columns ], in an order in which rows can be inserted once foreign keys are left out.  {s} is the schema.  A
# column that starts with "new:" is one that an older version does not have; "west:", that west alone has.
my @tables = (
	[ seasons => 'id serial PRIMARY KEY', 'title text NOT NULL' ],
	[ badges => 'id serial PRIMARY KEY', 'code text NOT NULL UNIQUE', '"Größe" int' ],
	[ item_templates => 'id serial PRIMARY KEY', 'code text NOT NULL UNIQUE', 'label text', 'rarity {s}.rarity NOT NULL' ],
	[ upgrades => 'id serial PRIMARY KEY', 'template_id int NOT NULL', 'step int NOT NULL', 'cost int', '+UNIQUE (template_id, step)' ],
	[ accounts => 'id serial PRIMARY KEY', 'login text NOT NULL UNIQUE', 'customer_no int NOT NULL GENERATED ALWAYS AS IDENTITY',
		'created timestamptz NOT NULL', 'west:fax text' ],
	[ wallets => 'account_id int PRIMARY KEY', 'coins int NOT NULL', 'mark text NOT NULL' ],
	[ 'Select' => 'account_id int PRIMARY KEY', '"from" text', '"Group By" text' ],
	[ guilds => 'id serial PRIMARY KEY', 'mark text NOT NULL', 'name text NOT NULL CHECK (char_length(name) <= 20)',
		'leader_id int NOT NULL', 'founded timestamptz NOT NULL' ],
	[ players => 'id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY', 'mark text NOT NULL', 'account_id int NOT NULL', 'slot int NOT NULL',
		'name {s}.player_name NOT NULL UNIQUE', 'guild_id int', 'level int NOT NULL', 'created_at timestamptz NOT NULL',
		q{new:motto text NOT NULL DEFAULT 'none yet'}, '+UNIQUE (account_id, slot)' ],
	[ items => 'id bigserial PRIMARY KEY', 'mark text NOT NULL', 'owner_id int NOT NULL', 'template_id int NOT NULL', 'quantity int NOT NULL',
		'worth int GENERATED ALWAYS AS (quantity * 10) STORED', 'rarity {s}.rarity NOT NULL', 'created_at timestamptz NOT NULL' ],
	[ loadouts => 'player_id int NOT NULL', 'slot text NOT NULL', 'item_ids bigint[] NOT NULL', '+PRIMARY KEY (player_id, slot)' ],
	[ mail => 'id serial PRIMARY KEY', 'mark text NOT NULL', 'sender_type text NOT NULL', 'sender_id bigint', 'receiver_id int NOT NULL',
		'reply_to int', 'attachment_id bigint', 'sent_at timestamptz NOT NULL' ],
	[ friendships => 'lo int NOT NULL', 'hi int NOT NULL', 'since date NOT NULL', '+PRIMARY KEY (lo, hi)', '+CHECK (lo < hi)' ],
	[ player_badges => 'player_id int NOT NULL', 'badge_id int NOT NULL', 'awarded date NOT NULL', '+PRIMARY KEY (player_id, badge_id)' ],
	[ arena_ranks => 'season_id int NOT NULL', 'player_id int NOT NULL', 'mark text NOT NULL', 'rating int NOT NULL', 'rank int NOT NULL',
		'+PRIMARY KEY (season_id, player_id)', '+UNIQUE (season_id, rank)' ],
	[ settings => 'player_id int PRIMARY KEY', 'prefs jsonb NOT NULL' ],
	[ chat => 'id bigserial NOT NULL', 'sent_at timestamptz NOT NULL', 'player_id int NOT NULL', 'body text NOT NULL',
		'+PRIMARY KEY (id, sent_at)' ],
	[ vaults => 'guild_id int NOT NULL', 'tab int NOT NULL', 'label text NOT NULL', '+PRIMARY KEY (guild_id, tab)' ],
	[ vault_items => 'id serial PRIMARY KEY', 'mark text NOT NULL', 'guild_id int NOT NULL', 'tab int NOT NULL', 'item_id bigint NOT NULL' ],
	[ titles => 'id serial PRIMARY KEY', 'mark text NOT NULL', 'title text NOT NULL UNIQUE', 'holder_id int NOT NULL' ],
	[ decrees => 'id serial PRIMARY KEY', 'mark text NOT NULL', 'title_id int NOT NULL' ],
	[ votes => 'id serial PRIMARY KEY', 'mark text NOT NULL', 'title_id int', 'voter_id int NOT NULL' ],
	[ visits => 'id serial PRIMARY KEY', 'mark text NOT NULL', 'host_id int NOT NULL', 'visitor_id int NOT NULL' ],
	[ 'Guild Log' => 'guild_id int', 'actor_id bigint', '"at" timestamptz NOT NULL', '"Größe" text' ],
);

# The months that the chat log has partitions for; a foreign key is on the second alone.
my @months = ('2024-01', '2024-02', '2024-03');

# table, columns, referenced table and its columns
my @foreign_keys = (
	[ 'upgrades', 'template_id', 'item_templates', '(id)' ],
	[ 'wallets', 'account_id', 'accounts', '(id)' ],
	[ '"Select"', 'account_id', 'accounts', '(id) ON DELETE CASCADE' ],
	[ 'players', 'account_id', 'accounts', '(id)' ],
	[ 'players', 'guild_id', 'guilds', '(id)' ],
	[ 'guilds', 'leader_id', 'players', '(id)' ],
	[ 'items', 'owner_id', 'players', '(id) ON DELETE CASCADE' ],
	[ 'items', 'template_id', 'item_templates', '(id)' ],
	[ 'loadouts', 'player_id', 'players', '(id)' ],
	[ 'mail', 'receiver_id', 'players', '(id)' ],
	[ 'mail', 'reply_to', 'mail', '(id)' ],
	[ 'friendships', 'lo', 'players', '(id)' ],
	[ 'friendships', 'hi', 'players', '(id)' ],
	[ 'player_badges', 'player_id', 'players', '(id)' ],
	[ 'player_badges', 'badge_id', 'badges', '(id)' ],
	[ 'arena_ranks', 'season_id', 'seasons', '(id)' ],
	[ 'arena_ranks', 'player_id', 'players', '(id)' ],
	[ 'settings', 'player_id', 'players', '(id)' ],
	[ 'chat_2024_02', 'player_id', 'players', '(id)' ],
	[ 'vaults', 'guild_id', 'guilds', '(id)' ],
	[ 'vault_items', 'guild_id, tab', 'vaults', '(guild_id, tab)' ],
	[ 'vault_items', 'item_id', 'items', '(id)' ],
	[ 'titles', 'holder_id', 'players', '(id)' ],
	[ 'decrees', 'title_id', 'titles', '(id)' ],
	[ 'votes', 'title_id', 'titles', '(id)' ],
	[ 'votes', 'voter_id', 'players', '(id)' ],
	[ 'visits', 'visitor_id', 'players', '(id)' ],
	[ '"Guild Log"', 'guild_id', 'guilds', '(id)' ],
);

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

# Tables in which worlds have rows in common: that are matched, or kept by a policy.
my %shared = map { $_ => 1 } qw(seasons badges item_templates upgrades accounts wallets Select titles);

# Each table's rows in their natural form: what they are known by where worlds have a row in common, and the row.  Rows whose
# reference dangles, and are left out for it, are not among them.
my %natural = (
	seasons => 'id, ROW(title) FROM {s}.seasons',
	badges => 'code, ROW("Größe") FROM {s}.badges',
	item_templates => 'code, ROW(label, rarity) FROM {s}.item_templates',
	upgrades => q{i.code || ' ' || step, ROW(cost) FROM {s}.upgrades AS u JOIN {s}.item_templates AS i ON i.id = template_id},
	accounts => 'login, ROW(customer_no, created) FROM {s}.accounts',
	wallets => 'login, ROW(coins, mark) FROM {s}.wallets JOIN {s}.accounts AS a ON a.id = account_id',
	'Select' => 'login, ROW("from", "Group By") FROM {s}."Select" JOIN {s}.accounts AS a ON a.id = account_id',
	guilds => 'g.mark, ROW(p.mark, founded) FROM {s}.guilds AS g JOIN {s}.players AS p ON p.id = leader_id',
	players => 'p.mark, ROW(login, g.mark, level, created_at, {motto})
		FROM {s}.players AS p JOIN {s}.accounts AS a ON a.id = account_id LEFT JOIN {s}.guilds AS g ON g.id = guild_id',
	items => 'i.mark, ROW(p.mark, t.code, quantity, worth, i.rarity, i.created_at)
		FROM {s}.items AS i JOIN {s}.players AS p ON p.id = owner_id JOIN {s}.item_templates AS t ON t.id = template_id',
	loadouts => q{p.mark || ' ' || l.slot, ROW((SELECT array_agg(coalesce(i.mark, '?') ORDER BY n)
												FROM unnest(item_ids) WITH ORDINALITY AS e (id, n) LEFT JOIN {s}.items AS i USING (id)))
		FROM {s}.loadouts AS l JOIN {s}.players AS p ON p.id = player_id},
	mail => q{m.mark, ROW(m.sender_type, CASE m.sender_type WHEN 'player' THEN coalesce(s.mark, '?') WHEN 'guild' THEN coalesce(g.mark, '?')
														ELSE m.sender_id::text END,
						  r.mark, o.mark, i.mark, m.sent_at)
		FROM {s}.mail AS m JOIN {s}.players AS r ON r.id = m.receiver_id LEFT JOIN {s}.players AS s ON s.id = m.sender_id
			LEFT JOIN {s}.guilds AS g ON g.id = m.sender_id LEFT JOIN {s}.mail AS o ON o.id = m.reply_to
			LEFT JOIN {s}.items AS i ON i.id = m.attachment_id},
	friendships => q{a.mark || ' ' || b.mark, ROW(since)
		FROM {s}.friendships JOIN {s}.players AS a ON a.id = lo JOIN {s}.players AS b ON b.id = hi},
	player_badges => q{mark || ' ' || code, ROW(awarded)
		FROM {s}.player_badges JOIN {s}.players AS p ON p.id = player_id JOIN {s}.badges AS b ON b.id = badge_id},
	arena_ranks => q{season_id || ' ' || p.mark, ROW(rating, a.mark) FROM {s}.arena_ranks AS a JOIN {s}.players AS p ON p.id = player_id},
	settings => q{mark, ROW(prefs - 'bars' - 'favourites',
			(SELECT array_agg(coalesce(i.mark, '?') || (b - 'item') ORDER BY n)
			 FROM jsonb_array_elements(prefs->'bars') WITH ORDINALITY AS e (b, n) LEFT JOIN {s}.items AS i ON i.id = (b->>'item')::bigint),
			(SELECT array_agg(coalesce(i.mark, '?') || f.value ORDER BY i.mark)
			 FROM jsonb_each_text(prefs->'favourites') AS f LEFT JOIN {s}.items AS i ON i.id = f.key::bigint))
		FROM {s}.settings JOIN {s}.players AS p ON p.id = player_id},
	chat => 'body, ROW(mark, sent_at) FROM {s}.chat JOIN {s}.players AS p ON p.id = player_id',
	vaults => q{mark || ' ' || tab, ROW(label) FROM {s}.vaults JOIN {s}.guilds AS g ON g.id = guild_id},
	vault_items => 'v.mark, ROW(g.mark, tab, label, i.mark)
		FROM {s}.vault_items AS v JOIN {s}.vaults USING (guild_id, tab) JOIN {s}.guilds AS g ON g.id = guild_id
			JOIN {s}.items AS i ON i.id = item_id',
	titles => 'title, ROW(t.mark, p.mark) FROM {s}.titles AS t JOIN {s}.players AS p ON p.id = holder_id',
	decrees => 'd.mark, ROW(t.mark) FROM {s}.decrees AS d JOIN {s}.titles AS t ON t.id = title_id',
	votes => 'v.mark, ROW(t.mark, p.mark)
		FROM {s}.votes AS v JOIN {s}.players AS p ON p.id = voter_id LEFT JOIN {s}.titles AS t ON t.id = title_id',
	visits => 'v.mark, ROW(h.mark, p.mark)
		FROM {s}.visits AS v JOIN {s}.players AS h ON h.id = host_id JOIN {s}.players AS p ON p.id = visitor_id',
	'Guild Log' => q{'', ROW(g.mark, coalesce(p.mark, actor_id::text), at, l."Größe")
		FROM {s}."Guild Log" AS l LEFT JOIN {s}.guilds AS g ON g.id = guild_id LEFT JOIN {s}.players AS p ON p.id = actor_id},
);

sub quoted
{
	my ($name) = @_;

	return $name =~ /^[a-z_0-9]+$/ && $name ne 'Select' ? $name : qq("$name");
}

sub literal
{
	my ($value) = @_;

	return 'NULL' unless defined $value;
	return "'" . ($value =~ s/'/''/gr) . "'";
}

# scale: 1 makes some 1000 rows for each world.  A seed that was printed comes again by MERGE_SEED in the environment.
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
		$server->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
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

sub types_sql
{
	my ($schema) = @_;

	return ("CREATE TYPE $schema.rarity AS ENUM ('common', 'rare', 'epic')",
		"CREATE DOMAIN $schema.player_name AS varchar(12) CHECK (VALUE !~ '\\s')");
}

# What makes a world in a schema.
sub world_sql
{
	my ($self, $schema, $world) = @_;
	my $s = quoted($schema);
	my $rows = $self->{worlds}->{$world};
	my @sql = ("CREATE SCHEMA $s", types_sql($s));

	foreach my $definition (@tables)
	{
		my ($table, @columns) = @$definition;
		my $name = "$s." . quoted($table);
		my @constraints = map { s/^\+//r } grep { /^\+/ } @columns;

		@columns = grep { !/^\+/ } @columns;
		@columns = grep { !/^new:/ } reverse @columns if $world eq 'East';
		@columns = grep { !/^west:/ } @columns unless $world eq 'west';
		@columns = map { s/^(new|west)://r =~ s/\{s\}/$s/gr } @columns, @constraints;
		push @sql, "CREATE TABLE $name (" . join(', ', @columns) . ')' . ($table eq 'chat' ? ' PARTITION BY RANGE (sent_at)' : '');
		push @sql, map {
			my ($year, $month) = split /-/;
			my $next = sprintf '%d-%02d', $year, $month + 1;

			"CREATE TABLE $s.chat_${year}_$month PARTITION OF $s.chat FOR VALUES FROM ('$_-01') TO ('$next-01')"
		} @months if $table eq 'chat';

		my @names = grep { !($world eq 'East' && $_ eq 'motto') } sort keys %{ $rows->{$table}->[0] };

		push @sql, "INSERT INTO $name (" . join(', ', map { qq("$_") } @names) . ') OVERRIDING SYSTEM VALUE VALUES '
		  . join(', ', map { my $row = $_; '(' . join(', ', map { literal($row->{$_}) } @names) . ')' } @{ $rows->{$table} });
	}
	push @sql, "CREATE UNIQUE INDEX guilds_name ON $s.guilds (lower(name))";
	push @sql, map { my ($table, $columns, $referenced, $rest) = @$_; "ALTER TABLE $s.$table ADD FOREIGN KEY ($columns) REFERENCES $s.$referenced $rest" }
	  @foreign_keys;
	# Sequences go on where the rows end; those of items, without regard to snowflake ids.
	push @sql, qq{DO \$\$ DECLARE c record; BEGIN
		FOR c IN SELECT t.oid::regclass AS t, a.attname AS n, pg_get_serial_sequence(t.oid::regclass::text, a.attname) AS q
				 FROM pg_class AS t JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
				 WHERE t.relnamespace = '$s'::regnamespace AND t.relkind IN ('r', 'p') AND NOT t.relispartition
		LOOP
			CONTINUE WHEN c.q IS NULL;
			EXECUTE format('SELECT setval(%L, max(%I)) FROM %s WHERE %I < 1000000', c.q, c.n, c.t, c.n);
		END LOOP;
	END \$\$};
	return join ";\n", @sql;
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
	my $rest = join '', map { ", $_ => $params{$_}" } grep { exists $params{$_} } qw(batch_size dry_run);

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

	my $place = $self->{realm}->connstr($database) . ' application_name=merge' . (defined $params{user} ? " user=$params{user}" : '');

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

# The rows of a schema in their natural form: table => { key => row }, for the table without a key a list.
sub natural
{
	my ($self, $database, $schema, $server) = @_;
	my $world = $schema // 'realm';
	my $s = quoted($world);
	my $motto = $world eq 'East' ? q{'none yet'} : 'motto';
	my @queries = map { my $query = $natural{$_} =~ s/\{s\}/$s/gr =~ s/\{motto\}/$motto/r;
		"SELECT '$_' AS t, n.key::text AS key, n.row::text AS row FROM (SELECT $query) AS n (key, row)" } sort keys %natural;
	my $out = ($server // $self->{realm})->safe_psql($database, "SET timezone = 'UTC';
		SELECT concat_ws(E'\\t', t, key, row) FROM (" . join("\nUNION ALL ", @queries) . ') AS a
		ORDER BY t COLLATE "C", key COLLATE "C", row COLLATE "C"');
	my %tables = map { $_ => {} } keys %natural;
	my $count = 0;

	foreach my $line (split /\n/, $out)
	{
		my ($table, $key, $row) = split /\t/, $line;
		my $rows = $tables{$table};

		$key = ++$count if $table eq 'Guild Log';
		# Should one come twice, its copies have keys of their own.
		$key .= ' again' while exists $rows->{$key};
		$rows->{$key} = $row;
	}
	$tables{'Guild Log'} = [ map { $tables{'Guild Log'}->{$_} } sort { $a <=> $b } keys %{ $tables{'Guild Log'} } ];
	return \%tables;
}

# What the sources have, asked of the servers where they are.
sub source
{
	my ($self, $database, $source) = @_;

	return $self->natural('postgres', $source, $self->{far}) if $source eq 'East';
	return $self->natural($database, $source);
}

# What runs, each with these sources, must make of the target, as it was at first; one run with all sources unless given.
sub expected
{
	my ($self, $database, @runs) = @_;
	my $target = $self->{at_first};
	my %result = map { $_ => $_ eq 'Guild Log' ? [ @{ $target->{$_} } ] : { %{ $target->{$_} } } } keys %$target;

	@runs = ([@sources]) unless @runs;
	foreach my $run (@runs)
	{
		my %replaced;    # wallets, by the first source that has one

		$self->expect_source(\%result, $self->source($database, $_), \%replaced) foreach @$run;
	}
	$result{'Guild Log'} = [ sort @{ $result{'Guild Log'} } ];
	return \%result;
}

# Adds the rows of a source to what is expected.
sub expect_source
{
	my ($self, $result, $rows, $replaced) = @_;

	# The marks of titles that are skipped.
	my %lost = map { $_ => 1 } map { $rows->{titles}->{$_} =~ /^\((\w+),/ } grep { exists $result->{titles}->{$_} } keys %{ $rows->{titles} };

	push @{ $result->{'Guild Log'} }, @{ $rows->{'Guild Log'} };
	foreach my $table (grep { $_ ne 'Guild Log' } keys %$rows)
	{
		foreach my $key (keys %{ $rows->{$table} })
		{
			my $row = $rows->{$table}->{$key};

			# A skipped title's decrees go with it, its votes are for nothing.
			next if $table eq 'decrees' && $row =~ /^\((\w+)\)$/ && $lost{$1};
			$row =~ s/^\((\w+)/$lost{$1} ? '(' : "($1"/e if $table eq 'votes';
			if (exists $result->{$table}->{$key})
			{
				die "$table $key is in two worlds" unless $shared{$table};
				next if $table ne 'wallets' || $replaced->{$key};
			}
			$replaced->{$key} = 1 if $table eq 'wallets';
			$result->{$table}->{$key} = $row;
		}
	}
	return;
}

# The number of rows that each table has, so that none is there that has no natural form.
sub counts
{
	my ($self, $database) = @_;

	return { map { split /\t/ } split /\n/,
		$self->sql($database, join ' UNION ALL ', map { "SELECT '$_' || E'\\t' || count(*) FROM realm." . quoted($_) } sort keys %natural) };
}

# That the target has come out right, by all that can be said without the map.
sub is_merged
{
	my ($self, $database, $name, @runs) = @_;
	my $expected = $self->expected($database, @runs);
	my $found = $self->natural($database);

	foreach my $table (sort keys %natural)
	{
		is_deeply($found->{$table}, $expected->{$table}, "$name: $table");
	}
	my %counts = map { my $rows = $expected->{$_}; $_ => ref $rows eq 'ARRAY' ? scalar @$rows : scalar keys %$rows } keys %$expected;

	is_deeply($self->counts($database), \%counts, "$name: no row more");
	foreach my $case (
		[ 'ranks out of order', q{(SELECT rank AS i, row_number() OVER (PARTITION BY season_id ORDER BY rating DESC, mark COLLATE "C") AS j
			FROM realm.arena_ranks) AS r WHERE i <> j} ],
		[ 'slots out of order', q{(SELECT slot AS i, row_number() OVER (PARTITION BY account_id ORDER BY created_at, mark COLLATE "C") AS j
			FROM realm.players) AS p WHERE i <> j} ],
		[ 'attachments that are not there', q{realm.mail WHERE mark !~ '^T' AND attachment_id NOT IN (SELECT id FROM realm.items)} ],
		[ 'triggers that fired', 'watch.fired' ])
	{
		is($self->sql($database, "SELECT count(*) FROM $case->[1]"), 0, "$name: no $case->[0]");
	}
	return;
}

# What policies made of rows: names, and numbers within an account or a season.
sub policed
{
	my ($self, $database) = @_;

	return { map { split /\t/ } split /\n/, $self->sql($database, join ' UNION ALL ',
		q{SELECT concat_ws(E'\t', mark, concat_ws(' ', name, slot)) FROM realm.players},
		q{SELECT concat_ws(E'\t', mark, name) FROM realm.guilds},
		q{SELECT concat_ws(E'\t', mark, rank) FROM realm.arena_ranks}) };
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
# another merge brought to that database.
sub stop_at
{
	my ($self, $database, $count, %params) = @_;
	my $pattern = $params{marks} // qr/^[WE]/;
	my $marks = join ' UNION ALL ', map { "SELECT mark FROM realm.$_" } @stoppable;
	my %there = map { $_ => 1 } split /\n/, $self->sql($database, $marks);
	my %comes = $params{merged} ? map { $_ => 1 } split /\n/, $self->sql($params{merged}, $marks) : ();
	my @rows = map { my $world = $_; map { map { $_->{mark} } @{ $self->{worlds}->{$world}->{$_} } } @stoppable } @sources;
	my @chosen = choose($count, grep { $_ =~ $pattern && ($params{rollback} ? $there{$_} : !$there{$_} && (!$params{merged} || $comes{$_})) } @rows);

	$self->sql($database, 'TRUNCATE watch.stops', map { "INSERT INTO watch.stops VALUES ('$_')" } @chosen);
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

# What a schema holds, keys and all: table => checksum.
sub checksums
{
	my ($self, $database, $schema) = @_;
	my $s = quoted($schema // 'realm');
	my $checksum = q{count(*) || ' ' || md5(string_agg(t::text, E'\n' ORDER BY t::text COLLATE "C"))};
	my @queries = map { my $t = quoted($_); "SELECT '$_', $checksum FROM $s.$t AS t" } sort keys %natural;

	return { map { split /\|/ } split /\n/, $self->sql($database, join ' UNION ALL ', @queries) };
}

# The rest makes worlds.

# The values of a list in an order that the seed gives.
sub choose
{
	my ($count, @values) = @_;

	@values = map { $_->[1] } sort { $a->[0] <=> $b->[0] } map { [ rand, $_ ] } @values;
	splice @values, $count if $count < @values;
	return @values;
}

sub pick
{
	return $_[ int rand @_ ];
}

# 2016-01-01 and so many seconds.
sub moment
{
	my ($seconds) = @_;

	return strftime('%Y-%m-%d %H:%M:%S', gmtime(1_451_606_400 + $seconds)) . sprintf('.%03d+00', int rand 1000);
}

# Moments that ascend, within five years.
sub moments
{
	my ($count) = @_;
	my $step = int(150_000_000 / $count);

	return map { moment($_ * $step + int rand $step - 1) } 0 .. $count - 1;
}

sub snowflake_id
{
	my ($seconds, $sequence) = @_;

	return ((1_451_606_400 + $seconds) * 1000 - 1_288_834_974_657) * (1 << 22) + ($former_node << 12) + $sequence;
}

# So many rows, made from their numbers.
sub rows
{
	my ($count, $make) = @_;

	return [ map { { $make->($_) } } 1 .. $count ];
}

sub make_world
{
	my ($self, $letter, $number) = @_;
	my $n = $self->{scale};
	my %rows;
	my $mark = sub { sprintf '%s%s%04d', $letter, @_ };

	srand($self->{seed} * 3 + $number);

	# What worlds have in common, under ids of their own.
	my @codes = choose(18, map { sprintf 'tpl-%02d', $_ } 1 .. 24);
	my @badges = choose(8, map { "badge $_" } 1 .. 11);
	my @steps = map { my $template = $_; map { [ $template, $_ ] } 1 .. 1 + int rand 3 } 1 .. @codes;

	$rows{seasons} = rows(3 + $number, sub { (id => $_[0], title => "Season $_[0]") });
	$rows{item_templates} = rows(scalar @codes, sub {
		my $code = $codes[ $_[0] - 1 ];
		my $old = $letter ne 'T' && $_[0] <= 6 ? ' (old)' : '';    # which is declared to be accepted

		(id => $_[0], code => $code, label => "Item $code$old", rarity => (qw(common rare epic))[ substr($code, 4) % 3 ]);
	});
	$rows{upgrades} = rows(scalar @steps, sub {
		my ($template, $step) = @{ $steps[ $_[0] - 1 ] };

		(id => $_[0], template_id => $template, step => $step, cost => 100 * substr($codes[ $template - 1 ], 4) + $step);
	});
	$rows{badges} = rows(scalar @badges, sub {
		my $code = $badges[ $_[0] - 1 ];

		(id => $_[0], code => $code, 'Größe' => 7 * substr $code, 6);
	});

	# Half of the logins are on another server too.
	my $accounts = 30 * $n;
	my @logins = choose($accounts, map { sprintf 'user%03d@example.com', $_ } 1 .. 2 * $accounts);
	my @created = moments($accounts);

	$rows{accounts} = rows($accounts, sub {
		my @fax = $letter eq 'W' ? (fax => pick(undef, '555-123')) : ();

		(id => $_[0], login => $logins[ $_[0] - 1 ], customer_no => $_[0] + 1000 * $number, created => $created[ $_[0] - 1 ], @fax);
	});
	$rows{wallets} = [ map { { account_id => $_, coins => int rand 1000, mark => $mark->('w', $_) } } grep { rand() < .7 } 1 .. $accounts ];
	$rows{Select} = [ map { { account_id => $_, from => pick('a shop', "a friend's", 'nowhere'), 'Group By' => $mark->('s', $_) } }
		grep { rand() < .6 } 1 .. $accounts ];

	# Of names that are as long as they may be, many are one when they are shortened; what the first suffix makes of one is taken.
	my $players = 50 * $n;
	my @pool = map { my ($format, $count) = @$_; map { sprintf $format, $_ } 1 .. $count * $n }
	  [ 'Stormrider%02d', 25 ], [ 'Grüße%d', 15 ], [ 'Ann%d', 25 ], [ q(O'"Br%d), 10 ];
	my @names = ('Ann0', choose($players - 1, @pool));
	my @account_of = map { 1 + int rand $accounts } @names;
	my %slots;

	@names[ 1, 2 ] = ('Ann0_west', 'Ann0_west2') if $letter eq 'T';
	@created = moments($players);
	$rows{players} = rows($players, sub {
		my $account = $account_of[ $_[0] - 1 ];

		(id => $_[0], mark => $mark->('p', $_[0]), account_id => $account, slot => ++$slots{$account}, name => $names[ $_[0] - 1 ],
			guild_id => undef, level => 1 + int rand 80, created_at => $created[ $_[0] - 1 ], motto => pick('none yet', 'Über alles', ''));
	});

	# Guilds are led by one of their members; their names clash in whatever case.
	my $guilds = 8 * $n;
	my @guild_names = map { $letter eq 'W' ? uc $_ : $_ } choose($guilds, map { sprintf 'Guild of the Rose %02d', $_ } 1 .. 12 * $n);
	my @leaders = choose($guilds, 1 .. $players);

	@created = moments($guilds);
	$rows{guilds} = rows($guilds, sub {
		(id => $_[0], mark => $mark->('g', $_[0]), name => $guild_names[ $_[0] - 1 ], leader_id => $leaders[ $_[0] - 1 ],
			founded => $created[ $_[0] - 1 ]);
	});
	$_->{guild_id} = rand() < .6 ? 1 + int rand $guilds : undef foreach @{ $rows{players} };
	$rows{players}->[ $leaders[ $_ - 1 ] - 1 ]->{guild_id} = $_ foreach 1 .. $guilds;

	# A third of the items of west has snowflake ids, three of which clash with items of the target.
	my $items = 150 * $n;
	my $serial = $letter eq 'W' ? $items * 2 / 3 : $letter eq 'T' ? $items - 3 : $items;

	@created = moments($items);
	$rows{items} = rows($items, sub {
		my $template = 1 + int rand @codes;
		my $later = $_[0] - $serial;

		(id => $later <= 0 ? $_[0] : snowflake_id(160_000_000 + 100 * $later, $later % 4), mark => $mark->('i', $_[0]),
			owner_id => 1 + int rand $players, template_id => $template, rarity => $rows{item_templates}->[ $template - 1 ]->{rarity},
			quantity => 1 + int rand 20, created_at => $created[ $_[0] - 1 ]);
	});

	my @item_ids = map { $_->{id} } @{ $rows{items} };

	$rows{loadouts} = [ map { my $player = $_;
		map { { player_id => $player, slot => $_, item_ids => '{' . join(',', map { pick(@item_ids) } 1 .. int rand 5) . '}' } }
		  grep { rand() < .4 } 'main', 'Off Hand' } 1 .. $players ];
	foreach my $player (grep { rand() < .8 } 1 .. $players)
	{
		my %favourites = map { pick(@item_ids) => pick('left', 'right', '12') } 1 .. 1 + int rand 3;
		my $bars = join ', ', map { sprintf '{"key": "%s", "item": %s}', $_, pick(@item_ids) } grep { rand() < .6 } qw(q w 12);
		my $favourites = join ', ', map { qq("$_": "$favourites{$_}") } sort keys %favourites;

		my $theme = pick('dark', 'light');

		push @{ $rows{settings} }, { player_id => $player, prefs => qq({"theme": "$theme", "bars": [$bars], "favourites": {$favourites}}) };
	}

	# Mail; what was attached to some is gone.
	my $mails = 120 * $n;

	@created = moments($mails);
	$rows{mail} = rows($mails, sub {
		my $type = pick(qw(player player guild system));
		my $sender = $type eq 'player' ? 1 + int rand $players : $type eq 'guild' ? 1 + int rand $guilds : pick(undef, 0, 7);

		(id => $_[0], mark => $mark->('m', $_[0]), sender_type => $type, sender_id => $sender, receiver_id => 1 + int rand $players,
			reply_to => $_[0] > 1 && rand() < .3 ? 1 + int rand($_[0] - 1) : undef,
			attachment_id => rand() < .2 ? pick(@item_ids) : rand() < .05 ? 900_000 + $_[0] : undef, sent_at => $created[ $_[0] - 1 ]);
	});
	# Replies to what comes after them.
	$rows{mail}->[$_]->{reply_to} = $_ + 20 foreach 10, 11;

	my %friends = map { my ($lo, $hi) = sort { $a <=> $b } choose(2, 1 .. $players); "$lo $hi" => [ $lo, $hi ] } 1 .. 80 * $n;

	$rows{friendships} = [ map { { lo => $_->[0], hi => $_->[1], since => sprintf '2020-%02d-15', 1 + int rand 9 } }
		map { $friends{$_} } sort keys %friends ];
	$rows{player_badges} = [ map { my $player = $_;
		map { { player_id => $player, badge_id => $_, awarded => sprintf '2021-%02d-02', 1 + int rand 9 } }
		  choose(int rand 3, 1 .. @badges) } 1 .. $players ];

	# Ranks, with ratings that several have.
	foreach my $season (1 .. 3 + $number)
	{
		my @ranked = map { { season_id => $season, player_id => $_, mark => $mark->("r$season", $_), rating => 1000 + 10 * int rand 40 } }
		  choose(12 * $n, 1 .. $players);
		my $rank = 0;

		foreach my $row (sort { $b->{rating} <=> $a->{rating} || $a->{mark} cmp $b->{mark} } @ranked)
		{
			$row->{rank} = ++$rank;
			push @{ $rows{arena_ranks} }, $row;
		}
	}

	my @said = sort map { sprintf '%s-%02d %02d:%02d:00+00', pick(@months), 1 + int rand 28, int rand 24, int rand 60 } 1 .. 150 * $n;
	my @tabs = map { my $guild = $_; map { [ $guild, $_ ] } 1 .. 1 + int rand 3 } 1 .. $guilds;

	$rows{chat} = rows(scalar @said, sub {
		(id => $_[0], sent_at => $said[ $_[0] - 1 ], player_id => 1 + int rand $players, body => $mark->('c', $_[0]));
	});
	$rows{vaults} = [ map { { guild_id => $_->[0], tab => $_->[1], label => pick('gold', 'herbs', 'iron') } } @tabs ];
	$rows{vault_items} = rows(40 * $n, sub {
		my ($guild, $tab) = @{ pick(@tabs) };

		(id => $_[0], mark => $mark->('v', $_[0]), guild_id => $guild, tab => $tab, item_id => pick(@item_ids));
	});

	# Titles that one alone can have.
	my @titles = ('King', choose(3, 'Queen', 'Duke', 'Jarl', 'Baron', 'Count'));

	$rows{titles} = rows(scalar @titles, sub {
		(id => $_[0], mark => $mark->('t', $_[0]), title => $titles[ $_[0] - 1 ], holder_id => 1 + int rand $players);
	});
	$rows{decrees} = rows(12, sub { (id => $_[0], mark => $mark->('d', $_[0]), title_id => 1 + $_[0] % @titles) });
	$rows{votes} = rows(20, sub { (id => $_[0], mark => $mark->('o', $_[0]), title_id => pick(undef, 1 .. @titles), voter_id => 1 + int rand $players) });

	# Hosts that are gone, in the sources.
	$rows{visits} = rows(40, sub {
		my $gone = $letter ne 'T' && $_[0] % 10 == 0;

		(id => $_[0], mark => $mark->('z', $_[0]), host_id => $gone ? 900_000 + $_[0] : 1 + int rand $players, visitor_id => 1 + int rand $players);
	});

	# Without a key, and with rows that are there more than once.
	my $log = rows(30 * $n, sub {
		(guild_id => pick(undef, 1 .. $guilds), actor_id => pick(0, 1 .. $players), at => moment(int rand 150_000_000),
			'Größe' => pick('groß', 'klein', undef));
	});

	$rows{'Guild Log'} = [ @$log, @$log[ 0 .. 4, 0, 0 ] ];
	return \%rows;
}

1;
