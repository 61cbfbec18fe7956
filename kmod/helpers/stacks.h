/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Stacks of the kernel; arch/ holds the bodies. */
#ifndef _DTRACE_STACKS_H
#define _DTRACE_STACKS_H

#include <linux/ptrace.h>
#include <linux/types.h>

int dtrace_stacks_init(void);
void dtrace_stacks_exit(void);
unsigned int dtrace_stack_here(unsigned long *frames, unsigned int room);
unsigned int dtrace_stack_from(unsigned long *frames, unsigned int room, const struct pt_regs *regs);

#endif
