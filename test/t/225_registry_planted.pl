# The owner of the registry's database plants functions of the extension's names, and replaces the extension's own: no server takes
# what they answer for a claim unless it can be one, and none crashes.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Holder;
use Snowflake::Ledger;
use Snowflake::Registry;
use Snowflake::Wait qw(wait_until);
use Test::More;

my $ledger = Snowflake::Ledger->new;
my $registry = Snowflake::Registry->new('registry');

$registry->init;
$registry->start;

my $server = Snowflake::Holder->new('one', registry => $registry, ledger => $ledger);

$server->init;
$server->configure('snowflake.node_id' => 7);
$server->begin;
is($server->held, 7, 'a number is held');
$server->take(100);

my $log = $server->log_position;
my $keeper = $server->keeper;

# Overloads that untyped parameters would choose, and operators that an unqualified statement would use.
$registry->safe_psql('postgres', q{
	CREATE FUNCTION snowflake_internal.registry_read(text, text, text, text, OUT clock bigint, OUT generation bigint) LANGUAGE sql AS 'SELECT 1::bigint, 1::bigint WHERE false';
	CREATE FUNCTION snowflake_internal.registry_read(text, numeric, text, text) RETURNS int LANGUAGE sql AS 'SELECT 1';
	CREATE FUNCTION snowflake_internal.registry_list(varchar) RETURNS int LANGUAGE sql AS 'SELECT 1';
	CREATE FUNCTION snowflake_internal.registry_write(text, text, text, text, text, text, text, text, text, text, text, text, text, text)
		RETURNS boolean LANGUAGE sql AS 'SELECT true';
	CREATE SCHEMA planted;
	CREATE FUNCTION planted.lie(text, text) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $$planted$$; END';
	CREATE FUNCTION planted.lie(name, name) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $$planted$$; END';
	CREATE FUNCTION planted.lie(name, text) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $$planted$$; END';
	CREATE FUNCTION planted.lie(boolean, boolean) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $$planted$$; END';
	CREATE OPERATOR planted.= (LEFTARG = boolean, RIGHTARG = boolean, FUNCTION = planted.lie);
	CREATE OPERATOR planted.= (LEFTARG = text, RIGHTARG = text, FUNCTION = planted.lie);
	CREATE OPERATOR planted.= (LEFTARG = name, RIGHTARG = name, FUNCTION = planted.lie);
	CREATE OPERATOR planted.= (LEFTARG = name, RIGHTARG = text, FUNCTION = planted.lie);
	GRANT USAGE ON SCHEMA planted TO PUBLIC;
	GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA planted, snowflake_internal TO keeper;
	ALTER DATABASE postgres SET search_path = planted, pg_catalog, public;
	ALTER ROLE keeper SET default_transaction_read_only = on;});

my $generation = $registry->safe_psql('postgres', 'SELECT generation FROM "Our ids".snowflake_claims');

# Over new connections, too.
$server->reload;
wait_until('the claim is renewed', sub { $registry->safe_psql('postgres', 'SELECT generation FROM "Our ids".snowflake_claims') > $generation + 3 });
is($server->stat('claim'), 'held', 'overloads and operators beside the extension\'s: they are not used');
$server->take(100);
$registry->safe_psql('postgres', q{ALTER DATABASE postgres SET search_path = public, "Our ids"; DROP SCHEMA planted CASCADE});

# In the place of the extension's: a function, what it returns, and its body.
my %signature = (
	read => 'registry_read(registry_group text, node bigint, me text, claim_window interval)',
	list => 'registry_list(registry_group text)',
	write => 'registry_write(registry_group text, node bigint, form text, incarnation bigint, expected_generation bigint, generation bigint, me text,
		layout text, host text, port int, data_directory text, since bigint, granted_until bigint, alive_for interval)');
my @columns = qw(clock max_forward_jump unsettled incarnation layout generation holder host port data_directory since granted_until alive);
my %type = ((map { $_ => 'bigint' } @columns), (map { $_ => 'text' } qw(layout holder host data_directory)), port => 'int', alive => 'boolean');
my $now = 'floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint';
my %value = (clock => $now, max_forward_jump => 3600000000, unsettled => 0, incarnation => 1, layout => 'NULL', generation => 'NULL', holder => 'NULL',
	host => 'NULL', port => 'NULL', data_directory => 'NULL', since => 'NULL', granted_until => 'NULL', alive => 'NULL');
my %known = (generation => 5, host => "'h'", port => 1, data_directory => "'d'", since => $now, granted_until => $now, alive => 'false');

sub returns
{
	my (%types) = (%type, @_);

	return 'TABLE (' . join(', ', map { "$_ $types{$_}" } @columns) . ')';
}

sub row
{
	my (%values) = (%value, @_);

	# Of the type that is expected, unless they have one.
	return 'SELECT ' . join ', ', map { $values{$_} =~ /::\w+(?:\[\])?$/ ? $values{$_} : "($values{$_})::$type{$_}" } @columns;
}

