/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * Threads that wait until the consumer's own task has asked whether it may trace them. Used by
 * rights.c and asks.c only, which hold the bodies.
 */
#ifndef _DTRACE_ASKS_H
#define _DTRACE_ASKS_H

#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/completion.h>
#include <linux/list.h>
#include <linux/pid.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/spinlock.h>
#include <linux/task_work.h>
#include <linux/types.h>

#include "answers.h"
#include "tasks.h"

/* Number of threads that may wait for an answer at a time. */
#define DTRACE_ASKS 64

/* A thread that is to be asked about before it returns to its program. */
struct dtrace_ask {
	struct callback_head work;
	struct list_head node;
	struct dtrace_rights *rights;
	struct task_struct *task;
	struct completion over;
	/* The question is being asked. */
	bool begun;
	/* Earlier answers are void. */
	bool anew;
	/* How often the thread has fired meanwhile. */
	atomic_t fired;
};

struct dtrace_rights {
	refcount_t count;
	/* Identity of the task that opened the consumer's file. */
	struct dtrace_identity user;
	struct dtrace_answers answers;
	/* Protects what follows. */
	spinlock_t lock;
	/* The task in which questions are asked, and its process. */
	struct task_struct *seat;
	struct pid *process;
	struct list_head waiting;
	struct callback_head kick;
	/*
	 * The thread that the kick is queued for; NULL: it is not queued. The thread exists as long
	 * as the kick is queued.
	 */
	struct task_struct *kicked;
	/* No question is asked any more. */
	bool closed;
	/* A thread has waited in vain, so none waits until the consumer's task answers again. */
	bool in_vain;
	/*
	 * Number of firings of threads that were then asked about in vain; at least one for each
	 * time.
	 */
	atomic64_t unanswered;
	unsigned long taken[BITS_TO_LONGS(DTRACE_ASKS)];
	struct dtrace_ask asks[DTRACE_ASKS];
};

/*
 * Whether the task looks like one that belongs to the opener's user. For any other task the kernel
 * would answer no.
 */
static inline bool dtrace_rights_seem(struct dtrace_rights *rights, struct task_struct *task)
{
	bool seem;

	rcu_read_lock();
	seem = dtrace_belongs_to(task, &rights->user);
	rcu_read_unlock();
	return seem;
}

/* Whether the current task belongs to the process in which questions are asked. */
static inline bool dtrace_rights_is_asked(struct dtrace_rights *rights)
{
	return READ_ONCE(rights->process) == task_tgid(current);
}

void dtrace_rights_put(struct dtrace_rights *rights);
void dtrace_rights_answer_all(struct dtrace_rights *rights);
bool dtrace_rights_unkick(struct dtrace_rights *rights);
struct dtrace_ask *dtrace_ask_later(struct dtrace_rights *rights, struct task_struct *task, bool anew);
void dtrace_ask_end(struct dtrace_ask *ask);

#endif
