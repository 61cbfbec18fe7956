#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Programs that are started during boot, with the time since the module was loaded. Run the first
 * command to trace the next boot, and the second one after the boot:
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
