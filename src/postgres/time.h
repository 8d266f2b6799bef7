/*
 * time.h
 *		Converts between timestamptz and Unix microseconds, and prints both.
 */
#ifndef SNOWFLAKE_POSTGRES_TIME_H
#define SNOWFLAKE_POSTGRES_TIME_H

#include <cstdint>

#include "core/layout.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/* A time or a duration in words, for messages: UTC, microseconds where they are not 0. */
struct TimeText
{
	char		text[64];
};

TimeText	time_text(int64_t unix_us);
TimeText	interval_text(int64_t us);

/* Unix microseconds of a timestamptz; INT64_MIN and INT64_MAX for the infinities and beyond. */
int64_t		unix_time(int64_t timestamptz);

/* The same, but an error unless the layout can express it. */
int64_t		unix_time_in(const Layout &layout, int64_t timestamptz);

/* An interval, as a Datum. */
uintptr_t	interval_datum(int64_t us);

/* The timestamptz of Unix microseconds; infinity for INT64_MAX, -infinity for what lies before all times. */
int64_t		timestamptz_of(int64_t unix_us);

}  // namespace snowflake

#endif
