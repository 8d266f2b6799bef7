/*
 * module.cpp
 *		_PG_init(): defines the settings, and where the library is preloaded takes shared
 *		memory, registers the keeper, and warns of what would keep ids from being made.
 */
#include <unistd.h>

#include "postgres/carried.h"
#include "postgres/clock.h"
#include "postgres/grant.h"
#include "postgres/layout.h"
#include "postgres/node.h"
#include "postgres/reservation.h"
#include "postgres/settings.h"
#include "postgres/shared.h"
#include "postgres/time.h"
#include "postgres/utility.h"

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

/* How long something takes, and whether a clock was set, only this clock tells. */
void
check_boot_clock()
{
	timespec	now;

	if (clock_gettime(CLOCK_BOOTTIME, &now) != 0)
		ereport(process_shared_preload_libraries_in_progress ? FATAL : ERROR,
				(errcode(ERRCODE_SYSTEM_ERROR),
				 errmsg("could not read CLOCK_BOOTTIME: %m")));
}

/* Is it a standby that starts?  The working directory is the data directory. */
bool
is_standby()
{
	return access(STANDBY_SIGNAL_FILE, F_OK) == 0;
}

/* Where there is no room for the limit no ids can be made, and a standby can't follow a primary that makes some. */
void
warn_of_origins()
{
	if (max_origins() >= origins_needed || !(is_standby() || server_node().usable))
		return;
	ereport(WARNING,
			(errmsg("too few replication origins for snowflake ids"),
			 errdetail("\"%s\" is %d.", max_origins_setting, max_origins()),
			 is_standby() ?
			 errhint("This standby shuts down at the first id that its primary makes, and at every start after that: "
					 "set \"%s\" to at least %d before.", max_origins_setting, origins_needed) :
			 errhint("Ids cannot be made: set \"%s\" to at least %d on every standby and then here, and restart the "
					 "servers.",
					 max_origins_setting, origins_needed)));
}

/* A standby has its settings from somewhere else than its data. */
void
warn_of_standby()
{
	NodeSource	source = server_node_id().source;

	if (!is_standby())
		return;
	if (source == NodeSource::unset)
		ereport(WARNING,
				(errmsg("standby has no node number for snowflake ids"),
				 errdetail("The setting \"snowflake.node_id\" is empty: promoted, this server makes no ids."),
				 errhint("Set \"snowflake.node_id\" and \"snowflake.layout\" as they are on the primary, if that makes "
						 "ids.")));
	else if ((source == NodeSource::hostname || source == NodeSource::address) && server_node().usable &&
			 !has_registry())
		ereport(WARNING,
				(errmsg("standby has a node number of its own for snowflake ids"),
				 errdetail("The setting \"snowflake.node_id\" is \"%s\", %llu on this host: promoted, this server "
						   "makes ids under that number, not under its primary's.",
						   node_id_setting(), static_cast<unsigned long long>(server_node().number)),
				 errhint("See to it that no other server has this number, or set \"snowflake.node_id\" to the "
						 "primary's.")));
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

	check_boot_clock();
	define_settings();
	if (!process_shared_preload_libraries_in_progress)
		return;
	resolve_server_node();
	warn_of_misfits();
	warn_of_origins();
	warn_of_standby();
	request_shared();
	watch_utility_statements();
	leave_limit_to_upgrade();
	/* Where the server can make no ids, it needs no claim. */
	if (has_registry() && server_node().usable && !is_for_reading_only(server_layout(), &reason))
		register_keeper();
}

}
