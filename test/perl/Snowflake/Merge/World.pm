# The worlds that are merged: their schema, and rows that a seed makes.
#
# The target is the schema "realm".  The source "west" is a schema of the same database, of the same version, with a column
# and a table more than the target has; some of its items have snowflake ids.  The source "East" is on another server,
# behind postgres_fdw, one column behind, and with its columns in the opposite order.  Serial keys start at 1 everywhere,
# and names come from one pool, so that nearly everything clashes.

package Snowflake::Merge::World;

use strict;
use warnings FATAL => 'all';

use Exporter qw(import);
use POSIX qw(strftime);

our @EXPORT_OK = qw(choose literal quoted types_sql);

our @sources = ('west', 'East');

# The title that rules leave behind.
our $banned = 'Jarl';

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
