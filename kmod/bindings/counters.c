// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Counters that programs have for probes of their own: numbers of two bytes in their data, 0 where nobody listens.
 *
 * Uprobes count in them for breakpoints that they set. For our own we do, in the one memory, where uprobes would: in the first mapping of the
 * file that has the counter, belongs to that memory alone and can be written to. A child inherits the number with the breakpoint, and loses both
 * together. Whoever calls has the memory locked, and its mappings for reading; uprobes have them for writing.
 *
 * To look for a counter is to look through all mappings, so bring.c has done that before for carriers, and has its page brought.
 */

#include <linux/align.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/limits.h>
#include <linux/mm.h>

#include "own.h"

/* Whether a mapping has what is in a file at an offset, for one memory alone to write to. */
static bool dtrace_counter_fits(const struct vm_area_struct *vma, const struct file *file, u64 offset)
{
	u64 start = (u64)vma->vm_pgoff << PAGE_SHIFT;

	return vma->vm_file && file_inode(vma->vm_file) == file_inode(file) &&
	       (vma->vm_flags & (VM_WRITE | VM_SHARED)) == VM_WRITE && offset >= start &&
	       offset - start < vma->vm_end - vma->vm_start;
}

/* Where a memory has it; 0 for nowhere. */
u64 dtrace_counter_at(struct mm_struct *mm, const struct file *file, u64 offset)
{
	struct vm_area_struct *vma;

	VMA_ITERATOR(vmi, mm, 0);
	for_each_vma(vmi, vma)
		if (dtrace_counter_fits(vma, file, offset))
			return vma->vm_start + (offset - ((u64)vma->vm_pgoff << PAGE_SHIFT));
	return 0;
}

/*
 * Adds to a number, which becomes neither negative nor too large; the lock of the memory is held. brings: its page is brought in if it is not
 * there, otherwise that is EAGAIN.
 */
static int dtrace_counter_add(struct mm_struct *mm, u64 address, short more, bool brings)
{
	struct page *page;
	long got = get_user_pages_remote(mm, address, 1, FOLL_WRITE | (brings ? 0 : FOLL_NOFAULT), &page, NULL);
	int error = -ERANGE;
	short *number;
	void *at;

	if (got != 1 && !brings)
		return -EAGAIN;
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

/* Whether a carrier's counter is where it was found. */
static bool dtrace_counter_is_at(const struct dtrace_carrier *carrier, struct mm_struct *mm, u64 counter)
{
	struct vm_area_struct *vma = vma_lookup(mm, carrier->counter_at);

	return vma && dtrace_counter_fits(vma, carrier->file, counter) && dtrace_offset_of(vma, carrier->counter_at) == counter;
}

/* Counts one more for a carrier, or one less. ENXIO: the memory has no such counter; EAGAIN: it is to be looked for. */
static int dtrace_count_for(const struct dtrace_carrier *carrier, struct mm_struct *mm, u64 counter, short more, bool brings)
{
	u64 at = carrier->counter_at;

	/* It lies on one page. */
	if (!IS_ALIGNED(counter, sizeof(more)))
		return -EINVAL;
	if (brings)
		at = dtrace_counter_at(mm, carrier->file, counter);
	else if (!carrier->sought || (at && !dtrace_counter_is_at(carrier, mm, counter)))
		return -EAGAIN;
	return at ? dtrace_counter_add(mm, at, more, brings) : -ENXIO;
}

/* Counts a breakpoint that is about to be written, if the program has a counter for it. inherits: it is there and has counted before. */
int dtrace_count(struct dtrace_carrier *carrier, struct mm_struct *mm, struct dtrace_known *known, bool inherits)
{
	int error;

	if (!carrier->counter) {
		error = inherits && known->counter ? dtrace_count_for(carrier, mm, known->counter, -1, false) : 0;
		/* What cannot be had then does not keep anybody from it. */
		return error == -EAGAIN && !carrier->sought ? error : 0;
	}
	error = inherits ? 0 : dtrace_count_for(carrier, mm, carrier->counter, 1, false);
	if (error)
		return error;
	WRITE_ONCE(known->counter, carrier->counter);
	carrier->counted = true;
	return 0;
}

/* Where the program has its number no more nothing is counted either. */
void dtrace_count_no_more(struct dtrace_carrier *carrier, struct mm_struct *mm, bool brings)
{
	if (carrier->counted)
		dtrace_count_for(carrier, mm, carrier->counter, -1, brings);
	carrier->counted = false;
}

/* Whether what a carrier has counted can be counted down without anything brought in. */
bool dtrace_counter_is_in(const struct dtrace_carrier *carrier, struct mm_struct *mm)
{
	return !carrier->counted || dtrace_count_for(carrier, mm, carrier->counter, 0, false) != -EAGAIN;
}

/* What a child has inherited with a breakpoint that was taken out counts no more. Nobody needs a lock that the caller holds. */
void dtrace_count_inherited(struct vm_area_struct *vma, const struct dtrace_known *known)
{
	u64 counter = READ_ONCE(known->counter), address = 0;

	if (counter && vma->vm_file && IS_ALIGNED(counter, sizeof(short)))
		address = dtrace_counter_at(vma->vm_mm, vma->vm_file, counter);
	if (address)
		dtrace_counter_add(vma->vm_mm, address, -1, true);
}
