# Runs the SQL of the documentation, page by page, and compares the output that the pages show.
#
# Each page has a database of its own, on a server with node number 103.  A block that needs more names a setup in the
# comment before it; CONTRIBUTING.md lists the words of these comments.
#
# With DOCUMENTATION_OUTPUT=FOLDER, a folder that the test may write to, the test writes the pages there as they would
# be with the output as it is now.

use strict;
use warnings FATAL => 'all';

use File::Basename qw(basename);
use IPC::Run;
use PostgreSQL::Test::Utils;
use Snowflake::Documentation qw(pages blocks);
use Snowflake::Holder;
use Snowflake::Registry;
use Snowflake::Server;
use Test::More;

my $main = started('main', 'snowflake.node_id' => 103);
my %servers = (main => $main);

# As in the pages: English messages, times in UTC.
$ENV{PGTZ} = 'UTC';

sub started
{
	my ($name, %settings) = @_;
	my $server = Snowflake::Server->new($name);

	$server->init(extra => [ '--encoding=UTF8', '--no-locale' ]);
	$server->configure(%settings);
	$server->start;
	return $server;
}

# A server that is started when it is asked for first.
sub server
{
	my ($name, $make) = @_;

	return $servers{$name} //= $make->();
}

sub has_database
{
	my ($server, $name) = @_;

	return $server->safe_psql('postgres', "SELECT count(*) FROM pg_database WHERE datname = '$name'");
}

sub database
{
	my ($server, $name, $statements) = @_;

	$server->safe_psql('postgres', "CREATE DATABASE $name") unless has_database($server, $name);
	$server->safe_psql($name, $statements) if defined $statements;
	return [ $server, $name ];
}

sub example
{
	my ($server, $name, $file, %variables) = @_;

	run_log([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', (map { ('-v', "$_=$variables{$_}") } sort keys %variables),
			'-d', $server->connstr($name), '-o', '/dev/null', '-f', "examples/merge/$file.sql" ])
	  or die "$file.sql failed";
	return;
}

sub registry
{
	return server('registry', sub {
		my $registry = Snowflake::Server->new('registry');

		delete @{ $registry->{settings} }{ 'shared_preload_libraries', 'snowflake.node_id' };
		$registry->init;
		$registry->start;
		return $registry;
	});
}

# With pgEdge's extension, as far as the catalogs tell: its function names the symbol that this library has, too.
sub theirs
{
	my ($name) = @_;
	my $server = server('pgedge', sub { started('pgedge', 'snowflake.node_id' => 5, 'snowflake.layout' => 'pgedge') });

	return database($server, $name, q{
		CREATE SCHEMA snowflake;
		CREATE SEQUENCE snowflake.id_seq;
		CREATE FUNCTION snowflake.nextval(regclass = 'snowflake.id_seq'::regclass) RETURNS bigint
			AS '$libdir/snowflake', 'snowflake_nextval' LANGUAGE C;
		WITH made AS (
			INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
			SELECT pg_nextoid('pg_extension', 'oid', 'pg_extension_oid_index'), 'snowflake', 10,
				'snowflake'::regnamespace, false, '2.4' RETURNING oid)
		INSERT INTO pg_depend
		SELECT 'pg_extension'::regclass, oid, 0, 'pg_namespace'::regclass, 'snowflake'::regnamespace, 0, 'n' FROM made;
		ALTER EXTENSION snowflake ADD FUNCTION snowflake.nextval(regclass);
		ALTER EXTENSION snowflake ADD SEQUENCE snowflake.id_seq;
		CREATE SEQUENCE orders_id_seq;
		CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake.nextval('orders_id_seq'), customer int);
		INSERT INTO orders VALUES (150000000000020481, 1)});
}

# A writer of pgEdge's database: its ids ascend, whatever default makes them.
sub writes
{
	my ($database) = @_;
	my $newest = $servers{pgedge}->safe_psql($database, 'SELECT max(id) FROM orders');
	my $id = $servers{pgedge}->safe_psql($database, 'INSERT INTO orders (customer) VALUES (2) RETURNING id');

	return cmp_ok($id, '>', $newest, "doc/coming-over.md: writers of $database go on");
}

