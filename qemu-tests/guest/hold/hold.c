// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

/*
 * Holds the mmap lock of a process for as long as it is loaded, as user programs can cause too. The
 * parameter `pid` names the process.
 */

#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>

static int pid;
module_param(pid, int, 0400);

static struct mm_struct *mm;
static struct task_struct *holder;
static DECLARE_COMPLETION(held);

static int hold(void *unused)
{
	mmap_write_lock(mm);
	complete(&held);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(HZ / 10);
	mmap_write_unlock(mm);
	return 0;
}

static int __init hold_init(void)
{
	struct pid *found = find_get_pid(pid);
	struct task_struct *task = get_pid_task(found, PIDTYPE_PID);

	put_pid(found);
	if (!task)
		return -ESRCH;
	mm = get_task_mm(task);
	put_task_struct(task);
	if (!mm)
		return -ESRCH;
	holder = kthread_run(hold, NULL, "hold");
	if (IS_ERR(holder)) {
		mmput(mm);
		return PTR_ERR(holder);
	}
	wait_for_completion(&held);
	return 0;
}

static void __exit hold_exit(void)
{
	kthread_stop(holder);
	mmput(mm);
}

module_init(hold_init);
module_exit(hold_exit);
MODULE_DESCRIPTION("Keeps the lock of a process' mappings");
MODULE_LICENSE("GPL");
