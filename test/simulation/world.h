/*
 * world.h
 *		What surrounds the generators of one simulated server: time, the lock,
 *		the log that survives a crash, and the backends' view of them.
 *
 * One history is run at a time, on one thread.  Backends are fibers; they change
 * places at any access to a shared atomic and at any call of the environment.
 */
#ifndef SNOWFLAKE_SIMULATION_WORLD_H
#define SNOWFLAKE_SIMULATION_WORLD_H

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "core/generator.h"
#include "fiber.h"
#include "random.h"

namespace snowflake::simulation
{

constexpr int64_t year_ns = 365 * 86400 * ns_per_s;

constexpr int max_backends = 4;
constexpr int nobody = -1;

/*
 * The write-ahead log: the limit after each record.  A crash keeps what was
 * flushed, and any part of what was written after that.
 */
class Log
{
public:
	void		begin(int64_t limit_us) noexcept
	{
		limits_[0] = limit_us;
		written_ = flushed_ = 0;
	}

	/* Returns the record's position. */
	int			write(int64_t limit_us) noexcept
	{
		if (written_ + 1 == max_records)
			abort();
		limits_[++written_] = limit_us;
		return written_;
	}

	void		flush(int position) noexcept
	{
		flushed_ = std::max(flushed_, position);
	}

	/* What would be lost after this position is. */
	void		cut(int position) noexcept
	{
		written_ = flushed_ = position;
	}

	/* The least limit that may be there after a crash. */
	int64_t		durable_us() const noexcept
	{
		int64_t		least = limits_[flushed_];

		for (int i = flushed_ + 1; i <= written_; i++)
			least = std::min(least, limits_[i]);
		return least;
	}

	int64_t		limit_us() const noexcept
	{
		return limits_[written_];
	}
	int64_t		limit_us(int position) const noexcept
	{
		return limits_[position];
	}
	int			written() const noexcept
	{
		return written_;
	}
	int			flushed() const noexcept
	{
		return flushed_;
	}

private:
	static constexpr int max_records = 4096;

	int			written_ = 0;
	int			flushed_ = 0;
	int64_t		limits_[max_records];
};

struct World
{
	Random		random{0};
	uint64_t	seed = 0;
	bool		tracing = false;
	const char *program = "simulate";	/* in test/simulation/build */

	/* Time.  The wall clock is boot_ns + offset_ns. */
	int64_t		boot_ns = 0;
	int64_t		offset_ns = 0;

	/* The greatest offset that the server may have believed; a clock further ahead must not move the limit. */
	int64_t		believable_ns = 0;

	/*
	 * The greatest offset since the server's start: a backend may have read the
	 * clock then, and compare it with what was accepted since.
	 */
	int64_t		greatest_offset_ns = 0;

	/* How far past the believable clock a reservation may lie at most. */
	int64_t		slack_us = 0;

	/* The most that is reserved ahead, by a call whose reservations take longer than what they reserve. */
	int64_t		most_ahead_us = 0;

	/* advance_past() was called: the caller may move the limit as far as he wants. */
	bool		advanced = false;

	Log			log;
	int			lock_holder = nobody;
	int			limits_set = 0;			/* calls of SimEnvironment::set_limit() */

	/* How this history runs. */
	int			cancel_one_in = 0;		/* 0: never */
	int64_t		pace_ns = 1;			/* time that passes while a backend runs, at most */
	int64_t		recent_age_ns = 0;

	/* The running backend pauses after so many more steps. */
	int			steps_left = 0;
	int			running = nobody;

	int64_t		wall_ns() const noexcept
	{
		return boot_ns + offset_ns;
	}
};

inline World world;

inline void trace(const char *format, ...) noexcept __attribute__((format(printf, 1, 2)));
inline void check(bool holds, const char *format, ...) noexcept __attribute__((format(printf, 2, 3)));

inline void
trace(const char *format, ...) noexcept
{
	va_list		arguments;

	if (!world.tracing)
		return;
	printf("%12.3f ms  backend %2d  ", static_cast<double>(world.boot_ns) / 1e6, world.running);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
}

/* An invariant. */
inline void
check(bool holds, const char *format, ...) noexcept
{
	va_list		arguments;

	if (__builtin_expect(holds, true))
		return;
	fflush(stdout);
	fprintf(stderr, "seed %" PRIu64 ", backend %d: ", world.seed, world.running);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\nto see it happen: test/simulation/build/%s --seed %" PRIu64 "\n", world.program, world.seed);
	exit(1);
}

/* A place where another backend may go on. */
inline void
step() noexcept
{
	if (--world.steps_left < 0)
		Fiber::pause();
}

/* Stands in for std::atomic<uint64_t>. */
class SimAtomic
{
public:
	uint64_t	load(std::memory_order) const noexcept
	{
		step();
		return value_;
	}

