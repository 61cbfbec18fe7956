// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Vector registers of the program that a breakpoint has stopped.
 *
 * The kernel leaves them in the processor until it needs the registers itself, or another task
 * runs; then it saves them and sets a flag of the task (TIF_NEED_FPU_LOAD). With interrupts off
 * neither happens.
 */

#include <linux/errno.h>
#include <linux/irqflags.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/thread_info.h>
#include <asm/cpufeature.h>
#include <asm/fpu/types.h>
#include <asm/fpu/xstate.h>

#include "vectors.h"

/*
 * Reads a register where the kernel has saved it: in the memory behind the task_struct, as
 * x86_task_fpu() has it, which in some configurations checks other things and warns.
 */
static u64 dtrace_saved_vector(unsigned int n)
{
	struct fpu *fpu = (struct fpu *)(current + 1);
	struct xregs_state *all = &fpu->fpstate->regs.xsave;
	u64 low = 0;

	/* Registers in their initial state are not saved; they are 0. */
	if (!cpu_feature_enabled(X86_FEATURE_XSAVE) || (all->header.xfeatures & XFEATURE_MASK_SSE))
		memcpy(&low, &all->i387.xmm_space[4 * n], sizeof(low));
	return low;
}

static u64 dtrace_live_vector(unsigned int n)
{
	u64 low = 0;

#define DTRACE_VECTOR(n) case n: asm volatile("movq %%xmm" #n ", %0" : "=m"(low)); break
	switch (n) {
	DTRACE_VECTOR(0);
	DTRACE_VECTOR(1);
	DTRACE_VECTOR(2);
	DTRACE_VECTOR(3);
	DTRACE_VECTOR(4);
	DTRACE_VECTOR(5);
	DTRACE_VECTOR(6);
	DTRACE_VECTOR(7);
	DTRACE_VECTOR(8);
	DTRACE_VECTOR(9);
	DTRACE_VECTOR(10);
	DTRACE_VECTOR(11);
	DTRACE_VECTOR(12);
	DTRACE_VECTOR(13);
	DTRACE_VECTOR(14);
	DTRACE_VECTOR(15);
	}
#undef DTRACE_VECTOR
	return low;
}

/*
 * The lowest 8 bytes of vector register n of the current program; 0 for a task without a program.
 */
u64 dtrace_user_vector(unsigned int n)
{
	unsigned long flags;
	u64 low = 0;

	if (n >= 16 || !current->mm)
		return 0;
	local_irq_save(flags);
	if (test_thread_flag(TIF_NEED_FPU_LOAD))
		low = dtrace_saved_vector(n);
	else
		low = dtrace_live_vector(n);
	local_irq_restore(flags);
	return low;
}
