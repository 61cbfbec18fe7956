// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Areas: mappings of programs that slots lie in.
 *
 * An area is a file without a name, mapped executable within reach of the text that it is for:
 * below that text, in the highest gap that nothing grows into. A worker maps it with
 * kthread_use_mm(); the caller waits for the worker for a limited time only (patience.c, INV-46). A
 * child does not inherit an area. Nobody can make it writable, and no area is kept or unmapped that
 * has a userfaultfd.
 *
 * If a thread still stands in a slot when the module goes, the area stays. It needs nothing of the
 * module (INV-42).
 */

#include <linux/completion.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/highmem.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/mmap_lock.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/shmem_fs.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/userfaultfd_k.h>
#include <linux/workqueue.h>

#include "own.h"
#include "slots.h"

/* Programs have nothing mapped below this address. */
#define DTRACE_AREA_LOWEST SZ_64K
/*
 * Pages that are allocated when an area is made: their 1024 slots are enough for the places that a
 * member may have by default.
 */
#define DTRACE_AREA_READY 8
/* How often a gap is searched for if others map something there at the same time. */
#define DTRACE_AREA_TRIES 8
/*
 * If one address has no room for an area, the others of the same region are taken to have none
 * either. A region is a small part of a jump's reach.
 */
#define DTRACE_AREA_REGION SZ_64M

/*
 * Whether `vma` maps the area's file at this address as it was first mapped. Without the mmap lock
 * the mapping may change meanwhile.
 */
bool dtrace_area_is_in(const struct dtrace_area *area, struct vm_area_struct *vma, u64 address)
{
	return vma && READ_ONCE(vma->vm_file) == area->file && dtrace_offset_of(vma, address) == address - area->start;
}

/* Keeps the area from children and from growing, and from ever becoming writable. */
static int dtrace_area_keep(struct mm_struct *mm, const struct dtrace_area *area)
{
	struct vm_area_struct *vma;
	int error = -ENOENT;

	/* Killable, because the hung-task detector ignores tasks that wait in that state. */
	if (mmap_write_lock_killable(mm))
		return -EINTR;
	vma = vma_lookup(mm, area->start);
	if (dtrace_area_is_in(area, vma, area->start) && !userfaultfd_armed(vma)) {
		vm_flags_mod(vma, VM_DONTCOPY | VM_DONTEXPAND, VM_MAYWRITE);
		error = 0;
	}
	mmap_write_unlock(mm);
	return error;
}

/* Whether nothing will grow into a gap: neither a stack from above nor the heap from below. */
static bool dtrace_gap_is_quiet(const struct mm_struct *mm, u64 start, u64 end, const struct vm_area_struct *above)
{
	u64 heap = PAGE_ALIGN(mm->brk);

	return !(above->vm_flags & VM_GROWSDOWN) && !(heap >= start && heap < end);
}

/*
 * Finds an address for an area that serves `address`. Changes nothing. Returns an error as a number
 * (IS_ERR_VALUE()): -ENOSPC: there is no gap; -EFAULT: nothing is mapped at the address; -EINTR.
 */
