// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of answers.h.
 *
 * Whether a process may be traced is the kernel's answer to a debugger that attaches
 * (ptrace_may_access()). It considers users, groups, namespaces, capabilities and what the security
 * modules say. The kernel takes locks for it and may write to the log, so it is never asked where a
 * probe fires (INV-36).
 *
 * An answer is kept under the address of the credentials of the thread that it is about. The kernel
 * never changes the credentials of a thread in place: set*id(), setgroups(), capset(), setns(),
 * unshare() of a user namespace, Landlock, a security module's transition and execve() each give
 * the thread new ones, and fork() gives the new process its own. This module holds a reference to
 * the credentials, so that no others can be allocated at that address while it stands for an
 * answer. It holds one reference for all consumers, so that the usage count shows when nobody else
 * refers to the credentials.
 *
 * What changes without new credentials makes the answer void if the kernel reports it: prctl(),
 * Yama's ptrace_scope, a policy that is loaded anew (SELinux reports that, AppArmor does not). The
 * kernel does not report that a process has got another parent, nor that a process has ended which
 * another one had named to Yama.
 *
 * Where a probe fires, an answer is looked up under RCU without a lock: first in the table of the
 * latest answers, by comparing two addresses, then in the hash table. An answer that is removed is
 * freed after a grace period.
 */

#include <linux/atomic.h>
#include <linux/hash.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/pid.h>
#include <linux/ptrace.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/security.h>
#include <linux/slab.h>

#include "answers.h"
#include "symbols.h"

/* How often the question is repeated if the credentials of the task change meanwhile. */
#define DTRACE_ASK_TRIES 4
/* Number of answers at which the first sweep begins. */
#define DTRACE_SWEEP_MIN 64U
/* Number of answers that one sweep looks at. It is bounded because interrupts are off. */
#define DTRACE_SWEEP_SOME 64U

/*
 * Credentials that answers of any consumer are about. They are referred to once, so that their
 * usage count shows whether anybody else refers to them.
 */
struct dtrace_subject {
	struct rhash_head node;
	const struct cred *cred;
	unsigned long answers;
	struct rcu_head rcu;
};

/* The kernel's answer about the thread with these credentials. */
struct dtrace_answer {
	struct rhash_head node;
	struct list_head all;
	struct hlist_node peer;
	const struct cred *cred;
	/* Set when the answer is kept. */
	struct dtrace_subject *subject;
	/* Process of the thread. Only compared, never dereferenced. */
	struct pid *process;
	/* The policy's number and Yama's scope at the time of the question. */
	long policy;
	int scope;
	bool may;
	/* The answer is void. */
	bool doubted;
	/* The process is never asked about again with these credentials: the answer stays no. */
	bool last;
	struct rcu_head rcu;
};

static const struct rhashtable_params dtrace_answer_params = {
	.key_len = sizeof(const struct cred *),
	.key_offset = offsetof(struct dtrace_answer, cred),
	.head_offset = offsetof(struct dtrace_answer, node),
	.automatic_shrinking = true,
};

static const struct rhashtable_params dtrace_subject_params = {
	.key_len = sizeof(const struct cred *),
	.key_offset = offsetof(struct dtrace_subject, cred),
	.head_offset = offsetof(struct dtrace_subject, node),
	.automatic_shrinking = true,
};

/*
 * Protects all subjects; the innermost lock of this file. The table exists while any consumer has
 * answers.
 */
static DEFINE_SPINLOCK(dtrace_subjects_lock);
static struct rhashtable dtrace_subjects;

static DEFINE_MUTEX(dtrace_policy_lock);
static unsigned long dtrace_policy_users;
/* How often security modules have reported another policy. */
static atomic_long_t dtrace_policy = ATOMIC_LONG_INIT(0);

static int dtrace_policy_changed(struct notifier_block *self, unsigned long event, void *data)
{
	atomic_long_inc(&dtrace_policy);
	return NOTIFY_DONE;
}

