#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Processes as they end, with their status.
 */

#pragma D option quiet

syscall::exit_group:entry
{
	printf("%6d %-16s %d\n", pid, execname, (int)arg0);
}
