// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of detours.h (INV-47).
 *
 * Nothing may sleep where ftrace calls the module: a task that removes what ftrace traces takes a
 * task that sleeps for one that has left. So the function is sent on a detour, as a live patch
 * would do it: ftrace goes on with a thunk of the module in place of the function. There everything
 * is allowed that the function itself may do; then the thunk goes on with the function.
 *
 * If a BPF program is attached to the function, ftrace goes on with that program's trampoline,
 * whatever the module requests: the trampoline would come to the thunk with other registers, or not
 * at all.
 *
 * Tasks on a detour are counted. Before that a task is on its way from ftrace, which waits for it
 * when the function is no longer traced.
 */

#include <linux/atomic.h>
#include <linux/ftrace.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/sched/task_stack.h>
#include <linux/wait_bit.h>

#include "detours.h"
#include "pause.h"
#include "symbols.h"

static atomic_t dtrace_detours = ATOMIC_INIT(0);
/* Address of ftrace_find_rec_direct(); 0: unknown. */
static uintptr_t dtrace_find_direct;

/* dtrace_detour() is in thunk.S, which calls dtrace_detoured(). */
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

/*
 * Whether ftrace may go on with another tracer's trampoline after the entry of the function patched
 * at ip.
 */
static bool dtrace_has_direct(uintptr_t ip)
{
	return IS_ENABLED(CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS) &&
	       (!dtrace_find_direct || dtrace_call(dtrace_find_direct, ip, 0, 0, 0, 0));
}

/*
 * Sends a function, patched at ip and called by `caller`, on a detour. Called where ftrace has
 * called the module; `regs` are those that ftrace goes on with. False: it is not a system call of
 * the current task, sleeping is not allowed, or another tracer has sent it elsewhere.
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

/*
 * Waits until no task is on a detour. The caller ensures that none is sent on one any more, or is
 * on its way there. May sleep.
 */
void dtrace_detours_wait(void)
{
	wait_var_event(&dtrace_detours, !atomic_read(&dtrace_detours));
}
