// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of rights.h.
 *
 * The kernel's answers (answers.c) concern the current task as well: Yama considers whose
 * descendant the traced task is. So the question is asked in the consumer's own task, with the
 * credentials that its opener had: in its control calls, and at any other time by task work on its
 * way to user mode, for which the task is woken. About itself the consumer's process may answer
 * only as long as it executes the program that opened the file.
 *
 * A thread of which nothing is known fires nothing, and is asked about before it returns to its
 * program; it waits for the answer for a moment (asks.c). A thread that is about to get other
 * credentials is asked about at once, and one that begins, by fork() or execve(), before it
 * executes anything. Whether a process is dumpable is looked up when a probe fires.
 *
 * With the framework's mutex held nothing waits for a process: an execve() may take long, as may
 * the closing of files that it causes.
 */

#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/prctl.h>
#include <linux/ptrace.h>
#include <linux/refcount.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/user_namespace.h>

#include "answers.h"
#include "asks.h"
#include "pause.h"
#include "rights.h"
#include "tasks.h"

/* Number of threads that are looked for at a time. */
#define DTRACE_ASK_BATCH 32

void dtrace_rights_put(struct dtrace_rights *rights)
{
	if (!refcount_dec_and_test(&rights->count))
		return;
	dtrace_answers_exit(&rights->answers);
	put_task_struct(rights->seat);
	put_pid(rights->process);
	kvfree(rights);
}

/* Whether the consumer may see what fires in the current thread. In probe context. */
bool dtrace_rights_known(struct dtrace_rights *rights)
{
	struct dtrace_ask *ask;
	int known;

	rcu_read_lock();
	known = dtrace_answers_of(&rights->answers, current);
	if (likely(known > 0)) {
		/*
		 * commit_creds() makes a task undumpable before it gives up rights; so the
		 * credentials are read before that is looked at.
		 */
		smp_rmb();
		known = dtrace_is_dumpable(current);
	} else if (known < 0 && !dtrace_belongs_to(current, &rights->user)) {
		known = 0;
	}
	rcu_read_unlock();
	if (likely(known >= 0))
		return known;
	if (dtrace_rights_is_asked(rights) && dtrace_answers_are_own(&rights->answers))
		return true;
	ask = dtrace_ask_later(rights, current, false);
	if (ask)
		atomic_inc(&ask->fired);
	else
		atomic64_inc(&rights->unanswered);
	return false;
}

/* Number of firings for which it was not known in time whether the consumer may see them. */
u64 dtrace_rights_unanswered(const struct dtrace_rights *rights)
{
	return atomic64_read(&rights->unanswered);
}

/*
 * Whether the current process looks like one that the consumer may trace; the consumer is not
 * notified of it before the question was asked. Does not sleep.
 */
bool dtrace_rights_likely(struct dtrace_rights *rights)
{
	return dtrace_rights_seem(rights, current);
}

/*
 * Queues the question about a thread with credentials of which nothing is known: the current one,
 * or one that has not run yet. Does not sleep.
 */
void dtrace_rights_begun(struct dtrace_rights *rights, struct task_struct *task)
{
	int known;

	if (!dtrace_rights_seem(rights, task))
		return;
	scoped_guard(rcu)
		known = dtrace_answers_of(&rights->answers, task);
	if (known == -EAGAIN)
		dtrace_ask_later(rights, task, false);
}

/*
 * The current process is about to say by prctl() what others may do to it. Makes its answers void,
 * and queues the question to be asked behind the call. Does not sleep.
 */
void dtrace_rights_control(struct dtrace_rights *rights, int option)
{
	bool is_asked;

	if (option != PR_SET_DUMPABLE && option != PR_SET_PTRACER)
		return;
	/* An undumpable process is not left out, because the call may change that. */
	if (!uid_eq(current_uid(), KUIDT_INIT(rights->user.uid)))
		return;
	is_asked = dtrace_ask_later(rights, current, true);
	/* The process is not seen any more, whatever it fires. */
	if (!is_asked)
		atomic64_inc(&rights->unanswered);
	dtrace_answers_doubt(&rights->answers, !is_asked);
}