my $max = '9223372036854775807';
my $unread = qr/^the registry's answer cannot be read: /;

# The function beside it is the extension's, renamed.
sub plant
{
	my ($function, $returns, $body, $language) = @_;
	my ($name, $arguments) = $signature{$function} =~ /^(\w+)(\(.*\))$/s;
	my $types = $arguments =~ s/\w+ (\w+)/$1/gr;

	$language //= 'sql';
	$registry->safe_psql('postgres', qq{
		ALTER FUNCTION snowflake_internal.$name$types RENAME TO true_$name;
		CREATE FUNCTION snowflake_internal.$name$arguments RETURNS $returns LANGUAGE $language AS \$body\$$body\$body\$;
		GRANT EXECUTE ON FUNCTION snowflake_internal.$name$types TO keeper});
	return sub {
		$registry->safe_psql('postgres', qq{
			DROP FUNCTION snowflake_internal.$name$types;
			ALTER FUNCTION snowflake_internal.true_$name$types RENAME TO $name});
	};
}

my @planted = (
	[ 'no row', 'read', returns(), row() . ' WHERE false' ],
	[ 'two rows', 'read', returns(), row() . ' UNION ALL ' . row() ],
	[ 'nulls', 'read', returns(), row(map { $_ => 'NULL' } @columns) ],
	[ 'a number that is a text', 'read', returns(clock => 'text'), row(clock => "'1'::text") ],
	[ 'a number that is a float', 'read', returns(granted_until => 'float8'), row(%known, granted_until => "'NaN'::float8") ],
	[ 'a number that is an array', 'read', returns(generation => 'bigint[]'), row(%known, generation => 'ARRAY[1]::bigint[]') ],
	[ 'a text that is binary', 'read', returns(host => 'bytea'), row(%known, host => "'h'::bytea") ],
	[ 'a claim without a fence', 'read', returns(), row(%known, granted_until => 'NULL') ],
	[ 'a claim without a host', 'read', returns(), row(%known, host => 'NULL') ],
	[ 'a fence without a claim', 'read', returns(), row(granted_until => $now) ],
	[ 'a holder without a claim', 'read', returns(), row(holder => 'me') ],
	[ 'a negative clock', 'read', returns(), row(clock => -1) ],
	[ 'a negative generation', 'read', returns(), row(%known, generation => -1) ],
	[ 'a negative fence', 'read', returns(), row(%known, granted_until => -1) ],
	[ 'a negative port', 'read', returns(), row(%known, port => -1) ],
	[ 'a negative wait', 'read', returns(), row(unsettled => -1) ],
	[ 'a negative bound', 'read', returns(), row(max_forward_jump => -1) ],
	(map { [ "the greatest $_", 'read', returns(), row(%known, $_ => $max) ] } qw(clock max_forward_jump unsettled generation since granted_until)),
	[ 'a long nonce', 'read', returns(), row(%known, holder => "repeat('a', 33)") ],
	[ 'nothing', 'read', 'void', 'SELECT NULL::void', 'sql', qr/column "clock" does not exist/ ],
	# Eight megabytes: a slow machine does not come to their end in the time that the keeper gives it.
	[ 'an error', 'read', returns(), q{BEGIN RAISE EXCEPTION '%', repeat('planted ', 1000000); END}, 'plpgsql', qr/^planted planted|in time$|statement timeout/ ],
	[ 'an error of a server that stops', 'read', returns(), q{BEGIN RAISE EXCEPTION 'planted' USING ERRCODE = '57P01'; END}, 'plpgsql', qr/^planted/ ],
	[ 'notices', 'read', returns(), q{BEGIN FOR i IN 1 .. 1000000 LOOP RAISE NOTICE '%', repeat('look', 1000); END LOOP; END}, 'plpgsql', $unread ],
	[ 'a written claim without a row', 'write', 'SETOF boolean', 'SELECT true WHERE false' ],
	[ 'a claim that is written twice', 'write', 'SETOF boolean', 'SELECT true UNION ALL SELECT true' ],
	[ 'a claim that is written perhaps', 'write', 'boolean', 'SELECT NULL::boolean' ],
	[ 'a claim that is written in a word', 'write', 'text', q{SELECT 'true'} ],
	[ 'a claim that is written in a number', 'write', 'int', 'SELECT 1' ],
	[ 'an error as a claim is written', 'write', 'boolean', q{BEGIN RAISE EXCEPTION 'planted'; END}, 'plpgsql', qr/^planted/ ]);

