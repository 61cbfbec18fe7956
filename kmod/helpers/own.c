// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Breakpoints of our own (INV-43).
 *
 * If the exception can execute the instruction under a breakpoint, or the instruction has a slot,
 * the breakpoint needs nothing of uprobes but its byte. The module writes that byte into the one
 * memory that is meant, as a debugger writes its own; no other process that has mapped the file is
 * touched or waits. Bytes are written and put back page by page (pen.c), with the mmap lock of that
 * memory held for reading. If the framework's mutex is held too, no page is brought meanwhile
 * (bring.c, INV-46).
 *
 * A place where uprobes have a breakpoint already, or had one that a thread is still on its way to,
 * is left to uprobes. lift.c takes our breakpoints out again, and errands.c does what programs do
 * that come to them later.
 *
 * Registering or unregistering a uprobe keeps the whole machine from forking until the mmap locks
 * of all memories that map the file were had, and the owner of one of these can hold its lock at
 * will. So a place that only members have requested has our own breakpoint or none.
 */

#include <linux/bsearch.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/moduleparam.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/sort.h>

#include "own.h"
#include "pen.h"
#include "slots.h"

static bool own_breakpoints = true;
module_param(own_breakpoints, bool, 0644);
MODULE_PARM_DESC(own_breakpoints, "Write breakpoints into the one process that is traced (Y, the default; N: leave all to uprobes but those of users)");

/*
 * How often to wait for a thread that is to resume where a breakpoint is to be written, one tick
 * each time.
 */
#define DTRACE_OWN_TRIES 10

/* Whether the mapping has the carrier's text at its address. The mmap lock is held. */
bool dtrace_own_is_there(const struct dtrace_carrier *carrier, struct vm_area_struct *vma)
{
	return dtrace_has_text_at(vma, carrier->spot.address, carrier->file, carrier->offset);
}

static int dtrace_resume_compare(const void *one, const void *other)
{
	u64 a = *(const u64 *)one, b = *(const u64 *)other;

	return a < b ? -1 : a > b;
}

/* The addresses at which threads resume. */
struct dtrace_resumes {
	u64 *at;
	size_t room, count;
};

static void dtrace_resumes_add(struct dtrace_resumes *all, struct task_struct *thread, struct mm_struct *mm)
{
	if (READ_ONCE(thread->mm) != mm)
		return;
	task_lock(thread);
	/* A thread that has a memory has a stack. */
	if (thread->mm == mm) {
		if (all->count < all->room)
			all->at[all->count] = instruction_pointer(task_pt_regs(thread));
		all->count++;
	}
	task_unlock(thread);
}

static void dtrace_resumes_look(struct dtrace_resumes *all, struct mm_struct *mm)
{
	struct task_struct *process, *thread;

	guard(rcu)();
	all->count = 0;
	for_each_process_thread(process, thread)
		dtrace_resumes_add(all, thread, mm);
}

/*
 * Finds, in ascending order, where the threads of a memory resume that are in the kernel. A thread
 * that has hit a uprobe's breakpoint resumes behind it until uprobes have looked, and gets a signal
 * if they find a breakpoint there but no uprobe any more. The array is the caller's to free.
 */
static int dtrace_resumes_get(struct dtrace_resumes *all, struct mm_struct *mm)
{
	*all = (struct dtrace_resumes){ .room = 64 };
	/*
	 * A thread that is still in the exception has saved its registers by the time its processor
	 * answers.
	 */
	kick_all_cpus_sync();
	for (;;) {
		all->at = kvmalloc_array(all->room, sizeof(*all->at), GFP_KERNEL);
		if (!all->at)
			return -ENOMEM;
		dtrace_resumes_look(all, mm);
		if (all->count <= all->room)
			break;
		all->room = 2 * all->count;
		kvfree(all->at);
	}
	sort(all->at, all->count, sizeof(*all->at), dtrace_resume_compare, NULL);
	return 0;
}

static bool dtrace_resumes_have(const struct dtrace_resumes *all, u64 address)
{
	return bsearch(&address, all->at, all->count, sizeof(*all->at), dtrace_resume_compare);
}

/*
 * Whether a thread of a memory may resume at an address for which is_there() is true, or a negative
 * errno. The caller ensures that no thread newly comes to such an address.
 */
