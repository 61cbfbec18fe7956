#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Mappings of files into memory: process, size in bytes, and file descriptor.
 */

#pragma D option quiet

syscall::mmap:entry
/(int)arg4 >= 0/
{
	printf("%6d %-16s %10d fd %d\n", pid, execname, arg1, (int)arg4);
}
