// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * What the device by which programs register probes needs to know: the parameter that says where it lies, and the memory of who calls.
 */

#include <linux/errno.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/string.h>

#include "helper.h"

static char *layout = "file";
module_param(layout, charp, 0444);
MODULE_PARM_DESC(layout, "Devices: file (/dev/dtrace, /dev/dtracehelper) or dir (/dev/dtrace/dtrace, /dev/dtrace/helper)");

/* 0: the device is a file, 1: it is in a directory. Else the parameter says something else. */
int dtrace_layout(void)
{
	if (sysfs_streq(layout, "file"))
		return 0;
	return sysfs_streq(layout, "dir") ? 1 : -EINVAL;
}

/* The memory of the current process; counted. */
struct mm_struct *dtrace_current_mm(void)
{
	if (current->mm)
		mmgrab(current->mm);
	return current->mm;
}

/* That of a task which has not run yet; counted. */
struct mm_struct *dtrace_child_mm(struct task_struct *child)
{
	if (child->mm)
		mmgrab(child->mm);
	return child->mm;
}
