/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * CPUs.
 */

#pragma D depends_on library procfs.d

typedef int psetid_t;
typedef int chipid_t;
typedef int lgrp_id_t;

typedef struct cpuinfo {
	processorid_t cpu_id;	/* number of the CPU */
	psetid_t cpu_pset;	/* processor set: always -1, Linux has none */
	chipid_t cpu_chip;	/* number of its chip */
	lgrp_id_t cpu_lgrp;	/* number of its memory node */
} cpuinfo_t;

inline int dtrace_chip[int cpu_id] =
    ((struct cpuinfo_x86 *)((uintptr_t)&`cpu_info + dtrace_percpu[cpu_id]))->topo.pkg_id;

/* The CPU that a thread runs on, or ran on last. */
translator cpuinfo_t < struct task_struct *T > {
	cpu_id = T->thread_info.cpu;
	cpu_pset = -1;
	cpu_chip = dtrace_chip[T->thread_info.cpu];
	cpu_lgrp = dtrace_node[T->thread_info.cpu];
};

/* The CPU of a run queue. */
translator cpuinfo_t < struct rq *R > {
	cpu_id = R->cpu;
	cpu_pset = -1;
	cpu_chip = dtrace_chip[R->cpu];
	cpu_lgrp = dtrace_node[R->cpu];
};

inline cpuinfo_t *curcpu = xlate <cpuinfo_t *> (curthread);
inline psetid_t pset = curcpu->cpu_pset;
inline chipid_t chip = curcpu->cpu_chip;
inline lgrp_id_t lgrp = curcpu->cpu_lgrp;
