// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of detours.h.
 *
 * Where ftrace calls us nobody may sleep: whoever removes what ftrace traces takes a task that sleeps for one that has left. So the function
 * is sent on a detour, as a live patch would: ftrace goes on with our thunk instead, in the place of the function, where as much may be done as in the
 * function itself, and the thunk goes on with the function.
 *
 * Where a BPF program is attached ftrace goes on with that one's trampoline, whatever we say: it comes to the thunk with other registers, or not
 * at all.
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
#include "providers.h"

static atomic_t dtrace_detours = ATOMIC_INIT(0);
/* ftrace_find_rec_direct(), if it is known. */
static uintptr_t dtrace_find_direct;

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

void dtrace_detours_begin(uintptr_t find_direct)
{
	dtrace_find_direct = find_direct;
}

/* Whether ftrace goes on with somebody else's trampoline behind the function patched at ip, as far as that can be told. */
static bool dtrace_has_direct(uintptr_t ip)
{
	return IS_ENABLED(CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS) &&
	       (!dtrace_find_direct || dtrace_call(dtrace_find_direct, ip, 0, 0, 0, 0));
}

/*
 * Sends a function, patched at ip and called by caller, on a detour; to be called where ftrace has called us, with the registers that it goes on
 * with. False: it is no system call of the current task's, or somebody else has sent it elsewhere.
 */
bool dtrace_detour_take(struct pt_regs *regs, uintptr_t ip, uintptr_t caller, dtrace_detour_call call, void *data)
{
	if (in_nmi() || irqs_disabled() || (struct pt_regs *)regs->di != task_pt_regs(current) ||
	    regs->ip != ip + MCOUNT_INSN_SIZE || dtrace_has_direct(ip))
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
