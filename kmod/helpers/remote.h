/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * Other processes and their memory (INV-18). Addresses that come from records may be anything.
 * Functions that return an int return 0, or -EFAULT if something could not be loaded.
 */
#ifndef _DTRACE_REMOTE_H
#define _DTRACE_REMOTE_H

#include <linux/types.h>

struct dtrace_task_args {
	/* Address of a struct mm_struct; 0: none. */
	u64 mm;
	/* Addresses in its memory. */
	u64 begin;
	u64 end;
};

int dtrace_task_args(struct dtrace_task_args *out, u64 task);
int dtrace_task_name(char *out, u64 task);
int dtrace_remote_load(void *out, u64 mm, u64 addr, size_t size);

#endif
