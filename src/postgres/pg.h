/*
 * pg.h
 *		The one place where PostgreSQL's headers are included, and every
 *		difference between its versions.
 *
 * C++ and PostgreSQL: an exception that reaches a C frame ends the server, and
 * ereport(ERROR) is a longjmp() that runs no destructors.  So this library is
 * built without exceptions, allocates with palloc() alone, has only trivially
 * destructible objects alive where PostgreSQL can report an error, and uses no
 * PG_TRY.  Standard headers come before this one: PostgreSQL's macros break what
 * follows them.
 */
#ifndef SNOWFLAKE_POSTGRES_PG_H
#define SNOWFLAKE_POSTGRES_PG_H

extern "C"
{
#include "postgres.h"

#include "access/genam.h"
#include "access/generic_xlog.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class_d.h"
#include "catalog/pg_extension_d.h"
#include "catalog/pg_language_d.h"
#include "catalog/pg_namespace_d.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type_d.h"
#include "commands/dbcommands.h"
#include "commands/extension.h"
#include "commands/trigger.h"
#include "common/hashfn.h"
#include "common/hmac.h"
#include "common/int.h"
#include "common/pg_prng.h"
#include "common/sha2.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "libpq/pqsignal.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "pgstat.h"
#include "port/pg_bitutils.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "postmaster/postmaster.h"
#include "replication/logicalworker.h"
#include "replication/origin.h"
#include "replication/slot.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "rewrite/rewriteHandler.h"
#include "storage/bufmgr.h"
#include "storage/condition_variable.h"
#include "storage/dsm.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/pmsignal.h"
#include "storage/proc.h"
#include "storage/procsignal.h"
#include "storage/shmem.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#include "utils/inval.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "utils/typcache.h"
#include "utils/wait_event.h"
}

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 200000
#error "snowflake supports PostgreSQL 15 to 19"
#endif

/* From 18 on a library says what it is. */
#ifdef PG_MODULE_MAGIC_EXT
#define MODULE_MAGIC(library, library_version) PG_MODULE_MAGIC_EXT(.name = library, .version = library_version)
#else
#define MODULE_MAGIC(library, library_version) PG_MODULE_MAGIC
#endif

namespace snowflake __attribute__((visibility("hidden")))
{

/* Memory for a setting's parsed value, which PostgreSQL frees with the value; null when there is none. */
inline void *
setting_memory(size_t size)
{
#if PG_VERSION_NUM >= 160000
	return guc_malloc(LOG, size);
#else
	return malloc(size);
#endif
}

inline void
free_setting_memory(void *memory)
{
#if PG_VERSION_NUM >= 160000
	guc_free(memory);
#else
	free(memory);
#endif
}

/* This backend's number, from 0 to MaxBackends - 1. */
inline int
backend_number()
{
#if PG_VERSION_NUM >= 170000
	return MyProcNumber;
#else
	return MyBackendId - 1;
#endif
}

/* The number of this backend's transaction, which no two that follow each other share. */
inline LocalTransactionId
own_transaction()
{
#if PG_VERSION_NUM >= 170000
	return MyProc->vxid.lxid;
#else
	return MyProc->lxid;
#endif
}

/* All settings of this backend, those that no library has defined, too. */
inline config_generic **
all_settings(int *count)
{
#if PG_VERSION_NUM >= 160000
	return get_guc_variables(count);
#else
	*count = GetNumConfigOptions();
	return get_guc_variables();
#endif
}

/* Has the current role EXECUTE on this function? */
inline bool
may_execute(Oid function)
{
#if PG_VERSION_NUM >= 160000
	return object_aclcheck(ProcedureRelationId, function, GetUserId(), ACL_EXECUTE) == ACLCHECK_OK;
#else
	return pg_proc_aclcheck(function, GetUserId(), ACL_EXECUTE) == ACLCHECK_OK;
#endif
}

inline bool
domain_has_constraints(Oid type)
{
#if PG_VERSION_NUM >= 190000
	return DomainHasConstraints(type, nullptr);
#else
	return DomainHasConstraints(type);
#endif
}

inline void
ignore_signal(int signal)
{
#if PG_VERSION_NUM >= 190000
	/* Handlers are typed otherwise there. */
	pqsignal(signal, PG_SIG_IGN);
#else
	pqsignal(signal, SIG_IGN);
#endif
}

/* Whether the walker returns true for any of the expressions in this one. */
inline bool
walk_expression(Node *expression, bool (*walker)(Node *, void *))
{
#if PG_VERSION_NUM >= 160000
	return expression_tree_walker(expression, walker, nullptr);
#else
	/* Its type says nothing of its parameters there; only void (*)() is cast to any without a warning. */
	return expression_tree_walker(expression, reinterpret_cast<bool (*)()>(reinterpret_cast<void (*)()>(walker)),
								  nullptr);
#endif
}

/* What a process waits for, for pg_stat_activity; before 17 all extensions share the name "Extension". */
class WaitEvent
{
public:
	explicit constexpr WaitEvent(const char *name) noexcept : name_(name)
	{ }

	/* Its number, which the server gives it when it is first asked for. */
	uint32
	number()
	{
#if PG_VERSION_NUM >= 170000
		if (number_ == 0)
			number_ = WaitEventExtensionNew(name_);
		return number_;
#else
		return PG_WAIT_EXTENSION;
#endif
	}

private:
	[[maybe_unused]] const char *name_;
	[[maybe_unused]] uint32 number_ = 0;
};

/* How many replication origins the server can keep track of, and the setting that says so. */
#if PG_VERSION_NUM >= 180000
constexpr const char *max_origins_setting = "max_active_replication_origins";
inline int
max_origins()
{
	return max_active_replication_origins;
}
#else
constexpr const char *max_origins_setting = "max_replication_slots";
inline int
max_origins()
{
	return max_replication_slots;
}
#endif

/*
 * 15.13, 16.9 and 17.5 made flags of what was a bool; the server may be another
 * minor version than the headers.
 */
inline bool
synchronous_standbys_have_flags()
{
	static int	running = 0;

	if (running == 0)
		running = pg_strtoint32(GetConfigOption("server_version_num", false, false));

	const int	first_minor = running >= 180000 ? 0 : running >= 170000 ? 5 : running >= 160000 ? 9 : 13;

	return running % 10000 >= first_minor;
}

/*
 * Are there synchronous standbys, as the checkpointer read the configuration
 * last?  A backend in the middle of a call does not read it itself.  The caller
 * holds SyncRepLock.
 */
inline bool
synchronous_standbys_defined(bool has_flags)
{
	constexpr uint8 initialized = 1 << 0;
	constexpr uint8 defined = 1 << 1;
#ifdef SYNC_STANDBY_DEFINED
	const uint8 status = WalSndCtl->sync_standbys_status;
#else
	const uint8 status = WalSndCtl->sync_standbys_defined;
#endif

	if (!has_flags)
		return status != 0;
	if (status & initialized)
		return status & defined;
	return SyncRepStandbyNames != nullptr && SyncRepStandbyNames[0] != '\0';
}

}  // namespace snowflake

#endif
