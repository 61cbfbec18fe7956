// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of detours.h.
 *
 * Where ftrace calls us nobody may sleep: whoever removes what ftrace traces takes a task that sleeps for one that has left. So the function
 * is sent on a detour, as a live patch would: ftrace goes on with our thunk instead, in the place of the function, where as much may be done as in the
 * function itself, and the thunk goes on with the function.
 *
 * Who is on a detour is counted. Before that a task is on its way from ftrace, which waits for it when the function is no more traced.
 */

#include <linux/atomic.h>
#include <linux/ftrace.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/sched/task_stack.h>
#include <linux/wait_bit.h>

#include "detours.h"
#include "pause.h"

static atomic_t dtrace_detours = ATOMIC_INIT(0);

/* In thunk.S, and called from there. */
void dtrace_detour(void);
uintptr_t dtrace_detoured(uintptr_t back, void *data, uintptr_t caller, dtrace_detour_call call);

uintptr_t dtrace_detoured(uintptr_t back, void *data, uintptr_t caller, dtrace_detour_call call)
{
	dtrace_call_begun();
	atomic_inc(&dtrace_detours);
	call(data, back - MCOUNT_INSN_SIZE, caller);
	if (atomic_dec_and_test(&dtrace_detours))
		wake_up_var(&dtrace_detours);
	dtrace_call_ended();
	return back;
}

/*
 * Sends a function, patched at ip and called by caller, on a detour; to be called where ftrace has called us, with the registers that it goes on
 * with. False: it is no system call of the current task's, or somebody else has sent it elsewhere.
 */
bool dtrace_detour_take(struct pt_regs *regs, uintptr_t ip, uintptr_t caller, dtrace_detour_call call, void *data)
{
	if (in_nmi() || irqs_disabled() || (struct pt_regs *)regs->di != task_pt_regs(current) ||
	    regs->ip != ip + MCOUNT_INSN_SIZE)
		return false;
	regs->ax = regs->ip;
	regs->si = (unsigned long)data;
	regs->dx = caller;
	regs->cx = (unsigned long)call;
	regs->ip = (unsigned long)dtrace_detour;
	return true;
}

/* Waits until nobody is on a detour. Nobody is sent on one any more, nor on the way there. */
void dtrace_detours_wait(void)
{
	wait_var_event(&dtrace_detours, !atomic_read(&dtrace_detours));
}
