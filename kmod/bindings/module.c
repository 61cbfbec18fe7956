// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* The bodies of module.h. */

#include <linux/module.h>
#include <linux/sched.h>

#include "module.h"

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
