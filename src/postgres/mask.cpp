/*
 * mask.cpp
 *		Ids that tell nothing: snowflake_mask() and back.
 *
 * The round function of the network (core/mask.h) is the beginning of HMAC-SHA-256
 * over what the rounds are for, the round's number, and the half.
 */
#include "core/mask.h"

#include "postgres/id_argument.h"

#include "postgres/pg.h"

namespace snowflake
{

namespace
{

/* 128 bits are out of anybody's reach; HMAC itself would hash keys above a block of SHA-256, and gain nothing. */
constexpr size_t least_key = 16;
constexpr size_t greatest_key = 64;

/* What the key is used for; another version of the rounds has another text. */
constexpr char purpose[] = "snowflake mask 1";

struct Key
{
	pg_hmac_ctx *context;
	const uint8 *bytes;
	size_t		length;
};

/* RoundFunction: numbers are big-endian. */
bool
hmac_round(void *state, int round, uint32_t half, uint32_t *result)
{
	const Key  *key = static_cast<const Key *>(state);
	const uint8 input[] = {static_cast<uint8>(round), static_cast<uint8>(half >> 24), static_cast<uint8>(half >> 16),
						   static_cast<uint8>(half >> 8), static_cast<uint8>(half)};
	uint8		digest[PG_SHA256_DIGEST_LENGTH];

	if (pg_hmac_init(key->context, key->bytes, key->length) < 0 ||
		pg_hmac_update(key->context, reinterpret_cast<const uint8 *>(purpose), sizeof(purpose) - 1) < 0 ||
		pg_hmac_update(key->context, input, sizeof(input)) < 0 ||
		pg_hmac_final(key->context, digest, sizeof(digest)) < 0)
		return false;
	*result = static_cast<uint32_t>(digest[0]) << 24 | static_cast<uint32_t>(digest[1]) << 16 |
		static_cast<uint32_t>(digest[2]) << 8 | digest[3];
	return true;
}

/* The errors must not show the key. */
Datum
permute(FunctionCallInfo fcinfo, bool (*permutation) (int64_t, RoundFunction, void *, int64_t *))
{
	const int64	id = PG_GETARG_INT64(0);
	const bytea *bytes = PG_GETARG_BYTEA_PP(1);
	Key			key = {nullptr, reinterpret_cast<const uint8 *>(VARDATA_ANY(bytes)), VARSIZE_ANY_EXHDR(bytes)};
	int64		result = 0;

	refuse_negative(id);
	if (key.length < least_key || key.length > greatest_key)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid length of a key for masking ids"),
				 errdetail("It has %zu bytes; %zu to %zu are allowed.", key.length, least_key, greatest_key),
				 errhint("Take 32 bytes that are drawn at random, and keep them.")));
	key.context = pg_hmac_create(PG_SHA256);
	if (key.context == nullptr)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));

	const bool	is_done = permutation(id, hmac_round, &key, &result);
	const char *problem = is_done ? nullptr : pg_hmac_error(key.context);

	pg_hmac_free(key.context);
	if (!is_done)
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not compute an HMAC: %s", problem)));
	PG_RETURN_INT64(result);
}

}  // namespace

}  // namespace snowflake

using namespace snowflake;

extern "C"
{

/* snowflake_mask(id bigint, key bytea) bigint */
PG_FUNCTION_INFO_V1(snowflake_mask);
Datum
snowflake_mask(PG_FUNCTION_ARGS)
{
	return permute(fcinfo, mask);
}

/* snowflake_unmask(masked bigint, key bytea) bigint */
PG_FUNCTION_INFO_V1(snowflake_unmask);
Datum
snowflake_unmask(PG_FUNCTION_ARGS)
{
	return permute(fcinfo, unmask);
}

}
