// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

/*
 * What the device by which programs register probes needs: the parameter that says where it lies,
 * and the memory of a call's process.
 */

#include <linux/errno.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/string.h>

#include "helper.h"

static char *layout = "file";
module_param(layout, charp, 0444);
MODULE_PARM_DESC(layout, "Devices: file (/dev/dtrace, /dev/dtracehelper) or dir (/dev/dtrace/dtrace, /dev/dtrace/helper)");

/* 0: the device is a file; 1: it is in a directory; -EINVAL: the parameter says something else. */
int dtrace_layout(void)
{
	if (sysfs_streq(layout, "file"))
		return 0;
	return sysfs_streq(layout, "dir") ? 1 : -EINVAL;
}

/* The memory of the current process, with a reference of mmgrab(); NULL: it has none. */
struct mm_struct *dtrace_current_mm(void)
{
	if (current->mm)
		mmgrab(current->mm);
	return current->mm;
}

/* The memory of a task that has not run yet, so that it cannot change; as above. */
struct mm_struct *dtrace_child_mm(struct task_struct *child)
{
	if (child->mm)
		mmgrab(child->mm);
	return child->mm;
}
