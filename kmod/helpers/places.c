// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* The bodies of places.h. This object is built without ftrace: all of it runs in probe context. */

#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/prio.h>
#include <linux/sched/signal.h>
#include <linux/signal.h>
#include <linux/smp.h>
#include <uapi/linux/sched/types.h>

#include "places.h"

bool dtrace_task_is_kernel(const struct task_struct *task)
{
	return task->flags & PF_KTHREAD;
}

/* Whether the task is the first thread of its process. */
bool dtrace_task_leads(const struct task_struct *task)
{
	return task->pid == task->tgid;
}

/*
 * How the process of a task ends, whose last thread the task is: CLD_EXITED, CLD_KILLED or
 * CLD_DUMPED.
 */
int dtrace_task_exit_reason(const struct task_struct *task)
{
	const struct signal_struct *signal = task->signal;
	int code = signal->flags & SIGNAL_GROUP_EXIT ? signal->group_exit_code : task->exit_code;

	if (!(code & 0x7f))
		return CLD_EXITED;
	return code & 0x80 ? CLD_DUMPED : CLD_KILLED;
}

/* The name of a file to execute; NULL if the program's pointer to it was bad. */
const char *dtrace_filename(const struct filename *filename)
{
	return IS_ERR_OR_NULL(filename) ? NULL : filename->name;
}

/* False: the signal has no siginfo of its own. */
bool dtrace_signal_info(const struct kernel_siginfo *info, int *signo, int *code)
{
	if (info <= SEND_SIG_PRIV)
		return false;
	*signo = info->si_signo;
	*code = info->si_code;
	return true;
}

/*
 * The signal that ends the current process; 0: none. complete_signal() turns each fatal signal into
 * SIGKILL for every thread and keeps its number in group_exit_code. The caller holds siglock.
 */
int dtrace_fatal_signal(void)
{
	const struct signal_struct *signal = current->signal;

	return signal->flags & SIGNAL_GROUP_EXIT ? signal->group_exit_code & 0x7f : 0;
}

uintptr_t dtrace_signal_handler(const struct k_sigaction *action)
{
	return (uintptr_t)action->sa.sa_handler;
}

/* The caller has disabled preemption. */
int dtrace_this_cpu(void)
{
	return smp_processor_id();
}

/* The caller must ensure that somebody holds a reference to the folio. */
u64 dtrace_folio_pages(const struct folio *folio)
{
	return folio_nr_pages(folio);
}

int dtrace_prio(const struct task_struct *task)
{
	return task->prio;
}

/*
 * A real-time or deadline task keeps its priority: the nice value takes effect only when its policy
 * changes.
 */
int dtrace_prio_of_nice(const struct task_struct *task, long nice)
{
	if (task->prio < MAX_RT_PRIO || nice < MIN_NICE || nice > MAX_NICE)
		return task->prio;
	return NICE_TO_PRIO(nice);
}

int dtrace_prio_of_attr(const struct task_struct *task, const struct sched_attr *attr)
{
	/* A negative policy means that the task keeps its own. */
	int policy = (int)attr->sched_policy < 0 ? task->policy : attr->sched_policy & ~SCHED_RESET_ON_FORK;

	switch (policy) {
	case SCHED_DEADLINE:
		return MAX_DL_PRIO - 1;
	case SCHED_FIFO:
	case SCHED_RR:
		return MAX_RT_PRIO - 1 - (int)attr->sched_priority;
	default:
		return NICE_TO_PRIO(attr->sched_nice);
	}
}

/* `donor`: the most urgent of the tasks that wait for this one; NULL: none. */
int dtrace_prio_inherited(const struct task_struct *task, const struct task_struct *donor)
{
	return donor ? min(task->normal_prio, donor->prio) : task->normal_prio;
}
