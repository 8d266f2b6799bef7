/*
 * claim.h
 *		Claims in a registry: who may issue ids under a node number, up to when.
 *
 * A registry keeps one claim for each node number of a group, and only stores:
 * a claim is read, what is to become of it is decided here, and it is written
 * where it has not changed since.  So the rules are the same in every registry.
 *
 * Safety rests on granted_until alone, the fence: an id time, exclusive, that
 * never goes back but at a release by the holder itself.  A new grant begins at
 * the fence, so that what different holders may issue never overlaps, whatever
 * their clocks and the registry's say.  Whether a holder is alive only decides
 * how soon its number is given to another.
 *
 * generation grows with each grant, renewal and release.  A registry that was
 * restored from a backup shows a generation that is lower than its holder's.
 *
 * All times are Unix microseconds.
 */
#ifndef SNOWFLAKE_CORE_CLAIM_H
#define SNOWFLAKE_CORE_CLAIM_H

#include <cstdint>
#include <cstring>

namespace snowflake __attribute__((visibility("hidden")))
{

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

	/* The store's own mark of what was read, for writing it only where it has not changed. */
	int64_t		version;
};

/* What the registry says of itself, at the moment at which a claim was read. */
struct RegistryTime
{
	int64_t		clock_us;
	int64_t		max_forward_jump_us;	/* a fence further past its clock is refused */
	int64_t		unsettled_us;	/* for so long it grants nothing anew: it was restored, or failed over */
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

enum class Verdict
{
	write,						/* the next claim may be written */
	held,						/* by another holder */
	unsettled,
	too_far,					/* the fence would lie too far past the registry's clock */
};

/*
 * A new grant.  wanted_from_us is the time from which this server could issue,
 * by its clock and what it has reserved and issued before; the fence is set
 * window_us past that or past the earlier fence, or half of max_forward_jump_us
 * where that is less.  Fills *next, and *grant as it holds once next was written.
 */
Verdict		decide_grant(const Claim &claim, const RegistryTime &registry, const Holder &me,
						 int64_t wanted_from_us, int64_t window_us, Claim *next, Grant *grant) noexcept;

/*
 * Where an answer is missing, and the registry shows that what was asked for was
 * granted: takes that into *held.  Called with what was read, before any decision
 * about a claim that is held.
 */
void		adopt(const Claim &claim, const Holder &me, Grant *held) noexcept;

/*
 * Renews what this server holds.  position_us is the end of the newest id's tick,
 * or the clock where that is later.  is_overdue: it was not renewed in time, so
 * that it may have been granted to another, which a registry that was restored
 * may have forgotten: until that one has had time to say so the claim is kept,
 * and no time added to it.  Verdict held: it is lost.
 */
Verdict		decide_renewal(const Claim &claim, const RegistryTime &registry, const Holder &me, int64_t position_us,
						   int64_t window_us, bool is_overdue, const Grant &held, Claim *next, Grant *grant) noexcept;

/*
 * Gives back what this server holds, after it has made sure that it issues no
 * more; everything that it issued lies below issued_until_us.  False where the
 * claim is another's: there is nothing to give back.
 */
bool		decide_release(const Claim &claim, const Holder &me, int64_t issued_until_us, const Grant &held, Claim *next) noexcept;

/*
 * Tells a registry that knows less (it was restored) up to where this server was
 * granted ids under a number that is another's now.  False where it knows.
 */
bool		decide_assertion(const Claim &claim, const Grant &lost, Claim *next) noexcept;

/*
 * Reserves a number that nobody ever claimed for ids that are made at once, as by
 * a merge, and all lie below until_us: a claim without a holder, which whoever is
 * granted the number later starts above.  who is kept for people.  Verdict held: it
 * was claimed before.
 */
Verdict		decide_reservation(const Claim &claim, const RegistryTime &registry, const Holder &who, int64_t until_us, Claim *next) noexcept;

/* Was this written by decide_reservation(), and is nothing else since? */
bool		is_reservation(const Claim &claim) noexcept;

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
 * used, or else the one that was freed longest ago.  Numbers whose fence lies
 * further ahead than until_us are left out.  The list is sorted by number.
 * False where there is none.
 */
bool		choose_node(const ListedClaim *claims, int64_t count, uint64_t max_node, int64_t until_us, uint64_t *node) noexcept;

}  // namespace snowflake

#endif
