/*
 * zookeeper.cpp
 *		Claims in ZooKeeper.
 *
 *		PATH/GROUP/.layout				the layout of the group's ids, as text; it stays
 *		PATH/GROUP/NODE					a claim, as text; it stays
 *		PATH/GROUP/NODE/alive			ephemeral: there while its holder's session is
 *		PATH/GROUP/.keepers/SESSION		ephemeral: a session's clock
 *
 * What is granted counts from the version of the claim that a write replaces, so
 * that a read may be stale.  Claim and liveness are written together, in one
 * transaction.  ZooKeeper has no call for its clock: each read begins with a
 * write of the session's own znode, whose time is the leader's clock.  As one
 * session's requests are carried out in order, that write also brings the server
 * up to date for the reads behind it.
 *
 * A handle of the library is kept for one connection to one server; the session
 * goes on in the next handle, by its number and password.  Which server is tried
 * for how long is decided here: the library would wait for most of the session's
 * time for one that does not answer.  And nothing asked of a connection that was
 * given up is sent again over a later one, since it goes with its handle.
 *
 * The library is single-threaded: it moves in pump() alone, which waits through
 * the keeper.  Answers to what nobody waits for any more are told by their tag.
 */
#include "registry/store.h"

#include <sys/socket.h>
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/parse.h"
#include "postgres/clock.h"

#include "postgres/pg.h"

extern "C"
{
MODULE_MAGIC("snowflake_zookeeper", SNOWFLAKE_VERSION);
}

namespace snowflake
{

namespace
{

/* How long a server may be silent before another one is tried: a part of the session's time, within these. */
constexpr int64_t silent_part = 6;
constexpr int64_t min_silent_ms = 1000;
constexpr int64_t max_silent_ms = 5000;

/* A session is ended on the server, which may take a moment, where the server answered so recently. */
constexpr int64_t recent_ms = 1000;

/* So many requests are under way at once. */
constexpr int max_requests = 64;

/* A claim's text, numbers and what Holder has room for, or a layout's. */
constexpr int max_data_bytes = 4096;
static_assert(max_data_bytes >= sizeof(LayoutText));
constexpr std::string_view claim_format = "snowflake-claim ";
constexpr uint64_t claim_format_version = 1;

struct Path
{
	char		text[1280];

	/* False, and cut, where it does not fit. */
	bool		print(const char *format, ...) noexcept __attribute__((format(printf, 2, 3)));
};

/* The answer to a request. */
struct Answer
{
	bool		is_there;
	int			result;			/* ZOK, or the library's number for what went wrong */
	struct Stat stat;
	int			length;
	char		data[max_data_bytes];

