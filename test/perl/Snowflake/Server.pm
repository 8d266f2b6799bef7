# A PostgreSQL server with snowflake, whose clock the test can set.
#
# The server's clock is the file that libfaketime reads at each look at the
# clock: set_clock() steps CLOCK_REALTIME in the running server, and CLOCK_BOOTTIME
# stays true.  A server that is started without set_clock() has the true clock.
#
# What take() and the clients are given is recorded in a Snowflake::Ledger.
#
# A test that fails says of each of its servers that runs what its processes wait
# for, and what its log said last.

package Snowflake::Server;

use strict;
use warnings FATAL => 'all';

use parent 'PostgreSQL::Test::Cluster';

use Carp;
use IPC::Run;
use List::Util qw(max);
use PostgreSQL::Test::Cluster;
# By name: what it exports by default would hide methods.
use PostgreSQL::Test::Utils qw(append_to_file slurp_file);
use Scalar::Util qw(weaken);
use Snowflake::Ledger qw(cut_to_whole_lines);
use Snowflake::Template ();
use Snowflake::Wait qw(wait_until);
use Test::More;
use Time::HiRes qw(usleep);

# What a client runs again and again until its connection ends.
my %client_sql = (
	# ids asked for one by one
	single => 'SELECT snowflake_nextval();',
	# by one statement, as fast as they can be had
	stream => 'COPY (SELECT snowflake_nextval() FROM (SELECT generate_series(1, 2000000000)) AS s) TO STDOUT;',
	batch => 'SELECT snowflake_nextval_batch(10);',
	endless_batch => 'COPY (SELECT snowflake_nextval_batch(2000000000)) TO STDOUT;',
);

# Repeats a statement until its reader ends, as psql does when it loses its connection.  A client asks a few hundred times a
# second: as fast as it can, it would take a processor for itself, refused or not, and show no more.
my $repeat = 'local $SIG{PIPE} = "DEFAULT"; select(undef, undef, undef, 0.016) while syswrite STDOUT, $ARGV[0] x 4;';

my @servers;
my $died = '';

$SIG{__DIE__} = sub { $died = "@_" unless $^S };

# line: the ledger's line that this server's ids belong to, its name unless given.
sub new
{
	my ($class, $name, %params) = @_;
	my $ledger = delete $params{ledger};
	my $line = delete $params{line};
	my $self = PostgreSQL::Test::Cluster::new($class, $name, %params);

	$self->{ledger} = $ledger // Snowflake::Ledger->new;
	$self->{line} = $line // $name;
	$self->{settings} = {
		'shared_preload_libraries' => 'snowflake',
		'snowflake.node_id' => '1',
		# Each statement of a client in the log would be most of the work.
		'log_statement' => 'none',
		'max_connections' => '30',
		'restart_after_crash' => 'on',
	};
	push @servers, $self;
	weaken $servers[-1];
	return $self;
}

sub init
{
	my ($self, %params) = @_;

	$self->SUPER::init(%params);
	$self->append_conf('postgresql.conf', "include 'snowflake_test.conf'");
	$self->configure;
	return;
}

# A standby of a server, or a copy with has_streaming 0; its settings, ledger and line are that server's.
sub init_from
{
	my ($self, $primary, $backup, %params) = @_;

	$self->init_from_backup($primary, $backup, has_streaming => 1, %params);
	$self->{ledger} = $primary->{ledger};
	$self->{line} = $primary->{line};
	$self->{settings} = { %{ $primary->{settings} } };
	return;
}

