// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The bodies of providers.h. This object is built without ftrace, because parts of it run in probe
 * context.
 */

#include <linux/ftrace.h>
#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/trace_events.h>
#include <linux/tracepoint.h>
#include <asm/irq_regs.h>
#include <trace/syscall.h>

#include "patching.h"
#include "providers.h"

/*
 * Finds the address of a function by a kprobe, which is the only exported way if the function is
 * not exported. A disabled kprobe leaves the code alone, so there is nothing to undo for which
 * memory could be short.
 */
static uintptr_t dtrace_kprobe_address(const char *name)
{
	struct kprobe kp = { .symbol_name = name, .flags = KPROBE_FLAG_DISABLED };
	uintptr_t addr;

	if (register_kprobe(&kp))
		return 0;
	addr = (uintptr_t)kp.addr;
	unregister_kprobe(&kp);
	return addr;
}

/*
 * Finds the address of a kernel symbol, exported or not; 0: there is no such symbol. False: nothing
 * can be looked up. May sleep.
 */
bool dtrace_symbol(const char *name, uintptr_t *address)
{
	/*
	 * kallsyms_lookup_name(), which is not exported either. Placing a kprobe costs far more
	 * than a call of this function.
	 */
	static uintptr_t by_name;
	uintptr_t at = READ_ONCE(by_name);

	if (!at) {
		at = dtrace_kprobe_address("kallsyms_lookup_name");
		if (!at)
			return false;
		WRITE_ONCE(by_name, at);
	}
	*address = dtrace_call(at, (uintptr_t)name, 0, 0, 0, 0);
	return true;
}

/*
 * Calls each() for every place that ftrace can patch now (in one module, if `only` is given), until
 * it returns a value other than 0. `start`, `next` and `record` are the addresses of
 * ftrace_rec_iter_start(), _next() and _record(), which are not exported; `lock` is ftrace_lock,
 * which protects their single iterator. May sleep.
 */
int dtrace_each_traceable(uintptr_t start, uintptr_t next, uintptr_t record, struct mutex *lock,
			  struct module *only, int (*each)(void *data, uintptr_t ip), void *data)
{
	uintptr_t iter;
	int ret = 0;

	mutex_lock(lock);
	for (iter = dtrace_call(start, 0, 0, 0, 0, 0); iter && !ret; iter = dtrace_call(next, iter, 0, 0, 0, 0)) {
		struct dyn_ftrace *rec = (void *)dtrace_call(record, iter, 0, 0, 0, 0);

		if (rec->flags & FTRACE_FL_DISABLED)
			continue;
		if (!only || within_module(rec->ip, only))
			ret = each(data, rec->ip);
	}
	mutex_unlock(lock);
	return ret;
}

/*
 * How far behind a function's first byte ftrace's place may be. A place farther behind belongs to a
 * function that the linker dropped in favour of another one.
 */
uintptr_t dtrace_traceable_offset(void)
{
#ifdef FTRACE_MCOUNT_MAX_OFFSET
	return FTRACE_MCOUNT_MAX_OFFSET;
#else
	return 0;
#endif
}

/*
 * The module whose code is at addr, with a reference that keeps it loaded; NULL: there is none, or
 * it is going, or coming. A module that is coming is freed without regard to references if its init
 * function fails, and is reported later if it succeeds. `lookup` is the address of
 * __module_text_address().
 */
struct module *dtrace_module_get(uintptr_t lookup, uintptr_t addr)
{
	struct module *mod;

	guard(rcu)();
	mod = (struct module *)dtrace_call(lookup, addr, 0, 0, 0, 0);
	return mod && mod->state == MODULE_STATE_LIVE && try_module_get(mod) ? mod : NULL;
}

void dtrace_module_put(struct module *mod)
{
	module_put(mod);
}

/* Whether the code is freed when the module has started. */
bool dtrace_module_init_text(struct module *mod, uintptr_t addr)
{
	return within_module_init(addr, mod);
}

bool dtrace_module_owns(struct module *mod, uintptr_t addr)
{
	return within_module(addr, mod);
}

/*
 * Calls each() for every module but ours that has started, with a reference that each() must put.
 * `modules` and `lock` are the kernel's list and module_mutex, which protects it.
 */
void dtrace_each_module(struct list_head *modules, struct mutex *lock,
			void (*each)(void *data, struct module *mod), void *data)
{
	struct module *mod;

	mutex_lock(lock);
	list_for_each_entry(mod, modules, list)
		if (mod->state == MODULE_STATE_LIVE && mod != THIS_MODULE && try_module_get(mod))
			each(data, mod);
	mutex_unlock(lock);
}

unsigned int dtrace_syscall_count(void)
{
	return NR_syscalls;
}

/*
 * Describes system call n; `table` is the address of the kernel's pointer syscalls_metadata. False:
 * there is no such call.
 */
bool dtrace_syscall_at(uintptr_t table, unsigned int n, struct dtrace_syscall *out)
{
	struct syscall_metadata **all = *(struct syscall_metadata ***)table;
	const struct syscall_metadata *meta = all ? all[n] : NULL;

	/* A call may be in the table under several numbers. */
	if (!meta || meta->syscall_nr != n)
		return false;
	out->name = meta->name;
	out->nargs = meta->nb_args;
	out->types = meta->types;
	return true;
}

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

/* The registers of the code that the interrupt on this CPU has interrupted. */
struct pt_regs *dtrace_irq_regs(void)
{
	return get_irq_regs();
}

/* The return value of a timer's function for a timer that is to expire again an interval later. */
enum hrtimer_restart dtrace_timer_again(struct hrtimer *timer, s64 interval)
{
	hrtimer_forward_now(timer, interval);
	return HRTIMER_RESTART;
}
