// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Bringing the pages that breakpoints are to be written to.
 *
 * That can take as long as a program likes: what it gets is charged to its group of processes, and text may be in a file that another program answers
 * for (of such a file users have no places). So a worker does it, and who asks for it, with locks that everybody needs, does not wait for ever
 * (patience.c). One that nobody waits for any more ends as soon as it can; until then the memory gets no other.
 *
 * The worker finds counters as well (counters.c): it has the time to look through all mappings.
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

/* How many may be at work that users have asked for. What is not waited for any more is among them. */
#define DTRACE_BRINGINGS_OF_USERS 256
/* Pages that are brought before others get the lock of the mappings. */
#define DTRACE_BRING_PAGES 64

/* What is wanted for one breakpoint. */
struct dtrace_wanted {
	u64 address;
	/* What the text is of, and where in it; none: see dtrace_is_bare(). */
	struct file *file;
	u64 offset;
	/* A counter in the file, and where the memory has it; 0: none, or nowhere. */
	u64 counter, counter_at;
	int error;
};

struct dtrace_bringing {
	struct work_struct work;
	struct completion done;
	/* Of the worker and who waits. */
	refcount_t count;
	struct dtrace_memory *memory;
	struct dtrace_patience patience;
	int error;
	/* How many have been seen to. */
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

/* Where the counter is that a breakpoint counts in, or one that the memory has inherited has counted in. */
static void dtrace_wanted_count(struct dtrace_memory *memory, struct vm_area_struct *vma, struct dtrace_wanted *wanted)
{
	struct dtrace_known *known = vma && memory->inherited ? dtrace_known_at(vma, wanted->address) : NULL;

	if (!wanted->counter && known)
		wanted->counter = READ_ONCE(known->counter);
	if (wanted->counter)
		wanted->counter_at = dtrace_counter_at(memory->mm, wanted->file, wanted->counter);
}

/* Makes a page the memory's own. *locked: whether the lock of its mappings is still held. */
static int dtrace_bring_page(struct mm_struct *mm, u64 address, unsigned int flags, int *locked)
{
	struct vm_area_struct *vma = vma_lookup(mm, address);
	struct page *page;
	long got;

	/* Who has a userfaultfd need not answer. */
	if (!vma || userfaultfd_armed(vma))
		return -EFAULT;
	got = get_user_pages_remote(mm, address & PAGE_MASK, 1, FOLL_WRITE | flags, &page, locked);
	if (got == 1)
		put_page(page);
	return got == 1 ? 0 : got < 0 ? got : -EFAULT;
}

/* Brings what one breakpoint needs. The lock is held, and may be given up. Whether it is to be tried again. */
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
	/* Where the counter is by now nobody knows. */
	if (wanted->counter_at && !*locked)
		return true;
	if (!wanted->error && wanted->counter_at)
		wanted->error = dtrace_bring_page(mm, wanted->counter_at, 0, locked);
	return false;
}

/* Whether another one before has had the same page brought, and nothing else is wanted. They come in the order of their addresses. */
static bool dtrace_wanted_is_there(const struct dtrace_bringing *bringing, size_t n)
{
	const struct dtrace_wanted *wanted = &bringing->wanted[n];

	return n && !wanted->counter && !bringing->memory->inherited && !wanted[-1].error && wanted[-1].file == wanted->file &&
	       wanted[-1].address >> PAGE_SHIFT == wanted->address >> PAGE_SHIFT;
}

/* Whether nobody wants it any more: who has waited, or the program. */
static bool dtrace_bringing_is_over(struct dtrace_bringing *bringing)
{
	return refcount_read(&bringing->count) == 1 || atomic_read(&bringing->memory->mm->mm_users) == 1;
}

/* How often one is tried that is given up in the middle. */
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

/* Has a worker do it. It has users of the memory, and the memory. */
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

/* Tells carriers what the worker has found. */
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
 * Has the pages of breakpoints brought, which are in the order of their addresses, and has them know where their counters are. The memory has users
 * meanwhile. ETIMEDOUT: the program has kept that waiting for too long.
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
