// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Memories that breakpoints of ours are or were in (INV-44).
 *
 * A memory that we have written to is known until it is gone, and so is each copy of it, because
 * the copy has our breakpoints. The copy is noted while the kernel holds the mmap lock of the
 * original, under which we write, so no copy is made in between. Memories that are gone are swept
 * once a second, and when many copies were noted. While any memory is known, the kernel's copying
 * is watched, and breakpoints are attended to.
 *
 * If a copy could not be noted, for want of memory, our breakpoints may be in any process from then
 * on, until the module goes.
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

#include "module.h"
#include "own.h"
#include "patching.h"
#include "pause.h"
#include "slots.h"

/* Number of new memories after which a sweep begins at once. */
#define DTRACE_MEMORIES_MANY 1024

/* How often the module tries to unmap areas when it goes, in one second. */
#define DTRACE_RETIRE_TRIES 20

/* The sweep removes memories with both locks held, so either lock keeps them. */
static DEFINE_MUTEX(dtrace_memories_lock);
static DEFINE_RAW_SPINLOCK(dtrace_memories_list_lock);
static DEFINE_HASHTABLE(dtrace_memories, 8);
static LIST_HEAD(dtrace_memories_list);
static unsigned long dtrace_memories_count;
/* Number of memories that were noted since the last sweep. */
static unsigned long dtrace_memories_fresh;
/* Whether breakpoints are attended to; whether no memory becomes known any more. */
static bool dtrace_memories_attended, dtrace_memories_ended;
/* A memory was copied, and there was no room to note the copy. */
static bool dtrace_memories_missed;

static void dtrace_memories_sweep(struct work_struct *work);
static DECLARE_DELAYED_WORK(dtrace_memories_work, dtrace_memories_sweep);

/*
 * Finds a memory; NULL: it is not known. The caller is in an RCU read-side critical section, or
 * holds one of the locks.
 */
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

/* Has the next sweep look at a memory. Does not sleep. */
void dtrace_memory_is_stale(struct mm_struct *mm)
{
	struct dtrace_memory *memory;

	guard(rcu)();
	memory = dtrace_memory_find(mm);
	if (memory)
		WRITE_ONCE(memory->stale, true);
}

/* The entry for the address at which the current task passes. */
static unsigned long *dtrace_memory_pass(struct dtrace_memory *memory)
{
	return &memory->passes[current->pid % DTRACE_LET_ON];
}

/*
 * Lets the current task pass: the exception ignores the next breakpoint that it hits at the
 * address.
 */
void dtrace_memory_passes(struct dtrace_memory *memory, u64 address)
{
	WRITE_ONCE(*dtrace_memory_pass(memory), address);
}

/* No task passes any more. */
void dtrace_memory_passes_none(struct dtrace_memory *memory)
{
	unsigned int n;

	for (n = 0; n < DTRACE_LET_ON; n++)
		WRITE_ONCE(memory->passes[n], 0);
}

/*
 * Called when uprobes set a breakpoint: whether they do it for a carrier that is being registered,
 * which is noted. Does not sleep.
 */
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

/* What a breakpoint that the current program has hit is to be taken for. Does not sleep. */
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

/* Whether a copy of a memory could not be noted. */
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
	/* Never the last reference: the list holds one. */
	refcount_dec(&memory->count);
}

/* Writes breakpoints anew after something was mapped; if none is left, unmaps the areas. */
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

/* The worker of a memory. If the program holds it up, the rest is done the next time. */
static void dtrace_memory_work(struct work_struct *work)
{
	struct dtrace_memory *memory = container_of(work, struct dtrace_memory, work);

	if (READ_ONCE(memory->stale))
		dtrace_memory_renew(memory);
	/* Marks the memory as stale if something is left behind. */
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
	/* If there is no memory, the sweep ends what has begun. */
	making->memory = dtrace_memory_alloc(making->mm, false, GFP_KERNEL);
	if (making->memory)
		refcount_inc(&making->memory->count);
}

