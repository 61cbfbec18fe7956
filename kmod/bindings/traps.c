// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Breakpoints of programs that are answered at once.
 *
 * The kernel's uprobes answer a breakpoint on the way back to the program, and execute many instructions elsewhere with a second
 * exception. We are asked before them, in the exception itself, and where the instruction can be done on the spot there is nothing left for
 * them to do. Nothing is owed to us: what is not certain is left to them, and they call us in their time.
 *
 * A breakpoint is found by memory and address, in a table that is read under RCU. What it was set for may be gone from there since, and
 * another file's text, with a debugger's breakpoint, have come. That takes the memory's lock for writing, which its sequence
 * count tells; only after such a change the mapping is looked at again.
 */

#include <linux/hash.h>
#include <linux/kdebug.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/mutex.h>
#include <linux/rhashtable.h>
#include <linux/uaccess.h>
#include <asm/prctl.h>
#include <asm/processor-flags.h>
#include <asm/segment.h>

#include "processes.h"

static u32 dtrace_spot_hash(const void *data, u32 len, u32 seed)
{
	const struct dtrace_spot *spot = data;

	return hash_64(spot->address + (u64)spot->mm + seed, 32);
}

static int dtrace_spot_differs(struct rhashtable_compare_arg *arg, const void *object)
{
	const struct dtrace_spot *spot = arg->key;
	const struct dtrace_carrier *carrier = object;

	return spot->address != carrier->spot.address || spot->mm != carrier->spot.mm;
}

static const struct rhashtable_params dtrace_trap_params = {
	.key_len = sizeof(struct dtrace_spot),
	.key_offset = offsetof(struct dtrace_carrier, spot),
	.head_offset = offsetof(struct dtrace_carrier, node),
	.hashfn = dtrace_spot_hash,
	.obj_cmpfn = dtrace_spot_differs,
	.automatic_shrinking = true,
};

static struct rhashtable dtrace_traps;
/* How many there are; the notifier is there as long as any is. */
static DEFINE_MUTEX(dtrace_traps_lock);
static unsigned long dtrace_traps_count;

/* Whether the place is what the breakpoint was set for, in a memory that has changed since that was found out. */
static noinline bool dtrace_trap_found(struct dtrace_carrier *carrier, unsigned int seq)
{
	const struct dtrace_spot *spot = &carrier->spot;
	struct vm_area_struct *vma = vma_lookup(spot->mm, spot->address);
	struct file *file;

	if (!vma || !(vma->vm_flags & VM_EXEC))
		return false;
	/* It may be another's by now, but never no file's; the sequence count tells. */
	file = READ_ONCE(vma->vm_file);
	if (!file || READ_ONCE(file->f_inode) != file_inode(carrier->file) ||
	    spot->address - vma->vm_start + ((u64)vma->vm_pgoff << PAGE_SHIFT) != carrier->offset)
		return false;
	if (mmap_lock_speculate_retry(spot->mm, seq))
		return false;
	WRITE_ONCE(carrier->seq, seq);
	return true;
}

static bool dtrace_trap_holds(struct dtrace_carrier *carrier)
{
	unsigned int seq;

	if (!mmap_lock_speculate_try_begin(carrier->spot.mm, &seq))
		return false;
	return READ_ONCE(carrier->seq) == seq || dtrace_trap_found(carrier, seq);
}

/* Whether nobody else has a uprobe there: a list of one leads to its head in both directions. */
static bool dtrace_trap_alone(const struct dtrace_carrier *carrier)
{
	const struct list_head *node = &carrier->consumer.cons_node;

	return READ_ONCE(node->next) == READ_ONCE(node->prev);
}

static int dtrace_trapped(struct notifier_block *self, unsigned long event, void *data)
{
	struct pt_regs *regs = ((struct die_args *)data)->regs;
	struct dtrace_carrier *carrier;
	struct dtrace_spot spot;

	/* Who steps through the program is to see a step. */
	if (event != DIE_INT3 || !user_mode(regs) || regs->flags & X86_EFLAGS_TF)
		return NOTIFY_DONE;
	spot.mm = current->mm;
	spot.address = regs->ip - 1;
	carrier = rhashtable_lookup(&dtrace_traps, &spot, dtrace_trap_params);
	if (!carrier || !dtrace_trap_alone(carrier) || !dtrace_trap_holds(carrier))
		return NOTIFY_DONE;
	regs->ip = spot.address;
	if (carrier->trap(carrier, regs))
		return NOTIFY_STOP;
	regs->ip = spot.address + 1;
	return NOTIFY_DONE;
}

