// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Slots.
 *
 * Where the exception cannot do an instruction that a breakpoint of ours covers the program executes it somewhere else: in a slot, behind which
 * a jump leads to where it goes on. That takes no second exception, and nothing of the kernel's afterwards. A slot is one
 * instruction's at one address, and never another one's as long as its area is there: a thread may stand in it for any time.
 *
 * Nobody is to see it there. A thread shows its registers where it handles signals: it stops for a debugger there, is dumped, and has its
 * handlers called. Where that begins the slot's address becomes the program's: in front of the instruction, or behind it. If it is in front
 * the thread comes to the breakpoint again. That is no new firing if it was interrupted; it is one if the instruction has faulted,
 * as anywhere else where a program tries an instruction again.
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

/* Most areas of a memory: slots for twice the instructions that a consumer may have. */
#define DTRACE_AREAS_MAX 256

/* How many areas there are. */
static atomic_t dtrace_areas = ATOMIC_INIT(0);

bool dtrace_slots_any(void)
{
	return atomic_read(&dtrace_areas);
}

/* Threads that were interrupted in front of an instruction that has fired. One that never comes back is overwritten. */
struct dtrace_interrupted {
	/* Never looked into. */
	const struct task_struct *task;
	u64 slot;
	u32 registers;
};

#define DTRACE_INTERRUPTED_BITS 8
static struct dtrace_interrupted dtrace_interrupted[1 << DTRACE_INTERRUPTED_BITS];
static atomic_t dtrace_interrupted_some = ATOMIC_INIT(0);
static DEFINE_RAW_SPINLOCK(dtrace_interrupted_lock);

/* The same before and after a signal, whatever its handler did; another one if the thread has come here in another way. */
static u32 dtrace_registers_hash(const struct pt_regs *regs)
{
	return jhash(regs, DTRACE_GENERAL_REGISTERS, (u32)dtrace_sp(regs));
}

/* Its handler may come to the same slot, and be interrupted there itself: that has other registers. */
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
	/* Nobody else notes this task. */
	if (READ_ONCE(one->task) != now.task)
		return false;
	guard(raw_spinlock_irqsave)(&dtrace_interrupted_lock);
	if (one->task != now.task || one->slot != now.slot || one->registers != now.registers)
		return false;
	*one = (struct dtrace_interrupted){};
	return true;
}

/* The instruction that is executed at an address, and where that begins; NULL for none. Under RCU, or with the memory locked. */
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

/* What stands for an address in a slot: the address of the instruction, or that behind it. */
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

/* Whether a signal tells where the current thread was. */
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

/* Has the signals of what the current thread has executed in a slot tell the program's address. Whether the instruction has failed. */
static bool dtrace_signals_fix(const struct dtrace_slot *slot, u64 start)
{
	struct sigqueue *queued;
	bool failed = false;

	guard(spinlock_irq)(&current->sighand->siglock);
	list_for_each_entry(queued, &current->pending.list, list) {
		u64 address = (u64)queued->info.si_addr;

		if (!dtrace_signal_is_own(&queued->info))
			continue;
		/* A step ends in front of an instruction that repeats. */
		failed |= queued->info.si_signo != SIGTRAP;
		if (address - start < DTRACE_SLOT_SIZE)
			queued->info.si_addr = (void __user *)dtrace_slot_meant(slot, start, address);
	}
	return failed;
}

/* Takes the current thread out of a slot: it is about to show its registers, which these are. */
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

/* An area with room, within reach of an address. */
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

/* The next one of an area, of which nothing is known yet. */
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

/* Makes one in an area. */
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
	/* It may be hit meanwhile. */
	smp_store_release(&carrier->slot, at);
	return 0;
}

/* Whether the memory has one already that is for a carrier; then it has it. */
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
 * Has a carrier have a slot. The memory is locked, its mappings are not, and it does not come to an end meanwhile. ETIMEDOUT: the program keeps
 * them for itself.
 */
int dtrace_slot_make(struct dtrace_memory *memory, struct dtrace_carrier *carrier, struct dtrace_patience *patience)
{
	struct dtrace_area *area;
	int error;

	/* get_signal() may be watched with preemption off, and its lock sleeps there. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		return -EOPNOTSUPP;
	if (dtrace_slot_again(memory, carrier))
		return 0;
	area = dtrace_area_for(memory, carrier->spot.address, patience);
	if (IS_ERR(area))
		return PTR_ERR(area);
	error = dtrace_slot_make_in(area, carrier);
	/* Without that the next carrier there gets another slot. */
	if (!error)
		dtrace_note_for(carrier, &memory->uncharged_slots, &memory->slots, carrier->spot.address, carrier->slot);
	return error;
}

/* Whether the slot can be executed. The memory may be changed meanwhile. */
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

/* Whether an address is in a slot. */
static bool dtrace_slots_have(struct dtrace_memory *memory, u64 address)
{
	struct dtrace_area *area;

	list_for_each_entry(area, &memory->areas, all)
		if (address - area->start < DTRACE_AREA_SIZE)
			return true;
	return false;
}

/*
 * Takes the areas of a memory away, in which no carrier is left; false: a thread may stand in one, or one cannot be unmapped now. In the memory's
 * worker, which has it locked.
 */
bool dtrace_slots_retire(struct dtrace_memory *memory, struct dtrace_patience *patience)
{
	struct dtrace_area *area, *next;
	LIST_HEAD(gone);

	if (list_empty(&memory->areas))
		return true;
	/* Who has met a breakpoint that is gone is in its slot then, or past it. */
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

/* The memory is gone, or nobody sees its slots any more. */
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
