/*
 * reason.cpp
 *		Why something was refused, as one sentence for a person.
 */
#include "core/reason.h"

#include <cstdarg>
#include <cstdio>

#include "core/parse.h"

namespace snowflake
{

bool
Reason::refuse(const char *format, ...) noexcept
{
	va_list		arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return false;
}

Quoted::Quoted(std::string_view input) noexcept
{
	size_t		length = 0;

	for (char c : slice(input, 0, sizeof(text) - 1))
		text[length++] = as_ascii(c);
	text[length] = '\0';
}

}  // namespace snowflake
