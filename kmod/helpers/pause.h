/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Work that tasks do on their way to user mode, and waits there (INV-25). */
#ifndef _DTRACE_PAUSE_H
#define _DTRACE_PAUSE_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/sched.h>
#include <linux/task_work.h>
#include <linux/types.h>

/*
 * A call that is taken back when the module goes. instead() is called in its place then, and may
 * sleep.
 */
struct dtrace_summons {
	struct callback_head work;
	struct list_head queued;
	struct task_struct *task;
	void (*instead)(struct dtrace_summons *summons);
};

/*
 * A wait. begin() and end() are called by the task, and may sleep; if the wait is taken back, end()
 * alone is called, by the task that takes it back. end() is the last user of the structure.
 */
struct dtrace_pause {
	struct dtrace_summons summons;
	struct completion over;
	/* Longest time of the wait. */
	unsigned int ms;
	void (*begin)(struct dtrace_pause *pause);
	void (*end)(struct dtrace_pause *pause, bool late);
};

int dtrace_call_queue(struct callback_head *work, task_work_func_t func, struct task_struct *task);
void dtrace_call_begun(void);
void dtrace_call_ended(void);
void dtrace_calls_cancel_by(uintptr_t cancel);
bool dtrace_call_can_cancel(void);
bool dtrace_call_cancel(struct task_struct *task, struct callback_head *work);
int dtrace_summon(struct dtrace_summons *summons, task_work_func_t func, struct task_struct *task);
void dtrace_summons_followed(struct dtrace_summons *summons);
int dtrace_pause_queue(struct dtrace_pause *pause, struct task_struct *task);
void dtrace_pause_over(struct dtrace_pause *pause);
bool dtrace_pauses_wait(void);

struct pid *dtrace_process_of(struct task_struct *task);
struct pid *dtrace_process_find(int number);
bool dtrace_process_is_current(struct pid *pid);
int dtrace_process_number(struct pid *pid);
int dtrace_process_first_number(struct pid *pid);
void dtrace_process_put(struct pid *pid);
bool dtrace_is_called(const char *name);
bool dtrace_is_ptraced(void);
bool dtrace_may_be_stopped(void);
bool dtrace_has_new_memory(struct task_struct *child);
bool dtrace_mm_is_current(struct mm_struct *mm);
bool dtrace_mm_is_over(struct mm_struct *mm);

#endif
