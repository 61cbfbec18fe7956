/* SPDX-License-Identifier: GPL-2.0-only */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

/*
 * The interface by which another kernel module provides probes.
 *
 * A module registers a provider, creates its probes, and calls dtrace_probe() at each place where a
 * probe fires. The provider's enable() is called when the first consumer enables a probe, and
 * disable() when no consumer has it enabled any more. A disabled probe should cost nothing: for
 * example, a static key that both functions switch can guard its call of dtrace_probe().
 *
 * A module cannot be unloaded while one of its probes is enabled. It unregisters its providers in
 * its exit function. If its init function fails, no provider may be registered, so registration
 * should be the last step of the init function.
 *
 * All functions except dtrace_probe() may sleep. The functions of struct dtrace_pops are called
 * with DTrace's lock held, so they must not call any function of this interface except
 * dtrace_probe().
 *
 * samples/provider is an example.
 */
#ifndef _LINUX_DTRACE_PROVIDER_H
#define _LINUX_DTRACE_PROVIDER_H

#include <linux/module.h>
#include <linux/types.h>

/* Handles of a provider and of a probe. Their contents are private. */
typedef struct dtrace_foreign_provider *dtrace_provider_id_t;
typedef const struct dtrace_foreign_probe *dtrace_id_t;

#define DTRACE_IDNONE ((dtrace_id_t)NULL)

/* The rights that a consumer needs to use a provider's probes: over the kernel, or over users. */
#define DTRACE_PROVIDER_KERNEL 0x1
#define DTRACE_PROVIDER_USER 0x2

/* A stability: the numbers DTRACE_STABILITY_* and DTRACE_CLASS_* of <linux/dtrace.h>. */
struct dtrace_attribute {
	u8 name;
	u8 data;
	u8 dclass;
};

/* The stability of a provider, of the parts of its probes' names, and of their arguments. */
struct dtrace_pattr {
	struct dtrace_attribute provider;
	struct dtrace_attribute mod;
	struct dtrace_attribute func;
	struct dtrace_attribute name;
	struct dtrace_attribute args;
};

/* An argument of a probe, args[n] in D programs. */
struct dtrace_arg {
	/* Which of the words passed to dtrace_probe() it is. Set to n before getargdesc() is called. */
	int mapping;
	/* Its C type, such as "struct file *". */
	char native[128];
	/* The D type that a translator converts it to; empty if there is none. */
	char xlate[128];
};

struct dtrace_pops {
	/*
	 * The first consumer enables the probe. An error (-errno) leaves it disabled and is
	 * reported to the consumer.
	 */
	int (*enable)(void *arg, dtrace_id_t id, void *parg);
	/* No consumer has the probe enabled any more. */
	void (*disable)(void *arg, dtrace_id_t id, void *parg);
	/*
	 * Describes args[n]; false if there is no such argument. May be NULL: then the probes have
	 * arg0, arg1, ... only.
	 */
	bool (*getargdesc)(void *arg, dtrace_id_t id, void *parg, unsigned int n, struct dtrace_arg *desc);
};

int __dtrace_register(const char *name, const struct dtrace_pattr *attr, u32 priv, const struct dtrace_pops *pops,
		      void *arg, struct module *owner, dtrace_provider_id_t *idp);

/*
 * Registers a provider. attr may be NULL, if the interface is private. pops must stay valid as long
 * as the provider is registered; arg is passed to its functions. Returns 0, or an error with *idp
 * set to NULL: -EEXIST, if a provider of this name exists; -EINVAL, if the name is not one for a
 * provider, or pops lacks enable() or disable(); -ENOMEM.
 */
static inline int dtrace_register(const char *name, const struct dtrace_pattr *attr, u32 priv,
				  const struct dtrace_pops *pops, void *arg, dtrace_provider_id_t *idp)
{
	return __dtrace_register(name, attr, priv, pops, arg, THIS_MODULE, idp);
}

/*
 * Removes a provider with its probes; does nothing if id is NULL. -EBUSY, with nothing changed, if
 * a probe is enabled.
 */
int dtrace_unregister(dtrace_provider_id_t id);

/*
 * Creates a probe. mod and func may be empty or NULL if they have no meaning; parg is the probe's
 * own. Consumers that have described the probe before enable it at once, so enable() may be called
 * before this function returns. Returns DTRACE_IDNONE if there is no memory, the provider already
 * has a probe of this name, a part of the name is too long or not printable (it is UTF-8 without
 * control characters, with ':' and '/' in func only), or id is NULL.
 */
dtrace_id_t dtrace_probe_create(dtrace_provider_id_t id, const char *mod, const char *func, const char *name, void *parg);

/* Returns the probe of this name; DTRACE_IDNONE if there is none, or if id is NULL. */
dtrace_id_t dtrace_probe_lookup(dtrace_provider_id_t id, const char *mod, const char *func, const char *name);

/* Returns the parg of the probe; NULL for DTRACE_IDNONE. */
void *dtrace_probe_arg(dtrace_id_t id);

/*
 * Fires the probe with arg0 to arg4. May be called in any context in which RCU is watching,
 * including NMI. If the probe is not enabled this costs the call and little more, and so it does
 * for DTRACE_IDNONE: a module that could not create a probe may fire it all the same.
 */
void dtrace_probe(dtrace_id_t id, u64 arg0, u64 arg1, u64 arg2, u64 arg3, u64 arg4);

#endif
