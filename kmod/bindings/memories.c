// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Memories that breakpoints of ours are or were in.
 *
 * A memory that we have written to is known until it is gone, and so is each that is copied from it, with our breakpoints in it. The copy
 * is noted while the kernel holds the lock of the first, under which we write: nobody is copied between. Memories that are gone
 * are looked for once a second. While there are any the kernel's copying is watched, and breakpoints are attended to.
 */

#include <linux/hashtable.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "helpers.h"
#include "own.h"
#include "pause.h"

/* Memories are removed with both locks held. */
static DEFINE_MUTEX(dtrace_memories_lock);
static DEFINE_RAW_SPINLOCK(dtrace_memories_list_lock);
static DEFINE_HASHTABLE(dtrace_memories, 8);
static LIST_HEAD(dtrace_memories_list);
static unsigned long dtrace_memories_count;
/* Whether breakpoints are attended to. */
static bool dtrace_memories_attended;
/* A memory was copied and there was none to note that. */
static bool dtrace_memories_missed;

static void dtrace_memories_sweep(struct work_struct *work);
static DECLARE_DELAYED_WORK(dtrace_memories_work, dtrace_memories_sweep);

/* Under RCU, or one of the locks. */
static struct dtrace_memory *dtrace_memory_find(struct mm_struct *mm)
{
	struct dtrace_memory *memory;

	hash_for_each_possible_rcu(dtrace_memories, memory, hash, (unsigned long)mm, true)
		if (memory->mm == mm)
			return memory;
	return NULL;
}

bool dtrace_memory_is_known(struct mm_struct *mm)
{
	guard(rcu)();
	return dtrace_memory_find(mm);
}

bool dtrace_memory_has_places(struct mm_struct *mm)
{
	struct dtrace_memory *memory;

	guard(rcu)();
	memory = dtrace_memory_find(mm);
	return memory && atomic_read(&memory->places);
}

bool dtrace_memories_lost(void)
{
	return READ_ONCE(dtrace_memories_missed);
}

struct dtrace_memory *dtrace_memory_get(struct mm_struct *mm)
{
	struct dtrace_memory *memory;

	guard(rcu)();
	memory = dtrace_memory_find(mm);
	return memory && refcount_inc_not_zero(&memory->count) ? memory : NULL;
}

void dtrace_memory_put(struct dtrace_memory *memory)
{
	/* The list keeps one. */
	refcount_dec(&memory->count);
}

static struct dtrace_memory *dtrace_memory_alloc(struct mm_struct *mm, bool inherited, gfp_t gfp)
{
	struct dtrace_memory *memory = kzalloc(sizeof(*memory), gfp);

	if (!memory)
		return NULL;
	mmgrab(mm);
	memory->mm = mm;
	memory->inherited = inherited;
	mutex_init(&memory->lock);
	xa_init(&memory->suspects);
	refcount_set(&memory->count, 1);
	guard(raw_spinlock_irqsave)(&dtrace_memories_list_lock);
	hash_add_rcu(dtrace_memories, &memory->hash, (unsigned long)mm);
	list_add_tail(&memory->all, &dtrace_memories_list);
	dtrace_memories_count++;
	return memory;
}

static void dtrace_memory_free(struct dtrace_memory *memory)
{
	xa_destroy(&memory->suspects);
	mmdrop(memory->mm);
	mutex_destroy(&memory->lock);
	kfree(memory);
}

/* Has a memory known from now on; NULL if that cannot be. Its caller puts it. */
struct dtrace_memory *dtrace_memory_make(struct mm_struct *mm)
{
	struct dtrace_memory *memory;

