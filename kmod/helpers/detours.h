/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Detours of system calls: a function that runs before the call begins, and may sleep (INV-47). */
#ifndef _DTRACE_DETOURS_H
#define _DTRACE_DETOURS_H

#include <linux/ptrace.h>
#include <linux/types.h>

/*
 * Called on a detour, in process context; may sleep. `ip`: where the function is patched; `caller`:
 * what has called it.
 */
typedef void (*dtrace_detour_call)(void *data, uintptr_t ip, uintptr_t caller);

bool dtrace_detour_take(struct pt_regs *regs, uintptr_t ip, uintptr_t caller, dtrace_detour_call call, void *data);
void dtrace_detours_begin(uintptr_t find_direct);
void dtrace_detours_wait(void);

#endif
