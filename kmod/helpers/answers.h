/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * The kernel's answers to the question whether the consumer may trace a process (INV-36). Used by
 * rights.c and asks.c only.
 */
#ifndef _DTRACE_ANSWERS_H
#define _DTRACE_ANSWERS_H

#include <linux/cred.h>
#include <linux/mm_types.h>
#include <linux/rhashtable.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/types.h>

/* Largest number of answers that are kept for one consumer. */
#define DTRACE_ANSWERS_MAX 16384
/* The latest answers are found without a search, in a table of 1 << DTRACE_RECENT_BITS entries. */
#define DTRACE_RECENT_BITS 6
/* Answers are also hashed by process, into 1 << DTRACE_PROCESSES_BITS lists. */
#define DTRACE_PROCESSES_BITS 8

struct dtrace_answer;

struct dtrace_answers {
	/* Credentials with which the consumer asks. */
	const struct cred *cred;
	/*
	 * Memory of the program that opened the consumer's file; NULL: it has none. The reference
	 * (mmgrab()) only keeps the address unique for comparisons.
	 */
	struct mm_struct *memory;
	/* Address of ptrace_may_access(). */
	uintptr_t may_access;
	/* Yama's ptrace_scope; NULL: the kernel has no Yama. */
	const int *scope;
	struct rhashtable table;
	struct dtrace_answer *recent[1 << DTRACE_RECENT_BITS];
	/* Protects all that follows. */
	spinlock_t lock;
	struct list_head all;
	/* The same answers, hashed by process. */
	struct hlist_head processes[1 << DTRACE_PROCESSES_BITS];
	unsigned int count, sweep_at;
	/* Number of answers that the sweep has kept since it last passed all of them. */
	unsigned int swept;
	/* How often prctl() has made answers void. */
	unsigned long doubts;
};

int dtrace_answers_init(struct dtrace_answers *answers, uintptr_t may_access, const int *scope);
void dtrace_answers_exit(struct dtrace_answers *answers);
int dtrace_answers_ask(struct dtrace_answers *answers, struct task_struct *task, unsigned int mode);
bool dtrace_answers_are_own(struct dtrace_answers *answers);
int dtrace_answers_of(struct dtrace_answers *answers, struct task_struct *task);
void dtrace_answers_doubt(struct dtrace_answers *answers, bool for_ever);

#endif
