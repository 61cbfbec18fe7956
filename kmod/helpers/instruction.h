/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Breakpoints at instructions of the kernel; instruction.c holds the bodies. */
#ifndef _DTRACE_INSTRUCTION_H
#define _DTRACE_INSTRUCTION_H

#include <linux/types.h>

struct pt_regs;
struct dtrace_breakpoint;

/*
 * hit() is called before the instruction is executed, in whatever context that is. `lost`: number
 * of hits since the last call that were not reported.
 */
struct dtrace_instruction {
	void (*hit)(struct dtrace_instruction *instruction, struct pt_regs *regs, u64 lost);
};

int dtrace_breakpoint_try(uintptr_t addr);
struct dtrace_breakpoint *dtrace_breakpoint_set(uintptr_t addr, struct dtrace_instruction *instruction);
u64 dtrace_breakpoint_lost(struct dtrace_breakpoint *breakpoint);
void dtrace_breakpoints_remove(struct dtrace_breakpoint **all, size_t count);
unsigned long dtrace_breakpoint_offset(void);

#endif
