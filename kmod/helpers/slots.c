// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Slots (INV-42).
 *
 * If the exception cannot emulate the instruction under a breakpoint of ours, the program executes
 * it somewhere else: in a slot, behind which a jump leads to the next instruction. That takes no
 * second exception, and no work of the kernel afterwards. A slot belongs to one instruction at one
 * address as long as its area exists, because a thread may stand in it for any time.
 *
 * Nobody is to see a thread there. A thread shows its registers when it handles signals: it stops
 * for a debugger there, is dumped, and has its handlers called. Before that, the slot's address is
 * replaced by the program's: in front of the instruction, or behind it. If it is in front, the
 * thread comes to the breakpoint again. If the thread was interrupted, that does not fire again; if
 * the instruction has faulted, it does, as any instruction that a program tries again.
 */

#include <linux/hash.h>
#include <linux/jhash.h>
#include <linux/rcupdate.h>
#include <linux/rculist.h>
#include <linux/rseq.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/xarray.h>

#include "own.h"
#include "slots.h"
#include "user.h"

/* Most areas of a memory: they have slots for twice the instructions that a consumer may have. */
#define DTRACE_AREAS_MAX 256

/* Number of areas. */
static atomic_t dtrace_areas = ATOMIC_INIT(0);

bool dtrace_slots_any(void)
{
	return atomic_read(&dtrace_areas);
}

/*
 * Threads that were interrupted in front of an instruction that has fired. The entry of a thread
 * that never comes back is overwritten.
 */
struct dtrace_interrupted {
	/* Only compared, never dereferenced. */
	const struct task_struct *task;
	u64 slot;
	u32 registers;
};

#define DTRACE_INTERRUPTED_BITS 8
static struct dtrace_interrupted dtrace_interrupted[1 << DTRACE_INTERRUPTED_BITS];
static atomic_t dtrace_interrupted_some = ATOMIC_INIT(0);
static DEFINE_RAW_SPINLOCK(dtrace_interrupted_lock);

/*
 * A hash of the registers. It is the same before and after a signal, whatever its handler did, and
 * differs if the thread has come here in another way.
 */
static u32 dtrace_registers_hash(const struct pt_regs *regs)
{
	return jhash(regs, DTRACE_GENERAL_REGISTERS, (u32)dtrace_sp(regs));
}

/*
 * The registers are part of the hash, because a signal handler may come to the same slot and be
 * interrupted there itself, with other registers.
 */
static struct dtrace_interrupted *dtrace_interrupted_at(const struct dtrace_interrupted *who)
{
	return &dtrace_interrupted[hash_64((u64)who->task ^ who->slot ^ who->registers, DTRACE_INTERRUPTED_BITS)];
}

static struct dtrace_interrupted dtrace_interrupted_now(u64 slot, const struct pt_regs *regs)
{
	return (struct dtrace_interrupted){ .task = current, .slot = slot, .registers = dtrace_registers_hash(regs) };
}

static void dtrace_interrupted_note(u64 slot, const struct pt_regs *regs)
{
	struct dtrace_interrupted now = dtrace_interrupted_now(slot, regs);

	guard(raw_spinlock_irqsave)(&dtrace_interrupted_lock);
	*dtrace_interrupted_at(&now) = now;
	atomic_set(&dtrace_interrupted_some, 1);
}

bool dtrace_slot_resumes(u64 slot, const struct pt_regs *regs)
{
	struct dtrace_interrupted now, *one;

	if (likely(!atomic_read(&dtrace_interrupted_some)))
		return false;
	now = dtrace_interrupted_now(slot, regs);
	one = dtrace_interrupted_at(&now);
	/* Without the lock, because only this task makes entries for itself. */
	if (READ_ONCE(one->task) != now.task)
		return false;
	guard(raw_spinlock_irqsave)(&dtrace_interrupted_lock);
	if (one->task != now.task || one->slot != now.slot || one->registers != now.registers)
		return false;
	*one = (struct dtrace_interrupted){};
	return true;
}

