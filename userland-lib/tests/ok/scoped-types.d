/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

vmlinux`pid_t kernels;
struct vmlinux`task_struct *task;
`pid_t any;

fbt::wake_up_process:entry
{
	kernels = (vmlinux`pid_t)arg0;
	any = (`pid_t)arg0;
	task = (struct vmlinux`task_struct *)arg0;
	trace(task->pid);
	trace(((struct `task_struct *)arg1)->pid);
	trace(sizeof (vmlinux`pid_t) + sizeof (struct vmlinux`task_struct));
	trace(offsetof(struct vmlinux`task_struct, pid));
	trace(vmlinux`total_forks);
	trace(D`pid);
}