/*
 * Queues the question about the current thread, which is about to get these credentials. Does not
 * sleep.
 */
void dtrace_rights_changes(struct dtrace_rights *rights, const struct cred *cred)
{
	if (!(current->flags & PF_KTHREAD) && uid_eq(cred->uid, KUIDT_INIT(rights->user.uid)))
		dtrace_ask_later(rights, current, false);
}

/*
 * A thread of a process that has this memory, with a reference: the first one, or another one if
 * that has ended before it. NULL: there is none.
 */
static struct task_struct *dtrace_rights_thread(struct task_struct *first, struct mm_struct *mm)
{
	struct task_struct *thread;

	guard(rcu)();
	for_each_thread(first, thread)
		if (READ_ONCE(thread->mm) == mm)
			return get_task_struct(thread);
	return NULL;
}

/*
 * Whether the consumer may trace a process, as long as the process has this memory. Returns 1, 0 or
 * a negative errno. -ESRCH: it has another memory, or has ended; -EAGAIN: nothing is known and the
 * current task is not the consumer's, or the process executes another program and `wait` is false;
 * -EINTR: killed while it waited.
 */
int dtrace_rights_may(struct dtrace_rights *rights, struct pid *process, struct mm_struct *mm, bool wait)
{
	struct task_struct *first = get_pid_task(process, PIDTYPE_TGID), *task = NULL;
	int may;

	if (!first)
		return -ESRCH;
	/* A process that executes another program gets its memory before it gets its rights. */
	if (wait)
		may = down_read_killable(&first->signal->exec_update_lock);
	else
		may = down_read_trylock(&first->signal->exec_update_lock) ? 0 : -EAGAIN;
	if (may)
		goto out;
	task = dtrace_rights_thread(first, mm);
	if (!task)
		may = -ESRCH;
	else if (!dtrace_rights_seem(rights, task))
		may = 0;
	else {
		scoped_guard(rcu)
			may = dtrace_answers_of(&rights->answers, task);
		if (may == -EAGAIN && dtrace_rights_is_asked(rights))
			may = dtrace_answers_ask(&rights->answers, task, 0);
		if (may == -EPERM)
			may = 0;
	}
	up_read(&first->signal->exec_update_lock);
	if (task)
		put_task_struct(task);
out:
	put_task_struct(first);
	return may;
}

/*
 * Finds the next threads that seem to be the user's and of which nothing is known, each with a
 * reference; returns their number.
 */
static unsigned int dtrace_rights_next(struct dtrace_rights *rights, struct task_struct **tasks)
{
	struct task_struct *process, *task;
	unsigned int n = 0;

	guard(rcu)();
	for_each_process_thread(process, task) {
		bool seems;

		if (task->flags & (PF_KTHREAD | PF_EXITING))
			continue;
		/* Keeps the task's memory. */
		task_lock(task);
		seems = dtrace_belongs_to(task, &rights->user) && dtrace_answers_of(&rights->answers, task) == -EAGAIN;
		task_unlock(task);
		if (!seems)
			continue;
		tasks[n++] = get_task_struct(task);
		/*
		 * Returns, because a `break` would leave the inner one of the macro's two loops
		 * only.
		 */
		if (n == DTRACE_ASK_BATCH)
			return n;
	}
	return n;
}

/*
 * Asks about all processes that seem to be the user's. Returns 0 or -EINTR. Called in the
 * consumer's task; may sleep.
 */
int dtrace_rights_ask_all(struct dtrace_rights *rights)
{
	struct task_struct *tasks[DTRACE_ASK_BATCH];
	unsigned int n, got, rounds;

	/* Bounded, because a process may change its credentials all the time. */
	for (rounds = 0; rounds < DTRACE_ANSWERS_MAX / DTRACE_ASK_BATCH; rounds++) {
		bool any = false;

		got = dtrace_rights_next(rights, tasks);
		for (n = 0; n < got; n++) {
			struct rw_semaphore *exec = &tasks[n]->signal->exec_update_lock;

			/* A process that executes a program is asked about when it has done so. */
			if (down_read_trylock(exec)) {
				any |= dtrace_answers_ask(&rights->answers, tasks[n], PTRACE_MODE_NOAUDIT) >= 0;
				up_read(exec);
			}
			put_task_struct(tasks[n]);
		}
		if (fatal_signal_pending(current))
			return -EINTR;
		if (got < DTRACE_ASK_BATCH || !any)
			break;
		cond_resched();
	}
	return 0;
}

