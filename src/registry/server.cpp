/*
 * server.cpp
 *		The C functions behind registry.sql, which run in the registry's own server.
 *
 * The rules by which a write is admitted are in core/claim.cpp, where servers
 * have theirs.  Limits come from this server's settings as the library knows them,
 * which the role that calls can't set.
 *
 * The registry's memory is a piece of POSIX shared memory beside the database: it
 * outlives every process and the server, but not the machine, and no copy or backup
 * of the database has it.  It holds the highest number of a write that was committed.
 * A database whose rows have that number, or a higher one, has lost nothing since it
 * was used last; one whose rows have not was put back.  Each write notes its number in
 * its row, and in the memory when it is committed; so the memory is never ahead of what
 * was durable, unless a writer chose synchronous_commit = off: then a crash of the
 * server makes the registry settle, for no other reason.
 *
 * The memory may be missing, since the machine has started anew: then the registry
 * settles as one that was put back.  While it is out of reach the registry grants
 * nothing anew.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/atomic.h"
#include "core/claim.h"
#include "postgres/clock.h"
#include "postgres/row.h"
#include "postgres/shown.h"
#include "postgres/settings.h"
#include "postgres/time.h"

#include "postgres/pg.h"

namespace snowflake
{

namespace
{

/* What is in the memory; all 0 when it is made. */
struct Memory
{
	std::atomic<int64_t> incarnation;	/* which row of registry_server it belongs to; 0: none yet */
	std::atomic<int64_t> committed; /* the highest number of a write that was committed */
	std::atomic<int64_t> drawn;	/* the highest number that was given to a write */
	std::atomic<int64_t> asked; /* when the registry was last asked, on CLOCK_BOOTTIME, microseconds */
	std::atomic<int64_t> kept_until;	/* it is unsettled up to then, whatever its row says; likewise */
};

static_assert(std::atomic<int64_t>::is_always_lock_free);

Memory	   *memory;
int			memory_file = -1;

/* A write of this transaction, and the subtransaction that it belongs to.  They are in the transaction's memory. */
struct Write
{
	int64_t		number;
	SubTransactionId in;
	Write	   *former;
};

Write	   *newest_write;

/* Has this transaction asked the registry? */
bool		has_asked;

/*
 * Its name says which server's data directory it belongs to, and the name of which
 * database: a copy of the server beside the original has one of its own, and a database
 * that takes another's name finds what that one has left there.
 */
bool
print_memory_name(char *name, size_t size)
{
	/* A database that a session is connected to is not renamed. */
	static uint64 database = 0;
	struct stat directory;

	if (database == 0)
	{
		const char *database_name = IsTransactionState() ? get_database_name(MyDatabaseId) : nullptr;

		if (database_name == nullptr)
			return false;
		database = hash_bytes_extended(reinterpret_cast<const unsigned char *>(database_name),
									   static_cast<int>(strlen(database_name)), 0);
	}
	if (stat(DataDir, &directory) != 0)
		return false;
	snprintf(name, size, "/snowflake." UINT64_FORMAT ".%llx.%llx.%llx",
			 GetSystemIdentifier(), static_cast<unsigned long long>(database),
			 static_cast<unsigned long long>(directory.st_dev), static_cast<unsigned long long>(directory.st_ino));
	return true;
}

void
unmap_memory()
{
	if (memory != nullptr)
		(void) munmap(static_cast<void *>(memory), sizeof(Memory));
	if (memory_file >= 0)
		(void) close(memory_file);
	memory = nullptr;
	memory_file = -1;
}

/* Room for the memory in its file.  In a tmpfs a signal interrupts that, and it is no failure. */
bool
allocate(int file)
{
	int			error;

	do
		error = posix_fallocate(file, 0, sizeof(Memory));
	while (error == EINTR);
	return error == 0;
}

/* The memory, made where there is none; null where it is out of reach. */
Memory *
find_memory()
{
	char		name[128];
	struct stat status;

	/* Somebody may have removed its name: others then have another one. */
	if (memory != nullptr && (fstat(memory_file, &status) != 0 || status.st_nlink == 0))
		unmap_memory();
	if (memory != nullptr)
		return memory;
	if (!print_memory_name(name, sizeof(name)))
		return nullptr;
	memory_file = shm_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (memory_file < 0)
		return nullptr;
	/*
	 * Each time: what ftruncate() or a failed attempt has only promised would be missing
	 * when it is touched, and end the server.
	 */
	if (fstat(memory_file, &status) != 0 || status.st_uid != geteuid() || !allocate(memory_file))
	{
		unmap_memory();
		return nullptr;
	}

	void	   *mapped = mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE, MAP_SHARED, memory_file, 0);

	if (mapped == MAP_FAILED)
	{
		unmap_memory();
		return nullptr;
	}
	memory = static_cast<Memory *>(mapped);
	return memory;
}

