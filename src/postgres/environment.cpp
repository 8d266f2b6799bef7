/*
 * environment.cpp
 *		What the generator needs of PostgreSQL: clocks, the durable limit, the
 *		lock, waits that can be cancelled.
 */
#include "postgres/environment.h"

#include <algorithm>
#include <new>

#include "postgres/carried.h"
#include "postgres/errors.h"
#include "postgres/grant.h"
#include "postgres/layout.h"
#include "postgres/layout_change.h"
#include "postgres/node.h"
#include "postgres/reservation.h"

#include "postgres/pg.h"

namespace snowflake
{

namespace
{

/* WaitLatch() counts milliseconds: what is shorter is slept, which a signal ends too. */
constexpr int64_t shortest_latch_wait_ns = 2 * ns_per_ms;

/* In the last year of the layout's time the log is told once a day. */
constexpr int64_t end_warning_pause_us = 86400LL * 1000 * 1000;

constinit ServerEnvironment environment;

/* Constructed in place: a library's static objects must not need code that runs while it is loaded. */
alignas(ServerGenerator) char generator_storage[sizeof(ServerGenerator)];

/* Makes the generator where there is none yet, and lets it follow the settings. */
pg_noinline void
prepare_generator()
{
	if (own_generator == nullptr)
	{
		if (shared() == nullptr)
			report_not_preloaded();
		own_counters = &shared()->backends[backend_number()];
		own_generator = new (generator_storage) ServerGenerator(shared()->generator, server_layout(), environment,
																queue_places(), static_cast<size_t>(backend_number()));
	}
	own_generator->set_options(generator_options());
	/* What checks in is asked again by the next id. */
	generator_options_changed = !is_checked_in();
}

/* An error where the layout is for reading only: a limit could not say in which one it was made. */
void
check_makes_ids()
{
	Reason		reason;

	if (is_for_reading_only(server_layout(), &reason))
	{
		count_error();
		report_for_reading_only(reason);
	}
}

/* One year before the layout's time ends, and daily from then on. */
void
warn_of_end(int64 now_us)
{
	Atomic64   &pause = shared()->next_end_warning_us;
	uint64_t	next = pause.load(std::memory_order_relaxed);

	if (!ends_within_a_year(server_layout(), now_us) || now_us < static_cast<int64>(next))
		return;
	if (pause.compare_exchange_strong(next, static_cast<uint64_t>(now_us + end_warning_pause_us)))
		report_end(LOG_SERVER_ONLY, server_layout());
}

/* Counts a wait that is over, and returns how long it was, ns. */
int64_t
count_wait(int64_t start_ns, bool first)
{
	static int64_t waited_in_call = 0;
	Atomic64   &longest = shared()->longest_wait_ns;
	uint64_t	before = longest.load(std::memory_order_relaxed);
	int64_t		waited = boot_clock_ns() - start_ns;

	waited_in_call = waited + (first ? 0 : waited_in_call);
	count(own_counters->waits, first ? 1 : 0);
	count(own_counters->wait_ns, static_cast<uint64_t>(waited));
	while (before < static_cast<uint64_t>(waited_in_call) &&
		   !longest.compare_exchange_weak(before, static_cast<uint64_t>(waited_in_call), std::memory_order_relaxed))
		;
	return waited;
}

/* Sleeps for less than a latch can count. */
void
sleep_briefly(int64_t ns, uint32 event)
{
	timespec	time = {0, static_cast<long>(ns)};

	pgstat_report_wait_start(event);
	nanosleep(&time, nullptr);
	pgstat_report_wait_end();
	if (IsUnderPostmaster && !PostmasterIsAlive())
		proc_exit(1);
}

/* A call that ends here leaves the queue. */
void
check_for_interrupts()
{
	if (QueryCancelPending || ProcDiePending)
		own_generator->give_up_place();
	CHECK_FOR_INTERRUPTS();
}

/* Waits about so long, unless it is interrupted; returns how long it was, ns. */
int64_t
sleep_for(int64_t ns, bool first, uint32 event)
{
	int64_t		start = boot_clock_ns();

	if (ns >= shortest_latch_wait_ns)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ns / ns_per_ms - 1, event);
		ResetLatch(MyLatch);
	}
	else
		sleep_briefly(ns, event);

	int64_t		waited = count_wait(start, first);

	check_for_interrupts();
	return waited;
}

}  // namespace

