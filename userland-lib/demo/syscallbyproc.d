#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Number of system calls, by program.
 */

syscall:::entry
{
	@calls[execname] = count();
}