/*
 * Finds the slot that an address is in, and its start; NULL: none. The caller is in an RCU
 * read-side critical section, or holds the memory's lock.
 */
static const struct dtrace_slot *dtrace_slot_at(struct dtrace_memory *memory, u64 address, u64 *start)
{
	struct dtrace_area *area;

	list_for_each_entry_rcu(area, &memory->areas, all, true) {
		u64 offset = address - area->start;
		const struct dtrace_slot *page;

		if (offset >= DTRACE_AREA_SIZE || !dtrace_area_has(area, memory->mm, address))
			continue;
		page = smp_load_acquire(&area->pages[offset >> PAGE_SHIFT]);
		*start = address - offset % DTRACE_SLOT_SIZE;
		return page ? &page[offset_in_page(offset) / DTRACE_SLOT_SIZE] : NULL;
	}
	return NULL;
}

/* The program's address for an address in a slot: that of the instruction, or the one behind it. */
static u64 dtrace_slot_meant(const struct dtrace_slot *slot, u64 start, u64 address)
{
	if (!slot->length)
		return address;
	return address < start + slot->length ? slot->address : slot->address + slot->length;
}

u64 dtrace_program_address(u64 address)
{
	const struct dtrace_slot *slot;
	struct dtrace_memory *memory;
	u64 start;

	if (likely(!dtrace_slots_any()) || !current->mm)
		return address;
	guard(rcu)();
	memory = dtrace_memory_find(current->mm);
	slot = memory ? dtrace_slot_at(memory, address, &start) : NULL;
	return slot ? dtrace_slot_meant(slot, start, address) : address;
}

/* Whether a signal's information contains an address of the current thread. */
static bool dtrace_signal_is_own(const kernel_siginfo_t *info)
{
	switch (info->si_signo) {
	case SIGSEGV:
	case SIGBUS:
	case SIGILL:
	case SIGTRAP:
	case SIGFPE:
		return info->si_code > SI_USER;
	default:
		return false;
	}
}

/*
 * Replaces the slot's address in the signals that the current thread has got by executing the slot.
 * Returns whether the instruction has failed.
 */
static bool dtrace_signals_fix(const struct dtrace_slot *slot, u64 start)
{
	struct sigqueue *queued;
	bool failed = false;

	guard(spinlock_irq)(&current->sighand->siglock);
	list_for_each_entry(queued, &current->pending.list, list) {
		u64 address = (u64)queued->info.si_addr;

		if (!dtrace_signal_is_own(&queued->info))
			continue;
		/* A step may end in front of an instruction that repeats. */
		failed |= queued->info.si_signo != SIGTRAP;
		if (address - start < DTRACE_SLOT_SIZE)
			queued->info.si_addr = (void __user *)dtrace_slot_meant(slot, start, address);
	}
	return failed;
}

/* Takes the current thread out of a slot, because it is about to show its registers, `regs`. */
void dtrace_slots_fix(struct pt_regs *regs)
{
	unsigned long *faulted = dtrace_trap_faulted();
	const struct dtrace_slot *slot;
	struct dtrace_memory *memory;
	u64 start, meant;
	bool failed;

	guard(rcu)();
	memory = dtrace_memory_find(current->mm);
	slot = memory ? dtrace_slot_at(memory, dtrace_pc(regs), &start) : NULL;
	if (!slot)
		return;
	failed = dtrace_signals_fix(slot, start);
	if (*faulted - start < DTRACE_SLOT_SIZE)
		*faulted = dtrace_slot_meant(slot, start, *faulted);
	meant = dtrace_slot_meant(slot, start, dtrace_pc(regs));
	if (meant == slot->address && !failed)
		dtrace_interrupted_note(start, regs);
	instruction_pointer_set(regs, meant);
}

/*
 * An area with room within reach of an address; makes one if there is none. Returns an error
 * pointer if that fails. The memory's lock is held.
 */
