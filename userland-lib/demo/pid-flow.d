#!/usr/sbin/dtrace -s
/*
 * SPDX-FileCopyrightText: The DTrace for Linux authors
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Calls of the functions of a module in a process (-c or -p), by thread, indented by depth:
 * pid-flow.d a.out '*' -c COMMAND.
 */

#pragma D option quiet
#pragma D option temporal

self uint64_t began;
self int depth;

dtrace:::BEGIN
{
	printf("%6s %10s  %s\n", "THREAD", "MICROS", "FUNCTION");
}

pid$target:$1:$2:entry
{
	self->began = self->began ? self->began : timestamp;
	printf("%6d %10d  %*s-> %s\n", tid, (timestamp - self->began) / 1000, self->depth * 2, "", probefunc);
	self->depth++;
}

pid$target:$1:$2:return
/self->depth/
{
	self->depth--;
	printf("%6d %10d  %*s<- %s = %d\n", tid, (timestamp - self->began) / 1000, self->depth * 2, "", probefunc, (int)arg1);
}
