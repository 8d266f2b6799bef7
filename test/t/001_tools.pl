# What the other tests rely on: the checker finds what is wrong with ids, and a
# stepped clock leaves CLOCK_BOOTTIME alone.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Ledger qw(cut_to_whole_lines);
use Snowflake::Server;
use Test::More;
use Time::HiRes;

my $count;

sub problems
{
	my (@phases) = @_;
	my $ledger = Snowflake::Ledger->new;

	foreach my $phase (@phases)
	{
		my ($line, @files) = @$phase;

		$ledger->next_phase($line);
		$ledger->record($line, @$_) foreach @files;
	}
	return join "\n", $ledger->problems(\$count);
}

is(problems([ 'one', [ 1, 3, 5 ], [ 2, 4 ] ], [ 'two', [ 6, 9 ] ], [ 'one', [ 7, 8 ] ]),
	'', 'sessions whose ids interleave, phases and lines that ascend are right');
is($count, 9, 'all ids are looked at');
like(problems([ 'one', [ 1, 3, 2 ] ]), qr/0000_one: 1 steps back/, 'a step back in a session is found');
like(problems([ 'one', [ 1, 1 ] ]), qr/0000_one: 1 steps back/, 'a repetition in a session is found');
like(problems([ 'one', [2] ], [ 'one', [1] ]), qr/0001_one: 1 steps back/, 'a step back over phases is found');
like(problems([ 'one', [ 1, 2, 3 ], [2] ]), qr/issued more than once: 2/, 'an id in two sessions is found');
like(problems([ 'one', [ 9, 10 ] ], [ 'two', [10] ]), qr/issued more than once: 10/, 'an id in two lines is found');

my $file = "$PostgreSQL::Test::Utils::tmp_check/cut_ids";

append_to_file($file, "12\n13\n1");
cut_to_whole_lines($file);
is(slurp_file($file), "12\n13\n", 'half an id is cut away');

# The clocks in a program of their own: CLOCK_REALTIME and CLOCK_BOOTTIME.
sub clocks
{
	my ($clock) = @_;
	my $clock_file = "$PostgreSQL::Test::Utils::tmp_check/clock";

	unlink $clock_file;
	append_to_file($clock_file, "$clock\n");
	local %ENV = (%ENV, Snowflake::Server::clock_environment($clock_file));
	return split / /, qx($^X -MTime::HiRes=clock_gettime -e 'printf "%f %f", clock_gettime(0), clock_gettime(7)');
}

my $boot = Time::HiRes::clock_gettime(7);
my $wall = Time::HiRes::clock_gettime(0);
my ($stepped_wall, $stepped_boot) = clocks('-100000');
my $boot_after = Time::HiRes::clock_gettime(7);

cmp_ok($stepped_boot, '>=', $boot, 'a clock set back leaves CLOCK_BOOTTIME alone');
cmp_ok($stepped_boot, '<=', $boot_after, 'a clock set back leaves CLOCK_BOOTTIME alone');
cmp_ok(abs($stepped_wall - $wall + 100000), '<', 1000, 'a clock set back is set back');
cmp_ok((clocks('-2000000000'))[0], '<', 0, 'a clock can be set before 1970');

done_testing();
