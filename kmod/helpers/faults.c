// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of faults.h.
 *
 * A page may take long: its disk is slow, or it belongs to a file system or a userfaultfd(2) whose
 * server does not answer. Nobody waits for such a page here as a fault would. It is requested
 * without waiting (FOLL_NOWAIT), which starts any reading, and requested again a little later
 * (INV-47).
 *
 * If a breakpoint has stopped the program in the exception, the program waits in task work on its
 * way to user mode, in no handler that anybody else waits for, and then comes to its breakpoint
 * again. What was tried is noted under its task in a table of fixed size, so that nothing is tried
 * twice in vain. A task that finds no room in the table goes on without the page.
 */

#include <linux/atomic.h>
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/userfaultfd_k.h>

#include "faults.h"
#include "pause.h"
#include "percpu.h"
#include "processes.h"
#include "user.h"

/* Most pages that one call brings. */
#define DTRACE_BRING_PAGES 16
/*
 * How often a program comes back to one instruction, and how often for the same memory: another
 * thread may take that away again.
 */
#define DTRACE_BRING_TRIES 64
#define DTRACE_BRING_AGAIN 16
/* How long a task waits for memory, in jiffies. */
#define DTRACE_BRING_TIME HZ
#define DTRACE_BRINGS_BITS 8
/* Number of table entries that a task may use, from the one that it hashes to. */
#define DTRACE_BRINGS_NEAR 8

/* What has been tried for a task. */
struct dtrace_bring {
	struct callback_head work;
	/* Only compared, never dereferenced: the task may have gone. */
	struct task_struct *task;
	/* Address of the instruction. */
	u64 ip;
	u64 addr;
	u64 size;
	/* An enum dtrace_use. */
	u32 use;
	unsigned long since;
	unsigned int tries;
	/* How many tries in a row were for this memory. */
	unsigned int again;
	bool queued;
	bool in_vain;
};

static struct dtrace_bring dtrace_brings[1 << DTRACE_BRINGS_BITS];
/* Number of entries in use. */
atomic_t dtrace_brings_taken = ATOMIC_INIT(0);
static DEFINE_RAW_SPINLOCK(dtrace_brings_lock);

/* Whether a stack may grow down to an address. The mmap lock is held. */
static bool dtrace_is_below_stack(u64 addr)
{
	struct vm_area_struct *vma = find_vma(current->mm, addr);

	return vma && addr < vma->vm_start && vma->vm_flags & VM_GROWSDOWN && !userfaultfd_armed(vma);
}

/*
 * Touches an address as the instruction will, and takes the fault that the instruction would take.
 * May sleep.
 */
static bool dtrace_bring_stack(u64 addr, u32 use)
{
	u8 byte;

	if (use == DTRACE_USE_STORE)
		return dtrace_user_touch(addr);
	return !get_user(byte, (u8 __user *)addr);
}

/* Whether the page can be read without a fault. The mmap lock is held. */
static bool dtrace_is_there(u64 addr)
{
	u8 byte;

	return !copy_from_user_nofault(&byte, (const void __user *)addr, 1);
}

/*
 * Requests a page. Returns 1 if it is in memory, 0 if not yet, and a negative errno if it will
 * never be.
 *
 * FOLL_NOWAIT does not wait for a page that is being read, but the kernel reads the page itself,
 * and waits, if the file has no readahead. A program that serves a file need not answer, and other
 * tasks may wait for this one; so nothing of such a file is brought.
 */
static long dtrace_bring_page(u64 addr, u32 use)
{
	unsigned int flags = FOLL_NOWAIT | (use == DTRACE_USE_STORE ? FOLL_WRITE : 0);
	struct vm_area_struct *vma;
	bool waits_for_program, is_stack;
	long got;

	if (!mmap_read_trylock(current->mm))
		return 0;
	vma = vma_lookup(current->mm, addr);
	waits_for_program = vma && userfaultfd_armed(vma);
	is_stack = !vma && use != DTRACE_USE_CLAUSE && dtrace_is_below_stack(addr);
	if (vma && vma->vm_file && dtrace_file_is_served(vma->vm_file))
		got = dtrace_is_there(addr) ? 1 : -EFAULT;
	else
		got = vma ? get_user_pages(addr, 1, flags, NULL) : -EFAULT;
	mmap_read_unlock(current->mm);
	if (is_stack)
		return dtrace_bring_stack(addr, use) ? 1 : -EFAULT;
	if (got == -EBUSY || got == -EAGAIN)
		got = 0;
	/* Without waiting, the server of a userfaultfd is not even notified of the fault. */
	return !got && waits_for_program ? -EFAULT : got;
}

/*
 * Brings the pages from addr on, for `time` jiffies at most. Returns whether any page is in memory.
 */
