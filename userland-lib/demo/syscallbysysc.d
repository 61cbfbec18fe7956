#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Number of system calls, by call.
 */

syscall:::entry
{
	@calls[probefunc] = count();
}
