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
 * Whoever reaches ZooKeeper may write anything there, unless it knows its clients by
 * snowflake.registry_auth_file.  What can't be a claim is none: a list goes on without it, its
 * number being nobody's.
 *
 * The session and its requests are in zookeeper_connection.cpp, a claim's text in
 * core/claim_text.cpp.
 */
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "registry/zookeeper_connection.h"

#include "core/claim_bounds.h"
#include "core/claim_text.h"
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

struct Path
{
	char		text[1280];

	/* False, and cut, where it does not fit. */
	bool		print(const char *format, ...) noexcept __attribute__((format(printf, 2, 3)));
};

/* What the last read saw besides the claim; a write that follows it builds on that. */
struct Seen
{
	int64_t		session;		/* in which it was read; 0: nothing was */
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
	bool		is_unreadable;
};

constinit const StoreContext *context = nullptr;

/* The sessions that have these, by their numbers; 0: none. */
constinit int64_t prepared_session = 0; /* the znode that says its clock */
constinit int64_t kept_session = 0;		/* a claim that counts as alive with it, or may */

constinit Path group_path{};
constinit Path clock_path{};
constinit Path layout_path{};
constinit Seen seen{};
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

/* The paths of a claim. */
struct ClaimPaths
{
	Path		claim;
	Path		alive;

	explicit ClaimPaths(uint64_t node) noexcept
	{
		(void) claim.print("%s/%llu", group_path.text, static_cast<unsigned long long>(node));
		(void) alive.print("%s/alive", claim.text);
	}
};

/* Is there a session, and is it the one with this number? */
bool
is_session(int64_t number)
{
	return number != 0 && number == session_number();
}

bool
fail_session(Problem *problem)
{
	return fail(problem, "there is no session in ZooKeeper");
}

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

/*
 * Tells the log where others may change what is there: it was created before the user was
 * given, or by somebody else, and whoever may delete in a znode may delete its children,
 * whosoever these are.
 */
