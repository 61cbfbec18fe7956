// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

/*
 * Refuses perf events and BPF as a security module would, for the case about that: a live patch of
 * the hooks that the kernel calls. It refuses every process whose real user is not root. The
 * parameter `perf` selects types of perf events, a bit for each (PERF_SECURITY_*,
 * include/linux/perf_event.h); `bpf` selects BPF programs.
 */

#include <linux/bpf.h>
#include <linux/cred.h>
#include <linux/livepatch.h>
#include <linux/module.h>
#include <linux/perf_event.h>

static unsigned int perf;
module_param(perf, uint, 0600);
static bool bpf;
module_param(bpf, bool, 0600);

static bool is_root(void)
{
	return uid_eq(current_uid(), GLOBAL_ROOT_UID);
}

static int refused_perf(int type)
{
	return !is_root() && perf & BIT(type) ? -EACCES : 0;
}

static int refused_bpf(int cmd, union bpf_attr *attr, unsigned int size, bool kernel)
{
	return !is_root() && bpf && cmd == BPF_PROG_LOAD && size >= sizeof(attr->prog_type) &&
	       attr->prog_type == BPF_PROG_TYPE_KPROBE ? -EACCES : 0;
}

static struct klp_func functions[] = {
	{ .old_name = "security_perf_event_open", .new_func = refused_perf },
	{ .old_name = "security_bpf", .new_func = refused_bpf },
	{},
};

static struct klp_object objects[] = {
	{ .funcs = functions },
	{},
};

static struct klp_patch patch = {
	.mod = THIS_MODULE,
	.objs = objects,
};

static int __init refuse_init(void)
{
	return klp_enable_patch(&patch);
}

/* Without an exit function the module could not be unloaded. */
static void __exit refuse_exit(void)
{
}

module_init(refuse_init);
module_exit(refuse_exit);
MODULE_DESCRIPTION("Refuses perf events and BPF");
MODULE_LICENSE("GPL");
MODULE_INFO(livepatch, "Y");
