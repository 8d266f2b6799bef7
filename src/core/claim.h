/*
 * claim.h
 *		Claims in a registry: who may issue ids under a node number, up to when.
 *
 * A registry keeps one claim for each node number of a group.  A server reads a
 * claim, decides here what is to become of it, and writes that where the claim has
 * not changed since.  So the rules are the same in every registry.  A registry in
 * PostgreSQL looks at each write once more, by admit(): it need not trust who writes.
 *
 * Safety rests on granted_until alone, the fence: an id time, exclusive, that
 * never goes back but at a release by the holder itself.  A new grant begins at
 * the fence, so that what different holders may issue never overlaps, whatever
 * their clocks and the registry's say.  Whether a holder is alive only decides
 * how soon its number is given to another.
 *
 * generation grows with each grant, renewal and release by 1, and by 2 or more where
 * others change the claim: by an assertion of how far a former holder's ids went, or
 * by a repair of the registry's owner (snowflake_registry_repair()).  So no holder
 * takes such a change for an answer that it missed.  A registry that was restored from
 * a backup shows a generation that is lower than its holder's.
 *
 * All times are Unix microseconds.
 */
#ifndef SNOWFLAKE_CORE_CLAIM_H
#define SNOWFLAKE_CORE_CLAIM_H

#include <cstdint>
#include <cstring>
#include <iterator>

#include "core/layout.h"
#include "core/units.h"

namespace snowflake __attribute__((visibility("hidden")))
{


/* A claim window is this long at most. */
constexpr int64_t longest_window_us = 600 * us_per_s;

/*
 * How long a registry may hear nothing of a holder that can reach it.  Where all is
 * well a claim is renewed at a third of its window, or after this pause if that is
 * shorter; where an attempt fails, the next one comes after a pause of its own.
 */
constexpr int64_t longest_renewal_pause_us = 10 * us_per_s;
constexpr int64_t longest_retry_pause_us = 5 * us_per_s;
constexpr int64_t longest_operation_us = 5 * us_per_s;

/*
 * A registry that may have forgotten something grants nothing anew for so long at
 * least: whoever holds a claim is heard before.
 */
constexpr int64_t shortest_settling_us = 30 * us_per_s;

/* After a pause one attempt may find a connection that is dead, and the next one connects, and reads and writes. */
static_assert(shortest_settling_us > longest_renewal_pause_us + 3 * longest_operation_us &&
			  shortest_settling_us > longest_retry_pause_us + 3 * longest_operation_us);

/* A holder's nonce, drawn at each start of a server, as hexadecimal digits. */
constexpr int nonce_digits = 32;

/* Who holds a claim.  Only the nonce counts; the rest is for people: in containers it repeats. */
struct Holder
{
	char		nonce[nonce_digits + 1];	/* empty: nobody */
	int32_t		port;
	char		host[256];
	char		data_directory[1024];

	bool		is_nobody() const noexcept
	{
		return nonce[0] == '\0';
	}
	bool		is(const Holder &other) const noexcept
	{
		return strcmp(nonce, other.nonce) == 0;
	}
};

/* A claim as the registry has it. */
struct Claim
{
	uint64_t	node;
	int64_t		generation;		/* 0: the registry knows nothing of this number */
	int64_t		granted_until_us;
	bool		is_alive;		/* its holder renewed it in time, by the registry's clock */
	int64_t		since_us;		/* when the holder was granted it, by the registry's clock */
	Holder		holder;

	/* The store's own mark of what was read, for writing it only where it, and the registry, have not changed. */
	int64_t		version;

	/*
	 * The fence before the grant, or what others have told since: its holder's release
	 * gives back no more than that.  A registry's own; servers know Grant::start_us.
	 */
	int64_t		granted_from_us = 0;
};

/* What the registry says of itself, at the moment at which a claim was read. */
struct RegistryTime
{
	int64_t		clock_us;
	int64_t		max_forward_jump_us;	/* a fence further past its clock is refused */
	int64_t		unsettled_us;	/* for so long it grants nothing anew: it may have forgotten something */

