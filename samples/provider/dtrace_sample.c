// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

/*
 * A module that is a provider: `sample`. Who writes to /proc/dtrace_sample passes sample:::write-start, with how much is to be
 * written and the task that writes, and then sample:::write-done, with a number that counts the writes. A static key for each
 * keeps the calls out of the way while nobody wants them.
 */

#include <linux/atomic.h>
#include <linux/dtrace_provider.h>
#include <linux/jump_label.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>

struct sample_probe {
	const char *name;
	struct static_key_false *key;
	/* The types of args[0] and args[1]; translators of the D libraries make a psinfo_t of a task. */
	struct dtrace_arg args[2];
	dtrace_id_t id;
};

static DEFINE_STATIC_KEY_FALSE(sample_start_key);
static DEFINE_STATIC_KEY_FALSE(sample_done_key);

static struct sample_probe sample_start = {
	.name = "write-start",
	.key = &sample_start_key,
	.args = { { 0, "size_t" }, { 1, "struct task_struct *", "psinfo_t *" } },
};
static struct sample_probe sample_done = {
	.name = "write-done",
	.key = &sample_done_key,
	.args = { { 0, "long" } },
};

static dtrace_provider_id_t sample_provider;
static struct proc_dir_entry *sample_file;

static int sample_enable(void *arg, dtrace_id_t id, void *parg)
{
	struct sample_probe *probe = parg;

	/* It may be wanted before dtrace_probe_create() has returned. */
	WRITE_ONCE(probe->id, id);
	static_branch_enable(probe->key);
	return 0;
}

static void sample_disable(void *arg, dtrace_id_t id, void *parg)
{
	struct sample_probe *probe = parg;

	static_branch_disable(probe->key);
}

static bool sample_getargdesc(void *arg, dtrace_id_t id, void *parg, unsigned int n, struct dtrace_arg *desc)
{
	struct sample_probe *probe = parg;

	if (n >= ARRAY_SIZE(probe->args) || !probe->args[n].native[0])
		return false;
	*desc = probe->args[n];
	return true;
}

static const struct dtrace_pops sample_pops = {
	.enable = sample_enable,
	.disable = sample_disable,
	.getargdesc = sample_getargdesc,
};

static ssize_t sample_write(struct file *file, const char __user *data, size_t count, loff_t *at)
{
	static atomic_long_t writes;

	if (static_branch_unlikely(&sample_start_key))
		dtrace_probe(sample_start.id, count, (uintptr_t)current, 0, 0, 0);
	if (static_branch_unlikely(&sample_done_key))
		dtrace_probe(sample_done.id, atomic_long_inc_return(&writes), 0, 0, 0, 0);
	return count;
}

static const struct proc_ops sample_ops = { .proc_write = sample_write };

/* A probe that cannot be created is missing, no more. */
static void sample_create(struct sample_probe *probe)
{
	dtrace_id_t id = dtrace_probe_create(sample_provider, KBUILD_MODNAME, "sample_write", probe->name, probe);

	if (id == DTRACE_IDNONE)
		pr_warn("no probe %s\n", probe->name);
	else
		WRITE_ONCE(probe->id, id);
	WARN_ON(dtrace_probe_lookup(sample_provider, KBUILD_MODNAME, "sample_write", probe->name) != id);
}

static int __init sample_init(void)
{
	/* Evolving names and arguments of the ISA's class; functions are the module's own affair. */
	static const struct dtrace_pattr attr = {
		.provider = { 5, 5, 4 }, .mod = { 1, 1, 0 }, .func = { 1, 1, 0 }, .name = { 5, 5, 4 }, .args = { 5, 5, 4 },
	};
	int ret;

	sample_file = proc_create("dtrace_sample", 0200, NULL, &sample_ops);
	if (!sample_file)
		return -ENOMEM;
	/* The last thing that may fail: from here on a probe may be wanted. */
	ret = dtrace_register("sample", &attr, DTRACE_PROVIDER_KERNEL, &sample_pops, NULL, &sample_provider);
	if (ret) {
		proc_remove(sample_file);
		return ret;
	}
	sample_create(&sample_start);
	sample_create(&sample_done);
	return 0;
}

static void __exit sample_exit(void)
{
	proc_remove(sample_file);
	/* Nothing is wanted: what is wanted keeps the module. */
	WARN_ON(dtrace_unregister(sample_provider));
}

module_init(sample_init);
module_exit(sample_exit);
MODULE_DESCRIPTION("A provider of DTrace probes");
MODULE_LICENSE("GPL");
