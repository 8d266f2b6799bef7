/*
 * module.cpp
 *		What happens when the library is loaded.
 */
#include "postgres/clock.h"
#include "postgres/generate.h"
#include "postgres/grant.h"
#include "postgres/lastval.h"
#include "postgres/layout.h"
#include "postgres/node.h"
#include "postgres/settings.h"
#include "postgres/shared.h"
#include "postgres/time.h"

#include "postgres/pg.h"

namespace snowflake
{

namespace
{

/*
 * What is well-formed but does not fit keeps ids from being made, and the calls
 * say so; the server starts, since reading ids and everything else still works.
 */
void
warn_of_misfits()
{
	const Layout &layout = server_layout();
	int64		now_us = wall_clock_ns() / ns_per_us;
	int64		ends_us = ends_at_us(layout);
	Reason		reason;

	if (is_for_reading_only(layout, &reason))
		ereport(WARNING,
				(errmsg("cannot make ids with the setting of \"snowflake.layout\""),
				 errdetail("It is \"%s\". %s", layout_setting(), reason.text)));
	else if (layout.epoch_us > now_us)
		ereport(WARNING,
				(errmsg("cannot make ids before the epoch of the snowflake layout"),
				 errdetail("The epoch is %s.", time_text(layout.epoch_us).text)));
	else if (ends_us <= now_us)
		ereport(WARNING,
				(errmsg("cannot make ids with a snowflake layout whose time has ended"),
				 errdetail("It ended at %s.", time_text(ends_us).text)));
	else if (ends_within_a_year(layout, now_us))
		report_end(WARNING, layout);
	if (!server_node().usable && server_node_id().source != NodeSource::unset)
		ereport(WARNING,
				(errmsg("cannot make ids with the setting of \"snowflake.node_id\""),
				 errdetail("It is \"%s\". %s", node_id_setting(), server_node().reason.text)));
}

}  // namespace

}  // namespace snowflake

extern "C"
{

MODULE_MAGIC("snowflake", SNOWFLAKE_VERSION);

PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	using namespace snowflake;

	Reason		reason;

	define_settings();
	if (!process_shared_preload_libraries_in_progress)
		return;
	resolve_server_node();
	warn_of_misfits();
	request_shared();
	forget_id_on_discard();
	/* Where the server can make no ids, it needs no claim. */
	if (has_registry() && server_node().usable && !is_for_reading_only(server_layout(), &reason))
		register_keeper();
}

}
