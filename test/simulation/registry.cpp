/*
 * registry.cpp
 *		Random histories of several simulated servers that share one registry.
 *
 *		registry [--histories N] [--first SEED]		successive seeds
 *		registry --seed SEED						one, and tells what happens
 *
 * Each server has a clock of its own, mostly wrong, a log, backends that take ids,
 * and the keeper of src/core/keeper.h, which takes its turns at any time.  The registry compares and swaps, as
 * ZooKeeper does, or looks at each write by admit() in src/core/claim.cpp, as
 * src/sql/registry.sql does.  It may hold any holder for dead at any moment; a
 * request may be lost, or come late, and so may its answer; another transaction may be
 * in the way of a write; and it may go back to what it was before, which it notices by
 * its memory alone.  A server may crash whole, or all its processes but the postmaster.
 *
 * What must hold, over all servers and all time:
 *	- what is granted to different servers under one node number never overlaps;
 *	- no id lies outside what the registry had confirmed to its server by then;
 *	- no id twice, nor outside what is durable, and on each server they increase.
 *
 * A registry that was restored may know less than its holders do.  While it is
 * unsettled they tell it; it settles here as soon as each holder that is alive has
 * been heard.  What it can't know is excused: what was granted to holders that are
 * dead, to those that come too late, to one that had lost its number to another
 * without having noticed, and has it back in the restored registry, and what lies
 * further ahead than the restored registry may be told of (core/claim.h, Bounds).
 */
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "core/claim.h"
#include "core/keeper.h"
#include "options.h"
#include "world.h"

namespace snowflake::simulation
{

namespace
{

constexpr int max_servers = 3;
constexpr int backends_per_server = 2;
constexpr int fibers_per_server = backends_per_server + 1;	/* the last one is the keeper */
constexpr int max_nodes = 4;
constexpr int64_t automatic = -1;

/* Over all histories: shows that what should be tried was tried. */
struct Coverage
{
	int64_t		ids;
	int64_t		ungranted;
	int64_t		grants;
	int64_t		renewals;
	int64_t		losses;
	int64_t		assertions;
	int64_t		releases;
	int64_t		unanswered;
	int64_t		adopted;
	int64_t		late;
	int64_t		refused;
	int64_t		busy;
	int64_t		out_of_bounds;
	int64_t		crashes;
	int64_t		process_crashes;
	int64_t		torn;
	int64_t		gone_on;
	int64_t		stops;
	int64_t		restarts;
	int64_t		restores;
	int64_t		noticed;
	int64_t		settled;
	int64_t		excused;
};

Coverage coverage;

/*
 * The registry
 */

/* What a backup of the registry has. */
struct Rows
{
	Claim		claims[max_nodes];
	int64_t		write_numbers[max_nodes];
	int64_t		alive_until_us[max_nodes];
	int64_t		windows_us[max_nodes];
	bool		is_doubtful[max_nodes];	/* claimed anew while unsettled */
	int64_t		granted_in[max_nodes];	/* the settled incarnation that made the grant */
	int64_t		incarnation;		/* as in the memory; 0: none yet */
};

/* What it has not, and a restart leaves: see src/registry/server.cpp. */
struct Memory
{
	int64_t		incarnation;
	int64_t		committed;
	int64_t		drawn;
};

struct Registry
{
	Rows		rows;
	Rows		before_last;		/* as it was before the newest write */
	Memory		memory;
	int64_t		incarnations;		/* all that there were */
	int64_t		settled;			/* this incarnation has settled */
	int64_t		freed[max_nodes];
	int64_t		freed_count;
	int64_t		offset_ns;
	int64_t		max_forward_jump_us;
	bool		by_version;			/* ZooKeeper's way of comparing */

	bool		is_out_of_bounds;	/* what was refused last */

	/* The truth: how often it was put back, and how often connections ended. */
	int			epoch;
	int			connection;

	void begin() noexcept
	{
		const bool	is_new = world.random.one_in(2);

		forget();
		before_last = rows;
		memset(freed, 0, sizeof(freed));
		freed_count = 0;
		epoch = connection = 0;
		memory = {};
		incarnations = settled = 0;
		if (!is_new)
		{
			(void) is_unsettled();
			settled = rows.incarnation;
		}
	}

	/* As the tables are when they are made. */
	void forget() noexcept
	{
		memset(static_cast<void *>(&rows), 0, sizeof(rows));
		for (int node = 0; node < max_nodes; node++)
			rows.claims[node].node = static_cast<uint64_t>(node);
	}

	int64_t clock_us() const noexcept
	{
		return (world.boot_ns + offset_ns) / ns_per_us;
	}

	int64_t newest_write() const noexcept
	{
		return *std::max_element(rows.write_numbers, rows.write_numbers + max_nodes);
	}

	/* Notices that it may have forgotten something, as snowflake_internal.registry_unsettled() does. */
	bool is_unsettled() noexcept
	{
		if (rows.incarnation == 0 || rows.incarnation != memory.incarnation || newest_write() < memory.committed)
		{
			rows.incarnation = memory.incarnation = ++incarnations;
			memory.committed = newest_write();
			memory.drawn = std::max(memory.drawn, newest_write());
			trace("the registry notices that it may have forgotten something");
			coverage.noticed++;
		}
		return rows.incarnation != settled;
	}

	/* What somebody has read, he may rely upon: the memory is told of it, too. */
	RegistryTime time() noexcept
	{
		const bool	unsettled = is_unsettled();

		memory.committed = std::max(memory.committed, newest_write());
		return {clock_us(), max_forward_jump_us, unsettled ? 1000 : 0, "", false};
	}

	void set_dead(uint64_t node) noexcept
	{
		rows.claims[node].is_alive = false;
		rows.alive_until_us[node] = std::min(rows.alive_until_us[node], clock_us());
		freed[node] = ++freed_count;
	}

	/* What others may tell of a living holder's number, as snowflake_internal.registry_fence() has it. */
	int64_t furthest_of_others_us(uint64_t node) const noexcept
	{
		const int64_t ahead_us = rows.claims[node].granted_until_us - rows.alive_until_us[node];

		if (rows.is_doubtful[node])
			return clock_us() + max_forward_jump_us;
		return clock_us() + longest_window_us + std::max<int64_t>(ahead_us, 0);
	}

	/* The settled incarnation that it is now; 0: it has not settled. */
	int64_t settled_incarnation() noexcept
	{
		return is_unsettled() ? 0 : rows.incarnation;
	}

	/* Does the registry know what the grant of this number began with? */
	bool is_from_here(uint64_t node) noexcept
	{
		return !is_unsettled() && rows.granted_in[node] == rows.incarnation;
	}

	/* Written::done where this may be written, with the fence that it is written with. */
	Written look_at(Form form, const Holder &writer, const Claim &before, const Claim &next,
					int64_t *granted_until_us) noexcept
	{
		const uint64_t node = next.node;
		Claim		claim = rows.claims[node];

		if (!is_from_here(node))
			claim.granted_from_us = claim.granted_until_us;
		if (by_version)
			return claim.version == before.version ? Written::done : Written::changed;

		const bool	is_others = form == Form::assertion && claim.is_alive && !claim.holder.is_nobody() &&
			!claim.holder.is(writer);
		const Bounds bounds = {clock_us() + max_forward_jump_us,
							   is_others && is_unsettled() ? furthest_of_others_us(node) : 0};
		const Admission admission = admit(form, claim, writer.nonce, before.generation, next.generation,
										  next.granted_until_us, bounds, granted_until_us);

		if (admission == Admission::admitted)
			return Written::done;
		if (admission == Admission::changed)
			return Written::changed;

		const int64_t furthest_us = std::min(is_others ? bounds.furthest_of_others_us : INT64_MAX, bounds.furthest_us);

		is_out_of_bounds = next.granted_until_us > std::max(furthest_us, claim.granted_until_us);
		trace("the registry refuses to write node %" PRIu64 ": %d", node, static_cast<int>(admission));
		coverage.refused++;
		return Written::refused;
	}

