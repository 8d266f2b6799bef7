/*
 * restored.pml
 *		A registry that forgets: why no id is issued twice all the same.
 *
 * Modelled.  Two servers and one node number, as in claim.pml.  Once, the registry's
 * row goes back to what it was at some time before: it is restored from a backup, or
 * fails over.  The servers live on, with what they hold.  Their keepers follow the
 * rules of src/core/claim.cpp, and the registry admits their writes by admit() there:
 * which claim a keeper takes for its own, what it adopts, when it is overdue, how far
 * a release goes back, and what it asserts of a claim that it has lost.
 *
 * From then on the registry is unsettled: it grants nothing anew, and no more time to
 * a holder that was overdue.  It settles when all who have something to tell were
 * heard: who held a claim has renewed it, or has released it, or has found it lost and
 * asserted it.
 *
 * Between a read and the write that follows from it anything may come; the answer to a
 * write may be lost.
 *
 * Excused: what nobody is left to tell.  Where a claim ended between the backup and the
 * restore, by a release, a loss or a death, the registry has forgotten its ids, and
 * only a living holder of a later claim keeps them from coming again.  So the registry
 * is restored only where every id that it forgets lies below what a living server was
 * granted, or has yet to assert.  For the same reason no server dies after it.
 *
 * Abstracted, besides what claim.pml abstracts:
 *	backends	A tick is issued in one step: claim.pml has the steps.
 *	late writes	A restore ends all connections: nothing that was decided before it is
 *				written after it.
 *	settling	Takes as long as it must: holders come in time.  What they assert
 *				meanwhile lies within the bound for others' claims.
 *	roles		A holder has its nonce and its role: whoever has only one of them is
 *				refused, as if it had not asked.  So is a write that another one is in the
 *				way of.
 *	overdue		A holder knows it before the registry takes it for dead: the two
 *				measure the same window, the holder from an earlier moment.
 *
 * Asserted: no tick is issued twice, by whomever.  Variants as in claim.pml.
 */

/* Bounds. */
#ifndef TICKS
#define TICKS 3				/* they count from 1 */
#endif
#ifndef GENERATIONS
#define GENERATIONS 6
#endif
#ifndef LOST
#define LOST 0				/* answers of the registry */
#endif
#define SERVERS 2

/* Guards that can be left out. */
#define SETTLED				1
#define RELEASE_RAISES		2
#define ASSERTION_RAISES	3
#define KEPT_ONLY			4
#define LOSS_IS_TOLD		5
#define ENDED_BEFORE		6
#define ASSERTED_BEYOND		7
#define CONNECTIONS_END		8
#define EXCUSED				9
#ifndef WITHOUT
#define WITHOUT 0
#endif
#define guard(name) (WITHOUT != name)

/* Places that must be reached. */
#define FORGOTTEN			1
#define SETTLES				2
#define GRANTED_AFTER		3
#define RENEWED_OVER_LESS	4
#define OVERDUE_KEPT		5
#define ASSERTED_FREE		6
#define ASSERTED_LIVING		7
#define RELEASE_RAISED		8
#define LOST_AFTER			9
#ifdef REACH
#define visit(name, when) assert(REACH != name || !(when))
#else
#define visit(name, when) skip
#endif

#define NOBODY	0

mtype = { READ, WRITE, RELEASE, CLAIMED, RELEASED, ASSERTED };

typedef Row
{
	byte generation;		/* 0 while there is no row */
	byte holder;			/* a nonce, or NOBODY */
	byte granted_until = 1;	/* no tick from here on was given to anybody, as far as the registry knows */
	bit alive				/* the registry takes the holder for alive */
}

/* Is written if the row has the expected generation, and it is admitted. */
typedef Request
{
	mtype form;
	byte expected;
	byte generation;
	byte granted_until;
	bit unsettled;			/* so the registry said */
	bit overdue				/* the holder, when it asked */
}

