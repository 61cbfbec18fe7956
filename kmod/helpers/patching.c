// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Work under kernel locks that everybody needs, such as changes of the kernel's text. The loading
 * of modules, jump labels and other tracers wait for these locks (INV-32).
 *
 * Such a lock lends its holder no priority. A member's task may be SCHED_IDLE, and be preempted for
 * a long time while it holds one. So a worker does the work while the task waits. The worker has
 * nice -20, because others may wait for the task in turn. Registering and unregistering uprobes
 * does not go this way: it may wait for a file, and SIGKILL ends that wait of a task, but not of a
 * worker.
 */

#include <linux/ftrace.h>
#include <linux/workqueue.h>

#include "common.h"
#include "patching.h"

static struct workqueue_struct *dtrace_patchers;

int dtrace_patching_init(void)
{
	dtrace_patchers = alloc_workqueue("dtrace_patchers", WQ_UNBOUND | WQ_HIGHPRI, WQ_MAX_ACTIVE);
	return dtrace_patchers ? 0 : -ENOMEM;
}

/* The caller must ensure that nothing is being patched any more. */
void dtrace_patching_exit(void)
{
	destroy_workqueue(dtrace_patchers);
}

struct dtrace_patching {
	struct work_struct work;
	void (*what)(void *data);
	void *data;
};

static void dtrace_patching_do(struct work_struct *work)
{
	struct dtrace_patching *patching = container_of(work, struct dtrace_patching, work);

	patching->what(patching->data);
}

/*
 * Calls what(data): in a worker, unless the current task may decide about priorities
 * (dtrace_may_decide()). May sleep; no signal ends the wait. The caller holds no lock that what()
 * takes, and no lock that others need unless it has a gate (common.c).
 */
void dtrace_patch(void (*what)(void *data), void *data)
{
	struct dtrace_patching patching = { .what = what, .data = data };

	if (dtrace_may_decide()) {
		what(data);
		return;
	}
	INIT_WORK_ONSTACK(&patching.work, dtrace_patching_do);
	queue_work(dtrace_patchers, &patching.work);
	flush_work(&patching.work);
	destroy_work_on_stack(&patching.work);
}

struct dtrace_filter {
	struct ftrace_ops *ops;
	uintptr_t *at;
	unsigned int count;
	int remove, reset;
	int error;
};

static void dtrace_filter_do(void *data)
{
	struct dtrace_filter *filter = data;

	filter->error = ftrace_set_filter_ips(filter->ops, filter->at, filter->count, filter->remove, filter->reset);
}

int dtrace_filter_set(struct ftrace_ops *ops, uintptr_t *at, unsigned int count, int remove, int reset)
{
	struct dtrace_filter filter = { .ops = ops, .at = at, .count = count, .remove = remove, .reset = reset };

	dtrace_patch(dtrace_filter_do, &filter);
	return filter.error;
}

static void dtrace_filter_begin(void *data)
{
	struct dtrace_filter *filter = data;

	filter->error = register_ftrace_function(filter->ops);
}

int dtrace_filter_register(struct ftrace_ops *ops)
{
	struct dtrace_filter filter = { .ops = ops };

	dtrace_patch(dtrace_filter_begin, &filter);
	return filter.error;
}
