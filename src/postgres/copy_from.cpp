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
 * Anywhere else such a twin would be wrong.  ALTER TABLE ... ADD COLUMN evaluates a
 * default that is not volatile once, for all rows.  An SQL function that is given the
 * twin's id and names it twice is inlined, with two ids.  A domain's CHECK is planned
 * once, when a default is, and kept for the session.  So the twin is put in only
 * where all that COPY FROM plans are defaults that none of this can happen to, and it
 * refuses any call that the support function did not make.
 */
#include "postgres/copy_from.h"

#include "postgres/pg.h"

extern "C" Datum snowflake_nextval_support(PG_FUNCTION_ARGS);

namespace snowflake
{

namespace
{

/* The twin.  Nobody but superusers can have put something else there: the script makes the schema. */
constexpr const char *twin_schema = "snowflake_internal";
constexpr const char *twin_name = "nextval_in_copy";

/* The form that the twin's call has.  The parser gives it to casts alone, which have an argument. */
constexpr CoercionForm twin_form = COERCE_IMPLICIT_CAST;

bool
is_nextval(Oid function, void * = nullptr)
{
	Oid			support = get_func_support(function);
	FmgrInfo	info;

	if (!OidIsValid(support))
		return false;
	fmgr_info(support, &info);
	return info.fn_addr == snowflake_nextval_support;
}

/* Whether the planner can put a function's body in the place of a call: none but the built-in ones in C is certain. */
bool
may_be_inlined(Oid function, void *)
{
	if (is_nextval(function))
		return false;
	if (function >= FirstNormalObjectId)
		return true;

	HeapTuple	row = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		is_in_c =
		HeapTupleIsValid(row) && reinterpret_cast<Form_pg_proc>(GETSTRUCT(row))->prolang == INTERNALlanguageId;

	if (HeapTupleIsValid(row))
		ReleaseSysCache(row);
	return !is_in_c;
}

bool
calls_nextval(Node *expression, void *)
{
	return expression != nullptr &&
		(check_functions_in_node(expression, is_nextval, nullptr) || walk_expression(expression, calls_nextval));
}

bool
calls_what_may_be_inlined(Node *expression, void *)
{
	return expression != nullptr &&
		(check_functions_in_node(expression, may_be_inlined, nullptr) ||
		 walk_expression(expression, calls_what_may_be_inlined));
}

/* Whether the twin may stand for snowflake_nextval() in all defaults of a table. */
bool
has_simple_defaults(Relation table)
{
	TupleDesc	columns = RelationGetDescr(table);

	for (int i = 0; i < columns->natts; i++)
	{
		Form_pg_attribute column = TupleDescAttr(columns, i);

		if (column->attisdropped || column->attgenerated != '\0')
			continue;
		if (get_typtype(column->atttypid) == TYPTYPE_DOMAIN && domain_has_constraints(column->atttypid))
			return false;

		Node	   *expression = build_column_default(table, i + 1);

		if (calls_nextval(expression, nullptr) && calls_what_may_be_inlined(expression, nullptr))
			return false;
	}
	return true;
}

/* Whether this is a COPY FROM that may plan its defaults with the twin. */
bool
may_have_twin(Node *statement)
{
	if (statement == nullptr || !IsA(statement, CopyStmt))
		return false;

	CopyStmt   *copy = castNode(CopyStmt, statement);

	/* A WHERE is planned as defaults are.  What COPY FROM refuses anyway, it is to refuse itself. */
	if (!copy->is_from || copy->relation == nullptr || copy->whereClause != nullptr || XactReadOnly ||
		RecoveryInProgress())
		return false;

	/* COPY FROM takes the same lock next: what is looked at stays as it is. */
	Oid			relid = RangeVarGetRelid(copy->relation, RowExclusiveLock, true);

	if (!OidIsValid(relid))
		return false;

	Relation	table = relation_open(relid, NoLock);
	bool		may = has_simple_defaults(table);

	relation_close(table, NoLock);
	return may;
}

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
utility_statement_begins(Node *statement)
{
	/* Before anything else: an error leaves it so. */
	copy_from.plans_defaults = false;
	if (!may_have_twin(statement))
		return;
	copy_from.plans_defaults = true;
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
