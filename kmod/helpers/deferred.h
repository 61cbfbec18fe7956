/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Work in process context, soon or a while later; deferred.c holds the bodies. */
#ifndef _DTRACE_DEFERRED_H
#define _DTRACE_DEFERRED_H

#include <linux/types.h>
#include <linux/workqueue.h>

void dtrace_work_init(struct work_struct *work, work_func_t func);
void dtrace_work_queue(struct work_struct *work);
void dtrace_work_queue_on(struct work_struct *work, unsigned int cpu);
void dtrace_periodic_init(struct delayed_work *work, work_func_t func);
void dtrace_periodic_queue(struct delayed_work *work, u64 ns);
void dtrace_work_put_off(struct delayed_work *work, u64 ns);

#endif
