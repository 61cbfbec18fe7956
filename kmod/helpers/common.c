// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Locks that the calls of all consumers take, and that no holder can keep by not running (INV-32).
 *
 * A member's task may have the least priority, SCHED_IDLE, or a cgroup with hardly any weight. If
 * it is preempted while it holds a lock, it may not run again for minutes. So each of these locks
 * consists of two. `mutex` is the lock itself. A task without CAP_SYS_NICE takes `gate` before it.
 * `gate` is an rt_mutex, whose holder inherits the priority of the tasks that wait for it. A task
 * with CAP_SYS_NICE, and a thread of the kernel, takes the mutex alone. If it is kept waiting, it
 * takes the gate, with a real-time priority while it waits; weights of cgroups do not matter to
 * that. Then the mutex is held either by a task that holds the gate, and so runs at once, or by a
 * task that may decide itself how soon it runs.
 *
 * The priority is inherited, never set on the holder: the kernel checks what a task may do before
 * it does it, so a task that got rid of its scheduling policy for a moment could keep it that way.
 * Members do not raise each other's tasks either, because two of them could then run with a raised
 * priority for as long as they like. So a member waits for another member's scheduling.
 */

#include <linux/capability.h>
#include <linux/delay.h>
#include <linux/mutex.h>
#include <linux/rtmutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>
#include <uapi/linux/sched/types.h>

#include "common.h"

/* The least real-time priority, that of sched_set_fifo_low(). */
#define DTRACE_FIFO 1
/*
 * How often a task that may decide tries the mutex before it goes to the gate. It sleeps 0.5 to 1
 * ms between two tries.
 */
#define DTRACE_CALM 4

struct dtrace_common {
	struct mutex mutex;
	struct rt_mutex gate;
	/* The holder of the mutex holds the gate as well. Protected by the mutex. */
	bool by_gate;
};

struct dtrace_common *dtrace_common_make(enum dtrace_common_of of)
{
	static struct lock_class_key keys[2 * DTRACE_COMMON_KINDS];
	static const char *const names[2 * DTRACE_COMMON_KINDS] = {
		"dtrace::State", "dtrace::State_gate", "dtrace::Users", "dtrace::Users_gate",
		"dtrace::Desk", "dtrace::Desk_gate", "dtrace::Heirs", "dtrace::Heirs_gate",
		"dtrace::Audience", "dtrace::Audience_gate",
	};
	struct dtrace_common *common = kzalloc(sizeof(*common), GFP_KERNEL);

	if (!common)
		return NULL;
	__mutex_init(&common->mutex, names[2 * of], &keys[2 * of]);
	__rt_mutex_init(&common->gate, names[2 * of + 1], &keys[2 * of + 1]);
	return common;
}

/* Frees a lock that nobody holds or waits for. */
void dtrace_common_free(struct dtrace_common *common)
{
	mutex_destroy(&common->mutex);
	kfree(common);
}

/*
 * Whether the current task may decide how soon others run: it has CAP_SYS_NICE or is a thread of
 * the kernel.
 */
bool dtrace_may_decide(void)
{
	return current->flags & PF_KTHREAD || ns_capable_noaudit(&init_user_ns, CAP_SYS_NICE);
}

static int dtrace_pass_gate(struct dtrace_common *common, bool killable)
{
	if (killable)
		return rt_mutex_lock_killable(&common->gate);
	rt_mutex_lock(&common->gate);
	return 0;
}

/* Takes the gate, with a real-time priority during the wait. For tasks that may decide. */
static int dtrace_pass_gate_soon(struct dtrace_common *common, bool killable)
{
	const struct sched_attr raised = {
		.size = sizeof(raised), .sched_policy = SCHED_FIFO, .sched_priority = DTRACE_FIFO,
		.sched_flags = current->sched_reset_on_fork ? SCHED_FLAG_RESET_ON_FORK : 0,
	};
	const struct sched_attr was = {
		.size = sizeof(was), .sched_policy = current->policy, .sched_nice = task_nice(current), .sched_flags = raised.sched_flags,
		.sched_runtime = current->se.custom_slice ? current->se.slice : 0,
	};
	bool is_soon = was.sched_policy == SCHED_FIFO || was.sched_policy == SCHED_RR || was.sched_policy == SCHED_DEADLINE;
	/* A real-time policy clears it. */
	u64 slack = current->timer_slack_ns;
	int ret;

	is_soon = is_soon || sched_setattr_nocheck(current, &raised);
	ret = dtrace_pass_gate(common, killable);
	/* Restore the policy, unless another task has changed it meanwhile. */
	if (is_soon || current->policy != SCHED_FIFO || current->rt_priority != DTRACE_FIFO)
		return ret;
	/*
	 * If the policy was that of a scheduler in BPF, that may have been replaced and refuse the
	 * task.
	 */
	if (sched_setattr_nocheck(current, &was))
		sched_set_normal(current, was.sched_nice);
	current->timer_slack_ns = slack;
	return ret;
}

static int dtrace_common_wait(struct dtrace_common *common, bool killable)
{
	if (!killable) {
		mutex_lock(&common->mutex);
		return 0;
	}
	return mutex_lock_killable(&common->mutex);
}

/* Takes the lock for a task that may decide. */
static int dtrace_common_lock_soon(struct dtrace_common *common, bool killable)
{
	int ret;

	for (int n = 0; n < DTRACE_CALM; n++) {
		if (mutex_trylock(&common->mutex))
			return 0;
		usleep_range(500, 1000);
	}
	ret = dtrace_pass_gate_soon(common, killable);
	if (ret)
		return ret;
	/*
	 * While the gate is held here, nobody who comes by the gate has the mutex or can get it
	 * first.
	 */
	ret = dtrace_common_wait(common, killable);
	rt_mutex_unlock(&common->gate);
	return ret;
}

static int dtrace_common_lock_by_gate(struct dtrace_common *common, bool killable)
{
	int ret = dtrace_pass_gate(common, killable);

	if (ret)
		return ret;
	ret = dtrace_common_wait(common, killable);
	if (ret)
		rt_mutex_unlock(&common->gate);
	return ret;
}

int dtrace_common_lock(struct dtrace_common *common, bool killable)
{
	bool may_decide = dtrace_may_decide();
	int ret;

	might_sleep();
	ret = may_decide ? dtrace_common_lock_soon(common, killable) : dtrace_common_lock_by_gate(common, killable);
	if (!ret)
		common->by_gate = !may_decide;
	return ret;
}

void dtrace_common_unlock(struct dtrace_common *common)
{
	bool by_gate = common->by_gate;

	mutex_unlock(&common->mutex);
	if (by_gate)
		rt_mutex_unlock(&common->gate);
}
