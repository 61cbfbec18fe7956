// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * The functions that other modules call (include/linux/dtrace_provider.h). A caller keeps our
 * module loaded by the very symbol that it uses, and could not be loaded before our module had
 * started; so the table is set and does not change. This object is built without ftrace, because
 * dtrace_probe() runs in probe context.
 */

#include <linux/errno.h>
#include <linux/export.h>
#include <linux/module.h>

#include "exports.h"

static const struct dtrace_exports *dtrace_exported;

void dtrace_exports_set(const struct dtrace_exports *exports)
{
	dtrace_exported = exports;
}

bool dtrace_module_hold(struct module *mod)
{
	return try_module_get(mod);
}

int dtrace_client_enable(const struct dtrace_client *client, const void *probe, uintptr_t parg)
{
	return client->pops->enable(client->arg, probe, (void *)parg);
}

void dtrace_client_disable(const struct dtrace_client *client, const void *probe, uintptr_t parg)
{
	client->pops->disable(client->arg, probe, (void *)parg);
}

bool dtrace_client_argdesc(const struct dtrace_client *client, const void *probe, uintptr_t parg, unsigned int n,
			   struct dtrace_arg *desc)
{
	*desc = (struct dtrace_arg) { .mapping = n };
	return client->pops->getargdesc && client->pops->getargdesc(client->arg, probe, (void *)parg, n, desc);
}

int __dtrace_register(const char *name, const struct dtrace_pattr *attr, u32 priv, const struct dtrace_pops *pops,
		      void *arg, struct module *owner, dtrace_provider_id_t *idp)
{
	/* Name and data stability Private, dependency class Unknown. */
	static const struct dtrace_pattr unknown = {
		.provider = { 1, 1 }, .mod = { 1, 1 }, .func = { 1, 1 }, .name = { 1, 1 }, .args = { 1, 1 },
	};
	const struct dtrace_client client = { .pops = pops, .arg = arg, .owner = owner };
	const struct dtrace_exports *e = dtrace_exported;

	if (idp)
		*idp = NULL;
	if (!name || !pops || !pops->enable || !pops->disable || !idp)
		return -EINVAL;
	return e->add(e->data, name, attr ?: &unknown, priv, &client, (const void **)idp);
}
EXPORT_SYMBOL_GPL(__dtrace_register);

int dtrace_unregister(dtrace_provider_id_t id)
{
	return id ? dtrace_exported->remove(id) : 0;
}
EXPORT_SYMBOL_GPL(dtrace_unregister);

dtrace_id_t dtrace_probe_create(dtrace_provider_id_t id, const char *mod, const char *func, const char *name, void *parg)
{
	if (!id)
		return DTRACE_IDNONE;
	return dtrace_exported->create(id, mod ?: "", func ?: "", name ?: "", (uintptr_t)parg);
}
EXPORT_SYMBOL_GPL(dtrace_probe_create);

dtrace_id_t dtrace_probe_lookup(dtrace_provider_id_t id, const char *mod, const char *func, const char *name)
{
	if (!id)
		return DTRACE_IDNONE;
	return dtrace_exported->lookup(id, mod ?: "", func ?: "", name ?: "");
}
EXPORT_SYMBOL_GPL(dtrace_probe_lookup);

void *dtrace_probe_arg(dtrace_id_t id)
{
	return id == DTRACE_IDNONE ? NULL : (void *)dtrace_exported->parg(id);
}
EXPORT_SYMBOL_GPL(dtrace_probe_arg);

void dtrace_probe(dtrace_id_t id, u64 arg0, u64 arg1, u64 arg2, u64 arg3, u64 arg4)
{
	const u64 args[DTRACE_EXPORTS_ARGS] = { arg0, arg1, arg2, arg3, arg4 };

	if (likely(id != DTRACE_IDNONE))
		dtrace_exported->fire(id, args);
}
EXPORT_SYMBOL_GPL(dtrace_probe);
