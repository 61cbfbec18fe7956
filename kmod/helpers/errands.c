// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Errands: what happens to our own breakpoints after the exception (INV-43, INV-44).
 *
 * If the exception cannot answer a breakpoint, the breakpoint is given to uprobes. The program is
 * sent back to it; on its way to user mode, task work (its errand) registers a uprobe there, which
 * finds the byte in place. No hit is dropped by that, and none counts twice. A place where another
 * tracer has a uprobe or sets one is given to uprobes too. A kept breakpoint (one that members
 * alone have requested) is not given to uprobes: the program executes its instruction in a slot
 * instead.
 *
 * An errand also looks at a breakpoint where none of ours is wanted. If it is in a child, was
 * moved, or was put back by a debugger, it is taken out, and the instruction is executed anew. If
 * the memory has uprobes too, only they know whether anybody wants it; a guard (guards.c) then
 * makes them handle the place in any case. All other breakpoints are not ours: the program comes to
 * such a breakpoint again, and that time the exception does not look at it. The errand itself never
 * lets the program pass, because a signal could be delivered before uprobes have looked.
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

#include "own.h"
#include "pause.h"
#include "pen.h"
#include "slots.h"

/* Task work that a program does before it comes to a breakpoint again, or goes on. */
struct dtrace_errand {
	struct dtrace_summons summons;
	enum dtrace_errand_kind kind;
	/* Address of the breakpoint, or start and end of what was mapped. */
	u64 address, end;
};

/*
 * Registers a uprobe at our breakpoint. Another tracer may have one there, with the program's
 * counter or without it; uprobes refuse a uprobe that differs in that (-EINVAL).
 */
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

/*
 * Registers our breakpoint with uprobes; whether they accepted it in this memory. They set none in
 * text that is mapped writable.
 */
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

/*
 * Gives a breakpoint to uprobes, which find the byte in place; if that fails, or uprobes must not
 * get it, the breakpoint is lost. The memory's lock is held.
 */
static void dtrace_own_yield(struct dtrace_carrier *carrier)
{
	bool keeps = carrier->uncarried || (carrier->kept && READ_ONCE(carrier->state) == DTRACE_OWN);

	if (!keeps && dtrace_own_register(carrier))
		smp_store_release(&carrier->state, DTRACE_CARRIED);
	else
		dtrace_own_lose(carrier);
}

/*
 * Has another one do what the exception cannot: the program itself, in a slot, while a kept
 * breakpoint is ours alone; otherwise uprobes. The memory's lock is held.
 */
static void dtrace_own_relieve(struct dtrace_carrier *carrier)
{
	struct dtrace_patience patience = dtrace_patience_own();

	/*
	 * Another thread may have made the slot meanwhile. If the slot does not help either, the
	 * breakpoint is lost at the next hit.
	 */
	if (carrier->kept && READ_ONCE(carrier->state) == DTRACE_OWN && carrier->moves &&
	    (carrier->slot || !dtrace_slot_make(carrier->memory, carrier, &patience)))
		return;
	dtrace_own_yield(carrier);
}

/*
 * Finds the carrier whose file and offset are mapped at this address now and whose breakpoint we
 * have written. The memory's lock and its mmap lock are held.
 */
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

/* What to do about a breakpoint where none of ours is known. */
enum dtrace_fate {
	/* Nothing: the program comes to it again. */
	DTRACE_AGAIN,
	/* It is not ours. */
	DTRACE_PASSES,
	/* It is ours, and belongs to another address. */
	DTRACE_MOVED,
	/* Uprobes must know the place before anybody can tell. */
	DTRACE_GUARD,
};

/* A breakpoint that an errand looks at. */
struct dtrace_look {
	struct dtrace_memory *memory;
	u64 address;
	struct dtrace_known *known;
	struct dtrace_carrier *moved;
	/* File that is mapped there, if fate is DTRACE_GUARD. dtrace_own_guard() puts it. */
	struct file *file;
};

/*
 * Looks at a breakpoint of the current program, and takes it out if it is ours alone. The memory's
 * lock is held, and its mmap lock for reading.
 */
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
	/*
	 * Uprobes set breakpoints with the mmap lock held for writing, so none can appear here now.
	 */
	poked = dtrace_poke(mm, look->address, DTRACE_BREAKPOINT, known->code[0]);
	if (poked > 0 && memory->inherited && !xa_load(&memory->suspects, (unsigned long)known))
		dtrace_count_inherited(vma, known);
	if (poked >= 0 && !mm_flags_test(MMF_HAS_UPROBES, mm) &&
	    !dtrace_is_debugged(mm))
		xa_erase(&memory->suspects, (unsigned long)known);
	return DTRACE_AGAIN;
}

