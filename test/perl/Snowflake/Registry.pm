# A registry: a PostgreSQL server that has the extension in its database "postgres".
#
#     my $registry = Snowflake::Registry->new('registry');
#     $registry->init;
#     $registry->start;
#     $server->configure('snowflake.registry' => $registry->address);
#
# The role "keeper" has the rights that a server needs, and no other.  The first
# start makes both; as its owner, who knows that it is new, it settles the registry.
# It does not preload snowflake, which a registry need not.

package Snowflake::Registry;

use strict;
use warnings FATAL => 'all';

use parent 'Snowflake::Server';

use POSIX qw(ceil);
use PostgreSQL::Test::RecursiveCopy;
use Snowflake::Wait qw(wait_until);
use Time::HiRes qw(CLOCK_BOOTTIME clock_gettime);

sub new
{
	my ($class, $name, %params) = @_;
	my $self = Snowflake::Server::new($class, $name, %params);

	delete @{ $self->{settings} }{ 'shared_preload_libraries', 'snowflake.node_id' };
	return $self;
}

sub start
{
	my ($self, %params) = @_;
	my $started = $self->SUPER::start(%params);

	$self->install unless $self->{installed} || !$started;
	return $started;
}

# The schema is one of its own, and its name needs quotes.
sub install
{
	my ($self) = @_;

	$self->safe_psql('postgres', q{
		CREATE SCHEMA "Our ids";
		CREATE EXTENSION snowflake SCHEMA "Our ids";
		ALTER DATABASE postgres SET search_path = public, "Our ids";
		CREATE ROLE keeper LOGIN;
		GRANT EXECUTE ON FUNCTION snowflake_internal.registry_read, snowflake_internal.registry_list, snowflake_internal.registry_write TO keeper});
	$self->settle;
	$self->{installed} = 1;
	return;
}

# A base backup in its place.
sub put_back
{
	my ($self, $backup) = @_;
	my $directory = $self->data_dir;

	rename $directory, "$directory.before." . ++$self->{put_back} or die "could not rename $directory: $!";
	PostgreSQL::Test::RecursiveCopy::copypath($self->backup_dir . "/$backup", $directory);
	chmod 0700, $directory;
	$self->start;
	return;
}

# What a server is told that asks for a number: for how long it is not granted anew, in seconds.  While the call of another
# server looks what the registry has, the answer is "ask again in a second".
sub unsettled_for
{
	my ($self, $group, $node) = @_;
	my $unsettled;

	$group //= 'default';
	$node //= 99;
	wait_until(
		'the registry has looked what it has',
		sub
		{
			$unsettled = $self->value("unsettled FROM snowflake_internal.registry_read('$group', $node, repeat('5', 32), '1s')");
			return $unsettled != 1_000_000;
		});
	return ceil($unsettled / 1e6);
}

# The clock that a registry measures its wait by, in seconds: nobody sets it.
sub boot_time
{
	return clock_gettime(CLOCK_BOOTTIME);
}

# When it may grant a number anew, by that clock: however slow the machine is, that moment stays.
sub settled_at
{
	my ($self, $group, $node) = @_;
	my $unsettled = $self->unsettled_for($group, $node);

	return boot_time() + $unsettled;
}

# As the owner who knows that nothing is lost.  He says it again where a server was asking just then; also where that could
# not write meanwhile, which keeps a registry unsettled for a while.
sub settle
{
	my ($self) = @_;

	wait_until(
		'the registry is settled',
		sub
		{
			my ($status, undef, $error) = $self->psql('postgres', 'SELECT snowflake_registry_settle()', on_error_die => 0);

			die "could not settle the registry: $error" if $status != 0 && $error !~ /canceling statement due to lock timeout/;
			return $status == 0 && $self->unsettled_for == 0;
		});
	return;
}

# The address for snowflake.registry.  The place is this server's, or a proxy's before it; parameters as name => value.
sub address
{
	my ($self, %params) = @_;
	my $user = delete $params{user} // 'keeper';
	my $host = delete $params{host} // $self->host;
	my $port = delete $params{port} // $self->port;
	my $database = delete $params{database} // 'postgres';
	my $parameters = join '&', map { "$_=" . escape($params{$_}) } sort keys %params;

	return sprintf 'postgresql://%s@%s:%d/%s%s', $user, escape($host), $port, $database, $parameters eq '' ? '' : "?$parameters";
}

sub escape
{
	my ($text) = @_;

	return $text =~ s/([^A-Za-z0-9._-])/sprintf '%%%02X', ord $1/ger;
}

# Columns of snowflake_claims for a number, empty where there is no such claim.
sub claim
{
	my ($self, $node, $columns, $group) = @_;

	return $self->value("$columns FROM snowflake_claims WHERE node = $node AND registry_group = '" . ($group // 'default') . q{'});
}

# Waits until this is true of the claim on a number.
sub wait_for_claim
{
	my ($self, $node, $condition, $group) = @_;

	$self->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM snowflake_claims WHERE node = $node AND registry_group = '" . ($group // 'default') . "' AND ($condition)")
	  or die "no claim on node number $node with $condition";
	return;
}

1;
