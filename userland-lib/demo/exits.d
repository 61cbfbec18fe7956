#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Processes that end by exit_group(2), with their exit status. Processes that are killed by a
 * signal are not shown.
 */

#pragma D option quiet

syscall::exit_group:entry
{
	printf("%6d %-16s %d\n", pid, execname, (int)arg0);
}
