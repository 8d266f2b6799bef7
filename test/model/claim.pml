/*
 * claim.pml
 *		The claims of a registry: why no id is issued twice.
 *
 * Modelled.  Two servers want one node number, and the registry keeps one row for
 * it.  A server has shared memory (the word and the limit), backends, and a
 * keeper.  The keeper reads the row, decides, and writes the row if it still has
 * the generation that was read: a grant, a renewal or a release.  What is granted
 * is time: from the start of the claim up to granted_until, exclusive.  A backend
 * reads the word, then the limit, then swaps the word for a later tick below the
 * limit: the swap is the issue of an id.
 *
 * Between two steps anything may come: whoever makes them may stall for any time.
 * The answer to a write may be lost; the write is then done at any time later,
 * after the keeper's next one or after its death too, or never.  A server may
 * crash at every step, and one that has crashed or was stopped may start again: its
 * memory is gone, its nonce is new.
 *
 * Abstracted, each to something that may do more than the real thing:
 *	clocks		There are none.  Where a server looks at one, any tick may come
 *				out: clocks differ, stand still, jump and go back.
 *	alive_until	May have passed at any time: nobody is refused a grant because
 *				another holder is alive.
 *	window		A claim reaches any way ahead; a renewal need not gain anything.
 *	cell		The server's own durable limit, and what it knows of its own ids,
 *				would only keep ids back: left out.
 *	sequence	One id in each tick.  So the word is a tick: the first one that is
 *				left.
 *
 * Not modelled: a registry that forgets (restored, failed over); more than two
 * servers; more than one node number.  The bounds make the model finite: a keeper
 * whose time or generations are used up asks for nothing more.
 *
 * Asserted: no tick is issued twice, by whomever.
 *
 * That this is not so for want of anything happening, and not for any other reason
 * than the guards, other checks show:
 *	-DREACH=place	asserts that nobody comes to this place; that must fail
 *	-DWITHOUT=guard	leaves this guard out; a tick must then be issued twice
 *	-DLEASE			is a plain lease instead, and one clock that all see and that
 *					is never wrong; a tick must then be issued twice
 *
 * test/model/check runs them all.
 */

#ifndef TICKS
#define TICKS 4				/* 1 to TICKS */
#endif
#ifndef GENERATIONS
#define GENERATIONS 4
#endif
#ifndef CRASHES
#define CRASHES 1			/* or restarts, of both servers */
#endif
#ifndef LOST
#define LOST 1				/* answers of the registry */
#endif
#ifndef BACKENDS
#define BACKENDS 1			/* of each server */
#endif
#define SERVERS 2

/* Guards that can be left out. */
#define ABOVE_THE_ROW		1
#define COMPARE_GRANT		2
#define COMPARE_RENEWAL		3
#define COMPARE_RELEASE		4
#define COMPARE_LATE		5
#define CONFIRMED			6
#define OWN_NONCE			7
#define OWN_GENERATION		8
#define WORD_ENDS_FIRST		9
#define RELEASE_ABOVE		10
#define WORD_COMES_LAST		11
#define BELOW_THE_LIMIT		12
#define COMPARE_WORD		13
#ifndef WITHOUT
#define WITHOUT 0
#endif
#define guard(name) (WITHOUT != name)

/* Places that must be reached. */
#define BOTH_ISSUE			1
#define ISSUED_AFTER_LOSS	2
#define ISSUED_AFTER_CRASH	3
#define ADOPTED				4
#define DONE_LATE			5
#define SHORTENED			6
#ifndef REACH
#define REACH 0
#endif
#define place(name) assert(REACH != name)

/* What is different with a plain lease. */
#ifdef LEASE
byte now = 1;
#define may_be_granted		(now >= row.granted_until)	/* the lease has ended */
#define first_start			now
#define last_start			now
#define may_issue			(now < limit[me] && seen[b].word <= now)
#define first_tick			now
#define last_tick			now
#else
#define may_be_granted		true						/* alive_until may have passed */
#if WITHOUT == ABOVE_THE_ROW
#define first_start			1
#define last_start			TICKS
#else
#define first_start			row.granted_until
#define last_start			row.granted_until
#endif
#define may_issue			(seen[b].word < limit[me])
#define first_tick			seen[b].word
#if WITHOUT == BELOW_THE_LIMIT
#define last_tick			TICKS
#else
#define last_tick			(seen[b].limit - 1)
#endif
#endif

