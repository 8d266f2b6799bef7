/*
 * zookeeper_connection.cpp
 *		A session in ZooKeeper, and the requests made in it.
 */
#include "registry/zookeeper_connection.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

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

constinit const StoreContext *context = nullptr;
constinit zhandle_t *handle = nullptr;	/* of the connection that is there, or being made */
constinit clientid_t session{}; /* client_id 0: none */
constinit int host = -1;		/* which one of the hosts; -1: none yet */
constinit char server[sizeof(RegistryAddress::hosts)] = "";		/* that host and port */
constinit int failure_errno = 0;	/* why the connection failed, where the library knew */
constinit int64_t answered_ms = 0;	/* when the server last answered all that was asked */
constinit int64_t silent_since_ms = 0;	/* since when an answer is missing and nothing came; 0: none is missing */

/* USER:PASSWORD, as it was read last; empty: none */
constexpr size_t longest_auth = 512;
constinit char auth[longest_auth + 2] = "";

/*
 * What the server is to answer, in that order; the library takes an answer to nothing, or one that is cut short, for an
 * error of its own, and ends the process.
 */
enum class Kind : char
{
	create,
	get,
	set,
	children,
	acl,
	multi,
};

constexpr uint32_t most_outstanding = 1024;

constinit Kind outstanding[most_outstanding]{};
constinit uint32_t sent_count = 0;	/* since the connection was opened */
constinit uint32_t answered_count = 0;
constinit bool is_in_frame = false; /* the library is reading one that was looked at */
constinit int multi_types[max_operations]{};	/* of the transaction that was sent last */
constinit int multi_count = 0;

/* The requests of the operation at hand. */
constinit uintptr_t operation = 0;
constinit int requests = 0;
constinit int unanswered = 0;
constinit Answer answers[max_requests]{};
constinit zoo_op_result_t parts[max_operations]{};	/* written by the library, not read: the answer tells enough */
constinit TakeNames take_children = nullptr;

int64_t
now_ms()
{
	return boot_clock_ns() / ns_per_ms;
}