void
finish_write(XactEvent event, void *)
{
	/* Its locks would outlive every session, and its number would be noted by nobody. */
	if (event == XACT_EVENT_PRE_PREPARE && has_asked)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot PREPARE a transaction that has used a snowflake registry")));
	if (event == XACT_EVENT_COMMIT && newest_write != nullptr)
	{
		Memory	   *found = find_memory();

		if (found != nullptr)
			raise_to(found->committed, newest_write->number);
	}
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
	{
		newest_write = nullptr;
		has_asked = false;
	}
}

void
forget_write(SubXactEvent event, SubTransactionId ended, SubTransactionId, void *)
{
	while (event == SUBXACT_EVENT_ABORT_SUB && newest_write != nullptr && newest_write->in >= ended)
		newest_write = newest_write->former;
}

/* From now on it is known what becomes of this transaction, and that it has asked. */
void
watch_transaction()
{
	static bool is_registered = false;

	if (!is_registered)
	{
		RegisterXactCallback(finish_write, nullptr);
		RegisterSubXactCallback(forget_write, nullptr);
		is_registered = true;
	}
	has_asked = true;
}

Form
form_of(const text *name)
{
	const char *given = shown(name);

	for (int i = 0; i < form_count; i++)
	{
		if (strcmp(form_names[i], given) == 0)
			return static_cast<Form>(i);
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid form of a write to a snowflake registry: \"%s\"", given),
			 errhint("It is \"claim\", \"release\", or \"assertion\".")));
}

void
copy_nonce(char (&nonce)[nonce_digits + 1], const text *given)
{
	text_to_cstring_buffer(given, nonce, sizeof(nonce));
	if (VARSIZE_ANY_EXHDR(given) != nonce_digits || strspn(nonce, "0123456789abcdef") != nonce_digits)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid nonce of a holder"),
				 errdetail("A nonce has %d hexadecimal digits.", nonce_digits)));
}

/* The error of a write that is not admitted. */
[[noreturn]] void
report_refused(Admission admission, const Claim &known, int64_t expected_generation, int64_t generation,
			   int64_t wanted_until_us, const Bounds &bounds)
{
	const long long node = static_cast<long long>(known.node);
	const TimeText wanted = time_text(wanted_until_us);
	const long long last_generation = std::min(expected_generation, INT64_MAX - longest_generation_step) +
		longest_generation_step;

	switch (admission)
	{
		case Admission::bad_generation:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("generation of a claim cannot be followed by the one that is given"),
					 errdetail("Generation %lld of node number %lld can be followed by those up to %lld, not by %lld.",
							   static_cast<long long>(expected_generation), node,
							   last_generation, static_cast<long long>(generation))));
		case Admission::back:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("granted_until of a claim cannot go back"),
					 errdetail("That of node number %lld is %s, and was %s when its holder was granted it; "
							   "%s was asked for.", node, time_text(known.granted_until_us).text,
							   time_text(known.granted_from_us).text, wanted.text)));
		case Admission::too_far:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("granted_until of a claim cannot lie so far ahead of the registry's clock"),
					 errdetail("For node number %lld %s was asked for; the clock and \"snowflake.max_forward_jump\" "
							   "allow %s.", node, wanted.text, time_text(bounds.furthest_us).text)));
		case Admission::living:
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("claim of a living holder cannot be changed by others"),
					 errdetail("Node number %lld is held by another. While the registry is unsettled, granted_until "
							   "can be raised, but not as far as %s.", node, wanted.text)));
		case Admission::other_role:
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("claim of a living holder was made by another role"),
					 errdetail("Node number %lld can be written by the role that claimed it, by the registry's owner "
							   "and by superusers, until its holder has not renewed it in time.", node)));
		case Admission::admitted:
		case Admission::changed:
			break;
	}
	elog(ERROR, "unexpected admission %d", static_cast<int>(admission));
}

}  // namespace

}  // namespace snowflake

using namespace snowflake;

