// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Brings the pages that breakpoints are to be written to (INV-46).
 *
 * That may take as long as the program likes: its pages are charged to its cgroup, and its text may
 * be in a file that another program serves (members have no places in such a file). So a worker
 * brings them, and the caller, which holds locks that all consumers need, waits for a limited time
 * only (patience.c). A job that its caller has left ends as soon as it can; until then the memory
 * gets no other job.
 *
 * The worker also finds counters (counters.c), because that takes a walk over all mappings.
 */

#include <linux/completion.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/refcount.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/userfaultfd_k.h>
#include <linux/workqueue.h>

#include "own.h"

/*
 * Largest number of jobs that work for members at a time, including those that their callers have
 * left.
 */
#define DTRACE_BRINGINGS_OF_USERS 256
/* Number of breakpoints that are seen to before the mmap lock is given up for others. */
#define DTRACE_BRING_PAGES 64

/* What one breakpoint needs. */
struct dtrace_wanted {
	u64 address;
	/* File of the text, and offset in it. No file: see dtrace_is_bare(). */
	struct file *file;
	u64 offset;
	/* Offset of a counter in the file, and its address in the memory; 0: none, or nowhere. */
	u64 counter, counter_at;
	int error;
};

struct dtrace_bringing {
	struct work_struct work;
	struct completion done;
	/* One reference of the worker and one of the caller. */
	refcount_t count;
	struct dtrace_memory *memory;
	struct dtrace_patience patience;
	int error;
	/* Number of entries, and of those that have been seen to. */
	size_t size, done_with;
	struct dtrace_wanted wanted[] __counted_by(size);
};

static atomic_t dtrace_bringings_of_users = ATOMIC_INIT(0);

static void dtrace_bringing_put(struct dtrace_bringing *bringing)
{
	size_t n;

	if (!refcount_dec_and_test(&bringing->count))
		return;
	for (n = 0; n < bringing->size; n++)
		if (bringing->wanted[n].file)
			fput(bringing->wanted[n].file);
	kvfree(bringing);
}

/*
 * Finds the address of the counter that the breakpoint counts in, or that one which the memory has
 * inherited has counted in.
 */
static void dtrace_wanted_count(struct dtrace_memory *memory, struct vm_area_struct *vma, struct dtrace_wanted *wanted)
{
	struct dtrace_known *known = vma && memory->inherited ? dtrace_known_at(vma, wanted->address) : NULL;

	if (!wanted->counter && known)
		wanted->counter = READ_ONCE(known->counter);
	if (wanted->counter)
		wanted->counter_at = dtrace_counter_at(memory->mm, wanted->file, wanted->counter);
}

/* Makes a page the memory's own. *locked becomes 0 if the mmap lock was given up. */
static int dtrace_bring_page(struct mm_struct *mm, u64 address, unsigned int flags, int *locked)
{
	struct vm_area_struct *vma = vma_lookup(mm, address);
	struct page *page;
	long got;

	/* With a userfaultfd the page might never come. */
	if (!vma || userfaultfd_armed(vma))
		return -EFAULT;
	got = get_user_pages_remote(mm, address & PAGE_MASK, 1, FOLL_WRITE | flags, &page, locked);
	if (got == 1)
		put_page(page);
	return got == 1 ? 0 : got < 0 ? got : -EFAULT;
}

/*
 * Brings what one breakpoint needs. The mmap lock is held for reading, and may be given up. Returns
 * whether to try again.
 */
static bool dtrace_bring_one(struct dtrace_memory *memory, struct dtrace_wanted *wanted, int *locked)
{
	struct mm_struct *mm = memory->mm;
	struct vm_area_struct *vma = vma_lookup(mm, wanted->address);
	bool is_in = dtrace_has_text_at(vma, wanted->address, wanted->file, wanted->offset);

	wanted->error = 0;
	wanted->counter_at = 0;
	if (wanted->file)
		dtrace_wanted_count(memory, is_in ? vma : NULL, wanted);
	if (is_in)
		wanted->error = dtrace_bring_page(mm, wanted->address, FOLL_FORCE, locked);
	/* The lock was given up, so the counter may have moved. */
	if (wanted->counter_at && !*locked)
		return true;
	if (!wanted->error && wanted->counter_at)
		wanted->error = dtrace_bring_page(mm, wanted->counter_at, 0, locked);
	return false;
}

/*
 * Whether the entry before has brought the same page, and nothing else is needed. Entries are in
 * the order of their addresses.
 */
static bool dtrace_wanted_is_there(const struct dtrace_bringing *bringing, size_t n)
{
	const struct dtrace_wanted *wanted = &bringing->wanted[n];

	return n && !wanted->counter && !bringing->memory->inherited && !wanted[-1].error && wanted[-1].file == wanted->file &&
	       wanted[-1].address >> PAGE_SHIFT == wanted->address >> PAGE_SHIFT;
}

/* Whether nobody wants the pages any more: the caller has left, or the process has ended. */
static bool dtrace_bringing_is_over(struct dtrace_bringing *bringing)
{
	return refcount_read(&bringing->count) == 1 || atomic_read(&bringing->memory->mm->mm_users) == 1;
}

/* How often one breakpoint is tried if the mmap lock was given up in the middle. */
#define DTRACE_BRING_TRIES 3

