/*
 * text_form.cpp
 *		Ids as short text: fixed width, sorting as the ids do.
 */
#include "core/text_form.h"

#include "core/parse.h"

namespace snowflake
{

namespace
{

constexpr std::string_view base62_digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* Crockford's alphabet: no I, L, O and U. */
constexpr std::string_view base32_digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

void
write_digits(int64_t id, std::string_view digits, char *text, int length) noexcept
{
	uint64_t	rest = static_cast<uint64_t>(id);

	for (int i = length - 1; i >= 0; i--)
	{
		text[i] = digits[rest % digits.size()];
		rest /= digits.size();
	}
}

/* Appends one digit; false where the number would exceed 2^63 - 1. */
bool
append_digit(int64_t *id, size_t base, size_t digit) noexcept
{
	return !__builtin_mul_overflow(*id, static_cast<int64_t>(base), id) &&
		!__builtin_add_overflow(*id, static_cast<int64_t>(digit), id);
}

bool
refuse_too_large(Reason *reason) noexcept
{
	return reason->refuse("It stands for a number above 9223372036854775807.");
}

/* The character that a person may have meant by this one. */
constexpr char
forgive(char c) noexcept
{
	if (c >= 'a' && c <= 'z')
		c = static_cast<char>(c - 'a' + 'A');
	return c == 'I' || c == 'L' ? '1' : c == 'O' ? '0' : c;
}

}  // namespace

void
to_base62(int64_t id, char *text) noexcept
{
	write_digits(id, base62_digits, text, base62_length);
}

void
to_base32(int64_t id, char *text) noexcept
{
	write_digits(id, base32_digits, text, base32_length);
}

bool
from_base62(std::string_view text, int64_t *id, Reason *reason) noexcept
{
	bool		fits = true;

	*id = 0;
	for (char c : text)
	{
		size_t		digit = base62_digits.find(c);

		if (digit == std::string_view::npos)
			return reason->refuse("The character \"%s\" is none of 0-9, A-Z and a-z.", Quoted({&c, 1}).text);
		fits = fits && append_digit(id, base62_digits.size(), digit);
	}
	if (text.size() != base62_length)
		return reason->refuse("It has %zu characters; the base62 form of an id has %d.", text.size(), base62_length);
	return fits || refuse_too_large(reason);
}

bool
from_base32(std::string_view text, int64_t *id, Reason *reason) noexcept
{
	size_t		length = 0;
	bool		fits = true;

	*id = 0;
	for (char c : text)
	{
		if (c == '-')
			continue;

		size_t		digit = base32_digits.find(forgive(c));

		if (digit == std::string_view::npos)
			return reason->refuse("The character \"%s\" is not in Crockford's base32 alphabet.", Quoted({&c, 1}).text);
		length++;
		fits = fits && append_digit(id, base32_digits.size(), digit);
	}
	if (length != base32_length)
		return reason->refuse("It has %zu characters without hyphens; the base32 form of an id has %d.", length,
							  base32_length);
	return fits || refuse_too_large(reason);
}

bool
is_prefix(std::string_view text, Reason *reason) noexcept
{
	if (text.empty() || text.size() > longest_prefix)
		return reason->refuse("It has %zu characters; a prefix has 1 to %zu.", text.size(), longest_prefix);
	for (char c : text)
		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_')
			return reason->refuse("The character \"%s\" is none of a-z, 0-9 and the underscore.", Quoted({&c, 1}).text);
	if (!(text.front() >= 'a' && text.front() <= 'z'))
		return reason->refuse("It does not begin with a letter.");
	if (text.back() == '_')
		return reason->refuse("It ends with an underscore.");
	return true;
}

bool
from_typed(std::string_view text, std::string_view prefix, int64_t *id, Reason *reason) noexcept
{
	const size_t end = text.rfind('_');

	if (end == std::string_view::npos)
		return reason->refuse("It has no prefix; \"%s\" is expected.", Quoted(prefix).text);
	if (slice(text, 0, end) != prefix)
		return reason->refuse("Its prefix is \"%s\", and \"%s\" is expected.",
							  Quoted(slice(text, 0, end)).text, Quoted(prefix).text);
	return from_base62(slice(text, end + 1), id, reason);
}

}  // namespace snowflake
