/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Hooks on the returns of functions; returns.c says how they work. */
#ifndef _DTRACE_RETURNS_H
#define _DTRACE_RETURNS_H

#include <linux/ptrace.h>
#include <linux/syscore_ops.h>
#include <linux/types.h>

struct dtrace_returns {
	/*
	 * Called when a call of the function patched at ip returns `value` to `caller`; `first` was
	 * its first argument. Preemption is off.
	 */
	void (*leave)(struct dtrace_returns *r, uintptr_t ip, uintptr_t caller, unsigned long value,
		      unsigned long first);
	/*
	 * Addresses of rethook_alloc(), rethook_hook(), rethook_stop(), rethook_free() and
	 * rethook_find_ret_addr().
	 */
	uintptr_t alloc, hook, stop, free, find;
	/* Address that hooked functions return to. */
	uintptr_t trampoline;
	/* Calls may concern members alone. */
	bool has_users;
	/*
	 * The kernel's struct rethook; NULL before dtrace_returns_start(). `users`: another one,
	 * for calls that concern members alone.
	 */
	void *rethook, *users;
	/* Called when the machine goes to sleep, and when it wakes. */
	struct syscore sleep;
	bool asleep;
};

int dtrace_returns_start(struct dtrace_returns *r);
bool dtrace_returns_hook(struct dtrace_returns *r, uintptr_t ip, struct pt_regs *regs, bool of_users);
uintptr_t dtrace_returns_caller(struct dtrace_returns *r, struct pt_regs *regs);
void dtrace_returns_end(struct dtrace_returns *r);

#endif
