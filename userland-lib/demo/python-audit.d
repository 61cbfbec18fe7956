#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Audit events of Python programs, by program and event: files that they open, code that they
 * compile and execute, programs that they start.
 */

#pragma D option quiet
#pragma D option zdefs

python*:::audit
{
	@events[execname, copyinstr(arg0)] = count();
}

dtrace:::END
{
	printf("%-16s %-40s %8s\n", "COMM", "EVENT", "COUNT");
	printa("%-16s %-40s %@8d\n", @events);
}
