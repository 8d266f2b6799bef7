# What a merge should make of its worlds, told without its map.
#
# Each row has a mark, which no other row of any world has, or a name
# that is its own in each world; a row's natural form is its marks and names, those of the rows it refers to, and its plain
# values.

package Snowflake::Merge::Oracle;

use strict;
use warnings FATAL => 'all';

use Snowflake::Merge::World qw(quoted);
use Test::More;

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

	@runs = ([@Snowflake::Merge::World::sources]) unless @runs;
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
	my %lost = map { $_ => 1 } map { $rows->{titles}->{$_} =~ /^\((\w+),/ }
	  grep { exists $result->{titles}->{$_} || $self->{ruled} && $_ eq $Snowflake::Merge::World::banned } keys %{ $rows->{titles} };

	push @{ $result->{'Guild Log'} }, @{ $rows->{'Guild Log'} };
	foreach my $table (grep { $_ ne 'Guild Log' } keys %$rows)
	{
		foreach my $key (keys %{ $rows->{$table} })
		{
			my $row = $rows->{$table}->{$key};

			next if $self->{ruled} && $table eq 'titles' && $key eq $Snowflake::Merge::World::banned;
			# A skipped title's decrees go with it, its votes are for nothing.
			next if $table eq 'decrees' && $row =~ /^\((\w+)\)$/ && $lost{$1};
			$row =~ s/^\((\w+)/$lost{$1} ? '(' : "($1"/e if $table eq 'votes';
			if (exists $result->{$table}->{$key})
			{
				die "$table $key is in two worlds" unless $shared{$table};
				if ($self->{ruled} && $table eq 'wallets')
				{
					$result->{$table}->{$key} = combined($result->{$table}->{$key}, $row, $replaced, $key);
					next;
				}
				next if $table ne 'wallets' || $replaced->{$key};
			}
			$replaced->{$key} = 1 if $table eq 'wallets' && !$self->{ruled};
			$result->{$table}->{$key} = $row;
		}
	}
	return;
}

# Two wallets that become one: the richest stays, with the coins of all.
sub combined
{
	my ($one, $other, $richest, $key) = @_;
	my ($sum, $mark) = $one =~ /^\((\d+),(\w+)\)$/;
	my ($coins, $other_mark) = $other =~ /^\((\d+),(\w+)\)$/;

	$richest->{$key} //= $sum;
	if ($coins > $richest->{$key})
	{
		$richest->{$key} = $coins;
		$mark = $other_mark;
	}
	$sum += $coins;
	return "($sum,$mark)";
}

# Those whose names are not as a precedence says, by the rows of all worlds: the first keeps the name, no other has it.  order compares
# two rows.
sub misnamed
{
	my ($self, $database, $table, $order) = @_;
	my %names = map { split /\t/ } split /\n/, $self->sql($database, "SELECT concat_ws(E'\\t', mark, name) FROM realm.$table");
	my %wanted;
	my @wrong;

	push @{ $wanted{ lc $_->{name} } }, $_ foreach map { @{ $self->{worlds}->{$_}->{$table} } } 'realm', @Snowflake::Merge::World::sources;
	foreach my $name (sort keys %wanted)
	{
		# sort is stable: of equal ones, the target's comes first.
		my ($first, @others) = sort { $order->($a, $b) } @{ $wanted{$name} };

		push @wrong, grep { (lc $names{$_->{mark}} eq $name) != ($_ == $first) } $first, @others;
	}
	return join ', ', map { "$_->{mark}: $_->{name} became $names{$_->{mark}}" } @wrong;
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

# What a schema holds, keys and all: table => checksum.
sub checksums
{
	my ($self, $database, $schema) = @_;
	my $s = quoted($schema // 'realm');
	my $checksum = q{count(*) || ' ' || md5(string_agg(t::text, E'\n' ORDER BY t::text COLLATE "C"))};
	my @queries = map { my $t = quoted($_); "SELECT '$_', $checksum FROM $s.$t AS t" } sort keys %natural;

	return { map { split /\|/ } split /\n/, $self->sql($database, join ' UNION ALL ', @queries) };
}

1;
