/*
 * jobs.cpp
 *		The workers of a merge: background workers in the caller's database, with
 *		the caller's rights.
 *
 * What they do is SQL (jobs.sql): a worker calls snowflake_migrate_internal.work()
 * again and again, each time in a transaction of its own, until there is nothing
 * left.  Here is what SQL can't do: to start them, to wait for them, and to end them
 * with the transaction that started them, however that ends.
 *
 * A worker connects as the caller's current role, and so has no other role to go
 * back to, as the caller may have.  A role that may not log in is no session's:
 * the worker then connects as who the caller logged in as, and sets the role, as
 * the caller did.
 */
#include <algorithm>
#include <atomic>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <new>

#include "postgres/pg.h"

extern "C"
{
MODULE_MAGIC("snowflake_migrate", SNOWFLAKE_VERSION);
}

namespace snowflake
{

namespace
{

constexpr int max_jobs = 64;

/* A notice about a merge's progress comes so often at most. */
constexpr long telling_interval_ms = 5000;

/* So many errors in a row that another try may not have, and a worker gives up. */
constexpr int max_tries = 5;

/* While nothing can be done, a worker looks again so often at least: another may have died. */
constexpr long longest_pause_ms = 1000;

enum class Stage : uint32
{
	working,
	done,						/* nothing is left to do */
	failed						/* the error is in failure */
};

/* An error, for the caller. */
struct Failure
{
	int			sqlstate;
	char		message[2048];
	char		detail[8192];
	char		hint[2048];
	char		context[8192];
	char		schema[NAMEDATALEN];
	char		table[NAMEDATALEN];
	char		column[NAMEDATALEN];
	char		datatype[NAMEDATALEN];
	char		constraint[NAMEDATALEN];
};

struct Worker
{
	std::atomic<Stage> stage;
	char		unit[1024];		/* what it is at */
	Failure		failure;
};

/* In memory that the caller shares with the workers. */
struct Crew
{
	Oid			database;
	Oid			role;
	Oid			login;			/* whom to connect as */
	int64		run;
	std::atomic<uint32> turns;	/* counts what ended, and may let others begin */
	ConditionVariable turned;
	int			count;			/* of workers */
	Worker		workers[FLEXIBLE_ARRAY_MEMBER];	/* and behind them the caller's settings, as text */
};

static_assert(std::atomic<Stage>::is_always_lock_free && std::atomic<uint32>::is_always_lock_free);

/* The caller's side. */
struct Launched
{
	dsm_segment *segment;
	Crew	   *crew;
	int			count;			/* of handles, in the transaction's memory */
	BackgroundWorkerHandle *handles[max_jobs];
	bool		is_ended[max_jobs];
};

constinit Launched launched = {};

/* The worker's side. */
constinit Crew *own_crew = nullptr;
constinit Worker *own_worker = nullptr;

/* The caller waits for workers, and they for each other. */
constinit WaitEvent waiting("SnowflakeMerge");

/* When the caller was told last how far the merge is; 0: nobody is to be told. */
constinit TimestampTz told_at = 0;

char *
settings_of(Crew *crew)
{
	return reinterpret_cast<char *>(crew->workers + crew->count);
}

/* Copies a text that may be cut, and that may be null. */
void
copy_text(char *to, size_t size, const char *from)
{
	const char *text = from == nullptr ? "" : from;
	const int	length = static_cast<int>(strlen(text));
	const int	kept = pg_mbcliplen(text, length, static_cast<int>(size) - 1);

	memcpy(to, text, static_cast<size_t>(kept));
	to[kept] = '\0';
}

template <size_t size>
void
copy_text(char (&to)[size], const char *from)
{
	copy_text(to, size, from);
}

void
tell_others(Crew *crew)
{
	crew->turns.fetch_add(1);
	ConditionVariableBroadcast(&crew->turned);
}

/* Ends all workers and waits until they have. */
void
end_workers()
{
	if (launched.crew == nullptr)
		return;
	for (int i = 0; i < launched.count; i++)
		TerminateBackgroundWorker(launched.handles[i]);
	for (int i = 0; i < launched.count; i++)
		(void) WaitForBackgroundWorkerShutdown(launched.handles[i]);
	dsm_detach(launched.segment);
	launched = {};
}

/* No worker outlives the transaction that started it. */
void
at_end_of_transaction(XactEvent event, void *)
{
	switch (event)
	{
		case XACT_EVENT_ABORT:
			told_at = 0;
			end_workers();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PREPARE:
			end_workers();
			break;
		default:
			break;
	}
}

/* Sees to it that what a call has begun ends with it. */
void
watch_transactions()
{
	static constinit bool is_registered = false;

	if (is_registered)
		return;
	RegisterXactCallback(at_end_of_transaction, nullptr);
	is_registered = true;
}

/* May this role log in? */
bool
may_log_in(Oid role)
{
	HeapTuple	tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(role));

