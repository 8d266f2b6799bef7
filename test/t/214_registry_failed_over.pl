# A registry that is failed over to a standby which has not received its last
# transactions; see Snowflake::Forgetting.

use strict;
use warnings FATAL => 'all';

use Snowflake::Forgetting;
use Test::More;

my $scene = Snowflake::Forgetting->new;
my ($registry, $successor) = @$scene{qw(registry successor)};

sub make_standby
{
	$registry->backup('standby');
	$successor->init_from($registry, 'standby');
	$successor->{installed} = 1;
	$successor->start;
	$registry->wait_for_catchup($successor, 'replay', $registry->lsn('flush'));
	$successor->stop;
	return;
}

sub promote_standby
{
	$successor->start;
	$successor->promote;
	$successor->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'the standby was not promoted';
	$scene->{asked} = $successor;
	return;
}

$scene->forget('failed over', save => \&make_standby, take_away => sub { $scene->stop_registry }, put_back => \&promote_standby);
$scene->check;
done_testing();
