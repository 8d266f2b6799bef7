# Waiting for a condition of the test's own, as poll_query_until() waits for a query's.

package Snowflake::Wait;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use PostgreSQL::Test::Utils ();
use Time::HiRes qw(usleep);

our @EXPORT_OK = qw(wait_until);

# Waits until the code returns true.
sub wait_until
{
	my ($what, $code) = @_;
	my $tries = 50 * $PostgreSQL::Test::Utils::timeout_default;

	until ($code->())
	{
		die "waited in vain until $what" if $tries-- == 0;
		usleep(20_000);
	}
	return;
}

1;
