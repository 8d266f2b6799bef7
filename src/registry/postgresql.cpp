/*
 * postgresql.cpp
 *		A registry in a PostgreSQL database that has the extension.
 *
 * Each operation is one statement in one transaction; what it means is said in
 * src/sql/registry.sql.  An answer that says "written" counts after the commit.
 * Where the connection is lost before that, nothing is known: the statement may
 * even be carried out later.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "registry/store.h"

#include <libpq-fe.h>

#include "core/parse.h"
#include "postgres/clock.h"

#include "postgres/pg.h"

namespace snowflake
{

namespace
{

const StoreContext *context;
PGconn	   *connection;

uint64_t	system_identifier;

/* Copies a message of libpq's or the registry's, its lines joined. */
void
set_problem(Problem *problem, const char *what, const char *message)
{
	size_t		length = static_cast<size_t>(snprintf(problem->text, sizeof(problem->text), "%s%s", what, message));

	length = Min(length, sizeof(problem->text) - 1);
	while (length > 0 && problem->text[length - 1] == '\n')
		problem->text[--length] = '\0';
	/* The registry's encoding need not be this server's. */
	for (size_t i = 0; i < length; i++)
	{
		bool		is_blank = problem->text[i] == '\n' || problem->text[i] == '\t';

		problem->text[i] = is_blank ? ' ' : as_ascii(problem->text[i]);
	}
}

void
disconnect()
{
	PQfinish(connection);
	connection = nullptr;
}

bool
fail_connection(Problem *problem)
{
	set_problem(problem, "", PQerrorMessage(connection));
	disconnect();
	return false;
}

bool
fail_by_time(const char *what, Problem *problem)
{
	set_problem(problem, what, " in time");
	disconnect();
	return false;
}

struct NumberText
{
	char		text[24];

	explicit NumberText(int64_t value)
	{
		snprintf(text, sizeof(text), "%lld", static_cast<long long>(value));
	}
};

/* Puts a statement into the pipeline. */
bool
send(const char *statement, int parameters, const char *const *values)
{
	return PQsendQueryParams(connection, statement, parameters, nullptr, values, nullptr, nullptr, 0);
}

/*
 * Sees to it that a commit that is confirmed is there, and that a statement that
 * we have given up does not go on waiting for long.
 */
bool
send_settings()
{
	const NumberText limit_text(Max(context->time_left(), 1));
	const char *const values[] = {limit_text.text};

	return send("SELECT pg_catalog.set_config('synchronous_commit', "
				"CASE WHEN pg_catalog.current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') "
				"THEN 'on' ELSE pg_catalog.current_setting('synchronous_commit') END, true), "
				"pg_catalog.set_config('lock_timeout', $1, true), pg_catalog.set_config('statement_timeout', $1, true)",
				1, values);
}

/*
 * Waits for the results of four statements, of which the third is the one that
 * counts, and returns that, or the first error.  Null where the connection ended.
 */
PGresult *
receive(Problem *problem)
{
	PGresult   *result = nullptr;

	for (int number = 1;;)
	{
		int			events = WL_SOCKET_READABLE;
		int			unsent = PQflush(connection);

		if (unsent < 0 || !PQconsumeInput(connection))
			break;
		while (!PQisBusy(connection))
		{
			PGresult   *next = PQgetResult(connection);
			ExecStatusType status = PQresultStatus(next);

			if (PQstatus(connection) == CONNECTION_BAD)
			{
				PQclear(next);
				PQclear(result);
				(void) fail_connection(problem);
				return nullptr;
			}
			if (status == PGRES_PIPELINE_SYNC)
			{
				PQclear(next);
				if (result == nullptr)
					(void) fail_connection(problem);
				return result;
			}
			/* What follows an error is skipped. */
			if (next == nullptr)
				number++;
			else if (status == PGRES_FATAL_ERROR || (number == 3 && status == PGRES_TUPLES_OK))
			{
				PQclear(result);
				result = next;
			}
			else
				PQclear(next);
		}
		if (unsent > 0)
			events |= WL_SOCKET_WRITEABLE;
		if (context->wait(PQsocket(connection), events, -1) < 0)
		{
			PQclear(result);
			(void) fail_by_time("the registry has not answered", problem);
			return nullptr;
		}
	}
	PQclear(result);
	(void) fail_connection(problem);
	return nullptr;
}