	std::string_view text() const noexcept
	{
		return {data, static_cast<size_t>(length)};
	}
};

enum class Ended
{
	answered,
	given_up,					/* by the keeper */
	broken,						/* the connection; it is closed */
};

/* What the last read saw besides the claim; a write that follows it builds on that. */
struct Seen
{
	bool		is_valid;
	uint64_t	node;
	int32_t		clock_version;	/* of the session's own znode: nothing but reads writes it */
	bool		has_layout;
	bool		has_alive;
	int64_t		alive_session;
	int32_t		alive_version;
	char		alive_nonce[nonce_digits + 1];
};

/* The numbers of the group's claims. */
struct Numbers
{
	uint64_t   *numbers;
	int64_t		count;
	bool		is_out_of_memory;
};

constinit const StoreContext *context = nullptr;
constinit zhandle_t *handle = nullptr;	/* of the connection that is there, or being made */
constinit clientid_t session{}; /* client_id 0: none */
constinit bool is_prepared = false;		/* the session has its znode */
constinit bool keeps_alive = false;		/* a claim counts as alive with the session, or may */
constinit int host = -1;		/* which one of the hosts; -1: none yet */
constinit char server[sizeof(RegistryAddress::hosts)] = "";		/* that host and port */
constinit int failure_errno = 0;	/* why the connection failed, where the library knew */
constinit int64_t answered_ms = 0;	/* when the server last answered all that was asked */
constinit int64_t silent_since_ms = 0;	/* since when an answer has been missing and nothing came; 0: none is missing */
constinit Path group_path{};
constinit Path clock_path{};
constinit Path layout_path{};
constinit Seen seen{};

/* The requests of the operation at hand. */
constinit uintptr_t operation = 0;
constinit int requests = 0;
constinit int unanswered = 0;
constinit Answer answers[max_requests]{};
constinit zoo_op_result_t parts[5]{};	/* written by the library, not read: a refused part names the whole */
constinit Numbers numbers{};

bool
Path::print(const char *format, ...) noexcept
{
	va_list		arguments;

	va_start(arguments, format);

	int			length = vsnprintf(text, sizeof(text), format, arguments);

	va_end(arguments);
	return length >= 0 && static_cast<size_t>(length) < sizeof(text);
}

bool fail(Problem *problem, const char *format, ...) __attribute__((format(printf, 2, 3)));

bool
fail(Problem *problem, const char *format, ...)
{
	va_list		arguments;

	va_start(arguments, format);
	(void) vsnprintf(problem->text, sizeof(problem->text), format, arguments);
	va_end(arguments);
	return false;
}

int64_t
now_ms()
{
	return boot_clock_ns() / (1000 * 1000);
}

/* The connection: its handle, from which the library is driven. */

enum class Moved
{
	on,							/* something was received */
	nothing,
	given_up,					/* by the keeper */
	failed,						/* the connection to this address */
	exhausted,					/* the server has no further address */
};

int64_t
silent_ms()
{
	int64_t		timeout_ms = handle != nullptr ? zoo_recv_timeout(handle) : context->window_us / 1000;

	return std::clamp(timeout_ms / silent_part, min_silent_ms, max_silent_ms);
}

bool
is_connected()
{
	return handle != nullptr && zoo_state(handle) == ZOO_CONNECTED_STATE;
}

bool
is_expired()
{
	return handle != nullptr && zoo_state(handle) == ZOO_EXPIRED_SESSION_STATE;
}

/* The library's log: the one thing that says why a connection failed. */
void
keep_failure(const char *message)
{
	constexpr const char *mark = "errno=";
	const char *found = strstr(message, mark);

	if (found != nullptr)
		failure_errno = atoi(found + strlen(mark));
}

/* Lets the library send and receive, for at most limit_ms. */
Moved
pump(int64_t limit_ms)
{
	int			socket = -1;
	int			interest = 0;
	timeval		wanted{};

	if (zookeeper_interest(handle, &socket, &interest, &wanted) != ZOK)
		return Moved::failed;
	if (socket == -1)
		return Moved::exhausted;

	int64_t		wanted_ms = wanted.tv_sec * 1000 + (wanted.tv_usec + 999) / 1000;
	int			events = (interest & ZOOKEEPER_READ ? WL_SOCKET_READABLE : 0) |
		(interest & ZOOKEEPER_WRITE ? WL_SOCKET_WRITEABLE : 0);
	int			ready = context->wait(socket, events, static_cast<long>(std::max<int64_t>(std::min(wanted_ms, limit_ms), 0)));

	if (ready < 0)
		return Moved::given_up;
	if (ready == 0)
		return Moved::nothing;

	int			result = zookeeper_process(handle, (ready & WL_SOCKET_READABLE ? ZOOKEEPER_READ : 0) |
									   (ready & WL_SOCKET_WRITEABLE ? ZOOKEEPER_WRITE : 0));

	if (result != ZOK && result != ZNOTHING)
		return Moved::failed;
	return ready & WL_SOCKET_READABLE ? Moved::on : Moved::nothing;
}

/* Answers that are still missing are of no interest any more. */
void
forget_requests()
{
	operation++;
	requests = 0;
	unanswered = 0;
}

void
forget_session()
{
	session = {};
	is_prepared = false;
	keeps_alive = false;
	seen.is_valid = false;
}

/*
 * Closes the connection.  The session goes on, unless it has expired or is to
 * end.  zookeeper_close() would end it wherever the handle is connected, and wait
 * for the server for up to 4.5 s: so the socket is broken first.
 */
void
close_connection(bool end_session)
{
	if (handle == nullptr)
		return;
	forget_requests();
	for (int tries = 1000; tries > 0 && is_connected() && !end_session; tries--)
	{
		int			socket = -1;
		int			interest;
		timeval		wanted;

		/* It may fail, as it fails to send, and say which socket it is all the same. */
		(void) zookeeper_interest(handle, &socket, &interest, &wanted);
		(void) shutdown(socket, SHUT_RDWR);
		(void) zookeeper_process(handle, ZOOKEEPER_READ);
	}
	if (end_session || is_expired())
		forget_session();
	zookeeper_close(handle);
	handle = nullptr;
}

/*
 * pump() for a connection that is there.  One that fails is closed: the library
 * does not notice itself where it only fails to send.
 */
Moved
move_connection(int64_t limit_ms)
{
	Moved		moved = is_connected() ? pump(limit_ms) : Moved::failed;

	if (moved == Moved::exhausted || !is_connected())
		moved = Moved::failed;
	if (moved == Moved::failed)
		close_connection(false);
	if (moved == Moved::on)
		silent_since_ms = 0;
	return moved;
}

int
count_hosts()
{
	const char *hosts = context->address->hosts;

	return static_cast<int>(std::count(hosts, hosts + strlen(hosts), ',')) + 1;
}

/* Keepers begin with different servers. */
int
first_host()
{
	uint32_t	sum = 0;

	for (const char *digit = context->me.nonce; *digit != '\0'; digit++)
		sum = sum * 31 + static_cast<unsigned char>(*digit);
	return static_cast<int>(sum % static_cast<uint32_t>(count_hosts()));
}

/* The chosen host's addresses, each with its port, as the library reads them. */
LookedUp
look_up_host(char *addresses, size_t size, Problem *problem)
{
	std::string_view hosts = context->address->hosts;
	std::string_view chosen;
	char		name[sizeof(server)];
	Addresses	found = {};
	size_t		length = 0;

	for (int i = 0; i <= host; i++)
		chosen = take_until(&hosts, ',');
	snprintf(server, sizeof(server), "%.*s", static_cast<int>(chosen.size()), chosen.data());
	strlcpy(name, server, sizeof(name));

	char	   *colon = strrchr(name, ':');

	*colon = '\0';

	const LookedUp result = context->look_up(context, name, static_cast<long>(silent_ms()), &found, problem);

	strlcpy(addresses, server, size);
	for (int i = 0; i < found.count && length < size; i++)
		length += static_cast<size_t>(snprintf(addresses + length, size - length, "%s%s:%s", i == 0 ? "" : ",", found.text[i], colon + 1));
	return result;
}

bool
open_handle(const char *addresses)
{
	failure_errno = 0;
	zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
	handle = zookeeper_init2(addresses, nullptr, static_cast<int>(std::clamp<int64_t>(context->window_us / 1000, 1, INT_MAX)),
							 session.client_id != 0 ? &session : nullptr, nullptr, ZOO_NO_LOG_CLIENTENV, keep_failure);
	if (handle == nullptr)
		return false;
	/* Names are looked up before a connection is made, not while it is there. */
	(void) zoo_set_servers_resolution_delay(handle, -1);
	return true;
}

/* Connects to the chosen host; *given_up where the keeper wants nothing more of it. */
bool
connect_host(bool *given_up, Problem *problem)
{
	char		addresses[max_addresses * (sizeof(Addresses::text[0]) + sizeof(",:65535"))];
	const LookedUp looked_up = look_up_host(addresses, sizeof(addresses), problem);

	*given_up = looked_up == LookedUp::given_up;
	if (looked_up != LookedUp::done)
		return false;
	if (!open_handle(addresses))
		return fail(problem, "could not look up the host of ZooKeeper's server \"%s\"", server);

	int64_t		deadline_ms = now_ms() + silent_ms();
	const char *reason = "it does not answer";

	/* A host may have several addresses.  Each failure goes on to the next one. */
	for (int failures = 0; failures < 10;)
	{
		int64_t		left_ms = deadline_ms - now_ms();

		if (left_ms <= 0)
			break;

		Moved		moved = pump(left_ms);

		if (is_connected())
		{
			session = *zoo_client_id(handle);
			answered_ms = now_ms();
			silent_since_ms = 0;
			return true;
		}
		if (is_expired())
		{
			close_connection(false);
			return fail(problem, "the session in ZooKeeper has expired");
		}
		*given_up = moved == Moved::given_up;
		if (moved == Moved::failed)
			failures++;
		if (moved == Moved::failed && failure_errno != 0)
			reason = failure_errno == EHOSTDOWN ? "it closed the connection" : strerror(failure_errno);
		if (moved == Moved::given_up || moved == Moved::exhausted)
			break;
	}
	close_connection(false);
	return fail(problem, "could not connect to ZooKeeper's server \"%s\": %s", server, reason);
}

/* Connects to the first of the hosts that answers, each tried once. */
bool
connect_any(bool *given_up, Problem *problem)
{
	const bool	has_session = session.client_id != 0;

	*given_up = false;
	close_connection(false);
	if (has_session && session.client_id == 0)
		return fail(problem, "the session in ZooKeeper has expired");
	for (int tries = count_hosts(); tries > 0; tries--)
	{
		host = host < 0 ? first_host() : (host + 1) % count_hosts();
		if (connect_host(given_up, problem))
			return true;
		if (*given_up || (has_session && session.client_id == 0))
			break;
	}
	return false;
}

/* Requests and their answers. */

/* What the library hands back with an answer. */
const void *
tag_of(const Answer *answer)
{
	return reinterpret_cast<const void *>(operation * max_requests + static_cast<uintptr_t>(answer - answers));
}

/* The answer that is waited for, or null. */
Answer *
receive(const void *tag, int result, const struct Stat *stat)
{
	uintptr_t	number = reinterpret_cast<uintptr_t>(tag);
	Answer	   *answer = &answers[number % max_requests];

	if (number != reinterpret_cast<uintptr_t>(tag_of(answer)) || answer->is_there)
		return nullptr;
	answer->is_there = true;
	answer->result = result;
	answer->stat = stat != nullptr ? *stat : Stat{};
	answer->length = 0;
	unanswered--;
	return answer;
}

void
receive_data(int result, const char *value, int length, const struct Stat *stat, const void *tag)
{
	Answer	   *answer = receive(tag, result, stat);

	if (answer != nullptr && result == ZOK)
	{
		answer->length = std::clamp(length, 0, max_data_bytes);
		memcpy(answer->data, value, static_cast<size_t>(answer->length));
	}
}

void
receive_stat(int result, const struct Stat *stat, const void *tag)
{
	(void) receive(tag, result, stat);
}

void
receive_string(int result, const char *, const void *tag)
{
	(void) receive(tag, result, nullptr);
}

void
receive_void(int result, const void *tag)
{
	(void) receive(tag, result, nullptr);
}

/* Keeps the names that are node numbers. */
void
receive_children(int result, const struct String_vector *names, const void *tag)
{
	if (receive(tag, result, nullptr) == nullptr || result != ZOK)
		return;
	numbers.count = 0;
	numbers.numbers = static_cast<uint64_t *>(MemoryContextAllocExtended(CurrentMemoryContext,
		sizeof(uint64_t) * static_cast<size_t>(names->count + 1), MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM));
	numbers.is_out_of_memory = numbers.numbers == nullptr;
	for (int32_t i = 0; i < names->count && !numbers.is_out_of_memory; i++)
	{
		std::string_view name = names->data[i];

		if (parse_digits(name, UINT64_MAX, &numbers.numbers[numbers.count]) && (name.size() == 1 || name.front() != '0'))
			numbers.count++;
	}
}

Answer *
next_answer()
{
	Answer	   *answer = &answers[requests++];

	answer->is_there = false;
	unanswered++;
	return answer;
}

/* Takes what a function of the library said that was to send a request. */
void
sent(const Answer *answer, int result)
{
	if (result != ZOK)
		(void) receive(tag_of(answer), result, nullptr);
}

Answer *
ask_create(const char *path, std::string_view data, int mode)
{
	Answer	   *answer = next_answer();

	sent(answer, zoo_acreate(handle, path, data.data(), static_cast<int>(data.size()), &ZOO_OPEN_ACL_UNSAFE, mode,
							 receive_string, tag_of(answer)));
	return answer;
}

Answer *
ask_get(const char *path)
{
	Answer	   *answer = next_answer();

	sent(answer, zoo_aget(handle, path, 0, receive_data, tag_of(answer)));
	return answer;
}

/* Waits for the answers of this operation. */
Ended
wait_for_answers()
{
	while (unanswered > 0)
	{
		if (silent_since_ms == 0)
			silent_since_ms = now_ms();

		/* Whatever has come is looked at first: this process may have stood still itself. */
		Moved		moved = move_connection(silent_since_ms + silent_ms() - now_ms());

		if (moved == Moved::nothing && now_ms() - silent_since_ms >= silent_ms())
		{
			close_connection(false);
			moved = Moved::failed;
		}
		if (moved == Moved::given_up)
		{
			forget_requests();
			return Ended::given_up;
		}
		if (moved == Moved::failed)
			return Ended::broken;
	}
	answered_ms = now_ms();
	forget_requests();
	return Ended::answered;
}

bool
fail_lost(Problem *problem)
{
	return fail(problem, "lost the connection to ZooKeeper's server \"%s\"", server);
}

/* Says what became of a request that was not carried out. */
bool
fail_request(Problem *problem, Ended ended, const char *action, const char *path, const Answer *answer)
{
	if (session.client_id == 0)
		return fail(problem, "the session in ZooKeeper has expired");
	/* The library answers for a connection that is lost. */
	if (ended == Ended::broken)
		return fail_lost(problem);
	if (answer->is_there)
		return fail(problem, "could not %s \"%s\" in ZooKeeper: %s", action, path, zerror(answer->result));
	return fail(problem, "ZooKeeper's server \"%s\" did not answer in time", server);
}

/* The text of a claim. */

/* Takes a line off that gives the value of a name. */
bool
take_line(std::string_view *text, std::string_view name, std::string_view *value)
{
	if (text->find('\n') == std::string_view::npos)
		return false;
	*value = take_until(text, '\n');
	if (slice(*value, 0, name.size()) != name)
		return false;
	*value = slice(*value, name.size());
	return true;
}

bool
take_number(std::string_view *text, std::string_view name, uint64_t max, uint64_t *number)
{
	std::string_view value;

	return take_line(text, name, &value) && parse_digits(value, max, number);
}

bool
take_text(std::string_view *text, std::string_view name, char *value, size_t size)
{
	std::string_view found;

	if (!take_line(text, name, &found) || found.size() >= size || found.find('\0') != std::string_view::npos)
		return false;
	memcpy(value, found.data(), found.size());
	value[found.size()] = '\0';
	return true;
}

bool
is_nonce(std::string_view text)
{
	return text.size() == nonce_digits &&
		std::all_of(text.begin(), text.end(), [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

/* Lines that follow these belong to later versions, which mean the same by these. */
bool
parse_claim(std::string_view text, Claim *claim)
{
	uint64_t	version;
	uint64_t	generation;
	uint64_t	granted_until_us;
	uint64_t	since_us;
	uint64_t	port;
	Holder	   *holder = &claim->holder;

	if (!take_number(&text, claim_format, UINT64_MAX, &version) || version != claim_format_version ||
		!take_number(&text, "generation ", INT64_MAX, &generation) || generation == 0 ||
		!take_number(&text, "granted_until_us ", INT64_MAX, &granted_until_us) ||
		!take_number(&text, "since_us ", INT64_MAX, &since_us) ||
		!take_text(&text, "nonce ", holder->nonce, sizeof(holder->nonce)) ||
		!take_number(&text, "port ", 65535, &port) ||
		!take_text(&text, "host ", holder->host, sizeof(holder->host)) ||
		!take_text(&text, "data_directory ", holder->data_directory, sizeof(holder->data_directory)))
		return false;
	if (!holder->is_nobody() && !is_nonce(holder->nonce))
		return false;
	claim->generation = static_cast<int64_t>(generation);
	claim->granted_until_us = static_cast<int64_t>(granted_until_us);
	claim->since_us = static_cast<int64_t>(since_us);
	holder->port = static_cast<int32_t>(port);
	return true;
}

/* A name for people; what would end its line is shown as "?". */
struct OneLine
{
	char		text[sizeof(Holder::data_directory)];

	explicit	OneLine(const char *name)
	{
		snprintf(text, sizeof(text), "%s", name);
		std::replace(text, text + strlen(text), '\n', '?');
	}
};

std::string_view
print_claim(const Claim &claim, char *text, size_t size)
{
	int			length = snprintf(text, size,
								  "%.*s%llu\n"
								  "generation %lld\n"
								  "granted_until_us %lld\n"
								  "since_us %lld\n"
								  "nonce %s\n"
								  "port %d\n"
								  "host %s\n"
								  "data_directory %s\n",
								  static_cast<int>(claim_format.size()), claim_format.data(),
								  static_cast<unsigned long long>(claim_format_version),
								  static_cast<long long>(claim.generation), static_cast<long long>(claim.granted_until_us),
								  static_cast<long long>(claim.since_us), claim.holder.nonce, claim.holder.port,
								  OneLine(claim.holder.host).text, OneLine(claim.holder.data_directory).text);

	return {text, static_cast<size_t>(length)};
}

static_assert(max_data_bytes >= sizeof(Holder) + 256, "a claim's text fits");

bool
fail_claim(Problem *problem, const char *path)
{
	return fail(problem, "znode \"%s\" in ZooKeeper holds no claim that can be read", path);
}

/* The session. */

bool
print_group_path()
{
	char		name[3 * 256 + 1] = "";
	size_t		length = 0;

	/* A znode's name may hold no slash, no control characters, and not be "." or "..". */
	for (const char *c = context->group; *c != '\0'; c++)
	{
		if (length + 4 > sizeof(name))
			return false;
		if (is_digit(*c) || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '-' || *c == '_')
			name[length++] = *c;
		else
			length += static_cast<size_t>(snprintf(name + length, 4, "%%%02X", static_cast<unsigned char>(*c)));
	}
	return group_path.print("%s/%s", context->address->path, name) && layout_path.print("%s/.layout", group_path.text);
}

/* Creates what is missing of the path.  *failed is the topmost that could not be created, or empty. */
Ended
create_path(Path *failed, Answer *reason)
{
	Path		path;

	(void) path.print("%s/.keepers", group_path.text);
	for (char *slash = path.text; slash != nullptr;)
	{
		slash = strchr(slash + 1, '/');
		if (slash != nullptr)
			*slash = '\0';

		const Answer *answer = ask_create(path.text, "", ZOO_PERSISTENT);
		Ended		ended = wait_for_answers();

		if (ended != Ended::answered)
			return ended;
		if (answer->result != ZOK && answer->result != ZNODEEXISTS && failed->text[0] == '\0')
		{
			*failed = path;
			*reason = *answer;
		}
		if (slash != nullptr)
			*slash = '/';
	}
	return Ended::answered;
}

/* Creates the session's own znode. */
bool
prepare_session(Problem *problem)
{
	char		data[nonce_digits + sizeof(OneLine) + 64];
	Path		failed{};
	Answer		reason{};

	snprintf(data, sizeof(data), "nonce %s\nport %d\nhost %s\n",
			 context->me.nonce, context->me.port, OneLine(context->me.host).text);
	(void) clock_path.print("%s/.keepers/%016llx", group_path.text, static_cast<unsigned long long>(session.client_id));
	for (bool is_again = false;; is_again = true)
	{
		forget_requests();

		const Answer *answer = ask_create(clock_path.text, data, ZOO_EPHEMERAL);
		Ended		ended = wait_for_answers();

		is_prepared = answer->is_there && (answer->result == ZOK || answer->result == ZNODEEXISTS);
		if (is_prepared)
			return true;
		/* An ancestor may be there, and not be ours to create. */
		if (!answer->is_there || answer->result != ZNONODE || (is_again && failed.text[0] == '\0'))
			return fail_request(problem, ended, "create", clock_path.text, answer);
		if (is_again)
			return fail_request(problem, ended, "create", failed.text, &reason);
		ended = create_path(&failed, &reason);
		if (ended != Ended::answered)
			return fail_request(problem, ended, "create", group_path.text, &reason);
	}
}

/* Makes sure that there is a connection, to whichever server; the session is the one that connect() began. */
bool
ready(Problem *problem)
{
	bool		given_up;

	if (context == nullptr || session.client_id == 0)
		return fail(problem, "there is no session in ZooKeeper");
	forget_requests();
	/* What came meanwhile is looked at first: the server may have closed the connection. */
	for (Moved moved = Moved::on; is_connected() && moved == Moved::on;)
		moved = move_connection(0);
	if (!is_connected() && !connect_any(&given_up, problem))
		return false;
	if (!is_prepared && !prepare_session(problem))
		return false;
	return is_connected() || fail_lost(problem);
}

/* The store. */

bool
zookeeper_connect(const StoreContext *new_context, Problem *problem)
{
	bool		given_up;

	context = new_context;
	if (!print_group_path())
		return fail(problem, "the name of the registry's group is too long");
	if (session.client_id != 0 && ready(problem))
		return true;
	/* A session that has expired is followed by a new one. */
	return session.client_id == 0 && connect_any(&given_up, problem) && ready(problem);
}

/*
 * The session of a claim that was not released goes on, for the next connection
 * or until it expires: ended here, it would make the claim free to others.
 */
void
zookeeper_disconnect()
{
	const bool	is_recent = is_connected() && now_ms() - answered_ms < recent_ms;

	if (keeps_alive)
	{
		close_connection(false);
		return;
	}
	close_connection(is_recent);
	forget_session();
}

bool
zookeeper_read(uint64_t node, int64_t, Claim *claim, RegistryTime *registry, Problem *problem)
{
	Path		claim_path;
	Path		alive_path;

	seen.is_valid = false;
	for (bool is_again = false;; is_again = true)
	{
		if (!ready(problem))
			return false;
		(void) claim_path.print("%s/%llu", group_path.text, static_cast<unsigned long long>(node));
		(void) alive_path.print("%s/alive", claim_path.text);

		char		data[nonce_digits + 8];
		int			length = snprintf(data, sizeof(data), "nonce %s\n", context->me.nonce);
		Answer	   *clock = next_answer();

		sent(clock, zoo_aset(handle, clock_path.text, data, length, -1, receive_stat, tag_of(clock)));

		Answer	   *found = ask_get(claim_path.text);
		Answer	   *alive = ask_get(alive_path.text);
		Answer	   *layout = ask_get(layout_path.text);
		Ended		ended = wait_for_answers();

		if (clock->is_there && clock->result == ZNONODE && !is_again)
		{
			/* Somebody took it away, or all of the path. */
			is_prepared = false;
			continue;
		}
		if (!clock->is_there || clock->result != ZOK)
			return fail_request(problem, ended, "write", clock_path.text, clock);
		if (!found->is_there || (found->result != ZOK && found->result != ZNONODE))
			return fail_request(problem, ended, "read", claim_path.text, found);
		if (!alive->is_there || (alive->result != ZOK && alive->result != ZNONODE))
			return fail_request(problem, ended, "read", alive_path.text, alive);
		if (!layout->is_there || (layout->result != ZOK && layout->result != ZNONODE))
			return fail_request(problem, ended, "read", layout_path.text, layout);

		*claim = {};
		claim->node = node;
		if (found->result == ZOK)
		{
			if (!parse_claim(found->text(), claim))
				return fail_claim(problem, claim_path.text);
			claim->version = found->stat.version;
		}
		seen = {};
		seen.is_valid = true;
		seen.node = node;
		seen.clock_version = clock->stat.version;
		seen.has_layout = layout->result == ZOK;
		seen.has_alive = alive->result == ZOK;
		seen.alive_session = alive->stat.ephemeralOwner;
		seen.alive_version = alive->stat.version;
		if (is_nonce(alive->text()))
			memcpy(seen.alive_nonce, alive->data, nonce_digits);
		claim->is_alive = seen.has_alive && !claim->holder.is_nobody() && strcmp(seen.alive_nonce, claim->holder.nonce) == 0;
		*registry = {clock->stat.mtime * 1000, 0, 0, "", false};
		snprintf(registry->layout, sizeof(registry->layout), "%.*s", static_cast<int>(layout->text().size()), layout->text().data());
		return true;
	}
}

/* Reads the claims of these numbers, at most max_requests. */
bool
list_some(const uint64_t *nodes, int count,
		  void (*found) (const ListedClaim &claim, void *argument), void *argument, Problem *problem)
{
	Path		path;

	if (!ready(problem))
		return false;
	for (int i = 0; i < count; i++)
	{
		(void) path.print("%s/%llu", group_path.text, static_cast<unsigned long long>(nodes[i]));
		(void) ask_get(path.text);
	}

	Ended		ended = wait_for_answers();

	for (int i = 0; i < count; i++)
	{
		const Answer &answer = answers[i];
		Claim		claim{};

		if (answer.is_there && answer.result == ZNONODE)
			continue;			/* somebody took it away since */
		(void) path.print("%s/%llu", group_path.text, static_cast<unsigned long long>(nodes[i]));
		if (!answer.is_there || answer.result != ZOK)
			return fail_request(problem, ended, "read", path.text, &answer);
		if (!parse_claim(answer.text(), &claim))
			return fail_claim(problem, path.text);

		/* It has no other child than its liveness.  What was written last is its release, or else its holder's last renewal. */
		found({nodes[i], claim.granted_until_us, answer.stat.mtime * 1000,
			   claim.holder.is_nobody() || answer.stat.numChildren == 0}, argument);
	}
	return true;
}

bool
zookeeper_list(void (*found) (const ListedClaim &claim, void *argument), void *argument, Problem *problem)
{
	if (!ready(problem))
		return false;
	numbers = {};

	const Answer *answer = next_answer();

	sent(answer, zoo_aget_children(handle, group_path.text, 0, receive_children, tag_of(answer)));

	Ended		ended = wait_for_answers();

	if (!answer->is_there || answer->result != ZOK)
		return fail_request(problem, ended, "list", group_path.text, answer);
	if (numbers.is_out_of_memory)
		return fail(problem, "out of memory");

	uint64_t   *nodes = numbers.numbers;
	int64_t		count = numbers.count;
	bool		is_done = true;

	std::sort(nodes, nodes + count);
	for (int64_t start = 0; start < count && is_done; start += max_requests)
		is_done = list_some(nodes + start, static_cast<int>(std::min<int64_t>(count - start, max_requests)),
							found, argument, problem);
	pfree(nodes);
	return is_done;
}

/* Has the server refused the whole?  All else may have been carried out, or may still be. */
bool
is_refusal(int result)
{
	switch (result)
	{
		case ZNOAUTH:
		case ZINVALIDACL:
		case ZNOCHILDRENFOREPHEMERALS:
		case ZSESSIONMOVED:
		case ZNOTREADONLY:
		case ZEPHEMERALONLOCALSESSION:
		case ZTHROTTLEDOP:
			return true;
		default:
			return false;
	}
}

Written
zookeeper_write(Form form, const Claim &before, const Claim &next, int64_t window_us, Problem *problem)
{
	Path		claim_path;
	Path		alive_path;
	char		text[max_data_bytes];
	std::string_view data = print_claim(next, text, sizeof(text));
	zoo_op_t	operations[5];
	int			count = 0;

	if (!ready(problem))
		return Written::refused;
	/* What was read in an earlier session is read again. */
	if (!seen.is_valid || seen.node != before.node)
		return Written::changed;
	(void) claim_path.print("%s/%llu", group_path.text, static_cast<unsigned long long>(before.node));
	(void) alive_path.print("%s/alive", claim_path.text);

	if (before.generation == 0)
		zoo_create_op_init(&operations[count++], claim_path.text, data.data(), static_cast<int>(data.size()),
						   &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, nullptr, 0);
	else
		zoo_set_op_init(&operations[count++], claim_path.text, data.data(), static_cast<int>(data.size()),
						static_cast<int>(before.version), nullptr);

	/*
	 * Versions repeat where ZooKeeper was restored from a backup since the read.
	 * The session's own znode then is not as the read left it.
	 */
	zoo_check_op_init(&operations[count++], clock_path.text, seen.clock_version);

	const bool	is_grant = form == Form::claim;
	const bool	is_alive_mine = seen.has_alive && strcmp(seen.alive_nonce, context->me.nonce) == 0;

	/*
	 * The znode for liveness may be there from an earlier session of this keeper,
	 * or of a holder whose claim has ended.
	 */
	if (is_grant ? seen.has_alive && seen.alive_session != session.client_id : next.holder.is_nobody() && is_alive_mine)
		zoo_delete_op_init(&operations[count++], alive_path.text, seen.alive_version);
	if (is_grant && (!seen.has_alive || seen.alive_session != session.client_id))
		zoo_create_op_init(&operations[count++], alive_path.text, context->me.nonce, nonce_digits,
						   &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, nullptr, 0);

	/* Another who was faster makes the whole fail, and the claim is read again. */
	if (is_grant && !seen.has_layout)
		zoo_create_op_init(&operations[count++], layout_path.text, context->layout, static_cast<int>(strlen(context->layout)),
						   &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, nullptr, 0);

	Answer	   *answer = next_answer();

	seen.is_valid = false;
	sent(answer, zoo_amulti(handle, count, operations, parts, receive_void, tag_of(answer)));

	Ended		ended = wait_for_answers();

	if (answer->is_there && answer->result == ZOK)
	{
		keeps_alive = is_grant || (keeps_alive && !next.holder.is_nobody());
		return Written::done;
	}
	if (answer->is_there && (answer->result == ZBADVERSION || answer->result == ZNODEEXISTS || answer->result == ZNONODE))
		return Written::changed;
	(void) fail_request(problem, ended, "write", claim_path.text, answer);
	if (answer->is_there && is_refusal(answer->result))
		return Written::refused;
	/* The session may have expired with the request. */
	keeps_alive = keeps_alive || (is_grant && session.client_id != 0);
	return Written::unknown;
}

/* The session is kept by what the library sends; a server that fails is followed by another. */
bool
zookeeper_idle(long timeout_ms, Problem *problem)
{
	const int64_t deadline_ms = now_ms() + timeout_ms;

	if (context == nullptr || session.client_id == 0)
		return fail(problem, "there is no session in ZooKeeper");
	for (;;)
	{
		bool		given_up;

		if (!is_connected() && !connect_any(&given_up, problem))
			return given_up;

		int64_t		left_ms = deadline_ms - now_ms();

		if (left_ms <= 0 || move_connection(left_ms) == Moved::given_up)
			return true;
	}
}

/* An ensemble does not say which one it is. */
uint64_t
zookeeper_system_identifier()
{
	return 0;
}

constexpr Store store = {
	zookeeper_connect,
	zookeeper_disconnect,
	zookeeper_read,
	zookeeper_list,
	zookeeper_write,
	zookeeper_idle,
	zookeeper_system_identifier,
};

}  // namespace

}  // namespace snowflake

extern "C"
{

/* store_symbol.  A pointer to void: a type that is hidden would hide the function. */
PGDLLEXPORT const void *snowflake_store(void);

const void *
snowflake_store(void)
{
	return &snowflake::store;
}

}
