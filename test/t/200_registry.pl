# The ordinary life of a registry in PostgreSQL: who gets which number, what the
# servers and the registry show of it, what a server may do there, and that what
# keeps it from a number is named.

use strict;
use warnings FATAL => 'all';

use IO::Socket::INET;
use PostgreSQL::Test::Utils;
use Snowflake::Holder;
use Snowflake::Ledger;
use Snowflake::Registry;
use Snowflake::Wait qw(wait_until);
use Snowflake::ZooKeeper;
use Sys::Hostname;
use Test::More;

my $registry = Snowflake::Registry->new('registry');

$registry->init(allows_streaming => 1);
$registry->start;

# Four numbers, and servers for them.  A server's line in the ledger is its number's.
my $ledger = Snowflake::Ledger->new;
my $layout = 'timestamp:41 datacenter:1 worker:1 sequence:12 epoch:2020-01-01';
my ($fixed, $first, $second, $third, $fourth) = map { Snowflake::Holder->new($_, registry => $registry, ledger => $ledger) } qw(fixed first second third fourth);

# Longer than any pause of this machine's, where a claim is to be kept; short, where one is waited for.
my $long = '30s';
my $short = '5s';

$fixed->init;
$fixed->configure('snowflake.layout' => $layout, 'snowflake.claim_window' => $long);
# The others are copies of it, which the registry tells apart all the same.
$fixed->backup_fs_cold('new');
$_->init_from($fixed, 'new', has_streaming => 0) foreach $first, $second, $third, $fourth;
$_->set_clock(0) foreach $first, $fourth;

# The number that a server has in the end.
sub number_of
{
	my ($server) = @_;
	my $number = $server->held;

	$server->{line} = "number $number";
	return $number;
}

# Starts a server that is to have a number; the number.
sub start_held
{
	my ($server, %settings) = @_;

	$server->configure(%settings);
	$server->begin;
	return number_of($server);
}

# Starts a server that is to have none; waits until its keeper has said why, and returns that.
sub start_without
{
	my ($server, $pattern, %settings) = @_;
	my $log = $server->log_position;

	$server->configure(%settings);
	$server->begin;
	$server->wait_for_log($pattern, $log);
	is($server->stat('claim'), 'none', "no number: $pattern");
	return $server->log_since($log);
}

# Ends the keeper; waits until there is another.
sub end_keeper
{
	my ($server) = @_;
	my $keeper = $server->keeper;

	kill 'TERM', $keeper or die "could not end the keeper: $!";
	wait_until('a keeper comes back', sub { eval { $server->keeper != $keeper } });
	return;
}

my $shown = 'postgresql://' . Snowflake::Registry::escape($registry->host) . ':' . $registry->port . '/postgres';

#
# auto: each another number, those that nobody had first.
#

is(start_held($fixed, 'snowflake.node_id' => 'datacenter=1,worker=0'), 2, 'parts: a claim for their number');
$fixed->take(10);
is(start_held($first), 0, 'auto: the first number');
is(start_held($second), 1, 'auto: the next');
is(start_held($third), 3, 'auto: the next that is not held');
foreach my $server ($first, $second, $third)
{
	my ($id) = $server->take(10);

	is($server->value("snowflake_node($id)"), $server->stat('node_id'), 'auto: the ids have the number');
	is($server->stat(q{node_source || ' ' || claim}), 'auto held', 'auto: as shown');
}
like(slurp_file($third->logfile), qr/LOG: .*snowflake node number is claimed\n.*DETAIL: .*Registry "\Q$shown\E", group "default", node number 3\. Nobody had it before\.\n/, 'the log says which');
is($registry->value(q{string_agg(node || ' ' || state || ' ' || port, ', ' ORDER BY node) FROM snowflake_claims}),
	join(', ', map { $_->[0] . ' held ' . $_->[1]->port } [ 0, $first ], [ 1, $second ], [ 2, $fixed ], [ 3, $third ]), 'the registry shows them');
is($registry->claim(2, q{host || ' ' || data_directory}), hostname() . ' ' . $fixed->data_dir, 'the registry shows where a holder is');
is($registry->claim(2, q{since <= clock_timestamp() AND since > clock_timestamp() - interval '1 h' AND alive_until > clock_timestamp()
	AND alive_until <= clock_timestamp() + interval '30 s' AND generation > 0}), 't', 'the registry shows since when');
is($registry->claim(2, q{granted_until BETWEEN clock_timestamp() + interval '15 s' AND clock_timestamp() + interval '31 s'}), 't', 'granted about a claim window ahead');