/*
 * Runs a statement in a transaction of its own and waits for its result, which
 * counts when the commit has been confirmed.  Null, with the problem and without a
 * connection, where there is none; the caller looks at its status.
 *
 * Nothing that it sets stays: behind a pooler the connection is another client's
 * afterwards.  All goes in one message, with values as parameters, since the texts
 * of statements are shown to whoever has the role.
 */
PGresult *
run(const char *statement, int parameters, const char *const *values, Problem *problem)
{
	if (connection == nullptr)
	{
		set_problem(problem, "", "there is no connection to the registry");
		return nullptr;
	}

	/* After an error the transaction before is still to be ended. */
	const char *begin = PQtransactionStatus(connection) == PQTRANS_INERROR ? "ROLLBACK AND CHAIN" :
		"BEGIN ISOLATION LEVEL READ COMMITTED";

	if (!send(begin, 0, nullptr) || !send_settings() || !send(statement, parameters, values) ||
		!send("COMMIT", 0, nullptr) || !PQpipelineSync(connection))
	{
		(void) fail_connection(problem);
		return nullptr;
	}
	return receive(problem);
}

/* An error of the registry's: its primary message. */
void
set_error(Problem *problem, const PGresult *result)
{
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	set_problem(problem, "", message != nullptr ? message : PQresultErrorMessage(result));
}

/* run() for a statement that returns rows; an error of the registry's is a problem, too. */
PGresult *
query(const char *statement, int parameters, const char *const *values, Problem *problem)
{
	PGresult   *result = run(statement, parameters, values, problem);

	if (result != nullptr && PQresultStatus(result) != PGRES_TUPLES_OK)
	{
		set_error(problem, result);
		PQclear(result);
		result = nullptr;
	}
	return result;
}

int64_t
number(const PGresult *result, int row, int column)
{
	return strtoll(PQgetvalue(result, row, column), nullptr, 10);
}

bool
truth(const PGresult *result, int row, int column)
{
	return PQgetvalue(result, row, column)[0] == 't';
}

template <size_t size>
void
copy_text(char (&to)[size], const PGresult *result, int row, int column)
{
	strlcpy(to, PQgetvalue(result, row, column), size);
}

struct IntervalText
{
	char		text[48];

	explicit IntervalText(int64_t us)
	{
		snprintf(text, sizeof(text), "%lld microseconds", static_cast<long long>(us));
	}
};

/* A host of several gets its share of the time; one that does not answer must not use up the others'. */
bool
wait_for_connection(long limit_ms, Problem *problem)
{
	const long	end_ms = context->time_left() - limit_ms;
	PostgresPollingStatusType polled = PGRES_POLLING_WRITING;

	while (polled == PGRES_POLLING_READING || polled == PGRES_POLLING_WRITING)
	{
		long		left_ms = context->time_left() - end_ms;

		const int	event = polled == PGRES_POLLING_READING ? WL_SOCKET_READABLE : WL_SOCKET_WRITEABLE;

		if (left_ms <= 0 || context->wait(PQsocket(connection), event, left_ms) <= 0)
			return fail_by_time("could not connect to the registry", problem);
		polled = PQconnectPoll(connection);
	}
	return polled == PGRES_POLLING_OK || fail_connection(problem);
}

/* Finds the extension. */
bool
look_around(Problem *problem)
{
	PGresult   *result = query("SELECT pg_catalog.pg_is_in_recovery(), e.extversion, c.system_identifier "
							   "FROM pg_catalog.pg_control_system() AS c "
							   "LEFT JOIN pg_catalog.pg_extension AS e ON e.extname = 'snowflake'",
							   0, nullptr, problem);

	if (result == nullptr)
	{
		disconnect();
		return false;
	}

	const char *why = nullptr;

	if (truth(result, 0, 0))
		why = "the registry's server is a standby";
	else if (PQgetisnull(result, 0, 1))
		why = "the registry's database has no extension \"snowflake\"";
	system_identifier = strtoull(PQgetvalue(result, 0, 2), nullptr, 10);
	PQclear(result);
	if (why == nullptr)
		return true;
	set_problem(problem, "", why);
	disconnect();
	return false;
}

/* One entry of a comma-separated list, of which there may be one for all. */
struct Entry
{
	char		text[256];

	Entry(const char *list, int number)
	{
		std::string_view rest = list;
		bool		is_list = rest.find(',') != std::string_view::npos;

		for (int i = 0; is_list && i < number; i++)
			(void) take_until(&rest, ',');
		rest = take_until(&rest, ',');
		snprintf(text, sizeof(text), "%.*s", static_cast<int>(rest.size()), rest.data());
	}
};

