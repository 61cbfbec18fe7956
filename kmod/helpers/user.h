/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Memory of the current program; user.c and arch/ hold the bodies. */
#ifndef _DTRACE_USER_H
#define _DTRACE_USER_H

#include <linux/types.h>

bool dtrace_user_ok(void);
bool dtrace_user_store_ok(void);
long dtrace_user_load_str(char *out, u64 addr, size_t size);

/*
 * Load from and store to memory of the current task, which a breakpoint has stopped: 1, 2, 4 or 8
 * bytes in one access. Do not sleep. -EFAULT: that is not possible without a fault.
 */
int dtrace_user_get(u64 addr, u32 size, u64 *value);
int dtrace_user_put(u64 addr, u32 size, u64 value);
/* The same for 8 bytes. */
int dtrace_user_get_word(u64 addr, u64 *value);
int dtrace_user_put_word(u64 addr, u64 value);
/*
 * Stores `value`, atomically for all processors, if `old` is still there. Returns 1; 0: another
 * value is there; or -EFAULT. The bytes lie on one cache line.
 */
int dtrace_user_swap(u64 addr, u32 size, u64 old, u64 value);
/* Whether the page can be written to without a fault. Does not sleep. */
bool dtrace_user_writable(u64 addr);
/* Whether the byte can be written to. May sleep in a fault. */
bool dtrace_user_touch(u64 addr);

#endif
