/*
 * pace.h
 *		How many ids a session may take in a second, where that is bounded.
 *
 * What the session has taken is kept as the moment up to which its time is spent:
 * each id takes its part of a second.  Time that was not spent in the last second
 * may be spent at once, so that in t seconds there are at most t + 1 times the
 * rate.  A session begins with one id: to begin another one gains that, and no more.
 *
 * Times are ns on CLOCK_BOOTTIME.
 */
#ifndef SNOWFLAKE_CORE_PACE_H
#define SNOWFLAKE_CORE_PACE_H

#include <algorithm>
#include <cstdint>

#include "core/units.h"

namespace snowflake __attribute__((visibility("hidden")))
{

class Pace
{
public:
	/* Ids a second; 0: any number.  What was spent stays spent, whoever sets it how often. */
	void		set_rate(int64_t rate) noexcept
	{
		ns_per_id_ = rate == 0 ? 0 : (ns_per_s + rate - 1) / rate;
	}

	bool		is_bounded() const noexcept
	{
		return ns_per_id_ != 0;
	}

	/* How many ids the session may have now, up to wanted. */
	int64_t		allowed(int64_t wanted, int64_t now) noexcept
	{
		if (!is_bounded())
			return wanted;
		spent_until_ = std::max(spent_until_, now - (has_begun_ ? std::max(ns_per_s, ns_per_id_) : ns_per_id_));
		has_begun_ = true;
		return std::clamp<int64_t>((now - spent_until_) / ns_per_id_, 0, wanted);
	}

	void		spend(int64_t count) noexcept
	{
		spent_until_ += count * ns_per_id_;
	}

	/* How long it is until the session may have so many ids, or as many as it can ever have at once. */
	int64_t		ns_until(int64_t count, int64_t now) const noexcept
	{
		const int64_t most = std::max<int64_t>(ns_per_s / ns_per_id_, 1);

		return spent_until_ + std::clamp<int64_t>(count, 1, most) * ns_per_id_ - now;
	}

private:
	int64_t		ns_per_id_ = 0;	/* 0: not bounded */
	int64_t		spent_until_ = INT64_MIN;
	bool		has_begun_ = false;
};

}  // namespace snowflake

#endif
