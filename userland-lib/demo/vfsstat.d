#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Number of calls of functions of the virtual file system, each second.
 */

#pragma D option quiet

fbt::vfs_read:entry,
fbt::vfs_write:entry,
fbt::vfs_fsync_range:entry,
fbt::vfs_open:entry,
fbt::vfs_create:entry
{
	@calls[probefunc] = count();
}

profile:::tick-1s
{
	printf("%Y\n", walltimestamp);
	printa("  %-24s %@8d\n", @calls);
	trunc(@calls);
}