static struct notifier_block dtrace_policy_notifier = {
	.notifier_call = dtrace_policy_changed,
};

static int dtrace_policy_watch_first(void)
{
	int error = rhashtable_init(&dtrace_subjects, &dtrace_subject_params);

	if (error)
		return error;
	error = register_blocking_lsm_notifier(&dtrace_policy_notifier);
	if (error)
		rhashtable_destroy(&dtrace_subjects);
	return error;
}

static int dtrace_policy_watch(void)
{
	int error = 0;

	guard(mutex)(&dtrace_policy_lock);
	if (!dtrace_policy_users)
		error = dtrace_policy_watch_first();
	if (!error)
		dtrace_policy_users++;
	return error;
}

static void dtrace_policy_watch_no_more(void)
{
	guard(mutex)(&dtrace_policy_lock);
	if (--dtrace_policy_users)
		return;
	unregister_blocking_lsm_notifier(&dtrace_policy_notifier);
	rhashtable_destroy(&dtrace_subjects);
}

/*
 * Counts one more answer about these credentials. `subject` points to memory for a new subject and
 * becomes NULL if that is used. NULL: the table has no room now.
 */
static struct dtrace_subject *dtrace_subject_get(const struct cred *cred, struct dtrace_subject **subject)
{
	struct dtrace_subject *known;

	guard(spinlock_irqsave)(&dtrace_subjects_lock);
	known = rhashtable_lookup_fast(&dtrace_subjects, &cred, dtrace_subject_params);
	if (!known) {
		(*subject)->cred = cred;
		if (rhashtable_insert_fast(&dtrace_subjects, &(*subject)->node, dtrace_subject_params))
			return NULL;
		get_cred(cred);
		known = *subject;
		*subject = NULL;
	}
	known->answers++;
	return known;
}

/* Counts one answer less. */
static void dtrace_subject_put(struct dtrace_subject *subject)
{
	guard(spinlock_irqsave)(&dtrace_subjects_lock);
	if (--subject->answers)
		return;
	rhashtable_remove_fast(&dtrace_subjects, &subject->node, dtrace_subject_params);
	put_cred(subject->cred);
	kfree_rcu(subject, rcu);
}

static int dtrace_scope(struct dtrace_answers *answers)
{
	return answers->scope ? READ_ONCE(*answers->scope) : 0;
}

/* Slot of the table of latest answers for these credentials. */
static struct dtrace_answer **dtrace_answers_recent(struct dtrace_answers *answers, const struct cred *cred)
{
	return &answers->recent[hash_ptr(cred, DTRACE_RECENT_BITS)];
}

/* List of the answers that may be about this process. */
static struct hlist_head *dtrace_answers_about(struct dtrace_answers *answers, const struct pid *process)
{
	return &answers->processes[hash_ptr(process, DTRACE_PROCESSES_BITS)];
}

/*
 * Removes an answer; answers->lock is held. Readers compare the address of an answer's credentials
 * and never dereference it, so the credentials may be freed before the last reader has left.
 */
static void dtrace_answer_drop(struct dtrace_answers *answers, struct dtrace_answer *answer)
{
	struct dtrace_answer **recent = dtrace_answers_recent(answers, answer->cred);

	if (*recent == answer)
		WRITE_ONCE(*recent, NULL);
	rhashtable_remove_fast(&answers->table, &answer->node, dtrace_answer_params);
	list_del(&answer->all);
	hlist_del(&answer->peer);
	answers->count--;
	dtrace_subject_put(answer->subject);
	kfree_rcu(answer, rcu);
}

/*
 * Drops answers about credentials that nobody else refers to. Looks at up to DTRACE_SWEEP_SOME
 * answers; those that were looked at longest ago are at the end of the list. When all have been
 * looked at, the next sweep begins when there are twice as many. answers->lock is held.
 */
