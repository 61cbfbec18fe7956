// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Breakpoints of our own.
 *
 * Where the exception can do the instruction that a breakpoint covers nothing is needed of uprobes but the breakpoint's byte. It is written
 * into the one memory that is meant, as a debugger writes its own; no other process that has mapped the file is touched or waits.
 * What is written and what is put back goes page by page (pen.c), under the lock of that memory held for reading. Where the framework's lock
 * is held as well nothing is brought in then (bring.c).
 *
 * A place where uprobes have a breakpoint already, or had one that somebody is still on his way to, is theirs. What happens to ours later
 * is in errands.c.
 *
 * To give anything to uprobes keeps the whole machine from forking until the locks of all memories were had that the file is mapped in, and
 * who owns one of these can hold its lock for as long as he likes. So a place that nobody but users has asked for is our own or none.
 */

#include <linux/bsearch.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/moduleparam.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/sort.h>
#include <asm/text-patching.h>

#include "own.h"
#include "pen.h"
#include "slots.h"

static bool own_breakpoints = true;
module_param(own_breakpoints, bool, 0644);
MODULE_PARM_DESC(own_breakpoints, "Write breakpoints into the one process that is traced (Y, the default; N: leave all to uprobes but those of users)");

/* How often a thread is waited for that goes on where one is to be, a tick each time. */
#define DTRACE_OWN_TRIES 10

/* Whether somebody debugs the program that a pen writes to. All threads are looked at, so it is asked once. */
static bool dtrace_pen_is_debugged(struct dtrace_pen *pen)
{
	if (!pen->asked)
		pen->is_debugged = dtrace_is_debugged(pen->mm);
	pen->asked = true;
	return pen->is_debugged;
}

/* Whether an address is where the carrier's text is; the lock of the memory is held. */
bool dtrace_own_is_there(const struct dtrace_carrier *carrier, struct vm_area_struct *vma)
{
	return dtrace_has_text_at(vma, carrier->spot.address, carrier->file, carrier->offset);
}

/* Whether a carrier's instruction goes on as it should behind its first byte, which the pen is at, as far as the page goes. */
static bool dtrace_pen_sees_rest(struct dtrace_pen *pen, const struct dtrace_carrier *carrier)
{
	u64 next = carrier->spot.address + 1;

	return !offset_in_page(next) || dtrace_pen_sees(pen, next, carrier->code + 1, carrier->length - 1);
}

/* Writes the first byte of a carrier's instruction, as above. Where there is no file it may be another instruction by now. */
static int dtrace_pen_put(struct dtrace_pen *pen, const struct dtrace_carrier *carrier, u8 old, u8 new)
{
	u64 at = carrier->spot.address;

	if (!carrier->file) {
		int error = dtrace_pen_move(pen, at, false);

		if (error)
			return error;
		if (!dtrace_pen_sees_rest(pen, carrier))
			return 0;
	}
	return dtrace_pen_replace(pen, at, old, new);
}

static int dtrace_resume_compare(const void *one, const void *other)
{
	u64 a = *(const u64 *)one, b = *(const u64 *)other;

	return a < b ? -1 : a > b;
}

/* Where threads go on. */
struct dtrace_resumes {
	u64 *at;
	size_t room, count;
};

