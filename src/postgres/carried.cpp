/*
 * carried.cpp
 *		The reserved time that a database brings from another server, by a dump or by
 *		pg_upgrade.
 *
 * Locks: a row of upgraded_limit is overwritten in its page, under the buffer's lock.
 * Whether a claim is held and what is written for that case is decided under
 * lock_shared_state(), as claims begin under it.
 */
#include <algorithm>

#include "postgres/carried.h"

#include "core/claim_bounds.h"
#include "core/scale.h"
#include "core/steps.h"
#include "postgres/environment.h"
#include "postgres/errors.h"
#include "postgres/layout.h"
#include "postgres/reservation.h"
#include "postgres/settings.h"
#include "postgres/shared.h"
#include "postgres/time.h"

#include "postgres/pg.h"
#include "postgres/row.h"

namespace snowflake
{

namespace
{

constexpr const char *extension_name = "snowflake";
constexpr const char *schema_name = "snowflake_internal";
constexpr const char *restored_name = "restored_limit";
constexpr const char *upgraded_name = "upgraded_limit";

/* No id at or above the limit was made elsewhere; those below, on this scale. */
struct Carried
{
	int64_t		limit_us;
	uint64_t	scale;
	bool		is_trusted;		/* who brought it may raise this server's limit ahead of the clock */
};

/* The row of upgraded_limit, as its columns lie in the tuple. */
struct Left
{
	uint64_t	system_identifier;	/* of the server that made ids here last; 0: none did */
	int64_t		limit_us;		/* of that server when pg_upgrade ran; limit_unknown: it did not, or not with us */
	uint64_t	scale;
};

constexpr int64_t limit_unknown = -1;
static_assert(sizeof(Left) == 24);

/* What keeps this database from making ids. */
enum class Doubt
{
	none,
	restored_above,				/* ids of a dump lie above those that can be made now */
	upgrade_lost_limit,			/* pg_upgrade has left no limit */
	lost_elsewhere,				/* nor in another database */
	left_is_gone,				/* nothing could tell the next pg_upgrade who made ids here */
	namesake,					/* the extension is another one of this name */
	old_sql,					/* its objects are of a version before this library's */
};

struct Finding
{
	Doubt		doubt;
	Carried		carried;		/* restored_above */
	Left		left;			/* upgrade_lost_limit */
};

ExecutorStart_hook_type previous_executor_start;

/* The relations whose new rows are to be seen; and whether nothing was said of them since this session looked. */
Oid			watched_relations[2] = {InvalidOid, InvalidOid};
bool		checked_in = false;
uint64_t	invalidations = 0;

/* It looked in the transaction that runs: what it saw may be that transaction's own. */
bool		looked_in_transaction = false;

/*
 * Relations
 */

/* The extension's relation of this name; InvalidOid where there is none.  What others have called so does not count. */
Oid
find_relation(const char *name, Oid extension)
{
	Oid			schema = get_namespace_oid(schema_name, true);
	Oid			relation = OidIsValid(schema) ? get_relname_relid(name, schema) : InvalidOid;

	return OidIsValid(extension) && OidIsValid(relation) &&
		getExtensionOfObject(RelationRelationId, relation) == extension ?
		relation : InvalidOid;
}

Oid
find_extension()
{
	return get_extension_oid(extension_name, true);
}

/* A column of a row that has values in all of them. */
int64_t
column(Relation relation, HeapTuple tuple, int number)
{
	bool		is_null;
	Datum		value = heap_getattr(tuple, number, RelationGetDescr(relation), &is_null);

	return is_null ? 0 : DatumGetInt64(value);
}

/* Whether there is a row; where it lies, as well. */
bool
read_left(Relation relation, Left *left, ItemPointerData *place)
{
	SysScanDesc scan = systable_beginscan(relation, InvalidOid, false, nullptr, 0, nullptr);
	HeapTuple	tuple = systable_getnext(scan);
	bool		is_there = HeapTupleIsValid(tuple);

	if (is_there)
	{
		*left = {static_cast<uint64_t>(column(relation, tuple, 1)), column(relation, tuple, 2),
				 static_cast<uint64_t>(column(relation, tuple, 3))};
		*place = tuple->t_self;
	}
	systable_endscan(scan);
	return is_there;
}

/*
 * In place, as a sequence is: in a read-only transaction too, and without a
 * transaction id, which pg_upgrade would not carry.
 */
void
write_left(Relation relation, const ItemPointerData &place, const Left &left)
{
	Buffer		buffer = ReadBuffer(relation, ItemPointerGetBlockNumber(&place));

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);