static void dtrace_answers_sweep(struct dtrace_answers *answers)
{
	unsigned int some = min(answers->count, DTRACE_SWEEP_SOME);

	for (; some; some--) {
		struct dtrace_answer *answer = list_last_entry(&answers->all, struct dtrace_answer, all);

		if (atomic_long_read(&answer->cred->usage) == 1) {
			dtrace_answer_drop(answers, answer);
			continue;
		}
		list_move(&answer->all, &answers->all);
		answers->swept++;
	}
	if (answers->swept < answers->count)
		return;
	answers->swept = 0;
	answers->sweep_at = clamp(2 * answers->count, DTRACE_SWEEP_MIN, (unsigned int)DTRACE_ANSWERS_MAX);
}

static struct dtrace_answer *dtrace_answer_of(struct dtrace_answers *answers, const struct cred *cred)
{
	return rhashtable_lookup_fast(&answers->table, &cred, dtrace_answer_params);
}

/*
 * Keeps an answer; -EAGAIN if prctl() has made answers void since `doubts` was read. `subject`: as
 * for dtrace_subject_get().
 */
static int dtrace_answer_keep(struct dtrace_answers *answers, struct dtrace_answer *answer, struct dtrace_subject **subject, unsigned long doubts)
{
	struct dtrace_answer *old;
	int error;

	guard(spinlock_irqsave)(&answers->lock);
	if (answers->doubts != doubts)
		return -EAGAIN;
	guard(rcu)();
	old = dtrace_answer_of(answers, answer->cred);
	if (old && old->last)
		return -EPERM;
	if (old)
		dtrace_answer_drop(answers, old);
	if (answers->count >= answers->sweep_at)
		dtrace_answers_sweep(answers);
	if (answers->count >= DTRACE_ANSWERS_MAX)
		return -ENOSPC;
	answer->subject = dtrace_subject_get(answer->cred, subject);
	if (!answer->subject)
		return -ENOMEM;
	error = rhashtable_insert_fast(&answers->table, &answer->node, dtrace_answer_params);
	if (error) {
		dtrace_subject_put(answer->subject);
		return error;
	}
	list_add(&answer->all, &answers->all);
	hlist_add_head(&answer->peer, dtrace_answers_about(answers, answer->process));
	answers->count++;
	/* Pairs with smp_load_acquire() in dtrace_answers_of(): a reader sees the whole answer. */
	smp_store_release(dtrace_answers_recent(answers, answer->cred), answer);
	return 0;
}

/* Whether the current task executes the program that opened the consumer's file. Does not sleep. */
bool dtrace_answers_are_own(struct dtrace_answers *answers)
{
	return answers->memory && current->mm == answers->memory;
}

static int dtrace_answers_decide(struct dtrace_answers *answers, struct task_struct *task, unsigned int mode)
{
	unsigned long doubts = READ_ONCE(answers->doubts);
	struct dtrace_subject *subject;
	struct dtrace_answer *answer;
	const struct cred *before, *cred;
	int error = -EAGAIN;
	bool may;

	/*
	 * The kernel lets every process trace itself without further checks. But another program
	 * that has got the file may not protect it from others, so it may not trace itself.
	 */
	if (same_thread_group(task, current) && !dtrace_answers_are_own(answers))
		return -EPERM;
	answer = kzalloc(sizeof(*answer), GFP_KERNEL_ACCOUNT);
	subject = kzalloc(sizeof(*subject), GFP_KERNEL_ACCOUNT);
	if (!answer || !subject) {
		kfree(answer);
		kfree(subject);
		return -ENOMEM;
	}
	answer->cred = get_task_cred(task);
	answer->process = task_tgid(task);
	answer->policy = atomic_long_read(&dtrace_policy);
	answer->scope = dtrace_scope(answers);
	smp_mb();
	before = override_creds(answers->cred);
	/* The function returns a bool, so only the low byte of the register is defined. */
	may = (u8)dtrace_call(answers->may_access, (uintptr_t)task, PTRACE_MODE_ATTACH_REALCREDS | mode, 0, 0, 0);
	revert_creds(before);
	answer->may = may;
	smp_mb();
	/* get_task_cred() above holds the task's credentials until the answer is kept. */
	cred = answer->cred;
	if (rcu_access_pointer(task->real_cred) == cred)
		error = dtrace_answer_keep(answers, answer, &subject, doubts);
	put_cred(cred);
	kfree(subject);
	if (!error)
		return may;
	kfree(answer);
	return error;
}

