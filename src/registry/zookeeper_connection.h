/*
 * zookeeper_connection.h
 *		A session in ZooKeeper, and the requests made in it.
 *
 * A handle of the library is kept for one connection to one server; the session
 * goes on in the next handle, by its number and password.  Which server is tried
 * for how long is decided here: the library would wait for most of the session's
 * time for one that does not answer.  And nothing asked of a connection that was
 * given up is sent again over a later one, since it goes with its handle.
 *
 * Requests are sent together, and their answers waited for together, by
 * wait_for_answers().  The library is single-threaded: it moves in that function and in
 * move_connection() alone, which wait through the StoreContext.  Answers to what nobody
 * waits for any more are told by their tag.
 *
 * There is one session in a process.
 */
#ifndef SNOWFLAKE_REGISTRY_ZOOKEEPER_CONNECTION_H
#define SNOWFLAKE_REGISTRY_ZOOKEEPER_CONNECTION_H

#include <zookeeper/zookeeper.h>

#include <cstdint>
#include <string_view>

#include "core/claim_text.h"
#include "registry/store.h"

namespace snowflake __attribute__((visibility("hidden")))
{

/* So many requests are under way at once. */
constexpr int max_requests = 64;

/* A transaction has at most so many operations. */
constexpr int max_operations = 5;

/* A claim's text, with room for what later versions add, or a layout's. */
constexpr int max_data_bytes = 4096;
static_assert(max_data_bytes >= sizeof(LayoutText) && max_data_bytes >= max_claim_text);

/* The answer to a request. */
struct Answer
{
	bool		is_there;
	int			result;			/* ZOK, or the library's number for what went wrong */
	struct Stat stat;
	bool		is_open;		/* of ask_acl(): anybody may change or delete the znode, or those below it */
	int			length;
	char		data[max_data_bytes];

	bool is(int expected) const noexcept
	{
		return is_there && result == expected;
	}
	std::string_view text() const noexcept
	{
		return {data, static_cast<size_t>(length)};
	}
};

enum class Ended
{
	answered,
	given_up,					/* by the StoreContext */
	broken,						/* the connection; it is closed */
};

enum class Moved
{
	on,							/* something was received */
	nothing,
	given_up,					/* by the StoreContext */
	failed,						/* the connection to this address */
	exhausted,					/* the server has no further address */
};

/* The context of all that follows. */
void		use_context(const StoreContext *context);

/* The session's number, which no other session ever has; 0: there is none. */
int64_t		session_number();

bool		is_connected();

/* Did the server answer all that was asked a moment ago? */
bool		has_answered_recently();

/*
 * Connects to the first of the hosts that answers, each tried once, in the session
 * that there is, or in a new one.  False with the problem; *given_up where the
 * StoreContext wants nothing more of it.
 */
bool		connect_any(bool *given_up, Problem *problem);

/* Lets the library send and receive, for at most limit_ms.  A connection that fails is closed. */
Moved		move_connection(int64_t limit_ms);

/*
 * Reads snowflake.registry_auth_file anew.  False, with the problem, where it is set and
 * can't be used.  What is created is its user's alone then.
 */
bool		read_auth_file(Problem *problem);

/* Does the session have a user, for whom alone znodes are created? */
bool		has_user();

/* Who may do what with a znode that is created. */
const ACL_vector *new_znode_acl();

/* Closes the connection.  The session goes on, unless it has expired or is to end. */
void		close_connection(bool end_session);

/* Whether or not there is a connection any more, nothing is known of the session from here on. */
void		forget_session();

/* Answers that are still missing are of no interest any more. */
void		forget_requests();

/* Each sends a request, and returns its answer, which is there after wait_for_answers(). */
const Answer *ask_create(const char *path, std::string_view data, int mode);
const Answer *ask_get(const char *path);
const Answer *ask_set(const char *path, std::string_view data);
const Answer *ask_acl(const char *path);
const Answer *ask_multi(const zoo_op_t *operations, int count);

/*
 * take is called with the children's names while the answer is waited for.  The library does
 * not check what comes from the server: names, and each of them, may be null.
 */
using TakeNames = void (*) (const char *const *names, int count);
const Answer *ask_children(const char *path, TakeNames take);

/* Waits for the answers to all that was asked since the last time. */
Ended		wait_for_answers();

/* Fills the problem.  Returns false. */
bool		fail(Problem *problem, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool		fail_lost(Problem *problem);

/* Says what became of a request that was not carried out. */
bool		fail_request(Problem *problem, Ended ended, const char *action, const char *path, const Answer *answer);

}  // namespace snowflake

#endif