# None is left.
start_without($fourth, qr/WARNING: .*no snowflake node number is claimed\n.*DETAIL: .*Registry "\Q$shown\E", group "default": all node numbers of group "default", 0 to 3, are held by others/, 'snowflake.claim_window' => $short);
$fourth->refuses('SELECT snowflake_nextval()',
	qr/ERROR: .*the registry has granted no node number\nDETAIL: .*"\Q$shown\E", group "default", claim "none" since 20\d\d-.*: all node numbers of group "default", 0 to 3, are held by others.\nHINT: .*snowflake_claims/, 'one server too many');
is($fourth->stat('node_id IS NULL AND last_id IS NULL AND node_source = \'auto\' AND errors = 1'), 't', 'one server too many: as shown');
is($fourth->value('snowflake_node(' . $third->take . ')'), 3, 'one server too many: ids can be read');

# Until another stops, and gives its number back with the time that it has not used.
my $newest = $second->take(10);
my $end = $second->value("snowflake_timestamp($newest) + interval '1 ms'");
$second->stop;
is(number_of($fourth), 1, 'a number that was given back is taken without anybody\'s doing');
is($fourth->value('snowflake_timestamp(' . $fourth->take . ") >= '$end'"), 't', 'ids go on above those of the holder before');
$fourth->take(10);
like(slurp_file($fourth->logfile), qr/snowflake node number is claimed\n.*DETAIL: .*node number 1\. Earlier holders had it up to 20\d\d-/, 'the log says up to when others had it');
$fourth->reconfigure('snowflake.claim_window' => $long);
$registry->wait_for_claim(1, q{granted_until > clock_timestamp() + interval '10 s'});
$registry->wait_for_claim(1, q{alive_until > clock_timestamp() + interval '10 s'});
pass('a longer claim window counts from a reload on');

$newest = $first->take(10);
$end = $first->value("snowflake_timestamp($newest) + interval '1 ms'");
is($registry->claim(0, qq{state || ' ' || (granted_until > '$end'::timestamptz + interval '10 s')}), 'held true', 'granted further than used');
$first->stop;
is($registry->claim(0, qq{state || ' ' || (granted_until = '$end')}), 'free true', 'a clean stop gives back what was not used');
is($registry->claim(0, q{port = 0 AND host = '' AND data_directory = ''}), 't', 'and nobody is the holder');
$third->stop;
is(start_held($second), 0, 'auto: of numbers given back the one freed first');
$second->take(10);
my $granted = $registry->claim(3, 'granted_until');
is(start_held($third), 3, 'auto: the other');
$third->stop;
is($registry->claim(3, "granted_until = '$granted'"), 't', 'a claim that no id was made under leaves granted_until where it was');

#
# A fixed number that another holds.
#

my $holder = $fourth->port . ', ' . $fourth->data_dir;
my $log = start_without($third, qr/WARNING: .*no snowflake node number is claimed\n.*DETAIL: .*: node number 1 is held by \Q@{[ hostname() ]}:$holder\E, since 20\d\d-/,
	'snowflake.node_id' => 'address:127.0.0.0/30', 'snowflake.claim_window' => $short);
$third->refuses('SELECT snowflake_nextval()',
	qr/ERROR: .*the registry has granted no node number\nDETAIL: .*"\Q$shown\E", group "default", claim "none" since 20\d\d-.*: node number 1 is held by \Q@{[ hostname() ]}:$holder\E, since 20\d\d-.*\nHINT: /,
	'a number that another holds');
$third->refuses('SELECT snowflake_nextval_batch(2)', qr/granted no node number/, 'a number that another holds: a batch');
is($third->stat(q{node_id || ' ' || node_source || ' ' || claim}), '1 address none', 'a number that another holds: as shown');
is($third->value('snowflake_node(' . $fourth->take . ')'), 1, 'a number that another holds: ids can be read');
$fourth->stop;
is(number_of($third), 1, 'a number that its holder has given back');
$third->take(10);

#
# What steers the generator stays within the grant.
#

$third->reconfigure('snowflake.claim_window' => $long);
$registry->wait_for_claim(1, q{granted_until > clock_timestamp() + interval '10 s'});
$third->safe_psql('postgres', q{SELECT snowflake_advance_past(snowflake_max_id(clock_timestamp() + interval '0.5 s'))});
$third->take(10);
$third->refuses(q{SELECT snowflake_advance_past(snowflake_min_id(clock_timestamp() + interval '1 h'))},
	qr/ERROR: .*id lies beyond what the registry has granted\nDETAIL: .* the registry has granted time up to 20\d\d-.*\nHINT: /, 'snowflake_advance_past() beyond the grant');
$third->take(10);

