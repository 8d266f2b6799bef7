# A server that speaks PostgreSQL's protocol as badly as the test wants it to, on 127.0.0.1.
#
#     my $fake = Snowflake::FakeServer->new;
#     $fake->answer('copy_in');                  # from the next connection on
#     ... port=@{[ $fake->port ]} ...
#
# It lets everybody in, looks like a registry when it is asked for its extension, and then
# answers as it was told: see %answers.  It runs in processes of its own, which end with the test.

package Snowflake::FakeServer;

use strict;
use warnings FATAL => 'all';

use IO::Socket::INET;
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils qw(append_to_file slurp_file);
use Socket qw(IPPROTO_TCP TCP_NODELAY);

my %running;

sub new
{
	my ($class) = @_;
	my $self = bless { port => PostgreSQL::Test::Cluster::get_free_port() }, $class;

	$self->{file} = "$PostgreSQL::Test::Utils::tmp_check/fake_server_$self->{port}";
	$self->answer('silence');
	my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $self->{port}, Listen => 128, ReuseAddr => 1)
	  // die "could not listen: $@";
	$self->{pid} = fork // die "could not fork: $!";
	if ($self->{pid} == 0)
	{
		$SIG{$_} = 'DEFAULT' foreach qw(HUP INT TERM __DIE__ __WARN__);
		$SIG{PIPE} = 'IGNORE';
		$SIG{CHLD} = 'IGNORE';
		setpgrp;
		# What the test has open must be closed when the test closes it.
		open my $null, '<', '/dev/null' or die "could not open /dev/null: $!";
		POSIX::dup2(fileno $null, $_) foreach grep { $_ > 2 && $_ != fileno $listener } map { m{(\d+)$} } glob '/dev/fd/*';
		for (;;)
		{
			my $client = $listener->accept // next;

			next if fork;
			eval { $self->serve($client) };
			POSIX::_exit(0);
		}
	}
	close $listener;
	$running{ $self->{pid} } = 1;
	return $self;
}

sub port
{
	my ($self) = @_;

	return $self->{port};
}

# How it answers from the next connection on.  Returns a file to which it adds a line for each time that it does so, and the
# passwords that it is told.
sub answer
{
	my ($self, $how) = @_;

	unlink "$self->{file}.new", "$self->{file}.told";
	append_to_file("$self->{file}.new", $how);
	rename "$self->{file}.new", $self->{file} or die "could not rename $self->{file}: $!";
	return "$self->{file}.told";
}

END
{
	local $?;

	foreach my $pid (keys %running)
	{
		kill 'KILL', -$pid, $pid;
		waitpid $pid, 0;
	}
}

# The rest runs in the children.

sub message
{
	my ($type, @parts) = @_;

	my $body = join '', @parts;

	return $type . pack('N', 4 + length $body) . $body;
}

# Names with types' numbers.
sub description
{
	my (@columns) = @_;

	return message('T', pack('n', scalar @columns), map { pack 'Z* N n N n N n', $_->[0], 0, 0, $_->[1], -1 & 0xFFFF, 0xFFFFFFFF, 0 } @columns);
}

sub row
{
	my (@values) = @_;

	return message('D', pack('n', scalar @values), map { defined ? pack 'N/a*', $_ : pack 'N', 0xFFFFFFFF } @values);
}

sub complete
{
	my ($tag) = @_;

	return message('C', "$tag\0");
}

sub query
{
	my ($tag, @messages) = @_;

	return (message('1'), message('2'), @messages, complete($tag));
}

my ($bool, $int8, $int4, $text) = (16, 20, 23, 25);
my @claim = (
	[ clock => $int8 ], [ max_forward_jump => $int8 ], [ unsettled => $int8 ], [ layout => $text ], [ generation => $int8 ], [ holder => $text ],
	[ host => $text ], [ port => $int4 ], [ data_directory => $text ], [ since => $int8 ], [ granted_until => $int8 ], [ alive => $bool ],
	[ incarnation => $int8 ]);

sub nothing_known
{
	return (time() . '000000', 3600_000_000, 0, undef, (undef) x 8, 1);
}

my @begin = query('BEGIN', message('n'));
my @settings = query('SELECT 1', description(map { [ $_ => $text ] } qw(a b c)), row('on', '1000', '1000'));
my @commit = query('COMMIT', message('n'));
my $ready = message('Z', 'I');
my $right = [ @begin, @settings, query('SELECT 1', description(@claim), row(nothing_known())), @commit, $ready ];
my $written = [ @begin, @settings, query('SELECT 1', description([ written => $bool ]), row('t')), @commit, $ready ];
my $error = message('E', map({ "$_\0" } qw(SERROR VERROR C42501)), "Mpermission denied\0", "\0");
my $kilobyte = 'x' x 1024;

