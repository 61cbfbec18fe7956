/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* What the kernel has answered to whether somebody may trace a process. Known to rights.c alone. */
#ifndef _DTRACE_ANSWERS_H
#define _DTRACE_ANSWERS_H

#include <linux/cred.h>
#include <linux/mm_types.h>
#include <linux/rhashtable.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/types.h>

/* Most answers that are kept. */
#define DTRACE_ANSWERS_MAX 16384
/* Where the last ones are found without a search: 1 << this many. */
#define DTRACE_RECENT_BITS 6
/* Among how many lists those of the processes are, likewise. */
#define DTRACE_PROCESSES_BITS 8

struct dtrace_answer;

struct dtrace_answers {
	/* Of who asks. */
	const struct cred *cred;
	/* Its program, as long as it executes no other. Counted, only to be compared; NULL: it has none. */
	struct mm_struct *memory;
	/* ptrace_may_access(). */
	uintptr_t may_access;
	/* Yama's; NULL where it has none. */
	const int *scope;
	struct rhashtable table;
	struct dtrace_answer *recent[1 << DTRACE_RECENT_BITS];
	/* Over what follows. */
	spinlock_t lock;
	struct list_head all;
	/* The same by what tells their processes apart. */
	struct hlist_head processes[1 << DTRACE_PROCESSES_BITS];
	unsigned int count, sweep_at;
	/* How many were left where they are since all have last been looked at. */
	unsigned int swept;
	/* How often answers were made void by prctl(). */
	unsigned long doubts;
};

int dtrace_answers_init(struct dtrace_answers *answers, uintptr_t may_access, const int *scope);
void dtrace_answers_exit(struct dtrace_answers *answers);
int dtrace_answers_ask(struct dtrace_answers *answers, struct task_struct *task, unsigned int mode);
bool dtrace_answers_are_own(struct dtrace_answers *answers);
int dtrace_answers_of(struct dtrace_answers *answers, struct task_struct *task);
void dtrace_answers_doubt(struct dtrace_answers *answers, bool for_ever);

#endif
