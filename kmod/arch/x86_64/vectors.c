// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Vector registers of the program that a breakpoint has stopped.
 *
 * The kernel leaves them in the processor until it needs them itself, or another task runs; then it puts them aside and says so by a flag of
 * the task. With interrupts off neither happens.
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

/* Where they were put aside: behind the task, whatever the kernel's own function for it checks besides. */
static u64 dtrace_saved_vector(unsigned int n)
{
	struct fpu *fpu = (struct fpu *)(current + 1);
	struct xregs_state *all = &fpu->fpstate->regs.xsave;
	u64 low = 0;

	/* What is as at the beginning was not put aside. */
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

/* The lowest 8 bytes of vector register n of the program that the current task is; 0 for a task that is none. */
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
