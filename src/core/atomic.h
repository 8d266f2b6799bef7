/*
 * atomic.h
 *		raise_to(): an atomic maximum.
 */
#ifndef SNOWFLAKE_CORE_ATOMIC_H
#define SNOWFLAKE_CORE_ATOMIC_H

#include <atomic>

namespace snowflake __attribute__((visibility("hidden")))
{

/* Makes the value at least this: never less, whoever else raises it at the same time. */
template <typename T>
void
raise_to(std::atomic<T> &value, T least) noexcept
{
	T			known = value.load();

	while (known < least && !value.compare_exchange_weak(known, least))
		;
}

}  // namespace snowflake

#endif
