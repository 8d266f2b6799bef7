/*
 * claim_text.h
 *		A claim as text, for a registry that keeps values and no columns (ZooKeeper).
 *
 *		snowflake-claim 1
 *		generation 5
 *		granted_until_us 1735689600000000
 *		since_us 1735689500000000
 *		nonce 0123456789abcdef0123456789abcdef
 *		port 5432
 *		host orders-3
 *		data_directory /var/lib/postgresql/15/main
 *
 * A nonce that is empty means that nobody holds the claim.  Lines that follow these
 * belong to later versions of this text, which mean the same by these.
 */
#ifndef SNOWFLAKE_CORE_CLAIM_TEXT_H
#define SNOWFLAKE_CORE_CLAIM_TEXT_H

#include <string_view>

#include "core/claim.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/* The text of any claim is shorter: the names' lines, numbers, and what Holder has room for. */
constexpr size_t max_claim_text = sizeof(Holder) + 256;

struct ClaimText
{
	char		text[max_claim_text];
	size_t		length;

	std::string_view view() const noexcept
	{
		return {text, length};
	}
};

/* A name for people on a line of its own: what would end the line is shown as "?". */
struct OneLine
{
	char		text[sizeof(Holder::data_directory)];

	explicit	OneLine(const char *name) noexcept;
};

/* Is this what draws for a Holder look like: digits, as many as they have to be? */
bool		is_nonce(std::string_view text) noexcept;

ClaimText	print_claim(const Claim &claim) noexcept;

/*
 * Reads what print_claim() has printed: all of Claim but node, is_alive and version,
 * which the text does not have.  False where it is anything else; *claim is then as it was.
 */
bool		parse_claim(std::string_view text, Claim *claim) noexcept;

}  // namespace snowflake

#endif
