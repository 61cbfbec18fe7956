// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Memories that breakpoints of ours are or were in.
 *
 * A memory that we have written to is known until it is gone, and so is each that is copied from it, with our breakpoints in it. The copy
 * is noted while the kernel holds the lock of the first, under which we write: nobody is copied between. Memories that are gone
 * are looked for once a second, and when many were noted. While there are any the kernel's copying is watched, and breakpoints are
 * attended to.
 *
 * If a copy could not be noted, for want of memory, our breakpoints may be in any process from then on: that is so until the module goes.
 */

#include <linux/hashtable.h>
#include <linux/idr.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "helpers.h"
#include "own.h"
#include "patching.h"
#include "pause.h"
#include "slots.h"

/* As many as may come before those that are gone are looked for. */
#define DTRACE_MEMORIES_MANY 1024

/* How often areas are tried to be left behind when the module goes, in one second. */
#define DTRACE_RETIRE_TRIES 20

/* Memories are removed with both locks held. */
static DEFINE_MUTEX(dtrace_memories_lock);
static DEFINE_RAW_SPINLOCK(dtrace_memories_list_lock);
static DEFINE_HASHTABLE(dtrace_memories, 8);
static LIST_HEAD(dtrace_memories_list);
static unsigned long dtrace_memories_count;
/* How many have come since they were last looked through. */
static unsigned long dtrace_memories_fresh;
/* Whether breakpoints are attended to, and whether memories become known. */
static bool dtrace_memories_attended, dtrace_memories_ended;
/* A memory was copied and there was none to note that. */
static bool dtrace_memories_missed;

static void dtrace_memories_sweep(struct work_struct *work);
static DECLARE_DELAYED_WORK(dtrace_memories_work, dtrace_memories_sweep);

/* Under RCU, or one of the locks. */
struct dtrace_memory *dtrace_memory_find(struct mm_struct *mm)
{
	struct dtrace_memory *memory;

	hash_for_each_possible_rcu(dtrace_memories, memory, hash, (unsigned long)mm, true)
		if (memory->mm == mm)
			return memory;
	return NULL;
}

/* Whether a memory may have breakpoints of ours between two addresses. Does not sleep. */
bool dtrace_memory_has_places(struct mm_struct *mm, u64 start, u64 end)
{
	struct dtrace_memory *memory;

	guard(rcu)();
	memory = dtrace_memory_find(mm);
	return memory && atomic_read(&memory->places) && READ_ONCE(memory->lowest) < end &&
	       READ_ONCE(memory->highest) >= start;
}

/* Looked at when memories are looked for the next time. Does not sleep. */
void dtrace_memory_is_stale(struct mm_struct *mm)
{
	struct dtrace_memory *memory;

	guard(rcu)();
	memory = dtrace_memory_find(mm);
	if (memory)
		WRITE_ONCE(memory->stale, true);
}

/* Where the current task is let on. */
static unsigned long *dtrace_memory_pass(struct dtrace_memory *memory)
{
	return &memory->passes[current->pid % DTRACE_LET_ON];
}

/* Nobody here looks at a breakpoint when the current task comes to it the next time. */
void dtrace_memory_passes(struct dtrace_memory *memory, u64 address)
{
	WRITE_ONCE(*dtrace_memory_pass(memory), address);
}

/* All are looked at. */
void dtrace_memory_passes_none(struct dtrace_memory *memory)
{
	unsigned int n;

	for (n = 0; n < DTRACE_LET_ON; n++)
		WRITE_ONCE(memory->passes[n], 0);
}

/* Uprobes set a breakpoint: whether for us, to whom that is noted. Does not sleep. */
bool dtrace_memory_yields(struct vm_area_struct *vma, u64 address)
{
	struct dtrace_carrier *yielded;
	struct dtrace_memory *memory;

	guard(rcu)();
	memory = dtrace_memory_find(vma->vm_mm);
	yielded = memory && READ_ONCE(memory->yielder) == current ? READ_ONCE(memory->yielded) : NULL;
	if (!yielded || yielded->offset != dtrace_offset_of(vma, address) || !dtrace_has_text(vma, yielded->file))
		return false;
	WRITE_ONCE(memory->yields, true);
	return true;
}

