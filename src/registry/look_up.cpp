/*
 * look_up.cpp
 *		Looks up the addresses of the registry's host, in another process.
 *
 * getaddrinfo() waits as long as it likes, 10 s for each name server where they are
 * silent, and nothing interrupts it.  A process of PostgreSQL's that waits there
 * holds up DROP DATABASE and a fast stop, and can't be cancelled.  So a program
 * that the system brings does it, by the same configuration: getent.  Its output is
 * waited for as everything is, and it is killed when its time is over.
 *
 * The program is started at once, without a copy of this process in between,
 * which would keep the server's shared memory attached.  It stays in this process's
 * group, so that what ends us ends it.
 */
#include <fcntl.h>
#include <netdb.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "registry/look_up.h"

#include "postgres/clock.h"

#include "postgres/pg.h"

namespace snowflake
{

namespace
{

constexpr const char *program_name = "getent";

/* A program that has closed its output is about to end; it is looked at so often. */
constexpr long end_pause_ms = 10;

/* The program, while it has not been waited for, and the end of a pipe that its output comes from. */
pid_t		program = 0;
int			output = -1;

/* Also where an error has left one behind. */
void
end_program()
{
	if (output >= 0)
		close(output);
	output = -1;
	if (program == 0)
		return;
	(void) kill(program, SIGKILL);
	while (waitpid(program, nullptr, 0) < 0 && errno == EINTR)
		;
	program = 0;
}

/* A child that nobody waits for would be taken for the postmaster's, where that is the system's first process. */
void
end_program_at_exit(int, Datum)
{
	end_program();
}

/* Is it an address as a number?  Nothing is looked up for this. */
bool
is_number(const char *host)
{
	addrinfo	hints{};
	addrinfo   *found = nullptr;

	hints.ai_flags = AI_NUMERICHOST;
	if (getaddrinfo(host, nullptr, &hints, &found) != 0)
		return false;
	freeaddrinfo(found);
	return true;
}

/* Starts the program with its output going to a pipe, and with nothing else of ours open.  0, or an errno. */
int
spawn(const char *host, int pipe_end)
{
	const char *const arguments[] = {program_name, "ahosts", host, nullptr};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t	none;
	sigset_t	all;
	int			error;

	(void) sigemptyset(&none);
	(void) sigfillset(&all);
	error = posix_spawn_file_actions_init(&files);
	if (error != 0)
		return error;
	error = posix_spawnattr_init(&attributes);
	if (error == 0)
	{
		/* A process of PostgreSQL's ignores signals that the program must heed. */
		(void) posix_spawnattr_setsigmask(&attributes, &none);
		(void) posix_spawnattr_setsigdefault(&attributes, &all);
		error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
		if (error == 0)
			error = posix_spawn_file_actions_adddup2(&files, pipe_end, STDOUT_FILENO);
		if (error == 0)
			error = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
		if (error == 0)
			error = posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
		if (error == 0)
			error = posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
#endif
		if (error == 0)
			error = posix_spawnp(&program, program_name, &files, &attributes,
								 const_cast<char *const *>(arguments), environ);
		(void) posix_spawnattr_destroy(&attributes);
	}
	(void) posix_spawn_file_actions_destroy(&files);
	return error;
}

int
start_program(const char *host)
{
	static bool is_end_arranged = false;

	int			ends[2];
	int			error;

	end_program();
	if (!is_end_arranged)
	{
		on_proc_exit(end_program_at_exit, Datum{0});
		is_end_arranged = true;
	}
	if (pipe(ends) != 0)
		return errno;
	(void) fcntl(ends[0], F_SETFD, FD_CLOEXEC);
	(void) fcntl(ends[1], F_SETFD, FD_CLOEXEC);
	(void) fcntl(ends[0], F_SETFL, O_NONBLOCK);
	output = ends[0];
	error = spawn(host, ends[1]);
	close(ends[1]);
	if (error != 0)
	{
		program = 0;
		end_program();
	}
	return error;
}

/* Adds the address that each line begins with; the program writes one for each kind of socket. */
void
add_addresses(char *text, Addresses *found)
{
	for (char *line = text; line != nullptr && found->count < max_addresses;)
	{
		char	   *end = strchr(line, '\n');
		char	   *address = found->text[found->count];
		bool		is_new = true;

		if (end != nullptr)
			*end++ = '\0';
		line[strcspn(line, " \t")] = '\0';
		if (strlen(line) < sizeof(found->text[0]) && is_number(line))
		{
			strlcpy(address, line, sizeof(found->text[0]));
			for (int i = 0; i < found->count; i++)
				is_new = is_new && strcmp(found->text[i], address) != 0;
			found->count += is_new;
		}
		line = end;
	}
}

/* Reads what the program writes until it closes its output.  As StoreContext::wait(), and 1 when that is done. */
int
read_output(const StoreContext *context, int64_t end_ns, char *text, size_t size)
{
	size_t		length = 0;

	for (;;)
	{
		ssize_t		got = length < size - 1 ? read(output, text + length, size - 1 - length) : 0;

		if (got > 0)
			length += static_cast<size_t>(got);
		text[length] = '\0';
		if (got > 0 || (got < 0 && errno == EINTR))
			continue;
		if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
			return 1;

		int			ready = context->wait(output, WL_SOCKET_READABLE, ms_until(end_ns));

		if (ready <= 0)
			return ready;
	}
}

/* Waits for the program's end in the same way. */
int
read_status(const StoreContext *context, int64_t end_ns, int *status)
{
	for (;;)
	{
		const long	left = ms_until(end_ns);
		pid_t		ended = waitpid(program, status, WNOHANG);

		if (ended == program)
		{
			program = 0;
			return 1;
		}
		if (left == 0 || (ended < 0 && errno != EINTR))
			return 0;
		if (context->wait(-1, 0, Min(left, end_pause_ms)) < 0)
			return -1;
	}
}

}  // namespace

LookedUp
look_up(const StoreContext *context, const char *host, long limit_ms, Addresses *found, Problem *problem)
{
	const int64_t end_ns = boot_clock_ns() + limit_ms * ns_per_ms;
	char		text[4096];
	int			status = 0;
	int			error;
	int			ready;

	found->count = 0;
	if (is_number(host))
	{
		found->count = 1;
		strlcpy(found->text[0], host, sizeof(found->text[0]));
		return LookedUp::done;
	}
	error = start_program(host);
	if (error == ENOENT || error == EACCES)
		return LookedUp::done;
	if (error != 0)
	{
		snprintf(problem->text, sizeof(problem->text), "could not look up host \"%s\": %s", host, strerror(error));
		return LookedUp::failed;
	}
	ready = read_output(context, end_ns, text, sizeof(text));
	if (ready > 0)
		add_addresses(text, found);
	if (ready > 0 && found->count == 0)
		ready = read_status(context, end_ns, &status);
	end_program();
	if (found->count > 0)
		return LookedUp::done;
	/* It is another system's program, which does not know what it is asked for. */
	if (ready > 0 && WIFEXITED(status) && (WEXITSTATUS(status) == 1 || WEXITSTATUS(status) > 2))
		return LookedUp::done;
	snprintf(problem->text, sizeof(problem->text), "could not look up host \"%s\"%s", host,
			 ready > 0 ? "" : " in time");
	return ready < 0 ? LookedUp::given_up : LookedUp::failed;
}

}  // namespace snowflake
