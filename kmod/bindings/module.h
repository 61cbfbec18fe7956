/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* This module: its text, and how it stays; module.c holds the bodies. */
#ifndef _DTRACE_MODULE_H
#define _DTRACE_MODULE_H

#include <linux/compiler_attributes.h>
#include <linux/types.h>

void dtrace_stay(void);
void __noreturn dtrace_park(void);
bool dtrace_own_text(uintptr_t pc);

#endif