	guard(mutex)(&dtrace_memories_lock);
	memory = dtrace_memory_get(mm);
	if (memory)
		return memory;
	if (dtrace_watch_begin())
		return NULL;
	if (!dtrace_memories_attended) {
		dtrace_memories_attended = true;
		dtrace_traps_attend();
		schedule_delayed_work(&dtrace_memories_work, HZ);
	}
	/* If there is no memory for it the work ends what has begun. */
	memory = dtrace_memory_alloc(mm, false, GFP_KERNEL_ACCOUNT);
	if (memory)
		refcount_inc(&memory->count);
	return memory;
}

/* Moves those that nobody has any more to a list, some of them. */
static void dtrace_memories_dead(struct list_head *dead)
{
	struct dtrace_memory *memory;
	unsigned long left;

	guard(raw_spinlock_irqsave)(&dtrace_memories_list_lock);
	for (left = min(dtrace_memories_count, 1024UL); left; left--) {
		memory = list_first_entry(&dtrace_memories_list, struct dtrace_memory, all);
		if (atomic_read(&memory->mm->mm_users) || refcount_read(&memory->count) > 1) {
			list_move_tail(&memory->all, &dtrace_memories_list);
			continue;
		}
		hash_del_rcu(&memory->hash);
		list_move(&memory->all, dead);
		dtrace_memories_count--;
	}
}

static void dtrace_memories_free(struct list_head *dead)
{
	struct dtrace_memory *memory, *next;

	synchronize_rcu();
	list_for_each_entry_safe(memory, next, dead, all)
		dtrace_memory_free(memory);
}

static void dtrace_memories_sweep(struct work_struct *work)
{
	LIST_HEAD(dead);

	guard(mutex)(&dtrace_memories_lock);
	dtrace_memories_dead(&dead);
	if (!list_empty(&dead))
		dtrace_memories_free(&dead);
	if (!list_empty(&dtrace_memories_list) || !dtrace_watch_end()) {
		schedule_delayed_work(&dtrace_memories_work, HZ);
		return;
	}
	dtrace_memories_attended = false;
	dtrace_traps_ignore();
	if (!dtrace_memories_lost())
		dtrace_known_forget();
}

/* A memory is about to be copied. Neither sleeps nor fails: where there is no memory for a note, all breakpoints are looked at that nobody knows. */
void dtrace_watch_copied(struct mm_struct *from, struct mm_struct *to)
{
	if (dtrace_memory_is_known(from) && !dtrace_memory_alloc(to, true, GFP_NOWAIT | __GFP_NOWARN))
		WRITE_ONCE(dtrace_memories_missed, true);
}

static struct dtrace_memory *dtrace_memory_next(struct list_head *done)
{
	struct dtrace_memory *memory;

	guard(raw_spinlock_irqsave)(&dtrace_memories_list_lock);
	memory = list_first_entry_or_null(&dtrace_memories_list, struct dtrace_memory, all);
	if (memory) {
		list_move_tail(&memory->all, done);
		dtrace_memories_count--;
	}
	return memory;
}

static void dtrace_memories_nothing(void *data)
{
}

/*
 * Leaves no breakpoint in any memory. None is wanted any more. A memory that is copied meanwhile is noted before it is copied,
 * behind the one that it is copied from.
 */
void dtrace_memories_exit(void)
{
	struct dtrace_memory *memory, *next;
	LIST_HEAD(done);

	cancel_delayed_work_sync(&dtrace_memories_work);
	if (!dtrace_memories_attended)
		return;
	while ((memory = dtrace_memory_next(&done)))
		dtrace_known_heal(memory);
	/* Who has met one before has been here when his processor answers, and fetches anew what he executes. */
	on_each_cpu(dtrace_memories_nothing, NULL, 1);
	if (!dtrace_watch_end()) {
		pr_err("dtrace: ftrace has stopped, and may call this module for ever: its removal does not end\n");
		dtrace_park();
	}
	dtrace_traps_ignore();
	if (dtrace_pauses_wait())
		synchronize_rcu_tasks();
	list_for_each_entry_safe(memory, next, &done, all) {
		hash_del_rcu(&memory->hash);
		dtrace_memory_free(memory);
	}
}