# snowflake_set_reserved_until() below what was issued before, with a clock that is behind: the grant starts above.
$second->stop;
is(start_held($first, 'snowflake.node_id' => '0'), 0, 'a fixed number');
$first->take(10);
$first->stop;
$first->step_clock(-1200);
$first->start;
# Not held, while no call would wait for what it grants.
$first->wait_for_state('suspended');
$first->safe_psql('postgres', q{SELECT snowflake_set_reserved_until(clock_timestamp() - interval '1 h')});
$first->refuses('SELECT snowflake_nextval()', qr/ERROR: .*clock is behind the snowflake ids\nDETAIL: .*the registry granted the time up to .* before.*\nHINT: .*snowflake_registry_repair\(\) while this server is stopped\. snowflake_set_reserved_until\(\) does not help here/, 'a clock behind what others were granted');
$first->step_clock(1200);
$first->take(10);
$first->refuses(q{SELECT snowflake_set_reserved_until(clock_timestamp() - interval '1 h')}, qr/cannot set the reserved time below ids that were issued/, 'snowflake_set_reserved_until() below ids that were issued');
$first->safe_psql('postgres', 'SELECT snowflake_set_reserved_until(clock_timestamp())');
$first->take(10);

#
# The keeper.
#

end_keeper($first);
is(number_of($first), 0, 'a keeper that was ended comes back');
$first->take(10);
$first->safe_psql('postgres', 'DROP EXTENSION snowflake');
my $generation = $registry->claim(0, 'generation');
$first->reload;
$registry->wait_for_claim(0, "generation > $generation");
pass('without the extension in the server the claim is renewed');
$first->safe_psql('postgres', 'CREATE EXTENSION snowflake');
$first->take(10);

#
# The registry's clock, and groups.
#

# Before 16 the first keeper has the true clock: it is started in a signal handler, amid a call in which libfaketime does nothing.
$registry->safe_psql('postgres', 'ALTER ROLE keeper NOLOGIN');
$fourth->set_clock(7200);
start_without($fourth, qr/no snowflake node number is claimed\n.*DETAIL: .*role "keeper" is not permitted to log in/,
	'snowflake.registry_group' => 'another', 'snowflake.node_id' => '2', 'snowflake.claim_window' => $short);
$log = $fourth->log_position;
end_keeper($fourth);
$registry->safe_psql('postgres', 'ALTER ROLE keeper LOGIN');
$registry->wait_for_claim(2, q{state = 'held'}, 'another');
$fourth->refused_in_the_end(qr/group "another", node number 2, granted until .*, claim "lost" since .*: it grants time at most 01:00:00 ahead of its clock, which reads .*; this server's clock reads 20\d\d-/, 'a clock far ahead of the registry\'s');
is($registry->claim(2, q{state, granted_until < clock_timestamp() + interval '1 min'}, 'another'), 'held|t', 'a clock far ahead of the registry\'s: the claim is kept, and its fence where it was');
is($fourth->stat('last_id IS NULL'), 't', 'a clock far ahead of the registry\'s: no id');
$fourth->set_clock(0);
is(number_of($fourth), 2, 'the same number in another group');
is($fourth->value('snowflake_node(snowflake_nextval())'), 2, 'the same number in another group: ids');
is($registry->value(q{string_agg(registry_group || ' ' || state || ' ' || port, ', ' ORDER BY registry_group) FROM snowflake_claims WHERE node = 2}),
	'another held ' . $fourth->port . ', default held ' . $fixed->port, 'the same number in two groups');
$fourth->stop('immediate');
$registry->wait_for_claim(2, q{state = 'expired' AND port = } . $fourth->port, 'another');
pass('a holder that has crashed has had its time');

#
# The role's rights.
#

my $as_keeper = [ 'psql', '-XAtq', '-d', $registry->connstr('postgres') . ' user=keeper', '-c' ];
my $as_owner = [ 'psql', '-XAtq', '-d', $registry->connstr('postgres'), '-c' ];

# More than it needs: that it sees the rest of the extension is not what keeps it from it.
$registry->safe_psql('postgres', 'GRANT USAGE ON SCHEMA "Our ids" TO keeper');
foreach my $statement (
	'SELECT * FROM snowflake_claims',
	'SELECT * FROM snowflake_internal.registry_claim',
	'SELECT * FROM snowflake_internal.registry_server',
	'INSERT INTO snowflake_internal.registry_claim SELECT * FROM snowflake_internal.registry_claim',
	'UPDATE snowflake_internal.registry_claim SET holder = NULL',
	'DELETE FROM snowflake_internal.registry_claim',
	'TRUNCATE snowflake_internal.registry_claim',
	'DELETE FROM snowflake_internal.registry_server',
	q{SELECT snowflake_internal.registry_unsettled('1s')})
{
	$registry->command_fails_like([ @$as_keeper, $statement ], qr/ERROR: .*permission denied for (table|view|function) (snowflake|registry)_/, "the role: $statement");
}

