/*
 * history.cpp
 *		One random history of a server.
 */
#include "history.h"

#include <cstring>

namespace snowflake::simulation
{

namespace
{

History	   *history;

int
pick_weighted(const int *weights, int count) noexcept
{
	int			sum = 0;

	for (int i = 0; i < count; i++)
		sum += weights[i];
	if (sum == 0)
		return -1;

	int64_t		at = world.random.below(sum);
	int			picked = 0;

	while (at >= weights[picked])
		at -= weights[picked++];
	return picked;
}

}  // namespace

/*
 * Few ticks, nodes and sequence numbers, so that histories meet where they can;
 * and some layouts with room for ten years, or whose steps fill the word.
 */
Layouts::Layouts() noexcept
{
	constexpr const char *epochs[] = {"2025-01-01", "2024-12-31T23:59:59.997Z"};
	constexpr const char *ticks[] = {"1ms", "1ms", "2ms", "500us"};
	constexpr const char *nodes[] = {"", "node:1 ", "node:2 ", "node:3 "};
	char		spec[160];

	for (int timestamp = 6; timestamp <= 14; timestamp++)
	{
		for (const char *node : nodes)
		{
			for (int sequence = 1; sequence <= 3; sequence++)
			{
				for (const char *tick : ticks)
				{
					snprintf(spec, sizeof(spec), "timestamp:%d %ssequence:%d tick:%s epoch:%s",
							 timestamp, node, sequence, tick, epochs[count_ % 2]);
					add(spec);
				}
			}
		}
	}
	small_ = count_;
	for (int i = 0; i < 16; i++)
	{
		add("timestamp:41 node:3 sequence:2 epoch:2025-01-01");
		add("timestamp:40 sequence:1 node:2 epoch:2025-01-01");
		add("timestamp:41 node:2 sequence:20 epoch:2025-01-01");
		add("timestamp:8 sequence:55 epoch:2025-01-01");
		add("timestamp:6 node:1 sequence:56 epoch:2025-01-01");
	}
}

void
Layouts::add(const char *spec) noexcept
{
	Reason		reason;

	if (count_ == max_count || !parse_layout(spec, &layouts_[count_++], &reason))
	{
		fprintf(stderr, "%s: %s\n", spec, reason.text);
		exit(1);
	}
}

History::History() noexcept
{
	history = this;
	for (int i = 0; i < max_backends; i++)
		backends_[i].fiber.start(job, i);
}

void
History::run(uint64_t seed) noexcept
{
	int64_t		rounds;

	begin(seed);
	for (rounds = random().between(40, 200); rounds > 0; rounds--)
		round();
	settle();
	end_life();
}

void
History::begin(uint64_t seed) noexcept
{
	world.random = Random(seed);
	world.seed = seed;
	world.lock_holder = nobody;
	world.running = nobody;
	world.boot_ns = random().between(1, 100) * ns_per_ms + random().below(1000000);
	world.limits_set = 0;
	world.cancel_one_in = random().one_in(2) ? 0 : random().one_of({20, 100, 400});
	world.pace_ns = random().one_of<int64_t>({1000, 20000, 100000, 400000, 2000000});
	world.recent_age_ns = random().one_of<int64_t>({0, 5000, 200000});

	backend_count_ = static_cast<int>(random().between(1, max_backends));
	round_ = 0;
	event_one_in_ = random().one_of({5, 15, 40, 100});
	steps_mean_ = random().one_of({1, 2, 4, 10, 40});
	only_op_ = Op::take;
	settling_ = false;

	/* Each history knows only some kinds of calls and events, so that each kind is often had. */
	for (int i = 0; i < op_count; i++)
		op_weights_[i] = random().one_in(2) ? random().one_of({1, 3, 10}) : 0;
	op_weights_[static_cast<int>(Op::take)] = 20;
	for (int i = 0; i < event_count; i++)
		event_weights_[i] = random().one_in(2) ? static_cast<int>(random().between(1, 8)) : 0;

	/* A clock that was set wrong is mostly set right some time. */
	if (random().between(0, 3) != 0)
		event_weights_[static_cast<int>(Event::set_right)] = 8;

	max_drift_us_ = random().one_in(2) ? 0 : random().between(1, 20) * us_per_ms;
	reserve_ahead_us_ = random().between(1, 20) * us_per_ms;
	max_forward_jump_us_ = random().between(2, 40) * us_per_ms;
	memset(issued_end_us_, 0, sizeof(issued_end_us_));
	newest_begin_us_ = 0;
	from_us_ = 0;

	layout_ = &layouts_.pick(random());

	/* Somewhere in the layout's time, rarely near its end or before its beginning. */
	int64_t		ticks = std::min<int64_t>(layout_->last_tick(), 16384);
	int64_t		tick = random().one_in(16) ? random().between(-3, 0) :
		random().one_in(16) ? ticks - random().below(8) : random().below(ticks / 2);

	right_ns_ = layout_->epoch_us * ns_per_us + tick * layout_->tick_us * ns_per_us + random().below(1000000) -
		world.boot_ns;
	world.offset_ns = right_ns_;
	world.log.begin(random().one_in(2) ? 0 : world.wall_ns() / ns_per_us + random().between(-5, 5) * us_per_ms);
	node_ = static_cast<uint64_t>(random().below(max_nodes)) & layout_->max_node();
	begin_life();
}

/* The server starts. */
void
History::begin_life() noexcept
{
	state_.initialize();
	for (Place<SimAtomic> &place : places_)
		place = {};
	world.believable_ns = world.greatest_offset_ns = world.offset_ns;
	newest_step_ = 0;
	life_issued_end_us_ = 0;
	world.advanced = false;
	run_count_ = 0;
	trace("starts with layout %s, node %" PRIu64 ", limit %" PRId64 " us, clock %" PRId64 " us",
		  layout_text(*layout_).text, node_, world.log.limit_us(), world.wall_ns() / ns_per_us);
	check(world.log.limit_us() >= issued_end_us_[node_] || !may_forget_clock(),
		  "ids lie above the limit that survived");
	for (int i = 0; i < backend_count_; i++)
	{
		Backend	   &backend = backends_[i];

		backend.environment.begin(i, &backend.fiber, node_);
		backend.generator.emplace(state_, *layout_, backend.environment, places_, static_cast<size_t>(i));
		backend.stalled_until = 0;
		backend.taken = 0;
		backend.first_ns = 0;
		world.running = i;
		backend.options.max_forward_jump_ns = max_forward_jump_us_ * ns_per_us;
		backend.options.max_session_rate = random().one_in(4) ? random().one_of({100, 1000, 3000}) : 0;
		backend.options.max_wait_ns = random().one_of<int64_t>({0, 1, 10, 1000}) * ns_per_ms;
		backend.options.sequence_start = random().one_of({SequenceStart::subtick, SequenceStart::zero,
														  SequenceStart::random});
		read_options(backend);
	}
	world.running = nobody;
	world.slack_us = slack_us();
	world.most_ahead_us = max_forward_jump_us_;
}

void
History::read_options(Backend &backend) noexcept
{
	backend.options.max_drift_us = max_drift_us_;
	backend.options.reserve_ahead_us = reserve_ahead_us_;
	backend.generator->set_options(backend.options);
}

/* The server is gone, and all that was in its memory. */
void
History::end_life() noexcept
{
	world.steps_left = 0;
	for (int i = 0; i < backend_count_; i++)
	{
		backends_[i].fiber.kill();
		backends_[i].environment.release();
	}
	issued_end_us_[node_] = std::max(issued_end_us_[node_], life_issued_end_us_);
	from_us_ = std::max(from_us_, life_issued_end_us_);
}

/*
 * Is everything that was issued below the durable limit, so that the clock may
 * go back?  Only after the promotion of a standby that lacks the last of the log
 * it is not, until the first reservation.
 */
bool
History::may_forget_clock() const noexcept
{
	return world.log.durable_us() >= issued_end_us_[node_];
}

void
History::restart(Event how) noexcept
{
	Log		   &log = world.log;
	int			kept;

	if (!may_forget_clock())
		return;
	end_life();
	switch (how)
	{
		case Event::crash:
			coverage.crashes++;
			kept = static_cast<int>(random().between(log.flushed(), log.written()));
			break;
		case Event::promotion:
			/* A synchronous standby, with a clock of its own: what was flushed has reached it. */
			coverage.promotions++;
			kept = static_cast<int>(random().between(log.flushed(), log.written()));
			world.offset_ns += random().between(-20, 20) * ns_per_ms;
			break;
		case Event::late_promotion:
			/* An asynchronous one, which lacks some of the log, but whose clock is not behind the ids. */
			coverage.late_promotions++;
			kept = static_cast<int>(random().between(0, log.written()));
			world.offset_ns += random().one_of<int64_t>({0, 0, 1, 10}) * ns_per_ms;
			if (world.wall_ns() <= newest_begin_us_ * ns_per_us)
				world.offset_ns += newest_begin_us_ * ns_per_us - world.wall_ns() + 1 + random().below(100000);
			from_us_ = std::min(from_us_, life_issued_end_us_);
			break;
		default:
			/* A clean one. */
			coverage.restarts++;
			kept = log.written();
			break;
	}
	trace("the server ends (%d): the log is kept up to record %d of %d, flushed %d",
		  static_cast<int>(how), kept, log.written(), log.flushed());
	log.cut(kept);

	/* The same node number, or another that has nothing above the limit; the same layout or another. */
	if (how != Event::late_promotion && random().one_in(4))
	{
		uint64_t	node = static_cast<uint64_t>(random().below(max_nodes)) & layout_->max_node();

		if (issued_end_us_[node] <= log.limit_us())
			node_ = node;
		if (random().one_in(2))
		{
			const Layout &layout = layouts_.pick(random());

			if (layout.max_node() >= node_)
			{
				/* Ticks of other lengths: a time in one that was issued is none to start from. */
				layout_ = &layout;
				newest_begin_us_ = std::max(newest_begin_us_,
											*std::max_element(issued_end_us_, issued_end_us_ + max_nodes));
			}
		}
	}
	begin_life();
}

/* One backend runs a little. */
void
History::round() noexcept
{
	round_++;
	if (!settling_ && random().one_in(event_one_in_))
		event();

	int			chosen = nobody;
	int64_t		first_wake_ns = INT64_MAX;
	int			start = static_cast<int>(random().below(backend_count_));

	for (int i = 0; i < backend_count_ && chosen == nobody; i++)
	{
		int			candidate = (start + i) % backend_count_;
		Backend	   &backend = backends_[candidate];

		if (settling_ && backend.fiber.idle() && !backend.must_succeed)
			continue;
		if (backend.environment.asleep())
			first_wake_ns = std::min(first_wake_ns, backend.environment.wake_ns());
		else if (backend.stalled_until <= round_ || settling_)
			chosen = candidate;
	}
	if (chosen == nobody)
	{
		if (first_wake_ns != INT64_MAX)
			world.boot_ns = first_wake_ns + random().below(100000);
		return;
	}
	world.boot_ns += 1 + random().below(world.pace_ns);
	world.steps_left = static_cast<int>(random().below(2 * steps_mean_));
	world.running = chosen;
	backends_[chosen].fiber.resume();
	world.running = nobody;
}

/*
 * The clock was set.  May it be believed?  Not where there is something to
 * compare it with, and it is further ahead of all that may have been believed
 * than max_forward_jump, or than a clock that is put right may be.
 */
void
History::clock_was_set() noexcept
{
	const int64_t most_ns = std::max(max_forward_jump_us_ * ns_per_us, put_right_ns);

	world.greatest_offset_ns = std::max(world.greatest_offset_ns, world.offset_ns);
	if (static_cast<int64_t>(state_.clock.believed_offset.peek()) != no_offset &&
		!any_busy(Op::set_reserved_until) && !any_busy(Op::accept_clock) &&
		world.offset_ns - world.believable_ns > most_ns)
		return;
	world.believable_ns = std::max(world.believable_ns, world.offset_ns);

	/* What was too far ahead when a call read it may be near enough now, and the call goes by it. */
	for (int i = 0; i < backend_count_; i++)
	{
		const int64_t read_ns = backends_[i].environment.read_offset_ns();

		if (!backends_[i].fiber.idle() && read_ns > world.believable_ns && read_ns - world.believable_ns <= most_ns)
			world.believable_ns = read_ns;
	}
}

bool
History::any_busy(Op op) const noexcept
{
	for (int i = 0; i < backend_count_; i++)
	{
		if (!backends_[i].fiber.idle() && backends_[i].op == op)
			return true;
	}
	return false;
}

void
History::event() noexcept
{
	int			picked = pick_weighted(event_weights_, event_count);

	if (picked < 0)
		return;

	Event		kind = static_cast<Event>(picked);

	switch (kind)
	{
		case Event::step_forward:
			world.offset_ns += random().below(max_forward_jump_us_ * ns_per_us);
			break;
		case Event::step_back:
			if (!may_forget_clock())
				return;
			world.offset_ns -= random().one_of<int64_t>({random().below(3000000), random().below(3000000),
														 10 * ns_per_ms, 100 * ns_per_ms, 5 * ns_per_s, 10 * year_ns});
			break;
		case Event::leap:
			coverage.leaps++;
			world.offset_ns += random().one_of<int64_t>({2 * max_forward_jump_us_ * ns_per_us, ns_per_s,
														 ns_per_s +
														 2 * (max_forward_jump_us_ + world.slack_us) * ns_per_us,
														 3 * ns_per_s, 10 * year_ns});
			break;
		case Event::set_right:
			if (!may_forget_clock())
				return;
			world.offset_ns = right_ns_;
			break;
		case Event::stall:
			backends_[random().below(backend_count_)].stalled_until = round_ + random().between(5, 60);
			break;
		case Event::flush:
			world.log.flush(static_cast<int>(random().between(world.log.flushed(), world.log.written())));
			break;
		default:
			restart(kind);
			return;
	}
	clock_was_set();
	trace("event %d: the clock reads %" PRId64 " us", picked, world.wall_ns() / ns_per_us);
}

void
History::run_until_idle(const char *what) noexcept
{
	int64_t		limit = round_ + 20000;
	bool		busy = true;

	while (busy)
	{
		busy = false;
		for (int i = 0; i < backend_count_; i++)
			busy = busy || !backends_[i].fiber.idle() || backends_[i].must_succeed;
		if (busy)
			round();
		check(round_ < limit, "%s does not end", what);
	}
}

/*
 * Everything that was begun ends, whatever the clock reads.  Then the clock is
 * right, and believed, and everybody gets an id.
 */
void
History::settle() noexcept
{
	int64_t		past_us;

	settling_ = true;
	world.cancel_one_in = 0;
	/* A reservation takes less time than it is made for. */
	world.pace_ns = std::min(world.pace_ns, ns_per_ms / 100);
	for (int i = 0; i < backend_count_; i++)
		backends_[i].must_succeed = false;
	only_op_ = Op::accept_clock;
	run_until_idle("a call");

	past_us = std::max({world.wall_ns() / ns_per_us, world.log.limit_us(), newest_begin_us_,
						begin_us(static_cast<int64_t>(state_.limit.peek() & ~queued))}) + 2 * layout_->tick_us;
	if (past_us > begin_us(layout_->last_tick() - std::min<int64_t>(layout_->last_tick(), 40)))
		return;
	world.offset_ns += past_us * ns_per_us - world.wall_ns();
	world.boot_ns += 10 * ns_per_ms;
	world.believable_ns = world.greatest_offset_ns = world.offset_ns;
	trace("settles: the clock reads %" PRId64 " us", world.wall_ns() / ns_per_us);
	for (int i = 0; i < backend_count_; i++)
		backends_[i].must_succeed = true;
	run_until_idle("accept_clock()");
	only_op_ = Op::take;
	for (int i = 0; i < backend_count_; i++)
	{
		read_options(backends_[i]);
		backends_[i].must_succeed = true;
	}
	run_until_idle("take()");
}

/* What a fiber does. */
void
History::job(int number) noexcept
{
	history->call(history->backends_[number]);
}

void
History::call(Backend &backend) noexcept
{
	/* When settling, only what is asked for is begun. */
	if (settling_ && !backend.must_succeed)
		return;
	backend.op = settling_ ? only_op_ : static_cast<Op>(pick_weighted(op_weights_, op_count));
	backend.above_step = newest_step_;
	backend.from_us = from_us_;
	backend.limits_set = world.limits_set;
	backend.word = state_.word.peek();
	for (int i = 0; i < backend_count_; i++)
		backend.since[i] = backends_[i].environment.in_wait() ? places_[i].since.peek() : 0;
	backend.environment.begin_call();
	switch (backend.op)
	{
		case Op::take:
			take(backend, !settling_ && random().one_in(4) ? random().between(1, 10) : 1);
			break;
		case Op::advance_past:
			advance_past(backend);
			break;
		case Op::set_reserved_until:
			set_reserved_until(backend);
			break;
		case Op::accept_clock:
			accept_clock(backend);
			break;
		case Op::change_options:
			/* Somebody edits the settings; each backend reads them when it comes to it. */
			if (random().one_in(2))
			{
				max_drift_us_ = random().one_in(2) ? 0 : random().between(1, 20) * us_per_ms;
				reserve_ahead_us_ = random().between(1, 20) * us_per_ms;
				world.slack_us = std::max(world.slack_us, slack_us());
			}
			read_options(backend);
			break;
	}
	backend.must_succeed = false;
}

/* One id as snowflake_nextval() takes it, more as a batch does. */
Taken
History::take_as_server(Backend &backend, int64_t wanted) noexcept
{
	const int64_t id = wanted == 1 ? backend.generator->take_at_once() : -1;

	if (id < 0)
		return backend.generator->take(wanted);
	return {Failure::none, id, 1, backend.environment.reading_ns(), take_apart(*layout_, id).tick, 0};
}

void
History::take(Backend &backend, int64_t wanted) noexcept
{
	trace("take(%" PRId64 ")", wanted);
	if (backend.first_ns == 0)
		backend.first_ns = world.boot_ns;

	Taken		taken = take_as_server(backend, wanted);

	check(backend.environment.asked_ns() <= backend.options.max_wait_ns + layout_->tick_us * ns_per_us,
		  "a call waits longer than max_wait and a tick");
	if (taken.failure == Failure::none)
		check_issued(backend, taken, wanted);
	else
		check_failed(backend, taken);
}

void
History::check_issued(Backend &backend, const Taken &taken, int64_t wanted) noexcept
{
	const Issued issued(*layout_, taken);
	const int64_t tick = issued.tick;

	trace("issued %" PRId64 " from tick %" PRId64 ", sequence %" PRIu64 ", by the clock's tick %" PRId64,
		  taken.count, tick, issued.sequence, tick_at(*layout_, taken.now_ns / ns_per_us));
	coverage.ids += taken.count;

	check(taken.count >= 1 && taken.count <= wanted,
		  "%" PRId64 " ids where %" PRId64 " were wanted", taken.count, wanted);
	check(tick == taken.tick && issued.is_in_one_tick, "a run of ids over two ticks");
	check(issued.node == node_, "another node's id");

	/* I5 */
	check(tick >= 0 && tick <= layout_->last_tick(), "I5: tick %" PRId64 " is not in the layout", tick);

	/* I4 */
	check(taken.now_ns == backend.environment.reading_ns(), "I4: not by the clock that was read");
	check(tick <= tick_at(*layout_, taken.now_ns / ns_per_us) + backend.options.max_drift_us / layout_->tick_us,
		  "I4: tick %" PRId64 " is further ahead of the clock than max_drift", tick);

	/* A clock that jumped further than may be believed has met the limit. */
	check(world.advanced ||
		  taken.now_ns / ns_per_us <= (world.boot_ns + world.believable_ns) / ns_per_us + world.slack_us,
		  "an id by a clock that is not to be believed");

	/* I3 */
	check(begin_us(tick + 1) <= world.log.durable_us(),
		  "I3: tick %" PRId64 " ends at %" PRId64 " us, but the durable limit is %" PRId64 " us",
		  tick, begin_us(tick + 1), world.log.durable_us());

	/* Those who waited before the call began, and still do, find an id in the tick, unless there is a later one for them. */
	const Steps steps(*layout_);
	int64_t		left = steps.left_in_tick(issued.last) - 1;

	for (int i = 0; i < backend_count_; i++)
	{
		if (&backends_[i] != &backend && backend.since[i] != 0 && places_[i].since.peek() == backend.since[i] &&
			static_cast<int64_t>(places_[i].until.peek()) > world.boot_ns)
			left--;
	}
	check(left >= 0 ||
		  tick < tick_at(*layout_, taken.now_ns / ns_per_us) + backend.options.max_drift_us / layout_->tick_us,
		  "the last ids of tick %" PRId64 " are taken from those who waited for them", tick);

	backend.taken += taken.count;
	check(backend.options.max_session_rate == 0 ||
		  (backend.taken - 1) * ns_per_s <= (world.boot_ns - backend.first_ns) * backend.options.max_session_rate,
		  "%" PRId64 " ids are more than the session's rate", backend.taken);

	/* I2 */
	check(issued.first > backend.above_step, "I2: an id that was returned before the call is greater");

	/* I1 */
	for (int i = 0; i < run_count_; i++)
		check(issued.last < runs_[i].first || issued.first > runs_[i].last,
			  "I1: tick %" PRId64 ", sequence %" PRIu64 " is issued twice", tick, issued.sequence);
	check(begin_us(tick) >= issued_end_us_[node_],
		  "I1: tick %" PRId64 " was issued before the server's last start", tick);

	check(begin_us(tick) >= backend.from_us,
		  "tick %" PRId64 " begins before %" PRId64 " us, where an earlier life or advance_past() ended",
		  tick, backend.from_us);

	if (run_count_ == max_runs)
		abort();
	runs_[run_count_++] = {issued.first, issued.last};
	newest_step_ = std::max(newest_step_, issued.last);
	newest_begin_us_ = std::max(newest_begin_us_, begin_us(tick));
	life_issued_end_us_ = std::max(life_issued_end_us_, begin_us(tick + 1));
}

void
History::check_failed(Backend &backend, const Taken &taken) noexcept
{
	trace("failed: %s, excess %" PRId64 " ns", failure_names[static_cast<int>(taken.failure)], taken.excess_ns);
	coverage.failures[static_cast<int>(taken.failure)]++;

	check(taken.count == 0, "a failed call issued ids");
	switch (taken.failure)
	{
		case Failure::behind:
			/* But one after another, while the clock stands still or goes back with the limit, end. */
			check(taken.excess_ns > layout_->tick_us * ns_per_us ||
				  backend.environment.waited_ns() > backend.options.max_wait_ns ||
				  backend.limits_set != world.limits_set, "a wait of at most a tick is refused");
			/* The tick, or the one after a tick whose last ids are others'. */
			check(taken.tick > tick_at(*layout_, taken.now_ns / ns_per_us) +
				  backend.options.max_drift_us / layout_->tick_us,
				  "the clock is not behind");
			break;
		case Failure::standstill:
			check(backend.environment.waited_ns() > backend.options.max_wait_ns,
				  "it was not waited for a clock that stands still");
			break;
		case Failure::forward_jump:
			check(taken.excess_ns > backend.options.max_forward_jump_ns, "the clock did not jump so far");
			break;
		case Failure::over_rate:
			check(backend.options.max_session_rate != 0 && taken.excess_ns > 0,
				  "the session has its rate");
			check(taken.excess_ns > layout_->tick_us * ns_per_us ||
				  backend.environment.waited_ns() > backend.options.max_wait_ns, "a wait of at most a tick is refused");
			break;
		case Failure::epoch_ahead:
			check(taken.now_ns < layout_->epoch_us * ns_per_us, "the epoch is not ahead");
			break;
		case Failure::exhausted:
			check(taken.tick > layout_->last_tick(), "the layout has time left");
			break;
		default:
			check(false, "a failure that take() cannot have");
	}
	/* Where more came before it than a tick has ids, a call may end without; who has just been served counts twice. */
	check(!backend.must_succeed ||
		  (taken.failure == Failure::behind && 2 * (backend_count_ - 1) > static_cast<int64_t>(layout_->max_sequence())),
		  "no id, though the clock is right: %s", failure_names[static_cast<int>(taken.failure)]);
}

void
History::advance_past(Backend &backend) noexcept
{
	bool		limit_is_moved = any_busy(Op::set_reserved_until);
	int64_t		tick = random().one_in(16) ? layout_->last_tick() :
		random().one_in(2) ? static_cast<int64_t>(state_.limit.peek() & ~queued) + random().between(-2, 1) :
		now_tick() + random().between(-3, 5);

	tick = std::clamp<int64_t>(tick, 0, layout_->last_tick());
	trace("advance_past(%" PRId64 ")", tick);
	coverage.advances++;
	world.advanced = true;

	Taken		taken = backend.generator->advance_past(tick);

	if (taken.failure != Failure::none)
	{
		check_failed(backend, taken);
		return;
	}
	trace("advanced");
	if (limit_is_moved || world.limits_set != backend.limits_set || any_busy(Op::set_reserved_until))
		return;
	check(begin_us(tick + 1) <= world.log.durable_us(), "advance_past() is not durable");
	from_us_ = std::max(from_us_, begin_us(tick + 1));
}

/* Only to where the caller knows of no ids above it; what this life has issued the generator knows. */
void
History::set_reserved_until(Backend &backend) noexcept
{
	uint64_t	claim_start = state_.claim_start.peek();
	int64_t		limit_us = random().one_of<int64_t>({
		begin_us(Steps(*layout_).tick_of(claim_start)),
		begin_us(Steps(*layout_).tick_of(claim_start)),
		life_issued_end_us_,
		world.log.limit_us(),
		world.wall_ns() / ns_per_us + random().between(-5, 5) * us_per_ms,
		begin_us(now_tick() + random().between(-2, random().one_in(16) ? 60 : 2)),
	});

	limit_us = std::clamp(std::max(limit_us, issued_end_us_[node_]), layout_->epoch_us,
						  std::max(layout_->epoch_us, ends_at_us(*layout_)));
	if (limit_us < issued_end_us_[node_])
		return;
	trace("set_reserved_until(%" PRId64 " us)", limit_us);
	coverage.limits_set++;
	from_us_ = std::min(from_us_, limit_us);
	for (int i = 0; i < backend_count_; i++)
		backends_[i].from_us = std::min(backends_[i].from_us, limit_us);
	world.believable_ns = std::max(world.believable_ns, world.greatest_offset_ns);

	int			limits_set = world.limits_set;
	int64_t		issued_before_us = life_issued_end_us_;
	Taken		taken = backend.generator->set_reserved_until(limit_us);

	if (taken.failure == Failure::none)
	{
		trace("the limit is set");
		check(world.limits_set > limits_set, "the limit was not set");
		check(world.log.flushed() >= backend.environment.position(), "set_reserved_until() is not durable");
		check(limit_us >= issued_before_us, "the limit was set below ids that were issued");
		return;
	}
	trace("refused");
	coverage.failures[static_cast<int>(taken.failure)]++;
	check(taken.failure == Failure::issued_above, "a failure that set_reserved_until() cannot have");
	check(taken.count == 0, "a failed call issued ids");
	check(begin_us(taken.tick + 1) > limit_us, "nothing was issued above");
}

void
History::accept_clock(Backend &backend) noexcept
{
	trace("accept_clock()");
	world.believable_ns = std::max(world.believable_ns, world.greatest_offset_ns);
	backend.generator->accept_clock(backend.environment.read_clock().offset_ns);
	/* The clock may have been set meanwhile. */
	world.believable_ns = std::max(world.believable_ns, world.greatest_offset_ns);
}

}  // namespace snowflake::simulation