	GenericXLogState *log = GenericXLogStart(relation);
	Page		page = GenericXLogRegisterBuffer(log, buffer, 0);
	OffsetNumber offset = ItemPointerGetOffsetNumber(&place);
	ItemId		item = offset <= PageGetMaxOffsetNumber(page) ? PageGetItemId(page, offset) : nullptr;

	if (item == nullptr || !ItemIdIsNormal(item))
		elog(ERROR, "row of \"%s\" is gone", RelationGetRelationName(relation));

	HeapTupleHeader header = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));

	if (ItemIdGetLength(item) != header->t_hoff + sizeof(left) || HeapTupleHeaderGetNatts(header) != 3)
		elog(ERROR, "row of \"%s\" has an unexpected size", RelationGetRelationName(relation));
	memcpy(reinterpret_cast<char *>(header) + header->t_hoff, &left, sizeof(left));
	GenericXLogFinish(log);
	UnlockReleaseBuffer(buffer);
}

/* Did another server write it? */
bool
is_foreign(const Left &left)
{
	return left.system_identifier != 0 && left.system_identifier != GetSystemIdentifier();
}

/* As read from a row that anybody may have made up. */
bool
is_possible(const Carried &carried)
{
	return carried.limit_us > 0 && carried.limit_us <= latest_time_us;
}

/*
 * Where the server's ids stand
 */

/* The first tick of the server's layout whose ids all lie above; past its last one where there is none. */
int64_t
first_tick_past(const Carried &carried)
{
	const Layout &layout = server_layout();

	if (carried.scale == 0 || is_scale_of(carried.scale, layout))
		return std::clamp<int64_t>(tick_from(layout, carried.limit_us), 0, layout.last_tick() + 1);
	return first_tick_above(decode_scale(carried.scale), carried.limit_us, layout);
}

/* The word, where the claim is held; 0 where not. */
uint64_t
held_word()
{
	uint64_t	word = shared() == nullptr ? 0 : shared()->generator.word.load(std::memory_order_acquire);

	return word & held ? word : 0;
}

/* Do all ids that can still be made, also after a crash, lie in this tick or later ones? */
bool
is_past(int64_t tick)
{
	const Layout &layout = server_layout();
	uint64_t	word = held_word();
	Steps		steps(layout);

	return tick <= layout.last_tick() && read_limit() >= tick_begin_us(layout, tick) &&
		(word == 0 || steps.tick_of(steps.step_of(word) + 1) >= tick);
}

/* Has the wall clock jumped, so that nothing may be moved by it? */
bool
is_clock_in_doubt(int64_t start_us)
{
	return shared() != nullptr && server_generator().clock_failure(start_us) == Failure::forward_jump;
}

/* An accepted scale says of the ids before it that they may lie anywhere; so does the record from here. */
void
keep_acceptance(const Carried &carried)
{
	uint64_t	recorded = read_scale();

	if (carried.is_trusted && (carried.scale & scale_is_accepted) != 0 && (recorded & scale_is_accepted) == 0 &&
		is_scale_of(carried.scale, server_layout()) && (recorded == 0 || is_scale_of(recorded, server_layout())))
		flush_log(log_scale(carried.scale));
}

/* Could raise_limit_to() do so now? */
bool
can_raise_limit_to(int64_t tick)
{
	return is_limit_writable() && (held_word() == 0 || server_generator().is_granted(tick - 1));
}

