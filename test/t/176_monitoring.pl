# The files for Prometheus and Grafana in examples/monitoring: the exporter's query gives the metrics that it names, and the
# alerts and the dashboard use no other, counters by their rate.  The dashboard is laid out as Grafana reads it.

use strict;
use warnings FATAL => 'all';

use JSON::PP;
use PostgreSQL::Test::Utils qw(slurp_file);
use Snowflake::Server;
use Test::More;

my %text = map { $_ => slurp_file("examples/monitoring/$_") } qw(queries.yaml alerts.yml dashboard.json);
my ($query) = $text{'queries.yaml'} =~ /^  query: \|\n((?:    .*\n)+)/m;
my %usage = $text{'queries.yaml'} =~ /^    - (\w+): \{usage: "(\w+)"/mg;
my @metrics = keys %usage;
# What the exporter makes of them: a label is no metric.
my %has = map { ("snowflake_$_" => $usage{$_}) } grep { $usage{$_} ne 'LABEL' } @metrics;
my %labels = map { ($_ => 1) } 'instance', grep { $usage{$_} eq 'LABEL' } @metrics;

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
$server->step_clock(-1200);
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
my $dashboard = decode_json($text{'dashboard.json'});
my %variables = map { ($_->{name} => $_) } @{ $dashboard->{templating}->{list} };
my (%ids, %places);

# What Grafana 9 writes; later ones read it, and change it as they need it.
is($dashboard->{schemaVersion}, 36, 'dashboard: the version of its form');
like($dashboard->{uid}, qr/^[\w-]{1,40}$/, 'dashboard: a name for links');
cmp_ok(length $dashboard->{title}, '>', 0, 'dashboard: a title');
is($variables{datasource}->{type}, 'datasource', 'dashboard: Grafana asks for the source of data');
like($variables{instance}->{query}->{query}, qr/^label_values\((\w+), instance\)$/, 'dashboard: and for the server');
foreach my $panel (@{ $dashboard->{panels} })
{
	my ($title, $place) = @$panel{qw(title gridPos)};

	like($panel->{id}, qr/^[1-9]\d*$/, "$title: has a number");
	ok(!$ids{ $panel->{id} }++, "$title: of its own");
	like($panel->{type}, qr/^(stat|timeseries)$/, "$title: a kind of panel that Grafana has");
	is_deeply($panel->{datasource}, { type => 'prometheus', uid => '${datasource}' }, "$title: asks the source that was chosen");
	cmp_ok($place->{x} + $place->{w}, '<=', 24, "$title: lies on the page");
	foreach my $x ($place->{x} .. $place->{x} + $place->{w} - 1)
	{
		push @{ $places{"$x $_"} }, $title foreach $place->{y} .. $place->{y} + $place->{h} - 1;
	}
	is(scalar keys %{ { map { ($_->{refId} => 1) } @{ $panel->{targets} } } }, scalar @{ $panel->{targets} }, "$title: its queries have names of their own");
	foreach my $target (@{ $panel->{targets} })
	{
		my ($function, $metric, $condition, $range) = $target->{expr} =~ /^(?:(rate|increase)\()?(snowflake_\w+)\{([^{}]*)\}(?(1)\[(\w+)\]\))$/;

		ok(defined $metric, "$title: a query of a known form") or diag($target->{expr});
		is($has{$metric}, defined $function ? 'COUNTER' : 'GAUGE', "$title: a counter by its rate, a gauge by its value: $metric");
		is($condition, 'instance=~"$instance"', "$title: of the server that was chosen");
		is_deeply([ grep { !$labels{$_} } $target->{legendFormat} =~ /\{\{(\w+)\}\}/g ], [], "$title: its legend has labels that there are");
	}
}
is_deeply([ grep { @$_ > 1 } values %places ], [], 'dashboard: no panel lies on another');
is_deeply([ grep { !$variables{$_} } $text{'dashboard.json'} =~ /\$\{?(?!__)(\w+)/g ], [], 'dashboard: no variable that it does not define');

$server->stop;
done_testing();
