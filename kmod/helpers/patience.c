// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Waiting for programs (INV-46).
 *
 * A program can have the lock of its mappings held for as long as it likes: one of its threads, in
 * a call that keeps the lock, waits for a page that another program serves. A task that writes
 * breakpoints holds locks that everybody needs, so it waits for a limited time. A breakpoint that
 * cannot be set by then is not set. One that cannot be taken away is left behind: it is answered as
 * before and fires nothing, and a worker of that one memory takes it away. The worker has a time
 * limit too, and comes again a second later.
 *
 * What can take long for other reasons as well is a job of a worker, which the caller leaves when
 * its time is over (areas.c, bring.c).
 */

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/mmap_lock.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "own.h"

/*
 * How long a caller waits for locks at a time, in jiffies: for members' work (USERS), and for work
 * that a trusted consumer has requested. There may be thousands of programs that hold their locks.
 * So after members' work has waited, it does not wait for DTRACE_PATIENCE_USERS_REST times as long,
 * but looks once; other work waits only DTRACE_PATIENCE_LESS for as long as it had waited.
 */
#define DTRACE_PATIENCE_USERS (HZ / 10)
#define DTRACE_PATIENCE_USERS_REST 10
#define DTRACE_PATIENCE (5 * HZ)
#define DTRACE_PATIENCE_LESS (HZ / 20)
/*
 * How long a caller waits for jobs in addition, in jiffies, because workers may start late on a
 * busy machine: a tenth of the time (DTRACE_SPARE_PART), and DTRACE_SPARE at a time. A caller that
 * has nothing left waits for DTRACE_SPARE_LEAST ticks, which is enough if nothing is in the way,
 * for each of DTRACE_SPARE_LATE jobs.
 */
#define DTRACE_SPARE (HZ / 2)
#define DTRACE_SPARE_PART 10
#define DTRACE_SPARE_LEAST 2
#define DTRACE_SPARE_LATE 8
/* Time between two looks at a lock, in µs. */
#define DTRACE_PATIENCE_STEP 200

/* The queue of the memories' workers, and that of the jobs that they or others request. */
static struct workqueue_struct *dtrace_programs, *dtrace_jobs;
/* Number of jobs. */
static atomic_t dtrace_jobs_count = ATOMIC_INIT(0);

static DEFINE_SPINLOCK(dtrace_left_lock);
/* Number of breakpoints that are left behind. */
static atomic_t dtrace_left = ATOMIC_INIT(0);

/*
 * Until when waits are shortened, in jiffies; 0: they are not. Protected by the framework's mutex.
 */
static unsigned long dtrace_patience_users_rest, dtrace_patience_rest;

/*
 * What is left to wait for jobs, and when that was so: for other work and for members' work.
 * Protected by the framework's mutex.
 */
static struct {
	unsigned long left, when;
} dtrace_spare[2];

static long dtrace_spare_left(bool users)
{
	unsigned long since = (jiffies - dtrace_spare[users].when) / DTRACE_SPARE_PART;

	return min(dtrace_spare[users].left + since, DTRACE_SPARE);
}

/*
 * How long to wait for the programs of these carriers. If `count` is 0, as long as members' work
 * may. The framework's mutex is held.
 */
struct dtrace_patience dtrace_patience_for(struct dtrace_carrier **all, size_t count)
{
	unsigned long time, rest;
	bool users = true;
	size_t n;

	for (n = 0; n < count; n++)
		users &= all[n]->kept;
	rest = users ? dtrace_patience_users_rest : dtrace_patience_rest;
	time = users ? DTRACE_PATIENCE_USERS : DTRACE_PATIENCE;
	if (rest && time_before(jiffies, rest))
		time = users ? 0 : DTRACE_PATIENCE_LESS;
	return (struct dtrace_patience){
		.users = users,
		.until = jiffies + time,
		.spare = dtrace_spare_left(users),
	};
}

/* Makes a rest last until `until` at least. */
static void dtrace_patience_rests(unsigned long *rest, unsigned long until)
{
	if (!*rest || time_after(until, *rest))
		*rest = until ?: 1;
}

/*
 * Shortens the waits that follow after this one, whether it was in vain or not. The framework's
 * mutex is held.
 */