# A write by somebody, of what was read; sets what follows.
sub written
{
	my ($group, $node, $form, $granted_until, $generation) = @_;

	$generation //= 'generation + 1';
	return qq{SELECT snowflake_internal.registry_write('$group', $node, '$form', incarnation, generation, $generation, repeat('5', 32), layout, '', 0, '', clock, $granted_until, '1s')
		FROM snowflake_internal.registry_read('$group', $node, repeat('5', 32), '1s')};
}

$registry->command_fails_like([ @$as_keeper, written('another', 2, 'claim', 'granted_until - 1') ],
	qr/ERROR: .*granted_until of a claim cannot go back\n.*DETAIL: .*node number 2 /, 'the role: granted_until never goes back');
$registry->command_fails_like([ @$as_keeper, written('another', 2, $_, 'granted_until + 86400000000') ],
	qr/ERROR: .*granted_until of a claim cannot lie so far ahead of the registry's clock\n.*DETAIL: .*node number 2 /, "the role: granted_until never runs far ahead: $_")
  foreach qw(claim release assertion);
$registry->command_fails_like([ @$as_keeper, q{SET snowflake.max_forward_jump = '100 d'; } . written('another', 2, 'claim', 'granted_until + 86400000000') ],
	qr/parameter "snowflake.max_forward_jump" cannot be changed now/, 'the role: nor by a setting of its own');
$registry->command_fails_like([ @$as_keeper, written('another', 2, 'claim', 'granted_until', 'generation + 10000000000') ],
	qr/ERROR: .*generation of a claim cannot be followed/, 'the role: generations are not used up');
# The holder writes, too: what it has written between read and write has to be read again.
foreach my $try ([ 'nobody releases what another holds', 'release', 0 ],
	[ 'nobody raises the fence of what another holds', 'assertion', 'granted_until + 1' ])
{
	my ($name, $form, $granted_until) = @$try;
	my ($out, $err) = ('f');

	($out, $err) = run_command([ @$as_keeper, written('default', 2, $form, $granted_until) ]) while $out eq 'f';
	like($err, qr/ERROR: .*claim of a living holder cannot be changed by others/, "the role: $name");
}
is($registry->safe_psql('postgres', written('default', 2, 'claim', 'granted_until')), 'f', 'the role: nobody takes what a living holder has');
is($registry->safe_psql('postgres', q{SELECT holder FROM snowflake_internal.registry_read('default', 0, repeat('5', 32), '1s')}), 'other', 'the role: a nonce is told to nobody');
is($registry->safe_psql('postgres', written('another', 2, 'claim', 'granted_until') =~ s/, generation,/, generation - 1,/r), 'f', 'a claim that is not what was read is not written');
is($registry->safe_psql('postgres', written('another', 2, 'claim', 'granted_until') =~ s/, generation, generation \+ 1/, 0, 1/r), 'f', 'a claim that is there is not written as a new one');

# What is taken back is not missing: it unsettles nothing.
my $written = written('another', 2, 'claim', 'granted_until');
foreach my $statements ("BEGIN; $written; $written; ROLLBACK", "BEGIN; $written; SAVEPOINT s; $written; ROLLBACK TO s; $written; ROLLBACK",
	"BEGIN; SAVEPOINT s; $written; ROLLBACK TO s; COMMIT")
{
	$registry->safe_psql('postgres', $statements);
	is($registry->unsettled_for('another', 2), 0, "settled after $statements" =~ s/SELECT.*?1s'\)/write/gsr);
}
$registry->command_fails_like([ @$as_keeper, "BEGIN ISOLATION LEVEL REPEATABLE READ; $written" ], qr/cannot use a snowflake registry in a transaction that is not READ COMMITTED/, 'the role: not by an old snapshot');

# Nor by a parallel worker, which sees what is not committed.
my $parallel = $registry->pg_version >= 16 ? 'debug_parallel_query' : 'force_parallel_mode';
$registry->psql('postgres', qq{CREATE FUNCTION pg_temp.w() RETURNS bigint LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS
	'BEGIN RETURN (SELECT unsettled FROM snowflake_internal.registry_read(''default'', 9, repeat(''5'', 32), ''10min'')); END';
	BEGIN; $written; SET LOCAL $parallel = on; SELECT pg_temp.w(); ROLLBACK});
is($registry->unsettled_for('another', 2), 0, 'settled after what a parallel worker has seen');

# A window is a number of seconds, whatever months and days it is made of.
$registry->command_fails_like([ @$as_keeper, $written =~ s/'1s'\)/'12000 mon -360000 days 5 s')/r ], qr/claim window must be from 1 s to 10 min/, 'the role: no window of months');

# An assertion that raises nothing would end the claim of a living holder.
$registry->command_fails_like([ @$as_keeper, written('default', 0, 'assertion', 'granted_until') ], qr/granted_until of a claim cannot go back/, 'the role: no assertion that raises nothing');

