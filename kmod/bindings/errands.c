// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * What happens to breakpoints of our own.
 *
 * Whatever the exception cannot do, the breakpoint is given to uprobes for: the program is sent back to it, and on its way, its errand, has a
 * uprobe registered there, which finds the byte in place: no hit is lost by that, and none counts twice. So is a place where somebody else
 * has a uprobe or sets one. Of a user's breakpoint, which uprobes do not get otherwise, the program executes the instruction in a slot instead.
 *
 * A breakpoint where none of ours is wanted is looked at on the same way. One that is in a child, that has been moved, or that a debugger
 * has put back, is taken out, and the instruction executed anew. Where the memory has uprobes too only they know whether somebody wants it:
 * a guard (guards.c) makes them handle the place in any case. All others are none of ours: the program comes to it again, and that time
 * nobody here looks. It is never let on from here, where a signal may be delivered before uprobes could look.
 */

#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/task_work.h>

#include "helpers.h"
#include "own.h"
#include "pause.h"
#include "pen.h"
#include "slots.h"

/* A way that a program has to make before it comes to a breakpoint again, or goes on. */
struct dtrace_errand {
	struct dtrace_summons summons;
	enum dtrace_errand_kind kind;
	/* Of the breakpoint, or of what was mapped. */
	u64 address, end;
};

/* Registers a uprobe where we have a breakpoint. Somebody else may have one there, with the program's counter or without. */
static struct uprobe *dtrace_own_join(struct dtrace_carrier *carrier)
{
	struct inode *inode = file_inode(carrier->file);
	struct uprobe *joined;

	if (carrier->counter) {
		joined = uprobe_register(inode, carrier->offset, carrier->counter, &carrier->consumer);
		if (joined != ERR_PTR(-EINVAL))
			return joined;
	}
	return uprobe_register(inode, carrier->offset, 0, &carrier->consumer);
}

/* Has uprobes know a breakpoint of ours. They set none in text that may be written to. */
static bool dtrace_own_register(struct dtrace_carrier *carrier)
{
	struct dtrace_memory *memory = carrier->memory;

	WRITE_ONCE(memory->yields, false);
	WRITE_ONCE(memory->yielded, carrier);
	WRITE_ONCE(memory->yielder, current);
	carrier->uprobe = dtrace_own_join(carrier);
	WRITE_ONCE(memory->yielder, NULL);
	WRITE_ONCE(memory->yielded, NULL);
	if (IS_ERR(carrier->uprobe))
		return false;
	if (READ_ONCE(memory->yields))
		return true;
	uprobe_unregister_nosync(carrier->uprobe, &carrier->consumer);
	uprobe_unregister_sync();
	return false;
}

/* Gives a breakpoint to uprobes, which find it in place. The memory is locked. Of a user's they get none that they have not. */
static void dtrace_own_yield(struct dtrace_carrier *carrier)
{
	bool keeps = carrier->uncarried || (carrier->kept && READ_ONCE(carrier->state) == DTRACE_OWN);

	if (!keeps && dtrace_own_register(carrier))
		smp_store_release(&carrier->state, DTRACE_CARRIED);
	else
		dtrace_own_lose(carrier);
}

/*
 * Has somebody else do what the exception cannot: the program, as long as a user's breakpoint there is ours alone, or uprobes. The memory is
 * locked.
 */
static void dtrace_own_relieve(struct dtrace_carrier *carrier)
{
	struct dtrace_patience patience = dtrace_patience_own();

	/* Another thread may have got it a slot meanwhile. Where that is of no use it is lost at the next hit. */
	if (carrier->kept && READ_ONCE(carrier->state) == DTRACE_OWN && carrier->moves &&
	    (carrier->slot || !dtrace_slot_make(carrier->memory, carrier, &patience)))
		return;
	dtrace_own_yield(carrier);
}

/* The breakpoint that we have written for the place of a file that is at an address now. The memory and its mappings are locked. */
static struct dtrace_carrier *dtrace_own_moved(struct dtrace_memory *memory, struct vm_area_struct *vma, u64 address)
{
	u64 offset = dtrace_offset_of(vma, address);
	struct dtrace_carrier *carrier;

	list_for_each_entry(carrier, &memory->carriers, peer)
		if (carrier->offset == offset && dtrace_has_text(vma, carrier->file) &&
		    dtrace_is_own(carrier))
			return carrier;
	return NULL;
}

/* What is to become of a breakpoint where we have none. */
enum dtrace_fate {
	/* Nothing here: the program is to come to it again. */
	DTRACE_AGAIN,
	/* It is none of ours. */
	DTRACE_PASSES,
	/* We have it for another address. */
	DTRACE_MOVED,
	/* Uprobes are to know the place before anybody can tell. */
	DTRACE_GUARD,
};

