// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

/*
 * A module that calls all functions that DTrace offers to providers, with no provider and no probe,
 * as a module does that did not check whether it got any.
 */

#include <linux/dtrace_provider.h>
#include <linux/errno.h>
#include <linux/module.h>

static int nothing_enable(void *arg, dtrace_id_t id, void *parg)
{
	return 0;
}

static void nothing_disable(void *arg, dtrace_id_t id, void *parg)
{
}

static const struct dtrace_pops nothing_pops = { .enable = nothing_enable, .disable = nothing_disable };

static int __init nothing_init(void)
{
	static const struct dtrace_pops none;
	dtrace_provider_id_t provider = (dtrace_provider_id_t)1;

	WARN_ON(dtrace_register("no name", NULL, 0, &nothing_pops, NULL, &provider) != -EINVAL || provider);
	WARN_ON(dtrace_register(NULL, NULL, 0, &nothing_pops, NULL, &provider) != -EINVAL);
	WARN_ON(dtrace_register("nothing", NULL, 0, NULL, NULL, &provider) != -EINVAL);
	WARN_ON(dtrace_register("nothing", NULL, 0, &none, NULL, &provider) != -EINVAL);
	WARN_ON(dtrace_register("nothing", NULL, 0, &nothing_pops, NULL, NULL) != -EINVAL);
	WARN_ON(dtrace_probe_create(NULL, "m", "f", "n", NULL) != DTRACE_IDNONE);
	WARN_ON(dtrace_probe_create(NULL, NULL, NULL, NULL, NULL) != DTRACE_IDNONE);
	WARN_ON(dtrace_probe_lookup(NULL, "m", "f", "n") != DTRACE_IDNONE);
	WARN_ON(dtrace_probe_lookup(NULL, NULL, NULL, NULL) != DTRACE_IDNONE);
	WARN_ON(dtrace_probe_arg(DTRACE_IDNONE));
	dtrace_probe(DTRACE_IDNONE, 1, 2, 3, 4, 5);
	WARN_ON(dtrace_unregister(NULL));
	return 0;
}

static void __exit nothing_exit(void)
{
}

module_init(nothing_init);
module_exit(nothing_exit);
MODULE_DESCRIPTION("Calls DTrace with nothing");
MODULE_LICENSE("GPL");
