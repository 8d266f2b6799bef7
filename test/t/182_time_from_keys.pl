# The statements of doc/time-from-keys.md, and what it says of them: pages by key cost the same wherever they lie,
# partitions by time are made and dropped, by hand and by the real pg_partman, and a BRIN index leads to few pages.

use strict;
use warnings FATAL => 'all';

use JSON::PP;
use PostgreSQL::Test::Utils qw(slurp_file);
use Snowflake::Documentation qw(blocks sql_like);
use Snowflake::Missing qw(missing);
use Snowflake::Server;
use Test::More;

my $page = 'doc/time-from-keys.md';
my $server = Snowflake::Server->new('one');

# Days and months are those of UTC.
$ENV{PGTZ} = 'UTC';
$server->init;
$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION snowflake');

# The plan's nodes with what they did.
sub nodes_of
{
	my ($query) = @_;
	my @left = decode_json($server->safe_psql('postgres', "SET max_parallel_workers_per_gather = 0; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) $query"))->[0]->{Plan};
	my @nodes;

	while (my $node = shift @left)
	{
		push @nodes, $node;
		push @left, @{ $node->{Plans} // [] };
	}
	return @nodes;
}

# Paging: from the last id of a page to the next.
$server->safe_psql('postgres', sql_like($page, qr/^CREATE TABLE posts/));

my ($next) = sql_like($page, qr/FROM posts WHERE author_id/) =~ /^(SELECT .*);/m;
my ($last, @seen) = (9223372036854775807);

while (1)
{
	my @rows = split /\n/, $server->safe_psql('postgres', $next =~ s/id <= \S+/id < $last/r =~ s/\*/id/r);

	last unless @rows;
	push @seen, @rows;
	$last = $rows[-1];
}
is(join(' ', @seen), $server->value(q{string_agg(id::text, ' ' ORDER BY id DESC) FROM posts WHERE author_id = 7}), 'page after page has each row once, in order');
cmp_ok(scalar @seen, '==', 100, 'of five pages');

my ($limit, $scan, @rest) = nodes_of($next =~ s/id <= \S+/id < $seen[39]/r);

is("$limit->{'Node Type'} $scan->{'Node Type'} $scan->{'Index Name'} $scan->{'Actual Rows'}" =~ s/\.0+$//r, 'Limit Index Scan posts_of_author 20', 'a page in the middle: its rows alone are read, in order');
is(scalar @rest, 0, 'nothing is sorted');

# Partitions by hand, which tell their times by their bounds.
my $bounds = q{SELECT c.relname, snowflake_timestamp(substring(pg_get_expr(c.relpartbound, c.oid) FROM $$FROM \('(\d+)'$$)::bigint),
	snowflake_timestamp(substring(pg_get_expr(c.relpartbound, c.oid) FROM $$ TO \('(\d+)'$$)::bigint)
	FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = '%s'::regclass AND pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT' ORDER BY 2};

sub bounds
{
	my ($table) = @_;

	return $server->safe_psql('postgres', sprintf $bounds, $table);
}

my $table = sql_like($page, qr/^CREATE TABLE events/);
my $make = sql_like($page, qr/CREATE TABLE IF NOT EXISTS/);
my $drop = sql_like($page, qr/DROP TABLE/);

$server->safe_psql('postgres', $table);
$server->safe_psql('postgres', $make) foreach 1, 2;
is(bounds('events'), $server->safe_psql('postgres', q{
		SELECT to_char(month, '"events_"YYYY_MM'), month, month + interval '1 month'
		  FROM generate_series(date_trunc('month', now()), date_trunc('month', now()) + interval '3 months', interval '1 month') AS month}),
	'four partitions, from this month on, and none is made twice');
$server->safe_psql('postgres', q{INSERT INTO events (what) VALUES ('now')});
like($server->value('tableoid::regclass FROM events'), qr/^events_\d{4}_\d\d$/, 'a row goes into one');

# Old ones: the day before the 90th, and after it.
$server->safe_psql('postgres', q{SELECT format('CREATE TABLE events_%s PARTITION OF events FOR VALUES FROM (%s) TO (%s)', name,
		snowflake_min_id(now() - days * interval '1 day' - interval '1 day'), snowflake_min_id(now() - days * interval '1 day'))
	FROM (VALUES ('old', 91), ('edge', 89)) AS t (name, days) \gexec});
my %scanned = map { ($_->{'Relation Name'} => $_->{'Actual Rows'}) } grep { $_->{'Relation Name'} && $_->{'Actual Loops'} > 0 }
  nodes_of(sql_like($page, qr/^SELECT count\(\*\) FROM events/) =~ s/;//r);

is(join(' ', grep { !/^events_\d/ } sort keys %scanned), '', 'those of before are not looked at');
is(scalar(grep { $_ > 0 } values %scanned), 1, 'the row is found');
$server->safe_psql('postgres', $drop);
is($server->value(q{string_agg(relname, ' ') FROM pg_class WHERE relname IN ('events_old', 'events_edge')}), 'events_edge', 'what is older than 90 days goes, and nothing else');
$server->safe_psql('postgres', q{INSERT INTO posts (id, author_id) SELECT snowflake_encode(now() - interval '91 days', 1, n), 7 FROM generate_series(1, 20) AS n});
$server->safe_psql('postgres', sql_like($page, qr/^DELETE FROM posts/));
is($server->value('count(*) FROM posts'), 100000, 'rows of one table, too');

# An index on few pages.
$server->safe_psql('postgres', sql_like($page, qr/^CREATE TABLE measurements/));

my ($bitmap) = grep { $_->{'Node Type'} eq 'Bitmap Heap Scan' } nodes_of(sql_like($page, qr/^EXPLAIN \(COSTS OFF\) SELECT avg/) =~ s/^.*?(?=SELECT)|;//gr);
my $pages = $server->value(q{relpages FROM pg_class WHERE relname = 'measurements'});

ok(defined $bitmap, 'BRIN: a bitmap scan');
cmp_ok($bitmap->{'Lossy Heap Blocks'}, '<=', 256, "BRIN: it reads two ranges of pages at most, of $pages pages");
cmp_ok($pages, '>', 500, 'BRIN: of many');
cmp_ok($bitmap->{'Actual Rows'}, '>', 3000, 'BRIN: all rows of a day');
cmp_ok($server->value(q{pg_relation_size('measurements_id')}), '<=', 5 * 8192, 'BRIN: the index is small');

# pg_partman, where Debian has it.
my $version = $server->value(q{default_version FROM pg_available_extensions WHERE name = 'pg_partman'});

SKIP:
{
	my $reason = $version ne '' ? undef :
		$server->pg_version->major >= 19 ? 'Debian has no pg_partman for this version' : missing('there is no pg_partman');

	skip $reason, 1 if defined $reason;
	note("pg_partman $version");

	my ($parent) = map { $_->{sql} } grep { $_->{sql} =~ /^SELECT partman\.create_parent\('public\.events'/ } blocks($page);
	my $has_encoders = $version !~ /^4\./;
	my $tickets = sql_like($page, qr/^CREATE TABLE tickets/);

	$parent =~ s/'id',/'id', p_type => 'native',/ unless $has_encoders;
	$server->safe_psql('postgres', "DROP TABLE events; CREATE SCHEMA partman; CREATE EXTENSION pg_partman SCHEMA partman; $table;" . $parent =~ s/now\(\)/now() - interval '100 days'/r =~ s/\)::text\)/)::text, p_premake => 102)/r);

	my $epoch = $server->value(q{(snowflake_layout()).epoch::time});
	my @days = map { [ split /\|/ ] } split /\n/, bounds('events');

	cmp_ok(scalar @days, '>=', 100, "pg_partman: partitions from the day that was given on");
	is(scalar(grep { $_->[1] !~ /\Q$epoch\E/ || $_->[2] !~ /\Q$epoch\E/ } @days), 0, 'pg_partman: a day begins at the time of day of the epoch');
	is(scalar(grep { $days[ $_ + 1 ]->[1] ne $days[$_]->[2] } 0 .. $#days - 1), 0, 'pg_partman: one follows the other');
	$server->safe_psql('postgres', q{INSERT INTO events SELECT snowflake_min_id(now() - days * interval '1 day'), 'old' FROM generate_series(0, 99) AS days;
		INSERT INTO events (what) VALUES ('now')});
	is($server->value('count(*) FROM ONLY events_default'), 0, 'pg_partman: every row has its partition');
	is($server->value(q{count(DISTINCT tableoid) FROM events}), 100, 'pg_partman: one a day');
	$server->safe_psql('postgres', sql_like($page, qr/^UPDATE partman\.part_config/) . q{UPDATE partman.part_config SET premake = 3; SELECT partman.run_maintenance('public.events')});
	@days = map { [ split /\|/ ] } split /\n/, bounds('events');
	cmp_ok($server->value('min(snowflake_timestamp(id)) FROM events'), 'ge', $server->value(q{now() - interval '92 days'}), 'pg_partman: old days are gone');
	cmp_ok($server->value('count(*) FROM events'), '>=', 90, 'pg_partman: others are not');
	cmp_ok($days[-1]->[1], 'gt', $server->value('now()'), 'pg_partman: there are partitions ahead');

	# An integer takes no encoder, and 4.7 has none.
	my ($status, $out, $err) = $server->psql('postgres', "DROP TABLE events; DELETE FROM partman.part_config; $table;"
		. q{SELECT partman.create_parent('public.events', 'id', p_interval => '1 day', p_time_encoder => 'public.snowflake_time_encoder', p_time_decoder => 'public.snowflake_time_decoder')});

	isnt($status, 0, 'pg_partman: a key that is an integer takes no encoder');
	like($err, $has_encoders ? qr/can only be used with text/ : qr/function partman.create_parent\(.*\) does not exist/, 'pg_partman: it says why');
	skip 'pg_partman 4 has no encoders', 1 unless $has_encoders;

	# It keeps what was given, and reads the clock by it.
	$server->safe_psql('postgres', $tickets =~ s/'1 month'/'1 month', p_start_partition => (now() - interval '6 months')::text/r);
	$server->safe_psql('postgres', q{INSERT INTO tickets (what) VALUES ('now');
		INSERT INTO tickets SELECT snowflake_to_base62(snowflake_min_id(now() - months * interval '1 month')), 'old' FROM generate_series(1, 5) AS months});
	is($server->value('count(*) FROM ONLY tickets_default'), 0, 'pg_partman, text: every row has its partition');
	is($server->value(q{bool_and(right(tableoid::regclass::text, 8) = to_char(snowflake_time_decoder(id), 'YYYYMM01')) FROM tickets}), 't',
		'pg_partman, text: of its month, which begins on the first');
	$server->safe_psql('postgres', q{UPDATE partman.part_config SET retention = '90 days', retention_keep_table = false WHERE parent_table = 'public.tickets';
		SELECT partman.run_maintenance('public.tickets')});
	cmp_ok($server->value('min(snowflake_time_decoder(id)) FROM tickets'), 'ge', $server->value(q{now() - interval '122 days'}), 'pg_partman, text: old months are gone');
	cmp_ok($server->value('count(*) FROM tickets'), '>=', 3, 'pg_partman, text: others are not');
	is($server->value(q{child_start_time = date_trunc('month', now()) FROM partman.show_partition_info('public.tickets_p' || to_char(now(), 'YYYYMM01'), p_parent_table => 'public.tickets')}), 't',
		'pg_partman, text: it reads the bounds');
}

$server->stop;
done_testing();