void dtrace_patience_over(const struct dtrace_patience *patience)
{
	unsigned long now = jiffies;

	dtrace_spare[patience->users].left = patience->spare;
	/* What was less than a tick of the reserve is kept: calls may follow one another closely. */
	dtrace_spare[patience->users].when = now - (now - dtrace_spare[patience->users].when) % DTRACE_SPARE_PART;
	if (patience->waited && patience->users)
		dtrace_patience_rests(&dtrace_patience_users_rest, now + DTRACE_PATIENCE_USERS_REST * patience->waited);
	else if (patience->waited > DTRACE_PATIENCE_LESS)
		dtrace_patience_rests(&dtrace_patience_rest, now + patience->waited);
}

/* For a caller that nobody waits for. */
struct dtrace_patience dtrace_patience_own(void)
{
	return (struct dtrace_patience){ .alone = true, .until = jiffies + DTRACE_PATIENCE_USERS };
}

/* For a caller that holds no lock that others need, and may be killed. */
struct dtrace_patience dtrace_patience_asked(void)
{
	return (struct dtrace_patience){ .killable = true, .until = jiffies + DTRACE_PATIENCE };
}

/*
 * Sleeps a tick, because a thread is in the way; false: it is time to give up. The time is not
 * added to `waited`, because the program does not hold its lock.
 */
bool dtrace_patience_tick(struct dtrace_patience *patience)
{
	if (!time_before(jiffies, patience->until))
		return false;
	schedule_timeout_uninterruptible(1);
	return true;
}

/* Whether it is time to give up; sleeps a little if not. */
bool dtrace_patience_ends(struct dtrace_patience *patience)
{
	unsigned long since = jiffies;

	if (!time_before(since, patience->until) || (patience->killable && fatal_signal_pending(current)))
		return true;
	fsleep(DTRACE_PATIENCE_STEP);
	patience->waited += jiffies - since;
	return false;
}

/* How long to wait for a job, in jiffies. */
unsigned long dtrace_patience_left(const struct dtrace_patience *patience)
{
	long left = patience->until - jiffies;

	return max3(left, patience->spare, (long)DTRACE_SPARE_LEAST);
}

/*
 * Waits for a job. Returns whether it was done in time. A job that is done within
 * DTRACE_PATIENCE_LESS does not count as a wait.
 */
bool dtrace_patience_await(struct dtrace_patience *patience, struct completion *done)
{
	unsigned long since = jiffies, took;
	long left = patience->until - since, spent;
	bool is_done = wait_for_completion_timeout(done, dtrace_patience_left(patience));

	took = jiffies - since;
	/* At least a tick for each job, because many may take less than a tick. */
	spent = left > 0 ? (long)took - left : max((long)took, 1L);
	patience->late += left <= 0 && spent >= patience->spare;
	patience->spare -= clamp(spent, 0L, patience->spare);
	if (!is_done || took > DTRACE_PATIENCE_LESS)
		patience->waited += took;
	return is_done;
}

/* Whether there is no time for another job. */
bool dtrace_patience_is_spent(const struct dtrace_patience *patience)
{
	return patience->late >= DTRACE_SPARE_LATE && !time_before(jiffies, patience->until);
}

/* Takes a memory's lock; false: not in time. */
bool dtrace_memory_lock(struct dtrace_memory *memory, struct dtrace_patience *patience)
{
	while (!mutex_trylock(&memory->lock))
		if (dtrace_patience_ends(patience))
			return false;
	return true;
}

/* Takes the mmap lock for reading; false: not in time. */
bool dtrace_mappings_lock(struct mm_struct *mm, struct dtrace_patience *patience)
{
	while (!mmap_read_trylock(mm))
		if (dtrace_patience_ends(patience))
			return false;
	return true;
}

/*
 * Whether the mmap lock can be taken for writing at once. A change that follows waits only if the
 * program takes the lock again in between.
 */
bool dtrace_mappings_are_free(struct mm_struct *mm, struct dtrace_patience *patience)
{
	/*
	 * The rwsem itself: nothing is changed, so the sequence count, which mmap_write_lock()
	 * would change, stays valid for readers without the lock.
	 */
	while (!down_write_trylock(&mm->mmap_lock))
		if (dtrace_patience_ends(patience))
			return false;
	up_write(&mm->mmap_lock);
	return true;
}

/* Queues a job, which is to call dtrace_job_over() last. */
void dtrace_job_begin(struct work_struct *work)
{
	atomic_inc(&dtrace_jobs_count);
	queue_work(dtrace_jobs, work);
}

void dtrace_job_over(void)
{
	atomic_dec(&dtrace_jobs_count);
}

