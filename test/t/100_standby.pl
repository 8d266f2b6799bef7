# A streaming standby: what works there, and what it issues when it is promoted
# with its clock behind.  A base backup.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Test::More;

my $primary = Snowflake::Server->new('primary');

$primary->set_clock(0);
$primary->init(allows_streaming => 1);
$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION snowflake');
$primary->safe_psql('postgres', 'CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval())');
$primary->take(1000);
$primary->backup('first');

my $standby = Snowflake::Server->new('standby');

$standby->set_clock(0);
$standby->init_from($primary, 'first');
$standby->start;

# Waits until the standby has replayed what the primary has written.
sub catch_up
{
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));
	return;
}

# What works on a standby, and what does not.
my $newest = $primary->take;
catch_up();
$standby->refuses('SELECT snowflake_nextval()', qr/ERROR: .*cannot execute snowflake_nextval\(\) during recovery/, 'snowflake_nextval() on a standby');
$standby->refuses('SELECT snowflake_nextval_batch(3)', qr/cannot execute snowflake_nextval_batch\(\) during recovery/, 'snowflake_nextval_batch() on a standby');
$standby->refuses("SELECT snowflake_advance_past($newest)", qr/cannot execute snowflake_advance_past\(\) during recovery/, 'snowflake_advance_past() on a standby');
$standby->refuses('SELECT snowflake_set_reserved_until(now())', qr/cannot execute snowflake_set_reserved_until\(\) during recovery/, 'snowflake_set_reserved_until() on a standby');
$standby->refuses('SELECT snowflake_lastval()', qr/not yet defined in this session/, 'snowflake_lastval() on a standby');
is($standby->value("snowflake_node($newest)"), 1, 'decoding works on a standby');
cmp_ok($standby->value("count(*) FROM snowflake_explain($newest)"), '>', 3, 'snowflake_explain() works on a standby');
is($standby->stat('node_id'), 1, 'snowflake_stat works on a standby');
is($standby->stat('last_id IS NULL AND ids = 0'), 't', 'a standby has issued nothing');
is($standby->stat('reserved_until'), $primary->stat('reserved_until'), 'a standby has the limit');
is($standby->stat('errors'), 2, 'a standby counts the calls that were refused an id');

# A restart point, and a restart of the standby, keep it.
$primary->safe_psql('postgres', 'CHECKPOINT');
catch_up();
$standby->safe_psql('postgres', 'CHECKPOINT');
$standby->restart('immediate');
is($standby->stat('reserved_until'), $primary->stat('reserved_until'), 'a restarted standby has the limit');

# A limit that is set back arrives, too.
$primary->safe_psql('postgres', q{SELECT snowflake_advance_past(snowflake_max_id(now() + interval '1 hour'))});
$primary->restart;
$primary->safe_psql('postgres', 'SELECT snowflake_set_reserved_until(now())');
catch_up();
is($standby->stat('reserved_until <= clock_timestamp()'), 't', 'a limit that was set back is set back on the standby');
is($standby->stat('reserved_until'), $primary->stat('reserved_until'), 'the standby has the limit that was set');
$primary->take(1000);

# Promoted with its clock a second behind: the first call waits, and starts above all.
$primary->start_clients(qw(single batch));
$primary->wait_for_clients(4096);
$primary->finish_clients;
$primary->safe_psql('postgres', 'INSERT INTO orders SELECT FROM generate_series(1, 100)');
catch_up();
$primary->take(1000);
catch_up();
my $reserved = $primary->stat('reserved_until');
$primary->stop('immediate');
$standby->step_clock(-1);
$standby->promote;
my ($taken) = $standby->take_beside_clock(1);
my ($first, $ahead) = @$taken;
cmp_ok($ahead, '<=', 0, 'the first id after a promotion waits for the clock');
is($standby->value("snowflake_timestamp($first) >= '$reserved'"), 't', 'the first id after a promotion starts at the limit');
cmp_ok($standby->furthest_ahead(1000), '<=', 0, 'no id lies ahead of the new primary\'s clock');
$standby->safe_psql('postgres', 'INSERT INTO orders SELECT FROM generate_series(1, 100)');
is($standby->value('count(*) FROM orders'), 200, 'rows go on');

# And the next: a standby of the new primary, its clock an hour behind.
$primary = $standby;
$primary->backup('second');
$standby = Snowflake::Server->new('standby2');
$standby->set_clock($primary->{clock} - 3600);
$standby->init_from($primary, 'second');
$standby->start;
$primary->take(1000);
catch_up();
$primary->stop;
$standby->promote;
$standby->refuses('SELECT snowflake_nextval()', qr/clock is (?:00:59|01:00):\S* behind/, 'promoted with the clock an hour behind');
$standby->step_clock(3600);
$standby->take(1000);

# Sessions that were refused on the standby get ids once it is promoted.
$primary = $standby;
$primary->backup('third');
$standby = Snowflake::Server->new('standby3');
$standby->set_clock($primary->{clock});
$standby->init_from($primary, 'third');
$standby->start;
$primary->take(1000);
catch_up();
my $session = $standby->background_psql('postgres', on_error_stop => 0);
$session->query('SELECT snowflake_nextval()');
like($session->{stderr}, qr/during recovery/, 'a session is refused on the standby');
$session->{stderr} = '';
$primary->stop('immediate');
$standby->promote;
my $id = $session->query('SELECT snowflake_nextval()');
like($id, qr/^\d{15,}$/, 'the same session gets an id after the promotion');
$standby->record($id);
$session->quit;

# A base backup has the limit; a server that is started from it and knows not to be the same goes on above.
$newest = $standby->take(1000);
$standby->backup('copy');
my $copy = Snowflake::Server->new('copy');
$copy->init_from($standby, 'copy', has_streaming => 0);
$copy->{line} = 'copy';
$copy->set_clock($standby->{clock} - 1);
$copy->configure('snowflake.node_id' => '2');
$copy->start;
is($copy->stat(qq{reserved_until > snowflake_timestamp($newest)}), 't', 'a base backup has the limit');
cmp_ok($copy->take(1000), '>', $newest, 'a server from a base backup starts above it');

$standby->{ledger}->check('promotions');
done_testing();
