/*
 * history.h
 *		One random history of a server: what its backends call, what happens to
 *		it meanwhile, and what must hold all the time.
 *
 * I1	no step of a node twice, over restarts and promotions
 * I2	if one call returned before another began, its id is smaller
 * I3	an id's tick ends at or before the limit that is durable when it is returned
 * I4	an id is not further ahead of the clock that the call read than max_drift
 * I5	an id fits the layout
 *
 * And: nobody takes the last ids of a tick that calls wait for which came before;
 * nobody takes ids faster than his rate; later ids sort after advance_past(); a clock that is not believed moves no
 * limit; failures have their reason; when all is well again, everybody gets an id.
 */
#ifndef SNOWFLAKE_SIMULATION_HISTORY_H
#define SNOWFLAKE_SIMULATION_HISTORY_H

#include <optional>

#include "world.h"

namespace snowflake::simulation
{

using SimGenerator = Generator<SimAtomic, SimEnvironment>;

constexpr int failure_count = static_cast<int>(Failure::over_rate) + 1;
constexpr const char *failure_names[failure_count] = {
	"none", "behind", "standstill", "forward_jump", "epoch_ahead", "exhausted", "issued_above",
	"ungranted", "past_grant", "over_rate",
};

/* Over all histories: shows that what should be tried was tried. */
struct Coverage
{
	int64_t		ids;
	int64_t		failures[failure_count];
	int64_t		crashes;
	int64_t		restarts;
	int64_t		promotions;
	int64_t		late_promotions;
	int64_t		cancelled;
	int64_t		limits_set;
	int64_t		advances;
	int64_t		leaps;
};

inline Coverage coverage;

enum class Op
{
	take,
	advance_past,
	set_reserved_until,
	accept_clock,
	change_options,
};
constexpr int op_count = 5;

enum class Event
{
	step_forward,
	step_back,
	leap,
	set_right,
	stall,
	flush,
	crash,
	restart,
	promotion,
	late_promotion,
};
constexpr int event_count = 10;

/* Everything that a layout can be here; made once. */
class Layouts
{
public:
	Layouts() noexcept;

	const Layout &pick(Random &random) const noexcept
	{
		/* Mostly the small ones. */
		return layouts_[random.below(random.one_in(16) ? count_ : small_)];
	}

private:
	void		add(const char *spec) noexcept;

	static constexpr int max_count = 512;

	int			count_ = 0;
	int			small_ = 0;
	Layout		layouts_[max_count];
};

class History
{
public:
	History() noexcept;
	void		run(uint64_t seed) noexcept;

private:
	struct Backend
	{
		Fiber		fiber;
		SimEnvironment environment;
		std::optional<SimGenerator> generator;
		Options		options;

		/* The call that is made. */
		Op			op;
		int64_t		stalled_until;	/* round */
		uint64_t	above_step;		/* I2: returned when the call began; 0: none */
		int64_t		from_us;		/* ids begin at or after this */
		int			limits_set;
		uint64_t	word;			/* when the call began */
		uint64_t	since[max_backends];	/* the places of those who waited then; 0: none */
		int64_t		first_ns;		/* its first call in this life, on CLOCK_BOOTTIME; 0: none yet */
		int64_t		taken;			/* ids since */
		bool		must_succeed;
	};

	/* Successive steps that were issued. */
	struct Run
	{
		uint64_t	first;
		uint64_t	last;
	};

	static void job(int number) noexcept;

	void		begin(uint64_t seed) noexcept;
	void		begin_life() noexcept;
	void		read_options(Backend &backend) noexcept;
	void		end_life() noexcept;
	void		restart(Event how) noexcept;
	void		round() noexcept;
	void		event() noexcept;
	void		clock_was_set() noexcept;
	void		settle() noexcept;
	void		run_until_idle(const char *what) noexcept;

	void		call(Backend &backend) noexcept;
	Taken		take_as_server(Backend &backend, int64_t wanted) noexcept;
	void		take(Backend &backend, int64_t wanted) noexcept;
	void		advance_past(Backend &backend) noexcept;
	void		set_reserved_until(Backend &backend) noexcept;
	void		accept_clock(Backend &backend) noexcept;
	void		check_issued(Backend &backend, const Taken &taken, int64_t wanted) noexcept;
	void		check_failed(Backend &backend, const Taken &taken) noexcept;

	bool		any_busy(Op op) const noexcept;
	bool		may_forget_clock() const noexcept;
	int64_t		begin_us(int64_t tick) const noexcept
	{
		return tick_begin_us(*layout_, tick);
	}
	/* How far past a clock that is believed a reservation may reach. */
	int64_t		slack_us() const noexcept
	{
		return std::min(reserve_ahead_us_, max_forward_jump_us_) + max_drift_us_ + 3 * layout_->tick_us;
	}
	int64_t		now_tick() const noexcept
	{
		return tick_at(*layout_, world.wall_ns() / ns_per_us);
	}
	Random	   &random() noexcept
	{
		return world.random;
	}

	static constexpr int max_nodes = 8;
	static constexpr int max_runs = 4096;

	Layouts		layouts_;
	Backend		backends_[max_backends];
	SharedState<SimAtomic> state_;
	Place<SimAtomic> places_[max_backends];

	/* Of this history. */
	int			backend_count_;
	int64_t		round_;
	int			event_one_in_;
	int			steps_mean_;
	int			op_weights_[op_count];
	int			event_weights_[event_count];
	int64_t		right_ns_;			/* the clock's offset at the beginning */
	int64_t		max_drift_us_;
	int64_t		reserve_ahead_us_;
	int64_t		max_forward_jump_us_;
	Op			only_op_;			/* when settling */
	bool		settling_;

	int64_t		issued_end_us_[max_nodes];	/* by node: ends of the ticks issued in earlier lives */
	int64_t		newest_begin_us_;	/* of all ticks issued */
	int64_t		from_us_;			/* later ids begin at or after this */

	/* Of this life: from one start of the server to the next. */
	const Layout *layout_;
	uint64_t	node_;
	uint64_t	newest_step_;		/* returned */
	int64_t		life_issued_end_us_;
	int			run_count_;
	Run			runs_[max_runs];
};

}  // namespace snowflake::simulation

#endif