# What another left behind: its fence is raised by whoever knows more, and its owner alone sets it back.
my $fence = q{extract(epoch FROM granted_until)::bigint};
my $before = $registry->claim(2, $fence, 'another');
is($registry->safe_psql('postgres', written('another', 2, 'release', 0)), 't', 'a release of what has expired');
is($registry->claim(2, "state, $fence", 'another'), "free|$before", 'sets no fence back');
foreach my $form (qw(release assertion))
{
	$before = $registry->claim(2, 'granted_until', 'another');
	is($registry->safe_psql('postgres', written('another', 2, $form, 'granted_until + 60000000')), 't', "$form of what is free");
	is($registry->claim(2, "state, granted_until = '$before'::timestamptz + interval '60 s'", 'another'), 'free|t', "$form of what is free: raises its fence");
}
# What was told of a living holder's number is not taken back by its holder.
is($registry->safe_psql('postgres', written('another', 2, 'claim', 'granted_until + 1000000')), 't', 'a free number is claimed while the registry has forgotten whose it was');
$registry->safe_psql('postgres', q{UPDATE snowflake_internal.registry_server SET settled_at = settled_at + 1e17});
is($registry->safe_psql('postgres', written('another', 2, 'assertion', 'granted_until + 1000') =~ s/'5'/'6'/gr), 't', 'another tells how far its ids went');
$before = $registry->claim(2, 'granted_until', 'another');
$registry->safe_psql('postgres', q{UPDATE snowflake_internal.registry_server SET settled_at = settled_at - 1e17});
is($registry->safe_psql('postgres', written('another', 2, 'release', 0)), 't', 'a release');
is($registry->claim(2, "state, granted_until = '$before'", 'another'), 'free|t', 'does not take back what another told');

# What it can't spoil for good.
$registry->command_fails_like([ @$as_keeper, written('shop', 0, 'claim', 'clock') =~ s/, generation, generation \+ 1/, 0, 1/r =~ s/, layout,/, 'nonsense',/r ], qr/ERROR: .*invalid snowflake layout/, 'the role: no group without a layout');
$registry->command_fails_like([ @$as_keeper, written('shop', 0, 'claim', 'clock') =~ s/, generation, generation \+ 1/, 0, 1/r =~ s/, layout,/, 'game',/r ], qr/layout of a snowflake registry's group must be written out/, 'the role: no group with the name of a layout');
is($registry->safe_psql('postgres', written('shop', 0, 'claim', 'clock') =~ s/, generation, generation \+ 1/, 0, 1/r =~ s/, layout,/, (snowflake_layout('game')).spec,/r =~ s/'1s'\)/'10min')/r), 't', 'a group that nobody has used gets its layout');
$registry->command_fails_like([ 'psql', '-XAtq', '-d', $registry->connstr('postgres'), '-c', q{SELECT snowflake_registry_forget_layout('shop')} ],
	qr/cannot forget the layout of a group with a living holder\n.*DETAIL: .*Node number 0 of group "shop" is held by/, 'which lasts as long as somebody is alive there');
$registry->command_fails_like([ @$as_keeper, q{SELECT snowflake_registry_forget_layout('shop')} ], qr/permission denied for function snowflake_registry_forget_layout/, 'the role: forgets no layout');
is($registry->safe_psql('postgres', written('shop', 0, 'release', 'granted_until')), 't', 'nobody is');
$registry->safe_psql('postgres', q{SELECT snowflake_registry_forget_layout('shop')});
is($registry->value(q{count(*) FROM snowflake_internal.registry_group WHERE registry_group = 'shop'}), 0, 'the owner lets the group begin anew');
$registry->command_fails_like([ 'psql', '-XAtq', '-d', $registry->connstr('postgres'), '-c', q{SELECT snowflake_registry_forget_layout('shop')} ],
	qr/group of a snowflake registry has no layout/, 'once');
$registry->command_fails_like([ @$as_keeper, written('another', 2, 'claim', 'granted_until') =~ s/, '', 0, '',/, repeat('x', 2000), 0, '',/r ], qr/claim names a place that is too long/, 'the role: no long names');
$registry->command_fails_like([ @$as_keeper, "BEGIN; $written; PREPARE TRANSACTION 'left behind'" ], qr/cannot PREPARE a transaction that has used a snowflake registry/, 'the role: leaves no locks without a session');

