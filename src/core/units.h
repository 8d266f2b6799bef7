/*
 * units.h
 *		Factors between units of time.
 */
#ifndef SNOWFLAKE_CORE_UNITS_H
#define SNOWFLAKE_CORE_UNITS_H

#include <cstdint>

namespace snowflake __attribute__((visibility("hidden")))
{

constexpr int64_t ns_per_us = 1000;
constexpr int64_t ns_per_ms = 1000 * ns_per_us;
constexpr int64_t ns_per_s = 1000 * ns_per_ms;
constexpr int64_t us_per_ms = 1000;
constexpr int64_t us_per_s = 1000 * us_per_ms;

}  // namespace snowflake

#endif
