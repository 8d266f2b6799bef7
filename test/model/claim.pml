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
 * after the keeper's next one or after its death too, or never.  A keeper that was
 * ended by hand has released its claim, and comes back in the memory that backends
 * still use.  A server may crash at every step, in one of two ways:
 *	It starts again, as after a stop: its memory is gone, its nonce is new.
 *	Its postmaster lives on: its memory is gone, and no backend is left; but the
 *				nonce is kept, and so is the record of what was granted: whether
 *				there is a claim, its generation, its start, up to when, and whether
 *				a renewal was asked for.  The record is written when a grant is
 *				confirmed, and taken back before the registry is told of a release.
 *				What it is about to ask for, the keeper notes there first.  With the
 *				record the server goes on under its claim, above its durable limit.
 *
 * Abstracted, each to something that may do more than the real thing:
 *	clocks		There are none.  Where a server looks at one, any tick may come
 *				out: clocks differ, stand still, jump and go back.
 *	alive_until	May have passed at any time: nobody is refused a grant because
 *				another holder is alive.
 *	window		A claim reaches any way ahead; a renewal need not gain anything.
 *	cell		The server's own durable limit would only keep ids back, but for two
 *				things.  In one memory no claim starts below a limit that was
 *				published in it: there all that is granted counts as reserved.  And
 *				a claim that outlives a crash goes on above all that was issued
 *				under it: there the limit may be as low as that.  A server with a
 *				new nonce needs none: it may have been lost.
 *	record		The one that a crash has left half written counts for nothing: the
 *				nonce is then new.
 *	sequence	One id in each tick.  So the word is a tick: the first one that is
 *				left.
 *
 * Not modelled: a registry that forgets (restored, failed over), see restored.pml;
 * more than two servers; more than one node number.  The bounds make the model
 * finite: a keeper whose time or generations are used up asks for nothing more.
 *
 * Asserted: no tick is issued twice, by whomever.
 *
 * That this does not hold for want of anything happening, and hangs on the guards
 * alone, is shown by variants:
 *	-DREACH=place	asserts that nobody comes to this place; that must fail
 *	-DWITHOUT=guard	leaves this guard out; a tick must then be issued twice
 *	-DLEASE			is a plain lease instead, with one clock that all see and that
 *					is never wrong; a tick must then be issued twice
 *	-DPROMPT		with LEASE: nobody stalls between looking at the clock and
 *					issuing the id; then, and only then, the lease holds
 *
 * test/model/check runs them all.
 */

/* Bounds. */
#ifndef TICKS
#define TICKS 3				/* they count from 1 */
#endif
#ifndef GENERATIONS
#define GENERATIONS 3
#endif
#ifndef CRASHES
#define CRASHES 1			/* with a new nonce, of both servers together; restarts too */
#endif
#ifndef KEPT
#define KEPT 0				/* crashes under a living postmaster, of both servers together */
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
#define LOSS_ENDS_WORD		8
#define STOP_ENDS_WORD		9
#define RELEASE_ABOVE		10
#define ABOVE_THE_CELL		11
#define BELOW_THE_LIMIT		12
#define COMPARE_WORD		13
#define KEPT_WHEN_CONFIRMED	14
#define KEPT_AS_A_WHOLE		15
#define KEPT_UNTIL_STOPPED	16
#define ABOVE_THE_LIMIT		17
#define RELEASE_ABOVE_THE_LIMIT	18
#ifndef WITHOUT
#define WITHOUT 0
#endif
#define guard(name) (WITHOUT != name)

/* Places that must be reached. */
#define BOTH_ISSUE			1
#define ISSUE_IN_TURNS		2
#define ISSUE_WHEN_LOST		3
#define ISSUE_AFTER_CRASH	4
#define REFUSED				5
#define ADOPTED				6
#define DONE_LATE			7
#define SHORTENED			8
#define ISSUE_WHEN_KEPT		9
#define ADOPTED_WHEN_KEPT	10
#ifdef REACH
#define visit(name, when) assert(REACH != name || !(when))
#else
#define visit(name, when) skip
#endif

#define NOBODY	0
#define INVALID	0			/* the word of a server without a claim */

