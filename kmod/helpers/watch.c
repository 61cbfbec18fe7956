// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Hooks on what the kernel does to memories with breakpoints of ours (INV-44).
 *
 * While there is such a memory, ftrace calls the module at the entry of some functions of the
 * kernel: where a memory is about to be copied for a child; where a file is mapped, which may have
 * been unmapped with our breakpoints; where others read and write the memory (shown.c); and where
 * uprobes set a breakpoint in a memory and take it out. Uprobes take any breakpoint for theirs. If
 * one of ours is there, set_swbp() must not find it; set_orig_insn() takes out the byte that both
 * want, which is then written again, or is made to return at once if the breakpoint is ours alone.
 *
 * All of these functions but those of shown.c are called with the mmap lock held for writing; the
 * module writes breakpoints with the lock held for reading.
 *
 * While there are slots, one more function is hooked: get_signal(), where a thread handles signals,
 * and shows where it is.
 *
 * To unregister with ftrace is to wait for all tasks with ftrace's lock held, which a task that
 * loads a module needs; a task of the least priority that computes in the kernel can delay that for
 * hours. So what was registered stays registered until the module goes. Hooks on functions that are
 * called often rest meanwhile: their filter holds only dtrace_anchor(). A user may begin and end
 * programs with breakpoints at any rate, so no hook rests twice within DTRACE_WATCH_REST.
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

#include "functions.h"
#include "own.h"
#include "patching.h"
#include "slots.h"
#include "symbols.h"

enum {
	DTRACE_COPY,
	DTRACE_MAP,
	DTRACE_ACCESS,
	/* Not every kernel has these two. */
	DTRACE_READV,
	DTRACE_READV_32,
	/* Other functions are called instead of these two. */
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
/* Address of force_sig_fault(), which is not exported. */
static uintptr_t dtrace_watch_force_at;

/* Sends the current program, which has breakpoints of ours, a signal with an address. */
void dtrace_watch_force(int signal, int code, u64 address)
{
	dtrace_call(dtrace_watch_force_at, signal, code, address, 0, 0);
}

/* Called in place of set_orig_insn() if the byte that it would take out is to stay. */
static int dtrace_watch_done(void)
{
	return 0;
}

/*
 * Called in place of set_swbp(), which does nothing if it finds a breakpoint, and then does not
 * count in the program's counter either. So it must find none. An execution of the instruction in
 * between does not fire.
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

/*
 * Called in place of set_orig_insn() if ours is there too. Uprobes count down what they have
 * counted.
 */
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

	/* The place that ftrace patches may lie behind the function's first instruction. */
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

/*
 * An ops that has other functions called instead (IPMODIFY) does not rest, because BPF's
 * trampolines learn of that only when the ops is registered. Its functions are called rarely.
 */
static const struct ftrace_ops dtrace_instead_ops = {
	.func = dtrace_watch,
	.flags = FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT,
};

/*
 * Called where get_signal() is entered: the current task handles signals or other work of that
 * kind.
 */
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

/*
 * An ops, once it is allocated; whether it is registered, and watches now; whether it has rested
 * before, and when that began.
 */
struct dtrace_watching {
	struct ftrace_ops *ops;
	bool registered, now, before;
	unsigned long ended;
};

static DEFINE_MUTEX(dtrace_signal_lock);
static struct dtrace_watching dtrace_watching, dtrace_watching_instead, dtrace_watching_signals;

/* Whether it rested a short while ago, so that it must not rest yet. */
static bool dtrace_watching_rests(const struct dtrace_watching *watching)
{
	return watching->now && watching->before && time_before(jiffies, watching->ended + DTRACE_WATCH_REST);
}

/* Hooks functions, unless they are hooked. The callers serialize beginning and end. */
static int dtrace_ops_begin(const struct ftrace_ops *as, unsigned long *at, unsigned int count,
			    struct dtrace_watching *watching)
{
	int error;

	if (watching->now)
		return 0;
	/*
	 * An ops whose registration has failed may be on a list of ftrace's, so it is kept for the
	 * next time.
	 */
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

/* Whether ftrace has stopped after an error: then nobody knows what it has patched. */
static bool dtrace_ftrace_is_dead(void)
{
	static uintptr_t at;

	return (at || (dtrace_symbol("ftrace_is_dead", &at) && at)) && (int)dtrace_call(at, 0, 0, 0, 0, 0);
}

/*
 * Makes the hooks rest. They may still be called for a while, and then find nothing to do. False:
 * that failed.
 */
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

/*
 * Unregisters the hooks, and waits until no task is in them. False: ftrace has stopped, and may
 * call the module for ever.
 */
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
		/*
		 * Its filter is at rest, so it calls nobody, and its memory stays. Tasks that were
		 * called before have left after the next line.
		 */
		pr_warn("dtrace: ftrace has stopped: its record of this module stays in memory\n");
		synchronize_rcu_tasks();
	}
	*watching = (struct dtrace_watching){};
	return true;
}

/* Finds the address of a function of the kernel. */
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
 * Has threads taken out of slots before they handle signals. The caller has counted an area. A
 * worker may do it, because the caller may be the traced program itself, and the lock has no gate
 * (INV-32). May sleep.
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

/* Makes the hook on get_signal() rest if there are no areas, unless it rested a short while ago. */
void dtrace_watch_no_signals(void)
{
	dtrace_patch(dtrace_watch_no_signals_do, NULL);
}

/*
 * Hooks all functions but get_signal(), unless they are hooked. The caller serializes this with
 * dtrace_watch_rest() and dtrace_watch_end(). Returns 0 or a negative errno.
 */
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

/* Whether some hooks must not rest yet. */
bool dtrace_watch_rests(void)
{
	guard(mutex)(&dtrace_signal_lock);
	return dtrace_watching_rests(&dtrace_watching_signals) || dtrace_watching_rests(&dtrace_watching);
}

/* Makes all hooks rest that may, as dtrace_ops_rest(). */
bool dtrace_watch_rest(void)
{
	guard(mutex)(&dtrace_signal_lock);
	return dtrace_ops_rest(&dtrace_watching_signals) && dtrace_ops_rest(&dtrace_watching);
}

/* Unregisters all hooks, as dtrace_ops_end(). */
bool dtrace_watch_end(void)
{
	guard(mutex)(&dtrace_signal_lock);
	if (!dtrace_ops_end(&dtrace_watching_signals) || !dtrace_ops_end(&dtrace_watching) || !dtrace_ops_end(&dtrace_watching_instead))
		return false;
	dtrace_shown_end();
	return true;
}