	/*
	 * As snowflake_internal.registry_write() does.  is_noted: the memory is told of the
	 * commit; the process may be gone before that, but has given no answer then.
	 */
	Written write(Form form, const Holder &writer, const Claim &before, const Claim &next, int64_t window_us,
				  bool is_noted) noexcept
	{
		const uint64_t node = next.node;
		Claim	   &claim = rows.claims[node];
		const int64_t version = claim.version;
		int64_t		granted_until_us = next.granted_until_us;
		const Written looked = look_at(form, writer, before, next, &granted_until_us);

		if (looked != Written::done)
			return looked;
		before_last = rows;
		if (form == Form::assertion && claim.generation > 0)
		{
			claim.generation = next.generation;
			claim.granted_from_us = std::max(claim.granted_from_us, granted_until_us);
		}
		else
		{
			const Holder holder = form == Form::claim ? writer : Holder{};

			const int64_t granted_from_us = claim.holder.is(writer) && is_from_here(node) ?
				claim.granted_from_us : claim.granted_until_us;

			rows.is_doubtful[node] = !by_version && form == Form::claim && is_unsettled() &&
				(rows.is_doubtful[node] || !claim.holder.is(writer));

			claim = next;
			claim.granted_from_us = granted_from_us;
			claim.holder = holder;
			claim.is_alive = form == Form::claim;
			rows.alive_until_us[node] = clock_us() + window_us;
			if (form == Form::claim)
			{
				rows.windows_us[node] = window_us;
				rows.granted_in[node] = settled_incarnation();
			}
			else
				freed[node] = ++freed_count;
		}
		claim.granted_until_us = granted_until_us;
		claim.version = version + 1;
		memory.drawn = std::max(memory.drawn, newest_write()) + 1;
		rows.write_numbers[node] = memory.drawn;
		if (is_noted)
			memory.committed = std::max(memory.committed, memory.drawn);
		trace("the registry has: node %" PRIu64 ", generation %" PRId64 ", holder %s, up to %" PRId64 " us",
			  claim.node, claim.generation, claim.holder.is_nobody() ? "none" : claim.holder.nonce,
			  claim.granted_until_us);
		return Written::done;
	}
};

Registry registry;

/* What the registry may be set back to. */
constexpr int max_snapshots = 4;
Rows		snapshots[max_snapshots];

/* Requests that are under way though their answer is not waited for any more. */
struct Request
{
	bool		is_there;
	int			connection;
	Form		form;
	Holder		writer;
	Claim		before;
	Claim		next;
	int64_t		window_us;
};

constexpr int max_requests = 4;
Request		requests[max_requests];

/*
 * The truth: who was granted what, and which ids there are
 */

/* One holding of one node number, from its grant to its end. */
struct Episode
{
	int			server;
	int			life;
	uint64_t	node;
	int64_t		start_us;
	int64_t		confirmed_until_us;
	int64_t		issued_until_us;
	int64_t		until_us;		/* what is confirmed, or, once nothing is issued any more, what was issued */
	int			epoch;			/* of the registry that has confirmed it last, or was told of it */
	bool		is_live;
	bool		is_excused;
};

struct Run
{
	int			server;
	uint64_t	node;
	uint64_t	first;			/* steps */
	uint64_t	last;
	int			episode;
};

constexpr int max_episodes = 1024;
constexpr int max_runs = 4096;
constexpr int none = -1;

Episode		episodes[max_episodes];
int			episode_count;
Run			runs[max_runs];
int			run_count;

void
excuse(Episode &episode) noexcept
{
	if (episode.is_excused)
		return;
	trace("what server %d was granted on node %" PRIu64 " up to %" PRId64 " us is excused",
		  episode.server, episode.node, episode.until_us);
	episode.is_excused = true;
	coverage.excused++;
}

/* Its holder is gone, or holds something else: does the registry know up to where it went? */
void
end_episode(Episode &episode) noexcept
{
	episode.is_live = false;
	if (episode.epoch != registry.epoch && episode.until_us > registry.rows.claims[episode.node].granted_until_us)
		excuse(episode);
}

/* Connections end, and with them the requests that are under way. */
void
restart_registry() noexcept
{
	registry.connection++;
	for (Request &request : requests)
		request.is_there = false;
}

/* What different servers were granted never overlaps. */
void
check_apart(const Episode &one) noexcept
{
	for (int i = 0; i < episode_count; i++)
	{
		const Episode &other = episodes[i];

		if (other.node != one.node || other.server == one.server || other.is_excused || one.is_excused)
			continue;
		check(std::max(one.start_us, other.start_us) >= std::min(one.until_us, other.until_us),
			  "node %" PRIu64 " is granted to server %d from %" PRId64 " to %" PRId64 " us, "
			  "and to server %d from %" PRId64 " to %" PRId64 " us",
			  one.node, one.server, one.start_us, one.until_us, other.server, other.start_us, other.until_us);
	}
}

/*
 * A server
 */

struct Server;

/* A backend's or the keeper's environment. */
class RegistryEnvironment
{
public:
	void		begin(Server *server, int number, Fiber *fiber) noexcept
	{
		*this = RegistryEnvironment{};
		server_ = server;
		number_ = number;
		fiber_ = fiber;
	}

	int64_t		now_ns() noexcept;
	int64_t		boot_ns() noexcept
	{
		return world.boot_ns;
	}
	int64_t		recent_ns() noexcept;
	ClockReading read_clock() noexcept;
	void		lock() noexcept;
	void		unlock() noexcept;
	bool		claim_source(ClaimSource *source) noexcept;
	void		prepare_limit() noexcept;
	void		advance_limit(int64_t limit_us) noexcept;
	void		flush_limit() noexcept;
	void		set_limit(int64_t limit_us) noexcept;
	int64_t		wait(int64_t ns, bool) noexcept;
	int64_t		wait_for_pace(int64_t ns, bool first) noexcept
	{
		return wait(ns, first);
	}
	int64_t		wait_for_grant(int64_t us, int64_t ns, bool first) noexcept;
	void		clock_ahead(int64_t, int64_t) noexcept
	{
	}

	bool		is_asleep() const noexcept
	{
		return world.boot_ns < wake_ns_;
	}
	int64_t		wake_ns() const noexcept
	{
		return wake_ns_;
	}

	/* It is gone, its lock with it. */
	void		release() noexcept;

private:
	void		demand(int64_t us) noexcept;
	void		check_locked(bool locked, const char *where) noexcept;
	void		may_leave() noexcept;

