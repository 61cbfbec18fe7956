// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The questions about threads (INV-36). A thread that is to be asked about waits on its way to its
 * program; task work, the kick, makes the consumer's task ask about all that wait. If the task does
 * not come in time, no thread waits until it has answered again.
 */

#include <linux/bitops.h>
#include <linux/completion.h>
#include <linux/jiffies.h>
#include <linux/pid.h>
#include <linux/ptrace.h>
#include <linux/refcount.h>
#include <linux/sched/signal.h>
#include <linux/spinlock.h>
#include <linux/task_work.h>

#include "answers.h"
#include "asks.h"
#include "pause.h"

/* How long a thread waits, in ms. */
#define DTRACE_ASK_TIME 200

/*
 * Answers the threads that wait, in the consumer's task; ends the reference and the call of a kick
 * that is no longer queued. A task that is exiting answers nothing.
 */
void dtrace_rights_answer_all(struct dtrace_rights *rights)
{
	struct dtrace_ask *ask;

	for (;;) {
		scoped_guard(spinlock_irqsave, &rights->lock) {
			ask = list_first_entry_or_null(&rights->waiting, struct dtrace_ask, node);
			if (ask) {
				list_del_init(&ask->node);
				ask->begun = true;
			}
		}
		if (!ask)
			break;
		if (!(current->flags & PF_EXITING))
			dtrace_answers_ask(&rights->answers, ask->task, PTRACE_MODE_NOAUDIT);
		complete(&ask->over);
	}
	dtrace_rights_put(rights);
	dtrace_call_ended();
}

/*
 * The kick runs. Only this and dtrace_rights_unkick() clear `kicked`: while it is set, the kick is
 * queued and must not be queued again.
 */
static void dtrace_rights_answer(struct callback_head *work)
{
	struct dtrace_rights *rights = container_of(work, struct dtrace_rights, kick);

	scoped_guard(spinlock_irqsave, &rights->lock) {
		rights->kicked = NULL;
		WRITE_ONCE(rights->in_vain, false);
	}
	dtrace_rights_answer_all(rights);
}

/* Queues the kick for a thread; false: the thread is exiting. rights->lock is held. */
static bool dtrace_rights_kick_one(struct dtrace_rights *rights, struct task_struct *task)
{
	if (task_work_add(task, &rights->kick, TWA_SIGNAL))
		return false;
	rights->kicked = task;
	return true;
}

/* Makes the consumer's task answer. False: it has ended. */
static bool dtrace_rights_kick(struct dtrace_rights *rights)
{
	struct task_struct *leader = NULL;
	bool kicked;

	scoped_guard(spinlock_irqsave, &rights->lock) {
		if (rights->kicked || rights->closed)
			return rights->kicked;
		refcount_inc(&rights->count);
		dtrace_call_begun();
		init_task_work(&rights->kick, dtrace_rights_answer);
		kicked = dtrace_rights_kick_one(rights, rights->seat);
		if (!kicked) {
			/*
			 * A thread that has ended may have lost its group_leader, so the leader is
			 * found by the process.
			 */
			leader = get_pid_task(rights->process, PIDTYPE_TGID);
			kicked = leader && dtrace_rights_kick_one(rights, leader);
		}
	}
	if (leader)
		put_task_struct(leader);
	if (kicked)
		return true;
	dtrace_rights_put(rights);
	dtrace_call_ended();
	return false;
}

/*
 * Takes the kick back if it has not begun. True: the caller must put its reference and end its
 * call. rights->lock is held.
 */
bool dtrace_rights_unkick(struct dtrace_rights *rights)
{
	struct task_struct *task = rights->kicked;

	if (!task || !dtrace_call_cancel(task, &rights->kick))
		return false;
	rights->kicked = NULL;
	return true;
}

static void dtrace_ask_wait(struct dtrace_ask *ask)
{
	struct dtrace_rights *rights = ask->rights;
	long left = 0;
	bool begun;

	scoped_guard(spinlock_irqsave, &rights->lock)
		list_add_tail(&ask->node, &rights->waiting);
	if (dtrace_rights_kick(rights))
		left = wait_for_completion_killable_timeout(&ask->over, msecs_to_jiffies(DTRACE_ASK_TIME));
	if (left > 0)
		return;
	scoped_guard(spinlock_irqsave, &rights->lock) {
		begun = ask->begun;
		if (!begun)
			list_del_init(&ask->node);
		/*
		 * If no kick is queued, the last one is running, so the consumer does answer; and
		 * no other kick would clear `in_vain`.
		 */
		if (!begun && !left && rights->kicked)
			WRITE_ONCE(rights->in_vain, true);
	}
	if (begun)
		wait_for_completion(&ask->over);
}

/* Gives back the entry, its reference and its call. */
void dtrace_ask_end(struct dtrace_ask *ask)
{
	struct dtrace_rights *rights = ask->rights;

	WRITE_ONCE(ask->task, NULL);
	clear_bit_unlock(ask - rights->asks, rights->taken);
	dtrace_rights_put(rights);
	dtrace_call_ended();
}

/* A thread returns to its program. */
static void dtrace_ask_work(struct callback_head *work)
{
	struct dtrace_ask *ask = container_of(work, struct dtrace_ask, work);
	struct dtrace_rights *rights = ask->rights;
	int known, said = 0;

	if (ask->anew)
		dtrace_answers_doubt(&rights->answers, false);
	scoped_guard(rcu)
		known = dtrace_answers_of(&rights->answers, current);
	if (known == -EAGAIN && !(current->flags & PF_EXITING) && dtrace_rights_seem(rights, current)) {
		if (dtrace_rights_is_asked(rights))
			said = dtrace_answers_ask(&rights->answers, current, PTRACE_MODE_NOAUDIT);
		else if (!READ_ONCE(rights->in_vain))
			dtrace_ask_wait(ask);
		scoped_guard(rcu)
			known = dtrace_answers_of(&rights->answers, current);
		/*
		 * The consumer's process may not trace itself if it executes another program
		 * (-EPERM).
		 */
		if (known == -EAGAIN && said != -EPERM && !fatal_signal_pending(current))
			atomic64_add(max(atomic_read(&ask->fired), 1), &rights->unanswered);
	}
	dtrace_ask_end(ask);
}

/*
 * Queues the question about a thread: the current one, or one that has not run yet. NULL: that is
 * impossible. Does not sleep.
 */
struct dtrace_ask *dtrace_ask_later(struct dtrace_rights *rights, struct task_struct *task, bool anew)
{
	struct dtrace_ask *ask = NULL;
	unsigned int n;

	for (n = 0; n < DTRACE_ASKS && !anew; n++)
		if (READ_ONCE(rights->asks[n].task) == task)
			return &rights->asks[n];
	for (n = 0; n < DTRACE_ASKS && !ask; n++)
		if (!test_and_set_bit_lock(n, rights->taken))
			ask = &rights->asks[n];
	if (!ask)
		return NULL;
	refcount_inc(&rights->count);
	ask->rights = rights;
	atomic_set(&ask->fired, 0);
	ask->begun = false;
	ask->anew = anew;
	INIT_LIST_HEAD(&ask->node);
	init_completion(&ask->over);
	WRITE_ONCE(ask->task, task);
	if (!dtrace_call_queue(&ask->work, dtrace_ask_work, task))
		return ask;
	WRITE_ONCE(ask->task, NULL);
	clear_bit_unlock(ask - rights->asks, rights->taken);
	/* Not the last one, because the caller holds a reference of its own. */
	refcount_dec(&rights->count);
	return NULL;
}
