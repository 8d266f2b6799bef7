/*
 * postgresql.cpp
 *		A registry in a PostgreSQL database that has the extension.
 *
 * Each operation is one statement in one transaction; what it means is said in
 * src/sql/registry.sql.  An answer that says "written" counts after the commit.
 * Where the connection is lost before that, nothing is known: the statement may
 * even be carried out later.
 *
 * The registry's server, its superusers and the owner of its database are others, and
 * may be hostile.  So statements name every operator's schema and every parameter's
 * type, and what comes back is input: results in the order that was asked for and no
 * other, one row where there is one to be, columns of the types that were agreed upon,
 * numbers within core/claim_bounds.h.  An answer that is anything else ends the
 * connection, whatever it may mean.  Results are taken row by row, and libpq gets a bounded
 * amount of memory, notices and reads to come to the next one (see "How much it may send"),
 * and as much time for logging in as the caller gives it (see "How long it may take").
 */
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "registry/store.h"

#include <libpq-fe.h>

#include "core/claim_bounds.h"
#include "core/parse.h"
#include "postgres/clock.h"

#include "postgres/pg.h"

namespace snowflake
{

namespace
{

/* What the libraries may allocate for an operation, and for a connection between two. */
constexpr int64_t most_bytes = int64_t{64} * 1024 * 1024;

/* So many notices in an operation, and reads of the socket without a result, are too many. */
constexpr int most_notices = 1000;
constexpr int most_reads = 10000;

/* While nothing is asked, a registry has little to say. */
constexpr int most_idle_reads = 100;

/* The claims of a group; there are no more numbers in any layout that is used. */
constexpr int most_claims = 1 << 22;

const StoreContext *context;
PGconn	   *connection;

uint64_t	system_identifier;

int64_t		connection_bytes;	/* what the process had allocated before the connection */
int64_t		memory_limit;		/* what it may have while libpq runs; 0: unknown */
int			notices;			/* in this operation */

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

/*
 * Is a thread logging in?  Meanwhile no other may use the connection, and the process must not call exit(), which runs
 * what libraries have registered with atexit().
 */
bool		is_in_thread;

[[noreturn]] void
end_process()
{
	ereport(FATAL,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("could not give up logging in to the snowflake registry"),
			 errdetail("It takes longer than it may, and cannot be interrupted: the process ends with it.")));
	pg_unreachable();
}

void
disconnect()
{
	/* An error was reported while it was waited for. */
	if (is_in_thread)
		end_process();
	PQfinish(connection);
	connection = nullptr;
}

bool
fail_connection(Problem *problem)
{
	const char *message = PQerrorMessage(connection);

	set_problem(problem, "", message[0] != '\0' ? message : "the registry has closed the connection");
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

/* The answer is not what was asked for. */
bool
fail_answer(const char *why, Problem *problem)
{
	set_problem(problem, "the registry's answer cannot be read: ", why);
	disconnect();
	return false;
}

/*
 * How much it may send.
 *
 * libpq makes room for whatever length a message says, up to a gigabyte or two, and keeps
 * every parameter that it is told.  So this process's limit on its own memory is lowered
 * while libpq runs, which takes a failed allocation for an error of the connection.
 */

/* What this process has allocated; 0 where the system does not say. */
int64_t
allocated_bytes()
{
	char		text[256];
	const int	file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	const ssize_t length = file < 0 ? -1 : ::read(file, text, sizeof(text) - 1);
	long long	pages;

	if (file >= 0)
		(void) close(file);
	if (length <= 0)
		return 0;
	text[length] = '\0';
	/* The sixth number: data and stack. */
	return sscanf(text, "%*s %*s %*s %*s %*s %lld", &pages) == 1 ? pages * sysconf(_SC_PAGESIZE) : 0;
}

/* Calls libpq with what memory it may have. */
template <typename Call>
auto
bounded(Call call)
{
	rlimit		before{};
	const bool	is_bounded = memory_limit != 0 && getrlimit(RLIMIT_DATA, &before) == 0 &&
		(before.rlim_cur == RLIM_INFINITY || before.rlim_cur > static_cast<rlim_t>(memory_limit));

	if (is_bounded)
	{
		const rlimit lower = {static_cast<rlim_t>(memory_limit), before.rlim_max};

		(void) setrlimit(RLIMIT_DATA, &lower);
	}

	const auto	result = call();

	if (is_bounded)
		(void) setrlimit(RLIMIT_DATA, &before);
	return result;
}

/* Gives an operation its memory.  False where the connection has used up its own. */
bool
begin_operation()
{
	const int64_t bytes = allocated_bytes();

	notices = 0;
	memory_limit = bytes == 0 ? 0 : bytes + most_bytes;
	return bytes <= connection_bytes + most_bytes;
}

void
count_notice(void *, const PGresult *)
{
	notices++;
}

/*
 * How long it may take.
 *
 * A server that asks for a password says how often it is to be hashed (RFC 5802), up to
 * 2,147,483,647 times: libpq computes for the better part of an hour, and nothing interrupts it.
 * So libpq logs in within a thread, which takes no signal and calls nothing of PostgreSQL's, while
 * the process waits as it always does.  A thread that has not ended in time can't be ended by
 * itself, since it may be amid malloc(): the process ends with it, and the keeper is started anew.
 */

/* A thread that has only been kept from running ends within that. */
constexpr int thread_grace_ms = 1000;

constexpr size_t thread_stack_bytes = size_t{1024} * 1024;

void
leave_thread(int code, Datum)
{
	if (is_in_thread)
		_exit(code);
}

struct Login
{
	PostgresPollingStatusType polled;
	int			ended;			/* the end of a pipe to write to */
};

void *
poll_in_thread(void *argument)
{
	Login	   *login = static_cast<Login *>(argument);

	login->polled = bounded([] { return PQconnectPoll(connection); });
	while (write(login->ended, "", 1) < 0 && errno == EINTR)
		;
	return nullptr;
}

/* Starts it with all signals left to the process's own thread.  0, or an errno. */
int
start_thread(pthread_t *thread, Login *login)
{
	static bool is_registered = false;
	pthread_attr_t attributes;
	sigset_t	all;
	sigset_t	before;
	int			error = pthread_attr_init(&attributes);

	if (error != 0)
		return error;
	if (!is_registered)
	{
		on_proc_exit(leave_thread, Datum{0});
#ifdef M_ARENA_MAX
		/* What the thread frees is to be had here again. */
		(void) mallopt(M_ARENA_MAX, 1);
#endif
	}
	is_registered = true;
	(void) sigfillset(&all);
	(void) pthread_attr_setstacksize(&attributes, thread_stack_bytes);
	(void) pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(thread, &attributes, poll_in_thread, login);
	(void) pthread_sigmask(SIG_SETMASK, &before, nullptr);
	(void) pthread_attr_destroy(&attributes);
	return error;
}

/* Whatever it is that the caller waits for no longer, the thread gets a moment more. */
bool
wait_for_thread(int socket, long limit_ms)
{
	pollfd		ended = {socket, POLLIN, 0};

	if (context->wait(socket, WL_SOCKET_READABLE, limit_ms) > 0)
		return true;
	for (;;)
	{
		const int	count = poll(&ended, 1, thread_grace_ms);

		if (count >= 0 || errno != EINTR)
			return count > 0;
	}
}

/* PQconnectPoll(), in at most about limit_ms.  False with the problem where it could not be called. */
bool
poll_login(long limit_ms, PostgresPollingStatusType *polled, Problem *problem)
{
	int			ends[2];
	pthread_t	thread;
	Login		login = {PGRES_POLLING_FAILED, -1};
	int			error = pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno;

	if (error == 0)
	{
		login.ended = ends[1];
		error = start_thread(&thread, &login);
		if (error == 0)
		{
			is_in_thread = true;
			if (!wait_for_thread(ends[0], limit_ms))
				end_process();
			(void) pthread_join(thread, nullptr);
			is_in_thread = false;
		}
		(void) close(ends[0]);
		(void) close(ends[1]);
	}
	*polled = login.polled;
	if (error != 0)
		set_problem(problem, "could not start a thread to log in to the registry: ", strerror(error));
	return error == 0;
}

struct NumberText
{
	char		text[24];

	explicit NumberText(int64_t value)
	{
		snprintf(text, sizeof(text), "%lld", static_cast<long long>(value));
	}
};

struct IntervalText
{
	char		text[48];

	explicit IntervalText(int64_t us)
	{
		snprintf(text, sizeof(text), "%lld microseconds", static_cast<long long>(us));
	}
};

/* A statement, the types of its parameters and of its result's columns; a 0 ends them. */
struct Statement
{
	static constexpr int most_types = 16;

	const char *text;
	Oid			parameters[most_types];
	Oid			columns[most_types];
	int			most_rows;

	static constexpr int count(const Oid *types) noexcept
	{
		int			n = 0;

		while (types[n] != 0)
			n++;
		return n;
	}
};

/* A standby refuses READ WRITE, and is to be seen for what it is first. */
constexpr Statement begin_look_statement = {"BEGIN ISOLATION LEVEL READ COMMITTED", {0}, {0}, 0};
constexpr Statement begin_statement = {"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", {0}, {0}, 0};
constexpr Statement begin_again_statement = {"ROLLBACK AND CHAIN", {0}, {0}, 0};
constexpr Statement commit_statement = {"COMMIT", {0}, {0}, 0};

/*
 * Sees to it that a commit that is confirmed is there, and that a statement that
 * we have given up does not go on waiting for long.
 */
constexpr Statement settings_statement = {
	/* CASE with an operand would look "=" up by the search path, which the database's owner sets. */
	"SELECT pg_catalog.set_config('synchronous_commit', CASE WHEN pg_catalog.current_setting('synchronous_commit') "
	"OPERATOR(pg_catalog.=) ANY (ARRAY['off', 'local', 'remote_write']::pg_catalog.text[]) "
	"THEN 'on' ELSE pg_catalog.current_setting('synchronous_commit') END, true), "
	"pg_catalog.set_config('lock_timeout', $1, true), pg_catalog.set_config('statement_timeout', $1, true)",
	{TEXTOID, 0}, {TEXTOID, TEXTOID, TEXTOID, 0}, 1,
};

constexpr Statement look_around_statement = {
	"SELECT pg_catalog.pg_is_in_recovery(), e.extversion, c.system_identifier FROM pg_catalog.pg_control_system() AS c "
	"LEFT JOIN pg_catalog.pg_extension AS e ON e.extname OPERATOR(pg_catalog.=) 'snowflake'::pg_catalog.name",
	{0}, {BOOLOID, TEXTOID, INT8OID, 0}, 1,
};

constexpr Statement read_statement = {
	"SELECT clock, max_forward_jump, unsettled, layout, generation, holder, host, port, data_directory, since, "
	"granted_until, alive, incarnation FROM snowflake_internal.registry_read($1, $2, $3, $4)",
	{TEXTOID, INT8OID, TEXTOID, INTERVALOID, 0},
	{INT8OID, INT8OID, INT8OID, TEXTOID, INT8OID, TEXTOID, TEXTOID, INT4OID, TEXTOID, INT8OID, INT8OID, BOOLOID,
	 INT8OID, 0}, 1,
};

constexpr Statement list_statement = {
	"SELECT node, granted_until, freed, free FROM snowflake_internal.registry_list($1)",
	{TEXTOID, 0}, {INT8OID, INT8OID, INT8OID, BOOLOID, 0}, most_claims,
};

constexpr Statement write_statement = {
	"SELECT snowflake_internal.registry_write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
	{TEXTOID, INT8OID, TEXTOID, INT8OID, INT8OID, INT8OID, TEXTOID, TEXTOID, TEXTOID, INT4OID, TEXTOID, INT8OID,
	 INT8OID, INTERVALOID, 0},
	{BOOLOID, 0}, 1,
};

/* A row's values.  What can't be read is remembered, and is 0. */
class RowReader
{
public:
	explicit RowReader(const PGresult *row) : row_(row)
	{
	}

	bool is_null(int column) const
	{
		return PQgetisnull(row_, 0, column);
	}

	int64_t number(int column, int64_t least = 0, int64_t most = INT64_MAX)
	{
		const char *text = PQgetvalue(row_, 0, column);
		char	   *end;
		long long	value;

		errno = 0;
		value = strtoll(text, &end, 10);
		require(!is_null(column) && end != text && *end == '\0' && errno == 0 && value >= least && value <= most);
		return is_readable_ ? value : 0;
	}

	bool truth(int column)
	{
		const char *text = PQgetvalue(row_, 0, column);

		require(!is_null(column) && (strcmp(text, "t") == 0 || strcmp(text, "f") == 0));
		return text[0] == 't';
	}

	/* Empty where it is null and may be.  A text that is too long is cut where people alone read it. */
	template <size_t size>
	void text(int column, char (&to)[size], bool may_be_null, bool may_be_cut)
	{
		const int	length = PQgetlength(row_, 0, column);

		require(may_be_null || !is_null(column));
		require(may_be_cut || static_cast<size_t>(length) < size);
		strlcpy(to, PQgetvalue(row_, 0, column), size);
	}

	void require(bool is_so)
	{
		is_readable_ = is_readable_ && is_so;
	}

	bool is_readable() const
	{
		return is_readable_;
	}

private:
	const PGresult *row_;
	bool		is_readable_ = true;
};

/* Takes a row of the statement that counts.  False where it can't be read. */
struct Taker
{
	bool		(*take) (RowReader *row, void *argument);
	void	   *argument;
};

bool
has_columns(const PGresult *result, const Oid *types)
{
	const int	count = Statement::count(types);

	if (PQnfields(result) != count)
		return false;
	for (int i = 0; i < count; i++)
	{
		if (PQftype(result, i) != types[i] || PQfformat(result, i) != 0)
			return false;
	}
	return true;
}

enum class Ran
{
	done,
	refused,					/* an error of the registry's; the connection is there */
	lost,						/* the connection, or it was ended: what became of the statement is not known */
};

/* What is still to come of a transaction. */
class Transaction
{
public:
	Transaction(const Statement &begin, const Statement &statement, const Taker &taker, Problem *problem)
		: statements_{&begin, &settings_statement, &statement, &commit_statement}, taker_(taker), problem_(problem)
	{
	}

	bool send(const char *const *values)
	{
		const NumberText limit_text(Max(context->time_left(), 1));
		const char *const limit[] = {limit_text.text};

		for (int i = 0; i < count; i++)
		{
			const Statement &one = *statements_[i];
			const char *const *given = i == counted ? values : i == counted - 1 ? limit : nullptr;

			if (!PQsendQueryParams(connection, one.text, Statement::count(one.parameters), one.parameters, given,
								   nullptr, nullptr, 0))
				return false;
		}
		return PQpipelineSync(connection);
	}

	/* Waits for all of it, and says how it ended. */
	Ran receive()
	{
		for (int reads = 0;;)
		{
			const int	unsent = PQflush(connection);
			int			events = WL_SOCKET_READABLE;

			if (unsent < 0 || !bounded([] { return PQconsumeInput(connection); }))
				return lost(fail_connection(problem_));
			while (!is_done_ && !bounded([] { return PQisBusy(connection); }))
			{
				reads = 0;
				if (!take_result())
					return Ran::lost;
			}
			if (is_done_)
				return is_refused_ ? Ran::refused : Ran::done;
			if (notices > most_notices || ++reads > most_reads)
				return lost(fail_answer("it sends too much that was not asked for", problem_));
			if (unsent > 0)
				events |= WL_SOCKET_WRITEABLE;
			if (context->wait(PQsocket(connection), events, -1) < 0)
				return lost(fail_by_time("the registry has not answered", problem_));
		}
	}

	/* Of the error; null where it has none. */
	const char *sqlstate() const
	{
		return sqlstate_[0] != '\0' ? sqlstate_ : nullptr;
	}

private:
	static constexpr int count = 4;
	static constexpr int counted = 2;	/* the statement that counts */

	static Ran lost(bool)
	{
		return Ran::lost;
	}

	bool fail(const char *why)
	{
		return fail_answer(why, problem_);
	}

	/* Takes the next result.  False, without a connection, where it is not what is to come. */
	bool take_result()
	{
		PGresult   *result = bounded([] { return PQgetResult(connection); });
		const bool	is_good = PQstatus(connection) == CONNECTION_BAD ? fail_connection(problem_) : take(result);

		PQclear(result);
		return is_good;
	}

	bool take(const PGresult *result)
	{
		/* The end of one statement's results: the next one's come row by row. */
		if (result == nullptr)
		{
			if (number_ < count && !is_complete_ && !is_refused_)
				return fail("it has no result");
			number_++;
			rows_ = 0;
			is_complete_ = false;
			(void) PQsetSingleRowMode(connection);
			return number_ <= count || fail("it has too many results");
		}

		const ExecStatusType status = PQresultStatus(result);
		const Statement *statement = number_ < count ? statements_[number_] : nullptr;

		if (status == PGRES_PIPELINE_SYNC)
		{
			is_done_ = true;
			return number_ == count || fail("its results have ended too early");
		}
		if (statement == nullptr || is_complete_)
			return fail("it has too many results");
		if (status == PGRES_FATAL_ERROR && !is_refused_)
			return take_error(result);
		/* What follows an error is skipped. */
		if (is_refused_)
			return status == PGRES_PIPELINE_ABORTED || fail("it goes on after an error");
		switch (status)
		{
			case PGRES_COMMAND_OK:
				is_complete_ = true;
				if (statement->columns[0] != 0)
					return fail("it has no rows");
				return statement != &commit_statement ||
					strcmp(PQcmdStatus(const_cast<PGresult *>(result)), "COMMIT") == 0 || fail("it has not committed");
			case PGRES_SINGLE_TUPLE:
				return take_row(*statement, result);
			case PGRES_TUPLES_OK:
				is_complete_ = true;
				/* Without single-row mode, as for the first statement, it would have rows itself. */
				if (statement->columns[0] == 0 || !has_columns(result, statement->columns) || PQntuples(result) != 0)
					return fail("its columns are not those that were asked for");
				return statement->most_rows != 1 || rows_ == 1 || fail("it has no row");
			default:
				return fail("it is no result of a query");
		}
	}

	bool take_row(const Statement &statement, const PGresult *result)
	{
		RowReader	row(result);

		if (statement.columns[0] == 0 || !has_columns(result, statement.columns))
			return fail("its columns are not those that were asked for");
		if (++rows_ > statement.most_rows)
			return fail("it has too many rows");
		return number_ != counted || taker_.take(&row, taker_.argument) || fail("a value is not what it can be");
	}

	/* An error of the registry's: its primary message. */
	bool take_error(const PGresult *result)
	{
		const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
		const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

		is_refused_ = true;
		strlcpy(sqlstate_, state != nullptr ? state : "", sizeof(sqlstate_));
		set_problem(problem_, "", message != nullptr ? message : PQresultErrorMessage(result));
		return true;
	}

	const Statement *statements_[count];
	const Taker &taker_;
	Problem    *problem_;
	int			number_ = 0;	/* of the statement whose results come */
	int			rows_ = 0;		/* of that */
	bool		is_complete_ = false;	/* that has all of its results */
	bool		is_refused_ = false;
	bool		is_done_ = false;
	char		sqlstate_[8] = "";
};

/*
 * Runs a statement in a transaction of its own, and waits for its end.  What its taker
 * was given counts where it is done, since the commit has been confirmed then.
 *
 * Nothing that it sets stays: behind a pooler the connection is another client's
 * afterwards.  All goes in one message, with values as parameters, since the texts
 * of statements are shown to whoever has the role.
 */
Ran
run(const Statement &statement, const char *const *values, const Taker &taker, Problem *problem,
	Written *otherwise = nullptr)
{
	if (connection == nullptr)
	{
		set_problem(problem, "", "there is no connection to the registry");
		return Ran::lost;
	}
	if (!begin_operation())
	{
		(void) fail_answer("it takes too much memory", problem);
		return Ran::lost;
	}

	/* After an error the transaction before is still to be ended. */
	const bool	is_again = PQtransactionStatus(connection) == PQTRANS_INERROR;
	const Statement &begin = is_again ? begin_again_statement :
		&statement == &look_around_statement ? begin_look_statement : begin_statement;
	Transaction transaction(begin, statement, taker, problem);

	if (!transaction.send(values))
	{
		(void) fail_connection(problem);
		return Ran::lost;
	}

	const Ran	ran = transaction.receive();

	/* What became of a write that is not done. */
	if (otherwise != nullptr)
	{
		const char *state = transaction.sqlstate();

		*otherwise = Written::refused;
		/* The server is being stopped: its commit may have been made, all the same. */
		if (ran == Ran::lost || (ran == Ran::refused && (state == nullptr || strncmp(state, "57P", 3) == 0)))
			*otherwise = Written::unknown;
		/* lock_not_available */
		else if (ran == Ran::refused && strcmp(state, "55P03") == 0)
			*otherwise = Written::busy;
	}
	return ran;
}

/* A host of several gets its share of the time; one that does not answer must not use up the others'. */
bool
wait_for_connection(long limit_ms, Problem *problem)
{
	const long	end_ms = context->time_left() - limit_ms;
	PostgresPollingStatusType polled = PGRES_POLLING_WRITING;

	for (int polls = 0; polled == PGRES_POLLING_READING || polled == PGRES_POLLING_WRITING; polls++)
	{
		long		left_ms = context->time_left() - end_ms;

		const int	event = polled == PGRES_POLLING_READING ? WL_SOCKET_READABLE : WL_SOCKET_WRITEABLE;

		if (left_ms <= 0 || context->wait(PQsocket(connection), event, left_ms) <= 0)
			return fail_by_time("could not connect to the registry", problem);
		if (!poll_login(Max(context->time_left() - end_ms, 1), &polled, problem))
		{
			disconnect();
			return false;
		}
		if (notices > most_notices || polls > most_reads)
			return fail_answer("it sends too much that was not asked for", problem);
	}
	return polled == PGRES_POLLING_OK || fail_connection(problem);
}

/* What a registry says of itself. */
struct Surroundings
{
	bool		is_standby;
	bool		has_extension;
	uint64_t	system_identifier;
};

bool
take_surroundings(RowReader *row, void *argument)
{
	Surroundings *found = static_cast<Surroundings *>(argument);

	*found = {row->truth(0), !row->is_null(1), static_cast<uint64_t>(row->number(2, INT64_MIN))};
	return row->is_readable();
}

/* Finds the extension. */
bool
look_around(Problem *problem)
{
	Surroundings found{};
	const Taker taker = {take_surroundings, &found};

	if (run(look_around_statement, nullptr, taker, problem) != Ran::done)
	{
		disconnect();
		return false;
	}
	system_identifier = found.system_identifier;
	if (!found.is_standby && found.has_extension)
		return true;
	set_problem(problem, "", found.is_standby ? "the registry's server is a standby" :
				"the registry's database has no extension \"snowflake\"");
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
 * there is no such target_session_attrs.  Null where it can't be read.
 */
PQconninfoOption *
read_options(const char *address)
{
	const char *const names[] = {"dbname", "password", "target_session_attrs", nullptr};
	const char *const values[] = {address, "none", "none", nullptr};
	PGconn	   *refused = PQconnectStartParams(names, values, 1);
	PQconninfoOption *options = PQconninfo(refused);

	PQfinish(refused);
	return options;
}

/* Connects to one address of a host; with none, libpq finds it. */
bool
connect_address(const char *host, const char *hostaddr, const char *port, long limit_ms, Problem *problem)
{
	const char *const names[] = {"fallback_application_name", "dbname", "host", "hostaddr", "port", nullptr};
	const char *const values[] = {"snowflake keeper", context->text, host, hostaddr, port, nullptr};

	disconnect();
	connection_bytes = allocated_bytes();
	(void) begin_operation();
	connection = PQconnectStartParams(names, values, 1);
	if (connection == nullptr)
	{
		set_problem(problem, "", "out of memory");
		return false;
	}
	(void) PQsetNoticeReceiver(connection, count_notice, nullptr);
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

/* What is read of one number. */
struct ReadClaim
{
	Claim	   *claim;
	RegistryTime *registry;
};

/* Where nothing is known of a number, all columns of the claim are null. */
bool
take_claim(RowReader *row, void *argument)
{
	const ReadClaim *read = static_cast<ReadClaim *>(argument);
	Claim	   *claim = read->claim;
	RegistryTime *registry = read->registry;

	registry->clock_us = row->number(0);
	registry->max_forward_jump_us = row->number(1);
	registry->unsettled_us = row->number(2);
	/* One that is too long is another one than this server's. */
	row->text(3, registry->layout, true, true);
	claim->version = row->number(12);
	for (int column = 5; column <= 11; column++)
		row->require(!row->is_null(4) || row->is_null(column));
	if (!row->is_null(4))
	{
		claim->generation = row->number(4, 1);
		row->text(5, claim->holder.nonce, true, false);
		row->text(6, claim->holder.host, false, true);
		claim->holder.port = static_cast<int32_t>(row->number(7, 0, max_port));
		row->text(8, claim->holder.data_directory, false, true);
		claim->since_us = row->number(9);
		claim->granted_until_us = row->number(10);
		claim->is_alive = row->truth(11);
	}
	return row->is_readable() && is_possible(*claim) && is_possible(*registry);
}

bool
read(uint64_t node, int64_t window_us, Claim *claim, RegistryTime *registry, Problem *problem)
{
	const NumberText node_text(static_cast<int64_t>(node));
	const IntervalText window_text(window_us);
	const char *const values[] = {context->group, node_text.text, context->me.nonce, window_text.text};
	ReadClaim	read = {claim, registry};
	const Taker taker = {take_claim, &read};

	*claim = {};
	*registry = {};
	claim->node = node;
	return run(read_statement, values, taker, problem) == Ran::done;
}

struct Listing
{
	void		(*found) (const ListedClaim &claim, void *argument);
	void	   *argument;
	int64_t		last;
};

/* A fence that can't be meant makes nobody else's claim unreadable: its number is not free. */
bool
take_listed(RowReader *row, void *argument)
{
	Listing    *listing = static_cast<Listing *>(argument);
	const int64_t node = row->number(0, listing->last + 1);
	const int64_t until_us = row->number(1, INT64_MIN);
	const int64_t freed_us = row->number(2, INT64_MIN);
	const bool	is_free = row->truth(3);
	const bool	is_meant = is_within(until_us, latest_time_us) && is_within(freed_us, latest_time_us);

	if (!row->is_readable())
		return false;
	listing->last = node;
	/* Whoever keeps it takes memory, too. */
	if (memory_limit != 0)
		memory_limit += 2 * sizeof(ListedClaim);
	listing->found({static_cast<uint64_t>(node), is_meant ? until_us : latest_time_us,
					is_meant ? freed_us : latest_time_us, is_meant && is_free}, listing->argument);
	return true;
}

bool
list(void (*found) (const ListedClaim &claim, void *argument), void *argument, Problem *problem)
{
	const char *const values[] = {context->group};
	Listing		listing = {found, argument, -1};
	const Taker taker = {take_listed, &listing};

	return run(list_statement, values, taker, problem) == Ran::done;
}

bool
take_written(RowReader *row, void *argument)
{
	*static_cast<bool *>(argument) = row->truth(0);
	return row->is_readable();
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
	bool		is_written = false;
	Written		otherwise = Written::unknown;
	const Taker taker = {take_written, &is_written};
	const Ran	ran = run(write_statement, values, taker, problem, &otherwise);

	if (ran == Ran::done)
		return is_written ? Written::done : Written::changed;
	return otherwise;
}

bool
idle(long timeout_ms, Problem *problem)
{
	int64_t		end_ns = boot_clock_ns() + timeout_ms * ns_per_ms;

	(void) begin_operation();
	for (int reads = 0;; reads++)
	{
		const long	left_ms = ms_until(end_ns);

		if (left_ms == 0 || context->wait(PQsocket(connection), WL_SOCKET_READABLE, left_ms) <= 0)
			return true;
		/* Nothing was asked: a notice, the connection's end, or the message before it. */
		if (!bounded([] { return PQconsumeInput(connection); }) || PQstatus(connection) == CONNECTION_BAD)
			return fail_connection(problem);
		/* What is not looked at is kept. */
		(void) bounded([] { return PQisBusy(connection); });
		if (PQstatus(connection) == CONNECTION_BAD)
			return fail_connection(problem);
		if (notices > most_notices || reads > most_idle_reads)
			return fail_answer("it sends too much that was not asked for", problem);
	}
}

uint64_t
registry_system_identifier()
{
	return system_identifier;
}

/* Is it this machine?  A name in a list of addresses counts by its address. */
bool
is_local(const char *host, const char *hostaddr)
{
	const char *place = hostaddr[0] != '\0' ? hostaddr : host;

	return place[0] == '\0' || place[0] == '/' || place[0] == '@' || strcmp(place, "localhost") == 0 ||
		strcmp(place, "::1") == 0 ||
		(strncmp(place, "127.", 4) == 0 && strspn(place, "0123456789.") == strlen(place));
}

/* GSSAPI's encryption is between two that know each other, too. */
bool
trusts_network(const StoreContext *given, Problem *reason)
{
	PQconninfoOption *options = read_options(given->text);
	const Hosts hosts(options);
	const char *sslmode = "";
	bool		is_proven = false;
	bool		is_remote = false;

	for (const PQconninfoOption *option = options; option != nullptr && option->keyword != nullptr; option++)
	{
		if (option->val == nullptr)
			continue;
		if (strcmp(option->keyword, "sslmode") == 0)
			sslmode = option->val;
		else if (strcmp(option->keyword, "gssencmode") == 0 && strcmp(option->val, "require") == 0)
			is_proven = true;
	}
	is_proven = is_proven || strcmp(sslmode, "verify-full") == 0;
	for (int i = 0; i < hosts.count && !is_proven; i++)
		is_remote = is_remote || !is_local(Entry(hosts.host, i).text, Entry(hosts.hostaddr, i).text);
	snprintf(reason->text, sizeof(reason->text), "its sslmode is \"%.20s\"", sslmode[0] != '\0' ? sslmode : "prefer");
	PQconninfoFree(options);
	return is_remote;
}

constexpr Store store = {connect, disconnect, read, list, write, idle, registry_system_identifier, trusts_network};

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
