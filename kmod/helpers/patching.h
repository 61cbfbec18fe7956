/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Work under locks of the kernel that everybody needs; patching.c holds the bodies. */
#ifndef _DTRACE_PATCHING_H
#define _DTRACE_PATCHING_H

#include <linux/types.h>

struct ftrace_ops;

int dtrace_patching_init(void);
void dtrace_patching_exit(void);
void dtrace_patch(void (*what)(void *data), void *data);
/* Like ftrace_set_filter_ips() and register_ftrace_function(). */
int dtrace_filter_set(struct ftrace_ops *ops, uintptr_t *at, unsigned int count, int remove, int reset);
int dtrace_filter_register(struct ftrace_ops *ops);

#endif