static struct dtrace_area *dtrace_area_for(struct dtrace_memory *memory, u64 address, struct dtrace_patience *patience)
{
	struct dtrace_area *area;
	unsigned int count = 0;
	int error;

	list_for_each_entry(area, &memory->areas, all) {
		if (area->taken < DTRACE_AREA_SIZE / DTRACE_SLOT_SIZE && area->start < address &&
		    address - area->start < DTRACE_AREA_REACH && dtrace_area_has(area, memory->mm, area->start))
			return area;
		count++;
	}
	if (count >= DTRACE_AREAS_MAX)
		return ERR_PTR(-ENOSPC);
	atomic_inc(&dtrace_areas);
	error = dtrace_watch_signals();
	area = error ? ERR_PTR(error) : dtrace_area_make(memory, address, patience);
	if (IS_ERR(area))
		atomic_dec(&dtrace_areas);
	else
		list_add_rcu(&area->all, &memory->areas);
	return area;
}

/* The next unused slot of an area, and its address. NULL: there is no memory. */
static struct dtrace_slot *dtrace_slot_next(struct dtrace_area *area, const struct dtrace_carrier *carrier, u64 *at)
{
	u32 n = area->taken;
	struct dtrace_slot **page = &area->pages[n / DTRACE_SLOTS_PER_PAGE];

	if (!*page) {
		struct dtrace_slot *made = dtrace_alloc_for(carrier, &area->uncharged, DTRACE_SLOTS_PER_PAGE * sizeof(*made));

		if (!made)
			return NULL;
		smp_store_release(page, made);
	}
	*at = area->start + n * DTRACE_SLOT_SIZE;
	return &(*page)[n % DTRACE_SLOTS_PER_PAGE];
}

/* Makes a carrier's slot in an area. */
static int dtrace_slot_make_in(struct dtrace_area *area, struct dtrace_carrier *carrier)
{
	u8 bytes[DTRACE_SLOT_SIZE] = {};
	struct dtrace_slot *slot;
	int error;
	u64 at;

	slot = dtrace_slot_next(area, carrier, &at);
	if (!slot)
		return -ENOMEM;
	if (!carrier->move(carrier, at, bytes))
		return -EOPNOTSUPP;
	error = dtrace_area_write(area, at, bytes, sizeof(bytes), carrier->kept);
	if (error)
		return error;
	slot->address = carrier->spot.address;
	memcpy(slot->code, carrier->code, sizeof(slot->code));
	smp_store_release(&slot->length, carrier->length);
	area->taken++;
	carrier->area = area;
	/* The breakpoint may be hit meanwhile. */
	smp_store_release(&carrier->slot, at);
	return 0;
}

/* Whether the memory has a slot already for the carrier's instruction; the carrier gets it then. */
static bool dtrace_slot_again(struct dtrace_memory *memory, struct dtrace_carrier *carrier)
{
	void *entry = xa_load(&memory->slots, carrier->spot.address);
	const struct dtrace_slot *slot;
	struct dtrace_area *area;
	u64 at, start;

	if (!entry)
		return false;
	at = xa_to_value(entry);
	slot = dtrace_slot_at(memory, at, &start);
	if (!slot || slot->address != carrier->spot.address || slot->length != carrier->length ||
	    memcmp(slot->code, carrier->code, carrier->length))
		return false;
	list_for_each_entry(area, &memory->areas, all)
		if (at - area->start < DTRACE_AREA_SIZE)
			carrier->area = area;
	smp_store_release(&carrier->slot, at);
	return true;
}

/*
 * Gives a carrier a slot. The caller holds the memory's lock, not its mmap lock, and a user
 * reference (mmget()). -ETIMEDOUT: the program has held its mmap lock for too long. May sleep.
 */
