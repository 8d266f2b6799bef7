/*
 * text_form.cpp
 *		Ids as short text: snowflake_to_base62(), snowflake_to_base32() and back.
 */
#include "core/text_form.h"

#include "postgres/pg.h"

namespace snowflake
{

namespace
{

Datum
write_form(FunctionCallInfo fcinfo, void (*write) (int64_t, char *), int length)
{
	int64		id = PG_GETARG_INT64(0);
	text	   *result = static_cast<text *>(palloc(VARHDRSZ + length));

	if (id < 0)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("id %lld is negative", static_cast<long long>(id)),
				 errdetail("Snowflake ids lie between 0 and 9223372036854775807."),
				 errhint("Check that it is a snowflake id.")));
	SET_VARSIZE(result, VARHDRSZ + length);
	write(id, VARDATA(result));
	PG_RETURN_TEXT_P(result);
}

Datum
read_form(FunctionCallInfo fcinfo, bool (*read) (std::string_view, int64_t *, Reason *), const char *name,
		  const char *hint)
{
	text	   *form = PG_GETARG_TEXT_PP(0);
	int64		id;
	Reason		reason;

	if (!read({VARDATA_ANY(form), VARSIZE_ANY_EXHDR(form)}, &id, &reason))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid %s form of a snowflake id: \"%s\"", name, text_to_cstring(form)),
				 errdetail("%s", reason.text),
				 errhint("%s", hint)));
	PG_RETURN_INT64(id);
}

}  // namespace

}  // namespace snowflake

using namespace snowflake;

extern "C"
{

/* snowflake_to_base62(id bigint) text: 11 characters, 0-9A-Za-z. */
PG_FUNCTION_INFO_V1(snowflake_to_base62);
Datum
snowflake_to_base62(PG_FUNCTION_ARGS)
{
	return write_form(fcinfo, to_base62, base62_length);
}

PG_FUNCTION_INFO_V1(snowflake_from_base62);
Datum
snowflake_from_base62(PG_FUNCTION_ARGS)
{
	return read_form(fcinfo, from_base62, "base62",
					 "Give the text as snowflake_to_base62() writes it, leading zeros, capital and small letters as "
					 "they are.");
}

/* snowflake_to_base32(id bigint) text: 13 characters of Crockford's alphabet. */
PG_FUNCTION_INFO_V1(snowflake_to_base32);
Datum
snowflake_to_base32(PG_FUNCTION_ARGS)
{
	return write_form(fcinfo, to_base32, base32_length);
}

PG_FUNCTION_INFO_V1(snowflake_from_base32);
Datum
snowflake_from_base32(PG_FUNCTION_ARGS)
{
	return read_form(fcinfo, from_base32, "base32",
					 "Give the text as snowflake_to_base32() writes it, leading zeros too; "
					 "small letters, I and L for 1, O for 0, and hyphens are understood.");
}

}
