// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Locks that everybody's calls want, and nobody may keep by not being run.
 *
 * A user may be of the least priority, SCHED_IDLE, or in a control group with hardly any weight. If such a task is interrupted while it holds a
 * lock it may not run again for minutes. So there are two locks. `mutex` is the lock itself. Who may not decide how soon others run takes `gate`
 * before it: an rt_mutex, whose holder inherits the priority of who waits for it. Who may decide, and a thread of the kernel, takes only
 * the mutex; where it is kept waiting, it waits at the gate for a while, with a real-time priority: control groups are nothing to that. Who has
 * the mutex then has come by the gate, and runs at once, or may decide himself how soon he runs.
 *
 * The priority is inherited, never set: who could for a moment do without his scheduling policy could keep it so, as the kernel asks what a task
 * is allowed before it does it. And users do not have each other raised, or two of them could run so as long as they like: a user waits
 * for another one's scheduling.
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
/* So many milliseconds, about, who may raise himself waits without that. */
#define DTRACE_CALM 4

struct dtrace_common {
	struct mutex mutex;
	struct rt_mutex gate;
	/* Of who has the mutex: he has the gate as well. */
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

/* Nobody has it or waits for it. */
void dtrace_common_free(struct dtrace_common *common)
{
	mutex_destroy(&common->mutex);
	kfree(common);
}

/* Whether the current task may decide how soon others run. */
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

/* The same with a real-time priority, for one who may have it. */
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
	u64 slack = current->timer_slack_ns;
	int ret;

	is_soon = is_soon || sched_setattr_nocheck(current, &raised);
	ret = dtrace_pass_gate(common, killable);
	/* Unless somebody has said otherwise meanwhile. */
	if (is_soon || current->policy != SCHED_FIFO || current->rt_priority != DTRACE_FIFO)
		return ret;
	/* A scheduler that was loaded meanwhile may refuse the task. */
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

/* Of one who may decide. */
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
	/* Nobody has the mutex now who comes by the gate, nor gets it sooner. */
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
