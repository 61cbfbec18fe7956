/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * Symbols of the kernel, and calls of functions that are found by them; symbols.c and arch/ hold
 * the bodies.
 */
#ifndef _DTRACE_SYMBOLS_H
#define _DTRACE_SYMBOLS_H

#include <linux/types.h>

bool dtrace_symbol(const char *name, uintptr_t *address);
uintptr_t dtrace_call(uintptr_t fn, uintptr_t a0, uintptr_t a1, uintptr_t a2, uintptr_t a3, uintptr_t a4);

#endif
