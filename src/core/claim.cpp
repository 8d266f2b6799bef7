/*
 * claim.cpp
 *		Claims in a registry: what may become of them.
 */
#include "core/claim.h"

#include <algorithm>

namespace snowflake
{

namespace
{

/* A holder of this claim with one more step in its life. */
Claim
successor(const Claim &claim, int64_t generation, const Holder &holder, int64_t granted_until_us)
{
	Claim		next = claim;

	next.generation = std::max(claim.generation, generation) + 1;
	next.holder = holder;
	next.granted_until_us = granted_until_us;
	return next;
}

/* A longer window than this could never be granted. */
int64_t
shortened(int64_t window_us, const RegistryTime &registry)
{
	return std::min(window_us, registry.max_forward_jump_us / 2);
}

bool
is_too_far(int64_t granted_until_us, const RegistryTime &registry)
{
	return granted_until_us > registry.clock_us + registry.max_forward_jump_us;
}

/* Does the registry still speak of what this server holds? */
bool
is_own(const Claim &claim, const Holder &me, const Grant &held)
{
	if (claim.generation == 0)
		return true;			/* a registry that has forgotten it: nobody else was granted it since */
	if (claim.generation < held.generation)
		/* Restored.  What it knows of another holder ended before this server's grant began. */
		return (claim.holder.is(me) && claim.granted_until_us <= held.granted_until_us) ||
			(!claim.is_alive && claim.granted_until_us <= held.start_us);

	/* A fence that is further than it was granted is another's who was granted that by a registry that has forgotten it. */
	return claim.holder.is(me) && claim.generation == held.generation && claim.granted_until_us <= held.granted_until_us;
}

}  // namespace

Verdict
decide_grant(const Claim &claim, const RegistryTime &registry, const Holder &me,
			 int64_t wanted_from_us, int64_t window_us, Claim *next, Grant *grant) noexcept
{
	if (claim.generation > 0 && claim.is_alive && !claim.holder.is_nobody() && !claim.holder.is(me))
		return Verdict::held;
	if (registry.unsettled_us > 0)
		return Verdict::unsettled;

	int64_t		start_us = claim.granted_until_us;

	*next = successor(claim, 0, me, std::max(start_us, wanted_from_us) + shortened(window_us, registry));
	if (is_too_far(next->granted_until_us, registry))
		return Verdict::too_far;
	next->since_us = registry.clock_us;
	*grant = {claim.node, next->generation, start_us, next->granted_until_us, 0, 0};
	return Verdict::write;
}

/*
 * One with this server's nonce but another (a copy of a running machine) goes
 * one generation ahead as well; only what was asked for and not answered is adopted.
 */
void
adopt(const Claim &claim, const Holder &me, Grant *held) noexcept
{
	if (claim.holder.is(me) && claim.generation == held->generation + 1 &&
		claim.granted_until_us >= held->granted_until_us && claim.granted_until_us <= held->asked_until_us)
		*held = {held->node, claim.generation, held->start_us, claim.granted_until_us, 0, claim.granted_until_us};
}

Verdict
decide_renewal(const Claim &claim, const RegistryTime &registry, const Holder &me, int64_t position_us,
			   int64_t window_us, bool is_overdue, const Grant &held, Claim *next, Grant *grant) noexcept
{
	if (!is_own(claim, me, held))
		return Verdict::held;

	bool		is_kept_only = is_overdue && registry.unsettled_us > 0;
	int64_t		wanted_us = is_kept_only ? 0 : std::max(position_us, held.start_us) + shortened(window_us, registry);

	if (wanted_us > held.granted_until_us && is_too_far(wanted_us, registry))
		return Verdict::too_far;
	*next = successor(claim, held.generation, me, std::max(held.granted_until_us, wanted_us));
	if (!claim.holder.is(me))
		next->since_us = registry.clock_us;
	*grant = {held.node, next->generation, held.start_us, next->granted_until_us, 0, held.told_until_us};
	if (registry.unsettled_us > 0 || claim.generation != held.generation)
		grant->told_until_us = next->granted_until_us;
	return Verdict::write;
}

bool
decide_release(const Claim &claim, const Holder &me, int64_t issued_until_us, const Grant &held, Claim *next) noexcept
{
	if (!is_own(claim, me, held))
		return false;
	*next = successor(claim, held.generation, Holder{}, std::max({held.start_us, held.told_until_us, issued_until_us}));
	return true;
}

bool
decide_assertion(const Claim &claim, const Grant &lost, Claim *next) noexcept
{
	if (claim.granted_until_us >= lost.granted_until_us)
		return false;
	*next = claim;
	/* Whoever read the claim before must fail to write it; and its holder, one ahead, could take this for an answer that it misses. */
	next->generation = claim.generation + 2;
	next->granted_until_us = lost.granted_until_us;
	return true;
}

Verdict
decide_reservation(const Claim &claim, const RegistryTime &registry, const Holder &who, int64_t until_us, Claim *next) noexcept
{
	Holder		place = who;

	place.nonce[0] = '\0';
	if (claim.generation > 0)
		return Verdict::held;
	/* It may have forgotten who had the number. */
	if (registry.unsettled_us != 0)
		return Verdict::unsettled;
	if (is_too_far(until_us, registry))
		return Verdict::too_far;
	*next = successor(claim, 0, place, until_us);
	next->since_us = registry.clock_us;
	return Verdict::write;
}

/* A claim that has lost its holder is two generations old at least. */
bool
is_reservation(const Claim &claim) noexcept
{
	return claim.generation == 1 && claim.holder.is_nobody();
}

bool
choose_node(const ListedClaim *claims, int64_t count, uint64_t max_node, int64_t until_us, uint64_t *node) noexcept
{
	const ListedClaim *longest = nullptr;
	uint64_t	unused = 0;

	for (int64_t i = 0; i < count; i++)
	{
		const ListedClaim &claim = claims[i];

		if (claim.node == unused)
			unused++;
		if (claim.node <= max_node && claim.is_free && claim.granted_until_us <= until_us &&
			(longest == nullptr || claim.freed_us < longest->freed_us))
			longest = &claim;
	}
	if (unused <= max_node)
	{
		*node = unused;
		return true;
	}
	if (longest != nullptr)
		*node = longest->node;
	return longest != nullptr;
}

}  // namespace snowflake