# Whoever is granted a number gives back what it was granted, and no more.
$before = $registry->claim(2, 'granted_until', 'another');
is($registry->safe_psql('postgres', written('another', 2, 'claim', 'granted_until + 1000000')), 't', 'a free number is claimed');
is($registry->safe_psql('postgres', written('another', 2, 'release', 0)), 't', 'it is given back');
is($registry->claim(2, "state, granted_until = '$before'", 'another'), 'free|t', 'with the fence where it was, and no further back');
$registry->command_fails_like([ @$as_keeper, q{SELECT snowflake_registry_repair('another', 2, now())} ], qr/permission denied for function snowflake_registry_repair/, 'the role: repairs nothing');
$registry->command_fails_like([ @$as_keeper, q{SELECT snowflake_registry_settle()} ], qr/permission denied for function snowflake_registry_settle/, 'the role: settles nothing');
$registry->command_fails_like([ 'psql', '-XAtq', '-d', $registry->connstr('postgres'), '-c', q{SELECT snowflake_registry_repair('another', 2, '294276-12-31')} ],
	qr/granted_until of a claim must be a time from 1970 on, and not far ahead/, 'the owner sets no fence out of sight');
$registry->safe_psql('postgres', q{SELECT snowflake_registry_repair('another', 2, '2026-01-01')});
is($registry->claim(2, q{state, granted_until = '2026-01-01'}, 'another'), 'free|t', 'the owner sets a fence right');

# Without one of them, in the order in which a start needs them: the claim is suspended, or there is none.
my @rights = (
	[ 'EXECUTE ON FUNCTION snowflake_internal.registry_list', 'function registry_list' ],
	[ 'EXECUTE ON FUNCTION snowflake_internal.registry_read', 'function registry_read' ],
	[ 'EXECUTE ON FUNCTION snowflake_internal.registry_write', 'function registry_write' ]);

# A renewal lists nothing.
foreach my $right (@rights[ 1, 2 ])
{
	$log = $first->log_position;
	$registry->safe_psql('postgres', "REVOKE $right->[0] FROM keeper");
	$first->reload;
	$first->wait_for_state('suspended');
	like($first->log_since($log), qr/WARNING: .*claim on the snowflake node number is suspended\n.*DETAIL: .*Registry "\Q$shown\E", group "default", node number 0: permission denied for $right->[1]\. Ids can be made up to 20\d\d-/,
		"without $right->[0]: the log says what is missing");
	$first->take(10);
	$registry->safe_psql('postgres', "GRANT $right->[0] TO keeper");
	$first->wait_for_state('held');
}
$first->take(10);

$registry->safe_psql('postgres', "REVOKE $_->[0] FROM keeper") foreach @rights;
$log = $fourth->log_position;
start_without($fourth, qr/no snowflake node number is claimed\n.*DETAIL: .*permission denied for $rights[0]->[1]\.\n/, 'snowflake.registry_group' => 'rights', 'snowflake.node_id' => 'auto');
$fourth->refuses('SELECT snowflake_nextval()', qr/group "rights", claim "none" since .*: permission denied for $rights[0]->[1]\.\n/, "a start without $rights[0]->[0]");
foreach my $granted (0 .. 1)
{
	my $missing = $rights[ $granted + 1 ];

	$registry->safe_psql('postgres', "GRANT $rights[$granted]->[0] TO keeper");
	$fourth->wait_for_log(qr/no snowflake node number is claimed\n.*DETAIL: .*permission denied for $missing->[1]\.\n/, $log);
	pass("a start without $missing->[0]: the log says so");
}
$registry->safe_psql('postgres', "GRANT $rights[2]->[0] TO keeper");
is(number_of($fourth), 0, 'and with all of them there is a number');
$fourth->stop;

#
# Passwords.
#

my $secret = 'sesame';
my $place = $registry->address =~ s{.*@}{}r;
my @with_password = (
	"postgresql://keeper:${secret}1\@$place",
	"postgres://:${secret}2\@$place",
	"postgresql://keeper\@$place?password=${secret}3",
	"postgresql://$place?user=keeper&%70ass%77ord=${secret}4",
	"postgresql://keeper\@$place?sslpassword=${secret}5",
	"postgresql://keeper\@${secret}6\@$place",
	"keeper:${secret}7\@$place",
	"host=registry password=${secret}8");

foreach my $address (@with_password)
{
	my $name = $address =~ s/\Q$place\E/HOST/r;

	$log = $fourth->log_position;
	$fourth->configure('snowflake.registry' => $address);
	is($fourth->start(fail_ok => 1), 0, "$name stops the start");
	like($fourth->log_since($log), qr/FATAL: .*invalid value for parameter "snowflake.registry"\n.*DETAIL: .*\n.*HINT: .*password file/, "$name: the log says why");
	$fourth->stop;

	my ($status, $out, $err) = $first->psql('postgres', "ALTER SYSTEM SET snowflake.registry = '$address'");

	isnt($status, 0, "ALTER SYSTEM, $name: refused");
	like($err, qr/ERROR: .*invalid value for parameter "snowflake.registry"\nDETAIL: .*\nHINT: .*password file/, "ALTER SYSTEM, $name: the error says why");
	unlike($err, qr/$secret/, "ALTER SYSTEM, $name: the error does not have it");
}
$log = $first->log_position;
$first->reconfigure('snowflake.registry' => $with_password[0]);
like($first->log_since($log), qr/parameter "snowflake.registry"/, 'a reload with a password in the address is reported');
is($first->value('current_setting(\'snowflake.registry\')'), $registry->address, 'and does not count');
is($first->value("count(*) FROM pg_settings WHERE concat(setting, boot_val, reset_val) LIKE '%$secret%'"), 0, 'no setting has it');
$generation = $registry->claim(0, 'generation');
$first->reconfigure('snowflake.registry' => $registry->address);
# It connects anew, and must have done so before a password is asked for: a stop gives its number back over that connection.
$registry->wait_for_claim(0, "generation > $generation + 1");

