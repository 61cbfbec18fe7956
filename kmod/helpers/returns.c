// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * Hooks on the returns of functions, by the kernel's rethook: at the entry of a function its return
 * address is replaced by that of the kernel's trampoline, and a node on a list of the task keeps
 * the original for the trampoline and for the unwinder. So arming and disarming concern the entry
 * alone: nothing is registered, no static key is switched, and no task gets a stack for it.
 *
 * The nodes come from a pool of fixed size, and a call holds one for as long as it lasts, even if
 * it sleeps for days. Calls that concern members alone have a pool of their own, because a member
 * may have any number of calls asleep (INV-29).
 *
 * A call is not hooked, and is counted, if no node is free, if it comes in an NMI (which may
 * interrupt the return of a node to its pool), or if RCU is not watching. The same holds while the
 * machine goes to sleep: a function that puts it to sleep never returns, the code that wakes it
 * returns in its place, and would take the next node on the list for its own.
 *
 * The trampoline is the kernel's. So a task may sleep in a hooked function while the module goes:
 * once the rethook is stopped, the trampoline calls the module no more, and frees the remaining
 * nodes.
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

#include "percpu.h"
#include "pool.h"
#include "returns.h"
#include "symbols.h"
#include "watched.h"

struct dtrace_return {
	struct rethook_node node;
	uintptr_t ip;
	/* The first argument of the call: usually the object that the function works on. */
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
 * Number of calls that can be hooked at a time: what a thousand tasks with stacks of a common depth
 * need, and more on a large machine. Every CPU has room for pointers to all nodes, so the number is
 * reduced if there are many CPUs.
 */
static int dtrace_returns_nodes(void)
{
	unsigned long nodes = clamp(totalram_pages() / 64, 8192UL, 65536UL);

	while (nodes > 8192 && nodes * sizeof(void *) * num_possible_cpus() > totalram_pages() * (PAGE_SIZE / 256))
		nodes /= 2;
	return nodes;
}

/* Only one CPU is left, with interrupts off. */
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

/* The members' pool has one node for so many of the other pool. */
#define DTRACE_RETURNS_OF_USERS 8

static struct rethook *dtrace_returns_pool(struct dtrace_returns *r, int nodes)
{
	return (struct rethook *)dtrace_call(r->alloc, (uintptr_t)r, (uintptr_t)dtrace_return_leave,
					     sizeof(struct dtrace_return), nodes, 0);
}

/* Makes hooking possible, if it is not yet. Returns 0 or a negative errno. May sleep. */
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
 * Hooks the return of a function, patched at ip, at whose entry `regs` were saved. If that is
 * impossible, counts it, and returns false if consumers must be notified; while RCU is not watching
 * they cannot be, so the result is true. `of_users`: the call concerns members alone. A CPU that
 * goes offline does not count as watched either: what it calls may never return, and would leave
 * its node on the list of the idle task.
 */
bool dtrace_returns_hook(struct dtrace_returns *r, uintptr_t ip, struct pt_regs *regs, bool of_users)
{
	struct rethook *rh = smp_load_acquire(&r->rethook);
	struct dtrace_return *node = NULL;
	unsigned long flags;
	bool watched;

	/*
	 * An interrupt after the address was replaced and before the node is on the list would find
	 * a stack that it cannot unwind.
	 */
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
 * The address that the function at whose entry `regs` were saved returns to, if its return address
 * is the trampoline: a hooked function has jumped to it. 0: there is none after all.
 */
uintptr_t dtrace_returns_caller(struct dtrace_returns *r, struct pt_regs *regs)
{
	struct llist_node *at = NULL;

	return dtrace_call(r->find, (uintptr_t)current, kernel_stack_pointer(regs), (uintptr_t)&at, 0, 0);
}

/*
 * Ends hooking for good, and waits until no CPU is in leave(). The caller ensures that no CPU is in
 * dtrace_returns_hook(). May sleep.
 */
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
