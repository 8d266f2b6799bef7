# A registry that is restored from a dump; see Snowflake::Forgetting.  The dump goes into
# a database of its own, which then takes the name of the other.  The server goes on.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Forgetting;
use Test::More;

my $scene = Snowflake::Forgetting->new;
my $registry = $scene->{registry};
# Not where another test has one of this name: they run side by side.
my $dump = $registry->basedir . "/dump.sql";

sub dump_database
{
	system_or_bail('pg_dump', '-f', $dump, '-d', $registry->connstr('postgres'));
	return;
}

sub close_database
{
	$registry->safe_psql('template1', 'ALTER DATABASE postgres ALLOW_CONNECTIONS false');
	$registry->safe_psql('template1', q{SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = 'postgres'});
	return;
}

sub put_dump_back
{
	$registry->safe_psql('template1', 'CREATE DATABASE restored');
	$registry->safe_psql('template1', 'ALTER DATABASE restored SET search_path = public, "Our ids"');
	system_or_bail('psql', '-XqAt', '-1', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $registry->connstr('restored'));
	$registry->safe_psql('template1', 'ALTER DATABASE postgres RENAME TO lost');
	$registry->safe_psql('template1', 'ALTER DATABASE restored RENAME TO postgres');
	return;
}

$scene->forget('restored from a dump',
	at_once => 1,
	save => \&dump_database,
	take_away => \&close_database,
	put_back => \&put_dump_back);
$scene->check;
done_testing();
