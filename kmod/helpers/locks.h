/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Who holds a lock of the kernel; locks.c holds the bodies. */
#ifndef _DTRACE_LOCKS_H
#define _DTRACE_LOCKS_H

#include <linux/types.h>

/* Bits of dtrace_rwlock()'s result. */
enum dtrace_holders {
	DTRACE_RWLOCK_READERS = 1,
	DTRACE_RWLOCK_WRITER = 2,
	DTRACE_RWLOCK_WRITER_WAITS = 4,
};

int dtrace_mutex_owner(u64 *owner, u64 addr);
int dtrace_rwlock(u64 addr);

#endif
