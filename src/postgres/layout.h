/*
 * layout.h
 *		Layouts as SQL functions get them: as an argument or from the server.
 */
#ifndef SNOWFLAKE_POSTGRES_LAYOUT_H
#define SNOWFLAKE_POSTGRES_LAYOUT_H

#include <cstdint>

#include "core/layout.h"

struct FunctionCallInfoBaseData;

namespace snowflake __attribute__((visibility("hidden")))
{

/*
 * The layout that a function works with: its argument where it was called with
 * so many, else the server's.  An error where the argument is no layout.
 */
const Layout &layout_argument(FunctionCallInfoBaseData *fcinfo, int argument);

/* Why ids of this layout can only be read, whatever the clock says; false where they can be made. */
bool		is_for_reading_only(const Layout &layout, Reason *reason);

/* The server's log tells of a layout's end from one year before. */
bool		ends_within_a_year(const Layout &layout, int64_t now_us);
void		report_end(int elevel, const Layout &layout);

/* An error unless the id is from 0 to the layout's largest. */
void		check_id(const Layout &layout, int64_t id);

}  // namespace snowflake

#endif
