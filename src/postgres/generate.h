/*
 * generate.h
 *		The server's generator: the core's, with PostgreSQL as its environment.
 */
#ifndef SNOWFLAKE_POSTGRES_GENERATE_H
#define SNOWFLAKE_POSTGRES_GENERATE_H

#include "core/generator.h"
#include "postgres/shared.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/*
 * PostgreSQL as the generator sees it.  Its functions report errors, and leave
 * by them; the lock is released then.
 */
class Server
{
public:
	int64_t		now_ns() noexcept;
	int64_t		recent_ns() noexcept;
	ClockReading read_clock() noexcept;
	void		lock() noexcept;
	void		unlock() noexcept;
	bool		claim_source(ClaimSource *source) noexcept;
	void		prepare_limit() noexcept;
	void		advance_limit(int64_t limit_us) noexcept;
	void		flush_limit() noexcept;
	void		set_limit(int64_t limit_us) noexcept;
	int64_t		wait(int64_t ns, bool first) noexcept;
	int64_t		wait_for_grant(int64_t us, int64_t ns, bool first) noexcept;
	void		clock_ahead(int64_t now_ns, int64_t durable_us) noexcept;

private:
	void		check_makes_ids() noexcept;

	uint64_t	log_position_ = 0;

	/* The last reading of the clock, and the cycles() at which it was read */
	int64_t		read_ns_ = 0;
	uint64_t	read_at_ = 0;
};

using ServerGenerator = Generator<Atomic64, Server>;

/* The generator, following the settings as they are now.  An error where the library was not preloaded. */
ServerGenerator &server_generator();

/* How far this server has come, Unix microseconds: the end of the newest id's tick, or the clock's time where that is later. */
int64_t		position_us(int64_t now_us);

/* Why ids of this layout can only be read, whatever the clock says; false where they can be made. */
bool		is_for_reading_only(const Layout &layout, Reason *reason);

/* The error of such a layout. */
[[noreturn]] void report_for_reading_only(const Reason &reason);

}  // namespace snowflake

#endif