int dtrace_slot_make(struct dtrace_memory *memory, struct dtrace_carrier *carrier, struct dtrace_patience *patience)
{
	struct dtrace_area *area;
	int error;

	/* get_signal() may be hooked with preemption off, and siglock sleeps with PREEMPT_RT. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		return -EOPNOTSUPP;
	if (dtrace_slot_again(memory, carrier))
		return 0;
	area = dtrace_area_for(memory, carrier->spot.address, patience);
	if (IS_ERR(area))
		return PTR_ERR(area);
	error = dtrace_slot_make_in(area, carrier);
	/* If the slot cannot be noted, the next carrier there gets another one. */
	if (!error)
		dtrace_note_for(carrier, &memory->uncharged_slots, &memory->slots, carrier->spot.address, carrier->slot);
	return error;
}

/* Whether the slot can be executed. May be wrong while the mappings are being changed. */
bool dtrace_slot_is_there(const struct dtrace_carrier *carrier)
{
	struct vm_area_struct *vma = vma_lookup(carrier->spot.mm, carrier->slot);

	return dtrace_area_is_in(carrier->area, vma, carrier->slot) && vma->vm_flags & VM_EXEC;
}

int dtrace_user_restarts(u64 address, u64 *missing)
{
#ifdef CONFIG_RSEQ
	u64 at = (u64)current->rseq.usrptr, section, start, size;

	if (!at)
		return 0;
	*missing = at + offsetof(struct rseq, rseq_cs);
	if (dtrace_user_get_word(*missing, &section))
		return -EFAULT;
	if (!section)
		return 0;
	*missing = section + offsetof(struct rseq_cs, start_ip);
	if (dtrace_user_get_word(*missing, &start))
		return -EFAULT;
	*missing = section + offsetof(struct rseq_cs, post_commit_offset);
	if (dtrace_user_get_word(*missing, &size))
		return -EFAULT;
	return address - start < size;
#else
	return 0;
#endif
}

static void dtrace_areas_free(struct list_head *areas)
{
	struct dtrace_area *area, *next;

	list_for_each_entry_safe(area, next, areas, gone) {
		dtrace_area_free(area);
		atomic_dec(&dtrace_areas);
	}
}

/* Whether an address is in an area. */
static bool dtrace_slots_have(struct dtrace_memory *memory, u64 address)
{
	struct dtrace_area *area;

	list_for_each_entry(area, &memory->areas, all)
		if (address - area->start < DTRACE_AREA_SIZE)
			return true;
	return false;
}

/*
 * Unmaps the areas of a memory that has no carriers left. False: a thread may stand in one, or one
 * cannot be unmapped now. Runs in the memory's worker, which holds its lock.
 */
bool dtrace_slots_retire(struct dtrace_memory *memory, struct dtrace_patience *patience)
{
	struct dtrace_area *area, *next;
	LIST_HEAD(gone);

	if (list_empty(&memory->areas))
		return true;
	/*
	 * After this, a thread that has hit a breakpoint which has gone is in its slot, or past it.
	 */
	synchronize_rcu();
	if (dtrace_own_any_at(memory, dtrace_slots_have))
		return false;
	list_for_each_entry_safe(area, next, &memory->areas, all) {
		if (!dtrace_area_unmap(area, memory->mm, patience))
			continue;
		list_del_rcu(&area->all);
		list_add(&area->gone, &gone);
	}
	synchronize_rcu();
	dtrace_areas_free(&gone);
	if (!list_empty(&memory->areas))
		return false;
	xa_destroy(&memory->slots);
	dtrace_uncharged_gone(&memory->uncharged_slots);
	return true;
}

/* The memory is gone, or nobody looks for its slots any more. */
void dtrace_slots_free(struct dtrace_memory *memory)
{
	struct dtrace_area *area;
	LIST_HEAD(gone);

	list_for_each_entry(area, &memory->areas, all)
		list_add(&area->gone, &gone);
	dtrace_areas_free(&gone);
	xa_destroy(&memory->slots);
	dtrace_uncharged_gone(&memory->uncharged_slots);
}