/*
 * Queues the worker of a memory. The caller holds a reference or a lock that keeps the memory. Does
 * not sleep.
 */
void dtrace_memory_see(struct dtrace_memory *memory)
{
	/* The worker puts this one. */
	refcount_inc(&memory->count);
	if (!queue_work(dtrace_programs, &memory->work))
		dtrace_memory_put(memory);
}

/* Has the memory's worker take away a breakpoint that was left behind, and free its carrier. */
void dtrace_carrier_leave(struct dtrace_carrier *carrier)
{
	struct dtrace_memory *memory = carrier->memory;

	atomic_inc(&dtrace_left);
	spin_lock(&dtrace_left_lock);
	list_add_tail(&carrier->left, &memory->left);
	/*
	 * A carrier on this list holds a reference to the memory, and the worker takes it off under
	 * the lock.
	 */
	dtrace_memory_see(memory);
	spin_unlock(&dtrace_left_lock);
}

static int dtrace_left_compare(const void *one, const void *other)
{
	u64 a = (*(struct dtrace_carrier *const *)one)->spot.address, b = (*(struct dtrace_carrier *const *)other)->spot.address;

	return a < b ? -1 : a > b;
}

/*
 * Takes away breakpoints of one memory, all at once if there is memory for an array. Returns
 * whether uprobes carried any.
 */
static bool dtrace_left_take(struct list_head *left, struct dtrace_patience *patience)
{
	size_t count = list_count_nodes(left), n = 0;
	struct dtrace_carrier **all = kvmalloc_array(count, sizeof(*all), GFP_KERNEL);
	struct dtrace_carrier *carrier;
	bool uprobes = false;

	list_for_each_entry(carrier, left, left)
		if (all)
			all[n++] = carrier;
		else
			uprobes |= dtrace_carriers_take(&carrier, 1, patience);
	if (!all)
		return uprobes;
	sort(all, count, sizeof(*all), dtrace_left_compare, NULL);
	uprobes = dtrace_carriers_take(all, count, patience);
	kvfree(all);
	return uprobes;
}

/*
 * Takes away what was left behind in a memory, as far as possible; marks the memory as stale if
 * some is left. Runs in the memory's worker.
 */
void dtrace_left_clear(struct dtrace_memory *memory)
{
	struct dtrace_patience patience = dtrace_patience_own();
	struct dtrace_carrier *carrier, *next;
	bool uprobes = false;
	LIST_HEAD(left);
	LIST_HEAD(gone);

	spin_lock(&dtrace_left_lock);
	list_splice_init(&memory->left, &left);
	spin_unlock(&dtrace_left_lock);
	uprobes = dtrace_left_take(&left, &patience);
	list_for_each_entry_safe(carrier, next, &left, left)
		if (!carrier->stays)
			list_move_tail(&carrier->left, &gone);
	if (!list_empty(&left)) {
		spin_lock(&dtrace_left_lock);
		list_splice(&left, &memory->left);
		spin_unlock(&dtrace_left_lock);
		WRITE_ONCE(memory->stale, true);
	}
	if (list_empty(&gone))
		return;
	dtrace_carriers_sync(uprobes);
	list_for_each_entry_safe(carrier, next, &gone, left) {
		carrier->free(carrier);
		atomic_dec(&dtrace_left);
	}
}

/*
 * Waits until nothing is left behind and no job is under way. Called by rmmod; an idle wait is not
 * taken for a hung task.
 */
void dtrace_left_wait(void)
{
	while (atomic_read(&dtrace_left) || atomic_read(&dtrace_jobs_count))
		schedule_timeout_idle(HZ / 10);
}

int dtrace_programs_init(void)
{
	dtrace_programs = alloc_workqueue("dtrace_programs", WQ_UNBOUND, WQ_MAX_ACTIVE);
	if (!dtrace_programs)
		return -ENOMEM;
	dtrace_jobs = alloc_workqueue("dtrace_jobs", WQ_UNBOUND, WQ_MAX_ACTIVE);
	if (dtrace_jobs)
		return 0;
	destroy_workqueue(dtrace_programs);
	return -ENOMEM;
}

/* Waits for all workers. */
void dtrace_programs_wait(void)
{
	flush_workqueue(dtrace_programs);
	flush_workqueue(dtrace_jobs);
}

void dtrace_programs_exit(void)
{
	destroy_workqueue(dtrace_programs);
	destroy_workqueue(dtrace_jobs);
}
