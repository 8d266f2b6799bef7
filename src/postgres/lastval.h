/*
 * lastval.h
 *		What snowflake_lastval() returns: the newest id that this session was given.
 */
#ifndef SNOWFLAKE_POSTGRES_LASTVAL_H
#define SNOWFLAKE_POSTGRES_LASTVAL_H

#include <cstdint>

namespace snowflake __attribute__((visibility("hidden")))
{

struct NewestId
{
	int64_t		id;				/* -1: none yet */
	uint64_t	turn;			/* in which it was taken */
};

extern NewestId newest_id;

/* Counts the turns in which this session has taken ids. */
extern uint64_t last_turn;

/*
 * An id is given to the session.  One of a batch that is still being read may
 * come after ids of later turns, which are newer.  Not by comparing the ids:
 * those after snowflake_set_reserved_until() may be smaller.
 */
inline void
remember_id(int64_t id, uint64_t turn)
{
	if (turn >= newest_id.turn)
		newest_id = {id, turn};
}

/* As if the session had been given none. */
void		forget_newest_id();

}  // namespace snowflake

#endif