# Changes settings in the configuration files; undef takes one away.
sub configure
{
	my ($self, %changes) = @_;
	my %settings = (%{ $self->{settings} }, %changes);

	delete @settings{ grep { !defined $settings{$_} } keys %settings };
	$self->{settings} = \%settings;

	my $file = $self->data_dir . '/snowflake_test.conf';

	unlink $file;
	append_to_file($file, join('', map { my $value = $settings{$_} =~ s/'/''/gr; "$_ = '$value'\n" } sort keys %settings));
	return;
}

# The same in the running server; sessions that begin after this have the changes.
sub reconfigure
{
	my ($self, %changes) = @_;
	my $before = $self->value('pg_conf_load_time()');

	$self->configure(%changes);
	$self->reload;
	$self->poll_query_until('postgres', "SELECT pg_conf_load_time() <> '$before'")
	  or die 'the server did not reload its configuration';
	return;
}

# libfaketime, wherever this machine's architecture has it.
sub faketime_library
{
	my ($library) = map { glob "$_/faketime/libfaketime.so.1" } qw(/usr/lib/* /usr/lib* /usr/local/lib*);

	die "libfaketime is not installed\n" unless defined $library;
	return $library;
}

# The environment in which a program follows the clock in a file.
sub clock_environment
{
	my ($file) = @_;

	return (
		LD_PRELOAD => join(' ', faketime_library(), $ENV{LD_PRELOAD} // ()),
		FAKETIME_TIMESTAMP_FILE => $file,
		FAKETIME_NO_CACHE => 1,
		FAKETIME_DONT_FAKE_MONOTONIC => 1,
		NO_FAKE_STAT => 1);
}

# Sets the clock so many seconds ahead of the true one; or to what libfaketime understands: "+0 x2" runs
# at twice the speed (waits too), "2026-11-21 12:00:00" stands still.
sub set_clock
{
	my ($self, $offset) = @_;
	my $file = $self->basedir . '/clock';

	$self->{clock} = $offset;
	$offset = sprintf '%+.6f', $offset unless $offset =~ /x|:/;
	unlink "$file.new";
	append_to_file("$file.new", "$offset\n");
	# At once, since the server may be reading it.
	rename "$file.new", $file or die "could not rename $file: $!";
	return;
}

# Moves the clock so many seconds.
sub step_clock
{
	my ($self, $seconds) = @_;

	$self->set_clock($self->{clock} + $seconds);
	return;
}

sub start
{
	my ($self, %params) = @_;
	local %ENV = (
		%ENV,
		defined $self->{clock} ? clock_environment($self->basedir . '/clock') : (),
		%{ $self->{environment} // {} });

	return $self->SUPER::start(%params);
}

# Kills one of the server's processes, and waits until the postmaster has noticed and started all anew: until then the
# server answers as if nothing had happened.
sub crash
{
	my ($self, $pid) = @_;
	my $log = $self->log_position;

	kill 'KILL', $pid or die "could not kill process $pid: $!";
	$self->wait_for_log(qr/all server processes terminated; reinitializing.*database system is ready to accept connections/s, $log);
	return;
}

# As start() and stop(), so that the environment is the same.
sub restart
{
	my ($self, $mode) = @_;

	$self->stop($mode // 'fast');
	return $self->start;
}

# Where the postmaster was killed: it and its children may be there, and hold its memory, for a moment.
sub start_in_the_end
{
	my ($self) = @_;

	wait_until(
		$self->name . ' has started',
		sub
		{
			return 1 if $self->start(fail_ok => 1);
			# What start() has read was of the process that is no more.
			$self->{_pid} = undef;
			return 0;
		});
	return;
}

# Starts with another layout: other ids, which are looked at on their own.
sub restart_with_layout
{
	my ($self, $layout, %settings) = @_;

	$self->stop;
	$self->{ledger}->check($self->{settings}->{'snowflake.layout'} // 'default layout') if $self->{ledger}->{files} > 0;
	$self->{ledger} = Snowflake::Ledger->new;
	$self->configure('snowflake.layout' => $layout, %settings);

	my $started = $self->start;

	# An error where the library is not loaded.
	$self->psql('postgres', 'SELECT snowflake_accept_layout()');
	return $started;
}

# Ids, one after the other; recorded.
sub take
{
	my ($self, $count) = @_;
	my @ids = split /\n/, $self->safe_psql('postgres',
		'SELECT snowflake_nextval() FROM generate_series(1, ' . ($count // 1) . ')');

	$self->record(@ids);
	return wantarray ? @ids : $ids[-1];
}

# Takes so many ids; a pair for each: the id, and how far it lay ahead of the server's clock, read just after it, in seconds.
sub take_beside_clock
{
	my ($self, $count) = @_;
	my @taken = map { [ split /\|/ ] } split /\n/, $self->safe_psql('postgres',
		"SELECT id, extract(epoch FROM snowflake_timestamp(id) - clock)
		   FROM (SELECT snowflake_nextval() AS id, clock_timestamp() AS clock FROM generate_series(1, $count) OFFSET 0) AS taken");

	$self->record(map { $_->[0] } @taken);
	return @taken;
}

# Takes so many ids; how far the furthest of them lay ahead.
sub furthest_ahead
{
	my ($self, $count) = @_;

	return max(map { $_->[1] } $self->take_beside_clock($count));
}

# Records ids that were received after all those before.
sub record
{
	my ($self, @ids) = @_;

	return if @ids == 0;
	$self->{ledger}->next_phase($self->{line}) unless $self->{clients};
	$self->{ledger}->record($self->{line}, @ids);
	return;
}

# The statement fails with an error that matches.
sub refuses
{
	my ($self, $sql, $pattern, $name) = @_;
	my ($has_failed, $errors);

	if ($sql =~ /^SELECT [^;]*$/)
	{
		my $asked = $self->session('postgres');

		$has_failed = !succeeds($asked, $sql);
		$errors = $asked->{errors};
	}
	else
	{
		# What it sets must not last.
		($has_failed, undef, $errors) = $self->psql('postgres', $sql);
	}
	ok($has_failed, "$name: refused");
	like($errors, $pattern, "$name: the error says why");
	return;
}

# Starts statements in a session of their own, which may have to wait; its application_name is as given.
sub start_call
{
	my ($self, $name, @statements) = @_;
	my $call = { out => '', err => '' };

	$call->{run} = IPC::Run::start([ 'psql', '-XAtq', '-d', $self->connstr('postgres') . " application_name=$name", map { ('-c', $_) } @statements ],
		'<', '/dev/null', '>', \$call->{out}, '2>', \$call->{err});
	return $call;
}

# Waits for their end; ids that they returned are recorded in the line's phase.
sub finish_call
{
	my ($self, $call) = @_;

	$call->{run}->finish;

	my @ids = grep { /^\d{15,}$/ } split /\n/, $call->{out};

	$self->{ledger}->record($self->{line}, @ids) if @ids > 0;
	return scalar @ids;
}

# A psql that is asked again and again, as a role or the superuser.
sub begin_asking
{
	my ($self, $database, $role) = @_;
	my $asked = { questions => '', answer => '', errors => '', count => 0 };

	local %ENV = $self->_get_env();

	$asked->{run} = IPC::Run::start(
		[ $self->installed_command('psql'), '-XAtq', '-d', $self->connstr($database), defined $role ? "--username=$role" : () ],
		'<', \$asked->{questions}, '>', \$asked->{answer}, '2>', \$asked->{errors});
	return $asked;
}

# What it answers to a query, and the errors; true, unless it has ended instead.
sub ask
{
	my ($asked, $query) = @_;
	my $mark = 'answer ' . ++$asked->{count};
	my $has_answered = sub { $asked->{answer} =~ /^$mark$/m && $asked->{errors} =~ /^$mark$/m };

	$asked->{answer} = $asked->{errors} = '';
	$asked->{questions} .= "$query\n;\n\\echo $mark\n\\warn $mark\n";
	# An error when psql has ended is nothing but a question without an answer.
	eval { $asked->{run}->pump while $asked->{run}->pumpable && !$has_answered->(); };

	my $is_there = $has_answered->();

	s/^$mark\n//m foreach $asked->{answer}, $asked->{errors};
	chomp $asked->{answer};
	return $is_there;
}

# Whether it answers without an error.
sub succeeds
{
	my ($asked, $query) = @_;

	return ask($asked, $query) && $asked->{errors} !~ /^(?:ERROR|FATAL|PANIC):/m;
}

sub end_asking
{
	my ($asked) = @_;

	# What was started meanwhile may hold its input open.
	$asked->{questions} .= "\\q\n";
	$asked->{run}->kill_kill unless eval { $asked->{run}->finish; 1 };
	return;
}

# The psql that answers what is asked of a database; another one where its server has ended.  To start psql and a backend for
# each question costs more than the answer, and tests that wait side by side would take much of a slow machine.  It goes on until the
# server stops or has other settings.
sub session
{
	my ($self, $database, $role) = @_;
	my $asked = \$self->{asked}->{$database}->{ $role // '' };

	return $$asked if $$asked && ask($$asked, 'SELECT true') && $$asked->{answer} eq 't';
	end_asking($$asked) if $$asked;
	return $$asked = $self->begin_asking($database, $role);
}

sub forget_sessions
{
	my ($self, @databases) = @_;

	@databases = keys %{ $self->{asked} } unless @databases;
	end_asking($_) foreach map { values %$_ } grep { defined } delete @{ $self->{asked} }{@databases};
	return;
}

# As PostgreSQL's own: a session of its own, so that nothing lasts that it sets.
sub psql
{
	my ($self, $database, $sql, @how) = @_;

	# Neither of use to sessions that are there, nor done where there are some.
	$self->forget_sessions if $sql =~ /\b(?:DATABASE|ALTER\s+(?:ROLE|USER|SYSTEM))\b/i;
	return $self->SUPER::psql($database, $sql, @how);
}

# As PostgreSQL's own.
sub poll_query_until
{
	my ($self, $database, $query, $expected) = @_;
	my ($asked, $has_seen);

	$expected //= 't';
	foreach my $look (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		$asked = $self->session($database);
		$has_seen = ask($asked, $query) && $asked->{answer} eq $expected && $asked->{errors} eq '';
		last if $has_seen;
		usleep(100_000);
	}
	# Who drops a database can't do with sessions in it.
	$self->forget_sessions($database) unless $database eq 'postgres';
	diag("$query\n\nwas to be $expected, and was in the end:\n$asked->{answer}\n$asked->{errors}") unless $has_seen;
	return $has_seen ? 1 : 0;
}

# Runs what only prepares a test; returns what it prints.  Nothing that is set, prepared or temporary lasts until the next time.
sub prepare
{
	my ($self, $database, $sql, $role) = @_;
	my $asked = $self->session($database, $role);

	succeeds($asked, "DISCARD ALL;\n$sql") or croak "$sql\n$asked->{errors}";
	return $asked->{answer};
}

# The value of an SQL expression.
sub value
{
	my ($self, $expression) = @_;
	my $asked = $self->session('postgres');

	succeeds($asked, "SELECT $expression") or croak $self->name . " was asked for $expression: $asked->{errors}";
	return $asked->{answer};
}

sub stat
{
	my ($self, $column) = @_;

	return $self->value("$column FROM snowflake_stat");
}

sub stop
{
	my ($self, @how) = @_;

	$self->forget_sessions;
	return $self->SUPER::stop(@how);
}

sub reload
{
	my ($self) = @_;

	$self->forget_sessions;
	return $self->SUPER::reload;
}

# The name of the wait event in pg_stat_activity; before 17 extensions have one in common.
sub wait_event
{
	my ($self, $name) = @_;

	return $self->pg_version >= 17 ? $name : 'Extension';
}

# Settings of how strings are read, each other than it should be; from 19 on there is one way.
sub string_settings
{
	my ($self) = @_;

	# A release candidate counts as less than 19.
	return $self->pg_version->major >= 19 ? () : (standard_conforming_strings => 'off', escape_string_warning => 'off');
}

# Waits until so many sessions wait for this.  They look at the clock now and then, so that fewer may be seen.
sub wait_for_waiters
{
	my ($self, $event, $count) = @_;

	$event = $self->wait_event($event);
	$self->poll_query_until('postgres',
		"SELECT count(*) = $count FROM pg_stat_activity WHERE wait_event_type = 'Extension' AND wait_event = '$event'")
	  or die "no $count sessions waited for $event";
	return;
}

# Starts clients of these kinds, which record what they are given until their connections end.
sub start_clients
{
	my ($self, @kinds) = @_;

	$self->{ledger}->next_phase($self->{line});
	$self->{clients} = [];
	foreach my $kind (@kinds)
	{
		my $file = $self->{ledger}->file($self->{line});

		append_to_file($file, '');
		push @{ $self->{clients} }, {
			file => $file,
			run => IPC::Run::start(
				[ $^X, '-e', $repeat, "$client_sql{$kind}\n" ], '<', '/dev/null', '2>', '/dev/null', '|',
				[ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=0', '-d', $self->connstr('postgres') . ' application_name=client' ],
				'>', $file, '2>', "$file.errors"),
		};
	}
	return;
}

# Waits until each client has been given so many bytes of ids more.
sub wait_for_clients
{
	my ($self, $bytes) = @_;
	my @waiting = map { [ $_, (-s $_->{file}) + $bytes ] } @{ $self->{clients} };
	my $have_all = sub { return !(@waiting = grep { -s $_->[0]->{file} < $_->[1] } @waiting) };

	return if eval { wait_until($self->name . ' has given ids to its clients', $have_all); 1 };
	diag('the last that the client was told: ' . substr(slurp_file("$waiting[0]->[0]->{file}.errors"), -1000));
	die $@ . join ', ', map { "$_->[0]->{file} has less than $_->[1] bytes" } @waiting;
}

# Waits for the clients to end; with a running server their sessions are ended, also of those that are still connecting.
sub finish_clients
{
	my ($self) = @_;
	my @running = @{ $self->{clients} };

	while (defined $self->{_pid} && @running)
	{
		$self->value(q{count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'client'});
		@running = grep { $_->{run}->pumpable } @running;
		usleep(20_000) if @running;
	}
	foreach my $client (@{ $self->{clients} })
	{
		$client->{run}->finish;
		cut_to_whole_lines($client->{file});
	}
	delete $self->{clients};
	return;
}

# What the server's log has said since a position from log_position().
sub log_position
{
	my ($self) = @_;

	return -s $self->logfile;
}

sub log_since
{
	my ($self, $position) = @_;

	return slurp_file($self->logfile, $position);
}

# The postmaster and its children as the kernel sees them: of a server that does not answer, or does not stop.  Those that do the
# same make one line.
sub children
{
	my ($self) = @_;
	my $read = sub { eval { slurp_file(@_) } // '' };	# it may be gone
	my %pids;

	foreach my $pid ($self->{_pid},
		grep { $read->("/proc/$_/stat") =~ /\) \w $self->{_pid} /s } map { m{(\d+)$} } glob('/proc/[0-9]*'))
	{
		my %status = $read->("/proc/$pid/status") =~ /^(State|SigBlk|ShdPnd):\s*(.*)$/mg;
		# Of a system call the number and the arguments that are small: no address.
		my $call = join ' ', grep { length $_ < 10 } split ' ', $read->("/proc/$pid/syscall");

		push @{ $pids{ join ' ', $read->("/proc/$pid/cmdline") =~ s/\0.*//sr, map({ "$_ $status{$_}" } sort keys %status),
			'in', $read->("/proc/$pid/wchan") || '?', 'call', $call } }, $pid;
	}
	return map { join ' ', scalar @{ $pids{$_} }, "as $pids{$_}->[0]:", $_ } sort keys %pids;
}

# What its processes are at, a line for each; of those that have something to do.
sub processes
{
	my ($self) = @_;
	my ($status, $out, $err) = $self->psql('postgres', q{
		SELECT concat_ws(' ', pid, coalesce(nullif(application_name, ''), backend_type), state, coalesce('waits for ' || wait_event_type || ' ' || wait_event, 'runs'),
						 'since ' || date_trunc('second', clock_timestamp() - coalesce(state_change, backend_start)), left(regexp_replace(query, '\s+', ' ', 'g'), 100))
		  FROM pg_stat_activity
		 WHERE pid <> pg_backend_pid() AND wait_event_type IS DISTINCT FROM 'Activity'
		 ORDER BY backend_start}, timeout => 10, timed_out => \my $timed_out, on_error_die => 0);

	return split /\n/, $out if !$timed_out && $status == 0;
	return ($timed_out ? 'it does not answer' : split(/\n/, $err), $self->children);
}

# The last lines of its log that tell something, each once.
sub last_words
{
	my ($self, $count) = @_;
	my %seen;
	my @lines = grep { !$seen{ s/^\S+ \S+ \S+ \[\d+\]//r }++ }
	  reverse grep { /(?:WARNING|ERROR|FATAL|PANIC|LOG):  / && !/statement: |checkpoint / } split /\n/, slurp_file($self->logfile);

	return reverse grep { defined } @lines[ 0 .. $count - 1 ];
}

# After what failed, while the servers still run.
END
{
	my $has_failed = $? != 0 || !Test::More->builder->is_passing;
	# The test's exit status stays as it is.
	local $?;

	if ($has_failed)
	{
		diag($died) if $died ne '';
		foreach my $server (grep { defined && defined $_->{_pid} } @servers)
		{
			diag(join "\n\t", $server->name . ':', eval { $server->processes }, map { length > 250 ? substr($_, 0, 250) . ' ...' : $_ } eval { $server->last_words(6) });
		}
	}
}

1;