int64_t
silent_ms()
{
	int64_t		timeout_ms = handle != nullptr ? zoo_recv_timeout(handle) : context->window_us / 1000;

	return std::clamp(timeout_ms / silent_part, min_silent_ms, max_silent_ms);
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

/*
 * Looking at what the server sends, before the library reads it.
 *
 * A frame is a length of 4 bytes and what follows: in the session's first one its terms, else a header (the request's
 * number, a transaction's number, an error) and a body.
 */
constexpr size_t max_whole_frame = 8192;	/* is looked at when all of it is there */
constexpr uint32_t max_frame = 64 * 1024 * 1024;
constexpr size_t header_bytes = 16;
constexpr size_t stat_bytes = 68;

enum class Frame
{
	good,
	partial,					/* more is to come before it can be told */
	bad,
};

/* The bytes of a frame from some place on; none where there are not so many. */
struct Bytes
{
	const unsigned char *data;
	size_t		left;
	bool		is_short = false;

	int32_t take_int() noexcept
	{
		uint32_t	value = 0;

		for (int i = 0; i < 4; i++)
			value = value << 8 | (left > static_cast<size_t>(i) ? data[i] : 0);
		skip(4);
		return static_cast<int32_t>(value);
	}

	void skip(size_t count) noexcept
	{
		is_short = is_short || count > left;
		count = std::min(count, left);
		data += count;
		left -= count;
	}

	/* A length, and so many bytes. */
	void skip_text() noexcept
	{
		const int32_t length = take_int();

		if (length < 0)
			is_short = true;
		else
			skip(static_cast<size_t>(length));
	}
};

/* A result for each operation, an end, and nothing less. */
bool
is_multi_answer(Bytes body)
{
	for (int i = 0; i <= multi_count; i++)
	{
		const int32_t type = body.take_int();
		const bool	is_end = body.left > 0 && body.data[0] != 0;

		body.skip(1);
		(void) body.take_int();
		if (body.is_short || is_end)
			return !body.is_short && i == multi_count;
		if (i == multi_count || (type != -1 && type != multi_types[i]))
			return false;
		if (type == -1)
			body.skip(4);
		else if (type == ZOO_CREATE_OP)
			body.skip_text();
		else if (type == ZOO_SETDATA_OP)
			body.skip(stat_bytes);
	}
	return false;
}

/* Is this the body of an answer to such a request?  length is that of the whole frame, of which there may be less. */
bool
is_answer(Kind kind, Bytes body, size_t length)
{
	const size_t body_bytes = length - header_bytes;
	int32_t		count;

	switch (kind)
	{
		case Kind::create:
			body.skip_text();
			return !body.is_short;
		case Kind::set:
			return body_bytes >= stat_bytes;
		case Kind::get:
			count = body.take_int();
			return !body.is_short && count >= -1 &&
				static_cast<size_t>(std::max(count, 0)) + 4 + stat_bytes <= body_bytes;
		case Kind::children:
			count = body.take_int();
			if (body.is_short || count < 0 || static_cast<size_t>(count) > (body_bytes - 4) / 4)
				return false;
			for (int32_t i = 0; i < count && length <= max_whole_frame - 4; i++)
				body.skip_text();
			return !body.is_short;
		case Kind::acl:
			count = body.take_int();
			if (body.is_short || count < 0 || static_cast<size_t>(count) > (body_bytes - 4) / 12)
				return false;
			for (int32_t i = 0; i < count; i++)
			{
				body.skip(4);
				body.skip_text();
				body.skip_text();
			}
			body.skip(stat_bytes);
			return !body.is_short;
		case Kind::multi:
			return is_multi_answer(body);
	}
	return false;
}

/* Looks at the frame that comes next, and says how many bytes there are to be for that. */
Frame
look_at_frame(int socket, size_t *wanted)
{
	static unsigned char data[max_whole_frame];
	pollfd		polled = {socket, POLLRDHUP, 0};
	/* Looked at before what is there: nothing comes after it. */
	const Frame cut_short = poll(&polled, 1, 0) > 0 ? Frame::good : Frame::partial;
	const ssize_t there = recv(socket, data, sizeof(data), MSG_PEEK | MSG_DONTWAIT);
	Bytes		bytes = {data, there > 0 ? static_cast<size_t>(there) : 0};
	uint32_t	length;

	/* The library sees for itself that the connection has ended. */
	if (there <= 0 && (there == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)))
		return Frame::good;
	*wanted = 4;
	if (bytes.left < *wanted)
		return cut_short;
	length = static_cast<uint32_t>(bytes.take_int());
	if (length > max_frame)
		return Frame::bad;

	const bool	is_big = length + 4 > sizeof(data);

	*wanted = is_big ? 4 + header_bytes + 4 : length + 4;
	if (bytes.left + 4 < *wanted)
		return cut_short;
	bytes.left = std::min<size_t>(bytes.left, length);
	if (!is_connected())
	{
		bytes.skip(16);
		/* Protocol, timeout, session, its password; and whether the server only reads, which old ones don't say. */
		return (length == 36 || length == 37) && bytes.take_int() == 16 ? Frame::good : Frame::bad;
	}
	if (length < header_bytes)
		return Frame::bad;

	const int32_t number = bytes.take_int();

	bytes.skip(8);

	const bool	is_error = bytes.take_int() != 0;

	/* To what keeps the session, and to the user. */
	if (number == -2 || (number == -4 && auth[0] != '\0'))
		return length == header_bytes ? Frame::good : Frame::bad;
	if (number < 0 || answered_count == sent_count || sent_count - answered_count > most_outstanding)
		return Frame::bad;

	const Kind	kind = outstanding[answered_count % most_outstanding];

	if (is_big && kind != Kind::get && kind != Kind::children)
		return Frame::bad;
	if (is_error ? kind == Kind::multi : !is_answer(kind, bytes, length))
		return Frame::bad;
	answered_count++;
	return Frame::good;
}

/* The least that has to be there before the socket counts as readable. */
void
wait_for_bytes(int socket, size_t count)
{
	const int	value = static_cast<int>(count);

	(void) setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &value, sizeof(value));
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
	const int64_t timeout_ms = std::max<int64_t>(std::min(wanted_ms, limit_ms), 0);
	int			ready = context->wait(socket, events, static_cast<long>(timeout_ms));

	if (ready < 0)
		return Moved::given_up;
	if (ready == 0)
		return Moved::nothing;

	/* It reads no more than one frame. */
	if ((ready & WL_SOCKET_READABLE) && !is_in_frame)
	{
		size_t		least = 1;
		const Frame frame = look_at_frame(socket, &least);

		if (frame == Frame::bad)
			return Moved::failed;
		wait_for_bytes(socket, frame == Frame::partial ? least : 1);
		if (frame == Frame::partial)
			ready &= ~WL_SOCKET_READABLE;
		else
			is_in_frame = true;
	}
	if (ready == 0)
		return Moved::nothing;

	int			result = zookeeper_process(handle, (ready & WL_SOCKET_READABLE ? ZOOKEEPER_READ : 0) |
									   (ready & WL_SOCKET_WRITEABLE ? ZOOKEEPER_WRITE : 0));

	if ((ready & WL_SOCKET_READABLE) && result != ZNOTHING)
		is_in_frame = false;	/* it has read all of it, or has another socket */
	if (result != ZOK && result != ZNOTHING)
		return Moved::failed;
	return ready & WL_SOCKET_READABLE ? Moved::on : Moved::nothing;
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
		length += static_cast<size_t>(snprintf(addresses + length, size - length, "%s%s:%s", i == 0 ? "" : ",",
											   found.text[i], colon + 1));
	return result;
}

