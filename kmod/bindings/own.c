// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Breakpoints of our own.
 *
 * Where the exception can do the instruction that a breakpoint covers nothing is needed of uprobes but the breakpoint's byte. It is written
 * into the one memory that is meant, as a debugger writes its own; no other process that has mapped the file is touched or waits.
 * What is written and what is put back goes page by page, under the lock of that memory held for reading.
 *
 * Whatever the exception cannot do, the breakpoint is then given to uprobes for: the program is sent back to it, and on its way has a
 * uprobe registered there, which finds the byte in place. Nobody can tell when that happened. So is a place where somebody else has a
 * uprobe or sets one.
 *
 * A memory that we have written to is known until it is gone, and so is each that is copied from it, with our breakpoints in it. One
 * that is hit there is taken out and the instruction executed anew (known.c). Memories that are gone are looked for once a second.
 */

#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/moduleparam.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/task_work.h>
#include <asm/trapnr.h>

#include "own.h"
#include "pause.h"

static bool own_breakpoints;
module_param(own_breakpoints, bool, 0644);
MODULE_PARM_DESC(own_breakpoints, "Write breakpoints into the one process that is traced (Y; N: leave all to uprobes, the default)");

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

static int dtrace_pen_replace(struct dtrace_pen *pen, u64 address, u8 old, u8 new)
{
	int error = dtrace_pen_move(pen, address, false);

	if (error || !dtrace_pen_sees(pen, address, &old, 1))
		return error;
	error = dtrace_pen_move(pen, address, true);
	if (!error && dtrace_pen_sees(pen, address, &old, 1))
		dtrace_pen_write(pen, address, new);
	return error;
}

/* Makes one byte of a program's text another one, if it is what is said. The lock of the memory is held. */
int dtrace_poke(struct mm_struct *mm, u64 address, u8 old, u8 new)
{
	struct dtrace_pen pen = { .mm = mm };
	int error = dtrace_pen_replace(&pen, address, old, new);

	dtrace_pen_lift(&pen);
	return error;
}

/* Whether an address is where the carrier's file is; the lock of the memory is held. */
static bool dtrace_own_is_there(const struct dtrace_carrier *carrier, struct vm_area_struct *vma)
{
	const vm_flags_t wanted = VM_MAYEXEC, unwanted = VM_HUGETLB | VM_MAYSHARE;

	return vma && vma->vm_file && (vma->vm_flags & (wanted | unwanted)) == wanted &&
	       file_inode(vma->vm_file) == file_inode(carrier->file) &&
	       dtrace_offset_of(vma, carrier->spot.address) == carrier->offset;
}

/* Writes a breakpoint, unless it is one for uprobes. EBUSY: the program has another instruction there than its file. */
static int dtrace_own_plant(struct dtrace_memory *memory, struct dtrace_carrier *carrier, struct dtrace_pen *pen)
{
	struct vm_area_struct *vma = vma_lookup(memory->mm, carrier->spot.address);
	const u8 int3 = DTRACE_INT3;
	bool inherits = false;
	u64 at = carrier->spot.address;

	if (!dtrace_own_is_there(carrier, vma) || vma->vm_flags & VM_WRITE || dtrace_pen_move(pen, at, true))
		return 0;
	if (dtrace_pen_sees(pen, at, &int3, 1)) {
		struct dtrace_known *known = dtrace_known_at(vma, at);

		inherits = known && memory->inherited && !known->uprobed;
		if (!inherits)
			return 0;
	} else if (!dtrace_pen_sees(pen, at, carrier->code, carrier->length)) {
		return -EBUSY;
	}
	carrier->known = dtrace_known_make(vma, at, carrier->code[0]);
	if (!carrier->known)
		return 0;
	refcount_inc(&memory->count);
	atomic_inc(&memory->places);
	carrier->memory = memory;
	smp_store_release(&carrier->state, DTRACE_OWN);
	if (!inherits)
		dtrace_pen_write(pen, at, int3);
	return 0;
}

/* Whether a breakpoint may be our own. */
static bool dtrace_own_can(const struct dtrace_carrier *carrier)
{
	return !carrier->error && carrier->length && !carrier->counter;
}

static void dtrace_own_plant_all(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count)
{
	struct dtrace_pen pen = { .mm = memory->mm };
	size_t n;

	for (n = 0; n < count; n++) {
		struct dtrace_carrier *carrier = all[n];

		if (dtrace_own_can(carrier))
			carrier->error = dtrace_own_plant(memory, carrier, &pen);
		cond_resched();
	}
	dtrace_pen_lift(&pen);
}

