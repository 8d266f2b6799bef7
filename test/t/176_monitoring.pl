# The files for Prometheus and Grafana in examples/monitoring: the exporter's query gives the metrics that it names, and the
# alerts and the dashboard use no other.

use strict;
use warnings FATAL => 'all';

use JSON::PP;
use PostgreSQL::Test::Utils qw(slurp_file);
use Snowflake::Server;
use Test::More;

my %text = map { $_ => slurp_file("examples/monitoring/$_") } qw(queries.yaml alerts.yml dashboard.json);
my ($query) = $text{'queries.yaml'} =~ /^  query: \|\n((?:    .*\n)+)/m;
my @metrics = $text{'queries.yaml'} =~ /^    - (\w+): \{usage: "/mg;
my %has = map { ("snowflake_$_" => 1) } @metrics;

my $server = Snowflake::Server->new('watched');

$server->set_clock(0);
$server->init;
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');

# As a role without any right, and as the exporter reads it: names and values.
sub metrics_now
{
	my $row = decode_json($server->safe_psql('postgres', "SET SESSION AUTHORIZATION watcher; SELECT row_to_json(s) FROM ($query) AS s"));

	return %$row;
}

$server->safe_psql('postgres', 'CREATE ROLE watcher');
$server->take(10);
my %now = metrics_now();

is_deeply([ sort keys %now ], [ sort @metrics ], 'the query has a column for each metric, and no other');
is($now{refused}, 0, 'ids can be had');
is($now{claim_missing}, 0, 'no registry');
is($now{granted_seconds_left}, undef, 'nor time from one');
cmp_ok($now{ids}, '>=', 10, 'ids are counted');
$server->step_clock(-60);
$server->refuses('SELECT snowflake_nextval()', qr/behind/, 'a clock that went back');
%now = metrics_now();
is($now{refused}, 1, 'is seen');
cmp_ok($now{errors}, '>=', 1, 'and counted');

foreach my $file (qw(alerts.yml dashboard.json))
{
	my @used = $text{$file} =~ /\b(snowflake_\w+)(?=[\[\{ ]|\\)/g;

	cmp_ok(scalar @used, '>', 5, "$file uses metrics");
	is_deeply([ grep { !$has{$_} && $_ ne 'snowflake_stat' } @used ], [], "$file uses no others");
}
ok(decode_json($text{'dashboard.json'})->{panels}, 'the dashboard is JSON');

$server->stop;
done_testing();