typedef Row
{
	byte generation;		/* +1 at every write */
	byte holder;			/* a nonce, or NOBODY */
	byte granted_until = 1	/* the first tick that nobody was given */
}

/* What is written if the row has the expected generation. */
typedef Request
{
	byte expected;
	byte holder;
	byte granted_until
}

/* What a backend has read: 0 for nothing yet. */
typedef Seen
{
	byte word;
	byte limit
}

#define NOBODY	0
#define INVALID	0			/* the word of a server without a claim */

Row row;

byte life[SERVERS];
byte lost;
byte word[SERVERS];			/* the first tick that is left, or INVALID */
byte limit[SERVERS];
Seen seen[SERVERS * BACKENDS];

/* A write whose answer nobody waits for any more. */
Request late[SERVERS];
bit is_late[SERVERS];

bit issued[TICKS + 1];
#if REACH == BOTH_ISSUE
bit has_issued[SERVERS];
#endif

#define me		(_pid % SERVERS)
#define nonce	(1 + me + SERVERS * life[me])

/* The registry's part: one transaction. */
inline execute(request, compare, done)
{
	if
	:: row.generation == request.expected || !(compare) ->
		row.generation = request.expected + 1;
		row.holder = request.holder;
		row.granted_until = request.granted_until;
		done = true
	:: else ->
		done = false
	fi
}

inline copy(to, from)
{
	to.expected = from.expected;
	to.holder = from.holder;
	to.granted_until = from.granted_until
}

/* States that differ in what is not used any more would be counted twice. */
inline clear(request)
{
	request.expected = 0;
	request.holder = NOBODY;
	request.granted_until = 0
}

/* A tick as a clock may give it. */
inline any_tick(result, first, last)
{
	result = first;
	do
	:: result < last -> result++
	:: break
	od
}

mtype = { READ, WRITE, PUBLISH, PUBLISH_WORD, RELEASE, STOPPED };

/* The row speaks of the claim that this keeper holds, or of the renewal of it whose outcome it does not know. */
#define still_mine \
	((!guard(OWN_NONCE) || row.holder == nonce) && \
	 (!guard(OWN_GENERATION) || row.generation == mine || unknown && row.generation == mine + 1))

#define is_compared \
	((mine != 0 || guard(COMPARE_GRANT)) && \
	 (mine == 0 || ask.holder == NOBODY || guard(COMPARE_RENEWAL)) && \
	 (ask.holder != NOBODY || guard(COMPARE_RELEASE)))

