/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SPDX-FileCopyrightText: The DTrace for Linux authors */

fbt::wake_up_process:entry
{
	printf("%s %d %d", args[0]->comm, args[0]->parent->tgid, args[0]->in_iowait);
	trace(((struct task_struct *)arg0)->rcu_users);
	trace(curthread->tasks.next->prev);
}
