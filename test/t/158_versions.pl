# Versions of the extension: what an upgrade script leaves is what a fresh installation has, in every
# object; and where a database's SQL and the server's library are of different versions, a session
# is told, and nothing wrong is returned.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use Snowflake::Server;
use Test::More;

my $server = Snowflake::Server->new('one');

$server->init;
$server->start;

# All that makes an extension, a line for each: its objects with their definitions, rights and comments, and what a dump has of it.
my $objects = q{
	WITH members AS (SELECT classid, objid, pg_describe_object(classid, objid, 0) AS name
					   FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND objsubid = 0
						AND refobjid = (SELECT oid FROM pg_extension WHERE extname = '@')),
		 relations AS (SELECT m.name, c.* FROM members AS m JOIN pg_class AS c ON m.classid = 'pg_class'::regclass AND c.oid = m.objid)
	SELECT replace(line, E'\n', ' ') FROM (
		SELECT concat_ws(' ', m.name, 'owner', o.owner, 'rights', o.acl, 'comment', obj_description(m.objid, m.classid::regclass::name)) FROM members AS m
			LEFT JOIN LATERAL (SELECT proowner::regrole AS owner, proacl::text AS acl FROM pg_proc WHERE m.classid = 'pg_proc'::regclass AND oid = m.objid
				UNION ALL SELECT relowner::regrole, relacl::text FROM pg_class WHERE m.classid = 'pg_class'::regclass AND oid = m.objid
				UNION ALL SELECT nspowner::regrole, nspacl::text FROM pg_namespace WHERE m.classid = 'pg_namespace'::regclass AND oid = m.objid
				UNION ALL SELECT typowner::regrole, typacl::text FROM pg_type WHERE m.classid = 'pg_type'::regclass AND oid = m.objid) AS o ON true
		UNION ALL SELECT concat_ws(' ', m.name, pg_get_functiondef(p.oid)) FROM members AS m JOIN pg_proc AS p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid WHERE p.prokind <> 'a'
		UNION ALL SELECT concat_ws(' ', r.name, r.relkind, r.relpersistence, r.relreplident, r.relrowsecurity, r.reloptions, pg_get_viewdef(r.oid)) FROM relations AS r
		UNION ALL SELECT concat_ws(' ', r.name, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attcollation::regcollation, a.attnotnull, a.attacl, pg_get_expr(d.adbin, d.adrelid), col_description(r.oid, a.attnum))
			FROM relations AS r JOIN pg_attribute AS a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped LEFT JOIN pg_attrdef AS d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
		UNION ALL SELECT concat_ws(' ', r.name, c.conname, pg_get_constraintdef(c.oid)) FROM relations AS r JOIN pg_constraint AS c ON c.conrelid = r.oid
		UNION ALL SELECT concat_ws(' ', r.name, pg_get_indexdef(i.indexrelid)) FROM relations AS r JOIN pg_index AS i ON i.indrelid = r.oid
		UNION ALL SELECT concat_ws(' ', r.name, t.tgenabled, pg_get_triggerdef(t.oid)) FROM relations AS r JOIN pg_trigger AS t ON t.tgrelid = r.oid WHERE NOT t.tgisinternal
		UNION ALL SELECT concat_ws(' ', 'dump of', t.relation::regclass, t.condition) FROM pg_extension AS e, unnest(e.extconfig, e.extcondition) AS t (relation, condition) WHERE e.extname = '@'
	) AS all_of_it (line) ORDER BY line COLLATE "C"};

sub objects_of
{
	my ($extension) = @_;

	return $server->safe_psql('postgres', "SET search_path = ''; " . $objects =~ s/@/$extension/gr);
}

foreach my $extension (qw(snowflake snowflake_migrate))
{
	my $newest = $server->value("default_version FROM pg_available_extensions WHERE name = '$extension'");
	my @older = split /\n/, $server->safe_psql('postgres', "SELECT version FROM pg_available_extension_versions WHERE name = '$extension' AND version <> '$newest'");

	$server->safe_psql('postgres', "CREATE EXTENSION $extension CASCADE");

	my $fresh = objects_of($extension);

	cmp_ok(scalar(split /\n/, $fresh), '>', 50, "$extension: there are objects to compare");
	foreach my $version (@older)
	{
		$server->safe_psql('postgres', "DROP EXTENSION $extension; CREATE EXTENSION $extension VERSION '$version'; ALTER EXTENSION $extension UPDATE");
		is(objects_of($extension), $fresh, "$extension: version $version comes to be what is installed anew");
	}
}