active [SERVERS] proctype keeper()
{
	mtype	step = READ;
	byte	mine;			/* the generation of the claim that is held; 0 for none */
	bit		unknown;		/* the outcome of a renewal of it is unknown */
	byte	place_kept;		/* where the claim starts, or where it was when it was released */
	Request	ask;
	bit		done;
	byte	i;

end:
	do
	/* No claim is held: ask for one. */
	:: atomic {
		step == READ && mine == 0 && row.generation < GENERATIONS && row.granted_until <= TICKS && may_be_granted ->
		any_tick(place_kept, first_start, last_start);
		any_tick(ask.granted_until, place_kept + 1, TICKS + 1);
		ask.expected = row.generation;
		ask.holder = nonce;
		step = WRITE
	}

	/* Ask for more time. */
	:: atomic {
		step == READ && mine != 0 && still_mine && row.generation < GENERATIONS ->
		any_tick(ask.granted_until, row.granted_until, TICKS + 1);
		ask.expected = row.generation;
		ask.holder = nonce;
		if
		:: row.generation != mine -> place(ADOPTED)
		:: else
		fi;
		step = WRITE
	}

	/* The claim is lost. */
	:: atomic {
		step == READ && mine != 0 && !still_mine ->
		word[me] = INVALID;
		mine = 0;
		unknown = false
	}

	/* A clean stop: no more ids, and then what is left of the time is given back. */
	:: atomic {
		step == READ && mine != 0 ->
		place_kept = (guard(RELEASE_ABOVE) -> word[me] : word[me] - 1);
		if
		:: guard(WORD_ENDS_FIRST) -> word[me] = INVALID
		:: else
		fi;
		step = RELEASE
	}
	:: atomic {
		step == RELEASE && still_mine && row.generation < GENERATIONS ->
		ask.expected = row.generation;
		ask.holder = NOBODY;
		ask.granted_until = place_kept;
		if
		:: place_kept < row.granted_until -> place(SHORTENED)
		:: else
		fi;
		step = WRITE
	}
	:: atomic {
		step == RELEASE && !still_mine ->
		step = STOPPED
	}

	/* The registry answers. */
	:: atomic {
		step == WRITE ->
		execute(ask, is_compared, done);
		if
		:: done && ask.holder != NOBODY -> step = PUBLISH
		:: done && ask.holder == NOBODY -> step = STOPPED
		:: !done && ask.holder != NOBODY -> step = READ; place_kept = 0
		:: else -> step = RELEASE
		fi;
		if
		:: step != PUBLISH -> clear(ask)
		:: else
		fi;
		done = false
	}

	/* The answer does not come. */
	:: atomic {
		step == WRITE && lost < LOST ->
		lost++;
		copy(late[me], ask);
		is_late[me] = true;
		if
		:: ask.holder == NOBODY -> step = STOPPED
		:: ask.holder != NOBODY && guard(CONFIRMED) -> step = READ; unknown = mine != 0; place_kept = 0
		:: else -> step = PUBLISH
		fi;
		if
		:: step != PUBLISH -> clear(ask)
		:: else
		fi
	}

	/* The write is confirmed: the backends may know. */
	:: atomic {
		step == PUBLISH && (mine != 0 || guard(WORD_COMES_LAST)) ->
		limit[me] = ask.granted_until;
		if
		:: mine == 0 -> step = PUBLISH_WORD
		:: else -> mine = ask.expected + 1; unknown = false; clear(ask); step = READ
		fi
	}
	:: atomic {
		step == PUBLISH_WORD ->
		word[me] = place_kept;
		mine = ask.expected + 1;
		place_kept = 0;
		clear(ask);
		step = READ
	}

	:: atomic {
		step == STOPPED && (mine != 0 || word[me] != INVALID) ->
		word[me] = INVALID;
		mine = 0;
		unknown = false;
		place_kept = 0
	}

	/* A crash, or a stop; and a start. */
	:: atomic {
		life[0] + life[1] < CRASHES ->
		life[me]++;
		word[me] = INVALID;
		limit[me] = 0;
		for (i : 0 .. BACKENDS - 1) {
			seen[me + SERVERS * i].word = 0;
			seen[me + SERVERS * i].limit = 0
		}
		i = 0;
		mine = 0;
		unknown = false;
		place_kept = 0;
		clear(ask);
		step = READ
	}
	od
}

#define b (_pid - SERVERS)

active [SERVERS * BACKENDS] proctype backend()
{
	byte	tick;

end:
	do
	:: atomic {
		seen[b].word == 0 && word[me] != INVALID ->
		seen[b].word = word[me]
	}
	:: atomic {
		seen[b].word != 0 && seen[b].limit == 0 ->
		if
		:: may_issue -> seen[b].limit = limit[me]
		:: else -> seen[b].word = 0
		fi
	}
	:: atomic {
		seen[b].limit != 0 ->
		if
		:: word[me] == seen[b].word || !guard(COMPARE_WORD) ->
			any_tick(tick, first_tick, last_tick);
			word[me] = tick + 1;
			assert(!issued[tick]);
			issued[tick] = true;
#if REACH == BOTH_ISSUE
			has_issued[me] = true;
			assert(!has_issued[0] || !has_issued[1]);
#endif
			tick = 0
		:: else
		fi;
		seen[b].word = 0;
		seen[b].limit = 0
	}
	od
}

/* What was on its way when the connection was lost arrives. */
active [SERVERS] proctype network()
{
	bit		done;

end:
	do
	:: atomic {
		is_late[_pid % SERVERS] ->
		execute(late[_pid % SERVERS], guard(COMPARE_LATE), done);
		if
		:: done -> place(DONE_LATE)
		:: else
		fi;
		done = false;
		clear(late[_pid % SERVERS]);
		is_late[_pid % SERVERS] = false
	}
	od
}

#ifdef LEASE
active proctype time()
{
end:
	do
	:: now < TICKS -> now++
	od
}
#endif
