/*
 * layout_change.h
 *		Changing the layout of a server that has made ids.
 *
 * A new layout can give a later time an id that already exists.  So ids of the new
 * layout start only where all of them are greater than every earlier id; where
 * there is no such place, the server refuses to make ids.
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
