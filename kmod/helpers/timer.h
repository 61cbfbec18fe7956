/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* What a timer's function needs; timer.c holds the bodies. */
#ifndef _DTRACE_TIMER_H
#define _DTRACE_TIMER_H

#include <linux/hrtimer_types.h>
#include <linux/ptrace.h>
#include <linux/types.h>

struct pt_regs *dtrace_irq_regs(void);
enum hrtimer_restart dtrace_timer_again(struct hrtimer *timer, s64 interval);

#endif