/*
 * Registers a guard at the place. If another tracer has a uprobe with a counter there, uprobes
 * refuse the guard; the breakpoint counts as that tracer's until it takes it out.
 */
static enum dtrace_fate dtrace_own_guard(struct dtrace_look *look)
{
	const struct address_space *mapping = file_inode(look->file)->i_mapping;
	int error = dtrace_known_guard(look->known, look->file, look->memory->mm, true);

	fput(look->file);
	if (error == -EINVAL)
		return DTRACE_PASSES;
	/* Uprobes can never have one there. */
	if (error == -ENOTSUPP || error == -ENOEXEC || (error == -EIO && !mapping->a_ops->read_folio))
		WRITE_ONCE(look->known->barred, true);
	return DTRACE_AGAIN;
}

/*
 * Takes all breakpoints of ours out of a child's memory in which none is wanted, so that one which
 * its debugger sets later is not taken for ours. Returns whether that has been done.
 */
static bool dtrace_own_clean(struct dtrace_memory *memory)
{
	bool clean = false;

	if (!memory->inherited || atomic_read(&memory->places) || mm_flags_test(MMF_HAS_UPROBES, memory->mm) ||
	    dtrace_is_debugged(memory->mm))
		return false;
	dtrace_known_heal(memory->mm, NULL, true, &clean);
	if (clean)
		WRITE_ONCE(memory->inherited, false);
	return clean;
}

/*
 * Looks at a breakpoint of the current program where none of ours is known. The memory's lock is
 * held.
 */
static void dtrace_own_examine(struct dtrace_memory *memory, u64 address)
{
	struct dtrace_look look = { .memory = memory, .address = address };
	enum dtrace_fate fate;

	if (dtrace_own_clean(memory) || mmap_read_lock_killable(memory->mm))
		return;
	fate = dtrace_own_judge(&look);
	mmap_read_unlock(memory->mm);
	/* Uprobes know a place by file and offset, not by address. */
	if (fate == DTRACE_MOVED)
		dtrace_own_yield(look.moved);
	if (fate == DTRACE_GUARD)
		fate = dtrace_own_guard(&look);
	if (fate == DTRACE_PASSES)
		dtrace_memory_passes(memory, address);
}

/* Whether a breakpoint of ours is where it belongs. The memory's lock is held. */
static bool dtrace_own_stands(struct dtrace_carrier *carrier)
{
	bool holds;

	if (mmap_read_lock_killable(carrier->spot.mm))
		return false;
	holds = dtrace_trap_holds(carrier);
	mmap_read_unlock(carrier->spot.mm);
	return holds;
}

/* Sees to the breakpoint at an address of the current program. The memory's lock is held. */
static void dtrace_errand_at(struct dtrace_memory *memory, u64 address, enum dtrace_errand_kind kind)
{
	struct dtrace_carrier *carrier;
	bool is_carried, is_own;

	rcu_read_lock();
	carrier = dtrace_trap_at(memory->mm, address);
	is_carried = carrier && READ_ONCE(carrier->state) == DTRACE_CARRIED;
	/*
	 * A carrier that we have written stays after rcu_read_unlock(), because it is taken out
	 * under the memory's lock.
	 */
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

/*
 * Returns the current memory, with a reference. While a copy of a memory is unknown
 * (dtrace_memories_lost()), any memory may be one, and is made known here.
 */
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

/*
 * Reports the end of a step to the debugger that steps the current program, as the processor would.
 */
static void dtrace_own_stepped(u64 address)
{
	dtrace_trap_stepped();
	dtrace_watch_force(SIGTRAP, TRAP_TRACE, address);
}

/*
 * The current program has met a debugger's breakpoint where ours is too: sends it the signal of the
 * processor's exception.
 */
static void dtrace_own_signalled(u64 address)
{
	dtrace_trap_leave(task_pt_regs(current), address);
	dtrace_trap_met();
	force_sig(SIGTRAP);
}

/* Writes anew the breakpoints that belong into what was mapped. The memory's lock is held. */
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
	/* Wait until nobody changes the mappings. */
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

/* Called instead of the errand when the module goes: nothing is to be done. */
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
	/*
	 * An errand that starts at a breakpoint runs soon, because the program is on its way to
	 * user mode. A mapping is made in a system call, which may take any time: that errand can
	 * be taken back.
	 */
	if (errand->kind == DTRACE_ERRAND_RENEW) {
		errand->summons.instead = dtrace_renewal_not;
		error = dtrace_summon(&errand->summons, dtrace_renewal_work, current);
	} else {
		error = dtrace_call_queue(&errand->summons.work, dtrace_errand_work, current);
	}
	/* The task is exiting and has no use for the errand. */
	if (error)
		kfree(errand);
	return true;
}

