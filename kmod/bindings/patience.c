// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Waiting for programs.
 *
 * A program can have the lock of its mappings held for as long as it likes: one of its threads, in a call that keeps the lock, waits for a page
 * that another program serves. Who writes breakpoints holds locks that everybody needs, so it waits until some time and no longer.
 * A breakpoint that cannot be set by then is not set. One that cannot be taken away is left behind: it is answered as before, fires nothing,
 * and a worker of that one memory takes it away, which waits as long as it takes.
 */

#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/mmap_lock.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "own.h"

/*
 * How long is waited at a time, jiffies: for what users have asked for, and for what somebody has who sees everything. Who has waited in
 * vain does not wait for ten times as long from then on, but looks once: there may be thousands of such programs.
 */
#define DTRACE_PATIENCE_USERS (HZ / 10)
#define DTRACE_PATIENCE (5 * HZ)
#define DTRACE_PATIENCE_REST 10
#define DTRACE_PATIENCE_BITS 6
/* Between two looks at a lock, µs. */
#define DTRACE_PATIENCE_STEP 200

/* Each memory whose program keeps it waiting has one of its workers. */
static struct workqueue_struct *dtrace_programs;

static DEFINE_SPINLOCK(dtrace_left_lock);

/* Until when those do not wait who have waited in vain, users by their numbers. Whoever changes it holds the framework's lock. */
static unsigned long dtrace_patience_rests[1 << DTRACE_PATIENCE_BITS], dtrace_patience_rests_root;

/* For the programs of these, for which the current one asks. */
struct dtrace_patience dtrace_patience_for(struct dtrace_carrier **all, size_t count)
{
	struct dtrace_patience patience;
	bool users = true;
	size_t n;

	for (n = 0; n < count; n++)
		users &= all[n]->kept;
	patience = (struct dtrace_patience){
		.time = users ? DTRACE_PATIENCE_USERS : DTRACE_PATIENCE,
		.rests = users ? &dtrace_patience_rests[hash_32(__kuid_val(current_uid()), DTRACE_PATIENCE_BITS)]
			       : &dtrace_patience_rests_root,
	};
	if (*patience.rests && time_before(jiffies, *patience.rests))
		patience.time = 0;
	patience.until = jiffies + patience.time;
	return patience;
}

/* For the current program: only it waits. */
struct dtrace_patience dtrace_patience_own(void)
{
	return (struct dtrace_patience){ .until = jiffies + DTRACE_PATIENCE };
}

/* Whether somebody who waits is to give up. */
bool dtrace_patience_ends(struct dtrace_patience *patience)
{
	if (patience->endless || time_before(jiffies, patience->until))
		return false;
	if (patience->time)
		*patience->rests = (jiffies + DTRACE_PATIENCE_REST * patience->time) ?: 1;
	return true;
}

/* Locks a memory. */
bool dtrace_memory_lock(struct dtrace_memory *memory, struct dtrace_patience *patience)
{
	if (patience->endless) {
		mutex_lock(&memory->lock);
		return true;
	}
	while (!mutex_trylock(&memory->lock)) {
		if (dtrace_patience_ends(patience))
			return false;
		fsleep(DTRACE_PATIENCE_STEP);
	}
	return true;
}

/* Locks its mappings for reading. */
bool dtrace_mappings_lock(struct mm_struct *mm, struct dtrace_patience *patience)
{
	if (patience->endless) {
		mmap_read_lock(mm);
		return true;
	}
	while (!mmap_read_trylock(mm)) {
		if (dtrace_patience_ends(patience))
			return false;
		fsleep(DTRACE_PATIENCE_STEP);
	}
	return true;
}

bool dtrace_programs_queue(struct work_struct *work)
{
	return queue_work(dtrace_programs, work);
}

/* Has a memory's worker look at it. The caller has a reference. Does not sleep. */
void dtrace_memory_see(struct dtrace_memory *memory)
{
	/* The worker's. */
	refcount_inc(&memory->count);
	if (!dtrace_programs_queue(&memory->work))
		dtrace_memory_put(memory);
}

/* Has a breakpoint that was left behind taken away, and freed. */
void dtrace_carrier_leave(struct dtrace_carrier *carrier)
{
	struct dtrace_memory *memory = carrier->memory;

	spin_lock(&dtrace_left_lock);
	list_add_tail(&carrier->left, &memory->left);
	/* As long as it is on the list it refers to the memory. */
	dtrace_memory_see(memory);
	spin_unlock(&dtrace_left_lock);
}

/* Takes away what was left behind in a memory. In its worker. */
void dtrace_left_clear(struct dtrace_memory *memory)
{
	struct dtrace_carrier *carrier, *next;
	struct dtrace_patience patience = { .endless = true };
	bool uprobes = false;
	LIST_HEAD(left);

	spin_lock(&dtrace_left_lock);
	list_splice_init(&memory->left, &left);
	spin_unlock(&dtrace_left_lock);
	if (list_empty(&left))
		return;
	list_for_each_entry(carrier, &left, left)
		uprobes |= dtrace_carriers_take(&carrier, 1, &patience);
	dtrace_carriers_sync(uprobes);
	list_for_each_entry_safe(carrier, next, &left, left)
		carrier->free(carrier);
}

int dtrace_programs_init(void)
{
	dtrace_programs = alloc_workqueue("dtrace_programs", WQ_UNBOUND, WQ_MAX_ACTIVE);
	return dtrace_programs ? 0 : -ENOMEM;
}

/* Waits for all workers. */
void dtrace_programs_wait(void)
{
	flush_workqueue(dtrace_programs);
}

void dtrace_programs_exit(void)
{
	destroy_workqueue(dtrace_programs);
}
