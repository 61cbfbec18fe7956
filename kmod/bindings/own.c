// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Breakpoints of our own.
 *
 * Where the exception can do the instruction that a breakpoint covers nothing is needed of uprobes but the breakpoint's byte. It is written
 * into the one memory that is meant, as a debugger writes its own; no other process that has mapped the file is touched or waits.
 * What is written and what is put back goes page by page, under the lock of that memory held for reading.
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
#include <linux/highmem.h>
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
#include "slots.h"

static bool own_breakpoints = true;
module_param(own_breakpoints, bool, 0644);
MODULE_PARM_DESC(own_breakpoints, "Write breakpoints into the one process that is traced (Y, the default; N: leave all to uprobes but those of users)");

/* How often a thread is waited for that goes on where one is to be, a tick each time. */
#define DTRACE_OWN_TRIES 10

/* A page that bytes are written to; the lock of its memory is held. */
struct dtrace_pen {
	struct mm_struct *mm;
	u64 at;
	struct page *page;
	bool writes, written;
};

static void dtrace_pen_lift(struct dtrace_pen *pen)
{
	if (!pen->page)
		return;
	if (pen->written)
		set_page_dirty_lock(pen->page);
	put_page(pen->page);
	pen->page = NULL;
	pen->written = false;
}

/* Goes to the page of an address. To be written to, it is a copy of the memory's own from then on. */
static int dtrace_pen_move(struct dtrace_pen *pen, u64 address, bool writes)
{
	u64 at = address & PAGE_MASK;
	long got;

	if (pen->page && pen->at == at && (pen->writes || !writes))
		return 0;
	dtrace_pen_lift(pen);
	got = get_user_pages_remote(pen->mm, at, 1, FOLL_FORCE | (writes ? FOLL_WRITE : 0), &pen->page, NULL);
	if (got != 1) {
		pen->page = NULL;
		return got < 0 ? got : -EFAULT;
	}
	pen->at = at;
	pen->writes = writes;
	return 0;
}

/* Whether there is what is said, as far as the page goes. */
static bool dtrace_pen_sees(struct dtrace_pen *pen, u64 address, const u8 *bytes, size_t size)
{
	void *page = kmap_local_page(pen->page);
	bool same = !memcmp(page + offset_in_page(address), bytes, min(size, PAGE_SIZE - offset_in_page(address)));

	kunmap_local(page);
	return same;
}

/* Other processors that execute it see the one or the other. */
static void dtrace_pen_write(struct dtrace_pen *pen, u64 address, u8 byte)
{
	u8 *page = kmap_local_page(pen->page);

	WRITE_ONCE(page[offset_in_page(address)], byte);
	kunmap_local(page);
	pen->written = true;
}

/* 1 if something was written, or a negative errno. */
static int dtrace_pen_replace(struct dtrace_pen *pen, u64 address, u8 old, u8 new)
{
	int error = dtrace_pen_move(pen, address, false);

	if (error || !dtrace_pen_sees(pen, address, &old, 1))
		return error;
	error = dtrace_pen_move(pen, address, true);
	if (error || !dtrace_pen_sees(pen, address, &old, 1))
		return error;
	dtrace_pen_write(pen, address, new);
	return 1;
}

/* Makes one byte of a program's text another one, if it is what is said; 1 if so. The lock of the memory is held. */
int dtrace_poke(struct mm_struct *mm, u64 address, u8 old, u8 new)
{
	struct dtrace_pen pen = { .mm = mm };
	int error = dtrace_pen_replace(&pen, address, old, new);

	dtrace_pen_lift(&pen);
	return error;
}

/* The byte of a program's text at an address, or a negative errno. The lock of the memory is held. */
int dtrace_peek(struct mm_struct *mm, u64 address)
{
	struct dtrace_pen pen = { .mm = mm };
	int result = dtrace_pen_move(&pen, address, false);

	if (!result) {
		const u8 *page = kmap_local_page(pen.page);

		result = page[offset_in_page(address)];
		kunmap_local(page);
	}
	dtrace_pen_lift(&pen);
	return result;
}

