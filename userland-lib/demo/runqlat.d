#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Times from the wakeup of a task until it runs on a CPU.
 */

#pragma D option quiet

sdt:::sched_wakeup,
sdt:::sched_wakeup_new
{
	woken[((struct task_struct *)arg0)->pid] = timestamp;
}

sdt:::sched_switch
/woken[((struct task_struct *)arg2)->pid]/
{
	this->pid = ((struct task_struct *)arg2)->pid;
	@nanos = quantize(timestamp - woken[this->pid]);
	woken[this->pid] = 0;
}
