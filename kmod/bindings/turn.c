// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The turn of a user's calls.
 *
 * A user decides how many of his calls wait for each other, and so for how long. The kernel takes a task that it cannot interrupt for two minutes for
 * hung, and may be told to panic then. So nobody waits here like that: a task waits so that it may be killed, and if it is, by looking
 * from time to time; a worker, which gets no signals, so that it may be interrupted.
 */

#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "turn.h"

struct dtrace_turn {
	struct mutex mutex;
};

struct dtrace_turn *dtrace_turn_make(void)
{
	struct dtrace_turn *turn = kmalloc(sizeof(*turn), GFP_KERNEL);

	if (turn)
		mutex_init(&turn->mutex);
	return turn;
}

/* Nobody has it or waits for it. */
void dtrace_turn_free(struct dtrace_turn *turn)
{
	mutex_destroy(&turn->mutex);
	kfree(turn);
}

void dtrace_turn_take(struct dtrace_turn *turn)
{
	bool is_worker = current->flags & PF_KTHREAD;

	if (!(is_worker ? mutex_lock_interruptible(&turn->mutex) : mutex_lock_killable(&turn->mutex)))
		return;
	while (!mutex_trylock(&turn->mutex))
		schedule_timeout_idle(1);
}

void dtrace_turn_give(struct dtrace_turn *turn)
{
	mutex_unlock(&turn->mutex);
}