/* The hosts, as libpq reads them. */
struct Hosts
{
	const char *host = "";
	const char *hostaddr = "";
	const char *port = "";
	int			count = 1;

	explicit Hosts(const PQconninfoOption *options)
	{
		for (const PQconninfoOption *option = options; option != nullptr && option->keyword != nullptr; option++)
		{
			if (option->val == nullptr)
				continue;
			if (strcmp(option->keyword, "host") == 0)
				host = option->val;
			else if (strcmp(option->keyword, "hostaddr") == 0)
				hostaddr = option->val;
			else if (strcmp(option->keyword, "port") == 0)
				port = option->val;
		}
		for (const char *c = hostaddr[0] != '\0' ? hostaddr : host; *c != '\0'; c++)
			count += *c == ',';
	}
};

/*
 * What the address says, and the service and the environment where it says
 * nothing: libpq tells it of a connection, also of one that it refuses to begin, as
 * there is no such sslmode.  Null where it can't be read.
 */
PQconninfoOption *
read_options(const char *address)
{
	const char *const names[] = {"dbname", "password", "sslmode", nullptr};
	const char *const values[] = {address, "none", "none", nullptr};
	PGconn	   *refused = PQconnectStartParams(names, values, 1);
	PQconninfoOption *options = PQconninfo(refused);

	PQfinish(refused);
	return options;
}

void
ignore_notice(void *, const PGresult *)
{
}

/* Connects to one address of a host; with none, libpq finds it. */
bool
connect_address(const char *host, const char *hostaddr, const char *port, long limit_ms, Problem *problem)
{
	const char *const names[] = {"fallback_application_name", "dbname", "host", "hostaddr", "port", nullptr};
	const char *const values[] = {"snowflake keeper", context->text, host, hostaddr, port, nullptr};

	disconnect();
	connection = PQconnectStartParams(names, values, 1);
	if (connection == nullptr)
	{
		set_problem(problem, "", "out of memory");
		return false;
	}
	(void) PQsetNoticeReceiver(connection, ignore_notice, nullptr);
	if (PQstatus(connection) == CONNECTION_BAD)
		return fail_connection(problem);
	if (!wait_for_connection(limit_ms, problem))
		return false;
	(void) PQsetnonblocking(connection, 1);
	if (!PQenterPipelineMode(connection))
		return fail_connection(problem);
	return look_around(problem);
}

/* Connects to the host with this number, by the first of its addresses that answers. */
bool
connect_host(const Hosts &hosts, int number, long limit_ms, Problem *problem)
{
	const long	end_ms = context->time_left() - limit_ms;
	const Entry host(hosts.host, number);
	const Entry hostaddr(hosts.hostaddr, number);
	const Entry port(hosts.port, number);
	const bool	is_name = hostaddr.text[0] == '\0' && host.text[0] != '\0' &&
		host.text[0] != '/' && host.text[0] != '@';
	Addresses	found = {};
	bool		is_done = false;

	/* The name stays beside the address: certificates and the password file go by it. */
	if (is_name && context->look_up(context, host.text, limit_ms, &found, problem) != LookedUp::done)
		return false;
	if (found.count == 0)
		return connect_address(host.text, hostaddr.text, port.text, context->time_left() - end_ms, problem);
	for (int i = 0; i < found.count && !is_done; i++)
		is_done = connect_address(host.text, found.text[i], port.text,
								  (context->time_left() - end_ms) / (found.count - i), problem);
	return is_done;
}

/*
 * Connects to the first of the hosts that answers and is no standby, beginning
 * with the one that did so last.  The password file, service file and certificates
 * are read anew each time.
 */
bool
connect(const StoreContext *given, Problem *problem)
{
	static int	last = 0;

	PQconninfoOption *options = read_options(given->text);
	const Hosts hosts(options);
	bool		is_done = false;

	context = given;
	disconnect();
	for (int i = 0; i < hosts.count && !is_done; i++)
	{
		int			number = (last + i) % hosts.count;

		is_done = connect_host(hosts, number, context->time_left() / (hosts.count - i), problem);
		if (is_done)
			last = number;
	}
	PQconninfoFree(options);
	return is_done;
}