	Server	   *server_ = nullptr;
	int			number_ = nobody;
	Fiber	   *fiber_ = nullptr;
	int64_t		wake_ns_ = 0;
	int			position_ = 0;
};

static_assert(Environment<RegistryEnvironment>);

using RegistryGenerator = Generator<SimAtomic, RegistryEnvironment>;

/*
 * What surrounds a keeper.  It also keeps the truth: what the registry has
 * confirmed to this server, and what the registry knows of what it lost.
 */
class KeeperWorld
{
public:
	explicit	KeeperWorld(Server *server) noexcept : server_(server)
	{
	}

	int64_t		boot_us() noexcept;
	int64_t		clock_us() noexcept;
	int64_t		issued_until_us() noexcept;
	int64_t		durable_us() noexcept;
	int64_t		take_demand_us() noexcept;
	int64_t		window_us() noexcept;
	double		random() noexcept;
	bool		fixed_node(uint64_t *node) noexcept;
	uint64_t	max_node() noexcept;
	bool		connect(Problem *problem) noexcept;
	void		disconnect() noexcept;
	bool		read(uint64_t node, Claim *claim, RegistryTime *registry, Problem *problem) noexcept;
	bool		list(const ListedClaim **claims, int64_t *count, Problem *problem) noexcept;
	Written		write(Form form, const Claim &before, const Claim &next, Problem *problem) noexcept;
	void		publish(const Grant &grant) noexcept;
	void		remember(const Grant &grant) noexcept;
	void		withdraw() noexcept;
	void		keep_lost(const LostGrants &lost) noexcept;
	int64_t		revoke() noexcept;
	void		extend(int64_t granted_until_us) noexcept;
	void		show(ClaimState state, const Grant &grant, const Trouble &trouble) noexcept;
	void		lost(const Grant &grant, const Claim &claim) noexcept;
	void		assertion_refused(const Grant &grant, const Problem &problem) noexcept;

private:
	Written		write_once(Form form, const Claim &before, const Claim &next) noexcept;
	void		begin_episode(const Grant &grant) noexcept;
	void		share(const Grant &grant, bool is_usable) noexcept;

	Server	   *server_;
	ListedClaim list_[max_nodes];
};

static_assert(KeeperEnvironment<KeeperWorld>);

/* What a crash of all processes but the postmaster leaves, where no process was writing it. */
struct Kept
{
	bool		is_whole;
	bool		is_usable;
	Grant		grant;
	LostGrants	lost;
};

struct Server
{
	/* A backend, or the keeper. */
	struct Process
	{
		Fiber		fiber;
		RegistryEnvironment environment;
		std::optional<RegistryGenerator> generator;
		int64_t		stalled_until = 0;	/* round */
	};

	int			number;
	Process		processes[fibers_per_server];

	/* Of this history. */
	int64_t		wanted_node;			/* or automatic */
	Options		options;
	int64_t		window_us;
	int64_t		offset_ns;
	Log			log;
	int64_t		partitioned_until;		/* round */
	int64_t		down_until;				/* round */
	int64_t		issued_end_us;			/* of all ids, over all lives */
	bool		is_late;				/* it is not heard while the registry is unsettled */

	/* Of this life. */
	int			life;
	bool		is_up;
	int			lock_holder;
	SharedState<SimAtomic> state;
	Place<SimAtomic> places[fibers_per_server];
	uint64_t	newest_step;			/* returned */

	/* In shared memory: what the registry has granted, as the backends see it, and what they ask for. */
	bool		is_usable;
	Grant		shown;
	LostGrants	lost;
	bool		has_problem;
	int64_t		demanded_until_us;

	/* In the memory of the postmaster's whole life. */
	Kept		kept;

	/* The keeper's own. */
	Holder		me;
	std::optional<KeeperWorld> keeper_world;
	std::optional<Keeper<KeeperWorld>> keeper;

	/*
	 * The clock by which a claim counts as renewed in time.  It stands still but where
	 * the registry holds a claim for expired: time for the keeper passes then at least.
	 */
	int64_t		keeper_clock_us;
	int			connection;				/* and the registry's epoch in it */
	int			epoch;
	bool		is_unheard;				/* an answer was missing, or the claim has changed */
	bool		is_assertion_unheard;	/* the same of an assertion */
	bool		is_stopping;
	bool		is_releasing;
	bool		is_released;

	/* The truth. */
	static constexpr int max_lost = 16;
	int			episode;				/* that is held, or none */
	int			lost_episodes[max_lost];	/* that are to be asserted */
	int			lost_count;

	int64_t wall_ns() const noexcept
	{
		return world.boot_ns + offset_ns;
	}
	Process &keeper_process() noexcept
	{
		return processes[backends_per_server];
	}