	if (!HeapTupleIsValid(tuple))
		return false;

	const bool	may = reinterpret_cast<Form_pg_authid>(GETSTRUCT(tuple))->rolcanlogin;

	ReleaseSysCache(tuple);
	return may;
}

/* Memory that is shared with workers to come; false where there is none. */
bool
make_crew(int64 run, int count, const char *settings)
{
	const Size	length = strlen(settings) + 1;
	const Size	size = offsetof(Crew, workers) + static_cast<Size>(count) * sizeof(Worker) + length;
	dsm_segment *segment = dsm_create(size, DSM_CREATE_NULL_IF_MAXSEGMENTS);

	if (segment == nullptr)
		return false;

	Crew	   *crew = new (dsm_segment_address(segment)) Crew{};
	const Oid	role = GetUserId();

	crew->database = MyDatabaseId;
	crew->role = role;
	crew->login = may_log_in(role) ? role : GetAuthenticatedUserId();
	crew->run = run;
	ConditionVariableInit(&crew->turned);
	crew->count = count;
	for (int i = 0; i < count; i++)
		new (&crew->workers[i]) Worker{};
	memcpy(settings_of(crew), settings, length);

	/* From here on, nothing fails before the end of the transaction knows of it. */
	dsm_pin_mapping(segment);
	launched.segment = segment;
	launched.crew = crew;
	return true;
}

/* Asks for one more worker; false where there is none to be had. */
bool
start_worker(int n)
{
	BackgroundWorker worker = {};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_library_name, "snowflake_migrate", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "snowflake_migrate_worker", sizeof(worker.bgw_function_name));
	snprintf(worker.bgw_name, sizeof(worker.bgw_name), "worker %d of merge %lld", n + 1,
			 static_cast<long long>(launched.crew->run));
	strlcpy(worker.bgw_type, "snowflake_migrate worker", sizeof(worker.bgw_type));
	worker.bgw_main_arg = UInt32GetDatum(dsm_segment_handle(launched.segment));
	memcpy(worker.bgw_extra, &n, sizeof(n));
	worker.bgw_notify_pid = MyProcPid;

	MemoryContext old_context = MemoryContextSwitchTo(TopTransactionContext);
	const bool	is_started = RegisterDynamicBackgroundWorker(&worker, &launched.handles[n]);

	MemoryContextSwitchTo(old_context);
	return is_started;
}

/* Raises the error that a worker has ended with. */
[[noreturn]] void
raise(const Worker &worker)
{
	const Failure &failure = worker.failure;

	ereport(ERROR,
			(errcode(failure.sqlstate),
			 errmsg_internal("%s", failure.message),
			 failure.detail[0] != '\0' ? errdetail_internal("%s", failure.detail) : 0,
			 failure.hint[0] != '\0' ? errhint("%s", failure.hint) : 0,
			 failure.schema[0] != '\0' ? err_generic_string(PG_DIAG_SCHEMA_NAME, failure.schema) : 0,
			 failure.table[0] != '\0' ? err_generic_string(PG_DIAG_TABLE_NAME, failure.table) : 0,
			 failure.column[0] != '\0' ? err_generic_string(PG_DIAG_COLUMN_NAME, failure.column) : 0,
			 failure.datatype[0] != '\0' ? err_generic_string(PG_DIAG_DATATYPE_NAME, failure.datatype) : 0,
			 failure.constraint[0] != '\0' ? err_generic_string(PG_DIAG_CONSTRAINT_NAME, failure.constraint) : 0,
			 errcontext("%s%sworker of merge %lld%s%s", failure.context, failure.context[0] != '\0' ? "\n" : "",
						static_cast<long long>(launched.crew->run),
						worker.unit[0] != '\0' ? ", " : "", worker.unit)));
	pg_unreachable();
}

