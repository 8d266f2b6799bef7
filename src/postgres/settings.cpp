/*
 * settings.cpp
 *		The settings snowflake.*, parsed.
 *
 * Layout and node number decide which ids there are, so they hold from one start
 * of the server to the next.  Where the library is not preloaded they can only be
 * read, for decoding, and then follow the configuration file.
 */
#include "postgres/settings.h"

#include "core/claim.h"
#include "postgres/registry_kind.h"

#include "postgres/pg.h"

namespace snowflake
{

bool		generator_options_changed = true;

namespace
{

char	   *node_id_text;
char	   *layout_text_setting;
char	   *registry_text;
char	   *registry_group_text;
char	   *registry_auth_file;
int			claim_window_ms;
int			clock_setting;
int			sequence_start_setting;
int			max_drift_ms;
int			max_wait_ms;
int			max_session_rate_ids;
int			reserve_ahead_ms;
int			max_forward_jump_s;

const Layout *parsed_layout;
const NodeId *parsed_node_id;
const RegistryAddress *parsed_registry;

constexpr config_enum_entry clock_sources[] = {
	{"realtime", static_cast<int>(ClockSource::realtime), false},
	{"monotonic", static_cast<int>(ClockSource::monotonic), false},
	{nullptr, 0, false},
};

constexpr config_enum_entry sequence_starts[] = {
	{"subtick", static_cast<int>(SequenceStart::subtick), false},
	{"zero", static_cast<int>(SequenceStart::zero), false},
	{"random", static_cast<int>(SequenceStart::random), false},
	{nullptr, 0, false},
};

/* Parses a setting's text into memory that PostgreSQL keeps with the value. */
template <typename Parsed>
bool
check_text(char **text, void **extra, bool (*parse)(std::string_view, Parsed *, Reason *), const char *hint)
{
	Reason		reason;
	Parsed	   *parsed = static_cast<Parsed *>(setting_memory(sizeof(Parsed)));

	if (parsed == nullptr)
		return false;
	if (!parse(*text, parsed, &reason))
	{
		free_setting_memory(parsed);
		GUC_check_errdetail("%s", reason.text);
		GUC_check_errhint("%s", hint);
		return false;
	}
	*extra = parsed;
	return true;
}

bool
check_layout(char **text, void **extra, GucSource)
{
	return check_text<Layout>(text, extra, parse_layout,
							  layout_hint);
}

void
assign_layout(const char *, void *extra)
{
	parsed_layout = static_cast<const Layout *>(extra);
}

bool
check_node_id(char **text, void **extra, GucSource)
{
	return check_text<NodeId>(text, extra, parse_node_id,
							  "Give a number such as 103, all its parts such as datacenter=3,worker=7, "
							  "hostname, address:NETWORK/PREFIX, or auto.");
}

void
assign_node_id(const char *, void *extra)
{
	parsed_node_id = static_cast<const NodeId *>(extra);
}

/*
 * Says why an address is refused, never what it is: there could be a password
 * in it.  PostgreSQL itself would log the statement that the error ends, so where
 * there is one the error is reported here.
 */
bool
refuse_registry(const char *detail, const char *hint)
{
	constexpr const char *message = "invalid value for parameter \"snowflake.registry\"";

	if (ActivePortal != nullptr)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s", message), errdetail("%s", detail), errhint("%s", hint), errhidestmt(true)));
	GUC_check_errmsg("%s", message);
	GUC_check_errdetail("%s", detail);
	GUC_check_errhint("%s", hint);
	return false;
}

bool
refuse_missing_module(const RegistryKindFacts &kind)
{
	char		detail[100];
	char		hint[150];

	snprintf(detail, sizeof(detail), "This snowflake was built without the library for %s.", kind.name);
	snprintf(hint, sizeof(hint),
			 "Install it (Debian: %s), build and install snowflake again, and restart the server.", kind.package);
	return refuse_registry(detail, hint);
}

bool
check_registry(char **text, void **extra, GucSource)
{
	Reason		reason;
	RegistryAddress parsed;
	char		module[MAXPGPATH];

	if (!parse_registry_address(*text, &parsed, &reason))
		return refuse_registry(reason.text,
							   "Give postgresql://HOST:PORT/DATABASE or zookeeper://HOST:PORT,.../PATH. "
							   "For PostgreSQL, put a password into a password file, or use a service or "
							   "certificates.");
	if (parsed.kind != RegistryKind::none && !find_module(facts_of(parsed.kind), module, sizeof(module)))
		return refuse_missing_module(facts_of(parsed.kind));
	*extra = setting_memory(sizeof(parsed));
	if (*extra == nullptr)
		return false;
	memcpy(*extra, &parsed, sizeof(parsed));
	return true;
}

void
assign_registry(const char *, void *extra)
{
	parsed_registry = static_cast<const RegistryAddress *>(extra);
}

bool
check_registry_group(char **text, void **, GucSource)
{
	bool		is_plain = true;

	for (const char *c = *text; *c != '\0'; c++)
		is_plain = is_plain && *c != '\x7f' && (IS_HIGHBIT_SET(*c) || *c >= ' ');
	if (**text != '\0' && strlen(*text) < NAMEDATALEN && is_plain)
		return true;
	GUC_check_errdetail("The name of a group has 1 to %d bytes, and no control characters.", NAMEDATALEN - 1);
	return false;
}

void
assign_number(int, void *)
{
	generator_options_changed = true;
}

/*
 * Defines a setting.  One that was in the configuration before is checked by its
 * definition, but a malformed one is only warned of and replaced by the default.
 * Ids in another layout than the one asked for could never be taken back: stop
 * the start.
 */
template <typename Definition>
void
define(const char *name, Definition definition)
{
	const char *given = GetConfigOption(name, true, false);

	if (given != nullptr)
		given = pstrdup(given);
	definition(name);
	if (given != nullptr && process_shared_preload_libraries_in_progress)
		(void) set_config_option(name, given, PGC_POSTMASTER, PGC_S_FILE, GUC_ACTION_SET, false, FATAL, false);
}

void
define_id_settings(GucContext at_start)
{
	/* A preset's name, or the fields from high to low bits, the tick and the epoch. */
	define("snowflake.layout", [&] (const char *name) {
		DefineCustomStringVariable(name, "Sets which bits of an id are its time, node number and sequence.",
								   "A preset's name, which another tick or epoch may follow, or a list of fields.",
								   &layout_text_setting, "twitter", at_start, 0, check_layout, assign_layout, nullptr);
	});

	/* Every server that shares a node numbering, a coordinator too, needs a number of its own. */
	define("snowflake.node_id", [&] (const char *name) {
		DefineCustomStringVariable(name, "Sets this server's node number, which no other server may have.",
								   "A number, all its parts such as datacenter=3,worker=7, hostname, "
								   "address:NETWORK/PREFIX, or auto for a free one from the registry.",
								   &node_id_text, "", at_start, 0, check_node_id, assign_node_id, nullptr);
	});

	define("snowflake.sequence_start", [&] (const char *name) {
		DefineCustomEnumVariable(name, "Selects where the sequence starts in a tick that follows an unfilled one.",
								 "subtick: at the clock's fraction of the tick; zero; random: somewhere in the lower "
								 "half.",
								 &sequence_start_setting, static_cast<int>(SequenceStart::subtick), sequence_starts,
								 PGC_SIGHUP, 0, nullptr, assign_number, nullptr);
	});
}

void
define_clock_settings(GucContext at_start)
{
	/* monotonic: a wall clock that is set while the server runs changes nothing. */
	define("snowflake.clock", [&] (const char *name) {
		DefineCustomEnumVariable(name, "Selects the clock that ids follow.",
								 "realtime is the wall clock; monotonic is the wall clock as read at server start, "
								 "and CLOCK_BOOTTIME from there on.",
								 &clock_setting, static_cast<int>(ClockSource::realtime), clock_sources,
								 at_start, 0, nullptr, nullptr, nullptr);
	});

	/* Bursts above the layout's rate and clocks that go back go on without waiting up to this. */
	define("snowflake.max_drift", [&] (const char *name) {
		DefineCustomIntVariable(name, "Sets how far an id may run ahead of the clock.", "Rounded down to whole ticks.",
								&max_drift_ms, 0, 0, INT_MAX, PGC_SIGHUP, GUC_UNIT_MS,
								nullptr, assign_number, nullptr);
	});

	define("snowflake.max_wait", [&] (const char *name) {
		DefineCustomIntVariable(name, "Sets how long a call may wait for the clock.",
								"In all it waits no longer than this and a tick; a longer wait is refused at once.",
								&max_wait_ms, 2000, 0, INT_MAX, PGC_USERSET, GUC_UNIT_MS,
								nullptr, assign_number, nullptr);
	});

	/* For roles that could take what others need; only a superuser, or a role that was granted it, sets it. */
	define("snowflake.max_session_rate", [&] (const char *name) {
		DefineCustomIntVariable(name, "Sets how many ids a session may take in a second.",
								"What it did not take in the last second it may take at once. 0 is any number.",
								&max_session_rate_ids, 0, 0, 1000000000, PGC_SUSET, 0,
								nullptr, assign_number, nullptr);
	});

	/* Half used, it is reserved anew.  With max_drift and a tick it is the longest wait after a restart. */
	define("snowflake.reserve_ahead", [&] (const char *name) {
		DefineCustomIntVariable(name, "Sets how far ahead of the ids the limit is made durable.", nullptr,
								&reserve_ahead_ms, 500, 10, 60000, PGC_SIGHUP, GUC_UNIT_MS,
								nullptr, assign_number, nullptr);
	});

	define("snowflake.max_forward_jump", [&] (const char *name) {
		DefineCustomIntVariable(name, "Sets how far the wall clock may jump forward and still be believed.",
								"Measured against CLOCK_BOOTTIME since the last reservation; see "
								"snowflake_accept_clock().",
								&max_forward_jump_s, 3600, 1, INT_MAX, PGC_SIGHUP, GUC_UNIT_S,
								nullptr, assign_number, nullptr);
	});
}

void
define_registry_settings(GucContext at_start)
{
	/* Who sees to it that no other server has this server's number; without it, that is the administrator. */
	define("snowflake.registry", [&] (const char *name) {
		DefineCustomStringVariable(name, "Sets the registry that grants this server its node number.",
								   "postgresql://HOST:PORT/DATABASE or zookeeper://HOST:PORT,.../PATH, without a "
								   "password; "
								   "empty for none.",
								   &registry_text, "", at_start, GUC_SUPERUSER_ONLY,
								   check_registry, assign_registry, nullptr);
	});

	define("snowflake.registry_group", [&] (const char *name) {
		DefineCustomStringVariable(name, "Sets the group of servers that share a node numbering in the registry.",
								   nullptr,
								   &registry_group_text, "default", at_start, GUC_SUPERUSER_ONLY,
								   check_registry_group, nullptr, nullptr);
	});

	/* Without it, whoever reaches ZooKeeper can change and delete claims. */
	define("snowflake.registry_auth_file", [&] (const char *name) {
		DefineCustomStringVariable(name, "Sets the file with this server's user and password for ZooKeeper.",
								   "One line, USER:PASSWORD. The file belongs to the server's user or to root, and "
								   "nobody else may read it. Empty: claims are open to whoever reaches ZooKeeper.",
								   &registry_auth_file, "", at_start, GUC_SUPERUSER_ONLY,
								   nullptr, nullptr, nullptr);
	});

	/* The longest time without the registry, and what a new holder may have to wait for after a crash. */
	define("snowflake.claim_window", [&] (const char *name) {
		DefineCustomIntVariable(name, "Sets how far ahead of the ids the registry grants a node number.",
								"It is renewed when a third of this has passed, and at least every 10 s.",
								&claim_window_ms, 30000, 1000, longest_window_us / us_per_ms, PGC_SIGHUP, GUC_UNIT_MS,
								nullptr, nullptr, nullptr);
	});
}

}  // namespace

const Layout &
server_layout()
{
	return *parsed_layout;
}

const NodeId &
server_node_id()
{
	return *parsed_node_id;
}

const RegistryAddress &
registry_address()
{
	return *parsed_registry;
}

bool
has_registry()
{
	return registry_address().kind != RegistryKind::none;
}

const char *
registry_setting()
{
	return registry_text;
}

const char *
registry_group_setting()
{
	return registry_group_text;
}

const char *
registry_auth_file_setting()
{
	return registry_auth_file;
}

int
claim_window_setting()
{
	return claim_window_ms;
}

ClockSource
clock_source()
{
	return static_cast<ClockSource>(clock_setting);
}

Options
generator_options()
{
	return {
		.sequence_start = static_cast<SequenceStart>(sequence_start_setting),
		.max_drift_us = max_drift_ms * us_per_ms,
		.max_wait_ns = max_wait_ms * ns_per_ms,
		.reserve_ahead_us = reserve_ahead_ms * us_per_ms,
		.max_forward_jump_ns = max_forward_jump_s * ns_per_s,
		.max_session_rate = max_session_rate_ids,
	};
}

const char *
node_id_setting()
{
	return node_id_text;
}

const char *
layout_setting()
{
	return layout_text_setting;
}

int
max_drift_setting()
{
	return max_drift_ms;
}

int
max_wait_setting()
{
	return max_wait_ms;
}

int
max_session_rate_setting()
{
	return max_session_rate_ids;
}

int
max_forward_jump_setting()
{
	return max_forward_jump_s;
}

void
define_settings()
{
	GucContext	at_start = process_shared_preload_libraries_in_progress ? PGC_POSTMASTER : PGC_SIGHUP;

	define_id_settings(at_start);
	define_clock_settings(at_start);
	define_registry_settings(at_start);
	MarkGUCPrefixReserved("snowflake");
}

}  // namespace snowflake
