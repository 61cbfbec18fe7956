// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Counters that programs keep for their own probes: numbers of two bytes in their data, 0 if nobody
 * listens.
 *
 * Uprobes count in them for the breakpoints that they set. For our own breakpoints this file does,
 * in the one memory, and in the mapping in which uprobes would count: the first one of the file
 * that contains the counter, is private to the memory and can be written to. A child inherits the
 * number together with the breakpoint, and both go together (INV-43). The callers hold the memory's
 * lock, and its mmap lock for reading, with one exception: dtrace_count_inherited(). Uprobes hold
 * the mmap lock for writing.
 *
 * To find a counter takes a walk over all mappings, so bring.c does that in advance for carriers,
 * and brings the counter's page.
 */

#include <linux/align.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/limits.h>
#include <linux/mm.h>

#include "own.h"

/* Whether a mapping contains that offset of the file, private to one memory and writable. */
static bool dtrace_counter_fits(const struct vm_area_struct *vma, const struct file *file, u64 offset)
{
	u64 start = (u64)vma->vm_pgoff << PAGE_SHIFT;

	return vma->vm_file && file_inode(vma->vm_file) == file_inode(file) &&
	       (vma->vm_flags & (VM_WRITE | VM_SHARED)) == VM_WRITE && offset >= start &&
	       offset - start < vma->vm_end - vma->vm_start;
}

/* Address of the counter in a memory; 0: nowhere. */
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
 * Adds to a number; -ERANGE if it would become negative or exceed SHRT_MAX. The mmap lock is held.
 * `brings`: a page that is not in memory is brought; otherwise that is -EAGAIN.
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

/* Whether a carrier's counter is still at the address where it was found. */
static bool dtrace_counter_is_at(const struct dtrace_carrier *carrier, struct mm_struct *mm, u64 counter)
{
	struct vm_area_struct *vma = vma_lookup(mm, carrier->counter_at);

	return vma && dtrace_counter_fits(vma, carrier->file, counter) && dtrace_offset_of(vma, carrier->counter_at) == counter;
}

/*
 * Adds to the counter for a carrier. -ENXIO: the memory has no such counter; -EAGAIN: its address
 * or its page must be found first; -EINVAL: it is not aligned.
 */
static int dtrace_count_for(const struct dtrace_carrier *carrier, struct mm_struct *mm, u64 counter, short more, bool brings)
{
	u64 at = carrier->counter_at;

	/* Aligned, it lies on one page. */
	if (!IS_ALIGNED(counter, sizeof(more)))
		return -EINVAL;
	if (brings)
		at = dtrace_counter_at(mm, carrier->file, counter);
	else if (!carrier->sought || (at && !dtrace_counter_is_at(carrier, mm, counter)))
		return -EAGAIN;
	return at ? dtrace_counter_add(mm, at, more, brings) : -ENXIO;
}

/*
 * Counts for a breakpoint that is about to be written, if the program has a counter for it.
 * `inherits`: the byte is in the memory already and was counted before.
 */
int dtrace_count(struct dtrace_carrier *carrier, struct mm_struct *mm, struct dtrace_known *known, bool inherits)
{
	int error;

	if (!carrier->counter) {
		error = inherits && known->counter ? dtrace_count_for(carrier, mm, known->counter, -1, false) : 0;
		/*
		 * If the number that was inherited cannot be corrected, the breakpoint is set all
		 * the same.
		 */
		return error == -EAGAIN && !carrier->sought ? error : 0;
	}
	error = inherits ? 0 : dtrace_count_for(carrier, mm, carrier->counter, 1, false);
	if (error)
		return error;
	WRITE_ONCE(known->counter, carrier->counter);
	carrier->counted = true;
	return 0;
}

/*
 * Takes back what a carrier has counted. If the program has dropped the number, nothing is counted
 * down.
 */
void dtrace_count_no_more(struct dtrace_carrier *carrier, struct mm_struct *mm, bool brings)
{
	if (carrier->counted)
		dtrace_count_for(carrier, mm, carrier->counter, -1, brings);
	carrier->counted = false;
}

/* Whether what a carrier has counted can be counted down without bringing a page. */
bool dtrace_counter_is_in(const struct dtrace_carrier *carrier, struct mm_struct *mm)
{
	return !carrier->counted || dtrace_count_for(carrier, mm, carrier->counter, 0, false) != -EAGAIN;
}

/*
 * Takes back what a child has inherited with a breakpoint that was taken out. May bring pages: the
 * caller holds no lock that others need but the memory's own.
 */
void dtrace_count_inherited(struct vm_area_struct *vma, const struct dtrace_known *known)
{
	u64 counter = READ_ONCE(known->counter), address = 0;

	if (counter && vma->vm_file && IS_ALIGNED(counter, sizeof(short)))
		address = dtrace_counter_at(vma->vm_mm, vma->vm_file, counter);
	if (address)
		dtrace_counter_add(vma->vm_mm, address, -1, true);
}