/* From now on no id is made below the tick, which is in the layout; false where that can't be. */
bool
raise_limit_to(int64_t tick)
{
	uint64_t	position = 0;
	bool		is_held;

	if (!is_limit_writable())
		return false;
	lock_shared_state();
	is_held = held_word() != 0;
	if (!is_held)
		position = log_limit(tick_begin_us(server_layout(), tick), false);
	unlock_shared_state();
	if (is_held)
		return server_generator().advance_past(tick - 1).failure == Failure::none;
	flush_log(position);
	return true;
}

/*
 * What comes with a dump
 */

/*
 * Takes it over, where the server's ids do not lie above already; false where it may or can not.  With takes_over
 * false: would that be so?
 */
bool
take_over_restored(const Carried &carried, bool takes_over)
{
	int64_t		tick = first_tick_past(carried);
	Reason		reason;

	if (is_for_reading_only(server_layout(), &reason) || is_limit_lost())
		return false;
	if (!is_past(tick))
	{
		int64_t		most_us = server_clock.now_us() + (carried.is_trusted ? furthest_advance_us : 0);
		int64_t		begin_us = tick_begin_us(server_layout(), tick);

		if (tick > server_layout().last_tick() || begin_us > most_us || is_clock_in_doubt(begin_us) ||
			!(takes_over ? raise_limit_to(tick) : can_raise_limit_to(tick)))
			return false;
	}
	if (takes_over)
		keep_acceptance(carried);
	return true;
}

/* Where nothing is preloaded nobody makes ids: the limit can be written as it was there. */
bool
take_over_without_generator(const Carried &carried)
{
	uint64_t	recorded = read_scale();
	bool		is_first = recorded == 0 && read_limit() == 0;

	if (!carried.is_trusted || carried.limit_us > wall_clock_ns() / ns_per_us + furthest_advance_us ||
		!is_limit_writable() || is_limit_lost() ||
		(!is_first && (recorded | scale_is_accepted) != (carried.scale | scale_is_accepted)))
		return false;
	/* A crash between the two leaves a scale without a limit, which is none. */
	flush_log(log_scale(carried.scale | recorded));
	flush_log(log_limit(carried.limit_us, false));
	return true;
}

Finding
look_at_restored(Oid oid, bool takes_over)
{
	Relation	relation = table_open(oid, AccessShareLock);
	SysScanDesc scan = systable_beginscan(relation, InvalidOid, false, nullptr, 0, nullptr);
	Finding		finding{};
	HeapTuple	tuple;

	while (finding.doubt == Doubt::none && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		is_null;
		Carried		carried = {
			.limit_us = column(relation, tuple, 1),
			.scale = static_cast<uint64_t>(column(relation, tuple, 2)),
			.is_trusted = DatumGetBool(heap_getattr(tuple, 3, RelationGetDescr(relation), &is_null)),
		};

		if (is_possible(carried) && !take_over_restored(carried, takes_over))
			finding = {Doubt::restored_above, carried, {}};
	}
	systable_endscan(scan);
	table_close(relation, AccessShareLock);
	return finding;
}

/*
 * What pg_upgrade has left
 */

/*
 * The server's limit lies at or above what another one has left; false where that can't be.  With takes_over false:
 * could it?
 */
bool
take_over_left(const Left &left, bool takes_over)
{
	Carried		carried = {left.limit_us, left.scale, true};
	uint64_t	position = 0;
	bool		is_first;

	if (!is_possible(carried))
		return true;
	if (takes_over)
		check_limit_for_ids();

	/* A server that never had a limit goes on as the one before it. */
	lock_shared_state();
	if (is_limit_lost())
	{
		unlock_shared_state();
		return false;
	}
	is_first = read_limit() == 0 && read_scale() == 0 && held_word() == 0;
	if (is_first && takes_over)
	{
		shared()->is_limit_upgraded = IsBinaryUpgrade;
		/* A crash between the two leaves a scale without a limit, which is none. */
		if (left.scale != 0)
			(void) log_scale(left.scale);
		position = log_limit(left.limit_us, false);
	}
	unlock_shared_state();
	if (is_first)
	{
		if (takes_over)
			flush_log(position);
		return true;
	}

	int64_t		tick = first_tick_past(carried);

	if (!is_past(tick) && (tick > server_layout().last_tick() ||
						   !(takes_over ? raise_limit_to(tick) : can_raise_limit_to(tick))))
		return false;
	if (takes_over)
		keep_acceptance(carried);
	return true;
}