/* Writes those of breakpoints of one memory, in the order of their addresses, that can be ours; where that fails error says why. */
void dtrace_own_set(struct dtrace_carrier **all, size_t count)
{
	struct mm_struct *mm = all[0]->spot.mm;
	struct dtrace_memory *memory;
	size_t n;

	for (n = 0; n < count && !dtrace_own_can(all[n]); n++)
		;
	if (n == count || !READ_ONCE(own_breakpoints))
		return;
	memory = dtrace_memory_make(mm);
	if (!memory)
		return;
	mutex_lock(&memory->lock);
	if (mmget_not_zero(mm)) {
		if (!mmap_read_lock_killable(mm)) {
			dtrace_own_plant_all(memory, all, count);
			mmap_read_unlock(mm);
		}
		mmput(mm);
	}
	mutex_unlock(&memory->lock);
	dtrace_memory_put(memory);
}

/* Whether some thread of a memory is traced by ptrace(). */
static bool dtrace_is_debugged(struct mm_struct *mm)
{
#ifdef CONFIG_MEMCG
	struct task_struct *owner, *thread;

	guard(rcu)();
	owner = rcu_dereference(mm->owner);
	if (!owner)
		return false;
	for_each_thread(owner, thread)
		if (READ_ONCE(thread->ptrace))
			return true;
	return false;
#else
	return true;
#endif
}

/* What uprobes want too stays for them. Where the breakpoint may be somewhere else, or come back, it is remembered. */
static void dtrace_own_lift(struct dtrace_carrier *carrier, struct dtrace_pen *pen, bool debugged)
{
	struct dtrace_memory *memory = carrier->memory;
	u64 at = carrier->spot.address;
	bool moved = !dtrace_own_is_there(carrier, vma_lookup(memory->mm, at));

	/* From here on nobody gives it to uprobes. */
	if (xchg(&carrier->state, DTRACE_GONE) == DTRACE_SHARED)
		return;
	if (moved || dtrace_pen_replace(pen, at, DTRACE_INT3, carrier->code[0]) || debugged)
		xa_store(&memory->suspects, (unsigned long)carrier->known, xa_mk_value(1), GFP_KERNEL_ACCOUNT);
}

/* Takes breakpoints of one memory away as far as they are ours. */
static void dtrace_own_lift_all(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count)
{
	struct mm_struct *mm = memory->mm;
	struct dtrace_pen pen = { .mm = mm };
	bool debugged = dtrace_is_debugged(mm);
	size_t n;

	guard(mutex)(&memory->lock);
	if (!mmget_not_zero(mm))
		return;
	mmap_read_lock(mm);
	for (n = 0; n < count; n++) {
		if (dtrace_is_own(all[n]))
			dtrace_own_lift(all[n], &pen, debugged);
		cond_resched();
	}
	dtrace_pen_lift(&pen);
	mmap_read_unlock(mm);
	mmput(mm);
}

/* Takes breakpoints away, as above. They are answered until dtrace_trap_remove(). */
void dtrace_own_clear(struct dtrace_carrier **all, size_t count)
{
	size_t first, end;

	for (first = 0; first < count; first = end) {
		struct dtrace_memory *memory = all[first]->memory;

		for (end = first + 1; end < count && all[end]->memory == memory; end++)
			;
		if (memory)
			dtrace_own_lift_all(memory, all + first, end - first);
	}
}

/* It is answered no more. */
void dtrace_own_forget(struct dtrace_carrier *carrier)
{
	struct dtrace_memory *memory = carrier->memory;

	if (!memory)
		return;
	carrier->memory = NULL;
	atomic_dec(&memory->places);
	dtrace_memory_put(memory);
}

/* A way that a program has to make before it comes to a breakpoint again. */
struct dtrace_errand {
	struct callback_head work;
	u64 address;
	enum dtrace_errand_kind kind;
};

/* Gives a breakpoint to uprobes, which find it in place. The memory is locked. */
static void dtrace_own_yield(struct dtrace_carrier *carrier)
{
	struct mm_struct *mm = carrier->spot.mm;
	struct vm_area_struct *vma;
	int error;

	carrier->uprobe = uprobe_register(file_inode(carrier->file), carrier->offset, 0, &carrier->consumer);
	if (!IS_ERR(carrier->uprobe)) {
		smp_store_release(&carrier->state, DTRACE_CARRIED);
		return;
	}
	/* Then it cannot stay. */
	mmap_read_lock(mm);
	vma = vma_lookup(mm, carrier->spot.address);
	error = dtrace_own_is_there(carrier, vma) ?
		dtrace_poke(mm, carrier->spot.address, DTRACE_INT3, carrier->code[0]) : 0;
	mmap_read_unlock(mm);
	if (error)
		return;
	smp_store_release(&carrier->state, DTRACE_GONE);
	carrier->lose(carrier);
}

