/*
 * claim_text.cpp
 *		A claim as text.
 */
#include "core/claim_text.h"

#include <algorithm>
#include <cstdio>

#include "core/parse.h"

namespace snowflake
{

namespace
{

constexpr std::string_view format_name = "snowflake-claim ";
constexpr uint64_t format_version = 1;
constexpr uint64_t max_port = 65535;

/* Takes a line off that gives the value of a name. */
bool
take_line(std::string_view *text, std::string_view name, std::string_view *value)
{
	if (text->find('\n') == std::string_view::npos)
		return false;
	*value = take_until(text, '\n');
	if (slice(*value, 0, name.size()) != name)
		return false;
	*value = slice(*value, name.size());
	return true;
}

bool
take_number(std::string_view *text, std::string_view name, uint64_t max, uint64_t *number)
{
	std::string_view value;

	return take_line(text, name, &value) && parse_digits(value, max, number);
}

bool
take_text(std::string_view *text, std::string_view name, char *value, size_t size)
{
	std::string_view found;

	if (!take_line(text, name, &found) || found.size() >= size || found.find('\0') != std::string_view::npos)
		return false;
	std::copy(found.begin(), found.end(), value);
	value[found.size()] = '\0';
	return true;
}

}  // namespace

OneLine::OneLine(const char *name) noexcept
{
	snprintf(text, sizeof(text), "%s", name);
	std::replace(text, text + strlen(text), '\n', '?');
}

bool
is_nonce(std::string_view text) noexcept
{
	return text.size() == nonce_digits &&
		std::all_of(text.begin(), text.end(), [] (char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

ClaimText
print_claim(const Claim &claim) noexcept
{
	ClaimText	text;

	text.length = static_cast<size_t>(snprintf(text.text, sizeof(text.text),
											   "%.*s%llu\n"
											   "generation %lld\n"
											   "granted_until_us %lld\n"
											   "since_us %lld\n"
											   "nonce %s\n"
											   "port %d\n"
											   "host %s\n"
											   "data_directory %s\n",
											   static_cast<int>(format_name.size()), format_name.data(),
											   static_cast<unsigned long long>(format_version),
											   static_cast<long long>(claim.generation),
											   static_cast<long long>(claim.granted_until_us),
											   static_cast<long long>(claim.since_us),
											   claim.holder.nonce, claim.holder.port,
											   OneLine(claim.holder.host).text,
											   OneLine(claim.holder.data_directory).text));
	return text;
}

bool
parse_claim(std::string_view text, Claim *claim) noexcept
{
	uint64_t	version;
	uint64_t	generation;
	uint64_t	granted_until_us;
	uint64_t	since_us;
	uint64_t	port;
	Holder		holder = {};

	if (!take_number(&text, format_name, UINT64_MAX, &version) || version != format_version ||
		!take_number(&text, "generation ", INT64_MAX, &generation) || generation == 0 ||
		!take_number(&text, "granted_until_us ", INT64_MAX, &granted_until_us) ||
		!take_number(&text, "since_us ", INT64_MAX, &since_us) ||
		!take_text(&text, "nonce ", holder.nonce, sizeof(holder.nonce)) ||
		!take_number(&text, "port ", max_port, &port) ||
		!take_text(&text, "host ", holder.host, sizeof(holder.host)) ||
		!take_text(&text, "data_directory ", holder.data_directory, sizeof(holder.data_directory)))
		return false;
	if (!holder.is_nobody() && !is_nonce(holder.nonce))
		return false;
	holder.port = static_cast<int32_t>(port);
	claim->generation = static_cast<int64_t>(generation);
	claim->granted_until_us = static_cast<int64_t>(granted_until_us);
	claim->since_us = static_cast<int64_t>(since_us);
	claim->holder = holder;
	return true;
}

}  // namespace snowflake