# From a password file.
my $passwords = $first->basedir . '/passwords';

sub write_passwords
{
	my ($password) = @_;

	unlink "$passwords.new";
	append_to_file("$passwords.new", "*:*:*:keeper:$password\n");
	chmod 0600, "$passwords.new" or die "could not change the mode: $!";
	rename "$passwords.new", $passwords or die "could not rename: $!";
	return;
}

# Ends the keepers' connections to the registry.
sub drop_connections
{
	$registry->safe_psql('postgres', q{SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'snowflake keeper'});
	return;
}

$registry->safe_psql('postgres', "ALTER ROLE keeper PASSWORD '${secret}10'");
unlink $registry->data_dir . '/pg_hba.conf';
append_to_file($registry->data_dir . '/pg_hba.conf', "local all keeper scram-sha-256\nlocal all all trust\nlocal replication all trust\n");
$registry->reload;
$first->stop;
$fixed->stop;
$third->stop;
start_without($first, qr/no snowflake node number is claimed\n.*DETAIL: .*no password supplied/, 'snowflake.claim_window' => $short);
$first->stop;
# Its release took back no time that others may have been told of, while the registry was unsettled: ids start after that.
$registry->wait_for_claim(0, 'granted_until <= clock_timestamp()');
write_passwords("${secret}10");
$first->{environment} = { PGPASSFILE => $passwords };
is(start_held($first), 0, 'a password file in the environment');
$first->take(10);
is(start_held($third, 'snowflake.registry' => $registry->address(passfile => $passwords)), 1, 'a password file in the address');
$third->take(10);

# Another password: with the file and a reload, and with the file before the registry drops the connection.
$registry->safe_psql('postgres', "ALTER ROLE keeper PASSWORD '${secret}11'");
write_passwords("${secret}11");
my $connections = q{SELECT count(*) = 2 AND min(backend_start) > '%s' FROM pg_stat_activity WHERE application_name = 'snowflake keeper' AND state = 'idle'};
$before = $registry->value('clock_timestamp()');
$_->reload foreach $first, $third;
$registry->poll_query_until('postgres', sprintf $connections, $before) or die 'the keepers did not connect again';
$_->wait_for_state('held') foreach $first, $third;
$_->take(10) foreach $first, $third;

$registry->safe_psql('postgres', "ALTER ROLE keeper PASSWORD '${secret}12'");
write_passwords("${secret}12");
$before = $registry->value('clock_timestamp()');
$log = $third->log_position;
drop_connections();
$registry->poll_query_until('postgres', sprintf $connections, $before) or die 'the keepers did not connect again';
$_->wait_for_state('held') foreach $first, $third;
unlike($third->log_since($log), qr/WARNING/, 'a connection that the registry ends is not worth a warning where there is another at once');
$_->take(10) foreach $first, $third;

# A wrong one: said once, whatever the number of attempts; the right one is noticed.
$first->stop;
write_passwords("${secret}13");
$log = $third->log_position;
my $registry_log = $registry->log_position;
drop_connections();
my $attempts = 0;
wait_until('the keeper has tried again', sub {
	$attempts = () = $registry->log_since($registry_log) =~ /FATAL: .*password authentication failed/g;
	$attempts >= 6;
});
like($third->log_since($log), qr/WARNING: .*claim on the snowflake node number is suspended\n.*DETAIL: .*Registry "\Q$shown\E", group "default", node number 1: .*password authentication failed for user "keeper"/, 'a wrong password: the log says so');
my $said = () = $third->log_since($log) =~ /claim on the snowflake node number is suspended\n.*password authentication failed/g;
is($said, 1, "a wrong password: said once in $attempts attempts");
write_passwords("${secret}12");
$third->wait_for_state('held');
$third->take(10);

#
# What is not a registry.
#

$registry->safe_psql('postgres', 'CREATE DATABASE empty');
$registry->backup('standby');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($registry, 'standby', has_streaming => 1);
$standby->start;

