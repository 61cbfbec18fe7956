#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Programs that a boot starts, with the time since the module was loaded. For the next boot, and after it:
 *
 *	dtrace -A -s boot-exec.d
 *	dtrace -ae
 */

#pragma D option quiet
#pragma D option bufpolicy=fill

dtrace:::BEGIN
{
	start = timestamp;
	printf("%12s %6s %6s %s\n", "MICROS", "PID", "PPID", "PROGRAM");
}

proc:::exec-success
{
	printf("%12d %6d %6d %s\n", (timestamp - start) / 1000, pid, ppid, execname);
}
