# snowflake_check_cluster(): several servers side by side, and every problem that it has words for.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Test::More;

my $primary = Snowflake::Server->new('one');
my $two = Snowflake::Server->new('two');
my $odd = Snowflake::Server->new('odd');

$primary->init(allows_streaming => 1);
$two->set_clock(0);
$two->init;
$two->configure('snowflake.node_id' => '2');
$odd->init;
$odd->configure('snowflake.node_id' => '3', 'snowflake.layout' => 'timestamp:40 node:8 sequence:12 tick:10ms epoch:2024-01-01');
foreach my $server ($primary, $two, $odd)
{
	$server->start;
	$server->safe_psql('postgres', 'CREATE SCHEMA "Our ids"; CREATE EXTENSION snowflake SCHEMA "Our ids"');
	$server->safe_psql('postgres', 'ALTER DATABASE postgres SET search_path = public, "Our ids"');
}
$primary->safe_psql('postgres', 'CREATE EXTENSION postgres_fdw; CREATE FOREIGN DATA WRAPPER another; CREATE SERVER files FOREIGN DATA WRAPPER another');
$primary->backup('first');

my $standby = Snowflake::Server->new('standby');

$standby->init_from($primary, 'first');
$standby->start;

# A server of postgres_fdw on the first server, or on another one, with a user mapping.
sub connect_to
{
	my ($name, $server, $database, $from) = @_;

	($from // $primary)->safe_psql('postgres',
		sprintf(q{CREATE SERVER "%s" FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname '%s');}, $name, $server->host, $server->port, $database)
		  . qq{CREATE USER MAPPING FOR CURRENT_USER SERVER "$name"});
	return;
}

