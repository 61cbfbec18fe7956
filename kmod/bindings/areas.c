// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Areas: the memory of programs that slots are in.
 *
 * An area is a file without a name, mapped to be executed within reach of the text that it is for: below that text, in the highest gap that
 * nothing grows into. A worker maps it, with the memory as its own. A child does not inherit it, and nobody can write to it, or have a
 * userfaultfd answer for it.
 * If the module goes and a thread still stands in a slot the area stays; it needs nothing of the module.
 */

#include <linux/err.h>
#include <linux/file.h>
#include <linux/highmem.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/mmap_lock.h>
#include <linux/rcupdate.h>
#include <linux/shmem_fs.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/userfaultfd_k.h>
#include <linux/workqueue.h>

#include "own.h"
#include "slots.h"

/* No program has anything below. */
#define DTRACE_AREA_LOWEST SZ_64K
/* How often a place is looked for, where others map something at the same time. */
#define DTRACE_AREA_TRIES 8

/* Whether a mapping has an address of an area, where that was mapped. It may be changed meanwhile. */
bool dtrace_area_is_in(const struct dtrace_area *area, struct vm_area_struct *vma, u64 address)
{
	return vma && READ_ONCE(vma->vm_file) == area->file && dtrace_offset_of(vma, address) == address - area->start;
}

/* A change of a memory's mappings, in a worker. */
struct dtrace_area_job {
	struct work_struct work;
	struct mm_struct *mm;
	struct dtrace_area *area;
	int error;
};

/* Has a worker do it. */
static int dtrace_area_do(struct dtrace_area *area, struct mm_struct *mm, work_func_t what)
{
	struct dtrace_area_job job = { .mm = mm, .area = area };

	INIT_WORK_ONSTACK(&job.work, what);
	queue_work(system_dfl_wq, &job.work);
	flush_work(&job.work);
	destroy_work_on_stack(&job.work);
	return job.error;
}

/* Has the area be of this memory alone. */
static int dtrace_area_keep(struct mm_struct *mm, const struct dtrace_area *area)
{
	struct vm_area_struct *vma;
	int error = -ENOENT;

	mmap_write_lock(mm);
	vma = vma_lookup(mm, area->start);
	if (dtrace_area_is_in(area, vma, area->start) && !userfaultfd_armed(vma)) {
		vm_flags_mod(vma, VM_DONTCOPY | VM_DONTEXPAND, VM_MAYWRITE);
		error = 0;
	}
	mmap_write_unlock(mm);
	return error;
}

static void dtrace_area_map_work(struct work_struct *work)
{
	struct dtrace_area_job *job = container_of(work, struct dtrace_area_job, work);
	struct dtrace_area *area = job->area;
	unsigned long at;

	kthread_use_mm(job->mm);
	at = vm_mmap(area->file, area->start, DTRACE_AREA_SIZE, PROT_READ | PROT_EXEC,
		     MAP_PRIVATE | MAP_FIXED_NOREPLACE, 0);
	job->error = IS_ERR_VALUE(at) ? (int)at : dtrace_area_keep(job->mm, area);
	kthread_unuse_mm(job->mm);
}

static void dtrace_area_unmap_work(struct work_struct *work)
{
	struct dtrace_area_job *job = container_of(work, struct dtrace_area_job, work);
	struct dtrace_area *area = job->area;
	struct vm_area_struct *vma;
	bool is_there;

	mmap_read_lock(job->mm);
	vma = vma_lookup(job->mm, area->start);
	/* Who had a userfaultfd there would have to answer. */
	is_there = dtrace_area_is_in(area, vma, area->start) && vma->vm_end - vma->vm_start == DTRACE_AREA_SIZE &&
		   !userfaultfd_armed(vma);
	mmap_read_unlock(job->mm);
	kthread_use_mm(job->mm);
	/* A program that has moved it, or mapped something of its own there, keeps what it has, unless it does so in this moment. */
	job->error = is_there ? vm_munmap(area->start, DTRACE_AREA_SIZE) : 0;
	kthread_unuse_mm(job->mm);
}

