/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/* This module, and the others that are loaded; module.c holds the bodies. */
#ifndef _DTRACE_MODULE_H
#define _DTRACE_MODULE_H

#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/types.h>

void dtrace_stay(void);
void __noreturn dtrace_park(void);
bool dtrace_own_text(uintptr_t pc);

struct module *dtrace_module_get(uintptr_t lookup, uintptr_t addr);
void dtrace_module_put(struct module *mod);
bool dtrace_module_init_text(struct module *mod, uintptr_t addr);
bool dtrace_module_owns(struct module *mod, uintptr_t addr);
void dtrace_each_module(struct list_head *modules, struct mutex *lock,
			void (*each)(void *data, struct module *mod), void *data);

#endif