/* How many workers go on.  One that has failed is an error, one that ended before its work did, a warning. */
int
count_working()
{
	int			working = 0;

	for (int i = 0; i < launched.count; i++)
	{
		pid_t		pid;
		const BgwHandleStatus status = GetBackgroundWorkerPid(launched.handles[i], &pid);
		const Worker &worker = launched.crew->workers[i];
		const Stage stage = worker.stage.load();

		if (stage == Stage::failed)
			raise(worker);
		if (status == BGWH_STARTED || status == BGWH_NOT_YET_STARTED)
		{
			working++;
			continue;
		}
		if (launched.is_ended[i])
			continue;
		launched.is_ended[i] = true;
		/* What it was at waits for another one. */
		tell_others(launched.crew);
		if (stage != Stage::done)
			ereport(WARNING,
					(errmsg("a worker of merge %lld has ended before its work was done",
							static_cast<long long>(launched.crew->run)),
					 worker.unit[0] != '\0' ? errdetail("It was at %s.", worker.unit) : 0,
					 errhint("The merge goes on without it. The server's log says why it ended.")));
	}
	return working;
}

/* Keeps the error that a worker has met. */
void
keep_failure(const ErrorData *error)
{
	Failure    *failure = &own_worker->failure;

	failure->sqlstate = error->sqlerrcode;
	copy_text(failure->message, error->message);
	copy_text(failure->detail, error->detail);
	copy_text(failure->hint, error->hint);
	copy_text(failure->context, error->context);
	copy_text(failure->schema, error->schema_name);
	copy_text(failure->table, error->table_name);
	copy_text(failure->column, error->column_name);
	copy_text(failure->datatype, error->datatype_name);
	copy_text(failure->constraint, error->constraint_name);
}

/* After an error: returns where another try may not meet it again, and ends the worker where it would. */
void
recover_from_error(int *tries)
{
	MemoryContext memory = AllocSetContextCreate(TopMemoryContext, "error", ALLOCSET_DEFAULT_SIZES);

	error_context_stack = nullptr;
	HOLD_INTERRUPTS();
	MemoryContextSwitchTo(memory);

	const ErrorData *error = CopyErrorData();
	const int	sqlstate = error->sqlerrcode;

	if (sqlstate == ERRCODE_T_R_DEADLOCK_DETECTED && ++*tries < max_tries)
		EmitErrorReport();
	else if (sqlstate == ERRCODE_QUERY_CANCELED)
	{
		/* By hand: as if it had been ended. */
		EmitErrorReport();
		proc_exit(1);
	}
	else
	{
		keep_failure(error);
		own_worker->stage.store(Stage::failed);
		proc_exit(1);
	}
	FlushErrorState();
	AbortCurrentTransaction();
	LWLockReleaseAll();
	MemoryContextSwitchTo(TopMemoryContext);
	MemoryContextDelete(memory);
	RESUME_INTERRUPTS();
	tell_others(own_crew);
}

/* Runs a query with one argument that returns a number, in a transaction of its own. */
int
call(const char *query, Oid type, Datum value)
{
	Datum		values[1] = {value};
	Oid			types[1] = {type};
	bool		is_null = true;

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	SPI_connect();
	PushActiveSnapshot(GetTransactionSnapshot());
	debug_query_string = query;
	pgstat_report_activity(STATE_RUNNING, query);
	if (SPI_execute_with_args(query, 1, types, values, nullptr, false, 0) != SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "unexpected result of \"%s\"", query);

	const Datum result = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null);
	const int	number = is_null ? 0 : DatumGetInt32(result);

	SPI_finish();
	PopActiveSnapshot();
	CommitTransactionCommand();
	debug_query_string = nullptr;
	pgstat_report_stat(true);
	pgstat_report_activity(STATE_IDLE, nullptr);
	return number;
}

