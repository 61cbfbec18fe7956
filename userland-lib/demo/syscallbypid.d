#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Number of system calls, by process and call.
 */

#pragma D option quiet

syscall:::entry
{
	@calls[pid, execname, probefunc] = count();
}

dtrace:::END
{
	printf("%6s %-16s %-24s %8s\n", "PID", "COMM", "CALL", "COUNT");
	printa("%6d %-16s %-24s %@8d\n", @calls);
}
