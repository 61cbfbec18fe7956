#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Duration of vfs_read() and vfs_write(), by function.
 */

#pragma D option quiet

fbt::vfs_read:entry,
fbt::vfs_write:entry
{
	self->start = timestamp;
}

fbt::vfs_read:return,
fbt::vfs_write:return
/self->start/
{
	@nanos[probefunc] = quantize(timestamp - self->start);
	self->start = 0;
}
