/*
 * errors.h
 *		Reports why a call could not make an id.
 */
#ifndef SNOWFLAKE_POSTGRES_ERRORS_H
#define SNOWFLAKE_POSTGRES_ERRORS_H

#include "core/generator.h"
#include "core/reason.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/* Counts an error of the generator, for snowflake_stat. */
void		count_error();

/* The error of a failure, which is counted. */
[[noreturn]] void report_failure(const Taken &taken);

/* The library was not preloaded. */
[[noreturn]] void report_not_preloaded();

/* The node number is not set, or not usable. */
[[noreturn]] void report_no_node();

/* The layout is for reading only. */
[[noreturn]] void report_for_reading_only(const Reason &reason);

/* At the first id after the start: the clock is further past the durable limit than it may jump. */
void		warn_of_clock_ahead(int64_t now_us, int64_t durable_us);

}  // namespace snowflake

#endif