# The comparison sees what an upgrade script could have forgotten.
my $fresh = objects_of('snowflake');

foreach my $change (
	'GRANT EXECUTE ON FUNCTION snowflake_advance_past(bigint) TO PUBLIC',
	'ALTER FUNCTION snowflake_nextval() STABLE',
	'ALTER TABLE snowflake_internal.restored_limit DISABLE TRIGGER restore_limit',
	'ALTER TABLE snowflake_internal.registry_claim ALTER COLUMN is_doubtful DROP DEFAULT',
	'DROP INDEX snowflake_internal.registry_claim_write_number',
	'COMMENT ON FUNCTION snowflake_nextval() IS NULL',
	q{UPDATE pg_extension SET extcondition = array_fill(''::text, ARRAY[cardinality(extcondition)]) WHERE extname = 'snowflake'})
{
	isnt($server->safe_psql('postgres', "BEGIN; $change; SET search_path = ''; " . $objects =~ s/@/snowflake/gr), $fresh, "seen: $change");
}

# The library is newer, or older, than what the database has been told of it.
my $library = $server->value('default_version FROM pg_available_extensions WHERE name = $$snowflake$$');
my ($status, $out, $err);

foreach my $version ('0.9', '99.0')
{
	$server->safe_psql('postgres', "UPDATE pg_extension SET extversion = '$version' WHERE extname = 'snowflake'");
	($status, $out, $err) = $server->psql('postgres', "SELECT snowflake_nextval(); SELECT snowflake_nextval();");
	like($out, qr/^\d+\n\d+$/, "SQL of version $version: ids are made");
	like($err, qr/WARNING:  extension "snowflake" has another version than its library\n.*In this database it is \Q$version\E; the server has loaded the library of \Q$library\E.\n.*ALTER EXTENSION snowflake UPDATE/, "SQL of version $version: with a warning");
	is(scalar(() = $err =~ /WARNING/g), 1, "SQL of version $version: once in a session");
}
$server->safe_psql('postgres', "UPDATE pg_extension SET extversion = '$library' WHERE extname = 'snowflake'");
($status, $out, $err) = $server->psql('postgres', 'SELECT snowflake_nextval()');
is($err, '', 'no warning where both are the same');

# SQL that does not have what the library needs before it makes an id.
$server->safe_psql('postgres', 'ALTER EXTENSION snowflake DROP TABLE snowflake_internal.restored_limit');
my $errors = $server->stat('errors');

$server->refuses('SELECT snowflake_nextval()', qr/ERROR:  extension "snowflake" in this database is older than its library\n.*are missing.*\n.*ALTER EXTENSION snowflake UPDATE/, 'an object is missing');
is($server->stat("errors - $errors"), 1, 'an object is missing: one error is counted');
is($server->stat('refusal'), 'older extension', 'an object is missing: snowflake_stat');
$server->safe_psql('postgres', 'ALTER EXTENSION snowflake ADD TABLE snowflake_internal.restored_limit');
is($server->stat('refusal IS NULL'), 't', 'there again: snowflake_stat');
like($server->value('snowflake_nextval()'), qr/^\d+$/, 'there again: ids are made');

# SQL that declares a function as another version's library had it.
$server->safe_psql('postgres', q{
	CREATE FUNCTION old_stat(OUT node_id bigint, OUT node_source text) RETURNS record AS '$libdir/snowflake', 'snowflake_stat' LANGUAGE C;
	CREATE FUNCTION old_layouts(OUT name text) RETURNS SETOF text AS '$libdir/snowflake', 'snowflake_layouts' LANGUAGE C;
	CREATE FUNCTION new_decode(id bigint, OUT ts timestamptz, OUT node bigint, OUT sequence bigint, OUT fields jsonb, OUT more int) RETURNS record AS '$libdir/snowflake', 'snowflake_decode' LANGUAGE C});
foreach my $call ('old_stat()', 'new_decode(1)')
{
	$server->refuses("SELECT * FROM $call", qr/ERROR:  SQL and library of extension "snowflake" are of different versions\n.*ALTER EXTENSION snowflake UPDATE/s, $call);
}
$server->refuses('SELECT * FROM old_layouts()', qr/ERROR:/, 'old_layouts()');
$server->refuses(q{CREATE FUNCTION tomorrow() RETURNS bigint AS '$libdir/snowflake', 'snowflake_tomorrow' LANGUAGE C}, qr/could not find function "snowflake_tomorrow"/, 'a function that the library does not have');
done_testing();