typedef Row
{
	byte generation;		/* +1 at every write; 0 while there is no row */
	byte holder;			/* a nonce, or NOBODY */
	byte granted_until = 1	/* no tick from here on was given to anybody */
}

/* Is written if the row has the expected generation. */
typedef Request
{
	byte expected;
	byte holder;
	byte granted_until
}

/* What a backend has read; 0 for what it has not. */
typedef Seen
{
	byte word;
	byte limit
}

Row row;

/* A write whose answer nobody waits for any more. */
Request late[SERVERS];
bit is_late[SERVERS];
byte lost;
byte survived;				/* crashes under a living postmaster */

byte life[SERVERS];
byte word[SERVERS];			/* the first tick that is left, or INVALID */
byte limit[SERVERS];		/* ticks below this one may be issued; also the record's */
byte cell[SERVERS];			/* the highest limit that was published */
byte used[SERVERS];			/* the end of the last tick that was issued under the claim, as far as is known */
Seen seen[SERVERS * BACKENDS];

bit issued[TICKS + 1];
#ifdef LEASE
byte now = 1;
#endif
#ifdef REACH
byte issuer = SERVERS;
byte turns;
#define CRASHED 1
#define RENEWED 2
byte kept_claim[SERVERS];	/* the claim has outlived a crash; it was renewed since */
#define note_kept(what) kept_claim[me] = what
#else
#define note_kept(what) skip
#endif

/* For use within one step; no part of the state. */
hidden byte written;
hidden byte tick;
hidden byte each;

#define me		(_pid % SERVERS)
#define nonce	(1 + me + SERVERS * life[me])

/* A tick as a clock may give it. */
inline any_tick(result, first, last)
{
	result = first;
	do
	:: result < last -> result++
	:: break
	od
}

/* The registry's part: one transaction. */
inline execute(request, compare)
{
	written = row.generation == request.expected || !(compare);
	if
	:: written ->
		row.generation = request.expected + 1;
		row.holder = request.holder;
		row.granted_until = request.granted_until
	:: else
	fi
}

/* States that differ in what is not used any more would count as different. */
inline clear(request)
{
	request.expected = 0;
	request.holder = NOBODY;
	request.granted_until = 0
}

/*
 * The keeper: its steps, and what it knows.  All but the row, the late writes and
 * what was issued is the memory of one server.
 */

mtype = { READ, WRITE, PUBLISH_LIMIT, PUBLISH_WORD, RELEASE };

/* The row speaks of the claim that is held, or of a renewal of it whose outcome is unknown. */
#define still_mine \
	((row.holder == nonce || !guard(OWN_NONCE)) && \
	 (row.generation == mine || unknown && row.generation == mine + 1))

#define generations_left (row.generation < GENERATIONS)

#ifdef LEASE
#define may_be_granted (now >= row.granted_until)
#define first_start now
#define last_start now
#else
#define may_be_granted (row.granted_until <= TICKS)
#if WITHOUT == ABOVE_THE_ROW
#define first_start 1
#define last_start TICKS
#else
#define first_start row.granted_until
#define last_start row.granted_until
#endif
#endif

#define is_compared \
	((mine != 0 || guard(COMPARE_GRANT)) && \
	 (mine == 0 || ask.holder == NOBODY || guard(COMPARE_RENEWAL)) && \
	 (ask.holder != NOBODY || guard(COMPARE_RELEASE)))

inline raise_cell()
{
	if
	:: limit[me] > cell[me] -> cell[me] = limit[me]
	:: else
	fi
}

inline end_word()
{
	word[me] = INVALID;
	limit[me] = 0
}

inline forget_claim()
{
	used[me] = 0;
	mine = 0;
	kept = 0;
	unknown = false;
	start = 0;
	note_kept(0)
}

inline end_claim()
{
	end_word();
	forget_claim()
}

/* After a crash: above what survives of the limit, which is all that is known of what was issued. */
inline go_on_as_kept()
{
	word[me] = INVALID;
	any_tick(tick, used[me], cell[me]);
	cell[me] = (guard(ABOVE_THE_LIMIT) -> tick : 0);
	used[me] = (cell[me] < limit[me] -> cell[me] : limit[me]);
	if
	:: used[me] <= start || !guard(RELEASE_ABOVE_THE_LIMIT) -> used[me] = 0
	:: else
	fi;
	mine = kept;
	note_kept(CRASHED);
	clear(ask);
	step = PUBLISH_WORD
}