/*
 * Makes the current task the one in which questions are asked, unless the file was given to another
 * user.
 */
void dtrace_rights_sit(struct dtrace_rights *rights)
{
	struct task_struct *old_seat;
	struct pid *old_process;
	bool unkicked;

	if (READ_ONCE(rights->seat) == current || !dtrace_rights_seem(rights, current))
		return;
	scoped_guard(spinlock_irqsave, &rights->lock) {
		old_seat = rights->seat;
		old_process = rights->process;
		rights->seat = get_task_struct(current);
		WRITE_ONCE(rights->process, get_pid(task_tgid(current)));
		unkicked = dtrace_rights_unkick(rights);
		WRITE_ONCE(rights->in_vain, false);
	}
	put_task_struct(old_seat);
	put_pid(old_process);
	/* Answers what the previous task has not answered. */
	if (unkicked)
		dtrace_rights_answer_all(rights);
}

/*
 * The user who pays for what a user has: that user, or the owner of the outermost user namespace
 * that the user is in, because in a namespace of their own a user may be many others. Namespaces
 * that root has made do not count, because they are root's decision.
 */
static unsigned int dtrace_payer(unsigned int uid, const struct user_namespace *ns)
{
	kuid_t payer = KUIDT_INIT(uid);

	for (; ns->parent; ns = ns->parent)
		if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
			payer = ns->owner;
	return __kuid_val(payer);
}

/* The user who pays for what the opener has. */
unsigned int dtrace_rights_payer(const struct dtrace_rights *rights)
{
	return dtrace_payer(rights->user.uid, rights->answers.cred->user_ns);
}

unsigned int dtrace_payer_of_current(void)
{
	struct dtrace_identity user;

	dtrace_current_identity(&user);
	return dtrace_payer(user.uid, current_user_ns());
}

/* Makes the rights of the current task, or returns an error pointer. May sleep. */
struct dtrace_rights *dtrace_rights_open(uintptr_t may_access, const int *scope)
{
	struct dtrace_rights *rights;
	int error;

	/* A queued call that cannot be taken back could keep the module. */
	if (!dtrace_call_can_cancel())
		return ERR_PTR(-ENOENT);
	rights = kvzalloc(sizeof(*rights), GFP_KERNEL_ACCOUNT);
	if (!rights)
		return ERR_PTR(-ENOMEM);
	error = dtrace_answers_init(&rights->answers, may_access, scope);
	if (error) {
		kvfree(rights);
		return ERR_PTR(error);
	}
	refcount_set(&rights->count, 1);
	spin_lock_init(&rights->lock);
	INIT_LIST_HEAD(&rights->waiting);
	dtrace_current_identity(&rights->user);
	rights->seat = get_task_struct(current);
	rights->process = get_pid(task_tgid(current));
	return rights;
}

/*
 * Drops the rights. Nobody calls any more with them. What is queued is taken back, because a thread
 * returns to its program when it likes: one that reads from a pipe that nobody writes to would keep
 * the module for ever.
 */
void dtrace_rights_close(struct dtrace_rights *rights)
{
	unsigned int n;
	bool unkicked;

	for (n = 0; n < DTRACE_ASKS; n++) {
		struct dtrace_ask *ask = &rights->asks[n];
		struct task_struct *task;
		bool cancelled;

		/* A thread that is found here exists, because it clears `task` before it ends. */
		scoped_guard(rcu) {
			task = READ_ONCE(ask->task);
			cancelled = task && dtrace_call_cancel(task, &ask->work);
		}
		if (cancelled)
			dtrace_ask_end(ask);
	}
	scoped_guard(spinlock_irqsave, &rights->lock) {
		rights->closed = true;
		unkicked = dtrace_rights_unkick(rights);
	}
	if (unkicked) {
		dtrace_rights_put(rights);
		dtrace_call_ended();
	}
	dtrace_rights_put(rights);
}
