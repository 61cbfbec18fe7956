// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Signals from probe context. The code that the probe has interrupted may hold the locks of signal
 * delivery, so the signal waits for an interrupt on this CPU, or for a thread there if those locks
 * sleep (PREEMPT_RT). Any signals for one task may wait; signals for another task are refused until
 * then.
 */

#include <linux/bits.h>
#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/percpu.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "percpu.h"
#include "tasks.h"

struct dtrace_signal {
	struct irq_work work;
	/* Waiting signals: signal n is bit n - 1. While it is 0, `task` holds no reference. */
	u64 signals;
	struct task_struct *task;
};

/* Sends them in the order of their numbers. */
static void dtrace_signal_send(struct irq_work *work)
{
	struct dtrace_signal *s = container_of(work, struct dtrace_signal, work);
	/*
	 * The task is read first: a probe that fires above this function may add signals for it
	 * until they are taken, and after that may begin with another task.
	 */
	struct task_struct *task = READ_ONCE(s->task);
	u64 signals = xchg(&s->signals, 0);

	for (; signals; signals &= signals - 1)
		send_sig(__ffs64(signals) + 1, task, 1);
	put_task_struct(task);
}

static DEFINE_PER_CPU(struct dtrace_signal, dtrace_signals) = {
	.work = IRQ_WORK_INIT(dtrace_signal_send),
};

/*
 * Called in probe context (dtrace_cpu_enter()), so nobody else touches this CPU's slot meanwhile:
 * dtrace_signal_send() cannot interrupt it. False: there is no such signal, or it is refused.
 */
bool dtrace_signal_current(int sig)
{
	struct dtrace_signal *s = raw_cpu_ptr(&dtrace_signals);

	if (!valid_signal(sig) || !sig)
		return false;
	/* A consumer must not stop kernel threads, among them the idle ones, or init. */
	if (current->flags & PF_KTHREAD || is_global_init(current))
		return true;
	if (s->signals) {
		if (s->task != current)
			return false;
		s->signals |= BIT_ULL(sig - 1);
		return true;
	}
	WRITE_ONCE(s->task, get_task_struct(current));
	WRITE_ONCE(s->signals, BIT_ULL(sig - 1));
	irq_work_queue(&s->work);
	return true;
}

/* Waits until no signal waits any more. May sleep. */
void dtrace_signal_sync(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		irq_work_sync(&per_cpu_ptr(&dtrace_signals, cpu)->work);
}
