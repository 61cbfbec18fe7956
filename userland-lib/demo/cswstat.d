#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Context switches each second, and the average time that a task ran before it was switched out.
 */

#pragma D option quiet

/* By CPU: the time of its last switch. */
uint64_t ran[int];

dtrace:::BEGIN
{
	printf("%-20s %10s %12s\n", "TIME", "SWITCHES", "AVG NANOS");
}

sdt:::sched_switch
{
	@switches = count();
}

sdt:::sched_switch
/ran[cpu]/
{
	@run = avg(timestamp - ran[cpu]);
}

sdt:::sched_switch
{
	ran[cpu] = timestamp;
}

profile:::tick-1s
{
	printf("%-20Y ", walltimestamp);
	printa("%@10d %@12d\n", @switches, @run);
	clear(@switches);
	clear(@run);
}
