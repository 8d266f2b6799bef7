# A registry that is restored from a base backup; see Snowflake::Forgetting.

use strict;
use warnings FATAL => 'all';

use Snowflake::Forgetting;
use Test::More;

my $scene = Snowflake::Forgetting->new;

$scene->forget('restored from a base backup',
	save => sub { $scene->{registry}->backup('saved') },
	take_away => sub { $scene->stop_registry },
	put_back => sub { $scene->{registry}->put_back('saved') });
$scene->check;
done_testing();
