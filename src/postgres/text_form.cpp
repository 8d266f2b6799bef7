/*
 * text_form.cpp
 *		Ids as short text: snowflake_to_base62(), snowflake_to_base32(),
 *		snowflake_to_typed() and back.
 */
#include <cstring>

#include "core/text_form.h"

#include "postgres/id_argument.h"

#include "postgres/pg.h"
#include "postgres/shown.h"

namespace snowflake
{

namespace
{

Datum
write_form(FunctionCallInfo fcinfo, void (*write) (int64_t, char *), int length)
{
	int64		id = PG_GETARG_INT64(0);
	text	   *result = static_cast<text *>(palloc(VARHDRSZ + length));

	refuse_negative(id);
	SET_VARSIZE(result, VARHDRSZ + length);
	write(id, VARDATA(result));
	PG_RETURN_TEXT_P(result);
}

std::string_view
view_of(const text *value)
{
	return {VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value)};
}

/* The second argument. */
std::string_view
prefix_argument(FunctionCallInfo fcinfo)
{
	const text *prefix = PG_GETARG_TEXT_PP(1);
	Reason		reason;

	if (!is_prefix(view_of(prefix), &reason))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid prefix of ids: \"%s\"", shown(prefix)),
				 errdetail("%s", reason.text)));
	return view_of(prefix);
}

void
refuse_form(const text *form, const char *name, const Reason &reason, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("invalid %s form of a snowflake id: \"%s\"", name, shown(form)),
			 errdetail("%s", reason.text),
			 errhint("%s", hint)));
}

Datum
read_form(FunctionCallInfo fcinfo, bool (*read) (std::string_view, int64_t *, Reason *), const char *name,
		  const char *hint)
{
	const text *form = PG_GETARG_TEXT_PP(0);
	int64		id;
	Reason		reason;

	if (!read(view_of(form), &id, &reason))
		refuse_form(form, name, reason, hint);
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

/* snowflake_to_typed(id bigint, prefix text) text: the prefix, an underscore, and the base62 form. */
PG_FUNCTION_INFO_V1(snowflake_to_typed);
Datum
snowflake_to_typed(PG_FUNCTION_ARGS)
{
	const int64	id = PG_GETARG_INT64(0);
	const std::string_view prefix = prefix_argument(fcinfo);
	const size_t length = VARHDRSZ + prefix.size() + 1 + base62_length;

	refuse_negative(id);

	text	   *result = static_cast<text *>(palloc(length));
	char	   *form = VARDATA(result);

	SET_VARSIZE(result, length);
	memcpy(form, prefix.data(), prefix.size());
	form[prefix.size()] = '_';
	to_base62(id, form + prefix.size() + 1);
	PG_RETURN_TEXT_P(result);
}

/* snowflake_from_typed(form text, prefix text) bigint */
PG_FUNCTION_INFO_V1(snowflake_from_typed);
Datum
snowflake_from_typed(PG_FUNCTION_ARGS)
{
	const text *form = PG_GETARG_TEXT_PP(0);
	const std::string_view prefix = prefix_argument(fcinfo);
	int64		id;
	Reason		reason;

	if (!from_typed(view_of(form), prefix, &id, &reason))
		refuse_form(form, "typed", reason, "Give the text as snowflake_to_typed() writes it, with the same prefix.");
	PG_RETURN_INT64(id);
}

}
