#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Garbage collections of Java programs with their duration, full collections and collections of the
 * young generation.
 */

#pragma D option quiet
#pragma D option temporal
#pragma D option zdefs

dtrace:::BEGIN
{
	printf("%6s %-16s %-5s %12s\n", "PID", "COMM", "WHOLE", "NANOSECONDS");
}

hotspot*:::gc-begin
{
	self->began = timestamp;
	self->whole = arg0 & 0xff;
}

hotspot*:::gc-end
/self->began/
{
	printf("%6d %-16s %-5s %12d\n", pid, execname, self->whole ? "yes" : "no", timestamp - self->began);
	self->began = 0;
}