/* What a breakpoint that the current program has met is. Does not sleep. */
enum dtrace_stray dtrace_memory_strays(u64 address)
{
	struct dtrace_memory *memory;

	guard(rcu)();
	memory = dtrace_memory_find(current->mm);
	if (!memory)
		return dtrace_memories_lost() ? DTRACE_STRAY : DTRACE_UNKNOWN;
	if (cmpxchg(dtrace_memory_pass(memory), address, 0) == address)
		return DTRACE_UNKNOWN;
	if (atomic_read(&memory->places))
		return DTRACE_STRAY;
	return READ_ONCE(memory->inherited) || READ_ONCE(memory->suspected) ? DTRACE_LEFT : DTRACE_FOREIGN;
}

/* Whether a memory was copied that nobody knows. */
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

/* Something was mapped, or breakpoints have gone. */
static void dtrace_memory_renew(struct dtrace_memory *memory)
{
	struct dtrace_patience patience = dtrace_patience_own();
	bool done = true;

	WRITE_ONCE(memory->stale, false);
	if (!dtrace_memory_lock(memory, &patience)) {
		WRITE_ONCE(memory->stale, true);
		return;
	}
	if (mmget_not_zero(memory->mm)) {
		done = atomic_read(&memory->places) ? dtrace_own_renew(memory, 0, U64_MAX, &patience)
						    : dtrace_slots_retire(memory, &patience);
		mmput_async(memory->mm);
	}
	mutex_unlock(&memory->lock);
	if (!done)
		WRITE_ONCE(memory->stale, true);
}

/* What a memory's worker does. Where the program keeps it waiting it is done the next time. */
static void dtrace_memory_work(struct work_struct *work)
{
	struct dtrace_memory *memory = container_of(work, struct dtrace_memory, work);

	if (READ_ONCE(memory->stale))
		dtrace_memory_renew(memory);
	/* Has it looked at again where something stays. */
	dtrace_left_clear(memory);
	dtrace_memory_put(memory);
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
	INIT_LIST_HEAD(&memory->carriers);
	INIT_LIST_HEAD(&memory->left);
	INIT_WORK(&memory->work, dtrace_memory_work);
	INIT_LIST_HEAD(&memory->areas);
	xa_init(&memory->slots);
	memory->lowest = U64_MAX;
	xa_init(&memory->suspects);
	refcount_set(&memory->count, 1);
	guard(raw_spinlock_irqsave)(&dtrace_memories_list_lock);
	hash_add_rcu(dtrace_memories, &memory->hash, (unsigned long)mm);
	list_add_tail(&memory->all, &dtrace_memories_list);
	dtrace_memories_count++;
	dtrace_memories_fresh++;
	return memory;
}

static void dtrace_memory_free(struct dtrace_memory *memory)
{
	dtrace_slots_free(memory);
	xa_destroy(&memory->suspects);
	dtrace_uncharged_gone(&memory->uncharged_suspects);
	mmdrop(memory->mm);
	mutex_destroy(&memory->lock);
	kfree(memory);
}

struct dtrace_memory_making {
	struct mm_struct *mm;
	struct dtrace_memory *memory;
};

static void dtrace_memory_make_do(void *data)
{
	struct dtrace_memory_making *making = data;

	guard(mutex)(&dtrace_memories_lock);
	making->memory = dtrace_memory_get(making->mm);
	if (making->memory || dtrace_memories_ended || dtrace_watch_begin())
		return;
	if (!dtrace_memories_attended) {
		dtrace_memories_attended = true;
		dtrace_traps_attend();
		schedule_delayed_work(&dtrace_memories_work, HZ);
	}
	/* If there is no memory for it the work ends what has begun. */
	making->memory = dtrace_memory_alloc(making->mm, false, GFP_KERNEL);
	if (making->memory)
		refcount_inc(&making->memory->count);
}

/*
 * Has a memory known from now on; NULL if that cannot be. Its caller puts it. It may be the traced program itself, and the lock has no gate: hence a
 * worker.
 */
struct dtrace_memory *dtrace_memory_make(struct mm_struct *mm)
{
	struct dtrace_memory_making making = { .mm = mm };

