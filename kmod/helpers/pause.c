// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of pause.h.
 *
 * The handler of a breakpoint and a tracepoint must not wait: a task that removes a breakpoint
 * waits for all handlers, and tracepoints are called with preemption off. What they queue is called
 * when the task has nothing left to do in the kernel and holds none of its locks, before it stops
 * for a signal or for a debugger (INV-25).
 *
 * A task in a system call returns to its program when it likes: one that maps a file and then reads
 * from a pipe that nobody writes to would keep the module for ever. So what is queued there is
 * listed until it is called, and taken back when the module goes.
 */

#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/wait_bit.h>

#include "pause.h"
#include "symbols.h"

/* Number of calls that were queued and have not ended. */
static atomic_t dtrace_pauses = ATOMIC_INIT(0);
static bool dtrace_paused;

/* Begins a call: the module does not go until dtrace_call_ended(). */
void dtrace_call_begun(void)
{
	atomic_inc(&dtrace_pauses);
	WRITE_ONCE(dtrace_paused, true);
}

/*
 * Queues a call that the task makes on its way to user mode; the call must end with
 * dtrace_call_ended(). Does not sleep. -ESRCH: the task is exiting.
 */
int dtrace_call_queue(struct callback_head *work, task_work_func_t func, struct task_struct *task)
{
	int error;

	init_task_work(work, func);
	dtrace_call_begun();
	error = task_work_add(task, work, TWA_RESUME);
	if (error)
		dtrace_call_ended();
	return error;
}

void dtrace_call_ended(void)
{
	if (atomic_dec_and_test(&dtrace_pauses))
		wake_up_var(&dtrace_pauses);
}

/* Address of task_work_cancel(); 0: unknown. */
static uintptr_t dtrace_cancel;

/* Calls that have not begun. Protected by dtrace_summoned_lock. */
static LIST_HEAD(dtrace_summoned);
static DEFINE_SPINLOCK(dtrace_summoned_lock);

/*
 * Queues a call of func() by the task, which must call dtrace_summons_followed() first and
 * dtrace_call_ended() last. Does not sleep. -ESRCH: the task is exiting.
 */
int dtrace_summon(struct dtrace_summons *summons, task_work_func_t func, struct task_struct *task)
{
	int error;

	guard(spinlock_irqsave)(&dtrace_summoned_lock);
	error = dtrace_call_queue(&summons->work, func, task);
	if (error)
		return error;
	summons->task = get_task_struct(task);
	list_add_tail(&summons->queued, &dtrace_summoned);
	return 0;
}

/* The call begins, or was taken back. */
void dtrace_summons_followed(struct dtrace_summons *summons)
{
	scoped_guard(spinlock_irqsave, &dtrace_summoned_lock)
		list_del(&summons->queued);
	put_task_struct(summons->task);
}

bool dtrace_call_can_cancel(void)
{
	return dtrace_cancel;
}

/*
 * Takes back what was queued for a task; false: it has begun. The caller ensures that the task
 * exists. Does not sleep.
 */
bool dtrace_call_cancel(struct task_struct *task, struct callback_head *work)
{
	return dtrace_cancel && (u8)dtrace_call(dtrace_cancel, (uintptr_t)task, (uintptr_t)work, 0, 0, 0);
}

/*
 * Takes back a call that has not begun; NULL: there is none. A call on the list has not been freed,
 * because it leaves the list before it does anything else.
 */
static struct dtrace_summons *dtrace_summons_cancel(void)
{
	struct dtrace_summons *summons;

	guard(spinlock_irqsave)(&dtrace_summoned_lock);
	list_for_each_entry(summons, &dtrace_summoned, queued)
		if (dtrace_call_cancel(summons->task, &summons->work))
			return summons;
	return NULL;
}

static void dtrace_summons_cancel_all(void)
{
	struct dtrace_summons *summons;

	while ((summons = dtrace_summons_cancel())) {
		dtrace_summons_followed(summons);
		summons->instead(summons);
		dtrace_call_ended();
	}
}

static void dtrace_pause_work(struct callback_head *work)
{
	struct dtrace_pause *pause = container_of(work, struct dtrace_pause, summons.work);
	long left;

	dtrace_summons_followed(&pause->summons);
	pause->begin(pause);
	left = wait_for_completion_killable_timeout(&pause->over, msecs_to_jiffies(pause->ms));
	pause->end(pause, !left);
	dtrace_call_ended();
}

static void dtrace_pause_not(struct dtrace_summons *summons)
{
	struct dtrace_pause *pause = container_of(summons, struct dtrace_pause, summons);

	pause->end(pause, false);
}

/* Makes the task wait on its way to user mode. Does not sleep. -ESRCH: the task is exiting. */
int dtrace_pause_queue(struct dtrace_pause *pause, struct task_struct *task)
{
	init_completion(&pause->over);
	pause->summons.instead = dtrace_pause_not;
	return dtrace_summon(&pause->summons, dtrace_pause_work, task);
}

void dtrace_pause_over(struct dtrace_pause *pause)
{
	complete_all(&pause->over);
}

void dtrace_calls_cancel_by(uintptr_t cancel)
{
	dtrace_cancel = cancel;
}

/*
 * Waits until no call is left. May sleep. True: a task may still be about to return from this
 * module's text, until all tasks have scheduled.
 */
bool dtrace_pauses_wait(void)
{
	/* More calls may be queued meanwhile. */
	do {
		dtrace_summons_cancel_all();
	} while (!wait_var_event_timeout(&dtrace_pauses, !atomic_read(&dtrace_pauses), HZ / 10));
	return READ_ONCE(dtrace_paused);
}

/* The process of a task, with a reference. Does not sleep. */
struct pid *dtrace_process_of(struct task_struct *task)
{
	return get_task_pid(task, PIDTYPE_TGID);
}

/* Whether the current task belongs to this process. Does not sleep. */
bool dtrace_process_is_current(struct pid *pid)
{
	return task_tgid(current) == pid;
}

/* The number of a process in the current process's pid namespace; 0: it has none there. */
int dtrace_process_number(struct pid *pid)
{
	return pid_vnr(pid);
}

/*
 * The process that has a number in the current process's pid namespace, with a reference; NULL:
 * none.
 */
struct pid *dtrace_process_find(int number)
{
	return find_get_pid(number);
}

/* The number of a process in the initial pid namespace. */
int dtrace_process_first_number(struct pid *pid)
{
	return pid_nr(pid);
}

void dtrace_process_put(struct pid *pid)
{
	put_pid(pid);
}

/* Whether the current task has this name. */
bool dtrace_is_called(const char *name)
{
	return !strncmp(current->comm, name, TASK_COMM_LEN);
}

bool dtrace_is_ptraced(void)
{
	return READ_ONCE(current->ptrace);
}

/*
 * Whether the debugger of the current task may stop it by ptrace() before it returns to its
 * program.
 */
bool dtrace_may_be_stopped(void)
{
	return dtrace_is_ptraced() && (current->in_execve || test_syscall_work(SYSCALL_TRACE));
}

/*
 * Whether the current task has created a process with a memory of its own: not a thread, nor a
 * process that shares its memory (CLONE_VM).
 */
bool dtrace_has_new_memory(struct task_struct *child)
{
	return child->mm && child->mm != current->mm;
}

bool dtrace_mm_is_current(struct mm_struct *mm)
{
	return current->mm == mm;
}

/* Whether no process uses the memory any more. */
bool dtrace_mm_is_over(struct mm_struct *mm)
{
	return !atomic_read(&mm->mm_users);
}