/* A breakpoint that is looked at. */
struct dtrace_look {
	struct dtrace_memory *memory;
	u64 address;
	struct dtrace_known *known;
	struct dtrace_carrier *moved;
	/* What is mapped there; to be put. */
	struct file *file;
};

/* Looks at a breakpoint of the current program, and takes it out if it is ours alone. Memory and mappings are locked. */
static enum dtrace_fate dtrace_own_judge(struct dtrace_look *look)
{
	struct dtrace_memory *memory = look->memory;
	struct mm_struct *mm = memory->mm;
	struct vm_area_struct *vma = vma_lookup(mm, look->address);
	struct dtrace_known *known;
	enum dtrace_others others;
	int poked;

	look->known = known = vma ? dtrace_known_at(vma, look->address) : NULL;
	if (!known || !dtrace_known_continues(mm, known, look->address))
		return DTRACE_PASSES;
	if (dtrace_peek(mm, look->address) != DTRACE_BREAKPOINT)
		return DTRACE_AGAIN;
	look->moved = dtrace_own_moved(memory, vma, look->address);
	if (look->moved)
		return DTRACE_MOVED;
	if (!memory->inherited && !xa_load(&memory->suspects, (unsigned long)known))
		return DTRACE_PASSES;
	if (mm_flags_test(MMF_HAS_UPROBES, mm) && !known->barred) {
		others = dtrace_known_others(known);
		if (others == DTRACE_OTHERS_SOME)
			return DTRACE_PASSES;
		if (others == DTRACE_OTHERS_UNKNOWN) {
			look->file = get_file(vma->vm_file);
			return DTRACE_GUARD;
		}
	}
	/* Nobody can get a uprobe there while the mappings are locked. */
	poked = dtrace_poke(mm, look->address, DTRACE_BREAKPOINT, known->code[0]);
	if (poked > 0 && memory->inherited && !xa_load(&memory->suspects, (unsigned long)known))
		dtrace_count_inherited(vma, known);
	if (poked >= 0 && !mm_flags_test(MMF_HAS_UPROBES, mm) &&
	    !dtrace_is_debugged(mm))
		xa_erase(&memory->suspects, (unsigned long)known);
	return DTRACE_AGAIN;
}

/* Has uprobes know the place. Who has a uprobe with a counter there lets nobody in: the breakpoint is his until he takes it out. */
static enum dtrace_fate dtrace_own_guard(struct dtrace_look *look)
{
	const struct address_space *mapping = file_inode(look->file)->i_mapping;
	int error = dtrace_known_guard(look->known, look->file, look->memory->mm);

	fput(look->file);
	if (error == -EINVAL)
		return DTRACE_PASSES;
	/* They never have one there. */
	if (error == -ENOTSUPP || error == -ENOEXEC || (error == -EIO && !mapping->a_ops->read_folio))
		WRITE_ONCE(look->known->barred, true);
	return DTRACE_AGAIN;
}

/* Leaves none of ours in a child's memory, where none is wanted: what its debugger sets later is none. Whether that has been done. */
static bool dtrace_own_clean(struct dtrace_memory *memory)
{
	bool clean = false;

	if (!memory->inherited || atomic_read(&memory->places) || mm_flags_test(MMF_HAS_UPROBES, memory->mm) ||
	    dtrace_is_debugged(memory->mm))
		return false;
	dtrace_known_heal(memory->mm, NULL, &clean);
	if (clean)
		WRITE_ONCE(memory->inherited, false);
	return clean;
}

/* Looks at a breakpoint of the current program where we have none. Its memory is locked. */
static void dtrace_own_examine(struct dtrace_memory *memory, u64 address)
{
	struct dtrace_look look = { .memory = memory, .address = address };
	enum dtrace_fate fate;

	if (dtrace_own_clean(memory) || mmap_read_lock_killable(memory->mm))
		return;
	fate = dtrace_own_judge(&look);
	mmap_read_unlock(memory->mm);
	/* Uprobes ask for the place in the file, and not for the address. */
	if (fate == DTRACE_MOVED)
		dtrace_own_yield(look.moved);
	if (fate == DTRACE_GUARD)
		fate = dtrace_own_guard(&look);
	if (fate == DTRACE_PASSES)
		dtrace_memory_passes(memory, address);
}

