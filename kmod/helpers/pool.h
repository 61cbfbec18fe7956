/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Taking objects from the kernel's object pools in places where any function may be traced. */
#ifndef _DTRACE_POOL_H
#define _DTRACE_POOL_H

#include <linux/cpumask.h>
#include <linux/objpool.h>
#include <linux/smp.h>

/*
 * Takes a node, from this CPU's slot first; NULL: there is none. objpool_pop() must not be used
 * here: it iterates over CPUs by functions that may be traced, so a probe could call it again
 * without end. Interrupts are off.
 */
static inline void *dtrace_pool_pop(struct objpool_head *pool)
{
	unsigned int here = raw_smp_processor_id();
	void *node = __objpool_try_get_slot(pool, here);
	unsigned int cpu;

	for (cpu = 0; unlikely(!node) && cpu < nr_cpu_ids; cpu++)
		if (cpu != here && cpu_possible(cpu))
			node = __objpool_try_get_slot(pool, cpu);
	return node;
}

#endif
