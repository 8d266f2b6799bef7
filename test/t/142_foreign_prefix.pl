# The extensions and all modules in folders of their own, as container images bring them: from PostgreSQL 18 on.

use strict;
use warnings FATAL => 'all';

use File::Copy qw(copy);
use PostgreSQL::Test::Utils qw(slurp_file);
use Snowflake::Server;
use Test::More;

my ($version) = qx(pg_config --version) =~ /(\d+)/;
plan skip_all => 'PostgreSQL has extension_control_path from 18 on' if $version < 18;

my $prefix = "$PostgreSQL::Test::Utils::tmp_check/prefix";
my ($libraries, $share) = map { qx(pg_config --$_) =~ s/\n//r } qw(pkglibdir sharedir);

foreach my $folder ($prefix, "$prefix/lib", "$prefix/share", "$prefix/share/extension")
{
	mkdir $folder or die "could not make $folder: $!";
}
foreach my $pair (map({ [ $_, "$prefix/lib" ] } glob "$libraries/snowflake*.so"), map { [ $_, "$prefix/share/extension" ] } glob "$share/extension/snowflake*")
{
	copy(@$pair) or die "could not copy $pair->[0]: $!";
}

my $server = Snowflake::Server->new('foreign');

$server->init;
$server->configure('dynamic_library_path' => "$prefix/lib:\$libdir", 'extension_control_path' => "$prefix/share:\$system");
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake_migrate CASCADE');
is($server->safe_psql('postgres', 'SELECT count(DISTINCT snowflake_nextval()) FROM generate_series(1, 100)'), '100', 'ids are made');

# The library's files in the memory of a process.
sub files_of
{
	my ($pid) = @_;
	my %seen;

	return grep { !$seen{$_}++ } slurp_file("/proc/$pid/maps") =~ m{(/\S*/snowflake[^/\s]*\.so)}g;
}

my $session = $server->background_psql('postgres');
my $pid = $session->query('SELECT pg_backend_pid() FROM snowflake_nextval()') =~ s/\n//r;

is_deeply([ files_of($pid) ], ["$prefix/lib/snowflake.so"], 'by the library from there');
$session->quit;

# The keeper's module is beside it.
$server->configure('snowflake.registry' => 'postgresql:///postgres?host=' . $server->host . '&port=' . $server->port . '&user=' . $server->safe_psql('postgres', 'SELECT current_user'));
$server->restart;
$server->poll_query_until('postgres', q{SELECT claim = 'held' FROM snowflake_stat}) or die 'the claim is not held';
$pid = $server->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type LIKE 'snowflake%'});
is_deeply([ sort(files_of($pid)) ], [ "$prefix/lib/snowflake.so", "$prefix/lib/snowflake_postgresql.so" ], 'so does the keeper, with its module');

$server->stop;
done_testing();
