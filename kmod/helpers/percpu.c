// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of percpu.h. ftrace can trace nothing of it, because most of it runs in probe context.
 */

#include <linux/context_tracking.h>
#include <linux/cpumask.h>
#include <linux/irqflags.h>
#include <linux/jump_label.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/smp.h>

#include "patching.h"
#include "percpu.h"
#include "watched.h"

/* Defined in kmod/sys/vtime.rs. */
void dtrace_charge(struct dtrace_cpu *c, u64 now, u64 ns);

DEFINE_PER_CPU(struct dtrace_cpu, dtrace_cpus);

struct dtrace_cpu *dtrace_cpu_of(unsigned int cpu)
{
	return per_cpu_ptr(&dtrace_cpus, cpu);
}

/*
 * Why dtrace_cpu_enter() has just refused a firing. If probe context was entered below it,
 * interrupts are off.
 */
enum dtrace_loss dtrace_cpu_why(void)
{
	if (!dtrace_cpu_watched())
		return DTRACE_LOSS_UNWATCHED;
	return dtrace_in_nmi() ? DTRACE_LOSS_NMI : DTRACE_LOSS_RECURSION;
}

/*
 * Interrupts are off. Only an NMI can interrupt the increment, and it counts a loss of another
 * kind.
 */
static noinline void dtrace_cpu_lost_in(struct dtrace_cpu *c)
{
	c->lost[dtrace_cpu_why()]++;
}

#ifdef CONFIG_TRACE_IRQFLAGS
/*
 * dtrace_cpu_enter() does not notify lockdep that interrupts are off, but a fault does, and lockdep
 * is not notified of the opposite when the fault returns to code that has interrupts off. So
 * lockdep's view is saved and restored.
 */
static void dtrace_lockdep_keep(struct dtrace_cpu *c)
{
	c->believed_on = lockdep_hardirqs_enabled();
}

static void dtrace_lockdep_restore(struct dtrace_cpu *c)
{
	if (c->believed_on && !lockdep_hardirqs_enabled()) {
		lockdep_hardirqs_on_prepare();
		lockdep_hardirqs_on(_THIS_IP_);
	}
}
#else
static void dtrace_lockdep_keep(struct dtrace_cpu *c) { }
static void dtrace_lockdep_restore(struct dtrace_cpu *c) { }
#endif

/* Whether the time of firings is measured (INV-7). */
static DEFINE_STATIC_KEY_FALSE(dtrace_measuring);

static void dtrace_measuring_begin(void *data)
{
	static_branch_enable(&dtrace_measuring);
}

static void dtrace_measuring_end(void *data)
{
	static_branch_disable(&dtrace_measuring);
}

/*
 * Begins to measure firings, for all consumers together. Calls of this and of
 * dtrace_measure_no_more() must not overlap. May sleep.
 */
void dtrace_measure(void)
{
	unsigned int cpu;

	/*
	 * A firing that was measured when it began but not when it ended has left its start time.
	 */
	for_each_possible_cpu(cpu)
		WRITE_ONCE(per_cpu_ptr(&dtrace_cpus, cpu)->since, 0);
	dtrace_patch(dtrace_measuring_begin, NULL);
}

void dtrace_measure_no_more(void)
{
	dtrace_patch(dtrace_measuring_end, NULL);
}

/*
 * The raw flavours of all helpers: the others call lockdep and the irqsoff tracer, which may be
 * traced themselves. What only a measured firing does is a separate function, called last, so that
 * the other firings need not save registers for it.
 */
static noinline struct dtrace_cpu *dtrace_cpu_measured(struct dtrace_cpu *c)
{
	c->since = local_clock();
	return c;
}

struct dtrace_cpu *dtrace_cpu_enter(void)
{
	struct dtrace_cpu *c;
	unsigned long flags;

	raw_local_irq_save(flags);
	c = raw_cpu_ptr(&dtrace_cpus);
	/* Without RCU watching, nothing would keep the lists of ECBs alive. */
	if (unlikely(c->busy || !dtrace_cpu_watched())) {
		dtrace_cpu_lost_in(c);
		raw_local_irq_restore(flags);
		return NULL;
	}
	WRITE_ONCE(c->busy, 1);
	barrier();
	c->flags = flags;
	c->task = current;
	if (!c->stopped)
		c->firing++;
	dtrace_lockdep_keep(c);
	if (static_branch_unlikely(&dtrace_measuring))
		return dtrace_cpu_measured(c);
	return c;
}

static __always_inline void dtrace_cpu_leave(struct dtrace_cpu *c)
{
	unsigned long flags = c->flags;

	barrier();
	WRITE_ONCE(c->busy, 0);
	raw_local_irq_restore(flags);
}

/*
 * Charges the firing to the current task. With CONFIG_IRQ_TIME_ACCOUNTING the scheduler charges no
 * task with the time of interrupts, so firings there are not charged either.
 */
static noinline void dtrace_cpu_charge_and_leave(struct dtrace_cpu *c)
{
	unsigned int level = IS_ENABLED(CONFIG_IRQ_TIME_ACCOUNTING) ? dtrace_irq_level() : 0;
	u64 since = c->since, now;

	c->since = 0;
	if (since && level != 1 && level != 2) {
		now = local_clock();
		if (now > since)
			dtrace_charge(c, now, now - since);
	}
	dtrace_cpu_leave(c);
}

void dtrace_cpu_exit(struct dtrace_cpu *c)
{
	dtrace_lockdep_restore(c);
	if (static_branch_unlikely(&dtrace_measuring))
		dtrace_cpu_charge_and_leave(c);
	else
		dtrace_cpu_leave(c);
}

/* Counts an event that belongs to no firing in progress. */
void dtrace_cpu_lost(enum dtrace_loss which)
{
	this_cpu_inc(dtrace_cpus.lost[which]);
}

/* The context of the interrupted code: 3: NMI; 2: interrupt; 1: softirq; 0: a task. */
unsigned int dtrace_irq_level(void)
{
	unsigned long pc = dtrace_preempt_count();

	if (likely(!(pc & (NMI_MASK | HARDIRQ_MASK | SOFTIRQ_OFFSET))))
		return 0;
	if (pc & NMI_MASK)
		return 3;
	if (pc & HARDIRQ_MASK)
		return 2;
	return pc & SOFTIRQ_OFFSET ? 1 : 0;
}

/*
 * The run time that the scheduler has charged to the current task, plus the time from its last
 * update to the firing. The run-queue lock that would make this exact may be held by the
 * interrupted code. The update sets exec_start first and then the sum; this reads them in the
 * reverse order, so during an update on another CPU the result is too small, never too large.
 */
u64 dtrace_gross_vtime(struct dtrace_cpu *c)
{
	struct sched_entity *se = &c->task->se;
	u64 at = c->since ?: local_clock();
	u64 sum = READ_ONCE(se->sum_exec_runtime);

	smp_rmb();
	return max_t(s64, sum + at - READ_ONCE(se->exec_start), 0);
}

unsigned int dtrace_nr_cpus(void)
{
	return nr_cpu_ids;
}

bool dtrace_cpu_possible(unsigned int cpu)
{
	return cpu < nr_cpu_ids && cpu_possible(cpu);
}

/* Calls f(arg) on each CPU that is online, with interrupts off, and waits for all calls. */
void dtrace_on_each_cpu(void (*f)(void *arg), void *arg)
{
	on_each_cpu(f, arg, true);
}

bool dtrace_cpu_online(unsigned int cpu)
{
	return cpu < nr_cpu_ids && cpu_online(cpu);
}
