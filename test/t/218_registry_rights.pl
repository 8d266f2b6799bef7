# Whoever may call the registry's three functions, and wants more than that gives: by a collation under which all texts
# are equal, a nonce of another role's, a transaction that is left open, arguments and rows that no server writes.
# doc/security.md says what holds.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Holder;
use Snowflake::Ledger;
use Snowflake::Registry;
use Test::More;
use Time::HiRes qw(usleep);

my $ledger = Snowflake::Ledger->new;
my $registry = Snowflake::Registry->new('registry');

$registry->init;
$registry->start;
$registry->safe_psql('postgres', q{CREATE ROLE intruder LOGIN;
	GRANT EXECUTE ON FUNCTION snowflake_internal.registry_read, snowflake_internal.registry_list, snowflake_internal.registry_write TO intruder});

my ($one, $two) = map { Snowflake::Holder->new($_, registry => $registry, ledger => $ledger) } qw(one two);

$_->init foreach $one, $two;
$one->configure('snowflake.node_id' => 7, 'snowflake.layout' => 'game', 'snowflake.claim_window' => '30s');
$one->begin;
is($one->held, 7, 'a number is held');
$one->take(100);

my $nonce = $registry->value(q{holder FROM snowflake_internal.registry_claim WHERE node = 7});
my $guess = '5' x 32;

# Nothing here is to wait without end; what does ends with another error than the one that is expected.
sub command
{
	my ($role, @statements) = @_;

	return [ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $registry->connstr('postgres') . " user=$role",
		map { ('-c', $_) } "SET statement_timeout = '${PostgreSQL::Test::Utils::timeout_default}s'", @statements ];
}

sub answer
{
	my ($role, @statements) = @_;
	my ($out, $err) = run_command(command($role, @statements));

	return $err eq '' ? $out : $err;
}