/* Takes the role and the settings of the caller. */
void
become_caller()
{
	SetConfigOption("default_transaction_isolation", "read committed", PGC_USERSET, PGC_S_SESSION);
	SetConfigOption("default_transaction_read_only", "off", PGC_USERSET, PGC_S_SESSION);
	/* Whom it connects as may have another role by a setting of its own. */
	if (GetUserId() != own_crew->role)
	{
		StartTransactionCommand();
		SetConfigOption("role",
						own_crew->login == own_crew->role ? "none" : GetUserNameFromId(own_crew->role, false),
						PGC_USERSET, PGC_S_SESSION);
		CommitTransactionCommand();
	}
	if (GetUserId() != own_crew->role)
		elog(ERROR, "worker has another role than its caller");
	(void) call("SELECT snowflake_migrate_internal.take_settings($1)", TEXTOID,
				CStringGetTextDatum(settings_of(own_crew)));
}

/* Before the shared memory goes, in which it may be noted as one who waits. */
void
stop_waiting(int, Datum)
{
	ConditionVariableCancelSleep();
}

/* Waits until something has ended since. */
void
wait_for_turn(uint32 seen)
{
	ConditionVariablePrepareToSleep(&own_crew->turned);
	while (own_crew->turns.load() == seen)
	{
		if (ConditionVariableTimedSleep(&own_crew->turned, longest_pause_ms, waiting.number()))
			break;
	}
	ConditionVariableCancelSleep();
}

/* What work() returns. */
enum Work
{
	nothing_left,
	something_done,
	nothing_ready
};

[[noreturn]] void
work(int *tries)
{
	for (;;)
	{
		const uint32 seen = own_crew->turns.load();

		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		switch (call("SELECT snowflake_migrate_internal.work($1)", INT8OID, Int64GetDatum(own_crew->run)))
		{
			case something_done:
				*tries = 0;
				tell_others(own_crew);
				break;
			case nothing_ready:
				own_worker->unit[0] = '\0';
				wait_for_turn(seen);
				break;
			default:
				own_worker->stage.store(Stage::done);
				tell_others(own_crew);
				proc_exit(0);
		}
	}
}

}  // namespace

}  // namespace snowflake

using namespace snowflake;

extern "C"
{

PG_FUNCTION_INFO_V1(snowflake_migrate_start_workers);
PG_FUNCTION_INFO_V1(snowflake_migrate_wait_for_workers);
PG_FUNCTION_INFO_V1(snowflake_migrate_workers);
PG_FUNCTION_INFO_V1(snowflake_migrate_set_unit);
PG_FUNCTION_INFO_V1(snowflake_migrate_set_telling);
PG_FUNCTION_INFO_V1(snowflake_migrate_is_time_to_tell);
PG_FUNCTION_INFO_V1(snowflake_migrate_undefined_settings);

PGDLLEXPORT void snowflake_migrate_worker(Datum argument);

/* start_workers(run bigint, jobs int, settings text): returns how many were started; they end with the transaction. */
Datum
snowflake_migrate_start_workers(PG_FUNCTION_ARGS)
{
	const int64 run = PG_GETARG_INT64(0);
	const int	jobs = PG_GETARG_INT32(1);
	const char *settings = text_to_cstring(PG_GETARG_TEXT_PP(2));

	/* A worker would have the rights of the function's owner for longer than the function. */
	if (InLocalUserIdChange() || InSecurityRestrictedOperation())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("cannot start workers of a merge within a security-restricted operation"),
				 errdetail("A function is called with the rights of its owner, or an index or a view is built.")));
	if (jobs < 1 || jobs > max_jobs)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("jobs must be between 1 and %d", max_jobs), errdetail("It is %d.", jobs)));
	if (launched.crew != nullptr)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE), errmsg("the workers of a merge have been started already")));
	watch_transactions();
	if (!make_crew(run, jobs, settings))
		PG_RETURN_INT32(0);
	while (launched.count < jobs && start_worker(launched.count))
		launched.count++;
	PG_RETURN_INT32(launched.count);
}

