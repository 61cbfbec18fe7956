// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of tracepoint.h. This object is built without ftrace, because parts of it run in probe
 * context.
 */

#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/trace_events.h>
#include <linux/tracepoint.h>

#include "patching.h"
#include "tracepoint.h"

struct dtrace_events {
	struct list_head *all;
	struct mutex *lock;
	void (*each)(void *data, struct tracepoint *tp, const char *system);
	void *data;
};

static void dtrace_events_walk(void *data)
{
	const struct dtrace_events *events = data;
	struct trace_event_call *call;

	guard(mutex)(events->lock);
	list_for_each_entry(call, events->all, list)
		if ((call->flags & TRACE_EVENT_FL_TRACEPOINT) && call->tp && call->class && call->class->system)
			events->each(events->data, call->tp, call->class->system);
}

/*
 * Calls each() for every tracepoint that has an event, with the name of the event's subsystem;
 * perhaps in another task. `lock` is event_mutex.
 */
void dtrace_each_event(struct list_head *all, struct mutex *lock,
		       void (*each)(void *data, struct tracepoint *tp, const char *system), void *data)
{
	struct dtrace_events events = { .all = all, .lock = lock, .each = each, .data = data };

	dtrace_patch(dtrace_events_walk, &events);
}

/* Calls each() for every tracepoint that the module defines. */
void dtrace_each_tracepoint(struct module *mod, void (*each)(struct tracepoint *tp, void *data), void *data)
{
	unsigned int i;

	for (i = 0; i < mod->num_tracepoints; i++)
		each(tracepoint_ptr_deref(&mod->tracepoints_ptrs[i]), data);
}

/*
 * Every tracepoint calls its probes with its own arguments, each of which takes one integer
 * register or one stack slot. Five fit into registers beside `data`, so the first function serves
 * all tracepoints with at most five; registers that were not passed hold nothing meaningful and are
 * not counted in `nargs`. A tracepoint with more arguments needs a function for exactly their
 * number, because a stack slot that was not passed may lie beyond the end of an interrupt's stack.
 */
static void dtrace_tracepoint_hit5(void *data, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4)
{
	struct dtrace_tracepoint_hook *hook = data;
	u64 args[] = { a0, a1, a2, a3, a4 };

	hook->hit(hook, args);
}

#define DTRACE_TRACEPOINT_HIT(n, params, ...)						\
static void dtrace_tracepoint_hit##n(void *data, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4,	\
				     __VA_ARGS__)						\
{											\
	struct dtrace_tracepoint_hook *hook = data;					\
	u64 args[] = { a0, a1, a2, a3, a4, params };					\
											\
	hook->hit(hook, args);								\
}
#define DTRACE_LIST(...) __VA_ARGS__

DTRACE_TRACEPOINT_HIT(6, a5, u64 a5)
DTRACE_TRACEPOINT_HIT(7, DTRACE_LIST(a5, a6), u64 a5, u64 a6)
DTRACE_TRACEPOINT_HIT(8, DTRACE_LIST(a5, a6, a7), u64 a5, u64 a6, u64 a7)
DTRACE_TRACEPOINT_HIT(9, DTRACE_LIST(a5, a6, a7, a8), u64 a5, u64 a6, u64 a7, u64 a8)
DTRACE_TRACEPOINT_HIT(10, DTRACE_LIST(a5, a6, a7, a8, a9), u64 a5, u64 a6, u64 a7, u64 a8, u64 a9)
DTRACE_TRACEPOINT_HIT(11, DTRACE_LIST(a5, a6, a7, a8, a9, a10), u64 a5, u64 a6, u64 a7, u64 a8, u64 a9, u64 a10)
DTRACE_TRACEPOINT_HIT(12, DTRACE_LIST(a5, a6, a7, a8, a9, a10, a11), u64 a5, u64 a6, u64 a7, u64 a8, u64 a9, u64 a10,
		      u64 a11)

static void *dtrace_tracepoint_hit(const struct dtrace_tracepoint_hook *hook)
{
	switch (hook->nargs) {
	case 6: return dtrace_tracepoint_hit6;
	case 7: return dtrace_tracepoint_hit7;
	case 8: return dtrace_tracepoint_hit8;
	case 9: return dtrace_tracepoint_hit9;
	case 10: return dtrace_tracepoint_hit10;
	case 11: return dtrace_tracepoint_hit11;
	case 12: return dtrace_tracepoint_hit12;
	default: return dtrace_tracepoint_hit5;
	}
}

struct dtrace_tracepoint_change {
	struct tracepoint *tp;
	struct dtrace_tracepoint_hook *hook;
	int error;
};

static void dtrace_tracepoint_add(void *data)
{
	struct dtrace_tracepoint_change *change = data;
	struct dtrace_tracepoint_hook *hook = change->hook;

	change->error = tracepoint_probe_register_prio(change->tp, dtrace_tracepoint_hit(hook), hook,
						       hook->last ? 0 : TRACEPOINT_DEFAULT_PRIO);
}

static void dtrace_tracepoint_drop(void *data)
{
	struct dtrace_tracepoint_change *change = data;

	tracepoint_probe_unregister(change->tp, dtrace_tracepoint_hit(change->hook), change->hook);
}

int dtrace_tracepoint_register(struct tracepoint *tp, struct dtrace_tracepoint_hook *hook)
{
	struct dtrace_tracepoint_change change = { .tp = tp, .hook = hook };

	dtrace_patch(dtrace_tracepoint_add, &change);
	return change.error;
}

void dtrace_tracepoint_unregister(struct tracepoint *tp, struct dtrace_tracepoint_hook *hook)
{
	struct dtrace_tracepoint_change change = { .tp = tp, .hook = hook };

	dtrace_patch(dtrace_tracepoint_drop, &change);
}

/* Waits until no CPU is in a probe that was unregistered before. May sleep. */
void dtrace_tracepoint_sync(void)
{
	tracepoint_synchronize_unregister();
}
