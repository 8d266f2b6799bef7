# A server whose node number a registry grants.
#
#     my $server = Snowflake::Holder->new('one', registry => $registry, ledger => $ledger);
#     $server->init;
#     $server->configure('snowflake.node_id' => 7);
#     $server->begin;
#
# The registry is as in Snowflake::Registry.

package Snowflake::Holder;

use strict;
use warnings FATAL => 'all';

use parent 'Snowflake::Server';

use PostgreSQL::Test::Utils qw(slurp_file);
use Snowflake::Wait qw(wait_until);
use Test::More;

sub new
{
	my ($class, $name, %params) = @_;
	my $registry = delete $params{registry};
	my $self = Snowflake::Server::new($class, $name, %params);

	$self->{registry} = $registry;
	$self->{settings}->{'snowflake.node_id'} = 'auto';
	$self->{settings}->{'snowflake.registry'} = $registry->address;
	$self->{settings}->{'snowflake.claim_window'} = '3s';
	# So that two servers that were granted the same time would make the same ids.
	$self->{settings}->{'snowflake.sequence_start'} = 'zero';
	return $self;
}

# Starts a server that is new, or a copy.
sub begin
{
	my ($self) = @_;

	$self->start;
	$self->safe_psql('postgres', 'CREATE EXTENSION IF NOT EXISTS snowflake');
	return;
}

# A copy of its data directory as it is now, with its settings and a line of its own; not started.
sub copy
{
	my ($self, $name, %params) = @_;
	my $copy = Snowflake::Holder->new($name, registry => $self->{registry});

	$self->backup($name);
	$copy->init_from($self, $name, has_streaming => 0, %params);
	$copy->{line} = $name;
	return $copy;
}

# Waits until snowflake_stat shows the claim so.
sub wait_for_state
{
	my ($self, $state) = @_;

	$self->poll_query_until('postgres', "SELECT claim = '$state' FROM snowflake_stat") or die $self->name . ": the claim is not $state";
	return;
}

# Waits until there is a claim; its number.
sub held
{
	my ($self) = @_;

	$self->wait_for_state('held');
	return $self->stat('node_id');
}

# Waits until there is a claim, and clients that were started are given ids.
sub goes_on
{
	my ($self) = @_;

	$self->wait_for_state('held');
	$self->wait_for_clients(4096);
	return;
}

# Waits until ids can be made, and takes some.
sub take_in_the_end
{
	my ($self, $count) = @_;
	my ($status, $out, $err);

	eval
	{
		wait_until(
			$self->name . ' makes ids',
			sub
			{
				($status, $out, $err) = $self->psql('postgres', 'SELECT snowflake_nextval()');
				return $status == 0;
			});
		1;
	} or die "$@$err";
	$self->record($out);
	return $self->take($count);
}

# Waits until there are no ids for this reason.
sub refused_in_the_end
{
	my ($self, $pattern, $name) = @_;
	my ($status, $out, $err);

	eval
	{
		wait_until(
			$self->name . " is refused by $pattern",
			sub
			{
				($status, $out, $err) = $self->psql('postgres', 'SELECT snowflake_nextval()');
				$self->record($out) if $status == 0;
				return $status != 0 && $err =~ $pattern;
			});
		1;
	} or diag($@);
	like($err, $pattern, "$name: refused, the error says why");
	return;
}

# The same, because another has the number: the error names it.
sub refused_for
{
	my ($self, $holder, $name) = @_;
	my ($port, $directory) = ($holder->port, $holder->data_dir);

	return $self->refused_in_the_end(qr/node number \d+ is held by \S+:$port, \Q$directory\E, since /, $name);
}

# The lowest id that its clients were given.
sub first_of_clients
{
	my ($self) = @_;
	my ($first) = sort { $a <=> $b } map { slurp_file($_->{file}) =~ /^(\d+)\n/ } @{ $self->{clients} };

	return $first;
}

# The process that holds the claim; it has no session.
sub find_keeper
{
	my ($self) = @_;
	my ($pid) = map { /^\s*(\d+)\s+$self->{_pid}\s.*snowflake keeper/ } split /\n/, qx{ps -A -o pid,ppid,args};

	return $pid;
}

sub keeper
{
	my ($self) = @_;

	return $self->find_keeper // die $self->name . ' has no keeper';
}

# The keeper stands still, and goes on.
sub suspend_keeper
{
	my ($self) = @_;

	kill 'STOP', $self->keeper or die "could not suspend the keeper: $!";
	return;
}

sub resume_keeper
{
	my ($self) = @_;

	kill 'CONT', $self->keeper or die "could not resume the keeper: $!";
	return;
}

# A clean stop whose signal finds the keeper standing still: it does nothing else before it gives the claim back.
sub stop_while_keeper_sleeps
{
	my ($self) = @_;
	my $keeper = $self->keeper;

	kill 'INT', $self->{_pid} or die "could not stop the server: $!";
	wait_until('the server is being stopped', sub { slurp_file($self->logfile) =~ /received fast shutdown request/ });
	wait_until('the signal has reached the keeper', sub { slurp_file("/proc/$keeper/status") =~ /^S(?:hd|ig)Pnd:\s*[0-9a-f]*[4-7c-f][0-9a-f]{3}$/m });
	kill 'CONT', $keeper or die "could not resume the keeper: $!";
	wait_until('the server has stopped', sub { !-e $self->data_dir . '/postmaster.pid' });
	$self->_update_pid(0);
	return;
}

# Takes ids until the newest lies so many seconds ahead of the clock; max_drift allows it.
sub run_ahead
{
	my ($self, $seconds) = @_;

	until ($self->stat("drift > interval '$seconds s'") eq 't')
	{
		$self->record(split /\n/, $self->safe_psql('postgres', 'SELECT snowflake_nextval_batch(10000)'));
	}
	return;
}

# For a server whose clock is to be set: another keeper, which follows it.  The first may not: before 16 it is
# started in a signal handler, amid a call in which libfaketime does nothing.  Its claim is given back.
sub restart_keeper
{
	my ($self) = @_;
	my $first = $self->keeper;

	kill 'TERM', $first;
	wait_until($self->name . ' has another keeper', sub { ($self->find_keeper // $first) != $first });
	return;
}

1;
