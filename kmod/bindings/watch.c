// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * What the kernel does to memories with breakpoints of ours.
 *
 * Some functions of the kernel are watched by ftrace while there is such a memory: those that are called where a memory is about to
 * be copied for a child, and where a file is mapped, which may be one that was unmapped with our breakpoints; those by which others read and write the
 * memory, as shown.c has it; and the two by which uprobes put a breakpoint into a memory and take it out. They believe that any breakpoint is theirs. Where one of ours stands the first is to find
 * none; the second takes out what both have, which we write again, and is sent back at once where only we have one.
 *
 * All but those of shown.c are called with the lock of the memory held for writing; we write with it held for reading.
 *
 * One more is watched while there are slots: where a thread handles signals, and shows where it is.
 *
 * To unregister with ftrace is to wait for all tasks with ftrace's lock held, and whoever loads a module waits for that; a task of the least
 * priority that computes in the kernel can have it wait for hours. So what was registered stays so until the module goes. What watches where many
 * come rests meanwhile: it watches our anchor alone. A user may begin and end programs with breakpoints as often as he likes, so neither rests twice
 * within DTRACE_WATCH_REST.
 */

#include <linux/delay.h>
#include <linux/ftrace.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>

#include "helpers.h"
#include "own.h"
#include "patching.h"
#include "providers.h"
#include "slots.h"

enum {
	DTRACE_COPY,
	DTRACE_MAP,
	DTRACE_ACCESS,
	/* Not every kernel has these. */
	DTRACE_READV,
	DTRACE_READV_32,
	/* Others are called instead of these. */
	DTRACE_SET,
	DTRACE_CLEAR,
	DTRACE_WATCHED,
};

static const char *const dtrace_watched[DTRACE_WATCHED] = {
	[DTRACE_COPY] = "uprobe_dup_mmap",
	[DTRACE_SET] = "set_swbp",
	[DTRACE_CLEAR] = "set_orig_insn",
	[DTRACE_MAP] = "uprobe_mmap",
	[DTRACE_ACCESS] = "access_remote_vm",
	[DTRACE_READV] = DTRACE_SYSCALL("process_vm_readv"),
	[DTRACE_READV_32] = DTRACE_SYSCALL_32("process_vm_readv"),
};

static uintptr_t dtrace_watched_at[DTRACE_WATCHED];
/* force_sig_fault(), which is not exported. */
static uintptr_t dtrace_watch_force_at;

/* Has the current program, which has breakpoints of ours, get a signal that says where. */
void dtrace_watch_force(int signal, int code, u64 address)
{
	dtrace_call(dtrace_watch_force_at, signal, code, address, 0, 0);
}

/* In place of set_orig_insn() where what it would take out is to stay. */
static int dtrace_watch_done(void)
{
	return 0;
}

/*
 * In place of set_swbp(), which does nothing where it finds a breakpoint, and then has not counted its own in the program's counter either: it is
 * to find none. What is executed in between has no probe.
 */
static int dtrace_watch_swbp(struct arch_uprobe *auprobe, struct vm_area_struct *vma, unsigned long address)
{
	uintptr_t set = dtrace_watched_at[DTRACE_SET];
	int error;

	dtrace_own_lend(vma, address);
	error = dtrace_call(set, (uintptr_t)auprobe, (uintptr_t)vma, address, 0, 0);
	if (error)
		dtrace_own_take_back(vma, address);
	return error;
}

/* In place of set_orig_insn() where ours stands too: they count down what they have counted. */
static int dtrace_watch_orig(struct arch_uprobe *auprobe, struct vm_area_struct *vma, unsigned long address)
{
	uintptr_t clear = dtrace_watched_at[DTRACE_CLEAR];
	int error = dtrace_call(clear, (uintptr_t)auprobe, (uintptr_t)vma, address, 0, 0);

	dtrace_own_take_back(vma, address);
	return error;
}

static void dtrace_watch_clear(struct ftrace_regs *fregs, const struct arch_uprobe *uprobe, struct vm_area_struct *vma,
			       unsigned long address)
{
	enum dtrace_keep keep = dtrace_watch_keeps(uprobe, vma, address);

	if (keep == DTRACE_STAYS)
		ftrace_regs_set_instruction_pointer(fregs, (unsigned long)dtrace_watch_done);
	else if (keep == DTRACE_COMES_BACK)
		ftrace_regs_set_instruction_pointer(fregs, (unsigned long)dtrace_watch_orig);
}

