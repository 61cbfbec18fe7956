#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Number of system calls, by call.
 */

syscall:::entry
{
	@calls[probefunc] = count();
}
