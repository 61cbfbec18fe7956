#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Failed system calls, by program, call and error number.
 */

#pragma D option quiet

syscall:::return
/errno != 0 && pid != $pid/
{
	@failed[execname, probefunc, errno] = count();
}

dtrace:::END
{
	printf("%-16s %-20s %5s %8s\n", "COMM", "CALL", "ERRNO", "COUNT");
	printa("%-16s %-20s %5d %@8d\n", @failed);
}
