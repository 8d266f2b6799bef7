# A ZooKeeper server of the test's own, on 127.0.0.1.
#
# It is a standalone server with a tick of 200 ms, so that sessions can be as
# short as 400 ms.  What it has acknowledged outlives kill() and stop().  Its
# data and its log are below tmp_check; the server ends with the test.

package Snowflake::ZooKeeper;

use strict;
use warnings FATAL => 'all';
# Sessions' ids have 64 bits.
no warnings 'portable';

use File::Basename;
use IO::Select;
use IO::Socket::INET;
use IPC::Run;
use POSIX qw(WNOHANG WUNTRACED);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils qw(append_to_file slurp_file);
use Snowflake::Missing qw(missing);
use Snowflake::Wait qw(wait_until);

my $jar = '/usr/share/java/zookeeper.jar';
# What is not there is ignored.
my $log_jar = '/usr/share/java/slf4j-simple.jar';
my @java = qw(java -Xmx128m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC);

# Process ids of the servers that run.
my %running;

# Why there can be no ZooKeeper here; undef where there can.
sub missing_server
{
	return missing(
		!(grep { -x "$_/java" } split /:/, $ENV{PATH}) ? 'there is no java'
		: !-e $jar ? "there is no $jar"
		: undef);
}

# Why nothing can speak to one, whoever made it.
sub missing_library
{
	return missing(-e module() ? undef : 'snowflake was built without the library for ZooKeeper');
}

# Why servers can have no registry in one.
sub missing_registry
{
	return missing_server() // missing_library();
}

# The library that speaks to it.
sub module
{
	return qx(pg_config --pkglibdir) =~ s/\n//r . '/snowflake_zookeeper.so';
}

sub new
{
	my ($class, $name) = @_;
	my $test = basename($0, '.pl');

	$name //= 'zookeeper';
	my $self = bless {
		port => PostgreSQL::Test::Cluster::get_free_port(),
		directory => "$PostgreSQL::Test::Utils::tmp_check/${test}_$name",
		logfile => "$PostgreSQL::Test::Utils::log_path/${test}_$name.log",
	}, $class;

	mkdir $_ or die "could not create $_: $!" foreach $self->{directory}, "$self->{directory}/data";
	append_to_file("$self->{directory}/zoo.cfg", <<"END");
clientPortAddress=127.0.0.1
clientPort=$self->{port}
dataDir=$self->{directory}/data
tickTime=200
maxSessionTimeout=3600000
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=*
END
	return $self;
}

sub port
{
	my ($self) = @_;

	return $self->{port};
}

sub address
{
	my ($self) = @_;

	return "127.0.0.1:$self->{port}";
}

sub logfile
{
	my ($self) = @_;

	return $self->{logfile};
}

# Returns when it serves clients.
sub start
{
	my ($self) = @_;

	die 'the ZooKeeper server runs already' if $self->{pid};
	my $pid = fork // die "could not fork: $!";
	if ($pid == 0)
	{
		open STDIN, '<', '/dev/null';
		open STDOUT, '>>', $self->{logfile};
		open STDERR, '>&', \*STDOUT;
		# Its log files are made as long as this at once, in KB.
		{ exec @java, '-Dzookeeper.preAllocSize=1024', '-cp', "$jar:$log_jar",
			'org.apache.zookeeper.server.quorum.QuorumPeerMain', "$self->{directory}/zoo.cfg" };
		POSIX::_exit(1);
	}
	$self->{pid} = $pid;
	$running{$pid} = 1;

	wait_until(
		'the ZooKeeper server answers',
		sub
		{
			# A connection that comes too early may be left without an answer.
			return 1 if $self->ask('srvr', 0.5) =~ /^Mode: standalone$/m;
			return 0 if waitpid($pid, WNOHANG) != $pid;
			delete $running{ delete $self->{pid} };
			die "the ZooKeeper server has ended:\n" . slurp_file($self->{logfile});
		});
	return;
}

sub stop
{
	my ($self) = @_;

	return $self->end('TERM');
}

# As by a crash.
sub kill
{
	my ($self) = @_;

	return $self->end('KILL');
}