Finding
look_at_upgraded(Oid oid, bool takes_over)
{
	Relation	relation = table_open(oid, AccessShareLock);
	Finding		finding{};
	Left		left;
	ItemPointerData place;

	if (!read_left(relation, &left, &place))
		finding.doubt = Doubt::left_is_gone;
	/* pg_createsubscriber gives a server another identifier, too, but leaves it its limit. */
	else if (is_foreign(left) && left.limit_us == limit_unknown && read_limit() == 0)
		finding = {Doubt::upgrade_lost_limit, {}, left};
	else if (is_limit_lost())
		finding.doubt = Doubt::lost_elsewhere;
	else if (left.system_identifier != GetSystemIdentifier() || left.limit_us != limit_unknown)
	{
		if (is_foreign(left) && left.limit_us != limit_unknown && !take_over_left(left, takes_over))
			finding = {Doubt::restored_above, {left.limit_us, left.scale, true}, left};
		/* Whatever was left is out of date from the next id on. */
		else if (takes_over)
			write_left(relation, place, {GetSystemIdentifier(), limit_unknown, 0});
	}
	table_close(relation, AccessShareLock);
	return finding;
}

/*
 * A database was brought whose ids nobody knows a limit of: then no database of this
 * server makes ids, those of the next databases included, until somebody gives one.
 * A limit that this server had before is one for them, too: pg_createsubscriber leaves
 * it.  One that another database brings is not: it can be older than these ids.
 */
void
lose_limit()
{
	uint64_t	position = 0;

	if (!is_limit_writable())
		return;
	lock_shared_state();
	if (read_limit() == 0 || shared()->is_limit_upgraded)
		position = log_limit(lost_limit_us, true);
	unlock_shared_state();
	flush_log(position);
}

/*
 * pg_upgrade starts the old server, dumps its schema, stops it, and copies or links its
 * files.  So what is written in that run comes along.  Nobody makes ids in it.
 *
 * It starts the new server as well, when the files are there: what was left is taken
 * over then, before any database of that server can make ids.
 */
void
leave_limit()
{
	Oid			oid = RecoveryInProgress() ? InvalidOid : find_relation(upgraded_name, find_extension());
	Left		left;
	ItemPointerData place;

	if (!OidIsValid(oid))
		return;

	Relation	relation = table_open(oid, AccessShareLock);

	if (read_left(relation, &left, &place))
	{
		bool		is_known = left.limit_us != limit_unknown;

		if (is_foreign(left) && !is_known)
			lose_limit();
		/* Where it can't be taken over, the first session that wants an id says why. */
		if (!is_foreign(left) ||
			(is_known ? is_limit_writable() && take_over_left(left, true) : read_limit() != 0))
			write_left(relation, place, {GetSystemIdentifier(), read_limit(), read_scale()});
	}
	table_close(relation, AccessShareLock);
}

void
executor_start(QueryDesc *query, int flags)
{
	static bool has_left = false;

	/* pg_upgrade and pg_dump begin with a SELECT in each database. */
	if (!has_left && OidIsValid(MyDatabaseId))
	{
		has_left = true;
		leave_limit();
	}
	(previous_executor_start != nullptr ? previous_executor_start : standard_ExecutorStart)(query, flags);
}

/*
 * Sessions
 */

void
look_again()
{
	invalidations++;
	checked_in = false;
	generator_options_changed = true;
}

void
relation_changed(Datum, Oid relation)
{
	if (!OidIsValid(relation) || relation == watched_relations[0] || relation == watched_relations[1])
		look_again();
}

