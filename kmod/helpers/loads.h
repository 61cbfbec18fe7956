/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Loads from any kernel address; loads.c says which fail. */
#ifndef _DTRACE_LOADS_H
#define _DTRACE_LOADS_H

#include <linux/types.h>

/* Loads the object that a kernel pointer leads to. Returns 0 or a negative errno. */
#define LOAD(to, from) dtrace_load(&(to), (u64)(uintptr_t)(from), sizeof(to))

int dtrace_load(void *out, u64 addr, size_t size);
int dtrace_load_u64(u64 *out, u64 addr);
long dtrace_load_str(char *out, u64 addr, size_t size);
void dtrace_settle(void);

#endif
