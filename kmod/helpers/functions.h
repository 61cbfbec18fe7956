/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Functions that ftrace can patch; functions.c and anchor.c hold the bodies. */
#ifndef _DTRACE_FUNCTIONS_H
#define _DTRACE_FUNCTIONS_H

#include <linux/types.h>

struct module;
struct mutex;

int dtrace_each_traceable(uintptr_t start, uintptr_t next, uintptr_t record, struct mutex *lock,
			  struct module *only, int (*each)(void *data, uintptr_t ip), void *data);
uintptr_t dtrace_traceable_offset(void);
void dtrace_anchor(void);

#endif
