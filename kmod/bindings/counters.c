// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Counters that programs have for probes of their own: numbers of two bytes in their data, 0 where nobody listens.
 *
 * Uprobes count in them for breakpoints that they set. For our own we do, in the one memory, where uprobes would: in the first mapping of the
 * file that has the counter, belongs to that memory alone and can be written to. A child inherits the number with the breakpoint, and loses both
 * together. Whoever calls has the memory locked, and its mappings for reading; uprobes have them for writing.
 */

#include <linux/align.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/limits.h>
#include <linux/mm.h>

#include "own.h"

/* Where a memory has what is in a file at an offset; 0 for nowhere. */
static u64 dtrace_counter_at(struct mm_struct *mm, const struct file *file, u64 offset)
{
	struct vm_area_struct *vma;

	VMA_ITERATOR(vmi, mm, 0);
	for_each_vma(vmi, vma) {
		u64 start = (u64)vma->vm_pgoff << PAGE_SHIFT;

		if (vma->vm_file && file_inode(vma->vm_file) == file_inode(file) &&
		    (vma->vm_flags & (VM_WRITE | VM_SHARED)) == VM_WRITE && offset >= start &&
		    offset - start < vma->vm_end - vma->vm_start)
			return vma->vm_start + (offset - start);
	}
	return 0;
}

/* Adds to a number, which becomes neither negative nor too large; the lock of the memory is held. */
static int dtrace_counter_add(struct mm_struct *mm, u64 address, short more)
{
	struct page *page;
	long got = get_user_pages_remote(mm, address, 1, FOLL_WRITE, &page, NULL);
	int error = -ERANGE;
	short *number;
	void *at;

	if (got != 1)
		return got < 0 ? got : -EFAULT;
	at = kmap_local_page(page);
	number = at + offset_in_page(address);
	if (*number + more >= 0 && *number + more <= SHRT_MAX) {
		WRITE_ONCE(*number, *number + more);
		error = 0;
	}
	kunmap_local(at);
	if (!error)
		set_page_dirty_lock(page);
	put_page(page);
	return error;
}

/* Counts one more in a memory, or one less. ENXIO: it has no such counter. */
static int dtrace_count_in(struct mm_struct *mm, const struct file *file, u64 counter, short more)
{
	u64 address;

	/* It lies on one page. */
	if (!IS_ALIGNED(counter, sizeof(more)))
		return -EINVAL;
	address = dtrace_counter_at(mm, file, counter);
	return address ? dtrace_counter_add(mm, address, more) : -ENXIO;
}

/* Counts a breakpoint that is about to be written, if the program has a counter for it. inherits: it is there and has counted before. */
int dtrace_count(struct dtrace_carrier *carrier, struct mm_struct *mm, struct dtrace_known *known, bool inherits)
{
	int error;

	if (!carrier->counter) {
		if (inherits)
			dtrace_count_in(mm, carrier->file, known->counter, -1);
		return 0;
	}
	error = inherits ? 0 : dtrace_count_in(mm, carrier->file, carrier->counter, 1);
	if (error)
		return error;
	WRITE_ONCE(known->counter, carrier->counter);
	carrier->counted = true;
	return 0;
}

/* Where the program has its number no more nothing is counted either. */
void dtrace_count_no_more(struct dtrace_carrier *carrier, struct mm_struct *mm)
{
	if (carrier->counted)
		dtrace_count_in(mm, carrier->file, carrier->counter, -1);
	carrier->counted = false;
}

/* What a child has inherited with a breakpoint that was taken out counts no more. */
void dtrace_count_inherited(struct vm_area_struct *vma, const struct dtrace_known *known)
{
	u64 counter = READ_ONCE(known->counter);

	if (counter && vma->vm_file)
		dtrace_count_in(vma->vm_mm, vma->vm_file, counter, -1);
}
