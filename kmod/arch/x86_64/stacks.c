// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The kernel's stack: by our own walk if that is possible (orc.c, INV-11), otherwise by the
 * kernel's. The walk that the kernel exports (stack_trace_save()) begins where it is called, so it
 * has to pass our own frames and ftrace's trampoline first. The kernel's unwinder can begin
 * anywhere.
 */

#include <linux/sched.h>
#include <linux/stacktrace.h>
#include <asm/unwind.h>

#include "orc.h"
#include "stacks.h"
#include "trap.h"

/*
 * Walks the current task's stack by the kernel's unwinder: the address that the instruction of
 * `regs` returns to, and so on. Returns the number of frames.
 */
unsigned int dtrace_stack_callers(unsigned long *frames, unsigned int room, const struct pt_regs *regs)
{
	struct unwind_state state;
	unsigned int n = 0;

	/* This skips the frame of regs. */
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
 * The current task's kernel stack: the instruction of `regs`, then the addresses that it returns
 * to. Of `regs` only the instruction, stack and frame pointers and the code segment are used, which
 * must not be user mode's. Returns the number of frames.
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

/* The current task's kernel stack, from a frame in this file on. */
unsigned int dtrace_stack_here(unsigned long *frames, unsigned int room)
{
	unsigned int n;

	if (dtrace_orc_here(frames, room, &n))
		return n;
	return stack_trace_save(frames, room, 0);
}
