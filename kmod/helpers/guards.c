// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Guards of known places (INV-44).
 *
 * If a memory has uprobes, only uprobes know whether a breakpoint in it is still wanted. A guard is
 * a uprobe consumer that wants no events: it makes uprobes handle the place, so that they remove a
 * breakpoint that nobody else wants. It also shows whether there is another consumer. It stays for
 * a second or two only, because it is in the way of a tracer that wants a uprobe with a counter
 * there.
 */

#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "own.h"

struct dtrace_guard {
	struct uprobe_consumer consumer;
	struct uprobe *uprobe;
	struct file *file;
	/*
	 * Memory in which the guard wants a breakpoint while it is being registered: uprobes read
	 * an instruction when they set the first breakpoint there, not before.
	 */
	struct mm_struct *first;
	struct dtrace_known *known;
	struct list_head all;
};

static bool dtrace_guard_filter(struct uprobe_consumer *consumer, struct mm_struct *mm)
{
	return mm == READ_ONCE(container_of(consumer, struct dtrace_guard, consumer)->first);
}

static int dtrace_guard_hit(struct uprobe_consumer *consumer, struct pt_regs *regs, __u64 *data)
{
	return UPROBE_HANDLER_REMOVE;
}

static DEFINE_MUTEX(dtrace_guards_lock);
static LIST_HEAD(dtrace_guards);
/* Task that removes guards and leaves the breakpoints in place. */
static struct task_struct *dtrace_guards_dismisser;

/* Registers a guard; dtrace_guards_lock is held. Returns what dtrace_known_guard() returns. */
static int dtrace_guard_make(struct dtrace_known *known, struct file *file, struct mm_struct *mm)
{
	struct dtrace_guard *made;
	int error;

	made = kzalloc(sizeof(*made), GFP_KERNEL);
	if (!made)
		return -ENOMEM;
	made->consumer.filter = dtrace_guard_filter;
	made->consumer.handler = dtrace_guard_hit;
	made->first = mm;
	made->uprobe = uprobe_register(file_inode(file), known->place.offset, 0, &made->consumer);
	if (IS_ERR(made->uprobe)) {
		error = PTR_ERR(made->uprobe);
		/*
		 * The other tracer may keep its uprobe for long, and the kernel logs each refusal.
		 * 0 stands for none, so the time is made odd.
		 */
		if (error == -EINVAL)
			WRITE_ONCE(known->theirs, (jiffies + HZ) | 1);
		kfree(made);
		return error;
	}
	WRITE_ONCE(made->first, NULL);
	made->file = get_file(file);
	made->known = known;
	list_add(&made->all, &dtrace_guards);
	smp_store_release(&known->guard, made);
	return 0;
}

/*
 * Registers a guard at the place, which is in this file and has a breakpoint in a memory. -EINVAL:
 * another tracer has a uprobe with a counter there. -EIO, -ENOTSUPP, -ENOEXEC: uprobes can have
 * none there. May sleep, and may take the mmap lock of every memory that maps the file. `killable`:
 * -EINTR if the task is killed while another task registers one.
 */
int dtrace_known_guard(struct dtrace_known *known, struct file *file, struct mm_struct *mm, bool killable)
{
	int error = 0;

	if (!killable)
		mutex_lock(&dtrace_guards_lock);
	else if (mutex_lock_killable(&dtrace_guards_lock))
		return -EINTR;
	if (!known->guard)
		error = dtrace_guard_make(known, file, mm);
	mutex_unlock(&dtrace_guards_lock);
	return error;
}

/* Whether others have uprobes at a place, as far as a guard can tell. Does not sleep. */
enum dtrace_others dtrace_known_others(const struct dtrace_known *known)
{
	const struct dtrace_guard *one;

	if (READ_ONCE(known->theirs) && time_before(jiffies, READ_ONCE(known->theirs)))
		return DTRACE_OTHERS_SOME;
	guard(rcu)();
	one = smp_load_acquire(&known->guard);
	if (!one)
		return DTRACE_OTHERS_UNKNOWN;
	return dtrace_is_alone(&one->consumer) ? DTRACE_OTHERS_NONE : DTRACE_OTHERS_SOME;
}

/* Removes all guards. May sleep. */
void dtrace_guards_dismiss(void)
{
	struct dtrace_guard *one, *next;
	LIST_HEAD(gone);

	guard(mutex)(&dtrace_guards_lock);
	list_splice_init(&dtrace_guards, &gone);
	if (list_empty(&gone))
		return;
	list_for_each_entry(one, &gone, all) {
		WRITE_ONCE(one->known->guard, NULL);
		uprobe_unregister_nosync(one->uprobe, &one->consumer);
		cond_resched();
	}
	uprobe_unregister_sync();
	synchronize_rcu();
	list_for_each_entry_safe(one, next, &gone, all) {
		fput(one->file);
		kfree(one);
	}
}

/*
 * Removes all guards and leaves the breakpoints in place: breakpoints of ours that are left over,
 * and those that debuggers have set there, which uprobes would take for their own.
 */
void dtrace_guards_relieve(void)
{
	WRITE_ONCE(dtrace_guards_dismisser, current);
	dtrace_guards_dismiss();
	WRITE_ONCE(dtrace_guards_dismisser, NULL);
}

/*
 * Whether the breakpoint that uprobes are about to take out must stay, because they take it out for
 * a guard that dtrace_guards_relieve() removes.
 */
bool dtrace_guards_keep(void)
{
	return READ_ONCE(dtrace_guards_dismisser) == current;
}
