#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * New tasks, with the process that creates them.
 */

#pragma D option quiet

dtrace:::BEGIN
{
	printf("%6s %-16s %6s\n", "BY", "COMM", "NEW");
}

sdt:::sched_process_fork
{
	printf("%6d %-16s %6d\n", ((struct task_struct *)arg0)->pid, execname,
	    ((struct task_struct *)arg1)->pid);
}
