/*
 * reservation.h
 *		The durable limit and the scale that it was made on: PostgreSQL's WAL as
 *		the store of a static node's claim.
 *
 * PostgreSQL has a cluster-wide 64-bit cell that is WAL-logged, flushed at
 * checkpoints, replayed on standbys and part of a base backup: a replication
 * origin's progress.  The limit, Unix microseconds, is the progress of the origin
 * number 65534, which has no row in pg_replication_origin: one for all databases,
 * nothing to create or to drop.  Writing it assigns no transaction id.
 *
 * A limit of one microsecond stands for one that was lost: pg_upgrade has brought
 * databases whose ids lie nobody knows where.  Every true limit lies above it, and
 * so takes its place.
 *
 * Origin 65533 likewise says on which scale (core/scale.h) the ids below the limit
 * were made, and whether it was accepted over another one.  0: no scale was recorded,
 * because there is no limit yet or an older version wrote it.
 */
#ifndef SNOWFLAKE_POSTGRES_RESERVATION_H
#define SNOWFLAKE_POSTGRES_RESERVATION_H

#include <cstdint>

namespace snowflake __attribute__((visibility("hidden")))
{

constexpr uint16_t limit_origin = 65534;
constexpr uint16_t scale_origin = 65533;
constexpr int origins_needed = 2;

constexpr int64_t lost_limit_us = 1;

/* The limit as this server knows it; 0 where there never was one, or it is lost.  In recovery, as replayed so far. */
int64_t		read_limit();
bool		is_limit_lost();

/* The scale, as encode_scale() has it; 0 where none was written. */
uint64_t	read_scale();

/* Reports an error where limit and scale can't be written.  Reads a catalog: not under a lock. */
void		check_limit_writable();

/* Would that be no error? */
bool		is_limit_writable();

/*
 * Writes the limit's WAL record; limit_us counts where it is higher than before,
 * with backwards always.  Returns the position up to which the WAL is to be
 * flushed before the limit may be relied on.
 */
uint64_t	log_limit(int64_t limit_us, bool backwards);

/* The same for the scale, whatever it was before. */
uint64_t	log_scale(uint64_t scale);

/*
 * Waits until the WAL is flushed up to there: here, and on the synchronous
 * standbys where they are defined, whatever synchronous_commit says.  Can be
 * cancelled; then nothing is known about the standbys.
 */
void		flush_log(uint64_t position);

}  // namespace snowflake

#endif
