/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* The device by which programs register probes (INV-52). */
#ifndef _DTRACE_HELPER_H
#define _DTRACE_HELPER_H

#include <linux/mm_types.h>
#include <linux/sched.h>

int dtrace_layout(void);
struct mm_struct *dtrace_current_mm(void);
struct mm_struct *dtrace_child_mm(struct task_struct *child);

#endif