int dtrace_own_any_at(struct dtrace_memory *memory, bool (*is_there)(struct dtrace_memory *memory, u64 address))
{
	struct dtrace_resumes all;
	int error = dtrace_resumes_get(&all, memory->mm);
	size_t n;

	if (error)
		return error;
	for (n = 0; n < all.count; n++)
		error |= is_there(memory, all.at[n]);
	kvfree(all.at);
	return error;
}

/*
 * The known place of an address where a breakpoint may be one of ours that is left over; NULL: it
 * is not. The memory's lock and its mmap lock are held.
 */
static struct dtrace_known *dtrace_own_may_be_left(struct dtrace_memory *memory, struct vm_area_struct *vma, u64 address)
{
	struct dtrace_known *known = memory->inherited || memory->suspected ? dtrace_known_at(vma, address) : NULL;

	return known && (memory->inherited || xa_load(&memory->suspects, (unsigned long)known)) ? known : NULL;
}

/*
 * Writes a breakpoint, unless uprobes are to have it (then it stays unset, and 0 is returned).
 * -EBUSY: the program has another instruction there than its file, or than was known there before.
 * -EAGAIN: a thread may have hit a uprobe there that has gone, or the page is not in memory. The
 * memory's lock and its mmap lock are held.
 */
static int dtrace_own_plant(struct dtrace_memory *memory, struct dtrace_carrier *carrier, const struct dtrace_resumes *resumes,
			    struct dtrace_pen *pen)
{
	struct vm_area_struct *vma = vma_lookup(memory->mm, carrier->spot.address);
	bool uprobes = mm_flags_test(MMF_HAS_UPROBES, memory->mm);
	struct dtrace_known *known;
	u64 at = carrier->spot.address;
	const u8 breakpoint = DTRACE_BREAKPOINT;
	pid_t coverer = 0;
	bool inherits = false;
	int error;

	if (!dtrace_own_is_there(carrier, vma) || vma->vm_flags & VM_WRITE)
		return 0;
	carrier->missing = dtrace_pen_move(pen, at, true);
	if (carrier->missing)
		return -EAGAIN;
	if (dtrace_pen_sees(pen, at, &breakpoint, 1)) {
		carrier->joins = uprobes;
		/* The memory may have inherited a breakpoint from its parent, and keeps it. */
		known = dtrace_own_may_be_left(memory, vma, at);
		/*
		 * In a memory with uprobes it cannot be told whether the breakpoint is a
		 * debugger's.
		 */
		if ((uprobes && (!carrier->uncarried || !known)) || (known && !memory->inherited))
			return 0;
		inherits = known && READ_ONCE(known->counter);
		if (!known && (!dtrace_pen_sees_rest(pen, carrier) || !dtrace_pen_debugger(pen)))
			return 0;
		if (!known)
			coverer = dtrace_pen_debugger(pen);
	} else if (!dtrace_pen_sees(pen, at, carrier->code, carrier->length)) {
		/* Uprobes may have replaced it. */
		carrier->joins = uprobes && dtrace_uprobes_replace(carrier->code, carrier->length);
		return carrier->joins ? 0 : -EBUSY;
	}
	if (!carrier->barred && dtrace_resumes_have(resumes, at + 1))
		return dtrace_is_only_own(carrier) ? -EAGAIN : 0;
	known = dtrace_known_make(vma, carrier);
	if (IS_ERR(known))
		return dtrace_is_only_own(carrier) ? PTR_ERR(known) : 0;
	error = dtrace_count(carrier, memory->mm, known, inherits);
	carrier->missing = error == -EAGAIN;
	if (error)
		return error;
	carrier->known = known;
	carrier->coverer = coverer;
	/*
	 * A guard lets uprobes execute the instructions that they find, so a place where that goes
	 * wrong must not get one.
	 */
	if (carrier->uncarried)
		WRITE_ONCE(carrier->known->barred, true);
	refcount_inc(&memory->count);
	atomic_inc(&memory->places);
	list_add_tail(&carrier->peer, &memory->carriers);
	WRITE_ONCE(memory->lowest, min(memory->lowest, at));
	WRITE_ONCE(memory->highest, max(memory->highest, at));
	carrier->memory = memory;
	dtrace_memory_passes_none(memory);
	smp_store_release(&carrier->state, DTRACE_OWN);
	dtrace_pen_write(pen, at, DTRACE_BREAKPOINT);
	return 0;
}

