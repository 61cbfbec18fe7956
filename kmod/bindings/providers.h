/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * What the providers need of the kernel and its Rust bindings lack: inline functions, macros,
 * headers that rust/bindings leaves out, and functions that are not exported. bindgen reads this
 * file; providers.c, thunk.S and anchor.c hold the bodies.
 */
#ifndef _DTRACE_PROVIDERS_H
#define _DTRACE_PROVIDERS_H

#include <linux/hrtimer_types.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/tracepoint-defs.h>
#include <linux/types.h>

/* Symbols */
bool dtrace_symbol(const char *name, uintptr_t *address);
uintptr_t dtrace_call(uintptr_t fn, uintptr_t a0, uintptr_t a1, uintptr_t a2, uintptr_t a3,
			  uintptr_t a4);

/* Functions that ftrace can patch */
int dtrace_each_traceable(uintptr_t start, uintptr_t next, uintptr_t record, struct mutex *lock,
			  struct module *only, int (*each)(void *data, uintptr_t ip), void *data);
uintptr_t dtrace_traceable_offset(void);
void dtrace_anchor(void);

/* Modules */
struct module *dtrace_module_get(uintptr_t lookup, uintptr_t addr);
void dtrace_module_put(struct module *mod);
bool dtrace_module_init_text(struct module *mod, uintptr_t addr);
bool dtrace_module_owns(struct module *mod, uintptr_t addr);
void dtrace_each_module(struct list_head *modules, struct mutex *lock,
			void (*each)(void *data, struct module *mod), void *data);

/* System calls */
struct dtrace_syscall {
	const char *name;
	unsigned int nargs;
	const char **types;
};

unsigned int dtrace_syscall_count(void);
bool dtrace_syscall_at(uintptr_t table, unsigned int n, struct dtrace_syscall *out);
unsigned int dtrace_ia32_count(void);
const char *dtrace_ia32_at(unsigned int n);
bool dtrace_ia32_current(void);

/* Tracepoints */
struct dtrace_tracepoint_hook {
	void (*hit)(struct dtrace_tracepoint_hook *hook, const u64 *args);
	/* The hook is called after all others. */
	bool last;
	/* Number of arguments that are meaningful: at most DTRACE_TRACEPOINT_ARGS. */
	unsigned int nargs;
};

void dtrace_each_event(struct list_head *events, struct mutex *lock,
		       void (*each)(void *data, struct tracepoint *tp, const char *system), void *data);
void dtrace_each_tracepoint(struct module *mod, void (*each)(struct tracepoint *tp, void *data), void *data);
int dtrace_tracepoint_register(struct tracepoint *tp, struct dtrace_tracepoint_hook *hook);
void dtrace_tracepoint_unregister(struct tracepoint *tp, struct dtrace_tracepoint_hook *hook);
void dtrace_tracepoint_sync(void);
#define DTRACE_TRACEPOINT_ARGS 12

/* Samples */
struct pt_regs *dtrace_irq_regs(void);
enum hrtimer_restart dtrace_timer_again(struct hrtimer *timer, s64 interval);

#endif
