/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* The kernel's tracepoints; tracepoint.c holds the bodies. */
#ifndef _DTRACE_TRACEPOINT_H
#define _DTRACE_TRACEPOINT_H

#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/tracepoint-defs.h>
#include <linux/types.h>

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

#endif