static unsigned long dtrace_area_place(struct mm_struct *mm, u64 address)
{
	u64 lowest = address > DTRACE_AREA_REACH + DTRACE_AREA_LOWEST ? address - DTRACE_AREA_REACH : DTRACE_AREA_LOWEST;
	const u64 needed = DTRACE_AREA_SIZE + 2 * PAGE_SIZE;
	struct vm_area_struct *above, *below;
	VMA_ITERATOR(vmi, mm, address);
	unsigned long place;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	above = vma_lookup(mm, address);
	/* The iterator's first step yields the mapping at the address itself. */
	if (above && vma_next(&vmi) != above)
		above = NULL;
	place = above ? -ENOSPC : -EFAULT;
	while (above && above->vm_start > lowest && IS_ERR_VALUE(place)) {
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

/*
 * Makes the file and its first pages. They are unevictable, because slots are written with locks
 * held that all consumers need: nothing may then wait for a full memory cgroup.
 */
static int dtrace_area_open(struct dtrace_area *area)
{
	unsigned int n;
	struct file *file = shmem_file_setup("dtrace-slots", DTRACE_AREA_SIZE, mk_vma_flags(VMA_NORESERVE_BIT));

	if (IS_ERR(file))
		return PTR_ERR(file);
	mapping_set_unevictable(file->f_mapping);
	for (n = 0; n < DTRACE_AREA_READY; n++) {
		struct page *page = shmem_read_mapping_page(file->f_mapping, n);

		if (!IS_ERR(page))
			put_page(page);
	}
	area->file = file;
	return 0;
}

/* Unmaps the area if it is still there. Runs in a worker that uses the memory. */
static int dtrace_area_take(struct dtrace_area *area, struct mm_struct *mm)
{
	struct vm_area_struct *vma;
	bool is_there;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	vma = vma_lookup(mm, area->start);
	/* With a userfaultfd, unmapping would wait for its owner's answer. */
	is_there = dtrace_area_is_in(area, vma, area->start) && vma->vm_end - vma->vm_start == DTRACE_AREA_SIZE &&
		   !userfaultfd_armed(vma);
	mmap_read_unlock(mm);
	/*
	 * If the program has moved the area or mapped something else there, that stays, unless the
	 * program does so at this very moment.
	 */
	return is_there ? vm_munmap(area->start, DTRACE_AREA_SIZE) : 0;
}

/*
 * Makes and maps the area. The file is made only if there is a gap for it, because its pages cost
 * memory: they are charged to the program's cgroup, as current->mm is the program's. Runs in a
 * worker that uses the memory (kthread_use_mm()).
 */
static int dtrace_area_map(struct dtrace_area *area, struct mm_struct *mm, u64 address, struct dtrace_patience *patience)
{
	unsigned long place, at = -EEXIST;
	unsigned int n;
	int error;

	if (!dtrace_mappings_are_free(mm, patience))
		return -ETIMEDOUT;
	for (n = 0; n < DTRACE_AREA_TRIES && at == -EEXIST; n++) {
		place = dtrace_area_place(mm, address);
		if (IS_ERR_VALUE(place))
			return place;
		error = area->file ? 0 : dtrace_area_open(area);
		if (error)
			return error;
		area->start = place;
		at = vm_mmap(area->file, area->start, DTRACE_AREA_SIZE, PROT_READ | PROT_EXEC,
			     MAP_PRIVATE | MAP_FIXED_NOREPLACE, 0);
	}
	if (IS_ERR_VALUE(at))
		return at;
	error = dtrace_area_keep(mm, area);
	/* Nobody else knows of the mapping. */
	if (error)
		dtrace_area_take(area, mm);
	return error;
}

enum {
	DTRACE_AREA_WANTED,
	DTRACE_AREA_MAPPED,
	/* The caller has stopped waiting. */
	DTRACE_AREA_UNWANTED,
};

/*
 * The job of mapping an area. The worker may wait for the program for longer than the caller waits
 * for the worker.
 */
struct dtrace_area_job {
	struct work_struct work;
	struct completion done;
	atomic_t state;
	struct dtrace_memory *memory;
	struct dtrace_area *area;
	/* Address that the area is for. */
	u64 address;
	/* The worker's own copy: it has as much time as the caller. */
	struct dtrace_patience patience;
	int error;
};

static struct dtrace_area_job *dtrace_area_job_make(struct dtrace_memory *memory, u64 address)
{
	struct dtrace_area_job *job = kzalloc(sizeof(*job), GFP_KERNEL);
	struct dtrace_area *area = kzalloc(sizeof(*area), GFP_KERNEL);

	if (!job || !area) {
		kfree(area);
		kfree(job);
		return NULL;
	}
	*job = (struct dtrace_area_job){ .memory = memory, .area = area, .address = address };
	init_completion(&job->done);
	return job;
}

static void dtrace_area_work(struct work_struct *work)
{
	struct dtrace_area_job *job = container_of(work, struct dtrace_area_job, work);
	struct dtrace_memory *memory = job->memory;
	struct mm_struct *mm = memory->mm;

	kthread_use_mm(mm);
	job->error = dtrace_area_map(job->area, mm, job->address, &job->patience);
	if (atomic_cmpxchg(&job->state, DTRACE_AREA_WANTED, DTRACE_AREA_MAPPED) == DTRACE_AREA_WANTED) {
		/* The caller frees the job, so it is not touched after complete(). */
		WRITE_ONCE(memory->maps, false);
		complete(&job->done);
	} else {
		if (!job->error)
			dtrace_area_take(job->area, mm);
		dtrace_area_free(job->area);
		kfree(job);
		WRITE_ONCE(memory->maps, false);
	}
	kthread_unuse_mm(mm);
	mmput(mm);
	dtrace_memory_put(memory);
	dtrace_job_over();
}

/* Whether the job was done in time. If not, the worker frees the job. */
static bool dtrace_area_wait(struct dtrace_area_job *job, struct dtrace_patience *patience)
{
	if (dtrace_patience_await(patience, &job->done))
		return true;
	if (atomic_cmpxchg(&job->state, DTRACE_AREA_WANTED, DTRACE_AREA_UNWANTED) == DTRACE_AREA_WANTED)
		return false;
	/* The worker has finished after all, and is about to call complete(). */
	wait_for_completion(&job->done);
	return true;
}

/*
 * Number of the region that an address is in. A region without room for one area is taken to be
 * full, because thousands of instructions may each need an area, and the search passes over many
 * mappings.
 */
static u64 dtrace_area_region(u64 address)
{
	return address / DTRACE_AREA_REGION + 1;
}

/*
 * Makes and maps another area within reach of an address. -ETIMEDOUT: the program has held its
 * mappings for too long. The caller holds the memory's lock, not its mmap lock. May sleep.
 */
struct dtrace_area *dtrace_area_make(struct dtrace_memory *memory, u64 address, struct dtrace_patience *patience)
{
	struct dtrace_area_job *job;
	struct dtrace_area *area;
	int error;

	/* One job that its caller has left is enough for each memory. */
	if (READ_ONCE(memory->maps) || dtrace_patience_is_spent(patience))
		return ERR_PTR(-ETIMEDOUT);
	if (patience->full == dtrace_area_region(address))
		return ERR_PTR(-ENOSPC);
	job = dtrace_area_job_make(memory, address);
	if (!job)
		return ERR_PTR(-ENOMEM);
	area = job->area;
	WRITE_ONCE(memory->maps, true);
	refcount_inc(&memory->count);
	mmget(memory->mm);
	INIT_WORK(&job->work, dtrace_area_work);
	job->patience.until = jiffies + dtrace_patience_left(patience);
	dtrace_job_begin(&job->work);
	if (!dtrace_area_wait(job, patience))
		return ERR_PTR(-ETIMEDOUT);
	error = job->error;
	kfree(job);
	if (error == -ENOSPC)
		patience->full = dtrace_area_region(address);
	if (error)
		dtrace_area_free(area);
	return error ? ERR_PTR(error) : area;
}

/*
 * Writes a slot that nobody executes yet. The pages of a kept breakpoint's slot are allocated
 * without waiting.
 */
int dtrace_area_write(struct dtrace_area *area, u64 slot, const u8 *bytes, size_t size, bool is_kept)
{
	gfp_t gfp = is_kept ? GFP_NOWAIT | __GFP_NOWARN : GFP_KERNEL;
	u64 offset = slot - area->start;
	struct page *page = shmem_read_mapping_page_gfp(area->file->f_mapping, offset >> PAGE_SHIFT, gfp);

	if (IS_ERR(page))
		return PTR_ERR(page);
	memcpy_to_page(page, offset_in_page(offset), bytes, size);
	set_page_dirty_lock(page);
	put_page(page);
	return 0;
}

/*
 * Unmaps an area that no thread is in, unless the program has sealed it. False: that cannot be done
 * now. Runs in the memory's worker.
 */
bool dtrace_area_unmap(struct dtrace_area *area, struct mm_struct *mm, struct dtrace_patience *patience)
{
	int error;

	if (!dtrace_mappings_are_free(mm, patience))
		return false;
	kthread_use_mm(mm);
	error = dtrace_area_take(area, mm);
	kthread_unuse_mm(mm);
	return !error || error == -EPERM;
}

/*
 * Whether the program still has the area mapped at this address. May be wrong while its mappings
 * are being changed. In any context.
 */
bool dtrace_area_has(const struct dtrace_area *area, struct mm_struct *mm, u64 address)
{
	guard(rcu)();
	return dtrace_area_is_in(area, vma_lookup(mm, address), address);
}

/* Frees an area that nobody looks at any more. If it is mapped, the mapping stays. */
void dtrace_area_free(struct dtrace_area *area)
{
	unsigned int n;

	for (n = 0; n < ARRAY_SIZE(area->pages); n++)
		kfree(area->pages[n]);
	dtrace_uncharged_gone(&area->uncharged);
	if (area->file)
		fput(area->file);
	kfree(area);
}