# These columns of all rows, as the first server finds them.
sub check
{
	my ($columns, $servers, $before) = @_;

	return $primary->safe_psql('postgres', ($before // '') . " SELECT $columns FROM snowflake_check_cluster('{$servers}')");
}

# The problems of one server, checked alone.
sub problems
{
	my ($server, $before) = @_;

	return $primary->safe_psql('postgres', ($before // '') . " SELECT problems FROM snowflake_check_cluster('{$server}') WHERE server = '$server'");
}

# Nothing is left in the session that called it.
sub leaves_nothing
{
	my ($servers, $name) = @_;

	is($primary->safe_psql('postgres', qq{SELECT count(problems) FROM snowflake_check_cluster('{$servers}') WHERE server = '(this server)';
			SELECT count(*) FROM pg_class WHERE relkind = 'f' OR relnamespace = pg_my_temp_schema()}),
		"0\n0", "$name: no foreign table is left");
	return;
}

connect_to('Two', $two, 'postgres');
connect_to('odd', $odd, 'postgres');
connect_to('standby', $standby, 'postgres');
connect_to('myself', $primary, 'postgres');
connect_to('two_again', $two, 'postgres');

# This server alone, everywhere.
is(check('server, node_id, node_source, claim, layout, clock_difference, problems IS NULL', ''), '(this server)|1|setting|none|twitter|00:00:00|t', 'no other server');
is($standby->value(q{string_agg(server || ': ' || problems, '') FROM snowflake_check_cluster('{}')}),
	'(this server): is in recovery: no ids until it is promoted', 'a standby itself');
is($primary->value('count(*) FROM snowflake_check_cluster(NULL)'), 0, 'no array');

# All well.
is(check(q{server, node_id, node_source, claim, layout, epoch = (snowflake_layout('twitter')).epoch, clock_difference, problems}, 'Two'),
	"(this server)|1|setting|none|twitter|t|00:00:00|\nTwo|2|setting|none|twitter|t|00:00:00|", 'two servers');
is(check(q{server_version = split_part(current_setting('server_version'), ' ', 1)
	AND extension_version = (SELECT extversion FROM pg_extension WHERE extname = 'snowflake')}, 'Two'), "t\nt", 'their versions');
is($primary->safe_psql('postgres', q{BEGIN; SELECT count(error) FROM snowflake_internal.remote_server('Two'); SELECT count(error) FROM snowflake_internal.remote_server('Two'); COMMIT}),
	"0\n0", 'twice in one transaction');
leaves_nothing('Two', 'after a check');
$primary->take(1);
$two->take(1);
is(check('claim', 'Two'), "held\nheld", 'claims that are held');

# Bad input.
$primary->refuses(q{SELECT snowflake_check_cluster('{Two,nosuch}')}, qr/ERROR: .*server "nosuch" does not exist.*HINT: .*postgres_fdw/s, 'an unknown server');
$primary->refuses(q{SELECT snowflake_check_cluster('{files}')},
	qr/ERROR: .*server "files" is not a postgres_fdw server.*DETAIL: .*"another".*HINT: .*postgres_fdw/s, 'a server of another wrapper');
$primary->refuses(q{SELECT snowflake_check_cluster('{Two,NULL}')}, qr/ERROR: .*server name must not be null/, 'NULL among the names');
$primary->refuses(q{BEGIN READ ONLY; SELECT snowflake_check_cluster('{Two}')}, qr/cannot check other servers in a read-only transaction.*HINT/s, 'a read-only transaction');
$standby->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_foreign_server WHERE srvname = 'two_again'}) or die 'the standby does not follow';
$standby->refuses(q{SELECT snowflake_check_cluster('{Two}')}, qr/cannot check other servers during recovery.*HINT/s, 'from a standby');

# A standby has its primary's number; a server that is listed twice has its own.
is(check('problems', 'standby'), "\nis in recovery: no ids until it is promoted", 'a standby of this server');
is(check('problems', 'Two,two_again,myself'), qq{\n\nis the same server as "Two"\nis the same server as this server}, 'the same server twice');

# Another layout.
is(check(q{server, node_id, layout, problems IS NULL}, 'odd'),
	"(this server)|1|twitter|t\nodd|3|timestamp:40 node:8 sequence:12 tick:10ms epoch:2024-01-01|f", 'another layout is shown');
is(problems('odd', "SET TimeZone = 'UTC';"),
	"its layout is timestamp:40 node:8 sequence:12, that of this server timestamp:41 datacenter:5 worker:5 sequence:12\n"
	  . "its epoch is 2024-01-01 00:00:00+00, that of this server 2010-11-04 01:42:54.657+00\n"
	  . 'its tick is 00:00:00.01, that of this server 00:00:00.001', 'another layout, epoch and tick');
$odd->restart_with_layout('twitter tick:2ms');
is(problems('odd'), 'its tick is 00:00:00.002, that of this server 00:00:00.001', 'another tick alone');

# One number for three servers.
$odd->restart_with_layout('twitter', 'snowflake.node_id' => '2');
is(check('problems', 'Two,odd'), join("\n", '', ('"Two" and "odd" have the same node number, 2: their ids can repeat') x 2), 'the same number twice');
$odd->configure('snowflake.node_id' => '1');
$odd->restart;
$two->configure('snowflake.node_id' => '1');
$two->restart;
is(check('problems', 'Two,odd,standby'), join("\n", ('this server and "Two" and "odd" have the same node number, 1: their ids can repeat') x 3,
	'is in recovery: no ids until it is promoted'), 'the same number three times');
$two->configure('snowflake.node_id' => '2');
$two->restart;

# No number, or one that does not fit.
$odd->configure('snowflake.node_id' => '');
$odd->restart;
is(problems('odd'), 'no node number is set: set snowflake.node_id and restart the server', 'no number');
$odd->configure('snowflake.node_id' => '5000');
$odd->restart;
is(problems('odd'), 'has no node number; snowflake.node_id gives none by setting', 'a number that does not fit');

# A layout that ends.
my $epoch = $odd->value(q{to_char(now() - interval '300 days', 'YYYY-MM-DD')});
$odd->restart_with_layout("timestamp:35 node:10 sequence:12 epoch:$epoch", 'snowflake.node_id' => '3');
like(problems('odd'), qr/^the time of its layout ends within a year, at \d{4}-/m, 'a layout that ends within a year');
$epoch = $odd->value(q{to_char(now() - interval '500 days', 'YYYY-MM-DD')});
$odd->restart_with_layout("timestamp:35 node:10 sequence:12 epoch:$epoch");
like(problems('odd'), qr/^the time of its layout ended at \d{4}-/m, 'a layout that has ended');

# The library not loaded.
$odd->restart_with_layout('twitter', 'shared_preload_libraries' => '');
is(check('server, node_id, layout, server_version IS NOT NULL, extension_version IS NOT NULL, problems', 'odd'),
	"(this server)|1|twitter|t|t|\nodd|||t|t|the library is not loaded: add snowflake to shared_preload_libraries and restart the server", 'a library that is not loaded');

# What a registry brings, shown by databases that pretend: their view says what it is told to.
my @columns = split /\n/, $two->safe_psql('postgres', q{SELECT attname FROM pg_attribute WHERE attrelid = 'snowflake_internal.server'::regclass AND attnum > 0 ORDER BY attnum});

sub pretend
{
	my ($database, %facts) = @_;

	$two->safe_psql($database, 'CREATE OR REPLACE VIEW snowflake_internal.server AS SELECT ' . join(', ', map { ($facts{$_} // "own.$_") . " AS $_" } @columns) . ' FROM snowflake_internal.server() AS own');
	return;
}

$odd->safe_psql('postgres', 'CREATE EXTENSION postgres_fdw');
foreach my $name ('actor', 'actress')
{
	$two->safe_psql('postgres', "CREATE DATABASE $name");
	$two->safe_psql($name, 'CREATE EXTENSION snowflake');
	connect_to($name, $two, $name);
	connect_to($name, $two, $name, $odd);
}
my %actor = (node_id => '9::bigint', system_identifier => '1::bigint', claim => q{'held'::text}, registry_group => q{'blue'::text});
my %actress = (%actor, node_id => '10::bigint', system_identifier => '2::bigint');

# Nothing is issued yet.
$two->restart;
pretend('actor', %actor);
pretend('actress', %actress);
is(check('claim, problems', 'actor,Two'), "held|\nheld|\nnone|", 'no registry: no claim is no problem');
pretend('actor', %actor, claim => q{'suspended'::text}, registry_group => 'NULL::text');
is(check('claim, problems', 'actor,Two'), join("\n", 'held|',
	'suspended|its claim is suspended: no ids after what it was granted; its snowflake_stat says why',
	'none|holds no claim, and a registry is used'), 'a claim that is suspended, and none');
pretend('actor', %actor, claim => q{'lost'::text}, registry_group => 'NULL::text');
is(check('claim, problems', 'actor,Two'), join("\n", 'held|', 'lost|its claim is lost: no ids until it holds one again',
	'none|holds no claim, and a registry is used'), 'a claim that is lost, and none');

# Where this server has no layout, the others are compared with the first one that has.
pretend('actor', %actor);
pretend('actress', %actress, claim => q{'lost'::text}, registry_group => q{'green'::text}, tick => q{interval '5 ms'}, limit_tick => q{interval '5 ms'});
is($odd->value(q{string_agg(problems, E'\n') FROM snowflake_check_cluster('{actor,actress}') WHERE server <> '(this server)'}),
	join("\n", 'its tick is 00:00:00.005, that of "actor" 00:00:00.001', 'its claim is lost: no ids until it holds one again',
		'its registry group is "green", that of "actor" "blue"'), 'another registry group');
$two->take(1);

# Clocks.
is(check('clock_difference, problems IS NULL', 'Two', 'SET snowflake.max_wait = 0;'), "00:00:00|t\n00:00:00|t", 'clocks that are alike');
$two->step_clock(30);
like(problems('Two'), qr/^its clock is 00:00:(30|29\.9)\S* ahead of this server's, more than 00:00:02: set it right$/, 'a clock that is ahead');
is($primary->value(q{abs(extract(epoch FROM clock_difference) - 30) <= extract(epoch FROM clock_uncertainty) + 0.001 FROM snowflake_internal.remote_server('Two')}), 't',
	'the difference lies within its uncertainty');
is(problems('Two', q{SET snowflake.max_wait = '1min';}), '', 'a clock that max_wait bears');
$two->step_clock(-35);
like(problems('Two'), qr/^its clock is 00:00:(05|04\.9)\S* behind this server's, more than 00:00:02: /, 'a clock that is behind');
$two->step_clock(5.5);
is(problems('Two'), '', 'half a second is borne by max_wait');
like(problems('Two', 'SET snowflake.max_wait = 0;'), qr/ahead of this server's, more than 00:00:00.1: /, 'half a second is more than NTP leaves');
$two->step_clock(-0.5);

# Servers that can't be asked leave the other rows as they are.
connect_to('gone', $odd, 'postgres');
$odd->stop;
is(check(q{server, split_part(problems, ' failed', 1) ~ '^could not be asked: could not connect to server "gone": connection to server'}, 'gone,Two'), "(this server)|\ngone|t\nTwo|", 'a server that is down');
unlike(problems('gone'), qr/\n/, 'its error is one line');
leaves_nothing('gone', 'after an error');
connect_to('nowhere', $two, 'nosuch');
like(problems('nowhere'), qr/^could not be asked: .*database "nosuch" does not exist/, 'a database that is not there');
$primary->safe_psql('postgres', 'DROP USER MAPPING FOR CURRENT_USER SERVER nowhere');
like(problems('nowhere'), qr/^could not be asked: user mapping not found/, 'no user mapping');

# No extension there, and another version.
$two->safe_psql('postgres', 'CREATE DATABASE plain');
connect_to('plain', $two, 'plain');
is(problems('plain'), 'the extension is not there: CREATE EXTENSION snowflake in the database that the server names', 'no extension');
$two->safe_psql('plain', q{CREATE EXTENSION snowflake; UPDATE pg_extension SET extversion = '0.9' WHERE extname = 'snowflake'});
my $version = $primary->value(q{extversion FROM pg_extension WHERE extname = 'snowflake'});
is(check('extension_version, problems', 'plain'), "$version|\n0.9|its extension has version 0.9, that of this server $version: ALTER EXTENSION snowflake UPDATE where it is older", 'another version');
$two->safe_psql('plain', 'ALTER VIEW snowflake_internal.server RENAME TO elsewhere');
like(problems('plain'), qr/^could not be asked: relation "snowflake_internal.server" does not exist\nits extension has version 0.9, /, 'a version without the view');

# A view that fails, and a server that goes away while it is asked.
pretend('actor', node_id => '1 / (own.node_id - own.node_id)');
is(check('problems', 'actor,Two'), "\ncould not be asked: division by zero\n", 'an error there');
# A query that is cancelled there is the other server's; one that is cancelled here is the caller's.
$two->safe_psql('actor', q{CREATE FUNCTION public.cancelled() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE query_canceled USING MESSAGE = 'canceling statement due to statement timeout'; END $$});
pretend('actor', node_id => 'public.cancelled()');
is(check('problems', 'actor,Two'), "\ncould not be asked: canceling statement due to statement timeout\n", 'a query that is cancelled there');
pretend('actor', node_id => '(SELECT 1::bigint FROM pg_sleep(600))');
$primary->refuses(q{SET statement_timeout = 500; SELECT snowflake_check_cluster('{actor,Two}')}, qr/canceling statement due to statement timeout/, 'a query that is cancelled here');
pretend('actor', node_id => 'CASE WHEN pg_terminate_backend(pg_backend_pid()) THEN 1::bigint END');
$primary->refuses(q{SELECT snowflake_check_cluster('{actor,Two}')}, qr/connection to server "actor"/, 'a server that goes away while it is asked');
pretend('actor', %actor);
is(check('problems', 'actor,Two'), "\n\n", 'asked again');

# Whatever a server says, the others' rows are there, and its own says what is wrong, or that it can't be read.
foreach my $extreme (
	[ { clock => q{timestamptz '294276-12-31 23:59:59 UTC'}, layout_ends_at => 'NULL::timestamptz' }, qr/^its clock is \d+ days .* ahead of this server's/ ],
	[ { clock => q{timestamptz '294276-12-31 23:59:59 UTC'} }, qr/^the time of its layout ended at .*\nits clock is \d+ days .* ahead of this server's/ ],
	[ { clock => q{timestamptz '4714-11-24 00:00:00 UTC BC'} }, qr/^its clock is \d+ days .* behind this server's/ ],
	[ { clock => q{timestamptz 'infinity'} }, qr/^(could not be asked: cannot subtract infinite timestamps|the time of its layout ended)/ ],
	[ { clock => q{timestamptz '-infinity'} }, qr/^(could not be asked: cannot subtract infinite timestamps|its clock is)/ ],
	[ { clock => 'NULL::timestamptz' }, qr/^$/ ],
	[ { layout_ends_at => q{timestamptz '4714-11-24 00:00:00 UTC BC'} }, qr/^the time of its layout ended at/ ],
	[ { layout_ends_at => q{timestamptz 'infinity'}, epoch => q{timestamptz 'infinity'} }, qr/^its epoch is infinity/ ],
	[ { layout_ends_at => q{timestamptz '-infinity'}, clock => q{timestamptz '-infinity'} }, qr/^(could not be asked: cannot subtract infinite timestamps|the time of its layout ended|its clock is)/ ],
	[ { tick => q{interval '178956970 years'}, limit_tick => q{interval '-178956970 years'} }, qr/^its tick is / ],
	[ { node_id => '9223372036854775807', timestamp_shift => '2147483647', limit_timestamp_shift => '-2147483648', max_origins => '-2147483648' },
		qr/^has room for -2147483648 replication origins/ ],
	[ { map { ($_ => 'NULL::' . $two->safe_psql('postgres', qq{SELECT format_type(atttypid, atttypmod) FROM pg_attribute
			WHERE attrelid = 'snowflake_internal.server'::regclass AND attname = '$_'})) } @columns }, qr/^the library is not loaded/ ])
{
	my ($facts, $wanted) = @$extreme;
	my $name = keys %$facts < 5 ? join ', ', map { "$_ $facts->{$_}" } sort keys %$facts : 'nothing';

	pretend('actor', %actor, %$facts);
	is(check('server', 'actor,Two'), "(this server)\nactor\nTwo", "$name: a row for each");
	like(problems('actor'), $wanted, "$name: what is wrong");
	is(problems('Two'), '', "$name: nothing is wrong with another");
}
pretend('actor', %actor);

# An ordinary user, here and there.
$two->safe_psql('postgres', 'CREATE ROLE visitor LOGIN; GRANT USAGE ON SCHEMA "Our ids" TO visitor');
$primary->safe_psql('postgres', q{CREATE ROLE caller; GRANT USAGE ON SCHEMA "Our ids" TO caller;
	CREATE USER MAPPING FOR caller SERVER "Two" OPTIONS (user 'visitor', password_required 'false');
	CREATE USER MAPPING FOR caller SERVER two_again OPTIONS (user 'visitor', password_required 'false');
	GRANT USAGE ON FOREIGN SERVER "Two" TO caller});
is(check('server, problems', 'Two,two_again', 'SET ROLE caller;'),
	"(this server)|\nTwo|\ntwo_again|could not be asked: permission denied for foreign server two_again", 'an ordinary user, with a right and without');
$two->safe_psql('postgres', 'REVOKE USAGE ON SCHEMA "Our ids" FROM visitor');
is(problems('Two', 'SET ROLE caller;'), '', 'the user there needs no right on the schema');
$two->safe_psql('postgres', 'REVOKE USAGE ON SCHEMA snowflake_internal FROM PUBLIC');
is(problems('Two', 'SET ROLE caller;'), 'could not be asked: permission denied for schema snowflake_internal', 'without a right there');
$primary->safe_psql('postgres', 'REVOKE TEMP ON DATABASE postgres FROM PUBLIC');
$primary->refuses(q{SET ROLE caller; SELECT snowflake_check_cluster('{Two}')}, qr/permission denied to create temporary tables in database "postgres".*HINT: .*TEMP/s, 'without TEMP');
is(check('server, problems', '', 'SET ROLE caller;'), '(this server)|', 'without TEMP: this server');

done_testing();
