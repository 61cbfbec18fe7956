// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of locks.h. Locks are read by loads that may fault, because the addresses are a
 * program's.
 */

#include <linux/errno.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>

#include "loads.h"
#include "locks.h"

/* Stores the task that holds the mutex at `addr`, 0 if none does. Returns 0 or a negative errno. */
int dtrace_mutex_owner(u64 *owner, u64 addr)
{
	struct mutex *lock = (struct mutex *)addr;
	u64 word;
	int ret;

#ifdef CONFIG_PREEMPT_RT
	ret = dtrace_load_u64(&word, (u64)&lock->rtmutex.owner);
#else
	ret = dtrace_load_u64(&word, (u64)&lock->owner);
#endif
	if (ret)
		return ret;
	/* The low bits are flags, because task structures are aligned to more than 8 bytes. */
	*owner = word & ~7ULL;
	return 0;
}

/* Who holds the rwlock_t at `addr`, as bits of enum dtrace_holders, or a negative errno. */
int dtrace_rwlock(u64 addr)
{
#if defined(CONFIG_QUEUED_RWLOCKS) && !defined(CONFIG_PREEMPT_RT)
	rwlock_t *lock = (rwlock_t *)addr;
	u32 cnts;
	int state = 0;
	int ret = dtrace_load(&cnts, (u64)&lock->raw_lock.cnts, sizeof(cnts));

	if (ret)
		return ret;
	if (cnts >> _QR_SHIFT)
		state |= DTRACE_RWLOCK_READERS;
	if ((cnts & _QW_LOCKED) == _QW_LOCKED)
		state |= DTRACE_RWLOCK_WRITER;
	if (cnts & _QW_WAITING)
		state |= DTRACE_RWLOCK_WRITER_WAITS;
	return state;
#else
	return -EOPNOTSUPP;
#endif
}