typedef Server
{
	mtype step = READ;
	Request ask;
	byte mine;				/* the generation of the claim that is held; 0 for none */
	byte start;				/* of the claim that is asked for or held */
	byte granted_until;
	byte asked_until;		/* was asked for without an answer */
	byte told_until;		/* no release goes back below this */
	byte limit;				/* ticks below this one may be issued */
	byte word;				/* the first tick that is left */
	bit overdue;
	byte lost_until;		/* is to be asserted; 0: nothing */
	byte lost_generation;	/* of that claim */
	bit heard				/* by the registry, since it was restored */
}

Row row;
Row backup;
bit has_backup;
bit restored;
bit unsettled;
byte lost;
Server server[SERVERS];
bit issued[TICKS + 1];

/* For use within one step; no part of the state. */
hidden byte tick;
hidden byte each;
hidden byte known;
hidden byte enough;
hidden byte admitted;

#define me		_pid
#define nonce	(1 + _pid)
#define my		server[_pid]

#define max(a, b) ((a) > (b) -> (a) : (b))
#define min(a, b) ((a) < (b) -> (a) : (b))

inline any_tick(result, first, last)
{
	tick = last;
	result = first;
	do
	:: result < tick -> result++
	:: break
	od
}

/* States that differ in what is not used any more would count as different. */
inline clear_ask(whose)
{
	whose.ask.form = 0;
	whose.ask.expected = 0;
	whose.ask.generation = 0;
	whose.ask.granted_until = 0;
	whose.ask.unsettled = 0;
	whose.ask.overdue = 0
}

inline go_on(next)
{
	clear_ask(my);
	if
	:: my.mine == 0 -> my.start = 0
	:: else
	fi;
	my.step = next
}

inline end_claim()
{
	my.mine = 0;
	my.start = 0;
	my.granted_until = 0;
	my.asked_until = 0;
	my.told_until = 0;
	my.limit = 0;
	my.word = 0;
	my.overdue = 0;
	my.heard = 0
}

/* used_up(): what is left of the claim once nothing more is issued. */
#define used_up min(my.granted_until, max(my.told_until, my.word))

inline lose_claim()
{
	if
	:: guard(LOSS_IS_TOLD) -> my.lost_until = used_up; my.lost_generation = my.mine
	:: else
	fi;
	end_claim()
}

inline end_assertion()
{
	my.lost_until = 0;
	my.lost_generation = 0
}

/* is_own() */
#define is_own \
	(row.generation == 0 || \
	 row.generation < my.mine && \
	 (row.holder == nonce && row.granted_until <= my.granted_until || \
	  !row.alive && (row.granted_until <= my.start || !guard(ENDED_BEFORE))) || \
	 row.generation == my.mine && row.holder == nonce && row.granted_until <= my.granted_until)

/* adopt() */
inline adopt()
{
	if
	:: row.holder == nonce && row.generation == my.mine + 1 &&
	   row.granted_until >= my.granted_until && row.granted_until <= my.asked_until ->
		my.mine = row.generation;
		my.granted_until = row.granted_until;
		my.asked_until = 0;
		my.told_until = row.granted_until
	:: else
	fi
}

#define successor (max(row.generation, my.mine) + 1)
/* Beyond what the holder may take for an answer to its own last write: that came before this server's claim. */
#if WITHOUT == ASSERTED_BEYOND
#define assertion (row.generation + 2)
#else
#define assertion (max(row.generation, my.lost_generation) + 2)
#endif

#define may_follow(generation) ((generation) <= GENERATIONS)

#define held_by_other (row.alive && row.holder != NOBODY && row.holder != nonce)

