// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of pause.h.
 *
 * The handler of a breakpoint and a tracepoint may not wait: everybody who removes a breakpoint waits for the first, and the second is
 * called with preemption off. What they queue is called when the task has nothing left to do in the kernel and holds none of
 * its locks, before it stops for a signal or for a debugger.
 */

#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/wait_bit.h>

#include "pause.h"

/* Calls that were queued and have not ended. */
static atomic_t dtrace_pauses = ATOMIC_INIT(0);
static bool dtrace_paused;

/* A call is to be waited for, until dtrace_call_ended(), when the module goes. */
void dtrace_call_begun(void)
{
	atomic_inc(&dtrace_pauses);
	WRITE_ONCE(dtrace_paused, true);
}

/* Has task call work on its way to user mode, which is to call dtrace_call_ended() last. Does not sleep. ESRCH: it ends. */
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

static void dtrace_pause_work(struct callback_head *work)
{
	struct dtrace_pause *pause = container_of(work, struct dtrace_pause, work);
	long left;

	pause->begin(pause);
	left = wait_for_completion_killable_timeout(&pause->over, msecs_to_jiffies(pause->ms));
	pause->end(pause, !left);
	dtrace_call_ended();
}

/* Has task wait. Does not sleep. ESRCH: it ends. */
int dtrace_pause_queue(struct dtrace_pause *pause, struct task_struct *task)
{
	init_completion(&pause->over);
	return dtrace_call_queue(&pause->work, dtrace_pause_work, task);
}

void dtrace_pause_over(struct dtrace_pause *pause)
{
	complete_all(&pause->over);
}

/* Waits until none is left. True: some task may still be about to return from here, until all have slept. */
bool dtrace_pauses_wait(void)
{
	wait_var_event(&dtrace_pauses, !atomic_read(&dtrace_pauses));
	return READ_ONCE(dtrace_paused);
}

/* The process of a task. Does not sleep. */
struct pid *dtrace_process_of(struct task_struct *task)
{
	return get_task_pid(task, PIDTYPE_TGID);
}

/* Whether the current task is of this process. Does not sleep. */
bool dtrace_process_is_current(struct pid *pid)
{
	return task_tgid(current) == pid;
}

/* What the current process knows it by; 0 if it does not. */
int dtrace_process_number(struct pid *pid)
{
	return pid_vnr(pid);
}

/* The process that the current one knows by a number. */
struct pid *dtrace_process_find(int number)
{
	return find_get_pid(number);
}

/* What it is called where all processes are seen. */
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

/* Whether who traces the current task by ptrace() may stop it before it goes back to its program. */
bool dtrace_may_be_stopped(void)
{
	return dtrace_is_ptraced() && (current->in_execve || test_syscall_work(SYSCALL_TRACE));
}

/* Whether the current task has made a process, and not a thread nor somebody who borrows its memory. */
bool dtrace_has_new_memory(struct task_struct *child)
{
	return child->mm && child->mm != current->mm;
}

bool dtrace_mm_is_current(struct mm_struct *mm)
{
	return current->mm == mm;
}

/* Whether no process has it any more. */
bool dtrace_mm_is_over(struct mm_struct *mm)
{
	return !atomic_read(&mm->mm_users);
}
