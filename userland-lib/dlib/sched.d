/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * CPUs.
 */

#pragma D depends_on library procfs.d

typedef struct cpuinfo {
	processorid_t cpu_id;	/* number of the CPU */
} cpuinfo_t;

/* The CPU that a thread runs on, or ran on last. */
translator cpuinfo_t < struct task_struct *T > {
	cpu_id = T->thread_info.cpu;
};

inline cpuinfo_t *curcpu = xlate <cpuinfo_t *> (curthread);
