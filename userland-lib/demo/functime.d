#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Duration of the calls of a kernel function: functime.d vfs_read.
 */

#pragma D option quiet

fbt::$1:entry
{
	self->start[stackdepth] = timestamp;
}

fbt::$1:return
/self->start[stackdepth]/
{
	@nanos[probefunc] = quantize(timestamp - self->start[stackdepth]);
	@average[probefunc] = avg(timestamp - self->start[stackdepth]);
	self->start[stackdepth] = 0;
}