/* Whether a breakpoint of ours is where it belongs. Its memory is locked. */
static bool dtrace_own_stands(struct dtrace_carrier *carrier)
{
	bool holds;

	if (mmap_read_lock_killable(carrier->spot.mm))
		return false;
	holds = dtrace_trap_holds(carrier);
	mmap_read_unlock(carrier->spot.mm);
	return holds;
}

/* Sees to the breakpoint at an address of the current program. Its memory is locked. */
static void dtrace_errand_at(struct dtrace_memory *memory, u64 address, enum dtrace_errand_kind kind)
{
	struct dtrace_carrier *carrier;
	bool is_carried, is_own;

	rcu_read_lock();
	carrier = dtrace_trap_at(memory->mm, address);
	is_carried = carrier && READ_ONCE(carrier->state) == DTRACE_CARRIED;
	/* Then it stays: whoever takes it out needs the lock. */
	is_own = carrier && dtrace_is_own(carrier);
	rcu_read_unlock();
	if (is_own && dtrace_own_stands(carrier)) {
		if (kind == DTRACE_ERRAND_YIELD)
			dtrace_own_relieve(carrier);
		else if (kind == DTRACE_ERRAND_DROP)
			dtrace_own_lose(carrier);
	} else if (kind == DTRACE_ERRAND_LOOK && !is_carried) {
		dtrace_own_examine(memory, address);
	}
}

/* The current memory. While some are unknown that breakpoints of ours may be in, any may be one of those. */
static struct dtrace_memory *dtrace_errand_memory(void)
{
	struct dtrace_memory *memory = dtrace_memory_get(current->mm);

	if (memory || !dtrace_memories_lost())
		return memory;
	memory = dtrace_memory_make(current->mm);
	if (memory)
		WRITE_ONCE(memory->inherited, true);
	return memory;
}

/* A step of who steps through the current program ends at an address, as the processor would have ended it. */
static void dtrace_own_stepped(u64 address)
{
	dtrace_trap_stepped();
	dtrace_watch_force(SIGTRAP, TRAP_TRACE, address);
}

/* The current program has met a debugger's breakpoint at an address, where ours is too: it gets the signal that the processor's exception is. */
static void dtrace_own_signalled(u64 address)
{
	dtrace_trap_leave(task_pt_regs(current), address);
	dtrace_trap_met();
	force_sig(SIGTRAP);
}

/* Writes anew what belongs into what was mapped. The memory is locked. */
static void dtrace_errand_renew(struct dtrace_memory *memory, const struct dtrace_errand *errand)
{
	struct dtrace_patience patience = dtrace_patience_own();

	if (!dtrace_own_renew(memory, errand->address, errand->end, &patience))
		WRITE_ONCE(memory->stale, true);
}

static void dtrace_errand_do(const struct dtrace_errand *errand)
{
	struct dtrace_memory *memory;

	if (errand->kind == DTRACE_ERRAND_STEP) {
		dtrace_own_stepped(errand->address);
		return;
	}
	if (errand->kind == DTRACE_ERRAND_SIGNAL) {
		dtrace_own_signalled(errand->address);
		return;
	}
	if (errand->kind == DTRACE_ERRAND_AFFIRM) {
		dtrace_pen_affirm(errand->address);
		return;
	}
	if (errand->kind == DTRACE_ERRAND_WAIT || errand->kind == DTRACE_ERRAND_RENEW) {
		if (mmap_read_lock_killable(current->mm))
			return;
		mmap_read_unlock(current->mm);
		if (errand->kind == DTRACE_ERRAND_WAIT)
			return;
	}
	memory = dtrace_errand_memory();
	if (!memory)
		return;
	if (!mutex_lock_killable(&memory->lock)) {
		if (errand->kind == DTRACE_ERRAND_RENEW)
			dtrace_errand_renew(memory, errand);
		else
			dtrace_errand_at(memory, errand->address, errand->kind);
		mutex_unlock(&memory->lock);
	}
	dtrace_memory_put(memory);
}

static void dtrace_errand_work(struct callback_head *work)
{
	struct dtrace_errand *errand = container_of(work, struct dtrace_errand, summons.work);

	dtrace_errand_do(errand);
	kfree(errand);
	dtrace_call_ended();
}

static void dtrace_renewal_work(struct callback_head *work)
{
	struct dtrace_errand *errand = container_of(work, struct dtrace_errand, summons.work);

	dtrace_summons_followed(&errand->summons);
	dtrace_errand_work(work);
}

/* When the module goes nothing is wanted any more. */
static void dtrace_renewal_not(struct dtrace_summons *summons)
{
	kfree(container_of(summons, struct dtrace_errand, summons));
}

