// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of perf.h. This object is built without ftrace, because an overflow is probe context.
 */

#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/perf_event.h>

#include "perf.h"

static void dtrace_perf_overflow(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs)
{
	struct dtrace_perf *perf = event->overflow_handler_context;

	perf->hit(perf, regs);
}

static struct perf_event_attr dtrace_perf_attr(const struct dtrace_perf_event *what)
{
	return (struct perf_event_attr) {
		.size = sizeof(struct perf_event_attr),
		.type = what->type,
		.config = what->config,
		/* It is in a union with sample_freq, which is meant if `freq` is set. */
		.sample_period = what->period,
		.freq = what->hz,
		.pinned = 1,
		.exclude_user = !what->user,
		.exclude_kernel = !what->kernel,
		.exclude_hv = !what->kernel,
	};
}

static void dtrace_perf_ignore(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs)
{
}

/*
 * Returns 0 if this machine can count the event at all, or a negative errno. The only way to find
 * out is to create an event, here one that does not run.
 */
int dtrace_perf_try(const struct dtrace_perf_event *what)
{
	struct perf_event_attr attr = dtrace_perf_attr(what);
	struct perf_event *event;

	attr.disabled = 1;
	event = perf_event_create_kernel_counter(&attr, cpumask_any(cpu_online_mask), NULL, dtrace_perf_ignore, NULL);
	if (IS_ERR(event))
		return PTR_ERR(event);
	perf_event_release_kernel(event);
	return 0;
}

/*
 * Begins to count on a CPU, with a counter that the event keeps (it is pinned). Returns an error
 * pointer: the event cannot be counted; -EBUSY: no counter is free.
 */
struct perf_event *dtrace_perf_start(unsigned int cpu, const struct dtrace_perf_event *what, struct dtrace_perf *perf)
{
	struct perf_event_attr attr = dtrace_perf_attr(what);
	struct perf_event *event = perf_event_create_kernel_counter(&attr, cpu, NULL, dtrace_perf_overflow, perf);

	if (!IS_ERR(event) && READ_ONCE(event->state) == PERF_EVENT_STATE_ERROR) {
		perf_event_release_kernel(event);
		return ERR_PTR(-EBUSY);
	}
	return event;
}

/* Ends counting. Afterwards no CPU is in hit(). */
void dtrace_perf_stop(struct perf_event *event)
{
	perf_event_release_kernel(event);
}

#define SOFTWARE(n, event) [DTRACE_PERF_##n] = { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##event }
#define HARDWARE(n, event) [DTRACE_PERF_##n] = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_##event }

void dtrace_perf_named(enum dtrace_perf_name name, struct dtrace_perf_event *what)
{
	static const struct {
		u32 type;
		u64 config;
	} events[DTRACE_PERF_EVENTS] = {
		SOFTWARE(CPU_CLOCK, CPU_CLOCK),
		SOFTWARE(TASK_CLOCK, TASK_CLOCK),
		SOFTWARE(PAGE_FAULTS, PAGE_FAULTS),
		SOFTWARE(MINOR_FAULTS, PAGE_FAULTS_MIN),
		SOFTWARE(MAJOR_FAULTS, PAGE_FAULTS_MAJ),
		SOFTWARE(CONTEXT_SWITCHES, CONTEXT_SWITCHES),
		SOFTWARE(CPU_MIGRATIONS, CPU_MIGRATIONS),
		SOFTWARE(ALIGNMENT_FAULTS, ALIGNMENT_FAULTS),
		SOFTWARE(EMULATION_FAULTS, EMULATION_FAULTS),
		HARDWARE(CYCLES, CPU_CYCLES),
		HARDWARE(INSTRUCTIONS, INSTRUCTIONS),
		HARDWARE(CACHE_REFERENCES, CACHE_REFERENCES),
		HARDWARE(CACHE_MISSES, CACHE_MISSES),
		HARDWARE(BRANCHES, BRANCH_INSTRUCTIONS),
		HARDWARE(BRANCH_MISSES, BRANCH_MISSES),
		HARDWARE(BUS_CYCLES, BUS_CYCLES),
		HARDWARE(STALLED_FRONTEND, STALLED_CYCLES_FRONTEND),
		HARDWARE(STALLED_BACKEND, STALLED_CYCLES_BACKEND),
		HARDWARE(REF_CYCLES, REF_CPU_CYCLES),
	};

	what->type = events[name].type;
	what->config = events[name].config;
}