/* How a program goes on that has met a breakpoint. */
enum dtrace_verdict {
	/* It comes to the place again. */
	DTRACE_AGAIN,
	/* Uprobes answer. */
	DTRACE_PASS_ON,
	/* It gets a signal: nobody here has wanted that. */
	DTRACE_SIGNAL,
};

/* Leaves a breakpoint to uprobes, which somebody may have it from. If they cannot have it nobody but we has anything there. */
static enum dtrace_verdict dtrace_own_pass_on(struct dtrace_known *known, struct file *file)
{
	if (!dtrace_known_guard(known, file))
		return DTRACE_PASS_ON;
	WRITE_ONCE(known->uprobed, false);
	return DTRACE_AGAIN;
}

/* A place of a file, and the breakpoint that is found for it. */
struct dtrace_search {
	const struct inode *inode;
	u64 offset;
	struct dtrace_carrier *found;
};

static void dtrace_own_compare(struct dtrace_carrier *carrier, void *data)
{
	struct dtrace_search *search = data;

	if (carrier->offset == search->offset && file_inode(carrier->file) == search->inode)
		search->found = carrier;
}

/* The breakpoint that we have written for the place of a file that is at an address now. The memory and its mappings are locked. */
static struct dtrace_carrier *dtrace_own_moved(struct dtrace_memory *memory, struct vm_area_struct *vma, u64 address)
{
	struct dtrace_search search = {
		.inode = file_inode(vma->vm_file),
		.offset = dtrace_offset_of(vma, address),
	};

	dtrace_traps_each(memory, dtrace_own_compare, &search);
	return search.found;
}

/* Looks at a breakpoint of the current program where we have none. Its memory is locked. */
static enum dtrace_verdict dtrace_own_examine(struct dtrace_memory *memory, u64 address)
{
	enum dtrace_verdict verdict = DTRACE_AGAIN;
	struct dtrace_pen pen = { .mm = memory->mm };
	struct dtrace_carrier *moved = NULL;
	const u8 int3 = DTRACE_INT3;
	struct dtrace_known *known;
	struct vm_area_struct *vma;
	struct file *file = NULL;

	if (mmap_read_lock_killable(memory->mm))
		return DTRACE_AGAIN;
	vma = vma_lookup(memory->mm, address);
	known = vma ? dtrace_known_at(vma, address) : NULL;
	if (!known || dtrace_pen_move(&pen, address, false) || !dtrace_pen_sees(&pen, address, &int3, 1))
		;
	else if ((moved = dtrace_own_moved(memory, vma, address)))
		;
	else if (READ_ONCE(known->uprobed) && mm_flags_test(MMF_HAS_UPROBES, memory->mm))
		file = get_file(vma->vm_file);
	else if (memory->inherited || xa_erase(&memory->suspects, (unsigned long)known))
		dtrace_pen_replace(&pen, address, int3, known->byte);
	else
		verdict = DTRACE_SIGNAL;
	dtrace_pen_lift(&pen);
	mmap_read_unlock(memory->mm);
	/* Uprobes ask for the place in the file, and not for the address. */
	if (moved)
		dtrace_own_yield(moved);
	if (file) {
		verdict = dtrace_own_pass_on(known, file);
		fput(file);
	}
	return verdict;
}

/* Whether a breakpoint is ours and where it belongs. Its memory is locked. */
static bool dtrace_own_stands(struct dtrace_carrier *carrier)
{
	bool holds;

	if (!dtrace_is_own(carrier) || mmap_read_lock_killable(carrier->spot.mm))
		return false;
	holds = dtrace_trap_holds(carrier);
	mmap_read_unlock(carrier->spot.mm);
	return holds;
}

static void dtrace_own_renew(struct dtrace_carrier *carrier, void *data)
{
	struct vm_area_struct *vma = vma_lookup(carrier->spot.mm, carrier->spot.address);
	struct dtrace_pen *pen = data;

	if (dtrace_own_is_there(carrier, vma) && !(vma->vm_flags & VM_WRITE))
		dtrace_pen_replace(pen, carrier->spot.address, carrier->code[0], DTRACE_INT3);
}

/* Writes all breakpoints of a memory again that are not there: a file has been mapped. The memory is locked. */
static void dtrace_own_renew_all(struct dtrace_memory *memory)
{
	struct dtrace_pen pen = { .mm = memory->mm };

	if (mmap_read_lock_killable(memory->mm))
		return;
	dtrace_traps_each(memory, dtrace_own_renew, &pen);
	dtrace_pen_lift(&pen);
	mmap_read_unlock(memory->mm);
}

