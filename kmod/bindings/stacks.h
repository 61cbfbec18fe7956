/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

#ifndef _DTRACE_STACKS_H
#define _DTRACE_STACKS_H

#include <linux/ptrace.h>
#include <linux/types.h>

unsigned int dtrace_stack_from(unsigned long *frames, unsigned int room, const struct pt_regs *regs);

#endif
