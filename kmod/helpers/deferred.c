// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* The bodies of deferred.h. */

#include <linux/jiffies.h>
#include <linux/workqueue.h>

#include "deferred.h"
#include "percpu.h"

void dtrace_work_init(struct work_struct *work, work_func_t func)
{
	INIT_WORK(work, func);
}

/* Queued on the long queue, because such work may wait for CPUs that come online. */
void dtrace_work_queue(struct work_struct *work)
{
	queue_work(system_long_wq, work);
}

/* A CPU that is offline may have no worker. */
void dtrace_work_queue_on(struct work_struct *work, unsigned int cpu)
{
	if (dtrace_cpu_online(cpu))
		queue_work_on(cpu, system_long_wq, work);
	else
		queue_work(system_long_wq, work);
}

void dtrace_periodic_init(struct delayed_work *work, work_func_t func)
{
	INIT_DELAYED_WORK(work, func);
}

/*
 * Queued on the long queue, because periodic work waits for grace periods. After one jiffy at
 * least; otherwise work would follow work without a pause.
 */
void dtrace_periodic_queue(struct delayed_work *work, u64 ns)
{
	queue_delayed_work(system_dfl_long_wq, work, max(nsecs_to_jiffies(ns), 1UL));
}

/* Queues delayed work for `ns` from now, or moves it there if it is queued already. */
void dtrace_work_put_off(struct delayed_work *work, u64 ns)
{
	mod_delayed_work(system_dfl_long_wq, work, nsecs_to_jiffies(ns));
}
