/*
 * fake_environment.h
 *		A server for the generator that the test drives: its clocks, its durable
 *		limit, and what happens while somebody is inside one of its functions.
 *
 * The clocks stand still unless the test moves them or a call waits: then they
 * run on by what it waits.  Everything may be used from several threads.
 */
#ifndef SNOWFLAKE_TEST_FAKE_ENVIRONMENT_H
#define SNOWFLAKE_TEST_FAKE_ENVIRONMENT_H

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/generator.h"
#include "layouts.h"

namespace snowflake
{

constexpr int64_t hour_us = 3600 * us_per_s;
constexpr int64_t year_us = 365 * 24 * hour_us;

using State = SharedState<std::atomic<uint64_t>>;

/* What the backends of a server share. */
struct FakeServer
{
	State		state;
	std::array<Place<std::atomic<uint64_t>>, 64> places{};
	std::atomic<size_t> backends{0};
	std::mutex	mutex;
	uint64_t	node = 5;

	std::atomic<int64_t> boot_ns{1000 * ns_per_s};
	std::atomic<int64_t> offset_ns{0};

	/* What the registry grants; all time where nobody says otherwise. */
	std::atomic<bool> is_granted{true};
	std::atomic<int64_t> granted_from_us{0};
	std::atomic<int64_t> granted_until_us{INT64_MAX};

	/* The limit as it was written, and as much of it as would survive a crash. */
	std::atomic<int64_t> written_us{0};
	std::atomic<int64_t> durable_us{0};

	FakeServer()
	{
		state.initialize();
	}

	int64_t		wall_ns() const
	{
		return boot_ns + offset_ns;
	}

	/* Sets the wall clock, as somebody with the right to do so. */
	void		set_wall_us(int64_t us)
	{
		offset_ns = us * ns_per_us - boot_ns;
	}

	/* A crash or a restart: what was in memory is gone. */
	void		restart()
	{
		state.initialize();
		for (auto &place : places)
			place.since = place.until = 0;
		written_us = durable_us.load();
	}
};

/* One backend's view. */
class FakeEnvironment
{
public:
	explicit FakeEnvironment(FakeServer &server) : server_(server)
	{
	}

	int64_t		now_ns()
	{
		return server_.wall_ns();
	}

	int64_t		boot_ns()
	{
		return server_.boot_ns;
	}

	int64_t		recent_ns()
	{
		return old_reading_ns != 0 ? old_reading_ns : server_.wall_ns();
	}

	ClockReading read_clock()
	{
		/* One reading: the offset belongs to the time. */
		int64_t		offset = server_.offset_ns;
		ClockReading reading = {server_.boot_ns + offset, offset};

		/* A call that goes round and round looks at it each time. */
		if (++readings > most_readings)
			give_up();
		call(on_read_clock);
		return reading;
	}

	void		lock()
	{
		call(on_lock);
		server_.mutex.lock();
	}

	void		unlock()
	{
		server_.mutex.unlock();
	}

	bool claim_source(ClaimSource *source)
	{
		claims++;
		if (!server_.is_granted)
			return false;
		*source = {server_.node, server_.written_us, server_.granted_from_us, server_.granted_until_us};
		return true;
	}

	void		prepare_limit()
	{
		call(on_prepare);
	}

	void		advance_limit(int64_t us)
	{
		written.push_back(us);
		server_.written_us = std::max(server_.written_us.load(), us);
	}

	void		flush_limit()
	{
		int64_t		us = server_.written_us;

		call(on_flush);
		flushes++;
		/* Never backwards by a flush that is late; set_reserved_until() says so itself. */
		std::lock_guard guard(server_.mutex);

		server_.durable_us = set_back_ ? server_.written_us.load() : std::max(server_.durable_us.load(), us);
		set_back_ = false;
	}

	void		set_limit(int64_t us)
	{
		written.push_back(us);
		server_.written_us = us;
		set_back_ = true;
	}

	int64_t		wait(int64_t ns, bool)
	{
		int64_t		start = server_.boot_ns;

		waits.push_back(ns);
		if (on_wait)
			on_wait(ns);
		else
			server_.boot_ns += ns;
		return server_.boot_ns - start;
	}

	int64_t		wait_for_pace(int64_t ns, bool first)
	{
		return wait(ns, first);
	}

	int64_t		wait_for_grant(int64_t us, int64_t ns, bool)
	{
		int64_t		start = server_.boot_ns;

		grants_wanted.push_back(us);
		if (ns == 0)
			return 0;
		grant_waits.push_back(ns);
		if (grant_waits.size() > most_readings)
			give_up();
		if (on_wait_for_grant)
			on_wait_for_grant(ns);
		return server_.boot_ns - start;
	}

	void		clock_ahead(int64_t, int64_t)
	{
		warnings++;
	}

	/* What was done. */
	size_t		readings = 0;
	int			claims = 0;
	int			flushes = 0;
	int			warnings = 0;
	std::vector<int64_t> waits;		/* ns */
	std::vector<int64_t> grant_waits;	/* ns */
	std::vector<int64_t> grants_wanted; /* up to where, us */
	std::vector<int64_t> written;	/* limits, us */

	/* What happens meanwhile; each but the waits once, so that it can call the generator itself. */
	std::function<void()> on_read_clock;	/* after the reading */
	std::function<void()> on_lock;			/* before it is got */
	std::function<void()> on_prepare;
	std::function<void()> on_flush;			/* before it is durable */
	std::function<void(int64_t)> on_wait;	/* instead of the clocks running on */
	std::function<void(int64_t)> on_wait_for_grant;	/* without it nothing is worth waiting for */

	/* What recent_ns() gives, until it is 0. */
	int64_t		old_reading_ns = 0;

private:
	static constexpr size_t most_readings = 1000000;

	[[noreturn]] static void give_up()
	{
		fprintf(stderr, "a call of the generator does not end\n");
		exit(1);
	}

	static void call(std::function<void()> &hook)
	{
		std::function<void()> once;

		once.swap(hook);
		if (once)
			once();
	}

	FakeServer &server_;
	bool		set_back_ = false;
};

static_assert(Environment<FakeEnvironment>);

/* A backend of the server: its environment, its settings, its generator. */
class Backend
{
public:
	Backend(FakeServer &server, const Layout &layout) :
		environment(server),
		  generator(server.state, layout, environment, server.places, server.backends++ % server.places.size())
	{
		apply();
	}

	/* After a change of the options. */
	void		apply()
	{
		generator.set_options(options);
	}

	Taken		take(int64_t wanted = 1)
	{
		return generator.take(wanted);
	}

	FakeEnvironment environment;
	Options		options = {
		.sequence_start = SequenceStart::zero,
		.max_drift_us = 0,
		.max_wait_ns = 2 * ns_per_s,
		.reserve_ahead_us = 500 * us_per_ms,
		.max_forward_jump_ns = hour_us * ns_per_us,
	};
	Generator<std::atomic<uint64_t>, FakeEnvironment> generator;
};

}  // namespace snowflake

#endif
