/*
 * copy_from.cpp
 *		COPY FROM keeps its fast path, though snowflake_nextval() is volatile.
 *
 * COPY FROM inserts many rows at once unless a column's default is volatile: such
 * a function could look at the table.  PostgreSQL excepts its own nextval() alone
 * (contain_volatile_functions_not_nextval()).  So while COPY FROM plans its
 * defaults, the planner support function of snowflake_nextval() puts a twin in its
 * place, which makes ids in the same way and is declared STABLE.  COPY calls it
 * for each row all the same.
 *
 * Anywhere else such a twin would be wrong: ALTER TABLE ... ADD COLUMN evaluates a
 * default that is not volatile once, for all rows.  So the twin is put in nowhere
 * else, and refuses any call that the support function did not make.
 */
#include "postgres/copy_from.h"

#include "postgres/pg.h"

namespace snowflake
{

namespace
{

/* The twin.  Nobody but superusers can have put something else there: the script makes the schema. */
constexpr const char *twin_schema = "snowflake_internal";
constexpr const char *twin_name = "nextval_in_copy";

/* The form that the twin's call has.  The parser gives it to casts alone, which have an argument. */
constexpr CoercionForm twin_form = COERCE_IMPLICIT_CAST;

/* The COPY FROM that has begun last, and may be planning its defaults. */
struct CopyFrom
{
	bool		plans_defaults;
	/* An error ends them, and with them the COPY FROM. */
	LocalTransactionId transaction;
	SubTransactionId subtransaction;
	/* Triggers and functions push their own: what they plan is none of this COPY FROM. */
	ErrorContextCallback *context;
};

constinit CopyFrom copy_from = {};

bool
plans_defaults()
{
	return copy_from.plans_defaults && copy_from.transaction == own_transaction() &&
		copy_from.subtransaction == GetCurrentSubTransactionId() && copy_from.context == error_context_stack;
}

/* The twin's call in place of this one; null where it is to stay. */
Expr *
twin_of(FuncExpr *call)
{
	/* The twin is open to all: who may call is decided here. */
	if (!may_execute(call->funcid))
		return nullptr;

	Oid			schema = get_namespace_oid(twin_schema, true);
	oidvector  *no_arguments = buildoidvector(nullptr, 0);
	Oid			twin = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(twin_name),
									   PointerGetDatum(no_arguments), ObjectIdGetDatum(schema));

	if (!OidIsValid(twin))
		return nullptr;
	return reinterpret_cast<Expr *>(makeFuncExpr(twin, INT8OID, NIL, InvalidOid, InvalidOid, twin_form));
}

}  // namespace

void
copy_from_begins(bool plans_defaults)
{
	copy_from.plans_defaults = plans_defaults;
	if (!plans_defaults)
		return;
	copy_from.transaction = own_transaction();
	copy_from.subtransaction = GetCurrentSubTransactionId();
	copy_from.context = error_context_stack;
}

}  // namespace snowflake

using namespace snowflake;

extern "C"
{

/* snowflake_nextval()'s planner support function. */
PG_FUNCTION_INFO_V1(snowflake_nextval_support);
Datum
snowflake_nextval_support(PG_FUNCTION_ARGS)
{
	Node	   *node = reinterpret_cast<Node *>(PG_GETARG_POINTER(0));
	Expr	   *replacement = nullptr;

	if (IsA(node, SupportRequestSimplify))
	{
		SupportRequestSimplify *request = castNode(SupportRequestSimplify, node);

		/* Expressions outside of queries have no root. */
		if (request->root == nullptr && plans_defaults())
			replacement = twin_of(request->fcall);
	}
	PG_RETURN_POINTER(replacement);
}

Datum		snowflake_nextval(PG_FUNCTION_ARGS);

/* The twin: a new id, for a default of COPY FROM. */
PG_FUNCTION_INFO_V1(snowflake_nextval_in_copy);
Datum
snowflake_nextval_in_copy(PG_FUNCTION_ARGS)
{
	Node	   *call = fcinfo->flinfo->fn_expr;

	if (unlikely(call == nullptr || !IsA(call, FuncExpr) || castNode(FuncExpr, call)->funcformat != twin_form))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("snowflake_internal.nextval_in_copy() is called by COPY alone"),
				 errhint("Use snowflake_nextval().")));
	return snowflake_nextval(fcinfo);
}

}