	/* As long as a claim counts as alive. */
	void pass_window() noexcept
	{
		keeper_clock_us += window_us;
	}
};

Server		servers[max_servers];
int			server_count;
const Layout *layout;
int64_t		current_round;
bool		is_settling;

/* The network is left alone in the end. */
bool
happens(int64_t one_in) noexcept
{
	return !is_settling && world.random.one_in(one_in);
}

int64_t
begin_us(int64_t tick) noexcept
{
	return tick_begin_us(*layout, tick);
}

/* The end of the newest id's tick, or now where that is later. */
int64_t
position_us(Server &server, int64_t now_us) noexcept
{
	const int64_t newest = server.keeper_process().generator->newest_id();

	return newest < 0 ? now_us : std::max(now_us, begin_us(take_apart(*layout, newest).tick + 1));
}

int64_t
RegistryEnvironment::now_ns() noexcept
{
	step();
	return server_->wall_ns();
}

int64_t
RegistryEnvironment::recent_ns() noexcept
{
	return now_ns();
}

ClockReading
RegistryEnvironment::read_clock() noexcept
{
	step();
	return {server_->wall_ns(), server_->offset_ns};
}

void
RegistryEnvironment::lock() noexcept
{
	may_leave();
	check(server_->lock_holder != number_, "the lock was taken twice");
	step();
	while (server_->lock_holder != nobody)
		Fiber::pause();
	server_->lock_holder = number_;
}

void
RegistryEnvironment::unlock() noexcept
{
	check_locked(true, "unlock");
	server_->lock_holder = nobody;
	step();
}

bool
RegistryEnvironment::claim_source(ClaimSource *source) noexcept
{
	check_locked(true, "claim_source");
	may_leave();
	if (!server_->is_usable)
		return false;
	*source = {server_->shown.node, server_->log.limit_us(), server_->shown.start_us, server_->shown.granted_until_us};
	return true;
}

void
RegistryEnvironment::prepare_limit() noexcept
{
	check_locked(false, "prepare_limit");
	may_leave();

	const int64_t us = position_us(*server_, server_->wall_ns() / ns_per_us);

	if (server_->shown.granted_until_us - us < server_->window_us / 2)
		demand(us);
}

void
RegistryEnvironment::advance_limit(int64_t limit_us) noexcept
{
	check_locked(true, "advance_limit");
	may_leave();
	position_ = server_->log.write(std::max(limit_us, server_->log.limit_us()));
	trace("writes the limit %" PRId64 " us", limit_us);
}

void
RegistryEnvironment::flush_limit() noexcept
{
	check_locked(false, "flush_limit");
	for (int64_t waits = world.random.below(3); waits > 0; waits--)
	{
		Fiber::pause();
		may_leave();
	}
	server_->log.flush(position_);
	step();
}

void
RegistryEnvironment::set_limit(int64_t limit_us) noexcept
{
	check_locked(true, "set_limit");
	position_ = server_->log.write(limit_us);
}

int64_t
RegistryEnvironment::wait(int64_t ns, bool) noexcept
{
	int64_t		start = world.boot_ns;

	check_locked(false, "wait");
	check(ns > 0 && ns <= longest_wait_ns, "a wait of %" PRId64 " ns", ns);
	wake_ns_ = start + ns;
	do
	{
		may_leave();
		Fiber::pause();
	} while (world.boot_ns < wake_ns_);
	return world.boot_ns - start;
}

int64_t
RegistryEnvironment::wait_for_grant(int64_t us, int64_t ns, bool first) noexcept
{
	demand(std::max(us, position_us(*server_, server_->wall_ns() / ns_per_us)));
	return server_->has_problem || ns == 0 ? 0 : wait(std::min(ns, server_->window_us * ns_per_us / 4), first);
}

void
RegistryEnvironment::demand(int64_t us) noexcept
{
	step();
	server_->demanded_until_us = std::max(server_->demanded_until_us, us);
}

void
RegistryEnvironment::release() noexcept
{
	if (server_->lock_holder == number_)
		server_->lock_holder = nobody;
	wake_ns_ = 0;
}

void
RegistryEnvironment::check_locked(bool locked, const char *where) noexcept
{
	check((server_->lock_holder == number_) == locked, "%s is called %s the lock", where, locked ? "without" : "under");
}

/* A backend may be cancelled, or fail.  The keeper catches what it can. */
void
RegistryEnvironment::may_leave() noexcept
{
	step();
	if (number_ != backends_per_server && world.cancel_one_in != 0 && happens(world.cancel_one_in))
	{
		release();
		fiber_->leave();
	}
}

/*
 * The truth about what a keeper holds and has lost
 */

/* The registry has this server's claim up to there. */
void
confirm(const Server &server, const Grant &grant) noexcept
{
	check(server.episode != none, "server %d goes on with a claim that it has taken back", server.number);

	Episode	   &episode = episodes[server.episode];

	episode.confirmed_until_us = episode.until_us = grant.granted_until_us;
	check_apart(episode);
}

/* What lies further ahead than the registry may be told of, it does not know. */
void
excuse_out_of_bounds(int episode) noexcept
{
	coverage.out_of_bounds += !episodes[episode].is_excused;
	excuse(episodes[episode]);
}

void
excuse_out_of_bounds(const Server &server, Form form, uint64_t node) noexcept
{
	if (!registry.is_out_of_bounds)
		return;
	if (form != Form::assertion && server.episode != none)
		excuse_out_of_bounds(server.episode);
	for (int i = 0; form == Form::assertion && i < server.lost_count; i++)
	{
		if (episodes[server.lost_episodes[i]].node == node)
			excuse_out_of_bounds(server.lost_episodes[i]);
	}
}

/* The registry that the server has spoken to knows how far this holding went. */
void
set_told(const Server &server, int episode) noexcept
{
	if (episode == none)
		return;
	episodes[episode].epoch = server.epoch;
	end_episode(episodes[episode]);
}

/* Was what was lost told since? */
void
see_assertion(Server &server) noexcept
{
	const LostGrants &lost = server.lost;
	int			count = 0;

	for (int i = 0; i < server.lost_count; i++)
	{
		const int	episode = server.lost_episodes[i];

		if (std::any_of(lost.each, lost.each + lost.count, [episode] (const LostGrant &one) {
				return one.grant.node == episodes[episode].node;
			}))
			server.lost_episodes[count++] = episode;
		else
			set_told(server, episode);
	}
	server.lost_count = count;
}

/*
 * The store, as a keeper sees it
 */

bool
is_cut_off(const Server &server) noexcept
{
	return server.partitioned_until > current_round || server.connection != registry.connection;
}

bool
KeeperWorld::connect(Problem *) noexcept
{
	Fiber::pause();
	if (server_->partitioned_until > current_round || happens(20))
	{
		server_->is_unheard = true;
		return false;
	}
	server_->connection = registry.connection;
	server_->epoch = registry.epoch;
	return true;
}

void
KeeperWorld::disconnect() noexcept
{
}

bool
KeeperWorld::read(uint64_t node, Claim *claim, RegistryTime *time, Problem *) noexcept
{
	see_assertion(*server_);
	Fiber::pause();
	if (is_cut_off(*server_) || happens(40))
	{
		server_->is_unheard = true;
		return false;
	}
	*time = registry.time();
	*claim = registry.rows.claims[node];
	Fiber::pause();
	server_->is_unheard = server_->is_assertion_unheard || is_cut_off(*server_);
	return !is_cut_off(*server_);
}

bool
KeeperWorld::list(const ListedClaim **claims, int64_t *count, Problem *) noexcept
{
	Fiber::pause();
	if (is_cut_off(*server_))
		return false;
	*claims = list_;
	*count = 0;
	for (const Claim &claim : registry.rows.claims)
	{
		if (claim.generation > 0)
			list_[(*count)++] = {claim.node, claim.granted_until_us, registry.freed[claim.node],
								 claim.holder.is_nobody() || !claim.is_alive};
	}
	return true;
}

/* The request, or its answer, may be lost, or come late. */
Written
KeeperWorld::write_once(Form form, const Claim &before, const Claim &next) noexcept
{
	const int64_t window_us = form == Form::claim ? server_->window_us : 0;
	Written		written;

	Fiber::pause();
	if (is_cut_off(*server_) || happens(40))
		return Written::unknown;
	if (happens(12))
	{
		/* It is still to come, or never. */
		requests[world.random.below(max_requests)] = {true, registry.connection, form, server_->me, before, next,
													  window_us};
		return Written::unknown;
	}
	if (happens(40))
	{
		(void) registry.write(form, server_->me, before, next, window_us, false);
		restart_registry();
		return Written::unknown;
	}
	/* Nothing is written, and the server is told so. */
	if (!registry.by_version && happens(20))
	{
		coverage.busy++;
		return Written::busy;
	}
	written = registry.write(form, server_->me, before, next, window_us, true);
	Fiber::pause();
	if (is_cut_off(*server_) || happens(12))
	{
		trace("the answer is missing");
		return Written::unknown;
	}
	return written;
}

Written
KeeperWorld::write(Form form, const Claim &before, const Claim &next, Problem *) noexcept
{
	const Written written = write_once(form, before, next);

	coverage.assertions += form == Form::assertion;
	coverage.unanswered += written == Written::unknown;
	coverage.releases += form == Form::release && written == Written::done;
	if (written == Written::refused)
		excuse_out_of_bounds(*server_, form, next.node);

	const bool	is_to_be_repeated = written == Written::changed || written == Written::busy;

	server_->is_unheard |= written == Written::unknown || is_to_be_repeated;
	if (form == Form::assertion)
		server_->is_assertion_unheard = is_to_be_repeated;
	return written;
}

/*
 * The server, as a keeper sees it
 */

int64_t
KeeperWorld::boot_us() noexcept
{
	return server_->keeper_clock_us;
}

int64_t
KeeperWorld::clock_us() noexcept
{
	step();
	return server_->wall_ns() / ns_per_us;
}

int64_t
KeeperWorld::issued_until_us() noexcept
{
	return position_us(*server_, 0);
}

int64_t
KeeperWorld::durable_us() noexcept
{
	return server_->log.limit_us();
}

int64_t
KeeperWorld::take_demand_us() noexcept
{
	return std::exchange(server_->demanded_until_us, 0);
}

int64_t
KeeperWorld::window_us() noexcept
{
	return server_->window_us;
}

double
KeeperWorld::random() noexcept
{
	return 0.5;
}

bool
KeeperWorld::fixed_node(uint64_t *node) noexcept
{
	if (server_->wanted_node == automatic)
		return false;
	*node = static_cast<uint64_t>(server_->wanted_node);
	return true;
}

uint64_t
KeeperWorld::max_node() noexcept
{
	return static_cast<uint64_t>(layout->max_node());
}

/* Changes what the backends see, and what a crash of the processes leaves of it: that may be half written. */
void
KeeperWorld::share(const Grant &grant, bool is_usable) noexcept
{
	RegistryEnvironment &environment = server_->keeper_process().environment;

	environment.lock();
	server_->is_usable = is_usable;
	server_->shown = grant;
	server_->kept.is_whole = false;
	step();
	server_->kept.is_usable = server_->is_usable;
	step();
	server_->kept.grant = server_->shown;
	step();
	server_->kept.lost = server_->lost;
	server_->kept.is_whole = true;
	environment.unlock();
}

void
KeeperWorld::begin_episode(const Grant &grant) noexcept
{
	if (episode_count == max_episodes)
		abort();
	server_->episode = episode_count++;
	episodes[server_->episode] = {server_->number, server_->life, grant.node, grant.start_us, 0, 0, 0,
								  server_->epoch, true, false};
	confirm(*server_, grant);
	coverage.grants++;
}

void
KeeperWorld::publish(const Grant &grant) noexcept
{
	trace("server %d has node %" PRIu64 ", generation %" PRId64 ", from %" PRId64 " to %" PRId64 " us",
		  server_->number, grant.node, grant.generation, grant.start_us, grant.granted_until_us);
	coverage.renewals += server_->is_usable;
	confirm(*server_, grant);
	episodes[server_->episode].epoch = server_->epoch;
	share(grant, true);
}

/* What was adopted is confirmed thereby. */
void
KeeperWorld::remember(const Grant &grant) noexcept
{
	coverage.adopted += grant.generation != server_->shown.generation;
	confirm(*server_, grant);
	share(grant, true);
}

void
KeeperWorld::withdraw() noexcept
{
	share(server_->shown, false);
}

void
KeeperWorld::keep_lost(const LostGrants &lost) noexcept
{
	server_->lost = lost;
	share(server_->shown, server_->is_usable);
}

int64_t
KeeperWorld::revoke() noexcept
{
	const bool	is_end = server_->episode != none || server_->is_releasing;

	/* What is revoked while nothing is held makes room for what the registry has just confirmed. */
	if (!is_end)
		begin_episode(server_->keeper->grant());

	const int64_t issued_until_us = server_->keeper_process().generator->revoke();

	/* From here on the rest may be given to others. */
	if (is_end && server_->episode != none)
	{
		Episode	   &episode = episodes[server_->episode];

		episode.until_us = std::max(episode.start_us, episode.issued_until_us);
	}
	return issued_until_us;
}

void
KeeperWorld::extend(int64_t granted_until_us) noexcept
{
	server_->keeper_process().generator->extend(granted_until_us);
}

void
KeeperWorld::show(ClaimState state, const Grant &, const Trouble &trouble) noexcept
{
	server_->has_problem = state != ClaimState::held;
	check(server_->has_problem == (trouble.kind != Trouble::Kind::none), "a state and its trouble do not agree");
	if (trouble.kind == Trouble::Kind::verdict)
		trace("server %d is refused: verdict %d", server_->number, static_cast<int>(trouble.verdict));
}

/* The keeper has this to tell the registry, beside what it had before. */
void
KeeperWorld::lost(const Grant &grant, const Claim &claim) noexcept
{
	trace("server %d has lost node %" PRIu64, server_->number, grant.node);
	coverage.losses++;
	check(!claim.holder.is(server_->me) || registry.epoch > 0,
		  "server %d loses what nobody else was granted", server_->number);
	if (server_->episode != none)
	{
		if (server_->lost_count == Server::max_lost)
			abort();
		server_->lost_episodes[server_->lost_count++] = server_->episode;
	}
	server_->episode = none;
	server_->has_problem = true;
}

void
KeeperWorld::assertion_refused(const Grant &, const Problem &) noexcept
{
}

/* Where the registry has answered to the last try, nothing can be excused by what it was not told. */
void
stop(Server &server) noexcept
{
	server.is_releasing = true;
	server.is_unheard = server.is_assertion_unheard = false;
	server.keeper->release();
	see_assertion(server);
	if (server.is_unheard)
		return;
	set_told(server, server.episode);
	for (int i = 0; i < server.lost_count; i++)
		set_told(server, server.lost_episodes[i]);
}

void
take_turn(Server &server) noexcept
{
	if (server.is_stopping)
	{
		if (!server.is_released)
			stop(server);
		server.is_released = true;
		return;
	}
	if (server.keeper->is_connected() && server.connection != registry.connection)
		server.keeper->lose_connection();

	const int64_t begun_us = server.keeper_clock_us;

	server.keeper->take_turn();
	see_assertion(server);
	/* A claim that is held, and of which nothing is known that is wrong, is renewed before it counts as expired. */
	check(!server.is_usable || server.has_problem || server.keeper->next_turn_us() <= begun_us + server.window_us / 2,
		  "server %d does not renew its claim in time", server.number);
}

/*
 * The backends
 */

void
check_issued(Server &server, const Taken &taken, uint64_t above_step) noexcept
{
	const Issued issued(*layout, taken);
	const int64_t tick = issued.tick;
	int			episode = none;

	trace("server %d issued %" PRId64 " of node %" PRIu64 " from tick %" PRId64 " (%" PRId64 " us), sequence %" PRIu64,
		  server.number, taken.count, issued.node, tick, begin_us(tick), issued.sequence);
	coverage.ids += taken.count;

	for (int i = 0; i < episode_count && episode == none; i++)
	{
		const Episode &had = episodes[i];

		if (had.server == server.number && had.life == server.life && had.node == issued.node &&
			begin_us(tick) >= had.start_us && begin_us(tick + 1) <= had.confirmed_until_us)
			episode = i;
	}
	check(episode != none, "server %d was not granted tick %" PRId64 " (%" PRId64 " us) of node %" PRIu64,
		  server.number, tick, begin_us(tick), issued.node);
	check(begin_us(tick + 1) <= server.log.durable_us(), "tick %" PRId64 " is not durable", tick);
	check(issued.first > above_step, "an id that was returned before the call is greater");
	for (int i = 0; i < run_count; i++)
	{
		const Run  &run = runs[i];

		if (run.node != issued.node || issued.last < run.first || issued.first > run.last)
			continue;
		check(run.server != server.number && (episodes[run.episode].is_excused || episodes[episode].is_excused),
			  "servers %d and %d have issued node %" PRIu64 ", tick %" PRId64 ", sequence %" PRIu64,
			  run.server, server.number, issued.node, tick, issued.sequence);
	}
	if (run_count == max_runs)
		abort();
	episodes[episode].issued_until_us = std::max(episodes[episode].issued_until_us, begin_us(tick + 1));
	runs[run_count++] = {server.number, issued.node, issued.first, issued.last, episode};
	server.newest_step = std::max(server.newest_step, issued.last);
	server.issued_end_us = std::max(server.issued_end_us, begin_us(tick + 1));
}

void
call(Server &server, Server::Process &process) noexcept
{
	RegistryGenerator &generator = *process.generator;
	int64_t		now_tick = tick_at(*layout, server.wall_ns() / ns_per_us);
	uint64_t	above_step = server.newest_step;
	Taken		taken;

	if (happens(24))
	{
		int64_t		tick = world.random.one_in(2) ?
			static_cast<int64_t>(server.state.granted.peek()) + world.random.between(-2, 1) :
			now_tick + world.random.between(-3, 5);

		(void) generator.advance_past(std::clamp<int64_t>(tick, 0, now_tick + 100));
		return;
	}
	if (happens(48))
	{
		/* Only to where nothing was issued above. */
		(void) generator.set_reserved_until(std::max(server.issued_end_us,
													 begin_us(now_tick + world.random.between(-10, 3))));
		return;
	}
	taken = generator.take(world.random.between(1, 4));
	if (taken.failure == Failure::none)
		check_issued(server, taken, above_step);
	else
	{
		trace("server %d got no id: failure %d, tick %" PRId64 " (%" PRId64 " us), clock %" PRId64 " us",
			  server.number, static_cast<int>(taken.failure), taken.tick, begin_us(taken.tick),
			  server.wall_ns() / ns_per_us);
		coverage.ungranted += taken.failure == Failure::ungranted;
		check(taken.count == 0, "a failed call issued ids");
		check(taken.failure == Failure::ungranted || taken.failure == Failure::behind ||
			  taken.failure == Failure::standstill || taken.failure == Failure::forward_jump,
			  "failure %d", static_cast<int>(taken.failure));
	}
}

/* What a fiber does. */
void
job(int number) noexcept
{
	Server	   &server = servers[number / fibers_per_server];
	int			process = number % fibers_per_server;

	if (process == backends_per_server)
		take_turn(server);
	else
		call(server, server.processes[process]);
}

/*
 * A history
 */

void
begin_processes(Server &server) noexcept
{
	for (int i = 0; i < fibers_per_server; i++)
	{
		Server::Process &process = server.processes[i];

		process.environment.begin(&server, i, &process.fiber);
		process.generator.emplace(server.state, *layout, process.environment, server.places, static_cast<size_t>(i));
		process.generator->set_options(server.options);
		process.stalled_until = 0;
	}
}

/*
 * A keeper at the start, or another after one that has ended otherwise than by a
 * stop: it has what is in shared memory.
 */
void
begin_keeper(Server &server) noexcept
{
	see_assertion(server);
	if (!server.is_usable && server.episode != none)
		end_episode(episodes[server.episode]);
	if (!server.is_usable)
		server.episode = none;
	server.keeper_world.emplace(&server);
	server.keeper.emplace(*server.keeper_world);
	server.keeper->begin(server.me, server.is_usable ? ClaimState::held : ClaimState::none, server.shown,
						 server.is_usable, server.lost);
}

void
begin_life(Server &server) noexcept
{
	server.life++;
	server.is_up = true;
	server.lock_holder = nobody;
	server.state.initialize();
	for (Place<SimAtomic> &place : server.places)
		place = {};
	server.newest_step = 0;
	server.is_usable = server.has_problem = false;
	server.demanded_until_us = 0;
	server.shown = {};
	server.lost = {};
	server.kept = {true, false, {}, {}};
	server.is_stopping = server.is_releasing = server.is_released = false;
	server.keeper_clock_us = 1;
	server.episode = none;
	server.lost_count = 0;
	memset(&server.me, 0, sizeof(server.me));
	snprintf(server.me.nonce, sizeof(server.me.nonce), "server-%d-life-%d", server.number, server.life);
	begin_processes(server);
	begin_keeper(server);
}

void
end_processes(Server &server) noexcept
{
	world.steps_left = 0;
	for (Server::Process &process : server.processes)
	{
		process.fiber.kill();
		process.environment.release();
	}
}

/* The server is gone, and all that was in its memory. */
void
end_life(Server &server) noexcept
{
	end_processes(server);
	if (server.episode != none)
		end_episode(episodes[server.episode]);
	for (int i = 0; i < server.lost_count; i++)
		end_episode(episodes[server.lost_episodes[i]]);
	server.episode = none;
	server.lost_count = 0;
	server.is_up = false;
}

/*
 * All processes are gone, but the postmaster starts them again: the memory is new,
 * as initialize() in src/postgres/shared.cpp makes it.
 */
void
crash_processes(Server &server) noexcept
{
	trace("server %d loses all its processes", server.number);
	end_processes(server);
	server.log.cut(static_cast<int>(world.random.between(server.log.flushed(), server.log.written())));
	if (!server.kept.is_whole)
	{
		coverage.torn++;
		end_life(server);
		begin_life(server);
		return;
	}
	coverage.process_crashes++;
	coverage.gone_on += server.kept.is_usable;
	server.lock_holder = nobody;
	server.state.initialize();
	for (Place<SimAtomic> &place : server.places)
		place = {};
	server.has_problem = false;
	server.demanded_until_us = 0;
	server.is_usable = server.kept.is_usable;
	server.shown = server.kept.grant;
	server.lost = server.kept.lost;
	begin_processes(server);
	begin_keeper(server);
}

/* Rows that were there some time ago, or none at all. */
void
pick_backup() noexcept
{
	switch (world.random.below(10))
	{
		case 0:
			trace("the registry has forgotten all");
			registry.forget();
			break;
		case 1:
			{
				const int64_t incarnation = registry.rows.incarnation;

				trace("the registry has forgotten all claims");
				registry.forget();
				registry.rows.incarnation = incarnation;
			}
			break;
		case 2:
		case 3:
		case 4:
			trace("the registry has forgotten the newest write");
			registry.rows = registry.before_last;
			break;
		default:
			trace("the registry is restored");
			registry.rows = snapshots[world.random.below(max_snapshots)];
			/* By what it knows of an earlier time, a claim may have expired, though its holder has renewed it since. */
			for (uint64_t node = 0; node < max_nodes; node++)
			{
				if (registry.newest_write() < registry.memory.committed && world.random.one_in(2))
					registry.set_dead(node);
			}
			break;
	}
}

/* The registry is what it was some time ago, or its machine was started anew. */
void
restore(bool is_older) noexcept
{
	restart_registry();
	registry.epoch++;
	for (Server &server : servers)
		server.is_late = world.random.one_in(8);
	coverage.restores++;
	if (!is_older || world.random.one_in(4))
	{
		trace("the registry's memory is lost");
		registry.memory = {};
	}
	if (!is_older)
		return;
	pick_backup();
	for (int i = 0; i < episode_count; i++)
	{
		Episode	   &episode = episodes[i];

		if (!episode.is_live)
			end_episode(episode);
	}
	/* Before the first renewal. */
	if (world.random.one_in(4))
	{
		Server	   &server = servers[world.random.below(server_count)];

		server.is_stopping = server.is_up;
	}
}

/* Every holder that is alive has been heard, or comes too late. */
void
try_to_settle() noexcept
{
	if (!registry.is_unsettled())
		return;
	for (Server &server : servers)
	{
		for (int number = -1; number < server.lost_count; number++)
		{
			const int	i = number < 0 ? server.episode : server.lost_episodes[number];

			if (i == none || episodes[i].is_excused || (i == server.episode && episodes[i].epoch == registry.epoch))
				continue;
			if (!server.is_late || is_settling)
				return;
			if (episodes[i].until_us > registry.rows.claims[episodes[i].node].granted_until_us || i == server.episode)
				excuse(episodes[i]);
		}
	}
	trace("the registry has settled");
	registry.settled = registry.rows.incarnation;
	coverage.settled++;
	/* It takes as long as a claim counts as alive.  What is held was renewed in that time, or is excused. */
	for (Server &server : servers)
	{
		if (!server.is_usable)
			server.pass_window();
	}
}

enum class Event
{
	set_clock,
	set_right,
	crash,
	crash_processes,
	stop,
	restart_keeper,
	partition,
	stall,
	expire,
	deliver,
	snapshot,
	restore,
	restart_registry,
	restart_machine,
	settle,
	set_registry_clock,
};
constexpr int event_count = 16;

int			event_weights[event_count];
int			event_one_in;
int			keeper_one_in;
int			steps_mean;
int64_t		right_ns;

Event
pick_event() noexcept
{
	int64_t		sum = 0;
	int			picked = 0;

	for (int weight : event_weights)
		sum += weight;
	for (sum = world.random.below(sum); sum >= event_weights[picked]; picked++)
		sum -= event_weights[picked];
	return static_cast<Event>(picked);
}

void
crash(Server &server) noexcept
{
	trace("server %d crashes", server.number);
	coverage.crashes++;
	end_life(server);
	server.log.cut(static_cast<int>(world.random.between(server.log.flushed(), server.log.written())));
	server.down_until = current_round + world.random.below(40);
}

/* The registry holds somebody for dead, whose clock then says the same. */
void
expire() noexcept
{
	const uint64_t node = static_cast<uint64_t>(world.random.below(max_nodes));

	for (Server &holder : servers)
	{
		if (registry.rows.claims[node].holder.is(holder.me))
			holder.pass_window();
	}
	registry.set_dead(node);
}

void
deliver() noexcept
{
	Request	   &request = requests[world.random.below(max_requests)];

	if (!request.is_there)
		return;
	trace("a request comes late");
	request.is_there = false;
	coverage.late += registry.write(request.form, request.writer, request.before, request.next, request.window_us,
									true) == Written::done;
}

void
event() noexcept
{
	Random	   &random = world.random;
	Server	   &server = servers[random.below(server_count)];

	switch (pick_event())
	{
		case Event::set_clock:
			server.offset_ns += random.one_of<int64_t>({3, -3, 20, -20, 20, -20, 300, -300}) * ns_per_ms;
			break;
		case Event::set_right:
			server.offset_ns = right_ns;
			break;
		case Event::crash:
			if (server.is_up)
				crash(server);
			break;
		case Event::crash_processes:
			if (server.is_up && !server.is_stopping)
				crash_processes(server);
			break;
		case Event::stop:
			server.is_stopping = server.is_up;
			break;
		case Event::restart_keeper:
			if (server.is_up && !server.is_stopping && server.keeper_process().fiber.idle())
				begin_keeper(server);
			break;
		case Event::partition:
			server.partitioned_until = current_round + random.between(5, 80);
			break;
		case Event::stall:
			server.processes[random.below(fibers_per_server)].stalled_until = current_round + random.between(5, 80);
			break;
		case Event::expire:
			expire();
			break;
		case Event::deliver:
			deliver();
			break;
		case Event::snapshot:
			snapshots[random.below(max_snapshots)] = registry.rows;
			break;
		case Event::restore:
			restore(true);
			break;
		case Event::restart_registry:
			trace("the registry is started again");
			coverage.restarts++;
			restart_registry();
			break;
		case Event::restart_machine:
			restore(false);
			break;
		case Event::settle:
			try_to_settle();
			break;
		case Event::set_registry_clock:
			registry.offset_ns += random.one_of<int64_t>({5, -5, 50, -50}) * ns_per_ms;
			break;
	}
}

/* One process runs a little. */
void
run_round() noexcept
{
	Random	   &random = world.random;
	int64_t		first_wake_ns = INT64_MAX;

	current_round++;
	if (happens(event_one_in))
		event();
	for (int i = 0; i < server_count; i++)
	{
		Server	   &server = servers[i];

		if (server.is_up && server.is_released)
		{
			trace("server %d stops", server.number);
			coverage.stops++;
			end_life(server);
			server.log.cut(server.log.written());
			server.down_until = current_round + random.below(40);
		}
		if (!server.is_up && server.down_until <= current_round)
			begin_life(server);
	}

	int			fibers = server_count * fibers_per_server;
	int			start = static_cast<int>(random.below(fibers));

	for (int i = 0; i < fibers; i++)
	{
		int			number = (start + i) % fibers;
		Server	   &server = servers[number / fibers_per_server];
		Server::Process &process = server.processes[number % fibers_per_server];

		if (!server.is_up || process.stalled_until > current_round)
			continue;
		/* A keeper has less to do. */
		if (&process == &server.keeper_process() && process.fiber.idle() && !server.is_stopping &&
			!random.one_in(keeper_one_in))
			continue;
		if (process.environment.is_asleep())
		{
			first_wake_ns = std::min(first_wake_ns, process.environment.wake_ns());
			continue;
		}
		world.boot_ns += 1 + random.below(world.pace_ns);
		world.steps_left = static_cast<int>(random.below(2 * steps_mean));
		world.running = number;
		process.fiber.resume();
		world.running = nobody;
		return;
	}
	if (first_wake_ns != INT64_MAX)
		world.boot_ns = first_wake_ns;
}

/* When one server is left alone with a registry that works, it gets ids. */
void
settle() noexcept
{
	Server	   &server = servers[world.random.below(server_count)];
	int64_t		furthest_us = 0;
	int			had;

	is_settling = true;
	/* A reservation, and a renewal, take less time than they are made for. */
	world.pace_ns = std::min(world.pace_ns, 20 * ns_per_us);
	keeper_one_in = 1;
	for (int i = 0; i < server_count; i++)
	{
		if (&servers[i] != &server && servers[i].is_up)
			end_life(servers[i]);
		servers[i].down_until = INT64_MAX;
	}
	if (server.is_up && server.is_stopping)
		end_life(server);
	if (!server.is_up)
		begin_life(server);
	server.partitioned_until = 0;
	for (Server::Process &process : server.processes)
		process.stalled_until = 0;
	for (int node = 0; node < max_nodes; node++)
	{
		if (!registry.rows.claims[node].holder.is(server.me))
			registry.set_dead(static_cast<uint64_t>(node));
		furthest_us = std::max(furthest_us, registry.rows.claims[node].granted_until_us);
	}
	furthest_us = std::max({furthest_us, server.log.limit_us(), server.keeper->grant().granted_until_us,
							server.issued_end_us, server.wall_ns() / ns_per_us});
	server.offset_ns = furthest_us * ns_per_us + 50 * ns_per_ms - world.boot_ns;
	registry.offset_ns = server.offset_ns;
	registry.max_forward_jump_us = 10000 * us_per_ms;
	trace("server %d is left alone", server.number);
	had = run_count;
	for (int64_t last = current_round + 20000; run_count == had;)
	{
		check(current_round < last, "server %d gets no ids, though all is well", server.number);
		run_round();
		/* Its claim may have to start where it would have ended. */
		if (current_round % 1000 == 0)
			server.offset_ns += 100 * ns_per_ms;
		/* What it holds in the registry without knowing is not renewed. */
		for (uint64_t node = 0; node < max_nodes; node++)
		{
			if (!server.is_usable && current_round % 1000 == 0)
				registry.set_dead(node);
		}
		registry.offset_ns = server.offset_ns;
		try_to_settle();
	}
}

Layout		layouts[4];

/* How often things happen in a history.  True where one number goes from hand to hand, and back in the registry. */
bool
draw_events() noexcept
{
	Random	   &random = world.random;

	event_one_in = random.one_of({5, 10, 20, 50});
	keeper_one_in = random.one_of({2, 4, 10});
	steps_mean = random.one_of({2, 10, 40});
	for (int &weight : event_weights)
		weight = random.one_in(2) ? 1 + static_cast<int>(random.below(8)) : 0;
	for (Event event : {Event::crash, Event::crash_processes, Event::restart_machine})
		event_weights[static_cast<int>(event)] = std::min(event_weights[static_cast<int>(event)], 3);
	event_weights[static_cast<int>(Event::settle)] = event_weights[static_cast<int>(Event::snapshot)] = 8;
	if (random.one_in(3))
		event_weights[static_cast<int>(Event::restore)] = event_weights[static_cast<int>(Event::restart_machine)] = 0;
	if (!random.one_in(4))
		return false;
	for (int &weight : event_weights)
		weight = 0;
	for (Event event : {Event::stop, Event::snapshot, Event::restore, Event::settle})
		event_weights[static_cast<int>(event)] = 1 + static_cast<int>(random.below(8));
	return true;
}

/* A server before its first life; any number will do for it where wanted_node says automatic. */
void
begin_server(Server &server, int64_t wanted_node) noexcept
{
	Random	   &random = world.random;

	server.is_up = false;
	server.life = 0;
	server.episode = none;
	server.lost_count = 0;
	server.wanted_node = wanted_node;
	server.window_us = random.between(2, 20) * us_per_ms;
	server.offset_ns = right_ns +
		random.one_of<int64_t>({0, 0, random.between(-3, 3), random.between(-40, 40)}) * ns_per_ms;
	server.log.begin(random.one_in(2) ? 0 : server.wall_ns() / ns_per_us + random.between(-5, 5) * us_per_ms);
	server.partitioned_until = server.down_until = 0;
	server.issued_end_us = 0;
	server.is_late = false;
	server.options = {
		.sequence_start = random.one_of({SequenceStart::subtick, SequenceStart::zero, SequenceStart::random}),
		.max_drift_us = random.one_in(2) ? 0 : random.between(1, 10) * us_per_ms,
		.max_wait_ns = random.one_of<int64_t>({0, 1, 10}) * ns_per_ms,
		.reserve_ahead_us = random.between(1, 20) * us_per_ms,
		.max_forward_jump_ns = 10 * ns_per_s,
	};
}

void
run_history(uint64_t seed) noexcept
{
	Random	   &random = world.random;

	random = Random(seed);
	world.seed = seed;
	world.boot_ns = random.between(1, 100) * ns_per_ms;
	world.cancel_one_in = random.one_in(2) ? 0 : random.one_of({50, 400});
	world.pace_ns = random.one_of<int64_t>({20, 100, 400, 1000}) * ns_per_us;
	world.running = nobody;
	current_round = 0;
	is_settling = false;
	episode_count = run_count = 0;

	const bool	is_handed_on = draw_events();

	layout = &layouts[random.below(static_cast<int64_t>(std::size(layouts)))];
	right_ns = (layout->epoch_us + random.between(1000, 1000000) * us_per_ms) * ns_per_us - world.boot_ns;

	registry.begin();
	registry.by_version = random.one_in(2);
	registry.offset_ns = right_ns + random.between(-20, 20) * ns_per_ms;
	registry.max_forward_jump_us = random.one_in(4) ? 100 * us_per_ms : 10000 * us_per_ms;
	for (Rows &snapshot : snapshots)
		snapshot = registry.rows;
	for (Request &request : requests)
		request.is_there = false;

	int64_t		nodes = std::min<int64_t>(static_cast<int64_t>(layout->max_node()) + 1, random.between(1, max_nodes));
	int			kind = static_cast<int>(random.below(3));

	server_count = static_cast<int>(random.between(2, max_servers));
	for (int i = 0; i < max_servers; i++)
	{
		const bool	is_any = !is_handed_on && (kind == 0 || (kind == 1 && random.one_in(2)));

		begin_server(servers[i], is_any ? automatic : is_handed_on ? 0 : random.below(nodes));
	}
	for (int64_t rounds = random.between(100, 600); rounds > 0; rounds--)
		run_round();
	settle();
	for (int i = 0; i < server_count; i++)
	{
		if (servers[i].is_up)
			end_life(servers[i]);
	}
}

void
begin() noexcept
{
	constexpr const char *specs[] = {
		"timestamp:41 node:2 sequence:2 epoch:2025-01-01",
		"timestamp:41 node:1 sequence:1 epoch:2025-01-01",
		"timestamp:41 sequence:2 epoch:2025-01-01",
		"timestamp:40 sequence:1 node:2 tick:2ms epoch:2025-01-01",
	};
	Reason		reason;

	for (size_t i = 0; i < std::size(specs); i++)
	{
		if (!parse_layout(specs[i], &layouts[i], &reason))
		{
			fprintf(stderr, "%s: %s\n", specs[i], reason.text);
			exit(1);
		}
	}
	for (int i = 0; i < max_servers; i++)
	{
		servers[i].number = i;
		for (int j = 0; j < fibers_per_server; j++)
			servers[i].processes[j].fiber.start(job, i * fibers_per_server + j);
	}
}

}  // namespace

}  // namespace snowflake::simulation

