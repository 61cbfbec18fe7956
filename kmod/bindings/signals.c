// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Signals from probe context. The locks of signal delivery may be held by the code that the probe stopped, so the
 * signal waits for an interrupt on this CPU, or a thread there where those locks sleep (PREEMPT_RT). All signals of one task may wait;
 * those of another in the meantime are refused.
 */

#include <linux/bits.h>
#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/percpu.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "helpers.h"

struct dtrace_signal {
	struct irq_work work;
	/* What waits: signal n is bit n - 1. As long as there is none the task is not ours. */
	u64 signals;
	struct task_struct *task;
};

/* In the order of their numbers. */
static void dtrace_signal_send(struct irq_work *work)
{
	struct dtrace_signal *s = container_of(work, struct dtrace_signal, work);
	/* First the task: who fires above us may add to the signals until they are taken, and from then on begin with another task. */
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
 * Called with the CPU entered, so that nobody else touches the slot meanwhile: what sends the signals is not above us. False: there is no
 * such signal, or it is refused.
 */
bool dtrace_signal_current(int sig)
{
	struct dtrace_signal *s = raw_cpu_ptr(&dtrace_signals);

	if (!valid_signal(sig) || !sig)
		return false;
	/* Kernel threads, the idle ones among them, and init are not a consumer's to stop. */
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

/* Waits until no signal is under way. */
void dtrace_signal_sync(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		irq_work_sync(&per_cpu_ptr(&dtrace_signals, cpu)->work);
}
