# A registry that is restored, and looked at before its holders can reach it: the
# time that they are given begins when it is used.

use strict;
use warnings FATAL => 'all';

use Snowflake::Forgetting;
use Snowflake::Proxy;
use Test::More;

my $scene = Snowflake::Forgetting->new;
my ($registry, $holder, $newcomer) = @$scene{qw(registry moved newcomer)};
my $proxy = Snowflake::Proxy->new($registry->host, $registry->port);

$registry->backup('empty');
$holder->configure('snowflake.registry' => $registry->address(host => '127.0.0.1', port => $proxy->port));
Snowflake::Forgetting::start_on($holder, 9);
is($holder->held, 9, 'number 9 is held');
$holder->start_clients('single');
$holder->wait_for_clients(4096);
$proxy->refuse;
$proxy->cut;
$scene->stop_registry;
$scene->{registry}->put_back('empty');
# Longer than the holder's window.
$registry->poll_query_until('postgres', "SELECT clock_timestamp() > pg_postmaster_start_time() + interval '4 s'") or die 'the clock stands still';
Snowflake::Forgetting::start_on($newcomer, 9);
$newcomer->refused_in_the_end($Snowflake::Forgetting::unsettled, 'a newcomer');
$proxy->accept;
$holder->goes_on;
$newcomer->refused_for($holder, 'a newcomer wants number 9');
is($newcomer->stat('ids'), 0, 'the newcomer has made no id');
$holder->finish_clients;
$scene->check;
done_testing();
