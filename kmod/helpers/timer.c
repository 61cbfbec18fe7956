// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of timer.h. This object is built without ftrace, because what a timer's function calls
 * runs in probe context.
 */

#include <linux/hrtimer.h>
#include <asm/irq_regs.h>

#include "timer.h"

/* The registers of the code that the interrupt on this CPU has interrupted. */
struct pt_regs *dtrace_irq_regs(void)
{
	return get_irq_regs();
}

/* The return value of a timer's function for a timer that is to expire again an interval later. */
enum hrtimer_restart dtrace_timer_again(struct hrtimer *timer, s64 interval)
{
	hrtimer_forward_now(timer, interval);
	return HRTIMER_RESTART;
}