static struct dtrace_errand *dtrace_errand_make(struct dtrace_errand about)
{
	struct dtrace_errand *errand = kmalloc(sizeof(*errand), GFP_ATOMIC | __GFP_NOWARN);

	if (errand)
		*errand = about;
	return errand;
}

static bool dtrace_errand_queue(struct dtrace_errand *errand)
{
	int error;

	if (!errand)
		return false;
	/* Who comes from a breakpoint is on its way back. */
	if (errand->kind == DTRACE_ERRAND_RENEW) {
		errand->summons.instead = dtrace_renewal_not;
		error = dtrace_summon(&errand->summons, dtrace_renewal_work, current);
	} else {
		error = dtrace_call_queue(&errand->summons.work, dtrace_errand_work, current);
	}
	/* Who cannot be called any more ends. */
	if (error)
		kfree(errand);
	return true;
}

/*
 * Has the current program, which a breakpoint has stopped, make its way before it comes to it again. Does not sleep. Where there is no
 * memory for that it comes again at once.
 */
void dtrace_own_errand(u64 address, enum dtrace_errand_kind kind)
{
	dtrace_errand_queue(dtrace_errand_make((struct dtrace_errand){ .address = address, .kind = kind }));
}

/*
 * Allocates the errand by which a debugger of the current program sees a step or a breakpoint. It is allocated before the breakpoint is answered, which
 * cannot be undone, and sent or cancelled afterwards. Does not sleep. NULL: there is no memory.
 */
struct dtrace_errand *dtrace_errand_ahead(enum dtrace_errand_kind kind)
{
	return dtrace_errand_make((struct dtrace_errand){ .kind = kind });
}

void dtrace_errand_send(struct dtrace_errand *errand, u64 address)
{
	errand->address = address;
	dtrace_errand_queue(errand);
}

void dtrace_errand_cancel(struct dtrace_errand *errand)
{
	kfree(errand);
}

/* A file was mapped by the current program. Does not sleep. */
void dtrace_watch_mapped(struct vm_area_struct *vma)
{
	struct dtrace_errand renewal = {
		.kind = DTRACE_ERRAND_RENEW,
		.address = vma->vm_start,
		.end = vma->vm_end,
	};

	/* A kernel thread maps nothing that was there before: an area. */
	if (vma->vm_file && vma->vm_flags & VM_MAYEXEC && vma->vm_mm == current->mm && !(current->flags & PF_KTHREAD) &&
	    dtrace_memory_has_places(vma->vm_mm, vma->vm_start, vma->vm_end) && !dtrace_errand_queue(dtrace_errand_make(renewal)))
		dtrace_memory_is_stale(vma->vm_mm);
}

/*
 * Uprobes are about to put a breakpoint into a memory, for whomever: whether they would find ours there, and not count theirs. Does not
 * sleep; the lock of the memory is held for writing.
 */
bool dtrace_watch_set(struct vm_area_struct *vma, u64 address)
{
	struct dtrace_carrier *carrier;

	guard(rcu)();
	/* We have them set it, and they count nothing. */
	if (dtrace_memory_yields(vma, address))
		return false;
	carrier = dtrace_own_at(vma, address);
	return carrier && cmpxchg(&carrier->state, DTRACE_OWN, DTRACE_SHARED) == DTRACE_OWN;
}

/* What becomes of the breakpoint that uprobes are about to take out. Does not sleep; the lock of the memory is held for writing. */
enum dtrace_keep dtrace_watch_keeps(const struct arch_uprobe *uprobe, struct vm_area_struct *vma, u64 address)
{
	struct dtrace_carrier *carrier;

	/* What they have never set they have not read either, and would write nothing but zeros. */
	if (dtrace_guards_keep() || !memchr_inv(uprobe->insn, 0, sizeof(uprobe->insn)))
		return DTRACE_STAYS;
	guard(rcu)();
	/* Uprobes take out the breakpoint that they carried for us; the debugger's is written again. */
	carrier = dtrace_own_covered_at(vma, address, DTRACE_CARRIED);
	if (carrier && dtrace_is_debugged(vma->vm_mm) && cmpxchg(&carrier->state, DTRACE_CARRIED, DTRACE_GONE) == DTRACE_CARRIED)
		return DTRACE_COMES_BACK;
	carrier = dtrace_own_at(vma, address);
	if (!carrier || READ_ONCE(carrier->state) == DTRACE_LENT)
		return DTRACE_GOES;
	/* Where none of their consumers wants one any more. */
	return cmpxchg(&carrier->state, DTRACE_SHARED, DTRACE_LENT) == DTRACE_SHARED ? DTRACE_COMES_BACK : DTRACE_STAYS;
}
