# A server that speaks ZooKeeper's protocol as badly as the test wants it to; used as Snowflake::FakeServer is.

package Snowflake::FakeZooKeeper;

use strict;
use warnings FATAL => 'all';

use parent 'Snowflake::FakeServer';

use PostgreSQL::Test::Utils qw(append_to_file slurp_file);

# Types of requests.
my ($create, $get_data, $set_data, $get_acl, $get_children, $ping, $multi, $auth, $close) = (1, 4, 5, 6, 8, 11, 14, 100, -11);
my $zxid = 0;

sub frame
{
	return pack 'N/a*', join '', @_;
}

sub answer_to
{
	my ($number, $error, @body) = @_;

	return frame(pack('l> q> l>', $number, ++$zxid, $error), @body);
}

sub stat_of
{
	my ($time) = @_;

	return pack 'q> q> q> q> l> l> l> q> l> l> q>', 1, 1, $time, $time, 0, 0, 0, 0, 0, 0, 1;
}

my $kilobyte = 'x' x 1024;
my $max = 0x7FFFFFFF;

# The right ones.
my %right = (
	$create => sub { return answer_to($_[0], 0, pack 'N/a*', '/ids') },
	$set_data => sub { return answer_to($_[0], 0, stat_of(time() * 1000)) },
	$get_data => sub { return answer_to($_[0], -101) },
	$get_acl => sub { return answer_to($_[0], 0, pack('l> l> N/a* N/a*', 1, 31, 'digest', 'keeper:hash'), stat_of(0)) },
	$get_children => sub { return answer_to($_[0], 0, pack 'l>', 0) },
	$ping => sub { return answer_to(-2, 0) },
	$auth => sub { return answer_to(-4, 0) },
	$multi => sub { return answer_to($_[0], 0, result(1, pack 'N/a*', '/ids'), result(13), result(1, pack 'N/a*', '/ids'), result(1, pack 'N/a*', '/ids'), result(-1)) });

# Of an operation, or the end.
sub result
{
	my ($type, @body) = @_;

	return pack('l> C l>', $type, $type == -1 && @body == 0 ? 1 : 0, $type == -1 ? -1 : 0) . join '', @body;
}

# What differs: the answers to requests of a type, or to all.
my %answers = (
	right => {},
	silence => { all => sub { return '' } },
	unsolicited => { $set_data => sub { return answer_to($_[0], 0, stat_of(time() * 1000)) . answer_to(77, 0) x 100 } },
	wrong_number => { all => sub { return answer_to($_[0] + 1, 0) } },
	watch => { all => sub { return answer_to(-1, 0, pack 'l> l> l>', 1, 3, -1) } },
	watches => { all => sub { return answer_to(-8, 0) x 100 } },
	user => { all => sub { return answer_to(-4, -115) } },
	negative_frame => { all => sub { return pack('l>', -1) . $kilobyte } },
	long_frame => { all => sub { return pack('l>', $max) . $kilobyte x 1000 } },
	no_header => { all => sub { return frame('x') } },
	negative_children => { $get_children => sub { return answer_to($_[0], 0, pack 'l>', -1) } },
	many_children => { $get_children => sub { return answer_to($_[0], 0, pack 'l>', $max) } },
	no_children => { $get_children => sub { return answer_to($_[0], 0) } },
	null_children => { $get_children => sub { return answer_to($_[0], 0, pack 'l> l> l> l>', 3, -1, -1, -1) } },
	long_children => { $get_children => sub { return answer_to($_[0], 0, pack 'l> l> l> l>', 3, $max, $max, $max) } },
	negative_rights => { $get_acl => sub { return answer_to($_[0], 0, pack('l>', -1), stat_of(0)) } },
	many_rights => { $get_acl => sub { return answer_to($_[0], 0, pack('l>', $max), stat_of(0)) } },
	null_rights => { $get_acl => sub { return answer_to($_[0], 0, pack('l> l> l> l>', 1, 31, -1, -1), stat_of(0)) } },
	long_rights => { $get_acl => sub { return answer_to($_[0], 0, pack('l> l> l> l>', 1, 31, $max, $max), stat_of(0)) } },
	big_rights => { $get_acl => sub { return answer_to($_[0], 0, pack('l>', 100_000), pack('l> N/a* N/a*', 31, 'digest', 'x') x 100_000, stat_of(0)) } },
	rights_without_stat => { $get_acl => sub { return answer_to($_[0], 0, pack('l> l> N/a* N/a*', 1, 31, 'digest', 'x')) } },
	negative_data => { $get_data => sub { return answer_to($_[0], 0, pack('l>', -5), stat_of(0)) } },
	null_data => { $get_data => sub { return answer_to($_[0], 0, pack('l>', -1), stat_of(0)) } },
	long_data => { $get_data => sub { return answer_to($_[0], 0, pack('l>', $max), stat_of(0)) } },
	no_stat => { $set_data => sub { return answer_to($_[0], 0) } },
	no_time => { $set_data => sub { return answer_to($_[0], 0, stat_of(-1)) } },
	all_time => { $set_data => sub { return answer_to($_[0], 0, stat_of(~0 >> 1)) } },
	many_results => { $multi => sub { return answer_to($_[0], 0, result(13) x 100, result(-1)) } },
	few_results => { $multi => sub { return answer_to($_[0], 0, result(-1)) } },
	no_results => { $multi => sub { return answer_to($_[0], 0) } },
	other_results => { $multi => sub { return answer_to($_[0], 0, result(5, stat_of(0)) x 4, result(-1)) } },
	error_for_results => { $multi => sub { return answer_to($_[0], -102) } },
	long_terms => { terms => sub { return pack('l>', $max) . $kilobyte } },
	negative_terms => { terms => sub { return pack('l>', -5) . $kilobyte } },
	other_terms => { terms => sub { return frame(pack 'l> l> q> l>', 0, 4000, 42, 1000, $kilobyte) } },
	long_password => { terms => sub { return frame(pack 'l> l> q> l> a17', 0, 4000, 42, $max, '') } },
	no_terms => { terms => sub { return '' } });

sub names
{
	return sort keys %answers;
}

sub serve
{
	my ($self, $client) = @_;
	my $how = slurp_file($self->{file});
	my $different = $answers{$how} // die "unknown answer $how";
	my $terms = $different->{terms} // sub { return frame(pack 'l> l> q> N/a* C', 0, 15000, 42, 'p' x 16, 0) };

	(undef) = $self->request($client);
	append_to_file("$self->{file}.told", "$how\n");
	Snowflake::FakeServer::print_all($client, $terms->());
	for (;;)
	{
		my ($number, $type) = unpack 'l> l>', $self->request($client);
		my $answer = $different->{$type} // $different->{all} // $right{$type} // last;

		Snowflake::FakeServer::print_all($client, $answer->($number));
	}
	return;
}

sub request
{
	my ($self, $client) = @_;

	return Snowflake::FakeServer::read_all($client, unpack 'N', Snowflake::FakeServer::read_all($client, 4));
}

1;