sub counted
{
	my (@messages) = @_;

	return [ @begin, @settings, @messages, @commit, $ready ];
}

# What it sends when a claim is read: messages, and what is to follow without an end.  A code is called again and again.
my %answers = (
	right => [$right],
	no_columns => [ counted(query('SELECT 1', description(), row())) ],
	no_rows => [ counted(query('SELECT 0', description(@claim))) ],
	no_result => [ counted(query('SELECT 0', message('n'))) ],
	empty_query => [ counted(message('1'), message('2'), message('n'), message('I')) ],
	two_rows => [ counted(query('SELECT 2', description(@claim), row(nothing_known()), row(nothing_known()))) ],
	two_results => [ counted(query('SELECT 1', description(@claim), row(nothing_known())), description(@claim), row(nothing_known()), complete('SELECT 1')) ],
	many_columns => [ counted(query('SELECT 1', description(map { [ $_ => $int8 ] } 1 .. 10_000), row(1 .. 10_000))) ],
	other_types => [ counted(query('SELECT 1', description(map { [ $_->[0] => $text ] } @claim), row(nothing_known()))) ],
	fewer_values => [ counted(query('SELECT 1', description(@claim), row(1, 2, 3))) ],
	no_number => [ counted(query('SELECT 1', description(@claim), row('NaN', (nothing_known())[ 1 .. 12 ]))) ],
	half_a_number => [ counted(query('SELECT 1', description(@claim), row('1.5', (nothing_known())[ 1 .. 12 ]))) ],
	huge_number => [ counted(query('SELECT 1', description(@claim), row('9' x 30, (nothing_known())[ 1 .. 12 ]))) ],
	long_texts => [ counted(query('SELECT 1', description(@claim), row((nothing_known())[ 0 .. 3 ], 5, 'f' x 100_000, 'h', 1, 'd', 0, 0, 'f', 1))) ],
	not_committed => [ [ @begin, @settings, query('SELECT 1', description(@claim), row(nothing_known())), query('ROLLBACK', message('n')), $ready ] ],
	too_early => [ [ @begin, @settings, $ready ] ],
	row_after_error => [ [ @begin, @settings, message('1'), message('2'), $error, row(nothing_known()), $ready ] ],
	error => [ [ @begin, @settings, $error, $ready ] ],
	long_error => [ [ @begin, @settings, message('E', "SERROR\0", "C42501\0", 'M' . 'e' x 10_000_000 . "\0", "\0"), $ready ] ],
	copy_in => [ [ @begin, @settings, message('1'), message('2'), message('G', pack 'C n', 0, 0) ] ],
	copy_out => [ [ @begin, @settings, message('1'), message('2'), message('H', pack 'C n', 0, 0) ] ],
	copy_both => [ [ @begin, @settings, message('1'), message('2'), message('W', pack 'C n', 0, 0) ] ],
	copy_flood => [ [ @begin, @settings, message('1'), message('2'), message('H', pack 'C n', 0, 0) ], message('d', $kilobyte) x 64 ],
	rows => [ [ @begin, @settings, message('1'), message('2'), description(@claim) ], row(nothing_known()) x 500 ],
	wide_rows => [ [ @begin, @settings, message('1'), message('2'), description(@claim) ], row((nothing_known())[ 0 .. 2 ], $kilobyte x 1000, (undef) x 8, 1) ],
	long_row => [ [ @begin, @settings, message('1'), message('2'), description(@claim), 'D' . pack 'N', 0x3FFFFFF0 ], $kilobyte x 64 ],
	long_description => [ [ @begin, @settings, message('1'), message('2'), 'T' . pack 'N', 0x3FFFFFF0 ], $kilobyte x 64 ],
	notices => [ [@begin], message('N', "SNOTICE\0", "C00000\0", "Mlook\0", "\0") x 500 ],
	parameters => [ [@begin], sub { our $number; return join '', map { message('S', 'p' . ++$number . "\0", $kilobyte x 8, "\0") } 1 .. 8 } ],
	same_parameter => [ [@begin], message('S', "application_name\0", "x\0") x 2000 ],
	notifications => [ [@begin], message('A', pack('N', 1), "channel\0", "$kilobyte\0") x 64 ],
	garbage => [ [], sub { return pack 'L*', map { int rand 2**32 } 1 .. 1000 } ],
	slow => [ [], $right ],
	silence => [ [] ],
	# After a claim, which is granted.
	idle_parameters => [ [], sub { our $number; return join '', map { message('S', 'p' . ++$number . "\0", $kilobyte x 8, "\0") } 1 .. 8 } ],
	idle_rows => [ [], row(nothing_known()) x 500 ],
	idle_long_row => [ [ 'D' . pack 'N', 0x3FFFFFF0 ], $kilobyte x 64 ],
);

sub names
{
	return sort keys %answers;
}

