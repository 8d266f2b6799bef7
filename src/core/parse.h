/*
 * parse.h
 *		Helpers for reading the user's text: slices, what stands before a separator, digits.
 */
#ifndef SNOWFLAKE_CORE_PARSE_H
#define SNOWFLAKE_CORE_PARSE_H

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace snowflake __attribute__((visibility("hidden")))
{

constexpr bool
is_digit(char c) noexcept
{
	return c >= '0' && c <= '9';
}

/* As text.substr(), but clamped where that throws: the core is built without exceptions. */
constexpr std::string_view
slice(std::string_view text, size_t start, size_t count = std::string_view::npos) noexcept
{
	start = std::min(start, text.size());
	return {text.data() + start, std::min(count, text.size() - start)};
}

/* The text before the first separator, which is taken off with it; the whole text where there is none. */
constexpr std::string_view
take_until(std::string_view *text, char separator) noexcept
{
	size_t		length = text->find(separator);
	std::string_view item = slice(*text, 0, length);

	*text = length == std::string_view::npos ? std::string_view{} : slice(*text, length + 1);
	return item;
}

/* Reads decimal digits alone, a number up to max.  False where the text is anything else; *number is then undefined. */
constexpr bool
parse_digits(std::string_view text, uint64_t max, uint64_t *number) noexcept
{
	uint64_t	result = 0;

	if (text.empty())
		return false;
	for (char c : text)
	{
		if (!is_digit(c) || __builtin_mul_overflow(result, 10, &result) ||
			__builtin_add_overflow(result, static_cast<uint64_t>(c - '0'), &result))
			return false;
	}
	*number = result;
	return result <= max;
}

}  // namespace snowflake

#endif