using namespace snowflake::simulation;

int
main(int argc, char **argv)
{
	world.program = "registry";

	const auto [first, histories] = parse_options(argc, argv, 200000);
	auto		start = std::chrono::steady_clock::now();

	begin();
	for (uint64_t i = 0; i < histories; i++)
		run_history(first + i);

	std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
	const Coverage &c = coverage;

	printf("%" PRIu64 " histories of servers with a registry from seed %" PRIu64 " in %.1f s: nothing broken\n",
		   histories, first, seconds.count());
	printf("%" PRId64 " ids, %" PRId64 " refused for want of a grant; %" PRId64 " grants, %" PRId64 " renewals, "
		   "%" PRId64 " releases, %" PRId64 " losses, %" PRId64 " assertions; %" PRId64 " answers missing, "
		   "%" PRId64 " adopted, %" PRId64 " requests late\n",
		   c.ids, c.ungranted, c.grants, c.renewals, c.releases, c.losses, c.assertions, c.unanswered,
		   c.adopted, c.late);
	printf("%" PRId64 " crashes, %" PRId64 " of all processes, %" PRId64 " with a claim to go on with, "
		   "%" PRId64 " with a torn record; %" PRId64 " clean stops\n",
		   c.crashes, c.process_crashes, c.gone_on, c.torn, c.stops);
	printf("%" PRId64 " registries restarted, %" PRId64 " restored, %" PRId64 " noticed, %" PRId64 " settled; "
		   "%" PRId64 " writes refused, %" PRId64 " put off, %" PRId64 " grants excused, "
		   "%" PRId64 " for the bounds of what may be told\n",
		   c.restarts, c.restores, c.noticed, c.settled, c.refused, c.busy, c.excused, c.out_of_bounds);
	return 0;
}