	/* The group's layout, by its canonical text; empty where nobody has claimed anything in the group. */
	char		layout[sizeof(LayoutText)];
	bool		is_other_layout;	/* the group has one, and it is not the asking server's */
};

/* Up to where a server needs time, all of it Unix microseconds. */
struct Need
{
	int64_t		clock_us;		/* this server's */
	int64_t		issued_until_us;	/* the end of the newest id's tick; 0: none */
	int64_t		demanded_until_us;	/* the end of the furthest tick that a call has asked for; 0: none */
};

/* What this server was granted. */
struct Grant
{
	uint64_t	node;
	int64_t		generation;
	int64_t		start_us;		/* ids from here on ... */
	int64_t		granted_until_us;	/* ... up to here, exclusive */

	/* The furthest fence that was asked for without an answer: it may have been granted.  0: none. */
	int64_t		asked_until_us;

	/*
	 * No release sets the fence back below this.  In a registry that was restored
	 * another holder may have seen that the fence covers what it was granted itself.
	 */
	int64_t		told_until_us;
};

/* What was lost, and how far ids went under it: a registry that was restored may know less, and is to be told. */
struct LostGrant
{
	Grant		grant;
	bool		is_refusal_told;	/* the log knows that the registry refuses to be told */
};

/* Of several numbers, each once, the one that was lost first in front. */
struct LostGrants
{
	static constexpr int room = 4;

	int			count;
	LostGrant	each[room];
};

enum class Verdict
{
	write,						/* the next claim may be written */
	held_by_another,
	unsettled,
	too_far,					/* the fence would lie too far past the registry's clock */
	other_layout,				/* the group's ids are made in another layout */
};

/* What a write does to a claim. */
enum class Form
{
	claim,						/* the writer is granted it, or renews it */
	release,					/* it has no holder any more */
	assertion,					/* its holder stays, its fence is raised; the last */
};

/* Their names, in that order: so a registry in PostgreSQL is told of them. */
constexpr const char *form_names[] = {"claim", "release", "assertion"};
constexpr int form_count = std::size(form_names);
static_assert(form_count == static_cast<int>(Form::assertion) + 1);

/* What came of a write. */
enum class Written
{
	done,
	changed,					/* the claim is not what it was when it was read: nothing was written */
	refused,					/* nothing was written */
	busy,						/* nothing was written: somebody else's write is not done yet.  Soon it may be */
	unknown,					/* it may have been written, or may still be */
};

/* A server's claim, as its users see it. */
enum class ClaimState
{
	none,						/* none was had since the server's start */
	held,
	suspended,					/* the registry can't be reached, or grants no more; what it granted is still used */
	lost,						/* what it granted is over, or another's */
};

/*
 * A new grant.  The fence is set window_us past what is needed or past the earlier
 * fence, or half of max_forward_jump_us where that is less.  A clock that is ahead
 * of the registry's moves it only where ids are asked for: a wrong one must not
 * leave its trace in the registry by itself.  Fills *next, and *grant as it holds
 * once next was written.
 */
Verdict		decide_grant(const Claim &claim, const RegistryTime &registry, const Holder &me,
						 const Need &need, int64_t window_us, Claim *next, Grant *grant) noexcept;

/*
 * Where an answer is missing, and the registry shows that what was asked for was
 * granted: takes that into *held.  Called with what was read, before any decision
 * about a claim that is held.
 */
void		adopt(const Claim &claim, const Holder &me, Grant *held) noexcept;

/*
 * Renews what this server holds.  is_overdue: it was not renewed in time, so
 * that it may have been granted to another, which a registry that was restored
 * may have forgotten: until that one has had time to say so the claim is kept,
 * and no time added to it.  Verdict held_by_another: it is lost.
 */
Verdict		decide_renewal(const Claim &claim, const RegistryTime &registry, const Holder &me, const Need &need,
						   int64_t window_us, bool is_overdue, const Grant &held, Claim *next, Grant *grant) noexcept;

/*
 * What is left of a grant once nothing more is issued under it: everything that
 * this server issued lies below issued_until_us.
 */
Grant		used_up(const Grant &held, int64_t issued_until_us) noexcept;

/*
 * Gives back what this server holds, used up as above.  False where the claim is
 * another's: there is nothing to give back, but something to assert.
 */
bool		decide_release(const Claim &claim, const Holder &me, int64_t issued_until_us, const Grant &held,
						   Claim *next) noexcept;

/*
 * Tells a registry that knows less (it was restored) up to where this server was
 * granted ids under a number that is another's now, or nobody's.  False where it knows.
 */
bool		decide_assertion(const Claim &claim, const Grant &lost, Claim *next) noexcept;

/*
 * Sets aside a number that nobody ever claimed, for ids that are made at once, as by
 * a merge, and all lie below until_us: a claim without a holder, which whoever is
 * granted the number later starts above.  who is kept for people.  Verdict
 * held_by_another: it was claimed before.
 */
Verdict		decide_set_aside(const Claim &claim, const RegistryTime &registry, const Holder &who, int64_t until_us,
							 Claim *next) noexcept;

/* Was this written by decide_set_aside(), and is nothing else since? */
bool		is_set_aside(const Claim &claim) noexcept;

/* What a registry bounds a write by, besides the claim that it has. */
struct Bounds
{
	int64_t		furthest_us;	/* no fence is raised further than this */

