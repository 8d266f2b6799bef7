/*
 * reason.h
 *		Why something was refused or went wrong, as one sentence for a person.
 *
 * The core neither throws nor allocates: a function that can refuse its input
 * takes a Reason and fills it before it returns false.
 */
#ifndef SNOWFLAKE_CORE_REASON_H
#define SNOWFLAKE_CORE_REASON_H

#include <cstddef>
#include <string_view>

namespace snowflake __attribute__((visibility("hidden")))
{

struct Reason
{
	char		text[256] = "";

	/*
	 * Fills text, printf-style, cutting what does not fit.  Returns false, so that
	 * "return reason.refuse(...)" reads well.
	 */
	bool		refuse(const char *format, ...) noexcept __attribute__((format(printf, 2, 3)));
};

/*
 * What went wrong outside, between this server and a registry: for the log and for
 * errors, as PostgreSQL writes a primary message, without a capital and a period.
 */
struct Problem
{
	char		text[512];
};

/* The character, or "?" where it is not printable ASCII: fit for every encoding. */
constexpr char
as_ascii(char c) noexcept
{
	return c >= ' ' && c <= '~' ? c : '?';
}

/*
 * A piece of the user's input, made fit to be repeated in a Reason: at most
 * 40 bytes, everything but printable ASCII shown as "?", so that no multibyte
 * character is ever cut in two.
 */
struct Quoted
{
	char		text[41];

	explicit Quoted(std::string_view input) noexcept;
};

}  // namespace snowflake

#endif