	dtrace_patch(dtrace_memory_make_do, &making);
	return making.memory;
}

/* How many are looked at before others get the lock. */
#define DTRACE_MEMORIES_SOME 256

/*
 * Moves those of the first memories that nobody has any more to a list, and the others behind all. Whether some are stale; their workers see to
 * them.
 */
static bool dtrace_memories_look_among(unsigned long count, struct list_head *dead)
{
	struct dtrace_memory *memory;
	bool any = false;

	guard(raw_spinlock_irqsave)(&dtrace_memories_list_lock);
	for (; count; count--) {
		memory = list_first_entry(&dtrace_memories_list, struct dtrace_memory, all);
		if (atomic_read(&memory->mm->mm_users) || refcount_read(&memory->count) > 1) {
			if (READ_ONCE(memory->stale)) {
				dtrace_memory_see(memory);
				any = true;
			}
			list_move_tail(&memory->all, &dtrace_memories_list);
			continue;
		}
		hash_del_rcu(&memory->hash);
		list_move(&memory->all, dead);
		dtrace_memories_count--;
	}
	return any;
}

static bool dtrace_memories_look(struct list_head *dead)
{
	unsigned long left = READ_ONCE(dtrace_memories_count), some;
	bool any = false;

	/* None goes meanwhile but by us. */
	WRITE_ONCE(dtrace_memories_fresh, 0);
	for (; left; left -= some) {
		some = min(left, DTRACE_MEMORIES_SOME);
		any |= dtrace_memories_look_among(some, dead);
		cond_resched();
	}
	return any;
}

static void dtrace_memories_free(struct list_head *dead)
{
	struct dtrace_memory *memory, *next;

	synchronize_rcu();
	list_for_each_entry_safe(memory, next, dead, all)
		dtrace_memory_free(memory);
}

/* Looks after what has nothing to do with one memory. */
static void dtrace_memories_tend(struct work_struct *work)
{
	dtrace_guards_relieve();
	dtrace_watch_no_signals();
}

static DECLARE_WORK(dtrace_memories_tending, dtrace_memories_tend);

static void dtrace_memories_sweep(struct work_struct *work)
{
	LIST_HEAD(dead);

	guard(mutex)(&dtrace_memories_lock);
	/* It may have been asked for twice. */
	if (!dtrace_memories_attended)
		return;
	dtrace_memories_look(&dead);
	if (!list_empty(&dead))
		dtrace_memories_free(&dead);
	if (dtrace_memories_lost() || !list_empty(&dtrace_memories_list) || work_busy(&dtrace_memories_tending) ||
	    dtrace_watch_rests() || !dtrace_watch_rest()) {
		queue_work(system_dfl_long_wq, &dtrace_memories_tending);
		schedule_delayed_work(&dtrace_memories_work, HZ);
		return;
	}
	dtrace_memories_attended = false;
	dtrace_traps_ignore();
	dtrace_known_forget();
}

/* Whether a copy of a memory may have breakpoints of ours. */
static bool dtrace_memory_spreads(struct mm_struct *mm)
{
	struct dtrace_memory *memory;

	guard(rcu)();
	memory = dtrace_memory_find(mm);
	if (!memory)
		return dtrace_memories_lost();
	/* Places go when their breakpoints are gone, and nobody copies meanwhile. */
	return !READ_ONCE(memory->healed) && (atomic_read(&memory->places) || READ_ONCE(memory->inherited) ||
					      READ_ONCE(memory->suspected));
}