/* admit(), and what is written then. */
inline execute()
{
	admitted = row.generation == my.ask.expected;
	known = row.granted_until;
	if
	:: my.ask.form == CLAIMED -> admitted = admitted && !held_by_other && my.ask.granted_until >= known
	:: my.ask.form == RELEASED ->
		admitted = admitted && !held_by_other && (row.holder == nonce || guard(RELEASE_RAISES));
		if
		:: row.holder != nonce -> my.ask.granted_until = max(known, my.ask.granted_until)
		:: else
		fi
	:: my.ask.form == ASSERTED ->
		admitted = admitted && (!held_by_other || unsettled) && (row.holder != NOBODY || guard(ASSERTION_RAISES));
		my.ask.granted_until = max(known, my.ask.granted_until)
	fi;
	if
	:: admitted ->
		visit(RELEASE_RAISED, my.ask.form == RELEASED && my.ask.granted_until > known);
		visit(ASSERTED_FREE, my.ask.form == ASSERTED && row.holder == NOBODY);
		visit(ASSERTED_LIVING, my.ask.form == ASSERTED && held_by_other);
		row.generation = my.ask.generation;
		row.granted_until = my.ask.granted_until;
		if
		:: my.ask.form == CLAIMED -> row.holder = nonce; row.alive = 1
		:: my.ask.form == RELEASED -> row.holder = NOBODY; row.alive = 0
		:: else
		fi
	:: else
	fi
}

active [SERVERS] proctype keeper()
{
end:
	do
	/* What was lost is told first. */
	:: atomic {
		my.step == READ && my.lost_until != 0 && row.granted_until >= my.lost_until ->
		end_assertion()
	}
	:: atomic {
		my.step == READ && my.lost_until != 0 && row.granted_until < my.lost_until && may_follow(assertion) ->
		my.ask.form = ASSERTED;
		my.ask.expected = row.generation;
		my.ask.generation = assertion;
		my.ask.granted_until = my.lost_until;
		my.step = WRITE
	}

	/* No claim is held: ask for one. */
	:: atomic {
		my.step == READ && my.lost_until == 0 && my.mine == 0 && !held_by_other && (!unsettled || !guard(SETTLED)) &&
		row.granted_until <= TICKS && may_follow(row.generation + 1) ->
		my.start = row.granted_until;
		any_tick(my.ask.granted_until, my.start + 1, TICKS + 1);
		my.ask.form = CLAIMED;
		my.ask.expected = row.generation;
		my.ask.generation = row.generation + 1;
		my.step = WRITE
	}

	/* One is held: ask for more time; or it is lost. */
	:: atomic {
		my.step == READ && my.mine != 0 ->
		adopt();
		if
		:: is_own && may_follow(successor) ->
			my.ask.form = CLAIMED;
			my.ask.expected = row.generation;
			my.ask.generation = successor;
			my.ask.unsettled = unsettled;
			my.ask.overdue = my.overdue;
			if
			:: my.overdue && unsettled && guard(KEPT_ONLY) -> my.ask.granted_until = my.granted_until
			:: else -> any_tick(my.ask.granted_until, my.granted_until, TICKS + 1)
			fi;
			my.asked_until = max(my.asked_until, my.ask.granted_until);
			my.step = WRITE
		:: is_own && !may_follow(successor)
		:: !is_own ->
			visit(LOST_AFTER, restored);
			lose_claim()
		fi
	}

	/* A clean stop: no more ids; then the time that is left is given back. */
	:: atomic {
		my.step == READ && my.mine != 0 ->
		my.limit = 0;
		my.step = RELEASE
	}
	:: atomic {
		my.step == RELEASE ->
		adopt();
		if
		:: is_own && may_follow(successor) ->
			my.ask.form = RELEASED;
			my.ask.expected = row.generation;
			my.ask.generation = successor;
			my.ask.granted_until = used_up;
			my.step = WRITE
		:: is_own && !may_follow(successor)
		:: !is_own ->
			lose_claim();
			go_on(READ)
		fi
	}

	/* The registry answers. */
	:: atomic {
		my.step == WRITE ->
		visit(RENEWED_OVER_LESS, my.ask.form == CLAIMED && row.generation == my.ask.expected && row.generation < my.mine);
		visit(GRANTED_AFTER, my.ask.form == CLAIMED && row.generation == my.ask.expected && my.mine == 0 && restored);
		execute();
		if
		:: admitted && my.ask.form == CLAIMED ->
			visit(OVERDUE_KEPT, my.ask.overdue && my.ask.unsettled);
			if
			:: my.mine == 0 -> my.word = my.start
			:: my.mine != 0 && (my.ask.unsettled || my.ask.expected != my.mine) -> my.told_until = my.ask.granted_until
			:: else
			fi;
			my.mine = my.ask.generation;
			my.granted_until = my.ask.granted_until;
			my.limit = my.ask.granted_until;
			my.asked_until = 0;
			my.overdue = my.ask.overdue && my.ask.unsettled;
			my.heard = unsettled;
			go_on(READ)
		/* What the registry refuses is not released, and nobody is left to tell. */
		:: my.ask.form == RELEASED && (admitted || row.generation == my.ask.expected) -> end_claim(); go_on(READ)
		:: my.ask.form == RELEASED && !admitted && row.generation != my.ask.expected -> go_on(RELEASE)
		:: my.ask.form == ASSERTED && (admitted || !guard(ASSERTION_RAISES)) -> end_assertion(); go_on(READ)
		:: else -> go_on(READ)
		fi
	}

	/* The answer is lost.  A server that stops without having been heard is dead: excused. */
	:: atomic {
		my.step == WRITE && lost < LOST ->
		lost++;
		execute();
		if
		:: my.ask.form == RELEASED && admitted -> end_claim(); go_on(READ)
		:: my.ask.form == RELEASED && !admitted -> go_on(RELEASE)
		:: else -> go_on(READ)
		fi
	}

	/* It was not renewed for as long as it counts as alive. */
	:: atomic {
		my.mine != 0 && !my.overdue ->
		my.overdue = 1
	}

	/* Backends. */
	:: atomic {
		my.word < my.limit ->
		any_tick(known, my.word, my.limit - 1);
		my.word = known + 1;
		assert(!issued[known]);
		issued[known] = true
	}
	od
}

