/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * Tasks as probes see them, and signals to them; tasks.c, signals.c and arch/ hold the bodies.
 * ftrace can trace nothing of it, because most of it runs in probe context.
 */
#ifndef _DTRACE_TASKS_H
#define _DTRACE_TASKS_H

#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/types.h>

/* The identity of a task, as far as it decides who may trace the task. */
struct dtrace_identity {
	u32 uid;
	u32 gid;
	/* The number of its user namespace, which no other one ever gets. */
	u64 user_ns;
	/* Its permitted capabilities in that namespace. */
	u64 permitted;
};

struct task_struct *dtrace_current(void);
struct pt_regs *dtrace_user_regs(struct task_struct *task);
bool dtrace_user_segment(struct task_struct *task, u64 n, u64 *value);
unsigned int dtrace_ppid(struct task_struct *task);
unsigned int dtrace_uid(struct task_struct *task);
unsigned int dtrace_gid(struct task_struct *task);
bool dtrace_is_dumpable(struct task_struct *task);
bool dtrace_belongs_to(struct task_struct *task, const struct dtrace_identity *user);
bool dtrace_progenyof(struct task_struct *task, u64 pid, u32 *hops);
bool dtrace_killed(void);
u32 dtrace_thread_number(void);
bool dtrace_in_group(unsigned int gid);
void dtrace_current_identity(struct dtrace_identity *user);

bool dtrace_signal_current(int sig);
void dtrace_signal_sync(void);

#endif