sub end
{
	my ($self, $signal) = @_;
	my $pid = delete $self->{pid} // die 'the ZooKeeper server does not run';

	local $?;
	CORE::kill($signal, $pid);
	CORE::kill('CONT', $pid);
	waitpid $pid, 0;
	delete $running{$pid};
	return;
}

# It answers nothing, but its connections stay, and new ones get as far as the kernel.  Whether a session
# outlives a pause longer than its timeout is not certain: expire_sessions() makes it so.
sub suspend
{
	my ($self) = @_;

	CORE::kill('STOP', $self->{pid});
	# Until all of its threads stand still.
	local $?;
	waitpid $self->{pid}, WUNTRACED;
	return;
}

sub resume
{
	my ($self) = @_;

	CORE::kill('CONT', $self->{pid});
	return;
}

# Sends a command of four letters, or other bytes, over a connection of its own.  The answer is what comes until
# its end, or until nothing has come for so many seconds; nothing where there is no server.
sub ask
{
	my ($self, $bytes, $patience) = @_;
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}) // return '';
	my $answer = '';

	$patience //= $PostgreSQL::Test::Utils::timeout_default;
	syswrite $socket, $bytes;
	1 while IO::Select->new($socket)->can_read($patience) && sysread $socket, $answer, 65536, length $answer;
	return $answer;
}

# The ids of all sessions, in hexadecimal digits; also of those whose client has no connection now.
sub sessions
{
	my ($self) = @_;
	my ($tracked) = $self->ask('dump') =~ /^SessionTracker dump:\n(.*)^ephemeral nodes dump:/ms
	  or die 'the ZooKeeper server does not tell its sessions';

	return $tracked =~ /^\s*0x([0-9a-f]+)/mg;
}

# Ends every session, as the server does with one from which it has not heard for its timeout: their ephemeral
# znodes are gone, and their clients are told so when they come back, which they do at once.
#
# Whoever has a session's id and password can close it.  The server does not keep passwords but computes them.
sub expire_sessions
{
	my ($self) = @_;
	my %expiring = map { $_ => 1 } $self->sessions;

	wait_until(
		'the ZooKeeper server has closed its sessions',
		sub
		{
			my @left = grep { $expiring{$_} } $self->sessions;

			# Again where the client came between, with a connection that took over the session.
			foreach my $session (@left)
			{
				# Protocol version, last transaction seen, timeout in ms, session, password, not read-only.
				my $connect = pack 'N q> N q> N/a* C', 0, 0, 400, hex $session, session_password(hex $session), 0;
				# Number of the request, closeSession.
				my $close = pack 'l> l>', 1, -11;

				$self->ask(pack 'N/a* N/a*', $connect, $close);
			}
			return @left == 0;
		});
	return;
}

# 16 bytes of Java's Random with a seed made of the session's id.
sub session_password
{
	my ($session) = @_;
	my $password = '';

	# Products are cut to 64 bits; the generator has 48.
	use integer;
	my $state = ($session ^ 0xB3415C00 ^ 0x5DEECE66D) & 0xFFFFFFFFFFFF;

	while (length $password < 16)
	{
		$state = ($state * 0x5DEECE66D + 0xB) & 0xFFFFFFFFFFFF;
		$password .= pack 'V', $state >> 16;
	}
	return $password;
}

# The command for ZooKeeper's own client, with these arguments.
sub cli_command
{
	my ($self, @arguments) = @_;

	return (@java, '-cp', $jar, 'org.apache.zookeeper.ZooKeeperMain', '-server', $self->address, @arguments);
}

# What the client says to one command: cli('get', '/path'), cli('ls', '-R', '/').  Errors are part of it.
sub cli
{
	my ($self, @command) = @_;
	my $output = '';

	IPC::Run::run([ $self->cli_command(@command) ], '<', '/dev/null', '>&', \$output,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	$output =~ s/^(?:SLF4J: .*|Connecting to .*|WATCHER::|WatchedEvent .*|)\n//mg;
	chomp $output;
	return $output;
}

END
{
	# The test's exit status stays as it is.
	local $?;

	foreach my $pid (keys %running)
	{
		CORE::kill('KILL', $pid);
		waitpid $pid, 0;
	}
}

1;