static bool dtrace_bring(u64 addr, u64 size, u32 use, unsigned long time)
{
	unsigned long until = jiffies + time;
	u64 at = addr & PAGE_MASK, end;
	unsigned int pages = 0;

	if (!current->mm || !size || check_add_overflow(addr, size, &end))
		return false;
	while (at < end && pages < DTRACE_BRING_PAGES) {
		long got = dtrace_bring_page(at, use);

		if (got > 0) {
			at += PAGE_SIZE;
			pages++;
			continue;
		}
		if (got < 0 || time_after_eq(jiffies, until) || signal_pending(current))
			break;
		schedule_timeout_killable(1);
	}
	return pages;
}

/*
 * Brings what needs no waiting; returns whether any page is in memory. May sleep, but not for long.
 */
bool dtrace_bring_now(u64 addr, u64 size)
{
	return dtrace_bring(addr, size, DTRACE_USE_CLAUSE, 0);
}

/*
 * Brings memory while nobody waits for the current task; returns whether any page is in memory. May
 * sleep, for DTRACE_BRING_TIME at most.
 */
bool dtrace_bring_wait(u64 addr, u64 size)
{
	return dtrace_bring(addr, size, DTRACE_USE_CLAUSE, DTRACE_BRING_TIME);
}

static struct dtrace_bring *dtrace_bring_near(unsigned int n)
{
	u32 first = hash_ptr(current, DTRACE_BRINGS_BITS);

	return &dtrace_brings[(first + n) % ARRAY_SIZE(dtrace_brings)];
}

/*
 * Finds the current task's entry. `free`: if there is none, an entry that it may take: one that is
 * unused, or whose task has not waited for twice the waiting time. dtrace_brings_lock is held.
 */
static struct dtrace_bring *dtrace_bring_find(bool free)
{
	struct dtrace_bring *found = NULL;
	unsigned int n;

	for (n = 0; n < DTRACE_BRINGS_NEAR; n++) {
		struct dtrace_bring *bring = dtrace_bring_near(n);
		bool left = !bring->queued && time_after(jiffies, bring->since + 2 * DTRACE_BRING_TIME);

		if (bring->task == current)
			return bring;
		if (free && !found && (!bring->task || left))
			found = bring;
	}
	return found;
}

static void dtrace_bring_take(struct dtrace_bring *bring)
{
	if (!bring->task)
		atomic_inc(&dtrace_brings_taken);
	bring->task = current;
}

static void dtrace_bring_leave(struct dtrace_bring *bring)
{
	bring->task = NULL;
	atomic_dec(&dtrace_brings_taken);
}

static void dtrace_bring_work(struct callback_head *work)
{
	struct dtrace_bring *bring = container_of(work, struct dtrace_bring, work);
	bool got = dtrace_bring(bring->addr, bring->size, bring->use, DTRACE_BRING_TIME);
	/* The task handles its signal first, and tries again after that. */
	bool disturbed = !got && signal_pending(current);

	dtrace_cpu_lost(got || disturbed ? DTRACE_LOSS_WAIT : DTRACE_LOSS_WAIT_IN_VAIN);
	scoped_guard(raw_spinlock_irqsave, &dtrace_brings_lock) {
		bring->since = jiffies;
		bring->in_vain = !got && !disturbed;
		if (disturbed)
			bring->size = 0;
		bring->queued = false;
	}
	dtrace_call_ended();
}

/*
 * Sends the current program to wait for memory that it lacks at the instruction where a breakpoint
 * has stopped it, on its way back to that instruction. Does not sleep. False: it was tried in vain,
 * or there is no room; the program goes on without the memory.
 */
bool dtrace_bring_later(u64 ip, u64 addr, u64 size, u32 use)
{
	struct dtrace_bring *bring;

	guard(raw_spinlock_irqsave)(&dtrace_brings_lock);
	bring = dtrace_bring_find(true);
	if (!bring || bring->queued)
		return false;
	if (bring->task != current || bring->ip != ip) {
		dtrace_bring_take(bring);
		bring->ip = ip;
		bring->tries = 0;
		bring->again = 0;
	} else {
		bring->again = bring->addr == addr && bring->size == size ? bring->again + 1 : 0;
		if (bring->in_vain || bring->again == DTRACE_BRING_AGAIN || ++bring->tries == DTRACE_BRING_TRIES)
			return false;
	}
	bring->addr = addr;
	bring->size = size;
	bring->use = use;
	bring->in_vain = false;
	bring->queued = true;
	if (!dtrace_call_queue(&bring->work, dtrace_bring_work, current))
		return true;
	bring->queued = false;
	dtrace_bring_leave(bring);
	return false;
}

/* Forgets what was tried for the current program, because it goes on. Does not sleep. */
void dtrace_brought(void)
{
	struct dtrace_bring *bring;

	if (!atomic_read(&dtrace_brings_taken))
		return;
	guard(raw_spinlock_irqsave)(&dtrace_brings_lock);
	bring = dtrace_bring_find(false);
	if (bring && !bring->queued)
		dtrace_bring_leave(bring);
}
