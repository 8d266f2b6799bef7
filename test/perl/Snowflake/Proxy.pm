# A network that the test can cut: a TCP proxy on 127.0.0.1 before one server.
#
#     my $proxy = Snowflake::Proxy->new($registry->host, $registry->port);
#     ... host=127.0.0.1 port=@{[ $proxy->port ]} ...
#
# It runs in a process of its own, which ends with the test.  Each command is
# answered after it has been carried out: when a method returns, it is in force.
#
# Bytes that do not pass are not read either.  They stay where they are, in the
# order in which they came, and the sender sees neither an error nor an end.
# Only when the sockets' buffers are full can it send no more.

package Snowflake::Proxy;

use strict;
use warnings FATAL => 'all';

use Errno;
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX ();
use PostgreSQL::Test::Cluster;
use Socket qw(AF_UNIX IPPROTO_TCP PF_UNSPEC SOCK_STREAM TCP_INFO TCP_NODELAY);

# The target's host may be the directory of a PostgreSQL server's unix socket.
sub new
{
	my ($class, $host, $port) = @_;
	my $self = bless {
		target => [ $host, $port ],
		port => PostgreSQL::Test::Cluster::get_free_port(),
		connections => [],
		passes => { requests => 1, answers => 1 },
	}, $class;

	socketpair($self->{control}, my $commands, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die "could not create a pair of sockets: $!";
	$self->{pid} = fork // die "could not fork: $!";
	if ($self->{pid} == 0)
	{
		# Nothing of the test's may be done by the child: no END block, no signal handler; and what the
		# test has open must be closed when the test closes it.
		$SIG{$_} = 'DEFAULT' foreach qw(HUP INT TERM __DIE__ __WARN__);
		$SIG{PIPE} = 'IGNORE';
		# The numbers stay taken: Perl would not close what it then opened under the number of another handle.
		open my $null, '<', '/dev/null' or die "could not open /dev/null: $!";
		POSIX::dup2(fileno $null, $_) foreach grep { $_ > 2 && $_ != fileno $commands } map { m{(\d+)$} } glob '/dev/fd/*';
		my $served = eval { $self->serve($commands); 1 };
		warn "proxy: $@" unless $served;
		POSIX::_exit($served ? 0 : 1);
	}
	close $commands;
	$self->accept;
	return $self;
}

sub port
{
	my ($self) = @_;

	return $self->{port};
}

# No byte passes either way; connections stay, and new ones are accepted, which reach the server when bytes pass again.
sub stop_passing
{
	my ($self) = @_;

	return $self->command('pass');
}

# What clients send reaches the server, what it answers is held: a commit whose outcome is unknown.
sub stop_passing_answers
{
	my ($self) = @_;

	return $self->command('pass requests');
}

# All bytes pass, first those that were held.
sub pass_again
{
	my ($self) = @_;

	return $self->command('pass requests answers');
}

# Closes all connections, with what they held; new ones are accepted as before.
sub cut
{
	my ($self) = @_;

	return $self->command('cut');
}

# New connections are refused, as where no server listens; those there are stay.
sub refuse
{
	my ($self) = @_;

	return $self->command('refuse');
}

sub accept
{
	my ($self) = @_;

	return $self->command('accept');
}

# How many connections there are; the end of one that passes no bytes is not seen.
sub connections
{
	my ($self) = @_;

	return $self->command('connections');
}

# Ends the proxy, and with it all connections.
sub stop
{
	my ($self) = @_;

	close $self->{control};
	local $?;
	waitpid $self->{pid}, 0;
	return;
}

sub command
{
	my ($self, $command) = @_;

	syswrite $self->{control}, $command or die "the proxy has ended: $!";
	sysread $self->{control}, my $answer, 100 or die "the proxy has ended at \"$command\"";
	return $answer;
}

# The rest runs in the child.

# Until the test has closed its end of the commands.
sub serve
{
	my ($self, $commands) = @_;

	for (;;)
	{
		$self->wait($commands);
		$self->take_new_connections;
		if (IO::Select->new($commands)->can_read(0))
		{
			sysread $commands, my $command, 100 or return;
			syswrite $commands, $self->execute(split / /, $command);
		}
		$self->{connections} = [ grep { $self->pass_bytes($_) } @{ $self->{connections} } ];
	}
}

# Until there is something to do.  The lists hold what may then be closed, and must be gone by then.
sub wait
{
	my ($self, $commands) = @_;
	my $readers = IO::Select->new($commands, $self->{listener} // ());
	my $writers = IO::Select->new;

	foreach my $way (map { $self->open_ways($_) } @{ $self->{connections} })
	{
		$writers->add($way->{to}) if $way->{bytes} ne '';
		$readers->add($way->{from}) if $way->{bytes} eq '' && !$way->{ended};
	}
	IO::Select->select($readers, $writers);
	return;
}

sub execute
{
	my ($self, $command, @ways) = @_;

	if ($command eq 'pass')
	{
		$self->{passes} = { map { $_ => 1 } @ways };
		$self->{connections} = [ grep { $self->connect($_) } @{ $self->{connections} } ];
	}
	elsif ($command eq 'cut')
	{
		$self->{connections} = [];
	}
	elsif ($command eq 'refuse')
	{
		delete $self->{listener};
	}
	elsif ($command eq 'accept')
	{
		$self->{listener} //= IO::Socket::INET->new(
			LocalAddr => '127.0.0.1', LocalPort => $self->{port}, Listen => 128, ReuseAddr => 1, Blocking => 0)
		  // die "could not listen at port $self->{port}: $@";
	}
	return scalar @{ $self->{connections} };
}

# Also before each command: for its client a connection is there as soon as the kernel has it.
sub take_new_connections
{
	my ($self) = @_;

	while (my $client = $self->{listener} && $self->{listener}->accept)
	{
		my $connection = { client => $client };

		push @{ $self->{connections} }, $connection if $self->connect($connection);
	}
	return;
}

# Connects with the server, unless no request passes; false where the server takes no connection.
sub connect
{
	my ($self, $connection) = @_;
	my ($host, $port) = @{ $self->{target} };
	my $client = $connection->{client};

	return 1 if $connection->{ways} || !$self->{passes}->{requests};
	# Of those that were held most clients have given up: all at once, they would be too many for the server.
	return 0 unless is_there($client);
	my $server =
	  $host =~ m{^/}
	  ? IO::Socket::UNIX->new(Peer => "$host/.s.PGSQL.$port")
	  : IO::Socket::INET->new(PeerAddr => $host, PeerPort => $port);
	return 0 unless $server;
	foreach my $socket ($client, $server)
	{
		$socket->blocking(0);
		setsockopt $socket, IPPROTO_TCP, TCP_NODELAY, 1 unless $socket->isa('IO::Socket::UNIX');
	}
	$connection->{ways} = {
		requests => { from => $client, to => $server, bytes => '', ended => 0 },
		answers => { from => $server, to => $client, bytes => '', ended => 0 },
	};
	return 1;
}

# Has the client not closed its end?  What it sent before that need not have been read.
sub is_there
{
	my ($client) = @_;

	# The first byte is the connection's state.
	return ord(getsockopt($client, IPPROTO_TCP, TCP_INFO) // "\0") == 1;
}

# The ways of a connection on which bytes pass.
sub open_ways
{
	my ($self, $connection) = @_;

	return map { $connection->{ways} ? $connection->{ways}->{$_} : () } keys %{ $self->{passes} };
}

# Passes what is there; false when the connection is over, or broken.
sub pass_bytes
{
	my ($self, $connection) = @_;

	foreach my $way ($self->open_ways($connection))
	{
		if ($way->{bytes} eq '' && !$way->{ended})
		{
			my $count = sysread $way->{from}, $way->{bytes}, 65536;

			return 0 unless defined $count || $!{EAGAIN};
			if (defined $count && $count == 0)
			{
				$way->{ended} = 1;
				shutdown $way->{to}, 1;
			}
		}
		if ($way->{bytes} ne '')
		{
			my $count = syswrite $way->{to}, $way->{bytes};

			return 0 unless defined $count || $!{EAGAIN};
			substr $way->{bytes}, 0, $count // 0, '';
		}
	}
	return !$connection->{ways} || grep { !$_->{ended} } values %{ $connection->{ways} };
}

1;
