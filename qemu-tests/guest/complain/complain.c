// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

/*
 * A module that makes the kernel warn when it is loaded, which the harness must notice
 * (qemu-tests/src/bin/selftest.rs).
 */

#include <linux/bug.h>
#include <linux/module.h>

static int __init complain_init(void)
{
	WARN(1, "complained on purpose\n");
	return 0;
}

static void __exit complain_exit(void)
{
}

module_init(complain_init);
module_exit(complain_exit);
MODULE_DESCRIPTION("Makes the kernel warn");
MODULE_LICENSE("GPL");