my @not_a_registry = (
	[ $registry->address(user => 'postgres', database => 'empty'), qr/the registry's database has no extension "snowflake"/ ],
	[ $registry->address(user => 'postgres', database => 'nosuch'), qr/database "nosuch" does not exist/ ],
	[ $registry->address(user => 'nobody_here'), qr/role "nobody_here" does not exist/ ],
	[ $registry->address(user => 'postgres', host => $standby->host, port => $standby->port), qr/the registry's server is a standby/ ],
	[ $registry->address(host => $standby->host . '/nowhere'), qr/No such file or directory/ ],
	[ $registry->address(sslmode => 'sometimes'), qr/invalid sslmode value: "sometimes"/ ]);

foreach my $case (@not_a_registry)
{
	my ($address, $why) = @$case;

	start_without($fourth, qr/no snowflake node number is claimed\n.*DETAIL: .*$why/, 'snowflake.registry' => $address, 'snowflake.registry_group' => 'fourth');
	# In between a slow machine may have had no answer in time.
	$fourth->refused_in_the_end(qr/granted no node number\nDETAIL: .*group "fourth", claim "none" since .*: .*$why/, "not a registry: $why");
	$fourth->stop;
}
$standby->stop;

# Several hosts, of which the first takes connections and says nothing.
my $silent = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', Proto => 'tcp') or die "could not listen: $!";
$fourth->{ledger} = Snowflake::Ledger->new;
start_held($fourth, 'snowflake.registry' => sprintf 'postgresql://postgres@127.0.0.1:%d,%s:%d/postgres',
	$silent->sockport, Snowflake::Registry::escape($registry->host), $registry->port);
$fourth->take(10);
$fourth->{ledger}->check('a registry whose first host is silent');
$fourth->stop;
close $silent;

# The server itself: a warning, and it works, after a restart too.  It has the true clock: libfaketime's can't be read in a
# signal handler, and the keeper's queries have a time limit.
delete $fourth->{clock};
$fourth->configure(
	'snowflake.registry' => $registry->address(user => 'postgres', host => $fourth->host, port => $fourth->port),
	'snowflake.claim_window' => $long);
$fourth->{ledger} = Snowflake::Ledger->new;
$log = $fourth->log_position;
start_held($fourth);
like($fourth->log_since($log), qr/WARNING: .*snowflake registry is in this server, or in a copy of it\n.*DETAIL: .*The registry is "postgresql:\S+"\. .*\n.*HINT: .*another server/, 'a registry in the server itself: a warning');
$fourth->take(10);
$fourth->restart;
$fourth->wait_for_state('held');
$fourth->take(10);
is($fourth->stop('smart', fail_ok => 1), 1, 'a registry in the server itself: a smart stop does not wait for the keeper');
$fourth->start;
$fourth->wait_for_state('held');
$fourth->take(10);
$fourth->{ledger}->check('a registry in the server itself');
$fourth->stop;

# No number is asked for: no claim.
$fourth->configure('snowflake.registry' => $registry->address, 'snowflake.node_id' => '');
$fourth->start;
$fourth->refuses('SELECT snowflake_nextval()', qr/cannot make ids without a node number/, 'a registry, and no node number');
is($fourth->stat(q{node_id IS NULL AND claim = 'none'}), 't', 'a registry, and no node number: as shown');
$fourth->stop;

SKIP:
{
	skip 'this snowflake was built with ZooKeeper', 2 if -e Snowflake::ZooKeeper->module;

	$third->refuses(q{ALTER SYSTEM SET snowflake.registry = 'zookeeper://127.0.0.1:2181/snowflake'},
		qr/ERROR: .*invalid value.*DETAIL: .*built without the library for ZooKeeper.*HINT: .*libzookeeper-st-dev/s, 'ZooKeeper without its module');
}

#
# A dump of the registry has its claims.
#

# Not where another test has one of this name: they run side by side.
my $dump = $registry->basedir . "/dump.sql";
my $claims = q{SELECT registry_group, node, granted_until, port, since, generation FROM "Our ids".snowflake_claims ORDER BY 1, 2};

$third->stop;
$registry->command_ok([ 'pg_dump', '-f', $dump, '-d', $registry->connstr('postgres') ], 'a dump');
$registry->command_ok([ 'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-q', '-f', $dump, '-d', $registry->connstr('empty') ], 'a restore');
cmp_ok($registry->value('count(*) FROM snowflake_claims'), '>', 5, 'there are claims');
is($registry->safe_psql('empty', $claims), $registry->safe_psql('postgres', $claims), 'a restore has the claims');
is($registry->safe_psql('empty', q{SELECT unsettled > 0 FROM snowflake_internal.registry_read('default', 0, repeat('5', 32), '1s')}), 't', 'what was restored grants nothing anew at first');

foreach my $server ($registry, $fixed, $first, $second, $third, $fourth, $standby)
{
	unlike(slurp_file($server->logfile), qr/$secret/, 'no password in the log of ' . $server->name);
}
$ledger->check('numbers from a registry');
done_testing();
