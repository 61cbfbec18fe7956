// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

/*
 * A module that stops ftrace for good when it is loaded, as ftrace does itself if it finds that the
 * kernel's text has been changed.
 */

#include <linux/kprobes.h>
#include <linux/module.h>

static int __init stopftrace_init(void)
{
	struct kprobe probe = { .symbol_name = "ftrace_kill", .flags = KPROBE_FLAG_DISABLED };
	int error = register_kprobe(&probe);
	void (*stop)(void);

	if (error)
		return error;
	stop = (void *)probe.addr;
	unregister_kprobe(&probe);
	stop();
	return 0;
}

static void __exit stopftrace_exit(void)
{
}

module_init(stopftrace_init);
module_exit(stopftrace_exit);
MODULE_DESCRIPTION("Stops ftrace");
MODULE_LICENSE("GPL");
