// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Guards of known places.
 *
 * Where somebody has a uprobe too only uprobes know whether a breakpoint is still wanted in a memory. A consumer that soon wants it
 * nowhere, a guard, makes them handle the place: they take a breakpoint away then where nobody else wants it. It also shows whether
 * there is anybody else. It stays for a second or two, since it is in the way of who wants a uprobe with a counter there.
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
	/* Where it is wanted while it is registered: uprobes look at an instruction when they set the first breakpoint there, not before. */
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
/* Who takes guards away, and no breakpoints with them. */
static struct task_struct *dtrace_guards_dismisser;

/*
 * Has uprobes see to the place, which is in this file and has a breakpoint in a memory. EINVAL: somebody has a uprobe with a counter
 * there. EIO, ENOTSUPP: uprobes can have none there.
 */
int dtrace_known_guard(struct dtrace_known *known, struct file *file, struct mm_struct *mm)
{
	struct dtrace_guard *made;
	int error;

	guard(mutex)(&dtrace_guards_lock);
	if (known->guard)
		return 0;
	made = kzalloc(sizeof(*made), GFP_KERNEL);
	if (!made)
		return -ENOMEM;
	made->consumer.filter = dtrace_guard_filter;
	made->consumer.handler = dtrace_guard_hit;
	made->first = mm;
	made->uprobe = uprobe_register(file_inode(file), known->place.offset, 0, &made->consumer);
	if (IS_ERR(made->uprobe)) {
		error = PTR_ERR(made->uprobe);
		/* Who has a counter there may keep it for long, and the kernel complains each time. */
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

/* Who has uprobes at a place, as far as a guard can tell. Does not sleep. */
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

/* Takes the guards away. */
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
 * Takes the guards away. What is left of ours is not taken out with them, nor what debuggers have set there, which uprobes would take
 * for their own.
 */
void dtrace_guards_relieve(void)
{
	WRITE_ONCE(dtrace_guards_dismisser, current);
	dtrace_guards_dismiss();
	WRITE_ONCE(dtrace_guards_dismisser, NULL);
}

/* Whether uprobes take a breakpoint out because a guard goes. */
bool dtrace_guards_keep(void)
{
	return READ_ONCE(dtrace_guards_dismisser) == current;
}
