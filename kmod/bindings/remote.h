/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * Other processes and their memory. Addresses of records may be anything. What returns an int gives 0, or -EFAULT where something
 * could not be loaded.
 */
#ifndef _DTRACE_REMOTE_H
#define _DTRACE_REMOTE_H

#include <linux/types.h>

struct dtrace_task_args {
	/* A struct mm_struct, 0 where there is none. */
	u64 mm;
	/* Of its memory. */
	u64 begin;
	u64 end;
};

int dtrace_task_args(struct dtrace_task_args *out, u64 task);
int dtrace_task_name(char *out, u64 task);
int dtrace_remote_load(void *out, u64 mm, u64 addr, size_t size);

#endif
