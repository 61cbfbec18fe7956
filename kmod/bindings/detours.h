/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* System calls that do something else before they begin. */
#ifndef _DTRACE_DETOURS_H
#define _DTRACE_DETOURS_H

#include <linux/ptrace.h>
#include <linux/types.h>

/* What is done: data, where the function is patched, and what has called it. It may sleep. */
typedef void (*dtrace_detour_call)(void *data, uintptr_t ip, uintptr_t caller);

bool dtrace_detour_take(struct pt_regs *regs, uintptr_t ip, uintptr_t caller, dtrace_detour_call call, void *data);
void dtrace_detours_begin(uintptr_t find_direct);
void dtrace_detours_wait(void);

#endif