void
look_for_open_znodes()
{
	Path		keepers;

	(void) keepers.print("%s/.keepers", group_path.text);
	for (const char *path : {context->address->path, static_cast<const char *>(group_path.text),
							 static_cast<const char *>(keepers.text)})
	{
		forget_requests();

		const Answer *answer = ask_acl(path);

		if (wait_for_answers() != Ended::answered)
			return;
		if ((answer->is(ZOK) && answer->is_open) || answer->is(ZNOAUTH))
			context->tell_open(path);
	}
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
	(void) clock_path.print("%s/.keepers/%016llx", group_path.text, static_cast<unsigned long long>(session_number()));
	for (bool is_again = false;; is_again = true)
	{
		forget_requests();

		const Answer *answer = ask_create(clock_path.text, data, ZOO_EPHEMERAL);
		Ended		ended = wait_for_answers();

		if (answer->is(ZOK) || answer->is(ZNODEEXISTS))
		{
			if (has_user())
				look_for_open_znodes();
			if (!is_connected())
				return fail_lost(problem);
			prepared_session = session_number();
			return true;
		}
		/* An ancestor may be there, and not be ours to create. */
		if (!answer->is(ZNONODE) || (is_again && failed.text[0] == '\0'))
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

	if (context == nullptr || session_number() == 0)
		return fail_session(problem);
	forget_requests();
	/* What came meanwhile is looked at first: the server may have closed the connection. */
	for (Moved moved = Moved::on; is_connected() && moved == Moved::on;)
		moved = move_connection(0);
	if (!is_connected() && !connect_any(&given_up, problem))
		return false;
	if (!is_session(prepared_session) && !prepare_session(problem))
		return false;
	return is_connected() || fail_lost(problem);
}

/* The store. */

bool
zookeeper_connect(const StoreContext *new_context, Problem *problem)
{
	bool		given_up;

	context = new_context;
	use_context(new_context);
	if (!print_group_path())
		return fail(problem, "the name of the registry's group is too long");
	if (session_number() != 0 && ready(problem))
		return true;
	/* A session that has expired is followed by a new one. */
	return session_number() == 0 && connect_any(&given_up, problem) && ready(problem);
}

/*
 * The session of a claim that was not released goes on, for the next connection
 * or until it expires: ended here, it would make the claim free to others.
 */
void
zookeeper_disconnect()
{
	if (is_session(kept_session))
	{
		close_connection(false);
		return;
	}
	close_connection(has_answered_recently());
	forget_session();
}

/* A claim's text, whose numbers can be meant. */
bool
read_claim(const Answer &answer, Claim *claim)
{
	Claim		read{};

	if (!parse_claim(answer.text(), &read) || !is_possible(read))
		return false;
	read.node = claim->node;
	*claim = read;
	return true;
}

/* ZooKeeper's time, ms. */
bool
is_time(int64_t ms)
{
	return is_within(ms, latest_time_us / 1000);
}

/* The answers to the requests of a read. */
struct Read
{
	const Answer *clock;
	const Answer *claim;
	const Answer *alive;
	const Answer *layout;
};

Ended
ask_read(const ClaimPaths &paths, Read *read)
{
	char		data[nonce_digits + 8];
	int			length = snprintf(data, sizeof(data), "nonce %s\n", context->me.nonce);

	read->clock = ask_set(clock_path.text, {data, static_cast<size_t>(length)});
	read->claim = ask_get(paths.claim.text);
	read->alive = ask_get(paths.alive.text);
	read->layout = ask_get(layout_path.text);
	return wait_for_answers();
}

/* Keeps what a write that follows builds on. */
void
keep_seen(uint64_t node, const Read &read)
{
	seen = {};
	seen.session = session_number();
	seen.node = node;
	seen.clock_version = read.clock->stat.version;
	seen.has_layout = read.layout->is(ZOK);
	seen.has_alive = read.alive->is(ZOK);
	seen.alive_session = read.alive->stat.ephemeralOwner;
	seen.alive_version = read.alive->stat.version;
	if (is_nonce(read.alive->text()))
		memcpy(seen.alive_nonce, read.alive->data, nonce_digits);
}

bool
zookeeper_read(uint64_t node, int64_t, Claim *claim, RegistryTime *registry, Problem *problem)
{
	const ClaimPaths paths(node);
	Read		read;
	Ended		ended;

	seen = {};
	for (bool is_again = false;; is_again = true)
	{
		if (!ready(problem))
			return false;
		ended = ask_read(paths, &read);
		if (!read.clock->is(ZNONODE) || is_again)
			break;
		/* Somebody took it away, or all of the path. */
		prepared_session = 0;
	}
	if (!read.clock->is(ZOK))
		return fail_request(problem, ended, "write", clock_path.text, read.clock);

	const struct
	{
		const Answer *answer;
		const char *path;
	}			wanted[] = {
		{read.claim, paths.claim.text},
		{read.alive, paths.alive.text},
		{read.layout, layout_path.text},
	};

	for (const auto &one : wanted)
	{
		if (!one.answer->is(ZOK) && !one.answer->is(ZNONODE))
			return fail_request(problem, ended, "read", one.path, one.answer);
	}

	const std::string_view layout = read.layout->text();

	*claim = {};
	claim->node = node;
	if (read.claim->is(ZOK))
	{
		if (!read_claim(*read.claim, claim))
			return fail_claim(problem, paths.claim.text);
		claim->version = read.claim->stat.version;
	}
	keep_seen(node, read);
	claim->is_alive = seen.has_alive && !claim->holder.is_nobody() &&
		strcmp(seen.alive_nonce, claim->holder.nonce) == 0;
	if (!is_time(read.clock->stat.mtime))
		return fail(problem, "the time of znode \"%s\" in ZooKeeper cannot be meant", clock_path.text);
	*registry = {read.clock->stat.mtime * 1000, 0, 0, "", false};
	snprintf(registry->layout, sizeof(registry->layout), "%.*s", static_cast<int>(layout.size()), layout.data());
	return true;
}

/* Reads the claims of these numbers, at most max_requests. */
bool
list_some(const uint64_t *nodes, int count,
		  void (*found) (const ListedClaim &claim, void *argument), void *argument, Problem *problem)
{
	const Answer *asked[max_requests];

	if (!ready(problem))
		return false;
	for (int i = 0; i < count; i++)
		asked[i] = ask_get(ClaimPaths(nodes[i]).claim.text);

	Ended		ended = wait_for_answers();

	for (int i = 0; i < count; i++)
	{
		const Answer &answer = *asked[i];
		Claim		claim{};

		if (answer.is(ZNONODE))
			continue;			/* somebody took it away since */

		const ClaimPaths paths(nodes[i]);

		/* Neither what is nobody's to read nor what is no claim keeps others from theirs. */
		if (answer.is(ZNOAUTH))
			(void) fail_request(problem, ended, "read", paths.claim.text, &answer);
		else if (!answer.is(ZOK))
			return fail_request(problem, ended, "read", paths.claim.text, &answer);
		else if (!read_claim(answer, &claim) || !is_time(answer.stat.mtime))
			(void) fail_claim(problem, paths.claim.text);
		if (claim.generation == 0)
		{
			context->pass_over(problem);
			found({nodes[i], latest_time_us, latest_time_us, false}, argument);
			continue;
		}

		/*
		 * It has no other child than its liveness.  What was written last is its
		 * release, or else its holder's last renewal.
		 */
		found({nodes[i], claim.granted_until_us, answer.stat.mtime * 1000,
			   claim.holder.is_nobody() || answer.stat.numChildren == 0}, argument);
	}
	return true;
}

/* Keeps the names that are node numbers. */
void
take_numbers(const char *const *names, int count)
{
	numbers.is_unreadable = count < 0 || (names == nullptr && count > 0);
	if (numbers.is_unreadable)
		return;

	const Size	size = sizeof(uint64_t) * (static_cast<size_t>(count) + 1);

	numbers.numbers = static_cast<uint64_t *>(MemoryContextAllocExtended(CurrentMemoryContext, size,
																		 MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM));
	numbers.is_out_of_memory = numbers.numbers == nullptr;
	for (int i = 0; i < count && !numbers.is_out_of_memory; i++)
	{
		numbers.is_unreadable = numbers.is_unreadable || names[i] == nullptr;

		const std::string_view name = names[i] != nullptr ? names[i] : "";
		const bool	is_short = name.size() == 1 || (!name.empty() && name.front() != '0');

		if (is_short && parse_digits(name, UINT64_MAX, &numbers.numbers[numbers.count]))
			numbers.count++;
	}
}

bool
zookeeper_list(void (*found) (const ListedClaim &claim, void *argument), void *argument, Problem *problem)
{
	if (!ready(problem))
		return false;
	numbers = {};

	const Answer *answer = ask_children(group_path.text, take_numbers);
	Ended		ended = wait_for_answers();

	if (!answer->is(ZOK))
		return fail_request(problem, ended, "list", group_path.text, answer);
	if (numbers.is_out_of_memory)
		return fail(problem, "out of memory");
	if (numbers.is_unreadable)
	{
		if (numbers.numbers != nullptr)
			pfree(numbers.numbers);
		return fail(problem, "the list of \"%s\" in ZooKeeper cannot be read", group_path.text);
	}

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

/* What a write is made of.  The operations point to the rest. */
struct Transaction
{
	ClaimPaths	paths;
	ClaimText	text;
	zoo_op_t	operations[max_operations];
	int			count;

	Transaction(Form form, const Claim &before, const Claim &next) noexcept;

private:
	zoo_op_t *add() noexcept
	{
		return &operations[count++];
	}
	void add_create(const char *path, std::string_view data, int mode) noexcept
	{
		zoo_create_op_init(add(), path, data.data(), static_cast<int>(data.size()), new_znode_acl(), mode,
						   nullptr, 0);
	}
};

Transaction::Transaction(Form form, const Claim &before, const Claim &next) noexcept
	: paths(before.node), text(print_claim(next)), count(0)
{
	const bool	is_grant = form == Form::claim;
	const bool	is_alive_here = seen.has_alive && is_session(seen.alive_session);
	const bool	is_alive_mine = seen.has_alive && strcmp(seen.alive_nonce, context->me.nonce) == 0;

	if (before.generation == 0)
		add_create(paths.claim.text, text.view(), ZOO_PERSISTENT);
	else
		zoo_set_op_init(add(), paths.claim.text, text.text, static_cast<int>(text.length),
						static_cast<int>(before.version), nullptr);

	/*
	 * Versions repeat where ZooKeeper was restored from a backup since the read.
	 * The session's own znode then is not as the read left it.
	 */
	zoo_check_op_init(add(), clock_path.text, seen.clock_version);

	/*
	 * The znode for liveness may be there from an earlier session of this keeper,
	 * or of a holder whose claim has ended.
	 */
	if (is_grant ? seen.has_alive && !is_alive_here : next.holder.is_nobody() && is_alive_mine)
		zoo_delete_op_init(add(), paths.alive.text, seen.alive_version);
	if (is_grant && !is_alive_here)
		add_create(paths.alive.text, {context->me.nonce, nonce_digits}, ZOO_EPHEMERAL);

	/* Another who was faster makes the whole fail, and the claim is read again. */
	if (is_grant && !seen.has_layout)
		add_create(layout_path.text, context->layout, ZOO_PERSISTENT);
}

Written
zookeeper_write(Form form, const Claim &before, const Claim &next, int64_t, Problem *problem)
{
	const bool	is_grant = form == Form::claim;

	if (!ready(problem))
		return Written::refused;
	/* What was read in an earlier session is read again. */
	if (!is_session(seen.session) || seen.node != before.node)
		return Written::changed;

	const Transaction transaction(form, before, next);
	const Answer *answer = ask_multi(transaction.operations, transaction.count);
	Ended		ended = wait_for_answers();

	seen = {};
	if (answer->is(ZOK))
	{
		if (is_grant)
			kept_session = session_number();
		else if (next.holder.is_nobody())
			kept_session = 0;
		return Written::done;
	}
	if (answer->is(ZBADVERSION) || answer->is(ZNODEEXISTS) || answer->is(ZNONODE))
		return Written::changed;
	(void) fail_request(problem, ended, "write", transaction.paths.claim.text, answer);
	if (answer->is_there && is_refusal(answer->result))
		return Written::refused;
	/* The session may have expired with the request. */
	if (is_grant)
		kept_session = session_number();
	return Written::unknown;
}

/* The session is kept by what the library sends; a server that fails is followed by another. */
bool
zookeeper_idle(long timeout_ms, Problem *problem)
{
	const int64_t deadline_ns = boot_clock_ns() + timeout_ms * ns_per_ms;

	if (context == nullptr || session_number() == 0)
		return fail_session(problem);
	for (;;)
	{
		bool		given_up;

		if (!is_connected() && !connect_any(&given_up, problem))
			return given_up;

		const long	left_ms = ms_until(deadline_ns);

		if (left_ms == 0 || move_connection(left_ms) == Moved::given_up)
			return true;
	}
}

/* An ensemble does not say which one it is. */
uint64_t
zookeeper_system_identifier()
{
	return 0;
}

/* Nothing is encrypted, and a client believes whoever answers at the address. */
bool
zookeeper_trusts_network(const StoreContext *, Problem *)
{
	return false;
}

constexpr Store store = {
	zookeeper_connect,
	zookeeper_disconnect,
	zookeeper_read,
	zookeeper_list,
	zookeeper_write,
	zookeeper_idle,
	zookeeper_system_identifier,
	zookeeper_trusts_network,
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
