/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* Hooks on the returns of functions; returns.c says how. */
#ifndef _DTRACE_RETURNS_H
#define _DTRACE_RETURNS_H

#include <linux/ptrace.h>
#include <linux/syscore_ops.h>
#include <linux/types.h>

struct dtrace_returns {
	/* A call of the function patched at ip returns value to caller; first was its first argument. */
	void (*leave)(struct dtrace_returns *r, uintptr_t ip, uintptr_t caller, unsigned long value,
		      unsigned long first);
	/* Addresses of rethook_alloc(), rethook_hook(), rethook_stop(), rethook_free() and rethook_find_ret_addr(). */
	uintptr_t alloc, hook, stop, free, find;
	/* The address of what hooked functions return to. */
	uintptr_t trampoline;
	/* Users may be told of calls. */
	bool has_users;
	/* The kernel's struct rethook; none before dtrace_returns_start(). Another one for calls of which users alone are told. */
	void *rethook, *users;
	/* Told when the machine goes to sleep, and wakes. */
	struct syscore sleep;
	bool asleep;
};

int dtrace_returns_start(struct dtrace_returns *r);
bool dtrace_returns_hook(struct dtrace_returns *r, uintptr_t ip, struct pt_regs *regs, bool of_users);
uintptr_t dtrace_returns_caller(struct dtrace_returns *r, struct pt_regs *regs);
void dtrace_returns_end(struct dtrace_returns *r);

#endif
