// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* The bodies of module.h. */

#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "module.h"
#include "symbols.h"

/* Keeps the module from ever being unloaded, unless its removal has begun. */
void dtrace_stay(void)
{
	__module_get(THIS_MODULE);
}

/* Parks the current task for good. It can be frozen, so that the machine can sleep. */
void __noreturn dtrace_park(void)
{
	for (;;) {
		set_current_state(TASK_IDLE | TASK_FREEZABLE);
		schedule();
	}
}

/* Whether `pc` is in this module's text. */
bool dtrace_own_text(uintptr_t pc)
{
	return within_module_mem_type(pc, THIS_MODULE, MOD_TEXT);
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
