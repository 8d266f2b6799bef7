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

/* What follows both, and a registry takes: one that was restored may be far behind, and goes on from where it is. */
int64_t
following(const Claim &claim, int64_t generation, int64_t step)
{
	return std::min(std::max(claim.generation, generation) + step, claim.generation + longest_generation_step);
}

/* A holder of this claim with one more step in its life. */
Claim
successor(const Claim &claim, int64_t generation, const Holder &holder, int64_t granted_until_us)
{
	Claim		next = claim;

	next.generation = following(claim, generation, 1);
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

/* The time up to which ids are or may be made, by the registry's clock where none is asked for. */
int64_t
position_us(const Need &need, const RegistryTime &registry)
{
	return std::max({need.issued_until_us, need.demanded_until_us, std::min(need.clock_us, registry.clock_us)});
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

	/* A fence beyond what was granted is another's: a registry that has forgotten this holder granted it that. */
	return claim.holder.is(me) && claim.generation == held.generation &&
		claim.granted_until_us <= held.granted_until_us;
}

}  // namespace

Verdict
decide_grant(const Claim &claim, const RegistryTime &registry, const Holder &me,
			 const Need &need, int64_t window_us, Claim *next, Grant *grant) noexcept
{
	if (registry.is_other_layout)
		return Verdict::other_layout;
	if (claim.generation > 0 && claim.is_alive && !claim.holder.is_nobody() && !claim.holder.is(me))
		return Verdict::held_by_another;
	if (registry.unsettled_us > 0)
		return Verdict::unsettled;

	int64_t		start_us = claim.granted_until_us;

	*next = successor(claim, 0, me, std::max(start_us, position_us(need, registry)) + shortened(window_us, registry));
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
decide_renewal(const Claim &claim, const RegistryTime &registry, const Holder &me, const Need &need,
			   int64_t window_us, bool is_overdue, const Grant &held, Claim *next, Grant *grant) noexcept
{
	if (registry.is_other_layout)
		return Verdict::other_layout;
	if (!is_own(claim, me, held))
		return Verdict::held_by_another;

	bool		is_kept_only = is_overdue && registry.unsettled_us > 0;
	int64_t		wanted_us = is_kept_only ? 0 :
		std::max(position_us(need, registry), held.start_us) + shortened(window_us, registry);

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

Grant
used_up(const Grant &held, int64_t issued_until_us) noexcept
{
	Grant		used = held;

	used.granted_until_us =
		std::min(held.granted_until_us, std::max({held.start_us, held.told_until_us, issued_until_us}));
	return used;
}

bool
decide_release(const Claim &claim, const Holder &me, int64_t issued_until_us, const Grant &held, Claim *next) noexcept
{
	if (!is_own(claim, me, held))
		return false;
	*next = successor(claim, held.generation, Holder{}, used_up(held, issued_until_us).granted_until_us);
	return true;
}

bool
decide_assertion(const Claim &claim, const Grant &lost, Claim *next) noexcept
{
	if (claim.granted_until_us >= lost.granted_until_us)
		return false;
	*next = claim;
	/*
	 * Whoever read the claim before must fail to write it.  Nor may its holder take this for an answer that it misses:
	 * in a restored registry that holder may be ahead of the row, but not of what was lost.
	 */
	next->generation = following(claim, lost.generation, 2);
	next->granted_until_us = lost.granted_until_us;
	return true;
}

Verdict
decide_set_aside(const Claim &claim, const RegistryTime &registry, const Holder &who, int64_t until_us,
				 Claim *next) noexcept
{
	Holder		place = who;

	place.nonce[0] = '\0';
	if (registry.is_other_layout)
		return Verdict::other_layout;
	if (claim.generation > 0)
		return Verdict::held_by_another;
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
is_set_aside(const Claim &claim) noexcept
{
	return claim.generation == 1 && claim.holder.is_nobody();
}

Admission
admit(Form form, const Claim &known, const char *nonce, int64_t expected_generation, int64_t generation,
	  int64_t wanted_until_us, const Bounds &bounds, int64_t *granted_until_us) noexcept
{
	const bool	has_nonce = known.generation > 0 && !known.holder.is_nobody() && strcmp(known.holder.nonce, nonce) == 0;
	const bool	is_mine = has_nonce && !bounds.is_others_role;
	const bool	is_others = known.is_alive && !known.holder.is_nobody() && !is_mine;

	if (known.generation != expected_generation)
		return Admission::changed;
	if (expected_generation < 0 || generation <= expected_generation ||
		generation - expected_generation > longest_generation_step)
		return Admission::bad_generation;
	if (has_nonce && is_others)
		return Admission::other_role;

	*granted_until_us = wanted_until_us;
	switch (form)
	{
		case Form::claim:
			if (is_others)
				return Admission::changed;
			if (wanted_until_us < known.granted_until_us)
				return Admission::back;
			break;
		case Form::release:
			if (is_others)
				return Admission::living;
			/* Its own holder alone gives back what it has not used, and no more than it was granted. */
			*granted_until_us =
				std::max(wanted_until_us, is_mine ? known.granted_from_us : known.granted_until_us);
			break;
		case Form::assertion:
			if (wanted_until_us <= known.granted_until_us)
				return Admission::back;
			if (is_others && wanted_until_us > std::max(bounds.furthest_of_others_us, known.granted_until_us))
				return Admission::living;
			break;
	}
	if (*granted_until_us > std::max(bounds.furthest_us, known.granted_until_us))
		return Admission::too_far;
	return Admission::admitted;
}

bool
choose_node(const ListedClaim *claims, int64_t count, uint64_t max_node, int64_t clock_us, int64_t until_us,
			uint64_t *node) noexcept
{
	const ListedClaim *best = nullptr;
	uint64_t	unused = 0;

	/* A fence ahead of the clock is waited for; it counts before the time for which the number was free. */
	auto		ahead_us = [clock_us] (const ListedClaim &claim) {
		return std::max<int64_t>(claim.granted_until_us - clock_us, 0);
	};

	for (int64_t i = 0; i < count; i++)
	{
		const ListedClaim &claim = claims[i];

		if (claim.node == unused)
			unused++;
		if (claim.node <= max_node && claim.is_free && claim.granted_until_us <= until_us &&
			(best == nullptr || ahead_us(claim) < ahead_us(*best) ||
			 (ahead_us(claim) == ahead_us(*best) && claim.freed_us < best->freed_us)))
			best = &claim;
	}
	if (unused <= max_node)
	{
		*node = unused;
		return true;
	}
	if (best != nullptr)
		*node = best->node;
	return best != nullptr;
}

}  // namespace snowflake