/*
 * Sends the current program, which a breakpoint has stopped, on an errand before it comes to the
 * breakpoint again. Does not sleep. Without memory for the errand the program comes again at once.
 */
void dtrace_own_errand(u64 address, enum dtrace_errand_kind kind)
{
	dtrace_errand_queue(dtrace_errand_make((struct dtrace_errand){ .address = address, .kind = kind }));
}

/*
 * Allocates the errand that reports a step or a breakpoint to the current program's debugger. It is
 * allocated before the breakpoint is answered, which cannot be undone, and sent or cancelled
 * afterwards. Does not sleep. NULL: there is no memory.
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

/* Called where uprobe_mmap() is entered: the current program has mapped a file. Does not sleep. */
void dtrace_watch_mapped(struct vm_area_struct *vma)
{
	struct dtrace_errand renewal = {
		.kind = DTRACE_ERRAND_RENEW,
		.address = vma->vm_start,
		.end = vma->vm_end,
	};

	/* A thread of the kernel maps areas only, which were not there before. */
	if (vma->vm_file && vma->vm_flags & VM_MAYEXEC && vma->vm_mm == current->mm && !(current->flags & PF_KTHREAD) &&
	    dtrace_memory_has_places(vma->vm_mm, vma->vm_start, vma->vm_end) && !dtrace_errand_queue(dtrace_errand_make(renewal)))
		dtrace_memory_is_stale(vma->vm_mm);
}

/*
 * Called where set_swbp() is entered: whether uprobes would find our breakpoint at the address and
 * so fail to count theirs. Does not sleep; the mmap lock is held for writing.
 */
bool dtrace_watch_set(struct vm_area_struct *vma, u64 address)
{
	struct dtrace_carrier *carrier;

	guard(rcu)();
	/* The uprobe is the one that we are registering, which counts nothing. */
	if (dtrace_memory_yields(vma, address))
		return false;
	carrier = dtrace_own_at(vma, address);
	return carrier && cmpxchg(&carrier->state, DTRACE_OWN, DTRACE_SHARED) == DTRACE_OWN;
}

/*
 * Called where set_orig_insn() is entered: what becomes of the breakpoint that uprobes are about to
 * take out. Does not sleep; the mmap lock is held for writing.
 */
enum dtrace_keep dtrace_watch_keeps(const struct arch_uprobe *uprobe, struct vm_area_struct *vma, u64 address)
{
	struct dtrace_carrier *carrier;

	/*
	 * If uprobes have never set the breakpoint, they have not read the instruction either and
	 * would write zeros.
	 */
	if (dtrace_guards_keep() || !memchr_inv(uprobe->insn, 0, sizeof(uprobe->insn)))
		return DTRACE_STAYS;
	guard(rcu)();
	/*
	 * Uprobes take out a breakpoint that they carried for us; the debugger's at the same
	 * address is written again.
	 */
	carrier = dtrace_own_covered_at(vma, address, DTRACE_CARRIED);
	if (carrier && (dtrace_coverer_lives(carrier) || dtrace_is_debugged(vma->vm_mm)) &&
	    cmpxchg(&carrier->state, DTRACE_CARRIED, DTRACE_GONE) == DTRACE_CARRIED)
		return DTRACE_COMES_BACK;
	carrier = dtrace_own_at(vma, address);
	if (!carrier || READ_ONCE(carrier->state) == DTRACE_LENT)
		return DTRACE_GOES;
	/* No consumer of uprobes wants the breakpoint any more; ours comes back. */
	return cmpxchg(&carrier->state, DTRACE_SHARED, DTRACE_LENT) == DTRACE_SHARED ? DTRACE_COMES_BACK : DTRACE_STAYS;
}
