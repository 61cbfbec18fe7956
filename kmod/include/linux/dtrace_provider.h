/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * How another kernel module becomes a provider of probes.
 *
 * A module registers a provider, creates its probes, and calls dtrace_probe() where one of them is passed. Who registers
 * gets told when a probe is wanted for the first time and when nobody wants it any more: what is not wanted should
 * cost nothing, as by a static key that is switched in between.
 *
 * While one of its probes is wanted a module cannot be unloaded. It unregisters its providers in its exit function. An init
 * function that fails must have none: so the registration is the last thing that it does.
 *
 * All functions but dtrace_probe() sleep. The functions of struct dtrace_pops are called with DTrace's lock held, so that they
 * must not call any of the others.
 *
 * samples/provider is a module that does it.
 */
#ifndef _LINUX_DTRACE_PROVIDER_H
#define _LINUX_DTRACE_PROVIDER_H

#include <linux/module.h>
#include <linux/types.h>

/* A provider, and a probe. Neither is to be looked into. */
typedef struct dtrace_foreign_provider *dtrace_provider_id_t;
typedef const struct dtrace_foreign_probe *dtrace_id_t;

#define DTRACE_IDNONE ((dtrace_id_t)NULL)

/* What a consumer needs to use a provider's probes: rights over the kernel, or over users. */
#define DTRACE_PROVIDER_KERNEL 0x1
#define DTRACE_PROVIDER_USER 0x2

/* How stable something is: the numbers of DTRACE_STABILITY_* and DTRACE_CLASS_* in <linux/dtrace.h>. */
struct dtrace_attribute {
	u8 name;
	u8 data;
	u8 dclass;
};

/* The same of a provider, of the parts of its probes' names, and of their arguments. */
struct dtrace_pattr {
	struct dtrace_attribute provider;
	struct dtrace_attribute mod;
	struct dtrace_attribute func;
	struct dtrace_attribute name;
	struct dtrace_attribute args;
};

/* An argument of a probe as D programs see it, args[n]. */
struct dtrace_arg {
	/* Which of the words given to dtrace_probe() it is: n, unless the provider says otherwise. */
	int mapping;
	/* Its type in C, as "struct file *". */
	char native[128];
	/* The type of D that a translator gives it; empty: none. */
	char xlate[128];
};

struct dtrace_pops {
	/* The probe is wanted. An error (-errno) leaves it as it is and is told to who wants it. */
	int (*enable)(void *arg, dtrace_id_t id, void *parg);
	/* Nobody wants it any more. */
	void (*disable)(void *arg, dtrace_id_t id, void *parg);
	/* Describes args[n]; false: there is no such argument. May be NULL: the probes have only arg0, arg1, ... */
	bool (*getargdesc)(void *arg, dtrace_id_t id, void *parg, unsigned int n, struct dtrace_arg *desc);
};

int __dtrace_register(const char *name, const struct dtrace_pattr *attr, u32 priv, const struct dtrace_pops *pops,
		      void *arg, struct module *owner, dtrace_provider_id_t *idp);

/*
 * Registers a provider. attr: NULL for one whose interface is private. pops must stay as long as the provider does; arg is
 * for its functions. 0, or, with *idp NULL, -EEXIST: there is one of this name; -EINVAL: no name for a provider; -ENOMEM.
 */
static inline int dtrace_register(const char *name, const struct dtrace_pattr *attr, u32 priv,
				  const struct dtrace_pops *pops, void *arg, dtrace_provider_id_t *idp)
{
	return __dtrace_register(name, attr, priv, pops, arg, THIS_MODULE, idp);
}

/* Removes a provider with its probes; does nothing if that is NULL. -EBUSY, and nothing is done: a probe is wanted. */
int dtrace_unregister(dtrace_provider_id_t id);

/*
 * Creates a probe. mod and func may be empty (or NULL) if they mean nothing; parg is the probe's own. A consumer that has
 * described it before gets it at once, so that enable() may be called in here. DTRACE_IDNONE: no memory, or the name is too
 * long or not to be printed (it is UTF-8 without control characters, and has ':' and '/' in func only), or id is NULL.
 */
dtrace_id_t dtrace_probe_create(dtrace_provider_id_t id, const char *mod, const char *func, const char *name, void *parg);

/* The probe of this name; DTRACE_IDNONE: there is none, or id is NULL. */
dtrace_id_t dtrace_probe_lookup(dtrace_provider_id_t id, const char *mod, const char *func, const char *name);

/* What was given as parg; NULL of DTRACE_IDNONE. */
void *dtrace_probe_arg(dtrace_id_t id);

/*
 * The probe is passed: arg0 to arg4. From any context in which RCU is watching, NMI included. A probe that nobody wants costs
 * the call and little more, and so does DTRACE_IDNONE, which is none: who cannot create a probe may go on as if it could.
 */
void dtrace_probe(dtrace_id_t id, u64 arg0, u64 arg1, u64 arg2, u64 arg3, u64 arg4);

#endif