/*
 * wait_for_workers(milliseconds int): waits until a worker has ended, or so long, and returns how many go on.  Raises
 * the error that one has ended with.
 */
Datum
snowflake_migrate_wait_for_workers(PG_FUNCTION_ARGS)
{
	const int	timeout_ms = PG_GETARG_INT32(0);
	int			working;

	if (launched.crew == nullptr)
		PG_RETURN_INT32(0);
	working = count_working();
	if (working > 0)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, std::max(timeout_ms, 0),
						 waiting.number());
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		working = count_working();
	}
	PG_RETURN_INT32(working);
}

/* workers(): how many work beside each other, in a worker. */
Datum
snowflake_migrate_workers(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(own_crew != nullptr ? own_crew->count : 1);
}

/* set_unit(unit text): in a worker, what it is at, for who looks and for the context of an error. */
Datum
snowflake_migrate_set_unit(PG_FUNCTION_ARGS)
{
	const char *unit = text_to_cstring(PG_GETARG_TEXT_PP(0));

	if (own_worker != nullptr)
	{
		copy_text(own_worker->unit, unit);
		pgstat_report_activity(STATE_RUNNING, unit);
	}
	PG_RETURN_VOID();
}

/* set_telling(telling boolean): whether the caller is to be told from now on, until an error. */
Datum
snowflake_migrate_set_telling(PG_FUNCTION_ARGS)
{
	watch_transactions();
	told_at = PG_GETARG_BOOL(0) ? GetCurrentTimestamp() : 0;
	PG_RETURN_VOID();
}

/* is_time_to_tell(): whether it is time to tell the caller, again. */
Datum
snowflake_migrate_is_time_to_tell(PG_FUNCTION_ARGS)
{
	const TimestampTz now = GetCurrentTimestamp();

	/* A clock that was set back does not silence it for good. */
	if (told_at == 0 || (now >= told_at && !TimestampDifferenceExceeds(told_at, now, telling_interval_ms)))
		PG_RETURN_BOOL(false);
	told_at = now;
	PG_RETURN_BOOL(true);
}

/* undefined_settings(): the names of settings that no library has defined, which pg_settings leaves out. */
Datum
snowflake_migrate_undefined_settings(PG_FUNCTION_ARGS)
{
	int			count;
	config_generic **const settings = all_settings(&count);
	Datum	   *const names = static_cast<Datum *>(palloc(sizeof(Datum) * count));
	int			found = 0;

	for (int i = 0; i < count; i++)
		if (settings[i]->flags & GUC_CUSTOM_PLACEHOLDER)
			names[found++] = CStringGetTextDatum(settings[i]->name);
	PG_RETURN_ARRAYTYPE_P(construct_array(names, found, TEXTOID, -1, false, TYPALIGN_INT));
}

/* A worker's main function. */
void
snowflake_migrate_worker(Datum argument)
{
	static int	tries = 0;
	static bool is_caller = false;
	sigjmp_buf	on_error;
	int			n;

	pqsignal(SIGTERM, die);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();

	dsm_segment *segment = dsm_attach(DatumGetUInt32(argument));

	/* The caller has gone. */
	if (segment == nullptr)
		proc_exit(0);
	memcpy(&n, MyBgworkerEntry->bgw_extra, sizeof(n));
	own_crew = static_cast<Crew *>(dsm_segment_address(segment));
	own_worker = &own_crew->workers[n];
	before_shmem_exit(stop_waiting, Datum{0});
	BackgroundWorkerInitializeConnectionByOid(own_crew->database, own_crew->login, 0);

	PG_exception_stack = &on_error;
	if (sigsetjmp(on_error, 1) != 0)
		recover_from_error(&tries);
	if (!is_caller)
		become_caller();
	is_caller = true;
	work(&tries);
}

}