static void dtrace_watch(unsigned long ip, unsigned long parent, struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	unsigned long first = ftrace_regs_get_argument(fregs, 0);
	unsigned long second = ftrace_regs_get_argument(fregs, 1);
	unsigned long third = ftrace_regs_get_argument(fregs, 2);
	struct vm_area_struct *vma = (struct vm_area_struct *)second;

	/* Where ftrace patches lies behind the function's first instruction. */
	if (ip - dtrace_watched_at[DTRACE_COPY] < MCOUNT_INSN_SIZE)
		dtrace_watch_copied((struct mm_struct *)first, (struct mm_struct *)second);
	else if (ip - dtrace_watched_at[DTRACE_SET] < MCOUNT_INSN_SIZE && dtrace_watch_set(vma, third))
		ftrace_regs_set_instruction_pointer(fregs, (unsigned long)dtrace_watch_swbp);
	else if (ip - dtrace_watched_at[DTRACE_CLEAR] < MCOUNT_INSN_SIZE)
		dtrace_watch_clear(fregs, (const struct arch_uprobe *)first, vma, third);
	else if (ip - dtrace_watched_at[DTRACE_MAP] < MCOUNT_INSN_SIZE)
		dtrace_watch_mapped((struct vm_area_struct *)first);
	else if (ip - dtrace_watched_at[DTRACE_ACCESS] < MCOUNT_INSN_SIZE)
		dtrace_shown_access(fregs);
	else if (ip - dtrace_watched_at[DTRACE_READV] < MCOUNT_INSN_SIZE ||
		 ip - dtrace_watched_at[DTRACE_READV_32] < MCOUNT_INSN_SIZE)
		dtrace_shown_raw(fregs);
}

static const struct ftrace_ops dtrace_watch_ops = {
	.func = dtrace_watch,
	.flags = FTRACE_OPS_FL_PERMANENT,
};

/* Who has others called instead does not rest: trampolines of BPF's are told of that only when it is registered. Few come there. */
static const struct ftrace_ops dtrace_instead_ops = {
	.func = dtrace_watch,
	.flags = FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT,
};

/* The current task handles signals, or what else it is called for. */
static void dtrace_watch_signal(unsigned long ip, unsigned long parent, struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	if (dtrace_slots_any() && current->mm && !(current->flags & (PF_KTHREAD | PF_USER_WORKER)))
		dtrace_slots_fix(task_pt_regs(current));
}

static const struct ftrace_ops dtrace_signal_ops = {
	.func = dtrace_watch_signal,
	.flags = FTRACE_OPS_FL_PERMANENT,
};

#define DTRACE_WATCH_REST (10 * HZ)

/* An ops, once there is one; whether it is registered, and watches; whether and when it has begun to rest. */
struct dtrace_watching {
	struct ftrace_ops *ops;
	bool registered, now, before;
	unsigned long ended;
};

static DEFINE_MUTEX(dtrace_signal_lock);
static struct dtrace_watching dtrace_watching, dtrace_watching_instead, dtrace_watching_signals;

/* Whether it rested a short while ago, so that it is not to rest yet. */
static bool dtrace_watching_rests(const struct dtrace_watching *watching)
{
	return watching->now && watching->before && time_before(jiffies, watching->ended + DTRACE_WATCH_REST);
}

/* Has functions watched, unless they are; those who begin and end it are serialized. */
static int dtrace_ops_begin(const struct ftrace_ops *as, unsigned long *at, unsigned int count,
			    struct dtrace_watching *watching)
{
	int error;

	if (watching->now)
		return 0;
	/* One that could not be registered may be on some list of ftrace's, so it is kept for the next time. */
	if (!watching->ops)
		watching->ops = kmemdup(as, sizeof(*as), GFP_KERNEL);
	if (!watching->ops)
		return -ENOMEM;
	error = dtrace_filter_set(watching->ops, at, count, 0, 1);
	if (!error && !watching->registered)
		error = dtrace_filter_register(watching->ops);
	watching->now = !error;
	watching->registered |= watching->now;
	return error;
}

/* Whether ftrace has stopped: then nobody knows what it has patched. */
static bool dtrace_ftrace_is_dead(void)
{
	static uintptr_t at;

	return (at || (dtrace_symbol("ftrace_is_dead", &at) && at)) && (int)dtrace_call(at, 0, 0, 0, 0, 0);
}

