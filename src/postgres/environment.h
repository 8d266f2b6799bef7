/*
 * environment.h
 *		The server's generator: the core's, with PostgreSQL as its environment.
 */
#ifndef SNOWFLAKE_POSTGRES_ENVIRONMENT_H
#define SNOWFLAKE_POSTGRES_ENVIRONMENT_H

#include "core/generator.h"
#include "postgres/clock.h"
#include "postgres/settings.h"
#include "postgres/shared.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/*
 * What the generator needs of PostgreSQL (core/environment.h).  These functions
 * report errors, and leave by them; the lock is released then.
 */
class ServerEnvironment
{
public:
	int64_t		now_ns() noexcept
	{
		return server_clock.now_ns();
	}

	int64_t		recent_ns() noexcept
	{
		int64_t		now = server_clock.recent_ns();

		if (static_cast<uint64_t>(now - heard_at_ns_) >= hear_every_ns) [[unlikely]]
			hear(now);
		return now;
	}

	int64_t		boot_ns() noexcept
	{
		return boot_clock_ns();
	}

	ClockReading read_clock() noexcept;
	void		lock() noexcept;
	void		unlock() noexcept;
	bool		claim_source(ClaimSource *source) noexcept;
	void		prepare_limit() noexcept;
	void		advance_limit(int64_t limit_us) noexcept;
	void		flush_limit() noexcept;
	void		set_limit(int64_t limit_us) noexcept;
	int64_t		wait(int64_t ns, bool first) noexcept;
	int64_t		wait_for_pace(int64_t ns, bool first) noexcept;
	int64_t		wait_for_grant(int64_t us, int64_t ns, bool first) noexcept;
	void		clock_ahead(int64_t now_ns, int64_t durable_us) noexcept;

private:
	/* So often a long statement learns what others have changed: that restored ids lie above, for example. */
	static constexpr uint64_t hear_every_ns = ns_per_ms;

	void		hear(int64_t now_ns) noexcept;

	int64_t		heard_at_ns_ = 0;
	uint64_t	log_position_ = 0;
};

using ServerGenerator = Generator<Atomic64, ServerEnvironment>;

/* The generator, following the settings as they are now.  An error where the library was not preloaded. */
ServerGenerator &server_generator();

/*
 * For generator_for_ids() alone: what makes the generator ready, where it is then, and
 * whether others' changes are to be heard of.
 */
void		prepare_ids();
extern ServerGenerator *own_generator;
extern bool changes_to_hear;

/* The same for making ids: an error, too, where this database may make none (check_in()).  Inline: each id needs it. */
inline ServerGenerator &
generator_for_ids()
{
	if (generator_options_changed || changes_to_hear) [[unlikely]]
		prepare_ids();
	return *own_generator;
}

/* Errors that keep ids from being made, and are counted: on a standby; where the limit can't be written. */
void		check_not_in_recovery(const char *call);
void		check_limit_for_ids();

/* Who moves the limit further ahead of the clock than this would stop the server for that long. */
constexpr int64_t furthest_advance_us = 86400LL * 1000 * 1000;

/* This backend's counters, which only it writes; there with the generator. */
extern BackendCounters *own_counters;

inline void
count(Atomic64 &counter, uint64_t more)
{
	counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

/* The tick of the newest id; -1 where this server has made none since it started. */
int64_t		newest_tick();

/* How far this server has come, Unix microseconds: the end of the newest id's tick, or now where that is later. */
int64_t		position_us(int64_t now_us);

}  // namespace snowflake

#endif