bool
open_handle(const char *addresses)
{
	const int	timeout_ms = static_cast<int>(std::clamp<int64_t>(context->window_us / 1000, 1, INT_MAX));

	failure_errno = 0;
	sent_count = answered_count = 0;
	is_in_frame = false;
	zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
	handle = zookeeper_init2(addresses, nullptr, timeout_ms,
							 session.client_id != 0 ? &session : nullptr, nullptr, ZOO_NO_LOG_CLIENTENV, keep_failure);
	if (handle == nullptr)
		return false;
	/* It is sent before all else, over each new connection. */
	if (auth[0] != '\0')
		(void) zoo_add_auth(handle, "digest", auth, static_cast<int>(strlen(auth)), nullptr, nullptr);
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

/* What the library reads from there on is the connection's end, not what has come meanwhile. */
void
break_connection(int socket)
{
	int			ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
	{
		(void) shutdown(socket, SHUT_RDWR);
		return;
	}
	(void) fcntl(ends[0], F_SETFL, O_NONBLOCK);
	(void) close(ends[1]);
	(void) dup3(ends[0], socket, O_CLOEXEC);
	(void) close(ends[0]);
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
	answer->is_open = false;
	answer->length = 0;
	unanswered--;
	return answer;
}

void
receive_data(int result, const char *value, int length, const struct Stat *stat, const void *tag)
{
	Answer	   *answer = receive(tag, result, stat);

	if (answer != nullptr && result == ZOK && value != nullptr)
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

void
receive_children(int result, const struct String_vector *names, const void *tag)
{
	if (receive(tag, result, nullptr) != nullptr && result == ZOK)
		take_children(names->data, names->count);
}

/* Whose a digest is only those know who gave it rights: it counts as theirs. */
void
receive_acl(int result, struct ACL_vector *acl, struct Stat *, const void *tag)
{
	const int	changes = ZOO_PERM_WRITE | ZOO_PERM_CREATE | ZOO_PERM_DELETE | ZOO_PERM_ADMIN;
	Answer	   *answer = receive(tag, result, nullptr);

	if (answer == nullptr || result != ZOK)
		return;
	for (int i = 0; i < acl->count; i++)
	{
		const ACL  &entry = acl->data[i];

		if ((entry.perms & changes) != 0 && strcmp(entry.id.scheme, "world") == 0)
			answer->is_open = true;
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
sent(const Answer *answer, Kind kind, int result)
{
	if (result == ZOK)
		outstanding[sent_count++ % most_outstanding] = kind;
	else
		(void) receive(tag_of(answer), result, nullptr);
}

}  // namespace

void
use_context(const StoreContext *new_context)
{
	context = new_context;
}

int64_t
session_number()
{
	return session.client_id;
}

bool
is_connected()
{
	return handle != nullptr && zoo_state(handle) == ZOO_CONNECTED_STATE;
}

/* As PostgreSQL looks at the key of its certificate. */
bool
read_auth_file(Problem *problem)
{
	constexpr const char *name = "snowflake.registry_auth_file";
	const char *path = context->auth_file;
	struct stat status;

	auth[0] = '\0';
	if (path[0] == '\0')
		return true;

	const int	file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (file < 0 || fstat(file, &status) != 0)
	{
		fail(problem, "could not open the file of \"%s\": %s", name, strerror(errno));
		if (file >= 0)
			(void) close(file);
		return false;
	}

	const bool	is_ours = status.st_uid == geteuid();
	const mode_t others = is_ours ? S_IRWXG | S_IRWXO : S_IWGRP | S_IXGRP | S_IRWXO;
	const bool	is_safe = S_ISREG(status.st_mode) && (is_ours || status.st_uid == 0) && (status.st_mode & others) == 0;
	char		text[sizeof(auth)];
	const ssize_t length = is_safe ? read(file, text, sizeof(text) - 1) : 0;

	(void) close(file);
	if (!is_safe)
		return fail(problem, "the file of \"%s\" must be a regular file that belongs to the server's user and has no "
					"permissions for others (0600), or to root and none but for its group to read it (0640)", name);

	std::string_view line(text, length > 0 ? static_cast<size_t>(length) : 0);

	if (!line.empty() && line.back() == '\n')
		line = slice(line, 0, line.size() - 1);

	const size_t colon = line.find(':');

	if (line.size() > longest_auth || colon == 0 || colon == std::string_view::npos || colon + 1 == line.size() ||
		std::any_of(line.begin(), line.end(), [] (char c) { return static_cast<unsigned char>(c) < ' '; }))
	{
		explicit_bzero(text, sizeof(text));
		return fail(problem, "the file of \"%s\" must have one line, USER:PASSWORD, of %zu bytes at most", name,
					longest_auth);
	}
	snprintf(auth, sizeof(auth), "%.*s", static_cast<int>(line.size()), line.data());
	explicit_bzero(text, sizeof(text));
	return true;
}

const ACL_vector *
new_znode_acl()
{
	return has_user() ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
}

bool
has_user()
{
	return auth[0] != '\0';
}

bool
has_answered_recently()
{
	return is_connected() && now_ms() - answered_ms < recent_ms;
}

bool
connect_any(bool *given_up, Problem *problem)
{
	const bool	has_session = session.client_id != 0;

	*given_up = false;
	close_connection(false);
	if (has_session && session.client_id == 0)
		return fail(problem, "the session in ZooKeeper has expired");
	if (!read_auth_file(problem))
		return false;
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

/* The library does not notice itself where it only fails to send. */
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

/*
 * zookeeper_close() would end the session wherever the handle is connected, and wait
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
		break_connection(socket);
		(void) zookeeper_process(handle, ZOOKEEPER_READ);
	}
	if (end_session || is_expired())
		forget_session();
	zookeeper_close(handle);
	handle = nullptr;
}

void
forget_session()
{
	session = {};
}

void
forget_requests()
{
	operation++;
	requests = 0;
	unanswered = 0;
}

const Answer *
ask_create(const char *path, std::string_view data, int mode)
{
	const Answer *answer = next_answer();

	sent(answer, Kind::create, zoo_acreate(handle, path, data.data(), static_cast<int>(data.size()), new_znode_acl(),
										   mode, receive_string, tag_of(answer)));
	return answer;
}

const Answer *
ask_get(const char *path)
{
	const Answer *answer = next_answer();

	sent(answer, Kind::get, zoo_aget(handle, path, 0, receive_data, tag_of(answer)));
	return answer;
}

const Answer *
ask_set(const char *path, std::string_view data)
{
	const Answer *answer = next_answer();

	sent(answer, Kind::set, zoo_aset(handle, path, data.data(), static_cast<int>(data.size()), -1, receive_stat,
									 tag_of(answer)));
	return answer;
}

const Answer *
ask_children(const char *path, TakeNames take)
{
	const Answer *answer = next_answer();

	take_children = take;
	sent(answer, Kind::children, zoo_aget_children(handle, path, 0, receive_children, tag_of(answer)));
	return answer;
}

const Answer *
ask_acl(const char *path)
{
	const Answer *answer = next_answer();

	sent(answer, Kind::acl, zoo_aget_acl(handle, path, receive_acl, tag_of(answer)));
	return answer;
}

const Answer *
ask_multi(const zoo_op_t *operations, int count)
{
	const Answer *answer = next_answer();

	multi_count = count;
	for (int i = 0; i < count; i++)
		multi_types[i] = operations[i].type;
	sent(answer, Kind::multi, zoo_amulti(handle, count, operations, parts, receive_void, tag_of(answer)));
	return answer;
}

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
fail(Problem *problem, const char *format, ...)
{
	va_list		arguments;

	va_start(arguments, format);
	(void) vsnprintf(problem->text, sizeof(problem->text), format, arguments);
	va_end(arguments);
	return false;
}

bool
fail_lost(Problem *problem)
{
	return fail(problem, "lost the connection to ZooKeeper's server \"%s\"", server);
}

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

}  // namespace snowflake