	void		store(uint64_t value, std::memory_order) noexcept
	{
		step();
		value_ = value;
	}

	uint64_t	fetch_add(uint64_t more, std::memory_order) noexcept
	{
		uint64_t	old;

		step();
		old = value_;
		value_ += more;
		return old;
	}

	uint64_t	fetch_and(uint64_t mask, std::memory_order) noexcept
	{
		uint64_t	old;

		step();
		old = value_;
		value_ &= mask;
		return old;
	}

	bool		compare_exchange_strong(uint64_t &expected, uint64_t desired, std::memory_order,
										std::memory_order) noexcept
	{
		step();
		if (value_ != expected)
		{
			expected = value_;
			return false;
		}
		value_ = desired;
		return true;
	}

	/* May fail for no reason. */
	bool		compare_exchange_weak(uint64_t &expected, uint64_t desired, std::memory_order success,
									  std::memory_order failure) noexcept
	{
		if (world.random.one_in(16))
		{
			step();
			expected = value_;
			return false;
		}
		return compare_exchange_strong(expected, desired, success, failure);
	}

	/* For the checks: no step. */
	uint64_t	peek() const noexcept
	{
		return value_;
	}

private:
	uint64_t	value_ = 0;
};

/* The ids that a call was given, taken apart. */
struct Issued
{
	Issued(const Layout &layout, const Taken &taken) noexcept
	{
		const Parts parts = take_apart(layout, taken.id);
		const Steps steps(layout);

		tick = parts.tick;
		node = parts.node;
		sequence = parts.sequence;
		first = steps.first_step(tick) + sequence;
		last = first + static_cast<uint64_t>(taken.count) - 1;
		is_in_one_tick = steps.tick_of(last) == tick;
	}

	int64_t		tick;
	uint64_t	node;
	uint64_t	sequence;		/* of the first one */
	uint64_t	first;			/* steps: tick and sequence */
	uint64_t	last;
	bool		is_in_one_tick;
};

/* One backend's environment.  Its functions may leave, as PostgreSQL's may by an error. */
class SimEnvironment
{
public:
	void		begin(int backend, Fiber *fiber, uint64_t node) noexcept
	{
		*this = SimEnvironment{};
		backend_ = backend;
		fiber_ = fiber;
		node_ = node;
	}

	int64_t		now_ns() noexcept
	{
		step();
		read_at_ns_ = world.boot_ns;
		return reading_ns_ = world.wall_ns();
	}

	int64_t		boot_ns() noexcept
	{
		step();
		return boot_read_ns_ = world.boot_ns;
	}

	int64_t		recent_ns() noexcept
	{
		if (read_at_ns_ < 0 || world.boot_ns - read_at_ns_ > world.recent_age_ns || world.random.one_in(2))
			return now_ns();
		step();
		return reading_ns_;
	}

	ClockReading read_clock() noexcept
	{
		step();
		read_offset_ns_ = world.offset_ns;
		return {world.wall_ns(), world.offset_ns};
	}

	void		lock() noexcept
	{
		may_leave();
		check(world.lock_holder != backend_, "the lock was taken twice");
		step();
		while (world.lock_holder != nobody)
			Fiber::pause();
		world.lock_holder = backend_;
	}

	void		unlock() noexcept
	{
		check_locked(true, "unlock");
		world.lock_holder = nobody;
		step();
	}

	bool claim_source(ClaimSource *source) noexcept
	{
		check_locked(true, "claim_source");
		may_leave();
		*source = {node_, world.log.limit_us()};
		return true;
	}

	void		prepare_limit() noexcept
	{
		check_locked(false, "prepare_limit");
		may_leave();
		/* Where the lock is held, a change of the limit may be half done. */
		prepared_ = world.lock_holder == nobody ? world.limits_set : unknown;
	}

	void		advance_limit(int64_t limit_us) noexcept
	{
		check_locked(true, "advance_limit");
		check(prepared_ == unknown || prepared_ == world.limits_set,
			  "a limit is written that was prepared before set_reserved_until()");
		check(world.advanced ||
			  limit_us <= (world.boot_ns + world.believable_ns) / ns_per_us + world.slack_us + world.most_ahead_us,
			  "time is reserved by a clock that is not to be believed: %" PRId64 " us past the one that is",
			  limit_us - (world.boot_ns + world.believable_ns) / ns_per_us);
		may_leave();
		position_ = world.log.write(std::max(limit_us, world.log.limit_us()));
		trace("writes the limit %" PRId64 " us", limit_us);
		may_leave();
	}

