// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Hooks on the returns of functions, by the kernel's own rethook: where the function was entered its return address
 * is replaced by that of the kernel's trampoline, and a node on a list of the task's keeps the true one for the
 * trampoline and for the unwinder. To arm and to disarm is thus a matter of the entry alone: nothing is registered,
 * no static key switches, and no task gets a stack for it.
 *
 * The nodes come from a pool of fixed size, and a call takes one for as long as it lasts, even if it sleeps for days. Calls of which users alone
 * are told, who may have any number of them asleep, have a pool of their own.
 * A call that finds none, that comes in an NMI (which may come in the midst of giving a node back) or out of RCU's
 * sight is not hooked and counted. So is one while the machine goes to sleep: functions that put it to sleep never return, what
 * wakes it returns in their place, and would take the first node that is left of them for its own.
 *
 * The trampoline is the kernel's. So a task may sleep in a hooked function while the module goes: once the rethook
 * is stopped the trampoline calls us no more, and frees what is left.
 */

#include <linux/context_tracking.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/rethook.h>
#include <linux/sched.h>

#include "helpers.h"
#include "pool.h"
#include "providers.h"
#include "returns.h"
#include "watched.h"

struct dtrace_return {
	struct rethook_node node;
	uintptr_t ip;
	/* The argument that the function was called with first: what it works on, as a rule. */
	unsigned long first;
};

/* Preemption is off. */
static void dtrace_return_leave(struct rethook_node *node, void *data, unsigned long caller, struct pt_regs *regs)
{
	struct dtrace_return *ret = container_of(node, struct dtrace_return, node);
	struct dtrace_returns *r = data;

	r->leave(r, ret->ip, caller, regs_return_value(regs), ret->first);
}

/*
 * As many as there may be calls at a time: what a thousand tasks of a common depth need, and more on a large machine.
 * Every CPU has room for pointers to all of them, which many CPUs shall not make a burden.
 */
static int dtrace_returns_nodes(void)
{
	unsigned long nodes = clamp(totalram_pages() / 64, 8192UL, 65536UL);

	while (nodes > 8192 && nodes * sizeof(void *) * num_possible_cpus() > totalram_pages() * (PAGE_SIZE / 256))
		nodes /= 2;
	return nodes;
}

/* One CPU is left, with interrupts off. */
static int dtrace_returns_suspend(void *data)
{
	struct dtrace_returns *r = data;

	WRITE_ONCE(r->asleep, true);
	return 0;
}

static void dtrace_returns_resume(void *data)
{
	struct dtrace_returns *r = data;

	WRITE_ONCE(r->asleep, false);
}

static const struct syscore_ops dtrace_returns_sleep = {
	.suspend = dtrace_returns_suspend,
	.resume = dtrace_returns_resume,
};

/* Users' pool is such a part of the others'. */
#define DTRACE_RETURNS_OF_USERS 8

static struct rethook *dtrace_returns_pool(struct dtrace_returns *r, int nodes)
{
	return (struct rethook *)dtrace_call(r->alloc, (uintptr_t)r, (uintptr_t)dtrace_return_leave,
					     sizeof(struct dtrace_return), nodes, 0);
}

/* Makes hooking possible, if it is not yet. */
int dtrace_returns_start(struct dtrace_returns *r)
{
	struct rethook *rh, *users = NULL;
	int nodes;

	if (r->rethook)
		return 0;
	nodes = dtrace_returns_nodes();
	rh = dtrace_returns_pool(r, nodes);
	if (IS_ERR(rh))
		return PTR_ERR(rh);
	if (r->has_users)
		users = dtrace_returns_pool(r, nodes / DTRACE_RETURNS_OF_USERS);
	if (IS_ERR(users)) {
		dtrace_call(r->free, (uintptr_t)rh, 0, 0, 0, 0);
		return PTR_ERR(users);
	}
	r->users = users;
	r->sleep.ops = &dtrace_returns_sleep;
	r->sleep.data = r;
	register_syscore(&r->sleep);
	smp_store_release(&r->rethook, rh);
	return 0;
}

/*
 * Hooks the return of the function, patched at ip, at whose entry regs were saved; or counts that it could not. of_users: nobody but users is told.
 * False: somebody is to be told, which cannot be out of RCU's sight. What a CPU calls that goes may never return, and would leave its node on the
 * list of the idle task.
 */
bool dtrace_returns_hook(struct dtrace_returns *r, uintptr_t ip, struct pt_regs *regs, bool of_users)
{
	struct rethook *rh = smp_load_acquire(&r->rethook);
	struct dtrace_return *node = NULL;
	unsigned long flags;
	bool watched;

	/* An interrupt between address and list would see a stack that it cannot unwind. */
	raw_local_irq_save(flags);
	watched = dtrace_cpu_watched();
	if (of_users && rh && r->users)
		rh = r->users;
	if (likely(rh && !READ_ONCE(r->asleep) && !in_nmi() && watched))
		node = dtrace_pool_pop(&rh->pool);
	if (likely(node)) {
		node->ip = ip;
		node->first = regs_get_kernel_argument(regs, 0);
		dtrace_call(r->hook, (uintptr_t)&node->node, (uintptr_t)regs, true, 0, 0);
	} else {
		dtrace_cpu_lost(watched ? DTRACE_LOSS_RETURN : DTRACE_LOSS_UNWATCHED);
	}
	raw_local_irq_restore(flags);
	return node || !watched;
}

/*
 * Where the function returns to at whose entry regs were saved, if that is the trampoline: the place was the hooked function's that
 * has jumped to it. 0: there is none, after all.
 */
uintptr_t dtrace_returns_caller(struct dtrace_returns *r, struct pt_regs *regs)
{
	struct llist_node *at = NULL;

	return dtrace_call(r->find, (uintptr_t)current, kernel_stack_pointer(regs), (uintptr_t)&at, 0, 0);
}

/* Ends hooking for good: waits until no CPU is in leave(). Nobody may be in dtrace_returns_hook(). */
void dtrace_returns_end(struct dtrace_returns *r)
{
	if (!r->rethook)
		return;
	unregister_syscore(&r->sleep);
	dtrace_call(r->stop, (uintptr_t)r->rethook, 0, 0, 0, 0);
	if (r->users)
		dtrace_call(r->stop, (uintptr_t)r->users, 0, 0, 0, 0);
	synchronize_rcu();
	dtrace_call(r->free, (uintptr_t)r->rethook, 0, 0, 0, 0);
	if (r->users)
		dtrace_call(r->free, (uintptr_t)r->users, 0, 0, 0, 0);
	r->rethook = r->users = NULL;
}