sub serve
{
	my ($self, $client) = @_;
	my $how = slurp_file($self->{file});

	setsockopt $client, IPPROTO_TCP, TCP_NODELAY, 1;
	$self->let_in($client, $how) or return;
	# The first that it is asked for is whether it has the extension.
	read_until_sync($client) or return;
	print_all($client, @begin, @settings,
		query('SELECT 1', description([ r => $bool ], [ v => $text ], [ s => $int8 ]), row('f', '1.0.0', '42')), @commit, $ready);

	while (my $asked = read_until_sync($client))
	{
		my ($messages, $endless) = @{ $answers{$how} // die "unknown answer $how" };
		my $is_written = $asked =~ /registry_write/;

		append_to_file("$self->{file}.told", "$how\n");
		$messages = $is_written ? [ @$written, @$messages ] : $right if $how =~ /^idle/;
		print_all($client, @$messages);
		next if $how =~ /^idle/ && !$is_written;
		if ($how eq 'slow')
		{
			foreach my $byte (split //, join '', @$endless)
			{
				print_all($client, $byte);
				sleep 1;
			}
		}
		for (; defined $endless;)
		{
			print_all($client, ref $endless ? $endless->() : $endless);
		}
	}
	return;
}

# Until the connection ends it sends and sends.
sub print_all
{
	my ($client, @messages) = @_;
	my $bytes = join '', @messages;

	while ($bytes ne '')
	{
		my $count = syswrite $client, $bytes;

		POSIX::_exit(0) unless $count;
		substr $bytes, 0, $count, '';
	}
	return;
}

sub read_all
{
	my ($client, $count) = @_;
	my $bytes = '';

	while (length $bytes < $count)
	{
		sysread $client, $bytes, $count - length $bytes, length $bytes or POSIX::_exit(0);
	}
	return $bytes;
}

# A request before a message has a type.  False where nobody is let in.
sub let_in
{
	my ($self, $client, $how) = @_;

	append_to_file("$self->{file}.told", "$how\n") if $how =~ /^(?:connect|negotiation)_/;
	for (;;)
	{
		my $request = read_all($client, unpack('N', read_all($client, 4)) - 4);
		my $code = unpack 'N', $request;

		last if $code == 196608;
		if ($how =~ /^negotiation_(.*)/)
		{
			# To a request for encryption.
			print_all($client, 'S', $kilobyte x 1000) if $1 eq 'garbage';
			print_all($client, message('E', "SFATAL\0", "C08000\0", "Mno\0", "\0")) if $1 eq 'error';
			print_all($client, 'G', pack('N', 0xFFFFFFF0), $kilobyte x 100) if $1 eq 'gss';
			print_all($client, 'X' x 100) if $1 eq 'unknown';
			sleep 1000 if $1 eq 'silence';
			return 0;
		}
		print_all($client, 'N');
	}
	if (my ($kind) = $how =~ /^password_(\w+)/)
	{
		print_all($client, message('R', pack 'N', 3)) if $kind eq 'clear';
		print_all($client, message('R', pack 'N a4', 5, 'salt')) if $kind eq 'md5';
		print_all($client, message('R', pack('N', 10), "SCRAM-SHA-256\0\0")) if $kind =~ /^(?:scram|hashed_for_long)$/;
		print_all($client, message('R', pack 'N', 99)) if $kind eq 'unknown';

		# What the client has to say to that.
		my $type = read_all($client, 1);

		my $said = read_all($client, unpack('N', read_all($client, 4)) - 4);

		append_to_file("$self->{file}.told", "$type$said\n");
		if ($kind eq 'hashed_for_long')
		{
			my ($nonce) = $said =~ /,r=(.*)/s;

			print_all($client, message('R', pack('N', 11), "r=${nonce}x,s=c2FsdHNhbHQ=,i=2147483647"));
			read_all($client, 1);
		}
		return 0;
	}
	print_all($client, message('R', pack 'N', 0), map({ message('S', @$_) } [ "server_version\0", "16.4\0" ], [ "client_encoding\0", "UTF8\0" ],
			[ "standard_conforming_strings\0", "on\0" ]),
		message('K', pack 'N N', 1, 2));
	for (; $how eq 'connect_notices';)
	{
		print_all($client, message('N', "SNOTICE\0", "C00000\0", "Mlook\0", "\0") x 500);
	}
	for (my $number = 0; $how eq 'connect_parameters'; $number++)
	{
		print_all($client, message('S', "p$number\0", $kilobyte x 8, "\0"));
	}
	print_all($client, $ready);
	return 1;
}

sub read_until_sync
{
	my ($client) = @_;
	my $asked = '';

	for (;;)
	{
		my $type = read_all($client, 1);

		$asked .= read_all($client, unpack('N', read_all($client, 4)) - 4);
		return "$type$asked" if $type eq 'S';
		return '' if $type eq 'X';
	}
}

1;
