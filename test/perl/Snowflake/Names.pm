# What a server's look-ups of host names find: a program "getent" of the test's own.
#
#     my $names = Snowflake::Names->new;
#     $server->{environment} = { $names->environment };
#     $names->answer('127.0.0.1');
#
# It notes each look-up.  No name server has been asked where it says something.

package Snowflake::Names;

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils qw(append_to_file slurp_file);
use Snowflake::Wait qw(wait_until);

sub new
{
	my ($class) = @_;
	my $self = bless { directory => PostgreSQL::Test::Utils::tempdir('names') }, $class;
	my $directory = $self->{directory};

	append_to_file("$directory/getent", <<"EOF_PROGRAM");
#!/bin/sh
# getent ahosts NAME
answer=\$(cat $directory/answer)
case \$answer in
silent) trap '' INT TERM ;;
esac
echo "\$\$ \$2" >> $directory/look_ups
case \$answer in
silent) exec sleep infinity ;;
exit*) \$answer ;;
esac
for address in \$answer
do
	for kind in STREAM DGRAM RAW
	do
		echo "\$address  \$kind \$2"
	done
done
EOF_PROGRAM
	chmod 0755, "$directory/getent" or die "could not change the mode: $!";
	append_to_file("$directory/look_ups", '');
	return $self;
}

sub environment
{
	my ($self) = @_;

	return (PATH => "$self->{directory}:$ENV{PATH}");
}

# From now on: addresses, "silent" for no end, which only SIGKILL ends, or "exit N".
sub answer
{
	my ($self, @answer) = @_;
	my $file = "$self->{directory}/answer";

	append_to_file("$file.new", "@answer\n");
	rename "$file.new", $file or die "could not rename $file: $!";
	return;
}

# The look-ups that were begun, as "PID NAME".
sub look_ups
{
	my ($self) = @_;

	return split /\n/, slurp_file("$self->{directory}/look_ups");
}

# Waits until so many more are begun.
sub wait_for_look_ups
{
	my ($self, $count) = @_;
	my $before = $self->look_ups;

	wait_until("$count more look-ups are begun", sub { $self->look_ups >= $before + $count });
	return;
}

# Waits until none goes on.
sub wait_for_end
{
	my ($self) = @_;
	my %pids = map { (split / /)[0] => 1 } $self->look_ups;

	wait_until('no look-up goes on', sub { !grep { /^\s*(\d+).*(?:sleep infinity|getent)/ && $pids{$1} } split /\n/, qx{ps -A -o pid,args} });
	return;
}

# The children of a process, those that it has not waited for included.
sub children
{
	my ($pid) = @_;

	return grep { /^\s*$pid\s/ } split /\n/, qx{ps -A -o ppid,stat,args};
}

1;
