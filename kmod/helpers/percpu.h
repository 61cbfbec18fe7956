/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * The claim on a CPU, the time that firings take, and the machine's CPUs; percpu.c holds the bodies.
 */
#ifndef _DTRACE_PERCPU_H
#define _DTRACE_PERCPU_H

#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/types.h>

#include "instruction.h"

/*
 * Events that are counted for all consumers together: why a firing was dropped before any consumer
 * saw it, and what made one slow.
 */
enum dtrace_loss {
	/* Probe context itself called a traced function. */
	DTRACE_LOSS_RECURSION,
	/* An NMI interrupted probe context. */
	DTRACE_LOSS_NMI,
	/* RCU was not watching. */
	DTRACE_LOSS_UNWATCHED,
	/* The return of a call could not be hooked. */
	DTRACE_LOSS_RETURN,
	/* A program waited for memory that a clause or an instruction needs; and waited in vain. */
	DTRACE_LOSS_WAIT,
	DTRACE_LOSS_WAIT_IN_VAIN,
	/* An instruction was left to uprobes, because its program has no room for a slot. */
	DTRACE_LOSS_ROOM,
	DTRACE_LOSSES
};

/* One CPU's part of the framework. Only that CPU writes to it, with interrupts off. */
struct dtrace_cpu {
	/* Probe context is entered. */
	u32 busy;
	u32 cpu;
	/* Interrupt flags of the interrupted code. */
	unsigned long flags;
	/* The interrupted task. */
	struct task_struct *task;
	/* Number of this firing on this CPU. */
	u64 firing;
	/* Number of firings that some consumer has enabled. */
	u64 fired;
	/* All firings count as one, because the CPU is stopped once for them (INV-28). */
	bool stopped;
	/*
	 * Work of the clauses of members, and of those of all other consumers, in the firing
	 * `firing`, in units; and when the clock was last read in it, in ns.
	 */
	struct {
		u64 firing;
		u64 users;
		u64 others;
		u64 looked;
	} toil;
	/* When the firing began, in ns of local_clock(); 0 if that is not measured. */
	u64 since;
#ifdef CONFIG_TRACE_IRQFLAGS
	/* Whether interrupts were on in lockdep's view when probe context was entered. */
	bool believed_on;
#endif
	/* Numbers of events, by enum dtrace_loss. */
	u64 lost[DTRACE_LOSSES];
	/* Room for the raw frames of a kernel stack. */
	unsigned long *frames;
	unsigned int nr_frames;
};

DECLARE_PER_CPU(struct dtrace_cpu, dtrace_cpus);

/*
 * All firings until dtrace_cpu_goes_on() count as one, because the CPU is stopped once for them.
 * Interrupts are off.
 */
static inline void dtrace_cpu_stops(void)
{
	raw_cpu_inc(dtrace_cpus.firing);
	raw_cpu_write(dtrace_cpus.stopped, true);
}

static inline void dtrace_cpu_goes_on(void)
{
	raw_cpu_write(dtrace_cpus.stopped, false);
}

/*
 * The interrupts and NMIs that the interrupted code is in. The kernel counts the handling of a
 * breakpoint as an NMI, but to the interrupted code it is not one.
 */
static inline unsigned long dtrace_preempt_count(void)
{
	unsigned long pc = preempt_count();

	return pc & NMI_MASK ? pc - dtrace_breakpoint_offset() : pc;
}

static inline bool dtrace_in_nmi(void)
{
	return dtrace_preempt_count() & NMI_MASK;
}

struct dtrace_cpu *dtrace_cpu_of(unsigned int cpu);
struct dtrace_cpu *dtrace_cpu_enter(void);
enum dtrace_loss dtrace_cpu_why(void);
void dtrace_cpu_exit(struct dtrace_cpu *c);
void dtrace_cpu_lost(enum dtrace_loss which);

unsigned int dtrace_irq_level(void);
u64 dtrace_gross_vtime(struct dtrace_cpu *c);
void dtrace_measure(void);
void dtrace_measure_no_more(void);

unsigned int dtrace_nr_cpus(void);
void dtrace_on_each_cpu(void (*f)(void *arg), void *arg);
bool dtrace_cpu_possible(unsigned int cpu);
bool dtrace_cpu_online(unsigned int cpu);

#endif