bool
read(uint64_t node, int64_t window_us, Claim *claim, RegistryTime *registry, Problem *problem)
{
	const NumberText node_text(static_cast<int64_t>(node));
	const IntervalText window_text(window_us);
	const char *const values[] = {context->group, node_text.text, context->me.nonce, window_text.text};
	PGresult   *result = query("SELECT clock, max_forward_jump, unsettled, layout, generation, holder, host, port, "
							   "data_directory, since, granted_until, alive, incarnation "
							   "FROM snowflake_internal.registry_read($1, $2, $3, $4)",
							   4, values, problem);

	if (result == nullptr)
		return false;
	*registry = {number(result, 0, 0), number(result, 0, 1), number(result, 0, 2), "", false};
	copy_text(registry->layout, result, 0, 3);
	*claim = {};
	claim->node = node;
	claim->generation = number(result, 0, 4);
	copy_text(claim->holder.nonce, result, 0, 5);
	copy_text(claim->holder.host, result, 0, 6);
	claim->holder.port = static_cast<int32_t>(number(result, 0, 7));
	copy_text(claim->holder.data_directory, result, 0, 8);
	claim->since_us = number(result, 0, 9);
	claim->granted_until_us = number(result, 0, 10);
	claim->is_alive = truth(result, 0, 11);
	claim->version = number(result, 0, 12);
	PQclear(result);
	return true;
}

bool
list(void (*found) (const ListedClaim &claim, void *argument), void *argument, Problem *problem)
{
	const char *const values[] = {context->group};
	PGresult   *result = query("SELECT node, granted_until, freed, free FROM snowflake_internal.registry_list($1)",
							   1, values, problem);

	if (result == nullptr)
		return false;
	for (int row = 0; row < PQntuples(result); row++)
		found({static_cast<uint64_t>(number(result, row, 0)), number(result, row, 1), number(result, row, 2),
			   truth(result, row, 3)}, argument);
	PQclear(result);
	return true;
}

Written
write(Form form, const Claim &before, const Claim &next, int64_t window_us, Problem *problem)
{
	const NumberText node_text(static_cast<int64_t>(next.node));
	const NumberText version_text(before.version);
	const NumberText before_text(before.generation);
	const NumberText next_text(next.generation);
	const NumberText port_text(next.holder.port);
	const NumberText since_text(next.since_us);
	const NumberText until_text(next.granted_until_us);
	const IntervalText window_text(window_us);
	const char *const values[] = {
		context->group, node_text.text, form_names[static_cast<int>(form)], version_text.text, before_text.text,
		next_text.text, context->me.nonce, context->layout, next.holder.host, port_text.text,
		next.holder.data_directory, since_text.text, until_text.text, window_text.text,
	};
	PGresult   *result = run("SELECT snowflake_internal.registry_write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, "
							 "$12, $13, $14)",
							 14, values, problem);
	Written		written;

	if (result == nullptr)
		return Written::unknown;
	if (PQresultStatus(result) == PGRES_TUPLES_OK)
		written = truth(result, 0, 0) ? Written::done : Written::changed;
	else
	{
		const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

		/* The server is being stopped: its commit may have been made, all the same. */
		written = state == nullptr || strncmp(state, "57P", 3) == 0 ? Written::unknown : Written::refused;
		set_error(problem, result);
	}
	PQclear(result);
	return written;
}

bool
idle(long timeout_ms, Problem *problem)
{
	int64_t		end_ns = boot_clock_ns() + timeout_ms * ns_per_ms;

	for (;;)
	{
		const long	left_ms = ms_until(end_ns);

		if (left_ms == 0 || context->wait(PQsocket(connection), WL_SOCKET_READABLE, left_ms) <= 0)
			return true;
		/* Nothing was asked: a notice, the connection's end, or the message before it. */
		if (!PQconsumeInput(connection) || PQstatus(connection) == CONNECTION_BAD)
			return fail_connection(problem);
	}
}

uint64_t
registry_system_identifier()
{
	return system_identifier;
}

constexpr Store store = {connect, disconnect, read, list, write, idle, registry_system_identifier};

}  // namespace

}  // namespace snowflake

extern "C"
{

MODULE_MAGIC("snowflake_postgresql", SNOWFLAKE_VERSION);

/* store_symbol.  A pointer to void: a type that is hidden would hide the function. */
PGDLLEXPORT const void *snowflake_store(void);

const void *
snowflake_store(void)
{
	return &snowflake::store;
}

}