/* Has it rest. It may be called for a while, and then finds nothing. False: it could not be. */
static bool dtrace_ops_rest(struct dtrace_watching *watching)
{
	unsigned long anchor = (unsigned long)dtrace_anchor;

	if (!watching->now)
		return true;
	if (dtrace_filter_set(watching->ops, &anchor, 1, 0, 1) || dtrace_ftrace_is_dead())
		return false;
	watching->now = false;
	watching->before = true;
	watching->ended = jiffies;
	return true;
}

/* Ends it; waits until nobody is here any more. False: ftrace has stopped, and may call us for ever. */
static bool dtrace_ops_end(struct dtrace_watching *watching)
{
	if (!watching->registered)
		return true;
	if (!unregister_ftrace_function(watching->ops)) {
		ftrace_free_filter(watching->ops);
		kfree(watching->ops);
	} else if (watching->now) {
		return false;
	} else {
		/* It calls nobody, and its record stays. Whoever was called before has left. */
		pr_warn("dtrace: ftrace has stopped: its record of this module stays in memory\n");
		synchronize_rcu_tasks();
	}
	*watching = (struct dtrace_watching){};
	return true;
}

/* Finds a function of the kernel's. */
static int dtrace_watch_find(const char *name, uintptr_t *at)
{
	return dtrace_symbol(name, at) && *at ? 0 : -ENOENT;
}

static void dtrace_watch_signals_do(void *data)
{
	int *error = data;
	uintptr_t at;

	guard(mutex)(&dtrace_signal_lock);
	*error = 0;
	if (dtrace_watching_signals.now)
		return;
	*error = dtrace_watch_find("get_signal", &at);
	if (!*error)
		*error = dtrace_ops_begin(&dtrace_signal_ops, &at, 1, &dtrace_watching_signals);
}

/*
 * Has threads taken out of slots before they handle signals. The caller has counted an area. It may be the traced program itself, and the lock has no
 * gate: hence a worker.
 */
int dtrace_watch_signals(void)
{
	int error;

	dtrace_patch(dtrace_watch_signals_do, &error);
	return error;
}

static void dtrace_watch_no_signals_do(void *data)
{
	guard(mutex)(&dtrace_signal_lock);
	if (!dtrace_slots_any() && !dtrace_watching_rests(&dtrace_watching_signals))
		dtrace_ops_rest(&dtrace_watching_signals);
}

/* Has it rest where there are no areas, unless it did a short while ago. */
void dtrace_watch_no_signals(void)
{
	dtrace_patch(dtrace_watch_no_signals_do, NULL);
}

/* Begins, unless it has begun. The caller serializes this and the end. */
int dtrace_watch_begin(void)
{
	uintptr_t common[DTRACE_SET];
	unsigned int n, count = 0;
	int error;

	if (dtrace_watching.now && dtrace_watching_instead.now)
		return 0;
	error = dtrace_watch_find("force_sig_fault", &dtrace_watch_force_at) ?: dtrace_shown_begin();
	for (n = 0; n < DTRACE_WATCHED && !error; n++) {
		error = dtrace_watch_find(dtrace_watched[n], &dtrace_watched_at[n]);
		if (n < DTRACE_SET && !error)
			common[count++] = dtrace_watched_at[n];
		else if (n == DTRACE_READV || n == DTRACE_READV_32)
			error = 0;
	}
	if (!error)
		error = dtrace_ops_begin(&dtrace_instead_ops, &dtrace_watched_at[DTRACE_SET], DTRACE_WATCHED - DTRACE_SET,
					 &dtrace_watching_instead);
	return error ?: dtrace_ops_begin(&dtrace_watch_ops, common, count, &dtrace_watching);
}

/* Whether some of it is not to rest yet. */
bool dtrace_watch_rests(void)
{
	guard(mutex)(&dtrace_signal_lock);
	return dtrace_watching_rests(&dtrace_watching_signals) || dtrace_watching_rests(&dtrace_watching);
}

/* Has all of it rest, as dtrace_ops_rest(). */
bool dtrace_watch_rest(void)
{
	guard(mutex)(&dtrace_signal_lock);
	return dtrace_ops_rest(&dtrace_watching_signals) && dtrace_ops_rest(&dtrace_watching);
}

/* Ends all of it, as dtrace_ops_end(). */
bool dtrace_watch_end(void)
{
	guard(mutex)(&dtrace_signal_lock);
	if (!dtrace_ops_end(&dtrace_watching_signals) || !dtrace_ops_end(&dtrace_watching) || !dtrace_ops_end(&dtrace_watching_instead))
		return false;
	dtrace_shown_end();
	return true;
}
