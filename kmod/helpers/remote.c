// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Reads memory of a process that need not run on this CPU, in any context, without a lock or a
 * reference (INV-18).
 *
 * The process's page tables are walked from its own root, and the page is read in the direct map.
 * Nothing keeps the process from ending meanwhile: mm_struct and root are freed at once, tables
 * when interrupts are on again (pagetables.c), pages when they are unmapped. So all of these are
 * read by loads that may fault, and the result counts only if a later look confirms it:
 *
 * - A page belonged to the address space while it was read if the tables lead to it before and
 *   after.
 * - The tables belonged to the address space, and mm_struct was valid, if a thread has the same
 *   mm_struct before and after, because a task that has one holds a reference. The caller must
 *   check that, and whether the arguments are where they were.
 *
 * Otherwise the result may be anybody's memory, and is thrown away. Between two looks at one entry,
 * a page could be replaced and come back: it would have to be unmapped, freed, allocated twice and
 * mapped at the same address while some hundred bytes are copied.
 *
 * A page that is not in memory is not brought. A page whose access rights NUMA balancing has
 * removed, to see which CPU uses it, is in memory. What may be a device's, and what the kernel does
 * not map as memory itself, is not read: special mappings, pages of devices, memfd_secret(2).
 */

#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "loads.h"
#include "pagetables.h"
#include "remote.h"

/*
 * Finds the arguments of a thread's process. `mm` is 0 if it has no memory of its own, as a kernel
 * thread that has borrowed one.
 */
int dtrace_task_args(struct dtrace_task_args *out, u64 task)
{
	const struct task_struct *t = (const struct task_struct *)task;
	struct mm_struct *mm;
	unsigned int flags;

	*out = (struct dtrace_task_args){};
	/*
	 * The loads of the memory's contents come before the loads here, so that the caller can
	 * compare.
	 */
	smp_rmb();
	if (LOAD(flags, &t->flags) || LOAD(mm, &t->mm))
		return -EFAULT;
	if (!mm || (flags & PF_KTHREAD))
		return 0;
	if (LOAD(out->begin, &mm->arg_start) || LOAD(out->end, &mm->arg_end))
		return -EFAULT;
	out->mm = (u64)mm;
	return 0;
}

/* The name of a thread's process, TASK_COMM_LEN bytes. */
int dtrace_task_name(char *out, u64 task)
{
	struct task_struct *leader;

	if (LOAD(leader, &((const struct task_struct *)task)->group_leader))
		return -EFAULT;
	return dtrace_load(out, (u64)leader->comm, TASK_COMM_LEN);
}

/* Whether a mapping is memory of a process, and not a device's. */
static bool dtrace_is_process_memory(const struct dtrace_mapping *mapping)
{
	typeof_member(struct page, flags) flags;

	if (dtrace_flags_are_kernels(mapping->flags))
		return false;
	if (dtrace_flags_are_special(mapping->flags) || dtrace_leads_to_device(mapping))
		return false;
	return !LOAD(flags, &pfn_to_page(mapping->pfn)->flags) &&
	       !memdesc_is_zone_device(flags) && !(flags.f & BIT(PG_reserved));
}

/* Loads bytes that lie on one page. */
static int dtrace_remote_load_page(void *out, const pgd_t *root, u64 addr, size_t size)
{
	struct dtrace_mapping before, after;

	if (!dtrace_mapping_of(&before, root, addr) || !dtrace_is_process_memory(&before))
		return -EFAULT;
	if (dtrace_load(out, (u64)__va(PFN_PHYS(before.pfn)) + offset_in_page(addr), size))
		return -EFAULT;
	smp_rmb();
	return dtrace_mapping_of(&after, root, addr) && after.pfn == before.pfn ? 0 : -EFAULT;
}

/* Loads what the address space `mm` has at addr. */
int dtrace_remote_load(void *out, u64 mm, u64 addr, size_t size)
{
	pgd_t *root;

	if (addr >= TASK_SIZE_MAX || size > TASK_SIZE_MAX - addr)
		return -EFAULT;
	if (LOAD(root, &((const struct mm_struct *)mm)->pgd))
		return -EFAULT;
	while (size) {
		size_t n = min_t(size_t, PAGE_SIZE - offset_in_page(addr), size);

		if (dtrace_remote_load_page(out, root, addr, n))
			return -EFAULT;
		out += n;
		addr += n;
		size -= n;
	}
	return 0;
}