/* Whether a breakpoint may be our own. */
static bool dtrace_own_can(const struct dtrace_carrier *carrier)
{
	return (!carrier->error || carrier->error == -EAGAIN) && carrier->state == DTRACE_UNSET && carrier->length &&
	       (carrier->does || carrier->moves) && (!carrier->counter || carrier->kept) && (carrier->kept || READ_ONCE(own_breakpoints));
}

/* Whether nothing is missing that the breakpoint needs. */
static bool dtrace_own_is_ready(const struct dtrace_carrier *carrier)
{
	return dtrace_own_can(carrier) && (carrier->does || carrier->slot);
}

/*
 * Gives slots to the carriers that need one: the exception cannot emulate their instruction, or
 * uprobes could not execute what the exception leaves. The memory's lock is held.
 */
static void dtrace_own_move_all(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience)
{
	size_t n;

	for (n = 0; n < count; n++) {
		struct dtrace_carrier *carrier = all[n];
		int error;

		if (!dtrace_own_can(carrier) || !carrier->moves || carrier->slot || (carrier->does && !carrier->uncarried))
			continue;
		error = dtrace_slot_make(memory, carrier, patience);
		if ((error == -ETIMEDOUT || dtrace_is_only_own(carrier)) && !carrier->does)
			carrier->error = error;
		else
			carrier->crowded = error == -ENOSPC && !carrier->does;
		cond_resched();
	}
}

/* Writes many breakpoints, as dtrace_own_plant(). Returns whether some are to be tried again. */
static bool dtrace_own_plant_all(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count)
{
	struct dtrace_pen pen = { .mm = memory->mm };
	struct dtrace_resumes resumes;
	bool again = false;
	size_t n;

	if (dtrace_resumes_get(&resumes, memory->mm))
		return false;
	for (n = 0; n < count; n++) {
		struct dtrace_carrier *carrier = all[n];

		if (dtrace_own_is_ready(carrier))
			carrier->error = dtrace_own_plant(memory, carrier, &resumes, &pen);
		again |= carrier->error == -EAGAIN;
		cond_resched();
	}
	dtrace_pen_lift(&pen);
	kvfree(resumes.at);
	return again;
}

/*
 * Takes the slots from carriers that were not set, because areas go when the memory has no carriers
 * left.
 */
static void dtrace_own_leave_unset(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count)
{
	size_t n;

	for (n = 0; n < count; n++) {
		if (all[n]->state != DTRACE_UNSET)
			continue;
		all[n]->area = NULL;
		all[n]->slot = 0;
	}
	if (!atomic_read(&memory->places) && !list_empty(&memory->areas))
		WRITE_ONCE(memory->stale, true);
}

static bool dtrace_own_is_unset(const struct dtrace_carrier *carrier)
{
	return (!carrier->error || carrier->error == -EAGAIN) && carrier->state == DTRACE_UNSET;
}

/* Whether the breakpoint could not be set because something is missing that can be brought. */
static bool dtrace_own_misses(const struct dtrace_carrier *carrier)
{
	return carrier->error == -EAGAIN && carrier->missing;
}

/* Sets the error of those carriers for which which() is true. */
static void dtrace_own_fail(struct dtrace_carrier **all, size_t count, bool (*which)(const struct dtrace_carrier *carrier), int error)
{
	size_t n;

	for (n = 0; n < count; n++)
		if (which(all[n]))
			all[n]->error = error;
}

/*
 * Writes breakpoints, as dtrace_own_plant_all(), and takes the mmap lock for that. If the lock
 * cannot be had in time, uprobes do not get the breakpoints either, because they would wait for it.
 */
static bool dtrace_own_plant_in(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience)
{
	bool again = false;

	if (dtrace_mappings_lock(memory->mm, patience)) {
		again = dtrace_own_plant_all(memory, all, count);
		mmap_read_unlock(memory->mm);
	} else {
		dtrace_own_fail(all, count, dtrace_own_is_unset, -ETIMEDOUT);
	}
	return again;
}

/*
 * Makes slots, writes breakpoints and brings pages. Returns whether some are to be tried again. The
 * memory's lock is held.
 */