foreach my $case (@planted)
{
	my ($name, $function, $returns, $body, $language, $problem) = @$case;
	my $take_away = plant($function, $returns, $body, $language);
	my $why = $problem // $unread;

	# Until it has to do without; and its own claim is not renewed by what it is told.
	wait_until("$name: the keeper says what is wrong", sub { $server->stat('problem') =~ $why });
	like($server->stat('claim'), qr/^(?:suspended|lost)$/, "$name: the claim is not renewed");
	is($registry->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'snowflake keeper' AND state = 'active' AND wait_event_type IS NULL
		AND state_change < now() - interval '1 min'}), 0, "$name: nothing goes on there");
	$take_away->();
	is($server->held, 7, "$name: the claim goes on without");
}
$server->take_in_the_end(100);

# A commit that is confirmed is there after a crash, and a transaction is what a write needs, whatever the role's settings say.
foreach my $commit (qw(off local remote_write))
{
	$registry->safe_psql('postgres', "ALTER ROLE keeper SET synchronous_commit = $commit; ALTER ROLE keeper SET default_transaction_isolation = 'serializable'");

	my $take_away = plant('write', 'boolean', q{BEGIN RAISE EXCEPTION 'commit is %, % and read-only is %',
		current_setting('synchronous_commit'), current_setting('transaction_isolation'), current_setting('transaction_read_only'); END}, 'plpgsql');

	# Over a new connection.
	$server->reload;
	wait_until("synchronous_commit = $commit: the keeper has written", sub { $server->stat('problem') =~ /^commit is / });
	is($server->stat('problem'), 'commit is on, read committed and read-only is off', "synchronous_commit = $commit: the keeper sets what it needs");
	$take_away->();
	is($server->held, 7, "synchronous_commit = $commit: the claim goes on");
}
$registry->safe_psql('postgres', 'ALTER ROLE keeper RESET synchronous_commit; ALTER ROLE keeper RESET default_transaction_isolation');

# What became of a release is not known where the registry's server is being stopped, and nothing where it was busy: the keeper
# tries again.
foreach my $state (qw(57P01 55P03))
{
	$registry->safe_psql('postgres', 'CREATE SEQUENCE public.released; GRANT USAGE ON SEQUENCE public.released TO keeper');

	my $take_away = plant('write', 'boolean', qq{BEGIN
		IF form = 'release' AND nextval('public.released') = 1 THEN RAISE EXCEPTION 'planted' USING ERRCODE = '$state'; END IF;
		RETURN snowflake_internal.true_registry_write(\$1, \$2, \$3, \$4, \$5, \$6, \$7, \$8, \$9, \$10, \$11, \$12, \$13, \$14); END}, 'plpgsql');

	$server->stop;
	is($registry->claim(7, 'state'), 'free', "a release that fails with $state: the keeper tries again");
	$take_away->();
	$registry->safe_psql('postgres', 'DROP SEQUENCE public.released');
	$server->start;
	is($server->held, 7, "a release that fails with $state: the number is claimed again");
}

# One number that can't be read among others: any other will do.
my $list = 'TABLE (node bigint, granted_until bigint, freed bigint, free boolean)';

$server->stop;
# A list is read in a third of the window, and a slow machine needs some of it.
$server->configure('snowflake.node_id' => 'auto', 'snowflake.claim_window' => '30s');
foreach my $case (
	[ 'a number beyond the layout', "VALUES (0::bigint, $max, $max, true), (1, -1, -1, true), (99999999, $max, $max, true), ($max, 0, 0, true)", 2 ],
	[ 'numbers that are held', "SELECT g, $now, $now, false FROM generate_series(0::bigint, 9999) AS g WHERE g <> 500", 500 ])
{
	my ($name, $body, $number) = @$case;
	my $take_away = plant('list', $list, $body);

	$server->start;
	is($server->held, $number, "$name: auto");
	$server->stop;
	$take_away->();
}
foreach my $case (
	[ 'numbers out of order', 'VALUES (3::bigint, 0::bigint, 0::bigint, true), (2, 0, 0, true)' ],
	[ 'a number twice', 'VALUES (3::bigint, 0::bigint, 0::bigint, true), (3, 0, 0, true)' ],
	[ 'a negative number', 'VALUES (-3::bigint, 0::bigint, 0::bigint, true)' ],
	[ 'no number', 'VALUES (NULL::bigint, 0::bigint, 0::bigint, true)' ],
	[ 'free perhaps', 'VALUES (1::bigint, 0::bigint, 0::bigint, NULL::boolean)' ],
	[ 'numbers without an end', 'SELECT g, 0::bigint, 0::bigint, false FROM generate_series(0::bigint, 1000000000) AS g' ])
{
	my ($name, $body) = @$case;
	my $take_away = plant('list', $list, $body);

	$server->start;
	wait_until("$name: the keeper says what is wrong", sub { $server->stat('problem') =~ /$unread|in time$|statement timeout/ });
	is($server->stat('claim'), 'none', "$name: no claim");
	$server->stop;
	$take_away->();
}

unlike($server->log_since($log), qr/terminated by signal|all server processes terminated/, 'nothing crashed');
$ledger->check('functions that somebody planted');
done_testing();