# A write of what is read in the same statement.
sub written
{
	my (%given) = @_;
	my %write = (registry_group => q{'default'}, node => 7, form => q{'claim'}, incarnation => 'r.incarnation', expected => 'coalesce(r.generation, 0)',
		generation => 'coalesce(r.generation, 0) + 1', me => "'$guess'", layout => 'coalesce(r.layout, l.spec)', host => q{'elsewhere'}, port => 1,
		data_directory => q{'/data'}, since => 'r.clock', granted_until => 'greatest(r.granted_until, r.clock)', alive_for => q{interval '10 s'}, %given);
	my $arguments = join ', ', @write{qw(registry_group node form incarnation expected generation me layout host port data_directory since granted_until alive_for)};

	return qq{SELECT snowflake_internal.registry_write($arguments)
		FROM (SELECT 'timestamp:38 server:20 sequence:5 tick:10ms epoch:2025-01-01'::text AS spec) AS l,
			 snowflake_internal.registry_read('default', 7, '$guess', '1s') AS mine,
			 snowflake_internal.registry_read(} . ($write{read_group} // $write{registry_group}) . ', ' . ($write{read_node} // $write{node}) . qq{, '$guess', '1s') AS r};
}

sub refused
{
	my ($pattern, $name, %given) = @_;

	like(answer('intruder', written(%given)), $pattern, $name);
	return;
}

# The holder asks at once, and its claim is renewed whatever the intruder holds open.
sub renews
{
	my ($name) = @_;
	my $generation = $registry->claim(7, 'generation');

	foreach (1 .. 2)
	{
		$one->reload;
		$registry->wait_for_claim(7, "generation > $generation");
		$generation = $registry->claim(7, 'generation');
	}
	$one->take(10);
	is($one->stat(q{claim || ' ' || node_id}), 'held 7', "$name: the holder renews its claim");
	return;
}

# A session of the intruder's that runs these statements and stays in its transaction.
sub left_open
{
	my (@statements) = @_;
	my $session = $registry->background_psql('postgres', on_error_stop => 0, extra_params => [ '-U', 'intruder' ]);
	my @answers = map { scalar $session->query($_) } 'BEGIN', @statements;

	return ($session, @answers[ 1 .. $#answers ]);
}

sub end
{
	my ($session) = @_;

	$session->query('ROLLBACK');
	$session->quit;
	return;
}

#
# A collation under which another text is equal to the holder's nonce, to a group's name, to a form.
#

my @collations = ([ 'without case', q{locale = 'und-u-ks-level1'}, uc $nonce ]);

# With rules: any nonce that one makes up.
push @collations, [ 'of equal digits', q{locale = 'und', rules = '&0 = 1 = 2 = 3 = 4 = 5 = 6 = 7 = 8 = 9 = a = b = c = d = e = f'}, $guess ]
  if $registry->pg_version >= 16;
foreach my $collation (@collations)
{
	my ($name, $options, $equal) = @$collation;
	my $create = "CREATE COLLATION pg_temp.same (provider = icu, $options, deterministic = false)";
	my $domain = 'CREATE DOMAIN pg_temp.same_text AS text COLLATE pg_temp.same';

	is(answer('intruder', $create, "SELECT '$equal' = '$nonce' COLLATE pg_temp.same"), 't', "a collation $name: it is the holder's nonce");
	foreach my $way ("'$equal' COLLATE pg_temp.same", "'$equal'::pg_temp.same_text", "lower('" . uc($equal) . "' COLLATE pg_temp.same)")
	{
		next if $way =~ /^lower/ && $equal ne $guess;
		is(answer('intruder', $create, $domain, "SELECT holder FROM snowflake_internal.registry_read('default', 7, $way, '1s')"), 'other', "a collation $name: read tells nobody the nonce: $way");
		foreach my $form (qw(claim release assertion))
		{
			like(answer('intruder', $create, $domain, written(me => $way, form => "'$form'", granted_until => $form eq 'release' ? 0 : 'r.granted_until + 1')),
				qr/^f$|claim of a living holder|invalid nonce/, "a collation $name: no $form: $way");
		}
	}
	is(answer('intruder', $create, "SELECT generation IS NULL AND layout IS NULL FROM snowflake_internal.registry_read('DEFAULT' COLLATE pg_temp.same, 7, '$guess', '1s')"), 't', "a collation $name: another group's name");
	is(answer('intruder', $create, "SELECT count(*) FROM snowflake_internal.registry_list('DEFAULT' COLLATE pg_temp.same)"), 0, "a collation $name: another group's list");
	like(answer('intruder', $create, written(form => q{'CLAIM' COLLATE pg_temp.same}, alive_for => q{interval '1000 years'})), qr/invalid form of a write/, "a collation $name: another form");
	renews("a collation $name");
}

# Whatever it plants where it may.
is(answer('intruder', q{CREATE FUNCTION pg_temp.same(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'},
		'CREATE OPERATOR pg_temp.= (FUNCTION = pg_temp.same, LEFTARG = text, RIGHTARG = text)', 'CREATE OPERATOR pg_temp.<> (FUNCTION = pg_temp.same, LEFTARG = text, RIGHTARG = text)',
		q{CREATE FUNCTION pg_temp.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'infinity'::timestamptz $$},
		q{CREATE FUNCTION pg_temp.pg_has_role(name, oid, text) RETURNS boolean LANGUAGE sql AS 'SELECT true'},
		'CREATE TEMP VIEW pg_class AS SELECT 10::oid AS relowner', 'CREATE TEMP VIEW pg_roles AS SELECT NULL::name AS rolname', 'SET search_path = pg_temp, pg_catalog',
		"SELECT holder FROM snowflake_internal.registry_read('default', 7, '$guess', '1s')"), 'other', 'planted functions and operators: read tells nobody the nonce');
is(answer('intruder', 'CREATE TEMP VIEW pg_class AS SELECT 10::oid AS relowner', 'CREATE TEMP VIEW pg_roles AS SELECT NULL::name AS rolname', 'SET search_path = pg_temp, pg_catalog',
		written(me => "'$nonce'")) =~ s/\n.*//sr, 'ERROR:  claim of a living holder was made by another role', 'planted views: the role is not the holder\'s');

#
# A nonce that another role has got hold of, from a backup, say.
#

foreach my $form (qw(claim release assertion))
{
	refused(qr/claim of a living holder was made by another role/, "another role with the nonce: $form", me => "'$nonce'", form => "'$form'", granted_until => 'r.granted_until + 1');
}
is($registry->claim(7, 'made_by'), 'keeper', 'the claim is the role\'s that made it');
renews('another role with the nonce');
is($registry->safe_psql('postgres', written(me => "'$nonce'", expected => 'r.generation - 1')), 'f', 'a superuser is not refused for the role');

# A role that is renamed; one that is not there where the registry was restored.
$registry->safe_psql('postgres', 'ALTER ROLE keeper RENAME TO guardian; CREATE ROLE keeper');
like(answer('guardian', written(me => "'$nonce'", granted_until => 'r.granted_until + 1')), qr/made by another role/, 'another role has the name');
$registry->safe_psql('postgres', 'DROP ROLE keeper');
$registry->safe_psql('postgres', 'ALTER ROLE guardian RENAME TO keeper');
renews('the role was renamed twice');
$registry->safe_psql('postgres', q{UPDATE snowflake_internal.registry_claim SET made_by = 'nobody here' WHERE node = 7});
renews('the role that made the claim is not there');
is($registry->claim(7, 'made_by'), 'keeper', 'the role that made the claim is not there: the one that renews it takes its place');

#
# Transactions that are left open.
#

foreach my $form (qw(claim release assertion))
{
	my ($session, undef, $written) = left_open('SAVEPOINT s', written(form => "'$form'", granted_until => 'r.granted_until + 1'), $form eq 'claim' ? () : 'ROLLBACK TO s');

	is($written, $form eq 'claim' ? 'f' : '', "a $form in a transaction that is left open: not written");
	renews("a $form in a transaction that is left open");
	end($session);
}

my $busy = qr/ERROR: .*claim is being written by another transaction, which is still open\nDETAIL: .*\nHINT: .*pg_stat_activity/;

foreach my $case ([ 'a number', registry_group => q{'default'}, 9, 9 ], [ 'a group', registry_group => q{'fresh'}, 0, 1 ])
{
	my ($name, undef, $group, $its, $others) = @$case;
	my ($session, $written) = left_open(written(registry_group => $group, node => $its));

	is($written, 't', "$name in a transaction that is left open: claimed");
	like(answer('keeper', written(registry_group => $group, node => $others, me => "'" . '6' x 32 . "'")), $busy, "$name in a transaction that is left open: others do not wait for it");
	like(answer($registry->value('current_user'), q{SELECT "Our ids".snowflake_registry_forget_layout('default')}), qr/canceling statement due to lock timeout/,
		"$name in a transaction that is left open: nor does the owner, and nobody behind him");
	renews("$name in a transaction that is left open");
	end($session);
}

# Rows that are locked by whomever, and count as alive for too long, as after the clock was set back.
answer('keeper', written(node => 5));
$registry->safe_psql('postgres', q{UPDATE snowflake_internal.registry_claim SET alive_until = now() + interval '1 h' WHERE node = 5});

my $owner = $registry->background_psql('postgres');

$owner->query_safe('BEGIN; SELECT FROM snowflake_internal.registry_claim WHERE node = 5 FOR UPDATE');
is(answer('keeper', q{SELECT string_agg(node::text, ',') FROM snowflake_internal.registry_list('default')}), '5,7', 'a row that is locked: the list waits for nobody');
is(answer('keeper', "SELECT holder FROM snowflake_internal.registry_read('default', 5, '$guess', '1s')"), $guess, 'a row that is locked: nor does a read');
like(answer('keeper', written(node => 5)), $busy, 'a row that is locked: a write not for long');
is(answer('intruder', written(node => 5, me => "'" . '6' x 32 . "'")), 'f', 'a row that is locked: who may not write it does not ask for the lock');
like(answer($registry->value('current_user'), q{SELECT "Our ids".snowflake_registry_repair('default', 5, now())}), qr/canceling statement due to lock timeout/,
	'a row that is locked: its owner does not wait for long');
$owner->query_safe('ROLLBACK; BEGIN; LOCK TABLE snowflake_internal.registry_claim IN SHARE ROW EXCLUSIVE MODE');
like(answer('keeper', "SELECT count(*) FROM snowflake_internal.$_"), qr/canceling statement due to lock timeout/, "a table that is locked: not for long: $_")
  foreach "registry_read('default', 5, '$guess', '1s')", q{registry_list('default')};
$owner->query_safe('ROLLBACK');
$owner->quit;
is(answer('keeper', q{SELECT count(*) FROM snowflake_internal.registry_list('default')}), 2, 'a row that was locked');
is($registry->claim(5, q{alive_until < now() + interval '11 s'}), 't', 'a row that was locked: its holder lives no longer than its window');

# The first to ask after a start of the registry says that it was started, and leaves that open.
$one->suspend_keeper;
$registry->restart;

my ($session) = left_open("SELECT clock FROM snowflake_internal.registry_read('default', 7, '$guess', '1s')");

$one->resume_keeper;
renews('a registry that was started: the first to ask leaves it open');
is(answer('keeper', "SELECT unsettled > 0 AND incarnation = 0 FROM snowflake_internal.registry_read('default', 9, '$guess', '1s')"), 't', 'a registry that was started: others find it unsettled');
is(answer('keeper', written(node => 9)), 't', 'a registry that was started: who claims what he needs all the same is not kept from it');
like(answer($registry->value('current_user'), 'SELECT "Our ids".snowflake_registry_settle()'), qr/canceling statement due to lock timeout/,
	'a registry that was started: its owner does not wait for long');
end($session);
renews('a registry that was started: he is gone');
is(answer('keeper', "SELECT incarnation > 0 FROM snowflake_internal.registry_read('default', 99, '$guess', '1s')"), 't', 'a registry that was started: it knows where it is');

#
# Whoever waits for another's transaction looks again when it has ended.
#

my $six = '6' x 32;

$registry->settle;
$registry->safe_psql('postgres', "ALTER FUNCTION snowflake_internal.$_ SET lock_timeout = '1min'") foreach qw(registry_write registry_unsettled);
$registry->safe_psql('postgres', q{ALTER FUNCTION "Our ids".snowflake_registry_repair SET lock_timeout = '1min'});

# What a session is told that waits for what another one has done, which is committed then.
sub told_after
{
	my ($session, $role, $statement) = @_;
	my $waiting = $registry->background_psql('postgres', on_error_stop => 0, extra_params => [ '-U', $role ]);

	$waiting->query_until(qr/asked/, "\\echo asked\n$statement;\n");
	$registry->poll_query_until('postgres', q{SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = 'postgres' AND backend_type = 'client backend' AND wait_event_type = 'Lock')})
	  or die 'nobody waits for a lock';
	$session->query_safe('COMMIT');

	my $told = $waiting->query('SELECT 1') =~ s/^1$//mr;

	$told .= $waiting->{stderr};
	$waiting->quit;
	$session->quit;
	return $told =~ s/\s+\z//r;
}

foreach my $case ('nobody had', 'somebody gave back')
{
	my ($first, $claimed) = left_open(written(node => 20));

	is($claimed, 't', "a number that $case: one claims it");
	is(told_after($first, 'keeper', written(node => 20, me => "'$six'")), 'f', "a number that $case: another, who has waited for that, does not get it");
	is($registry->claim(20, 'state, made_by'), 'held|intruder', "a number that $case: it is held by one");
	is(answer('intruder', written(node => 20, form => q{'release'})), 't', "a number that $case: he gives it back");
}

my ($first) = left_open(written(node => 20));

like(told_after($first, $registry->value('current_user'), q{SELECT "Our ids".snowflake_registry_repair('default', 20, now())}),
	qr/cannot repair the claim of a living holder/, 'a repair that has waited for a claim is none');
is($registry->claim(20, 'state'), 'held', 'a repair that has waited for a claim: it is held');
is(answer('intruder', written(node => 20, form => q{'release'})), 't', 'a repair that has waited for a claim: he gives it back');

# The first to ask after a start finds that the content is being put back.
$one->suspend_keeper;
$registry->restart;
$owner = $registry->background_psql('postgres');
$owner->query_safe('BEGIN; DELETE FROM snowflake_internal.registry_server; UPDATE snowflake_internal.registry_claim SET write_number = 0');
is(told_after($owner, 'keeper', "SELECT unsettled > 5000000 FROM snowflake_internal.registry_read('default', 99, '$guess', '1s')"), 't', 'content that is put back while one waits: not settled');
$one->resume_keeper;
$registry->safe_psql('postgres', q{ALTER FUNCTION snowflake_internal.registry_write SET lock_timeout = '200ms'});
$registry->safe_psql('postgres', q{ALTER FUNCTION snowflake_internal.registry_unsettled SET lock_timeout = '20ms'});
$registry->safe_psql('postgres', q{ALTER FUNCTION "Our ids".snowflake_registry_repair SET lock_timeout = '1s'});
$registry->settle;
renews('content that was put back');

# What was decided before counts no more: in another incarnation of the registry, or before its owner has repaired the claim.
foreach my $form (qw(claim release assertion))
{
	refused(qr/^f$/, "$form that was decided in another incarnation", node => $_, form => "'$form'", incarnation => 'r.incarnation - 1') foreach 20, 21;
}
my $before = $registry->claim(20, 'generation');
$registry->safe_psql('postgres', q{SELECT snowflake_registry_repair('default', 20, now())});
refused(qr/^f$/, "$_ that was decided before a repair", node => 20, form => "'$_'", expected => $before, generation => $before + 1) foreach qw(claim release assertion);

# Each write is missed where it is not there any more, also when nobody has read it.
$one->suspend_keeper;
foreach my $write (written(node => 20, form => q{'release'}), q{SELECT "Our ids".snowflake_registry_repair('default', 20, now())})
{
	my $name = $write =~ /repair/ ? 'a repair' : 'a write';

	is($registry->unsettled_for, 0, "$name: settled before");
	$registry->safe_psql('postgres', $write);
	$registry->safe_psql('postgres', q{UPDATE snowflake_internal.registry_claim SET write_number = write_number - 1 WHERE registry_group = 'default' AND node = 20});
	cmp_ok($registry->unsettled_for, '>', 5, "$name that is not there any more: not settled");
	$registry->settle;
}
$one->resume_keeper;

#
# Arguments that no server gives.
#

$registry->settle;
refused(qr/ERROR: .*argument of a write to a snowflake registry must not be null/, "null: $_", node => 11, $_ => 'NULL',
	$_ eq 'registry_group' ? (read_group => q{'default'}) : $_ eq 'node' ? (read_node => 11) : ())
  foreach qw(registry_group node form incarnation expected generation me layout host port data_directory since granted_until alive_for);
refused(qr/ERROR: .*node number of a claim does not fit the layout\nDETAIL: .*It is $_; the layout has those from 0 to 1048575/, "node $_", node => $_)
  foreach -1, 1048576, 9223372036854775807;
refused(qr/ERROR: .*node number of a claim does not fit the layout/, "$_ of a node that is none", node => -1, form => "'$_'") foreach qw(release assertion);
refused(qr/ERROR: .*claim window must be from 1 s to 10 min/, "alive for $_", node => 11, alive_for => "interval '$_'")
  foreach '0', '-1 s', '999 ms', '11 min', '1000 years', '12000 mon -360000 days 5 s';
like(answer('intruder', "SELECT clock FROM snowflake_internal.registry_read('default', 11, '$guess', '$_')"), qr/ERROR: .*claim window must be from 1 s to 10 min/, "a window of $_")
  foreach '0', '-1 s', '999 ms', '11 min', '1000 years';
refused(qr/ERROR: .*port of a claim's holder must be from 0 to 65535, not $_/, "port $_", node => 11, port => $_) foreach -1, 65536, 2147483647;
refused(qr/ERROR: .*claim names a place that is too long/, "a $_ of 5000 bytes", node => 11, $_ => q{repeat('x', 5000)}, read_group => q{'default'})
  foreach qw(registry_group host data_directory);
refused(qr/ERROR: .*name of a snowflake registry's group must not have control characters/, "a group $_", registry_group => $_, node => 11) foreach q{E'a\nb'}, q{E'\x1b[31m'}, q{E'\u009b'};
refused(qr/ERROR: .*invalid nonce of a holder/, "a nonce $_", node => 11, me => $_) foreach q{'other'}, q{''}, q{repeat('x', 32)}, q{repeat('A', 32)}, q{repeat('5', 33)}, q{repeat('5', 100000)};
refused(qr/ERROR: .*granted_until of a claim cannot lie so far ahead of the registry's clock/, "granted until $_", node => 11, granted_until => $_)
  foreach 9223372036854775807, 'r.clock + 3700000000';
foreach ([ -1, '1969-12-31 23:59:59.999999+00' ], [ '(-100000000000000000)', '1200-02-15 14:13:20+00 BC' ], [ '(-9223372036854775808)', '-infinity' ])
{
	my ($until, $text) = @$_;

	refused(qr/ERROR: .*granted_until of a claim cannot go back\nDETAIL: .* \Q$text\E/, "granted until $text", node => 11, granted_until => $until);
}
refused(qr/ERROR: .*generation of a claim cannot be followed/, "generation $_", node => 11, generation => $_) foreach -1, 0, '(-9223372036854775808)', 9223372036854775807;
refused(qr/^f$/, "expected generation $_", node => 11, expected => $_, generation => 9223372036854775807) foreach -1, '(-9223372036854775808)', 9223372036854775806;
refused(qr/ERROR: .*invalid snowflake layout/, 'no layout', registry_group => q{'none'}, node => 0, layout => q{'nonsense'}, form => "'$_'") foreach qw(claim release assertion);

like(answer($registry->value('current_user'), qq{SELECT "Our ids".snowflake_registry_repair('default', 20, '$_')}), qr/ERROR: .*granted_until of a claim must be a time from 1970 on/, "a repair up to $_")
  foreach '1969-12-31', '-infinity', 'infinity';

# Months count as 30 days in a window, and as they are where it is added to a time.
is(answer('intruder', written(node => 12, alive_for => q{interval '11 mon -330 days 10 s'})), 't', 'alive for months, and for days less');
is($registry->claim(12, q{alive_until < now() + interval '11 s'}), 't', 'alive for months, and for days less: no longer than the window');

# What is for people only may be wrong, but is shown as it should be.
foreach my $since ('(-9223372036854775808)', 9223372036854775807)
{
	is(answer('intruder', written(node => 12, since => $since, host => q{E'one\nLOG:  two\x1b[31m'}, data_directory => q{E'/data\r\x7f\u009b31m é'})), 't', "a claim since $since");
	is($registry->claim(12, q{isfinite(since) AND since BETWEEN 'epoch' AND clock_timestamp(), host, data_directory = '/data???31m é'}), 't|one?LOG:  two?[31m|t', "a claim since $since: as it is shown");
}

#
# One row that somebody has spoilt fails nobody else.
#

my @spoilt = (
	q{1, 1, NULL, 'infinity', 'infinity', 'infinity', '10 s'},
	q{2, 9223372036854775807, repeat('5', 32), '294276-12-31', 'infinity', 'infinity', '178000000 years'},
	q{3, 1, repeat('5', 32), '-infinity', '4713-01-01 BC', '-infinity', '-178000000 years'},
	q{-4, -9223372036854775808, repeat('5', 32), now(), now(), '294276-12-31', '0'},
	q{9223372036854775807, 1, 'not a nonce at all, and longer than one', '1950-01-01', now(), now(), '10 s'});

foreach my $row (@spoilt)
{
	my ($node, $generation, $holder, $until, $since, $alive, $window) = $row =~ /^(-?\d+), (-?\d+), ('.*one'|\w+(?:\([^)]*\))?), (\S+), (.*), (.*), ('[^']*')$/ or die $row;

	$registry->safe_psql('postgres', qq{INSERT INTO snowflake_internal.registry_claim (registry_group, node, generation, holder, made_by, host, port, data_directory, since, granted_from, granted_until, alive_until, claim_window, write_number)
		VALUES ('spoilt', $node, $generation, $holder, 'nobody', '', -1, '', $since, $until, $until, $alive, $window, 0)});
}
is(answer('keeper', q{SELECT count(*), bool_and(granted_until BETWEEN 0 AND 9000000000000000000) FROM snowflake_internal.registry_list('spoilt')}), '4|t', 'spoilt rows: the list has all that are numbers');
is($registry->value(q{count(*) FROM (SELECT * FROM snowflake_claims OFFSET 0) AS c WHERE registry_group = 'spoilt'}), scalar @spoilt, 'spoilt rows: so has the view');
is(answer('keeper', "SELECT count(r.clock) FROM (VALUES (1), (2), (3), (-4), (9223372036854775807)) AS n (node), snowflake_internal.registry_read('spoilt', n.node, '$guess', '1s') AS r"), scalar @spoilt, 'spoilt rows: they can be read');
is(answer('keeper', written(registry_group => q{'spoilt'}, node => 0)), 't', 'spoilt rows: other numbers can be claimed');
is(answer('keeper', written(registry_group => q{'spoilt'}, node => 0, form => q{'release'})), 't', 'spoilt rows: and released');
$registry->safe_psql('postgres', q{SELECT snowflake_registry_repair('spoilt', node, now()) FROM generate_series(0, 1) AS node});
is($registry->value(q{string_agg(state, ',' ORDER BY node) FROM snowflake_claims WHERE registry_group = 'spoilt' AND node IN (0, 1)}), 'free,free', 'spoilt rows: repaired');
like(answer($registry->value('current_user'), q{SELECT "Our ids".snowflake_registry_repair('spoilt', 2, now())}), qr/cannot repair the claim of a living holder/, 'spoilt rows: a holder that lived for ever');
is($registry->claim(2, q{alive_until < now() + interval '11 min'}, 'spoilt'), 't', 'spoilt rows: nobody lives for ever');
$registry->safe_psql('postgres', q{UPDATE snowflake_internal.registry_claim SET alive_until = 'infinity' WHERE registry_group = 'spoilt' AND node = 2});
$registry->safe_psql('postgres', 'VACUUM FULL snowflake_internal.registry_claim');
is(answer('keeper', "SELECT unsettled / 1e6 BETWEEN 300 AND 600 FROM snowflake_internal.registry_read('default', 99, '$guess', '1s')"), 't', 'spoilt rows: their holders are waited for, but not for ever');
renews('spoilt rows');
$registry->safe_psql('postgres', q{DELETE FROM snowflake_internal.registry_claim WHERE registry_group = 'spoilt'});
$registry->settle;

#
# Without end.
#

# The rows that somebody else has made: their numbers are those of no write.
sub make_rows
{
	my ($group, $node, $count) = @_;

	$registry->safe_psql('postgres', qq{INSERT INTO snowflake_internal.registry_claim (registry_group, node, generation, made_by, host, port, data_directory, since, granted_from, granted_until, alive_until, claim_window, write_number)
		SELECT $group, $node, 1, 'intruder', '', 0, '', now(), now(), now(), now(), '0', 0 FROM generate_series(1, $count) AS i});
	return;
}

my $groups = $registry->value(q{count(DISTINCT registry_group) FROM snowflake_claims});

make_rows(q{'group ' || i}, 0, 999 - $groups);
is(answer('intruder', written(registry_group => q{'the last'}, node => 0)), 't', 'as many groups as there can be');
foreach my $form (qw(claim release assertion))
{
	refused(qr/ERROR: .*snowflake registry has too many groups\nDETAIL: .*It has 1000 of them/, "a group too many: $form", registry_group => q{'one more'}, node => 0, form => "'$form'");
}
is(answer('intruder', written(registry_group => q{'the last'}, node => 1)), 't', 'in its groups there is room');
$registry->safe_psql('postgres', q{DELETE FROM snowflake_internal.registry_claim WHERE registry_group LIKE 'group %'});
make_rows(q{'large'}, 'i', 1048575);

my $large = q{'timestamp:36 server:22 sequence:5 tick:10ms epoch:2025-01-01'};

is(answer('intruder', written(registry_group => q{'large'}, node => 2000000, layout => $large)), 't', 'as many numbers as there can be');
refused(qr/ERROR: .*group of a snowflake registry has too many node numbers\nDETAIL: .*Group "large" has 1048576 of them/, 'a number too many', registry_group => q{'large'}, node => 2000001, layout => $large);
is(answer('intruder', written(registry_group => q{'large'}, node => 2000000, layout => $large)), 't', 'what is there is written');
$registry->safe_psql('postgres', q{DELETE FROM snowflake_internal.registry_claim WHERE registry_group = 'large'});
$registry->settle;

# Whoever may log in can have the database's row in pg_database written anew, by a GRANT that grants nothing: that is no other
# database, and unsettles nothing.
$registry->safe_psql('postgres', 'CREATE ROLE passer_by LOGIN');
foreach my $grant ('GRANT TEMP ON DATABASE postgres TO passer_by', 'REVOKE CONNECT ON DATABASE postgres FROM PUBLIC')
{
	my $row = $registry->value(q{xmin FROM pg_database WHERE datname = 'postgres'});

	$registry->psql('template1', $grant, connstr => $registry->connstr('template1') . ' user=passer_by');
	isnt($registry->value(q{xmin FROM pg_database WHERE datname = 'postgres'}), $row, "$grant: the row is another one");
	is($registry->unsettled_for, 0, "$grant: the registry is settled");
}
$registry->safe_psql('postgres', 'DROP ROLE passer_by');

#
# What a server's users see.
#

my $few = q{'timestamp:38 server:1 sequence:5 tick:10ms epoch:2025-01-01'};

$two->configure('snowflake.registry_group' => 'few', 'snowflake.layout' => $few =~ s/'//gr);
answer('intruder', written(registry_group => q{'few'}, node => $_, layout => $few, alive_for => q{interval '10 min'})) foreach 0, 1;
$two->begin;
$two->refused_in_the_end(qr/claim "none" since/, 'another role has all numbers');
is($two->stat(q{claim || ' ' || (problem IS NOT NULL)}), 'none true', 'another role has all numbers: the view says so');
$two->stop;
is(answer('intruder', written(registry_group => q{'few'}, node => $_, layout => $few, form => q{'release'}, granted_until => 'r.clock + 3000000000')), 't', 'it gives one back, with a fence that lies ahead')
  foreach 0, 1;
$two->start;
$two->wait_for_state('suspended');
is($two->stat('refusal'), 'clock behind', 'a fence that lies far ahead: why nothing can be made');
$two->refuses('SELECT snowflake_nextval()', qr/clock is behind the snowflake ids/, 'a fence that lies far ahead');
# A registry that is slow to answer is the problem for a while.
ok($two->poll_query_until('postgres', q{SELECT claim || ' ' || refusal || ' ' || problem ~ '^suspended clock behind it grants no time before 20\d\d-.*, which lies ahead of the clock$' FROM snowflake_stat}), 'a fence that lies far ahead: the view does not say held');
$two->stop;
$registry->safe_psql('postgres', q{SELECT snowflake_registry_repair('few', node, now()) FROM generate_series(0, 1) AS node});
$two->start;
$two->held;
$two->take_in_the_end(10);

# A registry that refuses the write; ids go on to the end of what was granted, and the view knows when that is.
$registry->safe_psql('postgres', 'REVOKE EXECUTE ON FUNCTION snowflake_internal.registry_write FROM keeper');
$two->wait_for_state('suspended');
$two->refused_in_the_end(qr/claim "lost" since .*permission denied/, 'a registry that refuses the write');
is($two->stat('claim'), 'lost', 'a registry that refuses the write: the view says lost');
$registry->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION snowflake_internal.registry_write TO keeper');
$two->wait_for_state('held');
$two->take_in_the_end(10);

# One that has not settled.
$two->stop('immediate');
$registry->safe_psql('postgres', 'VACUUM FULL snowflake_internal.registry_claim');
$two->start;
$two->refused_in_the_end(qr/it is new, or was restored, failed over or stopped for long, and grants nothing anew/, 'a registry that is unsettled');
is($two->stat('claim'), 'none', 'a registry that is unsettled: the view says none');
$_->stop foreach $one, $two;

# Whoever takes a number that an unsettled registry has forgotten must hear how far its holder's ids went, however far that is;
# for one that the registry knows it is as before.
my $other = '6' x 32;
my $far = q{r.clock + 3000000000};

$registry->safe_psql('postgres', 'SELECT snowflake_registry_settle()');
is(answer('intruder', written(node => $_, alive_for => q{interval '10 min'})), 't', 'a settled registry: a number is claimed') foreach 8, 10;
is(answer('intruder', written(node => 21, alive_for => q{interval '2 min'})), 't', 'a settled registry: a number is claimed for a short time');
is(answer('intruder', written(node => 10, form => q{'release'})), 't', 'a settled registry: a number is given back');
$registry->safe_psql('postgres', 'UPDATE snowflake_internal.registry_server SET settled_at = settled_at + 1e17');
is(answer('intruder', written(node => $_, alive_for => q{interval '10 min'})), 't', 'an unsettled registry: a number is claimed') foreach 9, 10;
is($registry->value(q{string_agg(node || ' ' || is_doubtful, ', ' ORDER BY node) FROM snowflake_internal.registry_claim WHERE node IN (8, 9, 10)}),
	'8 false, 9 true, 10 true', 'which of them may be another\'s');
like(answer('keeper', written(node => 8, form => q{'assertion'}, me => "'$other'", granted_until => $far)),
	qr/claim of a living holder cannot be changed by others/, 'what is known: others say no more than its own time would');
# Each time that it is told, it would be allowed to go further.
my @times_told = map { answer('keeper', written(node => 21, form => q{'assertion'}, me => "'$other'", generation => 'r.generation + 2', granted_until => "r.clock + $_ * 60000000::bigint")) } 9, 16;

is($times_told[0], 't', 'what is known: others tell how far a holder went with another window');
like($times_told[1], qr/claim of a living holder cannot be changed by others/, 'and no further, however often they tell it');
is(answer('keeper', written(node => 9, form => q{'assertion'}, me => "'$other'", granted_until => $far)), 't', 'what was forgotten: its holder tells all');
my $told = $registry->claim(9, 'granted_until');
is(answer('intruder', written(node => 9, form => q{'release'}, granted_until => 0)), 't', 'it is released');
is($registry->claim(9, "granted_until = '$told'"), 't', 'which takes nothing back');
is(answer('intruder', written(node => 9, alive_for => q{interval '10 min'})), 't', 'it is renewed');
is($registry->claim(9, "granted_until >= '$told'"), 't', 'above that');
is(answer('keeper', written(node => 9, form => q{'assertion'}, me => "'$other'", granted_until => 'r.granted_until + 100000000')), 't', 'its holder tells all after that, too');
$registry->settle;
like(answer('keeper', written(node => 9, form => q{'assertion'}, me => "'$other'", granted_until => 'r.granted_until + 100000000')),
	qr/claim of a living holder cannot be changed by others/, 'but not when all were heard');
is(answer('intruder', written(node => 9, alive_for => q{interval '10 min'})), 't', 'it is renewed by a settled registry');
is($registry->value('is_doubtful FROM snowflake_internal.registry_claim WHERE node = 9'), 'f', 'when all were heard, it is known');

$ledger->check('what may be written to a registry');
done_testing();
