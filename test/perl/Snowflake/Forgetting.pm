# A registry that knows less than its holders do: restored from a backup, or failed
# over to a standby that lacks its last transactions.  Clients write to the holders
# all the while, who tell it what it lacks; newcomers have to wait for that.
#
#     my $scene = Snowflake::Forgetting->new;
#     $scene->forget('restored from ...', save => sub { ... }, take_away => sub { ... }, put_back => sub { ... });
#     $scene->check;
#
# Every id is recorded, and in the end none is there twice, over all servers.
# What comes again comes by itself.

package Snowflake::Forgetting;

use strict;
use warnings FATAL => 'all';

use Snowflake::Holder;
use Snowflake::Ledger;
use Snowflake::Registry;
use Test::More;

# What it says while it grants nothing anew.
our $unsettled = qr/it is new, or was restored, failed over or stopped for long, and grants nothing anew for 00:0/;

# The registry, one that may take its place, the one that is asked now; and the holders.  Of number 7 a registry that was
# restored knows the former holder, not the present one; of number 8 it does not know that it was given back, and of the
# number that its holder has now it knows nothing.  One holder is as it was.
sub new
{
	my ($class) = @_;
	my $registry = Snowflake::Registry->new('registry');
	my $successor = Snowflake::Registry->new('successor');
	my $ledger = Snowflake::Ledger->new;
	my $self = bless { registry => $registry, successor => $successor, asked => $registry, ledger => $ledger }, $class;
	my $places = join ',', map { Snowflake::Registry::escape($_->host) . ':' . $_->port } $registry, $successor;

	$registry->init(allows_streaming => 1);
	$registry->start;
	foreach my $name (qw(steady former present moved newcomer))
	{
		$self->{$name} = Snowflake::Holder->new($name, registry => $registry, ledger => $ledger);
		$self->{$name}->init;
		$self->{$name}->configure('snowflake.registry' => "postgresql://keeper\@$places/postgres?target_session_attrs=read-write");
	}
	return $self;
}

# Starts a server on any number, or this one.
sub start_on
{
	my ($server, $node_id) = @_;

	$server->configure('snowflake.node_id' => $node_id);
	$server->{line} = $node_id eq 'auto' ? $server->name : "number $node_id";
	$server->begin;
	return;
}

sub stop_registry
{
	my ($self) = @_;

	$self->{registry}->stop('immediate');
	return;
}

# The registry is saved, things happen, it is taken away, and what was saved is put into its place.  at_once: number 7 changes hands
# at once, so that the registry had granted more of it to the former holder than that had when it gave it back.
sub forget
{
	my ($self, $how, %params) = @_;
	my ($steady, $former, $present, $moved, $newcomer) = @$self{qw(steady former present moved newcomer)};

	$steady->begin;
	$steady->start_clients('single');
	start_on($former, 7);
	start_on($moved, 8);
	is($_->held, $_->{settings}->{'snowflake.node_id'}, "$how: $_->{line} is held") foreach $former, $moved;

	my $granted_until = $self->{asked}->claim(7, 'granted_until');

	$params{save}->();
	$_->take(100) foreach $former, $moved;
	if (!$params{at_once})
	{
		$granted_until = $self->{asked}->claim(7, 'granted_until');
		$former->poll_query_until('postgres', "SELECT clock_timestamp() > '$granted_until'") or die 'the clock stands still';
		$former->take(100);
	}
	$_->stop foreach $former, $moved;

	# Not where that took the former holder longer.
	my $knows_more = $self->{asked}->claim(7, "granted_until < '$granted_until'") eq 't';

	start_on($present, 7);
	start_on($moved, 'auto');

	my @holders = ($steady, $present, $moved);
	my %number = map { $_ => $_->held } @holders;
	my $since = $self->{asked}->claim($number{$moved}, 'since');
	my %log = map { $_ => $_->log_position } @holders;

	foreach my $holder ($present, $moved)
	{
		$holder->start_clients('single');
		$holder->wait_for_clients(4096);
	}

	# A newcomer asks all the while.
	$params{take_away}->();
	start_on($newcomer, 'auto');
	$params{put_back}->();
	$newcomer->refused_in_the_end($unsettled, "$how: a newcomer");
	$_->goes_on foreach @holders;
	is($_->stat('node_id'), $number{$_}, "$how: " . $_->name . ' goes on with its number') foreach @holders;
	isnt($self->{asked}->claim($number{$moved}, 'since'), $since, "$how: the registry had forgotten a number");
	foreach my $holder (@holders)
	{
		my $lost = $holder->log_since($log{$holder}) =~ /claim on the snowflake node number is lost\n.*DETAIL: .*: node number \d+ is held by (\S+),/ ? $1 : 'nobody';
		my $may_lose = $params{at_once} && $holder == $present;
		my @to = (($may_lose ? ':' . $former->port : ()), ($may_lose && $knows_more ? () : 'nobody'));

		like($lost, qr/(?:@{[ join '|', @to ]})$/, "$how: " . $holder->name . ' has lost its number to those who should have it');
	}

	my $new = $newcomer->held;

	is(scalar(grep { $number{$_} == $new } @holders), 0, "$how: a newcomer gets a number that nobody has");
	$newcomer->take(100);

	# The former holder, and one that wants the number that is free.
	$former->start;
	$former->refused_for($present, "$how: the former holder wants its number");
	$_->stop foreach $former, $newcomer;
	start_on($newcomer, 8);
	is($newcomer->held, 8, "$how: the number that was free can be had");
	$newcomer->take_in_the_end(100);
	$newcomer->stop;

	$_->goes_on foreach @holders;
	$_->finish_clients foreach @holders;
	return;
}

sub check
{
	my ($self) = @_;

	$self->{ledger}->check('a registry that knew less');
	return;
}

1;