	/*
	 * While the registry is unsettled, the fence of a living holder is raised by others
	 * no further than this; 0: not at all.
	 */
	int64_t		furthest_of_others_us;

	/* The claim was made by another role than the writer's.  Servers of one group may have roles of their own. */
	bool		is_others_role = false;
};

enum class Admission
{
	admitted,
	changed,					/* the claim is not what the writer has read, or it is a living holder's */
	bad_generation,				/* it does not follow the one that is known */
	back,						/* the fence would go back */
	too_far,
	living,						/* it is a living holder's, and not to be touched by others */
	other_role,					/* it is the writer's own by its nonce, but another role made it, and it is alive */
};

/* No write takes the generation further than this: one role's writes would use all of them up. */
constexpr int64_t longest_generation_step = int64_t{1} << 32;

/*
 * May the server with this nonce write this?  The registry's own look at a write,
 * which trusts nobody: a living holder keeps its claim, and its fence never goes back
 * but by its own release.  A claim is the writer's own where its nonce is the holder's
 * and its role the one that made the claim: whoever has only got hold of the nonce is
 * anybody.  A release or an assertion of a claim that is free or
 * expired raises the fence, whoever makes it; an assertion that raises nothing is
 * none, since each one ends the claim.  Fills *granted_until_us, the fence as it is
 * to be stored.
 */
Admission	admit(Form form, const Claim &known, const char *nonce, int64_t expected_generation, int64_t generation,
				  int64_t wanted_until_us, const Bounds &bounds, int64_t *granted_until_us) noexcept;

/* A claim in a list, as far as choosing among them needs it. */
struct ListedClaim
{
	uint64_t	node;
	int64_t		granted_until_us;
	int64_t		freed_us;		/* when it was released, or when its holder was last known to be alive */
	bool		is_free;
};

/*
 * Chooses a number up to max_node for a new grant: the lowest that was never
 * used; or else, of those whose fence does not lie ahead of the clock, the one that
 * was freed longest ago; or else the one whose fence lies ahead least, and not
 * further than until_us.  The list is sorted by number.  False where there is none.
 */
bool		choose_node(const ListedClaim *claims, int64_t count, uint64_t max_node, int64_t clock_us, int64_t until_us,
						uint64_t *node) noexcept;

}  // namespace snowflake

#endif