/* A rolled back DELETE invalidates nothing, and the row that it hid from the look is there again. */
void
transaction_taken_back()
{
	if (looked_in_transaction)
		look_again();
}

void
transaction_ended(XactEvent event, void *)
{
	switch (event)
	{
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
		case XACT_EVENT_PREPARE:
			transaction_taken_back();
			looked_in_transaction = false;
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
			looked_in_transaction = false;
			break;
		default:
			break;
	}
}

void
subtransaction_ended(SubXactEvent event, SubTransactionId, SubTransactionId, void *)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		transaction_taken_back();
}

/* Null where there is no such extension any more. */
const char *
extension_version(Oid extension)
{
	Relation	relation = table_open(ExtensionRelationId, AccessShareLock);
	const char *version = nullptr;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_extension_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(extension));
	scan = systable_beginscan(relation, ExtensionOidIndexId, true, nullptr, 1, &key);
	if (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		is_null;

		version = TextDatumGetCString(heap_getattr(tuple, Anum_pg_extension_extversion,
												   RelationGetDescr(relation), &is_null));
	}
	systable_endscan(scan);
	table_close(relation, AccessShareLock);
	return version;
}

/* Says so once in a session. */
void
compare_versions(Oid extension)
{
	static bool has_compared = false;
	const char *version = has_compared ? nullptr : extension_version(extension);

	has_compared = true;
	if (version != nullptr && strcmp(version, SNOWFLAKE_VERSION) != 0)
		ereport(WARNING,
				(errmsg("extension \"%s\" has another version than its library", extension_name),
				 errdetail("In this database it is %s; the server has loaded the library of %s.", version,
						   SNOWFLAKE_VERSION),
				 errhint("Restart the server if it still runs with the library of before an installation; then "
						 "run ALTER EXTENSION %s UPDATE in each database.", extension_name)));
}

/* pgEdge's extension has the same name, and its functions can reach this library. */
bool
is_namesake(Oid extension)
{
	Oid			schema = get_namespace_oid(schema_name, true);

	return !OidIsValid(schema) || getExtensionOfObject(NamespaceRelationId, schema) != extension;
}

[[noreturn]] void
report_namesake(Oid extension)
{
	const char *version = extension_version(extension);

	count_error();
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot make snowflake ids in a database that has another extension \"%s\"", extension_name),
			 errdetail("The extension in this database has the version %s and no schema \"%s\"; the server has loaded "
					   "the library of another one of this name, in version %s.",
					   version == nullptr ? "?" : version, schema_name, SNOWFLAKE_VERSION),
			 errhint("Take what defaults call out of it by ALTER EXTENSION %s DROP, and drop it: \"Coming over\" in "
					 "the documentation has the statements. Or put its library back, and restart the server.",
					 extension_name)));
}

[[noreturn]] void
report_old_sql()
{
	count_error();
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("extension \"%s\" in this database is older than its library", extension_name),
			 errdetail("Objects that the library needs are missing. The server has loaded the library of version %s.",
					   SNOWFLAKE_VERSION),
			 errhint("Run ALTER EXTENSION %s UPDATE.", extension_name)));
}

/* takes_over: does what can be done; otherwise only says what could not. */
Finding
look(bool takes_over)
{
	Oid			extension = find_extension();
	Oid			restored = find_relation(restored_name, extension);
	Oid			upgraded = find_relation(upgraded_name, extension);
	Finding		finding{};

	if (OidIsValid(extension))
	{
		if (is_namesake(extension))
			return {Doubt::namesake, {}, {}};
		if (takes_over)
			compare_versions(extension);
		if (!OidIsValid(restored) || !OidIsValid(upgraded))
			return {Doubt::old_sql, {}, {}};
	}
	if (OidIsValid(upgraded))
		finding = look_at_upgraded(upgraded, takes_over);
	if (OidIsValid(restored) && finding.doubt == Doubt::none)
		finding = look_at_restored(restored, takes_over);
	watched_relations[0] = restored;
	watched_relations[1] = upgraded;
	return finding;
}