static int dtrace_bring_all(struct dtrace_bringing *bringing)
{
	struct mm_struct *mm = bringing->memory->mm;
	unsigned int tries = 0;
	int locked = 0;
	size_t n = 0;

	for (; n < bringing->size && !dtrace_bringing_is_over(bringing); bringing->done_with = n) {
		if (dtrace_wanted_is_there(bringing, n)) {
			n++;
			continue;
		}
		if (!locked && !dtrace_mappings_lock(mm, &bringing->patience))
			return -ETIMEDOUT;
		locked = 1;
		if (dtrace_bring_one(bringing->memory, &bringing->wanted[n], &locked) && ++tries < DTRACE_BRING_TRIES)
			continue;
		tries = 0;
		n++;
		if (locked && !(n % DTRACE_BRING_PAGES)) {
			mmap_read_unlock(mm);
			locked = 0;
		}
		cond_resched();
	}
	if (locked)
		mmap_read_unlock(mm);
	return n < bringing->size ? -ETIMEDOUT : 0;
}

static void dtrace_bringing_work(struct work_struct *work)
{
	struct dtrace_bringing *bringing = container_of(work, struct dtrace_bringing, work);
	struct dtrace_memory *memory = bringing->memory;

	bringing->error = dtrace_bring_all(bringing);
	if (bringing->patience.users)
		atomic_dec(&dtrace_bringings_of_users);
	mmput(memory->mm);
	WRITE_ONCE(memory->brings, false);
	dtrace_memory_put(memory);
	complete(&bringing->done);
	dtrace_bringing_put(bringing);
	dtrace_job_over();
}

static struct dtrace_bringing *dtrace_bringing_make(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count)
{
	struct dtrace_bringing *bringing = kvzalloc(struct_size(bringing, wanted, count), GFP_KERNEL);
	size_t n;

	if (!bringing)
		return NULL;
	bringing->size = count;
	bringing->memory = memory;
	refcount_set(&bringing->count, 2);
	init_completion(&bringing->done);
	INIT_WORK(&bringing->work, dtrace_bringing_work);
	for (n = 0; n < count; n++)
		bringing->wanted[n] = (struct dtrace_wanted){
			.address = all[n]->spot.address,
			.file = all[n]->file ? get_file(all[n]->file) : NULL,
			.offset = all[n]->offset,
			.counter = all[n]->counter,
		};
	return bringing;
}

/* Starts the job. It holds a reference to the memory's structure, and to its users (mmget()). */
static void dtrace_bringing_begin(struct dtrace_bringing *bringing, struct dtrace_patience *patience)
{
	bringing->patience = (struct dtrace_patience){
		.users = patience->users,
		.until = jiffies + dtrace_patience_left(patience),
	};
	refcount_inc(&bringing->memory->count);
	mmget(bringing->memory->mm);
	if (patience->users)
		atomic_inc(&dtrace_bringings_of_users);
	dtrace_job_begin(&bringing->work);
}

/* Notes in the carriers what the worker has found. */
static void dtrace_bringing_tell(const struct dtrace_bringing *bringing, struct dtrace_carrier **all)
{
	size_t n;

	for (n = 0; n < bringing->done_with; n++) {
		const struct dtrace_wanted *wanted = &bringing->wanted[n];

		all[n]->counter_at = wanted->counter_at;
		all[n]->sought = true;
		if (wanted->error && all[n]->state == DTRACE_UNSET)
			all[n]->error = wanted->error;
	}
}

/*
 * Brings the pages of breakpoints, which are in the order of their addresses, and finds their
 * counters. The caller holds the memory's lock and a user reference (mmget()). -ETIMEDOUT: the
 * program has held this up for too long. May sleep.
 */
int dtrace_bring(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count, struct dtrace_patience *patience)
{
	struct dtrace_bringing *bringing;
	int error = -ETIMEDOUT;

	if (patience->users && atomic_read(&dtrace_bringings_of_users) >= DTRACE_BRINGINGS_OF_USERS)
		return -ETIMEDOUT;
	while (xchg(&memory->brings, true))
		if (dtrace_patience_ends(patience))
			return -ETIMEDOUT;
	bringing = dtrace_bringing_make(memory, all, count);
	if (!bringing) {
		WRITE_ONCE(memory->brings, false);
		return -ENOMEM;
	}
	dtrace_bringing_begin(bringing, patience);
	if (dtrace_patience_await(patience, &bringing->done)) {
		error = bringing->error;
		dtrace_bringing_tell(bringing, all);
	}
	dtrace_bringing_put(bringing);
	return error;
}

/* Brings the pages of those carriers for which which() is true, as dtrace_bring(). */
int dtrace_own_bring(struct dtrace_memory *memory, struct dtrace_carrier **all, size_t count,
		     bool (*which)(const struct dtrace_carrier *carrier), struct dtrace_patience *patience)
{
	struct dtrace_carrier **own = kvmalloc_array(count, sizeof(*own), GFP_KERNEL);
	size_t n, many = 0;
	int error = 0;

	if (!own)
		return -ENOMEM;
	for (n = 0; n < count; n++)
		if (which(all[n]))
			own[many++] = all[n];
	if (many)
		error = dtrace_bring(memory, own, many, patience);
	kvfree(own);
	return error;
}