# What blocks need besides: each says on which server and in which database its block runs, and, where "stays" follows,
# all later ones of the page, too.
my %setups = (
	# Two shards that were given one number; the clock of the second is behind.
	shards => sub {
		my @shards = map { my $n = $_; server("shard$n", sub {
			my $shard = Snowflake::Server->new("shard$n");

			$shard->set_clock($n == 1 ? 0 : -3600);
			$shard->init;
			$shard->start;
			$shard->safe_psql('postgres',
				'CREATE EXTENSION snowflake; CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint);
				 SELECT snowflake_nextval()');
			return $shard;
		}) } (1, 2);

		return [ $main, 'coordinator' ] if has_database($main, 'coordinator');
		return database($main, 'coordinator', join ';', 'CREATE EXTENSION snowflake', 'CREATE EXTENSION postgres_fdw',
			'CREATE TABLE orders (id bigint NOT NULL DEFAULT snowflake_nextval(), customer_id bigint NOT NULL)
				PARTITION BY RANGE (customer_id)',
			'SELECT snowflake_nextval()',
			map { my ($shard, $name, $from) = ($shards[$_], 'shard' . ($_ + 1), 1 + 1000 * $_);
				my ($host, $port, $to) = ($shard->host, $shard->port, $from + 1000);
				"CREATE SERVER $name FOREIGN DATA WRAPPER postgres_fdw
					OPTIONS (host '$host', port '$port', dbname 'postgres');
				 CREATE USER MAPPING FOR CURRENT_USER SERVER $name;
				 CREATE FOREIGN TABLE orders_$name PARTITION OF orders FOR VALUES FROM ($from) TO ($to)
					SERVER $name OPTIONS (table_name 'orders')" } (0, 1));
	},
	# One that has made no ids.
	fresh_server => sub {
		my $server = server('fresh', sub { started('fresh', 'snowflake.node_id' => 7) });

		return database($server, 'postgres', 'CREATE EXTENSION IF NOT EXISTS snowflake');
	},
	not_preloaded => sub {
		my $server = server('unloaded', sub { started('unloaded') });

		$server->safe_psql('postgres', 'CREATE EXTENSION snowflake; SELECT snowflake_nextval()');
		$server->configure('shared_preload_libraries' => undef, 'snowflake.node_id' => undef);
		$server->restart;
		return [ $server, 'postgres' ];
	},
	registry => sub { return [ registry(), 'postgres' ] },
	claims => sub { return [ registry(), 'ids' ] },
	registry_database => sub {
		return [ registry(), 'ids' ] if $servers{registry} && has_database(registry(), 'ids');
		return database($main, 'own_registry', 'CREATE EXTENSION IF NOT EXISTS snowflake');
	},
	holder => sub {
		my $holder = server('holder', sub {
			my $holder = Snowflake::Holder->new('holder', registry => registry_for_holder());

			$holder->init;
			$holder->begin;
			return $holder;
		});

		$holder->held;
		return [ $holder, 'postgres' ];
	},
	# Node number 5, which was claimed once.
	spoilt_claim => sub {
		my $holder = server('fifth', sub {
			my $holder = Snowflake::Holder->new('fifth', registry => registry_for_holder());

			$holder->init;
			$holder->configure('snowflake.node_id' => 5);
			$holder->begin;
			return $holder;
		});

		$holder->held;
		$holder->stop;
		return [ registry(), 'ids' ];
	},
	orders => sub { return database($main, 'to_be_dropped',
		'CREATE EXTENSION snowflake; CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval())') },
	shop => sub {
		my ($place) = @_;

		$place->[0]->safe_psql($place->[1], q{
			CREATE TABLE customers (id serial PRIMARY KEY, name text);
			CREATE TABLE orders (id serial PRIMARY KEY, customer int REFERENCES customers);
			INSERT INTO customers (name) SELECT 'customer ' || n FROM generate_series(1, 1000) AS n;
			INSERT INTO orders (customer) SELECT n FROM generate_series(1, 1000) AS n;
			CREATE VIEW open_orders AS SELECT id, customer FROM orders;
			CREATE FUNCTION orders_of(customer_id int) RETURNS bigint LANGUAGE sql
				AS 'SELECT count(*) FROM orders WHERE customer = customer_id'});
		return $place;
	},
	plan => sub {
		my ($place) = @_;

		$place->[0]->safe_psql($place->[1], q{
			CREATE TABLE players (id serial PRIMARY KEY, name text);
			CREATE TABLE matches (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, winner int REFERENCES players);
			INSERT INTO players (name) SELECT 'player ' || n FROM generate_series(1, 1000) AS n;
			INSERT INTO matches (winner) SELECT n FROM generate_series(1, 1000) AS n});
		return $place;
	},
	merger => sub {
		my ($place) = @_;

		$place->[0]->safe_psql($place->[1], 'CREATE ROLE merger');
		return $place;
	},
	# The guide's two game servers: avalon here, camelot on a server of its own.
	game => sub {
		my %plain = ('shared_preload_libraries' => undef, 'snowflake.node_id' => undef);
		my $camelot = server('camelot', sub { started('camelot', %plain) });

		database($main, 'game');
		foreach my $world ([ $main, 'game', 'avalon', 1 ], [ $camelot, 'postgres', 'camelot', 2 ])
		{
			my ($server, $name, $realm, $seed) = @$world;

			example($server, $name, 'schema');
			example($server, $name, 'generate', server => $realm, seed => $seed, players => 300,
				opened => '2022-11-15');
		}
		my $user = $main->safe_psql('game', 'SELECT current_user');

		$main->safe_psql('game', slurp_file('examples/merge/connect.sql') =~ s/:'folder'/"'" . $camelot->host . "'"/er
			=~ s/:'port'/"'" . $camelot->port . "'"/er =~ s/user 'postgres'/user '$user'/r);
		return [ $main, 'game', 'stays' ];
	},
	app => sub {
		$main->safe_psql('postgres', 'CREATE ROLE app LOGIN');
		return [ $main, 'postgres' ];
	},
	older_source => sub {
		return database($main, 'older', q{
			CREATE EXTENSION postgres_fdw;
			CREATE SERVER camelot FOREIGN DATA WRAPPER postgres_fdw;
			CREATE SCHEMA camelot;
			CREATE FOREIGN TABLE camelot.players (id int, account_id int, guild_id int, nick text, class text,
				level int, gold bigint, created_at timestamptz) SERVER camelot});
	},
	# The guide's next run has the number 4.
	next_run => sub { return database($main, 'game', q{SELECT setval('snowflake_migrate_internal.run_number', 3)}) },
	declared => sub {
		example($main, 'game', 'declare');
		return [ $main, 'game' ];
	},
	wallets => sub {
		return database($main, 'game', 'CREATE TABLE wallets (account_id bigint PRIMARY KEY, gold bigint);
			CREATE TABLE camelot.wallets (account_id int PRIMARY KEY, gold bigint)');
	},
	support => sub {
		$main->safe_psql('game', 'CREATE ROLE support');
		return [ $main, 'game' ];
	},
	php => sub {
		my $server = server('php', sub { started('php', 'snowflake.node_id' => 103,
			'snowflake.layout' => 'twitter epoch:1508945092000') });
		my $place = database($server, 'php', "CREATE EXTENSION snowflake;
			CREATE TABLE messages (id bigint PRIMARY KEY, body text);
			INSERT INTO messages VALUES (840325906039058434, 'made by the application')");

		return [ @$place, 'stays' ];
	},
	theirs => sub { return theirs('shop') },
	still_theirs => sub { return [ $servers{pgedge}, 'shop' ] },
	ours => sub {
		writes('shop');
		return [ $servers{pgedge}, 'shop' ];
	},
	still_ours => sub {
		writes('shop');
		return [ $servers{pgedge}, 'shop' ];
	},
	left_out => sub { return theirs('left_out') },
	mask => sub {
		my ($place) = @_;

		$place->[0]->safe_psql($place->[1], 'CREATE ROLE stranger');
		return $place;
	},
	letters_deleted => sub {
		return database($main, 'game', q{DELETE FROM mail WHERE subject LIKE 'You are called %'});
	},
);

# What must hold after a block with a setup.
my %afterwards = (
	theirs => sub { return writes('shop') },
	ours => sub { return writes('shop') },
	still_ours => sub { return writes('shop') },
	left_out => sub {
		$servers{pgedge}->safe_psql('left_out', 'BEGIN; ALTER EXTENSION snowflake DROP FUNCTION snowflake.nextval(regclass);
			ALTER EXTENSION snowflake DROP SEQUENCE snowflake.id_seq; DROP EXTENSION snowflake; COMMIT');
		return writes('left_out');
	},
	mask => sub {
		foreach my $call ('public_id(1)', "private_id('order_2WuKf9bWXGj')")
		{
			my ($status, undef, $err) = run_sql($main, 'page_getting_started', "SET ROLE stranger; SELECT $call");

			isnt($status, 0, "doc/getting-started.md: another role does not execute $call");
			like($err, qr/permission denied for function/, '... for want of the right');
		}
	},
	support => sub {
		is($main->safe_psql('game', 'SET ROLE support; SELECT count(*) > 0 FROM snowflake_migrate.map WHERE run = 5'),
			't', 'doc/merging.md: the role "support" reads the map');
	},
);

# A registry as Snowflake::Holder wants it: in the database that the page has made.
sub registry_for_holder
{
	my $registry = registry();

	return bless { %$registry }, 'Documented::Registry';
}

# As (status, output, errors).
sub run_sql
{
	my ($server, $name, $sql) = @_;
	my ($out, $err) = ('', '');

	IPC::Run::run([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-P', 'footer=off', '-d', $server->connstr($name) ],
		'<', \$sql, '>', \$out, '2>', \$err);
	return ($? >> 8, $out, $err);
}

sub trimmed
{
	my ($text) = @_;

	return $text =~ s/[ \t]+$//gmr =~ s/^\n+|\n+\z//gr;
}

# Without what varies: ids, times, intervals, sizes, widths of columns.
sub without_variation
{
	my ($text) = @_;

	$text =~ s/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?\+00/TIME/g;
	$text =~ s/-?\d\d:\d\d:\d\d(\.\d+)?/INTERVAL/g;
	$text =~ s/\b\d{12,}\b/ID/g;
	$text =~ s/\b\d+ kB\b/SIZE/g;
	$text =~ s/-{2,}/-/g;
	$text =~ s/^ +//gm;
	$text =~ s/ *\| */|/g;
	$text =~ s/[ +]+$//gm;
	$text =~ s/ {2,}/ /g;
	# An older EXPLAIN's.
	$text =~ s/ \(returns \$0\)//g;
	# From 19 on it has a name for a number.
	$text =~ s/InitPlan \w+/InitPlan/g;
	return $text;
}

# The first lines, which have the names of the columns.
sub columns
{
	my ($text) = @_;
	my ($line) = $text =~ /\A(.*)/;

	return join '|', map { s/^ +| +$//gr } split /\|/, $line;
}

# A line "..." stands for any lines.
sub pattern
{
	my ($text) = @_;

	return join '', map { /^ *\.\.\.\n?$/ ? '(?s:.*)' : quotemeta } $text =~ /^.*\n?/mg;
}

sub check_output
{
	my ($block, $name, $output) = @_;
	my ($marks, $expected) = ($block->{marks}, trimmed($block->{output}));

	$output = trimmed($output);
	return is(columns($output), columns($expected), "$name: its columns") if $marks->{columns};
	if ($marks->{vary})
	{
		$expected = without_variation($expected);
		$output = without_variation($output);
	}
	return like($output, qr/\A${\ pattern($expected)}\z/, "$name: its output") if $expected =~ /^ *\.\.\.$/m;
	return is($output, $expected, "$name: its output");
}

# Where a page's output is to be written, as it is now.
my $folder = $ENV{DOCUMENTATION_OUTPUT};

foreach my $page (pages())
{
	my @blocks = blocks($page);
	my $name = 'page_' . lc basename($page, '.md') =~ s/\W/_/gr;
	my $makes_extension = grep { $_->{sql} =~ /^CREATE EXTENSION snowflake;/m && !$_->{marks}->{setup} } @blocks;
	my $place = database($main, $name, $makes_extension ? undef : 'CREATE EXTENSION snowflake');
	my $text = slurp_file($page);
	my $shift = 0;

	foreach my $block (@blocks)
	{
		my ($marks, $where) = ($block->{marks}, "$page, line $block->{line}");
		my $here = $place;

		if (defined $marks->{elsewhere})
		{
			like(slurp_file($marks->{elsewhere}), qr/\Q$page\E/, "$where: $marks->{elsewhere} runs it");
			next;
		}
		if (defined $marks->{setup})
		{
			my $setup = $setups{ $marks->{setup} } or die "$where: there is no setup $marks->{setup}";

			$here = $setup->($place);
			$place = $here if defined $here->[2];
		}
		my ($status, $out, $err) = run_sql($here->[0], $here->[1], $block->{sql});

		if ($marks->{error})
		{
			# Without where in the statement or in a function it is.
			$out = $err =~ s/^(LINE \d+:| +\^|CONTEXT: ).*\n//gmr;
			isnt($status, 0, "$where: fails");
		}
		else
		{
			is($status, 0, "$where: runs") or diag($err);
		}
		$afterwards{ $marks->{setup} }->() if defined $marks->{setup} && $afterwards{ $marks->{setup} };
		next unless defined $block->{output};
		if (!check_output($block, $where, $out))
		{
			my $new = join '', map { $block->{indent} . "$_\n" } split /\n/, trimmed($out);

			substr($text, $block->{start} + $shift, $block->{length}) = $new;
			$shift += length($new) - $block->{length};
		}
	}
	if (defined $folder)
	{
		my $copy = "$folder/" . basename($page);

		unlink $copy;
		append_to_file($copy, $text);
	}
}
done_testing();

package Documented::Registry;

our @ISA;
BEGIN { @ISA = ('Snowflake::Registry') }

sub address
{
	my ($self, %params) = @_;

	return $self->SUPER::address(%params, database => 'ids');
}
