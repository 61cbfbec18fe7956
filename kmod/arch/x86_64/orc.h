/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Our own walk of the kernel's stack, in orc.c, and the kernel's, in stacks.c. */
#ifndef _DTRACE_ORC_H
#define _DTRACE_ORC_H

#include <linux/ptrace.h>
#include <linux/types.h>

bool dtrace_orc_from(unsigned long *frames, unsigned int room, const struct pt_regs *regs, unsigned int *n);
bool dtrace_orc_here(unsigned long *frames, unsigned int room, unsigned int *n);
unsigned int dtrace_stack_callers(unsigned long *frames, unsigned int room, const struct pt_regs *regs);

#endif