constinit BackendCounters *own_counters;
constinit ServerGenerator *own_generator;
constinit bool changes_to_hear;

/*
 * The generator looks at the clock so on each way on which it goes round again
 * without issuing anything: that is where a call can be cancelled.
 */
ClockReading
ServerEnvironment::read_clock() noexcept
{
	check_for_interrupts();
	return server_clock.read();
}

void
ServerEnvironment::lock() noexcept
{
	lock_shared_state();
}

void
ServerEnvironment::unlock() noexcept
{
	unlock_shared_state();
}

bool
ServerEnvironment::claim_source(ClaimSource *source) noexcept
{
	const ServerNode &node = server_node();
	int64_t		start_us;

	check_not_in_recovery("snowflake_nextval()");
	check_makes_ids();
	if (!node.usable)
	{
		count_error();
		report_no_node();
	}
	if (!has_registry())
		*source = {node.number, read_limit()};
	else if (!read_grant(source))
		return false;
	if (!find_layout_start(server_clock.now_us(), &start_us))
	{
		count_error();
		report_layout_change();
	}
	source->granted_from_us = std::max(source->granted_from_us, start_us);
	return true;
}

void
ServerEnvironment::prepare_limit() noexcept
{
	int64		now_us = server_clock.now_us();

	check_makes_ids();
	check_limit_for_ids();
	if (!record_layout(now_us))
	{
		count_error();
		report_layout_change();
	}
	warn_of_end(now_us);
	if (has_registry())
		ask_for_time_after(position_us(now_us));
}

void
ServerEnvironment::advance_limit(int64_t limit_us) noexcept
{
	log_position_ = log_limit(limit_us, false);
}

void
ServerEnvironment::flush_limit() noexcept
{
	flush_log(log_position_);
}

void
ServerEnvironment::set_limit(int64_t limit_us) noexcept
{
	log_position_ = log_limit(limit_us, true);
}

/* With the next id: not in the middle of this one. */
void
ServerEnvironment::hear(int64_t now_ns) noexcept
{
	heard_at_ns_ = now_ns;
	changes_to_hear = true;
}

int64_t
ServerEnvironment::wait(int64_t ns, bool first) noexcept
{
	static constinit WaitEvent event("SnowflakeClock");

	return sleep_for(ns, first, event.number());
}

int64_t
ServerEnvironment::wait_for_pace(int64_t ns, bool first) noexcept
{
	static constinit WaitEvent event("SnowflakeSessionRate");

	return sleep_for(ns, first, event.number());
}

int64_t
ServerEnvironment::wait_for_grant(int64_t us, int64_t ns, bool first) noexcept
{
	int64_t		start = boot_clock_ns();

	return wait_for_keeper(std::max(us, position_us(server_clock.now_us())), ns) ? count_wait(start, first) : 0;
}

void
ServerEnvironment::clock_ahead(int64_t now_ns, int64_t durable_us) noexcept
{
	/* A registry has compared it with its own. */
	if (clock_source() == ClockSource::realtime && !has_registry())
		warn_of_clock_ahead(now_ns / ns_per_us, durable_us);
}

ServerGenerator &
server_generator()
{
	/* True at the start, until there is a generator. */
	if (unlikely(generator_options_changed))
		prepare_generator();
	return *own_generator;
}

/* Before ids are made: prepares the generator and the database. */
pg_noinline void
prepare_ids()
{
	if (changes_to_hear)
	{
		changes_to_hear = false;
		/* May call look_again(). */
		AcceptInvalidationMessages();
		if (!generator_options_changed)
			return;
	}
	prepare_generator();
	if (!is_checked_in())
		check_in();
	generator_options_changed = !is_checked_in();
}

void
check_not_in_recovery(const char *call)
{
	if (!RecoveryInProgress())
		return;
	count_error();
	PreventCommandDuringRecovery(call);
}

void
check_limit_for_ids()
{
	if (is_limit_writable())
		return;
	count_error();
	check_limit_writable();
}

int64_t
newest_tick()
{
	int64_t		newest = server_generator().newest_id();

	return newest < 0 ? -1 : take_apart(server_layout(), newest).tick;
}

int64_t
position_us(int64_t now_us)
{
	int64_t		tick = newest_tick();

	return tick < 0 ? now_us : std::max(now_us, tick_begin_us(server_layout(), tick + 1));
}

}  // namespace snowflake
