// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The kernel's stack: by a walk of our own where that is possible (orc.c), else by the kernel's. The kernel exports the walk from
 * where it is called (stack_trace_save()), which has to find its way through our own frames and ftrace's trampoline first. Its unwinder
 * can begin anywhere.
 */

#include <linux/sched.h>
#include <linux/stacktrace.h>
#include <asm/unwind.h>

#include "stacks.h"
#include "trap.h"

/* The kernel's walk of the current task's stack: what the instruction of regs returns to, and so on. */
unsigned int dtrace_stack_callers(unsigned long *frames, unsigned int room, const struct pt_regs *regs)
{
	struct unwind_state state;
	unsigned int n = 0;

	/* It skips the frame of regs. */
	unwind_start(&state, current, (struct pt_regs *)regs, NULL);
	while (n < room && !unwind_done(&state)) {
		unsigned long pc = unwind_get_return_address(&state);

		if (!pc)
			break;
		frames[n++] = pc;
		unwind_next_frame(&state);
	}
	return n;
}

/*
 * The current task's kernel stack: the instruction of regs, then what it returns to. Of regs, the instruction and the pointers to
 * stack and frame are looked at, and that they are not of user mode.
 */
unsigned int dtrace_stack_from(unsigned long *frames, unsigned int room, const struct pt_regs *regs)
{
	unsigned int n;

	if (dtrace_orc_from(frames, room, regs, &n))
		return n;
	if (!room)
		return 0;
	frames[0] = dtrace_pc(regs);
	return 1 + dtrace_stack_callers(frames + 1, room - 1, regs);
}

/* The current task's kernel stack from somewhere in here on. */
unsigned int dtrace_stack_here(unsigned long *frames, unsigned int room)
{
	unsigned int n;

	if (dtrace_orc_here(frames, room, &n))
		return n;
	return stack_trace_save(frames, room, 0);
}
