/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Counters of the kernel's performance events; perf.c holds the bodies. */
#ifndef _DTRACE_PERF_H
#define _DTRACE_PERF_H

#include <linux/types.h>

struct perf_event;
struct pt_regs;

/* What is called at each overflow of a counter, in any context, NMI included. */
struct dtrace_perf {
	void (*hit)(struct dtrace_perf *perf, struct pt_regs *regs);
};

struct dtrace_perf_event {
	/* PERF_TYPE_*, and the event of that type */
	u32 type;
	u64 config;
	/* Number of events between two overflows; with `hz`, number of overflows in a second. */
	u64 period;
	bool hz;
	bool user;
	bool kernel;
};

int dtrace_perf_try(const struct dtrace_perf_event *what);
struct perf_event *dtrace_perf_start(unsigned int cpu, const struct dtrace_perf_event *what, struct dtrace_perf *perf);
void dtrace_perf_stop(struct perf_event *event);

/* The events that have names; DTRACE_PERF_EVENTS is their number. */
enum dtrace_perf_name {
	DTRACE_PERF_CPU_CLOCK,
	DTRACE_PERF_TASK_CLOCK,
	DTRACE_PERF_PAGE_FAULTS,
	DTRACE_PERF_MINOR_FAULTS,
	DTRACE_PERF_MAJOR_FAULTS,
	DTRACE_PERF_CONTEXT_SWITCHES,
	DTRACE_PERF_CPU_MIGRATIONS,
	DTRACE_PERF_ALIGNMENT_FAULTS,
	DTRACE_PERF_EMULATION_FAULTS,
	DTRACE_PERF_CYCLES,
	DTRACE_PERF_INSTRUCTIONS,
	DTRACE_PERF_CACHE_REFERENCES,
	DTRACE_PERF_CACHE_MISSES,
	DTRACE_PERF_BRANCHES,
	DTRACE_PERF_BRANCH_MISSES,
	DTRACE_PERF_BUS_CYCLES,
	DTRACE_PERF_STALLED_FRONTEND,
	DTRACE_PERF_STALLED_BACKEND,
	DTRACE_PERF_REF_CYCLES,
	DTRACE_PERF_EVENTS
};
void dtrace_perf_named(enum dtrace_perf_name name, struct dtrace_perf_event *what);

#endif
