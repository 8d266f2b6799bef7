/*
 * settings.h
 *		The settings snowflake.*, parsed.
 */
#ifndef SNOWFLAKE_POSTGRES_SETTINGS_H
#define SNOWFLAKE_POSTGRES_SETTINGS_H

#include "core/generator.h"
#include "core/layout.h"
#include "core/node_id.h"
#include "core/registry_address.h"

namespace snowflake __attribute__((visibility("hidden")))
{

enum class ClockSource
{
	realtime,
	monotonic,
};

/* Defines the settings.  A malformed one stops the server's start. */
void		define_settings();

const Layout &server_layout();
const NodeId &server_node_id();
ClockSource clock_source();
const RegistryAddress &registry_address();
bool		has_registry();

/* The settings that the generator follows; the flag is set at each change of them, and is its reader's to clear. */
Options		generator_options();
extern bool generator_options_changed;

/* For messages. */
constexpr const char *layout_hint =
	"The view snowflake_layouts lists the presets; a list of fields looks like "
	"\"timestamp:41 node:10 sequence:12 tick:1ms epoch:2025-01-01\".";
const char *node_id_setting();
const char *layout_setting();
const char *registry_setting();
const char *registry_group_setting();
const char *registry_auth_file_setting();
int			claim_window_setting();	/* ms */
int			max_drift_setting();	/* ms */
int			max_wait_setting();		/* ms */
int			max_session_rate_setting(); /* ids a second; 0: any number */
int			max_forward_jump_setting(); /* s */

}  // namespace snowflake

#endif
