#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Processes that end by exit_group(2) less than a second after they were created: number and
 * average lifetime, by program.
 */

#pragma D option quiet

sdt:::sched_process_fork
{
	born[((struct task_struct *)arg1)->pid] = timestamp;
}

syscall::exit_group:entry
/born[pid] && timestamp - born[pid] < 1000000000/
{
	@lives[execname] = count();
	@millis[execname] = avg((timestamp - born[pid]) / 1000000);
}

syscall::exit_group:entry
{
	born[pid] = 0;
}

dtrace:::END
{
	printf("%-16s %8s %8s\n", "COMM", "LIVES", "MILLIS");
	printa("%-16s %@8d %@8d\n", @lives, @millis);
}