/* A memory is about to be copied. Neither sleeps nor fails: where there is no memory for a note, all breakpoints are looked at that nobody knows. */
void dtrace_watch_copied(struct mm_struct *from, struct mm_struct *to)
{
	if (!dtrace_memory_spreads(from))
		return;
	if (!dtrace_memory_alloc(to, true, GFP_NOWAIT | __GFP_NOWARN))
		WRITE_ONCE(dtrace_memories_missed, true);
	/* Each keeps what its process leaves behind. */
	if (READ_ONCE(dtrace_memories_fresh) >= DTRACE_MEMORIES_MANY)
		mod_delayed_work(system_percpu_wq, &dtrace_memories_work, 0);
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

/* Leaves no areas, unless threads stay in them for long. */
static void dtrace_memories_retire(void)
{
	bool any = true;
	unsigned int n;

	for (n = 0; n < DTRACE_RETIRE_TRIES && any; n++) {
		LIST_HEAD(dead);

		any = dtrace_memories_look(&dead);
		dtrace_memories_free(&dead);
		dtrace_programs_wait();
		if (any)
			schedule_timeout_uninterruptible(HZ / DTRACE_RETIRE_TRIES);
	}
}

/* The memory of the next task from a number on; its caller puts it. */
static struct mm_struct *dtrace_mm_next(int *number)
{
	struct mm_struct *mm = NULL;
	struct task_struct *task;
	struct pid *pid;

	guard(rcu)();
	while (!mm && (pid = idr_get_next(&init_pid_ns.idr, number))) {
		/* Each thread has a number, and the first may have ended. */
		task = pid_task(pid, PIDTYPE_PID);
		mm = task ? get_task_mm(task) : NULL;
		++*number;
	}
	return mm;
}

/* Leaves no breakpoint in any process. One that is on the way to be is found the next time. */
static void dtrace_memories_heal_all(void)
{
	unsigned long healed;
	struct mm_struct *mm;
	int number;
	bool none;

	do {
		healed = 0;
		number = 1;
		while ((mm = dtrace_mm_next(&number))) {
			healed += dtrace_known_heal(mm, NULL, &none);
			mmput(mm);
			cond_resched();
		}
		schedule_timeout_uninterruptible(HZ / 10);
	} while (healed);
}

/* Leaves no breakpoint in any memory that is known. */
static void dtrace_memories_heal(struct list_head *done)
{
	struct dtrace_memory *memory;

	while ((memory = dtrace_memory_next(done)))
		dtrace_known_heal(memory->mm, memory->inherited ? NULL : &memory->suspects, &memory->healed);
	if (dtrace_memories_lost())
		dtrace_memories_heal_all();
	/* Who has met one before has been here when his processor answers, and fetches anew what he executes. */
	kick_all_cpus_sync();
}

/* Healing in a worker. For a task that has been killed, as rmmod may have been, no page is brought in, so that nothing would be healed. */
struct dtrace_healing {
	struct work_struct work;
	struct list_head done;
};

static void dtrace_memories_heal_work(struct work_struct *work)
{
	dtrace_memories_heal(&container_of(work, struct dtrace_healing, work)->done);
}

static void dtrace_healing_do(struct dtrace_healing *healing)
{
	queue_work(system_dfl_wq, &healing->work);
	flush_work(&healing->work);
}

/* Has the kernel's copying watched no more, nor anything else. */
static void dtrace_memories_unwatch(void)
{
	if (!dtrace_watch_end()) {
		pr_err("dtrace: ftrace has stopped, and may call this module for ever: its removal does not end\n");
		dtrace_park();
	}
}

/*
 * Leaves no breakpoint in any memory. None is wanted any more. A memory that is copied meanwhile is noted before it is copied,
 * behind the one that it is copied from, unless that has none any more.
 */
void dtrace_memories_exit(void)
{
	struct dtrace_memory *memory, *next;
	struct dtrace_healing healing;

	mutex_lock(&dtrace_memories_lock);
	dtrace_memories_ended = true;
	mutex_unlock(&dtrace_memories_lock);
	disable_delayed_work_sync(&dtrace_memories_work);
	disable_work_sync(&dtrace_memories_tending);
	if (!dtrace_memories_attended) {
		dtrace_memories_unwatch();
		return;
	}
	dtrace_memories_retire();
	dtrace_watch_no_signals();
	INIT_LIST_HEAD(&healing.done);
	INIT_WORK_ONSTACK(&healing.work, dtrace_memories_heal_work);
	dtrace_healing_do(&healing);
	dtrace_memories_unwatch();
	/* Those that were noted last. */
	dtrace_healing_do(&healing);
	destroy_work_on_stack(&healing.work);
	dtrace_traps_ignore();
	if (dtrace_pauses_wait())
		synchronize_rcu_tasks();
	list_for_each_entry_safe(memory, next, &healing.done, all) {
		hash_del_rcu(&memory->hash);
		dtrace_memory_free(memory);
	}
}