static void dtrace_resumes_add(struct dtrace_resumes *all, struct task_struct *thread, struct mm_struct *mm)
{
	if (READ_ONCE(thread->mm) != mm)
		return;
	task_lock(thread);
	/* As long as it has a memory it has a stack. */
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
 * Where the threads of a memory go on that are in the kernel, in order: one that has met a uprobe's breakpoint is behind it until uprobes
 * have looked, and gets a signal if it finds a breakpoint there and no uprobe any more.
 */
static int dtrace_resumes_get(struct dtrace_resumes *all, struct mm_struct *mm)
{
	*all = (struct dtrace_resumes){ .room = 64 };
	/* A thread that is still in the exception has saved its registers when its processor answers. */
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

/* Whether a thread of a memory may go on where none comes to any more, or a negative errno. */
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

/* What is known of a place where a breakpoint may be one of ours that is left over; NULL: it is none. */
static struct dtrace_known *dtrace_own_may_be_left(struct dtrace_memory *memory, struct vm_area_struct *vma, u64 address)
{
	struct dtrace_known *known = memory->inherited || memory->suspected ? dtrace_known_at(vma, address) : NULL;

	return known && (memory->inherited || xa_load(&memory->suspects, (unsigned long)known)) ? known : NULL;
}

/*
 * Writes a breakpoint, unless it is one for uprobes. EBUSY: the program has another instruction there than its file, or than
 * was known there before. EAGAIN: some thread may have met a uprobe there that is gone, or the program's page has gone.
 */
static int dtrace_own_plant(struct dtrace_memory *memory, struct dtrace_carrier *carrier, const struct dtrace_resumes *resumes,
			    struct dtrace_pen *pen)
{
	struct vm_area_struct *vma = vma_lookup(memory->mm, carrier->spot.address);
	bool uprobes = mm_flags_test(MMF_HAS_UPROBES, memory->mm);
	struct dtrace_known *known;
	u64 at = carrier->spot.address;
	const u8 breakpoint = DTRACE_BREAKPOINT;
	bool inherits = false;
	int error;

	if (!dtrace_own_is_there(carrier, vma) || vma->vm_flags & VM_WRITE)
		return 0;
	carrier->missing = dtrace_pen_move(pen, at, true);
	if (carrier->missing)
		return -EAGAIN;
	carrier->shown = carrier->code[0];
	if (dtrace_pen_sees(pen, at, &breakpoint, 1)) {
		carrier->joins = uprobes;
		/* It may keep one that it has from its parent. */
		known = dtrace_own_may_be_left(memory, vma, at);
		/* Beside uprobes it is not to be seen whether it is a debugger's. */
		if ((uprobes && (!carrier->uncarried || !known)) || (known && !memory->inherited))
			return 0;
		inherits = known && READ_ONCE(known->counter);
		if (!known && (!dtrace_pen_sees_rest(pen, carrier) || !dtrace_pen_is_debugged(pen)))
			return 0;
		if (!known)
			carrier->shown = DTRACE_BREAKPOINT;
	} else if (!dtrace_pen_sees(pen, at, carrier->code, carrier->length)) {
		/* Uprobes make a call of a long nop. */
		carrier->joins = uprobes && carrier->length == CALL_INSN_SIZE;
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
	/* Guards let uprobes execute what they find, so they see to no place where that goes wrong. */
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

/* Whether all is there that it needs. */
static bool dtrace_own_is_ready(const struct dtrace_carrier *carrier)
{
	return dtrace_own_can(carrier) && (carrier->does || carrier->slot);
}

/* Gives slots to those that need one: the exception cannot do them, or uprobes not what it cannot. */
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

/* As above, of many; whether some are to be tried again. */
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

/* Those that were not planted have no slots: areas go with what was. */
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

/* Whether it could not be set as something was not there that can be brought. */
static bool dtrace_own_misses(const struct dtrace_carrier *carrier)
{
	return carrier->error == -EAGAIN && carrier->missing;
}

/* Gives some the error. */
static void dtrace_own_fail(struct dtrace_carrier **all, size_t count, bool (*which)(const struct dtrace_carrier *carrier), int error)
{
	size_t n;

	for (n = 0; n < count; n++)
		if (which(all[n]))
			all[n]->error = error;
}

/* Has the pages of some breakpoints brought, as dtrace_bring(). */
static int dtrace_own_bring(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count,
			    bool (*which)(const struct dtrace_carrier *carrier), struct dtrace_patience *patience)
{
	struct dtrace_carrier **own = kvmalloc_array(count, sizeof(*own), GFP_KERNEL);
	size_t n, many = 0;
	int error = 0;

	if (!own)
		return -ENOMEM;
	for (n = 0; n < count; n++)
		if (which(all[n]))
			own[many++] = all[n];
	if (many)
		error = dtrace_bring(memory, own, many, patience);
	kvfree(own);
	return error;
}

/* As dtrace_own_plant_all(), with the lock of the mappings. Where that cannot be had uprobes would wait for it. */
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

/* The same, with the memory locked. */
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
		/* Where that has not come to its end some are there. */
		again = dtrace_own_plant_in(memory, all, count, patience);
		if (error)
			dtrace_own_fail(all, count, dtrace_own_misses, error);
	}
	mmput_async(memory->mm);
	dtrace_own_leave_unset(memory, all, count);
	return again;
}

/* The same, with the locks that it takes. */
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

/* Whether uprobes may not have what is not set. */
static bool dtrace_own_has_no_other(const struct dtrace_carrier *carrier)
{
	return dtrace_own_is_unset(carrier) && dtrace_is_only_own(carrier);
}

/* Whether uprobes may have what could not be set. */
static bool dtrace_own_may_be_carried(const struct dtrace_carrier *carrier)
{
	return dtrace_own_misses(carrier) && !dtrace_is_only_own(carrier);
}

/* Writes those of breakpoints of one memory, in the order of their addresses, that can be ours; where that fails error says why. */
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
	/* The program forks again and again: each time it shares its pages. Uprobes wait for it, and it lets them in. */
	if (n == DTRACE_OWN_TRIES)
		dtrace_own_fail(all, count, dtrace_own_may_be_carried, 0);
	dtrace_own_fail(all, count, dtrace_own_misses, -ETIMEDOUT);
}

/* Whether some thread of a memory is traced by ptrace(). */
bool dtrace_is_debugged(struct mm_struct *mm)
{
	struct task_struct *process, *thread;

	guard(rcu)();
	for_each_process_thread(process, thread)
		if (READ_ONCE(thread->ptrace) && READ_ONCE(thread->mm) == mm)
			return true;
	return false;
}

/* From now on a breakpoint at a place may be ours, in a memory that is locked and has none there. */
static void dtrace_own_suspect(const struct dtrace_carrier *carrier)
{
	struct dtrace_memory *memory = carrier->memory;
	struct dtrace_known *known = carrier->known;

	/* Where that cannot be noted one at any place may be. */
	if (!dtrace_note_for(carrier, &memory->uncharged_suspects, &memory->suspects, (unsigned long)known, 1))
		WRITE_ONCE(memory->inherited, true);
	WRITE_ONCE(memory->suspected, true);
}

/* Whether a debugger has a breakpoint where a carrier's is. */
bool dtrace_own_is_covered(const struct dtrace_carrier *carrier)
{
	return READ_ONCE(carrier->shown) == DTRACE_BREAKPOINT;
}

/* What uprobes or a debugger want too stays for them. Where the breakpoint may be somewhere else, or stays, it is remembered. */
static void dtrace_own_lift(struct dtrace_carrier *carrier, struct dtrace_pen *pen)
{
	struct dtrace_memory *memory = carrier->memory;
	u64 at = carrier->spot.address;
	bool moved = !dtrace_own_is_there(carrier, vma_lookup(memory->mm, at));
	/* From here on nobody gives it to uprobes. */
	bool shared = xchg(&carrier->state, DTRACE_GONE) == DTRACE_SHARED && mm_flags_test(MMF_HAS_UPROBES, memory->mm);

	dtrace_memory_passes_none(memory);
	dtrace_count_no_more(carrier, memory->mm, pen->brings);
	/* A breakpoint whose debugger has gone would kill the program. */
	if (!moved && !shared && dtrace_own_is_covered(carrier) && dtrace_pen_is_debugged(pen)) {
		xa_erase(&memory->suspects, (unsigned long)carrier->known);
		return;
	}
	if (moved || shared || dtrace_pen_put(pen, carrier, DTRACE_BREAKPOINT, carrier->code[0]) < 0 || READ_ONCE(carrier->rewritten))
		dtrace_own_suspect(carrier);
}

/* Takes a breakpoint out that nobody can answer, unless somebody else has one there. Memory and mappings are locked. */
static void dtrace_own_drop(struct dtrace_carrier *carrier, struct dtrace_pen *pen)
{
	dtrace_own_lift(carrier, pen);
	if (!dtrace_own_is_covered(carrier))
		dtrace_own_suspect(carrier);
}

static void dtrace_own_tell_lost(struct dtrace_carrier *carrier)
{
	WRITE_ONCE(carrier->changed, false);
	carrier->lose(carrier);
}

/* The same, and tells. The memory is locked. */
void dtrace_own_lose(struct dtrace_carrier *carrier)
{
	struct mm_struct *mm = carrier->spot.mm;
	struct dtrace_pen pen = { .mm = mm, .brings = true };

	if (mmap_read_lock_killable(mm))
		return;
	dtrace_own_drop(carrier, &pen);
	dtrace_pen_lift(&pen);
	mmap_read_unlock(mm);
	dtrace_own_tell_lost(carrier);
}

/* Whether a breakpoint can be taken out, and counted down, without anything brought in. */
static bool dtrace_own_is_in(const struct dtrace_carrier *carrier, struct dtrace_pen *pen)
{
	u64 at = carrier->spot.address;
	bool writes = dtrace_is_own(carrier) && dtrace_own_is_there(carrier, vma_lookup(pen->mm, at));

	return (!writes || !dtrace_pen_move(pen, at, true)) && dtrace_counter_is_in(carrier, pen->mm);
}

/*
 * Takes those breakpoints of one memory away that stay, as far as they are ours and what they are in is in memory. The memory is locked. Whether
 * the others can be taken away when that has been brought.
 */
static bool dtrace_own_lift_in(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience)
{
	struct dtrace_pen pen = { .mm = memory->mm, .brings = patience->alone };
	bool any = false;
	size_t n;

	if (!dtrace_mappings_lock(memory->mm, patience))
		return false;
	for (n = 0; n < count; n++) {
		if (all[n]->stays && (pen.brings || dtrace_own_is_in(all[n], &pen))) {
			if (dtrace_is_own(all[n]))
				dtrace_own_lift(all[n], &pen);
			/* Others may have it by now. */
			dtrace_count_no_more(all[n], memory->mm, pen.brings);
			all[n]->stays = false;
		}
		any |= all[n]->stays;
		cond_resched();
	}
	dtrace_pen_lift(&pen);
	mmap_read_unlock(memory->mm);
	return any;
}

static bool dtrace_own_stays(const struct dtrace_carrier *carrier)
{
	return carrier->stays;
}

/* The same, with pages brought. After a fork a page is shared with the child. */
static void dtrace_own_lift_with(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count,
				 struct dtrace_patience *patience)
{
	size_t n;

	if (dtrace_own_lift_in(memory, all, count, patience)) {
		/* Where that does not come to its end some are there. */
		dtrace_own_bring(memory, all, count, dtrace_own_stays, patience);
		dtrace_own_lift_in(memory, all, count, patience);
	}
	/* A debugger that has saved one puts it back when it detaches, even if uprobes carry that one now. */
	if (dtrace_is_debugged(memory->mm))
		for (n = 0; n < count; n++)
			if (!all[n]->stays && !dtrace_own_is_covered(all[n]))
				dtrace_own_suspect(all[n]);
}

/* The same, with the lock; and nobody looks for them any more. Those that could not be had in time stay. */
static void dtrace_own_lift_all(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience)
{
	bool lives;
	size_t n;

	for (n = 0; n < count; n++)
		all[n]->stays = true;
	if (!dtrace_memory_lock(memory, patience))
		return;
	lives = mmget_not_zero(memory->mm);
	if (lives) {
		dtrace_own_lift_with(memory, all, count, patience);
		mmput_async(memory->mm);
	}
	for (n = 0; n < count; n++) {
		all[n]->stays &= lives;
		if (!all[n]->stays)
			list_del(&all[n]->peer);
	}
	mutex_unlock(&memory->lock);
}

/* Takes breakpoints away, as above. They are answered until dtrace_trap_remove(). */
void dtrace_own_clear(struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience)
{
	size_t first, end;

	for (first = 0; first < count; first = end) {
		struct dtrace_memory *memory = all[first]->memory;

		for (end = first + 1; end < count && all[end]->memory == memory; end++)
			;
		if (memory)
			dtrace_own_lift_all(memory, all + first, end - first, patience);
	}
}

/* It is answered no more. */
void dtrace_own_forget(struct dtrace_carrier *carrier)
{
	struct dtrace_memory *memory = carrier->memory;

	if (!memory)
		return;
	carrier->memory = NULL;
	if (atomic_dec_and_test(&memory->places) && !list_empty(&memory->areas))
		WRITE_ONCE(memory->stale, true);
	dtrace_memory_put(memory);
}

/* Writes a breakpoint again if it is not there. Where text comes back its first pages may be somewhere else. */
static void dtrace_own_restore(struct dtrace_carrier *carrier, struct dtrace_pen *pen)
{
	struct dtrace_memory *memory = carrier->memory;
	u64 at = carrier->spot.address;
	struct vm_area_struct *vma = vma_lookup(memory->mm, at);
	u8 shown = READ_ONCE(carrier->shown);

	if (!dtrace_own_is_there(carrier, vma) || vma->vm_flags & VM_WRITE || dtrace_pen_move(pen, at, false) ||
	    !dtrace_pen_sees(pen, at, carrier->code, 1))
		return;
	/* A debugger's is gone with what was there, unless he has just written one. */
	cmpxchg(&carrier->shown, shown, carrier->code[0]);
	if (dtrace_pen_put(pen, carrier, carrier->code[0], DTRACE_BREAKPOINT) > 0)
		dtrace_own_suspect(carrier);
}

/* Whether a debugger who was about to make another instruction of a carrier's has done so. */
static bool dtrace_own_is_changed(struct dtrace_carrier *carrier, struct dtrace_pen *pen)
{
	const u8 breakpoint = DTRACE_BREAKPOINT;
	u64 at = carrier->spot.address;

	/* A debugger's breakpoint hides what he has made of it. */
	if (!READ_ONCE(carrier->changed) || dtrace_own_is_covered(carrier))
		return false;
	/* Who writes later looks again when he has. */
	WRITE_ONCE(carrier->changed, dtrace_pen_move(pen, at, false) || !dtrace_pen_sees(pen, at, &breakpoint, 1) ||
					     !dtrace_pen_sees_rest(pen, carrier));
	return READ_ONCE(carrier->changed);
}

/*
 * Writes those breakpoints of a memory between two addresses again that are not there: a file has been mapped. Those that a debugger has made
 * other instructions of are given up. The memory is locked; whether it could be done.
 */
bool dtrace_own_renew(struct dtrace_memory *memory, u64 start, u64 end, struct dtrace_patience *patience)
{
	struct dtrace_pen pen = { .mm = memory->mm, .brings = true };
	struct dtrace_carrier *carrier;
	bool lost = false;

	if (!dtrace_mappings_lock(memory->mm, patience))
		return false;
	list_for_each_entry(carrier, &memory->carriers, peer) {
		u64 at = carrier->spot.address;

		cond_resched();
		if (at < start || at >= end || !dtrace_is_own(carrier))
			continue;
		if (dtrace_own_is_changed(carrier, &pen)) {
			dtrace_own_drop(carrier, &pen);
			lost = true;
		} else {
			dtrace_own_restore(carrier, &pen);
		}
	}
	dtrace_pen_lift(&pen);
	mmap_read_unlock(memory->mm);
	if (!lost)
		return true;
	list_for_each_entry(carrier, &memory->carriers, peer)
		if (dtrace_carrier_is_lost(carrier) && READ_ONCE(carrier->changed))
			dtrace_own_tell_lost(carrier);
	return true;
}

/* What we have written for a place of a file where that is mapped. The caller is seen by RCU. */
struct dtrace_carrier *dtrace_own_at(struct vm_area_struct *vma, u64 address)
{
	struct dtrace_carrier *carrier = dtrace_trap_at(vma->vm_mm, address);

	return carrier && dtrace_is_own(carrier) && dtrace_own_is_there(carrier, vma) ? carrier : NULL;
}

/* One that was ours before uprobes had it, in a state, where a debugger has his own. The caller is seen by RCU. */
struct dtrace_carrier *dtrace_own_covered_at(struct vm_area_struct *vma, u64 address, u8 state)
{
	struct dtrace_carrier *carrier = dtrace_trap_at(vma->vm_mm, address);

	return carrier && smp_load_acquire(&carrier->state) == state && READ_ONCE(carrier->memory) && dtrace_own_is_covered(carrier) &&
	       dtrace_own_is_there(carrier, vma) ? carrier : NULL;
}

/* Takes a breakpoint of ours out, so that uprobes find the instruction. The lock of the memory is held for writing. */
void dtrace_own_lend(struct vm_area_struct *vma, u64 address)
{
	struct dtrace_carrier *carrier;
	int code;

	rcu_read_lock();
	carrier = dtrace_own_at(vma, address);
	code = carrier ? carrier->code[0] : -ENOENT;
	rcu_read_unlock();
	if (code >= 0)
		dtrace_poke(vma->vm_mm, address, DTRACE_BREAKPOINT, code);
}

/* Writes a breakpoint of ours again: uprobes have set none there, or have taken theirs out. The lock is held as above. */
void dtrace_own_take_back(struct vm_area_struct *vma, u64 address)
{
	struct dtrace_carrier *carrier;
	int code = -ENOENT;

	rcu_read_lock();
	carrier = dtrace_own_at(vma, address);
	/* Unless uprobes have got it from us meanwhile. */
	if (carrier && (cmpxchg(&carrier->state, DTRACE_LENT, DTRACE_OWN) == DTRACE_LENT ||
			cmpxchg(&carrier->state, DTRACE_SHARED, DTRACE_OWN) == DTRACE_SHARED))
		code = carrier->code[0];
	carrier = dtrace_own_covered_at(vma, address, DTRACE_GONE);
	/* What comes back is the debugger's. */
	if (carrier)
		code = carrier->code[0];
	rcu_read_unlock();
	/* For a task that has been killed no page is brought in. The breakpoint is written when memories are swept. */
	if (code >= 0 && dtrace_poke(vma->vm_mm, address, code, DTRACE_BREAKPOINT) < 0)
		dtrace_memory_is_stale(vma->vm_mm);
}