/*
 * Makes a memory known, and returns it with a reference; NULL if that is impossible. May sleep. The
 * caller may be the traced program itself, and the lock has no gate (INV-32), so a worker may do
 * it.
 */
struct dtrace_memory *dtrace_memory_make(struct mm_struct *mm)
{
	struct dtrace_memory_making making = { .mm = mm };

	dtrace_patch(dtrace_memory_make_do, &making);
	return making.memory;
}

/* Number of memories that are looked at before others get the lock. */
#define DTRACE_MEMORIES_SOME 256

/*
 * Looks at the first `count` memories: moves those without users and references to `dead`, and all
 * others to the end of the list. Returns whether any was stale; their workers see to those.
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

	/* Only this function removes memories, so there are at least `left`. */
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

/* Does what concerns no single memory. */
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
	/* The work may have been queued once more before it was ended. */
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
	/*
	 * Places are given up when their breakpoints are gone, and with the mmap lock held nobody
	 * copies in between.
	 */
	return !READ_ONCE(memory->healed) && (atomic_read(&memory->places) || READ_ONCE(memory->inherited) ||
					      READ_ONCE(memory->suspected));
}

/*
 * Called where a memory is about to be copied. Neither sleeps nor fails: if the copy cannot be
 * noted, all unknown breakpoints are looked at from then on.
 */
void dtrace_watch_copied(struct mm_struct *from, struct mm_struct *to)
{
	if (!dtrace_memory_spreads(from))
		return;
	if (!dtrace_memory_alloc(to, true, GFP_NOWAIT | __GFP_NOWARN))
		WRITE_ONCE(dtrace_memories_missed, true);
	/* Each entry keeps an mm_struct, even if its process has ended. */
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

/* Unmaps all areas, except those that a thread stays in for long. */
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

/* The memory of the next task from a number on, with a user reference. */
static struct mm_struct *dtrace_mm_next(int *number)
{
	struct mm_struct *mm = NULL;
	struct task_struct *task;
	struct pid *pid;

	guard(rcu)();
	while (!mm && (pid = idr_get_next(&init_pid_ns.idr, number))) {
		/* PIDTYPE_PID, because a process's first thread may have ended while others run. */
		task = pid_task(pid, PIDTYPE_PID);
		mm = task ? get_task_mm(task) : NULL;
		++*number;
	}
	return mm;
}

/*
 * Takes all breakpoints out of all processes. A memory that is being copied meanwhile is found in
 * the next round.
 */
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
			healed += dtrace_known_heal(mm, NULL, false, &none);
			mmput(mm);
			cond_resched();
		}
		schedule_timeout_uninterruptible(HZ / 10);
	} while (healed);
}

/* Takes all breakpoints out of all memories that are known. */
static void dtrace_memories_heal(struct list_head *done)
{
	struct dtrace_memory *memory;

	while ((memory = dtrace_memory_next(done)))
		dtrace_known_heal(memory->mm, memory->inherited ? NULL : &memory->suspects, false, &memory->healed);
	if (dtrace_memories_lost())
		dtrace_memories_heal_all();
	/*
	 * A task that has hit one before has been in the exception when its processor answers, and
	 * fetches its code anew.
	 */
	kick_all_cpus_sync();
}

/*
 * Arguments of the worker that heals. A task that has been killed, as rmmod may have been, cannot
 * bring pages, so it could not heal.
 */
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

/*
 * Unregisters all hooks. If ftrace has stopped, it may call this module for good; then this does
 * not return.
 */
static void dtrace_memories_unwatch(void)
{
	if (!dtrace_watch_end()) {
		pr_err("dtrace: ftrace has stopped, and may call this module for ever: its removal does not end\n");
		dtrace_park();
	}
}

/*
 * Takes all breakpoints out of all memories. None is wanted any more. A memory that is copied
 * meanwhile is noted before it is copied, behind its original in the list, unless that has no
 * breakpoints left.
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
	/* The copies that were noted last. */
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