extern "C"
{

/* snowflake_registry_max_forward_jump() bigint: how far past this server's clock a fence may lie, microseconds. */
PG_FUNCTION_INFO_V1(snowflake_registry_max_forward_jump);
Datum
snowflake_registry_max_forward_jump(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(int64{max_forward_jump_setting()} * us_per_s);
}

/*
 * The trigger BEFORE INSERT OR UPDATE OR DELETE, and BEFORE TRUNCATE, of the registry's
 * tables, for what is replicated: nothing that a subscription brings is written.
 */
PG_FUNCTION_INFO_V1(snowflake_registry_keep_own);
Datum
snowflake_registry_keep_own(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = reinterpret_cast<TriggerData *>(fcinfo->context);

	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_BEFORE(trigger->tg_event))
		elog(ERROR, "not called as a trigger before the event");
	if (TRIGGER_FIRED_BY_TRUNCATE(trigger->tg_event))
	{
		/* No trigger can pass over it. */
		if (IsLogicalWorker())
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("cannot truncate the tables of a snowflake registry by a subscription"),
					 errdetail("They have the claims of this database's registry."),
					 errhint("Pass over the transaction by ALTER SUBSCRIPTION ... SKIP, and publish without "
							 "\"truncate\", or without the schema snowflake_internal.")));
		return Datum{0};
	}
	if (!TRIGGER_FIRED_FOR_ROW(trigger->tg_event))
		elog(ERROR, "not called as a trigger for each row");
	if (IsLogicalWorker())
		return Datum{0};
	return PointerGetDatum(TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple : trigger->tg_trigtuple);
}

/*
 * snowflake_registry_memory(OUT incarnation bigint, OUT committed bigint, OUT asked bigint, OUT boot_clock bigint,
 *		OUT shortest_settling bigint, OUT kept_until bigint):
 * what is in the memory, nulls where it is out of reach; CLOCK_BOOTTIME; how long a
 * registry is unsettled at least.  Times in microseconds.  All that use the registry
 * begin with this.
 */
PG_FUNCTION_INFO_V1(snowflake_registry_memory);
Datum
snowflake_registry_memory(PG_FUNCTION_ARGS)
{
	static bool is_lack_told = false;
	Memory	   *found = find_memory();
	const bool	is_lacking = found == nullptr;
	Row			row;

	watch_transaction();
	/* Once for each connection. */
	if (is_lacking && !is_lack_told)
		ereport(LOG,
				(errmsg("snowflake registry has no shared memory"),
				 errdetail("It renews claims, and grants nothing anew, as it could not tell whether its content was "
						   "put back."),
				 errhint("Let the user that the server runs as write to /dev/shm, and see that it is not full, and "
						 "that no other user owns a file \"snowflake.*\" there.")));
	is_lack_told = is_lacking;
	row.add_int(is_lacking ? int64{0} : found->incarnation.load(), is_lacking);
	row.add_int(is_lacking ? int64{0} : found->committed.load(), is_lacking);
	row.add_int(is_lacking ? int64{0} : found->asked.load(), is_lacking);
	row.add_int(boot_clock_ns() / ns_per_us);
	row.add_int(shortest_settling_us);
	row.add_int(is_lacking ? int64{0} : found->kept_until.load(), is_lacking);
	PG_RETURN_DATUM(row.result(fcinfo));
}

/*
 * snowflake_registry_keep_unsettled(is_kept boolean): keeps the registry unsettled for as
 * long as it is at least, from now on, whatever becomes of the transaction; false: no more.
 */
PG_FUNCTION_INFO_V1(snowflake_registry_keep_unsettled);
Datum
snowflake_registry_keep_unsettled(PG_FUNCTION_ARGS)
{
	Memory	   *found = find_memory();

	if (found == nullptr)
		PG_RETURN_VOID();
	if (PG_GETARG_BOOL(0))
		raise_to(found->kept_until, boot_clock_ns() / ns_per_us + shortest_settling_us);
	else
		found->kept_until.store(0);
	PG_RETURN_VOID();
}

/*
 * snowflake_registry_note(newest bigint): the registry is asked now, and a write with
 * this number was seen, so it is committed: its own process may have ended before it
 * could note that.
 */
PG_FUNCTION_INFO_V1(snowflake_registry_note);
Datum
snowflake_registry_note(PG_FUNCTION_ARGS)
{
	Memory	   *found = find_memory();

	if (found == nullptr)
		PG_RETURN_VOID();
	found->asked.store(boot_clock_ns() / ns_per_us);
	/* What was seen may be this transaction's own, which may yet be taken back.  A parallel worker knows that, too. */
	if (!TransactionIdIsValid(GetTopTransactionIdIfAny()))
		raise_to(found->committed, PG_GETARG_INT64(0));
	PG_RETURN_VOID();
}