/* Whether nothing will grow into a gap: neither a stack from above nor the heap from below. */
static bool dtrace_gap_is_quiet(const struct mm_struct *mm, u64 start, u64 end, const struct vm_area_struct *above)
{
	u64 heap = PAGE_ALIGN(mm->brk);

	return !(above->vm_flags & VM_GROWSDOWN) && !(heap >= start && heap < end);
}

/* Where an area for an address may be; 0 for nowhere. It touches nothing. */
static u64 dtrace_area_place(struct mm_struct *mm, u64 address)
{
	u64 lowest = address > DTRACE_AREA_REACH + DTRACE_AREA_LOWEST ? address - DTRACE_AREA_REACH : DTRACE_AREA_LOWEST;
	const u64 needed = DTRACE_AREA_SIZE + 2 * PAGE_SIZE;
	struct vm_area_struct *above, *below;
	VMA_ITERATOR(vmi, mm, address);
	u64 place = 0;

	if (mmap_read_lock_killable(mm))
		return 0;
	above = vma_lookup(mm, address);
	/* The iterator begins at the mapping itself. */
	if (above && vma_next(&vmi) != above)
		above = NULL;
	while (above && above->vm_start > lowest && !place) {
		u64 start, end = above->vm_start;

		below = vma_prev(&vmi);
		start = max(below ? below->vm_end : 0, lowest);
		if (end > start && end - start >= needed && dtrace_gap_is_quiet(mm, start, end, above))
			place = PAGE_ALIGN_DOWN(end - DTRACE_AREA_SIZE - PAGE_SIZE);
		above = below;
	}
	mmap_read_unlock(mm);
	return place;
}

static int dtrace_area_map(struct dtrace_area *area, struct mm_struct *mm, u64 address)
{
	int error = -EEXIST;
	unsigned int n;

	for (n = 0; n < DTRACE_AREA_TRIES && error == -EEXIST; n++) {
		area->start = dtrace_area_place(mm, address);
		if (!area->start)
			return -ENOSPC;
		error = dtrace_area_do(area, mm, dtrace_area_map_work);
	}
	return error;
}

/* Has a memory have an area more, within reach of an address. */
struct dtrace_area *dtrace_area_make(struct dtrace_memory *memory, u64 address)
{
	struct dtrace_area *area = kzalloc(sizeof(*area), GFP_KERNEL_ACCOUNT);
	int error;

	if (!area)
		return ERR_PTR(-ENOMEM);
	area->file = shmem_file_setup("dtrace-slots", DTRACE_AREA_SIZE, mk_vma_flags(VMA_NORESERVE_BIT));
	if (IS_ERR(area->file)) {
		error = PTR_ERR(area->file);
		kfree(area);
		return ERR_PTR(error);
	}
	error = dtrace_area_map(area, memory->mm, address);
	if (error) {
		dtrace_area_free(area);
		return ERR_PTR(error);
	}
	return area;
}

/* Writes a slot that nobody executes. */
int dtrace_area_write(struct dtrace_area *area, u64 slot, const u8 *bytes, size_t size)
{
	u64 offset = slot - area->start;
	struct page *page = shmem_read_mapping_page(area->file->f_mapping, offset >> PAGE_SHIFT);

	if (IS_ERR(page))
		return PTR_ERR(page);
	memcpy_to_page(page, offset_in_page(offset), bytes, size);
	set_page_dirty_lock(page);
	put_page(page);
	return 0;
}

/* Unmaps an area that nobody is in, unless the program has sealed it; false: there is no memory for that. */
bool dtrace_area_unmap(struct dtrace_area *area, struct mm_struct *mm)
{
	int error = dtrace_area_do(area, mm, dtrace_area_unmap_work);

	return !error || error == -EPERM;
}

/* Whether a program has an address of an area. Where its mappings are just being changed the answer may be wrong. In any context. */
bool dtrace_area_has(const struct dtrace_area *area, struct mm_struct *mm, u64 address)
{
	guard(rcu)();
	return dtrace_area_is_in(area, vma_lookup(mm, address), address);
}

/* Nobody sees it any more. Where it is mapped it stays. */
void dtrace_area_free(struct dtrace_area *area)
{
	unsigned int n;

	for (n = 0; n < ARRAY_SIZE(area->pages); n++)
		kfree(area->pages[n]);
	fput(area->file);
	kfree(area);
}
