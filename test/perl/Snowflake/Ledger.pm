# Ids as their clients received them, kept outside the database.
#
# Rows hide the ids that were lost with the WAL; these files do not.  Each file
# has the ids that one session was given, one a line, in the order in which they
# came.  A file belongs to a line, whose ids must ascend (the servers that use
# one node number, one after the other), and to a phase of it: whatever is in a
# later phase was asked for after all of the phases before had been answered.
#
# problems() must find nothing: the ids of a file ascend, each phase's lie above
# those of the phases before, and none is there twice, over all lines.

package Snowflake::Ledger;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use File::Basename;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT_OK = qw(cut_to_whole_lines);

my $ledgers = 0;

sub new
{
	my ($class) = @_;
	my $test = basename($0, '.pl');
	my $directory = "$PostgreSQL::Test::Utils::tmp_check/${test}_ids_" . ++$ledgers;

	mkdir $directory or die "could not create $directory: $!";
	return bless {
		directory => $directory,
		phases => {},    # by line: a list of lists of files
		files => 0,
	}, $class;
}

# Begins a phase of a line.
sub next_phase
{
	my ($self, $line) = @_;

	push @{ $self->{phases}->{$line} }, [];
	return;
}

# The name of a new file in the line's phase.
sub file
{
	my ($self, $line) = @_;
	my $file = sprintf '%s/%04d_%s', $self->{directory}, $self->{files}++, $line;

	$self->next_phase($line) unless exists $self->{phases}->{$line};
	push @{ $self->{phases}->{$line}->[-1] }, $file;
	return $file;
}

# Records ids that were received one after the other.
sub record
{
	my ($self, $line, @ids) = @_;

	append_to_file($self->file($line), join('', map { "$_\n" } @ids));
	return;
}

# A client that lost its connection may have written half an id last.
sub cut_to_whole_lines
{
	my ($file) = @_;
	my $content = -s $file ? slurp_file($file) : '';
	my $whole = rindex($content, "\n") + 1;

	truncate $file, $whole or die "could not cut $file: $!";
	return;
}

# What is wrong, in words; the number of ids goes to *$count.
sub problems
{
	my ($self, $count) = @_;
	my (@problems, @files);

	$$count = 0;
	foreach my $line (sort keys %{ $self->{phases} })
	{
		my $before = -1;    # the highest id of the phases before

		foreach my $phase (@{ $self->{phases}->{$line} })
		{
			my $highest = $before;

			foreach my $file (grep { -s $_ } @$phase)
			{
				my $last = $before;
				my $steps_back = 0;

				open my $ids, '<', $file or die "could not open $file: $!";
				while (my $id = <$ids>)
				{
					$steps_back++ if $id <= $last;
					$last = $id;
					$$count++;
				}
				close $ids;
				push @problems, "$file: $steps_back steps back or repetitions" if $steps_back > 0;
				$highest = $last if $last > $highest;
				push @files, $file;
			}
			$before = $highest;
		}
	}

	push @problems, repetitions(@files) if @files > 0;
	return @problems;
}

# Ids that are there twice, the first few, in files that ascend.
sub repetitions
{
	my (@files) = @_;
	my @repeated;
	my $last = '';
	local $ENV{LC_ALL} = 'C';

	open my $ids, '-|', 'sort', '-n', '-m', @files or die "could not run sort: $!";
	while (my $id = <$ids>)
	{
		push @repeated, "issued more than once: $id" if $id eq $last && @repeated < 5;
		$last = $id;
	}
	close $ids or die 'could not sort the ids';
	return @repeated;
}

# The test that there are ids, and that all is well with them.
sub check
{
	my ($self, $name) = @_;
	my @problems = $self->problems(\my $count);

	cmp_ok($count, '>', 0, "$name: ids were recorded");
	is(join("\n", @problems), '', "$name: no id twice, none out of order");
	note "$count ids";
	unlink map { map { @$_ } @$_ } values %{ $self->{phases} } if @problems == 0;
	return;
}

1;
