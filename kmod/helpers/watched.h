/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Whether anything may be recorded on this CPU. */
#ifndef _DTRACE_WATCHED_H
#define _DTRACE_WATCHED_H

#include <linux/context_tracking.h>
#include <linux/cpumask.h>
#include <linux/rcupdate.h>
#include <linux/smp.h>

/*
 * Whether RCU waits for what this CPU does. It does not in the idle loop and in entry code, nor on
 * a CPU that goes offline: after that has reported itself to RCU, it runs on for a while, and only
 * cpu_online() tells. Interrupts are off.
 */
static __always_inline bool dtrace_cpu_watched(void)
{
	return rcu_is_watching_curr_cpu() && cpu_online(raw_smp_processor_id());
}

#endif