inline end_backends()
{
	for (each : 0 .. BACKENDS - 1) {
		seen[me + SERVERS * each].word = 0;
		seen[me + SERVERS * each].limit = 0
	}
}

inline go_on(next)
{
	clear(ask);
	if
	:: mine == 0 -> start = 0
	:: else
	fi;
	step = next
}

active [SERVERS] proctype keeper()
{
	mtype	step = READ;
	byte	mine;			/* the generation of the claim that is held; 0 for none */
	byte	kept;			/* the same in the record */
	bit		unknown;		/* a renewal of it was asked for, its outcome is unknown */
	byte	start;			/* of the claim that is asked for or held */
	Request	ask;

end:
	do
	/* No claim is held: ask for one. */
	:: atomic {
		step == READ && mine == 0 && generations_left && may_be_granted ->
		any_tick(start, first_start, last_start);
		any_tick(ask.granted_until, start + 1, TICKS + 1);
		ask.expected = row.generation;
		ask.holder = nonce;
		step = WRITE
	}

	/* One is held: ask for more time. */
	:: atomic {
		step == READ && mine != 0 && still_mine && generations_left ->
		visit(ADOPTED, row.generation != mine);
		visit(ADOPTED_WHEN_KEPT, row.generation != mine && kept_claim[me] == CRASHED);
		/* What is adopted is as good as confirmed; and what is asked for is remembered first. */
		if
		:: row.generation != mine -> limit[me] = row.granted_until; raise_cell()
		:: else
		fi;
		mine = row.generation;
		kept = mine;
		unknown = true;
		any_tick(ask.granted_until, row.granted_until, TICKS + 1);
		ask.expected = row.generation;
		ask.holder = nonce;
		step = WRITE
	}

	/* It is lost. */
	:: atomic {
		step == READ && mine != 0 && !still_mine ->
		if
		:: guard(LOSS_ENDS_WORD) -> end_word()
		:: else
		fi;
		forget_claim()
	}

	/* A clean stop: no more ids; then the time that is left is given back. */
	:: atomic {
		step == READ && mine != 0 ->
		if
		:: used[me] > start -> start = used[me] - !guard(RELEASE_ABOVE)
		:: else
		fi;
		used[me] = 0;
		if
		:: guard(KEPT_UNTIL_STOPPED) -> kept = 0
		:: else
		fi;
		if
		:: kept != 0 -> word[me] = INVALID
		:: kept == 0 && guard(STOP_ENDS_WORD) -> end_word()
		:: else
		fi;
		step = RELEASE
	}
	:: atomic {
		step == RELEASE && still_mine && generations_left ->
		ask.expected = row.generation;
		ask.holder = NOBODY;
		ask.granted_until = start;
		step = WRITE
	}
	:: atomic {
		step == RELEASE && !still_mine ->
		end_claim();
		go_on(READ)
	}

	/* The registry answers. */
	:: atomic {
		step == WRITE ->
		visit(REFUSED, row.generation != ask.expected);
		visit(SHORTENED, row.generation == ask.expected && row.granted_until > ask.granted_until);
		execute(ask, is_compared);
		if
		:: written && ask.holder != NOBODY -> step = PUBLISH_LIMIT
		:: written && ask.holder == NOBODY && kept == 0 -> end_claim(); go_on(READ)
		:: written && ask.holder == NOBODY && kept != 0 -> clear(ask); step = RELEASE
		:: !written && ask.holder != NOBODY -> go_on(READ)
		:: !written && ask.holder == NOBODY -> go_on(RELEASE)
		fi
	}

	/* Its answer is lost. */
	:: atomic {
		step == WRITE && lost < LOST ->
		lost++;
		late[me].expected = ask.expected;
		late[me].holder = ask.holder;
		late[me].granted_until = ask.granted_until;
		is_late[me] = true;
		if
		:: ask.holder == NOBODY -> end_claim(); go_on(READ)
		:: ask.holder != NOBODY && guard(CONFIRMED) -> go_on(READ)
		:: else -> step = PUBLISH_LIMIT
		fi
	}

	/* The write is confirmed: it is kept, and now the backends may know. */
	:: atomic {
		step == PUBLISH_LIMIT ->
		limit[me] = ask.granted_until;
		if
		:: mine == 0 -> step = PUBLISH_WORD
		:: else -> raise_cell(); note_kept((kept_claim[me] != 0 -> RENEWED : 0)); go_on(READ)
		fi;
		mine = ask.expected + 1;
		kept = mine;
		unknown = false;
		clear(ask)
	}
	:: atomic {
		step == PUBLISH_WORD ->
		if
		:: cell[me] > start && guard(ABOVE_THE_CELL) -> word[me] = cell[me]
		:: else -> word[me] = start
		fi;
		raise_cell();
		go_on(READ)
	}

	/* A crash, wherever it stands; or a start after a stop. */
	:: atomic {
		life[0] + life[1] < CRASHES ->
		life[me]++;
		cell[me] = 0;
		end_backends();
		end_claim();
		go_on(READ)
	}

	/* A crash under a living postmaster, wherever it stands. */
	:: atomic {
		survived < KEPT ->
		survived++;
		end_backends();
		if
		:: step == WRITE && ask.holder != NOBODY && !guard(KEPT_WHEN_CONFIRMED) ->
			limit[me] = ask.granted_until;
			kept = ask.expected + 1
		:: step == PUBLISH_LIMIT && mine == 0 && !guard(KEPT_AS_A_WHOLE) ->
			limit[me] = ask.granted_until;
			kept = ask.expected + 1;
			start = 1
		:: else
		fi;
		if
		:: kept != 0 -> go_on_as_kept()
		:: else -> cell[me] = 0; end_claim(); go_on(READ)
		fi
	}
	od
}

