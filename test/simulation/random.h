/*
 * random.h
 *		Random numbers that a seed repeats: splitmix64.
 */
#ifndef SNOWFLAKE_SIMULATION_RANDOM_H
#define SNOWFLAKE_SIMULATION_RANDOM_H

#include <cstdint>
#include <initializer_list>

namespace snowflake::simulation
{

class Random
{
public:
	explicit Random(uint64_t seed) noexcept : state_(seed)
	{
	}

	uint64_t next() noexcept
	{
		uint64_t	x = state_ += 0x9e3779b97f4a7c15;

		x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
		x = (x ^ x >> 27) * 0x94d049bb133111eb;
		return x ^ x >> 31;
	}

	/* From 0 to n - 1; n up to 2^32, so that the small bias does not matter. */
	int64_t below(int64_t n) noexcept
	{
		return static_cast<int64_t>((next() >> 32) * static_cast<uint64_t>(n) >> 32);
	}

	/* From low to high, both included. */
	int64_t between(int64_t low, int64_t high) noexcept
	{
		return low + below(high - low + 1);
	}

	bool one_in(int64_t n) noexcept
	{
		return below(n) == 0;
	}

	template <typename T>
	T one_of(std::initializer_list<T> choices) noexcept
	{
		return choices.begin()[below(static_cast<int64_t>(choices.size()))];
	}

private:
	uint64_t	state_;
};

}  // namespace snowflake::simulation

#endif