#define has_told(s) (s.step == READ && s.lost_until == 0 && (s.mine == 0 || s.heard))
#define furthest(s) max(s.granted_until, s.lost_until)
#define its_holder server[row.holder - 1]

active proctype registry()
{
end:
	do
	:: atomic {
		!has_backup && !restored ->
		has_backup = true;
		backup.generation = row.generation;
		backup.holder = row.holder;
		backup.granted_until = row.granted_until;
		backup.alive = row.alive
	}

	/* It forgets. */
	:: atomic {
		has_backup && !restored && row.generation != backup.generation ->
		enough = true;
		for (each : 1 .. TICKS) {
			enough = enough && (!issued[each] || each < max(backup.granted_until, max(furthest(server[0]), furthest(server[1]))))
		}
		if
		:: enough || !guard(EXCUSED) ->
			visit(FORGOTTEN, true);
			restored = true;
			unsettled = true;
			row.generation = backup.generation;
			row.holder = backup.holder;
			row.granted_until = backup.granted_until;
			row.alive = backup.alive;
			backup.generation = 0;
			backup.holder = 0;
			backup.granted_until = 0;
			backup.alive = 0;
			for (each : 0 .. SERVERS - 1) {
				server[each].heard = 0;
				if
				:: server[each].step == WRITE && guard(CONNECTIONS_END) ->
					server[each].step = (server[each].ask.form == RELEASED -> RELEASE : READ);
					clear_ask(server[each]);
					if
					:: server[each].mine == 0 -> server[each].start = 0
					:: else
					fi
				:: else
				fi
			}
		:: else
		fi
	}

	/* All were heard. */
	:: atomic {
		unsettled && has_told(server[0]) && has_told(server[1]) ->
		visit(SETTLES, true);
		unsettled = false;
		server[0].heard = 0;
		server[1].heard = 0
	}

	/* The holder has not renewed its claim in time; or not the one that the registry knows. */
	:: atomic {
		row.alive && row.holder != NOBODY && (its_holder.mine == 0 || its_holder.overdue || unsettled && !its_holder.heard) ->
		row.alive = 0
	}
	od
}