static bool dtrace_own_try_in(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience)
{
	bool again;
	int error;

	if (!mmget_not_zero(memory->mm))
		return false;
	dtrace_own_move_all(memory, all, count, patience);
	again = dtrace_own_plant_in(memory, all, count, patience);
	if (again) {
		error = dtrace_own_bring(memory, all, count, dtrace_own_misses, patience);
		/* Even if that has failed, some pages may have been brought. */
		again = dtrace_own_plant_in(memory, all, count, patience);
		if (error)
			dtrace_own_fail(all, count, dtrace_own_misses, error);
	}
	mmput_async(memory->mm);
	dtrace_own_leave_unset(memory, all, count);
	return again;
}

/* The same, and takes the memory's lock. */
static bool dtrace_own_try(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience)
{
	bool again;

	if (!dtrace_memory_lock(memory, patience)) {
		dtrace_own_fail(all, count, dtrace_own_is_unset, -ETIMEDOUT);
		return false;
	}
	again = dtrace_own_try_in(memory, all, count, patience);
	mutex_unlock(&memory->lock);
	return again;
}

/* Whether the breakpoint is not set, and uprobes must not have it. */
static bool dtrace_own_has_no_other(const struct dtrace_carrier *carrier)
{
	return dtrace_own_is_unset(carrier) && dtrace_is_only_own(carrier);
}

/* Whether pages are missing, and uprobes may have the breakpoint instead. */
static bool dtrace_own_may_be_carried(const struct dtrace_carrier *carrier)
{
	return dtrace_own_misses(carrier) && !dtrace_is_only_own(carrier);
}

/*
 * Writes those breakpoints that can be our own. All are of one memory, in the order of their
 * addresses. If that fails, a carrier's error says why. May sleep.
 */
void dtrace_own_set(struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience)
{
	struct dtrace_memory *memory;
	size_t n;

	for (n = 0; n < count && !dtrace_own_can(all[n]); n++)
		;
	if (n == count)
		return;
	memory = dtrace_memory_make(all[0]->spot.mm);
	if (!memory) {
		dtrace_own_fail(all, count, dtrace_own_has_no_other, -ENOMEM);
		return;
	}
	for (n = 0; n < DTRACE_OWN_TRIES && dtrace_own_try(memory, all, count, patience); n++)
		if (!dtrace_patience_tick(patience))
			break;
	dtrace_memory_put(memory);
	/*
	 * Each fork shares the pages again, so a program that forks all the time may never have its
	 * own copy. Its mmap lock can be had, so uprobes may have the breakpoint: they wait for the
	 * lock.
	 */
	if (n == DTRACE_OWN_TRIES)
		dtrace_own_fail(all, count, dtrace_own_may_be_carried, 0);
	dtrace_own_fail(all, count, dtrace_own_misses, -ETIMEDOUT);
}

/* The process that traces a thread of a memory by ptrace(); 0: there is none. */
pid_t dtrace_debugger_of(struct mm_struct *mm)
{
	struct task_struct *process, *thread, *tracer;

	guard(rcu)();
	for_each_process_thread(process, thread) {
		if (!READ_ONCE(thread->ptrace) || READ_ONCE(thread->mm) != mm)
			continue;
		tracer = rcu_dereference(thread->parent);
		/* One that is ending lets its threads go soon. */
		if (atomic_read(&tracer->signal->live))
			return tracer->tgid;
	}
	return 0;
}

/* Whether a thread of a memory is traced by ptrace(). */
bool dtrace_is_debugged(struct mm_struct *mm)
{
	return dtrace_debugger_of(mm);
}

/*
 * Whether the process lives whose breakpoint covers a carrier's. It may trace any thread of the
 * program, or none: the kernel may let whoever may trace a program write to its text by
 * /proc/PID/mem (proc_mem.force_override). If its number belongs to a later process, the breakpoint
 * stays, as it would without ours.
 */
bool dtrace_coverer_lives(const struct dtrace_carrier *carrier)
{
	pid_t coverer = READ_ONCE(carrier->coverer);
	struct task_struct *task;

	if (!coverer)
		return false;
	guard(rcu)();
	task = pid_task(find_pid_ns(coverer, &init_pid_ns), PIDTYPE_TGID);
	return task && atomic_read(&task->signal->live);
}
