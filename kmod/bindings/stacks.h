/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

#ifndef _DTRACE_STACKS_H
#define _DTRACE_STACKS_H

#include <linux/ptrace.h>
#include <linux/types.h>

int dtrace_orc_init(void);
void dtrace_orc_exit(void);
bool dtrace_orc_from(unsigned long *frames, unsigned int room, const struct pt_regs *regs, unsigned int *n);
bool dtrace_orc_here(unsigned long *frames, unsigned int room, unsigned int *n);
unsigned int dtrace_stack_callers(unsigned long *frames, unsigned int room, const struct pt_regs *regs);
unsigned int dtrace_stack_here(unsigned long *frames, unsigned int room);
unsigned int dtrace_stack_from(unsigned long *frames, unsigned int room, const struct pt_regs *regs);

#endif
