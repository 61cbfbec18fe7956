#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Times that programs are off the CPU between two periods on a CPU.
 */

#pragma D option quiet

sdt:::sched_switch
{
	left[((struct task_struct *)arg1)->pid] = timestamp;
}

sdt:::sched_switch
/left[((struct task_struct *)arg2)->pid]/
{
	this->next = (struct task_struct *)arg2;
	@nanos[stringof(this->next->comm)] = quantize(timestamp - left[this->next->pid]);
	left[this->next->pid] = 0;
}
