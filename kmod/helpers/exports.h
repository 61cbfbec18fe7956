/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * The functions of include/linux/dtrace_provider.h as the framework implements them; exports.c
 * exports the functions that other modules call. Strings are never NULL here.
 */
#ifndef _DTRACE_EXPORTS_H
#define _DTRACE_EXPORTS_H

#include "../include/linux/dtrace_provider.h"

/* A provider that another module registers. */
struct dtrace_client {
	const struct dtrace_pops *pops;
	void *arg;
	struct module *owner;
};

struct dtrace_exports {
	const void *data;
	int (*add)(const void *data, const char *name, const struct dtrace_pattr *attr, u32 priv,
		   const struct dtrace_client *client, const void **provider);
	int (*remove)(const void *provider);
	const void *(*create)(const void *provider, const char *mod, const char *func, const char *name, uintptr_t parg);
	const void *(*lookup)(const void *provider, const char *mod, const char *func, const char *name);
	uintptr_t (*parg)(const void *probe);
	void (*fire)(const void *probe, const u64 *args);
};
#define DTRACE_EXPORTS_ARGS 5

/*
 * Sets the table of the framework's functions: before our module has started, so that no other
 * module can call yet, and to NULL when no module is left that could call.
 */
void dtrace_exports_set(const struct dtrace_exports *exports);

bool dtrace_module_hold(struct module *mod);

/*
 * Call the functions of pops. getargdesc may be NULL; then the description is that of argument `n`
 * itself, and the result is false.
 */
int dtrace_client_enable(const struct dtrace_client *client, const void *probe, uintptr_t parg);
void dtrace_client_disable(const struct dtrace_client *client, const void *probe, uintptr_t parg);
bool dtrace_client_argdesc(const struct dtrace_client *client, const void *probe, uintptr_t parg, unsigned int n,
			   struct dtrace_arg *desc);

#endif
