# What a test needs beside PostgreSQL, and a machine may lack: the test is skipped there.
#
# Where SNOWFLAKE_TEST_ALL is set nothing may be lacking, and the test fails.

package Snowflake::Missing;

use strict;
use warnings FATAL => 'all';

use Exporter qw(import);

our @EXPORT_OK = qw(missing);

# Passes on why a test is to be skipped, where there is a reason.
sub missing
{
	my ($reason) = @_;

	die "$reason, and SNOWFLAKE_TEST_ALL is set" if defined $reason && $ENV{SNOWFLAKE_TEST_ALL};
	return $reason;
}

1;