	void		set_limit(int64_t limit_us) noexcept
	{
		check_locked(true, "set_limit");
		world.limits_set++;
		may_leave();
		position_ = world.log.write(limit_us);
		trace("sets the limit to %" PRId64 " us", limit_us);
		may_leave();
	}

	void		flush_limit() noexcept
	{
		check_locked(false, "flush_limit");
		for (int64_t waits = world.random.below(4); waits > 0; waits--)
		{
			Fiber::pause();
			may_leave();
		}
		world.log.flush(position_);
		trace("flushed");
		step();
	}

	int64_t		wait(int64_t ns, bool first) noexcept
	{
		int64_t		start = world.boot_ns;

		if (first)
			waits_since_ns_ = boot_read_ns_;
		in_wait_ = true;

		check_locked(false, "wait");
		check(ns > 0 && ns <= longest_wait_ns, "a wait of %" PRId64 " ns", ns);
		trace("waits for %" PRId64 " ns", ns);
		asked_ns_ = slept_ns_ + ns;
		/* A signal may end it early. */
		wake_ns_ = start + (world.random.one_in(8) ? world.random.below(ns) : ns);
		do
		{
			may_leave();
			Fiber::pause();
		} while (world.boot_ns < wake_ns_);
		may_leave();
		in_wait_ = false;
		slept_ns_ += world.boot_ns - start;
		return world.boot_ns - start;
	}

	int64_t		wait_for_pace(int64_t ns, bool first) noexcept
	{
		return wait(ns, first);
	}

	int64_t		wait_for_grant(int64_t, int64_t ns, bool first) noexcept
	{
		return wait(ns, first);
	}

	void		clock_ahead(int64_t, int64_t) noexcept
	{
		check_locked(false, "clock_ahead");
		may_leave();
	}

	void		begin_call() noexcept
	{
		slept_ns_ = asked_ns_ = 0;
		waits_since_ns_ = INT64_MAX;
		in_wait_ = false;
	}

	/* For the scheduler and the checks. */
	bool		asleep() const noexcept
	{
		return world.boot_ns < wake_ns_;
	}
	int64_t		wake_ns() const noexcept
	{
		return wake_ns_;
	}
	int64_t		reading_ns() const noexcept
	{
		return reading_ns_;
	}
	/* What read_clock() said last; the call may go by it yet. */
	int64_t		read_offset_ns() const noexcept
	{
		return read_offset_ns_;
	}
	bool		in_wait() const noexcept
	{
		return in_wait_;
	}
	/* Since its first wait began. */
	int64_t		waited_ns() const noexcept
	{
		return waits_since_ns_ == INT64_MAX ? 0 : world.boot_ns - waits_since_ns_;
	}
	int64_t		asked_ns() const noexcept
	{
		return asked_ns_;
	}
	int			position() const noexcept
	{
		return position_;
	}

	/* The backend is gone, its lock with it. */
	void		release() noexcept
	{
		if (world.lock_holder == backend_)
			world.lock_holder = nobody;
		wake_ns_ = 0;
	}

private:
	void		check_locked(bool locked, const char *where) noexcept
	{
		check((world.lock_holder == backend_) == locked,
			  "%s is called %s the lock", where, locked ? "without" : "under");
	}

	/* A cancelled call, or an error. */
	void		may_leave() noexcept
	{
		step();
		if (world.cancel_one_in != 0 && world.random.one_in(world.cancel_one_in))
		{
			trace("is cancelled");
			release();
			fiber_->leave();
		}
	}

	static constexpr int unknown = -1;

	int			backend_ = nobody;
	Fiber	   *fiber_ = nullptr;
	uint64_t	node_ = 0;
	int64_t		reading_ns_ = 0;
	int64_t		read_offset_ns_ = INT64_MIN;
	int64_t		read_at_ns_ = -1;
	int64_t		wake_ns_ = 0;
	int64_t		boot_read_ns_ = 0;	/* what boot_ns() said last */
	int64_t		waits_since_ns_ = INT64_MAX;	/* of this call; INT64_MAX: it has not waited */
	int64_t		slept_ns_ = 0;		/* in this call */
	bool		in_wait_ = false;
	int64_t		asked_ns_ = 0;		/* in this call, with the last wait as long as it was asked for */
	int			position_ = 0;
	int			prepared_ = unknown;	/* world.limits_set when a reservation was begun */
};

static_assert(Environment<SimEnvironment>);

}  // namespace snowflake::simulation

#endif
