// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The turn of a user's calls (INV-31).
 *
 * A user decides how many of their calls wait for each other, and so for how long. The kernel takes
 * a task that has been uninterruptible for two minutes for hung, and may be configured to panic
 * then. So a task waits here in the idle state, as a kernel thread does that has nothing to do. The
 * turn goes to the task that has waited longest; none overtakes. A task that is killed leaves the
 * queue. A call that ends something does not wait here, because a user's task keeps the turn while
 * it waits for what it reads, and anyone may be the last to close a file.
 *
 * A waiting task is not frozen, because a frozen task would be given the turn as well, and would
 * keep it. The waits end soon enough for suspend.
 *
 * The calls at one file have a turn as well, which is taken first.
 */

#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "turn.h"

struct dtrace_turn {
	spinlock_t lock;
	bool taken;
	struct list_head waiting;
	struct lockdep_map map;
};

/* A waiting task; lives on its stack. */
struct dtrace_waiter {
	struct list_head all;
	struct task_struct *task;
	bool has_turn;
};

/* `of_file`: this turn is taken before one that is not of a file. */
struct dtrace_turn *dtrace_turn_make(bool of_file)
{
	static struct lock_class_key keys[2];
	struct dtrace_turn *turn = kzalloc(sizeof(*turn), GFP_KERNEL);

	if (!turn)
		return NULL;
	spin_lock_init(&turn->lock);
	INIT_LIST_HEAD(&turn->waiting);
	lockdep_init_map(&turn->map, of_file ? "dtrace_turn_of_file" : "dtrace_turn", &keys[of_file], 0);
	return turn;
}

/* The caller ensures that nobody has the turn or waits for it. */
void dtrace_turn_free(struct dtrace_turn *turn)
{
	kfree(turn);
}

/* Takes the turn if it is free; otherwise queues the waiter and returns false. */
static bool dtrace_turn_try(struct dtrace_turn *turn, struct dtrace_waiter *waiter)
{
	guard(spinlock)(&turn->lock);
	if (!turn->taken) {
		turn->taken = true;
		return true;
	}
	list_add_tail(&waiter->all, &turn->waiting);
	return false;
}

/* Leaves the queue. False: the waiter has been given the turn already. */
static bool dtrace_turn_leave(struct dtrace_turn *turn, struct dtrace_waiter *waiter)
{
	guard(spinlock)(&turn->lock);
	if (waiter->has_turn)
		return false;
	list_del(&waiter->all);
	return true;
}

/* Waits for the turn. Returns 0, or -EINTR if the task is killed. May sleep. */
int dtrace_turn_take(struct dtrace_turn *turn)
{
	struct dtrace_waiter waiter = { .task = current };
	int ret = 0;

	might_sleep();
	lock_map_acquire(&turn->map);
	if (dtrace_turn_try(turn, &waiter))
		return 0;
	for (;;) {
		set_current_state(TASK_IDLE | TASK_WAKEKILL);
		/* Pairs with the release in dtrace_turn_give(). */
		if (smp_load_acquire(&waiter.has_turn))
			break;
		if (fatal_signal_pending(current) && dtrace_turn_leave(turn, &waiter)) {
			lock_map_release(&turn->map);
			ret = -EINTR;
			break;
		}
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	return ret;
}

void dtrace_turn_give(struct dtrace_turn *turn)
{
	struct dtrace_waiter *next;
	struct task_struct *task;

	lock_map_release(&turn->map);
	spin_lock(&turn->lock);
	next = list_first_entry_or_null(&turn->waiting, struct dtrace_waiter, all);
	if (!next) {
		turn->taken = false;
		spin_unlock(&turn->lock);
		return;
	}
	list_del(&next->all);
	/* The task goes on as soon as it sees that it has the turn, and may then exit. */
	task = get_task_struct(next->task);
	smp_store_release(&next->has_turn, true);
	spin_unlock(&turn->lock);
	wake_up_process(task);
	put_task_struct(task);
}