static enum dtrace_verdict dtrace_errand_at(struct dtrace_memory *memory, u64 address, enum dtrace_errand_kind kind)
{
	/* It stays: whoever removes it needs the lock. */
	struct dtrace_carrier *carrier = dtrace_trap_at(memory->mm, address);

	if (kind == DTRACE_ERRAND_RENEW) {
		dtrace_own_renew_all(memory);
		return DTRACE_AGAIN;
	}
	if (carrier && dtrace_own_stands(carrier)) {
		if (kind == DTRACE_ERRAND_YIELD)
			dtrace_own_yield(carrier);
		return DTRACE_AGAIN;
	}
	if (kind == DTRACE_ERRAND_YIELD || (carrier && READ_ONCE(carrier->state) == DTRACE_CARRIED))
		return DTRACE_AGAIN;
	return dtrace_own_examine(memory, address);
}

static enum dtrace_verdict dtrace_errand_do(u64 address, enum dtrace_errand_kind kind)
{
	enum dtrace_verdict verdict = DTRACE_AGAIN;
	struct mm_struct *mm = current->mm;
	struct dtrace_memory *memory;

	if (kind == DTRACE_ERRAND_WAIT) {
		if (!mmap_read_lock_killable(mm))
			mmap_read_unlock(mm);
		return DTRACE_AGAIN;
	}
	memory = dtrace_memory_get(mm);
	if (!memory && dtrace_memories_lost()) {
		memory = dtrace_memory_make(mm);
		if (memory)
			memory->inherited = true;
	}
	if (!memory)
		return DTRACE_AGAIN;
	if (!mutex_lock_killable(&memory->lock)) {
		verdict = dtrace_errand_at(memory, address, kind);
		mutex_unlock(&memory->lock);
	}
	dtrace_memory_put(memory);
	return verdict;
}

static void dtrace_errand_work(struct callback_head *work)
{
	struct dtrace_errand *errand = container_of(work, struct dtrace_errand, work);
	struct pt_regs *regs = task_pt_regs(current);
	u64 address = errand->address;

	switch (dtrace_errand_do(address, errand->kind)) {
	case DTRACE_AGAIN:
		break;
	case DTRACE_PASS_ON:
		/* As behind the exception. They look before the program goes on. */
		regs->ip = address + 1;
		set_thread_flag(TIF_UPROBE);
		break;
	case DTRACE_SIGNAL:
		regs->ip = address + 1;
		current->thread.trap_nr = X86_TRAP_BP;
		current->thread.error_code = 0;
		force_sig(SIGTRAP);
		break;
	}
	kfree(errand);
	dtrace_call_ended();
}

/*
 * Has the current program, which a breakpoint has stopped, make its way before it comes to it again. Does not sleep. Where there is no
 * memory for that it comes again at once.
 */
void dtrace_own_errand(u64 address, enum dtrace_errand_kind kind)
{
	struct dtrace_errand *errand = kmalloc(sizeof(*errand), GFP_ATOMIC | __GFP_NOWARN);

	if (!errand)
		return;
	errand->address = address;
	errand->kind = kind;
	if (dtrace_call_queue(&errand->work, dtrace_errand_work, current))
		kfree(errand);
}

/* A file was mapped by the current program. Does not sleep. */
void dtrace_watch_mapped(struct vm_area_struct *vma)
{
	if (vma->vm_file && vma->vm_flags & VM_MAYEXEC && vma->vm_mm == current->mm && dtrace_memory_has_places(vma->vm_mm))
		dtrace_own_errand(0, DTRACE_ERRAND_RENEW);
}

/* Uprobes put a breakpoint into a memory, for whomever. Does not sleep; the lock of the memory is held for writing. */
void dtrace_watch_set(struct vm_area_struct *vma, u64 address)
{
	struct dtrace_carrier *carrier;
	struct dtrace_known *known;

	guard(rcu)();
	if (!dtrace_memory_is_known(vma->vm_mm))
		return;
	known = dtrace_known_at(vma, address);
	if (known)
		WRITE_ONCE(known->uprobed, true);
	carrier = dtrace_trap_at(vma->vm_mm, address);
	if (carrier)
		cmpxchg(&carrier->state, DTRACE_OWN, DTRACE_SHARED);
}

/* Whether the breakpoint that uprobes are about to take out is ours alone. Does not sleep; the lock of the memory is held for writing. */
bool dtrace_watch_keeps(struct mm_struct *mm, u64 address)
{
	struct dtrace_carrier *carrier;

	guard(rcu)();
	carrier = dtrace_trap_at(mm, address);
	if (!carrier || !dtrace_is_own(carrier))
		return false;
	/* None of their consumers wants one any more. */
	cmpxchg(&carrier->state, DTRACE_SHARED, DTRACE_OWN);
	return true;
}
