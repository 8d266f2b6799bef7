# The programs of doc/clients.md, each with its client library: they declare a key that the server makes, insert one row
# and many, and print the ids that they got back.  These must be those in the table, to the last digit.

use strict;
use warnings FATAL => 'all';

use IPC::Run;
use PostgreSQL::Test::Utils qw(append_to_file slurp_file);
use Snowflake::Documentation qw(sql_like);
use Snowflake::Missing qw(missing);
use Snowflake::Server;
use Test::More;

my $page = slurp_file('doc/clients.md');
my $table = sql_like('doc/clients.md', qr/^CREATE TABLE orders/);
my $folder = $PostgreSQL::Test::Utils::tmp_check;

# Debian's, whose modules are Debian's, too.
my $python = '/usr/bin/python3';
my $driver = '/usr/share/java/postgresql.jar';

$ENV{NODE_PATH} = join ':', map { "$_/node_modules" } qw(/usr/local/lib /usr/lib);
$ENV{NODE_PATH} .= ':/usr/share/nodejs';

sub succeeds
{
	my (@command) = @_;

	return eval { IPC::Run::run(\@command, '<', \undef, '>', '/dev/null', '2>&1') };
}

sub has_python
{
	my ($module) = @_;

	return -x $python && succeeds($python, '-c', "import $module");
}

sub has_node
{
	my ($module) = @_;

	return succeeds('node', '-e', "require('$module')");
}

# Section of the page => whether its library is here, the program's file, how to run it; is the table made by the page's SQL?
my @clients = (
	[ 'node-postgres', sub { has_node('pg') }, 'js', 1, 'node' ],
	[ 'Drizzle', sub { has_node('pg') && has_node('drizzle-orm') }, 'js', 1, 'node' ],
	[ 'psycopg', sub { has_python('psycopg') }, 'python', 1, $python ],
	[ 'SQLAlchemy', sub { has_python('sqlalchemy, psycopg2') }, 'python', 0, $python ],
	[ 'Django', sub { has_python('django, psycopg2') }, 'python', 0, $python ],
	[ 'JDBC', sub { -f $driver && succeeds('javac', '-version') }, 'java', 1, 'java', '-XX:TieredStopAtLevel=1', '-cp', $driver ],
);

my $server = Snowflake::Server->new('one');

# The Java driver has no Unix sockets, so others on this machine reach the server, too: it wants a password from them.
open my $random, '<:raw', '/dev/urandom' or die "/dev/urandom: $!";
read $random, my $bytes, 16;
my $password = unpack 'H*', $bytes;

$server->init;
$server->configure(listen_addresses => '127.0.0.1');
truncate $server->data_dir . '/pg_hba.conf', 0;
$server->append_conf('pg_hba.conf', "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256");
$server->start;

my $user = $server->safe_psql('postgres', 'SELECT current_user');

$server->safe_psql('postgres', "ALTER ROLE \"$user\" PASSWORD '$password'");

foreach my $client (@clients)
{
	my ($section, $is_here, $language, $needs_table, @command) = @$client;

	SKIP:
	{
		my $reason = missing($is_here->() ? undef : "there is no $section");

		skip $reason, 1 if defined $reason;

		my ($code) = $page =~ /^## \Q$section\E\n(?:(?!^## ).)*?^```$language\n(.*?)^```$/ms or die "no program for $section";
		my $database = lc $section =~ s/\W//gr;
		# Java wants the file's name to be that of its class, and Python one that is no module's.
		my $file = $language eq 'java' ? "$folder/Orders.java" : "$folder/client_$database." . ($language eq 'js' ? 'js' : 'py');
		my ($out, $err) = ('', '');

		append_to_file($file, $code);
		$server->safe_psql('postgres', "CREATE DATABASE $database");
		$server->safe_psql($database, 'CREATE EXTENSION snowflake');
		$server->safe_psql($database, $table) if $needs_table;

		local %ENV = (%ENV, PGHOST => $server->host, PGPORT => $server->port, PGDATABASE => $database, PGUSER => $user);

		my @arguments = $language eq 'java' ?
			"jdbc:postgresql://127.0.0.1:@{[ $server->port ]}/$database?user=$user&password=$password" : ();

		IPC::Run::run([ @command, $file, @arguments ], '<', \undef, '>', \$out, '2>', \$err);
		is($?, 0, "$section: runs") or diag($err), next;
		is(join("\n", sort split /\n/, $out),
			$server->safe_psql($database, 'SELECT id FROM orders ORDER BY id::text COLLATE "C"'),
			"$section: its ids are those in the table");
		cmp_ok($server->safe_psql($database, 'SELECT min(id) FROM orders'), '>', 2**53, "$section: they are above 2^53");
	}
}
done_testing();
