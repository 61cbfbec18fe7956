#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Duration of system calls, by call.
 */

#pragma D option quiet

syscall:::entry
{
	self->start = timestamp;
}

syscall:::return
/self->start/
{
	@nanos[probefunc] = quantize(timestamp - self->start);
	self->start = 0;
}
