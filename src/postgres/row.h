/*
 * row.h
 *		A row of an SQL function's result.
 */
#ifndef SNOWFLAKE_POSTGRES_ROW_H
#define SNOWFLAKE_POSTGRES_ROW_H

#include <cstdint>

#include "postgres/pg.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/* Filled from its first column to its last. */
class Row
{
public:
	void		add(Datum value, bool is_null = false)
	{
		if (filled_ == most_columns)
			elog(ERROR, "row has more than %d columns", most_columns);
		values_[filled_] = value;
		nulls_[filled_++] = is_null;
	}

	void		add_null()
	{
		add(Datum{0}, true);
	}

	/* Null is NULL. */
	void		add_text(const char *text)
	{
		if (text != nullptr)
			add(CStringGetTextDatum(text));
		else
			add_null();
	}

	void		add_int(int64_t number, bool is_null = false)
	{
		add(Int64GetDatum(number), is_null);
	}

	void		add_int(uint64_t number, bool is_null = false)
	{
		add(Int64GetDatum(static_cast<int64>(number)), is_null);
	}

	/* What the function returns. */
	Datum		result(FunctionCallInfo fcinfo)
	{
		TupleDesc	type;

		if (get_call_result_type(fcinfo, nullptr, &type) != TYPEFUNC_COMPOSITE)
			elog(ERROR, "return type must be a row type");
		check_columns(type->natts);
		return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(type), values_, nulls_));
	}

	/* One row of the set that it returns, after InitMaterializedSRF(). */
	void		put(ReturnSetInfo *set)
	{
		check_columns(set->setDesc->natts);
		tuplestore_putvalues(set->setResult, set->setDesc, values_, nulls_);
	}

private:
	static constexpr int most_columns = 32;

	/* The SQL that declares the function may be another version's. */
	void		check_columns(int declared)
	{
		if (declared != filled_)
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("SQL and library of extension \"snowflake\" are of different versions"),
					 errdetail("A function is declared with %d columns; the library, %s, returns %d.", declared,
							   SNOWFLAKE_VERSION, filled_),
					 errhint("Restart the server if it still runs with the library of before an installation; then run "
							 "ALTER EXTENSION snowflake UPDATE in each database.")));
	}


	Datum		values_[most_columns];
	bool		nulls_[most_columns];
	int			filled_ = 0;
};

}  // namespace snowflake

#endif