/* Whether an address is where the carrier's text is; the lock of the memory is held. */
bool dtrace_own_is_there(const struct dtrace_carrier *carrier, struct vm_area_struct *vma)
{
	const vm_flags_t wanted = VM_MAYEXEC, unwanted = VM_HUGETLB | VM_MAYSHARE;

	return vma && (vma->vm_flags & (wanted | unwanted)) == wanted && dtrace_has_text(vma, carrier->file) &&
	       dtrace_offset_of(vma, carrier->spot.address) == carrier->offset;
}

/* Writes the first byte of a carrier's instruction, as above. Where there is no file it may be another instruction by now. */
static int dtrace_pen_put(struct dtrace_pen *pen, const struct dtrace_carrier *carrier, u8 old, u8 new)
{
	u64 at = carrier->spot.address;

	if (!carrier->file) {
		int error = dtrace_pen_move(pen, at, false);

		if (error)
			return error;
		if (offset_in_page(at + 1) && !dtrace_pen_sees(pen, at + 1, carrier->code + 1, carrier->length - 1))
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

/*
 * Writes a breakpoint, unless it is one for uprobes. EBUSY: the program has another instruction there than its file, or than
 * was known there before. EAGAIN: some thread may have met a uprobe there that is gone.
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

	if (!dtrace_own_is_there(carrier, vma) || vma->vm_flags & VM_WRITE || dtrace_pen_move(pen, at, true))
		return 0;
	if (dtrace_pen_sees(pen, at, &breakpoint, 1)) {
		carrier->joins = uprobes;
		/* It may keep one that it has from its parent. */
		known = dtrace_known_at(vma, at);
		if ((uprobes && !carrier->uncarried) || !memory->inherited || !known)
			return 0;
		inherits = READ_ONCE(known->counter);
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

		if (dtrace_own_can(carrier) && (carrier->does || carrier->slot))
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

/* The program has not let us in. Uprobes would wait for it. */
static void dtrace_own_give_up(struct dtrace_carrier **all, size_t count)
{
	size_t n;

	for (n = 0; n < count; n++)
		if (!all[n]->error && all[n]->state == DTRACE_UNSET)
			all[n]->error = -ETIMEDOUT;
}

/* The same, with the memory locked. */
static bool dtrace_own_try_in(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience)
{
	struct mm_struct *mm = memory->mm;
	bool again = false;

	if (!mmget_not_zero(mm))
		return false;
	dtrace_own_move_all(memory, all, count, patience);
	if (dtrace_mappings_lock(mm, patience)) {
		again = dtrace_own_plant_all(memory, all, count);
		mmap_read_unlock(mm);
	} else {
		dtrace_own_give_up(all, count);
	}
	mmput_async(mm);
	dtrace_own_leave_unset(memory, all, count);
	return again;
}

/* The same, with the locks that it takes. */
static bool dtrace_own_try(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience)
{
	bool again;

	if (!dtrace_memory_lock(memory, patience)) {
		dtrace_own_give_up(all, count);
		return false;
	}
	again = dtrace_own_try_in(memory, all, count, patience);
	mutex_unlock(&memory->lock);
	return again;
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
	if (!memory)
		return;
	for (n = 0; n < DTRACE_OWN_TRIES && dtrace_own_try(memory, all, count, patience); n++)
		if (!dtrace_patience_tick(patience))
			break;
	dtrace_memory_put(memory);
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
static void dtrace_own_suspect(struct dtrace_memory *memory, struct dtrace_known *known)
{
	/* Where that cannot be noted one at any place may be. */
	if (xa_is_err(xa_store(&memory->suspects, (unsigned long)known, xa_mk_value(1), GFP_KERNEL_ACCOUNT)))
		WRITE_ONCE(memory->inherited, true);
	WRITE_ONCE(memory->suspected, true);
}

/* What uprobes want too stays for them. Where the breakpoint may be somewhere else, or stays, it is remembered. */
static void dtrace_own_lift(struct dtrace_carrier *carrier, struct dtrace_pen *pen)
{
	struct dtrace_memory *memory = carrier->memory;
	u64 at = carrier->spot.address;
	bool moved = !dtrace_own_is_there(carrier, vma_lookup(memory->mm, at));
	/* From here on nobody gives it to uprobes. */
	bool shared = xchg(&carrier->state, DTRACE_GONE) == DTRACE_SHARED && mm_flags_test(MMF_HAS_UPROBES, memory->mm);

	dtrace_memory_passes_none(memory);
	dtrace_count_no_more(carrier, memory->mm);
	if (moved || shared || dtrace_pen_put(pen, carrier, DTRACE_BREAKPOINT, carrier->code[0]) < 0)
		dtrace_own_suspect(memory, carrier->known);
}

/* Takes a breakpoint out that nobody can answer, unless somebody else has one there. Its memory is locked. */
int dtrace_own_drop(struct dtrace_carrier *carrier)
{
	struct mm_struct *mm = carrier->spot.mm;
	struct dtrace_pen pen = { .mm = mm };

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	dtrace_own_lift(carrier, &pen);
	dtrace_own_suspect(carrier->memory, carrier->known);
	dtrace_pen_lift(&pen);
	mmap_read_unlock(mm);
	return 0;
}

/* Takes breakpoints of one memory away as far as they are ours. The memory is locked; whether its mappings could be. */
static bool dtrace_own_lift_in(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience)
{
	struct mm_struct *mm = memory->mm;
	struct dtrace_pen pen = { .mm = mm };
	size_t n;

	if (!mmget_not_zero(mm))
		return true;
	if (!dtrace_mappings_lock(mm, patience)) {
		mmput_async(mm);
		return false;
	}
	for (n = 0; n < count; n++) {
		if (dtrace_is_own(all[n]))
			dtrace_own_lift(all[n], &pen);
		/* Others may have it by now. */
		dtrace_count_no_more(all[n], mm);
		cond_resched();
	}
	dtrace_pen_lift(&pen);
	mmap_read_unlock(mm);
	/* A debugger that has saved one puts it back when it detaches, even if uprobes carry that one now. */
	if (dtrace_is_debugged(mm))
		for (n = 0; n < count; n++)
			dtrace_own_suspect(memory, all[n]->known);
	mmput_async(mm);
	return true;
}

/* The same, with the lock; and nobody looks for them any more. Those whose memory could not be had in time stay. */
static void dtrace_own_lift_all(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience)
{
	bool locked = dtrace_memory_lock(memory, patience);
	bool done = locked && dtrace_own_lift_in(memory, all, count, patience);
	size_t n;

	for (n = 0; n < count; n++) {
		all[n]->stays = !done;
		if (done)
			list_del(&all[n]->peer);
	}
	if (locked)
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

	if (dtrace_own_is_there(carrier, vma) && !(vma->vm_flags & VM_WRITE) &&
	    dtrace_pen_put(pen, carrier, carrier->code[0], DTRACE_BREAKPOINT) > 0)
		dtrace_own_suspect(memory, carrier->known);
}

/*
 * Writes those breakpoints of a memory between two addresses again that are not there: a file has been mapped. The memory is locked; whether it
 * could be done.
 */
bool dtrace_own_renew(struct dtrace_memory *memory, u64 start, u64 end, struct dtrace_patience *patience)
{
	struct dtrace_pen pen = { .mm = memory->mm };
	struct dtrace_carrier *carrier;

	if (!dtrace_mappings_lock(memory->mm, patience))
		return false;
	list_for_each_entry(carrier, &memory->carriers, peer) {
		u64 at = carrier->spot.address;

		if (at >= start && at < end && dtrace_is_own(carrier))
			dtrace_own_restore(carrier, &pen);
		cond_resched();
	}
	dtrace_pen_lift(&pen);
	mmap_read_unlock(memory->mm);
	return true;
}

/* What we have written for a place of a file where that is mapped. The caller is seen by RCU. */
struct dtrace_carrier *dtrace_own_at(struct vm_area_struct *vma, u64 address)
{
	struct dtrace_carrier *carrier = dtrace_trap_at(vma->vm_mm, address);

	return carrier && dtrace_is_own(carrier) && dtrace_own_is_there(carrier, vma) ? carrier : NULL;
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
	rcu_read_unlock();
	/* For a task that has been killed no page is brought in. The breakpoint is written when memories are swept. */
	if (code >= 0 && dtrace_poke(vma->vm_mm, address, code, DTRACE_BREAKPOINT) < 0)
		dtrace_memory_is_stale(vma->vm_mm);
}
