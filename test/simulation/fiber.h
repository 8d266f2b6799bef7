/*
 * fiber.h
 *		Backends that take turns: a fiber runs until it pauses, and can be left
 *		for good at any pause, as a backend is by longjmp() or by a crash.
 *
 * ucontext gives a fiber its stack; from there on setjmp() and longjmp() switch,
 * since swapcontext() makes a system call each time.  What runs in a fiber must
 * therefore keep only trivially destructible objects, like the real thing.
 */
#ifndef SNOWFLAKE_SIMULATION_FIBER_H
#define SNOWFLAKE_SIMULATION_FIBER_H

#include <setjmp.h>
#include <ucontext.h>

namespace snowflake::simulation
{

class Fiber
{
public:
	/* The job is run anew each time that the fiber is resumed while it is idle. */
	void		start(void (*job)(int), int number) noexcept
	{
		job_ = job;
		number_ = number;
		getcontext(&context_);
		context_.uc_stack.ss_sp = stack_;
		context_.uc_stack.ss_size = sizeof(stack_);
		context_.uc_link = nullptr;
		makecontext(&context_, enter, 0);
		running_ = this;
		if (_setjmp(scheduler_) == 0)
			setcontext(&context_);
		running_ = nullptr;
	}

	/* From outside: runs it until it pauses or its job is done. */
	void		resume() noexcept
	{
		running_ = this;
		if (_setjmp(scheduler_) == 0)
			_longjmp(here_, 1);
		running_ = nullptr;
	}

	/* From outside: it will never go on from where it paused. */
	void		kill() noexcept
	{
		if (idle_)
			return;
		killed_ = true;
		resume();
	}

	/* From inside, or nothing where no fiber runs: lets the others go on. */
	static void pause() noexcept
	{
		Fiber	   *self = running_;

		if (self == nullptr)
			return;
		if (_setjmp(self->here_) == 0)
			_longjmp(scheduler_, 1);
		if (self->killed_)
		{
			self->killed_ = false;
			self->leave();
		}
	}

	/* From inside: the job ends here. */
	[[noreturn]] void leave() noexcept
	{
		_longjmp(base_, 1);
	}

	bool		idle() const noexcept
	{
		return idle_;
	}

private:
	static void enter() noexcept
	{
		running_->loop();
	}

	[[noreturn]] void loop() noexcept
	{
		for (;;)
		{
			idle_ = true;
			pause();
			idle_ = false;
			if (_setjmp(base_) == 0)
				job_(number_);
		}
	}

	inline static Fiber *running_ = nullptr;
	inline static jmp_buf scheduler_;

	void		(*job_)(int) = nullptr;
	int			number_ = 0;
	bool		idle_ = true;
	bool		killed_ = false;
	jmp_buf		here_;
	jmp_buf		base_;
	ucontext_t	context_;
	alignas(16) char stack_[128 * 1024];
};

}  // namespace snowflake::simulation

#endif
