/*
 * layout_change.h
 *		Another layout than the one that the limit was made in.
 *
 * Time above the limit is new, but the ids that another layout gives it may be
 * those that were made before, in other time: they start where they lie above
 * all of those by themselves, or they are refused.
 */
#ifndef SNOWFLAKE_POSTGRES_LAYOUT_CHANGE_H
#define SNOWFLAKE_POSTGRES_LAYOUT_CHANGE_H

#include <cstdint>

namespace snowflake __attribute__((visibility("hidden")))
{

/*
 * What a claim must start above, Unix microseconds: the limit, or, where the layout
 * is another than the limit's, the first tick from limit and clock on, if the
 * layout's ids lie above those before.  False where they do not.  The caller
 * holds the lock.
 */
bool		find_layout_start(int64_t now_us, int64_t *start_us);

/*
 * Makes it durable that from here on the limit is one in the server's layout.
 * Called before a limit is written; not under the lock.  False where the layout
 * is refused.
 */
bool		record_layout(int64_t now_us);

/* The error of a layout that is refused. */
[[noreturn]] void report_layout_change();

}  // namespace snowflake

#endif
