/*
 * text_form.h
 *		Ids as short text: fixed width, sorting as the ids do.
 *
 * Base62 (0-9A-Za-z) sorts so under byte order only; base32 (Crockford,
 * https://www.crockford.com/base32.html) in every order that ignores case.
 *
 * The typed form is a prefix, which says what kind of thing the id is of, an
 * underscore, and the base62 form.
 */
#ifndef SNOWFLAKE_CORE_TEXT_FORM_H
#define SNOWFLAKE_CORE_TEXT_FORM_H

#include <cstdint>
#include <string_view>

#include "core/reason.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/* Characters that hold 2^63 - 1: 62^10 < 2^63 <= 62^11, and 32^12 < 2^63 <= 32^13. */
constexpr int base62_length = 11;
constexpr int base32_length = 13;

/* Of a prefix; names of PostgreSQL are no longer. */
constexpr size_t longest_prefix = 63;

/* Writes exactly the characters of an id from 0 up, without a terminator. */
void		to_base62(int64_t id, char *text) noexcept;
void		to_base32(int64_t id, char *text) noexcept;

/* False with the reason where the text is not the form of an id from 0 to 2^63 - 1. */
bool		from_base62(std::string_view text, int64_t *id, Reason *reason) noexcept;

/* Forgives small letters, I and L for 1, O for 0, and hyphens anywhere. */
bool		from_base32(std::string_view text, int64_t *id, Reason *reason) noexcept;

/* Small letters, digits and underscores, of which the first is a letter and the last no underscore. */
bool		is_prefix(std::string_view text, Reason *reason) noexcept;

/* The id of a typed form with this prefix, which is one. */
bool		from_typed(std::string_view text, std::string_view prefix, int64_t *id, Reason *reason) noexcept;

}  // namespace snowflake

#endif
