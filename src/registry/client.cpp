/*
 * client.cpp
 *		What the keeper and set_aside() share as the registry's clients: the store's module,
 *		who this server is, waiting, and the words for what the rules refuse.
 */
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "registry/client.h"
#include "registry/look_up.h"

#include "postgres/registry_kind.h"
#include "postgres/settings.h"
#include "postgres/time.h"

#include "postgres/pg.h"

namespace snowflake
{

namespace
{

/* The registry's encoding need not be this server's. */
void
make_ascii(char *text)
{
	for (char *c = text; *c != '\0'; c++)
		*c = as_ascii(*c);
}

void
pass_over_silently(const Problem *)
{
}

void
keep_quiet(const char *)
{
}

}  // namespace

const Store *
load_store()
{
	static const Store *store = nullptr;

	if (store == nullptr)
	{
		char		module[MAXPGPATH];

		if (!find_module(facts_of(registry_address().kind), module, sizeof(module)))
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not find the module \"%s\" of snowflake: %m",
							facts_of(registry_address().kind).module)));
		store = static_cast<const Store *>(reinterpret_cast<const void *(*) ()>(
			load_external_function(module, store_symbol, true, nullptr))());
	}
	return store;
}

void
fill_context(StoreContext *context)
{
	Holder	   *me = &context->me;

	context->address = &registry_address();
	context->text = registry_setting();
	context->group = registry_group_setting();
	context->layout = server_layout_text();
	context->window_us = claim_window_us();
	context->auth_file = registry_auth_file_setting();
	context->look_up = look_up;
	context->pass_over = pass_over_silently;
	context->tell_open = keep_quiet;
	if (gethostname(me->host, sizeof(me->host)) != 0)
		strlcpy(me->host, "unknown", sizeof(me->host));
	me->host[sizeof(me->host) - 1] = '\0';
	me->port = PostPortNumber;
	strlcpy(me->data_directory, DataDir, sizeof(me->data_directory));
	make_ascii(me->host);
	make_ascii(me->data_directory);
}

const char *
server_layout_text()
{
	static LayoutText text;

	if (text.text[0] == '\0')
		text = layout_text(server_layout());
	return text.text;
}

int64_t
claim_window_us()
{
	return claim_window_setting() * us_per_ms;
}

int
wait_for_latch_or(int socket, int events, long timeout_ms)
{
	static constinit WaitEvent event("SnowflakeRegistry");
	const int	wanted = WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | (timeout_ms >= 0 ? WL_TIMEOUT : 0);

	if (socket >= 0 && events != 0)
		return WaitLatchOrSocket(MyLatch, wanted | events, socket, timeout_ms, event.number());
	return WaitLatch(MyLatch, wanted, timeout_ms, event.number());
}

bool
read_store(const Store *store, const StoreContext *context, uint64_t node, Claim *claim, RegistryTime *registry,
		   Problem *problem)
{
	if (!store->read(node, claim_window_us(), claim, registry, problem))
		return false;
	/* They go into the log and into errors. */
	make_ascii(claim->holder.host);
	make_ascii(claim->holder.data_directory);
	make_ascii(registry->layout);
	registry->is_other_layout = registry->layout[0] != '\0' && strcmp(registry->layout, context->layout) != 0;
	if (registry->max_forward_jump_us == 0)
		registry->max_forward_jump_us = int64_t{max_forward_jump_setting()} * 1000 * us_per_ms;
	return true;
}

void
set_holder(Problem *problem, const Claim &claim)
{
	snprintf(problem->text, sizeof(problem->text), "node number %llu is held by %.100s:%d, %.150s, since %s",
			 static_cast<unsigned long long>(claim.node), claim.holder.host, claim.holder.port,
			 claim.holder.data_directory, time_text(claim.since_us).text);
}

void
set_verdict(Problem *problem, Verdict verdict, const Claim &claim, const RegistryTime &registry, int64_t now_us)
{
	switch (verdict)
	{
		case Verdict::held_by_another:
			set_holder(problem, claim);
			return;
		case Verdict::unsettled:
			snprintf(problem->text, sizeof(problem->text),
					 "it is new, or was restored, failed over or stopped for long, and grants nothing anew for "
					 "%s more, so that its holders can renew; its owner ends that by snowflake_registry_settle()",
					 interval_text((registry.unsettled_us + us_per_s - 1) / us_per_s * us_per_s).text);
			return;
		case Verdict::other_layout:
			snprintf(problem->text, sizeof(problem->text),
					 "its group has the layout \"%.200s\", this server \"%.200s\"",
					 registry.layout, server_layout_text());
			return;
		case Verdict::too_far:
			snprintf(problem->text, sizeof(problem->text),
					 claim.generation == 0 ?
					 "it grants time at most %s ahead of its clock, which reads %s; this server's clock reads %s" :
					 "it grants time at most %s ahead of its clock, which reads %s; this server's clock reads %s, "
					 "and node number %llu was granted up to %s",
					 interval_text(registry.max_forward_jump_us).text, time_text(registry.clock_us).text,
					 time_text(now_us).text,
					 static_cast<unsigned long long>(claim.node), time_text(claim.granted_until_us).text);
			return;
		case Verdict::write:
			return;
	}
}

}  // namespace snowflake