/*
 * Asks the kernel, in the current task, whether a task may be traced. Returns 1, 0 or a negative
 * errno; -EAGAIN: its credentials kept changing, or answers were made void meanwhile. If the task
 * does not wait for the answer, the caller must prevent it from executing another program
 * meanwhile. May sleep.
 */
int dtrace_answers_ask(struct dtrace_answers *answers, struct task_struct *task, unsigned int mode)
{
	int may = -EAGAIN, tries;

	for (tries = 0; may == -EAGAIN && tries < DTRACE_ASK_TRIES; tries++)
		may = dtrace_answers_decide(answers, task, mode);
	return may;
}

/*
 * Returns what is known of a task: 1, 0, or -EAGAIN if nothing is. The caller is in an RCU
 * read-side critical section.
 */
int dtrace_answers_of(struct dtrace_answers *answers, struct task_struct *task)
{
	const struct cred *cred = rcu_dereference_raw(task->real_cred);
	const struct dtrace_answer *answer = smp_load_acquire(dtrace_answers_recent(answers, cred));

	if (unlikely(!answer || answer->cred != cred))
		answer = rhashtable_lookup(&answers->table, &cred, dtrace_answer_params);
	if (!answer)
		return -EAGAIN;
	if (READ_ONCE(answer->last))
		return 0;
	if (READ_ONCE(answer->doubted) || answer->policy != atomic_long_read(&dtrace_policy) ||
	    answer->scope != dtrace_scope(answers))
		return -EAGAIN;
	return answer->may;
}

/*
 * Makes void all that is known of the current process; with `for_ever`, the answers stay no for as
 * long as its credentials last. Does not sleep.
 */
void dtrace_answers_doubt(struct dtrace_answers *answers, bool for_ever)
{
	const struct pid *process = task_tgid(current);
	struct dtrace_answer *answer;

	guard(spinlock_irqsave)(&answers->lock);
	answers->doubts++;
	hlist_for_each_entry(answer, dtrace_answers_about(answers, process), peer) {
		if (answer->process != process)
			continue;
		WRITE_ONCE(answer->doubted, true);
		if (for_ever)
			WRITE_ONCE(answer->last, true);
	}
}

/*
 * Initializes the answers to the current task's questions; there are none yet. Returns 0 or a
 * negative errno.
 */
int dtrace_answers_init(struct dtrace_answers *answers, uintptr_t may_access, const int *scope)
{
	int error = rhashtable_init(&answers->table, &dtrace_answer_params);

	if (error)
		return error;
	error = dtrace_policy_watch();
	if (error) {
		rhashtable_destroy(&answers->table);
		return error;
	}
	spin_lock_init(&answers->lock);
	INIT_LIST_HEAD(&answers->all);
	answers->sweep_at = DTRACE_SWEEP_MIN;
	answers->may_access = may_access;
	answers->scope = scope;
	answers->cred = get_current_cred();
	answers->memory = current->mm;
	if (answers->memory)
		mmgrab(answers->memory);
	return 0;
}

/* Frees the answers. The caller ensures that nobody asks or looks any more. */
void dtrace_answers_exit(struct dtrace_answers *answers)
{
	struct dtrace_answer *answer, *next;

	list_for_each_entry_safe(answer, next, &answers->all, all)
		dtrace_answer_drop(answers, answer);
	rhashtable_destroy(&answers->table);
	dtrace_policy_watch_no_more();
	put_cred(answers->cred);
	if (answers->memory)
		mmdrop(answers->memory);
}
