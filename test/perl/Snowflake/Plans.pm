# What statements do, by the plans that auto_explain writes to the server's log: those that they run themselves, those of the
# functions that they call, and those of other databases of the server whose sessions show_plans() has told to write them.

package Snowflake::Plans;

use strict;
use warnings FATAL => 'all';

use Exporter qw(import);
use List::Util qw(sum);
use Test::More;

our @EXPORT_OK = qw(plans_of read_again show_plans work_of);

my %settings = (
	log_min_duration => '0',
	log_nested_statements => 'on',
	log_format => 'text',
	log_analyze => 'on',
	log_buffers => 'on',
	log_timing => 'off',
);

# The type of a node, its table, its rows and its loops.
my $node_line = qr/^\t\s*(?:->\ \ )?(?:Parallel\ )?([^(]+?)(?:\ using\ (?:[^"\s]+|"[^"]*"))?(?:\ on\ (\S+).*)?
	\ \ \(cost=.*\)\ \(actual\ rows=([\d.]+)\ loops=(\d+)\)$/x;

# Lets all sessions of a database write their plans: those of postgres_fdw, too.
sub show_plans
{
	my ($server, $database) = @_;

	$server->safe_psql($database, join('', "ALTER DATABASE $database SET session_preload_libraries = 'auto_explain';",
		map { "ALTER DATABASE $database SET auto_explain.$_ = $settings{$_};" } sort keys %settings));
	return;
}

# Runs a statement.  Returns the plans: the blocks that each looked at, and its nodes, with their type, the table, how often
# they were run (loops), how many rows they gave each time, and how many they left out (removed).
sub plans_of
{
	my ($server, $database, $statement) = @_;
	my $before = -s $server->logfile;
	my @plans;

	$server->safe_psql($database,
		join('', "LOAD 'auto_explain';", map { "SET auto_explain.$_ = $settings{$_};" } sort keys %settings) . $statement);
	open my $log, '<', $server->logfile or die "could not read the server's log: $!";
	seek $log, $before, 0;
	while (my $line = <$log>)
	{
		if ($line =~ /  plan:$/)
		{
			push @plans, { nodes => [] };
		}
		elsif (@plans && $line =~ $node_line)
		{
			push @{ $plans[-1]{nodes} }, { type => $1, table => $2 // '', rows => $3, loops => $4, removed => 0 };
		}
		elsif (@plans && @{ $plans[-1]{nodes} })
		{
			my $node = $plans[-1]{nodes}[-1];

			$node->{removed} += $1 if $line =~ /^\t\s*Rows Removed by [^:]+: ([\d.]+)$/;
			# Of a join or an aggregate on the other server.
			$node->{table} = $1 if $line =~ /^\t\s*Relations: (.*)$/;
			# The first are those of the whole.
			$plans[-1]{blocks} //= ($1 // 0) + ($2 // 0) if $line =~ /^\t\s*Buffers: shared(?: hit=(\d+))?(?: read=(\d+))?/;
		}
	}
	cmp_ok(scalar(grep { @{ $_->{nodes} } } @plans), '>', 10, 'plans are in the log');
	return @plans;
}

# How many rows the nodes of plans went through, those that they left out as well.
sub work_of
{
	return sum(map { $_->{loops} * ($_->{rows} + $_->{removed}) } map { @{ $_->{nodes} } } @_);
}

# The tables, and results kept in memory, that are read as a whole again and again: for each row of another.
sub read_again
{
	return map { "$_->{type} $_->{table}: $_->{loops} times" }
		grep { $_->{loops} > 100 && ($_->{type} eq 'Foreign Scan' || $_->{rows} + $_->{removed} > 250) }
		grep { $_->{type} =~ /^((Seq|Foreign|Index|Index Only|Bitmap Heap|CTE) Scan|Materialize)$/ }
		map { @{ $_->{nodes} } } @_;
}

1;