[[noreturn]] void
report_restored(const Carried &carried)
{
	int64_t		tick = first_tick_past(carried);

	count_error();
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot make snowflake ids in a database whose restored ids lie above"),
			 tick > server_layout().last_tick() ?
			 errdetail("Ids of another layout, made before %s, came with a dump; all ids of \"%s\" could repeat those.",
					   time_text(carried.limit_us).text, layout_setting()) :
			 errdetail("Ids that came with a dump reach up to %s; the clock reads %s.",
					   time_text(tick_begin_us(server_layout(), tick)).text, time_text(server_clock.now_us()).text),
			 errhint("Wait until then, or let a superuser restore the dump, which moves the server's reserved time by "
					 "up to a day. If there are no such ids, a superuser can delete the row from "
					 "snowflake_internal.%s.", restored_name)));
}

[[noreturn]] void
report_lost(const Left &left)
{
	count_error();
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot make snowflake ids after an upgrade that has lost the reserved time"),
			 errdetail("Ids in this database were made on the server with the system identifier %llu. When pg_upgrade "
					   "ran, that server did not have snowflake in \"shared_preload_libraries\".",
					   static_cast<unsigned long long>(left.system_identifier)),
			 errhint("Call snowflake_advance_past() with the greatest id that was made there, in any database.")));
}

[[noreturn]] void
report_lost_elsewhere()
{
	count_error();
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot make snowflake ids after an upgrade that has lost the reserved time"),
			 errdetail("Another database of this server has ids that were made on the server before. When "
					   "pg_upgrade ran, that server did not have snowflake in \"shared_preload_libraries\"."),
			 errhint("Call snowflake_advance_past() with the greatest id that was made there, in any database.")));
}

[[noreturn]] void
report_gone()
{
	count_error();
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot make snowflake ids without the row of \"snowflake_internal.%s\"", upgraded_name),
			 errdetail("The row tells pg_upgrade which server made ids in this database last."),
			 errhint("Run REFRESH MATERIALIZED VIEW snowflake_internal.%s. If pg_upgrade ran while the row was not "
					 "there, call snowflake_advance_past() first, with the greatest id that was made before.",
					 upgraded_name)));
}

}  // namespace

bool
is_checked_in()
{
	return checked_in;
}

void
check_in()
{
	static bool is_watching = false;
	uint64_t	seen = invalidations;
	Finding		finding;

	/* A standby makes no ids; and is looked at again when it is promoted. */
	if (RecoveryInProgress())
		return;
	if (!is_watching)
	{
		CacheRegisterRelcacheCallback(relation_changed, Datum{0});
		RegisterXactCallback(transaction_ended, nullptr);
		RegisterSubXactCallback(subtransaction_ended, nullptr);
		is_watching = true;
	}
	looked_in_transaction = true;
	finding = look(true);
	switch (finding.doubt)
	{
		case Doubt::none:
			break;
		case Doubt::restored_above:
			report_restored(finding.carried);
		case Doubt::upgrade_lost_limit:
			report_lost(finding.left);
		case Doubt::lost_elsewhere:
			report_lost_elsewhere();
		case Doubt::left_is_gone:
			report_gone();
		case Doubt::namesake:
			report_namesake(find_extension());
		case Doubt::old_sql:
			report_old_sql();
	}
	checked_in = seen == invalidations;
}

const char *
carried_refusal()
{
	switch (look(false).doubt)
	{
		case Doubt::restored_above:
			return "restored ids lie above";
		case Doubt::upgrade_lost_limit:
		case Doubt::lost_elsewhere:
			return "limit lost by an upgrade";
		case Doubt::left_is_gone:
			return "row for upgrades is gone";
		case Doubt::namesake:
			return "another extension";
		case Doubt::old_sql:
			return "older extension";
		case Doubt::none:
			break;
	}
	return nullptr;
}

void
leave_limit_to_upgrade()
{
	if (!IsBinaryUpgrade)
		return;
	previous_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
}

}  // namespace snowflake

