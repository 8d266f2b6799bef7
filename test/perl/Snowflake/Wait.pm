# Waiting for a condition of the test's own, as poll_query_until() waits for a query's.

package Snowflake::Wait;

use strict;
use warnings FATAL => 'all';

use Carp;
use Exporter 'import';
use PostgreSQL::Test::Utils ();
use Time::HiRes qw(usleep);

our @EXPORT_OK = qw(wait_until);

# Waits until the code returns true, or dies and says who waited for what.  The code is asked at longer and longer intervals, as it often starts a program.
sub wait_until
{
	my ($what, $code) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	my $pause = 10_000;

	until ($code->())
	{
		croak "waited in vain until $what" if time > $deadline;
		usleep($pause);
		$pause *= 1.5 if $pause < 150_000;
	}
	return;
}

1;