static struct notifier_block dtrace_trap_notifier = {
	.notifier_call = dtrace_trapped,
	/* Before uprobes. */
	.priority = INT_MAX,
};

/* Lets traps at the carrier's place be answered. It stays where it is until dtrace_carriers_sync() after dtrace_trap_remove(). */
int dtrace_trap_add(struct dtrace_carrier *carrier)
{
	int error;

	/* Even numbers are those of a memory that nobody changes. */
	carrier->seq = 1;
	error = rhashtable_lookup_insert_fast(&dtrace_traps, &carrier->node, dtrace_trap_params);
	if (error)
		return error;
	guard(mutex)(&dtrace_traps_lock);
	if (!dtrace_traps_count++)
		register_die_notifier(&dtrace_trap_notifier);
	return 0;
}

void dtrace_trap_remove(struct dtrace_carrier *carrier)
{
	rhashtable_remove_fast(&dtrace_traps, &carrier->node, dtrace_trap_params);
	guard(mutex)(&dtrace_traps_lock);
	if (!--dtrace_traps_count)
		unregister_die_notifier(&dtrace_trap_notifier);
}

int dtrace_traps_init(void)
{
	return rhashtable_init(&dtrace_traps, &dtrace_trap_params);
}

/* None is left. */
void dtrace_traps_exit(void)
{
	rhashtable_destroy(&dtrace_traps);
}

#define DTRACE_GET(type)                                                       \
	({                                                                     \
		type word;                                                     \
		unsafe_get_user(word, (type __user *)addr, fault);             \
		*value = word;                                                 \
	})

int dtrace_user_get(u64 addr, u32 size, u64 *value)
{
	int error = -EFAULT;

	pagefault_disable();
	if (!user_read_access_begin((void __user *)addr, size))
		goto out;
	if (likely(size == 8))
		DTRACE_GET(u64);
	else if (size == 4)
		DTRACE_GET(u32);
	else if (size == 2)
		DTRACE_GET(u16);
	else
		DTRACE_GET(u8);
	error = 0;
fault:
	user_read_access_end();
out:
	pagefault_enable();
	return error;
}

int dtrace_user_put(u64 addr, u32 size, u64 value)
{
	int error = -EFAULT;

	pagefault_disable();
	if (!user_write_access_begin((void __user *)addr, size))
		goto out;
	if (likely(size == 8))
		unsafe_put_user(value, (u64 __user *)addr, fault);
	else if (size == 4)
		unsafe_put_user(value, (u32 __user *)addr, fault);
	else if (size == 2)
		unsafe_put_user(value, (u16 __user *)addr, fault);
	else
		unsafe_put_user(value, (u8 __user *)addr, fault);
	error = 0;
fault:
	user_write_access_end();
out:
	pagefault_enable();
	return error;
}

/* By a write that changes nothing, whatever others do there meanwhile. One byte never lies on two cache lines. */
bool dtrace_user_writable(u64 addr)
{
	bool can = false;

	pagefault_disable();
	if (!user_write_access_begin((void __user *)addr, 1))
		goto out;
	asm goto("1:	lock orb $0, %0\n" _ASM_EXTABLE_UA(1b, %l1)
		 : : "m"(*(u8 __user *)addr) : "memory", "cc" : fault);
	can = true;
fault:
	user_write_access_end();
out:
	pagefault_enable();
	return can;
}

/* Whether calls and returns of the current thread have a second stack. */
bool dtrace_user_shadowed(void)
{
#ifdef CONFIG_X86_USER_SHADOW_STACK
	return current->thread.features & ARCH_SHSTK_SHSTK;
#else
	return false;
#endif
}

/* Whether the current program's segments are the kernel's for all programs, which begin at 0 and reach everywhere. */
bool dtrace_user_flat(const struct pt_regs *regs)
{
	u16 ds, es;

	if (regs->cs == __USER_CS)
		return true;
	savesegment(ds, ds);
	savesegment(es, es);
	return regs->cs == __USER32_CS && regs->ss == __USER_DS && ds == __USER_DS && es == __USER_DS;
}
