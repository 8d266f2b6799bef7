/*
 * mask.h
 *		A keyed permutation of the ids, so that what is shown tells neither when an
 *		id was made nor how many were.
 *
 * It is a Feistel network of the shape that NIST SP 800-38G calls FF1, over 63 bits
 * (radix 2): the halves have 31 and 32 bits, and take turns, in 10 rounds.  The round
 * function is whatever the caller's key makes of a round's number and a half; here it
 * is HMAC-SHA-256 (src/postgres/mask.cpp), where FF1 has AES.  Positive ids stay
 * positive, and none needs to be tried again.
 */
#ifndef SNOWFLAKE_CORE_MASK_H
#define SNOWFLAKE_CORE_MASK_H

#include <cstdint>

namespace snowflake __attribute__((visibility("hidden")))
{

/*
 * As many as FF1 has, for which NIST takes them to be enough from a million values
 * on; there are 2^63 here, and with each bit more, what is known against few rounds
 * gets harder.
 */
constexpr int mask_rounds = 10;

/* What a half becomes in a round, under the key that state has.  False where it can't be computed. */
typedef bool (*RoundFunction) (void *state, int round, uint32_t half, uint32_t *result);

/* For ids from 0 to 2^63 - 1.  False where the round function says so. */
bool		mask(int64_t id, RoundFunction function, void *state, int64_t *masked) noexcept;
bool		unmask(int64_t masked, RoundFunction function, void *state, int64_t *id) noexcept;

}  // namespace snowflake

#endif