using namespace snowflake;

extern "C"
{

/*
 * snowflake_upgraded_limit(OUT system_identifier bigint, OUT limit_us bigint, OUT scale
 * bigint): the row of snowflake_internal.upgraded_limit, for REFRESH, which thus keeps it.
 */
PG_FUNCTION_INFO_V1(snowflake_upgraded_limit);
Datum
snowflake_upgraded_limit(PG_FUNCTION_ARGS)
{
	Oid			oid = find_relation(upgraded_name, find_extension());
	Left		left = {0, limit_unknown, 0};
	ItemPointerData place;
	Row			row;

	if (OidIsValid(oid))
	{
		Relation	relation = table_open(oid, AccessShareLock);

		(void) read_left(relation, &left, &place);
		table_close(relation, AccessShareLock);
	}
	row.add_int(left.system_identifier);
	row.add_int(left.limit_us);
	row.add_int(left.scale);
	PG_RETURN_DATUM(row.result(fcinfo));
}

/* snowflake_limit_to_dump(OUT limit_us bigint, OUT scale bigint): the limit as it is now; 0 where there is none. */
PG_FUNCTION_INFO_V1(snowflake_limit_to_dump);
Datum
snowflake_limit_to_dump(PG_FUNCTION_ARGS)
{
	uint64_t	scale = read_scale();
	int64_t		limit_us = read_limit();
	Row			row;

	row.add_int(limit_us);
	row.add_int(scale);
	PG_RETURN_DATUM(row.result(fcinfo));
}

/*
 * The trigger BEFORE INSERT of snowflake_internal.restored_limit: raises the limit where
 * the current role may.  Then the row has done what it is for; where not, it stays.
 *
 * A superuser trusts what the dump's server said of itself.  A row that a database's owner
 * had put into the table there is dumped, too: it says that it is not to be trusted, as
 * this trigger has written, and is not when a superuser restores it.
 */
PG_FUNCTION_INFO_V1(snowflake_restore_limit);
Datum
snowflake_restore_limit(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = reinterpret_cast<TriggerData *>(fcinfo->context);

	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_BEFORE(trigger->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(trigger->tg_event) || !TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
		elog(ERROR, "not called as a trigger before insert");

	Relation	relation = trigger->tg_relation;
	HeapTuple	tuple = trigger->tg_trigtuple;
	Carried		carried = {column(relation, tuple, 1), static_cast<uint64_t>(column(relation, tuple, 2)), false};
	int			trusted_column = 3;
	bool		is_null;
	bool		is_said = DatumGetBool(heap_getattr(tuple, trusted_column, RelationGetDescr(relation), &is_null));

	/* A publication has the rows of another server, which are nothing to this one: no dump is restored. */
	if (IsLogicalWorker())
		return Datum{0};
	/* What the table's CHECK and NOT NULL are going to refuse. */
	if (!is_possible(carried) || is_null)
		return PointerGetDatum(tuple);
	/* A time that is too far ahead now must not move the limit, all of a sudden, by the next day's first id here. */
	carried.is_trusted = is_said && superuser() &&
		carried.limit_us <= wall_clock_ns() / ns_per_us + furthest_advance_us;
	if (shared() == nullptr ? take_over_without_generator(carried) : take_over_restored(carried, true))
		return Datum{0};
	if (shared() != nullptr)
		ereport(WARNING,
				(errmsg("restored snowflake ids lie above those that this server may make"),
				 errdetail("The ids of the dump were made before %s; the clock reads %s. This database makes no ids "
						   "until they lie above.",
						   time_text(carried.limit_us).text, time_text(server_clock.now_us()).text),
				 errhint("A superuser's restore moves the server's reserved time by up to a day.")));
	CacheInvalidateRelcache(relation);

	Datum		trusted = BoolGetDatum(carried.is_trusted);

	return PointerGetDatum(heap_modify_tuple_by_cols(tuple, RelationGetDescr(relation), 1, &trusted_column, &trusted,
													 &is_null));
}

}