/*
 * snowflake_registry_begin(newest bigint) bigint: begins anew with a database whose
 * newest write has this number, and returns the incarnation, never 0, that its row of
 * registry_server is to have.
 */
PG_FUNCTION_INFO_V1(snowflake_registry_begin);
Datum
snowflake_registry_begin(PG_FUNCTION_ARGS)
{
	const int64	newest = PG_GETARG_INT64(0);
	Memory	   *found = find_memory();
	int64		incarnation;

	if (!pg_strong_random(&incarnation, sizeof(incarnation)))
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random number")));
	incarnation = (incarnation & PG_INT64_MAX) | 1;
	if (found != nullptr)
	{
		found->incarnation.store(incarnation);
		found->committed.store(newest);
		found->asked.store(boot_clock_ns() / ns_per_us);
		raise_to(found->drawn, newest);
	}
	PG_RETURN_INT64(incarnation);
}

/*
 * snowflake_registry_draw(newest bigint) bigint: a number for a write, greater than
 * that of the newest one and than all that were drawn before.
 */
PG_FUNCTION_INFO_V1(snowflake_registry_draw);
Datum
snowflake_registry_draw(PG_FUNCTION_ARGS)
{
	const int64	newest = PG_GETARG_INT64(0);
	Memory	   *found = find_memory();

	if (found == nullptr)
		PG_RETURN_INT64(newest + 1);
	raise_to(found->drawn, newest);
	PG_RETURN_INT64(found->drawn.fetch_add(1) + 1);
}

/*
 * snowflake_registry_wrote(number bigint): this transaction has written with this
 * number, which counts when it is committed.
 */
PG_FUNCTION_INFO_V1(snowflake_registry_wrote);
Datum
snowflake_registry_wrote(PG_FUNCTION_ARGS)
{
	Write	   *write = static_cast<Write *>(MemoryContextAlloc(TopTransactionContext, sizeof(Write)));

	*write = {PG_GETARG_INT64(0), GetCurrentSubTransactionId(), newest_write};
	newest_write = write;
	PG_RETURN_VOID();
}

/*
 * snowflake_registry_admit(form text, node bigint, known_generation bigint, known_holder text, known_alive boolean,
 *		known_from bigint, known_until bigint, me text, expected_generation bigint, generation bigint,
 *		granted_until bigint, furthest_of_others bigint, is_others_role boolean) bigint
 *
 * The fence that a write is to store, by the rules of admit() in core/claim.h; null
 * where the claim is not what the writer has read.  An error where it is refused.
 * What is known is null where there is no claim; the writer's arguments are not.
 */
PG_FUNCTION_INFO_V1(snowflake_registry_admit);
Datum
snowflake_registry_admit(PG_FUNCTION_ARGS)
{
	const Form	form = form_of(PG_GETARG_TEXT_PP(0));
	const int64	expected = PG_GETARG_INT64(8);
	const int64	generation = PG_GETARG_INT64(9);
	const int64	wanted_until_us = PG_GETARG_INT64(10);
	const int64	clock_us = wall_clock_ns() / ns_per_us;
	const Bounds bounds = {clock_us + int64{max_forward_jump_setting()} * us_per_s,
						   PG_ARGISNULL(11) ? 0 : PG_GETARG_INT64(11),
						   !PG_ARGISNULL(12) && PG_GETARG_BOOL(12)};
	char		me[nonce_digits + 1];
	Claim		known = {};
	int64_t		granted_until_us = 0;

	copy_nonce(me, PG_GETARG_TEXT_PP(7));
	known.node = static_cast<uint64_t>(PG_GETARG_INT64(1));
	known.generation = PG_ARGISNULL(2) ? 0 : PG_GETARG_INT64(2);
	if (!PG_ARGISNULL(3))
		text_to_cstring_buffer(PG_GETARG_TEXT_PP(3), known.holder.nonce, sizeof(known.holder.nonce));
	known.is_alive = !PG_ARGISNULL(4) && PG_GETARG_BOOL(4);
	known.granted_from_us = PG_ARGISNULL(5) ? 0 : PG_GETARG_INT64(5);
	known.granted_until_us = PG_ARGISNULL(6) ? 0 : PG_GETARG_INT64(6);

	const Admission admission = admit(form, known, me, expected, generation, wanted_until_us, bounds,
									  &granted_until_us);

	if (admission == Admission::admitted)
		PG_RETURN_INT64(granted_until_us);
	if (admission != Admission::changed)
		report_refused(admission, known, expected, generation, wanted_until_us, bounds);
	PG_RETURN_NULL();
}

}