/*
 * A backend.  A claim that has ended or changed makes the swap fail, since no later
 * one begins at a word that can be swapped for a tick below an earlier limit.
 */

#define mine_seen seen[_pid - SERVERS]

#ifdef LEASE
#define may_issue (now < limit[me] && mine_seen.word <= now)	/* before the deadline */
#define first_tick now
#define last_tick now
#else
#define may_issue (mine_seen.word < limit[me])
#define first_tick mine_seen.word
#if WITHOUT == BELOW_THE_LIMIT
#define last_tick TICKS
#else
#define last_tick (mine_seen.limit - 1)
#endif
#endif

#ifdef PROMPT
#define may_still_issue may_issue
#else
#define may_still_issue true
#endif

active [SERVERS * BACKENDS] proctype backend()
{
end:
	do
	:: atomic {
		mine_seen.word == 0 && word[me] != INVALID ->
		mine_seen.word = word[me]
	}
	:: atomic {
		mine_seen.word != 0 && mine_seen.limit == 0 ->
		if
		:: may_issue -> mine_seen.limit = limit[me]
		:: else -> mine_seen.word = 0
		fi
	}
	:: atomic {
		mine_seen.limit != 0 ->
		if
		:: (word[me] == mine_seen.word || !guard(COMPARE_WORD)) && may_still_issue ->
			any_tick(tick, first_tick, last_tick);
			word[me] = tick + 1;
			used[me] = tick + 1;
			assert(!issued[tick]);
			issued[tick] = true;
#ifdef REACH
			turns = turns + (issuer != me);
			issuer = me;
#endif
			visit(BOTH_ISSUE, turns == 2);
			visit(ISSUE_IN_TURNS, turns == 3);
			visit(ISSUE_WHEN_LOST, row.holder != nonce && row.holder != NOBODY);
			visit(ISSUE_AFTER_CRASH, life[me] > 0);
			visit(ISSUE_WHEN_KEPT, kept_claim[me] != 0)
		:: else
		fi;
		mine_seen.word = 0;
		mine_seen.limit = 0
	}
	od
}

/* What was on its way when the connection was lost may arrive. */
active [SERVERS] proctype network()
{
end:
	do
	:: atomic {
		is_late[me] ->
		execute(late[me], guard(COMPARE_LATE));
		visit(DONE_LATE, written);
		clear(late[me]);
		is_late[me] = false
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
